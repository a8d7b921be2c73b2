/*
 * See exercise.h. One ring on a CPU: first -> second is a switch between threads, second -> third
 * and third -> first are switches between processes; after some rounds the first sleeps, and the
 * CPU goes to idle and back.
 *
 * Invariant: nothing here outlives csw-sample, whatever ends it, and whatever could not be started
 * has told so.
 */
#define _GNU_SOURCE
#include "cli/exercise.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/signals.h"

#define RINGS_MAX 8
#define ROUNDS 8 /* until the next pause */
#define PAUSE_NS 300000L
#define LEASE_NS 250000000u /* some five times as long as csw_calibrate takes between two calls */
/* As many CPUs as -C takes. The kernel refuses to tell an affinity to a set that is too small, and
 * takes one that is too large. */
#define CPUS_MAX 65536
#define SETS (CPUS_MAX / CPU_SETSIZE)

/* ---- only as long as csw-sample goes on ---- */

/* What a ring has seen of the beat, and since when it stands still. A signal that is handed on
 * would not do: SIGSTOP cannot be caught. */
struct lease {
	const uint32_t *beat;
	uint32_t seen;
	uint64_t since_ns;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void begin_lease(struct lease *l, const uint32_t *beat)
{
	l->beat = beat;
	l->seen = __atomic_load_n(beat, __ATOMIC_ACQUIRE);
	l->since_ns = now_ns();
}

/* Returns at once where csw-sample is known to go on, else when it does. The kernel waits only as
 * long as the beat is what was seen, so none is missed. */
static void renew_lease(struct lease *l)
{
	while (__atomic_load_n(l->beat, __ATOMIC_ACQUIRE) == l->seen) {
		if (now_ns() - l->since_ns < LEASE_NS)
			return;
		syscall(SYS_futex, l->beat, FUTEX_WAIT, l->seen, NULL, NULL, 0);
	}
	begin_lease(l, l->beat);
}

void csw_exercise_go_on(struct csw_exercise *x)
{
	if (!x->group)
		return;
	__atomic_add_fetch(x->beat, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, x->beat, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- one ring ---- */

struct ring {
	int pipes[3][2]; /* first to second, second to third, third to first */
};

static void pass(const struct ring *r, int from, int to)
{
	char token;

	while (read(r->pipes[from][0], &token, 1) == 1 && write(r->pipes[to][1], &token, 1) == 1)
		;
	_exit(0);
}

static void *second(void *ctx)
{
	pass(ctx, 0, 1);
	return NULL;
}

static void first(const struct ring *r, const uint32_t *beat)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct lease lease;
	char token = 0;

	begin_lease(&lease, beat);
	for (unsigned i = 0;; i++) {
		if (write(r->pipes[0][1], &token, 1) != 1 || read(r->pipes[2][0], &token, 1) != 1)
			_exit(0);
		if (i % ROUNDS == 0) {
			nanosleep(&pause, NULL);
			renew_lease(&lease);
		}
	}
}

/* The parent may have ended before the kernel was told to care. */
static void die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
}

static int move_to(int cpu)
{
	cpu_set_t sets[SETS];

	memset(sets, 0, sizeof(sets));
	CPU_SET_S((size_t)cpu, sizeof(sets), sets);
	return sched_setaffinity(0, sizeof(sets), sets) < 0 ? errno : 0;
}

/* 0, or the errno of what failed. The third has no end of the pipe to csw-sample: it ends when all
 * have told. */
static int make_ring(struct ring *r, int cpu, int told)
{
	pid_t self = getpid(), pid;
	pthread_t thread;
	int error = move_to(cpu);

	for (int i = 0; !error && i < 3; i++)
		error = pipe2(r->pipes[i], O_CLOEXEC) < 0 ? errno : 0;
	if (error)
		return error;
	pid = fork();
	if (pid == 0) {
		die_with(self);
		close(told);
		pass(r, 1, 2);
	}
	return pid < 0 ? errno : pthread_create(&thread, NULL, second, r);
}

/* A number fits a pipe as a whole; csw-sample waits for as many as there are rings. */
static void tell(int told, int error)
{
	if (write(told, &error, sizeof(error)) != sizeof(error))
		_exit(1);
}

static void run_ring(int cpu, int told, const uint32_t *beat)
{
	struct ring r;
	int error = make_ring(&r, cpu, told);

	tell(told, error);
	close(told);
	if (error)
		_exit(1); /* and what there is of it with it */
	first(&r, beat);
}

/* ---- all of them ---- */

static void run_rings(const int *cpus, unsigned nr, int told, const uint32_t *beat)
{
	pid_t self = getpid();

	for (unsigned i = 0; i < nr; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			die_with(self);
			run_ring(cpus[i], told, beat);
		}
		if (pid < 0)
			tell(told, errno);
	}
	close(told);
	for (;;)
		pause();
}

/* 0 or the errno. A signal in between would run csw-sample's handlers in the child. */
static int start_group(struct csw_exercise *x, const int *cpus, unsigned nr, int told)
{
	pid_t self = getpid();
	sigset_t mask;
	int error;

	csw_signals_hold(&mask);
	x->group = fork();
	error = errno;
	if (x->group == 0) {
		setpgid(0, 0);
		die_with(self);
		csw_signals_restore();
		csw_signals_let(&mask);
		run_rings(cpus, nr, told, x->beat);
	}
	csw_signals_let(&mask);
	if (x->group > 0) {
		setpgid(x->group, x->group);
		return 0;
	}
	x->group = 0;
	return error;
}

