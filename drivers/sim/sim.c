/*
 * The simulated machine as a driver: names, options, and what a kernel does between a machine and
 * its reader, that is writing records into rings.
 *
 * The driver observes the machine (machine.h) and writes a record for each thing that it is told.
 * Rings are finite: what does not fit is lost, counted, and reported by a LOST record before the
 * next one that fits. On top it can fail on purpose in the ways in which real machines were seen to
 * fail; none of that changes what the machine does.
 *
 * Invariant: the records of a ring are in the order of their times, and none of the future is
 * missing in the past: a record written after a snapshot is later than the time that the snapshot
 * returned.
 */
#include "drivers/sim/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "drivers/sim/machine.h"
#include "drivers/sim/models.h"
#include "drivers/sim/pmu.h"
#include "engine/error.h"
#include "engine/names.h"
#include "engine/spec.h"

#define MS 1000000ULL
#define NONE UINT64_MAX

/* csw_event.type of every simulated event, far from the kernel's own; config is the enum
 * csw_sim_event. */
#define SIM_EVENT_TYPE 0x51330000u

/* ---- options ---- */

struct options {
	uint64_t cpus, threads, processes, seed, duration_ms, ring, pid_max, switches, churn;
	uint64_t model, ldt, spurious, floor, reset;
	uint64_t pmc, skid, vanish, blind_idle, throttle, stall_ms;
};

/* All options. The error texts are made from it too. */
static const struct option {
	const char *name;
	size_t offset;
	uint64_t preset, least, most;
	const char *const *names; /* its values have names, which are numbered from 0 */
} options[] = {
#define FIELD(field) .name = #field, .offset = offsetof(struct options, field)
	/* the machine; the same seed gives the same records */
	{ FIELD(seed), 1, 0, UINT64_MAX },
	{ FIELD(cpus), 4, 1, 4096 },
	/* threads of user space at the start, later about as many, and processes they belong to */
	{ FIELD(threads), 24, 1, 4000000 },
	{ FIELD(processes), 6, 1, 1000000 },
	{ FIELD(pid_max), 32768, 512, 4194304 },
	/* wished context switches per second and CPU */
	{ FIELD(switches), 3000, 10, 100000 },
	/* how many of 1000 bursts of running end with a fork, exec, exit or new name */
	{ FIELD(churn), 20, 0, 1000 },
	/* how long it runs; 0: as the caller plans, or one second */
	{ FIELD(duration_ms), 0, 0, 86400000 },
	/* records per CPU's ring; 0: as the caller wishes, or RING_RECORDS */
	{ FIELD(ring), 0, 0, 1 << 24 },

	/* its processor: which events a context switch causes (models.c) */
	{ FIELD(model), .names = csw_sim_model_names },
	/* of 1000 processes of user space, those with a local descriptor table */
	{ FIELD(ldt), 250, 0, 1000 },
	/* occurrences of such events by interrupts and user code, for 1000 wished switches */
	{ FIELD(spurious), 0, 0, 100000 },
	/* the least period of a hardware trigger, as the kernel has it on x86 */
	{ FIELD(floor), 1, 1, 1000 },
	/* 1: an overflow resets the counters, instead of their being read on */
	{ FIELD(reset), 0, 0, 1 },
	/* counters of the PMU, of which a hardware trigger takes one; 0: as many as are asked for
	 */
	{ FIELD(pmc), 0, 0, 64 },
	/* 1: some samples of a hardware trigger arrive after the switch */
	{ FIELD(skid), 0, 0, 1 },

	/* faults: how many of 1000 sample and switch records vanish, and no LOST tells */
	{ FIELD(vanish), 0, 0, 1000 },
	/* the idle task of this CPU leaves no record */
	{ FIELD(blind_idle), NONE, 0, 4095 },
	/* every so many ms each CPU's trigger is stopped for one of them; 0: never */
	{ FIELD(throttle), 0, 0, 1000000 },
	/* once, a third into the run, the reader does not come for so long */
	{ FIELD(stall_ms), 0, 0, 86400000 },
#undef FIELD
};

#define NR_OPTIONS (sizeof(options) / sizeof(options[0]))
#define RING_RECORDS 16384
#define RING_RECORDS_MIN 16
#define SKID_PERMILLE 300

static uint64_t *option_slot(struct options *o, const struct option *option)
{
	return (uint64_t *)(void *)((char *)o + option->offset);
}

static int unknown_option(const char *name, struct csw_error *err)
{
	struct csw_nearest nearest;
	char text[512], all[512] = "";

	csw_nearest_init(&nearest, name);
	for (size_t i = 0; i < NR_OPTIONS; i++) {
		csw_nearest_offer(&nearest, options[i].name);
		strcat(strcat(all, i ? ", " : ""), options[i].name);
	}
	csw_nearest_text(&nearest, text, sizeof(text));
	return csw_error_set(err, -EINVAL, "sim: no option '%s'%s%s; the options are: %s", name,
			     *text ? "; nearest: " : "", text, all);
}

static int set_number(uint64_t *slot, const struct option *option, const char *value,
		      struct csw_error *err)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno || number < option->least ||
	    number > option->most)
		return csw_error_set(err, -EINVAL,
				     "sim: option %s='%s' must be a number from %" PRIu64
				     " to %" PRIu64,
				     option->name, value, option->least, option->most);
	*slot = number;
	return 0;
}

static int set_name(uint64_t *slot, const struct option *option, const char *value,
		    struct csw_error *err)
{
	char all[256] = "";

	for (uint64_t i = 0; option->names[i]; i++) {
		if (!strcmp(value, option->names[i])) {
			*slot = i;
			return 0;
		}
		strcat(strcat(all, i ? ", " : ""), option->names[i]);
	}
	return csw_error_set(err, -EINVAL, "sim: option %s='%s' must be one of %s", option->name,
			     value, all);
}

