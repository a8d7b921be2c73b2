/*
 * The CPU by CPUID, as libcpuid reads it: the only file that includes libcpuid's header.
 *
 * Invariant: what CPUID cannot tell (a machine that hides it) comes from /proc/cpuinfo, never from
 * a guess.
 */
#include "engine/cpu.h"

#include <libcpuid/libcpuid.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char *hypervisor_name(hypervisor_vendor_t vendor)
{
	switch (vendor) {
	case HYPERVISOR_NONE:
		return "";
	case HYPERVISOR_BHYVE:
		return "bhyve";
	case HYPERVISOR_HYPERV:
		return "Hyper-V";
	case HYPERVISOR_KVM:
		return "KVM";
	case HYPERVISOR_PARALLELS:
		return "Parallels";
	case HYPERVISOR_QEMU:
		return "QEMU";
	case HYPERVISOR_VIRTUALBOX:
		return "VirtualBox";
	case HYPERVISOR_VMWARE:
		return "VMware";
	case HYPERVISOR_XEN:
		return "Xen";
	default:
		return "unknown";
	}
}

static void stay_silent(const char *text)
{
	(void)text;
}

/* libcpuid writes to stderr by default: a library has no business there. */
static void silence(void)
{
	cpuid_set_warn_function(stay_silent);
}

/* Vendor and brand come padded with spaces on both sides. */
static void copy_trimmed(char *out, size_t bytes, const char *in)
{
	size_t nr;

	in += strspn(in, " ");
	nr = strlen(in);
	while (nr && in[nr - 1] == ' ')
		nr--;
	snprintf(out, bytes, "%.*s", (int)nr, in);
}

/* x86_perf_event_set_period: some CPUs dislike it when one event is left, so at least two are. */
#define MIN_PERIOD 2

static int identify_by_text(struct csw_cpu *out)
{
	int ret = csw_cpu_identify_generic(out);

	out->min_period = MIN_PERIOD;
	return ret;
}

int csw_cpu_identify(struct csw_cpu *out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct cpu_raw_data_t raw;
	struct cpu_id_t id;

	pthread_once(&once, silence);
	if (!cpuid_present() || cpuid_get_raw_data(&raw) || cpu_identify(&raw, &id))
		return identify_by_text(out);
	memset(out, 0, sizeof(*out));
	copy_trimmed(out->vendor, sizeof(out->vendor), id.vendor_str);
	copy_trimmed(out->brand, sizeof(out->brand), id.brand_str);
	out->family = id.ext_family;
	out->model = id.ext_model;
	out->stepping = id.stepping;
	out->min_period = MIN_PERIOD;
	strcpy(out->hypervisor, hypervisor_name(cpuid_get_hypervisor(&raw, &id)));
	return 0;
}
