/* cli/options: what a command line becomes, and that nothing absurd gets through. */
#define _GNU_SOURCE /* pipe2 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"
#include "csw/csw.h"

#define ARGS_MAX 16

static char said[4096]; /* on stderr, by the last parse() */
static char *argv[ARGS_MAX + 2];
static enum csw_use use; /* of the next parse() */

/* Arguments up to NULL; stderr is caught. */
static int parse(struct csw_options *o, ...)
{
	int pipes[2], saved = dup(STDERR_FILENO), argc = 1, ret;
	ssize_t bytes;
	va_list args;

	argv[0] = (char[]){ "csw-sample" };
	va_start(args, o);
	while (argc <= ARGS_MAX && (argv[argc] = va_arg(args, char *)) != NULL)
		argc++;
	va_end(args);
	argv[argc] = NULL;
	assert_int_equal(pipe2(pipes, O_NONBLOCK), 0);
	dup2(pipes[1], STDERR_FILENO);
	ret = csw_options_parse(o, use, argc, argv);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	bytes = read(pipes[0], said, sizeof(said) - 1);
	said[bytes > 0 ? bytes : 0] = '\0';
	close(pipes[0]);
	close(pipes[1]);
	close(saved);
	return ret;
}

/* Refused, with one line that begins with the program's name and holds `part`. */
static void assert_refused(const char *part, char *a, char *b, char *c)
{
	struct csw_options o;
	char *end;

	if (parse(&o, a, b, c, NULL) != -EINVAL)
		fail_msg("%s %s was not refused", a, b ? b : "");
	csw_options_free(&o);
	end = strchr(said, '\n');
	if (strncmp(said, "csw-sample: ", 12) != 0 || !end || end[1] || !strstr(said, part))
		fail_msg("not one line with \"%s\": %s", part, said);
}

static void test_defaults(void **state)
{
	struct csw_options o;

	(void)state;
	assert_int_equal(parse(&o, NULL), 0);
	assert_string_equal(o.events, "page-faults,task-clock");
	assert_string_equal(o.driver, "auto");
	assert_null(o.trigger);
	assert_null(o.output);
	assert_null(o.command);
	assert_int_equal(o.by, CSW_BY_THREAD);
	assert_int_equal(o.format, CSW_FORMAT_TABLE);
	assert_false(o.has_duration);
	assert_false(o.verbose || o.histogram || o.rate || o.raw || o.no_colour || o.quiet ||
		     o.overhead);
	assert_int_equal(o.sav, 0);
	assert_int_equal(o.top, 0);
	assert_int_equal(o.delay_ns, 0);
	assert_int_equal(o.interval_ns, 0);
	assert_int_equal(o.pids.nr, 0);
	assert_int_equal(o.tids.nr, 0);
	assert_null(o.sort);
	assert_null(o.cgroup);
	assert_null(o.cpus);
	assert_int_equal(o.info, CSW_INFO_NONE);
	csw_options_free(&o);
}

static void test_everything_at_once(void **state)
{
	struct csw_options o;

	(void)state;
	assert_int_equal(parse(&o, "-e", "a,b", "--event=c", "--trigger=seg_load", "--sav=7",
			       "--driver=perf", "--by=process", "--format=json", "-o", "file",
			       "-p1,2", "-p", "2147483647", "--verbose", "--ring-kib=4", NULL),
			 0);
	assert_string_equal(o.events, "a,b,c");
	assert_string_equal(o.trigger, "seg_load");
	assert_int_equal(o.sav, 7);
	assert_string_equal(o.driver, "perf");
	assert_int_equal(o.by, CSW_BY_PROCESS);
	assert_int_equal(o.format, CSW_FORMAT_JSON);
	assert_string_equal(o.output, "file");
	assert_int_equal(o.pids.nr, 3);
	assert_int_equal(o.pids.ids[0], 1);
	assert_int_equal(o.pids.ids[1], 2);
	assert_int_equal(o.pids.ids[2], INT32_MAX);
	assert_true(o.verbose);
	assert_int_equal(o.ring_bytes, 4096);
	assert_false(o.force);
	csw_options_free(&o);
	assert_int_equal(parse(&o, "--sav=auto", "--force", NULL), 0);
	assert_true(o.sav == CSW_SAV_AUTO);
	assert_true(o.force);
	assert_int_equal(o.mixed, CSW_MIXED_ROW);
	csw_options_free(&o);
	assert_int_equal(parse(&o, "--mixed=last", NULL), 0);
	assert_int_equal(o.mixed, CSW_MIXED_LAST);
	csw_options_free(&o);
	assert_int_equal(parse(&o, "--mixed=split", NULL), 0);
	assert_int_equal(o.mixed, CSW_MIXED_SPLIT);
	csw_options_free(&o);
	assert_int_equal(parse(&o, "--mixed=half", NULL), -EINVAL);
	csw_options_free(&o);
}

