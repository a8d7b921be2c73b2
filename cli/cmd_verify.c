/*
 * csw-sample verify: programs whose faults, system calls, time and exits are known, counted on this
 * machine and compared.
 *
 * Invariant: every truth is taken by the worker that it is about, from what it did and from the
 * kernel's own books of its thread, never from what was counted here. A worker touches nothing new
 * between its last look into those books and its end.
 */
#define _GNU_SOURCE /* RUSAGE_THREAD, pipe2, CPU_ALLOC */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "csw/csw.h"

#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull
#define POLL_MS 50
#define TIME_LIMIT_NS (120 * NS_PER_S) /* a machine so busy that its workers never end */

#define WORKERS 4
#define ROUNDS 200
#define SPIN_NS (2 * NS_PER_MS) /* times 1 to WORKERS, a round */
#define PAGES 4                 /* the same */
#define CALLS 3                 /* the same */
#define THREADS 500             /* born and gone */
#define THREADS_AT_ONCE 4
#define STACK_BYTES (256 * 1024)

#define FAULTS_SLACK 2 /* what a worker still faults after it has read its own count */
/* The kernel's clock of a thread ends (begins) with the interrupt that wakes another (it), a switch
 * record tells when it really leaves (comes). */
#define WAKE_UP_NS 30000u
#define TIME_SLACK_NS (2 * NS_PER_MS)
#define TIME_SLACK_PARTS 100

#define GETPPID "syscalls:sys_enter_getppid"

static const char usage[] =
	"Usage: csw-sample verify [--json]\n"
	"Counts programs whose page faults, system calls, time and exits are known, on this "
	"machine, "
	"and compares;\n"
	"takes about ten seconds. Exit status: 0 when all agrees, 1 when something does not.\n";

/* The counters' order in the session. */
enum {
	FAULTS,
	CLOCK,
	CALLS_COUNTED, /* only where tracepoints can be read */
};

/* What one thread knows of itself, in memory that all share. */
struct truth {
	int32_t pid, tid;
	uint64_t pages, faults, calls, cpu_ns;
};

struct verify {
	bool json;
	struct truth *truths; /* the workers', then those of the short threads */
	pid_t children[WORKERS + 1];
	unsigned nr_children;
	int go; /* closing it lets the children run */
	bool has_calls;
	char why_no_calls[CSW_ERROR_BYTES];
	uint64_t steal_ns;
	struct csw_table *table;
	struct csw_summary summary;
	unsigned nr_passed, nr_failed, nr_skipped;
};

static struct truth *short_truths(const struct verify *v)
{
	return v->truths + WORKERS;
}

/* ---- in the workers ---- */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = { .tv_nsec = (long)ns };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static uint64_t own_faults(void)
{
	struct rusage books;

	getrusage(RUSAGE_THREAD, &books);
	return (uint64_t)books.ru_minflt + (uint64_t)books.ru_majflt;
}

static void call_getppid(struct truth *truth)
{
	syscall(SYS_getppid);
	truth->calls++;
}

/* Two neighbours share a CPU, so that they are switched from one to the other, not to idle alone.
 */
static void pin(unsigned worker)
{
	enum { CPUS_MAX = 8192 };
	size_t bytes = CPU_ALLOC_SIZE(CPUS_MAX);
	cpu_set_t *allowed = CPU_ALLOC(CPUS_MAX), *one = CPU_ALLOC(CPUS_MAX);
	int wanted, seen = 0;

	if (!allowed || !one || sched_getaffinity(0, bytes, allowed))
		return; /* then they run where they like, and the checks hold all the same */
	wanted = (int)(worker / 2) % CPU_COUNT_S(bytes, allowed);
	CPU_ZERO_S(bytes, one);
	for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++)
		if (CPU_ISSET_S(cpu, bytes, allowed) && seen++ == wanted)
			CPU_SET_S(cpu, bytes, one);
	sched_setaffinity(0, bytes, one);
	CPU_FREE(allowed);
	CPU_FREE(one);
}

