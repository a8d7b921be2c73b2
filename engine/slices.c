/* Slices one by one; see slices.h. */
#include "engine/slices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tasks.h"

int csw_slices_init(struct csw_slices *s, const struct csw_aggregation *agg, bool scoped,
		    unsigned nr_cpus, int (*fn)(void *ctx, const struct csw_slice *slice),
		    void *ctx)
{
	*s = (struct csw_slices){ .agg = agg,
				  .scoped = scoped,
				  .nr_counters = agg->nr_counters,
				  .nr_cpus = nr_cpus,
				  .fn = fn,
				  .ctx = ctx };
	s->cpus = calloc(nr_cpus, sizeof(*s->cpus));
	return s->cpus ? 0 : -ENOMEM;
}

void csw_slices_free(struct csw_slices *s)
{
	free(s->cpus);
	s->cpus = NULL;
}

const char *csw_slice_end_name(uint32_t end)
{
	static const char *const names[] = {
		[CSW_END_VOLUNTARY] = "voluntary",
		[CSW_END_PREEMPTED] = "preempted",
		[CSW_END_UNSEEN] = "unseen",
		[CSW_END_CUT] = "cut",
	};

	return end < sizeof(names) / sizeof(*names) ? names[end] : "?";
}

static uint32_t end_of(uint32_t end)
{
	switch (end) {
	case CSW_RUN_VOLUNTARY:
		return CSW_END_VOLUNTARY;
	case CSW_RUN_PREEMPTED:
		return CSW_END_PREEMPTED;
	case CSW_RUN_UNSEEN:
		return CSW_END_UNSEEN;
	default:
		return CSW_END_CUT;
	}
}

static void tell(struct csw_slices *s, unsigned cpu, const struct csw_slice_line *line)
{
	const struct csw_agg_row *row = csw_aggregation_row(s->agg, line->owner);
	char comm[CSW_COMM_BYTES + 1];
	struct csw_slice slice = {
		.from_ns = line->from_ns,
		.to_ns = line->to_ns,
		.oncpu_ns = line->oncpu_ns,
		.kind = row->kind,
		.cpu = cpu,
		.pid = row->pid,
		.tid = row->tid,
		.end = end_of(line->end),
		.exact = line->exact,
		.comm = comm,
		.nr_values = s->nr_counters,
		.values = line->values,
		/* Of ordinary samples a slice knows nothing. */
		.counted = line->counted & ~s->estimated,
	};

	if (s->ret || (s->scoped && !csw_scope_shows(row)))
		return;
	memcpy(comm, row->comm, CSW_COMM_BYTES);
	comm[CSW_COMM_BYTES] = '\0';
	s->ret = s->fn(s->ctx, &slice);
}

static void let_go(struct csw_slices *s, unsigned nr)
{
	struct csw_slices_cpu *cpu = &s->cpus[nr];

	if (cpu->holds)
		tell(s, nr, &cpu->held);
	cpu->holds = false;
}

/* Time of an owner whose counts are in no slice of its own. */
static void tell_run(struct csw_slices *s, unsigned nr, unsigned run, uint64_t from_ns,
		     uint64_t to_ns)
{
	struct csw_slices_cpu *cpu = &s->cpus[nr];
	struct csw_slice_line line = {
		.from_ns = from_ns,
		.to_ns = to_ns,
		.oncpu_ns = cpu->runs[run].ns,
		.owner = cpu->runs[run].owner,
		.end = cpu->runs[run].end,
		.counted = cpu->on,
		.exact = cpu->runs[run].owner == cpu->exact_owner,
	};

	if (line.oncpu_ns || line.end != CSW_RUN_CUT)
		tell(s, nr, &line);
}

static void drop_run(struct csw_slices_cpu *cpu, unsigned run)
{
	cpu->nr_runs--;
	memmove(&cpu->runs[run], &cpu->runs[run + 1], (cpu->nr_runs - run) * sizeof(*cpu->runs));
}

void csw_slices_charge(struct csw_slices *s, unsigned nr, const struct csw_charge *charge,
		       uint64_t time_ns)
{
	struct csw_slices_cpu *cpu = &s->cpus[nr];
	unsigned i = 0;

	/* The switch that caused the last sample says at last how its slice ended. */
	if (cpu->holds && !cpu->nr_runs && !charge->ns && charge->end != CSW_RUN_CUT &&
	    cpu->held.owner == charge->owner && cpu->held.end == CSW_RUN_CUT) {
		cpu->held.end = charge->end;
		let_go(s, nr);
		return;
	}
	while (i < cpu->nr_runs && cpu->runs[i].owner != charge->owner)
		i++;
	if (i == CSW_SLICES_RUNS) {
		cpu->exact_owner = UINT32_MAX;
		let_go(s, nr);
		tell_run(s, nr, 0, time_ns, time_ns);
		drop_run(cpu, 0);
		i--;
	}
	if (i == cpu->nr_runs) {
		cpu->runs[i].owner = charge->owner;
		cpu->runs[i].ns = 0;
		cpu->runs[i].end = CSW_RUN_CUT;
		cpu->nr_runs++;
	}
	/* Two switches of one owner in one slice are two lines. */
	if (charge->end != CSW_RUN_CUT && cpu->runs[i].end != CSW_RUN_CUT) {
		let_go(s, nr);
		cpu->exact_owner = UINT32_MAX;
		tell_run(s, nr, i, time_ns, time_ns);
		cpu->runs[i].ns = 0;
		cpu->runs[i].end = CSW_RUN_CUT;
	}
	cpu->runs[i].ns += charge->ns;
	if (charge->end != CSW_RUN_CUT)
		cpu->runs[i].end = charge->end;
}

void csw_slices_begin(struct csw_slices *s, unsigned nr, uint64_t from_ns, uint64_t to_ns,
		      uint32_t exact_owner, uint32_t on)
{
	struct csw_slices_cpu *cpu = &s->cpus[nr];

	let_go(s, nr);
	cpu->from_ns = from_ns;
	cpu->to_ns = to_ns;
	cpu->exact_owner = exact_owner;
	cpu->on = on;
}

void csw_slices_count(struct csw_slices *s, unsigned nr, uint32_t owner, const uint64_t *values)
{
	struct csw_slices_cpu *cpu = &s->cpus[nr];
	struct csw_slice_line line = {
		.from_ns = cpu->from_ns,
		.to_ns = cpu->to_ns,
		.owner = owner,
		.end = CSW_RUN_CUT,
		.counted = cpu->on,
		.exact = owner == cpu->exact_owner,
	};
	bool any = false;

	memcpy(line.values, values, s->nr_counters * sizeof(*values));
	for (unsigned c = 0; c < s->nr_counters; c++)
		any |= values[c] != 0;
	for (unsigned i = 0; i < cpu->nr_runs; i++) {
		if (cpu->runs[i].owner != owner)
			continue;
		line.oncpu_ns = cpu->runs[i].ns;
		line.end = cpu->runs[i].end;
		drop_run(cpu, i);
		any = true;
		break;
	}
	if (!any)
		return;
	let_go(s, nr);
	cpu->held = line;
	cpu->holds = true;
}

void csw_slices_finish(struct csw_slices *s, unsigned nr, bool last)
{
	struct csw_slices_cpu *cpu = &s->cpus[nr];

	for (unsigned i = 0; i < cpu->nr_runs; i++)
		tell_run(s, nr, i, cpu->from_ns, cpu->to_ns);
	cpu->nr_runs = 0;
	if (last)
		let_go(s, nr);
}