static void test_scope_and_time(void **state)
{
	struct csw_options o;

	(void)state;
	assert_int_equal(parse(&o, "-t7", "--tid=8,9", "--cgroup=/a b", "-C", "0-3,8",
			       "--cpus=65535", "--delay=1500", "-I", "10", NULL),
			 0);
	assert_int_equal(o.tids.nr, 3);
	assert_int_equal(o.tids.ids[0], 7);
	assert_int_equal(o.tids.ids[2], 9);
	assert_int_equal(o.pids.nr, 0);
	assert_string_equal(o.cgroup, "/a b");
	assert_string_equal(o.cpus, "0-3,8,65535");
	assert_int_equal(o.delay_ns, 1500000000);
	assert_int_equal(o.interval_ns, 10000000);
	csw_options_free(&o);
	assert_int_equal(parse(&o, "--delay=0", "--interval=86400000", NULL), 0);
	assert_int_equal(o.delay_ns, 0);
	assert_int_equal(o.interval_ns, 86400000000000);
	csw_options_free(&o);
}

static void test_how_to_show_it(void **state)
{
	static char *const by[] = { "thread", "process", "comm", "cgroup", "cpu" };
	static const uint32_t meaning[] = { CSW_BY_THREAD, CSW_BY_PROCESS, CSW_BY_COMM,
					    CSW_BY_CGROUP, CSW_BY_CPU };
	struct csw_options o;
	char text[32];

	(void)state;
	assert_int_equal(parse(&o, "--sort=oncpu", "--top=1000000000", "--rate", "--histogram",
			       "--raw", "--no-color", "-q", "--overhead", "--format=csv", NULL),
			 0);
	assert_string_equal(o.sort, "oncpu");
	assert_int_equal(o.top, 1000000000);
	assert_true(o.rate && o.histogram && o.raw && o.no_colour && o.quiet && o.overhead);
	assert_int_equal(o.format, CSW_FORMAT_CSV);
	csw_options_free(&o);
	for (size_t i = 0; i < sizeof(by) / sizeof(*by); i++) {
		snprintf(text, sizeof(text), "--by=%s", by[i]);
		assert_int_equal(parse(&o, text, NULL), 0);
		assert_int_equal(o.by, meaning[i]);
		csw_options_free(&o);
	}
}

static void test_help_and_version(void **state)
{
	struct csw_options o;

	(void)state;
	assert_int_equal(parse(&o, "--help", "--version", NULL), 0);
	assert_int_equal(o.info, CSW_INFO_HELP);
	csw_options_free(&o);
	assert_int_equal(parse(&o, "-V", NULL), 0);
	assert_int_equal(o.info, CSW_INFO_VERSION);
	csw_options_free(&o);
	assert_refused("--foo", "--help", "--foo", NULL);
}

static void test_command(void **state)
{
	struct csw_options o;

	(void)state;
	assert_int_equal(parse(&o, "-d1", "--", "prog", "-x", "--", "--help", NULL), 0);
	assert_string_equal(o.command[0], "prog");
	assert_string_equal(o.command[1], "-x");
	assert_string_equal(o.command[2], "--");
	assert_string_equal(o.command[3], "--help");
	assert_null(o.command[4]);
	csw_options_free(&o);
	assert_refused("stands after --", "prog", NULL, NULL);
	assert_refused("stands after --", "prog", "--", "x"); /* must not run x */
	assert_refused("no program", "--", NULL, NULL);
}

