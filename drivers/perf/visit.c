/* Visiting CPUs; see visit.h. */
#include "drivers/perf/visit.h"

#include <errno.h>

int csw_perf_visit_begin(struct csw_perf_visit *v, unsigned nr_cpus)
{
	/* The kernel wants room for all the CPUs that it could have; a set too small is EINVAL. */
	for (v->nr_cpus = nr_cpus < 1024 ? 1024 : nr_cpus; v->nr_cpus <= 1u << 16;
	     v->nr_cpus *= 2) {
		v->bytes = CPU_ALLOC_SIZE(v->nr_cpus);
		v->home = CPU_ALLOC(v->nr_cpus);
		v->there = CPU_ALLOC(v->nr_cpus);
		if (v->home && v->there && sched_getaffinity(0, v->bytes, v->home) == 0)
			return 0;
		CPU_FREE(v->home);
		CPU_FREE(v->there);
	}
	return -ENOMEM;
}

bool csw_perf_visit_cpu(struct csw_perf_visit *v, unsigned cpu)
{
	CPU_ZERO_S(v->bytes, v->there);
	CPU_SET_S(cpu, v->bytes, v->there);
	return sched_setaffinity(0, v->bytes, v->there) == 0;
}

void csw_perf_visit_end(struct csw_perf_visit *v)
{
	sched_setaffinity(0, v->bytes, v->home);
	CPU_FREE(v->home);
	CPU_FREE(v->there);
}
