/*
 * The doctor on made-up machines: files in a temporary tree, a kernel and a driver that are the
 * functions below; and once on the real machine, which must be left as it was.
 *
 * Invariant: on every machine each check has a finding, and a remedy exactly when something is
 * wrong.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>

#include "engine/catalogue.h"
#include "engine/doctor.h"
#include "engine/error.h"
#include "engine/tryout.h"
#include "tests/tree.h"

#define DESCRIPTOR 4242
#define CPUS 2
#define CAP_PERFMON_BIT (1ull << 38)
#define CAP_BPF_BIT (1ull << 39)
#define CAP_IPC_LOCK_BIT (1ull << 14)
#define ALL_CAPS (CAP_PERFMON_BIT | CAP_BPF_BIT | CAP_IPC_LOCK_BIT)

/* ---- the machine ---- */

static struct {
	int open_self; /* what perf_event_open says of a software event of the thread itself */
	int watchpoints;
	bool has_pmu, advances, cpus_closed;
	uint64_t cycles;
	struct rlimit files;
	uint64_t namespace;
	const char *hypervisor;
	int opened, closed;
	/* the driver */
	unsigned samples[CPUS], idle[CPUS];
	uint64_t triggers[CPUS], lost[CPUS];
	int fail_at, calls; /* the n-th call of the driver fails; 0: none does */
	int drv_opened, drv_closed;
} machine;

static int fake_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group,
			   unsigned long flags)
{
	(void)cpu;
	(void)group;
	assert_int_equal(flags, PERF_FLAG_FD_CLOEXEC);
	if (attr->type == PERF_TYPE_SOFTWARE && machine.open_self)
		return machine.open_self;
	if (pid == -1 && machine.cpus_closed)
		return -EACCES;
	if (attr->type == PERF_TYPE_HARDWARE && !machine.has_pmu)
		return -ENOENT;
	if (attr->type == PERF_TYPE_BREAKPOINT && machine.watchpoints-- <= 0)
		return -ENOSPC;
	machine.opened++;
	return DESCRIPTOR;
}

static ssize_t fake_read(int fd, void *buf, size_t bytes)
{
	assert_int_equal(fd, DESCRIPTOR);
	assert_int_equal(bytes, sizeof(machine.cycles));
	machine.cycles += machine.advances;
	memcpy(buf, &machine.cycles, bytes);
	return (ssize_t)bytes;
}

static int fake_close(int fd)
{
	assert_int_equal(fd, DESCRIPTOR);
	machine.closed++;
	return 0;
}

static int fake_files(struct rlimit *out)
{
	*out = machine.files;
	return 0;
}

static uint64_t fake_namespace(void)
{
	return machine.namespace;
}

static int fake_sleep(unsigned cpu, unsigned times)
{
	assert_true(cpu < CPUS);
	assert_true(times > 0);
	return 0;
}

static int fake_cpu(struct csw_cpu *out)
{
	*out = (struct csw_cpu){ .vendor = "GenuineIntel" };
	snprintf(out->hypervisor, sizeof(out->hypervisor), "%s", machine.hypervisor);
	return 0;
}

/* ---- the driver: a ring per CPU with its samples, then its STOP ---- */

struct csw_driver {
	unsigned at[CPUS];
	bool stopped;
};

static int fail_now(struct csw_error *err)
{
	return ++machine.calls == machine.fail_at
		       ? csw_error_set(err, -EIO, "broken on purpose; mend it")
		       : 0;
}

static int drv_counter(const char *name, struct csw_event *out, struct csw_error *err)
{
	assert_string_equal(name, "task-clock");
	memset(out, 0, sizeof(*out));
	return fail_now(err);
}

static int drv_trigger(const char *name, uint64_t sav, struct csw_trigger *out,
		       struct csw_error *err)
{
	assert_string_equal(name, "switch");
	assert_int_equal(sav, 1);
	memset(out, 0, sizeof(*out));
	return fail_now(err);
}

static int drv_open(struct csw_driver **out, const struct csw_plan *plan, struct csw_error *err)
{
	int ret = fail_now(err);

	assert_int_equal(plan->nr_counters, 1);
	*out = ret ? NULL : calloc(1, sizeof(**out));
	machine.drv_opened += *out != NULL;
	return ret;
}

static unsigned drv_nr_rings(const struct csw_driver *drv)
{
	(void)drv;
	return CPUS;
}

static int drv_start(struct csw_driver *drv, const struct csw_sink *sink, struct csw_error *err)
{
	const struct csw_record task = { .type = CSW_RECORD_TASK, .pid = 1, .tid = 1 };

	(void)drv;
	sink->put(sink->ctx, &task);
	return fail_now(err);
}

