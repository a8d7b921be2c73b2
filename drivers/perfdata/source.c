/* Bytes of a file or a pipe, and the blocks that they lie in; see perfdata.h. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "drivers/perfdata/perfdata.h"

struct csw_block *csw_block_get(struct csw_blocks *pool)
{
	struct csw_block *block = pool->free;

	if (block) {
		pool->free = block->next;
	} else {
		/* Not cleared: only what was filled is read. */
		block = aligned_alloc(CSW_BLOCK_BYTES, sizeof(*block));
		if (!block)
			return NULL;
		pool->nr_all++;
	}
	block->next = NULL;
	block->refs = 1;
	block->used = 0;
	block->unzipped = false;
	return block;
}

void csw_block_reuse(struct csw_blocks *pool, struct csw_block *block)
{
	block->next = pool->free;
	pool->free = block;
}

void csw_blocks_free(struct csw_blocks *pool)
{
	while (pool->free) {
		struct csw_block *next = pool->free->next;

		free(pool->free);
		pool->free = next;
		pool->nr_all--;
	}
}

ssize_t csw_source_read(struct csw_source *s, void *to, size_t nr)
{
	size_t done = 0;

	if (nr > s->end - s->at)
		nr = (size_t)(s->end - s->at);
	while (done < nr) {
		ssize_t got = s->seekable ? pread(s->fd, (char *)to + done, nr - done,
						  (off_t)(s->at + done))
					  : read(s->fd, (char *)to + done, nr - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	s->at += done;
	return (ssize_t)done;
}

int csw_source_read_at(const struct csw_source *s, uint64_t at, void *to, size_t nr)
{
	struct csw_source other = { .fd = s->fd, .seekable = true, .at = at, .end = UINT64_MAX };
	ssize_t got;

	if (!s->seekable || at > INT64_MAX - nr)
		return -EBADMSG;
	got = csw_source_read(&other, to, nr);
	if (got < 0)
		return (int)got;
	return (size_t)got == nr ? 0 : -EBADMSG;
}
