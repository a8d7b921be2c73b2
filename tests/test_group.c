/*
 * drivers/perf, group and perf, on a kernel made of counters: every call can fail, nothing may stay
 * open, and what the driver makes of its rings is START, records, STOP.
 *
 * The made-up machine has three CPUs. A descriptor is a real one (an eventfd), since the driver
 * waits for it by epoll.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>

#include "drivers/perf/group.h"
#include "drivers/perf/sys.h"
#include "tree.h"

#define NR_CPUS 3
#define NR_COUNTERS 2
#define PER_CPU (2 + NR_COUNTERS) /* side-band, leader, counters: in this order */
#define FDS_MAX 1024
#define ENABLED_NS 1000
#define DISABLED_NS 5000

enum call { EVENT_OPEN, IOCTL, MAP, READ, NR_CALLS };

struct event {
	bool open;
	int cpu, group_fd, output;
	struct perf_event_attr attr;
	struct perf_event_mmap_page *page;
	size_t mapped;
	unsigned enabled, disabled;
};

static struct {
	struct event events[FDS_MAX];
	unsigned calls[NR_CALLS];
	unsigned opens, closes, maps, unmaps;
	/* The n-th call (and all after it, when `on`) fails; READ with error 0 reads nothing. */
	enum call fail_call;
	int fail_error;
	unsigned fail_at;
	bool failing, on;
	size_t lock_limit; /* bytes of one mapping that may be locked, 0: any */
	bool no_format_lost;
	int offline_cpu;
	int detached_cpu; /* went offline after the start: its group is taken apart */
	uint64_t now;
	uint64_t disable_ns; /* how long a DISABLE takes */
	unsigned sidebands_enabled;
} kernel;

/* 1 when this call is to fail. */
static bool fails(enum call call)
{
	unsigned n = kernel.calls[call]++;

	return kernel.failing && kernel.fail_call == call &&
	       (n == kernel.fail_at || (kernel.on && n > kernel.fail_at));
}

static struct event *event_of(int fd)
{
	assert_in_range(fd, 0, FDS_MAX - 1);
	assert_true(kernel.events[fd].open);
	return &kernel.events[fd];
}

static int fake_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
		     unsigned long flags)
{
	int fd;

	(void)flags;
	assert_int_equal(pid, -1);
	if (fails(EVENT_OPEN))
		return kernel.fail_error;
	if (cpu == kernel.offline_cpu)
		return -ENODEV;
	if (kernel.no_format_lost && (attr->read_format & PERF_FORMAT_LOST))
		return -EINVAL;
	if (group_fd >= 0)
		assert_int_equal(event_of(group_fd)->cpu, cpu);
	fd = eventfd(0, EFD_CLOEXEC);
	assert_in_range(fd, 0, FDS_MAX - 1);
	kernel.events[fd] = (struct event){
		.open = true, .cpu = cpu, .group_fd = group_fd, .output = -1, .attr = *attr
	};
	kernel.opens++;
	return fd;
}

static int fake_ioctl(int fd, unsigned long request, unsigned long arg)
{
	struct event *event = event_of(fd);

	if (fails(IOCTL))
		return kernel.fail_error;
	switch (request) {
	case PERF_EVENT_IOC_SET_OUTPUT:
		event->output = (int)arg;
		/* An output must have a ring. */
		assert_true(event->output < 0 || event_of(event->output)->page);
		break;
	case PERF_EVENT_IOC_ENABLE:
		event->enabled++;
		kernel.sidebands_enabled += event->attr.context_switch;
		/* Nobody may switch unseen while a counter runs. */
		if (event->attr.config != PERF_COUNT_SW_DUMMY)
			assert_int_equal(kernel.sidebands_enabled,
					 (kernel.opens - kernel.closes) / PER_CPU);
		break;
	case PERF_EVENT_IOC_DISABLE:
		event->disabled++;
		kernel.now += kernel.disable_ns;
		break;
	default:
		fail_msg("ioctl %lx", request);
	}
	return 0;
}

static int fake_map(void **out, size_t bytes, int fd)
{
	struct event *event = event_of(fd);

	if (fails(MAP))
		return kernel.fail_error;
	if (kernel.lock_limit && bytes > kernel.lock_limit)
		return -EPERM;
	assert_null(event->page);
	event->page = aligned_alloc(8, bytes);
	assert_non_null(event->page);
	memset(event->page, 0, bytes);
	event->mapped = bytes;
	kernel.maps++;
	*out = event->page;
	return 0;
}

static void fake_unmap(void *at, size_t bytes)
{
	for (int fd = 0; fd < FDS_MAX; fd++) {
		struct event *event = &kernel.events[fd];

		if (!event->open || event->page != at)
			continue;
		assert_int_equal(bytes, event->mapped);
		free(at);
		event->page = NULL;
		kernel.unmaps++;
		return;
	}
	fail_msg("unmap of what is not mapped");
}

static ssize_t fake_read(int fd, void *buf, size_t bytes)
{
	const struct event *event = event_of(fd);
	const bool lost = event->attr.read_format & PERF_FORMAT_LOST;
	uint64_t words[64], nr = 0;

	if (fails(READ))
		return kernel.fail_error;
	if (event->attr.read_format & PERF_FORMAT_GROUP) {
		const uint64_t members = event->cpu == kernel.detached_cpu ? 0 : NR_COUNTERS;

		words[nr++] = 1 + members;
		words[nr++] = 4000; /* enabled, running */
		words[nr++] = 3000;
		for (uint64_t i = 0; i <= members; i++) {
			words[nr++] = 100 * (uint64_t)(event->cpu + 1) + i;
			if (lost)
				words[nr++] = i ? 77 : 2;
		}
	} else {
		words[nr++] = 0;
		words[nr++] = 4000;
		words[nr++] = 4000;
		if (lost)
			words[nr++] = 3;
	}
	assert_true(nr * sizeof(*words) <= bytes);
	memcpy(buf, words, nr * sizeof(*words));
	return (ssize_t)(nr * sizeof(*words));
}

static void fake_close(int fd)
{
	struct event *event = event_of(fd);

	/* A leader goes last, or its members would be events of their own for a moment. */
	for (int i = 0; i < FDS_MAX; i++)
		assert_false(kernel.events[i].open && kernel.events[i].group_fd == fd && i != fd);
	assert_null(event->page);
	event->open = false;
	kernel.closes++;
	assert_int_equal(close(fd), 0);
}

static uint64_t fake_now(void)
{
	return kernel.now;
}

static void reset(void)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.offline_cpu = kernel.detached_cpu = -1;
	kernel.now = ENABLED_NS;
}

