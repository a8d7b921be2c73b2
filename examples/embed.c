/*
 * libcsw in a program of one's own: counts one second of the whole machine and prints its five
 * busiest threads.
 *
 *	cc embed.c $(pkg-config --cflags --libs libcsw)
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <csw/csw.h>

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void count_for_a_second(struct csw_session *s)
{
	struct csw_error error;
	double end = seconds() + 1;
	int ret;

	if (csw_start(s, &error) < 0)
		errx(1, "%s", error.text);
	do {
		ret = csw_poll(s, 100, &error);
	} while (ret > 0 && seconds() < end);
	if (ret < 0 || csw_stop(s, &error) < 0)
		errx(1, "%s", error.text);
}

static void print_busiest(const struct csw_table *t)
{
	for (size_t i = 0; i < csw_table_rows(t); i++) {
		const struct csw_row *row = csw_table_row(t, i);
		struct csw_count faults;

		csw_table_count(t, i, 0, &faults);
		printf("%-8s %7" PRId32 " %7" PRId32 "  %10.3f ms  ", csw_kind_name(row->kind),
		       row->pid, row->tid, (double)row->oncpu_ns / 1e6);
		if (faults.flags & CSW_COUNT_NOT_COUNTED)
			printf("%10s page faults\n", "-");
		else
			printf("%10" PRIu64 " page faults\n", faults.value);
	}
}

int main(int argc, char **argv)
{
	struct csw_opts opts = { .size = sizeof(opts), .driver = argc > 1 ? argv[1] : "auto" };
	struct csw_table_opts order = { .size = sizeof(order), .sort = "oncpu", .top = 5 };
	struct csw_summary summary;
	struct csw_session *s;
	struct csw_table *t;
	struct csw_error error;

	if (csw_open(&s, NULL, "page-faults", &opts, &error) < 0)
		errx(1, "%s", error.text);
	count_for_a_second(s);
	if (csw_table_open(&t, s, CSW_BY_THREAD, &order, &error) < 0)
		errx(1, "%s", error.text);
	print_busiest(t);
	csw_table_summary(t, &summary, sizeof(summary));
	printf("%" PRIu64 " switches; the numbers %s\n", summary.slices,
	       summary.broken ? "do not add up" : "add up");
	csw_table_close(t);
	csw_close(s);
	return summary.broken ? 3 : 0;
}
