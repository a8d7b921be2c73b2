/*
 * arm64: /proc/cpuinfo shows the fields of MIDR_EL1 as numbers; libpfm4 finds its PMU model by the
 * same ones.
 */
#include "engine/arch/cpuinfo.h"

#include <stddef.h>
#include <stdio.h>

/* MIDR_EL1.Implementer: the codes that Arm Ltd. has assigned. */
static const char *implementer_name(int32_t code)
{
	static const struct {
		int32_t code;
		const char *name;
	} names[] = {
		{ 0x41, "ARM" },       { 0x42, "Broadcom" },  { 0x43, "Cavium" },
		{ 0x46, "Fujitsu" },   { 0x48, "HiSilicon" }, { 0x4e, "NVIDIA" },
		{ 0x50, "APM" },       { 0x51, "Qualcomm" },  { 0x61, "Apple" },
		{ 0x6d, "Microsoft" }, { 0xc0, "Ampere" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].code == code)
			return names[i].name;
	return "";
}

int csw_cpu_identify(struct csw_cpu *out)
{
	static const struct csw_cpuinfo_keys keys = {
		.vendor = { "CPU implementer" },
		.brand = { "model name" }, /* firmware by ACPI may name it */
		.family = { "CPU architecture" },
		.model = { "CPU part" },
		.stepping = { "CPU revision" },
	};
	int ret = csw_cpuinfo_identify(&keys, out);

	snprintf(out->vendor, sizeof(out->vendor), "%s",
		 implementer_name(csw_cpuinfo_number(out->vendor)));
	return ret;
}
