/*
 * What a source of records is to the engine: one const table of functions per driver.
 *
 * The engine owns the order of calls: resolve_*, settle, open, start, { wait, snapshot, next... },
 * stop, snapshot, next..., close. After a call failed only close may follow (for open: nothing,
 * *out is NULL). No call prints, exits or installs handlers. All return 0 (or what their comment
 * says) or -errno with *err filled in.
 */
#ifndef CSW_ENGINE_DRIVER_H
#define CSW_ENGINE_DRIVER_H

#include "csw/csw.h"
#include "engine/event.h"
#include "engine/record.h"

/* What to count and how: made by engine/spec from text, read by the driver, never changed after. */
struct csw_plan {
	struct csw_trigger trigger;
	bool force; /* use a trigger that is known not to work here */
	struct csw_event counters[CSW_COUNTERS_MAX];
	unsigned nr_counters;
	unsigned stores;  /* 1 + the counter of the stores among what the trigger sees; 0: it does
			     not see stores beside loads (CSW_EVENT_STORES_TOO) */
	const char *cpus; /* count on these only, "0-3,8"; NULL: on all */
	bool cgroups;     /* fill in csw_record.cgroup */
	bool multiplex;   /* more hardware counters than fit may take turns */
	uint64_t ring_bytes;  /* size of one CPU's ring, that or nothing; 0: the driver's choice
				 within its budget */
	uint64_t duration_ns; /* how long the run is meant to last, 0: not known; the simulated
				 machine ends then */
	uint32_t estimated;   /* a bit for each counter that has only ordinary samples */
	uint32_t mixed;       /* enum csw_mixed */
	uint32_t scaled;      /* known once the driver is open: csw_driver_facts.scaled */
	const char *input;    /* the recording to be read, NULL: none */
	uint64_t from_ns;     /* of a recording: only what happened from here ... */
	uint64_t to_ns;       /* ... to there, 0: no limit */
	bool from_first, to_first; /* ... counted from its first sample */
	const char *driver_opts;   /* what stood behind "NAME:" in the driver's name, or NULL */
};

struct csw_driver; /* each driver's own */

/* Where start() delivers the TASK records of the start scan, before it enables any counter. */
struct csw_sink {
	void (*put)(void *ctx, const struct csw_record *rec);
	void *ctx;
};

/* Members of struct csw_summary that only a driver knows. */
struct csw_driver_facts {
	uint64_t ring_bytes;
	uint32_t cpus_missed, cpus_gone;
	/* Constant from open to close: how many sets of counters take turns, 1 or 0: none do; and a
	 * bit for each counter that is not in all of them. */
	uint32_t sets, scaled;
};

/* How long the nr-th turn of a set of counters lasts. A turn costs its CPU two switches to the
 * reader and back, some 20 us, so that 20 ms keep that at a thousandth, and a run of a few seconds
 * gives each set a hundred turns. No steady pace: what a program does at steady times (a frame
 * every 16.7 ms, a timer every 10) would fall into the same set's turns again and again. So turns
 * are of 15 to 25 ms, by multiples of the golden ratio, which spread evenly and are the same in
 * every run. */
static inline uint64_t csw_turn_ns(uint32_t nr)
{
	const uint64_t least_ns = 15000000, spread_ns = 10000000;

	return least_ns + (spread_ns * (uint32_t)(nr * 2654435769u) >> 32);
}

/* csw_driver_ops.caps */
#define CSW_DRIVER_SIMULATED 0x1u /* the numbers are of no real machine */
#define CSW_DRIVER_LIVE                                                                            \
	0x2u /* watches the threads of this machine: scopes by PID and a command make sense */
#define CSW_DRIVER_FILE 0x4u /* reads a recording: there is nothing to open but its file */

struct csw_driver_ops {
	const char *name;
	const char *summary; /* one line for lists */
	uint32_t caps;

	/* Can it work here? Tries the real thing and undoes it. 0, or -errno and why not. */
	int (*probe)(struct csw_error *err);

