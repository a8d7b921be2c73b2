/*
 * From a name's text to an event in the kernel's numbering; see lookup.h.
 */
#include "engine/lookup.h"

#include <ctype.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/error.h"
#include "engine/names.h"
#include "engine/pfm.h"
#include "engine/sysfs.h"
#include "engine/text.h"
#include "engine/triggers.h"
#include "engine/tryout.h"
#include "engine/watch.h"

/* What finish() must know of a software event. */
#define SW_NEVER_IDLE 0x1u
#define SW_CLOCK 0x2u
#define SW_KERNEL_ONLY                                                                             \
	0x4u /* raised with the kernel's own registers: with exclude_kernel the kernel counts none \
		of them */
#define SW_NOTHING 0x8u /* carries data or keeps records coming, but never counts */

struct software {
	const char *name, *alias;
	uint64_t config;
	unsigned traits;
	const char *summary;
};

static const struct software softwares[] = {
	{ "cpu-clock", NULL, PERF_COUNT_SW_CPU_CLOCK, SW_CLOCK,
	  "time on a CPU by its timer, in ns" },
	{ "task-clock", NULL, PERF_COUNT_SW_TASK_CLOCK, SW_CLOCK,
	  "time on a CPU by the scheduler, in ns" },
	{ "page-faults", "faults", PERF_COUNT_SW_PAGE_FAULTS, SW_NEVER_IDLE,
	  "pages that had to be brought in or mapped" },
	{ "context-switches", "cs", PERF_COUNT_SW_CONTEXT_SWITCHES, SW_KERNEL_ONLY,
	  "switches from one thread to another; the event behind the trigger switch" },
	{ "cpu-migrations", "migrations", PERF_COUNT_SW_CPU_MIGRATIONS, SW_KERNEL_ONLY,
	  "moves of a thread to another CPU" },
	{ "minor-faults", NULL, PERF_COUNT_SW_PAGE_FAULTS_MIN, SW_NEVER_IDLE,
	  "page faults without reading from a disk" },
	{ "major-faults", NULL, PERF_COUNT_SW_PAGE_FAULTS_MAJ, SW_NEVER_IDLE,
	  "page faults that read from a disk" },
	{ "alignment-faults", NULL, PERF_COUNT_SW_ALIGNMENT_FAULTS, SW_NEVER_IDLE,
	  "unaligned accesses that the kernel mended" },
	{ "emulation-faults", NULL, PERF_COUNT_SW_EMULATION_FAULTS, SW_NEVER_IDLE,
	  "instructions that the kernel emulated" },
	{ "cgroup-switches", NULL, PERF_COUNT_SW_CGROUP_SWITCHES, SW_KERNEL_ONLY,
	  "switches to a thread of another cgroup" },
	{ "dummy", NULL, PERF_COUNT_SW_DUMMY, SW_NOTHING, "counts nothing" },
	{ "bpf-output", NULL, PERF_COUNT_SW_BPF_OUTPUT, SW_NOTHING,
	  "counts nothing: the way out for BPF programs" },
};

/* perf's generic hardware names; the kernel maps them to the CPU's own events. */
static const struct generic {
	const char *name, *alias;
	const char *sysfs; /* how /sys/bus/event_source/devices/cpu/events calls it */
	uint64_t config;
	const char *summary;
} generics[] = {
	{ "cycles", "cpu-cycles", "cpu-cycles", PERF_COUNT_HW_CPU_CYCLES,
	  "cycles of the core while it does not halt" },
	{ "instructions", NULL, "instructions", PERF_COUNT_HW_INSTRUCTIONS,
	  "instructions retired" },
	{ "cache-references", NULL, "cache-references", PERF_COUNT_HW_CACHE_REFERENCES,
	  "accesses to a cache, mostly the last level" },
	{ "cache-misses", NULL, "cache-misses", PERF_COUNT_HW_CACHE_MISSES,
	  "accesses that missed that cache; L2 misses on AMD Zen" },
	{ "branches", "branch-instructions", "branch-instructions",
	  PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "branch instructions retired" },
	{ "branch-misses", NULL, "branch-misses", PERF_COUNT_HW_BRANCH_MISSES,
	  "branches predicted wrongly" },
	{ "bus-cycles", NULL, "bus-cycles", PERF_COUNT_HW_BUS_CYCLES, "cycles of the bus" },
	{ "ref-cycles", NULL, "ref-cycles", PERF_COUNT_HW_REF_CPU_CYCLES,
	  "cycles at the constant reference rate" },
	{ "stalled-cycles-frontend", "idle-cycles-frontend", "stalled-cycles-frontend",
	  PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
	  "cycles in which no instruction could be fetched" },
	{ "stalled-cycles-backend", "idle-cycles-backend", "stalled-cycles-backend",
	  PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
	  "cycles in which no instruction could be executed" },
};

