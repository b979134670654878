/* Fuzz target: the collector's walk, through a tree that the input has made: names, types, sizes,
 * permissions, files that are longer or shorter than they say, calls that fail. Whatever it is:
 *   the stream is one that its reader takes, and ends if the walk says that it has;
 *   each entry of a directory that was read is named once, unless it is as the run began with it;
 *   no cap is passed, nothing but files and directories is opened, and everything is closed.
 */
#include "base/fault.h"
#include "box/collect/walk.h"
#include "kernel/sys.h"
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define NODES    48
#define FIRST_FD 1000
#define FDS      (FILES_DEPTH_MAX + 16)
#define OUT_FD   999
#define DEVICE   7

static struct node {
	unsigned parent;
	char name[256];
	mode_t mode;
	uint64_t size, really; /* what it says, and what reading gives */
	int error;             /* of opening it; 0: none */
	unsigned listed;       /* its name was given out */
	unsigned named;        /* it is in the stream */
} nodes[NODES];
static unsigned count;

static struct open_file {
	unsigned node; /* + 1; 0: closed */
	uint64_t at;
} files[FDS];
static unsigned fail_at, calls_made;

static struct files_reader reader;
static struct files_caps caps;
static uint64_t total;
static unsigned sent;

/* ---- The kernel ---- */

static bool fails(void)
{
	return ++calls_made == fail_at;
}

static struct open_file *file_of(int fd)
{
	CHECK(fd >= FIRST_FD && fd < FIRST_FD + (int)FDS && files[fd - FIRST_FD].node > 0);
	return &files[fd - FIRST_FD];
}

static int open_node(unsigned node)
{
	for (unsigned i = 0; i < FDS; i++) {
		if (files[i].node == 0) {
			files[i] = (struct open_file){ node + 1, 0 };
			return FIRST_FD + (int)i;
		}
	}
	return -EMFILE;
}

static unsigned find(int dir_fd, const char *name)
{
	unsigned dir = file_of(dir_fd)->node - 1;

	for (unsigned i = 1; i < count; i++) {
		if (nodes[i].parent == dir && strcmp(nodes[i].name, name) == 0)
			return i;
	}
	abort(); /* a name that is not there */
}

