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

#include "engine/text.h"

int csw_error_set(struct csw_error *err, int code, const char *format, ...)
{
	char line[2 * CSW_ERROR_BYTES]; /* longer than the text, so that the cut is made by
					   csw_escape_line alone */
	va_list args;

	if (!err)
		return code;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	err->code = code;
	csw_escape_line(err->text, sizeof(err->text), line);
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
	csw_escape_line(err->text, sizeof(err->text), line);
	return err->code;
}
