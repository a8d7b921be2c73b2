/* engine/tasks: which row a TID means, from birth to death, on records written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "csw/csw.h"
#include "engine/tasks.h"

struct fixture {
	struct csw_aggregation agg;
	struct csw_tasks tasks;
};

static void begin(struct fixture *f, const struct csw_scope *scope)
{
	static const struct csw_scope everything;

	assert_int_equal(csw_aggregation_init(&f->agg, 1, false), 0);
	assert_int_equal(csw_tasks_init(&f->tasks, &f->agg, scope ? scope : &everything), 0);
}

static void end(struct fixture *f)
{
	csw_tasks_free(&f->tasks);
	csw_aggregation_free(&f->agg);
}

static struct csw_record record(uint32_t type, uint64_t time_ns, int32_t pid, int32_t tid)
{
	return (struct csw_record){ .type = type,
				    .time_ns = time_ns,
				    .pid = pid,
				    .tid = tid,
				    .other_pid = -1,
				    .other_tid = -1 };
}

static void put(struct fixture *f, const struct csw_record *rec, uint32_t runner)
{
	assert_int_equal(csw_tasks_record(&f->tasks, rec, runner), 0);
}

static void task(struct fixture *f, uint64_t t, int32_t pid, int32_t tid, int32_t parent,
		 const char *comm, uint32_t flags)
{
	struct csw_record rec = record(CSW_RECORD_TASK, t, pid, tid);

	rec.other_pid = parent;
	rec.flags = flags;
	memcpy(rec.comm, comm, strlen(comm));
	put(f, &rec, CSW_ROW_UNKNOWN);
}

static void forked(struct fixture *f, uint64_t t, int32_t pid, int32_t tid, int32_t parent_pid,
		   int32_t parent_tid)
{
	struct csw_record rec = record(CSW_RECORD_FORK, t, pid, tid);

	rec.other_pid = parent_pid;
	rec.other_tid = parent_tid;
	put(f, &rec, CSW_ROW_UNKNOWN);
}

static void exits(struct fixture *f, uint64_t t, int32_t pid, int32_t tid)
{
	struct csw_record rec = record(CSW_RECORD_EXIT, t, pid, tid);

	put(f, &rec, CSW_ROW_UNKNOWN);
}

static void comm(struct fixture *f, int32_t pid, int32_t tid, const char *name, bool exec,
		 uint32_t runner)
{
	struct csw_record rec = record(CSW_RECORD_COMM, 0, pid, tid);

	rec.flags = exec ? CSW_RECORD_EXEC : 0;
	memcpy(rec.comm, name, strlen(name));
	put(f, &rec, runner);
}

static uint32_t find(struct fixture *f, uint64_t t, int32_t pid, int32_t tid)
{
	int64_t nr = csw_tasks_find(&f->tasks, pid, tid, t);

	assert_in_range(nr, 0, f->agg.nr - 1);
	return (uint32_t)nr;
}

static struct csw_agg_row *row(const struct fixture *f, uint32_t nr)
{
	return csw_aggregation_row(&f->agg, nr);
}

static bool in_scope(const struct fixture *f, uint32_t nr)
{
	return row(f, nr)->flags & CSW_ROW_IN_SCOPE;
}

static void test_rows_open(void **state)
{
	struct fixture f;
	uint32_t found, forked_row, seen;

	(void)state;
	begin(&f, NULL);
	task(&f, 10, 100, 100, 1, "scanned", 0);
	assert_int_equal(f.agg.nr, CSW_ROWS_FIXED + 1);
	found = find(&f, 50, 100, 100);
	assert_int_equal(row(&f, found)->birth_ns, 10);
	assert_string_equal(row(&f, found)->comm, "scanned");
	assert_int_equal(row(&f, found)->kind, CSW_KIND_THREAD);

	forked(&f, 20, 200, 200, 100, 100);
	assert_int_equal(f.agg.nr, CSW_ROWS_FIXED + 2);
	forked_row = find(&f, 50, 200, 200);
	assert_int_equal(row(&f, forked_row)->birth_ns, 20);
	/* It has its creator's name until it gets one. */
	assert_string_equal(row(&f, forked_row)->comm, "scanned");
	comm(&f, 200, 200, "own", false, CSW_ROW_UNKNOWN);
	assert_string_equal(row(&f, forked_row)->comm, "own");
	assert_string_equal(row(&f, found)->comm, "scanned");

	/* Nobody has heard of it before it runs; a thread has its leader's name. */
	seen = find(&f, 30, 200, 201);
	assert_int_equal(f.agg.nr, CSW_ROWS_FIXED + 3);
	assert_int_equal(row(&f, seen)->birth_ns, 30);
	assert_int_equal(row(&f, seen)->pid, 200);
	assert_int_equal(row(&f, seen)->tid, 201);
	assert_string_equal(row(&f, seen)->comm, "own");
	assert_int_equal(find(&f, 31, 200, 201), seen);
	assert_int_equal(f.agg.nr, CSW_ROWS_FIXED + 3);
	end(&f);
}

