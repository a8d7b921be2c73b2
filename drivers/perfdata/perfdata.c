/*
 * The driver of recordings: what perf.data holds, as csw_records.
 *
 * A file is a machine that has been watched: its records say who ran when, and what was counted.
 * How much they say decides what is made of them (choose_mode):
 *
 *	a counter that overflows at every context switch, read with its group: slices, exact;
 *	switches alone, as records or as samples of sched:sched_switch: slices with time only;
 *	and every other event that was sampled: an estimate for its counter.
 *
 * What a file does not have is made up from what it has, and nothing else: START at the first
 * switch of a CPU (what came before has no known beginning), STOP at its last record, and where
 *only samples tell of switches, the switches.
 *
 * Invariant: the stream of a CPU is START, then records in order, then STOP, or has no slices at
 * all.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/perfdata/perfdata.h"
#include "engine/driver.h"
#include "engine/error.h"
#include "engine/table.h"

#define CPUS_MAX 1024u
#define PENDING_MAX 8
/* Records between two looks at what else there is to do. */
#define QUOTA (1u << 16)
#define PID_UNKNOWN (-1)

/* sched:sched_switch of a 64-bit kernel, where the file has not said it. */
#define PREV_PID_AT 24u
#define NEXT_PID_AT 56u
#define PREV_STATE_BEHIND 8u /* prev_pid, prev_prio, prev_state */

enum switches {
	SWITCHES_NONE,
	SWITCHES_RECORDS,      /* PERF_RECORD_SWITCH, PERF_RECORD_SWITCH_CPU_WIDE */
	SWITCHES_BY_SAMPLES,   /* each sample of context-switches is one: its thread leaves */
	SWITCHES_BY_TRACEPOINT /* ... of sched:sched_switch: says who comes as well */
};

enum cpu_state {
	CPU_BEFORE,  /* nothing known */
	CPU_SAMPLED, /* a first reading is there, not yet who comes */
	CPU_LEFT, /* somebody has left, and who comes is known: START comes with the next record */
	CPU_COUNTING,
};

/* Where the values of a reading go, by their ids: a CPU's readings all look alike, so one search is
 * enough for as long as they do. */
struct layout {
	uint32_t nr, trigger;
	bool straight; /* the values are the columns', in their order */
	size_t nr_ids; /* that the file had said by then */
	uint64_t ids[1 + CSW_COUNTERS_MAX];
	uint32_t to[1 + CSW_COUNTERS_MAX]; /* in values; CSW_NO_COLUMN: nowhere */
};

/* pid/tid: CPU_LEFT: who comes; SWITCHES_BY_SAMPLES: who left last. */
struct cpu {
	uint32_t state; /* enum cpu_state */
	int32_t pid, tid;
	uint64_t since_ns; /* of that */
	uint64_t last_ns;
	int32_t exit_pid,
		exit_tid;  /* who has begun to exit since the last sample; tid -1: nobody */
	bool sampled_last; /* no switch since the last sample */
	int32_t sample_pid, sample_tid;
	uint64_t sample_cgroup;
	uint64_t enabled_ns, running_ns;
	uint64_t values[1 + CSW_COUNTERS_MAX]; /* the last reading */
	struct layout layout;
};

/* The last sample of a CPU's trigger waits for the record behind it; see add_ref. */
struct held {
	struct csw_ref ref; /* header NULL: none */
	uint64_t last_ns;   /* of the CPU's records so far */
	/* Where events were recorded twice, the last such sample; and the trigger, 0: none yet. */
	uint64_t twin_id, twin_ns;
	uint32_t trigger; /* its attr + 1 */
};

struct csw_driver {
	struct csw_stream stream;
	struct csw_order order;
	struct csw_file_cgroups cgroups;
	struct csw_plan *plan;
	uint32_t switches; /* enum switches */
	bool has_trigger, has_reading;
	bool has_cpu;            /* records say on which CPU */
	bool has_samples;        /* some event was sampled; else the switches stand for samples */
	bool has_first, hit;     /* a sample has been seen; one of the time that was asked for */
	uint64_t from_ns, to_ns; /* UINT64_MAX where the first sample is to say it */
	uint64_t first_ns, latest_ns; /* of the samples */
	struct cpu *cpus;
	struct held *held; /* per CPU */
	struct csw_record pending[PENDING_MAX];
	unsigned nr_pending, next_pending;
	struct csw_perf_extra extra;
	int32_t forked_tid; /* the last one of a synthesized FORK, for the COMM behind it */
	uint64_t last_ns;   /* of the records read so far, for those without a time */
	uint32_t quota;
	unsigned stopping; /* next CPU whose STOP is to come */
	bool read_all, ended, stopped;
};

/* ---- what the file holds ---- */

static bool is_dummy(const struct csw_file_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_DUMMY;
}

static bool is_switch_counter(const struct csw_file_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_CONTEXT_SWITCHES;
}

static bool is_switch_tracepoint(const struct csw_file_attr *attr)
{
	return attr->type == PERF_TYPE_TRACEPOINT && !strcmp(attr->name, "sched:sched_switch") &&
	       (attr->form.sample_type & PERF_SAMPLE_RAW);
}

/* Does every occurrence leave a sample that says whose it was, where and when? */
static bool samples_all(const struct csw_file_attr *attr)
{
	const uint64_t wanted = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;

	return attr->period == 1 && !(attr->flags & (CSW_ATTR_FREQ | CSW_ATTR_EXCLUDE_KERNEL)) &&
	       (attr->form.sample_type & wanted) == wanted;
}

static bool has_group_reading(const struct csw_file_attr *attr)
{
	return (attr->form.sample_type & PERF_SAMPLE_READ) &&
	       (attr->form.read_format & PERF_FORMAT_GROUP);
}

/* Were CPUs recorded, or threads? Of a thread's own counters the file shows no other thread. */
static bool is_cpu_wide(const struct csw_stream *s)
{
	bool on_exec = false;

	for (size_t i = 0; i < s->attrs.nr; i++)
		on_exec |= (s->attrs.attrs[i].flags & CSW_ATTR_ENABLE_ON_EXEC) != 0;
	if (s->features.per_thread)
		return false;
	return s->features.says_wide || !on_exec;
}

