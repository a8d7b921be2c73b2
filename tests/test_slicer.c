/*
 * engine/rules.h and engine/slicer, branch by branch: one CPU's records written by hand, and what
 * they must become.
 *
 * Threads are 10, 20, 30 ... each a process of its own; 11, 12 ... are threads of 10.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "engine/driver.h"
#include "engine/slicer.h"

enum { FAULTS, CLOCK, CYCLES, NR_COUNTERS }; /* never in idle; a clock; anything */

struct fixture {
	struct csw_plan plan;
	struct csw_aggregation agg;
	struct csw_slicer slicer;
	uint64_t values[1 + NR_COUNTERS]; /* where the counters stand now */
	uint64_t lost, lost_other;        /* what the next STOP says */
	uint32_t cpu, on;                 /* on: csw_record.on */
};

static void begin(struct fixture *f, uint32_t phase, uint64_t sav, unsigned nr_counters)
{
	static const struct csw_scope everything;

	memset(f, 0, sizeof(*f));
	f->plan.trigger = (struct csw_trigger){ .sav = sav,
						.phase = phase,
						.per_switch = phase == CSW_PHASE_ANY ? 0 : 1 };
	f->plan.nr_counters = nr_counters;
	f->plan.counters[FAULTS].flags = CSW_EVENT_NEVER_IDLE;
	f->plan.counters[CLOCK].flags = CSW_EVENT_CLOCK;
	assert_int_equal(csw_aggregation_init(&f->agg, nr_counters, false), 0);
	assert_int_equal(csw_slicer_init(&f->slicer, &f->plan, &everything, &f->agg, 2), 0);
}

static int32_t pid_of(int32_t tid)
{
	return tid > 0 ? tid / 10 * 10 : tid;
}

static void put(struct fixture *f, uint32_t type, uint64_t t, int32_t tid, int32_t other,
		uint32_t flags)
{
	struct csw_record rec = { .type = type,
				  .time_ns = t,
				  .cpu = f->cpu,
				  .pid = pid_of(tid),
				  .tid = tid,
				  .other_pid = pid_of(other),
				  .other_tid = other,
				  .flags = flags,
				  .nr_values = 1 + f->plan.nr_counters,
				  .on = f->on,
				  .lost = f->lost,
				  .lost_other = f->lost_other,
				  .enabled_ns = t,
				  .running_ns = t };

	memcpy(rec.values, f->values, sizeof(f->values));
	assert_int_equal(csw_slicer_record(&f->slicer, &rec), 0);
}

static void start(struct fixture *f, uint64_t t, int32_t tid)
{
	put(f, CSW_RECORD_START, t, tid, -1, 0);
}

/* `triggers` more occurrences, and one overflow. */
static void sample(struct fixture *f, uint64_t t, int32_t hint, uint64_t triggers)
{
	f->values[0] += triggers;
	put(f, CSW_RECORD_SAMPLE, t, hint, -1, 0);
}

static void out(struct fixture *f, uint64_t t, int32_t prev, int32_t next)
{
	put(f, CSW_RECORD_SWITCH_OUT, t, prev, next, 0);
}

static void out_preempted(struct fixture *f, uint64_t t, int32_t prev, int32_t next)
{
	put(f, CSW_RECORD_SWITCH_OUT, t, prev, next, CSW_RECORD_PREEMPTED);
}

static void in(struct fixture *f, uint64_t t, int32_t subject, int32_t prev)
{
	put(f, CSW_RECORD_SWITCH_IN, t, subject, prev, 0);
}

static void lost(struct fixture *f, uint64_t t, uint64_t nr)
{
	f->lost = nr;
	put(f, CSW_RECORD_LOST, t, -1, -1, 0);
	f->lost = 0;
}

static void stop(struct fixture *f, uint64_t t, int32_t tid, uint64_t triggers)
{
	f->values[0] += triggers;
	put(f, CSW_RECORD_STOP, t, tid, -1, 0);
}

static void count(struct fixture *f, unsigned counter, uint64_t events)
{
	f->values[1 + counter] += events;
}

/* The whole switch as the software event writes it: sample, OUT, IN, 1 ns apart. */
static void switch_before(struct fixture *f, uint64_t t, int32_t prev, int32_t next)
{
	sample(f, t, prev, 1);
	out(f, t + 1, prev, next);
	in(f, t + 2, next, prev);
}

static const struct csw_agg_row *fixed(const struct fixture *f, uint32_t nr)
{
	return csw_aggregation_row(&f->agg, nr);
}

static const struct csw_agg_row *thread(const struct fixture *f, int32_t tid)
{
	for (uint32_t i = CSW_ROWS_FIXED; i < f->agg.nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(&f->agg, i);

		if (row->tid == tid)
			return row;
	}
	fail_msg("no row of thread %d", tid);
	return NULL;
}

static const struct csw_agg_row *mixed_of(const struct fixture *f, int32_t pid)
{
	for (uint32_t i = CSW_ROWS_FIXED; i < f->agg.nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(&f->agg, i);

		if (row->kind == CSW_KIND_MIXED && row->pid == pid)
			return row;
	}
	fail_msg("no [mixed] row of process %d", pid);
	return NULL;
}

static struct csw_completeness done(const struct fixture *f)
{
	struct csw_completeness all;

	csw_slicer_completeness(&f->slicer, &all);
	return all;
}

/* What holds in every run, then frees it: counts and times add up, occurrences are accounted for.
 */
static void end(struct fixture *f)
{
	struct csw_completeness c = done(f);
	uint64_t on = 0, wall = 0, enabled = 0, sums[NR_COUNTERS] = { 0 };
	uint64_t totals[2 + CSW_COUNTERS_MAX];

	for (uint32_t i = 0; i < f->agg.nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(&f->agg, i);

		on += row->oncpu_ns;
		enabled += row->enabled_ns;
		assert_true(row->exact_ns <= row->oncpu_ns);
		for (unsigned k = 0; k < f->plan.nr_counters; k++)
			sums[k] += row->cells[k].sum;
	}
	for (unsigned i = 0; i < f->slicer.nr_cpus; i++)
		wall += f->slicer.cpus[i].stop_ns - f->slicer.cpus[i].start_ns;
	assert_int_equal(on, wall);
	csw_slicer_totals(&f->slicer, totals);
	assert_int_equal(enabled, totals[0]);
	for (unsigned k = 0; k < f->plan.nr_counters; k++)
		assert_int_equal(sums[k], totals[2 + k]);
	assert_int_equal(c.all, f->plan.trigger.sav * c.samples + c.lost + c.throttled + c.unseen +
					(uint64_t)c.open);
	csw_slicer_free(&f->slicer);
	csw_aggregation_free(&f->agg);
}

#define SUM(row, counter) ((row)->cells[counter].sum)

/* ---- the switch that belongs to a sample, by where the trigger fires ---- */

static void test_before(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	f.values[0] = 7; /* readings begin anywhere */
	f.values[1 + FAULTS] = 1000;
	start(&f, 100, 10);
	count(&f, FAULTS, 3);
	switch_before(&f, 200, 10, 20);
	count(&f, FAULTS, 5);
	sample(&f, 300, 20, 1);
	out_preempted(&f, 301, 20, 0);
	in(&f, 302, 0, 20);
	count(&f, CYCLES, 9);
	switch_before(&f, 400, 0, 10);
	count(&f, FAULTS, 4);
	stop(&f, 450, 10, 0);

	assert_int_equal(SUM(thread(&f, 10), FAULTS), 7);
	assert_int_equal(SUM(thread(&f, 20), FAULTS), 5);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_IDLE), CYCLES), 9);
	assert_int_equal(thread(&f, 10)->oncpu_ns, 150);
	assert_int_equal(thread(&f, 20)->oncpu_ns, 100);
	assert_int_equal(fixed(&f, CSW_ROW_IDLE)->oncpu_ns, 100);
	assert_int_equal(thread(&f, 10)->exact_ns, 150);
	assert_int_equal(thread(&f, 10)->voluntary, 1);
	assert_int_equal(thread(&f, 10)->preempted, 0);
	assert_int_equal(thread(&f, 20)->preempted, 1);
	assert_int_equal(thread(&f, 20)->voluntary, 0);
	assert_int_equal(thread(&f, 20)->slices, 1);
	/* The first slice of 10 began with START, its last ended with STOP: neither is whole. */
	assert_true(thread(&f, 10)->cells[FAULTS].min > thread(&f, 10)->cells[FAULTS].max);
	assert_int_equal(thread(&f, 20)->cells[FAULTS].min, 5);
	assert_int_equal(thread(&f, 20)->cells[FAULTS].max, 5);
	assert_int_equal(f.slicer.slices, 3);
	assert_int_equal(f.slicer.unseen_switches, 0);
	assert_int_equal(done(&f).all, 3);
	assert_int_equal(done(&f).samples, 3);
	assert_int_equal(done(&f).unseen, 0);
	assert_false(f.slicer.is_wrong);
	end(&f);
}

/* As perf record can write it: the same sample twice, and the second one is no overflow. */
static void test_written_twice(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	count(&f, FAULTS, 3);
	sample(&f, 200, 10, 1);
	sample(&f, 200, 10, 0);
	out(&f, 201, 10, 20);
	in(&f, 202, 20, 10);
	count(&f, FAULTS, 5);
	switch_before(&f, 300, 20, 10);
	stop(&f, 350, 10, 0);

	assert_int_equal(SUM(thread(&f, 10), FAULTS), 3);
	assert_int_equal(SUM(thread(&f, 20), FAULTS), 5);
	assert_int_equal(done(&f).all, 2);
	assert_int_equal(done(&f).samples, 2);
	assert_int_equal(f.slicer.unseen_switches, 0);
	end(&f);
}

