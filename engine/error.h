/* Filling in the caller's struct csw_error: the one place where error lines are made. */
#ifndef CSW_ENGINE_ERROR_H
#define CSW_ENGINE_ERROR_H

#include "csw/csw.h"

/* Sets *err (may be NULL) to code and the formatted line; returns code, so that a failing statement
 * can return it. */
int csw_error_set(struct csw_error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the line that is already there (cut at the end where it does not fit);
 * returns err's code, -EINVAL without an err: who may have none returns the code of the call that
 * failed. */
int csw_error_prefix(struct csw_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
