/*
 * The CPU by the kernel's own words: /proc/cpuinfo, whose lines differ by architecture, and what
 * sysfs says of hypervisors. What an architecture calls its lines is told by its own folder.
 *
 * Invariant: a line that is missing or no number leaves its field "not known" ("" or -1).
 */
#include "engine/arch/cpuinfo.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/sysfs.h"

/* The first CPUs' lines are enough, and the file grows with the number of CPUs. */
#define CPUINFO_BYTES 16384

/* The value of the first line "key : value", trimmed, into out; false when there is no such line.
 */
static bool cpuinfo_get(const char *text, const char *key, char *out, size_t bytes)
{
	size_t nr_key = strlen(key);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		const char *value;
		size_t nr;

		line += *line == '\n';
		if (strncmp(line, key, nr_key))
			continue;
		value = line + nr_key + strspn(line + nr_key, " \t");
		if (*value != ':')
			continue; /* a longer key that begins alike */
		value++;
		value += strspn(value, " \t");
		nr = strcspn(value, "\n");
		while (nr && isspace((unsigned char)value[nr - 1]))
			nr--;
		if (nr >= bytes)
			nr = bytes - 1;
		memcpy(out, value, nr);
		out[nr] = '\0';
		return true;
	}
	return false;
}

/* The first of the keys (NULL ends them) that there is. */
static void get_text(const char *text, const char *const *keys, char *out, size_t bytes)
{
	out[0] = '\0';
	while (*keys && !cpuinfo_get(text, *keys, out, bytes))
		keys++;
}

int32_t csw_cpuinfo_number(const char *value)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(value, &end, 0);
	if (end == value || errno || number < 0 || number > INT32_MAX)
		return -1;
	return (int32_t)number;
}

static int32_t get_number(const char *text, const char *const *keys)
{
	char value[64];

	get_text(text, keys, value, sizeof(value));
	return csw_cpuinfo_number(value);
}

static void find_hypervisor(const char *cpuinfo, struct csw_cpu *out)
{
	char text[256], flags[4096];

	if (csw_sysfs_read(text, sizeof(text), "/sys/hypervisor/type") > 0) {
		snprintf(out->hypervisor, sizeof(out->hypervisor), "%.31s", text);
		return;
	}
	/* KVM's and Xen's guests with a device tree: "linux,kvm" */
	if (csw_sysfs_read(text, sizeof(text), "/proc/device-tree/hypervisor/compatible") > 0) {
		snprintf(out->hypervisor, sizeof(out->hypervisor), "%s",
			 strstr(text, "kvm")   ? "KVM"
			 : strstr(text, "xen") ? "Xen"
					       : "unknown");
		return;
	}
	if (csw_sysfs_read(text, sizeof(text), "/sys/class/dmi/id/sys_vendor") > 0 &&
	    !strcmp(text, "QEMU")) {
		strcpy(out->hypervisor, "QEMU");
		return;
	}
	if (cpuinfo_get(cpuinfo, "flags", flags, sizeof(flags)) && strstr(flags, " hypervisor"))
		strcpy(out->hypervisor, "unknown"); /* x86 says that there is one, not which */
}

int csw_cpuinfo_identify(const struct csw_cpuinfo_keys *keys, struct csw_cpu *out)
{
	char *text = malloc(CPUINFO_BYTES);
	int nr;

	memset(out, 0, sizeof(*out));
	out->family = out->model = out->stepping = -1;
	out->min_period = 1;
	if (!text)
		return -ENOMEM;
	nr = csw_sysfs_read(text, CPUINFO_BYTES, "/proc/cpuinfo");
	if (nr < 0 && nr != -EFBIG) { /* too long: what fits is there */
		free(text);
		return nr;
	}
	get_text(text, keys->vendor, out->vendor, sizeof(out->vendor));
	get_text(text, keys->brand, out->brand, sizeof(out->brand));
	out->family = get_number(text, keys->family);
	out->model = get_number(text, keys->model);
	out->stepping = get_number(text, keys->stepping);
	find_hypervisor(text, out);
	free(text);
	return 0;
}

bool csw_cpu_has_flag(const char *flag)
{
	static const char *const keys[] = { "flags", "Features", NULL };
	char *text = malloc(CPUINFO_BYTES), flags[4096];
	size_t nr = strlen(flag);
	int ret = text ? csw_sysfs_read(text, CPUINFO_BYTES, "/proc/cpuinfo") : -ENOMEM;
	bool found = false;

	if (ret > 0 || ret == -EFBIG) {
		get_text(text, keys, flags, sizeof(flags));
		for (const char *at = flags; !found && *at; at += strspn(at, " ")) {
			size_t length = strcspn(at, " ");

			found = length == nr && !strncmp(at, flag, nr);
			at += length;
		}
	}
	free(text);
	return found;
}

int csw_cpu_identify_generic(struct csw_cpu *out)
{
	static const struct csw_cpuinfo_keys keys = {
		.vendor = { "vendor_id" },
		.brand = { "model name", "cpu", "Processor", "cpu model" },
		.family = { "cpu family" },
		.model = { "model" },
		.stepping = { "stepping" },
	};

	return csw_cpuinfo_identify(&keys, out);
}

bool csw_cpu_is_amd(const struct csw_cpu *cpu)
{
	return !strcmp(cpu->vendor, "AuthenticAMD") || !strcmp(cpu->vendor, "HygonGenuine");
}