static void test_inside(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_INSIDE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	/* between OUT and IN */
	out(&f, 200, 10, 20);
	count(&f, FAULTS, 3);
	sample(&f, 201, 20, 1);
	in(&f, 202, 20, 10);
	/* with skid, after IN */
	out_preempted(&f, 300, 20, 10);
	in(&f, 302, 10, 20);
	count(&f, FAULTS, 5);
	sample(&f, 303, 10, 1);
	count(&f, FAULTS, 2);
	stop(&f, 400, 10, 0);

	assert_int_equal(SUM(thread(&f, 10), FAULTS), 5);
	assert_int_equal(SUM(thread(&f, 20), FAULTS), 5);
	assert_int_equal(thread(&f, 10)->oncpu_ns, 200);
	assert_int_equal(thread(&f, 20)->oncpu_ns, 100);
	assert_int_equal(thread(&f, 20)->exact_ns, 100);
	assert_int_equal(thread(&f, 10)->voluntary, 1);
	assert_int_equal(thread(&f, 20)->preempted, 1);
	assert_int_equal(f.slicer.unseen_switches, 0);
	assert_int_equal(f.slicer.owner_disagreements, 0);
	end(&f);
}

static void test_any(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_ANY, 1, NR_COUNTERS);
	start(&f, 100, 10);
	count(&f, FAULTS, 3);
	sample(&f, 150, 10, 1); /* in mid-run: nobody else in it */
	count(&f, FAULTS, 4);
	out(&f, 200, 10, 20);
	in(&f, 202, 20, 10);
	sample(&f, 300, 20, 1); /* two owners in it */
	stop(&f, 400, 20, 0);

	assert_int_equal(SUM(thread(&f, 10), FAULTS), 3);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_MIXED), FAULTS), 4);
	assert_int_equal(thread(&f, 10)->oncpu_ns, 100);
	assert_int_equal(thread(&f, 10)->exact_ns, 50);
	assert_int_equal(thread(&f, 20)->oncpu_ns, 200);
	assert_int_equal(thread(&f, 20)->exact_ns, 100);
	assert_int_equal(thread(&f, 10)->slices, 1);
	end(&f);
}

/* Not known who ran at START: the first switch record tells. */
static void test_start_unknown(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_INSIDE, 1, NR_COUNTERS);
	start(&f, 100, -1);
	out(&f, 200, 10, 20);
	count(&f, FAULTS, 3);
	sample(&f, 201, 20, 1);
	in(&f, 202, 20, 10);
	stop(&f, 300, 20, 0);
	assert_int_equal(SUM(thread(&f, 10), FAULTS), 3);
	assert_int_equal(thread(&f, 10)->oncpu_ns, 100);
	assert_int_equal(f.slicer.unseen_switches, 0);
	end(&f);
}

/* Its last sample and its SWITCH OUT carry -1; its row ends with them. */
static void test_exiting_thread(void **state)
{
	struct fixture f;
	const struct csw_agg_row *row;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	put(&f, CSW_RECORD_EXIT, 150, 10, -1, 0);
	count(&f, FAULTS, 3);
	sample(&f, 200, -1, 1);
	out(&f, 201, -1, 20);
	in(&f, 202, 20, -1);
	stop(&f, 300, 20, 0);
	row = thread(&f, 10);
	assert_int_equal(SUM(row, FAULTS), 3);
	assert_int_equal(row->oncpu_ns, 100);
	assert_int_equal(row->voluntary, 1);
	assert_true(row->flags & CSW_ROW_CLOSED);
	assert_int_equal(f.slicer.unseen_switches, 0);
	assert_int_equal(f.slicer.owner_disagreements, 0);
	assert_int_equal(fixed(&f, CSW_ROW_UNKNOWN)->oncpu_ns, 0);
	end(&f);
}

/* SWITCH IN can still name the dead: that opens no other row. */
static void test_dead_is_named(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	put(&f, CSW_RECORD_EXIT, 150, 10, -1, 0);
	sample(&f, 200, -1, 1);
	out(&f, 201, -1, 20);
	in(&f, 202, 20, 10);
	stop(&f, 300, 20, 0);
	assert_int_equal(f.agg.nr, CSW_ROWS_FIXED + 2);
	assert_int_equal(f.slicer.unseen_switches, 0);
	assert_int_equal(thread(&f, 20)->exact_ns, 100);
	end(&f);
}

/* A thread blocks, with its TID, after its EXIT record, comes back and only then ends. */
static void test_exit_blocks_and_returns(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	put(&f, CSW_RECORD_EXIT, 150, 10, -1, 0);
	count(&f, FAULTS, 3);
	switch_before(&f, 200, 10, 20);
	switch_before(&f, 300, 20, 10);
	count(&f, FAULTS, 2);
	sample(&f, 400, -1, 1);
	out(&f, 401, -1, 20);
	in(&f, 402, 20, -1);
	stop(&f, 500, 20, 0);
	assert_int_equal(SUM(thread(&f, 10), FAULTS), 5);
	assert_int_equal(thread(&f, 10)->slices, 2);
	assert_int_equal(f.agg.nr, CSW_ROWS_FIXED + 2);
	end(&f);
}

/* The parent reaps the thread that leaves while this CPU is still switching, and another CPU gives
 * its TID to a new one: SWITCH_IN's prev is who SWITCH_OUT named, not who has the TID by now. */
static void test_tid_reused_within_the_switch(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	put(&f, CSW_RECORD_EXIT, 150, 10, -1, 0);
	count(&f, CYCLES, 7);
	sample(&f, 200, 10, 1);
	out(&f, 201, 10, 20);
	f.cpu = 1;
	put(&f, CSW_RECORD_FORK, 202, 10, 30, 0);
	f.cpu = 0;
	in(&f, 203, 20, 10);
	count(&f, CYCLES, 5);
	switch_before(&f, 300, 20, 0);
	stop(&f, 400, 0, 0);

	assert_int_equal(f.slicer.unseen_switches, 0);
	assert_int_equal(SUM(thread(&f, 10), CYCLES), 7);
	assert_int_equal(SUM(thread(&f, 20), CYCLES), 5);
	assert_int_equal(thread(&f, 20)->oncpu_ns, 100);
	end(&f);
}

/* A leader on its way out makes room for a thread of its own process; the trigger fires behind the
 * switch and shows the leader: nobody has exec'd. */
static void test_leader_leaves_to_sibling(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_INSIDE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	put(&f, CSW_RECORD_FORK, 110, 11, 10, 0);
	put(&f, CSW_RECORD_EXIT, 150, 10, -1, 0);
	count(&f, CYCLES, 7);
	out(&f, 200, 10, 11);
	sample(&f, 201, 10, 1);
	in(&f, 202, 11, 10);
	count(&f, CYCLES, 5);
	out(&f, 300, 11, 10);
	sample(&f, 301, 11, 1);
	in(&f, 302, 10, 11);
	stop(&f, 400, 10, 0);

	assert_int_equal(SUM(thread(&f, 10), CYCLES), 7);
	assert_int_equal(SUM(thread(&f, 11), CYCLES), 5);
	assert_int_equal(thread(&f, 11)->flags & CSW_ROW_MOVED, 0);
	end(&f);
}

/* ---- records that contradict each other ---- */

static void check_contradiction(struct fixture *f, uint64_t unknown_ns)
{
	assert_int_equal(f->slicer.unseen_switches, 1);
	assert_int_equal(fixed(f, CSW_ROW_UNKNOWN)->oncpu_ns, unknown_ns);
	assert_int_equal(SUM(fixed(f, CSW_ROW_MIXED), FAULTS), 6);
}

static void test_out_of_another(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_INSIDE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	out(&f, 200, 20, 30); /* 10 to 20: not seen */
	count(&f, FAULTS, 6);
	sample(&f, 201, 30, 2);
	in(&f, 202, 30, 20);
	stop(&f, 300, 30, 0);
	check_contradiction(&f, 100);
	assert_int_equal(thread(&f, 10)->oncpu_ns, 0);
	assert_int_equal(thread(&f, 20)->oncpu_ns, 0);
	assert_int_equal(thread(&f, 30)->oncpu_ns, 100);
	assert_int_equal(done(&f).unseen, 1);
	end(&f);
}

/* SWITCH OUT is missing, but SWITCH IN names the owner as the one that left. */
static void test_in_without_out(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_INSIDE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	in(&f, 202, 20, 10);
	count(&f, FAULTS, 6);
	sample(&f, 203, 20, 1);
	stop(&f, 300, 20, 0);
	assert_int_equal(f.slicer.unseen_switches, 1);
	assert_int_equal(thread(&f, 10)->oncpu_ns, 102);
	assert_int_equal(thread(&f, 10)->slices, 1);
	assert_int_equal(thread(&f, 10)->voluntary + thread(&f, 10)->preempted, 0);
	assert_int_equal(SUM(thread(&f, 10), FAULTS), 6);
	end(&f);
}

