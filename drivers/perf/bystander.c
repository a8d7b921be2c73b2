/* CPUs that are not counted; see bystander.h. */
#include "drivers/perf/bystander.h"

#include <errno.h>
#include <unistd.h>

#include "drivers/perf/sys.h"

/* A process takes some 250 bytes to begin and end. */
#define RING_PAGES 16

/* Where not as much may be locked, less will do: the reader comes the more often. */
static int map_ring(struct csw_perf_bystander *b, size_t page)
{
	size_t bytes = RING_PAGES * page;
	int ret;

	do
		ret = csw_perf_ring_map(&b->ring, b->fd, bytes);
	while ((ret == -EPERM || ret == -ENOMEM) && (bytes /= 2) >= page);
	return ret;
}

int csw_perf_bystander_open(struct csw_perf_bystander *b, unsigned cpu,
			    const struct csw_perf_features *features)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int ret;

	*b = (struct csw_perf_bystander){ .cpu = cpu };
	b->fd = csw_perf_sideband_open(cpu, features, page, false);
	if (b->fd < 0)
		return b->fd;
	ret = map_ring(b, page);
	if (ret < 0)
		csw_perf_bystander_close(b);
	return ret;
}

void csw_perf_bystander_close(struct csw_perf_bystander *b)
{
	csw_perf_ring_unmap(&b->ring);
	if (b->fd >= 0)
		csw_perf_sys.close(b->fd);
	b->fd = -1;
}

int csw_perf_bystander_enable(const struct csw_perf_bystander *b)
{
	return csw_perf_sys.ioctl(b->fd, PERF_EVENT_IOC_ENABLE, 0);
}

void csw_perf_bystander_disable(const struct csw_perf_bystander *b)
{
	csw_perf_sys.ioctl(b->fd, PERF_EVENT_IOC_DISABLE, 0);
}

static bool is_about_threads(uint32_t type)
{
	return type == CSW_RECORD_FORK || type == CSW_RECORD_EXIT || type == CSW_RECORD_COMM;
}

int csw_perf_bystander_next(struct csw_perf_bystander *b, const struct csw_perf_form *form,
			    struct csw_record *rec)
{
	const struct perf_event_header *raw;
	int ret;

	while ((raw = csw_perf_ring_peek(&b->ring, &ret))) {
		ret = csw_perf_decode(form, raw, rec);
		if (ret < 0)
			return ret;
		csw_perf_ring_consume(&b->ring, raw);
		if (ret > 0 && is_about_threads(rec->type))
			return 1;
	}
	return ret;
}
