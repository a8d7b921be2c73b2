/* Opening the events of one CPU; see group.h. */
#include "drivers/perf/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "drivers/perf/sys.h"
#include "engine/error.h"
#include "engine/spec.h"
#include "engine/sysfs.h"
#include "engine/tryout.h"

#define RING_PARTS_PER_WAKEUP                                                                      \
	4 /* the reader is woken at a quarter: three quarters are its time to come */
#define READ_WORDS (3 + 2 * (1 + CSW_COUNTERS_MAX))

uint64_t csw_perf_read_format(const struct csw_perf_features *features)
{
	uint64_t format =
		PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;

	return features->no_format_lost ? format : format | PERF_FORMAT_LOST;
}

void csw_perf_form(const struct csw_perf_features *features, struct csw_perf_form *form)
{
	*form = (struct csw_perf_form){
		.sample_type =
			PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_READ,
		.read_format = csw_perf_read_format(features),
		.sample_id_all = true,
	};
	if (features->sample_cgroup)
		form->sample_type |= PERF_SAMPLE_CGROUP;
	if (features->turns)
		form->sample_type |= PERF_SAMPLE_IDENTIFIER;
}

/* What all events of a ring share. One clock for all: the kernel refuses a group of several
 * (EINVAL). */
static void fill_common(struct perf_event_attr *attr, const struct csw_perf_features *features,
			size_t ring_bytes)
{
	struct csw_perf_form form;

	csw_perf_form(features, &form);
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->sample_type = form.sample_type;
	attr->read_format = form.read_format;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->watermark = 1;
	attr->wakeup_watermark = (uint32_t)(ring_bytes / RING_PARTS_PER_WAKEUP);
}

int csw_perf_sideband_open(unsigned cpu, const struct csw_perf_features *features,
			   size_t ring_bytes, bool switches)
{
	struct perf_event_attr attr;

	fill_common(&attr, features, ring_bytes);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	/* A sample's READ part is no business of the side-band, and GROUP would make its own
	 * reading one. */
	attr.sample_type &= ~(uint64_t)(PERF_SAMPLE_READ | PERF_SAMPLE_CGROUP);
	attr.read_format &= ~(uint64_t)PERF_FORMAT_GROUP;
	attr.disabled = 1;
	attr.context_switch = switches;
	attr.comm = 1;
	attr.comm_exec = 1;
	attr.task = 1;
	return csw_perf_sys.event_open(&attr, -1, (int)cpu, -1, 0);
}

static int open_leader(unsigned cpu, const struct csw_trigger *trigger,
		       const struct csw_perf_features *features, size_t ring_bytes)
{
	struct perf_event_attr attr;
	int ret;

	fill_common(&attr, features, ring_bytes);
	ret = csw_event_attr(&trigger->event, cpu, &attr, NULL);
	if (ret)
		return ret;
	attr.sample_period = trigger->sav;
	attr.disabled = 1;
	return csw_perf_sys.event_open(&attr, -1, (int)cpu, -1, 0);
}

static int open_member(unsigned cpu, int leader, const struct csw_event *event,
		       const struct csw_perf_features *features, size_t ring_bytes)
{
	struct perf_event_attr attr;
	int ret;

	fill_common(&attr, features, ring_bytes);
	ret = csw_event_attr(event, cpu, &attr, NULL);
	return ret ? ret : csw_perf_sys.event_open(&attr, -1, (int)cpu, leader, 0);
}

static int paranoid(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level = 0;

	if (file) {
		if (fscanf(file, "%d", &level) != 1)
			level = 0;
		fclose(file);
	}
	return level;
}

static unsigned long fd_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) ? 0 : (unsigned long)limit.rlim_cur;
}

static bool is_hardware(const struct csw_event *event)
{
	return event->flags & CSW_EVENT_HARDWARE;
}

static unsigned count_watches(const struct csw_plan *plan)
{
	unsigned nr = (plan->trigger.event.flags & CSW_EVENT_DEBUG_REGISTER) != 0;

	for (unsigned i = 0; i < plan->nr_counters; i++)
		nr += (plan->counters[i].flags & CSW_EVENT_DEBUG_REGISTER) != 0;
	return nr;
}

/* Why an event did not open, and what helps. fitting: how many hardware events of the plan found
 * room in one group. */
