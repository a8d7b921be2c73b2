/*
 * The report for people: a table whose columns are as wide as their content, and the proofs below
 * it.
 *
 * Every cell is made twice, once for the width and once to print, so that memory does not grow with
 * the rows. Invariant: numbers are never cut; where a table is too wide, names are.
 */
#include "engine/report.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/error.h"
#include "engine/report_common.h"
#include "engine/report_histogram.h"
#include "engine/text.h"
#include "engine/view.h"

#define CELL_BYTES CSW_LABEL_BYTES
#define TITLE_BYTES (CSW_KEY_BYTES + 8)
#define COLUMNS_MAX (3 * CSW_COUNTERS_MAX + 14)
#define GAP 2        /* cells between columns */
#define NAME_LEAST 8 /* cells to which a name may be cut */

/* A number as text, for as long as the enclosing block lasts. */
#define NUM(r, value) csw_text_number((char[CSW_NUMBER_BYTES]){ 0 }, value, (r)->opts->raw)

enum column_type {
	COLUMN_PID,
	COLUMN_TID,
	COLUMN_NAME,   /* what the row is called in this view */
	COLUMN_CGROUP, /* besides */
	COLUMN_THREADS,
	COLUMN_SLICES,
	COLUMN_ONCPU,
	COLUMN_VOLUNTARY,
	COLUMN_PREEMPTED,
	COLUMN_MIGRATIONS,
	COLUMN_COUNTER,
	COLUMN_PER_SECOND,
	COLUMN_SHARE,
	COLUMN_RATIO,
};

struct column {
	uint32_t type;  /* enum column_type */
	unsigned width; /* terminal cells */
	size_t counter; /* the counter, or the ratio's dividend */
	size_t divisor;
	unsigned scale; /* of the ratio */
	bool nanoseconds;
	char title[TITLE_BYTES];
};

struct report {
	const struct csw_table *t;
	const struct csw_report_opts *opts;
	FILE *file;
	uint32_t by; /* enum csw_by */
	struct csw_summary s;
	unsigned nr;
	struct column columns[COLUMNS_MAX];
};

/* ---- cells ---- */

static void put_ms(char *out, const struct report *r, uint64_t ns)
{
	uint64_t us = ns / 1000 + (ns % 1000 >= 500);

	snprintf(out, CELL_BYTES, "%s.%03u", NUM(r, us / 1000), (unsigned)(us % 1000));
}

/* IDs are no quantities: no separators. */
static void put_id(char *out, int32_t id)
{
	if (id < 0)
		strcpy(out, "-");
	else
		snprintf(out, CELL_BYTES, "%" PRId32, id);
}

/* A mark before what is only an estimate; what follows it. */
static char *put_mark(char *out, bool estimate)
{
	strcpy(out, estimate ? "~" : "");
	return out + estimate;
}

static void put_count(char *out, const struct report *r, const struct csw_count *count,
		      bool nanoseconds)
{
	uint64_t value;
	bool estimate;

	if (!csw_report_value(count, &value, &estimate)) {
		strcpy(out, "-");
		return;
	}
	out = put_mark(out, estimate);
	if (nanoseconds)
		put_ms(out, r, value);
	else
		csw_text_number(out, value, r->opts->raw);
}

static void put_per_second(char *out, const struct report *r, const struct csw_count *count,
			   bool nanoseconds)
{
	uint64_t value, whole;
	double rate;
	bool estimate;

	if (!csw_report_value(count, &value, &estimate) ||
	    !csw_report_per_second(r->s.duration_ns, value, &rate)) {
		strcpy(out, "-");
		return;
	}
	out = put_mark(out, estimate);
	if (nanoseconds)
		rate /= 1e6; /* its column is in ms */
	whole = rate < 0x1p63 ? (uint64_t)rate : UINT64_MAX;
	if (rate < 100)
		snprintf(out, CELL_BYTES - 1, "%.2f", rate);
	else
		csw_text_number(out, whole, r->opts->raw);
}

