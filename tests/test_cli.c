/*
 * The command line, through the real binary: exit status, standard output and standard error of
 * each case. Without arguments on the simulated machine, which needs no permission; with the
 * argument "kernel" on the real one, and with a pattern behind it only the tests of such names.
 *
 * Invariant: a failure is one line on standard error that begins with the command's name, and
 * nothing on standard output; a success says nothing on standard error unless it was asked to.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <jansson.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "perfdata_write.h"
#include "truth.h"

#define SIM "--driver=sim:cpus=2,threads=12,processes=3 "
#define NS_PER_MS 1000000
#define TEXT_MAX (4u << 20)
#define PATIENCE_MS 20000

static char dir[64]; /* everything that a test writes */

/* One run of csw-sample. */
struct run {
	pid_t pid;
	int status; /* exit status; 1000 + signal if one killed it */
	int out, err;
	char *stdout_text, *stderr_text;
};

/* ---- running ---- */

static int temp_file(void)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s/fd-XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	assert_true(fd >= 0);
	unlink(path);
	return fd;
}

static void (*in_child)(void); /* what the next programs do to themselves before they begin */

/* A line of the shell; $CSW is csw-sample, $DIR the test's folder. out and err -1: into files that
 * finish() reads. */
static void start_script(struct run *run, const char *script, int out, int err)
{
	*run = (struct run){ .out = out < 0 ? temp_file() : out,
			     .err = err < 0 ? temp_file() : err };
	run->pid = fork();
	assert_true(run->pid >= 0);
	if (!run->pid) {
		/* A test that CTest kills for its time must not leave a measurement behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (in_child)
			in_child();
		dup2(run->out, STDOUT_FILENO);
		dup2(run->err, STDERR_FILENO);
		execl("/bin/sh", "sh", "-c", script, NULL);
		_exit(99);
	}
}

/* args as a shell reads them, redirections included. */
static void start_on(struct run *run, const char *args, int out, int err)
{
	char script[4096];

	assert_true(snprintf(script, sizeof(script), "exec \"$CSW\" %s", args) <
		    (int)sizeof(script));
	start_script(run, script, out, err);
}

static void start(struct run *run, const char *args)
{
	start_on(run, args, -1, -1);
}

static char *read_all(int fd)
{
	char *text = malloc(TEXT_MAX);
	ssize_t bytes;
	size_t at = 0;

	assert_non_null(text);
	while ((bytes = pread(fd, text + at, TEXT_MAX - 1 - at, (off_t)at)) > 0)
		at += (size_t)bytes;
	text[at] = '\0';
	return text;
}

static void finish(struct run *run)
{
	int status;

	while (waitpid(run->pid, &status, 0) != run->pid)
		assert_int_equal(errno, EINTR);
	run->status = WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
	run->stdout_text = read_all(run->out);
	run->stderr_text = read_all(run->err);
	close(run->out);
	close(run->err);
}

/* A run that hangs fails its test, not the whole program. */
static void assert_ends_within(const struct run *run, int ms, const char *what)
{
	siginfo_t info = { .si_pid = 0 };

	for (int waited = 0; waited < ms; waited += 10) {
		assert_int_equal(waitid(P_PID, (id_t)run->pid, &info, WEXITED | WNOHANG | WNOWAIT),
				 0);
		if (info.si_pid)
			return;
		nanosleep(&(struct timespec){ .tv_nsec = 10 * NS_PER_MS }, NULL);
	}
	kill(run->pid, SIGKILL);
	fail_msg("%s: still runs after %d ms", what, ms);
}

static void release(struct run *run)
{
	free(run->stdout_text);
	free(run->stderr_text);
}

/* ---- judging ---- */

static bool is_one_complaint(const char *text)
{
	const char *end = strchr(text, '\n');

	return strncmp(text, "csw-sample: ", 12) == 0 && end && !end[1];
}

static void judge(const struct run *run, const char *args, int status, const char *out,
		  const char *err)
{
	const char *text = run->stdout_text ? run->stdout_text : "";

	if (run->status != status)
		fail_msg("%s: status %d instead of %d; stderr: %s", args, run->status, status,
			 run->stderr_text);
	if (out ? *out && !strstr(text, out) : *text != '\0')
		fail_msg("%s: stdout is not \"%s\": %.2000s", args, out ? out : "", text);
	if (err ? !is_one_complaint(run->stderr_text) || !strstr(run->stderr_text, err)
		: *run->stderr_text != '\0')
		fail_msg("%s: stderr is not \"%s\": %s", args, err ? err : "", run->stderr_text);
}

/* Runs it to its end. out and err: what they must hold, NULL: nothing at all; err is one line. */
static void expect(const char *args, int status, const char *out, const char *err)
{
	struct run run;

	start(&run, args);
	finish(&run);
	judge(&run, args, status, out, err);
	release(&run);
}

static char *output_of(const char *args)
{
	struct run run;

	start(&run, args);
	finish(&run);
	judge(&run, args, 0, "", NULL);
	free(run.stderr_text);
	return run.stdout_text;
}

static json_t *report_of(const char *args)
{
	char *text = output_of(args);
	json_error_t error;
	json_t *report = json_loads(text, 0, &error);

	if (!report)
		fail_msg("%s: no JSON: %s: %.500s", args, error.text, text);
	free(text);
	return report;
}

static size_t count_lines(const char *text)
{
	size_t nr = 0;

	for (; (text = strchr(text, '\n')); text++)
		nr++;
	return nr;
}

static int64_t integer(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value))
		fail_msg("\"%s\" is no integer", key);
	return json_integer_value(value);
}

static int64_t total_of(const json_t *report, const char *event, const char *key)
{
	return integer(json_object_get(json_object_get(report, "totals"), event), key);
}

static int64_t value_of(const json_t *row, const char *event)
{
	return integer(json_object_get(json_object_get(row, "counts"), event), "value");
}

/* The simulated machine begins and ends within some microseconds. */
static void assert_about_ms(int64_t ns, int64_t ms)
{
	assert_in_range(ns, (ms - 1) * NS_PER_MS, (ms + 1) * NS_PER_MS);
}

static bool is_kind(const json_t *row, const char *kind)
{
	return strcmp(json_string_value(json_object_get(row, "kind")), kind) == 0;
}

/* Objects, one a line, into an array. */
static json_t *parse_lines(const char *text)
{
	json_t *all = json_array();
	const char *end;

	for (; (end = strchr(text, '\n')); text = end + 1) {
		json_t *one = json_loadb(text, (size_t)(end - text), 0, NULL);

		if (!one)
			fail_msg("a line is no JSON object: %.*s", (int)(end - text), text);
		json_array_append_new(all, one);
	}
	assert_string_equal(text, "");
	return all;
}

/* Objects one after the other, however many lines each has. */
static json_t *parse_sequence(const char *text)
{
	json_t *all = json_array(), *one;
	json_error_t error;

	while ((one = json_loads(text, JSON_DISABLE_EOF_CHECK, &error))) {
		json_array_append_new(all, one);
		text += error.position;
		text += strspn(text, "\n");
	}
	assert_string_equal(text, "");
	return all;
}

static char *file_text(const char *name)
{
	char path[128];
	int fd;
	char *text;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	text = read_all(fd);
	close(fd);
	return text;
}

static void put_file(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void assert_file(const char *name, const char *text)
{
	char *found = file_text(name);

	assert_non_null(found);
	assert_string_equal(found, text);
	free(found);
}

/* How many files of the test's folder have a name that begins so. */
static size_t count_files(const char *beginning)
{
	char pattern[128];
	glob_t found;
	size_t nr;

	snprintf(pattern, sizeof(pattern), "%s/%s*", dir, beginning);
	nr = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
	if (nr)
		globfree(&found);
	return nr;
}

static void remove_file(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path);
}

/* ---- help and the commands ---- */

static void test_help_teaches(void **state)
{
	static const char *const must[] = {
		"Examples:", "--event",  "--trigger",  "--sav",    "--driver",    "--pid",
		"--tid",     "--cgroup", "--cpus",     "--delay",  "--duration",  "--interval",
		"--by",      "--sort",   "--top",      "--format", "--output",    "--histogram",
		"--rate",    "--raw",    "--no-color", "--quiet",  "--verbose",   "--overhead",
		"list",      "doctor",   "verify",     "SIGUSR1",  "Exit status", "-- PROGRAM",
	};
	char *help = output_of("--help"), *same = output_of("help"), *brief = output_of("-h");

	(void)state;
	for (size_t i = 0; i < sizeof(must) / sizeof(*must); i++) {
		if (!strstr(help, must[i]))
			fail_msg("--help does not name %s", must[i]);
	}
	assert_string_equal(help, same);
	assert_string_equal(help, brief);
	free(help);
	free(same);
	free(brief);
	expect("--version", 0, "csw-sample ", NULL);
	expect("help me", 2, NULL, "me: unexpected");
	expect("help list me", 2, NULL, "me: unexpected");
}

static void test_commands(void **state)
{
	(void)state;
	expect("list drivers", 0, "sim", NULL);
	expect("list events page-faults", 0, "page-faults", NULL);
	expect("list nonsense", 2, NULL, "nonsense");
	expect("lsit", 2, NULL, "list, doctor, verify, calibrate, report, slices, help");
	expect("list drivers >/dev/full", 1, NULL, "cannot write to the standard output");
	expect("doctor >/dev/full", 1, NULL, "cannot write to the standard output");
}

/* ---- usage ---- */

