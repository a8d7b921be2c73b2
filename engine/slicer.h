/*
 * The slicer: records in, slices out, straight into the aggregation table.
 *
 * It turns TIDs into rows (engine/tasks), asks the rules (engine/rules.h) whose time and whose
 * counts it is, and books them.
 *
 * Invariant: per counter, what it books is last reading - first reading of every CPU; `totals` has
 * that from the readings themselves, not from what was booked, so that the two can be compared.
 */
#ifndef CSW_ENGINE_SLICER_H
#define CSW_ENGINE_SLICER_H

#include "engine/event.h"
#include "engine/record.h"
#include "engine/rules.h"
#include "engine/table.h"
#include "engine/tasks.h"

/* Occurrences of one CPU's trigger: all = sav * samples + lost + throttled + unseen + open. */
struct csw_completeness {
	uint64_t all, samples, lost, throttled, unseen;
	int64_t open;
};

/* One CPU. readings: [0] enabled_ns, [1] running_ns, [2..] the counters, at the last sample. */
struct csw_slicer_cpu {
	struct csw_cpu_state state;
	struct csw_completeness done;
	uint64_t lost_records; /* by LOST records */
	uint64_t start_ns, stop_ns;
	uint64_t start_trigger;
	uint64_t first[2 + CSW_COUNTERS_MAX];
	uint64_t readings[2 + CSW_COUNTERS_MAX];
	bool started, stopped;
};

struct csw_slicer {
	struct csw_tasks tasks;
	struct csw_aggregation *agg; /* borrowed */
	struct csw_rules rules;
	unsigned nr_counters, nr_cpus;
	uint32_t event_flags[CSW_COUNTERS_MAX];
	bool all_survive_idle; /* every counter can be told apart from idle without a sample */
	struct csw_slicer_cpu *cpus;
	uint64_t
		totals[2 + CSW_COUNTERS_MAX]; /* like readings, summed over the CPUs that stopped */
	uint64_t unseen_switches, owner_disagreements, throttles, slices;
	bool backwards; /* a reading went backwards: the source is broken */
};

struct csw_plan;

int csw_slicer_init(struct csw_slicer *s, const struct csw_plan *plan,
		    const struct csw_scope *scope, struct csw_aggregation *agg,
		    unsigned nr_cpus); /* 0 or -ENOMEM */
void csw_slicer_free(struct csw_slicer *s);

/* Works off one record. Records of one CPU come in ring order, those of several merged by time. 0,
 * -ENOMEM, or -EINVAL for a CPU that does not exist. */
int csw_slicer_record(struct csw_slicer *s, const struct csw_record *rec);

/* Sums up all CPUs' completeness. */
void csw_slicer_completeness(const struct csw_slicer *s, struct csw_completeness *out);

#endif
