/*
 * A file's raw records in file order: both modes of perf.data, compressed or not.
 *
 * Invariant: a record that is handed out lies whole in one block, at a multiple of 8, with its
 * header in our byte order; whatever is wrong ends the stream with one line that says what and
 * where.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/perfdata/perfdata.h"
#include "engine/error.h"

#define MAGIC 0x32454c4946524550ull  /* "PERFILE2" on a machine of the little order */
#define MAGIC1 0x454c494646524550ull /* "PERFFILE" */
#define FILE_HEADER_BYTES 104u
#define FILE_HEADER_BYTES_MIN 72u /* without the feature bits */
#define PIPE_HEADER_BYTES 16u
#define SECTION_BYTES 16u
#define HEAD_BYTES_MAX (64u << 20)
/* Longer ones hold what is of no interest here: build ids, symbols, call frames. */
#define FEATURE_BYTES_MAX (16u << 20)
#define NR_FEATURES 256u
#define FIRST_OF_SIMPLEPERF 128u

enum user_type {
	USER_ATTR = 64,
	USER_TRACING_DATA = 66,
	USER_FINISHED_ROUND = 68,
	USER_AUXTRACE = 71,
	USER_EVENT_UPDATE = 78,
	USER_FEATURE = 80,
	USER_COMPRESSED = 81,
	USER_COMPRESSED2 = 83,
	USER_SIMPLEPERF = 32768,
	USER_SIMPLEPERF_END = USER_SIMPLEPERF + 1024,
};
#define AUXTRACE_BYTES 48u /* the record itself, before its data */
#define EVENT_UPDATE_NAME 2u

struct section {
	uint64_t offset, size;
};

static uint64_t get64(const struct csw_stream *s, const void *at)
{
	return csw_file_u64(at, s->swap);
}

static uint32_t get32(const struct csw_stream *s, const void *at)
{
	return csw_file_u32(at, s->swap);
}

/* Only the first damage counts: the others may be its consequences. */
#define damage(s, ...)                                                                             \
	((s)->damage.code ? -EBADMSG : csw_error_set(&(s)->damage, -EBADMSG, __VA_ARGS__))

/* ---- outer bytes ---- */

static size_t available(const struct csw_stream *s)
{
	return s->block ? s->block->used - s->at : 0;
}

static uint64_t position(const struct csw_stream *s)
{
	return s->block_offset + s->at;
}

/* What is left of the block goes on in another one. */
static int fill_another(struct csw_stream *s)
{
	size_t left = available(s), lead = s->at % 8;
	struct csw_block *block;
	ssize_t got;

	block = csw_block_get(&s->blocks);
	if (!block)
		return -ENOMEM;
	if (left)
		memcpy(block->bytes + lead, s->block->bytes + s->at, left);
	csw_block_put(&s->blocks, s->block);
	s->block_offset = position(s) - lead;
	block->offset = s->block_offset;
	s->block = block;
	s->at = lead;
	got = csw_source_read(&s->source, block->bytes + lead + left,
			      sizeof(block->bytes) - lead - left);
	if (got < 0) {
		block->used = (uint32_t)(lead + left);
		return csw_error_set(&s->damage, (int)got, "cannot read at offset %" PRIu64 ": %s",
				     s->source.at, strerror((int)-got));
	}
	block->used = (uint32_t)(lead + left + (size_t)got);
	if ((size_t)got < sizeof(block->bytes) - lead - left)
		s->source_ended = true;
	return 0;
}

/* At least nr bytes in the block, or all that are left. 0 or -errno. */
static inline int fill(struct csw_stream *s, size_t nr)
{
	return available(s) >= nr || s->source_ended ? 0 : fill_another(s);
}

/* Passes nr bytes by. 0, -EBADMSG where there are fewer, or -errno. */
static int skip(struct csw_stream *s, uint64_t nr)
{
	uint64_t end = s->source.end < s->file_bytes ? s->source.end : s->file_bytes;

	while (nr) {
		size_t left = available(s), step = left < nr ? left : (size_t)nr;
		int ret;

		s->at += step;
		nr -= step;
		if (!nr)
			return 0;
		if (s->source.seekable && nr > CSW_BLOCK_BYTES && s->source.at < end &&
		    nr < end - s->source.at) {
			s->source.at += nr;
			s->block_offset += nr;
			nr = 0;
		}
		ret = fill(s, 1);
		if (ret < 0)
			return ret;
		if (nr && !available(s))
			return -EBADMSG;
	}
	return 0;
}