static void test_bad_usage(void **state)
{
	static const struct {
		const char *args, *err;
	} cases[] = {
		{ "--nonsense", "--nonsense" },
		{ "-d", "-d" },
		{ "-d 1e3", "from 0 to 1000000000" },
		{ "-d -1", "from 0 to 1000000000" },
		{ "-d 99999999999999999999999", "from 0 to 1000000000" },
		{ "-I 0", "from 10 to 86400000" },
		{ "--interval=86400001", "from 10 to 86400000" },
		{ "--delay=-5", "from 0 to 86400000" },
		{ "--sav=0", "from 1 to 1000000000000" },
		{ "--sav=18446744073709551617", "from 1 to 1000000000000" },
		{ "--ring-kib=1", "from 4 to 1048576" },
		{ "--top=0", "from 1 to 1000000000" },
		{ "-p 0", "from 1 to 2147483647" },
		{ "-p 2147483648", "from 1 to 2147483647" },
		{ "-t abc", "from 1 to 2147483647" },
		{ "-C 3-1", "from 0 to 65535" },
		{ "-C 0-", "from 0 to 65535" },
		{ "--by=core", "thread, process, comm, cgroup or cpu" },
		{ "--format=xml", "table, json or csv" },
		{ "--", "no program" },
		{ "--sort=cgroup", "without --by=cgroup or --cgroup=PATH" },
		{ "-o --by=cpu", "-o: its value is missing: --by=cpu is an option" },
		{ "--sort -d 3", "--sort: its value is missing: -d is an option" },
		{ "-e -V", "-e: its value is missing" },
		{ "ls", "stands after --" },
		{ "--driver=nonsense", "nonsense" },
		{ SIM "--event=nonsense", "nonsense" },
		{ SIM "--trigger=nonsense", "nonsense" },
		{ SIM "--sav=automatic", "--sav=automatic: must be auto or a whole number" },
		{ SIM "--sav=0", "must be auto or a whole number from 1" },
		{ SIM "--sort=nonsense", "nonsense" },
		{ SIM "--by=cgroup", "cgroup" },
		{ "--driver=sim:cpus=99999999999", "cpus" },
		{ "--driver=sim -p 1", "leave out -p" },
		{ "--driver=sim -- true", "leave out the program" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		expect(cases[i].args, 2, NULL, cases[i].err);
}

/* ---- where it goes ---- */

static void test_output_file(void **state)
{
	struct stat st;
	char path[128];
	char *text;

	(void)state;
	snprintf(path, sizeof(path), "%s/report", dir);
	expect("-o \"$DIR/report\" --format=json -d 0.1 " SIM, 0, NULL, NULL);
	text = file_text("report");
	assert_non_null(strstr(text, "\"rows\""));
	free(text);
	/* Replaced only by a complete report, and with the mode that it had. */
	put_file("report", "old\n");
	chmod(path, 0640);
	expect("-o \"$DIR/report\" -d 0.1 --sort=nonsense " SIM, 2, NULL, "nonsense");
	assert_file("report", "old\n");
	expect("-o \"$DIR/report\" -d 0.1 " SIM, 0, NULL, NULL);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_true(st.st_size > 4);
	assert_int_equal(count_files("report"), 1);
	expect("-o - --format=json -d 0.1 " SIM, 0, "\"rows\"", NULL);
	expect("-o \"$DIR/no/such/folder\" -d 1000000 " SIM, 1, NULL, "No such file");
	expect("-o \"$DIR\" -d 1000000 " SIM, 1, NULL, "Is a directory");
	expect("-I 100 -o \"$DIR\" -d 1000000 " SIM, 1, NULL, "Is a directory");
	expect("-o /dev/full -d 0.1 " SIM, 1, NULL, "No space left");
	expect("-o /dev/null -d 0.1 " SIM, 0, NULL, NULL);
}

static void in_dir(char path[512], const char *name)
{
	assert_true(snprintf(path, 512, "%s/%s", dir, name) < 512);
}

static bool is_link(const char *name)
{
	char path[512];
	struct stat st;

	in_dir(path, name);
	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

static void put_link(const char *name, const char *target)
{
	char path[512];

	in_dir(path, name);
	assert_int_equal(symlink(target, path), 0);
}

/* What is behind a link is written, be it there or not; the link stays. */
static void test_output_through_links(void **state)
{
	static const char *const names[] = { "link", "chain" };

	(void)state;
	put_link("link", "behind");
	put_link("chain", "./link");
	for (size_t i = 0; i < 4; i++) {
		char args[128];

		if (i % 2 == 0)
			remove_file("behind");
		snprintf(args, sizeof(args), "-o \"$DIR/%s\" -d 0.1 " SIM, names[i / 2]);
		expect(args, 0, NULL, NULL);
		assert_true(is_link("link") && is_link("chain"));
		assert_int_equal(count_files("behind"), 1);
		assert_false(is_link("behind"));
	}
	put_link("astray", "no/such/folder");
	put_link("loop", "pool");
	put_link("pool", "loop");
	expect("-o \"$DIR/astray\" -d 1000000 " SIM, 1, NULL, "No such file");
	expect("-o \"$DIR/loop\" -d 1000000 " SIM, 1, NULL, "symbolic links");
	expect("-I 100 -o \"$DIR/loop\" -d 1000000 " SIM, 1, NULL, "symbolic links");
	assert_true(is_link("astray") && is_link("loop") && is_link("pool"));
}

/* As long as a name can be: whatever it is called meanwhile must not be longer. */
static void test_output_with_a_long_name(void **state)
{
	char name[NAME_MAX + 2], args[1024];

	(void)state;
	memset(name, 'n', NAME_MAX + 1);
	name[NAME_MAX] = '\0';
	snprintf(args, sizeof(args), "-o \"$DIR/%s\" -d 0.1 " SIM, name);
	expect(args, 0, NULL, NULL);
	expect(args, 0, NULL, NULL);
	assert_int_equal(count_files("nnn"), 1);
	memset(name, 'n', NAME_MAX + 1);
	name[NAME_MAX + 1] = '\0';
	snprintf(args, sizeof(args), "-o \"$DIR/%s\" -d 1000000 " SIM, name);
	expect(args, 1, NULL, "name too long");
	expect("-o '' -d 1000000 " SIM, 2, NULL, "-o: must not be empty");
	expect("--output= -d 1000000 " SIM, 2, NULL, "must not be empty");
	assert_int_equal(count_files(".csw"), 0);
}

/* A limit on the size of files is an error like a full disk. */
static void test_output_beyond_the_limit(void **state)
{
	struct rlimit before, small;
	struct run run;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 1024;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	start(&run, "-o \"$DIR/limited\" --format=json -d 0.1 " SIM);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	finish(&run);
	judge(&run, "RLIMIT_FSIZE", 1, NULL, "File too large");
	release(&run);
	assert_int_equal(count_files("limited") + count_files(".csw"), 0);
}

static bool has_nameless_files(void)
{
	int fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* However it ends, at whatever time after its start: nothing half-written is left. */
static void test_output_of_who_is_killed(void **state)
{
	static const int signals[] = { SIGKILL, SIGINT, SIGTERM, SIGHUP, SIGQUIT };

	(void)state;
	for (size_t i = has_nameless_files() ? 0 : 1; i < sizeof(signals) / sizeof(*signals); i++) {
		for (int ms = 0; ms < 30; ms += 3) {
			struct run run;

			start(&run, "-o \"$DIR/killed\" -d 1000000 " SIM);
			sleep_ms(ms);
			kill(run.pid, signals[i]);
			sleep_ms(150); /* two within 100 ms are one */
			kill(run.pid, signals[i]);
			assert_ends_within(&run, PATIENCE_MS, "two signals");
			finish(&run);
			release(&run);
			remove_file("killed"); /* complete, where the first one ended the run */
			assert_int_equal(count_files("killed") + count_files(".csw"), 0);
		}
	}
}

/* Who waits for its reader can be ended all the same. */
static void test_sigterm_while_the_pipe_is_full(void **state)
{
	static const int signals[] = { SIGTERM, SIGHUP, SIGQUIT };

	(void)state;
#ifdef __SANITIZE_THREAD__
	printf("skip: the thread sanitizer keeps signals back while a call of the C library "
	       "blocks\n");
	skip();
#endif
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		struct run run;
		int pipes[2];

		assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
		assert_true(fcntl(pipes[1], F_SETPIPE_SZ, 4096) >= 4096);
		start_on(&run, SIM "-d 0.1 --format=json --histogram", pipes[1], -1);
		for (int queued = 0; queued < 4096; sleep_ms(10))
			assert_int_equal(ioctl(pipes[0], FIONREAD, &queued), 0);
		sleep_ms(100);
		kill(run.pid, signals[i]);
		assert_ends_within(&run, 2000, "a signal while the report is blocked");
		run.out = temp_file();
		finish(&run);
		judge(&run, "a full pipe", 1000 + signals[i], NULL, NULL);
		release(&run);
		close(pipes[0]);
		close(pipes[1]);
	}
}

static void test_stdout_that_fails(void **state)
{
	(void)state;
	expect("-d 0.1 " SIM " >/dev/full", 1, NULL, "No space left");
	expect("-d 1 -I 100 " SIM " >/dev/full", 1, NULL, "No space left");
	expect("--help >/dev/full", 1, NULL, "No space left");
	expect("-d 1000000 " SIM " >&-", 1, NULL, "it is closed");
	expect("--help >&-", 1, NULL, "cannot write to the standard output");
	/* Another open file must not get the report instead. */
	expect("-d 0.1 -o \"$DIR/report\" " SIM " >&- 2>&- <&-", 0, NULL, NULL);
}

/* Nobody reads the pipe any more. err as of expect(). */
static void expect_epipe(const char *args, int status, const char *err)
{
	struct run run;
	int pipes[2];

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	close(pipes[0]);
	start_on(&run, args, pipes[1], -1);
	finish(&run);
	judge(&run, args, status, NULL, err);
	release(&run);
}

/* A report that nobody gets is a failure; of a list, or of lines without end, the reader may have
 * had enough. */
static void test_closed_pipe(void **state)
{
	static const char closed[] =
		"cannot write to the standard output: its reader has closed it";

	(void)state;
	expect_epipe("-d 0.1 " SIM, 1, closed);
	expect_epipe("-d 1000 -I 100 --format=json " SIM, 1, closed);
	expect_epipe("--help", 0, NULL);
	expect_epipe("help", 0, NULL);
	expect_epipe("list events", 0, NULL);
	expect_epipe("list triggers --json", 0, NULL);
	expect_epipe("slices -d 0.01 " SIM, 0, NULL);
	expect_epipe("slices -d 1000 " SIM, 0, NULL);
	expect("list events >/dev/full", 1, NULL, "cannot write to the standard output");
}

/* Its status is the last check's, whoever reads how much of it. */
static void test_doctor_on_a_closed_pipe(void **state)
{
	struct run run;

	(void)state;
	start(&run, "doctor");
	finish(&run);
	expect_epipe("doctor", run.status, NULL);
	release(&run);
}

/* ---- formats and columns ---- */

static void test_formats(void **state)
{
	json_t *report = report_of(SIM "-d 0.2 -e page-faults,task-clock --format=json");
	char *csv;

	(void)state;
	assert_about_ms(integer(report, "duration_ns"), 200);
	assert_string_equal(json_string_value(json_object_get(report, "driver")), "sim");
	assert_int_equal(json_array_size(json_object_get(report, "counters")), 2);
	assert_int_equal(total_of(report, "page-faults", "difference"), 0);
	csv = output_of(SIM "-d 0.2 -e page-faults,task-clock --format=csv");
	assert_int_equal(strncmp(csv, "kind,pid,tid,", 13), 0);
	assert_int_equal(count_lines(csv), 1 + json_array_size(json_object_get(report, "rows")));
	free(csv);
	json_decref(report);
	expect(SIM "-d 0.2 --format=table", 0, "[idle]", NULL);
	expect(SIM "-d 0", 0, "", NULL);
	expect(SIM "-d 0 --format=json", 0, "\"rows\"", NULL);
}

static void test_trigger_and_events(void **state)
{
	json_t *report =
		report_of(SIM "-q --trigger=seg_load --sav=2 --event=cycles -e instructions "
			      "--ring-kib=64 --duration=0.2 --format=json");
	json_t *trigger = json_object_get(report, "trigger");

	(void)state;
	assert_string_equal(json_string_value(json_object_get(trigger, "name")), "seg_load");
	assert_int_equal(integer(trigger, "sav"), 2);
	assert_int_equal(total_of(report, "cycles", "difference"), 0);
	assert_int_equal(total_of(report, "instructions", "difference"), 0);
	json_decref(report);
	/* what the catalogue has, and nothing to insist on */
	report = report_of(SIM "-q --trigger=seg_load --sav=auto --force -d 0.1 --format=json");
	trigger = json_object_get(report, "trigger");
	assert_int_equal(integer(trigger, "sav"), 1);
	assert_null(json_object_get(trigger, "forced"));
	json_decref(report);
	expect("report -i x --force", 2, NULL, "leave out --force");
	expect("calibrate --trigger=seg_load --force", 2, NULL,
	       "what is known not to work is calibrated all the same: leave out --force");
}

/* Every view has the same sum, and only rows of its own. */
static void test_views(void **state)
{
	static const char *const views[] = { "thread", "process", "comm", "cpu" };
	int64_t total = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(views) / sizeof(*views); i++) {
		char args[256];
		json_t *report, *row;
		int64_t sum = 0, own = 0;
		size_t j;

		snprintf(args, sizeof(args), SIM "-d 0.2 -e page-faults --format=json --by=%s",
			 views[i]);
		report = report_of(args);
		json_array_foreach(json_object_get(report, "rows"), j, row)
		{
			sum += value_of(row, "page-faults");
			own += is_kind(row, views[i]);
		}
		assert_true(own > 0);
		total = i ? total : sum;
		assert_true(sum > 0 && sum == total);
		assert_int_equal(total_of(report, "page-faults", "counter"), sum);
		json_decref(report);
	}
}

static void test_order_and_top(void **state)
{
	json_t *report = report_of(SIM "-d 0.2 -e page-faults --format=json --sort=slices --top=3");
	json_t *rows = json_object_get(report, "rows"), *row;
	int64_t last = INT64_MAX, sum = 0;
	size_t i, rest = 0;

	(void)state;
	assert_int_equal(json_array_size(rows), 4);
	json_array_foreach(rows, i, row)
	{
		sum += value_of(row, "page-faults");
		if (is_kind(row, "rest")) {
			rest++;
			continue;
		}
		assert_true(integer(row, "slices") <= last);
		last = integer(row, "slices");
	}
	assert_int_equal(rest, 1);
	assert_int_equal(sum, total_of(report, "page-faults", "counter"));
	json_decref(report);
	report = report_of(SIM "-d 0.2 -e page-faults --format=json --sort=tid");
	last = -2;
	json_array_foreach(json_object_get(report, "rows"), i, row)
	{
		if (!is_kind(row, "thread"))
			continue;
		assert_true(integer(row, "tid") >= last);
		last = integer(row, "tid");
	}
	assert_true(last > 0);
	json_decref(report);
}

/* Is there a digit, a comma and a digit? */
static bool has_separators(const char *text)
{
	for (; (text = strchr(text + 1, ','));)
		if (text[-1] >= '0' && text[-1] <= '9' && text[1] >= '0' && text[1] <= '9')
			return true;
	return false;
}

static void test_rate_raw_histogram(void **state)
{
	char *plain = output_of(SIM "-d 0.3 -e cycles"),
	     *raw = output_of(SIM "-d 0.3 -e cycles --raw");
	char *rate = output_of(SIM "-d 0.3 -e cycles --rate");
	char *verbose = output_of(SIM "-d 0.3 -e cycles --verbose");
	char *drawn = output_of(SIM "-d 0.3 -e cycles --histogram");
	json_t *report = report_of(SIM "-d 0.3 -e cycles --histogram --rate --format=json");
	json_t *count = json_object_get(
		json_object_get(json_array_get(json_object_get(report, "rows"), 0), "counts"),
		"cycles");

	(void)state;
	assert_true(has_separators(plain));
	assert_false(has_separators(raw));
	assert_true(strlen(rate) > strlen(plain));
	assert_non_null(strchr(rate, '%'));
	assert_true(strlen(verbose) > strlen(plain));
	assert_true(count_lines(drawn) > count_lines(plain) + 3);
	assert_true(json_is_array(json_object_get(count, "histogram")));
	assert_non_null(json_object_get(count, "per_second"));
	assert_non_null(json_object_get(count, "share"));
	json_decref(report);
	free(plain);
	free(raw);
	free(rate);
	free(verbose);
	free(drawn);
}

static void test_overhead(void **state)
{
	(void)state;
	expect(SIM "-d 0.2 --overhead", 0, "[idle]", "overhead: ");
}

/* Where the numbers say less than one would think, one line says so, and what to try. */
static void test_hints(void **state)
{
	static const struct {
		const char *args, *err;
	} cases[] = {
		{ SIM "-d 0.3 --sav=7", "try a smaller --sav" },
		{ SIM "-d 0.3 --sav=7 -I 100", "try a smaller --sav" },
		{ SIM "-d 0.1 --sav=1000000", "no sample came in 0.100 s" },
		{ "--driver=sim:vanish=300 -d 0.3", "try --trigger=switch" },
		{ "--driver=sim:vanish=300 -d 0.3 --trigger=switch", "left no record here" },
		{ "--driver=sim:ring=16,stall_ms=200 -d 0.5", "try a larger --ring-kib" },
		{ "--driver=sim:throttle=2 -d 0.5", "kernel.perf_event_max_sample_rate" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char quiet[256];

		expect(cases[i].args, 0, "page-faults", cases[i].err);
		snprintf(quiet, sizeof(quiet), "%s --quiet", cases[i].args);
		expect(quiet, 0, "page-faults", NULL);
	}
	expect(SIM "-d 0.3", 0, "page-faults", NULL);
}

/* ---- intervals ---- */

/* Each holds its own events only. Reading costs csw-sample time, on the simulated machine too, so
 * the sum is that of a run without intervals only nearly. */
static void test_intervals(void **state)
{
	static const int64_t ms[] = { 250, 250, 250, 50 };
	json_t *whole = report_of(SIM "-d 0.8 -e page-faults --format=json"), *interval;
	char *text = output_of(SIM "-d 0.8 -I 250 -e page-faults --format=json");
	json_t *intervals = parse_lines(text);
	int64_t sum = 0, elapsed = 0, total = total_of(whole, "page-faults", "counter");
	size_t i;

	(void)state;
	assert_null(json_object_get(whole, "elapsed_ns"));
	assert_int_equal(json_array_size(intervals), 4);
	json_array_foreach(intervals, i, interval)
	{
		assert_about_ms(integer(interval, "duration_ns"), ms[i]);
		elapsed += integer(interval, "duration_ns");
		assert_int_equal(integer(interval, "elapsed_ns"), elapsed);
		assert_int_equal(total_of(interval, "page-faults", "difference"), 0);
		sum += total_of(interval, "page-faults", "counter");
	}
	assert_in_range(sum, total * 3 / 4, total * 5 / 4);
	json_decref(intervals);
	json_decref(whole);
	free(text);
}

/* A report ends with the run, not with an interval of no length behind it. */
static void test_intervals_that_divide_the_run(void **state)
{
	char *text = output_of(SIM "-d 0.5 -I 250 --format=json");

	(void)state;
	assert_int_equal(count_lines(text), 2);
	free(text);
}

static size_t count_parts(const char *text, const char *part)
{
	size_t nr = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		nr++;
	return nr;
}

/* The lines of each interval bear its time, whole intervals one after the other. */
static void check_csv_times(const char *text, const int64_t *ms, size_t nr)
{
	size_t lines[8] = { 0 }, interval = 0;

	for (const char *line = strchr(text, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
		int64_t ns = (int64_t)(strtod(line, NULL) * 1e9);

		while (interval < nr && ns > (ms[interval] + 1) * NS_PER_MS)
			interval++;
		assert_true(interval < nr);
		assert_about_ms(ns, ms[interval]);
		lines[interval]++;
	}
	for (size_t i = 0; i < nr; i++)
		assert_true(lines[i] > 1);
}

static void test_intervals_as_csv_and_text(void **state)
{
	static const int64_t ms[] = { 250, 500, 600 };
	char *text = output_of(SIM "-d 0.6 -I 250 --format=csv");

	(void)state;
	assert_int_equal(strncmp(text, "time,kind,pid,", 14), 0);
	assert_int_equal(count_parts(text, "kind,pid"), 1);
	check_csv_times(text, ms, 3);
	free(text);
	text = output_of(SIM "-d 0.6 -I 250");
	assert_int_equal(count_parts(text, "---- simulated "), 3);
	assert_int_equal(strncmp(text, "---- simulated 0.250 s, 0.250 s ----\n", 37), 0);
	assert_non_null(strstr(text, "\n---- simulated 0.600 s, 0.100 s ----\n"));
	free(text);
}

static void test_intervals_append(void **state)
{
	char *text, *one;

	(void)state;
	remove_file("log");
	for (int i = 0; i < 2; i++)
		expect(SIM "-d 0.5 -I 250 --format=csv -o \"$DIR/log\"", 0, NULL, NULL);
	text = file_text("log");
	assert_int_equal(count_parts(text, "kind,pid"), 1);
	one = output_of(SIM "-d 0.5 -I 250 --format=csv");
	assert_int_equal(count_lines(text), 2 * count_lines(one) - 1);
	free(one);
	free(text);
	remove_file("log");
	for (int i = 0; i < 2; i++)
		expect(SIM "-d 0.5 -I 250 --format=json -o \"$DIR/log\"", 0, NULL, NULL);
	text = file_text("log");
	assert_int_equal(count_lines(text), 4);
	json_decref(parse_lines(text));
	free(text);
	assert_int_equal(count_files("log"), 1);
	remove_file("log");
}

/* Nor to half a line, such as a full disk has left. */
static void test_intervals_do_not_append_to_half_a_line(void **state)
{
	static const char *const formats[] = { "json", "csv", "table" };
	char args[256];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		snprintf(args, sizeof(args),
			 "-I 100 -d 0.3 " SIM "--format=%s -o \"$DIR/half\" $(printf half >"
			 "\"$DIR/half\")",
			 formats[i]);
		expect(args, 1, "", "does not end with a whole line");
	}
	remove_file("half");
}

/* Columns of another kind would be read as those of the first line. */
static void test_intervals_do_not_append_to_other_columns(void **state)
{
	static const char *const others[] = {
		SIM "-d 0.5 -I 250 --format=csv -e cycles -o \"$DIR/log\"",
		SIM "-d 0.5 -I 250 --format=csv --rate -o \"$DIR/log\"",
	};
	char *before;

	(void)state;
	remove_file("log");
	expect(SIM "-d 0.5 -I 250 --format=csv -o \"$DIR/log\"", 0, NULL, NULL);
	before = file_text("log");
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		expect(others[i], 1, NULL, "/log has other columns than these");
	assert_file("log", before);
	/* Another order and fewer rows have the same ones. */
	expect(SIM "-d 0.5 -I 250 --format=csv --sort=tid --top=3 -o \"$DIR/log\"", 0, NULL, NULL);
	free(before);
	put_file("log", "some text\n");
	expect(others[0], 1, NULL, "/log has other columns than these");
	assert_file("log", "some text\n");
	remove_file("log");
}

/* What comes after the delay is what an interval that begins there holds. */
static void test_delay(void **state)
{
	json_t *late = report_of(SIM "--delay=300 -d 0.3 -e page-faults --format=json");
	char *text = output_of(SIM "-d 0.6 -I 300 -e page-faults --format=json");
	json_t *both = parse_lines(text), *second = json_array_get(both, 1);

	(void)state;
	assert_about_ms(integer(late, "duration_ns"), 300);
	assert_int_equal(total_of(late, "page-faults", "counter"),
			 total_of(second, "page-faults", "counter"));
	assert_int_equal(integer(late, "slices"), integer(second, "slices"));
	json_decref(late);
	json_decref(both);
	free(text);
	text = output_of(SIM "--delay=300 -I 100 -d 0.3 --format=json");
	assert_int_equal(count_lines(text), 3);
	free(text);
}

/* ---- terminals ---- */

struct terminal {
	int master, slave;
};

static void open_terminal(struct terminal *t)
{
	struct winsize size = { .ws_row = 24, .ws_col = 100 };

	t->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(t->master >= 0);
	assert_int_equal(grantpt(t->master), 0);
	assert_int_equal(unlockpt(t->master), 0);
	t->slave = open(ptsname(t->master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(t->slave >= 0);
	assert_int_equal(ioctl(t->master, TIOCSWINSZ, &size), 0);
}

/* Runs it with stdout (or stderr) on a terminal; what the terminal got. Status 0 is wanted. */
static char *on_terminal(const char *args, bool is_stderr)
{
	char *text = malloc(TEXT_MAX);
	struct terminal t;
	struct run run;
	size_t at = 0;
	ssize_t bytes;
	int status;

	assert_non_null(text);
	open_terminal(&t);
	start_on(&run, args, is_stderr ? -1 : t.slave, is_stderr ? t.slave : -1);
	close(t.slave);
	/* EIO when the last one has closed it. */
	while ((bytes = read(t.master, text + at, TEXT_MAX - 1 - at)) > 0)
		at += (size_t)bytes;
	text[at] = '\0';
	close(t.master);
	close(is_stderr ? run.out : run.err);
	assert_int_equal(waitpid(run.pid, &status, 0), run.pid);
	assert_int_equal(status, 0);
	return text;
}

static void test_colour(void **state)
{
	static const struct {
		const char *environment, *options;
		bool colour;
	} cases[] = {
		{ "xterm", "", true },
		{ "xterm", "--no-color", false },
		{ "dumb", "", false },
		{ "xterm", "--format=csv", false },
		{ "xterm", "--format=json", false },
	};

	(void)state;
	unsetenv("NO_COLOR");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char args[256], *text;

		setenv("TERM", cases[i].environment, 1);
		snprintf(args, sizeof(args), SIM "-d 0.1 %s", cases[i].options);
		text = on_terminal(args, false);
		assert_true(strlen(text) > 0);
		if ((strchr(text, '\033') != NULL) != cases[i].colour)
			fail_msg("TERM=%s %s: colour %s: %.300s", cases[i].environment, args,
				 cases[i].colour ? "is missing" : "is there", text);
		free(text);
	}
	setenv("TERM", "xterm", 1);
	setenv("NO_COLOR", "1", 1);
	{
		char *text = on_terminal(SIM "-d 0.1", false);

		assert_null(strchr(text, '\033'));
		free(text);
	}
	unsetenv("NO_COLOR");
	{
		char *text = output_of(SIM "-d 0.1");

		assert_null(strchr(text, '\033'));
		free(text);
	}
}

/* ---- completion ---- */

static void expect_completion(const char *line, const char *words)
{
	char script[1024], *text;
	FILE *pipe;
	size_t bytes;

	snprintf(script, sizeof(script),
		 "bash -c 'source \"$1\"; COMP_LINE=$2; COMP_POINT=${#2}; _csw_sample \"$CSW\"; "
		 "echo "
		 "\"${COMPREPLY[*]}\"' - '%s/tools/completion/csw-sample.bash' '%s' 2>&1",
		 CSW_SOURCE_DIR, line);
	text = calloc(1, TEXT_MAX);
	pipe = popen(script, "re");
	assert_non_null(text);
	assert_non_null(pipe);
	bytes = fread(text, 1, TEXT_MAX - 1, pipe);
	assert_true(bytes > 0);
	assert_int_equal(pclose(pipe), 0);
	text[strcspn(text, "\n")] = '\0';
	if (strcmp(text, words) != 0)
		fail_msg("%s: completed to \"%s\", not \"%s\"", line, text, words);
	free(text);
}

static void test_completion(void **state)
{
	(void)state;
	if (system("command -v bash >/dev/null")) {
		printf("skip: completion: bash is not installed\n");
		skip();
	}
	expect_completion("csw-sample ", "list doctor verify calibrate report slices help");
	expect_completion("csw-sample help ", "list doctor verify calibrate report slices");
	expect_completion("csw-sample --his", "--histogram");
	expect_completion("csw-sample --form", "--format=");
	expect_completion("csw-sample --mixed=l", "last");
	expect_completion("csw-sample --by=c", "comm cgroup cpu");
	expect_completion("csw-sample --by pro", "process");
	expect_completion("csw-sample --format=", "table json csv");
	expect_completion("csw-sample --driver=si", "sim sim:");
	expect_completion("csw-sample --trigger=mem_l", "mem_load:");
	expect_completion("csw-sample --sav=", "auto");
	expect_completion("csw-sample --forc", "--force");
	expect_completion("csw-sample --sort=mig", "migrations");
	expect_completion("csw-sample list ev", "events");
	expect_completion("csw-sample verify --j", "--json");
	expect_completion("csw-sample help re", "report");
	expect_completion("csw-sample report /dev/nul", "/dev/null");
	expect_completion("csw-sample -d ", "");
	expect_completion("csw-sample -e page-faul", "page-faults");
	expect_completion("csw-sample -e cycles,task-c", "cycles,task-clock");
	expect_completion("csw-sample --event=context-sw", "context-switches");
	expect_completion("csw-sample -o /dev/nul", "/dev/null");
	expect_completion("csw-sample -- cat /dev/nul", "/dev/null");
	expect_completion("csw-sample -e m:", "");
}

/* ---- recordings and slices ---- */

static void test_recording_usage(void **state)
{
	(void)state;
	expect("report", 2, NULL, "say which recording");
	expect("report -i /no/such/file", 1, NULL, "/no/such/file: cannot open it");
	expect("report -i /dev/null", 1, NULL, "offset 0");
	expect("report -i - </dev/null", 1, NULL, "offset 0");
	expect("report -i x --trigger=switch", 2, NULL, "leave out --trigger");
	expect("report -i x -C 0", 2, NULL, "leave out -C");
	expect("report -i x --time=1", 2, NULL, "FROM,TO");
	expect("report -i x --time=1,+", 2, NULL, "FROM,TO");
	expect("report -i x --time=2,1.5", 2, NULL, "FROM must not be later than TO");
	expect("report -i x --time=+2,+1", 2, NULL, "FROM must not be later than TO");
	expect("report -i x --time=2,0", 2, NULL, "FROM must not be later than TO");
	expect("report -i x --time=2,2", 1, NULL, "x: cannot open it");
	expect("report -i x --time=+2,1", 1, NULL, "x: cannot open it");
	expect("report -i x --time=2,", 1, NULL, "x: cannot open it");
	expect("report -i x --header", 1, NULL, "x: cannot open it");
	expect("-i x", 2, NULL, "csw-sample report FILE");
	expect("--comm=x", 2, NULL, "csw-sample report FILE");
	expect("--time=1,2", 2, NULL, "csw-sample report FILE");
	expect("report /no/such/file", 1, NULL, "/no/such/file: cannot open it");
	expect("report - </dev/null", 1, NULL, "offset 0");
	expect("report x y", 2, NULL, "y: unexpected; one recording is read, x");
	expect("report -i x y", 2, NULL, "y: unexpected; one recording is read, x");
	expect("report x -- true", 2, NULL, "leave out the program");
	expect("slices /no/such/file", 1, NULL, "/no/such/file: cannot open it");
	expect("slices x --sav=2", 2, NULL, "leave out --sav");
	expect("slices x -- true", 2, NULL, "leave out the program");
	expect("slices --time=1,2", 2, NULL, "--time is of a recording");
	expect("slices --format=table", 2, NULL, "csv or json");
	expect("slices --by=cpu", 2, NULL, "leave out --by");
	expect("slices -i /no/such/file", 1, NULL, "/no/such/file: cannot open it");
}

/* Page faults of "one" (PID 10) and "two" (PID 20), sampled at 1 and 2 s, and no switch. */
static void make_recording(const char *name)
{
	static struct pd w;
	const struct pd_id none = { .pid = 0 };
	char path[128];

	memset(&w, 0, sizeof(w));
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	w.file = fopen(path, "w+e");
	assert_non_null(w.file);
	w.attrs[w.nr_attrs++] = (struct pd_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU,
		.flags = PD_SAMPLE_ID_ALL,
		.name = "page-faults",
		.ids = { 100 },
		.nr_ids = 1,
	};
	pd_head(&w);
	pd_comm(&w, w.attrs, &none, 10, 10, "one");
	pd_comm(&w, w.attrs, &none, 20, 20, "two");
	for (int32_t i = 1; i <= 2; i++) {
		struct pd_sample s = { .id = { .pid = 10 * i,
					       .tid = 10 * i,
					       .time = 1000000000ull * (unsigned)i,
					       .id = 100 },
				       .period = 1 };

		pd_sample(&w, w.attrs, &s);
	}
	pd_round(&w);
	pd_finish(&w);
	assert_int_equal(fclose(w.file), 0);
}

/* What matches nothing is said; the table is there all the same where it is one. */
static void test_recording_of_nobody(void **state)
{
	(void)state;
	make_recording("rec");
	expect("report \"$DIR/rec\"", 0, "one", NULL);
	expect("report \"$DIR/rec\" --comm=one", 0, "one", NULL);
	expect("report \"$DIR/rec\" --comm=three", 0, "[other]",
	       "no thread in the recording is called three");
	expect("report \"$DIR/rec\" -p 30", 0, "[other]",
	       "no thread in the recording is of process 30");
	expect("report \"$DIR/rec\" -p 30,31 -q", 0, "[other]", NULL);
	expect("report \"$DIR/rec\" -p 10 --comm=two", 0, "[other]", "one of those");
	expect("report \"$DIR/rec\" --time=+2,", 1, NULL,
	       "nothing was recorded from 3.000000 on; the recording goes from 1.000000 to "
	       "2.000000");
	expect("slices \"$DIR/rec\"", 0, "time_ns", "there is no slice");
	remove_file("rec");
}

/* One CPU, on which 10 and 20 take turns every second, with what the page faults and the task clock
 * read at each switch. */
static void make_counted_recording(const char *name, const uint64_t faults[4],
				   const uint64_t clock_ns[4])
{
	static const uint64_t configs[] = { PERF_COUNT_SW_CONTEXT_SWITCHES,
					    PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_TASK_CLOCK };
	static const char *const names[] = { "context-switches", "page-faults", "task-clock" };
	static struct pd w;
	char path[128];

	memset(&w, 0, sizeof(w));
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	w.file = fopen(path, "w+e");
	assert_non_null(w.file);
	for (unsigned i = 0; i < 3; i++)
		w.attrs[w.nr_attrs++] = (struct pd_attr){
			.type = PERF_TYPE_SOFTWARE,
			.config = configs[i],
			.period = i == 0,
			.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				       PERF_SAMPLE_CPU | PERF_SAMPLE_READ,
			.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID,
			.flags = PD_SAMPLE_ID_ALL | (i == 0 ? PD_CONTEXT_SWITCH : 0),
			.name = names[i],
			.ids = { 100 + i },
			.nr_ids = 1,
		};
	pd_head(&w);
	for (unsigned i = 0; i < 4; i++) {
		int32_t tid = i % 2 ? 20 : 10, next = 30 - tid;
		struct pd_id id = {
			.pid = tid, .tid = tid, .time = 1000000000ull * (1 + i), .id = 100
		};

		pd_sample(&w, w.attrs,
			  &(struct pd_sample){
				  .id = id,
				  .values = (uint64_t[]){ 1 + i, faults[i], clock_ns[i] },
				  .value_ids = (uint64_t[]){ 100, 101, 102 },
				  .nr = 3,
			  });
		pd_switch(&w, w.attrs, &id, true, false, next, next);
		id.pid = id.tid = next;
		pd_switch(&w, w.attrs, &id, false, false, tid, tid);
	}
	pd_round(&w);
	pd_finish(&w);
	assert_int_equal(fclose(w.file), 0);
}

/* In all formats, and where CSV has no place for it, on standard error at least. */
static void check_broken(const char *why)
{
	char text[512];
	struct run run;
	json_t *report;

	snprintf(text, sizeof(text), "do not trust them: %s\n", why);
	expect("report \"$DIR/rec\"", 3, text, why);
	expect("report \"$DIR/rec\" --format=csv", 3, "kind", why);
	expect("slices \"$DIR/rec\"", 3, "time_ns", text);
	expect("slices \"$DIR/rec\" --format=json", 3, "", text);
	start(&run, "report \"$DIR/rec\" --format=json");
	finish(&run);
	judge(&run, "report as JSON", 3, "", why);
	report = json_loads(run.stdout_text, 0, NULL);
	assert_non_null(report);
	assert_string_equal(json_string_value(json_object_get(report, "broken")), why);
	json_decref(report);
	release(&run);
}

/* Whichever check fails is named. */
static void test_broken_recording(void **state)
{
	static const uint64_t faults[] = { 5, 7, 9, 12 }, back[] = { 5, 7, 6, 12 };
	static const uint64_t s = 1000000000, clocks[] = { 0, s, 2 * s, 3 * s };
	static const uint64_t early[] = { 0, s, s / 2, 3 * s }, fast[] = { 0, s, 2 * s, 9 * s };

	(void)state;
	make_counted_recording("rec", faults, clocks);
	expect("report \"$DIR/rec\"", 0, "conservation page-faults ok", NULL);
	make_counted_recording("rec", back, clocks);
	check_broken("a reading of page-faults was wrong, on CPU 0 it went back from 7 to 6");
	make_counted_recording("rec", faults, early);
	check_broken("a reading of task-clock was wrong, on CPU 0 it went back from 1000000000 to "
		     "500000000");
	make_counted_recording("rec", faults, fast);
	check_broken("a clock shows more time than the CPUs had: task-clock");
	remove_file("rec");
}

/* What --help of a command does not show is refused by it, by name. */
static void test_help_is_what_works(void **state)
{
	static const struct {
		const char *command, *operand, *option, *value;
		bool works;
	} cases[] = {
		{ "report", "/no/file ", "--event", "=cycles", false },
		{ "report", "/no/file ", "--trigger", "=switch", false },
		{ "report", "/no/file ", "--sav", "=2", false },
		{ "report", "/no/file ", "--driver", "=perf", false },
		{ "report", "/no/file ", "--ring-kib", "=64", false },
		{ "report", "/no/file ", "--tid", "=1", false },
		{ "report", "/no/file ", "--cgroup", "=/", false },
		{ "report", "/no/file ", "--cpus", "=0", false },
		{ "report", "/no/file ", "--duration", "=1", false },
		{ "report", "/no/file ", "--delay", "=1", false },
		{ "report", "/no/file ", "--interval", "=100", false },
		{ "report", "/no/file ", "--pid", "=1", true },
		{ "report", "/no/file ", "--comm", "=x", true },
		{ "report", "/no/file ", "--top", "=3", true },
		{ "report", "/no/file ", "--time", "=1,2", true },
		{ "slices", "/no/file ", "--pid", "=1", true },
		{ "slices", "/no/file ", "--comm", "=x", true },
		{ "slices", SIM, "--by", "=cpu", false },
		{ "slices", SIM, "--sort", "=oncpu", false },
		{ "slices", SIM, "--top", "=1", false },
		{ "slices", SIM, "--rate", "", false },
		{ "slices", SIM, "--histogram", "", false },
		{ "slices", SIM, "--raw", "", false },
		{ "slices", SIM, "--verbose", "", false },
		{ "slices", SIM, "--overhead", "", false },
		{ "slices", SIM, "--header", "", false },
		{ "slices", SIM, "--delay", "=1", false },
		{ "slices", SIM, "--interval", "=100", false },
		{ "calibrate", SIM "--trigger=switch -d 0.1 ", "--force", "", false },
		{ "calibrate", SIM "--trigger=switch -d 0.1 ", "--pid", "=1", false },
		{ "calibrate", SIM "--trigger=switch -d 0.1 ", "--quiet", "", true },
		{ "", SIM, "--header", "", false },
		{ "", SIM, "--time", "=1,2", false },
	};
	char args[160], row[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct run run;
		char *help;

		snprintf(args, sizeof(args), "%s --help", cases[i].command);
		help = output_of(args);
		/* "--rate" begins no other option, "--tid" might: with what ends the name */
		snprintf(row, sizeof(row), "%s%c", cases[i].option, *cases[i].value ? '=' : ' ');
		if ((strstr(help, row) != NULL) != cases[i].works)
			fail_msg("%s: wrong about %s", args, cases[i].option);
		free(help);
		snprintf(args, sizeof(args), "%s %s%s%s", cases[i].command, cases[i].operand,
			 cases[i].option, cases[i].value);
		start(&run, args);
		finish(&run);
		if (!cases[i].works)
			assert_true(is_one_complaint(run.stderr_text));
		if (cases[i].works ? run.status == 2 : run.status != 2)
			fail_msg("%s: status %d: %s", args, run.status, run.stderr_text);
		release(&run);
	}
}

static void test_help_of_commands(void **state)
{
	static const char *const commands[] = { "list",      "doctor", "verify",
						"calibrate", "report", "slices" };
	char args[64], *help, *same;

	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		snprintf(args, sizeof(args), "help %s", commands[i]);
		help = output_of(args);
		snprintf(args, sizeof(args), "%s --help", commands[i]);
		same = output_of(args);
		assert_string_equal(help, same);
		snprintf(args, sizeof(args), "Usage: csw-sample %s", commands[i]);
		assert_int_equal(strncmp(help, args, strlen(args)), 0);
		free(help);
		free(same);
	}
	help = output_of("help --help");
	same = output_of("--help");
	assert_string_equal(help, same);
	assert_null(strstr(help, "Mandatory"));
	free(help);
	free(same);
}

static void test_json_of_lists(void **state)
{
	static const char *const commands[] = { "list drivers", "doctor" };
	static const char *const spellings[] = { "--json", "--format=json", "--format json" };
	char args[64];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		for (size_t j = 0; j < 3; j++) {
			struct run run;
			json_t *json;

			snprintf(args, sizeof(args), "%s %s", commands[i], spellings[j]);
			start(&run, args);
			finish(&run);
			json = json_loads(run.stdout_text, 0, NULL);
			if (!json)
				fail_msg("%s: no JSON", args);
			json_decref(json);
			release(&run);
		}
		snprintf(args, sizeof(args), "%s --format=csv", commands[i]);
		expect(args, 2, NULL, "no option");
	}
}

/* The same simulated run: what its slices say is what its table says. */
static void test_slices_are_the_table(void **state)
{
#define RUN " --driver=sim:seed=5,cpus=2,threads=8 -d 0.5 -e page-faults,task-clock"
	char *lines = output_of("slices" RUN), *rest = lines, *line;
	json_t *report = report_of("--format=json" RUN), *row;
	uint64_t ns = 0, faults = 0, table_ns = 0, table_faults = 0, nr = 0;
	size_t i;

	(void)state;
	line = strsep(&rest, "\n");
	assert_string_equal(
		line, "time_ns,cpu,kind,pid,tid,comm,oncpu_ns,end,exact,page-faults,task-clock");
	while ((line = strsep(&rest, "\n")) && *line) {
		unsigned long long part_ns, part;

		for (int comma = 0; comma < 6; comma++)
			line = strchr(line, ',') + 1;
		assert_int_equal(sscanf(line, "%llu,%*[a-z],%*d,%llu", &part_ns, &part), 2);
		ns += part_ns;
		faults += part;
		nr++;
	}
	json_array_foreach(json_object_get(report, "rows"), i, row)
	{
		table_ns += (uint64_t)json_integer_value(json_object_get(row, "oncpu_ns"));
		table_faults += (uint64_t)json_integer_value(json_object_get(
			json_object_get(json_object_get(row, "counts"), "page-faults"), "value"));
	}
	assert_true(nr > 100);
	assert_int_equal(ns, table_ns);
	assert_int_equal(faults, table_faults);
	json_decref(report);
	free(lines);
#undef RUN
}

/* Every option of --help is completed. */
static void test_completion_knows_every_option(void **state)
{
	static const char *const uses[] = { "--help", "report --help", "slices --help" };
	char *help = malloc(TEXT_MAX), *script, path[512];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/tools/completion/csw-sample.bash", CSW_SOURCE_DIR);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	script = read_all(fd);
	close(fd);
	assert_non_null(help);
	*help = '\0';
	for (size_t i = 0; i < sizeof(uses) / sizeof(*uses); i++) {
		char *one = output_of(uses[i]);

		strcat(help, one);
		free(one);
	}
	for (char *c = help; (c = strstr(c, " --")); c++) {
		char option[64];
		size_t length = strspn(c + 1, "-abcdefghijklmnopqrstuvwxyz");

		if (length <= 2)
			continue;
		snprintf(option, sizeof(option), "%.*s", (int)length, c + 1);
		if (!strstr(script, option))
			fail_msg("%s is not completed", option);
	}
	free(help);
	free(script);
}

/* ---- counters that take turns ---- */

#define FIVE " -e instructions,cycles,branches,LLC_MISSES,page-faults --trigger=seg_load -d 2 "

static json_t *count_of(json_t *row, const char *counter)
{
	return json_object_get(json_object_get(row, "counts"), counter);
}

static json_int_t whole(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* A PMU with room for the trigger and two of four events: refused with what helps, or in turns. */
static void test_multiplex(void **state)
{
	json_t *report, *row;
	json_int_t counted = 0;
	size_t i;

	(void)state;
	expect("--driver=sim:pmc=3 " FIVE, 2, NULL,
	       "room for 3 of these 5 hardware events, the trigger among them; ask for fewer, or "
	       "let "
	       "them take turns, with scaled values (--multiplex)");
	expect("--driver=sim:pmc=1 --multiplex " FIVE, 2, NULL, "not even with the trigger alone");
	report = report_of("--driver=sim:pmc=3 --multiplex --format=json " FIVE);
	assert_int_equal(whole(report, "sets"), 2);
	assert_true(json_is_true(json_object_get(report, "estimate")));
	json_array_foreach(json_object_get(report, "rows"), i, row)
	{
		json_t *count = count_of(row, "LLC_MISSES");

		counted += whole(count, "value");
		if (!json_is_null(json_object_get(count, "value")))
			assert_true(whole(count, "scaled") >= whole(count, "value"));
		assert_null(json_object_get(count_of(row, "page-faults"), "scaled"));
	}
	row = json_object_get(json_object_get(report, "totals"), "LLC_MISSES");
	assert_int_equal(counted, whole(row, "counter"));
	assert_true(whole(row, "scaled") > whole(row, "counter"));
	json_decref(report);
	expect("--driver=sim:pmc=3 --multiplex " FIVE, 0, "scaled LLC_MISSES: it ran ", NULL);
}

/* Where all fit it changes nothing and says nothing. */
static void test_multiplex_without_need(void **state)
{
	char *with = output_of("--driver=sim:pmc=5 --multiplex --format=json " FIVE);
	char *without = output_of("--driver=sim --format=json " FIVE);

	(void)state;
	assert_string_equal(with, without);
	free(with);
	free(without);
	expect("report -i x --multiplex", 2, NULL, "leave out --multiplex");
}

/* A slice has a value of the counters that ran in it. */
static void test_slices_of_turns(void **state)
{
	char *lines = output_of("slices --driver=sim:pmc=2 --multiplex --format=json "
				"-e cycles,instructions,page-faults --trigger=seg_load -d 0.2");
	unsigned first = 0, second = 0;

	(void)state;
	for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n")) {
		json_t *slice = json_loads(line, 0, NULL);
		bool one, other;

		assert_non_null(slice);
		one = json_is_integer(count_of(slice, "cycles"));
		other = json_is_integer(count_of(slice, "instructions"));
		assert_true(one != other);
		assert_true(json_is_integer(count_of(slice, "page-faults")));
		first += one;
		second += other;
		json_decref(slice);
	}
	assert_true(first > 100 && second > 100);
	free(lines);
}

/* ---- a trigger for loads that sees stores as well ---- */

#define LOADS " --driver=sim:model=intel --trigger=mem_load:current_task "

static json_int_t accesses_of(const json_t *report, const char *key)
{
	return whole(json_object_get(json_object_get(report, "trigger"), "accesses"), key);
}

/* The simulated switch loads once and stores once, whatever the SAV and in every interval. */
static void test_stores_of_loads(void **state)
{
	char *lines = output_of(LOADS "--sav=5 --format=json -q -d 2 -I 500 -e page-faults");
	unsigned nr = 0;

	(void)state;
	for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n"), nr++) {
		json_t *report = json_loads(line, 0, NULL), *names;

		assert_non_null(report);
		names = json_object_get(report, "counters");
		assert_string_equal(json_string_value(json_array_get(names, 1)),
				    "mem_store:current_task");
		assert_true(accesses_of(report, "stores") > 1000);
		assert_int_equal(accesses_of(report, "stores"), accesses_of(report, "loads"));
		assert_int_equal(accesses_of(report, "accesses"),
				 2 * accesses_of(report, "stores"));
		json_decref(report);
	}
	assert_int_equal(nr, 4);
	free(lines);
	expect(LOADS "--sav=2 -e page-faults -d 1", 0, " accesses, of which ", NULL);
}

/* ---- slices of several threads ---- */

#define TWO_EACH                                                                                   \
	" --driver=sim:seed=6 --trigger=seg_load --sav=2 -d 1 -e "                                 \
	"LLC_MISSES,page-faults,task-clock "

static json_int_t sum_of_kind(const json_t *report, const char *kind, const char *counter)
{
	json_int_t sum = 0;
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(report, "rows"), i, row)
	{
		if (!strcmp(json_string_value(json_object_get(row, "kind")), kind))
			sum += whole(count_of(row, counter), "value");
	}
	return sum;
}

