/*
 * perf records the machine beside a live csw-sample; its file must say the same of every thread
 * that lived through both, and what the threads know of themselves.
 *
 * Invariant: the two sides share no counter: perf has its own group and its own ring.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "truth.h"

#define FAULTS "page-faults"
#define CLOCK "task-clock"
#define FAULTS_TOLERANCE 2
#define KEY_BYTES 64
/* Both sides take the time of a switch one after the other. */
#define NS_PER_SLICE 20000

static char dir[64], data[96];

/* ---- perf ---- */

#define RECORD "perf record -a -c 1 -e {context-switches,task-clock,page-faults}:S --switch-events"

static pid_t perf_start(void)
{
	char command[256];

	snprintf(command, sizeof(command), RECORD " -m 2048 -o %s", data);
	/* It synthesizes all that is there before it begins. */
	return truth_recorder_start(command, true, 1500);
}

static void perf_stop(pid_t pid)
{
	sleep_ms(200);
	truth_recorder_stop(pid, SIGINT);
}

static const char *perf_missing(void)
{
	if (system("perf record -a -c 1 -e '{context-switches,task-clock,page-faults}:S' "
		   "--switch-events -o /dev/null -- true >/dev/null 2>&1"))
		return "perf is not installed or cannot record the machine";
	return NULL;
}

/* ---- its file ---- */

static json_t *run_json(const char *command)
{
	char line[512];
	json_t *json;
	FILE *out;

	snprintf(line, sizeof(line), "%s %s -i %s --format=json", CSW_SAMPLE, command, data);
	out = popen(line, "r");
	assert_non_null(out);
	json = json_loadf(out, 0, NULL);
	assert_int_equal(pclose(out), 0);
	assert_non_null(json);
	return json;
}

static const json_t *row_of(const json_t *report, int32_t pid, int32_t tid)
{
	const json_t *found = NULL, *row;
	size_t i;

	json_array_foreach(json_object_get(report, "rows"), i, row)
	{
		if (json_integer_value(json_object_get(row, "pid")) != pid ||
		    json_integer_value(json_object_get(row, "tid")) != tid)
			continue;
		assert_null(found);
		found = row;
	}
	if (!found)
		fail_msg("no row for thread %d in perf's file", tid);
	return found;
}

/* An exiting thread's samples say -1: they are somebody's nevertheless. */
static void check_nobody(const json_t *report)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(report, "rows"), i, row)
	{
		const json_t *tid = json_object_get(row, "tid");

		if (!truth_is_kind(row, "thread") && !truth_is_kind(row, "kernel"))
			continue;
		assert_true(json_is_integer(tid) && json_integer_value(tid) > 0);
	}
}

/* ---- slices ---- */

struct sums {
	json_t *rows; /* key -> { oncpu_ns, FAULTS, CLOCK } */
};

static json_t *entry_of(struct sums *sums, const json_t *object)
{
	const json_t *pid = json_object_get(object, "pid"), *tid = json_object_get(object, "tid");
	char key[KEY_BYTES];
	json_t *entry;

	snprintf(key, sizeof(key), "%s %lld %lld",
		 json_string_value(json_object_get(object, "kind")),
		 json_is_null(pid) ? -1 : json_integer_value(pid),
		 json_is_null(tid) ? -1 : json_integer_value(tid));
	entry = json_object_get(sums->rows, key);
	if (!entry) {
		entry = json_pack("{s:i,s:i,s:i}", "oncpu_ns", 0, FAULTS, 0, CLOCK, 0);
		json_object_set_new(sums->rows, key, entry);
	}
	return entry;
}

static void add_to(json_t *entry, const char *key, int64_t value)
{
	json_object_set_new(entry, key,
			    json_integer(json_integer_value(json_object_get(entry, key)) + value));
}

static void check_slices(const json_t *report)
{
	struct sums table = { json_object() }, slices = { json_object() };
	char command[512];
	char *line = NULL;
	size_t bytes = 0, nr = 0, i;
	const char *key;
	json_t *row, *entry;
	FILE *out;

	json_array_foreach(json_object_get(report, "rows"), i, row)
	{
		json_t *counts = json_object_get(row, "counts");

		entry = entry_of(&table, row);
		add_to(entry, "oncpu_ns", truth_integer(row, "oncpu_ns"));
		add_to(entry, FAULTS,
		       json_integer_value(
			       json_object_get(json_object_get(counts, FAULTS), "value")));
		add_to(entry, CLOCK,
		       json_integer_value(
			       json_object_get(json_object_get(counts, CLOCK), "value")));
	}
	snprintf(command, sizeof(command), "%s slices -i %s --format=json", CSW_SAMPLE, data);
	out = popen(command, "r");
	assert_non_null(out);
	while (getline(&line, &bytes, out) > 0) {
		json_t *slice = json_loads(line, 0, NULL), *counts;

		assert_non_null(slice);
		counts = json_object_get(slice, "counts");
		entry = entry_of(&slices, slice);
		add_to(entry, "oncpu_ns", truth_integer(slice, "oncpu_ns"));
		add_to(entry, FAULTS, truth_integer(counts, FAULTS));
		add_to(entry, CLOCK, truth_integer(counts, CLOCK));
		json_decref(slice);
		nr++;
	}
	free(line);
	assert_int_equal(pclose(out), 0);
	json_object_foreach(table.rows, key, entry)
	{
		json_t *sum = json_object_get(slices.rows, key);

		/* A row may have a switch and no time at all. */
		if (!sum && !truth_integer(entry, "oncpu_ns") && !truth_integer(entry, FAULTS))
			continue;
		if (!sum || !json_equal(sum, entry))
			fail_msg("%s: slices do not add up to the row", key);
	}
	printf("figure: perf's file: %zu slices add up to %zu rows\n", nr,
	       json_object_size(table.rows));
	assert_true(nr > 100);
	json_decref(table.rows);
	json_decref(slices.rows);
}

