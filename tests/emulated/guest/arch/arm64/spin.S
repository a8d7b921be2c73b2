/* See ../../spin.h. The number behind a line is its share in spin_instructions(). */
#define SYS_exit 93
#define SYS_sched_yield 124
#define SYS_clone 220

	.text
	.globl	spin_thread
	.type	spin_thread, %function
spin_thread:
	/* x0 flags, x1 stack, x2 tid, x3 rounds, x4 spins; the child inherits all other registers. */
	mov	x9, x3
	mov	x10, x4
	mov	x4, x2			/* CLONE_CHILD_CLEARTID */
	mov	x3, #0
	mov	x2, #0
	mov	x8, #SYS_clone
	svc	#0
	cbnz	x0, 3f			/* 1 */
1:	mov	x11, x10		/* rounds */
2:	subs	x11, x11, #1		/* rounds * spins */
	b.ne	2b			/* rounds * spins */
	mov	x8, #SYS_sched_yield	/* rounds */
	svc	#0			/* rounds */
	subs	x9, x9, #1		/* rounds */
	b.ne	1b			/* rounds */
	mov	x0, #0			/* 1 */
	mov	x8, #SYS_exit		/* 1 */
	svc	#0			/* 1 */
3:	ret
	.size	spin_thread, . - spin_thread

	.globl	spin_instructions
	.type	spin_instructions, %function
spin_instructions:
	/* 4 + rounds * (5 + 2 * spins) */
	lsl	x1, x1, #1
	add	x1, x1, #5
	mul	x0, x0, x1
	add	x0, x0, #4
	ret
	.size	spin_instructions, . - spin_instructions
	.section .note.GNU-stack, "", %progbits
