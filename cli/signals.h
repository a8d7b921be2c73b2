/*
 * What signals do to csw-sample.
 *
 * While it counts, the first one that wants the end (SIGINT, SIGTERM, SIGHUP, SIGQUIT) is only
 * noted: the report follows. A second one ends csw-sample at once, and so does the first one where
 * nothing is being counted, but for a SIGINT after the count, which may be a Ctrl-C that came late.
 *
 * Invariant: whoever is ended at once has taken away its unfinished file and told its program. A
 * signal that was ignored when csw-sample was started stays ignored.
 */
#ifndef CSW_CLI_SIGNALS_H
#define CSW_CLI_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

enum csw_phase_of_run {
	CSW_SIGNALS_BEFORE, /* nothing has been counted */
	CSW_SIGNALS_COUNTING,
	CSW_SIGNALS_AFTER, /* the program is waited for, or the report is written */
};

/* Installs all handlers; before it no file is made and no process started. */
void csw_signals_catch(void);

/* In a forked child: what csw-sample was started with. */
void csw_signals_restore(void);

void csw_signals_enter(enum csw_phase_of_run phase);

/* The first signal that wants the end; 0: there was none. */
int csw_signals_end(void);

/* Whether SIGUSR1 has come since the last call. */
bool csw_signals_asked(void);

/* Between the two no handler runs: for what must be made and be named in one. */
void csw_signals_hold(sigset_t *before);
void csw_signals_let(const sigset_t *before);

/* What is taken away (NULL: nothing; borrowed) and who is sent SIGTERM (0: nobody) when a signal
 * ends csw-sample at once. */
void csw_signals_unlink(const char *path);
void csw_signals_terminate(pid_t pid);

#endif
