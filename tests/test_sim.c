/*
 * The simulated machine: are its records what a kernel would write, and do they lead to its truth?
 *
 * A replay reads the records in time order, follows who runs on which CPU, and gives each
 * difference between two samples to its owner, in the plainest way. Where no record is missing the
 * result must be the machine's truth, to the last event.
 *
 * Invariant: the replay asks nothing but records; the truth comes from nowhere but
 * drivers/sim/sim.h.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/sim/sim.h"
#include "engine/spec.h"

#define NR_COUNTERS 5
#define PID_MAX 32768

static const char *const counter_names[NR_COUNTERS] = { "LLC_MISSES", "cycles", "instructions",
							"page-faults", "task-clock" };
static const struct csw_driver_ops *const ops = &csw_sim_driver;

/* ---- running the machine ---- */

/* A run and all its records: those of the start scan, then those of the rings in time order. */
struct run {
	struct csw_plan plan;
	struct csw_driver *drv;
	unsigned nr_cpus;
	struct csw_record *records;
	size_t nr, capacity, nr_tasks;
	uint64_t horizon_ns;
};

static void keep(struct run *run, const struct csw_record *rec)
{
	if (run->nr == run->capacity) {
		run->capacity = run->capacity ? 2 * run->capacity : 4096;
		run->records = realloc(run->records, run->capacity * sizeof(*run->records));
		assert_non_null(run->records);
	}
	run->records[run->nr++] = *rec;
}

static void keep_task(void *ctx, const struct csw_record *rec)
{
	struct run *run = ctx;

	assert_int_equal(rec->type, CSW_RECORD_TASK);
	keep(run, rec);
	run->nr_tasks++;
}

/* Reads all that the snapshot holds. What comes now is later than the horizon before. */
static void drain(struct run *run)
{
	uint64_t horizon_ns = ops->snapshot(run->drv);

	for (unsigned ring = 0; ring < run->nr_cpus; ring++) {
		struct csw_record rec;

		while (ops->next(run->drv, ring, &rec)) {
			assert_int_equal(rec.cpu, ring);
			assert_true(rec.time_ns > run->horizon_ns);
			keep(run, &rec);
		}
	}
	run->horizon_ns = horizon_ns;
}

/* time, then the order of the ring; records was filled ring by ring, so a position says enough */
static const struct csw_record *sorted_records;

static int by_time(const void *a, const void *b)
{
	size_t i = *(const size_t *)a, j = *(const size_t *)b;
	uint64_t s = sorted_records[i].time_ns, t = sorted_records[j].time_ns;

	if (s != t)
		return s < t ? -1 : 1;
	return i < j ? -1 : 1;
}

static void sort(struct run *run)
{
	struct csw_record *out = malloc(run->nr * sizeof(*out));
	size_t *order = malloc(run->nr * sizeof(*order));

	assert_true(out && order);
	for (size_t i = 0; i < run->nr; i++)
		order[i] = i;
	sorted_records = run->records + run->nr_tasks;
	qsort(order, run->nr - run->nr_tasks, sizeof(*order), by_time);
	for (size_t i = 0; i < run->nr; i++)
		out[i] = i < run->nr_tasks ? run->records[i]
					   : sorted_records[order[i - run->nr_tasks]];
	free(run->records);
	free(order);
	run->records = out;
}

/* From open to stop, by the plan that is there. */
static void live(struct run *run, int step_ms)
{
	struct csw_sink sink = { keep_task, run };
	struct csw_error err = { 0 };

	if (ops->open(&run->drv, &run->plan, &err))
		fail_msg("%s", err.text);
	run->nr_cpus = ops->nr_rings(run->drv);
	assert_int_equal(ops->start(run->drv, &sink, &err), 0);
	drain(run);
	while (ops->wait(run->drv, step_ms, &err) == 1)
		drain(run);
	assert_int_equal(ops->stop(run->drv, &err), 0);
	drain(run);
	assert_true(run->horizon_ns == UINT64_MAX);
	sort(run);
}

static void run_in_steps(struct run *run, const char *trigger, uint64_t sav, const char *options,
			 int step_ms)
{
	struct csw_error err = { 0 };

	*run = (struct run){ .plan = { .nr_counters = NR_COUNTERS, .driver_opts = options } };
	assert_int_equal(ops->resolve_trigger(trigger, sav, &run->plan.trigger, &err), 0);
	for (int i = 0; i < NR_COUNTERS; i++)
		assert_int_equal(
			ops->resolve_counter(counter_names[i], &run->plan.counters[i], &err), 0);
	live(run, step_ms);
}

static void run_machine(struct run *run, const char *trigger, uint64_t sav, const char *options)
{
	run_in_steps(run, trigger, sav, options, 10);
}

static void end_run(struct run *run)
{
	ops->close(run->drv);
	free(run->records);
}

/* ---- the replay ---- */

struct person {
	int32_t pid, tid;
	uint64_t birth_ns, in_ns;
	bool ran, exiting, gone;
	uint64_t slices, oncpu_ns, counts[NR_COUNTERS];
};

struct cpu {
	long person; /* who runs: by records up to now */
	long owner;  /* of what is counted since the last sample */
	bool counting, switching, sampled;
	uint64_t since_ns; /* of person, on the CPU */
	uint64_t last_ns;
	uint64_t values[1 + NR_COUNTERS];
	uint64_t start_ns, stop_ns;
};

struct replay {
	struct person *persons; /* 0: idle */
	long nr;
	long who[PID_MAX]; /* person of each TID */
	struct cpu cpus[64];
	long nr_execs, nr_moves, nr_reused, nr_late, nr_exits, nr_samples;
	long nr_unnamed; /* moves told by a switch, before the name came */
	long nr_back;    /* switches of exiting threads that were not their last */
};

static long add_person(struct replay *r, const struct csw_record *rec)
{
	struct person *p = &r->persons[r->nr];

	p->pid = rec->pid;
	p->tid = rec->tid;
	p->birth_ns = rec->time_ns;
	r->nr_reused += r->who[rec->tid] != 0;
	r->who[rec->tid] = r->nr;
	return r->nr++;
}

