/*
 * The table that is shown: rows in scope, grouped, in order, and the proofs beside them. See view.h
 * for the invariant.
 */
#include "engine/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/error.h"
#include "engine/opts.h"
#include "engine/view_table.h"

static const char *const kind_names[] = {
	[CSW_KIND_THREAD] = "thread",   [CSW_KIND_KERNEL] = "kernel", [CSW_KIND_IDLE] = "idle",
	[CSW_KIND_SELF] = "self",       [CSW_KIND_MIXED] = "mixed",   [CSW_KIND_LOST] = "lost",
	[CSW_KIND_UNKNOWN] = "unknown", [CSW_KIND_OTHER] = "other",   [CSW_KIND_REST] = "rest",
};

const char *csw_mixed_name(uint32_t mixed)
{
	static const char *const names[] = {
		[CSW_MIXED_ROW] = "row", [CSW_MIXED_LAST] = "last", [CSW_MIXED_SPLIT] = "split"
	};

	return mixed < sizeof(names) / sizeof(*names) ? names[mixed] : "?";
}

const char *csw_kind_name(uint32_t kind)
{
	return kind < sizeof(kind_names) / sizeof(*kind_names) ? kind_names[kind] : "?";
}

/* ---- rows ---- */

static bool ran(const struct csw_table *t, const struct csw_aggregation *agg, uint32_t nr)
{
	const struct csw_agg_row *row = csw_aggregation_row(agg, nr);

	if (row->slices || row->oncpu_ns)
		return true;
	for (unsigned j = 0; j < t->nr_counters; j++) {
		if (row->cells[j].sum)
			return true;
	}
	return csw_estimates_touch(t->samples, nr);
}

static void copy_comm(struct csw_row *to, const struct csw_agg_row *from)
{
	size_t bytes = strnlen(from->comm, sizeof(from->comm));

	memcpy(to->comm, from->comm, bytes);
	to->comm[bytes] = '\0';
}

uint32_t csw_view_open_row(struct csw_table *t, uint32_t kind, int32_t pid, int32_t tid)
{
	uint32_t nr = (uint32_t)t->nr_made++;
	struct csw_count *counts = csw_view_counts(t, nr);

	t->rows[nr] = (struct csw_row){ .kind = kind, .pid = pid, .tid = tid, .cpu = -1 };
	for (unsigned j = 0; j < t->nr_counters; j++)
		counts[j] =
			(struct csw_count){ .min = UINT64_MAX,
					    .flags = t->counters[j].scaled ? CSW_COUNT_SCALED : 0 };
	return nr;
}

/* Adds the sums of a row of agg; who it is, is the caller's business. */
static void fold(struct csw_table *t, uint32_t to, const struct csw_aggregation *agg, uint32_t nr)
{
	const struct csw_agg_row *from = csw_aggregation_row(agg, nr);
	struct csw_row *row = &t->rows[to];
	struct csw_count *count = csw_view_counts(t, to);
	const uint64_t *running = csw_aggregation_running(agg, nr);
	const uint64_t *shares = csw_aggregation_shares(agg, nr);

	row->slices += from->slices;
	row->oncpu_ns += from->oncpu_ns;
	row->voluntary += from->voluntary;
	row->preempted += from->preempted;
	row->exact_ns += from->exact_ns;
	row->migrations += from->migrations;
	for (unsigned j = 0; j < t->nr_counters; j++, count++) {
		const struct csw_cell *cell = &from->cells[j];

		count->value += cell->sum;
		count->samples += csw_estimates_of(t->samples, nr, j);
		if ((from->proven & (1u << j)) || t->counters[j].estimated)
			count->flags |= CSW_VIEW_PROVEN;
		if (shares && (shares[t->nr_counters] >> j & 1)) {
			count->shared += shares[j];
			count->flags |= CSW_COUNT_SHARED;
		}
		count->enabled_ns += from->enabled_ns;
		count->running_ns += running ? running[j] : from->running_ns;
		count->min = cell->min < count->min ? cell->min : count->min;
		count->max = cell->max > count->max ? cell->max : count->max;
		for (unsigned k = 0; t->histograms && k < CSW_BUCKETS; k++)
			csw_view_histogram(t, to, j)[k] += csw_aggregation_histogram(agg, nr, j)[k];
	}
}

