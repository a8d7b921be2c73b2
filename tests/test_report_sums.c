/*
 * The printed rows add up: every view, format, order and limit, with and without a scope, on
 * thousands of random rows with names that mean harm. The reports are read back as text, as anyone
 * would read them, and summed; nothing is taken from the table that they were made of.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/view.h"
#include "schema.h"

#define NR_COUNTERS 3
#define NR_ROWS 3000
#define NR_CPUS 5
#define COLUMNS_MAX 64

/* What is summed, in the order in which it stands in `fields`. */
enum {
	SLICES,
	ONCPU,
	VOLUNTARY,
	PREEMPTED,
	MIGRATIONS,
	EXACT,
	COUNTS,
	WHOLE = COUNTS + NR_COUNTERS,
	NR_SUMS
};

static const char *const fields[] = { "slices",    "oncpu_ns",   "voluntary",
				      "preempted", "migrations", "exact_ns" };
static const char *const names[NR_COUNTERS] = { "page-faults", "evil,\"name\"", "cycles" };

struct fixture {
	struct csw_plan plan;
	struct csw_aggregation agg, cpus;
	struct csw_result result;
	json_t *schema;
	uint64_t threads[NR_SUMS], on_cpus[NR_SUMS]; /* what must come out, by CPU and else */
	uint64_t out_slices[2];                      /* of it out of scope; [1] by CPU */
};

struct variant {
	uint32_t by;
	uint64_t top;
	const char *sort;
	bool scoped, rate, histogram;
};

static const struct csw_driver_ops live = { .name = "perf", .caps = CSW_DRIVER_LIVE };

/* ---- random rows ---- */

static const char *path_of(void *ctx, uint64_t id)
{
	static const char *const paths[] = {
		"/system.slice/a.service",
		"/system.slice/docker-0123456789ab0123456789ab0123456789ab.scope",
		"/=cmd|'/C calc'!A0",
		"/\033[2J\n",
		"/a,\"b\"",
		"/\xff\xc3",
		"/a  1  2  3",
		"/",
	};

	(void)ctx;
	return id < 12 ? paths[id % 8] : NULL;
}

static const char *random_comm(void)
{
	static const char *const comms[] = {
		"worker",   "=1+1",   "a,b",        "q\"q",       "\033[31mred",  "line\nbreak",
		"\xff\xfe", "[idle]", "x  1  2  3", "",           "\xe6\xbc\xa2", "@SUM(A1)",
		"-1",       "cr\rlf", "'",          "\xc2\x9b[J", "kthread",      "12,345",
	};

	return comms[rand() % (int)(sizeof(comms) / sizeof(*comms))];
}

static void randomise(struct csw_aggregation *agg, uint32_t nr)
{
	struct csw_agg_row *row = csw_aggregation_row(agg, nr);

	for (int slices = rand() % 4; slices > 0; slices--) {
		uint64_t deltas[NR_COUNTERS] = { (uint64_t)rand() % 3, (uint64_t)rand(),
						 (uint64_t)rand() << (rand() % 20) };

		csw_aggregation_count(agg, nr, deltas, rand() % 8 != 0);
		row->slices++;
		row->oncpu_ns += (uint64_t)rand() % 1000000;
	}
	row->exact_ns = row->oncpu_ns / 2;
	row->voluntary = row->slices ? (uint64_t)rand() % 5000 : 0;
	row->preempted = row->slices ? (uint64_t)rand() % 3 : 0;
	row->migrations = row->slices ? (uint64_t)rand() % 9 : 0;
	row->enabled_ns = row->slices ? row->oncpu_ns + 1 : 0;
	row->running_ns = row->enabled_ns;
	row->proven = UINT32_MAX;
}

