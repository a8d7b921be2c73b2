/*
 * The sums under as many context switches as the machine can do, and with a reader that cannot keep
 * up.
 *
 * Invariant: whatever is lost, every sum still agrees and no thread is given what another one did.
 */
#define _GNU_SOURCE
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "truth.h"

#define GETPPID "syscalls:sys_enter_getppid"
#define FAULTS "page-faults"
#define CLOCK "task-clock"
#define EVENTS "--event=" FAULTS "," CLOCK "," GETPPID
#define FAULTS_TOLERANCE 2   /* what a thread faults after its own reading */
#define SWITCHES_TOLERANCE 8 /* its way out, on a machine that is full */
#define MS 1000000.0

static void print_completeness(const struct truth_run *run)
{
	const json_t *c = json_object_get(run->report, "completeness");

	printf("figure: trigger %lld = samples %lld + lost %lld + throttled %lld + unseen %lld + "
	       "open "
	       "%lld\n",
	       (long long)truth_integer(c, "trigger"), (long long)truth_integer(c, "samples"),
	       (long long)truth_integer(c, "lost"), (long long)truth_integer(c, "throttled"),
	       (long long)truth_integer(c, "unseen"), (long long)truth_integer(c, "open"));
}

static int64_t lost(const struct truth_run *run)
{
	return truth_integer(json_object_get(run->report, "completeness"), "lost");
}

/* What all threads did while nobody could look. */
struct window {
	const struct truth_moment *from, *to; /* NULL: there was no such time */
};

enum { CALLS, PAGES, CPU_NS };

/* Time above the threads' bounds, all together: no more than the hypervisor stole. */
struct excess {
	double oncpu_ns, clock_ns;
};

static int64_t in_window(const struct window *window, size_t thread, size_t what)
{
	const json_t *from, *to;

	if (!window->from)
		return 0;
	from = json_array_get(json_array_get(window->from->threads, thread), what);
	to = json_array_get(json_array_get(window->to->threads, thread), what);
	assert_true(json_is_integer(from) && json_is_integer(to));
	return json_integer_value(to) - json_integer_value(from);
}

/* At hundreds of thousands of switches a second, where within a switch the time changes hands
 * decides a good part of it: the kernel's clock turns when the scheduler begins, the records when
 * counting sees it. */
#define SWITCH_NS 10000.0

/* By how much the thread exceeds its bound, which is wide: time is judged closely by
 * test_truth_oncpu. Here a thread is given some 100,000 slices a second, and what a lost stretch
 * holds is half a second. */
static double time_above(const struct truth_thread *thread, const char *what, int64_t ns,
			 int64_t slices)
{
	double own = (double)thread->cpu_ns, allowed;

	allowed = fmax(0.1 * own, 50 * MS) + SWITCH_NS * (double)slices;
	printf("figure: thread %d: %s %.3f ms, own %.3f ms\n", thread->tid, what, (double)ns / MS,
	       own / MS);
	return fmax(0, (double)ns - own - allowed);
}

static void check_at_most(const struct truth_thread *thread, const char *what, int64_t value,
			  int64_t own, int64_t away)
{
	if (value > own - away)
		fail_msg("thread %d has %lld %s, its own %lld, of which %lld were unwatched",
			 thread->tid, (long long)value, what, (long long)own, (long long)away);
}

/* Nobody has more than its own truth, less what it did in the window. Returns its missing calls. */
static int64_t check_thread(const struct truth_run *run, const struct window *window, size_t i,
			    struct excess *excess)
{
	const struct truth_thread *thread = &run->threads[i];
	const json_t *row = truth_row(run, thread->pid, thread->tid);
	int64_t calls;