/* ---- rows of threads ---- */

/* Adds one thread's rows m[0..nr); whether it ran. */
static bool add_thread(struct csw_table *t, uint32_t to, const struct csw_view_groups *g,
		       const struct csw_view_member *m, size_t nr)
{
	bool any = false;

	for (size_t i = 0; i < nr; i++) {
		if (!ran(t, g->agg, m[i].nr))
			continue;
		fold(t, to, g->agg, m[i].nr);
		any = true;
	}
	return any;
}

/* Of one thread's rows m[0..nr) the last: the end of its chain, unless that is in another group. */
static const struct csw_agg_row *last_row(const struct csw_view_groups *g,
					  const struct csw_view_member *m, size_t nr)
{
	uint32_t latest = g->latest[m->root];

	for (size_t i = 0; i < nr; i++) {
		if (m[i].nr == latest)
			return csw_aggregation_row(g->agg, latest);
	}
	return csw_aggregation_row(g->agg, m[nr - 1].nr);
}

/* A group has the cgroup that all its threads have. */
static void note_cgroup(struct csw_row *row, const char *path, bool first)
{
	if (first)
		row->cgroup = path;
	else if (!path || !row->cgroup || strcmp(path, row->cgroup) != 0)
		row->cgroup = NULL;
}

static void name_thread(struct csw_table *t, uint32_t to, const struct csw_view_groups *g,
			const struct csw_view_member *m, const struct csw_agg_row *last)
{
	const struct csw_agg_row *root = csw_aggregation_row(g->agg, m->root);
	struct csw_row *row = &t->rows[to];

	row->pid = last->pid;
	row->tid = last->tid;
	row->birth_ns = root->birth_ns;
	copy_comm(row, csw_aggregation_row(g->agg, g->latest[m->root]));
	if (csw_view_is_thread(m->kind) && last->last_cpu <= INT32_MAX)
		row->cpu = (int32_t)last->last_cpu;
}

/* The leader's name and birth, or the first thread's where the leader is not known. */
static void name_process(struct csw_table *t, uint32_t to, const struct csw_view_groups *g,
			 const struct csw_view_member *m, bool first)
{
	const struct csw_agg_row *root = csw_aggregation_row(g->agg, m->root);
	struct csw_row *row = &t->rows[to];

	row->pid = root->pid;
	if (first || csw_view_opens_process(g, m))
		row->birth_ns = root->birth_ns;
	if (first || root->tid == root->pid)
		copy_comm(row, csw_aggregation_row(g->agg, g->latest[m->root]));
}

static void name_row(struct csw_table *t, uint32_t to, const struct csw_view_groups *g,
		     const struct csw_view_member *m, const struct csw_agg_row *last, bool first)
{
	if (m->kind == CSW_KIND_OTHER)
		return;
	if (t->by == CSW_BY_PROCESS && csw_view_is_thread(m->kind))
		name_process(t, to, g, m, first);
	else if (t->by == CSW_BY_THREAD || t->by == CSW_BY_PROCESS)
		name_thread(t, to, g, m, last);
	else if (t->by == CSW_BY_COMM && csw_view_is_thread(m->kind))
		copy_comm(&t->rows[to], csw_aggregation_row(g->agg, g->latest[m->root]));
}

static void add_group(struct csw_table *t, const struct csw_view_groups *g, size_t at, size_t nr)
{
	uint32_t to = csw_view_open_row(t, g->members[at].kind, -1, -1);
	bool any = false;

	for (size_t i = at, size; i < at + nr; i += size) {
		const struct csw_view_member *m = g->members + i;
		const struct csw_agg_row *last;

		size = csw_view_thread_size(g, i, at + nr);
		last = last_row(g, m, size);
		name_row(t, to, g, m, last, i == at);
		if (!add_thread(t, to, g, m, size))
			continue;
		if (csw_view_is_thread(csw_aggregation_row(g->agg, m->root)->kind))
			t->rows[to].nr_threads++;
		if (m->kind != CSW_KIND_OTHER)
			note_cgroup(&t->rows[to], csw_view_path(&t->paths, last->cgroup), !any);
		any = true;
	}
	if (!any)
		t->nr_made--; /* none of its threads ever ran: `to` is the last row */
}

