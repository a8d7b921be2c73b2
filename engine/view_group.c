/*
 * Which rows of the aggregation make one shown row; see view_table.h.
 *
 * A process is (pid, its leader): a PID is free for another process only after all threads of the
 * old one are gone. So, in the order in which threads were first known, a second leader of one PID
 * is the beginning of a second process - except for a leader by exec, which is the same process
 * going on (CSW_ROW_MOVED). Limit: where the FORK record of the later process was lost, its threads
 * up to its leader's first appearance count to the earlier one.
 *
 * Invariant: every row that is not given up is a member exactly once.
 */
#define _GNU_SOURCE /* qsort_r */
#include "engine/view_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tasks.h"

/* ---- cgroups ---- */

static int compare_ids(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return a < b ? -1 : a > b;
}

static void collect_ids(struct csw_view_paths *paths, const struct csw_aggregation *agg)
{
	size_t nr = 0;

	for (uint32_t i = 0; i < agg->nr; i++) {
		uint64_t id = csw_aggregation_row(agg, i)->cgroup;

		if (id)
			paths->ids[nr++] = id;
	}
	qsort(paths->ids, nr, sizeof(*paths->ids), compare_ids);
	for (size_t i = 0; i < nr; i++) {
		if (!i || paths->ids[i] != paths->ids[i - 1])
			paths->ids[paths->nr++] = paths->ids[i];
	}
}

int csw_view_paths_make(struct csw_view_paths *paths, const struct csw_result *result)
{
	if (!result->cgroups || !result->cgroup_path)
		return 0;
	paths->ids = calloc(result->agg->nr + 1, sizeof(*paths->ids));
	if (!paths->ids)
		return -ENOMEM;
	collect_ids(paths, result->agg);
	paths->texts = calloc(paths->nr + 1, sizeof(*paths->texts));
	if (!paths->texts)
		return -ENOMEM;
	for (size_t i = 0; i < paths->nr; i++) {
		const char *path = result->cgroup_path(result->cgroup_ctx, paths->ids[i]);

		paths->texts[i] = path ? strdup(path) : NULL;
		if (path && !paths->texts[i])
			return -ENOMEM;
	}
	return 0;
}

void csw_view_paths_free(struct csw_view_paths *paths)
{
	for (size_t i = 0; paths->texts && i < paths->nr; i++)
		free(paths->texts[i]);
	free(paths->texts);
	free(paths->ids);
}

const char *csw_view_path(const struct csw_view_paths *paths, uint64_t id)
{
	const uint64_t *found =
		paths->nr ? bsearch(&id, paths->ids, paths->nr, sizeof(id), compare_ids) : NULL;

	return found ? paths->texts[found - paths->ids] : NULL;
}

/* ---- threads ---- */

/* Row numbers are used again, so a row may continue one with a higher number. */
static uint32_t find_root(const struct csw_view_groups *g, uint32_t of)
{
	uint32_t nr = of, next;

	while ((next = csw_aggregation_row(g->agg, nr)->continues) != 0) {
		if (next < of)
			return g->roots[next]; /* known already */
		nr = next;
	}
	return nr;
}

static void find_threads(struct csw_view_groups *g)
{
	size_t nr = g->agg->nr;

	for (uint32_t i = 0; i < nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(g->agg, i);

		g->roots[i] = row->flags & CSW_ROW_FREE ? i : find_root(g, i);
		g->latest[i] = i;
	}
	/* A chain has no branches: the row that no other continues is its end. latest[] first marks
	 * the others. */
	for (uint32_t i = 0; i < nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(g->agg, i);

		if (row->continues && !(row->flags & CSW_ROW_FREE))
			g->latest[row->continues] = UINT32_MAX;
	}
	for (uint32_t i = 0; i < nr; i++) {
		if (g->latest[i] == i && g->roots[i] != i)
			g->latest[g->roots[i]] = i;
	}
}

/* ---- order ---- */

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_keys(const struct csw_view_groups *g, const char *a, const char *b)
{
	if (a == b)
		return 0;
	if (!a || !b)
		return a ? -1 : 1;
	return g->by == CSW_BY_COMM ? strncmp(a, b, CSW_COMM_BYTES) : strcmp(a, b);
}

static int compare_process(const struct csw_view_groups *g, const struct csw_view_member *a,
			   const struct csw_view_member *b)
{
	const struct csw_agg_row *x = csw_aggregation_row(g->agg, a->nr);
	const struct csw_agg_row *y = csw_aggregation_row(g->agg, b->nr);

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return compare_u64(csw_aggregation_row(g->agg, a->root)->birth_ns,
			   csw_aggregation_row(g->agg, b->root)->birth_ns);
}

