/* Which CPU this is, and which hypervisor stands between it and us: for messages, and for what
 * depends on the vendor. */
#ifndef CSW_ENGINE_CPU_H
#define CSW_ENGINE_CPU_H

#include <stdbool.h>
#include <stdint.h>

struct csw_cpu {
	char vendor[32];     /* "GenuineIntel", "AuthenticAMD", "ARM", ...; "" when nothing tells */
	char brand[96];      /* "AMD EPYC 9654", "POWER9 ..."; "" when nothing tells */
	int32_t family;      /* x86: with the extended parts added in, as in /proc/cpuinfo; -1 when
				nothing tells */
	int32_t model;       /* x86: the same; arm64: the part number */
	int32_t stepping;    /* arm64: the revision */
	uint32_t min_period; /* the kernel raises a smaller sample_period of a hardware event to
				this */
	char hypervisor[32]; /* "KVM", "Xen", ..., "unknown"; "" when there is none, or it hides */
};

/* 0, or -errno: then nothing is known, and *out says so. The caller's CPU; the others are taken to
 * be alike. */
int csw_cpu_identify(struct csw_cpu *out);

/* The same from /proc/cpuinfo and sysfs alone, under the names of lines that most architectures
 * use; the x86 one falls back to it. */
int csw_cpu_identify_generic(struct csw_cpu *out);

/* Whether /proc/cpuinfo has this word among the first CPU's "flags" (arm64: "Features"). Not CPUID:
 * the kernel leaves out what it does not use, and adds what it does ("pti"). */
bool csw_cpu_has_flag(const char *flag);

bool csw_cpu_is_amd(const struct csw_cpu *cpu); /* AMD's and Hygon's cores */

#endif
