/*
 * The table of triggers: what each CPU model answers, through the catalogue on a made-up machine
 * and through the real command; libpfm4 is the real one, told which model to be.
 *
 * A program learns only once what LIBPFM_FORCE_PMU says, so each model has a process of its own.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/wait.h>

#include "engine/arch/watch.h"
#include "engine/catalogue.h"
#include "engine/percpu.h"
#include "engine/pfm.h"
#include "engine/triggers.h"
#include "tests/tryout_kernel.h"

#define PMUS "/sys/bus/event_source/devices/"
#define MACHINE_OF(...) ((struct csw_trigger_machine){ __VA_ARGS__ })

static struct {
	bool has_pmu;
	int refuses; /* -errno to all; 0: as below */
} kernel;

static int answer(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	(void)pid;
	(void)cpu;
	if (kernel.refuses)
		return kernel.refuses;
	return kernel.has_pmu || attr->type == PERF_TYPE_SOFTWARE ? 0 : -ENOENT;
}

static int setup(void **state)
{
	if (tryout_setup(state, answer))
		return -1;
	memset(&kernel, 0, sizeof(kernel));
	kernel.has_pmu = true;
	tryout.cpu.min_period = 2;
	tree_file("/sys/devices/system/cpu/online", "0-1\n");
	tree_file("/proc/sys/kernel/perf_event_paranoid", "2\n");
	tree_file("/proc/sys/kernel/osrelease", "6.1.0\n");
	tree_file("/proc/cpuinfo", "flags : fpu pcid pti\n");
	return 0;
}

static void says(const char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("\"%s\" does not say \"%s\"", text, what);
}

static struct csw_trigger take(const char *name, uint64_t sav)
{
	struct csw_error err = { 0 };
	struct csw_trigger t;

	if (csw_catalogue_trigger(name, sav, &t, &err))
		fail_msg("%s: %s", name, err.text);
	assert_string_equal(t.event.name, name);
	assert_string_equal(t.forced, "");
	return t;
}

static void refuse(const char *name, int code, const char *why)
{
	struct csw_error err = { 0 };
	struct csw_trigger t;
	int ret = csw_catalogue_trigger(name, 1, &t, &err);

	if (ret != code)
		fail_msg("%s: %d instead of %d: %s", name, ret, code, err.text);
	assert_int_equal(err.code, code);
	says(err.text, why);
	assert_int_equal(csw_catalogue_trigger(name, 1, &t, NULL), code);
}

/* What speaks against it is told; insisting uses it and keeps the reason. */
static void force(const char *name, const char *became, const char *why)
{
	struct csw_error err = { 0 };
	struct csw_trigger t;

	refuse(name, -EOPNOTSUPP, why);
	if (csw_catalogue_force(name, CSW_SAV_AUTO, &t, &err))
		fail_msg("%s: %s", name, err.text);
	says(t.forced, why);
	says(t.event.became, became);
}

/* ---- the models ---- */

/* What one model answers; NULL: refused, and then the reason. */
struct answer {
	const char *event, *why;
};

