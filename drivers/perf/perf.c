/*
 * The driver of the live machine: perf_event_open, one group per CPU, one ring per CPU.
 *
 * Counters are switched on and off from their own CPU, so that the first and the last slice of
 * every CPU end in a known thread: this one. The side-band runs before and after; what it says
 * outside of START..STOP only names threads.
 *
 * Invariant: the stream of a CPU that was started is START, then records, then STOP.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/perf/group.h"
#include "drivers/perf/scan.h"
#include "drivers/perf/sys.h"
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

enum stream_state {
	STREAM_BEFORE, /* START is still to be handed out */
	STREAM_COUNTING,
	STREAM_ENDED,
};

struct stream {
	struct csw_perf_group group;
	enum stream_state state;
	bool disabled;
	bool gone;                   /* the CPU went offline */
	uint64_t enabled_ns;         /* when the enabling call had returned */
	uint64_t disabling_ns;       /* just before the disabling call */
	uint64_t disabled_ns;        /* when it had returned */
	uint64_t sampled_ns;         /* the last sample: when it was taken, */
	uint64_t sampled_enabled_ns; /* and how long the counters had been enabled by then */
	uint64_t last_ns;            /* time of the last record read */
	int32_t starter; /* TID of the thread that ran on this CPU at both ends, -1: not known */
	struct csw_record stop;
	struct csw_record reading; /* of a tick, until it was handed out; type 0: none */
};

struct csw_driver {
	const struct csw_plan *plan;
	struct csw_perf_features features;
	struct csw_perf_form form;
	struct stream *streams;
	unsigned nr_streams, nr_cpus;
	size_t ring_bytes;
	unsigned cpus_missed; /* see csw_summary */
	uint64_t snapshot_ns;
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

static int open_groups(struct csw_driver *d, const unsigned *cpus, unsigned nr,
		       struct csw_error *err)
{
	for (unsigned i = 0; i < nr; i++) {
		struct csw_perf_group *g = &d->streams[d->nr_streams].group;
		int ret =
			csw_perf_group_open(g, cpus[i], d->plan, &d->features, d->ring_bytes, err);

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
	int ret = d->plan->ring_bytes ? try_rings(d, &failed) : halve_rings(d, &failed);

	if (ret == 0)
		return 0;
	explain_rings(d, ret, d->ring_bytes, failed, err);
	if (!d->plan->ring_bytes || (ret != -EPERM && ret != -ENOMEM))
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
			     d->nr_streams, strerror(error), 2 + d->plan->nr_counters);
}

static int watch_rings(struct csw_driver *d, struct csw_error *err)
{
	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (d->epoll < 0)
		return explain_fds(d, errno, err);
	for (unsigned i = 0; i < d->nr_streams; i++) {
		struct epoll_event event = { .events = EPOLLIN };

		if (epoll_ctl(d->epoll, EPOLL_CTL_ADD, d->streams[i].group.leader, &event) < 0)
			return csw_error_set(err, -errno, "epoll_ctl: %s", strerror(errno));
	}
	return 0;
}

/* The reader is woken when a ring is filled to a part of it, which an event is told when it opens:
 * where the rings came out smaller than was thought then, the events are opened once more. */
static int reopen_for_smaller_rings(struct csw_driver *d, const unsigned *cpus, unsigned nr,
				    struct csw_error *err)
{
	unsigned failed;
	int ret;

