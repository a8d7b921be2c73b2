/*
 * Calibration against simulated processors, whose switches cause what a table says: every figure is
 * known. With the argument "kernel": on the real one, where the debug registers and the page faults
 * are the known good and bad example.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands.h"
#include "csw/csw.h"
#include "drivers/perf/sys.h"
#include "engine/tryout.h"
#include "tree.h"

#define SKIPPED 77

static int cpus[2]; /* the first and the last that this test may run on */

static void find_own_cpus(void)
{
	cpu_set_t set;

	cpus[0] = cpus[1] = -1;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET((size_t)cpu, &set))
			continue;
		cpus[0] = cpus[0] < 0 ? cpu : cpus[0];
		cpus[1] = cpu;
	}
}

/* ---- simulated ---- */

static struct csw_calibration calibrate(const char *driver, const char *trigger)
{
	struct csw_opts opts = { .size = sizeof(opts),
				 .driver = driver,
				 .duration_ns = 2000000000 };
	struct csw_calibration c;
	struct csw_error err;

	if (csw_calibrate(&c, trigger, &opts, NULL, NULL, &err))
		fail_msg("%s on %s: %s", trigger, driver, err.text);
	assert_string_equal(c.trigger, trigger);
	assert_int_equal(c.simulated, 1);
	assert_int_equal(c.duration_ns / 1000000, 2000);
	return c;
}

static void check_kind(const struct csw_calibration *c, uint32_t kind, unsigned each)
{
	const struct csw_kind_calibration *k = &c->kinds[kind];

	assert_true(k->switches > 100);
	assert_int_equal(k->occurrences, k->switches * each);
	assert_int_equal(k->histogram[each], k->switches);
	assert_true(fabs(k->mean - each) < 1e-9 && k->stddev < 1e-6);
}

/* All of a whole machine's switches but the first and the last ones of each CPU. */
static void check_judged(const struct csw_calibration *c)
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < CSW_SWITCH_KINDS; k++)
		sum += c->kinds[k].switches;
	assert_int_equal(sum, c->judged);
	assert_true(c->judged < c->switches && c->judged + 100 > c->switches);
}

static void test_amd(void **state)
{
	struct csw_calibration c = calibrate("sim:model=amd", "seg_load");

	(void)state;
	for (uint32_t k = 0; k < CSW_SWITCH_KINDS; k++)
		check_kind(&c, k, 2);
	check_judged(&c);
	assert_int_equal(c.verdict, CSW_VERDICT_EXACT);
	assert_int_equal(c.sav_thread, 2);
	assert_int_equal(c.sav_process, 2);
	assert_true(c.missed == 0 && c.doubled == 0);
	assert_int_equal(c.hardware, 1);
}

static void test_intel(void **state)
{
	struct csw_calibration c = calibrate("sim:model=intel", "tlb_flush");

	(void)state;
	check_kind(&c, CSW_SWITCH_PROCESS, 1);
	check_kind(&c, CSW_SWITCH_THREAD, 0);
	check_judged(&c);
	assert_int_equal(c.verdict, CSW_VERDICT_USABLE);
	assert_int_equal(c.sav_thread, 0);
	assert_int_equal(c.sav_process, 1);
	assert_true(c.missed == 0 && c.doubled == 0);
	c = calibrate("sim:model=intel", "tid_change");
	assert_int_equal(c.verdict, CSW_VERDICT_EXACT);
	assert_int_equal(c.sav_thread, 1);
}

/* What user code and interrupts cause besides makes a proxy worse, and useless in the end. */
static void test_spurious(void **state)
{
	struct csw_calibration little = calibrate("sim:model=intel,spurious=20", "tlb_flush");
	struct csw_calibration much = calibrate("sim:model=intel,spurious=800", "tlb_flush");

	(void)state;
	assert_int_equal(little.verdict, CSW_VERDICT_USABLE);
	assert_true(little.doubled > 0 && little.doubled < 0.05);
	assert_int_equal(much.verdict, CSW_VERDICT_NOT_A_PROXY);
	assert_true(much.doubled > 0.05);
}

