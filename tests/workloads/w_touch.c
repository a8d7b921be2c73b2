/*
 * Threads that each write a given, different number of fresh pages and call getppid a known number
 * of times, sleeping and yielding in between. A parent forks the process they live in and adds its
 * faults as wait4 tells them.
 *
 * Invariant: what a thread does after it has read its own faults causes no further fault.
 */
#include "workload.h"

#include <sys/wait.h>

static long nr_threads = 8;
static long pages_first = 100; /* thread i writes pages_first + i * pages_step pages */
static long pages_step = 100;
static long getppid_first = 50; /* and calls getppid getppid_first + i * getppid_step times */
static long getppid_step = 7;

static struct truth *truths;

static void rest(uint64_t turn)
{
	if (turn % 3 == 0)
		sleep_ns(200000 + turn % 5 * 100000);
	else
		sched_yield();
}

static void *run(void *arg)
{
	struct truth *truth = arg;
	long i = truth - truths;
	long pages = pages_first + i * pages_step;
	long calls = getppid_first + i * getppid_step;
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	volatile unsigned char *memory;
	uint64_t turn = 0;

	truth_begin(truth);
	truth->faults = thread_faults(); /* warms the reader up */
	memory = map_zeroed((size_t)pages * page_bytes, MAP_PRIVATE);
	/* A kernel without huge pages refuses this with EINVAL: then every page is small anyway. */
	if (madvise((void *)memory, (size_t)pages * page_bytes, MADV_NOHUGEPAGE) && errno != EINVAL)
		err(1, "madvise");

	while ((long)truth->pages < pages || (long)truth->getppid < calls) {
		for (int k = 0; k < 9 && (long)truth->pages < pages; k++)
			memory[truth->pages++ * page_bytes] = 1;
		for (int k = 0; k < 2 && (long)truth->getppid < calls; k++)
			count_getppid(truth);
		rest(turn++);
	}
	truth->faults = thread_faults();
	leave_thread();
}

static void __attribute__((noreturn)) worker(void)
{
	pthread_t *threads = allocate((size_t)nr_threads, sizeof(*threads));

	for (long i = 0; i < nr_threads; i++)
		thread_start(&threads[i], run, &truths[i]);
	for (long i = 0; i < nr_threads; i++)
		thread_join(threads[i]);
	_exit(0);
}

int main(int argc, char **argv)
{
	const struct option_number options[] = {
		{ "--threads", 1, 512, &nr_threads },
		{ "--pages", 0, 1000000, &pages_first },
		{ "--pages-step", 0, 100000, &pages_step },
		{ "--getppid", 0, 1000000, &getppid_first },
		{ "--getppid-step", 0, 100000, &getppid_step },
		{ NULL, 0, 0, NULL },
	};
	FILE *out = options_parse(argc, argv, options);
	struct rusage usage;
	int status;
	pid_t pid;

	truths = truths_open((size_t)nr_threads);
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (!pid)
		worker();
	if (wait4(pid, &status, 0, &usage) != pid)
		err(1, "wait4");
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		errx(1, "the worker process failed");
	truths_print(out, truths, (size_t)nr_threads);
	fprintf(out, "{\"what\":\"process\",\"pid\":%d,\"faults\":%ld}\n", pid,
		usage.ru_minflt + usage.ru_majflt);
	truth_close(out);
	return 0;
}
