/*
 * csw-sample slices: a line for every slice, of a recording or as they come.
 *
 * CSV has time_ns (when the slice ended), cpu, kind, pid, tid, comm, oncpu_ns, end, exact and one
 * column per counter; JSON is one object of the same per line. Invariant: the lines of a thread add
 * up to its row in the table of the same run.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/run.h"
#include "cli/show.h"
#include "csw/csw.h"

struct lines {
	const struct csw_options *o;
	struct csw_output *out;
	char **names; /* of the counters */
	size_t nr_names;
	bool matched; /* there is a line of a thread */
	bool unread;  /* whoever read the lines has had enough */
};

/* As the reports do: a text that begins like a formula is none, control bytes are none. */
static void put_csv_text(FILE *file, const char *text)
{
	const char *formula = *text && strchr("=+-@", *text) ? "'" : "";

	if (!strpbrk(text, ",\"")) {
		fputs(formula, file);
		csw_print_text(file, text);
		return;
	}
	fprintf(file, "\"%s", formula);
	for (; *text; text++) {
		if (*text == '"')
			fputs("\"\"", file);
		else
			csw_print_text(file, (char[]){ *text, '\0' });
	}
	fputc('"', file);
}

static void put_id(FILE *file, int32_t id, const char *none)
{
	if (id < 0)
		fputs(none, file);
	else
		fprintf(file, "%" PRId32, id);
}

static void put_csv(const struct lines *l, const struct csw_slice *s)
{
	FILE *file = l->out->file;

	fprintf(file, "%" PRIu64 ",%" PRIu32 ",%s,", s->to_ns, s->cpu, csw_kind_name(s->kind));
	put_id(file, s->pid, "");
	fputc(',', file);
	put_id(file, s->tid, "");
	fputc(',', file);
	put_csv_text(file, s->comm);
	fprintf(file, ",%" PRIu64 ",%s,%" PRIu32, s->oncpu_ns, csw_slice_end_name(s->end),
		s->exact);
	for (size_t i = 0; i < s->nr_values; i++) {
		fputc(',', file);
		if (s->counted >> i & 1)
			fprintf(file, "%" PRIu64, s->values[i]);
	}
	fputc('\n', file);
}

static void put_json(const struct lines *l, const struct csw_slice *s)
{
	FILE *file = l->out->file;

	fprintf(file,
		"{\"time_ns\":%" PRIu64 ",\"cpu\":%" PRIu32 ",\"kind\":\"%s\",\"pid\":", s->to_ns,
		s->cpu, csw_kind_name(s->kind));
	put_id(file, s->pid, "null");
	fputs(",\"tid\":", file);
	put_id(file, s->tid, "null");
	fputs(",\"comm\":", file);
	csw_print_json(file, s->comm);
	fprintf(file, ",\"oncpu_ns\":%" PRIu64 ",\"end\":\"%s\",\"exact\":%s,\"counts\":{",
		s->oncpu_ns, csw_slice_end_name(s->end), s->exact ? "true" : "false");
	for (size_t i = 0; i < s->nr_values && i < l->nr_names; i++) {
		fputs(i ? "," : "", file);
		csw_print_json(file, l->names[i]);
		if (s->counted >> i & 1)
			fprintf(file, ":%" PRIu64, s->values[i]);
		else
			fputs(":null", file);
	}
	fputs("}}\n", file);
}

static int on_slice(void *ctx, const struct csw_slice *slice)
{
	struct lines *l = ctx;

	l->matched |= slice->kind == CSW_KIND_THREAD || slice->kind == CSW_KIND_KERNEL ||
		      slice->kind == CSW_KIND_SELF;
	if (l->unread)
		return 0;
	if (l->o->format == CSW_FORMAT_JSON)
		put_json(l, slice);
	else
		put_csv(l, slice);
	if (!ferror(l->out->file))
		return 0;
	l->unread = csw_output_is_unread(l->out->file);
	return l->unread ? 0 : -EIO;
}

static int opened(void *ctx, struct csw_session *s, struct csw_error *err)
{
	return csw_on_slice(s, on_slice, ctx, err);
}

/* The counters' names, which a table knows, before the first slice. */
static int started(void *ctx, struct csw_session *s, struct csw_error *err)
{
	struct lines *l = ctx;
	struct csw_counter counter;
	struct csw_table *table;
	int ret = csw_table_open(&table, s, CSW_BY_THREAD, NULL, err);

	if (ret < 0)
		return ret;
	l->names = calloc(csw_table_counters(table) + 1, sizeof(*l->names));
	while (l->names && csw_table_counter(table, l->nr_names, &counter) == 0) {
		l->names[l->nr_names] = strdup(counter.name);
		if (!l->names[l->nr_names++])
			ret = -ENOMEM;
	}
	csw_table_close(table);
	if (!l->names || ret < 0)
		return -ENOMEM;
	if (l->o->format == CSW_FORMAT_JSON)
		return 0;
	fputs("time_ns,cpu,kind,pid,tid,comm,oncpu_ns,end,exact", l->out->file);
	for (size_t i = 0; i < l->nr_names; i++) {
		fputc(',', l->out->file);
		put_csv_text(l->out->file, l->names[i]);
	}
	fputc('\n', l->out->file);
	return 0;
}

/* SIGUSR1: there is no table, but lines that wait for their number. A failure shows at the next. */
static void flush_lines(void *ctx)
{
	const struct lines *l = ctx;

	if (!l->unread)
		fflush(l->out->file);
}

static bool is_enough(void *ctx)
{
	const struct lines *l = ctx;

	return l->unread;
}

static int write_lines(struct lines *l)
{
	struct csw_run_hooks hooks = {
		.opened = opened,
		.started = started,
		.asked = flush_lines,
		.is_enough = is_enough,
		.ctx = l,
	};
	struct csw_error err = { .code = 0 };
	struct csw_run_result result;
	int status = csw_run(&result, l->o, &hooks);

	if (status)
		return status;
	if (csw_damage(result.session, &err) < 0)
		status = EXIT_FAILED;
	if (err.text[0])
		csw_complain("%s: %s", l->o->input, err.text);
	if (!csw_show_adds_up(result.session))
		status = EXIT_BROKEN;
	csw_close(result.session);
	if ((l->o->pids.nr || l->o->tids.nr || l->o->comms || l->o->cgroup) && !l->matched)
		csw_show_unmatched(l->o);
	else if (l->o->input && !l->matched && !l->o->quiet)
		csw_complain("%s: no context switch was recorded, so there is no slice; "
			     "csw-sample report shows what was sampled",
			     l->o->input);
	if (!l->unread && fflush(l->out->file))
		l->unread = csw_output_is_unread(l->out->file);
	if (!l->unread && csw_output_commit(l->out) < 0)
		status = l->o->command ? EXIT_SELF : EXIT_FAILED;
	return status ? status : result.program_status;
}

static int slices(const struct csw_options *o)
{
	struct csw_output out;
	struct lines l = { .o = o, .out = &out };
	int ret = csw_output_open(&out, o->output, false), status = EXIT_FAILED;

	if (ret == 0)
		status = write_lines(&l);
	csw_output_close(&out);
	for (size_t i = 0; i < l.nr_names; i++)
		free(l.names[i]);
	free(l.names);
	return status;
}

int csw_cmd_slices(int argc, char **argv)
{
	return csw_options_run(CSW_USE_SLICES, argc, argv, slices);
}
