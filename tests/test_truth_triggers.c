/*
 * The debug registers as the trigger, held against the software event of the context switch: two
 * csw-samples watch the machine at once, one by each, and a workload lives through both.
 *
 * Invariant: what is compared are whole lives, so that neither window cuts anything off.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "truth.h"

#define FAULTS "page-faults"
#define GETPPID "syscalls:sys_enter_getppid"
#define EVENTS "--event=" FAULTS "," GETPPID
#define FAULTS_TOLERANCE 2
/* The exception that the watchpoint raises lies within the switch, and costs about 10 us on a
 * virtual machine: on one side of a switch's records or the other. */
#define NS_PER_SLICE 20000
#define SHARE 0.01

static char dir[] = "/tmp/csw-triggers-XXXXXX", report_path[64];

/* ---- the other csw-sample ---- */

#define BY_STORES CSW_SAMPLE " --trigger=tid_change " EVENTS

static pid_t outer_start(void)
{
	char command[512];

	snprintf(command, sizeof(command), BY_STORES " --format=json -d 120 -o %s", report_path);
	return truth_recorder_start(command, false, 1000);
}

static void check_ended_well(int status)
{
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static json_t *outer_stop(pid_t pid)
{
	json_t *report;

	sleep_ms(100);
	check_ended_well(truth_recorder_stop(pid, SIGINT));
	report = json_load_file(report_path, 0, NULL);
	assert_non_null(report);
	return report;
}

/* ---- the comparison ---- */

struct difference {
	int64_t slices, worst_faults, missing_calls;
	double worst_ns, worst_share;
	size_t off;
};

static void compare(const struct truth_run *by_switch, const struct truth_run *by_store,
		    const struct truth_thread *thread, struct difference *all)
{
	const json_t *a = truth_row(by_switch, thread->pid, thread->tid);
	const json_t *b = truth_row(by_store, thread->pid, thread->tid);
	int64_t slices, faults, ns;

	assert_non_null(a);
	assert_non_null(b);
	slices = truth_integer(a, "slices");
	faults = llabs(truth_proven_count(b, FAULTS) - thread->faults);
	ns = llabs(truth_integer(a, "oncpu_ns") - truth_integer(b, "oncpu_ns"));
	all->slices += llabs(slices - truth_integer(b, "slices"));
	all->worst_faults = faults > all->worst_faults ? faults : all->worst_faults;
	all->missing_calls += thread->getppid - truth_proven_count(b, GETPPID);
	assert_true(truth_proven_count(b, GETPPID) <= thread->getppid);
	assert_true(truth_proven_count(b, FAULTS) <= thread->faults + FAULTS_TOLERANCE);
	if ((double)ns > all->worst_ns) {
		all->worst_ns = (double)ns;
		all->worst_share = (double)ns / (double)truth_integer(a, "oncpu_ns");
	}
	all->off += ns > NS_PER_SLICE * (slices + 1) &&
		    (double)ns > SHARE * (double)truth_integer(a, "oncpu_ns");
}

static void check_trigger(const json_t *report)
{
	const json_t *trigger = json_object_get(report, "trigger");

	assert_string_equal(json_string_value(json_object_get(trigger, "name")), "tid_change");
	assert_true(json_is_true(json_object_get(trigger, "hardware")));
	assert_int_equal(truth_integer(trigger, "sav"), 1);
}

/* Returns whether the two agree. Of the outer one's report only these threads count: what is not
 * proven of the rest of the machine is no concern of theirs. */
static bool measure(const char *workload)
{
	struct difference all = { .slices = 0 };
	struct truth_run run, outer = { .status = 0 };
	int64_t unproven;
	pid_t pid = outer_start();

	truth_start(&run, "--trigger=switch " EVENTS, workload);
	truth_finish(&run);
	outer.report = outer_stop(pid);
	truth_check_sums(&run);
	check_trigger(outer.report);
	for (size_t i = 0; i < run.nr_threads; i++)
		compare(&run, &outer, &run.threads[i], &all);
	unproven = truth_unproven(outer.report, FAULTS) + truth_unproven(outer.report, GETPPID);
	printf("figure: %s, %zu threads by tid_change and by switch: slices differ by %lld, page "
	       "faults at most %lld from the threads' own, getppid %lld missing, on-CPU at most "
	       "%.3f ms apart (%.2f %%), unproven %lld, exact %.2f %%\n",
	       workload, run.nr_threads, (long long)all.slices, (long long)all.worst_faults,
	       (long long)all.missing_calls, all.worst_ns / 1e6, 100 * all.worst_share,
	       (long long)unproven,
	       100 * json_real_value(json_object_get(outer.report, "exact_share")));
	assert_true(all.missing_calls <= truth_unproven(outer.report, GETPPID));
	assert_true(all.worst_faults <= FAULTS_TOLERANCE + truth_unproven(outer.report, FAULTS));
	json_decref(outer.report);
	truth_free(&run);
	return !all.slices && !all.off && !all.missing_calls &&
	       all.worst_faults <= FAULTS_TOLERANCE;
}

static void measure_exact(const char *workload)
{
	int attempts = TRUTH_ATTEMPTS;

	while (!measure(workload)) {
		if (--attempts == 0)
			fail_msg("in %d runs the two sides differed", TRUTH_ATTEMPTS);
	}
}

static void test_eight_threads(void **state)
{
	(void)state;
	measure_exact("w_touch --threads=8");
}

static void test_many_threads(void **state)
{
	(void)state;
	measure_exact(
		"w_touch --threads=64 --pages=20 --pages-step=3 --getppid=10 --getppid-step=1");
}

/* ---- accesses to memory ---- */

/* A watch knows addresses and no processes: one that nobody else has anything at. */
#define PLACE 0x5c5700000000ULL
#define STORES 1000
#define LOADS 3000
#define PLACE_TEXT "%d:0x5c5700000000"

static pid_t accessor_start(int *go)
{
	int fds[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(fds), 0);
	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		volatile uint64_t *place =
			mmap((void *)(uintptr_t)PLACE, 4096, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[1]);
		if ((uintptr_t)place != PLACE)
			_exit(1);
		*place = 0; /* its page is there when it counts */
		if (read(fds[0], &c, 1) != 1)
			_exit(1);
		for (uint64_t i = 0; i < STORES; i++)
			*place = i;
		for (uint64_t i = 0; i < LOADS; i++)
			(void)*place;
		_exit(0);
	}
	close(fds[0]);
	*go = fds[1];
	sleep_ms(100); /* it has mapped the place */
	return pid;
}