static int setup(void **state)
{
	int ret = tree_setup(state);

	tree_file("/sys/devices/system/cpu/online", "0-2\n");
	csw_perf_sys = (struct csw_perf_sys){ .event_open = fake_open,
					      .ioctl = fake_ioctl,
					      .map = fake_map,
					      .unmap = fake_unmap,
					      .read = fake_read,
					      .close = fake_close,
					      .now_ns = fake_now };
	reset();
	return ret;
}

static const struct csw_plan the_plan = {
	.trigger = { .event = { .name = "the-trigger",
				.became = "context-switches",
				.type = PERF_TYPE_SOFTWARE,
				.config = PERF_COUNT_SW_CONTEXT_SWITCHES },
		     .sav = 1,
		     .per_switch = 1 },
	.counters = { { .name = "counter-one",
			.became = "one",
			.type = PERF_TYPE_SOFTWARE,
			.config = PERF_COUNT_SW_PAGE_FAULTS },
		      { .name = "counter-two",
			.became = "two",
			.type = PERF_TYPE_SOFTWARE,
			.config = PERF_COUNT_SW_TASK_CLOCK } },
	.nr_counters = NR_COUNTERS,
	.ring_bytes = 1 << 16,
};

static const struct csw_driver_ops *const ops = &csw_perf_driver;

static unsigned threads_found;

static void count_threads(void *ctx, const struct csw_record *rec)
{
	(void)ctx;
	assert_int_equal(rec->type, CSW_RECORD_TASK);
	/* Before any counter runs. */
	for (int fd = 0; fd < FDS_MAX; fd++)
		assert_false(kernel.events[fd].open &&
			     kernel.events[fd].attr.config != PERF_COUNT_SW_DUMMY &&
			     kernel.events[fd].enabled);
	threads_found++;
}

static const struct csw_sink sink = { .put = count_threads };

/* ---- a whole run, each of whose calls can fail ---- */

