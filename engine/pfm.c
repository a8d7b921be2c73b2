/*
 * The only file that includes libpfm4's headers.
 *
 * libpfm4 takes a PMU to be present by CPUID alone: that it knows an event does not mean that the
 * kernel can count it. Invariant: libpfm4 is called under the lock only (its state is global), and
 * nothing of its encoding is dropped silently: what struct csw_event cannot carry is refused.
 */
#include "engine/pfm.h"

#include <errno.h>
#include <perfmon/pfmlib_perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/error.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool started;

/* A process uses libpfm4 until its end: pfm_terminate would take it away from the program that
 * embeds us. */
static int start(void)
{
	int ret = started ? PFM_SUCCESS : pfm_initialize();

	started = ret == PFM_SUCCESS;
	return ret;
}

static bool get_pmu(pfm_pmu_t pmu, pfm_pmu_info_t *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return pfm_get_pmu_info(pmu, info) == PFM_SUCCESS;
}

static bool get_event(int idx, pfm_event_info_t *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return pfm_get_event_info(idx, PFM_OS_PERF_EVENT_EXT, info) == PFM_SUCCESS;
}

/* ix86arch is every Intel CPU's architectural subset, beside the model's own PMU. */
static bool is_model_pmu(const pfm_pmu_info_t *info)
{
	return info->is_present && info->type == PFM_PMU_TYPE_CORE &&
	       strcmp(info->name, "ix86arch");
}

/* Attributes that libpfm4 spells out though they say nothing (x=0), or that `exclude_*` carries. */
static bool attribute_says_nothing(const char *attr, size_t nr)
{
	return (nr > 2 && !strncmp(attr + nr - 2, "=0", 2)) ||
	       (nr == 3 && !strncmp(attr, "u=1", 3)) || (nr == 3 && !strncmp(attr, "k=1", 3)) ||
	       (nr == 4 && !strncmp(attr, "mh=1", 4));
}

/* "skl::LONGEST_LAT_CACHE:MISS:e=0:i=0:...:u=1:k=1" becomes "skl::LONGEST_LAT_CACHE:MISS 0x412e".
 */
static void describe(const char *full, uint64_t config, char *out, size_t bytes)
{
	const char *at = strstr(full, "::");
	size_t used = at ? (size_t)(at + 2 - full) : 0;
	char code[24];

	snprintf(code, sizeof(code), " 0x%llx", (unsigned long long)config);
	bytes -= strlen(code); /* the code is never what is cut */
	used = used < bytes ? used : bytes - 1;
	memcpy(out, full, used);
	for (at = full + used; *at;) {
		size_t nr = strcspn(at + 1, ":") + 1;

		if (!attribute_says_nothing(at + 1, nr - 1) && used + nr < bytes) {
			memcpy(out + used, at, nr);
			used += nr;
		}
		at += nr;
	}
	strcpy(out + used, code);
}

/* ", " between names, whole names only. */
static void append_name(char *list, size_t bytes, const char *name)
{
	size_t used = strlen(list);

	if (used + strlen(name) + 3 <= bytes)
		snprintf(list + used, bytes - used, "%s%s", used ? ", " : "", name);
}

/* The index of an event by the name before its attributes, over present (or absent) PMUs; -1: none.
 */
static int find_event(const char *name, bool present, pfm_pmu_info_t *pmu, pfm_pmu_t from)
{
	const char *colons = strstr(name, "::");
	size_t nr_pmu = colons ? (size_t)(colons - name) : 0, nr;
	const char *bare = colons ? colons + 2 : name;
	pfm_event_info_t event;

	nr = strcspn(bare, ":.");
	for (pfm_pmu_t i = from; i < PFM_PMU_MAX; i++) {
		if (!get_pmu(i, pmu) || pmu->is_present != present ||
		    (colons &&
		     (strlen(pmu->name) != nr_pmu || strncasecmp(pmu->name, name, nr_pmu))))
			continue;
		for (int idx = pmu->first_event; idx >= 0; idx = pfm_get_event_next(idx))
			if (get_event(idx, &event) && strlen(event.name) == nr &&
			    !strncasecmp(event.name, bare, nr))
				return idx;
	}
	return -1;
}

