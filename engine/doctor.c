/*
 * What counting depends on, one check after the other, by trying.
 *
 * Invariant: whatever a check opens or moves (counters, the thread's affinity) is undone before the
 * next one, and no check is an error: what is wrong is a finding with a remedy.
 */
#include "engine/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/error.h"
#include "engine/percpu.h"
#include "engine/rights.h"
#include "engine/sysfs.h"
#include "engine/tryout.h"

#define RING_KIB_ENOUGH 128 /* what drivers/perf takes as its least by choice */
#define FILES_BESIDE 64     /* open files that are no counters */
#define COUNTERS_USUAL 4
#define PER_CPU_FDS 2       /* the trigger and the switch records */
#define SAMPLES_USUAL 10000 /* switches per second and CPU of a busy machine */
/* Sleeps per CPU: enough to tell a half from a whole, short enough with a thousand CPUs. */
#define SLEEPS_MAX 30u
#define SLEEPS_MIN 5u
#define SLEEPS_ALL 2000u
#define WATCHPOINTS 4
#define SPINS 2000000
#define TEXT_BYTES 1024
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCu /* PROC_PID_INIT_INO, the same since Linux 3.8 */

/* What one CPU's records told. */
struct cpu_tally {
	unsigned cpu;
	uint64_t triggers, samples, idle_samples, lost;
	bool visited;
};

struct doctor {
	int (*fn)(void *ctx, const struct csw_check *check);
	void *ctx;
	int ret; /* what fn ended the list with */
	struct csw_rights rights;
	bool namespaced, has_pmu, can_count;
	unsigned *cpus;
	unsigned nr_cpus;
	struct cpu_tally *tallies;
	struct csw_error tally_err;
};

/* ---- the machine ---- */

static int real_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group,
		     unsigned long flags)
{
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);

	return fd < 0 ? -errno : (int)fd;
}

static int real_nr_files(struct rlimit *out)
{
	return getrlimit(RLIMIT_NOFILE, out) ? -errno : 0;
}

static uint64_t real_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

/* The affinity is put back even when the kernel has more CPUs than any set of fixed size. */
static int real_sleep_on(unsigned cpu, unsigned times)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	size_t bytes = CPU_ALLOC_SIZE(1u << 16);
	cpu_set_t *home = CPU_ALLOC(1u << 16), *there = CPU_ALLOC(1u << 16);
	int ret = home && there ? 0 : -ENOMEM;

	if (!ret && sched_getaffinity(0, bytes, home))
		ret = -errno;
	if (!ret) {
		CPU_ZERO_S(bytes, there);
		CPU_SET_S(cpu, bytes, there);
		if (sched_setaffinity(0, bytes, there))
			ret = -errno;
	}
	for (unsigned i = 0; !ret && i < times; i++)
		nanosleep(&ms, NULL);
	if (!ret)
		sched_setaffinity(0, bytes, home);
	CPU_FREE(home);
	CPU_FREE(there);
	return ret;
}

static const struct csw_doctor_ops real_ops = {
	.driver = &csw_perf_driver,
	.event_open = real_open,
	.read = read,
	.close = close,
	.nr_files = real_nr_files,
	.pid_namespace = real_pid_namespace,
	.sleep_on = real_sleep_on,
};
static const struct csw_doctor_ops *ops = &real_ops;

void csw_doctor_set_ops_for_tests(const struct csw_doctor_ops *test_ops)
{
	ops = test_ops ? test_ops : &real_ops;
}

/* ---- saying it ---- */

/* A finding; remedy NULL where nothing is wrong. */
__attribute__((format(printf, 5, 6))) static void tell(struct doctor *d, const char *name,
						       uint32_t state, const char *remedy,
						       const char *format, ...)
{
	struct csw_check check = { .name = name, .remedy = remedy, .state = state };
	char finding[TEXT_BYTES];
	va_list args;

	if (d->ret)
		return;
	va_start(args, format);
	vsnprintf(finding, sizeof(finding), format, args);
	va_end(args);
	check.finding = finding;
	d->ret = d->fn(d->ctx, &check);
}

/* "finding; remedy" of the library's own error lines, cut at the first "; ". */
static void tell_error(struct doctor *d, const char *name, uint32_t state,
		       const struct csw_error *err, const char *remedy)
{
	const char *cut = strstr(err->text, "; ");

	tell(d, name, state, cut ? cut + 2 : remedy, "%.*s",
	     cut ? (int)(cut - err->text) : (int)strlen(err->text), err->text);
}

