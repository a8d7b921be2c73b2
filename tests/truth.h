/*
 * Running csw-sample on a workload that knows its own truth, and reading both sides back.
 *
 * Invariant: every number that a test compares was read from the report file or from the workload's
 * own lines; this code adds up and looks up, it corrects nothing.
 */
#ifndef CSW_TESTS_TRUTH_H
#define CSW_TESTS_TRUTH_H

#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include <cmocka.h>
#include <jansson.h>

#define TRUTH_SKIPPED                                                                              \
	77 /* exit status of a test program that cannot run here; tests/CMakeLists.txt tells CTest \
	    */

/* What a workload says of one of its threads. */
struct truth_thread {
	int32_t pid, tid;
	int64_t pages, getppid, faults, cpu_ns;
	int64_t switches; /* as getrusage tells; 0: it does not say */
};

/* How far its threads had come, in the order of birth, at some time from from_ns to to_ns by
 * CLOCK_MONOTONIC. */
struct truth_moment {
	int64_t from_ns, to_ns;
	json_t *threads; /* each [getppid, pages, cpu_ns] */
};

struct truth_run {
	pid_t csw;                    /* the running csw-sample */
	pid_t load;                   /* the workload where csw-sample did not start it, else 0 */
	char dir[64];                 /* holds report and truth */
	int status;                   /* of csw-sample, as waitpid says */
	json_t *report;               /* NULL when csw-sample wrote none */
	struct truth_thread *threads; /* in the order of birth */
	size_t nr_threads;
	struct truth_moment *moments;
	size_t nr_moments;
	/* by /proc/stat, over all CPUs, from before csw-sample to after it: */
	int64_t switches;
	double stolen_ns; /* time that the hypervisor gave to others. A thread's own CPU time leaves
			     it out where the kernel knows of it; switch records cannot: all threads
			     together may exceed their own figures by as much, and no more. */
	pid_t process;    /* the workload's process, */
	int64_t process_faults; /* and all its faults by wait4; -1: it does not say */
};

/* NULL when the kernel lets us count on every CPU, else why not. */
const char *truth_refused(void);
/* The same for tracepoints; mounts tracefs where that is all that is missing. */
const char *truth_no_tracepoints(void);

/* Starts csw-sample with these options on this workload; both are words separated by spaces. */
void truth_start(struct truth_run *run, const char *options, const char *workload);
/* The workload runs beside csw-sample, which watches the whole machine; options say for how long.
 */
void truth_start_beside(struct truth_run *run, const char *options, const char *workload);
/* Waits for both and reads report and truth. */
void truth_finish(struct truth_run *run);
void truth_free(struct truth_run *run);

/* Another recorder beside csw-sample, csw-sample itself or perf: starts the command, words
 * separated by spaces, and gives it ready_ms until it records. quiet: what it writes is not shown.
 * It dies with the test. */
pid_t truth_recorder_start(const char *command, bool quiet, long ready_ms);
/* Ends it by this signal; its status as waitpid says. */
int truth_recorder_stop(pid_t pid, int signal);

static inline void sleep_ms(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* The only row of kind thread with this TID; fails the test when there are several, NULL when there
 * is none. */
json_t *truth_row(const struct truth_run *run, int32_t pid, int32_t tid);
/* Its counter's value; fails the test where it was not counted. */
int64_t truth_count(const json_t *row, const char *counter);
/* What is proven of it: 0 where the report says that nothing is. */
int64_t truth_proven_count(const json_t *row, const char *counter);
int64_t truth_integer(const json_t *object, const char *key);
bool truth_is_kind(const json_t *row, const char *kind);

/* Sum of a member, or of a counter, over all rows of a kind. */
int64_t truth_kind_integer(const struct truth_run *run, const char *kind, const char *key);
int64_t truth_kind_count(const struct truth_run *run, const char *kind, const char *counter);

/* Fails the test unless csw-sample ended with 0, the report's own sums agree (per counter all rows
 * = the counter, and the trigger's occurrences are all accounted for), and the trigger's
 * occurrences are as many switches as the switch records and the kernel's own count say. */
void truth_check_sums(const struct truth_run *run);

/* How much of a counter the report says no thread was proven to have caused. On a machine where
 * some task leaves no records, that much may be missing from the rows; nothing else may. */
int64_t truth_unproven(const json_t *report, const char *counter);

/* Exactness can be judged only in a run in which everything was proven; so many runs may be spoilt
 * by tasks that leave no records before a test gives up. */
#define TRUTH_ATTEMPTS 8

/* CSW_TEST_LONG=1 asks for the full number of repetitions. */
int truth_repeat(int usual, int full);

/* Runs a group of tests, or prints why not and returns TRUTH_SKIPPED. */
#define truth_main(tests, reason)                                                                  \
	((reason) ? truth_skip(reason) : truth_status(cmocka_run_group_tests(tests, NULL, NULL)))
int truth_status(int failed);
int truth_skip(const char *reason);

/* Ends a test of the group as skipped, for a reason that was printed. Where nothing failed, the
 * group's program then counts as skipped: what was not judged is no success. */
#define truth_skip_test()                                                                          \
	do {                                                                                       \
		truth_skipped_tests++;                                                             \
		skip();                                                                            \
	} while (0)
extern int truth_skipped_tests;

#endif