/* The same after its sample: the run ended there. */
static void test_in_without_out_before(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	count(&f, FAULTS, 6);
	sample(&f, 200, 10, 1);
	in(&f, 202, 20, 10);
	count(&f, FAULTS, 1);
	switch_before(&f, 300, 20, 10);
	stop(&f, 400, 10, 0);
	assert_int_equal(f.slicer.unseen_switches, 1);
	assert_int_equal(SUM(thread(&f, 10), FAULTS), 6);
	assert_int_equal(SUM(thread(&f, 20), FAULTS), 1);
	assert_int_equal(thread(&f, 10)->slices, 1);
	assert_int_equal(thread(&f, 20)->oncpu_ns, 100);
	end(&f);
}

static void test_in_with_another_prev(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_ANY, 1, NR_COUNTERS);
	start(&f, 100, 10);
	in(&f, 200, 30, 20); /* 10 to 20: not seen */
	count(&f, FAULTS, 6);
	sample(&f, 250, 30, 1);
	stop(&f, 300, 30, 0);
	check_contradiction(&f, 100);
	end(&f);
}

/* OUT says 10 left and 20 comes; IN agrees on 20, but says that 30 left. */
static void test_out_and_in_disagree(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_ANY, 1, NR_COUNTERS);
	start(&f, 100, 10);
	out(&f, 200, 10, 20);
	in(&f, 260, 20, 30);
	count(&f, FAULTS, 6);
	sample(&f, 280, 20, 1);
	stop(&f, 300, 20, 0);
	check_contradiction(&f, 60);
	assert_int_equal(thread(&f, 10)->oncpu_ns, 100);
	assert_int_equal(thread(&f, 20)->oncpu_ns, 40);
	end(&f);
}

/* OUT says 10 left and 20 comes; IN agrees on 10, but says that 30 comes. */
static void test_in_of_another_than_announced(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_ANY, 1, NR_COUNTERS);
	start(&f, 100, 10);
	out(&f, 200, 10, 20);
	in(&f, 260, 30, 10);
	count(&f, FAULTS, 6);
	sample(&f, 280, 30, 1);
	stop(&f, 300, 30, 0);
	check_contradiction(&f, 60);
	assert_int_equal(thread(&f, 20)->oncpu_ns, 0);
	assert_int_equal(thread(&f, 30)->oncpu_ns, 40);
	end(&f);
}

/* One contradiction is one: the next sample's own switch is as good as ever. */
static void test_contradiction_is_over(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	sample(&f, 200, 10, 1);
	out(&f, 250, 20, 30);
	in(&f, 251, 30, 20);
	count(&f, FAULTS, 6);
	switch_before(&f, 300, 30, 10);
	count(&f, FAULTS, 2);
	switch_before(&f, 400, 10, 30);
	stop(&f, 500, 30, 0);
	check_contradiction(&f, 50);
	assert_int_equal(SUM(thread(&f, 10), FAULTS), 2);
	end(&f);
}

/* Somebody comes who never left. */
static void test_in_of_the_owner(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_ANY, 1, NR_COUNTERS);
	start(&f, 100, 10);
	in(&f, 200, 10, 20);
	count(&f, FAULTS, 6);
	sample(&f, 250, 10, 1);
	stop(&f, 300, 10, 0);
	check_contradiction(&f, 100);
	assert_int_equal(thread(&f, 10)->oncpu_ns, 100);
	end(&f);
}

/* IN with prev -1 of a thread that OUT did not announce: the owner has exited unseen. */
static void test_in_after_unseen_exit(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_ANY, 1, NR_COUNTERS);
	start(&f, 100, 10);
	in(&f, 200, 20, -1);
	stop(&f, 300, 20, 0);
	assert_int_equal(f.slicer.unseen_switches, 1);
	assert_int_equal(thread(&f, 10)->oncpu_ns, 100);
	assert_int_equal(thread(&f, 20)->oncpu_ns, 100);
	end(&f);
}

/* A sample whose switch never came before the next sample. */
static void test_own_switch_missing(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	sample(&f, 200, 10, 1);
	count(&f, FAULTS, 6);
	sample(&f, 300, 10, 1);
	out(&f, 301, 10, 20);
	in(&f, 302, 20, 10);
	stop(&f, 400, 20, 0);
	check_contradiction(&f, 100);
	assert_int_equal(thread(&f, 10)->oncpu_ns, 100);
	end(&f);
}

static void test_own_switch_missing_at_stop(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	sample(&f, 200, 10, 1);
	count(&f, FAULTS, 6);
	stop(&f, 300, 10, 0);
	check_contradiction(&f, 100);
	end(&f);
}

/* The kernel may fill in a sample for another program's event, with a TID of another namespace:
 * alone it proves nothing. */
static void test_foreign_hint(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	count(&f, FAULTS, 6);
	sample(&f, 200, 7777, 1);
	out(&f, 201, 10, 30);
	in(&f, 202, 30, 10);
	stop(&f, 300, 30, 0);
	assert_int_equal(f.slicer.owner_disagreements, 1);
	assert_int_equal(f.slicer.unseen_switches, 0);
	assert_int_equal(SUM(thread(&f, 10), FAULTS), 6);
	assert_int_equal(thread(&f, 10)->oncpu_ns, 100);
	assert_int_equal(thread(&f, 30)->exact_ns, 100);
	end(&f);
}

/* After a gap nobody knows whether the last sample's own switch is still to come: the thread that
 * leaves next is charged. */
static void test_gap_forgets_own_switch(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	sample(&f, 200, 10, 1);
	lost(&f, 300, 4);
	out(&f, 400, 20, 30);
	in(&f, 401, 30, 20);
	sample(&f, 500, 30, 3);
	out(&f, 501, 30, 10);
	stop(&f, 600, 10, 0);
	assert_int_equal(fixed(&f, CSW_ROW_LOST)->oncpu_ns, 100);
	assert_int_equal(thread(&f, 20)->oncpu_ns, 100);
	assert_int_equal(thread(&f, 30)->oncpu_ns, 100);
	end(&f);
}

/* Software events are written in the outgoing thread: with a trigger count that proves an unseen
 * switch, another TID says that it was the last one. */
static void test_hint_denies(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	count(&f, FAULTS, 6);
	sample(&f, 200, 20, 2);
	out(&f, 201, 20, 30);
	in(&f, 202, 30, 20);
	stop(&f, 300, 30, 0);
	check_contradiction(&f, 100);
	assert_int_equal(f.slicer.owner_disagreements, 1);
	assert_int_equal(thread(&f, 30)->exact_ns, 100);
	end(&f);
}

/* Also the TID of the thread that left last: it cannot be the outgoing one again. */
static void test_hint_of_the_left_denies(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	switch_before(&f, 200, 10, 20);
	count(&f, FAULTS, 6);
	sample(&f, 300, 10, 2);
	out(&f, 301, 10, 30);
	in(&f, 302, 30, 10);
	stop(&f, 400, 30, 0);
	check_contradiction(&f, 100);
	assert_int_equal(f.slicer.owner_disagreements, 1);
	end(&f);
}

/* In the switch code both threads' TIDs are seen; a third one is counted, and proves nothing. */
static void test_hint_inside(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_INSIDE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	out(&f, 200, 10, 20);
	count(&f, FAULTS, 3);
	sample(&f, 201, 10, 1);
	in(&f, 202, 20, 10);
	out(&f, 300, 20, 10);
	count(&f, FAULTS, 4);
	sample(&f, 301, 30, 1);
	in(&f, 302, 10, 20);
	stop(&f, 400, 10, 0);
	assert_int_equal(f.slicer.owner_disagreements, 1);
	assert_int_equal(f.slicer.unseen_switches, 0);
	assert_int_equal(SUM(thread(&f, 10), FAULTS), 3);
	assert_int_equal(SUM(thread(&f, 20), FAULTS), 4);
	end(&f);
}

/* More occurrences than switches were seen: somebody else ran as well. */
static void test_trigger_proves_unseen(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	count(&f, FAULTS, 6);
	sample(&f, 200, 10, 3);
	out(&f, 201, 10, 20);
	in(&f, 202, 20, 10);
	count(&f, FAULTS, 2);
	stop(&f, 300, 20, 2); /* two more after the last one */
	assert_int_equal(SUM(fixed(&f, CSW_ROW_MIXED), FAULTS), 8);
	assert_int_equal(thread(&f, 10)->exact_ns, 0);
	assert_int_equal(done(&f).all, 5);
	assert_int_equal(done(&f).samples, 1);
	assert_int_equal(done(&f).unseen, 4);
	assert_int_equal(done(&f).open, 0);
	end(&f);
}

/* The same where the switch lies behind its sample: one was seen, two are counted. */
static void test_trigger_proves_unseen_inside(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_INSIDE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	out(&f, 200, 10, 20);
	count(&f, FAULTS, 6);
	sample(&f, 201, 20, 2);
	in(&f, 202, 20, 10);
	stop(&f, 300, 20, 0);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_MIXED), FAULTS), 6);
	assert_int_equal(done(&f).unseen, 1);
	end(&f);
}

/* ---- the idle task whose records never come ---- */

static void idled(struct fixture *f, unsigned nr_counters)
{
	begin(f, CSW_PHASE_BEFORE, 1, nr_counters);
	start(f, 100, 10);
	sample(f, 200, 10, 1);
	out(f, 201, 10, 0);
	/* no IN, no sample, no OUT of idle */
	in(f, 400, 20, 0);
	count(f, FAULTS, 7);
	count(f, CLOCK, 301);
	count(f, CYCLES, 1000);
	sample(f, 500, 20, 2);
	out(f, 501, 20, 10);
	in(f, 502, 10, 20);
	stop(f, 600, 10, 0);
}

