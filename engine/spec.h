/*
 * From text to plan: the driver's name, the trigger, the list of counters. Nobody parses user text
 * after this.
 */
#ifndef CSW_ENGINE_SPEC_H
#define CSW_ENGINE_SPEC_H

#include "engine/driver.h"

/* "auto", "perf", "sim", "sim:cpus=8": the driver, and a copy of what stands behind the colon
 * (NULL: nothing). NULL is auto: the best that works here, which never is a simulation. */
int csw_spec_driver(const char *text, const struct csw_driver_ops **ops, char **driver_opts,
		    struct csw_error *err);

/* Fills in trigger and counters of *plan: those of `events` in their order, and behind them the
 * stores that the trigger sees beside its loads, unless they are listed. force and driver_opts are
 * there already. sav 0: 1. */
int csw_spec_plan(struct csw_plan *plan, const struct csw_driver_ops *ops, const char *trigger,
		  const char *events, uint64_t sav, struct csw_error *err);

/* Why a plan's hardware events are refused on a CPU: `event` does not fit beside the others, of
 * which (with it, and the trigger) `fitting` do. Returns -EINVAL. */
int csw_spec_no_room(const struct csw_plan *plan, const char *event, unsigned cpu, unsigned fitting,
		     struct csw_error *err);

/* How many of a plan's events need a counter of the CPU's PMU, the trigger among them. */
unsigned csw_spec_hardware(const struct csw_plan *plan);

#endif