/* Makes triggers of all that are of this kind; whether there are any. */
static bool choose_trigger(struct csw_driver *d, bool (*is_kind)(const struct csw_file_attr *),
			   bool reading)
{
	struct csw_file_attrs *a = &d->stream.attrs;
	bool any = false;

	for (size_t i = 0; i < a->nr; i++) {
		struct csw_file_attr *attr = &a->attrs[i];

		if (is_kind(attr) && samples_all(attr) && has_group_reading(attr) == reading)
			attr->is_trigger = any = true;
	}
	d->has_reading = any && reading;
	return any;
}

static void choose_mode(struct csw_driver *d)
{
	const struct csw_file_attrs *a = &d->stream.attrs;
	bool records = false;

	d->has_cpu = true;
	for (size_t i = 0; i < a->nr; i++) {
		const struct csw_file_attr *attr = &a->attrs[i];

		d->has_cpu = d->has_cpu && (attr->form.sample_type & PERF_SAMPLE_CPU) &&
			     attr->form.sample_id_all;
		records |= attr->flags & CSW_ATTR_CONTEXT_SWITCH && attr->time_back;
	}
	for (size_t i = 0; i < a->nr; i++)
		d->has_samples |= !is_dummy(&a->attrs[i]);
	records = records && d->has_cpu;
	if (d->has_cpu && is_cpu_wide(&d->stream))
		d->has_trigger = choose_trigger(d, is_switch_counter, true) ||
				 choose_trigger(d, is_switch_tracepoint, true) ||
				 (!records && (choose_trigger(d, is_switch_tracepoint, false) ||
					       choose_trigger(d, is_switch_counter, false)));
	if (records)
		d->switches = SWITCHES_RECORDS;
	for (size_t i = 0; i < a->nr && !records; i++) {
		if (a->attrs[i].is_trigger)
			d->switches = is_switch_counter(&a->attrs[i]) ? SWITCHES_BY_SAMPLES
								      : SWITCHES_BY_TRACEPOINT;
	}
}

/* A ring of perf record --overwrite is written from its end to its beginning, and the file has it
 * so: newest first, while slices need to know what came before. */
static int refuse_backward(const struct csw_driver *d, struct csw_error *err)
{
	const struct csw_file_attrs *a = &d->stream.attrs;

	for (size_t i = 0; i < a->nr; i++) {
		const struct csw_file_attr *attr = &a->attrs[i];
		bool makes_switches =
			d->switches == SWITCHES_RECORDS && attr->flags & CSW_ATTR_CONTEXT_SWITCH;

		if (attr->flags & CSW_ATTR_WRITE_BACKWARD && (attr->is_trigger || makes_switches))
			return csw_error_set(err, -EOPNOTSUPP,
					     "recorded with --overwrite, newest first: no slices "
					     "can be made of it; record without --overwrite");
	}
	return 0;
}

/* ---- the plan ---- */

static uint32_t event_flags(const struct csw_file_attr *attr)
{
	uint32_t flags = 0;

	if (attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE ||
	    attr->type == PERF_TYPE_RAW)
		flags |= CSW_EVENT_HARDWARE;
	if (attr->flags & CSW_ATTR_EXCLUDE_KERNEL)
		flags |= CSW_EVENT_NEVER_IDLE;
	if (attr->type != PERF_TYPE_SOFTWARE)
		return flags;
	switch (attr->config) {
	case PERF_COUNT_SW_CPU_CLOCK:
	case PERF_COUNT_SW_TASK_CLOCK:
		return flags | CSW_EVENT_CLOCK | CSW_EVENT_NANOSECONDS;
	case PERF_COUNT_SW_PAGE_FAULTS:
	case PERF_COUNT_SW_PAGE_FAULTS_MIN:
	case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
		return flags | CSW_EVENT_NEVER_IDLE;
	default:
		return flags;
	}
}

static void describe(struct csw_event *event, const struct csw_file_attr *attr)
{
	*event = (struct csw_event){
		.type = attr->type,
		.flags = event_flags(attr),
		.config = attr->config,
		.config1 = attr->config1,
		.config2 = attr->config2,
		.bp_type = attr->bp_type,
		.exclude_user = attr->flags & CSW_ATTR_EXCLUDE_USER,
		.exclude_kernel = attr->flags & CSW_ATTR_EXCLUDE_KERNEL,
		.exclude_hv = attr->flags & CSW_ATTR_EXCLUDE_HV,
	};
	memcpy(event->name, attr->name, sizeof(event->name));
	memcpy(event->became, attr->name, sizeof(event->became));
}

static void name_trigger(struct csw_driver *d, struct csw_event *event)
{
	const struct csw_file_attrs *a = &d->stream.attrs;
	static const char *const names[] = {
		[SWITCHES_NONE] = "none",
		[SWITCHES_RECORDS] = "switch records",
	};

	for (size_t i = 0; i < a->nr; i++) {
		if (a->attrs[i].is_trigger) {
			describe(event, &a->attrs[i]);
			return;
		}
	}
	snprintf(event->name, sizeof(event->name), "%s", names[d->switches]);
	snprintf(event->became, sizeof(event->became), "%s", names[d->switches]);
}

static bool has_cgroups(const struct csw_file_attrs *a)
{
	bool any = false;

	for (size_t i = 0; i < a->nr; i++)
		any |= !is_dummy(&a->attrs[i]) &&
		       csw_perf_says_cgroup(a->attrs[i].form.sample_type);
	return any;
}

/* A member of the trigger's group has no samples of its own and is read with it; the rest is only
 * sampled. */
