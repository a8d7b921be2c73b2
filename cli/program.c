/* Launching the program and getting rid of it; see program.h. */
#define _GNU_SOURCE /* pipe2 */
#include "cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/signals.h"

#define NS_PER_MS 1000000
#define GRACE_MS 5000 /* from SIGTERM to SIGKILL */
#define STEP_MS 10

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

static void close_pipes(struct csw_program *p)
{
	if (p->go >= 0)
		close(p->go);
	if (p->failure >= 0)
		close(p->failure);
	p->go = p->failure = -1;
}

int csw_program_fork(struct csw_program *p, char **argv)
{
	int go[2], failure[2], ret = 0;
	sigset_t mask;

	*p = (struct csw_program){ .go = -1, .failure = -1, .argv = argv };
	if (!argv)
		return 0;
	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(failure, O_CLOEXEC) < 0) {
		ret = -errno;
		close(go[0]);
		close(go[1]);
		return ret;
	}
	/* A signal in between would run csw-sample's handlers in the child. */
	csw_signals_hold(&mask);
	p->pid = fork();
	if (p->pid < 0)
		ret = -errno;
	if (p->pid == 0) {
		close(go[1]); /* or the end of csw-sample would not be seen */
		csw_signals_restore();
		csw_signals_let(&mask);
		become_program(go[0], failure[1], argv);
	}
	csw_signals_terminate(p->pid > 0 ? p->pid : 0);
	csw_signals_let(&mask);
	close(go[0]);
	close(failure[1]);
	p->go = go[1];
	p->failure = failure[0];
	if (ret < 0) {
		p->pid = 0;
		close_pipes(p);
	}
	return ret;
}

static int status_of(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

/* A handler must not signal an id that is free again: it is forgotten before it is given back. */
static bool reap(struct csw_program *p, int flags)
{
	siginfo_t info = { .si_pid = 0 };
	int status, ret;

	if (!p->pid)
		return true;
	do
		ret = waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOWAIT | flags);
	while (ret < 0 && errno == EINTR);
	if (ret == 0 && info.si_pid == 0)
		return false;
	csw_signals_terminate(0);
	if (ret == 0 && waitpid(p->pid, &status, 0) == p->pid)
		p->status = status_of(status);
	p->pid = 0;
	return true;
}

bool csw_program_has_ended(struct csw_program *p)
{
	return reap(p, WNOHANG);
}

int csw_program_release(struct csw_program *p)
{
	int error = 0;
	ssize_t bytes;

	if (!p->argv)
		return 0;
	bytes = write(p->go, "", 1); /* EPIPE: a signal has killed it already, its status tells */
	if (bytes < 0 && errno != EPIPE)
		return -errno;
	do
		bytes = read(p->failure, &error, sizeof(error));
	while (bytes < 0 && errno == EINTR);
	close_pipes(p);
	if (bytes != sizeof(error))
		return 0;
	reap(p, 0); /* it ends by itself */
	return -error;
}

void csw_program_terminate(const struct csw_program *p)
{
	if (!p->pid)
		return;
	kill(p->pid, SIGTERM);
	kill(p->pid, SIGCONT); /* a stopped one would never see it */
}

static bool ends_within(struct csw_program *p, int ms)
{
	const struct timespec step = { .tv_nsec = STEP_MS * NS_PER_MS };

	for (int waited = 0; !reap(p, WNOHANG); waited += STEP_MS) {
		if (waited >= ms)
			return false;
		nanosleep(&step, NULL); /* SIGCHLD cuts it short */
	}
	return true;
}

void csw_program_end(struct csw_program *p, const char *why)
{
	if (p->go >= 0) {
		close_pipes(p); /* it never got its byte and goes */
		reap(p, 0);
	}
	if (reap(p, WNOHANG))
		return;
	csw_complain("%s and %s still runs: sent it SIGTERM", why, p->argv[0]);
	csw_program_terminate(p);
	if (ends_within(p, GRACE_MS))
		return;
	csw_complain("%s has not ended within %d s of SIGTERM: sent it SIGKILL", p->argv[0],
		     GRACE_MS / 1000);
	kill(p->pid, SIGKILL);
	reap(p, 0); /* where a device holds it, only a signal to csw-sample ends this */
}