/* The event is there, its attributes are wrong: says which unit masks it has. */
static int refuse_attributes(const char *name, int pfm_error, struct csw_error *err)
{
	char umasks[CSW_ERROR_BYTES / 2] = "";
	pfm_event_attr_info_t attr;
	pfm_event_info_t event;
	pfm_pmu_info_t pmu;
	int idx = find_event(name, true, &pmu, PFM_PMU_NONE), i;

	if (idx >= 0 && get_event(idx, &event)) {
		pfm_for_each_event_attr(i, &event)
		{
			memset(&attr, 0, sizeof(attr));
			attr.size = sizeof(attr);
			if (pfm_get_event_attr_info(idx, i, PFM_OS_PERF_EVENT_EXT, &attr) ==
				    PFM_SUCCESS &&
			    attr.type == PFM_ATTR_UMASK)
				append_name(umasks, sizeof(umasks), attr.name);
		}
	}
	return csw_error_set(
		err, -EINVAL, "%s: libpfm4 says %s; %s%s", name, pfm_strerror(pfm_error),
		umasks[0] ? "its unit masks: " : "the event takes no unit mask", umasks);
}

static int refuse_encoding(const char *name, int pfm_error, struct csw_error *err)
{
	switch (pfm_error) {
	case PFM_ERR_NOTFOUND:
	case PFM_ERR_INVAL: /* no text that it could read at all */
		return -ENOENT;
	case PFM_ERR_NOMEM:
		return csw_error_set(err, -ENOMEM, "%s: out of memory", name);
	case PFM_ERR_NOINIT:
	case PFM_ERR_NOTSUPP:
		return -ENOENT; /* no PMU at all (or LIBPFM_FORCE_PMU names none): so no event
				   either */
	default:
		return refuse_attributes(name, pfm_error, err);
	}
}

/* Attributes of libpfm4 that change how an event is opened: the engine decides these. */
static int check_carried(const char *name, const struct perf_event_attr *attr, int cpu,
			 struct csw_error *err)
{
	if (attr->sample_period || attr->freq || attr->precise_ip || attr->pinned ||
	    attr->exclusive || attr->exclude_host || cpu >= 0)
		return csw_error_set(
			err, -EINVAL,
			"%s: the attributes period, freq, precise, pinned, excl, mg and cpu cannot "
			"be used: the "
			"engine opens every event the same way on every CPU; leave them away",
			name);
	return 0;
}

static int check_pmu(const char *name, int idx, struct csw_event *out, struct csw_error *err)
{
	pfm_event_info_t event;
	pfm_pmu_info_t pmu;

	if (!get_event(idx, &event) || !get_pmu(event.pmu, &pmu))
		return csw_error_set(err, -EINVAL,
				     "%s: libpfm4 does not know the event that it encoded", name);
	if (pmu.type == PFM_PMU_TYPE_UNCORE)
		return csw_error_set(err, -EOPNOTSUPP,
				     "%s counts for a whole package (PMU %s), not per CPU: it "
				     "cannot belong to a thread; use an "
				     "event of the cores",
				     name, pmu.name);
	if (pmu.type == PFM_PMU_TYPE_CORE || out->type == PERF_TYPE_HARDWARE ||
	    out->type == PERF_TYPE_HW_CACHE || out->type == PERF_TYPE_RAW)
		out->flags |= CSW_EVENT_HARDWARE;
	return 0;
}

static int encode(const char *name, struct csw_event *out, struct csw_error *err)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	pfm_perf_encode_arg_t arg = { .attr = &attr, .size = sizeof(arg), .cpu = -1 };
	char *full = NULL;
	int ret = start();

	if (ret != PFM_SUCCESS)
		return refuse_encoding(name, ret, err);
	arg.fstr = &full;
	/* Both privilege levels: libpfm4's default of user level alone would hide what a context
	 * switch does. */
	ret = pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT_EXT, &arg);
	if (ret != PFM_SUCCESS)
		return refuse_encoding(name, ret, err);
	out->type = attr.type;
	out->config = attr.config;
	out->config1 = attr.config1;
	out->config2 = attr.config2;
	out->exclude_user |= attr.exclude_user;
	out->exclude_kernel |= attr.exclude_kernel;
	describe(full ? full : name, attr.config, out->became, sizeof(out->became));
	free(full);
	ret = check_carried(name, &attr, arg.cpu, err);
	return ret ? ret : check_pmu(name, arg.idx, out, err);
}

int csw_pfm_encode(const char *name, struct csw_event *out, struct csw_error *err)
{
	int ret;

	pthread_mutex_lock(&lock);
	ret = encode(name, out, err);
	pthread_mutex_unlock(&lock);
	return ret;
}

static void offer_pmu(struct csw_nearest *nearest, const pfm_pmu_info_t *pmu, bool prefixed)
{
	pfm_event_info_t event;
	char name[256];

	for (int idx = pmu->first_event; idx >= 0; idx = pfm_get_event_next(idx)) {
		if (!get_event(idx, &event))
			continue;
		snprintf(name, sizeof(name), "%s%s%s", prefixed ? pmu->name : "",
			 prefixed ? "::" : "", event.name);
		csw_nearest_offer(nearest, name);
	}
}

