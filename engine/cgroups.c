/* Ids and paths of cgroups; see cgroups.h. A sorted array: there are few of them and they seldom
 * change. */
#include "engine/cgroups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNKNOWN_MAX 64 /* ids that a second look did not find either: looked up again in turn */

struct cgroup {
	uint64_t id;
	char *path; /* an own allocation: it stays where it is when the array grows */
};

struct csw_cgroups {
	char *mount;
	struct cgroup *known;
	size_t nr, capacity;
	uint64_t unknown[UNKNOWN_MAX];
	size_t nr_unknown;
};

int csw_cgroups_mount(char *mount, size_t bytes)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[2 * PATH_MAX], point[PATH_MAX];
	int ret = -ENOENT;

	if (!file)
		return -errno;
	while (ret && fgets(line, sizeof(line), file)) {
		/* 36 35 0:25 / /sys/fs/cgroup rw ... shared:4 - cgroup2 cgroup2 rw */
		const char *kind = strstr(line, " - cgroup2 ");

		if (!kind || sscanf(line, "%*s %*s %*s %*s %4095s", point) != 1)
			continue;
		ret = (size_t)snprintf(mount, bytes, "%s", point) < bytes ? 0 : -ENAMETOOLONG;
	}
	fclose(file);
	return ret;
}

uint64_t csw_cgroups_id(const char *mount, const char *path)
{
	char full[PATH_MAX];
	struct stat st;

	if ((size_t)snprintf(full, sizeof(full), "%s%s", mount, path) >= sizeof(full) ||
	    stat(full, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	return st.st_ino;
}

static struct cgroup *find(const struct csw_cgroups *c, uint64_t id)
{
	size_t low = 0, high = c->nr;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (c->known[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return &c->known[low]; /* where it is, or belongs */
}

static bool is_there(const struct csw_cgroups *c, const struct cgroup *place, uint64_t id)
{
	return place < c->known + c->nr && place->id == id;
}

static int add(struct csw_cgroups *c, uint64_t id, const char *path)
{
	struct cgroup *place;
	char *own;

	if (c->nr && is_there(c, find(c, id), id))
		return 0;
	if (c->nr == c->capacity) {
		size_t capacity = c->capacity ? 2 * c->capacity : 64;
		struct cgroup *known = realloc(c->known, capacity * sizeof(*known));

		if (!known)
			return -ENOMEM;
		c->known = known;
		c->capacity = capacity;
	}
	own = strdup(path);
	if (!own)
		return -ENOMEM;
	place = find(c, id);
	memmove(place + 1, place, (size_t)(c->known + c->nr - place) * sizeof(*place));
	*place = (struct cgroup){ .id = id, .path = own };
	c->nr++;
	return 0;
}

/* Everything at and below path, a buffer of PATH_MAX that is put back as it was. dir is closed. */
static int walk(struct csw_cgroups *c, int dir, char *path, size_t length)
{
	struct stat st;
	DIR *open_dir;
	int ret;

	if (dir < 0)
		return 0; /* vanished meanwhile */
	ret = fstat(dir, &st) < 0 ? 0 : add(c, st.st_ino, length ? path : "/");
	open_dir = ret < 0 ? NULL : fdopendir(dir);
	if (!open_dir) {
		close(dir);
		return ret;
	}
	for (struct dirent *entry = readdir(open_dir); entry && ret == 0;
	     entry = readdir(open_dir)) {
		size_t more = strlen(entry->d_name) + 1;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || length + more >= PATH_MAX)
			continue;
		snprintf(path + length, PATH_MAX - length, "/%s", entry->d_name);
		ret = walk(
			c,
			openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
			path, length + more);
		path[length] = '\0';
	}
	closedir(open_dir);
	return ret;
}

static int look(struct csw_cgroups *c)
{
	char path[PATH_MAX] = "";

	return walk(c, open(c->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC), path, 0);
}

int csw_cgroups_open(struct csw_cgroups **out, const char *mount)
{
	struct csw_cgroups *c = calloc(1, sizeof(*c));

	*out = NULL;
	if (!c)
		return -ENOMEM;
	c->mount = strdup(mount);
	if (!c->mount || look(c) < 0) {
		csw_cgroups_close(c);
		return -ENOMEM;
	}
	*out = c;
	return 0;
}

void csw_cgroups_close(struct csw_cgroups *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->nr; i++)
		free(c->known[i].path);
	free(c->known);
	free(c->mount);
	free(c);
}

static bool was_unknown(const struct csw_cgroups *c, uint64_t id)
{
	for (size_t i = 0; i < c->nr_unknown && i < UNKNOWN_MAX; i++) {
		if (c->unknown[i] == id)
			return true;
	}
	return false;
}

const char *csw_cgroups_path(struct csw_cgroups *c, uint64_t id)
{
	struct cgroup *place = find(c, id);

	if (is_there(c, place, id))
		return place->path;
	/* A new one, or one that came and went between two looks: do not walk for every slice of
	 * that. */
	if (!id || was_unknown(c, id) || look(c) < 0)
		return NULL;
	place = find(c, id);
	if (is_there(c, place, id))
		return place->path;
	c->unknown[c->nr_unknown++ % UNKNOWN_MAX] = id;
	return NULL;
}
