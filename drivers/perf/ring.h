/*
 * One mmap'ed perf ring, read as the kernel's header asks for.
 *
 * Invariant: a record is handed out whole, also where it lies across the ring's end; the kernel may
 * overwrite it only after csw_perf_ring_release().
 */
#ifndef CSW_DRIVERS_PERF_RING_H
#define CSW_DRIVERS_PERF_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct csw_perf_ring {
	struct perf_event_mmap_page *page;
	unsigned char *data;
	size_t bytes;  /* of the data area: a power of two */
	size_t mapped; /* bytes of the mapping */
	uint64_t at;   /* read up to here; free-running, as head is */
	uint64_t head; /* filled up to here at the snapshot */
	uint64_t released;
	uint64_t ahead; /* what lies between the read position and this one is all samples */
	unsigned char *straddled; /* room for a record that lies across the end; its size field has
				     16 bits */
};

/* Maps 1 + bytes / page pages of fd. bytes: a power of two, at least a page. 0 or -errno (-EPERM:
 * beyond what may be locked). */
int csw_perf_ring_map(struct csw_perf_ring *ring, int fd, size_t bytes);
void csw_perf_ring_unmap(struct csw_perf_ring *ring); /* fine on a ring that is all zeros */

/* Bytes that the kernel has written so far, of all the ring's records: it grows with each. */
uint64_t csw_perf_ring_written(const struct csw_perf_ring *ring);

void csw_perf_ring_snapshot(struct csw_perf_ring *ring);

/* The record at the read position, or NULL at the snapshot's end. -EINVAL in *error for bytes that
 * are no record. */
const struct perf_event_header *csw_perf_ring_peek(struct csw_perf_ring *ring, int *error);

/* The time of the first record behind the one at the read position that is no sample; it stands as
 * many bytes before that record's end. 0: there is none in the snapshot. *last: nor any sample.
 * *leaves: the very next record is a thread's SWITCH_OUT. */
uint64_t csw_perf_ring_next_time(struct csw_perf_ring *ring, size_t time_from_end, bool *last,
				 bool *leaves);

/* Steps over the record that peek returned. */
void csw_perf_ring_consume(struct csw_perf_ring *ring, const struct perf_event_header *rec);

/* Gives back all that was consumed. */
void csw_perf_ring_release(struct csw_perf_ring *ring);

#endif
