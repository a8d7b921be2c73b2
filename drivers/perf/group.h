/*
 * The events of one CPU: the group (trigger as leader, counters as members) and the side-band, in
 * one ring. Where not all counters fit the PMU and they may take turns (csw_plan.multiplex), there
 * are several groups, here called sets, each with a trigger of its own; one at a time is enabled.
 *
 * The side-band is an event of its own (a dummy), so that the kernel's count of lost records tells
 * lost samples from lost switch records, and so that it can run before the counters do: the start
 * scan then misses nobody.
 *
 * Invariant: it is all or nothing: where one event fails, all that was opened is closed.
 */
#ifndef CSW_DRIVERS_PERF_GROUP_H
#define CSW_DRIVERS_PERF_GROUP_H

#include "drivers/perf/decode.h"
#include "drivers/perf/ring.h"
#include "engine/driver.h"

/* A group that fits the PMU: the trigger, every counter that needs none of it, and some of the
 * others. */
struct csw_perf_set {
	int leader;
	unsigned nr_members;
	int members[CSW_COUNTERS_MAX];
	uint8_t counters[CSW_COUNTERS_MAX]; /* which one of the plan each member is */
	uint32_t on;                        /* the same as bits */
	uint64_t id; /* in the leader's samples; only where there are several sets */
};

struct csw_perf_group {
	unsigned cpu;
	int sideband;
	unsigned nr_sets;
	struct csw_perf_set *sets; /* the first one's leader has the ring */
	struct csw_perf_ring ring;
};

/* What this kernel can do, found by trying; the same for all CPUs. */
struct csw_perf_features {
	bool sample_cgroup;  /* wanted: PERF_SAMPLE_CGROUP, Linux 5.7 */
	bool no_format_lost; /* PERF_FORMAT_LOST, Linux 6.0 */
	bool turns;   /* not all counters fit: samples tell by PERF_SAMPLE_IDENTIFIER of which set
			 they are */
	bool settled; /* an event has opened: how its records are laid out must stay */
};

uint64_t csw_perf_read_format(const struct csw_perf_features *features);
void csw_perf_form(const struct csw_perf_features *features, struct csw_perf_form *form);

/* The event that counts nothing and tells of threads, and of switches where they are asked for;
 * disabled. A descriptor or -errno. */
int csw_perf_sideband_open(unsigned cpu, const struct csw_perf_features *features,
			   size_t ring_bytes, bool switches);

/* Opens all events of one CPU, disabled, without a ring. Sets a bit in *features where the kernel
 * lacks it. -EAGAIN: not all fit here, and they may take turns: features->turns was set for that,
 * and all CPUs must be opened anew. */
int csw_perf_group_open(struct csw_perf_group *g, unsigned cpu, const struct csw_plan *plan,
			struct csw_perf_features *features, size_t ring_bytes,
			struct csw_error *err);

/* Gives the group its ring. -EPERM: more than may be locked. */
int csw_perf_group_map(struct csw_perf_group *g, size_t ring_bytes);
void csw_perf_group_unmap(struct csw_perf_group *g);

/* Descriptors that it takes. */
unsigned csw_perf_group_fds(const struct csw_perf_group *g);

/* Where the counters of a set stand now: enabled_ns, running_ns, values of its members in their
 * order, and lost = the leader's lost samples. With CSW_RECORD_DETACHED the trigger's value alone.
 * -EIO: the kernel has pushed the group off its PMU for good. */
int csw_perf_set_read(const struct csw_perf_set *set, const struct csw_perf_features *features,
		      struct csw_record *out);

/* Side-band records that could not be written, or CSW_LOST_UNKNOWN. */
uint64_t csw_perf_group_sideband_lost(const struct csw_perf_group *g,
				      const struct csw_perf_features *features);

void csw_perf_group_close(struct csw_perf_group *g);

#endif
