/*
 * Reading what the kernel publishes as text.
 *
 * Invariant: nothing read or typed is trusted: every number is range-checked, every file is
 * bounded, and a name becomes part of a path only when it cannot leave its directory.
 */
#include "engine/sysfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/error.h"
#include "engine/names.h"

#define PMUS "/sys/bus/event_source/devices"
/* CONFIG_NR_CPUS is at most 8192 anywhere; numbers beyond this are not CPUs but damage. */
#define CPU_NUMBER_MAX 65535u
/* Room for 8192 CPUs of which every second one is offline: 4096 numbers of 4 digits and a comma. */
#define LIST_BYTES 32768

static char root_for_tests[PATH_MAX];

void csw_sysfs_set_root_for_tests(const char *root)
{
	snprintf(root_for_tests, sizeof(root_for_tests), "%s", root);
}

static int make_path(char path[PATH_MAX], const char *format, va_list args)
{
	size_t nr = strlen(root_for_tests);
	int more;

	memcpy(path, root_for_tests, nr + 1);
	more = vsnprintf(path + nr, PATH_MAX - nr, format, args);
	return more < 0 || (size_t)more >= PATH_MAX - nr ? -ENAMETOOLONG : 0;
}

/* Reads until the end or until text is full; the number of bytes, or -errno. */
static ssize_t read_all(int fd, char *text, size_t bytes)
{
	size_t used = 0;

	while (used < bytes) {
		ssize_t nr = read(fd, text + used, bytes - used);

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr < 0)
			return -errno;
		if (!nr)
			break;
		used += (size_t)nr;
	}
	return (ssize_t)used;
}

