/*
 * In which order rows are shown, and how many of them; see view_table.h.
 *
 * Invariant: the order is total and does not depend on the order in which rows were made, as far as
 * anything that is shown tells them apart. What `top` hides is in the row `rest`, so the shown rows
 * add up as before. `rest` and `other` are remainders, no rows to compare with: they come last.
 */
#define _GNU_SOURCE /* qsort_r */
#include "engine/view_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/error.h"
#include "engine/names.h"
#include "engine/text.h"

enum column {
	COLUMN_COUNTER,
	COLUMN_ONCPU,
	COLUMN_SLICES,
	COLUMN_VOLUNTARY,
	COLUMN_PREEMPTED,
	COLUMN_MIGRATIONS,
	COLUMN_PID,
	COLUMN_TID,
	COLUMN_COMM,
	COLUMN_CGROUP,
	COLUMN_CPU,
	COLUMNS,
};

/* As a heading says it where that is shorter. */
static const struct {
	const char *heading;
	enum column column;
} headings[] = {
	{ "vol", COLUMN_VOLUNTARY },
	{ "pre", COLUMN_PREEMPTED },
	{ "migr", COLUMN_MIGRATIONS },
};

static const char *const names[COLUMNS] = {
	[COLUMN_ONCPU] = "oncpu",
	[COLUMN_SLICES] = "slices",
	[COLUMN_VOLUNTARY] = "voluntary",
	[COLUMN_PREEMPTED] = "preempted",
	[COLUMN_MIGRATIONS] = "migrations",
	[COLUMN_PID] = "pid",
	[COLUMN_TID] = "tid",
	[COLUMN_COMM] = "comm",
	[COLUMN_CGROUP] = "cgroup",
	[COLUMN_CPU] = "cpu",
};

/* ---- which column ---- */

static int no_such_column(const struct csw_plan *plan, const char *name, struct csw_error *err)
{
	char wanted[CSW_EVENT_NAME_BYTES], near[3 * CSW_EVENT_NAME_BYTES];
	struct csw_nearest nearest;

	csw_nearest_init(&nearest, name);
	for (unsigned j = 0; j < plan->nr_counters; j++)
		csw_nearest_offer(&nearest, plan->counters[j].name);
	for (unsigned k = COLUMN_ONCPU; k < COLUMNS; k++)
		csw_nearest_offer(&nearest, names[k]);
	return csw_error_set(err, -ENOENT,
			     "no column %s to sort by%s; there are the counters and oncpu, slices, "
			     "voluntary, preempted, migrations, pid, tid, comm, cgroup, cpu",
			     csw_escape(wanted, sizeof(wanted), name),
			     csw_nearest_suffix(&nearest, near, sizeof(near)));
}

int csw_view_order_find(struct csw_view_order *out, const struct csw_result *result,
			const char *name, struct csw_error *err)
{
	const struct csw_plan *plan = result->plan;

	/* Without any counter, what is left to say who had the most. */
	*out = (struct csw_view_order){ .column =
						plan->nr_counters ? COLUMN_COUNTER : COLUMN_ONCPU };
	if (!name)
		return 0;
	/* As it is written; then, as "cycles" and "CYCLES" may be two counters, in whatever case.
	 */
	for (int any_case = 0; any_case < 2; any_case++) {
		int (*compare)(const char *, const char *) = any_case ? strcasecmp : strcmp;

		for (unsigned j = 0; j < plan->nr_counters; j++) {
			out->counter = j;
			if (compare(plan->counters[j].name, name) == 0)
				return 0;
		}
		for (unsigned k = COLUMN_ONCPU; k < COLUMNS; k++) {
			out->column = k;
			if (compare(names[k], name) != 0)
				continue;
			if (k != COLUMN_CGROUP || result->cgroups)
				return 0;
			return csw_error_set(err, -EINVAL,
					     "cannot sort by cgroup: cgroups were not followed; "
					     "set csw_opts.cgroups");
		}
		for (size_t k = 0; k < sizeof(headings) / sizeof(headings[0]); k++) {
			out->column = headings[k].column;
			if (compare(headings[k].heading, name) == 0)
				return 0;
		}
		out->column = COLUMN_COUNTER;
	}
	return no_such_column(plan, name, err);
}

/* ---- order ---- */

