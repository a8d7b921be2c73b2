/*
 * The catalogue: every name that a user may write for an event of the live machine, and what it
 * becomes.
 *
 * Invariant: what is returned counts what the name says, on this machine, now: the kernel was asked
 * (engine/tryout). Every other outcome is an error that says why, and what works instead.
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

#endif