static void test_zero_and_nobody(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, NULL);
	assert_int_equal(find(&f, 1, 0, 0), CSW_ROW_IDLE);
	assert_int_equal(find(&f, 1, -1, -1), CSW_ROW_UNKNOWN);
	/* A PID namespace: whoever is outside it shows as 0, just as idle does. */
	task(&f, 0, 0, 0, 0, "outside", 0);
	assert_int_equal(find(&f, 1, 0, 0), CSW_ROW_UNKNOWN);
	assert_string_equal(row(&f, CSW_ROW_UNKNOWN)->comm, "outside");
	assert_int_equal(f.agg.nr, CSW_ROWS_FIXED);
	end(&f);
}

/* A FORK can be written late: after the first switch-in, and after the start scan found it. */
static void test_late_fork(void **state)
{
	const struct csw_scope tree = { .tree = 100 };
	struct fixture f;
	uint32_t seen, scanned, other;

	(void)state;
	begin(&f, &tree);
	task(&f, 10, 100, 100, 1, "parent", 0);
	seen = find(&f, 60, 200, 200);
	assert_false(in_scope(&f, seen));
	forked(&f, 50, 200, 200, 100, 100);
	assert_int_equal(find(&f, 70, 200, 200), seen);
	assert_int_equal(row(&f, seen)->birth_ns, 50);
	assert_string_equal(row(&f, seen)->comm, "parent");
	assert_true(in_scope(&f, seen));

	task(&f, 80, 300, 300, 1, "has a name", 0);
	scanned = find(&f, 90, 300, 300);
	forked(&f, 75, 300, 300, 100, 100);
	assert_int_equal(find(&f, 91, 300, 300), scanned);
	assert_int_equal(row(&f, scanned)->birth_ns, 75);
	assert_string_equal(row(&f, scanned)->comm, "has a name");
	assert_true(in_scope(&f, scanned));
	/* The same TID in another process is another thread, late or not. */
	forked(&f, 74, 301, 300, 100, 100);
	other = find(&f, 92, 301, 300);
	assert_int_not_equal(other, scanned);
	assert_int_equal(row(&f, other)->birth_ns, 74);
	assert_int_equal(row(&f, scanned)->birth_ns, 75);
	/* At the same time as the first switch-in is not later. */
	seen = find(&f, 95, 400, 400);
	forked(&f, 95, 400, 400, 100, 100);
	assert_int_equal(find(&f, 96, 400, 400), seen);
	end(&f);
}

/* A thread can block, with its TID, after its EXIT record: it is not gone before it shows as -1. */
static void test_exit_then_blocks(void **state)
{
	struct fixture f;
	uint32_t nr, again;

	(void)state;
	begin(&f, NULL);
	forked(&f, 10, 100, 101, 100, 100);
	nr = find(&f, 20, 100, 101);
	exits(&f, 30, 100, 101);
	assert_true(row(&f, nr)->flags & CSW_ROW_EXITED);
	assert_false(row(&f, nr)->flags & CSW_ROW_CLOSED);
	for (uint64_t t = 40; t < 45; t++)
		assert_int_equal(find(&f, t, 100, 101), nr);
	assert_int_equal(f.agg.nr, CSW_ROWS_FIXED + 1);
	csw_tasks_dead(&f.tasks, nr);
	assert_true(row(&f, nr)->flags & CSW_ROW_CLOSED);
	again = find(&f, 50, 100, 101);
	assert_int_not_equal(again, nr);
	assert_int_equal(row(&f, again)->birth_ns, 50);
	end(&f);
}

