/* The real system calls behind drivers/perf; see sys.h. */
#include "drivers/perf/sys.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int sys_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
			  unsigned long flags)
{
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, group_fd,
			  flags | PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static int sys_ioctl(int fd, unsigned long request, unsigned long arg)
{
	return ioctl(fd, request, arg) < 0 ? -errno : 0;
}

static int sys_map(void **out, size_t bytes, int fd)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	*out = at;
	return 0;
}

static void sys_unmap(void *at, size_t bytes)
{
	munmap(at, bytes);
}

static ssize_t sys_read(int fd, void *buf, size_t bytes)
{
	ssize_t got = read(fd, buf, bytes);

	return got < 0 ? -errno : got;
}

static void sys_close(int fd)
{
	close(fd);
}

static uint64_t sys_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

struct csw_perf_sys csw_perf_sys = {
	.event_open = sys_event_open,
	.ioctl = sys_ioctl,
	.map = sys_map,
	.unmap = sys_unmap,
	.read = sys_read,
	.close = sys_close,
	.now_ns = sys_now_ns,
};
