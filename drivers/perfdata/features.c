/*
 * What a file says of its machine: the feature sections of a file, the feature records of a pipe,
 * simpleperf's META_INFO.
 *
 * They are a help, not the matter: what is broken in one is left out.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/perf/cursor.h"
#include "drivers/perfdata/perfdata.h"

enum feature {
	FEATURE_TRACING_DATA = 1,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE,
	FEATURE_VERSION,
	FEATURE_ARCH,
	FEATURE_NRCPUS,
	FEATURE_CPUDESC,
	FEATURE_CPUID,
	FEATURE_TOTAL_MEM,
	FEATURE_CMDLINE,
	FEATURE_EVENT_DESC,
	FEATURE_PMU_MAPPINGS = 16,
	FEATURE_SAMPLE_TIME = 21,
	FEATURE_CLOCKID = 23,
	FEATURE_COMPRESSED = 27,
	FEATURE_META_INFO = 129, /* simpleperf's */
};

/* A length, then so many bytes, filled up with NULs. */
static bool take_text(struct csw_cursor *p, const char **text, size_t *length)
{
	uint32_t bytes;

	if (csw_cursor_u32(p, &bytes) < 0 || bytes > (size_t)(p->end - p->at))
		return false;
	*text = (const char *)p->at;
	*length = strnlen(*text, bytes);
	p->at += bytes;
	return true;
}

int csw_features_note(struct csw_features *f, const char *name, const char *format, ...)
{
	struct csw_feature_text *texts;
	char *value = NULL, *own;
	va_list args;
	int ret;

	if (f->nr == CSW_FEATURES_MAX)
		return 0;
	va_start(args, format);
	ret = vasprintf(&value, format, args);
	va_end(args);
	own = strdup(name);
	texts = reallocarray(f->texts, f->nr + 1, sizeof(*texts));
	if (texts)
		f->texts = texts;
	if (ret < 0 || !own || !texts) {
		if (ret >= 0)
			free(value);
		free(own);
		return -ENOMEM;
	}
	f->texts[f->nr++] = (struct csw_feature_text){ own, value };
	return 0;
}

static int note_text(struct csw_features *f, const char *name, struct csw_cursor *p)
{
	const char *text;
	size_t length;

	if (!take_text(p, &text, &length))
		return 0;
	return csw_features_note(f, name, "%.*s", (int)length, text);
}

static int note_cpus(struct csw_features *f, struct csw_cursor *p)
{
	uint32_t available, online;

	if (csw_cursor_u32(p, &available) < 0 || csw_cursor_u32(p, &online) < 0)
		return 0;
	f->nr_cpus = available;
	return csw_features_note(f, "CPUs", "%u, %u of them online", available, online);
}

/* ---- the command line ---- */

/* Options after which perf follows threads and not CPUs, and the contrary. */
static void judge_word(struct csw_features *f, const char *word, size_t length)
{
	static const char *const wide[] = { "-a", "--all-cpus", "-C", "--cpu", "sched" };
	static const char *const thread[] = { "-p", "--pid", "-t", "--tid", "--per-thread" };

	for (size_t i = 0; i < sizeof(wide) / sizeof(*wide); i++) {
		if (strlen(wide[i]) == length && !memcmp(wide[i], word, length))
			f->says_wide = true;
	}
	for (size_t i = 0; i < sizeof(thread) / sizeof(*thread); i++) {
		if (strlen(thread[i]) == length && !memcmp(thread[i], word, length))
			f->per_thread = true;
	}
}

static int note_command(struct csw_features *f, struct csw_cursor *p)
{
	char *line = NULL;
	size_t bytes = 0, length;
	FILE *memory = open_memstream(&line, &bytes);
	bool behind = false;
	const char *word;
	uint32_t nr;
	int ret;

	if (!memory)
		return -ENOMEM;
	if (csw_cursor_u32(p, &nr) < 0)
		nr = 0;
	for (uint32_t i = 0; i < nr && take_text(p, &word, &length); i++) {
		behind |= length == 2 && !memcmp(word, "--", 2);
		if (!behind)
			judge_word(f, word, length);
		fprintf(memory, "%s%.*s", i ? " " : "", (int)length, word);
	}
	if (fclose(memory)) {
		free(line);
		return -ENOMEM;
	}
	ret = csw_features_note(f, "command", "%s", line);
	free(line);
	return ret;
}

