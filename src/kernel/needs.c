/* Each call is made so that it has to be refused, and how it is refused tells: a kernel that
 * does not know a call says ENOSYS before it looks at anything else. */
#include "kernel/needs.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

/* With a group that is no descriptor: EBADF, once all flags are known. Before CLONE_INTO_CGROUP
 * it is E2BIG, for the longer structure, or EINVAL. */
static int try_clone3(void)
{
	struct clone_args args = {
		.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND | CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = INT_MAX,
	};
	int pidfd = -1, r;

	args.pidfd = (uintptr_t)&pidfd;
	r = sys.clone3(&args, sizeof(args));
	if (r == 0)
		_exit(0); /* no kernel does that */
	return r == -E2BIG || r == -EINVAL ? -ENOSYS : r;
}

/* Into a namespace that it is in already. A kernel that wants a namespace's own descriptor says
 * EINVAL. */
static int try_setns(void)
{
	cleanup_fd int self = sys.pidfd_open(getpid(), 0);
	int r;

	if (self < 0)
		return 0; /* that is the layer watchdog's to say */
	r = sys.setns(self, CLONE_NEWUTS);
	return r == -EINVAL ? -ENOSYS : r;
}

static int try_close_range(void)
{
	return sys.close_range(1, 0, 0);
}

static int try_pidfd_send_signal(void)
{
	return sys.pidfd_send_signal(-1, 0, NULL, 0);
}

static int try_execveat(void)
{
	char *const none[] = { NULL };

	return sys.execveat(-1, "", none, none, AT_EMPTY_PATH);
}

static int try_fsopen(void)
{
	return sys.fsopen(NULL, 0);
}

static int try_fsconfig(void)
{
	return sys.fsconfig(-1, 0, NULL, NULL, 0);
}

static int try_fsmount(void)
{
	return sys.fsmount(-1, 0, 0);
}

static int try_fspick(void)
{
	return sys.fspick(-1, NULL, 0);
}

static int try_move_mount(void)
{
	return sys.move_mount(-1, NULL, -1, NULL, 0);
}

static int try_mount_setattr(void)
{
	return sys.mount_setattr(-1, "", 0, NULL, 0);
}

static int try_getrandom(void)
{
	return (int)sys.getrandom(NULL, 0, ~0u);
}

static const struct {
	int (*try)(void);
	const char *name, *since, *use;
} needs[] = {
	{ try_clone3, "clone3() with CLONE_INTO_CGROUP", "5.7",
		"a process could run before its limits are in force" },
	{ try_setns, "setns() of a pidfd", "5.8", "nothing could enter a cell" },
	{ try_close_range, "close_range()", "5.9",
		"a process could inherit descriptors that are not meant for it" },
	{ try_pidfd_send_signal, "pidfd_send_signal()", "5.1",
		"a process that has to end could not be killed for sure" },
	{ try_execveat, "execveat()", "3.19", "no sealed copy of a program could be run" },
	{ try_fsopen, "fsopen()", "5.2", "no file system could be made for a cell" },
	{ try_fsconfig, "fsconfig()", "5.2", "no file system could be made for a cell" },
	{ try_fsmount, "fsmount()", "5.2", "no file system could be made for a cell" },
	{ try_fspick, "fspick()", "5.2",
		"a cell's file systems could not be given the size that a request asks for" },
	{ try_move_mount, "move_mount()", "5.2", "nothing could be mounted in a cell" },
	{ try_mount_setattr, "mount_setattr()", "5.12",
		"mounts could propagate from a cell to the host" },
	{ try_getrandom, "getrandom()", "3.17",
		"no run could have an id that cannot be guessed, nor two programs different random "
		"numbers" },
};

int needs_check(struct fault *f)
{
	for (size_t i = 0; i < ARRAY_LEN(needs); i++) {
		if (needs[i].try() != -ENOSYS)
			continue;
		return fault_say(f, -ENOSYS,
			"this kernel has no %s (Linux %s or later). Without it %s. Remedy: "
			"run Linux 5.12 or later; in a container, let its seccomp filter allow it",
			needs[i].name, needs[i].since, needs[i].use);
	}
	return 0;
}
