/*
 * The driver of the live machine: perf_event_open, one group per CPU, one ring per CPU; where not
 * all counters fit, several groups that take turns (group.h, turns.h). What one CPU tells is its
 * stream (stream.h).
 *
 * Invariant: all CPUs are counted in one form: one plan, one layout of records, rings of one size.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/perf/bystander.h"
#include "drivers/perf/scan.h"
#include "drivers/perf/stream.h"
#include "drivers/perf/sys.h"
#include "drivers/perf/visit.h"
#include "engine/catalogue.h"
#include "engine/cgroups.h"
#include "engine/driver.h"
#include "engine/error.h"
#include "engine/sysfs.h"

/* The budget for all rings, and what one ring is worth: a switch takes about 230 bytes with three
 * counters. */
#define CPUS_MAX 8192 /* CONFIG_NR_CPUS has no larger value anywhere */
#define RINGS_BYTES (64u << 20)
#define RING_BYTES_MIN (128u << 10)
#define RING_BYTES_MAX (8u << 20)
#define RING_BYTES_WISH_MAX (1u << 30)

struct csw_driver {
	struct csw_perf_common common;
	struct csw_perf_stream *streams;
	unsigned nr_streams, nr_cpus;
	struct csw_perf_bystander *bystanders; /* where not all CPUs are counted */
	unsigned nr_bystanders;
	size_t ring_bytes;
	unsigned cpus_missed; /* see csw_summary */
	uint32_t turns;       /* that have ended */
	uint64_t turn_ends_ns;
	int epoll;
	bool stopped;
	struct csw_cgroups *cgroups; /* NULL: nobody asked */
	char cgroup_mount[256];
};

/* ---- opening ---- */

static size_t power_of_two_below(size_t bytes)
{
	return (size_t)1 << (63 - __builtin_clzll(bytes | 1));
}

static size_t first_ring_bytes(uint64_t wish, unsigned nr_cpus)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = wish;

	if (!wish) {
		bytes = RINGS_BYTES / nr_cpus;
		bytes = bytes < RING_BYTES_MIN   ? RING_BYTES_MIN
			: bytes > RING_BYTES_MAX ? RING_BYTES_MAX
						 : bytes;
	} else if (bytes > RING_BYTES_WISH_MAX) {
		bytes = RING_BYTES_WISH_MAX;
	}
	return power_of_two_below(bytes < page ? page : bytes);
}

static int try_groups(struct csw_driver *d, const unsigned *cpus, unsigned nr,
		      struct csw_error *err)
{
	for (unsigned i = 0; i < nr; i++) {
		struct csw_perf_group *g = &d->streams[d->nr_streams].group;
		int ret = csw_perf_group_open(g, cpus[i], d->common.plan, &d->common.features,
					      d->ring_bytes, err);

		if (ret == -ENODEV)
			continue; /* went offline meanwhile */
		if (ret < 0)
			return ret;
		d->nr_streams++;
		if (cpus[i] >= d->nr_cpus)
			d->nr_cpus = cpus[i] + 1;
	}
	if (!d->nr_streams)
		return csw_error_set(err, -ENODEV, "no CPU is online");
	return 0;
}

static void close_groups(struct csw_driver *d)
{
	for (unsigned i = 0; i < d->nr_streams; i++)
		csw_perf_group_close(&d->streams[i].group);
	d->nr_streams = 0;
}

/* Where one CPU has no room for all counters they take turns on every CPU: samples then have
 * another form, and all have the same. */
static int open_groups(struct csw_driver *d, const unsigned *cpus, unsigned nr,
		       struct csw_error *err)
{
	int ret = try_groups(d, cpus, nr, err);

	if (ret != -EAGAIN)
		return ret;
	close_groups(d);
	return try_groups(d, cpus, nr, err);
}

/* All rings, of d->ring_bytes each, or none; *failed: the CPU of the one that could not be had. */
static int try_rings(struct csw_driver *d, unsigned *failed)
{
	unsigned mapped = 0;
	int ret = 0;

	while (mapped < d->nr_streams && ret == 0) {
		*failed = d->streams[mapped].group.cpu;
		ret = csw_perf_group_map(&d->streams[mapped].group, d->ring_bytes);
		mapped += ret == 0;
	}
	while (ret < 0 && mapped > 0)
		csw_perf_group_unmap(&d->streams[--mapped].group);
	return ret;
}