/* Events of the debug registers, which can be counted as well; see engine/watch.h. */
static const char *const watches[] = { "tid_change", "mem_load:", "mem_store:" };

#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* ---- the text ---- */

static bool is_named(const char *text, const char *name, const char *alias)
{
	return !strcmp(text, name) || (alias && !strcmp(text, alias));
}

static const struct software *find_software(const char *text)
{
	for (size_t i = 0; i < NR(softwares); i++)
		if (is_named(text, softwares[i].name, softwares[i].alias))
			return &softwares[i];
	return NULL;
}

static const struct generic *find_generic(const char *text)
{
	for (size_t i = 0; i < NR(generics); i++)
		if (is_named(text, generics[i].name, generics[i].alias))
			return &generics[i];
	return NULL;
}

/* rNNN: 1 to 16 hexadecimal digits, as perf writes a raw code. */
static bool is_raw(const char *text, uint64_t *code)
{
	size_t nr = strlen(text);

	if (nr < 2 || nr > 17 || text[0] != 'r' ||
	    strspn(text + 1, "0123456789abcdefABCDEF") != nr - 1)
		return false;
	*code = strtoull(text + 1, NULL, 16);
	return true;
}

/* Cuts ":u", ":k", ":uk" (and perf's "pmu/.../u") off the head and notes what they exclude. */
static void take_modifiers(struct csw_lookup *l)
{
	static const struct {
		const char *text, *suffix;
		bool user, kernel;
	} modifiers[] = {
		{ "u", ":u", true, false },
		{ "k", ":k", false, true },
		{ "uk", ":uk", true, true },
		{ "ku", ":uk", true, true },
	};
	char *colon = strrchr(l->head, ':'), *slash = strrchr(l->head, '/');
	char *end = slash && (!colon || slash > colon) ? slash : colon;

	l->suffix = "";
	for (size_t i = 0; end && end > l->head && i < NR(modifiers); i++) {
		if (strcmp(end + 1, modifiers[i].text))
			continue;
		l->suffix = modifiers[i].suffix;
		l->out->exclude_user = !modifiers[i].user;
		l->out->exclude_kernel = !modifiers[i].kernel;
		l->out->exclude_hv = true; /* as perf: what is named is counted, and nothing else */
		end[end == slash] = '\0';
		return;
	}
}

static int too_long(const char *name, struct csw_error *err)
{
	char shown[64];

	return csw_error_set(err, -EINVAL,
			     "the name \"%s\" is too long: at most %d bytes; a long list of terms "
			     "fits as raw rNNN "
			     "or pmu/config=0x.../",
			     csw_escape(shown, sizeof(shown), name), CSW_EVENT_NAME_BYTES - 1);
}

/* Fills out->name, head, suffix; the name is short and printable after that, or this fails. */
int csw_lookup_begin(struct csw_lookup *l, const char *name)
{
	size_t nr = strnlen(name, CSW_EVENT_NAME_BYTES);
	char shown[4 * CSW_EVENT_NAME_BYTES];

	if (nr == CSW_EVENT_NAME_BYTES)
		return too_long(name, l->err);
	memcpy(l->out->name, name, nr + 1);
	memcpy(l->head, name, nr + 1);
	for (size_t i = 0; i < nr; i++)
		if (!isgraph((unsigned char)name[i]) || (unsigned char)name[i] > 0x7e)
			return csw_error_set(
				l->err, -ENOENT,
				"there is no event \"%s\": names are printable ASCII without "
				"spaces",
				csw_escape(shown, sizeof(shown), name));
	take_modifiers(l);
	return 0;
}

/* ---- names that nobody knows ---- */

static bool takes_place(uint32_t id)
{
	return id == CSW_TRIGGER_MEM_LOAD || id == CSW_TRIGGER_MEM_STORE;
}

