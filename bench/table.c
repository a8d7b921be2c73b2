/*
 * What it costs to add a slice to a row of the aggregation table.
 *
 * The same rows in the same random order are updated twice in turns: by csw_aggregation_count, and
 * by a bare loop that adds to the same nine words, sum, minimum and maximum of three counters, and
 * does no more. So both need the same cache lines, and their ratio is what the comparisons and the
 * table itself cost beside the memory, on whatever machine.
 */
#include "bench/bench.h"

#include "engine/table.h"

#define COUNTERS 3
#define DELTAS 1024 /* a power of two */
#define GOAL_RATIO 1.5
#define GOAL_ROW_BYTES 256

struct work {
	struct csw_aggregation agg;
	uint32_t *order; /* rows, at random */
	size_t nr_updates;
	uint64_t (*deltas)[COUNTERS];
	uint64_t nothing; /* 0, but the compiler does not know */
};

struct result {
	size_t rows;
	double ns, bare_ns, ratio; /* medians, per update */
};

static void fill_work(struct work *w, size_t rows, size_t updates)
{
	uint64_t seed = 88172645463325252ull;

	*w = (struct work){ .nr_updates = updates };
	__asm__("" : "+m"(w->nothing));
	if (csw_aggregation_init(&w->agg, COUNTERS, false))
		exit(1);
	while (w->agg.nr < rows)
		if (csw_aggregation_add(&w->agg, CSW_KIND_THREAD, 1, (int32_t)w->agg.nr, 1) < 0)
			exit(1);
	w->order = bench_allocate(updates, sizeof(*w->order));
	w->deltas = bench_allocate(DELTAS, sizeof(*w->deltas));
	for (size_t i = 0; i < updates; i++)
		w->order[i] = (uint32_t)(bench_random(&seed) % rows);
	for (size_t i = 0; i < DELTAS; i++)
		for (unsigned c = 0; c < COUNTERS; c++)
			w->deltas[i][c] = bench_random(&seed) % 100000;
}

static void free_work(struct work *w)
{
	csw_aggregation_free(&w->agg);
	free(w->order);
	free(w->deltas);
}

static double run_table(struct work *w)
{
	double start = bench_now_ns();

	for (size_t i = 0; i < w->nr_updates; i++)
		csw_aggregation_count(&w->agg, w->order[i], w->deltas[i & (DELTAS - 1)], true);
	return (bench_now_ns() - start) / (double)w->nr_updates;
}

/* Reads and writes what a row's update has to. */
static double run_bare(struct work *w)
{
	const uint64_t nothing = w->nothing;
	double start = bench_now_ns();

	for (size_t i = 0; i < w->nr_updates; i++) {
		struct csw_agg_row *row = csw_aggregation_row(&w->agg, w->order[i]);
		const uint64_t *delta = w->deltas[i & (DELTAS - 1)];

		for (unsigned c = 0; c < COUNTERS; c++) {
			row->cells[c].sum += delta[c];
			row->cells[c].min += nothing;
			row->cells[c].max += nothing;
		}
	}
	return (bench_now_ns() - start) / (double)w->nr_updates;
}

/* All sums together are what all passes added. */
static bool adds_up(const struct work *w, unsigned passes)
{
	uint64_t expected = 0, sum = 0;

	for (size_t i = 0; i < w->nr_updates; i++)
		for (unsigned c = 0; c < COUNTERS; c++)
			expected += w->deltas[i & (DELTAS - 1)][c];
	for (size_t r = 0; r < w->agg.nr; r++)
		for (unsigned c = 0; c < COUNTERS; c++)
			sum += csw_aggregation_row(&w->agg, (uint32_t)r)->cells[c].sum;
	return sum == expected * passes;
}

static bool measure(struct result *result, size_t rows, size_t updates, size_t *row_bytes)
{
	double ns[BENCH_ROUNDS], bare[BENCH_ROUNDS], ratio[BENCH_ROUNDS];
	struct work w;
	bool right;

	fill_work(&w, rows, updates);
	run_bare(&w); /* the pages and caches are warm for both */
	for (int i = 0; i < BENCH_ROUNDS; i++) {
		bare[i] = run_bare(&w);
		ns[i] = run_table(&w);
		ratio[i] = ns[i] / bare[i];
	}
	right = adds_up(&w, 1 + 2 * BENCH_ROUNDS);
	*row_bytes = w.agg.stride;
	*result =
		(struct result){ rows, bench_median(ns), bench_median(bare), bench_median(ratio) };
	free_work(&w);
	return right;
}

static void print_text(const struct result *results, size_t nr, size_t row_bytes)
{
	printf("%10s %14s %12s %12s %8s  (goal: ratio <= %.1f)\n", "rows", "updates/s", "ns/update",
	       "bare ns", "ratio", GOAL_RATIO);
	for (size_t i = 0; i < nr; i++)
		printf("%10zu %14.0f %12.2f %12.2f %8.2f\n", results[i].rows, 1e9 / results[i].ns,
		       results[i].ns, results[i].bare_ns, results[i].ratio);
	printf("%zu bytes per row with %d counters (goal: <= %d)\n", row_bytes, COUNTERS,
	       GOAL_ROW_BYTES);
}

static void print_json(const struct result *results, size_t nr, size_t row_bytes)
{
	printf("{ \"bench\": \"table\", \"row_bytes\": %zu, \"row_bytes_goal\": %d, "
	       "\"ratio_goal\": %.1f, \"results\": [",
	       row_bytes, GOAL_ROW_BYTES, GOAL_RATIO);
	for (size_t i = 0; i < nr; i++)
		printf("%s\n  { \"rows\": %zu, \"updates_per_s\": %.0f, \"ns\": %.3f, "
		       "\"bare_ns\": %.3f, \"ratio\": %.3f }",
		       i ? "," : "", results[i].rows, 1e9 / results[i].ns, results[i].ns,
		       results[i].bare_ns, results[i].ratio);
	printf("\n] }\n");
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 1000, 100000, 1000000 };
	enum { NR = sizeof(sizes) / sizeof(sizes[0]) };
	struct result results[NR];
	struct bench_args args;
	size_t row_bytes = 0;

	bench_args_parse(&args, argc, argv);
	for (size_t i = 0; i < NR; i++) {
		size_t rows = args.quick ? sizes[i] / 100 : sizes[i];

		if (!measure(&results[i], rows, args.quick ? 10000 : 4000000, &row_bytes)) {
			fprintf(stderr, "the table does not add up\n");
			return 1;
		}
	}
	(args.json ? print_json : print_text)(results, NR, row_bytes);
	return 0;
}