/* A number that a file under /proc/sys holds; 0, or -errno. */
static int read_number(const char *path, long *out)
{
	char text[64], *end;
	int ret = csw_sysfs_read(text, sizeof(text), "%s", path);

	if (ret < 0)
		return ret;
	*out = strtol(text, &end, 10);
	return end == text || *end ? -EINVAL : 0;
}

/* ---- permissions ---- */

static void check_open(struct doctor *d)
{
	static const char name[] = "perf_event_open";
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.disabled = 1,
		.exclude_kernel = 1, /* allowed to all at perf_event_paranoid 2 */
		.exclude_hv = 1,
	};
	int fd = ops->event_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0) {
		ops->close(fd);
		tell(d, name, CSW_STATE_OK, NULL, "works");
	} else if (fd == -ENOSYS) {
		tell(d, name, CSW_STATE_MISSING,
		     "use a kernel with CONFIG_PERF_EVENTS=y, or leave the sandbox",
		     "the kernel does not have the call, or a sandbox hides it");
	} else if (fd == -EACCES || fd == -EPERM) {
		tell(d, name, CSW_STATE_MISSING,
		     "run as root or with CAP_PERFMON; in a container allow perf_event_open in its "
		     "seccomp profile and add the capability",
		     "not permitted even for the program itself: %s", strerror(-fd));
	} else {
		tell(d, name, CSW_STATE_MISSING, "look into the kernel's log", "fails: %s",
		     strerror(-fd));
	}
}

static void check_paranoid(struct doctor *d)
{
	static const char name[] = "perf_event_paranoid";
	long level;

	if (read_number("/proc/sys/kernel/perf_event_paranoid", &level))
		tell(d, name, CSW_STATE_MISSING,
		     "mount /proc, or use a kernel with CONFIG_PERF_EVENTS=y",
		     "kernel.perf_event_paranoid cannot be read");
	else if (csw_rights_has_perfmon(&d->rights))
		tell(d, name, CSW_STATE_OK, NULL,
		     "%ld: of no matter, as CAP_PERFMON or CAP_SYS_ADMIN is there", level);
	else if (level >= 1)
		tell(d, name, CSW_STATE_MISSING,
		     "run as root, or give the program CAP_PERFMON (setcap cap_perfmon+ep FILE), "
		     "or as root: sysctl kernel.perf_event_paranoid=0",
		     "%ld: whole CPUs only with CAP_PERFMON, which is not there%s", level,
		     level >= 2 ? "; and the trigger switch, which happens in the kernel, would "
				  "give no sample at all"
				: "");
	else
		tell(d, name, CSW_STATE_OK, NULL, "%ld: whole CPUs for everybody", level);
}

static void check_caps(struct doctor *d)
{
	static const char name[] = "capabilities";
	static const struct {
		unsigned bit;
		const char *name;
	} caps[] = {
		{ CSW_CAP_PERFMON, "CAP_PERFMON" },
		{ CSW_CAP_SYS_ADMIN, "CAP_SYS_ADMIN" },
		{ CSW_CAP_BPF, "CAP_BPF" },
		{ CSW_CAP_IPC_LOCK, "CAP_IPC_LOCK" },
	};
	char there[128] = "", absent[128] = "";
	bool ok;

	if (!d->rights.known) {
		tell(d, name, CSW_STATE_LIMITED, "mount /proc", "/proc/self/status has no CapEff");
		return;
	}
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		char *list = csw_rights_has(&d->rights, caps[i].bit) ? there : absent;
		size_t used = strlen(list);

		snprintf(list + used, 128 - used, " %s", caps[i].name);
	}
	ok = csw_rights_has_perfmon(&d->rights) && csw_rights_has(&d->rights, CSW_CAP_IPC_LOCK);
	tell(d, name, ok ? CSW_STATE_OK : CSW_STATE_LIMITED,
	     ok ? NULL : "run as root, or: setcap cap_perfmon,cap_bpf,cap_ipc_lock+ep FILE",
	     "there:%s%s%s", *there ? there : " none", *absent ? "; not there:" : "", absent);
}

/* ---- counting switches, as a session will ---- */

static void drop_task(void *ctx, const struct csw_record *rec)
{
	(void)ctx;
	(void)rec;
}