static void give_counts(struct replay *r, struct cpu *cpu, const struct csw_record *rec)
{
	assert_int_equal(rec->nr_values, 1 + NR_COUNTERS);
	assert_int_equal(rec->values[NR_COUNTERS], rec->enabled_ns); /* task-clock never rests */
	assert_int_equal(rec->running_ns, rec->enabled_ns);
	for (int i = 0; i < NR_COUNTERS; i++) {
		assert_true(rec->values[1 + i] >= cpu->values[1 + i]);
		r->persons[cpu->owner].counts[i] += rec->values[1 + i] - cpu->values[1 + i];
	}
	memcpy(cpu->values, rec->values, sizeof(cpu->values));
}

/* before: the sample comes before SWITCH_OUT. Else between OUT and IN, or just after IN. */
static void replay_sample(struct replay *r, struct cpu *cpu, const struct csw_record *rec,
			  bool before)
{
	struct person *owner = &r->persons[cpu->owner];
	struct person *hint = &r->persons[cpu->person];
	bool late = !before && !cpu->switching;

	assert_false(cpu->sampled);
	assert_false(before && cpu->switching);
	r->nr_late += late;
	r->nr_samples++;
	if (!late)
		hint = owner;
	assert_int_equal(rec->tid, hint->gone ? -1 : hint->tid);
	assert_int_equal(rec->pid, hint->gone ? -1 : hint->pid);
	give_counts(r, cpu, rec);
	cpu->sampled = true;
}

static void replay_out(struct replay *r, struct cpu *cpu, const struct csw_record *rec, bool before)
{
	struct person *p = &r->persons[cpu->person];

	assert_false(cpu->switching);
	assert_int_equal(cpu->sampled, before);
	if (rec->tid == -1)
		assert_true(p->exiting);
	assert_int_equal(rec->tid, p->gone ? -1 : p->tid);
	assert_int_equal(rec->pid, p->gone ? -1 : p->pid);
	p->slices++;
	p->oncpu_ns += rec->time_ns - cpu->since_ns;
	cpu->since_ns = rec->time_ns;
	cpu->owner = cpu->person;
	cpu->person = r->who[rec->other_tid];
	cpu->switching = true;
}

static void replay_in(struct replay *r, struct cpu *cpu, const struct csw_record *rec)
{
	struct person *p = &r->persons[r->who[rec->tid]];
	struct person *left = &r->persons[cpu->owner];

	assert_true(cpu->switching);
	assert_int_equal(cpu->person, r->who[rec->tid]);
	assert_int_equal(rec->other_tid, left->gone ? -1 : left->tid);
	assert_true(p == r->persons || p->birth_ns < rec->time_ns);
	p->ran = true;
	cpu->switching = false;
}

/* An exec has made the thread its process's leader: the old one and all others are gone. */
static void replay_move(struct replay *r, long person)
{
	struct person *p = &r->persons[person];

	assert_true(r->persons[r->who[p->pid]].gone); /* the old leader */
	for (long i = 0; i < r->nr; i++)
		assert_true(r->persons[i].pid != p->pid || &r->persons[i] == p ||
			    r->persons[i].gone);
	p->tid = p->pid;
	r->who[p->pid] = person;
	r->nr_moves++;
}

static void replay_exec(struct replay *r, struct cpu *cpu, const struct csw_record *rec)
{
	struct person *p = &r->persons[cpu->person];

	assert_int_equal(rec->pid, rec->tid);
	assert_int_equal(rec->pid, p->pid);
	r->nr_execs++;
	if (p->tid != rec->tid)
		replay_move(r, cpu->person);
}

/* It is switched out before the exec's COMM record tells of its new TID, or on its way out of life,
 * to come back once more. */
static void replay_leave(struct replay *r, struct cpu *cpu, const struct csw_record *rec)
{
	struct person *p = &r->persons[cpu->person];

	if (rec->tid == -1) {
		p->gone = p->exiting;
	} else if (rec->tid == p->pid && rec->tid != p->tid) {
		replay_move(r, cpu->person);
		r->nr_unnamed++;
	}
	r->nr_back += p->exiting && !p->gone && rec->type == CSW_RECORD_SWITCH_OUT;
}

static void replay_record(struct replay *r, const struct csw_record *rec, bool before)
{
	struct cpu *cpu = &r->cpus[rec->cpu];

	assert_true(rec->time_ns >= cpu->last_ns);
	cpu->last_ns = rec->time_ns;
	assert_int_equal(cpu->counting, rec->type != CSW_RECORD_START);
	switch (rec->type) {
	case CSW_RECORD_START:
		cpu->counting = true;
		cpu->person = cpu->owner = r->who[rec->tid];
		cpu->since_ns = cpu->start_ns = rec->time_ns;
		memcpy(cpu->values, rec->values, sizeof(cpu->values));
		break;
	case CSW_RECORD_SAMPLE:
		/* the sample of a switch is the first to show who leaves */
		if (before) {
			cpu->owner = cpu->person;
			replay_leave(r, cpu, rec);
		}
		replay_sample(r, cpu, rec, before);
		break;
	case CSW_RECORD_SWITCH_OUT:
		replay_leave(r, cpu, rec);
		replay_out(r, cpu, rec, before);
		if (before)
			cpu->sampled = false;
		break;
	case CSW_RECORD_SWITCH_IN:
		replay_in(r, cpu, rec);
		break;
	case CSW_RECORD_FORK:
		assert_int_equal(rec->other_tid, r->persons[cpu->person].tid);
		add_person(r, rec);
		break;
	case CSW_RECORD_EXIT:
		assert_int_equal(rec->tid, r->persons[cpu->person].tid);
		assert_false(r->persons[cpu->person].exiting);
		r->persons[cpu->person].exiting = true;
		r->nr_exits++;
		break;
	case CSW_RECORD_COMM:
		assert_true(rec->comm[0]);
		if (rec->flags & CSW_RECORD_EXEC)
			replay_exec(r, cpu, rec);
		assert_int_equal(rec->tid, r->persons[cpu->person].tid);
		break;
	case CSW_RECORD_STOP:
		assert_int_equal(rec->lost, 0);
		cpu->owner = cpu->person;
		give_counts(r, cpu, rec);
		r->persons[cpu->person].oncpu_ns += rec->time_ns - cpu->since_ns;
		cpu->stop_ns = rec->time_ns;
		cpu->counting = false;
		break;
	default:
		fail_msg("record type %u", rec->type);
	}
	/* whoever follows owns what is counted from the sample of its own switch on */
	if (!before && rec->type != CSW_RECORD_SWITCH_OUT && cpu->sampled && !cpu->switching) {
		cpu->owner = cpu->person;
		cpu->sampled = false;
	}
}