static json_int_t sum_of_all(const json_t *report, const char *counter, const char *key)
{
	json_int_t sum = 0;
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(report, "rows"), i, row) sum +=
		whole(count_of(row, counter), key);
	return sum;
}

/* What was nobody's has owners now, and is marked; all that was known stays. */
static void check_mixed(const char *how, const json_t *plain)
{
	char args[256];
	json_t *report, *total;

	snprintf(args, sizeof(args), TWO_EACH "-q --format=json --mixed=%s", how);
	report = report_of(args);
	total = json_object_get(json_object_get(report, "totals"), "LLC_MISSES");
	assert_string_equal(json_string_value(json_object_get(report, "mixed")), how);
	assert_true(json_is_true(json_object_get(report, "estimate")));
	assert_true(json_number_value(json_object_get(report, "shared_share")) > 0.9);
	assert_true(json_equal(json_object_get(report, "exact_share"),
			       json_object_get(plain, "exact_share")));
	assert_true(json_equal(json_object_get(report, "completeness"),
			       json_object_get(plain, "completeness")));
	assert_int_equal(sum_of_kind(report, "mixed", "LLC_MISSES"), 0);
	assert_int_equal(sum_of_all(report, "LLC_MISSES", "value"), whole(total, "counter"));
	assert_int_equal(sum_of_all(report, "LLC_MISSES", "shared"),
			 sum_of_kind(plain, "mixed", "LLC_MISSES"));
	assert_int_equal(whole(total, "shared"), sum_of_kind(plain, "mixed", "LLC_MISSES"));
	assert_int_equal(sum_of_all(report, "task-clock", "shared"), 0);
	json_decref(report);
}

