/* The aggregation table; see table.h. */
#include "engine/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "csw/csw.h"

#define FIRST_CAPACITY 256

static int grow(struct csw_aggregation *agg)
{
	size_t capacity = agg->capacity ? agg->capacity * 2 : FIRST_CAPACITY;
	unsigned char *rows;

	if (capacity > UINT32_MAX || capacity > SIZE_MAX / agg->stride)
		return -ENOMEM;
	rows = realloc(agg->rows, capacity * agg->stride);
	if (!rows)
		return -ENOMEM;
	agg->rows = rows;
	agg->capacity = capacity;
	return 0;
}

int csw_aggregation_init(struct csw_aggregation *agg, unsigned nr_counters)
{
	static const uint16_t fixed[CSW_ROWS_FIXED] = {
		[CSW_ROW_IDLE] = CSW_KIND_IDLE,
		[CSW_ROW_UNKNOWN] = CSW_KIND_UNKNOWN,
		[CSW_ROW_LOST] = CSW_KIND_LOST,
		[CSW_ROW_MIXED] = CSW_KIND_MIXED,
	};

	*agg = (struct csw_aggregation){
		.stride = sizeof(struct csw_agg_row) + nr_counters * sizeof(struct csw_cell),
		.nr_counters = nr_counters,
	};
	for (unsigned i = 0; i < CSW_ROWS_FIXED; i++) {
		int32_t id = i == CSW_ROW_IDLE ? 0 : -1;

		if (csw_aggregation_add(agg, fixed[i], id, id, 0) < 0) {
			csw_aggregation_free(agg);
			return -ENOMEM;
		}
	}
	return 0;
}

void csw_aggregation_free(struct csw_aggregation *agg)
{
	free(agg->rows);
	*agg = (struct csw_aggregation){ .nr = 0 };
}

int64_t csw_aggregation_add(struct csw_aggregation *agg, uint16_t kind, int32_t pid, int32_t tid,
			    uint64_t birth_ns)
{
	struct csw_agg_row *row;

	if (agg->nr == agg->capacity && grow(agg) < 0)
		return -ENOMEM;
	row = csw_aggregation_row(agg, (uint32_t)agg->nr);
	memset(row, 0, agg->stride);
	row->birth_ns = birth_ns;
	row->pid = pid;
	row->tid = tid;
	row->kind = kind;
	for (unsigned i = 0; i < agg->nr_counters; i++)
		row->cells[i].min = UINT64_MAX;
	return (int64_t)agg->nr++;
}

void csw_aggregation_count(struct csw_aggregation *agg, uint32_t nr, const uint64_t *deltas,
			   bool whole)
{
	struct csw_cell *cell = csw_aggregation_row(agg, nr)->cells;

	for (unsigned i = 0; i < agg->nr_counters; i++, cell++) {
		cell->sum += deltas[i];
		if (!whole)
			continue;
		if (deltas[i] < cell->min)
			cell->min = deltas[i];
		if (deltas[i] > cell->max)
			cell->max = deltas[i];
	}
}
