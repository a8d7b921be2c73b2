/*
 * csw-sample: dispatches the commands; measure, report, exit status.
 *
 * Invariant: status 0 only after everything that was to be printed has been written.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run.h"
#include "cli/show.h"
#include "cli/signals.h"
#include "csw/csw.h"

/* A closed stdin, stdout or stderr would give its number to a counter, and the report would be
 * written into that. */
static int reserve_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY);
		if (fd < 0)
			return -errno;
	} while (fd <= STDERR_FILENO);
	close(fd);
	return 0;
}

/* error 0: an earlier write has failed, and nobody remembers why. */
static void complain_of_stdout(int error)
{
	csw_complain("cannot write to the standard output%s%s", error ? ": " : "",
		     error ? csw_output_error(error) : "");
}

/* Who has read enough of a list has closed it: that is no failure, and nothing to speak of. */
static int finish_stdout(void)
{
	errno = 0;
	if ((fflush(stdout) == 0 && !ferror(stdout)) || csw_output_is_unread(stdout))
		return 0;
	complain_of_stdout(errno);
	return EXIT_FAILED;
}

/* ---- commands ---- */

static int inform(uint32_t info)
{
	int ret;

	signal(SIGPIPE, SIG_IGN);
	ret = csw_options_inform(CSW_USE_COUNT, info);
	if (ret == 0 || csw_output_is_unread(stdout))
		return 0;
	complain_of_stdout(-ret);
	return EXIT_FAILED;
}

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	bool counts; /* may run a program, and what it has until a signal is worth its end */
} commands[] = {
	{ "list", csw_cmd_list, false },     { "doctor", csw_cmd_doctor, false },
	{ "verify", csw_cmd_verify, false }, { "calibrate", csw_cmd_calibrate, false },
	{ "report", csw_cmd_report, false }, { "slices", csw_cmd_slices, true },
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; name && i < sizeof(commands) / sizeof(*commands); i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

static int run_command(const struct command *command, int argc, char **argv)
{
	int status, finished;

	if (command->counts)
		csw_signals_catch();
	else
		signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error */
	status = command->run(argc, argv);
	finished = finish_stdout();
	return status ? status : finished;
}

/* help [COMMAND]; about the command itself where it is asked for with an option. */
static int help(int argc, char **argv)
{
	static char option[] = "--help";
	const struct command *command = find_command(argc == 2 ? argv[1] : NULL);

	if (argc == 1 || (argc == 2 && argv[1][0] == '-') ||
	    (argc == 2 && strcmp(argv[1], "help") == 0))
		return inform(CSW_INFO_HELP);
	if (command)
		return run_command(command, 2, (char *[]){ argv[1], option, NULL });
	csw_complain("help: %s: unexpected; there is help of list, doctor, verify, calibrate, "
		     "report and slices",
		     argv[argc - 1]);
	return EXIT_USAGE;
}

/* ---- measuring ---- */

static int show_begin(void *ctx, struct csw_session *s, struct csw_error *err)
{
	return csw_show_begin(ctx, s, err);
}

static int show_now(void *ctx, const struct csw_session *s)
{
	return csw_show_now(ctx, s);
}

static int sample(const struct csw_options *o, struct csw_output *out)
{
	int failed = o->command ? EXIT_SELF : EXIT_FAILED;
	struct csw_show show = { .o = o, .out = out };
	struct csw_run_hooks hooks = { .started = show_begin, .show = show_now, .ctx = &show };
	struct csw_run_result result;
	int status = csw_run(&result, o, &hooks);

	if (status)
		return status;
	status = csw_show_last(&show, result.session);
	csw_close(result.session);
	if (status < 0 || csw_output_commit(out) < 0)
		return failed;
	csw_show_hint(&show);
	if (o->overhead)
		csw_show_overhead(&show, result.own_cpu_ns);
	if (show.broken)
		return o->command ? EXIT_SELF : EXIT_BROKEN;
	return result.program_status;
}

static int measure(const struct csw_options *o)
{
	struct csw_output out;
	int ret, status;

	csw_signals_catch();
	ret = csw_output_open(&out, o->output, o->interval_ns != 0);
	status = ret < 0 ? (o->command ? EXIT_SELF : EXIT_FAILED) : sample(o, &out);
	csw_output_close(&out);
	return status;
}

int main(int argc, char **argv)
{
	const struct command *command = find_command(argc > 1 ? argv[1] : NULL);
	struct csw_options o;
	int status;

	if (reserve_standard_fds() < 0)
		return EXIT_FAILED;
	if (command)
		return run_command(command, argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "help") == 0)
		return help(argc - 1, argv + 1);
	status = csw_options_parse(&o, CSW_USE_COUNT, argc, argv);
	if (status < 0)
		status = status == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	else
		status = o.info ? inform(o.info) : measure(&o);
	csw_options_free(&o);
	return status;
}
