/* The root of an image, below VIEW_DIR/image.N:
 *
 *   top/    what Glovebox makes: mount points, /etc's few files
 *   root/   where the image is mounted
 *
 * A cell's root is the one over the other: what the image has at such a name is not seen. */
#include "priv/launch/view.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/image.h"
#include "kernel/mount.h"
#include "kernel/sys.h"
#include "priv/launch/view_etc.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

static int make_top(int dir_fd, struct fault *f)
{
	static const char *const places[] = { "dev", "proc", "etc", "tmp", "workspace", "var",
		"run" };
	cleanup_fd int top = -1;
	int r = view_make_dirs(dir_fd, "top", f);

	if (r < 0)
		return r;
	top = sys.openat(dir_fd, "top", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (top < 0)
		return fault_set(f, top, "open top");
	for (size_t i = 0; r == 0 && i < sizeof(places) / sizeof(places[0]); i++)
		r = view_make_dirs(top, places[i], f);
	if (r == 0) {
		r = sys.symlinkat("/tmp", top, "var/tmp");
		if (r < 0)
			(void)fault_set(f, r, "link var/tmp");
	}
	return r < 0 ? r : view_make_own_etc(top, f);
}

static int open_image(int file_fd, const char *path, struct fault *f)
{
	cleanup_fd int template = -1, dir = -1, mount = -1;
	const char *name = path + sizeof(VIEW_DIR); /* and a slash */
	int r;

	template = sys.openat(AT_FDCWD, VIEW_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (template <0)
		return fault_set(f, template, "open " VIEW_DIR);
	/* First what can fail for a reason of the image's own. */
	r = image_mount(file_fd, &mount, f);
	if (r == 0)
		r = view_make_dirs(template, name, f);
	if (r < 0)
		return r;
	dir = sys.openat(template, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir < 0)
		return fault_set(f, dir, "open %s", name);
	r = make_top(dir, f);
	if (r == 0)
		r = view_make_dirs(dir, "root", f);
	return r < 0 ? r : mount_attach(mount, dir, "root", f);
}

int view_open_image(struct view *ret, int file_fd, unsigned number, struct fault *f)
{
	mode_t mask;
	int r;

	*ret = (struct view){ .count = 0 };
	(void)snprintf(ret->image, sizeof(ret->image), VIEW_DIR "/image.%u", number);
	mask = umask(0);
	r = open_image(file_fd, ret->image, f);
	(void)umask(mask);
	if (r < 0)
		view_remove(ret->image);
	return r;
}

int view_close_image(const struct view *v)
{
	char root[sizeof(v->image) + sizeof("/root")];
	int r;

	(void)snprintf(root, sizeof(root), "%s/root", v->image);
	r = sys.umount2(root, MNT_DETACH | UMOUNT_NOFOLLOW);
	if (r == 0)
		view_remove(v->image);
	return r;
}
