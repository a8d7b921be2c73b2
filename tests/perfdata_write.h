/*
 * Writes perf.data, for tests and benchmarks: what a recorder would have written, in either byte
 * order and either mode, whole or broken.
 *
 * Invariant: every record is made here by hand from perf_event_open(2) and perf's own description
 * of the file, and shares no line with the reader.
 */
#ifndef CSW_TESTS_PERFDATA_WRITE_H
#define CSW_TESTS_PERFDATA_WRITE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PD_ATTRS_MAX 8
#define PD_IDS_MAX 64
#define PD_RECORD_MAX 65536

struct pd_attr {
	uint32_t type;
	uint32_t bytes; /* perf_event_attr.size; 0: 112 */
	uint64_t config, period, sample_type, read_format;
	uint64_t flags; /* the bits as on a machine of the little order */
	const char *name;
	uint64_t ids[PD_IDS_MAX];
	unsigned nr_ids;
};

struct pd {
	FILE *file;
	bool swap, pipe;
	struct pd_attr attrs[PD_ATTRS_MAX];
	unsigned nr_attrs;
	uint64_t data_at;
	/* the record that is being made */
	unsigned char bytes[PD_RECORD_MAX];
	size_t nr;
	/* where records go instead of the file, to be compressed later */
	FILE *aside;
};

#define PD_SAMPLE_ID_ALL (1ull << 18)
#define PD_CONTEXT_SWITCH (1ull << 26)
#define PD_WRITE_BACKWARD (1ull << 27)

static inline void pd_put(struct pd *w, const void *from, size_t nr)
{
	memcpy(w->bytes + w->nr, from, nr);
	w->nr += nr;
}

static inline void pd_u64(struct pd *w, uint64_t value)
{
	value = w->swap ? __builtin_bswap64(value) : value;
	pd_put(w, &value, sizeof(value));
}

static inline void pd_u32(struct pd *w, uint32_t value)
{
	value = w->swap ? __builtin_bswap32(value) : value;
	pd_put(w, &value, sizeof(value));
}

static inline void pd_u16(struct pd *w, uint16_t value)
{
	value = w->swap ? __builtin_bswap16(value) : value;
	pd_put(w, &value, sizeof(value));
}

/* With its NUL, filled up to a multiple of 8. */
static inline void pd_text(struct pd *w, const char *text, size_t room)
{
	size_t length = strlen(text) + 1;

	memset(w->bytes + w->nr, 0, room);
	memcpy(w->bytes + w->nr, text, length < room ? length : room);
	w->nr += room;
}

static inline void pd_begin(struct pd *w, uint32_t type, uint16_t misc)
{
	w->nr = 0;
	pd_u32(w, type);
	pd_u16(w, misc);
	pd_u16(w, 0);
}

static inline void pd_flush(struct pd *w)
{
	fwrite(w->bytes, 1, w->nr, w->aside ? w->aside : w->file);
}

static inline void pd_end(struct pd *w)
{
	uint16_t size = (uint16_t)w->nr;

	size = w->swap ? __builtin_bswap16(size) : size;
	memcpy(w->bytes + 6, &size, sizeof(size));
	pd_flush(w);
}

static inline void pd_attr_body(struct pd *w, const struct pd_attr *attr)
{
	uint32_t bytes = attr->bytes ? attr->bytes : 112;
	size_t from = w->nr;

	pd_u32(w, attr->type);
	pd_u32(w, bytes);
	pd_u64(w, attr->config);
	pd_u64(w, attr->period);
	pd_u64(w, attr->sample_type);
	pd_u64(w, attr->read_format);
	for (unsigned i = 0; i < 8; i++) {
		unsigned char byte = (unsigned char)(attr->flags >> (8 * i)), turned = 0;

		for (unsigned bit = 0; bit < 8; bit++)
			turned = (unsigned char)(turned | (byte >> bit & 1) << (7 - bit));
		pd_put(w, w->swap ? &turned : &byte, 1);
	}
	memset(w->bytes + w->nr, 0, from + bytes - w->nr);
	w->nr = from + bytes;
}

