/*
 * The table that is shown: rows in scope, grouped, in order, and the proofs beside them. See view.h
 * for the invariant.
 *
 * A process is (pid, its leader): a PID is free for another process only after all threads of the
 * old one are gone, and rows lie in the order in which threads were first known. So a second leader
 * of one PID is the beginning of a second process - except for a leader by exec, which is the same
 * process going on (CSW_ROW_MOVED). Limit: where the FORK record of the later process was lost, its
 * threads up to its leader's first appearance count to the earlier one.
 */
#define _GNU_SOURCE /* qsort_r */
#include "engine/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/error.h"

#define NO_ROW UINT32_MAX

struct counter {
	char name[CSW_EVENT_NAME_BYTES];
	char became[CSW_EVENT_NAME_BYTES];
	uint64_t total, rows, unproven;
	uint32_t flags; /* of the counter as a whole, over all CPUs */
	uint32_t nanoseconds;
};

struct csw_table {
	uint32_t by;
	unsigned nr_counters;
	size_t nr_rows;
	struct csw_row *rows; /* as they were opened */
	struct csw_count
		*counts; /* nr_counters per row; min > max while there was no whole slice */
	uint32_t *order; /* row numbers as they are shown */
	struct counter counters[CSW_COUNTERS_MAX];
	uint64_t enabled_ns, running_ns;
	char trigger[CSW_EVENT_NAME_BYTES];
	char trigger_became[CSW_EVENT_NAME_BYTES];
	struct csw_summary summary;
};

/* A row of the aggregation that belongs to a process. */
struct member {
	uint32_t kind;
	int32_t pid;
	uint32_t nr;
};

static const char *const kind_names[] = {
	[CSW_KIND_THREAD] = "thread",   [CSW_KIND_KERNEL] = "kernel", [CSW_KIND_IDLE] = "idle",
	[CSW_KIND_SELF] = "self",       [CSW_KIND_MIXED] = "mixed",   [CSW_KIND_LOST] = "lost",
	[CSW_KIND_UNKNOWN] = "unknown", [CSW_KIND_OTHER] = "other",   [CSW_KIND_REST] = "rest",
};

const char *csw_kind_name(uint32_t kind)
{
	return kind < sizeof(kind_names) / sizeof(*kind_names) ? kind_names[kind] : "?";
}

/* ---- building ---- */

static struct csw_count *counts_of(const struct csw_table *t, uint32_t nr)
{
	return t->counts + (size_t)nr * t->nr_counters;
}

static bool ran(const struct csw_agg_row *row, unsigned nr_counters)
{
	if (row->slices || row->oncpu_ns)
		return true;
	for (unsigned j = 0; j < nr_counters; j++) {
		if (row->cells[j].sum)
			return true;
	}
	return false;
}

static bool is_thread(uint32_t kind)
{
	return kind == CSW_KIND_THREAD || kind == CSW_KIND_KERNEL || kind == CSW_KIND_SELF;
}

static void copy_comm(struct csw_row *to, const struct csw_agg_row *from)
{
	size_t bytes = strnlen(from->comm, sizeof(from->comm));

	memcpy(to->comm, from->comm, bytes);
	to->comm[bytes] = '\0';
}

static uint32_t open_row(struct csw_table *t, uint32_t kind, int32_t pid, int32_t tid)
{
	uint32_t nr = (uint32_t)t->nr_rows++;
	struct csw_count *counts = counts_of(t, nr);

	t->rows[nr] = (struct csw_row){ .kind = kind, .pid = pid, .tid = tid };
	for (unsigned j = 0; j < t->nr_counters; j++)
		counts[j] = (struct csw_count){ .min = UINT64_MAX };
	return nr;
}

static void fold(struct csw_table *t, uint32_t nr, const struct csw_agg_row *from)
{
	struct csw_row *row = &t->rows[nr];
	struct csw_count *count = counts_of(t, nr);

	if (row->kind != CSW_KIND_OTHER || is_thread(from->kind))
		row->nr_threads++;
	row->slices += from->slices;
	row->oncpu_ns += from->oncpu_ns;
	row->voluntary += from->voluntary;
	row->preempted += from->preempted;
	row->exact_ns += from->exact_ns;
	for (unsigned j = 0; j < t->nr_counters; j++, count++) {
		const struct csw_cell *cell = &from->cells[j];

		count->value += cell->sum;
		count->enabled_ns += from->enabled_ns;
		count->running_ns += from->running_ns;
		if (cell->min < count->min)
			count->min = cell->min;
		if (cell->max > count->max)
			count->max = cell->max;
	}
}

