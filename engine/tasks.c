/* Who is who; see tasks.h. The map is an open-addressing hash table whose slots move back on
 * removal. */
#include "engine/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "csw/csw.h"

#define FIRST_SLOTS 1024 /* a power of two */
#define KTHREADD_PID 2   /* the parent of every kernel thread */

static size_t hash(const struct csw_tasks *t, int32_t id)
{
	/* Fibonacci hashing: TIDs come in runs, which the multiplication spreads out. */
	return (size_t)(((uint64_t)(uint32_t)id * 0x9e3779b97f4a7c15ull) >> 32) & t->mask;
}

static struct csw_task_slot *find_slot(const struct csw_tasks *t, int32_t id)
{
	size_t i = hash(t, id);

	while (t->slots[i].row && t->slots[i].id != id)
		i = (i + 1) & t->mask;
	return &t->slots[i];
}

static int grow_slots(struct csw_tasks *t)
{
	struct csw_tasks bigger = *t;

	bigger.mask = t->mask * 2 + 1;
	bigger.slots = calloc(bigger.mask + 1, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i <= t->mask; i++) {
		if (t->slots[i].row)
			*find_slot(&bigger, t->slots[i].id) = t->slots[i];
	}
	free(t->slots);
	*t = bigger;
	return 0;
}

static int map_put(struct csw_tasks *t, int32_t id, uint32_t row)
{
	struct csw_task_slot *slot = find_slot(t, id);

	if (!slot->row) {
		if ((t->nr + 1) * 2 > t->mask) {
			if (grow_slots(t) < 0)
				return -ENOMEM;
			slot = find_slot(t, id);
		}
		t->nr++;
	}
	*slot = (struct csw_task_slot){ .id = id, .row = row };
	return 0;
}

static void map_remove(struct csw_tasks *t, int32_t id)
{
	size_t hole = (size_t)(find_slot(t, id) - t->slots);

	if (!t->slots[hole].row)
		return;
	t->nr--;
	/* Close the hole with whatever would be cut off from its home slot by it. */
	for (size_t i = (hole + 1) & t->mask; t->slots[i].row; i = (i + 1) & t->mask) {
		size_t home = hash(t, t->slots[i].id);

		if (((i - home) & t->mask) >= ((i - hole) & t->mask)) {
			t->slots[hole] = t->slots[i];
			hole = i;
		}
	}
	t->slots[hole].row = 0;
}

static struct csw_agg_row *row_of(const struct csw_tasks *t, uint32_t row)
{
	return csw_aggregation_row(t->agg, row);
}

static struct csw_agg_row *live_row(const struct csw_tasks *t, int32_t tid)
{
	uint32_t row = tid > 0 ? find_slot(t, tid)->row : 0;

	return row ? row_of(t, row) : NULL;
}

static bool lists(const int32_t *ids, size_t nr, int32_t id)
{
	for (size_t i = 0; i < nr; i++) {
		if (ids[i] == id)
			return true;
	}
	return false;
}

/* Of scope.pids: what is known of the process that was meant. Its number may be another's later. */
enum pid_state { PID_UNHEARD, PID_SEEN, PID_REUSED };

static bool wants_pid(const struct csw_tasks *t, int32_t pid)
{
	for (size_t i = 0; i < t->scope.nr_pids; i++) {
		if (t->scope.pids[i] == pid && t->pids[i] != PID_REUSED)
			return true;
	}
	return false;
}

/* A process of this number has been found, or has just begun. */
static void note_process(struct csw_tasks *t, int32_t pid, bool begins)
{
	for (size_t i = 0; i < t->scope.nr_pids; i++) {
		if (t->scope.pids[i] != pid)
			continue;
		if (t->pids[i] == PID_UNHEARD)
			t->pids[i] = PID_SEEN;
		else if (begins)
			t->pids[i] = PID_REUSED;
	}
}

/* Is it one of a list with commas? */
static bool lists_comm(const char *comms, const char *comm)
{
	size_t length = strnlen(comm, CSW_COMM_BYTES);

	for (const char *at = comms;; at++) {
		size_t bytes = strcspn(at, ",");

		if (bytes == length && !memcmp(at, comm, length))
			return true;
		at += bytes;
		if (!*at)
			return false;
	}
}

