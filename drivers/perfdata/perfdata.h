/*
 * What the parts of the perf.data reader share.
 *
 *	source    bytes of a file or a pipe, in blocks; zstd frames become blocks as well
 *	stream    blocks to raw records, the header's among them
 *	attrs     which event a record is of, and how it is laid out
 *	twins     ... where two events share the id
 *	features  what the file says of its machine
 *	cgroups   and of its cgroups
 *	order     raw records in the order of time
 *	perfdata  the driver: raw records to csw_records
 *
 * Invariant: no length of a file is believed before it was compared with what is there; memory is
 * bounded by a constant and the window of the order, not by the file.
 */
#ifndef CSW_DRIVERS_PERFDATA_PERFDATA_H
#define CSW_DRIVERS_PERFDATA_PERFDATA_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "csw/csw.h"
#include "drivers/perf/decode.h"
#include "engine/event.h"

/* ---- source.c: bytes in blocks ---- */

/* A block stays for its last record: the smaller they are, the less is kept with it. Time is the
 * same from 128 KiB to 1 MiB. */
#define CSW_BLOCK_BYTES (1u << 18)
/* A perf record has 16 bits for its size, simpleperf's own ones 32: those are skipped, not kept. */
#define CSW_RAW_BYTES_MAX 65536u

/* Records stay where they were read; a block is used again when nothing refers to it any more. It
 * lies at a multiple of its size, so that a record's address says which one it is in. */
struct csw_block {
	struct csw_block *next; /* in the list of free ones */
	uint32_t refs;
	uint32_t used;   /* bytes that are filled */
	uint64_t offset; /* in the file, of the first byte; or, of unzipped ones, of the compressed
			    record that they began with */
	bool unzipped;
	_Alignas(8) unsigned char bytes[CSW_BLOCK_BYTES - 32];
};
_Static_assert(sizeof(struct csw_block) == CSW_BLOCK_BYTES,
	       "blocks lie at multiples of their size");

static inline struct csw_block *csw_block_of(const void *at)
{
	return (struct csw_block *)((uintptr_t)at & ~(uintptr_t)(CSW_BLOCK_BYTES - 1));
}

/* Where in the file a record stood; one that had to be moved to a multiple of 8, up to 7 bytes
 * before it. */
static inline uint64_t csw_block_offset(const void *at)
{
	const struct csw_block *block = csw_block_of(at);

	return block->offset +
	       (block->unzipped ? 0 : (uint64_t)((const unsigned char *)at - block->bytes));
}

struct csw_blocks {
	struct csw_block *free;
	size_t nr_all; /* for tests: how much memory there is */
};

struct csw_block *csw_block_get(struct csw_blocks *pool); /* refs 1; NULL: out of memory */
void csw_block_reuse(struct csw_blocks *pool, struct csw_block *block);
static inline void csw_block_put(struct csw_blocks *pool, struct csw_block *block)
{
	if (block && !--block->refs)
		csw_block_reuse(pool, block);
}
void csw_blocks_free(struct csw_blocks *pool);

struct csw_source {
	int fd;
	bool seekable;
	uint64_t at;  /* of the next byte to be read */
	uint64_t end; /* of what may be read: UINT64_MAX in a pipe */
};

/* Up to nr bytes; less only at the end. The number, or -errno. */
ssize_t csw_source_read(struct csw_source *s, void *to, size_t nr);
/* At another place, without moving; not in a pipe. 0, -EBADMSG: the file ends before, or -errno. */
int csw_source_read_at(const struct csw_source *s, uint64_t at, void *to, size_t nr);

/* ---- zstd.c: COMPRESSED and COMPRESSED2 ---- */

struct csw_unzip; /* frames go on from one record to the next */

struct csw_unzip *csw_unzip_open(void); /* NULL: out of memory */
void csw_unzip_close(struct csw_unzip *z);
/* The next compressed bytes. They must stay until csw_unzip_take has given all. */
void csw_unzip_give(struct csw_unzip *z, const void *from, size_t nr);
/* What they hold, up to room bytes; 0: more must be given. -EBADMSG: no zstd data. */
ssize_t csw_unzip_take(struct csw_unzip *z, void *to, size_t room);

/* ---- attrs.c: the events of a file ---- */

#define CSW_ATTRS_MAX 4096
#define CSW_NO_COLUMN UINT32_MAX

/* sizeof(struct perf_event_attr) up to 5.x; what came later, a reader does not need. */
#define CSW_ATTR_BYTES_MIN 64u
#define CSW_ATTR_BYTES_KNOWN 112u

