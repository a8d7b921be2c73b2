/* Nothing known to be watched here: the kernel offers perf no watchpoints of this architecture, or
 * none that is known here. */
#include "engine/arch/watch.h"

#include <stddef.h>

const char *const csw_arch_current_task[] = { NULL };
const uint32_t csw_arch_watch_loads;
const char *const csw_arch_unwatchable[] = { NULL };