static int make_plan(struct csw_driver *d, struct csw_error *err)
{
	struct csw_file_attrs *a = &d->stream.attrs;
	struct csw_plan *plan = d->plan;

	plan->nr_counters = 0;
	plan->estimated = 0;
	plan->trigger =
		(struct csw_trigger){ .sav = 1, .phase = CSW_PHASE_BEFORE, .per_switch = 1 };
	name_trigger(d, &plan->trigger.event);
	if (!d->has_reading)
		plan->trigger.event.flags |= CSW_EVENT_UNCOUNTED;
	if (plan->cgroups && !has_cgroups(a))
		return csw_error_set(err, -EOPNOTSUPP,
				     "its samples do not say in which cgroup they were taken: "
				     "record with perf record --all-cgroups");
	for (size_t i = 0; i < a->nr; i++) {
		struct csw_file_attr *attr = &a->attrs[i];

		if (attr->is_trigger || is_dummy(attr))
			continue;
		if (plan->nr_counters == CSW_COUNTERS_MAX)
			return csw_error_set(err, -E2BIG,
					     "the file has more than %d events, and a table has "
					     "no more columns; record fewer",
					     CSW_COUNTERS_MAX);
		if (!d->has_reading || attr->period)
			plan->estimated |= 1u << plan->nr_counters;
		attr->column = plan->nr_counters;
		describe(&plan->counters[plan->nr_counters++], attr);
	}
	return 0;
}

/* ---- opening and closing ---- */

/* A record is done with. */
static void drop(struct csw_driver *d, const struct csw_ref *ref)
{
	if (ref->header)
		csw_block_put(&d->stream.blocks, csw_block_of(ref->header));
}

static void perfdata_close(struct csw_driver *d)
{
	if (!d)
		return;
	for (unsigned i = 0; d->held && i < CPUS_MAX; i++)
		drop(d, &d->held[i].ref);
	csw_order_free(&d->order, &d->stream.blocks);
	csw_file_cgroups_free(&d->cgroups);
	csw_stream_close(&d->stream);
	free(d->cpus);
	free(d->held);
	free(d);
}

static int perfdata_adopt(struct csw_driver **out, struct csw_plan *plan, struct csw_error *err)
{
	struct csw_driver *d = calloc(1, sizeof(*d));
	int ret;

	*out = NULL;
	if (!d)
		return csw_error_set(err, -ENOMEM, "out of memory");
	d->stream.source.fd = -1;
	d->plan = plan;
	d->forked_tid = -1;
	d->from_ns = plan->from_first ? UINT64_MAX : plan->from_ns;
	d->to_ns = plan->to_first || !plan->to_ns ? UINT64_MAX : plan->to_ns;
	d->cpus = calloc(CPUS_MAX, sizeof(*d->cpus));
	d->held = calloc(CPUS_MAX, sizeof(*d->held));
	if (!d->cpus || !d->held) {
		perfdata_close(d);
		return csw_error_set(err, -ENOMEM, "out of memory");
	}
	for (unsigned i = 0; i < CPUS_MAX; i++)
		d->cpus[i].exit_tid = -1;
	ret = csw_stream_open(&d->stream, plan->input, err);
	if (ret == 0) {
		choose_mode(d);
		ret = refuse_backward(d, err);
	}
	if (ret == 0)
		ret = make_plan(d, err);
	if (ret < 0) {
		perfdata_close(d);
		csw_error_prefix(err, "%s", plan->input);
		return ret;
	}
	*out = d;
	return 0;
}

static int perfdata_damage(const struct csw_driver *d, struct csw_error *err)
{
	const struct csw_stream *s = &d->stream;

	if (err)
		err->text[0] = '\0';
	if (s->damage.code)
		return csw_error_set(err, s->damage.code, "%s", s->damage.text);
	if (s->unfinished)
		csw_error_set(err, 0,
			      "the recording was never finished: what its recorder still held "
			      "is missing");
	return 0;
}

static int perfdata_probe(struct csw_error *err)
{
	(void)err;
	return 0;
}

static int refuse_name(const char *name, struct csw_error *err)
{
	return csw_error_set(err, -EOPNOTSUPP,
			     "%s: a recording has the events that it has: csw-sample report FILE",
			     name);
}

static int perfdata_resolve_counter(const char *name, struct csw_event *out, struct csw_error *err)
{
	(void)out;
	return refuse_name(name, err);
}

static int perfdata_resolve_trigger(const char *name, uint64_t sav, struct csw_trigger *out,
				    struct csw_error *err)
{
	(void)sav;
	(void)out;
	return refuse_name(name, err);
}

static unsigned perfdata_nr_rings(const struct csw_driver *d)
{
	(void)d;
	return 1; /* in the order of time already */
}

static unsigned perfdata_nr_cpus(const struct csw_driver *d)
{
	(void)d;
	return CPUS_MAX;
}

static int perfdata_start(struct csw_driver *d, const struct csw_sink *sink, struct csw_error *err)
{
	(void)d;
	(void)sink;
	(void)err;
	return 0;
}

static int perfdata_wait(struct csw_driver *d, int timeout_ms, struct csw_error *err)
{
	(void)timeout_ms;
	(void)err;
	return d->ended ? 0 : 1;
}

static int perfdata_tick(struct csw_driver *d, struct csw_error *err)
{
	(void)d;
	(void)err;
	return 0; /* a recording has the readings that it has */
}

static const char *perfdata_cgroup_path(struct csw_driver *d, uint64_t id)
{
	return csw_file_cgroups_path(&d->cgroups, id);
}

#define SECONDS "%" PRIu64 ".%06" PRIu64
#define SECONDS_OF(ns) (ns) / 1000000000, (ns) % 1000000000 / 1000

/* A file was read to its end for a time of which it has nothing. */
static int refuse_time(const struct csw_driver *d, struct csw_error *err)
{
	char to[48] = "on";

	if (d->to_ns != UINT64_MAX)
		snprintf(to, sizeof(to), "to " SECONDS, SECONDS_OF(d->to_ns));
	return csw_error_set(err, -ENODATA,
			     "%s: nothing was recorded from " SECONDS
			     " %s; the recording goes from " SECONDS " to " SECONDS
			     ", that is +0 to +" SECONDS,
			     d->plan->input, SECONDS_OF(d->from_ns), to, SECONDS_OF(d->first_ns),
			     SECONDS_OF(d->latest_ns), SECONDS_OF(d->latest_ns - d->first_ns));
}

static int perfdata_stop(struct csw_driver *d, struct csw_error *err)
{
	d->stopped = true;
	return d->ended && d->has_first && !d->hit ? refuse_time(d, err) : 0;
}

