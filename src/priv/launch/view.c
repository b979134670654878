/* The template's layout, below VIEW_DIR:
 *
 *   root/    "/" of a cell: links, mount points, etc/; root.N/: of other runtimes
 *   dev/     its device nodes
 *   empty/   the second layer that a read-only overlay needs
 *   anchor/  where a cell's init puts its root before it pivots
 */
#include "priv/launch/view.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/mount.h"
#include "kernel/sys.h"
#include "priv/launch/build.h"
#include "priv/launch/view_etc.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* A root takes some 400 inodes, most of them links of /etc/alternatives, and 300 KiB; there is one for
 * each language that was asked for. */
#define TEMPLATE_BYTES  (UINT64_C(64) << 20)
#define TEMPLATE_INODES UINT64_C(65536)

int view_make_dirs(int dir_fd, const char *path, struct fault *f)
{
	char part[CELL_PATH_MAX];

	for (const char *p = path; p; p = strchr(p, '/')) {
		int r;

		p += strspn(p, "/");
		r = snprintf(part, sizeof(part), "%.*s", (int)(strchrnul(p, '/') - path), path);
		if (r < 0 || (size_t)r >= sizeof(part))
			return fault_set(f, -ENAMETOOLONG, "%s", path);
		r = sys.mkdirat(dir_fd, part, 0755);
		if (r < 0 && r != -EEXIST)
			return fault_set(f, r, "mkdir %s", part);
	}
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st, (void)kind, (void)where;
	return remove(path);
}

void view_remove(const char *path)
{
	(void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static const struct {
	const char *name;
	mode_t mode;
	unsigned major, minor;
} nodes[] = {
	/* Linux's Documentation/admin-guide/devices.txt, character devices. */
	{ "null", 0666, 1, 3 },
	{ "zero", 0666, 1, 5 },
	{ "full", 0666, 1, 7 },
	{ "random", 0444, 1, 8 },
	{ "urandom", 0444, 1, 9 },
};

static const struct {
	const char *target, *name;
} links[] = {
	{ "/proc/self/fd", "fd" },
	{ "/proc/self/fd/0", "stdin" },
	{ "/proc/self/fd/1", "stdout" },
	{ "/proc/self/fd/2", "stderr" },
};

static int make_dev(int dir_fd, struct fault *f)
{
	cleanup_fd int dev = -1;
	int r = view_make_dirs(dir_fd, "dev/shm", f);

	if (r < 0)
		return r;
	dev = sys.openat(dir_fd, "dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dev < 0)
		return fault_set(f, dev, "open dev");
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		/* umask is 0 while the template is made. */
		r = sys.mknodat(dev, nodes[i].name, S_IFCHR | nodes[i].mode,
			makedev(nodes[i].major, nodes[i].minor));
		if (r < 0)
			return fault_set(f, r, "mknod %s", nodes[i].name);
	}
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		r = sys.symlinkat(links[i].target, dev, links[i].name);
		if (r < 0)
			return fault_set(f, r, "link %s", links[i].name);
	}
	return 0;
}

/* Top-level names that are links into /usr on a merged system and directories on others. */
static int make_usr_links(int root_fd, struct fault *f)
{
	static const char *const names[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char from[16], target[CELL_PATH_MAX];
		ssize_t n;
		int r;

		(void)snprintf(from, sizeof(from), "/%s", names[i]);
		n = readlink(from, target, sizeof(target) - 1);
		if (n <= 0)
			continue; /* absent, or a directory that the runtime lists as a root */
		target[n] = '\0';
		r = sys.symlinkat(target, root_fd, names[i]);
		if (r < 0)
			return fault_set(f, r, "link %s", names[i]);
	}
	return 0;
}

#define ROOT_NAME_MAX 16

static const char *root_name(const struct view *v, char name[static ROOT_NAME_MAX])
{
	(void)snprintf(name, ROOT_NAME_MAX, v->number ? "root.%u" : "root", v->number);
	return name;
}

static int make_root(const struct view *v, int dir_fd, struct fault *f)
{
	static const char *const places[] = { "dev", "proc", "etc", "tmp", "workspace", "usr",
		"var", "run", "home", "opt", "srv", "mnt" };
	cleanup_fd int root = -1;
	char name[ROOT_NAME_MAX];
	int r = view_make_dirs(dir_fd, root_name(v, name), f);

	if (r < 0)
		return r;
	root = sys.openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (root < 0)
		return fault_set(f, root, "open %s", name);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(places); i++)
		r = view_make_dirs(root, places[i], f);
	if (r == 0 && v->builds)
		r = view_make_dirs(root, &BUILD_PATH[1], f);
	if (r == 0)
		r = make_usr_links(root, f);
	for (unsigned i = 0; r == 0 && i < v->count; i++)
		r = view_make_dirs(root, v->pieces[i] + 1, f);
	if (r == 0)
		r = sys.symlinkat("/tmp", root, "var/tmp");
	if (r < 0)
		return f->code ? r : fault_set(f, r, "link var/tmp");
	return view_make_etc(root, f);
}

