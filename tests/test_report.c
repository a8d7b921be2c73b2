/* engine/report: what a table made by hand looks like as text and as JSON, and what happens when it
 * cannot be written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "engine/report.h"
#include "engine/view.h"

#define NR_COUNTERS 5

enum { FAULTS, CLOCK, INSTRUCTIONS, CYCLES, MISSES };

static const struct csw_driver_ops live = { .name = "perf", .caps = CSW_DRIVER_LIVE };
static const struct csw_driver_ops simulated = { .name = "sim", .caps = CSW_DRIVER_SIMULATED };

struct fixture {
	struct csw_plan plan;
	struct csw_aggregation agg;
	struct csw_result result;
	uint32_t worker;
	char *text; /* the last report */
};

static uint32_t add(struct fixture *f, uint16_t kind, int32_t pid, int32_t tid, const char *comm,
		    const uint64_t counts[NR_COUNTERS])
{
	int64_t i = csw_aggregation_add(&f->agg, kind, pid, tid, 1);
	struct csw_agg_row *row;

	assert_true(i >= 0);
	csw_aggregation_count(&f->agg, (uint32_t)i, counts, true);
	row = csw_aggregation_row(&f->agg, (uint32_t)i);
	memcpy(row->comm, comm, strnlen(comm, sizeof(row->comm)));
	row->slices = 12;
	row->voluntary = 10;
	row->preempted = 2;
	row->oncpu_ns = row->exact_ns = row->enabled_ns = row->running_ns = 1234567;
	for (unsigned j = 0; j < NR_COUNTERS; j++)
		f->result.totals[j] += counts[j];
	return (uint32_t)i;
}

static int setup(void **state)
{
	static const char *const names[NR_COUNTERS] = { "page-faults", "task-clock",
							"instructions:u", "cycles:u",
							"LLC_MISSES:u" };
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	f.plan.trigger =
		(struct csw_trigger){ .event = { .name = "switch", .became = "context-switches" },
				      .sav = 2 };
	f.plan.nr_counters = NR_COUNTERS;
	for (unsigned j = 0; j < NR_COUNTERS; j++) {
		strcpy(f.plan.counters[j].name, names[j]);
		strcpy(f.plan.counters[j].became, names[j]);
	}
	f.plan.counters[CLOCK].flags = CSW_EVENT_CLOCK | CSW_EVENT_NANOSECONDS;
	assert_int_equal(csw_aggregation_init(&f.agg, NR_COUNTERS), 0);
	f.result = (struct csw_result){ .plan = &f.plan,
					.driver = &live,
					.agg = &f.agg,
					.enabled_ns = 10000000000,
					.running_ns = 10000000000 };
	f.result.summary = (struct csw_summary){ .nr_cpus = 2,
						 .duration_ns = 5003123456,
						 .triggers = 67,
						 .samples = 30,
						 .lost = 1,
						 .throttled = 2,
						 .unseen = 3,
						 .open = 1,
						 .owner_disagreements = 11,
						 .switches_unseen = 13,
						 .lost_records = 17,
						 .throttles = 19 };
	f.worker = add(&f, CSW_KIND_THREAD, 4242, 4243, "worker",
		       (uint64_t[]){ 300, 1234567, 2000, 1000, 50 });
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	free(f->text);
	f->text = NULL;
	csw_aggregation_free(&f->agg);
	return 0;
}

static int report_to(const struct fixture *f, FILE *file, uint32_t by,
		     const struct csw_report_opts *opts, struct csw_error *err)
{
	struct csw_table *t;
	int ret;

	assert_int_equal(csw_view_make(&t, &f->result, by, err), 0);
	ret = csw_report(t, file, opts, err);
	csw_table_close(t);
	return ret;
}