static const struct model {
	const char *name;
	struct answer seg_load, tlb_flush, llc;
} models[] = {
	{ "core",
	  { "core::SEGMENT_REG_LOADS 0x6", "loads no segment register" },
	  { NULL, "before Sandy Bridge" },
	  { "core::LLC_MISSES 0x412e", NULL } },
	{ "nhm",
	  { "nhm::SEGMENT_REG_LOADS 0x1f8", "loads no segment register" },
	  { NULL, "before Sandy Bridge" },
	  { "nhm::LLC_MISSES 0x412e", NULL } },
	{ "snb",
	  { NULL, "after Nehalem" },
	  { "snb::TLB_FLUSH:STLB_ANY 0x20bd", NULL },
	  { "snb::", NULL } },
	{ "skl",
	  { NULL, "after Nehalem" },
	  { "skl::TLB_FLUSH:STLB_ANY 0x20bd", NULL },
	  { "skl::LONGEST_LAT_CACHE:MISS 0x412e", NULL } },
	{ "icl",
	  { NULL, "after Nehalem" },
	  { "icl::TLB_FLUSH:STLB_ANY 0x20bd", NULL },
	  { "icl::LONGEST_LAT_CACHE:MISS 0x412e", NULL } },
	{ "spr",
	  { NULL, "after Nehalem" },
	  { NULL, "Sapphire Rapids" },
	  { "spr::LONGEST_LAT_CACHE:MISS 0x412e", NULL } },
	{ "amd64_fam10h_barcelona",
	  { "amd64_fam10h_barcelona::SEGMENT_REGISTER_LOADS:GS 0x2020", NULL },
	  { NULL, "GLOBAL_TLB_FLUSHES" },
	  { NULL, "DATA_CACHE_REFILLS_FROM_SYSTEM" } },
	{ "amd64_fam15h_interlagos",
	  { "amd64_fam15h_interlagos::SEGMENT_REGISTER_LOADS:GS 0x2020", NULL },
	  { NULL, "GLOBAL_TLB_FLUSHES" },
	  { NULL, "DATA_CACHE_REFILLS_FROM_NORTHBRIDGE" } },
	{ "amd64_fam17h_zen2",
	  { NULL, "AMD dropped" },
	  { "amd64_fam17h_zen2::TLB_FLUSHES:ALL 0xff78", NULL },
	  { NULL, "DATA_CACHE_REFILLS_FROM_SYSTEM" } },
	{ "amd64_fam19h_zen4",
	  { NULL, "AMD dropped" },
	  { "amd64_fam19h_zen4::TLB_FLUSHES:ALL 0xff78", NULL },
	  { NULL, "ANY_DATA_CACHE_FILLS_FROM_SYSTEM" } },
};

static const struct model *model; /* this process is one */

static void check_answer(const char *name, const struct answer *a)
{
	if (a->event && a->why)
		force(name, a->event, a->why);
	else if (a->event)
		says(take(name, CSW_SAV_AUTO).event.became, a->event);
	else
		refuse(name, -EOPNOTSUPP, a->why);
	if (!a->event && !csw_catalogue_force(name, 1, &(struct csw_trigger){ .sav = 0 }, NULL))
		fail_msg("%s: there is nothing, and that was forced", name);
}

static void test_answers(void **state)
{
	static const struct answer no_descriptor = { NULL, "after the Pentium (P5)" };

	(void)state;
	check_answer("seg_load", &model->seg_load);
	check_answer("tlb_flush", &model->tlb_flush);
	check_answer("pid_change", &model->tlb_flush); /* the same event or none */
	check_answer("ldt_load", &no_descriptor);
	check_answer("desc_load", &no_descriptor);
	assert_string_equal(take("auto", 1).event.became, "switch (context-switches)");
}

/* The model's answer is told as well where nothing counts. */
static void test_without_pmu(void **state)
{
	(void)state;
	kernel.has_pmu = false;
	if (model->seg_load.event) {
		refuse("seg_load", -EOPNOTSUPP, model->seg_load.event);
		refuse("seg_load", -EOPNOTSUPP, "but there is no hardware PMU here: this is a");
	}
	if (model->seg_load.why)
		refuse("seg_load", -EOPNOTSUPP, model->seg_load.why);
	if (model->tlb_flush.event)
		refuse("tlb_flush", -EOPNOTSUPP, model->tlb_flush.event);
	assert_int_equal(
		csw_catalogue_force("tlb_flush", 1, &(struct csw_trigger){ .sav = 0 }, NULL),
		-EOPNOTSUPP);
}

