/* What sysfs and tracefs say, on made-up machines: holes, damage, absurd sizes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/perf_event.h>

#include "tests/tree.h"

#define PMUS "/sys/bus/event_source/devices/"

/* ---- CPU lists ---- */

static void check_list(const char *text, int expected, const unsigned *cpus)
{
	unsigned out[16];

	assert_int_equal(csw_sysfs_cpulist(text, out, 16), expected);
	for (int i = 0; i < expected; i++)
		assert_int_equal(out[i], cpus[i]);
}

static void test_cpulist(void **state)
{
	(void)state;
	check_list("0", 1, (unsigned[]){ 0 });
	check_list("0-3,8,10-11", 7, (unsigned[]){ 0, 1, 2, 3, 8, 10, 11 });
	check_list("5-5", 1, (unsigned[]){ 5 });
	check_list("65535", 1, (unsigned[]){ 65535 });
	check_list("", 0, NULL);
	check_list("0-15", 16,
		   (unsigned[]){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 });
}

static void test_cpulist_malformed(void **state)
{
	static const char *const broken[] = { ",",   "0,",    ",0",
					      "3-1", "0--3",  "-1",
					      "a",   "0 1",   "0-",
					      "1,0", "1,1",   "0-3,2",
					      "0x3", "65536", "0-99999999999999999999",
					      "0;1", " 0",    "+1" };

	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
		check_list(broken[i], -EINVAL, NULL);
	check_list("0-16", -E2BIG, NULL);
	check_list("0-14,20-21", -E2BIG, NULL);
	check_list("0-65535", -E2BIG, NULL);
}

static void test_online(void **state)
{
	struct csw_error err;
	unsigned *cpus;

	(void)state;
	assert_int_equal(csw_sysfs_online(&cpus, &err), -EOPNOTSUPP); /* nobody's usage is wrong */
	assert_null(cpus);
	tree_file("/sys/devices/system/cpu/online", "0,2-3\n"); /* CPU 1 is offline */
	assert_int_equal(csw_sysfs_online(&cpus, &err), 3);
	assert_int_equal(cpus[0], 0);
	assert_int_equal(cpus[1], 2);
	assert_int_equal(cpus[2], 3);
	free(cpus);
	tree_file("/sys/devices/system/cpu/online", "\n");
	assert_int_equal(csw_sysfs_online(&cpus, &err), -EINVAL);
	assert_null(cpus);
	tree_file("/sys/devices/system/cpu/online", "0-3,huh\n");
	assert_int_equal(csw_sysfs_online(&cpus, &err), -EINVAL);
	assert_non_null(strstr(err.text, "online"));
}

/* 4096 CPUs, each second one offline: the longest list that Linux can write. */
static void test_online_many(void **state)
{
	char text[32768];
	struct csw_error err;
	size_t used = 0;
	unsigned *cpus;

	(void)state;
	for (unsigned cpu = 0; cpu < 8192; cpu += 2)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u", cpu ? "," : "",
					 cpu);
	tree_file("/sys/devices/system/cpu/online", text);
	assert_int_equal(csw_sysfs_online(&cpus, &err), 4096);
	assert_int_equal(cpus[4095], 8190);
	free(cpus);
}

/* ---- reading ---- */

static void test_read(void **state)
{
	char text[16], big[4096];

	(void)state;
	assert_int_equal(csw_sysfs_read(text, sizeof(text), "/none"), -ENOENT);
	assert_string_equal(text, "");
	tree_file("/a/b", "hello \n\n");
	assert_int_equal(csw_sysfs_read(text, sizeof(text), "/%s/%c", "a", 'b'), 5);
	assert_string_equal(text, "hello");
	tree_file("/a/empty", "");
	assert_int_equal(csw_sysfs_read(text, sizeof(text), "/a/empty"), 0);
	assert_int_equal(csw_sysfs_read(text, sizeof(text), "/a"), -EISDIR);
	memset(big, 'x', sizeof(big));
	tree_bytes("/a/big", big, sizeof(big));
	assert_int_equal(csw_sysfs_read(text, sizeof(text), "/a/big"), -EFBIG);
	assert_string_equal(text, "xxxxxxxxxxxxxxx");
	tree_bytes("/a/nul",
		   "12\0"
		   "34",
		   5);
	assert_int_equal(csw_sysfs_read(text, sizeof(text), "/a/nul"), -EINVAL);
	tree_bytes("/a/dt", "linux,kvm\0", 10);
	assert_int_equal(csw_sysfs_read(text, sizeof(text), "/a/dt"), 9);
	tree_bytes("/a/exact", "123456789012345\n", 16);
	assert_int_equal(csw_sysfs_read(text, sizeof(text), "/a/exact"),
			 -EFBIG); /* cannot tell that it ended */
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(csw_sysfs_read(text, sizeof(text), "/%s%s", big, big), -ENAMETOOLONG);
}

