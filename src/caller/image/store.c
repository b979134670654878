#include "caller/image/store.h"

#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#define FRESH ".new-"

static void closedir_p(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

/* Each folder of the path, as mkdir -p does. */
static int make_folders(const char *path)
{
	char part[4096];

	for (const char *p = path; (p = strchr(p + 1, '/')) || (p = path + strlen(path));) {
		int n = snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);

		if (n < 0 || (size_t)n >= sizeof(part))
			return -ENAMETOOLONG;
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return -errno;
		if (*p == '\0')
			break;
	}
	return 0;
}

int store_open(struct store *s, const char *path, bool make, struct fault *f)
{
	struct stat st;
	int r;

	*s = (struct store){ .fd = -1, .path = path };
	if (path[0] != '/')
		return fault_say(f, -EINVAL, "%s: the store is named by an absolute path", path);
	r = make ? make_folders(path) : 0;
	if (r < 0)
		return fault_set(f, r, "make %s", path);
	s->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->fd < 0)
		return fault_set(f, -errno, "%s", path);
	if (fstat(s->fd, &st) < 0)
		return fault_set(f, -errno, "%s", path);
	if (st.st_uid != 0 || (st.st_mode & 022))
		return fault_say(f, -EPERM,
			"%s: can be written by others than root: chown root, chmod go-w", path);
	return 0;
}

void store_close(struct store *s)
{
	drop_fd(&s->fd);
}

static int sweep(const struct store *s, struct fault *f)
{
	cleanup_fd int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(closedir_p) DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	int r = 0;

	if (!d)
		return fault_set(f, -errno, "%s", s->path);
	fd = -1; /* it is d's now */
	while (r == 0 && (e = readdir(d)))
		if (strncmp(e->d_name, FRESH, strlen(FRESH)) == 0)
			r = store_remove(s, e->d_name, f);
	return r;
}

int store_lock(struct store *s, bool wait, struct fault *f)
{
	while (flock(s->fd, wait ? LOCK_EX : LOCK_EX | LOCK_NB) < 0)
		if (errno != EINTR)
			return fault_set(f, -errno, "lock %s", s->path);
	return sweep(s, f);
}

/* A file of an image, which only root can have written. */
static int open_file(const struct store *s, const char *name, const char *file, struct fault *f)
{
	cleanup_fd int folder = -1, fd = -1;
	struct stat st;

	if (!image_name_is_valid(name))
		return fault_say(f, -EINVAL,
			"\"%.100s\" is no name of an image: letters, digits, -, _ and .", name);
	folder = openat(s->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0 && errno == ENOENT)
		return fault_say(f, -ENOENT, "there is no image \"%.100s\" in %s", name, s->path);
	if (folder >= 0)
		fd = openat(folder, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fault_set(f, -errno, "%s/%s/%s", s->path, name, file);
	if (!S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & 022))
		return fault_say(
			f, -EPERM, "%s/%s/%s: is no file of root's alone", s->path, name, file);
	return take_fd(&fd);
}

int store_read(const struct store *s, const char *name, struct image_record *ret, struct fault *f)
{
	cleanup_fd int fd = open_file(s, name, IMAGE_RECORD_FILE, f);
	const char *why;
	ssize_t n;

	if (fd < 0)
		return f->code;
	memset(ret, 0, sizeof(*ret));
	n = io_read_all(fd, ret, sizeof(*ret));
	why = n == (ssize_t)sizeof(*ret) ? image_record_fault(ret) : "its record is cut short";
	if (!why && strcmp(ret->name, name) != 0)
		why = "its record is another image's";
	return why ? fault_say(f, -EBADMSG, "%s: %s", name, why) : 0;
}

int store_open_root(const struct store *s, const char *name, struct fault *f)
{
	return open_file(s, name, IMAGE_ROOT_FILE, f);
}