static int choose_pieces(struct view *v, const struct runtime *rt, struct fault *f)
{
	for (unsigned i = 0; i < RUNTIME_ROOTS_MAX && rt->roots[i][0]; i++) {
		bool optional = rt->roots[i][0] == '?';
		const char *path = rt->roots[i] + optional;
		struct stat st;
		int r = sys.fstatat(AT_FDCWD, path, &st, 0);

		if (r == 0 && !S_ISDIR(st.st_mode))
			r = -ENOTDIR;
		/* Another reason than that it is not there would make a root that lacks it. */
		if (optional && (r == -ENOENT || r == -ENOTDIR))
			continue;
		if (r < 0)
			return fault_set(f, r, "runtime %s: %s", rt->name, path);
		(void)snprintf(v->pieces[v->count++], CELL_PATH_MAX, "%s", path);
	}
	return 0;
}

static int make_template(const struct view *v, struct fault *f)
{
	const struct mount_tmpfs tmpfs = { TEMPLATE_BYTES, TEMPLATE_INODES, 0711, 0 };
	cleanup_fd int mount = -1, dir = -1;
	int r = mount_tmpfs(&tmpfs, MOUNT_NOEXEC, &mount, f);

	if (r < 0)
		return r;
	r = sys.mkdirat(AT_FDCWD, VIEW_DIR, 0711);
	if (r < 0 && r != -EEXIST)
		return fault_set(f, r, "mkdir " VIEW_DIR);
	r = mount_attach(mount, AT_FDCWD, VIEW_DIR, f);
	if (r < 0)
		return r;
	dir = sys.openat(AT_FDCWD, VIEW_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir < 0)
		return fault_set(f, dir, "open " VIEW_DIR);
	r = view_make_dirs(dir, "empty", f);
	if (r == 0)
		r = view_make_dirs(dir, "anchor", f);
	if (r == 0)
		r = view_make_network(dir, f);
	if (r == 0)
		r = make_dev(dir, f);
	if (r == 0)
		r = make_root(v, dir, f);
	return r;
}

int view_open(struct view *ret, const struct runtime *rt, struct fault *f)
{
	mode_t mask;
	int r;

	*ret = (struct view){ .count = 0 };
	r = choose_pieces(ret, rt, f);
	if (r < 0)
		return fault_wrap(f, "root view");
	mask = umask(0);
	r = make_template(ret, f);
	(void)umask(mask);
	return r < 0 ? fault_wrap(f, "root view") : 0;
}

int view_open_other(
	struct view *ret, const struct runtime *rt, unsigned number, bool builds, struct fault *f)
{
	cleanup_fd int dir = sys.openat(AT_FDCWD, VIEW_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	char name[ROOT_NAME_MAX], path[sizeof(VIEW_DIR) + ROOT_NAME_MAX];
	mode_t mask;
	int r;

	CHECK(number > 0);
	*ret = (struct view){ .number = number, .builds = builds };
	if (dir < 0)
		return fault_set(f, dir, "root view: open " VIEW_DIR);
	r = choose_pieces(ret, rt, f);
	if (r < 0)
		return fault_wrap(f, "root view");
	mask = umask(0);
	r = make_root(ret, dir, f);
	(void)umask(mask);
	if (r == 0)
		return 0;
	(void)snprintf(path, sizeof(path), VIEW_DIR "/%s", root_name(ret, name));
	view_remove(path);
	return fault_wrap(f, "root view");
}

/* Collects the mounts of one cell; whatever is in it when it goes out of scope is closed. */
struct collector {
	struct view_mount *list;
	unsigned count, room;
};

static void collector_drop(struct collector *c)
{
	if (c->list)
		view_mounts_close(c->list, c->count);
}

static int collect(struct collector *c, const char *path, int fd)
{
	CHECK(c->count < c->room);
	c->list[c->count].fd = fd;
	(void)snprintf(c->list[c->count].path, CELL_PATH_MAX, "%s", path);
	c->count++;
	return 0;
}

static int add_overlay(
	struct collector *c, const char *lower, const char *path, unsigned flags, struct fault *f)
{
	const char *const layers[] = { lower, VIEW_DIR "/empty", NULL };
	int fd, r = mount_overlay(layers, flags, &fd, f);

