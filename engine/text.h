/* Text that anyone may have written: decoding, escaping, measuring and cutting it, and numbers. */
#ifndef CSW_ENGINE_TEXT_H
#define CSW_ENGINE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for any 64-bit number with its separators. */
#define CSW_NUMBER_BYTES 32

/* The bytes of the UTF-8 character at s, and itself into *point; 0 at the end; -1 when s[0] begins
 * no valid one. */
int csw_utf8_next(const char *s, uint32_t *point);

/* Must not be shown as it is: controls (C1 too), what turns the direction of text around it or
 * breaks its line, and what Unicode says is no character. */
bool csw_text_is_unsafe(uint32_t point);

/* Copies in to out[bytes] so that any terminal can show it and nothing in it can be taken for
 * something else: printable ASCII and valid UTF-8 stay, the bytes of unsafe characters and those
 * that are no UTF-8 become \xNN, and a backslash becomes two. What does not fit is cut between
 * characters and ends in "...". Returns out. */
const char *csw_escape(char *out, size_t bytes, const char *in);

/* The same for a line whose parts have been escaped: backslashes stay as they are. */
const char *csw_escape_line(char *out, size_t bytes, const char *in);

/* Cells that a terminal needs for s, which is without control characters. */
unsigned csw_text_width(const char *s);

/* Cuts text in place to at most width cells, between characters: "begin..." or, where the end says
 * more, "...end". Less than three cells hold dots alone. */
void csw_text_cut(char *text, unsigned width);
void csw_text_cut_front(char *text, unsigned width);

/* "1,234,567", or "1234567" when raw; out holds CSW_NUMBER_BYTES. Returns out. */
const char *csw_text_number(char *out, uint64_t value, bool raw);

#endif
