/*
 * What the workloads share: a shared table of truths, one slot a thread, and the few calls whose
 * cost must be known.
 *
 * Invariant: nothing in here calls getppid but count_getppid, and a thread writes to its slot
 * twice: once early, so that the page is there, and once as its last act but for leaving.
 */
#ifndef CSW_TESTS_WORKLOAD_H
#define CSW_TESTS_WORKLOAD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WORKLOAD_NS_PER_S 1000000000ULL

struct truth {
	int32_t pid, tid;
	uint64_t pages;    /* fresh pages written */
	uint64_t getppid;  /* times it called getppid */
	uint64_t faults;   /* its own minor and major faults, read last */
	uint64_t cpu_ns;   /* its own CPU time, read last */
	uint64_t switches; /* away from a CPU, but for the last one, when it is gone */
};

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		err(1, "clock_gettime");
	return (uint64_t)ts.tv_sec * WORKLOAD_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static inline void sleep_ns(uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / WORKLOAD_NS_PER_S),
			       .tv_nsec = (long)(ns % WORKLOAD_NS_PER_S) };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

/* By syscall(2), so that no C library can cache the answer. */
static inline void count_getppid(struct truth *truth)
{
	syscall(SYS_getppid);
	truth->getppid++;
}

static inline uint64_t thread_faults(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage))
		err(1, "getrusage");
	return (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt;
}

static inline uint64_t thread_switches(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage))
		err(1, "getrusage");
	return (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
}

/*
 * Leaves the thread at once. Returning through the C library would run destructors for the first
 * time and fault their pages in after the thread has read its own faults; pthread_join works all
 * the same, the kernel wakes it.
 */
static inline void __attribute__((noreturn)) leave_thread(void)
{
	for (;;)
		syscall(SYS_exit, 0);
}

static inline void *map_zeroed(size_t bytes, int flags)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		err(1, "mmap of %zu bytes", bytes);
	return p;
}

static inline struct truth *truths_open(size_t nr)
{
	return map_zeroed(nr * sizeof(struct truth), MAP_SHARED);
}

static inline void truth_begin(struct truth *truth)
{
	truth->pid = getpid();
	truth->tid = (int32_t)syscall(SYS_gettid);
}

static inline void *allocate(size_t nr, size_t bytes)
{
	void *p = calloc(nr, bytes);

	if (!p)
		err(1, "calloc");
	return p;
}

static inline void pin_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "cannot run on CPU %d", cpu);
}

static inline void thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	ret = pthread_create(thread, &attr, run, arg);
	if (ret)
		errx(1, "pthread_create: %s", strerror(ret));
	pthread_attr_destroy(&attr);
}

static inline void thread_join(pthread_t thread)
{
	int ret = pthread_join(thread, NULL);

	if (ret)
		errx(1, "pthread_join: %s", strerror(ret));
}

/* One line of JSON a thread, in the order of birth. */
static inline void truths_print(FILE *out, const struct truth *truths, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		fprintf(out,
			"{\"what\":\"thread\",\"pid\":%d,\"tid\":%d,\"pages\":%llu,\"getppid\":%"
			"llu,"
			"\"faults\":%llu,\"cpu_ns\":%llu,\"switches\":%llu}\n",
			truths[i].pid, truths[i].tid, (unsigned long long)truths[i].pages,
			(unsigned long long)truths[i].getppid, (unsigned long long)truths[i].faults,
			(unsigned long long)truths[i].cpu_ns,
			(unsigned long long)truths[i].switches);
}

/* The options that all workloads know: --NAME=NUMBER and --truth=FILE. */
struct option_number {
	const char *name;
	long min, max;
	long *value;
};

static inline bool option_parse(const char *arg, const struct option_number *options)
{
	for (; options->name; options++) {
		size_t len = strlen(options->name);
		char *end;

		if (strncmp(arg, options->name, len) || arg[len] != '=')
			continue;
		errno = 0;
		*options->value = strtol(arg + len + 1, &end, 10);
		if (errno || *end || end == arg + len + 1 || *options->value < options->min ||
		    *options->value > options->max)
			errx(2, "%s: from %ld to %ld", arg, options->min, options->max);
		return true;
	}
	return false;
}

static inline FILE *options_parse(int argc, char **argv, const struct option_number *options)
{
	FILE *truth = stdout;

	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--truth=", 8)) {
			truth = fopen(argv[i] + 8, "we");
			if (!truth)
				err(1, "%s", argv[i] + 8);
		} else if (!option_parse(argv[i], options)) {
			errx(2, "%s: no such option", argv[i]);
		}
	}
	return truth;
}

static inline void truth_close(FILE *truth)
{
	if (fflush(truth) || ferror(truth))
		err(1, "cannot write the truth");
	if (truth != stdout && fclose(truth))
		err(1, "cannot write the truth");
}

#endif
