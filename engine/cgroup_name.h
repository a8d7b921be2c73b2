/* What people call a cgroup: the container, the pod or the unit, where its path tells. */
#ifndef CSW_ENGINE_CGROUP_NAME_H
#define CSW_ENGINE_CGROUP_NAME_H

#include <stddef.h>

/*
 * A short name into out[bytes], what does not fit is cut off; returns out.
 *
 *	/system.slice/docker-<id>.scope, /docker/<id>             docker 0123456789ab
 *	/machine.slice/libpod-<id>.scope                          podman 0123456789ab
 *	/kubepods.slice/.../kubepods-burstable-pod<uid>.slice/... pod 1234abcd/0123456789ab
 *	/system.slice/cri-containerd-<id>.scope                   containerd 0123456789ab
 *	/system.slice/ssh.service                                 ssh.service
 *	/user.slice/.../user@1000.service/app.slice/a.service     user@1000.service/a.service
 *
 * What lies below a container or a unit stays behind it: "docker 0123456789ab/init.scope". Every
 * other path is its own name. The path's bytes are copied as they are.
 */
const char *csw_cgroup_name(char *out, size_t bytes, const char *path);

#endif