static int set_option(struct options *o, const char *name, const char *value, struct csw_error *err)
{
	for (size_t i = 0; i < NR_OPTIONS; i++) {
		const struct option *option = &options[i];

		if (strcmp(option->name, name) != 0)
			continue;
		return (option->names ? set_name : set_number)(option_slot(o, option), option,
							       value, err);
	}
	return unknown_option(name, err);
}

/* "cpus=8,seed=3"; NULL and "" are fine. */
static int parse_options(struct options *o, const char *text, struct csw_error *err)
{
	char *copy, *rest, *item;
	int ret = 0;

	for (size_t i = 0; i < NR_OPTIONS; i++)
		*option_slot(o, &options[i]) = options[i].preset;
	if (!text || !*text)
		return 0;
	copy = rest = strdup(text);
	if (!copy)
		return csw_error_set(err, -ENOMEM, "sim: no memory for the options");
	while (!ret && (item = strsep(&rest, ","))) {
		char *value = strchr(item, '=');

		if (value)
			*value++ = '\0';
		ret = set_option(o, item, value ? value : "", err);
	}
	free(copy);
	return ret;
}

/* What each option alone cannot say. */
static int check_options(struct options *o, struct csw_error *err)
{
	if (o->processes > o->threads)
		o->processes = o->threads;
	if (o->blind_idle != NONE && o->blind_idle >= o->cpus)
		return csw_error_set(err, -EINVAL,
				     "sim: option blind_idle=%" PRIu64
				     " must be a CPU, from 0 to %" PRIu64,
				     o->blind_idle, o->cpus - 1);
	if (o->throttle == 1)
		return csw_error_set(err, -EINVAL,
				     "sim: option throttle=1 would never let the trigger count; "
				     "use 0 (never) or at least 2 (ms)");
	if (o->ring && o->ring < RING_RECORDS_MIN)
		return csw_error_set(err, -EINVAL,
				     "sim: option ring=%" PRIu64
				     " must be 0 or at least %d (records)",
				     o->ring, RING_RECORDS_MIN);
	return 0;
}

/* ---- names ---- */

static const struct sim_event {
	const char *name;
	uint32_t event; /* enum csw_sim_event */
	uint32_t flags;
} events[] = {
	{ "cycles", CSW_SIM_CYCLES, CSW_EVENT_HARDWARE },
	{ "CPU_CYCLES", CSW_SIM_CYCLES, CSW_EVENT_HARDWARE },
	{ "instructions", CSW_SIM_INSTRUCTIONS, CSW_EVENT_HARDWARE },
	{ "INST_RETIRED", CSW_SIM_INSTRUCTIONS, CSW_EVENT_HARDWARE },
	{ "branches", CSW_SIM_BRANCHES, CSW_EVENT_HARDWARE },
	{ "branch-misses", CSW_SIM_BRANCH_MISSES, CSW_EVENT_HARDWARE },
	{ "LLC_REFERENCES", CSW_SIM_LLC_REFERENCES, CSW_EVENT_HARDWARE },
	{ "LLC_MISSES", CSW_SIM_LLC_MISSES, CSW_EVENT_HARDWARE },
	{ "page-faults", CSW_SIM_PAGE_FAULTS, CSW_EVENT_NEVER_IDLE },
	{ "task-clock", CSW_SIM_TASK_CLOCK, CSW_EVENT_CLOCK | CSW_EVENT_NANOSECONDS },
	{ "context-switches", CSW_SIM_SWITCHES, 0 },
	{ "switch", CSW_SIM_SWITCHES, 0 },
};

#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* The kernel's own count of switches, on every model. */
static bool is_software_trigger(const char *name)
{
	return !strcmp(name, "switch") || !strcmp(name, "context-switches");
}

static bool is_place(const char *name)
{
	return !strncmp(name, "mem_load:", 9) || !strncmp(name, "mem_store:", 10);
}

/* NULL: no model has it. */
static const struct csw_sim_source *source_of_any(const char *name)
{
	const struct csw_sim_source *source = NULL;

	for (uint64_t i = 0; !source && csw_sim_model_get(i); i++)
		source = csw_sim_source_find(csw_sim_model_get(i), name);
	return source;
}

/* "switch, a and b": the triggers of a model. */
static const char *list_triggers(const struct csw_sim_model *model, char *text, size_t size)
{
	snprintf(text, size, "switch");
	for (size_t i = 0; i < model->nr_sources; i++) {
		const struct csw_sim_source *source = &model->sources[i];
		size_t length = strlen(text);

		snprintf(text + length, size - length, "%s%s%s%s",
			 i + 1 < model->nr_sources ? ", " : " and ", source->name,
			 source->alias ? " or " : "", source->alias ? source->alias : "");
	}
	return text;
}

static void offer_names(struct csw_nearest *nearest, const struct csw_sim_model *model)
{
	for (size_t i = 0; i < model->nr_sources; i++) {
		csw_nearest_offer(nearest, model->sources[i].name);
		if (model->sources[i].alias)
			csw_nearest_offer(nearest, model->sources[i].alias);
	}
}

/* name may be the event's own. */
static void set_event(struct csw_event *out, const char *name, const char *what, uint32_t event,
		      uint32_t flags)
{
	struct csw_event made = { .type = SIM_EVENT_TYPE, .flags = flags, .config = event };

	snprintf(made.name, sizeof(made.name), "%s", name);
	snprintf(made.became, sizeof(made.became), "%s", what);
	*out = made;
}

static void set_source(struct csw_event *out, const char *name, const struct csw_sim_source *source)
{
	set_event(out, name, source->what, source->event,
		  (source->flags & CSW_SIM_WATCH ? CSW_EVENT_DEBUG_REGISTER : CSW_EVENT_HARDWARE) |
			  (source->flags & CSW_SIM_STORES_TOO ? CSW_EVENT_STORES_TOO : 0));
}

