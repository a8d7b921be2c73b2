/* The report's file; see output.h. */
#define _GNU_SOURCE /* mkostemp, O_TMPFILE */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/signals.h"

#define LINKS_MAX 40 /* as many as the kernel follows */
#define NAMES_TRIED 64
#define PROC_FD "/proc/self/fd/%d"
#define PROC_FD_BYTES 32

const char *csw_output_error(int error)
{
	return error == EPIPE ? "its reader has closed it" : strerror(error);
}

bool csw_output_is_unread(FILE *file)
{
	struct pollfd p = { .fd = fileno(file) };

	return poll(&p, 1, 0) > 0 && (p.revents & POLLERR);
}

int csw_output_complain(const struct csw_output *out, int ret)
{
	csw_complain("cannot write to %s: %s", out->name, csw_output_error(-ret));
	return ret;
}

/* Permissions as if the file had been opened for writing: those it has, or what the umask leaves.
 */
static void set_mode(int fd, const struct stat *old)
{
	mode_t mask = umask(0);
	int ret;

	umask(mask);
	ret = fchmod(fd, old ? old->st_mode & 07777 : 0666 & ~mask);
	(void)ret; /* a file system without modes is fine */
}

/* A name in the target's folder, the last six characters for mkstemp. Not the target's with a
 * suffix, which may be longer than a name can be. */
static char *temp_name(const char *target)
{
	const char *slash = strrchr(target, '/');
	char *name;

	if (asprintf(&name, "%.*s.csw-sample.XXXXXX", slash ? (int)(slash - target + 1) : 0,
		     target) < 0)
		return NULL;
	return name;
}

/* Without a name nothing is left, however csw-sample ends. -1: not on this file system, or nobody
 * could give it one later. */
static int open_nameless(const char *target)
{
	const char *slash = strrchr(target, '/');
	char *folder = slash ? strndup(target, (size_t)(slash - target + 1)) : strdup(".");
	int fd = folder ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600) : -1;
	char link[PROC_FD_BYTES];

	free(folder);
	if (fd < 0)
		return -1;
	snprintf(link, sizeof(link), PROC_FD, fd);
	if (access(link, F_OK) == 0)
		return fd;
	close(fd);
	return -1;
}

/* The file and who takes it away come into being together. */
static int open_named(struct csw_output *out)
{
	sigset_t mask;
	int fd, ret;

	out->temp = temp_name(out->target);
	if (!out->temp)
		return -ENOMEM;
	csw_signals_hold(&mask);
	fd = mkostemp(out->temp, O_CLOEXEC);
	ret = fd < 0 ? -errno : fd;
	if (fd >= 0)
		csw_signals_unlink(out->temp);
	csw_signals_let(&mask);
	if (fd < 0) {
		free(out->temp);
		out->temp = NULL;
	}
	return ret;
}

static int open_temp(struct csw_output *out, const struct stat *old)
{
	int fd = open_nameless(out->target);

	if (fd < 0)
		fd = open_named(out);
	if (fd < 0)
		return fd;
	set_mode(fd, old);
	out->file = fdopen(fd, "w");
	if (!out->file)
		close(fd);
	return out->file ? 0 : -ENOMEM;
}

/* Instead of the X of a temp_name(). A name that is taken only costs another try. */
static void number_name(char *name, int i)
{
	char digits[16];

	snprintf(digits, sizeof(digits), "%06x",
		 ((unsigned)getpid() * NAMES_TRIED + (unsigned)i) & 0xffffff);
	memcpy(name + strlen(name) - 6, digits, 6);
}

/* linkat() replaces nothing, so a nameless file needs a name for a moment before it gets its own.
 */
static int give_name(struct csw_output *out)
{
	char link[PROC_FD_BYTES];
	sigset_t mask;
	int ret = 0;

	if (out->temp)
		return 0;
	out->temp = temp_name(out->target);
	if (!out->temp)
		return -ENOMEM;
	snprintf(link, sizeof(link), PROC_FD, fileno(out->file));
	csw_signals_hold(&mask);
	for (int i = 0; i < NAMES_TRIED; i++) {
		number_name(out->temp, i);
		ret = linkat(AT_FDCWD, link, AT_FDCWD, out->temp, AT_SYMLINK_FOLLOW) < 0 ? -errno
											 : 0;
		if (ret != -EEXIST)
			break;
	}
	if (ret == 0)
		csw_signals_unlink(out->temp);
	csw_signals_let(&mask);
	if (ret < 0) {
		free(out->temp);
		out->temp = NULL;
	}
	return ret;
}