static struct cpu_tally *find_tally(struct doctor *d, unsigned cpu)
{
	for (unsigned i = 0; i < d->nr_cpus; i++)
		if (d->tallies[i].cpu == cpu)
			return &d->tallies[i];
	return NULL;
}

static void tally_record(struct doctor *d, const struct csw_record *rec)
{
	struct cpu_tally *t = find_tally(d, rec->cpu);

	if (!t)
		return;
	if (rec->type == CSW_RECORD_SAMPLE) {
		t->samples++;
		t->idle_samples += rec->pid == 0 && rec->tid == 0;
	} else if (rec->type == CSW_RECORD_STOP) {
		t->triggers = rec->nr_values ? rec->values[0] : 0;
		t->lost = rec->lost == CSW_LOST_UNKNOWN ? 0 : rec->lost;
	}
}

static int drain(struct doctor *d, struct csw_driver *drv)
{
	struct csw_record rec;
	int ret = 0;

	ops->driver->snapshot(drv);
	for (unsigned ring = 0; ret >= 0 && ring < ops->driver->nr_rings(drv); ring++)
		while ((ret = ops->driver->next(drv, ring, &rec)) > 0)
			tally_record(d, &rec);
	return ret < 0 ? csw_error_set(&d->tally_err, ret, "a ring holds damage: %s",
				       strerror(-ret))
		       : 0;
}

static unsigned sleeps_per_cpu(unsigned nr_cpus)
{
	unsigned nr = SLEEPS_ALL / nr_cpus;

	return nr > SLEEPS_MAX ? SLEEPS_MAX : nr < SLEEPS_MIN ? SLEEPS_MIN : nr;
}

static int count_switches(struct doctor *d, struct csw_driver *drv)
{
	const struct csw_sink sink = { .put = drop_task };
	int ret = ops->driver->start(drv, &sink, &d->tally_err), stopped;

	for (unsigned i = 0; !ret && i < d->nr_cpus; i++) {
		d->tallies[i].visited =
			!ops->sleep_on(d->tallies[i].cpu, sleeps_per_cpu(d->nr_cpus));
		ret = drain(d, drv);
	}
	if (ret)
		return ret;
	stopped = ops->driver->stop(drv, &d->tally_err);
	return stopped ? stopped : drain(d, drv);
}

static void tally(struct doctor *d)
{
	struct csw_plan plan = { .nr_counters = 1 };
	struct csw_driver *drv = NULL;
	int ret;

	d->tallies = calloc(d->nr_cpus ? d->nr_cpus : 1, sizeof(*d->tallies));
	if (!d->tallies) {
		csw_error_set(&d->tally_err, -ENOMEM, "out of memory");
		return;
	}
	for (unsigned i = 0; i < d->nr_cpus; i++)
		d->tallies[i].cpu = d->cpus[i];
	ret = ops->driver->resolve_trigger("switch", 1, &plan.trigger, &d->tally_err);
	if (!ret)
		ret = ops->driver->resolve_counter("task-clock", &plan.counters[0], &d->tally_err);
	if (!ret)
		ret = ops->driver->open(&drv, &plan, &d->tally_err);
	if (!ret)
		ret = count_switches(d, drv);
	ops->driver->close(drv);
	d->tally_err.code = ret;
}

static void check_switches(struct doctor *d)
{
	static const char name[] = "trigger switch";
	uint64_t triggers = 0, samples = 0, lost = 0;

	tally(d);
	if (d->tally_err.code) {
		tell_error(d, name, CSW_STATE_MISSING, &d->tally_err,
			   "run as root, or see the checks above");
		return;
	}
	for (unsigned i = 0; i < d->nr_cpus; i++) {
		triggers += d->tallies[i].triggers;
		samples += d->tallies[i].samples;
		lost += d->tallies[i].lost;
	}
	d->can_count = samples > 0;
	if (samples)
		tell(d, name, CSW_STATE_OK, NULL,
		     "%" PRIu64 " switches on %u CPUs gave %" PRIu64 " samples%s", triggers,
		     d->nr_cpus, samples,
		     lost ? ", and some for which the rings were too small" : "");
	else
		tell(d, name, CSW_STATE_MISSING,
		     "run as root or with CAP_PERFMON: without leave to look into the kernel its "
		     "switches give no samples and no error",
		     "%" PRIu64 " switches were counted, and none gave a sample", triggers);
}