static int explain(int code, const struct csw_event *event, unsigned cpu,
		   const struct csw_plan *plan, unsigned fitting, struct csw_error *err)
{
	char why[512], list[CSW_SYSFS_LIST_BYTES];

	switch (-code) {
	case EACCES:
	case EPERM:
		return csw_error_set(
			err, code,
			"counting on whole CPUs is not permitted: kernel.perf_event_paranoid is "
			"%d; give the program CAP_PERFMON (setcap cap_perfmon+ep FILE), or as "
			"root: sysctl kernel.perf_event_paranoid=0; try sudo, or --driver=sim",
			paranoid());
	case EMFILE:
	case ENFILE:
		return csw_error_set(err, code,
				     "too many open files at CPU %u: the limit is %lu, every CPU "
				     "takes one per counter and two more%s; raise it (ulimit -n)",
				     cpu, fd_limit(),
				     plan->multiplex ? ", with --multiplex so many per set" : "");
	case ENOENT:
	case EOPNOTSUPP:
		if (csw_sysfs_pmu_is_partial(event->type, list, sizeof(list)))
			return csw_error_set(
				err, -EOPNOTSUPP,
				"event %s can be counted on CPUs %s only, and CPU %u "
				"has another kind of core: count on those alone, -C %s",
				event->name, list, cpu, list);
		if (is_hardware(event))
			return csw_error_set(err, -EOPNOTSUPP,
					     "event %s cannot be counted on CPU %u: %s",
					     event->name, cpu, csw_tryout_no_pmu(why, sizeof(why)));
		return csw_error_set(err, -EOPNOTSUPP,
				     "the kernel cannot count event %s on CPU %u (%s)", event->name,
				     cpu, strerror(-code));
	case EINVAL:
		if (is_hardware(event) && csw_spec_hardware(plan) > 1)
			return csw_spec_no_room(plan, event->name, cpu, fitting, err);
		return csw_error_set(err, code, "the kernel refuses event %s (%s) in this group",
				     event->name, event->became);
	case ENOSPC:
		if (plan->stores && event == &plan->counters[plan->stores - 1])
			return csw_error_set(
				err, code,
				"no second debug register is free on CPU %u for %s, which counts "
				"the stores among what %s sees: a debugger or another csw-sample "
				"holds the others; end it, or use --trigger=switch",
				cpu, event->name, plan->trigger.event.name);
		if (event->flags & CSW_EVENT_DEBUG_REGISTER)
			return csw_error_set(
				err, code,
				"no debug register is free for %s on CPU %u: this run asks for %u "
				"of them, and a debugger or another csw-sample may hold others; "
				"ask for fewer, or use --trigger=switch",
				event->name, cpu, count_watches(plan));
		return csw_error_set(
			err, code,
			"no counter is free for event %s on CPU %u: another program holds them",
			event->name, cpu);
	default:
		return csw_error_set(err, code, "cannot open event %s on CPU %u: %s", event->name,
				     cpu, strerror(-code));
	}
}

/* ---- one set ---- */

/* What opening a CPU's events goes by. */
struct opening {
	const struct csw_plan *plan;
	const struct csw_perf_features *features;
	size_t ring_bytes;
	const struct csw_event *failed; /* the event that was tried last */
};

static int add_leader(struct csw_perf_group *g, struct opening *o)
{
	struct csw_perf_set *set = &g->sets[g->nr_sets++];

	*set = (struct csw_perf_set){ .leader = -1 };
	o->failed = &o->plan->trigger.event;
	set->leader = open_leader(g->cpu, &o->plan->trigger, o->features, o->ring_bytes);
	if (set->leader < 0 || !o->features->turns)
		return set->leader;
	return csw_perf_sys.ioctl(set->leader, PERF_EVENT_IOC_ID, (unsigned long)&set->id);
}

static int add_member(const struct csw_perf_group *g, struct csw_perf_set *set, unsigned counter,
		      struct opening *o)
{
	const struct csw_event *event = &o->plan->counters[counter];
	int fd;

	o->failed = event;
	fd = open_member(g->cpu, set->leader, event, o->features, o->ring_bytes);
	if (fd < 0)
		return fd;
	set->members[set->nr_members] = fd;
	set->counters[set->nr_members++] = (uint8_t)counter;
	set->on |= 1u << counter;
	return 0;
}

