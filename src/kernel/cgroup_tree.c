#include "kernel/cgroup_internal.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAKE_TRIES 8

/* Let the children of a v2 group have the controllers in `wanted`. Only -EBUSY (processes
 * are in the way) is worth a refusal: what is missing for any other reason is simply not
 * there, and note_unified() sees it. */
static int enable(int dir_fd, unsigned wanted)
{
	char text[CGROUP_TEXT_MAX];
	unsigned there = 0, on = 0;

	if (cgroup_read(dir_fd, "cgroup.controllers", text, sizeof(text)) >= 0)
		there = cgroup_parse_controllers(text);
	if (cgroup_read(dir_fd, "cgroup.subtree_control", text, sizeof(text)) >= 0)
		on = cgroup_parse_controllers(text);
	for (unsigned c = 0; c < CGROUP_CONTROLLER_MAX; c++) {
		char word[16];

		if (!(wanted & there & ~on & CGROUP_BIT(c)))
			continue;
		(void)snprintf(word, sizeof(word), "+%s", cgroup_controller_name(c));
		if (cgroup_write(dir_fd, "cgroup.subtree_control", word) == -EBUSY)
			return -EBUSY;
	}
	return 0;
}

/* One hierarchy to go into. */
struct entry {
	int version;
	int top_fd;
	const char *mount, *base;
	bool make;       /* base may be created */
	unsigned wanted; /* v2: controllers */
};

/* Take the last `made` parts of the first `len` bytes of `path` away again, as long as
 * nothing is in them. */
static void remove_made(int top_fd, const char *path, size_t len, unsigned made)
{
	char rest[CGROUP_PATH_MAX];

	(void)snprintf(rest, sizeof(rest), "%.*s", (int)len, path);
	for (; made > 0; made--) {
		char *last = strrchr(rest, '/');

		if (!last || sys.unlinkat(top_fd, rest + 1, AT_REMOVEDIR) < 0)
			return;
		*last = '\0';
	}
}

/* Open the group `part` in `fd`; make it where that is allowed, and count that. */
static int open_part(int fd, const char *part, const struct entry *e, unsigned *made)
{
	int next = cgroup_open_dir(fd, part), r;
	bool is_ours;

	if (next != -ENOENT || !e->make)
		return next;
	r = sys.mkdirat(fd, part, 0755);
	if (r < 0 && r != -EEXIST)
		return r;
	is_ours = r == 0;
	r = enable(fd, e->wanted);
	if (r == 0)
		r = next = cgroup_open_dir(fd, part);
	if (r < 0) {
		if (is_ours)
			(void)sys.unlinkat(fd, part, AT_REMOVEDIR);
		return r;
	}
	*made += is_ours;
	return next;
}

/* Open e->base, one part after the other. `*ret_made` says how many parts at its end were
 * not there before; on failure none of these is left. */
static int open_base(const struct entry *e, unsigned *ret_made)
{
	cleanup_fd int fd = cgroup_open_dir(e->top_fd, ".");
	const char *at = e->base, *before = at;
	unsigned made = 0;

	while (fd >= 0) {
		char part[CGROUP_PATH_MAX];
		size_t len;
		int next;

		before = at;
		at += strspn(at, "/");
		len = strcspn(at, "/");
		if (len == 0)
			break;
		(void)snprintf(part, sizeof(part), "%.*s", (int)len, at);
		at += len;
		next = open_part(fd, part, e, &made);
		drop_fd(&fd);
		fd = next;
	}
	if (fd < 0)
		remove_made(e->top_fd, e->base, (size_t)(before - e->base), made);
	*ret_made = made;
	return take_fd(&fd);
}

static int refuse_crowd(const char *base, struct fault *f)
{
	return fault_say(f, -EBUSY,
		"processes are in the group (or the one above), so that no limits can be set below "
		"it; name one "
		"without "
		"processes by --cgroup, or start Glovebox as the only process of its group: %s",
		base);
}

/* Open e->base and make the instance's group in it: 0, or -EEXIST when it was there. */
static int make_instance(const struct cgroup_tree *t, const struct entry *e,
	struct cgroup_hierarchy *h, int *base_fd)
{
	int fd, r;

	fd = open_base(e, &h->made);
	if (fd < 0)
		return fd;
	r = sys.mkdirat(fd, t->name, 0755);
	if (r < 0 && r != -EEXIST) {
		(void)sys.close(fd);
		remove_made(e->top_fd, e->base, strlen(e->base), h->made);
		return r;
	}
	*base_fd = fd;
	return r;
}

