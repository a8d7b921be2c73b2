/*
 * Threads that mostly sleep, on any CPU or all on one, and report their own CPU time. An engine
 * that charges idle time to the next thread shows here at once.
 *
 * The kernel lets a thread's CPU time begin at the clock reading of its wake-up, not of the switch,
 * so the thread's own figure holds the way out of idle as well: 10 to 30 us a wake-up on a virtual
 * machine, and no tool that looks at switches sees it. Bursts are therefore long enough, by
 * default, for that to be a small part of them.
 *
 * Invariant: as in w_busy: 2 ms of sleep, the reading, and out.
 */
#include "workload.h"

static long nr_threads = 8;
static long milliseconds = 2000;
static long work_us = 8000;
static long sleep_us = 60000;
static long pin = -1;

static struct truth *truths;
static uint64_t end_ns;

static void *run(void *arg)
{
	struct truth *truth = arg;
	uint64_t now;

	truth_begin(truth);
	while ((now = clock_ns(CLOCK_MONOTONIC)) < end_ns) {
		while (clock_ns(CLOCK_MONOTONIC) < now + (uint64_t)work_us * 1000)
			;
		sleep_ns((uint64_t)sleep_us * 1000);
	}
	sleep_ns(2000000);
	truth->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	leave_thread();
}

int main(int argc, char **argv)
{
	const struct option_number options[] = {
		{ "--threads", 1, 512, &nr_threads },  { "--ms", 1, 600000, &milliseconds },
		{ "--work-us", 1, 1000000, &work_us }, { "--sleep-us", 1, 1000000, &sleep_us },
		{ "--pin", 0, CPU_SETSIZE - 1, &pin }, { NULL, 0, 0, NULL },
	};
	FILE *out = options_parse(argc, argv, options);
	pthread_t *threads = allocate((size_t)nr_threads, sizeof(*threads));

	truths = truths_open((size_t)nr_threads);
	if (pin >= 0)
		pin_to((int)pin); /* threads inherit it */
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
