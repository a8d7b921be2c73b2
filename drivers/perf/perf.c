/*
 * The driver of the live machine: perf_event_open, one group per CPU, one ring per CPU; where not
 * all counters fit, several groups that take turns (group.h, turns.h).
 *
 * Counters are switched on and off from their own CPU, so that the first and the last slice of
 * every CPU end in a known thread: this one. The side-band runs before and after; what it says
 * outside of START..STOP only names threads.
 *
 * A turn is ended by this thread, on the CPU itself: the old set off, its reading, the new set on.
 * What lies between belongs to this thread, and no other loses anything by it.
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
#include "drivers/perf/turns.h"
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

/* Readings that wait for their place in the stream: at most a tick's, the end of a turn, the
 * beginning of the next one, and another tick's. */
#define CUTS_MAX 4

/* How often a CPU is read for a reading without a switch: at some microseconds each it costs a tick
 * less than a millisecond where there is none. */
#define TRIES_STILL 32

enum cut_kind {
	CUT_TICK, /* the counters were read */
	CUT_OFF,  /* a set was switched off */
	CUT_ON,   /* ... and another one on; nothing was counted in between */
};

struct cut {
	uint32_t kind;          /* enum cut_kind */
	uint64_t before_ns;     /* OFF: just before the disabling call */
	struct csw_record read; /* its time: when the call had returned */
};

struct stream {
	struct csw_perf_group group;
	struct csw_perf_turns turns; /* only where there are several sets: */
	struct csw_perf_turn now;    /* the set that is enabled, */
	struct csw_perf_turn seen;   /* and the one that the records at the read position are of */
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
	unsigned nr_cuts;
	struct cut cuts[CUTS_MAX]; /* in the order of their times */
};

struct csw_driver {
	const struct csw_plan *plan;
	struct csw_perf_features features;
	struct csw_perf_form form;
	struct stream *streams;
	unsigned nr_streams, nr_cpus;
	size_t ring_bytes;
	unsigned cpus_missed; /* see csw_summary */
	uint32_t turns;       /* that have ended */
	uint64_t turn_ends_ns;
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

static int try_groups(struct csw_driver *d, const unsigned *cpus, unsigned nr,
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
			     d->nr_streams, strerror(error),
			     csw_perf_group_fds(&d->streams[0].group));
}

