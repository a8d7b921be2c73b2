/*
 * Names to events, on a made-up machine: its sysfs is a temporary tree, and its kernel is the
 * function `answer` below, which has the software events and tracepoints of every kernel and,
 * when told so, a hardware PMU. libpfm4 is the real one, told which CPU model to be by
 * LIBPFM_FORCE_PMU.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/arch/watch.h"
#include "engine/catalogue.h"
#include "engine/error.h"
#include "engine/percpu.h"
#include "tests/tryout_kernel.h"

#define PMUS "/sys/bus/event_source/devices/"
#define TRACING "/sys/kernel/tracing/events/"

static struct {
	bool has_pmu;
	int refuses;      /* -errno for every call; 0: as below */
	bool own_threads; /* ... but for those on a thread of one's own */
	struct perf_event_attr last;
	int last_cpu;
	const char *current_task; /* as this kernel calls it */
	bool has_bpf;
} kernel;

static int answer(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	kernel.last = *attr;
	kernel.last_cpu = cpu;
	if (kernel.refuses && (pid || !kernel.own_threads))
		return kernel.refuses;
	switch (attr->type) {
	case PERF_TYPE_SOFTWARE:
	case PERF_TYPE_TRACEPOINT:
		break;
	case PERF_TYPE_HARDWARE:
		if (!kernel.has_pmu || attr->config == PERF_COUNT_HW_STALLED_CYCLES_FRONTEND)
			return -ENOENT;
		break;
	case 9: /* msr: no exclusions, no interrupts */
		if (attr->exclude_kernel || attr->exclude_user || attr->exclude_hv ||
		    attr->sample_period)
			return -EINVAL;
		break;
	default:
		if (!kernel.has_pmu)
			return -ENOENT;
	}
	return 0;
}

static int setup(void **state)
{
	if (tryout_setup(state, answer))
		return -1;
	memset(&kernel, 0, sizeof(kernel));
	strcpy(tryout.cpu.vendor, "GenuineIntel");
	tryout.cpu.family = 6;
	tryout.cpu.model = 94;
	tryout.cpu.min_period = 2;
	tree_file("/sys/devices/system/cpu/online", "0-3\n");
	tree_file("/proc/sys/kernel/perf_event_paranoid", "2\n");
	tree_file(TRACING "sched/sched_switch/id", "314\n");
	tree_file(TRACING "syscalls/sys_enter_read/id", "400\n");
	tree_file(TRACING "raw_syscalls/sys_enter/id", "401\n");
	tree_file(TRACING "exceptions/page_fault_user/id", "402\n");
	tree_file(PMUS "msr/type", "9\n");
	tree_file(PMUS "msr/format/event", "config:0-63\n");
	tree_file(PMUS "msr/events/tsc", "event=0x00\n");
	return 0;
}

static void check(const char *name, uint32_t type, uint64_t config, uint32_t flags,
		  const char *became)
{
	struct csw_error err = { 0 };
	struct csw_event e;

	if (csw_catalogue_counter(name, &e, &err))
		fail_msg("%s: %s", name, err.text);
	assert_string_equal(e.name, name);
	assert_string_equal(e.became, became);
	assert_int_equal(e.type, type);
	assert_true(e.config == config);
	assert_int_equal(e.flags, flags);
	/* the kernel was asked for just that */
	assert_int_equal(kernel.last.type, type);
	assert_true(kernel.last.config == config);
	assert_int_equal(kernel.last.exclude_kernel, e.exclude_kernel);
	assert_int_equal(kernel.last.exclude_user, e.exclude_user);
	assert_int_equal(kernel.last.exclude_hv, e.exclude_hv);
}

static void check_text(const char *name, int ret, int code, const struct csw_error *err,
		       const char *const *says)
{
	if (ret != code)
		fail_msg("%s: %d instead of %d: %s", name, ret, code, err->text);
	assert_int_equal(err->code, code);
	for (const char *s = err->text; *s; s++)
		assert_true((unsigned char)*s >= 0x20 && *s != 0x7f);
	for (; *says; says++)
		if (!strstr(err->text, *says))
			fail_msg("%s: \"%s\" does not say \"%s\"", name, err->text, *says);
}

static void check_refused(const char *name, int code, const char *const *says)
{
	struct csw_error err = { 0 };
	struct csw_event e;

	check_text(name, csw_catalogue_counter(name, &e, &err), code, &err, says);
	assert_int_equal(csw_catalogue_counter(name, &e, NULL),
			 code); /* nobody has to want the text */
}

static void check_trigger_refused(const char *name, uint64_t sav, int code, const char *const *says)
{
	struct csw_trigger t;
	struct csw_error err = { 0 };

	check_text(name, csw_catalogue_trigger(name, sav, &t, &err), code, &err, says);
	assert_int_equal(csw_catalogue_trigger(name, sav, &t, NULL), code);
}

#define SAYS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* ---- counters ---- */

