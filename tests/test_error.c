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

static void check_escape(const char *in, const char *expected)
{
	char out[256];

	assert_ptr_equal(csw_escape(out, sizeof(out), in), out);
	assert_string_equal(out, expected);
}

static void test_escape(void **state)
{
	(void)state;
	check_escape("", "");
	check_escape("page-faults \\x41 \"'%s", "page-faults \\x41 \"'%s");
	check_escape("a\x1b[2Jb\nc\td\x7f", "a\\x1b[2Jb\\x0ac\\x09d\\x7f");
	check_escape("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x99\x82",
		     "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x99\x82");
	check_escape("\x80 \xff \xc3", "\\x80 \\xff \\xc3");
	check_escape("\xc0\xaf", "\\xc0\\xaf");                   /* overlong */
	check_escape("\xe0\x80\x80", "\\xe0\\x80\\x80");          /* overlong */
	check_escape("\xed\xa0\x80", "\\xed\\xa0\\x80");          /* a surrogate */
	check_escape("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* beyond U+10FFFF */
	check_escape("\xc2\x9b"
		     "2J",
		     "\\xc2\\x9b"
		     "2J");                     /* C1: CSI */
	check_escape("\xe2\x82", "\\xe2\\x82"); /* ends in mid-character */
}

static void test_escape_cuts(void **state)
{
	char out[16];

	(void)state;
	for (size_t bytes = 0; bytes <= sizeof(out); bytes++) {
		memset(out, '#', sizeof(out));
		csw_escape(out, bytes,
			   "ab\xe2\x82\xac\xe2\x82\xac\x1b\xe2\x82\xac"
			   "cdef");
		if (!bytes) {
			assert_int_equal(out[0], '#');
			continue;
		}
		assert_true(strnlen(out, bytes) < bytes);
		for (size_t i = bytes; i < sizeof(out); i++)
			assert_int_equal(out[i], '#');
		if (bytes > 3)
			assert_string_equal(out + strlen(out) - 3, "...");
	}
	csw_escape(out, 9, "ab\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
	assert_string_equal(out, "ab\xe2\x82\xac...");
	csw_escape(out, 9,
		   "ab\xe2\x82\xac"
		   "cde");
	assert_string_equal(out, "ab\xe2\x82\xac"
				 "cde"); /* fits exactly */
}

static void test_escape_huge(void **state)
{
	size_t bytes = 1 << 20;
	char *in = malloc(bytes + 1), out[64];

	(void)state;
	assert_non_null(in);
	memset(in, '\x1b', bytes);
	in[bytes] = '\0';
	csw_escape(out, sizeof(out), in);
	assert_string_equal(out + strlen(out) - 7, "\\x1b...");
	free(in);
}

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
		cmocka_unit_test(test_escape),      cmocka_unit_test(test_escape_cuts),
		cmocka_unit_test(test_escape_huge), cmocka_unit_test(test_set),
		cmocka_unit_test(test_set_long),    cmocka_unit_test(test_prefix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