	if (!row)
		return thread->getppid;
	calls = truth_proven_count(row, GETPPID);
	check_at_most(thread, "getppid", calls, thread->getppid, in_window(window, i, CALLS));
	check_at_most(thread, FAULTS, truth_proven_count(row, FAULTS),
		      thread->faults + FAULTS_TOLERANCE, in_window(window, i, PAGES));
	check_at_most(thread, "switches", truth_integer(row, "slices"),
		      thread->switches + SWITCHES_TOLERANCE, 0);
	excess->oncpu_ns += time_above(thread, "on-CPU", truth_integer(row, "oncpu_ns"),
				       truth_integer(row, "slices"));
	excess->clock_ns += time_above(thread, CLOCK, truth_proven_count(row, CLOCK),
				       truth_integer(row, "slices"));
	return thread->getppid - calls;
}

static int64_t unproven_calls(const struct truth_run *run)
{
	return truth_kind_count(run, "mixed", GETPPID) + truth_kind_count(run, "lost", GETPPID) +
	       truth_kind_count(run, "unknown", GETPPID);
}

/* Calls in the rows of those that are no thread of the workload. */
static int64_t calls_of_others(const struct truth_run *run)
{
	int64_t calls = truth_kind_count(run, "other", GETPPID) +
			truth_kind_count(run, "self", GETPPID) +
			truth_kind_count(run, "thread", GETPPID);

	for (size_t i = 0; i < run->nr_threads; i++) {
		const json_t *row = truth_row(run, run->threads[i].pid, run->threads[i].tid);

		calls -= row ? truth_proven_count(row, GETPPID) : 0;
	}
	return calls;
}

/* What is missing from the threads is in the rows of what nobody is charged with, all of it and
 * nothing else. Returns whether it is so to the last call: somebody else may have called too,
 * unseen. */
static bool check_threads(const struct truth_run *run, const struct window *window,
			  bool *others_called)
{
	int64_t missing = 0, unproven = unproven_calls(run), others = calls_of_others(run);
	struct excess excess = { 0, 0 };
	int64_t quiet = 0;

	for (size_t i = 0; i < run->nr_threads; i++) {
		missing += check_thread(run, window, i, &excess);
		quiet += run->threads[i].getppid == 0 && run->threads[i].switches > 100;
	}
	assert_true(quiet >
		    0); /* who never calls has been there, to be given what is not its own */
	printf("figure: %lld calls missing from the threads' rows, unproven %lld, others' %lld; "
	       "time "
	       "above the bounds %.3f and %.3f ms, stolen %.3f ms\n",
	       (long long)missing, (long long)unproven, (long long)others, excess.oncpu_ns / MS,
	       excess.clock_ns / MS, run->stolen_ns / MS);
	assert_true(excess.oncpu_ns <= run->stolen_ns);
	assert_true(excess.clock_ns <= run->stolen_ns);
	assert_true(missing <= unproven);
	assert_true(unproven <= truth_unproven(run->report, GETPPID));
	*others_called = others > 0;
	return missing == unproven;
}

static void test_sums_under_load(void **state)
{
	int nr = truth_repeat(5, 100);

	(void)state;
	for (int i = 0; i < nr; i++) {
		struct truth_run run;
		bool others_called;

		truth_start(&run, EVENTS, "w_load --ms=1000");
		truth_finish(&run);
		truth_check_sums(&run);
		check_threads(&run, &(struct window){ NULL, NULL }, &others_called);
		print_completeness(&run);
		truth_free(&run);
	}
}

/* The load begins before counting and ends after it, so that every CPU starts and stops in the
 * thick of it. */
static void test_sums_of_the_machine(void **state)
{
	int nr = truth_repeat(2, 20);

	(void)state;
	for (int i = 0; i < nr; i++) {
		struct truth_run run;

		truth_start_beside(&run, EVENTS " -d 1", "w_load --ms=1600");
		truth_finish(&run);
		truth_check_sums(&run);
		print_completeness(&run);
		truth_free(&run);
	}
}

static int64_t now_ns(void)
{
	struct timespec ts;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &ts), 0);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* The moments that lie within: rings of one page were full, nobody had emptied them. */