/* The rows that stand alone: everything by thread; by process what belongs to none. Collects the
 * others as members. */
static size_t add_single(struct csw_table *t, const struct csw_result *result,
			 struct member *members)
{
	uint32_t other = NO_ROW;
	size_t nr_members = 0;

	for (uint32_t i = 0; i < result->agg->nr; i++) {
		const struct csw_agg_row *from = csw_aggregation_row(result->agg, i);

		if (result->scoped && !(from->flags & CSW_ROW_IN_SCOPE)) {
			if (!ran(from, t->nr_counters))
				continue;
			if (other == NO_ROW)
				other = open_row(t, CSW_KIND_OTHER, -1, -1);
			fold(t, other, from);
		} else if (members && is_thread(from->kind)) {
			members[nr_members++] = (struct member){ from->kind, from->pid, i };
		} else if (ran(from, t->nr_counters)) {
			uint32_t nr = open_row(t, from->kind, from->pid, from->tid);

			t->rows[nr].birth_ns = from->birth_ns;
			copy_comm(&t->rows[nr], from);
			fold(t, nr, from);
		}
	}
	return nr_members;
}

static int compare_members(const void *x, const void *y)
{
	const struct member *a = x, *b = y;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->nr < b->nr ? -1 : 1;
}

static bool opens_process(const struct csw_agg_row *row)
{
	return row->tid == row->pid && !(row->flags & CSW_ROW_MOVED);
}

/* Members m[0..] up to the end of the process that m[0] belongs to; their number. */
static size_t process_size(const struct csw_aggregation *agg, const struct member *m, size_t nr)
{
	bool has_leader = opens_process(csw_aggregation_row(agg, m->nr));
	size_t i;

	for (i = 1; i < nr && m[i].kind == m->kind && m[i].pid == m->pid && m->pid >= 0; i++) {
		if (!opens_process(csw_aggregation_row(agg, m[i].nr)))
			continue;
		if (has_leader)
			break;
		has_leader = true;
	}
	return i;
}

static void add_process(struct csw_table *t, const struct csw_aggregation *agg,
			const struct member *m, size_t nr)
{
	const struct csw_agg_row *first = csw_aggregation_row(agg, m->nr);
	uint32_t to = open_row(t, m->kind, m->pid, -1);
	struct csw_row *row = &t->rows[to];

	row->birth_ns = first->birth_ns;
	copy_comm(row, first);
	for (size_t i = 0; i < nr; i++) {
		const struct csw_agg_row *from = csw_aggregation_row(agg, m[i].nr);

		if (opens_process(from))
			row->birth_ns = from->birth_ns;
		if (from->tid == from->pid)
			copy_comm(row, from);
		if (ran(from, t->nr_counters))
			fold(t, to, from);
	}
	if (!row->nr_threads)
		t->nr_rows--; /* none of its threads ever ran: `to` is the last row */
}

static int add_rows(struct csw_table *t, const struct csw_result *result)
{
	struct member *members;
	size_t nr, size;

	if (t->by == CSW_BY_THREAD) {
		add_single(t, result, NULL);
		return 0;
	}
	members = calloc(result->agg->nr + 1, sizeof(*members));
	if (!members)
		return -ENOMEM;
	nr = add_single(t, result, members);
	qsort(members, nr, sizeof(*members), compare_members);
	for (size_t i = 0; i < nr; i += size) {
		size = process_size(result->agg, members + i, nr - i);
		add_process(t, result->agg, members + i, size);
	}
	free(members);
	return 0;
}

