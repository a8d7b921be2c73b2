/* Records to rulings; see slicer.h. */
#include "engine/slicer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/booking.h"
#include "engine/driver.h"

_Static_assert((unsigned)CSW_ROW_IDLE == CSW_OWNER_IDLE &&
		       (unsigned)CSW_ROW_UNKNOWN == CSW_OWNER_UNKNOWN &&
		       (unsigned)CSW_ROW_LOST == CSW_OWNER_LOST &&
		       (unsigned)CSW_ROWS_FIXED == CSW_OWNER_FIRST,
	       "the rules' handles are row numbers");
_Static_assert(CSW_READING_ENABLED + CSW_RUNNING == CSW_READING_RUNNING &&
		       CSW_READING_ENABLED + CSW_COUNTERS_AT == CSW_READING_COUNTER,
	       "a reading that is wrong is told by its place");

static int make_cpu_rows(struct csw_slicer *s)
{
	uint32_t keep = (s->agg->histograms ? CSW_KEEP_HISTOGRAMS : 0) |
			(s->agg->turns ? CSW_KEEP_TURNS : 0) |
			(s->agg->shares ? CSW_KEEP_SHARES : 0);

	if (csw_aggregation_init_empty(&s->by_cpu, s->nr_counters, keep) < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < 2 * s->nr_cpus; i++) {
		if (csw_aggregation_add(&s->by_cpu, i % 2 ? CSW_KIND_OTHER : CSW_KIND_THREAD, -1,
					-1, 0) < 0)
			return -ENOMEM;
	}
	return 0;
}

int csw_slicer_init(struct csw_slicer *s, const struct csw_plan *plan,
		    const struct csw_scope *scope, struct csw_aggregation *agg, unsigned nr_cpus)
{
	const uint32_t told_apart = CSW_EVENT_NEVER_IDLE | CSW_EVENT_CLOCK;

	memset(s, 0, sizeof(*s));
	s->agg = agg;
	s->nr_counters = plan->nr_counters;
	s->nr_cpus = nr_cpus;
	/* An estimate that nothing marks is none: not without the room for the marks. */
	s->mixed = agg->shares ? plan->mixed : CSW_MIXED_ROW;
	s->sample_of = plan->trigger.sample_of;
	s->all_survive_idle = true;
	for (unsigned i = 0; i < plan->nr_counters; i++) {
		s->event_flags[i] = plan->counters[i].flags;
		if (plan->counters[i].flags & CSW_EVENT_CLOCK)
			s->clocks |= 1u << i;
		if (plan->counters[i].flags & CSW_EVENT_NEVER_IDLE)
			s->never_idle |= 1u << i;
		if (!(plan->counters[i].flags & told_apart))
			s->all_survive_idle = false;
	}
	s->rules = (struct csw_rules){
		.sav = plan->trigger.sav,
		.per_switch = plan->trigger.per_switch,
		.before = plan->trigger.phase == CSW_PHASE_BEFORE,
		/* Only where each overflow falls into a switch of its own. */
		.inside = plan->trigger.phase == CSW_PHASE_INSIDE && plan->trigger.per_switch &&
			  plan->trigger.sav % plan->trigger.per_switch == 0,
	};
	s->scoped = csw_scope_is_set(scope);
	s->by_row.nr_counters = s->by_half.nr_counters = plan->nr_counters;
	s->cpus = calloc(nr_cpus, sizeof(*s->cpus));
	if (s->cpus && csw_tasks_init(&s->tasks, agg, scope) == 0 && make_cpu_rows(s) == 0)
		return 0;
	csw_slicer_free(s);
	return -ENOMEM;
}

void csw_slicer_free(struct csw_slicer *s)
{
	csw_tasks_free(&s->tasks);
	csw_aggregation_free(&s->by_cpu);
	csw_estimates_free(&s->by_row);
	csw_estimates_free(&s->by_half);
	free(s->cpus);
	s->cpus = NULL;
}

static void copy_readings(uint64_t *to, const struct csw_record *rec, unsigned nr_counters)
{
	to[CSW_ENABLED] = rec->enabled_ns;
	to[CSW_RUNNING] = rec->running_ns;
	memcpy(to + CSW_COUNTERS_AT, rec->values + 1, nr_counters * sizeof(*to));
}

