/*
 * The one table of what can stand for a context switch, and the conditions under which it does.
 *
 * Invariant: a name is answered for every machine, by an event or by the reason why there is none.
 * No entry is a guess: where the number of occurrences is not known, it says so.
 */
#include "engine/triggers.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "engine/kernel.h"
#include "engine/sysfs.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

const struct csw_trigger_name csw_trigger_names[CSW_TRIGGER_IDS] = {
	[CSW_TRIGGER_AUTO] = { "auto", "auto", "the best trigger that works here" },
	[CSW_TRIGGER_SWITCH] = { "switch", "switch", "the kernel's own event of a context switch" },
	[CSW_TRIGGER_SEG_LOAD] = { "seg_load", "seg_load", "loads of a segment register" },
	[CSW_TRIGGER_LDT_LOAD] = { "ldt_load", "ldt_load",
				   "loads of the local descriptor table register" },
	[CSW_TRIGGER_DESC_LOAD] = { "desc_load", "desc_load", "loads of a descriptor table" },
	[CSW_TRIGGER_MEM_LOAD] = { "mem_load", "mem_load:WHERE",
				   "loads and stores at an address or a symbol" },
	[CSW_TRIGGER_MEM_STORE] = { "mem_store", "mem_store:WHERE",
				    "stores to an address or a symbol" },
	[CSW_TRIGGER_PID_CHANGE] = { "pid_change", "pid_change",
				     "changes of the process on a CPU" },
	[CSW_TRIGGER_TID_CHANGE] = { "tid_change", "tid_change", "changes of the thread on a CPU" },
	[CSW_TRIGGER_TLB_FLUSH] = { "tlb_flush", "tlb_flush",
				    "flushes of the address translation" },
};

/* ---- the table ---- */

#define FOR(id) (1u << CSW_TRIGGER_##id)
#define TLB (FOR(TLB_FLUSH) | FOR(PID_CHANGE))
/* clang-format off */
#define IS(n) { 1, (n), (n) }
#define FROM_TO(least, most) { 1, (least), (most) }
#define AT_LEAST(n) { 1, (n), CSW_RATE_OPEN }
#define NOT_KNOWN { 0, 0, 0 }
/* clang-format on */

#define WHY_P6                                                                                     \
	"the entry code of 32-bit kernels loads segment registers too, so that it counts system "  \
	"calls and interrupts rather than switches"
#define WHY_CORE                                                                                   \
	"a 64-bit kernel loads no segment register when it switches, but for at most one on the "  \
	"way to the idle task or a kernel thread"
#define WHY_NO_SEGMENT_INTEL                                                                       \
	"Intel documents no event of segment loads for CPUs after Nehalem, and where there is "    \
	"FSGSBASE the kernel loads none"
#define WHY_NO_SEGMENT_ZEN                                                                         \
	"AMD dropped the event of segment loads with Zen, whose FSGSBASE makes the kernel load "   \
	"none"
#define WHY_NO_DESCRIPTOR                                                                          \
	"no CPU after the Pentium (P5) has an event of descriptor-table loads, and Linux loads "   \
	"the LDT only for the few programs that call modify_ldt"
#define WHY_ZEN5 "erratum 1569 of Zen 5 makes it count wrongly, and Linux removed it for that"
#define WHY_NO_TLB_INTEL                                                                           \
	"Intel documents no event of TLB flushes for this CPU, as for Sapphire Rapids and Alder "  \
	"Lake's P-cores and what came later; Sandy Bridge to Ice Lake have one"
#define WHY_NO_TLB_INTEL_EARLY                                                                     \
	"Intel documents no event of whole TLB flushes for CPUs before Sandy Bridge"
#define WHY_NO_TLB_AMD                                                                             \
	"AMD's cores before Zen 2 have no event of the flushes that a switch makes; "              \
	"GLOBAL_TLB_FLUSHES counts those of global pages"
#define WHY_A53 "erratum 845719 of the Cortex-A53 adds writes of the register: it overcounts"

/*
 * The first entry whose CPU fits answers. Occurrences are those of 64-bit Linux, per switch to
 * another process and to another thread of the same one. They were read from the sources of the
 * kernel and the makers' manuals: where `exact` stands, nothing else can write the register and
 * every switch does; all else is for --sav and for the reader, and no rule relies on it.
 *
 * `auto` takes what is exact and works here, else the software event. It takes no debug register
 * (tid_change on x86): a debug exception costs several times a switch, some 10 us in a virtual
 * machine, for the same answer.
 */
