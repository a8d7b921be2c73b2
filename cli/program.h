/*
 * The program behind --, forked before anything is counted and held at a pipe until counting has
 * begun: so all of it is counted, and it inherits no counter.
 *
 * Invariant: after csw_program_end no child is left.
 */
#ifndef CSW_CLI_PROGRAM_H
#define CSW_CLI_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

struct csw_program {
	pid_t pid;   /* 0: none, or it has been reaped */
	int go;      /* closing it without a byte calls the program off */
	int failure; /* carries errno if exec failed, ends without a byte if not */
	int status;  /* as a shell would give it, once it has ended */
	char **argv; /* NULL: there is none */
};

/* argv NULL: does nothing, and every other call is fine. 0 or -errno. */
int csw_program_fork(struct csw_program *p, char **argv);

/* Lets it run: 0, or -errno of the exec that failed; then it has been reaped. */
int csw_program_release(struct csw_program *p);

/* Reaps it if it has ended. */
bool csw_program_has_ended(struct csw_program *p);

/* Asks it to end, without waiting. */
void csw_program_terminate(const struct csw_program *p);

/* Ends it and waits for it: SIGTERM, and SIGKILL if that does not help within some seconds, each
 * with a line that begins with why ("2 s are over"). Nothing of that where it has ended already, or
 * has never begun. */
void csw_program_end(struct csw_program *p, const char *why);

#endif
