/*
 * How often an event comes per context switch: the candidate is counted beside the kernel's own
 * switch event, which samples at every switch.
 *
 * A sample is taken before its switch, so a slice holds the occurrences of the switch that began
 * it, and whatever else happened in it. Invariant: a switch is judged only where both slices around
 * it are exact and touch; of the others it is said how many they are.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "csw/csw.h"
#include "engine/error.h"
#include "engine/opts.h"

#define DURATION_NS 5000000000ull
#define POLL_MS 50
#define CPUS_MIN 64
/* So many switches of a kind say something of it. */
#define SWITCHES_MIN 30
/* A proxy may miss, and may count twice, so many of the switches. */
#define MISSED_MAX 0.01
#define DOUBLED_MAX 0.05
#define MOST (CSW_CALIBRATION_BUCKETS - 1u) /* the last bucket: so many and more */
#define OUTLIERS 0.001                      /* so few do not decide which SAV is tried */

/* The slice before, of one CPU. */
struct last {
	uint64_t to_ns;
	uint32_t kind;
	int32_t pid;
	uint32_t nr; /* which one it was: counters do not all begin at the same instant */
	bool good;
};

struct calibration {
	struct csw_calibration *out;
	double squares[CSW_SWITCH_KINDS];
	struct last *last;
	size_t nr_cpus;
};

const char *csw_switch_kind_name(uint32_t kind)
{
	static const char *const names[] = {
		[CSW_SWITCH_PROCESS] = "process",     [CSW_SWITCH_THREAD] = "thread",
		[CSW_SWITCH_TO_IDLE] = "to_idle",     [CSW_SWITCH_FROM_IDLE] = "from_idle",
		[CSW_SWITCH_TO_KERNEL] = "to_kernel", [CSW_SWITCH_FROM_KERNEL] = "from_kernel",
	};

	return kind < CSW_SWITCH_KINDS ? names[kind] : "?";
}

const char *csw_verdict_name(uint32_t verdict)
{
	static const char *const names[] = {
		[CSW_VERDICT_EXACT] = "exact",
		[CSW_VERDICT_USABLE] = "usable",
		[CSW_VERDICT_NOT_A_PROXY] = "not a proxy",
		[CSW_VERDICT_TOO_FEW] = "too few switches",
	};

	return verdict < sizeof(names) / sizeof(*names) ? names[verdict] : "?";
}

/* ---- counting ---- */

static uint32_t kind_of(const struct last *from, const struct csw_slice *to)
{
	if (from->kind == CSW_KIND_IDLE)
		return CSW_SWITCH_FROM_IDLE;
	if (to->kind == CSW_KIND_IDLE)
		return CSW_SWITCH_TO_IDLE;
	if (from->kind == CSW_KIND_KERNEL)
		return CSW_SWITCH_FROM_KERNEL;
	if (to->kind == CSW_KIND_KERNEL)
		return CSW_SWITCH_TO_KERNEL;
	return from->pid == to->pid ? CSW_SWITCH_THREAD : CSW_SWITCH_PROCESS;
}

static void judge(struct calibration *c, uint32_t kind, uint64_t nr)
{
	struct csw_kind_calibration *k = &c->out->kinds[kind];

	c->out->judged++;
	k->switches++;
	k->occurrences += nr;
	k->histogram[nr < CSW_CALIBRATION_BUCKETS ? nr : CSW_CALIBRATION_BUCKETS - 1]++;
	c->squares[kind] += (double)nr * (double)nr;
}

static int make_room(struct calibration *c, uint32_t cpu)
{
	size_t nr = c->nr_cpus ? c->nr_cpus : CPUS_MIN;
	struct last *last;

	while (nr <= cpu)
		nr *= 2;
	if (nr == c->nr_cpus)
		return 0;
	last = realloc(c->last, nr * sizeof(*last));
	if (!last)
		return -ENOMEM;
	memset(last + c->nr_cpus, 0, (nr - c->nr_cpus) * sizeof(*last));
	c->last = last;
	c->nr_cpus = nr;
	return 0;
}

