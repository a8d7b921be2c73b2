/*
 * The aggregation table: rows keep what they hold while the table grows, and lie as table.h says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/table.h"

#define ROWS 100000 /* many times the first capacity */

static void count(struct csw_aggregation *agg, uint32_t nr, uint64_t a, uint64_t b, bool whole)
{
	csw_aggregation_count(agg, nr, (uint64_t[]){ a, b }, whole);
}

/* Other allocations in between, so that the array cannot always grow where it is. */
static void test_growth_keeps_rows(void **state)
{
	struct csw_aggregation agg;
	void *between[64] = { NULL };

	(void)state;
	assert_int_equal(csw_aggregation_init(&agg, 2, false), 0);
	for (uint32_t i = CSW_ROWS_FIXED; i < ROWS; i++) {
		assert_int_equal(csw_aggregation_add(&agg, CSW_KIND_THREAD, 1, (int32_t)i, i), i);
		count(&agg, i, i, 2 * (uint64_t)i, true);
		free(between[i % 64]);
		between[i % 64] = malloc(i % 1000 + 1);
	}
	for (uint32_t i = CSW_ROWS_FIXED; i < ROWS; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(&agg, i);

		assert_int_equal((uintptr_t)row % CSW_ROW_ALIGN, 0);
		assert_int_equal(row->tid, i);
		assert_int_equal(row->birth_ns, i);
		assert_int_equal(row->cells[0].sum, i);
		assert_int_equal(row->cells[1].max, 2 * i);
	}
	for (int i = 0; i < 64; i++)
		free(between[i]);
	csw_aggregation_free(&agg);
}

static void test_only_whole_slices_have_extremes(void **state)
{
	struct csw_aggregation agg;
	const struct csw_cell *cells;

	(void)state;
	assert_int_equal(csw_aggregation_init(&agg, 2, false), 0);
	cells = csw_aggregation_row(&agg, CSW_ROW_IDLE)->cells;
	count(&agg, CSW_ROW_IDLE, 1, 100, false);
	assert_true(cells[0].min > cells[0].max);
	count(&agg, CSW_ROW_IDLE, 5, 0, true);
	assert_int_equal(cells[0].min, 5);
	assert_int_equal(cells[0].max, 5);
	assert_int_equal(cells[1].min, 0);
	assert_int_equal(cells[1].max, 0);
	count(&agg, CSW_ROW_IDLE, 3, 8, true);
	count(&agg, CSW_ROW_IDLE, 4, UINT64_MAX - 200, true);
	assert_int_equal(cells[0].sum, 13);
	assert_int_equal(cells[0].min, 3);
	assert_int_equal(cells[0].max, 5);
	assert_int_equal(cells[1].sum, UINT64_MAX - 92);
	assert_int_equal(cells[1].min, 0);
	assert_int_equal(cells[1].max, UINT64_MAX - 200);
	csw_aggregation_free(&agg);
}

static void test_histograms(void **state)
{
	struct csw_aggregation agg;
	const uint64_t *first, *second;

	(void)state;
	assert_int_equal(csw_aggregation_init(&agg, 2, true), 0);
	first = csw_aggregation_histogram(&agg, CSW_ROW_MIXED, 0);
	second = csw_aggregation_histogram(&agg, CSW_ROW_MIXED, 1);
	count(&agg, CSW_ROW_MIXED, 0, 1, true);
	count(&agg, CSW_ROW_MIXED, 3, UINT64_MAX, true);
	count(&agg, CSW_ROW_MIXED, 3, 3, false);
	assert_int_equal(first[0], 1);
	assert_int_equal(first[2], 1);
	assert_int_equal(second[1], 1);
	assert_int_equal(second[64], 1);
	assert_int_equal(csw_aggregation_histogram(&agg, CSW_ROW_LOST, 0)[0], 0);
	csw_aggregation_free(&agg);
}

static void test_reset_keeps_keys(void **state)
{
	struct csw_aggregation agg;
	struct csw_agg_row *row;
	int64_t nr;

	(void)state;
	assert_int_equal(csw_aggregation_init(&agg, 2, true), 0);
	nr = csw_aggregation_add(&agg, CSW_KIND_THREAD, 7, 8, 9);
	row = csw_aggregation_row(&agg, (uint32_t)nr);
	row->last_cpu = 3;
	row->cgroup = 4;
	row->proven = 3;
	row->slices = row->running_ns = 5;
	count(&agg, (uint32_t)nr, 6, 6, true);
	csw_aggregation_reset(&agg);
	assert_int_equal(row->pid, 7);
	assert_int_equal(row->tid, 8);
	assert_int_equal(row->birth_ns, 9);
	assert_int_equal(row->last_cpu, 3);
	assert_int_equal(row->cgroup, 4);
	assert_int_equal(row->kind, CSW_KIND_THREAD);
	assert_int_equal(row->proven + row->slices + row->running_ns + row->cells[0].sum, 0);
	assert_true(row->cells[1].min > row->cells[1].max);
	assert_int_equal(csw_aggregation_histogram(&agg, (uint32_t)nr, 0)[3], 0);
	csw_aggregation_free(&agg);
}

