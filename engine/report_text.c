/*
 * The report for people: a table whose columns are as wide as their content, and the proofs below
 * it.
 *
 * Every cell is made twice, once for the width and once to print, so that memory does not grow with
 * the rows.
 */
#include "engine/report.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/error.h"
#include "engine/event.h"
#include "engine/view.h"

/* An escaped byte takes 4; a name of 127 bytes and what stands around it fit. */
#define CELL_BYTES 640
#define COLUMNS_MAX (CSW_COUNTERS_MAX + 12)

enum column_type {
	COLUMN_PID,
	COLUMN_TID,
	COLUMN_COMM,
	COLUMN_THREADS,
	COLUMN_SLICES,
	COLUMN_ONCPU,
	COLUMN_VOLUNTARY,
	COLUMN_PREEMPTED,
	COLUMN_COUNTER,
	COLUMN_RATIO,
};

struct column {
	uint32_t type;  /* enum column_type */
	unsigned width; /* terminal cells */
	size_t counter; /* the counter, or the ratio's dividend */
	size_t divisor;
	unsigned scale; /* of the ratio */
	bool nanoseconds;
	char title[CELL_BYTES];
};

struct layout {
	const struct csw_table *table;
	unsigned nr;
	struct column columns[COLUMNS_MAX];
};

/* ---- the width of text on a terminal ---- */

struct range {
	uint32_t first, last;
};

static bool lies_in(uint32_t point, const struct range *ranges, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (point >= ranges[i].first && point <= ranges[i].last)
			return true;
	}
	return false;
}

/* wcwidth() would need the caller's locale, which a library must not set. The large blocks are
 * enough for padding. */
static unsigned point_width(uint32_t point)
{
	static const struct range none[] = { { 0x300, 0x36f },   { 0x200b, 0x200f },
					     { 0x202a, 0x202e }, { 0x2060, 0x206f },
					     { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f },
					     { 0xfeff, 0xfeff } };
	static const struct range wide[] = { { 0x1100, 0x115f },   { 0x2e80, 0xa4cf },
					     { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },
					     { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },
					     { 0xffe0, 0xffe6 },   { 0x1f300, 0x1f64f },
					     { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd } };

	if (lies_in(point, none, sizeof(none) / sizeof(*none)))
		return 0;
	return lies_in(point, wide, sizeof(wide) / sizeof(*wide)) ? 2 : 1;
}

static unsigned text_width(const char *s)
{
	unsigned width = 0;
	uint32_t point;
	int bytes;

	while ((bytes = csw_utf8_next(s, &point)) != 0) {
		width += bytes > 0 ? point_width(point) : 1;
		s += bytes > 0 ? bytes : 1;
	}
	return width;
}

/* ---- cells ---- */

static void put_ms(char *out, size_t bytes, uint64_t ns)
{
	uint64_t us = ns / 1000 + (ns % 1000 >= 500);

	snprintf(out, bytes, "%" PRIu64 ".%03u", us / 1000, (unsigned)(us % 1000));
}

static void put_id(char *out, size_t bytes, int32_t id)
{
	if (id < 0)
		snprintf(out, bytes, "-");
	else
		snprintf(out, bytes, "%" PRId32, id);
}

/* A thread may call itself "[idle]", but then it has a PID; what is no thread of user space stands
 * in brackets. */
static void put_comm(char *out, size_t bytes, const struct csw_row *row)
{
	char name[CELL_BYTES / 2];

	csw_escape(name, sizeof(name), row->comm);
	if (row->kind == CSW_KIND_THREAD || row->kind == CSW_KIND_KERNEL)
		snprintf(out, bytes, "%s", name);
	else
		snprintf(out, bytes, "[%s]%s%s", csw_kind_name(row->kind), *name ? " " : "", name);
}

static void put_count(char *out, size_t bytes, const struct csw_count *count, bool nanoseconds)
{
	if (count->flags & CSW_COUNT_NOT_COUNTED)
		snprintf(out, bytes, "-");
	else if (nanoseconds)
		put_ms(out, bytes, count->value);
	else
		snprintf(out, bytes, "%" PRIu64, count->value);
}

