/* The simulated machine through the engine; see truth_sim.h. */
#include "tests/truth_sim.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "csw/csw.h"
#include "engine/spec.h"

static int put(void *ctx, const struct csw_record *rec)
{
	return csw_slicer_record(ctx, rec);
}

static void put_scanned(void *ctx, const struct csw_record *rec)
{
	assert_int_equal(csw_slicer_record(ctx, rec), 0);
}

static void sum_up(struct sim_run *run)
{
	csw_slicer_completeness(&run->slicer, &run->done);
	csw_slicer_totals(&run->slicer, run->totals);
}

void sim_run_all(struct sim_run *run, const char *trigger, const char *events, uint64_t sav,
		 const char *options)
{
	const struct csw_driver_ops *ops = &csw_sim_driver;
	struct csw_scope scope = { .nr_pids = 0 };
	struct csw_sink sink = { put_scanned, &run->slicer };
	struct csw_driver_facts facts;
	struct csw_error err = { 0 };

	run->plan.driver_opts = options;
	if (csw_spec_plan(&run->plan, ops, trigger, events, sav, &err) < 0)
		fail_msg("%s", err.text);
	run->plan.multiplex = true;
	run->plan.mixed = run->mixed;
	if (ops->open(&run->drv, &run->plan, &err) < 0)
		fail_msg("%s", err.text);
	ops->facts(run->drv, &facts);
	run->plan.scaled = facts.scaled;
	assert_int_equal(csw_aggregation_init(&run->agg, run->plan.nr_counters,
					      (facts.scaled ? CSW_KEEP_TURNS : 0) |
						      (run->mixed ? CSW_KEEP_SHARES : 0)),
			 0);
	assert_int_equal(csw_slicer_init(&run->slicer, &run->plan, &scope, &run->agg,
					 ops->nr_cpus(run->drv)),
			 0);
	assert_int_equal(csw_merge_init(&run->merge, ops, run->drv), 0);
	assert_int_equal(ops->start(run->drv, &sink, &err), 0);
	while (ops->wait(run->drv, 100, &err) > 0) {
		if (run->ticks)
			assert_int_equal(ops->tick(run->drv, &err), 0);
		assert_int_equal(csw_merge_run(&run->merge, put, &run->slicer), 0);
		sum_up(run);
		if (run->interval)
			run->interval(run, run->ctx);
	}
	assert_int_equal(ops->stop(run->drv, &err), 0);
	assert_int_equal(csw_merge_run(&run->merge, put, &run->slicer), 0);
	sum_up(run);
}

void sim_run_free(struct sim_run *run)
{
	csw_merge_free(&run->merge);
	csw_slicer_free(&run->slicer);
	csw_aggregation_free(&run->agg);
	csw_sim_driver.close(run->drv);
}

/* A table of the rows by (TID, birth) would be the thing under test again: sort them once instead.
 */
static int by_tid_and_birth(const void *a, const void *b, void *ctx)
{
	const struct csw_aggregation *agg = ctx;
	const struct csw_agg_row *x = csw_aggregation_row(agg, *(const uint32_t *)a);
	const struct csw_agg_row *y = csw_aggregation_row(agg, *(const uint32_t *)b);

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->birth_ns < y->birth_ns ? -1 : x->birth_ns > y->birth_ns;
}

struct index {
	const struct csw_aggregation *agg;
	uint32_t *rows;
	bool *met;
};

static void index_open(struct index *index, const struct csw_aggregation *agg)
{
	index->agg = agg;
	index->rows = malloc(agg->nr * sizeof(*index->rows));
	index->met = calloc(agg->nr, sizeof(*index->met));
	assert_true(index->rows && index->met);
	for (uint32_t i = 0; i < agg->nr; i++)
		index->rows[i] = i;
	qsort_r(index->rows, agg->nr, sizeof(*index->rows), by_tid_and_birth,
		(void *)(uintptr_t)agg);
}

static void index_close(struct index *index)
{
	free(index->rows);
	free(index->met);
}

static bool is_thread(const struct csw_agg_row *row)
{
	return row->kind == CSW_KIND_THREAD || row->kind == CSW_KIND_KERNEL ||
	       row->kind == CSW_KIND_SELF;
}

static int64_t index_find(const struct index *index, const struct csw_sim_truth *truth)
{
	size_t low = 0, high = index->agg->nr;

	if (truth->kind == CSW_KIND_IDLE)
		return CSW_ROW_IDLE;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (csw_aggregation_row(index->agg, index->rows[middle])->tid < truth->tid)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < index->agg->nr; low++) {
		const struct csw_agg_row *row = csw_aggregation_row(index->agg, index->rows[low]);

		if (row->tid != truth->tid)
			break;
		if (!is_thread(row))
			continue;
		if (row->birth_ns == truth->birth_ns)
			return index->rows[low];
	}
	return -1;
}

