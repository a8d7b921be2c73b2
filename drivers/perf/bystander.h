/*
 * A CPU that is online and not counted (--cpus): only what tells of threads there, that they began,
 * ended or took another name. Without it a thread that was born or named there would be nobody on
 * the CPUs that are counted.
 *
 * Invariant: its records name threads and nothing else; no time and no count comes from here.
 */
#ifndef CSW_DRIVERS_PERF_BYSTANDER_H
#define CSW_DRIVERS_PERF_BYSTANDER_H

#include "drivers/perf/group.h"

struct csw_perf_bystander {
	unsigned cpu;
	int fd;
	struct csw_perf_ring ring;
};

/* Opens it, disabled, with a ring. -ENODEV: it went offline; -EMFILE; -EPERM: more than may be
 * locked. */
int csw_perf_bystander_open(struct csw_perf_bystander *b, unsigned cpu,
			    const struct csw_perf_features *features);
void csw_perf_bystander_close(struct csw_perf_bystander *b);

int csw_perf_bystander_enable(const struct csw_perf_bystander *b);
void csw_perf_bystander_disable(const struct csw_perf_bystander *b);

/* The next record of the snapshot: 1 and *rec; 0: none; -EINVAL: the ring holds none. */
int csw_perf_bystander_next(struct csw_perf_bystander *b, const struct csw_perf_form *form,
			    struct csw_record *rec);

#endif