static void test_mixed(void **state)
{
	json_t *plain = report_of(TWO_EACH "-q --format=json");
	char *lines;
	unsigned shared = 0;

	(void)state;
	assert_true(sum_of_kind(plain, "mixed", "LLC_MISSES") > 0);
	check_mixed("last", plain);
	check_mixed("split", plain);
	json_decref(plain);
	expect(TWO_EACH "-q --mixed=split", 0, "shared by their time on the CPU (--mixed=split)",
	       NULL);
	expect(TWO_EACH "-q --mixed=last", 0, "\nshared LLC_MISSES: ", NULL);
	expect(TWO_EACH "--mixed=", 2, NULL, "row, last or split");
	expect(TWO_EACH "--mixed=half", 2, NULL, "row, last or split");
	expect(TWO_EACH "-o /dev/null --mixed=split", 0, NULL, "only estimated, or in [mixed]");
	/* Slice by slice: as many lines have counts as threads ran. */
	lines = output_of("slices" TWO_EACH " --format=json --mixed=split");
	for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n")) {
		json_t *slice = json_loads(line, 0, NULL);

		assert_non_null(slice);
		/* Of a clock what no thread is known to have had is still nobody's. */
		if (!strcmp(json_string_value(json_object_get(slice, "kind")), "mixed"))
			assert_int_equal(whole(count_of(slice, "LLC_MISSES"), "value") +
						 json_integer_value(count_of(slice, "LLC_MISSES")),
					 0);
		shared += !json_is_true(json_object_get(slice, "exact")) &&
			  whole(slice, "oncpu_ns") > 0;
		json_decref(slice);
	}
	assert_true(shared > 1000);
	free(lines);
}

