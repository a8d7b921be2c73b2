/*
 * The fifteen claims of US 8,346,509 B2, each as a test on the simulated machine, through the real
 * engine (docs/claims.md says what each one asks).
 *
 * Claims 1 to 8 are the method: records through merge, slicer and table. Claims 9 to 15 are the
 * apparatus: the library behind csw.h, on a machine whose overflows reset the counters in fact.
 *
 * Invariant: what is compared with is the machine's truth, never another result of the engine; and
 * each claim has a sample-after value or an event with which its check would fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "csw/csw.h"
#include "tests/truth_sim.h"

#define EVENTS "LLC_MISSES,instructions,page-faults"
#define LLC 0
#define NR_EVENTS 3

/* Every process has one thread and none comes or goes: a process switch is a thread switch. */
#define SINGLE_THREADS "threads=12,processes=12,churn=0"

/* ---- the method ---- */

enum level {
	THREADS,   /* each thread has its truth, to the unit */
	PROCESSES, /* ... each process; threads of one process may be mixed with each other */
	NOT_EVEN_PROCESSES,
};

/* What nobody can be charged with, of one process or of several. */
static uint64_t mixed_sum(const struct sim_run *run, bool of_one_process)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < run->agg.nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(&run->agg, i);

		if (row->kind == CSW_KIND_MIXED && (row->pid >= 0) == of_one_process)
			sum += row->cells[LLC].sum;
	}
	return sum;
}

static void check_level(const struct sim_run *run, enum level level)
{
	uint64_t noticed = 0;

	sim_run_check_sums(run);
	for (unsigned i = 0; i < run->slicer.nr_cpus; i++) {
		struct csw_sim_cpu_truth cpu;

		csw_sim_cpu_truth_get(run->drv, i, &cpu);
		noticed += cpu.triggers;
	}
	assert_int_equal(run->done.all, noticed);
	assert_int_equal(run->done.lost + run->done.throttled + run->done.unseen, 0);
	assert_true(run->totals[2 + LLC] > 1000);
	if (level == THREADS)
		sim_run_check_equal(run, 0);
	if (level == PROCESSES)
		sim_run_check_processes(run);
	sim_run_check_processes_never_more(run);
	/* A test that would pass with any sample-after value proves nothing. */
	if (level != NOT_EVEN_PROCESSES)
		assert_int_equal(mixed_sum(run, true) > 0, level == PROCESSES);
	assert_int_equal(mixed_sum(run, false) > 0, level == NOT_EVEN_PROCESSES);
}

static void method(const char *trigger, uint64_t sav, const char *options, enum level level)
{
	struct sim_run run = { .ticks = false };

	sim_run_all(&run, trigger, EVENTS, sav, options);
	check_level(&run, level);
	sim_run_free(&run);
}

/* Switches of all CPUs: between threads of one process, and all others. */
static void count_switches(const struct sim_run *run, uint64_t *thread, uint64_t *process)
{
	*thread = *process = 0;
	for (unsigned i = 0; i < run->slicer.nr_cpus; i++) {
		struct csw_sim_cpu_truth cpu;

		csw_sim_cpu_truth_get(run->drv, i, &cpu);
		*thread += cpu.by_kind[CSW_SIM_TO_THREAD];
		*process += cpu.switches - cpu.by_kind[CSW_SIM_TO_THREAD];
	}
}

/* Two occurrences per process switch and one per thread switch: by its sample-after value the same
 * event of the same run stands for all switches, or for those between processes. */
static void claim_01(void **state)
{
	static const char options[] = "seed=101,model=p5,cpus=2";
	struct sim_run every = { .ticks = false }, process = { .ticks = false };
	uint64_t thread_switches, process_switches;

	(void)state;
	sim_run_all(&every, "desc_load", EVENTS, 1, options);
	check_level(&every, THREADS);
	count_switches(&every, &thread_switches, &process_switches);
	assert_true(thread_switches > 100 && process_switches > 100);
	assert_int_equal(every.done.samples, thread_switches + 2 * process_switches);

	sim_run_all(&process, "desc_load", EVENTS, 2, options);
	check_level(&process, PROCESSES);
	sim_run_check_same_machine(&every, &process);
	assert_int_equal(2 * process.done.samples + (uint64_t)process.done.open,
			 thread_switches + 2 * process_switches);
	sim_run_free(&process);
	sim_run_free(&every);

	method("desc_load", 3, options, NOT_EVEN_PROCESSES);
}

