/* See rights.h. What the kernel answers to a call that it refuses is -EPERM, whoever refuses it. */
#include "engine/rights.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/error.h"
#include "engine/sysfs.h"

#define SECCOMP_FILTER 2 /* SECCOMP_MODE_FILTER */

void csw_rights_read(struct csw_rights *out)
{
	char text[8192];
	const char *line;
	int mode;

	*out = (struct csw_rights){ .known = false };
	/* -EFBIG leaves the beginning, which holds the lines. */
	csw_sysfs_read(text, sizeof(text), "/proc/self/status");
	line = strstr(text, "\nCapEff:");
	out->known = line && sscanf(line, "\nCapEff: %" SCNx64, &out->caps) == 1;
	line = strstr(text, "\nSeccomp:");
	out->filtered = line && sscanf(line, "\nSeccomp: %d", &mode) == 1 && mode == SECCOMP_FILTER;
}

bool csw_rights_has(const struct csw_rights *r, enum csw_cap cap)
{
	return r->known && r->caps >> cap & 1;
}

bool csw_rights_has_perfmon(const struct csw_rights *r)
{
	return csw_rights_has(r, CSW_CAP_PERFMON) || csw_rights_has(r, CSW_CAP_SYS_ADMIN);
}

bool csw_rights_has_bpf(const struct csw_rights *r)
{
	return csw_rights_has(r, CSW_CAP_SYS_ADMIN) ||
	       (csw_rights_has(r, CSW_CAP_BPF) && csw_rights_has(r, CSW_CAP_PERFMON));
}

/* Capabilities of a user namespace of one's own are none outside of it. The machine's own has all
 * ids. */
static bool is_user_namespaced(void)
{
	char text[256];
	uint32_t inside, outside, nr;

	return csw_sysfs_read(text, sizeof(text), "/proc/self/uid_map") >= 0 &&
	       sscanf(text, "%" SCNu32 " %" SCNu32 " %" SCNu32, &inside, &outside, &nr) == 3 &&
	       (inside || outside || nr != UINT32_MAX);
}

/* kernel.unprivileged_bpf_disabled is no part of it: what traces takes the capabilities, whatever
 * that says. */
static int explain_caps(const struct csw_rights *r, const char *what, struct csw_error *err)
{
	const bool bpf = csw_rights_has(r, CSW_CAP_BPF), perfmon = csw_rights_has_perfmon(r);

	return csw_error_set(err, -EACCES,
			     "%s is not permitted without %s; to find the kernel's per-CPU "
			     "variables takes CAP_BPF and CAP_PERFMON, and to watch them "
			     "CAP_SYS_ADMIN; try sudo%s",
			     what,
			     bpf       ? "CAP_PERFMON"
			     : perfmon ? "CAP_BPF"
				       : "CAP_BPF and CAP_PERFMON",
			     r->filtered ? ", and let the seccomp filter in force here allow bpf(2)"
					 : "");
}

static int explain_denial(const struct csw_rights *r, const char *what, struct csw_error *err)
{
	if (!csw_rights_has_bpf(r))
		return explain_caps(r, what, err);
	if (is_user_namespaced())
		return csw_error_set(
			err, -EACCES,
			"%s is not permitted: the capabilities are there, but only of "
			"this user namespace; run in the machine's own (in a container "
			"without a user namespace, or on the host), or use "
			"--trigger=switch",
			what);
	if (r->filtered)
		return csw_error_set(err, -EACCES,
				     "%s is not permitted: the capabilities are there, but a "
				     "seccomp filter is in force; let it allow bpf(2) (docker run "
				     "--security-opt seccomp=PROFILE, SystemCallFilter= of a "
				     "service), or use --trigger=switch",
				     what);
	return csw_error_set(
		err, -EACCES,
		"%s is not permitted: the capabilities are there, so a security module "
		"forbids it (SELinux, lockdown); the kernel's log may say which, or use "
		"--trigger=switch",
		what);
}

int csw_rights_explain_bpf(int code, const char *what, struct csw_error *err)
{
	struct csw_rights r;

	csw_rights_read(&r);
	if (code == -EPERM || code == -EACCES)
		return explain_denial(&r, what, err);
	if (code == -ENOSYS)
		return csw_error_set(err, -EOPNOTSUPP,
				     "%s: there is no bpf(2): %s; the kernel's per-CPU variables "
				     "cannot be found without it, use --trigger=switch",
				     what,
				     r.filtered ? "the seccomp filter in force here hides it, or "
						  "the kernel is without CONFIG_BPF_SYSCALL"
						: "the kernel is without CONFIG_BPF_SYSCALL");
	return csw_error_set(err, -EOPNOTSUPP,
			     "%s: %s; the kernel's per-CPU variables cannot be found without it",
			     what, strerror(-code));
}
