/*
 * The session: the public calls, and the one place that owns the order of the driver's.
 *
 *	spec text -> plan -> driver -> merge -> slicer -> aggregation table -> view
 *
 * Invariant: opened -> running -> stopped, or failed; only close leaves a failed session.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cgroups.h"
#include "engine/driver.h"
#include "engine/error.h"
#include "engine/merge.h"
#include "engine/opts.h"
#include "engine/slicer.h"
#include "engine/spec.h"
#include "engine/table.h"
#include "engine/view.h"

enum state {
	STATE_OPEN,
	STATE_RUNNING,
	STATE_STOPPED,
	STATE_FAILED,
};

struct csw_session {
	enum state state;
	const struct csw_driver_ops *ops;
	struct csw_driver *drv;
	char *driver_opts;
	int32_t *pids, *tids;
	char *cpus, *cgroup, *input, *comms;
	struct csw_plan plan;
	struct csw_scope scope;
	struct csw_aggregation agg;
	struct csw_slicer slicer;
	struct csw_merge merge;
	struct csw_slices each;
	bool has_slicer, has_merge;
};

const char *csw_version(void)
{
	return CSW_VERSION;
}

static int copy_ids(int32_t **to, const int32_t *from, size_t nr)
{
	if (!nr)
		return 0;
	*to = calloc(nr, sizeof(**to));
	if (!*to)
		return -ENOMEM;
	memcpy(*to, from, nr * sizeof(**to));
	return 0;
}

static int copy_text(char **to, const char *from)
{
	if (!from)
		return 0;
	*to = strdup(from);
	return *to ? 0 : -ENOMEM;
}

/* Is the cgroup the one in scope, or below it? A path ends there or goes on with a slash. */
static bool is_in_cgroup(void *ctx, uint64_t id)
{
	struct csw_session *s = ctx;
	const char *path = s->ops->cgroup_path(s->drv, id);
	size_t length = strlen(s->cgroup);

	if (!path)
		return false;
	return !strcmp(s->cgroup, "/") ||
	       (!strncmp(path, s->cgroup, length) && (!path[length] || path[length] == '/'));
}

/* "/sys/fs/cgroup/a/b/", "a/b" and "/a/b" are all "/a/b". */
static int normalize_cgroup(struct csw_session *s, struct csw_error *err)
{
	char mount[256], *path = s->cgroup, *clean;
	size_t length;

	if (csw_cgroups_mount(mount, sizeof(mount)) < 0)
		return csw_error_set(
			err, -EOPNOTSUPP,
			"no cgroup v2 hierarchy is mounted here, and membership cannot be followed "
			"in v1's: mount -t cgroup2 none DIRECTORY");
	length = strlen(mount);
	if (!strncmp(path, mount, length) && (!path[length] || path[length] == '/'))
		path += length;
	while (*path == '/')
		path++;
	if (asprintf(&clean, "/%s", path) < 0)
		return csw_error_set(err, -ENOMEM, "out of memory");
	for (length = strlen(clean); length > 1 && clean[length - 1] == '/'; length--)
		clean[length - 1] = '\0';
	free(s->cgroup);
	s->cgroup = clean;
	return csw_cgroups_id(mount, clean)
		       ? 0
		       : csw_error_set(err, -ENOENT, "there is no cgroup %s below %s", clean,
				       mount);
}

static int check_scope(struct csw_session *s, const struct csw_opts *opts, struct csw_error *err)
{
	bool live = s->ops->caps & CSW_DRIVER_LIVE;

	/* A recording knows processes and names, and none of the rest. */
	if (s->ops->caps & CSW_DRIVER_FILE) {
		if (s->scope.tree || s->scope.nr_tids || s->cpus || s->cgroup)
			return csw_error_set(err, -EINVAL,
					     "a recording is read: leave out the command, -t, -C "
					     "and --cgroup");
		return 0;
	}
	if (!live && (csw_scope_is_set(&s->scope) || s->cpus || s->cgroup || opts->cgroups))
		return csw_error_set(
			err, -EINVAL,
			"driver %s does not watch this machine: leave out the command, -p, -t, -C, "
			"--cgroup and --by=cgroup",
			s->ops->name);
	if (!s->cgroup)
		return 0;
	s->scope.in_cgroup = is_in_cgroup;
	s->scope.ctx = s;
	return normalize_cgroup(s, err);
}

