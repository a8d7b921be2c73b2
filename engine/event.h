/*
 * What a name became: an event in the kernel's numbering (perf_event_attr), and what the rules need
 * to know of it. engine/catalogue fills these from text; a driver opens them; nobody parses names
 * after that.
 */
#ifndef CSW_ENGINE_EVENT_H
#define CSW_ENGINE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "csw/csw.h"

#define CSW_EVENT_NAME_BYTES 128

/* csw_event.flags */
#define CSW_EVENT_NEVER_IDLE                                                                       \
	0x1u /* cannot occur while a CPU idles: page faults, system calls, anything user-only */
#define CSW_EVENT_CLOCK                                                                            \
	0x2u /* advances at a constant rate while enabled (task-clock, cpu-clock, tsc) */
#define CSW_EVENT_HARDWARE 0x4u        /* needs a PMU of the CPU */
#define CSW_EVENT_NANOSECONDS 0x8u     /* its unit is ns */
#define CSW_EVENT_DEBUG_REGISTER 0x10u /* an access watched by one of the CPU's debug registers */
/* The CPU itself counts it: what a report calls a hardware trigger. */
#define CSW_EVENT_BY_HARDWARE (CSW_EVENT_HARDWARE | CSW_EVENT_DEBUG_REGISTER)
#define CSW_EVENT_STORES_TOO 0x40u /* a watch for loads that sees stores as well */
#define CSW_EVENT_UNCOUNTED                                                                        \
	0x100u /* as a trigger: known by its samples or records alone, which nothing counted       \
		  beside */
#define CSW_EVENT_PER_CPU 0x20u /* config1 is a per-CPU variable's offset, see engine/percpu.h */

struct csw_event {
	char name[CSW_EVENT_NAME_BYTES];   /* as the user wrote it; the column's title */
	char became[CSW_EVENT_NAME_BYTES]; /* what is counted in truth, e.g.
					      "skl::LONGEST_LAT_CACHE:MISS 0x412e" */
	uint32_t type;                     /* perf_event_attr.type */
	uint32_t flags;
	uint64_t config, config1, config2;
	uint32_t bp_type; /* breakpoints: with config1 = address (or offset), config2 = length */
	bool exclude_user, exclude_kernel, exclude_hv;
};

struct perf_event_attr;

/* Fills in what the event is on this CPU: type, config*, bp_type, exclude_*; the rest of *attr
 * stays. 0, or -errno where a per-CPU variable's address cannot be had, with the reason. */
int csw_event_attr(const struct csw_event *event, unsigned cpu, struct perf_event_attr *attr,
		   struct csw_error *err);

/* Where in a context switch the trigger fires, seen in the order of the ring's records. */
enum csw_phase {
	CSW_PHASE_BEFORE, /* before SWITCH_OUT, in the outgoing thread (software context-switches)
			   */
	CSW_PHASE_INSIDE, /* between SWITCH_OUT and SWITCH_IN, or with skid just after it (loads and
			     stores in the switch) */
	CSW_PHASE_ANY,    /* no known relation to switches */
};

/* Occurrences of a trigger in one switch of a kind. All zero: not known. */
struct csw_rate {
	uint16_t known; /* 1: min and max say something */
	uint16_t min;
	uint16_t max; /* CSW_RATE_OPEN: nobody knows how many at most */
};
#define CSW_RATE_OPEN UINT16_MAX

/* Whose TID the sample of a trigger carries. */
enum csw_sample_of {
	CSW_SAMPLE_OF_EITHER,
	CSW_SAMPLE_OF_OUTGOING,
	CSW_SAMPLE_OF_INCOMING,
};

#define CSW_FORCED_BYTES 320

struct csw_trigger {
	struct csw_event event;
	uint64_t sav;        /* sample-after value: occurrences per overflow, >= 1 */
	uint32_t phase;      /* enum csw_phase */
	uint32_t per_switch; /* occurrences per context switch, of every kind of switch; 0: varies
				or not known */
	struct csw_rate process;       /* occurrences per switch to another process ... */
	struct csw_rate thread;        /* ... and to another thread of the same one */
	uint32_t sample_of;            /* enum csw_sample_of */
	char forced[CSW_FORCED_BYTES]; /* why the catalogue says that it cannot work; "": it does
					  not say so */
};

#endif
