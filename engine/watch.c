/*
 * See watch.h. The address is found here; whether the kernel grants the watch is tried elsewhere.
 *
 * Invariant: an event that leaves here watches memory that lies where its name says, at an address
 * that its length divides, as the hardware asks.
 */
#include "engine/watch.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/arch/watch.h"
#include "engine/error.h"
#include "engine/percpu.h"
#include "engine/text.h"

#define WATCH_BYTES_MAX 8
#define CANONICAL_BITS 56 /* no architecture here has wider addresses: above all bits are equal */
#define KERNEL_HALF (1ULL << 63) /* the kernel's addresses have this bit, a process's do not */

const char *csw_watch_name(const char *name, bool *loads)
{
	*loads = !strncmp(name, "mem_load:", 9);
	if (*loads)
		return name + 9;
	return !strncmp(name, "mem_store:", 10) ? name + 10 : NULL;
}

/* The longest watch that begins at the address and does not reach beyond the variable. */
static uint64_t length_at(uint64_t address, uint64_t bytes)
{
	uint64_t length = WATCH_BYTES_MAX;

	while (length > 1 && (address % length || (bytes && length > bytes)))
		length /= 2;
	return length;
}

static void fill(struct csw_event *out, uint64_t address, uint64_t bytes, bool loads)
{
	out->type = PERF_TYPE_BREAKPOINT;
	out->flags |= CSW_EVENT_DEBUG_REGISTER;
	out->config1 = address;
	out->config2 = length_at(address, bytes);
	out->bp_type = loads ? csw_arch_watch_loads : HW_BREAKPOINT_W;
	if (out->bp_type == HW_BREAKPOINT_RW)
		out->flags |= CSW_EVENT_STORES_TOO;
}

/* perf's way to write it: w, r, rw. */
static const char *access_name(const struct csw_event *event)
{
	return event->bp_type == HW_BREAKPOINT_W   ? "w"
	       : event->bp_type == HW_BREAKPOINT_R ? "r"
						   : "rw";
}

static int refuse_architecture(struct csw_error *err)
{
	return csw_error_set(err, -EOPNOTSUPP,
			     "memory cannot be watched here: no debug registers are known of this "
			     "architecture");
}

int csw_watch_current(struct csw_event *out, struct csw_error *err)
{
	struct csw_percpu_variable variable;
	const char *const *name = csw_arch_current_task;
	int ret = -ENOENT;

	if (!*name)
		return refuse_architecture(err);
	for (; *name && ret == -ENOENT; name++) {
		ret = csw_percpu_find(*name, &variable, err);
		if (ret)
			continue;
		fill(out, variable.offset, sizeof(uint64_t), false);
		out->flags |= CSW_EVENT_PER_CPU;
		snprintf(out->became, sizeof(out->became), "mem:%s:w", *name);
	}
	return ret == -ENOENT ? csw_error_set(err, -EOPNOTSUPP,
					      "this kernel has no per-CPU pointer to the current "
					      "task under a name known here (%s)",
					      csw_arch_current_task[0])
			      : ret;
}

/* A whole number in C's notation, nothing behind it. */
static bool take_number(const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	return isdigit((unsigned char)*text) && !*end && !errno;
}

/* Is the address mapped in the process, and can what it does to it happen there? */
static int check_mapping(int pid, uint64_t address, struct csw_error *err)
{
	char path[64], line[4096];
	uint64_t from, to;
	bool mapped = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "re");
	if (!file)
		return csw_error_set(err, errno == ENOENT ? -ESRCH : -errno,
				     "the memory map of process %d cannot be read: %s", pid,
				     strerror(errno));
	while (!mapped && fgets(line, sizeof(line), file))
		mapped = sscanf(line, "%" SCNx64 "-%" SCNx64, &from, &to) == 2 && address >= from &&
			 address < to;
	fclose(file);
	return mapped ? 0
		      : csw_error_set(err, -EFAULT,
				      "process %d has nothing at 0x%" PRIx64 "; see /proc/%d/maps",
				      pid, address, pid);
}

/* "PID:ADDR". A CPU's watch knows addresses and no processes: whoever accesses the same address in
 * his own memory is counted too, which the report must not hide. */
static int watch_process(const char *where, const char *colon, bool loads, struct csw_event *out,
			 struct csw_error *err)
{
	uint64_t pid, address;
	char digits[16] = "";
	int ret;

