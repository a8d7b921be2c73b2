/* The start scan; see scan.h. */
#include "drivers/perf/scan.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/perf/sys.h"
#include "engine/cgroups.h"
#include "engine/error.h"

#define PF_KTHREAD 0x00200000u /* include/linux/sched.h; field 9 of stat */

/* A small file relative to a folder; its bytes, NUL-terminated, or -errno. */
static ssize_t read_at(int dir, const char *name, char *text, size_t bytes)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -errno;
	got = read(fd, text, bytes - 1);
	if (got < 0)
		got = -errno;
	else
		text[got] = '\0';
	close(fd);
	return got;
}

/* pid (comm) state ppid pgrp session tty tpgid flags ...: the name may hold anything, so the fields
 * begin after the last ')'. */
static int parse_stat(const char *text, struct csw_record *rec)
{
	const char *close_paren = strrchr(text, ')');
	unsigned flags;
	int ppid;

	if (!close_paren ||
	    sscanf(close_paren + 1, " %*c %d %*d %*d %*d %*d %u", &ppid, &flags) != 2)
		return -EINVAL;
	rec->other_pid = ppid;
	if (flags & PF_KTHREAD)
		rec->flags |= CSW_RECORD_KERNEL_THREAD;
	return 0;
}

/* Threads and processes may vanish under the scan, and /proc may hide those of other users
 * (hidepid=1: -EPERM); whatever else fails is an error. */
static int unless_vanished(int error)
{
	return error == -ENOENT || error == -ESRCH || error == -EACCES || error == -EPERM ? 0
											  : error;
}

static int scan_thread(int tasks, const char *tid, struct csw_record *rec,
		       const struct csw_sink *sink)
{
	char path[320], comm[64];
	ssize_t got;

	snprintf(path, sizeof(path), "%s/comm", tid);
	got = read_at(tasks, path, comm, sizeof(comm));
	if (got < 0)
		return unless_vanished((int)got);
	/* The kernel puts one newline behind the name, which may itself hold newlines. */
	if (got > 0 && comm[got - 1] == '\n')
		comm[--got] = '\0';
	memset(rec->comm, 0, sizeof(rec->comm));
	memcpy(rec->comm, comm,
	       (size_t)got < sizeof(rec->comm) ? (size_t)got : sizeof(rec->comm) - 1);
	rec->tid = atoi(tid);
	rec->time_ns = csw_perf_sys.now_ns();
	sink->put(sink->ctx, rec);
	return 0;
}

static DIR *open_dir_at(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *opened = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !opened) {
		close(fd);
		errno = ENOMEM;
	}
	return opened;
}

/* "0::/a/b" among lines of other hierarchies. Threads of one process share it but in threaded
 * cgroups, where the first sample puts it right. */
static uint64_t find_cgroup(int proc, const char *pid, const char *mount)
{
	char name[320], text[8192], *line, *end;

	snprintf(name, sizeof(name), "%s/cgroup", pid);
	if (!mount || read_at(proc, name, text, sizeof(text)) < 0)
		return 0;
	line = !strncmp(text, "0::", 3) ? text : strstr(text, "\n0::");
	if (!line)
		return 0;
	line += line == text ? 3 : 4;
	end = strchr(line, '\n');
	if (end)
		*end = '\0';
	return csw_cgroups_id(mount, line);
}

static int scan_process(int proc, const char *pid, int32_t self, const char *cgroup_mount,
			const struct csw_sink *sink)
{
	struct csw_record rec = { .type = CSW_RECORD_TASK };
	char path[320], stat[1024];
	DIR *tasks;

	ssize_t got;
	int ret = 0;

	snprintf(path, sizeof(path), "%s/stat", pid);
	got = read_at(proc, path, stat, sizeof(stat));
	if (got < 0 || parse_stat(stat, &rec) < 0)
		return got < 0 ? unless_vanished((int)got) : 0;
	rec.pid = atoi(pid);
	if (rec.pid == self)
		rec.flags |= CSW_RECORD_SELF;
	rec.cgroup = find_cgroup(proc, pid, cgroup_mount);
	snprintf(path, sizeof(path), "%s/task", pid);
	tasks = open_dir_at(proc, path);
	if (!tasks)
		return unless_vanished(-errno);
	for (struct dirent *entry = readdir(tasks); entry && ret == 0; entry = readdir(tasks)) {
		if (isdigit((unsigned char)entry->d_name[0]) && strlen(entry->d_name) < 16)
			ret = scan_thread(dirfd(tasks), entry->d_name, &rec, sink);
	}
	closedir(tasks);
	return ret;
}

int csw_perf_scan(const char *proc, int32_t self, const char *cgroup_mount,
		  const struct csw_sink *sink, struct csw_error *err)
{
	DIR *processes = opendir(proc);
	int ret = 0;

	if (!processes)
		return csw_error_set(err, -errno,
				     "cannot read %s: %s; the threads' names come from there", proc,
				     strerror(errno));
	for (struct dirent *entry = readdir(processes); entry && ret == 0;
	     entry = readdir(processes)) {
		if (isdigit((unsigned char)entry->d_name[0]) && strlen(entry->d_name) < 16)
			ret = scan_process(dirfd(processes), entry->d_name, self, cgroup_mount,
					   sink);
	}
	closedir(processes);
	if (ret < 0)
		return csw_error_set(
			err, ret, "cannot read the threads from %s: %s%s", proc, strerror(-ret),
			ret == -EMFILE ? "; raise the limit on open files (ulimit -n)" : "");
	return 0;
}
