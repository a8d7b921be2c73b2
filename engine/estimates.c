/* Samples behind cells; see estimates.h. */
#include "engine/estimates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int grow(struct csw_estimates *e, uint32_t row)
{
	size_t nr = e->nr_rows ? e->nr_rows : 256;
	uint64_t *samples;

	while (nr <= row)
		nr *= 2;
	samples = reallocarray(e->samples, nr, e->nr_counters * sizeof(*samples));
	if (!samples)
		return -ENOMEM;
	memset(samples + e->nr_rows * e->nr_counters, 0,
	       (nr - e->nr_rows) * e->nr_counters * sizeof(*samples));
	e->samples = samples;
	e->nr_rows = nr;
	return 0;
}

int csw_estimates_add(struct csw_estimates *e, uint32_t row, unsigned counter)
{
	if (row >= e->nr_rows && grow(e, row) < 0)
		return -ENOMEM;
	e->samples[(size_t)row * e->nr_counters + counter]++;
	return 0;
}

void csw_estimates_free(struct csw_estimates *e)
{
	free(e->samples);
	*e = (struct csw_estimates){ .nr_rows = 0 };
}