static void test_software(void **state)
{
	const uint32_t clock = CSW_EVENT_CLOCK | CSW_EVENT_NANOSECONDS,
		       never = CSW_EVENT_NEVER_IDLE;

	(void)state;
	check("cpu-clock", 1, 0, clock, "cpu-clock");
	check("task-clock", 1, 1, clock, "task-clock");
	check("page-faults", 1, 2, never, "page-faults");
	check("faults", 1, 2, never, "page-faults");
	check("context-switches", 1, 3, 0, "context-switches");
	check("cs", 1, 3, 0, "context-switches");
	check("cpu-migrations", 1, 4, 0, "cpu-migrations");
	check("migrations", 1, 4, 0, "cpu-migrations");
	check("minor-faults", 1, 5, never, "minor-faults");
	check("major-faults", 1, 6, never, "major-faults");
	check("alignment-faults", 1, 7, never, "alignment-faults");
	check("emulation-faults", 1, 8, never, "emulation-faults");
	check("cgroup-switches", 1, 11, 0, "cgroup-switches");
	check_refused("dummy", -EOPNOTSUPP, SAYS("counts nothing"));
	check_refused("bpf-output", -EOPNOTSUPP, SAYS("counts nothing"));
}

static void test_modifiers(void **state)
{
	struct csw_error err;
	struct csw_event e;

	(void)state;
	check("page-faults:u", 1, 2, CSW_EVENT_NEVER_IDLE, "page-faults:u");
	assert_int_equal(kernel.last.exclude_kernel, 1);
	assert_int_equal(kernel.last.exclude_user, 0);
	assert_int_equal(kernel.last.exclude_hv, 1);
	check("context-switches:k", 1, 3, 0, "context-switches:k");
	assert_int_equal(kernel.last.exclude_kernel, 0);
	assert_int_equal(kernel.last.exclude_user, 1);
	check("page-faults:uk", 1, 2, CSW_EVENT_NEVER_IDLE, "page-faults:uk");
	assert_int_equal(kernel.last.exclude_kernel, 0);
	assert_int_equal(kernel.last.exclude_user, 0);
	kernel.has_pmu = true;
	check("instructions:u", 0, 1, CSW_EVENT_HARDWARE | CSW_EVENT_NEVER_IDLE, "instructions:u");
	check("r1c2:k", 4, 0x1c2, CSW_EVENT_HARDWARE, "raw 0x1c2:k");
	assert_int_equal(csw_catalogue_counter("INST_RETIRED:ANY_P:u", &e, &err), 0);
	assert_true(e.exclude_kernel && !e.exclude_user);
	assert_int_equal(e.flags, CSW_EVENT_HARDWARE | CSW_EVENT_NEVER_IDLE);
	check_refused("page-faults:x", -ENOENT, SAYS("page-faults:x", ":u", ":k"));
	check_refused("page-faults:", -ENOENT, SAYS(":u"));
	check_refused("page-faults:u:k", -ENOENT, SAYS(":u"));
	check_refused("cycles:ppp", -ENOENT, SAYS(":u"));
	check_refused("r1c2:p", -ENOENT, SAYS(":u"));
	/* where the kernel would ignore it, or count nothing for ever */
	check_refused("task-clock:u", -EINVAL, SAYS("all time"));
	check_refused("cpu-clock:k", -EINVAL, SAYS("all time"));
	check_refused("cs:u", -EINVAL, SAYS("leave :u away"));
	check_refused("sched:sched_switch:u", -EINVAL, SAYS("leave :u away"));
	check_refused("msr/tsc/:u", -EINVAL, SAYS("kernel refuses", "leave :u"));
}

static void test_tracepoints(void **state)
{
	(void)state;
	check("sched:sched_switch", 2, 314, 0, "sched:sched_switch");
	check("syscalls:sys_enter_read", 2, 400, CSW_EVENT_NEVER_IDLE, "syscalls:sys_enter_read");
	check("syscalls:sys_enter_read:u", 2, 400, CSW_EVENT_NEVER_IDLE,
	      "syscalls:sys_enter_read:u");
	check("raw_syscalls:sys_enter", 2, 401, CSW_EVENT_NEVER_IDLE, "raw_syscalls:sys_enter");
	check("exceptions:page_fault_user", 2, 402, CSW_EVENT_NEVER_IDLE,
	      "exceptions:page_fault_user");
	check_refused("sched:sched_swich", -ENOENT, SAYS("sched:sched_switch"));
	check_refused("sched:sched_switch_", -ENOENT,
		      SAYS("no tracepoint", "nearest: sched:sched_switch"));
	check_refused("sched_switch", -ENOENT, SAYS("nearest: sched:sched_switch"));
	check_refused("sched_swich", -ENOENT, SAYS("nearest: sched:sched_switch"));
	check_refused("sched:", -ENOENT, SAYS("its name is missing"));
	check_refused("shced:sched_switch", -ENOENT, SAYS("nearest: sched"));
	check_refused("syscalls:enabel", -ENOENT, SAYS("no tracepoint syscalls:enabel"));
	check_refused("a:b:c", -ENOENT, SAYS("a:b:c"));
	check_refused("..:id", -ENOENT, SAYS("no event"));
}