static void put_ratio(char *out, size_t bytes, const struct layout *l, size_t i,
		      const struct column *c)
{
	struct csw_count dividend = { .flags = CSW_COUNT_NOT_COUNTED }, divisor = dividend;

	csw_table_count(l->table, i, c->counter, &dividend);
	csw_table_count(l->table, i, c->divisor, &divisor);
	if (((dividend.flags | divisor.flags) & CSW_COUNT_NOT_COUNTED) || !divisor.value)
		snprintf(out, bytes, "-");
	else
		snprintf(out, bytes, "%.2f",
			 c->scale * (double)dividend.value / (double)divisor.value);
}

static void put_cell(char *out, size_t bytes, const struct layout *l, size_t i,
		     const struct column *c)
{
	const struct csw_row *row = csw_table_row(l->table, i);
	struct csw_count count = { .flags = CSW_COUNT_NOT_COUNTED };

	switch (c->type) {
	case COLUMN_PID:
		put_id(out, bytes, row->pid);
		break;
	case COLUMN_TID:
		put_id(out, bytes, row->tid);
		break;
	case COLUMN_COMM:
		put_comm(out, bytes, row);
		break;
	case COLUMN_THREADS:
		snprintf(out, bytes, "%" PRIu32, row->nr_threads);
		break;
	case COLUMN_SLICES:
		snprintf(out, bytes, "%" PRIu64, row->slices);
		break;
	case COLUMN_ONCPU:
		put_ms(out, bytes, row->oncpu_ns);
		break;
	case COLUMN_VOLUNTARY:
		snprintf(out, bytes, "%" PRIu64, row->voluntary);
		break;
	case COLUMN_PREEMPTED:
		snprintf(out, bytes, "%" PRIu64, row->preempted);
		break;
	case COLUMN_COUNTER:
		csw_table_count(l->table, i, c->counter, &count);
		put_count(out, bytes, &count, c->nanoseconds);
		break;
	case COLUMN_RATIO:
		put_ratio(out, bytes, l, i, c);
		break;
	}
}

/* ---- columns ---- */

static struct column *add_column(struct layout *l, uint32_t type, const char *title)
{
	struct column *c = &l->columns[l->nr++];

	c->type = type;
	snprintf(c->title, sizeof(c->title), "%s", title);
	return c;
}