/* All counters in one set, in the plan's order. */
static int open_one_set(struct csw_perf_group *g, struct opening *o)
{
	int ret = add_leader(g, o);

	for (unsigned i = 0; ret >= 0 && i < o->plan->nr_counters; i++)
		ret = add_member(g, &g->sets[0], i, o);
	return ret;
}

/* ---- sets that take turns ---- */

/* Adds those hardware counters that are in no set yet (those that are in one) as long as there is
 * room. That is found by trying: which events fit together is known only to the kernel. */
static int add_hardware(struct csw_perf_group *g, struct csw_perf_set *set, uint32_t placed,
			bool again, struct opening *o)
{
	for (unsigned i = 0; i < o->plan->nr_counters; i++) {
		int ret;

		if (!is_hardware(&o->plan->counters[i]) || (set->on >> i & 1) ||
		    (placed >> i & 1) != again)
			continue;
		ret = add_member(g, set, i, o);
		if (ret < 0 && ret != -EINVAL)
			return ret;
	}
	return 0;
}

/* The next set: what needs no PMU, counters without a set, and then, lest room be left, others once
 * more: what is in several sets runs longer, and what is in all of them is exact. */
static int open_next_set(struct csw_perf_group *g, uint32_t *placed, struct opening *o)
{
	struct csw_perf_set *set = &g->sets[g->nr_sets];
	int ret = add_leader(g, o);

	for (unsigned i = 0; ret >= 0 && i < o->plan->nr_counters; i++) {
		if (!is_hardware(&o->plan->counters[i]))
			ret = add_member(g, set, i, o);
	}
	if (ret >= 0)
		ret = add_hardware(g, set, *placed, false, o);
	if (ret >= 0 && !(set->on & ~*placed))
		return -EINVAL; /* none had room, though there was nothing but the trigger */
	if (ret >= 0)
		ret = add_hardware(g, set, *placed, true, o);
	*placed |= set->on;
	return ret;
}

static int open_sets(struct csw_perf_group *g, struct opening *o)
{
	const uint32_t all = (uint32_t)((1ull << o->plan->nr_counters) - 1);
	uint32_t placed = 0;
	int ret = 0;

	while (ret >= 0 && placed != all)
		ret = open_next_set(g, &placed, o);
	return ret;
}

/* ---- all of a CPU ---- */

static int open_all(struct csw_perf_group *g, struct opening *o)
{
	o->failed = &o->plan->trigger.event;
	g->sideband = csw_perf_sideband_open(g->cpu, o->features, o->ring_bytes, true);
	if (g->sideband < 0)
		return g->sideband;
	/* Each set has a counter that no other had before it. */
	g->sets = calloc(csw_spec_hardware(o->plan) + 1, sizeof(*g->sets));
	if (!g->sets)
		return -ENOMEM;
	return o->features->turns ? open_sets(g, o) : open_one_set(g, o);
}

/* After a counter was refused: how many hardware events have room together? Those behind it are
 * tried as well, for an event may have a counter of its own, as cycles often have. */
static unsigned count_fitting(struct csw_perf_group *g, struct opening *o)
{
	struct csw_perf_set *set = &g->sets[0];
	unsigned nr = is_hardware(&o->plan->trigger.event), refused = set->nr_members;

	for (unsigned i = 0; i < o->plan->nr_counters; i++) {
		if (is_hardware(&o->plan->counters[i]) && i != refused)
			nr += i < refused || add_member(g, set, i, o) >= 0;
	}
	return nr;
}

int csw_perf_group_open(struct csw_perf_group *g, unsigned cpu, const struct csw_plan *plan,
			struct csw_perf_features *features, size_t ring_bytes,
			struct csw_error *err)
{
	struct opening o = { .plan = plan, .features = features, .ring_bytes = ring_bytes };
	const struct csw_event *failed;
	unsigned fitting = 0;
	bool full;
	int ret;

