/*
 * drivers/perf where counters take turns or are read while they count, on a made-up kernel that
 * counts: every event of it has a count that is known, and what the driver makes of its sets must
 * add up to them.
 *
 * Two CPUs, whose PMUs have room for so many raw events in one group; a raw event's code is how
 * often it happens per tick of the made-up machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "drivers/perf/group.h"
#include "drivers/perf/sys.h"
#include "tree.h"

#define NR_CPUS 2
#define NR_HARDWARE 5
#define NR_COUNTERS (2 + NR_HARDWARE)
#define FAULTS 0 /* a software counter before the others, */
#define LAST 6   /* ... and one behind */
#define FDS_MAX 256
#define TICK_NS 1000
#define ALL ((1u << NR_COUNTERS) - 1)

enum call { EVENT_OPEN, IOCTL, READ, NR_CALLS };

struct event {
	bool open, on;
	int cpu, leader; /* leader: its own descriptor where it has none */
	uint64_t count, enabled_ns, period;
	struct perf_event_attr attr;
	struct perf_event_mmap_page *page;
};

static struct {
	struct event events[FDS_MAX];
	unsigned room[NR_CPUS];
	unsigned calls[NR_CALLS];
	enum call fail_call;
	unsigned fail_at;
	bool failing, detached;
	uint64_t others_id; /* another program counts the trigger's event: samples show its id */
	unsigned torn;      /* in so many readings to come there is a switch on CPU 0 */
	unsigned opens, closes, periods;
	uint64_t now;
	uint64_t counts[NR_CPUS][1 + NR_COUNTERS]; /* what was counted, by the plan's order */
} kernel;

static const struct csw_driver_ops *const ops = &csw_perf_driver;
static struct csw_plan plan;

static bool fails(enum call call)
{
	return kernel.calls[call]++ == kernel.fail_at && kernel.failing && kernel.fail_call == call;
}

static struct event *event_of(int fd)
{
	assert_in_range(fd, 0, FDS_MAX - 1);
	assert_true(kernel.events[fd].open);
	return &kernel.events[fd];
}

static unsigned raw_events(int leader)
{
	unsigned nr = 0;

	for (int fd = 0; fd < FDS_MAX; fd++)
		nr += kernel.events[fd].open && kernel.events[fd].leader == leader &&
		      kernel.events[fd].attr.type == PERF_TYPE_RAW;
	return nr;
}

static int fake_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
		     unsigned long flags)
{
	int fd;

	(void)pid;
	(void)flags;
	if (fails(EVENT_OPEN))
		return -EMFILE;
	if (attr->type == PERF_TYPE_RAW && raw_events(group_fd) >= kernel.room[cpu])
		return -EINVAL;
	fd = eventfd(0, EFD_CLOEXEC);
	assert_in_range(fd, 0, FDS_MAX - 1);
	kernel.events[fd] = (struct event){
		.open = true, .cpu = cpu, .leader = group_fd < 0 ? fd : group_fd, .attr = *attr
	};
	kernel.opens++;
	return fd;
}

/* The leader that is on; never two on one CPU. */
static int enabled_leader(int cpu)
{
	int found = -1;

	for (int fd = 0; fd < FDS_MAX; fd++) {
		const struct event *e = &kernel.events[fd];

		if (!e->open || !e->on || e->cpu != cpu || e->attr.context_switch)
			continue;
		assert_int_equal(found, -1);
		found = fd;
	}
	return found;
}

static int fake_ioctl(int fd, unsigned long request, unsigned long arg)
{
	struct event *event = event_of(fd);

	if (fails(IOCTL))
		return -EIO;
	if (request == PERF_EVENT_IOC_ID) {
		*(uint64_t *)arg = 1000u + (unsigned)fd;
	} else if (request == PERF_EVENT_IOC_PERIOD) {
		assert_int_equal(*(const uint64_t *)arg, plan.trigger.sav);
		assert_false(event->on);
		kernel.periods++;
	} else if (request == PERF_EVENT_IOC_ENABLE || request == PERF_EVENT_IOC_DISABLE) {
		event->on = request == PERF_EVENT_IOC_ENABLE;
		enabled_leader(event->cpu);
		kernel.now += 2;
	} else {
		assert_int_equal(request, PERF_EVENT_IOC_SET_OUTPUT);
	}
	return 0;
}

