/*
 * Sets of counters that take turns on one CPU: from the readings of single sets to sums over all of
 * them.
 *
 * A set counts only in its turn, and its own counts stand still between two of them. So a sum is
 * what all sets had counted when the turn began, and what the set has counted since.
 *
 * Invariant: sums never go back, and those of counters that are not in the set stand still.
 */
#ifndef CSW_DRIVERS_PERF_TURNS_H
#define CSW_DRIVERS_PERF_TURNS_H

#include "drivers/perf/group.h"

/* A set's reading, or the sums over all sets; values as in a record, of the plan's counters. */
struct csw_perf_sum {
	uint64_t enabled_ns, running_ns, lost;
	uint64_t values[1 + CSW_COUNTERS_MAX];
};

/* A set in its turn; add its own reading to base and there are the sums. */
struct csw_perf_turn {
	unsigned set;
	struct csw_perf_sum base;
};

struct csw_perf_turns {
	const struct csw_perf_group *group; /* borrowed */
	unsigned nr_counters;
	struct csw_perf_sum *last; /* each set's own reading when its last turn ended */
};

/* 0 or -ENOMEM. `first` becomes the turn of set nr. */
int csw_perf_turns_init(struct csw_perf_turns *t, const struct csw_perf_group *group,
			unsigned nr_counters, struct csw_perf_turn *first, unsigned nr);
void csw_perf_turns_free(struct csw_perf_turns *t); /* fine on one that is all zeros */

/* Makes of rec, a reading of the turn's set, the sums over all sets and says which counters are on.
 * -EINVAL: that is no reading of this set. */
int csw_perf_turns_sum(const struct csw_perf_turns *t, const struct csw_perf_turn *turn,
		       struct csw_record *rec);

/* The turn has ended with these sums; *turn becomes that of the set behind it. */
void csw_perf_turns_next(struct csw_perf_turns *t, struct csw_perf_turn *turn,
			 const struct csw_record *sums);

#endif