static void do_round(struct truth *truth, unsigned worker, volatile char *fresh, size_t page)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + (worker + 1) * SPIN_NS;

	for (unsigned i = 0; i < PAGES * (worker + 1); i++)
		fresh[truth->pages++ * page] = 1;
	for (unsigned i = 0; i < CALLS * (worker + 1); i++)
		call_getppid(truth);
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
	sleep_ns(NS_PER_MS);
}

/* Waits until counting has begun. */
static void await(int go)
{
	char byte;

	while (read(go, &byte, 1) < 0 && errno == EINTR)
		;
}

static void work(struct truth *truth, unsigned worker, int go)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = (size_t)ROUNDS * PAGES * (worker + 1) * page;
	char *fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t faults, cpu_ns;

	if (fresh == MAP_FAILED)
		_exit(EXIT_FAILED);
	madvise(fresh, bytes, MADV_NOHUGEPAGE); /* a page, a fault */
	pin(worker);
	*truth = (struct truth){ .pid = getpid(), .tid = getpid() };
	own_faults(); /* its own pages are here from now on */
	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	faults = own_faults();
	await(go);
	for (unsigned i = 0; i < ROUNDS; i++)
		do_round(truth, worker, fresh, page);
	/* The kernel's account of a running thread is late; after a sleep it is not. */
	sleep_ns(2 * NS_PER_MS);
	truth->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	truth->faults = own_faults() - faults;
	for (;;)
		syscall(SYS_exit_group, 0); /* nothing of a C library or a sanitizer comes after */
}

static void *be_short(void *arg)
{
	struct truth *truth = arg;

	truth->pid = getpid();
	truth->tid = (int32_t)syscall(SYS_gettid);
	/* A different number for each neighbour: who got another's calls is seen. */
	for (uint64_t i = 0, nr = 3 + (uint64_t)truth->tid % 5; i < nr; i++)
		call_getppid(truth);
	return NULL;
}

static void bear_threads(struct truth *truths, int go)
{
	pthread_t threads[THREADS_AT_ONCE];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	await(go);
	for (unsigned i = 0; i < THREADS; i += THREADS_AT_ONCE) {
		for (unsigned k = 0; k < THREADS_AT_ONCE; k++)
			if (pthread_create(&threads[k], &attr, be_short, &truths[i + k]))
				_exit(EXIT_FAILED);
		for (unsigned k = 0; k < THREADS_AT_ONCE; k++)
			pthread_join(threads[k], NULL);
	}
	_exit(0);
}

/* ---- running them ---- */

static int fork_child(struct verify *v, unsigned nr, int go[2])
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* no worker outlives its verify */
		close(go[1]);
		if (nr < WORKERS)
			work(&v->truths[nr], nr, go[0]);
		bear_threads(short_truths(v), go[0]);
	}
	v->children[v->nr_children++] = pid;
	return 0;
}

static int fork_children(struct verify *v)
{
	size_t bytes = (WORKERS + THREADS) * sizeof(*v->truths);
	int go[2], ret = 0;

	v->truths = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (v->truths == MAP_FAILED || pipe2(go, O_CLOEXEC))
		return -errno;
	for (unsigned i = 0; !ret && i <= WORKERS; i++)
		ret = fork_child(v, i, go);
	close(go[0]);
	v->go = go[1];
	return ret;
}

/* How many children still run; those that have ended are reaped. -ECHILD: one of them failed. */
static int count_children(struct verify *v)
{
	unsigned left = 0;
	bool failed = false;

	for (unsigned i = 0; i < v->nr_children; i++) {
		int status;

		if (waitpid(v->children[i], &status, WNOHANG) != v->children[i])
			v->children[left++] = v->children[i];
		else
			failed = failed || status;
	}
	v->nr_children = left;
	return failed ? -ECHILD : (int)left;
}

