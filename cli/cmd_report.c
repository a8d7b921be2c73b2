/*
 * csw-sample report: the tables of a run, from a recording of it.
 *
 * Invariant: what could be read of a broken recording is shown, and the exit status is 1.
 */
#include <errno.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/run.h"
#include "cli/show.h"
#include "csw/csw.h"

#define NAME_COLUMNS 18

static int print_line(void *ctx, const char *name, const char *value)
{
	FILE *file = ctx;

	csw_print_padded(file, name, NAME_COLUMNS);
	csw_print_text(file, value);
	fputc('\n', file);
	return 0;
}

static int show_header(const struct csw_options *o, struct csw_output *out)
{
	struct csw_error err = { .code = 0 };
	int ret = csw_recording(o->input, print_line, out->file, &err);

	if (ret < 0)
		csw_complain("%s: %s", o->input, err.text);
	if (csw_output_commit(out) < 0)
		return EXIT_FAILED;
	return ret < 0 ? EXIT_FAILED : 0;
}

/* Says what is wrong with the recording, or what is to be known of it. */
static int check_damage(const struct csw_options *o, const struct csw_session *s)
{
	struct csw_error err = { .code = 0 };
	int ret = csw_damage(s, &err);

	if (err.text[0])
		csw_complain("%s: %s", o->input, err.text);
	return ret;
}

static int show_now(void *ctx, const struct csw_session *s)
{
	return csw_show_now(ctx, s);
}

static int show_tables(const struct csw_options *o, struct csw_output *out)
{
	struct csw_show show = { .o = o, .out = out };
	struct csw_run_hooks hooks = { .show = show_now, .ctx = &show };
	struct csw_run_result result;
	int status = csw_run(&result, o, &hooks), damage;

	if (status)
		return status;
	status = csw_show_last(&show, result.session);
	damage = check_damage(o, result.session);
	csw_close(result.session);
	if (status < 0 || csw_output_commit(out) < 0)
		return EXIT_FAILED;
	if ((o->pids.nr || o->comms) && !show.in_scope)
		csw_show_unmatched(o);
	if (o->overhead)
		csw_show_overhead(&show, result.own_cpu_ns);
	if (show.broken)
		return EXIT_BROKEN;
	return damage < 0 ? EXIT_FAILED : 0;
}

static int report(const struct csw_options *o)
{
	struct csw_output out;
	int ret = csw_output_open(&out, o->output, false), status = EXIT_FAILED;

	if (ret == 0)
		status = o->header ? show_header(o, &out) : show_tables(o, &out);
	csw_output_close(&out);
	return status;
}

int csw_cmd_report(int argc, char **argv)
{
	return csw_options_run(CSW_USE_REPORT, argc, argv, report);
}