struct csw_file_attr {
	uint32_t type;
	uint64_t config, config1, config2, period, flags;
	uint32_t bp_type;
	struct csw_perf_form form;
	char name[CSW_EVENT_NAME_BYTES]; /* "" until somebody says it */
	uint32_t column;                 /* of the report, CSW_NO_COLUMN: none */
	bool is_trigger;                 /* its samples are context switches */
	bool is_twin;                    /* another sampled event counts the same: see twins.c */
	/* Where a record's id and time stand, in bytes from its start (a sample) or back from its
	 * end (any other); 0: nowhere. */
	uint16_t id_at, time_at, cpu_at, id_back, time_back, cpu_back;
};

/* perf_event_attr's bits as they stand in a file of the little byte order. */
#define CSW_ATTR_INHERIT (1ull << 1)
#define CSW_ATTR_EXCLUDE_USER (1ull << 4)
#define CSW_ATTR_EXCLUDE_KERNEL (1ull << 5)
#define CSW_ATTR_EXCLUDE_HV (1ull << 6)
#define CSW_ATTR_EXCLUDE_IDLE (1ull << 7)
#define CSW_ATTR_FREQ (1ull << 10)
#define CSW_ATTR_ENABLE_ON_EXEC (1ull << 12)
#define CSW_ATTR_SAMPLE_ID_ALL (1ull << 18)
#define CSW_ATTR_CONTEXT_SWITCH (1ull << 26)
#define CSW_ATTR_WRITE_BACKWARD (1ull << 27)

struct csw_file_id {
	uint64_t id; /* 0: the slot is free */
	uint32_t attr;
	uint64_t value; /* the last reading of this id */
};

struct csw_file_attrs {
	struct csw_file_attr *attrs;
	size_t nr;
	struct csw_file_id *ids;
	size_t nr_ids, mask;
	bool several_forms; /* sample_types differ: the id says which it is */
};

/* Takes an attr of `bytes` bytes at `at`; its size field may say less. 0, -EBADMSG, -E2BIG or
 * -ENOMEM. */
int csw_file_attrs_add(struct csw_file_attrs *a, const void *at, size_t bytes, bool swap);
int csw_file_attrs_add_id(struct csw_file_attrs *a, uint64_t id, uint32_t attr);
/* The slot of an id, or the free one where it would stand. Here, as it is asked of every sample. */
static inline struct csw_file_id *csw_file_id_slot(struct csw_file_id *ids, size_t mask,
						   uint64_t id)
{
	size_t i = (size_t)((id * 0x9e3779b97f4a7c15ull) >> 32) & mask;

	while (ids[i].id && ids[i].id != id)
		i = (i + 1) & mask;
	return &ids[i];
}

static inline struct csw_file_id *csw_file_attrs_find(const struct csw_file_attrs *a, uint64_t id)
{
	struct csw_file_id *slot = a->ids && id ? csw_file_id_slot(a->ids, a->mask, id) : NULL;

	return slot && slot->id ? slot : NULL;
}

void csw_file_attrs_name(struct csw_file_attr *attr, const char *name, size_t bytes);
/* Names for those that nobody has named. */
void csw_file_attrs_finish(struct csw_file_attrs *a);
void csw_file_attrs_free(struct csw_file_attrs *a);

static inline uint32_t csw_file_u32(const unsigned char *at, bool swap)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return swap ? __builtin_bswap32(value) : value;
}

static inline uint64_t csw_file_u64(const unsigned char *at, bool swap)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return swap ? __builtin_bswap64(value) : value;
}

/* What follows is asked of every record, and so becomes part of its caller. A field stands at `at`
 * of a sample, or `back` before the end of another record; NULL: nowhere. */
static inline const unsigned char *csw_file_field(const struct perf_event_header *raw, uint16_t at,
						  uint16_t back, uint16_t bytes)
{
	const unsigned char *from = (const unsigned char *)raw;

	if (raw->type == PERF_RECORD_SAMPLE)
		return at && at + bytes <= raw->size ? from + at : NULL;
	return back && sizeof(*raw) + back <= raw->size ? from + raw->size - back : NULL;
}

/* Which attr a record of the kernel's types is of; attr 0 where nothing says it, -1: an id that the
 * file does not list. -EBADMSG: there is none at all. The fields stand where the first attr says: a
 * file in which that differs cannot be read by anybody. */