/* Without overflow: the counts of a broken recording may be anything. */
static int64_t sum(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static void book_missing(struct csw_slicer_cpu *cpu, const struct csw_ruling *r)
{
	struct csw_completeness *done = &cpu->done;

	if (!r->missing)
		return;
	if (r->missing_why == CSW_MISSING_LOST) {
		done->lost += r->missing;
		cpu->lost_since += r->missing;
	} else if (r->missing_why == CSW_MISSING_THROTTLED) {
		done->throttled += r->missing;
	} else {
		done->unseen += r->missing;
	}
}

/* An overflow was taken for missing and has come after all. A late interrupt leaves a remainder;
 * when the kernel has fallen more than a period behind it begins a new one, and that remainder
 * stays. Two such remainders look like an overflow that never came, until the next one is early. */
static void take_back(struct csw_slicer_cpu *cpu, uint64_t sav)
{
	uint64_t *const claims[] = { &cpu->done.unseen, &cpu->done.throttled, &cpu->done.lost };

	if (cpu->state.open >= 0)
		return;
	/* By division: the readings of a broken recording may be anything. */
	for (unsigned i = 0; i < 3 && cpu->state.open < 0; i++) {
		uint64_t early = 0 - (uint64_t)cpu->state.open;
		uint64_t nr = early / sav + (early % sav != 0);

		if (nr > *claims[i] / sav)
			nr = *claims[i] / sav;
		*claims[i] -= nr * sav;
		cpu->state.open = (long long)((uint64_t)cpu->state.open + nr * sav);
	}
}

static void note_wrong(struct csw_slicer *s, const struct csw_wrong_reading *wrong)
{
	if (!s->is_wrong)
		s->wrong = *wrong;
	s->is_wrong = true;
}

static inline void check_order(struct csw_slicer *s, unsigned what, uint32_t cpu, uint64_t before,
			       uint64_t now)
{
	if (__builtin_expect(now < before, 0))
		note_wrong(s, &(struct csw_wrong_reading){
				      .what = what, .cpu = cpu, .before = before, .now = now });
}

/* Whether it went back: told without a branch, so that many are done at once. */
static inline bool advance(uint64_t *reading, uint64_t now, uint64_t *delta)
{
	bool back = now < *reading;

	*delta = now - *reading;
	*reading = now;
	return back;
}

/* Some reading went back: which? */
static void note_back(struct csw_slicer *s, const struct csw_slicer_cpu *cpu, uint32_t nr,
		      const uint64_t *deltas)
{
	for (unsigned i = 0; i < CSW_COUNTERS_AT + s->nr_counters; i++)
		check_order(s, CSW_READING_ENABLED + i, nr, cpu->readings[i] - deltas[i],
			    cpu->readings[i]);
}

/* A set of counters has made room for another: which of them ran since the reading before? One that
 * did not cannot have counted: then the record is wrong, and the sums would not show it. */
static void note_turn(struct csw_slicer *s, struct csw_slicer_cpu *cpu,
		      const struct csw_record *rec, const uint64_t *deltas)
{
	s->on = rec->on;
	for (unsigned c = 0; c < s->nr_counters; c++) {
		if (rec->on >> c & 1)
			cpu->ran_ns[c] += deltas[CSW_RUNNING];
		else if (deltas[CSW_COUNTERS_AT + c])
			note_wrong(s, &(struct csw_wrong_reading){
					      .what = CSW_READING_COUNTER + c,
					      .off = true,
					      .cpu = rec->cpu,
					      .before = rec->values[1 + c] -
							deltas[CSW_COUNTERS_AT + c],
					      .now = rec->values[1 + c] });
	}
}

/* Who ran last in the slice that this record has ended, by the switch records. */
static uint32_t last_by_records(const struct csw_slicer *s, const struct csw_cpu_state *state,
				bool sample)
{
	if (!sample || s->rules.before)
		return state->owner;
	return s->rules.inside || state->switching ? state->left : state->owner;
}

/* The thread that the sample shows, which the patent charges: as its TID says where it is known
 * whose that is; of an incoming thread it is the one whose place it takes. */
static uint32_t shown_by(const struct csw_slicer *s, const struct csw_slicer_cpu *cpu,
			 const struct csw_record *rec, const struct csw_stretch *st)
{
	const struct csw_cpu_state *state = &cpu->state;
	bool sample = rec->type == CSW_RECORD_SAMPLE;
	uint32_t last = last_by_records(s, state, sample);

	if (!sample || rec->tid < 0)
		return last;
	if (s->sample_of == CSW_SAMPLE_OF_INCOMING && csw_owner_proven(state->owner))
		return csw_aggregation_row(s->agg, state->owner)->tid == rec->tid ? state->left
										  : last;
	for (unsigned i = 0;
	     s->sample_of == CSW_SAMPLE_OF_OUTGOING && i < st->nr && i < CSW_STRETCH_OWNERS; i++) {
		if (csw_aggregation_row(s->agg, st->owner[i])->tid == rec->tid)
			return st->owner[i];
	}
	return last;
}

/* What was counted since the last reading goes where the ruling says. */
static int book_reading(struct csw_slicer *s, struct csw_slicer_cpu *cpu,
			const struct csw_record *rec, const struct csw_ruling *r)
{
	uint64_t deltas[CSW_COUNTERS_AT + CSW_COUNTERS_MAX];
	bool back;

	back = advance(&cpu->readings[CSW_ENABLED], rec->enabled_ns, &deltas[CSW_ENABLED]);
	back |= advance(&cpu->readings[CSW_RUNNING], rec->running_ns, &deltas[CSW_RUNNING]);
	for (unsigned c = 0; c < s->nr_counters; c++)
		back |= advance(&cpu->readings[CSW_COUNTERS_AT + c], rec->values[1 + c],
				&deltas[CSW_COUNTERS_AT + c]);
	if (back)
		note_back(s, cpu, rec->cpu, deltas);
	if (s->agg->turns)
		note_turn(s, cpu, rec, deltas);
	book_missing(cpu, r);
	take_back(cpu, s->rules.sav);
	if (s->mixed == CSW_MIXED_LAST)
		s->last = shown_by(s, cpu, rec, &r->stretch);
	if (!s->each)
		return csw_book_slice(s, rec->cpu, r, deltas);
	csw_slices_begin(s->each, rec->cpu, r->stretch.from_ns, r->stretch.to_ns,
			 csw_book_is_exact(s, r) ? r->owner : UINT32_MAX,
			 s->agg->turns ? s->on : CSW_EVERY_COUNTER);
	if (csw_book_slice(s, rec->cpu, r, deltas) < 0)
		return -ENOMEM;
	csw_slices_finish(s->each, rec->cpu, rec->type == CSW_RECORD_STOP);
	return s->each->ret;
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
	if (!s->from_ns || rec->time_ns < s->from_ns)
		s->from_ns = rec->time_ns;
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

/* The sample shows the cgroup of the thread that leaves; its whole slice counts for where it ends.
 */
static int follow_cgroup(struct csw_slicer *s, struct csw_slicer_cpu *cpu, uint64_t cgroup)
{
	struct csw_stretch *st = &cpu->state.stretch;
	uint32_t owner = cpu->state.owner;
	int64_t row = csw_tasks_in_cgroup(&s->tasks, owner, cgroup);

	if (row < 0)
		return (int)row;
	cpu->state.owner = (uint32_t)row;
	for (unsigned i = 0; i < st->nr && i < CSW_STRETCH_OWNERS; i++) {
		if (st->owner[i] == owner)
			st->owner[i] = (uint32_t)row;
	}
	return 0;
}

/* An exec may have given the thread on this CPU the sample's TID. Behind a switch the TID can be
 * that of the thread that left, such as a leader on its way out, and says nothing of who came. */
static int follow_exec(struct csw_slicer *s, const struct csw_slicer_cpu *cpu,
		       const struct csw_record *rec)
{
	const struct csw_cpu_state *state = &cpu->state;

	if (!s->rules.before && (state->switching || state->switches))
		return 0;
	return csw_tasks_follow_exec(&s->tasks, rec->pid, rec->tid, state->owner);
}

static int rule_sample(struct csw_slicer *s, struct csw_slicer_cpu *cpu,
		       const struct csw_record *rec, const struct csw_behind *behind)
{
	struct csw_ruling r;
	bool denied;

	csw_ruling_begin(&r);
	/* perf record has been seen to write a stretch of a ring twice: another overflow would have
	 * been counted, or come later. */
	if (rec->values[0] == cpu->state.trigger && rec->time_ns == cpu->state.last_ns)
		return 0;
	check_order(s, CSW_READING_TRIGGER, rec->cpu, cpu->state.trigger, rec->values[0]);
	if (follow_exec(s, cpu, rec) < 0)
		return -ENOMEM;
	denied = hint_denies(s, cpu, rec->tid);
	s->owner_disagreements += denied;
	cpu->done.samples++;
	if (rec->cgroup && s->rules.before && !denied && follow_cgroup(s, cpu, rec->cgroup) < 0)
		return -ENOMEM;
	csw_rule_sample(&s->rules, &cpu->state, &r, rec->time_ns, rec->values[0], behind,
			denied && s->rules.before);
	csw_book_charges(s, rec->cpu, &r);
	return book_reading(s, cpu, rec, &r);
}

/* Whose place the subject of a SWITCH_IN took. Who has just been seen leaving may have exited; then
 * its TID means nobody, or somebody else, by now. */
static int64_t find_left(struct csw_slicer *s, const struct csw_slicer_cpu *cpu,
			 const struct csw_record *rec)
{
	uint32_t left = cpu->state.left;

	if (rec->other_tid < 0)
		return CSW_OWNER_EXITED;
	if (cpu->state.switching && csw_owner_proven(left) && left != CSW_OWNER_EXITED &&
	    csw_aggregation_row(s->agg, left)->tid == rec->other_tid)
		return left;
	return csw_tasks_find(&s->tasks, rec->other_pid, rec->other_tid, rec->time_ns);
}

static int on_sample(struct csw_slicer *s, struct csw_slicer_cpu *cpu, const struct csw_record *rec)
{
	static const struct csw_behind nothing;

	if (!s->rules.inside)
		return rule_sample(s, cpu, rec, &nothing);
	cpu->held = *rec;
	cpu->holds = true;
	return 0;
}

/* The sample that waited, now that the record behind it is there. */
static int let_go(struct csw_slicer *s, struct csw_slicer_cpu *cpu, const struct csw_record *next)
{
	struct csw_behind behind = { .is_in = next->type == CSW_RECORD_SWITCH_IN };
	int64_t subject = 0, prev = 0;

	cpu->holds = false;
	if (behind.is_in) {
		subject = csw_tasks_find(&s->tasks, next->pid, next->tid, next->time_ns);
		prev = find_left(s, cpu, next);
		if (subject < 0 || prev < 0)
			return -ENOMEM;
	}
	behind.subject = (csw_u32)subject;
	behind.prev = (csw_u32)prev;
	return rule_sample(s, cpu, &cpu->held, &behind);
}

static int on_switch_out(struct csw_slicer *s, struct csw_slicer_cpu *cpu,
			 const struct csw_record *rec)
{
	struct csw_ruling r;
	int64_t prev = CSW_OWNER_EXITED, next;
	bool preempted = rec->flags & CSW_RECORD_PREEMPTED;

	csw_ruling_begin(&r);
	if (csw_tasks_follow_exec(&s->tasks, rec->pid, rec->tid, cpu->state.owner) < 0)
		return -ENOMEM;
	if (rec->tid >= 0)
		prev = csw_tasks_find_near(&s->tasks, rec->pid, rec->tid, rec->time_ns,
					   cpu->state.owner);
	next = csw_tasks_find(&s->tasks, rec->other_pid, rec->other_tid, rec->time_ns);
	if (prev < 0 || next < 0)
		return -ENOMEM;
	csw_rule_switch_out(&cpu->state, &r, rec->time_ns, (uint32_t)prev, (uint32_t)next,
			    preempted);
	csw_book_charges(s, rec->cpu, &r);
	if (rec->tid < 0)
		csw_tasks_dead(&s->tasks, cpu->state.left);
	return 0;
}

static int on_switch_in(struct csw_slicer *s, struct csw_slicer_cpu *cpu,
			const struct csw_record *rec)
{
	struct csw_ruling r;
	int64_t subject, prev;

	csw_ruling_begin(&r);
	subject =
		csw_tasks_find_near(&s->tasks, rec->pid, rec->tid, rec->time_ns, cpu->state.owner);
	prev = find_left(s, cpu, rec);
	if (subject < 0 || prev < 0)
		return -ENOMEM;
	csw_rule_switch_in(&cpu->state, &r, rec->time_ns, (uint32_t)subject, (uint32_t)prev);
	csw_book_charges(s, rec->cpu, &r);
	return 0;
}

static void on_lost(struct csw_slicer *s, struct csw_slicer_cpu *cpu, const struct csw_record *rec)
{
	struct csw_ruling r;

	csw_ruling_begin(&r);
	cpu->lost_records += rec->lost;
	csw_rule_lost(&cpu->state, &r, rec->time_ns);
	csw_book_charges(s, rec->cpu, &r);
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
	return all > cpu->lost_records_before + cpu->lost_records;
}

/* A gap's missing samples were taken for lost as a whole; the kernel's count, since the reading
 * before, says how many of them never were records. */
static void settle_lost(struct csw_slicer_cpu *cpu, const struct csw_record *rec, uint64_t sav)
{
	uint64_t lost;

	if (rec->lost != CSW_LOST_UNKNOWN) {
		lost = (rec->lost - cpu->kernel_lost) * sav;
		if (lost < cpu->lost_since) {
			cpu->done.unseen += cpu->lost_since - lost;
			cpu->done.lost -= cpu->lost_since - lost;
		}
		cpu->kernel_lost = rec->lost;
	}
	cpu->lost_since = 0;
}

/* The next set's trigger begins a period of its own: for what this one has counted since its last
 * sample there will be none. */
static void end_turn(struct csw_slicer_cpu *cpu)
{
	if (cpu->state.open <= 0)
		return;
	cpu->done.open = sum(cpu->done.open, cpu->state.open);
	cpu->state.open = 0;
}

/* What a CPU that went offline says: nobody can be charged for what came after its last record. */
static struct csw_record without_tail(const struct csw_slicer *s, const struct csw_slicer_cpu *cpu,
				      const struct csw_record *rec)
{
	struct csw_record known = *rec;

	known.time_ns = cpu->state.last_ns;
	known.enabled_ns = cpu->readings[CSW_ENABLED];
	known.running_ns = cpu->readings[CSW_RUNNING];
	memcpy(known.values + 1, cpu->readings + CSW_COUNTERS_AT,
	       s->nr_counters * sizeof(*known.values));
	return known;
}

/* A reading in mid-slice: READ, or STOP, which is the last. */
static int on_reading(struct csw_slicer *s, struct csw_slicer_cpu *cpu,
		      const struct csw_record *rec)
{
	struct csw_ruling r;
	struct csw_record known;
	bool last = rec->type == CSW_RECORD_STOP, tail_lost = is_tail_lost(cpu, rec);
	int ret;

	csw_ruling_begin(&r);
	check_order(s, CSW_READING_TRIGGER, rec->cpu, cpu->state.trigger, rec->values[0]);
	if (rec->flags & CSW_RECORD_DETACHED) {
		known = without_tail(s, cpu, rec);
		rec = &known;
		tail_lost = true;
	}
	if (last)
		csw_rule_stop(&s->rules, &cpu->state, &r, rec->time_ns, rec->values[0], tail_lost);
	else
		csw_rule_tick(&s->rules, &cpu->state, &r, rec->time_ns, rec->values[0], tail_lost);
	csw_book_charges(s, rec->cpu, &r);
	ret = book_reading(s, cpu, rec, &r);
	settle_lost(cpu, rec, s->rules.sav);
	if (rec->flags & CSW_RECORD_TURN)
		end_turn(cpu);
	cpu->stop_ns = rec->time_ns;
	cpu->stopped = last;
	return ret;
}

int csw_slicer_record(struct csw_slicer *s, const struct csw_record *rec)
{
	struct csw_slicer_cpu *cpu;
	int ret;

	if (rec->type == CSW_RECORD_ESTIMATE)
		return csw_book_estimate(s, rec);
	if (rec->cpu >= s->nr_cpus)
		return -EINVAL;
	cpu = &s->cpus[rec->cpu];
	if (cpu->holds && (ret = let_go(s, cpu, rec)) != 0)
		return ret;
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
	/* The side-band runs longer than the counters, at both ends. Of ordinary samples, how many
	 * are missing is all that can be said. */
	if (!cpu->state.counting) {
		if (rec->type == CSW_RECORD_LOST && s->nr_estimates)
			cpu->lost_records += rec->lost;
		return 0;
	}
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
	case CSW_RECORD_READ:
	case CSW_RECORD_STOP:
		return on_reading(s, cpu, rec);
	default:
		return 0;
	}
}

void csw_slicer_completeness(const struct csw_slicer *s, struct csw_completeness *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < s->nr_cpus; i++) {
		const struct csw_slicer_cpu *cpu = &s->cpus[i];

		out->all += cpu->state.trigger - cpu->start_trigger;
		out->samples += cpu->done.samples;
		out->lost += cpu->done.lost;
		out->throttled += cpu->done.throttled;
		out->unseen += cpu->done.unseen;
		out->open = sum(out->open, sum(cpu->state.open, cpu->done.open));
		out->carried = sum(out->carried, cpu->done.carried);
	}
}