/* Last-level misses or a refusal that names what comes nearest, never another level. */
static void test_llc(void **state)
{
	struct csw_error err = { 0 };
	struct csw_event e;
	int ret = csw_catalogue_counter("LLC_MISSES", &e, &err);

	(void)state;
	if (!model->llc.event) {
		assert_int_equal(ret, -EOPNOTSUPP);
		says(err.text, model->llc.why);
		return;
	}
	if (ret)
		fail_msg("%s", err.text);
	says(e.became, model->llc.event);
	assert_true(e.config == 0x412e);
}

/* libpfm4 encodes every event of the table as the table says. */
static void test_codes(void **state)
{
	struct csw_trigger_machine m = { .cores = "" };
	const struct csw_trigger_entry *e;

	(void)state;
	csw_pfm_core(m.cores, sizeof(m.cores));
	for (size_t i = 0; (e = csw_trigger_entry_at(i)); i++) {
		struct csw_event event = { .flags = 0 };
		char name[CSW_EVENT_NAME_BYTES];
		struct csw_error err = { 0 };

		assert_true(e->event || e->why);
		if (!e->event)
			continue;
		csw_trigger_event_name(e, &m, name, sizeof(name));
		if (!strstr(name, "::"))
			continue;
		if (csw_pfm_encode(name, &event, &err))
			fail_msg("%s: %s", name, err.text);
		assert_true(event.config == e->code);
	}
}

/* ---- sample-after values, conditions ---- */

static void test_segment_loads(void **state)
{
	struct csw_trigger t = take("seg_load", 1);

	(void)state;
	assert_string_equal(t.event.became, "amd64_fam10h_barcelona::SEGMENT_REGISTER_LOADS:GS "
					    "0x2020 (sav 1 -> 2, the events per switch here)");
	assert_true(t.sav == 2);
	/* execve loads it, too: no rule may rely on the number */
	assert_int_equal(t.phase, CSW_PHASE_ANY);
	assert_int_equal(t.per_switch, 0);
	assert_true(t.process.known && t.process.min == 2 && t.thread.max == 2);
	assert_int_equal(t.sample_of, CSW_SAMPLE_OF_OUTGOING);
	assert_true(t.event.flags & CSW_EVENT_HARDWARE);
	assert_string_equal(take("seg_load", CSW_SAV_AUTO).event.became,
			    "amd64_fam10h_barcelona::SEGMENT_REGISTER_LOADS:GS 0x2020");
	assert_true(take("seg_load", CSW_SAV_AUTO).sav == 2);
	assert_true(take("seg_load", 7).sav == 7);
	says(take("seg_load:k", 2).event.became, ":GS 0x2020:k");
	refuse("seg_load:u", -EINVAL, "leave :u away");
	refuse("seg_load:x", -ENOENT, "only :u");
	/* by its own name it is the same event */
	assert_true(take("SEGMENT_REGISTER_LOADS:GS", CSW_SAV_AUTO).sav == 2);
	says(take("r2020", 1).event.became, "the events per switch here");
	says(take("r76", CSW_SAV_AUTO).event.became, "the catalogue does not know this event");
	kernel.refuses = -EACCES;
	tree_file(PMUS "cpu/type", "4\n");
	refuse("seg_load", -EACCES, "perf_event_paranoid");
}

static void test_fsgsbase(void **state)
{
	(void)state;
	tree_file("/proc/cpuinfo", "flags : fpu fsgsbase\n");
	tree_file("/proc/sys/kernel/osrelease", "5.8.18\n");
	take("seg_load", 2); /* the kernel does not use it yet */
	tree_file("/proc/sys/kernel/osrelease", "5.9.0\n");
	force("seg_load", "SEGMENT_REGISTER_LOADS:GS", "FSGSBASE");
	/* without a PMU these flags may be those of another CPU than the one told */
	kernel.has_pmu = false;
	refuse("seg_load", -EOPNOTSUPP, "no hardware PMU here");
}

