/*
 * Running csw-sample on a workload that knows its own truth, and reading both sides back.
 *
 * Invariant: whatever fails in here fails the test with a line that says what.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <errno.h>
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

static pid_t spawn(char *const argv[])
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		/* A test that CTest kills for its time must not leave a measurement behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(argv[0], argv);
		fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	return pid;
}

static void begin(struct truth_run *run, struct words *words, const char *options)
{
	*run = (struct truth_run){ .dir = "truth-XXXXXX", .process = -1, .process_faults = -1 };
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
	run->csw = spawn(words.argv);
}

void truth_start_beside(struct truth_run *run, const char *options, const char *workload)
{
	struct words words, load = { .nr = 0 };

	begin(run, &words, options);
	add_workload(&load, run, workload);
	run->load = spawn(load.argv);
	run->csw = spawn(words.argv);
}

/* ---- reading back ---- */

int64_t truth_integer(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value))
		fail_msg("\"%s\" is no integer in the JSON", key);
	return json_integer_value(value);
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
	int status;

	wait_for(run->csw, &run->status);
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

int64_t truth_unproven(const struct truth_run *run, const char *counter)
{
	const json_t *totals = json_object_get(run->report, "totals");

	return truth_integer(json_object_get(totals, counter), "unproven");
}

void truth_check_sums(const struct truth_run *run)
{
	check_conservation(run);
	check_completeness(run);
}
