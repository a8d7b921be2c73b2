/*
 * drivers/perfdata: real files of other people against reference counts, and files made here, whole
 * and broken.
 *
 * The real ones lie outside of the source tree (CSW_SHARED, or ../shared beside it) and are skipped
 * where they are absent. Invariant: what is compared with a reference was read through the reader's
 * own parts or from the report; nothing is corrected on the way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include "drivers/perfdata/perfdata.h"
#include "fuzz/fuzz.h"
#include "perfdata_write.h"
#include "schema.h"

#define KEYS_MAX 65536

/* ---- where the real files are ---- */

static char shared[PATH_MAX];

static bool find_shared(void)
{
	const char *given = getenv("CSW_SHARED");
	struct stat st;

	snprintf(shared, sizeof(shared), "%s/perfdata",
		 given ? given : CSW_SOURCE_DIR "/../shared");
	if (stat(shared, &st) == 0)
		return true;
	printf("skip: no real recordings in %s: set CSW_SHARED\n", shared);
	return false;
}

static const char *path_of(const char *folder, const char *name, const char *suffix)
{
	static char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/%s%s", shared, folder, name, suffix);
	return path;
}

/* ---- counts by key ---- */

struct counted {
	char key[96];
	uint64_t nr, sum;
};

struct counts {
	struct counted *at;
	size_t nr;
};

static struct counted *count_of(struct counts *c, const char *key)
{
	for (size_t i = 0; i < c->nr; i++) {
		if (!strcmp(c->at[i].key, key))
			return &c->at[i];
	}
	assert_true(c->nr < KEYS_MAX);
	c->at = realloc(c->at, (c->nr + 1) * sizeof(*c->at));
	assert_non_null(c->at);
	c->at[c->nr] = (struct counted){ .nr = 0 };
	snprintf(c->at[c->nr].key, sizeof(c->at[c->nr].key), "%s", key);
	return &c->at[c->nr++];
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct counted *)a)->key, ((const struct counted *)b)->key);
}

static void assert_same(struct counts *a, struct counts *b, const char *file)
{
	qsort(a->at, a->nr, sizeof(*a->at), by_key);
	qsort(b->at, b->nr, sizeof(*b->at), by_key);
	for (size_t i = 0; i < a->nr && i < b->nr; i++) {
		if (strcmp(a->at[i].key, b->at[i].key) || a->at[i].nr != b->at[i].nr ||
		    a->at[i].sum != b->at[i].sum)
			fail_msg("%s: ours \"%s\" %" PRIu64 " %" PRIu64
				 ", the reference's \"%s\" %" PRIu64 " %" PRIu64,
				 file, a->at[i].key, a->at[i].nr, a->at[i].sum, b->at[i].key,
				 b->at[i].nr, b->at[i].sum);
	}
	assert_int_equal(a->nr, b->nr);
	free(a->at);
	free(b->at);
}

/* A reference's lines, without comments and the line of titles, cut at tabs. false: there is none.
 */
static bool each_line(const char *name, const char *suffix,
		      void (*fn)(void *ctx, char *fields[16], unsigned nr), void *ctx)
{
	FILE *file = fopen(path_of("ref", name, suffix), "re");
	char *line = NULL, *rest, *field;
	size_t bytes = 0;
	bool titles = true;

	if (!file)
		return false;
	while (getline(&line, &bytes, file) > 0) {
		char *fields[16] = { NULL };
		unsigned nr = 0;

		if (line[0] == '#')
			continue;
		if (titles) {
			titles = false;
			continue;
		}
		line[strcspn(line, "\n")] = '\0';
		rest = line;
		while ((field = strsep(&rest, "\t")) && nr < 16)
			fields[nr++] = field;
		fn(ctx, fields, nr);
	}
	free(line);
	fclose(file);
	return true;
}

/* ---- the reader's own parts over a whole file ---- */

struct walk {
	struct counts samples, switches; /* "pid tid attr", "pid tid record direction" */
	struct counts reads;             /* "time id value delta" */
	struct csw_error damage;
	uint64_t nr_raw;
};

static void walk_reading(struct walk *w, struct csw_stream *s, const struct csw_record *rec,
			 const struct csw_perf_extra *extra)
{
	for (uint32_t i = 0; i < rec->nr_values; i++) {
		struct csw_file_id *id = csw_file_attrs_find(&s->attrs, extra->value_ids[i]);
		char key[96];

		if (!id)
			continue;
		snprintf(key, sizeof(key), "%" PRIu64 " %d %d %" PRIu64 " %" PRIu64 " %" PRIu64,
			 rec->time_ns, rec->pid, rec->tid, id->id, rec->values[i],
			 rec->values[i] - id->value);
		id->value = rec->values[i];
		count_of(&w->reads, key)->nr++;
	}
}

static void walk_record(struct walk *w, struct csw_stream *s, uint32_t nr,
			const struct perf_event_header *raw, const struct csw_record *rec,
			const struct csw_perf_extra *extra)
{
	const struct csw_file_attr *attr = &s->attrs.attrs[nr];
	struct counted *c;
	char key[96];

	switch (rec->type) {
	case CSW_RECORD_SAMPLE:
		snprintf(key, sizeof(key), "%d %d %u", rec->pid, rec->tid, nr);
		c = count_of(&w->samples, key);
		c->nr++;
		c->sum +=
			attr->form.sample_type & PERF_SAMPLE_PERIOD ? extra->period : attr->period;
		walk_reading(w, s, rec, extra);
		break;
	case CSW_RECORD_SWITCH_OUT:
	case CSW_RECORD_SWITCH_IN:
		snprintf(key, sizeof(key), "%d %d %s %s%s", rec->pid, rec->tid,
			 raw->type == PERF_RECORD_SWITCH ? "SWITCH" : "SWITCH_CPU_WIDE",
			 rec->type == CSW_RECORD_SWITCH_OUT ? "OUT" : "IN",
			 rec->flags & CSW_RECORD_PREEMPTED ? " preempt" : "");
		count_of(&w->switches, key)->nr++;
		break;
	default:
		break;
	}
}

/* 0, or the error of opening it. */
static int walk_file(struct walk *w, const char *path)
{
	static struct csw_stream s;
	struct csw_perf_extra extra;
	struct csw_record rec;
	const struct perf_event_header *raw;
	int ret;

	memset(w, 0, sizeof(*w));
	ret = csw_stream_open(&s, path, &w->damage);
	if (ret < 0)
		return ret;
	while ((ret = csw_stream_next(&s, &raw)) > 0) {
		int64_t attr;

		w->nr_raw++;
		if (raw->type == CSW_RECORD_FINISHED_ROUND)
			continue;
		attr = csw_file_attrs_of(&s.attrs, raw, s.swap);
		if (attr >= 0 &&
		    csw_perf_decode_file(&s.attrs.attrs[attr].form, raw, &rec, &extra, s.swap) > 0)
			walk_record(w, &s, (uint32_t)attr, raw, &rec, &extra);
	}
	w->damage = s.damage;
	csw_stream_close(&s);
	assert_int_equal(s.blocks.nr_all, 0);
	return 0;
}

static void add_walker_line(void *ctx, char *fields[16], unsigned nr)
{
	char key[96];
	struct counted *c;

	assert_int_equal(nr, 6);
	snprintf(key, sizeof(key), "%s %s %s", fields[0], fields[1], fields[2]);
	c = count_of(ctx, key);
	c->nr += strtoull(fields[4], NULL, 10);
	c->sum += strtoull(fields[5], NULL, 10);
}

static void add_switch_line(void *ctx, char *fields[16], unsigned nr)
{
	char key[96];

	assert_int_equal(nr, 5);
	snprintf(key, sizeof(key), "%s %s %s %s", fields[0], fields[1], fields[2], fields[3]);
	count_of(ctx, key)->nr += strtoull(fields[4], NULL, 10);
}

static void add_read_line(void *ctx, char *fields[16], unsigned nr)
{
	char key[96];

	assert_true(nr >= 7);
	snprintf(key, sizeof(key), "%s %s %s %s %s %s", fields[0], fields[1], fields[2], fields[4],
		 fields[5], fields[6]);
	count_of(ctx, key)->nr++;
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t length = strlen(name), bytes = strlen(suffix);

	return length > bytes && !strcmp(name + length - bytes, suffix);
}

/* Every reference of a kind against the file of its name; how many. */
static unsigned compare_all(const char *suffix, void (*add)(void *, char *[16], unsigned),
			    size_t offset)
{
	DIR *dir = opendir(path_of("ref", "", ""));
	struct dirent *entry;
	unsigned nr = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		struct counts want = { .nr = 0 };
		char name[NAME_MAX + 1];
		struct walk w;

		if (!has_suffix(entry->d_name, suffix))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(strlen(entry->d_name) - strlen(suffix)),
			 entry->d_name);
		assert_true(each_line(name, suffix, add, &want));
		assert_int_equal(walk_file(&w, path_of("files", name, ".data")), 0);
		assert_string_equal(w.damage.text, "");
		assert_same((struct counts *)(void *)((char *)&w + offset), &want, name);
		free(offset == offsetof(struct walk, samples) ? NULL : w.samples.at);
		free(offset == offsetof(struct walk, switches) ? NULL : w.switches.at);
		free(offset == offsetof(struct walk, reads) ? NULL : w.reads.at);
		nr++;
	}
	closedir(dir);
	return nr;
}