static void test_no_proxies(void **state)
{
	static const char *const names[] = { "page-faults", "cycles", "task-clock", "LLC_MISSES" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct csw_calibration c = calibrate("sim:cpus=2", names[i]);

		assert_int_equal(c.verdict, CSW_VERDICT_NOT_A_PROXY);
		assert_int_equal(c.sav_thread, 0);
	}
}

/* An idle task without records hides its switches: they are said not to be judged, and none of the
 * others is judged wrongly. */
static void test_blind_idle(void **state)
{
	struct csw_calibration c = calibrate("sim:model=amd,cpus=4,blind_idle=1", "seg_load");

	(void)state;
	assert_int_equal(c.verdict, CSW_VERDICT_EXACT);
	assert_true(c.judged * 10 < c.switches * 9 && c.judged * 4 > c.switches);
	for (uint32_t k = 0; k < CSW_SWITCH_KINDS; k++)
		check_kind(&c, k, 2);
}

static void test_too_few(void **state)
{
	struct csw_calibration c = calibrate("sim:threads=1,processes=1", "seg_load");

	(void)state;
	assert_int_equal(c.verdict, CSW_VERDICT_TOO_FEW);
}

static int end_at_once(void *ctx, uint64_t ns)
{
	(void)ns;
	++*(int *)ctx;
	return 0;
}

static void test_refused(void **state)
{
	struct csw_opts opts = { .size = sizeof(opts), .driver = "sim" };
	struct csw_calibration c;
	struct csw_error err;
	int calls = 0;

	(void)state;
	assert_int_equal(csw_calibrate(&c, NULL, &opts, NULL, NULL, &err), -EINVAL);
	assert_int_equal(csw_calibrate(&c, "auto", &opts, NULL, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "list triggers"));
	assert_int_equal(csw_calibrate(&c, "no_such", &opts, NULL, NULL, &err), -ENOENT);
	assert_int_equal(csw_calibrate(&c, "seg_load", &opts, end_at_once, &calls, &err), 0);
	assert_int_equal(calls, 1);
	assert_int_equal(c.verdict, CSW_VERDICT_TOO_FEW);
	assert_string_equal(csw_verdict_name(CSW_VERDICT_NOT_A_PROXY), "not a proxy");
	assert_string_equal(csw_verdict_name(99), "?");
	assert_string_equal(csw_switch_kind_name(CSW_SWITCH_FROM_IDLE), "from_idle");
	assert_string_equal(csw_switch_kind_name(99), "?");
}

/* ---- through the command ---- */

static json_t *run_json(const char *arguments)
{
	char line[512];
	json_t *json;
	FILE *out;

	snprintf(line, sizeof(line), "%s calibrate %s --format=json", CSW_SAMPLE, arguments);
	out = popen(line, "r");
	assert_non_null(out);
	json = json_loadf(out, 0, NULL);
	if (pclose(out) || !json)
		fail_msg("%s: no JSON", line);
	return json;
}

static const char *text_of(const json_t *json, const char *key)
{
	return json_string_value(json_object_get(json, key));
}

static int status_of(const char *arguments)
{
	char line[512];

	snprintf(line, sizeof(line), "%s calibrate %s >/dev/null 2>&1", CSW_SAMPLE, arguments);
	return WEXITSTATUS(system(line));
}

static void test_command(void **state)
{
	json_t *json = run_json("--driver=sim:model=amd --trigger=seg_load -d 1"), *kinds;

	(void)state;
	assert_string_equal(text_of(json, "verdict"), "exact");
	assert_true(json_is_true(json_object_get(json, "simulated")));
	assert_string_equal(text_of(json_object_get(json, "trigger"), "name"), "seg_load");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(json, "sav"), "thread")), 2);
	kinds = json_object_get(json, "per_switch");
	assert_int_equal(json_object_size(kinds), CSW_SWITCH_KINDS);
	assert_int_equal(
		json_array_size(json_object_get(json_object_get(kinds, "process"), "histogram")),
		3);
	json_decref(json);
	json = run_json("--driver=sim:model=intel --trigger=tlb_flush -d 1");
	assert_true(json_is_null(json_object_get(json_object_get(json, "sav"), "thread")));
	json_decref(json);
	assert_int_equal(status_of("--driver=sim --trigger=seg_load -d 1"), 0);
	assert_int_equal(status_of("--driver=sim"), 2);
	assert_int_equal(status_of("--driver=sim --trigger=seg_load -p 1"), 2);
	assert_int_equal(status_of("--driver=sim --trigger=seg_load --format=csv"), 2);
	assert_int_equal(status_of("--driver=sim --trigger=seg_load --force"), 2);
	assert_int_equal(status_of("--driver=sim --trigger=no_such"), 2);
}

