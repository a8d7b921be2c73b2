/*
 * libcsw: how much of each event every thread of a machine caused.
 *
 * Counters run per CPU and never stop. A first counter, the trigger, overflows at every context
 * switch; the overflow reads the other counters; the difference since the overflow before belongs
 * to the thread that was running.
 *
 *	struct csw_session *s;
 *	struct csw_table *table;
 *	struct csw_error err;
 *
 *	if (csw_open(&s, "switch", "page-faults,task-clock", NULL, &err) || csw_start(s, &err))
 *		errx(1, "%s", err.text);
 *	while (!done && csw_poll(s, 100, &err) > 0)
 *		;
 *	csw_stop(s, &err);
 *	csw_table_open(&table, s, CSW_BY_THREAD, &err);
 *	csw_report(table, stdout, NULL, &err);
 *	csw_table_close(table);
 *	csw_close(s);
 *
 * Every call that can fail returns 0 (or what its comment says) or -errno, and writes one line with
 * the remedy to *err when err is not NULL. The library never prints, exits or installs signal
 * handlers. A session belongs to one thread at a time; two sessions do not know of each other. All
 * strings are UTF-8 or plain bytes as the kernel gave them.
 */
#ifndef CSW_CSW_H
#define CSW_CSW_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default) /* the library itself is compiled with hidden symbols */
#endif

#define CSW_VERSION_MAJOR 0
#define CSW_VERSION_MINOR 1
#define CSW_VERSION_PATCH 0
#define CSW_VERSION "0.1.0"

/* "0.1.0": the library's, which may be newer than the header's. Static storage. */
const char *csw_version(void);

/* ---- errors ---- */

#define CSW_ERROR_BYTES 1024

/* Owned by the caller. text is one line, without a newline: what failed, why, and what to do about
 * it. */
struct csw_error {
	int32_t code; /* the -errno that the call returned */
	char text[CSW_ERROR_BYTES];
};

/* ---- a session ---- */

struct csw_session; /* opaque: counters, rings and the table that they feed */

/* Options are optional: NULL, or a struct filled with zeros but for .size and what is wanted. A
 * program compiled against a longer struct than the library knows gets -E2BIG if the unknown part
 * is not zero. */
struct csw_opts {
	size_t size;         /* sizeof(struct csw_opts) */
	const char *driver;  /* "auto" (default), "perf", "sim"; "sim:cpus=8,seed=3" passes options
				to the driver */
	uint64_t sav;        /* sample-after value: trigger occurrences per sample; 0: 1;
				CSW_SAV_AUTO: what the catalogue has for the trigger, 1 for events
				that it does not know */
	uint64_t ring_bytes; /* size of one CPU's ring, cut to a power of two; -EPERM from csw_open,
				with the largest that fits, when so much may not be locked. 0: the
				library chooses, within that; see csw_summary.ring_bytes */
	uint64_t duration_ns; /* planned length of the run; 0: open. A simulated machine runs that
				 long */

	/* Scope: which threads get rows of their own; all others are the row `other`. Counting is
	 * always per CPU. Several kinds combine by AND. Arrays and strings are borrowed during
	 * csw_open. */
	const int32_t *pids; /* all threads of these processes, now and later, no children */
	size_t nr_pids;
	int32_t tree;        /* this process and all its descendants, 0: none */
	uint32_t histogram;  /* 1: keep a log2 histogram of every counter per slice and row: 520
				bytes each */
	const int32_t *tids; /* these threads, which must be alive at csw_start */
	size_t nr_tids;
	const char
		*cgroup;  /* threads while they are in this cgroup (v2) or one below it: a path such
			     as "/system.slice/ssh.service", from the cgroup mount or with it */
	const char *cpus; /* count on these CPUs only, "0-3,8"; NULL: on all that are online */
	uint32_t cgroups; /* 1: follow which cgroup each thread is in, for CSW_BY_CGROUP */
	uint32_t time_flags; /* CSW_TIME_* */

