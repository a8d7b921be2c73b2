/* Drawing the line of progress; see progress.h. */
#include "cli/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define NS_PER_S 1000000000ull
/* Who waits no longer than this needs no line. */
#define SHORT_NS (2 * NS_PER_S)
#define LINE_MAX_BYTES 512
#define WIDTH_ASSUMED 80

static bool is_short(const struct csw_options *o)
{
	return o->has_duration && o->delay_ns + o->duration_ns <= SHORT_NS;
}

void csw_progress_init(struct csw_progress *p, const struct csw_options *o)
{
	*p = (struct csw_progress){ .o = o };
	/* With a program the terminal is the program's. */
	if (o->quiet || o->command || o->input || is_short(o) || !isatty(STDERR_FILENO))
		p->o = NULL;
	/* How long a simulation takes nobody knows: its clock is not ours. */
	if (csw_options_simulated(o))
		p->next_ns = SHORT_NS;
}

static int append(char *line, int at, const char *text)
{
	int bytes = snprintf(line + at, (size_t)(LINE_MAX_BYTES - at), "%s", text);

	return at + bytes < LINE_MAX_BYTES ? at + bytes : LINE_MAX_BYTES - 1;
}

static int append_ids(char *line, int at, const struct csw_ids *list, const char *one,
		      const char *many)
{
	char text[64];

	if (!list->nr)
		return at;
	if (list->nr == 1)
		snprintf(text, sizeof(text), " of %s %d", one, list->ids[0]);
	else
		snprintf(text, sizeof(text), " of %zu %s", list->nr, many);
	return append(line, at, text);
}

static int append_scope(char *line, int at, const struct csw_options *o)
{
	if (csw_options_simulated(o))
		return append(line, at, " of a simulated machine");
	if (!o->pids.nr && !o->tids.nr && !o->cgroup)
		at = append(line, at, " of every thread of the machine");
	at = append_ids(line, at, &o->pids, "process", "processes");
	at = append_ids(line, at, &o->tids, "thread", "threads");
	if (o->cgroup)
		at = append(line, append(line, at, " of cgroup "), o->cgroup);
	if (o->cpus)
		at = append(line, append(line, at, " on CPUs "), o->cpus);
	return at;
}

static unsigned terminal_width(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col)
		return WIDTH_ASSUMED;
	return size.ws_col;
}

/* The time comes first: it must not be cut off. A byte per column, so no byte may be a part of a
 * character. */
static void make_line(char *line, const struct csw_options *o, uint64_t elapsed_ns)
{
	unsigned width = terminal_width();
	char text[96];
	int at;

	if (o->has_duration && !csw_options_simulated(o))
		snprintf(text, sizeof(text), "csw-sample: %llu of %.10g s, ",
			 (unsigned long long)(elapsed_ns / NS_PER_S),
			 (double)(o->delay_ns + o->duration_ns) / (double)NS_PER_S);
	else
		snprintf(text, sizeof(text), "csw-sample: %llu s, Ctrl-C ends it; ",
			 (unsigned long long)(elapsed_ns / NS_PER_S));
	at = append(line, 0, text);
	at = append(line, append(line, at, "counting "), o->events);
	append_scope(line, at, o);
	for (char *c = line; *c; c++) {
		if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
			*c = '?';
	}
	/* In the last column some terminals begin the next line. */
	if (strlen(line) >= width)
		line[width - 1] = '\0';
}

void csw_progress_draw(struct csw_progress *p, uint64_t elapsed_ns)
{
	char line[LINE_MAX_BYTES];

	if (!p->o || elapsed_ns < p->next_ns)
		return;
	make_line(line, p->o, elapsed_ns);
	fprintf(stderr, "\r%s\033[K", line);
	fflush(stderr);
	p->shown = true;
	p->next_ns = (elapsed_ns / NS_PER_S + 1) * NS_PER_S;
}

void csw_progress_erase(struct csw_progress *p)
{
	if (!p->shown)
		return;
	fprintf(stderr, "\r\033[K");
	fflush(stderr);
	p->shown = false;
	p->next_ns = 0;
}