static void put_share(char *out, const struct report *r, const struct csw_count *count, size_t j)
{
	struct csw_counter counter;
	uint64_t value;
	double share;
	bool estimate;

	csw_table_counter(r->t, j, &counter);
	if (!csw_report_value(count, &value, &estimate) ||
	    !csw_report_share(&counter, value, &share))
		strcpy(out, "-");
	else
		snprintf(put_mark(out, estimate), CELL_BYTES - 1, "%.2f", 100 * share);
}

static void put_ratio(char *out, const struct report *r, size_t i, const struct column *c)
{
	struct csw_count dividend = { .flags = CSW_COUNT_NOT_COUNTED }, divisor = dividend;
	uint64_t above, below;
	bool above_mark, below_mark;

	csw_table_count(r->t, i, c->counter, &dividend);
	csw_table_count(r->t, i, c->divisor, &divisor);
	if (!csw_report_value(&dividend, &above, &above_mark) ||
	    !csw_report_value(&divisor, &below, &below_mark) || !below)
		strcpy(out, "-");
	else
		snprintf(put_mark(out, above_mark || below_mark), CELL_BYTES - 1, "%.2f",
			 c->scale * (double)above / (double)below);
}

static void put_quantity(char *out, const struct report *r, const struct csw_row *row,
			 uint32_t type)
{
	uint64_t value = type == COLUMN_THREADS     ? row->nr_threads
			 : type == COLUMN_SLICES    ? row->slices
			 : type == COLUMN_VOLUNTARY ? row->voluntary
			 : type == COLUMN_PREEMPTED ? row->preempted
						    : row->migrations;

	csw_text_number(out, value, r->opts->raw);
}

/* out holds CELL_BYTES. */
static void put_cell(char *out, const struct report *r, size_t i, const struct column *c)
{
	const struct csw_row *row = csw_table_row(r->t, i);
	struct csw_count count = { .flags = CSW_COUNT_NOT_COUNTED };

	csw_table_count(r->t, i, c->counter, &count);
	switch (c->type) {
	case COLUMN_PID:
		put_id(out, row->pid);
		break;
	case COLUMN_TID:
		put_id(out, row->tid);
		break;
	case COLUMN_NAME:
		csw_report_name(out, r->t, row);
		break;
	case COLUMN_CGROUP:
		csw_report_cgroup(out, row);
		break;
	case COLUMN_ONCPU:
		put_ms(out, r, row->oncpu_ns);
		break;
	case COLUMN_COUNTER:
		put_count(out, r, &count, c->nanoseconds);
		break;
	case COLUMN_PER_SECOND:
		put_per_second(out, r, &count, c->nanoseconds);
		break;
	case COLUMN_SHARE:
		put_share(out, r, &count, c->counter);
		break;
	case COLUMN_RATIO:
		put_ratio(out, r, i, c);
		break;
	default:
		put_quantity(out, r, row, c->type);
		break;
	}
}

/* ---- columns ---- */

static struct column *add_column(struct report *r, uint32_t type, const char *title)
{
	struct column *c = &r->columns[r->nr++];

	c->type = type;
	snprintf(c->title, sizeof(c->title), "%s", title);
	return c;
}

static void add_counter(struct report *r, size_t j, const struct csw_counter *counter,
			uint32_t type, const char *title)
{
	struct column *c = add_column(r, type, title);

	c->counter = j;
	c->nanoseconds = counter->nanoseconds;
}

static void add_counters(struct report *r)
{
	char title[TITLE_BYTES];
	struct csw_counter counter;

	for (size_t j = 0; csw_table_counter(r->t, j, &counter) == 0; j++) {
		csw_escape(title, sizeof(title) - sizeof("(ms)~"), counter.name);
		if (counter.nanoseconds)
			strcat(title, "(ms)");
		if (counter.flags & CSW_COUNT_ESTIMATE)
			strcat(title, "~");
		add_counter(r, j, &counter, COLUMN_COUNTER, title);
		if (!r->opts->rate)
			continue;
		add_counter(r, j, &counter, COLUMN_PER_SECOND, counter.nanoseconds ? "ms/s" : "/s");
		add_counter(r, j, &counter, COLUMN_SHARE, "%");
	}
}