static void test_idled(void **state)
{
	struct fixture f;

	(void)state;
	idled(&f, NR_COUNTERS);
	assert_int_equal(fixed(&f, CSW_ROW_IDLE)->oncpu_ns, 200);
	assert_int_equal(thread(&f, 20)->oncpu_ns, 100);
	assert_int_equal(SUM(thread(&f, 20), FAULTS), 7);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_IDLE), CLOCK), 200);
	assert_int_equal(SUM(thread(&f, 20), CLOCK), 101);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_MIXED), CYCLES), 1000);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_MIXED), FAULTS), 0);
	assert_int_equal(thread(&f, 20)->enabled_ns, 100);
	/* The cycles are in nobody's row: the slice is not exact. */
	assert_int_equal(thread(&f, 20)->exact_ns, 0);
	assert_int_equal(done(&f).unseen, 1);
	assert_int_equal(f.slicer.unseen_switches, 1);
	end(&f);

	/* Without them every counter can be told apart. */
	idled(&f, CLOCK + 1);
	assert_int_equal(thread(&f, 20)->exact_ns, 100);
	assert_int_equal(fixed(&f, CSW_ROW_IDLE)->exact_ns, 0);
	end(&f);
}

/* The other way round: the idle task's sample ends the slice, the thread came first. */
static void test_idled_thread_first(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_INSIDE, 2, NR_COUNTERS);
	start(&f, 100, 10);
	out(&f, 200, 10, 0);
	in(&f, 201, 0, 10);
	count(&f, FAULTS, 7);
	out(&f, 300, 0, 20);
	sample(&f, 301, 0, 2);
	in(&f, 302, 20, 0);
	stop(&f, 400, 20, 0);
	assert_int_equal(SUM(thread(&f, 10), FAULTS), 7);
	assert_int_equal(fixed(&f, CSW_ROW_IDLE)->oncpu_ns, 100);
	end(&f);
}

/* ---- several owners ---- */

/* Clocks are shared by time and lose nothing by rounding; the rest is nobody's. */
static void test_mixed_clock(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_INSIDE, 3, NR_COUNTERS);
	start(&f, 0, 10);
	out(&f, 10, 10, 20);
	in(&f, 10, 20, 10);
	out(&f, 20, 20, 30);
	in(&f, 20, 30, 20);
	out(&f, 30, 30, 10);
	count(&f, FAULTS, 7);
	count(&f, CLOCK, 100);
	sample(&f, 30, 10, 3);
	in(&f, 30, 10, 30);
	stop(&f, 40, 10, 0);
	assert_int_equal(SUM(thread(&f, 10), CLOCK), 33);
	assert_int_equal(SUM(thread(&f, 20), CLOCK), 33);
	assert_int_equal(SUM(thread(&f, 30), CLOCK), 34);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_MIXED), FAULTS), 7);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_MIXED), CLOCK), 0);
	assert_int_equal(thread(&f, 20)->oncpu_ns, 10);
	assert_int_equal(thread(&f, 20)->exact_ns, 0);
	/* No whole slice of anybody. */
	assert_true(fixed(&f, CSW_ROW_MIXED)->cells[FAULTS].min >
		    fixed(&f, CSW_ROW_MIXED)->cells[FAULTS].max);
	end(&f);
}

/* A clock that advances while no time passes goes to [mixed], not to nobody. */
static void test_mixed_no_time(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_INSIDE, 2, NR_COUNTERS);
	start(&f, 10, 10);
	out(&f, 10, 10, 20);
	in(&f, 10, 20, 10);
	out(&f, 10, 20, 10);
	count(&f, CLOCK, 5);
	sample(&f, 10, 10, 2);
	in(&f, 10, 10, 20);
	stop(&f, 20, 10, 0);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_MIXED), CLOCK), 5);
	end(&f);
}

/* A huge clock: the share is computed without overflow. */
static void test_mixed_huge(void **state)
{
	const uint64_t huge = 1ull << 62, s = 1000000000;
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_INSIDE, 2, NR_COUNTERS);
	start(&f, 0, 10);
	out(&f, s, 10, 20);
	in(&f, s, 20, 10);
	out(&f, 4 * s, 20, 10);
	count(&f, CLOCK, huge);
	sample(&f, 4 * s, 10, 2);
	in(&f, 4 * s, 10, 20);
	stop(&f, 5 * s, 10, 0);
	assert_true(SUM(thread(&f, 10), CLOCK) == huge / 4);
	assert_true(SUM(thread(&f, 20), CLOCK) == huge / 4 * 3);
	end(&f);
}

static void test_mixed_of_one_process(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_INSIDE, 2, NR_COUNTERS);
	start(&f, 0, 10);
	out(&f, 10, 10, 11);
	in(&f, 10, 11, 10);
	out(&f, 20, 11, 10);
	count(&f, FAULTS, 7);
	sample(&f, 20, 10, 2);
	in(&f, 20, 10, 11);
	out(&f, 30, 10, 20);
	in(&f, 30, 20, 10);
	out(&f, 40, 20, 10);
	count(&f, FAULTS, 4);
	sample(&f, 40, 10, 2);
	in(&f, 40, 10, 20);
	stop(&f, 50, 10, 0);
	assert_int_equal(SUM(mixed_of(&f, 10), FAULTS), 7);
	/* With a thread of another process in it, it is no process's. */
	assert_int_equal(SUM(fixed(&f, CSW_ROW_MIXED), FAULTS), 4);
	end(&f);
}

/* `nr` threads within one stretch; the counts of the stretch. */
static void many_owners(struct fixture *f, int32_t nr)
{
	begin(f, CSW_PHASE_INSIDE, (uint64_t)nr, NR_COUNTERS);
	start(f, 0, 10);
	for (int32_t i = 1; i <= nr; i++) {
		out(f, (uint64_t)i * 10, 9 + i, 10 + i % nr);
		if (i == nr) {
			count(f, FAULTS, 7);
			count(f, CLOCK, (uint64_t)nr * 10);
			sample(f, (uint64_t)i * 10, 10, (uint64_t)nr);
		}
		in(f, (uint64_t)i * 10, 10 + i % nr, 9 + i);
	}
	stop(f, (uint64_t)nr * 10 + 5, 10, 0);
}

static void test_many_owners(void **state)
{
	struct fixture f;

	(void)state;
	many_owners(&f, 8);
	for (int32_t tid = 10; tid < 18; tid++)
		assert_int_equal(SUM(thread(&f, tid), CLOCK), 10);
	assert_int_equal(SUM(mixed_of(&f, 10), FAULTS), 7);
	end(&f);

	/* More than are told apart: all of it is mixed, and of no process. On-CPU time stays. */
	many_owners(&f, 9);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_MIXED), CLOCK), 90);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_MIXED), FAULTS), 7);
	for (int32_t tid = 11; tid < 19; tid++)
		assert_int_equal(thread(&f, tid)->oncpu_ns, 10);
	assert_int_equal(thread(&f, 15)->enabled_ns, 0);
	end(&f);
}

/* ---- loss ---- */

static void test_lost(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	switch_before(&f, 200, 10, 20);
	lost(&f, 300, 8);
	/* Complete again from here: who leaves next has run since then. */
	count(&f, FAULTS, 6);
	sample(&f, 400, 30, 4);
	out(&f, 401, 30, 40);
	in(&f, 402, 40, 30);
	count(&f, FAULTS, 2);
	switch_before(&f, 500, 40, 10);
	f.lost = 2; /* of the 3 occurrences without a sample the kernel says 2 were lost */
	f.lost_other = 6;
	stop(&f, 600, 10, 0);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_LOST), FAULTS), 6);
	assert_int_equal(SUM(thread(&f, 40), FAULTS), 2);
	assert_int_equal(thread(&f, 20)->oncpu_ns, 2);
	assert_int_equal(fixed(&f, CSW_ROW_LOST)->oncpu_ns, 198);
	assert_int_equal(thread(&f, 30)->oncpu_ns, 0);
	assert_int_equal(thread(&f, 40)->exact_ns, 100);
	assert_int_equal(done(&f).lost, 2);
	assert_int_equal(done(&f).unseen, 1);
	assert_int_equal(f.slicer.cpus[0].lost_records, 8);
	assert_int_equal(f.slicer.unseen_switches, 0);
	end(&f);
}

/* A SWITCH IN after the gap: whoever it says has left has run since the gap. */
static void test_lost_then_in(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_INSIDE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	lost(&f, 200, 3);
	in(&f, 300, 20, 30);
	count(&f, FAULTS, 6);
	sample(&f, 301, 20, 3);
	f.lost = CSW_LOST_UNKNOWN;
	f.lost_other = CSW_LOST_UNKNOWN;
	stop(&f, 400, 20, 0);
	assert_int_equal(thread(&f, 10)->oncpu_ns, 0);
	assert_int_equal(fixed(&f, CSW_ROW_LOST)->oncpu_ns, 100);
	assert_int_equal(thread(&f, 30)->oncpu_ns, 100);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_LOST), FAULTS), 6);
	assert_int_equal(done(&f).lost, 2);
	end(&f);
}