	for (unsigned i = 0; i < d->nr_streams; i++)
		csw_perf_group_close(&d->streams[i].group);
	d->nr_streams = 0;
	ret = open_groups(d, cpus, nr, err);
	if (ret < 0)
		return ret;
	ret = try_rings(d, &failed);
	if (ret < 0)
		explain_rings(d, ret, d->ring_bytes, failed, err);
	return ret;
}

static int open_on(struct csw_driver *d, const unsigned *cpus, unsigned nr, struct csw_error *err)
{
	size_t opened_for;
	int ret;

	d->streams = calloc(nr, sizeof(*d->streams));
	if (!d->streams)
		return csw_error_set(err, -ENOMEM, "out of memory");
	d->ring_bytes = opened_for = first_ring_bytes(d->plan->ring_bytes, nr);
	ret = open_groups(d, cpus, nr, err);
	if (ret == 0)
		ret = map_rings(d, err);
	if (ret == 0 && d->ring_bytes != opened_for)
		ret = reopen_for_smaller_rings(d, cpus, nr, err);
	if (ret == 0)
		ret = watch_rings(d, err);
	csw_perf_form(&d->features, &d->form);
	return ret;
}

static void perf_close(struct csw_driver *d)
{
	if (!d)
		return;
	for (unsigned i = 0; i < d->nr_streams; i++)
		csw_perf_group_close(&d->streams[i].group);
	if (d->epoll >= 0)
		close(d->epoll);
	csw_cgroups_close(d->cgroups);
	free(d->streams);
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
	if (!d->plan->cgroups)
		return 0;
	if (csw_cgroups_mount(d->cgroup_mount, sizeof(d->cgroup_mount)) < 0)
		return csw_error_set(err, -EOPNOTSUPP,
				     "no cgroup v2 hierarchy is mounted here, and membership "
				     "cannot be followed in "
				     "v1's: mount -t cgroup2 none DIRECTORY");
	if (csw_cgroups_open(&d->cgroups, d->cgroup_mount) < 0)
		return csw_error_set(err, -ENOMEM, "out of memory");
	d->features.sample_cgroup = true;
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
	d->plan = plan;
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

/* This thread's affinity, put aside while it visits the CPUs. */
struct visit {
	cpu_set_t *home, *there;
	size_t bytes;
	unsigned nr_cpus;
};

static int begin_visit(struct visit *v, unsigned nr_cpus)
{
	/* The kernel wants room for all the CPUs that it could have; a set too small is EINVAL. */
	for (v->nr_cpus = nr_cpus < 1024 ? 1024 : nr_cpus; v->nr_cpus <= 1u << 16;
	     v->nr_cpus *= 2) {
		v->bytes = CPU_ALLOC_SIZE(v->nr_cpus);
		v->home = CPU_ALLOC(v->nr_cpus);
		v->there = CPU_ALLOC(v->nr_cpus);
		if (v->home && v->there && sched_getaffinity(0, v->bytes, v->home) == 0)
			return 0;
		CPU_FREE(v->home);
		CPU_FREE(v->there);
	}
	return -ENOMEM;
}

static bool visit_cpu(struct visit *v, unsigned cpu)
{
	CPU_ZERO_S(v->bytes, v->there);
	CPU_SET_S(cpu, v->bytes, v->there);
	return sched_setaffinity(0, v->bytes, v->there) == 0;
}

static void end_visit(struct visit *v)
{
	sched_setaffinity(0, v->bytes, v->home);
	CPU_FREE(v->home);
	CPU_FREE(v->there);
}

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

static int enable_sideband(struct csw_driver *d, struct csw_error *err)
{
	for (unsigned i = 0; i < d->nr_streams; i++) {
		const struct csw_perf_group *g = &d->streams[i].group;
		int ret = csw_perf_sys.ioctl(g->sideband, PERF_EVENT_IOC_ENABLE, 0);

		if (ret < 0)
			return csw_error_set(err, ret,
					     "cannot switch on the switch records of CPU %u: %s",
					     g->cpu, strerror(-ret));
	}
	return 0;
}

static int enable_counters(struct csw_driver *d, struct visit *v, struct csw_error *err)
{
	for (unsigned i = 0; i < d->nr_streams; i++) {
		struct stream *s = &d->streams[i];
		bool there = visit_cpu(v, s->group.cpu);
		/* Only the leader is disabled: enabling it sets off its group. */
		int ret = csw_perf_sys.ioctl(s->group.leader, PERF_EVENT_IOC_ENABLE, 0);

		if (ret < 0)
			return csw_error_set(err, ret,
					     "cannot switch on the counters of CPU %u: %s",
					     s->group.cpu, strerror(-ret));
		s->enabled_ns = csw_perf_sys.now_ns();
		/* Not allowed on that CPU (a cpuset): the first switch record will tell who ran. */
		s->starter = there ? (int32_t)syscall(SYS_gettid) : -1;
	}
	return 0;
}

static int perf_start(struct csw_driver *d, const struct csw_sink *sink, struct csw_error *err)
{
	struct visit visit;
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
	if (begin_visit(&visit, d->nr_cpus) < 0)
		return csw_error_set(err, -ENOMEM, "out of memory");
	ret = enable_counters(d, &visit, err);
	end_visit(&visit);
	return ret;
}

/* Reads one CPU's counters into rec, which already says what it is. */
static int read_stream(struct csw_driver *d, const struct stream *s, struct csw_record *rec,
		       struct csw_error *err)
{
	int ret = csw_perf_group_read(&s->group, &d->features, rec);

	if (ret < 0)
		return csw_error_set(err, ret, "cannot read the counters of CPU %u: %s",
				     s->group.cpu, strerror(-ret));
	rec->lost_other = csw_perf_group_sideband_lost(&s->group, &d->features);
	return 0;
}

static bool is_counted(const struct csw_driver *d, unsigned cpu)
{
	for (unsigned i = 0; i < d->nr_streams; i++)
		if (d->streams[i].group.cpu == cpu)
			return true;
	return false;
}

/* CPUs that are online now, are meant to be counted, and are not. Where the list cannot be read any
 * more, the last answer stands. */
static void look_for_cpus(struct csw_driver *d)
{
	unsigned *online, missed = 0;
	int nr;

	if (d->plan->cpus)
		return;
	nr = csw_sysfs_online(&online, NULL);
	if (nr < 0)
		return;
	for (int i = 0; i < nr; i++)
		missed += !is_counted(d, online[i]);
	d->cpus_missed = missed;
	free(online);
}

/* From here, by an interrupt on each CPU: it cannot fall into a switch, whose records are all in
 * the ring by then. */
static int perf_tick(struct csw_driver *d, struct csw_error *err)
{
	look_for_cpus(d);
	for (unsigned i = 0; i < d->nr_streams; i++) {
		struct stream *s = &d->streams[i];
		int ret;

		s->reading = (struct csw_record){ .cpu = s->group.cpu, .pid = -1, .tid = -1 };
		ret = read_stream(d, s, &s->reading, err);
		if (ret < 0)
			return ret;
		s->gone |= (s->reading.flags & CSW_RECORD_DETACHED) != 0;
		s->reading.type = CSW_RECORD_READ;
		s->reading.time_ns = csw_perf_sys.now_ns();
	}
	return 0;
}

/* After a disable no value moves any more; so the last reading fits the last record. */
static int disable_stream(struct csw_driver *d, struct stream *s, struct visit *v,
			  struct csw_error *err)
{
	bool there = visit_cpu(v, s->group.cpu);
	int ret;

	s->disabling_ns = csw_perf_sys.now_ns();
	ret = csw_perf_sys.ioctl(s->group.leader, PERF_EVENT_IOC_DISABLE, 0);
	if (ret < 0)
		return csw_error_set(err, ret, "cannot switch off the counters of CPU %u: %s",
				     s->group.cpu, strerror(-ret));
	s->disabled_ns = csw_perf_sys.now_ns();
	s->disabled = true;
	s->stop = (struct csw_record){
		.type = CSW_RECORD_STOP,
		.cpu = s->group.cpu,
		.time_ns = s->disabled_ns,
		.pid = there ? getpid() : -1,
		.tid = there ? (int32_t)syscall(SYS_gettid) : -1,
	};
	ret = read_stream(d, s, &s->stop, err);
	s->gone |= (s->stop.flags & CSW_RECORD_DETACHED) != 0;
	return ret;
}

static int perf_stop(struct csw_driver *d, struct csw_error *err)
{
	struct visit visit;
	int ret = 0;

	if (begin_visit(&visit, d->nr_cpus) < 0)
		return csw_error_set(err, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < d->nr_streams && ret == 0; i++)
		ret = disable_stream(d, &d->streams[i], &visit, err);
	end_visit(&visit);
	for (unsigned i = 0; i < d->nr_streams && ret == 0; i++)
		csw_perf_sys.ioctl(d->streams[i].group.sideband, PERF_EVENT_IOC_DISABLE, 0);
	look_for_cpus(d);
	d->stopped = true;
	return ret;
}

/* ---- the stream ---- */

static int perf_wait(struct csw_driver *d, int timeout_ms, struct csw_error *err)
{
	struct epoll_event events[16];

	if (epoll_wait(d->epoll, events, 16, timeout_ms) < 0 && errno != EINTR)
		return csw_error_set(err, -errno, "epoll_wait: %s", strerror(errno));
	return 1;
}

static uint64_t perf_snapshot(struct csw_driver *d)
{
	/* The time first: what was written before it is then within the heads read after it. */
	d->snapshot_ns = csw_perf_sys.now_ns();
	for (unsigned i = 0; i < d->nr_streams; i++)
		csw_perf_ring_snapshot(&d->streams[i].group.ring);
	return d->stopped ? UINT64_MAX : d->snapshot_ns;
}

static void make_start(const struct csw_driver *d, const struct stream *s, uint64_t time_ns,
		       struct csw_record *rec)
{
	memset(rec, 0, sizeof(*rec));
	rec->type = CSW_RECORD_START;
	rec->cpu = s->group.cpu;
	rec->time_ns = time_ns < s->enabled_ns ? time_ns : s->enabled_ns;
	rec->tid = s->starter;
	rec->pid = s->starter < 0 ? -1 : getpid();
	/* Counters opened disabled stand at 0 until they are enabled. */
	rec->nr_values = 1 + d->plan->nr_counters;
}

static bool is_about_cpu(uint32_t type)
{
	return type == CSW_RECORD_SWITCH_OUT || type == CSW_RECORD_SWITCH_IN ||
	       type == CSW_RECORD_LOST || type == CSW_RECORD_THROTTLE ||
	       type == CSW_RECORD_UNTHROTTLE;
}

/* When the counters went off. This thread may lose its CPU within the call, after they are off:
 * such switches have no sample and belong to no counter. How long the counters were enabled since
 * the last sample tells the moment; it is another clock than the records', so it only decides
 * between the times on both sides of the call. */
static uint64_t end_ns(const struct stream *s)
{
	uint64_t end = s->sampled_ns + (s->stop.enabled_ns - s->sampled_enabled_ns);

	if (!s->sampled_ns || end > s->disabled_ns)
		return s->disabled_ns;
	return end < s->disabling_ns ? s->disabling_ns : end;
}

/* Where a record stands towards counting. The side-band of a CPU runs before its counters and after
 * them. */
static bool is_outside(const struct stream *s, const struct csw_record *rec)
{
	if (!is_about_cpu(rec->type))
		return false;
	return (s->state == STREAM_BEFORE && rec->time_ns <= s->enabled_ns) ||
	       (s->disabled && rec->time_ns > end_ns(s));
}

static bool opens_stream(const struct stream *s, const struct csw_record *rec)
{
	/* A sample proves that counting has begun, a switch record only by its time. */
	return s->state == STREAM_BEFORE && s->enabled_ns &&
	       (rec->type == CSW_RECORD_SAMPLE || is_about_cpu(rec->type));
}

/* A tick's reading stands before the first sample that counted more, and before what was written
 * after it. */
static bool reading_comes_before(const struct stream *s, const struct csw_record *rec)
{
	if (s->reading.type != CSW_RECORD_READ || s->state != STREAM_COUNTING)
		return false;
	if (rec->type == CSW_RECORD_SAMPLE)
		return rec->values[0] > s->reading.values[0];
	return rec->time_ns > s->reading.time_ns;
}

static int hand_out_reading(struct stream *s, uint64_t latest_ns, struct csw_record *rec)
{
	*rec = s->reading;
	if (rec->time_ns > latest_ns)
		rec->time_ns = latest_ns;
	s->reading.type = CSW_RECORD_NONE;
	return 1;
}

/* The ring is read out: what is left to say. */
static int finish_ring(const struct csw_driver *d, struct stream *s, struct csw_record *rec)
{
	bool has_reading = s->reading.type == CSW_RECORD_READ;

	if (s->state == STREAM_BEFORE && (has_reading || s->disabled)) {
		make_start(d, s, s->enabled_ns, rec);
		s->state = STREAM_COUNTING;
		return 1;
	}
	if (has_reading && s->state == STREAM_COUNTING)
		return hand_out_reading(s, UINT64_MAX, rec);
	if (!s->disabled || s->state == STREAM_ENDED)
		return 0;
	*rec = s->stop;
	rec->time_ns = end_ns(s);
	s->state = STREAM_ENDED;
	return 1;
}

/*
 * The kernel fills in a sample once for all software events that overflow together, in the form
 * that the first of them asked for: where another program counts the same event by another clock,
 * or in another PID namespace, our sample has its time and its TID. So a sample's time counts only
 * within the side-band records around it, which are ours alone. Where only samples follow, as of a
 * trigger that is no switch, it is at least no later than the snapshot. 0: nothing follows yet.
 */
static int bound_time(const struct csw_driver *d, struct stream *s, struct csw_record *rec)
{
	bool last;
	uint64_t latest_ns =
		csw_perf_ring_next_time(&s->group.ring, csw_perf_time_from_end(&d->form), &last);

	if (!latest_ns && last && !s->disabled)
		return 0;
	if (!latest_ns)
		latest_ns = s->disabled ? s->disabled_ns : d->snapshot_ns;
	if (rec->time_ns > latest_ns)
		rec->time_ns = latest_ns;
	if (rec->time_ns < s->last_ns)
		rec->time_ns = s->last_ns;
	return 1;
}

/* What stands before the record just decoded, which stays for the next call: 1 and *rec, else 0. */
static int precede(const struct csw_driver *d, struct stream *s, struct csw_record *rec)
{
	if (opens_stream(s, rec)) {
		make_start(d, s, rec->time_ns, rec);
		s->state = STREAM_COUNTING;
		return 1;
	}
	return reading_comes_before(s, rec) ? hand_out_reading(s, rec->time_ns, rec) : 0;
}

static int perf_next(struct csw_driver *d, unsigned ring, struct csw_record *rec)
{
	struct stream *s = &d->streams[ring];
	struct csw_perf_ring *r = &s->group.ring;

	for (;;) {
		int ret;
		const struct perf_event_header *raw = csw_perf_ring_peek(r, &ret);

		if (!raw)
			return ret < 0 ? ret : finish_ring(d, s, rec);
		ret = csw_perf_decode(&d->form, raw, rec);
		if (ret < 0)
			return ret;
		if (ret > 0 && rec->type == CSW_RECORD_SAMPLE && !bound_time(d, s, rec))
			return 0;
		if (ret > 0 && !is_outside(s, rec) && precede(d, s, rec))
			return 1;
		if (ret > 0)
			s->last_ns = rec->time_ns;
		if (ret > 0 && rec->type == CSW_RECORD_SAMPLE) {
			s->sampled_ns = rec->time_ns;
			s->sampled_enabled_ns = rec->enabled_ns;
		}
		csw_perf_ring_consume(r, raw);
		if (ret > 0 && !is_outside(s, rec))
			return 1;
	}
}

static const char *perf_cgroup_path(struct csw_driver *d, uint64_t id)
{
	return d->cgroups ? csw_cgroups_path(d->cgroups, id) : NULL;
}

static void perf_facts(const struct csw_driver *d, struct csw_driver_facts *out)
{
	*out = (struct csw_driver_facts){
		.ring_bytes = d->ring_bytes,
		.cpus_missed = d->cpus_missed,
	};
	for (unsigned i = 0; i < d->nr_streams; i++)
		out->cpus_gone += d->streams[i].gone;
}

static unsigned perf_nr_rings(const struct csw_driver *d)
{
	return d->nr_streams;
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