/* The largest rings that may be locked, from d->ring_bytes down. */
static int halve_rings(struct csw_driver *d, unsigned *failed)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int ret;

	while ((ret = try_rings(d, failed)) < 0 && (ret == -EPERM || ret == -ENOMEM) &&
	       d->ring_bytes > page)
		d->ring_bytes /= 2;
	return ret;
}

/* Only too little memory that may be locked is mended by allowing more. */
static int explain_rings(const struct csw_driver *d, int code, size_t bytes, unsigned cpu,
			 struct csw_error *err)
{
	if (code != -EPERM && code != -ENOMEM)
		return csw_error_set(err, code, "cannot map the ring of CPU %u (%zu KiB): %s", cpu,
				     bytes >> 10, strerror(-code));
	return csw_error_set(err, code,
			     "cannot lock %u rings of %zu KiB (%s): raise "
			     "kernel.perf_event_mlock_kb or give the program CAP_IPC_LOCK",
			     d->nr_streams, bytes >> 10, strerror(-code));
}

/* A size that was asked for is had or refused; the driver's own choice gives way. */
static int map_rings(struct csw_driver *d, struct csw_error *err)
{
	const size_t wish = d->ring_bytes;
	unsigned failed = 0;
	int ret = d->common.plan->ring_bytes ? try_rings(d, &failed) : halve_rings(d, &failed);

	if (ret == 0)
		return 0;
	explain_rings(d, ret, d->ring_bytes, failed, err);
	if (!d->common.plan->ring_bytes || (ret != -EPERM && ret != -ENOMEM))
		return ret;
	if (halve_rings(d, &failed) < 0)
		return ret;
	for (unsigned i = 0; i < d->nr_streams; i++)
		csw_perf_group_unmap(&d->streams[i].group);
	return csw_error_set(err, ret,
			     "cannot lock %u rings of %zu KiB (%s): the largest that fit are of "
			     "%zu KiB; raise kernel.perf_event_mlock_kb, give the program "
			     "CAP_IPC_LOCK, or do not ask for a size",
			     d->nr_streams, wish >> 10, strerror(-ret), d->ring_bytes >> 10);
}

static int explain_fds(const struct csw_driver *d, int error, struct csw_error *err)
{
	return csw_error_set(err, -error,
			     "cannot watch the rings of %u CPUs: %s; every CPU takes %u file "
			     "descriptors: raise the limit "
			     "(ulimit -n)",
			     d->nr_streams, strerror(error),
			     csw_perf_group_fds(&d->streams[0].group));
}

static int watch(const struct csw_driver *d, int fd, struct csw_error *err)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		return csw_error_set(err, -errno, "epoll_ctl: %s", strerror(errno));
	return 0;
}

static int watch_rings(struct csw_driver *d, struct csw_error *err)
{
	int ret = 0;

	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (d->epoll < 0)
		return explain_fds(d, errno, err);
	for (unsigned i = 0; i < d->nr_streams && ret == 0; i++)
		ret = watch(d, d->streams[i].group.sets[0].leader, err);
	for (unsigned i = 0; i < d->nr_bystanders && ret == 0; i++)
		ret = watch(d, d->bystanders[i].fd, err);
	return ret;
}

/* The reader is woken when a ring is filled to a part of it, which an event is told when it opens:
 * where the rings came out smaller than was thought then, the events are opened once more. */
static int reopen_for_smaller_rings(struct csw_driver *d, const unsigned *cpus, unsigned nr,
				    struct csw_error *err)
{
	unsigned failed;
	int ret;

	close_groups(d);
	ret = open_groups(d, cpus, nr, err);
	if (ret < 0)
		return ret;
	ret = try_rings(d, &failed);
	if (ret < 0)
		explain_rings(d, ret, d->ring_bytes, failed, err);
	return ret;
}

/* The CPUs begin with different sets: so each of them is on somewhere all the time. */
static int init_streams(struct csw_driver *d, struct csw_error *err)
{
	for (unsigned i = 0; i < d->nr_streams; i++) {
		struct csw_perf_stream *s = &d->streams[i];

		s->common = &d->common;
		if (csw_perf_stream_init(s, i) < 0)
			return csw_error_set(err, -ENOMEM, "out of memory");
	}
	return 0;
}

