/*
 * The engine against the simulated machine's truth. This is the program that every mutant of the
 * rules must fail, so each rule has a run here in which breaking it gives somebody a wrong number.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "csw/csw.h"
#include "tests/truth_sim.h"

#define EVENTS "LLC_MISSES,instructions,page-faults,task-clock"
#define LLC 0
#define FAULTS 2
#define CLOCK 3

/* A sample of `switch` is taken a few us before SWITCH_OUT, from which the truth counts. */
#define SWITCH_NS 8000
#define HOUR_NS 3600000000000ULL

static void equal_by_seg_load(void **state)
{
	struct sim_run run = { .ticks = false };

	(void)state;
	sim_run_all(&run, "seg_load", EVENTS, 1, "seed=1");
	sim_run_check_sums(&run);
	sim_run_check_equal(&run, 0);
	assert_int_equal(run.done.all, run.done.samples);
	assert_int_equal(run.slicer.owner_disagreements, 0);
	sim_run_free(&run);
}

static void equal_by_switch(void **state)
{
	struct sim_run run = { .ticks = false };

	(void)state;
	sim_run_all(&run, "switch", EVENTS, 1, "seed=2");
	sim_run_check_sums(&run);
	sim_run_check_equal(&run, SWITCH_NS);
	assert_int_equal(run.done.all, run.done.samples);
	assert_int_equal(run.slicer.owner_disagreements, 0);
	sim_run_free(&run);
}

/* A late interrupt shows the incoming thread: the sample's TID must not decide. */
static void skid_changes_nothing(void **state)
{
	struct sim_run run = { .ticks = false };

	(void)state;
	sim_run_all(&run, "seg_load", EVENTS, 1, "seed=3,skid=1");
	sim_run_check_sums(&run);
	sim_run_check_equal(&run, 0);
	sim_run_free(&run);
}

/* TIDs that come round again, threads that live shorter than a millisecond, threads that block on
 * their way out, and execs from other threads than the leader, some of which are switched out
 * before they have their new name. */
static void reused_tids_stay_apart(void **state)
{
	struct sim_run run = { .ticks = false };
	const char *trigger = *state;

	sim_run_all(&run, trigger, EVENTS, 1,
		    "seed=4,pid_max=512,churn=500,threads=60,duration_ms=2000");
	sim_run_check_sums(&run);
	sim_run_check_equal(&run, strcmp(trigger, "switch") ? 0 : SWITCH_NS);
	assert_true(csw_sim_truths(run.drv) > 1024);
	assert_int_equal(run.done.all, run.done.samples);
	assert_int_equal(run.slicer.unseen_switches, 0);
	assert_int_equal(run.slicer.owner_disagreements, 0);
	sim_run_free(&run);
}

static void counters_wrap(void **state)
{
	struct csw_sim_cpu_truth cpu;
	struct sim_run run = { .ticks = false };
	uint64_t wraps = 0;

	(void)state;
	sim_run_all(&run, "seg_load", EVENTS, 1, "seed=5,cpus=8");
	for (unsigned i = 0; i < 8; i++) {
		csw_sim_cpu_truth_get(run.drv, i, &cpu);
		wraps += cpu.wraps;
		assert_int_equal(run.slicer.cpus[i].state.trigger -
					 run.slicer.cpus[i].start_trigger,
				 cpu.triggers);
	}
	assert_true(wraps > 0);
	sim_run_check_sums(&run);
	sim_run_check_equal(&run, 0);
	sim_run_free(&run);
}

/* Two switches per sample: nobody can be charged alone, but the times are still known. */
static void sav_2_mixes_and_says_so(void **state)
{
	struct csw_sim_truth truth;
	struct sim_run run = { .ticks = false };
	uint64_t mixed;

	(void)state;
	sim_run_all(&run, "seg_load", EVENTS, 2, "seed=6");
	sim_run_check_sums(&run);
	sim_run_check_never_more(&run, SWITCH_NS);
	for (size_t i = 0; i < csw_sim_truths(run.drv); i++) {
		const struct csw_agg_row *row;

		csw_sim_truth_get(run.drv, i, &truth);
		row = sim_run_row(&run, &truth);
		if (!row) {
			assert_int_equal(truth.oncpu_ns, 0);
			continue;
		}
		assert_int_equal(row->oncpu_ns, truth.oncpu_ns);
		assert_int_equal(row->slices, truth.slices);
	}
	mixed = sim_run_kind_sum(&run, CSW_KIND_MIXED, LLC);
	assert_true(mixed > run.totals[2 + LLC] / 4);
	assert_true(run.done.unseen == 0 && run.done.lost == 0);
	sim_run_free(&run);
}

/* ---- slices of several owners, by estimate ---- */

struct off {
	double relative; /* how far all rows together are from the truth, by what there is in all */
	uint64_t more;   /* rows that have more than their truth */
};

static struct off distance_from_truth(const struct sim_run *run, unsigned counter)
{
	struct off off = { 0, 0 };
	uint64_t apart = 0;

