/*
 * See machine.h. How to read this file: events in a heap move the clock; a CPU's event ends what
 * its current thread does; act() says what follows; switch_to() is the one place where a CPU
 * changes hands; settle() the one where what running causes happens, cause() and spurious() those
 * of what switches and interrupts cause.
 *
 * Invariant: between two events of a CPU nothing but the passing of time happens on it.
 */
#include "drivers/sim/machine.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "csw/csw.h"

#define BOOT_NS 1000000000ULL /* the clock when the measuring program comes */
#define VISIT_NS 20000ULL     /* the measuring program's work on one CPU */
#define KICK_NS 500ULL        /* from a wake-up to an idle CPU's reaction */
#define EXIT_NS 4000ULL       /* work of a thread between its EXIT record and its last switch */
#define EXEC_NS 8000ULL       /* ... and between its new TID and its new name */
#define READ_NS 50000ULL      /* how long it may wait for a disk on the way, on the average */
#define RESERVED_PIDS 300     /* as in Linux: after a wrap the TIDs go on from here */
#define THREADS_PER_CHUNK 1024

enum what {
	THREAD_WAKES,
	CPU_EXPIRES,
	TIMER,
	SPURIOUS,
};

struct event {
	uint64_t time_ns;
	uint64_t seq; /* order at the same time; also tells a cancelled event from a valid one */
	uint32_t what;
	uint32_t cpu;
	struct csw_sim_thread *thread;
};

struct csw_sim_machine {
	struct csw_sim_machine_opts opts;
	struct csw_sim_observer observer;
	struct csw_sim_random random;
	uint64_t now_ns;
	uint64_t burst_ns, sleep_ns; /* means */
	uint64_t spurious_ns;        /* ... and between two spurious occurrences, 0: none */
	const struct csw_sim_source *trigger; /* NULL: the kernel's own count */

	struct csw_sim_cpu *cpus;
	/* CPUs in this range run threads; the others are not counted yet, or not any more. */
	uint32_t online_from, online_to;

	/* Threads never move and are never freed: their books stay. */
	struct csw_sim_thread **chunks;
	size_t nr_threads, nr_chunks;
	size_t nr_users; /* alive, of user space, in nr_groups processes */
	size_t nr_groups;
	struct csw_sim_thread *self;

	uint8_t *tid_used; /* by TID */
	int32_t last_tid;
	uint32_t nr_tids;

	struct event *heap;
	size_t nr_events, heap_capacity;
	uint64_t seq;
};

static const char *const programs[] = { "postgres", "nginx", "java", "python3", "make",  "cc1",
					"sshd",     "redis", "node", "bash",    "rsync", "gzip" };
static const char *const roles[] = { "worker", "io", "timer", "gc", "net", "flush" };

#define NR(array) (uint32_t)(sizeof(array) / sizeof((array)[0]))

/* Events per 2^20 ns (about a millisecond) of a thread with average habits. */
static const uint32_t typical_rates[CSW_SIM_RATED] = {
	[CSW_SIM_CYCLES] = 3000000,       [CSW_SIM_INSTRUCTIONS] = 4000000,
	[CSW_SIM_BRANCHES] = 800000,      [CSW_SIM_BRANCH_MISSES] = 9000,
	[CSW_SIM_LLC_REFERENCES] = 20000, [CSW_SIM_LLC_MISSES] = 3000,
	[CSW_SIM_PAGE_FAULTS] = 12,
};

/* An idle CPU is halted: a few interrupts and the traffic of others are all that happens. */
static const uint32_t idle_rates[CSW_SIM_RATED] = {
	[CSW_SIM_INSTRUCTIONS] = 900,   [CSW_SIM_BRANCHES] = 200,  [CSW_SIM_BRANCH_MISSES] = 20,
	[CSW_SIM_LLC_REFERENCES] = 300, [CSW_SIM_LLC_MISSES] = 80,
};

/* ---- dice ---- */

static uint32_t dice(struct csw_sim_machine *m, uint32_t n)
{
	return csw_sim_random_below(&m->random, n);
}

/* Exponentially distributed around mean: -ln(u) = ln 2 * -log2(u), with log2 interpolated between
 * powers of two. In integers, so that a seed means the same on every machine. */
static uint64_t exponential_of(struct csw_sim_random *random, uint64_t mean)
{
	uint64_t u = csw_sim_random_next(random) | 1;
	unsigned zeros = (unsigned)__builtin_clzll(u);
	uint64_t fraction = (u << zeros) << 1 >> 48; /* the 16 bits behind the leading one */
	uint64_t log2_16 = ((uint64_t)zeros << 16) + 65536 - fraction;

	return mean * log2_16 / 94548; /* 65536 / ln 2 */
}

