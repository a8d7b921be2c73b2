/*
 * Histograms drawn in ASCII; see report_histogram.h.
 *
 * Invariant: a bucket that holds a slice is never drawn empty, and every bar has its count beside
 * it: the drawing is for the eye, the numbers are exact.
 */
#include "engine/report_histogram.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "engine/report_common.h"
#include "engine/text.h"
#include "engine/view.h"

#define BAR_MOST 50
#define BAR_LEAST 10
#define LABEL_WIDTH 40
#define LIMITS_BYTES (2 * CSW_NUMBER_BYTES + 4)

struct drawing {
	FILE *file;
	bool raw;
	size_t first, last; /* of the buckets that hold anything */
	uint64_t most, slices;
	unsigned limits_width, bar_width;
	uint64_t buckets[CSW_BUCKETS];
};

/* The values that fall into bucket k: "0", "1", "2 - 3", "4 - 7", ... */
static const char *limits(char *out, size_t k, bool raw)
{
	uint64_t from = k ? 1ull << (k - 1) : 0;
	uint64_t to = k > 1 ? from + (from - 1) : from;
	char a[CSW_NUMBER_BYTES], b[CSW_NUMBER_BYTES];

	csw_text_number(a, from, raw);
	if (to == from)
		snprintf(out, LIMITS_BYTES, "%s", a);
	else
		snprintf(out, LIMITS_BYTES, "%s - %s", a, csw_text_number(b, to, raw));
	return out;
}

static void measure(struct drawing *d, unsigned width)
{
	char text[LIMITS_BYTES];
	unsigned around;

	d->first = CSW_BUCKETS;
	d->most = d->slices = 0;
	d->limits_width = 0;
	for (size_t k = 0; k < CSW_BUCKETS; k++) {
		if (!d->buckets[k])
			continue;
		if (d->first == CSW_BUCKETS)
			d->first = k;
		d->last = k;
		d->slices += d->buckets[k];
		if (d->buckets[k] > d->most)
			d->most = d->buckets[k];
	}
	for (size_t k = d->first; k < CSW_BUCKETS && k <= d->last; k++) {
		unsigned cells = csw_text_width(limits(text, k, d->raw));

		if (cells > d->limits_width)
			d->limits_width = cells;
	}
	around = d->limits_width + csw_text_width(csw_text_number(text, d->most, d->raw)) + 6;
	d->bar_width = BAR_MOST;
	if (width && width < around + BAR_MOST)
		d->bar_width = width > around + BAR_LEAST ? width - around : BAR_LEAST;
}

static void draw_bucket(const struct drawing *d, size_t k)
{
	char text[LIMITS_BYTES], count[CSW_NUMBER_BYTES], bar[BAR_MOST + 1];
	double part = (double)d->buckets[k] / (double)d->most;
	unsigned cells = (unsigned)(part * d->bar_width);

	if (!cells && d->buckets[k])
		cells = 1;
	memset(bar, '#', cells);
	bar[cells] = '\0';
	fprintf(d->file, "  %*s  %s%s%s\n", (int)d->limits_width, limits(text, k, d->raw), bar,
		cells ? "  " : "", csw_text_number(count, d->buckets[k], d->raw));
}

static void draw(const struct drawing *d, const char *name, bool nanoseconds)
{
	char number[CSW_NUMBER_BYTES], each[CSW_NUMBER_BYTES];
	uint64_t scale = d->most / d->bar_width + (d->most % d->bar_width != 0);

	fprintf(d->file, "\n%s per slice%s: %s whole slices", name, nanoseconds ? ", in ns" : "",
		csw_text_number(number, d->slices, d->raw));
	if (!d->slices) {
		fputc('\n', d->file);
		return;
	}
	/* Fewer slices than places: the bars are stretched, and their numbers say all. */
	if (d->most > d->bar_width)
		fprintf(d->file, ", # for up to %s", csw_text_number(each, scale, d->raw));
	fputc('\n', d->file);
	for (size_t k = d->first; k <= d->last; k++)
		draw_bucket(d, k);
}

/* ---- a line per row ---- */

static void print_label(FILE *file, const struct csw_table *t, const struct csw_row *row)
{
	char name[CSW_LABEL_BYTES];

	csw_report_name(name, t, row);
	csw_text_cut(name, LABEL_WIDTH);
	if (row->pid >= 0)
		fprintf(file, "%" PRId32, row->pid);
	if (row->tid >= 0)
		fprintf(file, "/%" PRId32, row->tid);
	fprintf(file, "%s%s\n", row->pid >= 0 ? " " : "", name);
}

/* A character per bucket, from the sum's first to its last. */
static void draw_row(const struct drawing *all, const struct csw_table *t, size_t i, size_t j)
{
	static const char shades[] = ".:-=+*#%@";
	char number[CSW_NUMBER_BYTES], line[CSW_BUCKETS + 1];
	struct drawing d = { .raw = all->raw };
	size_t nr = all->last - all->first + 1;

	csw_table_histogram(t, i, j, d.buckets);
	measure(&d, 0);
	if (!d.slices)
		return;
	for (size_t k = 0; k < nr; k++) {
		double part = (double)d.buckets[all->first + k] / (double)d.most;

		line[k] = part > 0 ? shades[(size_t)(part * (sizeof(shades) - 2))] : ' ';
	}
	line[nr] = '\0';
	fprintf(all->file, "  |%s|  %s  ", line, csw_text_number(number, d.slices, d.raw));
	print_label(all->file, t, csw_table_row(t, i));
}

static void draw_rows(const struct drawing *all, const struct csw_table *t, size_t j)
{
	char from[LIMITS_BYTES], to[LIMITS_BYTES];

	if (!all->slices)
		return;
	fprintf(all->file,
		"each row, a character per bucket from %s to %s, from . to @ = its fullest; whole "
		"slices:\n",
		limits(from, all->first, all->raw), limits(to, all->last, all->raw));
	for (size_t i = 0; i < csw_table_rows(t) && !ferror(all->file); i++)
		draw_row(all, t, i, j);
}

static int sum_rows(struct drawing *d, const struct csw_table *t, size_t j)
{
	uint64_t buckets[CSW_BUCKETS];

	memset(d->buckets, 0, sizeof(d->buckets));
	for (size_t i = 0; i < csw_table_rows(t); i++) {
		int ret = csw_table_histogram(t, i, j, buckets);

		if (ret < 0)
			return ret;
		for (size_t k = 0; k < CSW_BUCKETS; k++)
			d->buckets[k] += buckets[k];
	}
	return 0;
}

void csw_report_histogram(const struct csw_table *t, FILE *file, const struct csw_report_opts *opts)
{
	struct drawing d = { .file = file, .raw = opts->raw };
	char name[CSW_KEY_BYTES];
	struct csw_counter c;

	for (size_t j = 0; csw_table_counter(t, j, &c) == 0; j++) {
		if (sum_rows(&d, t, j) < 0) {
			fputs("\nhistograms were not kept: ask for them before counting begins\n",
			      file);
			return;
		}
		measure(&d, opts->width);
		draw(&d, csw_escape(name, sizeof(name), c.name), c.nanoseconds);
		if (opts->verbose)
			draw_rows(&d, t, j);
	}
}