/* An event that only process switches cause tells them alone. */
static void claim_01_processes_alone(void **state)
{
	struct sim_run run = { .ticks = false };
	uint64_t thread_switches, process_switches;

	(void)state;
	sim_run_all(&run, "pid_change", EVENTS, 1, "seed=102,model=arm64,cpus=2");
	check_level(&run, PROCESSES);
	count_switches(&run, &thread_switches, &process_switches);
	assert_true(thread_switches > 100);
	assert_int_equal(run.done.samples, process_switches);
	sim_run_free(&run);
}

/* "... and reset both": an overflow that resets the counters gives the table that subtraction
 * gives.
 */
static void claim_01_reset(void **state)
{
	static const char *const options[] = { "seed=103,model=amd,spurious=100",
					       "seed=103,model=amd,spurious=100,reset=1" };
	static const char *const triggers[] = { "switch", "tid_change", "seg_load", "tlb_flush" };

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct sim_run runs[2] = { { .ticks = i % 2 }, { .ticks = i % 2 } };

		for (int reset = 0; reset < 2; reset++) {
			sim_run_all(&runs[reset], triggers[i], EVENTS, 1, options[reset]);
			sim_run_check_sums(&runs[reset]);
		}
		sim_run_check_same_machine(&runs[0], &runs[1]);
		sim_run_check_same_table(&runs[0], &runs[1]);
		sim_run_free(&runs[0]);
		sim_run_free(&runs[1]);
	}
}

/* A descriptor-table load; interrupts that cause some too cut slices, and change nobody's. */
static void claim_02(void **state)
{
	(void)state;
	method("desc_load", 1, "seed=104,model=p5", THREADS);
	method("desc_load", 1, "seed=104,model=p5,spurious=300", THREADS);
	method("desc_load", 2, "seed=104,model=p5", PROCESSES);
}

/* User threads alone: to and from the idle task and kernel threads, which have no LDT, nothing
 * tells these apart. */
static void check_users(const struct sim_run *run)
{
	for (size_t i = 1; i < csw_sim_truths(run->drv); i++) {
		const struct csw_agg_row *row;
		struct csw_sim_truth truth;

		csw_sim_truth_get(run->drv, i, &truth);
		row = sim_run_row(run, &truth);
		if (truth.kind != CSW_KIND_THREAD || !truth.slices)
			continue;
		assert_non_null(row);
		assert_int_equal(row->slices, truth.slices);
		for (unsigned c = 0; c < NR_EVENTS; c++)
			assert_int_equal(row->cells[c].sum, truth.counts[c]);
	}
}

/* A local descriptor table's load: only to and from a process that has such a table. */
static void claim_03(void **state)
{
	struct sim_run run = { .ticks = false };

	(void)state;
	sim_run_all(&run, "ldt_load", EVENTS, 1, "seed=105,model=p5,ldt=1000," SINGLE_THREADS);
	sim_run_check_sums(&run);
	assert_true(run.done.samples > 1000);
	check_users(&run);
	sim_run_free(&run);
	/* Without such processes nothing is noticed. */
	run = (struct sim_run){ .ticks = false };
	sim_run_all(&run, "ldt_load", EVENTS, 1, "seed=105,model=p5,ldt=0," SINGLE_THREADS);
	assert_int_equal(run.done.all, 0);
	assert_true(mixed_sum(&run, false) > run.totals[2 + LLC] / 2);
	sim_run_free(&run);
}

/* A load from a predetermined address: where the watch sees stores as well (x86), the store of the
 * switch is an occurrence too, and two make one sample. */
static void claim_04(void **state)
{
	(void)state;
	method("mem_load:__entry_task", 1, "seed=106,model=arm64", THREADS);
	method("mem_load:0xffff00007fb8d0c8", 1, "seed=106,model=arm64,spurious=500", THREADS);
	method("mem_load:current_task", 2, "seed=106,model=intel", THREADS);
	method("mem_load:current_task", 4, "seed=106,model=intel", NOT_EVEN_PROCESSES);
}

/* A process-identifier change. */
static void claim_05(void **state)
{
	(void)state;
	method("pid_change", 1, "seed=107,model=arm64", PROCESSES);
	method("pid_change", 1, "seed=107,model=arm64," SINGLE_THREADS, THREADS);
	method("tlb_flush", 1, "seed=107,model=intel,spurious=200", PROCESSES);
	method("pid_change", 2, "seed=107,model=arm64", NOT_EVEN_PROCESSES);
}

/* A thread-identifier change: a register's write, or the store to the variable that says who runs.
 */
static void claim_06(void **state)
{
	(void)state;
	method("tid_change", 1, "seed=108,model=arm64", THREADS);
	method("tid_change", 1, "seed=108,model=intel,floor=2", THREADS);
	method("tid_change", 2, "seed=108,model=arm64", NOT_EVEN_PROCESSES);
}

