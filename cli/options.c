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
#include <strings.h>

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
	{ NULL, 0, NULL, 0, "Of a recording:", 5 },
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

static const char *const usages[] = {
	[CSW_USE_COUNT] = "[-- PROGRAM [ARGUMENT...]]",
	[CSW_USE_REPORT] = "[-i] FILE",
	[CSW_USE_SLICES] = "[[-i] FILE]\n[-- PROGRAM [ARGUMENT...]]",
	[CSW_USE_CALIBRATE] = "--trigger=NAME",
};

static const char doc[] =
	"Counts how much of each event every thread of the machine caused: counters run per CPU and are read at each "
	"context switch, so no thread is missed and none is slowed down by being attached to."
	"\v"
	"Examples:\n"
	"  csw-sample -- make -j4\n"
	"      page faults and CPU time of each thread that make and its children had\n"
	"  csw-sample -e page-faults,major-faults --by=process --top=20 -d 10\n"
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
	"      what this machine can do, and why not the rest; with WORDs\n"
	"      only what holds all of them\n"
	"  csw-sample doctor\n"
	"      permissions, hardware and settings, each with its remedy\n"
	"  csw-sample verify\n"
	"      counts what is known, and compares\n"
	"  csw-sample calibrate --trigger=NAME [-d SECONDS] [--format=json]\n"
	"      how often it comes per context switch, by the kind of switch,\n"
	"      and the --sav to use\n"
	"  csw-sample report FILE [OPTION...]\n"
	"      the same tables from a recording of perf record, simpleperf and others\n"
	"  csw-sample slices [FILE | OPTION... -- PROGRAM] [--format=csv|json]\n"
	"      a line for every slice, of a recording or as they come\n"
	"  csw-sample help [COMMAND], csw-sample COMMAND --help\n"
	"      this help, or that of the command\n"
	"\n"
	"SIGUSR1 shows the table so far. Counting a whole machine needs root or CAP_PERFMON; tracepoints need root. "
	"`--driver=sim` needs nothing.\n"
	"\n"
	"Exit status: 0 done; 1 failed; 2 bad usage; 3 the numbers do not add up. With a program: the program's own "
	"status (128 + signal), 125 if csw-sample failed, 126 or 127 if the program cannot be run or found.";

static const char report_doc[] =
	"Shows the tables of a run from a recording of it: perf.data of perf record, simpleperf and others, from a file or "
	"(-) the standard input."
	"\v"
	"Examples:\n"
	"  csw-sample report perf.data --by=process --top=20\n"
	"      who had how many page faults, exactly\n"
	"  csw-sample report perf.data --time=+1,+2.5 --comm=worker\n"
	"      a second and a half of it, and only threads called worker\n"
	"  csw-sample report perf.data --header\n"
	"      which machine, which command\n"
	"\n"
	"What a recording holds decides what is shown: see RECORDINGS AND SLICES in csw-sample(1).\n"
	"\n"
	"Exit status: 0 done; 1 failed, or broken: what could be read is shown; 2 bad usage; 3 the numbers do not add up.";

static const char calibrate_doc[] =
	"Counts how often a trigger, or any event, comes per context switch, by the kind of switch, and says whether it can "
	"stand for one and with which --sav."
	"\v"
	"Examples:\n"
	"  csw-sample calibrate --trigger=tid_change\n"
	"      five seconds, on a load of its own\n"
	"  csw-sample calibrate --trigger=tlb_flush -d 20 --format=json\n"
	"      20 seconds, for a program\n"
	"  csw-sample calibrate --driver=sim:model=amd --trigger=seg_load\n"
	"      on a simulated machine\n"
	"\n"
	"Exit status: 0 done, whatever the verdict; 1 failed; 2 bad usage.";

static const char slices_doc[] =
	"Writes a line for every slice, that is what one thread had from one context switch to the next: CSV, or JSON with "
	"--format=json."
	"\v"
	"Examples:\n"
	"  csw-sample slices -d 1 -o slices.csv\n"
	"      a second of the machine\n"
	"  csw-sample slices -e page-faults -- make -j4\n"
	"      of the threads of make alone\n"
	"  csw-sample slices perf.data --comm=worker --format=json\n"
	"      from a recording, of threads called worker\n"
	"\n"
	"What is out of scope has no line. A recording is asked with --time, -p and --comm; all other options of whom, what "
	"and how long are of a run. Ctrl-C ends a run; SIGUSR1 writes out the lines that are there. The columns are described "
	"under FORMATS in csw-sample(1).\n"
	"\n"
	"Exit status: that of csw-sample.";
/* clang-format on */

static const char *const docs[] = {
	[CSW_USE_COUNT] = doc,
	[CSW_USE_REPORT] = report_doc,
	[CSW_USE_SLICES] = slices_doc,
	[CSW_USE_CALIBRATE] = calibrate_doc,
};

