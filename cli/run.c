/*
 * Launching the program, signals, and the loop.
 *
 * The program is forked before anything is counted and waits at a pipe until counting has begun: so
 * all of it is counted, and it inherits no counter. Invariant: whoever returns from here leaves no
 * child behind.
 */
#define _GNU_SOURCE /* pipe2 */
#include "cli/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 100
#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull
/* After Ctrl-C or SIGTERM the program gets so long to end while it is still counted. */
#define GRACE_NS NS_PER_S
/* timeout(1) signals the process and its group: two of the same within this time are one. */
#define DOUBLE_NS (100 * NS_PER_MS)

struct program {
	pid_t pid;   /* 0: none, or it has been reaped */
	int go;      /* closing it without a byte calls the program off */
	int failure; /* carries errno if exec failed, ends without a byte if not */
	int status;
	char **argv;
};

/* ---- signals ---- */

static volatile sig_atomic_t interrupted; /* the first signal that wants the end */
static volatile uint64_t interrupted_ns;  /* written before `interrupted`, by the handler alone */
static const char *volatile unlink_path;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

void csw_run_unlink_if_killed(const char *path)
{
	unlink_path = path;
}

/* Only what signal-safety(7) allows. */
static void on_end(int sig)
{
	int saved = errno;

	if (!interrupted) {
		interrupted_ns = now_ns();
		interrupted = sig;
	} else if (sig == SIGINT && now_ns() - interrupted_ns > DOUBLE_NS) {
		if (unlink_path)
			unlink(unlink_path);
		signal(sig, SIG_DFL);
		raise(sig); /* delivered when this handler returns */
	}
	errno = saved;
}

/* SIGCHLD has a handler only so that it ends csw_poll's wait. */
static void on_child(int sig)
{
	(void)sig;
}

/* Called after the fork, so that the program has the dispositions that csw-sample was started with.
 */
static void catch_signals(void)
{
	struct sigaction end = { .sa_handler = on_end, .sa_flags = SA_RESTART };
	struct sigaction child = { .sa_handler = on_child, .sa_flags = SA_RESTART | SA_NOCLDSTOP };

	sigemptyset(&end.sa_mask);
	sigaddset(&end.sa_mask, SIGINT);
	sigaddset(&end.sa_mask, SIGTERM);
	sigemptyset(&child.sa_mask);
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGCHLD, &child, NULL);
	signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error with a line that says so */
}

/* ---- the program ---- */

/* In the child. Returns only into _exit: nothing of the parent's stdio may be flushed twice. */
static void become_program(int go, int failure, char **argv)
{
	int error;
	char byte;

	if (read(go, &byte, 1) != 1)
		_exit(EXIT_SELF); /* called off; nobody looks at it */
	execvp(argv[0], argv);
	error = errno;
	if (write(failure, &error, sizeof(error)) != sizeof(error))
		_exit(EXIT_SELF);
	_exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
}

static int fork_program(struct program *p)
{
	int go[2], failure[2];

	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(failure, O_CLOEXEC) < 0) {
		int ret = -errno;

		close(go[0]);
		close(go[1]);
		return ret;
	}
	p->pid = fork();
	if (p->pid == 0) {
		close(go[1]); /* or the end of csw-sample would not be seen */
		become_program(go[0], failure[1], p->argv);
	}
	close(go[0]);
	close(failure[1]);
	p->go = go[1];
	p->failure = failure[0];
	return p->pid < 0 ? -errno : 0;
}

static int status_of(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

static bool has_ended(struct program *p, int flags)
{
	int status;
	pid_t pid;

	if (!p->pid)
		return true;
	do
		pid = waitpid(p->pid, &status, flags);
	while (pid < 0 && errno == EINTR);
	if (pid == 0)
		return false;
	if (pid > 0)
		p->status = status_of(status);
	p->pid = 0;
	return true;
}

static void close_pipes(struct program *p)
{
	if (p->go >= 0)
		close(p->go);
	if (p->failure >= 0)
		close(p->failure);
	p->go = p->failure = -1;
}

/* Lets the program run: 0, or -errno of the exec that failed. */
static int release_program(struct program *p)
{
	int error = 0;
	ssize_t bytes =
		write(p->go, "", 1); /* EPIPE: a signal has killed it already, its status tells */

	if (bytes < 0 && errno != EPIPE)
		return -errno;
	do
		bytes = read(p->failure, &error, sizeof(error));
	while (bytes < 0 && errno == EINTR);
	close_pipes(p);
	return bytes == sizeof(error) ? -error : 0;
}

static void end_program(struct program *p)
{
	if (has_ended(p, WNOHANG))
		return;
	csw_complain("counting has ended before %s: sent SIGTERM to it (process %d)", p->argv[0],
		     (int)p->pid);
	kill(p->pid, SIGTERM);
	kill(p->pid, SIGCONT); /* a stopped one would never see it */
	has_ended(p, 0);
}

/* ---- the processes of -p ---- */

/* The process that a thread belongs to, from /proc; 0: not known. */
static int32_t process_of(int32_t tid)
{
	char path[64], line[128];
	int32_t pid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (!pid && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "Tgid:", 5) == 0)
			pid = (int32_t)strtol(line + 5, NULL, 10);
	}
	fclose(file);
	return pid;
}