static const struct csw_trigger_entry table[] = {
	/* ---- seg_load ---- */

	/* A thread without a GS base of its own, which is nearly every one, makes the kernel load
	 * GS twice: these cores keep a stale base behind a null selector (load_seg_legacy, Linux
	 * 4.7 and later). Others, and execve, load it once. */
	{ .ids = FOR(SEG_LOAD),
	  .cpus = "amd64_k8_revb amd64_k8_revc amd64_k8_revd amd64_k8_reve amd64_k8_revf "
		  "amd64_k8_revg amd64_fam10h_barcelona amd64_fam10h_shanghai "
		  "amd64_fam10h_istanbul amd64_fam11h_turion amd64_fam12h_llano "
		  "amd64_fam14h_bobcat amd64_fam15h_interlagos amd64_fam16h",
	  .event = "SEGMENT_REGISTER_LOADS:GS",
	  .code = 0x2020,
	  .process = IS(2),
	  .thread = IS(2),
	  .sav = 2,
	  .sample_of = CSW_SAMPLE_OF_OUTGOING,
	  .needs = CSW_NEEDS_NO_FSGSBASE },
	{ .ids = FOR(SEG_LOAD),
	  .cpus = "core",
	  .event = "SEGMENT_REG_LOADS",
	  .code = 0x6,
	  .process = FROM_TO(0, 1),
	  .thread = IS(0),
	  .sav = 1,
	  .sample_of = CSW_SAMPLE_OF_OUTGOING,
	  .why = WHY_CORE },
	{ .ids = FOR(SEG_LOAD),
	  .cpus = "atom",
	  .event = "SEGMENT_REG_LOADS:ANY",
	  .code = 0x8006,
	  .process = FROM_TO(0, 1),
	  .thread = IS(0),
	  .sav = 1,
	  .sample_of = CSW_SAMPLE_OF_OUTGOING,
	  .why = WHY_CORE },
	/* In libpfm4, but not in Intel's own tables. */
	{ .ids = FOR(SEG_LOAD),
	  .cpus = "nhm nhm_ex",
	  .event = "SEGMENT_REG_LOADS",
	  .code = 0x1f8,
	  .process = FROM_TO(0, 1),
	  .thread = IS(0),
	  .sav = 1,
	  .sample_of = CSW_SAMPLE_OF_OUTGOING,
	  .why = WHY_CORE },
	{ .ids = FOR(SEG_LOAD),
	  .cpus = "p6 ppro pii pm",
	  .event = "SEGMENT_REG_LOADS",
	  .code = 0x6,
	  .process = AT_LEAST(1),
	  .thread = AT_LEAST(1),
	  .sav = 1,
	  .why = WHY_P6 },
	{ .ids = FOR(SEG_LOAD),
	  .cpus = "coreduo",
	  .event = "SEG_REG_LOADS",
	  .code = 0x6,
	  .process = AT_LEAST(1),
	  .thread = AT_LEAST(1),
	  .sav = 1,
	  .why = WHY_P6 },
	{ .ids = FOR(SEG_LOAD),
	  .cpus = "amd64_fam17h amd64_fam17h_zen1 amd64_fam17h_zen2 amd64_fam19h_zen3 "
		  "amd64_fam19h_zen4 amd64_fam1ah_zen5 AuthenticAMD/23 AuthenticAMD/25 "
		  "AuthenticAMD/26 HygonGenuine/24",
	  .why = WHY_NO_SEGMENT_ZEN },
	{ .ids = FOR(SEG_LOAD),
	  .cpus = "wsm wsm_dp snb snb_ep ivb ivb_ep hsw hsw_ep bdw bdw_ep skl skx clx icl icx spr "
		  "emr gnr adl_glc adl_grt slm glm tmt knl knm GenuineIntel/6",
	  .why = WHY_NO_SEGMENT_INTEL },
	{ .ids = FOR(SEG_LOAD),
	  .cpus = "*",
	  .why = "no event of segment loads is known for this CPU" },

	/* ---- descriptor tables ---- */

	{ .ids = FOR(LDT_LOAD) | FOR(DESC_LOAD),
	  .cpus = "GenuineIntel/5",
	  .why = "the Pentium's event 0x0f counts loads of all segment and descriptor-table "
		 "registers, but Linux has no PMU driver for it" },
	{ .ids = FOR(LDT_LOAD) | FOR(DESC_LOAD), .cpus = "*", .why = WHY_NO_DESCRIPTOR },

	/* ---- tlb_flush, and pid_change by it ---- */

	/* A switch between threads of one process keeps the page tables. With PCID a write of CR3
	 * need not flush, munmap and shootdowns flush without a switch: not exact. */
	{ .ids = TLB,
	  .cpus = "snb snb_ep ivb ivb_ep hsw hsw_ep bdw bdw_ep skl skx clx icl icx",
	  .event = "TLB_FLUSH:STLB_ANY",
	  .code = 0x20bd,
	  .process = AT_LEAST(1),
	  .thread = IS(0),
	  .sav = 1,
	  .sample_of = CSW_SAMPLE_OF_OUTGOING,
	  .needs = CSW_NEEDS_PCID },
	/* Zen 2; its umask must have all bits, with none it counts nothing. */
	{ .ids = TLB,
	  .cpus = "amd64_fam17h_zen2",
	  .event = "TLB_FLUSHES:ALL",
	  .code = 0xff78,
	  .process = AT_LEAST(1),
	  .thread = IS(0),
	  .sav = 1,
	  .sample_of = CSW_SAMPLE_OF_OUTGOING },
	/* These flush on need: how often is not known. */
	{ .ids = TLB,
	  .cpus = "amd64_fam19h_zen3 amd64_fam19h_zen4",
	  .event = "TLB_FLUSHES:ALL",
	  .code = 0xff78,
	  .process = NOT_KNOWN,
	  .thread = IS(0),
	  .sav = 1,
	  .sample_of = CSW_SAMPLE_OF_OUTGOING },
	{ .ids = TLB,
	  .cpus = "amd64_fam1ah_zen5 AuthenticAMD/26",
	  .event = "TLB_FLUSHES:ALL",
	  .code = 0xff78,
	  .process = NOT_KNOWN,
	  .thread = NOT_KNOWN,
	  .sav = 1,
	  .why = WHY_ZEN5 },
	/* Goldmont Plus: libpfm4 does not know TLB_FLUSHES.STLB_ANY of it. */
	{ .ids = TLB,
	  .cpus = "GenuineIntel/6/0x7a",
	  .event = "r20bd",
	  .code = 0x20bd,
	  .process = AT_LEAST(1),
	  .thread = IS(0),
	  .sav = 1,
	  .sample_of = CSW_SAMPLE_OF_OUTGOING,
	  .needs = CSW_NEEDS_PCID },
	/* Skymont, the E-cores of Lunar Lake and Arrow Lake: the same, of their PMU and on their
	 * CPUs (-C) alone, as the P-cores beside them have none. */
	{ .ids = TLB,
	  .cpus = "GenuineIntel/6/0xbd GenuineIntel/6/0xb5 GenuineIntel/6/0xc5 "
		  "GenuineIntel/6/0xc6",
	  .event = "cpu_atom/event=0xbd,umask=0x20/",
	  .code = 0x20bd,
	  .process = AT_LEAST(1),
	  .thread = IS(0),
	  .sav = 1,
	  .sample_of = CSW_SAMPLE_OF_OUTGOING,
	  .needs = CSW_NEEDS_PCID },
	{ .ids = TLB,
	  .cpus = "core atom nhm nhm_ex wsm wsm_dp p6 ppro pii pm coreduo",
	  .why = WHY_NO_TLB_INTEL_EARLY },
	{ .ids = TLB,
	  .cpus = "amd64_k7 amd64_k8_revb amd64_k8_revc amd64_k8_revd amd64_k8_reve amd64_k8_revf "
		  "amd64_k8_revg amd64_fam10h_barcelona amd64_fam10h_shanghai "
		  "amd64_fam10h_istanbul amd64_fam11h_turion amd64_fam12h_llano "
		  "amd64_fam14h_bobcat amd64_fam15h_interlagos amd64_fam16h amd64_fam17h "
		  "amd64_fam17h_zen1",
	  .why = WHY_NO_TLB_AMD },
	{ .ids = TLB,
	  .cpus = "spr emr gnr adl_glc adl_grt slm glm tmt knl knm GenuineIntel/6",
	  .why = WHY_NO_TLB_INTEL },
	{ .ids = FOR(TLB_FLUSH),
	  .cpus = "*",
	  .why = "no event of TLB flushes is known for this CPU" },

	/* ---- arm64: the registers that name the process and the thread ---- */

	/* Two writes of the page tables' register, or three with a rollover of ASIDs. */
	{ .ids = FOR(PID_CHANGE),
	  .cpus = "arm_ac15 arm_ac57 arm_n1 arm_n2 arm_v1 arm_v2 arm_kunpeng arm_thunderx2 "
		  "arm_xgene",
	  .event = "TTBR_WRITE_RETIRED",
	  .code = 0x1c,
	  .process = FROM_TO(2, 3),
	  .thread = IS(0),
	  .sav = 2,
	  .sample_of = CSW_SAMPLE_OF_INCOMING,
	  .needs = CSW_NEEDS_CALM_TTBR | CSW_NEEDS_LISTED },
	{ .ids = FOR(PID_CHANGE),
	  .cpus = "has:ttbr_write_retired",
	  .event = "ttbr_write_retired",
	  .code = 0x1c,
	  .process = FROM_TO(2, 3),
	  .thread = IS(0),
	  .sav = 2,
	  .sample_of = CSW_SAMPLE_OF_INCOMING,
	  .needs = CSW_NEEDS_CALM_TTBR },
	{ .ids = FOR(PID_CHANGE),
	  .cpus = "*",
	  .why = "no event that comes with a change of the process is known for this CPU" },
	{ .ids = FOR(TID_CHANGE),
	  .cpus = "arm_ac53",
	  .event = "CID_WRITE_RETIRED",
	  .code = 0xb,
	  .process = AT_LEAST(1),
	  .thread = AT_LEAST(1),
	  .sav = 1,
	  .sample_of = CSW_SAMPLE_OF_INCOMING,
	  .needs = CSW_NEEDS_CONTEXTIDR,
	  .why = WHY_A53 },
	/* The same core where libpfm4 does not know it: by its part number. */
	{ .ids = FOR(TID_CHANGE),
	  .cpus = "ARM/8/0xd03",
	  .event = "r0b",
	  .code = 0xb,
	  .process = AT_LEAST(1),
	  .thread = AT_LEAST(1),
	  .sav = 1,
	  .sample_of = CSW_SAMPLE_OF_INCOMING,
	  .needs = CSW_NEEDS_CONTEXTIDR,
	  .why = WHY_A53 },
	/* contextidr_thread_switch writes it in every switch, and nothing else does. */
	{ .ids = FOR(TID_CHANGE),
	  .cpus = "arm_ac7 arm_ac15 arm_ac57 arm_n1 arm_n2 arm_v1 arm_v2 arm_kunpeng "
		  "arm_thunderx2 arm_xgene arm_a64fx",
	  .event = "CID_WRITE_RETIRED",
	  .code = 0xb,
	  .process = IS(1),
	  .thread = IS(1),
	  .sav = 1,
	  .sample_of = CSW_SAMPLE_OF_INCOMING,
	  .needs = CSW_NEEDS_CONTEXTIDR | CSW_NEEDS_LISTED,
	  .exact = true },
	{ .ids = FOR(TID_CHANGE),
	  .cpus = "has:cid_write_retired",
	  .event = "cid_write_retired",
	  .code = 0xb,
	  .process = IS(1),
	  .thread = IS(1),
	  .sav = 1,
	  .sample_of = CSW_SAMPLE_OF_INCOMING,
	  .needs = CSW_NEEDS_CONTEXTIDR,
	  .exact = true },
};