/* More than a tenth of a CPU's switches without a record: chance does not do that. */
static bool leaves_gaps(const struct cpu_tally *t)
{
	uint64_t told = t->samples + t->lost;

	return t->visited && t->triggers > told && (t->triggers - told) * 10 > t->triggers;
}

static void check_idle_records(struct doctor *d)
{
	static const char name[] = "idle task's records";
	char list[TEXT_BYTES / 2] = "";
	bool never_idle = true;
	unsigned nr = 0;

	if (!d->can_count)
		return; /* said already */
	for (unsigned i = 0; i < d->nr_cpus; i++) {
		const struct cpu_tally *t = &d->tallies[i];
		size_t used = strlen(list);

		if (!leaves_gaps(t))
			continue;
		nr++;
		never_idle = never_idle && !t->idle_samples;
		if (used + 64 < sizeof(list))
			snprintf(list + used, sizeof(list) - used,
				 "%s CPU %u (%" PRIu64 " of %" PRIu64 ")", used ? "," : "", t->cpu,
				 t->samples, t->triggers);
	}
	if (!nr)
		tell(d, name, CSW_STATE_OK, NULL, "no CPU leaves out records");
	else
		tell(d, name, CSW_STATE_LIMITED,
		     "count events that cannot happen in idle (page-faults, system calls, :u) and "
		     "look at `unseen` and `exact_share` of the report; on-CPU time is right all "
		     "the same, as the switch records of the other threads bound it",
		     "fewer samples than switches:%s%s; what other events count while "
		     "such a CPU idles goes to [mixed]",
		     list,
		     never_idle && !d->namespaced ? "; the idle task there leaves no record at all"
						  : "");
}

/* ---- limits ---- */

static void check_tracepoints(struct doctor *d)
{
	static const char name[] = "tracepoints";
	struct csw_error err;
	uint64_t id;
	bool known;

	if (csw_sysfs_tracepoint("sched", "sched_switch", &id, &known, &err))
		tell_error(d, name, CSW_STATE_MISSING, &err,
			   "use a kernel with CONFIG_FTRACE and CONFIG_EVENT_TRACING");
	else
		tell(d, name, CSW_STATE_OK, NULL,
		     "tracefs is mounted and readable (sched:sched_switch is %" PRIu64
		     "); to count them takes what all events take",
		     id);
}

static void check_mlock(struct doctor *d)
{
	static const char name[] = "perf_event_mlock_kb";
	long kib, page_kib = sysconf(_SC_PAGESIZE) / 1024, ring = 0;

	if (read_number("/proc/sys/kernel/perf_event_mlock_kb", &kib)) {
		tell(d, name, CSW_STATE_LIMITED, "mount /proc",
		     "kernel.perf_event_mlock_kb cannot be read");
		return;
	}
	/* One page of the allowance is the ring's head, and the ring is a power of two. */
	for (long size = page_kib; size > 0 && size <= kib - page_kib; size *= 2)
		ring = size;
	if (csw_rights_has(&d->rights, CSW_CAP_IPC_LOCK))
		tell(d, name, CSW_STATE_OK, NULL,
		     "%ld, of no matter as CAP_IPC_LOCK is there (without it: rings of %ld KiB per "
		     "CPU)",
		     kib, ring);
	else
		tell(d, name, ring >= RING_KIB_ENOUGH ? CSW_STATE_OK : CSW_STATE_LIMITED,
		     ring >= RING_KIB_ENOUGH ? NULL
					     : "as root: sysctl kernel.perf_event_mlock_kb=516, or "
					       "give the program CAP_IPC_LOCK",
		     "%ld: rings of %ld KiB per CPU, shared with this user's other profilers", kib,
		     ring);
}