	/* A counter's (a trigger's) name to an event. Opens nothing that stays. -ENOENT: no such
	 * name, with the nearest ones; -EOPNOTSUPP: a known name that this machine cannot count,
	 * with the reason and what works instead. resolve_trigger also settles sav (in: as wished,
	 * >= 1, or CSW_SAV_AUTO) and refuses what would mix threads silently. */
	int (*resolve_counter)(const char *name, struct csw_event *out, struct csw_error *err);
	int (*resolve_trigger)(const char *name, uint64_t sav, struct csw_trigger *out,
			       struct csw_error *err);

	/* The same as resolve_trigger, but what is known not to work is used, with the reason in
	 * out->forced. NULL: nothing here is refused for that. */
	int (*force_trigger)(const char *name, uint64_t sav, struct csw_trigger *out,
			     struct csw_error *err);
	/* Between resolve_* and open: what the names mean under plan->driver_opts, which may give
	 * trigger and counters other events, or refuse one as resolve_* does. NULL where a driver's
	 * options change no event. */
	int (*settle)(struct csw_plan *plan, struct csw_error *err);

	/* Of drivers that read a recording (CSW_DRIVER_FILE), instead of resolve_* and open: opens
	 * plan->input and fills in what was counted there. */
	int (*adopt)(struct csw_driver **out, struct csw_plan *plan, struct csw_error *err);

	/* Of the same: 0 with a remark in err->text or none, or -errno and where the recording is
	 * broken; what came before was delivered. */
	int (*damage)(const struct csw_driver *drv, struct csw_error *err);

	/* Makes rings and counters, all disabled. The plan outlives the driver. */
	int (*open)(struct csw_driver **out, const struct csw_plan *plan, struct csw_error *err);

	/* Rings (each with its own time order) and the highest CPU number + 1. Constant from open
	 * to close. */
	unsigned (*nr_rings)(const struct csw_driver *drv);
	unsigned (*nr_cpus)(const struct csw_driver *drv);

	/* Side-band on, start scan into sink, then counters on, each CPU's from that CPU. Each
	 * ring's stream then begins with (task records and) one START per CPU. */
	int (*start)(struct csw_driver *drv, const struct csw_sink *sink, struct csw_error *err);

	/* Waits until a ring fills up or the time is over: 1 go on, 0 the source has ended
	 * (simulations, files). Where counters take turns, it also ends the turns that are over:
	 * each stream then gets a READ with CSW_RECORD_TURN, as of a tick. */
	int (*wait)(struct csw_driver *drv, int timeout_ms, struct csw_error *err);

	/* Reads the counters of every CPU: each stream gets at most one READ, in its place, within
	 * the next snapshot; none where the CPU switches so fast that only samples are exact. */
	int (*tick)(struct csw_driver *drv, struct csw_error *err);

	/* The path of a cgroup from the cgroup mount, "/" the root; NULL: nobody knows it. Good
	 * until close. The call is NULL where a driver has no cgroups. */
	const char *(*cgroup_path)(struct csw_driver *drv, uint64_t id);

	/* Notes how far every ring is filled now, for next(). Returns the horizon: every record up
	 * to this time lies within the snapshot (but for a writer stopped in mid-record);
	 * UINT64_MAX after stop(). */
	uint64_t (*snapshot)(struct csw_driver *drv);

	/* The next record of the ring: 1 and *rec, 0 at the snapshot's end, -errno on a malformed
	 * ring. rec is a copy. */
	int (*next)(struct csw_driver *drv, unsigned ring, struct csw_record *rec);

	/* Counters off, each CPU's from that CPU, then their last reading. Each CPU's stream then
	 * ends with one STOP. */
	int (*stop)(struct csw_driver *drv, struct csw_error *err);

	/* From open to close; the CPUs as they were at the last tick or stop. The call is NULL
	 * where a driver has neither rings in bytes, nor CPUs that come and go, nor counters that
	 * take turns. */
	void (*facts)(const struct csw_driver *drv, struct csw_driver_facts *out);

	void (*close)(struct csw_driver *drv); /* NULL is fine */
};

extern const struct csw_driver_ops csw_perf_driver;
extern const struct csw_driver_ops csw_sim_driver;
extern const struct csw_driver_ops csw_perfdata_driver;

#endif