/* "page-faults:x": the event is there, the modifier is not. */
bool csw_lookup_bad_modifier(const struct csw_lookup *l)
{
	uint32_t id = csw_trigger_id(l->head);
	char before[CSW_EVENT_NAME_BYTES];
	size_t nr = strcspn(l->head, ":");
	uint64_t code;

	if (!l->head[nr])
		return false;
	memcpy(before, l->head, nr);
	before[nr] = '\0';
	return find_software(before) || find_generic(before) || is_raw(before, &code) ||
	       !strcmp(before, "LLC_MISSES") || id == CSW_TRIGGER_AUTO ||
	       id == CSW_TRIGGER_SWITCH || (l->trigger && id < CSW_TRIGGER_IDS && !takes_place(id));
}

static int offer_tracepoint(void *ctx, const char *subsys, const char *event)
{
	char name[2 * CSW_EVENT_NAME_BYTES + 2];

	snprintf(name, sizeof(name), "%s:%s", subsys, event);
	csw_nearest_offer_as(ctx, event, name);
	return 0;
}

static void offer_all(struct csw_nearest *nearest, bool trigger)
{
	for (size_t i = 0; i < NR(softwares); i++) {
		if (softwares[i].traits & SW_NOTHING)
			continue;
		csw_nearest_offer(nearest, softwares[i].name);
		if (softwares[i].alias)
			csw_nearest_offer(nearest, softwares[i].alias);
	}
	for (size_t i = 0; i < NR(generics); i++) {
		csw_nearest_offer(nearest, generics[i].name);
		if (generics[i].alias)
			csw_nearest_offer(nearest, generics[i].alias);
	}
	csw_nearest_offer(nearest, "LLC_MISSES");
	csw_nearest_offer(nearest, "msr/tsc/");
	for (size_t i = 0; !trigger && i < NR(watches); i++)
		csw_nearest_offer(nearest, watches[i]);
	for (size_t i = 0; trigger && i < CSW_TRIGGER_IDS; i++)
		csw_nearest_offer(nearest, csw_trigger_names[i].name);
	csw_pfm_offer(nearest);
}

static int unknown(const struct csw_lookup *l)
{
	char wanted[CSW_EVENT_NAME_BYTES], suffix[CSW_ERROR_BYTES / 2], *colons, *colon;
	struct csw_nearest nearest;
	const char *what = l->trigger ? "trigger or event" : "event";

	if (!l->head[0])
		return csw_error_set(l->err, -ENOENT, "an empty name is no %s; e.g. %s", what,
				     l->trigger ? "--trigger=switch" : "--event=page-faults");
	if (csw_lookup_bad_modifier(l))
		return csw_error_set(l->err, -ENOENT,
				     "there is no event \"%s\": after %.*s only :u (user) and :k "
				     "(kernel) may follow",
				     l->out->name, (int)strcspn(l->head, ":"), l->head);
	strcpy(wanted, l->head);
	colons = strstr(wanted, "::");
	colon = strchr(colons ? colons + 2 : wanted, ':');
	if (colon)
		*colon = '\0'; /* unit masks: libpfm4 names events without them */
	csw_nearest_init(&nearest, wanted);
	offer_all(&nearest, l->trigger);
	if (!colon) /* a tracepoint without its subsystem; where none can be seen, none is offered
		     */
		csw_sysfs_each_tracepoint(offer_tracepoint, &nearest, NULL);
	if (!nearest.nr)
		return csw_error_set(
			l->err, -ENOENT,
			"there is no %s \"%s\"; names are software events (page-faults), "
			"tracepoints "
			"(sched:sched_switch), pmu/event/, raw rNNN and those of libpfm4; "
			"`csw-sample list events %.40s` shows those that hold it",
			what, l->out->name, l->head);
	return csw_error_set(l->err, -ENOENT, "there is no %s \"%s\"%s", what, l->out->name,
			     csw_nearest_suffix(&nearest, suffix, sizeof(suffix)));
}

/* "; and there is no hardware PMU here: ...", or "" where there is one. */
const char *csw_lookup_lack(const struct csw_lookup *l, char *text, size_t bytes)
{
	char why[256], denial[CSW_TRYOUT_INSTEAD_BYTES];

	text[0] = '\0';
	if (!csw_tryout_pmu())
		snprintf(
			text, bytes, "; and there is no hardware PMU here: %s; %s",
			csw_tryout_no_pmu(why, sizeof(why)),
			csw_tryout_instead(denial, sizeof(denial),
					   l->trigger ? CSW_TRIGGER_INSTEAD : CSW_COUNTER_INSTEAD));
	return text;
}

/* A name of libpfm4's for other CPU models: known, but not countable here. -ENOENT when it is not
 * even that. */
