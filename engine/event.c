/* An event in the kernel's own form; see event.h. The one place where it is made. */
#include "engine/event.h"

#include <linux/perf_event.h>

#include "engine/percpu.h"

int csw_event_attr(const struct csw_event *event, unsigned cpu, struct perf_event_attr *attr,
		   struct csw_error *err)
{
	uint64_t address = event->config1;
	int ret = 0;

	if (event->flags & CSW_EVENT_PER_CPU)
		ret = csw_percpu_address(event->config1, cpu, &address, err);
	attr->type = event->type;
	attr->config = event->config;
	attr->config1 = address;        /* bp_addr */
	attr->config2 = event->config2; /* bp_len */
	if (event->type == PERF_TYPE_BREAKPOINT)
		attr->bp_type = event->bp_type;
	attr->exclude_user = event->exclude_user;
	attr->exclude_kernel = event->exclude_kernel;
	attr->exclude_hv = event->exclude_hv;
	return ret;
}