/* The first counter that is one of names[] (NULL ends them) with the modifier given; *modifier: its
 * ":u" or "". */
static bool find_counter(const struct csw_table *t, const char *const names[], const char *want,
			 size_t *found, const char **modifier)
{
	struct csw_counter counter;

	for (size_t j = 0; csw_table_counter(t, j, &counter) == 0; j++) {
		for (const char *const *name = names; *name; name++) {
			size_t bytes = strlen(*name);
			const char *rest = counter.name + bytes;

			if (strncasecmp(counter.name, *name, bytes) != 0)
				continue;
			if ((*rest && *rest != ':') || (want && strcmp(rest, want) != 0))
				continue;
			*found = j;
			*modifier = rest;
			return true;
		}
	}
	return false;
}

/* Ratios are only made of counts over the same privilege levels: instructions:u over cycles is no
 * IPC. */
static void add_ratios(struct report *r)
{
	static const char *const instructions[] = { "instructions",         "INST_RETIRED",
						    "INSTRUCTIONS_RETIRED", "INSTRUCTION_RETIRED",
						    "RETIRED_INSTRUCTIONS", NULL };
	static const char *const cycles[] = {
		"cycles", "cpu-cycles", "CPU_CYCLES", "UNHALTED_CORE_CYCLES", "CYCLES_NOT_IN_HALT",
		NULL
	};
	static const char *const misses[] = { "LLC_MISSES", "LAST_LEVEL_CACHE_MISSES",
					      "LONGEST_LAT_CACHE:MISS", NULL };
	size_t instr, part;
	const char *modifier, *ignored;
	struct column *c;

	if (!find_counter(r->t, instructions, NULL, &instr, &modifier))
		return;
	if (find_counter(r->t, cycles, modifier, &part, &ignored)) {
		c = add_column(r, COLUMN_RATIO, "IPC");
		c->counter = instr;
		c->divisor = part;
		c->scale = 1;
	}
	if (find_counter(r->t, misses, modifier, &part, &ignored)) {
		c = add_column(r, COLUMN_RATIO, "MPKI");
		c->counter = part;
		c->divisor = instr;
		c->scale = 1000;
	}
}

static bool any_cgroup(const struct csw_table *t)
{
	const struct csw_row *row;

	for (size_t i = 0; (row = csw_table_row(t, i)) != NULL; i++) {
		if (row->cgroup)
			return true;
	}
	return false;
}

/* Which CPU a thread runs on is no property of a CPU's row, nor is how many run there. */
static void add_columns(struct report *r)
{
	static const char *const names[] = {
		[CSW_BY_THREAD] = "COMM",   [CSW_BY_PROCESS] = "COMM", [CSW_BY_COMM] = "COMM",
		[CSW_BY_CGROUP] = "CGROUP", [CSW_BY_CPU] = "CPU",
	};

	if (r->by == CSW_BY_THREAD || r->by == CSW_BY_PROCESS)
		add_column(r, COLUMN_PID, "PID");
	if (r->by == CSW_BY_THREAD)
		add_column(r, COLUMN_TID, "TID");
	add_column(r, COLUMN_NAME, names[r->by]);
	if (r->by != CSW_BY_CGROUP && any_cgroup(r->t))
		add_column(r, COLUMN_CGROUP, "CGROUP");
	if (r->by != CSW_BY_THREAD && r->by != CSW_BY_CPU)
		add_column(r, COLUMN_THREADS, "THREADS");
	/* Where no switch was recorded there are no such numbers. */
	if (!r->s.estimate || r->s.rows_ns) {
		add_column(r, COLUMN_SLICES, "SLICES");
		add_column(r, COLUMN_ONCPU, "ONCPU(ms)");
		add_column(r, COLUMN_VOLUNTARY, "VOL");
		add_column(r, COLUMN_PREEMPTED, "PRE");
		if (r->by != CSW_BY_CPU)
			add_column(r, COLUMN_MIGRATIONS, "MIGR");
	}
	add_counters(r);
	add_ratios(r);
}