static uint64_t drv_snapshot(struct csw_driver *drv)
{
	return drv->stopped ? UINT64_MAX : 1;
}

static int drv_next(struct csw_driver *drv, unsigned ring, struct csw_record *rec)
{
	unsigned at = drv->at[ring];
	int ret = fail_now(NULL);

	if (ret)
		return ret;
	memset(rec, 0, sizeof(*rec));
	rec->cpu = ring;
	if (at < machine.samples[ring]) {
		rec->type = CSW_RECORD_SAMPLE;
		rec->pid = rec->tid = at < machine.idle[ring] ? 0 : 7;
	} else if (drv->stopped && at == machine.samples[ring]) {
		rec->type = CSW_RECORD_STOP;
		rec->nr_values = 2;
		rec->values[0] = machine.triggers[ring];
		rec->lost = machine.lost[ring];
	} else {
		return 0;
	}
	drv->at[ring]++;
	return 1;
}

static int drv_stop(struct csw_driver *drv, struct csw_error *err)
{
	drv->stopped = true;
	return fail_now(err);
}

static void drv_close(struct csw_driver *drv)
{
	machine.drv_closed += drv != NULL;
	free(drv);
}

static const struct csw_driver_ops driver = {
	.name = "fake",
	.resolve_counter = drv_counter,
	.resolve_trigger = drv_trigger,
	.open = drv_open,
	.nr_rings = drv_nr_rings,
	.start = drv_start,
	.snapshot = drv_snapshot,
	.next = drv_next,
	.stop = drv_stop,
	.close = drv_close,
};

static const struct csw_doctor_ops doctor_ops = {
	.driver = &driver,
	.event_open = fake_event_open,
	.read = fake_read,
	.close = fake_close,
	.nr_files = fake_files,
	.pid_namespace = fake_namespace,
	.sleep_on = fake_sleep,
};
static const struct csw_tryout_ops tryout_ops = { fake_event_open, fake_close, fake_cpu };

/* ---- a machine on which all is well ---- */

static void set_caps(uint64_t caps)
{
	char text[128];

	snprintf(text, sizeof(text), "Name:\ttest\nCapPrm:\t0\nCapEff:\t%016llx\nCapBnd:\t0\n",
		 (unsigned long long)caps);
	tree_file("/proc/self/status", text);
}

static void make_files(void)
{
	tree_file("/sys/devices/system/cpu/online", "0-1\n");
	tree_file("/proc/sys/kernel/perf_event_paranoid", "2\n");
	tree_file("/proc/sys/kernel/perf_event_mlock_kb", "516\n");
	tree_file("/proc/sys/kernel/perf_event_max_sample_rate", "100000\n");
	tree_file("/proc/sys/kernel/perf_cpu_time_max_percent", "25\n");
	tree_file("/proc/sys/kernel/nmi_watchdog", "0\n");
	tree_file("/proc/sys/kernel/unprivileged_bpf_disabled", "2\n");
	tree_file("/sys/kernel/tracing/events/sched/sched_switch/id", "316\n");
	tree_file("/sys/kernel/btf/vmlinux", "much more than fits into two bytes");
	tree_file("/proc/1/stat", "1 (init) S 0 1 1 0 -1 4194560\n");
	tree_file("/proc/self/mounts", "proc /proc proc rw 0 0\n"
				       "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
				       "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n");
	set_caps(ALL_CAPS);
}

static int setup(void **state)
{
	memset(&machine, 0, sizeof(machine));
	machine.watchpoints = 4;
	machine.has_pmu = machine.advances = true;
	machine.files = (struct rlimit){ .rlim_cur = 1024, .rlim_max = 4096 };
	machine.namespace = 0xEFFFFFFC;
	machine.hypervisor = "";
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		machine.samples[cpu] = machine.triggers[cpu] = 80;
		machine.idle[cpu] = 40;
	}
	csw_doctor_set_ops_for_tests(&doctor_ops);
	csw_tryout_set_ops_for_tests(&tryout_ops);
	if (tree_setup(state))
		return -1;
	make_files();
	return 0;
}

static int teardown(void **state)
{
	csw_doctor_set_ops_for_tests(NULL);
	csw_tryout_set_ops_for_tests(NULL);
	assert_int_equal(machine.opened, machine.closed);
	assert_int_equal(machine.drv_opened, machine.drv_closed);
	return tree_teardown(state);
}

/* ---- what it said ---- */

static struct {
	struct said {
		char name[64], finding[1024], remedy[1024];
		uint32_t state;
	} checks[32];
	unsigned nr, end_after;
} report;

