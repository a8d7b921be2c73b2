/*
 * Running csw-sample on a workload that knows its own truth, and reading both sides back.
 *
 * Invariant: whatever fails in here fails the test with a line that says what.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <errno.h>
#include <math.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 40
#define TEXT_MAX 1024
#define TRACEFS "/sys/kernel/tracing"
#define DEBUGFS_TRACING "/sys/kernel/debug/tracing"
#define DEBUGFS "/sys/kernel/debug"
#define SCHED_CLOCKS DEBUGFS "/sched/debug"
#define GETPPID_ID "/events/syscalls/sys_enter_getppid/id"

/* ---- can it run here? ---- */

const char *truth_refused(void)
{
	static char reason[TEXT_MAX];
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CONTEXT_SWITCHES,
		.disabled = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0) {
		snprintf(reason, sizeof(reason),
			 "the kernel refuses to count context switches on a CPU: %s; run as root",
			 strerror(errno));
		return reason;
	}
	close(fd);
	return NULL;
}

const char *truth_no_tracepoints(void)
{
	static char reason[TEXT_MAX];
	int ret = 0;

	if (!access(TRACEFS GETPPID_ID, R_OK) || !access(DEBUGFS_TRACING GETPPID_ID, R_OK))
		return NULL;
	if (access(TRACEFS "/events", F_OK))
		ret = mount("none", TRACEFS, "tracefs", 0, NULL) ? -errno : 0;
	if (!access(TRACEFS GETPPID_ID, R_OK))
		return NULL;
	snprintf(
		reason, sizeof(reason),
		"the tracepoint syscalls:sys_enter_getppid cannot be read%s%s; mount tracefs on %s",
		ret ? ", mounting tracefs: " : "", ret ? strerror(-ret) : "", TRACEFS);
	return reason;
}

int truth_skip(const char *reason)
{
	printf("skip: %s\n", reason);
	return TRUTH_SKIPPED;
}

int truth_skipped_tests;

int truth_status(int failed)
{
	return !failed && truth_skipped_tests ? TRUTH_SKIPPED : failed;
}

int truth_repeat(int usual, int full)
{
	const char *text = getenv("CSW_TEST_LONG");

	return text && !strcmp(text, "1") ? full : usual;
}

/* ---- running ---- */

struct words {
	char *argv[WORDS_MAX];
	int nr;
	char text[4096];
	size_t used;
};

static void add_word(struct words *words, const char *word, size_t len)
{
	assert_true(words->nr + 1 < WORDS_MAX);
	assert_true(words->used + len + 1 < sizeof(words->text));
	words->argv[words->nr++] = memcpy(words->text + words->used, word, len);
	words->used += len;
	words->text[words->used++] = '\0';
	words->argv[words->nr] = NULL;
}

static void add_words(struct words *words, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, " ");

		add_word(words, text, len);
		text += len + strspn(text + len, " ");
	}
}

static void add_file(struct words *words, const char *option, const char *dir, const char *file)
{
	char text[256];
	int len = snprintf(text, sizeof(text), "%s%s/%s", option, dir, file);

	assert_true(len > 0 && (size_t)len < sizeof(text));
	add_word(words, text, (size_t)len);
}

static void add_workload(struct words *words, const struct truth_run *run, const char *workload)
{
	char path[TEXT_MAX];
	int len = snprintf(path, sizeof(path), "%s/%.*s", CSW_WORKLOADS,
			   (int)strcspn(workload, " "), workload);

	assert_true(len > 0 && (size_t)len < sizeof(path));
	add_word(words, path, (size_t)len);
	add_file(words, "--truth=", run->dir, "truth");
	add_words(words, workload + strcspn(workload, " ") + strspn(strchrnul(workload, ' '), " "));
}

static pid_t spawn(char *const argv[], bool quiet)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		/* A test that CTest kills for its time must not leave a measurement behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (quiet &&
		    (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)))
			_exit(127);
		execvp(argv[0], argv);
		fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	return pid;
}

pid_t truth_recorder_start(const char *command, bool quiet, long ready_ms)
{
	struct words words = { .nr = 0 };
	pid_t pid;

	add_words(&words, command);
	pid = spawn(words.argv, quiet);
	sleep_ms(ready_ms);
	return pid;
}

int truth_recorder_stop(pid_t pid, int signal)
{
	int status;

	assert_int_equal(kill(pid, signal), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* What the scheduler took off its clocks so far: stolen time to the ns. -1: it does not say. */