static void settle_scope(const struct csw_tasks *t, struct csw_agg_row *row)
{
	const struct csw_scope *scope = &t->scope;
	bool in = (!scope->tree || (row->flags & CSW_ROW_IN_TREE)) &&
		  (!scope->nr_pids || wants_pid(t, row->pid)) &&
		  (!scope->nr_tids || (row->flags & CSW_ROW_WANTED)) &&
		  (!scope->comms || lists_comm(scope->comms, row->comm)) &&
		  (!scope->in_cgroup || scope->in_cgroup(scope->ctx, row->cgroup));

	row->flags =
		(uint16_t)(in ? row->flags | CSW_ROW_IN_SCOPE : row->flags & ~CSW_ROW_IN_SCOPE);
}

int csw_tasks_init(struct csw_tasks *t, struct csw_aggregation *agg, const struct csw_scope *scope)
{
	*t = (struct csw_tasks){
		.agg = agg, .scope = *scope, .mask = FIRST_SLOTS - 1, .zero = CSW_ROW_IDLE
	};
	t->slots = calloc(FIRST_SLOTS, sizeof(*t->slots));
	t->pids = calloc(scope->nr_pids + 1, sizeof(*t->pids));
	if (t->slots && t->pids)
		return 0;
	csw_tasks_free(t);
	return -ENOMEM;
}

void csw_tasks_free(struct csw_tasks *t)
{
	free(t->slots);
	free(t->pids);
	*t = (struct csw_tasks){ .nr = 0 };
}

/* A thread's row is done: its TID is free for another. */
static void close_row(struct csw_tasks *t, uint32_t nr)
{
	struct csw_agg_row *row = row_of(t, nr);

	row->flags |= CSW_ROW_CLOSED;
	if (find_slot(t, row->tid)->row == nr)
		map_remove(t, row->tid);
}

/* What a new thread has from the one that created it: its name until it gets its own, and its place
 * in the tree. */
static void inherit(const struct csw_tasks *t, struct csw_agg_row *row,
		    const struct csw_agg_row *parent)
{
	if (parent) {
		if (!(row->flags & CSW_ROW_COMM_OWN))
			memcpy(row->comm, parent->comm, sizeof(row->comm));
		row->flags |= parent->flags & CSW_ROW_IN_TREE;
		if (!row->cgroup)
			row->cgroup = parent->cgroup;
		if (parent->kind == CSW_KIND_SELF && parent->pid == row->pid)
			row->kind = CSW_KIND_SELF;
	}
	if (t->scope.tree && row->pid == t->scope.tree)
		row->flags |= CSW_ROW_IN_TREE;
	settle_scope(t, row);
}

/* Opens the row of a thread, whatever its TID meant before. The parent may be NULL. */
static int64_t open_row(struct csw_tasks *t, int32_t pid, int32_t tid, uint64_t time_ns,
			const struct csw_agg_row *parent)
{
	uint32_t old = find_slot(t, tid)->row;
	/* The parent's row moves when the table grows: remember its number. */
	int64_t parent_nr =
		parent ? ((const unsigned char *)parent - t->agg->rows) / (ptrdiff_t)t->agg->stride
		       : -1;
	int64_t nr;

	if (old)
		close_row(t, old);
	nr = csw_aggregation_add(t->agg, CSW_KIND_THREAD, pid, tid, time_ns);
	if (nr < 0)
		return nr;
	inherit(t, row_of(t, (uint32_t)nr), parent_nr < 0 ? NULL : row_of(t, (uint32_t)parent_nr));
	if (map_put(t, tid, (uint32_t)nr) < 0)
		return -ENOMEM;
	return nr;
}

/* The TID 0 of a program inside a PID namespace is not only idle: every thread outside looks so,
 * too. */
static void hide_outsiders(struct csw_tasks *t, const struct csw_record *rec)
{
	t->zero = CSW_ROW_UNKNOWN;
	memcpy(row_of(t, CSW_ROW_UNKNOWN)->comm, rec->comm, CSW_COMM_BYTES);
}

static int on_thread_found(struct csw_tasks *t, const struct csw_record *rec)
{
	struct csw_agg_row *row;
	int64_t nr;

	if (rec->tid == 0) {
		hide_outsiders(t, rec);
		return 0;
	}
	note_process(t, rec->pid, false);
	/* Its parent's place in the tree; name and kind are its own. */
	nr = open_row(t, rec->pid, rec->tid, rec->time_ns, live_row(t, rec->other_pid));
	if (nr < 0)
		return (int)nr;
	row = row_of(t, (uint32_t)nr);
	memcpy(row->comm, rec->comm, sizeof(row->comm));
	row->flags |= CSW_ROW_COMM_OWN;
	row->cgroup = rec->cgroup;
	if (lists(t->scope.tids, t->scope.nr_tids, rec->tid))
		row->flags |= CSW_ROW_WANTED;
	settle_scope(t, row);
	if (rec->flags & CSW_RECORD_KERNEL_THREAD)
		row->kind = CSW_KIND_KERNEL;
	else if (rec->flags & CSW_RECORD_SELF)
		row->kind = CSW_KIND_SELF;
	return 0;
}

