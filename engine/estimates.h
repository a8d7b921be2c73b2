/*
 * How many ordinary samples stand behind each cell of an aggregation: beside it, because only files
 * that were sampled have any.
 */
#ifndef CSW_ENGINE_ESTIMATES_H
#define CSW_ENGINE_ESTIMATES_H

#include <stddef.h>
#include <stdint.h>

struct csw_estimates {
	uint64_t *samples; /* nr_counters per row */
	size_t nr_rows;
	unsigned nr_counters;
};

/* One more sample for a counter of a row. 0 or -ENOMEM. */
int csw_estimates_add(struct csw_estimates *e, uint32_t row, unsigned counter);
void csw_estimates_free(struct csw_estimates *e);

static inline uint64_t csw_estimates_of(const struct csw_estimates *e, uint32_t row,
					unsigned counter)
{
	return e && row < e->nr_rows ? e->samples[(size_t)row * e->nr_counters + counter] : 0;
}

/* Has any counter of the row a sample? */
static inline int csw_estimates_touch(const struct csw_estimates *e, uint32_t row)
{
	for (unsigned c = 0; e && c < e->nr_counters; c++) {
		if (csw_estimates_of(e, row, c))
			return 1;
	}
	return 0;
}

#endif
