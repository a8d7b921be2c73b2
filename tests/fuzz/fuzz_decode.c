/*
 * Fuzz target: a ring's bytes through peek and decode, as the live driver does it.
 *
 * Input: one byte chooses the form (below), one the read format, one the offset of the first record
 * (in 8 bytes), one says whether readings are decoded as read(2) gives them as well; the rest is
 * the ring from that offset on. Bytes beyond the ring wrap around and are cut off after one turn.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "drivers/perf/decode.h"
#include "drivers/perf/ring.h"
#include "drivers/perf/sys.h"
#include "fuzz.h"

#define HEAD_BYTES 4

/* On the heap, and just as long as asked for: a sanitizer sees what goes beyond. */
static int heap_map(void **out, size_t bytes, int fd)
{
	(void)fd;
	*out = aligned_alloc(8, bytes);
	if (!*out)
		return -ENOMEM;
	memset(*out, 0, bytes);
	return 0;
}

static void heap_unmap(void *at, size_t bytes)
{
	(void)bytes;
	free(at);
}

static void choose_form(struct csw_perf_form *form, uint8_t choice, uint8_t format)
{
	static const uint64_t bits[] = { PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,
					 PERF_SAMPLE_ADDR,       PERF_SAMPLE_ID,
					 PERF_SAMPLE_STREAM_ID,  PERF_SAMPLE_PERIOD };

	form->sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		form->sample_type |= choice & 1u << i ? bits[i] : 0;
	form->sample_type |= choice & 0x40 ? 0 : PERF_SAMPLE_READ;
	form->sample_id_all = !(choice & 0x80);
	form->read_format = format & 0x1f;
}

static void check_record(const struct csw_record *rec, int ret)
{
	FUZZ_ASSERT(ret == 0 || ret == 1 || ret == -EINVAL);
	if (ret != 1)
		return;
	FUZZ_ASSERT(rec->type > CSW_RECORD_NONE && rec->type < CSW_RECORD_STOP);
	FUZZ_ASSERT(rec->nr_values <= 1 + CSW_COUNTERS_MAX);
	FUZZ_ASSERT(memchr(rec->comm, '\0', sizeof(rec->comm)));
}

static void walk(struct csw_perf_ring *ring, const struct csw_perf_form *form)
{
	struct csw_record rec = { .type = CSW_RECORD_NONE };
	int error;

	csw_perf_ring_snapshot(ring);
	for (;;) {
		const struct perf_event_header *raw = csw_perf_ring_peek(ring, &error);
		struct perf_event_header *copy;

		if (!raw)
			break;
		FUZZ_ASSERT(raw->size >= sizeof(*raw) && raw->size <= ring->head - ring->at);
		/* Just its bytes: within the ring a read beyond a record would not be noticed. */
		copy = malloc(raw->size);
		FUZZ_ASSERT(copy);
		memcpy(copy, raw, raw->size);
		check_record(&rec, csw_perf_decode(form, copy, &rec));
		free(copy);
		csw_perf_ring_consume(ring, raw);
	}
	FUZZ_ASSERT(error == -EINVAL || (error == 0 && ring->at == ring->head));
	csw_perf_ring_release(ring);
	FUZZ_ASSERT(ring->page->data_tail == ring->at);
}

static void read_as_read2(uint64_t format, const uint8_t *data, size_t size)
{
	struct csw_record rec = { .type = CSW_RECORD_NONE };
	uint8_t *copy = malloc(size ? size : 1);
	uint64_t lost;
	int ret;

	FUZZ_ASSERT(copy);
	memcpy(copy, data, size);
	ret = csw_perf_decode_reading(format, copy, size, &rec, &lost);
	FUZZ_ASSERT(ret == -EINVAL || (ret >= 0 && (size_t)ret <= size));
	FUZZ_ASSERT(ret < 0 || rec.nr_values <= 1 + CSW_COUNTERS_MAX);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct csw_perf_sys real = csw_perf_sys;
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct csw_perf_form form;
	struct csw_perf_ring ring;

	if (size < HEAD_BYTES)
		return 0;
	choose_form(&form, data[0], data[1]);
	if (data[3] & 1)
		read_as_read2(form.read_format, data + HEAD_BYTES, size - HEAD_BYTES);
	csw_perf_sys.map = heap_map;
	csw_perf_sys.unmap = heap_unmap;
	if (csw_perf_ring_map(&ring, -1, bytes) == 0) {
		size_t filled = (size - HEAD_BYTES) & ~(size_t)7;

		/* A reader that has come by often: its position has passed the end several times.
		 */
		ring.at = ring.released = 16 * bytes - 8 * (uint64_t)data[2];
		filled = filled < bytes ? filled : bytes;
		for (size_t i = 0; i < filled; i++)
			ring.data[(ring.at + i) & (bytes - 1)] = data[HEAD_BYTES + i];
		ring.page->data_tail = ring.at;
		ring.page->data_head = ring.at + filled;
		walk(&ring, &form);
		csw_perf_ring_unmap(&ring);
	}
	csw_perf_sys = real;
	return 0;
}