static int open_path(const char *format, va_list args)
{
	char path[PATH_MAX];
	int ret = make_path(path, format, args), fd;

	if (ret)
		return ret;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int csw_sysfs_open(const char *format, ...)
{
	va_list args;
	int fd;

	va_start(args, format);
	fd = open_path(format, args);
	va_end(args);
	return fd;
}

int csw_sysfs_read(char *text, size_t bytes, const char *format, ...)
{
	va_list args;
	ssize_t nr;
	int fd, ret;

	text[0] = '\0';
	va_start(args, format);
	fd = open_path(format, args);
	va_end(args);
	if (fd < 0)
		return fd;
	nr = read_all(fd, text, bytes);
	close(fd);
	if (nr < 0) {
		text[0] = '\0';
		return (int)nr;
	}
	ret = (size_t)nr == bytes ? -EFBIG : 0;
	if (ret)
		nr--;
	while (nr && (isspace((unsigned char)text[nr - 1]) || !text[nr - 1]))
		nr--; /* device-tree texts end in a NUL */
	text[nr] = '\0';
	if (!ret && strlen(text) != (size_t)nr)
		ret = -EINVAL;
	return ret ? ret : (int)nr;
}

/* 0: it is there; -ENOENT; -EACCES: nobody lets us look; ... By stat and not by access(2), which
 * asks for the real user without the capabilities of the program. */
__attribute__((format(printf, 1, 2))) static int look_for(const char *format, ...)
{
	char path[PATH_MAX];
	struct stat st;
	va_list args;
	int ret;

	va_start(args, format);
	ret = make_path(path, format, args);
	va_end(args);
	return ret ? ret : stat(path, &st) ? -errno : 0;
}

__attribute__((format(printf, 2, 3))) static int open_dir(DIR **out, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	int ret;

	va_start(args, format);
	ret = make_path(path, format, args);
	va_end(args);
	*out = ret ? NULL : opendir(path);
	return ret ? ret : *out ? 0 : -errno;
}

/* Decimal, hexadecimal (0x) or octal (0), nothing else in the text: strtoull alone would take signs
 * and spaces. */
static int parse_u64(const char *text, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	*out = strtoull(text, &end, 0);
	return *end ? -EINVAL : -errno;
}

/* ---- CPUs ---- */

/* "N" or "N-M" at *text, which moves behind it. */
static int parse_range(const char **text, unsigned max, unsigned *first, unsigned *last)
{
	unsigned *bounds[] = { first, last };

	for (int i = 0; i < 2; i++) {
		unsigned long number;
		char *end;

		if (!isdigit((unsigned char)**text))
			return -EINVAL;
		number = strtoul(*text, &end, 10); /* overflow gives ULONG_MAX */
		if (number > max)
			return -EINVAL;
		*bounds[i] = (unsigned)number;
		*last = (unsigned)number;
		*text = end;
		if (i || **text != '-')
			break;
		++*text;
	}
	return *first > *last ? -EINVAL : 0;
}

int csw_sysfs_cpulist(const char *text, unsigned *cpus, unsigned max)
{
	unsigned nr = 0, first, last;

	while (*text) {
		if (parse_range(&text, CPU_NUMBER_MAX, &first, &last))
			return -EINVAL;
		if (nr && first <= cpus[nr - 1])
			return -EINVAL;
		if (last - first >= max - nr)
			return -E2BIG;
		for (unsigned cpu = first; cpu <= last; cpu++)
			cpus[nr++] = cpu;
		if (!*text)
			return (int)nr;
		if (*text++ != ',' || !*text)
			return -EINVAL;
	}
	return 0;
}

int csw_sysfs_online(unsigned **out, struct csw_error *err)
{
	static const char path[] = "/sys/devices/system/cpu/online";
	char *text = malloc(LIST_BYTES);
	unsigned *cpus = malloc((CPU_NUMBER_MAX + 1) * sizeof(*cpus));
	int ret = -ENOMEM;

	*out = NULL;
	if (text && cpus) {
		ret = csw_sysfs_read(text, LIST_BYTES, "%s", path);
		if (ret >= 0)
			ret = csw_sysfs_cpulist(text, cpus, CPU_NUMBER_MAX + 1);
		if (!ret)
			ret = -EINVAL; /* somebody runs this, so an empty list is damage */
	}
	free(text);
	if (ret < 0) {
		free(cpus);
		/* -ENOENT would say that a name was wrong: the machine lacks it. */
		return csw_error_set(
			err, ret == -ENOENT ? -EOPNOTSUPP : ret,
			"the list of online CPUs, %s, cannot be used: %s; is /sys mounted?", path,
			strerror(-ret));
	}
	*out = cpus;
	return ret;
}

/* ---- names as parts of paths ---- */

static bool is_file_name(const char *name)
{
	if (!name[0] || name[0] == '.' || strlen(name) >= CSW_EVENT_NAME_BYTES)
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("_-.:", *name))
			return false;
	return true;
}

/* Offers every entry of the directory; NULL: there was no such directory. */
static void offer_dir(struct csw_nearest *nearest, DIR *dir)
{
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (is_file_name(entry->d_name))
			csw_nearest_offer(nearest, entry->d_name);
	if (dir)
		closedir(dir);
}

/* ---- tracepoints ---- */

static int tracefs_error(int ret, struct csw_error *err)
{
	if (ret == -EACCES || ret == -EPERM)
		return csw_error_set(
			err, -EACCES,
			"tracepoints cannot be looked up: /sys/kernel/tracing is not readable for "
			"this user; as root: mount -o remount,mode=755 /sys/kernel/tracing (or "
			"gid=), "
			"and counting takes CAP_PERFMON or kernel.perf_event_paranoid 0 or less; "
			"try sudo, or --driver=sim");
	/* Whatever name was asked for, it is not known to be wrong. */
	return csw_error_set(err, ret == -ENOENT || ret == -ENOTDIR ? -EOPNOTSUPP : ret,
			     "tracepoints cannot be looked up: tracefs is not there (%s); as root: "
			     "mount -t tracefs "
			     "tracefs /sys/kernel/tracing",
			     strerror(-ret));
}

/* The directory with the tracepoints: /sys/kernel/tracing, or where it lay before Linux 4.1. */
static int find_tracefs(const char **out, struct csw_error *err)
{
	static const char *const places[] = { "/sys/kernel/tracing/events",
					      "/sys/kernel/debug/tracing/events" };
	int worst = -ENOENT;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		DIR *dir;
		int ret = open_dir(&dir, "%s", places[i]);

		if (!ret) {
			closedir(dir);
			*out = places[i];
			return 0;
		}
		if (ret != -ENOENT)
			worst = ret; /* it is there, but closed to us: that is the thing to say */
	}
	return tracefs_error(worst, err);
}