/* By CPU all of a slice is that CPU's, and without a slice to share nothing is marked. */
static void test_mixed_without_need(void **state)
{
	json_t *report = report_of(TWO_EACH "-q --format=json --mixed=split --by=cpu"), *row;
	size_t i;

	(void)state;
	json_array_foreach(json_object_get(report, "rows"), i, row)
		assert_null(json_object_get(count_of(row, "LLC_MISSES"), "shared"));
	json_decref(report);
	report = report_of("--driver=sim --trigger=seg_load --format=json --mixed=last -d 1");
	assert_true(json_is_false(json_object_get(report, "estimate")));
	assert_true(json_number_value(json_object_get(report, "shared_share")) == 0);
	json_decref(report);
}

/* ---- the manual ---- */

/* The part of the manual between two headings; to be freed. */
static char *manual_part(const char *from, const char *to)
{
	char path[512], *page, *begin, *end, *part;
	int fd;

	snprintf(path, sizeof(path), "%s/man/csw-sample.1", CSW_SOURCE_DIR);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	page = read_all(fd);
	close(fd);
	begin = strstr(page, from);
	end = begin ? strstr(begin, to) : NULL;
	assert_non_null(end);
	part = strndup(begin, (size_t)(end - begin));
	assert_non_null(part);
	free(page);
	return part;
}

/* As a word of its own at least once. */
static bool has_word(const char *text, const char *word)
{
	static const char within[] = "abcdefghijklmnopqrstuvwxyz_:";
	size_t length = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += length) {
		/* \fBname\fR: what stands before it is the font */
		bool begins = at == text || !strchr(within, at[-1]);

		if (begins && (!at[length] || !strchr(within, at[length])))
			return true;
	}
	return false;
}

static void assert_columns(const char *manual, char *header)
{
	for (char *rest = header, *name; (name = strsep(&rest, ","));) {
		char column[64];

		snprintf(column, sizeof(column), "%s", name);
		if (!strncmp(name, "page-faults", 11))
			snprintf(column, sizeof(column), "NAME%s", name + 11);
		if (!has_word(manual, column))
			fail_msg("the manual's FORMATS lack column %s", column);
	}
}

static void assert_keys(const char *manual, const json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		if (!strncmp(key, "page-faults", 11))
			continue;
		if (!has_word(manual, key))
			fail_msg("the manual's FORMATS lack key %s", key);
		assert_keys(manual, value);
	}
}

/* Every column and every key that there is. */
static void test_manual_knows_every_column(void **state)
{
	char *manual = manual_part(".SH FORMATS", ".SH THE SIMULATED"), *text;
	json_t *report;

	(void)state;
	text = output_of(SIM "-d 0.2 -e page-faults --rate --format=csv");
	text[strcspn(text, "\n")] = '\0';
	assert_columns(manual, text);
	free(text);
	text = output_of("slices " SIM "-d 0.2 -e page-faults");
	text[strcspn(text, "\n")] = '\0';
	assert_columns(manual, text);
	free(text);
	report = report_of(SIM "-d 0.2 -e page-faults --rate --histogram --format=json");
	assert_keys(manual, report);
	assert_keys(manual, json_array_get(json_object_get(report, "rows"), 0));
	json_decref(report);
	report = report_of("list drivers --json");
	assert_keys(manual, report);
	assert_keys(manual, json_array_get(json_object_get(report, "items"), 0));
	json_decref(report);
	free(manual);
}

/* The simulated machine itself says which options it has. */
static void test_manual_knows_every_option_of_the_simulation(void **state)
{
	static const char list[] = "the options are: ";
	char path[512], *page, *names, *name;
	struct run run;
	size_t nr = 0;
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/man/csw-sample.1", CSW_SOURCE_DIR);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	page = read_all(fd);
	close(fd);
	start(&run, "--driver=sim:nonsense=1");
	finish(&run);
	names = strstr(run.stderr_text, list);
	assert_non_null(names);
	names += strlen(list);
	names[strcspn(names, "\n")] = '\0';
	while ((name = strsep(&names, ","))) {
		char row[64];

		snprintf(row, sizeof(row), "\n%s\t", name + strspn(name, " "));
		if (!strstr(page, row))
			fail_msg("the manual has no row for the option %s", name);
		nr++;
	}
	assert_true(nr > 5);
	free(page);
	release(&run);
}

/* ---- on the real kernel: programs ---- */

#define PERF_LOUD "--driver=perf -e page-faults "
/* How much of a short run is exact is up to the machine: no hints, where they are not the point. */
#define PERF PERF_LOUD "--quiet "

static void test_status_of_the_program(void **state)
{
	(void)state;
	expect(PERF "-o /dev/null -- sh -c 'exit 7'", 7, NULL, NULL);
	expect(PERF "-o /dev/null -- sh -c 'kill -TERM $$'", 143, NULL, NULL);
	expect(PERF "-- /no/such/program", 127, NULL, "cannot run /no/such/program");
	expect(PERF "-- /dev/null", 126, NULL, "cannot run /dev/null");
	expect("-e nonsense -- touch \"$DIR/ran\"", 2, NULL, "nonsense");
	expect(PERF "--sort=nonsense -- touch \"$DIR/ran\"", 2, NULL, "nonsense");
	expect(PERF "-o /no/such/folder -- touch \"$DIR/ran\"", 125, NULL, "No such file");
	expect(PERF "-- touch \"$DIR/ran\" >&-", 125, NULL, "it is closed");
	assert_int_equal(count_files("ran"), 0);
	expect(PERF "-- true >/dev/full", 125, NULL, "No space left");
	expect(PERF "-d 0.2 -o /dev/null -- sleep 5", 143, NULL,
	       "0.2 s are over and sleep still runs: sent it SIGTERM");
	expect(PERF "-- sh -c 'echo hello'", 0, "hello\n", NULL);
}

/* The status and the one line are the same each time, whoever comes first. */
static void test_exec_that_fails(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		expect(PERF "-- /no/such/program", 127, NULL, "cannot run /no/such/program");
		expect(PERF "-- /", 126, NULL, "cannot run /");
	}
}

/* What csw-sample does with signals is nothing that its program inherits. */
static void test_signals_of_the_program(void **state)
{
	expect(PERF "-o /dev/null -- sh -c 'kill -PIPE $$'", 128 + SIGPIPE, NULL, NULL);
	expect(PERF "-o /dev/null -- sh -c 'kill -XFSZ $$'", 128 + SIGXFSZ, NULL, NULL);
	expect(PERF "-o /dev/null -- sh -c 'kill -HUP $$'", 128 + SIGHUP, NULL, NULL);
	expect(PERF "-- grep -E '^Sig(Blk|Ign)' /proc/self/status", 0,
	       "SigBlk:\t0000000000000000\n", NULL);
	(void)state;
}

