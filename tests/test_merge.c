/* engine/merge: the order of records from several rings, on a driver made of arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/merge.h"

#define RINGS_MAX 64
#define RECORDS_MAX 4096

/* One ring: the times of its records; tid says which record it is. */
struct ring {
	uint64_t times[RECORDS_MAX];
	unsigned nr, filled, at; /* all that will ever come, visible by now, read */
};

struct csw_driver {
	struct ring rings[RINGS_MAX];
	unsigned nr;
	uint64_t horizon;
	int fail;         /* what next() returns ... */
	unsigned fail_at; /* ... at this call */
	unsigned calls;
};

static unsigned fake_nr_rings(const struct csw_driver *drv)
{
	return drv->nr;
}

static uint64_t fake_snapshot(struct csw_driver *drv)
{
	return drv->horizon;
}

static int fake_next(struct csw_driver *drv, unsigned ring, struct csw_record *rec)
{
	struct ring *r = &drv->rings[ring];

	if (drv->fail && drv->calls++ == drv->fail_at)
		return drv->fail;
	if (r->at == r->filled)
		return 0;
	memset(rec, 0, sizeof(*rec));
	rec->time_ns = r->times[r->at];
	rec->cpu = ring;
	rec->tid = (int32_t)r->at++;
	return 1;
}

static const struct csw_driver_ops fake_ops = {
	.name = "arrays", .nr_rings = fake_nr_rings, .snapshot = fake_snapshot, .next = fake_next
};

struct got {
	uint64_t times[RINGS_MAX * RECORDS_MAX];
	uint32_t rings[RINGS_MAX * RECORDS_MAX];
	unsigned next_of[RINGS_MAX]; /* the record that must come next of each ring */
	size_t nr;
	int fail;
	size_t fail_at;
};

static int collect(void *ctx, const struct csw_record *rec)
{
	struct got *got = ctx;

	if (got->fail && got->nr == got->fail_at)
		return got->fail;
	/* Within a ring nothing is left out, doubled or swapped. */
	assert_int_equal(rec->tid, got->next_of[rec->cpu]++);
	got->times[got->nr] = rec->time_ns;
	got->rings[got->nr++] = rec->cpu;
	return 0;
}

struct fixture {
	struct csw_driver drv;
	struct csw_merge merge;
	struct got got;
};

static struct fixture *begin(unsigned nr_rings)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->drv.nr = nr_rings;
	f->drv.horizon = UINT64_MAX;
	assert_int_equal(csw_merge_init(&f->merge, &fake_ops, &f->drv), 0);
	return f;
}

static void end(struct fixture *f)
{
	csw_merge_free(&f->merge);
	free(f);
}

