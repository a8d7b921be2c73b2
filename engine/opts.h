/* Reading the options of a program that was built against another csw.h. */
#ifndef CSW_ENGINE_OPTS_H
#define CSW_ENGINE_OPTS_H

#include "csw/csw.h"

/* Copies the struct at from, called name, whose first field is its size_t size, to to[known], ours.
 * An older (shorter) one's rest reads as zero; a newer (longer) one's rest must be zero, or -E2BIG.
 * from NULL: all zero. -EINVAL: it has no size. */
int csw_opts_take(void *to, size_t known, const void *from, const char *name,
		  struct csw_error *err);

#endif
