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

struct fixture {
	struct csw_plan plan;
	struct csw_aggregation agg;
	struct csw_result result;
	struct csw_table *table;
};

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
	assert_int_equal(csw_aggregation_init(&f.agg, NR_COUNTERS), 0);
	f.result = (struct csw_result){ .plan = &f.plan, .driver = &live, .agg = &f.agg };
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	csw_table_close(f->table);
	csw_aggregation_free(&f->agg);
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
		f->result.totals[0] += each;
		f->result.totals[1] += 1000;
		f->result.enabled_ns += 1000;
		f->result.running_ns += 1000;
		f->result.summary.triggers++;
		f->result.summary.samples++;
	}
	return (uint32_t)i;
}

static void make(struct fixture *f, uint32_t by)
{
	struct csw_error err;

	csw_table_close(f->table);
	assert_int_equal(csw_view_make(&f->table, &f->result, by, &err), 0);
	assert_int_equal(csw_view_by(f->table), by);
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

/* The shown rows add up to the aggregation's, whatever the grouping and the scope. */
static void assert_nothing_fell_off(const struct fixture *f)
{
	uint64_t shown[NR_COUNTERS + 2] = { 0 }, made[NR_COUNTERS + 2] = { 0 };
	const struct csw_row *row;

	for (size_t i = 0; (row = csw_table_row(f->table, i)) != NULL; i++) {
		for (unsigned j = 0; j < NR_COUNTERS; j++)
			shown[j] += value(f, i, j);
		shown[NR_COUNTERS] += row->slices;
		shown[NR_COUNTERS + 1] += row->oncpu_ns;
	}
	for (uint32_t i = 0; i < f->agg.nr; i++) {
		const struct csw_agg_row *from = csw_aggregation_row(&f->agg, i);

		for (unsigned j = 0; j < NR_COUNTERS; j++)
			made[j] += from->cells[j].sum;
		made[NR_COUNTERS] += from->slices;
		made[NR_COUNTERS + 1] += from->oncpu_ns;
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
	for (uint32_t by = CSW_BY_THREAD; by <= CSW_BY_PROCESS; by++) {
		const struct csw_row *row;

		make(f, by);
		assert_int_equal(csw_table_rows(f->table), 3);
		row = csw_table_row(f->table, 0);
		assert_int_equal(row->kind, CSW_KIND_OTHER);
		assert_int_equal(row->pid, -1);
		assert_int_equal(row->nr_threads, 3);
		assert_int_equal(row->oncpu_ns, 3000 + 7000);
		assert_int_equal(value(f, 0, 0), 151);
		assert_string_equal(csw_table_row(f->table, 1)->comm, "in");
		assert_int_equal(csw_table_row(f->table, 2)->kind, CSW_KIND_MIXED);
		assert_int_equal(csw_table_row(f->table, 2)->pid, 10);
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
	s->open++;
	s->broken = 1; /* what the session found itself is not taken back */
	make(f, CSW_BY_THREAD);
	assert_true(summary(f).broken);
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
	struct csw_error err;
	struct csw_count c;
	struct csw_counter counter;

	add(f, CSW_KIND_THREAD, 10, 10, 1, 1, 1, "a");
	assert_int_equal(csw_view_make(&t, &f->result, 77, &err), -EINVAL);
	assert_null(t);
	assert_non_null(strstr(err.text, "77"));
	make(f, CSW_BY_THREAD);
	assert_int_equal(csw_table_count(f->table, 1, 0, &c), -ERANGE);
	assert_int_equal(csw_table_count(f->table, 0, NR_COUNTERS, &c), -ERANGE);
	assert_int_equal(csw_table_counter(f->table, NR_COUNTERS, &counter), -ERANGE);
	assert_int_equal(csw_table_counters(f->table), NR_COUNTERS);
	assert_string_equal(csw_kind_name(CSW_KIND_REST), "rest");
	assert_string_equal(csw_kind_name(1000), "?");
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_only_what_ran_is_shown),
		TEST(test_order),
		TEST(test_min_and_max),
		TEST(test_processes),
		TEST(test_reused_pid_is_another_process),
		TEST(test_exec_is_the_same_process),
		TEST(test_scope),
		TEST(test_summary),
		TEST(test_conservation),
		TEST(test_completeness),
		TEST(test_not_counted_is_flagged),
		TEST(test_never_occurred),
		TEST(test_ranges),
		TEST(test_summary_sizes),
	};

	return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
