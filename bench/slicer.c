/*
 * What a context switch costs from the ring's record to the table's row: merge, slicer, tasks,
 * rules, table, for three records a switch (sample, switch-out, switch-in) with three counters.
 *
 * The records are the simulated machine's own, made before the clock runs and kept as they are; a
 * driver that only hands them out stands for the rings. In turns with it a bare loop copies the
 * same records out, which is what any reader has to do.
 */
#include "bench/bench.h"

#include <errno.h>

#include "drivers/sim/sim.h"
#include "engine/merge.h"
#include "engine/slicer.h"
#include "engine/spec.h"

#define EVENTS "LLC_MISSES,instructions,page-faults"
#define COUNTERS 3
#define CPUS 4
#define RECORD_BYTES (offsetof(struct csw_record, values) + (1 + COUNTERS) * sizeof(uint64_t))

/* Records of one ring, or those of the start scan. They are cut off behind their readings. */
struct tape {
	unsigned char *bytes;
	size_t nr, capacity, at;
};

/* What the bench hands to csw_merge as a driver. */
struct tapes {
	struct tape scan, ring[CPUS];
	struct csw_plan plan;
	uint64_t switches;
};

struct result {
	size_t threads;
	uint64_t switches, rows;
	double ns, bare_ns, ratio; /* medians, per switch */
};

static void tape_put(struct tape *tape, const struct csw_record *rec)
{
	if (tape->nr == tape->capacity) {
		tape->capacity = tape->capacity ? 2 * tape->capacity : 1024;
		tape->bytes = realloc(tape->bytes, tape->capacity * RECORD_BYTES);
		if (!tape->bytes)
			exit(1);
	}
	memcpy(tape->bytes + tape->nr++ * RECORD_BYTES, rec, RECORD_BYTES);
}

static inline bool tape_get(struct tape *tape, struct csw_record *rec)
{
	if (tape->at == tape->nr)
		return false;
	memcpy(rec, tape->bytes + tape->at++ * RECORD_BYTES, RECORD_BYTES);
	return true;
}

static void rewind_tapes(struct tapes *t)
{
	t->scan.at = 0;
	for (unsigned i = 0; i < CPUS; i++)
		t->ring[i].at = 0;
}

/* ---- a driver of tapes ---- */

static unsigned tapes_rings(const struct csw_driver *drv)
{
	(void)drv;
	return CPUS;
}

static uint64_t tapes_snapshot(struct csw_driver *drv)
{
	(void)drv;
	return UINT64_MAX;
}

static int tapes_next(struct csw_driver *drv, unsigned ring, struct csw_record *rec)
{
	return tape_get(&((struct tapes *)(void *)drv)->ring[ring], rec);
}

static const struct csw_driver_ops tapes_driver = {
	.name = "tapes",
	.nr_rings = tapes_rings,
	.nr_cpus = tapes_rings,
	.snapshot = tapes_snapshot,
	.next = tapes_next,
};

/* ---- making the tapes ---- */

static void put_scanned(void *ctx, const struct csw_record *rec)
{
	tape_put(ctx, rec);
}

static void take_rings(struct tapes *t, struct csw_driver *drv)
{
	struct csw_record rec = { .type = CSW_RECORD_NONE };

	csw_sim_driver.snapshot(drv);
	for (unsigned i = 0; i < CPUS; i++) {
		while (csw_sim_driver.next(drv, i, &rec) > 0) {
			tape_put(&t->ring[i], &rec);
			t->switches += rec.type == CSW_RECORD_SWITCH_OUT;
		}
	}
}

static void record_tapes(struct tapes *t, size_t threads, unsigned duration_ms)
{
	const struct csw_driver_ops *sim = &csw_sim_driver;
	struct csw_sink sink = { put_scanned, &t->scan };
	struct csw_error err = { .code = 0 };
	struct csw_driver *drv;
	char options[128];

	*t = (struct tapes){ .switches = 0 };
	snprintf(options, sizeof(options),
		 "cpus=%d,threads=%zu,processes=%zu,pid_max=4194304,switches=100000,churn=0,"
		 "duration_ms=%u",
		 CPUS, threads, threads / 10 + 1, duration_ms);
	t->plan.driver_opts = options;
	if (csw_spec_plan(&t->plan, sim, "switch", EVENTS, 1, &err) < 0)
		goto fail;
	if (sim->open(&drv, &t->plan, &err) < 0 || sim->start(drv, &sink, &err) < 0)
		goto fail;
	while (sim->wait(drv, 10, &err) > 0)
		take_rings(t, drv);
	if (sim->stop(drv, &err) < 0)
		goto fail;
	take_rings(t, drv);
	sim->close(drv);
	t->plan.driver_opts = NULL;
	return;
fail:
	fprintf(stderr, "%s\n", err.text);
	exit(1);
}

static void free_tapes(struct tapes *t)
{
	free(t->scan.bytes);
	for (unsigned i = 0; i < CPUS; i++)
		free(t->ring[i].bytes);
}