static void test_period_floor(void **state)
{
	(void)state;
	tryout.cpu.min_period = 16;
	force("seg_load", "(sav 2 -> 16, the kernel's least)", "no period below 16");
	tryout.cpu.min_period = 1;
	assert_true(take("seg_load", 1).sav == 1);
}

static void test_page_table_isolation(void **state)
{
	(void)state;
	take("tlb_flush", 1);
	tree_file("/proc/cpuinfo", "flags : fpu pti\n");
	force("tlb_flush", "TLB_FLUSH:STLB_ANY", "no PCID");
	tree_file("/proc/cpuinfo", "flags : fpu\n");
	assert_string_equal(take("pid_change", 1).event.became,
			    "skl::TLB_FLUSH:STLB_ANY 0x20bd (sav 1 -> 2, the kernel's least)");
}

/* ---- CPUs that libpfm4 does not know ---- */

static void check_found(uint32_t id, const struct csw_trigger_machine *m, const char *name,
			const char *why)
{
	const struct csw_trigger_entry *e = csw_trigger_find(id, m);
	char written[CSW_EVENT_NAME_BYTES] = "";

	assert_non_null(e);
	if (e->event)
		csw_trigger_event_name(e, m, written, sizeof(written));
	assert_string_equal(written, name);
	if (why)
		says(e->why, why);
	else
		assert_null(e->why);
}

static void test_by_cpu(void **state)
{
	const struct csw_trigger_machine
		goldmont_plus =
			MACHINE_OF(.cpu = { .vendor = "GenuineIntel", .family = 6, .model = 0x7a }),
		skymont =
			MACHINE_OF(.cpu = { .vendor = "GenuineIntel", .family = 6, .model = 0xbd }),
		zen5 = MACHINE_OF(.cpu = { .vendor = "AuthenticAMD", .family = 26, .model = 2 }),
		p5 = MACHINE_OF(.cpu = { .vendor = "GenuineIntel", .family = 5, .model = 2 }),
		alder = MACHINE_OF(.cores = "adl_glc, adl_grt"),
		power = MACHINE_OF(.cpu = { .brand = "POWER9" });

	(void)state;
	check_found(CSW_TRIGGER_TLB_FLUSH, &goldmont_plus, "r20bd", NULL);
	check_found(CSW_TRIGGER_PID_CHANGE, &goldmont_plus, "r20bd", NULL);
	check_found(CSW_TRIGGER_TLB_FLUSH, &skymont, "cpu_atom/event=0xbd,umask=0x20/", NULL);
	check_found(CSW_TRIGGER_TLB_FLUSH, &zen5, "rff78", "erratum 1569");
	check_found(CSW_TRIGGER_SEG_LOAD, &zen5, "", "AMD dropped");
	check_found(CSW_TRIGGER_LDT_LOAD, &p5, "", "0x0f");
	check_found(CSW_TRIGGER_TLB_FLUSH, &alder, "", "Alder Lake");
	for (uint32_t id = 0; id < CSW_TRIGGER_IDS; id++)
		if (id == CSW_TRIGGER_TLB_FLUSH || id == CSW_TRIGGER_SEG_LOAD ||
		    id == CSW_TRIGGER_PID_CHANGE)
			check_found(id, &power, "", "for this CPU");
	assert_null(csw_trigger_find(CSW_TRIGGER_TID_CHANGE, &power));
	assert_null(csw_trigger_find(CSW_TRIGGER_MEM_STORE, &goldmont_plus));
	assert_null(csw_trigger_find(CSW_TRIGGER_SWITCH, &goldmont_plus));
	assert_null(csw_trigger_find_code(0x2020, &goldmont_plus)); /* another CPU's */
	assert_non_null(csw_trigger_find_code(0x20bd, &goldmont_plus));
}

