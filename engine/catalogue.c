/*
 * Triggers and counters of the live machine, by name; see catalogue.h.
 */
#include "engine/catalogue.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/error.h"
#include "engine/lookup.h"
#include "engine/pfm.h"
#include "engine/sysfs.h"
#include "engine/triggers.h"
#include "engine/tryout.h"

#define CLOCK_SAV_LEAST 100000 /* ns: 10,000 interrupts per second and CPU */

/* ---- triggers ---- */

/* What was asked for beside the name. */
struct wish {
	uint64_t sav;
	bool force;
};

/* Some 280 bytes at most, of which the name is 128. */
const char *csw_catalogue_describe(const struct csw_trigger *t, char *text, size_t bytes)
{
	char process[32], thread[32];

	snprintf(text, bytes, "%s, %s, sav %llu, %s per process switch, %s per thread switch",
		 t->event.became, t->event.flags & CSW_EVENT_BY_HARDWARE ? "hardware" : "software",
		 (unsigned long long)t->sav, csw_rate_text(&t->process, process, sizeof(process)),
		 csw_rate_text(&t->thread, thread, sizeof(thread)));
	return text;
}

/* The CPU model that libpfm4 was told of is not the one that would tell of itself. */
static void ask_machine(struct csw_trigger_machine *m)
{
	memset(m, 0, sizeof(*m));
	csw_pfm_core(m->cores, sizeof(m->cores));
	if (!m->cores[0] || !csw_pfm_is_told())
		csw_tryout_cpu(&m->cpu);
}

/* The kernel raises smaller periods without a word; then overflows would come later than sav says.
 */
static uint64_t period_floor(const struct csw_event *e)
{
	struct csw_cpu cpu;

	if (!(e->flags & CSW_EVENT_HARDWARE))
		return 1;
	csw_tryout_cpu(&cpu);
	return cpu.min_period ? cpu.min_period : 1;
}

/* A clock overflows by a timer, whatever runs. The kernel would take 10,000 ns (perf_swevent_start_
 * hrtimer), and a machine does little else then. */
static int refuse_timer_storm(const struct csw_trigger *t, struct csw_error *err)
{
	return csw_error_set(
		err, -EINVAL,
		"%s as a trigger interrupts every CPU each --sav ns, and %llu would be "
		"a storm: ask for %d or more, or better for --trigger=switch, as a "
		"clock knows nothing of context switches",
		t->event.name, (unsigned long long)t->sav, CLOCK_SAV_LEAST);
}

__attribute__((format(printf, 2, 3))) static void remark(struct csw_trigger *t, const char *format,
							 ...)
{
	size_t used = strlen(t->event.became);
	va_list args;

	va_start(args, format);
	vsnprintf(t->event.became + used, sizeof(t->event.became) - used, format, args);
	va_end(args);
}

/* known: what the catalogue says of this event; NULL: nothing. */
static int settle_sav(struct csw_trigger *t, const struct wish *wish,
		      const struct csw_trigger_entry *known, struct csw_error *err)
{
	uint64_t least = period_floor(&t->event);

	t->sav = wish->sav;
	if (wish->sav == CSW_SAV_AUTO)
		t->sav = known ? known->sav : 1;
	if (t->event.type == PERF_TYPE_SOFTWARE && (t->event.flags & CSW_EVENT_CLOCK) &&
	    t->sav < CLOCK_SAV_LEAST)
		return refuse_timer_storm(t, err);
	if (wish->sav == CSW_SAV_AUTO && !known && !t->per_switch &&
	    !(t->event.flags & CSW_EVENT_DEBUG_REGISTER))
		remark(t, " (sav 1: the catalogue does not know this event)");
	if (t->sav >= least)
		return 0;
	remark(t, " (sav %llu -> %llu, the %s)", (unsigned long long)t->sav,
	       (unsigned long long)least,
	       t->process.known && t->process.min == least && t->process.max == least
		       ? "events per switch here"
		       : "kernel's least");
	t->sav = least;
	return 0;
}

/* Once in every switch of every kind, and never else. */
static void expect_every_switch(struct csw_trigger *t, uint32_t phase, uint32_t sample_of)
{
	t->phase = phase;
	t->per_switch = 1;
	t->process = t->thread = (struct csw_rate){ 1, 1, 1 };
	t->sample_of = sample_of;
}