/* csw-sample until the process has ended; options with PLACE_TEXT for the place, so many times. */
static json_t *watch_accesses(const char *options, unsigned places)
{
	char filled[256], line[512];
	json_t *report;
	int go, status;
	pid_t pid = accessor_start(&go);
	FILE *csw;

	if (places == 1)
		snprintf(filled, sizeof(filled), options, pid);
	else
		snprintf(filled, sizeof(filled), options, pid, pid);
	snprintf(line, sizeof(line), "%s %s -p %d -q --format=json -o %s", CSW_SAMPLE, filled, pid,
		 report_path);
	csw = popen(line, "r");
	assert_non_null(csw);
	sleep_ms(1500);
	assert_int_equal(write(go, "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(go);
	assert_int_equal(pclose(csw), 0);
	report = json_load_file(report_path, 0, NULL);
	assert_non_null(report);
	return report;
}

/* As the trigger: what it sees is told apart by a second watch, if one of loads alone is not to be
 * had. */
static void test_accesses_as_trigger(void **state)
{
	json_t *report =
		watch_accesses("--trigger=mem_load:" PLACE_TEXT " --sav=7 -e page-faults", 1);
	json_t *accesses = json_object_get(json_object_get(report, "trigger"), "accesses");
	int64_t seen = truth_integer(json_object_get(report, "completeness"), "trigger");

	(void)state;
	printf("figure: mem_load as the trigger saw %lld of %d loads and %d stores\n",
	       (long long)seen, LOADS, STORES);
	if (accesses) {
		assert_int_equal(seen, LOADS + STORES);
		assert_int_equal(truth_integer(accesses, "accesses"), LOADS + STORES);
		assert_int_equal(truth_integer(accesses, "stores"), STORES);
		assert_int_equal(truth_integer(accesses, "loads"), LOADS);
	} else {
		assert_int_equal(seen, LOADS);
	}
	json_decref(report);
}

/* As counters: in the row of the thread that did it. */
static void test_accesses_as_counters(void **state)
{
	json_t *report = watch_accesses(
		"--trigger=switch -e mem_load:" PLACE_TEXT ",mem_store:" PLACE_TEXT, 2);
	json_t *names = json_object_get(report, "counters");
	const char *load = json_string_value(json_array_get(names, 0));
	const char *store = json_string_value(json_array_get(names, 1));
	json_t *row = json_array_get(json_object_get(report, "rows"), 0);
	int64_t loads = truth_count(row, load);

	(void)state;
	printf("figure: mem_load as a counter %lld, mem_store %lld, of %d loads and %d stores\n",
	       (long long)loads, (long long)truth_count(row, store), LOADS, STORES);
	assert_true(truth_is_kind(row, "thread"));
	assert_int_equal(truth_count(row, store), STORES);
	assert_true(loads == LOADS || loads == LOADS + STORES); /* by what a watch can see */
	json_decref(report);
}

/* ---- the registers ---- */

/* Whatever ends csw-sample, the registers are free again: five times more than there are. */
static void test_registers_are_released(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		pid_t pid = truth_recorder_start(BY_STORES " -d 60 -o /dev/null", false, 100);
		int status = truth_recorder_stop(pid, i % 2 ? SIGKILL : SIGTERM);

		if (i % 2)
			assert_true(WIFSIGNALED(status));
		else
			check_ended_well(status);
	}
}

/* Four at once take all of x86's; the next one is told so. */
static void test_registers_are_taken(void **state)
{
	pid_t pids[32];
	char text[1024] = "";
	FILE *out;
	int nr = 0;

	(void)state;
	while (nr < 32 && !*text) {
		pids[nr++] = truth_recorder_start(BY_STORES " -d 60 -o /dev/null", false, 300);
		out = popen(BY_STORES " -d 0.1 -o /dev/null 2>&1", "r");
		assert_non_null(out);
		if (fgets(text, sizeof(text), out) && !strstr(text, "debug register"))
			*text = '\0'; /* a remark on the quality of so short a run */
		pclose(out);
	}
	for (int i = 0; i < nr; i++)
		truth_recorder_stop(pids[i], SIGTERM);
	printf("figure: %d csw-samples at once hold the debug registers; the next: %s", nr, text);
	assert_non_null(strstr(text, "debug register"));
	assert_non_null(strstr(text, "--trigger=switch"));
}

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(report_path, sizeof(report_path), "%s/report", dir);
	return 0;
}

static int drop_dir(void **state)
{
	(void)state;
	unlink(report_path);
	return rmdir(dir);
}

static const char *no_watchpoints(void)
{
	if (system(CSW_SAMPLE " --trigger=tid_change --event=" FAULTS
			      " -d 0.1 -o /dev/null 2>/dev/null"))
		return "tid_change does not work here: see csw-sample list triggers";
	return NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_eight_threads),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_accesses_as_trigger),
		cmocka_unit_test(test_accesses_as_counters),
		cmocka_unit_test(test_registers_are_released),
		cmocka_unit_test(test_registers_are_taken),
	};
	const char *reason = truth_refused();

	if (!reason)
		reason = truth_no_tracepoints();
	if (!reason)
		reason = no_watchpoints();
	return reason ? truth_skip(reason)
		      : truth_status(cmocka_run_group_tests(tests, make_dir, drop_dir));
}
