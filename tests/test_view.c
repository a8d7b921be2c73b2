/* engine/view: grouping, scope, order and the proofs, on aggregations made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "engine/view.h"

#define NR_COUNTERS 2

static const struct csw_driver_ops live = { .name = "perf", .caps = CSW_DRIVER_LIVE };
static const struct csw_driver_ops simulated = { .name = "sim", .caps = CSW_DRIVER_SIMULATED };

#define NR_CPUS 3

struct fixture {
	struct csw_plan plan;
	struct csw_aggregation agg, cpus;
	struct csw_result result;
	struct csw_table *table;
	uint64_t running[NR_COUNTERS];
};

/* 1 and 5 are two lives of one cgroup. */
static const char *path_of(void *ctx, uint64_t id)
{
	static const char *const paths[] = { NULL, "/a", "/b", "/a/c", NULL, "/a" };

	(void)ctx;
	return id < sizeof(paths) / sizeof(*paths) ? paths[id] : NULL;
}

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	f.plan.trigger =
		(struct csw_trigger){ .event = { .name = "switch", .became = "context-switches" },
				      .sav = 1 };
	f.plan.nr_counters = NR_COUNTERS;
	strcpy(f.plan.counters[0].name, "page-faults");
	strcpy(f.plan.counters[1].name, "task-clock");
	f.plan.counters[1].flags = CSW_EVENT_CLOCK | CSW_EVENT_NANOSECONDS;
	assert_int_equal(csw_aggregation_init(&f.agg, NR_COUNTERS, true), 0);
	assert_int_equal(csw_aggregation_init_empty(&f.cpus, NR_COUNTERS, true), 0);
	for (unsigned i = 0; i < 2 * NR_CPUS; i++)
		assert_int_equal(csw_aggregation_add(&f.cpus, CSW_KIND_THREAD, -1, -1, 0), i);
	f.result = (struct csw_result){ .plan = &f.plan,
					.driver = &live,
					.agg = &f.agg,
					.cpus = &f.cpus,
					.nr_cpus = NR_CPUS,
					.cgroups = true,
					.cgroup_path = path_of };
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	csw_table_close(f->table);
	csw_aggregation_free(&f->agg);
	csw_aggregation_free(&f->cpus);
	return 0;
}

/* A thread's row that ran in `nr` slices, each with `each` page faults and 1000 ns. */
static uint32_t add(struct fixture *f, uint16_t kind, int32_t pid, int32_t tid, uint64_t birth,
		    unsigned nr, uint64_t each, const char *comm)
{
	int64_t i = csw_aggregation_add(&f->agg, kind, pid, tid, birth);
	struct csw_agg_row *row;

	assert_true(i >= 0);
	row = csw_aggregation_row(&f->agg, (uint32_t)i);
	memcpy(row->comm, comm, strnlen(comm, sizeof(row->comm)));
	for (unsigned k = 0; k < nr; k++) {
		uint64_t deltas[NR_COUNTERS] = { each, 1000 };

		csw_aggregation_count(&f->agg, (uint32_t)i, deltas, true);
		row->slices++;
		row->voluntary++;
		row->oncpu_ns += 1000;
		row->exact_ns += 1000;
		row->enabled_ns += 1000;
		row->running_ns += 1000;
		row->proven = UINT32_MAX;
		f->result.totals[0] += each;
		f->result.totals[1] += 1000;
		f->result.enabled_ns += 1000;
		f->result.running_ns += 1000;
		f->result.summary.triggers++;
		f->result.summary.samples++;
	}
	return (uint32_t)i;
}

