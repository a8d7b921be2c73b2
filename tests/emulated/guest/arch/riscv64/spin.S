/* See ../../spin.h. The number behind a line is its share in spin_instructions(). */
#define SYS_exit 93
#define SYS_sched_yield 124
#define SYS_clone 220

	.text
	.globl	spin_thread
	.type	spin_thread, @function
spin_thread:
	/* a0 flags, a1 stack, a2 tid, a3 rounds, a4 spins; the child inherits all other registers. */
	mv	t1, a3
	mv	t2, a4
	mv	a4, a2			/* CLONE_CHILD_CLEARTID */
	li	a3, 0
	li	a2, 0
	li	a7, SYS_clone
	ecall
	bnez	a0, 3f			/* 1 */
1:	mv	t3, t2			/* rounds */
2:	addi	t3, t3, -1		/* rounds * spins */
	bnez	t3, 2b			/* rounds * spins */
	li	a7, SYS_sched_yield	/* rounds */
	ecall				/* rounds */
	addi	t1, t1, -1		/* rounds */
	bnez	t1, 1b			/* rounds */
	li	a0, 0			/* 1 */
	li	a7, SYS_exit		/* 1 */
	ecall				/* 1 */
3:	ret
	.size	spin_thread, . - spin_thread

	.globl	spin_instructions
	.type	spin_instructions, @function
spin_instructions:
	/* 4 + rounds * (5 + 2 * spins) */
	slli	a1, a1, 1
	addi	a1, a1, 5
	mul	a0, a0, a1
	addi	a0, a0, 4
	ret
	.size	spin_instructions, . - spin_instructions
	.section .note.GNU-stack, "", @progbits
