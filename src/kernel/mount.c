#include "kernel/mount.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

/* From <sys/mount.h>, which cannot be included together with <linux/mount.h>. */
#define UMOUNT_DETACH 2 /* MNT_DETACH */

static unsigned attributes(unsigned flags)
{
	return MOUNT_ATTR_NOSUID | ((flags & MOUNT_RDONLY) ? MOUNT_ATTR_RDONLY : 0u) |
	       ((flags & MOUNT_NODEV) ? MOUNT_ATTR_NODEV : 0u) |
	       ((flags & MOUNT_NOEXEC) ? MOUNT_ATTR_NOEXEC : 0u);
}

static int set_string(int fd, const char *key, const char *value, struct fault *f)
{
	int r = sys.fsconfig(fd, FSCONFIG_SET_STRING, key, value, 0);

	return r < 0 ? fault_set(f, r, "option %s=%s", key, value) : 0;
}

static int set_number(int fd, const char *key, const char *fmt, uint64_t value, struct fault *f)
{
	char text[32];

	(void)snprintf(text, sizeof(text), fmt[0] == 'o' ? "%lo" : "%lu", (unsigned long)value);
	return set_string(fd, key, text, f);
}

/* The configured file system in `fs_fd` as a detached mount. */
static int make(int fs_fd, unsigned flags, int *ret_fd, struct fault *f)
{
	int fd, r;

	r = sys.fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	if (r < 0)
		return fault_set(f, r, "create");
	fd = sys.fsmount(fs_fd, FSMOUNT_CLOEXEC, attributes(flags));
	if (fd < 0)
		return fault_set(f, fd, "fsmount");
	*ret_fd = fd;
	return 0;
}

static int tmpfs_options(int fd, const struct mount_tmpfs *t, struct fault *f)
{
	int r = set_number(fd, "size", "u", t->bytes, f);

	if (r == 0)
		r = set_number(fd, "nr_inodes", "u", t->inodes, f);
	if (r == 0)
		r = set_number(fd, "mode", "o", t->mode, f);
	if (r == 0)
		r = set_number(fd, "uid", "u", t->uid, f);
	if (r == 0)
		r = set_number(fd, "gid", "u", t->uid, f);
	/* A kernel that is built without them knows no such option. */
	if (r == 0 && t->large_pages)
		(void)sys.fsconfig(fd, FSCONFIG_SET_STRING, "huge", "within_size", 0);
	return r;
}

int mount_tmpfs(const struct mount_tmpfs *t, unsigned flags, int *ret_fd, struct fault *f)
{
	cleanup_fd int fd = sys.fsopen("tmpfs", FSOPEN_CLOEXEC);
	int r;

	if (fd < 0)
		return fault_set(f, fd, "tmpfs: fsopen");
	r = tmpfs_options(fd, t, f);
	if (r == 0)
		r = make(fd, flags, ret_fd, f);
	return r < 0 ? fault_wrap(f, "tmpfs") : 0;
}

int mount_tmpfs_resize(int mount_fd, uint64_t bytes, struct fault *f)
{
	cleanup_fd int fd = sys.fspick(mount_fd, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH);
	int r;

	if (fd < 0)
		return fault_set(f, fd, "tmpfs: fspick");
	r = set_number(fd, "size", "u", bytes, f);
	if (r == 0) {
		r = sys.fsconfig(fd, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0);
		if (r < 0)
			(void)fault_set(f, r, "reconfigure");
	}
	return r < 0 ? fault_wrap(f, "tmpfs") : 0;
}

/* The kernel's list has ":" between its members, and "\\" before a byte that stands for itself. */
static int join_layers(const char *const *layers, char *ret, size_t size, struct fault *f)
{
	size_t len = 0;

	for (const char *const *l = layers; *l; l++) {
		int n = snprintf(ret + len, size - len, "%s%s", l == layers ? "" : ":", *l);

		if (n < 0 || (size_t)n >= size - len || strchr(*l, ':') || strchr(*l, '\\'))
			return fault_set(f, -EINVAL, "overlay: directory name %s", *l);
		len += (size_t)n;
	}
	return 0;
}

int mount_overlay(const char *const *layers, unsigned flags, int *ret_fd, struct fault *f)
{
	cleanup_fd int fd = sys.fsopen("overlay", FSOPEN_CLOEXEC);
	char all[512];
	int r;

	if (fd < 0)
		return fault_set(f, fd, "overlay: fsopen");
	r = join_layers(layers, all, sizeof(all), f);
	if (r < 0)
		return r;
	r = set_string(fd, "source", "glovebox", f);
	if (r == 0)
		r = set_string(fd, "lowerdir", all, f);
	/* Otherwise the numbers of directories are given in the order in which somebody asks. */
	if (r == 0)
		r = set_string(fd, "xino", "on", f);
	if (r == 0)
		r = make(fd, flags | MOUNT_RDONLY, ret_fd, f);
	return r < 0 ? fault_wrap(f, "overlay of %s", layers[0]) : 0;
}

int mount_proc(int full, int *ret_fd, struct fault *f)
{
	cleanup_fd int fd = sys.fsopen("proc", FSOPEN_CLOEXEC);
	int r;

	if (fd < 0)
		return fault_set(f, fd, "proc: fsopen");
	r = set_string(fd, "hidepid", "2", f);
	if (r == 0 && !full)
		r = set_string(fd, "subset", "pid", f);
	if (r == 0)
		r = make(fd, MOUNT_RDONLY | MOUNT_NODEV | MOUNT_NOEXEC, ret_fd, f);
	return r < 0 ? fault_wrap(f, "proc") : 0;
}

int mount_attach(int mount_fd, int dir_fd, const char *path, struct fault *f)
{
	int r = sys.move_mount(mount_fd, "", dir_fd, path, MOVE_MOUNT_F_EMPTY_PATH);

	return r < 0 ? fault_set(f, r, "attach at %s", path) : 0;
}

int mount_clone(const char *path, unsigned flags, int *ret_fd, struct fault *f)
{
	struct mount_attr attr = {
		.attr_set = attributes(flags),
		.attr_clr = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
	};
	cleanup_fd int fd = sys.open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	int r;

	if (fd < 0)
		return fault_set(f, fd, "open_tree %s", path);
	r = sys.mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr));
	if (r < 0)
		return fault_set(f, r, "attributes of %s", path);
	*ret_fd = take_fd(&fd);
	return 0;
}

int mount_make_private(struct fault *f)
{
	struct mount_attr attr = { .propagation = 1 << 18 /* MS_PRIVATE */ };
	int r = sys.unshare(CLONE_NEWNS);

	if (r < 0)
		return fault_set(f, r, "unshare the mount namespace");
	r = sys.mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof(attr));
	return r < 0 ? fault_set(f, r, "make all mounts private") : 0;
}

int mount_pivot_here(struct fault *f)
{
	int root, r;

	/* "." twice: the old root ends up on top of the new one, from where the detaching
	 * umount takes it away, and no directory for it is needed. */
	r = sys.pivot_root(".", ".");
	if (r < 0)
		return fault_set(f, r, "pivot_root");
	r = sys.umount2(".", UMOUNT_DETACH);
	if (r < 0)
		return fault_set(f, r, "let go of the old root");
	root = sys.openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (root < 0)
		return fault_set(f, root, "open the new root");
	r = sys.fchdir(root);
	(void)sys.close(root);
	return r < 0 ? fault_set(f, r, "enter the new root") : 0;
}