/* A segment-register load: one per switch, or two with the value that fits. */
static void claim_07(void **state)
{
	(void)state;
	method("seg_load", 1, "seed=109", THREADS);
	method("seg_load", 2, "seed=109,model=amd", THREADS);
	method("seg_load", 1, "seed=109,model=amd,floor=2", THREADS);
	method("seg_load", 2, "seed=109", NOT_EVEN_PROCESSES);
}

/* ---- what is written down with each sample ---- */

/* In memory, one after the other: a process, a thread, the values. */
struct log {
	struct entry {
		int32_t pid, tid;
		uint64_t values[NR_EVENTS];
	} * entries;
	size_t nr, capacity;
};

static int write_down(void *ctx, const struct csw_slice *slice)
{
	struct log *log = ctx;
	struct entry *entry;

	if (log->nr == log->capacity) {
		log->capacity = log->capacity ? 2 * log->capacity : 1024;
		log->entries = realloc(log->entries, log->capacity * sizeof(*log->entries));
		assert_non_null(log->entries);
	}
	assert_int_equal(slice->nr_values, NR_EVENTS);
	entry = &log->entries[log->nr++];
	entry->pid = slice->pid;
	entry->tid = slice->tid;
	memcpy(entry->values, slice->values, sizeof(entry->values));
	return 0;
}

/* ---- the apparatus ---- */

static struct csw_table *measure(const char *trigger, uint64_t sav, const char *driver,
				 enum csw_by by, struct log *log)
{
	struct csw_opts opts = { .size = sizeof(opts), .driver = driver, .sav = sav };
	struct csw_session *s;
	struct csw_table *table;
	struct csw_error err;
	int ret;

	if (csw_open(&s, trigger, EVENTS, &opts, &err) < 0)
		fail_msg("%s", err.text);
	if (log)
		assert_int_equal(csw_on_slice(s, write_down, log, &err), 0);
	assert_int_equal(csw_start(s, &err), 0);
	while ((ret = csw_poll(s, 50, &err)) > 0)
		;
	assert_int_equal(ret, 0);
	assert_int_equal(csw_stop(s, &err), 0);
	assert_int_equal(csw_table_open(&table, s, by, NULL, &err), 0);
	csw_close(s);
	return table;
}

/* What rows of this thread (tid -1: process) have of a counter. */
static uint64_t table_sum(const struct csw_table *table, const struct csw_sim_truth *truth,
			  bool process, size_t counter)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < csw_table_rows(table); i++) {
		const struct csw_row *row = csw_table_row(table, i);
		struct csw_count count;

		if (truth->kind == CSW_KIND_IDLE ? row->kind != CSW_KIND_IDLE
						 : row->pid != truth->pid)
			continue;
		if (truth->kind != CSW_KIND_IDLE && !process &&
		    (row->tid != truth->tid || row->birth_ns != truth->birth_ns))
			continue;
		assert_int_equal(csw_table_count(table, i, counter, &count), 0);
		sum += count.value;
	}
	return sum;
}

static uint64_t truth_sum(const struct csw_driver *drv, const struct csw_sim_truth *truth,
			  bool process, unsigned counter)
{
	struct csw_sim_truth other;
	uint64_t sum = 0;

	if (!process)
		return truth->counts[counter];
	for (size_t i = 0; i < csw_sim_truths(drv); i++) {
		csw_sim_truth_get(drv, i, &other);
		if (other.pid == truth->pid)
			sum += other.counts[counter];
	}
	return sum;
}

/* The table against the truth of the same machine, which another run of it tells. users: only
 * those.
 */
static void check_table(const struct csw_table *table, const char *trigger, uint64_t sav,
			const char *options, enum level level, bool users)
{
	struct sim_run run = { .ticks = false };
	bool process = level == PROCESSES;

	sim_run_all(&run, trigger, EVENTS, sav, options);
	for (size_t i = 0; i < csw_sim_truths(run.drv); i++) {
		struct csw_sim_truth truth;

		csw_sim_truth_get(run.drv, i, &truth);
		if (users && truth.kind != CSW_KIND_THREAD)
			continue;
		for (unsigned c = 0; c < NR_EVENTS; c++)
			assert_int_equal(table_sum(table, &truth, process, c),
					 truth_sum(run.drv, &truth, process, c));
	}
	sim_run_free(&run);
}

/* The run has its length in its options: a session has one too, by default. */
#define APPARATUS "sim:duration_ms=500,reset=1,"
#define MACHINE "duration_ms=500,"

