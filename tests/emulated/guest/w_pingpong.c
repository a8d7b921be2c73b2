/*
 * Two partners on one CPU that take turns by sched_yield and touch the same pages in each turn: two
 * processes (`processes`), or two threads of one process (`threads`). What a switch between address
 * spaces costs in TLB misses is then the difference between the two.
 *
 * They must not exchange anything through the kernel: it opens user memory to copy (SUM), and the
 * emulated CPU forgets its TLB at every change of that bit.
 *
 * Prints one line of JSON a partner.
 */
#define _GNU_SOURCE
#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNS 300
#define PAGES 64
#define PAGE_BYTES 4096

static unsigned char *pages;

static void touch(void)
{
	const volatile unsigned char *at = pages;

	for (int i = 0; i < PAGES; i++)
		(void)at[i * PAGE_BYTES];
}

static void play(void)
{
	for (int i = 0; i < TURNS; i++) {
		touch();
		sched_yield();
	}
}

static void tell(const char *role)
{
	printf("{\"role\":\"%s\",\"pid\":%d,\"tid\":%ld,\"turns\":%d,\"pages\":%d}\n", role,
	       getpid(), syscall(SYS_gettid), TURNS, PAGES);
	fflush(stdout);
}

static void *play_second(void *arg)
{
	(void)arg;
	tell("second");
	play();
	return NULL;
}

static void second_process(void)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		err(1, "fork");
	if (pid == 0) {
		play_second(NULL);
		exit(0);
	}
	play();
	if (waitpid(pid, &status, 0) != pid || status)
		errx(1, "the second process failed");
}

static void second_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, play_second, NULL))
		errx(1, "pthread_create");
	play();
	if (pthread_join(thread, NULL))
		errx(1, "pthread_join");
}

int main(int argc, char **argv)
{
	cpu_set_t first_cpu;

	if (argc != 2 || (strcmp(argv[1], "threads") && strcmp(argv[1], "processes")))
		errx(2, "usage: w_pingpong threads|processes");
	CPU_ZERO(&first_cpu);
	CPU_SET(0, &first_cpu);
	pages = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (pages == MAP_FAILED || sched_setaffinity(0, sizeof(first_cpu), &first_cpu))
		err(1, "cannot prepare");
	tell("first");
	if (argv[1][0] == 'p')
		second_process();
	else
		second_thread();
	return 0;
}
