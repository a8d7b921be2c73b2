/*
 * A simulated machine: CPUs with run queues and PMUs, processes with threads, and a clock that only
 * events move.
 *
 * The machine lives by itself. It does not know of records or rings: an observer is told what
 * happens at the moment when a kernel would write a record of it. And the machine keeps its own
 * books, thread by thread, of what each one caused: that is the truth against which a sampling
 * engine can be held.
 *
 * Invariants: every event that a PMU counts is in the tally of exactly one thread, an idle thread
 * included; what is counted, and when it is read, changes nothing of what the machine does.
 */
#ifndef CSW_DRIVERS_SIM_MACHINE_H
#define CSW_DRIVERS_SIM_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/sim/models.h"
#include "drivers/sim/pmu.h"
#include "engine/record.h"

/* What a thread did while its CPU was counted. */
struct csw_sim_tally {
	uint64_t slices;    /* times it left a CPU */
	uint64_t oncpu_ns;  /* from the predecessor's switch-out to its own */
	uint64_t voluntary; /* switches away of its own will, its death included */
	uint64_t preempted;
	uint64_t events[CSW_SIM_EVENTS];
	uint64_t counted[CSW_SIM_EVENTS]; /* those of them that a counter was on for */
};

struct csw_sim_thread;

struct csw_sim_process {
	int32_t pid, parent_pid;
	uint32_t nr_threads;            /* alive */
	bool ending;                    /* its leader exits, or one of its threads waits to exec */
	struct csw_sim_thread *threads; /* alive, newest first */
	struct csw_sim_thread *waiter;  /* waits until it is the last one, to exec */
};

enum csw_sim_state {
	CSW_SIM_SLEEPING,
	CSW_SIM_WAITING, /* for the other threads of the process to die */
	CSW_SIM_QUEUED,
	CSW_SIM_RUNNING,
	CSW_SIM_GONE,
};

/* What a thread does when its burst of running is over. */
enum csw_sim_act {
	CSW_SIM_SLEEP,
	CSW_SIM_YIELD,
	CSW_SIM_FORK_THREAD,
	CSW_SIM_FORK_PROCESS,
	CSW_SIM_RENAME,
	CSW_SIM_EXEC,
	CSW_SIM_EXEC_DONE,  /* the other threads are dead: take over */
	CSW_SIM_EXEC_NAMED, /* the program is loaded: its name */
	CSW_SIM_EXIT,
	CSW_SIM_EXIT_BLOCK, /* waits for something on its way out */
	CSW_SIM_DIE,        /* the last switch after the exit */
	CSW_SIM_LEAVE,      /* the measuring program is done on this CPU */
};

struct csw_sim_thread {
	/* who it is */
	struct csw_sim_process *process;
	int32_t tid;
	uint32_t kind; /* enum csw_kind: THREAD, KERNEL, IDLE, SELF */
	uint64_t birth_ns;
	char comm[CSW_COMM_BYTES];

	struct csw_sim_tally tally;

	/* what it does */
	uint32_t rates[CSW_SIM_RATED]; /* events per 2^20 ns */
	uint8_t state;                 /* enum csw_sim_state */
	uint8_t act;                   /* enum csw_sim_act */
	bool doomed;                   /* killed: exits as soon as it can */
	bool brief;                    /* exits after its first burst */
	int32_t pinned;                /* to this CPU, or -1 */
	uint32_t cpu;                  /* where it ran last */
	uint64_t burst_ns;             /* what is left of its burst */
	uint64_t ready_ns;             /* it cannot be on another CPU before that */
	uint64_t wake_seq;             /* of the event that will wake it; 0: none */

	struct csw_sim_thread *queue_next;
	struct csw_sim_thread *sibling_next, **sibling_link;
	struct csw_sim_process own; /* the process that began with this thread */
};

struct csw_sim_cpu {
	uint32_t nr;
	struct csw_sim_thread *current;
	struct csw_sim_thread *queue_head, **queue_tail;
	uint64_t start_ns; /* counting began */
	uint64_t ready_ns; /* the switch to current is complete */
	/* current has run since run_ns at this pace (1/256) of its rates; its events so far */
	uint64_t run_ns, pace, rounding[CSW_SIM_RATED], counted[CSW_SIM_RATED];
	uint64_t clock_ns; /* up to here time is charged as clock events */
	uint64_t oncpu_ns; /* from here on current is on the CPU */
	uint64_t ran_ns;   /* up to here current's burst is used up */
	uint64_t timeslice_end_ns;
	uint64_t armed_seq; /* of the event that ends what current does; 0: none */
	uint64_t switches[CSW_SIM_SWITCH_KINDS]; /* since counting began */
	uint64_t triggers;                       /* occurrences that the trigger counted */
	struct csw_sim_random spurious;
	struct csw_sim_pmu pmu;
	struct csw_sim_thread idle;
};

