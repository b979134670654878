#include "tests/lib/v2_host.h"

#include "base/check.h"
#include "base/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

int __wrap_faccessat(int dir_fd, const char *path, int mode, int flags);
int __real_faccessat(int dir_fd, const char *path, int mode, int flags);
ssize_t __wrap_fgetxattr(int fd, const char *name, void *value, size_t room);
uid_t __wrap_geteuid(void);

struct v2_host v2;

static struct sys_ops real;
static char folder[64], top[80];
static char us[V2_PATH_MAX]; /* the directory that we are in */

static const struct {
	const char *name, *text;
} files[] = {
	{ "cgroup.procs", "" },
	{ "cgroup.subtree_control", "" },
	{ "cgroup.events", "populated 0\nfrozen 0\n" },
	{ "cgroup.kill", "" },
	{ "cgroup.type", "domain\n" },
	{ "cpu.stat", "usage_usec 0\nuser_usec 0\nsystem_usec 0\nthrottled_usec 0\n" },
	{ "cpu.max", "max 100000\n" },
	{ "memory.max", "max\n" },
	{ "memory.swap.max", "max\n" },
	{ "memory.oom.group", "0\n" },
	{ "memory.current", "0\n" },
	{ "memory.peak", "0\n" },
	{ "memory.events", "oom_kill 0\n" },
	{ "pids.max", "max\n" },
	{ "pids.current", "0\n" },
	{ "pids.peak", "0\n" },
	{ "pids.events", "max 0\n" },
};

static void put(const char *dir, const char *file, const char *text)
{
	char path[V2_PATH_MAX + 64];
	FILE *to;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	to = fopen(path, "we");
	CHECK(to);
	(void)fputs(text, to);
	(void)fclose(to);
}

static void get(const char *dir, const char *file, char *text, size_t room)
{
	char path[V2_PATH_MAX + 64];
	FILE *from;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	from = fopen(path, "re");
	text[0] = '\0';
	if (!from)
		return;
	text[fread(text, 1, room - 1, from)] = '\0';
	(void)fclose(from);
}

static void fill_group(const char *dir, const char *controllers, bool real_top)
{
	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (!real_top || strcmp(files[i].name, "cgroup.type") != 0)
			put(dir, files[i].name, files[i].text);
	put(dir, "cgroup.controllers", controllers);
}

static void make_group(const char *dir)
{
	char above[V2_PATH_MAX], handed[128];

	(void)snprintf(above, sizeof(above), "%.*s", (int)(strrchr(dir, '/') - dir), dir);
	get(above, "cgroup.subtree_control", handed, sizeof(handed));
	fill_group(dir, handed, false);
}

static void path_of(int fd, char ret[V2_PATH_MAX])
{
	char link[40];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, V2_PATH_MAX - 1);
	CHECK(n > 0);
	ret[n] = '\0';
}

static bool is_group(const char *path)
{
	return strncmp(path, top, strlen(top)) == 0;
}

/* For each group directly below `dir`. */
static void each_child(const char *dir, void (*visit)(const char *dir, void *ctx), void *ctx)
{
	DIR *d = opendir(dir);
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		char child[2 * V2_PATH_MAX];

		(void)snprintf(child, sizeof(child), "%s/%s", dir, e->d_name);
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			visit(child, ctx);
	}
	if (d)
		(void)closedir(d);
}

static void hand_down(const char *dir, void *ctx)
{
	put(dir, "cgroup.controllers", ctx);
}

static void count(const char *dir, void *ctx)
{
	(void)dir;
	++*(unsigned *)ctx;
}

static void end_all(const char *dir, void *ctx)
{
	(void)ctx;
	if (strcmp(dir, us) != 0)
		put(dir, "cgroup.procs", "");
	each_child(dir, end_all, NULL);
}

/* ---- Entries of the table ---- */

static int v2_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	char own[V2_PATH_MAX];
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	if (v2.no_file && strcmp(name, v2.no_file) == 0)
		return v2.no_file_code;
	if (v2.no_second_list && v2.mounts > 0 && strcmp(path, "/proc/self/cgroup") == 0)
		return -EIO;
	if (strcmp(path, "/proc/self/mountinfo") != 0 && strcmp(path, "/proc/self/cgroup") != 0)
		return real.openat(dir_fd, path, flags, mode);
	(void)snprintf(own, sizeof(own), "%s/%s", folder, name);
	return real.openat(AT_FDCWD, own, flags, mode);
}

static int v2_fstatfs(int fd, struct statfs *ret)
{
	int r = real.fstatfs(fd, ret);

	ret->f_type = v2.not_cgroup ? TMPFS_MAGIC : CGROUP2_SUPER_MAGIC;
	return r;
}

