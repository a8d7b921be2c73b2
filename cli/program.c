/* Launching the program and getting rid of it; see program.h. */
#define _GNU_SOURCE /* pipe2 */
#include "cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/options.h"

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
	p->pid = fork();
	if (p->pid < 0)
		ret = -errno;
	if (p->pid == 0) {
		close(go[1]); /* or the end of csw-sample would not be seen */
		become_program(go[0], failure[1], argv);
	}
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

static bool reap(struct csw_program *p, int flags)
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

void csw_program_end(struct csw_program *p)
{
	if (p->go >= 0) {
		close_pipes(p); /* it never got its byte and goes */
		reap(p, 0);
	}
	if (reap(p, WNOHANG))
		return;
	csw_complain("counting has ended before %s: sent SIGTERM to it (process %d)", p->argv[0],
		     (int)p->pid);
	kill(p->pid, SIGTERM);
	kill(p->pid, SIGCONT); /* a stopped one would never see it */
	reap(p, 0);
}
