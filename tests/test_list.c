/*
 * What csw_list says of a made-up machine: its sysfs is a temporary tree, its kernel the function
 * `answer` below, its CPU a Skylake by LIBPFM_FORCE_PMU.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/perf_event.h>

#include "csw/csw.h"
#include "engine/pfm.h"
#include "tests/tryout_kernel.h"

#define PMUS "/sys/bus/event_source/devices/"
#define TRACING "/sys/kernel/tracing/events/"
#define MSR_TYPE 9

static struct {
	bool has_pmu;
	int tracepoints; /* what the kernel says to them */
	int raw;         /* ... and to raw codes */
	int tries[16];
} kernel;

static int answer(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)pid;
	(void)cpu;
	assert_true(attr->type < 16);
	kernel.tries[attr->type]++;
	if (attr->type == PERF_TYPE_TRACEPOINT && kernel.tracepoints)
		return kernel.tracepoints;
	if (attr->type == PERF_TYPE_RAW && kernel.raw)
		return kernel.raw;
	if (!kernel.has_pmu && (attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_RAW ||
				attr->type == PERF_TYPE_HW_CACHE))
		return -ENOENT;
	return 0;
}

static int setup(void **state)
{
	memset(&kernel, 0, sizeof(kernel));
	if (tryout_setup(state, answer))
		return -1;
	strcpy(tryout.cpu.vendor, "GenuineIntel");
	tree_file("/sys/devices/system/cpu/online", "0-1\n");
	tree_file("/proc/sys/kernel/perf_event_paranoid", "2\n");
	tree_file(TRACING "sched/sched_switch/id", "316\n");
	tree_file(TRACING "sched/sched_wakeup/id", "317\n");
	tree_file(TRACING "sched/enable", "0\n");
	tree_file(TRACING "irq/irq_handler_entry/id", "120\n");
	tree_file(TRACING "header_page", "field\n");
	tree_file(PMUS "msr/type", "9\n");
	tree_file(PMUS "msr/format/event", "config:0-63\n");
	tree_file(PMUS "msr/events/tsc", "event=0x00\n");
	tree_file(PMUS "msr/events/smi", "event=0x04\n");
	tree_file(PMUS "msr/events/tsc.unit", "ticks\n");
	tree_file(PMUS "power/type", "11\n");
	tree_file(PMUS "power/cpumask", "0\n");
	tree_file(PMUS "power/format/event", "config:0-7\n");
	tree_file(PMUS "power/events/energy-pkg", "event=0x02\n");
	tree_file(PMUS "intel_pt/type", "8\n");
	tree_file(PMUS "intel_pt/events/anything", "event=0x01\n");
	return 0;
}

/* ---- what was listed ---- */

struct found {
	char name[256], group[64], summary[512], reason[CSW_ERROR_BYTES];
	bool usable, has_reason;
};

static struct {
	struct found *items;
	size_t nr, capacity;
	size_t end_after; /* 0: never */
} list;

static void copy(char *to, size_t bytes, const char *from)
{
	assert_non_null(from);
	assert_null(strchr(from, '\n'));
	snprintf(to, bytes, "%s", from);
}

static int note(void *ctx, const struct csw_item *item)
{
	struct found *f;

	assert_ptr_equal(ctx, &list);
	if (list.nr == list.capacity) {
		list.capacity = list.capacity ? 2 * list.capacity : 64;
		list.items = realloc(list.items, list.capacity * sizeof(*list.items));
		assert_non_null(list.items);
	}
	f = &list.items[list.nr++];
	memset(f, 0, sizeof(*f));
	copy(f->name, sizeof(f->name), item->name);
	copy(f->group, sizeof(f->group), item->group);
	copy(f->summary, sizeof(f->summary), item->summary);
	f->usable = item->usable;
	f->has_reason = item->reason != NULL;
	if (item->reason)
		copy(f->reason, sizeof(f->reason), item->reason);
	/* Why not is never left open. */
	assert_true(item->usable || (item->reason && item->reason[0]));
	return list.end_after && list.nr == list.end_after ? 77 : 0;
}

static int list_words(uint32_t what, const char *const *words, size_t nr)
{
	struct csw_error err;

	list.nr = 0;
	return csw_list(what, words, nr, note, &list, &err);
}

static const struct found *find(const char *name)
{
	for (size_t i = 0; i < list.nr; i++)
		if (!strcmp(list.items[i].name, name))
			return &list.items[i];
	return NULL;
}

static void check_usable(const char *name, const char *group)
{
	const struct found *f = find(name);

	if (!f)
		fail_msg("%s is not listed", name);
	if (!f->usable)
		fail_msg("%s is not usable: %s", name, f->reason);
	assert_string_equal(f->group, group);
}

static void check_refused(const char *name, const char *reason)
{
	const struct found *f = find(name);

	if (!f)
		fail_msg("%s is not listed", name);
	assert_false(f->usable);
	if (!strstr(f->reason, reason))
		fail_msg("%s: \"%s\" is not in \"%s\"", name, reason, f->reason);
}

