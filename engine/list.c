/*
 * What this machine can do: triggers, events and drivers, each with why not where it does not work.
 *
 * Invariant: "usable" is what the kernel said when it was asked (engine/tryout), once for all
 * events of one kind where there are many: that thousands of names are listed does not open
 * thousands of counters. A name that the words leave out is not asked for at all.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/catalogue.h"
#include "engine/driver.h"
#include "engine/error.h"
#include "engine/lookup.h"
#include "engine/pfm.h"
#include "engine/sysfs.h"
#include "engine/triggers.h"
#include "engine/tryout.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))
#define INSTEAD "works everywhere: software events, and --driver=sim"
/* A kind whose first events the kernel refuses one by one is given up after so many. */
#define TRIES_MAX 8
#define TEXT_BYTES 512

/* What was found out of one kind of events: one perf_event_attr.type. */
struct verdict {
	uint32_t type;
	uint32_t tries;
	bool usable;
	struct csw_error err;
};

enum pmu {
	PMU_NOT_TRIED,
	PMU_THERE,
	PMU_MISSING,
};

struct list {
	const char *const *words;
	size_t nr_words;
	int (*fn)(void *ctx, const struct csw_item *item);
	void *ctx;
	struct csw_error *err;
	struct verdict *verdicts;
	size_t nr_verdicts;
	enum pmu pmu;
};

/* ---- the words ---- */

static bool matches(const struct list *l, const char *name, const char *group, const char *summary)
{
	for (size_t i = 0; i < l->nr_words; i++)
		if (!strcasestr(name, l->words[i]) && !strcasestr(group, l->words[i]) &&
		    !strcasestr(summary, l->words[i]))
			return false;
	return true;
}

static int put(const struct list *l, const char *name, const char *group, const char *summary,
	       bool usable, const char *reason)
{
	const struct csw_item item = {
		.name = name,
		.group = group,
		.summary = summary,
		.usable = usable,
		.reason = reason && *reason ? reason : NULL,
	};

	return l->fn(l->ctx, &item);
}

/* ---- triggers ---- */

/* Any variable would do for WHERE: whether it can be watched is the question. */
static int put_trigger(struct list *l, const struct csw_trigger_name *name)
{
	char tried[CSW_EVENT_NAME_BYTES], text[CSW_CATALOGUE_DESCRIPTION_BYTES];
	struct csw_trigger trigger;
	struct csw_error err;
	int ret;

	snprintf(tried, sizeof(tried), "%s%s", name->name,
		 strcmp(name->name, name->written) ? ":current_task" : "");
	ret = csw_catalogue_trigger(tried, CSW_SAV_AUTO, &trigger, &err);
	return put(l, name->written, "trigger", name->summary, !ret,
		   ret ? err.text : csw_catalogue_describe(&trigger, text, sizeof(text)));
}

static int list_triggers(struct list *l)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < CSW_TRIGGER_IDS; i++) {
		const struct csw_trigger_name *name = &csw_trigger_names[i];

		if (matches(l, name->written, "trigger", name->summary))
			ret = put_trigger(l, name);
	}
	return ret;
}

/* ---- kinds of events ---- */

static struct verdict *find_verdict(struct list *l, uint32_t type)
{
	struct verdict *more;

	for (size_t i = 0; i < l->nr_verdicts; i++)
		if (l->verdicts[i].type == type)
			return &l->verdicts[i];
	more = realloc(l->verdicts, (l->nr_verdicts + 1) * sizeof(*more));
	if (!more)
		return NULL;
	l->verdicts = more;
	more += l->nr_verdicts++;
	memset(more, 0, sizeof(*more));
	more->type = type;
	return more;
}

/* Whether events of this one's kind can be counted here; NULL: out of memory. `of` names the kind
 * in the reason, which is given for all its events. An event that the kernel refuses does not speak
 * for its kind, so some more are tried. */
static const struct verdict *judge(struct list *l, const struct csw_event *event, const char *of)
{
	struct verdict *v = find_verdict(l, event->type);
	struct csw_event copy = *event;
	struct csw_error err;
	int ret;

	if (!v || v->usable || v->tries == TRIES_MAX)
		return v;
	snprintf(copy.name, sizeof(copy.name), "%s", of);
	ret = csw_tryout_event(&copy, 0, INSTEAD, &err);
	v->usable = !ret;
	if (!v->tries++)
		v->err = err;
	if (ret && ret != -EINVAL)
		v->tries = TRIES_MAX;
	return v;
}