/* Everything that stands before the records. */
static inline void pd_head(struct pd *w)
{
	const uint64_t magic = 0x32454c4946524550ull;
	uint64_t entry, at = 104;

	w->nr = 0;
	pd_u64(w, magic);
	if (w->pipe) {
		pd_u64(w, 16);
		pd_flush(w);
		for (unsigned i = 0; i < w->nr_attrs; i++) {
			pd_begin(w, 64, 0);
			pd_attr_body(w, &w->attrs[i]);
			for (unsigned k = 0; k < w->attrs[i].nr_ids; k++)
				pd_u64(w, w->attrs[i].ids[k]);
			pd_end(w);
		}
		for (unsigned i = 0; i < w->nr_attrs; i++) {
			if (!w->attrs[i].name)
				continue;
			pd_begin(w, 78, 0);
			pd_u64(w, 2);
			pd_u64(w, w->attrs[i].ids[0]);
			pd_text(w, w->attrs[i].name, (strlen(w->attrs[i].name) + 8) / 8 * 8);
			pd_end(w);
		}
		return;
	}
	entry = (w->attrs[0].bytes ? w->attrs[0].bytes : 112) + 16;
	for (unsigned i = 0; i < w->nr_attrs; i++)
		at += w->attrs[i].nr_ids * 8;
	pd_u64(w, 104);
	pd_u64(w, entry);
	pd_u64(w, at);
	pd_u64(w, entry * w->nr_attrs);
	w->data_at = at + entry * w->nr_attrs;
	pd_u64(w, w->data_at);
	pd_u64(w, 0); /* until pd_finish */
	for (unsigned i = 0; i < 6; i++)
		pd_u64(w, 0);
	at = 104;
	for (unsigned i = 0; i < w->nr_attrs; i++) {
		for (unsigned k = 0; k < w->attrs[i].nr_ids; k++)
			pd_u64(w, w->attrs[i].ids[k]);
	}
	for (unsigned i = 0; i < w->nr_attrs; i++) {
		pd_attr_body(w, &w->attrs[i]);
		pd_u64(w, at);
		pd_u64(w, w->attrs[i].nr_ids * 8);
		at += w->attrs[i].nr_ids * 8;
	}
	pd_flush(w);
}

/* The events' names and nothing else as a feature; then the header is right. */
static inline void pd_finish(struct pd *w)
{
	uint64_t end = (uint64_t)ftell(w->file), size = end - w->data_at;
	uint64_t bits = 1ull << 12;
	unsigned char saved[16];

	if (w->pipe)
		return;
	w->nr = 16; /* the section's place is filled in when its length is known */
	pd_u32(w, w->nr_attrs);
	pd_u32(w, 112);
	for (unsigned i = 0; i < w->nr_attrs; i++) {
		struct pd_attr attr = w->attrs[i];
		const char *name = attr.name ? attr.name : "";
		size_t room = (strlen(name) + 64) / 64 * 64;

		attr.bytes = 112;
		pd_attr_body(w, &attr);
		pd_u32(w, attr.nr_ids);
		pd_u32(w, (uint32_t)room);
		pd_text(w, name, room);
		for (unsigned k = 0; k < attr.nr_ids; k++)
			pd_u64(w, attr.ids[k]);
	}
	{
		size_t nr = w->nr;

		w->nr = 0;
		pd_u64(w, end + 16);
		pd_u64(w, nr - 16);
		w->nr = nr;
	}
	pd_flush(w);
	memcpy(saved, w->bytes, sizeof(saved));
	fseek(w->file, 48, SEEK_SET);
	w->nr = 0;
	pd_u64(w, size);
	pd_flush(w);
	fseek(w->file, 72, SEEK_SET);
	w->nr = 0;
	pd_u64(w, bits);
	pd_flush(w);
	fseek(w->file, 0, SEEK_END);
}

/* What stands at the end of every record but samples, in the form of an attr. */
struct pd_id {
	int32_t pid, tid;
	uint64_t time, id;
	uint32_t cpu;
};

static inline void pd_sample_id(struct pd *w, const struct pd_attr *attr, const struct pd_id *id)
{
	const uint64_t type = attr->sample_type;

	if (!(attr->flags & PD_SAMPLE_ID_ALL))
		return;
	if (type & PERF_SAMPLE_TID) {
		pd_u32(w, (uint32_t)id->pid);
		pd_u32(w, (uint32_t)id->tid);
	}
	if (type & PERF_SAMPLE_TIME)
		pd_u64(w, id->time);
	if (type & PERF_SAMPLE_ID)
		pd_u64(w, id->id);
	if (type & PERF_SAMPLE_STREAM_ID)
		pd_u64(w, id->id);
	if (type & PERF_SAMPLE_CPU) {
		pd_u32(w, id->cpu);
		pd_u32(w, 0);
	}
	if (type & PERF_SAMPLE_IDENTIFIER)
		pd_u64(w, id->id);
}

/* values and value_ids: of a reading, nr of them; raw: of a tracepoint. */
struct pd_sample {
	struct pd_id id;
	uint64_t period, enabled, running;
	const uint64_t *values, *value_ids;
	unsigned nr;
	const void *raw;
	uint32_t raw_bytes;
	uint64_t cgroup;
};

