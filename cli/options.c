/*
 * Parses the command line with argp and refuses what cannot be meant.
 *
 * argp's own messages take two lines and come in its words, so they are switched off (ARGP_NO_ERRS,
 * which takes --help with it) and made here. Invariant: every number that is accepted is exact and
 * within the range that its message would name.
 */
#define _GNU_SOURCE /* asprintf */
#include "cli/options.h"

#include <argp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/explain.h"
#include "cli/print.h"
#include "csw/csw.h"

#define DEFAULT_EVENTS "page-faults,task-clock"
#define NS_PER_S 1000000000ull
#define NS_PER_MS 1000000ull
#define SECONDS_MAX 1000000000ull /* 31 years; in ns well within 64 bits */
#define DELAY_MS_MAX 86400000ull  /* a day */
/* Below it more time goes into reading all CPUs than into running. */
#define INTERVAL_MS_MIN 10ull
#define INTERVAL_MS_MAX 86400000ull
#define SAV_MAX 1000000000000ull
#define TOP_MAX 1000000000ull
#define RING_KIB_MIN 4ull
#define RING_KIB_MAX (1ull << 20)
#define CPU_MAX 65535ull

enum key {
	KEY_HELP = 'h',
	KEY_EVENT = 'e',
	KEY_PID = 'p',
	KEY_TID = 't',
	KEY_CPUS = 'C',
	KEY_DURATION = 'd',
	KEY_INTERVAL = 'I',
	KEY_OUTPUT = 'o',
	KEY_QUIET = 'q',
	KEY_VERSION = 'V',
	KEY_TRIGGER = 256,
	KEY_SAV,
	KEY_DRIVER,
	KEY_CGROUP,
	KEY_DELAY,
	KEY_BY,
	KEY_SORT,
	KEY_TOP,
	KEY_FORMAT,
	KEY_HISTOGRAM,
	KEY_RATE,
	KEY_RAW,
	KEY_NO_COLOUR,
	KEY_OVERHEAD,
	KEY_RING,
	KEY_MULTIPLEX,
	KEY_VERBOSE,
	KEY_INPUT = 'i',
	KEY_TIME = 512,
	KEY_COMM,
	KEY_HEADER,
	KEY_FORCE,
	KEY_MIXED,
};