	for (size_t i = 0; i < csw_sim_truths(run->drv); i++) {
		struct csw_sim_truth truth;
		const struct csw_agg_row *row;
		uint64_t has, should;

		csw_sim_truth_get(run->drv, i, &truth);
		row = sim_run_row(run, &truth);
		has = row ? row->cells[counter].sum : 0;
		should = truth.counts[counter];
		apart += has > should ? has - should : should - has;
		off.more += has > should;
	}
	off.relative = (double)apart / (double)run->totals[2 + counter];
	return off;
}

static uint64_t shares_of(const struct sim_run *run, unsigned counter)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < run->agg.nr; i++) {
		const uint64_t *shares = csw_aggregation_shares(&run->agg, i);

		assert_true(shares[counter] <=
			    csw_aggregation_row(&run->agg, i)->cells[counter].sum);
		assert_true(!shares[counter] || (shares[run->agg.nr_counters] >> counter & 1));
		sum += shares[counter];
	}
	return sum;
}

/* An estimate changes nothing of what is known: not the rows' times, slices and clocks, not what is
 * exact, and nobody has less than what is proven. What is estimated is what was nobody's. */
static void check_only_mixed_moved(const struct sim_run *plain, const struct sim_run *guessed)
{
	for (uint32_t i = 0; i < plain->agg.nr; i++) {
		const struct csw_agg_row *a = csw_aggregation_row(&plain->agg, i);
		const struct csw_agg_row *b = csw_aggregation_row(&guessed->agg, i);
		const uint64_t *shares = csw_aggregation_shares(&guessed->agg, i);

		assert_int_equal(a->tid, b->tid);
		assert_int_equal(a->oncpu_ns, b->oncpu_ns);
		assert_int_equal(a->slices, b->slices);
		assert_int_equal(a->exact_ns, b->exact_ns);
		assert_int_equal(a->cells[CLOCK].sum, b->cells[CLOCK].sum);
		for (unsigned c = 0; c < plain->plan.nr_counters; c++) {
			if (a->kind == CSW_KIND_MIXED)
				assert_true(b->cells[c].sum <= a->cells[c].sum);
			else
				assert_int_equal(b->cells[c].sum, a->cells[c].sum + shares[c]);
		}
	}
	for (unsigned c = 0; c < plain->plan.nr_counters; c++)
		assert_int_equal(sim_run_kind_sum(plain, CSW_KIND_MIXED, c),
				 sim_run_kind_sum(guessed, CSW_KIND_MIXED, c) +
					 shares_of(guessed, c));
	assert_int_equal(sim_run_kind_sum(plain, CSW_KIND_LOST, LLC),
			 sim_run_kind_sum(guessed, CSW_KIND_LOST, LLC));
	assert_int_equal(sim_run_kind_sum(plain, CSW_KIND_UNKNOWN, LLC),
			 sim_run_kind_sum(guessed, CSW_KIND_UNKNOWN, LLC));
	assert_int_equal(sim_run_kind_sum(guessed, CSW_KIND_IDLE, FAULTS), 0);
}

/* A SAV above the events per switch, in three ways; the fourth counter is a clock. */
struct mixing {
	const char *trigger, *options;
	uint64_t sav;
};

static void run_in_three_ways(struct sim_run runs[3], const struct mixing *m)
{
	for (uint32_t mixed = CSW_MIXED_ROW; mixed <= CSW_MIXED_SPLIT; mixed++) {
		runs[mixed] = (struct sim_run){ .mixed = mixed };
		sim_run_all(&runs[mixed], m->trigger, EVENTS, m->sav, m->options);
		sim_run_check_sums(&runs[mixed]);
	}
	check_only_mixed_moved(&runs[CSW_MIXED_ROW], &runs[CSW_MIXED_LAST]);
	check_only_mixed_moved(&runs[CSW_MIXED_ROW], &runs[CSW_MIXED_SPLIT]);
}

/* All owners are known: nothing that can be estimated is left to nobody, and time is the better
 * measure than who came last. */