static int v2_mkdirat(int dir_fd, const char *name, mode_t mode)
{
	char above[V2_PATH_MAX], dir[2 * V2_PATH_MAX];
	int r = real.mkdirat(dir_fd, name, mode);

	path_of(dir_fd, above);
	if (r < 0 || !is_group(above))
		return r;
	(void)snprintf(dir, sizeof(dir), "%s/%s", above, name);
	make_group(dir);
	return v2.others_make ? -EEXIST : 0;
}

static int v2_unlinkat(int dir_fd, const char *name, int flags)
{
	char dir[V2_PATH_MAX], procs[64];
	cleanup_fd int fd = real.openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	unsigned children = 0;

	if (fd < 0)
		return fd;
	path_of(fd, dir);
	if (!is_group(dir))
		return real.unlinkat(dir_fd, name, flags);
	CHECK(flags == AT_REMOVEDIR);
	each_child(dir, count, &children);
	get(dir, "cgroup.procs", procs, sizeof(procs));
	if (children > 0 || procs[0])
		return -EBUSY;
	if (v2.busy > 0) {
		v2.busy--;
		return -EBUSY;
	}
	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		(void)unlinkat(fd, files[i].name, 0);
	(void)unlinkat(fd, "cgroup.controllers", 0);
	if (v2.others_remove) {
		(void)real.unlinkat(dir_fd, name, flags);
		return -ENOENT;
	}
	return real.unlinkat(dir_fd, name, flags);
}

static int control(const char *dir, const char *word)
{
	char on[128], next[200] = "", procs[64], type[16];
	char *save = NULL;

	get(dir, "cgroup.procs", procs, sizeof(procs));
	get(dir, "cgroup.type", type, sizeof(type));
	if (word[0] == '+' && procs[0] && type[0])
		return -EBUSY;
	get(dir, "cgroup.subtree_control", on, sizeof(on));
	for (char *w = strtok_r(on, " \n", &save); w; w = strtok_r(NULL, " \n", &save))
		if (strcmp(w, word + 1) != 0)
			(void)snprintf(next + strlen(next), sizeof(next) - strlen(next), "%s ", w);
	if (word[0] == '+')
		(void)snprintf(next + strlen(next), sizeof(next) - strlen(next), "%s ", word + 1);
	put(dir, "cgroup.subtree_control", next);
	each_child(dir, hand_down, next);
	return 0;
}

static int move_us(const char *dir)
{
	char on[128], text[24], type[16];

	get(dir, "cgroup.subtree_control", on, sizeof(on));
	get(dir, "cgroup.type", type, sizeof(type));
	if (on[0] && type[0])
		return -EBUSY;
	put(us, "cgroup.procs", "");
	(void)snprintf(us, sizeof(us), "%s", dir);
	(void)snprintf(text, sizeof(text), "%d\n", (int)getpid());
	put(us, "cgroup.procs", text);
	return 0;
}

static ssize_t v2_write(int fd, const void *bytes, size_t len)
{
	char path[V2_PATH_MAX], word[64], *file;
	int r = 0;

	path_of(fd, path);
	file = strrchr(path, '/');
	if (!is_group(path))
		return real.write(fd, bytes, len);
	*file++ = '\0';
	(void)snprintf(word, sizeof(word), "%.*s", (int)len, (const char *)bytes);
	if (strcmp(file, "cgroup.subtree_control") == 0)
		r = control(path, word);
	else if (strcmp(file, "cgroup.procs") == 0)
		r = move_us(path);
	else if (strcmp(file, "cgroup.kill") == 0)
		end_all(path, NULL);
	else
		put(path, file, word);
	return r < 0 ? r : (ssize_t)len;
}

static int v2_fsopen(const char *type, unsigned flags)
{
	CHECK(strcmp(type, "cgroup2") == 0);
	(void)flags;
	return v2.no_mounting == 1 ? -EPERM
				   : real.openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC, 0);
}

static int v2_fsconfig(int fd, unsigned cmd, const char *key, const void *value, int aux)
{
	(void)fd;
	(void)cmd;
	(void)key;
	(void)value;
	(void)aux;
	return v2.no_mounting == 2 ? -EBUSY : 0;
}

