/*
 * Runs the simulated machine through the engine, piece by piece, so that a test has both the
 * aggregation table and the machine's own truth. Used by the tests that compare the two.
 */
#ifndef CSW_TESTS_TRUTH_SIM_H
#define CSW_TESTS_TRUTH_SIM_H

#include "drivers/sim/sim.h"
#include "engine/merge.h"
#include "engine/slicer.h"

struct sim_run {
	struct csw_plan plan;
	struct csw_driver *drv;
	struct csw_aggregation agg;
	struct csw_slicer slicer;
	struct csw_merge merge;
	struct csw_completeness done;
	uint64_t totals[2 + CSW_COUNTERS_MAX];
	/* set before: */
	uint32_t mixed; /* enum csw_mixed */
	bool ticks;     /* read all counters at every turn, too, */
	void (*interval)(struct sim_run *run, void *ctx); /* and call this then */
	void *ctx;
};

/* Simulates and slices until the machine ends; counters that do not fit take turns. Fails the test
 * when anything in it fails. */
void sim_run_all(struct sim_run *run, const char *trigger, const char *events, uint64_t sav,
		 const char *options);
void sim_run_free(struct sim_run *run);

/* The row of a thread of the truth (NULL: there is none), by TID and birth; idle by kind. */
const struct csw_agg_row *sim_run_row(const struct sim_run *run, const struct csw_sim_truth *truth);

/* What must hold in every run, however broken the records: rows add up to the counters, and every
 * trigger occurrence is accounted for. */
void sim_run_check_sums(const struct sim_run *run);

/* Every thread's slices, times and counts are those of the truth, and nothing else has any; where
 * counters take turns, those of their turns.
 * oncpu_slack_ns: per slice. */
void sim_run_check_equal(const struct sim_run *run, uint64_t oncpu_slack_ns);

/* Every process's counts are those of all its threads in truth, be they in the threads' rows or in
 * the process's own mixed one; nothing is in a row of nobody's. For runs in which no PID is used
 * twice. */
void sim_run_check_processes(const struct sim_run *run);

/* Nor is a process charged with more than all its threads caused. */
void sim_run_check_processes_never_more(const struct sim_run *run);

/* Both runs are of one machine: the truths of all threads are the same. What the switches
 * themselves cause (and the clock) is divided where the trigger reads: leave those out of plans
 * with different ones. */
void sim_run_check_same_machine(const struct sim_run *a, const struct sim_run *b);

/* Both have the same rows with the same times, sums, minima and maxima. */
void sim_run_check_same_table(const struct sim_run *a, const struct sim_run *b);

/* Nobody is charged with more than the truth: what cannot be proven is in no thread's row. */
void sim_run_check_never_more(const struct sim_run *run, uint64_t oncpu_slack_ns);

/* The sum of one counter over the rows of a kind. */
uint64_t sim_run_kind_sum(const struct sim_run *run, uint32_t kind, unsigned counter);

#endif
