/*
 * Reads the consoles of an emulated guest and checks every figure against what is known.
 *
 *	emulated_check SET CONSOLE...     several consoles: runs of the same guest
 *
 * Invariant: the truth comes from the workloads' own lines or from the machine's definition (so
 * many counters, such events), never from the report under test.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONSOLES_MAX 8
#define NO_THREAD (-1)

static char *consoles[CONSOLES_MAX];
static int nr_consoles;

/* ---- the console ---- */

/* A whole file without the carriage returns of its terminal. */
static char *read_console(const char *path)
{
	FILE *file = fopen(path, "re");
	size_t bytes = 0, got, kept = 0;
	char *text = NULL;

	if (!file) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	do {
		text = realloc(text, bytes + 65537);
		if (!text)
			abort();
		got = fread(text + bytes, 1, 65536, file);
		bytes += got;
	} while (got);
	fclose(file);
	for (size_t i = 0; i < bytes; i++) {
		if (text[i] != '\r')
			text[kept++] = text[i];
	}
	text[kept] = '\0';
	return text;
}

/* What the guest framed under this name, in the first run; NULL where it did not. To be freed. */
static char *find_frame(const char *name)
{
	char begin[128];
	const char *from, *to;

	snprintf(begin, sizeof(begin), "@@@ begin %s\n", name);
	from = strstr(consoles[0], begin);
	if (!from)
		return NULL;
	from += strlen(begin);
	to = strstr(from, "\n@@@ end\n");
	if (!to)
		fail_msg("%s has no end", name);
	return strndup(from, (size_t)(to - from));
}

static char *frame(const char *scenario, const char *what)
{
	char name[96], *text;

	snprintf(name, sizeof(name), "%s.%s", scenario, what);
	text = find_frame(name);
	if (!text)
		fail_msg("the guest did not print %s", name);
	return text;
}

static int status_of(const char *scenario)
{
	char *text = frame(scenario, "status");
	int status = atoi(text);

	free(text);
	return status;
}

/* A complaint or a table holds this. */
static void expect_text(const char *scenario, const char *what, const char *part)
{
	char *text = frame(scenario, what);

	if (!strstr(text, part))
		fail_msg("%s.%s lacks \"%s\":\n%s", scenario, what, part, text);
	free(text);
}

/* ---- a scenario ---- */

struct thread {
	int64_t pid, tid, yields, instructions, faults, turns, pages;
};

struct scenario {
	const char *name;
	json_t *report;
	struct thread threads[16];
	size_t nr_threads;
};

static int64_t integer(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value))
		fail_msg("\"%s\" is no integer", key);
	return json_integer_value(value);
}

/* -1: this workload does not say. */
static int64_t integer_or_none(const json_t *object, const char *key)
{
	return json_object_get(object, key) ? integer(object, key) : -1;
}

static void read_truth(struct scenario *s)
{
	char *text = frame(s->name, "truth"), *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		json_error_t error;
		json_t *object = json_loads(line, 0, &error);

		if (!object)
			fail_msg("%s: %s: %s", s->name, line, error.text);
		if (json_object_get(object, "tid")) {
			assert_true(s->nr_threads < sizeof(s->threads) / sizeof(*s->threads));
			s->threads[s->nr_threads++] = (struct thread){
				.pid = integer(object, "pid"),
				.tid = integer(object, "tid"),
				.yields = integer_or_none(object, "yields"),
				.instructions = integer_or_none(object, "instructions"),
				.faults = integer_or_none(object, "faults"),
				.turns = integer_or_none(object, "turns"),
				.pages = integer_or_none(object, "pages"),
			};
		}
		json_decref(object);
	}
	free(text);
}

static const json_t *counts_of(const json_t *row, const char *counter)
{
	const json_t *count = json_object_get(json_object_get(row, "counts"), counter);

	if (!count)
		fail_msg("no counter %s in a row", counter);
	return count;
}

/* What the row has of it for sure: nothing where it says that it does not know, and why. */
static int64_t value_of(const json_t *row, const char *counter)
{
	const json_t *count = counts_of(row, counter);

	if (!json_is_null(json_object_get(count, "value")))
		return integer(count, "value");
	assert_non_null(json_string_value(json_object_get(count, "reason")));
	return 0;
}