/* The kernel writes no LOST record after the last record that fits: its counts tell. */
static void check_tail(uint64_t samples, uint64_t others, bool is_lost)
{
	struct fixture f;

	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	lost(&f, 150, 2);
	sample(&f, 190, 10, 1);
	out(&f, 191, 10, 20);
	in(&f, 192, 20, 10);
	count(&f, FAULTS, 6);
	f.lost = samples;
	f.lost_other = others;
	stop(&f, 300, 20, is_lost ? 2 : 0);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_LOST), FAULTS), is_lost ? 6 : 0);
	assert_int_equal(fixed(&f, CSW_ROW_LOST)->oncpu_ns, is_lost ? 90 + 108 : 90);
	end(&f);
}

static void test_tail_lost(void **state)
{
	(void)state;
	check_tail(2, 0, false);
	check_tail(1, 1, false);
	check_tail(CSW_LOST_UNKNOWN, CSW_LOST_UNKNOWN, false);
	check_tail(3, 0, true);
	check_tail(0, 3, true);
	check_tail(2, 1, true);
	check_tail(CSW_LOST_UNKNOWN, 3, true);
	check_tail(3, CSW_LOST_UNKNOWN, true);
}

static void test_throttled(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_INSIDE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	put(&f, CSW_RECORD_THROTTLE, 150, -1, -1, 0);
	out(&f, 200, 10, 20);
	in(&f, 201, 20, 10);
	put(&f, CSW_RECORD_UNTHROTTLE, 250, -1, -1, 0);
	out(&f, 300, 20, 10);
	count(&f, FAULTS, 6);
	sample(&f, 301, 10, 2);
	in(&f, 302, 10, 20);
	/* started again: exact from here */
	out(&f, 400, 10, 20);
	count(&f, FAULTS, 2);
	sample(&f, 401, 20, 1);
	in(&f, 402, 20, 10);
	/* and still stopped at a sample: the next slice is not exact either */
	put(&f, CSW_RECORD_THROTTLE, 450, -1, -1, 0);
	out(&f, 500, 20, 10);
	sample(&f, 501, 10, 1);
	in(&f, 502, 10, 20);
	count(&f, FAULTS, 5);
	stop(&f, 600, 10, 0);
	assert_int_equal(f.slicer.throttles, 2);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_LOST), FAULTS), 11);
	assert_int_equal(SUM(thread(&f, 10), FAULTS), 2);
	assert_int_equal(done(&f).throttled, 1);
	assert_int_equal(done(&f).unseen, 0);
	assert_int_equal(thread(&f, 10)->exact_ns, 100);
	/* Switches were seen all the time. */
	assert_int_equal(thread(&f, 20)->oncpu_ns, 200);
	end(&f);
}

/* ---- SAV ---- */

static void test_open_remainder(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_ANY, 3, NR_COUNTERS);
	start(&f, 100, 10);
	sample(&f, 200, 10, 3);
	sample(&f, 300, 10, 3);
	stop(&f, 400, 10, 2);
	assert_int_equal(done(&f).samples, 2);
	assert_int_equal(done(&f).open, 2);
	assert_int_equal(done(&f).unseen, 0);
	end(&f);
}

/* A late interrupt reads one more, and the next one less: nothing is missing. */
static void test_open_skid(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_ANY, 3, NR_COUNTERS);
	start(&f, 100, 10);
	sample(&f, 200, 10, 4);
	sample(&f, 300, 10, 2);
	sample(&f, 350, 10, 7); /* one sample is missing: 3 of these 7, and one is open */
	stop(&f, 400, 10, 0);
	assert_int_equal(done(&f).unseen, 3);
	assert_int_equal(done(&f).open, 1);
	end(&f);
}

/* The kernel falls more than a period behind and begins a new one; then an interrupt is late. What
 * looks like a second missing overflow comes early instead. */
static void test_open_taken_back(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_ANY, 50, NR_COUNTERS);
	start(&f, 100, 10);
	sample(&f, 200, 10, 110); /* one is missing, 10 stay */
	assert_int_equal(f.slicer.cpus[0].done.unseen, 50);
	sample(&f, 300, 10, 95); /* 45 late: with the 10 one more seems to be missing */
	assert_int_equal(f.slicer.cpus[0].done.unseen, 100);
	sample(&f, 350, 10, 5); /* but here it is */
	assert_int_equal(f.slicer.cpus[0].done.unseen, 50);
	stop(&f, 400, 10, 0);
	assert_int_equal(done(&f).unseen, 50);
	assert_int_equal(done(&f).open, 10);
	end(&f);

	/* More samples than occurrences, and none was ever missing: that is broken and stays so. */
	begin(&f, CSW_PHASE_ANY, 50, NR_COUNTERS);
	start(&f, 100, 10);
	sample(&f, 200, 10, 40);
	stop(&f, 400, 10, 0);
	assert_int_equal(done(&f).open, -10);
	end(&f);
}

/* ---- what is no proper stream ---- */

static void test_backwards(void **state)
{
	struct fixture f;

	(void)state;
	for (unsigned which = 0; which <= NR_COUNTERS; which++) {
		begin(&f, CSW_PHASE_ANY, 1, NR_COUNTERS);
		for (unsigned i = 0; i <= NR_COUNTERS; i++)
			f.values[i] = 10;
		start(&f, 100, 10);
		sample(&f, 150, 10, 1);
		assert_false(f.slicer.is_wrong);
		f.values[which]--;
		sample(&f, 200, 10, 0);
		assert_true(f.slicer.is_wrong);
		assert_int_equal(f.slicer.wrong.what,
				 which ? CSW_READING_COUNTER + which - 1 : CSW_READING_TRIGGER);
		assert_int_equal(f.slicer.wrong.before, f.values[which] + 1);
		assert_int_equal(f.slicer.wrong.now, f.values[which]);
		assert_false(f.slicer.wrong.off);
		csw_slicer_free(&f.slicer);
		csw_aggregation_free(&f.agg);
	}
}

static void test_backwards_at_stop(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_ANY, 1, NR_COUNTERS);
	f.values[0] = 10;
	start(&f, 100, 10);
	f.values[0] = 9;
	stop(&f, 200, 10, 0);
	assert_true(f.slicer.is_wrong);
	assert_int_equal(f.slicer.wrong.what, CSW_READING_TRIGGER);
	assert_int_equal(f.slicer.wrong.before, 10);
	assert_int_equal(f.slicer.wrong.now, 9);
	csw_slicer_free(&f.slicer);
	csw_aggregation_free(&f.agg);
}

static void test_no_such_cpu(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_ANY, 1, NR_COUNTERS);
	for (uint32_t type = CSW_RECORD_NONE; type <= CSW_RECORD_STOP; type++) {
		struct csw_record rec = { .type = type, .cpu = 2, .pid = 10, .tid = 10 };

		assert_int_equal(csw_slicer_record(&f.slicer, &rec), -EINVAL);
		rec.cpu = UINT32_MAX;
		assert_int_equal(csw_slicer_record(&f.slicer, &rec), -EINVAL);
	}
	end(&f);
}

/* Before START and after STOP only names are taken from the records. */
static void test_outside(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_INSIDE, 1, NR_COUNTERS);
	out(&f, 10, 10, 20);
	sample(&f, 11, 20, 5);
	lost(&f, 12, 9);
	put(&f, CSW_RECORD_THROTTLE, 13, -1, -1, 0);
	put(&f, CSW_RECORD_FORK, 20, 30, 10, 0);
	start(&f, 100, 30);
	count(&f, FAULTS, 3);
	stop(&f, 200, 30, 0);
	count(&f, FAULTS, 50);
	out(&f, 210, 30, 20);
	sample(&f, 211, 20, 1);
	stop(&f, 220, 20, 0);
	assert_int_equal(f.agg.nr, CSW_ROWS_FIXED + 1);
	assert_int_equal(thread(&f, 30)->birth_ns, 20);
	assert_int_equal(SUM(thread(&f, 30), FAULTS), 3);
	assert_int_equal(f.slicer.throttles, 0);
	assert_int_equal(done(&f).all, 0);
	end(&f);
}

/* Two CPUs do not know of each other; a thread's row has what it did on both. */
static void test_two_cpus(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	f.cpu = 1;
	start(&f, 100, 20);
	f.cpu = 0;
	count(&f, FAULTS, 3);
	switch_before(&f, 200, 10, 0);
	f.cpu = 1;
	memset(f.values, 0, sizeof(f.values));
	count(&f, FAULTS, 4);
	switch_before(&f, 210, 20, 10);
	count(&f, FAULTS, 5);
	stop(&f, 300, 10, 0);
	f.cpu = 0;
	f.values[0] = 1;
	f.values[1 + FAULTS] = 3;
	stop(&f, 310, 0, 0);
	assert_int_equal(SUM(thread(&f, 10), FAULTS), 8);
	assert_int_equal(SUM(thread(&f, 20), FAULTS), 4);
	assert_int_equal(thread(&f, 10)->oncpu_ns, 190);
	assert_int_equal(fixed(&f, CSW_ROW_IDLE)->oncpu_ns, 110);
	assert_int_equal(done(&f).all, 2);
	end(&f);
}

/* A tick's reading may be dated before the last record: what is not charged then belongs to the
 * next interval. */