static double read_deducted_ns(void)
{
	double clocks = 0, tasks = 0, value;
	FILE *file = fopen(SCHED_CLOCKS, "re");
	char line[512];

	if (!file && !mount("none", DEBUGFS, "debugfs", 0, NULL))
		file = fopen(SCHED_CLOCKS, "re");
	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, " .clock : %lf", &value) == 1)
			clocks += value;
		else if (sscanf(line, " .clock_task : %lf", &value) == 1)
			tasks += value;
	}
	fclose(file);
	return tasks > 0 ? (clocks - tasks) * 1e6 : -1; /* they are in ms */
}

/* What the kernel counts for itself since boot: every switch of every CPU, to and from idle as
 * well, and stolen time, in steps of a tick where the scheduler's own figure cannot be had. */
static void read_machine(int64_t *switches, double *stolen_ns)
{
	FILE *file = fopen("/proc/stat", "re");
	long long nr = -1, steal = 0;
	char *line = NULL;
	size_t bytes = 0;

	assert_non_null(file);
	while (getline(&line, &bytes, file) > 0) {
		sscanf(line, "cpu %*d %*d %*d %*d %*d %*d %*d %lld", &steal);
		sscanf(line, "ctxt %lld", &nr);
	}
	free(line);
	fclose(file);
	assert_true(nr >= 0);
	*switches = nr;
	*stolen_ns = read_deducted_ns();
	if (*stolen_ns < 0)
		*stolen_ns = (double)steal * 1e9 / (double)sysconf(_SC_CLK_TCK);
}

static void begin(struct truth_run *run, struct words *words, const char *options)
{
	*run = (struct truth_run){ .dir = "truth-XXXXXX", .process = -1, .process_faults = -1 };
	read_machine(&run->switches, &run->stolen_ns);
	assert_non_null(mkdtemp(run->dir));
	*words = (struct words){ .nr = 0 };
	add_word(words, CSW_SAMPLE, strlen(CSW_SAMPLE));
	add_words(words, "--driver=perf --format=json -o");
	add_file(words, "", run->dir, "report");
	add_words(words, options);
}

void truth_start(struct truth_run *run, const char *options, const char *workload)
{
	struct words words;

	begin(run, &words, options);
	add_words(&words, "--");
	add_workload(&words, run, workload);
	run->csw = spawn(words.argv, false);
}

void truth_start_beside(struct truth_run *run, const char *options, const char *workload)
{
	struct words words, load = { .nr = 0 };

	begin(run, &words, options);
	add_workload(&load, run, workload);
	run->load = spawn(load.argv, false);
	run->csw = spawn(words.argv, false);
}

/* ---- reading back ---- */

int64_t truth_integer(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value))
		fail_msg("\"%s\" is no integer in the JSON", key);
	return json_integer_value(value);
}

static void add_moment(struct truth_run *run, const json_t *line)
{
	run->moments = realloc(run->moments, (run->nr_moments + 1) * sizeof(*run->moments));
	assert_non_null(run->moments);
	run->moments[run->nr_moments++] = (struct truth_moment){
		.from_ns = truth_integer(line, "from_ns"),
		.to_ns = truth_integer(line, "to_ns"),
		.threads = json_incref(json_object_get(line, "threads")),
	};
}

static void add_truth(struct truth_run *run, const json_t *line, size_t *capacity)
{
	const char *what = json_string_value(json_object_get(line, "what"));

	assert_non_null(what);
	if (!strcmp(what, "process")) {
		run->process = (pid_t)truth_integer(line, "pid");
		run->process_faults = truth_integer(line, "faults");
		return;
	}
	if (!strcmp(what, "moment")) {
		add_moment(run, line);
		return;
	}
	if (run->nr_threads == *capacity) {
		*capacity = *capacity ? 2 * *capacity : 64;
		run->threads = realloc(run->threads, *capacity * sizeof(*run->threads));
		assert_non_null(run->threads);
	}
	run->threads[run->nr_threads++] = (struct truth_thread){
		.pid = (int32_t)truth_integer(line, "pid"),
		.tid = (int32_t)truth_integer(line, "tid"),
		.pages = truth_integer(line, "pages"),
		.getppid = truth_integer(line, "getppid"),
		.faults = truth_integer(line, "faults"),
		.cpu_ns = truth_integer(line, "cpu_ns"),
		.switches = truth_integer(line, "switches"),
	};
}

