/* Texts of others (names of events, findings) on a terminal and in JSON, whatever bytes they hold.
 */
#ifndef CSW_CLI_PRINT_H
#define CSW_CLI_PRINT_H

#include <stdio.h>

/* Leaves nothing in text that could move the terminal's cursor or mislead its reader: what is no
 * UTF-8, control characters (C1 too) and those that turn the direction of writing become ?. */
void csw_print_clean(char *text);

/* Writes text, with the same put in place of the same. */
void csw_print_text(FILE *file, const char *text);

/* The same with spaces behind it up to so many bytes, at least one. */
void csw_print_padded(FILE *file, const char *text, int width);

/* A JSON string in its quotes, or null for NULL. Bytes that are no ASCII become ? unless they are
 * part of UTF-8. */
void csw_print_json(FILE *file, const char *text);

#endif