static int sim_resolve_counter(const char *name, struct csw_event *out, struct csw_error *err)
{
	const struct csw_sim_source *source = source_of_any(name);
	struct csw_nearest nearest;
	char text[512], what[CSW_EVENT_NAME_BYTES];

	if (source) { /* settle() knows whether this model has it */
		set_source(out, name, source);
		return 0;
	}
	csw_nearest_init(&nearest, name);
	for (size_t i = 0; i < NR(events); i++) {
		csw_nearest_offer(&nearest, events[i].name);
		if (strcasecmp(name, events[i].name) != 0)
			continue;
		snprintf(what, sizeof(what), "simulated %s", events[i].name);
		set_event(out, name, what, events[i].event, events[i].flags);
		return 0;
	}
	for (uint64_t i = 0; csw_sim_model_get(i); i++)
		offer_names(&nearest, csw_sim_model_get(i));
	csw_nearest_text(&nearest, text, sizeof(text));
	return csw_error_set(err, -ENOENT,
			     "the simulated machine has no event '%s'%s%s; 'list events' shows all",
			     name, *text ? "; nearest: " : "", text);
}

/* A name that this model lacks: of the catalogue, or of another model. */
static int refuse_source(const struct csw_sim_model *model, const char *name, struct csw_error *err)
{
	const char *why = csw_sim_model_why_not(model, name);
	char has[256], others[128] = "";

	for (uint64_t i = 0; !why && csw_sim_model_get(i); i++) {
		const struct csw_sim_model *other = csw_sim_model_get(i);

		if (csw_sim_source_find(other, name))
			strcat(strcat(others, *others ? ", " : "; it is there with model="),
			       other->name);
	}
	return csw_error_set(err, -EOPNOTSUPP,
			     "the simulated machine (model=%s) has no %s%s%s; it has %s%s",
			     model->name, name, why ? ": " : "", why ? why : "",
			     list_triggers(model, has, sizeof(has)), others);
}

/* A name of no model: an event that only counts, or nothing that anybody knows? */
static int refuse_trigger(const char *name, struct csw_error *err)
{
	const struct csw_sim_model *model = csw_sim_model_get(0);
	struct csw_nearest nearest;
	char text[512], has[256];

	list_triggers(model, has, sizeof(has));
	for (size_t i = 0; i < NR(events); i++)
		if (!strcasecmp(name, events[i].name))
			return csw_error_set(err, -EOPNOTSUPP,
					     "%s is no trigger of the simulated machine, which has "
					     "%s; it can be counted",
					     name, has);
	csw_nearest_init(&nearest, name);
	csw_nearest_offer(&nearest, "switch");
	csw_nearest_offer(&nearest, "context-switches");
	for (uint64_t i = 0; csw_sim_model_get(i); i++)
		offer_names(&nearest, csw_sim_model_get(i));
	csw_nearest_text(&nearest, text, sizeof(text));
	return csw_error_set(err, -ENOENT, "no trigger '%s'%s%s; the simulated machine has %s",
			     name, *text ? "; nearest: " : "", text, has);
}

/* As the kernel does, which raises a smaller period of the hardware without a word. */
static int raise_sav(struct csw_trigger *out, const struct csw_sim_source *source, uint64_t floor,
		     struct csw_error *err)
{
	uint32_t least = csw_sim_source_least(source);
	size_t length = strlen(out->event.became);

	if (out->sav >= floor || source->flags & CSW_SIM_WATCH)
		return 0;
	if (floor > least)
		return csw_error_set(err, -EOPNOTSUPP,
				     "%s: this machine raises sav %" PRIu64 " to %" PRIu64
				     ", and with %u per switch a sample would stand for several "
				     "switches; --sav=%" PRIu64 " takes that, --trigger=switch has "
				     "no least period",
				     out->event.name, out->sav, floor, least, floor);
	snprintf(out->event.became + length, sizeof(out->event.became) - length,
		 " (sav %" PRIu64 " -> %" PRIu64 ", the events per switch here)", out->sav, floor);
	out->sav = floor;
	return 0;
}

/* Where a sample stands to its switch is known if every switch causes the same number and nothing
 * else causes any, and if no sample comes between two occurrences of one switch. */
static int settle_source(struct csw_trigger *out, const struct csw_sim_source *source,
			 const struct options *o, struct csw_error *err)
{
	uint32_t per_switch = csw_sim_source_per_switch(source);
	int ret;

	set_source(&out->event, out->event.name, source);
	ret = raise_sav(out, source, o->floor, err);
	if (o->spurious && source->flags & CSW_SIM_ALSO_ELSE)
		per_switch = 0;
	if (per_switch && out->sav % per_switch)
		per_switch = 0;
	out->per_switch = per_switch;
	out->phase = per_switch ? CSW_PHASE_INSIDE : CSW_PHASE_ANY;
	/* Of the others it depends on how late the interrupt comes (skid). */
	if (source->flags & CSW_SIM_SHOWS_NEXT)
		out->sample_of = CSW_SAMPLE_OF_INCOMING;
	return ret;
}

static int settle_trigger(struct csw_trigger *out, const struct options *o, struct csw_error *err)
{
	const struct csw_sim_model *model = csw_sim_model_get(o->model);
	bool best = !strcmp(out->event.name, "auto");
	const struct csw_sim_source *source =
		csw_sim_source_find(model, best ? model->best : out->event.name);
	char text[CSW_EVENT_NAME_BYTES];
	int ret;

	if (is_software_trigger(out->event.name))
		return 0;
	if (!source)
		return refuse_source(model, out->event.name, err);
	ret = settle_source(out, source, o, err);
	if (!ret && best) {
		memcpy(text, out->event.became, sizeof(text));
		snprintf(out->event.became, sizeof(out->event.became), "%s: %.100s", model->best,
			 text);
	}
	return ret;
}