static inline int64_t csw_file_attrs_of(const struct csw_file_attrs *a,
					const struct perf_event_header *raw, bool swap)
{
	const struct csw_file_attr *first = a->attrs;
	const struct csw_file_id *found;
	const unsigned char *at;
	uint64_t id;

	if (a->nr <= 1)
		return a->nr ? 0 : -EBADMSG;
	/* Only a sample is of one event; of the others all that matters is their form. */
	if (raw->type != PERF_RECORD_SAMPLE && !a->several_forms)
		return 0;
	at = csw_file_field(raw, first->id_at, first->id_back, 8);
	id = at ? csw_file_u64(at, swap) : 0;
	if (!id)
		return 0; /* made by perf itself, in the form of the first */
	found = csw_file_attrs_find(a, id);
	return found ? (int64_t)found->attr : -1;
}

/* Its time, 0 where it has none. */
static inline uint64_t csw_file_attrs_time(const struct csw_file_attr *attr,
					   const struct perf_event_header *raw, bool swap)
{
	const unsigned char *at = csw_file_field(raw, attr->time_at, attr->time_back, 8);

	return at ? csw_file_u64(at, swap) : 0;
}

/* Its CPU, UINT32_MAX where it does not say. */
static inline uint32_t csw_file_attrs_cpu(const struct csw_file_attr *attr,
					  const struct perf_event_header *raw, bool swap)
{
	const unsigned char *at = csw_file_field(raw, attr->cpu_at, attr->cpu_back, 4);

	return at ? csw_file_u32(at, swap) : UINT32_MAX;
}

/* ---- twins.c: events that were recorded twice ---- */

#define CSW_TWIN_NONE (-1)
#define CSW_TWIN_SEVERAL (-2)

/* Which attr of those that count the same as `of` the sample fits, or one of the two above. */
int64_t csw_file_twin_of(const struct csw_file_attrs *a, uint32_t of,
			 const struct perf_event_header *raw, bool swap);
/* Fills in is_twin. */
void csw_file_twins_find(struct csw_file_attrs *a);

/* ---- features.c: what the file says of its machine ---- */

#define CSW_FEATURES_MAX 256

struct csw_feature_text {
	char *name, *value;
};

struct csw_features {
	struct csw_feature_text *texts; /* in the order of the file */
	size_t nr;
	uint32_t nr_cpus;                  /* 0: not said */
	bool per_thread;                   /* the command line or simpleperf's words say so */
	bool says_wide;                    /* ... or the contrary */
	uint32_t prev_pid_at, next_pid_at; /* where sched:sched_switch has its fields */
};

/* One section's bytes. Names events in a on the way. 0 or -ENOMEM; what cannot be read is left out
 * and said so. */
int csw_features_add(struct csw_features *f, struct csw_file_attrs *a, uint32_t feature,
		     const unsigned char *at, size_t bytes, bool swap);
