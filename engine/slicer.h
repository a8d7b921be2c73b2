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

#include "engine/estimates.h"
#include "engine/event.h"
#include "engine/record.h"
#include "engine/rules.h"
#include "engine/slices.h"
#include "engine/table.h"
#include "engine/tasks.h"

/* Occurrences of one CPU's trigger since the last reset: all = sav * samples + lost + throttled +
 * unseen + open. */
struct csw_completeness {
	uint64_t all, samples, lost, throttled, unseen;
	int64_t carried; /* of `all`, what a reset has found open: it occurred before */
	int64_t open; /* of one CPU, all is in its state, and so is open but for what was left over
			 at the ends of turns */
};

/* One CPU. readings: [0] enabled_ns, [1] running_ns, [2..] the counters, at the last sample. */
struct csw_slicer_cpu {
	struct csw_cpu_state state;
	struct csw_completeness done;
	uint64_t lost_records,
		lost_records_before; /* by LOST records: since and before the last reset */
	uint64_t start_ns, stop_ns;
	uint64_t start_trigger;
	uint64_t kernel_lost; /* samples that could not be written, by the kernel's count at the
				 last reading */
	uint64_t lost_since;  /* occurrences booked as lost since then */
	uint64_t first[2 + CSW_COUNTERS_MAX];
	uint64_t readings[2 + CSW_COUNTERS_MAX];
	uint64_t ran_ns[CSW_COUNTERS_MAX]; /* each counter, where they take turns; since the last
					      reset */
	/* A sample of a trigger that fires inside the switch waits for the record behind it. */
	struct csw_record held;
	bool holds;
	bool started, stopped;
};

struct csw_slicer {
	struct csw_tasks tasks;
	struct csw_aggregation *agg; /* borrowed */
	struct csw_rules rules;
	unsigned nr_counters, nr_cpus;
	uint64_t from_ns; /* the duration begins */
	uint32_t event_flags[CSW_COUNTERS_MAX];
	bool scoped;
	struct csw_aggregation by_cpu; /* row 2 * cpu: in scope, 2 * cpu + 1: out of scope */
	uint32_t clocks, never_idle;   /* a bit for each such counter */
	uint32_t on;    /* where counters take turns: those that ran in the slice being booked */
	uint32_t mixed; /* enum csw_mixed */
	uint32_t sample_of; /* enum csw_sample_of */
	uint32_t last; /* CSW_MIXED_LAST: whom the sample shows that ends the slice being booked */
	uint64_t shared_ns;    /* time on a CPU in slices whose counts were shared */
	bool all_survive_idle; /* every counter can be told apart from idle without a sample */
	struct csw_slicer_cpu *cpus;
	uint64_t unseen_switches, owner_disagreements, throttles, slices;
	struct csw_slices *each; /* who wants every slice, borrowed; NULL: nobody */
	/* ordinary samples of a recording: how many, behind which row and which CPU's row, their
	 * sum per counter, the CPUs' number and the time that they span */
	uint64_t nr_estimates;
	struct csw_estimates by_row, by_half;
	uint64_t estimated[CSW_COUNTERS_MAX];
	uint64_t first_estimate_ns, last_estimate_ns;
	bool without_cpu;               /* some did not say on which CPU */
	bool is_wrong;                  /* some reading was: */
	struct csw_wrong_reading wrong; /* the first such */
};

struct csw_plan;

int csw_slicer_init(struct csw_slicer *s, const struct csw_plan *plan,
		    const struct csw_scope *scope, struct csw_aggregation *agg,
		    unsigned nr_cpus); /* 0 or -ENOMEM */
void csw_slicer_free(struct csw_slicer *s);

/* Works off one record. Records of one CPU come in ring order, those of several merged by time. 0,
 * -ENOMEM, or -EINVAL for a CPU that does not exist. */
int csw_slicer_record(struct csw_slicer *s, const struct csw_record *rec);

/* Forgets all sums, here and in the aggregation, of what was read up to now. */
void csw_slicer_reset(struct csw_slicer *s);

/* How long was counted, from the first CPU's start, or the end before the last reset, to the last
 * one's end: so what lies between resets adds up. *cpus: how many CPUs were started. */
uint64_t csw_slicer_duration(const struct csw_slicer *s, uint32_t *cpus);

/* Per counter (like readings): last reading - first, over all CPUs. totals has room for 2 +
 * nr_counters. */
void csw_slicer_totals(const struct csw_slicer *s, uint64_t *totals);

/* Per counter: how long it ran, over all CPUs; by the readings, like the totals. Only where
 * counters take turns (csw_plan.scaled). running_ns has room for nr_counters. */
void csw_slicer_running(const struct csw_slicer *s, uint64_t *running_ns);

/* Sums up all CPUs' completeness. */
void csw_slicer_completeness(const struct csw_slicer *s, struct csw_completeness *out);

#endif