static void test_sysfs(void **state)
{
	(void)state;
	check("msr/tsc/", 9, 0, CSW_EVENT_CLOCK, "msr/tsc/ 0x0");
	check_refused("msr/tsk/", -ENOENT, SAYS("tsc"));
	check_refused("/", -EINVAL, SAYS("pmu/event/"));
	/* no PMU, and the kernel has no cpu directory then: the name is good all the same */
	check_refused("cpu/event=0x3c,umask=0/", -EOPNOTSUPP, SAYS("no hardware PMU here", "KVM"));
	tree_file(PMUS "cpu/type", "4\n");
	tree_file(PMUS "cpu/format/event", "config:0-7,32-35\n");
	tree_file(PMUS "cpu/format/umask", "config:8-15\n");
	tree_file(PMUS "power/type", "12\n");
	tree_file(PMUS "power/cpumask", "0\n");
	kernel.has_pmu = true;
	check("cpu/event=0x3c,umask=1/", 4, 0x13c, CSW_EVENT_HARDWARE,
	      "cpu/event=0x3c,umask=1/ 0x13c");
	check("cpu/event=0x3c/u", 4, 0x3c, CSW_EVENT_HARDWARE | CSW_EVENT_NEVER_IDLE,
	      "cpu/event=0x3c/ 0x3c:u");
	check("cpu/event=0x3c/:k", 4, 0x3c, CSW_EVENT_HARDWARE, "cpu/event=0x3c/ 0x3c:k");
	check_refused("power/energy-pkg/", -EOPNOTSUPP, SAYS("package"));
	check_refused("cpu/emuask=1/", -ENOENT, SAYS("umask"));
}

/* A hybrid CPU's event is tried on one of its own CPUs. */
static void test_hybrid_cpu(void **state)
{
	(void)state;
	kernel.has_pmu = true;
	tree_file(PMUS "cpu_atom/type", "10\n");
	tree_file(PMUS "cpu_atom/cpus", "2-3\n");
	check("cpu_atom/config=0x3c/", 10, 0x3c, CSW_EVENT_HARDWARE, "cpu_atom/config=0x3c/ 0x3c");
	assert_int_equal(kernel.last_cpu, 2);
	tree_file("/sys/devices/system/cpu/online", "1-3\n");
	check("page-faults", 1, 2, CSW_EVENT_NEVER_IDLE, "page-faults");
	assert_int_equal(kernel.last_cpu, 1);
}

static void test_hardware(void **state)
{
	static const struct {
		const char *name;
		uint64_t config;
	} generic[] = {
		{ "cycles", 0 },           { "cpu-cycles", 0 },   { "instructions", 1 },
		{ "cache-references", 2 }, { "cache-misses", 3 }, { "branches", 4 },
		{ "branch-misses", 5 },    { "bus-cycles", 6 },   { "stalled-cycles-backend", 8 },
		{ "ref-cycles", 9 },
	};

	(void)state;
	kernel.has_pmu = true;
	for (size_t i = 0; i < sizeof(generic) / sizeof(generic[0]); i++)
		check(generic[i].name, 0, generic[i].config, CSW_EVENT_HARDWARE,
		      generic[i].config ? generic[i].name : "cycles");
	tree_file(PMUS "cpu/events/cache-misses",
		  "event=0x64,umask=0x9\n"); /* what it truly is on Zen */
	check("cache-misses", 0, 3, CSW_EVENT_HARDWARE, "cache-misses cpu/event=0x64,umask=0x9/");
	check("r412e", 4, 0x412e, CSW_EVENT_HARDWARE, "raw 0x412e");
	check("rffffffffffffffff", 4, UINT64_MAX, CSW_EVENT_HARDWARE, "raw 0xffffffffffffffff");
	check_refused("r1ffffffffffffffff", -ENOENT, SAYS("no event"));
	check_refused("stalled-cycles-frontend", -EOPNOTSUPP,
		      SAYS("the PMU of this CPU has no such event"));
}

static void test_libpfm4(void **state)
{
	(void)state;
	kernel.has_pmu = true;
	check("LONGEST_LAT_CACHE:MISS", 4, 0x412e, CSW_EVENT_HARDWARE,
	      "skl::LONGEST_LAT_CACHE:MISS 0x412e");
	check("skl::LONGEST_LAT_CACHE:MISS:c=2", 4, 0x200412e, CSW_EVENT_HARDWARE,
	      "skl::LONGEST_LAT_CACHE:MISS:c=2 0x200412e");
	check_refused("LONGEST_LAT_CACHE:MISSS", -EINVAL, SAYS("MISS", "REFERENCE"));
	check_refused("LONGEST_LAT_CAHCE:MISS", -ENOENT, SAYS("LONGEST_LAT_CACHE"));
	check_refused("skl::LONGEST_LAT_CAHCE:MISS", -ENOENT, SAYS("skl::LONGEST_LAT_CACHE"));
	check_refused("LONGEST_LAT_CACHE:MISS:period=5", -EINVAL, SAYS("period"));
	check_refused("core::SEGMENT_REG_LOADS", -EOPNOTSUPP,
		      SAYS("other CPU models (core)", "(skl)"));
}