static void test_reference_samples(void **state)
{
	unsigned nr;

	(void)state;
	if (!find_shared())
		skip();
	nr = compare_all(".walker.tsv", add_walker_line, offsetof(struct walk, samples));
	printf("figure: perfdata: samples and period sums of %u real files as in the reference\n",
	       nr);
	assert_int_equal(nr, 12);
}

static void test_reference_switches(void **state)
{
	(void)state;
	if (!find_shared())
		skip();
	assert_int_equal(
		compare_all(".switch.tsv", add_switch_line, offsetof(struct walk, switches)), 2);
}

static void test_reference_readings(void **state)
{
	(void)state;
	if (!find_shared())
		skip();
	assert_int_equal(compare_all(".reads.tsv", add_read_line, offsetof(struct walk, reads)), 1);
}

/* ---- the session over a file ---- */

struct result {
	int open, damage;
	struct csw_error err;
	json_t *report; /* NULL: it could not be opened */
	struct csw_summary sum;
};

static const struct csw_opts defaults = { .size = sizeof(defaults) };

static json_t *schema; /* of reports */

static json_t *json_of(const struct csw_table *table)
{
	struct csw_report_opts opts = { .size = sizeof(opts), .format = CSW_FORMAT_JSON };
	char *text = NULL;
	size_t bytes = 0;
	FILE *memory = open_memstream(&text, &bytes);
	json_t *json;

	assert_non_null(memory);
	assert_int_equal(csw_report(table, memory, &opts, NULL), 0);
	fclose(memory);
	if (!schema)
		schema = schema_of_reports();
	json = schema_load(schema, text);
	free(text);
	return json;
}

static void read_session(struct result *r, struct csw_session *s, uint32_t by)
{
	struct csw_table *table;
	int ret;

	assert_int_equal(csw_start(s, &r->err), 0);
	while ((ret = csw_poll(s, 0, &r->err)) > 0)
		;
	assert_int_equal(ret, 0);
	assert_int_equal(csw_stop(s, &r->err), 0);
	assert_int_equal(csw_table_open(&table, s, by, NULL, &r->err), 0);
	csw_table_summary(table, &r->sum, sizeof(r->sum));
	r->report = json_of(table);
	csw_table_close(table);
	r->damage = csw_damage(s, &r->err);
}

static void read_with(struct result *r, const char *path, const struct csw_opts *from, uint32_t by,
		      int (*fn)(void *, const struct csw_slice *), void *ctx)
{
	struct csw_opts opts = *from;
	struct csw_session *s;

	memset(r, 0, sizeof(*r));
	opts.input = path;
	r->open = csw_open(&s, NULL, NULL, &opts, &r->err);
	if (r->open < 0)
		return;
	if (fn)
		assert_int_equal(csw_on_slice(s, fn, ctx, NULL), 0);
	read_session(r, s, by);
	csw_close(s);
	/* Whatever the file: what was read of it adds up. */
	assert_int_equal(r->sum.broken, 0);
}

static void read_result(struct result *r, const char *path)
{
	read_with(r, path, &defaults, CSW_BY_THREAD, NULL, NULL);
}

static int64_t integer(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	assert_true(json_is_integer(value));
	return json_integer_value(value);
}

/* The sum over all rows of this TID: one TID may have been several threads. -1: no such row. */
static int64_t row_value(const struct result *r, int32_t tid, const char *counter, const char *what)
{
	int64_t sum = 0;
	bool any = false;
	size_t i;
	json_t *row;

	json_array_foreach(json_object_get(r->report, "rows"), i, row)
	{
		const json_t *id = json_object_get(row, "tid");

		if (json_is_null(id) ? tid >= 0 : json_integer_value(id) != tid)
			continue;
		any = true;
		sum += integer(counter ? json_object_get(json_object_get(row, "counts"), counter)
				       : row,
			       what);
	}
	return any ? sum : -1;
}

static void add_report_line(void *ctx, char *fields[16], unsigned nr)
{
	struct counted *c;
	char key[96];

	assert_int_equal(nr, 6);
	snprintf(key, sizeof(key), "column %s", fields[2]);
	c = count_of(ctx, key);
	c->nr += strtoull(fields[4], NULL, 10);
	c->sum += strtoull(fields[5], NULL, 10);
}

/* The report's sums per event: with the threads' parts, which test_reference_samples has, that is
 * all. */
static void test_reports_of_real_files(void **state)
{
	static const char *const names[] = {
		"lpd-sleep.compressed",
		"quipper-busy.1-3.8",
		"quipper-ctx_switch_namespaces-4.14",
		"quipper-forkexit-3.4",
		"quipper-group_desc-4.14",
		"quipper-hw_and_sw-3.4",
		"quipper-lost_samples-4.4",
		"quipper-piped.group_desc-6.8",
		"quipper-throttle-3.8",
		"simpleperf-trace_offcpu_v2",
		"simpleperf-tracepoint_event",
	};

	(void)state;
	if (!find_shared())
		skip();
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct counts want = { .nr = 0 }, have = { .nr = 0 };
		struct result r;
		size_t column, k;
		json_t *name, *row;

		assert_true(each_line(names[i], ".walker.tsv", add_report_line, &want));
		read_result(&r, path_of("files", names[i], ".data"));
		assert_int_equal(r.open, 0);
		assert_int_equal(r.damage, 0);
		assert_true(json_is_true(json_object_get(r.report, "estimate")));
		json_array_foreach(json_object_get(r.report, "counters"), column, name)
		{
			uint64_t nr = 0, sum = 0;
			struct counted *c;
			char key[96];

			json_array_foreach(json_object_get(r.report, "rows"), k, row)
			{
				const json_t *cell = json_object_get(json_object_get(row, "counts"),
								     json_string_value(name));

				nr += (uint64_t)integer(cell, "samples");
				sum += (uint64_t)integer(cell, "value");
			}
			if (!nr)
				continue;
			snprintf(key, sizeof(key), "column %zu", column);
			c = count_of(&have, key);
			c->nr = nr;
			c->sum = sum;
		}
		assert_same(&have, &want, names[i]);
		json_decref(r.report);
	}
}

/* perf's own words of this file: the members' differences, not the periods. */
static void test_group_of_a_real_file(void **state)
{
	struct result r;

	(void)state;
	if (!find_shared())
		skip();
	read_result(&r, path_of("files", "simpleperf-add_counter", ".data"));
	assert_int_equal(row_value(&r, 689664, "cpu-cycles", "value"), 2034455);
	assert_int_equal(row_value(&r, 689664, "instructions", "value"), 2048526);
	assert_int_equal(row_value(&r, 689664, "instructions", "samples"), 12);
	json_decref(r.report);
}

/* Switches of single threads give their time. */
static void test_slices_of_a_real_file(void **state)
{
	struct result r;

	(void)state;
	if (!find_shared())
		skip();
	read_result(&r, path_of("files", "simpleperf-trace_offcpu_v2", ".data"));
	assert_int_equal(row_value(&r, 6525, NULL, "slices"), 43);
	assert_int_equal(row_value(&r, 6525, NULL, "voluntary"), 40);
	assert_int_equal(row_value(&r, 6525, NULL, "preempted"), 3);
	assert_int_equal(row_value(&r, 15530, NULL, "slices"), 10);
	json_decref(r.report);
}

static void test_malformed_real_files(void **state)
{
	DIR *dir;
	struct dirent *entry;
	unsigned nr = 0;

	(void)state;
	if (!find_shared())
		skip();
	dir = opendir(path_of("malformed", "", ""));
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		struct result r;

		if (entry->d_name[0] == '.')
			continue;
		read_result(&r, path_of("malformed", entry->d_name, ""));
		if (r.open >= 0 && r.damage >= 0)
			fail_msg("%s: nothing is wrong", entry->d_name);
		assert_non_null(strstr(r.err.text, "offset "));
		assert_null(strchr(r.err.text, '\n'));
		json_decref(r.report);
		nr++;
	}
	closedir(dir);
	printf("figure: perfdata: %u malformed real files end with a line\n", nr);
	assert_true(nr > 10);
}

/* ---- files made here ---- */

#define IDS 100

#define CGROUPS 1000 /* and the TID */

struct made {
	struct pd w;
	bool turned; /* see leave */
	bool narrow; /* switch records of single threads */
	bool samples_only;
	int64_t shift; /* by so much the trigger's samples have another time than the records */
	char path[32];
};

static void make(struct made *m, bool swap, bool pipe)
{
	int fd;

	memset(m, 0, sizeof(*m));
	strcpy(m->path, "/tmp/csw-perfdata-XXXXXX");
	fd = mkstemp(m->path);
	assert_true(fd >= 0);
	m->w.file = fdopen(fd, "w+");
	assert_non_null(m->w.file);
	m->w.swap = swap;
	m->w.pipe = pipe;
}

static void done(struct made *m)
{
	pd_finish(&m->w);
	assert_int_equal(fclose(m->w.file), 0);
}

static void drop(struct made *m, struct result *r)
{
	unlink(m->path);
	json_decref(r->report);
}

static const uint64_t wide = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			     PERF_SAMPLE_CPU | PERF_SAMPLE_READ;