const struct csw_trigger_entry *csw_trigger_entry_at(size_t i)
{
	return i < NR(table) ? &table[i] : NULL;
}

/* ---- whose CPU is it ---- */

uint32_t csw_trigger_id(const char *text)
{
	size_t nr = strcspn(text, ":");
	uint32_t id = 0;

	while (id < CSW_TRIGGER_IDS && (strlen(csw_trigger_names[id].name) != nr ||
					strncmp(csw_trigger_names[id].name, text, nr)))
		id++;
	return id;
}

/* Is the word one of those in the list, which has spaces, or ", " between them? */
static bool has_word(const char *list, const char *word, size_t nr)
{
	for (const char *at = list; *at; at += strspn(at, ", ")) {
		size_t length = strcspn(at, ", ");

		if (length == nr && !strncmp(at, word, nr))
			return true;
		at += length;
	}
	return false;
}

/* "VENDOR/FAMILY/MODEL" or "VENDOR/FAMILY" */
static bool is_cpu(const char *word, const struct csw_cpu *cpu)
{
	char vendor[32];
	int family = -1, model = -1;
	int nr = sscanf(word, "%31[^/ ]/%i/%i", vendor, &family, &model);

	return nr >= 2 && !strcmp(vendor, cpu->vendor) && family == cpu->family &&
	       (nr == 2 || model == cpu->model);
}