static int read_rings(struct csw_driver *drv)
{
	struct csw_record rec;

	ops->snapshot(drv);
	for (unsigned ring = 0; ring < ops->nr_rings(drv); ring++) {
		int ret;

		do
			ret = ops->next(drv, ring, &rec);
		while (ret > 0);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* The first descriptor that is free: the same before and after when none has leaked. */
static int free_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

/* What the steps of the run came to; *opened: open() went well. */
static int run(const struct csw_plan *plan, struct csw_error *err, bool *opened)
{
	struct csw_driver *drv = (void *)-1;
	cpu_set_t before, after;
	int ret, fd = free_fd();

	CPU_ZERO(&before);
	CPU_ZERO(&after);
	sched_getaffinity(0, sizeof(before), &before);
	err->text[0] = '\0';
	err->code = 0;
	ret = ops->open(&drv, plan, err);
	*opened = ret == 0;
	if (ret < 0)
		assert_null(drv);
	if (ret == 0)
		ret = ops->start(drv, &sink, err);
	if (ret == 0)
		ret = read_rings(drv);
	kernel.now = DISABLED_NS;
	if (ret == 0)
		ret = ops->stop(drv, err);
	if (ret == 0)
		ret = read_rings(drv);
	ops->close(drv);
	assert_int_equal(kernel.opens, kernel.closes);
	assert_int_equal(kernel.maps, kernel.unmaps);
	assert_int_equal(free_fd(), fd);
	sched_getaffinity(0, sizeof(after), &after);
	assert_true(CPU_EQUAL(&before, &after));
	assert_int_equal(err->code, ret);
	if (ret < 0)
		assert_true(err->text[0] && !strchr(err->text, '\n'));
	return ret;
}

static int run_failing_plan(const struct csw_plan *plan, enum call call, unsigned n, int error,
			    bool on, struct csw_error *err, bool *opened)
{
	reset();
	kernel.failing = true;
	kernel.fail_call = call;
	kernel.fail_at = n;
	kernel.fail_error = error;
	kernel.on = on;
	return run(plan, err, opened);
}

static int run_failing(enum call call, unsigned n, int error, bool on, struct csw_error *err,
		       bool *opened)
{
	return run_failing_plan(&the_plan, call, n, error, on, err, opened);
}

static void test_clean_run(void **state)
{
	struct csw_error err;
	bool opened;

	(void)state;
	threads_found = 0;
	assert_int_equal(run(&the_plan, &err, &opened), 0);
	assert_int_equal(kernel.opens, NR_CPUS * PER_CPU);
	assert_int_equal(kernel.maps, NR_CPUS);
	assert_int_equal(kernel.calls[READ], 2 * NR_CPUS);
	assert_true(threads_found > 0);
	ops->close(NULL);
}

static void test_attributes(void **state)
{
	struct csw_driver *drv;
	struct csw_error err;

	(void)state;
	assert_int_equal(ops->open(&drv, &the_plan, &err), 0);
	assert_int_equal(ops->nr_cpus(drv), NR_CPUS);
	assert_int_equal(ops->nr_rings(drv), NR_CPUS);
	for (int fd = 0; fd < FDS_MAX; fd++) {
		const struct event *e = &kernel.events[fd];

		if (!e->open)
			continue;
		assert_int_equal(e->attr.size, sizeof(e->attr));
		/* One clock for all events of a ring, or records cannot be ordered. */
		assert_true(e->attr.use_clockid && e->attr.clockid == CLOCK_MONOTONIC);
		assert_true(e->attr.sample_id_all);
		if (e->attr.context_switch) {
			assert_true(e->attr.disabled && e->attr.task && e->attr.comm);
			assert_true(e->attr.comm_exec);
			assert_int_equal(e->group_fd, -1);
			assert_non_null(event_of(e->output)->page);
			assert_int_equal(event_of(e->output)->cpu, e->cpu);
			assert_int_equal(e->attr.config, PERF_COUNT_SW_DUMMY);
			assert_int_equal(e->attr.sample_period, 0);
		} else if (e->group_fd < 0) {
			assert_true(e->attr.disabled);
			assert_int_equal(e->attr.sample_period, 1);
			assert_int_equal(e->attr.config, PERF_COUNT_SW_CONTEXT_SWITCHES);
			assert_true(e->attr.sample_type & PERF_SAMPLE_READ);
			assert_true(e->attr.read_format & PERF_FORMAT_GROUP);
		} else {
			/* A member that is disabled itself would not start with its leader. */
			assert_false(e->attr.disabled);
			assert_int_equal(e->attr.sample_period, 0);
		}
	}
	ops->close(drv);
	assert_int_equal(kernel.opens, kernel.closes);
}

static const int errors[] = {
	-EACCES, -EPERM, -ENOENT, -EINVAL, -EMFILE, -ENOSPC, -ENOMEM, -ENODEV
};
#define NR_ERRORS (sizeof(errors) / sizeof(errors[0]))

static void check_open_message(unsigned n, int error, const struct csw_error *err)
{
	static const char *const names[PER_CPU] = { "the-trigger", "the-trigger", "counter-one",
						    "counter-two" };
	char cpu[16];

	snprintf(cpu, sizeof(cpu), "CPU %u", n / PER_CPU);
	switch (error) {
	case -EACCES:
	case -EPERM:
		assert_non_null(strstr(err->text, "perf_event_paranoid"));
		assert_non_null(strstr(err->text, "CAP_PERFMON"));
		break;
	case -EMFILE:
		assert_non_null(strstr(err->text, "ulimit -n"));
		break;
	default:
		assert_non_null(strstr(err->text, names[n % PER_CPU]));
		if (error != -EINVAL)
			assert_non_null(strstr(err->text, cpu));
	}
}

static void test_event_open_fails(void **state)
{
	struct csw_error err;
	bool opened;

	(void)state;
	for (size_t e = 0; e < NR_ERRORS; e++) {
		for (unsigned n = 0; n < NR_CPUS * PER_CPU; n++) {
			int ret = run_failing(EVENT_OPEN, n, errors[e], false, &err, &opened);

			if (errors[e] == -ENODEV || (errors[e] == -EINVAL && n == 0)) {
				/* A CPU that went offline; a kernel without PERF_FORMAT_LOST. */
				assert_int_equal(ret, 0);
				assert_int_equal(kernel.maps, NR_CPUS - (errors[e] == -ENODEV));
				continue;
			}
			assert_false(opened);
			assert_int_equal(ret, errors[e] == -ENOENT ? -EOPNOTSUPP : errors[e]);
			check_open_message(n, errors[e], &err);
		}
	}
}

/* The stores that a trigger sees beside its loads take a register that nobody asked for: who has
 * too few of them is told what it is for. */
static void test_no_second_register(void **state)
{
	struct csw_plan plan = the_plan;
	struct csw_error err;
	bool opened;

	(void)state;
	plan.stores = NR_COUNTERS;
	plan.counters[NR_COUNTERS - 1].flags |= CSW_EVENT_DEBUG_REGISTER;
	assert_int_equal(
		run_failing_plan(&plan, EVENT_OPEN, PER_CPU - 1, -ENOSPC, false, &err, &opened),
		-ENOSPC);
	assert_false(opened);
	assert_non_null(strstr(err.text, "no second debug register is free on CPU 0 for "
					 "counter-two, which counts the stores among what "
					 "the-trigger sees"));
	/* The first one is missing: that is something else. */
	assert_int_equal(run_failing_plan(&plan, EVENT_OPEN, 1, -ENOSPC, false, &err, &opened),
			 -ENOSPC);
	assert_null(strstr(err.text, "second"));
}

/* The limit stays reached: no second try may get by. */
static void test_event_open_fails_for_good(void **state)
{
	struct csw_error err;
	bool opened;

	(void)state;
	for (size_t e = 0; e < NR_ERRORS; e++) {
		for (unsigned n = 0; n < NR_CPUS * PER_CPU; n++) {
			int ret = run_failing(EVENT_OPEN, n, errors[e], true, &err, &opened);

			if (errors[e] == -ENODEV && n >= PER_CPU) {
				assert_int_equal(ret, 0);
				assert_int_equal(kernel.maps, n / PER_CPU);
				continue;
			}
			assert_false(opened);
			assert_int_equal(ret, errors[e] == -ENOENT ? -EOPNOTSUPP : errors[e]);
			if (errors[e] != -ENODEV)
				check_open_message(n, errors[e], &err);
		}
	}
}

static void test_hardware_messages(void **state)
{
	struct csw_plan plan = the_plan;
	struct csw_error err;
	bool opened;

	(void)state;
	plan.counters[1].flags = CSW_EVENT_HARDWARE;
	kernel.failing = true;
	kernel.fail_at = 3;
	kernel.fail_error = -ENOENT;
	assert_int_equal(run(&plan, &err, &opened), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "counter-two"));

	/* Alone it is not for lack of room. */
	reset();
	kernel.failing = true;
	kernel.fail_at = 3;
	kernel.fail_error = -EINVAL;
	assert_int_equal(run(&plan, &err, &opened), -EINVAL);
	assert_non_null(strstr(err.text, "refuses event counter-two"));
}

/* A group that does not fit: how many of its hardware events do, wherever in it they stand. */
static void test_room(void **state)
{
	struct csw_plan plan = the_plan;
	struct csw_error err;
	bool opened;

	(void)state;
	plan.nr_counters = 4;
	plan.counters[2] = plan.counters[3] = plan.counters[1];
	strcpy(plan.counters[2].name, "counter-three");
	plan.counters[1].flags = plan.counters[2].flags = plan.counters[3].flags =
		CSW_EVENT_HARDWARE;
	for (unsigned hardware_trigger = 0; hardware_trigger <= 1; hardware_trigger++) {
		plan.trigger.event.flags = hardware_trigger ? CSW_EVENT_HARDWARE : 0;
		reset();
		kernel.failing = true;
		kernel.fail_at = 4;
		kernel.fail_error = -EINVAL;
		assert_int_equal(run(&plan, &err, &opened), -EINVAL);
		assert_false(opened);
		assert_int_equal(kernel.opens, 5);
		assert_int_equal(kernel.opens, kernel.closes);
		assert_non_null(strstr(err.text, "counter-three does not fit"));
		assert_non_null(strstr(
			err.text, hardware_trigger ? "room for 3 of these 4 hardware events, "
						     "the trigger among them"
						   : "room for 2 of these 3 hardware events;"));
	}
	/* From the third on none fits. */
	reset();
	kernel.failing = kernel.on = true;
	kernel.fail_at = 4;
	kernel.fail_error = -EINVAL;
	assert_int_equal(run(&plan, &err, &opened), -EINVAL);
	assert_non_null(strstr(err.text, "room for 2 of these 4 "));
	assert_int_equal(kernel.opens, kernel.closes);
}

/* The plan without a wish for the rings' size. */
static struct csw_plan automatic_plan(void)
{
	struct csw_plan plan = the_plan;

	plan.ring_bytes = 0;
	return plan;
}

/* More memory that may be locked is only advised where that was what lacked. */
static void check_map_message(int error, unsigned n, const struct csw_error *err)
{
	bool locking = error == -EPERM || error == -ENOMEM;
	char cpu[16];

	assert_int_equal(strstr(err->text, "perf_event_mlock_kb") != NULL, locking);
	snprintf(cpu, sizeof(cpu), "CPU %u", n);
	if (!locking)
		assert_non_null(strstr(err->text, cpu));
}

static void test_map_fails(void **state)
{
	struct csw_plan plan = automatic_plan();
	struct csw_error err;
	bool opened;

	(void)state;
	for (size_t e = 0; e < NR_ERRORS; e++) {
		for (unsigned n = 0; n < NR_CPUS; n++) {
			bool halved = errors[e] == -EPERM || errors[e] == -ENOMEM;
			int ret = run_failing_plan(&plan, MAP, n, errors[e], false, &err, &opened);

			assert_int_equal(ret, halved ? 0 : errors[e]);
			assert_int_equal(opened, halved);
			/* Some in vain, all of them smaller, and once more for the new watermark.
			 */
			assert_int_equal(kernel.maps, halved ? n + 2 * NR_CPUS : n);
			ret = run_failing_plan(&plan, MAP, n, errors[e], true, &err, &opened);
			assert_int_equal(ret, errors[e]);
			assert_false(opened);
			check_map_message(errors[e], n, &err);
			/* A size that was asked for is never another one. */
			ret = run_failing(MAP, n, errors[e], false, &err, &opened);
			assert_int_equal(ret, errors[e]);
			assert_false(opened);
			check_map_message(errors[e], n, &err);
		}
	}
}

static uint64_t ring_bytes_of(struct csw_driver *drv)
{
	struct csw_driver_facts facts;

	ops->facts(drv, &facts);
	return facts.ring_bytes;
}

/* A size that was asked for and does not fit: what would, and nothing is left open. */
static void test_ring_wish_is_refused(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct csw_driver *drv;
	struct csw_error err;

	(void)state;
	kernel.lock_limit = page + (16 << 10);
	assert_int_equal(ops->open(&drv, &the_plan, &err), -EPERM);
	assert_null(drv);
	assert_non_null(strstr(err.text, "3 rings of 64 KiB"));
	assert_non_null(strstr(err.text, "largest that fit are of 16 KiB"));
	assert_int_equal(kernel.opens, kernel.closes);
	assert_int_equal(kernel.maps, kernel.unmaps);
	reset();
	kernel.lock_limit = page + (64 << 10);
	assert_int_equal(ops->open(&drv, &the_plan, &err), 0);
	assert_int_equal(ring_bytes_of(drv), 64 << 10);
	ops->close(drv);
}

/* All rings are of one size: the largest that may be locked. */
static void test_rings_are_halved(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const struct csw_plan plan = automatic_plan();
	struct csw_driver *drv;
	struct csw_error err;

	(void)state;
	for (size_t ring = 4 << 20; ring >= page; ring /= 2) {
		reset();
		kernel.lock_limit = page + ring;
		assert_int_equal(ops->open(&drv, &plan, &err), 0);
		assert_int_equal(ring_bytes_of(drv), ring);
		for (int fd = 0; fd < FDS_MAX; fd++) {
			if (!kernel.events[fd].open || !kernel.events[fd].page)
				continue;
			assert_int_equal(kernel.events[fd].mapped, page + ring);
			/* The reader is woken long before the ring is full, however small it came
			 * out. */
			assert_int_equal(kernel.events[fd].attr.wakeup_watermark, ring / 4);
		}
		ops->close(drv);
		assert_int_equal(kernel.maps, kernel.unmaps);
	}
	reset();
	kernel.lock_limit = page;
	assert_int_equal(ops->open(&drv, &the_plan, &err), -EPERM);
	assert_null(drv);
	assert_non_null(strstr(err.text, "perf_event_mlock_kb"));
	assert_non_null(strstr(err.text, "CAP_IPC_LOCK"));
	assert_int_equal(kernel.opens, kernel.closes);
	assert_int_equal(kernel.maps, 0);
}

/* SET_OUTPUT, ENABLE of the side-bands, of the leaders, DISABLE of the leaders, of the side-bands.
 */
static void test_ioctl_fails(void **state)
{
	const struct csw_plan plan = automatic_plan();
	struct csw_error err;
	bool opened;

	(void)state;
	for (size_t e = 0; e < NR_ERRORS; e++) {
		const bool halved = errors[e] == -EPERM || errors[e] == -ENOMEM;

		for (unsigned n = 0; n < 6 * NR_CPUS; n++) {
			int ret =
				run_failing_plan(&plan, IOCTL, n, errors[e], false, &err, &opened);
			bool in_open = n < NR_CPUS && !halved;
			bool later = n >= NR_CPUS && n < 4 * NR_CPUS;

			assert_int_equal(ret, in_open || later ? errors[e] : 0);
			assert_int_equal(opened, !in_open);
			if (later) {
				char cpu[16];

				snprintf(cpu, sizeof(cpu), "CPU %u", n % NR_CPUS);
				assert_non_null(strstr(err.text, cpu));
			}
			run_failing_plan(&plan, IOCTL, n, errors[e], true, &err, &opened);
		}
	}
}

static void test_read_fails(void **state)
{
	struct csw_error err;
	bool opened;

	(void)state;
	for (size_t e = 0; e < NR_ERRORS; e++) {
		for (unsigned n = 0; n < 2 * NR_CPUS; n++) {
			int ret = run_failing(READ, n, errors[e], false, &err, &opened);

			/* The counters', then the side-band's, which only says how much was lost.
			 */
			assert_int_equal(ret, n % 2 ? 0 : errors[e]);
			run_failing(READ, n, errors[e], true, &err, &opened);
		}
	}
}

/* A group that was pushed off its PMU reads as nothing: that is no 0. */
static void test_zero_byte_read(void **state)
{
	struct csw_error err;
	bool opened;

	(void)state;
	for (unsigned n = 0; n < 2 * NR_CPUS; n += 2) {
		assert_int_equal(run_failing(READ, n, 0, false, &err, &opened), -EIO);
		assert_non_null(strstr(err.text, "counters of CPU"));
		/* Short, and no multiple of anything. */
		assert_int_equal(run_failing(READ, n, 20, false, &err, &opened), -EIO);
	}
}

static void test_offline_cpu(void **state)
{
	struct csw_driver *drv;
	struct csw_error err;

	(void)state;
	for (int cpu = 0; cpu < NR_CPUS; cpu++) {
		reset();
		kernel.offline_cpu = cpu;
		assert_int_equal(ops->open(&drv, &the_plan, &err), 0);
		assert_int_equal(ops->nr_rings(drv), NR_CPUS - 1);
		assert_int_equal(ops->nr_cpus(drv), cpu == NR_CPUS - 1 ? NR_CPUS - 1 : NR_CPUS);
		ops->close(drv);
		assert_int_equal(kernel.opens, kernel.closes);
	}
}

/* The event of one kind of core, and no -C: the CPUs that have it are named. */
static void test_other_kind_of_core(void **state)
{
	struct csw_plan plan = the_plan;
	struct csw_error err;
	bool opened;

	(void)state;
	plan.trigger.event.type = 10;
	plan.trigger.event.flags = CSW_EVENT_HARDWARE;
	tree_file("/sys/bus/event_source/devices/cpu_atom/type", "10\n");
	tree_file("/sys/bus/event_source/devices/cpu_atom/cpus", "1-2\n");
	assert_int_equal(run_failing_plan(&plan, EVENT_OPEN, 1, -ENOENT, false, &err, &opened),
			 -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "on CPUs 1-2 only, and CPU 0 has another"));
	assert_non_null(strstr(err.text, "-C 1-2"));
}

