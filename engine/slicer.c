/* Records to slices to rows; see slicer.h. The only file that includes the rules. */
#include "engine/slicer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/driver.h"

#define ENABLED 0
#define RUNNING 1
#define COUNTERS 2 /* where the counters begin in readings */

_Static_assert((unsigned)CSW_ROW_IDLE == CSW_OWNER_IDLE &&
		       (unsigned)CSW_ROW_UNKNOWN == CSW_OWNER_UNKNOWN &&
		       (unsigned)CSW_ROW_LOST == CSW_OWNER_LOST &&
		       (unsigned)CSW_ROWS_FIXED == CSW_OWNER_FIRST,
	       "the rules' handles are row numbers");

int csw_slicer_init(struct csw_slicer *s, const struct csw_plan *plan,
		    const struct csw_scope *scope, struct csw_aggregation *agg, unsigned nr_cpus)
{
	const uint32_t told_apart = CSW_EVENT_NEVER_IDLE | CSW_EVENT_CLOCK;

	memset(s, 0, sizeof(*s));
	s->agg = agg;
	s->nr_counters = plan->nr_counters;
	s->nr_cpus = nr_cpus;
	s->all_survive_idle = true;
	for (unsigned i = 0; i < plan->nr_counters; i++) {
		s->event_flags[i] = plan->counters[i].flags;
		if (!(plan->counters[i].flags & told_apart))
			s->all_survive_idle = false;
	}
	s->rules = (struct csw_rules){
		.sav = plan->trigger.sav,
		.per_switch = plan->trigger.per_switch,
		.before = plan->trigger.phase == CSW_PHASE_BEFORE,
		.inside = plan->trigger.phase == CSW_PHASE_INSIDE,
	};
	s->cpus = calloc(nr_cpus, sizeof(*s->cpus));
	if (!s->cpus || csw_tasks_init(&s->tasks, agg, scope) < 0) {
		free(s->cpus);
		s->cpus = NULL;
		return -ENOMEM;
	}
	return 0;
}

void csw_slicer_free(struct csw_slicer *s)
{
	csw_tasks_free(&s->tasks);
	free(s->cpus);
	s->cpus = NULL;
}

static void copy_readings(uint64_t *to, const struct csw_record *rec, unsigned nr_counters)
{
	to[ENABLED] = rec->enabled_ns;
	to[RUNNING] = rec->running_ns;
	memcpy(to + COUNTERS, rec->values + 1, nr_counters * sizeof(*to));
}

/* Time on a CPU, and what ended the run. */
static void book_charges(struct csw_slicer *s, const struct csw_ruling *r)
{
	s->unseen_switches += r->unseen_switches;
	for (unsigned i = 0; i < r->nr_charges; i++) {
		const struct csw_charge *c = &r->charge[i];
		struct csw_agg_row *row = csw_aggregation_row(s->agg, c->owner);

		row->oncpu_ns += c->ns;
		if (c->end == CSW_RUN_CUT)
			continue;
		row->slices++;
		s->slices++;
		if (c->end == CSW_RUN_VOLUNTARY)
			row->voluntary++;
		else if (c->end == CSW_RUN_PREEMPTED)
			row->preempted++;
	}
}

static void book_counts(struct csw_slicer *s, uint32_t nr, const uint64_t *deltas, bool whole)
{
	struct csw_agg_row *row = csw_aggregation_row(s->agg, nr);

	row->enabled_ns += deltas[ENABLED];
	row->running_ns += deltas[RUNNING];
	csw_aggregation_count(s->agg, nr, deltas + COUNTERS, whole);
}

/* Moves to `part` what owner i of the stretch has of everything that advances as the clock does,
 * and leaves the rest. */
static void take_clock_share(const struct csw_slicer *s, const struct csw_stretch *st, unsigned i,
			     uint64_t *rest, uint64_t *part)
{
	uint64_t ns_left = 0;

	memset(part, 0, (COUNTERS + s->nr_counters) * sizeof(*part));
	/* Share what is left among those that are left: the last one gets all of it, so nothing
	 * falls off by rounding. */
	for (unsigned k = i; k < st->nr; k++)
		ns_left += st->ns[k];
	for (unsigned c = 0; c < COUNTERS + s->nr_counters; c++) {
		if (c >= COUNTERS && !(s->event_flags[c - COUNTERS] & CSW_EVENT_CLOCK))
			continue;
		if (!ns_left)
			continue;
		part[c] = (uint64_t)((unsigned __int128)rest[c] * st->ns[i] / ns_left);
		rest[c] -= part[c];
	}
}