/* Beside tracepoints and their subsystems lie files that switch them: a tracepoint has an id. */
static bool is_tracepoint(const char *events, const char *subsys, const char *event)
{
	return is_file_name(event) && !look_for("%s/%s/%s/id", events, subsys, event);
}

static void offer_tracepoints(struct csw_nearest *nearest, const char *events, const char *subsys)
{
	char name[2 * CSW_EVENT_NAME_BYTES + 2];
	struct dirent *entry;
	DIR *dir;

	open_dir(&dir, "%s/%s", events, subsys);
	while (dir && (entry = readdir(dir))) {
		if (!is_tracepoint(events, subsys, entry->d_name))
			continue;
		snprintf(name, sizeof(name), "%.127s:%.127s", subsys, entry->d_name);
		csw_nearest_offer(nearest, name);
	}
	if (dir)
		closedir(dir);
}

static void offer_subsystems(struct csw_nearest *nearest, const char *events)
{
	struct dirent *entry;
	DIR *dir;

	open_dir(&dir, "%s", events);
	while (dir && (entry = readdir(dir)))
		if (is_file_name(entry->d_name) && !look_for("%s/%s/.", events, entry->d_name))
			csw_nearest_offer(nearest, entry->d_name);
	if (dir)
		closedir(dir);
}

static int no_tracepoint(const char *events, const char *subsys, const char *event,
			 bool subsys_known, struct csw_error *err)
{
	char wanted[2 * CSW_EVENT_NAME_BYTES + 2], suffix[CSW_ERROR_BYTES / 2];
	struct csw_nearest nearest;

	if (subsys_known) {
		snprintf(wanted, sizeof(wanted), "%.127s:%.127s", subsys, event);
		csw_nearest_init(&nearest, wanted);
		offer_tracepoints(&nearest, events, subsys);
		return csw_error_set(err, -ENOENT, "there is no tracepoint %s%s", wanted,
				     csw_nearest_suffix(&nearest, suffix, sizeof(suffix)));
	}
	csw_nearest_init(&nearest, subsys);
	offer_subsystems(&nearest, events);
	return csw_error_set(err, -ENOENT,
			     "there is no event %s:%s, and no tracepoint subsystem %s%s", subsys,
			     event, subsys, csw_nearest_suffix(&nearest, suffix, sizeof(suffix)));
}

int csw_sysfs_tracepoint(const char *subsys, const char *event, uint64_t *id, bool *subsys_known,
			 struct csw_error *err)
{
	const char *events = NULL;
	char text[32];
	int ret;

	*subsys_known = false;
	if (!is_file_name(subsys) || !is_file_name(event))
		return csw_error_set(err, -ENOENT, "%s:%s is not a tracepoint's name", subsys,
				     event);
	ret = find_tracefs(&events, err);
	if (ret)
		return ret;
	ret = look_for("%s/%s/.", events, subsys);
	*subsys_known = !ret;
	if (!ret)
		ret = csw_sysfs_read(text, sizeof(text), "%s/%s/%s/id", events, subsys, event);
	if (ret == -ENOENT || ret == -ENOTDIR)
		return no_tracepoint(events, subsys, event, *subsys_known, err);
	if (ret == -EACCES || ret == -EPERM)
		return tracefs_error(ret, err);
	if (ret >= 0)
		ret = parse_u64(text, id);
	if (ret < 0)
		return csw_error_set(err, ret, "the id of tracepoint %s:%s cannot be read: %s",
				     subsys, event, strerror(-ret));
	return 0;
}

/* ---- PMUs ---- */

struct pmu_parse {
	char pmu[CSW_EVENT_NAME_BYTES];
	uint64_t config[3];
	struct csw_error *err;
};

/* Lays value out over the bits of a format, "config1:0-7,21": its low bits into the first range,
 * and so on. */