/* When counting ended on the last CPU, as far as is known; 0: it has not begun. */
static uint64_t end_ns(const struct csw_slicer *s)
{
	uint64_t end = 0;

	for (unsigned i = 0; i < s->nr_cpus; i++) {
		const struct csw_slicer_cpu *cpu = &s->cpus[i];
		uint64_t cpu_end =
			cpu->stop_ns > cpu->state.last_ns ? cpu->stop_ns : cpu->state.last_ns;

		if (cpu->started && cpu_end > end)
			end = cpu_end;
	}
	return end;
}

uint64_t csw_slicer_duration(const struct csw_slicer *s, uint32_t *cpus)
{
	uint64_t end = end_ns(s);

	*cpus = 0;
	for (unsigned i = 0; i < s->nr_cpus; i++)
		*cpus += s->cpus[i].started;
	return end > s->from_ns ? end - s->from_ns : 0;
}

void csw_slicer_totals(const struct csw_slicer *s, uint64_t *totals)
{
	memset(totals, 0, (CSW_COUNTERS_AT + s->nr_counters) * sizeof(*totals));
	for (unsigned i = 0; i < s->nr_cpus; i++) {
		for (unsigned c = 0; c < CSW_COUNTERS_AT + s->nr_counters; c++)
			totals[c] += s->cpus[i].readings[c] - s->cpus[i].first[c];
	}
	for (unsigned c = 0; c < s->nr_counters; c++)
		totals[CSW_COUNTERS_AT + c] += s->estimated[c];
}

