/*
 * The running kernel by its own words: /proc/sys/kernel/osrelease and its configuration, from
 * /proc/config.gz or, as most distributions have it, from /boot.
 *
 * Invariant: "not known" is an answer of its own, never "no".
 */
#include "engine/kernel.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "engine/sysfs.h"

#define RELEASE_BYTES 128
#define LINE_BYTES 512 /* longer lines are texts, which nobody asks for */

bool csw_kernel_at_least(unsigned major, unsigned minor)
{
	char release[RELEASE_BYTES];
	unsigned has_major, has_minor;

	if (csw_sysfs_read(release, sizeof(release), "/proc/sys/kernel/osrelease") <= 0 ||
	    sscanf(release, "%u.%u", &has_major, &has_minor) != 2)
		return false;
	return has_major > major || (has_major == major && has_minor >= minor);
}

/* zlib reads a file that is not compressed as it is. Closes fd. */
static int look_up(int fd, const char *option)
{
	size_t nr = strlen(option);
	char line[LINE_BYTES];
	int found = 0, error = Z_OK;
	gzFile file = gzdopen(fd, "rb");

	if (!file) {
		close(fd);
		return -ENODATA;
	}
	while (!found && gzgets(file, line, sizeof(line)))
		found = !strncmp(line, option, nr) && !strncmp(line + nr, "=y", 2);
	gzerror(file, &error);
	gzclose(file);
	return found ? 1 : error == Z_OK ? 0 : -ENODATA;
}

int csw_kernel_config(const char *option)
{
	char release[RELEASE_BYTES];
	int fd = csw_sysfs_open("/proc/config.gz");

	if (fd < 0 && csw_sysfs_read(release, sizeof(release), "/proc/sys/kernel/osrelease") > 0)
		fd = csw_sysfs_open("/boot/config-%s", release);
	return fd < 0 ? -ENODATA : look_up(fd, option);
}
