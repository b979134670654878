#include "box/root.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/own.h"
#include "box/box.h"
#include "kernel/mount.h"
#include "kernel/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

int root_plan(struct root *s, struct fault *f)
{
	struct msg m;
	int r = box_expect(MSG_BUILD, &m, f);

	if (r < 0)
		return r;
	s->build = m.as.BUILD;
	if (s->build.mounts < 1 || s->build.mounts > CELL_MOUNTS_MAX)
		return fault_set(f, -EPROTO, "%u mounts", s->build.mounts);
	return 0;
}

static int make_private(struct fault *f)
{
	int r = sys.mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);

	return r < 0 ? fault_set(f, r, "make all mounts private") : 0;
}

static int attach_next(struct root *s, unsigned i, struct fault *f)
{
	struct msg m;
	int r = box_expect(MSG_MOUNT, &m, f);

	if (r < 0)
		return r;
	m.as.MOUNT.path[CELL_PATH_MAX - 1] = '\0';
	if (i == 0)
		r = mount_attach(m.fds[0], AT_FDCWD, m.as.MOUNT.path, f);
	else
		r = mount_attach(m.fds[0], s->fd, m.as.MOUNT.path, f);
	if (r == 0 && i == 0) {
		/* The mount itself, not what it covers. */
		s->fd = sys.openat(m.fds[0], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
		if (s->fd < 0)
			r = fault_set(f, s->fd, "open the root");
	}
	msg_done(&m);
	return r;
}

static int attach_all(struct root *s, struct fault *f)
{
	for (unsigned i = 0; i < s->build.mounts; i++) {
		int r = attach_next(s, i, f);

		if (r < 0)
			return r;
	}
	return 0;
}

/* What a full /proc shows beside the processes. Everything else in it is covered, also
 * what a later kernel brings. */
static bool proc_name_stays(const char *name)
{
	static const char *const stays[] = { "self", "thread-self", "net", "mounts", "meminfo",
		"cpuinfo", "stat", "uptime", "loadavg", "version", "filesystems" };

	if (name[0] == '.' || (name[0] >= '0' && name[0] <= '9'))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(stays); i++) {
		if (strcmp(name, stays[i]) == 0)
			return true;
	}
	return false;
}

static int cover(const struct dirent *e, struct fault *f)
{
	const char *with = e->d_type == DT_DIR ? "var" : "dev/null";
	char path[NAME_MAX + 8];
	int r;

	if (e->d_type == DT_LNK)
		return 0; /* only self, thread-self, net and mounts are links, into a process */
	(void)snprintf(path, sizeof(path), "proc/%s", e->d_name);
	r = sys.mount(with, path, NULL, MS_BIND, NULL);
	return r < 0 ? fault_set(f, r, "cover %s", path) : 0;
}

static void closedir_p(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* What stays gets its times when somebody looks at it first: now, and not when a program
 * does. */
static int look_at(const char *name, struct fault *f)
{
	char path[NAME_MAX + 8];
	struct stat st;
	int r;

	(void)snprintf(path, sizeof(path), "proc/%s", name);
	r = sys.fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW);
	return r < 0 && r != -ENOENT ? fault_set(f, r, "look at %s", path) : 0;
}

static int cover_all(struct fault *f)
{
	CLEANUP(closedir_p) DIR *dir = opendir("proc");
	const struct dirent *e;
	int r = 0;

	if (!dir)
		return fault_set(f, -errno, "open proc");
	while (r == 0 && (e = readdir(dir))) {
		r = proc_name_stays(e->d_name) ? look_at(e->d_name, f) : cover(e, f);
	}
	return r;
}

static int mount_own_proc(struct root *s, struct fault *f)
{
	cleanup_fd int fd = -1;
	int r = mount_proc((int)s->build.full_proc, &fd, f);

	if (r == 0)
		r = mount_attach(fd, s->fd, "proc", f);
	return r;
}

int root_mount(struct root *s, struct fault *f)
{
	/* First: nothing that is mounted below may propagate out. */
	int r = make_private(f);

	if (r == 0)
		r = attach_all(s, f);
	/* In the new pid namespace, while the old /proc is visible. */
	return r == 0 ? mount_own_proc(s, f) : r;
}

int root_pivot(struct root *s, struct fault *f)
{
	int r = sys.fchdir(s->fd);

	if (r < 0)
		return fault_set(f, r, "enter the root");
	if (s->build.full_proc) {
		r = cover_all(f);
		if (r < 0)
			return r;
	}
	return mount_pivot_here(f);
}

/* The root must be the one that was attached, and nothing may be writable in it. */
int root_check(struct root *s, struct fault *f)
{
	struct stat root, attached;
	int r = sys.fstatat(AT_FDCWD, "/", &root, 0), fd;

	if (r == 0)
		r = sys.fstat(s->fd, &attached);
	if (r < 0)
		return fault_set(f, r, "stat");
	if (root.st_dev != attached.st_dev || root.st_ino != attached.st_ino)
		return fault_set(f, -EXDEV, "\"/\" is not the cell's root");
	fd = sys.openat(AT_FDCWD, "/etc/.writable", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd != -EROFS) {
		if (fd >= 0)
			(void)sys.close(fd);
		return fault_set(f, fd < 0 ? fd : -EPERM, "the root is not read-only");
	}
	drop_fd(&s->fd);
	return 0;
}