static int check_pids(const struct csw_options *o)
{
	for (size_t i = 0; i < o->nr_pids; i++) {
		int32_t pid = process_of(o->pids[i]);

		if (kill(o->pids[i], 0) < 0 && errno == ESRCH) {
			csw_complain("-p %d: there is no such process", o->pids[i]);
			return -ESRCH;
		}
		/* kill() knows threads as well, but a scope by process would never match one. */
		if (pid && pid != o->pids[i]) {
			csw_complain("-p %d: this is a thread of process %d; use -p %d", o->pids[i],
				     pid, pid);
			return -ESRCH;
		}
	}
	return 0;
}

/* ---- the loop ---- */

/* When to end, by the clock of this machine. A simulated one has its own and ends by itself. */
static uint64_t end_ns(const struct csw_options *o)
{
	if (!o->has_duration || (csw_options_simulated(o) && o->duration_ns))
		return UINT64_MAX;
	return now_ns() + o->duration_ns;
}

static int ms_until(uint64_t end)
{
	uint64_t now = now_ns();

	if (end <= now)
		return 0;
	return end - now >= POLL_MS * NS_PER_MS ? POLL_MS : (int)((end - now) / NS_PER_MS) + 1;
}

/* Looks whether the run is over; a signal shortens it. */
static bool is_over(struct program *p, uint64_t *end, bool *told)
{
	if (p->argv && has_ended(p, WNOHANG))
		return true;
	if (interrupted && !p->argv)
		return true;
	if (interrupted && !*told) {
		/* Ctrl-C reaches the program by itself, SIGTERM does not. */
		if (interrupted == SIGTERM)
			kill(p->pid, SIGTERM);
		if (*end > now_ns() + GRACE_NS)
			*end = now_ns() + GRACE_NS;
		*told = true;
	}
	return now_ns() >= *end;
}

static int count(struct csw_session *s, struct program *p, uint64_t end, struct csw_error *err)
{
	bool told = false;
	int ret = 1;

	while (ret > 0 && !is_over(p, &end, &told))
		ret = csw_poll(s, ms_until(end), err);
	return ret < 0 ? ret : 0;
}

static int open_session(struct csw_session **s, const struct csw_options *o,
			const struct program *p, struct csw_error *err)
{
	struct csw_opts opts = {
		.size = sizeof(opts),
		.driver = o->driver,
		.sav = o->sav,
		.ring_bytes = o->ring_bytes,
		.duration_ns = o->duration_ns,
		.pids = o->pids,
		.nr_pids = o->nr_pids,
		.tree = p->pid,
	};

	return csw_open(s, o->trigger, o->events, &opts, err);
}

/* The exit status for a failed call of the library. Names are checked before anything runs: those
 * are bad usage. */
static int fail(const struct csw_options *o, bool opening, int ret, const struct csw_error *err)
{
	csw_complain("%s", err->text);
	if (opening && (ret == -ENOENT || ret == -EINVAL))
		return EXIT_USAGE;
	return o->command ? EXIT_SELF : EXIT_FAILED;
}

static int fail_exec(const struct program *p, int ret)
{
	csw_complain("cannot run %s: %s", p->argv[0], strerror(-ret));
	return ret == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

static int measure(struct csw_session *s, const struct csw_options *o, struct program *p)
{
	struct csw_error err = { .code = 0 };
	int ret = csw_start(s, &err), stopped;

	if (ret < 0)
		return fail(o, false, ret, &err);
	if (p->argv) {
		ret = release_program(p);
		if (ret < 0)
			return fail_exec(p, ret);
	}
	ret = count(s, p, end_ns(o), &err);
	if (ret < 0)
		return fail(o, false, ret, &err);
	stopped = csw_stop(s, &err);
	return stopped < 0 ? fail(o, false, stopped, &err) : 0;
}

int csw_run(struct csw_session **out, const struct csw_options *o, int *program_status)
{
	struct program p = { .go = -1, .failure = -1, .argv = o->command };
	struct csw_error err = { .code = 0 };
	int status = o->command ? EXIT_SELF : EXIT_FAILED, ret;

	*out = NULL;
	*program_status = 0;
	if (check_pids(o) < 0)
		return status;
	ret = o->command ? fork_program(&p) : 0;
	if (ret < 0) {
		csw_complain("cannot start a process: %s", strerror(-ret));
		close_pipes(&p);
		return status;
	}
	catch_signals();
	ret = open_session(out, o, &p, &err);
	status = ret < 0 ? fail(o, true, ret, &err) : measure(*out, o, &p);
	if (p.go >= 0) {
		close_pipes(&p); /* it never got its byte and goes */
		has_ended(&p, 0);
	}
	end_program(&p);
	*program_status = p.status;
	if (status) {
		csw_close(*out);
		*out = NULL;
	}
	return status;
}
