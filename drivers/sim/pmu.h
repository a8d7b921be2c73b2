/*
 * The performance monitoring unit of one simulated CPU: counters of a limited width, and a trigger
 * that overflows.
 *
 * Hardware counters are 48 bits wide and wrap. Whoever reads them extends them to 64 bits, as Linux
 * does: it remembers the raw value of the last read and adds the difference, computed in the
 * counter's own width. Or (reset) an overflow sets all of them back, and what they held until then
 * is added up: two ways to the same readings.
 *
 * Invariant: what csw_sim_pmu_read() returns never goes back, and grows by exactly what
 * csw_sim_pmu_count() was given while the counter was on.
 */
#ifndef CSW_DRIVERS_SIM_PMU_H
#define CSW_DRIVERS_SIM_PMU_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/record.h"

/* What can happen in a simulated CPU: first what running causes, at a rate of each thread's own;
 * then a clock, which advances by a nanosecond per nanosecond, also in idle; then what context
 * switches cause, by the machine's model. */
enum csw_sim_event {
	CSW_SIM_CYCLES,
	CSW_SIM_INSTRUCTIONS,
	CSW_SIM_BRANCHES,
	CSW_SIM_BRANCH_MISSES,
	CSW_SIM_LLC_REFERENCES,
	CSW_SIM_LLC_MISSES,
	CSW_SIM_PAGE_FAULTS,
	CSW_SIM_TASK_CLOCK,
	CSW_SIM_SWITCHES, /* the kernel's own count, before the switch */
	CSW_SIM_SEG_LOADS,
	CSW_SIM_DESC_LOADS,
	CSW_SIM_LDT_LOADS,
	CSW_SIM_TLB_FLUSHES,
	CSW_SIM_TID_WRITES,    /* to the register with the thread's number */
	CSW_SIM_PID_WRITES,    /* ... with the process's address space */
	CSW_SIM_TASK_STORES,   /* to the variable that says which thread runs */
	CSW_SIM_TASK_ACCESSES, /* ... as seen by a watchpoint on loads */
	CSW_SIM_EVENTS,
};

#define CSW_SIM_RATED CSW_SIM_TASK_CLOCK /* events with a rate */

/* A pseudo random number generator (splitmix64): the state is a counter, the output its bits well
 * stirred. Every part that rolls dice has its own, so that a fault option does not change what the
 * machine does. */
struct csw_sim_random {
	uint64_t state;
};

static inline uint64_t csw_sim_random_next(struct csw_sim_random *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* 0 ... n - 1, n < 2^32; the bias of the multiplication, below n / 2^32, is of no interest here. */
static inline uint32_t csw_sim_random_below(struct csw_sim_random *r, uint32_t n)
{
	return (csw_sim_random_next(r) >> 32) * n >> 32;
}

struct csw_sim_counter {
	uint32_t event; /* enum csw_sim_event */
	uint32_t bits;  /* the width */
	uint64_t raw;   /* what the register holds */
	uint64_t seen;  /* ... and held when it was last read */
	uint64_t value; /* extended to 64 bits, as of the last read, or of the last reset */
	uint64_t wraps;
};

/* When in a context switch the trigger's overflow reads the counters. */
enum csw_sim_moment {
	CSW_SIM_BEFORE, /* before the switch begins */
	CSW_SIM_INSIDE, /* between the outgoing and the incoming thread */
	CSW_SIM_LATE,   /* skid: the interrupt arrives when the switch is already over */
};

struct csw_sim_pmu_opts {
	uint64_t sav;           /* sample-after value, 1 ... CSW_SIM_SAV_MAX */
	uint32_t trigger;       /* enum csw_sim_event */
	bool before;            /* it is the software event that fires before the switch */
	bool reset;             /* an overflow resets all counters to 0 */
	uint32_t skid_permille; /* how often an overflow inside a switch arrives late */
	uint32_t nr_counters;
	uint32_t events[CSW_COUNTERS_MAX]; /* enum csw_sim_event of each counter */
};

/* The trigger is loaded with -sav; a sign bit must stay. */
#define CSW_SIM_SAV_MAX ((1ULL << 47) - 1)

struct csw_sim_pmu {
	uint64_t sav;
	bool before, reset;
	bool throttled;
	uint32_t skid_permille;
	uint32_t nr_counters;
	uint32_t on;        /* a bit for each counter that counts; the others stand still */
	uint32_t events_on; /* a bit for each enum csw_sim_event that one of these counts */
	struct csw_sim_random random;
	struct csw_sim_counter trigger;
	struct csw_sim_counter counters[CSW_COUNTERS_MAX];
};

/* near_wrap: the hardware counters start just below 2^48, as they may where a BIOS or an earlier
 * user left them. */
void csw_sim_pmu_init(struct csw_sim_pmu *pmu, const struct csw_sim_pmu_opts *opts, uint64_t seed,
		      bool near_wrap);

/* From here on only these counters count, and the trigger begins a new period. At first all do. */
void csw_sim_pmu_turn(struct csw_sim_pmu *pmu, uint32_t on);

/* Events that happened: by[] is indexed by enum csw_sim_event, at most one is the trigger's. True:
 * the trigger overflowed, and was loaded with -sav again; csw_sim_pmu_reset() is due when all that
 * is to be read has been. */
bool csw_sim_pmu_count(struct csw_sim_pmu *pmu, const uint64_t by[CSW_SIM_EVENTS]);

/* Sets the second counters to 0, where that was asked for. */
void csw_sim_pmu_reset(struct csw_sim_pmu *pmu);

/* A trigger of the hardware is stopped while it is throttled; the kernel's own goes on counting,
 * and only its overflows are suppressed. */
static inline bool csw_sim_pmu_trigger_counts(const struct csw_sim_pmu *pmu)
{
	return pmu->before || !pmu->throttled;
}

/* At which moment of the context switch that begins now the trigger would read the counters. */
enum csw_sim_moment csw_sim_pmu_moment(struct csw_sim_pmu *pmu);

/* Reads trigger and counters into values[1 + nr_counters], 64 bits wide. */
void csw_sim_pmu_read(struct csw_sim_pmu *pmu, uint64_t *values);

#endif
