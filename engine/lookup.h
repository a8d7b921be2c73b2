/*
 * What a name is: its text taken apart, and the event in the kernel's numbering that it stands for.
 *
 * Order of look-up: software events, tracepoints `subsys:name`, sysfs PMUs `pmu/terms/`, raw
 * `rNNN`, then libpfm4. Modifiers `:u` `:k` may follow any of them. A name never silently becomes
 * another event.
 *
 * Invariant: only a name that is known comes back as an event; the others get the nearest names, or
 * the reason why this machine has none of that kind. Whether the kernel can count it nobody has
 * asked yet (engine/tryout).
 */
#ifndef CSW_ENGINE_LOOKUP_H
#define CSW_ENGINE_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>

#include "csw/csw.h"
#include "engine/event.h"

#define CSW_COUNTER_INSTEAD                                                                        \
	"works here: software events and tracepoints (--event=page-faults,task-clock); "           \
	"--driver=sim shows it simulated"
#define CSW_TRIGGER_INSTEAD                                                                        \
	"works here: --trigger=switch; --driver=sim shows hardware triggers simulated"

/* A name while it is looked up. */
struct csw_lookup {
	char head[CSW_EVENT_NAME_BYTES]; /* without :u :k */
	const char *suffix;              /* ":u", ":k", ":uk" or "" */
	bool trigger;
	struct csw_event *out;
	struct csw_error *err;
};

/* Takes the text into out->name, head and suffix. -ENOENT: it can be no name. */
int csw_lookup_begin(struct csw_lookup *l, const char *name);

/* What head stands for, with suffix, into *out. -ENOENT: nobody knows it; -EOPNOTSUPP: not here;
 * -EINVAL: not so. */
int csw_lookup_resolve(struct csw_lookup *l);

/* "page-faults:x": the event is there, the modifier is not. */
bool csw_lookup_bad_modifier(const struct csw_lookup *l);

/* "; and there is no hardware PMU here: ...", or "" where there is one. */
const char *csw_lookup_lack(const struct csw_lookup *l, char *text, size_t bytes);
#define CSW_LOOKUP_LACK_BYTES 1024

/* A name that every machine knows, wherever it can be counted. */
struct csw_lookup_name {
	const char *name, *alias; /* alias: NULL where there is none */
	const char *summary;
	bool hardware;
};

/* The i-th of them, from 0; false behind the last. Static storage. */
bool csw_lookup_name(size_t i, struct csw_lookup_name *out);

#endif
