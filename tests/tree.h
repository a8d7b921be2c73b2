/* A made-up machine for tests: a temporary directory that stands in for / in engine/sysfs. */
#ifndef CSW_TESTS_TREE_H
#define CSW_TESTS_TREE_H

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/error.h"
#include "engine/percpu.h"
#include "engine/sysfs.h"

static char tree_root[256];

/* For cmocka's setup: 0, or -1 when there is no place for it. */
/* A made-up machine has none of the real kernel's variables. */
static inline int tree_no_variable(const char *name, struct csw_percpu_variable *out,
				   struct csw_error *err)
{
	(void)out;
	return csw_error_set(err, -EOPNOTSUPP, "nothing tells where %s is", name);
}

static inline int tree_setup(void **state)
{
	static const struct csw_percpu_ops no_variables = { .find = tree_no_variable };

	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(tree_root, sizeof(tree_root), "%s/csw-tree-XXXXXX", tmp ? tmp : P_tmpdir);
	if (!mkdtemp(tree_root))
		return -1;
	csw_sysfs_set_root_for_tests(tree_root);
	csw_percpu_set_ops_for_tests(&no_variables);
	return 0;
}

static inline void tree_remove(const char *path)
{
	struct dirent *entry;
	DIR *dir = opendir(path);

	while (dir && (entry = readdir(dir))) {
		char below[PATH_MAX];

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) < PATH_MAX)
			tree_remove(below);
	}
	if (dir)
		closedir(dir);
	remove(path);
}

static inline int tree_teardown(void **state)
{
	(void)state;
	csw_sysfs_set_root_for_tests("");
	csw_percpu_set_ops_for_tests(NULL);
	tree_remove(tree_root);
	return 0;
}

/* Makes all directories of the path but its last part. */
static inline void tree_mkdirs(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
}

/* A file below the root with these bytes; a failure shows in the test that reads it. */
static inline void tree_bytes(const char *name, const void *data, size_t bytes)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s%s", tree_root, name);
	tree_mkdirs(path);
	file = fopen(path, "w");
	if (!file)
		return;
	fwrite(data, 1, bytes, file);
	fclose(file);
}

static inline void tree_file(const char *name, const char *text)
{
	tree_bytes(name, text, strlen(text));
}

#endif