#define COUNT (1u << CSW_USE_COUNT)
#define REPORT (1u << CSW_USE_REPORT)
#define SLICES (1u << CSW_USE_SLICES)
#define CALIBRATE (1u << CSW_USE_CALIBRATE)

/* The uses that an option has no meaning for. What is not here has one for all. */
static const struct {
	int key;
	unsigned not_for;
} senseless[] = {
	/* what was counted is counted */
	{ KEY_EVENT, REPORT | CALIBRATE },
	{ KEY_TRIGGER, REPORT },
	{ KEY_SAV, REPORT | CALIBRATE },
	{ KEY_DRIVER, REPORT },
	{ KEY_RING, REPORT },
	{ KEY_TID, REPORT | CALIBRATE },
	{ KEY_CGROUP, REPORT | CALIBRATE },
	{ KEY_CPUS, REPORT },
	{ KEY_FORCE, REPORT | CALIBRATE },
	{ KEY_MULTIPLEX, REPORT | CALIBRATE },
	{ KEY_MIXED, CALIBRATE },
	/* all switches of the machine are judged */
	{ KEY_PID, CALIBRATE },
	{ KEY_DURATION, REPORT },
	{ KEY_DELAY, REPORT | SLICES | CALIBRATE },
	{ KEY_INTERVAL, REPORT | SLICES | CALIBRATE },
	/* a line is of one slice: nothing is summed, sorted and folded */
	{ KEY_BY, SLICES | CALIBRATE },
	{ KEY_SORT, SLICES | CALIBRATE },
	{ KEY_TOP, SLICES | CALIBRATE },
	{ KEY_RATE, SLICES | CALIBRATE },
	{ KEY_HISTOGRAM, SLICES | CALIBRATE },
	{ KEY_RAW, SLICES | CALIBRATE },
	{ KEY_NO_COLOUR, SLICES | CALIBRATE },
	{ KEY_VERBOSE, SLICES | CALIBRATE },
	{ KEY_OVERHEAD, SLICES | CALIBRATE },
	{ KEY_HEADER, COUNT | SLICES | CALIBRATE },
	/* of a recording */
	{ KEY_INPUT, COUNT | CALIBRATE },
	{ KEY_TIME, COUNT | CALIBRATE },
	{ KEY_COMM, COUNT | CALIBRATE },
};

/* What an option means where it means something else than in a run. */
static const struct {
	int key;
	unsigned use;
	const char *doc;
} meanings[] = {
	{ KEY_PID, REPORT, "The threads of these processes" },
	{ KEY_FORMAT, REPORT, "table for people (default), json or csv for programs" },
	{ KEY_FORMAT, SLICES, "csv (default) or json" },
	{ KEY_FORMAT, CALIBRATE, "table for people (default), or json" },
	{ KEY_TRIGGER, CALIBRATE, "The trigger or event to be calibrated" },
	{ KEY_OUTPUT, REPORT | SLICES | CALIBRATE,
	  "Write to FILE, which appears only when it is complete" },
};

static const char *meaning_of(const struct argp_option *e, unsigned use)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		if (meanings[i].key == e->key && (meanings[i].use & use))
			return meanings[i].doc;
	}
	return e->doc;
}

static unsigned not_for(int key)
{
	for (size_t i = 0; i < sizeof(senseless) / sizeof(senseless[0]); i++) {
		if (senseless[i].key == key)
			return senseless[i].not_for;
	}
	return 0;
}

static const char *name_of(const struct argp_option *e, char text[64])
{
	if (e->key > ' ' && e->key < 0x7f)
		snprintf(text, 64, "-%c", e->key);
	else
		snprintf(text, 64, "--%s", e->name);
	return text;
}

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

/* Where only one of the two is counted from the first sample, the recording alone can tell. */
static int check_order(const struct csw_options *o, const char *arg)
{
	bool from_first = o->time_flags & CSW_TIME_FROM_FIRST;
	bool to_first = o->time_flags & CSW_TIME_TO_FIRST;

	if (from_first != to_first || o->from_ns <= o->to_ns)
		return 0;
	csw_complain("--time=%s: FROM must not be later than TO", arg);
	return -EINVAL;
}

