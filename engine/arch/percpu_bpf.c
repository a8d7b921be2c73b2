/*
 * See percpu.h. The way to a CPU's area: the tracepoint sched_update_nr_running_tp hands a pointer
 * to a CPU's run queue, which is a per-CPU variable, to a BPF program of ten instructions. It fires
 * whenever a CPU gets a thread to run, so that a visit to a CPU makes it fire there.
 *
 * Invariant: an address is given out only for a CPU whose run queue said itself that it is that
 * CPU's.
 */
#include "engine/percpu.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/error.h"
#include "engine/rights.h"

#define ANCHOR "runqueues" /* the variable that offsets count from: the tracepoint shows it */
#define TRACEPOINT "sched_update_nr_running_tp"
#define SECTION ".data..percpu"
#define PATIENCE_MS 1000 /* for a CPU that may not be visited: how long it may find no work */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t *anchors; /* of each CPU that is there or may come, 0: not known */
static unsigned nr_anchors;

/* ---- where in the area ---- */

static int find_in_btf(const struct btf *btf, const char *name, struct csw_percpu_variable *out)
{
	int section = btf__find_by_name_kind(btf, SECTION, BTF_KIND_DATASEC);
	const struct btf_var_secinfo *var;
	const struct btf_type *type;

	if (section < 0)
		return -EOPNOTSUPP;
	type = btf__type_by_id(btf, (uint32_t)section);
	var = btf_var_secinfos(type);
	for (unsigned i = 0; i < btf_vlen(type); i++) {
		const struct btf_type *t = btf__type_by_id(btf, var[i].type);

		if (strcmp(btf__name_by_offset(btf, t->name_off), name) != 0)
			continue;
		out->offset = var[i].offset;
		out->bytes = var[i].size;
		return 0;
	}
	return -ENOENT;
}

struct symbol {
	const char *name;
	uint64_t value;
	bool found;
};

/* The values of nr symbols of the kernel itself. Without rights all values are shown as 0, and
 * without CONFIG_KALLSYMS_ALL there are no variables. */
static void read_kallsyms(struct symbol *symbols, size_t nr)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char line[512], name[256];
	uint64_t value;

	while (file && fgets(line, sizeof(line), file)) {
		if (strchr(line, '[') || sscanf(line, "%" SCNx64 " %*c %255s", &value, name) != 2)
			continue;
		for (size_t i = 0; i < nr; i++) {
			if (strcmp(symbols[i].name, name) != 0)
				continue;
			symbols[i].value = value;
			symbols[i].found = true;
		}
	}
	if (file)
		fclose(file);
}

static int find_in_kallsyms(const char *name, struct csw_percpu_variable *out)
{
	struct symbol symbols[] = { { .name = name },
				    { .name = ANCHOR },
				    { .name = "__per_cpu_start" },
				    { .name = "__per_cpu_end" } };

	read_kallsyms(symbols, 4);
	if (!symbols[1].value || !symbols[3].value)
		return -EOPNOTSUPP;
	if (!symbols[0].found || symbols[0].value < symbols[2].value ||
	    symbols[0].value >= symbols[3].value)
		return -ENOENT;
	out->offset = symbols[0].value - symbols[1].value;
	out->bytes = 0;
	return 0;
}

/* libbpf writes its troubles to stderr, which belongs to the program. */
static struct btf *load_btf(void)
{
	libbpf_print_fn_t before = libbpf_set_print(NULL);
	struct btf *btf = btf__load_vmlinux_btf();

	libbpf_set_print(before);
	return btf;
}

static int real_find(const char *name, struct csw_percpu_variable *out, struct csw_error *err)
{
	struct csw_percpu_variable anchor = { 0 };
	struct btf *btf = load_btf();
	int ret = -EOPNOTSUPP;

	*out = (struct csw_percpu_variable){ 0 };
	if (btf) {
		ret = find_in_btf(btf, ANCHOR, &anchor);
		ret = ret < 0 ? -EOPNOTSUPP : find_in_btf(btf, name, out);
		out->offset -= anchor.offset;
		btf__free(btf);
	}
	if (ret == -EOPNOTSUPP)
		ret = find_in_kallsyms(name, out);
	if (ret == -ENOENT)
		return csw_error_set(err, ret, "the kernel has no per-CPU variable %s", name);
	if (ret < 0)
		return csw_error_set(err, ret,
				     "where the kernel keeps %s cannot be told: it has no BTF "
				     "(CONFIG_DEBUG_INFO_BTF) of its variables, and /proc/kallsyms "
				     "shows none",
				     name);
	return 0;
}

