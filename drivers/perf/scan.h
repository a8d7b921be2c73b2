/* The start scan: every thread that is already there, from /proc. */
#ifndef CSW_DRIVERS_PERF_SCAN_H
#define CSW_DRIVERS_PERF_SCAN_H

#include "engine/driver.h"

/* cgroup_mount: where the v2 hierarchy is, to fill in csw_record.cgroup; NULL: leave it 0.
 * One TASK record per thread into sink. proc: "/proc", or a made-up one in tests; self: the PID
 * whose threads are SELF. What vanishes during the scan is left out. 0 or -errno. */
int csw_perf_scan(const char *proc, int32_t self, const char *cgroup_mount,
		  const struct csw_sink *sink, struct csw_error *err);

#endif