/* ---- events ---- */

/* The ids say which event is meant; an event without ids is meant by its place. */
static int describe_event(struct csw_features *f, struct csw_file_attrs *a, struct csw_cursor *p,
			  uint32_t attr_bytes, uint32_t nr)
{
	struct csw_file_id *found = NULL;
	uint32_t nr_ids, place = nr;
	const char *name;
	size_t length;

	if (attr_bytes > (size_t)(p->end - p->at))
		return -EBADMSG;
	p->at += attr_bytes;
	if (csw_cursor_u32(p, &nr_ids) < 0 || !take_text(p, &name, &length))
		return -EBADMSG;
	for (uint32_t i = 0; i < nr_ids; i++) {
		uint64_t id;

		if (csw_cursor_u64(p, &id) < 0)
			return -EBADMSG;
		if (!found)
			found = csw_file_attrs_find(a, id);
	}
	if (found)
		place = found->attr;
	if (place < a->nr && !a->attrs[place].name[0])
		csw_file_attrs_name(&a->attrs[place], name, length);
	return csw_features_note(f, "event", "%.*s", (int)length, name);
}

static int describe_events(struct csw_features *f, struct csw_file_attrs *a, struct csw_cursor *p)
{
	uint32_t nr, attr_bytes;
	int ret = 0;

	if (csw_cursor_u32(p, &nr) < 0 || csw_cursor_u32(p, &attr_bytes) < 0)
		return 0;
	for (uint32_t i = 0; i < nr && i < CSW_ATTRS_MAX && ret == 0; i++)
		ret = describe_event(f, a, p, attr_bytes, i);
	return ret == -ENOMEM ? ret : 0;
}

/* "name,type,config" a line. */
static void describe_simpleperf_events(struct csw_file_attrs *a, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");
		char line[256];
		char name[CSW_EVENT_NAME_BYTES];
		unsigned type;
		unsigned long long config;

		if (length < sizeof(line)) {
			memcpy(line, text, length);
			line[length] = '\0';
			for (size_t i = 0; i < a->nr && sscanf(line, "%127[^,],%u,%llu", name,
							       &type, &config) == 3;
			     i++) {
				if (a->attrs[i].type == type && a->attrs[i].config == config &&
				    !a->attrs[i].name[0])
					csw_file_attrs_name(&a->attrs[i], name, sizeof(name));
			}
		}
		text += length + (text[length] == '\n');
	}
}

/* Pairs of texts, each with its NUL. */
static int read_meta_info(struct csw_features *f, struct csw_file_attrs *a, struct csw_cursor *p)
{
	const char *at = (const char *)p->at, *end = (const char *)p->end;
	int ret = 0;

	while (at < end && ret == 0) {
		const char *key = at, *value;
		size_t left = (size_t)(end - at), length = strnlen(key, left);

		if (length == left)
			break;
		value = key + length + 1;
		left -= length + 1;
		length = strnlen(value, left);
		if (length == left)
			break;
		at = value + length + 1;
		if (!strcmp(key, "event_type_info"))
			describe_simpleperf_events(a, value);
		else
			ret = csw_features_note(f, key, "%s", value);
		if (!strcmp(key, "system_wide_collection")) {
			f->says_wide = !strcmp(value, "true");
			f->per_thread = !f->says_wide;
		}
	}
	return ret;
}

/* ---- tracepoints ---- */

static const char *find_in(const char *at, const char *end, const char *what)
{
	return at < end ? memmem(at, (size_t)(end - at), what, strlen(what)) : NULL;
}

static void find_offset(const char *at, const char *end, const char *field, uint32_t *out)
{
	const char *found = find_in(at, end, field);
	char digits[16] = "";

	found = found ? find_in(found, end, "offset:") : NULL;
	if (!found)
		return;
	found += strlen("offset:");
	for (size_t i = 0; i < 8 && found + i < end && found[i] >= '0' && found[i] <= '9'; i++)
		digits[i] = found[i];
	if (digits[0])
		*out = (uint32_t)strtoul(digits, NULL, 10);
}

