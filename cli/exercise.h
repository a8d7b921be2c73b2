/* Context switches of every kind, made on purpose, for as long as something is to be learned from
 * them. */
#ifndef CSW_CLI_EXERCISE_H
#define CSW_CLI_EXERCISE_H

#include <stdint.h>
#include <sys/types.h>

struct csw_exercise {
	pid_t group;    /* the load's process group; 0: there is no load */
	uint32_t *beat; /* shared with it: how often csw_exercise_go_on was called */
	char lack[512]; /* what it is not, why, and what helps, in one line; "": it is all there */
};

/* Starts a ring of two threads of one process and one thread of another on each of these CPUs (as
 * -C has them; NULL: all), but on no more than eight, which hand a token round and pause now and
 * then. It dies with csw-sample. When this returns, every ring runs or is in x->lack. */
void csw_exercise_start(struct csw_exercise *x, const char *cpus);

/* The load is still wanted. A quarter of a second after the last call it rests until the next one:
 * whoever stops csw-sample (Ctrl-Z, SIGSTOP) has stopped the load with it. */
void csw_exercise_go_on(struct csw_exercise *x);
void csw_exercise_stop(struct csw_exercise *x);

#endif