	/* A recording to be read instead of counting: a perf.data file, "-": the standard input.
	 * Its events are what they are: trigger, events, sav and all that says how to count have no
	 * meaning. */
	const char *input;
	uint64_t from_ns, to_ns; /* of a recording: what lies between these times of its clock, 0:
				    no limit; -ENODATA from csw_stop when nothing does */
	const char *comms;       /* only threads of these names, separated by commas, in scope */

	uint32_t force; /* 1: use the trigger even if it is known not to work here, as long as the
			   kernel can open it; see csw_summary.trigger_forced */
	uint32_t multiplex; /* 1: hardware counters that do not fit the PMU together take turns on
			       it, in sets; see csw_count_scaled. Else they are refused */
	uint32_t mixed;     /* enum csw_mixed */
	uint32_t reserved_;
};

/* What becomes of the counts of a slice in which several threads ran. What is known stays what it
 * is: clocks go by the times from the switch records, and what cannot happen in idle goes to the
 * one thread beside it. The rest: */
enum csw_mixed {
	CSW_MIXED_ROW, /* is nobody's: the rows of kind CSW_KIND_MIXED have it */
	/* An estimate: the thread that the slice's sample shows has it, the last one that ran. */
	CSW_MIXED_LAST,
	/* An estimate: those that ran have each the share that its time on the CPU is of theirs;
	 * idle is no time on the CPU. */
	CSW_MIXED_SPLIT,
};
/* Both estimates are marked (CSW_COUNT_SHARED), and leave to the rows of kind CSW_KIND_MIXED the
 * slices of which not every owner is known; SPLIT also those with more than eight. */
const char *csw_mixed_name(uint32_t mixed); /* "row", "last", "split"; static storage */

#define CSW_SAV_AUTO UINT64_MAX /* csw_opts.sav */

/* csw_opts.time_flags: counted from the recording's first sample, not by its clock */
#define CSW_TIME_FROM_FIRST 0x1u
#define CSW_TIME_TO_FIRST 0x2u

/*
 * Resolves the names, opens counters and rings, all disabled.
 * trigger: "switch", "seg_load", ... or any event name; NULL: "auto". events: comma-separated
 * names; one may be added (csw_summary.stores). Both are copied. *out is NULL on failure. Errors:
 * -EINVAL (a malformed text), -ENOENT (no such name; the nearest are named), -EACCES or -EPERM
 * (which capability or sysctl is missing), -EOPNOTSUPP (a known name that this machine cannot
 * count, with the reason and what works instead), -E2BIG, -EMFILE, -ENOMEM, ...
 */
int csw_open(struct csw_session **out, const char *trigger, const char *events,
	     const struct csw_opts *opts, struct csw_error *err);

/* Begins to count. The calling thread visits every CPU for a moment and gets its affinity back.
 * Once per session. */
int csw_start(struct csw_session *s, struct csw_error *err);

/* Waits at most timeout_ms for records and works them off. 1: go on; 0: the source has ended (a
 * simulated machine). Call it at least every 100 ms or so: what does not fit a ring meanwhile is
 * lost, and accounted as lost. -EINTR never. */
int csw_poll(struct csw_session *s, int timeout_ms, struct csw_error *err);

/* Reads every CPU's counters now, so that a table opened after it holds all up to this moment. Cuts
 * every running slice in two, which counts as none for min, max and histogram. A CPU that switches
 * faster than it can be read between two switches is known up to its last sample, some microseconds
 * before. */
int csw_tick(struct csw_session *s, struct csw_error *err);

/* Forgets all sums: the next table holds what comes after. Call it after csw_tick and after opening
 * the table of the interval that ends here. Rows of threads that are gone are given up. */
int csw_reset(struct csw_session *s, struct csw_error *err);

/* Ends counting and works off the rest. The session then only serves tables. Once per session;
 * visits every CPU. */
int csw_stop(struct csw_session *s, struct csw_error *err);