/* How many rings run; of the others *error is why the first of them does not. */
static unsigned hear(int fd, unsigned nr, int *error)
{
	unsigned running = 0;

	for (unsigned i = 0; i < nr; i++) {
		int said;
		ssize_t bytes;

		do
			bytes = read(fd, &said, sizeof(said));
		while (bytes < 0 && errno == EINTR);
		if (bytes != sizeof(said))
			said = ECHILD; /* ended without a word */
		if (said && !*error)
			*error = said;
		running += !said;
	}
	return running;
}

/* How many rings run of nr, and why not all. */
static unsigned start_rings(struct csw_exercise *x, const int *cpus, unsigned nr, int *error)
{
	unsigned running = 0;
	int told[2];

	x->beat = mmap(NULL, sizeof(*x->beat), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (x->beat == MAP_FAILED || pipe2(told, O_CLOEXEC) < 0) {
		*error = errno;
		return 0;
	}
	*error = start_group(x, cpus, nr, told[1]);
	close(told[1]);
	if (!*error)
		running = hear(told[0], nr, error);
	close(told[0]);
	return running;
}

/* ---- on which CPUs ---- */

/* CPUs that were asked for and that we may not run on. */
struct forbidden {
	unsigned nr;
	unsigned long first;
};

/* The next CPU of a list that options.c has found to be one; false: there is none. *last: of the
 * range at hand. */
static bool next_cpu(const char **list, unsigned long *cpu, unsigned long *last)
{
	char *end;

	if (*cpu < *last) {
		++*cpu;
		return true;
	}
	if (!**list)
		return false;
	*cpu = *last = strtoul(*list, &end, 10);
	if (*end == '-')
		*last = strtoul(end + 1, &end, 10);
	*list = *end ? end + 1 : end;
	return true;
}

/* The first of these CPUs that we may run on, and those before them that we may not. */
static unsigned choose_cpus(const char *list, int cpus[RINGS_MAX], struct forbidden *forbidden)
{
	unsigned long cpu = 0, last = 0;
	cpu_set_t allowed[SETS];
	char all[32];
	unsigned nr = 0;

	snprintf(all, sizeof(all), "0-%d", CPUS_MAX - 1);
	memset(allowed, 0, sizeof(allowed));
	if (sched_getaffinity(0, sizeof(allowed), allowed) < 0)
		return 0;
	for (const char *at = list ? list : all; nr < RINGS_MAX && next_cpu(&at, &cpu, &last);) {
		if (CPU_ISSET_S(cpu, sizeof(allowed), allowed))
			cpus[nr++] = (int)cpu;
		else if (list && !forbidden->nr++)
			forbidden->first = cpu;
	}
	return nr;
}

/* ---- what is missing ---- */

/* Why, and what helps. */
static const char *reason(int error)
{
	switch (error) {
	case EAGAIN:
		return "no more processes are allowed: raise ulimit -u, or pids.max of the cgroup";
	case EMFILE:
		return "too many open files: raise ulimit -n";
	case ECHILD:
		return "it was killed";
	default:
		return strerror(error);
	}
}

__attribute__((format(printf, 2, 3))) static void lacks(struct csw_exercise *x, const char *format,
							...)
{
	size_t used = strlen(x->lack);
	va_list args;

	if (used)
		used += (size_t)snprintf(x->lack + used, sizeof(x->lack) - used, "; ");
	va_start(args, format);
	vsnprintf(x->lack + used, sizeof(x->lack) - used, format, args);
	va_end(args);
}

static void lacks_cpus(struct csw_exercise *x, const struct forbidden *f)
{
	char more[32] = "";

	if (f->nr > 1)
		snprintf(more, sizeof(more), " and %u more", f->nr - 1);
	if (f->nr)
		lacks(x,
		      "the load of calibrate may not run on CPU %lu%s (a cpuset or taskset forbids "
		      "it): only the machine's own switches are judged there",
		      f->first, more);
}

static void lacks_rings(struct csw_exercise *x, unsigned running, unsigned nr, int error)
{
	if (error && running)
		lacks(x, "the load of calibrate runs on %u of %u CPUs (%s)", running, nr,
		      reason(error));
	else if (error)
		lacks(x,
		      "the load of calibrate cannot start (%s): only the machine's own switches "
		      "are judged",
		      reason(error));
}

void csw_exercise_start(struct csw_exercise *x, const char *cpus)
{
	struct forbidden forbidden = { .nr = 0 };
	int chosen[RINGS_MAX], error = 0;
	unsigned nr = choose_cpus(cpus, chosen, &forbidden);
	unsigned running;

	*x = (struct csw_exercise){ .group = 0 };
	running = nr ? start_rings(x, chosen, nr, &error) : 0;
	lacks_cpus(x, &forbidden);
	lacks_rings(x, running, nr, error);
	if (!running)
		csw_exercise_stop(x);
}

static void end_group(pid_t group)
{
	/* Where it could not be made a group, its parts die with it. */
	if (kill(-group, SIGKILL) < 0)
		kill(group, SIGKILL);
	while (waitpid(group, NULL, 0) < 0 && errno == EINTR)
		;
}

void csw_exercise_stop(struct csw_exercise *x)
{
	if (x->group)
		end_group(x->group);
	if (x->beat && x->beat != MAP_FAILED)
		munmap(x->beat, sizeof(*x->beat));
	x->group = 0;
	x->beat = NULL;
}