/* The row for what nobody in the stretch can be charged with alone. */
static int64_t mixed_row(struct csw_slicer *s, const struct csw_stretch *st)
{
	uint32_t first = st->owner[0];

	if (st->nr > CSW_STRETCH_OWNERS || first < CSW_ROWS_FIXED)
		return CSW_ROW_MIXED;
	for (unsigned i = 1; i < st->nr; i++) {
		if (st->owner[i] < CSW_ROWS_FIXED ||
		    csw_aggregation_row(s->agg, st->owner[i])->pid !=
			    csw_aggregation_row(s->agg, first)->pid)
			return CSW_ROW_MIXED;
	}
	return csw_tasks_mixed(&s->tasks, first);
}

/* Several owners: each gets its time's share of the clocks; the counters go to `thread` where only
 * it can have caused them (IDLED), else to [mixed]. */
static int book_shared(struct csw_slicer *s, const struct csw_ruling *r, uint64_t *deltas)
{
	const struct csw_stretch *st = &r->stretch;
	uint64_t part[COUNTERS + CSW_COUNTERS_MAX] = { 0 };
	int64_t mixed = mixed_row(s, st);

	if (mixed < 0)
		return (int)mixed;
	for (unsigned i = 0; st->nr <= CSW_STRETCH_OWNERS && i < st->nr; i++) {
		take_clock_share(s, st, i, deltas, part);
		book_counts(s, st->owner[i], part, false);
	}
	if (r->slice == CSW_SLICE_IDLED) {
		memset(part, 0, sizeof(part));
		for (unsigned c = 0; c < s->nr_counters; c++) {
			if (s->event_flags[c] & CSW_EVENT_NEVER_IDLE) {
				part[COUNTERS + c] = deltas[COUNTERS + c];
				deltas[COUNTERS + c] = 0;
			}
		}
		book_counts(s, r->owner, part, false);
	}
	book_counts(s, (uint32_t)mixed, deltas, false);
	return 0;
}

static uint64_t stretch_ns(const struct csw_stretch *st, uint32_t owner)
{
	for (unsigned i = 0; i < st->nr && i < CSW_STRETCH_OWNERS; i++) {
		if (st->owner[i] == owner)
			return st->ns[i];
	}
	return 0;
}

static void book_exact_time(struct csw_slicer *s, const struct csw_ruling *r)
{
	bool exact =
		r->slice == CSW_SLICE_EXACT || (r->slice == CSW_SLICE_IDLED && s->all_survive_idle);

	if (exact && csw_owner_proven(r->owner))
		csw_aggregation_row(s->agg, r->owner)->exact_ns +=
			stretch_ns(&r->stretch, r->owner);
}

static int book_slice(struct csw_slicer *s, const struct csw_ruling *r, uint64_t *deltas)
{
	switch (r->slice) {
	case CSW_SLICE_EXACT:
		book_counts(s, r->owner, deltas, r->whole);
		break;
	case CSW_SLICE_LOST:
		book_counts(s, CSW_ROW_LOST, deltas, false);
		break;
	default:
		if (book_shared(s, r, deltas) < 0)
			return -ENOMEM;
	}
	book_exact_time(s, r);
	return 0;
}

static void book_missing(struct csw_completeness *done, const struct csw_ruling *r)
{
	if (r->missing_why == CSW_MISSING_LOST)
		done->lost += r->missing;
	else if (r->missing_why == CSW_MISSING_THROTTLED)
		done->throttled += r->missing;
	else
		done->unseen += r->missing;
}

/* An overflow was taken for missing and has come after all. A late interrupt leaves a remainder;
 * when the kernel has fallen more than a period behind it begins a new one, and that remainder
 * stays. Two such remainders look like an overflow that never came, until the next one is early. */
static void take_back(struct csw_slicer_cpu *cpu, uint64_t sav)
{
	uint64_t *const claims[] = { &cpu->done.unseen, &cpu->done.throttled, &cpu->done.lost };

	for (unsigned i = 0; i < 3; i++) {
		while (cpu->state.open < 0 && *claims[i] >= sav) {
			*claims[i] -= sav;
			cpu->state.open += (long long)sav;
		}
	}
}