	if ((size_t)(colon - where) < sizeof(digits))
		memcpy(digits, where, (size_t)(colon - where));
	if (!take_number(digits, &pid) || pid < 1 || pid > INT32_MAX ||
	    !take_number(colon + 1, &address) || address >= KERNEL_HALF)
		return csw_error_set(err, -EINVAL,
				     "\"%s\" is no address of a process: write PID:0xADDRESS, such "
				     "as 4242:0x7f0012345678",
				     where);
	ret = check_mapping((int)pid, address, err);
	if (ret)
		return ret;
	fill(out, address, 0, loads);
	snprintf(out->became, sizeof(out->became),
		 "mem:0x%" PRIx64 "/%" PRIu64 ":%s in any process", address, out->config2,
		 access_name(out));
	return 0;
}

static int watch_address(uint64_t address, bool loads, struct csw_event *out)
{
	fill(out, address, 0, loads);
	snprintf(out->became, sizeof(out->became), "mem:0x%" PRIx64 "/%" PRIu64 ":%s%s", address,
		 out->config2, access_name(out), address < KERNEL_HALF ? " in any process" : "");
	return 0;
}

static int watch_symbol(const char *where, bool loads, struct csw_event *out, struct csw_error *err)
{
	struct csw_percpu_variable variable;
	uint64_t address, bytes;
	int ret;

	for (const char *const *name = csw_arch_unwatchable; *name; name++)
		if (!strcmp(where, *name))
			return csw_error_set(err, -EOPNOTSUPP,
					     "%s cannot be watched: the kernel itself accesses it "
					     "while it takes a sample, so that samples would lie "
					     "within samples",
					     where);
	ret = csw_percpu_find(where, &variable, err);

	if (ret == 0) {
		fill(out, variable.offset, variable.bytes, loads);
		out->flags |= CSW_EVENT_PER_CPU;
	} else if (ret == -ENOENT && csw_percpu_global(where, &address, &bytes) == 0) {
		fill(out, address, bytes, loads);
	} else if (ret == -ENOENT) {
		return csw_error_set(err, ret,
				     "no variable %s of the kernel can be found: it is no per-CPU "
				     "one, and /proc/kallsyms has no such symbol, or shows no "
				     "addresses (kernel.kptr_restrict; CONFIG_KALLSYMS_ALL)",
				     where);
	} else {
		return ret;
	}
	snprintf(out->became, sizeof(out->became), "mem:%.96s/%" PRIu64 ":%s", where, out->config2,
		 access_name(out));
	return 0;
}

static bool is_symbol(const char *text)
{
	if (!isalpha((unsigned char)*text) && *text != '_')
		return false;
	while (isalnum((unsigned char)*text) || *text == '_' || *text == '.')
		text++;
	return !*text;
}

/* What the hardware could never see, or the kernel refuses without saying why. */
static int check_place(const struct csw_event *event, struct csw_error *err)
{
	bool of_kernel = (event->flags & CSW_EVENT_PER_CPU) || event->config1 >= KERNEL_HALF;
	uint64_t top = event->config1 >> CANONICAL_BITS;

	if (!(event->flags & CSW_EVENT_PER_CPU) && top && top != UINT64_MAX >> CANONICAL_BITS)
		return csw_error_set(err, -EINVAL,
				     "0x%" PRIx64 " is no address: it lies between those of "
				     "processes and those of the kernel",
				     event->config1);
	if (of_kernel && event->exclude_kernel)
		return csw_error_set(err, -EINVAL,
				     "%s lies in the kernel, where no user code comes, so with :u "
				     "it would always count 0; leave :u away",
				     event->became);
	return 0;
}

static int find_place(const char *where, bool loads, struct csw_event *out, struct csw_error *err)
{
	const char *colon = strchr(where, ':');
	char shown[256];
	uint64_t address;

	if (!csw_arch_watch_loads)
		return refuse_architecture(err);
	if (colon)
		return watch_process(where, colon, loads, out, err);
	if (take_number(where, &address))
		return watch_address(address, loads, out);
	if (is_symbol(where))
		return watch_symbol(where, loads, out, err);
	return csw_error_set(
		err, -EINVAL,
		"\"%s\" is no place in memory: write an address (0xffff888012345678), a "
		"variable of the kernel (%s) or PID:0xADDRESS",
		csw_escape(shown, sizeof(shown), where), csw_arch_current_task[0]);
}

int csw_watch_where(const char *where, bool loads, struct csw_event *out, struct csw_error *err)
{
	int ret = find_place(where, loads, out, err);

	return ret ? ret : check_place(out, err);
}