static uint64_t perfdata_snapshot(struct csw_driver *d)
{
	d->quota = QUOTA;
	return UINT64_MAX;
}

/* ---- raw records in order ---- */

/*
 * The kernel fills in a sample's time once for all events that overflow together, by the clock that
 * the first of them asked for: with another recorder beside it, a trigger's samples may have times
 * of another clock. But each CPU's ring is in order, so such a sample's time lies between those of
 * the records around it.
 */
static int let_go(struct csw_driver *d, struct held *held)
{
	if (!held->ref.header)
		return 0;
	if (csw_order_add(&d->order, held->ref) < 0)
		return -ENOMEM;
	held->ref.header = NULL;
	return 0;
}

/* The held sample beside the record behind it. */
static bool is_of_another_clock(const struct held *held, const struct csw_ref *ref)
{
	const struct perf_event_header *header = ref->header;
	bool leaves = (header->type == PERF_RECORD_SWITCH ||
		       header->type == PERF_RECORD_SWITCH_CPU_WIDE) &&
		      (header->misc & PERF_RECORD_MISC_SWITCH_OUT);

	return held->ref.time_ns > ref->time_ns ||
	       (leaves && ref->time_ns - held->ref.time_ns > CSW_PERF_SAMPLE_TO_SWITCH_NS);
}

/* Takes over the reference to the block. */
static int add_ref(struct csw_driver *d, struct csw_ref ref)
{
	const struct csw_file_attr *attr = &d->stream.attrs.attrs[ref.attr];
	bool sample = ref.header->type == PERF_RECORD_SAMPLE;
	struct held *held;
	uint32_t cpu;

	if (!d->has_trigger || !ref.time_ns)
		return csw_order_add(&d->order, ref);
	cpu = csw_file_attrs_cpu(attr, ref.header, d->stream.swap);
	if (cpu >= CPUS_MAX)
		return csw_order_add(&d->order, ref);
	held = &d->held[cpu];
	if (held->ref.header) {
		if (!sample && is_of_another_clock(held, &ref))
			held->ref.time_ns =
				ref.time_ns > held->last_ns ? ref.time_ns : held->last_ns;
		if (held->ref.time_ns > held->last_ns)
			held->last_ns = held->ref.time_ns;
		if (let_go(d, held) < 0)
			return -ENOMEM;
	}
	if (sample && attr->is_trigger) {
		if (ref.time_ns < held->last_ns)
			ref.time_ns = held->last_ns;
		held->ref = ref;
		return 0;
	}
	if (ref.time_ns > held->last_ns)
		held->last_ns = ref.time_ns;
	return csw_order_add(&d->order, ref);
}

static int let_all_go(struct csw_driver *d)
{
	int ret = 0;

	for (unsigned i = 0; i < CPUS_MAX && ret == 0; i++)
		ret = let_go(d, &d->held[i]);
	return ret;
}

#define break_off(s, ...)                                                                          \
	do {                                                                                       \
		if (!(s)->damage.code)                                                             \
			csw_error_set(&(s)->damage, -EBADMSG, __VA_ARGS__);                        \
		(s)->broken = true;                                                                \
		(s)->is_usual = false;                                                             \
	} while (0)

/* Is the event that makes the slices among those that count the same as attr nr? */
static bool makes_slices(const struct csw_driver *d, uint32_t nr)
{
	const struct csw_file_attrs *a = &d->stream.attrs;
	bool any = false;

	for (size_t i = 0; i < a->nr; i++)
		any |= a->attrs[i].is_trigger && a->attrs[i].type == a->attrs[nr].type &&
		       a->attrs[i].config == a->attrs[nr].config;
	return any;
}

/* Which attr a sample is of whose event was recorded twice, attr nr by its id. That was the last
 * sample's too, at the same time: then the kernel has filled in both at once, and the second one's
 * id is not its own. -1: nobody knows; the file is broken off there. */
static int64_t tell_apart(struct csw_driver *d, uint32_t nr, const struct perf_event_header *raw)
{
	struct csw_stream *s = &d->stream;
	const struct csw_file_attr *attr = &s->attrs.attrs[nr];
	uint64_t time_ns = csw_file_attrs_time(attr, raw, s->swap);
	const unsigned char *at = csw_file_field(raw, attr->id_at, 0, 8);
	uint64_t id = at ? csw_file_u64(at, s->swap) : 0;
	uint32_t cpu = csw_file_attrs_cpu(attr, raw, s->swap);
	struct held *held = &d->held[cpu < CPUS_MAX ? cpu : 0];
	bool again = held->twin_id == id && held->twin_ns == time_ns;
	int64_t found = csw_file_twin_of(&s->attrs, nr, raw, s->swap);

	held->twin_id = id;
	held->twin_ns = time_ns;
	if (found == CSW_TWIN_SEVERAL && !again && !makes_slices(d, nr))
		found = nr;
	if (found < 0) {
		break_off(s,
			  "%s was recorded twice, and the sample at offset %" PRIu64
			  " may be of either: record it once",
			  attr->name, csw_block_offset(raw));
		return -1;
	}
	if (!s->attrs.attrs[found].is_trigger)
		return found;
	if (held->trigger && held->trigger != 1 + (uint32_t)found) {
		break_off(s,
			  "%s leads two groups, as the sample at offset %" PRIu64
			  " shows, and slices are made of one: record one group of all",
			  attr->name, csw_block_offset(raw));
		return -1;
	}
	held->trigger = 1 + (uint32_t)found;
	return found;
}