static void expect_entry(struct csw_trigger *t, const struct csw_trigger_entry *e)
{
	t->process = e->process;
	t->thread = e->thread;
	t->sample_of = e->sample_of;
	if (e->exact) {
		t->phase = CSW_PHASE_INSIDE;
		t->per_switch = e->process.min;
	}
}

/* ---- triggers of the catalogue ---- */

/* Known, and nothing for it on this CPU: nothing that one could insist on, either. */
static int refuse_none(const struct csw_lookup *l, uint32_t id, const struct csw_trigger_entry *e,
		       const struct csw_trigger_machine *m)
{
	char denial[CSW_TRYOUT_INSTEAD_BYTES], lack[CSW_LOOKUP_LACK_BYTES], no_core[128];
	const char *instead = csw_lookup_lack(l, lack, sizeof(lack));

	if (!*instead)
		instead = csw_tryout_instead(denial, sizeof(denial), CSW_TRIGGER_INSTEAD);
	else
		instead += strlen("; ");
	return csw_error_set(l->err, -EOPNOTSUPP,
			     "trigger %s has no event on this CPU (%s): %s; %s",
			     csw_trigger_names[id].name,
			     m->cores[0] ? m->cores : csw_pfm_no_core(no_core, sizeof(no_core)),
			     e->why, instead);
}

/* There is an event: what speaks against it? pmu: whether this machine could count it at all; the
 * conditions of a machine that is not the CPU that libpfm4 was told of say nothing. */
static bool speaks_against(const struct csw_trigger *t, const struct csw_trigger_entry *e, bool pmu,
			   char *why, size_t bytes)
{
	uint64_t least = period_floor(&t->event);
	bool bounded = e->process.known && e->process.max && e->process.max != CSW_RATE_OPEN;

	if (e->why) {
		snprintf(why, bytes, "%s", e->why);
		return true;
	}
	if ((pmu || !csw_pfm_is_told()) && csw_trigger_unmet(e, why, bytes))
		return true;
	if (!bounded || least <= e->process.max)
		return false;
	snprintf(why, bytes,
		 "the kernel takes no period below %llu, and with %u occurrences per switch a "
		 "sample would be of several threads",
		 (unsigned long long)least, e->process.max);
	return true;
}

static int refuse_without_pmu(const struct csw_lookup *l, uint32_t id, const char *would_be,
			      const char *against)
{
	char why[256], denial[CSW_TRYOUT_INSTEAD_BYTES];

	return csw_error_set(
		l->err, -EOPNOTSUPP,
		"trigger %s would be %s; but there is no hardware PMU here: %s%s%s; %s",
		csw_trigger_names[id].name, would_be, csw_tryout_no_pmu(why, sizeof(why)),
		*against ? "; and with one, " : "", against,
		csw_tryout_instead(denial, sizeof(denial), CSW_TRIGGER_INSTEAD));
}

/* The trigger's name is known, whether or not its event is. */
static int as_known(int ret, struct csw_error *err)
{
	if (ret != -ENOENT)
		return ret;
	if (err)
		err->code = -EOPNOTSUPP;
	return -EOPNOTSUPP;
}

static int resolve_entry(struct csw_lookup *l, uint32_t id, const struct csw_trigger_entry *e,
			 const struct csw_trigger_machine *m, const struct wish *wish,
			 struct csw_trigger *t)
{
	char would_be[CSW_CATALOGUE_DESCRIPTION_BYTES], against[CSW_FORCED_BYTES] = "";
	bool pmu = csw_tryout_pmu();
	int ret;

	if (!e->event)
		return refuse_none(l, id, e, m);
	if (l->out->exclude_kernel)
		return csw_error_set(l->err, -EINVAL,
				     "%s: this happens in the kernel, so with :u it would give no "
				     "sample at all; leave :u away",
				     l->out->name);
	csw_trigger_event_name(e, m, l->head, sizeof(l->head));
	ret = csw_lookup_resolve(l);
	if (ret)
		return as_known(ret, l->err);
	expect_entry(t, e);
	ret = settle_sav(t, wish, e, l->err);
	if (ret)
		return ret;
	csw_catalogue_describe(t, would_be, sizeof(would_be));
	speaks_against(t, e, pmu, against, sizeof(against));
	if (!pmu)
		return refuse_without_pmu(l, id, would_be, against);
	if (*against && !wish->force)
		return csw_error_set(l->err, -EOPNOTSUPP,
				     "trigger %s would be %s; but %s; works here: "
				     "--trigger=switch; --force uses it all the same",
				     csw_trigger_names[id].name, would_be, against);
	snprintf(t->forced, sizeof(t->forced), "%s", against);
	return 0;
}

