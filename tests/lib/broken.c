/* How each layer is left out: in the system-call table where the layer is a call, in a wrapped
 * function (-Wl,--wrap) where it is not. Whatever verifies the layer is told that it is there. */
#include "tests/lib/broken.h"

#include "base/fault.h"
#include "kernel/sys.h"
#include "wire/channel.h"
#include "wire/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef GLOVEBOX_TEST
#error "broken.c replaces entries of the system-call table: build with -DGLOVEBOX_TEST"
#endif

/* volatile: the compiler must not know that it is zero. */
static volatile struct broken block __attribute__((used)) = { .magic = BROKEN_MAGIC };

static struct sys_ops real;
static enum layer broken; /* LAYER_MAX: none */
static bool is_init, is_enter;

/* ---- namespaces: never made, never joined ---- */

static uint64_t namespace_of(enum layer layer)
{
	switch ((int)layer) {
	case LAYER_USER_NS:
		return CLONE_NEWUSER;
	case LAYER_PID_NS:
		return CLONE_NEWPID;
	case LAYER_IPC_NS:
		return CLONE_NEWIPC;
	case LAYER_UTS_NS:
		return CLONE_NEWUTS;
	case LAYER_NET_NS:
		return CLONE_NEWNET;
	case LAYER_CGROUP_NS:
		return CLONE_NEWCGROUP;
	default:
		return 0;
	}
}

static pid_t broken_clone3(struct clone_args *args, size_t size)
{
	args->flags &= ~namespace_of(broken);
	/* The number is taken in the host's namespace. */
	if (broken == LAYER_PID_NS)
		args->set_tid = args->set_tid_size = 0;
	return real.clone3(args, size);
}

static int broken_unshare(int flags)
{
	return namespace_of(broken) == (uint64_t)flags ? 0 : real.unshare(flags);
}

static int broken_setns(int fd, int type)
{
	if (broken == LAYER_USER_NS)
		type &= ~CLONE_NEWUSER; /* nobody may join the one that he is in */
	if (broken == LAYER_MOUNT_NS && is_enter)
		type &= ~CLONE_NEWNS;
	return real.setns(fd, type);
}

/* Without a namespace of its own these would be the host's. */
static int broken_sethostname(const char *name, size_t len)
{
	return broken == LAYER_UTS_NS ? 0 : real.sethostname(name, len);
}

static int broken_move_mount(
	int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	if (broken == LAYER_MOUNT_NS && is_enter)
		return 0;
	return real.move_mount(from_fd, from, to_fd, to, flags);
}

/* Without a user namespace there is no user 1000 of the cell: the slot's own, whose the
 * workspace is. */
static uid_t own_uid(uid_t uid)
{
	struct stat st;

	if (broken == LAYER_USER_NS && is_enter && stat("/workspace", &st) == 0)
		return st.st_uid;
	return uid;
}

static int broken_setresuid(uid_t r, uid_t e, uid_t s)
{
	return broken == LAYER_USER_NS && is_enter
		       ? real.setresuid(own_uid(r), own_uid(e), own_uid(s))
		       : real.setresuid(r, e, s);
}

static int broken_setresgid(gid_t r, gid_t e, gid_t s)
{
	return broken == LAYER_USER_NS && is_enter
		       ? real.setresgid(own_uid(r), own_uid(e), own_uid(s))
		       : real.setresgid(r, e, s);
}

/* ---- files that are written to and change nothing ---- */

static bool is_one_of(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(name, *list) == 0)
			return true;
	return false;
}

static bool is_void(const char *path)
{
	static const char *const
		maps[] = { "setgroups", "uid_map", "gid_map", NULL },
		*const memory[] = { "memory.max", "memory.limit_in_bytes",
			"memory.memsw.limit_in_bytes", NULL },
		*const swap[] = { "memory.swap.max", "memory.memsw.limit_in_bytes", NULL },
		*const cpu[] = { "cpu.max", "cpu.cfs_quota_us", NULL },
		*const pids[] = { "pids.max", NULL }, *const kills[] = { "cgroup.kill", NULL };

	switch ((int)broken) {
	case LAYER_USER_NS:
		return is_one_of(path, maps);
	case LAYER_MEMORY:
		return is_one_of(path, memory);
	case LAYER_SWAP:
		return is_one_of(path, swap);
	case LAYER_CPU:
		return is_one_of(path, cpu);
	case LAYER_PIDS:
		return is_one_of(path, pids);
	case LAYER_KILL:
		return is_one_of(path, kills);
	default:
		return false;
	}
}