/* ---- records that only the file has ---- */

static int on_attr(struct csw_stream *s, const unsigned char *at, size_t bytes)
{
	uint32_t size;
	int ret;

	if (bytes < CSW_ATTR_BYTES_MIN)
		return -EBADMSG;
	size = get32(s, at + 4);
	if (!size)
		size = CSW_ATTR_BYTES_MIN;
	ret = csw_file_attrs_add(&s->attrs, at, bytes, s->swap);
	for (size_t i = size; ret == 0 && i + 8 <= bytes; i += 8)
		ret = csw_file_attrs_add_id(&s->attrs, get64(s, at + i), (uint32_t)s->attrs.nr - 1);
	return ret;
}

/* { type, id, name }: units, scales and CPU maps are of no interest. */
static void on_event_update(struct csw_stream *s, const unsigned char *at, size_t bytes)
{
	struct csw_file_id *id =
		bytes > 16 ? csw_file_attrs_find(&s->attrs, get64(s, at + 8)) : NULL;

	if (id && get64(s, at) == EVENT_UPDATE_NAME)
		csw_file_attrs_name(&s->attrs.attrs[id->attr], (const char *)at + 16, bytes - 16);
}

/* { size } and so many bytes behind the record; simpleperf has them within it. */
static int on_tracing_data(struct csw_stream *s, const unsigned char *at, size_t bytes)
{
	uint32_t size = bytes >= 4 ? get32(s, at) : 0, done = 0;
	unsigned char *text;
	int ret = 0;

	if (bytes >= 4 && size <= bytes - 4) {
		csw_features_tracing(&s->features, at + 4, size);
		return 0;
	}
	if (size > UINT32_MAX - 7)
		return -EBADMSG;
	size = (size + 7) & ~7u;
	if (size > FEATURE_BYTES_MAX)
		return skip(s, size);
	text = malloc(size + 1u);
	if (!text)
		return -ENOMEM;
	while (ret == 0 && done < size) {
		size_t left, step;

		ret = fill(s, 1);
		left = available(s);
		if (ret == 0 && !left)
			ret = -EBADMSG;
		step = left < size - done ? left : size - done;
		if (ret == 0)
			memcpy(text + done, s->block->bytes + s->at, step);
		s->at += step;
		done += (uint32_t)step;
	}
	csw_features_tracing(&s->features, text, done);
	free(text);
	return ret;
}

static int begin_unzip(struct csw_stream *s, const unsigned char *at, size_t bytes, bool has_size)
{
	if (has_size) {
		uint64_t size = bytes >= 8 ? get64(s, at) : UINT64_MAX;

		if (size > bytes - 8)
			return -EBADMSG;
		at += 8;
		bytes = (size_t)size;
	}
	if (!s->unzip)
		s->unzip = csw_unzip_open();
	if (!s->unzip)
		return -ENOMEM;
	csw_unzip_give(s->unzip, at, bytes);
	s->unzipping = true;
	return 0;
}

/* ---- one record ---- */

static bool is_for_others(uint32_t type)
{
	return type >= CSW_RECORD_FIRST_OF_FILES && type != USER_FINISHED_ROUND;
}

/* What is wrong with a record that begins here; NULL: nothing. */
static const char *complaint(const struct perf_event_header *h)
{
	if (h->size < sizeof(*h))
		return "says that it has fewer bytes than its own header";
	if (!is_for_others(h->type) && h->size % 8)
		return "has a length that is no multiple of 8";
	return NULL;
}

