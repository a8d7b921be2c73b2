/*
 * The line on a terminal's stderr that says what csw-sample is doing.
 *
 * Invariant: whoever prints something else erases it first; at the end nothing of it is left.
 */
#ifndef CSW_CLI_PROGRESS_H
#define CSW_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"

struct csw_progress {
	const struct csw_options *o; /* NULL: no line at all */
	uint64_t next_ns;            /* when to draw it again, in elapsed time */
	bool shown;
};

void csw_progress_init(struct csw_progress *p, const struct csw_options *o);
void csw_progress_draw(struct csw_progress *p, uint64_t elapsed_ns);
void csw_progress_erase(struct csw_progress *p);

#endif