static int fake_map(void **out, size_t bytes, int fd)
{
	*out = event_of(fd)->page = aligned_alloc(8, bytes);
	assert_non_null(*out);
	memset(*out, 0, bytes);
	return 0;
}

static void fake_unmap(void *at, size_t bytes)
{
	(void)bytes;
	free(at);
}

static void run(int cpu, unsigned ticks);
static void do_switch(int cpu);

/* reading: by a call, while that CPU runs on; else by the CPU itself, in a sample. */
static uint64_t reading_of(int leader, uint64_t *words, bool reading)
{
	const struct event *e = event_of(leader);
	uint64_t nr = 3;

	words[1] = e->enabled_ns;
	words[2] = e->enabled_ns;
	words[0] = 0;
	if (reading && kernel.torn && e->on && e->cpu == 0) {
		kernel.torn--;
		run(0, 1);
		do_switch(0);
	}
	for (int i = 0; i < FDS_MAX; i++) {
		const struct event *m = &kernel.events[i];

		if (!m->open || m->leader != leader || (kernel.detached && i != leader))
			continue;
		words[0]++;
		words[nr++] = m->count;
		words[nr++] = 1; /* lost */
	}
	return nr;
}

static ssize_t fake_read(int fd, void *buf, size_t bytes)
{
	const struct event *e = event_of(fd);
	uint64_t words[128], nr;

	if (fails(READ))
		return -EIO;
	if (e->attr.read_format & PERF_FORMAT_GROUP && (e->leader == fd || !kernel.detached)) {
		nr = reading_of(fd, words, true);
	} else if (e->attr.read_format & PERF_FORMAT_GROUP) {
		/* Its group was taken apart, and it shows the former leader's count. */
		nr = reading_of(e->leader, words, true);
	} else {
		memcpy(words, (uint64_t[]){ e->count, e->enabled_ns, e->enabled_ns, 0 },
		       4 * sizeof(*words));
		nr = 4;
	}
	assert_true(nr * sizeof(*words) <= bytes);
	memcpy(buf, words, nr * sizeof(*words));
	return (ssize_t)(nr * sizeof(*words));
}

static void fake_close(int fd)
{
	event_of(fd)->open = false;
	kernel.closes++;
	close(fd);
}

static uint64_t fake_now(void)
{
	return kernel.now;
}

/* ---- the made-up machine ---- */

static unsigned counter_of(const struct event *e)
{
	for (unsigned i = 0; i < NR_COUNTERS; i++) {
		if (plan.counters[i].type == e->attr.type &&
		    plan.counters[i].config == e->attr.config)
			return 1 + i;
	}
	return 0;
}

/* Whatever is on on this CPU counts; the time goes on for it alone. */
static void run(int cpu, unsigned ticks)
{
	int leader = enabled_leader(cpu);

	kernel.now += ticks * TICK_NS;
	for (int fd = 0; fd < FDS_MAX; fd++) {
		struct event *e = &kernel.events[fd];
		uint64_t by = fd == leader ? 0 : e->attr.config * ticks;

		if (!e->open || leader < 0 || e->leader != leader)
			continue;
		e->enabled_ns += ticks * TICK_NS;
		e->count += by;
		if (fd != leader)
			kernel.counts[cpu][counter_of(e)] += by;
	}
}

static void append(int cpu, const void *bytes, size_t nr)
{
	for (int fd = 0; fd < FDS_MAX; fd++) {
		struct event *e = &kernel.events[fd];

		if (!e->open || e->cpu != cpu || !e->page)
			continue;
		memcpy((unsigned char *)e->page + sysconf(_SC_PAGESIZE) + e->page->data_head, bytes,
		       nr);
		e->page->data_head += nr;
		return;
	}
	fail_msg("no ring");
}

static void put_sample(int cpu, uint64_t id)
{
	uint64_t shown = kernel.others_id ? kernel.others_id : id;
	uint64_t words[128] = { shown, 11ull << 32 | 10, kernel.now, (uint64_t)cpu };
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE };
	uint64_t nr = 4 + reading_of((int)(id - 1000), words + 4, false);

	header.size = (uint16_t)(8 + 8 * nr);
	append(cpu, &header, 8);
	append(cpu, words, 8 * nr);
}

