/*
 * The report for programs; docs/report.schema.json is its contract.
 *
 * One row at a time is made and written, so memory does not grow with the rows. Invariant: the
 * output is valid JSON whatever the names hold; bytes that are no UTF-8 become U+FFFD, and no
 * character is in it as it is that a terminal would obey.
 */
#include "engine/report.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "engine/error.h"
#include "engine/report_common.h"
#include "engine/text.h"
#include "engine/view.h"

#define SCHEMA 1
#define REPLACEMENT "\xef\xbf\xbd"
#define REPLACEMENT_BYTES 3

struct writer {
	const struct csw_table *table;
	const struct csw_report_opts *opts;
	FILE *file;
	const char *before; /* the next member of the report: "{" or "," */
	int ret;            /* the first failure */
	uint64_t duration_ns;
	uint32_t mixed; /* enum csw_mixed */
	struct csw_keys keys;
};

/* ---- values ---- */

/* Jansson's integers are signed: beyond them a real is right to 53 bits, where an integer would be
 * wrong altogether. */
static json_t *number(uint64_t value)
{
	return value > INT64_MAX ? json_real((double)value) : json_integer((json_int_t)value);
}

static json_t *id(int32_t value)
{
	return value < 0 ? json_null() : json_integer(value);
}

/* Each byte may become a replacement character. */
static json_t *text(const char *in)
{
	char *valid = malloc(strlen(in) * REPLACEMENT_BYTES + 1), *to = valid;
	json_t *string;
	uint32_t point;
	int n;

	if (!valid)
		return NULL;
	while ((n = csw_utf8_next(in, &point)) != 0) {
		size_t bytes = n > 0 ? (size_t)n : REPLACEMENT_BYTES;

		memcpy(to, n > 0 ? in : REPLACEMENT, bytes);
		to += bytes;
		in += n > 0 ? n : 1;
	}
	*to = '\0';
	string = json_string(valid);
	free(valid);
	return string;
}

static json_t *real_or_null(bool known, double value)
{
	return known ? json_real(value) : json_null();
}

/* Adds a member; a NULL value is an allocation that failed. */
static void set(struct writer *w, json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value) < 0)
		w->ret = -ENOMEM;
}

/* ---- the stream ---- */

static void put_escaped(FILE *file, uint32_t point)
{
	if (point < 0x10000) {
		fprintf(file, "\\u%04x", (unsigned)point);
		return;
	}
	point -= 0x10000; /* as two halves of UTF-16 */
	fprintf(file, "\\u%04x\\u%04x", 0xd800u + (unsigned)(point >> 10),
		0xdc00u + (unsigned)(point & 0x3ff));
}

/* Jansson escapes what JSON demands, and that leaves DEL, C1 and marks of direction. It hands over
 * whole characters; outside of strings all of them are plain. Never fails: a failed write leaves
 * its mark on the stream, and csw_report looks at that. */
static int put_piece(const char *piece, size_t bytes, void *ctx)
{
	FILE *file = ctx;
	const char *end = piece + bytes, *plain = piece;
	uint32_t point;

	while (piece < end) {
		int nr = csw_utf8_next(piece, &point);

		if (nr > 0 && !csw_text_is_unsafe(point)) {
			piece += nr;
			continue;
		}
		fwrite(plain, 1, (size_t)(piece - plain), file);
		if (nr > 0)
			put_escaped(file, point);
		plain = piece += nr > 0 ? nr : 1;
	}
	fwrite(plain, 1, (size_t)(piece - plain), file);
	return 0;
}

static void dump(struct writer *w, json_t *value)
{
	if (value)
		json_dump_callback(value, put_piece, w->file, JSON_COMPACT | JSON_ENCODE_ANY);
	else
		w->ret = -ENOMEM;
	json_decref(value);
}

static void put_key(struct writer *w, const char *key)
{
	fprintf(w->file, w->opts->line ? "%s\"%s\":" : "%s\n\"%s\": ", w->before, key);
	w->before = ",";
}

static void put(struct writer *w, const char *key, json_t *value)
{
	put_key(w, key);
	dump(w, value);
}

/* ---- the parts of the report ---- */

static json_t *accesses(struct writer *w, const struct csw_accesses *a)
{
	json_t *object = json_object();

	set(w, object, "counter", json_string(w->keys.text[a->counter]));
	set(w, object, "accesses", number(a->all));
	set(w, object, "stores", a->known ? number(a->stores) : json_null());
	set(w, object, "loads", a->known ? number(a->loads) : json_null());
	return object;
}