/* ---- measuring ---- */

static int put(void *ctx, const struct csw_record *rec)
{
	return csw_slicer_record(ctx, rec);
}

/* The table holds what the counters say, and the switches that are on the tapes. */
static bool adds_up(const struct tapes *t, const struct csw_slicer *slicer)
{
	uint64_t totals[2 + COUNTERS];

	csw_slicer_totals(slicer, totals);
	for (unsigned c = 0; c < COUNTERS; c++) {
		uint64_t sum = 0;

		for (uint32_t i = 0; i < slicer->agg->nr; i++)
			sum += csw_aggregation_row(slicer->agg, i)->cells[c].sum;
		if (sum != totals[2 + c])
			return false;
	}
	return slicer->slices == t->switches;
}

static double run_engine(struct tapes *t, uint64_t *rows, bool *right)
{
	const struct csw_scope scope = { .nr_pids = 0 };
	struct csw_record rec = { .type = CSW_RECORD_NONE };
	struct csw_aggregation agg;
	struct csw_slicer slicer;
	struct csw_merge merge;
	double start, ns;

	rewind_tapes(t);
	if (csw_aggregation_init(&agg, COUNTERS, false) ||
	    csw_slicer_init(&slicer, &t->plan, &scope, &agg, CPUS) ||
	    csw_merge_init(&merge, &tapes_driver, (struct csw_driver *)(void *)t))
		exit(1);
	while (tape_get(&t->scan, &rec))
		*right = csw_slicer_record(&slicer, &rec) == 0 && *right;
	start = bench_now_ns();
	*right = csw_merge_run(&merge, put, &slicer) == 0 && *right;
	ns = (bench_now_ns() - start) / (double)t->switches;
	*right = adds_up(t, &slicer) && *right;
	*rows = agg.nr;
	csw_merge_free(&merge);
	csw_slicer_free(&slicer);
	csw_aggregation_free(&agg);
	return ns;
}

static double run_bare(struct tapes *t)
{
	struct csw_record rec;
	double start;

	rewind_tapes(t);
	start = bench_now_ns();
	for (unsigned i = 0; i < CPUS; i++) {
		while (tape_get(&t->ring[i], &rec))
			__asm__ volatile("" ::"r"(&rec) : "memory");
	}
	return (bench_now_ns() - start) / (double)t->switches;
}

static bool measure(struct result *result, size_t threads, unsigned duration_ms)
{
	double ns[BENCH_ROUNDS], bare[BENCH_ROUNDS], ratio[BENCH_ROUNDS];
	struct tapes tapes;
	bool right = true;
	uint64_t rows;

	record_tapes(&tapes, threads, duration_ms);
	run_engine(&tapes, &rows, &right);
	for (int i = 0; i < BENCH_ROUNDS; i++) {
		bare[i] = run_bare(&tapes);
		ns[i] = run_engine(&tapes, &rows, &right);
		ratio[i] = ns[i] / bare[i];
	}
	*result = (struct result){ threads,          tapes.switches,     rows,
				   bench_median(ns), bench_median(bare), bench_median(ratio) };
	free_tapes(&tapes);
	return right;
}

static void print_text(const struct result *results, size_t nr)
{
	printf("%10s %10s %10s %12s %12s %8s\n", "threads", "rows", "switches", "ns/switch",
	       "bare ns", "ratio");
	for (size_t i = 0; i < nr; i++)
		printf("%10zu %10llu %10llu %12.1f %12.1f %8.2f\n", results[i].threads,
		       (unsigned long long)results[i].rows, (unsigned long long)results[i].switches,
		       results[i].ns, results[i].bare_ns, results[i].ratio);
}

static void print_json(const struct result *results, size_t nr)
{
	printf("{ \"bench\": \"slicer\", \"counters\": %d, \"cpus\": %d, \"results\": [", COUNTERS,
	       CPUS);
	for (size_t i = 0; i < nr; i++)
		printf("%s\n  { \"threads\": %zu, \"rows\": %llu, \"switches\": %llu, \"ns\": "
		       "%.3f, "
		       "\"bare_ns\": %.3f, \"ratio\": %.3f }",
		       i ? "," : "", results[i].threads, (unsigned long long)results[i].rows,
		       (unsigned long long)results[i].switches, results[i].ns, results[i].bare_ns,
		       results[i].ratio);
	printf("\n] }\n");
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 1000, 100000 };
	enum { NR = sizeof(sizes) / sizeof(sizes[0]) };
	struct result results[NR];
	struct bench_args args;

	bench_args_parse(&args, argc, argv);
	for (size_t i = 0; i < NR; i++) {
		size_t threads = args.quick ? sizes[i] / 100 : sizes[i];

		if (!measure(&results[i], threads, args.quick ? 50 : 1500)) {
			fprintf(stderr, "the table does not add up\n");
			return 1;
		}
	}
	(args.json ? print_json : print_text)(results, NR);
	return 0;
}
