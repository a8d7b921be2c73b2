/* Asking the kernel whether it can count an event, and saying why not. */
#ifndef CSW_ENGINE_TRYOUT_H
#define CSW_ENGINE_TRYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "csw/csw.h"
#include "engine/cpu.h"
#include "engine/event.h"

struct perf_event_attr;

/* The calls by which this module sees the machine. */
struct csw_tryout_ops {
	int (*perf_event_open)(struct perf_event_attr *attr, pid_t pid, int cpu, int group,
			       unsigned long flags); /* fd or -errno */
	int (*close)(int fd);
	int (*cpu)(struct csw_cpu *out);
};

/* NULL: the real machine again. For tests only, not thread-safe. */
void csw_tryout_set_ops_for_tests(const struct csw_tryout_ops *ops);

/*
 * Opens the event for a whole CPU, as a counter (period 0) or as a trigger, and closes it again. 0;
 * or with the reason and `instead` ("works here: ...") in *err: -EOPNOTSUPP: the kernel or the
 * hardware lacks it; -EACCES: not permitted; -EINVAL: the kernel refuses this code or period;
 * others as they come.
 */
int csw_tryout_event(const struct csw_event *event, uint64_t period, const char *instead,
		     struct csw_error *err);

/* Does the kernel have any hardware counter? Asked in ways that need no rights; true also when all
 * of them are closed to us. */
bool csw_tryout_pmu(void);

/* What to say that works here: `instead`, unless counting on whole CPUs is not permitted at all,
 * which then comes into text. */
const char *csw_tryout_instead(char *text, size_t bytes, const char *instead);
#define CSW_TRYOUT_INSTEAD_BYTES 512

/* 0, or -EACCES and *err: may whole CPUs be counted on, whatever the event? */
int csw_tryout_permission(struct csw_error *err);

/* The CPU as ops tell it; zeroed when they fail. */
void csw_tryout_cpu(struct csw_cpu *out);

/* One line on why there are no hardware counters here: "this is a virtual machine (KVM) whose ...".
 */
const char *csw_tryout_no_pmu(char *text, size_t bytes);

#endif
