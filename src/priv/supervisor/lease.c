#include "priv/supervisor/lease.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEASE_LINE_MAX 1024 /* a cgroup's path is below 600 */

static int open_and_lock(unsigned number, int flags)
{
	cleanup_fd int fd = -1;
	char path[64];

	(void)snprintf(path, sizeof(path), LEASE_DIR "/lease.%u", number);
	fd = sys.openat(AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
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
		r = open_and_lock(i, O_CREAT);
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
	fd = open_and_lock(number, O_CREAT);
	if (fd < 0)
		return false;
	/* The lock is given back at once: whoever takes the number next sweeps as well. */
	(void)close(fd);
	return true;
}

int lease_record(const struct lease *l, const char *text)
{
	size_t len = strlen(text);
	struct stat st;
	ssize_t n;

	if (fstat(l->fd, &st) < 0)
		return -errno;
	/* What an earlier holder left and could not be swept yet stays in front. */
	if ((size_t)st.st_size + len >= LEASE_RECORD_MAX)
		return -EFBIG;
	n = pwrite(l->fd, text, len, st.st_size);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

/* Give `sweep` each line of a record, and keep those that are not clean: what one of them
 * waits for may take days, while others come and go. True when there was something and it is
 * gone. */
static bool sweep_one(int fd, unsigned number, lease_sweep_fn *sweep)
{
	static char text[LEASE_RECORD_MAX]; /* too large for a careful stack */
	ssize_t n = sys.pread(fd, text, sizeof(text) - 1, 0);
	size_t kept = 0, len;

	if (n <= 0)
		return false;
	text[n] = '\0';
	for (size_t at = 0; at < (size_t)n; at += len + 1) {
		char line[LEASE_LINE_MAX];

		/* What has no end was not written to its end, by a full disk. */
		len = strcspn(text + at, "\n");
		if (at + len >= (size_t)n || len + 2 > sizeof(line))
			continue;
		memcpy(line, text + at, len + 1);
		line[len + 1] = '\0';
		if (sweep(line, number) == 0)
			continue;
		memmove(text + kept, text + at, len + 1);
		kept += len + 1;
	}
	if (kept == (size_t)n || (kept > 0 && pwrite(fd, text, kept, 0) != (ssize_t)kept))
		return false;
	return sys.ftruncate(fd, (off_t)kept) == 0 && kept == 0;
}

unsigned lease_sweep(const struct lease *own, lease_sweep_fn *sweep)
{
	unsigned swept = 0;

	for (unsigned i = 0; i < LEASE_MAX; i++) {
		/* Held meanwhile, so that nobody takes the number while its groups go. */
		cleanup_fd int fd = i == own->number ? -1 : open_and_lock(i, 0);

		if (fd >= 0 || i == own->number)
			swept += sweep_one(fd >= 0 ? fd : own->fd, i, sweep);
	}
	return swept;
}

void lease_release(struct lease *l)
{
	drop_fd(&l->fd);
}
