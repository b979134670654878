#include "kernel/confine.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/caps.h"
#include "kernel/landlock.h"
#include "kernel/mount.h"
#include "kernel/seccomp.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The plan, and what one step has to tell a later one. */
struct state {
	const struct confine_plan *plan;
	int death_signal;
};

struct step {
	const char *name;
	int (*run)(struct state *s, struct fault *f);
};

static int remember_parent_death(struct state *s, struct fault *f)
{
	int r = sys.prctl(PR_GET_PDEATHSIG, (unsigned long)&s->death_signal, 0, 0, 0);

	return r < 0 ? fault_set(f, r, "read it") : 0;
}

static int empty_root(struct state *s, struct fault *f)
{
	/* One inode is the root directory itself: nothing could be made in there even if
	 * it were writable. */
	static const struct mount_tmpfs empty = { .bytes = 4096, .inodes = 1, .mode = 0555 };
	cleanup_fd int fd = -1;
	int r;

	(void)s;
	r = mount_make_private(f);
	if (r == 0)
		r = mount_tmpfs(&empty, MOUNT_RDONLY | MOUNT_NODEV | MOUNT_NOEXEC, &fd, f);
	if (r == 0)
		r = mount_attach(fd, AT_FDCWD, "/", f); /* covers "/": pivot_root needs a mount */
	if (r < 0)
		return r;

	r = sys.fchdir(fd);
	if (r < 0)
		return fault_set(f, r, "enter it");
	return mount_pivot_here(f);
}

static int own_namespaces(struct state *s, struct fault *f)
{
	int network = s->plan->keeps_network ? 0 : CLONE_NEWNET;
	int r = sys.unshare(network | CLONE_NEWIPC | CLONE_NEWUTS);

	return r < 0 ? fault_set(f, r, "unshare network, IPC and UTS") : 0;
}

/* Lowering needs no capability; a hard limit that is lower already stays. */
static int lower_limit(int resource, rlim_t value, struct fault *f)
{
	struct rlimit lim;
	int r = sys.prlimit(0, resource, NULL, &lim);

	if (r < 0)
		return fault_set(f, r, "read limit %d", resource);
	if (lim.rlim_max > value)
		lim.rlim_max = value;
	lim.rlim_cur = lim.rlim_max;
	r = sys.prlimit(0, resource, &lim, NULL);
	return r < 0 ? fault_set(f, r, "lower limit %d", resource) : 0;
}

static int limits(struct state *s, struct fault *f)
{
	/* 1, not 0: a core_pattern that is a pipe ignores 0. */
	int r = lower_limit(RLIMIT_CORE, 1, f);

	if (r == 0)
		r = lower_limit(RLIMIT_NPROC, 0, f);
	if (r == 0)
		r = lower_limit(RLIMIT_NOFILE, s->plan->open_files, f);
	if (r < 0 || (!s->plan->forbid_new_files && s->plan->file_bytes == 0))
		return r;

	/* A log that is a file loses a line then (EFBIG), instead of us our life. */
	if (signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		return fault_set(f, -EINVAL, "ignore SIGXFSZ");
	return lower_limit(RLIMIT_FSIZE, s->plan->forbid_new_files ? 0 : s->plan->file_bytes, f);
}

static int lock_capabilities(struct state *s, struct fault *f)
{
	(void)s;
	return caps_lock(f);
}

static int change_uid(struct state *s, struct fault *f)
{
	uid_t uid = s->plan->uid;
	int r = sys.setgroups(0, NULL);

	if (r == 0)
		r = sys.setresgid(uid, uid, uid);
	if (r == 0)
		r = sys.setresuid(uid, uid, uid);
	return r < 0 ? fault_set(f, r, "become %u", uid) : 0;
}

static int clear_capabilities(struct state *s, struct fault *f)
{
	(void)s;
	return caps_clear(f);
}

static int no_new_privileges(struct state *s, struct fault *f)
{
	int r = sys.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);

	(void)s;
	if (r == 0)
		r = sys.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	return r < 0 ? fault_set(f, r, "prctl") : 0;
}

/* A parent that died in between sent nothing; its end of the channel is closed then,
 * and that ends the process as well. */
static int restore_parent_death(struct state *s, struct fault *f)
{
	int r = sys.prctl(PR_SET_PDEATHSIG, (unsigned long)s->death_signal, 0, 0, 0);

	return r < 0 ? fault_set(f, r, "set it") : 0;
}

static int landlock(struct state *s, struct fault *f)
{
	struct fault none = { 0 };
	int r = landlock_deny_all((int)s->plan->readable_fd, s->plan->keeps_network, &none);

	if (r == 0 || r == -EOPNOTSUPP)
		return 0;
	*f = none;
	return r;
}

static int filter(struct state *s, struct fault *f)
{
	static const enum seccomp_policy policies[] = {
		[CONFINE_FRONT] = SECCOMP_FRONT,
		[CONFINE_CONFIG] = SECCOMP_CONFIG,
		[CONFINE_COLLECTOR] = SECCOMP_COLLECTOR,
		[CONFINE_GATE] = SECCOMP_GATE,
	};

	CHECK((size_t)s->plan->filter < ARRAY_LEN(policies));
	return seccomp_install(policies[s->plan->filter], f);
}

/* The order is the security argument. */
static const struct step steps[] = {
	{ "parent death signal", remember_parent_death }, /* before the uid: that clears it */
	{ "empty root", empty_root },                     /* needs CAP_SYS_ADMIN and the old root */
	{ "namespaces", own_namespaces },                 /* needs CAP_SYS_ADMIN */
	{ "limits", limits },                       /* nothing below needs a new process or file */
	{ "lock capabilities", lock_capabilities }, /* needs CAP_SETPCAP, so before the next two */
	{ "uid", change_uid },                      /* needs CAP_SETUID, CAP_SETGID */
	{ "capabilities", clear_capabilities }, /* NO_SETUID_FIXUP: the uid's change took none */
	{ "no new privileges", no_new_privileges },      /* before Landlock and seccomp want it */
	{ "parent death signal", restore_parent_death }, /* after all changes of credentials */
	{ "landlock", landlock },                        /* after the mounts: it forbids them */
	{ "seccomp", filter },                           /* last: it forbids what the others do */
};

int confine(const struct confine_plan *plan, struct fault *f)
{
	struct state s = { .plan = plan };

	if (plan->uid == 0 || plan->uid == (uint32_t)-1)
		return fault_say(f, -EINVAL, "confine: %u is no uid to become", plan->uid);

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		int r = steps[i].run(&s, f);

		if (r < 0)
			return fault_wrap(f, "confine: %s", steps[i].name);
	}
	return 0;
}