/* One more raw record into the order. 0, or -errno; damage ends the file, as its end does. */
static int read_one(struct csw_driver *d)
{
	struct csw_stream *s = &d->stream;
	const struct perf_event_header *raw;
	struct csw_ref ref;
	int64_t attr;
	int ret = csw_stream_next(s, &raw);

	if (ret == -ENOMEM)
		return ret;
	if (ret <= 0) {
		d->read_all = true;
		ret = let_all_go(d);
		csw_order_end(&d->order);
		return ret;
	}
	if (raw->type == CSW_RECORD_FINISHED_ROUND) {
		csw_order_round(&d->order);
		return 0;
	}
	if (raw->type == PERF_RECORD_CGROUP)
		return d->plan->cgroups ? csw_file_cgroups_add(&d->cgroups, raw, s->swap) : 0;
	attr = csw_file_attrs_of(&s->attrs, raw, s->swap);
	if (attr == -EBADMSG) {
		break_off(s, "the record at offset %" PRIu64 " comes before any event is described",
			  csw_block_offset(raw));
		return 0;
	}
	if (attr < 0)
		return 0; /* of an event that the file does not list: nobody knows its form */
	if (s->attrs.attrs[attr].is_twin && raw->type == PERF_RECORD_SAMPLE) {
		attr = tell_apart(d, (uint32_t)attr, raw);
		if (attr < 0)
			return 0;
	}
	ref.header = raw;
	ref.attr = (uint32_t)attr;
	ref.time_ns = csw_file_attrs_time(&s->attrs.attrs[attr], raw, s->swap);
	/* Old kernels give only samples a time: the rest stays where it stands. */
	if (!ref.time_ns && !s->attrs.attrs[attr].time_back)
		ref.time_ns = d->last_ns;
	d->last_ns = ref.time_ns;
	csw_block_of(raw)->refs++;
	if (add_ref(d, ref) < 0) {
		drop(d, &ref);
		return -ENOMEM;
	}
	if (!d->order.has_rounds && csw_order_is_full(&d->order))
		csw_order_halve(&d->order);
	return 0;
}

/* NULL: the end, or *error is -errno. */
static const struct csw_ref *next_ref(struct csw_driver *d, int *error)
{
	for (;;) {
		const struct csw_ref *ref = csw_order_next(&d->order);

		if (ref || d->read_all)
			return ref;
		do {
			*error = read_one(d);
			if (*error < 0)
				return NULL;
		} while (!d->order.handing_out && !d->read_all);
	}
}

/* ---- what goes out ---- */

static struct csw_record *push(struct csw_driver *d, uint32_t type, uint32_t cpu, uint64_t time_ns)
{
	struct csw_record *rec = &d->pending[d->nr_pending++];

	/* Only what the slicer reads: the values are many. */
	rec->type = type;
	rec->cpu = cpu;
	rec->time_ns = time_ns;
	rec->pid = rec->tid = rec->other_pid = rec->other_tid = -1;
	rec->flags = 0;
	rec->nr_values = 0;
	rec->lost = rec->lost_other = CSW_LOST_UNKNOWN;
	rec->cgroup = 0;
	return rec;
}

static void push_reading(struct csw_driver *d, uint32_t type, uint32_t nr, uint64_t time_ns)
{
	const struct cpu *cpu = &d->cpus[nr];
	struct csw_record *rec = push(d, type, nr, time_ns);

	rec->pid = cpu->sample_pid;
	rec->tid = cpu->sample_tid;
	rec->cgroup = cpu->sample_cgroup;
	rec->enabled_ns = cpu->enabled_ns;
	rec->running_ns = cpu->running_ns;
	rec->nr_values = 1 + d->plan->nr_counters;
	memcpy(rec->values, cpu->values, rec->nr_values * sizeof(*rec->values));
}

static void push_start(struct csw_driver *d, uint32_t nr, int32_t pid, int32_t tid,
		       uint64_t time_ns)
{
	d->cpus[nr].state = CPU_COUNTING;
	push_reading(d, CSW_RECORD_START, nr, time_ns);
	d->pending[d->nr_pending - 1].pid = pid;
	d->pending[d->nr_pending - 1].tid = tid;
}

static void push_switch(struct csw_driver *d, uint32_t nr, const struct csw_record *out)
{
	struct csw_record *rec = push(d, CSW_RECORD_SWITCH_OUT, nr, out->time_ns);

	rec->pid = out->pid;
	rec->tid = out->tid;
	rec->other_pid = out->other_pid;
	rec->other_tid = out->other_tid;
	rec->flags = out->flags;
	rec = push(d, CSW_RECORD_SWITCH_IN, nr, out->time_ns);
	rec->pid = out->other_pid;
	rec->tid = out->other_tid;
	rec->other_pid = out->pid;
	rec->other_tid = out->tid;
}

/* The usual case: the record that was read goes out itself, behind nothing else (true), else a copy
 * of it waits for its turn. */
static bool send(struct csw_driver *d, const struct csw_record *rec)
{
	if (!d->nr_pending)
		return true;
	csw_record_copy(&d->pending[d->nr_pending++], rec);
	return false;
}

/* The same for a trigger's sample, with the reading in the columns' order. */
static bool send_reading(struct csw_driver *d, struct csw_record *rec)
{
	const struct cpu *cpu = &d->cpus[rec->cpu];

	if (d->has_reading && cpu->layout.straight)
		return send(d, rec);
	rec->enabled_ns = cpu->enabled_ns;
	rec->running_ns = cpu->running_ns;
	rec->nr_values = 1 + d->plan->nr_counters;
	for (uint32_t i = 0; i < rec->nr_values; i++)
		rec->values[i] = cpu->values[i];
	return send(d, rec);
}

/* ---- samples of the trigger ---- */

static bool fits(const struct layout *l, const struct csw_driver *d, uint32_t nr, uint32_t trigger)
{
	bool same = l->nr == nr && l->trigger == trigger && l->nr_ids == d->stream.attrs.nr_ids;

	for (uint32_t i = 0; i < nr && same; i++)
		same = l->ids[i] == d->extra.value_ids[i];
	return same;
}

static void lay_out(struct layout *l, const struct csw_driver *d, uint32_t nr, uint32_t trigger)
{
	const struct csw_file_attrs *a = &d->stream.attrs;

	l->nr = nr;
	l->trigger = trigger;
	l->nr_ids = a->nr_ids;
	l->straight = nr == 1 + d->plan->nr_counters;
	for (uint32_t i = 0; i < nr; i++) {
		const struct csw_file_id *id = csw_file_attrs_find(a, d->extra.value_ids[i]);
		uint64_t attr = id ? id->attr : trigger + (uint64_t)i;
		uint32_t column = attr < a->nr ? a->attrs[attr].column : CSW_NO_COLUMN;

		l->ids[i] = d->extra.value_ids[i];
		l->to[i] = CSW_NO_COLUMN;
		if (i == 0)
			l->to[0] = 0;
		else if (column != CSW_NO_COLUMN && !(d->plan->estimated >> column & 1))
			l->to[i] = 1 + column;
		l->straight = l->straight && l->to[i] == i;
	}
}