/* What was counted since the last reading goes where the ruling says. */
static int book_reading(struct csw_slicer *s, struct csw_slicer_cpu *cpu,
			const struct csw_record *rec, const struct csw_ruling *r)
{
	uint64_t now[COUNTERS + CSW_COUNTERS_MAX], deltas[COUNTERS + CSW_COUNTERS_MAX];

	copy_readings(now, rec, s->nr_counters);
	for (unsigned c = 0; c < COUNTERS + s->nr_counters; c++) {
		if (now[c] < cpu->readings[c])
			s->backwards = true;
		deltas[c] = now[c] - cpu->readings[c];
		cpu->readings[c] = now[c];
	}
	book_missing(&cpu->done, r);
	take_back(cpu, s->rules.sav);
	return book_slice(s, r, deltas);
}

static int on_start(struct csw_slicer *s, struct csw_slicer_cpu *cpu, const struct csw_record *rec)
{
	int64_t owner = rec->tid < 0 ? CSW_ROW_UNKNOWN
				     : csw_tasks_find(&s->tasks, rec->pid, rec->tid, rec->time_ns);

	if (owner < 0)
		return (int)owner;
	csw_rule_start(&cpu->state, rec->time_ns, (uint32_t)owner, rec->values[0]);
	copy_readings(cpu->readings, rec, s->nr_counters);
	memcpy(cpu->first, cpu->readings, sizeof(cpu->first));
	cpu->start_ns = rec->time_ns;
	cpu->start_trigger = rec->values[0];
	cpu->started = true;
	return 0;
}

/* Can the sample's own TID be that of the thread that ran? Only a hint, but one that can deny. */
static bool hint_denies(const struct csw_slicer *s, const struct csw_slicer_cpu *cpu, int32_t tid)
{
	uint32_t owner = cpu->state.owner, left = cpu->state.left;

	if (tid < 0 || !csw_owner_proven(owner) || csw_aggregation_row(s->agg, owner)->tid == tid)
		return false;
	/* In and after the switch code both threads' TIDs are seen, by how late the interrupt
	 * comes. */
	return s->rules.before || left == CSW_OWNER_EXITED ||
	       csw_aggregation_row(s->agg, left)->tid != tid;
}

static int on_sample(struct csw_slicer *s, struct csw_slicer_cpu *cpu, const struct csw_record *rec)
{
	struct csw_ruling r = { .nr_charges = 0 };
	bool denied;

	if (rec->values[0] < cpu->state.trigger)
		s->backwards = true;
	if (csw_tasks_follow_exec(&s->tasks, rec->pid, rec->tid, cpu->state.owner) < 0)
		return -ENOMEM;
	denied = hint_denies(s, cpu, rec->tid);
	s->owner_disagreements += denied;
	cpu->done.samples++;
	csw_rule_sample(&s->rules, &cpu->state, &r, rec->time_ns, rec->values[0],
			denied && s->rules.before);
	book_charges(s, &r);
	return book_reading(s, cpu, rec, &r);
}

static int on_switch_out(struct csw_slicer *s, struct csw_slicer_cpu *cpu,
			 const struct csw_record *rec)
{
	struct csw_ruling r = { .nr_charges = 0 };
	int64_t prev = CSW_OWNER_EXITED, next;
	bool preempted = rec->flags & CSW_RECORD_PREEMPTED;

	if (csw_tasks_follow_exec(&s->tasks, rec->pid, rec->tid, cpu->state.owner) < 0)
		return -ENOMEM;
	if (rec->tid >= 0)
		prev = csw_tasks_find(&s->tasks, rec->pid, rec->tid, rec->time_ns);
	next = csw_tasks_find(&s->tasks, rec->other_pid, rec->other_tid, rec->time_ns);
	if (prev < 0 || next < 0)
		return -ENOMEM;
	csw_rule_switch_out(&cpu->state, &r, rec->time_ns, (uint32_t)prev, (uint32_t)next,
			    preempted);
	book_charges(s, &r);
	if (rec->tid < 0)
		csw_tasks_dead(&s->tasks, cpu->state.left);
	return 0;
}

static int on_switch_in(struct csw_slicer *s, struct csw_slicer_cpu *cpu,
			const struct csw_record *rec)
{
	struct csw_ruling r = { .nr_charges = 0 };
	int64_t subject, prev = CSW_OWNER_EXITED;

	subject = csw_tasks_find(&s->tasks, rec->pid, rec->tid, rec->time_ns);
	/* Who has just been seen leaving may have exited; then its TID means nobody, or somebody
	 * else, by now. */
	if (rec->other_tid >= 0 && csw_owner_proven(cpu->state.left) &&
	    cpu->state.left != CSW_OWNER_EXITED &&
	    csw_aggregation_row(s->agg, cpu->state.left)->tid == rec->other_tid &&
	    cpu->state.switching)
		prev = cpu->state.left;
	else if (rec->other_tid >= 0)
		prev = csw_tasks_find(&s->tasks, rec->other_pid, rec->other_tid, rec->time_ns);
	if (subject < 0 || prev < 0)
		return -ENOMEM;
	csw_rule_switch_in(&cpu->state, &r, rec->time_ns, (uint32_t)subject, (uint32_t)prev);
	book_charges(s, &r);
	return 0;
}

