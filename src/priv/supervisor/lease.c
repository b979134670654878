#include "priv/supervisor/lease.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_and_lock(unsigned number)
{
	cleanup_fd int fd = -1;
	char path[64];

	(void)snprintf(path, sizeof(path), LEASE_DIR "/lease.%u", number);
	fd = sys.openat(AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	return take_fd(&fd);
}

int lease_take(struct lease *ret, struct fault *f)
{
	int r = sys.mkdirat(AT_FDCWD, LEASE_DIR, 0711);

	if (r < 0 && r != -EEXIST)
		return fault_set(f, r, "mkdir " LEASE_DIR);
	/* Whatever the umask was: a cell's init passes through on its way to the view. */
	if (chmod(LEASE_DIR, 0711) < 0)
		return fault_set(f, -errno, "chmod " LEASE_DIR);
	for (unsigned i = 0; i < LEASE_MAX; i++) {
		r = open_and_lock(i);
		if (r >= 0) {
			*ret = (struct lease){ .number = i, .fd = r };
			return 0;
		}
		if (r != -EWOULDBLOCK)
			return fault_set(f, r, "lock " LEASE_DIR "/lease.%u", i);
	}
	return fault_say(f, -EBUSY, "%u instances of Glovebox run already", LEASE_MAX);
}

bool lease_is_dead(unsigned number, void *ctx)
{
	const struct lease *own = ctx;
	int fd;

	if (number == own->number || number >= LEASE_MAX)
		return false;
	fd = open_and_lock(number);
	if (fd < 0)
		return false;
	/* The lock is given back at once: whoever takes the number next sweeps as well. */
	(void)close(fd);
	return true;
}

void lease_release(struct lease *l)
{
	drop_fd(&l->fd);
}
