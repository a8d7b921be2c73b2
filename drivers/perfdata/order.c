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

/* The run that ends with the newest record goes on with this one, or another one begins. */
static int extend_run(struct csw_order *o, uint64_t time_ns)
{
	struct csw_run_of_refs *last = o->nr_runs ? &o->runs[o->nr_runs - 1] : NULL;

	if (last && o->refs[last->end - 1].time_ns <= time_ns) {
		last->end++;
		return 0;
	}
	if (o->nr_runs == o->runs_capacity) {
		struct csw_order_head *heap;

		if (o->nr_runs > UINT32_MAX / 2 ||
		    grow((void **)&o->runs, &o->runs_capacity, 64, sizeof(*o->runs)) < 0)
			return -ENOMEM;
		heap = reallocarray(o->heap, o->runs_capacity, sizeof(*heap));
		if (!heap)
			return -ENOMEM;
		o->heap = heap;
	}
	o->runs[o->nr_runs++] = (struct csw_run_of_refs){ o->nr, o->nr + 1 };
	return 0;
}

int csw_order_add(struct csw_order *o, const struct csw_ref *ref)
{
	if (o->nr == o->capacity &&
	    grow((void **)&o->refs, &o->capacity, 4096, sizeof(*o->refs)) < 0)
		return -ENOMEM;
	if (extend_run(o, ref->time_ns) < 0)
		return -ENOMEM;
	o->refs[o->nr++] = *ref;
	ref->block->refs++;
	if (ref->time_ns > o->max_ns)
		o->max_ns = ref->time_ns;
	return 0;
}

/* Ties go to the run that began earlier in the file. */
static bool earlier(const struct csw_order_head *a, const struct csw_order_head *b)
{
	return a->time_ns < b->time_ns || (a->time_ns == b->time_ns && a->run < b->run);
}

static void sift_down(struct csw_order *o, size_t i)
{
	struct csw_order_head head = o->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < o->nr_heap && earlier(&o->heap[child + 1], &o->heap[child]))
			child++;
		if (child >= o->nr_heap || !earlier(&o->heap[child], &head))
			break;
		o->heap[i] = o->heap[child];
		i = child;
	}
	o->heap[i] = head;
}

/* Up to there the first run goes on without asking the others. */
static void note_second(struct csw_order *o)
{
	o->second_ns = UINT64_MAX;
	for (size_t i = 1; i < 3 && i < o->nr_heap; i++)
		o->second_ns =
			o->heap[i].time_ns < o->second_ns ? o->heap[i].time_ns : o->second_ns;
}

static void begin(struct csw_order *o, uint64_t limit_ns)
{
	o->limit_ns = limit_ns;
	o->handing_out = true;
	o->nr_heap = 0;
	for (size_t i = 0; i < o->nr_runs; i++)
		o->heap[o->nr_heap++] =
			(struct csw_order_head){ o->refs[o->runs[i].at].time_ns, (uint32_t)i };
	for (size_t i = o->nr_heap / 2; i-- > 0;)
		sift_down(o, i);
	note_second(o);
}

void csw_order_round(struct csw_order *o)
{
	uint64_t limit_ns = o->round_max_ns;

	o->has_rounds = true;
	o->round_max_ns = o->max_ns;
	begin(o, limit_ns);
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
	o->handing_out = false;
}

int csw_order_next(struct csw_order *o, struct csw_ref *ref)
{
	struct csw_run_of_refs *run;

	if (!o->handing_out)
		return 0;
	if (!o->nr_heap || o->heap[0].time_ns > o->limit_ns) {
		compact(o);
		return 0;
	}
	run = &o->runs[o->heap[0].run];
	*ref = o->refs[run->at++];
	/* It was read a whole round ago, and has left the caches since. */
	if (run->at + PREFETCH < run->end) {
		const char *ahead = (const char *)o->refs[run->at + PREFETCH].header;

		__builtin_prefetch(ahead);
		__builtin_prefetch(ahead + 64);
	}
	if (run->at == run->end) {
		o->heap[0] = o->heap[--o->nr_heap];
		if (o->nr_heap)
			sift_down(o, 0);
		note_second(o);
	} else {
		o->heap[0].time_ns = o->refs[run->at].time_ns;
		if (o->heap[0].time_ns >= o->second_ns) {
			sift_down(o, 0);
			note_second(o);
		}
	}
	if (ref->time_ns < o->last_ns)
		o->late++;
	else
		o->last_ns = ref->time_ns;
	return 1;
}

void csw_order_free(struct csw_order *o, struct csw_blocks *pool)
{
	for (size_t i = 0; i < o->nr_runs; i++) {
		for (size_t k = o->runs[i].at; k < o->runs[i].end; k++)
			csw_block_put(pool, o->refs[k].block);
	}
	free(o->refs);
	free(o->runs);
	free(o->heap);
	*o = (struct csw_order){ .nr = 0 };
}