static int note(void *ctx, const struct csw_check *check)
{
	struct said *s = &report.checks[report.nr++];

	assert_ptr_equal(ctx, &report);
	assert_true(report.nr <= 32);
	assert_true(check->state <= CSW_STATE_MISSING);
	assert_true(check->finding && check->finding[0]);
	if ((check->state == CSW_STATE_OK) != (check->remedy == NULL))
		fail_msg("%s: state %u and remedy %s", check->name, check->state,
			 check->remedy ? check->remedy : "none");
	assert_true(!check->remedy || check->remedy[0]);
	snprintf(s->name, sizeof(s->name), "%s", check->name);
	snprintf(s->finding, sizeof(s->finding), "%s", check->finding);
	snprintf(s->remedy, sizeof(s->remedy), "%s", check->remedy ? check->remedy : "");
	s->state = check->state;
	return report.nr == report.end_after ? 77 : 0;
}

static int examine(void)
{
	struct csw_error err;

	report.nr = 0;
	return csw_doctor(note, &report, &err);
}

static const struct said *find(const char *name)
{
	for (unsigned i = 0; i < report.nr; i++)
		if (!strcmp(report.checks[i].name, name))
			return &report.checks[i];
	return NULL;
}

/* The check is in this state and speaks of this, in its finding or its remedy. */
static void check_said(const char *name, uint32_t state, const char *text)
{
	const struct said *s;

	assert_int_equal(examine(), 0);
	s = find(name);
	if (!s)
		fail_msg("nothing is said of %s", name);
	if (s->state != state || (!strstr(s->finding, text) && !strstr(s->remedy, text)))
		fail_msg("%s: state %u, \"%s\" -> \"%s\"", name, s->state, s->finding, s->remedy);
}

/* ---- tests ---- */

static void test_all_well(void **state)
{
	(void)state;
	assert_int_equal(examine(), 0);
	for (unsigned i = 0; i < report.nr; i++)
		if (report.checks[i].state != CSW_STATE_OK)
			fail_msg("%s: %s", report.checks[i].name, report.checks[i].finding);
	assert_non_null(find(CSW_DOCTOR_VERDICT));
	for (unsigned i = 0; i < report.nr; i++) /* each said once */
		assert_ptr_equal(find(report.checks[i].name), &report.checks[i]);
}

static int not_allowed(struct csw_error *err)
{
	return csw_error_set(err, -EACCES, "making a map is forbidden; allow it");
}

/* The capabilities do not say it all. */
static void test_bpf_that_is_forbidden(void **state)
{
	static const struct csw_percpu_ops ops = { .allowed = not_allowed };

	(void)state;
	check_said("BPF", CSW_STATE_OK, "the rights are there");
	csw_percpu_set_ops_for_tests(&ops);
	if (csw_percpu_allowed(NULL) == 0)
		skip(); /* nothing needs it on this architecture */
	check_said("BPF", CSW_STATE_LIMITED, "making a map is forbidden");
	assert_string_equal(find("BPF")->remedy, "allow it");
}

static void test_permissions(void **state)
{
	(void)state;
	set_caps(0);
	check_said("perf_event_paranoid", CSW_STATE_MISSING, "no sample");
	check_said("capabilities", CSW_STATE_LIMITED, "not there: CAP_PERFMON");
	check_said("BPF", CSW_STATE_LIMITED, "setcap");
	tree_file("/proc/sys/kernel/perf_event_paranoid", "0\n");
	check_said("perf_event_paranoid", CSW_STATE_OK, "everybody");
	tree_file("/proc/sys/kernel/perf_event_paranoid", "-1\n");
	check_said("perf_event_paranoid", CSW_STATE_OK, "everybody");
	set_caps(1ull << 21); /* CAP_SYS_ADMIN, as before Linux 5.8 */
	tree_file("/proc/sys/kernel/perf_event_paranoid", "3\n");
	check_said("perf_event_paranoid", CSW_STATE_OK, "of no matter");
	tree_file("/proc/self/status", "Name:\ttest\n");
	check_said("capabilities", CSW_STATE_LIMITED, "CapEff");
	check_said("perf_event_paranoid", CSW_STATE_MISSING, "CAP_PERFMON");
}

static void test_no_call(void **state)
{
	(void)state;
	machine.open_self = -ENOSYS;
	check_said("perf_event_open", CSW_STATE_MISSING, "CONFIG_PERF_EVENTS");
	machine.open_self = -EPERM;
	check_said("perf_event_open", CSW_STATE_MISSING, "seccomp");
	machine.open_self = -EIO;
	check_said("perf_event_open", CSW_STATE_MISSING, strerror(EIO));
}

