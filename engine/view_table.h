/* What a csw_table holds, between engine/view*.c alone. */
#ifndef CSW_ENGINE_VIEW_TABLE_H
#define CSW_ENGINE_VIEW_TABLE_H

#include "engine/view.h"

struct csw_view_counter {
	char name[CSW_EVENT_NAME_BYTES];
	char became[CSW_EVENT_NAME_BYTES];
	uint64_t total, rows, unproven, shared;
	uint32_t flags; /* of the counter as a whole, over all CPUs */
	uint32_t nanoseconds, hardware;
	bool estimated; /* from ordinary samples */
	bool scaled;    /* took turns with others */
	uint64_t running_ns;
};

/* The cgroups that rows speak of, ids ascending; NULL for one whose path nobody knows. */
struct csw_view_paths {
	size_t nr;
	uint64_t *ids;
	char **texts;
};

struct csw_table {
	uint32_t by;
	unsigned nr_counters;
	size_t nr_made;           /* rows and what belongs to them, as they were made ... */
	size_t nr_rows;           /* ... and how many are shown: order[0..nr_rows) */
	struct csw_row *rows;     /* as they were made */
	struct csw_count *counts; /* nr_counters per row; min > max: no whole slice */
	uint64_t *histograms;     /* CSW_BUCKETS per count; NULL: not kept */
	uint32_t *order;          /* row numbers as they are shown */
	struct csw_view_paths paths;
	struct csw_view_counter counters[CSW_COUNTERS_MAX];
	const struct csw_estimates *samples; /* borrowed while the table is made */
	uint64_t enabled_ns;
	uint64_t threads_in_scope;
	bool trigger_counted;
	char trigger[CSW_EVENT_NAME_BYTES];
	char trigger_became[CSW_EVENT_NAME_BYTES];
	char trigger_forced[CSW_FORCED_BYTES];
	char broken_why[CSW_WHY_BYTES];
	struct csw_summary summary;
};

static inline struct csw_count *csw_view_counts(const struct csw_table *t, uint32_t nr)
{
	return t->counts + (size_t)nr * t->nr_counters;
}

static inline uint64_t *csw_view_histogram(const struct csw_table *t, uint32_t nr, unsigned j)
{
	return t->histograms + ((size_t)nr * t->nr_counters + j) * CSW_BUCKETS;
}

static inline bool csw_view_is_thread(uint32_t kind)
{
	return kind == CSW_KIND_THREAD || kind == CSW_KIND_KERNEL || kind == CSW_KIND_SELF;
}

/* csw_count.flags while a table is made: something of this counter was booked on the row, be it 0.
 */
#define CSW_VIEW_PROVEN 0x80000000u

static inline uint32_t csw_view_count_flags(uint64_t enabled_ns, uint64_t running_ns)
{
	return enabled_ns && !running_ns ? CSW_COUNT_NOT_COUNTED : 0;
}

/* The same for one count of a row: it ran, and of this counter nothing is known to be its. */
static inline uint32_t csw_view_row_flags(const struct csw_row *row, const struct csw_count *count)
{
	if (row->oncpu_ns && !count->value && !(count->flags & CSW_VIEW_PROVEN))
		return CSW_COUNT_NOT_COUNTED;
	/* In its turns too short to be told in ns it may have counted all the same. */
	if (count->flags & CSW_COUNT_SCALED)
		return count->value || count->running_ns ? 0 : CSW_COUNT_NOT_COUNTED;
	return csw_view_count_flags(count->enabled_ns, count->running_ns);
}

/* A new row without any sum; there is room for one per row of the aggregation, `other` and `rest`.
 */
uint32_t csw_view_open_row(struct csw_table *t, uint32_t kind, int32_t pid, int32_t tid);

/* ---- view_group.c ---- */

/* Which rows of an aggregation make one shown row. A thread is one row, or several when it went on
 * in another cgroup; then they have one root. */
struct csw_view_member {
	uint32_t nr, root;
	uint32_t kind;   /* enum csw_kind; `other` when out of scope */
	const char *key; /* name or path where these group, else NULL */
};

struct csw_view_groups {
	const struct csw_aggregation *agg;
	uint32_t by;
	size_t nr;
	struct csw_view_member
		*members; /* each group's lie together, within it each thread's, oldest first */
	uint32_t *roots;  /* per row of the aggregation: its thread's first row */
	uint32_t *latest; /* per root: its thread's last row */
};

/* 0 or -ENOMEM; csw_view_groups_free in any case. paths outlives it. */
int csw_view_groups_make(struct csw_view_groups *g, const struct csw_result *result, uint32_t by,
			 const struct csw_view_paths *paths);
void csw_view_groups_free(struct csw_view_groups *g);

/* How many members from `at` on make one row; how many of them are one thread's. `end` is the
 * group's: the next group may begin with the same thread, gone on in another cgroup. */
size_t csw_view_group_size(const struct csw_view_groups *g, size_t at);
size_t csw_view_thread_size(const struct csw_view_groups *g, size_t at, size_t end);

/* Has the process' own TID since it began: a second such row of one PID is another process. */
bool csw_view_opens_process(const struct csw_view_groups *g, const struct csw_view_member *m);

int csw_view_paths_make(struct csw_view_paths *paths, const struct csw_result *result);
void csw_view_paths_free(struct csw_view_paths *paths);
const char *csw_view_path(const struct csw_view_paths *paths, uint64_t id);

/* ---- view_order.c ---- */

struct csw_view_order {
	uint32_t column;  /* which field */
	unsigned counter; /* of which counter */
};

/* 0, -ENOENT: no such column, -EINVAL: none in this table. name NULL: the default. */
int csw_view_order_find(struct csw_view_order *out, const struct csw_result *result,
			const char *name, struct csw_error *err);

/* Puts all rows in order, `other` last; top: folds what is between so many and `other` into `rest`;
 * 0: nothing. */
void csw_view_order_rows(struct csw_table *t, const struct csw_view_order *order, uint64_t top);

/* ---- view_proofs.c ---- */

/* Once the rest of the summary is there: sets broken, broken_why and CSW_COUNT_IMPOSSIBLE. wrong: a
 * reading that cannot be, NULL: there was none. */
void csw_view_prove(struct csw_table *t, const struct csw_wrong_reading *wrong);

#endif