/* Make (or take over, emptied) the instance's group below e->base and add the hierarchy
 * to `t`. */
static int enter(struct cgroup_tree *t, const struct entry *e, struct fault *f)
{
	struct cgroup_hierarchy h = { .version = e->version, .dir_fd = -1 };
	cleanup_fd int base_fd = -1;
	int r = -ENOENT;

	(void)snprintf(h.mount, sizeof(h.mount), "%s", e->mount);
	(void)snprintf(h.base, sizeof(h.base), "%s", e->base);
	/* Another instance that ends may take away the base that it had made. */
	for (unsigned i = 0; i < MAKE_TRIES && r == -ENOENT; i++)
		r = make_instance(t, e, &h, &base_fd);
	if (r == -EBUSY)
		return refuse_crowd(h.base, f);
	if (r < 0 && r != -EEXIST)
		return fault_set(f, r, "%s: make a group in %s", h.mount, h.base);
	h.dir_fd = cgroup_open_dir(base_fd, t->name);
	if (h.dir_fd < 0) {
		int code = h.dir_fd;

		(void)sys.unlinkat(base_fd, t->name, AT_REMOVEDIR);
		remove_made(e->top_fd, e->base, strlen(e->base), h.made);
		return fault_set(f, code, "%s: open the group made in %s", h.mount, h.base);
	}
	/* From here on cgroup_tree_close() undoes it. */
	t->h[t->count++] = h;
	if (r == -EEXIST) {
		r = cgroup_empty_instance(h.dir_fd, clock_ns() + CGROUP_SWEEP_NS);
		if (r < 0)
			return fault_set(f, r, "%s: empty what an earlier instance left in %s",
				h.mount, h.base);
	}
	return 0;
}

/* Move this process out of the group whose children are to get controllers. */
static int leave_base(struct cgroup_tree *t, struct fault *f)
{
	cleanup_fd int leaf_fd = -1;
	int r;

	r = sys.mkdirat(t->h[0].dir_fd, CGROUP_SUPERVISOR, 0755);
	if (r < 0 && r != -EEXIST)
		return fault_set(f, r, "make the supervisor's own group");
	leaf_fd = cgroup_open_dir(t->h[0].dir_fd, CGROUP_SUPERVISOR);
	if (leaf_fd < 0)
		return fault_set(f, leaf_fd, "open the supervisor's own group");
	r = cgroup_write(leaf_fd, "cgroup.procs", "0");
	if (r < 0)
		return fault_set(f, r, "move into the supervisor's own group");
	t->moved = true;
	return 0;
}

/* Hand the controllers down from the base to the cells. */
static int enable_down(struct cgroup_tree *t, unsigned wanted, struct fault *f)
{
	cleanup_fd int base_fd = cgroup_open_dir(t->h[0].dir_fd, "..");
	int r;

	if (base_fd < 0)
		return fault_set(f, base_fd, "open group %s", t->h[0].base);
	r = enable(base_fd, wanted);
	if (r < 0)
		return fault_say(f, r,
			"other processes are in the group, so that no limits can be set below it; "
			"name "
			"a group without processes by --cgroup, or start Glovebox as the only "
			"process "
			"of its group: %s",
			t->h[0].base);
	r = enable(t->h[0].dir_fd, wanted);
	return r < 0 ? fault_set(f, r, "enable controllers in %s", t->name) : 0;
}

static int refuse(enum cgroup_place place, const struct cgroup_host *h, struct fault *f)
{
	if (place == CGROUP_PLACE_SCOPE)
		return fault_say(f, -EACCES,
			"no limits can be set below a group that systemd did not delegate; use a "
			"service "
			"with Delegate=yes, \"systemd-run --scope -p Delegate=yes glovebox ...\", "
			"or "
			"--cgroup PATH (own group: %s)",
			h->own.unified);
	return fault_say(f, -EACCES,
		"no control group to work in: be root, or start Glovebox as the only process of a "
		"writable group, or name one by --cgroup PATH (own group: %s)",
		h->own.unified);
}