static int work_off(struct csw_stream *s, const struct perf_event_header *h,
		    const unsigned char *body, uint64_t at)
{
	size_t bytes = h->size - sizeof(*h);
	int ret = 0;

	switch (h->type) {
	case USER_ATTR:
		ret = on_attr(s, body, bytes);
		break;
	case USER_EVENT_UPDATE:
		on_event_update(s, body, bytes);
		break;
	case USER_FEATURE:
		if (bytes >= 8)
			ret = csw_features_add(&s->features, &s->attrs, (uint32_t)get64(s, body),
					       body + 8, bytes - 8, s->swap);
		break;
	case USER_TRACING_DATA:
		ret = on_tracing_data(s, body, bytes);
		break;
	case USER_AUXTRACE:
		/* Old pipes of ChromeOS have texts under this number. */
		if (h->size == AUXTRACE_BYTES)
			ret = skip(s, get64(s, body));
		break;
	case USER_COMPRESSED:
	case USER_COMPRESSED2:
		s->unzip_offset = at;
		ret = begin_unzip(s, body, bytes, h->type == USER_COMPRESSED2);
		break;
	default:
		break;
	}
	if (ret == -EBADMSG || ret == -E2BIG)
		return damage(s,
			      "the record of type %u at offset %" PRIu64
			      " is broken: it does not hold what it promises",
			      h->type, at);
	return ret;
}

/* ---- inner bytes ---- */

/* Room for a whole record behind what is there. */
static int make_room(struct csw_stream *s)
{
	size_t left = s->inner ? s->inner->used - s->inner_at : 0;
	struct csw_block *block;

	if (s->inner && sizeof(s->inner->bytes) - s->inner->used >= CSW_RAW_BYTES_MAX)
		return 0;
	block = csw_block_get(&s->blocks);
	if (!block)
		return -ENOMEM;
	if (left)
		memcpy(block->bytes, s->inner->bytes + s->inner_at, left);
	csw_block_put(&s->blocks, s->inner);
	block->used = (uint32_t)left;
	block->offset = s->unzip_offset;
	block->unzipped = true;
	s->inner = block;
	s->inner_at = 0;
	return 0;
}

static struct perf_event_header peek_header(const struct csw_stream *s, const unsigned char *at)
{
	struct perf_event_header h;

	memcpy(&h, at, sizeof(h));
	if (s->swap) {
		h.type = __builtin_bswap32(h.type);
		h.misc = __builtin_bswap16(h.misc);
		h.size = __builtin_bswap16(h.size);
	}
	return h;
}

/* In its place, so that nobody turns it a second time. */
static void keep_header(const struct csw_stream *s, unsigned char *at,
			const struct perf_event_header *h)
{
	if (s->swap)
		memcpy(at, h, sizeof(*h));
}

/* 1: a record; 0: the compressed record is used up; -errno. */
static int next_inner(struct csw_stream *s, const struct perf_event_header **out)
{
	for (;;) {
		size_t left = s->inner ? s->inner->used - s->inner_at : 0;
		struct perf_event_header h = { .size = 0 };
		unsigned char *at;
		ssize_t got;
		int ret;

		if (left >= sizeof(h)) {
			at = s->inner->bytes + s->inner_at;
			h = peek_header(s, at);
			if (complaint(&h) || h.size % 8)
				return damage(
					s,
					"a record inside the compressed one at offset %" PRIu64
					" %s",
					s->unzip_offset,
					complaint(&h) ? complaint(&h)
						      : "is no multiple of 8 bytes long");
			if (left >= h.size) {
				keep_header(s, at, &h);
				s->inner_at += h.size;
				if (is_for_others(h.type))
					continue;
				*out = (const void *)at;
				return 1;
			}
		}
		ret = make_room(s);
		if (ret < 0)
			return ret;
		got = csw_unzip_take(s->unzip, s->inner->bytes + s->inner->used,
				     sizeof(s->inner->bytes) - s->inner->used);
		if (got < 0)
			return damage(
				s, "the compressed record at offset %" PRIu64 " holds no zstd data",
				s->unzip_offset);
		if (got == 0)
			return 0;
		s->inner->used += (uint32_t)got;
	}
}

/* ---- outer records ---- */

/* simpleperf's own records have the upper half of their size where perf has misc. */
static int skip_simpleperf(struct csw_stream *s, const struct perf_event_header *h, uint64_t at)
{
	uint64_t size = (uint64_t)h->misc << 16 | h->size;
	int ret = size < sizeof(*h) ? -EBADMSG : skip(s, size);

	if (ret == -EBADMSG)
		return damage(s,
			      "the record of type %u at offset %" PRIu64
			      " is broken: it does not hold what it promises",
			      h->type, at);
	return ret;
}