struct found_event {
	const char *name;
	size_t nr;
	char written[CSW_EVENT_NAME_BYTES];
};

static int match_event(void *ctx, const char *pmu, const char *event, const char *terms)
{
	struct found_event *f = ctx;

	(void)terms;
	if (strlen(event) != f->nr || strncmp(event, f->name, f->nr))
		return 0;
	snprintf(f->written, sizeof(f->written), "%.60s/%.60s/", pmu, event);
	return 1;
}

/* The event of this name that a PMU of the kernel's has: "pmu/event/". */
static bool find_event(const char *name, size_t nr, char *written, size_t bytes)
{
	struct found_event f = { .name = name, .nr = nr };

	if (csw_sysfs_each_pmu_event(match_event, &f) != 1)
		return false;
	snprintf(written, bytes, "%s", f.written);
	return true;
}

static bool fits_word(const char *word, size_t nr, const struct csw_trigger_machine *m)
{
	char written[CSW_EVENT_NAME_BYTES];

	if (nr == 1 && *word == '*')
		return true;
	if (nr > 4 && !strncmp(word, "has:", 4))
		return find_event(word + 4, nr - 4, written, sizeof(written));
	if (memchr(word, '/', nr))
		return is_cpu(word, &m->cpu);
	return has_word(m->cores, word, nr);
}