static struct window window_within(const struct truth_run *run, int64_t from_ns, int64_t to_ns)
{
	struct window window = { NULL, NULL };

	for (size_t i = 0; i < run->nr_moments; i++) {
		const struct truth_moment *moment = &run->moments[i];

		if (moment->from_ns < from_ns || moment->to_ns > to_ns)
			continue;
		if (!window.from)
			window.from = moment;
		window.to = moment;
	}
	if (!window.from || window.from == window.to)
		fail_msg("the workload did not run while the reader was stopped");
	return window;
}

/* All that happened in the window is in [lost]: not in the threads' rows, and not in [mixed]. */
static void check_lost(const struct truth_run *run, const struct window *window)
{
	int64_t calls = 0, pages = 0, cpu_ns = 0;

	for (size_t i = 0; i < run->nr_threads; i++) {
		calls += in_window(window, i, CALLS);
		pages += in_window(window, i, PAGES);
		cpu_ns += in_window(window, i, CPU_NS);
	}
	printf("figure: [lost]: getppid %lld, of which unwatched %lld, %s %lld (%lld), %.1f ms "
	       "(%.1f ms)\n",
	       (long long)truth_kind_count(run, "lost", GETPPID), (long long)calls, FAULTS,
	       (long long)truth_kind_count(run, "lost", FAULTS), (long long)pages,
	       (double)truth_kind_integer(run, "lost", "oncpu_ns") / MS, (double)cpu_ns / MS);
	assert_true(calls > 100 && pages > 100);
	assert_true(truth_kind_count(run, "lost", GETPPID) >= calls);
	assert_true(truth_kind_count(run, "lost", FAULTS) >= pages);
	assert_true((double)truth_kind_integer(run, "lost", "oncpu_ns") >= 0.98 * (double)cpu_ns);
	assert_true((double)truth_kind_count(run, "lost", CLOCK) >= 0.98 * (double)cpu_ns);
}

/* Returns whether everything agrees to the last call. */
static bool stop_reader_once(bool *others_called)
{
	struct truth_run run;
	struct window window;
	int64_t stopped_ns, continued_ns;
	int status;
	bool exact;

	truth_start(&run, EVENTS " --ring-kib=4", "w_load --ms=1500");
	sleep_ms(500);
	assert_int_equal(kill(run.csw, SIGSTOP), 0);
	assert_int_equal(waitpid(run.csw, &status, WUNTRACED), run.csw);
	assert_true(WIFSTOPPED(status));
	stopped_ns = now_ns();
	sleep_ms(300);
	continued_ns = now_ns();
	assert_int_equal(kill(run.csw, SIGCONT), 0);
	truth_finish(&run);
	print_completeness(&run);
	truth_check_sums(&run);
	assert_true(lost(&run) > 0);
	/* A page of records is full after some dozen switches; 50 ms are thousands. */
	window = window_within(&run, stopped_ns + 50000000, continued_ns);
	check_lost(&run, &window);
	exact = check_threads(&run, &window, others_called);
	truth_free(&run);
	return exact;
}

static void test_stopped_reader(void **state)
{
	int attempts = TRUTH_ATTEMPTS;
	bool others_called, called = true;

	(void)state;
	while (!stop_reader_once(&others_called)) {
		called = called && others_called;
		if (--attempts)
			continue;
		if (!called)
			fail_msg("in %d runs what was lost is not what the threads lack",
				 TRUTH_ATTEMPTS);
		printf("skip: in %d runs other programs called getppid too\n", TRUTH_ATTEMPTS);
		truth_skip_test();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums_under_load),
		cmocka_unit_test(test_sums_of_the_machine),
		cmocka_unit_test(test_stopped_reader),
	};
	const char *reason = truth_refused();

	if (!reason)
		reason = truth_no_tracepoints();
	return truth_main(tests, reason);
}