/* Frees all; also the error path of csw_open. NULL is fine. Tables of the session must be closed
 * before. */
void csw_close(struct csw_session *s);

/* Of a recording that has been read: 0, or -EBADMSG with a line that says where it is broken; what
 * came before that has been counted. A remark may stand in err->text (which is else empty) with 0
 * too. */
int csw_damage(const struct csw_session *s, struct csw_error *err);

/* What a recording says of its machine and its making ("host", "CPU", "command", "event", ...), in
 * the order of the file; strings borrowed during the callback. A return value other than 0 ends it
 * and is returned. */
int csw_recording(const char *path, int (*fn)(void *ctx, const char *name, const char *value),
		  void *ctx, struct csw_error *err);

/* ---- slices ---- */

enum csw_slice_end {
	CSW_END_VOLUNTARY, /* the thread gave up the CPU */
	CSW_END_PREEMPTED, /* it was taken from it */
	CSW_END_UNSEEN,    /* a switch known only from the other side's record */
	CSW_END_CUT, /* no switch: a reading, the end, or an owner whose counts another line has */
};
const char *csw_slice_end_name(uint32_t end); /* "voluntary", ...; static storage */

/* What one owner had between two samples of one CPU. Struct grows at its end only. */
struct csw_slice {
	uint64_t from_ns, to_ns; /* the samples' times */
	uint64_t oncpu_ns;       /* the owner's time between them */
	uint32_t kind;           /* enum csw_kind */
	uint32_t cpu;
	int32_t pid, tid; /* as in csw_row */
	uint32_t end;     /* enum csw_slice_end */
	uint32_t exact;   /* 1: one proven owner and no gap */
	const char *comm; /* borrowed during the callback, as values */
	size_t nr_values;
	const uint64_t *values; /* of each counter, in the table's order; where several threads ran,
				   the owner's share of the slice (csw_opts.mixed) */
	uint32_t counted; /* a bit for each counter that ran in this slice (csw_opts.multiplex): of
			     another one the value means nothing */
	uint32_t reserved_;
};

/* Calls fn for each slice in scope while the session is polled and stopped, and for those that
 * cannot be given to anybody; per thread, slices add up to its row from when it came into scope
 * (ordinary samples of a recording are no slices). Without a scope they add up to the counters. A
 * return value other than 0 makes the call fail with it, which should be a -errno. Call it before
 * csw_start. */
int csw_on_slice(struct csw_session *s, int (*fn)(void *ctx, const struct csw_slice *slice),
		 void *ctx, struct csw_error *err);

/* ---- results ---- */

/* The kinds of rows. All kinds together add up to the counters' totals. */
enum csw_kind {
	CSW_KIND_THREAD,  /* a thread (or a group of them) of user space */
	CSW_KIND_KERNEL,  /* a kernel thread */
	CSW_KIND_IDLE,    /* the CPUs while they idled */
	CSW_KIND_SELF,    /* the threads of the measuring program */
	CSW_KIND_MIXED,   /* slices in which several threads ran; pid >= 0: all of that process */
	CSW_KIND_LOST,    /* stretches with missing records */
	CSW_KIND_UNKNOWN, /* stretches whose owner nobody knows */
	CSW_KIND_OTHER,   /* everything out of scope, idle and kernel threads included */
	CSW_KIND_REST,    /* what a limit on the number of rows folded away */
};
const char *csw_kind_name(uint32_t kind); /* "thread", ...; static storage */

enum csw_by {
	CSW_BY_THREAD,
	CSW_BY_PROCESS,
	CSW_BY_COMM,   /* threads of one name */
	CSW_BY_CGROUP, /* needs csw_opts.cgroups or .cgroup */
	CSW_BY_CPU,
};