static int ascending(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* None (-1) comes last. */
static int compare_ids(int32_t a, int32_t b)
{
	return ascending((uint32_t)a, (uint32_t)b);
}

static int compare_texts(const char *a, const char *b)
{
	if (!a || !b)
		return a ? -1 : b ? 1 : 0;
	return strcmp(a, b);
}

/* What was not counted is not 0: it comes after the zeros. */
static int compare_counts(const struct csw_row *a_row, const struct csw_count *a,
			  const struct csw_row *b_row, const struct csw_count *b)
{
	uint32_t a_flags = csw_view_row_flags(a_row, a), b_flags = csw_view_row_flags(b_row, b);
	uint64_t a_shown, b_shown;

	/* By what is shown; of what was not counted that is 0 here. */
	csw_count_scaled(a, &a_shown);
	csw_count_scaled(b, &b_shown);
	if (a_shown != b_shown)
		return a_shown > b_shown ? -1 : 1;
	return ascending(a_flags, b_flags);
}

struct sorting {
	const struct csw_table *t;
	const struct csw_view_order *order;
};

static int compare_column(const struct sorting *s, uint32_t i, uint32_t k)
{
	const struct csw_row *a = &s->t->rows[i], *b = &s->t->rows[k];

	switch (s->order->column) {
	case COLUMN_COUNTER:
		if (!s->t->nr_counters)
			return 0;
		return compare_counts(a, csw_view_counts(s->t, i) + s->order->counter, b,
				      csw_view_counts(s->t, k) + s->order->counter);
	case COLUMN_ONCPU:
		return ascending(b->oncpu_ns, a->oncpu_ns);
	case COLUMN_SLICES:
		return ascending(b->slices, a->slices);
	case COLUMN_VOLUNTARY:
		return ascending(b->voluntary, a->voluntary);
	case COLUMN_PREEMPTED:
		return ascending(b->preempted, a->preempted);
	case COLUMN_MIGRATIONS:
		return ascending(b->migrations, a->migrations);
	case COLUMN_PID:
		return compare_ids(a->pid, b->pid);
	case COLUMN_TID:
		return compare_ids(a->tid, b->tid);
	case COLUMN_COMM:
		return strcmp(a->comm, b->comm);
	case COLUMN_CGROUP:
		return compare_texts(a->cgroup, b->cgroup);
	default:
		return compare_ids(a->cpu, b->cpu);
	}
}

static int compare_rows(const void *x, const void *y, void *ctx)
{
	const struct sorting *s = ctx;
	uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;
	const struct csw_row *a = &s->t->rows[i], *b = &s->t->rows[k];
	int ret = ascending(a->kind == CSW_KIND_OTHER, b->kind == CSW_KIND_OTHER);

	if (!ret)
		ret = compare_column(s, i, k);
	if (!ret)
		ret = compare_ids(a->pid, b->pid);
	if (!ret)
		ret = compare_ids(a->tid, b->tid);
	if (!ret)
		ret = ascending(a->birth_ns, b->birth_ns);
	if (!ret)
		ret = strcmp(a->comm, b->comm);
	if (!ret)
		ret = compare_texts(a->cgroup, b->cgroup);
	if (!ret)
		ret = compare_ids(a->cpu, b->cpu);
	if (!ret)
		ret = ascending(a->kind, b->kind);
	return ret ? ret : ascending(i, k);
}

/* ---- top ---- */

static void fold_counts(struct csw_table *t, uint32_t to, uint32_t from)
{
	struct csw_count *a = csw_view_counts(t, to);
	const struct csw_count *b = csw_view_counts(t, from);

	for (unsigned j = 0; j < t->nr_counters; j++, a++, b++) {
		a->value += b->value;
		a->samples += b->samples;
		a->shared += b->shared;
		a->flags |= b->flags & (CSW_VIEW_PROVEN | CSW_COUNT_SHARED);
		a->enabled_ns += b->enabled_ns;
		a->running_ns += b->running_ns;
		a->min = b->min < a->min ? b->min : a->min;
		a->max = b->max > a->max ? b->max : a->max;
		for (unsigned k = 0; t->histograms && k < CSW_BUCKETS; k++)
			csw_view_histogram(t, to, j)[k] += csw_view_histogram(t, from, j)[k];
	}
}

static void fold_row(struct csw_table *t, uint32_t to, uint32_t from)
{
	struct csw_row *a = &t->rows[to];
	const struct csw_row *b = &t->rows[from];

	a->nr_threads += b->nr_threads;
	a->slices += b->slices;
	a->oncpu_ns += b->oncpu_ns;
	a->voluntary += b->voluntary;
	a->preempted += b->preempted;
	a->exact_ns += b->exact_ns;
	a->migrations += b->migrations;
	fold_counts(t, to, from);
}

/* Folds order[from..to) into `rest`, which takes their place. */
static void fold_rest(struct csw_table *t, size_t from, size_t to)
{
	uint32_t rest = csw_view_open_row(t, CSW_KIND_REST, -1, -1);

	for (size_t i = from; i < to; i++)
		fold_row(t, rest, t->order[i]);
	t->order[from] = rest;
	memmove(t->order + from + 1, t->order + to, (t->nr_rows - to) * sizeof(*t->order));
	t->nr_rows -= to - from - 1;
}

void csw_view_order_rows(struct csw_table *t, const struct csw_view_order *order, uint64_t top)
{
	struct sorting s = { .t = t, .order = order };
	size_t nr;

	t->nr_rows = t->nr_made;
	for (size_t i = 0; i < t->nr_rows; i++)
		t->order[i] = (uint32_t)i;
	qsort_r(t->order, t->nr_rows, sizeof(*t->order), compare_rows, &s);
	for (nr = t->nr_rows; nr && t->rows[t->order[nr - 1]].kind == CSW_KIND_OTHER;)
		nr--;
	if (top && nr > top)
		fold_rest(t, (size_t)top, nr);
}
