/*
 * Error lines: made in one place, so that each is one line and none carries a byte that a terminal
 * would obey.
 *
 * Invariant: csw_error.text is always NUL-terminated, without control bytes, and cut only between
 * characters.
 */
#include "engine/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

/* Bytes of the valid UTF-8 character that begins at s, as RFC 3629 has it (no surrogates, no
 * overlong forms); 0: not valid. */
static size_t utf8_length(const unsigned char *s)
{
	size_t nr = s[0] < 0x80   ? 1
		    : s[0] < 0xc2 ? 0
		    : s[0] < 0xe0 ? 2
		    : s[0] < 0xf0 ? 3
		    : s[0] < 0xf5 ? 4
				  : 0;

	for (size_t i = 1; i < nr; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0; /* the NUL at the end stops here as well */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return nr;
}

/* C1 controls are valid UTF-8, yet terminals obey them: U+009B is as good as ESC [. */
static bool is_control(const unsigned char *s)
{
	return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

const char *csw_escape(char *out, size_t bytes, const char *in)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *s = (const unsigned char *)in;
	size_t used = 0, cut = 0; /* cut: where "..." would still fit */

	if (!bytes)
		return out;
	while (*s) {
		char piece[4] = { '\\', 'x', digits[*s >> 4], digits[*s & 15] };
		size_t nr = utf8_length(s);
		bool plain = nr && !is_control(s);
		size_t need = plain ? nr : sizeof(piece);

		if (used + need >= bytes) {
			used = cut;
			for (int dots = 0; dots < 3 && used + 1 < bytes; dots++)
				out[used++] = '.';
			break;
		}
		memcpy(out + used, plain ? (const char *)s : piece, need);
		used += need;
		s += plain ? nr : 1;
		if (used + 3 < bytes)
			cut = used;
	}
	out[used] = '\0';
	return out;
}

int csw_error_set(struct csw_error *err, int code, const char *format, ...)
{
	char line[2 * CSW_ERROR_BYTES]; /* longer than the text, so that the cut is made by
					   csw_escape alone */
	va_list args;

	if (!err)
		return code;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	err->code = code;
	csw_escape(err->text, sizeof(err->text), line);
	return code;
}

int csw_error_prefix(struct csw_error *err, const char *format, ...)
{
	char prefix[CSW_ERROR_BYTES], line[2 * CSW_ERROR_BYTES + 3];
	va_list args;

	if (!err)
		return -EINVAL;
	va_start(args, format);
	vsnprintf(prefix, sizeof(prefix), format, args);
	va_end(args);
	snprintf(line, sizeof(line), "%s: %s", prefix, err->text);
	csw_escape(err->text, sizeof(err->text), line);
	return err->code;
}