static void check_llc(const char *became)
{
	char with_modifier[CSW_EVENT_NAME_BYTES];

	kernel.has_pmu = true;
	check("LLC_MISSES", 4, 0x412e, CSW_EVENT_HARDWARE, became);
	snprintf(with_modifier, sizeof(with_modifier), "%s:u", became);
	check("LLC_MISSES:u", 4, 0x412e, CSW_EVENT_HARDWARE | CSW_EVENT_NEVER_IDLE, with_modifier);
	kernel.has_pmu = false;
	check_refused("LLC_MISSES", -EOPNOTSUPP, SAYS("hardware PMU", "KVM"));
}

/* Last-level misses or nothing: never L2 misses, whatever the CPU. */
static void test_llc_misses(void **state)
{
	(void)state;
	check_llc("skl::LONGEST_LAT_CACHE:MISS 0x412e");
}

static void test_core(void **state)
{
	(void)state;
	check_llc("core::LLC_MISSES 0x412e");
	kernel.has_pmu = true;
	check("SEGMENT_REG_LOADS", 4, 6, CSW_EVENT_HARDWARE, "core::SEGMENT_REG_LOADS 0x6");
}

static void test_nhm(void **state)
{
	(void)state;
	check_llc("nhm::LLC_MISSES 0x412e");
}

static void test_wsm(void **state)
{
	(void)state;
	check_llc("wsm::L3_LAT_CACHE:MISS 0x412e");
}

static void test_ix86arch(void **state)
{
	(void)state;
	check_llc("ix86arch::LLC_MISSES 0x412e");
}

static void test_zen2(void **state)
{
	(void)state;
	kernel.has_pmu = true;
	check_refused("LLC_MISSES", -EOPNOTSUPP, SAYS("AMD", "DATA_CACHE_REFILLS_FROM_SYSTEM"));
}

static void test_zen4(void **state)
{
	(void)state;
	kernel.has_pmu = true;
	check_refused("LLC_MISSES:u", -EOPNOTSUPP, SAYS("AMD", "ANY_DATA_CACHE_FILLS_FROM_SYSTEM"));
	kernel.has_pmu = false;
	check_refused("LLC_MISSES", -EOPNOTSUPP,
		      SAYS("ANY_DATA_CACHE_FILLS", "KVM", "--driver=sim"));
}

/* A CPU that libpfm4 does not know: only the maker tells, and the kernel's own names. */
static void test_no_model(void **state)
{
	(void)state;
	kernel.has_pmu = true;
	check("PERF_COUNT_SW_PAGE_FAULTS_MIN", 1, 5, CSW_EVENT_NEVER_IDLE,
	      "perf::PERF_COUNT_SW_PAGE_FAULTS_MIN 0x5");
	check("L1-DCACHE-LOAD-MISSES", 3, 0x10000, CSW_EVENT_HARDWARE,
	      "perf::PERF_COUNT_HW_CACHE_L1D:READ:MISS 0x10000");
	check_trigger_refused("PERF_COUNT_SW_CONTEXT_SWITCHES:u", 1, -EINVAL,
			      SAYS("no sample at all"));
	check_trigger_refused("PERF_COUNT_SW_CPU_CLOCK", 1, -EINVAL, SAYS("storm"));
	check_refused("LLC_MISSES", -EOPNOTSUPP, SAYS("libpfm4 knows no core event"));
	strcpy(tryout.cpu.vendor, "AuthenticAMD");
	check_refused("LLC_MISSES", -EOPNOTSUPP, SAYS("AMD"));
}

static void test_no_pmu(void **state)
{
	char text[256], small[16];

	(void)state;
	check_refused("cycles", -EOPNOTSUPP,
		      SAYS("cycles", "hardware PMU", "virtual machine (KVM)",
			   "--event=page-faults,task-clock", "--driver=sim"));
	check_refused("r412e", -EOPNOTSUPP, SAYS("KVM"));
	check_refused("LONGEST_LAT_CACHE:MISS", -EOPNOTSUPP, SAYS("KVM"));
	check_refused("SEGMENT_REG_LOADS", -EOPNOTSUPP, SAYS("other CPU models", "KVM"));
	assert_ptr_equal(csw_tryout_no_pmu(text, sizeof(text)), text);
	assert_string_equal(text,
			    "this is a virtual machine (KVM) whose hypervisor hands none to it");
	csw_tryout_no_pmu(small, sizeof(small));
	assert_string_equal(small, "this is a virtu");
	tryout.cpu.hypervisor[0] = '\0';
	check_refused("cycles", -EOPNOTSUPP,
		      SAYS("hardware PMU", "no PMU driver", "GenuineIntel", "family 6 model 94"));
}

