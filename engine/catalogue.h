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

#include <stdbool.h>
#include <stddef.h>

#include "csw/csw.h"
#include "engine/event.h"

/* See csw_driver_ops.resolve_counter, resolve_trigger and force_trigger for what they return. */
int csw_catalogue_counter(const char *name, struct csw_event *out, struct csw_error *err);
int csw_catalogue_trigger(const char *name, uint64_t sav, struct csw_trigger *out,
			  struct csw_error *err);
int csw_catalogue_force(const char *name, uint64_t sav, struct csw_trigger *out,
			struct csw_error *err);

/* "skl::TLB_FLUSH:STLB_ANY 0x20bd, hardware, sav 2, 1 or more per process switch, 0 per thread
 * switch". */
const char *csw_catalogue_describe(const struct csw_trigger *trigger, char *text, size_t bytes);
#define CSW_CATALOGUE_DESCRIPTION_BYTES 320

/* One line on why there are no hardware counters here: "this is a virtual machine (KVM) whose ...".
 */
const char *csw_catalogue_no_pmu(char *text, size_t bytes);

/* A name that every machine knows, wherever it can be counted. */
struct csw_catalogue_name {
	const char *name, *alias; /* alias: NULL where there is none */
	const char *summary;
	bool hardware;
};

/* The i-th of them, from 0; false behind the last. Static storage. */
bool csw_catalogue_name(size_t i, struct csw_catalogue_name *out);

#endif