static int refuse_elsewhere(const struct csw_lookup *l)
{
	char pmus[128], here[128], lack[CSW_LOOKUP_LACK_BYTES];

	if (!csw_pfm_elsewhere(l->head, pmus, sizeof(pmus)))
		return -ENOENT;
	if (!csw_pfm_core(here, sizeof(here)))
		csw_pfm_no_core(here, sizeof(here));
	return csw_error_set(l->err, -EOPNOTSUPP,
			     "%s is an event of other CPU models (%s), not of this one (%s)%s",
			     l->head, pmus, here, csw_lookup_lack(l, lack, sizeof(lack)));
}

/* ---- the kinds of names ---- */

static void resolve_generic(const struct csw_lookup *l, const struct generic *g)
{
	char code[64];

	l->out->type = PERF_TYPE_HARDWARE;
	l->out->config = g->config;
	l->out->flags = CSW_EVENT_HARDWARE;
	/* What the kernel made of the generic name on this CPU, where it says so: cache-misses of
	 * AMD Zen are L2 misses. */
	if (csw_sysfs_read(code, sizeof(code), "/sys/bus/event_source/devices/cpu/events/%s",
			   g->sysfs) > 0)
		snprintf(l->out->became, sizeof(l->out->became), "%s cpu/%s/", g->name, code);
	else
		snprintf(l->out->became, sizeof(l->out->became), "%s", g->name);
}

static int resolve_tracepoint(const struct csw_lookup *l, uint64_t id)
{
	bool syscall = !strncmp(l->head, "syscalls:", 9);

	l->out->type = PERF_TYPE_TRACEPOINT;
	l->out->config = id;
	strcpy(l->out->became, l->head);
	if (syscall || !strncmp(l->head, "raw_syscalls:", 13) ||
	    !strcmp(l->head, "exceptions:page_fault_user"))
		l->out->flags |= CSW_EVENT_NEVER_IDLE;
	/* perf_tp_event_match looks at the registers: only syscalls:* hands it the user's */
	if (l->out->exclude_kernel && !syscall)
		return csw_error_set(
			l->err, -EINVAL,
			"%s: the kernel hits this tracepoint in kernel mode, so with :u it would "
			"always count 0; leave :u away",
			l->out->name);
	return 0;
}

static int resolve_pfm(const struct csw_lookup *l)
{
	int ret = csw_pfm_encode(l->head, l->out, l->err);

	if (ret == -ENOENT)
		ret = refuse_elsewhere(l);
	return ret;
}

/* The kernel writes its subsystems in small letters, libpfm4 its events in capitals. */
static bool may_be_subsystem(const char *name)
{
	while (*name && !isupper((unsigned char)*name))
		name++;
	return !*name;
}

/* "a:b" is a tracepoint or an event with a unit mask; where both fail, the likelier of the two
 * speaks. */
static int resolve_colon(const struct csw_lookup *l)
{
	char subsys[CSW_EVENT_NAME_BYTES];
	struct csw_error tracepoint_err;
	size_t nr = strcspn(l->head, ":");
	bool subsys_known;
	uint64_t id;
	int ret, tracepoint_ret;

	memcpy(subsys, l->head, nr);
	subsys[nr] = '\0';
	if (!l->head[nr + 1])
		return csw_error_set(l->err, -ENOENT,
				     "there is no %s \"%s\": behind the colon its name is missing; "
				     "'list events %s' finds names",
				     l->trigger ? "trigger or event" : "event", l->out->name,
				     l->head);
	tracepoint_ret =
		csw_sysfs_tracepoint(subsys, l->head + nr + 1, &id, &subsys_known, &tracepoint_err);
	if (!tracepoint_ret)
		return resolve_tracepoint(l, id);
	/* libpfm4 has the kernel's subsystems too, as events with a mask for each tracepoint: of
	 * one that is mistyped it would name them all. */
	ret = subsys_known && may_be_subsystem(subsys) ? -ENOENT : resolve_pfm(l);
	if (ret != -ENOENT)
		return ret;
	if (tracepoint_ret == -ENOENT ? !subsys_known && !strstr(tracepoint_err.text, "; nearest: ")
				      : !may_be_subsystem(subsys))
		return unknown(l);
	if (l->err)
		*l->err = tracepoint_err;
	return tracepoint_ret;
}

