/*
 * Printing what the subcommands find; see print.h.
 *
 * Invariant: no byte of a text reaches the terminal or the JSON unlooked at.
 */
#include "cli/print.h"

#include <string.h>

void csw_print_text(FILE *file, const char *text)
{
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		fputc(byte < ' ' || byte == 0x7f ? '?' : byte, file);
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
