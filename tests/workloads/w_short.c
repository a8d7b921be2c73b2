/*
 * Many threads, each born, counting a few getppid calls and gone within a millisecond, a few at a
 * time. With more threads than the kernel has TIDs the same TID comes again; the truth is in the
 * order of birth.
 *
 * Invariant: thread i calls getppid 3 + i % 5 times, and threads are born in the order of their
 * truths.
 */
#include "workload.h"

#define BATCH_MAX 64

static long nr_threads = 2000;
static long batch = 4;

static struct truth *truths;

static void *run(void *arg)
{
	struct truth *truth = arg;
	long calls = 3 + (truth - truths) % 5;

	truth_begin(truth);
	while ((long)truth->getppid < calls)
		count_getppid(truth);
	return NULL;
}

int main(int argc, char **argv)
{
	const struct option_number options[] = {
		{ "--threads", 1, 1000000, &nr_threads },
		{ "--batch", 1, BATCH_MAX, &batch },
		{ NULL, 0, 0, NULL },
	};
	FILE *out = options_parse(argc, argv, options);
	pthread_t threads[BATCH_MAX];

	truths = truths_open((size_t)nr_threads);
	for (long i = 0; i < nr_threads; i += batch) {
		long nr = nr_threads - i < batch ? nr_threads - i : batch;

		for (long k = 0; k < nr; k++)
			thread_start(&threads[k], run, &truths[i + k]);
		for (long k = 0; k < nr; k++)
			thread_join(threads[k]);
	}
	truths_print(out, truths, (size_t)nr_threads);
	truth_close(out);
	return 0;
}