static struct replay *replay(struct run *run)
{
	struct replay *r = calloc(1, sizeof(*r));
	bool before = run->plan.trigger.phase == CSW_PHASE_BEFORE;

	assert_non_null(r);
	r->persons = calloc(csw_sim_truths(run->drv), sizeof(*r->persons));
	assert_non_null(r->persons);
	r->nr = 1;
	for (size_t i = 0; i < run->nr; i++) {
		if (run->records[i].type == CSW_RECORD_TASK)
			add_person(r, &run->records[i]);
		else
			replay_record(r, &run->records[i], before);
	}
	for (unsigned i = 0; i < run->nr_cpus; i++)
		assert_true(r->cpus[i].stop_ns > r->cpus[i].start_ns);
	return r;
}

static void end_replay(struct replay *r)
{
	free(r->persons);
	free(r);
}

/* Two that were born at the same instant on two CPUs may stand the other way round in the truth. */
static void truth_of(const struct run *run, const struct person *p, size_t i,
		     struct csw_sim_truth *truth)
{
	size_t nr = csw_sim_truths(run->drv);

	for (size_t k = i ? i - 1 : 0; k <= i + 1 && k < nr; k++) {
		csw_sim_truth_get(run->drv, k, truth);
		if (truth->tid == p->tid && truth->birth_ns == p->birth_ns)
			return;
	}
	csw_sim_truth_get(run->drv, i, truth);
}

/* Who was born, and what each one caused, is the same in the replay and in the truth. */
static void assert_truth(struct run *run, const struct replay *r)
{
	assert_int_equal(r->nr, csw_sim_truths(run->drv));
	for (long i = 0; i < r->nr; i++) {
		const struct person *p = &r->persons[i];
		struct csw_sim_truth truth;

		truth_of(run, p, (size_t)i, &truth);
		assert_int_equal(p->pid, truth.pid);
		assert_int_equal(p->tid, truth.tid);
		assert_int_equal(p->birth_ns, truth.birth_ns);
		assert_int_equal(p->slices, truth.slices);
		assert_int_equal(truth.slices, truth.voluntary + truth.preempted);
		assert_int_equal(p->oncpu_ns, truth.oncpu_ns);
		for (int c = 0; c < NR_COUNTERS; c++)
			assert_int_equal(p->counts[c], truth.counts[c]);
	}
}

static size_t count(const struct run *run, uint32_t type)
{
	size_t n = 0;

	for (size_t i = 0; i < run->nr; i++)
		n += run->records[i].type == type;
	return n;
}

/* ---- the tests ---- */

static const char busy[] = "cpus=4,threads=40,processes=8,churn=100,duration_ms=1000,seed=7";

static void check_against_truth(const char *trigger, const char *options, bool skid)
{
	struct run run;
	struct replay *r;

	run_machine(&run, trigger, 1, options);
	r = replay(&run);
	assert_truth(&run, r);
	assert_true(r->nr_exits > 50);
	assert_true(r->nr_execs > 5);
	assert_true(r->nr_moves > 0);
	assert_true(r->nr_back > 0);
	assert_true(r->nr_samples > 5000);
	assert_int_equal(r->nr_late > 0, skid);
	end_replay(r);
	end_run(&run);
}

static void test_switch_trigger_leads_to_truth(void **state)
{
	(void)state;
	check_against_truth("switch", busy, false);
}

static void test_seg_load_trigger_leads_to_truth(void **state)
{
	(void)state;
	check_against_truth("seg_load", busy, false);
	check_against_truth("auto", busy, false);
}

static void test_skid_leads_to_truth(void **state)
{
	(void)state;
	check_against_truth(
		"seg_load",
		"cpus=4,threads=40,processes=8,churn=100,duration_ms=1000,seed=7,skid=1", true);
}

static void test_many_seeds_lead_to_truth(void **state)
{
	long nr_unnamed = 0;

	(void)state;
	for (int seed = 0; seed < 30; seed++) {
		struct run run;
		struct replay *r;
		char options[128];

		snprintf(options, sizeof(options),
			 "cpus=%d,threads=%d,processes=%d,churn=%d,duration_ms=200,seed=%d,"
			 "pid_max=1024,skid=%d,switches=%d",
			 1 + seed % 5, 1 + seed * 7, 1 + seed, 1000 >> seed % 8, seed, seed % 2,
			 seed % 3 ? 3000 : 60000);
		run_machine(&run, seed % 3 ? "seg_load" : "switch", 1, options);
		r = replay(&run);
		assert_truth(&run, r);
		nr_unnamed += r->nr_unnamed;
		end_replay(r);
		end_run(&run);
	}
	assert_true(nr_unnamed > 5);
}

static bool same(const struct run *a, const struct run *b)
{
	if (a->nr != b->nr)
		return false;
	for (size_t i = 0; i < a->nr; i++) {
		const struct csw_record *x = &a->records[i], *y = &b->records[i];

		if (memcmp(x, y, offsetof(struct csw_record, values)) != 0 ||
		    memcmp(x->values, y->values, x->nr_values * sizeof(uint64_t)) != 0 ||
		    memcmp(x->comm, y->comm, sizeof(x->comm)) != 0)
			return false;
	}
	return true;
}