static int on_slice(void *ctx, const struct csw_slice *slice)
{
	struct calibration *c = ctx;
	struct last *last;
	/* One owner from end to end: an idle task that left no record would show as a hole. A
	 * reading in mid-slice ends none at a switch. */
	bool good = slice->exact && slice->end != CSW_END_CUT &&
		    slice->oncpu_ns == slice->to_ns - slice->from_ns;

	if (make_room(c, slice->cpu) < 0)
		return -ENOMEM;
	last = &c->last[slice->cpu];
	if (good && last->good && last->nr > 1 && last->to_ns == slice->from_ns)
		judge(c, kind_of(last, slice), slice->values[0]);
	*last = (struct last){
		.to_ns = slice->to_ns,
		.kind = slice->kind,
		.pid = slice->pid,
		.nr = last->nr + (last->nr < 2),
		.good = good,
	};
	return 0;
}

/* ---- the verdict ---- */

/* Of these kinds (a bit each), how many switches have from `from` to below `to` occurrences. */
static uint64_t count_between(const struct csw_calibration *c, uint32_t kinds, uint64_t from,
			      uint64_t to)
{
	uint64_t nr = 0;

	for (uint32_t k = 0; k < CSW_SWITCH_KINDS; k++) {
		for (uint64_t i = from; i < to && i < CSW_CALIBRATION_BUCKETS; i++)
			nr += kinds >> k & 1 ? c->kinds[k].histogram[i] : 0;
	}
	return nr;
}

/* The greatest SAV that all but outliers of these switches reach by themselves; 0: there is none.
 */
static uint64_t find_sav(const struct csw_calibration *c, uint32_t kinds)
{
	uint64_t all = count_between(c, kinds, 0, UINT64_MAX), sav = 0;

	if (all < SWITCHES_MIN)
		return 0;
	while (sav < MOST && (double)count_between(c, kinds, 0, sav + 1) <= OUTLIERS * (double)all)
		sav++;
	return sav < MOST ? sav : 0; /* something that happens all the time */
}

/* With this SAV, of the switches of these kinds: those that would be missed, and those in which or
 * after which another overflow would come. */
static void find_shares(const struct csw_calibration *c, uint32_t kinds, uint64_t sav,
			double *missed, double *doubled)
{
	double all = (double)count_between(c, kinds, 0, UINT64_MAX);

	*missed = all > 0 ? (double)count_between(c, kinds, 0, sav) / all : 0;
	*doubled = all > 0 ? (double)count_between(c, kinds, 2 * sav < MOST ? 2 * sav : MOST,
						   UINT64_MAX) /
				     all
			   : 0;
}

static bool is_exact(const struct csw_calibration *c, uint32_t kinds, uint64_t sav)
{
	return count_between(c, kinds, sav, sav + 1) == count_between(c, kinds, 0, UINT64_MAX);
}

static void decide(struct csw_calibration *c)
{
	const uint32_t all = (1u << CSW_SWITCH_KINDS) - 1, process = 1u << CSW_SWITCH_PROCESS;
	uint32_t kinds = all;
	uint64_t sav;
	bool enough = count_between(c, process, 0, UINT64_MAX) >= SWITCHES_MIN &&
		      c->kinds[CSW_SWITCH_THREAD].switches >= SWITCHES_MIN;

	c->sav_thread = find_sav(c, all);
	c->sav_process = find_sav(c, process);
	sav = c->sav_thread ? c->sav_thread : c->sav_process;
	if (sav && !c->sav_thread)
		kinds = process;
	find_shares(c, kinds, sav ? sav : 1, &c->missed, &c->doubled);
	if (!enough)
		c->verdict = CSW_VERDICT_TOO_FEW;
	else if (c->sav_thread && is_exact(c, all, c->sav_thread))
		c->verdict = CSW_VERDICT_EXACT;
	else if (c->sav_process && c->missed <= MISSED_MAX && c->doubled <= DOUBLED_MAX)
		c->verdict = CSW_VERDICT_USABLE;
	else
		c->verdict = CSW_VERDICT_NOT_A_PROXY;
}