/* clang-format off */
static const struct argp_option entries[] = {
	{ NULL, 0, NULL, 0, "What to count:", 1 },
	{ "event", KEY_EVENT, "LIST", 0, "Events to count per thread, separated by commas; may be repeated "
	  "(default: " DEFAULT_EVENTS ")", 0 },
	{ "trigger", KEY_TRIGGER, "NAME", 0, "What stands for a context switch: switch, seg_load, ... or an event "
	  "(default: auto, the best that works here)", 0 },
	{ "sav", KEY_SAV, "N", 0, "Sample after every N-th occurrence of the trigger; auto: as the catalogue of triggers "
	  "has it (default: 1)", 0 },
	{ "force", KEY_FORCE, NULL, 0, "Use a trigger that is known not to work here; the report says why not", 0 },
	{ "driver", KEY_DRIVER, "NAME", 0, "Source of the counts: auto, perf, or sim[:OPTIONS], a simulated machine "
	  "(default: auto)", 0 },
	{ "multiplex", KEY_MULTIPLEX, NULL, 0, "Let hardware events that do not fit the PMU together take turns; their "
	  "values are scaled, and marked ~", 0 },
	{ "mixed", KEY_MIXED, "HOW", 0, "What becomes of a slice in which several threads ran: row (default), the row "
	  "[mixed]; by estimate, marked ~: last, the last thread has it, or split, each has a share by its time", 0 },
	{ "ring-kib", KEY_RING, "N", 0, "Size of each CPU's ring buffer in KiB", 0 },
	{ NULL, 0, NULL, 0, "Of whom (without these every thread of the machine; several must all hold):", 2 },
	{ "pid", KEY_PID, "PID[,PID]", 0, "The threads of these processes; without -d until all of them have ended", 0 },
	{ "tid", KEY_TID, "TID[,TID]", 0, "These threads; without -d until all of them have ended", 0 },
	{ "cgroup", KEY_CGROUP, "PATH", 0, "Threads while they are in this cgroup or below it", 0 },
	{ "cpus", KEY_CPUS, "LIST", 0, "Count on these CPUs only, such as 0-3,8", 0 },
	{ NULL, 0, NULL, 0, "How long (without these until Ctrl-C or the end of PROGRAM):", 3 },
	{ "duration", KEY_DURATION, "SECONDS", 0, "End after so many seconds, such as 2.5; a PROGRAM that still "
	  "runs is sent SIGTERM, 5 seconds later SIGKILL", 0 },
	{ "delay", KEY_DELAY, "MS", 0, "Begin to count so many milliseconds after the start", 0 },
	{ "interval", KEY_INTERVAL, "MS", 0, "Report every so many milliseconds what happened in them", 0 },
	{ NULL, 0, NULL, 0, "How to show it:", 4 },
	{ "by", KEY_BY, "WHAT", 0, "A row for each thread (default), process, comm (name), cgroup or cpu", 0 },
	{ "sort", KEY_SORT, "COLUMN", 0, "Order by an event, oncpu, slices, voluntary, preempted, migrations, pid, tid, "
	  "comm, cgroup or cpu (default: the first event)", 0 },
	{ "top", KEY_TOP, "N", 0, "Show N rows and the sum of the others", 0 },
	{ "rate", KEY_RATE, NULL, 0, "Beside each value, per second and in percent of the machine's", 0 },
	{ "histogram", KEY_HISTOGRAM, NULL, 0, "Show how many slices had how many events", 0 },
	{ "format", KEY_FORMAT, "FORMAT", 0, "table for people (default), json or csv for programs. It "
	  "comes after what PROGRAM itself prints: with a program use -o FILE", 0 },
	{ "output", KEY_OUTPUT, "FILE", 0, "Write the report to FILE, which appears only when it is complete; with -I "
	  "append to it", 0 },
	{ "raw", KEY_RAW, NULL, 0, "No thousands separators", 0 },
	{ "no-color", KEY_NO_COLOUR, NULL, 0, "No colours on a terminal (nor with NO_COLOR set)", 0 },
	{ "quiet", KEY_QUIET, NULL, 0, "No line of progress on a terminal, no hints at the end", 0 },
	{ "verbose", KEY_VERBOSE, NULL, 0, "Say more below the table", 0 },
	{ "overhead", KEY_OVERHEAD, NULL, 0, "Say at the end how much CPU time csw-sample took", 0 },
	{ NULL, 0, NULL, 0, "Of report and slices:", 5 },
	{ "input", KEY_INPUT, "FILE", 0, "The recording (perf.data) to read; -: the standard input", 0 },
	{ "time", KEY_TIME, "FROM,TO", 0, "Only what happened between these times, in seconds of the recording's clock or, "
	  "with a + before them, from its first sample on; either may be left out", 0 },
	{ "comm", KEY_COMM, "NAME[,NAME]", 0, "Threads of these names", 0 },
	{ "header", KEY_HEADER, NULL, 0, "What the recording says of its machine, and nothing else", 0 },
	{ NULL, 0, NULL, 0, NULL, 6 },
	{ "help", KEY_HELP, NULL, 0, "Show this help", 0 },
	{ "version", KEY_VERSION, NULL, 0, "Show the version", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static const char usage[] = "[-- PROGRAM [ARGUMENT...]]";

static const char doc[] =
	"Counts how much of each event every thread of the machine caused: counters run per CPU and are read at each "
	"context switch, so no thread is missed and none is slowed down by being attached to."
	"\v"
	"Examples:\n"
	"  csw-sample -- make -j4\n"
	"      page faults and CPU time of each thread that make and its children had\n"
	"  csw-sample -e page-faults,context-switches --by=process --top=20 -d 10\n"
	"      ten seconds of the machine, the 20 processes with most page faults\n"
	"  csw-sample -e syscalls:sys_enter_read -p 4242 -I 1000\n"
	"      how often each thread of process 4242 reads, every second until it ends\n"
	"  csw-sample --format=json -o make.json -- make -j4\n"
	"      the same as the first for a program, apart from what make prints\n"
	"  csw-sample --by=cgroup --rate --format=json -o night.json -d 3600\n"
	"      an hour by container and service, for a program\n"
	"\n"
	"Commands:\n"
	"  csw-sample list triggers|events|drivers [WORD...]\n"
	"      what this machine can do, and why not the rest; only what holds all words\n"
	"  csw-sample doctor\n"
	"      permissions, hardware and settings, each with its remedy\n"
	"  csw-sample verify\n"
	"      counts what is known, and compares\n"
	"  csw-sample report -i FILE [--time=FROM,TO] [--comm=NAME] [-p PID] [--header] [OPTION...]\n"
	"      the same tables from a recording of perf record, simpleperf and others\n"
	"  csw-sample slices [-i FILE | OPTION... -- PROGRAM] [--format=csv|json]\n"
	"      a line for every slice\n"
	"\n"
	"SIGUSR1 shows the table so far. Counting a whole machine needs root or CAP_PERFMON; tracepoints need root. "
	"`--driver=sim` needs nothing.\n"
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
	csw_print_clean(line);
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

/* option with what stands between it and its value: "--sav=", "-I ". */
static int parse_number(const char *option, const char *arg, uint64_t min, uint64_t max,
			uint64_t *out)
{
	const char *end = arg;

	if (parse_digits(&end, max, out) == 0 && !*end && *out >= min)
		return 0;
	csw_complain("%s%s: must be a whole number from %llu to %llu", option, arg,
		     (unsigned long long)min, (unsigned long long)max);
	return -EINVAL;
}

static int parse_ms(const char *option, const char *arg, uint64_t min, uint64_t max,
		    uint64_t *out_ns)
{
	uint64_t ms = 0;
	int ret = parse_number(option, arg, min, max, &ms);

	*out_ns = ms * NS_PER_MS;
	return ret;
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

/* Seconds with a fraction, exact to the ns. 0 or -EINVAL, nothing printed. */
static int take_seconds(const char **text, uint64_t *out_ns)
{
	uint64_t seconds = 0, weight = NS_PER_S / 10;
	int ret = parse_digits(text, SECONDS_MAX, &seconds);

	*out_ns = seconds * NS_PER_S;
	if (ret < 0 || **text != '.')
		return ret;
	for (++*text; **text >= '0' && **text <= '9'; ++*text, weight /= 10)
		*out_ns += (uint64_t)(**text - '0') * weight;
	return 0;
}

/* "FROM,TO", each with or without a + before it, either of them missing. */
static int parse_time(struct csw_options *o, const char *arg)
{
	const char *c = arg;
	int ret = 0;

	if (*c == '+') {
		o->time_flags |= CSW_TIME_FROM_FIRST;
		c++;
	}
	if (*c != ',')
		ret = take_seconds(&c, &o->from_ns);
	if (ret == 0 && *c == ',') {
		c++;
		if (*c == '+') {
			o->time_flags |= CSW_TIME_TO_FIRST;
			c++;
		}
		if (*c || (o->time_flags & CSW_TIME_TO_FIRST))
			ret = take_seconds(&c, &o->to_ns);
		if (ret == 0 && !*c)
			return 0;
	}
	csw_complain("--time=%s: must be FROM,TO in seconds, such as 12.5,13 or +1,+2", arg);
	return -EINVAL;
}

static int add_id(struct csw_ids *list, uint64_t id)
{
	int32_t *ids = reallocarray(list->ids, list->nr + 1, sizeof(*ids));

	if (!ids) {
		csw_complain("not enough memory for the list of processes");
		return -ENOMEM;
	}
	list->ids = ids;
	list->ids[list->nr++] = (int32_t)id;
	return 0;
}

static int parse_ids(struct csw_ids *list, const char *option, const char *what, const char *arg)
{
	const char *c = arg;
	uint64_t id;
	int ret;

	for (;;) {
		ret = parse_digits(&c, INT32_MAX, &id);
		if (ret < 0 || id == 0 || (*c && *c != ','))
			break;
		ret = add_id(list, id);
		if (ret < 0 || !*c)
			return ret;
		c++;
	}
	csw_complain("%s %s: must be %s ids from 1 to %d, separated by commas", option, arg, what,
		     INT32_MAX);
	return -EINVAL;
}

/* Lists that were given piece by piece. */
static int add_text(char **list, const char *arg)
{
	char *joined;

	if (asprintf(&joined, "%s%s%s", *list ? *list : "", *list ? "," : "", arg) < 0) {
		csw_complain("not enough memory for the command line");
		return -ENOMEM;
	}
	free(*list);
	*list = joined;
	return 0;
}

/* Only the form: which CPUs there are is the library's to know. */
static int parse_cpus(struct csw_options *o, const char *arg)
{
	const char *c = arg;
	uint64_t first, last;

	for (;;) {
		if (parse_digits(&c, CPU_MAX, &first) < 0)
			break;
		last = first;
		if (*c == '-') {
			c++;
			if (parse_digits(&c, CPU_MAX, &last) < 0 || last < first)
				break;
		}
		if (!*c)
			return add_text(&o->cpus, arg);
		if (*c++ != ',')
			break;
	}
	csw_complain("-C %s: must be CPUs from 0 to %llu, such as 0-3,8", arg, CPU_MAX);
	return -EINVAL;
}

static int parse_sav(struct csw_options *o, const char *arg)
{
	const char *end = arg;

	o->sav = CSW_SAV_AUTO;
	if (!strcmp(arg, "auto") ||
	    (parse_digits(&end, SAV_MAX, &o->sav) == 0 && !*end && o->sav >= 1))
		return 0;
	csw_complain("--sav=%s: must be auto or a whole number from 1 to %llu", arg,
		     (unsigned long long)SAV_MAX);
	return -EINVAL;
}

/* words[i] means i; the last is NULL. */
static int parse_word(const char *option, const char *arg, const char *const words[], uint32_t *out)
{
	char all[128] = "";

	for (uint32_t i = 0; words[i]; i++) {
		if (strcmp(arg, words[i]) == 0) {
			*out = i;
			return 0;
		}
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
			 !i             ? ""
			 : words[i + 1] ? ", "
					: " or ",
			 words[i]);
	}
	csw_complain("%s=%s: must be %s", option, arg, all);
	return -EINVAL;
}

static int parse_text(const char *option, const char *arg, const char **out)
{
	*out = arg;
	if (*arg)
		return 0;
	csw_complain("%s: must not be empty", option);
	return -EINVAL;
}

/* ---- argp ---- */

static int parse_command(struct csw_options *o, const char *arg, struct argp_state *state)
{
	if (!state->quoted) {
		csw_complain("%s: unexpected; a program to run stands after --, a command (list, "
			     "doctor, verify, report, slices, help) stands first",
			     arg);
		return -EINVAL;
	}
	o->command = state->argv + state->next - 1;
	state->next = state->argc;
	return 0;
}

/* Options with a value. 1: it is none of them. */
static int parse_value(struct csw_options *o, int key, const char *arg)
{
	static const char *const by[] = {
		[CSW_BY_THREAD] = "thread", [CSW_BY_PROCESS] = "process", [CSW_BY_COMM] = "comm",
		[CSW_BY_CGROUP] = "cgroup", [CSW_BY_CPU] = "cpu",         NULL,
	};
	static const char *const formats[] = {
		[CSW_FORMAT_TABLE] = "table",
		[CSW_FORMAT_JSON] = "json",
		[CSW_FORMAT_CSV] = "csv",
		NULL,
	};
	static const char *const mixed[] = {
		[CSW_MIXED_ROW] = "row",
		[CSW_MIXED_LAST] = "last",
		[CSW_MIXED_SPLIT] = "split",
		NULL,
	};
	uint64_t kib = 0;
	int ret;

	switch (key) {
	case KEY_EVENT:
		return add_text(&o->events, arg);
	case KEY_TRIGGER:
		return parse_text("--trigger", arg, &o->trigger);
	case KEY_DRIVER:
		return parse_text("--driver", arg, &o->driver);
	case KEY_SAV:
		return parse_sav(o, arg);
	case KEY_RING:
		ret = parse_number("--ring-kib=", arg, RING_KIB_MIN, RING_KIB_MAX, &kib);
		o->ring_bytes = kib * 1024;
		return ret;
	case KEY_PID:
		return parse_ids(&o->pids, "-p", "process", arg);
	case KEY_TID:
		return parse_ids(&o->tids, "-t", "thread", arg);
	case KEY_CGROUP:
		return parse_text("--cgroup", arg, &o->cgroup);
	case KEY_CPUS:
		return parse_cpus(o, arg);
	case KEY_DURATION:
		return parse_seconds(o, arg);
	case KEY_DELAY:
		return parse_ms("--delay=", arg, 0, DELAY_MS_MAX, &o->delay_ns);
	case KEY_INTERVAL:
		return parse_ms("-I ", arg, INTERVAL_MS_MIN, INTERVAL_MS_MAX, &o->interval_ns);
	case KEY_BY:
		return parse_word("--by", arg, by, &o->by);
	case KEY_MIXED:
		return parse_word("--mixed", arg, mixed, &o->mixed);
	case KEY_SORT:
		return parse_text("--sort", arg, &o->sort);
	case KEY_TOP:
		return parse_number("--top=", arg, 1, TOP_MAX, &o->top);
	case KEY_FORMAT:
		return parse_word("--format", arg, formats, &o->format);
	case KEY_OUTPUT:
		return parse_text("-o", arg, &o->output);
	case KEY_INPUT:
		return parse_text("-i", arg, &o->input);
	case KEY_TIME:
		return parse_time(o, arg);
	case KEY_COMM:
		return add_text(&o->comms, arg);
	default:
		return 1;
	}
}

/* Options that are there or not; false: it is none of them. */
static bool parse_flag(struct csw_options *o, int key)
{
	switch (key) {
	case KEY_HELP:
	case KEY_VERSION:
		if (!o->info)
			o->info = key == KEY_HELP ? CSW_INFO_HELP : CSW_INFO_VERSION;
		return true;
	case KEY_MULTIPLEX:
		return o->multiplex = true;
	case KEY_HISTOGRAM:
		return o->histogram = true;
	case KEY_RATE:
		return o->rate = true;
	case KEY_RAW:
		return o->raw = true;
	case KEY_NO_COLOUR:
		return o->no_colour = true;
	case KEY_QUIET:
		return o->quiet = true;
	case KEY_VERBOSE:
		return o->verbose = true;
	case KEY_OVERHEAD:
		return o->overhead = true;
	case KEY_HEADER:
		return o->header = true;
	case KEY_FORCE:
		return o->force = true;
	default:
		return false;
	}
}

struct parsing {
	struct csw_options *o;
	int ret; /* what was printed already */
};

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
	struct parsing *p = state->input;
	int ret;

	if (key == ARGP_KEY_ARG) {
		p->ret = parse_command(p->o, arg, state);
		return -p->ret;
	}
	if (key == ARGP_KEY_ERROR)
		return 0;
	if (parse_flag(p->o, key))
		return 0;
	ret = parse_value(p->o, key, arg);
	if (ret > 0)
		return ARGP_ERR_UNKNOWN;
	p->ret = ret;
	return -ret;
}

bool csw_options_simulated(const struct csw_options *o)
{
	return strncmp(o->driver, "sim", 3) == 0 && (!o->driver[3] || o->driver[3] == ':');
}

bool csw_recording_option(const struct csw_options *o)
{
	const char *name = o->input                                  ? "-i"
			   : o->comms                                ? "--comm"
			   : o->header                               ? "--header"
			   : o->from_ns || o->to_ns || o->time_flags ? "--time"
								     : NULL;

	if (name)
		csw_complain("%s: belongs to a recording: csw-sample report -i FILE", name);
	return name != NULL;
}

/* The option that a simulated machine has no sense for; NULL: none. */
static const char *live_option(const struct csw_options *o)
{
	if (o->command)
		return "the program after --";
	if (o->pids.nr)
		return "-p";
	if (o->tids.nr)
		return "-t";
	return o->cgroup ? "--cgroup" : NULL;
}

static int check(const struct csw_options *o, int argc, char **argv)
{
	if (!o->command && strcmp(argv[argc - 1], "--") == 0) {
		csw_complain("there is no program after --");
		return -EINVAL;
	}
	if (csw_options_simulated(o) && live_option(o)) {
		csw_complain("--driver=sim runs programs of its own: leave out %s", live_option(o));
		return -EINVAL;
	}
	return 0;
}

/* Without argp's note on mandatory arguments, which tells nobody anything. */
static char *filter_help(int key, const char *text, void *input)
{
	(void)input;
	return key == ARGP_KEY_HELP_DUP_ARGS_NOTE ? NULL : (char *)(uintptr_t)text;
}

static const struct argp parser = { entries, parse_key, usage, doc, NULL, filter_help, NULL };

int csw_options_parse(struct csw_options *o, int argc, char **argv)
{
	struct parsing p = { .o = o };
	error_t error;

	*o = (struct csw_options){ .driver = "auto" };
	/* In order: "csw-sample ls -- x" must not run x. */
	error = argp_parse(&parser, argc, argv,
			   ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_NO_EXIT | ARGP_IN_ORDER, NULL, &p);
	if (p.ret < 0)
		return p.ret;
	if (error) {
		csw_explain(entries, argc, argv);
		return -EINVAL;
	}
	if (o->info)
		return 0;
	if (!o->events && add_text(&o->events, DEFAULT_EVENTS) < 0)
		return -ENOMEM;
	return check(o, argc, argv);
}

/* argp forgets why it cannot write, so it writes into memory. NULL: there is none. */
static char *make_help(void)
{
	char *text = NULL;
	size_t bytes;
	FILE *memory = open_memstream(&text, &bytes);

	if (!memory)
		return NULL;
	argp_help(&parser, memory, ARGP_HELP_STD_HELP, (char[]){ "csw-sample" });
	fclose(memory);
	return text;
}

int csw_options_inform(uint32_t info)
{
	char *help = info == CSW_INFO_HELP ? make_help() : NULL;
	int ret = 0;

	if (info == CSW_INFO_HELP && !help)
		return -ENOMEM;
	if ((help ? fputs(help, stdout) : printf("csw-sample %s\n", csw_version())) < 0 ||
	    fflush(stdout))
		ret = -errno;
	free(help);
	return ret;
}

int csw_options_run(int argc, char **argv, int (*check_command)(const struct csw_options *o),
		    int (*run)(const struct csw_options *o))
{
	struct csw_options o;
	int ret = csw_options_parse(&o, argc, argv), status;

	if (ret == 0 && o.info)
		status = csw_options_inform(o.info) < 0 ? EXIT_FAILED : 0;
	else if (ret == 0 && check_command(&o) < 0)
		status = EXIT_USAGE;
	else
		status = ret == -EINVAL ? EXIT_USAGE : ret < 0 ? EXIT_FAILED : run(&o);
	csw_options_free(&o);
	return status;
}

void csw_options_free(struct csw_options *o)
{
	free(o->events);
	free(o->pids.ids);
	free(o->tids.ids);
	free(o->cpus);
	free(o->comms);
}
