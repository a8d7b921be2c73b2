/* arm64: __switch_to stores the next task into the per-CPU __entry_task, where the kernel finds it
 * after an exception from user mode. Watchpoints tell loads from stores. */
#include "engine/arch/watch.h"

#include <linux/hw_breakpoint.h>
#include <stddef.h>

const char *const csw_arch_current_task[] = { "__entry_task", NULL };
const uint32_t csw_arch_watch_loads = HW_BREAKPOINT_R;
const char *const csw_arch_unwatchable[] = { NULL };
