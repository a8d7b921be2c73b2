/* The report's file; see output.h. */
#define _GNU_SOURCE /* mkostemp */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/run.h"

static int complain(const struct csw_output *out, int ret)
{
	csw_complain("cannot write to %s: %s", out->name, strerror(-ret));
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

static int open_temp(struct csw_output *out, const struct stat *old)
{
	int fd;

	if (asprintf(&out->temp, "%s.XXXXXX", out->target) < 0) {
		out->temp = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(out->temp, O_CLOEXEC);
	if (fd < 0) {
		int ret = -errno;

		free(out->temp);
		out->temp = NULL;
		return ret;
	}
	set_mode(fd, old);
	csw_run_unlink_if_killed(out->temp);
	out->file = fdopen(fd, "w");
	if (!out->file)
		close(fd);
	return out->file ? 0 : -ENOMEM;
}

static int open_file(struct csw_output *out, const char *path, const struct stat *old)
{
	/* Through symbolic links, or the rename would replace the link and not the file. */
	out->target = old ? realpath(path, NULL) : strdup(path);
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
		ret = open_file(out, path, NULL);
	else if (S_ISREG(st.st_mode))
		ret = open_file(out, path, &st);
	else
		ret = open_in_place(out, path, "we"); /* a device or a pipe is not replaced */
	return ret < 0 ? complain(out, ret) : 0;
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

	/* Network file systems report a full disk only now. */
	if (fclose(out->file) && !ret)
		ret = errno ? -errno : -EIO;
	out->file = NULL;
	if (!ret && out->temp && rename(out->temp, out->target) < 0)
		ret = -errno;
	if (ret < 0)
		return complain(out, ret);
	csw_run_unlink_if_killed(NULL);
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
		return ret < 0 ? complain(out, ret) : 0;
	}
	ret = csw_output_commit(out);
	if (ret < 0)
		return ret;
	ret = stat(out->target, &st) < 0 ? open_temp(out, NULL) : open_temp(out, &st);
	return ret < 0 ? complain(out, ret) : 0;
}

void csw_output_close(struct csw_output *out)
{
	if (out->file && out->file != stdout)
		fclose(out->file);
	if (out->temp)
		unlink(out->temp);
	csw_run_unlink_if_killed(NULL);
	free(out->temp);
	free(out->target);
}