/* The same seed gives the same records, however the reader divides the time; another one others. */
static void test_seed_decides_all(void **state)
{
	struct run a, b, c;

	(void)state;
	run_in_steps(&a, "switch", 1, "seed=5", 10);
	run_in_steps(&b, "switch", 1, "seed=5,ring=20000", 3);
	run_in_steps(&c, "switch", 1, "seed=6", 10);
	assert_true(same(&a, &b));
	assert_false(same(&a, &c));
	end_run(&a);
	end_run(&b);
	end_run(&c);
}

/* A fault in the records leaves the machine alone. */
static uint64_t stir(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * 0x100000001b3u + (hash >> 47);
}

/* A seed means the same machine with every compiler and on every processor. Whoever changes what
 * the machine does changes this number, and shall know that. */
static void test_seed_means_the_same_everywhere(void **state)
{
	uint64_t hash = 0xcbf29ce484222325u;
	struct run run;

	(void)state;
	run_machine(&run, "seg_load", 1, "seed=77,churn=300,duration_ms=200");
	for (size_t i = 0; i < run.nr; i++) {
		const struct csw_record *rec = &run.records[i];

		hash = stir(stir(stir(hash, rec->type), rec->time_ns), (uint32_t)rec->tid);
		hash = stir(hash, (uint32_t)rec->other_tid);
		for (size_t k = 0; k < sizeof(rec->comm); k++)
			hash = stir(hash, (unsigned char)rec->comm[k]);
		for (uint32_t k = 0; k < rec->nr_values; k++)
			hash = stir(hash, rec->values[k]);
	}
	assert_int_equal(hash, 0x6b2e4a0b099bc11f);
	end_run(&run);
}

static void test_faults_leave_the_truth_alone(void **state)
{
	struct run a, b;
	size_t nr;

	(void)state;
	run_machine(&a, "seg_load", 1, "seed=5");
	run_machine(&b, "seg_load", 1, "seed=5,vanish=200,blind_idle=0,ring=64,stall_ms=100");
	nr = csw_sim_truths(a.drv);
	assert_int_equal(nr, csw_sim_truths(b.drv));
	for (size_t i = 0; i < nr; i++) {
		struct csw_sim_truth s, t;

		csw_sim_truth_get(a.drv, i, &s);
		csw_sim_truth_get(b.drv, i, &t);
		assert_memory_equal(&s, &t, sizeof(s));
	}
	assert_true(b.nr < a.nr);
	end_run(&a);
	end_run(&b);
}

/* The difference of a CPU's last and first reading. */
static uint64_t advance(const struct run *run, unsigned cpu, unsigned value)
{
	uint64_t first = 0, last = 0;

	for (size_t i = 0; i < run->nr; i++) {
		const struct csw_record *rec = &run->records[i];

		if (rec->cpu == cpu && rec->type == CSW_RECORD_START)
			first = rec->values[value];
		if (rec->cpu == cpu && rec->type == CSW_RECORD_STOP)
			last = rec->values[value];
	}
	return last - first;
}

static void test_truths_add_up_to_the_counters(void **state)
{
	struct run run;

	(void)state;
	run_machine(&run, "seg_load", 1, "cpus=3,vanish=300,ring=100,stall_ms=300,throttle=5");
	for (unsigned c = 0; c < NR_COUNTERS; c++) {
		uint64_t counted = 0, sum = 0;

		for (unsigned cpu = 0; cpu < run.nr_cpus; cpu++)
			counted += advance(&run, cpu, 1 + c);
		for (size_t i = 0; i < csw_sim_truths(run.drv); i++) {
			struct csw_sim_truth truth;

			csw_sim_truth_get(run.drv, i, &truth);
			sum += truth.counts[c];
		}
		assert_true(counted > 1000);
		assert_int_equal(counted, sum);
	}
	end_run(&run);
}

static void test_idle_causes_what_it_can(void **state)
{
	struct csw_sim_truth idle;
	struct run run;

	(void)state;
	run_machine(&run, "switch", 1, "threads=3");
	csw_sim_truth_get(run.drv, 0, &idle);
	assert_int_equal(idle.kind, CSW_KIND_IDLE);
	assert_int_equal(idle.tid, 0);
	assert_true(idle.counts[0] > 0);                      /* LLC_MISSES */
	assert_int_equal(idle.counts[1], 0);                  /* cycles */
	assert_int_equal(idle.counts[3], 0);                  /* page-faults */
	assert_true(idle.counts[4] > idle.oncpu_ns / 10 * 9); /* task-clock */
	end_run(&run);
}

/* A counter near 2^48 wraps at its first few events, and the readings go on. */
static void test_counters_wrap(void **state)
{
	struct csw_sim_cpu_truth truth;
	struct run run;

	(void)state;
	run_machine(&run, "switch", 1, "cpus=2");
	csw_sim_cpu_truth_get(run.drv, 0, &truth);
	assert_int_equal(truth.wraps, 3); /* LLC_MISSES, cycles, instructions */
	assert_true(advance(&run, 0, 1) > 100);
	assert_true(advance(&run, 0, 1) < 1ULL << 47);
	csw_sim_cpu_truth_get(run.drv, 1, &truth);
	assert_int_equal(truth.wraps, 0);
	end_run(&run);
}

static void count_ring(const struct run *run, unsigned cpu, uint64_t *records, uint64_t *lost,
		       uint64_t *samples, uint64_t *samples_lost)
{
	*records = *lost = *samples = *samples_lost = 0;
	for (size_t i = run->nr_tasks; i < run->nr; i++) {
		const struct csw_record *rec = &run->records[i];

		if (rec->cpu != cpu)
			continue;
		*records += rec->type != CSW_RECORD_LOST;
		*samples += rec->type == CSW_RECORD_SAMPLE;
		*lost += rec->type == CSW_RECORD_LOST ? rec->lost : 0;
		*samples_lost += rec->type == CSW_RECORD_STOP ? rec->lost : 0;
	}
}