static void add_counters(struct layout *l)
{
	struct csw_counter counter;

	for (size_t j = 0; csw_table_counter(l->table, j, &counter) == 0; j++) {
		struct column *c = add_column(l, COLUMN_COUNTER, "");

		csw_escape(c->title, sizeof(c->title) - sizeof("(ms)"), counter.name);
		if (counter.nanoseconds)
			strcat(c->title, "(ms)");
		c->counter = j;
		c->nanoseconds = counter.nanoseconds;
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
static void add_ratios(struct layout *l)
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

	if (!find_counter(l->table, instructions, NULL, &instr, &modifier))
		return;
	if (find_counter(l->table, cycles, modifier, &part, &ignored)) {
		c = add_column(l, COLUMN_RATIO, "IPC");
		c->counter = instr;
		c->divisor = part;
		c->scale = 1;
	}
	if (find_counter(l->table, misses, modifier, &part, &ignored)) {
		c = add_column(l, COLUMN_RATIO, "MPKI");
		c->counter = part;
		c->divisor = instr;
		c->scale = 1000;
	}
}

static void lay_out(struct layout *l)
{
	char cell[CELL_BYTES];

	add_column(l, COLUMN_PID, "PID");
	if (csw_view_by(l->table) == CSW_BY_THREAD)
		add_column(l, COLUMN_TID, "TID");
	add_column(l, COLUMN_COMM, "COMM");
	if (csw_view_by(l->table) == CSW_BY_PROCESS)
		add_column(l, COLUMN_THREADS, "THREADS");
	add_column(l, COLUMN_SLICES, "SLICES");
	add_column(l, COLUMN_ONCPU, "ONCPU(ms)");
	add_column(l, COLUMN_VOLUNTARY, "VOL");
	add_column(l, COLUMN_PREEMPTED, "PRE");
	add_counters(l);
	add_ratios(l);
	for (unsigned k = 0; k < l->nr; k++)
		l->columns[k].width = text_width(l->columns[k].title);
	for (size_t i = 0; i < csw_table_rows(l->table); i++) {
		for (unsigned k = 0; k < l->nr; k++) {
			unsigned width;

			put_cell(cell, sizeof(cell), l, i, &l->columns[k]);
			width = text_width(cell);
			if (width > l->columns[k].width)
				l->columns[k].width = width;
		}
	}
}

/* printf's field width counts bytes, so the padding is made here. */
static void print_cell(FILE *file, const struct layout *l, unsigned k, const char *text)
{
	const struct column *c = &l->columns[k];
	int padding = (int)(c->width - text_width(text));
	const char *end = k + 1 < l->nr ? "  " : "\n";

	if (c->type == COLUMN_COMM)
		fprintf(file, "%s%*s%s", text, padding, "", end);
	else
		fprintf(file, "%*s%s%s", padding, "", text, end);
}

static void print_table(FILE *file, const struct layout *l)
{
	char cell[CELL_BYTES];

	for (unsigned k = 0; k < l->nr; k++)
		print_cell(file, l, k, l->columns[k].title);
	for (size_t i = 0; i < csw_table_rows(l->table) && !ferror(file); i++) {
		for (unsigned k = 0; k < l->nr; k++) {
			put_cell(cell, sizeof(cell), l, i, &l->columns[k]);
			print_cell(file, l, k, cell);
		}
	}
}

/* ---- above and below the table ---- */

static void print_seconds(FILE *file, uint64_t ns)
{
	uint64_t ms = ns / 1000000 + (ns % 1000000 >= 500000);

	fprintf(file, "%" PRIu64 ".%03u s", ms / 1000, (unsigned)(ms % 1000));
}

static void print_header(FILE *file, const struct csw_summary *s)
{
	char name[CELL_BYTES];

	if (s->simulated)
		fputs("SIMULATED: a simulated machine made these numbers; they are of no real "
		      "machine\n",
		      file);
	fprintf(file, "trigger %s", csw_escape(name, sizeof(name), s->trigger));
	if (strcmp(s->trigger, s->trigger_became) != 0)
		fprintf(file, " (%s)", csw_escape(name, sizeof(name), s->trigger_became));
	fprintf(file, ", sav %" PRIu64 ", driver %s, %" PRIu32 " CPU%s, ", s->sav, s->driver,
		s->nr_cpus, s->nr_cpus == 1 ? "" : "s");
	print_seconds(file, s->duration_ns);
	fputs("\n\n", file);
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

static uint64_t threads_shown(const struct csw_table *t)
{
	const struct csw_row *row;
	uint64_t nr = 0;

	for (size_t i = 0; (row = csw_table_row(t, i)) != NULL; i++) {
		if (row->kind == CSW_KIND_THREAD || row->kind == CSW_KIND_KERNEL)
			nr += row->nr_threads;
	}
	return nr;
}

static void print_totals(FILE *file, const struct csw_table *t, const struct csw_summary *s)
{
	uint64_t shown = threads_shown(t);

	fprintf(file, "\nthreads %" PRIu64, s->threads);
	if (shown != s->threads)
		fprintf(file, " (%" PRIu64 " of them in scope)", shown);
	fprintf(file, ", slices %" PRIu64 ", exact ", s->slices);
	print_share(file, s->exact_ns, s->oncpu_ns);
	fprintf(file, " of the time on a CPU, lost %" PRIu64 ", unseen %" PRIu64 "\n", s->lost,
		s->unseen);
}

static void print_completeness(FILE *file, const struct csw_summary *s)
{
	uint64_t sum = s->sav * s->samples + s->lost + s->throttled + s->unseen + s->open;

	fprintf(file,
		"completeness %s: trigger %" PRIu64 " %s sav %" PRIu64 " x samples %" PRIu64
		" + lost %" PRIu64 " + throttled %" PRIu64 " + unseen %" PRIu64 " + open %" PRIu64
		"\n",
		s->triggers == sum ? "ok" : "BROKEN", s->triggers,
		s->triggers == sum ? "=" : "is not", s->sav, s->samples, s->lost, s->throttled,
		s->unseen, s->open);
}

static void print_conservation(FILE *file, const struct csw_counter *c)
{
	char name[CELL_BYTES];
	int64_t difference = csw_report_difference(c);

	csw_escape(name, sizeof(name), c->name);
	if (c->flags & CSW_COUNT_NOT_COUNTED) {
		fprintf(file, "conservation %s: never counted", name);
		if (c->running_ns) {
			fputs(", not once in ", file);
			print_seconds(file, c->running_ns);
			fputs(" over all CPUs: this PMU may not have the event", file);
		}
		fputc('\n', file);
		return;
	}
	if (difference)
		fprintf(file,
			"conservation %s BROKEN: counter %" PRIu64 ", rows %" PRIu64
			", difference %" PRId64 "\n",
			name, c->total, c->rows, difference);
	else
		fprintf(file,
			"conservation %s ok: counter %" PRIu64 " = rows %" PRIu64
			", of no proven thread %" PRIu64 "\n",
			name, c->total, c->rows, c->unproven);
	if (c->running_ns < c->enabled_ns) {
		fprintf(file, "%s counted only ", name);
		print_share(file, c->running_ns, c->enabled_ns);
		fputs(" of the time: its values are lower bounds\n", file);
	}
}

static void print_counter_details(FILE *file, const struct csw_counter *c)
{
	char name[CELL_BYTES], became[CELL_BYTES];

	fprintf(file, "counter %s counts %s: enabled ", csw_escape(name, sizeof(name), c->name),
		csw_escape(became, sizeof(became), c->became));
	print_seconds(file, c->enabled_ns);
	fputs(", running ", file);
	print_seconds(file, c->running_ns);
	fputs(" over all CPUs\n", file);
}

static void print_details(FILE *file, const struct csw_summary *s)
{
	fprintf(file,
		"owner disagreements %" PRIu64 ": samples whose own TID is not the trigger's\n",
		s->owner_disagreements);
	fprintf(file,
		"switch contradictions %" PRIu64 ": switch records that deny the one before them\n",
		s->switches_unseen);
	fprintf(file, "lost records %" PRIu64 " of all kinds; throttles %" PRIu64 "\n",
		s->lost_records, s->throttles);
}

/* A name that became something else is told even without --verbose: no event silently becomes
 * another. */
static void print_became(FILE *file, const struct csw_table *t)
{
	char name[CELL_BYTES], became[CELL_BYTES];
	struct csw_counter c;
	const char *before = "counted ";

	for (size_t j = 0; csw_table_counter(t, j, &c) == 0; j++) {
		if (strcmp(c.name, c.became) == 0)
			continue;
		fprintf(file, "%s%s = %s", before, csw_escape(name, sizeof(name), c.name),
			csw_escape(became, sizeof(became), c.became));
		before = ", ";
	}
	if (*before == ',')
		fputc('\n', file);
}

static void print_footer(FILE *file, const struct csw_table *t, const struct csw_summary *s,
			 int verbose)
{
	struct csw_counter c;

	print_totals(file, t, s);
	print_completeness(file, s);
	for (size_t j = 0; csw_table_counter(t, j, &c) == 0; j++)
		print_conservation(file, &c);
	if (verbose) {
		for (size_t j = 0; csw_table_counter(t, j, &c) == 0; j++)
			print_counter_details(file, &c);
		print_details(file, s);
	} else {
		print_became(file, t);
	}
	if (s->broken)
		fputs("BROKEN: these numbers do not add up; do not trust them\n", file);
}

int csw_report_text(const struct csw_table *t, FILE *file, int verbose, struct csw_error *err)
{
	struct layout l = { .table = t };
	struct csw_summary s;
	int ret = csw_table_summary(t, &s, sizeof(s));

	if (ret < 0)
		return csw_error_set(err, ret, "the table has no summary");
	lay_out(&l);
	print_header(file, &s);
	print_table(file, &l);
	print_footer(file, t, &s, verbose);
	return 0;
}