static void check_files(struct doctor *d)
{
	static const char name[] = "open files";
	struct rlimit limit;
	uint64_t fits;
	int ret = ops->nr_files(&limit);

	if (ret || !d->nr_cpus) {
		tell(d, name, CSW_STATE_LIMITED, "mount /proc and /sys",
		     "the limit or the number of CPUs is not known");
		return;
	}
	fits = limit.rlim_cur > FILES_BESIDE ? (limit.rlim_cur - FILES_BESIDE) / d->nr_cpus : 0;
	fits = fits > PER_CPU_FDS ? fits - PER_CPU_FDS : 0;
	if (fits >= COUNTERS_USUAL)
		tell(d, name, CSW_STATE_OK, NULL, "%ju: enough for %ju counters on %u CPUs%s",
		     (uintmax_t)limit.rlim_cur,
		     (uintmax_t)(fits < CSW_COUNTERS_MAX ? fits : CSW_COUNTERS_MAX), d->nr_cpus,
		     fits < CSW_COUNTERS_MAX ? "" : ", the most that a session takes");
	else
		tell(d, name, fits ? CSW_STATE_LIMITED : CSW_STATE_MISSING,
		     limit.rlim_max > limit.rlim_cur
			     ? "ulimit -n hard (each CPU takes one per counter and two more)"
			     : "raise the hard limit (LimitNOFILE= of systemd, limits.conf): each "
			       "CPU takes one per counter and two more",
		     "%ju: enough for %ju counters on %u CPUs", (uintmax_t)limit.rlim_cur,
		     (uintmax_t)fits, d->nr_cpus);
}

static void check_rate(struct doctor *d)
{
	static const char name[] = "perf_event_max_sample_rate";
	long rate, percent;

	if (read_number("/proc/sys/kernel/perf_event_max_sample_rate", &rate) ||
	    read_number("/proc/sys/kernel/perf_cpu_time_max_percent", &percent)) {
		tell(d, name, CSW_STATE_LIMITED, "mount /proc",
		     "kernel.perf_event_max_sample_rate cannot be read");
		return;
	}
	/* At 0 and 100 the kernel does not lower the rate by itself when its handlers are slow. */
	tell(d, name, rate >= SAMPLES_USUAL ? CSW_STATE_OK : CSW_STATE_LIMITED,
	     rate >= SAMPLES_USUAL ? NULL
				   : "as root: sysctl kernel.perf_event_max_sample_rate=100000 "
				     "kernel.perf_cpu_time_max_percent=0",
	     "%ld samples per second and CPU before the kernel throttles%s", rate,
	     percent == 0 || percent == 100
		     ? ""
		     : ", and it may lower that by itself (perf_cpu_time_max_percent)");
}

/* ---- hardware ---- */

/* Reads a counter of this thread before and after some work; 1: it advances, 0: it does not. */
static int try_cycles(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = ops->event_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC), ret = 0;
	uint64_t before = 0, after = 0;

	if (fd < 0)
		return fd;
	if (ops->read(fd, &before, sizeof(before)) != sizeof(before))
		ret = -EIO;
	for (volatile unsigned i = 0; !ret && i < SPINS; i++)
		;
	if (!ret && ops->read(fd, &after, sizeof(after)) != sizeof(after))
		ret = -EIO;
	ops->close(fd);
	return ret ? ret : after > before;
}

static void check_pmu(struct doctor *d)
{
	static const char name[] = "hardware PMU";
	char why[256];
	int ret = try_cycles();

	/* The counter that was just tried is a second witness: of this thread, with its own error.
	 */
	d->has_pmu = csw_tryout_pmu() && ret != -ENOENT && ret != -EOPNOTSUPP && ret != -ENODEV;
	if (!d->has_pmu) {
		tell(d, name, CSW_STATE_MISSING,
		     "on the host let the virtual machine have a PMU, or count on bare metal; "
		     "here: "
		     "software events, tracepoints, --driver=sim",
		     "none: %s", csw_tryout_no_pmu(why, sizeof(why)));
		return;
	}
	if (ret > 0)
		tell(d, name, CSW_STATE_OK, NULL, "there, and its cycles advance");
	else if (!ret)
		tell(d, name, CSW_STATE_MISSING,
		     "trust no hardware event here; on a virtual machine: the host's PMU is in use "
		     "or not passed on",
		     "cycles can be opened, but they stand still");
	else
		tell(d, name, CSW_STATE_LIMITED,
		     "see permissions above, and end other profilers that hold the counters",
		     "there, but cycles cannot be counted now: %s", strerror(-ret));
}

static void check_watchdog(struct doctor *d)
{
	static const char name[] = "NMI watchdog";
	long on;

	if (read_number("/proc/sys/kernel/nmi_watchdog", &on))
		tell(d, name, CSW_STATE_OK, NULL, "this kernel has none");
	else if (on && d->has_pmu)
		tell(d, name, CSW_STATE_LIMITED, "as root: sysctl kernel.nmi_watchdog=0",
		     "on: it holds one hardware counter of every CPU");
	else
		tell(d, name, CSW_STATE_OK, NULL,
		     on ? "on, but it finds no counter to hold" : "off");
}