static void test_default_run_of_a_program(void **state)
{
	json_t *report = report_of("-q --format=json --driver=auto -- true"), *counters;

	(void)state;
	counters = json_object_get(report, "counters");
	assert_string_equal(json_string_value(json_array_get(counters, 0)), "page-faults");
	assert_string_equal(json_string_value(json_array_get(counters, 1)), "task-clock");
	json_decref(report);
	expect(PERF "-d 0", 0, "page-faults", NULL);
}

/* ---- on the real kernel: scope ---- */

/* A zombie, whose new parent takes its time, has ended. */
static bool has_ended(pid_t pid)
{
	char path[64], state = 'X';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return true;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 'X';
	fclose(file);
	return state == 'Z' || state == 'X';
}

static pid_t start_sleeper(int ms)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sleep_ms(ms);
		_exit(0);
	}
	return pid;
}

static void test_ids_that_have_gone(void **state)
{
	pid_t pid = start_sleeper(0);
	char args[128];

	(void)state;
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	snprintf(args, sizeof(args), PERF "-p %d", (int)pid);
	expect(args, 1, NULL, "there is no such process");
	snprintf(args, sizeof(args), PERF "-t %d", (int)pid);
	expect(args, 1, NULL, "there is no such thread");
	snprintf(args, sizeof(args), PERF "-p %d,%d -- true", (int)getpid(), (int)pid);
	expect(args, 125, NULL, "there is no such process");
}

/* Its parent, this test, has not waited for it: it exists, and will never run. */
static void test_zombie(void **state)
{
	pid_t pid = start_sleeper(0);
	siginfo_t info;
	char args[128], said[64];

	(void)state;
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	snprintf(args, sizeof(args), PERF "-d 5 -p %d", (int)pid);
	snprintf(said, sizeof(said), "-p %d: this process has ended", (int)pid);
	expect(args, 1, NULL, said);
	snprintf(args, sizeof(args), PERF "-d 5 -t %d", (int)pid);
	expect(args, 1, NULL, "this thread has ended");
	snprintf(args, sizeof(args), "slices -d 5 -p %d", (int)pid);
	expect(args, 1, NULL, said);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void *end_first_thread(void *fds)
{
	char byte;

	return read(((int *)fds)[0], &byte, 1) < 0 ? fds : NULL;
}

/* The first thread has ended and shows as a zombie; the process has not. */
static void test_process_without_its_first_thread(void **state)
{
	int fds[2];
	char args[128];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		pthread_t thread;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[1]);
		if (pthread_create(&thread, NULL, end_first_thread, fds))
			_exit(1);
		pthread_exit(NULL);
	}
	for (int ms = 0; !has_ended(pid) && ms < PATIENCE_MS; ms += 10)
		sleep_ms(10);
	snprintf(args, sizeof(args), PERF "-d 0.2 -p %d", (int)pid);
	expect(args, 0, "[other]", NULL);
	snprintf(args, sizeof(args), PERF "-d 5 -t %d", (int)pid);
	expect(args, 1, NULL, "this thread has ended");
	close(fds[1]);
	close(fds[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* It was there when it was looked for, and was not when counting began. */
static void test_process_that_ends_before(void **state)
{
	pid_t pid = start_sleeper(PATIENCE_MS);
	char args[128], said[64];
	struct run run;

	(void)state;
	snprintf(args, sizeof(args), PERF_LOUD "--delay=1000 -d 0.2 -p %d", (int)pid);
	snprintf(said, sizeof(said), "process %d has ended before counting began", (int)pid);
	start(&run, args);
	sleep_ms(400);
	kill(pid, SIGKILL);
	finish(&run);
	judge(&run, args, 0, "[other]", said);
	release(&run);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void *tell_tid(void *fds)
{
	pid_t tid = gettid();
	char byte;

	if (write(((int *)fds)[1], &tid, sizeof(tid)) == sizeof(tid) &&
	    read(((int *)fds)[2], &byte, 1) < 0)
		return fds;
	return NULL;
}

static void test_a_thread_is_no_process(void **state)
{
	int there[2], back[2], fds[3];
	pthread_t thread;
	char args[128];
	pid_t tid;

	(void)state;
	assert_int_equal(pipe2(there, O_CLOEXEC), 0);
	assert_int_equal(pipe2(back, O_CLOEXEC), 0);
	fds[1] = there[1];
	fds[2] = back[0];
	assert_int_equal(pthread_create(&thread, NULL, tell_tid, fds), 0);
	assert_int_equal(read(there[0], &tid, sizeof(tid)), sizeof(tid));
	snprintf(args, sizeof(args), PERF "-d 0.1 -p %d", (int)tid);
	expect(args, 1, NULL, "this is a thread of process");
	snprintf(args, sizeof(args), PERF_LOUD "-d 0.1 -t %d", (int)tid);
	expect(args, 0, "[other]", "did not run meanwhile");
	close(back[1]);
	pthread_join(thread, NULL);
	close(there[0]);
	close(there[1]);
	close(back[0]);
}

static int64_t wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / NS_PER_MS;
}

/* Without -d it ends with what it watches, and not before; a zombie has ended. */
static void test_ends_with_what_it_watches(void **state)
{
	static const char *const options[] = { "-p", "-t" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		pid_t soon = start_sleeper(100), later = start_sleeper(800);
		int64_t begin = wall_ms();
		char args[128];

		snprintf(args, sizeof(args), PERF "--format=json %s %d,%d", options[i], (int)soon,
			 (int)later);
		expect(args, 0, "\"rows\"", NULL);
		assert_true(wall_ms() - begin >= 600);
		assert_true(wall_ms() - begin < PATIENCE_MS);
		assert_int_equal(waitpid(soon, NULL, 0), soon);
		assert_int_equal(waitpid(later, NULL, 0), later);
	}
}

/* Runs on a CPU all the time, until it is killed. */
static pid_t start_spinner(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
	return pid;
}

static void test_scope_selects_rows(void **state)
{
	static const char *const options[] = { "--pid=", "--tid=", "-p1,", "-t1," };
	pid_t pid = start_spinner();

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		size_t j, own = 0, others = 0;
		json_t *report, *row;
		char args[128];

		snprintf(args, sizeof(args), "-q -e task-clock -d 0.3 --format=json %s%d",
			 options[i], (int)pid);
		report = report_of(args);
		json_array_foreach(json_object_get(report, "rows"), j, row)
		{
			others += is_kind(row, "other");
			if (!is_kind(row, "thread") || integer(row, "pid") == 1)
				continue;
			assert_int_equal(integer(row, "tid"), pid);
			assert_true(value_of(row, "task-clock") > 0);
			own++;
		}
		assert_int_equal(own, 1);
		assert_int_equal(others, 1);
		json_decref(report);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_cpus(void **state)
{
	json_t *report = report_of(PERF "-C 0 --by=cpu -d 0.2 --format=json"), *row;
	size_t i;

	(void)state;
	json_array_foreach(json_object_get(report, "rows"), i, row)
	{
		if (is_kind(row, "cpu"))
			assert_int_equal(integer(row, "cpu"), 0);
	}
	assert_int_equal(total_of(report, "page-faults", "difference"), 0);
	json_decref(report);
	expect(PERF "-C 65535 -d 1000", 1, NULL, "CPU 65535 does not exist");
	expect(PERF "-C 65535 -- touch \"$DIR/ran\"", 125, NULL, "CPU 65535 does not exist");
	assert_int_equal(count_files("ran"), 0);
}

/* What a thread is called, and whose child it is, may be told on a CPU that is not counted. */
static void test_born_on_another_cpu(void **state)
{
	json_t *report, *row;
	int64_t sleeps = 0, shells = 0;
	size_t i;

	(void)state;
	if (system("taskset -c 0 true && taskset -c 1 true")) {
		printf("skip: CPUs 0 and 1 are not both there\n");
		skip();
	}
	report = report_of("-q -C 1 -e task-clock --format=json -- taskset -c 0 "
			   "sh -c 'taskset -c 1 sleep 0.05; taskset -c 1 sleep 0.05; "
			   "taskset -c 0 sh -c \"taskset -pc 1 \\$\\$ >&2; i=0; while [ \\$i -lt "
			   "20000 ]; do i=\\$((i+1)); done\"' 2>\"$DIR/moved\"");
	json_array_foreach(json_object_get(report, "rows"), i, row)
	{
		const char *comm = json_string_value(json_object_get(row, "comm"));

		if (!is_kind(row, "thread"))
			continue;
		sleeps += !strcmp(comm, "sleep");
		shells += !strcmp(comm, "sh") && value_of(row, "task-clock") > 1000000;
	}
	assert_int_equal(sleeps, 2);
	assert_true(shells >= 1);
	remove_file("moved");
	json_decref(report);
}

static void test_cgroups(void **state)
{
	(void)state;
	if (system("grep -q ' cgroup2 ' /proc/mounts")) {
		printf("skip: cgroups: no cgroup v2 hierarchy is mounted\n");
		skip();
	}
	expect(PERF "--cgroup=/no/such/group -d 1000", 2, NULL, "/no/such/group");
	expect(PERF "--cgroup=/ -d 0.1", 0, "page-faults", NULL);
	expect(PERF "--by=cgroup -d 0.1 --format=json", 0, "\"cgroup\"", NULL);
}

/* A cgroup below the hierarchy's mount, to whose processes $GROUP/cgroup.procs leads; false: none
 * can be made here. */
static bool make_cgroup(void)
{
	char command[256], path[512];
	FILE *pipe = popen("awk '$3 == \"cgroup2\" { print $2; exit }' /proc/mounts", "re");
	bool found = pipe && fscanf(pipe, "%255s", command) == 1;

	if (pipe)
		pclose(pipe);
	if (!found)
		return false;
	snprintf(path, sizeof(path), "%s/csw-test-%d", command, (int)getpid());
	if (mkdir(path, 0755) < 0)
		return false;
	setenv("GROUP", path, 1);
	return true;
}

#define MOVE "echo 0 >\"$GROUP/cgroup.procs\"; "

/* The rows of one cgroup are one row, and they all add up: else the status is not 0. */
static void assert_moved(const char *args)
{
	json_t *report = report_of(args), *row;
	size_t i, here = 0;

	json_array_foreach(json_object_get(report, "rows"), i, row)
	{
		const char *path = json_string_value(json_object_get(row, "cgroup"));

		here += path && strstr(path, "/csw-test-") != NULL;
	}
	assert_int_equal(here, 1);
	assert_int_equal(total_of(report, "page-faults", "difference"), 0);
	json_decref(report);
}

/* Its row goes on in another one, and nobody else in scope has a row between the two. */
static void test_a_program_changes_its_cgroup(void **state)
{
	const char *const programs[] = {
		MOVE "exec true",
		MOVE "true; true",
		"(" MOVE "true); true",
		"true; " MOVE "(true; exec true) & wait",
	};
	pid_t pid;
	char args[256];

	(void)state;
	if (!make_cgroup()) {
		printf("skip: a program changes its cgroup: none can be made here\n");
		skip();
	}
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		snprintf(args, sizeof(args), PERF "--by=cgroup --format=json -- sh -c '%s'",
			 programs[i]);
		assert_moved(args);
	}
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		execl("/bin/sh", "sh", "-c", "sleep 0.5; " MOVE "exec sleep 0.1", NULL);
		_exit(99);
	}
	snprintf(args, sizeof(args), PERF "--by=cgroup --format=json -p %d", (int)pid);
	assert_moved(args);
	waitpid(pid, NULL, 0);
	assert_int_equal(rmdir(getenv("GROUP")), 0);
}

/* ---- on the real kernel: time and signals ---- */

/* Its handlers are installed: from now on no signal is lost, nor kills it. */
static void await_handlers(const struct run *run)
{
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)run->pid);
	for (int i = 0; i < PATIENCE_MS / 10; i++, sleep_ms(10)) {
		FILE *file = fopen(path, "re");
		unsigned long long caught = 0;

		assert_non_null(file);
		while (fgets(line, sizeof(line), file))
			sscanf(line, "SigCgt: %llx", &caught);
		fclose(file);
		if (caught >> (SIGUSR1 - 1) & 1)
			return;
	}
	fail_msg("csw-sample never caught SIGUSR1");
}

static void test_signals_end_the_run(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct run run;

		start(&run, "-q --driver=perf --format=json"); /* nothing else says when to end */
		await_handlers(&run);
		sleep_ms(300);
		kill(run.pid, signals[i]);
		finish(&run);
		judge(&run, "a run until a signal", 0, "\"rows\"", NULL);
		release(&run);
	}
}

static void test_second_interrupt(void **state)
{
	struct run run;

	(void)state;
	/* The program does not hear of it: csw-sample waits, until it is told again. */
	start(&run,
	      PERF "-o \"$DIR/killed\" -- sh -c 'trap : INT TERM; sleep 1; sleep 1; sleep 1'");
	await_handlers(&run);
	sleep_ms(300);
	kill(run.pid, SIGINT);
	sleep_ms(300);
	kill(run.pid, SIGINT);
	finish(&run);
	judge(&run, "SIGINT twice", 1000 + SIGINT, NULL, NULL);
	release(&run);
	assert_int_equal(count_files("killed"), 0);
}

/* The id that a program has written; 0: not yet. */
static pid_t pid_in(const char *name)
{
	char *text = file_text(name);
	pid_t pid = text && strchr(text, '\n') ? (pid_t)strtol(text, NULL, 10) : 0;

	free(text);
	return pid;
}

static pid_t await_pid(const char *name)
{
	for (int i = 0; i < PATIENCE_MS / 10; i++, sleep_ms(10)) {
		if (pid_in(name))
			return pid_in(name);
	}
	fail_msg("the program never said its id");
	return 0;
}

