/* What sysfs, procfs and tracefs say: lists of CPUs, PMUs with their formats and named events,
 * tracepoints. */
#ifndef CSW_ENGINE_SYSFS_H
#define CSW_ENGINE_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "csw/csw.h"
#include "engine/event.h"

/* Puts root before every path that this module opens; "" is the real machine. For tests only, not
 * thread-safe. */
void csw_sysfs_set_root_for_tests(const char *root);

/* The file named by the format into text, without white space at its end. Bytes in text, or -errno:
 * -EFBIG when it holds more than fits (text then has what fits), -EINVAL when there is a NUL before
 * its end. */
int csw_sysfs_read(char *text, size_t bytes, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The file named by the format, for reading: the caller's to close; or -errno. */
int csw_sysfs_open(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "0-3,8,10-11" into cpus[max], ascending. How many, -EINVAL (malformed or not ascending), -E2BIG
 * (more than max). */
int csw_sysfs_cpulist(const char *text, unsigned *cpus, unsigned max);

/* The online CPUs, ascending: how many (> 0) and *out, the caller's to free(); or -errno and *out =
 * NULL. -EOPNOTSUPP: no /sys. */
int csw_sysfs_online(unsigned **out, struct csw_error *err);

/* The id of a tracepoint. -EACCES: tracefs is not readable; -EOPNOTSUPP: it is not mounted;
 * -ENOENT: no such tracepoint, with the nearest of its subsystem, and *subsys_known true; or no
 * such subsystem, with the nearest. */
int csw_sysfs_tracepoint(const char *subsys, const char *event, uint64_t *id, bool *subsys_known,
			 struct csw_error *err);

/* "pmu/terms/" (length bytes of it) into out->type, config*, became and flags. -ENOENT: no such PMU
 * or term; -EINVAL: malformed; -EOPNOTSUPP: a PMU that counts for a whole package, or does not
 * count at all; or no /sys. */
int csw_sysfs_event(const char *text, size_t length, struct csw_event *out, struct csw_error *err);

/* The kernel has registered no PMU of the cores. false also where that cannot be seen. */
bool csw_sysfs_lacks_core_pmu(void);

/* A CPU on which an event of this perf_event_attr.type can be opened: the first of its PMU, else
 * the first online. */
int csw_sysfs_cpu_for(uint32_t type);

/* Is there an online CPU on which no event of this perf_event_attr.type can be opened, as it has
 * another kind of core? Then list: the CPUs on which they can. */
bool csw_sysfs_pmu_is_partial(uint32_t type, char *list, size_t bytes);
#define CSW_SYSFS_LIST_BYTES 256

/* Calls fn with every tracepoint, or with every named event of every PMU that counts at all; a
 * value other than 0 ends that and is returned. -EACCES, -EOPNOTSUPP: tracefs cannot be read, with
 * the reason. */
int csw_sysfs_each_tracepoint(int (*fn)(void *ctx, const char *subsys, const char *event),
			      void *ctx, struct csw_error *err);
int csw_sysfs_each_pmu_event(int (*fn)(void *ctx, const char *pmu, const char *event,
				       const char *terms),
			     void *ctx);

#endif