static int compare_members(const void *x, const void *y, void *ctx)
{
	const struct csw_view_groups *g = ctx;
	const struct csw_view_member *a = x, *b = y;
	int ret = compare_u64(a->kind, b->kind);

	if (ret)
		return ret;
	if (g->by == CSW_BY_PROCESS && csw_view_is_thread(a->kind))
		ret = compare_process(g, a, b);
	else
		ret = compare_keys(g, a->key, b->key);
	if (ret)
		return ret;
	ret = compare_u64(a->root, b->root);
	return ret ? ret : compare_u64(a->nr, b->nr);
}

/* ---- groups ---- */

static const char *key_of(const struct csw_view_groups *g, const struct csw_view_member *m,
			  const struct csw_view_paths *paths)
{
	if (m->kind == CSW_KIND_OTHER)
		return NULL;
	if (g->by == CSW_BY_CGROUP)
		return csw_view_path(paths, csw_aggregation_row(g->agg, m->nr)->cgroup);
	if (g->by == CSW_BY_COMM && csw_view_is_thread(m->kind))
		return csw_aggregation_row(g->agg, g->latest[m->root])->comm;
	return NULL;
}

static void collect_members(struct csw_view_groups *g, const struct csw_result *result,
			    const struct csw_view_paths *paths)
{
	for (uint32_t i = 0; i < g->agg->nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(g->agg, i);
		struct csw_view_member *m = &g->members[g->nr];
		bool out = result->scoped && !csw_scope_shows(row);

		if (row->flags & CSW_ROW_FREE)
			continue;
		*m = (struct csw_view_member){ .nr = i,
					       .root = g->roots[i],
					       .kind = out ? CSW_KIND_OTHER : row->kind };
		m->key = key_of(g, m, paths);
		g->nr++;
	}
	qsort_r(g->members, g->nr, sizeof(*g->members), compare_members, g);
}

int csw_view_groups_make(struct csw_view_groups *g, const struct csw_result *result, uint32_t by,
			 const struct csw_view_paths *paths)
{
	size_t nr = result->agg->nr + 1;

	*g = (struct csw_view_groups){ .agg = result->agg, .by = by };
	g->members = calloc(nr, sizeof(*g->members));
	g->roots = calloc(nr, sizeof(*g->roots));
	g->latest = calloc(nr, sizeof(*g->latest));
	if (!g->members || !g->roots || !g->latest)
		return -ENOMEM;
	find_threads(g);
	collect_members(g, result, paths);
	return 0;
}

void csw_view_groups_free(struct csw_view_groups *g)
{
	free(g->members);
	free(g->roots);
	free(g->latest);
}

bool csw_view_opens_process(const struct csw_view_groups *g, const struct csw_view_member *m)
{
	const struct csw_agg_row *row = csw_aggregation_row(g->agg, m->nr);

	return m->nr == m->root && row->tid == row->pid && !(row->flags & CSW_ROW_MOVED);
}

static bool same_group(const struct csw_view_groups *g, const struct csw_view_member *a,
		       const struct csw_view_member *b)
{
	int32_t pid = csw_aggregation_row(g->agg, a->nr)->pid;

	if (a->kind != b->kind)
		return false;
	if (a->kind == CSW_KIND_OTHER)
		return true;
	if (g->by == CSW_BY_COMM || g->by == CSW_BY_CGROUP)
		return compare_keys(g, a->key, b->key) == 0;
	if (g->by == CSW_BY_PROCESS && csw_view_is_thread(a->kind) && pid >= 0)
		return pid == csw_aggregation_row(g->agg, b->nr)->pid;
	return a->root == b->root;
}

size_t csw_view_group_size(const struct csw_view_groups *g, size_t at)
{
	const struct csw_view_member *m = g->members + at;
	bool processes = g->by == CSW_BY_PROCESS && csw_view_is_thread(m->kind);
	bool has_leader = csw_view_opens_process(g, m);
	size_t i;

	for (i = 1; at + i < g->nr && same_group(g, m, m + i); i++) {
		if (!processes || !csw_view_opens_process(g, m + i))
			continue;
		if (has_leader)
			break;
		has_leader = true;
	}
	return i;
}

size_t csw_view_thread_size(const struct csw_view_groups *g, size_t at, size_t end)
{
	const struct csw_view_member *m = g->members + at;
	size_t i = 1;

	while (at + i < end && m[i].root == m->root)
		i++;
	return i;
}
