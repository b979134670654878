#include "priv/launch/build.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/mount.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

/* Everybody may look: the program can be another user than the compiler. Where it is the same one,
 * because its cell got the compiler's place, what keeps it from writing is its mount alone. */
#define BUILD_MODE 0755

#define PATH_ROOM (sizeof(VIEW_DIR) + 32)

static void path_of(unsigned number, char path[static PATH_ROOM])
{
	(void)snprintf(path, PATH_ROOM, VIEW_DIR "/build.%u", number);
}

int build_make(unsigned number, const struct view_scratch *how, struct fault *f)
{
	const struct mount_tmpfs t = { how->bytes, how->inodes, BUILD_MODE, how->uid };
	cleanup_fd int fd = -1;
	char path[PATH_ROOM];
	int r;

	path_of(number, path);
	r = sys.mkdirat(AT_FDCWD, path, 0700);
	if (r < 0 && r != -EEXIST)
		return fault_set(f, r, "mkdir %s", path);
	r = mount_tmpfs(&t, MOUNT_NODEV | MOUNT_NOEXEC, &fd, f);
	if (r == 0)
		r = mount_attach(fd, AT_FDCWD, path, f);
	return r < 0 ? fault_wrap(f, "place for a build") : 0;
}

int build_mount(unsigned number, bool compiler, int *ret_fd, struct fault *f)
{
	char path[PATH_ROOM];
	int r;

	path_of(number, path);
	r = mount_clone(path, MOUNT_NODEV | (compiler ? MOUNT_NOEXEC : MOUNT_RDONLY), ret_fd, f);
	return r < 0 ? fault_wrap(f, "show a build") : 0;
}

int build_drop(unsigned number)
{
	char path[PATH_ROOM];
	int r;

	path_of(number, path);
	r = sys.umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
	return r == -EINVAL || r == -ENOENT ? 0 : r; /* nothing is mounted there */
}
