/*
 * csw-sample calibrate: how often an event comes per context switch, by the kind of switch, and
 * what that makes of it as a trigger.
 *
 * Invariant: the verdict is libcsw's; here it is only said.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/exercise.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/signals.h"
#include "csw/csw.h"

#define NS_PER_S 1e9
#define COLUMNS 6 /* of the histogram in the text: 0 to 4, and more */

static const char *const kind_texts[] = {
	[CSW_SWITCH_PROCESS] = "process -> process",
	[CSW_SWITCH_THREAD] = "thread -> thread of it",
	[CSW_SWITCH_TO_IDLE] = "to idle",
	[CSW_SWITCH_FROM_IDLE] = "from idle",
	[CSW_SWITCH_TO_KERNEL] = "to a kernel thread",
	[CSW_SWITCH_FROM_KERNEL] = "from a kernel thread",
};

/* ---- JSON ---- */

static void put_sav(FILE *file, const char *name, uint64_t sav)
{
	if (sav)
		fprintf(file, "\"%s\": %" PRIu64, name, sav);
	else
		fprintf(file, "\"%s\": null", name);
}

static void put_kind_json(FILE *file, uint32_t kind, const struct csw_kind_calibration *k)
{
	unsigned nr = CSW_CALIBRATION_BUCKETS;

	while (nr && !k->histogram[nr - 1])
		nr--;
	fprintf(file,
		"    \"%s\": { \"switches\": %" PRIu64
		", \"mean\": %.4f, \"stddev\": %.4f, \"histogram\": [",
		csw_switch_kind_name(kind), k->switches, k->mean, k->stddev);
	for (unsigned i = 0; i < nr; i++)
		fprintf(file, "%s%" PRIu64, i ? ", " : "", k->histogram[i]);
	fprintf(file, "] }%s\n", kind + 1 < CSW_SWITCH_KINDS ? "," : "");
}

static void put_json(FILE *file, const struct csw_calibration *c)
{
	fprintf(file,
		"{ \"csw\": \"%s\", \"schema\": 1,\n  \"trigger\": { \"name\": ", csw_version());
	csw_print_json(file, c->trigger);
	fputs(", \"event\": ", file);
	csw_print_json(file, c->event);
	fprintf(file, ", \"hardware\": %s },\n  \"simulated\": %s, \"duration_ns\": %" PRIu64 ",\n",
		c->hardware ? "true" : "false", c->simulated ? "true" : "false", c->duration_ns);
	fprintf(file, "  \"verdict\": \"%s\", \"sav\": { ", csw_verdict_name(c->verdict));
	put_sav(file, "thread", c->sav_thread);
	fputs(", ", file);
	put_sav(file, "process", c->sav_process);
	fprintf(file,
		" },\n  \"missed\": %.6f, \"doubled\": %.6f,\n  \"switches\": %" PRIu64
		", \"judged\": %" PRIu64 ",\n  \"cpus_missed\": %" PRIu32
		", \"cpus_gone\": %" PRIu32 ",\n  \"per_switch\": {\n",
		c->missed, c->doubled, c->switches, c->judged, c->cpus_missed, c->cpus_gone);
	for (uint32_t k = 0; k < CSW_SWITCH_KINDS; k++)
		put_kind_json(file, k, &c->kinds[k]);
	fputs("  }\n}\n", file);
}

/* ---- text ---- */

static void put_kind(FILE *file, uint32_t kind, const struct csw_kind_calibration *k)
{
	uint64_t more = 0;

	fprintf(file, "%-24s %10" PRIu64, kind_texts[kind], k->switches);
	if (!k->switches) {
		fprintf(file, " %8s %8s\n", "-", "-");
		return;
	}
	fprintf(file, " %8.3f %8.3f", k->mean, k->stddev);
	for (unsigned i = 0; i < COLUMNS - 1; i++)
		fprintf(file, " %9" PRIu64, k->histogram[i]);
	for (unsigned i = COLUMNS - 1; i < CSW_CALIBRATION_BUCKETS; i++)
		more += k->histogram[i];
	fprintf(file, " %9" PRIu64 "\n", more);
}

/* Kinds that did not occur: the verdict is not about them. */
static void put_unjudged(FILE *file, const struct csw_calibration *c)
{
	const char *before = "not judged, as there were none: ";

	for (uint32_t k = 0; k < CSW_SWITCH_KINDS; k++) {
		if (c->kinds[k].switches)
			continue;
		fprintf(file, "%s%s", before, kind_texts[k]);
		before = ", ";
	}
	if (*before == ',')
		fputc('\n', file);
}

/* In the words of the other reports. */
static void put_cpus(FILE *file, const struct csw_calibration *c)
{
	if (!c->cpus_missed && !c->cpus_gone)
		return;
	fputs("CPUs: ", file);
	if (c->cpus_missed)
		fprintf(file, "%" PRIu32 " came online after the start%s", c->cpus_missed,
			c->cpus_gone ? ", " : "");
	if (c->cpus_gone)
		fprintf(file, "%" PRIu32 " went offline", c->cpus_gone);
	fputs(": what ran there then is not counted\n", file);
}