/* A record without a sample: who was switched out. */
static void put_out(int cpu)
{
	const uint64_t words[5] = { 21ull << 32 | 20, 11ull << 32 | 10, kernel.now, (uint64_t)cpu,
				    7 };
	struct perf_event_header header = { .type = PERF_RECORD_SWITCH_CPU_WIDE,
					    .misc = PERF_RECORD_MISC_SWITCH_OUT,
					    .size = 8 + sizeof(words) };

	append(cpu, &header, 8);
	append(cpu, words, sizeof(words));
}

/* A context switch as the kernel shows it: its sample, then the record. */
static void do_switch(int cpu)
{
	int leader = enabled_leader(cpu);

	kernel.now += 10;
	if (leader >= 0) {
		event_of(leader)->count++;
		kernel.counts[cpu][0]++;
		put_sample(cpu, 1000u + (unsigned)leader);
	}
	kernel.now++;
	put_out(cpu);
}

/* ---- the driver on it ---- */

static int setup(void **state)
{
	int ret = tree_setup(state);

	tree_file("/sys/devices/system/cpu/online", "0-1\n");
	memset(&kernel, 0, sizeof(kernel));
	kernel.now = 1000;
	kernel.room[0] = kernel.room[1] = 2;
	csw_perf_sys = (struct csw_perf_sys){ .event_open = fake_open,
					      .ioctl = fake_ioctl,
					      .map = fake_map,
					      .unmap = fake_unmap,
					      .read = fake_read,
					      .close = fake_close,
					      .now_ns = fake_now };
	plan = (struct csw_plan){ .trigger = { .event = { .name = "the-trigger",
							  .type = PERF_TYPE_SOFTWARE,
							  .config =
								  PERF_COUNT_SW_CONTEXT_SWITCHES },
					       .sav = 1,
					       .per_switch = 1 },
				  .nr_counters = NR_COUNTERS,
				  .ring_bytes = 1 << 16,
				  .multiplex = true };
	for (unsigned i = 0; i < NR_COUNTERS; i++) {
		bool hardware = i != FAULTS && i != LAST;

		plan.counters[i] =
			(struct csw_event){ .type = hardware ? PERF_TYPE_RAW : PERF_TYPE_SOFTWARE,
					    .flags = hardware ? CSW_EVENT_HARDWARE : 0,
					    .config = 5 + i };
		snprintf(plan.counters[i].name, sizeof(plan.counters[i].name), "event-%u", i);
	}
	return ret;
}

static void ignore(void *ctx, const struct csw_record *rec)
{
	(void)ctx;
	(void)rec;
}

static const struct csw_sink sink = { .put = ignore };

static struct csw_driver *started(void)
{
	struct csw_driver *drv;
	struct csw_error err;

	assert_int_equal(ops->open(&drv, &plan, &err), 0);
	assert_int_equal(ops->start(drv, &sink, &err), 0);
	return drv;
}

static void close_driver(struct csw_driver *drv)
{
	ops->close(drv);
	assert_int_equal(kernel.opens, kernel.closes);
}

/* Past the end of any turn. */
static void end_turns(struct csw_driver *drv)
{
	struct csw_error err;

	kernel.now += 26000000;
	assert_int_equal(ops->wait(drv, 0, &err), 1);
}

#define expect(drv, ring, type) expect_at(drv, ring, type, __LINE__)
static struct csw_record expect_at(struct csw_driver *drv, unsigned ring, uint32_t type, int line)
{
	struct csw_record rec;

	memset(&rec, 0xaa, sizeof(rec));
	assert_int_equal(ops->next(drv, ring, &rec), 1);
	if (rec.type != type)
		fail_msg("line %d: type %u, expected %u", line, rec.type, type);
	return rec;
}

static void expect_end(struct csw_driver *drv, unsigned ring)
{
	struct csw_record rec;

	assert_int_equal(ops->next(drv, ring, &rec), 0);
}

/* Which counters the set has whose turn it is. */
static uint32_t on_now(int cpu)
{
	int leader = enabled_leader(cpu);
	uint32_t on = 0;

	for (int fd = 0; fd < FDS_MAX; fd++) {
		if (kernel.events[fd].open && kernel.events[fd].leader == leader && fd != leader)
			on |= 1u << (counter_of(&kernel.events[fd]) - 1);
	}
	return on;
}