/* The reading of a trigger's sample, its values to the columns whose they are. */
static void take_reading(struct csw_driver *d, struct cpu *cpu, const struct csw_record *rec,
			 uint32_t trigger)
{
	cpu->sample_pid = rec->pid;
	cpu->sample_tid = rec->tid;
	cpu->sample_cgroup = rec->cgroup;
	if (!d->has_reading) {
		cpu->values[0]++;
		return;
	}
	cpu->enabled_ns = rec->enabled_ns;
	cpu->running_ns = rec->running_ns;
	if (!fits(&cpu->layout, d, rec->nr_values, trigger))
		lay_out(&cpu->layout, d, rec->nr_values, trigger);
	if (cpu->layout.straight) {
		for (uint32_t i = 0; i < rec->nr_values; i++)
			cpu->values[i] = rec->values[i];
		return;
	}
	for (uint32_t i = 0; i < rec->nr_values; i++) {
		if (cpu->layout.to[i] != CSW_NO_COLUMN)
			cpu->values[cpu->layout.to[i]] = rec->values[i];
	}
}

static int32_t get_pid(const struct csw_driver *d, uint32_t at)
{
	int32_t pid;

	memcpy(&pid, d->extra.raw + at, sizeof(pid));
	return d->stream.swap ? (int32_t)__builtin_bswap32((uint32_t)pid) : pid;
}

/* Fills in who leaves and who comes. false: the sample does not say. */
static bool take_tracepoint(const struct csw_driver *d, struct csw_record *rec)
{
	const struct csw_features *f = &d->stream.features;
	uint32_t prev = f->prev_pid_at ? f->prev_pid_at : PREV_PID_AT;
	uint32_t next = f->next_pid_at ? f->next_pid_at : NEXT_PID_AT;
	uint64_t bytes = d->extra.raw_bytes, state = 0;

	if (!d->extra.raw || (uint64_t)prev + 16 > bytes || (uint64_t)next + 4 > bytes)
		return false;
	rec->other_tid = get_pid(d, next);
	rec->other_pid = PID_UNKNOWN;
	/* An exiting thread has no PID any more where the kernel fills in the sample, but here. */
	rec->tid = get_pid(d, prev);
	memcpy(&state, d->extra.raw + prev + PREV_STATE_BEHIND, sizeof(state));
	if (!state)
		rec->flags |= CSW_RECORD_PREEMPTED;
	return true;
}

static void switch_by_tracepoint(struct csw_driver *d, struct cpu *cpu, struct csw_record *rec)
{
	bool known = take_tracepoint(d, rec);

	if (cpu->state == CPU_COUNTING) {
		/* Where nobody counts them, a switch without a sample shows only here: it is not
		 * the one who came that leaves. */
		if (!d->has_reading && known && rec->tid != cpu->tid)
			cpu->values[0]++;
		push_reading(d, CSW_RECORD_SAMPLE, rec->cpu, rec->time_ns);
		if (known)
			push_switch(d, rec->cpu, rec);
	} else {
		cpu->state = CPU_LEFT;
	}
	cpu->pid = known ? rec->other_pid : -1;
	cpu->tid = known ? rec->other_tid : -1;
	cpu->since_ns = rec->time_ns;
}

/* Who leaves now came when the last one left: the switch is made up when its other side is known.
 */
static void switch_by_sample(struct csw_driver *d, struct cpu *cpu, const struct csw_record *rec)
{
	struct csw_record out = { .time_ns = cpu->since_ns,
				  .pid = cpu->pid,
				  .tid = cpu->tid,
				  .other_pid = rec->pid,
				  .other_tid = rec->tid };

	if (rec->tid < 0 && cpu->exit_tid > 0) {
		out.other_pid = cpu->exit_pid;
		out.other_tid = cpu->exit_tid;
	}
	if (cpu->state == CPU_SAMPLED)
		push_start(d, rec->cpu, out.other_pid, out.other_tid, out.time_ns);
	else if (cpu->state == CPU_COUNTING)
		push_switch(d, rec->cpu, &out);
	else
		cpu->state = CPU_SAMPLED;
	cpu->pid = out.other_pid;
	cpu->tid = out.other_tid;
	cpu->since_ns = rec->time_ns;
	cpu->exit_tid = -1;
}

/* true: rec goes out as it is now, as of the functions below. */
static bool on_trigger(struct csw_driver *d, struct csw_record *rec, uint32_t attr)
{
	struct cpu *cpu = &d->cpus[rec->cpu];

	/* START has the reading of the sample before this one. */
	if (cpu->state == CPU_LEFT)
		push_start(d, rec->cpu, cpu->pid, cpu->tid, cpu->since_ns);
	if (d->switches == SWITCHES_BY_TRACEPOINT) {
		take_reading(d, cpu, rec, attr);
		switch_by_tracepoint(d, cpu, rec);
		return false;
	}
	if (d->switches == SWITCHES_BY_SAMPLES) {
		switch_by_sample(d, cpu, rec);
		take_reading(d, cpu, rec, attr);
		cpu->sampled_last = true;
		return cpu->state == CPU_COUNTING && send_reading(d, rec);
	}
	take_reading(d, cpu, rec, attr);
	cpu->sampled_last = true;
	if (cpu->state == CPU_COUNTING)
		return send_reading(d, rec);
	cpu->state = CPU_SAMPLED;
	return false;
}

/* ---- switch records ---- */

/* Without a trigger each switch is one: then a slice ends with it, as it should. */
static void push_own_sample(struct csw_driver *d, const struct csw_record *rec)
{
	struct cpu *cpu = &d->cpus[rec->cpu];

	if (d->has_trigger)
		return;
	cpu->values[0]++;
	cpu->sample_pid = cpu->sample_tid = -1;
	push_reading(d, CSW_RECORD_SAMPLE, rec->cpu, rec->time_ns);
}

