/*
 * Parses the command line with argp and refuses what cannot be meant.
 *
 * argp's own messages take two lines and come in its words, so they are switched off (ARGP_NO_ERRS,
 * which takes --help with it) and made here.
 */
#define _GNU_SOURCE /* asprintf */
#include "cli/options.h"

#include <argp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "csw/csw.h"

#define DEFAULT_EVENTS "page-faults,task-clock"
#define NS_PER_S 1000000000ull
#define SECONDS_MAX 1000000000ull /* 31 years; in ns well within 64 bits */
#define SAV_MAX 1000000000000ull
#define RING_KIB_MIN 4ull
#define RING_KIB_MAX (1ull << 20)

enum key {
	KEY_HELP = 'h',
	KEY_EVENT = 'e',
	KEY_PID = 'p',
	KEY_DURATION = 'd',
	KEY_OUTPUT = 'o',
	KEY_VERSION = 'V',
	KEY_TRIGGER = 256,
	KEY_SAV,
	KEY_DRIVER,
	KEY_BY,
	KEY_FORMAT,
	KEY_RING,
	KEY_VERBOSE,
};

/* clang-format off */
static const struct argp_option entries[] = {
	{ NULL, 0, NULL, 0, "What to count:", 1 },
	{ "event", KEY_EVENT, "LIST", 0, "Events to count per thread, separated by commas; may be repeated "
	  "(default: " DEFAULT_EVENTS ")", 0 },
	{ "trigger", KEY_TRIGGER, "NAME", 0, "What stands for a context switch: switch, seg_load, ... or an event "
	  "(default: auto, the best that works here)", 0 },
	{ "sav", KEY_SAV, "N", 0, "Sample after every N-th occurrence of the trigger (default: 1)", 0 },
	{ "driver", KEY_DRIVER, "NAME", 0, "Source of the counts: auto, perf, or sim[:OPTIONS], a simulated machine "
	  "(default: auto)", 0 },
	{ "ring-kib", KEY_RING, "N", 0, "Size of each CPU's ring buffer in KiB", 0 },
	{ NULL, 0, NULL, 0, "Of whom and how long (without these: the whole machine until Ctrl-C):", 2 },
	{ "pid", KEY_PID, "PID[,PID]", 0, "Report only the threads of these processes; may be repeated", 0 },
	{ "duration", KEY_DURATION, "SECONDS", 0, "End after so many seconds, such as 2.5", 0 },
	{ NULL, 0, NULL, 0, "How to show it:", 3 },
	{ "by", KEY_BY, "thread|process", 0, "A row for each thread (default) or for each process", 0 },
	{ "format", KEY_FORMAT, "table|json", 0, "Report for people (default) or for programs", 0 },
	{ "output", KEY_OUTPUT, "FILE", 0, "Write the report to FILE, which appears only when it is complete", 0 },
	{ "verbose", KEY_VERBOSE, NULL, 0, "Say more below the table", 0 },
	{ NULL, 0, NULL, 0, NULL, 4 },
	{ "help", KEY_HELP, NULL, 0, "Show this help", 0 },
	{ "version", KEY_VERSION, NULL, 0, "Show the version", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static const char doc[] =
	"Counts how much of each event every thread of the machine caused: counters run per CPU and are read at each "
	"context switch, so no thread is missed and none is slowed down by being attached to."
	"\v"
	"Examples:\n"
	"  csw-sample -- make -j4\n"
	"      page faults and CPU time of each thread that make and its children had\n"
	"  csw-sample -e page-faults,context-switches --by=process -d 10\n"
	"      all processes of the machine for ten seconds, most page faults first\n"
	"  csw-sample -e syscalls:sys_enter_read -p 4242 --format=json -o reads.json\n"
	"      how often each thread of process 4242 reads, until Ctrl-C, for a program\n"
	"\n"
	"Counting a whole machine needs root or CAP_PERFMON; tracepoints need root. `--driver=sim` needs nothing.\n"
	"\n"
	"Exit status: 0 done; 1 failed; 2 bad usage; 3 the numbers do not add up. With a program: the program's own "
	"status (128 + signal), 125 if csw-sample failed, 126 or 127 if the program cannot be run or found.";
/* clang-format on */

void csw_complain(const char *format, ...)
{
	char line[CSW_ERROR_BYTES + 512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	for (char *c = line; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	}
	fprintf(stderr, "csw-sample: %s\n", line);
}

/* ---- values ---- */

/* Digits only: strtoull takes signs and spaces too. 0 or -EINVAL, nothing printed. */
static int parse_digits(const char **text, uint64_t max, uint64_t *out)
{
	const char *c = *text;
	uint64_t value = 0;

	for (; *c >= '0' && *c <= '9'; c++) {
		value = value * 10 + (uint64_t)(*c - '0');
		if (value > max)
			return -EINVAL;
	}
	if (c == *text)
		return -EINVAL;
	*text = c;
	*out = value;
	return 0;
}

static int parse_number(const char *option, const char *arg, uint64_t min, uint64_t max,
			uint64_t *out)
{
	const char *end = arg;

	if (parse_digits(&end, max, out) == 0 && !*end && *out >= min)
		return 0;
	csw_complain("%s=%s: must be a whole number from %llu to %llu", option, arg,
		     (unsigned long long)min, (unsigned long long)max);
	return -EINVAL;
}

/* Decimal, exact to the ns; further digits are checked and have no weight. */
static int parse_seconds(struct csw_options *o, const char *arg)
{
	uint64_t seconds = 0, ns = 0, weight = NS_PER_S / 10;
	const char *c = arg;
	int ret = 0;

	if (*c != '.')
		ret = parse_digits(&c, SECONDS_MAX, &seconds);
	if (ret == 0 && *c == '.') {
		const char *first = ++c;

		for (; *c >= '0' && *c <= '9'; c++, weight /= 10)
			ns += (uint64_t)(*c - '0') * weight;
		ret = c == first ? -EINVAL : 0;
	}
	if (ret < 0 || *c || (seconds == SECONDS_MAX && ns)) {
		csw_complain("-d %s: must be a number of seconds from 0 to %llu, such as 2.5", arg,
			     SECONDS_MAX);
		return -EINVAL;
	}
	o->has_duration = true;
	o->duration_ns = seconds * NS_PER_S + ns;
	return 0;
}

static int add_pid(struct csw_options *o, uint64_t pid)
{
	int32_t *pids = reallocarray(o->pids, o->nr_pids + 1, sizeof(*pids));

	if (!pids) {
		csw_complain("not enough memory for the list of processes");
		return -ENOMEM;
	}
	o->pids = pids;
	o->pids[o->nr_pids++] = (int32_t)pid;
	return 0;
}

static int parse_pids(struct csw_options *o, const char *arg)
{
	const char *c = arg;
	uint64_t pid;
	int ret;

	for (;;) {
		ret = parse_digits(&c, INT32_MAX, &pid);
		if (ret < 0 || pid == 0 || (*c && *c != ','))
			break;
		ret = add_pid(o, pid);
		if (ret < 0 || !*c)
			return ret;
		c++;
	}
	csw_complain("-p %s: must be process ids from 1 to %d, separated by commas", arg,
		     INT32_MAX);
	return -EINVAL;
}

static int add_events(struct csw_options *o, const char *arg)
{
	char *joined;

	if (asprintf(&joined, "%s%s%s", o->events ? o->events : "", o->events ? "," : "", arg) <
	    0) {
		csw_complain("not enough memory for the list of events");
		return -ENOMEM;
	}
	free(o->events);
	o->events = joined;
	return 0;
}

/* words[i] means i. */
static int parse_word(const char *option, const char *arg, const char *const words[2],
		      uint32_t *out)
{
	for (uint32_t i = 0; i < 2; i++) {
		if (strcmp(arg, words[i]) == 0) {
			*out = i;
			return 0;
		}
	}
	csw_complain("%s=%s: must be %s or %s", option, arg, words[0], words[1]);
	return -EINVAL;
}

/* ---- argp ---- */

static int parse_command(struct csw_options *o, const char *arg, struct argp_state *state)
{
	if (!state->quoted) {
		csw_complain("%s: unexpected; a program to run stands after --", arg);
		return -EINVAL;
	}
	o->command = state->argv + state->next - 1;
	state->next = state->argc;
	return 0;
}

static int parse_value(struct csw_options *o, int key, const char *arg)
{
	static const char *const by[] = {
		[CSW_BY_THREAD] = "thread", [CSW_BY_PROCESS] = "process"
	};
	static const char *const formats[] = {
		[CSW_FORMAT_TABLE] = "table", [CSW_FORMAT_JSON] = "json"
	};
	uint64_t kib = 0;
	int ret;

	switch (key) {
	case KEY_EVENT:
		return add_events(o, arg);
	case KEY_SAV:
		return parse_number("--sav", arg, 1, SAV_MAX, &o->sav);
	case KEY_RING:
		ret = parse_number("--ring-kib", arg, RING_KIB_MIN, RING_KIB_MAX, &kib);
		o->ring_bytes = kib * 1024;
		return ret;
	case KEY_PID:
		return parse_pids(o, arg);
	case KEY_DURATION:
		return parse_seconds(o, arg);
	case KEY_BY:
		return parse_word("--by", arg, by, &o->by);
	default:
		return parse_word("--format", arg, formats, &o->format);
	}
}

struct parsing {
	struct csw_options *o;
	int ret;         /* what was printed already */
	int key_of_info; /* KEY_HELP or KEY_VERSION */
	int at;          /* the argument where argp itself gave up */
};

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
	struct parsing *p = state->input;

	switch (key) {
	case KEY_HELP:
	case KEY_VERSION:
		if (!p->key_of_info)
			p->key_of_info = key;
		return 0;
	case KEY_TRIGGER:
		p->o->trigger = arg;
		return 0;
	case KEY_DRIVER:
		p->o->driver = arg;
		return 0;
	case KEY_OUTPUT:
		p->o->output = arg;
		return 0;
	case KEY_VERBOSE:
		p->o->verbose = true;
		return 0;
	case ARGP_KEY_ARG:
		p->ret = parse_command(p->o, arg, state);
		return -p->ret;
	case ARGP_KEY_ERROR:
		p->at = state->next - 1;
		return 0;
	case KEY_EVENT:
	case KEY_SAV:
	case KEY_RING:
	case KEY_PID:
	case KEY_DURATION:
	case KEY_BY:
	case KEY_FORMAT:
		p->ret = parse_value(p->o, key, arg);
		return -p->ret;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

bool csw_options_simulated(const struct csw_options *o)
{
	return strncmp(o->driver, "sim", 3) == 0 && (!o->driver[3] || o->driver[3] == ':');
}

static int check(const struct csw_options *o, int argc, char **argv)
{
	if (!o->command && strcmp(argv[argc - 1], "--") == 0) {
		csw_complain("there is no program after --");
		return -EINVAL;
	}
	if (csw_options_simulated(o) && (o->command || o->nr_pids)) {
		csw_complain("--driver=sim runs programs of its own: leave out %s",
			     o->command ? "the program after --" : "-p");
		return -EINVAL;
	}
	return 0;
}

int csw_options_parse(struct csw_options *o, int argc, char **argv)
{
	const struct argp argp = { entries, parse_key, "-- PROGRAM [ARGUMENT...]\n", doc, NULL,
				   NULL,    NULL };
	struct parsing p = { .o = o };
	error_t error;

	*o = (struct csw_options){ .driver = "auto" };
	/* In order: "csw-sample ls -- x" must not run x. */
	error = argp_parse(&argp, argc, argv,
			   ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_NO_EXIT | ARGP_IN_ORDER, NULL, &p);
	if (p.ret < 0)
		return p.ret;
	if (error) {
		csw_complain("%s: no such option, or its value is missing or not wanted; see "
			     "csw-sample --help",
			     p.at > 0 && p.at < argc ? argv[p.at] : "arguments");
		return -EINVAL;
	}
	if (p.key_of_info == KEY_HELP)
		argp_help(&argp, stdout, ARGP_HELP_STD_HELP, (char[]){ "csw-sample" });
	else if (p.key_of_info)
		printf("csw-sample %s\n", csw_version());
	if (p.key_of_info)
		return 1;
	if (!o->events && add_events(o, DEFAULT_EVENTS) < 0)
		return -ENOMEM;
	return check(o, argc, argv);
}

void csw_options_free(struct csw_options *o)
{
	free(o->events);
	free(o->pids);
}