static void check_sums(const struct csw_record *rec)
{
	assert_int_equal(rec->nr_values, 1 + NR_COUNTERS);
	for (unsigned i = 0; i <= NR_COUNTERS; i++)
		assert_int_equal(rec->values[i], kernel.counts[rec->cpu][i]);
}

/* ---- tests ---- */

static void test_sets(void **state)
{
	struct csw_driver_facts facts;
	struct csw_driver *drv = started();
	unsigned leaders = 0;

	(void)state;
	ops->facts(drv, &facts);
	assert_int_equal(facts.sets, 3);
	assert_int_equal(facts.scaled, ALL & ~(1u << FAULTS | 1u << LAST));
	for (int fd = 0; fd < FDS_MAX; fd++) {
		const struct event *e = &kernel.events[fd];

		if (!e->open)
			continue;
		assert_true(e->attr.sample_type & PERF_SAMPLE_IDENTIFIER);
		if (e->leader != fd || e->attr.context_switch)
			continue;
		leaders++;
		/* No room is left, be it that the last set has one counter of its own. */
		assert_int_equal(raw_events(fd), 2);
	}
	assert_int_equal(leaders, 3 * NR_CPUS);
	/* The CPUs begin with different ones. */
	assert_int_not_equal(on_now(0), on_now(1));
	close_driver(drv);
}

/* What always fits is in every set and then takes no turns. */
static void test_without_need(void **state)
{
	struct csw_driver_facts facts;
	struct csw_driver *drv;

	(void)state;
	kernel.room[0] = kernel.room[1] = NR_HARDWARE;
	drv = started();
	ops->facts(drv, &facts);
	assert_int_equal(facts.sets, 1);
	assert_int_equal(facts.scaled, 0);
	assert_int_equal(kernel.opens, NR_CPUS * (2 + NR_COUNTERS));
	for (int fd = 0; fd < FDS_MAX; fd++)
		assert_false(kernel.events[fd].open &&
			     (kernel.events[fd].attr.sample_type & PERF_SAMPLE_IDENTIFIER));
	end_turns(drv);
	expect_end(drv, 0);
	close_driver(drv);
}

/* One CPU has room for all, the other has not: records of both have one form. */
static void test_unlike_cpus(void **state)
{
	struct csw_driver_facts facts;
	struct csw_driver *drv;
	uint32_t before;

	(void)state;
	kernel.room[0] = NR_HARDWARE;
	drv = started();
	ops->facts(drv, &facts);
	assert_int_equal(facts.sets, 3);
	before = on_now(1);
	end_turns(drv);
	assert_int_equal(on_now(0), ALL);
	assert_int_not_equal(on_now(1), before);
	do_switch(0);
	ops->snapshot(drv);
	expect(drv, 0, CSW_RECORD_START);
	assert_int_equal(expect(drv, 0, CSW_RECORD_SAMPLE).on, ALL);
	close_driver(drv);
}

/* The kernel brings the times up to date, and copies the counts later: what was counted in between
 * is not of that time. */
static void test_torn_readings(void **state)
{
	struct csw_driver *drv = started();
	struct csw_record rec, sample;
	struct csw_error err;

	(void)state;
	kernel.torn = 3;
	assert_int_equal(ops->tick(drv, &err), 0);
	assert_int_equal(kernel.torn, 0);
	run(0, 1);
	do_switch(0);
	ops->snapshot(drv);
	expect(drv, 0, CSW_RECORD_START);
	for (int i = 0; i < 3; i++) {
		sample = expect(drv, 0, CSW_RECORD_SAMPLE);
		expect(drv, 0, CSW_RECORD_SWITCH_OUT);
	}
	rec = expect(drv, 0, CSW_RECORD_READ);
	assert_int_equal(rec.enabled_ns, 3 * TICK_NS);
	assert_int_equal(rec.running_ns, sample.running_ns);
	assert_memory_equal(rec.values, sample.values, (1 + NR_COUNTERS) * sizeof(*rec.values));
	expect(drv, 0, CSW_RECORD_SAMPLE);
	expect(drv, 0, CSW_RECORD_SWITCH_OUT);
	expect_end(drv, 0);
	close_driver(drv);
}

/* A CPU that never stands still has no reading: its samples say it all. The tick before it stays.
 */
