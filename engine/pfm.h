/* libpfm4's names: every CPU model's own events. */
#ifndef CSW_ENGINE_PFM_H
#define CSW_ENGINE_PFM_H

#include <stdbool.h>
#include <stddef.h>

#include "csw/csw.h"
#include "engine/event.h"
#include "engine/names.h"

/* Fills type, config*, exclude_*, became and CSW_EVENT_HARDWARE. -ENOENT: no PMU of this machine
 * has an event of that name (and no more is said); -EINVAL: the event is there, but not with these
 * attributes; -EOPNOTSUPP: uncore events. */
int csw_pfm_encode(const char *name, struct csw_event *out, struct csw_error *err);

/* Offers the names of all events of this machine's PMUs, with "pmu::" before them where the wanted
 * name has it. */
void csw_pfm_offer(struct csw_nearest *nearest);

/* The core PMUs that libpfm4 takes this machine to have, by CPUID alone: "skl", or "adl_glc,
 * adl_grt"; how many. */
unsigned csw_pfm_core(char *names, size_t bytes);

/* What to say in their place where there are none: *text. */
const char *csw_pfm_no_core(char *text, size_t bytes);

/* Whether the environment (LIBPFM_FORCE_PMU) makes libpfm4 see a CPU that this need not be. */
bool csw_pfm_is_told(void);

/* Some PMUs of other machines that have this event, "nhm, wsm, ..."; false when none has. */
bool csw_pfm_elsewhere(const char *name, char *pmus, size_t bytes);

/* One name for lists; all strings are libpfm4's own and stay. */
struct csw_pfm_name {
	const char *pmu, *event;
	const char *umask; /* NULL: the event by itself */
	const char *summary, *umask_summary;
};

/* Where a walk over all names of this machine's PMUs stands; zeroed before the first. */
struct csw_pfm_walk {
	int pmu, event, attr;
	bool inside;
};

/* The next name: each event, then each of its unit masks. false: there is none. The lock is not
 * held between two steps, so that whoever takes them may do as he likes. */
bool csw_pfm_next(struct csw_pfm_walk *walk, struct csw_pfm_name *out);

#endif