static bool is_counted(const struct csw_driver *d, unsigned cpu)
{
	for (unsigned i = 0; i < d->nr_streams; i++)
		if (d->streams[i].group.cpu == cpu)
			return true;
	return false;
}

static int explain_bystander(const struct csw_driver *d, unsigned cpu, int ret,
			     struct csw_error *err)
{
	if (ret == -EMFILE || ret == -ENFILE)
		return explain_fds(d, -ret, err);
	if (ret == -EPERM || ret == -ENOMEM)
		return csw_error_set(err, ret,
				     "cannot lock a ring for CPU %u, which is not counted but may "
				     "name threads (%s): raise kernel.perf_event_mlock_kb or give "
				     "the program CAP_IPC_LOCK",
				     cpu, strerror(-ret));
	return csw_error_set(err, ret, "cannot learn of threads that begin on CPU %u: %s", cpu,
			     strerror(-ret));
}

/* The CPUs that are online and not counted. */
static int open_bystanders(struct csw_driver *d, struct csw_error *err)
{
	unsigned *online;
	int nr = d->common.plan->cpus ? csw_sysfs_online(&online, err) : 0, ret = 0;

	if (nr <= 0)
		return nr;
	d->bystanders = calloc((size_t)nr, sizeof(*d->bystanders));
	if (!d->bystanders)
		ret = csw_error_set(err, -ENOMEM, "out of memory");
	for (int i = 0; i < nr && ret == 0; i++) {
		if (is_counted(d, online[i]))
			continue;
		ret = csw_perf_bystander_open(&d->bystanders[d->nr_bystanders], online[i],
					      &d->common.features);
		if (ret == 0 && online[i] >= d->nr_cpus)
			d->nr_cpus = online[i] + 1;
		d->nr_bystanders += ret == 0;
		if (ret < 0 && ret != -ENODEV)
			explain_bystander(d, online[i], ret, err);
		else
			ret = 0;
	}
	free(online);
	return ret;
}

static int open_on(struct csw_driver *d, const unsigned *cpus, unsigned nr, struct csw_error *err)
{
	size_t opened_for;
	int ret;

	d->streams = calloc(nr, sizeof(*d->streams));
	if (!d->streams)
		return csw_error_set(err, -ENOMEM, "out of memory");
	d->ring_bytes = opened_for = first_ring_bytes(d->common.plan->ring_bytes, nr);
	ret = open_groups(d, cpus, nr, err);
	if (ret == 0)
		ret = map_rings(d, err);
	if (ret == 0 && d->ring_bytes != opened_for)
		ret = reopen_for_smaller_rings(d, cpus, nr, err);
	if (ret == 0)
		ret = open_bystanders(d, err);
	if (ret == 0)
		ret = watch_rings(d, err);
	if (ret == 0)
		ret = init_streams(d, err);
	csw_perf_form(&d->common.features, &d->common.form);
	return ret;
}

static void perf_close(struct csw_driver *d)
{
	if (!d)
		return;
	for (unsigned i = 0; i < d->nr_streams; i++)
		csw_perf_stream_free(&d->streams[i]);
	for (unsigned i = 0; i < d->nr_bystanders; i++)
		csw_perf_bystander_close(&d->bystanders[i]);
	if (d->epoll >= 0)
		close(d->epoll);
	csw_cgroups_close(d->cgroups);
	free(d->streams);
	free(d->bystanders);
	free(d);
}

/* Keeps of the online CPUs those that were asked for; how many, or -errno. */
static int select_cpus(unsigned *online, unsigned nr, const char *wish, struct csw_error *err)
{
	static unsigned wished[CPUS_MAX];
	int nr_wished = csw_sysfs_cpulist(wish, wished, CPUS_MAX);

	if (nr_wished <= 0)
		return csw_error_set(err, -EINVAL,
				     "\"%s\" is no list of CPUs: write 0-3,8 in ascending order",
				     wish);
	for (int i = 0; i < nr_wished; i++) {
		unsigned at = 0;

		while (at < nr && online[at] != wished[i])
			at++;
		if (at == nr)
			return csw_error_set(err, -ENODEV,
					     "CPU %u does not exist or is offline: %u are online, "
					     "the last is %u",
					     wished[i], nr, online[nr - 1]);
		/* Both lists ascend: what is overwritten has been looked at. */
		online[i] = wished[i];
	}
	return nr_wished;
}