/* ---- triggers and drivers ---- */

static void test_triggers(void **state)
{
	static const char *const names[] = {
		"auto",           "switch",          "seg_load",   "ldt_load",   "desc_load",
		"mem_load:WHERE", "mem_store:WHERE", "pid_change", "tid_change", "tlb_flush"
	};

	(void)state;
	assert_int_equal(list_words(CSW_LIST_TRIGGERS, NULL, 0), 0);
	assert_int_equal(list.nr, sizeof(names) / sizeof(names[0]));
	for (size_t i = 0; i < list.nr; i++) {
		const struct found *f = find(names[i]);

		assert_non_null(f);
		/* A name of the catalogue is refused for a reason, never unknown. */
		assert_null(strstr(f->reason, "there is no trigger"));
	}
	check_usable("switch", "trigger");
	check_usable("auto", "trigger");
	assert_non_null(strstr(find("auto")->reason, "context-switches"));
	check_refused("seg_load", "has no event on this CPU (skl)");
	check_refused("tlb_flush", "would be skl::TLB_FLUSH:STLB_ANY 0x20bd");
	check_refused("tlb_flush", "but there is no hardware PMU here");
	check_refused("mem_store:WHERE", "nothing tells where");
	kernel.has_pmu = true;
	assert_int_equal(list_words(CSW_LIST_TRIGGERS, (const char *const[]){ "translation" }, 1),
			 0);
	assert_int_equal(list.nr, 1);
	check_usable("tlb_flush", "trigger");
	assert_string_equal(find("tlb_flush")->reason,
			    "skl::TLB_FLUSH:STLB_ANY 0x20bd, hardware, sav 1, "
			    "1 or more per process switch, 0 per thread switch");
}

static void test_drivers(void **state)
{
	(void)state;
	assert_int_equal(list_words(CSW_LIST_DRIVERS, NULL, 0), 0);
	assert_non_null(find("perf"));
	check_usable("sim", "driver");
}

/* ---- events ---- */

static void test_events(void **state)
{
	(void)state;
	assert_int_equal(list_words(CSW_LIST_EVENTS, NULL, 0), 0);
	check_usable("page-faults", "software");
	check_usable("faults", "software");
	assert_string_equal(find("faults")->reason, "page-faults"); /* what it becomes */
	check_refused("dummy", "counts nothing");
	check_refused("cycles", "no hardware PMU");
	check_refused("rNNN", "no hardware PMU");
	check_refused("LLC_MISSES", "KVM");
	check_usable("sched:sched_switch", "tracepoint");
	check_usable("sched:sched_wakeup", "tracepoint");
	check_usable("irq:irq_handler_entry", "tracepoint");
	assert_null(find("sched:enable")); /* a file that lies beside them */
	check_usable("msr/tsc/", "sysfs");
	check_usable("msr/smi/", "sysfs");
	assert_null(find("msr/tsc.unit/"));
	check_refused("power/energy-pkg/", "package");
	assert_null(find("intel_pt/anything/")); /* traces, counts nothing */
}

/* The kernel is asked once for each kind. */
static void test_few_tries(void **state)
{
	(void)state;
	assert_int_equal(list_words(CSW_LIST_EVENTS, NULL, 0), 0);
	assert_int_equal(kernel.tries[PERF_TYPE_TRACEPOINT], 1);
	assert_int_equal(kernel.tries[MSR_TYPE], 1);
	assert_in_range(kernel.tries[PERF_TYPE_RAW], 0, 1);
}

static void test_pmu(void **state)
{
	(void)state;
	kernel.has_pmu = true;
	assert_int_equal(list_words(CSW_LIST_EVENTS, NULL, 0), 0);
	check_usable("cycles", "hardware");
	check_usable("rNNN", "hardware");
#ifdef __x86_64__
	check_usable("skl::LONGEST_LAT_CACHE:MISS", "skl");
	check_usable("LLC_MISSES", "hardware");
	assert_non_null(strstr(find("skl::LONGEST_LAT_CACHE:MISS")->summary, ": "));
	assert_int_equal(kernel.tries[PERF_TYPE_RAW],
			 2); /* LLC_MISSES by itself, then once for all */
#endif
}

/* One event that the kernel refuses does not speak for all; a whole PMU of them does. */
static void test_stubborn_pmu(void **state)
{
	(void)state;
#ifndef __x86_64__
	skip();
#endif
	kernel.has_pmu = true;
	kernel.raw = -EINVAL;
	assert_int_equal(list_words(CSW_LIST_EVENTS, (const char *const[]){ "skl::" }, 1), 0);
	assert_true(list.nr > 100);
	check_refused("skl::LONGEST_LAT_CACHE:MISS", "skl");
	/* Each of eight tries may ask a second time to find out why. */
	assert_in_range(kernel.tries[PERF_TYPE_RAW], 8, 16);
}

