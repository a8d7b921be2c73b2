/*
 * The names nearest to a mistyped one.
 *
 * Invariant: best[0..nr) is sorted by distance, names of one distance in the order of their offer,
 * and no name is there twice.
 */
#include "engine/names.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NAME_BYTES (sizeof(((struct csw_nearest *)0)->best[0].name))

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned ab = a < b ? a : b;

	return ab < c ? ab : c;
}

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Insertions, deletions, replacements and swaps of neighbours that lead from a to b; both shorter
 * than NAME_BYTES. */
static unsigned edit_distance(const char *a, size_t nr_a, const char *b, size_t nr_b)
{
	unsigned rows[3][NAME_BYTES + 1];
	unsigned *before = rows[0], *last = rows[1], *now = rows[2];

	for (size_t j = 0; j <= nr_b; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= nr_a; i++) {
		unsigned *oldest = before;

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= nr_b; j++) {
			now[j] = min3(now[j - 1] + 1, last[j] + 1,
				      last[j - 1] + !same(a[i - 1], b[j - 1]));
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
				now[j] = min3(now[j], before[j - 2] + 1, now[j]);
		}
		before = last;
		last = now;
		now = oldest;
	}
	return last[nr_b];
}

/* Farther than that and a name is no help any more: about a quarter of what was typed. */
static unsigned distance_limit(size_t nr_wanted)
{
	return nr_wanted < 5 ? 1 : (unsigned)nr_wanted / 4 + 1;
}

void csw_nearest_init(struct csw_nearest *n, const char *wanted)
{
	memset(n, 0, sizeof(*n));
	n->wanted = wanted;
}

static bool offered_before(const struct csw_nearest *n, const char *name)
{
	for (size_t i = 0; i < n->nr; i++)
		if (!strcasecmp(n->best[i].name, name))
			return true;
	return false;
}

void csw_nearest_offer(struct csw_nearest *n, const char *name)
{
	csw_nearest_offer_as(n, name, name);
}

void csw_nearest_offer_as(struct csw_nearest *n, const char *name, const char *written)
{
	/* strnlen: what was typed may be a megabyte long, and this is called for thousands of
	 * names. */
	size_t nr_wanted = strnlen(n->wanted, NAME_BYTES), nr_name = strnlen(name, NAME_BYTES);
	size_t nr_written = strnlen(written, NAME_BYTES);
	size_t apart = nr_wanted > nr_name ? nr_wanted - nr_name : nr_name - nr_wanted;
	unsigned distance;
	size_t at;

	if (!nr_wanted || !nr_name || nr_wanted == NAME_BYTES || nr_name == NAME_BYTES ||
	    nr_written == NAME_BYTES || apart > distance_limit(nr_wanted))
		return;
	distance = edit_distance(n->wanted, nr_wanted, name, nr_name);
	if (distance > distance_limit(nr_wanted) || offered_before(n, written))
		return;
	for (at = n->nr; at > 0 && n->best[at - 1].distance > distance; at--)
		if (at < CSW_NEAREST_MAX)
			n->best[at] = n->best[at - 1];
	if (at == CSW_NEAREST_MAX)
		return;
	n->best[at].distance = distance;
	memcpy(n->best[at].name, written, nr_written + 1);
	if (n->nr < CSW_NEAREST_MAX)
		n->nr++;
}

const char *csw_nearest_text(const struct csw_nearest *n, char *text, size_t bytes)
{
	size_t used = 0;

	if (bytes)
		text[0] = '\0';
	/* Beside a very near name the far ones are noise. */
	for (size_t i = 0; i < n->nr && n->best[i].distance <= 2 * n->best[0].distance + 1; i++) {
		size_t need = strlen(n->best[i].name) + (i ? 2 : 0);

		if (used + need >= bytes)
			break; /* whole names only */
		used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "",
					 n->best[i].name);
	}
	return text;
}

const char *csw_nearest_suffix(const struct csw_nearest *n, char *text, size_t bytes)
{
	static const char start[] = "; nearest: ";
	size_t nr = sizeof(start) - 1;

	if (!bytes)
		return text;
	text[0] = '\0';
	if (bytes <= nr || !*csw_nearest_text(n, text + nr, bytes - nr))
		text[0] = '\0';
	else
		memcpy(text, start, nr);
	return text;
}
