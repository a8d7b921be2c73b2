/*
 * The calling thread's visit to other CPUs: its affinity is put aside for so long.
 */
#ifndef CSW_DRIVERS_PERF_VISIT_H
#define CSW_DRIVERS_PERF_VISIT_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

struct csw_perf_visit {
	cpu_set_t *home, *there;
	size_t bytes;
	unsigned nr_cpus;
};

/* nr_cpus: the highest number of a CPU to visit + 1. 0 or -ENOMEM. */
int csw_perf_visit_begin(struct csw_perf_visit *v, unsigned nr_cpus);

/* Whether the thread is there now; it may not be allowed on that CPU (a cpuset). */
bool csw_perf_visit_cpu(struct csw_perf_visit *v, unsigned cpu);

void csw_perf_visit_end(struct csw_perf_visit *v);

#endif
