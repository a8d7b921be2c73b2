/* Error lines: one line, safe for any terminal, cut between characters. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/error.h"

static void test_set(void **state)
{
	struct csw_error err;

	(void)state;
	assert_int_equal(csw_error_set(&err, -ENOENT, "no %s, %d", "event", 7), -ENOENT);
	assert_int_equal(err.code, -ENOENT);
	assert_string_equal(err.text, "no event, 7");
	assert_int_equal(csw_error_set(NULL, -EINVAL, "nobody reads this"), -EINVAL);
	csw_error_set(&err, -EINVAL, "two\nlines \x1b[0m");
	assert_string_equal(err.text, "two\\x0alines \\x1b[0m");
}

static void test_set_long(void **state)
{
	char longer[3 * CSW_ERROR_BYTES];
	struct csw_error err;

	(void)state;
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	csw_error_set(&err, -EINVAL, "%s", longer);
	assert_int_equal(strlen(err.text), CSW_ERROR_BYTES - 1);
	assert_string_equal(err.text + CSW_ERROR_BYTES - 5, "x...");
}

static void test_prefix(void **state)
{
	char longer[2 * CSW_ERROR_BYTES];
	struct csw_error err;

	(void)state;
	csw_error_set(&err, -EACCES, "not permitted");
	assert_int_equal(csw_error_prefix(&err, "CPU %d", 3), -EACCES);
	assert_string_equal(err.text, "CPU 3: not permitted");
	memset(longer, 'y', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(csw_error_prefix(&err, "%s", longer), -EACCES);
	assert_true(strlen(err.text) < CSW_ERROR_BYTES);
	assert_true(csw_error_prefix(NULL, "x") < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_set_long),
		cmocka_unit_test(test_prefix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
