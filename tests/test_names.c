/* Which names are near a mistyped one, and in which order. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "engine/names.h"

static const char *nearest(const char *wanted, const char *const *names, char *text, size_t bytes)
{
	struct csw_nearest n;

	csw_nearest_init(&n, wanted);
	for (; *names; names++)
		csw_nearest_offer(&n, *names);
	return csw_nearest_text(&n, text, bytes);
}

static void check(const char *wanted, const char *const *names, const char *expected)
{
	char text[256];

	assert_string_equal(nearest(wanted, names, text, sizeof(text)), expected);
}

static void test_distance(void **state)
{
	static const char *const names[] = { "page-faults", "major-faults", "minor-faults",
					     "cycles",      "LLC_MISSES",   NULL };

	(void)state;
	check("page-fault", names, "page-faults");
	check("apge-faults", names, "page-faults"); /* neighbours swapped */
	check("pagefaults", names, "page-faults");
	check("page_faults", names, "page-faults");
	check("llc_miss", names, "LLC_MISSES"); /* case is no difference */
	check("manor-faults", names,
	      "major-faults, minor-faults"); /* page-faults is too far behind */
	check("cycels", names, "cycles");
	check("nonsense", names, "");
	check("", names, "");
	check("x", names, "");
}

static void test_order(void **state)
{
	static const char *const names[] = { "abcdeXYZ", "abcdeX",  "abcde",  "abcdYf",
					     "abcdef",   "abcdefg", "ABCDEF", NULL };

	(void)state;
	/* by distance (0 first), then as offered; ABCDEF is abcdef again; abcdeXYZ is too far */
	check("abcdef", names, "abcdef, abcdeX, abcde, abcdYf, abcdefg");
}

static void test_five(void **state)
{
	static const char *const names[] = { "event-1", "event-2", "event-3", "event-4",
					     "event-5", "event-6", "event",   NULL };
	struct csw_nearest n;

	(void)state;
	check("event-", names, "event-1, event-2, event-3, event-4, event-5");
	csw_nearest_init(&n, "event-");
	for (size_t i = 0; names[i]; i++)
		csw_nearest_offer(&n, names[i]);
	assert_int_equal(n.nr, CSW_NEAREST_MAX);
	csw_nearest_offer(&n, "event-"); /* better than all of them */
	assert_int_equal(n.nr, CSW_NEAREST_MAX);
	assert_string_equal(n.best[0].name, "event-");
	assert_int_equal(n.best[0].distance, 0);
	assert_string_equal(n.best[4].name, "event-4");
}

static void test_text_is_cut_between_names(void **state)
{
	static const char *const names[] = { "event-1", "event-2", NULL };
	char text[16];

	(void)state;
	nearest("event-", names, text, 16);
	assert_string_equal(text, "event-1");
	nearest("event-", names, text, 8);
	assert_string_equal(text, "event-1");
	nearest("event-", names, text, 7);
	assert_string_equal(text, "");
	memset(text, '#', sizeof(text));
	nearest("event-", names, text, 0);
	assert_int_equal(text[0], '#');
}

static void test_suffix(void **state)
{
	struct csw_nearest n;
	char text[64];

	(void)state;
	csw_nearest_init(&n, "cyclse");
	assert_string_equal(csw_nearest_suffix(&n, text, sizeof(text)), "");
	csw_nearest_offer(&n, "cycles");
	assert_string_equal(csw_nearest_suffix(&n, text, sizeof(text)), "; nearest: cycles");
	assert_string_equal(csw_nearest_suffix(&n, text, 12), "");
}

/* Compared without its subsystem, written with it. */
static void test_written_otherwise(void **state)
{
	struct csw_nearest n;
	char text[64];

	(void)state;
	csw_nearest_init(&n, "sched_swich");
	csw_nearest_offer_as(&n, "sched_switch", "sched:sched_switch");
	csw_nearest_offer_as(&n, "sched_switch", "other:sched_switch");
	csw_nearest_offer_as(&n, "sched_switch", "sched:sched_switch");
	csw_nearest_offer_as(&n, "far", "sched_swich");
	assert_string_equal(csw_nearest_text(&n, text, sizeof(text)),
			    "sched:sched_switch, other:sched_switch");
}

/* Names of any length and with any bytes: nothing is near them, nothing overflows. */
static void test_hostile(void **state)
{
	static const char *const names[] = { "cycles", NULL };
	size_t bytes = 1 << 20;
	char *huge = malloc(bytes + 1);
	struct csw_nearest n;

	(void)state;
	assert_non_null(huge);
	memset(huge, 'c', bytes);
	huge[bytes] = '\0';
	check(huge, names, "");
	huge[127] = '\0'; /* the longest that is compared */
	csw_nearest_init(&n, huge);
	csw_nearest_offer(&n, huge);
	assert_int_equal(n.nr, 1);
	assert_int_equal(strlen(n.best[0].name), 127);
	huge[127] = 'c';
	huge[128] = '\0';
	csw_nearest_init(&n, "cycles");
	csw_nearest_offer(&n, huge);
	assert_int_equal(n.nr, 0);
	check("\xff\x1b\n", names, "");
	free(huge);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distance), cmocka_unit_test(test_order),
		cmocka_unit_test(test_five),     cmocka_unit_test(test_text_is_cut_between_names),
		cmocka_unit_test(test_suffix),   cmocka_unit_test(test_written_otherwise),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