static bool is_name(const struct column *c)
{
	return c->type == COLUMN_NAME || c->type == COLUMN_CGROUP;
}

/* Takes from the widest name until the table fits or no name has anything left to give. */
static void fit(struct report *r)
{
	unsigned width = (r->nr - 1) * GAP;

	for (unsigned k = 0; k < r->nr; k++)
		width += r->columns[k].width;
	while (r->opts->width && width > r->opts->width) {
		struct column *widest = NULL;

		for (unsigned k = 0; k < r->nr; k++) {
			struct column *c = &r->columns[k];

			if (is_name(c) && c->width > NAME_LEAST &&
			    (!widest || c->width > widest->width))
				widest = c;
		}
		if (!widest)
			break;
		widest->width--;
		width--;
	}
}

static void lay_out(struct report *r)
{
	char cell[CELL_BYTES];

	add_columns(r);
	for (unsigned k = 0; k < r->nr; k++)
		r->columns[k].width = csw_text_width(r->columns[k].title);
	for (size_t i = 0; i < csw_table_rows(r->t); i++) {
		for (unsigned k = 0; k < r->nr; k++) {
			unsigned width;

			put_cell(cell, r, i, &r->columns[k]);
			width = csw_text_width(cell);
			if (width > r->columns[k].width)
				r->columns[k].width = width;
		}
	}
	fit(r);
}

/* ---- the table ---- */

static void print_blanks(FILE *file, unsigned nr)
{
	static const char blanks[] = "                                ";

	for (unsigned step; nr; nr -= step) {
		step = nr < sizeof(blanks) - 1 ? nr : (unsigned)sizeof(blanks) - 1;
		fwrite(blanks, 1, step, file);
	}
}

/* printf's field width counts bytes, so the padding is made here. A path says most at its end. */
static void print_cell(const struct report *r, unsigned k, char *text)
{
	const struct column *c = &r->columns[k];
	bool left = is_name(c) && r->by != CSW_BY_CPU;
	unsigned padding, width;

	if (c->type == COLUMN_CGROUP || (c->type == COLUMN_NAME && r->by == CSW_BY_CGROUP))
		csw_text_cut_front(text, c->width);
	else if (is_name(c))
		csw_text_cut(text, c->width);
	width = csw_text_width(text);
	padding = width < c->width ? c->width - width : 0;
	print_blanks(r->file, left ? 0 : padding);
	fputs(text, r->file);
	print_blanks(r->file, (left ? padding : 0) + (k + 1 < r->nr ? GAP : 0));
}

static void begin(const struct report *r, const char *colour)
{
	if (r->opts->colour)
		fputs(colour, r->file);
}

static void end_line(const struct report *r, bool coloured)
{
	if (coloured && r->opts->colour)
		fputs("\033[0m", r->file);
	fputc('\n', r->file);
}

static void print_row(const struct report *r, size_t i)
{
	const struct csw_row *row = csw_table_row(r->t, i);
	bool special = row->kind != CSW_KIND_THREAD && row->kind != CSW_KIND_KERNEL;
	char cell[CELL_BYTES];

	if (special)
		begin(r, "\033[2m"); /* dim */
	for (unsigned k = 0; k < r->nr; k++) {
		put_cell(cell, r, i, &r->columns[k]);
		print_cell(r, k, cell);
	}
	end_line(r, special);
}

static void print_table(const struct report *r)
{
	char title[TITLE_BYTES];

	begin(r, "\033[1m"); /* bold */
	for (unsigned k = 0; k < r->nr; k++)
		print_cell(r, k, strcpy(title, r->columns[k].title));
	end_line(r, true);
	for (size_t i = 0; i < csw_table_rows(r->t) && !ferror(r->file); i++)
		print_row(r, i);
}

/* ---- above and below the table ---- */

static void print_seconds(const struct report *r, uint64_t ns)
{
	uint64_t ms = ns / 1000000 + (ns % 1000000 >= 500000);

	fprintf(r->file, "%s.%03u s", NUM(r, ms / 1000), (unsigned)(ms % 1000));
}