static void on_lost(struct csw_slicer *s, struct csw_slicer_cpu *cpu, const struct csw_record *rec)
{
	struct csw_ruling r = { .nr_charges = 0 };

	cpu->lost_records += rec->lost;
	csw_rule_lost(&cpu->state, &r, rec->time_ns);
	book_charges(s, &r);
}

/* The kernel's own counts of what it could not write, over all of the run, against what LOST
 * records said. */
static bool is_tail_lost(const struct csw_slicer_cpu *cpu, const struct csw_record *rec)
{
	uint64_t all = 0;

	if (rec->lost != CSW_LOST_UNKNOWN)
		all += rec->lost;
	if (rec->lost_other != CSW_LOST_UNKNOWN)
		all += rec->lost_other;
	return all > cpu->lost_records;
}

/* A gap's missing samples were taken for lost as a whole; the kernel's count says how many of them
 * never were records. */
static void settle_lost(struct csw_completeness *done, const struct csw_record *rec, uint64_t sav)
{
	uint64_t lost;

	if (rec->lost == CSW_LOST_UNKNOWN)
		return;
	lost = rec->lost * sav;
	if (lost < done->lost) {
		done->unseen += done->lost - lost;
		done->lost = lost;
	}
}

static int on_stop(struct csw_slicer *s, struct csw_slicer_cpu *cpu, const struct csw_record *rec)
{
	struct csw_ruling r = { .nr_charges = 0 };
	int ret;

	if (rec->values[0] < cpu->state.trigger)
		s->backwards = true;
	csw_rule_stop(&s->rules, &cpu->state, &r, rec->time_ns, rec->values[0],
		      is_tail_lost(cpu, rec));
	book_charges(s, &r);
	ret = book_reading(s, cpu, rec, &r);
	cpu->done.all = rec->values[0] - cpu->start_trigger;
	cpu->done.open = cpu->state.open;
	settle_lost(&cpu->done, rec, s->rules.sav);
	cpu->stop_ns = rec->time_ns;
	cpu->stopped = true;
	for (unsigned c = 0; c < COUNTERS + s->nr_counters; c++)
		s->totals[c] += cpu->readings[c] - cpu->first[c];
	return ret;
}

int csw_slicer_record(struct csw_slicer *s, const struct csw_record *rec)
{
	struct csw_slicer_cpu *cpu;

	if (rec->cpu >= s->nr_cpus)
		return -EINVAL;
	cpu = &s->cpus[rec->cpu];
	switch (rec->type) {
	case CSW_RECORD_TASK:
	case CSW_RECORD_FORK:
	case CSW_RECORD_EXIT:
	case CSW_RECORD_COMM:
		return csw_tasks_record(&s->tasks, rec,
					cpu->state.counting ? cpu->state.owner : CSW_ROW_UNKNOWN);
	case CSW_RECORD_START:
		return on_start(s, cpu, rec);
	default:
		break;
	}
	/* The side-band runs longer than the counters, at both ends. */
	if (!cpu->state.counting)
		return 0;
	switch (rec->type) {
	case CSW_RECORD_SAMPLE:
		return on_sample(s, cpu, rec);
	case CSW_RECORD_SWITCH_OUT:
		return on_switch_out(s, cpu, rec);
	case CSW_RECORD_SWITCH_IN:
		return on_switch_in(s, cpu, rec);
	case CSW_RECORD_LOST:
		on_lost(s, cpu, rec);
		return 0;
	case CSW_RECORD_THROTTLE:
		s->throttles++;
		/* fall through */
	case CSW_RECORD_UNTHROTTLE:
		csw_rule_throttle(&cpu->state, rec->type == CSW_RECORD_THROTTLE);
		return 0;
	case CSW_RECORD_STOP:
		return on_stop(s, cpu, rec);
	default:
		return 0;
	}
}

void csw_slicer_completeness(const struct csw_slicer *s, struct csw_completeness *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < s->nr_cpus; i++) {
		const struct csw_completeness *done = &s->cpus[i].done;

		out->all += done->all;
		out->samples += done->samples;
		out->lost += done->lost;
		out->throttled += done->throttled;
		out->unseen += done->unseen;
		out->open += done->open;
	}
}
