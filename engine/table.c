/* The aggregation table; see table.h. */
#include "engine/table.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "csw/csw.h"

#define FIRST_CAPACITY 256

/* Not aligned_alloc: that cannot grow in place, and a large array grows by moving pages about. */
static int grow(struct csw_aggregation *agg)
{
	size_t capacity = agg->capacity ? agg->capacity * 2 : FIRST_CAPACITY;
	size_t before = agg->memory ? (size_t)(agg->rows - (unsigned char *)agg->memory) : 0;
	size_t offset;
	unsigned char *memory;

	if (capacity > UINT32_MAX || capacity > (SIZE_MAX - CSW_ROW_ALIGN) / agg->stride)
		return -ENOMEM;
	memory = realloc(agg->memory, capacity * agg->stride + CSW_ROW_ALIGN);
	if (!memory)
		return -ENOMEM;
	offset = -(uintptr_t)memory % CSW_ROW_ALIGN;
	if (offset != before)
		memmove(memory + offset, memory + before, agg->nr * agg->stride);
	agg->memory = memory;
	agg->rows = memory + offset;
	agg->capacity = capacity;
	return 0;
}

int csw_aggregation_init_empty(struct csw_aggregation *agg, unsigned nr_counters, uint32_t keep)
{
	const bool histograms = keep & CSW_KEEP_HISTOGRAMS, turns = keep & CSW_KEEP_TURNS;
	const bool shares = keep & CSW_KEEP_SHARES;
	size_t cells = nr_counters * sizeof(struct csw_cell);
	size_t running = turns ? nr_counters * sizeof(uint64_t) : 0;
	size_t shared = shares ? (nr_counters + 1) * sizeof(uint64_t) : 0;
	size_t buckets = histograms ? nr_counters * CSW_BUCKETS * sizeof(uint64_t) : 0;
	size_t bytes = sizeof(struct csw_agg_row) + cells + running + shared + buckets;

	*agg = (struct csw_aggregation){
		.stride = (bytes + CSW_ROW_ALIGN - 1) / CSW_ROW_ALIGN * CSW_ROW_ALIGN,
		.nr_counters = nr_counters,
		.histograms = histograms,
		.turns = turns,
		.shares = shares,
	};
	return grow(agg);
}

int csw_aggregation_init(struct csw_aggregation *agg, unsigned nr_counters, uint32_t keep)
{
	static const uint16_t fixed[CSW_ROWS_FIXED] = {
		[CSW_ROW_IDLE] = CSW_KIND_IDLE,
		[CSW_ROW_UNKNOWN] = CSW_KIND_UNKNOWN,
		[CSW_ROW_LOST] = CSW_KIND_LOST,
		[CSW_ROW_MIXED] = CSW_KIND_MIXED,
	};

	if (csw_aggregation_init_empty(agg, nr_counters, keep) < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < CSW_ROWS_FIXED; i++) {
		int32_t id = i == CSW_ROW_IDLE ? 0 : -1;

		csw_aggregation_add(agg, fixed[i], id, id,
				    0); /* there is room for the first rows */
	}
	return 0;
}

void csw_aggregation_free(struct csw_aggregation *agg)
{
	free(agg->memory);
	*agg = (struct csw_aggregation){ .nr = 0 };
}

/* Sums to zero; the key stays. */
static void clear_sums(const struct csw_aggregation *agg, uint32_t nr)
{
	struct csw_agg_row *row = csw_aggregation_row(agg, nr);
	const size_t sums = offsetof(struct csw_agg_row, proven);

	memset((unsigned char *)row + sums, 0, agg->stride - sums);
	for (unsigned i = 0; i < agg->nr_counters; i++)
		row->cells[i].min = UINT64_MAX;
}

/* A row given up before, or the next one of the array. */
static int64_t take_place(struct csw_aggregation *agg)
{
	uint32_t nr = agg->first_free;

	if (nr) {
		agg->first_free = csw_aggregation_row(agg, nr)->continues;
		return nr;
	}
	if (agg->nr == agg->capacity && grow(agg) < 0)
		return -ENOMEM;
	return (int64_t)agg->nr++;
}

int64_t csw_aggregation_add(struct csw_aggregation *agg, uint16_t kind, int32_t pid, int32_t tid,
			    uint64_t birth_ns)
{
	int64_t nr = take_place(agg);

	if (nr < 0)
		return nr;
	*csw_aggregation_row(agg, (uint32_t)nr) = (struct csw_agg_row){
		.birth_ns = birth_ns,
		.pid = pid,
		.tid = tid,
		.kind = kind,
		.last_cpu = CSW_CPU_NONE,
	};
	clear_sums(agg, (uint32_t)nr);
	return nr;
}

static void give_up(struct csw_aggregation *agg, uint32_t nr)
{
	*csw_aggregation_row(agg, nr) = (struct csw_agg_row){
		.pid = -1,
		.tid = -1,
		.kind = CSW_KIND_THREAD,
		.flags = CSW_ROW_FREE,
		.continues = agg->first_free,
	};
	agg->first_free = nr;
}

void csw_aggregation_reset(struct csw_aggregation *agg)
{
	for (uint32_t nr = 0; nr < agg->nr; nr++) {
		uint16_t flags = csw_aggregation_row(agg, nr)->flags;

		if (flags & CSW_ROW_FREE)
			continue;
		clear_sums(agg, nr);
		if ((flags & (CSW_ROW_CLOSED | CSW_ROW_PINNED)) == CSW_ROW_CLOSED)
			give_up(agg, nr);
	}
	/* A thread that goes on in another cgroup no longer continues a row that is gone. */
	for (uint32_t nr = 0; nr < agg->nr; nr++) {
		struct csw_agg_row *row = csw_aggregation_row(agg, nr);

		if (!(row->flags & CSW_ROW_FREE) && row->continues &&
		    (csw_aggregation_row(agg, row->continues)->flags & CSW_ROW_FREE))
			row->continues = 0;
	}
}

/* The bucket of a value: 0, 1, 2-3, 4-7, ... */
static unsigned bucket_of(uint64_t value)
{
	return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

void csw_aggregation_bucket(struct csw_aggregation *agg, uint32_t nr, const uint64_t *deltas)
{
	for (unsigned i = 0; i < agg->nr_counters; i++)
		csw_aggregation_histogram(agg, nr, i)[bucket_of(deltas[i])]++;
}

void csw_aggregation_count_turn(struct csw_aggregation *agg, uint32_t nr, const uint64_t *deltas,
				bool whole, uint32_t on, uint64_t running_ns)
{
	struct csw_cell *cell = csw_aggregation_row(agg, nr)->cells;
	uint64_t *running = csw_aggregation_running(agg, nr);

	for (unsigned i = 0; i < agg->nr_counters; i++, cell++) {
		if (!(on >> i & 1))
			continue;
		cell->sum += deltas[i];
		running[i] += running_ns;
		if (!whole)
			continue;
		cell->min = deltas[i] < cell->min ? deltas[i] : cell->min;
		cell->max = deltas[i] > cell->max ? deltas[i] : cell->max;
		if (agg->histograms)
			csw_aggregation_histogram(agg, nr, i)[bucket_of(deltas[i])]++;
	}
}

void csw_aggregation_note_shares(struct csw_aggregation *agg, uint32_t nr, const uint64_t *deltas,
				 uint32_t which)
{
	uint64_t *shares = csw_aggregation_shares(agg, nr);

	for (unsigned i = 0; i < agg->nr_counters; i++) {
		if (which >> i & 1)
			shares[i] += deltas[i];
	}
	shares[agg->nr_counters] |= which;
}