static void test_never_still(void **state)
{
	struct csw_driver *drv = started();
	struct csw_record rec;
	struct csw_error err;

	(void)state;
	run(0, 5);
	assert_int_equal(ops->tick(drv, &err), 0);
	kernel.torn = 100;
	assert_int_equal(ops->tick(drv, &err), 0);
	assert_in_range(kernel.torn, 1, 99);
	ops->snapshot(drv);
	expect(drv, 0, CSW_RECORD_START);
	rec = expect(drv, 0, CSW_RECORD_READ);
	assert_int_equal(rec.enabled_ns, 5 * TICK_NS);
	assert_int_equal(rec.values[0], 0);
	for (unsigned i = kernel.torn; i < 100; i++) {
		expect(drv, 0, CSW_RECORD_SAMPLE);
		expect(drv, 0, CSW_RECORD_SWITCH_OUT);
	}
	expect_end(drv, 0);
	/* The other CPU has both its own. */
	expect(drv, 1, CSW_RECORD_START);
	expect(drv, 1, CSW_RECORD_READ);
	expect_end(drv, 1);
	close_driver(drv);
}

static void test_no_room_at_all(void **state)
{
	struct csw_driver *drv;
	struct csw_error err;

	(void)state;
	kernel.room[0] = kernel.room[1] = 0;
	assert_int_equal(ops->open(&drv, &plan, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not even with the trigger alone"));
	assert_int_equal(kernel.opens, kernel.closes);
	plan.multiplex = false;
	kernel.room[0] = kernel.room[1] = 3;
	assert_int_equal(ops->open(&drv, &plan, &err), -EINVAL);
	assert_non_null(strstr(err.text, "room for 3 of these 5 hardware events"));
	assert_non_null(strstr(err.text, "--multiplex"));
	assert_int_equal(kernel.opens, kernel.closes);
}

/* Over many turns: every reading is the sum of all that was counted on that CPU up to it, and says
 * who counted since the one before. */
static void test_sums(void **state)
{
	struct csw_driver *drv = started();
	struct csw_record rec;
	uint32_t met = 0;

	(void)state;
	for (int turn = 0; turn < 7; turn++) {
		uint32_t on = on_now(0);

		met |= on;
		run(0, 3);
		do_switch(0);
		ops->snapshot(drv);
		if (!turn)
			expect(drv, 0, CSW_RECORD_START);
		rec = expect(drv, 0, CSW_RECORD_SAMPLE);
		assert_int_equal(rec.on, on);
		check_sums(&rec);
		expect(drv, 0, CSW_RECORD_SWITCH_OUT);
		run(0, 2);
		end_turns(drv);
		ops->snapshot(drv);
		rec = expect(drv, 0, CSW_RECORD_READ);
		assert_int_equal(rec.flags, CSW_RECORD_TURN);
		assert_int_equal(rec.on, on);
		assert_int_equal(rec.lost, turn < 3 ? turn + 1 : 3); /* one of each set */
		assert_int_equal(rec.enabled_ns, (uint64_t)(turn + 1) * 5 * TICK_NS);
		check_sums(&rec);
		rec = expect(drv, 0, CSW_RECORD_READ);
		assert_int_equal(rec.flags, 0);
		assert_int_equal(rec.on, 0);
		check_sums(&rec);
		expect_end(drv, 0);
		assert_int_not_equal(on_now(0), on);
	}
	assert_int_equal(met, ALL);
	assert_int_equal(kernel.periods, 0); /* each occurrence is a period */
	close_driver(drv);
}

/* Whose turn it was tells the time, where samples show the id of another program's event. */
static void test_id_of_another(void **state)
{
	struct csw_driver *drv = started();
	struct csw_record rec;

	(void)state;
	kernel.others_id = 77;
	for (int turn = 0; turn < 5; turn++) {
		uint32_t on = on_now(0);

		run(0, 3);
		do_switch(0);
		run(0, 2);
		end_turns(drv);
		run(0, 4);
		do_switch(0);
		ops->snapshot(drv);
		if (!turn)
			expect(drv, 0, CSW_RECORD_START);
		assert_int_equal(expect(drv, 0, CSW_RECORD_SAMPLE).on, on);
		expect(drv, 0, CSW_RECORD_SWITCH_OUT);
		assert_int_equal(expect(drv, 0, CSW_RECORD_READ).on, on);
		assert_int_equal(expect(drv, 0, CSW_RECORD_READ).on, 0);
		rec = expect(drv, 0, CSW_RECORD_SAMPLE);
		assert_int_equal(rec.on, on_now(0));
		check_sums(&rec);
		expect(drv, 0, CSW_RECORD_SWITCH_OUT);
		expect_end(drv, 0);
	}
	close_driver(drv);
}

static void test_stop_in_mid_turn(void **state)
{
	struct csw_driver *drv = started();
	struct csw_error err;
	struct csw_record rec;

	(void)state;
	run(1, 4);
	end_turns(drv);
	run(1, 8);
	assert_int_equal(ops->tick(drv, &err), 0);
	run(1, 1);
	assert_int_equal(ops->stop(drv, &err), 0);
	assert_int_equal(enabled_leader(0), -1);
	assert_int_equal(enabled_leader(1), -1);
	ops->snapshot(drv);
	expect(drv, 1, CSW_RECORD_START);
	assert_int_equal(expect(drv, 1, CSW_RECORD_READ).enabled_ns, 4 * TICK_NS);
	assert_int_equal(expect(drv, 1, CSW_RECORD_READ).enabled_ns, 4 * TICK_NS);
	assert_int_equal(expect(drv, 1, CSW_RECORD_READ).enabled_ns, 12 * TICK_NS);
	rec = expect(drv, 1, CSW_RECORD_STOP);
	assert_int_equal(rec.enabled_ns, 13 * TICK_NS);
	check_sums(&rec);
	expect_end(drv, 1);
	close_driver(drv);
}

/* Where the end of a turn stands: behind the old set's samples, whatever their times, before the
 * new one's, and what was switched in between lies in between. */
static void test_place(void **state)
{
	struct csw_driver *drv = started();
	struct csw_record rec;
	uint64_t off_ns, on_ns;

	(void)state;
	run(0, 1);
	do_switch(0);
	end_turns(drv);
	ops->snapshot(drv);
	expect(drv, 0, CSW_RECORD_START);
	expect(drv, 0, CSW_RECORD_SAMPLE);
	expect(drv, 0, CSW_RECORD_SWITCH_OUT);
	run(0, 1);
	do_switch(0);
	ops->snapshot(drv);
	off_ns = expect(drv, 0, CSW_RECORD_READ).time_ns;
	on_ns = expect(drv, 0, CSW_RECORD_READ).time_ns;
	assert_true(off_ns <= on_ns);
	rec = expect(drv, 0, CSW_RECORD_SAMPLE);
	assert_true(on_ns < rec.time_ns);
	check_sums(&rec);
	expect(drv, 0, CSW_RECORD_SWITCH_OUT);
	expect_end(drv, 0);

	/* In the gap no set is on, and a switch has no sample. DISABLE has taken 2 ns, and then
	 * ENABLE; CPU 1, of which nothing was read, has had no turn. */
	end_turns(drv);
	kernel.now--;
	put_out(0);
	kernel.now += 20;
	do_switch(0);
	ops->snapshot(drv);
	rec = expect(drv, 0, CSW_RECORD_READ);
	assert_int_equal(rec.flags, CSW_RECORD_TURN);
	expect(drv, 0, CSW_RECORD_SWITCH_OUT);
	rec = expect(drv, 0, CSW_RECORD_READ);
	assert_int_equal(rec.flags, 0);
	expect(drv, 0, CSW_RECORD_SAMPLE);
	expect(drv, 0, CSW_RECORD_SWITCH_OUT);
	expect_end(drv, 0);
	close_driver(drv);
}

/* As long as the end of the last turn is not read, a turn goes on; a tick is possible all the same.
 */
static void test_a_late_reader(void **state)
{
	struct csw_driver *drv = started();
	struct csw_error err;
	uint32_t on;

	(void)state;
	end_turns(drv);
	on = on_now(0);
	for (int i = 0; i < 3; i++) {
		run(0, 1);
		end_turns(drv);
		assert_int_equal(on_now(0), on);
		assert_int_equal(ops->tick(drv, &err), 0);
	}
	ops->snapshot(drv);
	expect(drv, 0, CSW_RECORD_START);
	expect(drv, 0, CSW_RECORD_READ);
	expect(drv, 0, CSW_RECORD_READ);
	assert_int_equal(expect(drv, 0, CSW_RECORD_READ).enabled_ns, 3 * TICK_NS);
	expect_end(drv, 0);
	end_turns(drv);
	assert_int_not_equal(on_now(0), on);
	close_driver(drv);
}

static void test_period(void **state)
{
	struct csw_driver *drv;

	(void)state;
	plan.trigger.sav = 10;
	drv = started();
	end_turns(drv);
	assert_int_equal(kernel.periods, NR_CPUS);
	close_driver(drv);
}

/* A sample of a set that was never switched on: the ring is not what we think. */
static void test_sample_of_nobody(void **state)
{
	struct csw_driver *drv = started();
	struct csw_record rec;
	int leader = enabled_leader(0), other = 0;

	(void)state;
	while (!kernel.events[other].open || kernel.events[other].leader != other ||
	       kernel.events[other].cpu != 0 || kernel.events[other].attr.context_switch ||
	       other == leader)
		other++;
	put_sample(0, 1000u + (unsigned)other);
	put_out(0);
	ops->snapshot(drv);
	assert_int_equal(ops->next(drv, 0, &rec), -EINVAL);
	close_driver(drv);
}

/* A CPU that has gone offline has had its last turn. */
static void test_gone(void **state)
{
	struct csw_driver_facts facts;
	struct csw_driver *drv = started();
	struct csw_record rec;

	(void)state;
	run(0, 5);
	run(1, 5);
	kernel.detached = true;
	end_turns(drv);
	ops->facts(drv, &facts);
	assert_int_equal(facts.cpus_gone, NR_CPUS);
	assert_int_equal(enabled_leader(0), -1);
	ops->snapshot(drv);
	expect(drv, 0, CSW_RECORD_START);
	rec = expect(drv, 0, CSW_RECORD_READ);
	assert_int_equal(rec.flags, CSW_RECORD_DETACHED);
	assert_int_equal(rec.nr_values, 1);
	assert_int_equal(rec.values[0], kernel.counts[0][0]);
	expect_end(drv, 0);
	end_turns(drv);
	expect_end(drv, 0);
	close_driver(drv);
}

static int run_all(struct csw_error *err)
{
	struct csw_driver *drv;
	int ret = ops->open(&drv, &plan, err);

	if (ret == 0)
		ret = ops->start(drv, &sink, err);
	for (int i = 0; ret >= 0 && i < 3; i++) {
		kernel.now += 26000000;
		ret = ops->wait(drv, 0, err);
	}
	if (ret >= 0)
		ret = ops->stop(drv, err);
	ops->close(drv);
	return ret;
}

/* Each call fails once. */
static void test_calls_fail(void **state)
{
	unsigned calls[NR_CALLS], failures = 0;
	struct csw_error err;

	(void)state;
	assert_int_equal(run_all(&err), 0);
	memcpy(calls, kernel.calls, sizeof(calls));
	for (enum call call = 0; call < NR_CALLS; call++) {
		for (unsigned n = 0; n < calls[call]; n++) {
			int ret;

			tree_teardown(state);
			setup(state);
			kernel.failing = true;
			kernel.fail_call = call;
			kernel.fail_at = n;
			err = (struct csw_error){ .code = 0 };
			ret = run_all(&err);
			assert_int_equal(kernel.opens, kernel.closes);
			assert_int_equal(err.code, ret);
			failures += ret < 0;
		}
	}
	/* All but the side-band's: how much of that was lost may stay unknown. */
	assert_true(failures > calls[EVENT_OPEN]);
}

int main(void)
{
#define ON_FAKE(test) cmocka_unit_test_setup_teardown(test, setup, tree_teardown)
	const struct CMUnitTest tests[] = {
		ON_FAKE(test_sets),
		ON_FAKE(test_without_need),
		ON_FAKE(test_unlike_cpus),
		ON_FAKE(test_no_room_at_all),
		ON_FAKE(test_id_of_another),
		ON_FAKE(test_torn_readings),
		ON_FAKE(test_never_still),
		ON_FAKE(test_sums),
		ON_FAKE(test_stop_in_mid_turn),
		ON_FAKE(test_place),
		ON_FAKE(test_a_late_reader),
		ON_FAKE(test_period),
		ON_FAKE(test_sample_of_nobody),
		ON_FAKE(test_gone),
		ON_FAKE(test_calls_fail),
	};

	return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
