/* engine/spec: texts to a plan, on the simulated machine whose names never change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/error.h"
#include "engine/spec.h"
#include "fuzz/fuzz.h"

static int plan_of(struct csw_plan *plan, const char *trigger, const char *events,
		   struct csw_error *err)
{
	memset(plan, 0, sizeof(*plan));
	err->text[0] = '\0';
	return csw_spec_plan(plan, &csw_sim_driver, trigger, events, 0, err);
}

static void test_plan(void **state)
{
	struct csw_plan plan = { .nr_counters = 0 };
	struct csw_error err;

	(void)state;
	assert_int_equal(plan_of(&plan, "switch", "page-faults,task-clock", &err), 0);
	assert_string_equal(plan.trigger.event.name, "switch");
	assert_int_equal(plan.trigger.sav, 1);
	assert_int_equal(plan.nr_counters, 2);
	assert_string_equal(plan.counters[0].name, "page-faults");
	assert_string_equal(plan.counters[1].name, "task-clock");
	assert_int_equal(plan_of(&plan, "switch", " page-faults,\ttask-clock \n", &err), 0);
	assert_string_equal(plan.counters[0].name, "page-faults");
	assert_string_equal(plan.counters[1].name, "task-clock");
	assert_int_equal(csw_spec_plan(&plan, &csw_sim_driver, NULL, "page-faults", 3, &err), 0);
	assert_int_equal(plan.trigger.sav, 3);
	assert_int_equal(plan.nr_counters, 1);
}

static void refused(const char *trigger, const char *events, int code, const char *why)
{
	struct csw_plan plan = { .nr_counters = 0 };
	struct csw_error err;

	assert_int_equal(plan_of(&plan, trigger, events, &err), code);
	assert_int_equal(err.code, code);
	assert_non_null(strstr(err.text, why));
}

static void test_refused(void **state)
{
	char name[CSW_EVENT_NAME_BYTES + 1];

	(void)state;
	refused("switch", NULL, -EINVAL, "no event is named");
	refused("switch", "", -EINVAL, "no event is named");
	refused("switch", ",", -EINVAL, "empty element");
	refused("switch", "page-faults,", -EINVAL, "empty element");
	refused("switch", ",page-faults", -EINVAL, "empty element");
	refused("switch", "page-faults,,task-clock", -EINVAL, "empty element");
	refused("switch", "page-faults, ,task-clock", -EINVAL, "empty element");
	refused("switch", "{page-faults,task-clock}", -EINVAL, "leave out the braces");
	refused("switch", "task-clock,page-faults}:S", -EINVAL, "leave out the braces");
	refused("switch", "sched:*", -EINVAL, "patterns are none");
	refused("switch", "page-fault?", -EINVAL, "patterns are none");
	refused("switch", "page-faults,task-clock,page-faults", -EINVAL, "page-faults is listed");
	refused("switch", "page-fautls", -ENOENT, "page-faults");
	refused("swtich", "page-faults", -ENOENT, "switch");
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	refused("switch", name, -EINVAL, "128 characters");
}

/* ---- a trigger for loads that sees stores as well ---- */