static void make_sorted(struct fixture *f, uint32_t by, const char *sort, uint64_t top)
{
	struct csw_table_opts opts = { .size = sizeof(opts), .sort = sort, .top = top };
	struct csw_error err;

	csw_table_close(f->table);
	if (csw_view_make(&f->table, &f->result, by, &opts, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(csw_view_by(f->table), by);
}

static void make(struct fixture *f, uint32_t by)
{
	make_sorted(f, by, NULL, 0);
}

static struct csw_summary summary(const struct fixture *f)
{
	struct csw_summary s;

	assert_int_equal(csw_table_summary(f->table, &s, sizeof(s)), 0);
	return s;
}

static uint64_t value(const struct fixture *f, size_t i, size_t j)
{
	struct csw_count c;

	assert_int_equal(csw_table_count(f->table, i, j, &c), 0);
	return c.value;
}

enum { SLICES = NR_COUNTERS, ONCPU, MIGRATIONS, WHOLE, NR_SUMS };

static uint64_t sum_of(const uint64_t *buckets)
{
	uint64_t sum = 0;

	for (unsigned k = 0; k < CSW_BUCKETS; k++)
		sum += buckets[k];
	return sum;
}

/* The shown rows add up to the aggregation's, whatever the grouping and the scope. */
static void assert_nothing_fell_off(const struct fixture *f)
{
	uint64_t shown[NR_SUMS] = { 0 }, made[NR_SUMS] = { 0 }, buckets[CSW_BUCKETS];
	const struct csw_row *row;

	for (size_t i = 0; (row = csw_table_row(f->table, i)) != NULL; i++) {
		for (unsigned j = 0; j < NR_COUNTERS; j++)
			shown[j] += value(f, i, j);
		shown[SLICES] += row->slices;
		shown[ONCPU] += row->oncpu_ns;
		shown[MIGRATIONS] += row->migrations;
		assert_int_equal(csw_table_histogram(f->table, i, 0, buckets), 0);
		shown[WHOLE] += sum_of(buckets);
	}
	for (uint32_t i = 0; i < f->agg.nr; i++) {
		const struct csw_agg_row *from = csw_aggregation_row(&f->agg, i);

		for (unsigned j = 0; j < NR_COUNTERS; j++)
			made[j] += from->cells[j].sum;
		if (from->flags & CSW_ROW_FREE)
			continue;
		made[SLICES] += from->slices;
		made[ONCPU] += from->oncpu_ns;
		made[MIGRATIONS] += from->migrations;
		made[WHOLE] += sum_of(csw_aggregation_histogram(&f->agg, i, 0));
	}
	assert_memory_equal(shown, made, sizeof(made));
}

static void test_only_what_ran_is_shown(void **state)
{
	struct fixture *f = *state;
	uint32_t cut = add(f, CSW_KIND_THREAD, 12, 12, 5, 0, 0, "cut");

	add(f, CSW_KIND_THREAD, 10, 10, 5, 2, 3, "ran");
	add(f, CSW_KIND_THREAD, 11, 11, 5, 0, 0, "slept");
	csw_aggregation_count(&f->agg, cut, (uint64_t[]){ 1, 0 }, false);
	f->result.totals[0]++;
	make(f, CSW_BY_THREAD);
	assert_int_equal(csw_table_rows(f->table), 2);
	assert_string_equal(csw_table_row(f->table, 0)->comm, "ran");
	assert_int_equal(csw_table_row(f->table, 0)->nr_threads, 1);
	assert_string_equal(csw_table_row(f->table, 1)->comm, "cut");
	assert_int_equal(summary(f).threads, 2);
	assert_false(summary(f).broken);
	assert_nothing_fell_off(f);
}

static void test_order(void **state)
{
	static const int32_t tids[] = { 7, 5, 6, 8, 8 };
	static const uint64_t births[] = { 1, 1, 1, 1, 2 };
	struct fixture *f = *state;

	add(f, CSW_KIND_THREAD, 9, 8, 2, 1, 1, "second life");
	add(f, CSW_KIND_THREAD, 9, 8, 1, 1, 1, "first life");
	add(f, CSW_KIND_THREAD, 9, 6, 1, 1, 1, "tie, tid");
	add(f, CSW_KIND_THREAD, 4, 5, 1, 1, 1, "tie, pid");
	add(f, CSW_KIND_THREAD, 9, 7, 1, 1, 2, "most");
	make(f, CSW_BY_THREAD);
	assert_int_equal(csw_table_rows(f->table), 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(csw_table_row(f->table, i)->tid, tids[i]);
		assert_int_equal(csw_table_row(f->table, i)->birth_ns, births[i]);
	}
	assert_null(csw_table_row(f->table, 5));
}

static void test_min_and_max(void **state)
{
	struct fixture *f = *state;
	uint32_t whole = add(f, CSW_KIND_THREAD, 10, 10, 0, 1, 7, "a");
	uint32_t cut = add(f, CSW_KIND_THREAD, 10, 11, 0, 0, 0, "b");
	struct csw_count c;

	csw_aggregation_count(&f->agg, whole, (uint64_t[]){ 3, 0 }, true);
	csw_aggregation_count(&f->agg, cut, (uint64_t[]){ 1, 0 }, false);
	make(f, CSW_BY_THREAD);
	csw_table_count(f->table, 0, 0, &c);
	assert_int_equal(c.min, 3);
	assert_int_equal(c.max, 7);
	csw_table_count(f->table, 1, 0, &c);
	assert_int_equal(c.min, 0);
	assert_int_equal(c.max, 0);
	make(f,
	     CSW_BY_PROCESS); /* the thread without a whole slice must not pull the minimum down */
	csw_table_count(f->table, 0, 0, &c);
	assert_int_equal(c.value, 11);
	assert_int_equal(c.min, 3);
	assert_int_equal(c.max, 7);
}

static void test_processes(void **state)
{
	struct fixture *f = *state;
	const struct csw_row *row;

	add(f, CSW_KIND_THREAD, 10, 11, 3, 1, 5, "worker");
	add(f, CSW_KIND_THREAD, 20, 20, 1, 1, 2, "single");
	add(f, CSW_KIND_THREAD, 10, 10, 2, 2, 4, "main");
	add(f, CSW_KIND_THREAD, 10, 12, 4, 0, 0, "never ran");
	add(f, CSW_KIND_THREAD, 30, 30, 4, 0, 0, "nothing ran");
	add(f, CSW_KIND_MIXED, 10, -1, 0, 1, 1, "");
	make(f, CSW_BY_PROCESS);
	assert_int_equal(csw_table_rows(f->table), 3);
	row = csw_table_row(f->table, 0);
	assert_int_equal(row->pid, 10);
	assert_int_equal(row->tid, -1);
	assert_int_equal(row->nr_threads, 2);
	assert_int_equal(row->birth_ns, 2);
	assert_int_equal(row->slices, 3);
	assert_int_equal(row->voluntary, 3);
	assert_string_equal(row->comm, "main");
	assert_int_equal(value(f, 0, 0), 13);
	assert_string_equal(csw_table_row(f->table, 1)->comm, "single");
	assert_int_equal(csw_table_row(f->table, 2)->kind, CSW_KIND_MIXED);
	assert_int_equal(summary(f).threads, 3);
	assert_nothing_fell_off(f);
}

static void test_reused_pid_is_another_process(void **state)
{
	struct fixture *f = *state;
	uint32_t old = add(f, CSW_KIND_THREAD, 10, 10, 1, 1, 9, "old");

	add(f, CSW_KIND_THREAD, 10, 11, 2, 1, 9, "old thread");
	csw_aggregation_row(&f->agg, old)->flags |= CSW_ROW_EXITED | CSW_ROW_CLOSED;
	add(f, CSW_KIND_THREAD, 10, 10, 50, 1, 1, "new");
	add(f, CSW_KIND_THREAD, 10, 12, 51, 1, 1, "new thread");
	make(f, CSW_BY_PROCESS);
	assert_int_equal(csw_table_rows(f->table), 2);
	assert_string_equal(csw_table_row(f->table, 0)->comm, "old");
	assert_int_equal(value(f, 0, 0), 18);
	assert_string_equal(csw_table_row(f->table, 1)->comm, "new");
	assert_int_equal(value(f, 1, 0), 2);
	assert_int_equal(csw_table_row(f->table, 1)->birth_ns, 50);
	assert_nothing_fell_off(f);
}

/* exec from another thread: the old leader's row closes, the thread's takes over its TID. Still one
 * process. */
static void test_exec_is_the_same_process(void **state)
{
	struct fixture *f = *state;
	uint32_t old = add(f, CSW_KIND_THREAD, 10, 10, 1, 1, 1, "before"), heir;

	csw_aggregation_row(&f->agg, old)->flags |= CSW_ROW_EXITED | CSW_ROW_CLOSED;
	heir = add(f, CSW_KIND_THREAD, 10, 10, 2, 1, 1, "after");
	csw_aggregation_row(&f->agg, heir)->flags |= CSW_ROW_MOVED;
	make(f, CSW_BY_PROCESS);
	assert_int_equal(csw_table_rows(f->table), 1);
	assert_int_equal(csw_table_row(f->table, 0)->nr_threads, 2);
	assert_int_equal(csw_table_row(f->table, 0)->birth_ns, 1);
	assert_string_equal(csw_table_row(f->table, 0)->comm, "after");
}

static void fill_machine(struct fixture *f)
{
	struct csw_agg_row *row;

	csw_aggregation_row(&f->agg, add(f, CSW_KIND_THREAD, 10, 10, 1, 1, 3, "in"))->flags |=
		CSW_ROW_IN_SCOPE;
	csw_aggregation_row(&f->agg, add(f, CSW_KIND_MIXED, 10, -1, 1, 1, 2, ""))->flags |=
		CSW_ROW_IN_SCOPE;
	add(f, CSW_KIND_THREAD, 20, 20, 1, 1, 40, "out");
	add(f, CSW_KIND_KERNEL, 2, 2, 1, 1, 50, "kthreadd");
	add(f, CSW_KIND_SELF, 99, 99, 1, 1, 60, "csw-sample");
	csw_aggregation_count(&f->agg, CSW_ROW_IDLE, (uint64_t[]){ 0, 7000 }, true);
	row = csw_aggregation_row(&f->agg, CSW_ROW_IDLE);
	row->slices = 1;
	row->oncpu_ns = row->exact_ns = 7000;
	f->result.totals[1] += 7000;
	csw_aggregation_count(&f->agg, CSW_ROW_LOST, (uint64_t[]){ 1, 0 }, false);
	f->result.totals[0]++;
}

static void test_scope(void **state)
{
	struct fixture *f = *state;

	fill_machine(f);
	f->result.scoped = true;
	for (uint32_t by = CSW_BY_THREAD; by <= CSW_BY_CGROUP; by++) {
		const struct csw_row *row;
		bool has_pid = by == CSW_BY_THREAD || by == CSW_BY_PROCESS;

		make(f, by);
		assert_int_equal(csw_table_rows(f->table), 4);
		assert_int_equal(csw_view_threads_in_scope(f->table), 1);
		row = csw_table_row(f->table, 3); /* the most faults, but a remainder */
		assert_int_equal(row->kind, CSW_KIND_OTHER);
		assert_int_equal(row->pid, -1);
		assert_int_equal(row->nr_threads, 3);
		assert_int_equal(row->oncpu_ns, 3000 + 7000);
		assert_int_equal(value(f, 3, 0), 150);
		assert_string_equal(csw_table_row(f->table, 0)->comm,
				    by == CSW_BY_CGROUP ? "" : "in");
		assert_int_equal(csw_table_row(f->table, 1)->kind, CSW_KIND_MIXED);
		assert_int_equal(csw_table_row(f->table, 1)->pid, has_pid ? 10 : -1);
		assert_false(summary(f).broken);
		assert_nothing_fell_off(f);
	}
}

static void test_summary(void **state)
{
	struct fixture *f = *state;
	struct csw_summary s;

	fill_machine(f);
	csw_aggregation_row(&f->agg, CSW_ROW_LOST)->oncpu_ns = 500;
	make(f, CSW_BY_PROCESS);
	assert_int_equal(csw_table_rows(f->table), 7);
	s = summary(f);
	assert_string_equal(s.trigger, "switch");
	assert_string_equal(s.trigger_became, "context-switches");
	assert_string_equal(s.driver, "perf");
	assert_false(s.simulated);
	assert_int_equal(s.sav, 1);
	assert_int_equal(s.threads, 3); /* in, out, kthreadd */
	assert_int_equal(s.slices, 6);
	assert_int_equal(s.oncpu_ns, 5500);
	assert_int_equal(s.exact_ns, 5000);
	f->result.driver = &simulated;
	make(f, CSW_BY_THREAD);
	assert_true(summary(f).simulated);
}

static void test_conservation(void **state)
{
	struct fixture *f = *state;
	struct csw_counter c;

	fill_machine(f);
	f->result.totals[1]++;
	make(f, CSW_BY_THREAD);
	assert_true(summary(f).broken);
	assert_int_equal(csw_table_counter(f->table, 0, &c), 0);
	assert_int_equal(c.total, c.rows);
	assert_false(c.nanoseconds);
	assert_int_equal(csw_table_counter(f->table, 1, &c), 0);
	assert_int_equal(c.total, c.rows + 1);
	assert_true(c.nanoseconds);
}

static void test_completeness(void **state)
{
	struct fixture *f = *state;
	struct csw_summary *s = &f->result.summary;

	f->plan.trigger.sav = 3;
	*s = (struct csw_summary){ .triggers = 3 * 5 + 1 + 2 + 4 + 2,
				   .samples = 5,
				   .lost = 1,
				   .throttled = 2,
				   .unseen = 4,
				   .open = 2 };
	make(f, CSW_BY_THREAD);
	assert_false(summary(f).broken);
	s->open--;
	make(f, CSW_BY_THREAD);
	assert_true(summary(f).broken);
	assert_string_equal(summary(f).broken_why,
			    "the trigger's occurrences are not all accounted for");
	s->open++;
	make(f, CSW_BY_THREAD);
	assert_false(summary(f).broken);
	assert_null(summary(f).broken_why);
}

static void check_wrong(struct fixture *f, const struct csw_wrong_reading *wrong, const char *why)
{
	f->result.wrong = wrong;
	make(f, CSW_BY_THREAD);
	assert_true(summary(f).broken);
	assert_string_equal(summary(f).broken_why, why);
}

/* The sums hold, as they are of the very readings; so it has to be said. */
static void test_wrong_reading(void **state)
{
	struct fixture *f = *state;
	struct csw_wrong_reading wrong = { .cpu = 3, .before = 12, .now = 7 };

	fill_machine(f);
	wrong.what = CSW_READING_COUNTER + 1;
	check_wrong(f, &wrong,
		    "a reading of task-clock was wrong, on CPU 3 it went back from 12 to 7");
	wrong.what = CSW_READING_TRIGGER;
	check_wrong(f, &wrong,
		    "a reading of the trigger was wrong, on CPU 3 it went back from 12 to 7");
	wrong.what = CSW_READING_ENABLED;
	check_wrong(f, &wrong,
		    "a reading of the time that the counters were enabled was wrong, on CPU 3 it "
		    "went back from 12 to 7");
	wrong.what = CSW_READING_RUNNING;
	check_wrong(f, &wrong,
		    "a reading of the time that the counters ran was wrong, on CPU 3 it went back "
		    "from 12 to 7");
	wrong = (struct csw_wrong_reading){
		.what = CSW_READING_COUNTER, .off = true, .cpu = 1, .before = 12, .now = 17
	};
	check_wrong(f, &wrong,
		    "a reading of page-faults was wrong, on CPU 1 it went from 12 to 17 while it "
		    "was off");
}

/* One line, which names one counter for each check. */
static void test_all_reasons(void **state)
{
	struct fixture *f = *state;
	const struct csw_wrong_reading wrong = { .what = CSW_READING_TRIGGER,
						 .before = UINT64_MAX,
						 .now = UINT64_MAX - 1 };

	fill_machine(f);
	f->result.totals[0]++;
	f->result.totals[1] = UINT64_MAX / 2;
	f->result.summary.cpu_ns = 1000;
	f->result.summary.triggers++;
	check_wrong(f, &wrong,
		    "a reading of the trigger was wrong, on CPU 0 it went back from "
		    "18446744073709551615 to 18446744073709551614; the rows are not what the "
		    "counter counted: page-faults and 1 more; a clock shows more time than the "
		    "CPUs had: task-clock; the rows' time is not the CPUs' time; the trigger's "
		    "occurrences are not all accounted for");
	f->result.totals[0]--;
	f->result.summary.triggers--;
	check_wrong(f, NULL,
		    "the rows are not what the counter counted: task-clock; a clock shows more "
		    "time than the CPUs had: task-clock; the rows' time is not the CPUs' time");
}

/* Names of any length: it is cut, and ends. */
static void test_reasons_that_do_not_fit(void **state)
{
	struct fixture *f = *state;
	struct csw_summary s;

	fill_machine(f);
	for (unsigned j = 0; j < 2; j++)
		memset(f->plan.counters[j].name, 'x', sizeof(f->plan.counters[j].name) - 1);
	f->result.totals[0]++;
	f->result.totals[1] = UINT64_MAX / 2;
	f->result.summary.cpu_ns = 1000;
	f->result.wrong = &(const struct csw_wrong_reading){ .what = CSW_READING_COUNTER + 1 };
	make(f, CSW_BY_THREAD);
	s = summary(f);
	assert_int_equal(strlen(s.broken_why), CSW_WHY_BYTES - 1);
}

static void test_not_counted_is_flagged(void **state)
{
	struct fixture *f = *state;
	uint32_t i = add(f, CSW_KIND_THREAD, 10, 10, 1, 1, 0, "starved");
	struct csw_count c;
	struct csw_counter counter;

	add(f, CSW_KIND_THREAD, 11, 11, 1, 1, 1, "counted");
	csw_aggregation_row(&f->agg, i)->running_ns = 0;
	make(f, CSW_BY_THREAD);
	csw_table_count(f->table, 0, 0, &c);
	assert_false(c.flags & CSW_COUNT_NOT_COUNTED);
	csw_table_count(f->table, 1, 0, &c);
	assert_true(c.flags & CSW_COUNT_NOT_COUNTED);
	assert_int_equal(c.enabled_ns, 1000);
	csw_table_counter(f->table, 0, &counter);
	assert_false(counter.flags & CSW_COUNT_NOT_COUNTED);
	f->result.running_ns = 0;
	make(f, CSW_BY_THREAD);
	csw_table_counter(f->table, 0, &counter);
	assert_true(counter.flags & CSW_COUNT_NOT_COUNTED);
}

/* Not one occurrence of a hardware event in a second: that is no 0. */
static void test_never_occurred(void **state)
{
	struct fixture *f = *state;
	struct csw_counter counter;
	struct csw_count c;

	f->plan.counters[0].flags = CSW_EVENT_HARDWARE;
	add(f, CSW_KIND_THREAD, 10, 10, 1, 1, 0, "a");
	f->result.running_ns = 999999999;
	make(f, CSW_BY_THREAD);
	csw_table_counter(f->table, 0, &counter);
	assert_false(counter.flags & CSW_COUNT_NOT_COUNTED);

	f->result.running_ns = 1000000000;
	make(f, CSW_BY_THREAD);
	csw_table_counter(f->table, 0, &counter);
	assert_true(counter.flags & CSW_COUNT_NOT_COUNTED);
	csw_table_count(f->table, 0, 0, &c);
	assert_true(c.flags & CSW_COUNT_NOT_COUNTED);
	csw_table_count(f->table, 0, 1, &c);
	assert_false(c.flags & CSW_COUNT_NOT_COUNTED);

	/* Software that counts nothing has seen nothing. */
	f->plan.counters[0].flags = 0;
	make(f, CSW_BY_THREAD);
	csw_table_count(f->table, 0, 0, &c);
	assert_false(c.flags & CSW_COUNT_NOT_COUNTED);

	/* One occurrence anywhere, and 0 is 0. */
	f->plan.counters[0].flags = CSW_EVENT_HARDWARE;
	add(f, CSW_KIND_THREAD, 11, 11, 1, 1, 1, "b");
	make(f, CSW_BY_THREAD);
	csw_table_count(f->table, 1, 0, &c);
	assert_false(c.flags & CSW_COUNT_NOT_COUNTED);
	assert_int_equal(c.value, 0);
}

static void test_ranges(void **state)
{
	struct fixture *f = *state;
	struct csw_table *t = f->table;
	uint64_t buckets[CSW_BUCKETS];
	struct csw_error err;
	struct csw_count c;
	struct csw_counter counter;

	add(f, CSW_KIND_THREAD, 10, 10, 1, 1, 1, "a");
	assert_int_equal(csw_view_make(&t, &f->result, 77, NULL, &err), -EINVAL);
	assert_null(t);
	assert_non_null(strstr(err.text, "77"));
	make(f, CSW_BY_THREAD);
	assert_int_equal(csw_table_count(f->table, 1, 0, &c), -ERANGE);
	assert_int_equal(csw_table_count(f->table, 0, NR_COUNTERS, &c), -ERANGE);
	assert_int_equal(csw_table_counter(f->table, NR_COUNTERS, &counter), -ERANGE);
	assert_int_equal(csw_table_counters(f->table), NR_COUNTERS);
	assert_int_equal(csw_table_histogram(f->table, 1, 0, buckets), -ERANGE);
	assert_int_equal(csw_table_histogram(f->table, 0, NR_COUNTERS, buckets), -ERANGE);
	assert_string_equal(csw_kind_name(CSW_KIND_REST), "rest");
	assert_string_equal(csw_kind_name(1000), "?");
}

/* What a heading calls a column, one can sort by as well; without counters, time says who had most.
 */
static void test_order_by_headings(void **state)
{
	static const char *const headings[] = { "vol", "PRE", "migr" };
	struct fixture *f = *state;
	uint32_t few = add(f, CSW_KIND_THREAD, 1, 1, 1, 1, 9, "few");
	uint32_t many = add(f, CSW_KIND_THREAD, 2, 2, 1, 3, 1, "many");

	csw_aggregation_row(&f->agg, few)->preempted =
		csw_aggregation_row(&f->agg, few)->migrations = 1;
	csw_aggregation_row(&f->agg, many)->preempted =
		csw_aggregation_row(&f->agg, many)->migrations = 2;
	for (size_t i = 0; i < 3; i++) {
		make_sorted(f, CSW_BY_THREAD, headings[i], 0);
		assert_string_equal(csw_table_row(f->table, 0)->comm, "many");
	}
	make(f, CSW_BY_THREAD);
	assert_string_equal(csw_table_row(f->table, 0)->comm, "few");
}

static void test_order_without_counters(void **state)
{
	struct csw_aggregation agg, cpus;
	struct csw_plan plan = { .nr_counters = 0 };
	struct csw_result result = { .plan = &plan, .driver = &live, .agg = &agg, .cpus = &cpus };
	struct csw_table *table;

	(void)state;
	assert_int_equal(csw_aggregation_init(&agg, 0, false), 0);
	assert_int_equal(csw_aggregation_init_empty(&cpus, 0, false), 0);
	for (int32_t i = 1; i <= 3; i++) {
		int64_t nr = csw_aggregation_add(&agg, CSW_KIND_THREAD, i, i, 1);

		csw_aggregation_row(&agg, (uint32_t)nr)->oncpu_ns =
			(uint64_t)(i * 7 % 5); /* 2 4 1 */
	}
	assert_int_equal(csw_view_make(&table, &result, CSW_BY_THREAD, NULL, NULL), 0);
	assert_int_equal(csw_table_row(table, 0)->tid, 2);
	assert_int_equal(csw_table_row(table, 1)->tid, 1);
	assert_int_equal(csw_table_row(table, 2)->tid, 3);
	csw_table_close(table);
	csw_aggregation_free(&agg);
	csw_aggregation_free(&cpus);
}

/* ---- comm, cgroup, CPU ---- */

/* The same thread from here on in another cgroup: a row of its own that continues the first. */
static uint32_t move(struct fixture *f, uint32_t from, uint64_t cgroup, unsigned nr, uint64_t each,
		     const char *comm)
{
	struct csw_agg_row *row = csw_aggregation_row(&f->agg, from);
	uint32_t to = add(f, row->kind, row->pid, row->tid, row->birth_ns, nr, each, comm);

	csw_aggregation_row(&f->agg, to)->continues = from;
	csw_aggregation_row(&f->agg, to)->cgroup = cgroup;
	csw_aggregation_row(&f->agg, to)->last_cpu = 2;
	return to;
}

/* A worker that goes from /a to /b and back, beside a thread that stays in /a. */
static void fill_cgroups(struct fixture *f)
{
	uint32_t mover = add(f, CSW_KIND_THREAD, 10, 11, 1, 2, 10, "early"), later;
	uint32_t stays = add(f, CSW_KIND_THREAD, 10, 10, 1, 1, 5, "main");

	csw_aggregation_row(&f->agg, mover)->cgroup = 1;
	csw_aggregation_row(&f->agg, mover)->migrations = 4;
	csw_aggregation_row(&f->agg, stays)->cgroup = 1;
	later = move(f, mover, 2, 1, 3, "middle");
	csw_aggregation_row(&f->agg, later)->migrations = 1;
	move(f, later, 5, 1, 7, "late");
}

static void test_a_moved_thread_is_one_row(void **state)
{
	struct fixture *f = *state;
	const struct csw_row *row;
	struct csw_count c;

	fill_cgroups(f);
	make(f, CSW_BY_THREAD);
	assert_int_equal(csw_table_rows(f->table), 2);
	row = csw_table_row(f->table, 0);
	assert_int_equal(row->tid, 11);
	assert_int_equal(row->slices, 4);
	assert_int_equal(row->migrations, 5);
	assert_int_equal(row->nr_threads, 1);
	assert_int_equal(row->cpu, 2);
	assert_string_equal(row->comm, "late");
	assert_string_equal(row->cgroup, "/a");
	assert_int_equal(csw_table_count(f->table, 0, 0, &c), 0);
	assert_int_equal(c.value, 30);
	assert_int_equal(c.min, 3);
	assert_int_equal(c.max, 10);
	assert_int_equal(summary(f).threads, 2);
	assert_int_equal(csw_view_threads_in_scope(f->table), 2);
	assert_nothing_fell_off(f);
	make(f, CSW_BY_PROCESS);
	assert_int_equal(csw_table_rows(f->table), 1);
	assert_int_equal(csw_table_row(f->table, 0)->nr_threads, 2);
	assert_string_equal(csw_table_row(f->table, 0)->comm, "main");
	assert_string_equal(csw_table_row(f->table, 0)->cgroup, "/a");
	assert_nothing_fell_off(f);
}

static void test_by_cgroup(void **state)
{
	struct fixture *f = *state;
	const struct csw_row *row;

	fill_cgroups(f);
	add(f, CSW_KIND_THREAD, 30, 30, 1, 1, 1, "nobody knows where");
	make(f, CSW_BY_CGROUP);
	assert_int_equal(csw_table_rows(f->table), 3);
	row = csw_table_row(f->table, 0); /* both lives of /a */
	assert_string_equal(row->cgroup, "/a");
	assert_int_equal(row->nr_threads, 2);
	assert_int_equal(row->slices, 4);
	assert_int_equal(row->pid, -1);
	assert_int_equal(row->cpu, -1);
	assert_string_equal(row->comm, "");
	assert_int_equal(value(f, 0, 0), 32);
	row = csw_table_row(f->table, 1);
	assert_string_equal(row->cgroup, "/b");
	assert_int_equal(row->nr_threads, 1);
	assert_int_equal(value(f, 1, 0), 3);
	assert_null(csw_table_row(f->table, 2)->cgroup);
	assert_int_equal(summary(f).threads, 3);
	assert_nothing_fell_off(f);
}

/* Nobody else's row lies between the two of a thread that moved: each belongs to its own group. */
static void test_a_thread_alone_in_two_cgroups(void **state)
{
	struct fixture *f = *state;
	uint32_t before = add(f, CSW_KIND_THREAD, 10, 10, 1, 1, 8, "sh"), child;

	csw_aggregation_row(&f->agg, before)->cgroup = 1;
	csw_aggregation_row(&f->agg, before)->flags |= CSW_ROW_IN_SCOPE;
	csw_aggregation_row(&f->agg, move(f, before, 2, 1, 50, "true"))->flags |= CSW_ROW_IN_SCOPE;
	child = add(f, CSW_KIND_THREAD, 11, 11, 2, 1, 4, "true");
	csw_aggregation_row(&f->agg, child)->cgroup = 2;
	csw_aggregation_row(&f->agg, child)->flags |= CSW_ROW_IN_SCOPE;
	for (int scoped = 0; scoped < 2; scoped++) {
		f->result.scoped = scoped;
		make(f, CSW_BY_CGROUP);
		assert_int_equal(csw_table_rows(f->table), 2);
		assert_string_equal(csw_table_row(f->table, 0)->cgroup, "/b");
		assert_int_equal(csw_table_row(f->table, 0)->nr_threads, 2);
		assert_int_equal(value(f, 0, 0), 54);
		assert_string_equal(csw_table_row(f->table, 1)->cgroup, "/a");
		assert_int_equal(csw_table_row(f->table, 1)->nr_threads, 1);
		assert_int_equal(value(f, 1, 0), 8);
		assert_nothing_fell_off(f);
	}
}

/* A row's number is used again: what continues another may lie before it. */
static void test_a_chain_in_whatever_order(void **state)
{
	struct fixture *f = *state;
	uint32_t late = add(f, CSW_KIND_THREAD, 10, 10, 1, 1, 1, "late");
	uint32_t early = add(f, CSW_KIND_THREAD, 10, 10, 1, 1, 2, "early");
	uint32_t middle = add(f, CSW_KIND_THREAD, 10, 10, 1, 1, 4, "middle");
	uint32_t gone = add(f, CSW_KIND_THREAD, 5, 5, 1, 0, 0, "gone");

	csw_aggregation_row(&f->agg, late)->continues = middle;
	csw_aggregation_row(&f->agg, late)->cgroup = 2;
	csw_aggregation_row(&f->agg, middle)->continues = early;
	csw_aggregation_row(&f->agg, middle)->cgroup = 1;
	csw_aggregation_row(&f->agg, gone)->flags = CSW_ROW_FREE;
	csw_aggregation_row(&f->agg, gone)->continues = early; /* the chain of the free rows */
	for (uint32_t by = CSW_BY_THREAD; by <= CSW_BY_COMM; by++) {
		make(f, by);
		assert_int_equal(csw_table_rows(f->table), 1);
		assert_string_equal(csw_table_row(f->table, 0)->comm, "late");
		assert_string_equal(csw_table_row(f->table, 0)->cgroup, "/b");
		assert_int_equal(value(f, 0, 0), 7);
		assert_int_equal(csw_table_row(f->table, 0)->nr_threads, 1);
		assert_nothing_fell_off(f);
	}
}

/* Out of a cgroup's scope and in it, one thread is both `other` and a row. */
static void test_a_thread_that_leaves_the_scope(void **state)
{
	struct fixture *f = *state;
	uint32_t in = add(f, CSW_KIND_THREAD, 10, 10, 1, 1, 1, "inside");

	csw_aggregation_row(&f->agg, in)->flags |= CSW_ROW_IN_SCOPE;
	csw_aggregation_row(&f->agg, in)->cgroup = 1;
	move(f, in, 2, 1, 8, "outside");
	f->result.scoped = true;
	make(f, CSW_BY_THREAD);
	assert_int_equal(csw_table_rows(f->table), 2);
	assert_int_equal(csw_table_row(f->table, 1)->kind, CSW_KIND_OTHER);
	assert_int_equal(csw_table_row(f->table, 1)->nr_threads, 1);
	assert_int_equal(value(f, 1, 0), 8);
	assert_string_equal(csw_table_row(f->table, 0)->cgroup, "/a");
	assert_int_equal(value(f, 0, 0), 1);
	assert_int_equal(summary(f).threads, 1);
	assert_int_equal(csw_view_threads_in_scope(f->table), 1);
	assert_nothing_fell_off(f);
}

static void test_by_comm(void **state)
{
	struct fixture *f = *state;

	add(f, CSW_KIND_THREAD, 10, 10, 1, 1, 100, "sh");
	add(f, CSW_KIND_THREAD, 20, 20, 1, 2, 100, "sh");
	add(f, CSW_KIND_THREAD, 20, 21, 1, 1, 50, "0123456789abcde");
	add(f, CSW_KIND_KERNEL, 7, 7, 1, 1, 40, "sh"); /* no program */
	add(f, CSW_KIND_MIXED, 10, -1, 1, 1, 9, "");
	add(f, CSW_KIND_MIXED, 20, -1, 1, 1, 9, "");
	make(f, CSW_BY_COMM);
	assert_int_equal(csw_table_rows(f->table), 4);
	assert_string_equal(csw_table_row(f->table, 0)->comm, "sh");
	assert_int_equal(csw_table_row(f->table, 0)->nr_threads, 2);
	assert_int_equal(csw_table_row(f->table, 0)->pid, -1);
	assert_int_equal(value(f, 0, 0), 300);
	assert_string_equal(csw_table_row(f->table, 1)->comm, "0123456789abcde");
	assert_int_equal(csw_table_row(f->table, 2)->kind, CSW_KIND_KERNEL);
	assert_int_equal(csw_table_row(f->table, 3)->kind, CSW_KIND_MIXED);
	assert_int_equal(csw_table_row(f->table, 3)->nr_threads, 0);
	assert_int_equal(value(f, 3, 0), 18);
	assert_nothing_fell_off(f);
}

static void count_on_cpu(struct fixture *f, uint32_t row, uint64_t faults, bool whole)
{
	csw_aggregation_count(&f->cpus, row, (uint64_t[]){ faults, 10 }, whole);
	csw_aggregation_row(&f->cpus, row)->slices++;
	csw_aggregation_row(&f->cpus, row)->oncpu_ns += 10;
	f->result.totals[0] += faults;
	f->result.totals[1] += 10;
}

static void test_by_cpu(void **state)
{
	struct fixture *f = *state;
	struct csw_count c;

	count_on_cpu(f, 0, 5, true);
	count_on_cpu(f, 4, 9, true); /* CPU 1 was not counted */
	count_on_cpu(f, 5, 2, true);
	count_on_cpu(f, 1, 4, false);
	f->result.scoped = true;
	make(f, CSW_BY_CPU);
	assert_int_equal(csw_table_rows(f->table), 3);
	assert_int_equal(csw_table_row(f->table, 0)->cpu, 2);
	assert_int_equal(csw_table_row(f->table, 0)->pid, -1);
	assert_int_equal(value(f, 0, 0), 9);
	assert_int_equal(csw_table_row(f->table, 2)->kind, CSW_KIND_OTHER);
	assert_int_equal(csw_table_row(f->table, 2)->cpu, -1);
	assert_int_equal(csw_table_row(f->table, 2)->slices, 2);
	assert_int_equal(csw_table_count(f->table, 2, 0, &c), 0);
	assert_int_equal(c.value, 6);
	assert_int_equal(c.min, 2);
	assert_int_equal(csw_table_row(f->table, 1)->cpu, 0);
	assert_false(summary(f).broken);
	f->result.scoped = false;
	make_sorted(f, CSW_BY_CPU, "cpu", 0);
	assert_int_equal(csw_table_rows(f->table), 2);
	assert_int_equal(csw_table_row(f->table, 0)->cpu, 0);
	assert_int_equal(value(f, 0, 0), 9);
	assert_int_equal(value(f, 1, 0), 11);
	assert_false(summary(f).broken);
}

/* ---- order and top ---- */

static void assert_tids(const struct fixture *f, const int32_t *tids, size_t nr)
{
	assert_int_equal(csw_table_rows(f->table), nr);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(csw_table_row(f->table, i)->tid, tids[i]);
}

static void test_sort(void **state)
{
	static const struct {
		const char *sort;
		int32_t tids[3];
	} cases[] = {
		{ "page-faults", { 3, 2, 1 } }, { "PAGE-FAULTS", { 3, 2, 1 } },
		{ "task-clock", { 1, 2, 3 } },  { "oncpu", { 1, 2, 3 } },
		{ "slices", { 1, 2, 3 } },      { "voluntary", { 1, 2, 3 } },
		{ "preempted", { 2, 1, 3 } },   { "migrations", { 3, 1, 2 } },
		{ "pid", { 3, 1, 2 } },         { "tid", { 1, 2, 3 } },
		{ "comm", { 2, 3, 1 } },        { "cgroup", { 2, 1, 3 } },
		{ "cpu", { 3, 1, 2 } },
	};
	struct fixture *f = *state;
	struct csw_agg_row *rows[3];

	add(f, CSW_KIND_THREAD, 20, 1, 1, 5, 1, "c");
	add(f, CSW_KIND_THREAD, 20, 2, 1, 4, 10, "a");
	add(f, CSW_KIND_THREAD, 10, 3, 1, 3, 100, "b");
	for (unsigned i = 0; i < 3; i++)
		rows[i] = csw_aggregation_row(&f->agg, CSW_ROWS_FIXED + i);
	rows[1]->preempted = 3;
	rows[2]->migrations = 2;
	rows[0]->migrations = 1;
	rows[0]->cgroup = 2;
	rows[1]->cgroup = 3; /* "/a/c", before "/b"; none comes last */
	rows[0]->last_cpu = 1;
	rows[1]->last_cpu = CSW_CPU_NONE;
	rows[2]->last_cpu = 0;
	rows[0]->preempted = 1;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		make_sorted(f, CSW_BY_THREAD, cases[i].sort, 0);
		assert_tids(f, cases[i].tids, 3);
	}
}

static void test_sort_by_nothing_known(void **state)
{
	struct csw_table_opts opts = { .size = sizeof(opts), .sort = "page-fault" };
	struct fixture *f = *state;
	struct csw_table *t = NULL;
	struct csw_error err;

	assert_int_equal(csw_view_make(&t, &f->result, CSW_BY_THREAD, &opts, &err), -ENOENT);
	assert_null(t);
	assert_non_null(strstr(err.text, "nearest: page-faults"));
	opts.sort = "slcies";
	assert_int_equal(csw_view_make(&t, &f->result, CSW_BY_THREAD, &opts, &err), -ENOENT);
	assert_non_null(strstr(err.text, "nearest: slices"));
	opts.sort = "\033[2J";
	assert_int_equal(csw_view_make(&t, &f->result, CSW_BY_THREAD, &opts, &err), -ENOENT);
	assert_null(strchr(err.text, '\033'));
	f->result.cgroups = false;
	opts.sort = "cgroup";
	assert_int_equal(csw_view_make(&t, &f->result, CSW_BY_THREAD, &opts, &err), -EINVAL);
	opts.sort = NULL;
	assert_int_equal(csw_view_make(&t, &f->result, CSW_BY_CGROUP, &opts, &err), -EINVAL);
	assert_non_null(strstr(err.text, "cgroups"));
	f->result.cpus = NULL;
	assert_int_equal(csw_view_make(&t, &f->result, CSW_BY_CPU, &opts, &err), -EINVAL);
	opts.size = 1;
	assert_int_equal(csw_view_make(&t, &f->result, CSW_BY_THREAD, &opts, &err), -EINVAL);
}

static void test_top(void **state)
{
	struct fixture *f = *state;
	struct csw_count c;

	fill_machine(f);
	for (uint64_t top = 1; top < 12; top++) {
		const struct csw_row *rest;
		size_t nr;

		make(f, CSW_BY_THREAD);
		nr = csw_table_rows(f->table);
		assert_int_equal(nr, 7);
		make_sorted(f, CSW_BY_THREAD, NULL, top);
		assert_int_equal(csw_table_rows(f->table), top < nr ? top + 1 : nr);
		assert_nothing_fell_off(f);
		assert_false(summary(f).broken);
		assert_int_equal(summary(f).threads, 3);
		rest = csw_table_row(f->table, csw_table_rows(f->table) - 1);
		assert_int_equal(rest->kind == CSW_KIND_REST, top < nr);
	}
	make_sorted(f, CSW_BY_THREAD, NULL, 3); /* self, kernel, out | in, mixed, lost, idle */
	assert_int_equal(csw_table_row(f->table, 3)->nr_threads, 1);
	assert_int_equal(csw_table_row(f->table, 3)->slices, 3);
	assert_int_equal(csw_table_row(f->table, 3)->pid, -1);
	assert_int_equal(csw_table_count(f->table, 3, 0, &c), 0);
	assert_int_equal(c.value, 6);
	assert_int_equal(c.min, 0);
	assert_int_equal(c.max, 3);
}

/* 0 is a count: what is folded was counted, so is the sum. */
static void test_rest_keeps_a_proven_zero(void **state)
{
	struct fixture *f = *state;
	struct csw_count c;

	add(f, CSW_KIND_THREAD, 10, 10, 1, 1, 5, "a");
	add(f, CSW_KIND_THREAD, 11, 11, 1, 1, 0, "b");
	add(f, CSW_KIND_THREAD, 12, 12, 1, 1, 0, "c");
	make_sorted(f, CSW_BY_THREAD, NULL, 1);
	assert_int_equal(csw_table_row(f->table, 1)->kind, CSW_KIND_REST);
	assert_int_equal(csw_table_count(f->table, 1, 0, &c), 0);
	assert_int_equal(c.flags, 0);
	assert_int_equal(c.value, 0);
}

/* `rest` and `other` are remainders: behind all rows, in this order, whatever the column. */
static void test_remainders_come_last(void **state)
{
	static const char *const columns[] = { NULL, "oncpu", "slices", "pid", "comm", "cpu" };
	struct fixture *f = *state;

	fill_machine(f);
	f->result.scoped = true;
	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
		for (uint64_t top = 0; top < 5; top++) {
			size_t shown = !top || top > 3 ? 3 : (size_t)top;
			bool rest = shown < 3;

			make_sorted(f, CSW_BY_THREAD, columns[i], top);
			assert_int_equal(csw_table_rows(f->table), shown + rest + 1);
			for (size_t k = 0; k < shown; k++)
				assert_true(csw_table_row(f->table, k)->kind < CSW_KIND_OTHER);
			if (rest)
				assert_int_equal(csw_table_row(f->table, shown)->kind,
						 CSW_KIND_REST);
			assert_int_equal(csw_table_row(f->table, shown + rest)->kind,
					 CSW_KIND_OTHER);
			assert_nothing_fell_off(f);
			assert_false(summary(f).broken);
		}
	}
}