/* What a small ring refuses is what a large one has more; LOST and STOP say how much. */
static void test_overflow_is_told(void **state)
{
	uint64_t records, samples, lost, samples_lost, all, all_samples, none, none_lost;
	struct run run, large;

	(void)state;
	run_machine(&run, "switch", 1, "ring=256,stall_ms=200");
	run_machine(&large, "switch", 1, "ring=100000");
	for (unsigned cpu = 0; cpu < run.nr_cpus; cpu++) {
		count_ring(&run, cpu, &records, &lost, &samples, &samples_lost);
		count_ring(&large, cpu, &all, &none, &all_samples, &none_lost);
		assert_int_equal(none, 0);
		assert_int_equal(none_lost, 0);
		assert_true(lost > 100);
		assert_int_equal(records + lost, all);
		assert_int_equal(samples + samples_lost, all_samples);
	}
	end_run(&run);
	end_run(&large);
}

/* After the last success there is no LOST record: only STOP tells of the samples. */
static void test_overflow_at_the_end_is_told_by_stop_alone(void **state)
{
	uint64_t records, samples, lost, samples_lost;
	struct csw_sim_cpu_truth truth;
	struct run run;

	(void)state;
	run_machine(&run, "switch", 1, "cpus=1,ring=256,stall_ms=5000");
	count_ring(&run, 0, &records, &lost, &samples, &samples_lost);
	csw_sim_cpu_truth_get(run.drv, 0, &truth);
	assert_int_equal(lost, 0);
	assert_true(samples_lost > 100);
	assert_int_equal(samples + samples_lost, truth.triggers);
	assert_int_equal(run.records[run.nr - 1].type, CSW_RECORD_STOP);
	end_run(&run);
}

