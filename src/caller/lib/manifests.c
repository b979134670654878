#include "caller/lib/manifests.h"

#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST_BYTES_MAX 65536u /* ours have some 1,500 */

struct names {
	struct dirent **list;
	int count;
};

static void names_done(struct names *n)
{
	for (int i = 0; i < n->count; i++)
		free(n->list[i]);
	free(n->list);
}

static int is_name(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int check_file(int fd, const char *dir, const char *name, struct fault *f)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return fault_set(f, -errno, "%s/%s/runtime.yaml", dir, name);
	if (!S_ISREG(st.st_mode))
		return fault_say(
			f, -EINVAL, "%s/%s/runtime.yaml: is not a regular file", dir, name);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return fault_say(f, -EPERM,
			"%s/%s/runtime.yaml: can be written by group or others; chmod go-w it", dir,
			name);
	return 0;
}

static bool ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);

	return len > end_len && strcmp(name + len - end_len, end) == 0;
}

/* What is no folder of a language may lie there, but not what is meant to be one. */
static int is_misplaced(const char *name, int why, const char *dir, struct fault *f)
{
	if (strcmp(name, "runtime.yaml") == 0)
		return fault_say(f, -EINVAL,
			"%s/runtime.yaml: the manifest lies in the folder of its language; name "
			"the "
			"folder above as the one of all languages",
			dir);
	if (ends_in(name, ".yaml") || ends_in(name, ".yml"))
		return fault_say(f, -EINVAL, "%s/%s: a manifest is %s/LANGUAGE/runtime.yaml", dir,
			name, dir);
	return why == ENOENT ? fault_say(f, -ENOENT, "%s/%s: holds no runtime.yaml", dir, name) : 0;
}

static int write_one(int to, int dir_fd, const char *dir, const char *name, struct fault *f)
{
	char path[NAME_MAX + sizeof("/runtime.yaml")], text[MANIFEST_BYTES_MAX + 1];
	cleanup_fd int fd = -1;
	ssize_t n;
	int r;

	(void)snprintf(path, sizeof(path), "%s/runtime.yaml", name);
	fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return is_misplaced(name, errno, dir, f);
	if (fd < 0)
		return fault_set(f, -errno, "%s/%s", dir, path);
	r = check_file(fd, dir, name, f);
	if (r < 0)
		return r;
	n = io_read_all(fd, text, sizeof(text));
	if (n < 0)
		return fault_set(f, (int)n, "%s/%s", dir, path);
	if ((size_t)n > MANIFEST_BYTES_MAX || memchr(text, '\0', (size_t)n) || strchr(name, '='))
		return fault_say(f, -EINVAL,
			"%s/%s: is larger than %u KiB, holds a NUL, or is in a folder with \"=\" "
			"in "
			"its name",
			dir, path, MANIFEST_BYTES_MAX >> 10);
	text[n] = '\0';
	r = io_write_all(to, "@", 1);
	if (r == 0)
		r = io_write_all(to, name, strlen(name));
	if (r == 0)
		r = io_write_all(to, "=", 1);
	if (r == 0)
		r = io_write_all(to, text, (size_t)n + 1);
	return r < 0 ? fault_set(f, r, "write manifests") : 0;
}

int manifests_write(int fd, const char *path, struct fault *f)
{
	const char *dir = path ? path : RUNTIMES_DEFAULT;
	CLEANUP(names_done) struct names names = { NULL, 0 };
	cleanup_fd int dir_fd = -1;
	int r = 0;

	if (*dir == '\0')
		return 0;
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0 && errno == ENOENT && !path)
		return 0;
	if (dir_fd < 0)
		return fault_set(f, -errno, "runtimes: %.100s", dir);
	names.count = scandirat(dir_fd, ".", &names.list, is_name, alphasort);
	if (names.count < 0) {
		names.count = 0;
		return fault_set(f, -errno, "runtimes: %.100s", dir);
	}
	for (int i = 0; r == 0 && i < names.count; i++)
		r = write_one(fd, dir_fd, dir, names.list[i]->d_name, f);
	return r;
}
