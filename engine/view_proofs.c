/*
 * Do the numbers of a table hold? Everything that can be checked without knowing the truth, and in
 * words which check failed.
 *
 * Invariant: a table is broken exactly if there is a reason.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/view_table.h"

__attribute__((format(printf, 2, 3))) static void add_reason(struct csw_table *t,
							     const char *format, ...)
{
	size_t used = strlen(t->broken_why);
	va_list args;

	if (used)
		used += (size_t)snprintf(t->broken_why + used, CSW_WHY_BYTES - used, "; ");
	if (used >= CSW_WHY_BYTES)
		return;
	va_start(args, format);
	vsnprintf(t->broken_why + used, CSW_WHY_BYTES - used, format, args);
	va_end(args);
}

static const char *name_of(const struct csw_table *t, const struct csw_wrong_reading *w)
{
	switch (w->what) {
	case CSW_READING_TRIGGER:
		return "the trigger";
	case CSW_READING_ENABLED:
		return "the time that the counters were enabled";
	case CSW_READING_RUNNING:
		return "the time that the counters ran";
	default:
		return t->counters[w->what - CSW_READING_COUNTER].name;
	}
}

static void check_readings(struct csw_table *t, const struct csw_wrong_reading *w)
{
	if (w)
		add_reason(t,
			   "a reading of %s was wrong, on CPU %" PRIu32 " it went %sfrom %" PRIu64
			   " to %" PRIu64 "%s",
			   name_of(t, w), w->cpu, w->now < w->before ? "back " : "", w->before,
			   w->now, w->off ? " while it was off" : "");
}

/* what: about the first of nr counters. */
static void add_counters(struct csw_table *t, const char *what, unsigned first, unsigned nr)
{
	if (nr == 1)
		add_reason(t, "%s: %s", what, t->counters[first].name);
	else if (nr)
		add_reason(t, "%s: %s and %u more", what, t->counters[first].name, nr - 1);
}

static void check_sums(struct csw_table *t)
{
	unsigned first = 0, nr = 0;

	for (unsigned j = t->nr_counters; j-- > 0;) {
		if (t->counters[j].total == t->counters[j].rows)
			continue;
		first = j;
		nr++;
	}
	add_counters(t, "the rows are not what the counter counted", first, nr);
}

/* A clock that runs with the CPUs cannot have run for longer than they did: a reading was wrong. */
static void check_clocks(struct csw_table *t)
{
	const uint64_t cpu_ns = t->summary.cpu_ns, slack_ns = cpu_ns / 100 + 100000000;
	unsigned first = 0, nr = 0;

	for (unsigned j = cpu_ns ? t->nr_counters : 0; j-- > 0;) {
		struct csw_view_counter *c = &t->counters[j];

		if (!c->nanoseconds || (c->flags & (CSW_COUNT_ESTIMATE | CSW_COUNT_SCALED)) ||
		    c->total <= cpu_ns + slack_ns)
			continue;
		c->flags |= CSW_COUNT_IMPOSSIBLE;
		first = j;
		nr++;
	}
	add_counters(t, "a clock shows more time than the CPUs had", first, nr);
}

static void check_time(struct csw_table *t)
{
	const struct csw_summary *s = &t->summary;

	if (s->cpu_ns && s->cpu_ns != s->rows_ns)
		add_reason(t, "the rows' time is not the CPUs' time");
}

static void check_completeness(struct csw_table *t)
{
	const struct csw_summary *s = &t->summary;

	if (s->triggers != s->sav * s->samples + s->lost + s->throttled + s->unseen + s->open)
		add_reason(t, "the trigger's occurrences are not all accounted for");
}

void csw_view_prove(struct csw_table *t, const struct csw_wrong_reading *wrong)
{
	check_readings(t, wrong);
	check_sums(t);
	check_clocks(t);
	check_time(t);
	check_completeness(t);
	t->summary.broken = t->broken_why[0] != '\0';
	t->summary.broken_why = t->summary.broken ? t->broken_why : NULL;
}