/* context-switches leads page-faults and task-clock, two CPUs. */
static void group(struct made *m, uint64_t type, uint64_t format)
{
	static const uint64_t configs[] = { PERF_COUNT_SW_CONTEXT_SWITCHES,
					    PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_TASK_CLOCK };
	static const char *const names[] = { "context-switches", "page-faults", "task-clock" };

	for (unsigned i = 0; i < 3; i++) {
		m->w.attrs[m->w.nr_attrs++] = (struct pd_attr){
			.type = PERF_TYPE_SOFTWARE,
			.config = configs[i],
			.period = i == 0,
			.sample_type = type,
			.read_format = format,
			.flags = PD_SAMPLE_ID_ALL | (i == 0 ? PD_CONTEXT_SWITCH : 0),
			.name = names[i],
			.ids = { IDS + 2 * i, IDS + 2 * i + 1 },
			.nr_ids = 2,
		};
	}
}

/* One switch on a CPU: the sample of the thread that leaves, then both records. */
static void leave(struct made *m, uint32_t cpu, uint64_t time, int32_t pid, int32_t tid,
		  int32_t next_pid, int32_t next_tid, uint64_t nr, uint64_t faults)
{
	const struct pd_attr *attr = &m->w.attrs[0];
	/* Now one order of the members, now the other. */
	const unsigned f = m->turned && nr % 2 ? 2 : 1, t = 3 - f;
	uint64_t values[3] = { nr }, ids[3] = { IDS + cpu };
	struct pd_id id = { .pid = pid, .tid = tid, .time = time, .id = IDS + cpu, .cpu = cpu };

	values[f] = faults;
	ids[f] = IDS + 2 + cpu;
	values[t] = time;
	ids[t] = IDS + 4 + cpu;
	id.time += (uint64_t)m->shift;
	pd_sample(&m->w, attr,
		  &(struct pd_sample){ .id = id,
				       .values = values,
				       .value_ids = ids,
				       .nr = 3,
				       .period = 1,
				       .enabled = time,
				       .running = time,
				       .raw = "raw",
				       .raw_bytes = 4,
				       .cgroup = CGROUPS + (uint64_t)(tid < 0 ? 12 : tid) });
	if (m->samples_only || !(attr->flags & PD_CONTEXT_SWITCH))
		return;
	id.time = time + 1;
	if (m->narrow)
		pd_switch_of_thread(&m->w, attr, &id, true);
	else
		pd_switch(&m->w, attr, &id, true, tid == 11, next_pid, next_tid);
	id.pid = next_pid;
	id.tid = next_tid;
	id.time++;
	if (m->narrow)
		pd_switch_of_thread(&m->w, attr, &id, false);
	else
		pd_switch(&m->w, attr, &id, false, false, pid, tid);
}

/* Ready for records: the little order, with a header that can be finished. */
static void make_group(struct made *m)
{
	make(m, false, false);
	group(m, wide, PERF_FORMAT_GROUP | PERF_FORMAT_ID);
	pd_head(&m->w);
}

/* 11 and 12 of process 10 take turns on CPU 0: 7 faults and 3, 1000 ns each. 12 exits with the
 * last. */
static void two_threads(struct made *m)
{
	const struct pd_attr *attr = &m->w.attrs[0];
	struct pd_id none = { .pid = 0 };
	uint64_t faults = 5;

	pd_comm(&m->w, attr, &none, 10, 11, "first");
	pd_comm(&m->w, attr, &none, 10, 12, "second");
	leave(m, 0, 1000, 10, 12, 10, 11, 40, faults);
	for (uint64_t i = 1; i <= 4; i++) {
		int32_t tid = i % 2 ? 11 : 12, next = i % 2 ? 12 : 11;

		faults += i % 2 ? 7 : 3;
		if (i == 4) {
			struct pd_id id = { 10, 12, 1000 * (i + 1) - 1, IDS, 0 };

			pd_task(&m->w, attr, &id, PERF_RECORD_EXIT, 10, 12, 10, 11);
		}
		leave(m, 0, 1000 * (i + 1), i == 4 ? -1 : 10, i == 4 ? -1 : tid, 10, next, 40 + i,
		      faults);
	}
	pd_round(&m->w);
}

static void make_two_threads(struct made *m)
{
	make_group(m);
	two_threads(m);
	done(m);
}

static void check_two_threads(const struct result *r, bool times)
{
	assert_int_equal(r->open, 0);
	assert_int_equal(r->damage, 0);
	assert_true(json_is_false(json_object_get(r->report, "estimate")));
	assert_int_equal(row_value(r, 11, "page-faults", "value"), 14);
	assert_int_equal(row_value(r, 12, "page-faults", "value"), 6);
	assert_int_equal(row_value(r, -1, "page-faults", "value"), -1); /* nothing is nobody's */
	assert_int_equal(r->sum.samples, 4);
	assert_int_equal(r->sum.unseen, 0);
	if (times) {
		assert_int_equal(row_value(r, 11, NULL, "preempted"), 2);
		assert_int_equal(row_value(r, 12, NULL, "preempted"), 0);
	}
	assert_int_equal(row_value(r, 12, NULL, "slices"), 2);
	assert_int_equal(r->sum.exact_ns, r->sum.oncpu_ns);
}

/* The file from its header on. */
static void read_two_threads(struct made *m, bool times)
{
	struct result r;

	pd_head(&m->w);
	two_threads(m);
	done(m);
	read_result(&r, m->path);
	check_two_threads(&r, times);
	drop(m, &r);
}

/* Both orders, both modes, all that a reading can hold, events with and without ids. */
static void test_forms(void **state)
{
	const uint64_t extra[] = { 0, PERF_SAMPLE_IP,
				   PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD,
				   PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CALLCHAIN };

	(void)state;
	for (unsigned bits = 0; bits < 1u << 6; bits++) {
		uint64_t format =
			PERF_FORMAT_GROUP | (bits & 4 ? PERF_FORMAT_ID : 0) |
			(bits & 8 ? PERF_FORMAT_TOTAL_TIME_ENABLED |
					    PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_LOST
				  : 0);
		struct made m;

		make(&m, bits & 1, bits & 2);
		group(&m, wide | extra[bits >> 4], format);
		read_two_threads(&m, true);
	}
}

/* The ids say whose a value is, also where the next sample has them in another order. */
static void test_values_change_places(void **state)
{
	struct made m;

	(void)state;
	make(&m, false, false);
	m.turned = true;
	group(&m, wide, PERF_FORMAT_GROUP | PERF_FORMAT_ID);
	read_two_threads(&m, true);
}

/* Page faults of a cgroup's row; -1: there is none. */
static int64_t faults_of_cgroup(const struct result *r, const char *path)
{
	size_t i;
	json_t *row;

	json_array_foreach(json_object_get(r->report, "rows"), i, row)
	{
		const char *cgroup = json_string_value(json_object_get(row, "cgroup"));

		if (cgroup && !strcmp(cgroup, path))
			return integer(
				json_object_get(json_object_get(row, "counts"), "page-faults"),
				"value");
	}
	return -1;
}

/* The recording's own ids and paths, whatever cgroups this machine has. */
static void test_cgroups(void **state)
{
	const uint64_t types[] = { wide, wide | PERF_SAMPLE_RAW,
				   wide | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW };
	const struct csw_opts opts = { .size = sizeof(opts), .cgroups = 1 };

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		const struct pd_id none = { .pid = 0 };
		struct result r;
		struct made m;

		make(&m, i % 2, false);
		group(&m, types[i / 2] | PERF_SAMPLE_CGROUP, PERF_FORMAT_GROUP | PERF_FORMAT_ID);
		pd_head(&m.w);
		pd_cgroup(&m.w, &m.w.attrs[0], &none, CGROUPS + 12, "/b/c.service");
		pd_cgroup(&m.w, &m.w.attrs[0], &none, CGROUPS + 11, "/a");
		pd_cgroup(&m.w, &m.w.attrs[0], &none, CGROUPS + 11, "/not/again");
		two_threads(&m);
		done(&m);
		read_with(&r, m.path, &opts, CSW_BY_CGROUP, NULL, NULL);
		assert_int_equal(r.open, 0);
		assert_int_equal(faults_of_cgroup(&r, "/a"), 14);
		assert_int_equal(faults_of_cgroup(&r, "/b/c.service"), 6);
		json_decref(r.report);
		/* Nobody asked: nothing is split by what the samples say. */
		read_result(&r, m.path);
		check_two_threads(&r, true);
		drop(&m, &r);
	}
}

static void test_samples_without_cgroups(void **state)
{
	const struct csw_opts opts = { .size = sizeof(opts), .cgroups = 1 };
	struct result r;
	struct made m;

	(void)state;
	make_two_threads(&m);
	read_with(&r, m.path, &opts, CSW_BY_CGROUP, NULL, NULL);
	assert_int_equal(r.open, -EOPNOTSUPP);
	assert_non_null(strstr(r.err.text, "--all-cgroups"));
	drop(&m, &r);
}

/* Where ids are in the samples but not at a fixed place, or only one event is there. */
static void test_attr_sizes(void **state)
{
	static const uint32_t sizes[] = { 64, 72, 80, 96, 112, 128, 136, 200 };

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct made m;

		make(&m, i % 2, i % 3 == 0);
		group(&m, wide, PERF_FORMAT_GROUP | PERF_FORMAT_ID);
		for (unsigned k = 0; k < m.w.nr_attrs; k++)
			m.w.attrs[k].bytes = sizes[i];
		read_two_threads(&m, true);
	}
}

