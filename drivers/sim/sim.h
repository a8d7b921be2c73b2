/*
 * The simulated machine as a driver (csw_sim_driver, in engine/driver.h), and the truth that only a
 * simulation has.
 *
 * The truth is kept by the machine as it runs, never derived from records: it is what a test holds
 * the engine against.
 */
#ifndef CSW_DRIVERS_SIM_SIM_H
#define CSW_DRIVERS_SIM_SIM_H

#include <stddef.h>
#include <stdint.h>

#include "drivers/sim/models.h"
#include "engine/driver.h"

/* What one thread caused between START and STOP on the CPUs that it ran on. */
struct csw_sim_truth {
	int32_t pid, tid;          /* the last ones: an exec may have changed the TID */
	uint32_t kind;             /* enum csw_kind: THREAD, KERNEL, IDLE, SELF */
	char comm[CSW_COMM_BYTES]; /* the last one */
	uint64_t birth_ns; /* of the FORK record; before the first START for those that were there
			      already */
	uint64_t slices;   /* times it left a CPU: voluntary + preempted */
	uint64_t voluntary, preempted;
	uint64_t oncpu_ns; /* from its predecessor's SWITCH_OUT (or START) to its own (or STOP) */
	uint64_t counts[CSW_COUNTERS_MAX];  /* in the plan's order */
	uint64_t counted[CSW_COUNTERS_MAX]; /* those of them in the turns of a counter of this
					       event; all, where none are taken */
};

struct csw_sim_cpu_truth {
	uint64_t switches;                      /* context switches between START and STOP */
	uint64_t by_kind[CSW_SIM_SWITCH_KINDS]; /* ... from whom to whom */
	uint64_t triggers; /* occurrences that the trigger counted: none while it was stopped */
	uint64_t wraps;    /* times that a counter's register wrapped */
};

/* Number 0 is idle, all CPUs together; then all threads that ever lived, in the order of birth. */
size_t csw_sim_truths(const struct csw_driver *drv);
void csw_sim_truth_get(const struct csw_driver *drv, size_t i, struct csw_sim_truth *out);
void csw_sim_cpu_truth_get(const struct csw_driver *drv, unsigned cpu,
			   struct csw_sim_cpu_truth *out);

#endif