/* ---- tracepoints ---- */

static int tracepoint(const char *subsys, const char *event, uint64_t *id, struct csw_error *err)
{
	bool known;
	int ret = csw_sysfs_tracepoint(subsys, event, id, &known, err);

	assert_int_equal(known, !strcmp(subsys, "sched") && ret != -ENODEV);
	return ret;
}

static void test_tracepoint(void **state)
{
	struct csw_error err;
	uint64_t id = 0;
	bool known;

	(void)state;
	assert_int_equal(csw_sysfs_tracepoint("sched", "sched_switch", &id, &known, &err),
			 -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "mount -t tracefs"));
	tree_file("/sys/kernel/debug/tracing/events/sched/sched_switch/id",
		  "7\n"); /* where old kernels have it */
	assert_int_equal(tracepoint("sched", "sched_switch", &id, &err), 0);
	assert_int_equal(id, 7);
	tree_file("/sys/kernel/tracing/events/sched/sched_switch/id", "314\n");
	tree_file("/sys/kernel/tracing/events/sched/sched_waking/id", "315\n");
	tree_file("/sys/kernel/tracing/events/sched/enable", "0\n");
	assert_int_equal(tracepoint("sched", "sched_switch", &id, &err), 0);
	assert_int_equal(id, 314);
	assert_int_equal(tracepoint("sched", "sched_swich", &id, &err), -ENOENT);
	assert_non_null(strstr(err.text, "nearest: sched:sched_switch"));
	assert_int_equal(tracepoint("shced", "sched_switch", &id, &err), -ENOENT);
	assert_non_null(strstr(err.text, "nearest: sched"));
	assert_int_equal(tracepoint("sched", "enable", &id, &err),
			 -ENOENT); /* a file, not a tracepoint */
	assert_int_equal(csw_sysfs_tracepoint("..", "id", &id, &known, &err), -ENOENT);
	assert_int_equal(csw_sysfs_tracepoint("sched", "../sched/sched_switch", &id, &known, &err),
			 -ENOENT);
	assert_int_equal(csw_sysfs_tracepoint("", "", &id, &known, &err), -ENOENT);
}

static void test_tracepoint_damage(void **state)
{
	static const char *const broken[] = {
		"",
		"x\n",
		"-3\n",
		"1 2\n",
		"99999999999999999999999\n",
		"11111111111111111111111111111111111111111111111111\n"
	};
	struct csw_error err;
	uint64_t id;

	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		tree_file("/sys/kernel/tracing/events/sched/sched_switch/id", broken[i]);
		assert_true(tracepoint("sched", "sched_switch", &id, &err) < 0);
		assert_non_null(strstr(err.text, "sched_switch"));
	}
}

/* What lies beside tracepoints and subsystems is not offered: enable, filter, header_page. */
static void test_tracepoint_nearest(void **state)
{
	struct csw_error err;
	uint64_t id;

	(void)state;
	tree_file("/sys/kernel/tracing/events/sched/sched_switch/id", "314\n");
	tree_file("/sys/kernel/tracing/events/sched/sched_switch/enable", "0\n");
	tree_file("/sys/kernel/tracing/events/sched/filter", "none\n");
	tree_file("/sys/kernel/tracing/events/sched/enable", "0\n");
	tree_file("/sys/kernel/tracing/events/sched/folder/file", "0\n"); /* without an id */
	tree_file("/sys/kernel/tracing/events/header_page", "\n");
	assert_int_equal(tracepoint("sched", "filtre", &id, &err), -ENOENT);
	assert_null(strstr(err.text, "sched:filter"));
	assert_int_equal(tracepoint("sched", "foldre", &id, &err), -ENOENT);
	assert_null(strstr(err.text, "sched:folder"));
	assert_int_equal(tracepoint("sched", "sched_swich", &id, &err), -ENOENT);
	assert_non_null(strstr(err.text, "nearest: sched:sched_switch"));
	assert_int_equal(tracepoint("header_pag", "x", &id, &err), -ENOENT);
	assert_null(strstr(err.text, "nearest: header_page"));
}

