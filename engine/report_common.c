/*
 * What several reports say in the same way; see report_common.h.
 *
 * Invariant: JSON and CSV have the same names for the same things.
 */
#include "engine/report_common.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/cgroup_name.h"
#include "engine/text.h"
#include "engine/view.h"

static bool is_taken(const struct csw_keys *keys, const char *key)
{
	for (size_t i = 0; i < keys->nr; i++) {
		if (strcmp(keys->text[i], key) == 0)
			return true;
	}
	return false;
}

void csw_report_keys(struct csw_keys *keys, const struct csw_table *t)
{
	struct csw_counter c;

	keys->nr = 0;
	for (size_t j = 0; csw_table_counter(t, j, &c) == 0; j++) {
		char *key = keys->text[j];
		size_t bytes = strlen(csw_escape(key, CSW_KEY_BYTES - 4, c.name));

		for (unsigned n = 2; is_taken(keys, key) && n <= CSW_COUNTERS_MAX; n++)
			snprintf(key + bytes, CSW_KEY_BYTES - bytes, "#%u", n);
		keys->nr++;
	}
}

const char *csw_report_kind(const struct csw_table *t, const struct csw_row *row)
{
	static const char *const names[] = {
		[CSW_BY_THREAD] = "thread", [CSW_BY_PROCESS] = "process", [CSW_BY_COMM] = "comm",
		[CSW_BY_CGROUP] = "cgroup", [CSW_BY_CPU] = "cpu",
	};

	if (row->kind == CSW_KIND_THREAD)
		return names[csw_view_by(t)];
	return csw_kind_name(row->kind);
}

static const char *escape_cgroup(char *out, size_t bytes, const char *path)
{
	char name[CSW_LABEL_BYTES];

	return csw_escape(out, bytes, csw_cgroup_name(name, sizeof(name), path));
}

const char *csw_report_cgroup(char *out, const struct csw_row *row)
{
	return row->cgroup ? escape_cgroup(out, CSW_LABEL_BYTES, row->cgroup) : strcpy(out, "-");
}

/* A thread may call itself "[idle]". Its PID gives it away; by name, where there is none, only the
 * reports for programs do, which have the kind. */
const char *csw_report_name(char *out, const struct csw_table *t, const struct csw_row *row)
{
	uint32_t by = csw_view_by(t);
	bool has_ids = by == CSW_BY_THREAD || by == CSW_BY_PROCESS;
	bool plain = row->kind == CSW_KIND_THREAD || (row->kind == CSW_KIND_KERNEL && has_ids);
	char name[CSW_LABEL_BYTES - 16] = ""; /* "[unknown] " stands before it */

	if (by == CSW_BY_CGROUP && row->cgroup)
		escape_cgroup(name, sizeof(name), row->cgroup);
	else if (by == CSW_BY_CPU && row->cpu >= 0)
		snprintf(name, sizeof(name), "%" PRId32, row->cpu);
	else if (has_ids || by == CSW_BY_COMM)
		csw_escape(name, sizeof(name), row->comm);
	/* Of a thread that /proc hid and that took no name since. (One may call itself "", too.) */
	if (plain && !*name)
		strcpy(name, "(not known)");
	if (plain)
		return strcpy(out, name);
	snprintf(out, CSW_LABEL_BYTES, "[%s]%s%s", csw_kind_name(row->kind), *name ? " " : "",
		 name);
	return out;
}

bool csw_report_value(const struct csw_count *count, uint64_t *value, bool *estimate)
{
	int ret = csw_count_scaled(count, value);

	*estimate = ret > 0 || (count->flags & CSW_COUNT_SHARED);
	return ret >= 0;
}

uint64_t csw_report_total(const struct csw_counter *c, bool *scaled)
{
	struct csw_count whole = { .value = c->total,
				   .enabled_ns = c->enabled_ns,
				   .running_ns = c->running_ns,
				   .flags = c->flags };
	uint64_t total;

	csw_report_value(&whole, &total, scaled);
	return total;
}

bool csw_report_share(const struct csw_counter *c, uint64_t value, double *share)
{
	bool scaled;

	if ((c->flags & CSW_COUNT_NOT_COUNTED) || !c->total)
		return false;
	*share = (double)value / (double)csw_report_total(c, &scaled);
	return true;
}

bool csw_report_per_second(uint64_t duration_ns, uint64_t value, double *per_second)
{
	if (!duration_ns)
		return false;
	*per_second = (double)value * 1e9 / (double)duration_ns;
	return true;
}

int64_t csw_report_difference(const struct csw_counter *c)
{
	return (int64_t)(c->total - c->rows);
}

bool csw_report_accesses(const struct csw_table *t, const struct csw_summary *s,
			 struct csw_accesses *out)
{
	struct csw_counter c;

	if (!s->stores || csw_table_counter(t, s->stores - 1, &c) < 0)
		return false;
	/* Two watches at one place: the one that sees all cannot have seen less. */
	*out = (struct csw_accesses){
		.counter = s->stores - 1,
		.all = s->accesses,
		.stores = c.total,
		.loads = s->accesses - c.total,
		.known = !(c.flags & CSW_COUNT_NOT_COUNTED) && c.total <= s->accesses,
	};
	return true;
}