static int cut_short(struct csw_stream *s, uint64_t at)
{
	return damage(s, "the file ends in the middle of a record at offset %" PRIu64, at);
}

/* 1: a record in *raw; 0: one was worked off; -ENODATA: the end; -errno. */
static int next_outer(struct csw_stream *s, const struct perf_event_header **out)
{
	struct perf_event_header h;
	unsigned char *at;
	uint64_t offset;
	int ret = fill(s, sizeof(h));

	if (ret < 0)
		return ret;
	offset = position(s);
	if (!available(s) && s->source.end != UINT64_MAX && s->source.at < s->source.end)
		return damage(s,
			      "the file ends at offset %" PRIu64
			      ", its header promises records up to %" PRIu64,
			      offset, s->source.end);
	if (!available(s))
		return -ENODATA;
	if (available(s) < sizeof(h))
		return cut_short(s, offset);
	h = peek_header(s, s->block->bytes + s->at);
	if (h.type >= USER_SIMPLEPERF && h.type < USER_SIMPLEPERF_END)
		return skip_simpleperf(s, &h, offset);
	if (complaint(&h))
		return damage(s, "the record of type %u at offset %" PRIu64 " %s", h.type, offset,
			      complaint(&h));
	ret = fill(s, h.size);
	if (ret < 0)
		return ret;
	if (available(s) < h.size)
		return cut_short(s, offset);
	at = s->block->bytes + s->at;
	s->at += h.size;
	if (is_for_others(h.type)) {
		/* What lies behind it may move to another block: its own bytes stay in this one. */
		struct csw_block *block = s->block;

		block->refs++;
		ret = work_off(s, &h, at + sizeof(h), offset);
		if (s->unzipping)
			s->unzip_block = block;
		else
			csw_block_put(&s->blocks, block);
		return ret;
	}
	if ((uintptr_t)at % 8) {
		/* Compressed records may end anywhere. What was before this one is over. */
		unsigned char *down =
			s->block->bytes + ((size_t)(at - s->block->bytes) & ~(size_t)7);

		memmove(down, at, h.size);
		at = down;
	}
	keep_header(s, at, &h);
	*out = (const void *)at;
	return 1;
}

/* Whatever is not usual: the end of a block, a record that only files have, the other byte order.
 */
int csw_stream_search(struct csw_stream *s, const struct perf_event_header **out)
{
	int ret;

	if (s->peeked) {
		*out = s->ahead;
		s->peeked = false;
		return 1;
	}
	if (s->broken)
		return -EBADMSG;
	do {
		ret = 0;
		if (s->unzipping) {
			ret = next_inner(s, out);
			if (ret == 0) {
				s->unzipping = false;
				csw_block_put(&s->blocks, s->unzip_block);
				s->unzip_block = NULL;
			}
		}
		if (ret == 0)
			ret = next_outer(s, out);
	} while (ret == 0);
	if (ret == -ENODATA && s->inner && s->inner->used > s->inner_at)
		ret = damage(
			s, "the compressed data ends in the middle of a record, at offset %" PRIu64,
			position(s));
	s->broken = ret < 0 && ret != -ENODATA;
	s->is_usual = ret > 0 && !s->swap;
	return ret == -ENODATA ? 0 : ret;
}

/* ---- opening ---- */

/* In a pipe, only what was kept of the beginning. */
static int read_at(const struct csw_stream *s, uint64_t at, void *to, size_t nr)
{
	if (s->source.seekable)
		return csw_source_read_at(&s->source, at, to, nr);
	if (at > s->head_bytes || nr > s->head_bytes - at)
		return -EBADMSG;
	memcpy(to, s->head + at, nr);
	return 0;
}

static int broken_at(struct csw_error *err, const char *what, uint64_t at)
{
	return csw_error_set(err, -EBADMSG,
			     "%s at offset %" PRIu64 " lie beyond the end of the file", what, at);
}

