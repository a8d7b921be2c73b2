/* One measurement from the opening of the session to its stop, with the program that it may run. */
#ifndef CSW_CLI_RUN_H
#define CSW_CLI_RUN_H

#include "cli/options.h"
#include "csw/csw.h"

/*
 * Counts until the duration is over, the program has ended, the simulation has ended, or a signal
 * says so. 0 and *out to make tables from, *program_status being the program's exit status (128 +
 * signal), 0 without one; or the exit status of csw-sample, the reason printed and *out NULL. No
 * program is left running.
 */
int csw_run(struct csw_session **out, const struct csw_options *o, int *program_status);

/* Names a file that a second Ctrl-C, which ends csw-sample at once, takes away first; NULL: none.
 * Borrowed. */
void csw_run_unlink_if_killed(const char *path);

#endif
