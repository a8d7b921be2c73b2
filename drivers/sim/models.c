/*
 * See models.h. The counts are simplified from what processors of these families do; calibration
 * has to find them out, as on a real machine.
 *
 * Invariant: these tables are the only place that knows what a trigger's name is on a model.
 */
#include "drivers/sim/models.h"

#include <stdlib.h>
#include <string.h>

#include "drivers/sim/pmu.h"

/* In the order of enum csw_sim_switch_kind: thread, process, to idle, from idle, to and from a
 * kernel thread. */
#define EVERY(n)                                                                                   \
	{                                                                                          \
		n, n, n, n, n, n                                                                   \
	}
#define PROCESS_ONLY(n)                                                                            \
	{                                                                                          \
		0, n, n, n, n, n                                                                   \
	}

/* A watchpoint on x86 sees stores, or loads and stores; not loads alone. */
#define X86_CURRENT_TASK                                                                           \
	{ "mem_store:current_task",           "tid_change",                                        \
	  "simulated store to current_task",  CSW_SIM_TASK_STORES,                                 \
	  CSW_SIM_WATCH | CSW_SIM_SHOWS_NEXT, EVERY(1) },                                          \
	{                                                                                          \
		"mem_load:current_task", NULL,                                                     \
			"simulated loads and stores at current_task: one of each in a switch",     \
			CSW_SIM_TASK_ACCESSES,                                                     \
			CSW_SIM_WATCH | CSW_SIM_STORES_TOO | CSW_SIM_SHOWS_NEXT |                  \
				CSW_SIM_ALSO_ELSE,                                                 \
			EVERY(2)                                                                   \
	}

static const struct csw_sim_source generic_sources[] = {
	{ "seg_load", NULL, "simulated segment load in the context switch", CSW_SIM_SEG_LOADS,
	  CSW_SIM_ALSO_ELSE, EVERY(1) },
};

/* FS and GS are loaded at every switch. A kernel thread and the idle task run on what is in the
 * TLB; who comes after them pays. */
static const struct csw_sim_source amd_sources[] = {
	{ "seg_load", NULL, "simulated loads of FS and GS in the context switch", CSW_SIM_SEG_LOADS,
	  CSW_SIM_ALSO_ELSE, EVERY(2) },
	{ "tlb_flush",
	  NULL,
	  "simulated TLB flush of a change of address space",
	  CSW_SIM_TLB_FLUSHES,
	  CSW_SIM_ALSO_ELSE,
	  { 0, 1, 0, 1, 0, 1 } },
	X86_CURRENT_TASK,
};

static const struct csw_sim_source intel_sources[] = {
	{ "tlb_flush", NULL, "simulated TLB flush of a change of address space",
	  CSW_SIM_TLB_FLUSHES, CSW_SIM_ALSO_ELSE, PROCESS_ONLY(1) },
	X86_CURRENT_TASK,
};

/* The task register is loaded at every switch, the LDT's with the address space. */
static const struct csw_sim_source p5_sources[] = {
	{ "seg_load", NULL, "simulated segment load in the context switch", CSW_SIM_SEG_LOADS,
	  CSW_SIM_ALSO_ELSE, EVERY(1) },
	{ "desc_load",
	  NULL,
	  "simulated loads of TR, and of LDTR with the process",
	  CSW_SIM_DESC_LOADS,
	  CSW_SIM_ALSO_ELSE,
	  { 1, 2, 2, 2, 2, 2 } },
	{ "ldt_load", NULL, "simulated load of LDTR to or from a process with an LDT",
	  CSW_SIM_LDT_LOADS, CSW_SIM_LDT_ONLY, PROCESS_ONLY(1) },
	X86_CURRENT_TASK,
};

static const struct csw_sim_source arm64_sources[] = {
	{ "tid_change", NULL, "simulated write to CONTEXTIDR", CSW_SIM_TID_WRITES,
	  CSW_SIM_SHOWS_NEXT, EVERY(1) },
	{ "pid_change", NULL, "simulated write to TTBR0", CSW_SIM_PID_WRITES,
	  CSW_SIM_SHOWS_NEXT | CSW_SIM_ALSO_ELSE, PROCESS_ONLY(1) },
	{ "mem_store:__entry_task", NULL, "simulated store to __entry_task", CSW_SIM_TASK_STORES,
	  CSW_SIM_WATCH | CSW_SIM_SHOWS_NEXT, EVERY(1) },
	{ "mem_load:__entry_task", NULL, "simulated load of __entry_task", CSW_SIM_TASK_ACCESSES,
	  CSW_SIM_WATCH | CSW_SIM_SHOWS_NEXT | CSW_SIM_ALSO_ELSE, EVERY(1) },
};

#define ONLY_P5 "no event after the Pentium counts loads of descriptor tables"
#define NO_PID                                                                                     \
	"no event counts changes of the process alone; tlb_flush is near it where there is one"
