/*
 * Tables to the output, one or many, in the format that was asked for.
 *
 * Invariant: what a program reads from it never depends on whether a terminal is there.
 */
#ifndef CSW_CLI_SHOW_H
#define CSW_CLI_SHOW_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"
#include "cli/output.h"
#include "csw/csw.h"

struct csw_show {
	const struct csw_options *o;
	struct csw_output *out;
	uint64_t nr;                   /* tables shown */
	uint64_t duration_ns, samples; /* of all intervals, as the next line */
	uint64_t oncpu_ns, exact_ns, outside_ns, lost, throttled, throttles, unseen;
	uint64_t sav;   /* what it became */
	bool by_switch; /* the trigger is the software switch */
	bool in_scope;  /* a thread that was asked for had a row */
	uint32_t nr_cpus, cpus_missed, cpus_gone;
	bool broken; /* a table's numbers did not add up; said once */
};

/* Counting has begun: is what is appended to of the same kind? A measurement shall not be spent on
 * a file that nobody could read. 0 or -errno, the reason printed or in *err. */
int csw_show_begin(struct csw_show *show, const struct csw_session *s, struct csw_error *err);

/* An interval, or what SIGUSR1 asked for; complete for whoever reads the output. 0 or -errno, the
 * reason printed. */
int csw_show_now(struct csw_show *show, const struct csw_session *s);

/* The last one, not yet committed. */
int csw_show_last(struct csw_show *show, const struct csw_session *s);

/* For whoever shows no table: whether what was counted adds up; else one line on stderr says why. */
bool csw_show_adds_up(const struct csw_session *s);

/* At most one line on stderr, where the numbers say less than one would think: nobody of those
 * asked for ran, or much is of no proven thread. */
void csw_show_hint(const struct csw_show *show);

/* One line on stderr, unless it shall be quiet: what was asked for has matched nobody. */
void csw_show_unmatched(const struct csw_options *o);

/* One line on stderr about csw-sample's own CPU time. */
void csw_show_overhead(const struct csw_show *show, uint64_t own_cpu_ns);

#endif