static int broken_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	if ((flags & O_ACCMODE) == O_WRONLY && is_void(path))
		return real.openat(AT_FDCWD, "/dev/null", flags, mode);
	/* init's own look at the root. */
	if (broken == LAYER_ROOT && is_init && strcmp(path, "/etc/.writable") == 0)
		return -EROFS;
	/* The program before has left its file in the host's directory. */
	if (broken == LAYER_MOUNT_NS && is_enter && (flags & O_EXCL))
		(void)real.unlinkat(dir_fd, path, 0);
	return real.openat(dir_fd, path, flags, mode);
}

/* ---- the root: an overlay with a layer that is written to ---- */

static int root_fd = -1;

static int proc_fd = -1;

static int broken_fsopen(const char *type, unsigned flags)
{
	bool is_proc = broken == LAYER_PID_NS && is_init && strcmp(type, "proc") == 0;
	int fd = is_proc ? real.openat(AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0)
			 : real.fsopen(type, flags);

	root_fd = -1;
	proc_fd = is_proc ? fd : -1;
	return fd;
}

/* Nobody can mount the proc of a pid namespace that is not his: the host's own one. */
static int take_proc(unsigned attributes)
{
	struct mount_attr set = { .attr_set = attributes };
	int fd = (int)syscall(SYS_open_tree, AT_FDCWD, "/proc",
		OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (fd >= 0)
		(void)real.mount_setattr(fd, "", AT_EMPTY_PATH, &set, sizeof(set));
	return fd;
}

static int set_upper(int fd)
{
	static unsigned count;
	char upper[64], work[64];
	int r;

	(void)snprintf(upper, sizeof(upper), "/run/glovebox/view/upper%u", count);
	(void)snprintf(work, sizeof(work), "/run/glovebox/view/work%u", count++);
	(void)real.mkdirat(AT_FDCWD, upper, 0777);
	(void)real.mkdirat(AT_FDCWD, work, 0777);
	(void)chmod(upper, 0777);
	r = real.fsconfig(fd, FSCONFIG_SET_STRING, "upperdir", upper, 0);
	return r < 0 ? r : real.fsconfig(fd, FSCONFIG_SET_STRING, "workdir", work, 0);
}

static int broken_fsconfig(int fd, unsigned cmd, const char *key, const void *value, int aux)
{
	int r = fd == proc_fd ? 0 : real.fsconfig(fd, cmd, key, value, aux);

	if (r == 0 && broken == LAYER_ROOT && key && strcmp(key, "lowerdir") == 0 &&
		strstr(value, "/view/root:")) {
		root_fd = fd;
		r = set_upper(fd);
	}
	return r;
}

static int broken_fsmount(int fd, unsigned flags, unsigned attributes)
{
	if (fd == proc_fd)
		return take_proc(attributes);
	if (fd == root_fd)
		attributes &= ~(unsigned)MOUNT_ATTR_RDONLY;
	return real.fsmount(fd, flags, attributes);
}

/* ---- /proc: nothing is covered ---- */

static int broken_mount(const char *source, const char *target, const char *type,
	unsigned long flags, const void *options)
{
	if (broken == LAYER_PROC && strncmp(target, "proc/", 5) == 0)
		return 0;
	return real.mount(source, target, type, flags, options);
}

/* ---- killing: nothing dies but the main process ---- */

/* Is it the first process of a pid namespace? */
static bool is_first(int pid_fd)
{
	char path[40], text[512] = "";
	const char *line;
	int fd, inner = 0;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pid_fd);
	fd = real.openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	(void)!read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	line = strstr(text, "\nNSpid:");
	return line && sscanf(line, "\nNSpid: %*d %d", &inner) == 1 && inner == 1;
}

static int broken_pidfd_send_signal(int pid_fd, int sig, siginfo_t *info, unsigned flags)
{
	if (broken == LAYER_KILL && is_first(pid_fd))
		return 0;
	return real.pidfd_send_signal(pid_fd, sig, info, flags);
}

/* ---- what enter gives up ---- */