/* What the names mean on the model that the options ask for. */
static int sim_settle(struct csw_plan *plan, struct csw_error *err)
{
	const struct csw_sim_model *model;
	struct options o;
	int ret = parse_options(&o, plan->driver_opts, err);

	if (!ret)
		ret = settle_trigger(&plan->trigger, &o, err);
	model = ret ? NULL : csw_sim_model_get(o.model);
	for (unsigned i = 0; !ret && i < plan->nr_counters; i++) {
		struct csw_event *event = &plan->counters[i];
		const struct csw_sim_source *source = csw_sim_source_find(model, event->name);

		if (source)
			set_source(event, event->name, source);
		else if (source_of_any(event->name))
			ret = refuse_source(model, event->name, err);
	}
	return ret;
}

/* Without options: as on the first model, or on the first that has it. */
static int sim_resolve_trigger(const char *name, uint64_t sav, struct csw_trigger *out,
			       struct csw_error *err)
{
	const struct csw_sim_model *model = csw_sim_model_get(0);
	const struct csw_sim_source *source;
	struct options o;

	if (!name)
		name = "auto";
	if (sav == CSW_SAV_AUTO)
		sav = 1; /* every trigger here comes once a switch */
	if (!sav || sav > CSW_SIM_SAV_MAX)
		return csw_error_set(err, -EINVAL, "sav %" PRIu64 " must be from 1 to %llu", sav,
				     CSW_SIM_SAV_MAX);
	*out = (struct csw_trigger){ .sav = sav };
	if (is_software_trigger(name)) {
		out->phase = CSW_PHASE_BEFORE;
		out->per_switch = 1;
		out->sample_of = CSW_SAMPLE_OF_OUTGOING;
		set_event(&out->event, name, "simulated software event of the context switch",
			  CSW_SIM_SWITCHES, 0);
		return 0;
	}
	snprintf(out->event.name, sizeof(out->event.name), "%s", name);
	parse_options(&o, NULL, NULL);
	if (!strcmp(name, "auto") || csw_sim_source_find(model, name))
		return settle_trigger(out, &o, err);
	source = source_of_any(name);
	if (!source && is_place(name))
		return 0; /* the model that is to come will say which it has */
	if (!source)
		return refuse_trigger(name, err);
	return settle_source(out, source, &o, err);
}

/* ---- rings ---- */

/* Records lie in slots of just the bytes that the plan needs: the head of a csw_record, its comm,
 * its values. */
struct ring {
	unsigned char *slots;
	uint64_t head, tail, snapshot; /* in records, ever growing */
	uint64_t pending_lost;         /* refused since the last success */
	uint64_t samples_lost;         /* samples refused since START ... */
	uint64_t others_lost;          /* ... and records of other kinds */
	uint32_t set;                  /* of counters, whose turn it is on this CPU */
};

struct csw_driver {
	struct options o;
	struct csw_sim_machine *machine;
	unsigned nr_counters;
	uint32_t event_of[CSW_COUNTERS_MAX]; /* the plan's counters as enum csw_sim_event */
	uint32_t nr_sets; /* of counters that take turns; 1: all are on all the time */
	uint32_t sets[CSW_COUNTERS_MAX]; /* a bit for each counter */
	uint32_t turns;                  /* that have ended */
	uint64_t turn_ends_ns;           /* NONE: never */
	struct ring *rings;
	uint64_t capacity; /* of each ring, in records */
	size_t slot_bytes;
	bool crowded; /* a ring has become half full since wait() began */
	bool stopped;
	uint64_t stall_at_ns; /* NONE: over, or not wished */
	uint64_t end_ns;
	uint64_t duration_ns;
	uint64_t read_ns; /* the latest reading of a tick, which may lie at the end of a switch */
	struct csw_sim_random vanish;
};

#define SLOT_HEAD_BYTES offsetof(struct csw_record, values)

/* Two slots beyond the capacity are kept for what models a read and no record in a kernel's ring:
 * one for the end of a turn, one for a tick or STOP. */
#define SLOTS_KEPT 2
static struct csw_record *slot_at(const struct csw_driver *drv, const struct ring *ring,
				  uint64_t position)
{
	return (struct csw_record *)(ring->slots +
				     position % (drv->capacity + SLOTS_KEPT) * drv->slot_bytes);
}

static void store(struct csw_driver *drv, struct ring *ring, const struct csw_record *rec)
{
	csw_record_copy(slot_at(drv, ring, ring->head++), rec);
	if (ring->head - ring->tail == drv->capacity / 2 + 1)
		drv->crowded = true;
}

static int sim_next(struct csw_driver *drv, unsigned nr, struct csw_record *rec)
{
	struct ring *ring = &drv->rings[nr];

	if (ring->tail == ring->snapshot)
		return 0;
	csw_record_copy(rec, slot_at(drv, ring, ring->tail++));
	return 1;
}

static void refuse(struct ring *ring, const struct csw_record *rec)
{
	ring->pending_lost++;
	if (rec->type == CSW_RECORD_SAMPLE)
		ring->samples_lost++;
	else
		ring->others_lost++;
}

/* As in the kernel: after a loss a record goes in only together with the LOST record that precedes
 * it. */
static void put(struct csw_driver *drv, const struct csw_record *rec)
{
	struct ring *ring = &drv->rings[rec->cpu];
	uint64_t used = ring->head - ring->tail;
	uint64_t room = used < drv->capacity ? drv->capacity - used : 0;

	if (room < (ring->pending_lost ? 2 : 1)) {
		refuse(ring, rec);
		return;
	}
	if (ring->pending_lost) {
		struct csw_record lost;

		memset(&lost, 0, sizeof(lost));
		lost.type = CSW_RECORD_LOST;
		lost.time_ns = rec->time_ns;
		lost.cpu = rec->cpu;
		lost.pid = lost.tid = lost.other_pid = lost.other_tid = -1;
		lost.lost = ring->pending_lost;
		ring->pending_lost = 0;
		store(drv, ring, &lost);
	}
	store(drv, ring, rec);
}

/* ---- records ---- */

