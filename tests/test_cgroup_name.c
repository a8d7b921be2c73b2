/* What people call a cgroup: the paths that container engines and systemd make. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "engine/cgroup_name.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UID "1234abcd-0000-1111-2222-333344445555"
#define UID_ "1234abcd_0000_1111_2222_333344445555"

static void test_names(void **state)
{
	static const struct {
		const char *path, *name;
	} cases[] = {
		{ "/", "/" },
		{ "", "" },
		{ "/system.slice", "/system.slice" },
		{ "/a/b", "/a/b" },
		{ "/system.slice/docker-" ID ".scope", "docker 0123456789ab" },
		{ "/docker/" ID, "docker 0123456789ab" },
		{ "/docker/" ID "/init.scope", "docker 0123456789ab/init.scope" },
		{ "/docker/" ID "/system.slice/ssh.service",
		  "docker 0123456789ab/system.slice/ssh.service" },
		{ "/docker/buildkit", "/docker/buildkit" },
		{ "/machine.slice/libpod-" ID ".scope", "podman 0123456789ab" },
		{ "/machine.slice/libpod-" ID ".scope/container", "podman 0123456789ab/container" },
		{ "/machine.slice/libpod-conmon-" ID ".scope", "libpod-conmon-" ID ".scope" },
		{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope",
		  "podman 0123456789ab" },
		{ "/system.slice/cri-containerd-" ID ".scope", "containerd 0123456789ab" },
		{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
		  ".slice/cri-containerd-" ID ".scope",
		  "pod 1234abcd/0123456789ab" },
		{ "/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope",
		  "pod 1234abcd/0123456789ab" },
		{ "/kubepods.slice/kubepods-pod" UID_ ".slice/crio-conmon-" ID ".scope",
		  "pod 1234abcd/crio-conmon-" ID ".scope" },
		{ "/kubepods/besteffort/pod" UID "/" ID, "pod 1234abcd/0123456789ab" },
		{ "/kubepods/pod" UID, "pod 1234abcd" },
		{ "/kubepods.slice/kubepods-besteffort.slice",
		  "/kubepods.slice/kubepods-besteffort.slice" },
		{ "/podcasts/player", "/podcasts/player" },
		{ "/system.slice/ssh.service", "ssh.service" },
		{ "/system.slice/app.service/worker/1", "app.service/worker/1" },
		{ "/user.slice/user-1000.slice/session-3.scope", "session-3.scope" },
		{ "/user.slice/user-1000.slice/user@1000.service", "user@1000.service" },
		{ "/user.slice/user-1000.slice/user@1000.service/init.scope",
		  "user@1000.service/init.scope" },
		{ "/user.slice/user-1000.slice/user@1000.service/app.slice/x.service",
		  "user@1000.service/x.service" },
		{ "/init.scope", "init.scope" },
		/* nothing but the looks of it */
		{ "/docker-abc.scope", "docker-abc.scope" },
		{ "/docker-.scope", "docker-.scope" },
		{ "/.service", "/.service" },
		{ "/docker/0123456789ag0123456789ag0123456789ag", "/docker/0123456789ag0123456789ag"
								  "0123456789ag" },
		{ "/kubepods/pod", "/kubepods/pod" },
		{ "/kubepods-pod.slice", "/kubepods-pod.slice" },
		{ "//docker//" ID "//", "docker 0123456789ab//" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char name[256];

		assert_ptr_equal(csw_cgroup_name(name, sizeof(name), cases[i].path), name);
		if (strcmp(name, cases[i].name) != 0)
			fail_msg("%s is called %s", cases[i].path, name);
	}
}

static void test_cut(void **state)
{
	char name[8];

	(void)state;
	csw_cgroup_name(name, sizeof(name), "/system.slice/docker-" ID ".scope");
	assert_string_equal(name, "docker ");
	csw_cgroup_name(name, sizeof(name), "/a/b/c/d/e");
	assert_string_equal(name, "/a/b/c/");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests_name("cgroup_name", tests, NULL, NULL);
}