/* A folder of tracefs with this mode, and a tracepoint below it. */
static void make_tracepoint_in(char path[PATH_MAX], const char *folder, mode_t mode)
{
	tree_file("/sys/kernel/tracing/events/sched/sched_switch/id", "314\n");
	snprintf(path, PATH_MAX, "%s%s", tree_root, folder);
	assert_int_equal(chmod(path, mode), 0);
}

/* What the tracepoint is to a user for whom the folder is closed. Root may read all the same, so
 * becomes somebody else for a moment. */
static int look_through(const char *folder, struct csw_error *err)
{
	char path[PATH_MAX];
	uint64_t id;
	bool known;
	int ret;

	make_tracepoint_in(path, folder, 0);
	assert_int_equal(chmod(tree_root, 0755), 0);
	if (!geteuid())
		assert_int_equal(seteuid(65534), 0);
	ret = csw_sysfs_tracepoint("sched", "sched_switch", &id, &known, err);
	if (!getuid())
		assert_int_equal(seteuid(0), 0);
	chmod(path, 0755);
	return ret;
}

/* tracefs is 0700 by default. */
static void test_tracepoint_unreadable(void **state)
{
	struct csw_error err;

	(void)state;
	assert_int_equal(look_through("/sys/kernel/tracing", &err), -EACCES);
	assert_non_null(strstr(err.text, "mount -o remount"));
	assert_non_null(strstr(err.text, "CAP_PERFMON")); /* the second half of what it takes */
}

/* The effective user may read and the real one may not, as with CAP_DAC_READ_SEARCH: access(2)
 * would ask for the real one. */
static void test_tracepoint_of_the_effective_user(void **state)
{
	struct csw_error err = { .code = 0 };
	char path[PATH_MAX];
	uint64_t id;
	bool known;
	int ret;

	(void)state;
	if (getuid())
		skip(); /* only root can be two users */
	make_tracepoint_in(path, "/sys/kernel/tracing", 0700);
	assert_int_equal(setresuid(65534, 0, 0), 0);
	ret = csw_sysfs_tracepoint("sched", "sched_switch", &id, &known, &err);
	assert_int_equal(setresuid(0, 0, 0), 0);
	assert_int_equal(ret, 0);
	assert_true(known);
	assert_int_equal(id, 314);
}

/* A subsystem that cannot be entered is not one that does not exist. */
static void test_subsystem_unreadable(void **state)
{
	struct csw_error err;

	(void)state;
	assert_int_equal(look_through("/sys/kernel/tracing/events/sched", &err), -EACCES);
}

/* ---- PMUs ---- */

static int event(const char *text, struct csw_event *out, struct csw_error *err)
{
	memset(out, 0, sizeof(*out));
	err->text[0] = '\0';
	return csw_sysfs_event(text, strlen(text), out, err);
}

static void make_pmus(void)
{
	tree_file(PMUS "cpu/type", "4\n");
	tree_file(PMUS "cpu/format/event", "config:0-7,32-35\n");
	tree_file(PMUS "cpu/format/umask", "config:8-15\n");
	tree_file(PMUS "cpu/format/any", "config:21\n");
	tree_file(PMUS "cpu/format/all", "config1:0-63\n");
	tree_file(PMUS "cpu/format/split", "config2:60-63,0-3\n");
	tree_file(PMUS "cpu/format/fourth", "config3:0-7\n");
	tree_file(PMUS "cpu/format/broken", "config:9-3\n");
	tree_file(PMUS "cpu/format/nothing", "\n");
	tree_file(PMUS "cpu/events/misses", "event=0x2e,umask=0x41\n");
	tree_file(PMUS "cpu/events/wrong", "event=?,umask=0x41\n");
	tree_file(PMUS "cpu/events/itself", "itself\n");
	tree_file(PMUS "msr/type", "9\n");
	tree_file(PMUS "msr/format/event", "config:0-63\n");
	tree_file(PMUS "msr/events/tsc", "event=0x00\n");
	tree_file(PMUS "msr/events/smi", "event=0x04\n");
	tree_file(PMUS "power/type", "12\n");
	tree_file(PMUS "power/cpumask", "0\n");
	tree_file(PMUS "power/events/energy-pkg", "event=0x02\n");
	tree_file(PMUS "power/format/event", "config:0-7\n");
	tree_file(PMUS "cpu_atom/type", "10\n");
	tree_file(PMUS "cpu_atom/cpus", "16-31\n");
	tree_file(PMUS "cpu_atom/format/event", "config:0-7\n");
	tree_file(PMUS "intel_pt/type", "8\n");
}