static void add_thread(struct fixture *f)
{
	static const uint16_t kinds[] = { CSW_KIND_THREAD, CSW_KIND_THREAD, CSW_KIND_THREAD,
					  CSW_KIND_KERNEL, CSW_KIND_SELF,   CSW_KIND_MIXED };
	uint16_t kind = kinds[rand() % 6];
	int32_t pid = 1 + rand() % 200;
	int32_t tid = kind == CSW_KIND_MIXED ? -1 : pid + rand() % 5;
	uint32_t nr =
		(uint32_t)csw_aggregation_add(&f->agg, kind, pid, tid, 1 + (uint64_t)rand() % 9);
	struct csw_agg_row *row = csw_aggregation_row(&f->agg, nr);
	struct csw_agg_row *before = csw_aggregation_row(&f->agg, nr - 1);

	snprintf(row->comm, sizeof(row->comm), "%s", random_comm());
	row->cgroup = (uint64_t)rand() % 14;
	row->last_cpu = (uint32_t)rand() % NR_CPUS;
	row->flags = rand() % 2 ? CSW_ROW_IN_SCOPE : 0;
	if (rand() % 4 == 0 && nr > CSW_ROWS_FIXED && kind == before->kind &&
	    kind != CSW_KIND_MIXED) {
		row->continues = nr - 1;
		row->pid = before->pid;
		row->tid = before->tid;
		row->birth_ns = before->birth_ns;
	}
	randomise(&f->agg, nr);
}

static void add_up(const struct csw_aggregation *agg, uint64_t *sums)
{
	for (uint32_t i = 0; i < agg->nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(agg, i);
		const uint64_t *buckets = csw_aggregation_histogram(agg, i, 0);

		sums[SLICES] += row->slices;
		sums[ONCPU] += row->oncpu_ns;
		sums[VOLUNTARY] += row->voluntary;
		sums[PREEMPTED] += row->preempted;
		sums[MIGRATIONS] += row->migrations;
		sums[EXACT] += row->exact_ns;
		for (unsigned j = 0; j < NR_COUNTERS; j++)
			sums[COUNTS + j] += row->cells[j].sum;
		for (unsigned k = 0; k < CSW_BUCKETS; k++)
			sums[WHOLE] += buckets[k];
	}
}

/* The CPUs' counts are other numbers than the threads': a last row makes the totals agree. */
static void balance(struct fixture *f)
{
	uint64_t deltas[NR_COUNTERS];

	for (unsigned j = 0; j < NR_COUNTERS; j++) {
		deltas[j] = f->threads[COUNTS + j] - f->on_cpus[COUNTS + j];
		f->on_cpus[COUNTS + j] = f->result.totals[j] = f->threads[COUNTS + j];
	}
	csw_aggregation_count(&f->cpus, 0, deltas, false);
}

static int setup(void **state)
{
	static struct fixture f;

	srand(20);
	memset(&f, 0, sizeof(f));
	f.schema = schema_of_reports();
	f.plan.trigger =
		(struct csw_trigger){ .event = { .name = "switch", .became = "switch" }, .sav = 1 };
	f.plan.nr_counters = NR_COUNTERS;
	for (unsigned j = 0; j < NR_COUNTERS; j++) {
		strcpy(f.plan.counters[j].name, names[j]);
		strcpy(f.plan.counters[j].became, names[j]);
	}
	assert_int_equal(csw_aggregation_init(&f.agg, NR_COUNTERS, true), 0);
	assert_int_equal(csw_aggregation_init_empty(&f.cpus, NR_COUNTERS, true), 0);
	for (uint32_t i = 0; i < CSW_ROWS_FIXED; i++)
		randomise(&f.agg, i);
	for (unsigned i = 0; i < NR_ROWS; i++)
		add_thread(&f);
	for (uint32_t i = 0; i < 2 * NR_CPUS; i++) {
		csw_aggregation_add(&f.cpus, CSW_KIND_THREAD, -1, -1, 0);
		randomise(&f.cpus, i);
	}
	f.result = (struct csw_result){ .plan = &f.plan,
					.driver = &live,
					.agg = &f.agg,
					.cpus = &f.cpus,
					.nr_cpus = NR_CPUS,
					.cgroups = true,
					.cgroup_path = path_of,
					.enabled_ns = 1,
					.running_ns = 1,
					.summary = { .duration_ns = 1234567890 } };
	add_up(&f.agg, f.threads);
	add_up(&f.cpus, f.on_cpus);
	balance(&f);
	for (uint32_t i = 0; i < f.agg.nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(&f.agg, i);
		/* What nobody could be given stays in sight. */
		bool nobodys = row->kind == CSW_KIND_LOST || row->kind == CSW_KIND_UNKNOWN ||
			       (row->kind == CSW_KIND_MIXED && row->pid < 0);

		if (!(row->flags & CSW_ROW_IN_SCOPE) && !nobodys)
			f.out_slices[0] += row->slices;
	}
	for (uint32_t i = 1; i < f.cpus.nr; i += 2)
		f.out_slices[1] += csw_aggregation_row(&f.cpus, i)->slices;
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	csw_aggregation_free(&f->agg);
	csw_aggregation_free(&f->cpus);
	json_decref(f->schema);
	return 0;
}