static int place_value(const char *format, uint64_t value, uint64_t config[3])
{
	const char *colon = strchr(format, ':');
	uint64_t *word;
	unsigned first, last;

	if (!colon)
		return -EINVAL;
	if (!strncmp(format, "config:", 7))
		word = &config[0];
	else if (!strncmp(format, "config1:", 8))
		word = &config[1];
	else if (!strncmp(format, "config2:", 8))
		word = &config[2];
	else
		return -EOPNOTSUPP;
	format = colon;
	do {
		uint64_t mask;
		unsigned width;

		format++;
		if (parse_range(&format, 63, &first, &last))
			return -EINVAL;
		width = last - first + 1;
		mask = width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
		*word = (*word & ~(mask << first)) | (value & mask) << first;
		value = width == 64 ? 0 : value >> width;
	} while (*format == ',');
	if (*format)
		return -EINVAL;
	return value ? -ERANGE : 0;
}

static int no_term(const struct pmu_parse *p, const char *term)
{
	char suffix[CSW_ERROR_BYTES / 2];
	struct csw_nearest nearest;
	DIR *dir;

	csw_nearest_init(&nearest, term);
	open_dir(&dir, PMUS "/%s/events", p->pmu);
	offer_dir(&nearest, dir);
	open_dir(&dir, PMUS "/%s/format", p->pmu);
	offer_dir(&nearest, dir);
	return csw_error_set(
		p->err, -ENOENT,
		"PMU %s has no event and no field \"%s\"%s (see " PMUS "/%s/events and format)",
		p->pmu, term, csw_nearest_suffix(&nearest, suffix, sizeof(suffix)), p->pmu);
}

/* field=value: a raw word, or a field that the PMU's format directory describes. value NULL: 1. */
static int parse_field(struct pmu_parse *p, const char *field, const char *value)
{
	static const char *const words[] = { "config", "config1", "config2" };
	uint64_t number = 1;
	char format[256];
	int ret;

	if (value && parse_u64(value, &number))
		return csw_error_set(p->err, -EINVAL, "PMU %s: %s=%s is not a number of 64 bits",
				     p->pmu, field, value);
	for (int i = 0; value && i < 3; i++)
		if (!strcmp(field, words[i])) {
			p->config[i] = number;
			return 0;
		}
	ret = is_file_name(field)
		      ? csw_sysfs_read(format, sizeof(format), PMUS "/%s/format/%s", p->pmu, field)
		      : -ENOENT;
	if (ret == -ENOENT)
		return no_term(p, field);
	if (ret >= 0)
		ret = place_value(format, number, p->config);
	if (ret == -ERANGE)
		return csw_error_set(p->err, -EINVAL,
				     "PMU %s: 0x%llx does not fit into the field %s (%s)", p->pmu,
				     (unsigned long long)number, field, format);
	if (ret < 0)
		return csw_error_set(p->err, ret == -EOPNOTSUPP ? ret : -EINVAL,
				     "PMU %s: the kernel's description of the field %s cannot be "
				     "used (\"%s\": %s); give "
				     "config=, config1= and config2= instead",
				     p->pmu, field, format, strerror(-ret));
	return 0;
}

static int parse_terms(struct pmu_parse *p, char *terms, bool from_event);

/* A named event is itself a list of terms: events/tsc holds "event=0x00". */
static int parse_named(struct pmu_parse *p, const char *name, bool *known)
{
	char text[1024];
	int ret;

	*known = false;
	if (!is_file_name(name))
		return 0;
	ret = csw_sysfs_read(text, sizeof(text), PMUS "/%s/events/%s", p->pmu, name);
	if (ret == -ENOENT)
		return 0;
	*known = true;
	if (ret < 0)
		return csw_error_set(p->err, ret, "event %s of PMU %s cannot be read: %s", name,
				     p->pmu, strerror(-ret));
	return parse_terms(p, text, true);
}

static int parse_term(struct pmu_parse *p, char *term, bool from_event)
{
	char *equals = strchr(term, '=');
	bool known = false;
	int ret;

	if (equals) {
		*equals = '\0';
		return parse_field(p, term, equals + 1);
	}
	if (!from_event) {
		ret = parse_named(p, term, &known);
		if (ret || known)
			return ret;
	}
	return parse_field(p, term, NULL);
}