static void test_event(void **state)
{
	struct csw_error err;
	struct csw_event e;

	(void)state;
	make_pmus();
	assert_int_equal(event("cpu/event=0x3c,umask=0/", &e, &err), 0);
	assert_int_equal(e.type, 4);
	assert_int_equal(e.config, 0x3c);
	assert_int_equal(e.flags, CSW_EVENT_HARDWARE);
	assert_int_equal(event("cpu/event=0xabc,umask=255,any/", &e, &err), 0);
	assert_true(e.config == 0xa0020ffbc);
	assert_int_equal(event("cpu/misses/", &e, &err), 0);
	assert_int_equal(e.config, 0x412e);
	assert_string_equal(e.became, "cpu/misses/ 0x412e");
	assert_int_equal(event("cpu/misses,umask=1/", &e, &err), 0); /* the later wins */
	assert_int_equal(e.config, 0x12e);
	assert_int_equal(event("cpu/all=0xffffffffffffffff,split=0xa5/", &e, &err), 0);
	assert_true(e.config1 == UINT64_MAX);
	assert_true(e.config2 == 0x500000000000000a);
	assert_int_equal(event("cpu/config=0x1234,config1=2,config2=3/", &e, &err), 0);
	assert_true(e.config == 0x1234 && e.config1 == 2 && e.config2 == 3);
	assert_int_equal(event("msr/tsc/", &e, &err), 0);
	assert_int_equal(e.type, 9);
	assert_int_equal(e.flags, CSW_EVENT_CLOCK);
	assert_int_equal(event("msr/smi/", &e, &err), 0);
	assert_int_equal(e.flags, 0);
	assert_int_equal(event("cpu_atom/event=1/", &e, &err), 0);
	assert_int_equal(e.flags, CSW_EVENT_HARDWARE);
}