/* ---- CPUs that come and go ---- */

#define ONLINE "/sys/devices/system/cpu/online"
#define FDS_MAX 256

/* A kernel that counts nothing, on one CPU. When its events are switched off it turns out that this
 * CPU has gone, and another has come. */
static struct {
	uint64_t formats[FDS_MAX]; /* read_format of each event */
	bool gone;
} kernel;

static int fake_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
		     unsigned long flags)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	(void)pid;
	(void)group_fd;
	(void)flags;
	assert_in_range(fd, 0, FDS_MAX - 1);
	assert_int_equal(cpu, cpus[0]);
	kernel.formats[fd] = attr->read_format;
	return fd;
}

static int fake_ioctl(int fd, unsigned long request, unsigned long arg)
{
	char online[32];

	(void)fd;
	(void)arg;
	if (request == PERF_EVENT_IOC_DISABLE && !kernel.gone) {
		kernel.gone = true;
		snprintf(online, sizeof(online), "%d\n", cpus[0] + 1);
		tree_file(ONLINE, online);
	}
	return 0;
}

static int fake_map(void **out, size_t bytes, int fd)
{
	(void)fd;
	*out = calloc(1, bytes);
	return *out ? 0 : -ENOMEM;
}

static void fake_unmap(void *at, size_t bytes)
{
	(void)bytes;
	free(at);
}

/* The trigger and one counter, or, when the kernel has taken the group apart, each by itself. */
static ssize_t fake_read(int fd, void *buf, size_t bytes)
{
	bool group = kernel.formats[fd] & PERF_FORMAT_GROUP;
	uint64_t *words = buf, nr = group ? 3 : 0, events = group && !kernel.gone ? 2 : 1;

	assert_true(bytes >= 8 * sizeof(*words));
	memset(words, 0, 8 * sizeof(*words));
	words[0] = group ? events : 0;
	for (uint64_t i = 0; i < events; i++)
		nr += kernel.formats[fd] & PERF_FORMAT_LOST ? 2 : 1;
	return (ssize_t)((group ? nr : nr + 2) * sizeof(*words));
}

static void fake_close(int fd)
{
	close(fd);
}

static uint64_t fake_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int no_cpu(struct csw_cpu *out)
{
	(void)out;
	return -ENOENT;
}

/* The whole command on that kernel, in a process of its own: what it prints. */
static char *calibrate_on_fake(const char *format)
{
	static const struct csw_tryout_ops tryout = { .perf_event_open = fake_open,
						      .close = close,
						      .cpu = no_cpu };
	char *argv[] = { (char[]){ "calibrate" },
			 (char[]){ "--driver=perf" },
			 (char[]){ "--trigger=page-faults" },
			 (char[]){ "-qd" },
			 (char[]){ "0.1" },
			 strdup(format),
			 NULL };
	int out = memfd_create("stdout", MFD_CLOEXEC), status;
	char *text = calloc(1, 1 << 16);
	pid_t pid;

	assert_true(out >= 0 && text && argv[5]);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(out, STDOUT_FILENO);
		csw_tryout_set_ops_for_tests(&tryout);
		csw_perf_sys = (struct csw_perf_sys){ fake_open, fake_ioctl, fake_map, fake_unmap,
						      fake_read, fake_close, fake_now };
		_exit(csw_cmd_calibrate(6, argv) || fflush(stdout));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(pread(out, text, (1 << 16) - 1, 0) > 0);
	close(out);
	free(argv[5]);
	return text;
}

