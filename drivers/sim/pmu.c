/* See pmu.h. Invariant: raw never has a bit set above the counter's width. */
#include "drivers/sim/pmu.h"

#define HARDWARE_BITS 48

static bool is_software(uint32_t event)
{
	return event == CSW_SIM_PAGE_FAULTS || event == CSW_SIM_TASK_CLOCK ||
	       event == CSW_SIM_SWITCHES || event == CSW_SIM_TASK_STORES ||
	       event == CSW_SIM_TASK_ACCESSES;
}

static uint64_t mask(const struct csw_sim_counter *counter)
{
	return UINT64_MAX >> (64 - counter->bits);
}

static void load(struct csw_sim_counter *counter, uint64_t raw)
{
	counter->raw = counter->seen = raw & mask(counter);
}

static void add(struct csw_sim_counter *counter, uint64_t n)
{
	uint64_t raw = (counter->raw + n) & mask(counter);

	counter->wraps += raw < counter->raw;
	counter->raw = raw;
}

/* The difference is right across one wrap because both values are moved to the top of the 64-bit
 * word first: there the subtraction borrows from nowhere, as if the counter had 64 bits. Two wraps
 * between two reads would be missed, in life too. */
static uint64_t extend(struct csw_sim_counter *counter)
{
	unsigned shift = 64 - counter->bits;
	uint64_t delta = (counter->raw << shift) - (counter->seen << shift);

	counter->seen = counter->raw;
	counter->value += delta >> shift;
	return counter->value;
}

void csw_sim_pmu_init(struct csw_sim_pmu *pmu, const struct csw_sim_pmu_opts *opts, uint64_t seed,
		      bool near_wrap)
{
	*pmu = (struct csw_sim_pmu){
		.sav = opts->sav,
		.before = opts->before,
		.reset = opts->reset,
		.skid_permille = opts->skid_permille,
		.nr_counters = opts->nr_counters,
		.random.state = seed,
		.trigger = { .event = opts->trigger, .bits = HARDWARE_BITS },
	};

	for (uint32_t i = 0; i < opts->nr_counters; i++) {
		struct csw_sim_counter *counter = &pmu->counters[i];

		counter->event = opts->events[i];
		counter->bits = is_software(counter->event) ? 64 : HARDWARE_BITS;
		if (near_wrap && !opts->reset && !is_software(counter->event))
			load(counter, -1ULL - csw_sim_random_below(&pmu->random, 100));
	}
	load(&pmu->trigger, -opts->sav);
	csw_sim_pmu_turn(pmu, UINT32_MAX);
}

void csw_sim_pmu_turn(struct csw_sim_pmu *pmu, uint32_t on)
{
	pmu->on = on;
	pmu->events_on = 0;
	for (uint32_t i = 0; i < pmu->nr_counters; i++) {
		if (on >> i & 1)
			pmu->events_on |= 1u << pmu->counters[i].event;
	}
	/* Before the load below, which is no occurrence. */
	if (pmu->reset)
		pmu->trigger.value += (pmu->trigger.raw + pmu->sav) & mask(&pmu->trigger);
	else
		extend(&pmu->trigger);
	load(&pmu->trigger, -pmu->sav);
}

/* One occurrence, or none. */
static bool count_trigger(struct csw_sim_pmu *pmu, uint64_t n)
{
	struct csw_sim_counter *trigger = &pmu->trigger;

	if (!n || !csw_sim_pmu_trigger_counts(pmu))
		return false;
	add(trigger, n);
	if (trigger->raw)
		return false;
	if (pmu->reset)
		trigger->value += pmu->sav;
	else
		extend(trigger); /* before the load below, which is no occurrence */
	load(trigger, -pmu->sav);
	return !pmu->throttled;
}

bool csw_sim_pmu_count(struct csw_sim_pmu *pmu, const uint64_t by[CSW_SIM_EVENTS])
{
	for (uint32_t i = 0; i < pmu->nr_counters; i++) {
		if (pmu->on >> i & 1)
			add(&pmu->counters[i], by[pmu->counters[i].event]);
	}
	return count_trigger(pmu, by[pmu->trigger.event]);
}

void csw_sim_pmu_reset(struct csw_sim_pmu *pmu)
{
	for (uint32_t i = 0; pmu->reset && i < pmu->nr_counters; i++) {
		pmu->counters[i].value += pmu->counters[i].raw;
		load(&pmu->counters[i], 0);
	}
}

enum csw_sim_moment csw_sim_pmu_moment(struct csw_sim_pmu *pmu)
{
	if (pmu->before)
		return CSW_SIM_BEFORE;
	if (pmu->skid_permille && csw_sim_random_below(&pmu->random, 1000) < pmu->skid_permille)
		return CSW_SIM_LATE;
	return CSW_SIM_INSIDE;
}

/* Since the last overflow the registers hold all that happened: the trigger's began at -sav, the
 * others at 0. */
static void read_since_reset(const struct csw_sim_pmu *pmu, uint64_t *values)
{
	values[0] = pmu->trigger.value + ((pmu->trigger.raw + pmu->sav) & mask(&pmu->trigger));
	for (uint32_t i = 0; i < pmu->nr_counters; i++)
		values[1 + i] = pmu->counters[i].value + pmu->counters[i].raw;
}

void csw_sim_pmu_read(struct csw_sim_pmu *pmu, uint64_t *values)
{
	if (pmu->reset) {
		read_since_reset(pmu, values);
		return;
	}
	values[0] = extend(&pmu->trigger);
	for (uint32_t i = 0; i < pmu->nr_counters; i++)
		values[1 + i] = extend(&pmu->counters[i]);
}