static void read_truth(struct truth_run *run, const char *path)
{
	FILE *file = fopen(path, "re");
	size_t bytes = 0, capacity = 0;
	char *text = NULL;

	if (!file)
		fail_msg("the workload left no truth: %s", strerror(errno));
	while (getline(&text, &bytes, file) > 0) {
		json_error_t error;
		json_t *line = json_loads(text, 0, &error);

		if (!line)
			fail_msg("a line of the truth is no JSON: %s", error.text);
		add_truth(run, line, &capacity);
		json_decref(line);
	}
	free(text);
	fclose(file);
	assert_true(run->nr_threads > 0);
	if (run->process < 0)
		run->process = run->threads[0].pid;
}

static void wait_for(pid_t pid, int *status)
{
	while (waitpid(pid, status, 0) != pid)
		assert_int_equal(errno, EINTR);
}

void truth_finish(struct truth_run *run)
{
	char path[128];
	json_error_t error;
	int64_t switches;
	double stolen_ns;
	int status;

	wait_for(run->csw, &run->status);
	read_machine(&switches, &stolen_ns);
	run->switches = switches - run->switches;
	/* A difference of large doubles: none at all may come out a little below 0. */
	run->stolen_ns = fmax(0, stolen_ns - run->stolen_ns);
	if (run->load) {
		wait_for(run->load, &status);
		assert_int_equal(status, 0);
	}
	if (!WIFEXITED(run->status) || WEXITSTATUS(run->status))
		fail_msg("csw-sample ended with %s %d",
			 WIFEXITED(run->status) ? "status" : "signal",
			 WIFEXITED(run->status) ? WEXITSTATUS(run->status) : WTERMSIG(run->status));
	snprintf(path, sizeof(path), "%s/report", run->dir);
	run->report = json_load_file(path, 0, &error);
	if (!run->report)
		fail_msg("the report is no JSON: %s, line %d", error.text, error.line);
	unlink(path);
	snprintf(path, sizeof(path), "%s/truth", run->dir);
	read_truth(run, path);
	unlink(path);
	rmdir(run->dir);
}

void truth_free(struct truth_run *run)
{
	json_decref(run->report);
	for (size_t i = 0; i < run->nr_moments; i++)
		json_decref(run->moments[i].threads);
	free(run->moments);
	free(run->threads);
}

/* ---- looking up ---- */

bool truth_is_kind(const json_t *row, const char *kind)
{
	const char *text = json_string_value(json_object_get(row, "kind"));

	assert_non_null(text);
	return !strcmp(text, kind);
}

json_t *truth_row(const struct truth_run *run, int32_t pid, int32_t tid)
{
	json_t *row, *found = NULL;
	size_t i;

	json_array_foreach(json_object_get(run->report, "rows"), i, row)
	{
		if (!truth_is_kind(row, "thread") || truth_integer(row, "tid") != tid ||
		    truth_integer(row, "pid") != pid)
			continue;
		if (found)
			fail_msg("two rows for thread %d", tid);
		found = row;
	}
	return found;
}

static int64_t count_of(const json_t *row, const char *counter, bool *counted)
{
	const json_t *count = json_object_get(json_object_get(row, "counts"), counter);

	if (!count)
		fail_msg("no counter %s in a row", counter);
	*counted = !json_is_null(json_object_get(count, "value"));
	return *counted ? truth_integer(count, "value") : 0;
}

int64_t truth_proven_count(const json_t *row, const char *counter)
{
	const json_t *count = json_object_get(json_object_get(row, "counts"), counter);

	if (json_is_null(json_object_get(count, "value")) && json_object_get(count, "reason"))
		return 0;
	return truth_count(row, counter);
}

int64_t truth_count(const json_t *row, const char *counter)
{
	bool counted;
	int64_t value = count_of(row, counter, &counted);

	if (!counted)
		fail_msg("%s was not counted in a row", counter);
	return value;
}

int64_t truth_kind_integer(const struct truth_run *run, const char *kind, const char *key)
{
	int64_t sum = 0;
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(run->report, "rows"), i, row)
	{
		if (truth_is_kind(row, kind))
			sum += truth_integer(row, key);
	}
	return sum;
}

int64_t truth_kind_count(const struct truth_run *run, const char *kind, const char *counter)
{
	int64_t sum = 0;
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(run->report, "rows"), i, row)
	{
		if (truth_is_kind(row, kind))
			sum += truth_proven_count(row, counter);
	}
	return sum;
}