static void test_dead_needs_exit(void **state)
{
	struct fixture f;
	uint32_t nr;

	(void)state;
	begin(&f, NULL);
	nr = find(&f, 10, 100, 101);
	csw_tasks_dead(&f.tasks, nr);
	assert_false(row(&f, nr)->flags & CSW_ROW_CLOSED);
	assert_int_equal(find(&f, 11, 100, 101), nr);
	/* An EXIT from before its birth is that of the TID's last bearer. */
	exits(&f, 9, 100, 101);
	assert_false(row(&f, nr)->flags & CSW_ROW_EXITED);
	csw_tasks_dead(&f.tasks, CSW_ROW_IDLE);
	assert_false(row(&f, CSW_ROW_IDLE)->flags & CSW_ROW_CLOSED);
	end(&f);
}

static void test_reused_tid(void **state)
{
	struct fixture f;
	uint32_t first, second, third;

	(void)state;
	begin(&f, NULL);
	forked(&f, 10, 100, 100, 1, 1);
	first = find(&f, 11, 100, 100);
	/* No EXIT came (it was lost): the FORK alone proves another thread. */
	forked(&f, 20, 100, 100, 1, 1);
	second = find(&f, 21, 100, 100);
	assert_int_not_equal(first, second);
	assert_true(row(&f, first)->flags & CSW_ROW_CLOSED);
	assert_int_equal(row(&f, second)->birth_ns, 20);
	/* Nor a FORK: the process has changed. */
	third = find(&f, 30, 101, 100);
	assert_int_not_equal(second, third);
	assert_true(row(&f, second)->flags & CSW_ROW_CLOSED);
	assert_int_equal(row(&f, third)->pid, 101);
	assert_int_equal(f.agg.nr, CSW_ROWS_FIXED + 3);
	end(&f);
}

/* Thread 101 of process 100 has called exec: all others die, it becomes 100. */
static void exec_family(struct fixture *f, uint32_t *leader, uint32_t *caller)
{
	task(f, 10, 100, 100, 1, "old", 0);
	forked(f, 20, 100, 101, 100, 100);
	*leader = find(f, 30, 100, 100);
	*caller = find(f, 30, 100, 101);
	row(f, *caller)->oncpu_ns = 77;
	exits(f, 40, 100, 100);
}

static void check_moved(struct fixture *f, uint32_t leader, uint32_t caller)
{
	assert_int_equal(find(f, 60, 100, 100), caller);
	assert_int_equal(row(f, caller)->tid, 100);
	assert_int_equal(row(f, caller)->oncpu_ns, 77);
	assert_true(row(f, caller)->flags & CSW_ROW_MOVED);
	assert_false(row(f, caller)->flags & CSW_ROW_CLOSED);
	assert_true(row(f, leader)->flags & CSW_ROW_CLOSED);
	assert_string_equal(row(f, caller)->comm, "new");
	/* Its old TID is free. */
	assert_int_not_equal(find(f, 70, 100, 101), caller);
}

static void test_exec_by_comm(void **state)
{
	struct fixture f;
	uint32_t leader, caller;

	(void)state;
	begin(&f, NULL);
	exec_family(&f, &leader, &caller);
	comm(&f, 100, 100, "new", true, caller);
	check_moved(&f, leader, caller);
	end(&f);
}

static void test_exec_before_comm(void **state)
{
	struct fixture f;
	uint32_t leader, caller;

	(void)state;
	begin(&f, NULL);
	exec_family(&f, &leader, &caller);
	assert_int_equal(csw_tasks_follow_exec(&f.tasks, 100, 100, caller), 0);
	comm(&f, 100, 100, "new", true, caller);
	check_moved(&f, leader, caller);
	end(&f);
}

static void test_exec_of_the_leader(void **state)
{
	struct fixture f;
	uint32_t nr;

	(void)state;
	begin(&f, NULL);
	task(&f, 10, 100, 100, 1, "old", 0);
	nr = find(&f, 20, 100, 100);
	comm(&f, 100, 100, "new", true, nr);
	assert_int_equal(find(&f, 30, 100, 100), nr);
	assert_string_equal(row(&f, nr)->comm, "new");
	assert_false(row(&f, nr)->flags & CSW_ROW_MOVED);
	end(&f);
}

