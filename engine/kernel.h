/* What the running kernel is: its version and how it was built. */
#ifndef CSW_ENGINE_KERNEL_H
#define CSW_ENGINE_KERNEL_H

#include <stdbool.h>

/* Only for what can be tried in no other way. false also where the version cannot be read. */
bool csw_kernel_at_least(unsigned major, unsigned minor);

/* "CONFIG_...": 1: built in, 0: not (a module counts as not), -ENODATA: no file tells. */
int csw_kernel_config(const char *option);

#endif
