#include "caller/image/source.h"

#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "caller/image/command.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES (256u << 10)

int source_nameless(const struct store *s, struct fault *f)
{
	int fd = openat(s->fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd < 0 ? fault_set(f, -errno, "a file in %s", s->path) : fd;
}

static int copy(int from_fd, int to_fd, uint64_t bytes_max, struct fault *f)
{
	static char bytes[COPY_BYTES];
	uint64_t copied = 0;

	for (;;) {
		ssize_t n = read(from_fd, bytes, sizeof(bytes));
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? fault_set(f, -errno, "read") : 0;
		copied += (uint64_t)n;
		if (copied > bytes_max)
			return fault_say(f, -EFBIG,
				"it is larger than %lu MiB; --max-size allows more",
				(unsigned long)(bytes_max >> 20));
		r = io_write_all(to_fd, bytes, (size_t)n);
		if (r < 0)
			return fault_set(f, r, "keep what was read");
	}
}

/* Symbolic links in there stay what they are, and are no members for whoever reads the tar. Through a
 * pipe, so that the bound holds before the disk is full: tar writes a hole as what it stands for. */
static int put_into_tar(const char *folder, int to_fd, uint64_t bytes_max, struct fault *f)
{
	const char *const argv[] = { "tar", "--create", "--file=-", "--directory", folder, "--",
		"oci-layout", "index.json", "blobs", NULL };
	cleanup_fd int read_end = -1, write_end = -1;
	struct command tar;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fault_set(f, -errno, "pipe");
	read_end = ends[0];
	write_end = ends[1];
	r = command_start(&tar, argv, -1, write_end, f);
	drop_fd(&write_end);
	if (r == 0)
		r = copy(read_end, to_fd, bytes_max, f);
	if (r == 0)
		r = command_wait(&tar, f);
	command_end(&tar);
	return r;
}

int source_open(const struct store *s, const char *path, uint64_t bytes_max, struct fault *f)
{
	cleanup_fd int from = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
						     : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	cleanup_fd int kept = -1;
	struct stat st;
	int r;

	if (from < 0 || fstat(from, &st) < 0)
		return fault_set(f, -errno, "%s", path);
	if (S_ISREG(st.st_mode))
		return take_fd(&from);
	kept = source_nameless(s, f);
	if (kept < 0)
		return kept;
	r = S_ISDIR(st.st_mode) ? put_into_tar(path, kept, bytes_max, f)
				: copy(from, kept, bytes_max, f);
	return r < 0 ? fault_wrap(f, "%s", path) : take_fd(&kept);
}
