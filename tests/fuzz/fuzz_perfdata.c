/*
 * Fuzz target: the bytes of a perf.data file through the whole way, from the reader to a table.
 *
 * Input: the file as it is. Whatever it holds: the session opens or says where it is broken, ends,
 * and what it counted adds up.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "csw/csw.h"
#include "fuzz.h"

static int add_slice(void *ctx, const struct csw_slice *slice)
{
	uint64_t *ns = ctx;

	FUZZ_ASSERT(slice->kind <= CSW_KIND_REST);
	*ns += slice->oncpu_ns;
	return 0;
}

static void read_all(struct csw_session *s, uint32_t by)
{
	struct csw_error err = { .text = "" };
	struct csw_summary sum;
	struct csw_table *table;
	uint64_t ns = 0;
	int ret;

	FUZZ_ASSERT(csw_on_slice(s, add_slice, &ns, &err) == 0);
	FUZZ_ASSERT(csw_start(s, &err) == 0);
	while ((ret = csw_poll(s, 0, &err)) > 0)
		;
	FUZZ_ASSERT(ret == 0);
	FUZZ_ASSERT(csw_stop(s, &err) == 0);
	FUZZ_ASSERT(csw_table_open(&table, s, by, NULL, &err) == 0);
	FUZZ_ASSERT(csw_table_summary(table, &sum, sizeof(sum)) == 0);
	FUZZ_ASSERT(ns == sum.rows_ns);
	csw_table_close(table);
	ret = csw_damage(s, &err);
	FUZZ_ASSERT(ret == 0 || err.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct csw_opts opts = { .size = sizeof(opts) };
	struct csw_error err = { .text = "" };
	struct csw_session *s;
	char path[64];
	int fd = memfd_create("perf.data", MFD_CLOEXEC);

	FUZZ_ASSERT(fd >= 0);
	FUZZ_ASSERT(write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	opts.input = path;
	/* By cgroup where the samples carry any, else it is refused. */
	for (opts.cgroups = 1;; opts.cgroups = 0) {
		int ret = csw_open(&s, NULL, NULL, &opts, &err);

		FUZZ_ASSERT(ret == 0 || err.text[0]);
		if (ret == 0) {
			read_all(s, opts.cgroups ? CSW_BY_CGROUP : CSW_BY_PROCESS);
			csw_close(s);
		}
		if (ret != -EOPNOTSUPP || !opts.cgroups)
			break;
	}
	close(fd);
	return 0;
}
