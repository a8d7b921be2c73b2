/*
 * What this program may do, as the kernel says of it, and why bpf(2) is not among it.
 *
 * Invariant: a remedy is named for what is missing, and for nothing else.
 */
#ifndef CSW_ENGINE_RIGHTS_H
#define CSW_ENGINE_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "csw/csw.h"

/* Bits of CapEff; the kernel's header of an older system lacks some. */
enum csw_cap {
	CSW_CAP_IPC_LOCK = 14,
	CSW_CAP_SYS_ADMIN = 21,
	CSW_CAP_PERFMON = 38, /* Linux 5.8 */
	CSW_CAP_BPF = 39,     /* Linux 5.8 */
};

struct csw_rights {
	uint64_t caps;
	bool known;    /* else there is no /proc */
	bool filtered; /* a seccomp filter is in force */
};

void csw_rights_read(struct csw_rights *out);
bool csw_rights_has(const struct csw_rights *r, enum csw_cap cap);
/* CAP_SYS_ADMIN is taken for CAP_PERFMON and CAP_BPF, and was it before they existed. */
bool csw_rights_has_perfmon(const struct csw_rights *r);
bool csw_rights_has_bpf(const struct csw_rights *r); /* for programs that trace */

/* bpf(2) has failed with code at `what`: the reason and what helps. -EACCES: not permitted, else
 * -EOPNOTSUPP. */
int csw_rights_explain_bpf(int code, const char *what, struct csw_error *err);

#endif