static void check_hybrid(struct doctor *d)
{
	static const char name[] = "kinds of cores";
	char core[256], atom[256];
	bool has_core = csw_sysfs_read(core, sizeof(core),
				       "/sys/bus/event_source/devices/cpu_core/cpus") > 0;
	bool has_atom = csw_sysfs_read(atom, sizeof(atom),
				       "/sys/bus/event_source/devices/cpu_atom/cpus") > 0;

	if (has_core && has_atom)
		tell(d, name, CSW_STATE_LIMITED,
		     "measure one kind at a time: -C with its CPUs, and events by its own PMU "
		     "(cpu_core/.../ or cpu_atom/.../)",
		     "two: cpu_core on CPUs %s, cpu_atom on %s; no group of hardware events spans "
		     "both",
		     core, atom);
	else
		tell(d, name, CSW_STATE_OK, NULL, "one");
}

static void check_virtual(struct doctor *d)
{
	static const char name[] = "virtual machine";
	struct csw_cpu cpu;

	csw_tryout_cpu(&cpu);
	if (cpu.hypervisor[0])
		tell(d, name, CSW_STATE_LIMITED,
		     "compare times only while the steal column of /proc/stat stands still",
		     "yes (%s): time that the host takes away counts as on-CPU time, and debug "
		     "exceptions are dear",
		     cpu.hypervisor);
	else
		tell(d, name, CSW_STATE_OK, NULL, "no, or the hypervisor hides");
}

/* Writes on a variable of our own, as many watchpoints as the CPU has; how many, or -errno of the
 * first. */
static int try_watchpoints(int *last)
{
	static uint64_t watched[WATCHPOINTS];
	int fds[WATCHPOINTS], nr = 0, ret = 0;

	while (nr < WATCHPOINTS) {
		struct perf_event_attr attr = {
			.size = sizeof(attr),
			.type = PERF_TYPE_BREAKPOINT,
			.bp_type = 2, /* HW_BREAKPOINT_W */
			.bp_addr = (uintptr_t)&watched[nr],
			.bp_len = sizeof(watched[nr]),
			.sample_period = 1,
			.disabled = 1,
			.exclude_kernel = 1,
			.exclude_hv = 1,
		};

		ret = ops->event_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
		if (ret < 0)
			break;
		fds[nr++] = ret;
	}
	*last = ret < 0 ? ret : 0;
	for (int i = 0; i < nr; i++)
		ops->close(fds[i]);
	return nr;
}

static void check_watchpoints(struct doctor *d)
{
	static const char name[] = "debug registers";
	int last, nr = try_watchpoints(&last);

	if (nr == WATCHPOINTS)
		tell(d, name, CSW_STATE_OK, NULL, "%d free", nr);
	else if (nr)
		tell(d, name, CSW_STATE_LIMITED,
		     "end debuggers and profilers that watch addresses, if these are too few",
		     "%d free: %s", nr, strerror(-last));
	else
		tell(d, name, CSW_STATE_MISSING,
		     last == -ENOSPC ? "end debuggers and profilers that watch addresses"
				     : "triggers at an address (mem_store, mem_load) need them; "
				       "use --trigger=switch",
		     "none free: %s", strerror(-last));
}

/* ---- surroundings ---- */

static void check_namespace(struct doctor *d)
{
	static const char name[] = "PID namespace";
	uint64_t inode = ops->pid_namespace();

	d->namespaced = inode && inode != INITIAL_PID_NAMESPACE;
	if (!inode)
		tell(d, name, CSW_STATE_LIMITED, "mount /proc", "not known");
	else if (d->namespaced)
		tell(d, name, CSW_STATE_LIMITED,
		     "run on the host, or in its PID namespace (docker run --pid=host)",
		     "a separate one: threads outside have no number here and look like idle, so "
		     "that both are in the row [unknown] outside");
	else
		tell(d, name, CSW_STATE_OK, NULL, "the machine's own: every thread is visible");
}