/* values[] is left as it is: only readings have any. */
static void begin_record(struct csw_record *rec, uint32_t type, const struct csw_sim_cpu *cpu,
			 uint64_t time_ns)
{
	memset(rec, 0, SLOT_HEAD_BYTES);
	memset(rec->comm, 0, sizeof(rec->comm));
	rec->type = type;
	rec->time_ns = time_ns;
	rec->cpu = cpu->nr;
	rec->pid = rec->tid = rec->other_pid = rec->other_tid = -1;
}

/* A thread that is gone has no number any more: -1, as the kernel writes it. */
static void set_subject(struct csw_record *rec, const struct csw_sim_thread *t)
{
	bool gone = t->state == CSW_SIM_GONE;

	rec->pid = gone ? -1 : t->process->pid;
	rec->tid = gone ? -1 : t->tid;
}

static void set_other(struct csw_record *rec, const struct csw_sim_thread *t)
{
	bool gone = t->state == CSW_SIM_GONE;

	rec->other_pid = gone ? -1 : t->process->pid;
	rec->other_tid = gone ? -1 : t->tid;
}

static void set_reading(struct csw_driver *drv, struct csw_record *rec, struct csw_sim_cpu *cpu)
{
	rec->nr_values = 1 + drv->nr_counters;
	rec->on = drv->sets[drv->rings[cpu->nr].set];
	rec->enabled_ns = rec->running_ns = rec->time_ns - cpu->start_ns;
	csw_sim_pmu_read(&cpu->pmu, rec->values);
}

/* The faults that make a sample or switch record disappear without a trace. */
static bool disappears(struct csw_driver *drv, const struct csw_record *rec)
{
	if (rec->cpu == drv->o.blind_idle && rec->tid == 0)
		return true;
	return drv->o.vanish && csw_sim_random_below(&drv->vanish, 1000) < drv->o.vanish;
}

static void put_unless_faulty(struct csw_driver *drv, const struct csw_record *rec)
{
	if (!disappears(drv, rec))
		put(drv, rec);
}

/* ---- what the machine tells ---- */

static void on_sample(void *ctx, struct csw_sim_cpu *cpu, uint64_t time_ns,
		      const struct csw_sim_thread *thread)
{
	struct csw_driver *drv = ctx;
	struct csw_record rec;

	begin_record(&rec, CSW_RECORD_SAMPLE, cpu, time_ns);
	set_subject(&rec, thread);
	set_reading(drv, &rec, cpu);
	put_unless_faulty(drv, &rec);
}

static void on_switch_out(void *ctx, struct csw_sim_cpu *cpu, const struct csw_sim_switch *sw)
{
	struct csw_record rec;

	begin_record(&rec, CSW_RECORD_SWITCH_OUT, cpu, sw->out_ns);
	set_subject(&rec, sw->prev);
	set_other(&rec, sw->next);
	rec.flags = sw->preempted ? CSW_RECORD_PREEMPTED : 0;
	put_unless_faulty(ctx, &rec);
}

static void on_switch_in(void *ctx, struct csw_sim_cpu *cpu, const struct csw_sim_switch *sw)
{
	struct csw_record rec;

	begin_record(&rec, CSW_RECORD_SWITCH_IN, cpu, sw->in_ns);
	set_subject(&rec, sw->next);
	set_other(&rec, sw->prev);
	put_unless_faulty(ctx, &rec);
}

static void on_start(void *ctx, struct csw_sim_cpu *cpu, uint64_t time_ns)
{
	struct csw_driver *drv = ctx;
	struct csw_record rec;

	begin_record(&rec, CSW_RECORD_START, cpu, time_ns);
	set_subject(&rec, cpu->current);
	set_reading(drv, &rec, cpu);
	put(drv, &rec);
}

/* A read from outside the rings: always there, and no LOST before it. */
static void put_reading(struct csw_driver *drv, uint32_t type, uint32_t flags,
			struct csw_sim_cpu *cpu, uint64_t time_ns)
{
	struct ring *ring = &drv->rings[cpu->nr];
	struct csw_record rec;

	begin_record(&rec, type, cpu, time_ns);
	set_subject(&rec, cpu->current);
	set_reading(drv, &rec, cpu);
	rec.flags = flags;
	rec.lost = ring->samples_lost;
	rec.lost_other = ring->others_lost;
	store(drv, ring, &rec);
}

static void on_stop(void *ctx, struct csw_sim_cpu *cpu, uint64_t time_ns)
{
	put_reading(ctx, CSW_RECORD_STOP, 0, cpu, time_ns);
}

static void on_fork(void *ctx, const struct csw_sim_cpu *cpu, uint64_t time_ns,
		    const struct csw_sim_thread *parent, const struct csw_sim_thread *child)
{
	struct csw_record rec;

	begin_record(&rec, CSW_RECORD_FORK, cpu, time_ns);
	set_subject(&rec, child);
	set_other(&rec, parent);
	put(ctx, &rec);
}

static void on_exit_begins(void *ctx, const struct csw_sim_cpu *cpu, uint64_t time_ns,
			   const struct csw_sim_thread *t)
{
	struct csw_record rec;

	begin_record(&rec, CSW_RECORD_EXIT, cpu, time_ns);
	set_subject(&rec, t);
	put(ctx, &rec);
}

static void on_rename(void *ctx, const struct csw_sim_cpu *cpu, uint64_t time_ns,
		      const struct csw_sim_thread *t, bool exec)
{
	struct csw_record rec;

	begin_record(&rec, CSW_RECORD_COMM, cpu, time_ns);
	set_subject(&rec, t);
	rec.flags = exec ? CSW_RECORD_EXEC : 0;
	memcpy(rec.comm, t->comm, sizeof(rec.comm));
	put(ctx, &rec);
}