/* Why values are marked; there may be two reasons at once. */
static void print_estimates(const struct report *r)
{
	const struct csw_summary *s = &r->s;

	if (s->sets > 1)
		fprintf(r->file,
			"\nESTIMATE: what is marked ~ is scaled: %" PRIu32
			" sets of counters took turns, as all together do not fit the PMU",
			s->sets);
	else if (s->estimates || (s->estimate && !s->shared_ns))
		fprintf(r->file,
			"\nESTIMATE: what is marked ~ is the sum of the periods of ordinary "
			"samples, "
			"%s in all",
			NUM(r, s->estimates));
	if (s->shared_ns)
		fprintf(r->file,
			"\nESTIMATE: what is marked ~ holds slices of several threads, %s "
			"(--mixed=%s)",
			s->mixed == CSW_MIXED_SPLIT ? "shared by their time on the CPU"
						    : "given to the one that ran last",
			csw_mixed_name(s->mixed));
}

static void print_header(const struct report *r)
{
	const struct csw_summary *s = &r->s;
	char name[CELL_BYTES];

	if (s->simulated)
		fputs("SIMULATED: a simulated machine made these numbers; they are of no real "
		      "machine\n",
		      r->file);
	fprintf(r->file, "trigger %s", csw_escape(name, sizeof(name), s->trigger));
	if (strcmp(s->trigger, s->trigger_became) != 0)
		fprintf(r->file, " (%s)", csw_escape(name, sizeof(name), s->trigger_became));
	/* Of a recording nobody can tell. */
	if (strcmp(s->driver, "perfdata") != 0)
		fputs(s->trigger_hardware ? ", hardware" : ", software", r->file);
	fprintf(r->file, ", sav %s, driver %s, ", NUM(r, s->sav), s->driver);
	if (s->nr_cpus) /* a recording need not say on which */
		fprintf(r->file, "%" PRIu32 " CPU%s, ", s->nr_cpus, s->nr_cpus == 1 ? "" : "s");
	print_seconds(r, s->duration_ns);
	if (s->trigger_forced)
		fprintf(r->file, "\nforced: %s", s->trigger_forced);
	print_estimates(r);
	fputs("\n\n", r->file);
}

/* Cut, not rounded: 99.999 % is not 100. */
static void print_share(FILE *file, uint64_t part, uint64_t whole)
{
	unsigned hundredths;

	if (!whole) {
		fputs("-", file);
		return;
	}
	hundredths = (unsigned)(1e4 * ((double)part / (double)whole));
	if (hundredths >= 10000 && part < whole)
		hundredths = 9999;
	fprintf(file, "%u.%02u %%", hundredths / 100, hundredths % 100);
}

static void print_totals(const struct report *r)
{
	uint64_t in_scope = csw_view_threads_in_scope(r->t);

	fprintf(r->file, "\nthreads %s", NUM(r, r->s.threads));
	if (in_scope != r->s.threads)
		fprintf(r->file, " (%s of them in scope)", NUM(r, in_scope));
	if (!r->s.slices && r->s.estimate) {
		fprintf(r->file, ", samples %s, no slice\n", NUM(r, r->s.estimates));
		return;
	}
	fprintf(r->file, ", slices %s, exact ", NUM(r, r->s.slices));
	print_share(r->file, r->s.exact_ns, r->s.oncpu_ns);
	fprintf(r->file, " of the time on a CPU, lost %s, unseen %s\n", NUM(r, r->s.lost),
		NUM(r, r->s.unseen));
}

/* A trigger named after loads that sees stores as well says how many of them it saw. */
static void print_accesses(const struct report *r)
{
	char name[CELL_BYTES];
	struct csw_accesses a;

	if (!csw_report_accesses(r->t, &r->s, &a))
		return;
	csw_escape(name, sizeof(name), r->s.trigger);
	if (a.known)
		fprintf(r->file, "%s: %s accesses, of which %s stores: %s loads\n", name,
			NUM(r, a.all), NUM(r, a.stores), NUM(r, a.loads));
	else
		fprintf(r->file, "%s: %s accesses, loads and an unknown number of stores\n", name,
			NUM(r, a.all));
}