static void test_durations(void **state)
{
	static const struct {
		char *text;
		uint64_t ns;
	} good[] = {
		{ "0", 0 },
		{ "5", 5000000000 },
		{ "2.5", 2500000000 },
		{ ".25", 250000000 },
		{ "0.000000001", 1 },
		{ "0.0000000019", 1 },
		{ "1000000000", 1000000000000000000 },
	};
	static char *const bad[] = { "",
				     "-1",
				     "+1",
				     " 1",
				     "1 ",
				     "nan",
				     "inf",
				     "1e3",
				     "0x10",
				     "1.",
				     ".",
				     "1.2.3",
				     "1,5",
				     "-0",
				     "1000000001",
				     "1000000000.1",
				     "99999999999999999999999" };
	struct csw_options o;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(parse(&o, "-d", good[i].text, NULL), 0);
		assert_true(o.has_duration);
		assert_int_equal(o.duration_ns, good[i].ns);
		csw_options_free(&o);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_refused("from 0 to 1000000000", "-d", bad[i], NULL);
}

static void test_absurd_values(void **state)
{
	(void)state;
	assert_refused("from 1 to", "--sav=0", NULL, NULL);
	assert_refused("from 1 to", "--sav=-1", NULL, NULL);
	assert_refused("from 1 to", "--sav=", NULL, NULL);
	assert_refused("from 1 to", "--sav=1x", NULL, NULL);
	assert_refused("from 1 to", "--sav=18446744073709551617", NULL, NULL);
	assert_refused("from 4 to", "--ring-kib=3", NULL, NULL);
	assert_refused("from 4 to", "--ring-kib=1048577", NULL, NULL);
	assert_refused("from 1 to 1000000000", "--top=0", NULL, NULL);
	assert_refused("from 1 to 1000000000", "--top=1000000001", NULL, NULL);
	assert_refused("from 10 to 86400000", "-I", "9", NULL);
	assert_refused("from 10 to 86400000", "-I", "0", NULL);
	assert_refused("from 10 to 86400000", "-I", "1e3", NULL);
	assert_refused("from 10 to 86400000", "--interval=86400001", NULL, NULL);
	assert_refused("from 0 to 86400000", "--delay=-1", NULL, NULL);
	assert_refused("from 0 to 86400000", "--delay=0.5", NULL, NULL);
	assert_refused("from 0 to 86400000", "--delay=99999999999999999999", NULL, NULL);
	assert_refused("thread, process, comm, cgroup or cpu", "--by=core", NULL, NULL);
	assert_refused("thread, process, comm, cgroup or cpu", "--by=", NULL, NULL);
	assert_refused("table, json or csv", "--format=xml", NULL, NULL);
	assert_refused("--sort: must not be empty", "--sort=", NULL, NULL);
	assert_refused("--cgroup: must not be empty", "--cgroup=", NULL, NULL);
	assert_refused("-o: must not be empty", "-o", "", NULL);
	assert_refused("--trigger: must not be empty", "--trigger=", NULL, NULL);
	assert_refused("--driver: must not be empty", "--driver=", NULL, NULL);
	assert_refused("thread ids from 1 to 2147483647", "-t", "0", NULL);
	assert_refused("thread ids from 1 to 2147483647", "-t", "1,x", NULL);
	assert_refused("CPUs from 0 to 65535", "-C", "", NULL);
	assert_refused("CPUs from 0 to 65535", "-C", "1-", NULL);
	assert_refused("CPUs from 0 to 65535", "-C", "-1", NULL);
	assert_refused("CPUs from 0 to 65535", "-C", "3-1", NULL);
	assert_refused("CPUs from 0 to 65535", "-C", "0,", NULL);
	assert_refused("CPUs from 0 to 65535", "-C", "0 1", NULL);
	assert_refused("CPUs from 0 to 65535", "-C", "65536", NULL);
	assert_refused("process ids", "-p", "0", NULL);
	assert_refused("process ids", "-p", "", NULL);
	assert_refused("process ids", "-p", "1,", NULL);
	assert_refused("process ids", "-p", ",1", NULL);
	assert_refused("process ids", "-p", "1 2", NULL);
	assert_refused("process ids", "-p", "2147483648", NULL);
}

