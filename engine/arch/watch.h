/* What an architecture's debug registers can watch, and where its kernel stores who runs. */
#ifndef CSW_ENGINE_ARCH_WATCH_H
#define CSW_ENGINE_ARCH_WATCH_H

#include <stdint.h>

/* Per-CPU variables of which one points to the current task and is stored to once in each context
 * switch; kernels differ in the name. Ends with NULL. */
extern const char *const csw_arch_current_task[];

/* HW_BREAKPOINT_* of the watch that sees loads, as narrow as there is; 0: nothing can be watched.
 */
extern const uint32_t csw_arch_watch_loads;

/* Per-CPU variables that the kernel's handling of a watchpoint itself accesses: their samples would
 * be taken in the middle of one another. Ends with NULL. */
extern const char *const csw_arch_unwatchable[];

#endif