/* Where a symbolic link leads, whether something is there or not: a rename would replace the link.
 * NULL: errno says why. */
static char *follow(const char *path)
{
	char *at = strdup(path), link[PATH_MAX];

	for (int links = 0; at && links < LINKS_MAX; links++) {
		ssize_t bytes = readlink(at, link, sizeof(link));
		const char *slash = strrchr(at, '/');
		char *next;

		if (bytes < 0)
			return at; /* no link, or nothing: whoever opens it sees which */
		if (asprintf(&next, "%.*s%.*s", slash && *link != '/' ? (int)(slash - at + 1) : 0,
			     at, (int)bytes, link) < 0)
			next = NULL;
		free(at);
		at = next;
	}
	free(at);
	errno = at ? ELOOP : ENOMEM;
	return NULL;
}

static int open_file(struct csw_output *out, const char *path, const struct stat *old)
{
	out->target = follow(path);
	return out->target ? open_temp(out, old) : -errno;
}

static int open_in_place(struct csw_output *out, const char *path, const char *mode)
{
	struct stat st;

	out->file = fopen(path, mode);
	if (!out->file)
		return -errno;
	out->has_content = fstat(fileno(out->file), &st) == 0 && S_ISREG(st.st_mode) && st.st_size;
	return 0;
}

/* Does what is appended to end with a line? Half a one, as a full disk leaves, would spoil ours. */
static bool ends_with_line(const char *path)
{
	FILE *file = fopen(path, "re");
	bool ends = file && fseek(file, -1, SEEK_END) == 0 && fgetc(file) == '\n';

	if (file)
		fclose(file);
	return ends;
}

static int refuse_half_line(struct csw_output *out)
{
	csw_complain("%s does not end with a whole line: cut off what is half there, or use "
		     "another file for -o",
		     out->name);
	fclose(out->file);
	out->file = NULL;
	return -EEXIST;
}

/* A closed standard output was given to /dev/null for reading by main. */
static int open_stdout(struct csw_output *out)
{
	int flags = fcntl(STDOUT_FILENO, F_GETFL);

	*out = (struct csw_output){ .file = stdout, .name = "the standard output" };
	if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY)
		return 0;
	csw_complain("cannot write to the standard output: it is closed; use -o FILE");
	return -EBADF;
}

int csw_output_open(struct csw_output *out, const char *path, bool append)
{
	struct stat st;
	int ret;

	if (!path || strcmp(path, "-") == 0)
		return open_stdout(out);
	*out = (struct csw_output){ .name = path };
	if (append)
		ret = open_in_place(out, path, "ae");
	else if (stat(path, &st) < 0)
		ret = errno == ENOENT ? open_file(out, path, NULL) : -errno;
	else if (S_ISREG(st.st_mode))
		ret = open_file(out, path, &st);
	else
		ret = open_in_place(out, path, "we"); /* a device or a pipe is not replaced */
	if (ret == 0 && append && out->has_content && !ends_with_line(path))
		return refuse_half_line(out);
	return ret < 0 ? csw_output_complain(out, ret) : 0;
}

static int flush(struct csw_output *out)
{
	errno = 0;
	if (fflush(out->file) || ferror(out->file))
		return errno ? -errno : -EIO;
	return 0;
}

int csw_output_commit(struct csw_output *out)
{
	int ret = flush(out);

	if (!ret && out->target)
		ret = give_name(out);
	/* Network file systems report a full disk only now. */
	if (fclose(out->file) && !ret)
		ret = errno ? -errno : -EIO;
	out->file = NULL;
	if (!ret && out->target && rename(out->temp, out->target) < 0)
		ret = -errno;
	if (ret < 0)
		return csw_output_complain(out, ret);
	csw_signals_unlink(NULL);
	free(out->temp);
	out->temp = NULL;
	return 0;
}

int csw_output_publish(struct csw_output *out)
{
	struct stat st;
	int ret;

	if (!out->target) {
		ret = flush(out);
		return ret < 0 ? csw_output_complain(out, ret) : 0;
	}
	ret = csw_output_commit(out);
	if (ret < 0)
		return ret;
	ret = stat(out->target, &st) < 0 ? open_temp(out, NULL) : open_temp(out, &st);
	return ret < 0 ? csw_output_complain(out, ret) : 0;
}

void csw_output_close(struct csw_output *out)
{
	if (out->file && out->file != stdout)
		fclose(out->file);
	if (out->temp)
		unlink(out->temp);
	csw_signals_unlink(NULL);
	free(out->temp);
	free(out->target);
}
