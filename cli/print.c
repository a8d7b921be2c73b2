/*
 * Printing what the subcommands find; see print.h.
 *
 * Invariant: no byte of a text reaches the terminal or the JSON unlooked at.
 */
#include "cli/print.h"

#include <string.h>

/* Bytes of the UTF-8 sequence at text, 0 where there is none. */
static size_t utf8_bytes(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t nr = at[0] < 0x80   ? 1
		    : at[0] < 0xc2 ? 0
		    : at[0] < 0xe0 ? 2
		    : at[0] < 0xf0 ? 3
		    : at[0] < 0xf5 ? 4
				   : 0;

	for (size_t i = 1; i < nr; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	/* Longer than need be, a surrogate, or beyond the last character. */
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return nr;
}

/* Bytes of the printable character at text, 0 where there is none; then *skip has those of what
 * stands there. */
static size_t printable_bytes(const char *text, size_t *skip)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t nr = utf8_bytes(text);

	*skip = nr ? nr : 1;
	if (at[0] < ' ' || at[0] == 0x7f)
		return 0;
	if (at[0] == 0xc2 && nr && at[1] < 0xa0) /* C1: controls again */
		return 0;
	/* U+2028 to U+202e and U+2066 to U+2069: line separators, directions of writing. */
	if (at[0] == 0xe2 && nr &&
	    ((at[1] == 0x80 && at[2] >= 0xa8 && at[2] <= 0xae) ||
	     (at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9)))
		return 0;
	return nr;
}

void csw_print_clean(char *text)
{
	char *out = text;
	size_t nr, skip;

	for (; *text; text += skip) {
		nr = printable_bytes(text, &skip);
		if (!nr)
			*out++ = '?';
		memmove(out, text, nr);
		out += nr;
	}
	*out = '\0';
}

void csw_print_text(FILE *file, const char *text)
{
	size_t nr, skip;

	for (; *text; text += skip) {
		nr = printable_bytes(text, &skip);
		if (nr)
			fwrite(text, 1, nr, file);
		else
			fputc('?', file);
	}
}

void csw_print_padded(FILE *file, const char *text, int width)
{
	int used = (int)strlen(text);

	csw_print_text(file, text);
	do
		fputc(' ', file);
	while (++used < width);
}

void csw_print_json(FILE *file, const char *text)
{
	if (!text) {
		fputs("null", file);
		return;
	}
	fputc('"', file);
	while (*text) {
		size_t nr = utf8_bytes(text);

		if (!nr)
			fputc('?', file);
		else if (*text == '"' || *text == '\\')
			fprintf(file, "\\%c", *text);
		else if ((unsigned char)*text < ' ')
			fprintf(file, "\\u%04x", (unsigned)*text);
		else
			fwrite(text, 1, nr, file);
		text += nr ? nr : 1;
	}
	fputc('"', file);
}