/* Of what counts every switch and nothing else, the first that works here and may be used. Whoever
 * names nothing is not to be surprised: with a modifier it is the software event, which says why
 * that cannot be. */
static bool take_exact(const struct csw_lookup *l, const struct wish *wish,
		       const struct csw_trigger_machine *m, struct csw_trigger *t)
{
	for (uint32_t id = 0; !*l->suffix && id < CSW_TRIGGER_IDS; id++) {
		const struct csw_trigger_entry *e = csw_trigger_find(id, m);
		char list[CSW_SYSFS_LIST_BYTES];
		struct csw_trigger exact;

		/* Whoever names nothing counts on all CPUs, of whatever kind. */
		if (!e || !e->exact ||
		    csw_catalogue_trigger(csw_trigger_names[id].name, wish->sav, &exact, NULL) ||
		    exact.event.type == PERF_TYPE_BREAKPOINT ||
		    csw_sysfs_pmu_is_partial(exact.event.type, list, sizeof(list)))
			continue;
		strcpy(exact.event.name, t->event.name);
		snprintf(t->event.became, sizeof(t->event.became), "%s: %.100s",
			 csw_trigger_names[id].name, exact.event.became);
		strcpy(exact.event.became, t->event.became);
		*t = exact;
		return true;
	}
	return false;
}

static int resolve_switch(struct csw_lookup *l, bool automatic)
{
	int ret;

	strcpy(l->head, "context-switches");
	ret = csw_lookup_resolve(l);
	if (!ret && automatic) /* the report must say what was taken */
		snprintf(l->out->became, sizeof(l->out->became), "switch (context-switches%s)",
			 l->suffix);
	return ret;
}

/* An event by its own name, of which the catalogue may know something. */
static int resolve_event(struct csw_lookup *l, const struct csw_trigger_machine *m,
			 const struct wish *wish, struct csw_trigger *t)
{
	const struct csw_trigger_entry *known = NULL;
	int ret = csw_lookup_resolve(l);

	if (ret)
		return ret;
	if (l->out->flags & CSW_EVENT_HARDWARE && l->out->type != PERF_TYPE_HARDWARE &&
	    l->out->type != PERF_TYPE_HW_CACHE)
		known = csw_trigger_find_code(l->out->config, m);
	if (known)
		expect_entry(t, known);
	if (l->out->type == PERF_TYPE_SOFTWARE && l->out->config == PERF_COUNT_SW_CONTEXT_SWITCHES)
		expect_every_switch(t, CSW_PHASE_BEFORE, CSW_SAMPLE_OF_OUTGOING);
	return settle_sav(t, wish, known, l->err);
}

/* By the CPU's debug registers. What a place in memory has to do with switches nobody knows. */
static int resolve_watched(struct csw_lookup *l, uint32_t id, const struct wish *wish,
			   struct csw_trigger *t)
{
	int ret = csw_lookup_resolve(l);

	if (ret)
		return ret;
	if (id == CSW_TRIGGER_TID_CHANGE)
		expect_every_switch(t, CSW_PHASE_INSIDE, CSW_SAMPLE_OF_INCOMING);
	return settle_sav(t, wish, NULL, l->err);
}

/* A change of the thread may be seen by two kinds of hardware. Where the PMU's event does not do
 * and the debug registers do not either, the PMU's reason is the one to tell. */
static int resolve_hardware(struct csw_lookup *l, uint32_t id, const struct csw_trigger_machine *m,
			    const struct wish *wish, struct csw_trigger *t)
{
	const struct csw_trigger_entry *e = csw_trigger_find(id, m);
	const struct csw_trigger before = *t;
	struct csw_lookup watch = *l;
	int ret;

	if (!e)
		return resolve_watched(l, id, wish, t);
	ret = resolve_entry(l, id, e, m, wish, t);
	if (ret != -EOPNOTSUPP || id != CSW_TRIGGER_TID_CHANGE)
		return ret;
	watch.err = NULL;
	*t = before;
	if (resolve_watched(&watch, id, wish, t) ||
	    csw_tryout_event(&t->event, t->sav, CSW_TRIGGER_INSTEAD, NULL))
		return ret;
	return 0;
}