static void test_no_exec_no_move(void **state)
{
	struct fixture f;
	uint32_t leader, other, stranger;

	(void)state;
	begin(&f, NULL);
	task(&f, 10, 100, 100, 1, "lives", 0);
	forked(&f, 20, 100, 101, 100, 100);
	leader = find(&f, 30, 100, 100);
	other = find(&f, 30, 100, 101);
	stranger = find(&f, 30, 200, 201);
	/* The leader lives: whoever shows its TID is the leader. */
	assert_int_equal(csw_tasks_follow_exec(&f.tasks, 100, 100, other), 0);
	assert_int_equal(find(&f, 31, 100, 100), leader);
	assert_int_equal(find(&f, 31, 100, 101), other);
	exits(&f, 40, 100, 100);
	/* Another process's thread, a fixed row, a TID that is not the leader's. */
	assert_int_equal(csw_tasks_follow_exec(&f.tasks, 100, 100, stranger), 0);
	assert_int_equal(csw_tasks_follow_exec(&f.tasks, 100, 100, CSW_ROW_IDLE), 0);
	assert_int_equal(csw_tasks_follow_exec(&f.tasks, 100, 102, other), 0);
	assert_int_equal(find(&f, 41, 100, 100), leader);
	assert_int_equal(find(&f, 41, 100, 101), other);
	/* A thread renames the leader (prctl by /proc/PID/comm): no exec. */
	comm(&f, 100, 100, "renamed", false, other);
	assert_int_equal(find(&f, 42, 100, 101), other);
	assert_string_equal(row(&f, leader)->comm, "renamed");
	end(&f);
}

static void test_scope_pids(void **state)
{
	const int32_t pids[] = { 100, 300 };
	const struct csw_scope scope = { .pids = pids, .nr_pids = 2 };
	struct fixture f;

	(void)state;
	begin(&f, &scope);
	task(&f, 1, 100, 100, 1, "a", 0);
	task(&f, 1, 200, 200, 1, "b", 0);
	forked(&f, 2, 100, 101, 100, 100);
	forked(&f, 2, 400, 400, 100, 100);
	assert_true(in_scope(&f, find(&f, 3, 100, 100)));
	assert_true(in_scope(&f, find(&f, 3, 100, 101)));
	assert_true(in_scope(&f, find(&f, 3, 300, 301)));
	assert_false(in_scope(&f, find(&f, 3, 200, 200)));
	/* No children. */
	assert_false(in_scope(&f, find(&f, 3, 400, 400)));
	end(&f);
}

/* The process that was meant has ended, and its number is another's: that one is none of those. */
static void test_scope_pid_of_another(void **state)
{
	const int32_t pids[] = { 100, 300 };
	const struct csw_scope scope = { .pids = pids, .nr_pids = 2 };
	struct fixture f;
	uint32_t meant;

	(void)state;
	begin(&f, &scope);
	task(&f, 5, 100, 100, 1, "a", 0);
	/* Its own FORK may come behind what the start scan found. */
	forked(&f, 4, 100, 100, 1, 1);
	meant = find(&f, 6, 100, 100);
	assert_true(in_scope(&f, meant));
	forked(&f, 7, 100, 101, 100, 100);
	exits(&f, 8, 100, 101);
	exits(&f, 9, 100, 100);
	forked(&f, 10, 100, 100, 1, 1);
	assert_false(in_scope(&f, find(&f, 11, 100, 100)));
	forked(&f, 12, 100, 102, 100, 100);
	assert_false(in_scope(&f, find(&f, 13, 100, 102)));
	assert_true(in_scope(&f, meant));
	/* In a recording the process may begin within it. */
	forked(&f, 14, 300, 300, 1, 1);
	assert_true(in_scope(&f, find(&f, 15, 300, 300)));
	end(&f);
}

static void test_scope_tree(void **state)
{
	const struct csw_scope scope = { .tree = 100 };
	struct fixture f;
	uint32_t child;

	(void)state;
	begin(&f, &scope);
	task(&f, 1, 50, 50, 1, "shell", 0);
	forked(&f, 2, 100, 100, 50, 50);
	forked(&f, 3, 100, 101, 100, 100);
	forked(&f, 4, 200, 200, 100, 101);
	forked(&f, 5, 60, 60, 50, 50);
	assert_false(in_scope(&f, find(&f, 6, 50, 50)));
	assert_false(in_scope(&f, find(&f, 6, 60, 60)));
	assert_true(in_scope(&f, find(&f, 6, 100, 100)));
	assert_true(in_scope(&f, find(&f, 6, 100, 101)));
	child = find(&f, 6, 200, 200);
	assert_true(in_scope(&f, child));
	/* Its parent is gone, somebody else is its parent now: it stays, and so do its children. */
	exits(&f, 7, 100, 100);
	exits(&f, 7, 100, 101);
	csw_tasks_dead(&f.tasks, find(&f, 8, 100, 100));
	csw_tasks_dead(&f.tasks, find(&f, 8, 100, 101));
	assert_true(in_scope(&f, child));
	forked(&f, 9, 300, 300, 200, 200);
	assert_true(in_scope(&f, find(&f, 10, 300, 300)));
	end(&f);
}