static const char *render(struct fixture *f, uint32_t by, uint32_t format, uint32_t verbose)
{
	struct csw_report_opts opts = { .size = sizeof(opts),
					.format = format,
					.verbose = verbose };
	struct csw_error err;
	size_t bytes;
	FILE *file;

	free(f->text);
	file = open_memstream(&f->text, &bytes);
	assert_non_null(file);
	assert_int_equal(report_to(f, file, by, &opts, &err), 0);
	assert_int_equal(fclose(file), 0);
	return f->text;
}

static const char *text_report(struct fixture *f)
{
	return render(f, CSW_BY_THREAD, CSW_FORMAT_TABLE, 0);
}

static json_t *json_report(struct fixture *f, uint32_t by)
{
	json_error_t error;
	json_t *root =
		json_loads(render(f, by, CSW_FORMAT_JSON, 0), JSON_REJECT_DUPLICATES, &error);

	if (!root)
		fail_msg("%s in line %d of %s", error.text, error.line, f->text);
	return root;
}

static void assert_holds(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("\"%s\" is missing in:\n%s", part, text ? text : "nothing");
}

static void assert_lacks(const char *text, const char *part)
{
	if (!text || strstr(text, part))
		fail_msg("\"%s\" should not be in:\n%s", part, text ? text : "nothing");
}

/* ---- text ---- */

static void test_text_in_full(void **state)
{
	static const char want[] =
		"trigger switch (context-switches), sav 2, driver perf, 2 CPUs, 5.003 s\n"
		"\n"
		" PID   TID  COMM    SLICES  ONCPU(ms)  VOL  PRE  page-faults  task-clock(ms)"
		"  instructions:u  cycles:u  LLC_MISSES:u   IPC   MPKI\n"
		"4242  4243  worker      12      1.235   10    2          300           1.235"
		"            2000      1000            50  2.00  25.00\n"
		"\n"
		"threads 1, slices 12, exact 100.00 % of the time on a CPU, lost 1, unseen 3\n"
		"completeness ok: trigger 67 = sav 2 x samples 30 + lost 1 + throttled 2 + unseen 3"
		" + open 1\n"
		"conservation page-faults ok: counter 300 = rows 300, of no proven thread 0\n"
		"conservation task-clock ok: counter 1234567 = rows 1234567, of no proven thread "
		"0\n"
		"conservation instructions:u ok: counter 2000 = rows 2000, of no proven thread 0\n"
		"conservation cycles:u ok: counter 1000 = rows 1000, of no proven thread 0\n"
		"conservation LLC_MISSES:u ok: counter 50 = rows 50, of no proven thread 0\n";

	assert_string_equal(text_report(*state), want);
}

static void test_text_by_process(void **state)
{
	struct fixture *f = *state;
	const char *text;

	add(f, CSW_KIND_THREAD, 4242, 4242, "main", (uint64_t[]){ 1, 0, 0, 0, 0 });
	text = render(f, CSW_BY_PROCESS, CSW_FORMAT_TABLE, 0);
	assert_holds(text, " PID  COMM  THREADS  SLICES  ");
	assert_holds(text, "4242  main        2      24  ");
	assert_lacks(text, "TID");
}

static void test_kinds_stand_in_brackets(void **state)
{
	struct fixture *f = *state;
	const uint64_t counts[NR_COUNTERS] = { 0 };
	const char *text;

	add(f, CSW_KIND_KERNEL, 15, 15, "ksoftirqd/0", counts);
	add(f, CSW_KIND_SELF, 77, 78, "csw-sample", counts);
	add(f, CSW_KIND_MIXED, 4242, -1, "", counts);
	csw_aggregation_row(&f->agg, CSW_ROW_IDLE)->oncpu_ns = 1;
	csw_aggregation_row(&f->agg, CSW_ROW_LOST)->oncpu_ns = 1;
	text = text_report(f);
	assert_holds(text, "  15    15  ksoftirqd/0           ");
	assert_holds(text, "  77    78  [self] csw-sample     ");
	assert_holds(text, "4242     -  [mixed]               ");
	assert_holds(text, "   0     0  [idle]                ");
	assert_holds(text, "   -     -  [lost]                ");
}