static void test_reset_before_the_last_record(void **state)
{
	struct csw_slicer_cpu *cpu;
	uint64_t rows_ns = 0;
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	switch_before(&f, 200, 10, 20);
	put(&f, CSW_RECORD_READ, 150, -1, -1, 0);
	csw_slicer_reset(&f.slicer);
	cpu = &f.slicer.cpus[0];
	assert_int_equal(cpu->start_ns, 200);
	stop(&f, 300, 20, 0);
	for (uint32_t i = 0; i < f.agg.nr; i++)
		rows_ns += csw_aggregation_row(&f.agg, i)->oncpu_ns;
	assert_int_equal(rows_ns, cpu->stop_ns - cpu->start_ns);
	assert_int_equal(thread(&f, 20)->oncpu_ns, 100);
	end(&f);
}

static void put_on(struct fixture *f, unsigned cpu, uint32_t type, uint32_t flags, uint64_t time_ns)
{
	struct csw_record rec = { .type = type, .cpu = cpu, .flags = flags, .time_ns = time_ns };

	rec.nr_values = 1 + f->plan.nr_counters;
	assert_int_equal(csw_slicer_record(&f->slicer, &rec), 0);
}

/* Of what a CPU that went offline reads, only the trigger's count is one. */
static void test_reading_of_the_gone(void **state)
{
	uint64_t totals[2 + NR_COUNTERS];
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	start(&f, 100, 10);
	f.values[1 + FAULTS] = 7;
	switch_before(&f, 200, 10, 20);
	csw_slicer_totals(&f.slicer, totals);
	assert_int_equal(totals[2 + FAULTS], 7);
	for (int i = 0; i < 2; i++) {
		struct csw_record rec = { .type = i ? CSW_RECORD_STOP : CSW_RECORD_READ,
					  .flags = CSW_RECORD_DETACHED,
					  .time_ns = 300,
					  .nr_values = 1,
					  .values = { f.values[0], 1, 1, 1 } };

		assert_int_equal(csw_slicer_record(&f.slicer, &rec), 0);
		assert_false(f.slicer.is_wrong);
		csw_slicer_totals(&f.slicer, totals);
		assert_int_equal(totals[2 + FAULTS], 7);
	}
	assert_int_equal(SUM(thread(&f, 10), FAULTS), 7);
	assert_in_range(thread(&f, 20)->oncpu_ns, 0, 10); /* up to its last record */
	assert_int_equal(done(&f).all, 1);
	end(&f);
}

/* CPUs are read at different moments: the intervals add up all the same. */
static void test_durations_add_up(void **state)
{
	uint64_t sum = 0;
	struct fixture f;
	uint32_t cpus;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	put_on(&f, 0, CSW_RECORD_START, 0, 1000);
	put_on(&f, 1, CSW_RECORD_START, 0, 1300);
	for (uint64_t i = 2; i < 10; i++) {
		put_on(&f, i % 2, CSW_RECORD_READ, 0, 1000 * i);
		put_on(&f, 1 - i % 2, CSW_RECORD_READ, 0, 1000 * i + 400);
		sum += csw_slicer_duration(&f.slicer, &cpus);
		assert_int_equal(sum, 1000 * i + 400 - 1000);
		csw_slicer_reset(&f.slicer);
	}
	csw_slicer_free(&f.slicer);
	csw_aggregation_free(&f.agg);
}

/* A CPU that went offline takes part up to its end, and no longer in the intervals after it. */
static void test_duration_without_the_gone(void **state)
{
	struct fixture f;
	uint32_t cpus;

	(void)state;
	begin(&f, CSW_PHASE_BEFORE, 1, NR_COUNTERS);
	put_on(&f, 0, CSW_RECORD_START, 0, 1000);
	put_on(&f, 1, CSW_RECORD_START, 0, 1010);
	put_on(&f, 0, CSW_RECORD_READ, 0, 2000);
	put_on(&f, 1, CSW_RECORD_READ, 0, 2005);
	assert_int_equal(csw_slicer_duration(&f.slicer, &cpus), 1005);
	csw_slicer_reset(&f.slicer);
	put_on(&f, 0, CSW_RECORD_READ, 0, 3000);
	put_on(&f, 1, CSW_RECORD_READ, CSW_RECORD_DETACHED, 3005);
	assert_int_equal(csw_slicer_duration(&f.slicer, &cpus), 995);
	for (uint64_t second = 4; second < 7; second++) {
		csw_slicer_reset(&f.slicer);
		put_on(&f, 0, CSW_RECORD_READ, 0, second * 1000);
		put_on(&f, 1, CSW_RECORD_READ, CSW_RECORD_DETACHED, second * 1000 + 5);
		assert_int_equal(csw_slicer_duration(&f.slicer, &cpus), 1000);
		assert_int_equal(cpus, 2);
	}
	csw_slicer_free(&f.slicer);
	csw_aggregation_free(&f.agg);
}

/* After a reset the account of samples begins with what was open; it occurred before all the same.
 */
static void test_reset_carries_the_open(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, CSW_PHASE_ANY, 10, NR_COUNTERS);
	start(&f, 100, 10);
	sample(&f, 200, 10, 10);
	f.values[0] += 7;
	put(&f, CSW_RECORD_READ, 250, -1, -1, 0);
	assert_int_equal(done(&f).all, 17);
	assert_int_equal(done(&f).carried, 0);
	csw_slicer_reset(&f.slicer);
	sample(&f, 300, 10, 3);
	stop(&f, 400, 10, 2);
	assert_int_equal(done(&f).all, 12);
	assert_int_equal(done(&f).carried, 7);
	end(&f);
}

/* ---- counters that take turns ---- */

static void begin_turns(struct fixture *f, uint32_t phase, uint64_t sav)
{
	static const struct csw_scope everything;

	begin(f, phase, sav, NR_COUNTERS);
	csw_slicer_free(&f->slicer);
	csw_aggregation_free(&f->agg);
	f->plan.scaled = 1u << FAULTS | 1u << CYCLES;
	assert_int_equal(csw_aggregation_init(&f->agg, NR_COUNTERS, CSW_KEEP_TURNS), 0);
	assert_int_equal(csw_slicer_init(&f->slicer, &f->plan, &everything, &f->agg, 2), 0);
}

static const uint64_t *running_of(struct fixture *f, int32_t tid)
{
	for (uint32_t i = 0; i < f->agg.nr; i++) {
		if (csw_aggregation_row(&f->agg, i)->tid == tid)
			return csw_aggregation_running(&f->agg, i);
	}
	fail_msg("no row of %d", tid);
	return NULL;
}

static void test_turns(void **state)
{
	const uint32_t first = 1u << CLOCK | 1u << FAULTS, second = 1u << CLOCK | 1u << CYCLES;
	uint64_t running[NR_COUNTERS];
	struct fixture f;

	(void)state;
	begin_turns(&f, CSW_PHASE_BEFORE, 1);
	f.on = first;
	start(&f, 100, 10);
	count(&f, FAULTS, 3);
	count(&f, CLOCK, 10);
	put(&f, CSW_RECORD_READ, 110, -1, -1, CSW_RECORD_TURN);
	f.on = 0; /* between two turns nothing counts */
	put(&f, CSW_RECORD_READ, 112, -1, -1, 0);
	f.on = second;
	count(&f, CYCLES, 700);
	count(&f, CLOCK, 18);
	switch_before(&f, 130, 10, 20);
	count(&f, CYCLES, 50);
	stop(&f, 140, 20, 0);
	assert_int_equal(running_of(&f, 10)[FAULTS], 10);
	assert_int_equal(running_of(&f, 10)[CYCLES], 18);
	assert_int_equal(running_of(&f, 10)[CLOCK], 28);
	assert_int_equal(running_of(&f, 20)[FAULTS], 0);
	assert_int_equal(running_of(&f, 20)[CYCLES], 10);
	for (uint32_t i = 0; i < f.agg.nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(&f.agg, i);

		if (row->tid == 20)
			assert_int_equal(row->proven, second);
		if (row->tid == 10) {
			assert_int_equal(row->proven, first | second);
			assert_int_equal(row->cells[FAULTS].sum, 3);
			assert_int_equal(row->cells[CYCLES].sum, 700);
			/* A turn's end cuts the slice: no part of it is whole. */
			assert_true(row->cells[CYCLES].min > row->cells[CYCLES].max);
		}
	}
	csw_slicer_running(&f.slicer, running);
	assert_int_equal(running[FAULTS], 10);
	assert_int_equal(running[CYCLES], 28);
	assert_int_equal(running[CLOCK], 38);
	assert_false(f.slicer.is_wrong);
	csw_slicer_reset(&f.slicer);
	csw_slicer_running(&f.slicer, running);
	assert_int_equal(running[CLOCK], 0);
	end(&f);
}

/* Each turn begins with a whole period: what is left of the one before stays open. Without that the
 * remainders of two turns would look like an overflow that never came. */
static void test_periods_of_turns(void **state)
{
	struct csw_completeness done;
	struct fixture f;

	(void)state;
	begin_turns(&f, CSW_PHASE_ANY, 10);
	f.on = 1;
	start(&f, 100, 10);
	for (uint64_t t = 110; t < 150; t += 10) {
		sample(&f, t, 10, 10);
		f.values[0] += 7;
		put(&f, CSW_RECORD_READ, t + 5, -1, -1, CSW_RECORD_TURN);
	}
	stop(&f, 200, 10, 4);
	csw_slicer_completeness(&f.slicer, &done);
	assert_int_equal(done.all, 4 * 17 + 4);
	assert_int_equal(done.samples, 4);
	assert_int_equal(done.unseen, 0);
	assert_int_equal(done.open, 4 * 7 + 4);
	end(&f);
}

