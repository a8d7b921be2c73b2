/*
 * The table of triggers: what can stand for a context switch on which CPU, and why not elsewhere.
 */
#ifndef CSW_ENGINE_TRIGGERS_H
#define CSW_ENGINE_TRIGGERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/cpu.h"
#include "engine/event.h"

/* In the order of lists. */
enum csw_trigger_id {
	CSW_TRIGGER_AUTO,
	CSW_TRIGGER_SWITCH,
	CSW_TRIGGER_SEG_LOAD,
	CSW_TRIGGER_LDT_LOAD,
	CSW_TRIGGER_DESC_LOAD,
	CSW_TRIGGER_MEM_LOAD,
	CSW_TRIGGER_MEM_STORE,
	CSW_TRIGGER_PID_CHANGE,
	CSW_TRIGGER_TID_CHANGE,
	CSW_TRIGGER_TLB_FLUSH,
	CSW_TRIGGER_IDS,
};

struct csw_trigger_name {
	const char *name;
	const char *written; /* "mem_load:WHERE" where a place must follow; else the name */
	const char *summary;
};
extern const struct csw_trigger_name csw_trigger_names[CSW_TRIGGER_IDS];

/* Which name this text begins with, alone or before a ':'; CSW_TRIGGER_IDS: none. */
uint32_t csw_trigger_id(const char *text);

/* csw_trigger_entry.needs */
#define CSW_NEEDS_NO_FSGSBASE 0x1u
#define CSW_NEEDS_PCID 0x2u       /* where the kernel isolates its page tables */
#define CSW_NEEDS_CONTEXTIDR 0x4u /* CONFIG_PID_IN_CONTEXTIDR */
#define CSW_NEEDS_CALM_TTBR 0x8u  /* no page-table switch at every entry or user access */
#define CSW_NEEDS_LISTED 0x10u    /* the kernel lists it; it would open the code anyway */

struct csw_trigger_entry {
	uint32_t ids;      /* a bit for each csw_trigger_id that this event stands for */
	const char *cpus;  /* words, any of which may hold: a core PMU of libpfm4 ("skl"), a CPU
			      ("VENDOR/FAMILY/MODEL" as csw_cpu has them, or without the model), an
			      event by which the kernel's PMU driver says that the CPU has it
			      ("has:cid_write_retired"), "*" */
	const char *event; /* a name of libpfm4's behind "skl::", or "pmu/event/"; NULL: there is
			      none; or, with "has:", what the kernel calls it */
	uint64_t code;     /* as raw, for where libpfm4 does not know the CPU */
	struct csw_rate process, thread;
	uint32_t sav;       /* to be used where nobody asks for another */
	uint32_t sample_of; /* enum csw_sample_of */
	uint32_t needs;     /* CSW_NEEDS_* */
	bool exact;         /* every switch and nothing else, whatever kind of switch */
	const char *why;    /* why there is no event, or why it does not work; NULL: it does */
};

/* Which machine is asked for. */
struct csw_trigger_machine {
	char cores[128]; /* csw_pfm_core: "skl", "adl_glc, adl_grt"; "": unknown to libpfm4 */
	struct csw_cpu cpu;
};

/* The entry for this machine; never NULL for names that the CPU's PMU might count, NULL for auto,
 * switch, and what only debug registers watch. */
const struct csw_trigger_entry *csw_trigger_find(uint32_t id, const struct csw_trigger_machine *m);

/* The entry of this machine whose event has this raw code: an event by its own name. NULL: none. */
const struct csw_trigger_entry *csw_trigger_find_code(uint64_t code,
						      const struct csw_trigger_machine *m);

/* How the entry's event is written for this machine: "skl::TLB_FLUSH:STLB_ANY",
 * "armv8_pmuv3_0/cid_write_retired/", "r20bd". */
void csw_trigger_event_name(const struct csw_trigger_entry *e, const struct csw_trigger_machine *m,
			    char *out, size_t bytes);

/* Whether something that the entry needs is missing on the running machine; then why. */
bool csw_trigger_unmet(const struct csw_trigger_entry *e, char *why, size_t bytes);

/* "2", "1 or more", "2 to 3", "an unknown number". */
const char *csw_rate_text(const struct csw_rate *rate, char *text, size_t bytes);

/* For tests: the i-th entry; NULL behind the last. */
const struct csw_trigger_entry *csw_trigger_entry_at(size_t i);

#endif