static bool fits(const struct csw_trigger_entry *e, const struct csw_trigger_machine *m)
{
	for (const char *word = e->cpus; *word; word += strspn(word, " ")) {
		size_t nr = strcspn(word, " ");

		if (fits_word(word, nr, m))
			return true;
		word += nr;
	}
	return false;
}

const struct csw_trigger_entry *csw_trigger_find(uint32_t id, const struct csw_trigger_machine *m)
{
	for (size_t i = 0; i < NR(table); i++)
		if (table[i].ids & (1u << id) && fits(&table[i], m))
			return &table[i];
	return NULL;
}

const struct csw_trigger_entry *csw_trigger_find_code(uint64_t code,
						      const struct csw_trigger_machine *m)
{
	for (size_t i = 0; i < NR(table); i++)
		if (table[i].event && table[i].code == code && fits(&table[i], m))
			return &table[i];
	return NULL;
}

/* The word among the entry's CPUs that is a model of libpfm4's here; how long it is. */
static size_t model_of(const struct csw_trigger_entry *e, const struct csw_trigger_machine *m,
		       const char **model)
{
	size_t nr;

	for (*model = e->cpus; **model; *model += nr + strspn(*model + nr, " ")) {
		nr = strcspn(*model, " ");
		if (has_word(m->cores, *model, nr))
			return nr;
	}
	return 0;
}

void csw_trigger_event_name(const struct csw_trigger_entry *e, const struct csw_trigger_machine *m,
			    char *out, size_t bytes)
{
	const char *model;
	size_t nr = model_of(e, m, &model);

	if (nr)
		snprintf(out, bytes, "%.*s::%s", (int)nr, model, e->event);
	else if (strchr(e->event, '/'))
		snprintf(out, bytes, "%s", e->event);
	else if (strncmp(e->cpus, "has:", 4) || !find_event(e->event, strlen(e->event), out, bytes))
		snprintf(out, bytes, "r%llx", (unsigned long long)e->code);
}

/* ---- what it needs ---- */