/* The E-cores' event is of their own PMU; where the kernel has none, the name stays known. */
static void test_skymont(void **state)
{
	(void)state;
	tryout.cpu = (struct csw_cpu){
		.vendor = "GenuineIntel", .family = 6, .model = 0xbd, .min_period = 2
	};
	tree_file(PMUS "msr/type", "9\n");
	refuse("tlb_flush", -EOPNOTSUPP, "cpu_atom");
	tree_file(PMUS "cpu_atom/type", "10\n");
	tree_file(PMUS "cpu_atom/cpus", "0-1\n");
	tree_file(PMUS "cpu_atom/format/event", "config:0-7\n");
	tree_file(PMUS "cpu_atom/format/umask", "config:8-15\n");
	says(take("pid_change", 1).event.became, "cpu_atom/event=0xbd,umask=0x20/ 0x20bd");
	tryout.cpu.model = 0x7a;
	says(take("tlb_flush", 1).event.became, "raw 0x20bd");
	tryout.cpu = (struct csw_cpu){ .vendor = "AuthenticAMD", .family = 26, .min_period = 2 };
	force("tlb_flush", "raw 0xff78", "erratum 1569");
}

static void test_arm_models(void **state)
{
	const struct csw_trigger_machine n1 = MACHINE_OF(.cores = "arm_n1"),
					 a53 = MACHINE_OF(.cpu = { .vendor = "ARM",
								   .family = 8,
								   .model = 0xd03 }),
					 a53_known = MACHINE_OF(.cores = "arm_ac53");

	(void)state;
	check_found(CSW_TRIGGER_TID_CHANGE, &n1, "arm_n1::CID_WRITE_RETIRED", NULL);
	check_found(CSW_TRIGGER_PID_CHANGE, &n1, "arm_n1::TTBR_WRITE_RETIRED", NULL);
	check_found(CSW_TRIGGER_TID_CHANGE, &a53, "rb", "845719");
	check_found(CSW_TRIGGER_TID_CHANGE, &a53_known, "arm_ac53::CID_WRITE_RETIRED", "845719");
	check_found(CSW_TRIGGER_PID_CHANGE, &a53_known, "", "for this CPU");
}

/* libpfm4 knows the model's events, the kernel which of them this one has: virtual ones lack some.
 */
static void test_arm_unlisted(void **state)
{
	const struct csw_trigger_machine n1 = MACHINE_OF(.cores = "arm_n1");
	const struct csw_trigger_entry *e = csw_trigger_find(CSW_TRIGGER_PID_CHANGE, &n1);
	char why[CSW_FORCED_BYTES];

	(void)state;
	tree_file("/proc/cpuinfo", "Features : fp asimd atomics\n");
	assert_true(csw_trigger_unmet(e, why, sizeof(why)));
	says(why, "does not list it");
	tree_file(PMUS "armv8_pmuv3_0/type", "10\n");
	tree_file(PMUS "armv8_pmuv3_0/events/cid_write_retired", "event=0x000b\n");
	assert_true(csw_trigger_unmet(e, why, sizeof(why)));
	tree_file(PMUS "armv8_pmuv3_0/events/ttbr_write_retired", "event=0x001c\n");
	assert_false(csw_trigger_unmet(e, why, sizeof(why)));
}

/* An arm64 machine whose kernel says which events its PMU has; libpfm4 knows none of them. */
static void arm_machine(const char *config)
{
	tryout.cpu =
		(struct csw_cpu){ .vendor = "ARM", .family = 8, .model = 0xd0c, .min_period = 1 };
	tree_file(PMUS "armv8_pmuv3_0/type", "10\n");
	tree_file(PMUS "armv8_pmuv3_0/cpus", "0-1\n");
	tree_file(PMUS "armv8_pmuv3_0/format/event", "config:0-15\n");
	tree_file(PMUS "armv8_pmuv3_0/events/cid_write_retired", "event=0x000b\n");
	tree_file(PMUS "armv8_pmuv3_0/events/ttbr_write_retired", "event=0x001c\n");
	tree_file("/proc/cpuinfo", "Features : fp asimd atomics\n");
	if (config)
		tree_file("/boot/config-6.1.0", config);
}