int store_open_inventory(const struct store *s, const char *name, struct fault *f)
{
	return open_file(s, name, IMAGE_INVENTORY_FILE, f);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int store_names(const struct store *s, char ***ret, struct fault *f)
{
	cleanup_fd int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(closedir_p) DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	char **names = calloc(1, sizeof(*names));
	size_t n = 0;

	if (!d || !names) {
		free(names);
		return fault_set(f, d ? -ENOMEM : -errno, "%s", s->path);
	}
	fd = -1;
	while ((e = readdir(d))) {
		char **more;

		if (!image_name_is_valid(e->d_name))
			continue;
		more = reallocarray(names, n + 2, sizeof(*names));
		if (more)
			names = more;
		if (more)
			names[n] = strdup(e->d_name);
		if (!more || !names[n]) {
			store_free_names(names);
			return fault_set(f, -ENOMEM, "%s", s->path);
		}
		names[++n] = NULL;
	}
	qsort(names, n, sizeof(*names), by_name);
	*ret = names;
	return 0;
}

void store_free_names(char **names)
{
	for (char **n = names; n && *n; n++)
		free(*n);
	free(names);
}

int store_begin(const struct store *s, char ret[static STORE_FRESH_MAX], struct fault *f)
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return fault_set(f, -EIO, "a random number");
	(void)snprintf(ret, STORE_FRESH_MAX, FRESH "%016lx", (unsigned long)number);
	/* The file in it is another uid's until it is done: only root gets there by its name. */
	if (mkdirat(s->fd, ret, 0700) < 0)
		return fault_set(f, -errno, "make %s/%s", s->path, ret);
	return 0;
}

static int put(int folder, const char *name, const void *bytes, size_t len)
{
	cleanup_fd int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int r = fd < 0 ? -errno : io_write_all(fd, bytes, len);

	if (r == 0 && fchmod(fd, 0644) < 0)
		r = -errno;
	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

int store_put_inventory(
	const struct store *s, const char *fresh, const char *text, size_t len, struct fault *f)
{
	cleanup_fd int folder = openat(s->fd, fresh, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = folder < 0 ? -errno : put(folder, IMAGE_INVENTORY_FILE, text, len);

	if (r == 0)
		r = openat(folder, IMAGE_INVENTORY_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (r == -1)
		r = -errno;
	return r < 0 ? fault_set(f, r, "put the image's inventory into %s", s->path) : r;
}

int store_commit(const struct store *s, const char *fresh, const struct image_record *record,
	struct fault *f)
{
	cleanup_fd int folder = openat(s->fd, fresh, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = folder < 0 ? -errno : put(folder, IMAGE_RECORD_FILE, record, sizeof(*record));

	if (r == 0 && (fsync(folder) < 0 || fchmod(folder, 0755) < 0))
		r = -errno;
	if (r == 0 && renameat2(s->fd, fresh, s->fd, record->name, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r == -EEXIST) {
		/* The two change places; the old one then goes as one that was not finished. */
		r = renameat2(s->fd, fresh, s->fd, record->name, RENAME_EXCHANGE) < 0 ? -errno : 0;
		if (r == 0)
			r = store_remove(s, fresh, f);
		if (r < 0 && f->code < 0)
			return r;
	}
	if (r == 0 && fsync(s->fd) < 0)
		r = -errno;
	return r < 0 ? fault_set(f, r, "put the image into %s", s->path) : 0;
}

/* An image's folder holds files alone. */
static int empty_folder(int folder)
{
	cleanup_fd int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(closedir_p) DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d)
		return -errno;
	fd = -1;
	while ((e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (unlinkat(folder, e->d_name, 0) < 0)
			return -errno;
	}
	return 0;
}

/* First the name: nobody finds half an image. */
static int set_aside(const struct store *s, const char *name, char going[static STORE_FRESH_MAX],
	struct fault *f)
{
	int r = store_begin(s, going, f);

	if (r < 0)
		return r;
	/* Over the empty folder, which only makes sure that the name was free. */
	if (renameat(s->fd, name, s->fd, going) == 0)
		return 0;
	r = -errno;
	(void)unlinkat(s->fd, going, AT_REMOVEDIR);
	if (r == -ENOENT)
		return fault_say(f, r, "there is no image \"%.100s\" in %s", name, s->path);
	return fault_set(f, r, "remove %s", name);
}

int store_remove(const struct store *s, const char *name, struct fault *f)
{
	char going[STORE_FRESH_MAX];
	cleanup_fd int folder = -1;
	int r;

	if (name[0] != '.') {
		r = set_aside(s, name, going, f);
		if (r < 0)
			return r;
		name = going;
	}
	folder = openat(s->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = folder < 0 ? -errno : empty_folder(folder);
	if (r == 0 && unlinkat(s->fd, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r < 0 ? fault_set(f, r, "remove %s/%s", s->path, name) : 0;
}