	return r < 0 ? r : collect(c, path, fd);
}

/* A network's files lie over whatever the root has in their place. */
static int add_layers(struct collector *c, bool network, const char *upper, const char *lower,
	unsigned flags, struct fault *f)
{
	const char *const all[] = { VIEW_DIR "/network", upper, lower, NULL };
	int fd, r = mount_overlay(network ? all : all + 1, flags, &fd, f);

	return r < 0 ? r : collect(c, "", fd);
}

static int add_root(struct collector *c, const struct view *v, bool network, struct fault *f)
{
	char top[sizeof(v->image) + 8], root[sizeof(v->image) + 8], name[ROOT_NAME_MAX];

	if (!v->image[0]) {
		(void)snprintf(root, sizeof(root), VIEW_DIR "/%s", root_name(v, name));
		return add_layers(
			c, network, root, VIEW_DIR "/empty", MOUNT_NODEV | MOUNT_NOEXEC, f);
	}
	(void)snprintf(top, sizeof(top), "%s/top", v->image);
	(void)snprintf(root, sizeof(root), "%s/root", v->image);
	return add_layers(c, network, top, root, MOUNT_NODEV, f);
}

int view_mounts(const struct view *v, bool network, struct view_mount *ret, unsigned *ret_count,
	struct fault *f)
{
	CLEANUP(collector_drop) struct collector c = { .list = ret, .room = CELL_MOUNTS_MAX };
	int r = add_root(&c, v, network, f);

	/* The device nodes are the one place without nodev, and nothing is executed there. */
	if (r == 0)
		r = add_overlay(&c, VIEW_DIR "/dev", "dev", MOUNT_NOEXEC, f);
	for (unsigned i = 0; r == 0 && i < v->count; i++)
		r = add_overlay(&c, v->pieces[i], v->pieces[i] + 1, MOUNT_NODEV, f);
	if (r < 0)
		return fault_wrap(f, "mounts");
	*ret_count = c.count;
	c.list = NULL;
	return 0;
}

const char *const view_scratch_paths[VIEW_SCRATCH] = {
#define X(name, path) path,
	SCRATCHES(X)
#undef X
};

/* A second before it was made: what a program does there has another time, however soon. */
static int set_back(int mount_fd, struct fault *f)
{
	struct timespec t[2];
	struct stat st;
	int r = sys.fstat(mount_fd, &st);

	if (r < 0)
		return fault_set(f, r, "look at it");
	t[0] = t[1] = (struct timespec){ st.st_mtim.tv_sec - 1, st.st_mtim.tv_nsec };
	r = sys.utimensat(mount_fd, "", t, AT_EMPTY_PATH);
	return r < 0 ? fault_set(f, r, "set times") : 0;
}

int view_scratch(const struct view_scratch *s, unsigned which, int *ret_fd, struct fault *f)
{
	const struct mount_tmpfs own = { s->bytes, s->inodes, 0700, s->uid };
	const struct mount_tmpfs open = { s->bytes, s->inodes, 01777, s->root_uid };
	cleanup_fd int fd = -1;
	int r = mount_tmpfs(
		which == VIEW_WORKSPACE ? &own : &open, MOUNT_NODEV | MOUNT_NOEXEC, &fd, f);

	if (r == 0 && which != VIEW_WORKSPACE)
		r = set_back(fd, f);
	if (r < 0)
		return fault_wrap(f, "%s", view_scratch_paths[which]);
	*ret_fd = take_fd(&fd);
	return 0;
}

void view_mounts_close(struct view_mount *mounts, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		drop_fd(&mounts[i].fd);
}