static void fill(struct fixture *f, unsigned ring, const uint64_t *times, unsigned nr)
{
	struct ring *r = &f->drv.rings[ring];

	memcpy(r->times + r->nr, times, nr * sizeof(*times));
	r->nr += nr;
	r->filled = r->nr;
}
#define FILL(f, ring, ...)                                                                         \
	fill(f, ring, (const uint64_t[]){ __VA_ARGS__ },                                           \
	     sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static void run(struct fixture *f, uint64_t horizon)
{
	f->drv.horizon = horizon;
	assert_int_equal(csw_merge_run(&f->merge, collect, &f->got), 0);
}

static void check_times(const struct fixture *f, const uint64_t *times, size_t nr)
{
	assert_int_equal(f->got.nr, nr);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(f->got.times[i], times[i]);
}
#define CHECK_TIMES(f, ...)                                                                        \
	check_times(f, (const uint64_t[]){ __VA_ARGS__ },                                          \
		    sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static void test_three_rings(void **state)
{
	struct fixture *f = begin(3);

	(void)state;
	FILL(f, 0, 10, 40, 70);
	FILL(f, 1, 20, 30, 80);
	FILL(f, 2, 5, 50, 60);
	run(f, UINT64_MAX);
	CHECK_TIMES(f, 5, 10, 20, 30, 40, 50, 60, 70, 80);
	assert_int_equal(f->merge.late, 0);
	end(f);
}

static void test_horizon(void **state)
{
	struct fixture *f = begin(2);

	(void)state;
	FILL(f, 0, 10, 40);
	FILL(f, 1, 20, 30);
	run(f, 20);
	CHECK_TIMES(f, 10, 20);
	run(f, 29);
	CHECK_TIMES(f, 10, 20);
	/* What comes meanwhile in the other ring is earlier than what waits. */
	FILL(f, 1, 35, 50);
	run(f, 40);
	CHECK_TIMES(f, 10, 20, 30, 35, 40);
	run(f, UINT64_MAX);
	CHECK_TIMES(f, 10, 20, 30, 35, 40, 50);
	run(f, UINT64_MAX);
	assert_int_equal(f->got.nr, 6);
	assert_int_equal(f->merge.late, 0);
	end(f);
}

static void test_late(void **state)
{
	struct fixture *f = begin(2);

	(void)state;
	FILL(f, 0, 10, 40);
	run(f, 40);
	FILL(f, 1, 30, 35, 45);
	run(f, 50);
	/* Handed out all the same, in its ring's order; the clock does not go back for the rest. */
	CHECK_TIMES(f, 10, 40, 30, 35, 45);
	assert_int_equal(f->merge.late, 2);
	assert_int_equal(f->merge.last_ns, 45);
	/* A ring that goes back within itself keeps its order. */
	FILL(f, 0, 60, 55);
	run(f, UINT64_MAX);
	assert_int_equal(f->merge.late, 3);
	end(f);
}

static void test_equal_times(void **state)
{
	struct fixture *f = begin(4);

	(void)state;
	for (unsigned ring = 0; ring < 4; ring++)
		FILL(f, ring, 7, 7, 7);
	run(f, 7);
	/* collect() has checked that each ring's order stays. */
	assert_int_equal(f->got.nr, 12);
	assert_int_equal(f->merge.late, 0);
	end(f);
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static void test_many_rings(void **state)
{
	struct fixture *f = begin(RINGS_MAX);
	uint64_t seed = 42, now = 0;
	size_t all = 0;

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		uint64_t begun = now;

		for (unsigned ring = 0; ring < RINGS_MAX; ring++) {
			uint64_t t = begun;

			for (unsigned n = next_random(&seed) % 16; n > 0; n--, all++) {
				t += next_random(&seed) % 8;
				FILL(f, ring, t);
			}
			now = t > now ? t : now;
		}
		/* Rings go on from `now`; the horizon lies somewhere before it. */
		run(f, now - next_random(&seed) % (now - begun + 1));
	}
	run(f, UINT64_MAX);
	assert_int_equal(f->got.nr, all);
	for (size_t i = 1; i < all; i++)
		assert_true(f->got.times[i - 1] <= f->got.times[i]);
	assert_int_equal(f->merge.late, 0);
	end(f);
}

static void test_no_rings_no_records(void **state)
{
	struct fixture *f = begin(5);

	(void)state;
	run(f, UINT64_MAX);
	assert_int_equal(f->got.nr, 0);
	FILL(f, 3, 1);
	run(f, UINT64_MAX);
	assert_int_equal(f->got.nr, 1);
	assert_int_equal(f->got.rings[0], 3);
	end(f);
}

static void test_next_fails(void **state)
{
	(void)state;
	/* Six calls fill the heap and step over three records. */
	for (unsigned n = 0; n < 6; n++) {
		struct fixture *f = begin(3);

		FILL(f, 0, 10, 40);
		FILL(f, 1, 20, 50);
		FILL(f, 2, 30, 60);
		f->drv.fail = -EINVAL;
		f->drv.fail_at = n;
		assert_int_equal(csw_merge_run(&f->merge, collect, &f->got), -EINVAL);
		assert_int_equal(f->got.nr, n < 3 ? 0 : n - 2);
		end(f);
	}
}

static void test_put_fails(void **state)
{
	(void)state;
	for (size_t n = 0; n < 4; n++) {
		struct fixture *f = begin(2);

		FILL(f, 0, 10, 40);
		FILL(f, 1, 20, 30);
		f->got.fail = -ENOMEM;
		f->got.fail_at = n;
		assert_int_equal(csw_merge_run(&f->merge, collect, &f->got), -ENOMEM);
		assert_int_equal(f->got.nr, n);
		end(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_three_rings), cmocka_unit_test(test_horizon),
		cmocka_unit_test(test_late),        cmocka_unit_test(test_equal_times),
		cmocka_unit_test(test_many_rings),  cmocka_unit_test(test_no_rings_no_records),
		cmocka_unit_test(test_next_fails),  cmocka_unit_test(test_put_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