static int open_cgroups(struct csw_driver *d, struct csw_error *err)
{
	if (!d->common.plan->cgroups)
		return 0;
	if (csw_cgroups_mount(d->cgroup_mount, sizeof(d->cgroup_mount)) < 0)
		return csw_error_set(err, -EOPNOTSUPP,
				     "no cgroup v2 hierarchy is mounted here, and membership "
				     "cannot be followed in "
				     "v1's: mount -t cgroup2 none DIRECTORY");
	if (csw_cgroups_open(&d->cgroups, d->cgroup_mount) < 0)
		return csw_error_set(err, -ENOMEM, "out of memory");
	d->common.features.sample_cgroup = true;
	return 0;
}

/* The CPUs to count on; the caller's to free. How many, or -errno. */
static int find_cpus(unsigned **cpus, const struct csw_plan *plan, struct csw_error *err)
{
	int nr = csw_sysfs_online(cpus, err);

	if (nr <= 0 || !plan->cpus)
		return nr;
	nr = select_cpus(*cpus, (unsigned)nr, plan->cpus, err);
	if (nr < 0) {
		free(*cpus);
		*cpus = NULL;
	}
	return nr;
}

static int perf_open(struct csw_driver **out, const struct csw_plan *plan, struct csw_error *err)
{
	struct csw_driver *d;
	unsigned *cpus;
	int nr, ret;

	*out = NULL;
	if (plan->driver_opts && *plan->driver_opts)
		return csw_error_set(err, -EINVAL, "driver perf takes no options");
	nr = find_cpus(&cpus, plan, err);
	if (nr < 0)
		return nr;
	d = calloc(1, sizeof(*d));
	if (!d) {
		free(cpus);
		return csw_error_set(err, -ENOMEM, "out of memory");
	}
	d->common.plan = plan;
	d->epoll = -1;
	ret = open_cgroups(d, err);
	if (ret == 0)
		ret = open_on(d, cpus, (unsigned)nr, err);
	free(cpus);
	if (ret < 0) {
		perf_close(d);
		return ret;
	}
	*out = d;
	return 0;
}

static int perf_probe(struct csw_error *err)
{
	struct csw_plan plan = { .nr_counters = 0 };
	struct csw_perf_features features = { .no_format_lost = false };
	struct csw_perf_group g;
	int ret = csw_catalogue_trigger("switch", 1, &plan.trigger, err);

	if (ret == 0)
		ret = csw_perf_group_open(&g, (unsigned)csw_sysfs_cpu_for(PERF_TYPE_SOFTWARE),
					  &plan, &features, RING_BYTES_MIN, err);
	if (ret == 0)
		csw_perf_group_close(&g);
	return ret;
}

/* ---- on and off ---- */

/* Inside a PID namespace the kernel shows every thread outside it as 0, like idle. */
static void tell_outsiders(const struct csw_sink *sink)
{
	const ino_t initial =
		0xEFFFFFFC; /* PROC_PID_INIT_INO: fixed since namespaces have inodes (Linux 3.8) */
	struct csw_record rec = { .type = CSW_RECORD_TASK, .comm = "outside" };
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) == 0 && st.st_ino != initial)
		sink->put(sink->ctx, &rec);
}

/* Names and kinds come from /proc: it must show the PIDs that perf records show, those of our
 * namespace. */
static int check_proc(struct csw_error *err)
{
	char own[32];
	ssize_t length = readlink("/proc/self", own, sizeof(own) - 1);

	if (length > 0) {
		own[length] = '\0';
		if (atoi(own) == getpid())
			return 0;
	}
	return csw_error_set(
		err, -ENOENT,
		"/proc is not mounted, or shows another PID namespace: mount -t proc proc /proc");
}

static int explain_sideband(unsigned cpu, int ret, struct csw_error *err)
{
	return csw_error_set(err, ret, "cannot switch on the switch records of CPU %u: %s", cpu,
			     strerror(-ret));
}

