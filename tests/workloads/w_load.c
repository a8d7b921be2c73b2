/*
 * As many context switches as the machine can do: pairs of threads that pass a byte to and fro
 * through pipes, and threads that only yield. Each counts its own getppid calls.
 *
 * Invariant: a thread counts a call right after it was made, so its truth is what the kernel saw.
 */
#include "workload.h"

#include <fcntl.h>
#include <stdatomic.h>

struct player {
	struct truth *truth;
	int in, out; /* pipe ends; -1: a yielder */
	bool serves;
};

static long nr_pairs = 2;
static long nr_yielders = 2;
static long milliseconds = 1000;

static struct truth *truths;
static atomic_bool stop;

/* The serving side ends the game: closing its pipe is what the other one sees as the end. */
static void play(struct player *player)
{
	char byte = 0;

	while (!player->serves || !atomic_load_explicit(&stop, memory_order_relaxed)) {
		if (player->serves && write(player->out, &byte, 1) != 1)
			err(1, "write");
		if (read(player->in, &byte, 1) != 1)
			break;
		count_getppid(player->truth);
		if (!player->serves && write(player->out, &byte, 1) != 1)
			err(1, "write");
	}
	close(player->out);
}

static void *run(void *arg)
{
	struct player *player = arg;

	truth_begin(player->truth);
	if (player->in >= 0) {
		play(player);
		return NULL;
	}
	for (unsigned turn = 0; !atomic_load_explicit(&stop, memory_order_relaxed); turn++) {
		if (turn % 16 == 0)
			count_getppid(player->truth);
		sched_yield();
	}
	return NULL;
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

int main(int argc, char **argv)
{
	const struct option_number options[] = {
		{ "--pairs", 0, 100, &nr_pairs },
		{ "--yielders", 0, 100, &nr_yielders },
		{ "--ms", 1, 600000, &milliseconds },
		{ NULL, 0, 0, NULL },
	};
	FILE *out = options_parse(argc, argv, options);
	size_t nr = (size_t)(2 * nr_pairs + nr_yielders);
	struct player *players = allocate(nr + 1, sizeof(*players));
	pthread_t *threads = allocate(nr + 1, sizeof(*threads));

	truths = truths_open(nr + 1);
	for (size_t i = 0; i < nr; i++)
		players[i] = (struct player){ .truth = &truths[i], .in = -1, .out = -1 };
	for (long i = 0; i < nr_pairs; i++)
		open_pair(&players[2 * i], &players[2 * i + 1]);
	for (size_t i = 0; i < nr; i++)
		thread_start(&threads[i], run, &players[i]);
	sleep_ns((uint64_t)milliseconds * 1000000);
	atomic_store(&stop, true);
	for (size_t i = 0; i < nr; i++)
		thread_join(threads[i]);
	truths_print(out, truths, nr);
	truth_close(out);
	free(threads);
	free(players);
	return 0;
}