/* Without any switch record each sample is a switch, of the exiting thread too. */
static void test_switches_by_samples(void **state)
{
	struct result r;
	struct made m;

	(void)state;
	make(&m, false, false);
	group(&m, wide, PERF_FORMAT_GROUP | PERF_FORMAT_ID);
	m.w.attrs[0].flags = PD_SAMPLE_ID_ALL;
	pd_head(&m.w);
	two_threads(&m);
	done(&m);
	read_result(&r, m.path);
	check_two_threads(&r, false);
	assert_int_equal(row_value(&r, 12, NULL, "oncpu_ns"), 2000);
	drop(&m, &r);
}

static void add_tracepoint(struct made *m)
{
	m->w.attrs[m->w.nr_attrs++] = (struct pd_attr){
		.type = PERF_TYPE_TRACEPOINT,
		.config = 300,
		.period = 1,
		.sample_type = (wide & ~(uint64_t)PERF_SAMPLE_READ) | PERF_SAMPLE_RAW,
		.flags = PD_SAMPLE_ID_ALL,
		.name = "sched:sched_switch",
		.ids = { IDS },
		.nr_ids = 1,
	};
}

/* exits: then the kernel's sample is of nobody. */
static void put_tracepoint(struct made *m, uint64_t time, int32_t prev, int32_t next, bool sleeps,
			   bool exits)
{
	uint32_t tids[] = { (uint32_t)prev, (uint32_t)next };
	int32_t tid = exits ? -1 : prev;
	unsigned char raw[68] = { 0 };

	for (unsigned i = 0; i < 2 && m->w.swap; i++)
		tids[i] = __builtin_bswap32(tids[i]);
	memcpy(raw + 24, &tids[0], 4);
	raw[32] = sleeps; /* prev_state */
	memcpy(raw + 56, &tids[1], 4);
	pd_sample(&m->w, &m->w.attrs[0],
		  &(struct pd_sample){ .id = { .pid = tid, .tid = tid, .time = time, .id = IDS },
				       .raw = raw,
				       .raw_bytes = 68 });
}

/* sched:sched_switch says who leaves and who comes, the one who exits too. */
static void test_switches_by_tracepoint(void **state)
{
	for (unsigned swap = 0; swap < 2; swap++) {
		struct result r;
		struct made m;

		(void)state;
		make(&m, swap, false);
		add_tracepoint(&m);
		pd_head(&m.w);
		for (uint32_t i = 0; i < 5; i++)
			put_tracepoint(&m, 1000 * (i + 1), i % 2 ? 11 : 12, i % 2 ? 12 : 11, i % 2,
				       i == 4);
		done(&m);
		read_result(&r, m.path);
		assert_int_equal(r.open, 0);
		assert_int_equal(r.damage, 0);
		assert_int_equal(row_value(&r, 11, NULL, "oncpu_ns"), 2000);
		assert_int_equal(row_value(&r, 12, NULL, "oncpu_ns"), 2000);
		assert_int_equal(row_value(&r, 11, NULL, "voluntary"), 2);
		assert_int_equal(row_value(&r, 12, NULL, "preempted"), 2);
		assert_int_equal(r.sum.exact_ns, 4000);
		drop(&m, &r);
	}
}

/* 12 comes and 13 leaves: a sample is missing, and who ran when nobody knows. */
static void test_missing_tracepoint(void **state)
{
	struct result r;
	struct made m;

	(void)state;
	make(&m, false, false);
	add_tracepoint(&m);
	pd_head(&m.w);
	put_tracepoint(&m, 1000, 12, 11, true, false);
	put_tracepoint(&m, 2000, 11, 12, true, false);
	put_tracepoint(&m, 3000, 13, 11, true, false);
	put_tracepoint(&m, 4000, 11, 12, true, false);
	done(&m);
	read_result(&r, m.path);
	assert_int_equal(row_value(&r, 11, NULL, "oncpu_ns"), 2000);
	assert_true(row_value(&r, 12, NULL, "oncpu_ns") <= 0);
	assert_true(row_value(&r, 13, NULL, "oncpu_ns") <= 0);
	assert_int_equal(r.sum.unseen, 1);
	assert_int_equal(r.sum.exact_ns, 2000);
	drop(&m, &r);
}

/* ---- events that were recorded twice ---- */

#define TWIN_IDS 200

/* The group, and beside it context-switches once more: with a group of its own (member), or alone.
 */
static void make_twins(struct made *m, bool swap, bool pipe, uint64_t type, uint64_t format,
		       uint64_t member)
{
	make(m, swap, pipe);
	group(m, wide, PERF_FORMAT_GROUP | PERF_FORMAT_ID);
	for (unsigned i = 0; i < (member ? 2 : 1); i++) {
		m->w.attrs[m->w.nr_attrs++] = (struct pd_attr){
			.type = PERF_TYPE_SOFTWARE,
			.config = i ? member : PERF_COUNT_SW_CONTEXT_SWITCHES,
			.period = i == 0,
			.sample_type = type,
			.read_format = format,
			.flags = PD_SAMPLE_ID_ALL,
			.name = i ? "other" : "again",
			.ids = { TWIN_IDS + 2 * i, TWIN_IDS + 2 * i + 1 },
			.nr_ids = 2,
		};
	}
	pd_head(&m->w);
}

/* The twin's sample of a switch; its id is the one that the kernel has left there. */
static void put_twin(struct made *m, uint32_t cpu, uint64_t time, int32_t tid, uint64_t id)
{
	const uint64_t values[] = { time, 7 }, ids[] = { TWIN_IDS + cpu, TWIN_IDS + 2 + cpu };

	pd_sample(&m->w, &m->w.attrs[3],
		  &(struct pd_sample){ .id = { tid, tid, time, id, cpu },
				       .values = values,
				       .value_ids = ids,
				       .nr = m->w.attrs[3].read_format & PERF_FORMAT_GROUP ? 2 : 1,
				       .period = 1 });
}

/* Both samples of each switch carry the twin's id, which comes first; 20 and 21 take turns, with 5
 * faults and 1. */
static void leave_twice(struct made *m, uint64_t nr)
{
	int32_t tid = 20 + (int32_t)(nr % 2), next = 41 - tid;
	const uint64_t time = 1000 * (nr + 1), faults = nr / 2 * 6 + nr % 2;
	struct pd_attr *leader = &m->w.attrs[0];
	const uint64_t values[] = { nr, faults, time }, ids[] = { IDS, IDS + 2, IDS + 4 };
	struct pd_id id = { tid, tid, time, TWIN_IDS, 0 };

	put_twin(m, 0, time, tid, TWIN_IDS);
	pd_sample(&m->w, leader,
		  &(struct pd_sample){ .id = id, .values = values, .value_ids = ids, .nr = 3 });
	id.time++;
	id.id = IDS;
	pd_switch(&m->w, leader, &id, true, false, next, next);
	id.pid = id.tid = next;
	pd_switch(&m->w, leader, &id, false, false, tid, tid);
}

static void read_twins(struct made *m, struct result *r)
{
	for (uint64_t nr = 0; nr < 9; nr++)
		leave_twice(m, nr);
	pd_round(&m->w);
	done(m);
	read_result(r, m->path);
	assert_int_equal(r->open, 0);
}

/* A twin without a reading has other samples: those of the group make the slices, with its counts,
 * and the twin's are an estimate. */
static void test_twin_without_a_group(void **state)
{
	static const uint64_t types[] = {
		wide & ~(uint64_t)PERF_SAMPLE_READ,
		(wide & ~(uint64_t)PERF_SAMPLE_READ) | PERF_SAMPLE_CALLCHAIN,
		wide, /* with its own reading of one value */
	};

	(void)state;
	for (unsigned i = 0; i < 3 * 4; i++) {
		struct result r;
		struct made m;

		make_twins(&m, i & 1, i & 2, types[i / 4], PERF_FORMAT_ID, 0);
		read_twins(&m, &r);
		assert_int_equal(r.damage, 0);
		assert_int_equal(r.sum.samples, 8);
		assert_int_equal(r.sum.unseen, 0);
		assert_int_equal(row_value(&r, 20, "page-faults", "value"), 20);
		assert_int_equal(row_value(&r, 21, "page-faults", "value"), 4);
		assert_int_equal(row_value(&r, 20, "again", "samples"), 5);
		assert_int_equal(row_value(&r, 21, "again", "samples"), 4);
		drop(&m, &r);
	}
}

static void check_refused(struct made *m, struct result *r, const char *word)
{
	assert_int_equal(r->damage, -EBADMSG);
	assert_non_null(strstr(r->err.text, word));
	assert_non_null(strstr(r->err.text, "offset "));
	assert_int_equal(r->sum.samples, 0);
	drop(m, r);
}

static void test_twin_with_a_group(void **state)
{
	struct result r;
	struct made m;

	(void)state;
	make_twins(&m, false, false, wide, PERF_FORMAT_GROUP | PERF_FORMAT_ID,
		   PERF_COUNT_SW_CPU_MIGRATIONS);
	read_twins(&m, &r);
	check_refused(&m, &r, "leads two groups");
}

