/*
 * Which cgroup an id of a recording is: its own CGROUP records say so, not this machine.
 *
 * Invariant: in the order of ids, each once; a path stays where it is until free.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/perfdata/perfdata.h"

/* Where the id is, or has its place. */
static size_t place_of(const struct csw_file_cgroups *c, uint64_t id)
{
	size_t low = 0, high = c->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->all[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int csw_file_cgroups_add(struct csw_file_cgroups *c, const struct perf_event_header *raw, bool swap)
{
	const unsigned char *body = (const unsigned char *)(raw + 1);
	size_t bytes = raw->size - sizeof(*raw), at;
	struct csw_file_cgroup *all;
	uint64_t id;
	char *path;

	if (bytes <= sizeof(id) || c->nr == CSW_FILE_CGROUPS_MAX)
		return 0;
	id = csw_file_u64(body, swap);
	at = place_of(c, id);
	if (at < c->nr && c->all[at].id == id)
		return 0;
	path = strndup((const char *)body + sizeof(id), bytes - sizeof(id));
	all = reallocarray(c->all, c->nr + 1, sizeof(*all));
	if (all)
		c->all = all;
	if (!all || !path) {
		free(path);
		return -ENOMEM;
	}
	memmove(all + at + 1, all + at, (c->nr - at) * sizeof(*all));
	all[at] = (struct csw_file_cgroup){ id, path };
	c->nr++;
	return 0;
}

const char *csw_file_cgroups_path(const struct csw_file_cgroups *c, uint64_t id)
{
	size_t at = place_of(c, id);

	return at < c->nr && c->all[at].id == id ? c->all[at].path : NULL;
}

void csw_file_cgroups_free(struct csw_file_cgroups *c)
{
	for (size_t i = 0; i < c->nr; i++)
		free(c->all[i].path);
	free(c->all);
	*c = (struct csw_file_cgroups){ .nr = 0 };
}
