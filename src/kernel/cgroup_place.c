#include "kernel/cgroup_internal.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Alone in a group that is ours to arrange. What systemd did not delegate it may
 * rearrange at any time. */
static bool may_leave_own(const struct cgroup_sight *s)
{
	return s->own_writable && !s->own_shared && (s->own_delegated || !s->systemd) &&
	       (s->wanted & s->own_controllers);
}

/* Without systemd, root may go to the top of the hierarchy; without a controller to hand
 * on even where that top, in a container, is a group like any other. */
static bool may_use_top(const struct cgroup_sight *s)
{
	return s->is_root && (s->top_is_real || s->wanted == 0);
}

enum cgroup_place cgroup_decide(const struct cgroup_sight *s)
{
	if (*s->path)
		return CGROUP_PLACE_PATH;
	/* Without a controller to hand on, children may be made beside processes. The same
	 * is true of the hierarchy's real root, always. */
	if (s->own_writable && (s->own_is_top || s->wanted == 0))
		return CGROUP_PLACE_OWN;

	if (may_leave_own(s)) {
		bool lacks_some = s->wanted & ~s->own_controllers;

		return lacks_some && !s->systemd && may_use_top(s) ? CGROUP_PLACE_TOP
								   : CGROUP_PLACE_LEAVE_OWN;
	}
	if (s->systemd && s->wanted)
		return CGROUP_PLACE_SCOPE;
	return may_use_top(s) ? CGROUP_PLACE_TOP : CGROUP_PLACE_NONE;
}

int cgroup_find_v1(const struct cgroup_mounts *m, enum cgroup_controller c)
{
	for (unsigned i = 0; i < m->count; i++) {
		if (m->m[i].version == 1 && (m->m[i].controllers & CGROUP_BIT(c)))
			return (int)i;
	}
	return -1;
}

/* Keep the mounts that are what they seem: one may be hidden below another. */
static void drop_hidden(struct cgroup_mounts *m)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < m->count; i++) {
		cleanup_fd int fd =
			sys.openat(AT_FDCWD, m->m[i].point, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
		struct statfs fs;

		if (fd < 0 || sys.fstatfs(fd, &fs) < 0)
			continue;
		if (fs.f_type != (m->m[i].version == 2 ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC))
			continue;
		if (i != kept)
			m->m[kept] = m->m[i];
		kept++;
	}
	m->count = kept;
}

/* A cgroup2 mount that is writable and shows our own group; -1 when there is none. */
static int choose_unified(const struct cgroup_host *h)
{
	char unused[CGROUP_PATH_MAX];

	for (unsigned i = 0; i < h->mounts.count; i++) {
		const struct cgroup_mount *m = &h->mounts.m[i];

		if (m->version == 2 && !m->read_only &&
			cgroup_relative(m->root, h->own.unified, unused))
			return (int)i;
	}
	return -1;
}