static void test_arm_threads(void **state)
{
	struct csw_trigger t;

	(void)state;
	arm_machine("CONFIG_PID_IN_CONTEXTIDR=y\n");
	t = take("tid_change", 1);
	assert_string_equal(t.event.became, "armv8_pmuv3_0/cid_write_retired/ 0xb");
	assert_int_equal(t.event.type, 10);
	assert_true(t.sav == 1);
	assert_int_equal(t.phase, CSW_PHASE_INSIDE);
	assert_int_equal(t.per_switch, 1);
	assert_int_equal(t.sample_of, CSW_SAMPLE_OF_INCOMING);
	/* exact, so auto takes it, but not where it may not be used */
	t = take("auto", 1);
	assert_string_equal(t.event.became, "tid_change: armv8_pmuv3_0/cid_write_retired/ 0xb");
	assert_int_equal(t.phase, CSW_PHASE_INSIDE);
	assert_int_equal(t.event.type, 10);
	refuse("auto:u", -EINVAL, "leave :u away");
	kernel.has_pmu = false;
	refuse("tid_change", -EOPNOTSUPP, "would be armv8_pmuv3_0/cid_write_retired/ 0xb");
	t = take("auto", 1);
	assert_string_equal(t.event.became, "switch (context-switches)");
	assert_int_equal(t.phase, CSW_PHASE_BEFORE);
	assert_int_equal(t.event.type, PERF_TYPE_SOFTWARE);
	/* where the least period is above the one occurrence per switch, every sample would be of
	 * two threads */
	kernel.has_pmu = true;
	tryout.cpu.min_period = 2;
	force("tid_change", "(sav 1 -> 2, the kernel's least)", "no period below 2");
	assert_string_equal(take("auto", 1).event.became, "switch (context-switches)");
}

/* Two kinds of cores: what one of them has does not count on the other, so it is no trigger for all
 * CPUs, and for some only to whoever says which. */
static void test_arm_two_kinds(void **state)
{
	struct csw_trigger t;

	(void)state;
	arm_machine("CONFIG_PID_IN_CONTEXTIDR=y\n");
	tree_file("/sys/devices/system/cpu/online", "0-3\n");
	t = take("tid_change", 1);
	assert_string_equal(t.event.became,
			    "armv8_pmuv3_0/cid_write_retired/ 0xb (on CPUs 0-1 only: use -C)");
	assert_string_equal(take("auto", 1).event.became, "switch (context-switches)");
}

static void test_arm_without_contextidr(void **state)
{
	(void)state;
	arm_machine(NULL);
	force("tid_change", "cid_write_retired", "neither /proc/config.gz nor");
	tree_file("/boot/config-6.1.0", "# CONFIG_PID_IN_CONTEXTIDR is not set\n");
	force("tid_change", "cid_write_retired", "built without CONFIG_PID_IN_CONTEXTIDR");
	assert_string_equal(take("auto", 1).event.became, "switch (context-switches)");
}

static int percpu_find(const char *name, struct csw_percpu_variable *out, struct csw_error *err)
{
	(void)err;
	*out = (struct csw_percpu_variable){ .offset = 0x40, .bytes = 8 };
	return strcmp(name, csw_arch_current_task[0]) ? -ENOENT : 0;
}

static int percpu_address(uint64_t offset, unsigned cpu, uint64_t *address, struct csw_error *err)
{
	(void)err;
	*address = 0xffff000000000000 + 0x1000 * cpu + offset;
	return 0;
}

/* Where the PMU cannot tell threads apart the debug registers can; auto does not take them by
 * itself. */