/* ---- histograms ---- */

static void test_histograms_merge(void **state)
{
	struct fixture *f = *state;
	uint64_t buckets[CSW_BUCKETS];

	add(f, CSW_KIND_THREAD, 10, 10, 1, 3, 0, "a"); /* [0] */
	add(f, CSW_KIND_THREAD, 10, 11, 1, 2, 5, "b"); /* [3] */
	add(f, CSW_KIND_THREAD, 20, 20, 1, 1, 7, "a"); /* [3] */
	make(f, CSW_BY_PROCESS);
	assert_int_equal(csw_table_histogram(f->table, 0, 0, buckets), 0);
	assert_int_equal(buckets[0], 3);
	assert_int_equal(buckets[3], 2);
	assert_int_equal(sum_of(buckets), 5);
	make_sorted(f, CSW_BY_THREAD, NULL, 1);
	assert_int_equal(csw_table_histogram(f->table, 1, 0, buckets), 0);
	assert_int_equal(buckets[0], 3);
	assert_int_equal(buckets[3], 1);
	assert_int_equal(csw_table_histogram(f->table, 1, 1, buckets), 0);
	assert_int_equal(buckets[10], 4); /* 1000 ns each */
	assert_nothing_fell_off(f);
}

static void test_histograms_that_were_not_kept(void **state)
{
	struct fixture *f = *state;
	uint64_t buckets[CSW_BUCKETS];

	csw_aggregation_free(&f->agg);
	assert_int_equal(csw_aggregation_init(&f->agg, NR_COUNTERS, false), 0);
	add(f, CSW_KIND_THREAD, 10, 10, 1, 3, 0, "a");
	make(f, CSW_BY_THREAD);
	assert_int_equal(csw_table_histogram(f->table, 0, 0, buckets), -ENODATA);
}