static int real_global(const char *name, uint64_t *address, uint64_t *bytes)
{
	struct symbol symbol = { .name = name };

	read_kallsyms(&symbol, 1);
	*address = symbol.value;
	*bytes = 0;
	return symbol.value ? 0 : -ENOENT;
}

/* ---- where the areas are ---- */

/* Offset of the member `cpu` in the kernel's struct rq; -EOPNOTSUPP: no BTF. */
static int cpu_of_run_queue(void)
{
	struct btf *btf = load_btf();
	int ret = -EOPNOTSUPP, id = btf ? btf__find_by_name_kind(btf, "rq", BTF_KIND_STRUCT) : -1;
	const struct btf_type *type = id < 0 ? NULL : btf__type_by_id(btf, (uint32_t)id);

	for (unsigned i = 0; type && i < btf_vlen(type); i++) {
		const char *name = btf__name_by_offset(btf, btf_members(type)[i].name_off);

		if (!strcmp(name, "cpu"))
			ret = (int)(btf_member_bit_offset(type, i) / 8);
	}
	btf__free(btf);
	return ret;
}

#define INSN(c, d, s, o, i)                                                                        \
	{                                                                                          \
		.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)                \
	}

/* map[rq->cpu] = rq. The helper that reads kernel memory is for programs compatible with the GPL;
 * these instructions may be used under the GPL-2.0 as well. */
static int load_program(int map, int cpu_offset)
{
	const struct bpf_insn insns[] = {
		INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_6, BPF_REG_1, 0, 0), /* rq = args[0] */
		INSN(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, BPF_REG_6, -16, 0),
		INSN(BPF_ST | BPF_MEM | BPF_DW, BPF_REG_10, 0, -8, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_1, 0, 0, -8),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, sizeof(int)),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_3, BPF_REG_6, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_3, 0, 0, cpu_offset),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_probe_read_kernel),
		INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map),
		INSN(0, 0, 0, 0, 0), /* the second half of the one before */
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, -8),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_3, BPF_REG_10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_3, 0, 0, -16),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_4, 0, 0, BPF_ANY),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_update_elem),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};

	return bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "csw_run_queues", "Dual BSD/GPL", insns,
			     sizeof(insns) / sizeof(*insns), NULL);
}

static uint64_t anchor_of(int map, unsigned cpu)
{
	uint64_t value = 0;

	return bpf_map_lookup_elem(map, &cpu, &value) ? 0 : value;
}

/* false: it is offline, or not for this thread (a cpuset). */
static bool go_to(unsigned cpu)
{
	cpu_set_t *set = CPU_ALLOC(cpu + 1);
	size_t bytes = CPU_ALLOC_SIZE(cpu + 1);
	bool there = false;

	if (set) {
		CPU_ZERO_S(bytes, set);
		CPU_SET_S(cpu, bytes, set);
		there = sched_setaffinity(0, bytes, set) == 0;
		CPU_FREE(set);
	}
	return there;
}

/* Going to a CPU makes its run queue change, and so does coming back from a pause there. */
static void visit_all(int map, unsigned nr)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	cpu_set_t *home = CPU_ALLOC(1u << 16);
	size_t bytes = CPU_ALLOC_SIZE(1u << 16);

	if (!home || sched_getaffinity(0, bytes, home) < 0) {
		CPU_FREE(home);
		return;
	}
	for (unsigned cpu = 0; cpu < nr; cpu++)
		if (go_to(cpu) && !anchor_of(map, cpu))
			nanosleep(&pause, NULL);
	sched_setaffinity(0, bytes, home);
	CPU_FREE(home);
}

