/* Reading a perf ring; see ring.h. */
#include "drivers/perf/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/perf/sys.h"

#define RECORD_BYTES_MAX 65536 /* header.size is 16 bits wide */
#define RELEASE_PARTS 8 /* a busy reader gives back every eighth of the ring, not every record */

int csw_perf_ring_map(struct csw_perf_ring *ring, int fd, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at;
	int ret;

	memset(ring, 0, sizeof(*ring));
	ring->straddled = malloc(RECORD_BYTES_MAX);
	if (!ring->straddled)
		return -ENOMEM;
	ret = csw_perf_sys.map(&at, page + bytes, fd);
	if (ret < 0) {
		free(ring->straddled);
		ring->straddled = NULL;
		return ret;
	}
	ring->page = at;
	ring->data = (unsigned char *)at + page;
	ring->bytes = bytes;
	ring->mapped = page + bytes;
	return 0;
}

void csw_perf_ring_unmap(struct csw_perf_ring *ring)
{
	if (ring->page)
		csw_perf_sys.unmap(ring->page, ring->mapped);
	free(ring->straddled);
	memset(ring, 0, sizeof(*ring));
}

uint64_t csw_perf_ring_written(const struct csw_perf_ring *ring)
{
	/* Pairs with the kernel's barrier between writing records and moving data_head. */
	return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

void csw_perf_ring_snapshot(struct csw_perf_ring *ring)
{
	csw_perf_ring_release(ring);
	ring->head = csw_perf_ring_written(ring);
}

const struct perf_event_header *csw_perf_ring_peek(struct csw_perf_ring *ring, int *error)
{
	size_t offset = ring->at & (ring->bytes - 1);
	const struct perf_event_header *rec = (const void *)(ring->data + offset);
	size_t until_end = ring->bytes - offset;

	*error = 0;
	if (ring->at == ring->head)
		return NULL;
	/* Records are multiples of 8 bytes, so that a header is never torn. */
	if (rec->size < sizeof(*rec) || rec->size % 8 || rec->size > ring->head - ring->at) {
		*error = -EINVAL;
		return NULL;
	}
	if (rec->size <= until_end)
		return rec;
	memcpy(ring->straddled, rec, until_end);
	memcpy(ring->straddled + until_end, ring->data, rec->size - until_end);
	return (const void *)ring->straddled;
}

/* Words never lie across the end: records are multiples of 8 bytes. */
static uint64_t word_at(const struct csw_perf_ring *ring, uint64_t position)
{
	uint64_t word;

	memcpy(&word, ring->data + (position & (ring->bytes - 1)), sizeof(word));
	return word;
}

/* The header at a position; false: there is no whole record in the snapshot. */
static bool header_at(const struct csw_perf_ring *ring, uint64_t position,
		      struct perf_event_header *header)
{
	uint64_t word;

	if (ring->head - position < sizeof(*header))
		return false;
	word = word_at(ring, position);
	memcpy(header, &word, sizeof(*header));
	return header->size >= sizeof(*header) && header->size <= ring->head - position;
}

/* Samples that were looked at for the one before are not looked at again: many may follow each
 * other. */
uint64_t csw_perf_ring_next_time(struct csw_perf_ring *ring, size_t time_from_end, bool *last,
				 bool *leaves)
{
	struct perf_event_header header;
	uint64_t at = ring->at;

	*last = true;
	*leaves = false;
	if (!header_at(ring, at, &header))
		return 0;
	at += header.size;
	*last = at == ring->head;
	*leaves = header_at(ring, at, &header) && header.type == PERF_RECORD_SWITCH_CPU_WIDE &&
		  (header.misc & PERF_RECORD_MISC_SWITCH_OUT);
	if (ring->ahead > at)
		at = ring->ahead;
	while (header_at(ring, at, &header) && header.type == PERF_RECORD_SAMPLE)
		at += header.size;
	ring->ahead = at;
	if (!header_at(ring, at, &header) || header.size < sizeof(header) + time_from_end)
		return 0;
	return word_at(ring, at + header.size - time_from_end);
}

void csw_perf_ring_consume(struct csw_perf_ring *ring, const struct perf_event_header *rec)
{
	ring->at += rec->size;
	if (ring->at - ring->released >= ring->bytes / RELEASE_PARTS)
		csw_perf_ring_release(ring);
}

void csw_perf_ring_release(struct csw_perf_ring *ring)
{
	if (ring->released == ring->at)
		return;
	/* Pairs with the kernel's load of data_tail before it writes: our reads are done by now. */
	__atomic_store_n(&ring->page->data_tail, ring->at, __ATOMIC_RELEASE);
	ring->released = ring->at;
}
