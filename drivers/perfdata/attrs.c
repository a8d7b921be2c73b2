/* The events of a file: how their records are laid out, and which record is whose. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/perfdata/perfdata.h"

/* Where fields stand in perf_event_attr, whose later ones are missing in old files. */
enum {
	AT_TYPE = 0,
	AT_SIZE = 4,
	AT_CONFIG = 8,
	AT_PERIOD = 16,
	AT_SAMPLE_TYPE = 24,
	AT_READ_FORMAT = 32,
	AT_FLAGS = 40,
	AT_BP_TYPE = 52,
	AT_CONFIG1 = 56,
	AT_CONFIG2 = 64,
};

/* Bit-fields are laid out from the other end of each byte by machines of the other order, and the
 * bytes stand as they are. */
static uint64_t get_flags(const unsigned char *at, bool swap)
{
	uint64_t flags = 0;

	for (unsigned i = 0; i < 8; i++) {
		uint64_t byte = at[i], turned = 0;

		for (unsigned bit = 0; bit < 8; bit++)
			turned |= (byte >> bit & 1) << (7 - bit);
		flags |= (swap ? turned : byte) << (8 * i);
	}
	return flags;
}

static uint16_t bytes_of(uint64_t type, uint64_t fields)
{
	return (uint16_t)(8 * __builtin_popcountll(type & fields));
}

/* In a sample: IDENTIFIER, IP, TID, TIME, ADDR, ID. At the end of other records: TID, TIME, ID,
 * STREAM_ID, CPU, IDENTIFIER. */
static void find_fields(struct csw_file_attr *attr)
{
	const uint64_t type = attr->form.sample_type;
	const uint64_t before_time = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID;
	const uint64_t behind_id = PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	const uint16_t header = sizeof(struct perf_event_header);

	if (type & PERF_SAMPLE_TIME)
		attr->time_at = (uint16_t)(header + bytes_of(type, before_time));
	if (type & PERF_SAMPLE_IDENTIFIER)
		attr->id_at = header;
	else if (type & PERF_SAMPLE_ID)
		attr->id_at = (uint16_t)(header + bytes_of(type, before_time | PERF_SAMPLE_TIME |
									 PERF_SAMPLE_ADDR));
	if (type & PERF_SAMPLE_CPU)
		attr->cpu_at = (uint16_t)(header + bytes_of(type, before_time | PERF_SAMPLE_TIME |
									  PERF_SAMPLE_ADDR |
									  PERF_SAMPLE_ID |
									  PERF_SAMPLE_STREAM_ID));
	if (!attr->form.sample_id_all)
		return;
	if (type & PERF_SAMPLE_CPU)
		attr->cpu_back = bytes_of(type, PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER);
	if (type & PERF_SAMPLE_TIME)
		attr->time_back = bytes_of(type, PERF_SAMPLE_TIME | PERF_SAMPLE_ID | behind_id);
	if (type & PERF_SAMPLE_IDENTIFIER)
		attr->id_back = 8;
	else if (type & PERF_SAMPLE_ID)
		attr->id_back = bytes_of(type, PERF_SAMPLE_ID | behind_id);
}

int csw_file_attrs_add(struct csw_file_attrs *a, const void *at, size_t bytes, bool swap)
{
	const unsigned char *from = at;
	struct csw_file_attr *attr, *attrs;
	uint32_t size = bytes >= CSW_ATTR_BYTES_MIN ? csw_file_u32(from + AT_SIZE, swap) : 0;

	if (!size)
		size = CSW_ATTR_BYTES_MIN;
	if (size < CSW_ATTR_BYTES_MIN || size > bytes)
		return -EBADMSG;
	if (a->nr == CSW_ATTRS_MAX)
		return -E2BIG;
	attrs = reallocarray(a->attrs, a->nr + 1, sizeof(*attrs));
	if (!attrs)
		return -ENOMEM;
	a->attrs = attrs;
	attr = &attrs[a->nr++];
	*attr = (struct csw_file_attr){
		.type = csw_file_u32(from + AT_TYPE, swap),
		.config = csw_file_u64(from + AT_CONFIG, swap),
		.config1 = csw_file_u64(from + AT_CONFIG1, swap),
		.config2 = size >= AT_CONFIG2 + 8 ? csw_file_u64(from + AT_CONFIG2, swap) : 0,
		.bp_type = csw_file_u32(from + AT_BP_TYPE, swap),
		.period = csw_file_u64(from + AT_PERIOD, swap),
		.flags = get_flags(from + AT_FLAGS, swap),
		.column = CSW_NO_COLUMN,
	};
	attr->form.sample_type = csw_file_u64(from + AT_SAMPLE_TYPE, swap);
	attr->form.read_format = csw_file_u64(from + AT_READ_FORMAT, swap);
	attr->form.sample_id_all = attr->flags & CSW_ATTR_SAMPLE_ID_ALL;
	find_fields(attr);
	if (attr->form.sample_type != attrs[0].form.sample_type ||
	    attr->form.read_format != attrs[0].form.read_format)
		a->several_forms = true;
	return 0;
}

