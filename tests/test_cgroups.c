/* engine/cgroups: ids and paths on a made-up hierarchy; an id is the inode of a directory, there as
 * here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/cgroups.h"
#include "tests/tree.h"

static void make_directory(const char *path)
{
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", tree_root, path);
	assert_int_equal(mkdir(full, 0755), 0);
}

static void remove_directory(const char *path)
{
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", tree_root, path);
	assert_int_equal(rmdir(full), 0);
}

static void test_paths(void **state)
{
	struct csw_cgroups *c;
	uint64_t id;

	(void)state;
	make_directory("/a");
	make_directory("/a/b");
	make_directory("/system.slice");
	assert_int_equal(csw_cgroups_open(&c, tree_root), 0);
	assert_string_equal(csw_cgroups_path(c, csw_cgroups_id(tree_root, "/a/b")), "/a/b");
	assert_string_equal(csw_cgroups_path(c, csw_cgroups_id(tree_root, "/a")), "/a");
	assert_string_equal(csw_cgroups_path(c, csw_cgroups_id(tree_root, "/")), "/");
	assert_int_equal(csw_cgroups_id(tree_root, "/nowhere"), 0);
	assert_null(csw_cgroups_path(c, 0));
	assert_null(csw_cgroups_path(c, UINT64_MAX));

	/* One that came later is found, and one that is gone keeps its name. */
	make_directory("/a/late");
	id = csw_cgroups_id(tree_root, "/a/late");
	assert_string_equal(csw_cgroups_path(c, id), "/a/late");
	remove_directory("/a/late");
	assert_string_equal(csw_cgroups_path(c, id), "/a/late");
	csw_cgroups_close(c);
	csw_cgroups_close(NULL);
}

/* More than the array holds at first, and links are not followed. */
static void test_many(void **state)
{
	char name[64], target[PATH_MAX];
	struct csw_cgroups *c;

	(void)state;
	make_directory("/many");
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "/many/group%d", i);
		make_directory(name);
	}
	snprintf(target, sizeof(target), "%s/many/loop", tree_root);
	assert_int_equal(symlink(tree_root, target), 0);
	assert_int_equal(csw_cgroups_open(&c, tree_root), 0);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "/many/group%d", i);
		assert_string_equal(csw_cgroups_path(c, csw_cgroups_id(tree_root, name)), name);
	}
	csw_cgroups_close(c);
}

static void test_no_such_mount(void **state)
{
	struct csw_cgroups *c;

	(void)state;
	assert_int_equal(csw_cgroups_open(&c, "/nonexistent/mount"), 0);
	assert_null(csw_cgroups_path(c, 1));
	csw_cgroups_close(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_paths, tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(test_many, tree_setup, tree_teardown),
		cmocka_unit_test(test_no_such_mount),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