/* "FROM,TO", each with or without a + before it, either of them missing. */
static int parse_time(struct csw_options *o, const char *arg)
{
	const char *c = arg;
	bool has_to;
	int ret = 0;

	o->time_flags = 0;
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
		has_to = *c || (o->time_flags & CSW_TIME_TO_FIRST);
		if (has_to)
			ret = take_seconds(&c, &o->to_ns);
		if (ret == 0 && !*c)
			return has_to ? check_order(o, arg) : 0;
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
	if (!state->quoted && o->use != CSW_USE_COUNT && !o->input)
		return parse_text("-i", arg, &o->input);
	if (!state->quoted && o->use != CSW_USE_COUNT) {
		csw_complain("%s: unexpected; one recording is read, %s, and a program stands "
			     "after --",
			     arg, o->input);
		return -EINVAL;
	}
	if (!state->quoted) {
		csw_complain("%s: unexpected; a program to run stands after --, a command (list, "
			     "doctor, verify, calibrate, report, slices, help) stands first",
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

static const struct argp_option *entry_of(int key)
{
	for (const struct argp_option *e = entries; e->name || e->group; e++) {
		if (e->name && e->key == key)
			return e;
	}
	return NULL;
}

_Static_assert(sizeof(entries) / sizeof(entries[0]) <= 64, "a bit for each");

static void note_given(struct csw_options *o, int key)
{
	const struct argp_option *e = entry_of(key);

	if (e)
		o->given |= 1ull << (e - entries);
}

static bool was_given(const struct csw_options *o, int key)
{
	return o->given >> (entry_of(key) - entries) & 1;
}

/* Is this value, which stands in a word of its own, an option that took the place of one? */
static bool is_option(const char *arg, const struct argp_state *state)
{
	size_t length = strcspn(arg, "=");

	if (arg != state->argv[state->next - 1] || arg[0] != '-')
		return false;
	if (arg[1] != '-')
		return arg[1] > ' ' && arg[1] < 0x7f && entry_of(arg[1]);
	for (const struct argp_option *e = entries; e->name || e->group; e++) {
		if (e->name && strlen(e->name) == length - 2 &&
		    !strncmp(e->name, arg + 2, length - 2))
			return true;
	}
	return false;
}

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
	note_given(p->o, key);
	if (parse_flag(p->o, key))
		return 0;
	if (arg && is_option(arg, state)) {
		csw_complain("%s: its value is missing: %s is an option; if it is meant, write "
			     "--%s=%s",
			     state->argv[state->next - 2], arg, entry_of(key)->name, arg);
		p->ret = -EINVAL;
		return EINVAL;
	}
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

/* The first option that was given and has no meaning for one of these uses; NULL: none. */
static const struct argp_option *find_senseless(const struct csw_options *o, unsigned uses)
{
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		if ((o->given >> i & 1) && (not_for(entries[i].key) & uses))
			return &entries[i];
	}
	return NULL;
}

/* A recording is asked for what it has. */
static int check_recording(const struct csw_options *o, const char *use)
{
	const struct argp_option *e = find_senseless(o, REPORT);
	char name[64];

	if (e)
		csw_complain("%s: a recording is read: leave out %s", use, name_of(e, name));
	else if (o->command)
		csw_complain("%s: a recording is read: leave out the program after --", use);
	else
		return 0;
	return -EINVAL;
}

/* All switches of the machine are judged, as many as the time allows. */
static int check_calibrate(const struct csw_options *o)
{
	const struct argp_option *e = find_senseless(o, CALIBRATE);
	char name[64];

	if (e && e->key == KEY_FORCE)
		csw_complain("calibrate: what is known not to work is calibrated all the same: "
			     "leave out --force");
	else if (e)
		csw_complain("calibrate: all switches of the machine are judged: leave out %s",
			     name_of(e, name));
	else if (o->command)
		csw_complain("calibrate: all switches of the machine are judged: leave out the "
			     "program after --");
	else if (!o->trigger)
		csw_complain("calibrate: say which: --trigger=NAME; csw-sample list triggers shows "
			     "the names");
	else if (o->format == CSW_FORMAT_CSV)
		csw_complain("calibrate: --format must be table or json");
	else
		return 0;
	return -EINVAL;
}

static int check_use(const struct csw_options *o)
{
	const struct argp_option *e;
	char name[64];

	switch (o->use) {
	case CSW_USE_REPORT:
		if (o->input)
			return check_recording(o, "report");
		csw_complain("report: say which recording: FILE, or - for the standard input");
		return -EINVAL;
	case CSW_USE_SLICES:
		e = find_senseless(o, SLICES);
		if (e) {
			csw_complain("slices: every slice is a line: leave out %s",
				     name_of(e, name));
			return -EINVAL;
		}
		if (o->format == CSW_FORMAT_TABLE && was_given(o, KEY_FORMAT)) {
			csw_complain("slices: --format must be csv or json");
			return -EINVAL;
		}
		if (o->input)
			return check_recording(o, "slices");
		if (!was_given(o, KEY_TIME))
			return 0;
		csw_complain("slices: --time is of a recording, and none is given: slices FILE");
		return -EINVAL;
	case CSW_USE_CALIBRATE:
		return check_calibrate(o);
	default:
		e = find_senseless(o, COUNT);
		if (!e)
			return 0;
		csw_complain("%s: belongs to a recording: csw-sample report FILE",
			     name_of(e, name));
		return -EINVAL;
	}
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
	if (check_use(o) < 0)
		return -EINVAL;
	if (o->sort && !strcasecmp(o->sort, "cgroup") && o->by != CSW_BY_CGROUP && !o->cgroup) {
		csw_complain("--sort=cgroup: cgroups are not followed without --by=cgroup or "
			     "--cgroup=PATH");
		return -EINVAL;
	}
	return 0;
}

static const struct argp parser = { entries, parse_key, NULL, NULL, NULL, NULL, NULL };

int csw_options_parse(struct csw_options *o, enum csw_use use, int argc, char **argv)
{
	struct parsing p = { .o = o };
	error_t error;

	*o = (struct csw_options){ .use = use, .driver = "auto" };
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

/* The options that have a meaning for this use, and the headings above them. */
static void filter_entries(struct argp_option *out, unsigned use)
{
	const struct argp_option *heading = NULL;

	for (const struct argp_option *e = entries; e->name || e->group; e++) {
		if (!e->name) {
			heading = e;
			continue;
		}
		if (not_for(e->key) & use)
			continue;
		if (heading)
			*out++ = *heading;
		heading = NULL;
		*out = *e;
		out++->doc = meaning_of(e, use);
	}
	*out = (struct argp_option){ .name = NULL };
}

/* argp's note on mandatory arguments tells nobody anything, and argp_help() has no way to leave it
 * out. */
static void cut_note(char *text)
{
	char *note = strstr(text, "Mandatory or optional arguments");
	char *end = note ? strstr(note, "\n\n") : NULL;

	if (end)
		memmove(note, end + 2, strlen(end + 2) + 1);
}

/* argp forgets why it cannot write, so it writes into memory. NULL: there is none. */
static char *make_help(enum csw_use use)
{
	char *const names[] = { [CSW_USE_COUNT] = (char[]){ "csw-sample" },
				[CSW_USE_REPORT] = (char[]){ "csw-sample report" },
				[CSW_USE_SLICES] = (char[]){ "csw-sample slices" },
				[CSW_USE_CALIBRATE] = (char[]){ "csw-sample calibrate" } };
	struct argp_option own[sizeof(entries) / sizeof(entries[0])];
	const struct argp help = { own, NULL, usages[use], docs[use], NULL, NULL, NULL };
	char *text = NULL;
	size_t bytes;
	FILE *memory = open_memstream(&text, &bytes);

	if (!memory)
		return NULL;
	filter_entries(own, 1u << use);
	argp_help(&help, memory, ARGP_HELP_STD_HELP, names[use]);
	if (fclose(memory)) {
		free(text);
		return NULL;
	}
	cut_note(text);
	return text;
}

int csw_options_inform(enum csw_use use, uint32_t info)
{
	char *help = info == CSW_INFO_HELP ? make_help(use) : NULL;
	int ret = 0;

	if (info == CSW_INFO_HELP && !help)
		return -ENOMEM;
	if ((help ? fputs(help, stdout) : printf("csw-sample %s\n", csw_version())) < 0 ||
	    fflush(stdout))
		ret = -errno;
	free(help);
	return ret;
}

int csw_options_run(enum csw_use use, int argc, char **argv,
		    int (*run)(const struct csw_options *o))
{
	struct csw_options o;
	int ret = csw_options_parse(&o, use, argc, argv), status;

	if (ret == 0 && o.info)
		status = csw_options_inform(use, o.info) < 0 ? EXIT_FAILED : 0;
	else
		status = ret == -EINVAL ? EXIT_USAGE : ret < 0 ? EXIT_FAILED : run(&o);
	csw_options_free(&o);
	return status;
}

bool csw_options_json(int argc, char **argv, int *i)
{
	if (!strcmp(argv[*i], "--json") || !strcmp(argv[*i], "--format=json"))
		return true;
	if (strcmp(argv[*i], "--format") != 0 || *i + 1 == argc ||
	    strcmp(argv[*i + 1], "json") != 0)
		return false;
	++*i;
	return true;
}

int csw_options_run_plain(int argc, char **argv, const char *usage, int (*run)(bool json))
{
	bool json = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(usage, stdout);
			return 0;
		}
		if (!csw_options_json(argc, argv, &i)) {
			csw_complain("%s: there is no option or argument %s; see csw-sample %s "
				     "--help",
				     argv[0], argv[i], argv[0]);
			return EXIT_USAGE;
		}
		json = true;
	}
	return run(json);
}

void csw_options_free(struct csw_options *o)
{
	free(o->events);
	free(o->pids.ids);
	free(o->tids.ids);
	free(o->cpus);
	free(o->comms);
}