static int parse_terms(struct pmu_parse *p, char *terms, bool from_event)
{
	for (char *term = terms, *next; term; term = next) {
		int ret;

		next = strchr(term, ',');
		if (next)
			*next++ = '\0';
		if (!*term)
			return csw_error_set(
				p->err, -EINVAL,
				"PMU %s: an empty term; write %s/event/ or %s/field=value,.../",
				p->pmu, p->pmu, p->pmu);
		ret = parse_term(p, term, from_event);
		if (ret)
			return ret;
	}
	return 0;
}

static int no_pmu(const char *pmu, struct csw_error *err)
{
	char suffix[CSW_ERROR_BYTES / 2];
	struct csw_nearest nearest;
	DIR *dir;
	int ret;

	csw_nearest_init(&nearest, pmu);
	ret = open_dir(&dir, PMUS);
	if (ret) /* no PMU at all, not even of software: no name is wrong there */
		return csw_error_set(err, ret == -ENOENT ? -EOPNOTSUPP : ret,
				     "PMU \"%s\" cannot be looked up in " PMUS
				     " (%s); is /sys mounted? as root: mount -t sysfs sysfs /sys",
				     pmu, strerror(-ret));
	offer_dir(&nearest, dir);
	return csw_error_set(err, -ENOENT, "there is no PMU \"%s\" in " PMUS "%s", pmu,
			     csw_nearest_suffix(&nearest, suffix, sizeof(suffix)));
}

/* PMUs whose opening succeeds, but which write traces or run probes: their count stays 0 or needs a
 * pointer in config. */
static bool counts_nothing(const char *pmu)
{
	static const char *const names[] = { "intel_pt", "intel_bts", "ibs_op",     "ibs_fetch",
					     "kprobe",   "uprobe",    "breakpoint", "tracepoint" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(pmu, names[i]))
			return true;
	return !strncmp(pmu, "cs_etm", 6) || !strncmp(pmu, "arm_spe", 7);
}

/* The PMUs of the cores: hybrid ones have a file `cpus` (cpu_core, cpu_atom, all of arm), plain x86
 * is called cpu. */
static bool is_core_pmu(const char *pmu)
{
	return !strcmp(pmu, "cpu") || !strncmp(pmu, "cpu_", 4) || !strncmp(pmu, "armv", 4) ||
	       !look_for(PMUS "/%s/cpus", pmu);
}

bool csw_sysfs_lacks_core_pmu(void)
{
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	if (open_dir(&dir, PMUS))
		return false; /* not known */
	while (!found && (entry = readdir(dir)))
		found = is_file_name(entry->d_name) && is_core_pmu(entry->d_name);
	closedir(dir);
	return !found;
}

static int check_pmu(const char *pmu, uint64_t *type, struct csw_error *err)
{
	char text[256];
	int ret;

	ret = is_file_name(pmu) ? csw_sysfs_read(text, sizeof(text), PMUS "/%s/type", pmu)
				: -ENOENT;
	if (ret == -ENOENT)
		return no_pmu(pmu, err);
	if (ret >= 0)
		ret = parse_u64(text, type);
	if (ret >= 0 && *type > UINT32_MAX)
		ret = -ERANGE;
	if (ret < 0)
		return csw_error_set(err, ret, "the type of PMU %s cannot be used: %s", pmu,
				     strerror(-ret));
	if (counts_nothing(pmu))
		return csw_error_set(err, -EOPNOTSUPP,
				     "PMU %s does not count events: it traces or probes", pmu);
	if (!look_for(PMUS "/%s/cpumask", pmu))
		return csw_error_set(err, -EOPNOTSUPP,
				     "PMU %s counts for a whole package, not per CPU: its events "
				     "cannot belong to a thread; use "
				     "an event of the cores",
				     pmu);
	return 0;
}

