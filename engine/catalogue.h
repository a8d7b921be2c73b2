/*
 * The catalogue: every name that a user may write for an event of the live machine, and what it
 * becomes.
 *
 * Order of look-up: software events, tracepoints `subsys:name`, sysfs PMUs `pmu/terms/`, raw
 * `rNNN`, then libpfm4. Modifiers `:u` `:k` may follow any of them. A name never silently becomes
 * another event.
 */
#ifndef CSW_ENGINE_CATALOGUE_H
#define CSW_ENGINE_CATALOGUE_H

#include "engine/event.h"
#include "csw/csw.h"

/* See csw_driver_ops.resolve_counter and resolve_trigger for what they return. */
int csw_catalogue_counter(const char *name, struct csw_event *out, struct csw_error *err);
int csw_catalogue_trigger(const char *name, uint64_t sav, struct csw_trigger *out,
			  struct csw_error *err);

/* One line on why there are no hardware counters here: "this is a virtual machine (KVM) whose ...".
 */
const char *csw_catalogue_no_pmu(char *text, size_t bytes);

#endif