static void test_unknown_options(void **state)
{
	(void)state;
	assert_refused("--foo: no such option; see", "--foo", NULL, NULL);
	assert_refused("--evnt: no such option; nearest: --event;", "--evnt", NULL, NULL);
	assert_refused("--events: no such option; nearest: --event;", "--events=a", NULL, NULL);
	assert_refused("--color: no such option; nearest: --no-color;", "--color", NULL, NULL);
	assert_refused("--s: could be --sav or --sort", "--s=1", NULL, NULL);
	assert_refused("-Z: no such option; see", "-Z", NULL, NULL);
	assert_refused("-Z: no such option; see", "-qZ", NULL, NULL);
	assert_refused("-Z: no such option; see", "-q", "-Zq", NULL);
	assert_refused("-v: no such option; nearest: -V (--version), --verbose;", "-v", NULL, NULL);
	assert_refused("-a: no such option; the whole machine is the default", "-a", NULL, NULL);
	assert_refused("the whole machine is the default", "--all-cpus", NULL, NULL);
	assert_refused("-?: no such option", "-\303\244", NULL, NULL);
	assert_refused("list, doctor, verify, calibrate, report, slices, help", "lsit", "events",
		       NULL);
	assert_refused("a?[2J?b", "a\033[2J\nb", NULL,
		       NULL); /* no byte of it reaches the terminal raw */
}

static void test_values_missing_or_not_wanted(void **state)
{
	(void)state;
	assert_refused("-d: its value is missing: -d SECONDS", "-d", NULL, NULL);
	assert_refused("-d: its value is missing: -d SECONDS", "-q", "-qd", NULL);
	assert_refused("--sav: its value is missing: --sav=N", "--raw", "--sav", NULL);
	assert_refused("--tri: its value is missing", "--tri", NULL, NULL);
	assert_refused("--verbose=1: --verbose takes no value", "--verbose=1", NULL, NULL);
	assert_refused("--verb=: --verbose takes no value", "-d", "1", "--verb=");
	/* A value that looks like an option is a value. */
	assert_refused("-C --foo", "-C", "--foo", "-Z");
}

/* Neither a control sequence, nor half a character, nor what turns the text around. */
static void test_complaints_are_printable(void **state)
{
	static char all[2 * 255 + 1];

	(void)state;
	assert_refused("a?2Jb?c?d\303\251: unexpected", "a\302\2332Jb\233c\342\200\256d\303\251",
		       NULL, NULL);
	assert_refused("?(", "\300\200\355\240\200\364\220\200\200\342\200(", NULL, NULL);
	for (int byte = 1; byte < 256; byte++) {
		all[2 * byte - 2] = (char)byte;
		all[2 * byte - 1] = '.';
	}
	assert_refused("unexpected", all, NULL, NULL);
	for (const char *c = said; *c; c++)
		assert_true((*c >= ' ' && *c < 0x7f) || (*c == '\n' && !c[1]));
}

static void test_a_simulation_runs_its_own_programs(void **state)
{
	struct csw_options o;

	(void)state;
	assert_refused("leave out the program", "--driver=sim", "--", "true");
	assert_refused("leave out -p", "--driver=sim:cpus=2", "-p1", NULL);
	assert_refused("leave out -t", "--driver=sim", "-t1", NULL);
	assert_refused("leave out --cgroup", "--driver=sim", "--cgroup=/", NULL);
	assert_int_equal(parse(&o, "--driver=sim:cpus=2", NULL), 0);
	assert_true(csw_options_simulated(&o));
	csw_options_free(&o);
	assert_int_equal(parse(&o, "--driver=simple", NULL), 0);
	assert_false(csw_options_simulated(&o));
	csw_options_free(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_everything_at_once),
		cmocka_unit_test(test_scope_and_time),
		cmocka_unit_test(test_how_to_show_it),
		cmocka_unit_test(test_help_and_version),
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_absurd_values),
		cmocka_unit_test(test_unknown_options),
		cmocka_unit_test(test_values_missing_or_not_wanted),
		cmocka_unit_test(test_complaints_are_printable),
		cmocka_unit_test(test_a_simulation_runs_its_own_programs),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
