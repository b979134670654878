#include "box/init/steps.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/own.h"
#include "box/box.h"
#include "kernel/caps.h"
#include "kernel/loopback.h"
#include "kernel/mount.h"
#include "kernel/seccomp.h"
#include "kernel/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static int step_parent_death(struct init_state *s, struct fault *f)
{
	(void)s;
	return box_die_with_supervisor(f);
}

static int step_plan(struct init_state *s, struct fault *f)
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

static int step_cgroup_ns(struct init_state *s, struct fault *f)
{
	int r = sys.unshare(CLONE_NEWCGROUP);

	(void)s;
	return r < 0 ? fault_set(f, r, "unshare") : 0;
}

static int step_names(struct init_state *s, struct fault *f)
{
	static const char host[] = "glovebox";
	int r = sys.sethostname(host, sizeof(host) - 1);

	(void)s;
	return r < 0 ? fault_set(f, r, "sethostname") : 0;
}

static int step_private(struct init_state *s, struct fault *f)
{
	int r = sys.mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);

	(void)s;
	return r < 0 ? fault_set(f, r, "make all mounts private") : 0;
}

static int attach_next(struct init_state *s, unsigned i, struct fault *f)
{
	struct msg m;
	int r = box_expect(MSG_MOUNT, &m, f);

	if (r < 0)
		return r;
	m.as.MOUNT.path[CELL_PATH_MAX - 1] = '\0';
	if (i == 0)
		r = mount_attach(m.fds[0], AT_FDCWD, m.as.MOUNT.path, f);
	else
		r = mount_attach(m.fds[0], s->root_fd, m.as.MOUNT.path, f);
	if (r == 0 && i == 0) {
		/* The mount itself, not what it covers. */
		s->root_fd = sys.openat(m.fds[0], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
		if (s->root_fd < 0)
			r = fault_set(f, s->root_fd, "open the root");
	}
	msg_done(&m);
	return r;
}

static int step_mounts(struct init_state *s, struct fault *f)
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

static int cover_all(struct fault *f)
{
	CLEANUP(closedir_p) DIR *dir = opendir("proc");
	const struct dirent *e;
	int r = 0;

	if (!dir)
		return fault_set(f, -errno, "open proc");
	while (r == 0 && (e = readdir(dir))) {
		if (!proc_name_stays(e->d_name))
			r = cover(e, f);
	}
	return r;
}

static int step_proc(struct init_state *s, struct fault *f)
{
	cleanup_fd int fd = -1;
	int r = mount_proc((int)s->build.full_proc, &fd, f);

	if (r == 0)
		r = mount_attach(fd, s->root_fd, "proc", f);
	return r;
}

static int step_pivot(struct init_state *s, struct fault *f)
{
	int r = sys.fchdir(s->root_fd);

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
static int step_check_root(struct init_state *s, struct fault *f)
{
	struct stat root, attached;
	int r = sys.fstatat(AT_FDCWD, "/", &root, 0), fd;

	if (r == 0)
		r = sys.fstat(s->root_fd, &attached);
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
	drop_fd(&s->root_fd);
	return 0;
}

static int step_loopback(struct init_state *s, struct fault *f)
{
	(void)s;
	return loopback_up(f);
}

static int step_drop(struct init_state *s, struct fault *f)
{
	int r;

	(void)s;
	/* Stays uid 0 of the map, so that the program, another uid, cannot signal it. */
	r = caps_lock(f);
	if (r == 0)
		r = caps_clear(f);
	if (r < 0)
		return r;
	r = sys.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (r == 0)
		r = sys.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (r < 0)
		return fault_set(f, r, "prctl");
	r = sys.close_range(BOX_CHANNEL_FD + 1, ~0u, 0);
	if (r < 0)
		return fault_set(f, r, "close_range");
	/* Ignored: children that are handed to pid 1 never become zombies. */
	if (signal(SIGCHLD, SIG_IGN) == SIG_ERR)
		return fault_set(f, -errno, "ignore SIGCHLD");
	return box_die_with_supervisor(f);
}

static int step_seccomp(struct init_state *s, struct fault *f)
{
	(void)s;
	return seccomp_install(SECCOMP_INIT, f);
}

/* The order is the security argument. */
const struct init_step init_steps[] = {
	{ "parent death", step_parent_death }, /* first: nothing below may outlive the supervisor */
	{ "plan", step_plan },                 /* waits: the cgroups are joined by then */
	{ "cgroup namespace", step_cgroup_ns }, /* after the joins, or the leaf's name shows */
	{ "names", step_names },
	{ "private mounts", step_private }, /* before any mount: nothing may propagate out */
	{ "mounts", step_mounts },
	{ "proc", step_proc },   /* in the new pid namespace, while the old /proc is visible */
	{ "pivot", step_pivot }, /* after all mounts: the old root is needed until here */
	{ "check root", step_check_root },
	{ "loopback", step_loopback }, /* needs CAP_NET_ADMIN over the cell's namespace */
	{ "drop", step_drop },         /* after everything that needs a capability */
	{ "seccomp", step_seccomp },   /* last: denies what the others do */
};
const unsigned init_steps_count = ARRAY_LEN(init_steps);