static int v2_fsmount(int fd, unsigned flags, unsigned attributes)
{
	char text[V2_PATH_MAX];

	(void)fd;
	(void)flags;
	(void)attributes;
	if (v2.no_mounting == 3)
		return -EMFILE;
	v2.mounts++;
	(void)snprintf(text, sizeof(text), "0::%s\n", v2.own);
	put(folder, "cgroup", text);
	return real.openat(AT_FDCWD, top, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}

/* ---- Calls that are not in the table ---- */

int __wrap_faccessat(int dir_fd, const char *path, int mode, int flags)
{
	bool yes;

	if (strcmp(path, "/run/systemd/system") == 0)
		yes = v2.systemd;
	else if (strcmp(path, "cgroup.procs") == 0)
		yes = !v2.not_writable;
	else
		return __real_faccessat(dir_fd, path, mode, flags);
	errno = ENOENT;
	return yes ? 0 : -1;
}

ssize_t __wrap_fgetxattr(int fd, const char *name, void *value, size_t room)
{
	(void)fd;
	(void)name;
	CHECK(room == 1);
	*(char *)value = v2.delegated ? '1' : '0';
	errno = ENODATA;
	return v2.systemd ? 1 : -1;
}

uid_t __wrap_geteuid(void)
{
	return v2.not_root ? 1000 : 0;
}

/* ---- Made and taken away ---- */

void v2_group(const char *path)
{
	char dir[V2_PATH_MAX];

	for (const char *p = path; p && p[1]; p = strchr(p + 1, '/')) {
		const char *end = strchrnul(p + 1, '/');

		(void)snprintf(dir, sizeof(dir), "%s%.*s", top, (int)(end - path), path);
		if (mkdir(dir, 0755) == 0)
			make_group(dir);
	}
}

void v2_crowd(const char *path)
{
	char dir[V2_PATH_MAX];

	v2_group(path);
	(void)snprintf(dir, sizeof(dir), "%s%s", top, path);
	put(dir, "cgroup.procs", "1\n");
}

void v2_begin(void)
{
	char text[2 * V2_PATH_MAX];

	(void)snprintf(folder, sizeof(folder), "/tmp/gbx-v2-XXXXXX");
	CHECK(mkdtemp(folder));
	(void)snprintf(top, sizeof(top), "%s/top", folder);
	CHECK(mkdir(top, 0755) == 0);
	fill_group(top, v2.controllers, !v2.in_container);
	if (v2.handed)
		put(top, "cgroup.subtree_control", v2.handed);
	(void)snprintf(text, sizeof(text), "30 1 0:26 %s %s rw - cgroup2 cgroup2 %s\n",
		v2.root ? v2.root : "/", top, v2.read_only ? "ro" : "rw");
	put(folder, "mountinfo", text);
	(void)snprintf(text, sizeof(text), "0::%s\n", v2.own);
	put(folder, "cgroup", v2.unlisted ? "" : text);
	(void)snprintf(us, sizeof(us), "%s", top);
	if (strncmp(v2.own, "/..", 3) != 0 && strcmp(v2.own, "/") != 0) {
		v2_group(v2.own);
		(void)snprintf(us, sizeof(us), "%s%s", top, v2.own);
	}
	(void)snprintf(text, sizeof(text), "%d\n", (int)getpid());
	put(us, "cgroup.procs", text);
	real = sys;
	sys.openat = v2_openat;
	sys.fstatfs = v2_fstatfs;
	sys.mkdirat = v2_mkdirat;
	sys.unlinkat = v2_unlinkat;
	sys.write = v2_write;
	sys.fsopen = v2_fsopen;
	sys.fsconfig = v2_fsconfig;
	sys.fsmount = v2_fsmount;
}

static void take_away(const char *dir, void *ctx)
{
	DIR *d;
	const struct dirent *e;

	(void)ctx;
	each_child(dir, take_away, NULL);
	d = opendir(dir);
	while (d && (e = readdir(d)))
		if (e->d_type != DT_DIR)
			(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		(void)closedir(d);
	(void)rmdir(dir);
}

void v2_end(void)
{
	sys = real;
	take_away(folder, NULL);
	memset(&v2, 0, sizeof(v2));
}

int v2_open(const char *path)
{
	char dir[V2_PATH_MAX];

	(void)snprintf(dir, sizeof(dir), "%s%s", top, path);
	return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool v2_is_there(const char *path)
{
	char dir[V2_PATH_MAX];

	(void)snprintf(dir, sizeof(dir), "%s%s", top, path);
	return access(dir, F_OK) == 0;
}

bool v2_holds_us(const char *path)
{
	char dir[V2_PATH_MAX];

	(void)snprintf(dir, sizeof(dir), "%s%s", top, strcmp(path, "/") == 0 ? "" : path);
	return strcmp(dir, us) == 0;
}

bool v2_has(const char *path, const char *file, const char *word)
{
	char dir[V2_PATH_MAX], text[256];

	(void)snprintf(dir, sizeof(dir), "%s%s", top, strcmp(path, "/") == 0 ? "" : path);
	get(dir, file, text, sizeof(text));
	return strstr(text, word) != NULL;
}
