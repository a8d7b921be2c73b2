/* Records to slices to rows; see slicer.h. The only file that includes the rules. */
#include "engine/slicer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/driver.h"

#define ENABLED 0
#define RUNNING 1
#define ALL UINT32_MAX /* every counter */
#define COUNTERS 2     /* where the counters begin in readings */

_Static_assert((unsigned)CSW_ROW_IDLE == CSW_OWNER_IDLE &&
		       (unsigned)CSW_ROW_UNKNOWN == CSW_OWNER_UNKNOWN &&
		       (unsigned)CSW_ROW_LOST == CSW_OWNER_LOST &&
		       (unsigned)CSW_ROWS_FIXED == CSW_OWNER_FIRST,
	       "the rules' handles are row numbers");
_Static_assert(CSW_READING_ENABLED + RUNNING == CSW_READING_RUNNING &&
		       CSW_READING_ENABLED + COUNTERS == CSW_READING_COUNTER,
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
	to[ENABLED] = rec->enabled_ns;
	to[RUNNING] = rec->running_ns;
	memcpy(to + COUNTERS, rec->values + 1, nr_counters * sizeof(*to));
}

/* The row of this CPU that a row's sums go to as well. */
static uint32_t half_of_cpu(const struct csw_slicer *s, unsigned cpu, uint32_t owner)
{
	bool in = !s->scoped || (csw_aggregation_row(s->agg, owner)->flags & CSW_ROW_IN_SCOPE);

	return 2 * cpu + (in ? 0 : 1);
}

static void end_run(struct csw_agg_row *row, uint32_t end)
{
	if (end == CSW_RUN_CUT)
		return;
	row->slices++;
	if (end == CSW_RUN_VOLUNTARY)
		row->voluntary++;
	else if (end == CSW_RUN_PREEMPTED)
		row->preempted++;
}

static void note_migration(struct csw_agg_row *row, struct csw_agg_row *half, unsigned cpu)
{
	if (row->last_cpu != cpu && row->last_cpu != CSW_CPU_NONE) {
		row->migrations++;
		half->migrations++;
	}
	row->last_cpu = cpu;
}

static void book_charge(struct csw_slicer *s, unsigned cpu, const struct csw_charge *c)
{
	struct csw_agg_row *row = csw_aggregation_row(s->agg, c->owner);
	struct csw_agg_row *half = csw_aggregation_row(&s->by_cpu, half_of_cpu(s, cpu, c->owner));

	row->oncpu_ns += c->ns;
	end_run(row, c->end);
	end_run(half, c->end);
	if (c->owner != CSW_ROW_IDLE)
		half->oncpu_ns += c->ns;
	if (c->owner >= CSW_ROWS_FIXED)
		note_migration(row, half, cpu);
	s->slices += c->end != CSW_RUN_CUT;
	if (s->each)
		csw_slices_charge(s->each, cpu, c, s->cpus[cpu].state.last_ns);
}

/* Time on a CPU, and what ended the run. There is nearly always one charge, or none. */
static inline void book_charges(struct csw_slicer *s, unsigned cpu, const struct csw_ruling *r)
{
	s->unseen_switches += r->unseen_switches;
	for (unsigned i = 0; i < r->nr_charges; i++)
		book_charge(s, cpu, &r->charge[i]);
}

/* proven: a bit for each counter that the deltas say something of. */
static void book_counts(struct csw_slicer *s, unsigned cpu, uint32_t nr, const uint64_t *deltas,
			bool whole, uint32_t proven)
{
	struct csw_agg_row *row = csw_aggregation_row(s->agg, nr);
	uint32_t half_nr = half_of_cpu(s, cpu, nr);
	struct csw_agg_row *half = csw_aggregation_row(&s->by_cpu, half_nr);

	row->enabled_ns += deltas[ENABLED];
	row->running_ns += deltas[RUNNING];
	half->enabled_ns += deltas[ENABLED];
	half->running_ns += deltas[RUNNING];
	if (s->agg->turns) {
		proven &= s->on;
		csw_aggregation_count_turn(s->agg, nr, deltas + COUNTERS, whole, s->on,
					   deltas[RUNNING]);
		csw_aggregation_count_turn(&s->by_cpu, half_nr, deltas + COUNTERS, whole, s->on,
					   deltas[RUNNING]);
	} else {
		csw_aggregation_count(s->agg, nr, deltas + COUNTERS, whole);
		csw_aggregation_count(&s->by_cpu, half_nr, deltas + COUNTERS, whole);
	}
	row->proven |= proven;
	half->proven |= proven;
	if (s->each)
		csw_slices_count(s->each, cpu, nr, deltas + COUNTERS);
}

