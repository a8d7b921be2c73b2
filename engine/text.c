/*
 * Text that anyone may have written: names of threads, cgroups and events. See text.h.
 *
 * Invariant: what csw_escape has made holds no byte that a terminal would obey, and nothing here
 * cuts within a character.
 */
#include "engine/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DOTS 3

int csw_utf8_next(const char *s, uint32_t *point)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *c = (const unsigned char *)s;
	int bytes = c[0] < 0x80 ? 1 : c[0] >> 5 == 6 ? 2 : c[0] >> 4 == 14 ? 3 : 4;
	uint32_t p;

	if (!c[0])
		return 0;
	if (bytes == 4 && c[0] >> 3 != 30)
		return -1;
	p = bytes == 1 ? c[0] : c[0] & (0x7fu >> bytes);
	for (int i = 1; i < bytes; i++) {
		if (c[i] >> 6 != 2) /* the terminating NUL ends here too */
			return -1;
		p = p << 6 | (c[i] & 0x3fu);
	}
	/* Overlong forms, UTF-16 surrogates and what lies beyond Unicode are not UTF-8. */
	if (p < least[bytes] || p > 0x10ffff || (p >= 0xd800 && p <= 0xdfff))
		return -1;
	*point = p;
	return bytes;
}

/* ---- escaping ---- */

struct range {
	uint32_t first, last;
};

static bool lies_in(uint32_t point, const struct range *ranges, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (point >= ranges[i].first && point <= ranges[i].last)
			return true;
	}
	return false;
}

/* C1 controls are valid UTF-8, yet terminals obey them: U+009B is as good as ESC [. Marks of
 * direction let a name rearrange what stands beside it, and line separators end a line in some
 * readers of JSON and CSV. */
bool csw_text_is_unsafe(uint32_t point)
{
	static const struct range unsafe[] = {
		{ 0x61c, 0x61c },   { 0x200e, 0x200f }, { 0x2028, 0x202e },
		{ 0x2066, 0x2069 }, { 0xfdd0, 0xfdef },
	};

	if (point < 0xa0)
		return point < 0x20 || point >= 0x7f;
	return (point & 0xfffe) == 0xfffe || /* the last two of every plane */
	       lies_in(point, unsafe, sizeof(unsafe) / sizeof(*unsafe));
}

/* What the next character becomes, in piece[4]: its length, and *taken, the bytes of in behind it.
 */
static size_t escape_one(char piece[4], const char *in, bool backslashes, size_t *taken)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char byte = (unsigned char)*in;
	uint32_t point;
	int nr = csw_utf8_next(in, &point);

	*taken = 1;
	if (nr > 0 && !csw_text_is_unsafe(point)) {
		*taken = (size_t)nr;
		memcpy(piece, in, *taken);
		if (byte != '\\' || !backslashes)
			return *taken;
		piece[1] = '\\';
		return 2;
	}
	memcpy(piece, (char[4]){ '\\', 'x', digits[byte >> 4], digits[byte & 15] }, 4);
	return 4;
}

static const char *escape(char *out, size_t bytes, const char *in, bool backslashes)
{
	size_t used = 0, cut = 0; /* cut: where "..." would still fit */

	if (!bytes)
		return out;
	while (*in) {
		char piece[4];
		size_t taken, need = escape_one(piece, in, backslashes, &taken);

		if (used + need >= bytes) {
			used = cut;
			for (int dots = 0; dots < DOTS && used + 1 < bytes; dots++)
				out[used++] = '.';
			break;
		}
		memcpy(out + used, piece, need);
		used += need;
		in += taken;
		if (used + DOTS < bytes)
			cut = used;
	}
	out[used] = '\0';
	return out;
}

const char *csw_escape(char *out, size_t bytes, const char *in)
{
	return escape(out, bytes, in, true);
}

const char *csw_escape_line(char *out, size_t bytes, const char *in)
{
	return escape(out, bytes, in, false);
}

/* ---- the width of text on a terminal ---- */

/* wcwidth() would need the caller's locale, which a library must not set. The large blocks are
 * enough for padding. */
static unsigned point_width(uint32_t point)
{
	static const struct range none[] = { { 0x300, 0x36f },   { 0x200b, 0x200f },
					     { 0x202a, 0x202e }, { 0x2060, 0x206f },
					     { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f },
					     { 0xfeff, 0xfeff } };
	static const struct range wide[] = { { 0x1100, 0x115f },   { 0x2e80, 0xa4cf },
					     { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },
					     { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },
					     { 0xffe0, 0xffe6 },   { 0x1f300, 0x1f64f },
					     { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd } };

	if (point < 0x300) /* nearly all text */
		return 1;
	if (lies_in(point, none, sizeof(none) / sizeof(*none)))
		return 0;
	return lies_in(point, wide, sizeof(wide) / sizeof(*wide)) ? 2 : 1;
}

/* Bytes and cells of what stands at s: a character, or a byte that begins none. 0 at the end. */
static size_t step(const char *s, unsigned *cells)
{
	uint32_t point;
	int bytes = csw_utf8_next(s, &point);

	*cells = bytes > 0 ? point_width(point) : 1;
	return bytes < 0 ? 1 : (size_t)bytes;
}

unsigned csw_text_width(const char *s)
{
	unsigned width = 0, cells;

	for (size_t bytes; (bytes = step(s, &cells)) != 0; s += bytes)
		width += cells;
	return width;
}

void csw_text_cut(char *text, unsigned width)
{
	unsigned dots = width < DOTS ? width : DOTS, used = 0, cells;
	char *end = text;

	if (csw_text_width(text) <= width)
		return;
	for (size_t bytes; (bytes = step(end, &cells)) != 0; end += bytes) {
		if (used + cells > width - dots)
			break;
		used += cells;
	}
	/* The text that is cut off may be shorter than the dots: one wide character. */
	while (dots && *end) {
		*end++ = '.';
		dots--;
	}
	*end = '\0';
}

void csw_text_cut_front(char *text, unsigned width)
{
	unsigned dots = width < DOTS ? width : DOTS, left = csw_text_width(text), cells;
	char *from = text;

	if (left <= width)
		return;
	while (left > width - dots || from < text + dots) {
		size_t bytes = step(from, &cells);

		from += bytes;
		left -= cells;
		if (!bytes)
			break;
	}
	memset(text, '.', dots);
	memmove(text + dots, from, strlen(from) + 1);
}

/* ---- numbers ---- */

const char *csw_text_number(char *out, uint64_t value, bool raw)
{
	char digits[CSW_NUMBER_BYTES]; /* the last one first */
	size_t nr = 0, at = 0;

	/* By hand: a large table is nothing but numbers, and snprintf was a tenth of its report. */
	do {
		digits[nr++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (nr) {
		out[at++] = digits[--nr];
		if (nr && !raw && nr % 3 == 0)
			out[at++] = ',';
	}
	out[at] = '\0';
	return out;
}