static bool on_out(struct csw_driver *d, struct cpu *cpu, const struct csw_record *rec)
{
	if (cpu->state == CPU_LEFT)
		push_start(d, rec->cpu, cpu->pid, cpu->tid, cpu->since_ns);
	if (cpu->state == CPU_COUNTING) {
		push_own_sample(d, rec);
		return send(d, rec);
	}
	if (cpu->state == CPU_SAMPLED || !d->has_trigger) {
		cpu->state = CPU_LEFT;
		cpu->pid = rec->other_pid;
		cpu->tid = rec->other_tid;
		cpu->since_ns = rec->time_ns;
	}
	return false;
}

static bool on_in(struct csw_driver *d, struct cpu *cpu, const struct csw_record *rec, bool wide)
{
	if (cpu->state == CPU_LEFT) {
		push_start(d, rec->cpu, cpu->pid, cpu->tid, cpu->since_ns);
		if (cpu->tid == rec->tid)
			return false;
	} else if (cpu->state == CPU_SAMPLED || (cpu->state == CPU_BEFORE && !d->has_trigger)) {
		push_start(d, rec->cpu, rec->pid, rec->tid, rec->time_ns);
		return false;
	}
	if (cpu->state != CPU_COUNTING)
		return false;
	if (!wide) {
		/* Who ran since the last thread of the recording left is not in the file. */
		struct csw_record *out;

		push_own_sample(d, rec);
		out = push(d, CSW_RECORD_SWITCH_OUT, rec->cpu, rec->time_ns);
		out->other_pid = rec->pid;
		out->other_tid = rec->tid;
	}
	return send(d, rec);
}

static bool on_switch(struct csw_driver *d, const struct csw_record *rec, bool wide)
{
	struct cpu *cpu = &d->cpus[rec->cpu];

	cpu->sampled_last = false;
	return rec->type == CSW_RECORD_SWITCH_OUT ? on_out(d, cpu, rec) : on_in(d, cpu, rec, wide);
}

/* ---- ordinary samples ---- */

static void add_estimate(struct csw_driver *d, struct csw_record *rec, uint32_t attr,
			 uint64_t amount)
{
	uint32_t column = d->stream.attrs.attrs[attr].column;

	if (column == CSW_NO_COLUMN)
		return;
	if (!(rec->flags >> column & 1))
		rec->values[1 + column] = 0;
	rec->flags |= 1u << column;
	rec->values[1 + column] += amount;
	if (rec->nr_values < 2 + column)
		rec->nr_values = 2 + column;
}

/* true: rec is to go out as it is now. */
static bool on_estimate(struct csw_driver *d, struct csw_record *rec, uint32_t nr)
{
	struct csw_file_attrs *a = &d->stream.attrs;
	const struct csw_file_attr *attr = &a->attrs[nr];
	uint64_t values[1 + CSW_COUNTERS_MAX];
	const uint32_t nr_values = rec->nr_values;
	bool read = false;

	rec->type = CSW_RECORD_ESTIMATE;
	memcpy(values, rec->values, nr_values * sizeof(*values));
	/* With a reading the period is no more than a hint: the differences are what was counted.
	 */
	for (uint32_t i = 0; i < nr_values; i++) {
		struct csw_file_id *id = csw_file_attrs_find(a, d->extra.value_ids[i]);

		if (!id)
			continue;
		add_estimate(d, rec, id->attr,
			     values[i] >= id->value ? values[i] - id->value : values[i]);
		id->value = values[i];
		read = true;
	}
	if (!read)
		add_estimate(d, rec, nr,
			     attr->form.sample_type & PERF_SAMPLE_PERIOD ? d->extra.period
									 : attr->period);
	if (rec->cpu >= CPUS_MAX)
		rec->cpu = CSW_CPU_NONE;
	return rec->flags != 0;
}

/* ---- threads ---- */

#define KTHREADD 2

/* What perf itself wrote down at the beginning has no time: those are the threads that it found. */
static bool on_task(struct csw_driver *d, struct csw_record *rec)
{
	bool found = !rec->time_ns;

	if (rec->cpu >= CPUS_MAX)
		rec->cpu = 0;
	switch (rec->type) {
	case CSW_RECORD_FORK:
		if (!found)
			return true;
		d->forked_tid = rec->tid;
		if (rec->other_pid == KTHREADD || rec->pid == KTHREADD)
			rec->flags |= CSW_RECORD_KERNEL_THREAD;
		return true;
	case CSW_RECORD_EXIT:
		d->cpus[rec->cpu].exit_pid = rec->pid;
		d->cpus[rec->cpu].exit_tid = rec->tid;
		return true;
	default:
		if (rec->tid <= 0)
			return false;
		if (found && rec->tid != d->forked_tid) {
			rec->type = CSW_RECORD_TASK;
			rec->other_pid = -1;
		}
		return true;
	}
}

/* ---- one record ---- */

static uint64_t later(uint64_t time_ns, uint64_t by_ns)
{
	return by_ns > UINT64_MAX - time_ns ? UINT64_MAX : time_ns + by_ns;
}

/* The samples say how far the recording goes, and the first from where a time is counted that was
 * given so. */
static void note_extent(struct csw_driver *d, const struct csw_record *rec)
{
	bool is_switch = rec->type == CSW_RECORD_SWITCH_IN || rec->type == CSW_RECORD_SWITCH_OUT;

	if (!rec->time_ns || (d->has_samples ? rec->type != CSW_RECORD_SAMPLE : !is_switch))
		return;
	if (rec->time_ns > d->latest_ns)
		d->latest_ns = rec->time_ns;
	if (!d->has_first) {
		d->has_first = true;
		d->first_ns = rec->time_ns;
		if (d->plan->from_first)
			d->from_ns = later(rec->time_ns, d->plan->from_ns);
		if (d->plan->to_first)
			d->to_ns = later(rec->time_ns, d->plan->to_ns);
	}
	d->hit |= rec->time_ns >= d->from_ns && rec->time_ns <= d->to_ns;
}

static bool is_in_time(struct csw_driver *d, const struct csw_record *rec)
{
	note_extent(d, rec);
	/* Nothing earlier comes; without a hit the end says how far the recording goes. */
	if (rec->time_ns > d->to_ns && d->hit)
		d->ended = true;
	return rec->time_ns >= d->from_ns && rec->time_ns <= d->to_ns;
}

