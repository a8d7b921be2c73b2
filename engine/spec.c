/* From text to plan; see spec.h. */
#include "engine/spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/error.h"
#include "engine/names.h"
#include "engine/text.h"

static const struct csw_driver_ops *const drivers[] = { &csw_perf_driver, &csw_sim_driver };
#define NR_DRIVERS (sizeof(drivers) / sizeof(drivers[0]))

static int no_driver(const char *name, struct csw_error *err)
{
	char known[256] = "auto", shown[128];

	for (size_t i = 0; i < NR_DRIVERS; i++) {
		strcat(known, ", ");
		strcat(known, drivers[i]->name);
	}
	return csw_error_set(err, -ENOENT, "no driver is called \"%s\": there are %s",
			     csw_escape(shown, sizeof(shown), name), known);
}

int csw_spec_driver(const char *text, const struct csw_driver_ops **ops, char **driver_opts,
		    struct csw_error *err)
{
	const char *colon;
	size_t length;

	*driver_opts = NULL;
	*ops = &csw_perf_driver;
	if (!text || !strcmp(text, "auto"))
		return 0;
	colon = strchr(text, ':');
	length = colon ? (size_t)(colon - text) : strlen(text);
	for (size_t i = 0; i < NR_DRIVERS; i++) {
		if (strlen(drivers[i]->name) != length ||
		    strncmp(drivers[i]->name, text, length) != 0)
			continue;
		*ops = drivers[i];
		if (colon) {
			*driver_opts = strdup(colon + 1);
			if (!*driver_opts)
				return csw_error_set(err, -ENOMEM, "out of memory");
		}
		return 0;
	}
	*ops = NULL;
	return no_driver(text, err);
}

/* Commas split the list, but not within slashes (cpu/event=0x3c,umask=0/). Returns the element's
 * end. */
static const char *element_end(const char *from)
{
	int in_slashes = 0;

	for (; *from && (in_slashes || *from != ','); from++)
		in_slashes ^= *from == '/';
	return from;
}

/* A missing permission is said when nothing else is wrong: a user who gets it shall not learn only
 * then that a name is mistyped. Where two are missing, both are said. */
