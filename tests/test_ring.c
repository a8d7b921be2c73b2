/* drivers/perf/ring: over plain memory in place of the kernel's mapping. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/perf/ring.h"
#include "drivers/perf/sys.h"

#define RECORD_MAX 65528 /* the largest multiple of 8 in 16 bits */

static unsigned maps, unmaps;
static size_t mapped_bytes;
static int map_error;

static int heap_map(void **out, size_t bytes, int fd)
{
	assert_int_equal(fd, 17);
	if (map_error)
		return map_error;
	*out = aligned_alloc(8, bytes);
	assert_non_null(*out);
	memset(*out, 0, bytes);
	mapped_bytes = bytes;
	maps++;
	return 0;
}

static void heap_unmap(void *at, size_t bytes)
{
	assert_int_equal(bytes, mapped_bytes);
	unmaps++;
	free(at);
}

static int setup(void **state)
{
	(void)state;
	csw_perf_sys.map = heap_map;
	csw_perf_sys.unmap = heap_unmap;
	maps = unmaps = 0;
	map_error = 0;
	return 0;
}

static void begin(struct csw_perf_ring *ring, size_t pages)
{
	assert_int_equal(csw_perf_ring_map(ring, 17, pages * (size_t)sysconf(_SC_PAGESIZE)), 0);
}

static void end(struct csw_perf_ring *ring)
{
	csw_perf_ring_unmap(ring);
	assert_int_equal(maps, unmaps);
	/* Twice is fine. */
	csw_perf_ring_unmap(ring);
	assert_int_equal(maps, unmaps);
}

/* The kernel's side: a record of `size` bytes whose body is made of `seed`. */
static void write_record(struct csw_perf_ring *ring, uint16_t size, unsigned seed)
{
	const struct perf_event_header header = { .type = seed, .size = size };
	uint64_t at = ring->page->data_head;

	for (size_t i = 0; i < size; i++) {
		unsigned char byte = (unsigned char)(seed * 31 + i * 7);

		if (i < sizeof(header))
			memcpy(&byte, (const unsigned char *)&header + i, 1);
		ring->data[(at + i) & (ring->bytes - 1)] = byte;
	}
	ring->page->data_head = at + size;
}

static void check_record(const struct perf_event_header *rec, uint16_t size, unsigned seed)
{
	assert_non_null(rec);
	assert_int_equal(rec->size, size);
	assert_int_equal(rec->type, seed);
	for (size_t i = sizeof(*rec); i < size; i++)
		assert_int_equal(((const unsigned char *)rec)[i],
				 (unsigned char)(seed * 31 + i * 7));
}

/* A reader and a writer that have come to this position. */
static void set_position(struct csw_perf_ring *ring, uint64_t at)
{
	ring->at = ring->head = ring->released = at;
	ring->page->data_head = ring->page->data_tail = at;
}

/* One record, beginning at every offset of the ring. */
static void check_everywhere(uint16_t size)
{
	struct csw_perf_ring ring;
	int error;

	begin(&ring, 1);
	for (size_t offset = 0; offset < ring.bytes; offset += 8) {
		set_position(&ring, 5 * ring.bytes + offset);
		write_record(&ring, size, (unsigned)offset);
		csw_perf_ring_snapshot(&ring);
		check_record(csw_perf_ring_peek(&ring, &error), size, (unsigned)offset);
		assert_int_equal(error, 0);
		/* Peeking moves nothing. */
		check_record(csw_perf_ring_peek(&ring, &error), size, (unsigned)offset);
		csw_perf_ring_consume(&ring, csw_perf_ring_peek(&ring, &error));
		assert_null(csw_perf_ring_peek(&ring, &error));
		assert_int_equal(error, 0);
	}
	end(&ring);
}

static void test_every_offset(void **state)
{
	(void)state;
	check_everywhere(8);
	check_everywhere(16);
	check_everywhere(232);
	check_everywhere((uint16_t)sysconf(_SC_PAGESIZE)); /* the whole ring */
}

/* The largest record there is, across the end. */
static void test_largest(void **state)
{
	struct csw_perf_ring ring;
	int error;

	(void)state;
	begin(&ring, 32);
	for (size_t before = 8; before < RECORD_MAX; before += 8 * 1021) {
		set_position(&ring, ring.bytes - before);
		write_record(&ring, RECORD_MAX, 3);
		csw_perf_ring_snapshot(&ring);
		check_record(csw_perf_ring_peek(&ring, &error), RECORD_MAX, 3);
	}
	end(&ring);
}