static int choose_base(const struct cgroup_host *host, enum cgroup_place place,
	char ret[CGROUP_PATH_MAX], struct fault *f)
{
	const char *root = host->unified >= 0 ? host->mounts.m[host->unified].root : "/";

	if (place == CGROUP_PLACE_SCOPE || place == CGROUP_PLACE_NONE)
		return refuse(place, host, f);
	if (place != CGROUP_PLACE_PATH)
		(void)snprintf(ret, CGROUP_PATH_MAX, "%s",
			place == CGROUP_PLACE_TOP ? "/" : host->own_base);
	else if (!cgroup_relative(root, host->sight.path, ret))
		return fault_say(f, -ENOENT,
			"cgroup path %s is not below %s, which is all that is "
			"mounted here",
			host->sight.path, root);
	return 0;
}

/* Is this process in the very group whose children are to get controllers, and is that
 * not the hierarchy's real root, which may have both? */
static bool must_leave(const struct cgroup_host *host, enum cgroup_place place, const char *base)
{
	bool real_top = host->sight.top_is_real && strcmp(base, "/") == 0;

	if (host->sight.wanted == 0 || real_top)
		return false;
	return place == CGROUP_PLACE_LEAVE_OWN || strcmp(base, host->own_base) == 0;
}

static int enter_unified(struct cgroup_tree *t, const struct cgroup_host *host, struct fault *f)
{
	enum cgroup_place place = cgroup_decide(&host->sight);
	char base[CGROUP_PATH_MAX];
	struct entry e = {
		.version = 2,
		.top_fd = host->unified_fd,
		.mount = "(private cgroup2 mount)",
		.base = base,
		.make = place == CGROUP_PLACE_PATH,
		.wanted = host->sight.wanted,
	};
	int r;

	if (host->unified >= 0)
		e.mount = host->mounts.m[host->unified].point;
	r = choose_base(host, place, base, f);
	if (r == 0)
		r = enter(t, &e, f);
	if (r == 0 && must_leave(host, place, base))
		r = leave_base(t, f);
	if (r == 0 && e.wanted)
		r = enable_down(t, e.wanted, f);
	return r;
}

/* Which v2 controllers do the cells really get? */
static void note_unified(struct cgroup_tree *t)
{
	char text[CGROUP_TEXT_MAX];
	unsigned on = 0;

	if (cgroup_read(t->h[0].dir_fd, "cgroup.subtree_control", text, sizeof(text)) >= 0)
		on = cgroup_parse_controllers(text);
	for (unsigned c = 0; c < CGROUP_CONTROLLER_MAX; c++)
		t->of[c] = on & CGROUP_BIT(c) ? 0 : -1;
	/* CPU time is counted by the v2 core, whoever has the controllers. */
	if (cgroup_has(t->h[0].dir_fd, "cpu.stat"))
		t->of[CGROUP_CPUACCT] = 0;
}

static bool is_absence(int code)
{
	return code == -EROFS || code == -EACCES || code == -EPERM || code == -ENOENT;
}

