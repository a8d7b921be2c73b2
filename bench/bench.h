/*
 * What the benchmarks share: the clock, random numbers, medians, and the two ways to print.
 *
 * Invariant: what is compared runs in turns within one process, so that a busy machine slows down
 * both sides; and what was computed is checked, so that no loop can be optimised away.
 */
#ifndef CSW_BENCH_BENCH_H
#define CSW_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BENCH_ROUNDS 9 /* odd, for a median that was measured */

struct bench_args {
	bool json;
	bool quick; /* tiny sizes: does it work at all? */
};

static inline void bench_args_parse(struct bench_args *args, int argc, char **argv)
{
	*args = (struct bench_args){ .json = false };
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json")) {
			args->json = true;
		} else if (!strcmp(argv[i], "--quick")) {
			args->quick = true;
		} else {
			fprintf(stderr, "usage: %s [--json] [--quick]\n", argv[0]);
			exit(2);
		}
	}
}

static inline double bench_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* xorshift64: the same numbers on every run. */
static inline uint64_t bench_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static inline int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts the values. */
static inline double bench_median(double values[BENCH_ROUNDS])
{
	qsort(values, BENCH_ROUNDS, sizeof(*values), bench_compare);
	return values[BENCH_ROUNDS / 2];
}

static inline void *bench_allocate(size_t nr, size_t bytes)
{
	void *at = calloc(nr, bytes);

	if (!at) {
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
	return at;
}

#endif