/* Every name that is listed as usable can be written; and the lock is free while one looks. */
static int check_encodes(void *ctx, const struct csw_item *item)
{
	struct csw_event event;
	struct csw_error err;
	size_t *nr = ctx;

	if (strncmp(item->group, "skl", 3) || !item->usable)
		return 0;
	memset(&event, 0, sizeof(event));
	if (csw_pfm_encode(item->name, &event, &err))
		fail_msg("%s does not encode: %s", item->name, err.text);
	++*nr;
	return 0;
}

static void test_names_are_good(void **state)
{
	struct csw_error err;
	size_t nr = 0;

	(void)state;
#ifndef __x86_64__
	skip();
#endif
	kernel.has_pmu = true;
	assert_int_equal(csw_list(CSW_LIST_EVENTS, NULL, 0, check_encodes, &nr, &err), 0);
	assert_true(nr > 100);
}

static void test_no_tracefs(void **state)
{
	char path[512];

	(void)state;
	snprintf(path, sizeof(path), "%s/sys/kernel/tracing", tree_root);
	tree_remove(path);
	assert_int_equal(list_words(CSW_LIST_EVENTS, (const char *const[]){ "tracepoint" }, 1), 0);
	assert_int_equal(list.nr, 1);
	check_refused("subsys:name", "mount -t tracefs");
	/* Whether one of them holds these words nobody can say, so that is said. */
	assert_int_equal(list_words(CSW_LIST_EVENTS, (const char *const[]){ "sched", "switch" }, 2),
			 0);
	check_refused("subsys:name", "mount -t tracefs");
}

static void test_tracepoints_closed(void **state)
{
	(void)state;
	kernel.tracepoints = -EACCES;
	assert_int_equal(list_words(CSW_LIST_EVENTS, (const char *const[]){ "tracepoint" }, 1), 0);
	assert_int_equal(list.nr, 3);
	check_refused("sched:sched_switch", "CAP_PERFMON");
	check_refused("irq:irq_handler_entry", "CAP_PERFMON");
	assert_int_equal(kernel.tries[PERF_TYPE_TRACEPOINT], 1);
}

/* ---- words, ends, errors ---- */

static void test_words(void **state)
{
	(void)state;
	assert_int_equal(list_words(CSW_LIST_EVENTS, (const char *const[]){ "SCHED", "Wake" }, 2),
			 0);
	assert_int_equal(list.nr, 1);
	check_usable("sched:sched_wakeup", "tracepoint");
	assert_int_equal(kernel.tries[PERF_TYPE_SOFTWARE], 0); /* left out, not asked for */
	assert_int_equal(
		list_words(CSW_LIST_EVENTS, (const char *const[]){ "software", "fault" }, 2), 0);
	assert_non_null(find("page-faults"));
	for (size_t i = 0; i < list.nr; i++)
		assert_string_equal(list.items[i].group, "software");
	assert_int_equal(list_words(CSW_LIST_EVENTS, (const char *const[]){ "no-such-word" }, 1),
			 0);
	assert_int_equal(list.nr, 0);
	assert_int_equal(list_words(CSW_LIST_TRIGGERS, (const char *const[]){ "TLB" }, 1), 0);
	assert_int_equal(list.nr, 1);
	assert_int_equal(list_words(CSW_LIST_DRIVERS, (const char *const[]){ "simul" }, 1), 0);
	assert_int_equal(list.nr, 1);
}

/* Wherever the caller ends it. */
static void test_ended(void **state)
{
	size_t all;

	(void)state;
	for (uint32_t what = CSW_LIST_TRIGGERS; what <= CSW_LIST_DRIVERS; what++) {
		list.end_after = 0;
		assert_int_equal(list_words(what, NULL, 0), 0);
		all = list.nr;
		for (size_t n = 1; n <= all; n += all > 100 ? all / 50 : 1) {
			list.end_after = n;
			assert_int_equal(list_words(what, NULL, 0), 77);
			assert_int_equal(list.nr, n);
		}
	}
	list.end_after = 0;
}

static void test_no_such_list(void **state)
{
	struct csw_error err;

	(void)state;
	assert_int_equal(csw_list(99, NULL, 0, note, &list, &err), -EINVAL);
	assert_int_equal(err.code, -EINVAL);
	assert_non_null(strstr(err.text, "triggers"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, tryout_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_triggers),       TEST(test_drivers),    TEST(test_events),
		TEST(test_few_tries),      TEST(test_pmu),        TEST(test_stubborn_pmu),
		TEST(test_names_are_good), TEST(test_no_tracefs), TEST(test_tracepoints_closed),
		TEST(test_words),          TEST(test_ended),      TEST(test_no_such_list),
	};
	int failed;

	/* Before libpfm4 looks at the CPU for the first time. */
	setenv("LIBPFM_FORCE_PMU", "skl", 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(list.items);
	return failed;
}
