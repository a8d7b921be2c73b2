/*
 * What it costs to read a recording: a perf.data file of the simulated machine, as perf record
 * would have written it, through csw-sample report, beside what perf itself offers for the same
 * file.
 *
 *	bench_replay --write FILE MILLIONS    writes so many million switches with three counters
 *	bench_replay --run CSW-SAMPLE FILE    all of them on the same file, in one run
 *	bench_replay [--json] [--quick]       writes a small one and reads it in this process
 *
 * Every reader's standard output goes nowhere, and time is the wall's. Invariant: what was read is
 * checked against what was written.
 */
#include "bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "csw/csw.h"
#include "engine/driver.h"
#include "tests/perfdata_write.h"

#define CPUS 4
#define COUNTERS 3
#define GOAL_SCRIPT 30.0
#define GOAL_STATS 3.0

struct writing {
	struct pd w;
	const struct csw_driver_ops *ops;
	struct csw_driver *drv;
	uint64_t nr_switches, nr_records;
	uint64_t trigger[CPUS]; /* the last value: a file's sum is without the first */
};

static void make_attrs(struct pd *w)
{
	static const struct {
		const char *name;
		uint32_t type;
		uint64_t config;
	} events[] = { { "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
		       { "task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
		       { "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
		       { "cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES } };

	for (unsigned i = 0; i < 1 + COUNTERS; i++) {
		struct pd_attr *attr = &w->attrs[w->nr_attrs++];

		*attr = (struct pd_attr){
			.type = events[i].type,
			.config = events[i].config,
			.name = events[i].name,
			.period = i == 0,
			.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
				       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_READ,
			.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID,
			.flags = PD_SAMPLE_ID_ALL | (i == 0 ? PD_CONTEXT_SWITCH : 0),
			.nr_ids = CPUS,
		};
		for (unsigned cpu = 0; cpu < CPUS; cpu++)
			attr->ids[cpu] = 100 + i * CPUS + cpu;
	}
}

/* The simulated machine's records as a kernel would lay them out. */
static void put_record(struct writing *g, const struct csw_record *rec)
{
	struct pd *w = &g->w;
	const struct pd_attr *attr = &w->attrs[0];
	uint64_t ids[1 + COUNTERS];
	struct pd_id id = {
		.pid = rec->pid, .tid = rec->tid, .time = rec->time_ns, .cpu = rec->cpu
	};
	bool out = rec->type == CSW_RECORD_SWITCH_OUT;

	id.id = attr->ids[rec->cpu % CPUS];
	switch (rec->type) {
	case CSW_RECORD_SAMPLE:
		for (unsigned i = 0; i < 1 + COUNTERS; i++)
			ids[i] = w->attrs[i].ids[rec->cpu % CPUS];
		pd_sample(w, attr,
			  &(struct pd_sample){ .id = id,
					       .values = rec->values,
					       .value_ids = ids,
					       .nr = 1 + COUNTERS });
		g->nr_switches++;
		break;
	case CSW_RECORD_SWITCH_OUT:
	case CSW_RECORD_SWITCH_IN:
		pd_switch(w, attr, &id, out, out && (rec->flags & CSW_RECORD_PREEMPTED),
			  rec->other_pid, rec->other_tid);
		break;
	case CSW_RECORD_FORK:
	case CSW_RECORD_EXIT:
		pd_task(w, attr, &id,
			rec->type == CSW_RECORD_FORK ? PERF_RECORD_FORK : PERF_RECORD_EXIT,
			rec->pid, rec->tid, rec->other_pid, rec->other_tid);
		break;
	case CSW_RECORD_TASK:
	case CSW_RECORD_COMM:
		pd_comm(w, attr, &id, rec->pid, rec->tid, rec->comm);
		break;
	default:
		return;
	}
	g->nr_records++;
}

static void put_task(void *ctx, const struct csw_record *rec)
{
	struct csw_record found = *rec;

	found.time_ns = 0;
	found.cpu = 0;
	put_record(ctx, &found);
}

/* One ring after the other, then the end of a round: as perf record goes over them. */
static int put_round(struct writing *g)
{
	struct csw_record rec;

	g->ops->snapshot(g->drv);
	for (unsigned ring = 0; ring < g->ops->nr_rings(g->drv); ring++) {
		int ret;

		while ((ret = g->ops->next(g->drv, ring, &rec)) > 0)
			put_record(g, &rec);
		if (ret < 0)
			return ret;
	}
	pd_round(&g->w);
	return 0;
}

static int simulate(struct writing *g, uint64_t switches, struct csw_error *err)
{
	static const char *const events[] = { "task-clock", "page-faults", "LLC_MISSES" };
	struct csw_sink sink = { .put = put_task, .ctx = g };
	struct csw_plan plan = {
		.driver_opts = "cpus=4,threads=200,processes=20,switches=100000,ring=65536"
	};
	int ret;

	/* So many a second and CPU are wished; idle CPUs switch less. */
	plan.duration_ns = (switches / (CPUS * 50000) + 1) * 1000000000ull * 4;
	g->ops = &csw_sim_driver;
	ret = g->ops->resolve_trigger("switch", 1, &plan.trigger, err);
	for (unsigned i = 0; ret == 0 && i < COUNTERS; i++)
		ret = g->ops->resolve_counter(events[i], &plan.counters[plan.nr_counters++], err);
	if (ret == 0)
		ret = g->ops->open(&g->drv, &plan, err);
	if (ret == 0)
		ret = g->ops->start(g->drv, &sink, err);
	while (ret == 0 && g->nr_switches < switches) {
		int go_on = g->ops->wait(g->drv, 20, err);

		ret = go_on < 0 ? go_on : put_round(g);
		if (!go_on)
			break;
	}
	g->ops->close(g->drv);
	return ret;
}

static int write_file(struct writing *g, const char *path, uint64_t switches)
{
	struct csw_error err = { .text = "" };
	int ret;

	memset(g, 0, sizeof(*g));
	g->w.file = fopen(path, "w+");
	if (!g->w.file) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -errno;
	}
	setvbuf(g->w.file, NULL, _IOFBF, 1 << 20);
	make_attrs(&g->w);
	pd_head(&g->w);
	ret = simulate(g, switches, &err);
	pd_finish(&g->w);
	if (fclose(g->w.file))
		ret = -errno;
	if (ret < 0)
		fprintf(stderr, "%s: %s\n", path, err.text);
	return ret;
}

/* ---- in this process ---- */

static bool read_file(const char *path, const struct writing *g, double *ns)
{
	struct csw_opts opts = { .size = sizeof(opts), .input = path };
	struct csw_error err = { .text = "" };
	struct csw_summary sum = { .broken = 1 };
	struct csw_session *s = NULL;
	struct csw_table *table = NULL;
	double start = bench_now_ns();
	int ret = csw_open(&s, NULL, NULL, &opts, &err);

	if (ret == 0)
		ret = csw_start(s, &err);
	while (ret == 0 && (ret = csw_poll(s, 0, &err)) > 0)
		ret = 0;
	if (ret == 0)
		ret = csw_stop(s, &err);
	*ns = bench_now_ns() - start;
	if (ret == 0)
		ret = csw_table_open(&table, s, CSW_BY_THREAD, NULL, &err);
	if (ret == 0)
		csw_table_summary(table, &sum, sizeof(sum));
	csw_table_close(table);
	csw_close(s);
	if (ret < 0)
		fprintf(stderr, "%s\n", err.text);
	/* Each CPU's first sample begins its counting. */
	return ret == 0 && !sum.broken && sum.samples + CPUS >= g->nr_switches &&
	       sum.samples <= g->nr_switches;
}

static int bench_small(const struct bench_args *args)
{
	double ns[BENCH_ROUNDS], median;
	char path[] = "/tmp/csw-replay-XXXXXX";
	static struct writing g;
	bool right = true;
	struct stat st = { .st_size = 0 };
	int fd = mkstemp(path);

	if (fd < 0)
		return 1;
	close(fd);
	right = write_file(&g, path, args->quick ? 2000 : 1000000) == 0;
	for (int i = 0; i < BENCH_ROUNDS && right; i++)
		right = read_file(path, &g, &ns[i]);
	if (stat(path, &st) < 0)
		right = false;
	unlink(path);
	if (!right) {
		fprintf(stderr, "what was read is not what was written\n");
		return 1;
	}
	median = bench_median(ns);
	printf(args->json ? "{ \"bench\": \"replay\", \"switches\": %llu, \"bytes\": %lld, \"ns\": "
			    "%.1f, "
			    "\"mb_per_s\": %.0f }\n"
			  : "%llu switches in %lld bytes: %.1f ns a record, %.0f MB/s\n",
	       (unsigned long long)g.nr_switches, (long long)st.st_size,
	       median / (double)g.nr_records, (double)st.st_size * 1e3 / median);
	return 0;
}

/* ---- beside perf ---- */

/* Seconds, or -1; *peak_kib: the most memory that it had. */
static double run_shell(const char *command, long *peak_kib)
{
	double start = bench_now_ns();
	struct rusage usage;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || !WIFEXITED(status) ||
	    WEXITSTATUS(status))
		return -1;
	*peak_kib = usage.ru_maxrss;
	return (bench_now_ns() - start) / 1e9;
}

static int run_all(const char *csw, const char *path)
{
	static const char awk[] = "awk '/context-switches/ { n[$1 \" \" $2]++ } "
				  "END { for (k in n) print n[k], k }'";
	char command[4096];
	struct stat st;
	double own, script, stats;
	long own_kib = 0, kib = 0;

	if (stat(path, &st) < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	/* Once before, so that nobody has to wait for the disk more than the others. */
	snprintf(command, sizeof(command), "cat '%s' >/dev/null", path);
	run_shell(command, &kib);
	snprintf(command, sizeof(command), "exec '%s' report -i '%s' -o /dev/null", csw, path);
	own = run_shell(command, &own_kib);
	snprintf(command, sizeof(command), "exec perf report --stats -i '%s' >/dev/null 2>&1",
		 path);
	stats = run_shell(command, &kib);
	snprintf(command, sizeof(command), "perf script -i '%s' 2>/dev/null | %s >/dev/null", path,
		 awk);
	script = run_shell(command, &kib);
	if (own < 0 || stats < 0 || script < 0) {
		fprintf(stderr,
			"a reader failed: csw-sample %.1f, perf report %.1f, perf script %.1f\n",
			own, stats, script);
		return 1;
	}
	printf("%.0f MB: csw-sample report %.2f s, %.0f MB/s, %ld KiB at most; "
	       "perf report --stats %.2f s, %.1f times as long (goal: >= %.0f); "
	       "perf script | awk %.2f s, %.1f times as long (goal: >= %.0f)\n",
	       (double)st.st_size / 1e6, own, (double)st.st_size / 1e6 / own, own_kib, stats,
	       stats / own, GOAL_STATS, script, script / own, GOAL_SCRIPT);
	return 0;
}

int main(int argc, char **argv)
{
	static struct writing g;
	struct bench_args args;

	if (argc == 4 && !strcmp(argv[1], "--write")) {
		if (write_file(&g, argv[2], strtoull(argv[3], NULL, 10) * 1000000) < 0)
			return 1;
		printf("%llu switches, %llu records\n", (unsigned long long)g.nr_switches,
		       (unsigned long long)g.nr_records);
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "--run"))
		return run_all(argv[2], argv[3]);
	bench_args_parse(&args, argc, argv);
	return bench_small(&args);
}