static json_t *trigger(struct writer *w, const struct csw_summary *s)
{
	json_t *object = json_object();
	struct csw_accesses a;

	set(w, object, "name", text(s->trigger));
	set(w, object, "event", text(s->trigger_became));
	set(w, object, "hardware", json_boolean(s->trigger_hardware));
	set(w, object, "sav", number(s->sav));
	if (s->trigger_forced)
		set(w, object, "forced", text(s->trigger_forced));
	if (csw_report_accesses(w->table, s, &a))
		set(w, object, "accesses", accesses(w, &a));
	return object;
}

static json_t *counters(struct writer *w)
{
	json_t *array = json_array();

	for (size_t j = 0; j < w->keys.nr; j++) {
		if (json_array_append_new(array, json_string(w->keys.text[j])) < 0)
			w->ret = -ENOMEM;
	}
	return array;
}

static void set_rate(struct writer *w, json_t *object, size_t j, uint64_t value)
{
	struct csw_counter counter;
	double rate = 0, share = 0;
	bool has_rate, has_share;

	csw_table_counter(w->table, j, &counter);
	has_rate = csw_report_per_second(w->duration_ns, value, &rate);
	has_share = csw_report_share(&counter, value, &share);
	set(w, object, "per_second", real_or_null(has_rate, rate));
	set(w, object, "share", real_or_null(has_share, share));
}

/* Buckets after the last slice are left out. */
static void set_histogram(struct writer *w, json_t *object, size_t i, size_t j)
{
	uint64_t buckets[CSW_BUCKETS];
	json_t *array;
	size_t nr = CSW_BUCKETS;

	if (csw_table_histogram(w->table, i, j, buckets) < 0)
		return; /* not kept */
	while (nr && !buckets[nr - 1])
		nr--;
	array = json_array();
	for (size_t k = 0; k < nr; k++) {
		if (json_array_append_new(array, number(buckets[k])) < 0)
			w->ret = -ENOMEM;
	}
	set(w, object, "histogram", array);
}

static json_t *count(struct writer *w, size_t i, size_t j)
{
	json_t *object = json_object();
	struct csw_count c = { .flags = CSW_COUNT_NOT_COUNTED };
	uint64_t value;
	bool estimate;

	csw_table_count(w->table, i, j, &c);
	if (!csw_report_value(&c, &value, &estimate)) {
		set(w, object, "value", json_null());
		set(w, object, "reason", json_string("never counted"));
		set(w, object, "enabled_ns", number(c.enabled_ns));
		set(w, object, "running_ns", number(c.running_ns));
		return object;
	}
	set(w, object, "value", number(c.value));
	set(w, object, "enabled_ns", number(c.enabled_ns));
	set(w, object, "running_ns", number(c.running_ns));
	set(w, object, "min", number(c.min));
	set(w, object, "max", number(c.max));
	if (c.flags & CSW_COUNT_ESTIMATE)
		set(w, object, "samples", number(c.samples));
	if (c.flags & CSW_COUNT_SCALED)
		set(w, object, "scaled", number(value));
	if (c.flags & CSW_COUNT_SHARED)
		set(w, object, "shared", number(c.shared));
	if (w->opts->rate)
		set_rate(w, object, j, value);
	if (w->opts->histogram)
		set_histogram(w, object, i, j);
	return object;
}

static void set_who(struct writer *w, json_t *object, const struct csw_row *row)
{
	set(w, object, "kind", json_string(csw_report_kind(w->table, row)));
	set(w, object, "pid", id(row->pid));
	set(w, object, "tid", id(row->tid));
	set(w, object, "comm", text(row->comm));
	if (row->cgroup)
		set(w, object, "cgroup", text(row->cgroup));
	if (row->cpu >= 0)
		set(w, object, "cpu", id(row->cpu));
	if (csw_view_by(w->table) != CSW_BY_CPU) /* which threads ran where is not kept */
		set(w, object, "nr_threads", number(row->nr_threads));
}

static json_t *row_object(struct writer *w, size_t i)
{
	const struct csw_row *row = csw_table_row(w->table, i);
	json_t *object = json_object(), *counts = json_object();

	set_who(w, object, row);
	set(w, object, "slices", number(row->slices));
	set(w, object, "oncpu_ns", number(row->oncpu_ns));
	set(w, object, "voluntary", number(row->voluntary));
	set(w, object, "preempted", number(row->preempted));
	set(w, object, "migrations", number(row->migrations));
	set(w, object, "exact_ns", number(row->exact_ns));
	for (size_t j = 0; j < w->keys.nr; j++)
		set(w, counts, w->keys.text[j], count(w, i, j));
	set(w, object, "counts", counts);
	return object;
}