int csw_sysfs_event(const char *text, size_t length, struct csw_event *out, struct csw_error *err)
{
	char copy[CSW_EVENT_NAME_BYTES], *slash;
	struct pmu_parse p = { .err = err };
	uint64_t type = 0;
	int ret;

	slash = length < sizeof(copy) ? memchr(text, '/', length) : NULL;
	if (!slash || text[length - 1] != '/' || slash == text + length - 1)
		return csw_error_set(err, -EINVAL,
				     "a PMU's event is written pmu/event/ or pmu/field=value,.../");
	memcpy(copy, text, length - 1);
	copy[length - 1] = '\0';
	slash = strchr(copy, '/');
	*slash = '\0';
	strcpy(p.pmu, copy);
	ret = check_pmu(p.pmu, &type, err);
	if (!ret)
		ret = parse_terms(&p, slash + 1, false);
	if (ret)
		return ret;
	out->type = (uint32_t)type;
	out->config = p.config[0];
	out->config1 = p.config[1];
	out->config2 = p.config[2];
	if (is_core_pmu(p.pmu))
		out->flags |= CSW_EVENT_HARDWARE;
	if (!strcmp(p.pmu, "msr") && !p.config[0])
		out->flags |= CSW_EVENT_CLOCK; /* config 0 of this PMU is the time-stamp counter */
	snprintf(out->became, sizeof(out->became), "%.*s 0x%llx", (int)length, text,
		 (unsigned long long)p.config[0]);
	return 0;
}

/* The CPUs of the PMU with this type, where it says on which it is: as csw_sysfs_read. -ENOENT: it
 * does not, or there is no such PMU. */
static int read_cpus(uint32_t type, char *list, size_t bytes)
{
	struct dirent *entry;
	int ret = -ENOENT;
	DIR *dir;

	/* The first of a hybrid x86 has the type of raw codes, which are its own then. */
	if ((type < PERF_TYPE_MAX && type != PERF_TYPE_RAW) || open_dir(&dir, PMUS))
		return -ENOENT;
	while (ret == -ENOENT && (entry = readdir(dir))) {
		uint64_t number;
		char text[32];

		if (is_file_name(entry->d_name) &&
		    csw_sysfs_read(text, sizeof(text), PMUS "/%s/type", entry->d_name) > 0 &&
		    !parse_u64(text, &number) && number == type)
			ret = csw_sysfs_read(list, bytes, PMUS "/%s/cpus", entry->d_name);
	}
	closedir(dir);
	return ret;
}

/* The first number of a list of CPUs, however long and broken the rest may be; -1: none. */
static int first_cpu(int ret, const char *list)
{
	unsigned first, last;

	return ret == -ENOENT || parse_range(&list, CPU_NUMBER_MAX, &first, &last) ? -1
										   : (int)first;
}

int csw_sysfs_cpu_for(uint32_t type)
{
	char list[256] = "";
	int cpu = first_cpu(read_cpus(type, list, sizeof(list)), list);

	if (cpu < 0)
		cpu = first_cpu(
			csw_sysfs_read(list, sizeof(list), "/sys/devices/system/cpu/online"), list);
	return cpu < 0 ? 0 : cpu;
}

/* Is one of these CPUs not among those? Both ascend. */
static bool leaves_out(const unsigned *cpus, unsigned nr, const unsigned *those, unsigned nr_those)
{
	unsigned at = 0, found = 0;

	while (found < nr && at < nr_those) {
		if (cpus[found] < those[at])
			return true;
		found += cpus[found] == those[at++];
	}
	return found < nr;
}

bool csw_sysfs_pmu_is_partial(uint32_t type, char *list, size_t bytes)
{
	unsigned *online, *cpus;
	bool partial = false;
	int nr, nr_cpus;

	if (read_cpus(type, list, bytes) <= 0)
		return false;
	nr = csw_sysfs_online(&online, NULL);
	if (nr < 0)
		return false;
	cpus = malloc((CPU_NUMBER_MAX + 1) * sizeof(*cpus));
	nr_cpus = cpus ? csw_sysfs_cpulist(list, cpus, CPU_NUMBER_MAX + 1) : -ENOMEM;
	if (nr_cpus > 0)
		partial = leaves_out(online, (unsigned)nr, cpus, (unsigned)nr_cpus);
	free(cpus);
	free(online);
	return partial;
}