void csw_pfm_offer(struct csw_nearest *nearest)
{
	bool prefixed = strstr(nearest->wanted, "::") != NULL;
	pfm_pmu_info_t pmu;

	pthread_mutex_lock(&lock);
	for (pfm_pmu_t i = PFM_PMU_NONE; start() == PFM_SUCCESS && i < PFM_PMU_MAX; i++)
		if (get_pmu(i, &pmu) && pmu.is_present)
			offer_pmu(nearest, &pmu, prefixed);
	pthread_mutex_unlock(&lock);
}

unsigned csw_pfm_core(char *names, size_t bytes)
{
	pfm_pmu_info_t pmu;
	unsigned nr = 0;

	names[0] = '\0';
	pthread_mutex_lock(&lock);
	for (pfm_pmu_t i = PFM_PMU_NONE; start() == PFM_SUCCESS && i < PFM_PMU_MAX; i++) {
		if (!get_pmu(i, &pmu) || !is_model_pmu(&pmu))
			continue;
		append_name(names, bytes, pmu.name);
		nr++;
	}
	pthread_mutex_unlock(&lock);
	return nr;
}

bool csw_pfm_is_told(void)
{
	const char *model = getenv("LIBPFM_FORCE_PMU");

	return model != NULL; /* even "" */
}

const char *csw_pfm_no_core(char *text, size_t bytes)
{
	const char *model = getenv("LIBPFM_FORCE_PMU");

	if (model)
		snprintf(text, bytes, "LIBPFM_FORCE_PMU=%s, no CPU that libpfm4 knows", model);
	else
		snprintf(text, bytes, "unknown to libpfm4");
	return text;
}

bool csw_pfm_elsewhere(const char *name, char *pmus, size_t bytes)
{
	enum { SOME = 3 };
	pfm_pmu_info_t pmu;
	unsigned nr = 0;

	pmus[0] = '\0';
	pthread_mutex_lock(&lock);
	for (pfm_pmu_t i = PFM_PMU_NONE; start() == PFM_SUCCESS && nr < SOME && i < PFM_PMU_MAX;
	     i++) {
		if (find_event(name, false, &pmu, i) < 0)
			break;
		append_name(pmus, bytes, pmu.name);
		i = pmu.pmu;
		nr++;
	}
	if (nr == SOME)
		append_name(pmus, bytes, "...");
	pthread_mutex_unlock(&lock);
	return nr > 0;
}

/* Steps to the next unit mask of the event at hand. */
static bool next_umask(struct csw_pfm_walk *walk, const pfm_event_info_t *event,
		       struct csw_pfm_name *out)
{
	pfm_event_attr_info_t attr;

	while (walk->attr < event->nattrs) {
		memset(&attr, 0, sizeof(attr));
		attr.size = sizeof(attr);
		if (pfm_get_event_attr_info(walk->event, walk->attr++, PFM_OS_PERF_EVENT_EXT,
					    &attr) == PFM_SUCCESS &&
		    attr.type == PFM_ATTR_UMASK) {
			out->umask = attr.name;
			out->umask_summary = attr.desc;
			return true;
		}
	}
	return false;
}

/* Steps to the next event, also into the next PMU that is here. */
static bool next_event(struct csw_pfm_walk *walk, pfm_pmu_info_t *pmu)
{
	walk->attr = 0;
	if (walk->inside)
		walk->event = pfm_get_event_next(walk->event);
	while (!walk->inside || walk->event < 0) {
		walk->pmu += walk->inside;
		walk->inside = false;
		if (walk->pmu >= PFM_PMU_MAX)
			return false;
		if (!get_pmu((pfm_pmu_t)walk->pmu, pmu) || !pmu->is_present) {
			walk->pmu++;
			continue;
		}
		walk->event = pmu->first_event;
		walk->inside = true;
	}
	return get_pmu((pfm_pmu_t)walk->pmu, pmu);
}

static bool next_name(struct csw_pfm_walk *walk, struct csw_pfm_name *out)
{
	pfm_event_info_t event;
	pfm_pmu_info_t pmu;

	if (start() != PFM_SUCCESS)
		return false;
	memset(out, 0, sizeof(*out));
	if (!walk->inside || !get_event(walk->event, &event) || !next_umask(walk, &event, out)) {
		do {
			if (!next_event(walk, &pmu))
				return false;
		} while (!get_event(walk->event, &event));
	} else if (!get_pmu((pfm_pmu_t)walk->pmu, &pmu)) {
		return false;
	}
	out->pmu = pmu.name;
	out->event = event.name;
	out->summary = event.desc;
	return true;
}

bool csw_pfm_next(struct csw_pfm_walk *walk, struct csw_pfm_name *out)
{
	bool found;

	pthread_mutex_lock(&lock);
	found = next_name(walk, out);
	pthread_mutex_unlock(&lock);
	return found;
}
