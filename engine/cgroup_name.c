/*
 * What people call a cgroup; see cgroup_name.h.
 *
 * A path is read component by component, and what stands deeper wins: a unit within a container
 * belongs to the container, a container within a unit's delegated tree is the container. Invariant:
 * a name is made of the path alone, nothing is asked of the system, so a recording's names are the
 * live ones.
 */
#include "engine/cgroup_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define ID_SHOWN 12 /* as the container engines themselves shorten */
#define ID_LEAST 32
#define UID_SHOWN 8

struct part {
	const char *text;
	size_t bytes;
};

/* What has been found so far on the way down. */
struct finding {
	const char *engine; /* "docker", or NULL */
	struct part id;     /* the container's */
	struct part pod;    /* the pod's uid */
	struct part user;   /* "user@1000.service" */
	struct part unit;
	const char *below; /* what follows the container or the unit */
};

static bool starts(struct part p, const char *with)
{
	size_t bytes = strlen(with);

	return p.bytes >= bytes && memcmp(p.text, with, bytes) == 0;
}

static bool ends(struct part p, const char *with)
{
	size_t bytes = strlen(with);

	return p.bytes > bytes && memcmp(p.text + p.bytes - bytes, with, bytes) == 0;
}

static bool is_id(struct part p)
{
	for (size_t i = 0; i < p.bytes; i++) {
		if (!isxdigit((unsigned char)p.text[i]))
			return false;
	}
	return p.bytes >= ID_LEAST;
}

/* "PREFIX<id>.scope" */
static bool find_scope(struct finding *f, struct part p)
{
	static const struct {
		const char *prefix, *engine;
	} known[] = {
		{ "docker-", "docker" },
		{ "libpod-", "podman" },
		{ "cri-containerd-", "containerd" },
		{ "crio-", "cri-o" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		size_t around = strlen(known[i].prefix) + strlen(".scope");
		struct part id;

		if (!starts(p, known[i].prefix) || !ends(p, ".scope") || p.bytes < around)
			continue;
		id.text = p.text + strlen(known[i].prefix);
		id.bytes = p.bytes - around;
		if (!is_id(id))
			continue;
		f->engine = known[i].engine;
		f->id = id;
		return true;
	}
	return false;
}

/* "/docker/<id>", and "<id>" below a pod: the driver without systemd. */
static bool find_bare(struct finding *f, struct part p, struct part parent)
{
	bool docker = parent.bytes == strlen("docker") && starts(parent, "docker");

	if (!is_id(p) || (!docker && !f->pod.bytes))
		return false;
	f->engine = docker ? "docker" : "container";
	f->id = p;
	return true;
}

/* "kubepods-burstable-pod<uid>.slice", or "pod<uid>" below kubepods. */
static bool find_pod(struct finding *f, struct part p, bool in_kubepods)
{
	struct part uid = p;

	if (starts(p, "kubepods-") && ends(p, ".slice")) {
		uid.bytes -= strlen(".slice");
		while (uid.bytes && !starts(uid, "-pod")) {
			uid.text++;
			uid.bytes--;
		}
		if (!uid.bytes)
			return false;
		uid.text++;
		uid.bytes--;
	} else if (!in_kubepods || !starts(p, "pod")) {
		return false;
	}
	uid.text += strlen("pod");
	uid.bytes -= strlen("pod");
	if (uid.bytes < UID_SHOWN)
		return false;
	f->pod = uid;
	return true;
}

static bool find_unit(struct finding *f, struct part p)
{
	if (!ends(p, ".service") && !ends(p, ".scope"))
		return false;
	f->unit = p;
	if (starts(p, "user@"))
		f->user = p;
	return true;
}

static void read_path(struct finding *f, const char *path)
{
	struct part parent = { path, 0 };
	bool in_kubepods = false;

	for (const char *at = path; *at;) {
		struct part p = { at, strcspn(at, "/") };

		at += p.bytes;
		if (p.bytes) {
			if (find_pod(f, p, in_kubepods) || find_scope(f, p) ||
			    find_bare(f, p, parent) ||
			    (!f->engine && !f->pod.bytes && find_unit(f, p)))
				f->below = at;
			in_kubepods = in_kubepods || starts(p, "kubepods");
			parent = p;
		}
		while (*at == '/')
			at++;
	}
}

static int shown(struct part p, size_t most)
{
	return (int)(p.bytes < most ? p.bytes : most);
}

const char *csw_cgroup_name(char *out, size_t bytes, const char *path)
{
	struct finding f = { .below = path };
	struct part u;
	bool nested;

	read_path(&f, path);
	u = f.unit;
	nested = f.user.bytes && f.user.text != u.text;
	if (f.pod.bytes && f.engine)
		snprintf(out, bytes, "pod %.*s/%.*s%s", UID_SHOWN, f.pod.text,
			 shown(f.id, ID_SHOWN), f.id.text, f.below);
	else if (f.pod.bytes)
		snprintf(out, bytes, "pod %.*s%s", UID_SHOWN, f.pod.text, f.below);
	else if (f.engine)
		snprintf(out, bytes, "%s %.*s%s", f.engine, shown(f.id, ID_SHOWN), f.id.text,
			 f.below);
	else if (u.bytes)
		snprintf(out, bytes, "%.*s%s%.*s%s", nested ? (int)f.user.bytes : 0,
			 nested ? f.user.text : "", nested ? "/" : "", (int)u.bytes, u.text,
			 f.below);
	else
		snprintf(out, bytes, "%s", path);
	return out;
}