/* ---- for lists ---- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_names(char **names, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		free(names[i]);
	free(names);
}

/* The names in a directory in their order, so that a list is the same every time. *out is the
 * caller's to free with free_names; how many, or -errno. */
static int list_names(char ***out, const char *path)
{
	size_t nr = 0, capacity = 0;
	struct dirent *entry;
	char **names = NULL;
	DIR *dir;
	int ret = open_dir(&dir, "%s", path);

	*out = NULL;
	if (ret)
		return ret;
	while (!ret && (entry = readdir(dir))) {
		if (!is_file_name(entry->d_name))
			continue;
		if (nr == capacity) {
			char **more;

			capacity = capacity ? 2 * capacity : 64;
			more = realloc(names, capacity * sizeof(*names));
			if (!more) {
				ret = -ENOMEM;
				break;
			}
			names = more;
		}
		names[nr] = strdup(entry->d_name);
		ret = names[nr] ? 0 : -ENOMEM;
		nr += !ret;
	}
	closedir(dir);
	if (ret) {
		free_names(names, nr);
		return ret;
	}
	if (nr)
		qsort(names, nr, sizeof(*names), compare_names);
	*out = names;
	return (int)nr;
}

/* Calls fn with every name of the directory; an unreadable one is an empty one. */
static int each_name(const char *path, int (*fn)(void *ctx, const char *name), void *ctx)
{
	char **names;
	int nr = list_names(&names, path), ret = nr == -ENOMEM ? nr : 0;

	for (int i = 0; i < nr && !ret; i++)
		ret = fn(ctx, names[i]);
	free_names(names, nr > 0 ? (size_t)nr : 0);
	return ret;
}

struct each {
	const char *events; /* tracefs */
	const char *group;  /* the subsystem or PMU at hand */
	int (*tracepoint)(void *ctx, const char *subsys, const char *event);
	int (*pmu_event)(void *ctx, const char *pmu, const char *event, const char *terms);
	void *ctx;
};

static int put_tracepoint(void *ctx, const char *event)
{
	const struct each *each = ctx;

	return is_tracepoint(each->events, each->group, event)
		       ? each->tracepoint(each->ctx, each->group, event)
		       : 0;
}

static int put_subsys(void *ctx, const char *subsys)
{
	struct each *each = ctx;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", each->events, subsys);
	each->group = subsys;
	return each_name(path, put_tracepoint, each);
}

int csw_sysfs_each_tracepoint(int (*fn)(void *ctx, const char *subsys, const char *event),
			      void *ctx, struct csw_error *err)
{
	struct each each = { .tracepoint = fn, .ctx = ctx };
	int ret = find_tracefs(&each.events, err);

	return ret ? ret : each_name(each.events, put_subsys, &each);
}

static int put_pmu_event(void *ctx, const char *event)
{
	const struct each *each = ctx;
	char terms[256];
	size_t nr = strlen(event);

	/* tsc.unit and tsc.scale say how to show tsc. */
	if ((nr > 5 && !strcmp(event + nr - 5, ".unit")) ||
	    (nr > 6 && !strcmp(event + nr - 6, ".scale")) || strstr(event, ".snapshot") ||
	    strstr(event, ".per-pkg"))
		return 0;
	if (csw_sysfs_read(terms, sizeof(terms), PMUS "/%s/events/%s", each->group, event) < 0)
		return 0;
	return each->pmu_event(each->ctx, each->group, event, terms);
}

static int put_pmu(void *ctx, const char *pmu)
{
	struct each *each = ctx;
	char path[PATH_MAX];

	if (counts_nothing(pmu))
		return 0;
	snprintf(path, sizeof(path), PMUS "/%s/events", pmu);
	each->group = pmu;
	return each_name(path, put_pmu_event, each);
}

int csw_sysfs_each_pmu_event(int (*fn)(void *ctx, const char *pmu, const char *event,
				       const char *terms),
			     void *ctx)
{
	struct each each = { .pmu_event = fn, .ctx = ctx };

	return each_name(PMUS, put_pmu, &each);
}