static void test_arm_watches(void **state)
{
	static const struct csw_percpu_ops ops = { .find = percpu_find, .address = percpu_address };
	struct csw_trigger t;

	(void)state;
	if (!csw_arch_watch_loads)
		skip();
	arm_machine("# CONFIG_PID_IN_CONTEXTIDR is not set\n");
	csw_percpu_set_ops_for_tests(&ops);
	t = take("tid_change", 1);
	assert_true(t.event.flags & CSW_EVENT_DEBUG_REGISTER);
	says(t.event.became, csw_arch_current_task[0]);
	assert_int_equal(t.phase, CSW_PHASE_INSIDE);
	assert_int_equal(t.per_switch, 1);
	assert_int_equal(t.sample_of, CSW_SAMPLE_OF_INCOMING);
	assert_true(t.sav == 1);
	assert_string_equal(take("auto", 1).event.became, "switch (context-switches)");
	arm_machine("CONFIG_PID_IN_CONTEXTIDR=y\n");
	says(take("tid_change", 1).event.became, "cid_write_retired");
}

static void test_arm_processes(void **state)
{
	struct csw_trigger t;

	(void)state;
	arm_machine("CONFIG_ARM64_SW_TTBR0_PAN=y\n");
	t = take("pid_change", CSW_SAV_AUTO);
	assert_string_equal(t.event.became, "armv8_pmuv3_0/ttbr_write_retired/ 0x1c");
	assert_true(t.sav == 2);
	assert_int_equal(t.phase, CSW_PHASE_ANY);
	assert_int_equal(t.per_switch, 0);
	tree_file("/proc/cpuinfo", "Features : fp asimd\n"); /* ARMv8.0: no PAN */
	force("pid_change", "ttbr_write_retired", "CONFIG_ARM64_SW_TTBR0_PAN");
	tree_file("/proc/cpuinfo", "Features : fp asimd atomics\n");
	tree_file("/sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n");
	force("pid_change", "ttbr_write_retired", "KPTI");
}