static void test_scope_is_told(void **state)
{
	struct fixture *f = *state;

	csw_aggregation_row(&f->agg, f->worker)->flags |= CSW_ROW_IN_SCOPE;
	add(f, CSW_KIND_THREAD, 5, 5, "stranger", (uint64_t[]){ 1, 0, 0, 0, 0 });
	f->result.scoped = true;
	assert_holds(text_report(f), "threads 2 (1 of them in scope), ");
	assert_holds(f->text, "[other]");
	assert_lacks(f->text, "stranger");
}

static void test_hostile_names(void **state)
{
	struct fixture *f = *state;
	const uint64_t counts[NR_COUNTERS] = { 0 };
	const char *text;

	add(f, CSW_KIND_THREAD, 1, 1, "\033[2Jx\ny", counts);
	add(f, CSW_KIND_THREAD, 2, 2, "\xff\xc3", counts);
	add(f, CSW_KIND_THREAD, 3, 3, "\xe6\xbc\xa2\xe5\xad\x97", counts); /* two wide characters */
	text = text_report(f);
	assert_lacks(text, "\033");
	assert_holds(text, "   1     1  \\x1b[2Jx\\x0ay  ");
	assert_holds(text, "   2     2  \\xff\\xc3      ");
	assert_holds(text, "   3     3  \xe6\xbc\xa2\xe5\xad\x97          ");
}

static void test_not_counted_is_no_number(void **state)
{
	struct fixture *f = *state;
	struct csw_agg_row *row = csw_aggregation_row(&f->agg, f->worker);
	json_t *root, *value, *total;

	row->running_ns = 0;
	for (unsigned j = 0; j < NR_COUNTERS; j++)
		f->result.totals[j] = row->cells[j].sum = row->cells[j].max = row->cells[j].min = 0;
	f->result.running_ns = 0;
	assert_holds(text_report(f), "            -               -               -         -"
				     "             -    -     -\n");
	assert_holds(f->text, "conservation page-faults: never counted\n");
	root = json_report(f, CSW_BY_THREAD);
	assert_int_equal(json_unpack(root, "{s:[{s:{s:o}}],s:{s:o}}", "rows", "counts",
				     "LLC_MISSES:u", &value, "totals", "page-faults", &total),
			 0);
	assert_true(json_is_null(json_object_get(value, "value")));
	assert_string_equal(json_string_value(json_object_get(value, "reason")), "never counted");
	assert_true(json_is_null(json_object_get(total, "counter")));
	json_decref(root);
}

static void test_multiplexing_is_told(void **state)
{
	struct fixture *f = *state;

	f->result.running_ns = f->result.enabled_ns / 4;
	assert_holds(text_report(f),
		     "page-faults counted only 25.00 % of the time: its values are lower bounds\n");
}

static void test_nearly_exact_is_not_exact(void **state)
{
	struct fixture *f = *state;
	struct csw_agg_row *row = csw_aggregation_row(&f->agg, f->worker);

	row->oncpu_ns = 1ull << 60; /* where a double no longer sees the 1 ns */
	row->exact_ns = row->oncpu_ns - 1;
	assert_holds(text_report(f), "exact 99.99 % ");
	row->oncpu_ns = row->exact_ns = 0;
	assert_holds(text_report(f), "exact - ");
}

static void test_ratios_need_the_same_modifier(void **state)
{
	struct fixture *f = *state;

	strcpy(f->plan.counters[CYCLES].name, "cycles");
	assert_lacks(text_report(f), "IPC");
	assert_holds(f->text, "MPKI");
	strcpy(f->plan.counters[MISSES].name, "cache-misses:u"); /* may be L2 misses */
	assert_lacks(text_report(f), "MPKI");
}

