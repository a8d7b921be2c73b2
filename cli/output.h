/*
 * Where reports go: the standard output, or the file of -o.
 *
 * Invariant: a report file under its own name is complete. Until then it has no name at all, or,
 * where the file system needs one, another in the same folder. Only intervals are appended in
 * place, each with one flush.
 */
#ifndef CSW_CLI_OUTPUT_H
#define CSW_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct csw_output {
	FILE *file;
	const char *name; /* for messages */
	char *target;     /* what it is called when it is complete; NULL: written in place */
	char *temp;       /* its name until then; NULL: none yet */
	bool has_content; /* appends to what was there before */
};

/* path NULL or "-": the standard output. Called before the run: a folder that cannot be written to
 * shall not cost a measurement. 0 or -errno, the reason printed; close it in any case. */
int csw_output_open(struct csw_output *out, const char *path, bool append);

/* What has been written so far is a complete report: it gets its name, or is flushed; more may
 * follow. 0 or -errno, the reason printed. */
int csw_output_publish(struct csw_output *out);

/* The same, and nothing follows. */
int csw_output_commit(struct csw_output *out);

/* Takes away what has not been committed. */
void csw_output_close(struct csw_output *out);

/* Writing has failed: says so. Returns ret, which is -errno. */
int csw_output_complain(const struct csw_output *out, int ret);

/* Whether it is a pipe or a socket that nobody reads any more. */
bool csw_output_is_unread(FILE *file);

/* What an error of writing means; static storage or strerror's. */
const char *csw_output_error(int error);

#endif
