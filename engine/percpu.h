/*
 * Where the kernel keeps a per-CPU variable of its own: its address on each CPU.
 *
 * A variable's place within the per-CPU area comes from the kernel's BTF, or from /proc/kallsyms
 * where that shows data. Where each CPU's area lies no file says: a BPF program sees a pointer into
 * it. So this needs CAP_BPF and CAP_PERFMON, and a kernel with BTF. arch/percpu_bpf.c is built for
 * architectures with debug registers that are known here, arch/percpu_none.c for the others.
 */
#ifndef CSW_ENGINE_PERCPU_H
#define CSW_ENGINE_PERCPU_H

#include <stddef.h>
#include <stdint.h>

#include "csw/csw.h"

/* A per-CPU variable; offset: from the variable that csw_percpu_address counts from, may be
 * "negative". */
struct csw_percpu_variable {
	uint64_t offset;
	uint64_t bytes; /* its size; 0: not known */
};

/* -ENOENT: the kernel has no such per-CPU variable; -EOPNOTSUPP: nothing here tells, and why. */
int csw_percpu_find(const char *name, struct csw_percpu_variable *out, struct csw_error *err);

/* Of a variable that is there once: its address, and its size where that is known. -ENOENT: no such
 * symbol, or /proc/kallsyms shows no addresses. */
int csw_percpu_global(const char *name, uint64_t *address, uint64_t *bytes);

/* The address of such a variable on this CPU. The first call looks for the areas of all CPUs: it
 * loads a BPF program for a moment and visits every CPU; not while counting. -EACCES, -EOPNOTSUPP
 * with the reason. Thread-safe. */
int csw_percpu_address(uint64_t offset, unsigned cpu, uint64_t *address, struct csw_error *err);

/* Does the kernel let this program call bpf(2), where that is needed? 0; -EACCES, -EOPNOTSUPP with
 * the reason. */
int csw_percpu_allowed(struct csw_error *err);

/* The questions to the kernel, for tests only; NULL: the real ones again. Not thread-safe. */
struct csw_percpu_ops {
	int (*find)(const char *name, struct csw_percpu_variable *out, struct csw_error *err);
	int (*global)(const char *name, uint64_t *address, uint64_t *bytes);
	int (*address)(uint64_t offset, unsigned cpu, uint64_t *address, struct csw_error *err);
	int (*allowed)(struct csw_error *err); /* NULL: yes */
};
void csw_percpu_set_ops_for_tests(const struct csw_percpu_ops *ops);

#endif
