/* Tables to the output; see show.h. */
#include "cli/show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/run.h"
#include "cli/watch.h"

#define NS_PER_S 1000000000ull
#define NS_PER_MS 1000000ull
#define TIME_COLUMN "time,"
#define EXACT_LEAST 0.9 /* a smaller exact share is worth a line */

static bool wants_colour(const struct csw_options *o)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	/* no-color.org: whatever its value, if there is one. */
	return !o->no_colour && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

static void suit_terminal(struct csw_report_opts *opts, const struct csw_show *show)
{
	int fd = fileno(show->out->file);
	struct winsize size;

	if (show->out->file != stdout || !isatty(fd))
		return;
	opts->colour = wants_colour(show->o);
	if (ioctl(fd, TIOCGWINSZ, &size) == 0)
		opts->width = size.ws_col;
}

/* When the table ends and how much time it holds, before a table that is not the only one. */
static void print_time(const struct csw_show *show, uint64_t duration_ns)
{
	FILE *file = show->out->file;
	char text[64] = "";
	struct timespec now;
	struct tm tm;

	if (csw_options_simulated(show->o)) {
		snprintf(text, sizeof(text), "simulated %.3f s",
			 (double)show->duration_ns / (double)NS_PER_S);
	} else {
		clock_gettime(CLOCK_REALTIME, &now);
		if (localtime_r(&now.tv_sec, &tm))
			strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), ".%03llu",
			 (unsigned long long)now.tv_nsec / NS_PER_MS);
	}
	fprintf(file, "%s---- %s, %.3f s ----\n", show->nr ? "\n" : "", text,
		(double)duration_ns / (double)NS_PER_S);
}

/* The report as a text, to be freed. 0 or -errno, of memory the reason printed. */
static int make_text(char **text, const struct csw_table *table, const struct csw_report_opts *opts,
		     struct csw_error *err)
{
	size_t bytes;
	FILE *memory = open_memstream(text, &bytes);
	int ret = memory ? csw_report(table, memory, opts, err) : -ENOMEM;

	if (memory && fclose(memory) && ret == 0)
		ret = -ENOMEM;
	if (ret == -ENOMEM && !err->text[0])
		csw_complain("not enough memory for the report");
	return ret;
}

/* Many tables in CSV: without the time in each line nobody could tell one from the next. A record
 * is a line, as control characters in names are escaped. */
static int print_csv_with_time(const struct csw_show *show, const struct csw_table *table,
			       const struct csw_report_opts *opts, struct csw_error *err)
{
	bool header = !opts->line;
	char *text = NULL, *rest, *line;
	int ret = make_text(&text, table, opts, err);

	rest = ret == 0 ? text : NULL;
	while (rest && (line = strsep(&rest, "\n")) && *line) {
		if (header)
			fputs(TIME_COLUMN, show->out->file);
		else
			fprintf(show->out->file, "%llu.%09llu,",
				(unsigned long long)(show->duration_ns / NS_PER_S),
				(unsigned long long)(show->duration_ns % NS_PER_S));
		fprintf(show->out->file, "%s\n", line);
		header = false;
	}
	free(text);
	return ret;
}

static struct csw_report_opts report_opts(const struct csw_options *o)
{
	return (struct csw_report_opts){
		.size = sizeof(struct csw_report_opts),
		.format = o->format,
		.verbose = o->verbose,
		.rate = o->rate,
		.raw = o->raw,
		.histogram = o->histogram,
	};
}

static int print(struct csw_show *show, const struct csw_table *table,
		 const struct csw_summary *summary, bool alone, struct csw_error *err)
{
	const struct csw_options *o = show->o;
	struct csw_report_opts opts = report_opts(o);

	if (o->format == CSW_FORMAT_TABLE) {
		suit_terminal(&opts, show);
		if (!alone)
			print_time(show, summary->duration_ns);
	}
	if (o->interval_ns && o->format == CSW_FORMAT_JSON) {
		opts.line = 1;
		opts.elapsed_ns = show->duration_ns;
	}
	if ((o->interval_ns || !alone) && o->format == CSW_FORMAT_CSV) {
		opts.line = show->nr || show->out->has_content;
		return print_csv_with_time(show, table, &opts, err);
	}
	return csw_report(table, show->out->file, &opts, err);
}

