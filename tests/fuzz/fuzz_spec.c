/*
 * Fuzz target: the texts of trigger, events and sample-after value through csw_spec_plan, on the
 * simulated machine and through the catalogue of the live one.
 *
 * Input: the trigger's text up to the first newline, then the list of events, then after a second
 * newline the sample-after value ("auto", a number or nothing), and '!' at its end to force the
 * trigger. Each ends at a NUL.
 *
 * The live machine is made up: a kernel that counts everything, and no files. Which CPU it is comes
 * from LIBPFM_FORCE_PMU, where that is set.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "engine/error.h"
#include "engine/percpu.h"
#include "engine/spec.h"
#include "engine/sysfs.h"
#include "engine/triggers.h"
#include "engine/tryout.h"
#include "fuzz.h"

static int open_anything(struct perf_event_attr *attr, pid_t pid, int cpu, int group,
			 unsigned long flags)
{
	(void)attr;
	(void)pid;
	(void)cpu;
	(void)group;
	(void)flags;
	return 1 << 20;
}

static int close_it(int fd)
{
	FUZZ_ASSERT(fd == 1 << 20);
	return 0;
}

static int any_cpu(struct csw_cpu *out)
{
	memset(out, 0, sizeof(*out));
	out->min_period = 2;
	return 0;
}

static const struct csw_tryout_ops made_up = { open_anything, close_it, any_cpu };

/* Variables whose names begin with small letters are there, one for each CPU or one for all. */
static int find_variable(const char *name, struct csw_percpu_variable *out, struct csw_error *err)
{
	*out = (struct csw_percpu_variable){ .offset = (uint64_t)(unsigned char)name[0] * 4,
					     .bytes = strlen(name) };
	return name[0] >= 'a' && name[0] <= 'm' ? 0 : csw_error_set(err, -ENOENT, "not there");
}

static int find_global(const char *name, uint64_t *address, uint64_t *bytes)
{
	*address = UINT64_MAX - strlen(name);
	*bytes = 0;
	return name[0] >= 'n' && name[0] <= 'z' ? 0 : -ENOENT;
}

static int any_address(uint64_t offset, unsigned cpu, uint64_t *address, struct csw_error *err)
{
	(void)err;
	*address = ((uint64_t)cpu << 32) + offset;
	return 0;
}

static const struct csw_percpu_ops made_up_memory = { .find = find_variable,
						      .global = find_global,
						      .address = any_address };

static char *copy_text(const uint8_t *from, size_t bytes)
{
	char *text = malloc(bytes + 1);

	FUZZ_ASSERT(text);
	memcpy(text, from, bytes);
	text[bytes] = '\0';
	return text;
}

static void check_plan(const struct csw_plan *plan)
{
	FUZZ_ASSERT(plan->nr_counters >= 1 && plan->nr_counters <= CSW_COUNTERS_MAX);
	FUZZ_ASSERT(plan->trigger.sav >= 1 && plan->trigger.sav <= INT64_MAX);
	FUZZ_ASSERT(memchr(plan->trigger.event.name, '\0', CSW_EVENT_NAME_BYTES));
	FUZZ_ASSERT(plan->trigger.event.became[0] &&
		    memchr(plan->trigger.event.became, '\0', CSW_EVENT_NAME_BYTES));
	FUZZ_ASSERT(memchr(plan->trigger.forced, '\0', sizeof(plan->trigger.forced)));
	FUZZ_ASSERT(plan->force || !plan->trigger.forced[0]);
	for (unsigned i = 0; i < plan->nr_counters; i++) {
		const char *name = plan->counters[i].name;

		FUZZ_ASSERT(*name && memchr(name, '\0', CSW_EVENT_NAME_BYTES));
		FUZZ_ASSERT(memchr(plan->counters[i].became, '\0', CSW_EVENT_NAME_BYTES));
		for (unsigned k = 0; k < i; k++)
			FUZZ_ASSERT(strcmp(plan->counters[k].name, name) != 0);
	}
}

/* A failure has its code and one printable line. */
static void check_error(const struct csw_error *err, int ret)
{
	const char *end = memchr(err->text, '\0', sizeof(err->text));

	FUZZ_ASSERT(err->code == ret);
	FUZZ_ASSERT(end && end != err->text);
	for (const char *c = err->text; c < end; c++)
		FUZZ_ASSERT((unsigned char)*c >= ' ' && *c != 0x7f);
}

/* The text from *at up to a newline, of which *at is then behind. */
static char *take_line(const uint8_t **at, const uint8_t *end)
{
	const uint8_t *newline = memchr(*at, '\n', (size_t)(end - *at));
	const uint8_t *to = newline ? newline : end;
	char *text = copy_text(*at, (size_t)(to - *at));

	*at = newline ? newline + 1 : end;
	return text;
}

static void check(const struct csw_driver_ops *ops, const char *trigger, const char *events,
		  uint64_t sav, bool force)
{
	struct csw_plan plan = { .force = force };
	struct csw_error err = { .code = 0 };
	int ret = csw_spec_plan(&plan, ops, trigger, events, sav, &err);

	FUZZ_ASSERT(ret <= 0);
	if (ret == 0)
		check_plan(&plan);
	else
		check_error(&err, ret);
	/* Without an err the answer is the same. */
	FUZZ_ASSERT(csw_spec_plan(&plan, ops, trigger, events, sav, NULL) == ret);
}

/* A name that nobody knows is compared with all of libpfm4's, which takes thousands of times as
 * long as all else here: so only the catalogue's own triggers come each time. */
#define LIVE_NAMES_EVERY 256

static void check_live(const char *trigger, const char *events, uint64_t sav, bool force)
{
	bool all = strcmp(events, "page-faults") != 0;

	if (!*trigger || (!all && csw_trigger_id(trigger) == CSW_TRIGGER_IDS))
		trigger = "auto";
	csw_tryout_set_ops_for_tests(&made_up);
	csw_percpu_set_ops_for_tests(&made_up_memory);
	csw_sysfs_set_root_for_tests("/nowhere");
	check(&csw_perf_driver, trigger, events, sav, force);
	csw_sysfs_set_root_for_tests("");
	csw_percpu_set_ops_for_tests(NULL);
	csw_tryout_set_ops_for_tests(NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *at = data;
	char *trigger = take_line(&at, data + size), *events = take_line(&at, data + size),
	     *sav = take_line(&at, data + size);
	uint64_t value = strncmp(sav, "auto", 4) ? strtoull(sav, NULL, 0) : CSW_SAV_AUTO;
	bool force = *sav && sav[strlen(sav) - 1] == '!';

	check(&csw_sim_driver, *trigger ? trigger : NULL, events, value, force);
	check_live(trigger, size % LIVE_NAMES_EVERY ? "page-faults" : events, value, force);
	free(trigger);
	free(events);
	free(sav);
	return 0;
}
