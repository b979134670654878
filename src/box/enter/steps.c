#include "box/enter/steps.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/own.h"
#include "box/box.h"
#include "kernel/caps.h"
#include "kernel/landlock.h"
#include "kernel/mount.h"
#include "kernel/seccomp.h"
#include "kernel/signals.h"
#include "kernel/speculation.h"
#include "kernel/sys.h"
#include "wire/channel.h"
#include "wire/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define TIMER_SLACK_NS \
	50000 /* the kernel's own for those that no parent gave another: init/init_task.c */

static int step_parent_death(struct enter_state *s, struct fault *f)
{
	(void)s;
	return box_die_with_supervisor(f);
}

/* "0" is whoever writes it. */
static int join_group(int tasks_fd, struct fault *f)
{
	ssize_t n = sys.write(tasks_fd, "0", 1);

	return n == 1 ? 0 : fault_set(f, n < 0 ? (int)n : -EIO, "join a control group");
}

static int keep_mount(struct enter_state *s, struct msg *m, struct fault *f)
{
	if (s->scratches == ENTER_SCRATCH_MAX)
		return fault_set(f, -EPROTO, "more than %u mounts", s->scratches);
	m->as.MOUNT.path[CELL_PATH_MAX - 1] = '\0';
	memcpy(s->scratch[s->scratches].path, m->as.MOUNT.path, CELL_PATH_MAX);
	s->scratch[s->scratches++].fd = take_fd(&m->fds[0]);
	return 0;
}

static int take_order(struct enter_state *s, struct msg *m, struct fault *f)
{
	switch (m->type) {
	case MSG_JOIN:
		return join_group(m->fds[0], f);
	case MSG_MOUNT:
		return keep_mount(s, m, f);
	case MSG_RENEW:
		s->used = m->as.RENEW.used != 0;
		s->last_pid_fd = take_fd(&m->fds[0]);
		return 0;
	case MSG_ENTER:
		s->enter = m->as.ENTER;
		s->init_pidfd = take_fd(&m->fds[0]);
		return 0;
	default:
		return fault_set(f, -EPROTO, "got %s instead of ENTER", msg_name(m->type));
	}
}

static int step_plan(struct enter_state *s, struct fault *f)
{
	static struct msg m; /* static: a runtime is too large for a careful stack */
	int r;

	do {
		r = box_receive("ENTER", &m, f);
		if (r < 0)
			return r;
		r = take_order(s, &m, f);
		msg_done(&m);
	} while (r == 0 && m.type != MSG_ENTER);
	return r;
}

static int step_join(struct enter_state *s, struct fault *f)
{
	/* A cgroup namespace of its own, rooted at the leaf that was just joined: init's is
	 * rooted at the group of all inits, and would show the leaf's name. */
	int r = sys.unshare(CLONE_NEWCGROUP);

	if (r < 0)
		return fault_set(f, r, "unshare the cgroup namespace");
	r = sys.setns(s->init_pidfd,
		CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET);

	drop_fd(&s->init_pidfd);
	return r < 0 ? fault_set(f, r, "setns") : 0;
}

/* The program before may have made other processes: their numbers must not show. "2" is this
 * process, and the next one gets the number after it. */
static int step_numbers(struct enter_state *s, struct fault *f)
{
	static const char text[] = "2";
	ssize_t n;

	if (s->last_pid_fd < 0)
		return 0;
	if (getpid() != MAIN_PID) {
		/* The supervisor could not give it: this cage is not used again. */
		drop_fd(&s->last_pid_fd);
		return 0;
	}
	n = sys.write(s->last_pid_fd, text, sizeof(text) - 1);
	if (n != sizeof(text) - 1)
		return fault_set(f, n < 0 ? (int)n : -EIO, "write ns_last_pid");
	drop_fd(&s->last_pid_fd);
	return 0;
}

static int replace(const char *path, int fd, bool used, struct fault *f)
{
	/* It is the mount of the program before; nothing of that program lives. */
	int r = used ? sys.umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) : 0;

	return r < 0 ? fault_set(f, r, "unmount %s", path) : mount_attach(fd, AT_FDCWD, path, f);
}

static int step_scratch(struct enter_state *s, struct fault *f)
{
	for (unsigned i = 0; i < s->scratches; i++) {
		int r = replace(s->scratch[i].path, s->scratch[i].fd, s->used, f);

		if (r < 0)
			return r;
		drop_fd(&s->scratch[i].fd);
	}
	return 0;
}

static int step_signals(struct enter_state *s, struct fault *f)
{
	(void)s;
	return signals_reset(f);
}

static int step_session(struct enter_state *s, struct fault *f)
{
	(void)s;
	(void)umask(022);
	/* No controlling terminal, and no group with anybody. */
	return setsid() < 0 ? fault_set(f, -errno, "setsid") : 0;
}

