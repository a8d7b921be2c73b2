/*
 * Something to look at for csw-sample: threads that each write fresh pages at a rate of their own,
 * and say how many.
 *
 *	csw-sample --event=page-faults,task-clock -- demo
 *
 * Invariant: a thread's page faults are the pages that it says, plus the few with which every
 * thread begins.
 */
#define _GNU_SOURCE
#include <err.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define TURNS_PER_SECOND 50

struct toucher {
	pthread_t thread;
	const char *name;
	long pages_per_turn;
	long turns;
	long pages; /* written so far */
};

static struct toucher touchers[] = {
	{ .name = "touch-50", .pages_per_turn = 1 },
	{ .name = "touch-500", .pages_per_turn = 10 },
	{ .name = "touch-5000", .pages_per_turn = 100 },
	{ .name = "touch-20000", .pages_per_turn = 400 },
};
#define NR_TOUCHERS (sizeof(touchers) / sizeof(touchers[0]))

/* Every turn maps memory anew: a page causes a fault only the first time it is written. */
static void touch(struct toucher *t)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = (size_t)t->pages_per_turn * page_bytes;
	unsigned char *memory;

	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		err(1, "mmap");
	madvise(memory, bytes, MADV_NOHUGEPAGE); /* where there are no huge pages it may fail */
	for (long i = 0; i < t->pages_per_turn; i++)
		*(volatile unsigned char *)(memory + (size_t)i * page_bytes) = 1;
	t->pages += t->pages_per_turn;
	munmap(memory, bytes);
}

static void *run(void *arg)
{
	struct toucher *t = arg;
	struct timespec pause = { .tv_nsec = 1000000000L / TURNS_PER_SECOND };

	pthread_setname_np(pthread_self(), t->name);
	for (long turn = 0; turn < t->turns; turn++) {
		touch(t);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;

	if (!(seconds > 0 && seconds < 3600))
		errx(2, "usage: demo [SECONDS]");
	for (size_t i = 0; i < NR_TOUCHERS; i++) {
		int ret;

		touchers[i].turns = (long)(seconds * TURNS_PER_SECOND);
		ret = pthread_create(&touchers[i].thread, NULL, run, &touchers[i]);
		if (ret)
			errx(1, "pthread_create: %s", strerror(ret));
	}
	for (size_t i = 0; i < NR_TOUCHERS; i++)
		pthread_join(touchers[i].thread, NULL);
	for (size_t i = 0; i < NR_TOUCHERS; i++)
		printf("demo: %s wrote %ld fresh pages\n", touchers[i].name, touchers[i].pages);
	return 0;
}
