/*
 * Fuzz target: the texts of trigger and events through csw_spec_plan, on the simulated machine.
 *
 * Input: the trigger's text up to the first newline, then the list of events; both end at a NUL.
 */
#include <errno.h>
#include <string.h>

#include "engine/spec.h"
#include "fuzz.h"

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
	FUZZ_ASSERT(plan->trigger.sav >= 1);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *newline = memchr(data, '\n', size);
	size_t first = newline ? (size_t)(newline - data) : size;
	size_t skip = newline ? first + 1 : first;
	char *trigger = copy_text(data, first);
	char *events = copy_text(data + skip, size - skip);
	struct csw_plan plan = { .nr_counters = 0 };
	struct csw_error err = { .code = 0 };
	int ret = csw_spec_plan(&plan, &csw_sim_driver, first ? trigger : NULL, events, 0, &err);

	FUZZ_ASSERT(ret <= 0);
	if (ret == 0)
		check_plan(&plan);
	else
		check_error(&err, ret);
	/* Without an err the answer is the same. */
	FUZZ_ASSERT(csw_spec_plan(&plan, &csw_sim_driver, first ? trigger : NULL, events, 0,
				  NULL) == ret);
	free(trigger);
	free(events);
	return 0;
}