static void test_permission(void **state)
{
	(void)state;
	kernel.refuses = -EACCES;
	tree_file(PMUS "cpu/type", "4\n");
	check_refused("cycles", -EACCES,
		      SAYS("perf_event_paranoid is 2", "CAP_PERFMON", "CAP_SYS_ADMIN", "=0",
			   "; try sudo, or --driver=sim"));
	check_refused("page-faults", -EACCES, SAYS("perf_event_paranoid is 2"));
	/* to count a tracepoint takes no more than to count anything */
	check_refused("sched:sched_switch", -EACCES, SAYS("perf_event_paranoid=0"));
	check_trigger_refused("auto", 1, -EACCES, SAYS("counting on whole CPUs"));
	check_trigger_refused("tlb_flush", 1, -EACCES, SAYS("counting on whole CPUs"));
	check_trigger_refused("seg_laod", 1, -ENOENT, SAYS("nearest: seg_load"));
	check_refused("nonsense", -ENOENT, SAYS("nonsense"));
	kernel.refuses = -EPERM;
	check_refused("page-faults", -EACCES, SAYS("seccomp"));
	check_trigger_refused("switch", 1, -EACCES, SAYS("CAP_PERFMON"));
	tree_file("/proc/sys/kernel/perf_event_paranoid", "");
	check_refused("page-faults", -EACCES, SAYS("not readable"));
}

/* What is not there is said also to those who may not count: their own thread tells, or sysfs. */
static void test_no_pmu_and_no_permission(void **state)
{
	(void)state;
	kernel.refuses = -EACCES;
	for (int own = 0; own < 2; own++) {
		kernel.own_threads = own;
		check_refused("cycles", -EOPNOTSUPP,
			      SAYS("no", "hardware PMU", "KVM", "besides, counting on whole CPUs",
				   "try sudo"));
		check_refused("r412e", -EOPNOTSUPP, SAYS("hardware PMU", "besides, "));
		check_trigger_refused("tlb_flush", 1, -EOPNOTSUPP,
				      SAYS("no hardware PMU", "KVM",
					   "besides, counting on whole CPUs is not permitted"));
	}
	kernel.has_pmu = true; /* and now the thread's own cycles count */
	check_refused("cycles", -EACCES, SAYS("counting on whole CPUs"));
	check_trigger_refused("tlb_flush", 1, -EACCES, SAYS("counting on whole CPUs"));
}

/* No name is wrong where names cannot be looked up, but one that no tracepoint can have. */
static void test_no_tracefs(void **state)
{
	char path[PATH_MAX];

	(void)state;
	snprintf(path, sizeof(path), "%s" TRACING, tree_root);
	tree_remove(path);
	check_refused("sched:sched_switch", -EOPNOTSUPP, SAYS("mount -t tracefs"));
	check_refused("shced:sched_switch", -EOPNOTSUPP, SAYS("mount -t tracefs"));
	check_refused("LONGEST_LAT_CAHCE:MISS", -ENOENT, SAYS("LONGEST_LAT_CACHE"));
	snprintf(path, sizeof(path), "%s/sys", tree_root);
	tree_remove(path);
	check_refused("msr/tsc/", -EOPNOTSUPP, SAYS("is /sys mounted?"));
}

static void test_other_errors(void **state)
{
	(void)state;
	kernel.refuses = -ENOSYS;
	check_refused("page-faults", -EOPNOTSUPP, SAYS("CONFIG_PERF_EVENTS"));
	kernel.refuses = -EMFILE;
	check_refused("page-faults", -EMFILE, SAYS("open files"));
	kernel.refuses = -EBUSY;
	check_refused("cycles", -EBUSY, SAYS("watchdog"));
	kernel.refuses = -ENOENT;
	check_refused("cgroup-switches", -EOPNOTSUPP, SAYS("this kernel cannot count"));
	kernel.refuses = -EINVAL;
	check_refused("r12", -EINVAL, SAYS("raw 0x12"));
}

static void test_unknown(void **state)
{
	(void)state;
	check_refused("page-fault", -ENOENT, SAYS("page-faults"));
	check_refused("cycels", -ENOENT, SAYS("cycles"));
	check_refused("LLC_MISS", -ENOENT, SAYS("LLC_MISSES"));
	check_refused("LONGEST_LAT_CAHCE", -ENOENT, SAYS("LONGEST_LAT_CACHE"));
	check_refused("nonsense", -ENOENT, SAYS("nonsense", "libpfm4"));
	check_refused("", -ENOENT, SAYS("empty"));
	check_refused(":", -ENOENT, SAYS("no event"));
	check_refused(":u", -ENOENT, SAYS("no event"));
	check_refused("::", -ENOENT, SAYS("no event"));
	check_refused("r", -ENOENT, SAYS("no event"));
	check_refused("page-faults,cs", -ENOENT, SAYS("no event"));
	check_refused("seg_load", -EOPNOTSUPP, SAYS("no event on this CPU")); /* to calibrate it */
	check_trigger_refused("seg_laod", 1, -ENOENT, SAYS("seg_load"));
	check_trigger_refused("swich", 1, -ENOENT, SAYS("switch"));
	check_trigger_refused("", 1, -ENOENT, SAYS("empty"));
	check_trigger_refused("switch:x", 1, -ENOENT, SAYS(":u"));
}