static void test_what_a_name_became_is_told(void **state)
{
	struct fixture *f = *state;

	strcpy(f->plan.counters[MISSES].became, "skl::LONGEST_LAT_CACHE:MISS");
	assert_holds(text_report(f), "counted LLC_MISSES:u = skl::LONGEST_LAT_CACHE:MISS\n");
}

static void test_simulated_is_told(void **state)
{
	struct fixture *f = *state;
	json_t *root;

	assert_lacks(text_report(f), "SIMULATED");
	f->result.driver = &simulated;
	assert_memory_equal(text_report(f), "SIMULATED: ", strlen("SIMULATED: "));
	root = json_report(f, CSW_BY_THREAD);
	assert_true(json_is_true(json_object_get(root, "simulated")));
	json_decref(root);
}

static void test_broken_is_told(void **state)
{
	struct fixture *f = *state;

	assert_lacks(text_report(f), "BROKEN");
	f->result.totals[FAULTS] = 299;
	f->result.summary.triggers = 68;
	assert_holds(text_report(f), "conservation page-faults BROKEN: counter 299, rows 300, "
				     "difference -1\n");
	assert_holds(f->text, "completeness BROKEN: trigger 68 is not sav 2 x samples 30 ");
	assert_holds(f->text, "BROKEN: these numbers do not add up; do not trust them\n");
}

static void test_verbose(void **state)
{
	struct fixture *f = *state;

	assert_lacks(text_report(f), "disagreements");
	render(f, CSW_BY_THREAD, CSW_FORMAT_TABLE, 1);
	assert_holds(f->text, "owner disagreements 11");
	assert_holds(f->text, "switch contradictions 13");
	assert_holds(f->text, "lost records 17 of all kinds; throttles 19\n");
	assert_holds(f->text, "counter page-faults counts page-faults: enabled 10.000 s, "
			      "running 10.000 s over all CPUs\n");
}

static void test_empty_table(void **state)
{
	struct fixture *f = *state;

	csw_aggregation_free(&f->agg);
	assert_int_equal(csw_aggregation_init(&f->agg, NR_COUNTERS), 0);
	memset(f->result.totals, 0, sizeof(f->result.totals));
	assert_holds(render(f, CSW_BY_PROCESS, CSW_FORMAT_TABLE, 0), "PID  COMM  THREADS  SLICES");
	assert_holds(f->text, "threads 0, slices 0, exact - ");
	json_decref(json_report(f, CSW_BY_PROCESS));
	assert_holds(f->text, "\"exact_share\": null");
}

/* ---- JSON ---- */

static void test_json_in_full(void **state)
{
	static const char want[] =
		"{'csw': '" CSW_VERSION "', 'schema': 1, 'driver': 'perf', 'simulated': false,"
		" 'estimate': false, 'duration_ns': 5003123456,"
		" 'trigger': {'name': 'switch', 'event': 'context-switches', 'hardware': false,"
		" 'sav': 2}, 'counters': ['page-faults', 'task-clock'],"
		" 'rows': [{'kind': 'thread', 'pid': 4242, 'tid': 4243, 'comm': 'worker',"
		" 'slices': 12, 'oncpu_ns': 1234567, 'voluntary': 10, 'preempted': 2, 'counts': {"
		"'page-faults': {'value': 300, 'enabled_ns': 1234567, 'running_ns': 1234567,"
		" 'min': 300, 'max': 300}, 'task-clock': {'value': 1234567, 'enabled_ns': 1234567,"
		" 'running_ns': 1234567, 'min': 1234567, 'max': 1234567}}}],"
		" 'totals': {'page-faults': {'counter': 300, 'rows': 300, 'unproven': 0,"
		" 'difference': 0},"
		" 'task-clock': {'counter': 1234567, 'rows': 1234567,"
		" 'unproven': 0, 'difference': 0}},"
		" 'completeness': {'trigger': 67, 'sav': 2, 'samples': 30, 'lost': 1,"
		" 'throttled': 2, 'unseen': 3, 'open': 1}, 'slices': 12, 'exact_share': 1.0,"
		" 'owner_disagreements': 11}";
	struct fixture *f = *state;
	char quoted[sizeof(want)];
	json_t *root, *expected;

	for (size_t i = 0; i < sizeof(want); i++)
		quoted[i] = want[i] == '\'' ? '"' : want[i];
	expected = json_loads(quoted, 0, NULL);
	assert_non_null(expected);
	/* Two counters are enough to see every key. */
	csw_aggregation_free(&f->agg);
	assert_int_equal(csw_aggregation_init(&f->agg, 2), 0);
	memset(f->result.totals, 0, sizeof(f->result.totals));
	add(f, CSW_KIND_THREAD, 4242, 4243, "worker", (uint64_t[NR_COUNTERS]){ 300, 1234567 });
	root = json_report(f, CSW_BY_THREAD);
	if (!json_equal(root, expected))
		fail_msg("not as the contract says:\n%s", f->text);
	json_decref(root);
	json_decref(expected);
}