/* Throttling: the trigger is silent for the last millisecond of each period; counters go on. */
static uint64_t on_timer(void *ctx, struct csw_sim_cpu *cpu, uint64_t time_ns)
{
	struct csw_driver *drv = ctx;
	struct csw_record rec;

	cpu->pmu.throttled = !cpu->pmu.throttled;
	begin_record(&rec, cpu->pmu.throttled ? CSW_RECORD_THROTTLE : CSW_RECORD_UNTHROTTLE, cpu,
		     time_ns);
	put(drv, &rec);
	return time_ns + (cpu->pmu.throttled ? MS : (drv->o.throttle - 1) * MS);
}

/* ---- the driver's calls ---- */

static int sim_probe(struct csw_error *err)
{
	(void)err;
	return 0; /* needs nothing of the machine that it runs on */
}

static void sim_close(struct csw_driver *drv)
{
	if (!drv)
		return;
	csw_sim_machine_close(drv->machine);
	for (uint64_t i = 0; drv->rings && i < drv->o.cpus; i++)
		free(drv->rings[i].slots);
	free(drv->rings);
	free(drv);
}

static int open_rings(struct csw_driver *drv, uint64_t wished_bytes)
{
	drv->slot_bytes = SLOT_HEAD_BYTES + (1 + drv->nr_counters) * sizeof(uint64_t);
	drv->capacity = drv->o.ring ? drv->o.ring : wished_bytes / drv->slot_bytes;
	if (!drv->capacity)
		drv->capacity = RING_RECORDS;
	if (drv->capacity < RING_RECORDS_MIN)
		drv->capacity = RING_RECORDS_MIN;
	drv->rings = calloc(drv->o.cpus, sizeof(*drv->rings));
	if (!drv->rings)
		return -ENOMEM;
	for (uint64_t i = 0; i < drv->o.cpus; i++) {
		drv->rings[i].slots = calloc(drv->capacity + SLOTS_KEPT, drv->slot_bytes);
		if (!drv->rings[i].slots)
			return -ENOMEM;
	}
	return 0;
}

static int open_machine(struct csw_driver *drv, const struct csw_trigger *trigger)
{
	const struct options *o = &drv->o;
	struct csw_sim_machine_opts opts = {
		.nr_cpus = (uint32_t)o->cpus,
		.nr_threads = (uint32_t)o->threads,
		.nr_processes = (uint32_t)o->processes,
		.pid_max = (uint32_t)o->pid_max,
		.switches = (uint32_t)o->switches,
		.churn_permille = (uint32_t)o->churn,
		.model = csw_sim_model_get(o->model),
		.ldt_permille = (uint32_t)o->ldt,
		.spurious = (uint32_t)o->spurious,
		.seed = o->seed,
		.pmu = {
			.trigger = (uint32_t)trigger->event.config,
			.sav = trigger->sav,
			.reset = o->reset,
			.before = trigger->phase == CSW_PHASE_BEFORE,
			.skid_permille = o->skid ? SKID_PERMILLE : 0,
			.nr_counters = drv->nr_counters,
		},
	};
	struct csw_sim_observer observer = {
		.started = on_start,
		.stopped = on_stop,
		.sampled = on_sample,
		.switched_out = on_switch_out,
		.switched_in = on_switch_in,
		.forked = on_fork,
		.exiting = on_exit_begins,
		.renamed = on_rename,
		.timer = on_timer,
		.ctx = drv,
	};

	memcpy(opts.pmu.events, drv->event_of, sizeof(opts.pmu.events));
	return csw_sim_machine_open(&drv->machine, &opts, &observer);
}

/* Of a switch this model causes only some. */
static int check_event(const struct csw_driver *drv, const struct csw_event *event,
		       struct csw_error *err)
{
	const struct csw_sim_model *model = csw_sim_model_get(drv->o.model);

	if (event->type == SIM_EVENT_TYPE && event->config < CSW_SIM_EVENTS &&
	    (event->config <= CSW_SIM_SWITCHES ||
	     csw_sim_source_of(model, (uint32_t)event->config)))
		return 0;
	return csw_error_set(err, -EINVAL,
			     "sim: %s is no event of the simulated machine (model=%s)", event->name,
			     model->name);
}

static bool is_hardware(const struct csw_event *event)
{
	return event->flags & CSW_EVENT_HARDWARE;
}

/* The next set: the counters that every set has, then as many as there is room for, first those
 * that no set has yet (placed: those that one has), then others, lest room be left. */
static uint32_t make_set(const struct csw_plan *plan, uint64_t room, uint32_t placed)
{
	uint32_t set = 0;

	for (unsigned i = 0; i < plan->nr_counters; i++)
		set |= is_hardware(&plan->counters[i]) ? 0 : 1u << i;
	for (uint32_t again = 0; again <= 1; again++) {
		for (unsigned i = 0; i < plan->nr_counters && room; i++) {
			if ((set >> i & 1) || (placed >> i & 1) != again)
				continue;
			set |= 1u << i;
			room--;
		}
	}
	return set;
}

/* As few sets of counters as have each of them once. */
static int make_sets(struct csw_driver *drv, const struct csw_plan *plan, struct csw_error *err)
{
	const uint64_t trigger = is_hardware(&plan->trigger.event);
	const uint32_t all = (uint32_t)((1ull << plan->nr_counters) - 1);
	uint64_t room = drv->o.pmc > trigger ? drv->o.pmc - trigger : 0, nr = 0;
	uint32_t placed = 0;

	drv->sets[0] = all;
	drv->nr_sets = 1;
	drv->turn_ends_ns = NONE;
	if (!drv->o.pmc)
		return 0;
	for (unsigned i = 0; i < plan->nr_counters; i++) {
		nr += is_hardware(&plan->counters[i]);
		if (nr > room && (!plan->multiplex || !room))
			return csw_spec_no_room(plan, plan->counters[i].name, 0,
						(unsigned)(room + trigger), err);
	}
	if (nr <= room)
		return 0;
	for (drv->nr_sets = 0; placed != all; drv->nr_sets++) {
		drv->sets[drv->nr_sets] = make_set(plan, room, placed);
		placed |= drv->sets[drv->nr_sets];
	}
	return 0;
}

