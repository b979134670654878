#include "kernel/image.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <linux/mount.h>
#include <stdio.h>

#define LOOP_TRIES 64 /* others take loop devices, too: between the question and the answer */
#define DEVICE_MAX 32

/* A free loop device that shows the file, read-only, until nobody has it open or mounted. */
static int attach(int file_fd, char device[static DEVICE_MAX], struct fault *f)
{
	cleanup_fd int control = sys.openat(AT_FDCWD, "/dev/loop-control", O_RDWR | O_CLOEXEC, 0);
	struct loop_config config = {
		.fd = (unsigned)file_fd,
		.info.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR,
	};
	int r = -EBUSY;

	if (control < 0)
		return fault_set(f, control, "open /dev/loop-control");
	for (unsigned i = 0; r == -EBUSY && i < LOOP_TRIES; i++) {
		cleanup_fd int fd = -1;
		int n = sys.ioctl(control, LOOP_CTL_GET_FREE, NULL);

		if (n < 0)
			return fault_set(f, n, "find a free loop device");
		(void)snprintf(device, DEVICE_MAX, "/dev/loop%d", n);
		fd = sys.openat(AT_FDCWD, device, O_RDONLY | O_CLOEXEC, 0);
		if (fd < 0)
			return fault_set(f, fd, "open %s", device);
		r = sys.ioctl(fd, LOOP_CONFIGURE, &config);
		if (r == 0)
			return take_fd(&fd);
	}
	return fault_set(f, r, "put the image behind %s", device);
}

static int make(int fs_fd, const char *device, int *ret_fd, struct fault *f)
{
	int r = sys.fsconfig(fs_fd, FSCONFIG_SET_STRING, "source", device, 0), fd;

	if (r == 0)
		r = sys.fsconfig(fs_fd, FSCONFIG_SET_FLAG, "ro", NULL, 0);
	if (r == 0)
		r = sys.fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	if (r < 0)
		return fault_set(f, r, "squashfs on %s", device);
	fd = sys.fsmount(
		fs_fd, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (fd < 0)
		return fault_set(f, fd, "squashfs: fsmount");
	*ret_fd = fd;
	return 0;
}

int image_mount(int file_fd, int *ret_fd, struct fault *f)
{
	cleanup_fd int fs = -1, loop = -1;
	char device[DEVICE_MAX];

	loop = attach(file_fd, device, f);
	if (loop < 0)
		return loop;
	fs = sys.fsopen("squashfs", FSOPEN_CLOEXEC);
	if (fs < 0)
		return fault_set(f, fs, "squashfs: fsopen");
	return make(fs, device, ret_fd, f);
}