static int compare_rows(const void *x, const void *y, void *ctx)
{
	const struct csw_table *t = ctx;
	uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;
	const struct csw_row *a = &t->rows[i], *b = &t->rows[k];

	if (t->nr_counters && counts_of(t, i)->value != counts_of(t, k)->value)
		return counts_of(t, i)->value > counts_of(t, k)->value ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->birth_ns != b->birth_ns)
		return a->birth_ns < b->birth_ns ? -1 : 1;
	return i < k ? -1 : 1;
}

static void sort_rows(struct csw_table *t)
{
	for (size_t i = 0; i < t->nr_rows; i++)
		t->order[i] = (uint32_t)i;
	qsort_r(t->order, t->nr_rows, sizeof(*t->order), compare_rows, t);
}

static uint32_t count_flags(uint64_t enabled_ns, uint64_t running_ns)
{
	return enabled_ns && !running_ns ? CSW_COUNT_NOT_COUNTED : 0;
}

/* Some PMUs open codes that they do not have, and such an event stays 0 for ever. So a hardware
 * event that never occurred on any CPU in all that time is not told apart from one that cannot
 * occur, and is not called 0. What software counts is 0 where nothing happened. */
static uint32_t never_flags(const struct csw_event *event, uint64_t total, uint64_t running_ns)
{
	const uint64_t long_enough_ns = 1000000000;

	return (event->flags & CSW_EVENT_HARDWARE) && !total && running_ns >= long_enough_ns
		       ? CSW_COUNT_NOT_COUNTED
		       : 0;
}

/* Sums what is shown, not what it was made from: so conservation also proves the grouping. */
static void sum_counters(struct csw_table *t, const struct csw_result *result)
{
	for (unsigned j = 0; j < t->nr_counters; j++) {
		const struct csw_event *event = &result->plan->counters[j];
		struct counter *c = &t->counters[j];

		memcpy(c->name, event->name, sizeof(c->name));
		memcpy(c->became, event->became, sizeof(c->became));
		c->total = result->totals[j];
		c->flags = count_flags(result->enabled_ns, result->running_ns) |
			   never_flags(event, c->total, result->running_ns);
		c->nanoseconds = event->flags & CSW_EVENT_NANOSECONDS ? 1 : 0;
	}
	for (uint32_t i = 0; i < t->nr_rows; i++) {
		struct csw_count *count = counts_of(t, i);

		for (unsigned j = 0; j < t->nr_counters; j++, count++) {
			t->counters[j].rows += count->value;
			count->flags = count_flags(count->enabled_ns, count->running_ns) |
				       t->counters[j].flags;
			if (count->min > count->max)
				count->min = count->max = 0;
		}
	}
	t->enabled_ns = result->enabled_ns;
	t->running_ns = result->running_ns;
}

/* From the aggregation: a scope folds these rows away, but they bound what its rows may lack. */
static void sum_unproven(struct csw_table *t, const struct csw_aggregation *agg)
{
	for (uint32_t i = 0; i < agg->nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(agg, i);

		if (row->kind != CSW_KIND_MIXED && row->kind != CSW_KIND_LOST &&
		    row->kind != CSW_KIND_UNKNOWN)
			continue;
		for (unsigned j = 0; j < t->nr_counters; j++)
			t->counters[j].unproven += row->cells[j].sum;
	}
}

static void sum_run(struct csw_summary *s, const struct csw_aggregation *agg)
{
	s->threads = s->slices = s->oncpu_ns = s->exact_ns = 0;
	for (uint32_t i = 0; i < agg->nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(agg, i);

		s->slices += row->slices;
		if (row->kind == CSW_KIND_IDLE)
			continue;
		s->oncpu_ns += row->oncpu_ns;
		s->exact_ns += row->exact_ns;
		if ((row->kind == CSW_KIND_THREAD || row->kind == CSW_KIND_KERNEL) &&
		    ran(row, agg->nr_counters))
			s->threads++;
	}
}

static bool is_broken(const struct csw_table *t)
{
	const struct csw_summary *s = &t->summary;

	for (unsigned j = 0; j < t->nr_counters; j++) {
		if (t->counters[j].total != t->counters[j].rows)
			return true;
	}
	return s->triggers != s->sav * s->samples + s->lost + s->throttled + s->unseen + s->open;
}