static const char *kind_of(const json_t *row)
{
	return json_string_value(json_object_get(row, "kind"));
}

static const json_t *completeness(const struct scenario *s, const char *key)
{
	return json_object_get(json_object_get(s->report, "completeness"), key);
}

static int64_t complete(const struct scenario *s, const char *key)
{
	return json_integer_value(completeness(s, key));
}

/* Sums are made here once more: a report that only claims to add up fails. */
static void check_sums(const struct scenario *s)
{
	json_t *totals = json_object_get(s->report, "totals"), *total, *row;
	const char *counter;
	size_t i;

	assert_true(json_object_size(totals) > 0);
	json_object_foreach(totals, counter, total)
	{
		int64_t sum = 0;

		if (json_is_null(json_object_get(total, "counter")))
			continue;
		json_array_foreach(json_object_get(s->report, "rows"), i, row) sum +=
			value_of(row, counter);
		if (sum != integer(total, "counter"))
			fail_msg("%s: %s: rows %lld, counter %lld", s->name, counter,
				 (long long)sum, (long long)integer(total, "counter"));
	}
	assert_int_equal(complete(s, "trigger"),
			 complete(s, "sav") * complete(s, "samples") + complete(s, "lost") +
				 complete(s, "throttled") + complete(s, "unseen") +
				 complete(s, "open"));
	assert_true(complete(s, "samples") > 0);
}

/* A scenario that went well, its sums checked. */
static void load(struct scenario *s, const char *name)
{
	json_error_t error;
	char *text;

	memset(s, 0, sizeof(*s));
	s->name = name;
	text = frame(name, "complaint");
	assert_string_equal(text, "");
	free(text);
	assert_int_equal(status_of(name), 0);
	text = frame(name, "report");
	s->report = json_loads(text, 0, &error);
	if (!s->report)
		fail_msg("%s: line %d: %s", name, error.line, error.text);
	free(text);
	read_truth(s);
	check_sums(s);
}

static const json_t *find_row(const struct scenario *s, const char *kind, int64_t tid)
{
	json_t *row, *found = NULL;
	size_t i;

	json_array_foreach(json_object_get(s->report, "rows"), i, row)
	{
		if (strcmp(kind_of(row), kind) != 0 ||
		    (tid != NO_THREAD && integer(row, "tid") != tid))
			continue;
		if (found)
			fail_msg("%s: two rows of kind %s, thread %lld", s->name, kind,
				 (long long)tid);
		found = row;
	}
	return found;
}

/* What all rows of a kind hold together. */
static int64_t kind_sum(const struct scenario *s, const char *kind, const char *counter)
{
	int64_t sum = 0;
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(s->report, "rows"), i, row)
	{
		if (!strcmp(kind_of(row), kind))
			sum += value_of(row, counter);
	}
	return sum;
}

static const json_t *thread_row(const struct scenario *s, const struct thread *t)
{
	const json_t *row = find_row(s, "thread", t->tid);

	if (!row)
		fail_msg("%s: no row for thread %lld", s->name, (long long)t->tid);
	assert_int_equal(integer(row, "pid"), t->pid);
	return row;
}

static double exact_share(const struct scenario *s)
{
	return json_number_value(json_object_get(s->report, "exact_share"));
}

static int64_t unproven(const struct scenario *s, const char *counter)
{
	return integer(json_object_get(json_object_get(s->report, "totals"), counter), "unproven");
}

/* Nothing was missed and nothing is in doubt. */
static void check_whole(const struct scenario *s)
{
	assert_int_equal(complete(s, "lost"), 0);
	assert_int_equal(complete(s, "throttled"), 0);
	assert_int_equal(complete(s, "unseen"), 0);
	assert_true(exact_share(s) == 1.0);
}

/* A debug register sees every switch that the software event sees: two csw-samples at once, and
 * the threads' whole lives lie in both. */