/* Samples of the same length without ids in them: nobody knows. */
static void test_twins_alike(void **state)
{
	struct result r;
	struct made m;

	(void)state;
	make(&m, false, false);
	group(&m, wide, PERF_FORMAT_GROUP);
	m.w.attrs[3] = m.w.attrs[0];
	m.w.attrs[3].ids[0] = TWIN_IDS;
	m.w.attrs[3].nr_ids = 1;
	m.w.nr_attrs = 4;
	pd_head(&m.w);
	read_twins(&m, &r);
	check_refused(&m, &r, "recorded twice");
}

/* page-faults sampled twice, without slices: as long as every id is a sample's own, it counts. */
static void test_estimates_of_twins(void **state)
{
	(void)state;
	for (unsigned shared_id = 0; shared_id < 2; shared_id++) {
		struct result r;
		struct made m;

		make(&m, false, false);
		for (unsigned i = 0; i < 2; i++)
			m.w.attrs[m.w.nr_attrs++] = (struct pd_attr){
				.type = PERF_TYPE_SOFTWARE,
				.config = PERF_COUNT_SW_PAGE_FAULTS,
				.period = 10 * (i + 1),
				.sample_type = wide & ~(uint64_t)PERF_SAMPLE_READ,
				.flags = PD_SAMPLE_ID_ALL,
				.name = i ? "second" : "first",
				.ids = { IDS + i },
				.nr_ids = 1,
			};
		pd_head(&m.w);
		for (uint64_t i = 1; i <= 8; i++) {
			struct pd_sample sample = { .id = { 20, 20, 1000 * i, IDS, 0 } };

			pd_sample(&m.w, &m.w.attrs[0], &sample);
			sample.id.id = shared_id ? IDS : IDS + 1;
			if (i % 2 == 0)
				pd_sample(&m.w, &m.w.attrs[1], &sample);
		}
		done(&m);
		read_result(&r, m.path);
		assert_int_equal(r.open, 0);
		if (shared_id) {
			check_refused(&m, &r, "recorded twice");
			continue;
		}
		assert_int_equal(r.damage, 0);
		assert_int_equal(row_value(&r, 20, "first", "value"), 80);
		assert_int_equal(row_value(&r, 20, "second", "value"), 80);
		drop(&m, &r);
	}
}

/* Rings are written one after the other, and what one round has may be earlier than the last one's.
 */
static void test_rings_in_any_order(void **state)
{
	struct result r, by_cpu;
	struct made m;

	(void)state;
	make_group(&m);
	for (uint64_t round = 0; round < 10; round++) {
		for (uint32_t cpu = 2; cpu-- > 0;) {
			for (uint64_t i = 0; i < 5; i++) {
				uint64_t nr = 5 * round + i;
				int32_t tid = 20 + (int32_t)cpu * 2 + (int32_t)(nr % 2);
				int32_t next = 20 + (int32_t)cpu * 2 + (int32_t)((nr + 1) % 2);

				/* CPU 1's ring is read late: its times lie before CPU 0's. */
				leave(&m, cpu, 1000 * (nr + 10) + (cpu ? 0 : 3500), tid, tid, next,
				      next, nr, 2 * nr);
			}
		}
		pd_round(&m.w);
	}
	done(&m);
	read_result(&r, m.path);
	assert_int_equal(r.sum.samples, 98);
	assert_int_equal(r.sum.unseen, 0);
	for (int32_t tid = 20; tid < 24; tid++)
		assert_int_equal(row_value(&r, tid, "page-faults", "value"), tid % 2 ? 50 : 48);
	read_with(&by_cpu, m.path, &defaults, CSW_BY_CPU, NULL, NULL);
	assert_int_equal(json_array_size(json_object_get(by_cpu.report, "rows")), 2);
	json_decref(by_cpu.report);
	drop(&m, &r);
}

/* ---- samples whose time another recorder's clock has filled in ---- */

#define LIMIT CSW_PERF_SAMPLE_TO_SWITCH_NS

/* When samples ended slices, each time once: a slice of several owners is told for each of them. */
struct ends {
	unsigned nr;
	uint64_t ns[8];
};

static int add_end(void *ctx, const struct csw_slice *slice)
{
	struct ends *all = ctx;

	if (all->nr && all->ns[all->nr - 1] == slice->to_ns)
		return 0;
	assert_true(all->nr < 8);
	all->ns[all->nr++] = slice->to_ns;
	return 0;
}

/* 11 runs for long and 12 for a short while. Where every sample's time is off by `shift`, its slice
 * ends `ends_at` from the true time. */
static void check_shifted(int64_t shift, bool narrow, int64_t ends_at)
{
	const uint64_t ms = 1000000;
	const uint64_t times[] = { 20 * ms, 60 * ms, 61 * ms, 90 * ms, 92 * ms };
	struct ends ends = { .nr = 0 };
	struct result r;
	struct made m;

	make_group(&m);
	m.shift = shift;
	m.narrow = narrow;
	for (unsigned i = 0; i < 5; i++) {
		int32_t tid = i % 2 ? 11 : 12, next = i % 2 ? 12 : 11;

		leave(&m, 0, times[i], 10, tid, 10, next, i, 10 * i);
	}
	done(&m);
	read_with(&r, m.path, &defaults, CSW_BY_THREAD, add_end, &ends);
	assert_int_equal(ends.nr, 5);
	for (unsigned i = 1; i < 5; i++)
		assert_int_equal(ends.ns[i - 1], times[i] + (uint64_t)ends_at);
	if (!narrow) {
		/* The time up to the last sample, and what SWITCH_IN and the end add. */
		assert_in_range(row_value(&r, 11, NULL, "oncpu_ns"), 68 * ms, 70 * ms);
		assert_in_range(row_value(&r, 12, NULL, "oncpu_ns"), 2 * ms, 4 * ms);
		assert_int_equal(row_value(&r, 11, "page-faults", "value"), 20);
		assert_int_equal(row_value(&r, 12, "page-faults", "value"), 20);
		assert_int_equal(r.sum.exact_ns, r.sum.oncpu_ns);
	}
	drop(&m, &r);
}

/* Of a SWITCH_OUT that is 1 behind its sample. */
static void test_sample_of_another_clock(void **state)
{
	(void)state;
	for (int narrow = 0; narrow < 2; narrow++) {
		check_shifted(0, narrow, 0);
		/* ahead */
		check_shifted(1, narrow, 1);
		check_shifted(2, narrow, 1);
		check_shifted(INT64_MAX / 2, narrow, 1);
		/* behind, by less than may lie between a sample and its SWITCH_OUT, and by more */
		check_shifted(1 - LIMIT, narrow, 1 - LIMIT);
		check_shifted(-LIMIT, narrow, 1);
		check_shifted(-900000, narrow, 1);
	}
}

/* Records that are no SWITCH_OUT say nothing of when the sample before them was taken but that it
 * was not later; COMM has its bit for something else. Another sample does not even say that. */