/* csw-sample alone is told to end, at once: its program must not stay. */
static void test_no_program_is_left(void **state)
{
	static const int signals[] = { SIGINT, SIGHUP, SIGTERM, SIGQUIT };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct run run;
		pid_t pid;

		remove_file("pid");
		start(&run, PERF "-o \"$DIR/killed\" -- sh -c 'trap \"\" INT; "
				 "echo $$ >\"$DIR/pid\"; exec sleep 60'");
		pid = await_pid("pid");
		sleep_ms(200);
		kill(pid, SIGSTOP); /* or the first one would end it */
		kill(run.pid, SIGINT);
		sleep_ms(200);
		kill(run.pid, signals[i]);
		assert_ends_within(&run, PATIENCE_MS, "two signals");
		finish(&run);
		judge(&run, "two signals", 1000 + signals[i], NULL, NULL);
		release(&run);
		for (int ms = 0; !has_ended(pid) && ms < 2000; ms += 10)
			sleep_ms(10);
		if (!has_ended(pid)) {
			kill(pid, SIGKILL);
			fail_msg("signal %d left the program running", signals[i]);
		}
		assert_int_equal(count_files("killed") + count_files(".csw"), 0);
	}
}

#define STUBBORN "sh -c 'trap \"\" TERM; echo $$ >\"$DIR/pid\"; exec sleep 60'"

/* A program that does not want to end is not waited for without bound. */
static void test_program_that_ignores_sigterm(void **state)
{
	int64_t begin = wall_ms();
	struct run run;

	(void)state;
	start(&run, PERF "-d 0.3 -o \"$DIR/stubborn\" -- " STUBBORN);
	assert_ends_within(&run, PATIENCE_MS, "a program that ignores SIGTERM");
	finish(&run);
	assert_int_equal(run.status, 128 + SIGKILL);
	assert_string_equal(
		run.stderr_text,
		"csw-sample: 0.3 s are over and sh still runs: sent it SIGTERM\n"
		"csw-sample: sh has not ended within 5 s of SIGTERM: sent it SIGKILL\n");
	assert_true(wall_ms() - begin >= 5000);
	release(&run);
	assert_int_equal(count_files("stubborn"), 1);
	remove_file("stubborn");
}

/* Nor does csw-sample wait for it when it is itself told to end. */
static void test_sigterm_while_the_program_is_waited_for(void **state)
{
	struct run run;
	pid_t pid;

	(void)state;
	remove_file("pid");
	start(&run, PERF "-d 0.3 -o \"$DIR/stubborn\" -- " STUBBORN);
	pid = await_pid("pid");
	sleep_ms(1000);
	kill(run.pid, SIGTERM);
	assert_ends_within(&run, 2000, "SIGTERM while the program is waited for");
	finish(&run);
	judge(&run, "SIGTERM", 1000 + SIGTERM, NULL, "0.3 s are over and sh still runs");
	release(&run);
	kill(pid, SIGKILL);
	assert_int_equal(count_files("stubborn") + count_files(".csw"), 0);
}

/* As with nohup(1), and in a shell's background jobs. */
static void test_ignored_signals_stay_ignored(void **state)
{
	static const int signals[] = { SIGINT, SIGHUP, SIGQUIT };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		int64_t begin = wall_ms();
		struct run run;

		signal(signals[i], SIG_IGN);
		start(&run, PERF "-d 1 --format=json");
		signal(signals[i], SIG_DFL);
		await_handlers(&run);
		kill(run.pid, signals[i]);
		sleep_ms(200);
		kill(run.pid, signals[i]);
		finish(&run);
		judge(&run, "an ignored signal", 0, "\"rows\"", NULL);
		assert_true(wall_ms() - begin >= 1000);
		release(&run);
	}
}

static void expect_no_hint_of_sleep(const char *args)
{
	struct run run;

	start(&run, args);
	finish(&run);
	assert_int_equal(run.status, 0);
	if (strstr(run.stderr_text, "meanwhile"))
		fail_msg("%s: %s", args, run.stderr_text);
	release(&run);
}

/* Nobody of those that were asked for ran: one line says it, and the status is that of success. */
static void test_who_did_not_run(void **state)
{
	pid_t pid = start_sleeper(PATIENCE_MS), busy = start_spinner();
	char args[128], said[64];

	(void)state;
	sleep_ms(50);
	snprintf(args, sizeof(args), PERF_LOUD "-d 0.2 -p %d", (int)pid);
	snprintf(said, sizeof(said), "process %d did not run meanwhile", (int)pid);
	expect(args, 0, "[other]", said);
	snprintf(args, sizeof(args), PERF_LOUD "-d 0.2 --by=cpu -p %d", (int)pid);
	expect(args, 0, "page-faults", said);
	snprintf(args, sizeof(args), PERF "-d 0.2 -p %d", (int)pid);
	expect(args, 0, "[other]", NULL);
	snprintf(args, sizeof(args), PERF_LOUD "-d 0.2 -p %d,%d", (int)pid, (int)busy);
	expect_no_hint_of_sleep(args);
	snprintf(args, sizeof(args), PERF_LOUD "-d 0.2 -I 50 -t %d", (int)busy);
	expect_no_hint_of_sleep(args);
	kill(pid, SIGKILL);
	kill(busy, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(waitpid(busy, NULL, 0), busy);
}

/* Every line of it has as many columns as the first, and none is cut off. */
static void assert_whole_lines(char *text)
{
	size_t columns = 0;

	for (char *line = text, *end; *line; line = end + 1) {
		size_t commas = 0;

		end = strchr(line, '\n');
		if (!end)
			fail_msg("the last line is not whole: %s", line);
		for (const char *c = line; c < end; c++)
			commas += *c == ',';
		columns = columns ? columns : commas;
		assert_int_equal(commas, columns);
	}
	assert_true(columns > 8);
	assert_true(count_lines(text) > 2);
}

static void test_sigusr1_shows_the_table(void **state)
{
	json_t *reports, *first, *second;
	struct run run;

	(void)state;
	start(&run, PERF "-d 1.2 --format=json");
	await_handlers(&run);
	sleep_ms(500);
	kill(run.pid, SIGUSR1);
	finish(&run);
	judge(&run, "SIGUSR1", 0, "\"rows\"", NULL);
	reports = parse_sequence(run.stdout_text);
	assert_int_equal(json_array_size(reports), 2);
	first = json_array_get(reports, 0);
	second = json_array_get(reports, 1);
	assert_true(integer(first, "duration_ns") < integer(second, "duration_ns"));
	assert_true(total_of(first, "page-faults", "counter") <=
		    total_of(second, "page-faults", "counter"));
	assert_int_equal(total_of(first, "page-faults", "difference"), 0);
	assert_int_equal(total_of(second, "page-faults", "difference"), 0);
	json_decref(reports);
	release(&run);
}

/* As the intervals of -I: one header, and in every line the time. */
static void test_sigusr1_as_csv(void **state)
{
	struct run run;

	(void)state;
	start(&run, PERF "-d 1.2 --format=csv");
	await_handlers(&run);
	sleep_ms(500);
	kill(run.pid, SIGUSR1);
	finish(&run);
	judge(&run, "SIGUSR1 as CSV", 0, "time,kind,pid", NULL);
	assert_int_equal(count_parts(run.stdout_text, "kind,pid"), 1);
	assert_whole_lines(run.stdout_text);
	release(&run);
	start(&run, PERF "-d 0.2 --format=csv");
	finish(&run);
	assert_int_equal(strncmp(run.stdout_text, "kind,pid", 8), 0);
	release(&run);
}

#define HINT_RUNS 20

/* Says it among the lines on stderr: on a busy machine a hint may come before another, or in its
 * place, so that it takes some runs. */
static void expect_hint(const char *args, const char *out, const char *part)
{
	struct run run;
	bool said = false;

	for (int i = 0; i < HINT_RUNS && !said; i++) {
		start(&run, args);
		finish(&run);
		assert_int_equal(run.status, 0);
		assert_non_null(strstr(run.stdout_text, out));
		said = strstr(run.stderr_text, part) != NULL;
		release(&run);
	}
	if (!said)
		fail_msg("%s: never said \"%s\"", args, part);
}

static void test_hint_of_context_switches(void **state)
{
	(void)state;
	expect_hint("--driver=perf -e page-faults,context-switches -- true", "context-switches",
		    "SLICES, VOL and PRE");
	expect("--driver=perf -q -e cs -- true", 0, "cs", NULL);
}

/* Where libpfm4 knows the kernel's tracepoints as well, which it does only on a real machine. */
static void test_names_of_tracepoints(void **state)
{
	char *list;

	(void)state;
	expect("--driver=perf -q -e sched:sched_swich -- true", 2, NULL,
	       "there is no tracepoint sched:sched_swich; nearest: sched:sched_switch");
	expect("--driver=perf -q -e sched_switch -- true", 2, NULL, "nearest: sched:sched_switch");
	expect("--driver=perf -q -e sched: -- true", 2, NULL, "its name is missing");
	list = output_of("list events sched_switch");
	assert_non_null(strstr(list, "sched:sched_switch"));
	assert_null(strstr(list, "perf::"));
	free(list);
}

/* Nothing was lost: it is the trigger that proves nothing. */
static void test_trigger_that_is_no_switch(void **state)
{
	(void)state;
	expect_hint("--driver=perf --trigger=sched:sched_switch -- true", "sched:sched_switch",
		    "this trigger is not known to come once at every switch");
}

/* A user to whom /proc hides the others' processes can count all the same, and their names are said
 * to be unknown. */
static void test_hidden_processes(void **state)
{
#define NOBODY                                                                                     \
	"setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps +perfmon "                  \
	"--ambient-caps +perfmon "
	static const char *const modes[] = { "1", "2" };
	char command[512];

	(void)state;
	if (system("test $(id -u) = 0 && unshare -m true 2>/dev/null && " NOBODY
		   "\"$CSW\" --version >/dev/null 2>&1")) {
		printf("skip: hidden processes: root, unshare(1) and setpriv(1) are needed, and a "
		       "build that others can run\n");
		skip();
	}
	for (size_t i = 0; i < 2; i++) {
		snprintf(command, sizeof(command),
			 "unshare -m --propagation private sh -c 'mount -t proc -o hidepid=%s proc "
			 "/proc && exec " NOBODY "\"$CSW\" -q --driver=perf -d 0.3' "
			 "| grep -q '(not known)'",
			 modes[i]);
		if (system(command))
			fail_msg("hidepid=%s: it does not count, or the names are not said to be "
				 "unknown",
				 modes[i]);
	}
#undef NOBODY
}

/* Outside threads' switches have records, only no numbers: nothing is missing, and no other trigger
 * would tell more. */
static void test_threads_outside_the_namespace(void **state)
{
#define IN_NAMESPACE "exec unshare -p -f --mount-proc \"$CSW\""
	pid_t busy;
	struct run run;

	(void)state;
	if (system("unshare -p -f --mount-proc true 2>/dev/null")) {
		printf("skip: a PID namespace: unshare(1) with the right to make one is needed\n");
		skip();
	}
	busy = start_spinner();
	start_script(&run, IN_NAMESPACE " --driver=perf -e page-faults -d 0.5", -1, -1);
	finish(&run);
	kill(busy, SIGKILL);
	assert_int_equal(waitpid(busy, NULL, 0), busy);
	judge(&run, "in a PID namespace", 0, "[unknown] outside",
	      "threads outside of this PID namespace have no number here");
	assert_null(strstr(run.stderr_text, "no record"));
	release(&run);
	start_script(&run, IN_NAMESPACE " doctor", -1, -1);
	finish(&run);
	judge(&run, "doctor in a PID namespace", 0, "threads outside have no number here", NULL);
	assert_null(strstr(run.stdout_text, "the idle task there leaves no record at all"));
	release(&run);
}

static int bpf_error; /* what bpf(2) comes to */

static void forbid_bpf(void)
{
	struct sock_filter insns[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)bpf_error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(insns) / sizeof(*insns), .filter = insns };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(98);
}

/* One line of tid_change's refusal. */
static void check_refusal(const char *script, const char *part, const char *not_part)
{
	struct run run;

	start_script(&run, script, -1, -1);
	finish(&run);
	judge(&run, script, 1, NULL, part);
	if (strstr(run.stderr_text, not_part))
		fail_msg("%s: \"%s\" is not the cause: %s", script, not_part, run.stderr_text);
	release(&run);
}

#define BY_STORES "--trigger=tid_change -e page-faults -q -d 0.1"

static bool can_watch(void)
{
	if (system("\"$CSW\" " BY_STORES " -o /dev/null 2>/dev/null") == 0)
		return true;
	printf("skip: who forbids bpf(2): tid_change does not work here anyway, see csw-sample "
	       "list triggers\n");
	return false;
}

/* A container's filter, though the capabilities are there. */
static void test_seccomp_forbids_bpf(void **state)
{
	struct run run;

	(void)state;
	if (!can_watch())
		skip();
	in_child = forbid_bpf;
	bpf_error = EPERM;
	check_refusal("exec \"$CSW\" " BY_STORES, "a seccomp filter is in force", "sudo");
	start_script(&run, "exec \"$CSW\" doctor", -1, -1);
	finish(&run);
	judge(&run, "doctor without bpf(2)", 0, "a seccomp filter is in force", NULL);
	release(&run);
	bpf_error = ENOSYS;
	check_refusal("exec \"$CSW\" " BY_STORES, "the seccomp filter in force here hides it",
		      "sudo");
	in_child = NULL;
}

static void test_missing_capabilities_forbid_bpf(void **state)
{
	(void)state;
	if (!can_watch())
		skip();
	if (system("setpriv --bounding-set -bpf,-sys_admin true 2>/dev/null")) {
		printf("skip: a capability less: root and setpriv(1) are needed\n");
		skip();
	}
	check_refusal("exec setpriv --bounding-set -bpf,-sys_admin \"$CSW\" " BY_STORES,
		      "not permitted without CAP_BPF;", "seccomp");
	check_refusal("exec setpriv --bounding-set -perfmon,-sys_admin \"$CSW\" " BY_STORES,
		      "not permitted without CAP_PERFMON;", "seccomp");
}