static int watch_rings(struct csw_driver *d, struct csw_error *err)
{
	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (d->epoll < 0)
		return explain_fds(d, errno, err);
	for (unsigned i = 0; i < d->nr_streams; i++) {
		struct epoll_event event = { .events = EPOLLIN };

		if (epoll_ctl(d->epoll, EPOLL_CTL_ADD, d->streams[i].group.sets[0].leader, &event) <
		    0)
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
static int init_turns(struct csw_driver *d, struct csw_error *err)
{
	for (unsigned i = 0; d->features.turns && i < d->nr_streams; i++) {
		struct stream *s = &d->streams[i];

		if (csw_perf_turns_init(&s->turns, &s->group, d->plan->nr_counters, &s->now,
					i % s->group.nr_sets) < 0)
			return csw_error_set(err, -ENOMEM, "out of memory");
		s->seen = s->now;
	}
	return 0;
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
	if (ret == 0)
		ret = init_turns(d, err);
	csw_perf_form(&d->features, &d->form);
	return ret;
}

static void perf_close(struct csw_driver *d)
{
	if (!d)
		return;
	for (unsigned i = 0; i < d->nr_streams; i++)
		csw_perf_turns_free(&d->streams[i].turns);
	close_groups(d);
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

static const struct csw_perf_set *enabled_set(const struct stream *s)
{
	return &s->group.sets[s->now.set];
}

static int enable_counters(struct csw_driver *d, struct visit *v, struct csw_error *err)
{
	for (unsigned i = 0; i < d->nr_streams; i++) {
		struct stream *s = &d->streams[i];
		bool there = visit_cpu(v, s->group.cpu);
		/* Only the leader is disabled: enabling it sets off its group. */
		int ret = csw_perf_sys.ioctl(enabled_set(s)->leader, PERF_EVENT_IOC_ENABLE, 0);

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
	d->turn_ends_ns = csw_perf_sys.now_ns() + csw_turn_ns(0);
	return ret;
}

/* Reads one CPU's counters into rec, which already says what it is. */
static int read_stream(const struct csw_driver *d, const struct stream *s, struct csw_record *rec,
		       struct csw_error *err)
{
	int ret = csw_perf_set_read(enabled_set(s), &d->features, rec);

	if (ret == 0 && d->features.turns)
		ret = csw_perf_turns_sum(&s->turns, &s->now, rec);
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

/* Reads the counters into a cut, which is added to the stream's by whoever knows its kind. */
static int read_cut(const struct csw_driver *d, struct stream *s, struct cut *cut,
		    struct csw_error *err)
{
	int ret;

	*cut = (struct cut){
		.read = { .type = CSW_RECORD_READ, .cpu = s->group.cpu, .pid = -1, .tid = -1 }
	};
	ret = read_stream(d, s, &cut->read, err);
	cut->read.time_ns = csw_perf_sys.now_ns();
	s->gone |= (cut->read.flags & CSW_RECORD_DETACHED) != 0;
	return ret;
}

/* A tick's that is still there is none any more: this one tells all that it told. */
static struct cut *tick_cut(struct stream *s)
{
	if (!s->nr_cuts || s->cuts[s->nr_cuts - 1].kind != CUT_TICK)
		s->nr_cuts++;
	return &s->cuts[s->nr_cuts - 1];
}

/*
 * A reading that no switch tears apart. The kernel has the CPU bring its clocks and hardware
 * counters up to date, by an interrupt, and copies all values only then, while that CPU runs on:
 * software events are counted further meanwhile. But a switch leaves records, and while one is
 * under way the interrupt waits. So where the ring's head stays the same from before a reading to
 * behind the next one there was no switch in the first, nor from there to its time. 1: *cut is such
 * a reading; 0: the CPU switches too often. Then its last sample has just been.
 */
static int read_still(const struct csw_driver *d, struct stream *s, struct cut *cut,
		      struct csw_error *err)
{
	uint64_t before = csw_perf_ring_written(&s->group.ring);
	int ret = read_cut(d, s, cut, err);

	for (unsigned i = 0; i < TRIES_STILL && ret == 0; i++) {
		uint64_t between = csw_perf_ring_written(&s->group.ring);
		struct cut next;

		ret = read_cut(d, s, &next, err);
		if (ret < 0 || csw_perf_ring_written(&s->group.ring) == before)
			return ret < 0 ? ret : 1;
		before = between;
		*cut = next;
	}
	return ret;
}

static int perf_tick(struct csw_driver *d, struct csw_error *err)
{
	look_for_cpus(d);
	for (unsigned i = 0; i < d->nr_streams; i++) {
		struct stream *s = &d->streams[i];
		struct cut cut;
		int still = read_still(d, s, &cut, err);

		if (still < 0)
			return still;
		if (still)
			*tick_cut(s) = cut;
	}
	return 0;
}

/* ---- turns ---- */

static int explain_turn(const struct stream *s, int ret, struct csw_error *err)
{
	return csw_error_set(err, ret, "cannot let the counters of CPU %u take turns: %s",
			     s->group.cpu, strerror(-ret));
}

/* Each turn begins with a whole period: what the set had counted of its last one before is said to
 * be open (CSW_RECORD_TURN). */
static int enable_next(const struct csw_driver *d, const struct stream *s)
{
	uint64_t sav = d->plan->trigger.sav;
	int leader = enabled_set(s)->leader, ret = 0;

	if (sav > 1)
		ret = csw_perf_sys.ioctl(leader, PERF_EVENT_IOC_PERIOD, (unsigned long)&sav);
	return ret < 0 ? ret : csw_perf_sys.ioctl(leader, PERF_EVENT_IOC_ENABLE, 0);
}

/* Ends the turn of the set that is enabled on a CPU and begins the next one's; this thread should
 * be there. */
static int end_turn(const struct csw_driver *d, struct stream *s, struct csw_error *err)
{
	struct cut *off = &s->cuts[s->nr_cuts], *on = off + 1;
	uint64_t before_ns = csw_perf_sys.now_ns(), off_ns;
	int ret = csw_perf_sys.ioctl(enabled_set(s)->leader, PERF_EVENT_IOC_DISABLE, 0);

	if (ret < 0)
		return explain_turn(s, ret, err);
	off_ns = csw_perf_sys.now_ns();
	ret = read_cut(d, s, off, err);
	if (ret < 0)
		return ret;
	if (s->gone) {
		s->nr_cuts++; /* went offline: like a tick, and its last one */
		return 0;
	}
	off->kind = CUT_OFF;
	off->before_ns = before_ns;
	off->read.time_ns = off_ns;
	off->read.flags |= CSW_RECORD_TURN;
	*on = *off;
	on->kind = CUT_ON;
	on->read.flags &= ~CSW_RECORD_TURN;
	on->read.on = 0;
	csw_perf_turns_next(&s->turns, &s->now, &off->read);
	ret = enable_next(d, s);
	if (ret < 0)
		return explain_turn(s, ret, err);
	on->read.time_ns = csw_perf_sys.now_ns();
	s->nr_cuts += 2;
	return 0;
}

/* Where the last turn's end is still to be read this one goes on: so at most one of them waits, and
 * there is always room for a tick. */
static bool may_turn(const struct stream *s)
{
	return s->group.nr_sets > 1 && !s->gone && s->nr_cuts <= CUTS_MAX - 3;
}

static int end_turns(struct csw_driver *d, struct csw_error *err)
{
	struct visit visit;
	int ret = 0;

	if (begin_visit(&visit, d->nr_cpus) < 0)
		return csw_error_set(err, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < d->nr_streams && ret == 0; i++) {
		struct stream *s = &d->streams[i];

		if (!may_turn(s))
			continue;
		/* Not allowed on that CPU (a cpuset): the records say who ran in between. */
		visit_cpu(&visit, s->group.cpu);
		ret = end_turn(d, s, err);
	}
	end_visit(&visit);
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

/* After a disable no value moves any more; so the last reading fits the last record. */
static int disable_stream(struct csw_driver *d, struct stream *s, struct visit *v,
			  struct csw_error *err)
{
	bool there = visit_cpu(v, s->group.cpu);
	int ret;

	s->disabling_ns = csw_perf_sys.now_ns();
	ret = csw_perf_sys.ioctl(enabled_set(s)->leader, PERF_EVENT_IOC_DISABLE, 0);
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

	if (d->features.turns)
		timeout_ms = ms_of_turn(d, timeout_ms);
	if (epoll_wait(d->epoll, events, 16, timeout_ms) < 0 && errno != EINTR)
		return csw_error_set(err, -errno, "epoll_wait: %s", strerror(errno));
	if (d->features.turns && csw_perf_sys.now_ns() >= d->turn_ends_ns) {
		int ret = end_turns(d, err);

		return ret < 0 ? ret : 1;
	}
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

/* When the counters went off, in a call that began at from_ns and had returned at to_ns, after
 * which they had been enabled for so long. This thread may lose its CPU within the call, after they
 * are off: such switches have no sample and belong to no counter. How long the counters were
 * enabled since the last sample tells the moment; it is another clock than the records', so it only
 * decides between the times on both sides of the call. */
static uint64_t off_ns(const struct stream *s, uint64_t from_ns, uint64_t to_ns,
		       uint64_t enabled_ns)
{
	uint64_t off = s->sampled_ns + (enabled_ns - s->sampled_enabled_ns);

	if (!s->sampled_ns || off > to_ns)
		return to_ns;
	return off < from_ns ? from_ns : off;
}

/* When they went off for good; as long as a turn's end is still to come, the last sample says
 * nothing of that. */
static uint64_t end_ns(const struct stream *s)
{
	if (s->seen.set != s->now.set)
		return s->disabled_ns;
	return off_ns(s, s->disabling_ns, s->disabled_ns, s->stop.enabled_ns);
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

static uint64_t cut_ns(const struct stream *s, const struct cut *cut)
{
	if (cut->kind != CUT_OFF)
		return cut->read.time_ns;
	return off_ns(s, cut->before_ns, cut->read.time_ns, cut->read.enabled_ns);
}

/* Samples of a set stand between the beginning of its turn and its end, whatever their times. A
 * tick's reading stands before the first sample that counted more. Of all other records the time
 * decides. foreign: a sample of another set than those before it. */
static bool cut_comes_before(const struct stream *s, const struct csw_record *rec, bool foreign)
{
	const struct cut *cut = &s->cuts[0];

	if (!s->nr_cuts || s->state != STREAM_COUNTING)
		return false;
	if (rec->type != CSW_RECORD_SAMPLE)
		return rec->time_ns > cut_ns(s, cut);
	return foreign || (cut->kind == CUT_TICK && rec->values[0] > cut->read.values[0]);
}

/* At most one turn's end is waiting, so that what begins with it is the turn that is now. */
static int hand_out_cut(struct stream *s, uint64_t latest_ns, struct csw_record *rec)
{
	struct cut *cut = &s->cuts[0];

	*rec = cut->read;
	rec->time_ns = cut_ns(s, cut);
	if (rec->time_ns > latest_ns)
		rec->time_ns = latest_ns;
	if (cut->kind == CUT_ON) {
		s->seen = s->now;
		s->sampled_ns = 0; /* that was another set's */
	}
	memmove(cut, cut + 1, --s->nr_cuts * sizeof(*cut));
	return 1;
}

/* The ring is read out: what is left to say. */
static int finish_ring(const struct csw_driver *d, struct stream *s, struct csw_record *rec)
{
	if (s->state == STREAM_BEFORE && (s->nr_cuts || s->disabled)) {
		make_start(d, s, s->enabled_ns, rec);
		s->state = STREAM_COUNTING;
		return 1;
	}
	if (s->nr_cuts && s->state == STREAM_COUNTING)
		return hand_out_cut(s, UINT64_MAX, rec);
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
	bool last, leaves;
	uint64_t latest_ns = csw_perf_ring_next_time(
		&s->group.ring, csw_perf_time_from_end(&d->form), &last, &leaves);

	if (!latest_ns && last && !s->disabled)
		return 0;
	if (!latest_ns)
		latest_ns = s->disabled ? s->disabled_ns : d->snapshot_ns;
	if (rec->time_ns > latest_ns || (leaves && d->plan->trigger.phase == CSW_PHASE_BEFORE &&
					 latest_ns - rec->time_ns > CSW_PERF_SAMPLE_TO_SWITCH_NS))
		rec->time_ns = latest_ns;
	if (rec->time_ns < s->last_ns)
		rec->time_ns = s->last_ns;
	return 1;
}

/* What stands before the record just decoded, which stays for the next call: 1 and *rec, else 0. */
static int precede(const struct csw_driver *d, struct stream *s, struct csw_record *rec,
		   bool foreign)
{
	if (opens_stream(s, rec)) {
		make_start(d, s, rec->time_ns, rec);
		s->state = STREAM_COUNTING;
		return 1;
	}
	return cut_comes_before(s, rec, foreign) ? hand_out_cut(s, rec->time_ns, rec) : 0;
}

/* A sample where counters take turns: the sums over all sets, once the turn of its own has been
 * handed out. -EINVAL: such a turn was never begun. */
static int sum_up(const struct stream *s, const struct perf_event_header *raw,
		  struct csw_record *rec, bool *foreign)
{
	*foreign = csw_perf_sample_id(raw) != s->group.sets[s->seen.set].id;
	if (!*foreign)
		return csw_perf_turns_sum(&s->turns, &s->seen, rec);
	return s->nr_cuts ? 0 : -EINVAL;
}

static int perf_next(struct csw_driver *d, unsigned ring, struct csw_record *rec)
{
	struct stream *s = &d->streams[ring];
	struct csw_perf_ring *r = &s->group.ring;

	for (;;) {
		int ret;
		bool foreign = false;
		const struct perf_event_header *raw = csw_perf_ring_peek(r, &ret);

		if (!raw)
			return ret < 0 ? ret : finish_ring(d, s, rec);
		ret = csw_perf_decode(&d->form, raw, rec);
		if (ret < 0)
			return ret;
		if (ret > 0 && rec->type == CSW_RECORD_SAMPLE) {
			if (!bound_time(d, s, rec))
				return 0;
			if (d->features.turns && sum_up(s, raw, rec, &foreign) < 0)
				return -EINVAL;
		}
		if (ret > 0 && !is_outside(s, rec) && precede(d, s, rec, foreign))
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
