/* Helping with mistyped names: which known names are nearest. */
#ifndef CSW_ENGINE_NAMES_H
#define CSW_ENGINE_NAMES_H

#include <stddef.h>

#define CSW_NEAREST_MAX 5

/* Collects the names nearest to a wanted one, by edit distance without regard to case; feed it
 * every known name. */
struct csw_nearest {
	const char *wanted;
	size_t nr;
	struct {
		unsigned distance;
		char name[128];
	} best[CSW_NEAREST_MAX];
};

void csw_nearest_init(struct csw_nearest *n, const char *wanted);
void csw_nearest_offer(struct csw_nearest *n, const char *name);
/* The same, where what is to be written is another name than what is compared. */
void csw_nearest_offer_as(struct csw_nearest *n, const char *name, const char *written);
/* "page-faults, major-faults" into text; "" when nothing is near. Returns text. */
const char *csw_nearest_text(const struct csw_nearest *n, char *text, size_t bytes);
/* The same as the end of a sentence: "; nearest: page-faults, major-faults", or "". */
const char *csw_nearest_suffix(const struct csw_nearest *n, char *text, size_t bytes);

#endif