static void test_says_what_to_expect(void **state)
{
	struct run run;
	char args[128];
	pid_t pid = start_sleeper(PATIENCE_MS);

	(void)state;
	start(&run, PERF_LOUD);
	await_handlers(&run);
	sleep_ms(300);
	kill(run.pid, SIGTERM);
	finish(&run);
	assert_int_equal(run.status, 0);
	assert_non_null(strstr(run.stderr_text, "counting until SIGINT (Ctrl-C) or SIGTERM"));
	release(&run);
	snprintf(args, sizeof(args), PERF_LOUD "-p %d -- true", (int)pid);
	expect_hint(args, "[other]", "no thread of true is among those of -p");
	snprintf(args, sizeof(args), PERF_LOUD "-t %d -- true", (int)pid);
	expect_hint(args, "[other]", "-d 5");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_sigusr1_replaces_the_file(void **state)
{
	struct run run;
	char *before = NULL, *after;

	(void)state;
	start(&run, PERF "-d 2 -o \"$DIR/asked\"");
	await_handlers(&run);
	assert_null(file_text("asked"));
	kill(run.pid, SIGUSR1);
	for (int i = 0; i < 100 && !before; i++, sleep_ms(10))
		before = file_text("asked");
	if (!before)
		fail_msg("SIGUSR1 did not put the table into the file");
	assert_non_null(strstr(before, "page-faults"));
	finish(&run);
	judge(&run, "SIGUSR1 with -o", 0, NULL, NULL);
	after = file_text("asked");
	assert_non_null(after);
	assert_string_not_equal(before, after);
	assert_int_equal(count_files("asked"), 1);
	free(before);
	free(after);
	release(&run);
	remove_file("asked");
}

static void test_signals_end_the_slices(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct run run;
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		start(&run, "slices -q --driver=perf -p $$ -o \"$DIR/slices\"");
		await_handlers(&run);
		sleep_ms(200);
		kill(run.pid, signals[i]);
		finish(&run);
		judge(&run, "slices until a signal", 0, NULL, NULL);
		text = file_text("slices");
		assert_non_null(text);
		assert_whole_lines(text);
		free(text);
		release(&run);
		remove_file("slices");
	}
	start(&run, "slices -q --driver=perf -o \"$DIR/slices\" -- sh -c "
		    "'trap \"exit 9\" TERM; while :; do sleep 0.05; done'");
	await_handlers(&run);
	sleep_ms(300);
	kill(run.pid, SIGTERM);
	finish(&run);
	judge(&run, "slices of a program until SIGTERM", 9, NULL, NULL);
	assert_int_equal(count_files("slices"), 1);
	release(&run);
	remove_file("slices");
}

/* SIGUSR1 writes the lines that are there; no slice is cut by it. */
static void test_sigusr1_flushes_the_slices(void **state)
{
	struct run run;
	char *text = NULL;

	(void)state;
	start(&run, "slices --driver=perf -p $$ -d 2"); /* few lines: its own */
	await_handlers(&run);
	sleep_ms(300);
	for (int i = 0; i < 100 && (!text || !count_lines(text)); i++) {
		kill(run.pid, SIGUSR1);
		sleep_ms(20);
		free(text);
		text = read_all(run.out);
	}
	assert_true(count_lines(text) > 0);
	free(text);
	finish(&run);
	judge(&run, "slices and SIGUSR1", 0, "time_ns", NULL);
	assert_whole_lines(run.stdout_text);
	release(&run);
}

/* What is out of scope has no line. */
static void test_slices_of_a_scope(void **state)
{
	static const char *const scopes[] = {
		"-- sh -c 'true; sleep 0.05'",
		"--comm=sh -- sh -c 'sleep 0.05; true'",
		"-p $$ -d 0.3", /* csw-sample itself: it has taken the shell's place */
		"-t $$ -d 0.3",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(scopes) / sizeof(*scopes); i++) {
		json_t *lines, *line;
		char args[128], *text;
		size_t j, found = 0;

		snprintf(args, sizeof(args), "slices --driver=perf --format=json %s", scopes[i]);
		text = output_of(args);
		lines = parse_lines(text);
		json_array_foreach(lines, j, line)
		{
			const char *comm = json_string_value(json_object_get(line, "comm"));

			found += is_kind(line, "thread") || is_kind(line, "self");
			assert_false(is_kind(line, "idle") || is_kind(line, "kernel"));
			assert_true(i < 2 || !is_kind(line, "thread"));
			assert_true(i != 1 || !is_kind(line, "thread") || !strcmp(comm, "sh"));
		}
		if (!found)
			fail_msg("%s: no line is in scope", args);
		json_decref(lines);
		free(text);
	}
}

static void test_real_intervals(void **state)
{
	json_t *intervals, *interval;
	char *text;
	struct run run;
	int64_t sum = 0;
	size_t i;

	(void)state;
	start(&run, PERF "-d 1.1 -I 200 --format=json");
	await_handlers(&run);
	sleep_ms(300);
	kill(run.pid, SIGUSR1); /* has no meaning here */
	finish(&run);
	judge(&run, "intervals", 0, "", NULL);
	intervals = parse_lines(run.stdout_text);
	/* A busy machine may miss some; their time is in the next. */
	assert_in_range(json_array_size(intervals), 2, 6);
	json_array_foreach(intervals, i, interval)
	{
		sum += integer(interval, "duration_ns");
		assert_int_equal(total_of(interval, "page-faults", "difference"), 0);
	}
	assert_in_range(sum, 1000 * NS_PER_MS, 3000ull * NS_PER_MS);
	json_decref(intervals);
	release(&run);
	expect(PERF "-d 0.3 -I 200", 0, "---- 20", NULL);
	/* What ends with the run is the last one: no sliver comes after it. */
	text = output_of(PERF "-d 0.6 -I 200 --format=json");
	assert_in_range(count_lines(text), 1, 3);
	free(text);
}

/* Whoever reads the first interval only ends it all. */
static void test_reader_goes_away(void **state)
{
	int64_t begin = wall_ms();
	struct run run;
	int pipes[2];
	char byte;

	(void)state;
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	start_on(&run, PERF "-d 1000 -I 50 --format=csv", pipes[1], -1);
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	close(pipes[0]);
	run.out = temp_file();
	finish(&run);
	judge(&run, "a pipe that is closed", 1, NULL, "its reader has closed it");
	assert_true(wall_ms() - begin < PATIENCE_MS);
	release(&run);
}

static void test_real_delay(void **state)
{
	json_t *report = report_of(PERF "--delay=300 -d 0.3 --format=json");
	int64_t begin;

	(void)state;
	assert_in_range(integer(report, "duration_ns"), 250 * NS_PER_MS, 550 * NS_PER_MS);
	assert_int_equal(total_of(report, "page-faults", "difference"), 0);
	json_decref(report);
	begin = wall_ms();
	expect(PERF "--delay=60000 -- true", 0, "page-faults",
	       "within the 60000 ms of --delay: nothing was counted");
	assert_true(wall_ms() - begin < PATIENCE_MS);
	/* Who is whose child is known from before. */
	report = report_of("-q -e task-clock --delay=200 --format=json -- sh -c "
			   "'(i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done) & wait'");
	{
		json_t *row;
		size_t i, own = 0;

		json_array_foreach(json_object_get(report, "rows"), i, row)
		{
			own += is_kind(row, "thread");
		}
		assert_true(own >= 1);
	}
	json_decref(report);
}

/* A hint at the end is no progress; whether there is one is up to the machine. */
static char *progress_of(const char *args)
{
	char *text = on_terminal(args, true), *hint = strstr(text, "csw-sample: only ");

	if (hint)
		*hint = '\0';
	return text;
}

static void test_progress(void **state)
{
	char *text = progress_of(PERF_LOUD "-d 2.6 --format=csv");
	size_t length = strlen(text);

	(void)state;
	assert_non_null(
		strstr(text, "csw-sample: 0 of 2.6 s, counting page-faults of every thread"));
	assert_non_null(strstr(text, "csw-sample: 1 of 2.6 s"));
	assert_null(strchr(text, '\n'));
	assert_true(length > 4 && strcmp(text + length - 4, "\r\033[K") == 0);
	free(text);
	text = on_terminal(PERF "-d 2.6", true);
	assert_string_equal(text, "");
	free(text);
	text = progress_of(PERF_LOUD "-d 0.5");
	assert_string_equal(text, "");
	free(text);
}

/* ---- all ---- */

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir, "cli-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 }); /* SIGQUIT shall leave nothing */
	setenv("CSW", CSW_SAMPLE, 1);
	setenv("DIR", dir, 1);
	return 0;
}

static int remove_dir(void **state)
{
	char command[128];

	(void)state;
	if (getenv("GROUP"))
		rmdir(getenv("GROUP")); /* where its test has failed */
	snprintf(command, sizeof(command), "rm -rf -- './%s'", dir);
	return system(command);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest unit[] = {
		cmocka_unit_test(test_help_teaches),
		cmocka_unit_test(test_commands),
		cmocka_unit_test(test_bad_usage),
		cmocka_unit_test(test_output_file),
		cmocka_unit_test(test_output_through_links),
		cmocka_unit_test(test_output_with_a_long_name),
		cmocka_unit_test(test_output_beyond_the_limit),
		cmocka_unit_test(test_output_of_who_is_killed),
		cmocka_unit_test(test_sigterm_while_the_pipe_is_full),
		cmocka_unit_test(test_stdout_that_fails),
		cmocka_unit_test(test_closed_pipe),
		cmocka_unit_test(test_doctor_on_a_closed_pipe),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_trigger_and_events),
		cmocka_unit_test(test_views),
		cmocka_unit_test(test_order_and_top),
		cmocka_unit_test(test_rate_raw_histogram),
		cmocka_unit_test(test_overhead),
		cmocka_unit_test(test_hints),
		cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_intervals_that_divide_the_run),
		cmocka_unit_test(test_intervals_as_csv_and_text),
		cmocka_unit_test(test_intervals_append),
		cmocka_unit_test(test_intervals_do_not_append_to_half_a_line),
		cmocka_unit_test(test_intervals_do_not_append_to_other_columns),
		cmocka_unit_test(test_delay),
		cmocka_unit_test(test_colour),
		cmocka_unit_test(test_completion),
		cmocka_unit_test(test_recording_usage),
		cmocka_unit_test(test_recording_of_nobody),
		cmocka_unit_test(test_broken_recording),
		cmocka_unit_test(test_help_is_what_works),
		cmocka_unit_test(test_help_of_commands),
		cmocka_unit_test(test_json_of_lists),
		cmocka_unit_test(test_slices_are_the_table),
		cmocka_unit_test(test_completion_knows_every_option),
		cmocka_unit_test(test_multiplex),
		cmocka_unit_test(test_multiplex_without_need),
		cmocka_unit_test(test_stores_of_loads),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_mixed_without_need),
		cmocka_unit_test(test_slices_of_turns),
		cmocka_unit_test(test_manual_knows_every_option_of_the_simulation),
		cmocka_unit_test(test_manual_knows_every_column),
	};
	const struct CMUnitTest kernel[] = {
		cmocka_unit_test(test_status_of_the_program),
		cmocka_unit_test(test_exec_that_fails),
		cmocka_unit_test(test_signals_of_the_program),
		cmocka_unit_test(test_default_run_of_a_program),
		cmocka_unit_test(test_ids_that_have_gone),
		cmocka_unit_test(test_zombie),
		cmocka_unit_test(test_process_without_its_first_thread),
		cmocka_unit_test(test_process_that_ends_before),
		cmocka_unit_test(test_threads_outside_the_namespace),
		cmocka_unit_test(test_seccomp_forbids_bpf),
		cmocka_unit_test(test_missing_capabilities_forbid_bpf),
		cmocka_unit_test(test_a_thread_is_no_process),
		cmocka_unit_test(test_ends_with_what_it_watches),
		cmocka_unit_test(test_scope_selects_rows),
		cmocka_unit_test(test_cpus),
		cmocka_unit_test(test_born_on_another_cpu),
		cmocka_unit_test(test_cgroups),
		cmocka_unit_test(test_a_program_changes_its_cgroup),
		cmocka_unit_test(test_signals_end_the_run),
		cmocka_unit_test(test_second_interrupt),
		cmocka_unit_test(test_no_program_is_left),
		cmocka_unit_test(test_program_that_ignores_sigterm),
		cmocka_unit_test(test_sigterm_while_the_program_is_waited_for),
		cmocka_unit_test(test_ignored_signals_stay_ignored),
		cmocka_unit_test(test_who_did_not_run),
		cmocka_unit_test(test_sigusr1_shows_the_table),
		cmocka_unit_test(test_sigusr1_as_csv),
		cmocka_unit_test(test_says_what_to_expect),
		cmocka_unit_test(test_hidden_processes),
		cmocka_unit_test(test_names_of_tracepoints),
		cmocka_unit_test(test_trigger_that_is_no_switch),
		cmocka_unit_test(test_hint_of_context_switches),
		cmocka_unit_test(test_sigusr1_replaces_the_file),
		cmocka_unit_test(test_signals_end_the_slices),
		cmocka_unit_test(test_sigusr1_flushes_the_slices),
		cmocka_unit_test(test_slices_of_a_scope),
		cmocka_unit_test(test_real_intervals),
		cmocka_unit_test(test_reader_goes_away),
		cmocka_unit_test(test_real_delay),
		cmocka_unit_test(test_progress),
	};

	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	if (argc > 1 && strcmp(argv[1], "kernel") == 0)
		return truth_refused() ? truth_skip(truth_refused())
				       : cmocka_run_group_tests_name("cli on the kernel", kernel,
								     make_dir, remove_dir);
	return cmocka_run_group_tests_name("cli", unit, make_dir, remove_dir);
}