/* How far the estimate of --mixed reaches: of the time here, of each counter with its sums. */
static void print_shared_time(const struct report *r)
{
	if (!r->s.shared_ns)
		return;
	fprintf(r->file, "mixed %s: slices of several threads, ", csw_mixed_name(r->s.mixed));
	print_share(r->file, r->s.shared_ns, r->s.oncpu_ns);
	fputs(" of the time on a CPU, are in the threads' rows by estimate\n", r->file);
}

static void print_completeness(const struct report *r)
{
	const struct csw_summary *s = &r->s;
	uint64_t sum = s->sav * s->samples + s->lost + s->throttled + s->unseen + s->open;

	fprintf(r->file,
		"completeness %s: trigger %s %s sav %s x samples %s + lost %s + throttled %s + "
		"unseen %s + open %s\n",
		s->triggers == sum ? "ok" : "BROKEN", NUM(r, s->triggers),
		s->triggers == sum ? "=" : "is not", NUM(r, s->sav), NUM(r, s->samples),
		NUM(r, s->lost), NUM(r, s->throttled), NUM(r, s->unseen), NUM(r, s->open));
}

/* The sums hold all the same: they are of what was counted. */
static void print_cpus(const struct report *r)
{
	if (r->s.cpus_missed)
		fprintf(r->file, "CPUs: %" PRIu32 " came online after the start%s",
			r->s.cpus_missed, r->s.cpus_gone ? ", " : "");
	else if (r->s.cpus_gone)
		fputs("CPUs: ", r->file);
	if (r->s.cpus_gone)
		fprintf(r->file, "%" PRIu32 " went offline", r->s.cpus_gone);
	if (r->s.cpus_missed || r->s.cpus_gone)
		fputs(": what ran there then is not counted\n", r->file);
}

/* Counters aside, time must add up as well: every ns of every CPU is somebody's. */
static void print_time(const struct report *r)
{
	bool ok = r->s.cpu_ns == r->s.rows_ns;

	if (r->s.cpu_ns)
		fprintf(r->file, "time %s: CPUs %s ns %s rows %s ns\n", ok ? "ok" : "BROKEN",
			NUM(r, r->s.cpu_ns), ok ? "=" : "are not", NUM(r, r->s.rows_ns));
}

static void print_conservation(const struct report *r, const struct csw_counter *c)
{
	char name[CELL_BYTES];
	const char *unit = c->nanoseconds ? " ns" : "";
	int64_t difference = csw_report_difference(c);
	uint64_t magnitude = difference < 0 ? -(uint64_t)difference : (uint64_t)difference;
	bool scaled;
	uint64_t total = csw_report_total(c, &scaled);

	csw_escape(name, sizeof(name), c->name);
	if (c->flags & CSW_COUNT_NOT_COUNTED) {
		fprintf(r->file, "conservation %s: never counted", name);
		if (c->running_ns) {
			fputs(", not once in ", r->file);
			print_seconds(r, c->running_ns);
			fputs(" over all CPUs: this PMU may not have the event", r->file);
		}
		fputc('\n', r->file);
		return;
	}
	if (c->flags & CSW_COUNT_IMPOSSIBLE)
		fprintf(r->file,
			"conservation %s BROKEN: counter %s ns, and the CPUs had %s ns: a reading "
			"was "
			"wrong\n",
			name, NUM(r, c->total), NUM(r, r->s.cpu_ns));
	else if (difference)
		fprintf(r->file,
			"conservation %s BROKEN: counter %s%s, rows %s%s, difference %s%s%s\n",
			name, NUM(r, c->total), unit, NUM(r, c->rows), unit,
			difference < 0 ? "-" : "", NUM(r, magnitude), unit);
	else if (c->flags & CSW_COUNT_ESTIMATE)
		fprintf(r->file, "%s~: %s%s in all rows\n", name, NUM(r, c->rows), unit);
	else
		fprintf(r->file,
			"conservation %s ok: counter %s%s = rows %s%s, of no proven thread %s%s\n",
			name, NUM(r, c->total), unit, NUM(r, c->rows), unit, NUM(r, c->unproven),
			unit);
	if (c->shared)
		fprintf(r->file, "shared %s: %s of %s%s, of slices of several threads\n", name,
			NUM(r, c->shared), NUM(r, c->total), unit);
	if (c->flags & CSW_COUNT_SCALED) {
		fprintf(r->file, "scaled %s: it ran ", name);
		print_share(r->file, c->running_ns, c->enabled_ns);
		fprintf(r->file, " of the time, %s%s in all of it; the sums above are counted\n",
			scaled ? "~" : "", NUM(r, total));
	} else if (c->running_ns < c->enabled_ns) {
		fprintf(r->file, "%s counted only ", name);
		print_share(r->file, c->running_ns, c->enabled_ns);
		fputs(" of the time: its values are lower bounds\n", r->file);
	}
}

