/*
 * One raw PERF_RECORD_* to one csw_record: for the live ring and for files alike.
 *
 * Invariant: nothing is read beyond header.size, whatever the bytes say.
 */
#ifndef CSW_DRIVERS_PERF_DECODE_H
#define CSW_DRIVERS_PERF_DECODE_H

#include <linux/perf_event.h>

#include <stdbool.h>
#include <stddef.h>

#include "engine/record.h"

#ifndef PERF_FORMAT_LOST
#define PERF_FORMAT_LOST (1U << 4) /* Linux 6.0; headers may be older than the kernel */
#endif

/* How the records of an event are laid out. Side-band and samples of one ring share sample_type but
 * for PERF_SAMPLE_READ. */
struct csw_perf_form {
	uint64_t sample_type;
	uint64_t read_format;
	bool sample_id_all;
};

/* Does a sample of a file say its cgroup where this reader finds it? */
bool csw_perf_says_cgroup(uint64_t sample_type);
/* Where the time stands in every record but a sample: so many bytes before the record's end. */
size_t csw_perf_time_from_end(const struct csw_perf_form *form);

/* Which event a sample is of, in a form with PERF_SAMPLE_IDENTIFIER; it was decoded before. */
uint64_t csw_perf_sample_id(const struct perf_event_header *raw);

/* The kernel's switch event is sampled just before SWITCH_OUT is written. A sample that seems to be
 * older than that has its time from another clock, and SWITCH_OUT's is as good as its own. */
#define CSW_PERF_SAMPLE_TO_SWITCH_NS 20000

/* 1: *out filled in. 0: a record of no interest here. -EINVAL: its size cannot hold what its type
 * promises. */
int csw_perf_decode(const struct csw_perf_form *form, const struct perf_event_header *raw,
		    struct csw_record *out);

/* What a record of a file says besides. */
struct csw_perf_extra {
	uint64_t id;              /* of the event that the sample is of; 0: the form has none */
	uint64_t period;          /* 0: the form has none */
	const unsigned char *raw; /* a tracepoint's own fields, within the record; NULL: none */
	uint32_t raw_bytes;
	uint64_t value_ids[1 + CSW_COUNTERS_MAX]; /* of the reading's nr_values; 0: no ids */
};

/* The same for a record of a file, which may come from a machine of the other byte order (swap;
 * raw's header is in ours already) and holds SWITCH records of single threads too, with other_tid
 * -1. */
int csw_perf_decode_file(const struct csw_perf_form *form, const struct perf_event_header *raw,
			 struct csw_record *out, struct csw_perf_extra *extra, bool swap);

/* A group's reading (the READ part of a sample, or what read(2) gave) at `at`: enabled, running and
 * values into *out, the lost count of the first event into *lost (CSW_LOST_UNKNOWN where the format
 * has none). Returns bytes used or -EINVAL. */
int csw_perf_decode_reading(uint64_t read_format, const void *at, size_t bytes,
			    struct csw_record *out, uint64_t *lost);

#endif
