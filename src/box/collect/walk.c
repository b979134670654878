#include "box/collect/walk.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Names of all directories that the walk is in, and their order. Ten thousand names of usual
 * length take half a megabyte; a workspace has room for as many as its inodes. */
#define ARENA_BYTES (UINT64_C(16) << 20)

#define OPEN_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

struct level {
	int fd;
	const char **names; /* in order */
	uint32_t count, next;
	size_t path_len;   /* of the directory, with its "/" */
	size_t arena_mark; /* what was used before */
};

struct walk {
	const struct walk_plan *plan;
	struct out *out;
	struct level levels[FILES_DEPTH_MAX + 1];
	unsigned depth; /* levels in use */
	uint64_t end_ns;
	uint64_t total_bytes;
	uint32_t files;
	dev_t device;
	char *arena;
	size_t used;
	char path[FILES_PATH_MAX + 1];
	char chunk[FILES_CHUNK];
};

static enum files_reason reason_of(int error)
{
	return error == -EACCES || error == -EPERM ? FILES_UNREADABLE : FILES_FAILED;
}

/* ---- The names of a directory, in order ---- */

/* -E2BIG: the arena is full. */
static int add_name(struct walk *w, const char *name)
{
	size_t len = strlen(name) + 1;

	if (len > ARENA_BYTES - w->used)
		return -E2BIG;
	memcpy(w->arena + w->used, name, len);
	w->used += len;
	return 0;
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* All names, one behind the other. -ENAMETOOLONG: one is too long for a path. -E2BIG: not all have
 * room; l->count is how many there are all the same. */
static int read_names(struct walk *w, struct level *l)
{
	static union {
		char bytes[32768];
		struct dirent64 first; /* aligns them */
	} entries;
	int r = 0;

	for (;;) {
		ssize_t n = sys.getdents64(l->fd, entries.bytes, sizeof(entries.bytes));

		if (n <= 0)
			return n < 0 ? (int)n : r;
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *d = (const void *)(entries.bytes + at);

			at += d->d_reclen;
			if (is_dots(d->d_name))
				continue;
			if (l->path_len + strlen(d->d_name) > FILES_PATH_MAX)
				return -ENAMETOOLONG;
			if (r == 0)
				r = add_name(w, d->d_name);
			l->count++;
		}
	}
}

static void sift(const char **names, size_t at, size_t count)
{
	for (;;) {
		size_t child = 2 * at + 1;
		const char *name = names[at];

		if (child >= count)
			return;
		if (child + 1 < count && strcmp(names[child], names[child + 1]) < 0)
			child++;
		if (strcmp(name, names[child]) >= 0)
			return;
		names[at] = names[child];
		names[child] = name;
		at = child;
	}
}

/* By a heap: it needs no memory, and no order of names makes it slow. */
static void sort(const char **names, size_t count)
{
	for (size_t i = count / 2; i > 0; i--)
		sift(names, i - 1, count);
	for (size_t last = count; last > 1; last--) {
		const char *name = names[0];

		names[0] = names[last - 1];
		names[last - 1] = name;
		sift(names, 0, last - 1);
	}
}

static int order_names(struct walk *w, struct level *l)
{
	const char *name = w->arena + l->arena_mark;
	size_t begin = (w->used + sizeof(name) - 1) / sizeof(name) * sizeof(name);

	if (begin > ARENA_BYTES || l->count > (ARENA_BYTES - begin) / sizeof(name))
		return -E2BIG;
	l->names = (const char **)(void *)(w->arena + begin);
	for (uint32_t i = 0; i < l->count; i++, name += strlen(name) + 1)
		l->names[i] = name;
	w->used = begin + l->count * sizeof(name);
	sort(l->names, l->count);
	return 0;
}

static void leave(struct walk *w)
{
	struct level *l = &w->levels[--w->depth];

	drop_fd(&l->fd);
	w->used = l->arena_mark;
}

/* Be in the directory `fd` (taken), whose path has `path_len` bytes with its "/". 0, or why it
 * is left out: then the walk is where it was. */
static int enter(struct walk *w, int fd, size_t path_len)
{
	struct level *l = &w->levels[w->depth++];
	int r;

	*l = (struct level){ .fd = fd, .path_len = path_len, .arena_mark = w->used };
	r = read_names(w, l);
	if (r == 0)
		r = order_names(w, l);
	if (r < 0)
		leave(w);
	return r;
}

/* ---- One entry ---- */

static void skip(struct walk *w, size_t len, uint64_t size, enum files_reason why)
{
	out_skip(w->out, w->path, len, size, why);
}

static void visit_directory(struct walk *w, int parent_fd, const char *name, size_t len)
{
	int fd, r;

	if (w->depth > FILES_DEPTH_MAX) {
		skip(w, len, 0, FILES_TOO_DEEP);
		return;
	}
	fd = sys.openat(parent_fd, name, OPEN_FLAGS | O_DIRECTORY, 0);
	if (fd < 0) {
		skip(w, len, 0, reason_of(fd));
		return;
	}
	/* With room for the "/" and a name: a longer path could not be told. */
	if (len + 1 > FILES_PATH_MAX) {
		drop_fd(&fd);
		skip(w, len, 0, FILES_LONG_PATH);
		return;
	}
	w->path[len] = '/';
	r = enter(w, fd, len + 1);
	if (r == -ENAMETOOLONG)
		skip(w, len, 0, FILES_LONG_PATH);
	else if (r == -E2BIG)
		skip(w, len, 0, FILES_TOO_MANY);
	else if (r < 0)
		skip(w, len, 0, reason_of(r));
}