/* The next record after a loss goes in only together with its LOST: one free place is too few. */
static void test_lost_record_needs_room_too(void **state)
{
	struct run run = { .plan = { .driver_opts = "cpus=1,ring=16,seed=2" } };
	struct csw_sink sink = { keep_task, &run };
	struct csw_record rec;
	int left = 0;

	(void)state;
	assert_int_equal(ops->resolve_trigger("switch", 1, &run.plan.trigger, NULL), 0);
	assert_int_equal(ops->open(&run.drv, &run.plan, NULL), 0);
	assert_int_equal(ops->start(run.drv, &sink, NULL), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(ops->wait(run.drv, 10, NULL), 1);
	ops->snapshot(run.drv);
	assert_int_equal(ops->next(run.drv, 0, &rec), 1);
	assert_int_equal(rec.type, CSW_RECORD_START);
	for (int i = 0; i < 20; i++)
		assert_int_equal(ops->wait(run.drv, 10, NULL), 1);
	ops->snapshot(run.drv);
	while (ops->next(run.drv, 0, &rec)) {
		assert_int_not_equal(rec.type, CSW_RECORD_LOST);
		left++;
	}
	assert_int_equal(left, 15);
	end_run(&run);
}

/* Small rings stop the machine at every other record; still nothing of the past comes later. */
static void test_horizon_holds_between_small_rings(void **state)
{
	(void)state;
	for (int seed = 0; seed < 10; seed++) {
		char options[96];
		struct run run;

		snprintf(options, sizeof(options),
			 "cpus=64,threads=3000,switches=100000,ring=16,duration_ms=20,seed=%d",
			 seed);
		run_machine(&run, "seg_load", 1, options);
		assert_true(run.nr > 10000);
		end_run(&run);
	}
}

static void test_blind_idle_leaves_no_record(void **state)
{
	struct csw_sim_cpu_truth truth;
	size_t of_idle[2] = { 0 }, names_idle = 0, samples = 0;
	struct run run;

	(void)state;
	run_machine(&run, "switch", 1, "cpus=2,threads=4,blind_idle=1");
	for (size_t i = run.nr_tasks; i < run.nr; i++) {
		const struct csw_record *rec = &run.records[i];

		of_idle[rec->cpu] += rec->tid == 0;
		names_idle += rec->cpu == 1 && rec->other_tid == 0;
		samples += rec->cpu == 1 && rec->type == CSW_RECORD_SAMPLE;
	}
	csw_sim_cpu_truth_get(run.drv, 1, &truth);
	assert_true(of_idle[0] > 100);
	assert_int_equal(of_idle[1], 0);
	assert_true(names_idle > 100);
	assert_int_equal(advance(&run, 1, 0), truth.switches);
	assert_true(samples < truth.switches);
	assert_int_equal(count(&run, CSW_RECORD_LOST), 0);
	end_run(&run);
}

static void test_vanished_records_are_not_told(void **state)
{
	struct csw_sim_cpu_truth truth;
	struct run run;
	size_t samples;

	(void)state;
	run_machine(&run, "switch", 1, "cpus=1,vanish=100");
	csw_sim_cpu_truth_get(run.drv, 0, &truth);
	samples = count(&run, CSW_RECORD_SAMPLE);
	assert_true(samples > truth.switches * 8 / 10 && samples < truth.switches * 97 / 100);
	assert_true(count(&run, CSW_RECORD_SWITCH_OUT) < truth.switches * 97 / 100);
	assert_int_equal(count(&run, CSW_RECORD_LOST), 0);
	assert_int_equal(run.records[run.nr - 1].lost, 0);
	end_run(&run);
}

static void test_throttle_stops_the_trigger_alone(void **state)
{
	struct csw_sim_cpu_truth truth;
	uint64_t trigger = 0, cycles = 0, switches = 0, stopped_ns = 0;
	bool stopped = false;
	struct run run;

	(void)state;
	run_machine(&run, "seg_load", 1, "cpus=1,throttle=10,switches=10000");
	for (size_t i = run.nr_tasks; i < run.nr; i++) {
		const struct csw_record *rec = &run.records[i];

		if (rec->type == CSW_RECORD_THROTTLE) {
			assert_false(stopped);
			stopped = true;
			stopped_ns = rec->time_ns;
		} else if (rec->type == CSW_RECORD_UNTHROTTLE) {
			assert_true(stopped);
			stopped = false;
			assert_true(rec->time_ns - stopped_ns >= 1000000);
			assert_true(rec->time_ns - stopped_ns < 1100000);
		} else if (rec->type == CSW_RECORD_SAMPLE) {
			assert_false(stopped);
			assert_int_equal(rec->values[0], trigger + 1);
			assert_true(rec->values[2] >= cycles);
			trigger = rec->values[0];
			cycles = rec->values[2];
		} else if (rec->type == CSW_RECORD_SWITCH_OUT) {
			switches += stopped;
		}
	}
	csw_sim_cpu_truth_get(run.drv, 0, &truth);
	assert_true(count(&run, CSW_RECORD_THROTTLE) >= 99);
	assert_true(switches > 100);
	assert_int_equal(truth.triggers + switches, truth.switches);
	assert_int_equal(truth.triggers, trigger);
	end_run(&run);
}

static void test_sav_counts_occurrences(void **state)
{
	struct csw_sim_cpu_truth truth;
	struct run run;
	uint64_t samples = 0;

	(void)state;
	run_machine(&run, "seg_load", 7, "cpus=1");
	for (size_t i = 0; i < run.nr; i++)
		if (run.records[i].type == CSW_RECORD_SAMPLE)
			assert_int_equal(run.records[i].values[0], 7 * ++samples);
	csw_sim_cpu_truth_get(run.drv, 0, &truth);
	assert_int_equal(samples, truth.triggers / 7);
	assert_int_equal(advance(&run, 0, 0), truth.triggers);
	end_run(&run);
}

static void test_tids_are_used_again(void **state)
{
	struct run run;
	struct replay *r;

	(void)state;
	run_machine(&run, "switch", 1, "pid_max=512,churn=300");
	r = replay(&run);
	assert_true(r->nr_reused > 100);
	assert_truth(&run, r);
	end_replay(r);
	end_run(&run);
}

/* Some threads live for less than a millisecond from FORK to EXIT, and yet run. */
static void test_some_threads_are_brief(void **state)
{
	size_t brief = 0;
	struct run run;

	(void)state;
	run_machine(&run, "switch", 1, busy);
	for (size_t i = 0; i < run.nr; i++) {
		for (size_t j = i; run.records[i].type == CSW_RECORD_FORK && j < run.nr; j++) {
			if (run.records[j].time_ns - run.records[i].time_ns > 1000000)
				break;
			if (run.records[j].type == CSW_RECORD_EXIT &&
			    run.records[j].tid == run.records[i].tid)
				brief++;
		}
	}
	assert_true(brief > 10);
	end_run(&run);
}

static void test_start_scan_and_ends(void **state)
{
	size_t self = 0, kernel = 0;
	int32_t tid = 0;
	struct run run;

	(void)state;
	run_machine(&run, "switch", 1, "cpus=3,threads=50");
	for (size_t i = 0; i < run.nr; i++) {
		const struct csw_record *rec = &run.records[i];

		if (rec->type == CSW_RECORD_TASK) {
			assert_true(rec->tid > 0 && rec->comm[0]);
			kernel += rec->flags == CSW_RECORD_KERNEL_THREAD;
			self += rec->flags == CSW_RECORD_SELF;
			tid = rec->flags == CSW_RECORD_SELF ? rec->tid : tid;
		}
		if (rec->type == CSW_RECORD_START || rec->type == CSW_RECORD_STOP)
			assert_int_equal(rec->tid, tid);
	}
	assert_int_equal(run.nr_tasks, 50 + 1 + 1 + 3 + 1); /* init, kthreadd, kworkers, self */
	assert_int_equal(kernel, 1 + 3);
	assert_int_equal(self, 1);
	assert_int_equal(count(&run, CSW_RECORD_START), 3);
	assert_int_equal(count(&run, CSW_RECORD_STOP), 3);
	end_run(&run);
}

static void test_duration_is_kept(void **state)
{
	struct run run;
	uint64_t ns;

	(void)state;
	run_machine(&run, "switch", 1, "cpus=1,duration_ms=123");
	ns = run.records[run.nr - 1].time_ns - run.records[run.nr_tasks].time_ns;
	assert_true(ns >= 123000000 && ns < 124000000);
	end_run(&run);
}

/* The wish for the pace is met within a factor of two. */
static void test_pace_is_about_as_wished(void **state)
{
	static const unsigned wishes[] = { 500, 3000, 50000 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct csw_sim_cpu_truth truth;
		uint64_t switches = 0;
		char options[64];
		struct run run;

		snprintf(options, sizeof(options), "cpus=4,switches=%u", wishes[i]);
		run_machine(&run, "switch", 1, options);
		for (unsigned cpu = 0; cpu < 4; cpu++) {
			csw_sim_cpu_truth_get(run.drv, cpu, &truth);
			switches += truth.switches;
		}
		assert_in_range(switches / 4, wishes[i] / 2, wishes[i] * 2);
		end_run(&run);
	}
}

static void refused(const char *options, const char *expected)
{
	struct csw_plan plan = { .driver_opts = options };
	struct csw_driver *drv = (struct csw_driver *)&plan;
	struct csw_error err = { 0 };

	assert_int_equal(ops->resolve_trigger("switch", 1, &plan.trigger, &err), 0);
	assert_int_equal(ops->open(&drv, &plan, &err), -EINVAL);
	assert_null(drv);
	assert_int_equal(err.code, -EINVAL);
	if (!strstr(err.text, expected))
		fail_msg("'%s' does not say '%s'", err.text, expected);
}

static void test_absurd_options_are_refused(void **state)
{
	(void)state;
	refused("cpu=4", "nearest: cpus");
	refused("zzzzzzzzzz=4", "stall_ms");
	refused("cpus", "from 1 to 4096");
	refused("cpus=", "from 1 to 4096");
	refused("cpus=0", "from 1 to 4096");
	refused("cpus=4097", "from 1 to 4096");
	refused("cpus=-1", "from 1 to 4096");
	refused("cpus=4x", "from 1 to 4096");
	refused("seed=99999999999999999999", "seed");
	refused("cpus=4,,seed=1", "no option ''");
	refused("skid=2", "from 0 to 1");
	refused("cpus=2,blind_idle=2", "from 0 to 1");
	refused("throttle=1", "at least 2");
	refused("ring=3", "at least 16");
	refused("threads=1000,pid_max=512", "use at least pid_max=");
}

static void test_counter_names(void **state)
{
	struct csw_error err = { 0 };
	struct csw_event event;

	(void)state;
	assert_int_equal(ops->resolve_counter("llc_misses", &event, &err), 0);
	assert_string_equal(event.name, "llc_misses");
	assert_string_equal(event.became, "simulated LLC_MISSES");
	assert_int_equal(event.flags, CSW_EVENT_HARDWARE);
	assert_int_equal(ops->resolve_counter("page-faults", &event, &err), 0);
	assert_int_equal(event.flags, CSW_EVENT_NEVER_IDLE);
	assert_int_equal(ops->resolve_counter("task-clock", &event, &err), 0);
	assert_int_equal(event.flags, CSW_EVENT_CLOCK | CSW_EVENT_NANOSECONDS);
	assert_int_equal(ops->resolve_counter("LLC_MISES", &event, &err), -ENOENT);
	assert_non_null(strstr(err.text, "LLC_MISSES"));
}

static int plan_for(struct csw_plan *plan, const char *trigger, const char *events, uint64_t sav,
		    const char *options, struct csw_error *err)
{
	*plan = (struct csw_plan){ .driver_opts = options };
	return csw_spec_plan(plan, ops, trigger, events, sav, err);
}

static void test_trigger_names(void **state)
{
	static const char *const absent[] = { "ldt_load",      "desc_load",  "mem_load:x",
					      "mem_store:0x1", "pid_change", "tid_change",
					      "tlb_flush",     "cycles" };
	struct csw_error err = { 0 };
	struct csw_trigger trigger;
	struct csw_plan plan;

	(void)state;
	assert_int_equal(ops->resolve_trigger("auto", 3, &trigger, &err), 0);
	assert_string_equal(trigger.event.name, "auto");
	assert_non_null(strstr(trigger.event.became, "seg_load"));
	assert_int_equal(trigger.sav, 3);
	assert_int_equal(trigger.phase, CSW_PHASE_INSIDE);
	assert_int_equal(trigger.event.flags, CSW_EVENT_HARDWARE);
	assert_int_equal(ops->resolve_trigger("context-switches", 1, &trigger, &err), 0);
	assert_int_equal(trigger.phase, CSW_PHASE_BEFORE);
	assert_int_equal(trigger.per_switch, 1);
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		assert_int_equal(plan_for(&plan, absent[i], "cycles", 1, NULL, &err), -EOPNOTSUPP);
		assert_non_null(strstr(err.text, "switch and seg_load"));
	}
	assert_int_equal(ops->resolve_trigger("swich", 1, &trigger, &err), -ENOENT);
	assert_non_null(strstr(err.text, "nearest: switch"));
	assert_int_equal(ops->resolve_trigger("switch", 0, &trigger, &err), -EINVAL);
	assert_int_equal(ops->resolve_trigger("switch", 1ULL << 47, &trigger, &err), -EINVAL);
}