/* CPUs where this thread may not go get work from others sooner or later. */
static void wait_for(int map, unsigned cpu)
{
	const struct timespec pause = { .tv_nsec = 10000000 };

	for (unsigned ms = 0; !anchor_of(map, cpu) && ms < PATIENCE_MS; ms += 10)
		nanosleep(&pause, NULL);
}

static int watch_run_queues(int map, unsigned nr, unsigned wanted, struct csw_error *err)
{
	int cpu_offset = cpu_of_run_queue(), program, link;

	if (cpu_offset < 0)
		return csw_error_set(err, -EOPNOTSUPP,
				     "the kernel's BTF cannot be read (%s; CONFIG_DEBUG_INFO_BTF): "
				     "its per-CPU variables cannot be found without it",
				     strerror(errno));
	program = load_program(map, cpu_offset);
	if (program < 0)
		return csw_rights_explain_bpf(program, "loading a BPF program", err);
	link = bpf_raw_tracepoint_open(TRACEPOINT, program);
	if (link >= 0) {
		visit_all(map, nr);
		wait_for(map, wanted);
		close(link);
	}
	close(program);
	return link < 0 ? csw_rights_explain_bpf(link, "watching the tracepoint " TRACEPOINT, err)
			: 0;
}

static int make_map(unsigned nr, struct csw_error *err)
{
	int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "csw_run_queues", sizeof(uint32_t),
				 sizeof(uint64_t), nr, NULL);

	return map < 0 ? csw_rights_explain_bpf(map, "making a BPF map", err) : map;
}

static int real_allowed(struct csw_error *err)
{
	int map = make_map(1, err);

	if (map < 0)
		return map;
	close(map);
	return 0;
}

static int find_areas(unsigned wanted, struct csw_error *err)
{
	int nr = libbpf_num_possible_cpus(), map, ret;

	if (nr <= 0 || wanted >= (unsigned)nr)
		return csw_error_set(err, -ENODEV, "there is no CPU %u", wanted);
	map = make_map((unsigned)nr, err);
	if (map < 0)
		return map;
	ret = watch_run_queues(map, (unsigned)nr, wanted, err);
	if (ret == 0 && !anchors) {
		anchors = calloc((size_t)nr, sizeof(*anchors));
		nr_anchors = anchors ? (unsigned)nr : 0;
	}
	for (unsigned cpu = 0; ret == 0 && cpu < nr_anchors; cpu++)
		if (!anchors[cpu])
			anchors[cpu] = anchor_of(map, cpu);
	close(map);
	return ret;
}

static int real_address(uint64_t offset, unsigned cpu, uint64_t *address, struct csw_error *err)
{
	int ret = 0;

	pthread_mutex_lock(&lock);
	if (cpu >= nr_anchors || !anchors[cpu])
		ret = find_areas(cpu, err);
	if (ret == 0 && (cpu >= nr_anchors || !anchors[cpu]))
		ret = csw_error_set(
			err, -EOPNOTSUPP,
			"the kernel's variables of CPU %u cannot be found: it was given "
			"no work in %d ms",
			cpu, PATIENCE_MS);
	if (ret == 0)
		*address = anchors[cpu] + offset;
	pthread_mutex_unlock(&lock);
	return ret;
}

static const struct csw_percpu_ops real_ops = {
	.find = real_find,
	.global = real_global,
	.address = real_address,
	.allowed = real_allowed,
};
static const struct csw_percpu_ops *ops = &real_ops;

void csw_percpu_set_ops_for_tests(const struct csw_percpu_ops *test_ops)
{
	ops = test_ops ? test_ops : &real_ops;
}

int csw_percpu_find(const char *name, struct csw_percpu_variable *out, struct csw_error *err)
{
	return ops->find(name, out, err);
}

int csw_percpu_global(const char *name, uint64_t *address, uint64_t *bytes)
{
	return ops->global(name, address, bytes);
}

int csw_percpu_address(uint64_t offset, unsigned cpu, uint64_t *address, struct csw_error *err)
{
	return ops->address(offset, cpu, address, err);
}

int csw_percpu_allowed(struct csw_error *err)
{
	return ops->allowed ? ops->allowed(err) : 0;
}
