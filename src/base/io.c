#include "base/io.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int io_write_all(int fd, const void *bytes, size_t len)
{
	const char *p = bytes;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

ssize_t io_read_all(int fd, void *bytes, size_t room)
{
	char *p = bytes;
	size_t got = 0;

	while (got < room) {
		ssize_t n = read(fd, p + got, room - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

ssize_t io_read_text(int dir_fd, const char *path, char *text, size_t room)
{
	cleanup_fd int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = io_read_all(fd, text, room);
	if (n < 0)
		return n;
	if ((size_t)n == room)
		return -EFBIG;
	text[n] = '\0';
	return n;
}

int io_write_text(int dir_fd, const char *path, const char *text)
{
	cleanup_fd int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	size_t len = strlen(text);
	ssize_t n;

	if (fd < 0)
		return -errno;
	do
		n = write(fd, text, len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int io_parse_u64(const char *text, uint64_t *ret)
{
	uint64_t v = 0;
	const char *p = text;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(v, UINT64_C(10), &v) ||
			__builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return -ERANGE;
	}
	p += strspn(p, " \t\r\n");
	if (*p)
		return -EINVAL;
	*ret = v;
	return 0;
}

/* The kernel refuses seals (EBUSY) while somebody holds one of the file's pages, as reclaim or a look at
 * the host's memory does for a moment; it has waited 0.15 s by then. So often it is asked. */
#define SEAL_TRIES 8

int io_seal(int fd)
{
	int r = -EBUSY;

	for (int i = 0; i < SEAL_TRIES && r == -EBUSY; i++)
		r = fcntl(fd, F_ADD_SEALS, IO_SEALS) < 0 ? -errno : 0;
	return r;
}