/* By looking at a process that is everywhere and, but for root, somebody else's. */
static void check_names(struct doctor *d)
{
	static const char name[] = "names of threads";
	char stat[1024];
	int ret = csw_sysfs_read(stat, sizeof(stat), "/proc/1/stat");

	if (ret >= 0)
		tell(d, name, CSW_STATE_OK, NULL, "those of all users can be read");
	else
		tell(d, name, CSW_STATE_LIMITED,
		     "as root: mount -o remount,hidepid=0 /proc, or gid= with a group of this user",
		     "/proc hides other users' processes (hidepid): those that run already are "
		     "\"(not known)\" and without a cgroup until they take a name");
}

static void check_cgroup(struct doctor *d)
{
	static const char name[] = "cgroup v2";
	enum { MOUNTS_BYTES = 256 << 10 };
	char *text = malloc(MOUNTS_BYTES), *rest = NULL;
	char where[256] = "";

	if (text)
		csw_sysfs_read(text, MOUNTS_BYTES, "/proc/self/mounts");
	for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line && !where[0];
	     line = strtok_r(NULL, "\n", &rest)) {
		char type[32];

		if (sscanf(line, "%*s %255s %31s", where, type) != 2 || strcmp(type, "cgroup2"))
			where[0] = '\0';
	}
	free(text);
	if (where[0])
		tell(d, name, CSW_STATE_OK, NULL, "mounted on %s", where);
	else
		tell(d, name, CSW_STATE_MISSING,
		     "as root: mount -t cgroup2 none /sys/fs/cgroup (or another empty folder)",
		     "not mounted: no scope and no view by cgroup");
}

static void check_bpf(struct doctor *d)
{
	static const char name[] = "BPF";
	struct csw_error err;
	char byte[2];
	/* The file is large: its beginning is enough to know that it can be read. */
	bool btf = csw_sysfs_read(byte, sizeof(byte), "/sys/kernel/btf/vmlinux") != -ENOENT;
	long closed = 0;

	if (read_number("/proc/sys/kernel/unprivileged_bpf_disabled", &closed))
		closed = 2; /* no such switch: say what is the rule today */
	if (!btf)
		tell(d, name, CSW_STATE_MISSING,
		     "use a kernel with CONFIG_DEBUG_INFO_BTF=y to count in the kernel",
		     "there is no /sys/kernel/btf/vmlinux");
	else if (!csw_rights_has_bpf(&d->rights))
		tell(d, name, CSW_STATE_LIMITED,
		     "run as root, or: setcap cap_perfmon,cap_bpf+ep FILE",
		     "BTF is there, CAP_BPF with CAP_PERFMON is not (unprivileged_bpf_disabled "
		     "%ld)",
		     closed);
	else if (csw_percpu_allowed(&err) < 0)
		tell_error(d, name, CSW_STATE_LIMITED, &err, NULL);
	else
		tell(d, name, CSW_STATE_OK, NULL,
		     "BTF and the rights are there (unprivileged_bpf_disabled %ld)", closed);
}

static void check_verdict(struct doctor *d)
{
	if (d->can_count)
		tell(d, CSW_DOCTOR_VERDICT, CSW_STATE_OK, NULL,
		     "events can be counted per thread on this machine");
	else
		tell(d, CSW_DOCTOR_VERDICT, CSW_STATE_MISSING,
		     "begin with the first remedy above; --driver=sim works everywhere",
		     "nothing can be counted on this machine");
}

int csw_doctor(int (*fn)(void *ctx, const struct csw_check *check), void *ctx,
	       struct csw_error *err)
{
	/* In the order in which they would stop a run; later ones use what earlier ones found. */
	static void (*const checks[])(struct doctor * d) = {
		check_open,     check_paranoid,     check_caps,        check_namespace,
		check_switches, check_idle_records, check_tracepoints, check_mlock,
		check_files,    check_rate,         check_pmu,         check_watchdog,
		check_hybrid,   check_virtual,      check_watchpoints, check_cgroup,
		check_names,    check_bpf,          check_verdict,
	};
	struct doctor d = { .fn = fn, .ctx = ctx };
	struct csw_error cpus_err;
	int nr = csw_sysfs_online(&d.cpus, &cpus_err);

	if (nr < 0)
		return csw_error_set(err, nr, "%s", cpus_err.text);
	d.nr_cpus = (unsigned)nr;
	csw_rights_read(&d.rights);
	for (size_t i = 0; !d.ret && i < sizeof(checks) / sizeof(checks[0]); i++)
		checks[i](&d);
	free(d.tallies);
	free(d.cpus);
	return d.ret;
}