/* Are its bytes those that the run began with here? 1, 0, or a negative errno: nobody knows. */
static int is_unchanged(struct walk *w, int fd, size_t len, uint64_t size)
{
	uint64_t bytes = 0, at = 0;
	const char *was = known_find(w->plan->known, w->path, len, &bytes);

	if (!was || bytes != size)
		return 0;
	while (at < size) {
		ssize_t n = sys.pread(fd, w->chunk, sizeof(w->chunk), (off_t)at);

		if (n < 0)
			return (int)n;
		if (n == 0 || (uint64_t)n > size - at || memcmp(w->chunk, was + at, (size_t)n) != 0)
			return 0;
		at += (uint64_t)n;
	}
	return 1;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Send what the file holds, never more than was announced. */
static enum files_reason send_bytes(struct walk *w, int fd, const struct stat *st)
{
	uint64_t size = (uint64_t)st->st_size, sent = 0;
	struct stat now;

	for (;;) {
		ssize_t n = sys.read(fd, w->chunk, sizeof(w->chunk));

		if (n < 0)
			return FILES_FAILED;
		if ((uint64_t)n > size - sent)
			return FILES_CHANGED;
		if (n == 0)
			break;
		out_bytes(w->out, w->chunk, (uint32_t)n);
		sent += (uint64_t)n;
		w->total_bytes += (uint64_t)n;
	}
	if (sent != size || sys.fstat(fd, &now) < 0 || !is_same(st, &now))
		return FILES_CHANGED;
	return FILES_WHOLE;
}

/* Why a file of `size` bytes is left out although it could be read; FILES_WHOLE: it is not. */
static enum files_reason over_caps(const struct walk *w, uint64_t size)
{
	const struct files_caps *caps = &w->plan->caps;

	if (w->files >= caps->count)
		return FILES_COUNT;
	if (size > caps->file_bytes)
		return FILES_TOO_LARGE;
	if (size > caps->total_bytes - w->total_bytes)
		return FILES_TOTAL;
	return clock_ns() >= w->end_ns ? FILES_TIME : FILES_WHOLE;
}

static void visit_file(
	struct walk *w, int parent_fd, const char *name, size_t len, const struct stat *seen)
{
	cleanup_fd int fd = sys.openat(parent_fd, name, OPEN_FLAGS, 0);
	enum files_reason why;
	struct stat st;
	int same;

	if (fd < 0) {
		skip(w, len, (uint64_t)seen->st_size, reason_of(fd));
		return;
	}
	if (sys.fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_ino != seen->st_ino ||
		st.st_dev != w->device) {
		skip(w, len, (uint64_t)seen->st_size, FILES_CHANGED);
		return;
	}
	same = is_unchanged(w, fd, len, (uint64_t)st.st_size);
	if (same > 0)
		return;
	why = same < 0 ? reason_of(same) : over_caps(w, (uint64_t)st.st_size);
	if (why != FILES_WHOLE) {
		skip(w, len, (uint64_t)st.st_size, why);
		return;
	}
	w->files++;
	out_file(w->out, w->path, len, (uint64_t)st.st_size);
	out_close(w->out, send_bytes(w, fd, &st));
}

static enum files_reason kind_of(mode_t mode)
{
	if (S_ISLNK(mode))
		return FILES_SYMLINK;
	if (S_ISFIFO(mode))
		return FILES_FIFO;
	return S_ISSOCK(mode) ? FILES_SOCKET : FILES_DEVICE;
}

static void visit(struct walk *w, const struct level *l, const char *name)
{
	size_t name_len = strlen(name), len = l->path_len + name_len;
	struct stat st;
	int r;

	memcpy(w->path + l->path_len, name, name_len); /* fits: read_names() */
	r = sys.fstatat(l->fd, name, &st, AT_SYMLINK_NOFOLLOW);
	if (r < 0)
		skip(w, len, 0, reason_of(r));
	else if (S_ISDIR(st.st_mode))
		visit_directory(w, l->fd, name, len);
	else if (S_ISREG(st.st_mode))
		visit_file(w, l->fd, name, len, &st);
	else
		skip(w, len, (uint64_t)st.st_size, kind_of(st.st_mode));
}

/* Depth first, each directory in the order of its names. After an error of the pipe nobody reads
 * what would come. */
static void go(struct walk *w)
{
	while (w->depth > 0 && w->out->error == 0) {
		struct level *l = &w->levels[w->depth - 1];

		if (l->next < l->count)
			visit(w, l, l->names[l->next++]);
		else
			leave(w);
	}
	while (w->depth > 0)
		leave(w);
}

int walk(const struct walk_plan *plan, struct fault *f)
{
	static struct walk w; /* static: too large for a careful stack */
	cleanup_fd int root_fd = plan->root_fd;
	struct stat st;
	void *arena;
	int r;

	memset(&w, 0, offsetof(struct walk, path));
	w.plan = plan;
	w.out = plan->out;
	w.end_ns = clock_ns() + plan->caps.time_us * NS_PER_US;
	r = sys.fstat(root_fd, &st);
	if (r < 0)
		return fault_set(f, r, "look at the workspace");
	w.device = st.st_dev;
	arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arena == MAP_FAILED)
		return fault_set(f, -errno, "memory for names");
	w.arena = arena;
	r = enter(&w, take_fd(&root_fd), 0);
	if (r == 0)
		go(&w);
	/* There is no path in whose name these could be left out. */
	if (r == -E2BIG) {
		w.out->more += w.levels[0].count;
		r = 0;
	}
	(void)munmap(arena, ARENA_BYTES);
	return r < 0 ? fault_set(f, r, "read the workspace") : 0;
}