static void test_cpus_come_and_go(void **state)
{
	char online[32], *text;
	json_t *json;

	(void)state;
	find_own_cpus();
	snprintf(online, sizeof(online), "%d\n", cpus[0]);
	tree_file(ONLINE, online);
	text = calibrate_on_fake("--format=table");
	assert_non_null(strstr(text, "\nCPUs: 1 came online after the start, 1 went offline: what "
				     "ran there then is not counted\n"));
	free(text);
	tree_file(ONLINE, online);
	text = calibrate_on_fake("--format=json");
	json = json_loads(text, 0, NULL);
	assert_int_equal(json_integer_value(json_object_get(json, "cpus_missed")), 1);
	assert_int_equal(json_integer_value(json_object_get(json, "cpus_gone")), 1);
	json_decref(json);
	free(text);
}

/* ---- on the real kernel ---- */

static void check_mean(const json_t *json, const char *kind, double mean)
{
	const json_t *k = json_object_get(json_object_get(json, "per_switch"), kind);

	printf("figure: %s: %lld switches, mean %.4f, spread %.4f\n", kind,
	       (long long)json_integer_value(json_object_get(k, "switches")),
	       json_number_value(json_object_get(k, "mean")),
	       json_number_value(json_object_get(k, "stddev")));
	assert_true(json_integer_value(json_object_get(k, "switches")) >= 30);
	assert_true(fabs(json_number_value(json_object_get(k, "mean")) - mean) < 1e-4);
}

static void test_tid_change(void **state)
{
	json_t *json = run_json("--trigger=tid_change -d 2");

	(void)state;
	check_mean(json, "process", 1);
	check_mean(json, "thread", 1);
	assert_string_equal(text_of(json, "verdict"), "exact");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(json, "sav"), "thread")), 1);
	assert_true(json_is_true(json_object_get(json_object_get(json, "trigger"), "hardware")));
	json_decref(json);
}

static void test_page_faults(void **state)
{
	json_t *json = run_json("--trigger=page-faults -d 1");

	(void)state;
	assert_string_equal(text_of(json, "verdict"), "not a proxy");
	json_decref(json);
}

/* ---- its load ---- */

#define PATIENCE_MS 20000

/* A calibration that goes on beside the test. */
struct run {
	pid_t pid;
	int err;
	char *complaints;
};

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

/* In a process group of its own with a parent outside it, as a shell's: what comes from the
 * terminal stops only such ones. before (NULL: nothing) restricts what it may do. */
static void start(struct run *run, const char *arguments, void (*before)(void))
{
	char line[512];

	snprintf(line, sizeof(line), "exec %s calibrate --driver=perf --trigger=page-faults %s",
		 CSW_SAMPLE, arguments);
	run->complaints = NULL;
	run->err = memfd_create("stderr", MFD_CLOEXEC);
	assert_true(run->err >= 0);
	run->pid = fork();
	assert_true(run->pid >= 0);
	if (!run->pid) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(run->err, STDERR_FILENO);
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
		if (before)
			before();
		execl("/bin/sh", "sh", "-c", line, NULL);
		_exit(99);
	}
	setpgid(run->pid, run->pid);
}