static void check_cpus(struct csw_driver *drv, unsigned missed, unsigned gone)
{
	struct csw_driver_facts facts;

	ops->facts(drv, &facts);
	assert_int_equal(facts.cpus_missed, missed);
	assert_int_equal(facts.cpus_gone, gone);
}

/* CPUs that come are not counted and CPUs that go no longer: both are said, at a tick and at the
 * end. */
static void test_cpus_come_and_go(void **state)
{
	struct csw_plan plan = the_plan;
	struct csw_driver *drv;
	struct csw_error err;

	(void)state;
	assert_int_equal(ops->open(&drv, &plan, &err), 0);
	assert_int_equal(ops->start(drv, &sink, &err), 0);
	check_cpus(drv, 0, 0);
	tree_file("/sys/devices/system/cpu/online", "0-1,3-4\n");
	assert_int_equal(ops->tick(drv, &err), 0);
	check_cpus(drv, 2, 0);
	kernel.detached_cpu = 2;
	tree_file("/sys/devices/system/cpu/online", "0-1,3\n");
	assert_int_equal(ops->stop(drv, &err), 0);
	check_cpus(drv, 1, 1);
	ops->close(drv);
	/* Who names the CPUs misses no others. */
	reset();
	plan.cpus = "0-1";
	assert_int_equal(ops->open(&drv, &plan, &err), 0);
	/* Of the third one it learns who is born there; it has a ring, and no counter. */
	assert_int_equal(ops->nr_rings(drv), 3);
	assert_int_equal(kernel.opens - kernel.closes, 2 * PER_CPU + 1);
	assert_int_equal(ops->start(drv, &sink, &err), 0);
	assert_int_equal(ops->stop(drv, &err), 0);
	check_cpus(drv, 0, 0);
	ops->close(drv);
	assert_int_equal(kernel.opens, kernel.closes);
}