/* ---- ids ---- */

static int grow_ids(struct csw_file_attrs *a)
{
	size_t mask = a->ids ? a->mask * 2 + 1 : 255;
	struct csw_file_id *ids = calloc(mask + 1, sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	for (size_t i = 0; a->ids && i <= a->mask; i++) {
		if (a->ids[i].id)
			*csw_file_id_slot(ids, mask, a->ids[i].id) = a->ids[i];
	}
	free(a->ids);
	a->ids = ids;
	a->mask = mask;
	return 0;
}

int csw_file_attrs_add_id(struct csw_file_attrs *a, uint64_t id, uint32_t attr)
{
	struct csw_file_id *slot;

	if (!id)
		return 0; /* 0 stands for no id */
	if ((!a->ids || (a->nr_ids + 1) * 2 > a->mask) && grow_ids(a) < 0)
		return -ENOMEM;
	slot = csw_file_id_slot(a->ids, a->mask, id);
	if (slot->id)
		return 0;
	*slot = (struct csw_file_id){ .id = id, .attr = attr };
	a->nr_ids++;
	return 0;
}

/* ---- names ---- */

void csw_file_attrs_name(struct csw_file_attr *attr, const char *name, size_t bytes)
{
	size_t length = strnlen(name, bytes);

	if (length >= sizeof(attr->name))
		length = sizeof(attr->name) - 1;
	memcpy(attr->name, name, length);
	attr->name[length] = '\0';
}

static const char *generic_name(const struct csw_file_attr *attr)
{
	static const char *const hardware[] = {
		"cycles",
		"instructions",
		"cache-references",
		"cache-misses",
		"branches",
		"branch-misses",
		"bus-cycles",
		"stalled-cycles-frontend",
		"stalled-cycles-backend",
		"ref-cycles",
	};
	static const char *const software[] = {
		"cpu-clock",        "task-clock",   "page-faults",  "context-switches",
		"cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
		"emulation-faults", "dummy",        "bpf-output",   "cgroup-switches",
	};
	uint64_t config = attr->config;

	/* The upper half names the PMU of a hybrid machine. */
	if (attr->type == PERF_TYPE_HARDWARE &&
	    (uint32_t)config < sizeof(hardware) / sizeof(*hardware))
		return hardware[(uint32_t)config];
	if (attr->type == PERF_TYPE_SOFTWARE && config < sizeof(software) / sizeof(*software))
		return software[config];
	return NULL;
}

void csw_file_attrs_finish(struct csw_file_attrs *a)
{
	for (size_t i = 0; i < a->nr; i++) {
		struct csw_file_attr *attr = &a->attrs[i];
		const char *name = generic_name(attr);

		if (attr->name[0])
			continue;
		if (name)
			csw_file_attrs_name(attr, name, strlen(name));
		else if (attr->type == PERF_TYPE_TRACEPOINT)
			snprintf(attr->name, sizeof(attr->name), "tracepoint %llu",
				 (unsigned long long)attr->config);
		else if (attr->type == PERF_TYPE_RAW)
			snprintf(attr->name, sizeof(attr->name), "r%llx",
				 (unsigned long long)attr->config);
		else
			snprintf(attr->name, sizeof(attr->name), "type %u config 0x%llx",
				 attr->type, (unsigned long long)attr->config);
	}
	csw_file_twins_find(a);
}

void csw_file_attrs_free(struct csw_file_attrs *a)
{
	free(a->attrs);
	free(a->ids);
	*a = (struct csw_file_attrs){ .nr = 0 };
}