static inline void pd_sample(struct pd *w, const struct pd_attr *attr, const struct pd_sample *s)
{
	const uint64_t type = attr->sample_type, format = attr->read_format;

	pd_begin(w, PERF_RECORD_SAMPLE, 2);
	if (type & PERF_SAMPLE_IDENTIFIER)
		pd_u64(w, s->id.id);
	if (type & PERF_SAMPLE_IP)
		pd_u64(w, 0x1234);
	if (type & PERF_SAMPLE_TID) {
		pd_u32(w, (uint32_t)s->id.pid);
		pd_u32(w, (uint32_t)s->id.tid);
	}
	if (type & PERF_SAMPLE_TIME)
		pd_u64(w, s->id.time);
	if (type & PERF_SAMPLE_ADDR)
		pd_u64(w, 0);
	if (type & PERF_SAMPLE_ID)
		pd_u64(w, s->id.id);
	if (type & PERF_SAMPLE_STREAM_ID)
		pd_u64(w, s->id.id);
	if (type & PERF_SAMPLE_CPU) {
		pd_u32(w, s->id.cpu);
		pd_u32(w, 0);
	}
	if (type & PERF_SAMPLE_PERIOD)
		pd_u64(w, s->period);
	if (type & PERF_SAMPLE_READ) {
		if (format & PERF_FORMAT_GROUP)
			pd_u64(w, s->nr);
		else
			pd_u64(w, s->values[0]);
		if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
			pd_u64(w, s->enabled);
		if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
			pd_u64(w, s->running);
		for (unsigned i = 0; i < s->nr; i++) {
			if (format & PERF_FORMAT_GROUP)
				pd_u64(w, s->values[i]);
			if (format & PERF_FORMAT_ID)
				pd_u64(w, s->value_ids[i]);
			if (format & (1u << 4)) /* PERF_FORMAT_LOST */
				pd_u64(w, 0);
		}
	}
	if (type & PERF_SAMPLE_CALLCHAIN) {
		pd_u64(w, 1);
		pd_u64(w, 0x1234);
	}
	if (type & PERF_SAMPLE_RAW) {
		pd_u32(w, s->raw_bytes);
		pd_put(w, s->raw, s->raw_bytes);
		while (w->nr % 8)
			pd_put(w, "", 1);
	}
	if (type & PERF_SAMPLE_CGROUP)
		pd_u64(w, s->cgroup);
	pd_end(w);
}

static inline void pd_switch(struct pd *w, const struct pd_attr *attr, const struct pd_id *id,
			     bool out, bool preempted, int32_t other_pid, int32_t other_tid)
{
	uint16_t misc = (uint16_t)((out ? 1u << 13 : 0) | (preempted ? 1u << 14 : 0));

	pd_begin(w, PERF_RECORD_SWITCH_CPU_WIDE, misc);
	pd_u32(w, (uint32_t)other_pid);
	pd_u32(w, (uint32_t)other_tid);
	pd_sample_id(w, attr, id);
	pd_end(w);
}

/* Of single threads. */
static inline void pd_switch_of_thread(struct pd *w, const struct pd_attr *attr,
				       const struct pd_id *id, bool out)
{
	pd_begin(w, PERF_RECORD_SWITCH, out ? 1u << 13 : 0);
	pd_sample_id(w, attr, id);
	pd_end(w);
}

static inline void pd_task(struct pd *w, const struct pd_attr *attr, const struct pd_id *id,
			   uint32_t type, int32_t pid, int32_t tid, int32_t ppid, int32_t ptid)
{
	pd_begin(w, type, 0);
	pd_u32(w, (uint32_t)pid);
	pd_u32(w, (uint32_t)ppid);
	pd_u32(w, (uint32_t)tid);
	pd_u32(w, (uint32_t)ptid);
	pd_u64(w, id->time);
	pd_sample_id(w, attr, id);
	pd_end(w);
}

static inline void pd_comm(struct pd *w, const struct pd_attr *attr, const struct pd_id *id,
			   int32_t pid, int32_t tid, const char *comm)
{
	pd_begin(w, PERF_RECORD_COMM, 0);
	pd_u32(w, (uint32_t)pid);
	pd_u32(w, (uint32_t)tid);
	pd_text(w, comm, (strlen(comm) + 8) / 8 * 8);
	pd_sample_id(w, attr, id);
	pd_end(w);
}

static inline void pd_cgroup(struct pd *w, const struct pd_attr *attr, const struct pd_id *id,
			     uint64_t cgroup, const char *path)
{
	pd_begin(w, PERF_RECORD_CGROUP, 0);
	pd_u64(w, cgroup);
	pd_text(w, path, (strlen(path) + 8) / 8 * 8);
	pd_sample_id(w, attr, id);
	pd_end(w);
}

static inline void pd_lost(struct pd *w, const struct pd_attr *attr, const struct pd_id *id,
			   uint64_t lost)
{
	pd_begin(w, PERF_RECORD_LOST, 0);
	pd_u64(w, id->id);
	pd_u64(w, lost);
	pd_sample_id(w, attr, id);
	pd_end(w);
}

static inline void pd_round(struct pd *w)
{
	pd_begin(w, 68, 0);
	pd_end(w);
}

#endif
