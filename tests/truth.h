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

#include <cmocka.h>
#include <jansson.h>

#define TRUTH_SKIPPED                                                                              \
	77 /* exit status of a test program that cannot run here; tests/CMakeLists.txt tells CTest \
	    */

/* What a workload says of one of its threads. */
struct truth_thread {
	int32_t pid, tid;
	int64_t pages, getppid, faults, cpu_ns;
};

struct truth_run {
	pid_t csw;                    /* the running csw-sample */
	pid_t load;                   /* the workload where csw-sample did not start it, else 0 */
	char dir[64];                 /* holds report and truth */
	int status;                   /* of csw-sample, as waitpid says */
	json_t *report;               /* NULL when csw-sample wrote none */
	struct truth_thread *threads; /* in the order of birth */
	size_t nr_threads;
	pid_t process;          /* the workload's process, */
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

/* The only row of kind thread with this TID; fails the test when there are several, NULL when there
 * is none. */
json_t *truth_row(const struct truth_run *run, int32_t pid, int32_t tid);
/* Its counter's value; fails the test where it was not counted. */
int64_t truth_count(const json_t *row, const char *counter);
/* What is proven of it: 0 where the report says that nothing is. */
int64_t truth_proven_count(const json_t *row, const char *counter);
int64_t truth_integer(const json_t *object, const char *key);
bool truth_is_kind(const json_t *row, const char *kind);

/* Fails the test unless csw-sample ended with 0 and the report's own sums agree: per counter all
 * rows = the counter, and the trigger's occurrences are all accounted for. */
void truth_check_sums(const struct truth_run *run);

/* How much of a counter the report says no thread was proven to have caused. On a machine where
 * some task leaves no records, that much may be missing from the rows; nothing else may. */
int64_t truth_unproven(const struct truth_run *run, const char *counter);

/* Exactness can be judged only in a run in which everything was proven; so many runs may be spoilt
 * by tasks that leave no records before a test gives up. */
#define TRUTH_ATTEMPTS 8

/* CSW_TEST_LONG=1 asks for the full number of repetitions. */
int truth_repeat(int usual, int full);

/* Runs a group of tests, or prints why not and returns TRUTH_SKIPPED. */
#define truth_main(tests, reason)                                                                  \
	((reason) ? truth_skip(reason) : cmocka_run_group_tests(tests, NULL, NULL))
int truth_skip(const char *reason);

#endif