static void apparatus_for(const char *trigger, uint64_t sav, const char *options, enum level level,
			  bool users)
{
	char driver[256], machine[256];
	struct csw_summary summary;
	struct csw_table *table;

	assert_true(strlen(options) < 128);
	strcat(strcpy(driver, APPARATUS), options);
	strcat(strcpy(machine, MACHINE), options);
	table = measure(trigger, sav, driver, CSW_BY_THREAD, NULL);
	assert_int_equal(csw_table_summary(table, &summary, sizeof(summary)), 0);
	assert_int_equal(summary.broken, 0);
	assert_true(summary.samples > 500);
	check_table(table, trigger, sav, machine, level, users);
	csw_table_close(table);
}

static void apparatus(const char *trigger, uint64_t sav, const char *options, enum level level)
{
	apparatus_for(trigger, sav, options, level, false);
}

static bool log_has_truth(const struct log *log, const struct csw_sim_truth *truth)
{
	uint64_t sums[NR_EVENTS] = { 0 };

	for (size_t i = 0; i < log->nr; i++) {
		const struct entry *entry = &log->entries[i];

		for (unsigned c = 0; entry->tid == truth->tid && c < NR_EVENTS; c++) {
			sums[c] += entry->values[c];
			assert_int_equal(entry->pid, truth->pid);
		}
	}
	return memcmp(sums, truth->counts, sizeof(sums)) == 0;
}

/* Each sampled value is recorded with its process and thread; what is recorded of a thread adds up
 * to what it caused, as the aggregate does. */
static void claim_08(void **state)
{
	static const char options[] = "seed=110,model=p5,duration_ms=500,churn=0";
	struct log log = { .nr = 0 };
	struct sim_run run = { .ticks = false };
	struct csw_table *table;
	char driver[128];

	(void)state;
	strcat(strcpy(driver, "sim:"), options);
	table = measure("desc_load", 1, driver, CSW_BY_THREAD, &log);
	check_table(table, "desc_load", 1, options, THREADS, false);
	csw_table_close(table);
	assert_true(log.nr > 1000);

	sim_run_all(&run, "desc_load", EVENTS, 1, options);
	for (size_t i = 1; i < csw_sim_truths(run.drv); i++) {
		struct csw_sim_truth truth;

		csw_sim_truth_get(run.drv, i, &truth);
		assert_true(log_has_truth(&log, &truth));
	}
	sim_run_free(&run);
	free(log.entries);
}

static void claim_09(void **state)
{
	(void)state;
	apparatus("desc_load", 1, "seed=111,model=p5", THREADS);
	apparatus("desc_load", 2, "seed=111,model=p5", PROCESSES);
	apparatus("pid_change", 1, "seed=111,model=arm64", PROCESSES);
}

static void claim_10(void **state)
{
	(void)state;
	apparatus("desc_load", 1, "seed=112,model=p5,spurious=300", THREADS);
}

static void claim_11(void **state)
{
	(void)state;
	apparatus_for("ldt_load", 1, "seed=113,model=p5,ldt=1000," SINGLE_THREADS, THREADS, true);
}

static void claim_12(void **state)
{
	(void)state;
	apparatus("seg_load", 1, "seed=114", THREADS);
	apparatus("seg_load", 2, "seed=114,model=amd,skid=1", THREADS);
}

static void claim_13(void **state)
{
	(void)state;
	apparatus("mem_load:__entry_task", 1, "seed=115,model=arm64", THREADS);
	apparatus("mem_load:current_task", 2, "seed=115,model=amd", THREADS);
}

static void claim_14(void **state)
{
	(void)state;
	apparatus("pid_change", 1, "seed=116,model=arm64", PROCESSES);
	apparatus("pid_change", 1, "seed=116,model=arm64," SINGLE_THREADS, THREADS);
}

static void claim_15(void **state)
{
	(void)state;
	apparatus("tid_change", 1, "seed=117,model=arm64", THREADS);
	apparatus("tid_change", 1, "seed=117,model=intel", THREADS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(claim_01),       cmocka_unit_test(claim_01_processes_alone),
		cmocka_unit_test(claim_01_reset), cmocka_unit_test(claim_02),
		cmocka_unit_test(claim_03),       cmocka_unit_test(claim_04),
		cmocka_unit_test(claim_05),       cmocka_unit_test(claim_06),
		cmocka_unit_test(claim_07),       cmocka_unit_test(claim_08),
		cmocka_unit_test(claim_09),       cmocka_unit_test(claim_10),
		cmocka_unit_test(claim_11),       cmocka_unit_test(claim_12),
		cmocka_unit_test(claim_13),       cmocka_unit_test(claim_14),
		cmocka_unit_test(claim_15),
	};

	return cmocka_run_group_tests_name("claims", tests, NULL, NULL);
}
