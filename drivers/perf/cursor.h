/*
 * Numbers from bytes that somebody else wrote, one after the other, in either byte order.
 *
 * Invariant: nothing beyond `end` is read; what is not there whole is -EINVAL and moves nothing.
 */
#ifndef CSW_DRIVERS_PERF_CURSOR_H
#define CSW_DRIVERS_PERF_CURSOR_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Always inlined: where the byte order is known when it is compiled, nobody asks for it. */
#define CSW_CURSOR_INLINE static inline __attribute__((always_inline))

struct csw_cursor {
	const unsigned char *at, *end;
	bool swap;
};

CSW_CURSOR_INLINE int csw_cursor_u32(struct csw_cursor *c, uint32_t *out)
{
	if ((size_t)(c->end - c->at) < sizeof(*out))
		return -EINVAL;
	memcpy(out, c->at, sizeof(*out));
	if (c->swap)
		*out = __builtin_bswap32(*out);
	c->at += sizeof(*out);
	return 0;
}

CSW_CURSOR_INLINE int csw_cursor_u64(struct csw_cursor *c, uint64_t *out)
{
	if ((size_t)(c->end - c->at) < sizeof(*out))
		return -EINVAL;
	memcpy(out, c->at, sizeof(*out));
	if (c->swap)
		*out = __builtin_bswap64(*out);
	c->at += sizeof(*out);
	return 0;
}

#endif
