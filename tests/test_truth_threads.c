/*
 * Threads that live for less than a millisecond, 2,000 of them and 40,000: every one has its own
 * row, also where the kernel gave its TID to several.
 *
 * Invariant: a thread is (TID, birth); the rows of one TID hold exactly the counts of the threads
 * that bore it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "truth.h"

#define GETPPID "syscalls:sys_enter_getppid"

/* One thread, from either side. */
struct bearer {
	int32_t tid;
	int64_t getppid;
};

static int compare_bearers(const void *a, const void *b)
{
	const struct bearer *x = a, *y = b;

	if (x->tid != y->tid)
		return (x->tid > y->tid) - (x->tid < y->tid);
	return (x->getppid > y->getppid) - (x->getppid < y->getppid);
}

/* All rows of the workload but its main thread's, by TID; *main_rows counts that one's. */
static struct bearer *measured_bearers(const struct truth_run *run, size_t *nr, size_t *main_rows)
{
	const json_t *rows = json_object_get(run->report, "rows");
	struct bearer *bearers = calloc(json_array_size(rows) + 1, sizeof(*bearers));
	json_t *row;
	size_t i;

	assert_non_null(bearers);
	*nr = *main_rows = 0;
	json_array_foreach(rows, i, row)
	{
		if (!truth_is_kind(row, "thread"))
			continue;
		assert_true(truth_integer(row, "tid") > 0); /* no row for TID -1 */
		if (truth_integer(row, "pid") != run->process)
			continue;
		if (truth_integer(row, "tid") == run->process) {
			++*main_rows;
			continue;
		}
		bearers[(*nr)++] = (struct bearer){
			.tid = (int32_t)truth_integer(row, "tid"),
			.getppid = truth_proven_count(row, GETPPID),
		};
	}
	qsort(bearers, *nr, sizeof(*bearers), compare_bearers);
	return bearers;
}

static struct bearer *true_bearers(const struct truth_run *run)
{
	struct bearer *bearers = calloc(run->nr_threads, sizeof(*bearers));

	assert_non_null(bearers);
	for (size_t i = 0; i < run->nr_threads; i++)
		bearers[i] = (struct bearer){ run->threads[i].tid, run->threads[i].getppid };
	qsort(bearers, run->nr_threads, sizeof(*bearers), compare_bearers);
	return bearers;
}

/* Returns how many threads got a TID that another one of them had before. Both sides are sorted: if
 * no thread has more than its truth, no element has. */
static size_t check_rows(const struct truth_run *run)
{
	size_t nr, main_rows, reused = 0, wrong = 0;
	struct bearer *measured = measured_bearers(run, &nr, &main_rows);
	struct bearer *truth = true_bearers(run);
	int64_t sum_measured = 0, sum_true = 0;

	for (size_t i = 0; i < nr; i++)
		sum_measured += measured[i].getppid;
	for (size_t i = 0; i < run->nr_threads; i++) {
		sum_true += truth[i].getppid;
		reused += i > 0 && truth[i].tid == truth[i - 1].tid;
		wrong += i < nr && (measured[i].tid != truth[i].tid ||
				    measured[i].getppid > truth[i].getppid);
	}
	printf("figure: %zu threads, %zu rows + %zu of the main thread, %zu TIDs reused, getppid "
	       "%lld (truth %lld)\n",
	       run->nr_threads, nr, main_rows, reused, (long long)sum_measured,
	       (long long)sum_true);
	assert_int_equal(nr, run->nr_threads);
	assert_int_equal(main_rows, 1);
	assert_true(sum_true - sum_measured <= truth_unproven(run->report, GETPPID));
	assert_int_equal(wrong, 0);
	free(measured);
	free(truth);
	return reused;
}

/* One run. *exact: everything in it was proven. Returns as check_rows. */
static size_t measure(const char *workload, bool *exact)
{
	struct truth_run run;
	size_t reused;

	truth_start(&run, "--event=" GETPPID, workload);
	truth_finish(&run);
	truth_check_sums(&run);
	reused = check_rows(&run);
	*exact = truth_unproven(run.report, GETPPID) == 0;
	printf("figure: getppid of no proven thread: %lld\n",
	       (long long)truth_unproven(run.report, GETPPID));
	truth_free(&run);
	return reused;
}

static size_t measure_exact(const char *workload)
{
	bool exact = false;
	size_t reused = 0;

	for (int i = 0; i < TRUTH_ATTEMPTS && !exact; i++)
		reused = measure(workload, &exact);
	if (!exact)
		fail_msg("in %d runs some slices had no proven owner", TRUTH_ATTEMPTS);
	return reused;
}

static void test_short_lives(void **state)
{
	(void)state;
	measure_exact("w_short --threads=2000");
}

static void test_one_at_a_time(void **state)
{
	(void)state;
	measure_exact("w_short --threads=2000 --batch=1");
}

/* Too long to be spared by every task that leaves no records: rows must be right, and counts exact
 * up to what the report itself calls unproven. */
static void test_wrapping_tids(void **state)
{
	bool exact;

	(void)state;
	if (!measure("w_short --threads=40000", &exact)) {
		printf("skip: kernel.pid_max is so high here that no TID came twice\n");
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_lives),
		cmocka_unit_test(test_one_at_a_time),
		cmocka_unit_test(test_wrapping_tids),
	};
	const char *reason = truth_refused();

	if (!reason)
		reason = truth_no_tracepoints();
	return truth_main(tests, reason);
}
