/* /proc/cpuinfo for the architectures' own folders: which of its lines tells what. */
#ifndef CSW_ENGINE_ARCH_CPUINFO_H
#define CSW_ENGINE_ARCH_CPUINFO_H

#include "engine/cpu.h"

#define CSW_CPUINFO_KEYS 5 /* the last one of each field is NULL */

/* The names of lines, the likelier first; the first one that is there tells. */
struct csw_cpuinfo_keys {
	const char *vendor[CSW_CPUINFO_KEYS];
	const char *brand[CSW_CPUINFO_KEYS];
	const char *family[CSW_CPUINFO_KEYS];
	const char *model[CSW_CPUINFO_KEYS];
	const char *stepping[CSW_CPUINFO_KEYS];
};

/* 0 or -errno; min_period is 1, as of a kernel that takes every sample_period as it is. */
int csw_cpuinfo_identify(const struct csw_cpuinfo_keys *keys, struct csw_cpu *out);

/* A line's value, decimal or 0x...; -1 where it is none, or wider than 31 bits. */
int32_t csw_cpuinfo_number(const char *value);

#endif
