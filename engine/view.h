/*
 * From the aggregation table to the table that is shown: scope, grouping, order, and the proofs
 * beside it.
 *
 * Invariant: the rows of a view add up to the rows of the aggregation, in every grouping.
 */
#ifndef CSW_ENGINE_VIEW_H
#define CSW_ENGINE_VIEW_H

#include "engine/driver.h"
#include "engine/estimates.h"
#include "engine/table.h"

#define CSW_WHY_BYTES 512 /* of csw_summary.broken_why; what does not fit is cut */

/* All that a view is made from; borrowed. */
struct csw_result {
	const struct csw_plan *plan;
	const struct csw_driver_ops *driver;
	const struct csw_aggregation *agg;
	bool scoped; /* rows without CSW_ROW_IN_SCOPE fold into one row `other` (self included) */
	uint64_t totals[CSW_COUNTERS_MAX]; /* per counter: readings at stop - at start, over all
					      CPUs */
	uint64_t enabled_ns, running_ns;   /* of the group, the same */
	const uint64_t *each_running_ns;   /* of each counter, where they take turns, else NULL */
	/* What was counted on each CPU: row 2 * cpu in scope, row 2 * cpu + 1 out of scope. Idle's
	 * time is in neither's oncpu_ns; what idle caused is in their cells like all else. */
	const struct csw_aggregation *cpus;
	unsigned nr_cpus;
	const struct csw_estimates *samples, *cpu_samples;  /* behind agg's cells, behind those of
							       cpus;  NULL: none */
	bool cgroups;                                       /* membership was followed */
	const char *(*cgroup_path)(void *ctx, uint64_t id); /* NULL for an id that nobody knows */
	void *cgroup_ctx;
	const struct csw_wrong_reading *wrong; /* NULL: all readings could be */
	struct csw_summary
		summary; /* but for the strings and the fields that a view sums up itself: threads,
			  * slices, oncpu_ns, exact_ns, broken, broken_why */
};

int csw_view_make(struct csw_table **out, const struct csw_result *result, uint32_t by,
		  const struct csw_table_opts *opts, struct csw_error *err);

/* How a table is grouped (enum csw_by): a report's columns depend on it, and an empty table does
 * not show it. */
uint32_t csw_view_by(const struct csw_table *t);

/* Threads in scope that ran, shown or folded away. */
uint64_t csw_view_threads_in_scope(const struct csw_table *t);

/* Did a counter of its own say how often the trigger occurred? Else completeness checks nothing. */
bool csw_view_counts_trigger(const struct csw_table *t);

#endif