/* cpu/.../ where the kernel registered no such PMU: the name is good, the machine lacks it. */
static int resolve_sysfs(const struct csw_lookup *l)
{
	static const char *const cores[] = { "cpu/", "cpu_core/", "cpu_atom/" };
	int ret = csw_sysfs_event(l->head, strlen(l->head), l->out, l->err);
	char lack[CSW_LOOKUP_LACK_BYTES];

	for (size_t i = 0; ret == -ENOENT && i < NR(cores); i++)
		if (!strncmp(l->head, cores[i], strlen(cores[i])) &&
		    *csw_lookup_lack(l, lack, sizeof(lack)))
			return csw_error_set(l->err, -EOPNOTSUPP, "%s needs a PMU of the cores%s",
					     l->out->name, lack);
	return ret;
}

/* What comes nearest to a last-level miss on this AMD CPU; an answer that helps where libpfm4 does
 * not know it. */
static const char *nearest_llc_amd(void)
{
	static const char *const names[] = { "ANY_DATA_CACHE_FILLS_FROM_SYSTEM",
					     "DATA_CACHE_REFILLS_FROM_SYSTEM",
					     "DATA_CACHE_REFILLS_FROM_NORTHBRIDGE",
					     "DATA_CACHE_REFILLS_FROM_NB" };
	struct csw_event ignored;

	for (size_t i = 0; i < NR(names); i++) {
		memset(&ignored, 0, sizeof(ignored));
		if (csw_pfm_encode(names[i], &ignored, NULL) !=
		    -ENOENT) /* without its unit masks: -EINVAL */
			return names[i];
	}
	return "among those that `csw-sample list events refills` shows";
}

static int refuse_llc_amd(const struct csw_lookup *l)
{
	char lack[CSW_LOOKUP_LACK_BYTES];

	return csw_error_set(
		l->err, -EOPNOTSUPP,
		"LLC_MISSES: the cores of AMD CPUs have no counter of last-level misses (the L3 "
		"has a package-wide "
		"PMU, and generic cache-misses are L2 misses); the nearest real event is %s%s",
		nearest_llc_amd(), csw_lookup_lack(l, lack, sizeof(lack)));
}

/* Last-level misses and nothing else; see the table of CPU models: 0x412e under three names on
 * Intel's. */
static int resolve_llc(const struct csw_lookup *l)
{
	static const struct {
		bool of_model; /* behind the name of the CPU's own PMU */
		const char *name;
	} names[] = {
		{ true, "::LLC_MISSES" },
		{ true, "::LONGEST_LAT_CACHE:MISS" },
		{ false, "ix86arch::LLC_MISSES" },
	};
	char core[64], name[CSW_EVENT_NAME_BYTES], lack[CSW_LOOKUP_LACK_BYTES];
	unsigned nr_core = csw_pfm_core(core, sizeof(core));
	struct csw_cpu cpu;

	csw_tryout_cpu(&cpu);
	if (nr_core ? !strncmp(core, "amd64", 5) : csw_cpu_is_amd(&cpu))
		return refuse_llc_amd(l);
	if (nr_core > 1)
		return csw_error_set(l->err, -EOPNOTSUPP,
				     "LLC_MISSES: this CPU has several kinds of cores (%s), and "
				     "one event cannot span them; name "
				     "one: %.*s::LONGEST_LAT_CACHE:MISS",
				     core, (int)strcspn(core, ","), core);
	for (size_t i = 0; i < NR(names); i++) {
		if (names[i].of_model && !nr_core)
			continue;
		snprintf(name, sizeof(name), "%s%s", names[i].of_model ? core : "", names[i].name);
		if (!csw_pfm_encode(name, l->out, NULL))
			return 0;
	}
	return csw_error_set(
		l->err, -EOPNOTSUPP,
		"LLC_MISSES: libpfm4 knows no core event of last-level misses for this CPU (%s)%s",
		nr_core ? core : "no core PMU known", csw_lookup_lack(l, lack, sizeof(lack)));
}

/* Both happen in the kernel, and what has no user mode shall not be taken for a count of 0. */
static int resolve_current(const struct csw_lookup *l)
{
	if (l->out->exclude_kernel)
		return csw_error_set(l->err, -EINVAL,
				     "%s: the kernel itself stores who runs, so with :u it would "
				     "always count 0; leave :u away",
				     l->out->name);
	return csw_watch_current(l->out, l->err);
}

/* The names of the debug registers: 1 and *ret, or 0 for another name. */
static int resolve_watch(const struct csw_lookup *l, int *ret)
{
	bool loads;
	const char *where = csw_watch_name(l->head, &loads);

	if (!strcmp(l->head, "tid_change"))
		*ret = resolve_current(l);
	else if (!strcmp(l->head, "mem_load") || !strcmp(l->head, "mem_store"))
		*ret = csw_error_set(l->err, -EINVAL,
				     "%s needs a place: %s:WHERE, where WHERE is an address "
				     "(0xffff888012345678), a variable of the kernel or "
				     "PID:0xADDRESS",
				     l->head, l->head);
	else if (where)
		*ret = csw_watch_where(where, loads, l->out, l->err);
	else
		return 0;
	return 1;
}

