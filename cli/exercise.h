/* Context switches of every kind, made on purpose, for as long as something is to be learned from
 * them. */
#ifndef CSW_CLI_EXERCISE_H
#define CSW_CLI_EXERCISE_H

#include <sys/types.h>

/* Starts a ring of two threads of one process and one thread of another on each of some CPUs, which
 * hand a token round and pause now and then. It dies with csw-sample. 0 and its process group, or
 * -errno. */
int csw_exercise_start(pid_t *group);
void csw_exercise_stop(pid_t group);

#endif
