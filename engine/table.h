/*
 * The aggregation table: one row per owner, free of what other threads caused. It only adds up.
 *
 * Rows lie in one array that grows by doubling and are never moved within it or removed: a row's
 * number stays good. Who is who (TIDs, births, names) is the business of engine/tasks.
 *
 * Invariant: a counter's sum over all rows, whatever their kind, is the sum of all deltas ever
 * added.
 */
#ifndef CSW_ENGINE_TABLE_H
#define CSW_ENGINE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "csw/csw.h"
#include "engine/record.h"

/* Rows that every table begins with. */
enum csw_fixed_row {
	CSW_ROW_IDLE,
	CSW_ROW_UNKNOWN,
	CSW_ROW_LOST,
	CSW_ROW_MIXED,
	CSW_ROWS_FIXED,
};

/* csw_agg_row.flags */
#define CSW_ROW_IN_SCOPE 0x1u
#define CSW_ROW_EXITED 0x2u    /* has begun to exit */
#define CSW_ROW_CLOSED 0x4u    /* its TID may belong to another thread by now */
#define CSW_ROW_MOVED 0x8u     /* an exec gave it the TID of its process; for tests and --verbose */
#define CSW_ROW_IN_TREE 0x20u  /* descends from the scope's tree */
#define CSW_ROW_FREE 0x40u     /* given up: the next new row takes its place */
#define CSW_ROW_PINNED 0x100u  /* a CPU's state speaks of it: a reset must not give it up */
#define CSW_ROW_WANTED 0x80u   /* its TID was asked for */
#define CSW_ROW_COMM_OWN 0x10u /* named by a COMM record or the start scan, not only inherited */

#define CSW_CPU_NONE UINT32_MAX

struct csw_cell {
	uint64_t sum;
	uint64_t min, max; /* over whole slices; min > max while there was none */
};

/*
 * What a slice changes lies together: with three counters a row is three cache lines, of which
 * csw_aggregation_count touches the last two. No hole and no growth: the first counter's sum fills
 * the second line.
 */
struct csw_agg_row {
	uint64_t birth_ns;
	int32_t pid, tid;
	char comm[CSW_COMM_BYTES];
	uint64_t cgroup;    /* the kernel's id, 0: not known */
	uint32_t continues; /* this row is the thread of that one, gone on in another cgroup; 0: of
			       none */
	uint32_t last_cpu;  /* where it ran last; CSW_CPU_NONE: nowhere yet */
	uint16_t kind;      /* enum csw_kind */
	uint16_t flags;
	/* from here on: sums, which a reset clears */
	uint32_t proven; /* bit per counter: some of it was booked here, be it 0; else it was not
			    counted */
	uint64_t slices, oncpu_ns, voluntary, preempted, exact_ns, migrations;
	uint64_t enabled_ns, running_ns;
	struct csw_cell cells[]; /* one per counter of the plan */
};

#define CSW_ROW_ALIGN 64 /* a cache line */
_Static_assert(sizeof(struct csw_agg_row) + sizeof(uint64_t) == 2 * CSW_ROW_ALIGN,
	       "a slice with up to three counters changes no fourth line");

struct csw_aggregation {
	unsigned char *rows; /* within memory, on a line of its own */
	void *memory;
	size_t nr, capacity; /* in rows */
	size_t stride;       /* bytes from one row to the next, whole cache lines */
	unsigned nr_counters;
	bool histograms;     /* rows end in one histogram per counter */
	bool turns;          /* behind the cells each counter has a running time of its own */
	bool shares;         /* ... and how much of its sum is only an estimate */
	uint32_t first_free; /* of the rows given up, chained by `continues`; 0: none */
};

/* What rows keep besides; `true` is histograms. */
#define CSW_KEEP_HISTOGRAMS 1u
#define CSW_KEEP_TURNS 2u
#define CSW_KEEP_SHARES 4u

/* With the fixed rows, or without any row. keep: CSW_KEEP_*. 0 or -ENOMEM. */
int csw_aggregation_init_empty(struct csw_aggregation *agg, unsigned nr_counters, uint32_t keep);
int csw_aggregation_init(struct csw_aggregation *agg, unsigned nr_counters, uint32_t keep);
void csw_aggregation_free(struct csw_aggregation *agg);