static int read_plan(struct csw_driver *drv, const struct csw_plan *plan, struct csw_error *err)
{
	int ret = parse_options(&drv->o, plan->driver_opts, err);

	if (!ret)
		ret = check_options(&drv->o, err);
	if (ret)
		return ret;
	drv->duration_ns = drv->o.duration_ms ? drv->o.duration_ms * MS : plan->duration_ns;
	if (!drv->duration_ns)
		drv->duration_ns = 1000 * MS;
	drv->vanish.state = ~drv->o.seed;
	drv->nr_counters = plan->nr_counters;
	ret = check_event(drv, &plan->trigger.event, err);
	for (unsigned i = 0; !ret && i < plan->nr_counters; i++) {
		ret = check_event(drv, &plan->counters[i], err);
		drv->event_of[i] = (uint32_t)plan->counters[i].config;
	}
	return ret ? ret : make_sets(drv, plan, err);
}

/* The CPUs begin with different sets: so each of them is on somewhere all the time. */
static void begin_turns(struct csw_driver *drv)
{
	for (uint32_t i = 0; i < drv->o.cpus; i++) {
		drv->rings[i].set = i % drv->nr_sets;
		csw_sim_pmu_turn(&csw_sim_machine_cpu(drv->machine, i)->pmu,
				 drv->sets[drv->rings[i].set]);
	}
}

static int sim_open(struct csw_driver **out, const struct csw_plan *plan, struct csw_error *err)
{
	struct csw_driver *drv = calloc(1, sizeof(*drv));
	int ret;

	*out = NULL;
	if (!drv)
		return csw_error_set(err, -ENOMEM, "sim: no memory");
	ret = read_plan(drv, plan, err);
	if (ret)
		goto fail;
	ret = open_rings(drv, plan->ring_bytes);
	if (!ret)
		ret = open_machine(drv, &plan->trigger);
	if (ret == -EAGAIN) {
		csw_error_set(err, -EINVAL,
			      "sim: pid_max=%" PRIu64 " leaves no room for %" PRIu64
			      " threads on %" PRIu64 " CPUs; use at least pid_max=%" PRIu64,
			      drv->o.pid_max, drv->o.threads, drv->o.cpus,
			      drv->o.threads + drv->o.cpus + 512);
		ret = -EINVAL;
	} else if (ret) {
		csw_error_set(err, ret,
			      "sim: no memory for %" PRIu64 " threads and %" PRIu64
			      " rings; use fewer, or a smaller ring=",
			      drv->o.threads, drv->o.cpus);
	}
	if (ret)
		goto fail;
	begin_turns(drv);
	*out = drv;
	return 0;
fail:
	sim_close(drv);
	return ret;
}

static unsigned sim_nr_cpus(const struct csw_driver *drv)
{
	return (unsigned)drv->o.cpus;
}

static void scan_threads(const struct csw_driver *drv, const struct csw_sink *sink)
{
	size_t nr = csw_sim_machine_threads(drv->machine);

	for (size_t i = 0; i < nr; i++) {
		const struct csw_sim_thread *t = csw_sim_machine_thread(drv->machine, i);
		struct csw_record rec;

		memset(&rec, 0, sizeof(rec));
		rec.type = CSW_RECORD_TASK;
		rec.time_ns = t->birth_ns;
		set_subject(&rec, t);
		rec.other_pid = rec.other_tid = t->process->parent_pid;
		if (t->kind == CSW_KIND_KERNEL)
			rec.flags = CSW_RECORD_KERNEL_THREAD;
		if (t->kind == CSW_KIND_SELF)
			rec.flags = CSW_RECORD_SELF;
		memcpy(rec.comm, t->comm, sizeof(rec.comm));
		sink->put(sink->ctx, &rec);
	}
}

static int no_memory(struct csw_error *err)
{
	return csw_error_set(err, -ENOMEM,
			     "sim: no memory for more threads; use fewer, or a shorter run");
}

static int sim_start(struct csw_driver *drv, const struct csw_sink *sink, struct csw_error *err)
{
	int ret;

	scan_threads(drv, sink);
	ret = csw_sim_machine_start(drv->machine);
	for (uint32_t i = 0; !ret && drv->o.throttle && i < drv->o.cpus; i++) {
		uint64_t now_ns = csw_sim_machine_now(drv->machine);

		ret = csw_sim_machine_set_timer(drv->machine, i,
						now_ns + (drv->o.throttle - 1) * MS);
	}
	if (ret)
		return no_memory(err);
	drv->end_ns = csw_sim_machine_now(drv->machine) + drv->duration_ns;
	if (drv->nr_sets > 1)
		drv->turn_ends_ns = csw_sim_machine_now(drv->machine) + csw_turn_ns(0);
	drv->stall_at_ns = drv->o.stall_ms ? drv->end_ns - drv->duration_ns / 3 * 2 : NONE;
	return 0;
}

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The reader ends a turn, so it never ends while the reader does not come; nor where the reading of
 * the one before is still to be fetched. */
static void end_turns(struct csw_driver *drv)
{
	for (uint32_t i = 0; i < drv->o.cpus; i++) {
		struct csw_sim_cpu *cpu = csw_sim_machine_cpu(drv->machine, i);
		struct ring *ring = &drv->rings[i];
		uint64_t time_ns;

		if (ring->head - ring->tail > drv->capacity)
			continue;
		time_ns = csw_sim_machine_settle(drv->machine, cpu);
		put_reading(drv, CSW_RECORD_READ, CSW_RECORD_TURN, cpu, time_ns);
		drv->read_ns = max(drv->read_ns, time_ns);
		ring->set = (ring->set + 1) % drv->nr_sets;
		csw_sim_pmu_turn(&cpu->pmu, drv->sets[ring->set]);
	}
	drv->turn_ends_ns = csw_sim_machine_now(drv->machine) + csw_turn_ns(++drv->turns);
}

