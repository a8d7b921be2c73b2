/* Text that anyone may have written: decoded, escaped, measured and cut. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "engine/text.h"

static void test_utf8(void **state)
{
	static const struct {
		const char *text;
		int bytes;
		uint32_t point;
	} cases[] = {
		{ "", 0, 0 },
		{ "a", 1, 'a' },
		{ "\xc2\x80", 2, 0x80 },
		{ "\xe0\xa0\x80", 3, 0x800 },
		{ "\xf0\x90\x80\x80", 4, 0x10000 },
		{ "\xf4\x8f\xbf\xbf", 4, 0x10ffff },
		{ "\x80", -1, 0 }, /* a continuation */
		{ "\xc2", -1, 0 }, /* cut */
		{ "\xf0\x90\x80", -1, 0 },
		{ "\xc0\x80", -1, 0 }, /* overlong */
		{ "\xe0\x9f\xbf", -1, 0 },
		{ "\xed\xa0\x80", -1, 0 },     /* a surrogate */
		{ "\xf4\x90\x80\x80", -1, 0 }, /* beyond Unicode */
		{ "\xf8\x88\x80\x80\x80", -1, 0 },
		{ "\xff", -1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t point = 0;

		assert_int_equal(csw_utf8_next(cases[i].text, &point), cases[i].bytes);
		assert_int_equal(point, cases[i].point);
	}
}

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
	check_escape("page-faults \"'%s", "page-faults \"'%s");
	check_escape("\x1b \\x1b \\", "\\x1b \\\\x1b \\\\"); /* what was written stays apart */
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

/* Valid UTF-8 that turns text around, ends lines or is no character. */
static void test_escape_unsafe(void **state)
{
	static const uint32_t unsafe[] = { 0x1,    0x7f,   0x80,   0x9f,   0x61c,   0x200e,
					   0x200f, 0x2028, 0x2029, 0x202a, 0x202e,  0x2066,
					   0x2069, 0xfdd0, 0xfdef, 0xfffe, 0x1ffff, 0x10fffe };
	static const uint32_t safe[] = { 0x20,   0x7e,   0xa0,   0x61b,  0x61d,
					 0x200d, 0x2010, 0x2027, 0x202f, 0x2065,
					 0x206a, 0xfdcf, 0xfdf0, 0xfffd, 0x10000 };

	(void)state;
	for (size_t i = 0; i < sizeof(unsafe) / sizeof(*unsafe); i++)
		assert_true(csw_text_is_unsafe(unsafe[i]));
	for (size_t i = 0; i < sizeof(safe) / sizeof(*safe); i++)
		assert_false(csw_text_is_unsafe(safe[i]));
	check_escape("a\xe2\x80\xae"
		     "b",
		     "a\\xe2\\x80\\xae"
		     "b");
	check_escape("\xe2\x81\xa6\xe2\x80\xa8", "\\xe2\\x81\\xa6\\xe2\\x80\\xa8");
	check_escape("\xd8\x9c\xef\xbf\xbe", "\\xd8\\x9c\\xef\\xbf\\xbe");
}

/* A line of parts that were escaped before. */
static void test_escape_line(void **state)
{
	char part[32], out[64];

	(void)state;
	csw_escape(part, sizeof(part), "\x1b\\");
	assert_string_equal(csw_escape_line(out, sizeof(out), part), "\\x1b\\\\");
	assert_string_equal(csw_escape_line(out, sizeof(out), "\n\xe2\x80\xae"),
			    "\\x0a\\xe2\\x80\\xae");
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

static void test_width(void **state)
{
	static const struct {
		const char *text;
		unsigned width;
	} cases[] = {
		{ "", 0 },
		{ "abc", 3 },
		{ "gr\xc3\xbc\xc3\x9f", 4 },
		{ "\xe6\xbc\xa2\xe5\xad\x97", 4 }, /* two wide characters */
		{ "a\xcc\x81", 1 },                /* an accent on its own */
		{ "\xf0\x9f\x99\x82", 2 },
		{ "\xff\xfe", 2 }, /* bytes that are no UTF-8 */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(csw_text_width(cases[i].text), cases[i].width);
}

static void test_cut(void **state)
{
	static const struct {
		const char *text;
		unsigned width;
		const char *back, *front;
	} cases[] = {
		{ "abcdef", 6, "abcdef", "abcdef" },
		{ "abcdef", 5, "ab...", "...ef" },
		{ "abcdef", 3, "...", "..." },
		{ "abcdef", 2, "..", ".." },
		{ "abcdef", 0, "", "" },
		{ "", 0, "", "" },
		{ "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2", 6, "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2",
		  "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2" },
		{ "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2", 5, "\xe6\xbc\xa2...", "...\xe6\xbc\xa2" },
		{ "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2", 4, "...", "..." },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char back[32], front[32];

		strcpy(back, cases[i].text);
		csw_text_cut(back, cases[i].width);
		assert_string_equal(back, cases[i].back);
		strcpy(front, cases[i].text);
		csw_text_cut_front(front, cases[i].width);
		assert_string_equal(front, cases[i].front);
	}
}

/* Whatever the text and the width: never wider, and never longer than it was. */
static void test_cuts_fit(void **state)
{
	static const char *const pieces[] = {
		"a", "\xc3\xbc", "\xe6\xbc\xa2", "\xf0\x9f\x99\x82", "\xff", "a\xcc\x81"
	};

	(void)state;
	srand(1);
	for (int n = 0; n < 20000; n++) {
		char text[64] = "", back[64], front[64];
		unsigned width = (unsigned)(rand() % 20);

		for (int i = rand() % 10; i > 0; i--)
			strcat(text, pieces[rand() % 6]);
		strcpy(back, text);
		strcpy(front, text);
		csw_text_cut(back, width);
		csw_text_cut_front(front, width);
		assert_true(csw_text_width(back) <= width && csw_text_width(front) <= width);
		assert_true(strlen(back) <= strlen(text) && strlen(front) <= strlen(text));
		if (csw_text_width(text) <= width)
			assert_string_equal(back, text);
	}
}

static void test_number(void **state)
{
	static const struct {
		uint64_t value;
		const char *text;
	} cases[] = {
		{ 0, "0" },
		{ 999, "999" },
		{ 1000, "1,000" },
		{ 123456, "123,456" },
		{ 1234567, "1,234,567" },
		{ UINT64_MAX, "18,446,744,073,709,551,615" },
	};
	char out[CSW_NUMBER_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(csw_text_number(out, cases[i].value, false), cases[i].text);
	assert_string_equal(csw_text_number(out, UINT64_MAX, true), "18446744073709551615");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_utf8),          cmocka_unit_test(test_escape),
		cmocka_unit_test(test_escape_unsafe), cmocka_unit_test(test_escape_line),
		cmocka_unit_test(test_escape_cuts),   cmocka_unit_test(test_escape_huge),
		cmocka_unit_test(test_width),         cmocka_unit_test(test_cut),
		cmocka_unit_test(test_cuts_fit),      cmocka_unit_test(test_number),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