/* Descendants that were there before counting began. */
static void test_scope_tree_scanned(void **state)
{
	const struct csw_scope scope = { .tree = 100 };
	struct fixture f;

	(void)state;
	begin(&f, &scope);
	task(&f, 1, 100, 100, 1, "root", 0);
	task(&f, 1, 110, 110, 100, "child", 0);
	task(&f, 1, 110, 111, 100, "child's", 0);
	task(&f, 1, 120, 120, 110, "grandchild", 0);
	task(&f, 1, 130, 130, 1, "other", 0);
	assert_true(in_scope(&f, find(&f, 2, 100, 100)));
	assert_true(in_scope(&f, find(&f, 2, 110, 110)));
	assert_true(in_scope(&f, find(&f, 2, 110, 111)));
	assert_true(in_scope(&f, find(&f, 2, 120, 120)));
	assert_false(in_scope(&f, find(&f, 2, 130, 130)));
	end(&f);
}

static void test_scope_both(void **state)
{
	const int32_t pids[] = { 200, 60 };
	const struct csw_scope scope = { .pids = pids, .nr_pids = 2, .tree = 100 };
	struct fixture f;

	(void)state;
	begin(&f, &scope);
	task(&f, 1, 50, 50, 1, "shell", 0);
	forked(&f, 2, 100, 100, 50, 50);
	forked(&f, 3, 60, 60, 50, 50);
	forked(&f, 4, 200, 200, 100, 100);
	assert_false(in_scope(&f, find(&f, 5, 100, 100)));
	assert_false(in_scope(&f, find(&f, 5, 60, 60)));
	assert_true(in_scope(&f, find(&f, 5, 200, 200)));
	end(&f);
}

static void test_kinds(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, NULL);
	task(&f, 1, 2, 2, 0, "kthreadd", CSW_RECORD_KERNEL_THREAD);
	task(&f, 1, 10, 10, 1, "csw-sample", CSW_RECORD_SELF);
	forked(&f, 2, 30, 30, 2, 2);
	forked(&f, 2, 10, 11, 10, 10);
	forked(&f, 2, 40, 40, 10, 10);
	assert_int_equal(row(&f, find(&f, 3, 2, 2))->kind, CSW_KIND_KERNEL);
	assert_int_equal(row(&f, find(&f, 3, 30, 30))->kind, CSW_KIND_KERNEL);
	assert_int_equal(row(&f, find(&f, 3, 10, 10))->kind, CSW_KIND_SELF);
	/* Our threads are us, our children are not. */
	assert_int_equal(row(&f, find(&f, 3, 10, 11))->kind, CSW_KIND_SELF);
	assert_int_equal(row(&f, find(&f, 3, 40, 40))->kind, CSW_KIND_THREAD);
	end(&f);
}

static void test_mixed(void **state)
{
	const int32_t pids[] = { 100 };
	const struct csw_scope scope = { .pids = pids, .nr_pids = 1 };
	struct fixture f;
	uint32_t a, b, other;
	int64_t mixed, later;

	(void)state;
	begin(&f, &scope);
	task(&f, 1, 100, 100, 1, "many", 0);
	forked(&f, 2, 100, 101, 100, 100);
	a = find(&f, 3, 100, 100);
	b = find(&f, 3, 100, 101);
	other = find(&f, 3, 200, 200);
	mixed = csw_tasks_mixed(&f.tasks, a);
	assert_true(mixed >= CSW_ROWS_FIXED);
	assert_int_equal(csw_tasks_mixed(&f.tasks, b), mixed);
	assert_int_not_equal(csw_tasks_mixed(&f.tasks, other), mixed);
	assert_int_equal(csw_tasks_mixed(&f.tasks, CSW_ROW_UNKNOWN), CSW_ROW_MIXED);
	assert_int_equal(row(&f, (uint32_t)mixed)->kind, CSW_KIND_MIXED);
	assert_int_equal(row(&f, (uint32_t)mixed)->pid, 100);
	assert_int_equal(row(&f, (uint32_t)mixed)->tid, -1);
	assert_string_equal(row(&f, (uint32_t)mixed)->comm, "many");
	assert_true(in_scope(&f, (uint32_t)mixed));
	assert_false(in_scope(&f, (uint32_t)csw_tasks_mixed(&f.tasks, other)));

	/* Another process with this PID has a row of its own. */
	exits(&f, 10, 100, 101);
	exits(&f, 10, 100, 100);
	csw_tasks_dead(&f.tasks, b);
	csw_tasks_dead(&f.tasks, a);
	forked(&f, 20, 100, 100, 200, 200);
	later = csw_tasks_mixed(&f.tasks, find(&f, 21, 100, 100));
	assert_int_not_equal(later, mixed);
	assert_int_equal(csw_tasks_mixed(&f.tasks, find(&f, 21, 100, 100)), later);
	end(&f);
}