static void note(struct csw_show *show, const struct csw_summary *summary)
{
	uint64_t keep = show->o->interval_ns != 0; /* else the last table holds all before it */

	show->duration_ns = keep * show->duration_ns + summary->duration_ns;
	show->samples = keep * show->samples + summary->samples;
	show->oncpu_ns = keep * show->oncpu_ns + summary->oncpu_ns;
	show->exact_ns = keep * show->exact_ns + summary->exact_ns;
	show->outside_ns = keep * show->outside_ns + summary->outside_ns;
	show->lost = keep * show->lost + summary->lost;
	show->throttled = keep * show->throttled + summary->throttled;
	show->unseen = keep * show->unseen + summary->unseen;
	show->throttles = keep * show->throttles + summary->throttles;
	show->nr_cpus = summary->nr_cpus;
	show->cpus_missed = summary->cpus_missed;
	show->cpus_gone = summary->cpus_gone;
	show->sav = summary->sav;
	show->by_switch = strcmp(summary->trigger, "switch") == 0 ||
			  strcmp(summary->trigger, "context-switches") == 0 ||
			  strncmp(summary->trigger_became, "switch", 6) == 0;
}

static bool has_thread(const struct csw_table *table)
{
	const struct csw_row *row;

	for (size_t i = 0; (row = csw_table_row(table, i)) != NULL; i++) {
		if (row->kind == CSW_KIND_THREAD || row->kind == CSW_KIND_KERNEL)
			return true;
	}
	return false;
}

/* By thread, since the rows of another view may be of nobody in particular. */
static int look_for_threads(struct csw_show *show, const struct csw_session *s,
			    struct csw_error *err)
{
	const struct csw_options *o = show->o;
	struct csw_table *table;
	int ret;

	if (show->in_scope || !(o->pids.nr || o->tids.nr || o->cgroup || o->comms))
		return 0;
	ret = csw_table_open(&table, s, CSW_BY_THREAD, NULL, err);
	if (ret < 0)
		return ret;
	show->in_scope = has_thread(table);
	csw_table_close(table);
	return 0;
}

static void say_broken(const struct csw_summary *summary)
{
	csw_complain("the numbers do not add up, do not trust them: %s", summary->broken_why);
}

static void note_broken(struct csw_show *show, const struct csw_summary *summary)
{
	if (summary->broken && !show->broken)
		say_broken(summary);
	show->broken |= summary->broken;
}

bool csw_show_adds_up(const struct csw_session *s)
{
	struct csw_summary summary = { .broken = 1 };
	struct csw_table *table;
	struct csw_error err = { .code = 0 };

	if (csw_table_open(&table, s, CSW_BY_THREAD, NULL, &err) < 0) {
		csw_complain("%s", err.text);
		return false;
	}
	csw_table_summary(table, &summary, sizeof(summary));
	if (summary.broken)
		say_broken(&summary);
	csw_table_close(table);
	return !summary.broken;
}

static int show_table(struct csw_show *show, const struct csw_session *s, bool alone)
{
	struct csw_table_opts opts = csw_run_table_opts(show->o);
	struct csw_summary summary;
	struct csw_table *table;
	struct csw_error err = { .code = 0 };
	int ret = csw_table_open(&table, s, show->o->by, &opts, &err);

	if (ret == 0) {
		csw_table_summary(table, &summary, sizeof(summary));
		note(show, &summary);
		ret = print(show, table, &summary, alone, &err);
		if (ret == 0)
			note_broken(show, &summary);
	}
	csw_table_close(table);
	if (ret == 0)
		ret = look_for_threads(show, s, &err);
	/* Whether the library or the C library saw it first, the line is the same. */
	if (ret < 0 && ferror(show->out->file))
		csw_output_complain(show->out, ret);
	else if (ret < 0 && err.text[0])
		csw_complain("%s", err.text);
	if (ret < 0)
		return ret;
	show->nr++;
	return 0;
}

