/*
 * Threads whose user-mode instructions are known to the instruction, because every one of them
 * stands in arch/ARCH/spin.S: from behind the clone system call to the exit, no library in between.
 */
#ifndef CSW_TESTS_SPIN_H
#define CSW_TESTS_SPIN_H

/* Starts a thread by clone(flags) with the thread ID word that the kernel clears at its end. The
 * thread goes `rounds` times through a loop of `spins` turns and a sched_yield, then exits. Returns
 * its TID or -errno. rounds, spins >= 1. */
long spin_thread(unsigned long flags, void *stack, int *tid, unsigned long rounds,
		 unsigned long spins);

/* What such a thread executes in user mode, by counting the lines of spin.S. */
unsigned long spin_instructions(unsigned long rounds, unsigned long spins);

#endif