/* ---- every variant ---- */

static char *render(struct fixture *f, const struct variant *v, uint32_t format, uint32_t raw)
{
	struct csw_table_opts opts = { .size = sizeof(opts), .sort = v->sort, .top = v->top };
	struct csw_report_opts how = { .size = sizeof(how),
				       .format = format,
				       .raw = raw,
				       .rate = v->rate,
				       .histogram = v->histogram };
	struct csw_summary s;
	struct csw_error err;
	struct csw_table *t;
	char *text = NULL;
	size_t bytes;
	FILE *file = open_memstream(&text, &bytes);

	assert_non_null(file);
	f->result.scoped = v->scoped;
	if (csw_view_make(&t, &f->result, v->by, &opts, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(csw_table_summary(t, &s, sizeof(s)), 0);
	assert_false(s.broken);
	assert_int_equal(csw_report(t, file, &how, &err), 0);
	csw_table_close(t);
	assert_int_equal(fclose(file), 0);
	return text;
}

static void assert_sums(const struct fixture *f, const struct variant *v, const uint64_t *sums,
			const char *format)
{
	const uint64_t *want = v->by == CSW_BY_CPU ? f->on_cpus : f->threads;

	for (unsigned k = 0; k < WHOLE; k++) {
		if (sums[k] != want[k])
			fail_msg("%s, by %u, top %llu, sorted by %s, scope %d: sum %u is %llu, not "
				 "%llu",
				 format, v->by, (unsigned long long)v->top, v->sort ?: "default",
				 v->scoped, k, (unsigned long long)sums[k],
				 (unsigned long long)want[k]);
	}
}

static void for_every_variant(struct fixture *f,
			      void (*fn)(struct fixture *f, const struct variant *v))
{
	static const uint64_t tops[] = { 0, 1, 7, 100, 100000 };
	static const char *const sorts[] = { NULL, "oncpu", "comm", "cgroup", "migrations" };

	for (uint32_t by = CSW_BY_THREAD; by <= CSW_BY_CPU; by++) {
		for (unsigned i = 0; i < 5; i++) {
			for (unsigned k = 0; k < 4; k++) {
				fn(f, &(struct variant){ .by = by,
							 .top = tops[i],
							 .sort = sorts[(i + k + by) % 5],
							 .scoped = k & 1,
							 .rate = k & 2,
							 .histogram = (i + k) % 2 });
			}
		}
	}
}

/* ---- JSON ---- */

static void check_json(struct fixture *f, const struct variant *v)
{
	char *text = render(f, v, CSW_FORMAT_JSON, 0);
	json_t *root = schema_load(f->schema, text), *row;
	uint64_t sums[NR_SUMS] = { 0 }, out = 0;
	size_t i, k;

	json_array_foreach(json_object_get(root, "rows"), i, row)
	{
		if (!strcmp(json_string_value(json_object_get(row, "kind")), "other"))
			out += (uint64_t)json_integer_value(json_object_get(row, "slices"));
		json_t *counts = json_object_get(row, "counts"), *histogram, *bucket;

		for (unsigned n = 0; n < COUNTS; n++)
			sums[n] += (uint64_t)json_integer_value(json_object_get(row, fields[n]));
		for (unsigned j = 0; j < NR_COUNTERS; j++)
			sums[COUNTS + j] += (uint64_t)json_integer_value(
				json_object_get(json_object_get(counts, names[j]), "value"));
		histogram = json_object_get(json_object_get(counts, names[0]), "histogram");
		assert_int_equal(histogram != NULL, v->histogram);
		json_array_foreach(histogram, k, bucket) sums[WHOLE] +=
			(uint64_t)json_integer_value(bucket);
	}
	assert_sums(f, v, sums, "JSON");
	assert_int_equal(out, v->scoped ? f->out_slices[v->by == CSW_BY_CPU] : 0);
	if (v->histogram)
		assert_int_equal(sums[WHOLE],
				 (v->by == CSW_BY_CPU ? f->on_cpus : f->threads)[WHOLE]);
	if (v->top)
		assert_true(i <= v->top + 1 + v->scoped);
	json_decref(root);
	free(text);
}

/* ---- CSV ---- */

/* The next cell at *at, unquoted in place; *last: it ended its line. */
static char *csv_cell(char **at, bool *last)
{
	char *from = *at, *to = from, *in = from;
	bool quoted = *in == '"';

	for (in += quoted; quoted ? *in != '"' || in[1] == '"' : *in != ',' && *in != '\n'; in++) {
		assert_true(*in != '\0' && *in != '\r');
		in += quoted && *in == '"';
		*to++ = *in;
	}
	in += quoted;
	assert_true(*in == ',' || *in == '\n');
	*last = *in == '\n';
	*at = in + 1;
	*to = '\0';
	return from;
}

static unsigned csv_line(char **at, char **cells)
{
	unsigned nr = 0;
	bool last = false;

	while (!last) {
		assert_true(nr < COLUMNS_MAX);
		cells[nr] = csv_cell(at, &last);
		/* No cell makes a spreadsheet compute, or a terminal obey. */
		assert_null(*cells[nr] ? strchr("=+-@", *cells[nr]) : NULL);
		for (const char *c = cells[nr]; *c; c++)
			assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
		nr++;
	}
	return nr;
}

static unsigned find_column(char **titles, unsigned nr, const char *title)
{
	unsigned k;

	for (k = 0; k < nr; k++) {
		if (strcmp(titles[k], title) == 0)
			return k;
	}
	fail_msg("no column %s", title);
	return 0;
}

static void check_csv(struct fixture *f, const struct variant *v)
{
	char *text = render(f, v, CSW_FORMAT_CSV, 0), *at = text;
	char *titles[COLUMNS_MAX], *cells[COLUMNS_MAX];
	unsigned columns[NR_SUMS], nr = csv_line(&at, titles);
	uint64_t sums[NR_SUMS] = { 0 };

	assert_int_equal(nr, 13 + NR_COUNTERS * (v->rate ? 7 : 5));
	for (unsigned k = 0; k < WHOLE; k++)
		columns[k] = find_column(titles, nr, k < COUNTS ? fields[k] : names[k - COUNTS]);
	while (*at) {
		assert_int_equal(csv_line(&at, cells), nr);
		for (unsigned k = 0; k < WHOLE; k++)
			sums[k] += strtoull(cells[columns[k]], NULL, 10);
	}
	assert_sums(f, v, sums, "CSV");
	free(text);
}

/* ---- text ---- */

/* Numbers stand at the right of a line and hold no blanks, so names may hold what they like. */
static unsigned words_from_right(char *line, char **words, unsigned nr)
{
	unsigned found = 0;
	char *end = line + strlen(line);

	while (found < nr && end > line) {
		while (end > line && end[-1] == ' ')
			end--;
		*end = '\0';
		while (end > line && end[-1] != ' ')
			end--;
		words[nr - ++found] = end;
	}
	return found;
}

/* "1,234" is 1234; "1,234.568" is not a whole number and its part is dropped. */
static uint64_t number_of(const char *word)
{
	uint64_t value = 0;

	for (; *word && *word != '.'; word++) {
		if (*word == ',')
			continue;
		assert_true(*word >= '0' && *word <= '9');
		value = value * 10 + (uint64_t)(*word - '0');
	}
	return value;
}

/* Milliseconds with three places: what rounding may have added or taken per row is below 500 ns. */
static uint64_t ns_of(const char *word)
{
	const char *point = strchr(word, '.');

	assert_non_null(point);
	assert_int_equal(strlen(point), 4);
	return number_of(word) * 1000000 + strtoull(point + 1, NULL, 10) * 1000;
}

/* Slices, time, voluntary, preempted, migrations (not by CPU), then what belongs to the counters.
 */
static void add_line(char *line, const struct variant *v, uint64_t *sums)
{
	unsigned fixed = v->by == CSW_BY_CPU ? 4 : 5, each = v->rate ? 3 : 1;
	unsigned nr = fixed + each * NR_COUNTERS;
	char *words[COLUMNS_MAX];

	assert_int_equal(words_from_right(line, words, nr), nr);
	sums[SLICES] += number_of(words[0]);
	sums[ONCPU] += ns_of(words[1]);
	sums[VOLUNTARY] += number_of(words[2]);
	sums[PREEMPTED] += number_of(words[3]);
	if (fixed == 5)
		sums[MIGRATIONS] += number_of(words[4]);
	for (unsigned j = 0; j < NR_COUNTERS; j++)
		sums[COUNTS + j] += number_of(words[fixed + j * each]);
}

static void check_text_as(struct fixture *f, const struct variant *v, uint32_t raw)
{
	const uint64_t *want = v->by == CSW_BY_CPU ? f->on_cpus : f->threads;
	char *text = render(f, v, CSW_FORMAT_TABLE, raw), *at = strstr(text, "\n\n");
	uint64_t sums[NR_SUMS] = { 0 }, nr = 0;
	char *line, *save = NULL, *end;

	for (const char *c = text; *c; c++)
		assert_true((unsigned char)*c >= 0x20 || *c == '\n');
	assert_non_null(at);
	end = strstr(at + 2, "\n\n"); /* the table ends with an empty line */
	assert_non_null(end);
	*end = '\0';
	strtok_r(at + 2, "\n", &save); /* the titles */
	while ((line = strtok_r(NULL, "\n", &save)) != NULL) {
		add_line(line, v, sums);
		nr++;
	}
	assert_true(sums[ONCPU] <= want[ONCPU] + 500 * nr && sums[ONCPU] + 500 * nr >= want[ONCPU]);
	sums[ONCPU] = want[ONCPU];
	sums[EXACT] = want[EXACT]; /* not in the text */
	if (v->by == CSW_BY_CPU)
		sums[MIGRATIONS] = want[MIGRATIONS];
	assert_sums(f, v, sums, "text");
	free(text);
}

static void check_text(struct fixture *f, const struct variant *v)
{
	check_text_as(f, v, 0);
	check_text_as(f, v, 1);
}

/* ---- tests ---- */

static void test_json(void **state)
{
	for_every_variant(*state, check_json);
}

static void test_csv(void **state)
{
	for_every_variant(*state, check_csv);
}

static void test_text(void **state)
{
	for_every_variant(*state, check_text);
}

/* A row that falls off is noticed by what reads the reports, not only by the view's own proof. */
static void test_a_missing_row_is_noticed(void **state)
{
	struct fixture *f = *state;
	struct variant v = { .by = CSW_BY_THREAD };
	char *text = render(f, &v, CSW_FORMAT_CSV, 0), *at = text;
	char *cells[COLUMNS_MAX];
	uint64_t slices = 0;

	csv_line(&at, cells);
	csv_line(&at, cells); /* the first row is left out */
	assert_true(strtoull(cells[7], NULL, 10) > 0);
	while (*at) {
		csv_line(&at, cells);
		slices += strtoull(cells[7], NULL, 10);
	}
	assert_true(slices < f->threads[SLICES]);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_a_missing_row_is_noticed),
	};

	return cmocka_run_group_tests_name("report_sums", tests, setup, teardown);
}
