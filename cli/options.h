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

/* Process or thread ids as given; they are valid numbers, and that is all. */
struct csw_ids {
	int32_t *ids;
	size_t nr;
};

struct csw_options {
	char *events;        /* the lists of all -e, joined */
	const char *trigger; /* NULL: the library's choice */
	const char *driver;
	uint64_t sav, ring_bytes; /* 0: the library's choice */
	bool force;               /* a trigger that is known not to work here */
	uint32_t by, format;
	const char *sort; /* NULL: the library's choice */
	uint64_t top;     /* 0: all rows */
	bool multiplex;
	uint32_t mixed;
	bool verbose, histogram, rate, raw, no_colour, quiet, overhead;
	const char *output; /* NULL: stdout */
	bool has_duration;
	uint64_t duration_ns; /* from the end of the delay */
	uint64_t delay_ns;
	uint64_t interval_ns; /* 0: one report at the end */
	struct csw_ids pids, tids;
	const char *cgroup;      /* NULL: any */
	char *cpus;              /* the lists of all -C, joined; NULL: all */
	const char *input;       /* of report and slices: the recording; NULL: none */
	bool header;             /* of report: only what it says of its machine */
	char *comms;             /* of report: the lists of all --comm, joined; NULL: all */
	uint64_t from_ns, to_ns; /* of report: csw_opts of these names */
	uint32_t time_flags;
	char **command; /* NULL-terminated; NULL: none */
	uint32_t info;  /* what is to be printed instead of measuring: enum csw_info */
};

enum csw_info {
	CSW_INFO_NONE,
	CSW_INFO_HELP,
	CSW_INFO_VERSION,
};

/* 0: go on; -EINVAL, -ENOMEM: the reason has been printed. Prints nothing else. */
int csw_options_parse(struct csw_options *o, int argc, char **argv);
void csw_options_free(struct csw_options *o);

/* Prints help or version to stdout. 0 or -errno, nothing complained. */
int csw_options_inform(uint32_t info);

/* A whole subcommand: parses, then prints what was asked for, or else checks (0, or -EINVAL: the
 * reason has been printed) and runs. The exit status. */
int csw_options_run(int argc, char **argv, int (*check)(const struct csw_options *o),
		    int (*run)(const struct csw_options *o));

/* Whether the machine is simulated, and time with it. */
bool csw_options_simulated(const struct csw_options *o);

/* Whether there is an option that only report and slices have; complains of it. */
bool csw_recording_option(const struct csw_options *o);

/* One line "csw-sample: ..." on stderr, whatever bytes the arguments hold. */
void csw_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