/* ---- the comparison ---- */

struct difference {
	int64_t faults, slices, worst_ns;
	size_t off;         /* threads whose times differ by more than the switches can explain */
	int64_t worst_away; /* page faults in the file from what a thread knows of itself */
};

static void compare(const struct truth_run *run, const json_t *report,
		    const struct truth_thread *thread, struct difference *all)
{
	const json_t *live = truth_row(run, thread->pid, thread->tid);
	const json_t *file = row_of(report, thread->pid, thread->tid);
	int64_t slices, ns;

	assert_non_null(live);
	slices = llabs(truth_integer(live, "slices") - truth_integer(file, "slices"));
	ns = llabs(truth_integer(live, "oncpu_ns") - truth_integer(file, "oncpu_ns"));
	all->faults += llabs(truth_proven_count(live, FAULTS) - truth_proven_count(file, FAULTS));
	all->slices += slices;
	all->worst_ns = ns > all->worst_ns ? ns : all->worst_ns;
	/* The host may stop this machine between the two recorders' looks at their clocks: then the
	 * run is repeated. */
	all->off += ns > NS_PER_SLICE * (truth_integer(live, "slices") + 1) + 1000000 * slices;
	assert_string_equal(json_string_value(json_object_get(live, "comm")),
			    json_string_value(json_object_get(file, "comm")));
}

/* Where some of the machine was not proven, as much may be missing, on each side something else.
 * Returns whether nothing was. */
static bool measure(const char *workload, size_t nr_threads, bool knows_faults)
{
	struct difference all = { .faults = 0 };
	struct truth_run run;
	int64_t unproven;
	json_t *report;
	pid_t perf;

	perf = perf_start();
	truth_start(&run, "--event=" FAULTS "," CLOCK, workload);
	truth_finish(&run);
	perf_stop(perf);
	truth_check_sums(&run);
	report = run_json("report");
	check_nobody(report);
	assert_int_equal(run.nr_threads, nr_threads);
	unproven = truth_unproven(run.report, FAULTS) + truth_unproven(report, FAULTS);
	for (size_t i = 0; i < run.nr_threads; i++) {
		const struct truth_thread *thread = &run.threads[i];

		compare(&run, report, thread, &all);
		if (knows_faults) {
			int64_t away =
				llabs(truth_proven_count(row_of(report, thread->pid, thread->tid),
							 FAULTS) -
				      thread->faults);

			assert_true(away <= FAULTS_TOLERANCE + unproven);
			all.worst_away = away > all.worst_away ? away : all.worst_away;
		}
	}
	printf("figure: perf's file and live, %zu threads: page faults differ by %" PRId64
	       ", slices by %" PRId64 ", on-CPU time at most by %" PRId64
	       " ns; from what threads know themselves at most %" PRId64 " away; unproven %" PRId64
	       "\n",
	       run.nr_threads, all.faults, all.slices, all.worst_ns, all.worst_away, unproven);
	assert_true(all.faults <= 2 * unproven);
	check_slices(report);
	json_decref(report);
	truth_free(&run);
	return !all.faults && !all.slices && !all.off && all.worst_away <= FAULTS_TOLERANCE;
}

static void measure_exact(const char *workload, size_t nr_threads, bool knows_faults)
{
	int attempts = TRUTH_ATTEMPTS;

	while (!measure(workload, nr_threads, knows_faults)) {
		if (--attempts == 0)
			fail_msg("in %d runs the two sides differed", TRUTH_ATTEMPTS);
	}
}

static void test_eight_threads(void **state)
{
	(void)state;
	measure_exact("w_touch --threads=8", 8, true);
}

static void test_short_threads(void **state)
{
	(void)state;
	measure_exact("w_short --threads=500", 500, false);
}

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/csw-truth-perfdata-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(data, sizeof(data), "%s/perf.data", dir);
	return 0;
}

static int drop_dir(void **state)
{
	char old[128];

	(void)state;
	snprintf(old, sizeof(old), "%s.old", data);
	unlink(old);
	unlink(data);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_eight_threads),
		cmocka_unit_test(test_short_threads),
	};
	const char *reason = truth_refused();

	if (!reason)
		reason = perf_missing();
	return reason ? truth_skip(reason) : cmocka_run_group_tests(tests, make_dir, drop_dir);
}