static int enter_v1(struct cgroup_tree *t, const struct cgroup_host *host, enum cgroup_controller c,
	int mount, struct fault *f)
{
	const struct cgroup_mount *m = &host->mounts.m[mount];
	const char *group = *host->sight.path ? host->sight.path : host->own.v1[c];
	cleanup_fd int top_fd = -1;
	char base[CGROUP_PATH_MAX];
	struct entry e = { .version = 1, .mount = m->point, .base = base };

	e.make = *host->sight.path != '\0';
	if (!cgroup_relative(m->root, group, base))
		(void)snprintf(base, sizeof(base), "/");
	top_fd = sys.openat(AT_FDCWD, m->point, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (top_fd < 0)
		return fault_set(f, top_fd, "open %s", m->point);
	e.top_fd = top_fd;
	return enter(t, &e, f);
}

/* The controllers that v1 hierarchies have; several may share one. */
static int enter_v1_all(struct cgroup_tree *t, const struct cgroup_host *host, struct fault *f)
{
	int index_of[CGROUP_MOUNTS_MAX] = { 0 };

	for (unsigned c = 0; c < CGROUP_CONTROLLER_MAX; c++) {
		int mount = cgroup_find_v1(&host->mounts, c);
		struct fault absent = { 0 };
		unsigned before = t->count;
		int r;

		if (t->of[c] >= 0 || mount < 0)
			continue;
		if (index_of[mount]) {
			t->of[c] = index_of[mount];
			continue;
		}
		r = enter_v1(t, host, c, mount, &absent);
		if (r < 0 && (*host->sight.path || !is_absence(r) || t->count > before)) {
			*f = absent;
			return r;
		}
		if (r < 0)
			continue;
		index_of[mount] = (int)before;
		t->of[c] = (int)before;
	}
	return 0;
}

/* A kernel can have a controller and still not the one file that is needed of it. */
static void check_files(struct cgroup_tree *t)
{
	static const enum cgroup_controller checked[] = { CGROUP_MEMORY, CGROUP_CPU, CGROUP_PIDS };

	for (unsigned i = 0; i < sizeof(checked) / sizeof(checked[0]); i++) {
		enum cgroup_controller c = checked[i];
		const struct cgroup_ops *ops;
		const char *file;

		if (t->of[c] < 0)
			continue;
		ops = cgroup_ops_of(t, c);
		file = c == CGROUP_MEMORY ? ops->memory_file
		       : c == CGROUP_CPU  ? ops->cpu_file
					  : ops->pids_file;
		if (c == CGROUP_MEMORY)
			t->swap_accounting = cgroup_has(t->h[t->of[c]].dir_fd, ops->swap_file);
		if (!cgroup_has(t->h[t->of[c]].dir_fd, file))
			t->of[c] = -1;
	}
}

int cgroup_tree_open(struct cgroup_tree *ret, unsigned number, const char *path, struct fault *f)
{
	struct cgroup_tree t = { 0 };
	CLEANUP(cgroup_host_done) struct cgroup_host host = { .unified_fd = -1 };
	int r;

	(void)snprintf(t.name, sizeof(t.name), CGROUP_PREFIX "%u", number);
	r = cgroup_look(path, &host, f);
	if (r == 0)
		r = enter_unified(&t, &host, f);
	if (r == 0) {
		note_unified(&t);
		r = enter_v1_all(&t, &host, f);
	}
	if (r < 0) {
		cgroup_tree_close(&t);
		(void)fault_wrap(f, "control groups");
		return r;
	}
	check_files(&t);
	*ret = t;
	return 0;
}

/* ---- Undoing it ---- */

/* Go back to where this process came from: the base, once its children have no
 * controllers. Another instance that needs them keeps us from it (EBUSY): then the
 * group stays, for the next one to sweep. */
static void return_to_base(struct cgroup_tree *t, int base_fd)
{
	const int dirs[] = { t->h[0].dir_fd, base_fd };

	for (unsigned i = 0; i < 2; i++) {
		for (unsigned c = 0; c < CGROUP_CONTROLLER_MAX; c++) {
			char word[16];

			/* Whatever was found of them later: what is on keeps us out. */
			if (c == CGROUP_CPUACCT)
				continue;
			(void)snprintf(word, sizeof(word), "-%s", cgroup_controller_name(c));
			(void)cgroup_write(dirs[i], "cgroup.subtree_control", word);
		}
	}
	if (cgroup_write(base_fd, "cgroup.procs", "0") == 0)
		t->moved = false;
}

/* Take away the groups of --cgroup that were not there before this instance. */
static void unmake_base(int base_fd, const struct cgroup_hierarchy *h)
{
	cleanup_fd int top_fd = -1;
	char up[CGROUP_PATH_MAX * 2] = ".";
	size_t n = 1;

	if (h->made == 0)
		return;
	for (const char *p = h->base; p && p[1]; p = strchr(p + 1, '/'))
		n += (size_t)snprintf(up + n, sizeof(up) - n, "/..");
	top_fd = cgroup_open_dir(base_fd, up);
	if (top_fd >= 0)
		remove_made(top_fd, h->base, strlen(h->base), h->made);
}

void cgroup_tree_close(struct cgroup_tree *t)
{
	uint64_t deadline_ns = clock_ns() + CGROUP_SWEEP_NS;

	for (unsigned i = 0; i < t->count; i++) {
		struct cgroup_hierarchy *h = &t->h[i];
		cleanup_fd int base_fd = cgroup_open_dir(h->dir_fd, "..");

		(void)cgroup_empty_instance(h->dir_fd, deadline_ns);
		if (base_fd >= 0 && i == 0 && t->moved)
			return_to_base(t, base_fd);
		drop_fd(&h->dir_fd);
		if (base_fd < 0)
			continue;
		(void)cgroup_remove_instance(
			base_fd, t->name, i == 0 && t->moved ? 0 : deadline_ns);
		unmake_base(base_fd, h);
	}
	t->count = 0;
}
