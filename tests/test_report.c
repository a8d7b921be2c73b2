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

#include "engine/view.h"
#include "schema.h"

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
	row->migrations = 3;
	row->last_cpu = 1;
	row->proven = UINT32_MAX;
	row->oncpu_ns = row->exact_ns = row->enabled_ns = row->running_ns = 1234567;
	for (unsigned j = 0; j < NR_COUNTERS; j++)
		f->result.totals[j] += counts[j];
	return (uint32_t)i;
}

static const char *path_of(void *ctx, uint64_t id)
{
	static const char *const paths[] = {
		NULL, "/system.slice/a.service",
		"/system.slice/docker-0123456789ab0123456789ab0123456789ab.scope", "/",
		"/a/path/that/nobody/goes"
	};

	(void)ctx;
	return id < sizeof(paths) / sizeof(*paths) ? paths[id] : NULL;
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
	assert_int_equal(csw_aggregation_init(&f.agg, NR_COUNTERS, true), 0);
	f.result = (struct csw_result){ .plan = &f.plan,
					.driver = &live,
					.agg = &f.agg,
					.cgroups = true,
					.cgroup_path = path_of,
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
						 .ring_bytes = 512 << 10,
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

	assert_int_equal(csw_view_make(&t, &f->result, by, NULL, err), 0);
	ret = csw_report(t, file, opts, err);
	csw_table_close(t);
	return ret;
}

static const char *render_as(struct fixture *f, uint32_t by, const struct csw_report_opts *opts)
{
	struct csw_error err;
	size_t bytes;
	FILE *file;

	free(f->text);
	file = open_memstream(&f->text, &bytes);
	assert_non_null(file);
	assert_int_equal(report_to(f, file, by, opts, &err), 0);
	assert_int_equal(fclose(file), 0);
	return f->text;
}

static const char *render(struct fixture *f, uint32_t by, uint32_t format, uint32_t verbose)
{
	struct csw_report_opts opts = { .size = sizeof(opts),
					.format = format,
					.verbose = verbose };

	return render_as(f, by, &opts);
}

static const char *text_report(struct fixture *f)
{
	return render(f, CSW_BY_THREAD, CSW_FORMAT_TABLE, 0);
}

static json_t *json_report_as(struct fixture *f, uint32_t by, struct csw_report_opts opts)
{
	json_t *schema = schema_of_reports(), *root;

	opts.size = sizeof(opts);
	opts.format = CSW_FORMAT_JSON;
	root = schema_load(schema, render_as(f, by, &opts));
	json_decref(schema);
	return root;
}

static json_t *json_report(struct fixture *f, uint32_t by)
{
	return json_report_as(f, by, (struct csw_report_opts){ .size = 0 });
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
		"trigger switch (context-switches), software, sav 2, driver perf, 2 CPUs, 5.003 s\n"
		"\n"
		" PID   TID  COMM    SLICES  ONCPU(ms)  VOL  PRE  MIGR  page-faults  "
		"task-clock(ms)  instructions:u  cycles:u  LLC_MISSES:u   IPC   MPKI\n"
		"4242  4243  worker      12      1.235   10    2     3          300  "
		"         1.235           2,000     1,000            50  2.00  25.00\n"
		"\n"
		"threads 1, slices 12, exact 100.00 % of the time on a CPU, lost 1, unseen 3\n"
		"completeness ok: trigger 67 = sav 2 x samples 30 + lost 1 + throttled 2 + unseen 3"
		" + open 1\n"
		"conservation page-faults ok: counter 300 = rows 300, of no proven thread 0\n"
		"conservation task-clock ok: counter 1,234,567 ns = rows 1,234,567 ns, of no "
		"proven thread 0 ns\n"
		"conservation instructions:u ok: counter 2,000 = rows 2,000, of no proven thread "
		"0\n"
		"conservation cycles:u ok: counter 1,000 = rows 1,000, of no proven thread 0\n"
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

/* A trigger that cannot be trusted is shown as such, in every format that has room for it. */
static void test_force_is_told(void **state)
{
	struct fixture *f = *state;
	json_t *root, *trigger;

	assert_lacks(text_report(f), "forced");
	root = json_report(f, CSW_BY_THREAD);
	assert_null(json_object_get(json_object_get(root, "trigger"), "forced"));
	json_decref(root);
	strcpy(f->plan.trigger.forced, "erratum 4711 makes it count wrongly");
	assert_holds(text_report(f), "\nforced: erratum 4711 makes it count wrongly\n");
	root = json_report(f, CSW_BY_THREAD);
	trigger = json_object_get(root, "trigger");
	assert_string_equal(json_string_value(json_object_get(trigger, "forced")),
			    "erratum 4711 makes it count wrongly");
	json_decref(root);
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
	assert_holds(f->text,
		     "BROKEN: these numbers do not add up; do not trust them: the rows are "
		     "not what the counter counted: page-faults; the trigger's "
		     "occurrences are not all accounted for\n");
}

/* A reading that went back shows in no sum. */
static void test_wrong_reading_is_told(void **state)
{
	struct fixture *f = *state;
	json_t *root;

	root = json_report(f, CSW_BY_THREAD);
	assert_true(json_is_null(json_object_get(root, "broken")));
	json_decref(root);
	f->result.wrong = &(const struct csw_wrong_reading){
		.what = CSW_READING_COUNTER + FAULTS, .cpu = 1, .before = 9, .now = 8
	};
	strcpy(f->plan.counters[FAULTS].name, "page\033faults");
	assert_holds(text_report(f), "BROKEN: these numbers do not add up; do not trust them: a "
				     "reading of page\\x1bfaults was wrong, on CPU 1 it went back "
				     "from 9 to 8\n");
	strcpy(f->plan.counters[FAULTS].name, "page-faults");
	root = json_report(f, CSW_BY_THREAD);
	assert_string_equal(json_string_value(json_object_get(root, "broken")),
			    "a reading of page-faults was wrong, on CPU 1 it went back from 9 to "
			    "8");
	json_decref(root);
}

/* What was only sampled has been counted by nobody, and without a counter of the trigger its
 * samples are compared with themselves: such lines would prove nothing. */
static void test_checks_that_check_nothing(void **state)
{
	struct fixture *f = *state;

	f->plan.trigger.event.flags |= CSW_EVENT_UNCOUNTED;
	assert_lacks(text_report(f), "completeness");
	assert_holds(f->text, "conservation page-faults ok");
	f->result.summary.triggers = 68;
	assert_holds(text_report(f), "completeness BROKEN");
	f->result.summary.triggers = 67;
	f->plan.estimated = 1u << FAULTS | 1u << CLOCK;
	f->result.summary.estimate = 1;
	f->result.summary.estimates = 44;
	assert_lacks(text_report(f), "conservation page-faults");
	assert_holds(f->text, "page-faults~: 300 in all rows\n");
	assert_holds(f->text, "task-clock~: 1,234,567 ns in all rows\n");
	assert_holds(f->text, "conservation cycles:u ok");
	f->result.totals[FAULTS] = 299;
	assert_holds(text_report(f), "conservation page-faults BROKEN");
	f->result.totals[FAULTS] = 300;
	csw_aggregation_row(&f->agg, f->worker)->slices = 0;
	assert_holds(text_report(f), "threads 1, samples 44, no slice\n");
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
	assert_int_equal(csw_aggregation_init(&f->agg, NR_COUNTERS, true), 0);
	memset(f->result.totals, 0, sizeof(f->result.totals));
	assert_holds(render(f, CSW_BY_PROCESS, CSW_FORMAT_TABLE, 0), "PID  COMM  THREADS  SLICES");
	assert_holds(f->text, "threads 0, slices 0, exact - ");
	json_decref(json_report(f, CSW_BY_PROCESS));
	assert_holds(f->text, "\"exact_share\": null");
}

/* ---- text: views and options ---- */

static const char *text_as(struct fixture *f, uint32_t by, struct csw_report_opts opts)
{
	opts.size = sizeof(opts);
	return render_as(f, by, &opts);
}

static void fill_cgroups(struct fixture *f)
{
	static const uint64_t counts[NR_COUNTERS] = { 1, 1, 1, 1, 1 };
	uint32_t rows[] = { f->worker, add(f, CSW_KIND_THREAD, 7, 7, "in a container", counts),
			    add(f, CSW_KIND_KERNEL, 2, 2, "kthreadd", counts) };

	for (unsigned i = 0; i < 3; i++)
		csw_aggregation_row(&f->agg, rows[i])->cgroup = i + 1;
	add(f, CSW_KIND_THREAD, 8, 8, "nowhere", counts);
}

static void test_text_by_cgroup(void **state)
{
	struct fixture *f = *state;

	fill_cgroups(f);
	render(f, CSW_BY_CGROUP, CSW_FORMAT_TABLE, 0);
	assert_holds(f->text,
		     "\nCGROUP               THREADS  SLICES  ONCPU(ms)  VOL  PRE  MIGR  ");
	assert_holds(f->text,
		     "\na.service                  1      12      1.235   10    2     3  ");
	assert_holds(f->text, "\ndocker 0123456789ab        1 ");
	assert_holds(f->text, "\n[kernel] /                 1 ");
	assert_holds(f->text, "\n(not known)                1 ");
	render(f, CSW_BY_THREAD, CSW_FORMAT_TABLE, 0);
	assert_holds(f->text, " PID   TID  COMM            CGROUP               SLICES  ");
	assert_holds(f->text, "   7     7  in a container  docker 0123456789ab      12  ");
	assert_holds(f->text, "   8     8  nowhere         -                        12  ");
}

static void test_text_by_comm(void **state)
{
	struct fixture *f = *state;
	const uint64_t counts[NR_COUNTERS] = { 1 };

	add(f, CSW_KIND_THREAD, 7, 7, "worker", counts);
	add(f, CSW_KIND_KERNEL, 9, 9, "worker", counts);
	render(f, CSW_BY_COMM, CSW_FORMAT_TABLE, 0);
	assert_holds(f->text, "\nCOMM             THREADS  SLICES  ");
	assert_holds(f->text, "\nworker                 2      24  ");
	assert_holds(f->text, "\n[kernel] worker        1      12  ");
	assert_lacks(f->text, "PID");
}

static void test_text_by_cpu(void **state)
{
	struct csw_aggregation cpus;
	struct fixture *f = *state;

	assert_int_equal(csw_aggregation_init_empty(&cpus, NR_COUNTERS, false), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(csw_aggregation_add(&cpus, CSW_KIND_THREAD, -1, -1, 0), i);
	csw_aggregation_count(&cpus, 2, (uint64_t[NR_COUNTERS]){ 200 }, false);
	csw_aggregation_count(&cpus, 3, (uint64_t[NR_COUNTERS]){ 100 }, false);
	f->result.cpus = &cpus;
	f->result.nr_cpus = 2;
	f->result.scoped = true;
	render(f, CSW_BY_CPU, CSW_FORMAT_TABLE, 0);
	assert_holds(f->text, "\n    CPU  SLICES  ONCPU(ms)  VOL  PRE  page-faults  ");
	assert_holds(f->text, "\n      1       0      0.000    0    0          200  ");
	assert_holds(f->text, "\n[other]       0      0.000    0    0          100  ");
	assert_lacks(f->text, "MIGR");
	csw_aggregation_free(&cpus);
}

static void test_width(void **state)
{
	struct fixture *f = *state;
	size_t natural, bytes;

	memcpy(csw_aggregation_row(&f->agg, f->worker)->comm, "a-very-long-one", 15);
	csw_aggregation_row(&f->agg, f->worker)->cgroup = 4;
	text_as(f, CSW_BY_THREAD, (struct csw_report_opts){ .width = 0 });
	natural = strcspn(strstr(f->text, "4242"), "\n");
	for (uint32_t width = 1; width < 250; width++) {
		const char *row;

		text_as(f, CSW_BY_THREAD, (struct csw_report_opts){ .width = width });
		row = strstr(f->text, "4242");
		bytes = strcspn(row, "\n");
		/* Two names may shrink to 8 cells each, numbers never. */
		assert_true(bytes <= width || bytes == natural - (15 - 8) - (24 - 8));
		assert_true(bytes == natural || bytes <= width || width < 200);
		assert_holds(row, "  300  ");
		assert_holds(row, "  2.00  25.00\n");
	}
	text_as(f, CSW_BY_THREAD, (struct csw_report_opts){ .width = 10 });
	assert_holds(f->text, "4242  4243  a-ver...  .../goes ");
}

static void test_colour(void **state)
{
	struct fixture *f = *state;

	csw_aggregation_row(&f->agg, CSW_ROW_LOST)->oncpu_ns = 1;
	assert_lacks(text_report(f), "\033");
	text_as(f, CSW_BY_THREAD, (struct csw_report_opts){ .colour = 1 });
	assert_holds(f->text, "\n\033[1m PID  ");
	assert_holds(f->text, "  MPKI\033[0m\n4242  ");
	assert_holds(f->text, "\n\033[2m   -     -  [lost]  ");
	assert_holds(f->text, "     -\033[0m\n\nthreads ");
}

static void test_raw(void **state)
{
	struct fixture *f = *state;

	csw_aggregation_row(&f->agg, f->worker)->oncpu_ns = 1234567890;
	assert_holds(text_report(f), "  1,234.568  ");
	text_as(f, CSW_BY_THREAD, (struct csw_report_opts){ .raw = 1 });
	assert_holds(f->text, "  1234.568  ");
	assert_holds(f->text, "counter 1234567 ns = rows 1234567 ns, ");
}

static void test_rates(void **state)
{
	struct fixture *f = *state;

	add(f, CSW_KIND_THREAD, 5, 5, "other one", (uint64_t[]){ 100, 0, 6000, 0, 0 });
	text_as(f, CSW_BY_THREAD, (struct csw_report_opts){ .rate = 1 });
	assert_holds(f->text, "  page-faults     /s      %  task-clock(ms)  ms/s       %  ");
	assert_holds(f->text, "          300  59.96  75.00           1.235  0.25  100.00  ");
	assert_holds(f->text, "        2,000    399  25.00  ");
	assert_holds(f->text, "        6,000  1,199  75.00  ");
	f->result.summary.duration_ns = 0;
	text_as(f, CSW_BY_THREAD, (struct csw_report_opts){ .rate = 1 });
	assert_holds(f->text, "  300   -  75.00  ");
}

static void test_histogram(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 100; i++)
		csw_aggregation_count(&f->agg, f->worker, (uint64_t[NR_COUNTERS]){ 2 }, true);
	csw_aggregation_count(&f->agg, CSW_ROW_IDLE, (uint64_t[NR_COUNTERS]){ 1 }, true);
	f->result.totals[FAULTS] += 201;
	assert_lacks(text_report(f), "per slice");
	text_as(f, CSW_BY_THREAD, (struct csw_report_opts){ .histogram = 1 });
	assert_holds(f->text,
		     "\npage-faults per slice: 102 whole slices, # for up to 2\n"
		     "          1  #  1\n"
		     "      2 - 3  ##################################################  100\n"
		     "      4 - 7  0\n"
		     "     8 - 15  0\n"
		     "    16 - 31  0\n"
		     "    32 - 63  0\n"
		     "   64 - 127  0\n"
		     "  128 - 255  0\n"
		     "  256 - 511  #  1\n"
		     "\n"
		     "task-clock per slice, in ns: 102 whole slices, # for up to 3\n");
	assert_holds(f->text, "\n  1,048,576 - 2,097,151  #  1\n");
	text_as(f, CSW_BY_THREAD,
		(struct csw_report_opts){ .histogram = 1, .verbose = 1, .width = 40 });
	assert_holds(f->text, "  2 - 3  ######################  100\n");
	assert_holds(f->text, "each row, a character per bucket from 1 to 256 - 511, from . to @ = "
			      "its fullest; whole slices:\n"
			      "  | @      .|  101  4242/4243 worker\n"
			      "  |@        |  1  0/0 [idle]\n");
}

static void test_histogram_that_was_not_kept(void **state)
{
	struct fixture *f = *state;

	csw_aggregation_free(&f->agg);
	assert_int_equal(csw_aggregation_init(&f->agg, NR_COUNTERS, false), 0);
	add(f, CSW_KIND_THREAD, 1, 1, "a", (uint64_t[NR_COUNTERS]){ 1 });
	text_as(f, CSW_BY_THREAD, (struct csw_report_opts){ .histogram = 1 });
	assert_holds(f->text, "\nhistograms were not kept: ");
	json_decref(json_report_as(f, CSW_BY_THREAD, (struct csw_report_opts){ .histogram = 1 }));
	assert_lacks(f->text, "histogram");
}

/* One line, and only where there is something to say. */
static void test_text_of_cpus_that_came_and_went(void **state)
{
	struct fixture *f = *state;

	assert_lacks(render(f, CSW_BY_THREAD, CSW_FORMAT_TABLE, 0), "CPUs:");
	f->result.summary.cpus_missed = 3;
	assert_holds(render(f, CSW_BY_THREAD, CSW_FORMAT_TABLE, 0),
		     "\nCPUs: 3 came online after the start: what ran there then is not counted\n");
	f->result.summary.cpus_gone = 1;
	assert_holds(render(f, CSW_BY_THREAD, CSW_FORMAT_TABLE, 0),
		     "\nCPUs: 3 came online after the start, 1 went offline: what ran there");
	f->result.summary.cpus_missed = 0;
	assert_holds(render(f, CSW_BY_THREAD, CSW_FORMAT_TABLE, 0),
		     "\nCPUs: 1 went offline: what ran there then is not counted\n");
}

static void test_text_of_the_ring(void **state)
{
	struct fixture *f = *state;
	const struct csw_report_opts verbose = { .size = sizeof(verbose), .verbose = 1 };

	assert_lacks(render(f, CSW_BY_THREAD, CSW_FORMAT_TABLE, 0), "ring");
	assert_holds(render_as(f, CSW_BY_THREAD, &verbose), "\nring of each CPU 512 KiB\n");
	f->result.summary.ring_bytes = 0;
	assert_lacks(render_as(f, CSW_BY_THREAD, &verbose), "ring");
}

/* ---- counters that take turns ---- */

/* page-faults is on all the time; of the others instructions and misses, in two sets. */
static void take_turns(struct fixture *f)
{
	static uint64_t running[NR_COUNTERS];
	uint64_t *own;
	uint32_t other;

	csw_aggregation_free(&f->agg);
	memset(f->result.totals, 0, sizeof(f->result.totals));
	assert_int_equal(csw_aggregation_init(&f->agg, NR_COUNTERS, CSW_KEEP_TURNS), 0);
	f->worker = add(f, CSW_KIND_THREAD, 4242, 4243, "worker",
			(uint64_t[]){ 300, 1234567, 2000, 1000, 50 });
	other = add(f, CSW_KIND_THREAD, 7, 7, "other", (uint64_t[]){ 0, 0, 0, 0, 0 });
	for (unsigned j = 0; j < NR_COUNTERS; j++)
		running[j] = 10000000000;
	running[INSTRUCTIONS] = running[MISSES] = 2500000000;
	own = csw_aggregation_running(&f->agg, f->worker);
	own[FAULTS] = own[CLOCK] = own[CYCLES] = own[INSTRUCTIONS] = 1234567;
	own[MISSES] = 1234567 / 2;
	own = csw_aggregation_running(&f->agg, other);
	own[FAULTS] = own[CLOCK] = own[CYCLES] = 1234567;
	csw_aggregation_row(&f->agg, other)->proven = 1u << FAULTS | 1u << CLOCK | 1u << CYCLES;
	f->plan.scaled = 1u << INSTRUCTIONS | 1u << MISSES;
	f->result.each_running_ns = running;
	f->result.summary.sets = 2;
	f->result.summary.estimate = 1;
}

/* A mark where it was scaled, none where the counter was on for all of the row, "-" where never. */
static void test_text_of_turns(void **state)
{
	struct csw_report_opts opts = { .size = sizeof(opts), .rate = 1 };
	struct fixture *f = *state;
	const char *text;

	take_turns(f);
	text = text_report(f);
	assert_holds(text, "ESTIMATE: what is marked ~ is scaled: 2 sets of counters took turns");
	assert_lacks(text, "ordinary samples");
	assert_holds(text, "LLC_MISSES:u");
	assert_lacks(text, "LLC_MISSES:u~");
	/* 50 * 1234567 / 617283, and per 1000 instructions; IPC is of two counts. */
	assert_holds(text, "  2,000     1,000          ~100  2.00  ~50.00\n");
	assert_holds(
		text,
		"    0           0.000               -         0             -     -       -\n");
	assert_holds(text, "conservation LLC_MISSES:u ok: counter 50 = rows 50");
	assert_holds(text,
		     "scaled LLC_MISSES:u: it ran 25.00 % of the time, ~200 in all of it; the "
		     "sums above are counted\n");
	assert_lacks(text, "scaled page-faults");
	assert_lacks(text, "lower bounds");
	text = render_as(f, CSW_BY_THREAD, &opts);
	assert_holds(text, "~100  ~19.99  ~50.00"); /* in 5.003 s, of 200 */
}

static void test_json_of_turns(void **state)
{
	struct fixture *f = *state;
	json_int_t value, enabled, running, one, sum, scaled, sets;
	json_t *root, *row, *none;
	int estimate;

	take_turns(f);
	root = json_report(f, CSW_BY_THREAD);
	assert_int_equal(json_unpack(root, "{s:I,s:b,s:{s:{s:I,s:I}}}", "sets", &sets, "estimate",
				     &estimate, "totals", "LLC_MISSES:u", "counter", &sum, "scaled",
				     &scaled),
			 0);
	assert_true(sets == 2 && estimate && sum == 50 && scaled == 200);
	row = json_array_get(json_object_get(root, "rows"), 0);
	assert_int_equal(json_unpack(row, "{s:{s:{s:I,s:I,s:I,s:I},s:{s:I}}}", "counts",
				     "LLC_MISSES:u", "value", &value, "enabled_ns", &enabled,
				     "running_ns", &running, "scaled", &scaled, "instructions:u",
				     "scaled", &one),
			 0);
	assert_true(value == 50 && enabled == 1234567 && running == 617283 && scaled == 100);
	assert_int_equal(one, 2000);
	assert_null(json_object_get(json_object_get(json_object_get(row, "counts"), "page-faults"),
				    "scaled"));
	row = json_array_get(json_object_get(root, "rows"), 1);
	none = json_object_get(json_object_get(row, "counts"), "LLC_MISSES:u");
	assert_true(json_is_null(json_object_get(none, "value")));
	assert_null(json_object_get(none, "scaled"));
	json_decref(root);
}

static void test_csv_of_turns(void **state)
{
	struct fixture *f = *state;
	const char *text;

	take_turns(f);
	text = render(f, CSW_BY_THREAD, CSW_FORMAT_CSV, 0);
	assert_holds(text, ",LLC_MISSES:u,LLC_MISSES:u:enabled_ns,LLC_MISSES:u:running_ns,"
			   "LLC_MISSES:u:min,LLC_MISSES:u:max,LLC_MISSES:u:scaled\n");
	assert_lacks(text, "page-faults:scaled");
	assert_holds(text, ",50,1234567,617283,50,50,100\n");
	assert_holds(text, ",,1234567,0,,,\n");
}

/* ---- a trigger for loads that sees stores as well ---- */

static void test_accesses(void **state)
{
	struct fixture *f = *state;
	json_t *root, *accesses;
	const char *counter;
	json_int_t all, stores, loads;

	assert_lacks(text_report(f), "accesses");
	strcpy(f->plan.trigger.event.name, "mem_load:x");
	f->result.summary.stores = 1 + MISSES;
	f->result.summary.accesses = 2050;
	assert_holds(text_report(f),
		     "\nmem_load:x: 2,050 accesses, of which 50 stores: 2,000 loads\n");
	root = json_report(f, CSW_BY_THREAD);
	assert_int_equal(json_unpack(root, "{s:{s:{s:s,s:I,s:I,s:I}}}", "trigger", "accesses",
				     "counter", &counter, "accesses", &all, "stores", &stores,
				     "loads", &loads),
			 0);
	assert_string_equal(counter, "LLC_MISSES:u");
	assert_true(all == 2050 && stores == 50 && loads == 2000);
	json_decref(root);

	/* More stores than accesses: one of the two watches is wrong, and nobody knows which. */
	f->result.summary.accesses = 49;
	assert_holds(text_report(f),
		     "mem_load:x: 49 accesses, loads and an unknown number of stores\n");
	root = json_report(f, CSW_BY_THREAD);
	accesses = json_object_get(json_object_get(root, "trigger"), "accesses");
	assert_true(json_is_null(json_object_get(accesses, "stores")));
	assert_true(json_is_null(json_object_get(accesses, "loads")));
	json_decref(root);
}

/* ---- slices of several threads, by estimate ---- */

/* A share of 40 in the page faults of the one, and of 0 in those of the other. */
static void share_slices(struct fixture *f, uint32_t mixed)
{
	const uint64_t some[NR_COUNTERS] = { 40 }, none[NR_COUNTERS] = { 0 };
	uint32_t other;

	csw_aggregation_free(&f->agg);
	memset(f->result.totals, 0, sizeof(f->result.totals));
	assert_int_equal(csw_aggregation_init(&f->agg, NR_COUNTERS, CSW_KEEP_SHARES), 0);
	f->worker = add(f, CSW_KIND_THREAD, 4242, 4243, "worker",
			(uint64_t[]){ 300, 1234567, 2000, 1000, 50 });
	other = add(f, CSW_KIND_THREAD, 7, 7, "other", (uint64_t[]){ 12, 0, 0, 0, 0 });
	csw_aggregation_note_shares(&f->agg, f->worker, some, 1u << FAULTS);
	csw_aggregation_note_shares(&f->agg, other, none, 1u << FAULTS);
	csw_aggregation_row(&f->agg, f->worker)->exact_ns /= 2;
	f->result.summary.mixed = mixed;
	f->result.summary.shared_ns = 1234567 / 2;
	f->result.summary.estimate = 1;
}

static void test_text_of_shares(void **state)
{
	struct fixture *f = *state;
	const char *text;

	share_slices(f, CSW_MIXED_SPLIT);
	text = text_report(f);
	assert_holds(text, "ESTIMATE: what is marked ~ holds slices of several threads, shared by "
			   "their time on the CPU (--mixed=split)\n");
	assert_lacks(text, "ordinary samples");
	assert_holds(text, "~300");
	assert_holds(text, "~12");
	assert_lacks(text, "~1.235");
	assert_lacks(text, "~2,000");
	assert_holds(text, "mixed split: slices of several threads, 24.99 % of the time on a CPU, "
			   "are in the threads' rows by estimate\n");
	assert_holds(text,
		     "conservation page-faults ok: counter 312 = rows 312, of no proven "
		     "thread 40\nshared page-faults: 40 of 312, of slices of several threads\n");
	assert_lacks(text, "shared task-clock");
	f->result.summary.mixed = CSW_MIXED_LAST;
	assert_holds(text_report(f), "given to the one that ran last (--mixed=last)\n");
	f->result.summary.sets = 2; /* and scaled values besides */
	assert_holds(text_report(f),
		     "2 sets of counters took turns, as all together do not fit the "
		     "PMU\nESTIMATE: what is marked ~ holds slices");
}

static void test_json_of_shares(void **state)
{
	struct fixture *f = *state;
	json_int_t shared, value, none, sum, unproven;
	json_t *root, *row;
	const char *mixed;
	double share;

	share_slices(f, CSW_MIXED_SPLIT);
	root = json_report(f, CSW_BY_THREAD);
	assert_int_equal(json_unpack(root, "{s:s,s:F,s:{s:{s:I,s:I}}}", "mixed", &mixed,
				     "shared_share", &share, "totals", "page-faults", "shared",
				     &sum, "unproven", &unproven),
			 0);
	assert_string_equal(mixed, "split");
	assert_true(share > 0.24 && share < 0.26 && sum == 40 && unproven == 40);
	assert_true(json_is_true(json_object_get(root, "estimate")));
	row = json_array_get(json_object_get(root, "rows"), 0);
	assert_int_equal(json_unpack(row, "{s:{s:{s:I,s:I}}}", "counts", "page-faults", "value",
				     &value, "shared", &shared),
			 0);
	assert_true(value == 300 && shared == 40);
	assert_null(json_object_get(json_object_get(json_object_get(row, "counts"), "cycles:u"),
				    "shared"));
	row = json_array_get(json_object_get(root, "rows"), 1);
	assert_int_equal(
		json_unpack(row, "{s:{s:{s:I}}}", "counts", "page-faults", "shared", &none), 0);
	assert_int_equal(none, 0);
	json_decref(root);
}

/* The columns are there in every interval, be there anything to share or not. */
static void test_csv_of_shares(void **state)
{
	struct fixture *f = *state;
	const char *text;

	share_slices(f, CSW_MIXED_LAST);
	text = render(f, CSW_BY_THREAD, CSW_FORMAT_CSV, 0);
	assert_holds(text, ",page-faults:max,page-faults:shared,task-clock,");
	assert_holds(text, ",300,1234567,1234567,300,300,40,1234567,1234567,1234567,1234567,"
			   "1234567,,2000,");
	assert_holds(text, ",12,1234567,1234567,12,12,0,0,");
}

/* ---- JSON ---- */

static void test_json_in_full(void **state)
{
	static const char want[] =
		"{'csw': '" CSW_VERSION "', 'schema': 1, 'driver': 'perf', 'simulated': false,"
		" 'estimate': false, 'duration_ns': 5003123456, 'cpus': 2, 'cpus_missed': 0,"
		" 'cpus_gone': 0, 'ring_bytes': 524288, 'sets': 1, 'mixed': 'row',"
		" 'trigger': {'name': 'switch', 'event': 'context-switches', 'hardware': false,"
		" 'sav': 2}, 'counters': ['page-faults', 'task-clock'],"
		" 'rows': [{'kind': 'thread', 'pid': 4242, 'tid': 4243, 'comm': 'worker',"
		" 'cpu': 1, 'nr_threads': 1, 'slices': 12, 'oncpu_ns': 1234567, 'voluntary': 10,"
		" 'preempted': 2, 'migrations': 3, 'exact_ns': 1234567, 'counts': {"
		"'page-faults': {'value': 300, 'enabled_ns': 1234567, 'running_ns': 1234567,"
		" 'min': 300, 'max': 300}, 'task-clock': {'value': 1234567, 'enabled_ns': 1234567,"
		" 'running_ns': 1234567, 'min': 1234567, 'max': 1234567}}}],"
		" 'totals': {'page-faults': {'counter': 300, 'rows': 300, 'unproven': 0,"
		" 'difference': 0},"
		" 'task-clock': {'counter': 1234567, 'rows': 1234567,"
		" 'unproven': 0, 'difference': 0}},"
		" 'completeness': {'trigger': 67, 'sav': 2, 'samples': 30, 'lost': 1,"
		" 'throttled': 2, 'unseen': 3, 'open': 1},"
		" 'time': {'cpus_ns': null, 'rows_ns': 1234567}, 'slices': 12, 'exact_share': 1.0,"
		" 'shared_share': 0.0,"
		" 'owner_disagreements': 11, 'broken': null}";
	struct fixture *f = *state;
	char quoted[sizeof(want)];
	json_t *root, *expected;

	for (size_t i = 0; i < sizeof(want); i++)
		quoted[i] = want[i] == '\'' ? '"' : want[i];
	expected = json_loads(quoted, 0, NULL);
	assert_non_null(expected);
	/* Two counters are enough to see every key. */
	csw_aggregation_free(&f->agg);
	assert_int_equal(csw_aggregation_init(&f->agg, 2, true), 0);
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

/* Valid JSON as it is, but a terminal would obey it. */
static void test_json_has_no_character_to_obey(void **state)
{
	static const char raw[] = "\x7f\xc2\x9b\xe2\x80\xae\xef\xbf\xbf\xc3\xbc";
	struct fixture *f = *state;
	const char *comm, *text;
	json_t *root;

	strcpy(csw_aggregation_row(&f->agg, f->worker)->comm, raw);
	root = json_report(f, CSW_BY_THREAD);
	text = f->text;
	assert_holds(text, "\"\\u007f\\u009b\\u202e\\uffff\xc3\xbc\"");
	assert_int_equal(json_unpack(root, "{s:[{s:s}]}", "rows", "comm", &comm), 0);
	assert_string_equal(comm, raw);
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

static void test_json_with_rates_and_histograms(void **state)
{
	struct fixture *f = *state;
	json_t *root, *count, *histogram;
	double per_second, share;

	add(f, CSW_KIND_THREAD, 5, 5, "idler", (uint64_t[]){ 100, 0, 0, 0, 0 });
	root = json_report_as(f, CSW_BY_THREAD,
			      (struct csw_report_opts){ .rate = 1, .histogram = 1 });
	assert_int_equal(
		json_unpack(root, "{s:[{s:{s:o}}]}", "rows", "counts", "page-faults", &count), 0);
	assert_int_equal(json_unpack(count, "{s:F,s:F,s:o}", "per_second", &per_second, "share",
				     &share, "histogram", &histogram),
			 0);
	assert_true(per_second > 59.96 && per_second < 59.97); /* 300 in 5.003 s */
	assert_true(share == 0.75);
	assert_int_equal(json_array_size(histogram), 10); /* 256 to 511 */
	assert_int_equal(json_integer_value(json_array_get(histogram, 9)), 1);
	json_decref(root);
	f->result.summary.duration_ns = 0;
	root = json_report_as(f, CSW_BY_THREAD, (struct csw_report_opts){ .rate = 1 });
	assert_int_equal(
		json_unpack(root, "{s:[{s:{s:o}}]}", "rows", "counts", "page-faults", &count), 0);
	assert_true(json_is_null(json_object_get(count, "per_second")));
	assert_null(json_object_get(count, "histogram"));
	json_decref(root);
}

static void test_json_on_a_line(void **state)
{
	struct fixture *f = *state;
	json_t *wide = json_report(f, CSW_BY_THREAD), *line;

	line = json_report_as(f, CSW_BY_THREAD, (struct csw_report_opts){ .line = 1 });
	assert_ptr_equal(strchr(f->text, '\n'), f->text + strlen(f->text) - 1);
	assert_true(json_equal(wide, line));
	json_decref(wide);
	json_decref(line);
}

/* ---- CSV ---- */

static void test_csv_in_full(void **state)
{
	static const char want[] =
		"kind,pid,tid,comm,cgroup,cpu,nr_threads,slices,oncpu_ns,voluntary,preempted,"
		"migrations,exact_ns,page-faults,page-faults:enabled_ns,page-faults:running_ns,"
		"page-faults:min,page-faults:max,page-faults#2,page-faults#2:enabled_ns,"
		"page-faults#2:running_ns,page-faults#2:min,page-faults#2:max\n"
		"thread,4242,4243,worker,/system.slice/a.service,1,1,12,1234567,10,2,3,1234567,"
		"300,1234567,1234567,300,300,7,1234567,1234567,7,7\n"
		"lost,,,,,,0,0,5,0,0,0,0,,9,0,,,,9,0,,\n";
	struct csw_report_opts opts = { .size = sizeof(opts), .format = CSW_FORMAT_CSV, .line = 1 };
	struct fixture *f = *state;
	struct csw_agg_row *lost;

	csw_aggregation_free(&f->agg);
	assert_int_equal(csw_aggregation_init(&f->agg, 2, true), 0);
	strcpy(f->plan.counters[1].name, "page-faults"); /* counted twice */
	f->worker =
		add(f, CSW_KIND_THREAD, 4242, 4243, "worker", (uint64_t[NR_COUNTERS]){ 300, 7 });
	csw_aggregation_row(&f->agg, f->worker)->cgroup = 1;
	lost = csw_aggregation_row(&f->agg, CSW_ROW_LOST);
	lost->oncpu_ns = 5;
	lost->enabled_ns = 9;
	assert_string_equal(render(f, CSW_BY_THREAD, CSW_FORMAT_CSV, 0), want);
	assert_string_equal(render_as(f, CSW_BY_THREAD, &opts), strchr(want, '\n') + 1);
}

static void test_csv_of_hostile_names(void **state)
{
	static const struct {
		const char *comm, *cell;
	} cases[] = {
		{ "a,b", "\"a,b\"" },
		{ "a\"b", "\"a\"\"b\"" },
		{ "a\nb\r", "a\\x0ab\\x0d" },
		{ "\\x1b", "\\\\x1b" },
		{ "\xe2\x80\xae", "\\xe2\\x80\\xae" },
		{ "\033[2J", "\\x1b[2J" },
		{ "\xff", "\\xff" },
		{ "=1+2", "'=1+2" },
		{ "+1", "'+1" },
		{ "-1", "'-1" },
		{ "@x,\"", "\"'@x,\"\"\"" },
		{ "a=b", "a=b" },
		{ "\t=1", "\\x09=1" },
		{ " x ", " x " },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct csw_agg_row *row = csw_aggregation_row(&f->agg, f->worker);
		char part[64];

		memset(row->comm, 0, sizeof(row->comm));
		strcpy(row->comm, cases[i].comm);
		snprintf(part, sizeof(part), "\nthread,4242,4243,%s,,1,", cases[i].cell);
		assert_holds(render(f, CSW_BY_THREAD, CSW_FORMAT_CSV, 0), part);
	}
}

static void test_csv_with_rates(void **state)
{
	struct csw_report_opts opts = { .size = sizeof(opts), .format = CSW_FORMAT_CSV, .rate = 1 };
	struct fixture *f = *state;

	f->result.summary.duration_ns = 2000000000;
	render_as(f, CSW_BY_PROCESS, &opts);
	assert_holds(f->text, ",page-faults:max,page-faults:per_second,page-faults:share,task-");
	assert_holds(f->text, "\nprocess,4242,,worker,,,1,");
	assert_holds(f->text, ",300,1234567,1234567,300,300,150,1,1234567,");
}

/* ---- failures ---- */

static void test_a_full_disk_is_an_error(void **state)
{
	static const uint32_t formats[] = { CSW_FORMAT_TABLE, CSW_FORMAT_JSON, CSW_FORMAT_CSV };
	struct fixture *f = *state;
	struct csw_error err;

	for (size_t i = 0; i < 3; i++) {
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
		TEST(test_force_is_told),
		TEST(test_simulated_is_told),
		TEST(test_broken_is_told),
		TEST(test_wrong_reading_is_told),
		TEST(test_checks_that_check_nothing),
		TEST(test_verbose),
		TEST(test_empty_table),
		TEST(test_text_of_cpus_that_came_and_went),
		TEST(test_text_of_the_ring),
		TEST(test_json_has_no_character_to_obey),
		TEST(test_text_of_turns),
		TEST(test_json_of_turns),
		TEST(test_csv_of_turns),
		TEST(test_accesses),
		TEST(test_text_of_shares),
		TEST(test_json_of_shares),
		TEST(test_csv_of_shares),
		TEST(test_json_in_full),
		TEST(test_json_by_process),
		TEST(test_json_of_hostile_names),
		TEST(test_json_keeps_an_event_that_is_counted_twice),
		TEST(test_json_beyond_63_bits_stays_positive),
		TEST(test_text_by_cgroup),
		TEST(test_text_by_comm),
		TEST(test_text_by_cpu),
		TEST(test_width),
		TEST(test_colour),
		TEST(test_raw),
		TEST(test_rates),
		TEST(test_histogram),
		TEST(test_histogram_that_was_not_kept),
		TEST(test_json_with_rates_and_histograms),
		TEST(test_json_on_a_line),
		TEST(test_csv_in_full),
		TEST(test_csv_of_hostile_names),
		TEST(test_csv_with_rates),
		TEST(test_a_full_disk_is_an_error),
		TEST(test_options),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
