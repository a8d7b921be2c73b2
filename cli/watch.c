/* Looking after -p and -t; see watch.h. */
#define _GNU_SOURCE
#include "cli/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

/* What /proc says of a thread; all 0 where it says nothing. */
struct status {
	int32_t pid; /* its process */
	char state;
	long threads; /* of the process */
};

static struct status status_of(int32_t tid)
{
	struct status s = { .pid = 0 };
	char path[64], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "State: %c", &s.state);
		sscanf(line, "Tgid: %" SCNd32, &s.pid);
		sscanf(line, "Threads: %ld", &s.threads);
	}
	if (file)
		fclose(file);
	return s;
}

/* kill() knows threads as well as processes. */
static bool exists(int32_t id)
{
	return kill(id, 0) == 0 || errno != ESRCH;
}

/* A process lives on in its other threads where the first one has ended. */
static bool is_zombie(const struct status *s, bool process)
{
	return (s->state == 'Z' || s->state == 'X') && !(process && s->threads > 1);
}

bool csw_watch_has_ended(int32_t id, bool process)
{
	struct status s = status_of(id);

	return !exists(id) || is_zombie(&s, process);
}

static int check_process(int32_t id)
{
	struct status s = status_of(id);

	if (!exists(id))
		csw_complain("-p %d: there is no such process", id);
	else if (s.pid && s.pid != id)
		/* A scope by process would never match a thread's id. */
		csw_complain("-p %d: this is a thread of process %d; use -p %d or -t %d", id, s.pid,
			     s.pid, id);
	else if (is_zombie(&s, true))
		csw_complain("-p %d: this process has ended, its parent has only not waited for it "
			     "yet (a zombie): nothing is left to count",
			     id);
	else
		return 0;
	return -ESRCH;
}

static int check_thread(int32_t id)
{
	struct status s = status_of(id);

	if (!exists(id))
		csw_complain("-t %d: there is no such thread", id);
	else if (is_zombie(&s, false))
		csw_complain("-t %d: this thread has ended (a zombie): nothing is left to count",
			     id);
	else
		return 0;
	return -ESRCH;
}

static int open_pidfd(int32_t id, unsigned flags)
{
	return (int)syscall(SYS_pidfd_open, id, flags);
}

int csw_watch_open(struct csw_watch *w, const struct csw_options *o)
{
	size_t nr = o->pids.nr + o->tids.nr;
	int ret = 0;

	*w = (struct csw_watch){ .fds = NULL };
	if (!nr)
		return 0;
	w->fds = calloc(nr, sizeof(*w->fds));
	w->ids = calloc(nr, sizeof(*w->ids));
	if (!w->fds || !w->ids) {
		csw_complain("not enough memory for the list of processes");
		return -ENOMEM;
	}
	for (size_t i = 0; i < nr && ret == 0; i++) {
		bool process = i < o->pids.nr;
		int32_t id = process ? o->pids.ids[i] : o->tids.ids[i - o->pids.nr];

		/* First the fd, then the check: what was there at the check is what is watched. */
		w->fds[i] =
			(struct pollfd){ open_pidfd(id, process ? 0 : PIDFD_THREAD), POLLIN, 0 };
		w->ids[i] = id;
		*(process ? &w->nr_pids : &w->nr_tids) += 1;
		ret = process ? check_process(id) : check_thread(id);
	}
	return ret;
}

void csw_watch_close(struct csw_watch *w)
{
	for (size_t i = 0; i < w->nr_pids + w->nr_tids; i++) {
		if (w->fds[i].fd >= 0)
			close(w->fds[i].fd);
	}
	free(w->fds);
	free(w->ids);
	*w = (struct csw_watch){ .fds = NULL };
}

static bool has_gone(struct csw_watch *w, size_t i)
{
	struct pollfd *p = &w->fds[i];

	if (w->ids[i] &&
	    (p->fd >= 0 ? p->revents != 0 : csw_watch_has_ended(w->ids[i], i < w->nr_pids))) {
		if (p->fd >= 0)
			close(p->fd);
		p->fd = -1;
		w->ids[i] = 0;
	}
	return w->ids[i] == 0;
}

/* All are asked, so that each is noticed before its id is used again. */
static bool all_gone(struct csw_watch *w, size_t first, size_t nr)
{
	size_t gone = 0;

	for (size_t i = first; i < first + nr; i++)
		gone += has_gone(w, i);
	return nr && gone == nr;
}

bool csw_watch_is_over(struct csw_watch *w)
{
	size_t nr = w->nr_pids + w->nr_tids;
	bool pids, tids;

	if (!nr)
		return false;
	if (poll(w->fds, nr, 0) < 0) {
		for (size_t i = 0; i < nr; i++)
			w->fds[i].revents = 0;
	}
	pids = all_gone(w, 0, w->nr_pids);
	tids = all_gone(w, w->nr_pids, w->nr_tids);
	return pids || tids;
}
