/* engine/rights: whoever refuses bpf(2), its error number is the same; the reason has to be the
 * true one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "engine/rights.h"
#include "tree.h"

#define BIT(cap) (1ull << (cap))
#define ALL (BIT(CSW_CAP_BPF) | BIT(CSW_CAP_PERFMON) | BIT(CSW_CAP_SYS_ADMIN))
#define FILTER "Seccomp:\t2\n"
#define NO_FILTER "Seccomp:\t0\n"

static void set_status(uint64_t caps, const char *seccomp)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "Name:\ttest\nCapPrm:\t0\nCapEff:\t%016llx\nCapBnd:\t0\nNoNewPrivs:\t1\n%s"
		 "Seccomp_filters:\t1\n",
		 (unsigned long long)caps, seccomp);
	tree_file("/proc/self/status", text);
}

#define says(code, ret, ...) check_says(code, ret, (const char *[]){ __VA_ARGS__, NULL })
static void check_says(int code, int ret, const char *const *parts)
{
	struct csw_error err;

	assert_int_equal(csw_rights_explain_bpf(code, "making a map", &err), ret);
	assert_int_equal(err.code, ret);
	for (; *parts; parts++) {
		bool absent = **parts == '!';

		if (!strstr(err.text, *parts + absent) != absent)
			fail_msg("\"%s\": %s", *parts, err.text);
	}
}

static void test_what_there_is(void **state)
{
	struct csw_rights r;

	(void)state;
	csw_rights_read(&r);
	assert_false(r.known || r.filtered || csw_rights_has(&r, CSW_CAP_BPF));
	set_status(BIT(CSW_CAP_BPF), FILTER);
	csw_rights_read(&r);
	assert_true(r.known && r.filtered);
	assert_true(csw_rights_has(&r, CSW_CAP_BPF));
	assert_false(csw_rights_has(&r, CSW_CAP_PERFMON));
	assert_false(csw_rights_has_bpf(&r) || csw_rights_has_perfmon(&r));
	set_status(BIT(CSW_CAP_BPF) | BIT(CSW_CAP_PERFMON), "Seccomp:\t1\n");
	csw_rights_read(&r);
	assert_false(r.filtered);
	assert_true(csw_rights_has_bpf(&r) && csw_rights_has_perfmon(&r));
	set_status(BIT(CSW_CAP_SYS_ADMIN), NO_FILTER);
	csw_rights_read(&r);
	assert_true(csw_rights_has_bpf(&r) && csw_rights_has_perfmon(&r));
	/* The first line of the file is not behind a line's end, and none may be there at all. */
	tree_file("/proc/self/status", "Name:\ttest\n");
	csw_rights_read(&r);
	assert_false(r.known || r.filtered);
}

static void test_capabilities(void **state)
{
	(void)state;
	set_status(0, NO_FILTER);
	says(-EPERM, -EACCES, "not permitted without CAP_BPF and CAP_PERFMON;", "try sudo",
	     "!seccomp");
	set_status(BIT(CSW_CAP_PERFMON), NO_FILTER);
	says(-EPERM, -EACCES, "without CAP_BPF;", "!seccomp");
	set_status(BIT(CSW_CAP_BPF), NO_FILTER);
	says(-EACCES, -EACCES, "without CAP_PERFMON;");
	/* Both are in the way. */
	set_status(0, FILTER);
	says(-EPERM, -EACCES, "without CAP_BPF and CAP_PERFMON;",
	     "try sudo, and let the seccomp filter");
}

static void test_seccomp(void **state)
{
	(void)state;
	set_status(ALL, FILTER);
	says(-EPERM, -EACCES, "the capabilities are there", "a seccomp filter is in force",
	     "SystemCallFilter", "--trigger=switch", "!sudo", "!without CAP");
	tree_file("/proc/self/uid_map", "         0          0 4294967295\n");
	says(-EACCES, -EACCES, "a seccomp filter is in force");
	says(-ENOSYS, -EOPNOTSUPP, "the seccomp filter in force here hides it");
}

static void test_user_namespace(void **state)
{
	(void)state;
	set_status(ALL, FILTER);
	tree_file("/proc/self/uid_map", "         0       1000          1\n");
	says(-EPERM, -EACCES, "only of this user namespace", "!seccomp", "!sudo");
}

static void test_neither(void **state)
{
	(void)state;
	set_status(ALL, NO_FILTER);
	says(-EPERM, -EACCES, "a security module forbids it", "!sudo", "!seccomp");
	says(-ENOSYS, -EOPNOTSUPP, "without CONFIG_BPF_SYSCALL", "!seccomp");
	says(-ENOMEM, -EOPNOTSUPP, strerror(ENOMEM), "!seccomp");
}

int main(void)
{
#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, tree_setup, tree_teardown)
	const struct CMUnitTest tests[] = {
		IN_TREE(test_what_there_is),  IN_TREE(test_capabilities), IN_TREE(test_seccomp),
		IN_TREE(test_user_namespace), IN_TREE(test_neither),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
