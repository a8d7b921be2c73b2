/*
 * Records in the order of time.
 *
 * perf writes what it finds in one ring after the other, then says that a round is over. Whatever
 * was written to a ring before the round before this one ended has been seen by now: so at each end
 * of a round everything up to the latest time of the round before is complete. Files without rounds
 * are put in order within a window of fixed size.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/perfdata/perfdata.h"

#define PREFETCH 4 /* records of the same run */

static int grow(void **array, size_t *capacity, size_t first, size_t bytes)
{
	size_t wanted = *capacity ? *capacity * 2 : first;
	void *larger = reallocarray(*array, wanted, bytes);

	if (!larger)
		return -ENOMEM;
	*array = larger;
	*capacity = wanted;
	return 0;
}

/* The run that was added to is as long as all that there is. */
static void end_run(struct csw_order *o)
{
	if (!o->nr_runs)
		return;
	o->runs[o->nr_runs - 1].end = o->nr;
	if (o->max_ns < o->newest_ns)
		o->max_ns = o->newest_ns;
}

static int begin_run(struct csw_order *o)
{
	csw_order_head *heads;

	end_run(o);
	if (o->nr_runs == o->runs_capacity) {
		if (o->nr_runs > UINT32_MAX / 4 ||
		    grow((void **)&o->runs, &o->runs_capacity, 64, sizeof(*o->runs)) < 0)
			return -ENOMEM;
		heads = reallocarray(o->heads, 2 * o->runs_capacity, sizeof(*heads));
		if (!heads)
			return -ENOMEM;
		o->heads = heads;
	}
	o->runs[o->nr_runs++] = (struct csw_run_of_refs){ o->nr, o->nr };
	return 0;
}

/* With what is needed where there is no room, or where another run begins. */
int csw_order_add_run(struct csw_order *o, struct csw_ref ref)
{
	if (o->nr == o->capacity &&
	    grow((void **)&o->refs, &o->capacity, 4096, sizeof(*o->refs)) < 0)
		return -ENOMEM;
	if ((!o->nr_runs || ref.time_ns < o->newest_ns) && begin_run(o) < 0)
		return -ENOMEM;
	o->refs[o->nr++] = ref;
	o->newest_ns = ref.time_ns;
	return 0;
}

/* Ties go to the run that began earlier in the file. */
static csw_order_head head_of(const struct csw_order *o, uint32_t nr)
{
	const struct csw_run_of_refs *run = &o->runs[nr];

	if (run->at == run->end)
		return CSW_ORDER_DONE;
	return (csw_order_head)o->refs[run->at].time_ns << 64 | nr;
}

static csw_order_head earlier(csw_order_head a, csw_order_head b)
{
	return b < a ? b : a;
}

static void begin(struct csw_order *o, uint64_t limit_ns)
{
	end_run(o);
	o->limit_ns = limit_ns;
	o->handing_out = true;
	o->nr_players = o->nr_runs;
	for (size_t i = 0; i < o->nr_runs; i++)
		o->heads[o->nr_players + i] = head_of(o, (uint32_t)i);
	for (size_t i = o->nr_players; i-- > 1;)
		o->heads[i] = earlier(o->heads[2 * i], o->heads[2 * i + 1]);
}

/* The run has another first record: plays again all games in which it took part. */
static void play(struct csw_order *o, uint32_t run)
{
	csw_order_head head = head_of(o, run);
	size_t i = o->nr_players + run;

	o->heads[i] = head;
	while (i > 1) {
		head = earlier(head, o->heads[i ^ 1]);
		i /= 2;
		o->heads[i] = head;
	}
}

void csw_order_round(struct csw_order *o)
{
	begin(o, o->round_max_ns);
	o->has_rounds = true;
	o->round_max_ns = o->max_ns;
}

void csw_order_end(struct csw_order *o)
{
	begin(o, UINT64_MAX);
}

bool csw_order_is_full(const struct csw_order *o)
{
	return o->nr >= (o->window ? o->window : CSW_ORDER_WINDOW);
}

/* Without sorting: the middle of the times, found by halving the interval. Some are always handed
 * out, or the window would stay full. */
void csw_order_halve(struct csw_order *o)
{
	uint64_t low = UINT64_MAX, high = 0;

	for (size_t i = 0; i < o->nr; i++) {
		low = o->refs[i].time_ns < low ? o->refs[i].time_ns : low;
		high = o->refs[i].time_ns > high ? o->refs[i].time_ns : high;
	}
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		size_t below = 0;

		for (size_t i = 0; i < o->nr; i++)
			below += o->refs[i].time_ns <= middle;
		if (below >= o->nr / 2)
			high = middle;
		else
			low = middle + 1;
	}
	begin(o, high);
}

/* What is left moves to the front; runs that are done go. */
static void compact(struct csw_order *o)
{
	size_t to = 0, nr_runs = 0;

	for (size_t i = 0; i < o->nr_runs; i++) {
		struct csw_run_of_refs run = o->runs[i];
		size_t nr = run.end - run.at;

		if (!nr)
			continue;
		memmove(o->refs + to, o->refs + run.at, nr * sizeof(*o->refs));
		o->runs[nr_runs++] = (struct csw_run_of_refs){ to, to + nr };
		to += nr;
	}
	o->nr = to;
	o->nr_runs = nr_runs;
	if (to)
		o->newest_ns = o->refs[to - 1].time_ns;
	o->handing_out = false;
}

const struct csw_ref *csw_order_next(struct csw_order *o)
{
	struct csw_run_of_refs *run;
	const struct csw_ref *ref;
	csw_order_head head;

	if (!o->handing_out)
		return NULL;
	head = o->nr_players ? o->heads[1] : CSW_ORDER_DONE;
	if (head == CSW_ORDER_DONE || (uint64_t)(head >> 64) > o->limit_ns) {
		compact(o);
		return NULL;
	}
	run = &o->runs[(uint32_t)head];
	ref = &o->refs[run->at++];
	/* It was read a whole round ago, and has left the caches since. */
	if (run->end - run->at > PREFETCH) {
		const char *ahead = (const char *)ref[PREFETCH].header;

		__builtin_prefetch(ahead);
		__builtin_prefetch(ahead + 64);
	}
	play(o, (uint32_t)head);
	if (ref->time_ns < o->last_ns)
		o->late++;
	else
		o->last_ns = ref->time_ns;
	return ref;
}

void csw_order_free(struct csw_order *o, struct csw_blocks *pool)
{
	end_run(o);
	for (size_t i = 0; i < o->nr_runs; i++) {
		for (size_t k = o->runs[i].at; k < o->runs[i].end; k++)
			csw_block_put(pool, csw_block_of(o->refs[k].header));
	}
	free(o->refs);
	free(o->runs);
	free(o->heads);
	*o = (struct csw_order){ .nr = 0 };
}
