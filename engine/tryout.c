/*
 * The real thing is tried and undone: no conclusions from kernel versions or CPUID.
 *
 * Invariant: every descriptor that is opened here is closed here.
 */
#include "engine/tryout.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/error.h"
#include "engine/sysfs.h"

static int real_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group,
		     unsigned long flags)
{
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);

	return fd < 0 ? -errno : (int)fd;
}

static const struct csw_tryout_ops real_ops = {
	.perf_event_open = real_open,
	.close = close,
	.cpu = csw_cpu_identify,
};
static const struct csw_tryout_ops *ops = &real_ops;

void csw_tryout_set_ops_for_tests(const struct csw_tryout_ops *test_ops)
{
	ops = test_ops ? test_ops : &real_ops;
}

void csw_tryout_cpu(struct csw_cpu *out)
{
	if (ops->cpu(out))
		memset(out, 0, sizeof(*out));
}

static int try_attr(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd = ops->perf_event_open(attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return fd;
	ops->close(fd);
	return 0;
}

/* As csw_event_attr: an attribute that opens nothing yet, and the CPU to open it on. */
static int make_attr(const struct csw_event *event, uint64_t period, struct perf_event_attr *attr,
		     int *cpu, struct csw_error *err)
{
	*attr = (struct perf_event_attr){
		.size = sizeof(*attr),
		.sample_period = period,
		.disabled = 1,
	};
	*cpu = csw_sysfs_cpu_for(event->type);
	return csw_event_attr(event, (unsigned)*cpu, attr, err);
}

/* 0 or -errno. On a whole CPU, as the engine will open it: what needs more rights than a task's own
 * counter shows now. */
static int try_open(const struct csw_event *event, uint64_t period)
{
	struct perf_event_attr attr;
	int cpu, ret = make_attr(event, period, &attr, &cpu, NULL);

	return ret ? ret : try_attr(&attr, -1, cpu);
}

static bool is_missing(int ret)
{
	return ret == -ENOENT || ret == -EOPNOTSUPP || ret == -ENODEV || ret == -ENXIO;
}

static bool is_denied(int ret)
{
	return ret == -EACCES || ret == -EPERM;
}

/* The least that one may ask for: allowed to all at perf_event_paranoid 2. */
static int try_own_cycles(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return try_attr(&attr, 0, -1);
}

/* Cycles are what every PMU can count. */
bool csw_tryout_pmu(void)
{
	static const struct csw_event cycles = { .type = PERF_TYPE_HARDWARE,
						 .config = PERF_COUNT_HW_CPU_CYCLES };
	int ret = try_open(&cycles, 0);

	if (is_denied(ret))
		ret = try_own_cycles();
	if (is_denied(ret))
		return !csw_sysfs_lacks_core_pmu();
	return !is_missing(ret) && ret != -ENOSYS;
}

/* ---- permission ---- */

/* What is missing and what helps, the same for every event: tracepoints that are only counted need
 * no more (perf_trace_event_perm), but to be looked up in tracefs. */
static void describe_denial(char *text, size_t bytes, int ret)
{
	char paranoid[32];

	if (csw_sysfs_read(paranoid, sizeof(paranoid), "/proc/sys/kernel/perf_event_paranoid") <= 0)
		strcpy(paranoid, "not readable");
	snprintf(text, bytes,
		 "counting on whole CPUs is not permitted: kernel.perf_event_paranoid is %s; needs "
		 "CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8), or as root: sysctl "
		 "kernel.perf_event_paranoid=0%s; try sudo, or --driver=sim",
		 paranoid,
		 ret == -EPERM ? "; in a container its seccomp profile may forbid perf_event_open"
			       : "");
}

static int try_permission(void)
{
	static const struct csw_event switches = { .type = PERF_TYPE_SOFTWARE,
						   .config = PERF_COUNT_SW_CONTEXT_SWITCHES };
	int ret = try_open(&switches, 0);

	return is_denied(ret) ? ret : 0;
}

static int refuse_permission(int ret, struct csw_error *err)
{
	char text[CSW_TRYOUT_INSTEAD_BYTES];

	describe_denial(text, sizeof(text), ret);
	return csw_error_set(err, -EACCES, "%s", text);
}

int csw_tryout_permission(struct csw_error *err)
{
	int ret = try_permission();

	return ret ? refuse_permission(ret, err) : 0;
}

const char *csw_tryout_instead(char *text, size_t bytes, const char *instead)
{
	static const char besides[] = "besides, ";
	int ret = try_permission();

	if (!ret)
		return instead;
	snprintf(text, bytes, "%s", besides);
	if (bytes > strlen(besides))
		describe_denial(text + strlen(besides), bytes - strlen(besides), ret);
	return text;
}

/* ---- why not ---- */

const char *csw_tryout_no_pmu(char *text, size_t bytes)
{
	struct csw_cpu cpu;

	csw_tryout_cpu(&cpu);
	if (cpu.hypervisor[0])
		snprintf(text, bytes,
			 "this is a virtual machine (%s) whose hypervisor hands none to it",
			 cpu.hypervisor);
	else
		snprintf(text, bytes,
			 "the kernel has no PMU driver for this CPU (%s%sfamily %d model %d), or "
			 "it was switched off",
			 cpu.brand[0] ? cpu.brand : cpu.vendor,
			 cpu.brand[0] || cpu.vendor[0] ? ", " : "", cpu.family, cpu.model);
	return text;
}

static int refuse_missing(const struct csw_event *event, const char *instead, struct csw_error *err)
{
	char why[256], denial[CSW_TRYOUT_INSTEAD_BYTES];

	instead = csw_tryout_instead(denial, sizeof(denial), instead);
	if (!(event->flags & CSW_EVENT_HARDWARE))
		return csw_error_set(err, -EOPNOTSUPP, "%s: this kernel cannot count it (%s); %s",
				     event->name, event->became, instead);
	if (!csw_tryout_pmu())
		return csw_error_set(err, -EOPNOTSUPP,
				     "%s needs a hardware PMU, and there is none here: %s; %s",
				     event->name, csw_tryout_no_pmu(why, sizeof(why)), instead);
	return csw_error_set(err, -EOPNOTSUPP,
			     "%s: the PMU of this CPU has no such event (%s), says the kernel; use "
			     "an event of this CPU model by "
			     "its libpfm4 name or as raw rNNN",
			     event->name, event->became);
}

static int refuse_invalid(const struct csw_event *event, uint64_t period, struct csw_error *err)
{
	if (period && !try_open(event, 0))
		return csw_error_set(err, -EINVAL,
				     "%s can be counted, but it cannot overflow after %llu "
				     "occurrences, so it cannot be a "
				     "trigger; use --trigger=switch",
				     event->name, (unsigned long long)period);
	if (event->exclude_user || event->exclude_kernel)
		return csw_error_set(err, -EINVAL,
				     "%s: the kernel refuses it (%s); this event may not tell user "
				     "from kernel: leave :u or :k "
				     "away",
				     event->name, event->became);
	return csw_error_set(err, -EINVAL, "%s: the kernel refuses this event code (%s)",
			     event->name, event->became);
}

static int refuse_watch(const struct csw_event *event, int ret, struct csw_error *err)
{
	switch (ret) {
	case -ENOSPC:
		return csw_error_set(err, ret,
				     "%s: all debug registers of a CPU are taken, by a debugger or "
				     "another csw-sample; end it, or use --trigger=switch",
				     event->name);
	case -EINVAL:
		return csw_error_set(err, ret,
				     "%s: the kernel refuses to watch this place (%s); it grants "
				     "none where its own entry code reads",
				     event->name, event->became);
	default:
		return csw_error_set(err, ret, "%s: the kernel cannot watch it (%s): %s",
				     event->name, event->became, strerror(-ret));
	}
}

int csw_tryout_event(const struct csw_event *event, uint64_t period, const char *instead,
		     struct csw_error *err)
{
	struct perf_event_attr attr;
	int cpu, ret = make_attr(event, period, &attr, &cpu, err);

	if (ret)
		return ret; /* the address of a variable cannot be had, and *err says why */
	ret = try_attr(&attr, -1, cpu);
	if (!ret)
		return 0;
	if (period && is_missing(ret) && !try_open(event, 0))
		ret = -EINVAL; /* a PMU without interrupts says EOPNOTSUPP to a period */
	/* Without permission the kernel says no more than that; what is not there would not come
	 * with it. */
	if (is_missing(ret) ||
	    (is_denied(ret) && (event->flags & CSW_EVENT_HARDWARE) && !csw_tryout_pmu()))
		return refuse_missing(event, instead, err);
	if (is_denied(ret) && (event->flags & CSW_EVENT_DEBUG_REGISTER) && !try_permission())
		return csw_error_set(err, -EACCES,
				     "%s: to watch the kernel's memory takes CAP_SYS_ADMIN; try "
				     "sudo, or --trigger=switch",
				     event->name);
	if (is_denied(ret))
		return refuse_permission(ret, err);
	if (ret != -ENOSYS && (event->flags & CSW_EVENT_DEBUG_REGISTER))
		return refuse_watch(event, ret, err);
	if (ret == -EINVAL)
		return refuse_invalid(event, period, err);
	if (ret == -ENOSYS)
		return csw_error_set(err, -EOPNOTSUPP,
				     "%s: this kernel has no perf_event_open (CONFIG_PERF_EVENTS "
				     "is off, or a sandbox hides it)",
				     event->name);
	return csw_error_set(
		err, ret, "%s: the kernel cannot open it: %s%s", event->name, strerror(-ret),
		ret == -EBUSY ? "; another user holds the counter (the NMI watchdog, a profiler)"
			      : "");
}