static void check_stores(const char *trigger, const char *events, const char *opts, unsigned stores,
			 unsigned nr_counters)
{
	struct csw_plan plan = { .driver_opts = opts };
	struct csw_error err;

	if (csw_spec_plan(&plan, &csw_sim_driver, trigger, events, 2, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(plan.stores, stores);
	assert_int_equal(plan.nr_counters, nr_counters);
}

static void test_stores_are_counted(void **state)
{
	static const char trigger[] = "mem_load:current_task";
	struct csw_plan plan = { .driver_opts = "model=intel" };
	struct csw_error err;

	(void)state;
	assert_int_equal(csw_spec_plan(&plan, &csw_sim_driver, trigger, "page-faults", 2, &err), 0);
	assert_int_equal(plan.stores, 2);
	assert_string_equal(plan.counters[0].name, "page-faults");
	assert_string_equal(plan.counters[1].name, "mem_store:current_task");
	/* Whoever lists them has them once, under whatever name. */
	check_stores(trigger, "mem_store:current_task,cycles", "model=intel", 1, 2);
	check_stores(trigger, "cycles,tid_change", "model=amd", 2, 2);
	/* Where a watch sees loads alone, and for any other trigger, there is nothing to add. */
	check_stores("mem_load:__entry_task", "cycles", "model=arm64", 0, 1);
	check_stores("mem_store:current_task", "cycles", "model=intel", 0, 1);
	check_stores("switch", "mem_load:current_task", "model=intel", 0, 1);
}

static int resolve_any(const char *name, struct csw_event *out, struct csw_error *err)
{
	(void)err;
	*out = (struct csw_event){ .type = 1 };
	strcpy(out->name, name);
	return 0;
}

static int resolve_any_trigger(const char *name, uint64_t sav, struct csw_trigger *out,
			       struct csw_error *err)
{
	out->sav = sav;
	return resolve_any(name, &out->event, err);
}

static int force_any_trigger(const char *name, uint64_t sav, struct csw_trigger *out,
			     struct csw_error *err)
{
	strcpy(out->forced, "on purpose");
	return resolve_any_trigger(name, sav, out, err);
}

/* A driver that knows every name. */
static const struct csw_driver_ops any = { .name = "any",
					   .resolve_counter = resolve_any,
					   .resolve_trigger = resolve_any_trigger,
					   .force_trigger = force_any_trigger };

static void test_force(void **state)
{
	struct csw_plan plan = { .force = true };

	(void)state;
	assert_int_equal(csw_spec_plan(&plan, &any, "t", "a", CSW_SAV_AUTO, NULL), 0);
	assert_string_equal(plan.trigger.forced, "on purpose");
	assert_true(plan.trigger.sav == CSW_SAV_AUTO); /* the driver's to settle */
	/* a driver that refuses nothing needs no such call */
	assert_int_equal(csw_spec_plan(&plan, &csw_sim_driver, "seg_load", "page-faults",
				       CSW_SAV_AUTO, NULL),
			 0);
	assert_true(plan.trigger.sav == 1);
	assert_string_equal(plan.trigger.forced, "");
}

static int resolve_counter_unlike(const char *name, struct csw_event *out, struct csw_error *err)
{
	resolve_any(name, out, err);
	if (!strcmp(name, "mem_store:gone"))
		return csw_error_set(err, -EOPNOTSUPP, "no watch");
	if (!strcmp(name, "mem_store:secret"))
		return csw_error_set(err, -EACCES, "not for you");
	out->config = strlen(name);
	return 0;
}

static int resolve_loads(const char *name, uint64_t sav, struct csw_trigger *out,
			 struct csw_error *err)
{
	resolve_any_trigger(name, sav, out, err);
	out->event.flags = CSW_EVENT_STORES_TOO;
	return 0;
}

static const struct csw_driver_ops watching = { .name = "watching",
						.resolve_counter = resolve_counter_unlike,
						.resolve_trigger = resolve_loads };

static void refused_stores(const char *trigger, const char *events, int code, const char *why)
{
	struct csw_plan plan = { .nr_counters = 0 };
	struct csw_error err;

	assert_int_equal(csw_spec_plan(&plan, &watching, trigger, events, 1, &err), code);
	assert_non_null(strstr(err.text, why));
}

/* What counts them cannot be had: refused, never left out. */
static void test_stores_refused(void **state)
{
	char name[CSW_EVENT_NAME_BYTES] = "mem_load:", events[256] = "a";
	struct csw_plan plan = { .nr_counters = 0 };

	(void)state;
	refused_stores("mem_load:gone", "a", -EOPNOTSUPP, "no watch");
	refused_stores("mem_load:secret", "a", -EACCES, "not for you");
	memset(name + 9, 'x', sizeof(name) - 10);
	refused_stores(name, "a", -EINVAL, "too long");
	name[sizeof(name) - 2] = '\0';
	assert_int_equal(csw_spec_plan(&plan, &watching, name, "a", 1, NULL), 0);
	assert_int_equal(plan.stores, 2);
	for (int i = 1; i < CSW_COUNTERS_MAX; i++)
		snprintf(events + strlen(events), sizeof(events) - strlen(events), ",a%d", i);
	refused_stores("mem_load:here", events, -EINVAL, "at most 32");
}

static void test_slashes(void **state)
{
	struct csw_plan plan = { .nr_counters = 0 };
	struct csw_error err;

	(void)state;
	assert_int_equal(csw_spec_plan(&plan, &any, "t",
				       "cpu/event=0x3c,umask=0/,b,msr/tsc/,cpu/a,b,c/:u", 1, &err),
			 0);
	assert_int_equal(plan.nr_counters, 4);
	assert_string_equal(plan.counters[0].name, "cpu/event=0x3c,umask=0/");
	assert_string_equal(plan.counters[1].name, "b");
	assert_string_equal(plan.counters[2].name, "msr/tsc/");
	assert_string_equal(plan.counters[3].name, "cpu/a,b,c/:u");
	/* A slash that is never closed takes all the rest. */
	assert_int_equal(csw_spec_plan(&plan, &any, "t", "a,cpu/b,c", 1, &err), 0);
	assert_int_equal(plan.nr_counters, 2);
	assert_string_equal(plan.counters[1].name, "cpu/b,c");
}

/* Refuses what its options say. */
static int settle_some(struct csw_plan *plan, struct csw_error *err)
{
	for (unsigned i = 0; i < plan->nr_counters; i++) {
		if (!strcmp(plan->counters[i].name, plan->driver_opts))
			return csw_error_set(err, -EOPNOTSUPP, "no %s here", plan->driver_opts);
		plan->counters[i].config = 7;
	}
	plan->trigger.sav = 2;
	return 0;
}

/* The driver's options have the last word, over all names at once. */
static void test_driver_settles(void **state)
{
	static const struct csw_driver_ops settling = { .name = "settling",
							.resolve_counter = resolve_any,
							.resolve_trigger = resolve_any_trigger,
							.settle = settle_some };
	struct csw_plan plan = { .driver_opts = "c" };
	struct csw_error err = { .code = 0 };

	(void)state;
	assert_int_equal(csw_spec_plan(&plan, &settling, "t", "a,b", 1, &err), 0);
	assert_int_equal(plan.trigger.sav, 2);
	assert_int_equal(plan.counters[1].config, 7);
	assert_int_equal(csw_spec_plan(&plan, &settling, "t", "a,c", 1, &err), -EOPNOTSUPP);
	assert_string_equal(err.text, "no c here");
}

static int resolve_denied(const char *name, struct csw_event *out, struct csw_error *err)
{
	resolve_any(name, out, err);
	if (!strcmp(name, "bogus"))
		return csw_error_set(err, -ENOENT, "there is no %s", name);
	return csw_error_set(err, -EACCES, "%s is not permitted", name);
}

static int resolve_denied_trigger(const char *name, uint64_t sav, struct csw_trigger *out,
				  struct csw_error *err)
{
	out->sav = sav;
	return resolve_denied(name, &out->event, err);
}

/* Who may not count learns of every other mistake all the same. */
static void test_permission_comes_last(void **state)
{
	static const struct csw_driver_ops denied = { .name = "denied",
						      .resolve_counter = resolve_denied,
						      .resolve_trigger = resolve_denied_trigger };
	static const struct {
		const char *trigger, *events;
		int code;
		const char *says;
	} cases[] = {
		{ "t", "a,b,t", -EACCES, "t is not permitted; and a is not permitted; and b is" },
		{ "t", "a,bogus", -ENOENT, "no bogus" },
		{ "bogus", "a", -ENOENT, "no bogus" },
		{ "t", "a,,b", -EINVAL, "empty element" },
		{ "t", "a,b,a", -EINVAL, "listed twice" },
	};
	struct csw_plan plan = { .nr_counters = 0 };
	struct csw_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(
			csw_spec_plan(&plan, &denied, cases[i].trigger, cases[i].events, 1, &err),
			cases[i].code);
		assert_int_equal(err.code, cases[i].code);
		assert_non_null(strstr(err.text, cases[i].says));
		assert_int_equal(
			csw_spec_plan(&plan, &denied, cases[i].trigger, cases[i].events, 1, NULL),
			cases[i].code);
	}
}

static void test_how_many(void **state)
{
	char events[8 * (CSW_COUNTERS_MAX + 1)] = "";
	struct csw_plan plan = { .nr_counters = 0 };
	struct csw_error err;

	(void)state;
	for (int i = 0; i < CSW_COUNTERS_MAX; i++)
		sprintf(events + strlen(events), "%se%d", i ? "," : "", i);
	assert_int_equal(csw_spec_plan(&plan, &any, "t", events, 1, &err), 0);
	assert_int_equal(plan.nr_counters, CSW_COUNTERS_MAX);
	assert_string_equal(plan.counters[CSW_COUNTERS_MAX - 1].name, "e31");
	strcat(events, ",more");
	assert_int_equal(csw_spec_plan(&plan, &any, "t", events, 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "more than 32"));
}

static void check_driver(const char *text, const struct csw_driver_ops *expected, const char *opts)
{
	const struct csw_driver_ops *ops;
	char *driver_opts;
	struct csw_error err;

	assert_int_equal(csw_spec_driver(text, &ops, &driver_opts, &err), 0);
	assert_ptr_equal(ops, expected);
	if (opts)
		assert_string_equal(driver_opts, opts);
	else
		assert_null(driver_opts);
	free(driver_opts);
}

static void test_driver(void **state)
{
	static const char *const wrong[] = { "pref", "", "sims", "si", ":x", "auto:x", "perf\n" };
	const struct csw_driver_ops *ops;
	char *driver_opts;
	struct csw_error err;

	(void)state;
	check_driver(NULL, &csw_perf_driver, NULL);
	check_driver("auto", &csw_perf_driver, NULL);
	check_driver("perf", &csw_perf_driver, NULL);
	check_driver("sim", &csw_sim_driver, NULL);
	check_driver("sim:", &csw_sim_driver, "");
	check_driver("sim:cpus=8,seed=3", &csw_sim_driver, "cpus=8,seed=3");
	check_driver("sim:a:b", &csw_sim_driver, "a:b");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(csw_spec_driver(wrong[i], &ops, &driver_opts, &err), -ENOENT);
		assert_null(ops);
		assert_null(driver_opts);
		assert_non_null(strstr(err.text, "auto, perf, sim"));
		assert_null(strchr(err.text, '\n'));
	}
}

/* The target itself checks what must hold. */
static void test_corpus(void **state)
{
	(void)state;
	assert_true(fuzz_run_corpus(CSW_SOURCE_DIR "/tests/fuzz/corpus/spec", 1) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plan),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_slashes),
		cmocka_unit_test(test_force),
		cmocka_unit_test(test_stores_are_counted),
		cmocka_unit_test(test_stores_refused),
		cmocka_unit_test(test_driver_settles),
		cmocka_unit_test(test_how_many),
		cmocka_unit_test(test_permission_comes_last),
		cmocka_unit_test(test_driver),
		cmocka_unit_test(test_corpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
