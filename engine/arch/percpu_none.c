/* Architectures whose per-CPU variables nobody here asks for, as nothing can watch them: see
 * engine/percpu.h. */
#include "engine/percpu.h"

#include <errno.h>

#include "engine/error.h"

static int refuse(struct csw_error *err)
{
	return csw_error_set(err, -EOPNOTSUPP,
			     "the kernel's variables are not looked for on this architecture: it "
			     "has no debug registers that are known here");
}

int csw_percpu_find(const char *name, struct csw_percpu_variable *out, struct csw_error *err)
{
	(void)name;
	(void)out;
	return refuse(err);
}

int csw_percpu_global(const char *name, uint64_t *address, uint64_t *bytes)
{
	(void)name;
	(void)address;
	(void)bytes;
	return -ENOENT;
}

int csw_percpu_address(uint64_t offset, unsigned cpu, uint64_t *address, struct csw_error *err)
{
	(void)offset;
	(void)cpu;
	(void)address;
	return refuse(err);
}

int csw_percpu_allowed(struct csw_error *err)
{
	(void)err;
	return 0;
}

void csw_percpu_set_ops_for_tests(const struct csw_percpu_ops *ops)
{
	(void)ops;
}