static void test_driver_options(void **state)
{
	struct csw_plan plan = the_plan;
	struct csw_error err;
	bool opened;

	(void)state;
	plan.driver_opts = "cpus=8";
	assert_int_equal(run(&plan, &err, &opened), -EINVAL);
	assert_int_equal(kernel.calls[EVENT_OPEN], 0);
}

/* ---- what the driver makes of its rings ---- */

static struct event *leader_of(int cpu)
{
	for (int fd = 0; fd < FDS_MAX; fd++) {
		if (kernel.events[fd].open && kernel.events[fd].page &&
		    kernel.events[fd].cpu == cpu)
			return &kernel.events[fd];
	}
	fail_msg("no ring of CPU %d", cpu);
	return NULL;
}

static void append(int cpu, const void *bytes, size_t nr)
{
	struct event *e = leader_of(cpu);
	unsigned char *data = (unsigned char *)e->page + sysconf(_SC_PAGESIZE);

	memcpy(data + e->page->data_head, bytes, nr);
	e->page->data_head += nr;
}

/* A header, some words, and the sample_id. */
static void append_side(int cpu, uint32_t type, uint16_t misc, uint64_t time_ns,
			const uint64_t *words, uint16_t nr)
{
	struct perf_event_header header = { .type = type,
					    .misc = misc,
					    .size = (uint16_t)(8 + 8 * nr + 24) };
	const uint64_t id[3] = { 11ull << 32 | 10, time_ns, (uint64_t)cpu };

	append(cpu, &header, sizeof(header));
	append(cpu, words, 8u * nr);
	append(cpu, id, sizeof(id));
}

static void append_switch(int cpu, uint64_t time_ns)
{
	const uint64_t next = 21ull << 32 | 20;

	append_side(cpu, PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, time_ns, &next,
		    1);
}

static void append_switch_in(int cpu, uint64_t time_ns)
{
	const uint64_t prev = 21ull << 32 | 20;

	append_side(cpu, PERF_RECORD_SWITCH_CPU_WIDE, 0, time_ns, &prev, 1);
}

static void append_comm(int cpu, uint64_t time_ns)
{
	const uint64_t words[2] = { 11ull << 32 | 10, 0x656d616e /* "name" */ };

	append_side(cpu, PERF_RECORD_COMM, 0, time_ns, words, 2);
}

static void append_lost(int cpu, uint64_t time_ns)
{
	const uint64_t words[2] = { 1, 5 };

	append_side(cpu, PERF_RECORD_LOST, 0, time_ns, words, 2);
}

static void append_sample_enabled(int cpu, uint64_t time_ns, uint64_t trigger, uint64_t enabled_ns)
{
	const bool lost = leader_of(cpu)->attr.read_format & PERF_FORMAT_LOST;
	uint64_t words[16], nr = 0;
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE };

	words[nr++] = 11ull << 32 | 10;
	words[nr++] = time_ns;
	words[nr++] = (uint64_t)cpu;
	words[nr++] = 1 + NR_COUNTERS;
	words[nr++] = enabled_ns;
	words[nr++] = 3000;
	for (uint64_t i = 0; i <= NR_COUNTERS; i++) {
		words[nr++] = i ? i : trigger;
		if (lost)
			words[nr++] = 0;
	}
	header.size = (uint16_t)(sizeof(header) + 8 * nr);
	append(cpu, &header, sizeof(header));
	append(cpu, words, 8 * nr);
}

static void append_sample(int cpu, uint64_t time_ns, uint64_t trigger)
{
	append_sample_enabled(cpu, time_ns, trigger, 4000);
}

static struct csw_record expect(struct csw_driver *drv, unsigned ring, uint32_t type,
				uint64_t time_ns)
{
	struct csw_record rec;

	memset(&rec, 0xaa, sizeof(rec));
	assert_int_equal(ops->next(drv, ring, &rec), 1);
	assert_int_equal(rec.type, type);
	assert_int_equal(rec.time_ns, time_ns);
	assert_int_equal(rec.cpu, ring);
	return rec;
}