/* What the caller lends us during csw_open. */
static int take_scope(struct csw_session *s, const struct csw_opts *opts, struct csw_error *err)
{
	if (copy_ids(&s->pids, opts->pids, opts->nr_pids) < 0 ||
	    copy_ids(&s->tids, opts->tids, opts->nr_tids) < 0 ||
	    copy_text(&s->cpus, opts->cpus) < 0 || copy_text(&s->cgroup, opts->cgroup) < 0 ||
	    copy_text(&s->comms, opts->comms) < 0)
		return csw_error_set(err, -ENOMEM, "out of memory");
	s->scope = (struct csw_scope){
		.pids = s->pids,
		.nr_pids = opts->nr_pids,
		.tids = s->tids,
		.nr_tids = opts->nr_tids,
		.tree = opts->tree,
		.comms = s->comms,
	};
	return check_scope(s, opts, err);
}

static int build_engine(struct csw_session *s, const struct csw_opts *opts, struct csw_error *err)
{
	struct csw_driver_facts facts = { .sets = 1 };
	uint32_t keep = opts->histogram ? CSW_KEEP_HISTOGRAMS : 0;

	if (s->ops->facts)
		s->ops->facts(s->drv, &facts);
	s->plan.scaled = facts.scaled;
	if (facts.scaled)
		keep |= CSW_KEEP_TURNS;
	if (s->plan.mixed != CSW_MIXED_ROW)
		keep |= CSW_KEEP_SHARES;
	if (csw_aggregation_init(&s->agg, s->plan.nr_counters, keep) < 0)
		return csw_error_set(err, -ENOMEM, "out of memory");
	if (csw_slicer_init(&s->slicer, &s->plan, &s->scope, &s->agg, s->ops->nr_cpus(s->drv)) < 0)
		return csw_error_set(err, -ENOMEM, "out of memory");
	s->has_slicer = true;
	if (csw_merge_init(&s->merge, s->ops, s->drv) < 0)
		return csw_error_set(err, -ENOMEM, "out of memory");
	s->has_merge = true;
	return 0;
}

/* A recording says itself what was counted. */
static int adopt(struct csw_session *s, const struct csw_opts *opts, struct csw_error *err)
{
	int ret;

	if (copy_text(&s->input, opts->input) < 0)
		return csw_error_set(err, -ENOMEM, "out of memory");
	s->plan.input = s->input;
	s->plan.cgroups = opts->cgroups;
	s->plan.from_ns = opts->from_ns;
	s->plan.to_ns = opts->to_ns;
	s->plan.from_first = opts->time_flags & CSW_TIME_FROM_FIRST;
	s->plan.to_first = opts->time_flags & CSW_TIME_TO_FIRST;
	ret = s->ops->adopt(&s->drv, &s->plan, err);
	return ret < 0 ? ret : build_engine(s, opts, err);
}

static int build(struct csw_session *s, const char *trigger, const char *events,
		 const struct csw_opts *opts, struct csw_error *err)
{
	int ret = 0;

	if (opts->mixed > CSW_MIXED_SPLIT)
		return csw_error_set(err, -EINVAL,
				     "csw_opts.mixed is %u: there are CSW_MIXED_ROW to "
				     "CSW_MIXED_SPLIT",
				     opts->mixed);
	s->plan.mixed = opts->mixed;
	if (opts->input)
		s->ops = &csw_perfdata_driver;
	else
		ret = csw_spec_driver(opts->driver, &s->ops, &s->driver_opts, err);
	if (ret < 0)
		return ret;
	ret = take_scope(s, opts, err);
	if (ret < 0)
		return ret;
	if (opts->input)
		return adopt(s, opts, err);
	s->plan.force = opts->force;
	s->plan.driver_opts = s->driver_opts;
	ret = csw_spec_plan(&s->plan, s->ops, trigger, events, opts->sav, err);
	if (ret < 0)
		return ret;
	s->plan.ring_bytes = opts->ring_bytes;
	s->plan.duration_ns = opts->duration_ns;
	s->plan.cpus = s->cpus;
	s->plan.cgroups = opts->cgroups || s->cgroup;
	s->plan.multiplex = opts->multiplex;
	ret = s->ops->open(&s->drv, &s->plan, err);
	return ret < 0 ? ret : build_engine(s, opts, err);
}

int csw_open(struct csw_session **out, const char *trigger, const char *events,
	     const struct csw_opts *opts, struct csw_error *err)
{
	struct csw_opts own;
	struct csw_session *s;
	int ret;

	*out = NULL;
	ret = csw_opts_take(&own, sizeof(own), opts, "csw_opts", err);
	if (ret < 0)
		return ret;
	s = calloc(1, sizeof(*s));
	if (!s)
		return csw_error_set(err, -ENOMEM, "out of memory");
	ret = build(s, trigger ? trigger : "auto", events, &own, err);
	if (ret < 0) {
		csw_close(s);
		return ret;
	}
	*out = s;
	return 0;
}

static int book(void *ctx, const struct csw_record *rec)
{
	struct csw_session *s = ctx;

	return csw_slicer_record(&s->slicer, rec);
}