static void mixed_slices_are_estimated(void **state)
{
	static const struct mixing all[] = {
		{ "seg_load", "seed=6,duration_ms=2000", 2 },
		{ "seg_load", "seed=6,skid=1,duration_ms=2000", 2 },
		{ "switch", "seed=6,duration_ms=2000", 3 },
		{ "tid_change", "seed=6,model=arm64,duration_ms=2000", 2 },
		{ "seg_load", "seed=17,spurious=700,duration_ms=2000", 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct sim_run runs[3];
		struct off last, split;

		run_in_three_ways(runs, &all[i]);
		assert_int_equal(sim_run_kind_sum(&runs[CSW_MIXED_SPLIT], CSW_KIND_MIXED, LLC), 0);
		assert_int_equal(sim_run_kind_sum(&runs[CSW_MIXED_SPLIT], CSW_KIND_MIXED, FAULTS),
				 0);
		assert_int_equal(sim_run_kind_sum(&runs[CSW_MIXED_LAST], CSW_KIND_MIXED, LLC), 0);
		last = distance_from_truth(&runs[CSW_MIXED_LAST], LLC);
		split = distance_from_truth(&runs[CSW_MIXED_SPLIT], LLC);
		printf("mixed, %s, sav %" PRIu64
		       ": LLC_MISSES by last %.2f %%, by split %.2f %% off\n",
		       all[i].trigger, all[i].sav, 100 * last.relative, 100 * split.relative);
		assert_true(split.relative < last.relative / 2);
		assert_true(last.more > 0 && split.more > 0);
		assert_true(distance_from_truth(&runs[CSW_MIXED_SPLIT], FAULTS).relative <
			    distance_from_truth(&runs[CSW_MIXED_LAST], FAULTS).relative);
		for (unsigned k = 0; k < 3; k++)
			sim_run_free(&runs[k]);
	}
}

/* Where somebody unknown ran, or records are lost, there is nothing to estimate from; ticks, turns
 * and intervals go with it. */
static void what_nobody_knows_is_not_estimated(void **state)
{
	static const struct mixing all[] = {
		{ "seg_load", "seed=42,vanish=100,duration_ms=2000", 1 },
		{ "switch", "seed=44,vanish=200,duration_ms=2000", 2 },
		{ "seg_load", "seed=9,ring=256,stall_ms=200", 2 },
		{ "switch", "seed=7,blind_idle=1,threads=12", 1 },
		{ "seg_load", "pmc=2,seed=23,duration_ms=2000", 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct sim_run runs[3];
		bool unknown = strstr(all[i].options, "vanish");

		run_in_three_ways(runs, &all[i]);
		assert_true(shares_of(&runs[CSW_MIXED_SPLIT], LLC) > 0);
		if (unknown)
			assert_true(sim_run_kind_sum(&runs[CSW_MIXED_SPLIT], CSW_KIND_MIXED, LLC) >
				    0);
		for (unsigned k = 0; k < 3; k++)
			sim_run_free(&runs[k]);
	}
}

/* A watchpoint on who runs is there on some models only. */
static const char *model_of(const char *trigger)
{
	return strcmp(trigger, "tid_change") ? "" : ",model=intel";
}

/* Which of idle's two samples is missing depends on whom the trigger's sample shows. */
static const struct blind {
	const char *trigger, *options;
} blind_triggers[] = {
	{ "switch", "seed=7,blind_idle=1,threads=12" },
	{ "seg_load", "seed=7,blind_idle=1,threads=12" },
	{ "tid_change", "seed=7,blind_idle=1,threads=12,model=intel" },
};

/* An idle task that leaves no records: its time is cut out, and what cannot happen in idle is still
 * exact. */
static void blind_idle_is_noticed(void **state)
{
	struct csw_sim_truth truth;
	struct sim_run run = { .ticks = false };
	const struct blind *blind = *state;

	sim_run_all(&run, blind->trigger, EVENTS, 1, blind->options);
	sim_run_check_sums(&run);
	sim_run_check_never_more(&run, SWITCH_NS);
	assert_true(run.done.unseen > 100);
	assert_true(run.slicer.unseen_switches >= run.done.unseen);
	for (size_t i = 0; i < csw_sim_truths(run.drv); i++) {
		const struct csw_agg_row *row;
		uint64_t slack;

		csw_sim_truth_get(run.drv, i, &truth);
		row = sim_run_row(&run, &truth);
		if (!row)
			continue;
		slack = SWITCH_NS * (truth.slices + 1);
		assert_int_equal(row->cells[FAULTS].sum, truth.counts[FAULTS]);
		assert_in_range(row->oncpu_ns + slack, truth.oncpu_ns, truth.oncpu_ns + 2 * slack);
		assert_in_range(row->cells[CLOCK].sum + slack, truth.counts[CLOCK],
				truth.counts[CLOCK] + 2 * slack);
	}
	/* What idle may have caused as well is nobody's. */
	assert_true(sim_run_kind_sum(&run, CSW_KIND_MIXED, LLC) > 0);
	assert_int_equal(sim_run_kind_sum(&run, CSW_KIND_MIXED, FAULTS), 0);
	sim_run_free(&run);
}

/* Records that vanish without a word: the counts of such stretches are in no thread's row. Times
 * are what the records that are left say. Which of them it takes to be wrong is rare: so three
 * machines. */
static void vanished_records_are_noticed(void **state)
{
	static const char *const machines[] = {
		"seed=42,vanish=100,duration_ms=2000", "seed=44,vanish=100,duration_ms=2000",
		"seed=49,vanish=100,duration_ms=2000",
		"seed=10,vanish=50,blind_idle=0,duration_ms=10000"
	};
	const char *trigger = *state;
	char options[96];

	for (unsigned i = 0; i < sizeof(machines) / sizeof(*machines); i++) {
		struct sim_run run = { .ticks = false };

		snprintf(options, sizeof(options), "%s%s", machines[i], model_of(trigger));
		sim_run_all(&run, trigger, EVENTS, 1, options);
		sim_run_check_sums(&run);
		sim_run_check_never_more(&run, HOUR_NS);
		assert_true(run.done.unseen > 0);
		assert_int_equal(run.done.lost, 0);
		assert_true(sim_run_kind_sum(&run, CSW_KIND_MIXED, LLC) > 0);
		sim_run_free(&run);
	}
}

/* A clock runs as long as its thread does: what is shared of it is never more than the time. */
static void check_clock_within_time(const struct sim_run *run)
{
	for (uint32_t i = CSW_ROWS_FIXED; i < run->agg.nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(&run->agg, i);

		if (row->kind != CSW_KIND_MIXED)
			assert_in_range(row->cells[CLOCK].sum, 0,
					row->oncpu_ns + SWITCH_NS * (row->slices + 1));
	}
}

/* However many records are missing, the trigger's count shows every switch of which nothing is
 * known: times may be wrong then, but nobody gets another's counts. */
static void counts_are_proven(void **state)
{
	struct sim_run run = { .ticks = false };
	const char *trigger = *state;
	char options[96];

	for (unsigned i = 0; i < 8; i++) {
		snprintf(options, sizeof(options), "seed=%u,vanish=%u,duration_ms=2000%s%s", i,
			 50 + 100 * i, i % 2 ? ",blind_idle=0" : "", model_of(trigger));
		sim_run_all(&run, trigger, EVENTS, 1, options);
		sim_run_check_sums(&run);
		sim_run_check_never_more(&run, HOUR_NS);
		check_clock_within_time(&run);
		sim_run_free(&run);
	}
}

/* A reader that stopped: what did not fit is lost, and nobody gets it. */
static void overflow_is_lost(void **state)
{
	struct sim_run run = { .ticks = false };
	const char *trigger = *state;

	sim_run_all(&run, trigger, EVENTS, 1, "seed=9,ring=256,stall_ms=200");
	sim_run_check_sums(&run);
	sim_run_check_never_more(&run, SWITCH_NS);
	assert_true(run.done.lost > 100);
	assert_int_equal(run.done.unseen, 0);
	assert_true(sim_run_kind_sum(&run, CSW_KIND_LOST, LLC) > 0);
	sim_run_free(&run);
}

/* A reader that never came back: no LOST record tells of the tail, the kernel's own count does. */
static void lost_tail_is_lost(void **state)
{
	struct sim_run run = { .ticks = false };

	(void)state;
	sim_run_all(&run, "switch", EVENTS, 1, "seed=10,ring=64,stall_ms=900,duration_ms=1000");
	sim_run_check_sums(&run);
	sim_run_check_never_more(&run, SWITCH_NS);
	assert_true(run.done.lost > 100);
	assert_int_equal(run.done.unseen, 0);
	sim_run_free(&run);
}

/* A stopped trigger of the hardware counts nothing: what it missed is in no account. The kernel's
 * own goes on and only keeps silent. Either way nobody can tell whose the stretch is. */
static void throttling_is_lost(void **state)
{
	struct sim_run run = { .ticks = false };
	const char *trigger = *state;
	bool software = !strcmp(trigger, "switch");
	uint64_t switches = 0, counted = 0;

	sim_run_all(&run, trigger, EVENTS, 1, "seed=11,throttle=20");
	sim_run_check_sums(&run);
	sim_run_check_never_more(&run, SWITCH_NS);
	assert_true(run.slicer.throttles > 10);
	for (unsigned i = 0; i < run.slicer.nr_cpus; i++) {
		struct csw_sim_cpu_truth cpu;

		csw_sim_cpu_truth_get(run.drv, i, &cpu);
		switches += cpu.switches;
		counted += cpu.triggers;
	}
	assert_int_equal(run.done.all, counted);
	assert_int_equal(run.done.all, run.done.samples + run.done.throttled);
	assert_int_equal(run.done.throttled > 100, software);
	assert_int_equal(switches > counted + 100, !software);
	assert_true(sim_run_kind_sum(&run, CSW_KIND_LOST, LLC) > 0);
	assert_int_equal(sim_run_kind_sum(&run, CSW_KIND_MIXED, LLC), 0);
	assert_int_equal(sim_run_kind_sum(&run, CSW_KIND_UNKNOWN, LLC), 0);
	sim_run_free(&run);
}

/* Two samples per switch: between them nobody ran, and that is no slice of anybody's. */
static void doubled_samples_change_nothing(void **state)
{
	struct sim_run doubled = { .ticks = false }, single = { .ticks = false };

	(void)state;
	sim_run_all(&doubled, "seg_load", EVENTS, 1, "seed=15,model=amd");
	sim_run_check_sums(&doubled);
	sim_run_check_equal(&doubled, 0);
	sim_run_all(&single, "seg_load", EVENTS, 2, "seed=15,model=amd");
	sim_run_check_equal(&single, 0);
	assert_int_equal(doubled.done.samples, 2 * single.done.samples);
	sim_run_check_same_machine(&doubled, &single);
	sim_run_check_same_table(&doubled, &single);
	sim_run_free(&doubled);
	sim_run_free(&single);
}

/* Samples in the middle of a run are of the thread that runs. */
static void spurious_samples_change_nothing(void **state)
{
	struct sim_run run = { .ticks = false }, plain = { .ticks = false };

	(void)state;
	sim_run_all(&run, "seg_load", EVENTS, 1, "seed=16,spurious=700");
	sim_run_check_sums(&run);
	sim_run_check_equal(&run, 0);
	sim_run_all(&plain, "seg_load", EVENTS, 1, "seed=16");
	assert_true(run.done.samples > plain.done.samples * 3 / 2);
	sim_run_check_same_machine(&run, &plain);
	sim_run_free(&plain);
	sim_run_free(&run);
}

/* With two per sample they hide a switch now and then: such a slice has two owners. */
static void spurious_samples_mix_and_say_so(void **state)
{
	static const char *const options[] = { "seed=17,spurious=700",
					       "seed=17,spurious=700,skid=1",
					       "seed=17,spurious=700,ring=256,stall_ms=200" };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct sim_run run = { .ticks = false };

		sim_run_all(&run, "seg_load", EVENTS, 2, options[i]);
		sim_run_check_sums(&run);
		sim_run_check_never_more(&run, SWITCH_NS);
		assert_true(sim_run_kind_sum(&run, CSW_KIND_MIXED, LLC) > 0);
		sim_run_free(&run);
	}
}

/* A late sample of such a trigger may hold some of the thread that came: it is mixed, not
 * anybody's.
 */
static void spurious_skid_is_no_guess(void **state)
{
	struct sim_run run = { .ticks = false };

	(void)state;
	sim_run_all(&run, "seg_load", EVENTS, 1, "seed=18,spurious=300,skid=1");
	sim_run_check_sums(&run);
	sim_run_check_never_more(&run, SWITCH_NS);
	assert_int_equal(run.done.all, run.done.samples);
	sim_run_free(&run);
}

/* What switches cause can be counted beside being the trigger. */
static void what_switches_cause_is_counted(void **state)
{
	static const struct {
		const char *trigger, *events, *options;
		uint64_t sav, slack_ns;
	} cases[] = {
		{ "seg_load", "seg_load,tlb_flush,tid_change,mem_load:current_task",
		  "seed=19,model=amd,spurious=100", 1, 0 },
		{ "seg_load", "seg_load,tlb_flush,context-switches", "seed=20,model=amd", 2, 0 },
		{ "desc_load", "desc_load,ldt_load,seg_load", "seed=21,model=p5", 1, 0 },
		{ "tid_change", "pid_change,tid_change", "seed=22,model=arm64,reset=1", 1, 0 },
		{ "switch", "tlb_flush,context-switches", "seed=23,model=intel,spurious=50", 1,
		  SWITCH_NS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sim_run run = { .ticks = false };

		sim_run_all(&run, cases[i].trigger, cases[i].events, cases[i].sav,
			    cases[i].options);
		sim_run_check_sums(&run);
		sim_run_check_equal(&run, cases[i].slack_ns);
		for (unsigned c = 0; c < run.plan.nr_counters; c++)
			assert_true(run.totals[2 + c] > 1000);
		sim_run_free(&run);
	}
}

/* Whatever is counted, and however it is read, the machine lives the same life. */
static void the_machine_does_not_see_the_trigger(void **state)
{
	static const struct {
		const char *trigger, *options;
		uint64_t sav;
	} others[] = {
		{ "seg_load", "seed=24,model=amd,skid=1", 2 },
		{ "desc_load", "seed=24,model=p5,spurious=400", 1 },
		{ "desc_load", "seed=24,model=p5,reset=1", 2 },
		{ "tlb_flush", "seed=24,model=intel,throttle=10", 1 },
		{ "pid_change", "seed=24,model=arm64,ldt=0", 1 },
	};
	struct sim_run first = { .ticks = false };

	(void)state;
	sim_run_all(&first, "switch", "LLC_MISSES,instructions,page-faults", 1, "seed=24");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct sim_run run = { .ticks = i % 2 };

		sim_run_all(&run, others[i].trigger, "LLC_MISSES,instructions,page-faults",
			    others[i].sav, others[i].options);
		sim_run_check_same_machine(&first, &run);
		sim_run_free(&run);
	}
	sim_run_free(&first);
}

/* Min and max are those of whole slices, and the enabled time of all rows is that of the counters.
 */
static void whole_slices_and_times(void **state)
{
	struct sim_run run = { .ticks = false };
	uint64_t enabled = 0, running = 0;

	(void)state;
	sim_run_all(&run, "seg_load", EVENTS, 1, "seed=12");
	for (uint32_t i = 0; i < run.agg.nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(&run.agg, i);

		enabled += row->enabled_ns;
		running += row->running_ns;
		for (unsigned c = 0; c < run.plan.nr_counters; c++) {
			if (row->cells[c].min > row->cells[c].max)
				continue;
			assert_true(row->cells[c].max <= row->cells[c].sum);
			/* Not all of its slices need be whole: counting begins and ends within
			 * some. */
			assert_true(row->cells[c].min * (row->slices ? row->slices - 1 : 0) <=
				    row->cells[c].sum);
		}
		if (row->kind == CSW_KIND_THREAD)
			assert_int_equal(row->exact_ns, row->oncpu_ns);
	}
	assert_int_equal(enabled, run.totals[0]);
	assert_int_equal(running, run.totals[1]);
	sim_run_free(&run);
}

/* Reading the counters in between cuts slices and changes nobody's sums. */
static void ticks_change_nothing(void **state)
{
	static const char *const triggers[] = { "seg_load", "switch" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct sim_run run = { .ticks = true };

		sim_run_all(&run, triggers[i], EVENTS, 1, "seed=13,ring=64");
		sim_run_check_sums(&run);
		sim_run_check_equal(&run, i ? SWITCH_NS : 0);
		assert_int_equal(run.done.all, run.done.samples);
		sim_run_free(&run);
	}
}

/* What one interval says of one thread. */
struct part {
	int32_t pid; /* with the birth: an exec may change the TID */
	uint64_t birth_ns, slices, oncpu_ns, count;
};

struct parts {
	struct part *part;
	size_t nr, rows_max;
	uint64_t triggers, counted;
};

static int by_thread(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->birth_ns < y->birth_ns ? -1 : x->birth_ns > y->birth_ns;
}

/* Every ns of an interval is somebody's: up to where each CPU's time is charged. */
static void check_time(const struct sim_run *run)
{
	uint64_t cpus_ns = 0, rows_ns = 0;

	for (unsigned i = 0; i < run->slicer.nr_cpus; i++)
		cpus_ns += run->slicer.cpus[i].state.since_ns - run->slicer.cpus[i].start_ns;
	for (uint32_t i = 0; i < run->agg.nr; i++)
		rows_ns += csw_aggregation_row(&run->agg, i)->oncpu_ns;
	assert_int_equal(rows_ns, cpus_ns);
}

/* Takes an interval's rows and forgets them, as csw_reset does. */
static void end_interval(struct sim_run *run, void *ctx)
{
	struct parts *parts = ctx;

	sim_run_check_sums(run);
	parts->triggers += run->done.all - (uint64_t)run->done.open;
	parts->counted += run->totals[2 + LLC];
	parts->part = realloc(parts->part, (parts->nr + run->agg.nr) * sizeof(*parts->part));
	assert_non_null(parts->part);
	for (uint32_t i = 0; i < run->agg.nr; i++) {
		const struct csw_agg_row *row = csw_aggregation_row(&run->agg, i);

		if (row->flags & CSW_ROW_FREE)
			assert_int_equal(row->oncpu_ns + row->cells[LLC].sum, 0);
		parts->part[parts->nr++] = (struct part){ row->pid, row->birth_ns, row->slices,
							  row->oncpu_ns, row->cells[LLC].sum };
	}
	if (run->agg.nr > parts->rows_max)
		parts->rows_max = run->agg.nr;
	check_time(run);
	csw_slicer_reset(&run->slicer);
}

/* The sum of all parts of one thread; they are sorted. */
static struct part sum_of(const struct parts *parts, const struct csw_sim_truth *truth)
{
	struct part sum = { .pid = truth->pid, .birth_ns = truth->birth_ns }, *found;

	found = bsearch(&sum, parts->part, parts->nr, sizeof(sum), by_thread);
	while (found && found > parts->part && by_thread(found - 1, &sum) == 0)
		found--;
	for (; found && found < parts->part + parts->nr && by_thread(found, &sum) == 0; found++) {
		sum.slices += found->slices;
		sum.oncpu_ns += found->oncpu_ns;
		sum.count += found->count;
	}
	return sum;
}

/* Intervals: each adds up in itself, all together are the truth, and rows of dead threads are used
 * again. */
static void intervals_add_up(void **state)
{
	struct parts parts = { .nr = 0 };
	struct sim_run run = { .ticks = true, .interval = end_interval, .ctx = &parts };
	uint64_t total = 0;

	(void)state;
	sim_run_all(&run, "seg_load", EVENTS, 1,
		    "seed=14,churn=400,threads=60,duration_ms=3000,pid_max=2048,ring=256");
	end_interval(&run, &parts);
	qsort(parts.part, parts.nr, sizeof(*parts.part), by_thread);
	for (size_t i = 1; i < csw_sim_truths(run.drv); i++) {
		struct csw_sim_truth truth;
		struct part sum;

		csw_sim_truth_get(run.drv, i, &truth);
		sum = sum_of(&parts, &truth);
		assert_int_equal(sum.slices, truth.slices);
		assert_int_equal(sum.oncpu_ns, truth.oncpu_ns);
		assert_int_equal(sum.count, truth.counts[LLC]);
	}
	for (unsigned i = 0; i < run.slicer.nr_cpus; i++) {
		struct csw_sim_cpu_truth cpu;

		csw_sim_cpu_truth_get(run.drv, i, &cpu);
		total += cpu.triggers;
	}
	assert_int_equal(parts.triggers, total);
	assert_true(csw_sim_truths(run.drv) > 2 * parts.rows_max);
	free(parts.part);
	sim_run_free(&run);
}

/* ---- counters that take turns ---- */

/* One counter of two for LLC_MISSES and instructions: half of the time each. */
#define TURNS "pmc=2,"
#define INSTRUCTIONS 1

static void check_turns_of_row(const struct sim_run *run, uint32_t nr, uint64_t *running)
{
	const struct csw_agg_row *row = csw_aggregation_row(&run->agg, nr);
	const uint64_t *own = csw_aggregation_running(&run->agg, nr);

	/* Every slice lies within one set's turn. */
	assert_int_equal(own[LLC] + own[INSTRUCTIONS], row->running_ns);
	assert_int_equal(own[FAULTS], row->running_ns);
	for (unsigned c = 0; c < run->plan.nr_counters; c++) {
		const struct csw_cell *cell = &row->cells[c];

		running[c] += own[c];
		if (cell->min <= cell->max)
			assert_true(own[c] > 0 && cell->max <= cell->sum);
		if (!own[c] && row->oncpu_ns)
			assert_int_equal(cell->sum || (row->proven >> c & 1), 0);
	}
}

static void check_turns(const struct sim_run *run)
{
	uint64_t of_rows[CSW_COUNTERS_MAX] = { 0 }, of_cpus[CSW_COUNTERS_MAX];

	for (uint32_t i = 0; i < run->agg.nr; i++)
		check_turns_of_row(run, i, of_rows);
	csw_slicer_running(&run->slicer, of_cpus);
	for (unsigned c = 0; c < run->plan.nr_counters; c++)
		assert_int_equal(of_rows[c], of_cpus[c]);
	assert_int_equal(of_cpus[FAULTS], run->totals[1]);
	/* Turns differ in length, and there are some fifty in a second. */
	assert_in_range(of_cpus[LLC] * 100 / of_cpus[FAULTS], 40, 60);
}

/* What a thread does in the turns of a counter is counted to the last event, and software counters
 * have no turns. */
static void turns_are_counted_exactly(void **state)
{
	struct csw_sim_truth truth;
	struct sim_run run = { .ticks = false };
	const char *trigger = *state;
	uint64_t never = 0;

	sim_run_all(&run, trigger, EVENTS, 1,
		    strcmp(trigger, "switch") ? TURNS "seed=15,duration_ms=3000,churn=100"
					      : "pmc=1,seed=15,duration_ms=3000,churn=100");
	assert_int_equal(run.plan.scaled, 1u << LLC | 1u << INSTRUCTIONS);
	sim_run_check_sums(&run);
	sim_run_check_equal(&run, strcmp(trigger, "switch") ? 0 : SWITCH_NS);
	assert_int_equal(run.done.all, run.done.samples);
	check_turns(&run);
	for (size_t i = 0; i < csw_sim_truths(run.drv); i++) {
		const struct csw_agg_row *row;

		csw_sim_truth_get(run.drv, i, &truth);
		row = sim_run_row(&run, &truth);
		if (!row)
			continue;
		assert_int_equal(row->cells[FAULTS].sum, truth.counts[FAULTS]);
		assert_int_equal(row->cells[CLOCK].sum, truth.counts[CLOCK]);
		never += row->oncpu_ns && !(row->proven >> LLC & 1);
	}
	/* Some lived too shortly to meet each set. */
	assert_true(never > 0);
	sim_run_free(&run);
}

/* Over a long run half of the time says nearly as much as all of it. */
static void turns_scale_to_the_truth(void **state)
{
	struct csw_sim_truth truth;
	struct sim_run run = { .ticks = false };
	double worst = 0, scaled_sum = 0, truth_sum = 0;

	(void)state;
	sim_run_all(&run, "seg_load", EVENTS, 1, TURNS "seed=16,duration_ms=30000,churn=0");
	for (size_t i = 1; i < csw_sim_truths(run.drv); i++) {
		const struct csw_agg_row *row;
		double scaled, error;
		uint64_t running;

		csw_sim_truth_get(run.drv, i, &truth);
		row = sim_run_row(&run, &truth);
		if (!row || truth.oncpu_ns < 1000000000)
			continue;
		running = csw_aggregation_running(
			&run.agg, (uint32_t)(((const unsigned char *)row - run.agg.rows) /
					     (ptrdiff_t)run.agg.stride))[LLC];
		scaled = (double)row->cells[LLC].sum * (double)row->enabled_ns / (double)running;
		error = scaled / (double)truth.counts[LLC] - 1;
		worst = error > worst ? error : -error > worst ? -error : worst;
		scaled_sum += scaled;
		truth_sum += (double)truth.counts[LLC];
	}
	assert_true(truth_sum > 0);
	printf("scaled: all threads %+.2f %%, the worst one %.2f %% off\n",
	       100 * (scaled_sum / truth_sum - 1), 100 * worst);
	assert_true(worst > 0 && worst < 0.05);
	assert_true(scaled_sum > 0.99 * truth_sum && scaled_sum < 1.01 * truth_sum);
	sim_run_free(&run);
}

/* Each turn begins with a whole period: what was left of the one before has no sample, and is said
 * to be open. Turns go together with every fault, with ticks and with intervals. */
static void turns_and_all_else(void **state)
{
	static const struct {
		const char *trigger, *options;
		uint64_t sav;
		bool ticks, whole;
	} runs[] = {
		{ "seg_load", TURNS "seed=17", 3, false, true },
		{ "switch", "pmc=1,seed=18", 7, true, true },
		{ "seg_load", TURNS "seed=19,skid=1", 1, true, true },
		{ "switch", "pmc=1,seed=20,blind_idle=1,threads=12", 1, false, false },
		{ "seg_load", TURNS "seed=21,vanish=100", 2, true, false },
		{ "switch", "pmc=1,seed=22,ring=64,stall_ms=200", 1, true, false },
		{ "seg_load", TURNS "seed=23,throttle=20", 1, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct sim_run run = { .ticks = runs[i].ticks };

		sim_run_all(&run, runs[i].trigger, EVENTS, runs[i].sav, runs[i].options);
		sim_run_check_sums(&run);
		sim_run_check_never_more(&run, SWITCH_NS);
		check_turns(&run);
		if (runs[i].whole)
			assert_int_equal(run.done.lost + run.done.unseen + run.done.throttled, 0);
		if (runs[i].sav > 1)
			assert_true(run.done.open > (int64_t)runs[i].sav);
		sim_run_free(&run);
	}
}

static void turns_in_intervals(void **state)
{
	struct parts parts = { .nr = 0 };
	struct sim_run run = { .ticks = true, .interval = end_interval, .ctx = &parts };

	(void)state;
	sim_run_all(&run, "seg_load", EVENTS, 1,
		    TURNS "seed=24,churn=200,threads=60,duration_ms=2000");
	end_interval(&run, &parts);
	qsort(parts.part, parts.nr, sizeof(*parts.part), by_thread);
	for (size_t i = 1; i < csw_sim_truths(run.drv); i++) {
		struct csw_sim_truth truth;

		csw_sim_truth_get(run.drv, i, &truth);
		assert_int_equal(sum_of(&parts, &truth).count, truth.counted[LLC]);
	}
	free(parts.part);
	sim_run_free(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_by_seg_load),
		cmocka_unit_test(equal_by_switch),
		cmocka_unit_test(skid_changes_nothing),
		cmocka_unit_test_prestate(reused_tids_stay_apart, (void *)(uintptr_t) "switch"),
		cmocka_unit_test_prestate(reused_tids_stay_apart, (void *)(uintptr_t) "seg_load"),
		cmocka_unit_test(counters_wrap),
		cmocka_unit_test(sav_2_mixes_and_says_so),
		cmocka_unit_test(mixed_slices_are_estimated),
		cmocka_unit_test(what_nobody_knows_is_not_estimated),
		cmocka_unit_test_prestate(blind_idle_is_noticed,
					  (void *)(uintptr_t)&blind_triggers[0]),
		cmocka_unit_test_prestate(blind_idle_is_noticed,
					  (void *)(uintptr_t)&blind_triggers[1]),
		cmocka_unit_test_prestate(blind_idle_is_noticed,
					  (void *)(uintptr_t)&blind_triggers[2]),
		cmocka_unit_test_prestate(vanished_records_are_noticed,
					  (void *)(uintptr_t) "switch"),
		cmocka_unit_test_prestate(vanished_records_are_noticed,
					  (void *)(uintptr_t) "seg_load"),
		cmocka_unit_test_prestate(vanished_records_are_noticed,
					  (void *)(uintptr_t) "tid_change"),
		cmocka_unit_test_prestate(counts_are_proven, (void *)(uintptr_t) "switch"),
		cmocka_unit_test_prestate(counts_are_proven, (void *)(uintptr_t) "seg_load"),
		cmocka_unit_test_prestate(counts_are_proven, (void *)(uintptr_t) "tid_change"),
		cmocka_unit_test_prestate(overflow_is_lost, (void *)(uintptr_t) "switch"),
		cmocka_unit_test_prestate(overflow_is_lost, (void *)(uintptr_t) "seg_load"),
		cmocka_unit_test(lost_tail_is_lost),
		cmocka_unit_test_prestate(throttling_is_lost, (void *)(uintptr_t) "switch"),
		cmocka_unit_test_prestate(throttling_is_lost, (void *)(uintptr_t) "seg_load"),
		cmocka_unit_test(doubled_samples_change_nothing),
		cmocka_unit_test(spurious_samples_change_nothing),
		cmocka_unit_test(spurious_samples_mix_and_say_so),
		cmocka_unit_test(spurious_skid_is_no_guess),
		cmocka_unit_test(what_switches_cause_is_counted),
		cmocka_unit_test(the_machine_does_not_see_the_trigger),
		cmocka_unit_test(whole_slices_and_times),
		cmocka_unit_test(ticks_change_nothing),
		cmocka_unit_test(intervals_add_up),
		cmocka_unit_test_prestate(turns_are_counted_exactly, (void *)(uintptr_t) "switch"),
		cmocka_unit_test_prestate(turns_are_counted_exactly,
					  (void *)(uintptr_t) "seg_load"),
		cmocka_unit_test(turns_scale_to_the_truth),
		cmocka_unit_test(turns_and_all_else),
		cmocka_unit_test(turns_in_intervals),
	};

	return cmocka_run_group_tests_name("truth_sim", tests, NULL, NULL);
}