static struct section get_section(const struct csw_stream *s, const unsigned char *at)
{
	return (struct section){ get64(s, at), get64(s, at + 8) };
}

/* The last byte that a section accounts for; what lies beyond the end of the file is told
 * elsewhere.
 */
static void account_for(struct csw_stream *s, const struct section *at)
{
	uint64_t end = at->size > UINT64_MAX - at->offset ? UINT64_MAX : at->offset + at->size;

	if (end > s->accounted_bytes)
		s->accounted_bytes = end;
}

static int read_ids(struct csw_stream *s, const struct section *ids, struct csw_error *err)
{
	uint32_t attr = (uint32_t)s->attrs.nr - 1;

	if (ids->size % 8)
		return csw_error_set(err, -EBADMSG,
				     "the ids of event %u at offset %" PRIu64
				     " are no multiple of 8 bytes",
				     attr, ids->offset);
	for (uint64_t i = 0; i < ids->size; i += 8) {
		uint64_t id;
		int ret = read_at(s, ids->offset + i, &id, sizeof(id));

		if (ret == -EBADMSG)
			return broken_at(err, "an event's ids", ids->offset);
		if (ret == 0)
			ret = csw_file_attrs_add_id(&s->attrs, get64(s, &id), attr);
		if (ret < 0)
			return csw_error_set(err, ret, "cannot read an event's ids: %s",
					     strerror(-ret));
	}
	return 0;
}

static int read_attr(struct csw_stream *s, uint64_t at, uint64_t entry_bytes, struct csw_error *err)
{
	unsigned char entry[4096];
	struct section ids;
	int ret = read_at(s, at, entry, (size_t)entry_bytes);

	if (ret == -EBADMSG)
		return broken_at(err, "the events", at);
	if (ret < 0)
		return csw_error_set(err, ret, "cannot read at offset %" PRIu64 ": %s", at,
				     strerror(-ret));
	ret = csw_file_attrs_add(&s->attrs, entry, (size_t)entry_bytes - SECTION_BYTES, s->swap);
	if (ret == -EBADMSG)
		return csw_error_set(err, ret, "the event at offset %" PRIu64 " has a wrong size",
				     at);
	if (ret < 0)
		return csw_error_set(err, ret, "too many events: %zu", s->attrs.nr);
	ids = get_section(s, entry + entry_bytes - SECTION_BYTES);
	account_for(s, &ids);
	return read_ids(s, &ids, err);
}

static int read_attrs(struct csw_stream *s, const struct section *attrs, uint64_t entry_bytes,
		      struct csw_error *err)
{
	if (entry_bytes < CSW_ATTR_BYTES_MIN + SECTION_BYTES || entry_bytes > 4096 ||
	    attrs->size % entry_bytes || !attrs->size)
		return csw_error_set(err, -EBADMSG,
				     "the header at offset 0 promises %" PRIu64
				     " bytes of events of %" PRIu64 " bytes each",
				     attrs->size, entry_bytes);
	for (uint64_t i = 0; i < attrs->size; i += entry_bytes) {
		int ret = read_attr(s, attrs->offset + i, entry_bytes, err);

		if (ret < 0)
			return ret;
	}
	return 0;
}

static int read_feature(struct csw_stream *s, uint32_t feature, const struct section *at)
{
	unsigned char *bytes;
	int ret;

	account_for(s, at);
	if (at->size > FEATURE_BYTES_MAX || !at->size)
		return 0;
	if (at->offset > s->file_bytes || at->size > s->file_bytes - at->offset) {
		damage(s,
		       "feature section %u at offset %" PRIu64 " lies beyond the end of the file",
		       feature, at->offset);
		return 0;
	}
	bytes = malloc((size_t)at->size);
	if (!bytes)
		return -ENOMEM;
	ret = read_at(s, at->offset, bytes, (size_t)at->size);
	if (ret == 0)
		ret = csw_features_add(&s->features, &s->attrs, feature, bytes, (size_t)at->size,
				       s->swap);
	free(bytes);
	return ret == -ENOMEM ? ret : 0;
}