/* The first line of what is appended to; NULL: it cannot be read. To be freed. */
static char *first_line(const struct csw_output *out)
{
	FILE *file = fopen(out->name, "re");
	char *line = NULL;
	size_t room = 0;
	ssize_t bytes = file ? getline(&line, &room, file) : -1;

	if (file)
		fclose(file);
	if (bytes < 0) {
		free(line);
		return NULL;
	}
	line[strcspn(line, "\n")] = '\0';
	return line;
}

/* Does the file begin as these tables do? The header is that of an empty table. */
static int compare_header(const struct csw_show *show, const struct csw_table *table,
			  struct csw_error *err)
{
	struct csw_report_opts opts = report_opts(show->o);
	char *old = first_line(show->out), *header = NULL;
	int ret = make_text(&header, table, &opts, err);

	if (ret == 0)
		header[strcspn(header, "\n")] = '\0';
	if (ret == 0 && old &&
	    (strncmp(old, TIME_COLUMN, strlen(TIME_COLUMN)) != 0 ||
	     strcmp(old + strlen(TIME_COLUMN), header) != 0)) {
		csw_complain("%s has other columns than these, its first line says; use another "
			     "file for -o, or the options that it was written with",
			     show->out->name);
		ret = -EEXIST;
	}
	free(old);
	free(header);
	return ret;
}

int csw_show_begin(struct csw_show *show, const struct csw_session *s, struct csw_error *err)
{
	const struct csw_options *o = show->o;
	struct csw_table *table;
	int ret;

	if (!o->interval_ns || o->format != CSW_FORMAT_CSV || !show->out->has_content)
		return 0;
	ret = csw_table_open(&table, s, o->by, NULL, err);
	if (ret == 0)
		ret = compare_header(show, table, err);
	csw_table_close(table);
	return ret;
}

int csw_show_now(struct csw_show *show, const struct csw_session *s)
{
	int ret = show_table(show, s, show->out->target != NULL);

	return ret < 0 ? ret : csw_output_publish(show->out);
}

int csw_show_last(struct csw_show *show, const struct csw_session *s)
{
	return show_table(show, s, show->out->target || (!show->nr && !show->o->interval_ns));
}

/* ---- what is said at the end ---- */

/* To end, a thread has to run: who has ended and did not run had ended before, unless that is lost.
 */
static void say_one_did_not_run(const struct csw_show *show, int32_t id, bool process)
{
	bool before = !show->lost && csw_watch_has_ended(id, process);

	csw_complain("%s %d %s", process ? "process" : "thread", id,
		     before ? "has ended before counting began" : "did not run meanwhile");
}

static void say_nobody_ran(const struct csw_show *show)
{
	const struct csw_options *o = show->o;
	size_t kinds =
		(o->pids.nr != 0) + (o->tids.nr != 0) + (o->cgroup != NULL) + (o->command != NULL);

	if (kinds == 1 && o->pids.nr == 1)
		say_one_did_not_run(show, o->pids.ids[0], true);
	else if (kinds == 1 && o->tids.nr == 1)
		say_one_did_not_run(show, o->tids.ids[0], false);
	else if (kinds == 1 && o->cgroup)
		csw_complain("no thread of cgroup %s ran meanwhile", o->cgroup);
	else
		csw_complain("no thread that was asked for ran meanwhile");
}

/* What to try, by what took most away. */
static const char *remedy(const struct csw_show *show)
{
	if (show->outside_ns > (show->oncpu_ns - show->exact_ns) / 2)
		return "threads outside of this PID namespace have no number here and look like "
		       "idle, run on the host or in its PID namespace (docker run --pid=host)";
	if (show->lost && show->lost >= show->throttled && show->lost >= show->unseen)
		return "records were lost, try a larger --ring-kib";
	if (show->throttles && show->throttled >= show->unseen)
		return "the kernel has stopped the trigger, raise "
		       "kernel.perf_event_max_sample_rate";
	if (show->sav > 1)
		return "several threads share a sample, try a smaller --sav";
	if (!show->by_switch && !show->unseen)
		return "this trigger is not known to come once at every switch, so it proves no "
		       "owner; try --trigger=switch";
	return show->by_switch ? "some switches left no record here"
			       : "some switches left no record, try --trigger=switch";
}

