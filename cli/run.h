/* One measurement from the opening of the session to its stop, with the program that it may run. */
#ifndef CSW_CLI_RUN_H
#define CSW_CLI_RUN_H

#include "cli/options.h"
#include "csw/csw.h"

/* What the run asks for while it goes on. */
struct csw_run_hooks {
	/* The session is open and not yet started; then it is started. NULL: nothing to do. 0, or
	 * -errno with *err. */
	int (*opened)(void *ctx, struct csw_session *s, struct csw_error *err);
	int (*started)(void *ctx, struct csw_session *s, struct csw_error *err);
	/* Shows what has been counted up to now: an interval has ended, or SIGUSR1 asks. 0, or
	 * -errno, the reason printed, and the run has failed. */
	int (*show)(void *ctx, const struct csw_session *s);
	/* SIGUSR1, where not a table answers it, for which every slice would be cut. NULL: one
	 * does. */
	void (*asked)(void *ctx);
	/* Nobody wants more: the run is over, unless a program runs, which goes on to its end.
	 * NULL: never. */
	bool (*is_enough)(void *ctx);
	void *ctx;
};

struct csw_run_result {
	struct csw_session *session; /* stopped, to make the last table from; NULL on failure */
	int program_status;          /* 128 + signal; 0 without a program */
	uint64_t own_cpu_ns;         /* what csw-sample itself took from start to stop */
};

/*
 * Counts until the duration is over, the program or what was watched has ended, the simulation has
 * ended, or a signal says so. 0; or the exit status of csw-sample, the reason printed. No program
 * is left running.
 */
int csw_run(struct csw_run_result *result, const struct csw_options *o,
	    const struct csw_run_hooks *hooks);

/* How o wants its tables. */
struct csw_table_opts csw_run_table_opts(const struct csw_options *o);

#endif
