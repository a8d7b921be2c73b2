/*
 * The header, the version map and the shared library agree on what the public calls are.
 *
 * Invariant: the names are read from the three places themselves, none stands in this file.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "csw/csw.h"

#define NAMES_MAX 512
#define NAME_BYTES 80

const char *api_c99_version(void);
const char *api_cxx11_version(void);

struct names {
	char name[NAMES_MAX][NAME_BYTES];
	size_t nr;
};

static struct names header, map, library;

static void add_name(struct names *names, const char *name, size_t len)
{
	assert_true(len < NAME_BYTES);
	assert_true(names->nr < NAMES_MAX);
	memcpy(names->name[names->nr], name, len);
	names->name[names->nr++][len] = '\0';
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void sort_names(struct names *names)
{
	qsort(names->name, names->nr, NAME_BYTES, compare_names);
}

/* Not inlined: gcc -O3 then takes what getdelim fills in for the pointer that it is told. */
__attribute__((noinline)) static char *read_file(const char *path)
{
	FILE *file = fopen(path, "re");
	struct stat st;
	char *text;

	if (!file)
		fail_msg("cannot open %s", path);
	assert_int_equal(fstat(fileno(file), &st), 0);
	text = calloc(1, (size_t)st.st_size + 1);
	if (!text || fread(text, 1, (size_t)st.st_size, file) != (size_t)st.st_size)
		fail_msg("cannot read %s", path);
	fclose(file);
	return text;
}

static void blank_comments(char *text)
{
	for (char *at = text; (at = strstr(at, "/*"));) {
		const char *close = strstr(at, "*/");

		assert_non_null(close);
		memset(at, ' ', (size_t)(close + 2 - at));
	}
}

static size_t name_length(const char *text)
{
	size_t len = 0;

	while (isalnum((unsigned char)text[len]) || text[len] == '_')
		len++;
	return len;
}

/* Every csw_* name that is followed by `end`. */
static void collect(struct names *names, const char *text, char end)
{
	while ((text = strstr(text, "csw_"))) {
		size_t len = name_length(text);

		if (text[len] == end)
			add_name(names, text, len);
		text += len;
	}
	sort_names(names);
}

static void read_library(struct names *names)
{
	FILE *pipe = popen(CSW_NM " -D --defined-only --format=posix '" CSW_SHARED "'", "re");
	char line[1024];

	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		char type = '\0';
		char name[256];

		/* nm writes NAME@@VERSION TYPE VALUE SIZE; the version itself is an absolute
		 * symbol. */
		assert_int_equal(sscanf(line, "%255s %c", name, &type), 2);
		if (type == 'A')
			continue;
		assert_int_equal(type, 'T');
		assert_non_null(strstr(name, "@@CSW_"));
		add_name(names, name, (size_t)(strchr(name, '@') - name));
	}
	assert_int_equal(pclose(pipe), 0);
	sort_names(names);
}

static int read_all(void **state)
{
	char *text;

	(void)state;
	text = read_file(CSW_HEADER);
	blank_comments(text);
	collect(&header, text, '(');
	free(text);
	text = read_file(CSW_MAP);
	blank_comments(text);
	collect(&map, text, ';');
	free(text);
	read_library(&library);
	return 0;
}

static void assert_same(const struct names *a, const char *where_a, const struct names *b,
			const char *where_b)
{
	for (size_t i = 0; i < a->nr; i++)
		if (!bsearch(a->name[i], b->name, b->nr, NAME_BYTES, compare_names))
			fail_msg("%s is in %s but not in %s", a->name[i], where_a, where_b);
	for (size_t i = 0; i < b->nr; i++)
		if (!bsearch(b->name[i], a->name, a->nr, NAME_BYTES, compare_names))
			fail_msg("%s is in %s but not in %s", b->name[i], where_b, where_a);
	assert_int_equal(a->nr, b->nr);
}

static void test_header_and_map(void **state)
{
	(void)state;
	assert_true(header.nr > 0);
	assert_same(&header, "the header", &map, "the map");
}

static void test_header_and_library(void **state)
{
	(void)state;
	assert_same(&header, "the header", &library, "the library");
}

static void test_version(void **state)
{
	char text[32];

	(void)state;
	snprintf(text, sizeof(text), "%d.%d.%d", CSW_VERSION_MAJOR, CSW_VERSION_MINOR,
		 CSW_VERSION_PATCH);
	assert_string_equal(text, CSW_VERSION);
	assert_string_equal(csw_version(), CSW_VERSION);
	assert_string_equal(api_c99_version(), CSW_VERSION);
#ifdef CSW_TEST_CXX
	assert_string_equal(api_cxx11_version(), CSW_VERSION);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header_and_map),
		cmocka_unit_test(test_header_and_library),
		cmocka_unit_test(test_version),
	};

	return cmocka_run_group_tests(tests, read_all, NULL);
}
