/*
 * Threads that compute for a given time on whatever CPUs there are, and report their own CPU time.
 *
 * Invariant: a thread reads its CPU time after a sleep of 2 ms, because the kernel's figure of a
 * thread that has been running is up to a tick old, and leaves at once after it.
 */
#include "workload.h"

static long nr_threads = 8;
static long milliseconds = 5000;

static struct truth *truths;
static uint64_t end_ns;

static void *run(void *arg)
{
	struct truth *truth = arg;

	truth_begin(truth);
	while (clock_ns(CLOCK_MONOTONIC) < end_ns)
		for (volatile int i = 0; i < 10000; i++)
			;
	sleep_ns(2000000);
	truth->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	leave_thread();
}

int main(int argc, char **argv)
{
	const struct option_number options[] = {
		{ "--threads", 1, 512, &nr_threads },
		{ "--ms", 1, 600000, &milliseconds },
		{ NULL, 0, 0, NULL },
	};
	FILE *out = options_parse(argc, argv, options);
	pthread_t *threads = allocate((size_t)nr_threads, sizeof(*threads));

	truths = truths_open((size_t)nr_threads);
	end_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)milliseconds * 1000000;
	for (long i = 0; i < nr_threads; i++)
		thread_start(&threads[i], run, &truths[i]);
	for (long i = 0; i < nr_threads; i++)
		thread_join(threads[i]);
	truths_print(out, truths, (size_t)nr_threads);
	truth_close(out);
	free(threads);
	return 0;
}