static void expect_end(struct csw_driver *drv, unsigned ring)
{
	struct csw_record rec;

	assert_int_equal(ops->next(drv, ring, &rec), 0);
	assert_int_equal(ops->next(drv, ring, &rec), 0);
}

/* The thread that runs here while this one visits the CPU: this one, where it may. */
static void check_visitor(const struct csw_record *rec)
{
	cpu_set_t allowed;
	bool may = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 &&
		   CPU_ISSET(rec->cpu, &allowed);

	assert_int_equal(rec->pid, may ? getpid() : -1);
	assert_int_equal(rec->tid, may ? (int)syscall(SYS_gettid) : -1);
}

static void check_start(struct csw_driver *drv, unsigned ring, uint64_t time_ns)
{
	struct csw_record rec = expect(drv, ring, CSW_RECORD_START, time_ns);

	check_visitor(&rec);
	/* Counters that were opened disabled begin at 0. */
	assert_int_equal(rec.nr_values, 1 + NR_COUNTERS);
	for (unsigned i = 0; i <= NR_COUNTERS; i++)
		assert_int_equal(rec.values[i], 0);
	assert_int_equal(rec.enabled_ns, 0);
	assert_int_equal(rec.running_ns, 0);
}

static void check_stop(struct csw_driver *drv, unsigned ring, uint64_t lost, uint64_t lost_other)
{
	struct csw_record rec = expect(drv, ring, CSW_RECORD_STOP, DISABLED_NS);

	check_visitor(&rec);
	assert_int_equal(rec.nr_values, 1 + NR_COUNTERS);
	assert_int_equal(rec.enabled_ns, 4000);
	assert_int_equal(rec.running_ns, 3000);
	for (unsigned i = 0; i <= NR_COUNTERS; i++)
		assert_int_equal(rec.values[i], 100 * (ring + 1) + i);
	assert_true(rec.lost == lost);
	assert_true(rec.lost_other == lost_other);
	expect_end(drv, ring);
}

static struct csw_driver *started_with(const struct csw_plan *plan)
{
	struct csw_driver *drv;
	struct csw_error err;

	assert_int_equal(ops->open(&drv, plan, &err), 0);
	kernel.now = ENABLED_NS;
	assert_int_equal(ops->start(drv, &sink, &err), 0);
	return drv;
}

static struct csw_driver *started(void)
{
	return started_with(&the_plan);
}

static void stop(struct csw_driver *drv)
{
	struct csw_error err;

	kernel.now = DISABLED_NS;
	assert_int_equal(ops->stop(drv, &err), 0);
	for (int fd = 0; fd < FDS_MAX; fd++) {
		if (kernel.events[fd].open && kernel.events[fd].group_fd < 0)
			assert_int_equal(kernel.events[fd].disabled, 1);
	}
	assert_true(ops->snapshot(drv) == UINT64_MAX);
}

static void close_driver(struct csw_driver *drv)
{
	ops->close(drv);
	assert_int_equal(kernel.opens, kernel.closes);
	assert_int_equal(kernel.maps, kernel.unmaps);
}

static void test_stream(void **state)
{
	struct csw_driver *drv = started();
	struct csw_record rec;

	(void)state;
	/* The side-band ran before: names count, switches do not. */
	append_switch(0, 500);
	append_comm(0, 600);
	append_lost(0, 700);
	append_switch(0, ENABLED_NS);
	append_switch(0, ENABLED_NS + 1);
	append_sample(0, ENABLED_NS + 2, 1);
	append_switch(0, ENABLED_NS + 3);
	/* Another program's event may have filled in the time, by another clock: it is bounded. */
	append_sample(0, 1795996000000000000, 2);
	append_switch(0, ENABLED_NS + 5);
	append_sample(0, 3, 3);
	append_switch(0, ENABLED_NS + 7);
	/* Nothing behind it yet: it waits. */
	append_sample(0, ENABLED_NS + 8, 4);
	kernel.now = 2000;
	assert_int_equal(ops->snapshot(drv), 2000);
	rec = expect(drv, 0, CSW_RECORD_COMM, 600);
	assert_string_equal(rec.comm, "name");
	check_start(drv, 0, ENABLED_NS);
	rec = expect(drv, 0, CSW_RECORD_SWITCH_OUT, ENABLED_NS + 1);
	assert_int_equal(rec.pid, 10);
	assert_int_equal(rec.tid, 11);
	assert_int_equal(rec.other_tid, 21);
	rec = expect(drv, 0, CSW_RECORD_SAMPLE, ENABLED_NS + 2);
	assert_int_equal(rec.nr_values, 1 + NR_COUNTERS);
	assert_int_equal(rec.values[0], 1);
	assert_int_equal(rec.values[2], 2);
	expect(drv, 0, CSW_RECORD_SWITCH_OUT, ENABLED_NS + 3);
	expect(drv, 0, CSW_RECORD_SAMPLE, ENABLED_NS + 5);
	expect(drv, 0, CSW_RECORD_SWITCH_OUT, ENABLED_NS + 5);
	expect(drv, 0, CSW_RECORD_SAMPLE, ENABLED_NS + 5);
	expect(drv, 0, CSW_RECORD_SWITCH_OUT, ENABLED_NS + 7);
	expect_end(drv, 0);

	/* A sample from before the enabling call has returned proves that counting had begun. */
	append_switch(1, ENABLED_NS - 20);
	append_sample(1, ENABLED_NS - 10, 1);
	append_switch(1, ENABLED_NS - 9);
	ops->snapshot(drv);
	check_start(drv, 1, ENABLED_NS - 10);
	expect(drv, 1, CSW_RECORD_SAMPLE, ENABLED_NS - 10);
	expect(drv, 1, CSW_RECORD_SWITCH_OUT, ENABLED_NS - 9);
	expect_end(drv, 1);
	expect_end(drv, 2);

	/* At the end: what came up to the disable, names, and STOP as the very last. */
	append_switch(0, DISABLED_NS);
	append_switch(0, DISABLED_NS + 1);
	append_lost(0, DISABLED_NS + 2);
	append_comm(0, DISABLED_NS + 3);
	stop(drv);
	expect(drv, 0, CSW_RECORD_SAMPLE, ENABLED_NS + 8);
	expect(drv, 0, CSW_RECORD_SWITCH_OUT, DISABLED_NS);
	expect(drv, 0, CSW_RECORD_COMM, DISABLED_NS + 3);
	check_stop(drv, 0, 2, 3);
	check_stop(drv, 1, 2, 3);
	/* A CPU on which nothing happened has both ends all the same. */
	check_start(drv, 2, ENABLED_NS);
	check_stop(drv, 2, 2, 3);
	close_driver(drv);
}

