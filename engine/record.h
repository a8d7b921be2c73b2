/*
 * The one record type that flows from every driver to the slicer.
 *
 * A driver translates whatever its source holds (a perf ring, a file, a simulated machine) into
 * these. Records of one ring come in the order in which they were written there; engine/merge
 * orders several rings by time.
 *
 * Invariant: a reading (values, enabled_ns, running_ns) is cumulative since the counters were
 * opened, 64 bits wide and never wraps; a driver whose hardware wraps extends it.
 */
#ifndef CSW_ENGINE_RECORD_H
#define CSW_ENGINE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Counters in one group, the trigger not included. A perf group of software events has no limit of
 * its own. */
#define CSW_COUNTERS_MAX 32
#define CSW_COMM_BYTES 16 /* TASK_COMM_LEN: 15 bytes and a NUL */

enum csw_record_type {
	CSW_RECORD_NONE,
	/* A thread that was there before counting began (start scan): pid, tid, comm, flags,
	   other_pid = parent process. */
	CSW_RECORD_TASK,
	/* Counting began on this CPU: time, pid/tid = the thread that ran there then (-1: not
	   known), reading. */
	CSW_RECORD_START,
	/* One overflow of the trigger: time, cpu, pid/tid as a *hint* (-1: an exiting thread),
	   reading. */
	CSW_RECORD_SAMPLE,
	/* pid/tid leaves the CPU (-1: it is exiting), other_pid/other_tid comes next;
	   CSW_RECORD_PREEMPTED. */
	CSW_RECORD_SWITCH_OUT,
	/* pid/tid comes onto the CPU, other_pid/other_tid (-1: it exited) left it. */
	CSW_RECORD_SWITCH_IN,
	/* pid/tid was created by other_pid/other_tid. */
	CSW_RECORD_FORK,
	/* pid/tid has begun to exit; it still runs until its last SWITCH_OUT. */
	CSW_RECORD_EXIT,
	/* pid/tid is now called comm; CSW_RECORD_EXEC when by exec. */
	CSW_RECORD_COMM,
	/* `lost` records of any type are missing from this ring just before this one. */
	CSW_RECORD_LOST,
	/* The kernel stopped (started again) the trigger of this CPU because it came too often. */
	CSW_RECORD_THROTTLE,
	CSW_RECORD_UNTHROTTLE,
	/* The counters of this CPU were read in mid-slice (csw_tick): time, reading, lost and
	   lost_other as in STOP. */
	CSW_RECORD_READ,
	/* Counting ended on this CPU; the last record of its ring: time, pid/tid as in START,
	 * reading after the disable; lost = samples of the trigger that could not be written since
	 * START, lost_other = records of other kinds, both as the kernel counted them, or
	 * CSW_LOST_UNKNOWN. */
	CSW_RECORD_STOP,
	/* An ordinary sample of a file: pid/tid ran when the events of some counters overflowed;
	 * flags: a bit for each of those counters, whose values[1 + counter] is by how much. cpu
	 * CSW_CPU_NONE: not said. */
	CSW_RECORD_ESTIMATE,
};

#define CSW_LOST_UNKNOWN UINT64_MAX

/* csw_record.flags */
#define CSW_RECORD_DETACHED                                                                        \
	0x10u /* READ, STOP: the CPU went offline, its counters have ended; of the reading only    \
		 the trigger's value is known, the others are as at the last sample */
#define CSW_RECORD_PREEMPTED 0x1u     /* SWITCH_OUT: not of its own will */
#define CSW_RECORD_EXEC 0x2u          /* COMM: by exec */
#define CSW_RECORD_KERNEL_THREAD 0x4u /* TASK, FORK: the thread belongs to the kernel */
#define CSW_RECORD_SELF 0x8u          /* TASK: a thread of the measuring program itself */
#define CSW_RECORD_TURN                                                                            \
	0x20u /* READ: a set of counters makes room for another; the trigger's period begins anew  \
	       */

struct csw_record {
	uint64_t time_ns; /* one clock for all rings of a driver */
	uint32_t type;    /* enum csw_record_type */
	uint32_t cpu;
	int32_t pid, tid;
	int32_t other_pid, other_tid;
	uint32_t flags;
	uint32_t nr_values; /* valid in values[] */
	uint32_t on; /* where counters take turns, SAMPLE, READ, STOP: a bit for each counter that
			ran since the reading before; the others stood still */
	uint64_t lost, lost_other;
	uint64_t cgroup; /* TASK, SAMPLE: the kernel's id of the thread's cgroup, 0: not known */
	uint64_t enabled_ns, running_ns; /* of the group, cumulative */
	char comm[CSW_COMM_BYTES];
	/* [0] the trigger, [1..] the counters in the plan's order. Last: most of them are not
	 * there, and a copy ends with the last one that is. */
	uint64_t values[1 + CSW_COUNTERS_MAX];
};

static inline void csw_record_copy(struct csw_record *to, const struct csw_record *from)
{
	memcpy(to, from,
	       offsetof(struct csw_record, values) + from->nr_values * sizeof(*from->values));
}

enum csw_reading {
	CSW_READING_TRIGGER,
	CSW_READING_ENABLED, /* the times of all counters */
	CSW_READING_RUNNING,
	CSW_READING_COUNTER, /* + its number */
};

/* A reading that cannot be, since readings only grow: the source of the records is broken. */
struct csw_wrong_reading {
	uint32_t what; /* enum csw_reading */
	uint32_t cpu;
	bool off; /* it moved while it was off, else it went back */
	uint64_t before, now;
};

#endif