/* What the SAVs are. */
static void put_advice(FILE *file, const struct csw_calibration *c)
{
	switch (c->verdict) {
	case CSW_VERDICT_TOO_FEW:
		fputs("too few switches between processes, or between threads of one, to tell: run "
		      "it longer (-d) or with more load\n",
		      file);
		return;
	case CSW_VERDICT_NOT_A_PROXY:
		fputs("it does not stand for context switches; see csw-sample list triggers\n",
		      file);
		return;
	default:
		break;
	}
	if (c->sav_thread)
		fprintf(file, "use --trigger=%s --sav=%" PRIu64 ": every switch\n", c->trigger,
			c->sav_thread);
	else
		fprintf(file,
			"use --trigger=%s --sav=%" PRIu64
			": switches between processes only; threads of one process share rows\n",
			c->trigger, c->sav_process);
	fprintf(file, "it would miss %.3f %% of these switches and come twice in %.3f %%\n",
		100 * c->missed, 100 * c->doubled);
}

static void put_text(FILE *file, const struct csw_calibration *c)
{
	/* Per mille, cut: 99.96 % is not all of them. */
	uint64_t judged = c->switches ? 1000 * c->judged / c->switches : 0;

	if (c->simulated)
		fputs("SIMULATED: a simulated machine made these numbers; they are of no real "
		      "machine\n",
		      file);
	fputs("trigger ", file);
	csw_print_text(file, c->trigger);
	fputs(" (", file);
	csw_print_text(file, c->event);
	fprintf(file, "), %s, %.3f s\n\n", c->hardware ? "hardware" : "software",
		(double)c->duration_ns / NS_PER_S);
	fprintf(file, "%-24s %10s %8s %8s", "OCCURRENCES PER SWITCH", "SWITCHES", "MEAN", "SPREAD");
	for (unsigned i = 0; i < COLUMNS - 1; i++)
		fprintf(file, " %9u", i);
	fprintf(file, " %8u+\n", COLUMNS - 1);
	for (uint32_t k = 0; k < CSW_SWITCH_KINDS; k++)
		put_kind(file, k, &c->kinds[k]);
	fprintf(file,
		"\n%" PRIu64 " of %" PRIu64 " switches judged (%" PRIu64 ".%" PRIu64
		" %%): the others left no record, "
		"or lie beside one that did not\nverdict: %s\n",
		c->judged, c->switches, judged / 10, judged % 10, csw_verdict_name(c->verdict));
	put_cpus(file, c);
	put_unjudged(file, c);
	put_advice(file, c);
}

/* ---- the command ---- */

struct running {
	const struct csw_options *o;
	struct csw_exercise load;
	bool begun;
};

/* What the load lacks is said when names and CPUs have been found good: else that is the line. */
static int go_on(void *ctx, uint64_t ns)
{
	struct running *r = ctx;

	if (!r->begun && r->load.lack[0])
		csw_complain("%s", r->load.lack);
	r->begun = true;
	csw_exercise_go_on(&r->load);
	if (isatty(STDERR_FILENO) && !r->o->quiet)
		fprintf(stderr, "\rcsw-sample: calibrating, %.1f s ", (double)ns / NS_PER_S);
	return !csw_signals_end();
}

static int calibrate(struct csw_calibration *c, const struct csw_options *o)
{
	struct csw_opts opts = {
		.size = sizeof(opts),
		.driver = o->driver,
		.ring_bytes = o->ring_bytes,
		.duration_ns = o->duration_ns,
		.cpus = o->cpus,
	};
	struct running r = { .o = o };
	struct csw_error err;
	int ret;

	if (!csw_options_simulated(o))
		csw_exercise_start(&r.load, o->cpus);
	csw_signals_enter(CSW_SIGNALS_COUNTING);
	ret = csw_calibrate(c, o->trigger, &opts, go_on, &r, &err);
	csw_signals_enter(CSW_SIGNALS_AFTER);
	csw_exercise_stop(&r.load);
	if (isatty(STDERR_FILENO) && !o->quiet)
		fputs("\r\033[K", stderr);
	if (ret < 0)
		csw_complain("%s", err.text);
	return ret;
}

static int run(const struct csw_options *o)
{
	struct csw_calibration c;
	struct csw_output out;
	int ret;

	csw_signals_catch();
	ret = csw_output_open(&out, o->output, false);
	if (ret == 0)
		ret = calibrate(&c, o);
	if (ret == 0) {
		if (o->format == CSW_FORMAT_JSON)
			put_json(out.file, &c);
		else
			put_text(out.file, &c);
		ret = csw_output_commit(&out);
	}
	csw_output_close(&out);
	return ret == -ENOENT || ret == -EINVAL ? EXIT_USAGE : ret < 0 ? EXIT_FAILED : 0;
}

int csw_cmd_calibrate(int argc, char **argv)
{
	return csw_options_run(CSW_USE_CALIBRATE, argc, argv, run);
}