struct scan {
	struct csw_session *s;
	int ret;
};

static void book_scanned(void *ctx, const struct csw_record *rec)
{
	struct scan *scan = ctx;

	if (!scan->ret)
		scan->ret = csw_slicer_record(&scan->s->slicer, rec);
}

static int fail(struct csw_session *s, int ret)
{
	s->state = STATE_FAILED;
	return ret;
}

static int drain(struct csw_session *s, struct csw_error *err)
{
	int ret = csw_merge_run(&s->merge, book, s);

	if (ret == -ENOMEM)
		return csw_error_set(err, ret, "out of memory for the table: %zu rows", s->agg.nr);
	if (ret && s->each.ret)
		return csw_error_set(err, ret, "the slices' receiver refused one (%s)",
				     strerror(ret < 0 ? -ret : ret));
	if (ret < 0)
		return csw_error_set(err, ret, "driver %s delivered a malformed record (%s)",
				     s->ops->name, strerror(-ret));
	return 0;
}

int csw_start(struct csw_session *s, struct csw_error *err)
{
	struct scan scan = { .s = s };
	struct csw_sink sink = { .put = book_scanned, .ctx = &scan };
	int ret;

	if (s->state != STATE_OPEN)
		return csw_error_set(err, -EINVAL, "csw_start: the session was started before");
	ret = s->ops->start(s->drv, &sink, err);
	if (ret < 0)
		return fail(s, ret);
	if (scan.ret < 0)
		return fail(s, csw_error_set(err, scan.ret, "out of memory for the start scan"));
	s->state = STATE_RUNNING;
	return 0;
}

int csw_on_slice(struct csw_session *s, int (*fn)(void *ctx, const struct csw_slice *slice),
		 void *ctx, struct csw_error *err)
{
	if (s->state != STATE_OPEN || s->slicer.each || !fn)
		return csw_error_set(err, -EINVAL,
				     "csw_on_slice: once, with a function, and before the session "
				     "is started");
	if (csw_slices_init(&s->each, &s->agg, csw_scope_is_set(&s->scope), s->slicer.nr_cpus, fn,
			    ctx) < 0)
		return csw_error_set(err, -ENOMEM, "out of memory");
	s->each.estimated = s->plan.estimated;
	s->slicer.each = &s->each;
	return 0;
}

int csw_damage(const struct csw_session *s, struct csw_error *err)
{
	if (err)
		*err = (struct csw_error){ .code = 0 };
	return s->ops->damage ? s->ops->damage(s->drv, err) : 0;
}

int csw_poll(struct csw_session *s, int timeout_ms, struct csw_error *err)
{
	int go_on, ret;

	if (s->state != STATE_RUNNING)
		return csw_error_set(err, -EINVAL, "csw_poll: the session is not running");
	go_on = s->ops->wait(s->drv, timeout_ms, err);
	if (go_on < 0)
		return fail(s, go_on);
	ret = drain(s, err);
	return ret < 0 ? fail(s, ret) : go_on;
}

int csw_tick(struct csw_session *s, struct csw_error *err)
{
	int ret;

	if (s->state != STATE_RUNNING)
		return csw_error_set(err, -EINVAL, "csw_tick: the session is not running");
	ret = s->ops->tick(s->drv, err);
	if (ret == 0)
		ret = drain(s, err);
	return ret < 0 ? fail(s, ret) : 0;
}

int csw_reset(struct csw_session *s, struct csw_error *err)
{
	if (s->state != STATE_RUNNING)
		return csw_error_set(err, -EINVAL, "csw_reset: the session is not running");
	csw_slicer_reset(&s->slicer);
	return 0;
}

int csw_stop(struct csw_session *s, struct csw_error *err)
{
	int ret;

	if (s->state != STATE_RUNNING)
		return csw_error_set(err, -EINVAL, "csw_stop: the session is not running");
	ret = s->ops->stop(s->drv, err);
	if (ret == 0)
		ret = drain(s, err);
	if (ret < 0)
		return fail(s, ret);
	s->state = STATE_STOPPED;
	return 0;
}

void csw_close(struct csw_session *s)
{
	if (!s)
		return;
	if (s->has_merge)
		csw_merge_free(&s->merge);
	if (s->has_slicer)
		csw_slicer_free(&s->slicer);
	csw_aggregation_free(&s->agg);
	csw_slices_free(&s->each);
	if (s->ops)
		s->ops->close(s->drv);
	free(s->pids);
	free(s->tids);
	free(s->cpus);
	free(s->cgroup);
	free(s->input);
	free(s->comms);
	free(s->driver_opts);
	free(s);
}

/* ---- what a view is made from ---- */