void sim_run_check_sums(const struct sim_run *run)
{
	const struct csw_completeness *done = &run->done;

	assert_false(run->slicer.is_wrong);
	for (unsigned c = 0; c < run->plan.nr_counters; c++) {
		uint64_t sum = 0;

		for (uint32_t i = 0; i < run->agg.nr; i++)
			sum += csw_aggregation_row(&run->agg, i)->cells[c].sum;
		assert_int_equal(sum, run->totals[2 + c]);
	}
	assert_true(done->open >= 0);
	assert_int_equal(done->all, run->plan.trigger.sav * done->samples + done->lost +
					    done->throttled + done->unseen + (uint64_t)done->open);
}

uint64_t sim_run_kind_sum(const struct sim_run *run, uint32_t kind, unsigned counter)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < run->agg.nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(&run->agg, i);

		if (row->kind == kind)
			sum += row->cells[counter].sum;
	}
	return sum;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static bool ran(const struct csw_agg_row *row, unsigned nr_counters)
{
	if (row->slices || row->oncpu_ns)
		return true;
	for (unsigned c = 0; c < nr_counters; c++) {
		if (row->cells[c].sum)
			return true;
	}
	return false;
}

static bool truth_ran(const struct csw_sim_truth *truth)
{
	return truth->slices || truth->oncpu_ns;
}

static void check_row(const struct sim_run *run, const struct csw_agg_row *row,
		      const struct csw_sim_truth *truth, uint64_t slack_ns)
{
	assert_int_equal(row->slices, truth->slices);
	assert_true(distance(row->oncpu_ns, truth->oncpu_ns) <= slack_ns * (truth->slices + 1));
	for (unsigned c = 0; c < run->plan.nr_counters; c++)
		assert_int_equal(row->cells[c].sum, truth->counted[c]);
	if (truth->kind == CSW_KIND_IDLE)
		return;
	assert_int_equal(row->kind, truth->kind);
	assert_int_equal(row->pid, truth->pid);
	assert_string_equal(row->comm, truth->comm);
	assert_int_equal(row->voluntary, truth->voluntary);
	assert_int_equal(row->preempted, truth->preempted);
}

void sim_run_check_equal(const struct sim_run *run, uint64_t oncpu_slack_ns)
{
	struct csw_sim_truth truth;
	struct index index;

	index_open(&index, &run->agg);
	for (size_t i = 0; i < csw_sim_truths(run->drv); i++) {
		int64_t nr;

		csw_sim_truth_get(run->drv, i, &truth);
		nr = index_find(&index, &truth);
		if (nr < 0) {
			if (truth_ran(&truth))
				fail_msg("no row for thread %d of %d, %s", truth.tid, truth.pid,
					 truth.comm);
			continue;
		}
		assert_false(index.met[nr]);
		index.met[nr] = true;
		check_row(run, csw_aggregation_row(&run->agg, (uint32_t)nr), &truth,
			  oncpu_slack_ns);
	}
	/* And nothing beside: no row of a thread that never was, nothing in [mixed], [lost],
	 * [unknown]. */
	for (uint32_t i = 0; i < run->agg.nr; i++) {
		if (!index.met[i])
			assert_false(ran(csw_aggregation_row(&run->agg, i), run->plan.nr_counters));
	}
	index_close(&index);
}

/* The counts of a process, idle being one, in its rows and in truth. */
static void sum_process(const struct sim_run *run, int32_t pid, uint64_t *rows, uint64_t *truths)
{
	struct csw_sim_truth truth;

	for (unsigned c = 0; c < run->plan.nr_counters; c++) {
		rows[c] = truths[c] = 0;
		for (uint32_t i = 0; i < run->agg.nr; i++) {
			const struct csw_agg_row *row = csw_aggregation_row(&run->agg, i);

			if (row->kind == CSW_KIND_IDLE ? !pid : row->pid == pid)
				rows[c] += row->cells[c].sum;
		}
		for (size_t i = 0; i < csw_sim_truths(run->drv); i++) {
			csw_sim_truth_get(run->drv, i, &truth);
			if (truth.pid == pid)
				truths[c] += truth.counts[c];
		}
	}
}

static void check_processes(const struct sim_run *run, bool equal)
{
	uint64_t rows[CSW_COUNTERS_MAX], truths[CSW_COUNTERS_MAX];
	struct csw_sim_truth truth;

	for (size_t i = 0; i < csw_sim_truths(run->drv); i++) {
		csw_sim_truth_get(run->drv, i, &truth);
		if (truth.kind != CSW_KIND_IDLE && truth.tid != truth.pid)
			continue;
		sum_process(run, truth.pid, rows, truths);
		for (unsigned c = 0; c < run->plan.nr_counters; c++) {
			assert_true(rows[c] <= truths[c]);
			assert_true(!equal || rows[c] == truths[c]);
		}
	}
}

