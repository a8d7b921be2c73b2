/* Raw perf records to csw_records; see decode.h. The layouts are those of perf_event_open(2). */
#include "drivers/perf/decode.h"

#include <errno.h>
#include <string.h>

#include "drivers/perf/cursor.h"

/* Sizes of the fixed parts behind the header. */
#define TASK_BYTES 24 /* FORK, EXIT: pid, ppid, tid, ptid, time */
#define PAIR_BYTES 8
#define COMM_BYTES 8 /* COMM: pid, tid, then the name */

/* Parts of a sample that are of no interest here and stand before the cgroup; their sizes vary. */
#define BETWEEN_READ_AND_CGROUP                                                                    \
	(PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER |               \
	 PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION |                     \
	 PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR)
/* ... but for these, which only files have and which are passed by there. */
#define IN_FILES_ONLY (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW)

/* Both byte orders go through the same code: everything below is inlined into one copy for each, so
 * that the live ring never asks which it is. */
#define INLINE CSW_CURSOR_INLINE

/* Two numbers in one word, which is there. */
INLINE void take_pair(struct csw_cursor *c, int32_t *first, int32_t *second)
{
	memcpy(first, c->at, sizeof(*first));
	memcpy(second, c->at + sizeof(*first), sizeof(*second));
	if (c->swap) {
		*first = (int32_t)__builtin_bswap32((uint32_t)*first);
		*second = (int32_t)__builtin_bswap32((uint32_t)*second);
	}
	c->at += 2 * sizeof(*first);
}

INLINE void take_cpu(struct csw_cursor *c, uint32_t *cpu)
{
	int32_t number, reserved;

	take_pair(c, &number, &reserved);
	*cpu = (uint32_t)number;
}

INLINE size_t bytes_of(uint64_t type, uint64_t fields)
{
	return sizeof(uint64_t) * (size_t)__builtin_popcountll(type & fields);
}

/* Is there a word for each of these fields that the form has? Nearly always there is room for all
 * of them, which needs no counting of bits. */
INLINE bool has_fields(const struct csw_cursor *c, uint64_t type, uint64_t fields)
{
	return csw_cursor_has(c, bytes_of(fields, fields)) ||
	       csw_cursor_has(c, bytes_of(type, fields));
}

/* nr values, each followed by its id and its lost count where the format has them. */
INLINE int take_values(uint64_t read_format, struct csw_cursor *c, struct csw_record *out,
		       uint64_t *lost, struct csw_perf_extra *extra, uint64_t nr)
{
	const bool has_id = read_format & PERF_FORMAT_ID, has_lost = read_format & PERF_FORMAT_LOST;

	if (nr > 1 + CSW_COUNTERS_MAX ||
	    !csw_cursor_has(c, nr * sizeof(uint64_t) * (1u + has_id + has_lost)))
		return -EINVAL;
	for (uint64_t i = 0; i < nr; i++) {
		uint64_t id = 0, lost_of_this;

		out->values[i] = csw_cursor_take(c);
		if (has_id)
			id = csw_cursor_take(c);
		if (extra)
			extra->value_ids[i] = id;
		if (!has_lost)
			continue;
		lost_of_this = csw_cursor_take(c);
		if (i == 0)
			*lost = lost_of_this;
	}
	out->nr_values = (uint32_t)nr;
	return 0;
}

