/* What several reports say in the same way. */
#ifndef CSW_ENGINE_REPORT_COMMON_H
#define CSW_ENGINE_REPORT_COMMON_H

#include <stdbool.h>

#include "csw/csw.h"
#include "engine/event.h"
#include "engine/record.h"

/* Each byte may be escaped; "#32" and the NUL. */
#define CSW_KEY_BYTES (4 * CSW_EVENT_NAME_BYTES + 4)

/* The counters' names, escaped, each different although an event may be counted twice: "cycles",
 * "cycles#2". */
struct csw_keys {
	size_t nr;
	char text[CSW_COUNTERS_MAX][CSW_KEY_BYTES];
};

void csw_report_keys(struct csw_keys *keys, const struct csw_table *t);

/* The kind as reports for programs have it: "process", "comm", "cgroup" and "cpu" where threads are
 * grouped. */
const char *csw_report_kind(const struct csw_table *t, const struct csw_row *row);

/* Room for the name of a row; longer ones are cut. */
#define CSW_LABEL_BYTES 2048

/* The name of a row for people, escaped: the thread's, the cgroup's short one, the CPU's number; in
 * brackets what is no thread of user space. Returns out, which holds CSW_LABEL_BYTES. */
const char *csw_report_name(char *out, const struct csw_table *t, const struct csw_row *row);

/* The short name of the cgroup, escaped; "-" when it is not known. The same out. */
const char *csw_report_cgroup(char *out, const struct csw_row *row);

/* A value as it is shown: where the counter took turns, what it would have counted all the time.
 * False: there is none, it was not counted. *estimate: it is one, for that reason or because it
 * holds shares of slices of several threads. */
bool csw_report_value(const struct csw_count *count, uint64_t *value, bool *estimate);

/* The machine's total in the same way. */
uint64_t csw_report_total(const struct csw_counter *c, bool *scaled);

/* What part of the machine's total a value is, and how much of it there was in a second; false:
 * there is no such thing. */
bool csw_report_share(const struct csw_counter *c, uint64_t value, double *share);
bool csw_report_per_second(uint64_t duration_ns, uint64_t value, double *per_second);

/* What a trigger for loads saw that sees stores as well. */
struct csw_accesses {
	size_t counter; /* of the stores */
	uint64_t all, stores, loads;
	bool known; /* else stores and loads say nothing */
};

/* False: the trigger is no such. */
bool csw_report_accesses(const struct csw_table *t, const struct csw_summary *s,
			 struct csw_accesses *out);

/* total - rows of a counter without loss of sign: 0 when conservation holds. */
int64_t csw_report_difference(const struct csw_counter *c);

#endif