/* A context switch. The instants are in the order of the moment. */
struct csw_sim_switch {
	struct csw_sim_thread *prev, *next;
	bool preempted;
	enum csw_sim_switch_kind kind;
	enum csw_sim_moment moment;
	uint64_t trigger_ns, out_ns, in_ns;
};

struct csw_sim_observer {
	/* Counting begins on (has ended on) the CPU, in the measuring program's thread. */
	void (*started)(void *ctx, struct csw_sim_cpu *cpu, uint64_t time_ns);
	void (*stopped)(void *ctx, struct csw_sim_cpu *cpu, uint64_t time_ns);
	/* The trigger overflowed; the PMU stands as it does at that time. thread is the one that
	 * the overflow finds in `current`. */
	void (*sampled)(void *ctx, struct csw_sim_cpu *cpu, uint64_t time_ns,
			const struct csw_sim_thread *thread);
	void (*switched_out)(void *ctx, struct csw_sim_cpu *cpu, const struct csw_sim_switch *sw);
	void (*switched_in)(void *ctx, struct csw_sim_cpu *cpu, const struct csw_sim_switch *sw);
	void (*forked)(void *ctx, const struct csw_sim_cpu *cpu, uint64_t time_ns,
		       const struct csw_sim_thread *parent, const struct csw_sim_thread *child);
	void (*exiting)(void *ctx, const struct csw_sim_cpu *cpu, uint64_t time_ns,
			const struct csw_sim_thread *thread);
	void (*renamed)(void *ctx, const struct csw_sim_cpu *cpu, uint64_t time_ns,
			const struct csw_sim_thread *thread, bool exec);
	/* A timer of the observer's own. Returns when it is to go off again. */
	uint64_t (*timer)(void *ctx, struct csw_sim_cpu *cpu, uint64_t time_ns);
	void *ctx;
};

struct csw_sim_machine_opts {
	uint32_t nr_cpus;
	uint32_t nr_threads,
		nr_processes; /* of user space, about; the machine keeps the number up */
	uint32_t pid_max;
	uint32_t switches;       /* wished, per second and CPU */
	uint32_t churn_permille; /* bursts that end with a fork, exec, exit or a new name */
	const struct csw_sim_model *model;
	uint32_t ldt_permille; /* processes with a local descriptor table */
	uint32_t spurious; /* occurrences of CSW_SIM_ALSO_ELSE events per 1000 wished switches */
	uint64_t seed;
	struct csw_sim_pmu_opts pmu;
};

struct csw_sim_machine; /* opaque */

/* Everything is there, nothing runs. -ENOMEM, or -EAGAIN: pid_max does not leave enough TIDs. */
int csw_sim_machine_open(struct csw_sim_machine **out, const struct csw_sim_machine_opts *opts,
			 const struct csw_sim_observer *observer);
void csw_sim_machine_close(struct csw_sim_machine *m); /* NULL is fine */

/* The measuring program visits CPU after CPU and starts (stops) counting there. 0 or -ENOMEM. */
int csw_sim_machine_start(struct csw_sim_machine *m);
int csw_sim_machine_stop(struct csw_sim_machine *m);

/* Lives until the given time. *brake, set by the observer, ends it earlier, when all that happens
 * at the same instant has happened; NULL: no brake. 0 or -ENOMEM. */
int csw_sim_machine_run(struct csw_sim_machine *m, uint64_t until_ns, const bool *brake);

/* Calls the observer's timer on this CPU at that time. At most once per CPU, after start. 0 or
 * -ENOMEM. */
int csw_sim_machine_set_timer(struct csw_sim_machine *m, uint32_t cpu, uint64_t time_ns);

/* Brings the CPU's counters up to now, or to the end of the switch that it is in. Returns that
 * time. */
uint64_t csw_sim_machine_settle(struct csw_sim_machine *m, struct csw_sim_cpu *cpu);

uint64_t csw_sim_machine_now(const struct csw_sim_machine *m);
struct csw_sim_cpu *csw_sim_machine_cpu(struct csw_sim_machine *m, uint32_t cpu);

/* All threads that ever lived, in the order of birth, without the idle ones. NULL: out of range. */
size_t csw_sim_machine_threads(const struct csw_sim_machine *m);
const struct csw_sim_thread *csw_sim_machine_thread(const struct csw_sim_machine *m, size_t i);

#endif
