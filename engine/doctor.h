/* How the doctor touches the machine: as a table, so that a test can give it another one. */
#ifndef CSW_ENGINE_DOCTOR_H
#define CSW_ENGINE_DOCTOR_H

#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "engine/driver.h"

struct perf_event_attr;

/* The check that is the verdict over all others: MISSING means that nothing can be counted. */
#define CSW_DOCTOR_VERDICT "counting"

/* What files say comes through engine/sysfs, the CPU and its PMU through engine/tryout: those have
 * their own ways for tests. */
struct csw_doctor_ops {
	const struct csw_driver_ops *driver; /* counts switches as a session will */
	int (*event_open)(struct perf_event_attr *attr, pid_t pid, int cpu, int group,
			  unsigned long flags); /* fd or -errno */
	ssize_t (*read)(int fd, void *buf, size_t bytes);
	int (*close)(int fd);
	int (*nr_files)(struct rlimit *out); /* 0 or -errno */
	uint64_t (*pid_namespace)(void);     /* its inode, 0: not known */
	/* Sleeps `times` times for a millisecond on this CPU; 0, or -errno where it may not run. */
	int (*sleep_on)(unsigned cpu, unsigned times);
};

/* NULL: the real machine again. For tests only, not thread-safe. */
void csw_doctor_set_ops_for_tests(const struct csw_doctor_ops *ops);

#endif