/* Puts an event by the verdict on its kind, which the reason calls `of`. */
static int put_judged(struct list *l, const char *name, const char *group, const char *summary,
		      const struct csw_event *event, const char *of)
{
	const struct verdict *v;

	v = judge(l, event, of);
	if (!v)
		return csw_error_set(l->err, -ENOMEM, "out of memory");
	return put(l, name, group, summary, v->usable, v->usable ? NULL : v->err.text);
}

/* ---- events ---- */

/* One reason for all generic events where there is no PMU at all. */
static bool lacks_pmu(struct list *l, char *why, size_t bytes)
{
	char machine[256];

	if (l->pmu == PMU_NOT_TRIED)
		l->pmu = csw_tryout_pmu() ? PMU_THERE : PMU_MISSING;
	if (l->pmu == PMU_THERE)
		return false;
	snprintf(why, bytes, "there is no hardware PMU here: %s; %s",
		 csw_tryout_no_pmu(machine, sizeof(machine)), INSTEAD);
	return true;
}

static int put_common(struct list *l, const char *name, bool hardware, const char *summary)
{
	const char *group = hardware ? "hardware" : "software";
	bool raw = !strcmp(name, "rNNN");
	struct csw_event event;
	char why[TEXT_BYTES];
	struct csw_error err;
	int ret;

	if (!matches(l, name, group, summary))
		return 0;
	if (hardware && lacks_pmu(l, why, sizeof(why)))
		return put(l, name, group, summary, false, why);
	if (raw)
		return put(l, name, group, summary, true, NULL);
	ret = csw_catalogue_counter(name, &event, &err);
	if (ret)
		return put(l, name, group, summary, false, err.text);
	return put(l, name, group, summary, true, strcmp(event.became, name) ? event.became : NULL);
}

static int list_common(struct list *l)
{
	struct csw_lookup_name name;
	char summary[TEXT_BYTES];
	int ret = 0;

	for (size_t i = 0; !ret && csw_lookup_name(i, &name); i++) {
		ret = put_common(l, name.name, name.hardware, name.summary);
		if (ret || !name.alias)
			continue;
		snprintf(summary, sizeof(summary), "%s: %s", name.name, name.summary);
		ret = put_common(l, name.alias, name.hardware, summary);
	}
	return ret;
}

static int put_tracepoint(void *ctx, const char *subsys, const char *event)
{
	char name[2 * CSW_EVENT_NAME_BYTES + 2], summary[TEXT_BYTES];
	struct csw_event encoded = { .type = PERF_TYPE_TRACEPOINT };
	struct csw_error err = { .code = 0 };
	const struct verdict *v;
	struct list *l = ctx;
	bool known;
	int ret = 0;

	snprintf(name, sizeof(name), "%s:%s", subsys, event);
	snprintf(summary, sizeof(summary), "tracepoint of the kernel's part %s", subsys);
	if (!matches(l, name, "tracepoint", summary))
		return 0;
	/* Only until one was opened: a file less to read for each of some thousand others. */
	v = find_verdict(l, PERF_TYPE_TRACEPOINT);
	if (v && !v->usable && v->tries < TRIES_MAX)
		ret = csw_sysfs_tracepoint(subsys, event, &encoded.config, &known, &err);
	if (ret)
		return put(l, name, "tracepoint", summary, false, err.text);
	return put_judged(l, name, "tracepoint", summary, &encoded, "a tracepoint");
}

static int list_tracepoints(struct list *l)
{
	static const char name[] = "subsys:name", summary[] = "tracepoints of the kernel";
	struct csw_error err = { .code = 0 };
	int ret = csw_sysfs_each_tracepoint(put_tracepoint, l, &err);

	if (!err.code)
		return ret; /* all went well, or the caller's own end */
	/* Whatever the words: that none of them holds these words nobody can say. */
	return put(l, name, "tracepoint", summary, false, err.text);
}

