/* The command line, checked: what a value here says is possible, or parsing has failed. */
#ifndef CSW_CLI_OPTIONS_H
#define CSW_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses; with a command the two of env(1) besides. */
#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define EXIT_BROKEN 3 /* the numbers do not add up */
#define EXIT_SELF                                                                                  \
	125 /* with a command, whose own status would else be reported: csw-sample itself failed   \
	     */
#define EXIT_CANNOT_RUN 126
#define EXIT_NOT_FOUND 127

struct csw_options {
	char *events;        /* the lists of all -e, joined */
	const char *trigger; /* NULL: the library's choice */
	const char *driver;
	uint64_t sav, ring_bytes; /* 0: the library's choice */
	uint32_t by, format;
	bool verbose;
	const char *output; /* NULL: stdout */
	bool has_duration;
	uint64_t duration_ns;
	int32_t *pids;
	size_t nr_pids;
	char **command; /* NULL-terminated; NULL: none */
};

/* 0: go on; 1: nothing more to do, --help or --version has been printed; -EINVAL, -ENOMEM: the
 * reason has been printed. */
int csw_options_parse(struct csw_options *o, int argc, char **argv);
void csw_options_free(struct csw_options *o);
bool csw_options_simulated(const struct csw_options *o);

/* One line "csw-sample: ..." on stderr, whatever bytes the arguments hold. */
void csw_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
