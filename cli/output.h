/*
 * Where reports go: the standard output, or the file of -o.
 *
 * Invariant: a report file under its own name is complete; until then it has another name in the
 * same folder. Only intervals are appended in place, each with one flush.
 */
#ifndef CSW_CLI_OUTPUT_H
#define CSW_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct csw_output {
	FILE *file;
	const char *name; /* for messages */
	char *target;     /* where temp goes when it is complete; NULL: written in place */
	char *temp;
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

#endif
