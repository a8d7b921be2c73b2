/*
 * Who is who: which row a TID means at a moment, how threads are born, named, moved by exec, and
 * end.
 *
 * Invariant: a thread is (TID, birth), never TID: one live TID maps to one row, and a row whose
 * thread is gone is never used again.
 */
#ifndef CSW_ENGINE_TASKS_H
#define CSW_ENGINE_TASKS_H

#include "engine/record.h"
#include "engine/table.h"

/* Which threads are in scope: those of `pids` (when there are any) and of the tree below `tree`
 * (when it is not 0). */
struct csw_scope {
	const int32_t *pids;
	size_t nr_pids;
	int32_t tree;
	const int32_t *tids; /* threads found by the start scan */
	size_t nr_tids;
	const char *comms; /* threads of these names, separated by commas; NULL: of any */
	bool (*in_cgroup)(void *ctx, uint64_t cgroup); /* NULL: whatever its cgroup */
	void *ctx;
};

/* Is anything out of scope? */
static inline bool csw_scope_is_set(const struct csw_scope *scope)
{
	return scope->nr_pids || scope->tree || scope->nr_tids || scope->in_cgroup || scope->comms;
}

/* With a scope: does the row stay in sight? What could not be given to anybody may belong to those
 * in scope, so it does. */
static inline bool csw_scope_shows(const struct csw_agg_row *row)
{
	return (row->flags & CSW_ROW_IN_SCOPE) || row->kind == CSW_KIND_LOST ||
	       row->kind == CSW_KIND_UNKNOWN || (row->kind == CSW_KIND_MIXED && row->pid < 0);
}

struct csw_task_slot {
	int32_t id;   /* a TID, or for the mixed row of a process: -2 - pid */
	uint32_t row; /* 0: the slot is free */
};

struct csw_tasks {
	struct csw_aggregation *agg; /* borrowed */
	struct csw_scope scope;      /* pids borrowed */
	unsigned char *pids; /* of each of scope.pids, whether its number is another's by now */
	struct csw_task_slot *slots;
	size_t nr, mask;
	uint32_t
		zero; /* the row of TID 0: idle, unless a namespace hides other threads behind it */
};

int csw_tasks_init(struct csw_tasks *t, struct csw_aggregation *agg,
		   const struct csw_scope *scope); /* 0 or -ENOMEM */
void csw_tasks_free(struct csw_tasks *t);

/* A TASK, FORK, EXIT or COMM record; runner: the row of the thread that runs on the record's CPU,
 * for exec. 0 or -ENOMEM. */
int csw_tasks_record(struct csw_tasks *t, const struct csw_record *rec, uint32_t runner);

/* The row of a thread that runs, opened when nobody has heard of it; pid -1: of whatever process. A
 * row number, or -ENOMEM. */
int64_t csw_tasks_find(struct csw_tasks *t, int32_t pid, int32_t tid, uint64_t time_ns);

/* The same where it is most likely `guess`, any handle: a row that is still open under this TID is
 * the one that the TID means, and need not be searched for. */
static inline int64_t csw_tasks_find_near(struct csw_tasks *t, int32_t pid, int32_t tid,
					  uint64_t time_ns, uint32_t guess)
{
	const struct csw_agg_row *row;

	if (tid > 0 && guess >= CSW_ROWS_FIXED && guess < t->agg->nr) {
		row = csw_aggregation_row(t->agg, guess);
		if (row->tid == tid && row->pid == pid && !(row->flags & CSW_ROW_CLOSED))
			return guess;
	}
	return csw_tasks_find(t, pid, tid, time_ns);
}

/* The thread on the CPU of `runner` now calls itself pid/tid: if an exec gave it that TID, its row
 * moves along. An exec's COMM record comes later than that, and the thread can be switched out in
 * between. 0 or -ENOMEM. */
int csw_tasks_move_by_exec(struct csw_tasks *t, int32_t pid, uint32_t runner);
static inline int csw_tasks_follow_exec(struct csw_tasks *t, int32_t pid, int32_t tid,
					uint32_t runner)
{
	/* Only the leader's TID is ever given; nearly always it is the leader that has it. */
	if (tid != pid || runner < CSW_ROWS_FIXED ||
	    csw_aggregation_row(t->agg, runner)->tid == tid)
		return 0;
	return csw_tasks_move_by_exec(t, pid, runner);
}

/* The thread of `row` is in this cgroup now. Its row, or when it was in another one before, a new
 * row that goes on for it; or -ENOMEM. */
int64_t csw_tasks_in_cgroup(struct csw_tasks *t, uint32_t row, uint64_t cgroup);

/* The thread has left its last CPU: the kernel shows it as -1. One that exits is not yet dead while
 * it has a TID: it can block or be preempted on the way; and a leader keeps its TID until it is
 * reaped. The next FORK of the TID closes such a row. */
void csw_tasks_dead(struct csw_tasks *t, uint32_t row);

/* The [mixed] row of the process to which row `member` belongs (of no process, for a fixed row). A
 * number, or -ENOMEM. */
int64_t csw_tasks_mixed(struct csw_tasks *t, uint32_t member);

#endif