static int enable_sideband(struct csw_driver *d, struct csw_error *err)
{
	for (unsigned i = 0; i < d->nr_bystanders; i++) {
		int ret = csw_perf_bystander_enable(&d->bystanders[i]);

		if (ret < 0)
			return explain_sideband(d->bystanders[i].cpu, ret, err);
	}
	for (unsigned i = 0; i < d->nr_streams; i++) {
		const struct csw_perf_group *g = &d->streams[i].group;
		int ret = csw_perf_sys.ioctl(g->sideband, PERF_EVENT_IOC_ENABLE, 0);

		if (ret < 0)
			return explain_sideband(g->cpu, ret, err);
	}
	return 0;
}

static int enable_counters(struct csw_driver *d, struct csw_perf_visit *v, struct csw_error *err)
{
	int ret = 0;

	for (unsigned i = 0; i < d->nr_streams && ret == 0; i++) {
		struct csw_perf_stream *s = &d->streams[i];

		ret = csw_perf_stream_enable(s, csw_perf_visit_cpu(v, s->group.cpu), err);
	}
	return ret;
}

static int perf_start(struct csw_driver *d, const struct csw_sink *sink, struct csw_error *err)
{
	struct csw_perf_visit visit;
	int ret = enable_sideband(d, err);

	if (ret < 0)
		return ret;
	tell_outsiders(sink);
	ret = check_proc(err);
	if (ret < 0)
		return ret;
	ret = csw_perf_scan("/proc", getpid(), d->cgroups ? d->cgroup_mount : NULL, sink, err);
	if (ret < 0)
		return ret;
	if (csw_perf_visit_begin(&visit, d->nr_cpus) < 0)
		return csw_error_set(err, -ENOMEM, "out of memory");
	ret = enable_counters(d, &visit, err);
	csw_perf_visit_end(&visit);
	d->turn_ends_ns = csw_perf_sys.now_ns() + csw_turn_ns(0);
	return ret;
}

/* CPUs that are online now, are meant to be counted, and are not. Where the list cannot be read any
 * more, the last answer stands. */
static void look_for_cpus(struct csw_driver *d)
{
	unsigned *online, missed = 0;
	int nr;

	if (d->common.plan->cpus)
		return;
	nr = csw_sysfs_online(&online, NULL);
	if (nr < 0)
		return;
	for (int i = 0; i < nr; i++)
		missed += !is_counted(d, online[i]);
	d->cpus_missed = missed;
	free(online);
}

static int perf_tick(struct csw_driver *d, struct csw_error *err)
{
	int ret = 0;

	look_for_cpus(d);
	for (unsigned i = 0; i < d->nr_streams && ret == 0; i++)
		ret = csw_perf_stream_tick(&d->streams[i], err);
	return ret;
}

/* ---- turns ---- */

static int end_turns(struct csw_driver *d, struct csw_error *err)
{
	struct csw_perf_visit visit;
	int ret = 0;

	if (csw_perf_visit_begin(&visit, d->nr_cpus) < 0)
		return csw_error_set(err, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < d->nr_streams && ret == 0; i++) {
		struct csw_perf_stream *s = &d->streams[i];

		if (!csw_perf_stream_may_turn(s))
			continue;
		/* Not allowed on that CPU (a cpuset): the records say who ran in between. */
		csw_perf_visit_cpu(&visit, s->group.cpu);
		ret = csw_perf_stream_turn(s, err);
	}
	csw_perf_visit_end(&visit);
	d->turn_ends_ns = csw_perf_sys.now_ns() + csw_turn_ns(++d->turns);
	return ret;
}

/* How much of timeout_ms is left until the turns end. */
static int ms_of_turn(const struct csw_driver *d, int timeout_ms)
{
	uint64_t now_ns = csw_perf_sys.now_ns();
	uint64_t ms = now_ns < d->turn_ends_ns ? (d->turn_ends_ns - now_ns + 999999) / 1000000 : 0;

	return timeout_ms < 0 || ms < (uint64_t)timeout_ms ? (int)ms : timeout_ms;
}

