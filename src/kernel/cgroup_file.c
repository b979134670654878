#include "kernel/cgroup_internal.h"

#include "base/io.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLURP_FIRST ((size_t)16 << 10)
#define SLURP_MAX   ((size_t)8 << 20) /* some 50,000 mounts */

int cgroup_write(int dir_fd, const char *file, const char *text)
{
	cleanup_fd int fd = sys.openat(dir_fd, file, O_WRONLY | O_CLOEXEC, 0);
	size_t len = strlen(text);
	ssize_t n;

	if (fd < 0)
		return fd;
	do
		n = sys.write(fd, text, len);
	while (n == -EINTR);
	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : -EIO;
}

int cgroup_write_u64(int dir_fd, const char *file, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	return cgroup_write(dir_fd, file, text);
}

/* Read until the end or until `room` bytes are there. */
static ssize_t read_up_to(int fd, char *bytes, size_t room)
{
	size_t got = 0;

	while (got < room) {
		ssize_t n = sys.read(fd, bytes + got, room - got);

		if (n == -EINTR)
			continue;
		if (n < 0)
			return n;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

ssize_t cgroup_read(int dir_fd, const char *file, char *text, size_t room)
{
	cleanup_fd int fd = sys.openat(dir_fd, file, O_RDONLY | O_CLOEXEC, 0);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read_up_to(fd, text, room);
	if (n < 0)
		return n;
	if ((size_t)n == room)
		return -EFBIG;
	text[n] = '\0';
	return n;
}

/* A file that the kernel fills in one go, as those of values are and lists of processes are
 * not: one read() has all of it. */
int cgroup_reread(int fd, char *text, size_t room)
{
	ssize_t n;

	do
		n = sys.pread(fd, text, room - 1, 0);
	while (n == -EINTR);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	return 0;
}

int cgroup_read_values(int dir_fd, const char *file, char *text, size_t room)
{
	cleanup_fd int fd = sys.openat(dir_fd, file, O_RDONLY | O_CLOEXEC, 0);

	return fd < 0 ? fd : cgroup_reread(fd, text, room);
}

int cgroup_read_u64(int dir_fd, const char *file, uint64_t *ret)
{
	char text[32];
	int r = cgroup_read_values(dir_fd, file, text, sizeof(text));

	return r < 0 ? r : io_parse_u64(text, ret);
}

int cgroup_reread_key(int fd, const char *key, uint64_t *ret)
{
	char text[CGROUP_TEXT_MAX];
	int r = cgroup_reread(fd, text, sizeof(text));

	return r < 0 ? r : cgroup_parse_key(text, key, ret);
}

int cgroup_read_procs(int dir_fd, bool *ret_us, bool *ret_others)
{
	char text[CGROUP_TEXT_MAX];
	ssize_t n = cgroup_read(dir_fd, "cgroup.procs", text, sizeof(text));
	bool us = false, others = false;
	const char *p = text;

	if (n < 0)
		return (int)n;
	while (*p) {
		char *end;
		long pid = strtol(p, &end, 10);

		if (end == p || *end != '\n')
			return -EINVAL;
		if (pid == (long)getpid())
			us = true;
		else
			others = true;
		p = end + 1;
	}
	*ret_us = us;
	*ret_others = others;
	return 0;
}

bool cgroup_has(int dir_fd, const char *file)
{
	cleanup_fd int fd = sys.openat(dir_fd, file, O_PATH | O_CLOEXEC | O_NOFOLLOW, 0);

	return fd >= 0;
}

int cgroup_open_dir(int dir_fd, const char *path)
{
	return sys.openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, 0);
}

char *cgroup_slurp(const char *path, int *ret_code)
{
	cleanup_fd int fd = sys.openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	cleanup_free char *text = NULL;
	size_t room = SLURP_FIRST, got = 0;
	ssize_t n;

	if (fd < 0) {
		*ret_code = fd;
		return NULL;
	}
	for (; room <= SLURP_MAX; room *= 2) {
		char *more = realloc(text, room);

		if (!more) {
			*ret_code = -ENOMEM;
			return NULL;
		}
		text = more;
		n = read_up_to(fd, text + got, room - got - 1);
		if (n < 0) {
			*ret_code = (int)n;
			return NULL;
		}
		got += (size_t)n;
		if (got < room - 1) {
			text[got] = '\0';
			return take_ptr(text);
		}
	}
	*ret_code = -EFBIG;
	return NULL;
}