/* The time that the owners from i on share: all of the slice that is not the others'. What nobody
 * is known to have had stays out of every share. */
static uint64_t ns_to_share(const struct csw_stretch *st, unsigned i)
{
	uint64_t slice_ns = st->to_ns > st->from_ns ? st->to_ns - st->from_ns : 0;
	uint64_t owned_ns = 0, before_ns = 0;

	for (unsigned k = 0; k < st->nr; k++) {
		owned_ns += st->ns[k];
		if (k < i)
			before_ns += st->ns[k];
	}
	return (slice_ns > owned_ns ? slice_ns : owned_ns) - before_ns;
}

/* Moves to `part` what owner i of the stretch has of everything that advances as the clock does,
 * and leaves the rest: for the last one, all of it goes where the slice is all theirs. */
static void take_clock_share(const struct csw_slicer *s, const struct csw_stretch *st, unsigned i,
			     uint64_t *rest, uint64_t *part)
{
	uint64_t ns_left = ns_to_share(st, i);

	memset(part, 0, (COUNTERS + s->nr_counters) * sizeof(*part));
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

static uint64_t stretch_ns(const struct csw_stretch *st, uint32_t owner)
{
	for (unsigned i = 0; i < st->nr && i < CSW_STRETCH_OWNERS; i++) {
		if (st->owner[i] == owner)
			return st->ns[i];
	}
	return 0;
}

/* ---- slices of several owners as an estimate ---- */

/* Who gets what of the counters that nobody can be proven to have caused. */
struct guess {
	uint32_t which; /* a bit for each such counter; 0: no estimate is made */
	uint32_t some;  /* ... that counted anything */
	bool splits;    /* by time, else `last` gets all */
	uint32_t last;
	uint64_t ns; /* time on a CPU of the owners to come */
};

/* Idle is no time on a CPU: a halted one counts next to nothing of what threads count, and a share
 * by its time would be most of what they caused. */
static uint64_t busy_ns(const struct csw_stretch *st)
{
	uint64_t ns = 0;

	for (unsigned i = 0; i < st->nr && i < CSW_STRETCH_OWNERS; i++)
		ns += st->owner[i] == CSW_OWNER_IDLE ? 0 : st->ns[i];
	return ns;
}

static bool is_owner(const struct csw_stretch *st, uint32_t owner)
{
	for (unsigned i = 0; i < st->nr && i < CSW_STRETCH_OWNERS; i++) {
		if (st->owner[i] == owner)
			return true;
	}
	return false;
}

/* An estimate of the owner needs owners: somebody unknown among them makes it a tale. Of more
 * owners than are told apart the last one is known all the same. */
static bool can_guess(const struct csw_slicer *s, const struct csw_stretch *st)
{
	bool told_apart = st->nr <= CSW_STRETCH_OWNERS;

	if (is_owner(st, CSW_OWNER_UNKNOWN) || is_owner(st, CSW_OWNER_LOST))
		return false;
	if (s->mixed == CSW_MIXED_SPLIT)
		return told_apart;
	return s->mixed == CSW_MIXED_LAST && csw_owner_proven(s->last) &&
	       (told_apart ? is_owner(st, s->last) : s->last < s->agg->nr);
}

/* What cannot happen in idle is not idle's by any estimate, and beside one thread it is that one's
 * without (IDLED). */
static struct guess begin_guess(const struct csw_slicer *s, const struct csw_ruling *r,
				const uint64_t *deltas)
{
	const struct csw_stretch *st = &r->stretch;
	struct guess g = { .splits = s->mixed == CSW_MIXED_SPLIT, .last = s->last };

	if (!can_guess(s, st))
		return g;
	g.which = (s->nr_counters < 32 ? (1u << s->nr_counters) - 1 : ALL) & ~s->clocks;
	if (s->agg->turns)
		g.which &= s->on;
	if (r->slice == CSW_SLICE_IDLED || (!g.splits && g.last == CSW_OWNER_IDLE))
		g.which &= ~s->never_idle;
	for (unsigned c = 0; c < s->nr_counters; c++)
		g.some |= deltas[COUNTERS + c] ? g.which & 1u << c : 0;
	g.ns = busy_ns(st);
	return g;
}

/* Moves to `part` what owner i has of the counters by the estimate: the last one that has a share
 * gets what is left. Returns which counters it has a share of. */
static uint32_t take_guess(const struct csw_slicer *s, struct guess *g,
			   const struct csw_stretch *st, unsigned i, uint64_t *rest, uint64_t *part)
{
	uint64_t ns = st->owner[i] == CSW_OWNER_IDLE ? 0 : st->ns[i];

	/* The times of a broken recording may be anything, and their sum 0. */
	if (g->splits ? !ns || !g->ns : st->owner[i] != g->last)
		return 0;
	for (unsigned c = 0; c < s->nr_counters; c++) {
		uint64_t *from = &rest[COUNTERS + c], share = *from;

		if (!(g->which >> c & 1))
			continue;
		if (g->splits)
			share = (uint64_t)((unsigned __int128)share * ns / g->ns);
		part[COUNTERS + c] = share;
		*from -= share;
	}
	g->ns -= ns;
	return g->which;
}

static void note_shares(struct csw_slicer *s, unsigned cpu, uint32_t nr, const uint64_t *part,
			uint32_t which)
{
	if (!which)
		return;
	csw_aggregation_note_shares(s->agg, nr, part + COUNTERS, which);
	/* All of a CPU's slice is that CPU's; only a scope cuts it in two. */
	if (s->scoped)
		csw_aggregation_note_shares(&s->by_cpu, half_of_cpu(s, cpu, nr), part + COUNTERS,
					    which);
}

/* Time on a CPU in a slice that is shared, of all its owners. */
static uint64_t shared_ns(const struct csw_stretch *st)
{
	uint64_t idle_ns = stretch_ns(st, CSW_OWNER_IDLE);

	if (st->nr <= CSW_STRETCH_OWNERS)
		return busy_ns(st);
	return st->to_ns > st->from_ns + idle_ns ? st->to_ns - st->from_ns - idle_ns : 0;
}

/* The last one of more owners than are told apart. */
static void book_last(struct csw_slicer *s, unsigned cpu, const struct guess *g, uint64_t *rest)
{
	uint64_t part[COUNTERS + CSW_COUNTERS_MAX] = { 0 };

	for (unsigned c = 0; c < s->nr_counters; c++) {
		if (!(g->which >> c & 1))
			continue;
		part[COUNTERS + c] = rest[COUNTERS + c];
		rest[COUNTERS + c] = 0;
	}
	book_counts(s, cpu, g->last, part, false, g->which);
	note_shares(s, cpu, g->last, part, g->some);
}

/* Several owners: each gets its time's share of the clocks; the counters go to `thread` where only
 * it can have caused them (IDLED), else where the estimate says that was asked for, or to [mixed].
 */
static int book_shared(struct csw_slicer *s, unsigned cpu, const struct csw_ruling *r,
		       uint64_t *deltas)
{
	const struct csw_stretch *st = &r->stretch;
	uint64_t part[COUNTERS + CSW_COUNTERS_MAX] = { 0 };
	int64_t mixed = mixed_row(s, st);
	struct guess g;

	if (mixed < 0)
		return (int)mixed;
	g = begin_guess(s, r, deltas);
	for (unsigned i = 0; st->nr <= CSW_STRETCH_OWNERS && i < st->nr; i++) {
		uint32_t guessed;

		take_clock_share(s, st, i, deltas, part);
		guessed = take_guess(s, &g, st, i, deltas, part);
		book_counts(s, cpu, st->owner[i], part, false, s->clocks | guessed);
		note_shares(s, cpu, st->owner[i], part, guessed & g.some);
	}
	if (g.which && st->nr > CSW_STRETCH_OWNERS)
		book_last(s, cpu, &g, deltas);
	if (g.some)
		s->shared_ns += shared_ns(st);
	if (r->slice == CSW_SLICE_IDLED) {
		memset(part, 0, sizeof(part));
		for (unsigned c = 0; c < s->nr_counters; c++) {
			if (s->event_flags[c] & CSW_EVENT_NEVER_IDLE) {
				part[COUNTERS + c] = deltas[COUNTERS + c];
				deltas[COUNTERS + c] = 0;
			}
		}
		book_counts(s, cpu, r->owner, part, false, s->never_idle);
	}
	book_counts(s, cpu, (uint32_t)mixed, deltas, false, ALL);
	return 0;
}

static bool is_exact(const struct csw_slicer *s, const struct csw_ruling *r)
{
	return (r->slice == CSW_SLICE_EXACT ||
		(r->slice == CSW_SLICE_IDLED && s->all_survive_idle)) &&
	       csw_owner_proven(r->owner);
}

static void book_exact_time(struct csw_slicer *s, unsigned cpu, const struct csw_ruling *r)
{
	uint64_t ns;

	if (!is_exact(s, r))
		return;
	ns = stretch_ns(&r->stretch, r->owner);
	csw_aggregation_row(s->agg, r->owner)->exact_ns += ns;
	if (r->owner != CSW_ROW_IDLE)
		csw_aggregation_row(&s->by_cpu, half_of_cpu(s, cpu, r->owner))->exact_ns += ns;
}

static int book_slice(struct csw_slicer *s, unsigned cpu, const struct csw_ruling *r,
		      uint64_t *deltas)
{
	switch (r->slice) {
	case CSW_SLICE_EXACT:
		book_counts(s, cpu, r->owner, deltas, r->whole, ALL);
		break;
	case CSW_SLICE_LOST:
		book_counts(s, cpu, CSW_ROW_LOST, deltas, false, ALL);
		break;
	default:
		if (book_shared(s, cpu, r, deltas) < 0)
			return -ENOMEM;
	}
	book_exact_time(s, cpu, r);
	return 0;
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
	for (unsigned i = 0; i < COUNTERS + s->nr_counters; i++)
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
			cpu->ran_ns[c] += deltas[RUNNING];
		else if (deltas[COUNTERS + c])
			note_wrong(s, &(struct csw_wrong_reading){ .what = CSW_READING_COUNTER + c,
								   .off = true,
								   .cpu = rec->cpu,
								   .before = rec->values[1 + c] -
									     deltas[COUNTERS + c],
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
	uint64_t deltas[COUNTERS + CSW_COUNTERS_MAX];
	bool back;

	back = advance(&cpu->readings[ENABLED], rec->enabled_ns, &deltas[ENABLED]);
	back |= advance(&cpu->readings[RUNNING], rec->running_ns, &deltas[RUNNING]);
	for (unsigned c = 0; c < s->nr_counters; c++)
		back |= advance(&cpu->readings[COUNTERS + c], rec->values[1 + c],
				&deltas[COUNTERS + c]);
	if (back)
		note_back(s, cpu, rec->cpu, deltas);
	if (s->agg->turns)
		note_turn(s, cpu, rec, deltas);
	book_missing(cpu, r);
	take_back(cpu, s->rules.sav);
	if (s->mixed == CSW_MIXED_LAST)
		s->last = shown_by(s, cpu, rec, &r->stretch);
	if (!s->each)
		return book_slice(s, rec->cpu, r, deltas);
	csw_slices_begin(s->each, rec->cpu, r->stretch.from_ns, r->stretch.to_ns,
			 is_exact(s, r) ? r->owner : UINT32_MAX, s->agg->turns ? s->on : ALL);
	if (book_slice(s, rec->cpu, r, deltas) < 0)
		return -ENOMEM;
	csw_slices_finish(s->each, rec->cpu, rec->type == CSW_RECORD_STOP);
	return s->each->ret;
}

/* ---- ordinary samples ---- */

static void note_estimate_time(struct csw_slicer *s, uint64_t time_ns)
{
	if (!s->nr_estimates || time_ns < s->first_estimate_ns)
		s->first_estimate_ns = time_ns;
	if (time_ns > s->last_estimate_ns)
		s->last_estimate_ns = time_ns;
	s->nr_estimates++;
}

/* A sample's own TID is all that is known of whose its events were. */
static int on_estimate(struct csw_slicer *s, const struct csw_record *rec)
{
	int64_t row = csw_tasks_find(&s->tasks, rec->pid, rec->tid, rec->time_ns);
	bool has_cpu = rec->cpu < s->nr_cpus;
	uint32_t half;

	if (row >= 0)
		row = csw_tasks_in_cgroup(&s->tasks, (uint32_t)row, rec->cgroup);
	if (row < 0)
		return (int)row;
	note_estimate_time(s, rec->time_ns);
	s->without_cpu |= !has_cpu;
	half = has_cpu ? half_of_cpu(s, rec->cpu, (uint32_t)row) : 0;
	for (unsigned c = 0; c < s->nr_counters; c++) {
		if (!(rec->flags >> c & 1))
			continue;
		s->estimated[c] += rec->values[1 + c];
		csw_aggregation_row(s->agg, (uint32_t)row)->cells[c].sum += rec->values[1 + c];
		if (csw_estimates_add(&s->by_row, (uint32_t)row, c) < 0)
			return -ENOMEM;
		if (!has_cpu)
			continue;
		csw_aggregation_row(&s->by_cpu, half)->cells[c].sum += rec->values[1 + c];
		if (csw_estimates_add(&s->by_half, half, c) < 0)
			return -ENOMEM;
	}
	if (has_cpu && row >= CSW_ROWS_FIXED)
		csw_aggregation_row(s->agg, (uint32_t)row)->last_cpu = rec->cpu;
	return 0;
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
	book_charges(s, rec->cpu, &r);
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
	book_charges(s, rec->cpu, &r);
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
	book_charges(s, rec->cpu, &r);
	return 0;
}

static void on_lost(struct csw_slicer *s, struct csw_slicer_cpu *cpu, const struct csw_record *rec)
{
	struct csw_ruling r;

	csw_ruling_begin(&r);
	cpu->lost_records += rec->lost;
	csw_rule_lost(&cpu->state, &r, rec->time_ns);
	book_charges(s, rec->cpu, &r);
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
	cpu->done.open += cpu->state.open;
	cpu->state.open = 0;
}

/* What a CPU that went offline says: nobody can be charged for what came after its last record. */
static struct csw_record without_tail(const struct csw_slicer *s, const struct csw_slicer_cpu *cpu,
				      const struct csw_record *rec)
{
	struct csw_record known = *rec;

	known.time_ns = cpu->state.last_ns;
	known.enabled_ns = cpu->readings[ENABLED];
	known.running_ns = cpu->readings[RUNNING];
	memcpy(known.values + 1, cpu->readings + COUNTERS, s->nr_counters * sizeof(*known.values));
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
		cpu->gone = true;
	}
	if (last)
		csw_rule_stop(&s->rules, &cpu->state, &r, rec->time_ns, rec->values[0], tail_lost);
	else
		csw_rule_tick(&s->rules, &cpu->state, &r, rec->time_ns, rec->values[0], tail_lost);
	book_charges(s, rec->cpu, &r);
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
		return on_estimate(s, rec);
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
		out->open += cpu->state.open + cpu->done.open;
		out->carried += cpu->done.carried;
	}
}

uint64_t csw_slicer_duration(const struct csw_slicer *s, uint32_t *cpus)
{
	uint64_t from = UINT64_MAX, to = 0;

	*cpus = 0;
	for (unsigned i = 0; i < s->nr_cpus; i++) {
		const struct csw_slicer_cpu *cpu = &s->cpus[i];
		uint64_t end =
			cpu->stop_ns > cpu->state.last_ns ? cpu->stop_ns : cpu->state.last_ns;

		*cpus += cpu->started;
		if (!cpu->started || cpu->over)
			continue;
		if (cpu->start_ns < from)
			from = cpu->start_ns;
		if (end > to)
			to = end;
	}
	return to > from ? to - from : 0;
}

void csw_slicer_totals(const struct csw_slicer *s, uint64_t *totals)
{
	memset(totals, 0, (COUNTERS + s->nr_counters) * sizeof(*totals));
	for (unsigned i = 0; i < s->nr_cpus; i++) {
		for (unsigned c = 0; c < COUNTERS + s->nr_counters; c++)
			totals[c] += s->cpus[i].readings[c] - s->cpus[i].first[c];
	}
	for (unsigned c = 0; c < s->nr_counters; c++)
		totals[COUNTERS + c] += s->estimated[c];
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
	pin_running(s, true);
	csw_aggregation_reset(s->agg);
	pin_running(s, false);
	csw_aggregation_reset(&s->by_cpu);
	for (unsigned i = 0; i < s->nr_cpus; i++) {
		struct csw_slicer_cpu *cpu = &s->cpus[i];

		memcpy(cpu->first, cpu->readings, sizeof(cpu->first));
		cpu->over = cpu->gone;
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