static void fill_summary(struct csw_table *t, const struct csw_result *result)
{
	const struct csw_trigger *trigger = &result->plan->trigger;
	struct csw_summary *s = &t->summary;

	memcpy(t->trigger, trigger->event.name, sizeof(t->trigger));
	memcpy(t->trigger_became, trigger->event.became, sizeof(t->trigger_became));
	*s = result->summary;
	s->trigger = t->trigger;
	s->trigger_became = t->trigger_became;
	s->trigger_hardware = trigger->event.flags & CSW_EVENT_HARDWARE ? 1 : 0;
	s->sav = trigger->sav;
	s->driver = result->driver->name;
	s->simulated = result->driver->caps & CSW_DRIVER_SIMULATED ? 1 : 0;
	sum_run(s, result->agg);
	s->broken = s->broken || is_broken(t);
}

static struct csw_table *alloc_table(const struct csw_aggregation *agg)
{
	struct csw_table *t = calloc(1, sizeof(*t));
	size_t nr = agg->nr + 1; /* `other` besides */
	size_t nr_counters = agg->nr_counters ? agg->nr_counters : 1;

	if (!t)
		return NULL;
	t->nr_counters = agg->nr_counters;
	t->rows = calloc(nr, sizeof(*t->rows));
	t->counts = calloc(nr * nr_counters, sizeof(*t->counts));
	t->order = calloc(nr, sizeof(*t->order));
	if (t->rows && t->counts && t->order)
		return t;
	csw_table_close(t);
	return NULL;
}

int csw_view_make(struct csw_table **out, const struct csw_result *result, uint32_t by,
		  struct csw_error *err)
{
	struct csw_table *t;
	int ret;

	*out = NULL;
	if (by != CSW_BY_THREAD && by != CSW_BY_PROCESS)
		return csw_error_set(err, -EINVAL,
				     "no such view: %u; there are CSW_BY_THREAD and CSW_BY_PROCESS",
				     by);
	t = alloc_table(result->agg);
	ret = t ? 0 : -ENOMEM;
	if (t) {
		t->by = by;
		ret = add_rows(t, result);
	}
	if (ret < 0) {
		csw_table_close(t);
		return csw_error_set(err, ret, "not enough memory for a table of %zu rows",
				     result->agg->nr);
	}
	sort_rows(t);
	sum_counters(t, result);
	sum_unproven(t, result->agg);
	fill_summary(t, result);
	*out = t;
	return 0;
}

/* ---- reading ---- */

uint32_t csw_view_by(const struct csw_table *t)
{
	return t->by;
}

size_t csw_table_rows(const struct csw_table *t)
{
	return t->nr_rows;
}

const struct csw_row *csw_table_row(const struct csw_table *t, size_t i)
{
	return i < t->nr_rows ? &t->rows[t->order[i]] : NULL;
}

int csw_table_count(const struct csw_table *t, size_t i, size_t j, struct csw_count *out)
{
	if (i >= t->nr_rows || j >= t->nr_counters)
		return -ERANGE;
	*out = counts_of(t, t->order[i])[j];
	return 0;
}

size_t csw_table_counters(const struct csw_table *t)
{
	return t->nr_counters;
}

int csw_table_counter(const struct csw_table *t, size_t j, struct csw_counter *out)
{
	const struct counter *c;

	if (j >= t->nr_counters)
		return -ERANGE;
	c = &t->counters[j];
	*out = (struct csw_counter){
		.name = c->name,
		.became = c->became,
		.total = c->total,
		.rows = c->rows,
		.unproven = c->unproven,
		.enabled_ns = t->enabled_ns,
		.running_ns = t->running_ns,
		.flags = c->flags,
		.nanoseconds = c->nanoseconds,
	};
	return 0;
}

int csw_table_summary(const struct csw_table *t, struct csw_summary *out, size_t size)
{
	size_t known = size < sizeof(t->summary) ? size : sizeof(t->summary);

	if (!size)
		return -EINVAL;
	memset(out, 0, size); /* what a later header has and this library does not know */
	memcpy(out, &t->summary, known);
	return 0;
}

void csw_table_close(struct csw_table *t)
{
	if (!t)
		return;
	free(t->rows);
	free(t->counts);
	free(t->order);
	free(t);
}