static void test_hostile(void **state)
{
	static const char *const broken[] = {
		"\x1b[31mcycles", "page-faults\n", "\xff\xfe", "page faults", "\t", "a\x7f"
	};
	size_t bytes = 1 << 20;
	char *huge = malloc(bytes + 1), name[CSW_EVENT_NAME_BYTES + 1];

	(void)state;
	assert_non_null(huge);
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
		check_refused(broken[i], -ENOENT, SAYS("printable"));
	check_refused("\x1b[31mcycles", -ENOENT, SAYS("\\x1b[31mcycles"));
	memset(huge, '\x1b', bytes);
	huge[bytes] = '\0';
	check_refused(huge, -EINVAL, SAYS("too long", "\\x1b", "..."));
	check_trigger_refused(huge, 1, -EINVAL, SAYS("too long"));
	memset(name, 'a', sizeof(name));
	name[CSW_EVENT_NAME_BYTES] = '\0';
	check_refused(name, -EINVAL, SAYS("too long"));
	name[CSW_EVENT_NAME_BYTES - 1] = '\0'; /* the longest that is looked up, in every kind */
	check_refused(name, -ENOENT, SAYS("no event"));
	name[60] = ':';
	check_refused(name, -ENOENT, SAYS("no"));
	name[60] = '/';
	check_refused(name, -EINVAL, SAYS("pmu/event/"));
	name[CSW_EVENT_NAME_BYTES - 2] = '/';
	check_refused(name, -ENOENT, SAYS("no PMU"));
	free(huge);
}

/* ---- triggers ---- */

static void check_trigger(const char *name, uint64_t sav, uint64_t settled, uint32_t phase,
			  uint32_t per_switch, const char *became)
{
	struct csw_error err = { 0 };
	struct csw_trigger t;

	if (csw_catalogue_trigger(name, sav, &t, &err))
		fail_msg("%s: %s", name, err.text);
	assert_string_equal(t.event.name, name);
	assert_string_equal(t.event.became, became);
	assert_true(t.sav == settled);
	assert_int_equal(t.phase, phase);
	assert_int_equal(t.per_switch, per_switch);
	assert_true(kernel.last.sample_period == settled); /* tried as it will be used */
}

static void test_switch(void **state)
{
	(void)state;
	check_trigger("switch", 1, 1, CSW_PHASE_BEFORE, 1, "context-switches");
	check_trigger("switch", 7, 7, CSW_PHASE_BEFORE, 1, "context-switches");
	check_trigger("context-switches", 1, 1, CSW_PHASE_BEFORE, 1, "context-switches");
	check_trigger("cs", 2, 2, CSW_PHASE_BEFORE, 1, "context-switches");
	check_trigger("auto", 1, 1, CSW_PHASE_BEFORE, 1, "switch (context-switches)");
	check_trigger_refused("switch:u", 1, -EINVAL, SAYS("no sample at all"));
	check_trigger_refused("auto:u", 1, -EINVAL, SAYS("no sample at all"));
	check_trigger_refused("cs:u", 1, -EINVAL, SAYS("no sample at all"));
	check_trigger("switch", CSW_SAV_AUTO, 1, CSW_PHASE_BEFORE, 1, "context-switches");
	check_trigger_refused("switch", UINT64_MAX - 1, -EINVAL, SAYS("too large"));
}

static void test_other_triggers(void **state)
{
	(void)state;
	check_trigger("page-faults", 1, 1, CSW_PHASE_ANY, 0, "page-faults");
	check_trigger("sched:sched_switch", 3, 3, CSW_PHASE_ANY, 0, "sched:sched_switch");
	check_trigger("task-clock", 100000, 100000, CSW_PHASE_ANY, 0, "task-clock");
	check_trigger_refused("task-clock", 1, -EINVAL, SAYS("storm", "100000", "=switch"));
	check_trigger_refused("cpu-clock", 99999, -EINVAL, SAYS("storm", "99999"));
	check_trigger_refused("msr/tsc/", 1, -EINVAL, SAYS("cannot overflow", "--trigger=switch"));
	check_trigger_refused("cycles", 1, -EOPNOTSUPP, SAYS("KVM", "--trigger=switch"));
	check_trigger_refused("dummy", 1, -EOPNOTSUPP, SAYS("counts nothing"));
	kernel.has_pmu = true;
	check_trigger("r20bd", 1, 2, CSW_PHASE_ANY, 0,
		      "raw 0x20bd (sav 1 -> 2, the kernel's least)");
	check_trigger("LONGEST_LAT_CACHE:MISS", 1000, 1000, CSW_PHASE_ANY, 0,
		      "skl::LONGEST_LAT_CACHE:MISS 0x412e");
}

