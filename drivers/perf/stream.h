/*
 * The stream of one CPU: what its ring holds, with the readings that are made from this side
 * (ticks, the ends of turns) in their places.
 *
 * Counters are switched on and off from their own CPU, so that the first and the last slice of
 * every CPU end in a known thread: the calling one. The side-band runs before and after; what it
 * says outside of START..STOP only names threads.
 *
 * A turn is ended by the calling thread, on the CPU itself: the old set off, its reading, the new
 * set on. What lies between belongs to this thread, and no other loses anything by it.
 *
 * Invariant: the stream of a CPU that was enabled is START, then records, then STOP.
 */
#ifndef CSW_DRIVERS_PERF_STREAM_H
#define CSW_DRIVERS_PERF_STREAM_H

#include "drivers/perf/group.h"
#include "drivers/perf/turns.h"

/* What is the same for the streams of all CPUs. */
struct csw_perf_common {
	const struct csw_plan *plan;
	struct csw_perf_features features;
	struct csw_perf_form form;
	uint64_t snapshot_ns; /* all records up to this time are in the snapshots of the rings */
};

enum csw_perf_stream_state {
	CSW_PERF_STREAM_BEFORE, /* START is still to be handed out */
	CSW_PERF_STREAM_COUNTING,
	CSW_PERF_STREAM_ENDED,
};

/* Readings that wait for their place in the stream: at most a tick's, the end of a turn, the
 * beginning of the next one, and another tick's. */
#define CSW_PERF_CUTS_MAX 4

enum csw_perf_cut_kind {
	CSW_PERF_CUT_TICK, /* the counters were read */
	CSW_PERF_CUT_OFF,  /* a set was switched off */
	CSW_PERF_CUT_ON,   /* ... and another one on; nothing was counted in between */
};

struct csw_perf_cut {
	uint32_t kind;          /* enum csw_perf_cut_kind */
	uint64_t before_ns;     /* OFF: just before the disabling call */
	struct csw_record read; /* its time: when the call had returned */
};

struct csw_perf_stream {
	const struct csw_perf_common *common; /* borrowed */
	struct csw_perf_group group;
	struct csw_perf_turns turns; /* only where there are several sets: */
	struct csw_perf_turn now;    /* the set that is enabled, */
	struct csw_perf_turn seen;   /* and the one that the records at the read position are of */
	enum csw_perf_stream_state state;
	bool disabled;
	bool gone;                   /* the CPU went offline */
	uint64_t enabled_ns;         /* when the enabling call had returned */
	uint64_t disabling_ns;       /* just before the disabling call */
	uint64_t disabled_ns;        /* when it had returned */
	uint64_t sampled_ns;         /* the last sample: when it was taken, */
	uint64_t sampled_enabled_ns; /* and how long the counters had been enabled by then */
	uint64_t last_ns;            /* time of the last record read */
	int32_t starter; /* TID of the thread that ran on this CPU at both ends, -1: not known */
	struct csw_record stop;
	unsigned nr_cuts;
	struct csw_perf_cut cuts[CSW_PERF_CUTS_MAX]; /* in the order of their times */
};

/* Its group is open. Where the counters take turns, set `first` has the first one. 0 or -ENOMEM. */
int csw_perf_stream_init(struct csw_perf_stream *s, unsigned first);
void csw_perf_stream_free(struct csw_perf_stream *s); /* its group as well; fine if all zeros */

/* Counters on. there: the calling thread is on that CPU. */
int csw_perf_stream_enable(struct csw_perf_stream *s, bool there, struct csw_error *err);

/* Reads the counters, unless the CPU switches so fast that only its samples are exact. */
int csw_perf_stream_tick(struct csw_perf_stream *s, struct csw_error *err);

/* Ends the turn of the set that is enabled and begins the next one's; the calling thread should be
 * on that CPU. Where the last turn's end is still to be read this one must go on: so at most one of
 * them waits, and there is always room for a tick. */
bool csw_perf_stream_may_turn(const struct csw_perf_stream *s);
int csw_perf_stream_turn(struct csw_perf_stream *s, struct csw_error *err);

/* Counters off, and their last reading. */
int csw_perf_stream_disable(struct csw_perf_stream *s, bool there, struct csw_error *err);

/* The next record of the stream: 1 and *rec; 0: none in the snapshot; -EINVAL: the ring holds none.
 */
int csw_perf_stream_next(struct csw_perf_stream *s, struct csw_record *rec);

#endif
