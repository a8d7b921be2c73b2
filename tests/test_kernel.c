/* What the kernel says of itself, on made-up machines. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <zlib.h>

#include "engine/cpu.h"
#include "engine/kernel.h"
#include "tests/tree.h"

#define OSRELEASE "/proc/sys/kernel/osrelease"

static void write_gz(const char *path, const char *text, size_t bytes)
{
	char full[PATH_MAX];
	gzFile file;

	tree_file(path, "");
	snprintf(full, sizeof(full), "%s%s", tree_root, path);
	file = gzopen(full, "wb");
	assert_non_null(file);
	assert_int_equal(gzwrite(file, text, (unsigned)bytes), bytes);
	assert_int_equal(gzclose(file), Z_OK);
}

static void test_version(void **state)
{
	(void)state;
	assert_false(csw_kernel_at_least(0, 0)); /* nobody says */
	tree_file(OSRELEASE, "5.8.0-1-amd64\n");
	assert_true(csw_kernel_at_least(5, 8));
	assert_true(csw_kernel_at_least(4, 20));
	assert_false(csw_kernel_at_least(5, 9));
	assert_false(csw_kernel_at_least(6, 0));
	tree_file(OSRELEASE, "6.12\n");
	assert_true(csw_kernel_at_least(6, 9)); /* numbers, not text */
	tree_file(OSRELEASE, "six\n");
	assert_false(csw_kernel_at_least(5, 0));
}

static void test_config_packed(void **state)
{
	static const char text[] = "# CONFIG_OFF is not set\nCONFIG_ON=y\nCONFIG_MODULE=m\n"
				   "CONFIG_ON_TOO=y\nCONFIG_TEXT=\"y\"\n";

	(void)state;
	assert_int_equal(csw_kernel_config("CONFIG_ON"), -ENODATA);
	write_gz("/proc/config.gz", text, sizeof(text) - 1);
	assert_int_equal(csw_kernel_config("CONFIG_ON"), 1);
	assert_int_equal(csw_kernel_config("CONFIG_ON_TOO"), 1);
	assert_int_equal(csw_kernel_config("CONFIG_O"), 0);
	assert_int_equal(csw_kernel_config("CONFIG_OFF"), 0);
	assert_int_equal(csw_kernel_config("CONFIG_MODULE"), 0);
	assert_int_equal(csw_kernel_config("CONFIG_TEXT"), 0);
}

/* A file that breaks off says nothing of what would have stood behind. */
static void test_config_broken(void **state)
{
	static char noise[1 << 16];
	char path[PATH_MAX];
	uint32_t x = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)('a' + (x = x * 1103515245 + 12345) / 65536 % 26);
	for (size_t i = 99; i < sizeof(noise); i += 100)
		noise[i] = '\n';
	memcpy(noise, "CONFIG_FIRST=y\n", 15);
	write_gz("/proc/config.gz", noise, sizeof(noise));
	snprintf(path, sizeof(path), "%s/proc/config.gz", tree_root);
	assert_int_equal(truncate(path, 20000), 0);
	assert_int_equal(csw_kernel_config("CONFIG_FIRST"), 1);
	assert_int_equal(csw_kernel_config("CONFIG_LAST"), -ENODATA);
}

static void test_config_of_boot(void **state)
{
	(void)state;
	tree_file(OSRELEASE, "6.1.0-9-arm64\n");
	tree_file("/boot/config-6.1.0-8-arm64", "CONFIG_OTHER=y\n");
	assert_int_equal(csw_kernel_config("CONFIG_OTHER"), -ENODATA);
	tree_file("/boot/config-6.1.0-9-arm64", "CONFIG_THIS=y\n");
	assert_int_equal(csw_kernel_config("CONFIG_THIS"), 1);
	assert_int_equal(csw_kernel_config("CONFIG_OTHER"), 0);
}

static void test_flags(void **state)
{
	(void)state;
	assert_false(csw_cpu_has_flag("pti"));
	tree_file("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu fsgsbase pcid_not pti\n"
				   "bugs\t\t: pcid\n");
	assert_true(csw_cpu_has_flag("fpu"));
	assert_true(csw_cpu_has_flag("pti"));
	assert_false(csw_cpu_has_flag("pcid"));
	assert_false(csw_cpu_has_flag("fs"));
	tree_file("/proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd atomics\n");
	assert_true(csw_cpu_has_flag("atomics"));
}

#define ON_MACHINE(test) cmocka_unit_test_setup_teardown(test, tree_setup, tree_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_MACHINE(test_version),       ON_MACHINE(test_config_packed),
		ON_MACHINE(test_config_broken), ON_MACHINE(test_config_of_boot),
		ON_MACHINE(test_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