/* A cgroup2 mount that nobody else sees and that goes with its last descriptor. */
static int mount_unified(struct fault *f)
{
	cleanup_fd int fs_fd = -1;
	int fd, r;

	fs_fd = sys.fsopen("cgroup2", FSOPEN_CLOEXEC);
	if (fs_fd < 0)
		return fault_set(f, fs_fd,
			"no cgroup2 mount that is writable and shows our group, and fsopen "
			"cgroup2");
	r = sys.fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	if (r < 0)
		return fault_set(f, r,
			"no cgroup2 mount that is writable and shows our group, and mounting one");
	fd = sys.fsmount(
		fs_fd, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (fd < 0)
		return fault_set(f, fd,
			"no cgroup2 mount that is writable and shows our group, and fsmount "
			"cgroup2");
	return fd;
}

static int open_unified(struct cgroup_host *h, struct fault *f)
{
	cleanup_fd int mount_fd = -1;
	int fd;

	h->unified = choose_unified(h);
	if (h->unified >= 0) {
		const char *point = h->mounts.m[h->unified].point;

		fd = sys.openat(AT_FDCWD, point, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
		if (fd < 0)
			return fault_set(f, fd, "open %s", point);
		h->unified_fd = fd;
		return 0;
	}
	mount_fd = mount_unified(f);
	if (mount_fd < 0)
		return mount_fd;
	/* What fsmount() gives is O_PATH: enough to open from, not to list. */
	fd = cgroup_open_dir(mount_fd, ".");
	if (fd < 0)
		return fault_set(f, fd, "open the cgroup2 mount");
	h->unified_fd = fd;
	return 0;
}

static int read_own(struct cgroup_host *h, struct fault *f)
{
	int r = 0;
	cleanup_free char *text = cgroup_slurp("/proc/self/cgroup", &r);

	if (text)
		r = cgroup_parse_own(text, &h->own);
	return r < 0 ? fault_set(f, r, "read /proc/self/cgroup") : 0;
}

/* Are there other processes than this one in the group? What cannot be told counts as
 * a yes. A pid of 0 is a process of another pid namespace. */
static bool is_shared(int dir_fd)
{
	bool us = false, others = true;

	return cgroup_read_procs(dir_fd, &us, &others) < 0 || others;
}

/* systemd's mark on what it delegates: "user." since 250, "trusted." before. */
static bool is_delegated(int dir_fd)
{
	static const char *const names[] = { "user.delegate", "trusted.delegate" };

	for (unsigned i = 0; i < 2; i++) {
		char value = 0;

		if (fgetxattr(dir_fd, names[i], &value, 1) == 1 && value == '1')
			return true;
	}
	return false;
}

static unsigned controllers_of(int dir_fd)
{
	char text[CGROUP_TEXT_MAX];

	if (cgroup_read(dir_fd, "cgroup.controllers", text, sizeof(text)) < 0)
		return 0;
	return cgroup_parse_controllers(text);
}

static void look_at_unified(struct cgroup_host *h)
{
	const char *root = h->unified >= 0 ? h->mounts.m[h->unified].root : "/";
	struct cgroup_sight *s = &h->sight;
	cleanup_fd int own_fd = -1;

	/* Only the real root has no type of its own. */
	s->top_is_real = !cgroup_has(h->unified_fd, "cgroup.type");
	s->wanted = controllers_of(h->unified_fd);
	for (unsigned c = 0; c < CGROUP_CONTROLLER_MAX; c++) {
		if (cgroup_find_v1(&h->mounts, c) >= 0)
			s->wanted &= ~CGROUP_BIT(c);
	}
	if (!cgroup_relative(root, h->own.unified, h->own_base))
		return;
	cgroup_strip_instance(h->own_base);
	own_fd = cgroup_open_dir(h->unified_fd, h->own_base[1] ? h->own_base + 1 : ".");
	if (own_fd < 0)
		return;
	s->own_is_top = s->top_is_real && h->own_base[1] == '\0';
	s->own_writable = faccessat(own_fd, "cgroup.procs", W_OK, AT_EACCESS) == 0 &&
			  faccessat(own_fd, ".", W_OK, AT_EACCESS) == 0;
	s->own_delegated = is_delegated(own_fd);
	s->own_shared = is_shared(own_fd);
	s->own_controllers = controllers_of(own_fd);
}

void cgroup_host_done(struct cgroup_host *h)
{
	drop_fd(&h->unified_fd);
}

int cgroup_look(const char *path, struct cgroup_host *ret, struct fault *f)
{
	CLEANUP(cgroup_host_done) struct cgroup_host h = { .unified_fd = -1, .own_base = "/" };
	cleanup_free char *text = NULL;
	int r = 0;

	if (*path) {
		r = cgroup_check_path(path);
		if (r < 0)
			return fault_say(f, r,
				"cgroup path \"%s\": must begin with \"/\" and have no empty, "
				"\".\" or "
				"\"..\" part",
				path);
	}
	text = cgroup_slurp("/proc/self/mountinfo", &r);
	if (text)
		r = cgroup_parse_mountinfo(text, &h.mounts);
	if (r < 0)
		return fault_set(f, r, "read /proc/self/mountinfo");
	drop_hidden(&h.mounts);
	r = read_own(&h, f);
	if (r < 0)
		return r;
	r = open_unified(&h, f);
	if (r < 0)
		return r;
	/* Until somebody mounts it, the unified hierarchy is not listed. */
	if (h.own.unified[0] == '\0') {
		r = read_own(&h, f);
		if (r < 0)
			return r;
	}
	h.sight.path = path;
	h.sight.systemd = faccessat(AT_FDCWD, "/run/systemd/system", F_OK, 0) == 0;
	h.sight.is_root = geteuid() == 0;
	look_at_unified(&h);

	*ret = h;
	h.unified_fd = -1;
	return 0;
}

int cgroup_needs_scope(const char *path, struct fault *f)
{
	struct cgroup_host h;
	enum cgroup_place place;
	int r;

	r = cgroup_look(path, &h, f);
	if (r < 0)
		return r;
	place = cgroup_decide(&h.sight);
	cgroup_host_done(&h);
	return place == CGROUP_PLACE_SCOPE;
}
