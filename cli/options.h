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

/* What the command line is of: the counting itself, or one of the commands that share its options.
 */
enum csw_use {
	CSW_USE_COUNT,
	CSW_USE_REPORT,
	CSW_USE_SLICES,
	CSW_USE_CALIBRATE,
};

struct csw_options {
	uint32_t use;        /* enum csw_use */
	uint64_t given;      /* a bit for each option that was there, by its place in the table */
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

/* 0: go on; -EINVAL, -ENOMEM: the reason has been printed. Prints nothing else. An option that has
 * no meaning for this use is refused. */
int csw_options_parse(struct csw_options *o, enum csw_use use, int argc, char **argv);
void csw_options_free(struct csw_options *o);

/* Prints the help of this use, or the version, to stdout. 0 or -errno, nothing complained. */
int csw_options_inform(enum csw_use use, uint32_t info);

/* Of the commands that have no other options: is argv[*i] one that asks for JSON ("--json",
 * "--format=json", or the same in two words, when *i moves on)? */
bool csw_options_json(int argc, char **argv, int *i);

/* A subcommand whose only options are --help, which prints usage, and that: the exit status. */
int csw_options_run_plain(int argc, char **argv, const char *usage, int (*run)(bool json));

/* A whole subcommand: parses, then prints what was asked for, or runs. The exit status. */
int csw_options_run(enum csw_use use, int argc, char **argv,
		    int (*run)(const struct csw_options *o));

/* Whether the machine is simulated, and time with it. */
bool csw_options_simulated(const struct csw_options *o);

/* One line "csw-sample: ..." on stderr, whatever bytes the arguments hold. */
void csw_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