/* ---- the map against a model ---- */

#define MODEL_TIDS 100000
#define MODEL_STEPS 400000

struct model {
	uint32_t row[MODEL_TIDS + 1];    /* 0: no live thread */
	uint32_t before[MODEL_TIDS + 1]; /* a dead one that had this TID */
	uint32_t live;
};

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* Whatever is guessed, the answer is the same: the right row, a dead thread's, another's, none. */
static void check_guesses(struct fixture *f, const struct model *m, int32_t tid, uint64_t random)
{
	const uint32_t guesses[] = { m->row[tid], m->before[tid],
				     (uint32_t)(random % (f->agg.nr + 8)), UINT32_MAX };

	for (size_t i = 0; i < sizeof(guesses) / sizeof(*guesses); i++)
		assert_int_equal(csw_tasks_find_near(&f->tasks, 1, tid, 0, guesses[i]),
				 m->row[tid]);
}

static void model_step(struct fixture *f, struct model *m, uint64_t *seed, uint64_t t)
{
	/* Runs of neighbours, as TIDs come. */
	int32_t tid = (int32_t)(next_random(seed) % MODEL_TIDS + 1);
	size_t nr = f->agg.nr;

	switch (next_random(seed) % 4) {
	case 0:
	case 1:
		forked(f, t, 1, tid, 1, MODEL_TIDS + 1);
		assert_int_equal(f->agg.nr, nr + 1);
		m->live += !m->row[tid];
		m->before[tid] = m->row[tid];
		m->row[tid] = (uint32_t)nr;
		break;
	case 2:
		if (!m->row[tid])
			break;
		exits(f, t, 1, tid);
		csw_tasks_dead(&f->tasks, m->row[tid]);
		m->before[tid] = m->row[tid];
		m->row[tid] = 0;
		m->live--;
		break;
	default:
		if (!m->row[tid]) {
			m->row[tid] = (uint32_t)nr;
			m->live++;
		}
		assert_int_equal(find(f, t, 1, tid), m->row[tid]);
		check_guesses(f, m, tid, next_random(seed));
	}
	assert_int_equal(f->tasks.nr, m->live);
}

static void run_model(uint64_t seed)
{
	struct model *m = calloc(1, sizeof(*m));
	struct fixture f;
	size_t nr;

	assert_non_null(m);
	begin(&f, NULL);
	for (uint64_t t = 1; t <= MODEL_STEPS; t++)
		model_step(&f, m, &seed, t);
	nr = f.agg.nr;
	for (int32_t tid = 1; tid <= MODEL_TIDS; tid++) {
		if (m->row[tid])
			assert_int_equal(find(&f, 0, 1, tid), m->row[tid]);
	}
	assert_int_equal(f.agg.nr, nr);
	/* All gone: nothing stays behind in the map. */
	for (int32_t tid = 1; tid <= MODEL_TIDS; tid++) {
		if (!m->row[tid])
			continue;
		exits(&f, MODEL_STEPS + 1, 1, tid);
		csw_tasks_dead(&f.tasks, m->row[tid]);
	}
	assert_int_equal(f.tasks.nr, 0);
	for (size_t i = 0; i <= f.tasks.mask; i++)
		assert_int_equal(f.tasks.slots[i].row, 0);
	end(&f);
	free(m);
}

static void test_map_model(void **state)
{
	(void)state;
	run_model(1);
	run_model(88172645463325252ull);
	run_model(0xdeadbeefull);
}

