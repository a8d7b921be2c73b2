/*
 * The simulated machine's models: which events its context switches cause, how many of each by the
 * kind of switch, and what a trigger's name is on it.
 *
 * Invariant: an event of enum csw_sim_event is at most one source of a model.
 */
#ifndef CSW_DRIVERS_SIM_MODELS_H
#define CSW_DRIVERS_SIM_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From whom to whom. The idle task and every kernel thread are processes of their own. */
enum csw_sim_switch_kind {
	CSW_SIM_TO_THREAD,  /* from thread to thread of one process */
	CSW_SIM_TO_PROCESS, /* from process to process of user space */
	CSW_SIM_TO_IDLE,
	CSW_SIM_FROM_IDLE,
	CSW_SIM_TO_KERNEL, /* to a kernel thread, not from idle */
	CSW_SIM_FROM_KERNEL,
	CSW_SIM_SWITCH_KINDS,
};

/* csw_sim_source.flags */
#define CSW_SIM_WATCH 0x1u       /* a debug register: no counter, and no least period */
#define CSW_SIM_LDT_ONLY 0x2u    /* only to or from a process with an LDT */
#define CSW_SIM_ALSO_ELSE 0x4u   /* interrupts and user code cause it as well: option spurious */
#define CSW_SIM_STORES_TOO 0x10u /* a watch for loads that sees stores as well */
#define CSW_SIM_SHOWS_NEXT 0x8u  /* the overflow finds the incoming thread in `current` */

/* An event that a context switch causes. */
struct csw_sim_source {
	const char *name;  /* as trigger and as counter; with a ':' before a place in memory */
	const char *alias; /* another name, NULL: none */
	const char *what;  /* what is counted in truth */
	uint32_t event;    /* enum csw_sim_event */
	uint32_t flags;
	uint8_t counts[CSW_SIM_SWITCH_KINDS]; /* occurrences per switch */
};

/* Why a model cannot have a trigger. */
struct csw_sim_refusal {
	const char *name;
	const char *why;
};

struct csw_sim_model {
	const char *name;
	const char *best;       /* the trigger that `auto` becomes */
	uint64_t place_address; /* of the only variable in memory that is known here, 0: none */
	const struct csw_sim_source *sources;
	size_t nr_sources;
	const struct csw_sim_refusal *refusals;
	size_t nr_refusals;
};

/* The models' names in the order of their numbers, ended by NULL; 0 is the default. */
extern const char *const csw_sim_model_names[];

/* NULL: out of range. */
const struct csw_sim_model *csw_sim_model_get(uint64_t number);

/* By name or alias; a place also by its address. NULL: the model has none. */
const struct csw_sim_source *csw_sim_source_find(const struct csw_sim_model *model,
						 const char *name);

/* The one that stands for this enum csw_sim_event, or NULL. */
const struct csw_sim_source *csw_sim_source_of(const struct csw_sim_model *model, uint32_t event);

/* Occurrences at every switch, whatever its kind; 0: they differ, or not every one has some. */
uint32_t csw_sim_source_per_switch(const struct csw_sim_source *source);

/* The fewest at a switch that has any. */
uint32_t csw_sim_source_least(const struct csw_sim_source *source);

/* Why the model has no such trigger: a sentence, or NULL: nothing is known. */
const char *csw_sim_model_why_not(const struct csw_sim_model *model, const char *name);

#endif