static void test_sample_before_no_switch(void **state)
{
	enum { SWITCH_IN, COMM, SAMPLE, NR_KINDS };
	const uint64_t sampled = 1000000, next = sampled + 10 * LIMIT;

	(void)state;
	assert_int_equal(PERF_RECORD_MISC_COMM_EXEC, PERF_RECORD_MISC_SWITCH_OUT);
	for (unsigned kind = 0; kind < 2 * NR_KINDS; kind++) {
		const struct pd_attr *attr;
		struct pd_id id = { .pid = 10, .tid = 11, .time = next, .id = IDS };
		struct ends ends = { .nr = 0 };
		bool later = kind >= NR_KINDS;
		struct result r;
		struct made m;

		make_group(&m);
		attr = &m.w.attrs[0];
		leave(&m, 0, 1000, 10, 12, 10, 11, 40, 0);
		m.samples_only = true;
		m.shift = later ? 11 * LIMIT : 0;
		leave(&m, 0, sampled, 10, 11, 10, 11, 41, 7);
		m.shift = 0;
		if (kind % NR_KINDS == SWITCH_IN) {
			pd_switch(&m.w, attr, &id, false, false, 10, 11);
		} else if (kind % NR_KINDS == SAMPLE) {
			leave(&m, 0, next, 10, 11, 10, 11, 42, 8);
		} else {
			pd_begin(&m.w, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
			pd_u32(&m.w, 10);
			pd_u32(&m.w, 11);
			pd_text(&m.w, "new", 8);
			pd_sample_id(&m.w, attr, &id);
			pd_end(&m.w);
		}
		done(&m);
		read_with(&r, m.path, &defaults, CSW_BY_THREAD, add_end, &ends);
		assert_true(ends.nr >= 1);
		assert_int_equal(ends.ns[0], !later                      ? sampled
					     : kind % NR_KINDS == SAMPLE ? next + LIMIT
									 : next);
		drop(&m, &r);
	}
}

/* From the loss on, nothing is anybody's until the next sample. */
static void test_lost(void **state)
{
	struct result r;
	struct made m;

	(void)state;
	make_group(&m);
	leave(&m, 0, 1000, 1, 1, 2, 2, 1, 0);
	leave(&m, 0, 2000, 2, 2, 1, 1, 2, 10);
	pd_lost(&m.w, &m.w.attrs[0], &(struct pd_id){ .time = 4000, .id = IDS }, 6);
	leave(&m, 0, 5000, 2, 2, 1, 1, 6, 50);
	leave(&m, 0, 6000, 1, 1, 2, 2, 7, 60);
	done(&m);
	read_result(&r, m.path);
	assert_int_equal(row_value(&r, 2, "page-faults", "value"), 10);
	assert_int_equal(row_value(&r, 1, "page-faults", "value"), 10);
	assert_int_equal(row_value(&r, -1, "page-faults", "value"), 40);
	assert_int_equal(r.sum.lost, 3);
	drop(&m, &r);
}

/* Of ordinary samples it is only said how many are missing. */
static void test_lost_samples(void **state)
{
	struct pd_sample sample = { .id = { 5, 6, 1000, IDS, 0 }, .period = 77 };
	struct result r;
	struct made m;

	(void)state;
	make(&m, false, false);
	m.w.attrs[m.w.nr_attrs++] = (struct pd_attr){
		.type = PERF_TYPE_HARDWARE,
		.period = 100,
		.sample_type = (wide & ~(uint64_t)PERF_SAMPLE_READ) | PERF_SAMPLE_PERIOD,
		.flags = PD_SAMPLE_ID_ALL,
		.ids = { IDS },
		.nr_ids = 1,
	};
	pd_head(&m.w);
	pd_sample(&m.w, &m.w.attrs[0], &sample);
	pd_lost(&m.w, &m.w.attrs[0], &(struct pd_id){ .time = 2000, .id = IDS }, 6);
	sample.id.time = 3000;
	pd_sample(&m.w, &m.w.attrs[0], &sample);
	done(&m);
	read_result(&r, m.path);
	assert_int_equal(row_value(&r, 6, "cycles", "value"), 154);
	assert_int_equal(row_value(&r, 6, "cycles", "samples"), 2);
	assert_int_equal(r.sum.lost_records, 6);
	assert_int_equal(r.sum.duration_ns, 2000);
	drop(&m, &r);
}

/* ---- zstd ---- */

static void put_frames(struct made *m, const char *bytes, size_t nr, bool second, size_t step)
{
	ZSTD_CStream *z = ZSTD_createCStream();
	size_t done_bytes = 0;

	assert_non_null(z);
	ZSTD_initCStream(z, 3);
	while (done_bytes < nr) {
		size_t part = nr - done_bytes < step ? nr - done_bytes : step;
		char out[8192];
		ZSTD_inBuffer in = { bytes + done_bytes, part, 0 };
		ZSTD_outBuffer to = { out, sizeof(out), 0 };

		ZSTD_compressStream2(z, &to, &in, ZSTD_e_flush);
		assert_int_equal(in.pos, part);
		done_bytes += part;
		pd_begin(&m->w, second ? 83 : 81, 0);
		if (second)
			pd_u64(&m->w, to.pos);
		pd_put(&m->w, out, to.pos);
		while (second && m->w.nr % 8)
			pd_put(&m->w, "", 1);
		pd_end(&m->w);
	}
	ZSTD_freeCStream(z);
}

/* Records are cut anywhere, frames go on, and records that are not compressed stand between. */
static void test_compressed(void **state)
{
	static const size_t steps[] = { 13, 100, 1000, 4000 };

	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		char *bytes = NULL;
		size_t nr = 0;
		struct result r;
		struct made m;

		make(&m, i & 2, i & 1);
		group(&m, wide, PERF_FORMAT_GROUP | PERF_FORMAT_ID);
		pd_head(&m.w);
		m.w.aside = open_memstream(&bytes, &nr);
		assert_non_null(m.w.aside);
		two_threads(&m);
		fclose(m.w.aside);
		m.w.aside = NULL;
		put_frames(&m, bytes, nr, i & 4, steps[i / 4]);
		free(bytes);
		pd_round(&m.w);
		done(&m);
		read_result(&r, m.path);
		check_two_threads(&r, true);
		drop(&m, &r);
	}
}

/* Newest first: where slices would be made of it, by the trigger or by another event's switch
 * records, the file is refused; an event that is only sampled may be so. */
static void test_written_backward(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct result r;
		struct made m;

		make(&m, i & 1, false);
		group(&m, wide, PERF_FORMAT_GROUP | PERF_FORMAT_ID);
		if (i == 0) /* the side-band stands in another ring */
			m.w.attrs[0].flags &= ~PD_CONTEXT_SWITCH;
		m.w.attrs[3] = (struct pd_attr){
			.type = PERF_TYPE_SOFTWARE,
			.config = PERF_COUNT_SW_DUMMY,
			.sample_type = wide,
			.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID,
			.flags = PD_SAMPLE_ID_ALL | (i < 2 ? PD_CONTEXT_SWITCH : 0),
			.ids = { IDS + 6 },
			.nr_ids = 1,
		};
		m.w.nr_attrs = 4;
		m.w.attrs[i == 0 ? 0 : 3].flags |= PD_WRITE_BACKWARD;
		pd_head(&m.w);
		two_threads(&m);
		done(&m);
		read_result(&r, m.path);
		if (i == 2) {
			check_two_threads(&r, true);
		} else {
			assert_int_equal(r.open, -EOPNOTSUPP);
			assert_non_null(strstr(r.err.text, "record without --overwrite"));
		}
		drop(&m, &r);
	}
}

/* ---- unfinished, broken, cut ---- */

static void set_u64(const char *path, long at, uint64_t value)
{
	FILE *file = fopen(path, "r+");

	assert_non_null(file);
	assert_int_equal(fseek(file, at, SEEK_SET), 0);
	assert_int_equal(fwrite(&value, sizeof(value), 1, file), 1);
	assert_int_equal(fclose(file), 0);
}

static void test_unfinished(void **state)
{
	struct result r;
	struct made m;

	(void)state;
	make(&m, false, false);
	group(&m, wide, PERF_FORMAT_GROUP | PERF_FORMAT_ID);
	for (unsigned i = 0; i < 3; i++)
		m.w.attrs[i].name = NULL;
	pd_head(&m.w);
	two_threads(&m);
	assert_int_equal(fclose(m.w.file), 0); /* as a killed recorder leaves it */
	read_result(&r, m.path);
	check_two_threads(&r, true);
	assert_non_null(strstr(r.err.text, "never finished"));
	drop(&m, &r);
}

/* Whatever is broken: a line with the offset, and the part before it in the report. */
static void test_cut_short(void **state)
{
	struct result whole, r;
	struct made m;
	struct stat st;

	(void)state;
	make(&m, false, true);
	group(&m, wide, PERF_FORMAT_GROUP | PERF_FORMAT_ID);
	pd_head(&m.w);
	two_threads(&m);
	done(&m);
	read_result(&whole, m.path);
	assert_int_equal(stat(m.path, &st), 0);
	for (off_t size = st.st_size - 1; size >= 0; size -= 3) {
		assert_int_equal(truncate(m.path, size), 0);
		read_result(&r, m.path);
		assert_true(r.sum.samples <= whole.sum.samples);
		if (r.open < 0 || r.damage < 0) {
			assert_non_null(strstr(r.err.text, "offset "));
			assert_null(strchr(r.err.text, '\n'));
		}
		json_decref(r.report);
	}
	drop(&m, &whole);
}

/* Two files in one, or a tail of zeros: what was read stands, and a line says where it ends. */
static void test_bytes_behind_the_file(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		static const size_t tails[] = { 1, 4096, 0 /* the file once more */ };
		char where[64];
		struct result r;
		struct made m;
		struct stat st;
		FILE *file;
		char *bytes;
		size_t nr;

		make(&m, i & 1, false);
		group(&m, wide, PERF_FORMAT_GROUP | PERF_FORMAT_ID);
		pd_head(&m.w);
		two_threads(&m);
		done(&m);
		assert_int_equal(stat(m.path, &st), 0);
		bytes = calloc(1, (size_t)st.st_size + 4096);
		assert_non_null(bytes);
		nr = tails[i / 2] ? tails[i / 2] : (size_t)st.st_size;
		file = fopen(m.path, "r+");
		assert_non_null(file);
		if (!tails[i / 2])
			assert_int_equal(fread(bytes, 1, nr, file), nr);
		assert_int_equal(fseek(file, 0, SEEK_END), 0);
		assert_int_equal(fwrite(bytes, 1, nr, file), nr);
		assert_int_equal(fclose(file), 0);
		free(bytes);
		read_result(&r, m.path);
		assert_int_equal(r.open, 0);
		assert_int_equal(r.damage, -EBADMSG);
		snprintf(where, sizeof(where), "%zu bytes at offset %" PRId64, nr,
			 (int64_t)st.st_size);
		assert_non_null(strstr(r.err.text, where));
		r.damage = 0;
		check_two_threads(&r, true);
		drop(&m, &r);
	}
}

/* simpleperf leaves rests of old sections behind its files, as the reference of one shows; zeros
 * are no such thing, nor is another file. */
static void test_bytes_behind_a_real_file(void **state)
{
	static const char *const tails[] = { "\0\0\0\0\0\0\0\0", "PERFILE2", "any.rest" };

	(void)state;
	if (!find_shared())
		skip();
	for (size_t i = 0; i < sizeof(tails) / sizeof(*tails); i++) {
		char bytes[65536];
		struct result r;
		struct made m;
		size_t nr;
		FILE *file = fopen(path_of("files", "simpleperf-tracepoint_event", ".data"), "re");

		assert_non_null(file);
		nr = fread(bytes, 1, sizeof(bytes), file);
		assert_true(nr > 0 && feof(file));
		fclose(file);
		make(&m, false, false);
		assert_int_equal(fwrite(bytes, 1, nr, m.w.file), nr);
		assert_int_equal(fwrite(tails[i], 1, 8, m.w.file), 8);
		assert_int_equal(fclose(m.w.file), 0);
		read_result(&r, m.path);
		assert_int_equal(r.open, 0);
		assert_int_equal(r.damage, i == 2 ? 0 : -EBADMSG);
		drop(&m, &r);
	}
}