static int put_pmu_event(void *ctx, const char *pmu, const char *event, const char *terms)
{
	char name[2 * CSW_EVENT_NAME_BYTES + 3], summary[TEXT_BYTES];
	struct csw_event encoded;
	struct csw_error err;
	struct list *l = ctx;
	int ret;

	snprintf(name, sizeof(name), "%s/%s/", pmu, event);
	snprintf(summary, sizeof(summary), "%s of PMU %s", terms, pmu);
	if (!matches(l, name, "sysfs", summary))
		return 0;
	memset(&encoded, 0, sizeof(encoded));
	ret = csw_sysfs_event(name, strlen(name), &encoded, &err);
	if (ret)
		return put(l, name, "sysfs", summary, false, err.text);
	return put_judged(l, name, "sysfs", summary, &encoded, pmu);
}

/* The description's first line; libpfm4's texts are long and may hold more. */
static void summarize(char *out, size_t bytes, const struct csw_pfm_name *name)
{
	snprintf(out, bytes, "%s%s%s", name->summary ? name->summary : "",
		 name->umask_summary ? ": " : "", name->umask_summary ? name->umask_summary : "");
	for (; *out; out++)
		if ((unsigned char)*out < ' ')
			*out = ' ';
}

static int put_pfm(struct list *l, const struct csw_pfm_name *pfm)
{
	char name[2 * CSW_EVENT_NAME_BYTES], summary[4 * TEXT_BYTES];
	struct csw_event event;
	struct csw_error err;
	int ret;

	snprintf(name, sizeof(name), "%s::%s%s%s", pfm->pmu, pfm->event, pfm->umask ? ":" : "",
		 pfm->umask ? pfm->umask : "");
	summarize(summary, sizeof(summary), pfm);
	if (!matches(l, name, pfm->pmu, summary))
		return 0;
	memset(&event, 0, sizeof(event));
	memset(&err, 0, sizeof(err));
	ret = csw_pfm_encode(name, &event, &err);
	if (ret && !err.text[0])
		csw_error_set(&err, ret, "%s: libpfm4 lists it but cannot encode it here", name);
	if (!ret && event.type == PERF_TYPE_TRACEPOINT)
		return 0; /* it stands under its own name already */
	if (ret)
		return put(l, name, pfm->pmu, summary, false, err.text);
	return put_judged(l, name, pfm->pmu, summary, &event, pfm->pmu);
}

static int list_pfm(struct list *l)
{
	struct csw_pfm_walk walk;
	struct csw_pfm_name name;
	int ret = 0;

	memset(&walk, 0, sizeof(walk));
	while (!ret && csw_pfm_next(&walk, &name))
		ret = put_pfm(l, &name);
	return ret;
}

static int list_events(struct list *l)
{
	int ret = list_common(l);

	if (!ret)
		ret = list_tracepoints(l);
	if (!ret)
		ret = csw_sysfs_each_pmu_event(put_pmu_event, l);
	return ret ? ret : list_pfm(l);
}

/* ---- drivers ---- */

static int list_drivers(struct list *l)
{
	static const struct csw_driver_ops *const drivers[] = { &csw_perf_driver, &csw_sim_driver };
	int ret = 0;

	for (size_t i = 0; !ret && i < NR(drivers); i++) {
		struct csw_error err;

		if (!matches(l, drivers[i]->name, "driver", drivers[i]->summary))
			continue;
		ret = drivers[i]->probe(&err);
		ret = put(l, drivers[i]->name, "driver", drivers[i]->summary, !ret,
			  ret ? err.text : NULL);
	}
	return ret;
}

int csw_list(uint32_t what, const char *const *words, size_t nr,
	     int (*fn)(void *ctx, const struct csw_item *item), void *ctx, struct csw_error *err)
{
	struct list l = { .words = words, .nr_words = nr, .fn = fn, .ctx = ctx, .err = err };
	int ret;

	switch (what) {
	case CSW_LIST_TRIGGERS:
		return list_triggers(&l);
	case CSW_LIST_EVENTS:
		ret = list_events(&l);
		free(l.verdicts);
		return ret;
	case CSW_LIST_DRIVERS:
		return list_drivers(&l);
	default:
		return csw_error_set(err, -EINVAL,
				     "there is no list %u; there are triggers, events, drivers",
				     what);
	}
}