/* A program built against another csw.h has a shorter or a longer summary. */
static void test_summary_sizes(void **state)
{
	struct fixture *f = *state;
	struct {
		struct csw_summary s;
		uint64_t later;
	} longer;
	struct csw_summary shorter;

	add(f, CSW_KIND_THREAD, 10, 10, 1, 1, 1, "a");
	make(f, CSW_BY_THREAD);
	memset(&longer, 0xff, sizeof(longer));
	assert_int_equal(csw_table_summary(f->table, &longer.s, sizeof(longer)), 0);
	assert_int_equal(longer.s.exact_ns, 1000);
	assert_int_equal(longer.later, 0);
	memset(&shorter, 0xff, sizeof(shorter));
	assert_int_equal(csw_table_summary(f->table, &shorter, offsetof(struct csw_summary, sav)),
			 0);
	assert_string_equal(shorter.driver, "perf");
	assert_true(shorter.sav == UINT64_MAX);
	assert_int_equal(csw_table_summary(f->table, &shorter, 0), -EINVAL);
}

/* ---- counters that take turns ---- */

/* A row of `add` whose page faults were counted only for so long. */
static void take_turns(struct fixture *f, uint32_t nr, uint64_t running_ns)
{
	struct csw_agg_row *row = csw_aggregation_row(&f->agg, nr);
	uint64_t *running = csw_aggregation_running(&f->agg, nr);

	running[0] = running_ns;
	running[1] = row->running_ns;
	row->proven = running_ns ? 3 : 2;
	f->running[0] += running_ns;
	f->running[1] += row->running_ns;
}