/* What a name is on a model, and where its samples stand. */
static void test_models(void **state)
{
	static const struct {
		const char *trigger, *options;
		uint64_t sav;
		uint32_t per_switch, phase;
	} cases[] = {
		{ "seg_load", "model=amd", 2, 2, CSW_PHASE_INSIDE },
		{ "seg_load", "model=amd", 4, 2, CSW_PHASE_INSIDE },
		{ "seg_load", "model=amd", 3, 0, CSW_PHASE_ANY },
		{ "seg_load", "spurious=1", 1, 0, CSW_PHASE_ANY },
		{ "tid_change", "model=amd,spurious=1", 1, 1, CSW_PHASE_INSIDE },
		{ "tlb_flush", "model=intel", 1, 0, CSW_PHASE_ANY },
		{ "desc_load", "model=p5", 1, 0, CSW_PHASE_ANY },
		{ "ldt_load", "model=p5,ldt=1000", 1, 0, CSW_PHASE_ANY },
		{ "pid_change", "model=arm64", 1, 0, CSW_PHASE_ANY },
		{ "mem_store:0xc0402a40", "model=p5", 1, 1, CSW_PHASE_INSIDE },
		{ "auto", "model=arm64", 1, 1, CSW_PHASE_INSIDE },
		{ "switch", "model=arm64,spurious=9", 1, 1, CSW_PHASE_BEFORE },
	};
	struct csw_error err = { 0 };
	struct csw_plan plan;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (plan_for(&plan, cases[i].trigger, "cycles", cases[i].sav, cases[i].options,
			     &err) < 0)
			fail_msg("%s", err.text);
		assert_string_equal(plan.trigger.event.name, cases[i].trigger);
		assert_int_equal(plan.trigger.per_switch, cases[i].per_switch);
		assert_int_equal(plan.trigger.phase, cases[i].phase);
		assert_int_equal(plan.trigger.sav, cases[i].sav);
	}
}

