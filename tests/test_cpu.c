/* Which CPU this is: from made-up /proc/cpuinfo texts of several architectures, and the two sources
 * against each other. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "engine/cpu.h"
#include "tests/tree.h"

/* The other architectures' csw_cpu_identify under another name; see CMakeLists.txt. */
int csw_cpu_identify_arm64(struct csw_cpu *out);
int csw_cpu_identify_riscv64(struct csw_cpu *out);

static void test_x86_text(void **state)
{
	struct csw_cpu cpu;

	(void)state;
	tree_file("/proc/cpuinfo",
		  "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n"
		  "model name\t: Some Xeon   \nstepping\t: 7\nflags\t\t: fpu vme hypervisor lm\n\n"
		  "processor\t: 1\nvendor_id\t: Other\n");
	assert_int_equal(csw_cpu_identify_generic(&cpu), 0);
	assert_string_equal(cpu.vendor, "GenuineIntel");
	assert_string_equal(cpu.brand, "Some Xeon");
	assert_int_equal(cpu.family, 6);
	assert_int_equal(cpu.model, 85);
	assert_int_equal(cpu.stepping, 7);
	assert_string_equal(cpu.hypervisor, "unknown");
	assert_false(csw_cpu_is_amd(&cpu));
	tree_file("/sys/hypervisor/type", "xen\n");
	assert_int_equal(csw_cpu_identify_generic(&cpu), 0);
	assert_string_equal(cpu.hypervisor, "xen");
}

static void test_arm64_text(void **state)
{
	struct csw_cpu cpu;

	(void)state;
	tree_file(
		"/proc/cpuinfo",
		"processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
		"CPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n");
	assert_int_equal(csw_cpu_identify_arm64(&cpu), 0);
	assert_string_equal(cpu.vendor, "ARM");
	assert_int_equal(cpu.family, 8);
	assert_int_equal(cpu.model, 0xd0c);
	assert_int_equal(cpu.stepping, 1);
	assert_string_equal(cpu.hypervisor, "");
	tree_bytes("/proc/device-tree/hypervisor/compatible", "linux,kvm\0", 10);
	assert_int_equal(csw_cpu_identify_arm64(&cpu), 0);
	assert_string_equal(cpu.hypervisor, "KVM");
}

static void test_riscv64_text(void **state)
{
	struct csw_cpu cpu;

	(void)state;
	tree_file("/proc/cpuinfo", "processor\t: 0\nhart\t\t: 0\nisa\t\t: rv64imafdch_sscofpmf\n"
				   "mmu\t\t: sv57\nuarch\t\t: sifive,u74-mc\nmvendorid\t: 0x489\n"
				   "marchid\t\t: 0x8000000000000007\nmimpid\t\t: 0x10\n");
	assert_int_equal(csw_cpu_identify_riscv64(&cpu), 0);
	assert_string_equal(cpu.vendor, "0x489");
	assert_string_equal(cpu.brand, "sifive,u74-mc");
	assert_int_equal(cpu.family, -1);
	assert_int_equal(cpu.model, -1); /* 64 bits are more than the field holds */
	assert_int_equal(cpu.stepping, 0x10);
	assert_int_equal(cpu.min_period, 1);
	/* QEMU's generic CPU has no name. */
	tree_file("/proc/cpuinfo",
		  "processor\t: 0\nisa\t\t: rv64imafdch_sscofpmf\nmvendorid\t: 0x0\n");
	assert_int_equal(csw_cpu_identify_riscv64(&cpu), 0);
	assert_string_equal(cpu.brand, "rv64imafdch_sscofpmf");
}

static void test_power_text(void **state)
{
	struct csw_cpu cpu;

	(void)state;
	tree_file("/proc/cpuinfo",
		  "processor\t: 0\ncpu\t\t: POWER9 (architected), altivec supported\n");
	assert_int_equal(csw_cpu_identify_generic(&cpu), 0);
	assert_string_equal(cpu.brand, "POWER9 (architected), altivec supported");
	assert_string_equal(cpu.vendor, "");
	assert_int_equal(cpu.family, -1);
	assert_int_equal(cpu.model, -1);
}

static void test_damage(void **state)
{
	size_t bytes = 1 << 20;
	char *big = malloc(bytes);
	struct csw_cpu cpu;

	(void)state;
	assert_non_null(big);
	assert_int_equal(csw_cpu_identify_generic(&cpu), -ENOENT);
	assert_int_equal(cpu.family, -1);
	assert_string_equal(cpu.vendor, "");
	tree_file("/proc/cpuinfo", "");
	assert_int_equal(csw_cpu_identify_generic(&cpu), 0);
	assert_int_equal(cpu.model, -1);
	tree_file("/proc/cpuinfo", "model\nmodel\t: x\ncpu family : 99999999999\nstepping : "
				   "-4\nvendor_id :\n:\n: :\n");
	assert_int_equal(csw_cpu_identify_generic(&cpu), 0);
	assert_int_equal(cpu.family, -1);
	assert_int_equal(cpu.model, -1);
	assert_int_equal(cpu.stepping, -1);
	memset(big, 'v', bytes);
	memcpy(big, "model name\t: ", 13);
	tree_bytes("/proc/cpuinfo", big, bytes); /* a line of a megabyte */
	assert_int_equal(csw_cpu_identify_generic(&cpu), 0);
	assert_int_equal(strlen(cpu.brand), sizeof(cpu.brand) - 1);
	free(big);
}

static void test_amd(void **state)
{
	struct csw_cpu cpu = { .vendor = "AuthenticAMD" };

	(void)state;
	assert_true(csw_cpu_is_amd(&cpu));
	strcpy(cpu.vendor, "HygonGenuine");
	assert_true(csw_cpu_is_amd(&cpu));
	strcpy(cpu.vendor, "ARM");
	assert_false(csw_cpu_is_amd(&cpu));
}

/* CPUID and the kernel's text must tell of the same CPU. */
static void test_this_machine(void **state)
{
	struct csw_cpu by_cpuid, by_text;

	(void)state;
	assert_int_equal(csw_cpu_identify(&by_cpuid), 0);
	assert_int_equal(csw_cpu_identify_generic(&by_text), 0);
	assert_in_range(by_cpuid.min_period, 1, 2);
	if (!by_text.vendor[0])
		return; /* no vendor_id: this machine's lines have other names */
	assert_string_equal(by_cpuid.vendor, by_text.vendor);
	assert_int_equal(by_cpuid.family, by_text.family);
	assert_int_equal(by_cpuid.model, by_text.model);
	assert_int_equal(by_cpuid.stepping, by_text.stepping);
	if (by_text.hypervisor[0])
		assert_string_not_equal(by_cpuid.hypervisor, "");
}

#define WITH_TREE(test) cmocka_unit_test_setup_teardown(test, tree_setup, tree_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TREE(test_x86_text),
		WITH_TREE(test_arm64_text),
		WITH_TREE(test_riscv64_text),
		WITH_TREE(test_power_text),
		WITH_TREE(test_damage),
		cmocka_unit_test(test_amd),
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