static bool below_seven(void *ctx, uint64_t cgroup)
{
	(void)ctx;
	return cgroup >= 70 && cgroup < 80;
}

/* A thread that changes its cgroup goes on in another row; both are the same thread. */
static void test_cgroups(void **state)
{
	struct csw_scope scope = { .in_cgroup = below_seven };
	struct csw_agg_row *row;
	struct fixture f;
	int64_t first, second;

	(void)state;
	begin(&f, &scope);
	first = csw_tasks_find(&f.tasks, 5, 5, 100);
	assert_true(first >= CSW_ROWS_FIXED);
	/* Fresh rows simply learn it; so does one that did not know. */
	assert_int_equal(csw_tasks_in_cgroup(&f.tasks, (uint32_t)first, 60), first);
	assert_false(csw_aggregation_row(&f.agg, (uint32_t)first)->flags & CSW_ROW_IN_SCOPE);
	assert_int_equal(csw_tasks_in_cgroup(&f.tasks, (uint32_t)first, 71), first);
	row = csw_aggregation_row(&f.agg, (uint32_t)first);
	assert_true(row->flags & CSW_ROW_IN_SCOPE);
	row->slices = 3;
	row->last_cpu = 1;
	/* Unknown and unchanged change nothing. */
	assert_int_equal(csw_tasks_in_cgroup(&f.tasks, (uint32_t)first, 0), first);
	assert_int_equal(csw_tasks_in_cgroup(&f.tasks, (uint32_t)first, 71), first);

	second = csw_tasks_in_cgroup(&f.tasks, (uint32_t)first, 81);
	assert_true(second > first);
	row = csw_aggregation_row(&f.agg, (uint32_t)second);
	assert_int_equal(row->continues, first);
	assert_int_equal(row->birth_ns, 100);
	assert_int_equal(row->tid, 5);
	assert_int_equal(row->last_cpu, 1);
	assert_int_equal(row->slices, 0);
	assert_false(row->flags & CSW_ROW_IN_SCOPE);
	assert_true(csw_aggregation_row(&f.agg, (uint32_t)first)->flags & CSW_ROW_CLOSED);
	assert_int_equal(csw_tasks_find(&f.tasks, 5, 5, 200), second);
	/* Nobody else's rows have a cgroup. */
	assert_int_equal(csw_tasks_in_cgroup(&f.tasks, CSW_ROW_IDLE, 71), CSW_ROW_IDLE);
	end(&f);
}

/* -t: only threads that the start scan found; a later one of that TID is another. */
static void test_scope_tids(void **state)
{
	static const int32_t tids[] = { 12, 99 };
	struct csw_scope scope = { .tids = tids, .nr_tids = 2 };
	struct fixture f;
	int64_t row;

	(void)state;
	begin(&f, &scope);
	task(&f, 10, 11, 11, 1, "main", 0);
	task(&f, 10, 11, 12, 1, "worker", 0);
	row = csw_tasks_find(&f.tasks, 11, 11, 20);
	assert_false(csw_aggregation_row(&f.agg, (uint32_t)row)->flags & CSW_ROW_IN_SCOPE);
	row = csw_tasks_find(&f.tasks, 11, 12, 20);
	assert_true(csw_aggregation_row(&f.agg, (uint32_t)row)->flags & CSW_ROW_IN_SCOPE);
	forked(&f, 30, 11, 99, 11, 12);
	row = csw_tasks_find(&f.tasks, 11, 99, 40);
	assert_false(csw_aggregation_row(&f.agg, (uint32_t)row)->flags & CSW_ROW_IN_SCOPE);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_open),
		cmocka_unit_test(test_zero_and_nobody),
		cmocka_unit_test(test_late_fork),
		cmocka_unit_test(test_exit_then_blocks),
		cmocka_unit_test(test_dead_needs_exit),
		cmocka_unit_test(test_reused_tid),
		cmocka_unit_test(test_exec_by_comm),
		cmocka_unit_test(test_exec_before_comm),
		cmocka_unit_test(test_exec_of_the_leader),
		cmocka_unit_test(test_no_exec_no_move),
		cmocka_unit_test(test_scope_pids),
		cmocka_unit_test(test_scope_pid_of_another),
		cmocka_unit_test(test_scope_tree),
		cmocka_unit_test(test_scope_tree_scanned),
		cmocka_unit_test(test_scope_both),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_cgroups),
		cmocka_unit_test(test_scope_tids),
		cmocka_unit_test(test_map_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