/* One row. Times in ns of the session's clock. Struct grows at its end only; see csw_table_row. */
struct csw_row {
	uint32_t kind;       /* enum csw_kind */
	int32_t pid, tid;    /* -1 where the kind has none; by process: tid = -1 */
	uint32_t nr_threads; /* threads in this row; 0 where the kind has none, and by CPU */
	uint64_t birth_ns;   /* when the thread was first known; two rows of one TID differ in it */
	uint64_t slices;     /* times it ran from one context switch to the next */
	uint64_t oncpu_ns;   /* time on a CPU */
	uint64_t voluntary;  /* switches away of its own will */
	uint64_t preempted;  /* switches away against its will */
	uint64_t exact_ns;   /* the part of oncpu_ns in slices with one proven owner and no gap */
	char comm[64]; /* the last name; bytes as the kernel gave them, may hold anything but NUL */
	uint64_t migrations; /* times it went on on another CPU than the one before */
	const char *cgroup;  /* path below the cgroup mount, the last one of a thread; borrowed like
				the row; NULL: not followed, not known, or not the same for all of a
				group */
	int32_t cpu;         /* by CPU: which; by thread: where it ran last; else -1 */
	uint32_t reserved_;
};

/* csw_count.flags */
/* Enabled but never running in this row's slices; or an event of the hardware that did not occur
 * once on any CPU in a second or more of counting, as the events do that a PMU opens but does not
 * have. value means nothing, it is not 0. */
#define CSW_COUNT_NOT_COUNTED 0x1u

#define CSW_COUNT_ESTIMATE                                                                         \
	0x2u /* the sum of the periods of `samples` ordinary samples, not a count */

#define CSW_COUNT_SCALED                                                                           \
	0x4u /* the counter took turns with others (csw_opts.multiplex): csw_count_scaled says     \
		what it would have counted all the time */

#define CSW_COUNT_SHARED                                                                           \
	0x8u /* `shared` of the value is only an estimate: of slices of several threads            \
		(csw_opts.mixed) */
#define CSW_COUNT_IMPOSSIBLE                                                                       \
	0x10u /* a clock that shows more time than there was: a reading was wrong, and the report  \
		 is broken */

/* One counter of one row. The value is never scaled: rows add up. */
struct csw_count {
	uint64_t value;      /* events */
	uint64_t enabled_ns; /* how long the row's slices wanted it to count ... */
	uint64_t running_ns; /* ... and how long it did */
	uint64_t min, max;   /* over whole slices of this row; both 0 when it has none */
	uint32_t flags;
	uint32_t reserved_;
	uint64_t samples; /* CSW_COUNT_ESTIMATE: how many */
	uint64_t shared;  /* CSW_COUNT_SHARED: how much; it may be 0 where the truth is not */
};

/* What the counter would have counted had it run all the time that the row's slices wanted it to:
 * value * enabled_ns / running_ns, where it took turns with others. 1: *out is such an estimate; 0:
 * it ran all the time (or never takes turns), *out is value; -ENODATA: not counted. For a group of
 * threads, and for a counter as a whole, add up first: the sum of estimates is not the estimate of
 * the sum. */
int csw_count_scaled(const struct csw_count *count, uint64_t *out);

struct csw_table; /* rows, sorted */

struct csw_table_opts {
	size_t size;      /* sizeof(struct csw_table_opts) */
	const char *sort; /* a counter, or "oncpu", "slices", "voluntary", "preempted",
			     "migrations": descending; "pid", "tid", "comm", "cgroup", "cpu":
			     ascending. NULL: the first counter. Ties: by PID, TID. The rows
			     `rest` and `other` are remainders: they come last, in this order,
			     whatever the column */
	uint64_t top;     /* show so many rows, and fold the others but `other` into one row `rest`,
			     behind them; 0: all */
};

/* Aggregates what the session has counted so far: up to csw_stop, or up to the last csw_tick. *out
 * is a copy, the session may go on; it is NULL on failure. opts NULL: defaults. Threads that never
 * ran are left out. -ENOENT: no such column to sort by, with the nearest; -EINVAL: cgroups were not
 * followed. */
int csw_table_open(struct csw_table **out, const struct csw_session *s, uint32_t by,
		   const struct csw_table_opts *opts, struct csw_error *err);