/* Switches counted, none sampled: what exclude_kernel does without an error. */
static void test_no_samples(void **state)
{
	(void)state;
	memset(machine.samples, 0, sizeof(machine.samples));
	check_said("trigger switch", CSW_STATE_MISSING, "160 switches");
	check_said(CSW_DOCTOR_VERDICT, CSW_STATE_MISSING, "nothing can be counted");
	assert_null(find("idle task's records")); /* no second line for the same trouble */
}

/* Whichever call of the driver fails, it is closed again and said to be missing. */
static void test_driver_fails(void **state)
{
	int nr;

	(void)state;
	assert_int_equal(examine(), 0);
	nr = machine.calls;
	assert_true(nr > 100);
	for (int n = 1; n <= nr; n++) {
		machine.fail_at = n;
		machine.calls = 0;
		check_said("trigger switch", CSW_STATE_MISSING, "");
		check_said(CSW_DOCTOR_VERDICT, CSW_STATE_OK, ""); /* calls went past fail_at */
		assert_int_equal(machine.drv_opened, machine.drv_closed);
	}
	machine.fail_at = 1;
	machine.calls = 0;
	check_said("trigger switch", CSW_STATE_MISSING, "mend it");
	assert_int_equal(find(CSW_DOCTOR_VERDICT)->state, CSW_STATE_MISSING);
	assert_string_equal(find("trigger switch")->finding, "broken on purpose");
}

static void test_idle_leaves_nothing(void **state)
{
	const struct said *s;

	(void)state;
	machine.samples[1] = 42;
	machine.idle[1] = 0;
	check_said("idle task's records", CSW_STATE_LIMITED, "CPU 1 (42 of 80)");
	s = find("idle task's records");
	assert_null(strstr(s->finding, "CPU 0"));
	assert_non_null(strstr(s->finding, "leaves no record at all"));
	machine.idle[1] = 3;
	check_said("idle task's records", CSW_STATE_LIMITED, "CPU 1");
	assert_null(strstr(find("idle task's records")->finding, "no record at all"));
	/* What the kernel reports as lost is no gap, and neither is one switch at the end. */
	machine.lost[1] = 38;
	check_said("idle task's records", CSW_STATE_OK, "no CPU");
	machine.lost[1] = 0;
	machine.samples[1] = 79;
	check_said("idle task's records", CSW_STATE_OK, "no CPU");
	/* In a namespace idle cannot be told from the threads outside. */
	machine.samples[1] = 42;
	machine.idle[1] = 0;
	machine.namespace = 4026532000u;
	check_said("idle task's records", CSW_STATE_LIMITED, "CPU 1");
	assert_null(strstr(find("idle task's records")->finding, "no record at all"));
}

static void test_limits(void **state)
{
	(void)state;
	set_caps(CAP_PERFMON_BIT);
	/* A page of it is the ring's head. */
	check_said("perf_event_mlock_kb", CSW_STATE_OK,
		   sysconf(_SC_PAGESIZE) == 4096 ? "512 KiB" : "256 KiB");
	tree_file("/proc/sys/kernel/perf_event_mlock_kb", "128\n");
	check_said("perf_event_mlock_kb", CSW_STATE_LIMITED, "64 KiB");
	tree_file("/proc/sys/kernel/perf_event_mlock_kb", "0\n");
	check_said("perf_event_mlock_kb", CSW_STATE_LIMITED, "0 KiB");
	set_caps(ALL_CAPS);
	check_said("perf_event_mlock_kb", CSW_STATE_OK, "of no matter");

	/* 64 for all else, two per CPU, then one per counter. */
	machine.files.rlim_cur = 64 + CPUS * (2 + 4);
	check_said("open files", CSW_STATE_OK, "4 counters");
	machine.files.rlim_cur--;
	check_said("open files", CSW_STATE_LIMITED, "3 counters");
	machine.files.rlim_cur = 64 + CPUS * 2;
	check_said("open files", CSW_STATE_MISSING, "0 counters");
	machine.files.rlim_cur = machine.files.rlim_max = 3;
	check_said("open files", CSW_STATE_MISSING, "hard limit");
	machine.files.rlim_cur = RLIM_INFINITY;
	check_said("open files", CSW_STATE_OK, "32 counters");

	tree_file("/proc/sys/kernel/perf_event_max_sample_rate", "1000\n");
	check_said("perf_event_max_sample_rate", CSW_STATE_LIMITED, "1000 samples");
}