static uint64_t exponential(struct csw_sim_machine *m, uint64_t mean)
{
	return exponential_of(&m->random, mean);
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- events: a binary heap ---- */

static bool earlier(const struct event *a, const struct event *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->seq < b->seq;
}

/* What one step can push at most: each CPU at most one event, and a few wake-ups. Reserved before
 * the step, so that nothing within it can fail. */
static int reserve_events(struct csw_sim_machine *m)
{
	size_t need = m->nr_events + m->opts.nr_cpus + 4;
	struct event *heap;

	if (need <= m->heap_capacity)
		return 0;
	heap = realloc(m->heap, 2 * need * sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	m->heap = heap;
	m->heap_capacity = 2 * need;
	return 0;
}

static uint64_t push(struct csw_sim_machine *m, uint64_t time_ns, uint32_t what, uint32_t cpu,
		     struct csw_sim_thread *thread)
{
	struct event event = {
		.time_ns = time_ns, .seq = ++m->seq, .what = what, .cpu = cpu, .thread = thread
	};
	size_t i = m->nr_events++;

	assert(m->nr_events <= m->heap_capacity);
	while (i && earlier(&event, &m->heap[(i - 1) / 2])) {
		m->heap[i] = m->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	m->heap[i] = event;
	return event.seq;
}

static struct event pop(struct csw_sim_machine *m)
{
	struct event top = m->heap[0], last = m->heap[--m->nr_events];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < m->nr_events) {
		if (child + 1 < m->nr_events && earlier(&m->heap[child + 1], &m->heap[child]))
			child++;
		if (!earlier(&m->heap[child], &last))
			break;
		m->heap[i] = m->heap[child];
		i = child;
	}
	m->heap[i] = last;
	return top;
}

/* ---- TIDs ---- */

/* Upwards, around at pid_max, past those in use. The caller has made sure that one is free. */
static int32_t tid_alloc(struct csw_sim_machine *m)
{
	do {
		if (++m->last_tid >= (int32_t)m->opts.pid_max)
			m->last_tid = RESERVED_PIDS;
	} while (m->tid_used[m->last_tid]);
	m->tid_used[m->last_tid] = 1;
	m->nr_tids++;
	return m->last_tid;
}

static void tid_free(struct csw_sim_machine *m, int32_t tid)
{
	m->tid_used[tid] = 0;
	m->nr_tids--;
}

static bool tids_left(const struct csw_sim_machine *m)
{
	return m->nr_tids + RESERVED_PIDS < m->opts.pid_max;
}

/* ---- threads and processes ---- */

static struct csw_sim_thread *thread_at(const struct csw_sim_machine *m, size_t i)
{
	return &m->chunks[i / THREADS_PER_CHUNK][i % THREADS_PER_CHUNK];
}

/* A step makes at most one thread. */
static int reserve_thread(struct csw_sim_machine *m)
{
	struct csw_sim_thread **chunks;

	if (m->nr_threads < m->nr_chunks * THREADS_PER_CHUNK)
		return 0;
	chunks = realloc(m->chunks, (m->nr_chunks + 1) * sizeof(struct csw_sim_thread *));
	if (!chunks)
		return -ENOMEM;
	m->chunks = chunks;
	chunks[m->nr_chunks] = calloc(THREADS_PER_CHUNK, sizeof(struct csw_sim_thread));
	if (!chunks[m->nr_chunks])
		return -ENOMEM;
	m->nr_chunks++;
	return 0;
}

static bool is_leader(const struct csw_sim_thread *t)
{
	return t->tid == t->process->pid;
}

/* Every thread has its own habits: half to twice the typical rate of each event. */
static void draw_rates(struct csw_sim_machine *m, struct csw_sim_thread *t)
{
	for (int e = 0; e < CSW_SIM_RATED; e++)
		t->rates[e] = (uint32_t)((uint64_t)typical_rates[e] * (50 + dice(m, 151)) / 100);
	if (t->kind == CSW_KIND_KERNEL)
		t->rates[CSW_SIM_PAGE_FAULTS] = 0;
}

/* process NULL: a new one. Needs a reserved place and a free TID. */
static struct csw_sim_thread *new_thread(struct csw_sim_machine *m, uint32_t kind,
					 struct csw_sim_process *process, int32_t parent_pid)
{
	struct csw_sim_thread *t = thread_at(m, m->nr_threads++);

	t->kind = kind;
	t->tid = tid_alloc(m);
	t->birth_ns = m->now_ns;
	t->pinned = -1;
	t->state = CSW_SIM_SLEEPING;
	if (!process) {
		process = &t->own;
		process->pid = t->tid;
		process->parent_pid = parent_pid;
		m->nr_groups += kind == CSW_KIND_THREAD;
	}
	m->nr_users += kind == CSW_KIND_THREAD;
	t->process = process;
	process->nr_threads++;
	t->sibling_next = process->threads;
	t->sibling_link = &process->threads;
	if (t->sibling_next)
		t->sibling_next->sibling_link = &t->sibling_next;
	process->threads = t;
	draw_rates(m, t);
	return t;
}

/* The leader's TID is the process's number and in use as long as a thread of it lives. */
static void bury(struct csw_sim_machine *m, struct csw_sim_thread *t)
{
	struct csw_sim_process *process = t->process;

	t->state = CSW_SIM_GONE;
	*t->sibling_link = t->sibling_next;
	if (t->sibling_next)
		t->sibling_next->sibling_link = t->sibling_link;
	m->nr_users--;
	if (!is_leader(t))
		tid_free(m, t->tid);
	if (--process->nr_threads == 0) {
		tid_free(m, process->pid);
		m->nr_groups--;
	}
}

/* ---- run queues ---- */

static void enqueue(struct csw_sim_cpu *cpu, struct csw_sim_thread *t)
{
	t->state = CSW_SIM_QUEUED;
	t->queue_next = NULL;
	*cpu->queue_tail = t;
	cpu->queue_tail = &t->queue_next;
}

static struct csw_sim_thread *dequeue(struct csw_sim_cpu *cpu)
{
	struct csw_sim_thread *t = cpu->queue_head;

	cpu->queue_head = t->queue_next;
	if (!cpu->queue_head)
		cpu->queue_tail = &cpu->queue_head;
	return t;
}

static bool is_online(const struct csw_sim_machine *m, uint32_t cpu)
{
	return cpu >= m->online_from && cpu < m->online_to;
}

static struct csw_sim_cpu *any_cpu(struct csw_sim_machine *m)
{
	return &m->cpus[m->online_from + dice(m, m->online_to - m->online_from)];
}

/* A CPU that runs out of work looks into one other queue; a pinned thread stays where it is. */
static struct csw_sim_thread *pick_next(struct csw_sim_machine *m, struct csw_sim_cpu *cpu)
{
	struct csw_sim_cpu *other;

	if (cpu->queue_head)
		return dequeue(cpu);
	other = any_cpu(m);
	if (other->queue_head && other->queue_head->pinned < 0)
		return dequeue(other);
	return &cpu->idle;
}

/* Mostly where it ran last, sometimes elsewhere; not on a busy CPU when the first other one looked
 * at is idle. */
static struct csw_sim_cpu *choose_cpu(struct csw_sim_machine *m, const struct csw_sim_thread *t)
{
	struct csw_sim_cpu *home = &m->cpus[t->cpu], *other;

	if (t->pinned >= 0)
		return &m->cpus[t->pinned];
	other = any_cpu(m);
	if (!is_online(m, home->nr) || dice(m, 8) == 0)
		return other;
	return home->current != &home->idle && other->current == &other->idle ? other : home;
}

static void arm(struct csw_sim_machine *m, struct csw_sim_cpu *cpu, uint64_t time_ns)
{
	cpu->armed_seq = push(m, time_ns, CPU_EXPIRES, cpu->nr, NULL);
}

static void wake(struct csw_sim_machine *m, struct csw_sim_thread *t)
{
	struct csw_sim_cpu *cpu;

	t->wake_seq = 0;
	if (m->online_from == m->online_to || (t->pinned >= 0 && !is_online(m, t->pinned)))
		return; /* sleeps for good: nobody counts there any more */
	cpu = choose_cpu(m, t);
	enqueue(cpu, t);
	if (cpu->current == &cpu->idle && !cpu->armed_seq)
		arm(m, cpu, max(m->now_ns, cpu->ready_ns) + KICK_NS);
}

static void sleep_until(struct csw_sim_machine *m, struct csw_sim_thread *t, uint64_t time_ns)
{
	t->state = CSW_SIM_SLEEPING;
	t->wake_seq = push(m, time_ns, THREAD_WAKES, 0, t);
}

/* ---- what running causes ---- */

/* Into the thread's books and the PMU. True: the trigger overflowed. */
static bool happen(struct csw_sim_cpu *cpu, struct csw_sim_thread *t,
		   const uint64_t by[CSW_SIM_EVENTS])
{
	for (int e = 0; e < CSW_SIM_EVENTS; e++) {
		t->tally.events[e] += by[e];
		if (cpu->pmu.events_on >> e & 1)
			t->tally.counted[e] += by[e];
	}
	if (csw_sim_pmu_trigger_counts(&cpu->pmu))
		cpu->triggers += by[cpu->pmu.trigger.event];
	return csw_sim_pmu_count(&cpu->pmu, by);
}

static void settle_clock(struct csw_sim_cpu *cpu, uint64_t until_ns)
{
	uint64_t by[CSW_SIM_EVENTS] = { [CSW_SIM_TASK_CLOCK] = until_ns - cpu->clock_ns };

	happen(cpu, cpu->current, by);
	cpu->clock_ns = until_ns;
}

/* Events come in waves, half to one and a half of the thread's rate; the dice round, so that rare
 * events happen too. Both are drawn when a run begins: however often it is looked at until it ends,
 * the same happens in it. */
static void begin_run(struct csw_sim_machine *m, struct csw_sim_cpu *cpu, uint64_t time_ns)
{
	cpu->run_ns = time_ns;
	cpu->pace = 128 + dice(m, 257);
	for (int e = 0; e < CSW_SIM_RATED; e++)
		cpu->rounding[e] = dice(m, 1u << 28);
	memset(cpu->counted, 0, sizeof(cpu->counted));
}

/* The current thread has run until now: its events happen. */
static void settle(struct csw_sim_cpu *cpu, uint64_t until_ns)
{
	const struct csw_sim_thread *t = cpu->current;
	uint64_t by[CSW_SIM_EVENTS] = { 0 };

	for (int e = 0; e < CSW_SIM_RATED; e++) {
		unsigned __int128 exact =
			(unsigned __int128)(until_ns - cpu->run_ns) * (t->rates[e] * cpu->pace);
		uint64_t all = (uint64_t)((exact + cpu->rounding[e]) >> 28);

		by[e] = all - cpu->counted[e];
		cpu->counted[e] = all;
	}
	by[CSW_SIM_TASK_CLOCK] = until_ns - cpu->clock_ns;
	cpu->clock_ns = until_ns;
	happen(cpu, cpu->current, by);
}

/* ---- bursts: what a thread will do next ---- */

static uint8_t choose_churn(struct csw_sim_machine *m, const struct csw_sim_thread *t)
{
	const struct csw_sim_process *process = t->process;

	if (dice(m, 8) == 0)
		return CSW_SIM_RENAME;
	if (dice(m, 16) == 0 && !process->ending)
		return CSW_SIM_EXEC;
	if (m->nr_users < m->opts.nr_threads + 2) /* init, and one that stays */
		return m->nr_groups < m->opts.nr_processes || dice(m, 8) == 0 ? CSW_SIM_FORK_PROCESS
									      : CSW_SIM_FORK_THREAD;
	/* A leader takes its process with it; the last process but init stays. */
	if (is_leader(t) && (m->nr_groups <= 2 || (process->nr_threads > 1 && dice(m, 16))))
		return CSW_SIM_SLEEP;
	return CSW_SIM_EXIT;
}

static void plan_burst(struct csw_sim_machine *m, struct csw_sim_thread *t)
{
	t->burst_ns = 500 + exponential(m, m->burst_ns);
	if (t->kind != CSW_KIND_THREAD)
		t->act = CSW_SIM_SLEEP;
	else if (t->brief)
		t->act = CSW_SIM_EXIT;
	else if (dice(m, 1000) < m->opts.churn_permille)
		t->act = choose_churn(m, t);
	else
		t->act = dice(m, 8) ? CSW_SIM_SLEEP : CSW_SIM_YIELD;
}

static void plan(struct csw_sim_thread *t, uint8_t act, uint64_t burst_ns)
{
	t->act = act;
	t->burst_ns = burst_ns;
}

/* A killed thread that is not yet on its way out gets there next. */
static void obey_kill(struct csw_sim_thread *t)
{
	if (t->doomed && t->act != CSW_SIM_EXIT && t->act != CSW_SIM_EXIT_BLOCK &&
	    t->act != CSW_SIM_DIE)
		plan(t, CSW_SIM_EXIT, EXIT_NS);
}

static void arm_current(struct csw_sim_machine *m, struct csw_sim_cpu *cpu)
{
	uint64_t end_ns = cpu->ran_ns + cpu->current->burst_ns;

	arm(m, cpu, end_ns < cpu->timeslice_end_ns ? end_ns : cpu->timeslice_end_ns);
}

/* ---- the context switch ---- */

/* The three instants of a switch, 1 to 3 us apart, in the order of the moment at which the trigger
 * reads. */
static void set_instants(struct csw_sim_machine *m, struct csw_sim_switch *sw, uint64_t begin_ns)
{
	uint64_t second_ns = begin_ns + 1000 + dice(m, 2000);
	uint64_t third_ns = second_ns + 1000 + dice(m, 2000);

	sw->out_ns = sw->moment == CSW_SIM_BEFORE ? second_ns : begin_ns;
	sw->in_ns = sw->moment == CSW_SIM_LATE ? second_ns : third_ns;
	sw->trigger_ns = sw->moment == CSW_SIM_BEFORE   ? begin_ns
			 : sw->moment == CSW_SIM_INSIDE ? second_ns
							: third_ns;
}

static void tally_leaving(struct csw_sim_cpu *cpu, const struct csw_sim_switch *sw)
{
	struct csw_sim_tally *tally = &cpu->current->tally;

	tally->slices++;
	tally->oncpu_ns += sw->out_ns - cpu->oncpu_ns;
	if (sw->preempted)
		tally->preempted++;
	else
		tally->voluntary++;
	cpu->oncpu_ns = sw->out_ns;
}

static void set_current(struct csw_sim_machine *m, struct csw_sim_cpu *cpu,
			struct csw_sim_thread *next, uint64_t time_ns)
{
	cpu->current = next;
	cpu->ready_ns = cpu->ran_ns = time_ns;
	cpu->timeslice_end_ns = time_ns + 2 * m->burst_ns;
	next->cpu = cpu->nr;
	next->state = CSW_SIM_RUNNING;
	begin_run(m, cpu, time_ns);
}

static enum csw_sim_switch_kind kind_of(const struct csw_sim_thread *prev,
					const struct csw_sim_thread *next)
{
	if (next->kind == CSW_KIND_IDLE)
		return CSW_SIM_TO_IDLE;
	if (prev->kind == CSW_KIND_IDLE)
		return CSW_SIM_FROM_IDLE;
	if (next->kind == CSW_KIND_KERNEL)
		return CSW_SIM_TO_KERNEL;
	if (prev->kind == CSW_KIND_KERNEL)
		return CSW_SIM_FROM_KERNEL;
	return prev->process == next->process ? CSW_SIM_TO_THREAD : CSW_SIM_TO_PROCESS;
}

/* Told by the process's number, not by dice: they are the machine's, whatever its model. */
static bool has_ldt(const struct csw_sim_machine *m, const struct csw_sim_thread *t)
{
	struct csw_sim_random random = { m->opts.seed ^ ((uint64_t)t->process->pid << 32) };

	return t->kind == CSW_KIND_THREAD &&
	       csw_sim_random_below(&random, 1000) < m->opts.ldt_permille;
}

static unsigned occurrences(const struct csw_sim_machine *m, const struct csw_sim_source *source,
			    const struct csw_sim_switch *sw)
{
	if ((source->flags & CSW_SIM_LDT_ONLY) && !has_ldt(m, sw->prev) && !has_ldt(m, sw->next))
		return 0;
	return source->counts[sw->kind];
}

static void overflow(struct csw_sim_machine *m, struct csw_sim_cpu *cpu, uint64_t time_ns,
		     const struct csw_sim_thread *found)
{
	m->observer.sampled(m->observer.ctx, cpu, time_ns, found);
	csw_sim_pmu_reset(&cpu->pmu);
}

/* What the switch itself causes, as the model has it: the first occurrence of each event, then the
 * second ones. They are the outgoing thread's up to the first overflow, and the incoming one's
 * after it. */
static void cause(struct csw_sim_machine *m, struct csw_sim_cpu *cpu,
		  const struct csw_sim_switch *sw)
{
	const struct csw_sim_model *model = m->opts.model;
	bool late = sw->moment == CSW_SIM_LATE ||
		    (m->trigger && (m->trigger->flags & CSW_SIM_SHOWS_NEXT));
	bool more = true;
	struct csw_sim_thread *whose = sw->moment == CSW_SIM_BEFORE ? sw->next : sw->prev;

	for (unsigned n = 1; more; n++) {
		uint64_t by[CSW_SIM_EVENTS] = { 0 };

		more = false;
		for (size_t i = 0; i < model->nr_sources; i++) {
			const struct csw_sim_source *source = &model->sources[i];
			unsigned all = occurrences(m, source, sw);

			by[source->event] = n <= all;
			more |= n < all;
		}
		if (!happen(cpu, whose, by))
			continue;
		overflow(m, cpu, sw->trigger_ns, late ? sw->next : sw->prev);
		whose = sw->next;
	}
}

/* Interrupts and user code: an occurrence of each event that they cause too. Not in the middle of a
 * switch. */
static void spurious(struct csw_sim_machine *m, struct csw_sim_cpu *cpu)
{
	const struct csw_sim_model *model = m->opts.model;
	uint64_t time_ns = max(m->now_ns, cpu->ready_ns), by[CSW_SIM_EVENTS] = { 0 };

	for (size_t i = 0; i < model->nr_sources; i++)
		by[model->sources[i].event] = model->sources[i].flags & CSW_SIM_ALSO_ELSE ? 1 : 0;
	settle(cpu, time_ns);
	if (happen(cpu, cpu->current, by))
		overflow(m, cpu, time_ns, cpu->current);
	push(m, time_ns + 1 + exponential_of(&cpu->spurious, m->spurious_ns), SPURIOUS, cpu->nr,
	     NULL);
}

/* The three instants, in the order of the moment: the kernel's own count before the switch, the
 * records of both sides, and where the hardware's trigger reads the counters. */
static void tell_switch(struct csw_sim_machine *m, struct csw_sim_cpu *cpu,
			const struct csw_sim_switch *sw)
{
	const struct csw_sim_observer *o = &m->observer;
	const uint64_t by[CSW_SIM_EVENTS] = { [CSW_SIM_SWITCHES] = 1 };

	if (happen(cpu, sw->prev, by))
		overflow(m, cpu, sw->trigger_ns, sw->prev);
	o->switched_out(o->ctx, cpu, sw);
	if (sw->moment == CSW_SIM_LATE)
		o->switched_in(o->ctx, cpu, sw);
	cause(m, cpu, sw);
	if (sw->moment != CSW_SIM_LATE)
		o->switched_in(o->ctx, cpu, sw);
}

/*
 * Two boundaries: a clock counts for the incoming thread from the trigger's moment on, because that
 * is when a sample reads it; time on the CPU is the incoming thread's from the switch-out on. What
 * a thread causes by running lies between the last and the first instant of two switches, on
 * whichever side the trigger reads; what the switch causes, see cause().
 */
static void switch_to(struct csw_sim_machine *m, struct csw_sim_cpu *cpu,
		      struct csw_sim_thread *next, bool preempted)
{
	struct csw_sim_thread *prev = cpu->current;
	uint64_t begin_ns = max(max(m->now_ns, cpu->ready_ns), next->ready_ns);
	struct csw_sim_switch sw = { .prev = prev,
				     .next = next,
				     .preempted = preempted,
				     .kind = kind_of(prev, next),
				     .moment = csw_sim_pmu_moment(&cpu->pmu) };

	set_instants(m, &sw, begin_ns);
	settle(cpu, begin_ns);
	if (sw.trigger_ns > begin_ns)
		settle_clock(cpu, sw.trigger_ns);
	cpu->switches[sw.kind]++;
	tally_leaving(cpu, &sw);
	tell_switch(m, cpu, &sw);

	set_current(m, cpu, next, max(sw.trigger_ns, sw.in_ns));
	prev->ready_ns = cpu->ready_ns;
	cpu->armed_seq = 0;
	if (next == &cpu->idle)
		return;
	if (!next->burst_ns)
		plan_burst(m, next);
	obey_kill(next);
	arm_current(m, cpu);
}

/* ---- what threads do ---- */

/* All others of the process are to exit: sleepers wake up for it, the rest notice when they run. */
static void doom_others(struct csw_sim_machine *m, const struct csw_sim_thread *t)
{
	t->process->ending = true;
	for (struct csw_sim_thread *other = t->process->threads; other;
	     other = other->sibling_next) {
		if (other == t)
			continue;
		other->doomed = true;
		if (other->state == CSW_SIM_SLEEPING)
			wake(m, other);
	}
}

/* The child of every second fork lives for less than a millisecond of running. */
static void do_fork(struct csw_sim_machine *m, struct csw_sim_cpu *cpu, struct csw_sim_thread *t,
		    bool new_process)
{
	struct csw_sim_thread *child;

	if (!tids_left(m) || (t->process->ending && !new_process))
		return;
	child = new_thread(m, CSW_KIND_THREAD, new_process ? NULL : t->process, t->process->pid);
	memcpy(child->comm, t->comm, sizeof(child->comm));
	child->brief = dice(m, 2);
	child->cpu = cpu->nr;
	m->observer.forked(m->observer.ctx, cpu, m->now_ns, t, child);

	child->ready_ns = m->now_ns + 1000;
	plan_burst(m, child);
	if (child->brief)
		child->burst_ns = 10000 + dice(m, 200000);
	else if (new_process && dice(m, 2))
		child->act = CSW_SIM_EXEC;
	wake(m, child);
}

static void do_rename(struct csw_sim_machine *m, struct csw_sim_cpu *cpu, struct csw_sim_thread *t)
{
	const char *role = roles[dice(m, NR(roles))];

	/* One roll after the other: in which order a call's arguments roll is the compiler's
	 * choice. */
	snprintf(t->comm, sizeof(t->comm), "%s-%u", role, dice(m, 100));
	m->observer.renamed(m->observer.ctx, cpu, m->now_ns, t, false);
}

static void block(struct csw_sim_machine *m, struct csw_sim_cpu *cpu, struct csw_sim_thread *t,
		  uint64_t mean_ns)
{
	t->state = CSW_SIM_SLEEPING;
	switch_to(m, cpu, pick_next(m, cpu), false);
	sleep_until(m, t, t->ready_ns + 1000 + exponential(m, mean_ns));
}

static void exec_named(struct csw_sim_machine *m, struct csw_sim_cpu *cpu, struct csw_sim_thread *t)
{
	t->process->ending = false;
	snprintf(t->comm, sizeof(t->comm), "%s", programs[dice(m, NR(programs))]);
	settle(cpu, m->now_ns); /* by the old habits */
	draw_rates(m, t);
	begin_run(m, cpu, m->now_ns);
	m->observer.renamed(m->observer.ctx, cpu, m->now_ns, t, true);
}

/* The thread takes the place of the leader, whose TID is the process's number. As in Linux the new
 * name comes later than the new TID: every other time the thread is switched out in between. */
static void exec_done(struct csw_sim_machine *m, struct csw_sim_cpu *cpu, struct csw_sim_thread *t)
{
	struct csw_sim_process *process = t->process;
	bool moved = !is_leader(t);

	process->waiter = NULL;
	if (moved)
		tid_free(m, t->tid);
	t->tid = process->pid;
	if (!moved || dice(m, 2)) {
		exec_named(m, cpu, t);
		return;
	}
	plan(t, CSW_SIM_EXEC_NAMED, EXEC_NS);
	block(m, cpu, t, READ_NS);
}

static void do_exec(struct csw_sim_machine *m, struct csw_sim_cpu *cpu, struct csw_sim_thread *t)
{
	if (t->process->ending)
		return; /* somebody else was first */
	if (t->process->nr_threads == 1) {
		exec_done(m, cpu, t);
		return;
	}
	t->process->waiter = t;
	doom_others(m, t);
	plan(t, CSW_SIM_EXEC_DONE, EXIT_NS);
	t->state = CSW_SIM_WAITING;
	switch_to(m, cpu, pick_next(m, cpu), false);
}

static void do_exit(struct csw_sim_machine *m, struct csw_sim_cpu *cpu, struct csw_sim_thread *t)
{
	uint8_t last;

	m->observer.exiting(m->observer.ctx, cpu, m->now_ns, t);
	if (is_leader(t) && !t->process->ending)
		doom_others(m, t);
	last = dice(m, 4) ? CSW_SIM_DIE : CSW_SIM_EXIT_BLOCK;
	plan(t, last, EXIT_NS + dice(m, 10000));
}

/* A thread that exits still has its TID, and may be switched out and come back. */
static void exit_block(struct csw_sim_machine *m, struct csw_sim_cpu *cpu, struct csw_sim_thread *t)
{
	plan(t, CSW_SIM_DIE, EXIT_NS + dice(m, 10000));
	block(m, cpu, t, READ_NS);
}

/* As in Linux the TID is free before the last switch, which therefore shows none. */
static void die(struct csw_sim_machine *m, struct csw_sim_cpu *cpu, struct csw_sim_thread *t)
{
	struct csw_sim_process *process = t->process;

	bury(m, t);
	switch_to(m, cpu, pick_next(m, cpu), false);
	if (process->waiter && process->nr_threads == 1) {
		process->waiter->ready_ns = max(process->waiter->ready_ns, t->ready_ns);
		wake(m, process->waiter);
	}
}

static void do_sleep(struct csw_sim_machine *m, struct csw_sim_cpu *cpu, struct csw_sim_thread *t)
{
	block(m, cpu, t, t->kind == CSW_KIND_KERNEL ? 8 * m->sleep_ns : m->sleep_ns);
}

/* Voluntarily or not, to the end of the queue; alone in it, the thread runs on without a switch. */
static void give_way(struct csw_sim_machine *m, struct csw_sim_cpu *cpu, struct csw_sim_thread *t,
		     bool preempted)
{
	struct csw_sim_thread *next;

	if (!cpu->queue_head) {
		cpu->timeslice_end_ns = m->now_ns + 2 * m->burst_ns;
		return;
	}
	next = dequeue(cpu);
	enqueue(cpu, t);
	switch_to(m, cpu, next, preempted);
}

/* The burst is over: what now? */
static void act(struct csw_sim_machine *m, struct csw_sim_cpu *cpu, struct csw_sim_thread *t)
{
	switch (t->act) {
	case CSW_SIM_SLEEP:
		do_sleep(m, cpu, t);
		break;
	case CSW_SIM_YIELD:
		give_way(m, cpu, t, false);
		break;
	case CSW_SIM_FORK_THREAD:
	case CSW_SIM_FORK_PROCESS:
		do_fork(m, cpu, t, t->act == CSW_SIM_FORK_PROCESS);
		break;
	case CSW_SIM_RENAME:
		do_rename(m, cpu, t);
		break;
	case CSW_SIM_EXEC:
		do_exec(m, cpu, t);
		break;
	case CSW_SIM_EXEC_DONE:
		exec_done(m, cpu, t);
		break;
	case CSW_SIM_EXEC_NAMED:
		exec_named(m, cpu, t);
		break;
	case CSW_SIM_EXIT:
		do_exit(m, cpu, t);
		break;
	case CSW_SIM_EXIT_BLOCK:
		exit_block(m, cpu, t);
		break;
	case CSW_SIM_DIE:
		die(m, cpu, t);
		break;
	case CSW_SIM_LEAVE:
		t->state = CSW_SIM_WAITING;
		switch_to(m, cpu, pick_next(m, cpu), false);
		break;
	}
}

/* ---- the events ---- */

static void cpu_expires(struct csw_sim_machine *m, struct csw_sim_cpu *cpu)
{
	struct csw_sim_thread *t = cpu->current, *next;

	cpu->armed_seq = 0;
	if (t == &cpu->idle) {
		next = pick_next(m, cpu); /* idle again, when another CPU was faster */
		if (next != t)
			switch_to(m, cpu, next, false);
		return;
	}
	t->burst_ns -= m->now_ns - cpu->ran_ns;
	cpu->ran_ns = m->now_ns;
	obey_kill(t);
	if (!t->burst_ns)
		act(m, cpu, t);
	else if (m->now_ns >= cpu->timeslice_end_ns)
		give_way(m, cpu, t, true);

	if (cpu->current == t && !cpu->armed_seq) { /* it runs on */
		if (!t->burst_ns)
			plan_burst(m, t);
		arm_current(m, cpu);
	}
}

static void handle(struct csw_sim_machine *m, const struct event *event)
{
	struct csw_sim_cpu *cpu = &m->cpus[event->cpu];
	uint64_t next_ns;

	switch (event->what) {
	case THREAD_WAKES:
		if (event->thread->wake_seq == event->seq)
			wake(m, event->thread);
		break;
	case CPU_EXPIRES:
		if (cpu->armed_seq == event->seq)
			cpu_expires(m, cpu);
		break;
	case TIMER:
		if (!is_online(m, cpu->nr))
			break;
		/* not into the middle of a switch */
		next_ns = m->observer.timer(m->observer.ctx, cpu, max(m->now_ns, cpu->ready_ns));
		push(m, max(next_ns, m->now_ns + 1), TIMER, cpu->nr, NULL);
		break;
	case SPURIOUS:
		if (is_online(m, cpu->nr))
			spurious(m, cpu);
		break;
	}
}

int csw_sim_machine_run(struct csw_sim_machine *m, uint64_t until_ns, const bool *brake)
{
	while (m->nr_events && m->heap[0].time_ns <= until_ns) {
		struct event event;

		if (brake && *brake && m->heap[0].time_ns > m->now_ns)
			return 0;
		if (reserve_events(m) || reserve_thread(m))
			return -ENOMEM;
		event = pop(m);
		m->now_ns = max(m->now_ns, event.time_ns);
		handle(m, &event);
	}
	m->now_ns = max(m->now_ns, until_ns);
	return 0;
}

int csw_sim_machine_set_timer(struct csw_sim_machine *m, uint32_t cpu, uint64_t time_ns)
{
	if (reserve_events(m))
		return -ENOMEM;
	push(m, time_ns, TIMER, cpu, NULL);
	return 0;
}

/* ---- the measuring program's visits ---- */

static void start_cpu(struct csw_sim_machine *m, struct csw_sim_cpu *cpu)
{
	uint64_t now_ns = m->now_ns;

	m->online_to++;
	cpu->start_ns = cpu->clock_ns = cpu->oncpu_ns = now_ns;
	set_current(m, cpu, m->self, now_ns);
	plan(m->self, CSW_SIM_LEAVE, VISIT_NS / 2);
	cpu->timeslice_end_ns = now_ns + VISIT_NS;
	m->observer.started(m->observer.ctx, cpu, now_ns);
	arm_current(m, cpu);
	if (m->spurious_ns)
		push(m, now_ns + exponential_of(&cpu->spurious, m->spurious_ns), SPURIOUS, cpu->nr,
		     NULL);
}

int csw_sim_machine_start(struct csw_sim_machine *m)
{
	for (uint32_t i = 0; i < m->opts.nr_cpus; i++) {
		int err = csw_sim_machine_run(m, m->now_ns + VISIT_NS, NULL);

		if (err || (err = reserve_events(m)))
			return err;
		start_cpu(m, &m->cpus[i]);
	}
	return csw_sim_machine_run(m, m->now_ns + VISIT_NS, NULL);
}

/* Whoever runs is preempted and stays queued for good: what runs there later is not counted. */
static uint64_t stop_cpu(struct csw_sim_machine *m, struct csw_sim_cpu *cpu)
{
	struct csw_sim_thread *prev = cpu->current;
	uint64_t end_ns;

	if (prev != &cpu->idle)
		enqueue(cpu, prev);
	plan(m->self, CSW_SIM_LEAVE, VISIT_NS / 2);
	switch_to(m, cpu, m->self, prev != &cpu->idle);
	cpu->armed_seq = 0;
	m->online_from++;

	end_ns = cpu->ready_ns + VISIT_NS / 2;
	settle(cpu, end_ns);
	m->self->tally.oncpu_ns += end_ns - cpu->oncpu_ns;
	m->self->ready_ns = end_ns;
	m->observer.stopped(m->observer.ctx, cpu, end_ns);
	return end_ns;
}

int csw_sim_machine_stop(struct csw_sim_machine *m)
{
	for (uint32_t i = 0; i < m->opts.nr_cpus; i++) {
		int err = reserve_events(m);

		if (!err)
			err = csw_sim_machine_run(m, stop_cpu(m, &m->cpus[i]), NULL);
		if (err)
			return err;
	}
	return 0;
}

uint64_t csw_sim_machine_settle(struct csw_sim_machine *m, struct csw_sim_cpu *cpu)
{
	uint64_t time_ns = max(m->now_ns, cpu->ready_ns);

	settle(cpu, time_ns);
	return time_ns;
}

/* ---- making a machine ---- */

static int add_thread(struct csw_sim_machine *m, uint32_t kind, struct csw_sim_process *process,
		      int32_t parent_pid, const char *comm, struct csw_sim_thread **out)
{
	int err = reserve_thread(m);

	if (!err)
		err = reserve_events(m);
	if (!err && !tids_left(m))
		err = -EAGAIN;
	if (err)
		return err;
	*out = new_thread(m, kind, process, parent_pid);
	snprintf((*out)->comm, sizeof((*out)->comm), "%s", comm);
	return 0;
}

static void make_cpu(struct csw_sim_machine *m, uint32_t nr)
{
	struct csw_sim_cpu *cpu = &m->cpus[nr];

	cpu->nr = nr;
	cpu->queue_tail = &cpu->queue_head;
	csw_sim_pmu_init(&cpu->pmu, &m->opts.pmu, m->opts.seed + nr, nr % 2 == 0);
	cpu->spurious.state = ~m->opts.seed - nr;
	cpu->idle.kind = CSW_KIND_IDLE;
	cpu->idle.process = &cpu->idle.own; /* PID 0 */
	cpu->idle.pinned = (int32_t)nr;
	memcpy(cpu->idle.rates, idle_rates, sizeof(idle_rates));
	snprintf(cpu->idle.comm, sizeof(cpu->idle.comm), "swapper/%u", (uint16_t)nr);
	cpu->current = &cpu->idle;
}

/* init, kthreadd and one worker per CPU. The first two never run here: somebody has to be like
 * that. */
static int make_system(struct csw_sim_machine *m)
{
	struct csw_sim_thread *t;
	char comm[CSW_COMM_BYTES];
	int err;

	if ((err = add_thread(m, CSW_KIND_THREAD, NULL, 0, "init", &t)) ||
	    (err = add_thread(m, CSW_KIND_KERNEL, NULL, 0, "kthreadd", &t)))
		return err;
	for (uint32_t i = 0; i < m->opts.nr_cpus; i++) {
		snprintf(comm, sizeof(comm), "kworker/%u:0", (uint16_t)i);
		err = add_thread(m, CSW_KIND_KERNEL, NULL, 2, comm, &t);
		if (err)
			return err;
		t->pinned = (int32_t)i;
		sleep_until(m, t,
			    BOOT_NS + (m->opts.nr_cpus + 1) * VISIT_NS + exponential(m, 1000000));
	}
	return 0;
}

static int make_users(struct csw_sim_machine *m)
{
	uint32_t nr_processes = m->opts.nr_processes, nr = m->opts.nr_threads;
	struct csw_sim_process *process = NULL;
	struct csw_sim_thread *t;

	for (uint32_t i = 0; i < nr; i++) {
		/* thread i belongs to process i * nr_processes / nr: even shares, leaders first */
		bool leader = !i || (uint64_t)i * nr_processes / nr !=
					    (uint64_t)(i - 1) * nr_processes / nr;
		const char *comm =
			leader ? programs[dice(m, NR(programs))] : roles[dice(m, NR(roles))];
		int err;

		m->now_ns++; /* no two births of user threads at one time: (TID, birth) is unique */
		err = add_thread(m, CSW_KIND_THREAD, leader ? NULL : process, 1, comm, &t);
		if (err)
			return err;
		process = t->process;
		sleep_until(m, t, BOOT_NS + 2 * VISIT_NS + exponential(m, m->sleep_ns));
	}
	return 0;
}

/* Bursts so that the CPUs switch about as often as wished, sleeps so that they are busy for about
 * three quarters. */
static void set_pace(struct csw_sim_machine *m)
{
	uint64_t period_ns = 1000000000 / m->opts.switches;

	m->burst_ns = max(1000, period_ns > 6000 ? period_ns - 4000 : 2000);
	m->sleep_ns = max(m->burst_ns, m->burst_ns * m->opts.nr_threads / m->opts.nr_cpus * 5 / 4);
	if (m->opts.spurious)
		m->spurious_ns = 1000 * period_ns / m->opts.spurious;
}

int csw_sim_machine_open(struct csw_sim_machine **out, const struct csw_sim_machine_opts *opts,
			 const struct csw_sim_observer *observer)
{
	struct csw_sim_machine *m = calloc(1, sizeof(*m));
	int err = -ENOMEM;

	*out = NULL;
	if (!m)
		return err;
	m->opts = *opts;
	m->observer = *observer;
	m->random.state = opts->seed;
	m->now_ns = BOOT_NS;
	m->cpus = calloc(opts->nr_cpus, sizeof(*m->cpus));
	m->tid_used = calloc(opts->pid_max, 1);
	if (!m->cpus || !m->tid_used)
		goto fail;
	set_pace(m);
	m->trigger = csw_sim_source_of(opts->model, opts->pmu.trigger);
	for (uint32_t i = 0; i < opts->nr_cpus; i++)
		make_cpu(m, i);
	if ((err = make_system(m)) || (err = make_users(m)) ||
	    (err = add_thread(m, CSW_KIND_SELF, NULL, 1, "csw-sample", &m->self)))
		goto fail;
	m->self->state = CSW_SIM_WAITING;
	*out = m;
	return 0;
fail:
	csw_sim_machine_close(m);
	return err;
}

void csw_sim_machine_close(struct csw_sim_machine *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->nr_chunks; i++)
		free(m->chunks[i]);
	free(m->chunks);
	free(m->heap);
	free(m->tid_used);
	free(m->cpus);
	free(m);
}

uint64_t csw_sim_machine_now(const struct csw_sim_machine *m)
{
	return m->now_ns;
}

struct csw_sim_cpu *csw_sim_machine_cpu(struct csw_sim_machine *m, uint32_t cpu)
{
	return &m->cpus[cpu];
}

size_t csw_sim_machine_threads(const struct csw_sim_machine *m)
{
	return m->nr_threads;
}

const struct csw_sim_thread *csw_sim_machine_thread(const struct csw_sim_machine *m, size_t i)
{
	return i < m->nr_threads ? thread_at(m, i) : NULL;
}