static void print_counter_details(const struct report *r, const struct csw_counter *c)
{
	char name[CELL_BYTES], became[CELL_BYTES];

	fprintf(r->file, "counter %s counts %s: enabled ", csw_escape(name, sizeof(name), c->name),
		csw_escape(became, sizeof(became), c->became));
	print_seconds(r, c->enabled_ns);
	fputs(", running ", r->file);
	print_seconds(r, c->running_ns);
	fputs(" over all CPUs\n", r->file);
}

static void print_details(const struct report *r)
{
	fprintf(r->file, "owner disagreements %s: samples whose own TID is not the trigger's\n",
		NUM(r, r->s.owner_disagreements));
	fprintf(r->file, "switch contradictions %s: switch records that deny the one before them\n",
		NUM(r, r->s.switches_unseen));
	fprintf(r->file, "lost records %s of all kinds; throttles %s\n", NUM(r, r->s.lost_records),
		NUM(r, r->s.throttles));
	if (r->s.ring_bytes)
		fprintf(r->file, "ring of each CPU %s KiB\n", NUM(r, r->s.ring_bytes >> 10));
}

/* A name that became something else is told even without --verbose: no event silently becomes
 * another. */
static void print_became(const struct report *r)
{
	char name[CELL_BYTES], became[CELL_BYTES];
	struct csw_counter c;
	const char *before = "counted ";

	for (size_t j = 0; csw_table_counter(r->t, j, &c) == 0; j++) {
		if (strcmp(c.name, c.became) == 0)
			continue;
		fprintf(r->file, "%s%s = %s", before, csw_escape(name, sizeof(name), c.name),
			csw_escape(became, sizeof(became), c.became));
		before = ", ";
	}
	if (*before == ',')
		fputc('\n', r->file);
}

static void print_footer(const struct report *r)
{
	struct csw_counter c;
	char why[4 * CSW_WHY_BYTES];

	print_totals(r);
	print_shared_time(r);
	if (csw_view_counts_trigger(r->t) || r->s.broken)
		print_completeness(r);
	print_accesses(r);
	print_cpus(r);
	print_time(r);
	for (size_t j = 0; csw_table_counter(r->t, j, &c) == 0; j++)
		print_conservation(r, &c);
	if (r->opts->verbose) {
		for (size_t j = 0; csw_table_counter(r->t, j, &c) == 0; j++)
			print_counter_details(r, &c);
		print_details(r);
	} else {
		print_became(r);
	}
	if (r->s.broken)
		fprintf(r->file, "BROKEN: these numbers do not add up; do not trust them: %s\n",
			csw_escape(why, sizeof(why), r->s.broken_why));
}

int csw_report_text(const struct csw_table *t, FILE *file, const struct csw_report_opts *opts,
		    struct csw_error *err)
{
	struct report r = { .t = t, .opts = opts, .file = file, .by = csw_view_by(t) };
	int ret = csw_table_summary(t, &r.s, sizeof(r.s));

	if (ret < 0)
		return csw_error_set(err, ret, "the table has no summary");
	lay_out(&r);
	print_header(&r);
	print_table(&r);
	if (opts->histogram)
		csw_report_histogram(t, file, opts);
	print_footer(&r);
	return 0;
}