static void say_inexact(const struct csw_show *show)
{
	/* Cut, as in the report: 89.99 is not 90. */
	unsigned hundredths = (unsigned)(1e4 * (double)show->exact_ns / (double)show->oncpu_ns);

	csw_complain("only %u.%02u %% of the time on a CPU is exact, counts of the rest may be %s"
		     "in [mixed], [lost] or [unknown]: %s",
		     hundredths / 100, hundredths % 100,
		     show->o->mixed == CSW_MIXED_ROW ? "" : "only estimated, or ", remedy(show));
}

/* The table says it itself; CSV has no place for it, and of JSON it is two fields among many. */
static void say_cpus(const struct csw_show *show)
{
	csw_complain("CPUs that came online meanwhile: %" PRIu32 ", that went offline: %" PRIu32
		     "; what ran there from then on is not counted",
		     show->cpus_missed, show->cpus_gone);
}

void csw_show_unmatched(const struct csw_options *o)
{
	const char *what = o->input ? "in the recording" : "that ran";

	if (o->quiet)
		return;
	if (o->comms && !o->pids.nr)
		csw_complain("no thread %s is called %s", what, o->comms);
	else if (o->pids.nr == 1 && !o->comms)
		csw_complain("no thread %s is of process %d", what, o->pids.ids[0]);
	else
		csw_complain("no thread %s is one of those that were asked for", what);
}

static bool asks_for(const struct csw_options *o, const char *event)
{
	size_t length = strlen(event);

	for (const char *at = o->events; (at = strstr(at, event)); at += length) {
		if ((at == o->events || at[-1] == ',') && (!at[length] || at[length] == ','))
			return true;
	}
	return false;
}

void csw_show_hint(const struct csw_show *show)
{
	const struct csw_options *o = show->o;
	bool scoped = o->pids.nr || o->tids.nr || o->cgroup;
	bool none_wanted = o->has_duration && !o->duration_ns;

	if (o->quiet || none_wanted)
		return;
	if (!show->samples)
		csw_complain(
			"no sample came in %.3f s: nothing can be told of single threads; try %s",
			(double)show->duration_ns / (double)NS_PER_S,
			show->sav > 1     ? "a smaller --sav"
			: show->by_switch ? "a longer run"
					  : "--trigger=switch");
	else if (scoped && !show->in_scope && !(o->command && (o->pids.nr || o->tids.nr)))
		say_nobody_ran(show);
	else if (o->format != CSW_FORMAT_TABLE && (show->cpus_missed || show->cpus_gone))
		say_cpus(show);
	else if ((double)show->exact_ns < EXACT_LEAST * (double)show->oncpu_ns)
		say_inexact(show);
	else if (asks_for(o, "context-switches") || asks_for(o, "cs"))
		csw_complain("context-switches needs no counter: the columns SLICES, VOL and PRE "
			     "of each row say it, and how each ended");
}

void csw_show_overhead(const struct csw_show *show, uint64_t own_cpu_ns)
{
	double machine_ns = (double)show->duration_ns * show->nr_cpus;

	csw_complain("overhead: %.3f ms of CPU time to read %" PRIu64
		     " samples, %.0f ns each, %.3f %% of %" PRIu32
		     " CPUs; what the kernel does at each switch is not in it",
		     (double)own_cpu_ns / (double)NS_PER_MS, show->samples,
		     show->samples ? (double)own_cpu_ns / (double)show->samples : 0.0,
		     machine_ns > 0 ? 100.0 * (double)own_cpu_ns / machine_ns : 0.0, show->nr_cpus);
}
