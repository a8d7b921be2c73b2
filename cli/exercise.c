/*
 * See exercise.h. One ring on a CPU: first -> second is a switch between threads, second -> third
 * and third -> first are switches between processes; after some rounds the first sleeps, and the
 * CPU goes to idle and back.
 *
 * Invariant: nothing here outlives csw-sample, whatever ends it.
 */
#define _GNU_SOURCE
#include "cli/exercise.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RINGS_MAX 8
#define ROUNDS 8 /* until the next pause */
#define PAUSE_NS 300000L

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

static void first(const struct ring *r)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	char token = 0;

	for (unsigned i = 0;; i++) {
		if (write(r->pipes[0][1], &token, 1) != 1 || read(r->pipes[2][0], &token, 1) != 1)
			_exit(0);
		if (i % ROUNDS == 0)
			nanosleep(&pause, NULL);
	}
}

/* The parent may have ended before the kernel was told to care. */
static void die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
}

static void run_ring(int cpu)
{
	pid_t self = getpid();
	struct ring r;
	pthread_t thread;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	for (int i = 0; i < 3; i++)
		if (pipe(r.pipes[i]) < 0)
			_exit(1);
	switch (fork()) {
	case 0:
		die_with(self);
		pass(&r, 1, 2);
		break;
	case -1:
		_exit(1);
	default:
		if (pthread_create(&thread, NULL, second, &r))
			_exit(1);
		first(&r);
	}
}

/* A ring each on the first CPUs that we may run on. */
static void run_rings(void)
{
	pid_t self = getpid();
	cpu_set_t allowed;
	int nr = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		_exit(1);
	for (int cpu = 0; cpu < CPU_SETSIZE && nr < RINGS_MAX; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		nr++;
		if (fork() == 0) {
			die_with(self);
			run_ring(cpu);
		}
	}
	for (;;)
		pause();
}

int csw_exercise_start(pid_t *group)
{
	pid_t self = getpid(), pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		setpgid(0, 0);
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		die_with(self);
		run_rings();
	}
	setpgid(pid, pid);
	*group = pid;
	return 0;
}

void csw_exercise_stop(pid_t group)
{
	/* Where it could not be made a group, its parts die with it. */
	if (kill(-group, SIGKILL) < 0)
		kill(group, SIGKILL);
	while (waitpid(group, NULL, 0) < 0 && errno == EINTR)
		;
}
