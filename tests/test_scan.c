/* drivers/perf/scan: the threads of a made-up /proc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "drivers/perf/scan.h"
#include "drivers/perf/sys.h"
#include "tree.h"

#define SELF 77
#define FOUND_MAX 32
#define USER_FLAGS "4194560"
#define KERNEL_FLAGS "2129984" /* PF_KTHREAD among others */

struct found {
	struct csw_record recs[FOUND_MAX];
	unsigned nr;
};

static void keep(void *ctx, const struct csw_record *rec)
{
	struct found *found = ctx;

	assert_in_range(found->nr, 0, FOUND_MAX - 1);
	found->recs[found->nr++] = *rec;
}

static uint64_t fake_now(void)
{
	static uint64_t now = 1000;

	return ++now;
}

static int setup(void **state)
{
	csw_perf_sys.now_ns = fake_now;
	return tree_setup(state);
}

static void scan(struct found *found)
{
	const struct csw_sink sink = { .put = keep, .ctx = found };
	struct csw_error err;

	found->nr = 0;
	assert_int_equal(csw_perf_scan(tree_root, SELF, NULL, &sink, &err), 0);
}

static const struct csw_record *by_tid(const struct found *found, int32_t tid)
{
	const struct csw_record *hit = NULL;

	for (unsigned i = 0; i < found->nr; i++) {
		if (found->recs[i].tid != tid)
			continue;
		assert_null(hit);
		hit = &found->recs[i];
	}
	return hit;
}

static void process(int pid, const char *name, int parent, const char *flags)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/%d/stat", pid);
	snprintf(text, sizeof(text), "%d (%s) S %d %d %d 0 -1 %s 100 0 0 0 1 2 0 0 20 0\n", pid,
		 name, parent, pid, pid, flags);
	tree_file(path, text);
}

static void thread(int pid, int tid, const char *comm)
{
	char path[64], text[128];

	snprintf(path, sizeof(path), "/%d/task/%d/comm", pid, tid);
	snprintf(text, sizeof(text), "%s\n", comm);
	tree_file(path, text);
}

static void test_threads(void **state)
{
	struct found found;
	const struct csw_record *rec;

	(void)state;
	process(100, "server", 1, USER_FLAGS);
	thread(100, 100, "server");
	thread(100, 101, "worker");
	process(SELF, "csw-sample", 50, USER_FLAGS);
	thread(SELF, SELF, "csw-sample");
	thread(SELF, 78, "helper");
	process(2, "kthreadd", 0, KERNEL_FLAGS);
	thread(2, 2, "kthreadd");
	tree_file("/uptime", "1.0 2.0\n");
	tree_file("/sys/kernel/pid_max", "32768\n");
	scan(&found);
	assert_int_equal(found.nr, 5);
	rec = by_tid(&found, 101);
	assert_non_null(rec);
	assert_int_equal(rec->type, CSW_RECORD_TASK);
	assert_int_equal(rec->pid, 100);
	assert_int_equal(rec->other_pid, 1);
	assert_int_equal(rec->flags, 0);
	assert_true(rec->time_ns > 1000);
	assert_string_equal(rec->comm, "worker");
	rec = by_tid(&found, 100);
	assert_non_null(rec);
	assert_string_equal(rec->comm, "server");
	rec = by_tid(&found, 78);
	assert_non_null(rec);
	assert_int_equal(rec->flags, CSW_RECORD_SELF);
	assert_int_equal(rec->pid, SELF);
	assert_int_equal(rec->other_pid, 50);
	rec = by_tid(&found, 2);
	assert_non_null(rec);
	assert_int_equal(rec->flags, CSW_RECORD_KERNEL_THREAD);
	assert_int_equal(rec->other_pid, 0);
}