static int resolve_trigger_event(struct csw_lookup *l, const struct wish *wish,
				 struct csw_trigger *t)
{
	uint32_t id = csw_lookup_bad_modifier(l) ? CSW_TRIGGER_IDS : csw_trigger_id(l->head);
	struct csw_trigger_machine m;
	int ret;

	ask_machine(&m);
	if (id == CSW_TRIGGER_IDS)
		return resolve_event(l, &m, wish, t);
	if (id == CSW_TRIGGER_AUTO && take_exact(l, wish, &m, t))
		return 0;
	if (id != CSW_TRIGGER_AUTO && id != CSW_TRIGGER_SWITCH)
		return resolve_hardware(l, id, &m, wish, t);
	ret = resolve_switch(l, id == CSW_TRIGGER_AUTO);
	expect_every_switch(t, CSW_PHASE_BEFORE, CSW_SAMPLE_OF_OUTGOING);
	return ret ? ret : settle_sav(t, wish, NULL, l->err);
}

/* It was tried on one CPU, of its own kind. */
static void remark_cpus(struct csw_trigger *t)
{
	char list[CSW_SYSFS_LIST_BYTES];

	if (csw_sysfs_pmu_is_partial(t->event.type, list, sizeof(list)))
		remark(t, " (on CPUs %.40s only: use -C)", list);
}

static int find_trigger(const char *name, const struct wish *wish, struct csw_trigger *out,
			struct csw_error *err)
{
	struct csw_lookup l = { .trigger = true, .out = &out->event, .err = err };
	int ret;

	memset(out, 0, sizeof(*out));
	if (wish->sav > INT64_MAX && wish->sav != CSW_SAV_AUTO)
		return csw_error_set(
			err, -EINVAL,
			"the sample-after value %llu is too large: the kernel takes 63 bits",
			(unsigned long long)wish->sav);
	out->phase = CSW_PHASE_ANY;
	ret = csw_lookup_begin(&l, name);
	if (!ret)
		ret = resolve_trigger_event(&l, wish, out);
	if (!ret)
		ret = csw_tryout_event(&out->event, out->sav, CSW_TRIGGER_INSTEAD, err);
	if (!ret)
		remark_cpus(out);
	return ret;
}

int csw_catalogue_trigger(const char *name, uint64_t sav, struct csw_trigger *out,
			  struct csw_error *err)
{
	const struct wish wish = { .sav = sav ? sav : 1 };

	return find_trigger(name, &wish, out, err);
}

int csw_catalogue_force(const char *name, uint64_t sav, struct csw_trigger *out,
			struct csw_error *err)
{
	const struct wish wish = { .sav = sav ? sav : 1, .force = true };

	return find_trigger(name, &wish, out, err);
}

/* ---- counters ---- */

/* A name that only the table of triggers knows. */
static bool is_trigger_only(const struct csw_lookup *l)
{
	uint32_t id = csw_lookup_bad_modifier(l) ? CSW_TRIGGER_IDS : csw_trigger_id(l->head);

	return id != CSW_TRIGGER_IDS && id != CSW_TRIGGER_AUTO && id != CSW_TRIGGER_MEM_LOAD &&
	       id != CSW_TRIGGER_MEM_STORE;
}

/* What the trigger would be is counted, also where it would be a bad one: that is how to find out.
 */
static int resolve_as_trigger(const struct csw_lookup *l)
{
	const struct wish wish = { .sav = CSW_SAV_AUTO, .force = true };
	struct csw_trigger t;
	int ret = find_trigger(l->out->name, &wish, &t, l->err);

	if (!ret)
		*l->out = t.event;
	return ret;
}

int csw_catalogue_counter(const char *name, struct csw_event *out, struct csw_error *err)
{
	struct csw_lookup l = { .out = out, .err = err };
	int ret;

	memset(out, 0, sizeof(*out));
	ret = csw_lookup_begin(&l, name);
	if (!ret && is_trigger_only(&l))
		ret = resolve_as_trigger(&l);
	else if (!ret)
		ret = csw_lookup_resolve(&l);
	return ret ? ret : csw_tryout_event(out, 0, CSW_COUNTER_INSTEAD, err);
}