static void finish(struct calibration *c)
{
	for (uint32_t k = 0; k < CSW_SWITCH_KINDS; k++) {
		struct csw_kind_calibration *kind = &c->out->kinds[k];
		double nr = (double)kind->switches, variance;

		if (!kind->switches)
			continue;
		kind->mean = (double)kind->occurrences / nr;
		variance = c->squares[k] / nr - kind->mean * kind->mean;
		kind->stddev = variance > 0 ? sqrt(variance) : 0;
	}
	decide(c->out);
}

/* ---- the run ---- */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* One event at a time: the others' would be lost. */
static int check_single(struct csw_session *s, struct csw_error *err)
{
	struct csw_table *table;
	int ret = csw_table_open(&table, s, CSW_BY_CPU, NULL, err);

	if (ret == 0 && csw_table_counters(table) != 1)
		ret = csw_error_set(err, -EINVAL, "one trigger can be calibrated at a time");
	if (ret == 0 || ret == -EINVAL)
		csw_table_close(table);
	return ret;
}

/* A simulated machine ends by itself. */
static int run(struct csw_session *s, uint64_t duration_ns, int (*go_on)(void *ctx, uint64_t ns),
	       void *ctx, struct csw_error *err)
{
	uint64_t from_ns = now_ns();
	int ret = csw_start(s, err);

	if (ret >= 0)
		ret = check_single(s, err);
	if (ret < 0)
		return ret;
	for (;;) {
		uint64_t ns = now_ns() - from_ns;

		if (ns >= duration_ns || (go_on && !go_on(ctx, ns)))
			break;
		ret = csw_poll(s, POLL_MS, err);
		if (ret < 0)
			return ret;
		if (ret == 0)
			break;
	}
	return csw_stop(s, err);
}

static int describe(struct csw_calibration *out, const struct csw_session *s, struct csw_error *err)
{
	struct csw_summary summary;
	struct csw_counter counter;
	struct csw_table *table;
	int ret = csw_table_open(&table, s, CSW_BY_CPU, NULL, err);

	if (ret < 0)
		return ret;
	csw_table_summary(table, &summary, sizeof(summary));
	csw_table_counter(table, 0, &counter);
	snprintf(out->event, sizeof(out->event), "%s", counter.became);
	out->hardware = counter.hardware;
	out->simulated = summary.simulated;
	out->duration_ns = summary.duration_ns;
	out->switches = summary.triggers;
	out->cpus_missed = summary.cpus_missed;
	out->cpus_gone = summary.cpus_gone;
	csw_table_close(table);
	return 0;
}

int csw_calibrate(struct csw_calibration *out, const char *trigger, const struct csw_opts *opts,
		  int (*go_on)(void *ctx, uint64_t ns), void *ctx, struct csw_error *err)
{
	struct calibration c = { .out = out };
	struct csw_session *s;
	struct csw_opts own;
	int ret = csw_opts_take(&own, sizeof(own), opts, "csw_opts", err);

	memset(out, 0, sizeof(*out));
	if (ret < 0)
		return ret;
	if (!trigger || !strcmp(trigger, "auto"))
		return csw_error_set(err, -EINVAL,
				     "calibrate needs the name of a trigger or event; "
				     "csw-sample list triggers shows them");
	snprintf(out->trigger, sizeof(out->trigger), "%s", trigger);
	ret = csw_open(&s, "switch", trigger,
		       &(struct csw_opts){
			       .size = sizeof(own),
			       .driver = own.driver,
			       .cpus = own.cpus,
			       .ring_bytes = own.ring_bytes,
			       .duration_ns = own.duration_ns ? own.duration_ns : DURATION_NS,
		       },
		       err);
	if (ret < 0)
		return ret;
	ret = csw_on_slice(s, on_slice, &c, err);
	if (ret == 0)
		ret = run(s, own.duration_ns ? own.duration_ns : DURATION_NS, go_on, ctx, err);
	if (ret >= 0)
		ret = describe(out, s, err);
	if (ret >= 0)
		finish(&c);
	csw_close(s);
	free(c.last);
	return ret < 0 ? ret : 0;
}
