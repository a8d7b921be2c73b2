/* Triggers and events by the CPU's debug registers: an access to an address, counted and, as a
 * trigger, sampled. They work wherever perf has watchpoints, with or without a PMU. */
#ifndef CSW_ENGINE_WATCH_H
#define CSW_ENGINE_WATCH_H

#include <stdbool.h>

#include "csw/csw.h"
#include "engine/event.h"

/* The store of the incoming thread to the per-CPU pointer to the current task: once per context
 * switch. Fills in all but out->name. -EOPNOTSUPP: with the reason. */
int csw_watch_current(struct csw_event *out, struct csw_error *err);

/* Stores to WHERE (or loads, which x86 cannot tell from stores: then both): "0xADDR" or "ADDR" in
 * decimal, a variable of the kernel, also a per-CPU one, or "PID:0xADDR" of a user process.
 * -EINVAL: malformed; -ENOENT: no such variable; -ESRCH: no such process; -EFAULT: not mapped
 * there. */
int csw_watch_where(const char *where, bool loads, struct csw_event *out, struct csw_error *err);

/* "mem_load:" and "mem_store:": the rest, or NULL for another name. */
const char *csw_watch_name(const char *name, bool *loads);

#endif