int csw_features_note(struct csw_features *f, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The formats of tracepoints, as in the section TRACING_DATA. */
void csw_features_tracing(struct csw_features *f, const unsigned char *at, size_t bytes);
void csw_features_free(struct csw_features *f);

/* ---- cgroups.c: which cgroup an id is ---- */

#define CSW_FILE_CGROUPS_MAX 65536 /* no file may ask for more memory than that */

struct csw_file_cgroup {
	uint64_t id;
	char *path; /* "/a/b", "/" the root */
};

struct csw_file_cgroups {
	struct csw_file_cgroup *all;
	size_t nr;
};

/* Takes a PERF_RECORD_CGROUP. 0 or -ENOMEM; what is broken is left out. */
int csw_file_cgroups_add(struct csw_file_cgroups *c, const struct perf_event_header *raw,
			 bool swap);
const char *csw_file_cgroups_path(const struct csw_file_cgroups *c, uint64_t id); /* NULL: none */
void csw_file_cgroups_free(struct csw_file_cgroups *c);

/* ---- stream.c: a file's raw records in file order ---- */

struct csw_stream {
	struct csw_source source;
	struct csw_blocks blocks;
	struct csw_file_attrs attrs;
	struct csw_features features;
	bool swap, pipe;
	bool unfinished; /* data.size is 0: the recording was killed */
	/* the outer bytes */
	struct csw_block *block;
	size_t at;
	uint64_t block_offset; /* of the block's first byte in the file */
	bool source_ended, broken;
	uint64_t file_bytes;      /* UINT64_MAX: a pipe */
	uint64_t accounted_bytes; /* up to the end of the last section */
	/* the inner ones, of zstd */
	struct csw_unzip *unzip;
	struct csw_block *inner;
	size_t inner_at;
	bool unzipping;                /* the outer block's current record is not yet done with */
	struct csw_block *unzip_block; /* that it lies in */
	uint64_t unzip_offset;
	struct csw_error damage; /* code 0: none so far */
	bool is_usual;           /* in our byte order, and nothing was read ahead or is broken */
	/* a pipe's head: records up to the first of the kernel's are read ahead */
	bool peeked;
	const struct perf_event_header *ahead;
	unsigned char *head; /* of a file that cannot be sought in: all before the records */
	size_t head_bytes;
};

/* Opens path ("-": the standard input), reads all that stands before the records. 0, -EBADMSG with
 * what is wrong and at which offset, or -errno. */
int csw_stream_open(struct csw_stream *s, const char *path, struct csw_error *err);
void csw_stream_close(struct csw_stream *s);

#define CSW_RECORD_FIRST_OF_FILES 64u /* from here on only files have them, not the kernel */
#define CSW_RECORD_FINISHED_ROUND 68u

int csw_stream_search(struct csw_stream *s,
		      const struct perf_event_header **out); /* see csw_stream_next */

/* The next record that is of the kernel, or FINISHED_ROUND, its header in our byte order; it is
 * good until the next call, unless its block's refs are raised. 1, 0 at the end, or -EBADMSG: the
 * file is broken here, s->damage says where and how; nothing follows. -ENOMEM. What is usual is
 * found here: a record whole and in its place in the block that is being read. */
static inline int csw_stream_next(struct csw_stream *s, const struct perf_event_header **out)
{
	struct csw_block *block = s->unzipping ? s->inner : s->block;
	size_t *at = s->unzipping ? &s->inner_at : &s->at;
	size_t left = s->is_usual && block ? block->used - *at : 0;
	const struct perf_event_header *header;

	if (left < sizeof(*header) || *at % 8)
		return csw_stream_search(s, out);
	header = (const void *)(block->bytes + *at);
	if (header->type >= CSW_RECORD_FIRST_OF_FILES || header->size > left ||
	    header->size < sizeof(*header) || header->size % 8)
		return csw_stream_search(s, out);
	*at += header->size;
	*out = header;
	return 1;
}

/* ---- order.c: records in the order of time ---- */

struct csw_ref {
	uint64_t time_ns;
	const struct perf_event_header *header;
	uint32_t attr;
};

/* What is held lies in runs, each in order: a ring's records come in order, so a round of the file
 * has about one run per CPU. */
struct csw_run_of_refs {
	size_t at, end; /* the end of the last one, to which is added, is o->nr */
};

/* The time of a run's first record, and behind it the run's number: the smaller one is the next. As
 * one number, because which of two it is cannot be foretold: the CPU is to choose values, not ways.
 */
typedef unsigned __int128 csw_order_head;
#define CSW_ORDER_DONE (~(csw_order_head)0) /* nothing is left of the run */

struct csw_order {
	struct csw_ref *refs;
	size_t nr, capacity;
	uint64_t newest_ns; /* of the record added last */
	struct csw_run_of_refs *runs;
	size_t nr_runs, runs_capacity;
	/* While handing out, the runs as players: run i is heads[nr_players + i], and heads[k] the
	 * earlier one of heads[2k] and heads[2k + 1]; so heads[1] is the next. */
	csw_order_head *heads;
	size_t nr_players;
	bool handing_out;
	uint64_t limit_ns; /* what may be handed out now */
	uint64_t round_max_ns, max_ns;
	bool has_rounds;
	size_t window; /* most refs that are held when the file has no rounds */
	uint64_t late; /* handed out after a later one */
	uint64_t last_ns;
};

#define CSW_ORDER_WINDOW (1u << 19)

int csw_order_add_run(struct csw_order *o, struct csw_ref ref); /* see csw_order_add */

/* Takes over the caller's reference to the block. 0 or -ENOMEM. */
static inline int csw_order_add(struct csw_order *o, struct csw_ref ref)
{
	if (o->nr == o->capacity || !o->nr_runs || ref.time_ns < o->newest_ns)
		return csw_order_add_run(o, ref);
	o->refs[o->nr++] = ref;
	o->newest_ns = ref.time_ns;
	return 0;
}

/* A round of the writer is over: what is not later than the latest of the round before can be
 * handed out. */
void csw_order_round(struct csw_order *o);
/* Nothing more comes. */
void csw_order_end(struct csw_order *o);
/* Without rounds: the window is full, the earlier half can be handed out. */
bool csw_order_is_full(const struct csw_order *o);
void csw_order_halve(struct csw_order *o);
/* The next one, good until the order is changed; its reference to the block is the caller's now.
 * NULL: none until more is added. */
const struct csw_ref *csw_order_next(struct csw_order *o);
void csw_order_free(struct csw_order *o, struct csw_blocks *pool);

#endif
