/*
 * The cgroup v2 hierarchy: which id has which path. The kernel's id of a cgroup is the inode of its
 * directory.
 *
 * Invariant: a path handed out stays good until close, also when the cgroup is gone: what was
 * counted in it keeps its name.
 */
#ifndef CSW_ENGINE_CGROUPS_H
#define CSW_ENGINE_CGROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct csw_cgroups;

/* Where the v2 hierarchy is mounted, from /proc/self/mountinfo. 0, or -ENOENT: only v1 hierarchies,
 * or none. */
int csw_cgroups_mount(char *mount, size_t bytes);

/* The id of the cgroup at path ("/a/b") below mount; 0: there is none. */
uint64_t csw_cgroups_id(const char *mount, const char *path);

/* Learns all that are there below mount. 0 or -ENOMEM. */
int csw_cgroups_open(struct csw_cgroups **out, const char *mount);
void csw_cgroups_close(struct csw_cgroups *c); /* NULL is fine */

/* The path below the mount, "/" for the root; NULL: nobody knows it. Looks again when the id is
 * new. */
const char *csw_cgroups_path(struct csw_cgroups *c, uint64_t id);

#endif