static int dispatch(const struct csw_lookup *l)
{
	const struct software *sw = find_software(l->head);
	const struct generic *g = find_generic(l->head);
	int ret;

	if (resolve_watch(l, &ret))
		return ret;

	if (sw) {
		l->out->type = PERF_TYPE_SOFTWARE;
		l->out->config = sw->config;
		strcpy(l->out->became, sw->name);
		return 0;
	}
	if (g) {
		resolve_generic(l, g);
		return 0;
	}
	if (strchr(l->head, '/'))
		return resolve_sysfs(l);
	if (is_raw(l->head, &l->out->config)) {
		l->out->type = PERF_TYPE_RAW;
		l->out->flags = CSW_EVENT_HARDWARE;
		snprintf(l->out->became, sizeof(l->out->became), "raw 0x%llx",
			 (unsigned long long)l->out->config);
		return 0;
	}
	if (!strcasecmp(l->head, "LLC_MISSES"))
		return resolve_llc(l);
	if (!l->head[0] || csw_lookup_bad_modifier(l))
		return unknown(l);
	if (strchr(l->head, ':') && !strstr(l->head, "::"))
		return resolve_colon(l);
	ret = resolve_pfm(l);
	return ret == -ENOENT ? unknown(l) : ret;
}

/* ---- what every event needs in the end ---- */

static int finish_software(const struct csw_lookup *l)
{
	const struct csw_event *e = l->out;
	unsigned traits = 0;

	for (size_t i = 0; i < NR(softwares); i++)
		if (softwares[i].config == e->config)
			traits = softwares[i].traits;
	if (traits & SW_NOTHING)
		return csw_error_set(l->err, -EOPNOTSUPP,
				     "%s counts nothing: the kernel has it for other purposes",
				     e->name);
	if ((traits & SW_KERNEL_ONLY) && e->exclude_kernel)
		return csw_error_set(l->err, -EINVAL,
				     "%s: this event happens in the kernel, so with :u it would "
				     "give no count and no sample at "
				     "all; leave :u away",
				     e->name);
	if ((traits & SW_CLOCK) && (e->exclude_kernel || e->exclude_user))
		return csw_error_set(l->err, -EINVAL,
				     "%s: the kernel ignores :u and :k for clocks and counts all "
				     "time; leave them away",
				     e->name);
	if (traits & SW_NEVER_IDLE)
		l->out->flags |= CSW_EVENT_NEVER_IDLE;
	if (traits & SW_CLOCK)
		l->out->flags |= CSW_EVENT_CLOCK | CSW_EVENT_NANOSECONDS;
	return 0;
}

static int finish(const struct csw_lookup *l)
{
	size_t used = strlen(l->out->became);

	if (l->out->type == PERF_TYPE_SOFTWARE) {
		int ret = finish_software(l);

		if (ret)
			return ret;
	}
	if (l->out->exclude_kernel)
		l->out->flags |= CSW_EVENT_NEVER_IDLE; /* the idle task has no user mode */
	snprintf(l->out->became + used, sizeof(l->out->became) - used, "%s", l->suffix);
	return 0;
}

int csw_lookup_resolve(struct csw_lookup *l)
{
	int ret = dispatch(l);

	return ret ? ret : finish(l);
}

/* ---- for lists ---- */

bool csw_lookup_name(size_t i, struct csw_lookup_name *out)
{
	static const struct csw_lookup_name others[] = {
		{ "LLC_MISSES", NULL, "misses of the last-level cache, by the cores' own event",
		  true },
		{ "rNNN", NULL, "a raw code of the CPU's, in hexadecimal, such as r412e", true },
	};

	if (i < NR(softwares)) {
		*out = (struct csw_lookup_name){ softwares[i].name, softwares[i].alias,
						 softwares[i].summary, false };
		return true;
	}
	i -= NR(softwares);
	if (i < NR(generics)) {
		*out = (struct csw_lookup_name){ generics[i].name, generics[i].alias,
						 generics[i].summary, true };
		return true;
	}
	i -= NR(generics);
	if (i < NR(others))
		*out = others[i];
	return i < NR(others);
}
