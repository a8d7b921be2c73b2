/*
 * The sums under as many context switches as the machine can do, and with a reader that cannot keep
 * up.
 *
 * Invariant: whatever is lost, every sum still agrees and no thread is given what another one did.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "truth.h"

#define GETPPID "syscalls:sys_enter_getppid"
#define EVENTS "--event=page-faults,task-clock," GETPPID

static void sleep_ms(long ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

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

/* Every thread's count is exact, but for what the report itself says has no proven owner. */
static void check_threads(const struct truth_run *run)
{
	int64_t missing = 0, unproven = truth_unproven(run, GETPPID);

	for (size_t i = 0; i < run->nr_threads; i++) {
		const struct truth_thread *thread = &run->threads[i];
		const json_t *row = truth_row(run, thread->pid, thread->tid);
		int64_t count = row ? truth_proven_count(row, GETPPID) : 0;

		missing += thread->getppid - count;
		if (count > thread->getppid)
			fail_msg("thread %d: getppid %lld, its own count %lld, lost %lld",
				 thread->tid, (long long)count, (long long)thread->getppid,
				 (long long)lost(run));
	}
	printf("figure: %lld calls missing from the threads' rows, unproven %lld\n",
	       (long long)missing, (long long)unproven);
	assert_true(missing <= unproven);
}

static void test_sums_under_load(void **state)
{
	int nr = truth_repeat(5, 100);

	(void)state;
	for (int i = 0; i < nr; i++) {
		struct truth_run run;

		truth_start(&run, EVENTS, "w_load --ms=1000");
		truth_finish(&run);
		truth_check_sums(&run);
		check_threads(&run);
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

static void test_stopped_reader(void **state)
{
	struct truth_run run;

	(void)state;
	truth_start(&run, EVENTS " --ring-kib=4", "w_load --ms=1500");
	sleep_ms(500);
	assert_int_equal(kill(run.csw, SIGSTOP), 0);
	sleep_ms(300);
	assert_int_equal(kill(run.csw, SIGCONT), 0);
	truth_finish(&run);
	print_completeness(&run);
	truth_check_sums(&run);
	assert_true(lost(&run) > 0);
	check_threads(&run);
	truth_free(&run);
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