static void check_refused(const char *text, int code, const char *says)
{
	struct csw_error err;
	struct csw_event e;

	assert_int_equal(event(text, &e, &err), code);
	assert_int_equal(err.code, code);
	if (!strstr(err.text, says))
		fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

static void test_event_refused(void **state)
{
	(void)state;
	check_refused("msr/tsc/", -EOPNOTSUPP, "is /sys mounted?");
	make_pmus();
	check_refused("power/energy-pkg/", -EOPNOTSUPP, "package");
	check_refused("intel_pt//", -EOPNOTSUPP, "does not count");
	check_refused("mrs/tsc/", -ENOENT, "nearest: msr");
	check_refused("msr/tsk/", -ENOENT, "nearest: tsc");
	check_refused("cpu/umsak=1/", -ENOENT, "nearest: umask");
	check_refused("cpu/event=0x1000/", -EINVAL, "does not fit");
	check_refused("cpu/any=2/", -EINVAL, "does not fit");
	check_refused("cpu/event=x/", -EINVAL, "not a number");
	check_refused("cpu/event=-1/", -EINVAL, "not a number");
	check_refused("cpu/event= 1/", -EINVAL, "not a number");
	check_refused("cpu/event=/", -EINVAL, "not a number");
	check_refused("cpu/event=99999999999999999999/", -EINVAL, "not a number");
	check_refused("cpu/wrong/", -EINVAL, "not a number");
	check_refused("cpu/itself/", -ENOENT, "itself"); /* no endless recursion */
	check_refused("cpu/fourth=1/", -EOPNOTSUPP, "config3");
	check_refused("cpu/broken=1/", -EINVAL, "cannot be used");
	check_refused("cpu/nothing=1/", -EINVAL, "cannot be used");
	check_refused("cpu//", -EINVAL, "empty term");
	check_refused("cpu/event=1,/", -EINVAL, "empty term");
	check_refused("cpu/../type/", -ENOENT, "no event");
	check_refused("../devices/x/", -ENOENT, "no PMU");
	check_refused("cpu", -EINVAL, "written");
	check_refused("cpu/", -EINVAL, "written");
	check_refused("/", -EINVAL, "written");
	check_refused("cpu/event=1", -EINVAL, "written");
}

static void test_event_long(void **state)
{
	char text[4096], *big = malloc(1 << 20);

	(void)state;
	make_pmus();
	assert_non_null(big);
	memset(text, 'e', sizeof(text));
	memcpy(text, "cpu/", 4);
	text[sizeof(text) - 2] = '/';
	text[sizeof(text) - 1] = '\0';
	check_refused(text, -EINVAL, "written");
	memset(big, '1', 1 << 20);
	tree_bytes(PMUS "cpu/format/event", big, 1 << 20);
	check_refused("cpu/event=1/", -EINVAL, "cannot be used");
	tree_bytes(PMUS "cpu/events/misses", big, 1 << 20);
	check_refused("cpu/misses/", -EFBIG, "cannot be read");
	tree_bytes(PMUS "cpu/type", big, 1 << 20);
	check_refused("cpu/misses/", -EFBIG, "type of PMU cpu");
	tree_file(PMUS "cpu/type", "4294967296\n");
	check_refused("cpu/misses/", -ERANGE, "type of PMU cpu");
	free(big);
}

static void test_lacks_core_pmu(void **state)
{
	(void)state;
	assert_false(csw_sysfs_lacks_core_pmu()); /* no /sys: not known */
	tree_file(PMUS "msr/type", "9\n");
	assert_true(csw_sysfs_lacks_core_pmu());
	tree_file(PMUS "cpu/type", "4\n");
	assert_false(csw_sysfs_lacks_core_pmu());
}

static void test_cpu_for(void **state)
{
	(void)state;
	assert_int_equal(csw_sysfs_cpu_for(10), 0); /* nothing says anything */
	make_pmus();
	tree_file("/sys/devices/system/cpu/online", "2-31\n");
	assert_int_equal(csw_sysfs_cpu_for(10), 16);
	assert_int_equal(csw_sysfs_cpu_for(9), 2);
	assert_int_equal(csw_sysfs_cpu_for(PERF_TYPE_SOFTWARE), 2);
	tree_file(PMUS "cpu_atom/cpus", "\n"); /* all of them offline */
	assert_int_equal(csw_sysfs_cpu_for(10), 2);
	/* The other kind of core has the type of raw codes. */
	assert_int_equal(csw_sysfs_cpu_for(PERF_TYPE_RAW), 2);
	tree_file(PMUS "cpu_core/type", "4\n");
	tree_file(PMUS "cpu_core/cpus", "4-15\n");
	assert_int_equal(csw_sysfs_cpu_for(PERF_TYPE_RAW), 4);
	assert_int_equal(csw_sysfs_cpu_for(PERF_TYPE_SOFTWARE), 2);
}

static bool is_partial(const char *online, const char *cpus)
{
	char list[CSW_SYSFS_LIST_BYTES];

	tree_file("/sys/devices/system/cpu/online", online);
	tree_file(PMUS "cpu_atom/cpus", cpus);
	if (!csw_sysfs_pmu_is_partial(10, list, sizeof(list)))
		return false;
	assert_memory_equal(list, cpus, strlen(list));
	return true;
}

static void test_partial_pmu(void **state)
{
	char list[CSW_SYSFS_LIST_BYTES];

	(void)state;
	assert_false(csw_sysfs_pmu_is_partial(10, list, sizeof(list))); /* nothing says anything */
	make_pmus();
	assert_false(is_partial("0-3\n", "0-3\n"));
	assert_false(is_partial("1,3\n", "0-3,8\n")); /* some of its own are offline */
	assert_true(is_partial("0-3\n", "1-3\n"));
	assert_true(is_partial("0-3\n", "0,2-3\n"));
	assert_true(is_partial("0-3\n", "0-2\n"));
	assert_true(is_partial("0-3\n", "4-5\n"));
	assert_false(is_partial("0-3\n", "\n"));
	assert_false(is_partial("0-3\n", "rubbish\n"));
	assert_false(csw_sysfs_pmu_is_partial(9, list, sizeof(list)));
	assert_false(csw_sysfs_pmu_is_partial(PERF_TYPE_SOFTWARE, list, sizeof(list)));
}

#define WITH_TREE(test) cmocka_unit_test_setup_teardown(test, tree_setup, tree_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpulist),
		cmocka_unit_test(test_cpulist_malformed),
		WITH_TREE(test_online),
		WITH_TREE(test_online_many),
		WITH_TREE(test_read),
		WITH_TREE(test_tracepoint),
		WITH_TREE(test_tracepoint_damage),
		WITH_TREE(test_tracepoint_unreadable),
		WITH_TREE(test_tracepoint_nearest),
		WITH_TREE(test_tracepoint_of_the_effective_user),
		WITH_TREE(test_subsystem_unreadable),
		WITH_TREE(test_lacks_core_pmu),
		WITH_TREE(test_event),
		WITH_TREE(test_event_refused),
		WITH_TREE(test_event_long),
		WITH_TREE(test_cpu_for),
		WITH_TREE(test_partial_pmu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