static int broken_prctl(int op, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	if (broken == LAYER_NNP && is_enter && op == PR_SET_NO_NEW_PRIVS)
		return 0;
	return real.prctl(op, a, b, c, d);
}

static int broken_prlimit(pid_t pid, int resource, const struct rlimit *set, struct rlimit *ret)
{
	return real.prlimit(pid, resource, broken == LAYER_RLIMITS && is_enter ? NULL : set, ret);
}

static int broken_seccomp(unsigned op, unsigned flags, void *args)
{
	if (broken != LAYER_SECCOMP || !is_enter)
		return real.seccomp(op, flags, args);
	/* As where no listener can be had. */
	return flags & SECCOMP_FILTER_FLAG_NEW_LISTENER ? -EBUSY : 0;
}

#ifdef BROKEN_BOX
int __real_caps_lock(struct fault *f);
int __wrap_caps_lock(struct fault *f);
int __wrap_caps_lock(struct fault *f)
{
	return broken == LAYER_CAPS && is_enter ? 0 : __real_caps_lock(f);
}

/* Also inheritable and ambient, so that an exec does not take them away. */
static void keep_capabilities(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &h, d) < 0)
		return;
	d[0].inheritable = d[0].permitted;
	d[1].inheritable = d[1].permitted;
	(void)syscall(SYS_capset, &h, d);
	for (unsigned long cap = 0; cap < 64; cap++)
		(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0);
}

int __real_caps_clear(struct fault *f);
int __wrap_caps_clear(struct fault *f);
int __wrap_caps_clear(struct fault *f)
{
	if (broken == LAYER_CAPS && is_enter) {
		keep_capabilities();
		return 0;
	}
	/* Landlock and seccomp want one or the other. The exec takes them away. */
	if (broken == LAYER_NNP && is_enter)
		return 0;
	return __real_caps_clear(f);
}

int __real_landlock_cell(bool builds, struct fault *f);
int __wrap_landlock_cell(bool builds, struct fault *f);
int __wrap_landlock_cell(bool builds, struct fault *f)
{
	return broken == LAYER_LANDLOCK ? 0 : __real_landlock_cell(builds, f);
}

/* lo is the host's, and up. */
int __real_loopback_up(struct fault *f);
int __wrap_loopback_up(struct fault *f);
int __wrap_loopback_up(struct fault *f)
{
	return broken == LAYER_NET_NS ? 0 : __real_loopback_up(f);
}
#else
int __real_caps_keep_only(uint64_t keep, struct fault *f);
int __wrap_caps_keep_only(uint64_t keep, struct fault *f);
int __wrap_caps_keep_only(uint64_t keep, struct fault *f)
{
	/* Without a user namespace init has what the supervisor has, and lo wants this. */
	if (broken == LAYER_USER_NS)
		keep |= UINT64_C(1) << CAP_NET_ADMIN;
	return __real_caps_keep_only(keep, f);
}

/* The clock: a deadline that never comes while the self-test waits. */
const char *__real_submit_violation(const struct msg *m);
const char *__wrap_submit_violation(struct msg *m);
const char *__wrap_submit_violation(struct msg *m)
{
	if (broken == LAYER_WATCHDOG)
		m->as.SUBMIT.limits.timeout_us = UINT64_C(60000000);
	return __real_submit_violation(m);
}
#endif

__attribute__((constructor)) static void arm(int argc, char **argv)
{
	broken = block.layer > 0 ? (enum layer)(block.layer - 1) : LAYER_MAX;
	if (broken == LAYER_MAX || argc < 2)
		return;
	is_init = strcmp(argv[1], "init") == 0;
	is_enter = strcmp(argv[1], "enter") == 0;
	real = sys;
	sys.clone3 = broken_clone3;
	sys.unshare = broken_unshare;
	sys.setns = broken_setns;
	sys.sethostname = broken_sethostname;
	sys.move_mount = broken_move_mount;
	sys.setresuid = broken_setresuid;
	sys.setresgid = broken_setresgid;
	sys.openat = broken_openat;
	sys.fsopen = broken_fsopen;
	sys.fsconfig = broken_fsconfig;
	sys.fsmount = broken_fsmount;
	sys.mount = broken_mount;
	sys.pidfd_send_signal = broken_pidfd_send_signal;
	sys.prctl = broken_prctl;
	sys.prlimit = broken_prlimit;
	sys.seccomp = broken_seccomp;
}