size_t csw_table_rows(const struct csw_table *t);
/* Borrowed until csw_table_close. NULL when i is out of range. */
const struct csw_row *csw_table_row(const struct csw_table *t, size_t i);
/* Counter j of row i into *out; -ERANGE when there is no such row or counter. */
int csw_table_count(const struct csw_table *t, size_t i, size_t j, struct csw_count *out);

#define CSW_BUCKETS 65 /* [0]: slices with 0 events, [k]: with 2^(k-1) to 2^k - 1 */
/* How many whole slices of row i had how many events of counter j. -ENODATA: not kept. */
int csw_table_histogram(const struct csw_table *t, size_t i, size_t j,
			uint64_t buckets[CSW_BUCKETS]);
void csw_table_close(struct csw_table *t); /* NULL is fine */

/* What is known of one counter. */
struct csw_counter {
	const char *name;   /* as asked for; borrowed from the table */
	const char *became; /* what is counted in truth */
	uint64_t total;     /* readings at stop - readings at start, over all CPUs */
	uint64_t rows;      /* sum over all rows: conservation holds when it equals total */
	uint64_t unproven;  /* the part of it that no thread could be proven to have caused: mixed,
			       lost and unknown slices, in scope or not, and `shared` */
	uint64_t enabled_ns, running_ns; /* over all CPUs */
	uint32_t flags;       /* CSW_COUNT_NOT_COUNTED, CSW_COUNT_ESTIMATE, CSW_COUNT_SCALED */
	uint32_t nanoseconds; /* 1: the unit is ns */
	uint32_t hardware;    /* 1: the CPU itself counts it */
	uint32_t reserved_;
	uint64_t shared; /* the part of rows that is in CSW_COUNT_SHARED's, in scope or not */
};
size_t csw_table_counters(const struct csw_table *t);
int csw_table_counter(const struct csw_table *t, size_t j, struct csw_counter *out); /* -ERANGE */

/* What the run says of itself. trigger = sav * samples + lost + throttled + unseen + open, always,
 * or broken is set. */
