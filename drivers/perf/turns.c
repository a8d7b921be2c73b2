/* Sums over sets of counters that take turns; see turns.h. */
#include "drivers/perf/turns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int csw_perf_turns_init(struct csw_perf_turns *t, const struct csw_perf_group *group,
			unsigned nr_counters, struct csw_perf_turn *first, unsigned nr)
{
	*t = (struct csw_perf_turns){ .group = group, .nr_counters = nr_counters };
	*first = (struct csw_perf_turn){ .set = nr };
	t->last = calloc(group->nr_sets, sizeof(*t->last));
	return t->last ? 0 : -ENOMEM;
}

void csw_perf_turns_free(struct csw_perf_turns *t)
{
	free(t->last);
	t->last = NULL;
}

int csw_perf_turns_sum(const struct csw_perf_turns *t, const struct csw_perf_turn *turn,
		       struct csw_record *rec)
{
	const struct csw_perf_set *set = &t->group->sets[turn->set];
	const struct csw_perf_sum *base = &turn->base;
	unsigned nr_members = rec->flags & CSW_RECORD_DETACHED ? 0 : set->nr_members;
	uint64_t own[1 + CSW_COUNTERS_MAX];

	if (rec->nr_values != 1 + nr_members)
		return -EINVAL;
	memcpy(own, rec->values, rec->nr_values * sizeof(*own));
	memcpy(rec->values, base->values, (1 + t->nr_counters) * sizeof(*own));
	rec->values[0] += own[0];
	for (unsigned i = 0; i < nr_members; i++)
		rec->values[1 + set->counters[i]] += own[1 + i];
	rec->enabled_ns += base->enabled_ns;
	rec->running_ns += base->running_ns;
	if (rec->lost != CSW_LOST_UNKNOWN)
		rec->lost += base->lost;
	rec->nr_values = nr_members ? 1 + t->nr_counters : 1;
	rec->on = set->on;
	return 0;
}

static void copy_sums(struct csw_perf_sum *to, const struct csw_record *rec, unsigned nr_counters)
{
	to->enabled_ns = rec->enabled_ns;
	to->running_ns = rec->running_ns;
	to->lost = rec->lost == CSW_LOST_UNKNOWN ? 0 : rec->lost;
	memcpy(to->values, rec->values, (1 + nr_counters) * sizeof(*to->values));
}

/* a -= b; what wraps below 0 comes back when a reading is added. */
static void subtract(struct csw_perf_sum *a, const struct csw_perf_sum *b, unsigned nr_counters)
{
	a->enabled_ns -= b->enabled_ns;
	a->running_ns -= b->running_ns;
	a->lost -= b->lost;
	for (unsigned i = 0; i <= nr_counters; i++)
		a->values[i] -= b->values[i];
}

void csw_perf_turns_next(struct csw_perf_turns *t, struct csw_perf_turn *turn,
			 const struct csw_record *sums)
{
	struct csw_perf_sum *last = &t->last[turn->set];

	/* The set's own reading again: of counters that it has not, 0. */
	copy_sums(last, sums, t->nr_counters);
	subtract(last, &turn->base, t->nr_counters);
	turn->set = (turn->set + 1) % t->group->nr_sets;
	copy_sums(&turn->base, sums, t->nr_counters);
	subtract(&turn->base, &t->last[turn->set], t->nr_counters);
}
