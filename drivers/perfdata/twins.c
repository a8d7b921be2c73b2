/*
 * Events of a file that count the same thing, and which of them a sample is of.
 *
 * The kernel fills in a sample once for all software events that overflow together (since 6.1), the
 * id as well: the samples of such twins carry the id of the one that came first. But the reading is
 * each event's own, and so is the record's size.
 *
 * Invariant: a sample is given to a twin only if it fits its form to the last byte and no other's.
 */
#include "drivers/perf/cursor.h"
#include "drivers/perfdata/perfdata.h"

/* The words of a sample before its reading, and those that may stand behind it. */
#define BEFORE_READ                                                                                \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |             \
	 PERF_SAMPLE_PERIOD)
#define BEHIND_RAW                                                                                 \
	(PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION |                     \
	 PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP)
/* The only parts whose length is followed here. */
#define FOLLOWED (BEFORE_READ | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW)

static bool step(struct csw_cursor *c, uint64_t words)
{
	if (words > (uint64_t)(c->end - c->at) / sizeof(uint64_t))
		return false;
	c->at += words * sizeof(uint64_t);
	return true;
}

static uint64_t nr_of(uint64_t fields, uint64_t which)
{
	return (uint64_t)__builtin_popcountll(fields & which);
}

/* Past the reading; true: it is one of this attr's group, or has no ids. */
static bool is_own_reading(const struct csw_file_attrs *a, uint32_t nr, struct csw_cursor *c)
{
	const uint64_t format = a->attrs[nr].form.read_format;
	const uint64_t times =
		nr_of(format, PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
	const uint64_t behind = nr_of(format, PERF_FORMAT_ID | PERF_FORMAT_LOST);
	const bool group = format & PERF_FORMAT_GROUP;
	bool own = !(format & PERF_FORMAT_ID);
	uint64_t nr_values = 1;

	if (group && csw_cursor_u64(c, &nr_values) < 0)
		return false;
	if (group && !step(c, times))
		return false;
	for (uint64_t i = 0; i < nr_values; i++) {
		const struct csw_file_id *found;
		struct csw_cursor id;

		if (!step(c, 1 + (group ? 0 : times)))
			return false;
		id = *c;
		if (!step(c, behind))
			return false;
		if (!(format & PERF_FORMAT_ID))
			continue;
		found = csw_file_attrs_find(a, csw_cursor_take(&id));
		own |= found && found->attr == nr;
	}
	return own;
}

static bool skip_chain_and_raw(uint64_t type, struct csw_cursor *c)
{
	uint64_t nr;
	uint32_t bytes;

	if ((type & PERF_SAMPLE_CALLCHAIN) && (csw_cursor_u64(c, &nr) < 0 || !step(c, nr)))
		return false;
	if (!(type & PERF_SAMPLE_RAW))
		return true;
	/* Length and bytes together fill words. */
	return csw_cursor_u32(c, &bytes) == 0 && bytes % 8 == 4 && csw_cursor_has(c, bytes) &&
	       (c->at += bytes);
}

static bool fits(const struct csw_file_attrs *a, uint32_t nr, const struct perf_event_header *raw,
		 bool swap)
{
	const uint64_t type = a->attrs[nr].form.sample_type;
	struct csw_cursor c = { (const unsigned char *)(raw + 1),
				(const unsigned char *)raw + raw->size, swap };

	if (!step(&c, nr_of(type, BEFORE_READ)))
		return false;
	if ((type & PERF_SAMPLE_READ) && !is_own_reading(a, nr, &c))
		return false;
	if (!skip_chain_and_raw(type, &c) || !step(&c, nr_of(type, BEHIND_RAW)))
		return false;
	return c.at == c.end || (type & ~(uint64_t)(FOLLOWED | BEHIND_RAW));
}

/* Does it leave samples that are filled in together with others'? Clocks overflow one by one, by
 * timers of their own; what BPF programs put out goes to one event; dummy counts nothing. */
static bool is_shared(const struct csw_file_attr *attr)
{
	if (!attr->period)
		return false;
	if (attr->type == PERF_TYPE_TRACEPOINT)
		return true;
	if (attr->type != PERF_TYPE_SOFTWARE)
		return false;
	switch (attr->config) {
	case PERF_COUNT_SW_CPU_CLOCK:
	case PERF_COUNT_SW_TASK_CLOCK:
	case PERF_COUNT_SW_DUMMY:
	case PERF_COUNT_SW_BPF_OUTPUT:
		return false;
	default:
		return true;
	}
}

static bool are_twins(const struct csw_file_attr *one, const struct csw_file_attr *other)
{
	return is_shared(one) && is_shared(other) && one->type == other->type &&
	       one->config == other->config;
}

void csw_file_twins_find(struct csw_file_attrs *a)
{
	for (size_t i = 0; i < a->nr; i++) {
		for (size_t k = 0; k < i && is_shared(&a->attrs[i]); k++) {
			if (are_twins(&a->attrs[i], &a->attrs[k]))
				a->attrs[i].is_twin = a->attrs[k].is_twin = true;
		}
	}
}

int64_t csw_file_twin_of(const struct csw_file_attrs *a, uint32_t of,
			 const struct perf_event_header *raw, bool swap)
{
	int64_t found = CSW_TWIN_NONE;

	for (uint32_t i = 0; i < a->nr; i++) {
		if (!are_twins(&a->attrs[of], &a->attrs[i]) || !fits(a, i, raw, swap))
			continue;
		if (found >= 0)
			return CSW_TWIN_SEVERAL;
		found = i;
	}
	return found;
}