/* Its exit status, and what it has said meanwhile: the caller's to free. */
static int finish(struct run *run)
{
	off_t bytes;
	int status;

	assert_int_equal(waitpid(run->pid, &status, 0), run->pid);
	bytes = lseek(run->err, 0, SEEK_END);
	run->complaints = calloc(1, (size_t)bytes + 1);
	assert_non_null(run->complaints);
	assert_int_equal(pread(run->err, run->complaints, (size_t)bytes, 0), bytes);
	close(run->err);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* What there is of a process group. */
struct group {
	unsigned nr;         /* processes, but for those that have ended */
	unsigned long ticks; /* of CPU time that they had */
	bool elsewhere;      /* one that works may run on another CPU than `cpu` */
};

static bool is_bound_to(pid_t pid, int cpu)
{
	cpu_set_t set;

	return sched_getaffinity(pid, sizeof(set), &set) < 0 ||
	       (CPU_COUNT(&set) == 1 && CPU_ISSET((size_t)cpu, &set));
}

struct process {
	int pid, parent, group;
	char state;
	unsigned long ticks;
};

static bool read_process(const char *name, struct process *p)
{
	unsigned long user = 0, system = 0;
	char path[300], text[1024], *end;
	ssize_t bytes;
	int fd;

	*p = (struct process){ .pid = atoi(name) };
	snprintf(path, sizeof(path), "/proc/%s/stat", name);
	fd = p->pid ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return false;
	bytes = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[bytes > 0 ? bytes : 0] = '\0';
	end = strrchr(text, ')');
	if (!end || sscanf(end, ") %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &p->state,
			   &p->parent, &p->group, &user, &system) != 5)
		return false;
	p->ticks = user + system;
	return p->state != 'Z' && p->state != 'X';
}

/* Calls fn with every process that has not ended. */
static void each_process(void (*fn)(void *ctx, const struct process *p), void *ctx)
{
	struct dirent *entry;
	struct process p;
	DIR *dir = opendir("/proc");

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (read_process(entry->d_name, &p))
			fn(ctx, &p);
	closedir(dir);
}

struct search {
	int parent, group, cpu; /* group: out, of the child of parent that leads one */
	struct group found;
};

static void look_for_load(void *ctx, const struct process *p)
{
	struct search *s = ctx;

	if (p->parent == s->parent && p->group == p->pid)
		s->group = p->pid;
}

static void add_up(void *ctx, const struct process *p)
{
	struct search *s = ctx;

	if (p->group != s->group)
		return;
	s->found.nr++;
	s->found.ticks += p->ticks;
	s->found.elsewhere |= p->pid != s->group && !is_bound_to(p->pid, s->cpu);
}

static struct group group_of(int group, int cpu)
{
	struct search s = { .group = group, .cpu = cpu };

	each_process(add_up, &s);
	return s.found;
}

/* The load's process group, once it works. */
static int await_load(const struct run *run)
{
	struct search s = { .parent = run->pid };

	for (int ms = 0; ms < PATIENCE_MS; ms += 20, sleep_ms(20)) {
		each_process(look_for_load, &s);
		if (s.group && group_of(s.group, 0).ticks > 2)
			return s.group;
	}
	fail_msg("there is no load");
	return 0;
}

static void stay_on_first(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpus[0], &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		_exit(98);
}

/* With -C the load is there, and where it may not be, that is said. */
static void test_load_is_on_the_cpus(void **state)
{
	char arguments[64], words[64];
	struct run run;
	int group;

	(void)state;
	find_own_cpus();
	if (cpus[0] == cpus[1]) {
		printf("skip: the load's CPUs: there is but one to choose from\n");
		skip();
	}
	snprintf(arguments, sizeof(arguments), "-d 60 -C %d", cpus[1]);
	start(&run, arguments, NULL);
	group = await_load(&run);
	assert_int_equal(group_of(group, cpus[1]).elsewhere, false);
	kill(run.pid, SIGINT);
	assert_int_equal(finish(&run), 0);
	assert_string_equal(run.complaints, "");
	free(run.complaints);

	snprintf(arguments, sizeof(arguments), "-d 0.1 -C %d,%d", cpus[0], cpus[1]);
	snprintf(words, sizeof(words), "may not run on CPU %d (", cpus[1]);
	start(&run, arguments, stay_on_first);
	assert_int_equal(finish(&run), 0);
	assert_non_null(strstr(run.complaints, words));
	assert_ptr_equal(strchr(run.complaints, '\n'), strrchr(run.complaints, '\n'));
	free(run.complaints);

	/* A CPU that is not there is one line, too. */
	start(&run, "-d 0.1 -C 65535", NULL);
	assert_int_equal(finish(&run), 1);
	assert_non_null(strstr(run.complaints, "CPU 65535 does not exist"));
	assert_ptr_equal(strchr(run.complaints, '\n'), strrchr(run.complaints, '\n'));
	free(run.complaints);
}

static void await_stop(const struct run *run)
{
	int status;

	assert_int_equal(waitpid(run->pid, &status, WUNTRACED), run->pid);
	assert_true(WIFSTOPPED(status));
}

/* Ctrl-Z stops csw-sample and not the load, which is in no process group of the terminal's; SIGSTOP
 * cannot even be seen. The load rests all the same, goes on with SIGCONT, and does not survive. */
static void test_load_stops_and_ends(void **state)
{
	const int signals[] = { SIGTSTP, SIGSTOP };
	unsigned long before;
	struct run run;
	int group;

	(void)state;
	start(&run, "-d 60", NULL);
	group = await_load(&run);
	for (size_t i = 0; i < 2; i++) {
		kill(run.pid, signals[i]);
		await_stop(&run);
		sleep_ms(600); /* it notices within a quarter of a second */
		before = group_of(group, 0).ticks;
		sleep_ms(500);
		assert_in_range(group_of(group, 0).ticks - before, 0, 1);
		kill(run.pid, SIGCONT);
		for (int ms = 0; ms < PATIENCE_MS && group_of(group, 0).ticks < before + 5;
		     ms += 20)
			sleep_ms(20);
		assert_true(group_of(group, 0).ticks >= before + 5);
	}
	kill(run.pid, SIGKILL);
	assert_int_equal(finish(&run), 1000 + SIGKILL);
	for (int ms = 0; ms < PATIENCE_MS && group_of(group, 0).nr; ms += 20)
		sleep_ms(20);
	assert_int_equal(group_of(group, 0).nr, 0);
	free(run.complaints);
}

#define LOAD_WORD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)

/* No new thread, or not even a process, as at a limit on their number. What clone3 is
 * for is not to be seen from outside: libc does without it. The flags lie in the lower half, which
 * comes first on the machines that there are tests for. */
static void forbid(bool processes)
{
	struct sock_filter code[] = {
		LOAD_WORD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		RETURN(SECCOMP_RET_ERRNO | ENOSYS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
		LOAD_WORD(args[0]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, processes ? ~0u : CLONE_THREAD, 0, 1),
		RETURN(SECCOMP_RET_ERRNO | EAGAIN),
		RETURN(SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* which takes a process of its own */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(97);
}

static void forbid_threads(void)
{
	forbid(false);
}

static void forbid_processes(void)
{
	forbid(true);
}

/* Then the machine's own switches are what there is, and that is said, with the remedy. */
static void test_load_that_cannot_start(void **state)
{
	void (*const limits[])(void) = { forbid_threads, forbid_processes };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct run run;
		int status;

		start(&run, "-d 0.1", limits[i]);
		status = finish(&run);
		if (status == 97) {
			printf("skip: a load that cannot start: no system call can be forbidden "
			       "here\n");
			free(run.complaints);
			skip();
		}
		assert_int_equal(status, 0);
		assert_non_null(strstr(run.complaints, "the load of calibrate cannot start"));
		assert_non_null(strstr(run.complaints, "ulimit -u"));
		assert_non_null(strstr(run.complaints, "only the machine's own switches"));
		assert_ptr_equal(strchr(run.complaints, '\n'), strrchr(run.complaints, '\n'));
		free(run.complaints);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest simulated[] = {
		cmocka_unit_test(test_amd),
		cmocka_unit_test(test_intel),
		cmocka_unit_test(test_spurious),
		cmocka_unit_test(test_no_proxies),
		cmocka_unit_test(test_blind_idle),
		cmocka_unit_test(test_too_few),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_command),
		cmocka_unit_test_setup_teardown(test_cpus_come_and_go, tree_setup, tree_teardown),
	};
	const struct CMUnitTest real[] = {
		cmocka_unit_test(test_tid_change),
		cmocka_unit_test(test_page_faults),
		cmocka_unit_test(test_load_is_on_the_cpus),
		cmocka_unit_test(test_load_stops_and_ends),
		cmocka_unit_test(test_load_that_cannot_start),
	};

	if (argc < 2 || strcmp(argv[1], "kernel") != 0)
		return cmocka_run_group_tests(simulated, NULL, NULL);
	if (status_of("--trigger=tid_change -d 0.1")) {
		printf("skip: tid_change does not work here: see csw-sample list triggers\n");
		return SKIPPED;
	}
	return cmocka_run_group_tests(real, NULL, NULL);
}