static void test_hardware(void **state)
{
	(void)state;
	tree_file("/proc/sys/kernel/nmi_watchdog", "1\n");
	check_said("NMI watchdog", CSW_STATE_LIMITED, "kernel.nmi_watchdog=0");
	machine.advances = false;
	check_said("hardware PMU", CSW_STATE_MISSING, "stand still");
	machine.has_pmu = false;
	check_said("hardware PMU", CSW_STATE_MISSING, "none");
	check_said("NMI watchdog", CSW_STATE_OK, "no counter");
	machine.cpus_closed = true; /* then only a counter of our own tells */
	check_said("hardware PMU", CSW_STATE_MISSING, "none");
	machine.cpus_closed = false;
	check_said(CSW_DOCTOR_VERDICT, CSW_STATE_OK, "can be counted");
	machine.hypervisor = "KVM";
	check_said("virtual machine", CSW_STATE_LIMITED, "KVM");
	tree_file("/sys/bus/event_source/devices/cpu_core/cpus", "0-7\n");
	check_said("kinds of cores", CSW_STATE_OK, "one");
	tree_file("/sys/bus/event_source/devices/cpu_atom/cpus", "8-15\n");
	check_said("kinds of cores", CSW_STATE_LIMITED, "cpu_atom on 8-15");
}

static void test_watchpoints(void **state)
{
	(void)state;
	check_said("debug registers", CSW_STATE_OK, "4 free");
	machine.watchpoints = 2;
	check_said("debug registers", CSW_STATE_LIMITED, "2 free");
	machine.watchpoints = 0;
	check_said("debug registers", CSW_STATE_MISSING, "debuggers");
}

static void remove_file(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s", tree_root, name);
	tree_remove(path);
}

static void test_surroundings(void **state)
{
	(void)state;
	machine.namespace = 4026532000u;
	check_said("PID namespace", CSW_STATE_LIMITED, "look like idle, so that both are in");
	machine.namespace = 0;
	check_said("PID namespace", CSW_STATE_LIMITED, "/proc");
	check_said("names of threads", CSW_STATE_OK, "all users");
	remove_file("/proc/1");
	check_said("names of threads", CSW_STATE_LIMITED, "hidepid");
	check_said("cgroup v2", CSW_STATE_OK, "/sys/fs/cgroup/unified");
	tree_file("/proc/self/mounts", "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n");
	check_said("cgroup v2", CSW_STATE_MISSING, "mount -t cgroup2");
	check_said("tracepoints", CSW_STATE_OK, "316");
	remove_file("/sys/kernel/tracing");
	check_said("tracepoints", CSW_STATE_MISSING, "mount -t tracefs");
	remove_file("/sys/kernel/btf");
	check_said("BPF", CSW_STATE_MISSING, "CONFIG_DEBUG_INFO_BTF");
}

/* /proc and /sys empty but for the list of CPUs: still a report, and no crash. */
static void test_bare(void **state)
{
	(void)state;
	remove_file("/proc");
	assert_int_equal(examine(), 0);
	assert_int_equal(find("perf_event_paranoid")->state, CSW_STATE_MISSING);
	assert_int_equal(find("cgroup v2")->state, CSW_STATE_MISSING);
	assert_int_equal(find("NMI watchdog")->state, CSW_STATE_OK);
	remove_file("/sys");
	assert_int_equal(examine(), -EOPNOTSUPP);
}

static void test_ended(void **state)
{
	unsigned all;

	(void)state;
	assert_int_equal(examine(), 0);
	all = report.nr;
	for (unsigned n = 1; n <= all; n++) {
		report.end_after = n;
		assert_int_equal(examine(), 77);
		assert_int_equal(report.nr, n);
	}
	report.end_after = 0;
}

/* ---- the real machine ---- */

static unsigned nr_open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned nr = 0;

	assert_non_null(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

static void test_real(void **state)
{
	unsigned files = nr_open_files();
	cpu_set_t before, after;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(examine(), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
	assert_int_equal(nr_open_files(), files);
	assert_non_null(find(CSW_DOCTOR_VERDICT));
	assert_true((find(CSW_DOCTOR_VERDICT)->state == CSW_STATE_MISSING) ==
		    (find("trigger switch")->state == CSW_STATE_MISSING));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_well),
		TEST(test_permissions),
		TEST(test_bpf_that_is_forbidden),
		TEST(test_no_call),
		TEST(test_no_samples),
		TEST(test_driver_fails),
		TEST(test_idle_leaves_nothing),
		TEST(test_limits),
		TEST(test_hardware),
		TEST(test_watchpoints),
		TEST(test_surroundings),
		TEST(test_bare),
		TEST(test_ended),
		cmocka_unit_test(test_real),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
