/*
 * csw-sample: measure, report, exit status.
 *
 * Invariant: a report file under its own name is complete; until then it has another name in the
 * same folder.
 */
#define _GNU_SOURCE /* mkostemp */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/run.h"
#include "csw/csw.h"

struct output {
	FILE *file;
	const char *name; /* for messages */
	char *target;     /* where temp goes when it is complete; NULL: written in place */
	char *temp;
};

/* ---- the report's file ---- */

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

static int open_temp(struct output *out, const char *path, const struct stat *old)
{
	int fd;

	/* Through symbolic links, or the rename would replace the link and not the file. */
	out->target = old ? realpath(path, NULL) : strdup(path);
	if (!out->target || asprintf(&out->temp, "%s.XXXXXX", out->target) < 0) {
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

/* Before the run: a folder that cannot be written to shall not cost a measurement. */
static int open_output(struct output *out, const char *path)
{
	struct stat st;
	int ret = 0;

	*out = (struct output){ .file = stdout, .name = "the standard output" };
	if (!path || strcmp(path, "-") == 0)
		return 0;
	*out = (struct output){ .name = path };
	if (stat(path, &st) < 0) {
		ret = open_temp(out, path, NULL);
	} else if (S_ISREG(st.st_mode)) {
		ret = open_temp(out, path, &st);
	} else {
		/* A device or a pipe is written to, not replaced. */
		out->file = fopen(path, "we");
		ret = out->file ? 0 : -errno;
	}
	if (ret < 0)
		csw_complain("cannot write to %s: %s", path, strerror(-ret));
	return ret;
}

static int commit_output(struct output *out)
{
	int ret = 0;

	errno = 0;
	if (fflush(out->file) || ferror(out->file))
		ret = errno ? -errno : -EIO;
	/* Network file systems report a full disk only now. */
	if (fclose(out->file) && !ret)
		ret = errno ? -errno : -EIO;
	out->file = NULL;
	if (!ret && out->temp && rename(out->temp, out->target) < 0)
		ret = -errno;
	if (ret < 0) {
		csw_complain("cannot write to %s: %s", out->name, strerror(-ret));
		return ret;
	}
	csw_run_unlink_if_killed(NULL);
	free(out->temp);
	out->temp = NULL;
	return 0;
}

/* Takes away what has not been committed. */
static void close_output(struct output *out)
{
	if (out->file && out->file != stdout)
		fclose(out->file);
	if (out->temp)
		unlink(out->temp);
	csw_run_unlink_if_killed(NULL);
	free(out->temp);
	free(out->target);
}

/* ---- measuring and reporting ---- */

/* 0, EXIT_BROKEN or -errno, the reason printed. */
static int report(struct csw_session *s, const struct csw_options *o, FILE *file)
{
	struct csw_report_opts opts = { .size = sizeof(opts),
					.format = o->format,
					.verbose = o->verbose };
	struct csw_summary summary = { .broken = 1 };
	struct csw_table *table;
	struct csw_error err = { .code = 0 };
	int ret = csw_table_open(&table, s, o->by, &err);

	if (ret == 0)
		ret = csw_report(table, file, &opts, &err);
	if (ret < 0)
		csw_complain("%s", err.text);
	else
		csw_table_summary(table, &summary, sizeof(summary));
	csw_table_close(table);
	if (ret < 0)
		return ret;
	if (summary.broken)
		csw_complain("the numbers do not add up, see the report's end; do not trust them");
	return summary.broken ? EXIT_BROKEN : 0;
}

static int sample(const struct csw_options *o, struct output *out)
{
	int failed = o->command ? EXIT_SELF : EXIT_FAILED;
	struct csw_session *s;
	int program_status;
	int status = csw_run(&s, o, &program_status);

	if (status)
		return status;
	status = report(s, o, out->file);
	csw_close(s);
	if (status < 0 || commit_output(out) < 0)
		return failed;
	if (status)
		return o->command ? EXIT_SELF : status;
	return program_status;
}

/* A closed stdin, stdout or stderr would give its number to a counter, and the report would be
 * written into that. */
static int reserve_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY);
		if (fd < 0)
			return -errno;
	} while (fd <= STDERR_FILENO);
	close(fd);
	return 0;
}

static int finish_info(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	csw_complain("cannot write to the standard output: %s", strerror(errno));
	return EXIT_FAILED;
}

int main(int argc, char **argv)
{
	struct csw_options o;
	struct output out;
	int ret = reserve_standard_fds(), status;

	if (ret < 0)
		return EXIT_FAILED;
	ret = csw_options_parse(&o, argc, argv);
	if (ret) {
		status = ret > 0 ? finish_info() : ret == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	} else {
		ret = open_output(&out, o.output);
		status = ret < 0 ? (o.command ? EXIT_SELF : EXIT_FAILED) : sample(&o, &out);
		close_output(&out);
	}
	csw_options_free(&o);
	return status;
}