static void test_store(void **state)
{
	struct scenario s, beside = { .name = "store" };
	int64_t slices = 0, instructions = 0;
	const json_t *trigger;
	json_error_t error;
	char *text;

	(void)state;
	load(&s, "store");
	check_whole(&s);
	trigger = json_object_get(s.report, "trigger");
	assert_string_equal(json_string_value(json_object_get(trigger, "event")),
			    "mem:__entry_task:w");
	assert_true(json_is_true(json_object_get(trigger, "hardware")));
	text = frame("store", "beside_complaint");
	assert_string_equal(text, "");
	free(text);
	text = frame("store", "beside");
	beside.report = json_loads(text, 0, &error);
	assert_non_null(beside.report);
	free(text);
	check_sums(&beside);
	assert_int_equal(s.nr_threads, 8);
	for (size_t i = 0; i < s.nr_threads; i++) {
		const struct thread *t = &s.threads[i];
		const json_t *row = thread_row(&s, t), *other = thread_row(&beside, t);

		assert_int_equal(value_of(row, "INST_RETIRED:u"), t->instructions);
		assert_int_equal(integer(row, "slices"), integer(other, "slices"));
		assert_int_equal(value_of(row, "page-faults"), value_of(other, "page-faults"));
		slices += integer(row, "slices");
		instructions += t->instructions;
	}
	assert_true(slices > 1000);
	printf("figure: by the store to __entry_task: 8 threads, %lld slices and page faults as by "
	       "the software event, %lld user instructions, difference 0\n",
	       (long long)slices, (long long)instructions);
	json_decref(s.report);
	json_decref(beside.report);
}

/* ---- arm64, one CPU ---- */

/* The runs agree in every byte: counts, times, IDs. */
static void test_repeatable(void **state)
{
	(void)state;
	assert_true(nr_consoles >= 3);
	for (int i = 1; i < nr_consoles; i++)
		assert_string_equal(consoles[0], consoles[i]);
	printf("figure: %d runs with identical consoles, %zu bytes\n", nr_consoles,
	       strlen(consoles[0]));
}

static void test_known(void **state)
{
	struct scenario s;
	int64_t slices = 0, instructions = 0;

	(void)state;
	load(&s, "known");
	check_whole(&s);
	assert_int_equal(s.nr_threads, 8);
	for (size_t i = 0; i < s.nr_threads; i++) {
		const struct thread *t = &s.threads[i];
		const json_t *row = thread_row(&s, t);

		assert_int_equal(value_of(row, "INST_RETIRED:u"), t->instructions);
		assert_int_equal(value_of(row, "context-switches"), integer(row, "slices"));
		assert_true(integer(row, "slices") > 100);
		slices += integer(row, "slices");
		instructions += t->instructions;
	}
	assert_true(slices >= 1000);
	/* The switches that the workload asked for cannot be more than those that were counted. */
	assert_true(complete(&s, "trigger") >= slices);
	printf("figure: 8 threads, %lld switches, %lld user instructions, difference 0\n",
	       (long long)slices, (long long)instructions);
	json_decref(s.report);
}

/* Numbers without separators, one blank between columns. */
static void straighten(char *text)
{
	size_t kept = 0;

	for (const char *c = text; *c; c++) {
		bool in_number = kept && text[kept - 1] >= '0' && text[kept - 1] <= '9';

		if ((*c == ' ' && kept && text[kept - 1] == ' ') || (*c == ',' && in_number))
			continue;
		text[kept++] = *c;
	}
	text[kept] = '\0';
}

/* The table: the row of a known thread, with a rate that this machine defines: one instruction
 * takes 2 ns and one cycle 1 ns. */