#define LIMIT CSW_PERF_SAMPLE_TO_SWITCH_NS

/* Another recorder's clock may be ahead of ours or behind it. The records before and behind the
 * sample are at 0 and `next` here. */
static void test_sample_of_another_clock(void **state)
{
	enum { NEXT = 10 * LIMIT };
	static const struct {
		enum csw_phase phase;
		bool in; /* what follows is a SWITCH_IN */
		int64_t sample, bounded;
	} cases[] = {
		/* ahead: never later than what stands behind it */
		{ CSW_PHASE_BEFORE, false, NEXT + 1, NEXT },
		{ CSW_PHASE_BEFORE, false, INT64_MAX / 2, NEXT },
		{ CSW_PHASE_INSIDE, true, NEXT + 1, NEXT },
		{ CSW_PHASE_ANY, false, NEXT + 1, NEXT },
		/* behind: it was taken just before its SWITCH_OUT */
		{ CSW_PHASE_BEFORE, false, NEXT - LIMIT - 1, NEXT },
		{ CSW_PHASE_BEFORE, false, 1, NEXT },
		{ CSW_PHASE_BEFORE, false, -5 * LIMIT, NEXT },
		/* ... unless it may as well have been then */
		{ CSW_PHASE_BEFORE, false, NEXT - LIMIT, NEXT - LIMIT },
		{ CSW_PHASE_BEFORE, false, NEXT - 1, NEXT - 1 },
		{ CSW_PHASE_BEFORE, false, NEXT, NEXT },
		/* no switch comes at once, or the trigger may fire at any time: never earlier than
		 * what stands before it, and that is all */
		{ CSW_PHASE_BEFORE, true, 1, 1 },
		{ CSW_PHASE_BEFORE, true, -5 * LIMIT, 0 },
		{ CSW_PHASE_INSIDE, false, 1, 1 },
		{ CSW_PHASE_ANY, false, 1, 1 },
		{ CSW_PHASE_ANY, false, -5 * LIMIT, 0 },
	};
	const uint64_t base = ENABLED_NS + 10 * LIMIT;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct csw_plan plan = the_plan;
		struct csw_driver *drv;

		reset();
		plan.trigger.phase = cases[i].phase;
		drv = started_with(&plan);
		append_switch_in(0, base);
		append_sample(0, base + (uint64_t)cases[i].sample, 1);
		if (cases[i].in)
			append_switch_in(0, base + NEXT);
		else
			append_switch(0, base + NEXT);
		ops->snapshot(drv);
		check_start(drv, 0, ENABLED_NS);
		expect(drv, 0, CSW_RECORD_SWITCH_IN, base);
		expect(drv, 0, CSW_RECORD_SAMPLE, base + (uint64_t)cases[i].bounded);
		expect(drv, 0, cases[i].in ? CSW_RECORD_SWITCH_IN : CSW_RECORD_SWITCH_OUT,
		       base + NEXT);
		close_driver(drv);
	}
}

/* Two samples before one SWITCH_OUT: only of the last one is known that it was just before. */
static void test_samples_of_another_clock(void **state)
{
	const uint64_t base = ENABLED_NS + 10 * LIMIT;
	struct csw_driver *drv = started();

	(void)state;
	append_switch_in(0, base);
	append_sample(0, base + 1, 1);
	append_sample(0, base + 2, 2);
	append_switch(0, base + 10 * LIMIT);
	ops->snapshot(drv);
	check_start(drv, 0, ENABLED_NS);
	expect(drv, 0, CSW_RECORD_SWITCH_IN, base);
	expect(drv, 0, CSW_RECORD_SAMPLE, base + 1);
	expect(drv, 0, CSW_RECORD_SAMPLE, base + 10 * LIMIT);
	expect(drv, 0, CSW_RECORD_SWITCH_OUT, base + 10 * LIMIT);
	expect_end(drv, 0);
	close_driver(drv);
}

/* Within the call that switches the counters off this thread lost its CPU: a switch that no counter
 * saw is none of this run. The last reading says 4000 ns enabled; see fake_read. */
static void test_stream_ends_within_call(void **state)
{
	struct csw_driver *drv = started();

	(void)state;
	kernel.disable_ns = 100;
	/* CPU 0: enabled for 3950 ns at the last sample, so off 50 ns after it. */
	append_sample_enabled(0, DISABLED_NS - 10, 1, 3950);
	append_switch(0, DISABLED_NS - 9);
	append_switch(0, DISABLED_NS + 40);
	append_switch(0, DISABLED_NS + 41);
	/* CPU 1, a clock that differs: the call is the bound. */
	append_sample_enabled(1, DISABLED_NS - 10, 1, 4000);
	append_switch(1, DISABLED_NS + 100);
	append_switch(1, DISABLED_NS + 101);
	append_sample_enabled(2, DISABLED_NS - 10, 1, 0);
	append_switch(2, DISABLED_NS + 300);
	append_switch(2, DISABLED_NS + 301);
	stop(drv);
	check_start(drv, 0, ENABLED_NS);
	expect(drv, 0, CSW_RECORD_SAMPLE, DISABLED_NS - 10);
	expect(drv, 0, CSW_RECORD_SWITCH_OUT, DISABLED_NS - 9);
	expect(drv, 0, CSW_RECORD_SWITCH_OUT, DISABLED_NS + 40);
	expect(drv, 0, CSW_RECORD_STOP, DISABLED_NS + 40);
	check_start(drv, 1, ENABLED_NS);
	expect(drv, 1, CSW_RECORD_SAMPLE, DISABLED_NS - 10);
	expect(drv, 1, CSW_RECORD_SWITCH_OUT, DISABLED_NS + 100);
	expect(drv, 1, CSW_RECORD_STOP, DISABLED_NS + 100);
	check_start(drv, 2, ENABLED_NS);
	expect(drv, 2, CSW_RECORD_SAMPLE, DISABLED_NS - 10);
	expect(drv, 2, CSW_RECORD_SWITCH_OUT, DISABLED_NS + 300);
	expect(drv, 2, CSW_RECORD_STOP, DISABLED_NS + 300);
	close_driver(drv);
}

/* A trigger that is no switch: its samples may follow each other for long, and are no reason to
 * wait; only the very last one is, behind which a switch record may be about to be written. */