static uint64_t scaled(const struct fixture *f, size_t i, int want)
{
	struct csw_count count;
	uint64_t value;

	assert_int_equal(csw_table_count(f->table, i, 0, &count), 0);
	assert_int_equal(csw_count_scaled(&count, &value), want);
	return value;
}

static void begin_turns(struct fixture *f)
{
	csw_aggregation_free(&f->agg);
	assert_int_equal(csw_aggregation_init(&f->agg, NR_COUNTERS, CSW_KEEP_TURNS), 0);
	f->plan.scaled = 1;
	f->result.each_running_ns = f->running;
}

/* Rows are ordered by what is shown. Values add up; an estimate is made of the sums. */
static void test_turns(void **state)
{
	struct fixture *f = *state;
	struct csw_counter counter;
	struct csw_count count;

	begin_turns(f);
	take_turns(f, add(f, CSW_KIND_THREAD, 10, 10, 1, 4, 25, "most"), 4000);
	take_turns(f, add(f, CSW_KIND_THREAD, 20, 20, 1, 4, 20, "a"), 2000);
	take_turns(f, add(f, CSW_KIND_THREAD, 20, 21, 1, 4, 15, "b"), 1000);
	take_turns(f, add(f, CSW_KIND_THREAD, 30, 30, 1, 2, 0, "never"), 0);
	take_turns(f, add(f, CSW_KIND_THREAD, 40, 40, 1, 2, 0, "none"), 1000);
	make(f, CSW_BY_THREAD);
	assert_int_equal(csw_table_row(f->table, 0)->tid, 21);
	assert_int_equal(scaled(f, 0, 1), 240);
	assert_int_equal(csw_table_row(f->table, 1)->tid, 20);
	assert_int_equal(scaled(f, 1, 1), 160);
	/* On all the time: as exact as ever. */
	assert_int_equal(csw_table_row(f->table, 2)->tid, 10);
	assert_int_equal(scaled(f, 2, 0), 100);
	assert_int_equal(csw_table_row(f->table, 3)->tid, 40);
	assert_int_equal(scaled(f, 3, 1), 0);
	assert_int_equal(csw_table_row(f->table, 4)->tid, 30);
	assert_int_equal(scaled(f, 4, -ENODATA), 0);
	assert_int_equal(csw_table_count(f->table, 4, 1, &count), 0);
	assert_int_equal(count.flags, 0);
	assert_int_equal(csw_table_counter(f->table, 0, &counter), 0);
	assert_int_equal(counter.total, 240);
	assert_int_equal(counter.rows, 240);
	assert_int_equal(counter.flags, CSW_COUNT_SCALED);
	assert_int_equal(counter.enabled_ns, 16000);
	assert_int_equal(counter.running_ns, 8000);
	assert_int_equal(csw_table_counter(f->table, 1, &counter), 0);
	assert_int_equal(counter.running_ns, 16000);

	make(f, CSW_BY_PROCESS);
	assert_int_equal(csw_table_row(f->table, 0)->pid, 20);
	assert_int_equal(csw_table_count(f->table, 0, 0, &count), 0);
	assert_int_equal(count.value, 140);
	assert_int_equal(count.enabled_ns, 8000);
	assert_int_equal(count.running_ns, 3000);
	assert_int_equal(scaled(f, 0, 1), 373); /* 140 * 8 / 3, and not 160 + 240 */
	make_sorted(f, CSW_BY_THREAD, NULL, 1);
	assert_int_equal(csw_table_row(f->table, 1)->kind, CSW_KIND_REST);
	assert_int_equal(scaled(f, 1, 1),
			 309); /* 180 * 12 / 7: what never ran takes part in time */
}