static void test_json_by_process(void **state)
{
	struct fixture *f = *state;
	json_t *root = json_report(f, CSW_BY_PROCESS), *tid;
	const char *kind;
	int pid, nr_threads;

	assert_int_equal(json_unpack(root, "{s:[{s:s,s:i,s:o,s:i}]}", "rows", "kind", &kind, "pid",
				     &pid, "tid", &tid, "nr_threads", &nr_threads),
			 0);
	assert_string_equal(kind, "process");
	assert_int_equal(pid, 4242);
	assert_true(json_is_null(tid));
	assert_int_equal(nr_threads, 1);
	json_decref(root);
}

static void test_json_of_hostile_names(void **state)
{
	static const char raw[] = "a\"\\\x01\xff\xc3";
	struct fixture *f = *state;
	const char *comm;
	json_t *root, *pid;

	memcpy(csw_aggregation_row(&f->agg, f->worker)->comm, raw, sizeof(raw));
	csw_aggregation_row(&f->agg, f->worker)->pid = -1;
	root = json_report(f, CSW_BY_THREAD);
	assert_int_equal(json_unpack(root, "{s:[{s:s,s:o}]}", "rows", "comm", &comm, "pid", &pid),
			 0);
	assert_string_equal(comm, "a\"\\\x01\xef\xbf\xbd\xef\xbf\xbd");
	assert_true(json_is_null(pid));
	json_decref(root);
}

static void test_json_keeps_an_event_that_is_counted_twice(void **state)
{
	struct fixture *f = *state;
	json_int_t first, second;
	json_t *root;

	strcpy(f->plan.counters[MISSES].name, "page-faults");
	root = json_report(f, CSW_BY_THREAD);
	assert_int_equal(json_unpack(root, "{s:[{s:{s:{s:I},s:{s:I}}}]}", "rows", "counts",
				     "page-faults", "value", &first, "page-faults#2", "value",
				     &second),
			 0);
	assert_int_equal(first, 300);
	assert_int_equal(second, 50);
	json_decref(root);
}

static void test_json_beyond_63_bits_stays_positive(void **state)
{
	struct fixture *f = *state;
	json_t *root, *value;

	csw_aggregation_row(&f->agg, f->worker)->cells[FAULTS].sum = UINT64_MAX;
	f->result.totals[FAULTS] = UINT64_MAX;
	root = json_report(f, CSW_BY_THREAD);
	assert_int_equal(json_unpack(root, "{s:[{s:{s:{s:o}}}]}", "rows", "counts", "page-faults",
				     "value", &value),
			 0);
	assert_true(json_number_value(value) == 0x1p64);
	json_decref(root);
}

/* ---- failures ---- */

