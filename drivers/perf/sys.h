/* The system calls and the clock of the perf driver, as a table: a test can fail the n-th call and
 * move time. */
#ifndef CSW_DRIVERS_PERF_SYS_H
#define CSW_DRIVERS_PERF_SYS_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All as the system's own, but with -errno instead of -1 and errno. */
struct csw_perf_sys {
	int (*event_open)(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
			  unsigned long flags);
	int (*ioctl)(int fd, unsigned long request, unsigned long arg);
	int (*map)(void **out, size_t bytes, int fd);
	void (*unmap)(void *at, size_t bytes);
	ssize_t (*read)(int fd, void *buf, size_t bytes);
	void (*close)(int fd);
	uint64_t (*now_ns)(void); /* the clock of all records: CLOCK_MONOTONIC */
};

extern struct csw_perf_sys csw_perf_sys; /* the real ones, unless a test has put in others */

#endif