static bool lacks_pcid(char *why, size_t bytes)
{
	if (!csw_cpu_has_flag("pti") || csw_cpu_has_flag("pcid"))
		return false;
	snprintf(why, bytes,
		 "the kernel isolates its page tables (KPTI) and this CPU has no PCID: every "
		 "system call and interrupt flushes, too");
	return true;
}

/* As /proc/cpuinfo has it, not CPUID: the kernel takes the flag away where it does not use it. */
static bool uses_fsgsbase(char *why, size_t bytes)
{
	if (!csw_cpu_has_flag("fsgsbase") || !csw_kernel_at_least(5, 9))
		return false;
	snprintf(why, bytes,
		 "this CPU has FSGSBASE, which Linux uses since 5.9: it switches FS and GS without "
		 "loading a segment register (boot with nofsgsbase to have the loads again)");
	return true;
}

static bool lacks_contextidr(char *why, size_t bytes)
{
	int set = csw_kernel_config("CONFIG_PID_IN_CONTEXTIDR");

	if (set > 0)
		return false;
	snprintf(why, bytes, "%s",
		 set ? "neither /proc/config.gz nor /boot/config-* says whether this kernel was "
		       "built with CONFIG_PID_IN_CONTEXTIDR, without which nothing writes that "
		       "register"
		     : "this kernel was built without CONFIG_PID_IN_CONTEXTIDR, so nothing writes "
		       "that register");
	return true;
}

/* "atomics" (LSE) came with ARMv8.1, as did PAN in hardware, where the kernel needs no other. */
static bool writes_ttbr_often(char *why, size_t bytes)
{
	char meltdown[128];

	if (csw_sysfs_read(meltdown, sizeof(meltdown),
			   "/sys/devices/system/cpu/vulnerabilities/meltdown") > 0 &&
	    strstr(meltdown, "PTI"))
		snprintf(why, bytes,
			 "the kernel isolates its page tables (KPTI), so every system call and "
			 "interrupt writes that register, too");
	else if (csw_kernel_config("CONFIG_ARM64_SW_TTBR0_PAN") > 0 && !csw_cpu_has_flag("atomics"))
		snprintf(why, bytes,
			 "this kernel writes that register for every access to user memory "
			 "(CONFIG_ARM64_SW_TTBR0_PAN on a CPU without PAN)");
	else
		return false;
	return true;
}

/* The kernel lists what the CPU says to have (PMCEID), under libpfm4's names in small letters, and
 * opens a code that it does not have all the same; then nothing would ever be counted. */
static bool is_unlisted(const struct csw_trigger_entry *e, char *why, size_t bytes)
{
	char name[CSW_EVENT_NAME_BYTES], written[CSW_EVENT_NAME_BYTES];
	size_t nr = 0;

	for (; e->event[nr] && nr < sizeof(name); nr++)
		name[nr] = (char)tolower((unsigned char)e->event[nr]);
	if (find_event(name, nr, written, sizeof(written)))
		return false;
	snprintf(why, bytes,
		 "the kernel does not list it among the events of this CPU, so the CPU does not "
		 "have it");
	return true;
}

bool csw_trigger_unmet(const struct csw_trigger_entry *e, char *why, size_t bytes)
{
	return (e->needs & CSW_NEEDS_NO_FSGSBASE && uses_fsgsbase(why, bytes)) ||
	       (e->needs & CSW_NEEDS_PCID && lacks_pcid(why, bytes)) ||
	       (e->needs & CSW_NEEDS_CONTEXTIDR && lacks_contextidr(why, bytes)) ||
	       (e->needs & CSW_NEEDS_LISTED && is_unlisted(e, why, bytes)) ||
	       (e->needs & CSW_NEEDS_CALM_TTBR && writes_ttbr_often(why, bytes));
}

const char *csw_rate_text(const struct csw_rate *rate, char *text, size_t bytes)
{
	if (!rate->known)
		snprintf(text, bytes, "an unknown number");
	else if (rate->max == CSW_RATE_OPEN)
		snprintf(text, bytes, "%u or more", rate->min);
	else if (rate->min != rate->max)
		snprintf(text, bytes, "%u to %u", rate->min, rate->max);
	else
		snprintf(text, bytes, "%u", rate->min);
	return text;
}
