/*
 * A made-up kernel and CPU for engine/tryout, in a made-up machine (tree.h). What it answers to an
 * event is the test's.
 *
 * Invariant: what it has opened is closed again, or the teardown fails.
 */
#ifndef CSW_TESTS_TRYOUT_KERNEL_H
#define CSW_TESTS_TRYOUT_KERNEL_H

#include <linux/perf_event.h>
#include <string.h>

#include "engine/tryout.h"
#include "tests/tree.h"

#define TRYOUT_FD 4242

static struct {
	/* 0 or -errno. pid -1: a whole CPU, else a thread of one's own, on any CPU (-1). */
	int (*answer)(const struct perf_event_attr *attr, pid_t pid, int cpu);
	struct csw_cpu cpu;
	int opened, closed;
} tryout;

static inline int tryout_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group,
			      unsigned long flags)
{
	int ret;

	/* a whole CPU, or what every user may ask for */
	if (pid)
		assert_int_equal(pid, -1);
	else
		assert_true(cpu == -1 && attr->exclude_kernel && attr->exclude_hv);
	assert_int_equal(group, -1);
	assert_int_equal(flags, PERF_FLAG_FD_CLOEXEC);
	assert_int_equal(attr->disabled, 1);
	ret = tryout.answer(attr, pid, cpu);
	tryout.opened += ret == 0;
	return ret ? ret : TRYOUT_FD;
}

static inline int tryout_close(int fd)
{
	assert_int_equal(fd, TRYOUT_FD);
	tryout.closed++;
	return 0;
}

static inline int tryout_cpu(struct csw_cpu *out)
{
	*out = tryout.cpu;
	return 0;
}

/* For cmocka's setup, and what belongs to it. */
static inline int tryout_setup(void **state, int (*answer)(const struct perf_event_attr *attr,
							   pid_t pid, int cpu))
{
	static const struct csw_tryout_ops ops = { tryout_open, tryout_close, tryout_cpu };

	if (tree_setup(state))
		return -1;
	memset(&tryout, 0, sizeof(tryout));
	tryout.answer = answer;
	strcpy(tryout.cpu.hypervisor, "KVM");
	csw_tryout_set_ops_for_tests(&ops);
	return 0;
}

static inline int tryout_teardown(void **state)
{
	csw_tryout_set_ops_for_tests(NULL);
	tree_teardown(state);
	return tryout.opened == tryout.closed ? 0 : -1;
}

#endif