/* The catalogue's own names are never unknown. What they become is tests/test_triggers.c. */
static void test_catalogue_triggers(void **state)
{
	static const char *const names[] = { "seg_load", "desc_load", "ldt_load", "pid_change",
					     "tlb_flush" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		check_trigger_refused(names[i], 1, -EOPNOTSUPP,
				      SAYS("--trigger=switch", "--driver=sim"));
	check_trigger_refused("tlb_flush:x", 1, -ENOENT, SAYS("only :u"));
	check_trigger_refused("tlb_flush:u", 1, -EINVAL, SAYS("leave :u away"));
	check_trigger_refused("tlb_flash", 1, -ENOENT, SAYS("nearest: tlb_flush"));
}

/* A kernel with two variables for each CPU, a page apart. */
static int percpu_find(const char *name, struct csw_percpu_variable *out, struct csw_error *err)
{
	(void)err;
	if (!strcmp(name, kernel.current_task))
		*out = (struct csw_percpu_variable){ .offset = 0x18, .bytes = 8 };
	else if (!strcmp(name, "flags"))
		*out = (struct csw_percpu_variable){ .offset = 0x22, .bytes = 2 };
	else
		return -ENOENT;
	return 0;
}

static int percpu_global(const char *name, uint64_t *address, uint64_t *bytes)
{
	*address = 0xffffffff82000010;
	*bytes = 0;
	return strcmp(name, "jiffies") ? -ENOENT : 0;
}

static int percpu_address(uint64_t offset, unsigned cpu, uint64_t *address, struct csw_error *err)
{
	if (!kernel.has_bpf)
		return csw_error_set(err, -EACCES, "no BPF for you");
	*address = 0xffff888000000000 + 0x1000 * cpu + offset;
	return 0;
}

static void check_watch(const char *name, uint64_t address, uint64_t bytes, uint32_t access,
			const char *became)
{
	struct csw_trigger t;
	struct csw_error err = { 0 };

	if (csw_catalogue_trigger(name, 1, &t, &err))
		fail_msg("%s: %s", name, err.text);
	assert_string_equal(t.event.became, became);
	assert_true(t.event.flags & CSW_EVENT_DEBUG_REGISTER);
	assert_int_equal(kernel.last.type, PERF_TYPE_BREAKPOINT);
	assert_int_equal(kernel.last.bp_type, access);
	assert_int_equal(t.event.flags & CSW_EVENT_STORES_TOO,
			 access == HW_BREAKPOINT_RW ? CSW_EVENT_STORES_TOO : 0);
	assert_true(kernel.last.bp_addr == address);
	assert_int_equal(kernel.last.bp_len, bytes);
	assert_int_equal(kernel.last.sample_period, 1);
}

/* What the debug registers can watch, at the right address and no longer than it is. */
static void test_watches(void **state)
{
	static const struct csw_percpu_ops ops = { .find = percpu_find,
						   .global = percpu_global,
						   .address = percpu_address };
	char place[64], became[96];
	struct csw_trigger t;

	(void)state;
	if (!csw_arch_watch_loads)
		skip();
	kernel.has_pmu = kernel.has_bpf = true;
	kernel.current_task = csw_arch_current_task[0];
	csw_percpu_set_ops_for_tests(&ops);
	snprintf(became, sizeof(became), "mem:%s:w", kernel.current_task);
	check_watch("tid_change", 0xffff888000000018, 8, HW_BREAKPOINT_W, became);
	assert_int_equal(csw_catalogue_trigger("tid_change", 1, &t, NULL), 0);
	assert_int_equal(t.phase, CSW_PHASE_INSIDE);
	assert_int_equal(t.per_switch, 1);
	check_watch("mem_store:flags", 0xffff888000000022, 2, HW_BREAKPOINT_W, "mem:flags/2:w");
	check_watch("mem_store:jiffies", 0xffffffff82000010, 8, HW_BREAKPOINT_W, "mem:jiffies/8:w");
	check_watch("mem_store:0xffffffff81234564", 0xffffffff81234564, 4, HW_BREAKPOINT_W,
		    "mem:0xffffffff81234564/4:w");
	snprintf(became, sizeof(became), "mem:0x1001/1:%s in any process",
		 csw_arch_watch_loads == HW_BREAKPOINT_R ? "r" : "rw");
	check_watch("mem_load:0x1001", 0x1001, 1, csw_arch_watch_loads, became);
	snprintf(place, sizeof(place), "mem_store:%d:%p", getpid(), (void *)place);
	snprintf(became, sizeof(became), "mem:%p/%d:w in any process", (void *)place,
		 (uintptr_t)place % 8 ? 4 : 8);
	if ((uintptr_t)place % 4 == 0)
		check_watch(place, (uintptr_t)place, (uintptr_t)place % 8 ? 4 : 8, HW_BREAKPOINT_W,
			    became);
	csw_percpu_set_ops_for_tests(NULL);
}

static void test_watches_refused(void **state)
{
	static const struct csw_percpu_ops ops = { .find = percpu_find,
						   .global = percpu_global,
						   .address = percpu_address };

	(void)state;
	if (!csw_arch_watch_loads)
		skip();
	kernel.has_pmu = true;
	kernel.current_task = csw_arch_current_task[0];
	csw_percpu_set_ops_for_tests(&ops);
	check_trigger_refused("tid_change", 1, -EACCES, SAYS("no BPF for you"));
	kernel.has_bpf = true;
	check_trigger_refused("tid_change:u", 1, -EINVAL, SAYS("leave :u away"));
	check_trigger_refused("mem_load", 1, -EINVAL, SAYS("mem_load:WHERE"));
	check_trigger_refused("mem_store:", 1, -EINVAL, SAYS("no place in memory"));
	check_trigger_refused("mem_store:a b", 1, -ENOENT, SAYS("printable"));
	check_trigger_refused("mem_store:nothing_like_it", 1, -ENOENT,
			      SAYS("nothing_like_it", "kptr_restrict"));
	check_trigger_refused("mem_store:1:2:3", 1, -EINVAL, SAYS("PID:0xADDRESS"));
	check_trigger_refused("mem_store:0:0x1000", 1, -EINVAL, SAYS("PID:0xADDRESS"));
	check_trigger_refused("mem_store:99999999:0x1000", 1, -ESRCH, SAYS("99999999"));
	check_trigger_refused("mem_store:123456789012345678901234567890", 1, -EINVAL,
			      SAYS("no place in memory"));
	kernel.refuses = -ENOSPC;
	check_trigger_refused("tid_change", 1, -ENOSPC,
			      SAYS("all debug registers", "debugger", "--trigger=switch"));
	kernel.refuses = -EINVAL;
	check_trigger_refused("tid_change", 1, -EINVAL, SAYS("refuses to watch"));
	kernel.refuses = 0;
	kernel.current_task = "by another name";
	check_trigger_refused("tid_change", 1, -EOPNOTSUPP, SAYS(csw_arch_current_task[0]));
	csw_percpu_set_ops_for_tests(NULL);
}

#define ON_MACHINE(test) cmocka_unit_test_setup_teardown(test, setup, tryout_teardown)

/* Runs a group in a child whose libpfm4 sees this model; its failures. */
#define RUN_AS(model, tests)                                                                       \
	(fork_as(model) ? failures()                                                               \
			: (exit(cmocka_run_group_tests_name(model, tests, NULL, NULL)), 0))

static pid_t child;

static pid_t fork_as(const char *model)
{
	fflush(NULL);
	child = fork();
	if (!child)
		setenv("LIBPFM_FORCE_PMU", model, 1);
	return child;
}

static int failures(void)
{
	int status;

	return child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)
		       ? 1
		       : WEXITSTATUS(status);
}