static void end_children(struct verify *v)
{
	if (v->go >= 0)
		close(v->go);
	for (unsigned i = 0; i < v->nr_children; i++) {
		kill(v->children[i], SIGKILL);
		waitpid(v->children[i], NULL, 0);
	}
}

/* What the host has taken from all CPUs, as /proc/stat says; 0 where it does not. */
static uint64_t stolen_ns(void)
{
	FILE *file = fopen("/proc/stat", "re");
	unsigned long long ticks = 0;

	if (!file)
		return 0;
	if (fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) != 1)
		ticks = 0;
	fclose(file);
	return ticks * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* ---- counting ---- */

static int open_session(struct verify *v, struct csw_session **s, struct csw_error *err)
{
	int ret = csw_open(s, "switch", "page-faults,task-clock," GETPPID, NULL, err);

	v->has_calls = !ret;
	if (!ret)
		return 0;
	memcpy(v->why_no_calls, err->text, sizeof(v->why_no_calls));
	return csw_open(s, "switch", "page-faults,task-clock", NULL, err);
}

static int count(struct verify *v, struct csw_session *s, struct csw_error *err)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + TIME_LIMIT_NS;
	int ret = csw_start(s, err);

	if (ret < 0)
		return ret;
	close(v->go);
	v->go = -1;
	for (;;) {
		int left = count_children(v);

		if (left <= 0) {
			if (left < 0)
				snprintf(err->text, sizeof(err->text),
					 "a worker failed: too little memory, or too few threads "
					 "allowed (ulimit -u)");
			return left < 0 ? left : csw_stop(s, err);
		}
		if (clock_ns(CLOCK_MONOTONIC) > end) {
			snprintf(err->text, sizeof(err->text),
				 "the workers did not end: try again on a quieter machine");
			return -ETIMEDOUT;
		}
		ret = csw_poll(s, POLL_MS, err);
		if (ret < 0)
			return ret;
	}
}

static int measure(struct verify *v, struct csw_error *err)
{
	struct csw_session *s = NULL;
	uint64_t stolen = stolen_ns();
	int ret = open_session(v, &s, err);

	if (!ret)
		ret = count(v, s, err);
	if (!ret)
		ret = csw_table_open(&v->table, s, CSW_BY_THREAD, NULL, err);
	if (!ret)
		ret = csw_table_summary(v->table, &v->summary, sizeof(v->summary));
	csw_close(s);
	v->steal_ns = stolen_ns() - stolen;
	return ret;
}

/* ---- comparing ---- */

static void put_finding(const struct verify *v, const char *json, const char *word,
			const char *name, const char *finding)
{
	if (v->json) {
		printf("%s\n{ \"name\": ", v->nr_passed + v->nr_failed + v->nr_skipped ? "," : "");
		csw_print_json(stdout, name);
		printf(", \"result\": \"%s\", \"finding\": ", json);
		csw_print_json(stdout, finding);
		fputs(" }", stdout);
		return;
	}
	printf("%s  ", word);
	csw_print_padded(stdout, name, 20);
	csw_print_text(stdout, finding);
	putchar('\n');
}