static void test_ipc(void **state)
{
	char *text = frame("ipc", "report"), *truth = frame("ipc", "truth"), *rest = NULL;
	unsigned nr = 0;

	(void)state;
	assert_int_equal(status_of("ipc"), 0);
	straighten(text);
	assert_non_null(strstr(text, " IPC\n"));
	assert_non_null(strstr(text, "exact 100.00 %"));
	assert_non_null(strstr(text, "INST_RETIRED:u = arm_n1::INST_RETIRED 0x8:u"));
	for (char *line = strtok_r(truth, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		json_t *t = json_loads(line, 0, NULL);
		char want[96];

		assert_non_null(t);
		snprintf(want, sizeof(want), " %lld %lld 0.50\n",
			 (long long)integer(t, "instructions"),
			 (long long)(2 * integer(t, "instructions")));
		if (!strstr(text, want))
			fail_msg("no row with \"%s\" in\n%s", want, text);
		json_decref(t);
		nr++;
	}
	assert_int_equal(nr, 8);
	free(text);
	free(truth);
}

/* A hardware trigger says nothing of switches: most slices lie within one thread and are exact, the
 * others are mixed; no thread ever gets what another did. */
static void check_hardware_trigger(const char *name, const char *counter, double least_exact)
{
	struct scenario s;
	int64_t threads = 0, truth = 0, mixed, of_all_mixed;

	load(&s, name);
	assert_int_equal(complete(&s, "lost") + complete(&s, "throttled") + complete(&s, "unseen"),
			 0);
	assert_true(
		json_is_true(json_object_get(json_object_get(s.report, "trigger"), "hardware")));
	assert_int_equal(s.nr_threads, 8);
	for (size_t i = 0; i < s.nr_threads; i++) {
		const struct thread *t = &s.threads[i];
		const json_t *row = thread_row(&s, t);
		int64_t value = value_of(row, counter);

		if (value > t->instructions)
			fail_msg("%s: thread %lld has %lld instructions, it executed %lld", name,
				 (long long)t->tid, (long long)value, (long long)t->instructions);
		threads += value;
		truth += t->instructions;
	}
	assert_true(threads > 0);
	/* What these threads lack is in mixed rows: their process's, and that of slices that they
	 * shared with others. */
	mixed = kind_sum(&s, "mixed", counter);
	of_all_mixed = unproven(&s, counter);
	assert_true(mixed > 0 && mixed <= of_all_mixed);
	assert_true(truth - threads <= of_all_mixed);
	assert_true(exact_share(&s) >= least_exact && exact_share(&s) < 1.0);
	printf("figure: trigger %s sav %lld: %lld samples, %lld of %lld user instructions "
	       "proven, %lld in shared slices, exact share %.4f\n",
	       name, (long long)complete(&s, "sav"), (long long)complete(&s, "samples"),
	       (long long)threads, (long long)truth, (long long)of_all_mixed, exact_share(&s));
	json_decref(s.report);
}

static void test_hardware_trigger(void **state)
{
	(void)state;
	check_hardware_trigger("cycles", "INST_RETIRED:u", 0.8);
	check_hardware_trigger("generic", "instructions:u", 0.1);
}

static void test_room(void **state)
{
	struct scenario s;

	(void)state;
	load(&s, "fit");
	check_whole(&s);
	for (size_t i = 0; i < s.nr_threads; i++)
		assert_true(value_of(thread_row(&s, &s.threads[i]), "r08") >
			    s.threads[i].instructions);
	json_decref(s.report);
	assert_int_not_equal(status_of("toomany"), 0);
	expect_text("toomany", "complaint", "r12 does not fit");
	expect_text("toomany", "complaint", "room for 7 of these 8 hardware events");
	assert_int_not_equal(status_of("hungry"), 0);
	expect_text("hungry", "complaint", "room for 7 of these 8 hardware events, the trigger");
	/* Nothing was run in vain. */
	assert_null(find_frame("toomany.report"));
}

static int64_t total_of(const struct scenario *s, const char *counter, const char *key)
{
	return integer(json_object_get(json_object_get(s->report, "totals"), counter), key);
}

/* How far a thread's scaled value is from the truth, as a part of it. */
static double error_of(const json_t *row, const char *counter, int64_t truth)
{
	return (double)(integer(counts_of(row, counter), "scaled") - truth) / (double)truth;
}

/* More events than the PMU has counters for, in turns: two sets, in one of which INST_RETIRED:u is,
 * and r11, the cycles, which have a counter of their own, in both. Every slice has its owner as
 * ever, software events and cycles are exact, and half of the time says much of all of it. */
static void test_turns(void **state)
{
	struct scenario s;
	double worst = 0, running = 0, enabled = 0;
	int64_t truth = 0;

	(void)state;
	load(&s, "turns");
	check_whole(&s);
	assert_int_equal(integer(s.report, "sets"), 2);
	assert_true(json_is_true(json_object_get(s.report, "estimate")));
	assert_int_equal(s.nr_threads, 8);
	for (size_t i = 0; i < s.nr_threads; i++) {
		const struct thread *t = &s.threads[i];
		const json_t *row = thread_row(&s, t);
		const json_t *count = counts_of(row, "INST_RETIRED:u");
		double error = error_of(row, "INST_RETIRED:u", t->instructions);

		worst = error > worst ? error : -error > worst ? -error : worst;
		truth += t->instructions;
		running += (double)integer(count, "running_ns");
		enabled += (double)integer(count, "enabled_ns");
		/* What was counted is part of the truth. */
		assert_true(integer(count, "value") < t->instructions);
		/* One cycle is 1 ns, and the counters were on for as long. */
		assert_in_range(value_of(row, "r11"), integer(count, "enabled_ns") * 99 / 100,
				integer(count, "enabled_ns") * 101 / 100);
		assert_null(json_object_get(counts_of(row, "r11"), "scaled"));
		assert_int_equal(value_of(row, "context-switches"), integer(row, "slices"));
		assert_null(json_object_get(counts_of(row, "context-switches"), "scaled"));
	}
	assert_true(worst > 0 && worst < 0.02);
	assert_true(running > 0.4 * enabled && running < 0.6 * enabled);
	assert_true(total_of(&s, "INST_RETIRED:u", "counter") < truth);
	printf("figure: 9 events on 7 counters in turns: %lld of %lld user instructions counted, "
	       "scaled %lld, the worst of 8 threads %.2f %% off\n",
	       (long long)total_of(&s, "INST_RETIRED:u", "counter"), (long long)truth,
	       (long long)total_of(&s, "INST_RETIRED:u", "scaled"), 100 * worst);
	json_decref(s.report);
	expect_text("turnstable", "report", "2 sets of counters took turns");
	expect_text("turnstable", "report", "scaled INST_RETIRED:u: it ran ");
	expect_text("toomany", "complaint", "--multiplex");
}

/* A trigger of the hardware has a counter in every set, and begins a period with every turn. */
static void test_turns_of_a_hardware_trigger(void **state)
{
	struct scenario s;

	(void)state;
	load(&s, "turnshard");
	assert_int_equal(integer(s.report, "sets"), 2);
	assert_int_equal(complete(&s, "lost") + complete(&s, "throttled"), 0);
	assert_true(complete(&s, "unseen") <= complete(&s, "trigger") / 1000);
	assert_true(complete(&s, "open") > 0);
	for (size_t i = 0; i < s.nr_threads; i++)
		assert_true(value_of(thread_row(&s, &s.threads[i]), "INST_RETIRED:u") <=
			    s.threads[i].instructions);
	json_decref(s.report);
}

/* Where all fit, --multiplex is no other run. */
static void test_turns_without_need(void **state)
{
	struct scenario s;

	(void)state;
	load(&s, "needless");
	check_whole(&s);
	assert_int_equal(integer(s.report, "sets"), 1);
	assert_true(json_is_false(json_object_get(s.report, "estimate")));
	for (size_t i = 0; i < s.nr_threads; i++)
		assert_int_equal(value_of(thread_row(&s, &s.threads[i]), "INST_RETIRED:u"),
				 s.threads[i].instructions);
	json_decref(s.report);
}

/* The PMU is shared with another user: the group is on it half of the time. While it is off no
 * switch is sampled and nothing counted; then slices have several owners, and values are lower
 * bounds. */
static void test_crowded(void **state)
{
	struct scenario s;
	int64_t threads = 0, truth = 0, enabled = 0, running = 0;

	(void)state;
	load(&s, "crowded");
	assert_int_equal(s.nr_threads, 8);
	for (size_t i = 0; i < s.nr_threads; i++) {
		const struct thread *t = &s.threads[i];
		const json_t *count = counts_of(thread_row(&s, t), "INST_RETIRED:u");

		assert_true(integer(count, "value") <= t->instructions);
		assert_true(integer(count, "running_ns") < integer(count, "enabled_ns"));
		threads += integer(count, "value");
		truth += t->instructions;
		enabled += integer(count, "enabled_ns");
		running += integer(count, "running_ns");
	}
	/* The side-band is not on the PMU and sees every switch. */
	assert_true(integer(s.report, "slices") > complete(&s, "samples") + 500);
	assert_true(exact_share(&s) > 0.2 && exact_share(&s) < 0.8);
	assert_true(unproven(&s, "INST_RETIRED:u") > 0);
	expect_text("crowdedtable", "report", " of the time: its values are lower bounds");
	printf("figure: PMU shared: on it %.1f %% of the time, %lld of %lld user instructions "
	       "proven, exact share %.4f\n",
	       100.0 * (double)running / (double)enabled, (long long)threads, (long long)truth,
	       exact_share(&s));
	json_decref(s.report);
}

/* An event that this PMU opens and does not have is not 0; a software event that did not occur is.
 */
static void test_never(void **state)
{
	static const char *const absent[] = { "r0b", "r1c" };
	struct scenario s;
	const json_t *idle;

	(void)state;
	load(&s, "never");
	check_whole(&s);
	idle = find_row(&s, "idle", NO_THREAD);
	assert_non_null(idle);
	for (size_t i = 0; i < 2; i++) {
		const json_t *count = counts_of(idle, absent[i]);
		const json_t *total =
			json_object_get(json_object_get(s.report, "totals"), absent[i]);

		assert_true(json_is_null(json_object_get(count, "value")));
		assert_string_equal(json_string_value(json_object_get(count, "reason")),
				    "never counted");
		assert_true(json_is_null(json_object_get(total, "counter")));
		/* It was not for want of time. */
		assert_true(integer(count, "running_ns") > 1000000000);
	}
	assert_true(value_of(idle, "INST_RETIRED") > 0);
	assert_int_equal(integer(counts_of(idle, "major-faults"), "value"), 0);
	json_decref(s.report);
	expect_text("nevertable", "report", "conservation r0b: never counted, not once in 2.");
	expect_text("nevertable", "report", "conservation INST_RETIRED ok");
}

/* The kernel stops the trigger most of the time: that time is nobody's, and it is said. */
static void test_throttled(void **state)
{
	struct scenario s;
	int64_t threads = 0, truth = 0, throttles;
	const char *at;
	char *text;

	(void)state;
	load(&s, "throttled");
	assert_int_equal(s.nr_threads, 8);
	for (size_t i = 0; i < s.nr_threads; i++) {
		const struct thread *t = &s.threads[i];
		int64_t value = value_of(thread_row(&s, t), "INST_RETIRED:u");

		assert_true(value <= t->instructions);
		threads += value;
		truth += t->instructions;
	}
	assert_true(threads < truth / 2);
	assert_true(truth - threads <= unproven(&s, "INST_RETIRED:u"));
	assert_true(exact_share(&s) < 0.5);
	text = frame("throttledtable", "report");
	at = strstr(text, "; throttles ");
	assert_non_null(at);
	throttles = atoll(at + strlen("; throttles "));
	assert_true(throttles > 10);
	printf("figure: throttled %lld times: %lld of %lld user instructions proven, %lld said to "
	       "be nobody's, exact share %.4f\n",
	       (long long)throttles, (long long)threads, (long long)truth,
	       (long long)unproven(&s, "INST_RETIRED:u"), exact_share(&s));
	free(text);
	json_decref(s.report);
}

static void test_paranoid(void **state)
{
	static const char *const levels[] = { "3", "2" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		char name[16], want[64];

		snprintf(name, sizeof(name), "paranoid%s", levels[i]);
		snprintf(want, sizeof(want), "kernel.perf_event_paranoid is %s;", levels[i]);
		assert_int_equal(status_of(name), 1);
		expect_text(name, "complaint", want);
		expect_text(name, "complaint", "CAP_PERFMON");
	}
}

/* ---- arm64, two CPUs ---- */

static void check_migrations(const char *name)
{
	struct scenario s;
	int64_t faults = 0, slices = 0, migrations;

	load(&s, name);
	check_whole(&s);
	assert_int_equal(s.nr_threads, 8);
	for (size_t i = 0; i < s.nr_threads; i++) {
		const json_t *row = thread_row(&s, &s.threads[i]);

		assert_int_equal(value_of(row, "page-faults"), s.threads[i].faults);
		faults += s.threads[i].faults;
		slices += integer(row, "slices");
	}
	migrations = integer(json_object_get(json_object_get(s.report, "totals"), "cpu-migrations"),
			     "counter");
	assert_true(migrations > 0);
	printf("figure: two CPUs, %s: 8 threads, %lld page faults, difference 0, over %lld slices "
	       "and %lld migrations, sets of counters %lld\n",
	       name, (long long)faults, (long long)slices, (long long)migrations,
	       (long long)integer(s.report, "sets"));
	json_decref(s.report);
}

/* With counters that take turns the reader comes to each CPU every 20 ms, and nothing is lost by
 * it. */
static void test_migrations(void **state)
{
	(void)state;
	check_migrations("smp");
	check_migrations("smpturns");
}

/* Both idle tasks: all of both CPUs' time has an owner, and idle's switches are all there. */
static void test_idle(void **state)
{
	struct scenario s;
	const json_t *idle;
	json_t *row;
	int64_t oncpu = 0, duration, slices = 0;
	size_t i;

	(void)state;
	load(&s, "idle");
	check_whole(&s);
	duration = integer(s.report, "duration_ns");
	json_array_foreach(json_object_get(s.report, "rows"), i, row)
	{
		oncpu += integer(row, "oncpu_ns");
		slices += integer(row, "slices");
	}
	/* The two CPUs begin and end one after the other. */
	assert_true(oncpu <= 2 * duration && oncpu > 2 * duration - 5000000);
	idle = find_row(&s, "idle", NO_THREAD);
	assert_non_null(idle);
	/* Between any two threads that came out of the sleep of a CPU, idle ran. */
	assert_true(integer(idle, "oncpu_ns") > duration + duration / 2);
	assert_int_equal(value_of(idle, "context-switches"), integer(idle, "slices"));
	assert_int_equal(slices, complete(&s, "trigger"));
	assert_true(integer(idle, "slices") >= 20);
	printf("figure: two idle tasks: %lld switches away from them, all seen; unseen %lld of "
	       "%lld\n",
	       (long long)integer(idle, "slices"), (long long)complete(&s, "unseen"),
	       (long long)complete(&s, "trigger"));
	json_decref(s.report);
}

/* ---- riscv64 ---- */

/* User-mode misses in a slice of the two partners, on average. A yield that found nobody to yield
 * to is no switch, so turns will not do as the measure. */
static double misses_per_slice(const char *name, int64_t *slices)
{
	struct scenario s;
	int64_t misses = 0;

	load(&s, name);
	check_whole(&s);
	assert_int_equal(s.nr_threads, 2);
	*slices = 0;
	for (size_t i = 0; i < 2; i++) {
		const json_t *row = thread_row(&s, &s.threads[i]);

		misses += value_of(row, "dTLB-load-misses:u");
		*slices += integer(row, "slices");
		/* No page misses twice between two switches, and few others are touched. */
		assert_true(value_of(row, "dTLB-load-misses:u") <
			    (s.threads[i].pages + 16) * integer(row, "slices"));
	}
	json_decref(s.report);
	return (double)misses / (double)*slices;
}

/* A switch to another address space flushes this CPU's TLB: afterwards every page of the working
 * set of 64 misses. A switch between threads of one process leaves it as it is. */
static void test_address_spaces(void **state)
{
	int64_t of_processes, of_threads;
	double processes = misses_per_slice("processes", &of_processes);
	double threads = misses_per_slice("threads", &of_threads);

	(void)state;
	/* On a slow host ticks cut turns in two and not every yield finds the other one ready. */
	assert_true(of_processes >= 100 && of_threads >= 100);
	assert_true(processes > 32);
	assert_true(threads < 4);
	printf("figure: user dTLB load misses in a slice over 64 pages: %.2f between processes "
	       "(%lld "
	       "slices), %.2f between threads (%lld slices)\n",
	       processes, (long long)of_processes, threads, (long long)of_threads);
}

static void test_kernel_misses(void **state)
{
	struct scenario s;

	(void)state;
	load(&s, "both");
	check_whole(&s);
	for (size_t i = 0; i < s.nr_threads; i++) {
		const json_t *row = thread_row(&s, &s.threads[i]);

		assert_true(value_of(row, "dTLB-load-misses") > 32 * integer(row, "slices"));
		assert_true(value_of(row, "dTLB-store-misses") > 0);
	}
	json_decref(s.report);
}

/* Misses as the trigger: overflows within stretches in which interrupts are off melt into one, and
 * those occurrences are said to be unseen. */
static void test_miss_trigger(void **state)
{
	struct scenario s;

	(void)state;
	load(&s, "overflow");
	assert_int_equal(complete(&s, "sav"), 50);
	assert_int_equal(complete(&s, "lost"), 0);
	assert_true(complete(&s, "samples") > 1000);
	assert_true(complete(&s, "unseen") < complete(&s, "trigger") / 10);
	for (size_t i = 0; i < s.nr_threads; i++)
		assert_true(integer(thread_row(&s, &s.threads[i]), "slices") >= 50);
	printf("figure: trigger dTLB-load-misses sav 50: %lld = 50 x %lld + unseen %lld + open "
	       "%lld\n",
	       (long long)complete(&s, "trigger"), (long long)complete(&s, "samples"),
	       (long long)complete(&s, "unseen"), (long long)complete(&s, "open"));
	json_decref(s.report);
}

static const struct CMUnitTest arm64_1cpu[] = {
	cmocka_unit_test(test_repeatable),
	cmocka_unit_test(test_known),
	cmocka_unit_test(test_store),
	cmocka_unit_test(test_ipc),
	cmocka_unit_test(test_hardware_trigger),
	cmocka_unit_test(test_room),
	cmocka_unit_test(test_crowded),
	cmocka_unit_test(test_turns),
	cmocka_unit_test(test_turns_of_a_hardware_trigger),
	cmocka_unit_test(test_turns_without_need),
	cmocka_unit_test(test_never),
	cmocka_unit_test(test_throttled),
	cmocka_unit_test(test_paranoid),
};

/* A CPU that went offline has no part in the intervals after it: none is longer for it, and each
 * adds up. */
static void test_offline(void **state)
{
	char *text = frame("offline", "report"), *rest = NULL;
	int64_t gone = 0, intervals = 0;

	(void)state;
	assert_int_equal(status_of("offline"), 0);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct scenario s = { .name = "offline", .report = json_loads(line, 0, NULL) };
		const json_t *row;
		int64_t oncpu = 0, duration;
		size_t i;

		if (!s.report)
			fail_msg("no JSON: %s", line);
		check_sums(&s);
		gone = integer(s.report, "cpus_gone");
		duration = integer(s.report, "duration_ns");
		json_array_foreach(json_object_get(s.report, "rows"), i, row) oncpu +=
			integer(row, "oncpu_ns");
		assert_true(oncpu <= 2 * duration);
		/* The call that takes a CPU away may hold up the tick. */
		if (intervals++ > 2 && (duration < 500000000 || duration > 1500000000))
			fail_msg("interval %lld lasts %lld ns", (long long)intervals,
				 (long long)duration);
		json_decref(s.report);
	}
	free(text);
	assert_int_equal(gone, 1);
	assert_true(intervals >= 4);
	expect_text("offlinecsv", "complaint", "that went offline: 1;");
}