static void fill_facts(struct csw_summary *sum, const struct csw_session *s)
{
	struct csw_driver_facts facts = { .sets = 1 };

	if (s->ops->facts)
		s->ops->facts(s->drv, &facts);
	sum->ring_bytes = facts.ring_bytes;
	sum->cpus_missed = facts.cpus_missed;
	sum->cpus_gone = facts.cpus_gone;
	sum->sets = facts.sets > 1 ? facts.sets : 1;
}

static void fill_summary(struct csw_summary *sum, const struct csw_session *s)
{
	const struct csw_slicer *slicer = &s->slicer;
	struct csw_completeness done;

	csw_slicer_completeness(slicer, &done);
	sum->trigger_hardware = (s->plan.trigger.event.flags & CSW_EVENT_BY_HARDWARE) != 0;
	sum->simulated = (s->ops->caps & CSW_DRIVER_SIMULATED) != 0;
	sum->sav = s->plan.trigger.sav;
	sum->duration_ns = csw_slicer_duration(slicer, &sum->nr_cpus);
	sum->estimates = slicer->nr_estimates;
	sum->mixed = s->plan.mixed;
	sum->shared_ns = slicer->shared_ns;
	sum->estimate = s->plan.estimated || s->plan.scaled || slicer->shared_ns;
	/* Only ordinary samples: they span what is known of the run. */
	if (!sum->nr_cpus && slicer->nr_estimates) {
		sum->duration_ns = slicer->last_estimate_ns - slicer->first_estimate_ns;
		for (unsigned i = 0; i < slicer->nr_cpus; i++)
			sum->nr_cpus += csw_estimates_touch(&slicer->by_half, 2 * i) ||
					csw_estimates_touch(&slicer->by_half, 2 * i + 1);
	}
	sum->triggers = done.all;
	sum->stores = s->plan.stores;
	sum->accesses = s->plan.stores ? done.all - (uint64_t)done.carried : 0;
	sum->samples = done.samples;
	sum->lost = done.lost;
	sum->throttled = done.throttled;
	sum->unseen = done.unseen;
	/* Negative only if more samples came than the trigger can have caused; then the equation
	 * fails and says so. */
	sum->open = done.open < 0 ? 0 : (uint64_t)done.open;
	sum->slices = slicer->slices;
	sum->switches_unseen = slicer->unseen_switches;
	sum->owner_disagreements = slicer->owner_disagreements;
	if (slicer->tasks.zero == CSW_ROW_UNKNOWN)
		sum->outside_ns = csw_aggregation_row(&s->agg, CSW_ROW_UNKNOWN)->oncpu_ns;
	sum->throttles = slicer->throttles;
	fill_facts(sum, s);
	for (unsigned i = 0; i < slicer->nr_cpus; i++) {
		const struct csw_slicer_cpu *cpu = &slicer->cpus[i];

		sum->lost_records += cpu->lost_records;
		if (s->state == STATE_STOPPED && cpu->stopped)
			sum->cpu_ns += cpu->stop_ns - cpu->start_ns;
	}
}

static const char *path_of(void *ctx, uint64_t id)
{
	const struct csw_session *s = ctx;

	return s->ops->cgroup_path ? s->ops->cgroup_path(s->drv, id) : NULL;
}

int csw_table_open(struct csw_table **out, const struct csw_session *s, uint32_t by,
		   const struct csw_table_opts *opts, struct csw_error *err)
{
	struct csw_result result = {
		.plan = &s->plan,
		.driver = s->ops,
		.agg = &s->agg,
		.cpus = s->slicer.without_cpu ? NULL : &s->slicer.by_cpu,
		.nr_cpus = s->slicer.nr_cpus,
		.samples = &s->slicer.by_row,
		.cpu_samples = &s->slicer.by_half,
		.scoped = csw_scope_is_set(&s->scope),
		.cgroups = s->plan.cgroups,
		.cgroup_path = path_of,
		.cgroup_ctx = (void *)(uintptr_t)s,
		.wrong = s->slicer.is_wrong ? &s->slicer.wrong : NULL,
	};
	uint64_t totals[2 + CSW_COUNTERS_MAX], running_ns[CSW_COUNTERS_MAX];

	*out = NULL;
	if (s->state != STATE_STOPPED && s->state != STATE_RUNNING)
		return csw_error_set(err, -EINVAL, "csw_table_open: start the session first");
	csw_slicer_totals(&s->slicer, totals);
	result.enabled_ns = totals[0];
	result.running_ns = totals[1];
	if (s->plan.scaled) {
		csw_slicer_running(&s->slicer, running_ns);
		result.each_running_ns = running_ns;
	}
	memcpy(result.totals, totals + 2, s->plan.nr_counters * sizeof(*result.totals));
	fill_summary(&result.summary, s);
	return csw_view_make(out, &result, by, opts, err);
}
