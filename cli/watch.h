/*
 * The processes of -p and the threads of -t: whether they exist, and when they have gone.
 *
 * Invariant: an id that is used again is not taken for the one that was there before, where the
 * kernel has pidfds (5.3, for threads 6.9).
 */
#ifndef CSW_CLI_WATCH_H
#define CSW_CLI_WATCH_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/options.h"

struct csw_watch {
	struct pollfd *fds; /* one per id, processes first; fd -1: the kernel gives none, or gone */
	int32_t *ids;       /* 0: has gone */
	size_t nr_pids, nr_tids;
};

/* Nothing of it can run any more: it is gone, or a zombie. */
bool csw_watch_has_ended(int32_t id, bool process);

/* 0; -ESRCH: one does not exist or has ended; -ENOMEM. The reason has been printed. Close it in any
 * case. */
int csw_watch_open(struct csw_watch *w, const struct csw_options *o);
void csw_watch_close(struct csw_watch *w);

/* Whether nothing can come any more: all processes or all threads that were asked for have gone.
 * false when none were. */
bool csw_watch_is_over(struct csw_watch *w);

#endif