void csw_features_tracing(struct csw_features *f, const unsigned char *at, size_t bytes)
{
	const char *end = (const char *)at + bytes;
	const char *format = find_in((const char *)at, end, "name: sched_switch\n");
	const char *next;

	if (!format)
		return;
	next = find_in(format + 1, end, "\nname: ");
	if (next)
		end = next;
	find_offset(format, end, " prev_pid;", &f->prev_pid_at);
	find_offset(format, end, " next_pid;", &f->next_pid_at);
}

/* ---- all of them ---- */

static int note_time_span(struct csw_features *f, struct csw_cursor *p)
{
	uint64_t first, last;

	if (csw_cursor_u64(p, &first) < 0 || csw_cursor_u64(p, &last) < 0)
		return 0;
	return csw_features_note(
		f, "sample time", "%llu.%09llu to %llu.%09llu s",
		(unsigned long long)first / 1000000000, (unsigned long long)first % 1000000000,
		(unsigned long long)last / 1000000000, (unsigned long long)last % 1000000000);
}

static int note_pmus(struct csw_features *f, struct csw_cursor *p)
{
	uint32_t nr, type;
	const char *name;
	size_t length;
	int ret = 0;

	if (csw_cursor_u32(p, &nr) < 0)
		return 0;
	for (uint32_t i = 0; i < nr && ret == 0; i++) {
		if (csw_cursor_u32(p, &type) < 0 || !take_text(p, &name, &length))
			return 0;
		ret = csw_features_note(f, "PMU", "%.*s = %u", (int)length, name, type);
	}
	return ret;
}

static int note_memory(struct csw_features *f, struct csw_cursor *p)
{
	uint64_t kib;

	return csw_cursor_u64(p, &kib) == 0
		       ? csw_features_note(f, "memory", "%llu KiB", (unsigned long long)kib)
		       : 0;
}

static int note_clock(struct csw_features *f, struct csw_cursor *p)
{
	uint64_t ns;

	return csw_cursor_u64(p, &ns) == 0
		       ? csw_features_note(f, "clock resolution", "%llu ns", (unsigned long long)ns)
		       : 0;
}

static int note_compression(struct csw_features *f, struct csw_cursor *p)
{
	uint32_t version, type, level, ratio;

	if (csw_cursor_u32(p, &version) < 0 || csw_cursor_u32(p, &type) < 0 ||
	    csw_cursor_u32(p, &level) < 0 || csw_cursor_u32(p, &ratio) < 0)
		return 0;
	return csw_features_note(f, "compressed", "%s, level %u, ratio %u",
				 type == 1 ? "zstd" : "unknown", level, ratio);
}

int csw_features_add(struct csw_features *f, struct csw_file_attrs *a, uint32_t feature,
		     const unsigned char *at, size_t bytes, bool swap)
{
	struct csw_cursor p = { at, at + bytes, swap };

	switch (feature) {
	case FEATURE_TRACING_DATA:
		csw_features_tracing(f, at, bytes);
		return 0;
	case FEATURE_HOSTNAME:
		return note_text(f, "host", &p);
	case FEATURE_OSRELEASE:
		return note_text(f, "kernel", &p);
	case FEATURE_VERSION:
		return note_text(f, "perf", &p);
	case FEATURE_ARCH:
		return note_text(f, "architecture", &p);
	case FEATURE_NRCPUS:
		return note_cpus(f, &p);
	case FEATURE_CPUDESC:
		return note_text(f, "CPU", &p);
	case FEATURE_CPUID:
		return note_text(f, "CPU id", &p);
	case FEATURE_TOTAL_MEM:
		return note_memory(f, &p);
	case FEATURE_CMDLINE:
		return note_command(f, &p);
	case FEATURE_EVENT_DESC:
		return describe_events(f, a, &p);
	case FEATURE_PMU_MAPPINGS:
		return note_pmus(f, &p);
	case FEATURE_SAMPLE_TIME:
		return note_time_span(f, &p);
	case FEATURE_CLOCKID:
		return note_clock(f, &p);
	case FEATURE_COMPRESSED:
		return note_compression(f, &p);
	case FEATURE_META_INFO:
		return read_meta_info(f, a, &p);
	default:
		return 0;
	}
}

void csw_features_free(struct csw_features *f)
{
	for (size_t i = 0; i < f->nr; i++) {
		free(f->texts[i].name);
		free(f->texts[i].value);
	}
	free(f->texts);
	*f = (struct csw_features){ .nr = 0 };
}
