/* From rulings to rows; see booking.h. */
#include "engine/booking.h"

#include <errno.h>
#include <string.h>

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
void csw_book_charges(struct csw_slicer *s, unsigned cpu, const struct csw_ruling *r)
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

	row->enabled_ns += deltas[CSW_ENABLED];
	row->running_ns += deltas[CSW_RUNNING];
	half->enabled_ns += deltas[CSW_ENABLED];
	half->running_ns += deltas[CSW_RUNNING];
	if (s->agg->turns) {
		proven &= s->on;
		csw_aggregation_count_turn(s->agg, nr, deltas + CSW_COUNTERS_AT, whole, s->on,
					   deltas[CSW_RUNNING]);
		csw_aggregation_count_turn(&s->by_cpu, half_nr, deltas + CSW_COUNTERS_AT, whole,
					   s->on, deltas[CSW_RUNNING]);
	} else {
		csw_aggregation_count(s->agg, nr, deltas + CSW_COUNTERS_AT, whole);
		csw_aggregation_count(&s->by_cpu, half_nr, deltas + CSW_COUNTERS_AT, whole);
	}
	row->proven |= proven;
	half->proven |= proven;
	if (s->each)
		csw_slices_count(s->each, cpu, nr, deltas + CSW_COUNTERS_AT);
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

	memset(part, 0, (CSW_COUNTERS_AT + s->nr_counters) * sizeof(*part));
	for (unsigned c = 0; c < CSW_COUNTERS_AT + s->nr_counters; c++) {
		if (c >= CSW_COUNTERS_AT &&
		    !(s->event_flags[c - CSW_COUNTERS_AT] & CSW_EVENT_CLOCK))
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
	g.which =
		(s->nr_counters < 32 ? (1u << s->nr_counters) - 1 : CSW_EVERY_COUNTER) & ~s->clocks;
	if (s->agg->turns)
		g.which &= s->on;
	if (r->slice == CSW_SLICE_IDLED || (!g.splits && g.last == CSW_OWNER_IDLE))
		g.which &= ~s->never_idle;
	for (unsigned c = 0; c < s->nr_counters; c++)
		g.some |= deltas[CSW_COUNTERS_AT + c] ? g.which & 1u << c : 0;
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
		uint64_t *from = &rest[CSW_COUNTERS_AT + c], share = *from;

		if (!(g->which >> c & 1))
			continue;
		if (g->splits)
			share = (uint64_t)((unsigned __int128)share * ns / g->ns);
		part[CSW_COUNTERS_AT + c] = share;
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
	csw_aggregation_note_shares(s->agg, nr, part + CSW_COUNTERS_AT, which);
	/* All of a CPU's slice is that CPU's; only a scope cuts it in two. */
	if (s->scoped)
		csw_aggregation_note_shares(&s->by_cpu, half_of_cpu(s, cpu, nr),
					    part + CSW_COUNTERS_AT, which);
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
	uint64_t part[CSW_COUNTERS_AT + CSW_COUNTERS_MAX] = { 0 };

	for (unsigned c = 0; c < s->nr_counters; c++) {
		if (!(g->which >> c & 1))
			continue;
		part[CSW_COUNTERS_AT + c] = rest[CSW_COUNTERS_AT + c];
		rest[CSW_COUNTERS_AT + c] = 0;
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
	uint64_t part[CSW_COUNTERS_AT + CSW_COUNTERS_MAX] = { 0 };
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
				part[CSW_COUNTERS_AT + c] = deltas[CSW_COUNTERS_AT + c];
				deltas[CSW_COUNTERS_AT + c] = 0;
			}
		}
		book_counts(s, cpu, r->owner, part, false, s->never_idle);
	}
	book_counts(s, cpu, (uint32_t)mixed, deltas, false, CSW_EVERY_COUNTER);
	return 0;
}

bool csw_book_is_exact(const struct csw_slicer *s, const struct csw_ruling *r)
{
	return (r->slice == CSW_SLICE_EXACT ||
		(r->slice == CSW_SLICE_IDLED && s->all_survive_idle)) &&
	       csw_owner_proven(r->owner);
}

static void book_exact_time(struct csw_slicer *s, unsigned cpu, const struct csw_ruling *r)
{
	uint64_t ns;

	if (!csw_book_is_exact(s, r))
		return;
	ns = stretch_ns(&r->stretch, r->owner);
	csw_aggregation_row(s->agg, r->owner)->exact_ns += ns;
	if (r->owner != CSW_ROW_IDLE)
		csw_aggregation_row(&s->by_cpu, half_of_cpu(s, cpu, r->owner))->exact_ns += ns;
}

int csw_book_slice(struct csw_slicer *s, unsigned cpu, const struct csw_ruling *r, uint64_t *deltas)
{
	switch (r->slice) {
	case CSW_SLICE_EXACT:
		book_counts(s, cpu, r->owner, deltas, r->whole, CSW_EVERY_COUNTER);
		break;
	case CSW_SLICE_LOST:
		book_counts(s, cpu, CSW_ROW_LOST, deltas, false, CSW_EVERY_COUNTER);
		break;
	default:
		if (book_shared(s, cpu, r, deltas) < 0)
			return -ENOMEM;
	}
	book_exact_time(s, cpu, r);
	return 0;
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
int csw_book_estimate(struct csw_slicer *s, const struct csw_record *rec)
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