/* A counter that is said to be off and has moved all the same: the source is broken. */
static void test_turn_of_another_counter(void **state)
{
	struct fixture f;

	(void)state;
	begin_turns(&f, CSW_PHASE_BEFORE, 1);
	f.on = 1u << FAULTS;
	start(&f, 100, 10);
	count(&f, CYCLES, 1);
	stop(&f, 110, 10, 0);
	assert_true(f.slicer.is_wrong);
	assert_int_equal(f.slicer.wrong.what, CSW_READING_COUNTER + CYCLES);
	assert_true(f.slicer.wrong.off);
	csw_slicer_free(&f.slicer);
	csw_aggregation_free(&f.agg);
}

/* ---- slices of several owners, by estimate ---- */

static void begin_mixed(struct fixture *f, uint32_t phase, uint64_t sav, uint32_t mixed,
			uint32_t sample_of)
{
	static const struct csw_scope everything;

	begin(f, phase, sav, NR_COUNTERS);
	csw_slicer_free(&f->slicer);
	csw_aggregation_free(&f->agg);
	f->plan.mixed = mixed;
	f->plan.trigger.sample_of = sample_of;
	assert_int_equal(csw_aggregation_init(&f->agg, NR_COUNTERS, CSW_KEEP_SHARES), 0);
	assert_int_equal(csw_slicer_init(&f->slicer, &f->plan, &everything, &f->agg, 2), 0);
}

static uint32_t number_of(const struct fixture *f, const struct csw_agg_row *row)
{
	return (uint32_t)((size_t)((const unsigned char *)row - f->agg.rows) / f->agg.stride);
}

/* What of a row's counter is a share; 1 in *marked: it has any. */
static uint64_t share(const struct fixture *f, const struct csw_agg_row *row, unsigned counter,
		      bool *marked)
{
	const uint64_t *shares = csw_aggregation_shares(&f->agg, number_of(f, row));

	*marked = shares[NR_COUNTERS] >> counter & 1;
	return shares[counter];
}

static void check_share(const struct fixture *f, const struct csw_agg_row *row, unsigned counter,
			uint64_t sum, uint64_t shared)
{
	bool marked;

	assert_int_equal(SUM(row, counter), sum);
	assert_int_equal(share(f, row, counter, &marked), shared);
	assert_true(marked || !shared);
}

/* A switch without a sample, as of a SAV above the events per switch. */
static void unsampled(struct fixture *f, uint64_t t, int32_t prev, int32_t next)
{
	f->values[0]++;
	out(f, t, prev, next);
	in(f, t, next, prev);
}

/* 10 runs for 100 ns and 20 for 200; 10 comes again. */
static void two_share(struct fixture *f, uint32_t mixed)
{
	begin_mixed(f, CSW_PHASE_BEFORE, 2, mixed, CSW_SAMPLE_OF_OUTGOING);
	start(f, 100, 10);
	unsampled(f, 200, 10, 20);
	count(f, FAULTS, 7);
	count(f, CLOCK, 300);
	count(f, CYCLES, 100);
	sample(f, 400, 20, 1);
	out(f, 400, 20, 10);
	in(f, 400, 10, 20);
	count(f, CYCLES, 5);
	stop(f, 450, 10, 0);
}

static void test_split(void **state)
{
	struct fixture f;
	bool marked;

	(void)state;
	two_share(&f, CSW_MIXED_SPLIT);
	/* The remainder is the last one's; clocks are known, and no estimate. */
	check_share(&f, thread(&f, 10), CYCLES, 33 + 5, 33);
	check_share(&f, thread(&f, 20), CYCLES, 67, 67);
	check_share(&f, thread(&f, 10), FAULTS, 2, 2);
	check_share(&f, thread(&f, 20), FAULTS, 5, 5);
	check_share(&f, thread(&f, 10), CLOCK, 100, 0);
	check_share(&f, thread(&f, 20), CLOCK, 200, 0);
	share(&f, thread(&f, 10), CLOCK, &marked);
	assert_false(marked);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_MIXED), CYCLES), 0);
	assert_int_equal(f.slicer.shared_ns, 300);
	assert_int_equal(thread(&f, 10)->exact_ns, 50);
	assert_int_equal(thread(&f, 20)->exact_ns, 0);
	assert_int_equal(thread(&f, 20)->proven, 7);
	assert_true(thread(&f, 20)->cells[CYCLES].min > thread(&f, 20)->cells[CYCLES].max);
	csw_slicer_reset(&f.slicer);
	assert_int_equal(f.slicer.shared_ns, 0);
	assert_int_equal(share(&f, thread(&f, 10), CYCLES, &marked), 0);
	assert_false(marked);
	csw_slicer_free(&f.slicer);
	csw_aggregation_free(&f.agg);
}

static void test_last(void **state)
{
	struct fixture f;
	bool marked;

	(void)state;
	two_share(&f, CSW_MIXED_LAST);
	check_share(&f, thread(&f, 10), CYCLES, 5, 0);
	share(&f, thread(&f, 10), CYCLES, &marked);
	assert_false(marked);
	check_share(&f, thread(&f, 20), CYCLES, 100, 100);
	check_share(&f, thread(&f, 20), FAULTS, 7, 7);
	check_share(&f, thread(&f, 10), CLOCK, 100, 0);
	assert_int_equal(f.slicer.shared_ns, 300);
	assert_int_equal(thread(&f, 20)->exact_ns, 0);
	end(&f);
}

/* Without room for the marks there is no estimate, and by default none either. */
static void test_row_is_no_estimate(void **state)
{
	static const struct csw_scope everything;
	struct fixture f;

	(void)state;
	two_share(&f, CSW_MIXED_ROW);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_MIXED), CYCLES), 100);
	assert_int_equal(f.slicer.shared_ns, 0);
	end(&f);
	begin(&f, CSW_PHASE_BEFORE, 2, NR_COUNTERS);
	csw_slicer_free(&f.slicer);
	f.plan.mixed = CSW_MIXED_SPLIT;
	assert_int_equal(csw_slicer_init(&f.slicer, &f.plan, &everything, &f.agg, 2), 0);
	assert_int_equal(f.slicer.mixed, CSW_MIXED_ROW);
	csw_slicer_free(&f.slicer);
	csw_aggregation_free(&f.agg);
}

/* Whom the sample shows, by the trigger's place in the switch and by whose TID it carries. The
 * threads are 10, then 20; a sample at the switch from 20 to 30, or in the middle of 20's run. */