/* Bytes behind the last section: a second file, or what a crash has left. simpleperf writes its
 * sections anew over old ones and cuts nothing off: of its files (which its own features tell) only
 * zeros and the beginning of another file are no such rest. */
static void look_behind(struct csw_stream *s, uint64_t own_of_simpleperf)
{
	uint64_t first = 0;
	uint64_t nr = s->accounted_bytes < s->file_bytes ? s->file_bytes - s->accounted_bytes : 0;

	if (!nr)
		return;
	if (own_of_simpleperf &&
	    (read_at(s, s->accounted_bytes, &first, nr < 8 ? (size_t)nr : 8) < 0 ||
	     (first && get64(s, &first) != MAGIC)))
		return;
	damage(s,
	       "%" PRIu64 " bytes at offset %" PRIu64
	       ", behind the last section, belong to nothing and are not read",
	       nr, s->accounted_bytes);
}

/* One section for every bit that is set, in a table behind the records. */
static int read_features(struct csw_stream *s, const unsigned char *bits, uint64_t table,
			 struct csw_error *err)
{
	for (uint32_t feature = 0; feature < NR_FEATURES; feature++) {
		uint64_t word = get64(s, bits + feature / 64 * 8);
		unsigned char entry[SECTION_BYTES];
		struct section at;

		if (!(word >> feature % 64 & 1))
			continue;
		if (read_at(s, table, entry, sizeof(entry)) < 0) {
			damage(s,
			       "the table of features at offset %" PRIu64
			       " lies beyond the end of the file",
			       table);
			return 0;
		}
		table += sizeof(entry);
		at = get_section(s, entry);
		if (read_feature(s, feature, &at) < 0)
			return csw_error_set(err, -ENOMEM, "out of memory");
	}
	account_for(s, &(struct section){ .offset = table });
	look_behind(s, get64(s, bits + FIRST_OF_SIMPLEPERF / 64 * 8));
	return 0;
}

/* A file that comes through a pipe: its records are read as they come, what stands before them is
 * kept, and what stands behind them is never seen. */
static int keep_head(struct csw_stream *s, const unsigned char *header, uint64_t until,
		     struct csw_error *err)
{
	ssize_t got;

	if (until < FILE_HEADER_BYTES || until > HEAD_BYTES_MAX)
		return csw_error_set(err, -EBADMSG,
				     "the records begin at offset %" PRIu64
				     ": give the file by its name",
				     until);
	s->head = malloc((size_t)until);
	if (!s->head)
		return csw_error_set(err, -ENOMEM, "out of memory");
	memcpy(s->head, header, FILE_HEADER_BYTES);
	got = csw_source_read(&s->source, s->head + FILE_HEADER_BYTES,
			      (size_t)until - FILE_HEADER_BYTES);
	if (got < 0)
		return csw_error_set(err, (int)got, "cannot read: %s", strerror((int)-got));
	s->head_bytes = FILE_HEADER_BYTES + (size_t)got;
	return 0;
}

static int open_file_mode(struct csw_stream *s, unsigned char *header, struct csw_error *err)
{
	ssize_t got = csw_source_read(&s->source, header + PIPE_HEADER_BYTES,
				      FILE_HEADER_BYTES - PIPE_HEADER_BYTES);
	struct section attrs, data;
	uint64_t size = get64(s, header + 8);
	int ret = 0;

	if (got != FILE_HEADER_BYTES - PIPE_HEADER_BYTES || size < FILE_HEADER_BYTES_MIN)
		return csw_error_set(err, -EBADMSG, "the header at offset 0 is cut short");
	attrs = get_section(s, header + 24);
	data = get_section(s, header + 40);
	if (!s->source.seekable)
		ret = keep_head(s, header, data.offset, err);
	if (ret == 0)
		ret = read_attrs(s, &attrs, get64(s, header + 16), err);
	if (ret < 0)
		return ret;
	s->unfinished = data.size == 0;
	if (s->source.seekable && data.offset > s->file_bytes)
		return broken_at(err, "the records", data.offset);
	if (data.size > UINT64_MAX - data.offset)
		return csw_error_set(err, -EBADMSG,
				     "the header at offset 0 promises %" PRIu64 " bytes of records",
				     data.size);
	s->source.at = s->block_offset = data.offset;
	s->source.end = s->unfinished ? UINT64_MAX : data.offset + data.size;
	if (!s->source.seekable || s->unfinished || size < FILE_HEADER_BYTES)
		return 0;
	account_for(s, &attrs);
	account_for(s, &data);
	return read_features(s, header + 72, data.offset + data.size, err);
}