/* What is a share is marked and added up with its row, and nobody is proven to have caused it. */
static void test_shares(void **state)
{
	struct fixture *f = *state;
	const uint64_t none[NR_COUNTERS] = { 0 }, some[NR_COUNTERS] = { 15, 1 };
	struct csw_counter counter;
	struct csw_count count;
	uint32_t a, b;

	csw_aggregation_free(&f->agg);
	assert_int_equal(csw_aggregation_init(&f->agg, NR_COUNTERS, CSW_KEEP_SHARES), 0);
	a = add(f, CSW_KIND_THREAD, 10, 10, 1, 4, 25, "a");
	b = add(f, CSW_KIND_THREAD, 20, 20, 1, 4, 20, "b");
	add(f, CSW_KIND_THREAD, 30, 30, 1, 1, 1, "c");
	csw_aggregation_note_shares(&f->agg, a, some, 1);
	csw_aggregation_note_shares(&f->agg, b, none, 1);
	make(f, CSW_BY_THREAD);
	assert_int_equal(csw_table_count(f->table, 0, 0, &count), 0);
	assert_int_equal(count.value, 100);
	assert_int_equal(count.shared, 15);
	assert_int_equal(count.flags, CSW_COUNT_SHARED);
	assert_int_equal(csw_table_count(f->table, 0, 1, &count), 0);
	assert_int_equal(count.flags, 0);
	assert_int_equal(csw_table_count(f->table, 1, 0, &count), 0);
	assert_int_equal(count.shared, 0); /* what of a slice it had was rounded to 0 */
	assert_int_equal(count.flags, CSW_COUNT_SHARED);
	assert_int_equal(csw_table_count(f->table, 2, 0, &count), 0);
	assert_int_equal(count.flags, 0);
	assert_int_equal(csw_table_counter(f->table, 0, &counter), 0);
	assert_int_equal(counter.shared, 15);
	assert_int_equal(counter.unproven, 15);
	assert_int_equal(counter.flags, 0);
	make_sorted(f, CSW_BY_THREAD, "tid", 1);
	assert_int_equal(csw_table_row(f->table, 1)->kind, CSW_KIND_REST);
	assert_int_equal(csw_table_count(f->table, 1, 0, &count), 0);
	assert_int_equal(count.flags, CSW_COUNT_SHARED);
	make_sorted(f, CSW_BY_THREAD, "comm", 2);
	assert_int_equal(csw_table_count(f->table, 2, 0, &count), 0);
	assert_int_equal(count.flags, 0);
}