/* Rows of a thread within one group may lie in its chain apart, but it is one thread. */
static void count_threads(struct csw_table *t, const struct csw_view_groups *g,
			  const struct csw_result *result, unsigned char *seen)
{
	enum { SEEN = 1, SEEN_IN_SCOPE = 2 };

	for (size_t i = 0; i < g->nr; i++) {
		const struct csw_view_member *m = g->members + i;
		const struct csw_agg_row *row = csw_aggregation_row(g->agg, m->nr);
		bool in = !result->scoped || (row->flags & CSW_ROW_IN_SCOPE);

		if (row->kind != CSW_KIND_THREAD && row->kind != CSW_KIND_KERNEL)
			continue;
		if (!ran(t, g->agg, m->nr))
			continue;
		t->summary.threads += !(seen[m->root] & SEEN);
		t->threads_in_scope += in && !(seen[m->root] & SEEN_IN_SCOPE);
		seen[m->root] |= in ? SEEN | SEEN_IN_SCOPE : SEEN;
	}
}

static int add_threads(struct csw_table *t, const struct csw_result *result)
{
	unsigned char *seen = calloc(result->agg->nr + 1, 1);
	struct csw_view_groups g;
	int ret = csw_view_groups_make(&g, result, t->by, &t->paths);

	if (!seen)
		ret = -ENOMEM;
	if (ret == 0) {
		count_threads(t, &g, result, seen);
		for (size_t at = 0, nr; t->by != CSW_BY_CPU && at < g.nr; at += nr) {
			nr = csw_view_group_size(&g, at);
			add_group(t, &g, at, nr);
		}
	}
	csw_view_groups_free(&g);
	free(seen);
	return ret;
}

/* ---- rows of CPUs ---- */

static void add_cpus(struct csw_table *t, const struct csw_result *result)
{
	const struct csw_aggregation *agg = result->cpus;
	uint32_t other = UINT32_MAX;

	for (uint32_t nr = 0; nr < agg->nr && nr < 2 * result->nr_cpus; nr++) {
		uint32_t *to = &other, cpu_row = UINT32_MAX;
		bool out = nr % 2 && result->scoped;

		if (!ran(t, agg, nr))
			continue;
		if (!out && nr % 2 && t->nr_made &&
		    t->rows[t->nr_made - 1].cpu == (int32_t)(nr / 2))
			cpu_row = (uint32_t)t->nr_made - 1; /* without a scope both are one row */
		if (!out)
			to = &cpu_row;
		if (*to == UINT32_MAX)
			*to = csw_view_open_row(t, out ? CSW_KIND_OTHER : CSW_KIND_THREAD, -1, -1);
		if (!out)
			t->rows[*to].cpu = (int32_t)(nr / 2);
		fold(t, *to, agg, nr);
	}
}

/* ---- sums and proofs ---- */

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
		struct csw_view_counter *c = &t->counters[j];

		memcpy(c->name, event->name, sizeof(c->name));
		memcpy(c->became, event->became, sizeof(c->became));
		c->total = result->totals[j];
		c->running_ns =
			result->each_running_ns ? result->each_running_ns[j] : result->running_ns;
		c->flags = csw_view_count_flags(result->enabled_ns, c->running_ns) |
			   never_flags(event, c->total, c->running_ns);
		if (c->scaled)
			c->flags |= CSW_COUNT_SCALED;
		if (c->estimated)
			c->flags = CSW_COUNT_ESTIMATE;
		c->nanoseconds = event->flags & CSW_EVENT_NANOSECONDS ? 1 : 0;
		c->hardware = event->flags & CSW_EVENT_BY_HARDWARE ? 1 : 0;
	}
	for (size_t i = 0; i < t->nr_rows; i++) {
		struct csw_count *count = csw_view_counts(t, t->order[i]);

		for (unsigned j = 0; j < t->nr_counters; j++, count++) {
			t->counters[j].rows += count->value;
			count->flags = csw_view_row_flags(&t->rows[t->order[i]], count) |
				       t->counters[j].flags | (count->flags & CSW_COUNT_SHARED);
			if (count->min > count->max)
				count->min = count->max = 0;
		}
	}
	t->enabled_ns = result->enabled_ns;
}