static void test_a_full_disk_is_an_error(void **state)
{
	static const uint32_t formats[] = { CSW_FORMAT_TABLE, CSW_FORMAT_JSON };
	struct fixture *f = *state;
	struct csw_error err;

	for (size_t i = 0; i < 2; i++) {
		struct csw_report_opts opts = { .size = sizeof(opts), .format = formats[i] };
		FILE *file = fopen("/dev/full", "w");

		assert_non_null(file);
		setvbuf(file, NULL, _IONBF, 0);
		assert_int_equal(report_to(f, file, CSW_BY_THREAD, &opts, &err), -ENOSPC);
		assert_int_equal(err.code, -ENOSPC);
		assert_holds(err.text, strerror(ENOSPC));
		fclose(file);
	}
}

static void test_options(void **state)
{
	struct {
		struct csw_report_opts opts;
		uint64_t later;
	} newer = { .opts = { .size = sizeof(newer) } };
	/* An older program knew nothing of what follows size: whatever lies there is not read. */
	struct csw_report_opts older = { .size = sizeof(size_t), .format = 99 };
	struct csw_report_opts none = { .size = 0 };
	struct fixture *f = *state;
	struct csw_error err;
	FILE *file = fopen("/dev/null", "w");

	assert_non_null(file);
	assert_int_equal(report_to(f, file, CSW_BY_THREAD, NULL, &err), 0);
	assert_int_equal(report_to(f, file, CSW_BY_THREAD, &newer.opts, &err), 0);
	newer.later = 1;
	assert_int_equal(report_to(f, file, CSW_BY_THREAD, &newer.opts, &err), -E2BIG);
	assert_int_equal(report_to(f, file, CSW_BY_THREAD, &older, &err), 0);
	assert_int_equal(report_to(f, file, CSW_BY_THREAD, &none, &err), -EINVAL);
	older.size = sizeof(older);
	assert_int_equal(report_to(f, file, CSW_BY_THREAD, &older, &err), -EINVAL);
	assert_holds(err.text, "99");
	fclose(file);
}

static void test_utf8(void **state)
{
	static const struct {
		const char *text;
		int bytes;
		uint32_t point;
	} cases[] = {
		{ "", 0, 0 },
		{ "a", 1, 'a' },
		{ "\xc2\x80", 2, 0x80 },
		{ "\xe0\xa0\x80", 3, 0x800 },
		{ "\xf0\x90\x80\x80", 4, 0x10000 },
		{ "\xf4\x8f\xbf\xbf", 4, 0x10ffff },
		{ "\x80", -1, 0 }, /* a continuation */
		{ "\xc2", -1, 0 }, /* cut */
		{ "\xf0\x90\x80", -1, 0 },
		{ "\xc0\x80", -1, 0 }, /* overlong */
		{ "\xe0\x9f\xbf", -1, 0 },
		{ "\xed\xa0\x80", -1, 0 },     /* a surrogate */
		{ "\xf4\x90\x80\x80", -1, 0 }, /* beyond Unicode */
		{ "\xf8\x88\x80\x80\x80", -1, 0 },
		{ "\xff", -1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t point = 0;

		assert_int_equal(csw_utf8_next(cases[i].text, &point), cases[i].bytes);
		assert_int_equal(point, cases[i].point);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_text_in_full),
		TEST(test_text_by_process),
		TEST(test_kinds_stand_in_brackets),
		TEST(test_scope_is_told),
		TEST(test_hostile_names),
		TEST(test_not_counted_is_no_number),
		TEST(test_multiplexing_is_told),
		TEST(test_nearly_exact_is_not_exact),
		TEST(test_ratios_need_the_same_modifier),
		TEST(test_what_a_name_became_is_told),
		TEST(test_simulated_is_told),
		TEST(test_broken_is_told),
		TEST(test_verbose),
		TEST(test_empty_table),
		TEST(test_json_in_full),
		TEST(test_json_by_process),
		TEST(test_json_of_hostile_names),
		TEST(test_json_keeps_an_event_that_is_counted_twice),
		TEST(test_json_beyond_63_bits_stays_positive),
		TEST(test_a_full_disk_is_an_error),
		TEST(test_options),
		TEST(test_utf8),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
