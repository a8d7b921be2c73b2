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

CSW_CURSOR_INLINE bool csw_cursor_has(const struct csw_cursor *c, size_t bytes)
{
	return (size_t)(c->end - c->at) >= bytes;
}

/* The next number, of which it was asked before whether it is there: many of them cost one
 * question.
 */
CSW_CURSOR_INLINE uint64_t csw_cursor_take(struct csw_cursor *c)
{
	uint64_t value;

	memcpy(&value, c->at, sizeof(value));
	c->at += sizeof(value);
	return c->swap ? __builtin_bswap64(value) : value;
}

CSW_CURSOR_INLINE int csw_cursor_u32(struct csw_cursor *c, uint32_t *out)
{
	if (!csw_cursor_has(c, sizeof(*out)))
		return -EINVAL;
	memcpy(out, c->at, sizeof(*out));
	if (c->swap)
		*out = __builtin_bswap32(*out);
	c->at += sizeof(*out);
	return 0;
}

CSW_CURSOR_INLINE int csw_cursor_u64(struct csw_cursor *c, uint64_t *out)
{
	if (!csw_cursor_has(c, sizeof(*out)))
		return -EINVAL;
	*out = csw_cursor_take(c);
	return 0;
}

#endif