	*g = (struct csw_perf_group){ .cpu = cpu, .sideband = -1 };
	ret = open_all(g, &o);
	if (ret == -EINVAL && !features->settled && g->sideband < 0) {
		/* The first event of all: nothing else of it is newer than Linux 4.3. */
		features->no_format_lost = true;
		ret = open_all(g, &o);
	}
	features->settled |= g->sideband >= 0;
	if (ret >= 0)
		return 0;
	failed = o.failed;
	full = ret == -EINVAL && failed != &plan->trigger.event && is_hardware(failed);
	if (full && plan->multiplex && !features->turns) {
		csw_perf_group_close(g);
		features->turns = true;
		return -EAGAIN;
	}
	if (full && !features->turns)
		fitting = count_fitting(g, &o);
	csw_perf_group_close(g);
	/* A CPU that went offline since the list was read: the caller skips it. */
	return ret == -ENODEV ? ret : explain(ret, failed, cpu, plan, fitting, err);
}

unsigned csw_perf_group_fds(const struct csw_perf_group *g)
{
	unsigned nr = 1;

	for (unsigned i = 0; i < g->nr_sets; i++)
		nr += 1 + g->sets[i].nr_members;
	return nr;
}

/* Whoever writes into the ring holds it: as long as one does, its memory stays locked. */
static int set_outputs(const struct csw_perf_group *g, unsigned long to)
{
	int ret = csw_perf_sys.ioctl(g->sideband, PERF_EVENT_IOC_SET_OUTPUT, to);

	for (unsigned i = 1; ret == 0 && i < g->nr_sets; i++)
		ret = csw_perf_sys.ioctl(g->sets[i].leader, PERF_EVENT_IOC_SET_OUTPUT, to);
	return ret;
}

int csw_perf_group_map(struct csw_perf_group *g, size_t ring_bytes)
{
	int ret = csw_perf_ring_map(&g->ring, g->sets[0].leader, ring_bytes);

	if (ret < 0)
		return ret;
	ret = set_outputs(g, (unsigned long)g->sets[0].leader);
	if (ret < 0)
		csw_perf_group_unmap(g);
	return ret;
}

void csw_perf_group_unmap(struct csw_perf_group *g)
{
	if (g->ring.page)
		set_outputs(g, (unsigned long)-1);
	csw_perf_ring_unmap(&g->ring);
}

static int read_fd(int fd, const struct csw_perf_features *features, struct csw_record *out,
		   uint64_t *lost)
{
	uint64_t words[READ_WORDS];
	ssize_t got = csw_perf_sys.read(fd, words, sizeof(words));

	if (got < 0)
		return (int)got;
	/* Zero bytes: a pinned or failed group. That is no reading of 0. */
	if (got == 0 || csw_perf_decode_reading(csw_perf_read_format(features), words, (size_t)got,
						out, lost) < 0)
		return -EIO;
	return 0;
}

int csw_perf_set_read(const struct csw_perf_set *set, const struct csw_perf_features *features,
		      struct csw_record *out)
{
	int ret = read_fd(set->leader, features, out, &out->lost);

	if (ret < 0 || out->nr_values == 1 + set->nr_members)
		return ret;
	/* When a CPU goes offline the kernel takes its groups apart. Then each member could be read
	 * by itself, but what some kernels show there is the leader's count (seen: Linux 6.1). */
	out->flags |= CSW_RECORD_DETACHED;
	return out->nr_values == 1 ? 0 : -EIO;
}

uint64_t csw_perf_group_sideband_lost(const struct csw_perf_group *g,
				      const struct csw_perf_features *features)
{
	struct csw_record rec;
	uint64_t words[READ_WORDS], lost;
	ssize_t got = csw_perf_sys.read(g->sideband, words, sizeof(words));
	uint64_t format = csw_perf_read_format(features) & ~(uint64_t)PERF_FORMAT_GROUP;

	if (got <= 0 || csw_perf_decode_reading(format, words, (size_t)got, &rec, &lost) < 0)
		return CSW_LOST_UNKNOWN;
	return lost;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		csw_perf_sys.close(*fd);
	*fd = -1;
}

static void close_set(struct csw_perf_set *set)
{
	for (unsigned i = 0; i < set->nr_members; i++)
		close_fd(&set->members[i]);
	set->nr_members = 0;
	close_fd(&set->leader);
}

void csw_perf_group_close(struct csw_perf_group *g)
{
	csw_perf_group_unmap(g);
	/* The first one's leader has the ring, so that set goes last. */
	while (g->nr_sets > 0)
		close_set(&g->sets[--g->nr_sets]);
	free(g->sets);
	g->sets = NULL;
	close_fd(&g->sideband);
}