static const struct CMUnitTest arm64_2cpus[] = {
	cmocka_unit_test(test_offline),
	cmocka_unit_test(test_migrations),
	cmocka_unit_test(test_idle),
};

static const struct CMUnitTest riscv64[] = {
	cmocka_unit_test(test_address_spaces),
	cmocka_unit_test(test_kernel_misses),
	cmocka_unit_test(test_miss_trigger),
};

int main(int argc, char **argv)
{
	char *kernel;

	if (argc < 3 || argc - 2 > CONSOLES_MAX) {
		fprintf(stderr, "usage: emulated_check SET CONSOLE...\n");
		return 2;
	}
	for (nr_consoles = 0; nr_consoles < argc - 2; nr_consoles++) {
		consoles[nr_consoles] = read_console(argv[2 + nr_consoles]);
		if (!strstr(consoles[nr_consoles], "\n@@@ done\n")) {
			fprintf(stderr, "%s: the guest did not come to its end\n",
				argv[2 + nr_consoles]);
			return 1;
		}
	}
	kernel = find_frame("kernel");
	printf("%s: Linux %s", argv[1], kernel ? kernel : "?\n");
	free(kernel);
	if (!strcmp(argv[1], "arm64-1cpu"))
		return cmocka_run_group_tests(arm64_1cpu, NULL, NULL);
	if (!strcmp(argv[1], "arm64-2cpus"))
		return cmocka_run_group_tests(arm64_2cpus, NULL, NULL);
	if (!strcmp(argv[1], "riscv64"))
		return cmocka_run_group_tests(riscv64, NULL, NULL);
	fprintf(stderr, "emulated_check: %s: no such set\n", argv[1]);
	return 2;
}
