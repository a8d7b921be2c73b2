/*
 * As many context switches as the machine can do: pairs of threads that pass a byte to and fro
 * through pipes, and threads that only yield, some of which never call getppid. Each counts its own
 * getppid calls and the pages that it faults in again and again.
 *
 * Beside what each thread did in all, the workload says every 10 ms how far each one had come, so
 * that a test knows what happened while its reader could not look.
 *
 * Invariant: a thread counts a call or a page right after it, so its truth is what the kernel saw,
 * and a moment never tells of more than that.
 */
#include "workload.h"

#include <fcntl.h>
#include <stdatomic.h>

#define MOMENT_NS 10000000

struct player {
	struct truth *truth;
	volatile unsigned char *page;
	int in, out; /* pipe ends; -1: a yielder */
	bool serves;
	bool quiet; /* calls getppid never */
};

/* How far all threads had come, at some time between from_ns and to_ns. */
struct moment {
	uint64_t from_ns, to_ns;
	struct truth *truths;
};

static long nr_pairs = 2;
static long nr_yielders = 2;
static long nr_quiet = 1;
static long milliseconds = 1000;

static struct truth *truths;
static atomic_bool stop;

static bool stopped(void)
{
	return atomic_load_explicit(&stop, memory_order_relaxed);
}

/* Gives its page back and writes it anew: one fault. */
static void fault_in(struct player *player)
{
	if (madvise((void *)player->page, (size_t)sysconf(_SC_PAGESIZE), MADV_DONTNEED))
		err(1, "madvise");
	*player->page = 1;
	player->truth->pages++;
}

static void take_turn(struct player *player, unsigned turn)
{
	if (!player->quiet && (player->in >= 0 || turn % 16 == 0))
		count_getppid(player->truth);
	if (turn % 64 == 0)
		fault_in(player);
}

/* The serving side ends the game: closing its pipe is what the other one sees as the end. */
static void play(struct player *player)
{
	char byte = 0;

	for (unsigned turn = 0; !player->serves || !stopped(); turn++) {
		if (player->serves && write(player->out, &byte, 1) != 1)
			err(1, "write");
		if (read(player->in, &byte, 1) != 1)
			break;
		take_turn(player, turn);
		if (!player->serves && write(player->out, &byte, 1) != 1)
			err(1, "write");
	}
	close(player->out);
}

static void *run(void *arg)
{
	struct player *player = arg;
	struct truth *truth = player->truth;

	truth_begin(truth);
	truth->faults = thread_faults(); /* warms the reader up */
	player->page = map_zeroed((size_t)sysconf(_SC_PAGESIZE), MAP_PRIVATE);
	if (player->in >= 0)
		play(player);
	for (unsigned turn = 0; player->in < 0 && !stopped(); turn++) {
		take_turn(player, turn);
		sched_yield();
	}
	sleep_ns(2000000); /* as in w_busy */
	truth->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	truth->switches = thread_switches();
	truth->faults = thread_faults();
	leave_thread();
}

static void open_pair(struct player *a, struct player *b)
{
	int to[2], fro[2];

	if (pipe2(to, O_CLOEXEC) || pipe2(fro, O_CLOEXEC))
		err(1, "pipe2");
	a->out = to[1];
	b->in = to[0];
	b->out = fro[1];
	a->in = fro[0];
	a->serves = true;
}

/* ---- moments ---- */

static void take_moment(struct moment *moment, const pthread_t *threads, size_t nr)
{
	clockid_t clock;

	moment->from_ns = clock_ns(CLOCK_MONOTONIC);
	for (size_t i = 0; i < nr; i++) {
		struct truth *at = &moment->truths[i];

		at->getppid = __atomic_load_n(&truths[i].getppid, __ATOMIC_RELAXED);
		at->pages = __atomic_load_n(&truths[i].pages, __ATOMIC_RELAXED);
		if (pthread_getcpuclockid(threads[i], &clock))
			errx(1, "pthread_getcpuclockid");
		at->cpu_ns = clock_ns(clock);
	}
	moment->to_ns = clock_ns(CLOCK_MONOTONIC);
}

static void print_moment(FILE *out, const struct moment *moment, size_t nr)
{
	fprintf(out, "{\"what\":\"moment\",\"from_ns\":%llu,\"to_ns\":%llu,\"threads\":[",
		(unsigned long long)moment->from_ns, (unsigned long long)moment->to_ns);
	for (size_t i = 0; i < nr; i++)
		fprintf(out, "%s[%llu,%llu,%llu]", i ? "," : "",
			(unsigned long long)moment->truths[i].getppid,
			(unsigned long long)moment->truths[i].pages,
			(unsigned long long)moment->truths[i].cpu_ns);
	fprintf(out, "]}\n");
}

/* Returns how many moments there were until the time was over. */
static size_t watch(struct moment *moments, size_t max, const pthread_t *threads, size_t nr)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)milliseconds * 1000000;
	uint64_t now_ns;
	size_t n = 0;

	while ((now_ns = clock_ns(CLOCK_MONOTONIC)) < end_ns) {
		uint64_t left_ns = end_ns - now_ns;

		sleep_ns(left_ns < MOMENT_NS ? left_ns : MOMENT_NS);
		if (n < max)
			take_moment(&moments[n++], threads, nr);
	}
	return n;
}

/* ---- all of it ---- */

static struct player *make_players(size_t nr)
{
	struct player *players = allocate(nr + 1, sizeof(*players));

	for (size_t i = 0; i < nr; i++)
		players[i] = (struct player){
			.truth = &truths[i],
			.in = -1,
			.out = -1,
			.quiet = i >= (size_t)(2 * nr_pairs + nr_yielders),
		};
	for (long i = 0; i < nr_pairs; i++)
		open_pair(&players[2 * i], &players[2 * i + 1]);
	return players;
}

int main(int argc, char **argv)
{
	const struct option_number options[] = {
		{ "--pairs", 0, 100, &nr_pairs },
		{ "--yielders", 0, 100, &nr_yielders },
		{ "--quiet", 0, 100, &nr_quiet },
		{ "--ms", 1, 600000, &milliseconds },
		{ NULL, 0, 0, NULL },
	};
	FILE *out = options_parse(argc, argv, options);
	size_t nr = (size_t)(2 * nr_pairs + nr_yielders + nr_quiet);
	size_t max = (size_t)milliseconds * 1000000 / MOMENT_NS + 1, nr_moments;
	pthread_t *threads = allocate(nr + 1, sizeof(*threads));
	struct moment *moments = allocate(max, sizeof(*moments));
	struct truth *marks = allocate(max * (nr + 1), sizeof(*marks));
	struct player *players;

	truths = truths_open(nr + 1);
	players = make_players(nr);
	for (size_t i = 0; i < max; i++)
		moments[i].truths = marks + i * nr;
	for (size_t i = 0; i < nr; i++)
		thread_start(&threads[i], run, &players[i]);
	nr_moments = watch(moments, max, threads, nr);
	atomic_store(&stop, true);
	for (size_t i = 0; i < nr; i++)
		thread_join(threads[i]);
	truths_print(out, truths, nr);
	for (size_t i = 0; i < nr_moments; i++)
		print_moment(out, &moments[i], nr);
	truth_close(out);
	free(threads);
	free(players);
	free(moments);
	free(marks);
	return 0;
}