static void test_scaled_beyond_64_bits(void **state)
{
	struct csw_count count = {
		.value = UINT64_MAX / 2, .enabled_ns = 9, .running_ns = 1, .flags = CSW_COUNT_SCALED
	};
	uint64_t value;

	(void)state;
	assert_int_equal(csw_count_scaled(&count, &value), 1);
	assert_true(value == UINT64_MAX);
	count.enabled_ns = UINT64_MAX;
	count.running_ns = UINT64_MAX - 1;
	assert_int_equal(csw_count_scaled(&count, &value), 1);
	assert_true(value == UINT64_MAX / 2 || value == UINT64_MAX / 2 + 1);
	count.flags =
		0; /* the PMU was shared: that is no turn, and nobody knows who ran meanwhile */
	assert_int_equal(csw_count_scaled(&count, &value), 0);
	assert_true(value == count.value);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_only_what_ran_is_shown),
		TEST(test_turns),
		TEST(test_shares),
		TEST(test_scaled_beyond_64_bits),
		TEST(test_order),
		TEST(test_min_and_max),
		TEST(test_processes),
		TEST(test_reused_pid_is_another_process),
		TEST(test_exec_is_the_same_process),
		TEST(test_scope),
		TEST(test_summary),
		TEST(test_conservation),
		TEST(test_completeness),
		TEST(test_wrong_reading),
		TEST(test_all_reasons),
		TEST(test_reasons_that_do_not_fit),
		TEST(test_not_counted_is_flagged),
		TEST(test_never_occurred),
		TEST(test_ranges),
		TEST(test_summary_sizes),
		TEST(test_a_moved_thread_is_one_row),
		TEST(test_order_by_headings),
		TEST(test_order_without_counters),
		TEST(test_by_cgroup),
		TEST(test_a_thread_alone_in_two_cgroups),
		TEST(test_a_chain_in_whatever_order),
		TEST(test_a_thread_that_leaves_the_scope),
		TEST(test_by_comm),
		TEST(test_by_cpu),
		TEST(test_sort),
		TEST(test_sort_by_nothing_known),
		TEST(test_top),
		TEST(test_remainders_come_last),
		TEST(test_rest_keeps_a_proven_zero),
		TEST(test_histograms_merge),
		TEST(test_histograms_that_were_not_kept),
	};

	return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
