/*
 * Threads with a known, different number of user-mode instructions each, which take turns by
 * sched_yield. Prints one line of JSON a thread: its IDs, its yields and its instructions.
 *
 * Invariant: nothing between a thread's clone and its exit runs but arch/ARCH/spin.S.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "spin.h"

#define THREADS 8
#define ROUNDS 180 /* of the first thread; each next one has ROUNDS_STEP more */
#define ROUNDS_STEP 11
#define SPINS 400
#define SPINS_STEP 331
#define STACK_BYTES 16384 /* for signals only: spin.S has no use for one */

static int tids[THREADS];

static void wait_for_end(int *word)
{
	int tid;

	while ((tid = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != 0) {
		if (syscall(SYS_futex, word, FUTEX_WAIT, tid, NULL, NULL, 0) < 0 &&
		    errno != EAGAIN && errno != EINTR)
			err(1, "futex");
	}
}

int main(int argc, char **argv)
{
	const unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
				    CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
	unsigned long factor = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	char *stacks = mmap(NULL, THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stacks == MAP_FAILED)
		err(1, "mmap");
	if (!factor)
		errx(2, "usage: w_known [FACTOR]");
	for (unsigned long i = 0; i < THREADS; i++) {
		unsigned long rounds = ROUNDS + i * ROUNDS_STEP;
		unsigned long spins = factor * (SPINS + i * SPINS_STEP);
		long tid;

		/* The kernel clears the word when the thread has gone; nobody else writes to it
		 * after this. */
		tids[i] = -1;
		tid = spin_thread(flags, stacks + (i + 1) * STACK_BYTES, &tids[i], rounds, spins);
		if (tid < 0) {
			errno = (int)-tid;
			err(1, "clone");
		}
		printf("{\"pid\":%d,\"tid\":%ld,\"yields\":%lu,\"instructions\":%lu}\n", getpid(),
		       tid, rounds, spin_instructions(rounds, spins));
	}
	for (unsigned long i = 0; i < THREADS; i++)
		wait_for_end(&tids[i]);
	return 0;
}