/* Added up here once more: a report that only claims to add up fails. */
static void check_conservation(const struct truth_run *run)
{
	json_t *totals = json_object_get(run->report, "totals"), *total, *row;
	const char *name;
	size_t i;

	assert_true(json_object_size(totals) > 0);
	json_object_foreach(totals, name, total)
	{
		int64_t sum = 0;
		bool counted;

		json_array_foreach(json_object_get(run->report, "rows"), i, row) sum +=
			count_of(row, name, &counted);
		if (sum != truth_integer(total, "counter"))
			fail_msg("%s: the rows hold %lld, the counter %lld", name, (long long)sum,
				 (long long)truth_integer(total, "counter"));
		assert_int_equal(truth_integer(total, "rows"), sum);
		assert_int_equal(truth_integer(total, "difference"), 0);
	}
}

static void check_completeness(const struct truth_run *run)
{
	const json_t *c = json_object_get(run->report, "completeness");
	int64_t sav = truth_integer(json_object_get(run->report, "trigger"), "sav");
	int64_t accounted = sav * truth_integer(c, "samples") + truth_integer(c, "lost") +
			    truth_integer(c, "throttled") + truth_integer(c, "unseen") +
			    truth_integer(c, "open");

	if (truth_integer(c, "trigger") != accounted)
		fail_msg("the trigger occurred %lld times, accounted for are %lld",
			 (long long)truth_integer(c, "trigger"), (long long)accounted);
	assert_true(truth_integer(c, "samples") > 0);
}

/* Switches that ended a run, and those of them that only the record of the other side told of. */
static void count_switches(const struct truth_run *run, int64_t *all, int64_t *one_sided)
{
	json_t *row;
	size_t i;

	*all = *one_sided = 0;
	json_array_foreach(json_object_get(run->report, "rows"), i, row)
	{
		*all += truth_integer(row, "slices");
		*one_sided += truth_integer(row, "slices") - truth_integer(row, "voluntary") -
			      truth_integer(row, "preempted");
	}
}

/*
 * What is lost, unseen and open is the remainder of a subtraction and makes any sum come out right.
 * So the trigger's count is held against what does not come from it: the switch records, which the
 * kernel writes whatever becomes of the samples, and the kernel's own count of switches.
 *
 * A switch can be without a sample for one reason only, that a task leaves no records; then its
 * switch record is missing as well. A sample that went astray between the ring and the table has a
 * complete switch.
 */
static void check_switches(const struct truth_run *run)
{
	const json_t *c = json_object_get(run->report, "completeness");
	int64_t trigger = truth_integer(c, "trigger"), unseen = truth_integer(c, "unseen");
	int64_t gone = truth_integer(c, "lost") + truth_integer(c, "throttled");
	int64_t ends = sysconf(_SC_NPROCESSORS_ONLN); /* each CPU's first and last switch */
	int64_t switches, one_sided, missing;

	if (!strstr(json_string_value(
			    json_object_get(json_object_get(run->report, "trigger"), "event")),
		    "context-switches"))
		return;
	count_switches(run, &switches, &one_sided);
	missing = trigger - switches;
	printf("figure: trigger %lld, switches %lld by records (%lld one-sided), at most %lld by "
	       "the kernel's count; unseen %lld, lost and throttled %lld\n",
	       (long long)trigger, (long long)switches, (long long)one_sided,
	       (long long)run->switches, (long long)unseen, (long long)gone);
	assert_int_equal(truth_integer(run->report, "slices"), switches);
	assert_true(trigger <= run->switches + ends);
	if (llabs(missing) > unseen + gone + ends)
		fail_msg("the trigger occurred %lld times at %lld switches", (long long)trigger,
			 (long long)switches);
	if (unseen > one_sided + (missing > 0 ? missing : 0) + gone + ends)
		fail_msg("%lld occurrences have no sample, but only %lld switches lack a record",
			 (long long)unseen, (long long)(one_sided + missing));
}

int64_t truth_unproven(const json_t *report, const char *counter)
{
	const json_t *totals = json_object_get(report, "totals");

	return truth_integer(json_object_get(totals, counter), "unproven");
}

void truth_check_sums(const struct truth_run *run)
{
	check_conservation(run);
	check_completeness(run);
	check_switches(run);
}