#define NO_TLB "no event counts its TLB flushes"
#define NO_SEGMENTS "the architecture has no segments"

static const struct csw_sim_refusal amd_refusals[] = {
	{ "desc_load", ONLY_P5 },
	{ "ldt_load", ONLY_P5 },
	{ "pid_change", NO_PID },
};

static const struct csw_sim_refusal intel_refusals[] = {
	{ "seg_load",
	  "with FSGSBASE the kernel writes FS and GS without loading a segment, so that "
	  "the event would count 0 per switch" },
	{ "desc_load", ONLY_P5 },
	{ "ldt_load", ONLY_P5 },
	{ "pid_change", NO_PID },
};

static const struct csw_sim_refusal p5_refusals[] = {
	{ "tlb_flush", NO_TLB },
	{ "pid_change", NO_PID },
};

static const struct csw_sim_refusal arm64_refusals[] = {
	{ "seg_load", NO_SEGMENTS },
	{ "desc_load", NO_SEGMENTS },
	{ "ldt_load", NO_SEGMENTS },
	{ "tlb_flush", NO_TLB },
};

#define NR(array) (sizeof(array) / sizeof((array)[0]))
#define SOURCES(array) .sources = (array), .nr_sources = NR(array)
#define REFUSALS(array) .refusals = (array), .nr_refusals = NR(array)

static const struct csw_sim_model models[] = {
	{ .name = "generic", .best = "seg_load", SOURCES(generic_sources) },
	{ .name = "amd",
	  .best = "tid_change",
	  .place_address = 0xffff888107a21440,
	  SOURCES(amd_sources),
	  REFUSALS(amd_refusals) },
	{ .name = "intel",
	  .best = "tid_change",
	  .place_address = 0xffff888107a21440,
	  SOURCES(intel_sources),
	  REFUSALS(intel_refusals) },
	{ .name = "p5",
	  .best = "seg_load",
	  .place_address = 0xc0402a40,
	  SOURCES(p5_sources),
	  REFUSALS(p5_refusals) },
	{ .name = "arm64",
	  .best = "tid_change",
	  .place_address = 0xffff00007fb8d0c8,
	  SOURCES(arm64_sources),
	  REFUSALS(arm64_refusals) },
};

const char *const csw_sim_model_names[] = { "generic", "amd", "intel", "p5", "arm64", NULL };

_Static_assert(NR(csw_sim_model_names) == NR(models) + 1, "every model has a name");

const struct csw_sim_model *csw_sim_model_get(uint64_t number)
{
	return number < NR(models) ? &models[number] : NULL;
}

/* "mem_store:0xc0402a40": the place by its address. */
static bool is_place(const struct csw_sim_model *model, const struct csw_sim_source *source,
		     const char *name)
{
	const char *colon = strchr(source->name, ':');
	size_t length;
	char *end;

	if (!colon || !model->place_address)
		return false;
	length = (size_t)(colon + 1 - source->name);
	if (strncmp(name, source->name, length) != 0 || strncmp(name + length, "0x", 2) != 0)
		return false;
	return strtoull(name + length, &end, 16) == model->place_address && !*end;
}

const struct csw_sim_source *csw_sim_source_find(const struct csw_sim_model *model,
						 const char *name)
{
	for (size_t i = 0; i < model->nr_sources; i++) {
		const struct csw_sim_source *source = &model->sources[i];

		if (!strcmp(name, source->name) ||
		    (source->alias && !strcmp(name, source->alias)) ||
		    is_place(model, source, name))
			return source;
	}
	return NULL;
}

const struct csw_sim_source *csw_sim_source_of(const struct csw_sim_model *model, uint32_t event)
{
	for (size_t i = 0; i < model->nr_sources; i++) {
		if (model->sources[i].event == event)
			return &model->sources[i];
	}
	return NULL;
}

uint32_t csw_sim_source_per_switch(const struct csw_sim_source *source)
{
	if (source->flags & CSW_SIM_LDT_ONLY)
		return 0;
	for (int kind = 1; kind < CSW_SIM_SWITCH_KINDS; kind++) {
		if (source->counts[kind] != source->counts[0])
			return 0;
	}
	return source->counts[0];
}

uint32_t csw_sim_source_least(const struct csw_sim_source *source)
{
	uint32_t least = UINT8_MAX;

	for (int kind = 0; kind < CSW_SIM_SWITCH_KINDS; kind++) {
		if (source->counts[kind] && source->counts[kind] < least)
			least = source->counts[kind];
	}
	return least;
}

const char *csw_sim_model_why_not(const struct csw_sim_model *model, const char *name)
{
	for (size_t i = 0; i < model->nr_refusals; i++) {
		if (!strcmp(name, model->refusals[i].name))
			return model->refusals[i].why;
	}
	return NULL;
}