/* From the aggregation: a scope folds these rows away, but they bound what its rows may lack. */
static void sum_unproven(struct csw_table *t, const struct csw_aggregation *agg)
{
	for (uint32_t i = 0; i < agg->nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(agg, i);
		const uint64_t *shares = csw_aggregation_shares(agg, i);

		for (unsigned j = 0; shares && j < t->nr_counters; j++) {
			t->counters[j].shared += shares[j];
			t->counters[j].unproven += shares[j];
		}
		if (row->kind != CSW_KIND_MIXED && row->kind != CSW_KIND_LOST &&
		    row->kind != CSW_KIND_UNKNOWN)
			continue;
		for (unsigned j = 0; j < t->nr_counters; j++)
			t->counters[j].unproven += row->cells[j].sum;
	}
}

static void sum_run(struct csw_summary *s, const struct csw_aggregation *agg)
{
	s->slices = s->oncpu_ns = s->exact_ns = s->rows_ns = 0;
	for (uint32_t i = 0; i < agg->nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(agg, i);

		s->slices += row->slices;
		s->rows_ns += row->oncpu_ns;
		if (row->kind == CSW_KIND_IDLE)
			continue;
		s->oncpu_ns += row->oncpu_ns;
		s->exact_ns += row->exact_ns;
	}
}

/* But for the number of threads, which was counted with the rows. */
static void fill_summary(struct csw_table *t, const struct csw_result *result)
{
	const struct csw_trigger *trigger = &result->plan->trigger;
	struct csw_summary *s = &t->summary;
	uint64_t threads = s->threads;

	memcpy(t->trigger, trigger->event.name, sizeof(t->trigger));
	memcpy(t->trigger_became, trigger->event.became, sizeof(t->trigger_became));
	memcpy(t->trigger_forced, trigger->forced, sizeof(t->trigger_forced));
	*s = result->summary;
	s->threads = threads;
	t->trigger_counted = !(trigger->event.flags & CSW_EVENT_UNCOUNTED);
	s->trigger = t->trigger;
	s->trigger_became = t->trigger_became;
	s->trigger_forced = t->trigger_forced[0] ? t->trigger_forced : NULL;
	s->trigger_hardware = trigger->event.flags & CSW_EVENT_BY_HARDWARE ? 1 : 0;
	s->sav = trigger->sav;
	s->driver = result->driver->name;
	s->simulated = result->driver->caps & CSW_DRIVER_SIMULATED ? 1 : 0;
	sum_run(s, result->agg);
	csw_view_prove(t, result->wrong);
}

/* ---- the table ---- */

static struct csw_table *alloc_table(const struct csw_aggregation *agg)
{
	struct csw_table *t = calloc(1, sizeof(*t));
	size_t nr = agg->nr + 2; /* `other` and `rest` besides */
	size_t nr_counters = agg->nr_counters ? agg->nr_counters : 1;

	if (!t)
		return NULL;
	t->nr_counters = agg->nr_counters;
	t->rows = calloc(nr, sizeof(*t->rows));
	t->counts = calloc(nr * nr_counters, sizeof(*t->counts));
	t->order = calloc(nr, sizeof(*t->order));
	/* Memory that is never touched costs nothing: few groups may be made of many rows. */
	if (agg->histograms)
		t->histograms = calloc(nr * nr_counters, CSW_BUCKETS * sizeof(*t->histograms));
	if (t->rows && t->counts && t->order && (t->histograms || !agg->histograms))
		return t;
	csw_table_close(t);
	return NULL;
}

static int check_view(const struct csw_result *result, uint32_t by, struct csw_error *err)
{
	if (by > CSW_BY_CPU)
		return csw_error_set(err, -EINVAL,
				     "no such view: %u; there are CSW_BY_THREAD to CSW_BY_CPU", by);
	if (by == CSW_BY_CGROUP && !result->cgroups)
		return csw_error_set(err, -EINVAL,
				     "no rows by cgroup: cgroups were not followed; set "
				     "csw_opts.cgroups");
	if (by == CSW_BY_CPU && !result->cpus)
		return csw_error_set(err, -EINVAL, "no rows by CPU: nothing is known of the CPUs");
	return 0;
}