static void put_rows(struct writer *w)
{
	size_t nr = csw_table_rows(w->table);
	const char *space = w->opts->line ? "" : "\n  ";

	put_key(w, "rows");
	fputc('[', w->file);
	for (size_t i = 0; i < nr && !w->ret && !ferror(w->file); i++) {
		fprintf(w->file, "%s%s", i ? "," : "", space);
		dump(w, row_object(w, i));
	}
	fputs("]", w->file);
}

static json_t *totals(struct writer *w)
{
	json_t *object = json_object();
	struct csw_counter c;
	bool scaled;

	for (size_t j = 0; csw_table_counter(w->table, j, &c) == 0; j++) {
		json_t *total = json_object();

		if (c.flags & CSW_COUNT_NOT_COUNTED) {
			set(w, total, "counter", json_null());
			set(w, total, "rows", json_null());
			set(w, total, "reason", json_string("never counted"));
		} else {
			set(w, total, "counter", number(c.total));
			set(w, total, "rows", number(c.rows));
			set(w, total, "unproven", number(c.unproven));
			if (w->mixed != CSW_MIXED_ROW)
				set(w, total, "shared", number(c.shared));
			if (c.flags & CSW_COUNT_SCALED)
				set(w, total, "scaled", number(csw_report_total(&c, &scaled)));
		}
		set(w, total, "difference", json_integer(csw_report_difference(&c)));
		set(w, object, w->keys.text[j], total);
	}
	return object;
}

/* cpus_ns is known only once counting has ended. */
static json_t *time_account(struct writer *w, const struct csw_summary *s)
{
	json_t *object = json_object();

	set(w, object, "cpus_ns", s->cpu_ns ? number(s->cpu_ns) : json_null());
	set(w, object, "rows_ns", number(s->rows_ns));
	return object;
}

static json_t *completeness(struct writer *w, const struct csw_summary *s)
{
	json_t *object = json_object();

	set(w, object, "trigger", number(s->triggers));
	set(w, object, "sav", number(s->sav));
	set(w, object, "samples", number(s->samples));
	set(w, object, "lost", number(s->lost));
	set(w, object, "throttled", number(s->throttled));
	set(w, object, "unseen", number(s->unseen));
	set(w, object, "open", number(s->open));
	return object;
}

/* Of the time on a CPU. */
static json_t *share(const struct csw_summary *s, uint64_t ns)
{
	if (!s->oncpu_ns)
		return json_null();
	return json_real((double)ns / (double)s->oncpu_ns);
}

static void put_report(struct writer *w, const struct csw_summary *s)
{
	put(w, "csw", json_string(csw_version()));
	put(w, "schema", json_integer(SCHEMA));
	put(w, "driver", text(s->driver));
	put(w, "simulated", json_boolean(s->simulated));
	put(w, "estimate", json_boolean(s->estimate));
	put(w, "duration_ns", number(s->duration_ns));
	if (w->opts->elapsed_ns)
		put(w, "elapsed_ns", number(w->opts->elapsed_ns));
	put(w, "cpus", number(s->nr_cpus));
	put(w, "cpus_missed", number(s->cpus_missed));
	put(w, "cpus_gone", number(s->cpus_gone));
	put(w, "ring_bytes", number(s->ring_bytes));
	put(w, "sets", number(s->sets > 1 ? s->sets : 1));
	put(w, "mixed", json_string(csw_mixed_name(s->mixed)));
	put(w, "trigger", trigger(w, s));
	put(w, "counters", counters(w));
	put_rows(w);
	put(w, "totals", totals(w));
	put(w, "completeness", completeness(w, s));
	put(w, "time", time_account(w, s));
	put(w, "slices", number(s->slices));
	put(w, "exact_share", share(s, s->exact_ns));
	put(w, "shared_share", share(s, s->shared_ns));
	put(w, "owner_disagreements", number(s->owner_disagreements));
	put(w, "broken", s->broken ? text(s->broken_why) : json_null());
	fputs(w->opts->line ? "}\n" : "\n}\n", w->file);
}

int csw_report_json(const struct csw_table *t, FILE *file, const struct csw_report_opts *opts,
		    struct csw_error *err)
{
	struct writer w = { .table = t, .opts = opts, .file = file, .before = "{" };
	struct csw_summary s;
	int ret = csw_table_summary(t, &s, sizeof(s));

	if (ret < 0)
		return csw_error_set(err, ret, "the table has no summary");
	w.duration_ns = s.duration_ns;
	w.mixed = s.mixed;
	csw_report_keys(&w.keys, t);
	put_report(&w, &s);
	if (w.ret < 0)
		return csw_error_set(err, w.ret, "not enough memory for the JSON report");
	return 0;
}
