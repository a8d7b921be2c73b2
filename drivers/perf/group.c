/* Opening the events of one CPU; see group.h. */
#include "drivers/perf/group.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "drivers/perf/sys.h"
#include "engine/catalogue.h"
#include "engine/error.h"

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

static int open_sideband(unsigned cpu, const struct csw_perf_features *features, size_t ring_bytes)
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
	attr.context_switch = 1;
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

static unsigned count_hardware(const struct csw_plan *plan)
{
	unsigned nr = is_hardware(&plan->trigger.event);

	for (unsigned i = 0; i < plan->nr_counters; i++)
		nr += is_hardware(&plan->counters[i]);
	return nr;
}

/* Why an event did not open, and what helps. fitting: how many hardware events of the plan found
 * room in one group. */
static int explain(int code, const struct csw_event *event, unsigned cpu,
		   const struct csw_plan *plan, unsigned fitting, struct csw_error *err)
{
	unsigned wanted = count_hardware(plan);
	char why[512];

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
				     "takes one per counter and "
				     "two more; raise it (ulimit -n)",
				     cpu, fd_limit());
	case ENOENT:
	case EOPNOTSUPP:
		if (is_hardware(event))
			return csw_error_set(
				err, -EOPNOTSUPP, "event %s cannot be counted on CPU %u: %s",
				event->name, cpu, csw_catalogue_no_pmu(why, sizeof(why)));
		return csw_error_set(err, -EOPNOTSUPP,
				     "the kernel cannot count event %s on CPU %u (%s)", event->name,
				     cpu, strerror(-code));
	case EINVAL:
		if (is_hardware(event) && wanted > 1)
			return csw_error_set(
				err, code,
				"event %s does not fit into one group with the others: the PMU of "
				"CPU %u has room for %u of these %u hardware events%s; ask for "
				"fewer",
				event->name, cpu, fitting, wanted,
				is_hardware(&plan->trigger.event) ? ", the trigger among them"
								  : "");
		return csw_error_set(err, code, "the kernel refuses event %s (%s) in this group",
				     event->name, event->became);
	case ENOSPC:
		if (event->flags & CSW_EVENT_DEBUG_REGISTER)
			return csw_error_set(
				err, code,
				"no debug register is free for %s on CPU %u: a debugger or another "
				"csw-sample holds them all; end it, or use --trigger=switch",
				event->name, cpu);
		return csw_error_set(
			err, code,
			"no counter is free for event %s on CPU %u: another program holds them",
			event->name, cpu);
	default:
		return csw_error_set(err, code, "cannot open event %s on CPU %u: %s", event->name,
				     cpu, strerror(-code));
	}
}

static int open_all(struct csw_perf_group *g, const struct csw_plan *plan,
		    const struct csw_perf_features *features, size_t ring_bytes,
		    const struct csw_event **failed)
{
	*failed = &plan->trigger.event;
	g->sideband = open_sideband(g->cpu, features, ring_bytes);
	if (g->sideband < 0)
		return g->sideband;
	g->leader = open_leader(g->cpu, &plan->trigger, features, ring_bytes);
	if (g->leader < 0)
		return g->leader;
	for (unsigned i = 0; i < plan->nr_counters; i++) {
		int fd = open_member(g->cpu, g->leader, &plan->counters[i], features, ring_bytes);

		if (fd < 0) {
			*failed = &plan->counters[i];
			return fd;
		}
		g->members[g->nr_members++] = fd;
	}
	return 0;
}

/* After a counter was refused: how many hardware events have room together? Those behind it are
 * tried as well, for an event may have a counter of its own, as cycles often have. */
static unsigned count_fitting(struct csw_perf_group *g, const struct csw_plan *plan,
			      const struct csw_perf_features *features, size_t ring_bytes)
{
	unsigned nr = is_hardware(&plan->trigger.event), refused = g->nr_members;

	for (unsigned i = 0; i < plan->nr_counters; i++) {
		int fd = 0;

		if (!is_hardware(&plan->counters[i]) || i == refused)
			continue;
		if (i > refused) {
			fd = open_member(g->cpu, g->leader, &plan->counters[i], features,
					 ring_bytes);
			if (fd >= 0)
				g->members[g->nr_members++] = fd;
		}
		nr += fd >= 0;
	}
	return nr;
}

int csw_perf_group_open(struct csw_perf_group *g, unsigned cpu, const struct csw_plan *plan,
			struct csw_perf_features *features, size_t ring_bytes,
			struct csw_error *err)
{
	const struct csw_event *failed;
	unsigned fitting = 0;
	int ret;

	memset(g, 0, sizeof(*g));
	g->cpu = cpu;
	g->leader = g->sideband = -1;
	ret = open_all(g, plan, features, ring_bytes, &failed);
	if (ret == -EINVAL && !features->settled && g->sideband < 0) {
		/* The first event of all: nothing else of it is newer than Linux 4.3. */
		features->no_format_lost = true;
		ret = open_all(g, plan, features, ring_bytes, &failed);
	}
	features->settled |= g->sideband >= 0;
	if (ret >= 0)
		return 0;
	if (ret == -EINVAL && failed != &plan->trigger.event)
		fitting = count_fitting(g, plan, features, ring_bytes);
	csw_perf_group_close(g);
	/* A CPU that went offline since the list was read: the caller skips it. */
	return ret == -ENODEV ? ret : explain(ret, failed, cpu, plan, fitting, err);
}

int csw_perf_group_map(struct csw_perf_group *g, size_t ring_bytes)
{
	int ret = csw_perf_ring_map(&g->ring, g->leader, ring_bytes);

	if (ret < 0)
		return ret;
	ret = csw_perf_sys.ioctl(g->sideband, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)g->leader);
	if (ret < 0)
		csw_perf_ring_unmap(&g->ring);
	return ret;
}

void csw_perf_group_unmap(struct csw_perf_group *g)
{
	/* The side-band event holds the ring as well: as long as it does, its memory stays locked.
	 */
	if (g->ring.page)
		csw_perf_sys.ioctl(g->sideband, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)-1);
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

/* When a CPU goes offline the kernel takes its groups apart: each event still has its own count. */
static int read_apart(const struct csw_perf_group *g, const struct csw_perf_features *features,
		      struct csw_record *out)
{
	for (unsigned i = 0; i < g->nr_members; i++) {
		struct csw_record one;
		uint64_t lost;
		int ret = read_fd(g->members[i], features, &one, &lost);

		if (ret < 0)
			return ret;
		out->values[1 + i] = one.values[0];
	}
	out->nr_values = 1 + g->nr_members;
	out->flags |= CSW_RECORD_DETACHED;
	return 0;
}

int csw_perf_group_read(const struct csw_perf_group *g, const struct csw_perf_features *features,
			struct csw_record *out)
{
	int ret = read_fd(g->leader, features, out, &out->lost);

	if (ret < 0 || out->nr_values == 1 + g->nr_members)
		return ret;
	return out->nr_values == 1 ? read_apart(g, features, out) : -EIO;
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

void csw_perf_group_close(struct csw_perf_group *g)
{
	csw_perf_group_unmap(g);
	for (unsigned i = 0; i < g->nr_members; i++)
		close_fd(&g->members[i]);
	g->nr_members = 0;
	close_fd(&g->leader);
	close_fd(&g->sideband);
}
