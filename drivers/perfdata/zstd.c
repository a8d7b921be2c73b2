/* Compressed records; see perfdata.h. The only file that includes zstd.h. */
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include "drivers/perfdata/perfdata.h"

struct csw_unzip {
	ZSTD_DStream *stream;
	ZSTD_inBuffer in;
	bool full; /* the last take filled its room: there may be more inside */
};

struct csw_unzip *csw_unzip_open(void)
{
	struct csw_unzip *z = calloc(1, sizeof(*z));

	if (!z)
		return NULL;
	z->stream = ZSTD_createDStream();
	if (z->stream && !ZSTD_isError(ZSTD_initDStream(z->stream)))
		return z;
	csw_unzip_close(z);
	return NULL;
}

void csw_unzip_close(struct csw_unzip *z)
{
	if (!z)
		return;
	ZSTD_freeDStream(z->stream);
	free(z);
}

void csw_unzip_give(struct csw_unzip *z, const void *from, size_t nr)
{
	z->in = (ZSTD_inBuffer){ from, nr, 0 };
}

ssize_t csw_unzip_take(struct csw_unzip *z, void *to, size_t room)
{
	ZSTD_outBuffer out = { to, room, 0 };

	while (out.pos < out.size && (z->in.pos < z->in.size || z->full)) {
		size_t before = out.pos, before_in = z->in.pos;
		size_t ret = ZSTD_decompressStream(z->stream, &out, &z->in);

		if (ZSTD_isError(ret))
			return -EBADMSG;
		z->full = out.pos == out.size;
		if (out.pos == before && z->in.pos == before_in)
			break;
	}
	return (ssize_t)out.pos;
}