static void check_malformed(uint16_t size, uint64_t filled)
{
	struct csw_perf_ring ring;
	struct perf_event_header *header;
	int error;

	begin(&ring, 1);
	set_position(&ring, ring.bytes - 16);
	write_record(&ring, 16, 1);
	header = (void *)(ring.data + ring.bytes - 16);
	header->size = size;
	ring.page->data_head = ring.at + filled;
	csw_perf_ring_snapshot(&ring);
	assert_null(csw_perf_ring_peek(&ring, &error));
	assert_int_equal(error, -EINVAL);
	/* It does not go away. */
	assert_null(csw_perf_ring_peek(&ring, &error));
	assert_int_equal(error, -EINVAL);
	end(&ring);
}

static void test_malformed(void **state)
{
	(void)state;
	check_malformed(0, 64);
	check_malformed(4, 64);
	check_malformed(7, 64);
	check_malformed(9, 64);
	check_malformed(20, 64);
	check_malformed(65535, 4096);
	check_malformed(72, 64);
	check_malformed(24, 16);
	check_malformed(16, 8);
	check_malformed(65528, 4096);
}

/* Only the snapshot counts: what is written meanwhile waits for the next one. */
static void test_snapshot(void **state)
{
	struct csw_perf_ring ring;
	int error;

	(void)state;
	begin(&ring, 1);
	csw_perf_ring_snapshot(&ring);
	assert_null(csw_perf_ring_peek(&ring, &error));
	write_record(&ring, 24, 1);
	assert_null(csw_perf_ring_peek(&ring, &error));
	csw_perf_ring_snapshot(&ring);
	write_record(&ring, 32, 2);
	check_record(csw_perf_ring_peek(&ring, &error), 24, 1);
	csw_perf_ring_consume(&ring, csw_perf_ring_peek(&ring, &error));
	assert_null(csw_perf_ring_peek(&ring, &error));
	assert_int_equal(error, 0);
	csw_perf_ring_snapshot(&ring);
	check_record(csw_perf_ring_peek(&ring, &error), 32, 2);
	end(&ring);
}

/* The kernel may write over a record only when it was consumed and released. */
static void test_release(void **state)
{
	struct csw_perf_ring ring;
	int error;

	(void)state;
	begin(&ring, 1);
	write_record(&ring, 64, 1);
	write_record(&ring, 64, 2);
	csw_perf_ring_snapshot(&ring);
	csw_perf_ring_peek(&ring, &error);
	csw_perf_ring_release(&ring);
	assert_int_equal(ring.page->data_tail, 0);
	csw_perf_ring_consume(&ring, csw_perf_ring_peek(&ring, &error));
	assert_int_equal(ring.page->data_tail, 0);
	csw_perf_ring_release(&ring);
	assert_int_equal(ring.page->data_tail, 64);
	csw_perf_ring_consume(&ring, csw_perf_ring_peek(&ring, &error));
	/* So does a snapshot. */
	csw_perf_ring_snapshot(&ring);
	assert_int_equal(ring.page->data_tail, 128);
	end(&ring);
}

/* A long snapshot gives back room as it goes, never more than was read. */
static void test_release_on_the_way(void **state)
{
	struct csw_perf_ring ring;
	int error;

	(void)state;
	begin(&ring, 1);
	for (size_t i = 0; i < ring.bytes / 64; i++)
		write_record(&ring, 64, (unsigned)i);
	csw_perf_ring_snapshot(&ring);
	for (size_t i = 0; i < ring.bytes / 64; i++) {
		csw_perf_ring_consume(&ring, csw_perf_ring_peek(&ring, &error));
		assert_true(ring.page->data_tail <= ring.at);
		assert_true(ring.at - ring.page->data_tail < ring.bytes / 8);
	}
	end(&ring);
}

/* ---- the time of what follows ---- */

#define TIME_FROM_END 16

/* A record that ends in its time and 8 bytes more. */
static void write_timed(struct csw_perf_ring *ring, uint32_t type, uint16_t misc, uint64_t time_ns)
{
	const struct perf_event_header header = { .type = type, .misc = misc, .size = 32 };
	uint64_t words[4] = { 0, 7, time_ns, 9 }, at = ring->page->data_head;

	memcpy(words, &header, sizeof(header));
	for (unsigned i = 0; i < 4; i++)
		memcpy(ring->data + ((at + 8 * i) & (ring->bytes - 1)), &words[i], 8);
	ring->page->data_head = at + sizeof(words);
}

static void check_next(struct csw_perf_ring *ring, uint64_t time_ns, bool last, bool leaves)
{
	bool is_last, does_leave;

	assert_int_equal(csw_perf_ring_next_time(ring, TIME_FROM_END, &is_last, &does_leave),
			 time_ns);
	assert_int_equal(is_last, last);
	assert_int_equal(does_leave, leaves);
}

static void consume_one(struct csw_perf_ring *ring)
{
	int error;

	csw_perf_ring_consume(ring, csw_perf_ring_peek(ring, &error));
}