/* Where counters take turns each has its own running time, and what was off leaves no trace. */
static void test_turns(void **state)
{
	static const uint64_t deltas[2] = { 5, 9 };
	struct csw_aggregation agg;
	const struct csw_cell *cells;
	const uint64_t *running;

	(void)state;
	assert_int_equal(csw_aggregation_init(&agg, 2, CSW_KEEP_TURNS | CSW_KEEP_HISTOGRAMS), 0);
	cells = csw_aggregation_row(&agg, CSW_ROW_IDLE)->cells;
	running = csw_aggregation_running(&agg, CSW_ROW_IDLE);
	csw_aggregation_count_turn(&agg, CSW_ROW_IDLE, deltas, true, 1, 100);
	csw_aggregation_count_turn(&agg, CSW_ROW_IDLE, deltas, false, 2, 30);
	csw_aggregation_count_turn(&agg, CSW_ROW_IDLE, deltas, true, 0, 7);
	assert_int_equal(cells[0].sum, 5);
	assert_int_equal(cells[0].max, 5);
	assert_int_equal(running[0], 100);
	assert_int_equal(cells[1].sum, 9);
	assert_true(cells[1].min > cells[1].max);
	assert_int_equal(running[1], 30);
	assert_int_equal(csw_aggregation_histogram(&agg, CSW_ROW_IDLE, 0)[3], 1);
	for (unsigned k = 0; k < CSW_BUCKETS; k++)
		assert_int_equal(csw_aggregation_histogram(&agg, CSW_ROW_IDLE, 1)[k], 0);
	csw_aggregation_count_turn(&agg, CSW_ROW_IDLE, deltas, true, 3, 1);
	assert_int_equal(csw_aggregation_histogram(&agg, CSW_ROW_IDLE, 1)[4], 1);
	assert_int_equal(cells[1].min, 9);
	csw_aggregation_reset(&agg);
	assert_int_equal(running[0] + running[1] + cells[0].sum, 0);
	csw_aggregation_free(&agg);
}

/* Shares lie between the running times and the histograms, and touch neither. */
static void test_shares(void **state)
{
	static const uint64_t deltas[2] = { 5, 0 };
	struct csw_aggregation agg;
	const uint64_t *shares;

	(void)state;
	assert_int_equal(csw_aggregation_init(
				 &agg, 2, CSW_KEEP_TURNS | CSW_KEEP_HISTOGRAMS | CSW_KEEP_SHARES),
			 0);
	csw_aggregation_count_turn(&agg, CSW_ROW_IDLE, deltas, true, 3, 100);
	csw_aggregation_note_shares(&agg, CSW_ROW_IDLE, deltas, 2);
	shares = csw_aggregation_shares(&agg, CSW_ROW_IDLE);
	assert_int_equal(shares[0] + shares[1], 0);
	assert_int_equal(shares[2], 2); /* marked, though it is 0 */
	csw_aggregation_note_shares(&agg, CSW_ROW_IDLE, deltas, 1);
	csw_aggregation_note_shares(&agg, CSW_ROW_IDLE, deltas, 1);
	assert_int_equal(shares[0], 10);
	assert_int_equal(shares[2], 3);
	assert_int_equal(csw_aggregation_running(&agg, CSW_ROW_IDLE)[1], 100);
	assert_int_equal(csw_aggregation_histogram(&agg, CSW_ROW_IDLE, 0)[3], 1);
	assert_int_equal(csw_aggregation_histogram(&agg, CSW_ROW_IDLE, 1)[0], 1);
	csw_aggregation_reset(&agg);
	assert_int_equal(shares[0] + shares[2], 0);
	csw_aggregation_free(&agg);
}

/* Room for them is only where they are taken. */
static void test_size_of_a_row(void **state)
{
	struct csw_aggregation agg;

	(void)state;
	assert_int_equal(csw_aggregation_init(&agg, 3, 0), 0);
	assert_int_equal(agg.stride, 192);
	assert_null(csw_aggregation_running(&agg, 0));
	assert_null(csw_aggregation_shares(&agg, 0));
	csw_aggregation_free(&agg);
	assert_int_equal(csw_aggregation_init(&agg, 3, CSW_KEEP_TURNS), 0);
	assert_int_equal(agg.stride, 256);
	csw_aggregation_free(&agg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth_keeps_rows),
		cmocka_unit_test(test_only_whole_slices_have_extremes),
		cmocka_unit_test(test_histograms),
		cmocka_unit_test(test_reset_keeps_keys),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_size_of_a_row),
	};

	return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
