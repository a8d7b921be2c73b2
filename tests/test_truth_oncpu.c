/*
 * On-CPU time of threads that read their own CPU time, through the real command on the real kernel.
 *
 * Invariant: the yardstick is CLOCK_THREAD_CPUTIME_ID, read by the thread itself after a short
 * sleep; what it still needs to leave, some microseconds, lies far inside the tolerances.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "truth.h"

#define THREADS_MAX 8
#define MS 1000000.0

struct tolerance {
	double share;       /* of the thread's own time, */
	double at_least_ns; /* but never less than this */
};

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Time that the hypervisor gave to others, over all CPUs, in steps of a tick. A thread's own CPU
 * time leaves it out where the kernel knows of it; switch records cannot: a thread may exceed its
 * own figure by as much. */
static double steal_ns(void)
{
	FILE *file = fopen("/proc/stat", "re");
	long steal = 0;

	assert_non_null(file);
	if (fscanf(file, "cpu %*d %*d %*d %*d %*d %*d %*d %ld", &steal) != 1)
		steal = 0;
	fclose(file);
	return (double)steal * 1e9 / (double)sysconf(_SC_CLK_TCK);
}

/* Returns the median of the threads' relative errors. */
static double check_threads(const struct truth_run *run, const struct tolerance *tolerance,
			    double stolen_ns)
{
	double errors[THREADS_MAX];

	assert_in_range(run->nr_threads, 1, THREADS_MAX);
	for (size_t i = 0; i < run->nr_threads; i++) {
		const struct truth_thread *thread = &run->threads[i];
		const json_t *row = truth_row(run, thread->pid, thread->tid);
		double own = (double)thread->cpu_ns, allowed, away;

		if (!row)
			fail_msg("no row for thread %d", thread->tid);
		assert_true(own > 0);
		away = (double)truth_integer(row, "oncpu_ns") - own;
		allowed = fmax(own * tolerance->share, tolerance->at_least_ns);
		errors[i] = fabs(away) / own;
		printf("figure: thread %d: on-CPU %.3f ms (own %.3f ms), %+.3f ms, %+.3f %%\n",
		       thread->tid, (own + away) / MS, own / MS, away / MS, 100 * away / own);
		assert_true(away >= -allowed);
		assert_true(away <= allowed + stolen_ns);
	}
	qsort(errors, run->nr_threads, sizeof(errors[0]), compare_doubles);
	return (errors[(run->nr_threads - 1) / 2] + errors[run->nr_threads / 2]) / 2;
}

/* Returns the median error, less what theft makes of it on the average. */
static double measure(const char *workload, const struct tolerance *tolerance)
{
	struct truth_run run;
	double median, own_ns = 0;
	double stolen_ns = steal_ns();

	truth_start(&run, "--event=page-faults", workload);
	truth_finish(&run);
	truth_check_sums(&run);
	stolen_ns = steal_ns() - stolen_ns;
	printf("figure: %s: stolen by the hypervisor meanwhile: %.0f ms\n", workload,
	       stolen_ns / MS);
	median = check_threads(&run, tolerance, stolen_ns);
	printf("figure: %s: median error %.4f %%\n", workload, 100 * median);
	for (size_t i = 0; i < run.nr_threads; i++)
		own_ns += (double)run.threads[i].cpu_ns;
	truth_free(&run);
	return median - stolen_ns / own_ns;
}

static void test_busy(void **state)
{
	const struct tolerance tolerance = { 0.005, 8 * MS };
	int nr = truth_repeat(2, 5);

	(void)state;
	for (int i = 0; i < nr; i++)
		assert_true(measure("w_busy --threads=8 --ms=5000", &tolerance) <= 0.001);
}

static void test_sleepy(void **state)
{
	const struct tolerance tolerance = { 0.01, 2 * MS };
	int nr = truth_repeat(1, 5);

	(void)state;
	for (int i = 0; i < nr; i++)
		measure("w_sleepy --threads=8 --ms=3000", &tolerance);
}

/* Alone on its CPU, the sleeper's neighbour on the time line is always the idle task, which leaves
 * no record on some machines: nothing of its time may be charged to the sleeper. */
static void test_pinned_sleeper(void **state)
{
	const struct tolerance tolerance = { 0.01, 2 * MS };
	int nr = truth_repeat(1, 5);

	(void)state;
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		printf("skip: needs two CPUs\n");
		skip();
	}
	for (int i = 0; i < nr; i++)
		measure("w_sleepy --threads=1 --ms=3000 --pin=1", &tolerance);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_sleepy),
		cmocka_unit_test(test_pinned_sleeper),
	};

	return truth_main(tests, truth_refused());
}