void csw_slicer_running(const struct csw_slicer *s, uint64_t *running_ns)
{
	memset(running_ns, 0, s->nr_counters * sizeof(*running_ns));
	for (unsigned i = 0; i < s->nr_cpus; i++) {
		for (unsigned c = 0; c < s->nr_counters; c++)
			running_ns[c] += s->cpus[i].ran_ns[c];
	}
}

static void pin(struct csw_slicer *s, uint32_t row, bool on)
{
	struct csw_agg_row *r;

	if (row >= s->agg->nr) /* CSW_OWNER_EXITED */
		return;
	r = csw_aggregation_row(s->agg, row);
	r->flags = (uint16_t)(on ? r->flags | CSW_ROW_PINNED : r->flags & ~CSW_ROW_PINNED);
}

/* The rows that the CPUs' states still speak of stay, whatever becomes of their threads. */
static void pin_running(struct csw_slicer *s, bool on)
{
	for (unsigned i = 0; i < s->nr_cpus; i++) {
		const struct csw_cpu_state *state = &s->cpus[i].state;

		pin(s, state->owner, on);
		pin(s, state->left, on);
		for (unsigned k = 0; k < state->stretch.nr && k < CSW_STRETCH_OWNERS; k++)
			pin(s, state->stretch.owner[k], on);
	}
}

void csw_slicer_reset(struct csw_slicer *s)
{
	uint64_t end = end_ns(s);

	if (end)
		s->from_ns = end;
	pin_running(s, true);
	csw_aggregation_reset(s->agg);
	pin_running(s, false);
	csw_aggregation_reset(&s->by_cpu);
	for (unsigned i = 0; i < s->nr_cpus; i++) {
		struct csw_slicer_cpu *cpu = &s->cpus[i];

		memcpy(cpu->first, cpu->readings, sizeof(cpu->first));
		cpu->start_ns = cpu->state.since_ns; /* all time up to here is charged */
		/* What is still open belongs to a sample to come. */
		cpu->start_trigger = cpu->state.trigger - (uint64_t)cpu->state.open;
		cpu->done = (struct csw_completeness){ .carried = cpu->state.open };
		memset(cpu->ran_ns, 0, sizeof(cpu->ran_ns));
		cpu->lost_records_before += cpu->lost_records;
		cpu->lost_records = 0;
	}
	s->unseen_switches = s->owner_disagreements = s->throttles = s->slices = 0;
	s->shared_ns = 0;
}