struct csw_summary {
	const char *trigger;        /* as asked for; borrowed from the table */
	const char *trigger_became; /* what it is in truth */
	const char *driver;
	uint32_t trigger_hardware; /* 1: an event of the CPU's hardware */
	uint32_t simulated;        /* 1: the numbers are of no real machine */
	uint64_t sav;
	uint64_t duration_ns; /* from the first CPU's start, or the end before the last csw_reset,
				 to the last one's stop */
	uint32_t nr_cpus;     /* CPUs counted */
	uint32_t broken; /* 1: a check does not hold, broken_why says which: the numbers cannot be
			    trusted */
	/* completeness, in occurrences of the trigger */
	uint64_t triggers; /* all, by the trigger's own counter */
	uint64_t samples;  /* overflows that arrived */
	uint64_t lost; /* overwritten or refused for lack of ring space, as the kernel reports */
	uint64_t throttled; /* in stretches where the kernel had stopped the trigger */
	uint64_t unseen;    /* counted, never reported and not said to be lost */
	uint64_t open;      /* after the last sample, fewer than sav per CPU */
	/* quality */
	uint64_t slices;
	uint64_t threads;         /* rows of kind thread and kernel that ran */
	uint64_t switches_unseen; /* times a switch record contradicted the one before it */
	uint64_t
		owner_disagreements; /* samples whose own TID is not what the trigger should show */
	uint64_t lost_records;       /* of all kinds, by LOST records */
	uint64_t throttles;          /* times the trigger was stopped */
	uint64_t oncpu_ns;           /* of all rows but idle */
	uint64_t exact_ns;           /* the part of it in slices with one proven owner and no gap */
	uint64_t cpu_ns;  /* after csw_stop: the CPUs' time from start to stop, which rows_ns must
			     equal */
	uint64_t rows_ns; /* time on a CPU of all rows, idle included */
	uint64_t ring_bytes;  /* of each CPU; 0: simulated */
	uint32_t cpus_missed; /* CPUs online at the last csw_tick or csw_stop that were not at
				 csw_open: nothing of them is counted. 0 with csw_opts.cpus */
	uint32_t cpus_gone;   /* of nr_cpus, those that went offline meanwhile: nothing is counted
				 of them after that, also where they came back */
	uint64_t estimates;   /* ordinary samples of a recording, beside those of the trigger */
	uint32_t estimate;    /* 1: some values are only estimated: from these, because counters
				 took turns (csw_count_scaled), or because slices of several
				 threads were shared (csw_opts.mixed) */
	uint32_t sets;        /* of counters that took turns; 1: all ran all the time */
	const char *trigger_forced; /* csw_opts.force: why the trigger cannot be trusted here; NULL:
				       nothing is known against it */
	uint64_t shared_ns; /* the part of oncpu_ns in slices whose counts were shared ... */
	uint32_t mixed;     /* ... and how: csw_opts.mixed */
	/* A trigger for loads that sees stores as well (mem_load:WHERE on x86): 1 + the number of
	 * the counter of these stores, which csw_open adds behind the events asked for unless it is
	 * among them; and what the trigger has seen meanwhile, loads and stores. 0: no such. */
	uint32_t stores;
	uint64_t accesses;
	/* Which checks do not hold, as a line of text for people: a counter that went back (the
	 * first such reading, and its CPU), rows that are not what a counter counted, a clock that
	 * shows more time than there was, time or occurrences of the trigger that are not accounted
	 * for. Borrowed from the table; NULL: not broken. */
	const char *broken_why;
	/* Where this program is in a PID namespace of its own: the part of oncpu_ns, in the row of
	 * kind unknown, of threads outside of it and of idle. Their records show the number 0, all
	 * of them. */
	uint64_t outside_ns;
};
/* size = sizeof(struct csw_summary) of the caller; a shorter one is filled as far as it goes. */
int csw_table_summary(const struct csw_table *t, struct csw_summary *out, size_t size);

/* ---- reports ---- */

enum csw_format {
	CSW_FORMAT_TABLE,
	CSW_FORMAT_JSON, /* one object; compact, on one line, when .line is set */
	CSW_FORMAT_CSV,  /* a header line, then a line per row: the fields of JSON as columns */
};

struct csw_report_opts {
	size_t size;      /* sizeof(struct csw_report_opts) */
	uint32_t format;  /* enum csw_format */
	uint32_t verbose; /* 1: say more in the footer */
	uint32_t rate; /* 1: beside each value, per second and as a share of the machine's total */
	uint32_t raw;  /* 1: no thousands separators */
	uint32_t colour; /* 1: with the terminal's colours */
	uint32_t
		width; /* columns of the terminal, to which names are cut; 0: as wide as it takes */
	uint32_t histogram;  /* 1: draw the histograms below the table, or put them into JSON */
	uint32_t line;       /* 1: JSON on one line (an interval); CSV without its header line */
	uint64_t elapsed_ns; /* JSON: when the table ends, since counting began; 0: not said */
};

/* Writes the table to file; the caller flushes and closes it. -EIO and the like when a write fails.
 */
int csw_report(const struct csw_table *t, FILE *file, const struct csw_report_opts *opts,
	       struct csw_error *err);

/* ---- calibration ---- */

/* From whom to whom. */
enum csw_switch_kind {
	CSW_SWITCH_PROCESS, /* from a process of user space to another */
	CSW_SWITCH_THREAD,  /* from thread to thread of one process */
	CSW_SWITCH_TO_IDLE,
	CSW_SWITCH_FROM_IDLE,
	CSW_SWITCH_TO_KERNEL, /* to a kernel thread, not from idle */
	CSW_SWITCH_FROM_KERNEL,
	CSW_SWITCH_KINDS,
};
const char *csw_switch_kind_name(uint32_t kind); /* "process", ...; static storage */