static void test_stream_of_samples(void **state)
{
	struct csw_driver *drv = started();

	(void)state;
	kernel.now = 2000;
	append_sample(0, ENABLED_NS + 1, 1);
	append_sample(0, 1795996000000000000, 2); /* of another program's clock */
	append_sample(0, ENABLED_NS + 3, 3);
	append_sample(0, ENABLED_NS + 4, 4);
	append_switch(0, ENABLED_NS + 5);
	append_sample(0, ENABLED_NS + 6, 5);
	append_sample(0, ENABLED_NS + 7, 6);
	append_sample(0, ENABLED_NS + 8, 7);
	ops->snapshot(drv);
	check_start(drv, 0, ENABLED_NS);
	expect(drv, 0, CSW_RECORD_SAMPLE, ENABLED_NS + 1);
	/* The next record that is ours alone bounds the time. */
	expect(drv, 0, CSW_RECORD_SAMPLE, ENABLED_NS + 5);
	expect(drv, 0, CSW_RECORD_SAMPLE, ENABLED_NS + 5);
	expect(drv, 0, CSW_RECORD_SAMPLE, ENABLED_NS + 5);
	expect(drv, 0, CSW_RECORD_SWITCH_OUT, ENABLED_NS + 5);
	expect(drv, 0, CSW_RECORD_SAMPLE, ENABLED_NS + 6);
	expect(drv, 0, CSW_RECORD_SAMPLE, ENABLED_NS + 7);
	expect_end(drv, 0);
	append_sample(0, 1795996000000000000, 8);
	append_sample(0, ENABLED_NS + 10, 9);
	kernel.now = 3000;
	ops->snapshot(drv);
	expect(drv, 0, CSW_RECORD_SAMPLE, ENABLED_NS + 8);
	/* There is none: then it is at least not of the future. */
	expect(drv, 0, CSW_RECORD_SAMPLE, 3000);
	expect_end(drv, 0);
	stop(drv);
	close_driver(drv);
}

/* A gap right after enabling: it opens the stream, too. */
static void test_stream_begins_with_loss(void **state)
{
	struct csw_driver *drv = started();

	(void)state;
	append_lost(0, ENABLED_NS + 5);
	ops->snapshot(drv);
	check_start(drv, 0, ENABLED_NS);
	expect(drv, 0, CSW_RECORD_LOST, ENABLED_NS + 5);
	stop(drv);
	check_stop(drv, 0, 2, 3);
	close_driver(drv);
}

static void test_malformed_ring(void **state)
{
	struct csw_driver *drv = started();
	const uint64_t zeros[4] = { 0 };
	struct perf_event_header cut = { .type = PERF_RECORD_SAMPLE, .size = 16 };
	struct csw_record rec;

	(void)state;
	append(0, zeros, sizeof(zeros));
	append(1, &cut, sizeof(cut));
	append(1, zeros, 8);
	ops->snapshot(drv);
	assert_int_equal(ops->next(drv, 0, &rec), -EINVAL);
	assert_int_equal(ops->next(drv, 1, &rec), -EINVAL);
	close_driver(drv);
}

/* A kernel older than 6.0: no counts of what was lost, all else as ever. */
static void test_no_format_lost(void **state)
{
	struct csw_driver *drv;

	(void)state;
	kernel.no_format_lost = true;
	drv = started();
	/* One try in vain, not one per CPU. */
	assert_int_equal(kernel.calls[EVENT_OPEN], NR_CPUS * PER_CPU + 1);
	append_sample(0, ENABLED_NS + 1, 7);
	append_switch(0, ENABLED_NS + 2);
	ops->snapshot(drv);
	check_start(drv, 0, ENABLED_NS);
	assert_int_equal(expect(drv, 0, CSW_RECORD_SAMPLE, ENABLED_NS + 1).values[0], 7);
	expect(drv, 0, CSW_RECORD_SWITCH_OUT, ENABLED_NS + 2);
	stop(drv);
	check_stop(drv, 0, CSW_LOST_UNKNOWN, CSW_LOST_UNKNOWN);
	close_driver(drv);
}

/* Where the side-band cannot be read, its losses are not known: not 0. */
static void test_sideband_unreadable(void **state)
{
	struct csw_driver *drv = started();

	(void)state;
	kernel.failing = true;
	kernel.fail_call = READ;
	kernel.fail_at = 1; /* CPU 0's counters were the first read */
	kernel.fail_error = -EIO;
	stop(drv);
	check_start(drv, 0, ENABLED_NS);
	check_stop(drv, 0, 2, CSW_LOST_UNKNOWN);
	check_start(drv, 1, ENABLED_NS);
	check_stop(drv, 1, 2, 3);
	close_driver(drv);
}

static void test_probe(void **state)
{
	struct csw_error err;

	(void)state;
	assert_int_equal(ops->probe(&err), 0);
	assert_int_equal(kernel.opens, 2);
	assert_int_equal(kernel.closes, 2);
	for (unsigned n = 0; n < 2; n++) {
		reset();
		kernel.failing = true;
		kernel.fail_at = n;
		kernel.fail_error = -EACCES;
		assert_int_equal(ops->probe(&err), -EACCES);
		assert_non_null(strstr(err.text, "CAP_PERFMON"));
		assert_int_equal(kernel.opens, kernel.closes);
	}
}

int main(void)
{
#define ON_FAKE(test) cmocka_unit_test_setup_teardown(test, setup, tree_teardown)
	const struct CMUnitTest tests[] = {
		ON_FAKE(test_clean_run),
		ON_FAKE(test_attributes),
		ON_FAKE(test_event_open_fails),
		ON_FAKE(test_no_second_register),
		ON_FAKE(test_event_open_fails_for_good),
		ON_FAKE(test_hardware_messages),
		ON_FAKE(test_room),
		ON_FAKE(test_map_fails),
		ON_FAKE(test_rings_are_halved),
		ON_FAKE(test_ring_wish_is_refused),
		ON_FAKE(test_other_kind_of_core),
		ON_FAKE(test_cpus_come_and_go),
		ON_FAKE(test_ioctl_fails),
		ON_FAKE(test_read_fails),
		ON_FAKE(test_zero_byte_read),
		ON_FAKE(test_offline_cpu),
		ON_FAKE(test_driver_options),
		ON_FAKE(test_stream),
		ON_FAKE(test_sample_of_another_clock),
		ON_FAKE(test_samples_of_another_clock),
		ON_FAKE(test_stream_ends_within_call),
		ON_FAKE(test_stream_of_samples),
		ON_FAKE(test_stream_begins_with_loss),
		ON_FAKE(test_malformed_ring),
		ON_FAKE(test_no_format_lost),
		ON_FAKE(test_sideband_unreadable),
		ON_FAKE(test_probe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
