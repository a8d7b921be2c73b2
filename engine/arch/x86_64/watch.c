/*
 * x86: __switch_to stores the next task into the per-CPU current_task, which was the first field of
 * pcpu_hot from Linux 6.2 to 6.13. DR7 knows writes, and accesses of either kind, but no loads
 * alone.
 */
#include "engine/arch/watch.h"

#include <linux/hw_breakpoint.h>
#include <stddef.h>

const char *const csw_arch_current_task[] = { "current_task", "pcpu_hot", NULL };
const uint32_t csw_arch_watch_loads = HW_BREAKPOINT_RW;
const char *const csw_arch_unwatchable[] = { "__preempt_count",   "__stack_chk_guard",
					     "fixed_percpu_data", "this_cpu_off",
					     "bp_per_reg",        NULL };
