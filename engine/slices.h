/*
 * Slices one by one, for whoever wants them as they come.
 *
 * The slicer books time when a switch shows it and counts when a sample does; here both come
 * together again. Invariant: per row, the lines' time and counts add up to what the slicer booked
 * on it.
 */
#ifndef CSW_ENGINE_SLICES_H
#define CSW_ENGINE_SLICES_H

#include "engine/rules.h"
#include "engine/table.h"

#define CSW_SLICES_RUNS 16u /* distinct owners between two samples that are held apart */

/* A line that may still learn why its slice ended: the switch comes after the sample. */
struct csw_slice_line {
	uint64_t from_ns, to_ns, oncpu_ns;
	uint32_t owner, end; /* a row; enum csw_run_end */
	uint32_t counted;    /* csw_slice.counted */
	bool exact;
	uint64_t values[CSW_COUNTERS_MAX];
};

struct csw_slices_cpu {
	unsigned nr_runs;
	struct {
		uint32_t owner, end;
		uint64_t ns;
	} runs[CSW_SLICES_RUNS];
	bool holds;
	struct csw_slice_line held;
	uint64_t from_ns, to_ns; /* of the slice that is being closed */
	uint32_t exact_owner;    /* UINT32_MAX: it is not exact */
	uint32_t on;             /* a bit for each counter that ran in it */
};

struct csw_slices {
	const struct csw_aggregation *agg; /* borrowed */
	bool scoped;                       /* what is out of scope has no line */
	unsigned nr_counters, nr_cpus;
	struct csw_slices_cpu *cpus;
	int (*fn)(void *ctx, const struct csw_slice *slice);
	void *ctx;
	uint32_t estimated; /* a bit for each counter that has only ordinary samples */
	int ret;            /* the first answer of fn that was not 0 */
};

int csw_slices_init(struct csw_slices *s, const struct csw_aggregation *agg, bool scoped,
		    unsigned nr_cpus, int (*fn)(void *ctx, const struct csw_slice *slice),
		    void *ctx); /* 0 or -ENOMEM */
void csw_slices_free(struct csw_slices *s);

/* What the slicer books, in its order: time; or begin, counts of one slice, finish. */
void csw_slices_charge(struct csw_slices *s, unsigned cpu, const struct csw_charge *charge,
		       uint64_t time_ns);
void csw_slices_begin(struct csw_slices *s, unsigned cpu, uint64_t from_ns, uint64_t to_ns,
		      uint32_t exact_owner, uint32_t on);
void csw_slices_count(struct csw_slices *s, unsigned cpu, uint32_t owner, const uint64_t *values);
void csw_slices_finish(struct csw_slices *s, unsigned cpu, bool last);

#endif