static int fake_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	unsigned n = find(dir_fd, path);

	(void)mode;
	CHECK((flags & (O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) ==
		(O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
	CHECK((flags & O_ACCMODE) == O_RDONLY);
	CHECK(S_ISREG(nodes[n].mode) || S_ISDIR(nodes[n].mode));
	if (fails())
		return -EIO;
	return nodes[n].error ? nodes[n].error : open_node(n);
}

static void fill_stat(unsigned n, struct stat *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->st_mode = nodes[n].mode;
	ret->st_size = (off_t)nodes[n].size;
	ret->st_ino = n + 2;
	ret->st_dev = DEVICE;
}

static int fake_fstat(int fd, struct stat *ret)
{
	if (fails())
		return -EIO;
	fill_stat(file_of(fd)->node - 1, ret);
	return 0;
}

static int fake_fstatat(int dir_fd, const char *path, struct stat *ret, int flags)
{
	CHECK(flags & AT_SYMLINK_NOFOLLOW);
	if (fails())
		return -EACCES;
	fill_stat(find(dir_fd, path), ret);
	return 0;
}

static size_t put_entry(char *to, size_t room, const char *name)
{
	size_t len = (offsetof(struct dirent64, d_name) + strlen(name) + 1 + 7) & ~(size_t)7;
	struct dirent64 d = { .d_reclen = (unsigned short)len };

	if (len > room)
		return 0;
	memset(to, 0, len);
	memcpy(to, &d, offsetof(struct dirent64, d_name));
	memcpy(to + offsetof(struct dirent64, d_name), name, strlen(name));
	return len;
}

/* A few at a time, "." and ".." among them. */
static ssize_t fake_getdents64(int fd, void *bytes, size_t room)
{
	struct open_file *f = file_of(fd);
	size_t len = 0, n;

	if (fails())
		return -EIO;
	if (f->at == 0)
		len += put_entry((char *)bytes + len, room - len, ".");
	for (; f->at < count; f->at++) {
		if (f->at == 0 || nodes[f->at].parent != f->node - 1)
			continue;
		n = put_entry((char *)bytes + len, room - len, nodes[f->at].name);
		if (n == 0 || len > 600)
			break;
		len += n;
		nodes[f->at].listed++;
	}
	return (ssize_t)len;
}

static ssize_t fake_pread(int fd, void *bytes, size_t room, off_t at)
{
	const struct node *n = &nodes[file_of(fd)->node - 1];
	uint64_t left = (uint64_t)at < n->really ? n->really - (uint64_t)at : 0;
	size_t len = left < room ? (size_t)left : room;

	if (fails())
		return -EIO;
	memset(bytes, 'x', len);
	return (ssize_t)len;
}

static ssize_t fake_read(int fd, void *bytes, size_t room)
{
	struct open_file *f = file_of(fd);
	ssize_t n = fake_pread(fd, bytes, room, (off_t)f->at);

	f->at += n > 0 ? (uint64_t)n : 0;
	return n;
}

/* In the place of the C library's (-Wl,--wrap). */
int __wrap_close(int fd);
int __real_close(int fd);

int __wrap_close(int fd)
{
	if (fd < FIRST_FD)
		return __real_close(fd);
	file_of(fd)->node = 0;
	return 0;
}

/* What is written is read at once. */
static ssize_t fake_write(int fd, const void *bytes, size_t len)
{
	const char *rule;

	CHECK(fd == OUT_FD);
	if (fails())
		return -EPIPE;
	CHECK(files_read(&reader, bytes, len, &rule) == 0);
	return (ssize_t)len;
}

/* ---- The client ---- */

static void name_node(const char *path)
{
	unsigned at = 0;

	while (*path) {
		size_t len = strcspn(path, "/");
		unsigned i = 1;

		while (i < count && !(nodes[i].parent == at && strlen(nodes[i].name) == len &&
					    memcmp(nodes[i].name, path, len) == 0))
			i++;
		CHECK(i < count);
		at = i;
		path += len + (path[len] == '/');
	}
	CHECK(at > 0);
	nodes[at].named++;
}

static int on_file(void *ctx, const char *path, size_t len, uint64_t size)
{
	(void)ctx;
	(void)len;
	name_node(path);
	CHECK(++sent <= caps.count && size <= caps.file_bytes);
	return 0;
}

static int on_bytes(void *ctx, const void *bytes, size_t len)
{
	(void)ctx;
	(void)bytes;
	total += len;
	CHECK(total <= caps.total_bytes);
	return 0;
}

static int on_close(void *ctx, enum files_reason why)
{
	(void)ctx;
	(void)why;
	return 0;
}

static int on_skip(void *ctx, const char *path, size_t len, uint64_t size, enum files_reason why)
{
	(void)ctx;
	(void)len;
	(void)size;
	(void)why;
	name_node(path);
	return 0;
}

static int on_end(void *ctx, uint64_t more)
{
	(void)ctx;
	CHECK(more == 0);
	return 0;
}

static const struct files_calls calls = { on_file, on_bytes, on_close, on_skip, on_end };

/* ---- The tree ---- */

static bool is_there(unsigned parent, const char *name)
{
	for (unsigned i = 1; i < count; i++) {
		if (nodes[i].parent == parent && strcmp(nodes[i].name, name) == 0)
			return true;
	}
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void take_name(struct fuzz *z, char *ret)
{
	size_t want = fuzz_u8(z), n;
	const uint8_t *at;

	/* Long ones without a long input. */
	if (want & 1) {
		memset(ret, 'a' + (int)(want & 15), want);
		ret[want] = '\0';
		return;
	}
	at = fuzz_take(z, want / 2 + 1, &n);
	if (n > 0)
		memcpy(ret, at, n);
	for (size_t i = 0; i < n; i++)
		ret[i] = ret[i] == '/' || ret[i] == '\0' ? '!' : ret[i];
	if (n == 0)
		ret[n++] = '0';
	ret[n] = '\0';
}

static void add_node(struct fuzz *z)
{
	static const mode_t modes[] = { S_IFREG, S_IFDIR, S_IFDIR, S_IFLNK, S_IFIFO, S_IFSOCK,
		S_IFCHR, S_IFBLK };
	static const uint64_t sizes[] = { 0, 1, 100, 3000, 70000, INT64_MAX };
	struct node *n = &nodes[count];
	uint8_t what = fuzz_u8(z), how = fuzz_u8(z);
	unsigned parent = what < 128 ? count - 1 : fuzz_u8(z) % count;

	*n = (struct node){ .mode = modes[what & 7] };
	while (!S_ISDIR(nodes[parent].mode))
		parent = nodes[parent].parent;
	n->parent = parent;
	n->size = S_ISREG(n->mode) ? sizes[how % 6] : 0;
	n->really = how & 64 ? sizes[how % 5] + 1 : n->size;
	n->error = (how & 128) == 0 ? 0 : how & 32 ? -EACCES : -ENOENT;
	take_name(z, n->name);
	if (!is_there(parent, n->name))
		count++;
}

static void check_names(void)
{
	for (unsigned i = 1; i < count; i++) {
		CHECK(nodes[i].named <= 1);
		/* A directory is named only if nobody looked into it. */
		if (!reader.done || !nodes[i].listed || nodes[i].named)
			continue;
		if (S_ISDIR(nodes[i].mode) || strcmp(nodes[i].name, "main.py") == 0)
			continue;
		/* Its directory was listed in part, and then left out as a whole. */
		CHECK(nodes[nodes[i].parent].named);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len)
{
	static struct out out;
	static struct known known;
	static char code[100];
	struct fuzz z = { input, len };
	struct walk_plan plan = { .known = &known, .out = &out };
	struct fault f = { 0 };
	int r;

	sys.openat = fake_openat;
	sys.fstat = fake_fstat;
	sys.fstatat = fake_fstatat;
	sys.getdents64 = fake_getdents64;
	sys.read = fake_read;
	sys.pread = fake_pread;
	sys.write = fake_write;
	memset(files, 0, sizeof(files));
	memset(code, 'x', sizeof(code));
	calls_made = 0;
	total = sent = 0;
	fail_at = fuzz_u8(&z);
	caps = (struct files_caps){ .count = fuzz_u8(&z) % 8,
		.file_bytes = 80000,
		.total_bytes = 100000,
		.time_us = fuzz_u8(&z) & 1 ? 0 : 60000000 };
	known = (struct known){ .main_file = "main.py", .code_bytes = sizeof(code) };
	known.inputs.map = code;
	nodes[0] = (struct node){ .mode = S_IFDIR };
	for (count = 1; count < NODES && z.len > 0;)
		add_node(&z);

	plan.caps = caps;
	plan.root_fd = open_node(0);
	files_reader_init(&reader, &calls, NULL);
	out_init(&out, OUT_FD);
	r = walk(&plan, &f);
	if (r == 0)
		r = out_end(&out);
	CHECK((r == 0) == reader.done);
	check_names();
	for (unsigned i = 0; i < FDS; i++)
		CHECK(files[i].node == 0);
	return 0;
}