/* A new row, zeroed but for the key; its number, or -ENOMEM. Pointers to rows are good until the
 * next call. */
int64_t csw_aggregation_add(struct csw_aggregation *agg, uint16_t kind, int32_t pid, int32_t tid,
			    uint64_t birth_ns);

static inline struct csw_agg_row *csw_aggregation_row(const struct csw_aggregation *agg,
						      uint32_t nr)
{
	return (struct csw_agg_row *)(agg->rows + nr * agg->stride);
}

/* How long each counter of a row ran, where they take turns; NULL: all as long as the row says. */
static inline uint64_t *csw_aggregation_running(const struct csw_aggregation *agg, uint32_t nr)
{
	return agg->turns ? (uint64_t *)(csw_aggregation_row(agg, nr)->cells + agg->nr_counters)
			  : NULL;
}

/* How much of each counter's sum is a share of slices of several owners; and behind the last one a
 * bit for each counter that has any share, be it 0. NULL: not kept. */
static inline uint64_t *csw_aggregation_shares(const struct csw_aggregation *agg, uint32_t nr)
{
	uint64_t *behind = (uint64_t *)(csw_aggregation_row(agg, nr)->cells + agg->nr_counters);

	return agg->shares ? behind + (agg->turns ? agg->nr_counters : 0) : NULL;
}

/* The histogram of a counter of a row, CSW_BUCKETS long; NULL: not kept. */
static inline uint64_t *csw_aggregation_histogram(const struct csw_aggregation *agg, uint32_t nr,
						  unsigned counter)
{
	uint64_t *behind = (uint64_t *)(csw_aggregation_row(agg, nr)->cells + agg->nr_counters);

	if (!agg->histograms)
		return NULL;
	behind += (agg->turns ? agg->nr_counters : 0) + (agg->shares ? agg->nr_counters + 1 : 0);
	return behind + (size_t)counter * CSW_BUCKETS;
}

/* Sets all sums of all rows back to 0 and gives up the rows that are CLOSED and not PINNED. */
void csw_aggregation_reset(struct csw_aggregation *agg);

/* Counts a whole slice in its buckets: 0, 1, 2-3, 4-7, ... */
void csw_aggregation_bucket(struct csw_aggregation *agg, uint32_t nr, const uint64_t *deltas);

/* The same as csw_aggregation_count where counters take turns: `on` has a bit for each that ran,
 * and for how long they did. What was off has neither a minimum nor a histogram of that slice. */
void csw_aggregation_count_turn(struct csw_aggregation *agg, uint32_t nr, const uint64_t *deltas,
				bool whole, uint32_t on, uint64_t running_ns);

/* Of what was added to a row, this is a share of a slice of several owners: for each counter that
 * `which` has a bit for. Only where shares are kept. */
void csw_aggregation_note_shares(struct csw_aggregation *agg, uint32_t nr, const uint64_t *deltas,
				 uint32_t which);

/* Adds deltas[nr_counters]; whole: they are one whole slice of this row and count for min and max.
 * Here, so that it becomes part of its caller. A new minimum or maximum is ever rarer, so that
 * these branches cost less than conditional moves with their stores (bench/table: 1.2 against 1.5).
 */
static inline void csw_aggregation_count(struct csw_aggregation *agg, uint32_t nr,
					 const uint64_t *deltas, bool whole)
{
	struct csw_cell *cell = csw_aggregation_row(agg, nr)->cells;
	struct csw_cell *end = cell + agg->nr_counters;
	const uint64_t *delta = deltas;

	if (!whole) {
		for (; cell < end; cell++)
			cell->sum += *delta++;
		return;
	}
	for (; cell < end; cell++) {
		uint64_t d = *delta++;

		cell->sum += d;
		if (__builtin_expect(d < cell->min, 0))
			cell->min = d;
		if (__builtin_expect(d > cell->max, 0))
			cell->max = d;
	}
	if (agg->histograms)
		csw_aggregation_bucket(agg, nr, deltas);
}

#endif
