/* Merging rings by time; see merge.h. */
#include "engine/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int csw_merge_init(struct csw_merge *m, const struct csw_driver_ops *ops, struct csw_driver *drv)
{
	*m = (struct csw_merge){ .ops = ops, .drv = drv, .nr = ops->nr_rings(drv) };
	m->heads = calloc(m->nr, sizeof(*m->heads));
	m->has = calloc(m->nr, sizeof(*m->has));
	m->heap = calloc(m->nr, sizeof(*m->heap));
	if (m->heads && m->has && m->heap)
		return 0;
	csw_merge_free(m);
	return -ENOMEM;
}

void csw_merge_free(struct csw_merge *m)
{
	free(m->heads);
	free(m->has);
	free(m->heap);
	*m = (struct csw_merge){ .nr = 0 };
}

static bool earlier(const struct csw_merge *m, uint32_t a, uint32_t b)
{
	return m->heads[a].time_ns < m->heads[b].time_ns;
}

static void sift_down(struct csw_merge *m, unsigned nr, unsigned i)
{
	uint32_t ring = m->heap[i];

	for (;;) {
		unsigned child = 2 * i + 1;

		if (child + 1 < nr && earlier(m, m->heap[child + 1], m->heap[child]))
			child++;
		if (child >= nr || !earlier(m, m->heap[child], ring))
			break;
		m->heap[i] = m->heap[child];
		i = child;
	}
	m->heap[i] = ring;
}

/* Every ring's next record, those that have one made a heap; their number or -errno. */
static int fill(struct csw_merge *m)
{
	unsigned nr = 0;

	for (unsigned ring = 0; ring < m->nr; ring++) {
		if (!m->has[ring]) {
			int ret = m->ops->next(m->drv, ring, &m->heads[ring]);

			if (ret < 0)
				return ret;
			m->has[ring] = ret > 0;
		}
		if (m->has[ring])
			m->heap[nr++] = ring;
	}
	for (unsigned i = nr / 2; i-- > 0;)
		sift_down(m, nr, i);
	return (int)nr;
}

int csw_merge_run(struct csw_merge *m, int (*put)(void *ctx, const struct csw_record *rec),
		  void *ctx)
{
	uint64_t horizon = m->ops->snapshot(m->drv);
	int nr = fill(m);

	if (nr < 0)
		return nr;
	while (nr > 0) {
		uint32_t ring = m->heap[0];
		struct csw_record *head = &m->heads[ring];
		int ret;

		if (head->time_ns > horizon)
			break;
		if (head->time_ns < m->last_ns)
			m->late++;
		else
			m->last_ns = head->time_ns;
		ret = put(ctx, head);
		if (ret < 0)
			return ret;
		ret = m->ops->next(m->drv, ring, head);
		if (ret < 0)
			return ret;
		if (ret == 0) {
			m->has[ring] = false;
			m->heap[0] = m->heap[--nr];
		}
		if (nr > 1)
			sift_down(m, (unsigned)nr, 0);
	}
	return 0;
}
