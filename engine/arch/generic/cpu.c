/* Processors that have no folder of their own: what /proc/cpuinfo says under the usual names. */
#include "engine/cpu.h"

int csw_cpu_identify(struct csw_cpu *out)
{
	return csw_cpu_identify_generic(out);
}
