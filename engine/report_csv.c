/*
 * The report for spreadsheets and data frames: a header line, then a line per row, quoted as RFC
 * 4180 has it (but for the line ends, which are \n).
 *
 * Columns: kind, pid, tid, comm, cgroup, cpu, nr_threads, slices, oncpu_ns, voluntary, preempted,
 * migrations, exact_ns, then of every counter NAME, NAME:enabled_ns, NAME:running_ns, NAME:min,
 * NAME:max, where it is estimated NAME:samples, where it took turns NAME:scaled, where slices of
 * several threads are shared NAME:shared and, with rates, NAME:per_second, NAME:share. They mean
 * what docs/report.schema.json says of the fields of these names. A cell is empty where the row has
 * no such thing: no PID, never counted. Totals, completeness and histograms have no place in it;
 * JSON has them.
 *
 * Invariant: a text cell holds neither unsafe characters (engine/text: they become \xNN, a
 * backslash two) nor the beginning of a formula: where it would begin with = + - or @, a ' comes
 * first.
 */
#include "engine/report.h"

#include <inttypes.h>
#include <string.h>

#include "engine/error.h"
#include "engine/report_common.h"
#include "engine/text.h"
#include "engine/view.h"

/* A cgroup's path may have 4095 bytes, and each may take 4. */
#define TEXT_BYTES (4 * 4096)

static void put_escaped(FILE *file, const char *escaped)
{
	const char *formula = strchr("=+-@", *escaped) && *escaped ? "'" : "";

	if (!strpbrk(escaped, ",\"")) {
		fprintf(file, "%s%s", formula, escaped);
		return;
	}
	fprintf(file, "\"%s", formula);
	for (const char *c = escaped; *c; c++)
		fprintf(file, *c == '"' ? "\"\"" : "%c", *c);
	fputc('"', file);
}

static bool is(const struct csw_table *t, size_t j, uint32_t flag)
{
	struct csw_counter counter = { .flags = 0 };

	csw_table_counter(t, j, &counter);
	return counter.flags & flag;
}

static void put_text(FILE *file, const char *text)
{
	char escaped[TEXT_BYTES];

	put_escaped(file, csw_escape(escaped, sizeof(escaped), text));
}

/* shares: whether slices of several threads are shared, if there are any. */
static void put_header(FILE *file, const struct csw_table *t, const struct csw_keys *keys,
		       bool rate, bool shares)
{
	static const char *const parts[] = { "",        ":enabled_ns", ":running_ns",
					     ":min",    ":max",        ":samples",
					     ":scaled", ":shared",     ":per_second",
					     ":share" };
	size_t nr = sizeof(parts) / sizeof(*parts) - (rate ? 0 : 2);
	const size_t samples = 5, scaled = 6, shared = 7;

	fputs("kind,pid,tid,comm,cgroup,cpu,nr_threads,slices,oncpu_ns,voluntary,preempted,"
	      "migrations,exact_ns",
	      file);
	for (size_t j = 0; j < keys->nr; j++) {
		for (size_t k = 0; k < nr; k++) {
			char title[CSW_KEY_BYTES + 16];

			if ((k == samples && !is(t, j, CSW_COUNT_ESTIMATE)) ||
			    (k == scaled && !is(t, j, CSW_COUNT_SCALED)) ||
			    (k == shared && !shares))
				continue;
			snprintf(title, sizeof(title), "%s%s", keys->text[j], parts[k]);
			fputc(',', file);
			put_escaped(file, title); /* keys are escaped */
		}
	}
	fputc('\n', file);
}

static void put_number(FILE *file, uint64_t value)
{
	fprintf(file, ",%" PRIu64, value);
}

static void put_id(FILE *file, int32_t id)
{
	if (id < 0)
		fputc(',', file);
	else
		fprintf(file, ",%" PRId32, id);
}

static void put_rate(FILE *file, bool known, double value)
{
	if (known)
		fprintf(file, ",%.17g", value);
	else
		fputc(',', file);
}

static void put_count(FILE *file, const struct csw_table *t, size_t i, size_t j,
		      const struct csw_summary *s, bool rate)
{
	struct csw_count count = { .flags = CSW_COUNT_NOT_COUNTED };
	struct csw_counter counter;
	double per_second = 0, share = 0;
	bool counted, has_rate, has_share, estimate;
	uint64_t value;

	csw_table_count(t, i, j, &count);
	csw_table_counter(t, j, &counter);
	counted = csw_report_value(&count, &value, &estimate);
	if (counted)
		put_number(file, count.value);
	else
		fputc(',', file);
	put_number(file, count.enabled_ns);
	put_number(file, count.running_ns);
	if (counted)
		fprintf(file, ",%" PRIu64 ",%" PRIu64, count.min, count.max);
	else
		fputs(",,", file);
	if (counter.flags & CSW_COUNT_ESTIMATE)
		put_number(file, count.samples);
	if ((counter.flags & CSW_COUNT_SCALED) && counted)
		put_number(file, value);
	else if (counter.flags & CSW_COUNT_SCALED)
		fputc(',', file);
	if (s->mixed != CSW_MIXED_ROW && counted && (count.flags & CSW_COUNT_SHARED))
		put_number(file, count.shared);
	else if (s->mixed != CSW_MIXED_ROW)
		fputc(',', file);
	if (!rate)
		return;
	has_rate = csw_report_per_second(s->duration_ns, value, &per_second);
	has_share = csw_report_share(&counter, value, &share);
	put_rate(file, counted && has_rate, per_second);
	put_rate(file, counted && has_share, share);
}

static void put_row(FILE *file, const struct csw_table *t, const struct csw_row *row)
{
	fputs(csw_report_kind(t, row), file);
	put_id(file, row->pid);
	put_id(file, row->tid);
	fputc(',', file);
	put_text(file, row->comm);
	fputc(',', file);
	put_text(file, row->cgroup ? row->cgroup : "");
	put_id(file, row->cpu);
	if (csw_view_by(t) == CSW_BY_CPU)
		fputc(',', file);
	else
		put_number(file, row->nr_threads);
	put_number(file, row->slices);
	put_number(file, row->oncpu_ns);
	put_number(file, row->voluntary);
	put_number(file, row->preempted);
	put_number(file, row->migrations);
	put_number(file, row->exact_ns);
}

int csw_report_csv(const struct csw_table *t, FILE *file, const struct csw_report_opts *opts,
		   struct csw_error *err)
{
	struct csw_summary s;
	struct csw_keys keys;
	int ret = csw_table_summary(t, &s, sizeof(s));

	if (ret < 0)
		return csw_error_set(err, ret, "the table has no summary");
	csw_report_keys(&keys, t);
	if (!opts->line)
		put_header(file, t, &keys, opts->rate, s.mixed != CSW_MIXED_ROW);
	for (size_t i = 0; i < csw_table_rows(t) && !ferror(file); i++) {
		put_row(file, t, csw_table_row(t, i));
		for (size_t j = 0; j < keys.nr; j++)
			put_count(file, t, i, j, &s, opts->rate);
		fputc('\n', file);
	}
	return 0;
}