/* In a PID namespace 2 is a program like any other. */
static bool is_kthreadd(const struct csw_tasks *t, int32_t pid)
{
	const struct csw_agg_row *row = pid == KTHREADD_PID ? live_row(t, pid) : NULL;

	return row && row->kind == CSW_KIND_KERNEL;
}

static int on_thread_fork(struct csw_tasks *t, const struct csw_record *rec)
{
	const struct csw_agg_row *parent = live_row(t, rec->other_tid);
	struct csw_agg_row *row = live_row(t, rec->tid);
	int64_t nr;

	/* The start scan runs after the side-band was switched on: a thread that it found may have
	 * its FORK in a ring; and a FORK that was written late can come after the first switch-in.
	 */
	if (row && row->birth_ns >= rec->time_ns && row->pid == rec->pid) {
		row->birth_ns = rec->time_ns;
		inherit(t, row, parent);
		return 0;
	}
	/* A new process: the [mixed] row that its PID may have was that of another one. */
	if (rec->pid == rec->tid) {
		map_remove(t, -2 - rec->pid);
		note_process(t, rec->pid, true);
	}
	nr = open_row(t, rec->pid, rec->tid, rec->time_ns, parent);
	if (nr < 0)
		return (int)nr;
	if ((rec->flags & CSW_RECORD_KERNEL_THREAD) || is_kthreadd(t, rec->other_pid))
		row_of(t, (uint32_t)nr)->kind = CSW_KIND_KERNEL;
	return 0;
}

static void on_thread_exit(struct csw_tasks *t, const struct csw_record *rec)
{
	struct csw_agg_row *row = live_row(t, rec->tid);

	if (row && row->birth_ns <= rec->time_ns)
		row->flags |= CSW_ROW_EXITED;
}

/*
 * An exec from another thread than the leader kills all others, and the thread goes on under the
 * leader's TID. Its row moves along; what stood under that TID was the old leader, which is gone.
 */
static int move_to_leader(struct csw_tasks *t, uint32_t runner, int32_t pid)
{
	struct csw_agg_row *row = row_of(t, runner);
	uint32_t leader = find_slot(t, pid)->row;

	if (leader)
		close_row(t, leader);
	if (find_slot(t, row->tid)->row == runner)
		map_remove(t, row->tid);
	row->tid = pid;
	row->flags |= CSW_ROW_MOVED;
	row->flags &= (uint16_t)~CSW_ROW_CLOSED;
	return map_put(t, pid, runner);
}

/* Is the thread that now calls itself pid/tid the one of this row, moved by an exec? */
static bool moved_by_exec(const struct csw_tasks *t, uint32_t runner, int32_t pid, int32_t tid)
{
	const struct csw_agg_row *row = row_of(t, runner);
	const struct csw_agg_row *leader;

	if (runner < CSW_ROWS_FIXED || row->pid != pid || tid != pid || row->tid == tid)
		return false;
	leader = live_row(t, pid);
	return !leader || (leader->flags & CSW_ROW_EXITED);
}

static int on_thread_comm(struct csw_tasks *t, const struct csw_record *rec, uint32_t runner)
{
	struct csw_agg_row *row;

	if ((rec->flags & CSW_RECORD_EXEC) && moved_by_exec(t, runner, rec->pid, rec->tid) &&
	    move_to_leader(t, runner, rec->pid) < 0)
		return -ENOMEM;
	row = live_row(t, rec->tid);
	/* The dead do not exec: it was another thread of the process, and which one is not known.
	 */
	if (row && (rec->flags & CSW_RECORD_EXEC) && (row->flags & CSW_ROW_EXITED)) {
		int64_t nr = open_row(t, rec->pid, rec->tid, rec->time_ns, row);

		if (nr < 0)
			return (int)nr;
		row = row_of(t, (uint32_t)nr);
	}
	if (row) {
		memcpy(row->comm, rec->comm, sizeof(row->comm));
		row->flags |= CSW_ROW_COMM_OWN;
		if (t->scope.comms)
			settle_scope(t, row);
	}
	return 0;
}