/* The machine lives on while the reader waits; a ring that becomes half full wakes the reader up.
 * Only in the stall, which stands for a reader that did not come back, nothing does. At least a
 * millisecond passes, lest a reader that only polls stop the time. */
static int sim_wait(struct csw_driver *drv, int timeout_ms, struct csw_error *err)
{
	uint64_t now_ns = csw_sim_machine_now(drv->machine);
	uint64_t until_ns = drv->end_ns;
	const bool *brake = &drv->crowded;

	if (timeout_ms >= 0)
		until_ns = min(until_ns, now_ns + (timeout_ms ? (uint64_t)timeout_ms : 1) * MS);
	if (now_ns >= drv->stall_at_ns) {
		until_ns = min(drv->end_ns, now_ns + drv->o.stall_ms * MS);
		drv->stall_at_ns = NONE;
		brake = NULL;
	}
	until_ns = min(until_ns, drv->stall_at_ns);
	if (brake)
		until_ns = min(until_ns, drv->turn_ends_ns);
	drv->crowded = false;
	if (csw_sim_machine_run(drv->machine, until_ns, brake))
		return no_memory(err);
	if (csw_sim_machine_now(drv->machine) >= drv->turn_ends_ns)
		end_turns(drv);
	return csw_sim_machine_now(drv->machine) < drv->end_ns;
}

static uint64_t sim_snapshot(struct csw_driver *drv)
{
	for (uint64_t i = 0; i < drv->o.cpus; i++)
		drv->rings[i].snapshot = drv->rings[i].head;
	return drv->stopped ? UINT64_MAX : max(csw_sim_machine_now(drv->machine), drv->read_ns);
}

static int sim_tick(struct csw_driver *drv, struct csw_error *err)
{
	(void)err;
	for (uint32_t i = 0; i < drv->o.cpus; i++) {
		struct csw_sim_cpu *cpu = csw_sim_machine_cpu(drv->machine, i);

		uint64_t time_ns = csw_sim_machine_settle(drv->machine, cpu);

		put_reading(drv, CSW_RECORD_READ, 0, cpu, time_ns);
		drv->read_ns = max(drv->read_ns, time_ns);
	}
	return 0;
}

static int sim_stop(struct csw_driver *drv, struct csw_error *err)
{
	if (csw_sim_machine_stop(drv->machine))
		return no_memory(err);
	drv->stopped = true;
	return 0;
}

static void sim_facts(const struct csw_driver *drv, struct csw_driver_facts *out)
{
	uint32_t always = UINT32_MAX;

	for (uint32_t i = 0; i < drv->nr_sets; i++)
		always &= drv->sets[i];
	*out = (struct csw_driver_facts){ .sets = drv->nr_sets, .scaled = drv->sets[0] };
	for (uint32_t i = 1; i < drv->nr_sets; i++)
		out->scaled |= drv->sets[i];
	out->scaled &= ~always;
}

const struct csw_driver_ops csw_sim_driver = {
	.name = "sim",
	.summary = "a simulated machine that knows the truth; e.g. sim:model=amd,cpus=8,seed=3",
	.caps = CSW_DRIVER_SIMULATED,
	.probe = sim_probe,
	.resolve_counter = sim_resolve_counter,
	.resolve_trigger = sim_resolve_trigger,
	.settle = sim_settle,
	.open = sim_open,
	.nr_rings = sim_nr_cpus,
	.nr_cpus = sim_nr_cpus,
	.start = sim_start,
	.wait = sim_wait,
	.snapshot = sim_snapshot,
	.next = sim_next,
	.tick = sim_tick,
	.stop = sim_stop,
	.facts = sim_facts,
	.close = sim_close,
};

/* ---- the truth ---- */

static void add_truth(const struct csw_driver *drv, struct csw_sim_truth *out,
		      const struct csw_sim_thread *t)
{
	out->kind = t->kind;
	out->pid = t->process->pid;
	out->tid = t->tid;
	out->birth_ns = t->birth_ns;
	memcpy(out->comm, t->comm, sizeof(out->comm));
	out->slices += t->tally.slices;
	out->oncpu_ns += t->tally.oncpu_ns;
	out->voluntary += t->tally.voluntary;
	out->preempted += t->tally.preempted;
	for (unsigned i = 0; i < drv->nr_counters; i++) {
		out->counts[i] += t->tally.events[drv->event_of[i]];
		out->counted[i] += t->tally.counted[drv->event_of[i]];
	}
}

size_t csw_sim_truths(const struct csw_driver *drv)
{
	return 1 + csw_sim_machine_threads(drv->machine);
}

void csw_sim_truth_get(const struct csw_driver *drv, size_t i, struct csw_sim_truth *out)
{
	memset(out, 0, sizeof(*out));
	if (i) {
		add_truth(drv, out, csw_sim_machine_thread(drv->machine, i - 1));
		return;
	}
	for (uint32_t cpu = 0; cpu < drv->o.cpus; cpu++)
		add_truth(drv, out, &csw_sim_machine_cpu(drv->machine, cpu)->idle);
	strcpy(out->comm, "swapper");
}

void csw_sim_cpu_truth_get(const struct csw_driver *drv, unsigned cpu,
			   struct csw_sim_cpu_truth *out)
{
	const struct csw_sim_cpu *c = csw_sim_machine_cpu(drv->machine, cpu);

	*out = (struct csw_sim_cpu_truth){ .triggers = c->triggers };
	for (int kind = 0; kind < CSW_SIM_SWITCH_KINDS; kind++) {
		out->by_kind[kind] = c->switches[kind];
		out->switches += c->switches[kind];
	}
	for (unsigned i = 0; i < drv->nr_counters; i++)
		out->wraps += c->pmu.counters[i].wraps;
}