int main(void)
{
	const struct CMUnitTest skl[] = {
		ON_MACHINE(test_software),
		ON_MACHINE(test_modifiers),
		ON_MACHINE(test_tracepoints),
		ON_MACHINE(test_sysfs),
		ON_MACHINE(test_hybrid_cpu),
		ON_MACHINE(test_hardware),
		ON_MACHINE(test_libpfm4),
		ON_MACHINE(test_llc_misses),
		ON_MACHINE(test_no_pmu),
		ON_MACHINE(test_permission),
		ON_MACHINE(test_no_pmu_and_no_permission),
		ON_MACHINE(test_no_tracefs),
		ON_MACHINE(test_other_errors),
		ON_MACHINE(test_unknown),
		ON_MACHINE(test_hostile),
		ON_MACHINE(test_switch),
		ON_MACHINE(test_other_triggers),
		ON_MACHINE(test_catalogue_triggers),
		ON_MACHINE(test_watches),
		ON_MACHINE(test_watches_refused),
	};
	const struct CMUnitTest core[] = { ON_MACHINE(test_core) };
	const struct CMUnitTest nhm[] = { ON_MACHINE(test_nhm) };
	const struct CMUnitTest wsm[] = { ON_MACHINE(test_wsm) };
	const struct CMUnitTest ix86arch[] = { ON_MACHINE(test_ix86arch) };
	const struct CMUnitTest zen2[] = { ON_MACHINE(test_zen2) };
	const struct CMUnitTest zen4[] = { ON_MACHINE(test_zen4) };
	const struct CMUnitTest none[] = { ON_MACHINE(test_no_model) };
	int nr = RUN_AS("skl", skl);

	nr += RUN_AS("core", core);
	nr += RUN_AS("nhm", nhm);
	nr += RUN_AS("wsm", wsm);
	nr += RUN_AS("ix86arch", ix86arch);
	nr += RUN_AS("amd64_fam17h_zen2", zen2);
	nr += RUN_AS("amd64_fam19h_zen4", zen4);
	nr += RUN_AS("perf", none);
	return nr != 0;
}