static void test_models_refuse_with_the_reason(void **state)
{
	static const struct {
		const char *trigger, *event, *options, *reason;
	} cases[] = {
		{ "seg_load", "cycles", "model=intel", "FSGSBASE" },
		{ "ldt_load", "cycles", "model=intel", "Pentium" },
		{ "ldt_load", "cycles", "model=arm64", "no segments" },
		{ "tlb_flush", "cycles", NULL, "model=amd, intel" },
		{ "mem_load:current_task", "cycles", "model=arm64", "mem_load:__entry_task" },
		{ "mem_load:nowhere", "cycles", "model=p5", "(model=p5) has no mem_load:nowhere" },
		{ "mem_store:0xc0402a41", "cycles", "model=p5", "mem_store:current_task" },
		{ "pid_change", "cycles", "model=amd", "tlb_flush" },
		{ "switch", "seg_load", "model=intel", "FSGSBASE" },
	};
	struct csw_error err = { 0 };
	struct csw_driver *drv;
	struct csw_plan plan;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(plan_for(&plan, cases[i].trigger, cases[i].event, 1,
					  cases[i].options, &err),
				 -EOPNOTSUPP);
		assert_non_null(strstr(err.text, cases[i].reason));
	}
	assert_int_equal(plan_for(&plan, "switch", "cycles", 1, "model=vax", &err), -EINVAL);
	assert_non_null(strstr(err.text, "generic, amd, intel, p5, arm64"));
	/* A plan that was made for another model. */
	assert_int_equal(plan_for(&plan, "desc_load", "cycles", 1, "model=p5", &err), 0);
	plan.driver_opts = "model=amd";
	assert_int_equal(ops->open(&drv, &plan, &err), -EINVAL);
	assert_non_null(strstr(err.text, "model=amd"));
}

/* The least period of the hardware's triggers: taken and said, or refused where it would mix. */
static void test_floor(void **state)
{
	struct csw_error err = { 0 };
	struct csw_plan plan;

	(void)state;
	assert_int_equal(plan_for(&plan, "seg_load", "cycles", 1, "model=amd,floor=2", &err), 0);
	assert_int_equal(plan.trigger.sav, 2);
	assert_int_equal(plan.trigger.per_switch, 2);
	assert_non_null(
		strstr(plan.trigger.event.became, "(sav 1 -> 2, the events per switch here)"));
	assert_int_equal(plan_for(&plan, "seg_load", "cycles", 3, "model=amd,floor=2", &err), 0);
	assert_int_equal(plan.trigger.sav, 3);
	assert_null(strstr(plan.trigger.event.became, "->"));
	assert_int_equal(plan_for(&plan, "tid_change", "cycles", 1, "model=amd,floor=2", &err), 0);
	assert_int_equal(plan.trigger.sav, 1);
	assert_int_equal(plan_for(&plan, "switch", "cycles", 1, "floor=2", &err), 0);
	assert_int_equal(plan.trigger.sav, 1);
	assert_int_equal(plan_for(&plan, "seg_load", "cycles", 1, "floor=2", &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "raises sav 1 to 2"));
	assert_int_equal(plan_for(&plan, "desc_load", "cycles", 1, "model=p5,floor=2", &err),
			 -EOPNOTSUPP);
	assert_int_equal(plan_for(&plan, "desc_load", "cycles", 2, "model=p5,floor=2", &err), 0);
}

/* Occurrences by the kind of switch, counted beside the kernel's own count of switches. */
static void test_switches_cause_by_their_kind(void **state)
{
	static const struct {
		const char *event, *options;
		uint64_t each[CSW_SIM_SWITCH_KINDS];
	} cases[] = {
		{ "seg_load", "seed=3,model=amd", { 2, 2, 2, 2, 2, 2 } },
		{ "tlb_flush", "seed=4,model=amd", { 0, 1, 0, 1, 0, 1 } },
		{ "desc_load", "seed=5,model=p5", { 1, 2, 2, 2, 2, 2 } },
		{ "pid_change", "seed=6,model=arm64", { 0, 1, 1, 1, 1, 1 } },
	};
	struct csw_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t counted = 0, caused = 0;
		struct run run = { .nr = 0 };

		assert_int_equal(
			plan_for(&run.plan, "switch", cases[i].event, 1, cases[i].options, &err),
			0);
		live(&run, 10);
		for (unsigned cpu = 0; cpu < run.nr_cpus; cpu++) {
			struct csw_sim_cpu_truth truth;

			csw_sim_cpu_truth_get(run.drv, cpu, &truth);
			counted += advance(&run, cpu, 1);
			for (int kind = 0; kind < CSW_SIM_SWITCH_KINDS; kind++) {
				assert_true(truth.by_kind[kind] > 0);
				caused += truth.by_kind[kind] * cases[i].each[kind];
			}
		}
		assert_int_equal(counted, caused);
		end_run(&run);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_switch_trigger_leads_to_truth),
		cmocka_unit_test(test_seg_load_trigger_leads_to_truth),
		cmocka_unit_test(test_skid_leads_to_truth),
		cmocka_unit_test(test_many_seeds_lead_to_truth),
		cmocka_unit_test(test_seed_decides_all),
		cmocka_unit_test(test_seed_means_the_same_everywhere),
		cmocka_unit_test(test_faults_leave_the_truth_alone),
		cmocka_unit_test(test_truths_add_up_to_the_counters),
		cmocka_unit_test(test_idle_causes_what_it_can),
		cmocka_unit_test(test_counters_wrap),
		cmocka_unit_test(test_overflow_is_told),
		cmocka_unit_test(test_overflow_at_the_end_is_told_by_stop_alone),
		cmocka_unit_test(test_lost_record_needs_room_too),
		cmocka_unit_test(test_horizon_holds_between_small_rings),
		cmocka_unit_test(test_blind_idle_leaves_no_record),
		cmocka_unit_test(test_vanished_records_are_not_told),
		cmocka_unit_test(test_throttle_stops_the_trigger_alone),
		cmocka_unit_test(test_sav_counts_occurrences),
		cmocka_unit_test(test_tids_are_used_again),
		cmocka_unit_test(test_some_threads_are_brief),
		cmocka_unit_test(test_start_scan_and_ends),
		cmocka_unit_test(test_duration_is_kept),
		cmocka_unit_test(test_pace_is_about_as_wished),
		cmocka_unit_test(test_absurd_options_are_refused),
		cmocka_unit_test(test_counter_names),
		cmocka_unit_test(test_trigger_names),
		cmocka_unit_test(test_models),
		cmocka_unit_test(test_models_refuse_with_the_reason),
		cmocka_unit_test(test_floor),
		cmocka_unit_test(test_switches_cause_by_their_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