static int fill(struct csw_table *t, const struct csw_result *result,
		const struct csw_view_order *order, uint64_t top)
{
	int ret = csw_view_paths_make(&t->paths, result);

	for (unsigned j = 0; j < t->nr_counters; j++) {
		t->counters[j].estimated = result->plan->estimated >> j & 1;
		t->counters[j].scaled = result->plan->scaled >> j & 1;
	}
	t->samples = result->samples;
	if (ret == 0)
		ret = add_threads(t, result);
	if (ret < 0)
		return ret;
	t->samples = result->cpu_samples;
	if (t->by == CSW_BY_CPU)
		add_cpus(t, result);
	t->samples = NULL;
	csw_view_order_rows(t, order, top);
	sum_counters(t, result);
	sum_unproven(t, result->agg);
	fill_summary(t, result);
	return 0;
}

int csw_view_make(struct csw_table **out, const struct csw_result *result, uint32_t by,
		  const struct csw_table_opts *opts, struct csw_error *err)
{
	struct csw_table_opts own;
	struct csw_view_order order;
	struct csw_table *t;
	int ret;

	*out = NULL;
	ret = csw_opts_take(&own, sizeof(own), opts, "csw_table_opts", err);
	if (ret == 0)
		ret = check_view(result, by, err);
	if (ret == 0)
		ret = csw_view_order_find(&order, result, own.sort, err);
	if (ret < 0)
		return ret;
	t = alloc_table(by == CSW_BY_CPU ? result->cpus : result->agg);
	ret = t ? 0 : -ENOMEM;
	if (t) {
		t->by = by;
		ret = fill(t, result, &order, own.top);
	}
	if (ret < 0) {
		csw_table_close(t);
		return csw_error_set(err, ret, "not enough memory for a table of %zu rows",
				     result->agg->nr);
	}
	*out = t;
	return 0;
}

/* ---- reading ---- */

uint32_t csw_view_by(const struct csw_table *t)
{
	return t->by;
}

uint64_t csw_view_threads_in_scope(const struct csw_table *t)
{
	return t->threads_in_scope;
}

bool csw_view_counts_trigger(const struct csw_table *t)
{
	return t->trigger_counted;
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
	*out = csw_view_counts(t, t->order[i])[j];
	return 0;
}

int csw_count_scaled(const struct csw_count *count, uint64_t *out)
{
	unsigned __int128 scaled = count->value;

	*out = count->value;
	if (count->flags & CSW_COUNT_NOT_COUNTED)
		return -ENODATA;
	if (!(count->flags & CSW_COUNT_SCALED) || !count->running_ns ||
	    count->running_ns >= count->enabled_ns)
		return 0;
	scaled = (scaled * count->enabled_ns + count->running_ns / 2) / count->running_ns;
	*out = scaled > UINT64_MAX ? UINT64_MAX : (uint64_t)scaled;
	return 1;
}

int csw_table_histogram(const struct csw_table *t, size_t i, size_t j,
			uint64_t buckets[CSW_BUCKETS])
{
	if (i >= t->nr_rows || j >= t->nr_counters)
		return -ERANGE;
	if (!t->histograms)
		return -ENODATA;
	memcpy(buckets, csw_view_histogram(t, t->order[i], (unsigned)j),
	       CSW_BUCKETS * sizeof(*buckets));
	return 0;
}

size_t csw_table_counters(const struct csw_table *t)
{
	return t->nr_counters;
}

int csw_table_counter(const struct csw_table *t, size_t j, struct csw_counter *out)
{
	const struct csw_view_counter *c;

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
		.running_ns = c->running_ns,
		.flags = c->flags,
		.nanoseconds = c->nanoseconds,
		.hardware = c->hardware,
		.shared = c->shared,
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
	csw_view_paths_free(&t->paths);
	free(t->rows);
	free(t->counts);
	free(t->histograms);
	free(t->order);
	free(t);
}