static int perf_stop(struct csw_driver *d, struct csw_error *err)
{
	struct csw_perf_visit visit;
	int ret = 0;

	if (csw_perf_visit_begin(&visit, d->nr_cpus) < 0)
		return csw_error_set(err, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < d->nr_streams && ret == 0; i++) {
		struct csw_perf_stream *s = &d->streams[i];

		ret = csw_perf_stream_disable(s, csw_perf_visit_cpu(&visit, s->group.cpu), err);
	}
	csw_perf_visit_end(&visit);
	for (unsigned i = 0; i < d->nr_streams && ret == 0; i++)
		csw_perf_sys.ioctl(d->streams[i].group.sideband, PERF_EVENT_IOC_DISABLE, 0);
	for (unsigned i = 0; i < d->nr_bystanders; i++)
		csw_perf_bystander_disable(&d->bystanders[i]);
	look_for_cpus(d);
	d->stopped = true;
	return ret;
}

/* ---- the stream ---- */

static int perf_wait(struct csw_driver *d, int timeout_ms, struct csw_error *err)
{
	struct epoll_event events[16];

	if (d->common.features.turns)
		timeout_ms = ms_of_turn(d, timeout_ms);
	if (epoll_wait(d->epoll, events, 16, timeout_ms) < 0 && errno != EINTR)
		return csw_error_set(err, -errno, "epoll_wait: %s", strerror(errno));
	if (d->common.features.turns && csw_perf_sys.now_ns() >= d->turn_ends_ns) {
		int ret = end_turns(d, err);

		return ret < 0 ? ret : 1;
	}
	return 1;
}

static uint64_t perf_snapshot(struct csw_driver *d)
{
	/* The time first: what was written before it is then within the heads read after it. */
	d->common.snapshot_ns = csw_perf_sys.now_ns();
	for (unsigned i = 0; i < d->nr_streams; i++)
		csw_perf_ring_snapshot(&d->streams[i].group.ring);
	for (unsigned i = 0; i < d->nr_bystanders; i++)
		csw_perf_ring_snapshot(&d->bystanders[i].ring);
	return d->stopped ? UINT64_MAX : d->common.snapshot_ns;
}

static int perf_next(struct csw_driver *d, unsigned ring, struct csw_record *rec)
{
	if (ring < d->nr_streams)
		return csw_perf_stream_next(&d->streams[ring], rec);
	return csw_perf_bystander_next(&d->bystanders[ring - d->nr_streams], &d->common.form, rec);
}

static const char *perf_cgroup_path(struct csw_driver *d, uint64_t id)
{
	return d->cgroups ? csw_cgroups_path(d->cgroups, id) : NULL;
}

/* Which sets there are may differ from CPU to CPU, as PMUs may. */
static void count_sets(const struct csw_perf_group *g, struct csw_driver_facts *out)
{
	uint32_t any = 0, all = UINT32_MAX;

	for (unsigned i = 0; i < g->nr_sets; i++) {
		any |= g->sets[i].on;
		all &= g->sets[i].on;
	}
	out->scaled |= any & ~all;
	if (g->nr_sets > out->sets)
		out->sets = g->nr_sets;
}

static void perf_facts(const struct csw_driver *d, struct csw_driver_facts *out)
{
	*out = (struct csw_driver_facts){
		.ring_bytes = d->ring_bytes,
		.cpus_missed = d->cpus_missed,
	};
	for (unsigned i = 0; i < d->nr_streams; i++) {
		out->cpus_gone += d->streams[i].gone;
		count_sets(&d->streams[i].group, out);
	}
}

static unsigned perf_nr_rings(const struct csw_driver *d)
{
	return d->nr_streams + d->nr_bystanders;
}

static unsigned perf_nr_cpus(const struct csw_driver *d)
{
	return d->nr_cpus;
}

const struct csw_driver_ops csw_perf_driver = {
	.name = "perf",
	.summary = "the live machine through perf_event_open: one group and one ring per CPU",
	.caps = CSW_DRIVER_LIVE,
	.probe = perf_probe,
	.resolve_counter = csw_catalogue_counter,
	.resolve_trigger = csw_catalogue_trigger,
	.force_trigger = csw_catalogue_force,
	.open = perf_open,
	.nr_rings = perf_nr_rings,
	.nr_cpus = perf_nr_cpus,
	.start = perf_start,
	.wait = perf_wait,
	.snapshot = perf_snapshot,
	.next = perf_next,
	.tick = perf_tick,
	.cgroup_path = perf_cgroup_path,
	.stop = perf_stop,
	.facts = perf_facts,
	.close = perf_close,
};