static void test_broken_headers(void **state)
{
	static const struct {
		long at;
		uint64_t value;
	} damages[] = {
		{ 0, 0x454c494646524550ull }, /* version 1 */
		{ 0, 0x1234 },
		{ 8, 3 },  /* the header's size */
		{ 16, 0 }, /* an event's size */
		{ 16, 1ull << 60 },
		{ 24, 1ull << 60 }, /* the events' place */
		{ 32, 1ull << 40 }, /* ... and size */
		{ 40, 1ull << 50 }, /* the records' place */
		{ 48, UINT64_MAX }, /* ... and size */
		{ 48, 1ull << 40 },
		{ 48, 40 },         /* ends in the middle of a record */
		{ 72, UINT64_MAX }, /* the features */
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
		struct result r;
		struct made m;

		make_two_threads(&m);
		set_u64(m.path, damages[i].at, damages[i].value);
		read_result(&r, m.path);
		if (r.open >= 0 && r.damage >= 0)
			fail_msg("damage %u was not noticed", i);
		assert_non_null(strstr(r.err.text, "offset "));
		drop(&m, &r);
	}
	{
		struct result r;

		read_result(&r, "/nowhere/perf.data");
		assert_int_equal(r.open, -ENOENT);
		read_result(&r, "/tmp");
		assert_int_equal(r.open, -EISDIR);
	}
}

/* ---- what a file is asked for ---- */

static void test_window_of_time(void **state)
{
	struct csw_opts opts = { .size = sizeof(opts), .from_ns = 2000, .to_ns = 4500 };
	struct result r;
	struct made m;

	(void)state;
	make_two_threads(&m);
	read_with(&r, m.path, &opts, CSW_BY_THREAD, NULL, NULL);
	assert_int_equal(row_value(&r, 12, "page-faults", "value"), 3);
	assert_int_equal(row_value(&r, 11, "page-faults", "value"), 7);
	json_decref(r.report);
	/* The same, from the first sample on, which is at 1000. */
	opts.from_ns = 1000;
	opts.to_ns = 3500;
	opts.time_flags = CSW_TIME_FROM_FIRST | CSW_TIME_TO_FIRST;
	read_with(&r, m.path, &opts, CSW_BY_THREAD, NULL, NULL);
	assert_int_equal(row_value(&r, 12, "page-faults", "value"), 3);
	assert_int_equal(row_value(&r, 11, "page-faults", "value"), 7);
	drop(&m, &r);
}

/* Records of threads and switches may come long before the first sample: a time is counted from
 * that, unless nothing was sampled. */
static void test_time_from_the_first_sample(void **state)
{
	struct csw_opts opts = { .size = sizeof(opts),
				 .from_ns = 1000,
				 .to_ns = 3500,
				 .time_flags = CSW_TIME_FROM_FIRST | CSW_TIME_TO_FIRST };
	struct pd_id early = { .pid = 10, .tid = 11, .time = 400, .id = IDS };
	struct result r;
	struct made m;

	(void)state;
	make_group(&m);
	pd_switch(&m.w, &m.w.attrs[0], &early, true, false, 10, 12);
	early.tid = 12;
	early.time++;
	pd_switch(&m.w, &m.w.attrs[0], &early, false, false, 10, 11);
	two_threads(&m);
	done(&m);
	read_with(&r, m.path, &opts, CSW_BY_THREAD, NULL, NULL);
	assert_int_equal(row_value(&r, 12, "page-faults", "value"), 3);
	assert_int_equal(row_value(&r, 11, "page-faults", "value"), 7);
	drop(&m, &r);

	make(&m, false, false);
	group(&m, wide, PERF_FORMAT_GROUP | PERF_FORMAT_ID);
	m.w.nr_attrs = 1;
	m.w.attrs[0].config = PERF_COUNT_SW_DUMMY;
	pd_head(&m.w);
	for (uint64_t i = 0; i < 5; i++) {
		struct pd_id id = {
			.pid = 10, .tid = 11 + (i & 1), .time = 1000 * (i + 1), .id = IDS
		};
		int32_t next = i & 1 ? 11 : 12;

		pd_switch(&m.w, &m.w.attrs[0], &id, true, false, 10, next);
		id.tid = next;
		pd_switch(&m.w, &m.w.attrs[0], &id, false, false, 10, i & 1 ? 12 : 11);
	}
	pd_round(&m.w);
	done(&m);
	read_with(&r, m.path, &opts, CSW_BY_THREAD, NULL, NULL);
	assert_int_equal(row_value(&r, 11, NULL, "oncpu_ns"), 1000);
	assert_int_equal(row_value(&r, 12, NULL, "oncpu_ns"), 1000);
	drop(&m, &r);
}

/* What nobody recorded is no empty table. */
static void test_window_without_a_record(void **state)
{
	static const struct {
		uint64_t from_ns, to_ns;
		uint32_t flags;
		const char *says;
	} windows[] = {
		{ 10000, 0, 0, "from 0.000010 on; the recording goes from 0.000001 to 0.000005" },
		{ 10, 20, 0, "from 0.000000 to 0.000000;" },
		{ 2100, 2900, 0, "to 0.000002;" },
		{ 4001, 9000, CSW_TIME_FROM_FIRST | CSW_TIME_TO_FIRST, "that is +0 to +0.000004" },
		{ 9000, 4000, CSW_TIME_TO_FIRST, "from 0.000009 to 0.000005;" },
	};
	struct made m;

	(void)state;
	make_two_threads(&m);
	for (size_t i = 0; i < sizeof(windows) / sizeof(*windows); i++) {
		struct csw_opts opts = { .size = sizeof(opts),
					 .input = m.path,
					 .from_ns = windows[i].from_ns,
					 .to_ns = windows[i].to_ns,
					 .time_flags = windows[i].flags };
		struct csw_error err;
		struct csw_session *s;

		assert_int_equal(csw_open(&s, NULL, NULL, &opts, &err), 0);
		assert_int_equal(csw_start(s, &err), 0);
		while (csw_poll(s, 0, &err) > 0)
			;
		assert_int_equal(csw_stop(s, &err), -ENODATA);
		if (!strstr(err.text, windows[i].says))
			fail_msg("window %zu: %s", i, err.text);
		csw_close(s);
	}
	unlink(m.path);
}

static void test_scope(void **state)
{
	static const int32_t nobody[] = { 99 };
	struct csw_opts opts = { .size = sizeof(opts), .comms = "nobody,second" };
	struct result r;
	struct made m;

	(void)state;
	make_two_threads(&m);
	read_with(&r, m.path, &opts, CSW_BY_THREAD, NULL, NULL);
	assert_int_equal(row_value(&r, 12, "page-faults", "value"), 6);
	assert_int_equal(row_value(&r, 11, "page-faults", "value"), -1);
	assert_int_equal(row_value(&r, -1, "page-faults", "value"), 14); /* other */
	json_decref(r.report);
	opts = (struct csw_opts){ .size = sizeof(opts), .pids = nobody, .nr_pids = 1 };
	read_with(&r, m.path, &opts, CSW_BY_THREAD, NULL, NULL);
	assert_int_equal(row_value(&r, -1, "page-faults", "value"), 20);
	drop(&m, &r);
}

struct slices {
	unsigned nr;
	uint64_t ns[3], faults[3], ends[4];
};

static int add_slice(void *ctx, const struct csw_slice *slice)
{
	struct slices *all = ctx;
	int which = slice->tid == 11 ? 0 : slice->tid == 12 ? 1 : 2;

	all->nr++;
	all->ns[which] += slice->oncpu_ns;
	all->faults[which] += slice->values[0];
	all->ends[slice->end]++;
	return 0;
}

static void test_slices_add_up(void **state)
{
	struct slices all = { .nr = 0 };
	struct result r;
	struct made m;

	(void)state;
	make_two_threads(&m);
	read_with(&r, m.path, &defaults, CSW_BY_THREAD, add_slice, &all);
	for (int32_t tid = 11; tid <= 12; tid++) {
		assert_int_equal(all.ns[tid - 11], row_value(&r, tid, NULL, "oncpu_ns"));
		assert_int_equal(all.faults[tid - 11], row_value(&r, tid, "page-faults", "value"));
	}
	assert_int_equal(all.ends[CSW_END_PREEMPTED], 2);
	assert_int_equal(all.ends[CSW_END_VOLUNTARY], 2);
	drop(&m, &r);
}

static int refuse_slice(void *ctx, const struct csw_slice *slice)
{
	(void)ctx;
	(void)slice;
	return -ECANCELED;
}