/* A name can hold what looks like the end of the name and the fields behind it. */
static void test_names(void **state)
{
	static const char *const names[] = {
		"a) S 9 9 9 9 9", "(", ")", ") (", "two words", "x\ny", "\n", "", "123456789012345",
		"tail ) R 2 2 2",
	};
	struct found found;

	(void)state;
	for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++) {
		process(200 + i, names[i], 300 + i, USER_FLAGS);
		thread(200 + i, 200 + i, names[i]);
	}
	/* Longer than any record's: workers of the kernel show theirs with what they work on. */
	process(250, "kworker/u8:1-events_unbound", 2, KERNEL_FLAGS);
	thread(250, 250, "kworker/u8:1-events_unbound");
	process(251, "x", 2, KERNEL_FLAGS);
	thread(251, 251, "a name that is longer than the buffer into which the scan reads it: cut");
	scan(&found);
	assert_int_equal(found.nr, sizeof(names) / sizeof(names[0]) + 2);
	for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++) {
		const struct csw_record *rec = by_tid(&found, 200 + i);

		assert_non_null(rec);
		assert_int_equal(rec->other_pid, 300 + i);
		assert_int_equal(rec->flags, 0);
		assert_string_equal(rec->comm, names[i]);
	}
	assert_string_equal(by_tid(&found, 250)->comm, "kworker/u8:1-ev");
	assert_int_equal(by_tid(&found, 250)->flags, CSW_RECORD_KERNEL_THREAD);
	assert_string_equal(by_tid(&found, 251)->comm, "a name that is ");
}

/* A long name in one thread leaves nothing of itself in the next one's. */
static void test_no_rest_of_the_last(void **state)
{
	struct found found;
	const char zeros[CSW_COMM_BYTES] = "";

	(void)state;
	process(100, "x", 1, USER_FLAGS);
	for (int tid = 100; tid < 110; tid++)
		thread(100, tid, tid % 2 ? "fifteen letters" : "x");
	scan(&found);
	assert_int_equal(found.nr, 10);
	for (int tid = 100; tid < 110; tid += 2)
		assert_memory_equal(by_tid(&found, tid)->comm + 1, zeros, CSW_COMM_BYTES - 1);
}

static void test_vanished(void **state)
{
	struct found found;

	(void)state;
	process(100, "gone before its threads were listed", 1, USER_FLAGS);
	tree_file("/101/task/101/comm", "without stat\n");
	tree_file("/102/stat", "");
	tree_file("/102/task/102/comm", "empty stat\n");
	tree_file("/103/stat", "103 no parentheses 1 2 3");
	tree_file("/103/task/103/comm", "bad stat\n");
	tree_file("/104/stat", "104 (cut) S 1 2");
	tree_file("/104/task/104/comm", "cut stat\n");
	process(105, "lives", 1, USER_FLAGS);
	thread(105, 105, "lives");
	tree_file("/105/task/106/other", "a thread that has no comm any more");
	tree_file("/105/task/self/comm", "no thread\n");
	scan(&found);
	assert_int_equal(found.nr, 1);
	assert_non_null(by_tid(&found, 105));
}

static void test_no_proc(void **state)
{
	struct found found = { .nr = 0 };
	const struct csw_sink sink = { .put = keep, .ctx = &found };
	struct csw_error err;
	char path[300];

	(void)state;
	snprintf(path, sizeof(path), "%s/missing", tree_root);
	assert_int_equal(csw_perf_scan(path, SELF, NULL, &sink, &err), -ENOENT);
	assert_int_equal(err.code, -ENOENT);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(found.nr, 0);
}

/* No descriptor stays open, whatever was missing. */
static void test_no_descriptor_left(void **state)
{
	struct found found;
	int before = dup(0), after;

	test_vanished(state);
	scan(&found);
	close(before);
	after = dup(0);
	assert_int_equal(after, before);
	close(after);
}

int main(void)
{
#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, setup, tree_teardown)
	const struct CMUnitTest tests[] = {
		IN_TREE(test_threads),  IN_TREE(test_names),   IN_TREE(test_no_rest_of_the_last),
		IN_TREE(test_vanished), IN_TREE(test_no_proc), IN_TREE(test_no_descriptor_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