enum csw_verdict {
	CSW_VERDICT_EXACT,       /* every switch, equally often, and nothing else */
	CSW_VERDICT_USABLE,      /* all but few of the switches that it is for, and little else */
	CSW_VERDICT_NOT_A_PROXY, /* it has nothing to do with switches */
	CSW_VERDICT_TOO_FEW,     /* too few switches between processes, or between threads */
};
const char *csw_verdict_name(uint32_t verdict); /* static storage */

#define CSW_CALIBRATION_BUCKETS 32 /* [n]: switches with n occurrences; the last: and more */

struct csw_kind_calibration {
	uint64_t switches; /* that could be judged */
	uint64_t occurrences;
	double mean, stddev; /* occurrences per switch */
	uint64_t histogram[CSW_CALIBRATION_BUCKETS];
};

/* Filled in by csw_calibrate. Struct grows at its end only; no pointers. */
struct csw_calibration {
	char trigger[128];            /* as asked for */
	char event[256];              /* what was counted in truth */
	uint32_t hardware, simulated; /* 1: it is */
	uint32_t verdict;             /* enum csw_verdict */
	uint32_t reserved_;
	uint64_t sav_thread;    /* the SAV that catches every switch; 0: none does */
	uint64_t sav_process;   /* ... every switch between processes */
	double missed, doubled; /* with sav_thread, else sav_process, else 1: the shares of
				   those switches that it would miss, or see twice */
	uint64_t duration_ns;
	uint64_t switches; /* all, as the kernel counted them */
	uint64_t judged;   /* ... of which so many: the others left no record, or lie
			      beside one that did not */
	struct csw_kind_calibration kinds[CSW_SWITCH_KINDS];
	uint32_t cpus_missed, cpus_gone; /* as csw_summary's: what ran there then is not judged */
};

/* Counts the occurrences of an event (a trigger's name, or any event's) per context switch, by the
 * kind of switch, for opts->duration_ns (0: 5 s) on the whole machine. go_on, called now and then
 * with the time so far, ends it by 0; NULL: nothing does. Of opts driver, cpus and ring_bytes count
 * besides. Errors as csw_open's. */
int csw_calibrate(struct csw_calibration *out, const char *trigger, const struct csw_opts *opts,
		  int (*go_on)(void *ctx, uint64_t ns), void *ctx, struct csw_error *err);

/* ---- what this machine can do ---- */

enum csw_list {
	CSW_LIST_TRIGGERS,
	CSW_LIST_EVENTS,
	CSW_LIST_DRIVERS,
};

/* One name; all strings are borrowed during the callback. */
struct csw_item {
	const char *name;    /* as one writes it */
	const char *group;   /* "software", "tracepoint", "sysfs", a libpfm4 PMU, "trigger", ... */
	const char *summary; /* one line */
	uint32_t usable;     /* 1: works here */
	uint32_t reserved_;
	const char *reason; /* not usable: why, and what helps; else NULL, or what it becomes */
};

/* Calls fn for every name that holds all nr words, in whatever case, in its name, group or summary.
 * A return value other than 0 ends the list and is returned. */
int csw_list(uint32_t what, const char *const *words, size_t nr,
	     int (*fn)(void *ctx, const struct csw_item *item), void *ctx, struct csw_error *err);

enum csw_state {
	CSW_STATE_OK,
	CSW_STATE_LIMITED, /* works, with the restriction named */
	CSW_STATE_MISSING,
};

struct csw_check {
	const char *name;    /* "perf_event_paranoid" */
	const char *finding; /* "2: whole CPUs only with CAP_PERFMON, which is there" */
	const char *remedy;  /* NULL where nothing is wrong */
	uint32_t state;      /* enum csw_state */
	uint32_t reserved_;
};

/* Looks at everything that counting depends on, by trying, and undoes what it tried. Returns like
 * csw_list.
 */
int csw_doctor(int (*fn)(void *ctx, const struct csw_check *check), void *ctx,
	       struct csw_error *err);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