static void test_last_is_shown(void **state)
{
	static const struct {
		uint32_t phase, sample_of;
		enum { MIDDLE, BETWEEN, BEHIND } place;
		int32_t tid, charged;
	} cases[] = {
		/* the records alone */
		{ CSW_PHASE_ANY, CSW_SAMPLE_OF_EITHER, MIDDLE, 20, 20 },
		{ CSW_PHASE_ANY, CSW_SAMPLE_OF_EITHER, BETWEEN, 30, 20 },
		{ CSW_PHASE_INSIDE, CSW_SAMPLE_OF_EITHER, BETWEEN, 30, 20 },
		{ CSW_PHASE_INSIDE, CSW_SAMPLE_OF_EITHER, BEHIND, 30, 20 },
		/* the outgoing one, be it that the records are ahead; -1: it exits */
		{ CSW_PHASE_ANY, CSW_SAMPLE_OF_OUTGOING, MIDDLE, 10, 10 },
		{ CSW_PHASE_ANY, CSW_SAMPLE_OF_OUTGOING, MIDDLE, 20, 20 },
		{ CSW_PHASE_INSIDE, CSW_SAMPLE_OF_OUTGOING, BETWEEN, -1, 20 },
		{ CSW_PHASE_INSIDE, CSW_SAMPLE_OF_OUTGOING, BETWEEN, 77, 20 },
		/* the incoming one has taken the other's place already, or is still to come */
		{ CSW_PHASE_ANY, CSW_SAMPLE_OF_INCOMING, MIDDLE, 20, 10 },
		{ CSW_PHASE_ANY, CSW_SAMPLE_OF_INCOMING, MIDDLE, 30, 20 },
		{ CSW_PHASE_ANY, CSW_SAMPLE_OF_INCOMING, BETWEEN, 30, 20 },
		{ CSW_PHASE_INSIDE, CSW_SAMPLE_OF_INCOMING, BETWEEN, 30, 20 },
		{ CSW_PHASE_INSIDE, CSW_SAMPLE_OF_INCOMING, BEHIND, 30, 20 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;

		begin_mixed(&f, cases[i].phase, 2, CSW_MIXED_LAST, cases[i].sample_of);
		start(&f, 100, 10);
		unsampled(&f, 200, 10, 20);
		count(&f, CYCLES, 100);
		if (cases[i].place != MIDDLE)
			out(&f, 300, 20, 30);
		if (cases[i].place == BEHIND)
			in(&f, 301, 30, 20);
		sample(&f, 302, cases[i].tid, 1);
		if (cases[i].place == BETWEEN)
			in(&f, 303, 30, 20);
		stop(&f, 400, cases[i].place == MIDDLE ? 20 : 30, 0);
		if (SUM(thread(&f, cases[i].charged), CYCLES) != 100)
			fail_msg("case %zu", i);
		end(&f);
	}
}

/* A reading has no sample: whoever runs then is the last one. */
static void test_last_at_a_reading(void **state)
{
	struct fixture f;

	(void)state;
	begin_mixed(&f, CSW_PHASE_INSIDE, 3, CSW_MIXED_LAST, CSW_SAMPLE_OF_INCOMING);
	start(&f, 100, 10);
	unsampled(&f, 200, 10, 20);
	count(&f, CYCLES, 100);
	put(&f, CSW_RECORD_READ, 300, -1, -1, 0);
	count(&f, CYCLES, 7);
	unsampled(&f, 350, 20, 10);
	stop(&f, 400, 10, 0);
	check_share(&f, thread(&f, 20), CYCLES, 100, 100);
	check_share(&f, thread(&f, 10), CYCLES, 7, 7);
	end(&f);
}

/* Idle beside one thread: what cannot happen in idle is proven. The rest is the thread's by time,
 * as idle is no time on a CPU, and the last one's where that is asked for. */
static void test_estimates_beside_idle(void **state)
{
	(void)state;
	for (uint32_t mixed = CSW_MIXED_LAST; mixed <= CSW_MIXED_SPLIT; mixed++) {
		const bool split = mixed == CSW_MIXED_SPLIT;
		struct fixture f;

		begin_mixed(&f, CSW_PHASE_BEFORE, 2, mixed, CSW_SAMPLE_OF_OUTGOING);
		start(&f, 100, 10);
		unsampled(&f, 200, 10, 0);
		count(&f, FAULTS, 7);
		count(&f, CYCLES, 100);
		sample(&f, 1000, 0, 1);
		out(&f, 1000, 0, 10);
		in(&f, 1000, 10, 0);
		stop(&f, 1100, 10, 0);
		check_share(&f, thread(&f, 10), FAULTS, 7, 0);
		check_share(&f, thread(&f, 10), CYCLES, split ? 100 : 0, split ? 100 : 0);
		check_share(&f, fixed(&f, CSW_ROW_IDLE), CYCLES, split ? 0 : 100, split ? 0 : 100);
		assert_int_equal(f.slicer.shared_ns, 100);
		end(&f);
	}
}

/* Two threads and idle, which came last: it cannot have had the page faults. */
static void test_idle_is_last(void **state)
{
	struct fixture f;

	(void)state;
	begin_mixed(&f, CSW_PHASE_BEFORE, 3, CSW_MIXED_LAST, CSW_SAMPLE_OF_OUTGOING);
	start(&f, 100, 10);
	unsampled(&f, 200, 10, 20);
	unsampled(&f, 300, 20, 0);
	count(&f, FAULTS, 7);
	count(&f, CYCLES, 100);
	sample(&f, 400, 0, 1);
	out(&f, 400, 0, 10);
	in(&f, 400, 10, 0);
	stop(&f, 500, 10, 0);
	check_share(&f, fixed(&f, CSW_ROW_IDLE), CYCLES, 100, 100);
	check_share(&f, fixed(&f, CSW_ROW_IDLE), FAULTS, 0, 0);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_MIXED), FAULTS), 7);
	end(&f);
}

/* Who ran in between nobody knows; or records are lost: no estimate. */
static void test_no_estimate_without_owners(void **state)
{
	(void)state;
	for (uint32_t mixed = CSW_MIXED_LAST; mixed <= CSW_MIXED_SPLIT; mixed++) {
		struct fixture f;

		begin_mixed(&f, CSW_PHASE_BEFORE, 1, mixed, CSW_SAMPLE_OF_OUTGOING);
		start(&f, 100, 10);
		count(&f, CYCLES, 100);
		in(&f, 200, 30, 20); /* from 20, which was not seen coming */
		sample(&f, 300, 30, 2);
		out(&f, 300, 30, 10);
		in(&f, 300, 10, 30);
		lost(&f, 400, 3);
		count(&f, CYCLES, 50);
		switch_before(&f, 500, 10, 20);
		stop(&f, 600, 20, 0);
		assert_int_equal(SUM(fixed(&f, CSW_ROW_MIXED), CYCLES), 100);
		assert_int_equal(SUM(fixed(&f, CSW_ROW_LOST), CYCLES), 50);
		assert_int_equal(f.slicer.shared_ns, 0);
		end(&f);
	}
}

/* More owners than are told apart: their times are not known, but the last one is. */
static void test_estimates_of_many_owners(void **state)
{
	(void)state;
	for (uint32_t mixed = CSW_MIXED_LAST; mixed <= CSW_MIXED_SPLIT; mixed++) {
		const bool split = mixed == CSW_MIXED_SPLIT;
		struct fixture f;
		int32_t tid = 10;

		begin_mixed(&f, CSW_PHASE_BEFORE, 10, mixed, CSW_SAMPLE_OF_OUTGOING);
		start(&f, 100, 10);
		for (; tid < 100; tid += 10)
			unsampled(&f, 100 + 10 * (uint64_t)tid, tid, tid + 10);
		count(&f, CYCLES, 77);
		count(&f, CLOCK, 9);
		sample(&f, 1200, 100, 1);
		stop(&f, 1200, 100, 0);
		check_share(&f, thread(&f, 100), CYCLES, split ? 0 : 77, split ? 0 : 77);
		assert_int_equal(SUM(fixed(&f, CSW_ROW_MIXED), CYCLES), split ? 77 : 0);
		assert_int_equal(SUM(fixed(&f, CSW_ROW_MIXED), CLOCK), 9);
		assert_int_equal(f.slicer.shared_ns, split ? 0 : 1100);
		end(&f);
	}
}

/* Times of a broken recording whose sum is 0: nothing is divided by it. */
static void test_split_without_time(void **state)
{
	struct fixture f;

	(void)state;
	begin_mixed(&f, CSW_PHASE_BEFORE, 2, CSW_MIXED_SPLIT, CSW_SAMPLE_OF_OUTGOING);
	start(&f, 100, 10);
	unsampled(&f, 100, 10, 20);
	count(&f, CYCLES, 5);
	sample(&f, 100, 20, 1);
	stop(&f, 100, 20, 0);
	assert_int_equal(SUM(fixed(&f, CSW_ROW_MIXED), CYCLES), 5);
	csw_slicer_free(&f.slicer);
	csw_aggregation_free(&f.agg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reset_before_the_last_record),
		cmocka_unit_test(test_duration_without_the_gone),
		cmocka_unit_test(test_durations_add_up),
		cmocka_unit_test(test_reading_of_the_gone),
		cmocka_unit_test(test_reset_carries_the_open),
		cmocka_unit_test(test_before),
		cmocka_unit_test(test_written_twice),
		cmocka_unit_test(test_inside),
		cmocka_unit_test(test_any),
		cmocka_unit_test(test_start_unknown),
		cmocka_unit_test(test_exiting_thread),
		cmocka_unit_test(test_dead_is_named),
		cmocka_unit_test(test_exit_blocks_and_returns),
		cmocka_unit_test(test_tid_reused_within_the_switch),
		cmocka_unit_test(test_leader_leaves_to_sibling),
		cmocka_unit_test(test_out_of_another),
		cmocka_unit_test(test_in_without_out),
		cmocka_unit_test(test_in_without_out_before),
		cmocka_unit_test(test_in_with_another_prev),
		cmocka_unit_test(test_out_and_in_disagree),
		cmocka_unit_test(test_contradiction_is_over),
		cmocka_unit_test(test_in_of_another_than_announced),
		cmocka_unit_test(test_in_of_the_owner),
		cmocka_unit_test(test_in_after_unseen_exit),
		cmocka_unit_test(test_own_switch_missing),
		cmocka_unit_test(test_own_switch_missing_at_stop),
		cmocka_unit_test(test_foreign_hint),
		cmocka_unit_test(test_gap_forgets_own_switch),
		cmocka_unit_test(test_hint_denies),
		cmocka_unit_test(test_hint_of_the_left_denies),
		cmocka_unit_test(test_hint_inside),
		cmocka_unit_test(test_trigger_proves_unseen),
		cmocka_unit_test(test_trigger_proves_unseen_inside),
		cmocka_unit_test(test_idled),
		cmocka_unit_test(test_idled_thread_first),
		cmocka_unit_test(test_mixed_clock),
		cmocka_unit_test(test_mixed_no_time),
		cmocka_unit_test(test_mixed_huge),
		cmocka_unit_test(test_mixed_of_one_process),
		cmocka_unit_test(test_many_owners),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_lost_then_in),
		cmocka_unit_test(test_tail_lost),
		cmocka_unit_test(test_throttled),
		cmocka_unit_test(test_open_remainder),
		cmocka_unit_test(test_open_skid),
		cmocka_unit_test(test_open_taken_back),
		cmocka_unit_test(test_backwards),
		cmocka_unit_test(test_backwards_at_stop),
		cmocka_unit_test(test_no_such_cpu),
		cmocka_unit_test(test_outside),
		cmocka_unit_test(test_two_cpus),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_periods_of_turns),
		cmocka_unit_test(test_turn_of_another_counter),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_last),
		cmocka_unit_test(test_row_is_no_estimate),
		cmocka_unit_test(test_last_is_shown),
		cmocka_unit_test(test_last_at_a_reading),
		cmocka_unit_test(test_estimates_beside_idle),
		cmocka_unit_test(test_idle_is_last),
		cmocka_unit_test(test_no_estimate_without_owners),
		cmocka_unit_test(test_estimates_of_many_owners),
		cmocka_unit_test(test_split_without_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