static void test_receiver_refuses(void **state)
{
	struct csw_opts opts = { .size = sizeof(opts) };
	struct csw_session *s;
	struct csw_error err;
	struct made m;
	int ret = 1;

	(void)state;
	make_two_threads(&m);
	opts.input = m.path;
	assert_int_equal(csw_open(&s, NULL, NULL, &opts, &err), 0);
	assert_int_equal(csw_on_slice(s, refuse_slice, NULL, &err), 0);
	assert_int_equal(csw_start(s, &err), 0);
	while (ret > 0)
		ret = csw_poll(s, 0, &err);
	if (ret == 0)
		ret = csw_stop(s, &err);
	assert_int_equal(ret, -ECANCELED);
	csw_close(s);
	unlink(m.path);
}

/* ---- memory ---- */

/* A file of many windows without any round: blocks are used again. */
static void test_memory_is_bounded(void **state)
{
	static struct csw_stream s;
	struct csw_order order = { .window = 4096 };
	struct csw_error err;
	const struct perf_event_header *raw;
	const struct csw_ref *out;
	struct csw_ref ref;
	uint64_t nr = 0, last = 0;
	size_t most = 0;
	struct made m;

	(void)state;
	make_group(&m);
	for (uint64_t i = 0; i < 100000; i++)
		leave(&m, i % 2, 1000 * i + (i % 7) * 500, 1, 1, 2, 2, i, i);
	done(&m);
	assert_int_equal(csw_stream_open(&s, m.path, &err), 0);
	while (csw_stream_next(&s, &raw) > 0) {
		ref = (struct csw_ref){ .header = raw };
		ref.time_ns = csw_file_attrs_time(&s.attrs.attrs[0], raw, s.swap);
		csw_block_of(raw)->refs++;
		assert_int_equal(csw_order_add(&order, ref), 0);
		if (!csw_order_is_full(&order))
			continue;
		csw_order_halve(&order);
		while ((out = csw_order_next(&order))) {
			assert_true(out->time_ns >= last);
			last = out->time_ns;
			nr++;
			csw_block_put(&s.blocks, csw_block_of(out->header));
		}
		most = s.blocks.nr_all > most ? s.blocks.nr_all : most;
	}
	csw_order_end(&order);
	while ((out = csw_order_next(&order))) {
		nr++;
		csw_block_put(&s.blocks, csw_block_of(out->header));
	}
	assert_int_equal(nr, 300000);
	assert_int_equal(order.late, 0);
	assert_true(most <= 4); /* of 20 MB */
	csw_order_free(&order, &s.blocks);
	csw_stream_close(&s);
	assert_int_equal(s.blocks.nr_all, 0);
	unlink(m.path);
}

/* ---- the order alone ---- */

static void add_at(struct csw_order *order, struct csw_block *block, uint64_t time_ns,
		   uint32_t attr)
{
	block->refs++;
	assert_int_equal(csw_order_add(order, (struct csw_ref){ .time_ns = time_ns,
								.header = (void *)block->bytes,
								.attr = attr }),
			 0);
}

static void expect_next(struct csw_order *order, struct csw_blocks *pool, uint64_t time_ns,
			uint32_t attr)
{
	const struct csw_ref *ref = csw_order_next(order);

	assert_non_null(ref);
	assert_int_equal(ref->time_ns, time_ns);
	assert_int_equal(ref->attr, attr);
	csw_block_put(pool, csw_block_of(ref->header));
}

/* A run that ends earlier than the one before it is used up: what comes next must not go behind
 * that one. */
static void test_order_goes_on_behind_the_right_run(void **state)
{
	struct csw_blocks pool = { .free = NULL };
	struct csw_block *block = csw_block_get(&pool);
	struct csw_order order = { .window = 2 };

	(void)state;
	add_at(&order, block, 10, 0);
	add_at(&order, block, 100, 0);
	add_at(&order, block, 20, 0);
	add_at(&order, block, 30, 0);
	csw_order_halve(&order);
	expect_next(&order, &pool, 10, 0);
	expect_next(&order, &pool, 20, 0);
	assert_null(csw_order_next(&order));
	csw_order_halve(&order);
	expect_next(&order, &pool, 30, 0);
	assert_null(csw_order_next(&order));
	add_at(&order, block, 40, 0);
	csw_order_end(&order);
	expect_next(&order, &pool, 40, 0);
	expect_next(&order, &pool, 100, 0);
	assert_null(csw_order_next(&order));
	assert_int_equal(order.late, 0);
	csw_order_free(&order, &pool);
	csw_block_put(&pool, block);
	csw_blocks_free(&pool);
	assert_int_equal(pool.nr_all, 0);
}

/* Any number of runs, with the same times: those go out in the order of the file. What is left when
 * it ends half-way is freed. */
static void test_order_of_many_runs(void **state)
{
	struct csw_blocks pool = { .free = NULL };
	struct csw_block *block = csw_block_get(&pool);

	(void)state;
	for (uint32_t runs = 1; runs <= 9; runs++) {
		struct csw_order order = { .nr = 0 };

		for (uint32_t run = 0; run < runs; run++) {
			for (uint64_t i = 0; i < 5; i++)
				add_at(&order, block, i == 4 ? UINT64_MAX : 10 * i, run);
		}
		csw_order_end(&order);
		for (uint64_t i = 0; i < 4; i++) {
			for (uint32_t run = 0; run < runs; run++)
				expect_next(&order, &pool, 10 * i, run);
		}
		expect_next(&order, &pool, UINT64_MAX, 0);
		assert_int_equal(order.late, 0);
		csw_order_free(&order, &pool);
		assert_int_equal(block->refs, 1);
	}
	csw_block_put(&pool, block);
	csw_blocks_free(&pool);
}

/* ---- the fuzz target over files made here ---- */

static void run_target(const struct made *m)
{
	static uint8_t bytes[1 << 16];
	FILE *file = fopen(m->path, "rb");
	size_t nr;

	assert_non_null(file);
	nr = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	for (size_t cut = nr % 31; cut <= nr; cut += 31)
		LLVMFuzzerTestOneInput(bytes, cut);
	/* One byte after the other is something else. */
	for (size_t i = 0; i < nr; i += 11) {
		uint8_t was = bytes[i];

		bytes[i] ^= (uint8_t)(1u << i % 8);
		LLVMFuzzerTestOneInput(bytes, nr);
		bytes[i] = i % 2 ? 0xff : 0;
		LLVMFuzzerTestOneInput(bytes, nr);
		bytes[i] = was;
	}
}

static void test_corpus(void **state)
{
	const char *folder = getenv("CSW_CORPUS"); /* where to leave the files for libFuzzer */

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		char *bytes = NULL;
		size_t nr = 0;
		struct made m;

		make(&m, i & 1, i & 2);
		group(&m, wide, PERF_FORMAT_GROUP | PERF_FORMAT_ID);
		pd_head(&m.w);
		if (i & 4)
			m.w.aside = open_memstream(&bytes, &nr);
		two_threads(&m);
		if (i & 4) {
			fclose(m.w.aside);
			m.w.aside = NULL;
			put_frames(&m, bytes, nr, i & 1, 200);
			free(bytes);
		}
		done(&m);
		run_target(&m);
		if (folder) {
			char command[256];

			snprintf(command, sizeof(command), "cp %s %s/made-%u", m.path, folder, i);
			assert_int_equal(system(command), 0);
		}
		unlink(m.path);
	}
	/* What was found before. */
	assert_true(fuzz_run_corpus(CSW_SOURCE_DIR "/tests/fuzz/corpus/perfdata", 97) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reference_samples),
		cmocka_unit_test(test_reference_switches),
		cmocka_unit_test(test_reference_readings),
		cmocka_unit_test(test_reports_of_real_files),
		cmocka_unit_test(test_group_of_a_real_file),
		cmocka_unit_test(test_slices_of_a_real_file),
		cmocka_unit_test(test_malformed_real_files),
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_values_change_places),
		cmocka_unit_test(test_cgroups),
		cmocka_unit_test(test_samples_without_cgroups),
		cmocka_unit_test(test_attr_sizes),
		cmocka_unit_test(test_switches_by_samples),
		cmocka_unit_test(test_switches_by_tracepoint),
		cmocka_unit_test(test_missing_tracepoint),
		cmocka_unit_test(test_twin_without_a_group),
		cmocka_unit_test(test_twin_with_a_group),
		cmocka_unit_test(test_twins_alike),
		cmocka_unit_test(test_estimates_of_twins),
		cmocka_unit_test(test_rings_in_any_order),
		cmocka_unit_test(test_sample_of_another_clock),
		cmocka_unit_test(test_sample_before_no_switch),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_lost_samples),
		cmocka_unit_test(test_compressed),
		cmocka_unit_test(test_written_backward),
		cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_bytes_behind_the_file),
		cmocka_unit_test(test_bytes_behind_a_real_file),
		cmocka_unit_test(test_broken_headers),
		cmocka_unit_test(test_window_of_time),
		cmocka_unit_test(test_time_from_the_first_sample),
		cmocka_unit_test(test_window_without_a_record),
		cmocka_unit_test(test_scope),
		cmocka_unit_test(test_slices_add_up),
		cmocka_unit_test(test_receiver_refuses),
		cmocka_unit_test(test_memory_is_bounded),
		cmocka_unit_test(test_order_goes_on_behind_the_right_run),
		cmocka_unit_test(test_order_of_many_runs),
		cmocka_unit_test(test_corpus),
	};

	int ret = cmocka_run_group_tests(tests, NULL, NULL);

	json_decref(schema);
	return ret;
}