/* Everything up to the first record of the kernel says what the file holds. */
static int open_pipe_mode(struct csw_stream *s, struct csw_error *err)
{
	int ret;

	s->pipe = true;
	s->block_offset = s->source.at;
	ret = csw_stream_next(s, &s->ahead);
	if (ret > 0) {
		/* csw_stream_next is called with the block still in place. */
		s->peeked = true;
		s->is_usual = false;
		return 0;
	}
	if (ret == -ENOMEM)
		return csw_error_set(err, ret, "out of memory");
	if (ret < 0 && !s->attrs.nr)
		return csw_error_set(err, ret, "%s", s->damage.text);
	return 0;
}

static int open_source(struct csw_stream *s, const char *path, struct csw_error *err)
{
	bool standard = !strcmp(path, "-");
	struct stat st;

	s->source.fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
				: open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (s->source.fd < 0)
		return csw_error_set(err, -errno, "cannot open it: %s", strerror(errno));
	if (fstat(s->source.fd, &st) < 0)
		return csw_error_set(err, -errno, "%s", strerror(errno));
	if (S_ISDIR(st.st_mode))
		return csw_error_set(err, -EISDIR,
				     "a directory: perf record --threads has spread the recording "
				     "over files that only make sense together, and those are not "
				     "read; record without --threads");
	s->source.seekable = S_ISREG(st.st_mode);
	s->file_bytes = s->source.seekable ? (uint64_t)st.st_size : UINT64_MAX;
	s->source.end = UINT64_MAX;
	return 0;
}

static int open_stream(struct csw_stream *s, const char *path, struct csw_error *err)
{
	unsigned char header[FILE_HEADER_BYTES];
	int ret = open_source(s, path, err);
	uint64_t magic;
	ssize_t got;

	if (ret < 0)
		return ret;
	got = csw_source_read(&s->source, header, PIPE_HEADER_BYTES);
	if (got < 0)
		return csw_error_set(err, (int)got, "cannot read: %s", strerror((int)-got));
	memcpy(&magic, header, sizeof(magic));
	if (got >= 8 && (magic == MAGIC1 || magic == __builtin_bswap64(MAGIC1)))
		return csw_error_set(err, -EBADMSG,
				     "version 1 of perf.data (PERFFILE at offset 0, before Linux "
				     "2.6.32) is not read");
	if (got < (ssize_t)PIPE_HEADER_BYTES ||
	    (magic != MAGIC && magic != __builtin_bswap64(MAGIC)))
		return csw_error_set(err, -EBADMSG,
				     "no perf.data: PERFILE2 is not what stands at offset 0");
	s->swap = magic != MAGIC;
	ret = get64(s, header + 8) == PIPE_HEADER_BYTES ? open_pipe_mode(s, err)
							: open_file_mode(s, header, err);
	if (ret == 0)
		csw_file_attrs_finish(&s->attrs);
	return ret;
}

int csw_stream_open(struct csw_stream *s, const char *path, struct csw_error *err)
{
	int ret;

	*s = (struct csw_stream){ .source = { .fd = -1 } };
	ret = open_stream(s, path, err);
	if (ret < 0)
		csw_stream_close(s);
	return ret;
}

void csw_stream_close(struct csw_stream *s)
{
	if (s->source.fd >= 0)
		close(s->source.fd);
	s->source.fd = -1;
	csw_block_put(&s->blocks, s->unzip_block);
	csw_block_put(&s->blocks, s->inner);
	csw_block_put(&s->blocks, s->block);
	s->block = s->inner = s->unzip_block = NULL;
	csw_blocks_free(&s->blocks);
	csw_unzip_close(s->unzip);
	csw_file_attrs_free(&s->attrs);
	csw_features_free(&s->features);
	free(s->head);
	s->unzip = NULL;
	s->head = NULL;
}
