/*
 * One stream in time order out of all rings of a driver.
 *
 * The bounded window is the rings themselves: a snapshot notes how far each is filled and a time,
 * the horizon, up to which nothing can be missing; records up to the horizon are handed out in
 * order, the rest waits for the next snapshot. Nothing is copied aside but the next record of each
 * ring.
 *
 * Invariant: records of one ring keep their order; across rings times do not go back, but for a
 * record whose writer was stopped between taking the time and writing it (counted as late).
 */
#ifndef CSW_ENGINE_MERGE_H
#define CSW_ENGINE_MERGE_H

#include "engine/driver.h"

struct csw_merge {
	const struct csw_driver_ops *ops;
	struct csw_driver *drv; /* borrowed */
	unsigned nr;
	struct csw_record *heads; /* the next record of each ring ... */
	bool *has;                /* ... if there is one */
	uint32_t *heap;           /* rings that have one, the earliest first */
	uint64_t last_ns, late;
};

int csw_merge_init(struct csw_merge *m, const struct csw_driver_ops *ops,
		   struct csw_driver *drv); /* 0 or -ENOMEM */
void csw_merge_free(struct csw_merge *m);

/* Takes a snapshot and hands out all records up to its horizon. 0, or the first error of next() or
 * put(). */
int csw_merge_run(struct csw_merge *m, int (*put)(void *ctx, const struct csw_record *rec),
		  void *ctx);

#endif
