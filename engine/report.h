/*
 * Reports print a table and nothing else: all they know of it comes through the calls of csw.h.
 *
 * Invariant: what was not counted is never printed as a number, and no name reaches the output raw.
 */
#ifndef CSW_ENGINE_REPORT_H
#define CSW_ENGINE_REPORT_H

#include <stdio.h>

#include "csw/csw.h"

/* They write to file and leave its error flag to csw_report. 0 or -errno. */
int csw_report_text(const struct csw_table *t, FILE *file, int verbose, struct csw_error *err);
int csw_report_json(const struct csw_table *t, FILE *file, struct csw_error *err);

/* The bytes of the UTF-8 character at s, and itself into *point; 0 at the end; -1 when s[0] begins
 * no valid one. */
int csw_utf8_next(const char *s, uint32_t *point);

/* total - rows of a counter without loss of sign: 0 when conservation holds. */
static inline int64_t csw_report_difference(const struct csw_counter *c)
{
	return (int64_t)(c->total - c->rows);
}

#endif
