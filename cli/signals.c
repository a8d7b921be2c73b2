/* Handlers and what they know; see signals.h. */
#include "cli/signals.h"

#include <errno.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ull
#define NS_PER_MS 1000000ull
/* timeout(1) signals the process and its group: two of the same within this time are one. */
#define DOUBLE_NS (100 * NS_PER_MS)

static volatile sig_atomic_t phase;       /* enum csw_phase_of_run */
static volatile sig_atomic_t interrupted; /* the first signal that wants the end */
static volatile sig_atomic_t asked;       /* SIGUSR1 */
static volatile uint64_t interrupted_ns;  /* written before `interrupted`, by the handler alone */
static const char *volatile unlink_path;
static volatile pid_t terminate_pid;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* ---- handlers: only what signal-safety(7) allows ---- */

static void end_at_once(int sig)
{
	if (unlink_path)
		unlink(unlink_path);
	if (terminate_pid > 0) {
		kill(terminate_pid, SIGTERM);
		kill(terminate_pid, SIGCONT); /* a stopped one would never see it */
	}
	signal(sig, SIG_DFL);
	raise(sig); /* delivered when this handler returns */
}

static void on_end(int sig)
{
	int saved = errno;

	if (interrupted) {
		if (now_ns() - interrupted_ns > DOUBLE_NS)
			end_at_once(sig);
	} else if (phase == CSW_SIGNALS_BEFORE || (phase == CSW_SIGNALS_AFTER && sig != SIGINT)) {
		end_at_once(sig);
	} else {
		interrupted_ns = now_ns();
		interrupted = sig;
	}
	errno = saved;
}

static void on_ask(int sig)
{
	(void)sig;
	asked = 1;
}

static void on_nothing(int sig)
{
	(void)sig;
}

/* The last two have handlers, and are not ignored, since a program would inherit that: a closed
 * pipe and a file at its limit become write errors with a line that says so. SIGCHLD has one only
 * so that it ends csw_poll's wait. */
static const struct {
	int sig, flags;
	void (*handler)(int);
} handlers[] = {
	{ SIGINT, 0, on_end },      { SIGTERM, 0, on_end },
	{ SIGHUP, 0, on_end },      { SIGQUIT, 0, on_end },
	{ SIGUSR1, 0, on_ask },     { SIGCHLD, SA_NOCLDSTOP, on_nothing },
	{ SIGPIPE, 0, on_nothing }, { SIGXFSZ, 0, on_nothing },
};

#define NR_HANDLERS (sizeof(handlers) / sizeof(*handlers))

/* ---- installing them ---- */

/* SIGCHLD ignored would take the program's status away. */
static bool stays_ignored(int sig)
{
	struct sigaction old;

	return sig != SIGCHLD && sigaction(sig, NULL, &old) == 0 && old.sa_handler == SIG_IGN;
}

void csw_signals_catch(void)
{
	for (size_t i = 0; i < NR_HANDLERS; i++) {
		struct sigaction action = { .sa_handler = handlers[i].handler,
					    .sa_flags = SA_RESTART | handlers[i].flags };

		sigemptyset(&action.sa_mask);
		for (size_t j = 0; j < NR_HANDLERS; j++)
			sigaddset(&action.sa_mask, handlers[j].sig);
		if (!stays_ignored(handlers[i].sig))
			sigaction(handlers[i].sig, &action, NULL);
	}
}

void csw_signals_restore(void)
{
	for (size_t i = 0; i < NR_HANDLERS; i++) {
		if (!stays_ignored(handlers[i].sig))
			signal(handlers[i].sig, SIG_DFL);
	}
}

/* ---- what they know ---- */

void csw_signals_enter(enum csw_phase_of_run next)
{
	phase = (sig_atomic_t)next;
}

int csw_signals_end(void)
{
	return interrupted;
}

bool csw_signals_asked(void)
{
	bool was = asked;

	asked = 0;
	return was;
}

void csw_signals_hold(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, before);
}

void csw_signals_let(const sigset_t *before)
{
	sigprocmask(SIG_SETMASK, before, NULL);
}

void csw_signals_unlink(const char *path)
{
	unlink_path = path;
}

void csw_signals_terminate(pid_t pid)
{
	terminate_pid = pid;
}