static void test_rates(void **state)
{
	static const struct {
		struct csw_rate rate;
		const char *text;
	} cases[] = {
		{ { 0, 0, 0 }, "an unknown number" },
		{ { 1, 0, 0 }, "0" },
		{ { 1, 2, 2 }, "2" },
		{ { 1, 2, 3 }, "2 to 3" },
		{ { 1, 1, CSW_RATE_OPEN }, "1 or more" },
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(csw_rate_text(&cases[i].rate, text, sizeof(text)),
				    cases[i].text);
}

/* ---- the real command ---- */

static char *list_of(const char *name)
{
	static char text[1 << 16];
	char command[512];
	FILE *pipe;
	size_t nr;

	snprintf(command, sizeof(command),
		 "LIBPFM_FORCE_PMU=%s " CSW_SAMPLE " list triggers --json", name);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	nr = fread(text, 1, sizeof(text) - 1, pipe);
	text[nr] = '\0';
	assert_int_equal(pclose(pipe), 0);
	return text;
}

/* The lines of one trigger, which are one in JSON. */
static void line_of(const char *list, const char *trigger, char *line, size_t bytes)
{
	char start[64];
	const char *at;

	snprintf(start, sizeof(start), "{ \"name\": \"%s\"", trigger);
	at = strstr(list, start);
	line[0] = '\0';
	if (!at)
		fail_msg("%s is not listed", trigger);
	else
		snprintf(line, bytes, "%.*s", (int)strcspn(at, "\n"), at);
}

static void check_listed(const char *list, const char *trigger, const struct answer *a)
{
	char line[4096];

	line_of(list, trigger, line, sizeof(line));
	says(line, a->event ? a->event : a->why);
	if (!a->event)
		says(line, "\"usable\": false");
}

static void test_command(void **state)
{
	char line[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++) {
		const char *list = list_of(models[i].name);

		check_listed(list, "seg_load", &models[i].seg_load);
		check_listed(list, "tlb_flush", &models[i].tlb_flush);
		check_listed(list, "pid_change", &models[i].tlb_flush);
		line_of(list, "ldt_load", line, sizeof(line));
		says(line, "after the Pentium");
		line_of(list, "mem_store:WHERE", line, sizeof(line));
		line_of(list, "tid_change", line, sizeof(line));
		line_of(list, "seg_load", line, sizeof(line));
		if (!strcmp(models[i].name, "amd64_fam10h_barcelona"))
			says(line, "hardware, sav 2, 2 per process switch, 2 per thread switch");
	}
}

/* What the environment says is no CPU: an answer about this one would mislead. */
static void test_command_misspelled(void **state)
{
	char line[4096];

	(void)state;
	line_of(list_of("skylake"), "seg_load", line, sizeof(line));
	says(line, "(LIBPFM_FORCE_PMU=skylake, no CPU that libpfm4 knows)");
}

/* ---- processes ---- */

#define ON_MACHINE(test) cmocka_unit_test_setup_teardown(test, setup, tryout_teardown)

/* The failures of these tests in a child whose libpfm4 sees this model. */
static int run_as(const char *name, const struct CMUnitTest *tests, size_t nr)
{
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	if (!child) {
		if (name)
			setenv("LIBPFM_FORCE_PMU", name, 1);
		exit(_cmocka_run_group_tests(name ? name : "this CPU", tests, nr, NULL, NULL));
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status);
}

#define RUN_AS(name, tests) run_as(name, tests, sizeof(tests) / sizeof(*(tests)))

/* Only libpfm4's PMU of generic events: no model of any CPU. */
#define NO_MODEL "perf"

int main(void)
{
	const struct CMUnitTest each[] = { ON_MACHINE(test_answers), ON_MACHINE(test_without_pmu),
					   ON_MACHINE(test_llc), ON_MACHINE(test_codes) };
	const struct CMUnitTest codes[] = { ON_MACHINE(test_codes) };
	const struct CMUnitTest barcelona[] = { ON_MACHINE(test_segment_loads),
						ON_MACHINE(test_fsgsbase),
						ON_MACHINE(test_period_floor) };
	const struct CMUnitTest skl[] = { ON_MACHINE(test_page_table_isolation) };
	const struct CMUnitTest none[] = {
		ON_MACHINE(test_by_cpu),
		ON_MACHINE(test_arm_models),
		ON_MACHINE(test_arm_threads),
		ON_MACHINE(test_arm_two_kinds),
		ON_MACHINE(test_arm_without_contextidr),
		ON_MACHINE(test_arm_watches),
		ON_MACHINE(test_arm_processes),
		ON_MACHINE(test_arm_unlisted),
		ON_MACHINE(test_skymont),
		ON_MACHINE(test_rates),
	};
	const struct CMUnitTest command[] = { cmocka_unit_test(test_command),
					      cmocka_unit_test(test_command_misspelled) };
	static const char *const others[] = {
		"atom",
		"nhm_ex",
		"snb_ep",
		"ivb",
		"ivb_ep",
		"hsw",
		"hsw_ep",
		"bdw",
		"bdw_ep",
		"skx",
		"clx",
		"icx",
		"amd64_k8_revb",
		"amd64_k8_revg",
		"amd64_fam10h_shanghai",
		"amd64_fam10h_istanbul",
		"amd64_fam11h_turion",
		"amd64_fam12h_llano",
		"amd64_fam14h_bobcat",
		"amd64_fam16h",
		"amd64_fam19h_zen3",
	};
	int nr = 0;

	for (model = models; model < models + sizeof(models) / sizeof(*models); model++)
		nr += RUN_AS(model->name, each);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		nr += RUN_AS(others[i], codes);
	nr += RUN_AS("amd64_fam10h_barcelona", barcelona);
	nr += RUN_AS("skl", skl);
	nr += RUN_AS(NO_MODEL, none);
	nr += RUN_AS(NULL, command);
	return nr != 0;
}
