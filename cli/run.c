/*
 * The loop, and the clock by which intervals go.
 *
 * Deadlines are points in time, not lengths, so a late one does not move those after it. A
 * simulated machine has a time of its own: only a table says how late it is there, so the sum of
 * what was waited for stands for it until a deadline seems due. Invariant: whoever returns from
 * here leaves no child behind.
 */
#define _GNU_SOURCE /* sigabbrev_np */
#include "cli/run.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cli/program.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/watch.h"

#define POLL_MS 100
#define NS_PER_MS 1000000ull
#define NS_PER_US 1000ull
#define NS_PER_S 1000000000ull
/* After Ctrl-C or SIGTERM the program gets so long to end while it is still counted. */
#define GRACE_NS NS_PER_S

struct run {
	const struct csw_options *o;
	const struct csw_run_hooks *hooks;
	struct csw_session *s;
	struct csw_program program;
	struct csw_watch watch;
	struct csw_progress progress;
	uint64_t start_ns, end_ns; /* by this machine's clock; end_ns UINT64_MAX: open */
	uint64_t next_ns; /* by clock_ns(): the end of the delay or of the interval; or UINT64_MAX
			   */
	uint64_t simulated_ns;       /* at most so late is it on the simulated machine, */
	uint64_t simulated_reset_ns; /* and so late it was when the sums were reset */
	bool delaying;
	bool told; /* the program knows that the end has come */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* ---- deadlines ---- */

static uint64_t clock_ns(const struct run *r)
{
	return csw_options_simulated(r->o) ? r->simulated_ns : now_ns();
}

/* A simulated machine ends by itself, but for a run of no length. */
static void set_deadlines(struct run *r)
{
	const struct csw_options *o = r->o;

	r->start_ns = now_ns();
	r->end_ns = r->next_ns = UINT64_MAX;
	if (o->has_duration && !(csw_options_simulated(o) && o->duration_ns))
		r->end_ns = r->start_ns + o->delay_ns + o->duration_ns;
	r->delaying = o->delay_ns != 0;
	if (o->delay_ns || o->interval_ns)
		r->next_ns = clock_ns(r) + (o->delay_ns ? o->delay_ns : o->interval_ns);
}

static int ms_until(uint64_t now, uint64_t then)
{
	if (then <= now)
		return 0;
	if (then - now >= POLL_MS * NS_PER_MS)
		return POLL_MS;
	return (int)((then - now + NS_PER_MS - 1) / NS_PER_MS);
}

static int poll_ms(const struct run *r)
{
	int end = ms_until(now_ns(), r->end_ns), next = ms_until(clock_ns(r), r->next_ns);

	return end < next ? end : next;
}

/* An interval that was missed altogether is part of the one that ends now. */
static void set_next(struct run *r)
{
	uint64_t now = clock_ns(r);

	if (!r->o->interval_ns) {
		r->next_ns = UINT64_MAX;
		return;
	}
	if (now >= r->next_ns)
		r->next_ns += ((now - r->next_ns) / r->o->interval_ns + 1) * r->o->interval_ns;
}

/* After csw_tick. */
static int read_simulated_clock(struct run *r, struct csw_error *err)
{
	struct csw_table_opts opts = { .size = sizeof(opts) };
	struct csw_summary summary = { .duration_ns = 0 };
	struct csw_table *table;
	int ret;

	if (!csw_options_simulated(r->o))
		return 0;
	ret = csw_table_open(&table, r->s, CSW_BY_CPU, &opts, err);
	if (ret < 0)
		return ret;
	csw_table_summary(table, &summary, sizeof(summary));
	csw_table_close(table);
	r->simulated_ns = r->simulated_reset_ns + summary.duration_ns;
	return 0;
}

/* ---- the loop ---- */

static int show(struct run *r, struct csw_error *err)
{
	int ret;

	csw_progress_erase(&r->progress);
	ret = r->hooks->show(r->hooks->ctx, r->s);
	err->text[0] = '\0'; /* the hook has said it */
	return ret;
}

/* The delay or an interval is over, or seems so. */
static int turn(struct run *r, struct csw_error *err)
{
	int ret = csw_tick(r->s, err);

	if (ret == 0)
		ret = read_simulated_clock(r, err);
	if (ret < 0 || clock_ns(r) < r->next_ns)
		return ret;
	if (!r->delaying)
		ret = show(r, err);
	if (ret == 0)
		ret = csw_reset(r->s, err);
	r->simulated_reset_ns = r->simulated_ns;
	r->delaying = false;
	set_next(r);
	return ret;
}

/* SIGUSR1 has no meaning where tables come anyway, nor where nothing has been counted. */
static int answer(struct run *r, struct csw_error *err)
{
	int ret;

	if (r->hooks->asked) {
		r->hooks->asked(r->hooks->ctx);
		return 0;
	}
	if (r->o->interval_ns || r->delaying)
		return 0;
	ret = csw_tick(r->s, err);
	return ret < 0 ? ret : show(r, err);
}

/* Looks whether the run is over; a signal shortens it. */
static bool is_over(struct run *r)
{
	const struct csw_options *o = r->o;
	int interrupted = csw_signals_end();

	if (o->command && csw_program_has_ended(&r->program))
		return true;
	if (interrupted && !o->command)
		return true;
	if (!o->command && r->hooks->is_enough && r->hooks->is_enough(r->hooks->ctx))
		return true;
	if (!o->command && !o->has_duration && csw_watch_is_over(&r->watch))
		return true;
	if (interrupted && !r->told) {
		/* Ctrl-C reaches the program by itself, the others may not. */
		if (interrupted != SIGINT)
			csw_program_terminate(&r->program);
		if (r->end_ns > now_ns() + GRACE_NS)
			r->end_ns = now_ns() + GRACE_NS;
		r->told = true;
	}
	return now_ns() >= r->end_ns;
}

/* 1: go on; 0: the source has ended. */
static int step(struct run *r, struct csw_error *err)
{
	int ms = poll_ms(r), ret;

	csw_progress_draw(&r->progress, now_ns() - r->start_ns);
	ret = csw_poll(r->s, ms, err);
	if (ret <= 0)
		return ret;
	if (csw_options_simulated(r->o))
		r->simulated_ns += (uint64_t)ms * NS_PER_MS;
	ret = 0;
	/* What ends with the run itself is shown at its end. */
	if (clock_ns(r) >= r->next_ns && now_ns() < r->end_ns)
		ret = turn(r, err);
	if (ret == 0 && csw_signals_asked())
		ret = answer(r, err);
	return ret < 0 ? ret : 1;
}

/* Nothing is left of what ran before counting was to begin. */
static int end_delay(struct run *r, struct csw_error *err)
{
	int ret = csw_tick(r->s, err);

	csw_complain("the run has ended within the %llu ms of --delay: nothing was counted",
		     (unsigned long long)(r->o->delay_ns / NS_PER_MS));
	return ret < 0 ? ret : csw_reset(r->s, err);
}

/* What is there before PROGRAM is never its own. */
static bool is_contradiction(const struct csw_options *o)
{
	return o->command && (o->pids.nr || o->tids.nr);
}

/* Does nothing but a signal end it, and nobody see that it runs? */
static bool waits_unseen(const struct csw_options *o)
{
	return !o->command && !o->has_duration && !o->pids.nr && !o->tids.nr && !o->input &&
	       !o->interval_ns && !csw_options_simulated(o) && !isatty(STDERR_FILENO);
}

/* Once counting has begun: what could not begin has its own line. */
static void say_what_to_expect(const struct csw_options *o)
{
	if (o->quiet)
		return;
	if (is_contradiction(o))
		csw_complain("-%c and a program must both hold, and no thread of %s is among those "
			     "of -%c; to count for a length of time leave the program out: -d 5",
			     o->pids.nr ? 'p' : 't', o->command[0], o->pids.nr ? 'p' : 't');
	else if (waits_unseen(o))
		csw_complain("counting until SIGINT (Ctrl-C) or SIGTERM; -d ends it by itself");
}

static int count(struct run *r, struct csw_error *err)
{
	int ret = 1;

	say_what_to_expect(r->o);
	set_deadlines(r);
	while (ret > 0 && !is_over(r))
		ret = step(r, err);
	csw_progress_erase(&r->progress);
	if (ret >= 0 && r->delaying)
		ret = end_delay(r, err);
	return ret < 0 ? ret : 0;
}

/* ---- one run ---- */

struct csw_table_opts csw_run_table_opts(const struct csw_options *o)
{
	return (struct csw_table_opts){
		.size = sizeof(struct csw_table_opts),
		.sort = o->sort,
		.top = o->top,
	};
}

/* A column that does not exist shall not cost a measurement: a table just begun knows it as well.
 */
static int check_table(const struct run *r, struct csw_error *err)
{
	struct csw_table_opts opts = csw_run_table_opts(r->o);
	struct csw_table *table;
	int ret = csw_table_open(&table, r->s, r->o->by, &opts, err);

	csw_table_close(table);
	return ret;
}

static int open_session(struct run *r, struct csw_error *err)
{
	const struct csw_options *o = r->o;
	struct csw_opts opts = {
		.size = sizeof(opts),
		.driver = o->driver,
		.sav = o->sav,
		.ring_bytes = o->ring_bytes,
		.duration_ns = o->duration_ns ? o->delay_ns + o->duration_ns : 0,
		.pids = o->pids.ids,
		.nr_pids = o->pids.nr,
		.tids = o->tids.ids,
		.nr_tids = o->tids.nr,
		.tree = r->program.pid,
		.cgroup = o->cgroup,
		.cpus = o->cpus,
		.histogram = o->histogram,
		.cgroups = o->by == CSW_BY_CGROUP,
		.input = o->input,
		.from_ns = o->from_ns,
		.to_ns = o->to_ns,
		.time_flags = o->time_flags,
		.comms = o->comms,
		.multiplex = o->multiplex,
		.mixed = o->mixed,
		.force = o->force,
	};
	int ret = csw_open(&r->s, o->trigger, o->events, &opts, err);

	if (ret == 0 && r->hooks->opened)
		ret = r->hooks->opened(r->hooks->ctx, r->s, err);
	return ret;
}

/* The exit status for a failed call of the library. Names are checked before anything runs: those
 * are bad usage. */
static int fail(const struct csw_options *o, bool opening, int ret, const struct csw_error *err)
{
	if (err->text[0])
		csw_complain("%s", err->text);
	if (opening && (ret == -ENOENT || ret == -EINVAL))
		return EXIT_USAGE;
	return o->command ? EXIT_SELF : EXIT_FAILED;
}

static int fail_exec(const struct csw_program *p, int ret)
{
	csw_complain("cannot run %s: %s", p->argv[0], strerror(-ret));
	return ret == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

static uint64_t own_cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * NS_PER_US;
}

static int measure(struct run *r, struct csw_error *err)
{
	int ret = csw_start(r->s, err);

	if (ret < 0)
		return fail(r->o, false, ret, err);
	ret = check_table(r, err);
	if (ret < 0)
		return fail(r->o, true, ret, err);
	if (r->hooks->started)
		ret = r->hooks->started(r->hooks->ctx, r->s, err);
	if (ret < 0)
		return fail(r->o, false, ret, err);
	ret = csw_program_release(&r->program);
	if (ret < 0)
		return fail_exec(&r->program, ret);
	ret = count(r, err);
	if (ret == 0)
		ret = csw_stop(r->s, err);
	return ret < 0 ? fail(r->o, false, ret, err) : 0;
}

static int open_and_measure(struct run *r, struct csw_run_result *result)
{
	struct csw_error err = { .code = 0 };
	uint64_t before_ns;
	int ret = csw_program_fork(&r->program, r->o->command), status;

	if (ret < 0) {
		csw_complain("cannot start a process: %s", strerror(-ret));
		return fail(r->o, false, ret, &err);
	}
	ret = open_session(r, &err);
	if (ret < 0)
		return fail(r->o, !r->o->input, ret,
			    &err); /* a file that is not there is no bad usage */
	before_ns = own_cpu_ns();
	status = measure(r, &err);
	result->own_cpu_ns = own_cpu_ns() - before_ns;
	return status;
}

/* For the line about a program that still runs. */
static const char *why_over(const struct run *r, int status, char *out, size_t bytes)
{
	int sig = csw_signals_end();

	if (status)
		snprintf(out, bytes, "counting has failed");
	else if (sig)
		snprintf(out, bytes, "SIG%s has ended the run", sigabbrev_np(sig));
	else
		snprintf(out, bytes, "%.10g s are over",
			 (double)r->o->duration_ns / (double)NS_PER_S);
	return out;
}

int csw_run(struct csw_run_result *result, const struct csw_options *o,
	    const struct csw_run_hooks *hooks)
{
	struct run r = { .o = o, .hooks = hooks, .program = { .go = -1, .failure = -1 } };
	int status = o->command ? EXIT_SELF : EXIT_FAILED;
	char why[64];

	*result = (struct csw_run_result){ .session = NULL };
	csw_signals_enter(CSW_SIGNALS_COUNTING);
	csw_progress_init(&r.progress, o);
	if (o->input || csw_watch_open(&r.watch, o) == 0) /* nobody of a recording need be alive */
		status = open_and_measure(&r, result);
	csw_signals_enter(CSW_SIGNALS_AFTER);
	csw_program_end(&r.program, why_over(&r, status, why, sizeof(why)));
	csw_watch_close(&r.watch);
	result->program_status = r.program.status;
	if (status)
		csw_close(r.s);
	else
		result->session = r.s;
	return status;
}
