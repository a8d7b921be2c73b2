/*
 * What it costs to take a sample out of a ring: csw_perf_ring_peek, csw_perf_decode, consume.
 *
 * The ring is an image in memory, full of samples with three counters as the driver asks for them,
 * one of them across its end. In turns with it a bare loop reads the same bytes word by word: what
 * the memory costs in any case.
 */
#include "bench/bench.h"

#include "drivers/perf/decode.h"
#include "drivers/perf/group.h"
#include "drivers/perf/ring.h"

#define COUNTERS 3
#define VALUES (1 + COUNTERS) /* the trigger leads */
#define GOAL_NS 25.0
#define RING_BYTES (1u << 20)
#define RECORD_BYTES_MAX 65536

/* As the kernel lays it out for csw_perf_form() of a kernel with PERF_FORMAT_LOST. */
struct sample {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t nr, enabled, running;
	struct {
		uint64_t value, lost;
	} values[VALUES];
};

struct image {
	struct csw_perf_ring ring;
	struct csw_perf_form form;
	uint64_t begin, end; /* free-running positions */
	size_t nr_records;
	uint64_t sum; /* of all values: what decoding must find again */
};

static void put_bytes(struct image *image, uint64_t at, const void *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		image->ring.data[(at + i) % RING_BYTES] = ((const unsigned char *)from)[i];
}

static void fill_image(struct image *image)
{
	static const struct csw_perf_features features;
	struct sample s = { .header = { .type = PERF_RECORD_SAMPLE, .size = sizeof(s) },
			    .nr = VALUES };

	memset(image, 0, sizeof(*image));
	csw_perf_form(&features, &image->form);
	image->ring.page = bench_allocate(1, sizeof(*image->ring.page));
	image->ring.data = bench_allocate(1, RING_BYTES);
	image->ring.straddled = bench_allocate(1, RECORD_BYTES_MAX);
	image->ring.bytes = RING_BYTES;
	/* Half a record before the end of the ring, so that the first one lies across it. */
	image->begin = RING_BYTES - sizeof(s) / 2 / 8 * 8;
	image->nr_records = RING_BYTES / sizeof(s);
	for (size_t i = 0; i < image->nr_records; i++) {
		s.pid = 1000 + (uint32_t)i % 50;
		s.tid = s.pid + (uint32_t)i % 7;
		s.time = 1000000000 + i * 2000;
		s.enabled = s.running = s.time;
		for (unsigned v = 0; v < VALUES; v++) {
			s.values[v].value = i * (v + 1);
			image->sum += s.values[v].value;
		}
		put_bytes(image, image->begin + i * sizeof(s), &s, sizeof(s));
	}
	image->end = image->begin + image->nr_records * sizeof(s);
}

static void free_image(struct image *image)
{
	free(image->ring.page);
	free(image->ring.data);
	free(image->ring.straddled);
}

/* One pass over the ring; false when it did not give back what was put in. */
static bool decode_pass(struct image *image)
{
	struct csw_perf_ring *ring = &image->ring;
	const struct perf_event_header *raw;
	struct csw_record rec;
	uint64_t sum = 0;
	size_t nr = 0;
	int error;

	ring->at = ring->released = image->begin;
	ring->head = image->end;
	while ((raw = csw_perf_ring_peek(ring, &error))) {
		if (csw_perf_decode(&image->form, raw, &rec) != 1)
			return false;
		for (unsigned v = 0; v < VALUES; v++)
			sum += rec.values[v];
		csw_perf_ring_consume(ring, raw);
		nr++;
	}
	return !error && nr == image->nr_records && sum == image->sum;
}

static double run_decode(struct image *image, unsigned passes, bool *right)
{
	double start = bench_now_ns();

	for (unsigned i = 0; i < passes; i++)
		*right = decode_pass(image) && *right;
	return (bench_now_ns() - start) / passes / (double)image->nr_records;
}

static double run_bare(const struct image *image, unsigned passes, uint64_t *sum)
{
	const uint64_t *words = (const uint64_t *)image->ring.data;
	size_t nr = image->nr_records * sizeof(struct sample) / sizeof(*words);
	double start = bench_now_ns();

	for (unsigned i = 0; i < passes; i++) {
		for (size_t w = 0; w < nr; w++)
			*sum += words[w];
		/* The compiler shall not take one pass for all. */
		__asm__ volatile("" ::: "memory");
	}
	return (bench_now_ns() - start) / passes / (double)image->nr_records;
}

int main(int argc, char **argv)
{
	double ns[BENCH_ROUNDS], bare[BENCH_ROUNDS], ratio[BENCH_ROUNDS];
	struct bench_args args;
	struct image image;
	bool right = true;
	uint64_t sum = 0;
	unsigned passes;

	bench_args_parse(&args, argc, argv);
	passes = args.quick ? 1 : 100;
	fill_image(&image);
	run_decode(&image, 1, &right);
	for (int i = 0; i < BENCH_ROUNDS; i++) {
		bare[i] = run_bare(&image, passes, &sum);
		ns[i] = run_decode(&image, passes, &right);
		ratio[i] = ns[i] / bare[i];
	}
	free_image(&image);
	if (!right || !sum) {
		fprintf(stderr, "what was decoded is not what was put in\n");
		return 1;
	}
	printf(args.json ? "{ \"bench\": \"decode\", \"record_bytes\": %zu, \"counters\": %d, "
			   "\"ns\": %.3f, \"bare_ns\": %.3f, \"ratio\": %.3f, \"ns_goal\": %.0f }\n"
			 : "a sample of %zu bytes with %d counters: %.2f ns, its bytes alone %.2f "
			   "ns, "
			   "ratio %.2f (goal: <= %.0f ns)\n",
	       sizeof(struct sample), COUNTERS, bench_median(ns), bench_median(bare),
	       bench_median(ratio), GOAL_NS);
	return 0;
}
