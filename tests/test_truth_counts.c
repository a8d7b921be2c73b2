/*
 * Page faults and system calls of threads that know their own, through the real command on the real
 * kernel.
 *
 * Invariant: getppid counts are exact; page faults agree within 2 with what the kernel told the
 * thread itself, for the thread cannot see what it faults between its reading and its end.
 */
#include <stdio.h>
#include <stdlib.h>

#include "truth.h"

#define FAULTS "page-faults"
#define GETPPID "syscalls:sys_enter_getppid"
#define FAULTS_TOLERANCE 2

/* Never more than its own truth; less by what no thread was proven to have caused. */
static void check_faults(int64_t faults, int64_t own, int64_t unproven)
{
	if (faults > own + FAULTS_TOLERANCE || faults < own - FAULTS_TOLERANCE - unproven)
		fail_msg("%s %lld, its own %lld, unproven %lld", FAULTS, (long long)faults,
			 (long long)own, (long long)unproven);
}

static void check_thread(const struct truth_run *run, const struct truth_thread *thread,
			 int64_t *worst, int64_t *missing_calls)
{
	const json_t *row = truth_row(run, thread->pid, thread->tid);
	int64_t away;

	if (!row)
		fail_msg("no row for thread %d", thread->tid);
	away = llabs(truth_proven_count(row, FAULTS) - thread->faults);
	*missing_calls += thread->getppid - truth_proven_count(row, GETPPID);
	printf("figure: thread %d: %s %lld (own %lld), getppid %lld (own %lld)\n", thread->tid,
	       FAULTS, (long long)truth_proven_count(row, FAULTS), (long long)thread->faults,
	       (long long)truth_proven_count(row, GETPPID), (long long)thread->getppid);
	assert_true(truth_proven_count(row, GETPPID) <= thread->getppid);
	check_faults(truth_proven_count(row, FAULTS), thread->faults,
		     truth_unproven(run->report, FAULTS));
	*worst = away > *worst ? away : *worst;
}

static int64_t process_sum(const struct truth_run *run, const char *counter)
{
	int64_t sum = 0;
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(run->report, "rows"), i, row)
	{
		if (truth_is_kind(row, "thread") && truth_integer(row, "pid") == run->process)
			sum += truth_proven_count(row, counter);
	}
	return sum;
}

/* One run. Returns whether everything in it was proven, and so exact. */
static bool measure(const char *workload, size_t nr_threads)
{
	struct truth_run run;
	int64_t worst = 0, missing_calls = 0, unproven, unproven_calls;

	truth_start(&run, "--event=" FAULTS "," GETPPID, workload);
	truth_finish(&run);
	truth_check_sums(&run);
	unproven = truth_unproven(run.report, FAULTS);
	unproven_calls = truth_unproven(run.report, GETPPID);
	assert_int_equal(run.nr_threads, nr_threads);
	for (size_t i = 0; i < run.nr_threads; i++)
		check_thread(&run, &run.threads[i], &worst, &missing_calls);
	printf("figure: process: %s %lld (wait4 %lld), worst thread %lld away, getppid %lld "
	       "missing; "
	       "unproven %lld and %lld\n",
	       FAULTS, (long long)process_sum(&run, FAULTS), (long long)run.process_faults,
	       (long long)worst, (long long)missing_calls, (long long)unproven,
	       (long long)unproven_calls);
	check_faults(process_sum(&run, FAULTS), run.process_faults, unproven);
	assert_true(missing_calls <= unproven_calls);
	truth_free(&run);
	return unproven + unproven_calls == 0;
}

static void measure_exact(const char *workload, size_t nr_threads)
{
	int attempts = TRUTH_ATTEMPTS;

	while (!measure(workload, nr_threads)) {
		if (--attempts == 0)
			fail_msg("in %d runs some slices had no proven owner", TRUTH_ATTEMPTS);
	}
}

static void test_eight_threads(void **state)
{
	(void)state;
	measure_exact("w_touch --threads=8", 8);
}

/* Four threads a CPU and more, so that slices are short and every CPU sees all of them. */
static void test_many_threads(void **state)
{
	(void)state;
	measure_exact(
		"w_touch --threads=64 --pages=20 --pages-step=3 --getppid=10 --getppid-step=1", 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_eight_threads),
		cmocka_unit_test(test_many_threads),
	};
	const char *reason = truth_refused();

	if (!reason)
		reason = truth_no_tracepoints();
	return truth_main(tests, reason);
}
