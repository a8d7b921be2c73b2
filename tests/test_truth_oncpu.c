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

/*
 * The kernel's clock of a thread that is preempted ends, and that of the one that was woken begins,
 * with the interrupt that woke it; the switch records say when it really came, up to so much later.
 * That is far inside the bounds unless other programs make the threads switch thousands of times a
 * second.
 */
#define WAKE_UP_NS 30000.0
#define CROWD_PER_S 2000.0

struct workload {
	const char *command;
	double share;       /* how far off a thread's own time, either way, */
	double at_least_ns; /* but never less than this */
	double median;      /* how far off the median of the threads' errors; 0: whatever */
};

/* What one run says. */
struct verdict {
	double median;
	double exceeded_ns; /* by which threads are above their bounds, all together, */
	double lacking_ns;  /* and below */
	double slices;      /* of the threads */
};

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void judge_threads(const struct truth_run *run, const struct workload *w,
			  struct verdict *verdict)
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
		allowed = fmax(own * w->share, w->at_least_ns);
		errors[i] = fabs(away) / own;
		verdict->slices += (double)truth_integer(row, "slices");
		verdict->exceeded_ns += fmax(0, away - allowed);
		verdict->lacking_ns += fmax(0, -away - allowed);
		printf("figure: thread %d: on-CPU %.3f ms (own %.3f ms), %+.3f ms, %+.3f %%, "
		       "allowed %.3f ms\n",
		       thread->tid, (own + away) / MS, own / MS, away / MS, 100 * away / own,
		       allowed / MS);
	}
	qsort(errors, run->nr_threads, sizeof(errors[0]), compare_doubles);
	verdict->median = (errors[(run->nr_threads - 1) / 2] + errors[run->nr_threads / 2]) / 2;
}

/* From how much on, stolen on all CPUs together, a verdict is spoilt: it could put half of the
 * threads above the median's bound, or use up half of a thread's own. */
static double theft_that_matters(const struct truth_run *run, const struct workload *w)
{
	double own_ns = 0;

	for (size_t i = 0; i < run->nr_threads; i++)
		own_ns += (double)run->threads[i].cpu_ns;
	return w->median > 0 ? w->median * own_ns / 2 : w->at_least_ns / 2;
}

/* Switches of all others, per second. */
static double crowd(const struct truth_run *run, const struct verdict *verdict)
{
	double slices = (double)truth_integer(run->report, "slices");
	double seconds = (double)truth_integer(run->report, "duration_ns") / 1e9;

	return (slices - verdict->slices) / seconds;
}

/* One run; returns whether it was judged by all bounds. Theft blurs the median, and of the threads'
 * bounds it excuses only what they exceed them by, as far as so much was stolen in all. A crowd
 * blurs both, by what its wake-ups can make of it. */
static bool measure(const struct workload *w)
{
	struct verdict verdict = { .median = 0 };
	struct truth_run run;
	double excused_ns;
	bool clean;

	truth_start(&run, "--event=page-faults", w->command);
	truth_finish(&run);
	truth_check_sums(&run);
	judge_threads(&run, w, &verdict);
	clean = run.stolen_ns <= theft_that_matters(&run, w) &&
		crowd(&run, &verdict) <= CROWD_PER_S;
	excused_ns = crowd(&run, &verdict) <= CROWD_PER_S ? 0 : WAKE_UP_NS * verdict.slices;
	printf("figure: %s: median error %.4f %%, above the bounds %.3f ms, below %.3f ms, stolen "
	       "%.3f ms, %.0f switches a second by others\n",
	       w->command, 100 * verdict.median, verdict.exceeded_ns / MS, verdict.lacking_ns / MS,
	       run.stolen_ns / MS, crowd(&run, &verdict));
	assert_true(verdict.lacking_ns <= excused_ns);
	assert_true(verdict.exceeded_ns <= run.stolen_ns + excused_ns);
	if (clean && w->median > 0)
		assert_true(verdict.median <= w->median);
	truth_free(&run);
	return clean;
}

/* So many runs without theft or a crowd; one with it is repeated, up to three times as many in all.
 */
static void measure_clean(const struct workload *w, int wanted)
{
	int clean = 0, runs = 0;

	while (clean < wanted && runs < 3 * wanted) {
		clean += measure(w);
		runs++;
	}
	printf("figure: %s: %d of %d runs without theft or a crowd, %d wanted\n", w->command, clean,
	       runs, wanted);
	if (clean < wanted) {
		printf("skip: the hypervisor stole time, or others made the machine switch, in %d "
		       "of %d runs: only %d instead of %d "
		       "could be judged in full\n",
		       runs - clean, runs, clean, wanted);
		truth_skip_test();
	}
}

static void test_busy(void **state)
{
	const struct workload w = { "w_busy --threads=8 --ms=5000", 0.005, 8 * MS, 0.001 };

	(void)state;
	measure_clean(&w, truth_repeat(2, 5));
}

static void test_sleepy(void **state)
{
	const struct workload w = { "w_sleepy --threads=8 --ms=3000", 0.01, 2 * MS, 0 };

	(void)state;
	measure_clean(&w, truth_repeat(1, 5));
}

/* Alone on its CPU, the sleeper's neighbour on the time line is always the idle task, which leaves
 * no record on some machines: nothing of its time may be charged to the sleeper. */
static void test_pinned_sleeper(void **state)
{
	const struct workload w = { "w_sleepy --threads=1 --ms=3000 --pin=1", 0.01, 2 * MS, 0 };

	(void)state;
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		printf("skip: needs two CPUs\n");
		truth_skip_test();
	}
	measure_clean(&w, truth_repeat(1, 5));
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