/* true: rec goes out as it is, behind nothing; else what goes out is pending. */
static bool work_off(struct csw_driver *d, struct csw_record *rec, const struct csw_ref *ref)
{
	bool slices = d->switches != SWITCHES_NONE && rec->cpu < CPUS_MAX;

	switch (rec->type) {
	case CSW_RECORD_FORK:
	case CSW_RECORD_EXIT:
	case CSW_RECORD_COMM:
		return on_task(d, rec);
	default:
		break;
	}
	if (!is_in_time(d, rec))
		return false;
	if (slices)
		d->cpus[rec->cpu].last_ns = rec->time_ns;
	switch (rec->type) {
	case CSW_RECORD_SAMPLE:
		if (!d->stream.attrs.attrs[ref->attr].is_trigger)
			return on_estimate(d, rec, ref->attr);
		return slices && on_trigger(d, rec, ref->attr);
	case CSW_RECORD_SWITCH_OUT:
	case CSW_RECORD_SWITCH_IN:
		return slices && d->switches == SWITCHES_RECORDS &&
		       on_switch(d, rec, ref->header->type == PERF_RECORD_SWITCH_CPU_WIDE);
	default:
		/* LOST, THROTTLE, UNTHROTTLE; perf's own ones at the end have no time. */
		if (d->switches == SWITCHES_NONE) {
			rec->cpu = rec->cpu < CPUS_MAX ? rec->cpu : 0;
			return rec->type == CSW_RECORD_LOST;
		}
		return slices && rec->time_ns && d->cpus[rec->cpu].state == CPU_COUNTING;
	}
}

/* 1: rec; 0: nothing goes out of it; -errno. */
static int decode(struct csw_driver *d, const struct csw_ref *ref, struct csw_record *rec)
{
	struct csw_stream *s = &d->stream;
	int ret;

	rec->cpu = CSW_CPU_NONE;
	rec->time_ns = 0;
	ret = csw_perf_decode_file(&s->attrs.attrs[ref->attr].form, ref->header, rec, &d->extra,
				   s->swap);
	if (ret == -EINVAL) {
		if (!s->damage.code)
			csw_error_set(&s->damage, -EBADMSG,
				      "the record of type %u at offset %" PRIu64
				      " is too short for what its event promises",
				      ref->header->type, csw_block_offset(ref->header));
		d->ended = d->read_all = true;
		return 0;
	}
	if (ret <= 0)
		return ret;
	if (!d->plan->cgroups)
		rec->cgroup = 0;
	rec->time_ns = ref->time_ns; /* what it says, or what add_ref made of it */
	return work_off(d, rec, ref);
}

/* ---- the end ---- */

/* What follows the last reading of a CPU is not in the file; time goes on to its last record. */
static bool push_stop(struct csw_driver *d)
{
	while (d->stopping < CPUS_MAX) {
		uint32_t nr = d->stopping++;
		struct cpu *cpu = &d->cpus[nr];

		if (cpu->state != CPU_COUNTING)
			continue;
		if (cpu->sampled_last) {
			struct csw_record *out = push(d, CSW_RECORD_SWITCH_OUT, nr, cpu->last_ns);

			out->pid = cpu->sample_pid;
			out->tid = cpu->sample_tid;
		}
		push_reading(d, CSW_RECORD_STOP, nr, cpu->last_ns);
		return true;
	}
	return false;
}

static bool pop(struct csw_driver *d, struct csw_record *rec)
{
	if (!d->nr_pending)
		return false;
	if (d->next_pending == d->nr_pending) {
		d->next_pending = d->nr_pending = 0;
		return false;
	}
	csw_record_copy(rec, &d->pending[d->next_pending++]);
	return true;
}

static int perfdata_next(struct csw_driver *d, unsigned ring, struct csw_record *rec)
{
	const struct csw_ref *ref;
	int ret = 0;

	(void)ring;
	for (;;) {
		if (pop(d, rec))
			return 1;
		if (d->stopped) {
			if (!push_stop(d))
				return 0;
			continue;
		}
		if (d->ended || !d->quota)
			return 0;
		d->quota--;
		ref = next_ref(d, &ret);
		if (!ref) {
			d->ended = ret == 0;
			return ret;
		}
		ret = decode(d, ref, rec);
		drop(d, ref);
		if (ret != 0)
			return ret;
	}
}

int csw_recording(const char *path, int (*fn)(void *ctx, const char *name, const char *value),
		  void *ctx, struct csw_error *err)
{
	struct csw_stream s;
	int ret = csw_stream_open(&s, path, err);

	if (ret < 0)
		return ret;
	if (!s.pipe && !s.source.seekable)
		ret = fn(ctx, "note",
			 "a file in a pipe: what it says of its machine stands at its end");
	if (s.unfinished && ret == 0)
		ret = fn(ctx, "note", "never finished: what it says of its machine is missing");
	for (size_t i = 0; i < s.features.nr && ret == 0; i++)
		ret = fn(ctx, s.features.texts[i].name, s.features.texts[i].value);
	if (ret == 0 && s.damage.code)
		ret = csw_error_set(err, s.damage.code, "%s", s.damage.text);
	csw_stream_close(&s);
	return ret;
}

const struct csw_driver_ops csw_perfdata_driver = {
	.name = "perfdata",
	.summary = "recordings in perf's file format: csw-sample report FILE",
	.caps = CSW_DRIVER_FILE,
	.probe = perfdata_probe,
	.resolve_counter = perfdata_resolve_counter,
	.resolve_trigger = perfdata_resolve_trigger,
	.adopt = perfdata_adopt,
	.damage = perfdata_damage,
	.nr_rings = perfdata_nr_rings,
	.nr_cpus = perfdata_nr_cpus,
	.start = perfdata_start,
	.wait = perfdata_wait,
	.snapshot = perfdata_snapshot,
	.cgroup_path = perfdata_cgroup_path,
	.next = perfdata_next,
	.tick = perfdata_tick,
	.stop = perfdata_stop,
	.close = perfdata_close,
};