void sim_run_check_processes(const struct sim_run *run)
{
	check_processes(run, true);
	for (uint32_t i = 0; i < run->agg.nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(&run->agg, i);

		if (row->pid < 0 && row->kind != CSW_KIND_IDLE)
			assert_false(ran(row, run->plan.nr_counters));
	}
}

void sim_run_check_processes_never_more(const struct sim_run *run)
{
	check_processes(run, false);
}

void sim_run_check_same_machine(const struct sim_run *a, const struct sim_run *b)
{
	assert_int_equal(csw_sim_truths(a->drv), csw_sim_truths(b->drv));
	for (size_t i = 0; i < csw_sim_truths(a->drv); i++) {
		struct csw_sim_truth x, y;

		csw_sim_truth_get(a->drv, i, &x);
		csw_sim_truth_get(b->drv, i, &y);
		x.oncpu_ns = y.oncpu_ns = 0; /* up to SWITCH_OUT, which stands where the trigger
						lets it */
		assert_memory_equal(&x, &y, sizeof(x));
	}
}

/* Row by row: rows are in the order in which the records tell of threads. */
void sim_run_check_same_table(const struct sim_run *a, const struct sim_run *b)
{
	assert_int_equal(a->agg.nr, b->agg.nr);
	for (uint32_t i = 0; i < a->agg.nr; i++) {
		const struct csw_agg_row *x = csw_aggregation_row(&a->agg, i);
		const struct csw_agg_row *y = csw_aggregation_row(&b->agg, i);

		assert_int_equal(x->pid, y->pid);
		assert_int_equal(x->tid, y->tid);
		assert_int_equal(x->slices, y->slices);
		assert_int_equal(x->oncpu_ns, y->oncpu_ns);
		for (unsigned c = 0; c < a->plan.nr_counters; c++) {
			assert_int_equal(x->cells[c].sum, y->cells[c].sum);
			assert_int_equal(x->cells[c].min, y->cells[c].min);
			assert_int_equal(x->cells[c].max, y->cells[c].max);
		}
	}
}

/* All that ever ran under the TID of this process. When the records of an exit or an exec are lost,
 * threads that had one TID after another are one row, and no one could tell better. */
static void add_namesakes(const struct sim_run *run, struct csw_sim_truth *truth)
{
	struct csw_sim_truth other, one = *truth;

	for (size_t i = 0; i < csw_sim_truths(run->drv); i++) {
		csw_sim_truth_get(run->drv, i, &other);
		if (other.pid != one.pid || other.tid != one.tid || other.birth_ns == one.birth_ns)
			continue;
		truth->slices += other.slices;
		truth->oncpu_ns += other.oncpu_ns;
		for (unsigned c = 0; c < run->plan.nr_counters; c++)
			truth->counted[c] += other.counted[c];
	}
}

static bool has_more(const struct sim_run *run, const struct csw_agg_row *row,
		     const struct csw_sim_truth *truth, uint64_t slack_ns)
{
	bool more = row->oncpu_ns > truth->oncpu_ns + slack_ns;

	for (unsigned c = 0; c < run->plan.nr_counters; c++) {
		/* Clocks are shared by times, which are off by what a switch takes. */
		bool is_clock = run->plan.counters[c].flags & CSW_EVENT_CLOCK;

		more |= row->cells[c].sum > truth->counted[c] + (is_clock ? slack_ns : 0);
	}
	return more;
}

void sim_run_check_never_more(const struct sim_run *run, uint64_t oncpu_slack_ns)
{
	struct csw_sim_truth truth;
	struct index index;

	index_open(&index, &run->agg);
	for (size_t i = 0; i < csw_sim_truths(run->drv); i++) {
		const struct csw_agg_row *row;
		int64_t nr;

		csw_sim_truth_get(run->drv, i, &truth);
		nr = index_find(&index, &truth);
		if (nr < 0)
			continue;
		row = csw_aggregation_row(&run->agg, (uint32_t)nr);
		if (!has_more(run, row, &truth, oncpu_slack_ns * (truth.slices + 1)))
			continue;
		if (run->done.lost)
			add_namesakes(run, &truth);
		if (has_more(run, row, &truth, oncpu_slack_ns * (truth.slices + 1)))
			fail_msg("%s %d has more than its truth: %" PRIu64
				 " ns on a CPU, in truth %" PRIu64 ", %" PRIu64
				 " of the first counter, in truth %" PRIu64,
				 truth.comm, truth.tid, row->oncpu_ns, truth.oncpu_ns,
				 row->cells[0].sum, truth.counted[0]);
	}
	index_close(&index);
}

const struct csw_agg_row *sim_run_row(const struct sim_run *run, const struct csw_sim_truth *truth)
{
	struct index index;
	int64_t nr;

	index_open(&index, &run->agg);
	nr = index_find(&index, truth);
	index_close(&index);
	return nr < 0 ? NULL : csw_aggregation_row(&run->agg, (uint32_t)nr);
}