static int step_directory(struct enter_state *s, struct fault *f)
{
	cleanup_fd int fd = sys.openat(AT_FDCWD, "/workspace", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	char cwd[64];
	int r;

	(void)s;
	if (fd < 0)
		return fault_set(f, fd, "open /workspace");
	r = sys.fchdir(fd);
	if (r < 0)
		return fault_set(f, r, "enter /workspace");
	/* A directory outside of the root shows as "(unreachable)/..." here. */
	if (!getcwd(cwd, sizeof(cwd)) || strcmp(cwd, "/workspace") != 0)
		return fault_set(f, -EXDEV, "the working directory is outside of the cell");
	return 0;
}

static const struct {
	int resource;
	rlim_t value;
	const char *name;
} rlimits[] = {
	/* 1, not 0: a core_pattern that is a pipe ignores the limit but for this value. */
	{ RLIMIT_CORE, 1, "core" }, { RLIMIT_NOFILE, 256, "nofile" },
	{ RLIMIT_MEMLOCK, 64 << 10, "memlock" }, { RLIMIT_MSGQUEUE, 0, "msgqueue" },
	{ RLIMIT_SIGPENDING, 256, "sigpending" }, { RLIMIT_NICE, 0, "nice" },
	{ RLIMIT_RTPRIO, 0, "rtprio" }, { RLIMIT_STACK, 8 << 20, "stack" },
	/* Never RLIMIT_AS: memory is what is touched, and the cgroup counts that. */
};

static int lower(int resource, rlim_t value, const char *name, struct fault *f)
{
	struct rlimit now, set = { value, value };
	int r = sys.prlimit(0, resource, NULL, &now);

	if (r == 0) {
		if (now.rlim_max < value)
			set = (struct rlimit){ now.rlim_max, now.rlim_max }; /* only ever lowered */
		r = sys.prlimit(0, resource, &set, NULL);
	}
	return r < 0 ? fault_set(f, r, "rlimit %s", name) : 0;
}

int enter_lower_limits(struct fault *f)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(rlimits); i++)
		r = lower(rlimits[i].resource, rlimits[i].value, rlimits[i].name, f);
	return r;
}

static int step_rlimits(struct enter_state *s, struct fault *f)
{
	(void)s;
	return enter_lower_limits(f);
}

static int step_kernel_state(struct enter_state *s, struct fault *f)
{
	int r;

	(void)s;
	/* Who is born while the supervisor hurries (ADR 10) has none from it. */
	r = sys.prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
	return r < 0 ? fault_set(f, r, "PR_SET_TIMERSLACK") : speculation_restrict(f);
}

static int step_caps_lock(struct enter_state *s, struct fault *f)
{
	(void)s;
	return caps_lock(f);
}

static int step_ids(struct enter_state *s, struct fault *f)
{
	int r;

	(void)s;
	/* setgroups is denied in the cell's user namespace: the list must be empty already. */
	if (getgroups(0, NULL) != 0)
		return fault_set(f, -EPERM, "supplementary groups are left");
	r = sys.setresgid(PROGRAM_UID, PROGRAM_UID, PROGRAM_UID);
	if (r == 0)
		r = sys.setresuid(PROGRAM_UID, PROGRAM_UID, PROGRAM_UID);
	return r < 0 ? fault_set(f, r, "become uid %d", PROGRAM_UID) : 0;
}

static int step_caps_clear(struct enter_state *s, struct fault *f)
{
	(void)s;
	return caps_clear(f);
}

static int step_no_new_privs(struct enter_state *s, struct fault *f)
{
	int r = sys.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);

	(void)s;
	return r < 0 ? fault_set(f, r, "prctl") : 0;
}

static int step_landlock(struct enter_state *s, struct fault *f)
{
	int r = landlock_cell(s->enter.builds, f);

	if (r == -EOPNOTSUPP && (s->enter.degraded & LAYER_BIT(LAYER_LANDLOCK)))
		return 0; /* the operator said so, and every reply says so */
	return r;
}

static int step_dumpable(struct enter_state *s, struct fault *f)
{
	/* The change of credentials made /proc/self root's. An exec gives it back to the
	 * program; a zygote's child makes none. Its memory holds no secret by now. */
	int r = sys.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);

	(void)s;
	return r < 0 ? fault_set(f, r, "prctl") : 0;
}

/* The listener leaves this process at once: who holds it could let denied calls through. */
static int step_seccomp(struct enter_state *s, struct fault *f)
{
	const struct msg_listener m = { 0 };
	int listener, r = seccomp_install_told(&listener, f);

	(void)s;
	if (r < 0 || listener < 0)
		return r;
	r = channel_send(BOX_CHANNEL_FD, MSG_LISTENER, &m, &listener);
	if (r < 0)
		(void)fault_set(f, r, "send the listener");
	/* Linux gives the number back also when it reports an error. */
	(void)sys.close(listener);
	return r;
}

/* The order is the security argument. */
static const struct {
	const char *name;
	int (*run)(struct enter_state *s, struct fault *f);
} steps[] = {
	{ "parent death", step_parent_death },
	{ "plan", step_plan }, /* joins the v1 groups: as host root, before anything else is used */
	{ "join", step_join }, /* from host root into the cell, at once */
	{ "scratch", step_scratch }, /* needs CAP_SYS_ADMIN over the cell's mounts */
	{ "numbers", step_numbers }, /* the same over its pid namespace */
	{ "signals", step_signals }, { "session", step_session }, { "directory", step_directory },
	{ "rlimits", step_rlimits },
	{ "kernel state", step_kernel_state },   /* before the filter denies prctl and keyctl */
	{ "lock capabilities", step_caps_lock }, /* needs CAP_SETPCAP: before the uid goes */
	{ "ids", step_ids },
	/* Coming from real root by setns() the change of uid does not clear them. */
	{ "clear capabilities", step_caps_clear }, { "no new privileges", step_no_new_privs },
	{ "landlock", step_landlock }, /* after all mounts, and it needs no_new_privs */
	{ "parent death again", step_parent_death }, /* the change of uid cleared it */
	{ "dumpable", step_dumpable }, { "seccomp", step_seccomp }, /* last: denies the others */
};

int enter_run(struct enter_state *s, struct fault *f)
{
	s->init_pidfd = s->last_pid_fd = -1;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		if (steps[i].run(s, f) < 0)
			return fault_wrap(f, "%s", steps[i].name);
	}
	return 0;
}