/* Of a single event the times stand behind the value. */
INLINE int take_single(uint64_t read_format, struct csw_cursor *c, struct csw_record *out,
		       uint64_t *lost, struct csw_perf_extra *extra)
{
	const uint64_t behind = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
				PERF_FORMAT_ID | PERF_FORMAT_LOST;
	uint64_t id = 0;

	if (csw_cursor_u64(c, &out->values[0]) < 0 || !has_fields(c, read_format, behind))
		return -EINVAL;
	if (read_format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		out->enabled_ns = csw_cursor_take(c);
	if (read_format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		out->running_ns = csw_cursor_take(c);
	if (read_format & PERF_FORMAT_ID)
		id = csw_cursor_take(c);
	if (read_format & PERF_FORMAT_LOST)
		*lost = csw_cursor_take(c);
	if (extra)
		extra->value_ids[0] = id;
	out->nr_values = 1;
	return 0;
}

INLINE int take_reading(uint64_t read_format, struct csw_cursor *c, struct csw_record *out,
			uint64_t *lost, struct csw_perf_extra *extra)
{
	const uint64_t times = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	uint64_t nr;

	*lost = CSW_LOST_UNKNOWN;
	if (!(read_format & PERF_FORMAT_GROUP))
		return take_single(read_format, c, out, lost, extra);
	if (csw_cursor_u64(c, &nr) < 0 || !has_fields(c, read_format, times))
		return -EINVAL;
	if (read_format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		out->enabled_ns = csw_cursor_take(c);
	if (read_format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		out->running_ns = csw_cursor_take(c);
	return take_values(read_format, c, out, lost, extra, nr);
}

int csw_perf_decode_reading(uint64_t read_format, const void *at, size_t bytes,
			    struct csw_record *out, uint64_t *lost)
{
	struct csw_cursor c = { at, (const unsigned char *)at + bytes, false };

	if (take_reading(read_format, &c, out, lost, NULL) < 0)
		return -EINVAL;
	return (int)(c.at - (const unsigned char *)at);
}

/* What stands behind the reading and before the cgroup, for whoever wants the raw data of a
 * tracepoint: the call chain is stepped over. */
INLINE int take_raw(uint64_t type, struct csw_cursor *c, struct csw_perf_extra *extra)
{
	uint64_t nr;
	uint32_t bytes;

	if (type & PERF_SAMPLE_CALLCHAIN) {
		if (csw_cursor_u64(c, &nr) < 0 || nr > (uint64_t)(c->end - c->at) / sizeof(nr))
			return -EINVAL;
		c->at += nr * sizeof(nr);
	}
	if (!(type & PERF_SAMPLE_RAW))
		return 0;
	if (csw_cursor_u32(c, &bytes) < 0)
		return -EINVAL;
	if (bytes > (size_t)(c->end - c->at))
		return -EINVAL;
	extra->raw = c->at;
	extra->raw_bytes = bytes;
	c->at += bytes;
	return 0;
}

bool csw_perf_says_cgroup(uint64_t sample_type)
{
	return (sample_type & PERF_SAMPLE_CGROUP) && !(sample_type & BETWEEN_READ_AND_CGROUP);
}

INLINE int decode_sample(const struct csw_perf_form *form, struct csw_cursor c,
			 struct csw_record *out, struct csw_perf_extra *extra)
{
	const uint64_t type = form->sample_type;
	const uint64_t words = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
			       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
	uint64_t id = 0, period = 0, lost;

	if (!has_fields(&c, type, words))
		return -EINVAL;
	out->type = CSW_RECORD_SAMPLE;
	if (type & PERF_SAMPLE_IDENTIFIER)
		id = csw_cursor_take(&c);
	if (type & PERF_SAMPLE_IP)
		csw_cursor_take(&c);
	if (type & PERF_SAMPLE_TID)
		take_pair(&c, &out->pid, &out->tid);
	if (type & PERF_SAMPLE_TIME)
		out->time_ns = csw_cursor_take(&c);
	if (type & PERF_SAMPLE_ADDR)
		csw_cursor_take(&c);
	if (type & PERF_SAMPLE_ID)
		id = csw_cursor_take(&c);
	if (type & PERF_SAMPLE_STREAM_ID)
		csw_cursor_take(&c);
	if (type & PERF_SAMPLE_CPU)
		take_cpu(&c, &out->cpu);
	if (type & PERF_SAMPLE_PERIOD)
		period = csw_cursor_take(&c);
	if ((type & PERF_SAMPLE_READ) && take_reading(form->read_format, &c, out, &lost, extra) < 0)
		return -EINVAL;
	if (extra) {
		extra->id = id;
		extra->period = period;
		if (take_raw(type, &c, extra) < 0)
			return -EINVAL;
	}
	if (csw_perf_says_cgroup(type) && (extra || !(type & IN_FILES_ONLY)) &&
	    csw_cursor_u64(&c, &out->cgroup) < 0)
		return -EINVAL;
	return 1;
}

/* The fields that sample_id_all puts at the end of every other record; takes them off the cursor's
 * end. */
INLINE int take_sample_id(const struct csw_perf_form *form, struct csw_cursor *c,
			  struct csw_record *out)
{
	const uint64_t fields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	const uint64_t type = form->sample_type;
	const size_t bytes = bytes_of(type, fields);
	struct csw_cursor id;

	if (!form->sample_id_all)
		return 0;
	if (!csw_cursor_has(c, bytes))
		return -EINVAL;
	id = (struct csw_cursor){ c->end - bytes, c->end, c->swap };
	c->end -= bytes;
	if (type & PERF_SAMPLE_TID)
		take_pair(&id, &out->pid, &out->tid);
	if (type & PERF_SAMPLE_TIME)
		out->time_ns = csw_cursor_take(&id);
	if (type & PERF_SAMPLE_ID)
		csw_cursor_take(&id);
	if (type & PERF_SAMPLE_STREAM_ID)
		csw_cursor_take(&id);
	if (type & PERF_SAMPLE_CPU)
		take_cpu(&id, &out->cpu);
	return 0;
}

INLINE int decode_switch(const struct perf_event_header *raw, struct csw_cursor c,
			 struct csw_record *out)
{
	bool leaves = raw->misc & PERF_RECORD_MISC_SWITCH_OUT;

	out->type = leaves ? CSW_RECORD_SWITCH_OUT : CSW_RECORD_SWITCH_IN;
	if (leaves && (raw->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT))
		out->flags |= CSW_RECORD_PREEMPTED;
	/* The form of a thread's own counters does not say who comes or went. */
	if (raw->type == PERF_RECORD_SWITCH)
		return 1;
	if (!csw_cursor_has(&c, PAIR_BYTES))
		return -EINVAL;
	take_pair(&c, &out->other_pid, &out->other_tid);
	return 1;
}

INLINE int decode_task(const struct perf_event_header *raw, struct csw_cursor c,
		       struct csw_record *out)
{
	if (c.end - c.at < TASK_BYTES)
		return -EINVAL;
	out->type = raw->type == PERF_RECORD_FORK ? CSW_RECORD_FORK : CSW_RECORD_EXIT;
	/* pid, ppid, tid, ptid: interleaved; the sample_id names whoever wrote the record, not the
	 * subject. */
	take_pair(&c, &out->pid, &out->other_pid);
	take_pair(&c, &out->tid, &out->other_tid);
	return 1;
}

INLINE int decode_comm(const struct perf_event_header *raw, struct csw_cursor c,
		       struct csw_record *out)
{
	size_t length;

	if (c.end - c.at < COMM_BYTES)
		return -EINVAL;
	out->type = CSW_RECORD_COMM;
	if (raw->misc & PERF_RECORD_MISC_COMM_EXEC)
		out->flags |= CSW_RECORD_EXEC;
	take_pair(&c, &out->pid, &out->tid);
	length = strnlen((const char *)c.at, (size_t)(c.end - c.at));
	if (length >= sizeof(out->comm))
		length = sizeof(out->comm) - 1;
	memset(out->comm, 0, sizeof(out->comm));
	memcpy(out->comm, c.at, length);
	return 1;
}

INLINE int decode_lost(const struct perf_event_header *raw, struct csw_cursor c,
		       struct csw_record *out)
{
	uint64_t id;

	out->type = CSW_RECORD_LOST;
	/* LOST: id, lost. LOST_SAMPLES has no id. */
	if (raw->type == PERF_RECORD_LOST && csw_cursor_u64(&c, &id) < 0)
		return -EINVAL;
	return csw_cursor_u64(&c, &out->lost) < 0 ? -EINVAL : 1;
}

INLINE int decode(const struct csw_perf_form *form, const struct perf_event_header *raw,
		  struct csw_record *out, struct csw_perf_extra *extra, bool swap)
{
	struct csw_cursor c = { (const unsigned char *)(raw + 1),
				(const unsigned char *)raw + raw->size, swap };

	if (raw->size < sizeof(*raw))
		return -EINVAL;
	out->flags = 0;
	out->lost = out->lost_other = 0;
	out->cgroup = 0;
	out->pid = out->tid = out->other_pid = out->other_tid = -1;
	if (raw->type == PERF_RECORD_SAMPLE)
		return decode_sample(form, c, out, extra);
	if (take_sample_id(form, &c, out) < 0)
		return -EINVAL;
	switch (raw->type) {
	case PERF_RECORD_SWITCH:
		/* Live counters are those of CPUs; of them this would be no record of interest. */
		return extra ? decode_switch(raw, c, out) : 0;
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return decode_switch(raw, c, out);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return decode_task(raw, c, out);
	case PERF_RECORD_COMM:
		return decode_comm(raw, c, out);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		return decode_lost(raw, c, out);
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		out->type = raw->type == PERF_RECORD_THROTTLE ? CSW_RECORD_THROTTLE
							      : CSW_RECORD_UNTHROTTLE;
		return 1;
	default:
		return 0;
	}
}

int csw_perf_decode(const struct csw_perf_form *form, const struct perf_event_header *raw,
		    struct csw_record *out)
{
	return decode(form, raw, out, NULL, false);
}

/* What perf record -a writes of a group that is read. Where the fields are known when this is
 * compiled, nothing is left of the questions which there are: a quarter of decode's work. */
#define USUAL_TYPE                                                                                 \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_READ)

int csw_perf_decode_file(const struct csw_perf_form *form, const struct perf_event_header *raw,
			 struct csw_record *out, struct csw_perf_extra *extra, bool swap)
{
	const struct csw_perf_form usual = { .sample_type = USUAL_TYPE,
					     .read_format = form->read_format,
					     .sample_id_all = true };

	extra->raw = NULL;
	extra->id = extra->period = 0;
	out->nr_values = 0;
	out->enabled_ns = out->running_ns = 0;
	if (swap)
		return decode(form, raw, out, extra, true);
	if (form->sample_type == USUAL_TYPE && form->sample_id_all)
		return decode(&usual, raw, out, extra, false);
	return decode(form, raw, out, extra, false);
}

size_t csw_perf_time_from_end(const struct csw_perf_form *form)
{
	/* TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER, a word each: see take_sample_id. */
	const uint64_t from_time = PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
				   PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

	return sizeof(uint64_t) * (size_t)__builtin_popcountll(form->sample_type & from_time);
}

uint64_t csw_perf_sample_id(const struct perf_event_header *raw)
{
	uint64_t id;

	memcpy(&id, raw + 1, sizeof(id)); /* it is the first word, for just this purpose */
	return id;
}