static int put_off(int ret, struct csw_error *denied, const struct csw_error *err)
{
	char before[CSW_ERROR_BYTES];

	if (ret != -EACCES)
		return ret;
	denied->code = ret;
	if (!err || strstr(denied->text, err->text))
		return 0;
	memcpy(before, denied->text, sizeof(before));
	csw_error_set(denied, ret, "%s%s%s", before, *before ? "; and " : "", err->text);
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* What other tools take, and no driver knows. */
static int refuse_notation(const char *name, struct csw_error *err)
{
	char shown[4 * CSW_EVENT_NAME_BYTES];

	if (strpbrk(name, "{}"))
		return csw_error_set(
			err, -EINVAL,
			"%s: all events are one group that is read together: leave out "
			"the braces",
			csw_escape(shown, sizeof(shown), name));
	if (strpbrk(name, "*?"))
		return csw_error_set(err, -EINVAL,
				     "%s: an event has one whole name, and patterns are none; "
				     "'list events WORD' finds names",
				     csw_escape(shown, sizeof(shown), name));
	return 0;
}

static int add_counter(struct csw_plan *plan, const struct csw_driver_ops *ops, const char *from,
		       size_t length, struct csw_error *denied, struct csw_error *err)
{
	char name[CSW_EVENT_NAME_BYTES];
	struct csw_event *event = &plan->counters[plan->nr_counters];
	int ret;

	for (; length && is_blank(*from); length--)
		from++;
	while (length && is_blank(from[length - 1]))
		length--;
	if (length == 0)
		return csw_error_set(
			err, -EINVAL,
			"the list of events has an empty element: write NAME,NAME,...");
	if (length >= sizeof(name))
		return csw_error_set(err, -EINVAL,
				     "an event's name has %zu characters: at most %zu", length,
				     sizeof(name) - 1);
	if (plan->nr_counters == CSW_COUNTERS_MAX)
		return csw_error_set(err, -EINVAL, "more than %d events", CSW_COUNTERS_MAX);
	memcpy(name, from, length);
	name[length] = '\0';
	ret = refuse_notation(name, err);
	if (ret == 0)
		ret = put_off(ops->resolve_counter(name, event, err), denied, err);
	if (ret < 0)
		return ret;
	for (unsigned i = 0; i < plan->nr_counters; i++) {
		if (!strcmp(plan->counters[i].name, event->name))
			return csw_error_set(err, -EINVAL, "event %s is listed twice", name);
	}
	plan->nr_counters++;
	return 0;
}

static bool is_same_event(const struct csw_event *a, const struct csw_event *b)
{
	return a->type == b->type && a->config == b->config && a->config1 == b->config1 &&
	       a->config2 == b->config2 && a->bp_type == b->bp_type &&
	       a->exclude_user == b->exclude_user && a->exclude_kernel == b->exclude_kernel &&
	       a->exclude_hv == b->exclude_hv;
}

/* A trigger that sees stores beside the loads that it is named after: how many is counted as well,
 * or nobody could tell how many loads there were. */
static int add_stores(struct csw_plan *plan, const struct csw_driver_ops *ops,
		      struct csw_error *denied, struct csw_error *err)
{
	static const char loads[] = "mem_load:", stores[] = "mem_store:";
	const struct csw_event *trigger = &plan->trigger.event;
	char name[CSW_EVENT_NAME_BYTES + sizeof(stores)];
	struct csw_event event;
	int ret;

	plan->stores = 0;
	if (!(trigger->flags & CSW_EVENT_STORES_TOO))
		return 0;
	snprintf(name, sizeof(name), "%s%s", stores, trigger->name + strlen(loads));
	if (strlen(name) >= sizeof(event.name))
		return csw_error_set(err, -EINVAL,
				     "trigger %s sees stores as well, and the name of the event "
				     "that counts them would be too long: write a shorter one",
				     trigger->name);
	ret = ops->resolve_counter(name, &event, err);
	if (ret < 0)
		return put_off(ret, denied, err);
	while (plan->stores < plan->nr_counters &&
	       !is_same_event(&plan->counters[plan->stores], &event))
		plan->stores++;
	plan->stores++;
	if (plan->stores <= plan->nr_counters)
		return 0;
	if (plan->nr_counters == CSW_COUNTERS_MAX)
		return csw_error_set(err, -EINVAL,
				     "trigger %s sees stores as well, which one more event has to "
				     "count: at most %d with it",
				     trigger->name, CSW_COUNTERS_MAX);
	plan->counters[plan->nr_counters++] = event;
	return 0;
}

int csw_spec_plan(struct csw_plan *plan, const struct csw_driver_ops *ops, const char *trigger,
		  const char *events, uint64_t sav, struct csw_error *err)
{
	struct csw_error denied = { .code = 0 };
	int ret;

	plan->nr_counters = 0;
	if (!events || !*events)
		return csw_error_set(
			err, -EINVAL,
			"no event is named: say what to count, for example page-faults,task-clock");
	ret = (ops->force_trigger && plan->force ? ops->force_trigger : ops->resolve_trigger)(
		trigger, sav ? sav : 1, &plan->trigger, err);
	if (put_off(ret, &denied, err) < 0)
		return ret;
	for (const char *from = events;; from++) {
		const char *end = element_end(from);

		ret = add_counter(plan, ops, from, (size_t)(end - from), &denied, err);
		if (ret < 0)
			return ret;
		if (!*end)
			break;
		from = end;
	}
	ret = add_stores(plan, ops, &denied, err);
	if (ret < 0)
		return ret;
	if (denied.code)
		return csw_error_set(err, denied.code, "%s", denied.text);
	return ops->settle ? ops->settle(plan, err) : 0;
}

unsigned csw_spec_hardware(const struct csw_plan *plan)
{
	unsigned nr = (plan->trigger.event.flags & CSW_EVENT_HARDWARE) != 0;

	for (unsigned i = 0; i < plan->nr_counters; i++)
		nr += (plan->counters[i].flags & CSW_EVENT_HARDWARE) != 0;
	return nr;
}

int csw_spec_no_room(const struct csw_plan *plan, const char *event, unsigned cpu, unsigned fitting,
		     struct csw_error *err)
{
	bool trigger = plan->trigger.event.flags & CSW_EVENT_HARDWARE;

	if (plan->multiplex)
		return csw_error_set(err, -EINVAL,
				     "event %s has no room on the PMU of CPU %u, not even with the "
				     "trigger alone%s: leave it out",
				     event, cpu,
				     trigger ? ", which is an event of the hardware, too" : "");
	return csw_error_set(err, -EINVAL,
			     "event %s does not fit into one group with the others: the PMU of CPU "
			     "%u has room for %u of these %u hardware events%s; ask for fewer, or "
			     "let them take turns, with scaled values (--multiplex)",
			     event, cpu, fitting, csw_spec_hardware(plan),
			     trigger ? ", the trigger among them" : "");
}