int csw_tasks_record(struct csw_tasks *t, const struct csw_record *rec, uint32_t runner)
{
	switch (rec->type) {
	case CSW_RECORD_TASK:
		return on_thread_found(t, rec);
	case CSW_RECORD_FORK:
		return on_thread_fork(t, rec);
	case CSW_RECORD_EXIT:
		on_thread_exit(t, rec);
		return 0;
	case CSW_RECORD_COMM:
		return on_thread_comm(t, rec, runner);
	default:
		return 0;
	}
}

int64_t csw_tasks_find(struct csw_tasks *t, int32_t pid, int32_t tid, uint64_t time_ns)
{
	uint32_t row;

	if (tid <= 0)
		return tid == 0 ? t->zero : CSW_ROW_UNKNOWN;
	row = find_slot(t, tid)->row;
	/* Another process under a known TID: its FORK and the old one's EXIT were lost. */
	if (row && (row_of(t, row)->pid == pid || pid < 0))
		return row;
	/* It was heard of before without its process. */
	if (row && row_of(t, row)->pid < 0) {
		row_of(t, row)->pid = pid;
		settle_scope(t, row_of(t, row));
		return row;
	}
	return open_row(t, pid, tid, time_ns, live_row(t, pid));
}

int csw_tasks_move_by_exec(struct csw_tasks *t, int32_t pid, uint32_t runner)
{
	return moved_by_exec(t, runner, pid, pid) ? move_to_leader(t, runner, pid) : 0;
}

/* Nothing has been booked on it yet. */
static bool is_fresh(const struct csw_aggregation *agg, const struct csw_agg_row *row)
{
	if (row->oncpu_ns || row->slices || row->enabled_ns)
		return false;
	for (unsigned i = 0; i < agg->nr_counters; i++) {
		if (row->cells[i].sum)
			return false;
	}
	return true;
}

int64_t csw_tasks_in_cgroup(struct csw_tasks *t, uint32_t nr, uint64_t cgroup)
{
	struct csw_agg_row *row = row_of(t, nr), *next;
	int64_t next_nr;

	if (nr < CSW_ROWS_FIXED || !cgroup || row->cgroup == cgroup)
		return nr;
	if (!row->cgroup || is_fresh(t->agg, row)) {
		row->cgroup = cgroup;
		settle_scope(t, row);
		return nr;
	}
	next_nr = csw_aggregation_add(t->agg, row->kind, row->pid, row->tid, row->birth_ns);
	if (next_nr < 0)
		return next_nr;
	row = row_of(t, nr);
	next = row_of(t, (uint32_t)next_nr);
	memcpy(next->comm, row->comm, sizeof(next->comm));
	next->flags = row->flags;
	next->last_cpu = row->last_cpu;
	next->continues = nr;
	next->cgroup = cgroup;
	settle_scope(t, next);
	row->flags |= CSW_ROW_CLOSED;
	if (find_slot(t, row->tid)->row != nr)
		return next_nr; /* dead already, and another has its TID */
	return map_put(t, row->tid, (uint32_t)next_nr) < 0 ? -ENOMEM : next_nr;
}

void csw_tasks_dead(struct csw_tasks *t, uint32_t row)
{
	if (row >= CSW_ROWS_FIXED && (row_of(t, row)->flags & CSW_ROW_EXITED))
		close_row(t, row);
}

int64_t csw_tasks_mixed(struct csw_tasks *t, uint32_t member)
{
	int32_t pid = row_of(t, member)->pid;
	uint32_t found;
	int64_t nr;

	if (member < CSW_ROWS_FIXED)
		return CSW_ROW_MIXED;
	found = find_slot(t, -2 - pid)->row;
	if (found)
		return found;
	nr = csw_aggregation_add(t->agg, CSW_KIND_MIXED, pid, -1, 0);
	if (nr < 0)
		return nr;
	row_of(t, (uint32_t)nr)->flags =
		row_of(t, member)->flags & (CSW_ROW_IN_SCOPE | CSW_ROW_IN_TREE);
	memcpy(row_of(t, (uint32_t)nr)->comm, row_of(t, member)->comm, CSW_COMM_BYTES);
	if (map_put(t, -2 - pid, (uint32_t)nr) < 0)
		return -ENOMEM;
	return nr;
}