/* From every offset: records and their parts may lie on either side of the ring's end. */
static void test_next_time(void **state)
{
	struct csw_perf_ring ring;

	(void)state;
	begin(&ring, 1);
	for (size_t offset = 0; offset < ring.bytes; offset += 8) {
		set_position(&ring, ring.bytes + offset);
		ring.ahead = 0;
		csw_perf_ring_snapshot(&ring);
		check_next(&ring, 0, true, false);
		write_timed(&ring, PERF_RECORD_SAMPLE, 0, 100);
		write_timed(&ring, PERF_RECORD_SAMPLE, 0, 101);
		csw_perf_ring_snapshot(&ring);
		check_next(&ring, 0, false, false);
		write_timed(&ring, PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, 102);
		/* Not before it is in the snapshot. */
		check_next(&ring, 0, false, false);
		csw_perf_ring_snapshot(&ring);
		/* Another sample comes first: that one is before SWITCH_OUT, this one is not. */
		check_next(&ring, 102, false, false);
		consume_one(&ring);
		check_next(&ring, 102, false, true);
		consume_one(&ring);
		check_next(&ring, 0, true, false);
	}
	end(&ring);
}

/* Only a thread's leaving is one, and other records have that bit for something else. */
static void test_next_that_leaves(void **state)
{
	static const struct {
		uint32_t type;
		uint16_t misc;
		bool leaves;
	} cases[] = {
		{ PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, true },
		{ PERF_RECORD_SWITCH_CPU_WIDE,
		  PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, true },
		{ PERF_RECORD_SWITCH_CPU_WIDE, 0, false },
		{ PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, false },
		{ PERF_RECORD_LOST, 0, false },
	};
	struct csw_perf_ring ring;

	(void)state;
	assert_int_equal(PERF_RECORD_MISC_COMM_EXEC, PERF_RECORD_MISC_SWITCH_OUT);
	begin(&ring, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		write_timed(&ring, PERF_RECORD_SAMPLE, 0, 100);
		write_timed(&ring, cases[i].type, cases[i].misc, 102);
		csw_perf_ring_snapshot(&ring);
		check_next(&ring, 102, false, cases[i].leaves);
		consume_one(&ring);
		consume_one(&ring);
	}
	end(&ring);
}

static void test_map_fails(void **state)
{
	struct csw_perf_ring ring;

	(void)state;
	map_error = -EPERM;
	memset(&ring, 0xff, sizeof(ring));
	assert_int_equal(csw_perf_ring_map(&ring, 17, (size_t)sysconf(_SC_PAGESIZE)), -EPERM);
	csw_perf_ring_unmap(&ring);
	assert_int_equal(maps, 0);
	assert_int_equal(unmaps, 0);
}

/* ---- against a model: a writer that never overruns, a reader that comes now and then ---- */

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

#define QUEUE 4096 /* more than records fit into the ring */

struct queue {
	uint16_t sizes[QUEUE];
	unsigned written, read;
};

static void write_some(struct csw_perf_ring *ring, struct queue *q, uint64_t *seed)
{
	for (unsigned n = 0; n < 32; n++) {
		uint16_t size = (uint16_t)(8 + 8 * (next_random(seed) % 100));
		uint64_t used = ring->page->data_head - ring->page->data_tail;

		if (used + size > ring->bytes)
			return;
		write_record(ring, size, q->written);
		q->sizes[q->written++ % QUEUE] = size;
	}
}

static void read_some(struct csw_perf_ring *ring, struct queue *q, uint64_t *seed)
{
	int error;

	csw_perf_ring_snapshot(ring);
	for (unsigned n = next_random(seed) % 40; n > 0; n--) {
		const struct perf_event_header *rec = csw_perf_ring_peek(ring, &error);

		assert_int_equal(error, 0);
		if (!rec) {
			assert_int_equal(q->read, q->written);
			return;
		}
		check_record(rec, q->sizes[q->read % QUEUE], q->read);
		csw_perf_ring_consume(ring, rec);
		q->read++;
	}
}

static void test_model(void **state)
{
	struct csw_perf_ring ring;
	struct queue q = { .written = 0 };
	uint64_t seed = 4711;

	(void)state;
	begin(&ring, 4);
	for (unsigned round = 0; round < 2000; round++) {
		write_some(&ring, &q, &seed);
		read_some(&ring, &q, &seed);
	}
	assert_true(ring.at > 100 * ring.bytes);
	end(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_every_offset, setup),
		cmocka_unit_test_setup(test_largest, setup),
		cmocka_unit_test_setup(test_malformed, setup),
		cmocka_unit_test_setup(test_snapshot, setup),
		cmocka_unit_test_setup(test_release, setup),
		cmocka_unit_test_setup(test_release_on_the_way, setup),
		cmocka_unit_test_setup(test_next_time, setup),
		cmocka_unit_test_setup(test_next_that_leaves, setup),
		cmocka_unit_test_setup(test_map_fails, setup),
		cmocka_unit_test_setup(test_model, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
