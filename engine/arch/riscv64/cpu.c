/*
 * riscv64: a CPU is named by the machine identifiers (mvendorid is the maker's JEDEC code, marchid
 * and mimpid are the maker's own), and where the device tree names it, by its microarchitecture.
 * The maker stays a code: there are too many to list, and nothing depends on it.
 */
#include "engine/arch/cpuinfo.h"

int csw_cpu_identify(struct csw_cpu *out)
{
	static const struct csw_cpuinfo_keys keys = {
		.vendor = { "mvendorid" },
		.brand = { "uarch", "isa" },
		.model = { "marchid" },
		.stepping = { "mimpid" },
	};

	return csw_cpuinfo_identify(&keys, out);
}