__attribute__((format(printf, 4, 5))) static void judge(struct verify *v, bool passed,
							const char *name, const char *format, ...)
{
	char finding[CSW_ERROR_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(finding, sizeof(finding), format, args);
	va_end(args);
	put_finding(v, passed ? "passed" : "failed", passed ? "PASS" : "FAIL", name, finding);
	v->nr_passed += passed;
	v->nr_failed += !passed;
}

static void skip(struct verify *v, const char *name, const char *reason)
{
	put_finding(v, "skipped", "SKIP", name, reason);
	v->nr_skipped++;
}

/* The thread's row; -1 when there is none, -2 when there are two. */
static ssize_t find_row(const struct verify *v, const struct truth *truth)
{
	ssize_t found = -1;

	for (size_t i = 0; i < csw_table_rows(v->table); i++) {
		const struct csw_row *row = csw_table_row(v->table, i);

		if (row->kind != CSW_KIND_THREAD || row->pid != truth->pid ||
		    row->tid != truth->tid)
			continue;
		if (found >= 0)
			return -2;
		found = (ssize_t)i;
	}
	return found;
}

static uint64_t value_of(const struct verify *v, ssize_t row, size_t counter)
{
	struct csw_count value = { .value = 0 };

	if (row >= 0)
		csw_table_count(v->table, (size_t)row, counter, &value);
	return value.flags & CSW_COUNT_NOT_COUNTED ? 0 : value.value;
}

static uint64_t unproven(const struct verify *v, size_t counter)
{
	struct csw_counter c = { .unproven = 0 };

	csw_table_counter(v->table, counter, &c);
	return c.unproven;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Every counter's rows are added up here once more: a table that only claims to add up fails. */
static void check_conservation(struct verify *v)
{
	size_t nr = csw_table_counters(v->table);
	uint64_t total = 0, off = 0;

	for (size_t j = 0; j < nr; j++) {
		struct csw_counter c = { .total = 0 };
		uint64_t sum = 0;

		csw_table_counter(v->table, j, &c);
		for (size_t i = 0; i < csw_table_rows(v->table); i++) {
			struct csw_count value = { .value = 0 };

			csw_table_count(v->table, i, j, &value);
			sum += value.value;
		}
		off += distance(sum, c.total) + distance(c.rows, c.total);
		total += c.total;
	}
	judge(v, !off && total, "conservation",
	      "%zu counters, %" PRIu64 " counted in all, difference %" PRIu64, nr, total, off);
}

static void check_completeness(struct verify *v)
{
	const struct csw_summary *s = &v->summary;
	uint64_t told = s->sav * s->samples + s->lost + s->throttled + s->unseen + s->open;

	judge(v, told == s->triggers && s->samples && !s->broken, "completeness",
	      "%" PRIu64 " switches = %" PRIu64 " samples + %" PRIu64 " lost + %" PRIu64
	      " throttled + %" PRIu64 " unseen + %" PRIu64 " open%s%s",
	      s->triggers, s->samples, s->lost, s->throttled, s->unseen, s->open,
	      s->broken ? "; broken: " : "", s->broken ? s->broken_why : "");
}

static void check_faults(struct verify *v)
{
	uint64_t pages = 0, truth = 0, counted = 0, worst = 0;
	bool right = true;

	for (unsigned i = 0; i < WORKERS; i++) {
		const struct truth *t = &v->truths[i];
		uint64_t got = value_of(v, find_row(v, t), FAULTS);
		uint64_t slack = FAULTS_SLACK + (got < t->faults ? unproven(v, FAULTS) : 0);

		right = right && distance(got, t->faults) <= slack && t->faults >= t->pages;
		worst = distance(got, t->faults) > worst ? distance(got, t->faults) : worst;
		pages += t->pages;
		truth += t->faults;
		counted += got;
	}
	judge(v, right, "page faults",
	      "%u workers wrote %" PRIu64 " new pages, had %" PRIu64 " faults, counted %" PRIu64
	      ", largest difference %" PRIu64 " (unproven %" PRIu64 ")",
	      WORKERS, pages, truth, counted, worst, unproven(v, FAULTS));
}

/* Never more than the truth: what another caused would show so. Never fewer but for what is said to
 * be unproven. */
static void check_calls(struct verify *v, const char *name, const struct truth *truths, unsigned nr)
{
	uint64_t truth = 0, counted = 0, missing = 0, extra = 0;

	if (!v->has_calls) {
		skip(v, name, v->why_no_calls);
		return;
	}
	for (unsigned i = 0; i < nr; i++) {
		uint64_t got = value_of(v, find_row(v, &truths[i]), CALLS_COUNTED);

		truth += truths[i].calls;
		counted += got;
		missing += got < truths[i].calls ? truths[i].calls - got : 0;
		extra += got > truths[i].calls ? got - truths[i].calls : 0;
	}
	judge(v, !extra && missing <= unproven(v, CALLS_COUNTED) && truth, name,
	      "%u threads called getppid %" PRIu64 " times, counted %" PRIu64 ": %" PRIu64
	      " too many, %" PRIu64 " missing (unproven %" PRIu64 ")",
	      nr, truth, counted, extra, missing, unproven(v, CALLS_COUNTED));
}

static void check_oncpu(struct verify *v)
{
	uint64_t truth = 0, counted = 0, worst = 0;
	bool right = true;

	for (unsigned i = 0; i < WORKERS; i++) {
		const struct truth *t = &v->truths[i];
		ssize_t row = find_row(v, t);
		const struct csw_row *r = row < 0 ? NULL : csw_table_row(v->table, (size_t)row);
		uint64_t got = r ? r->oncpu_ns : 0;
		uint64_t slack = t->cpu_ns / TIME_SLACK_PARTS;

		slack = (slack > TIME_SLACK_NS ? slack : TIME_SLACK_NS) + v->steal_ns;
		slack += r ? r->slices * WAKE_UP_NS : 0;
		right = right && distance(got, t->cpu_ns) <= slack && got;
		worst = distance(got, t->cpu_ns) > worst ? distance(got, t->cpu_ns) : worst;
		truth += t->cpu_ns;
		counted += got;
	}
	judge(v, right, "on-CPU time",
	      "%u workers ran for %.1f ms, counted %.1f ms, largest difference %.2f ms (stolen by "
	      "the host: %.0f ms)",
	      WORKERS, (double)truth / 1e6, (double)counted / 1e6, (double)worst / 1e6,
	      (double)v->steal_ns / 1e6);
}

static void check_exits(struct verify *v)
{
	unsigned nameless = 0, there = 0, twice = 0;

	for (size_t i = 0; i < csw_table_rows(v->table); i++) {
		const struct csw_row *row = csw_table_row(v->table, i);

		nameless += row->kind == CSW_KIND_THREAD && row->tid < 0;
	}
	for (unsigned i = 0; i < THREADS; i++) {
		ssize_t row = find_row(v, &short_truths(v)[i]);

		there += row >= 0 && csw_table_row(v->table, (size_t)row)->oncpu_ns > 0;
		twice += row == -2;
	}
	judge(v, there == THREADS && !nameless, "short threads",
	      "%u of %u that ended at once have their own row, %u have two, %u rows without a "
	      "thread",
	      there, THREADS, twice, nameless);
}

static void compare(struct verify *v)
{
	check_conservation(v);
	check_completeness(v);
	check_faults(v);
	check_calls(v, "system calls", v->truths, WORKERS);
	check_oncpu(v);
	check_exits(v);
	check_calls(v, "calls before exit", short_truths(v), THREADS);
}

static int verify(bool json)
{
	struct verify v = { .go = -1, .json = json };
	struct csw_error err = { .code = 0 };
	int ret;

	if (json)
		printf("{ \"csw\": \"%s\", \"checks\": [", csw_version());
	fflush(stdout); /* the children shall not print it again */
	ret = fork_children(&v);
	if (ret < 0)
		snprintf(err.text, sizeof(err.text), "cannot start the workers: %s",
			 strerror(-ret));
	else
		ret = measure(&v, &err);
	end_children(&v);
	if (ret < 0)
		judge(&v, false, "counting", "%s", err.text);
	else
		compare(&v);
	csw_table_close(v.table);
	printf(json ? "\n], \"passed\": %u, \"failed\": %u, \"skipped\": %u }\n"
		    : "verify: %u passed, %u failed, %u skipped\n",
	       v.nr_passed, v.nr_failed, v.nr_skipped);
	return v.nr_failed ? EXIT_FAILED : 0;
}

int csw_cmd_verify(int argc, char **argv)
{
	return csw_options_run_plain(argc, argv, usage, verify);
}
