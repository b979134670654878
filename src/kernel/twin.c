#include "kernel/twin.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel knows the address, because it clears the number there when a thread ends,
 * but tells it only when it is built for checkpoints. */
static int *asked_tid_address(void)
{
	int *at = NULL;

	if (sys.prctl(PR_GET_TID_ADDRESS, (unsigned long)(uintptr_t)&at, 0, 0, 0) < 0 || !at)
		return NULL;
	return *at == gettid() ? at : NULL;
}

#define DESCRIPTOR_BYTES 1024 /* of glibc's struct pthread; the number is at 720 in 2.36 */

/* Otherwise: the one place in the thread's descriptor that holds its number. */
static int *found_tid_address(void)
{
	int *words = (int *)(uintptr_t)pthread_self(), *found = NULL;

	for (size_t i = 0; i < DESCRIPTOR_BYTES / sizeof(int); i++) {
		if (words[i] != gettid())
			continue;
		if (found)
			return NULL;
		found = &words[i];
	}
	return found;
}

int twin_init(struct twin *ret, struct fault *f)
{
	struct twin t = { .own_pidns_fd = -1 };

	t.tid_address = asked_tid_address();
	if (!t.tid_address)
		t.tid_address = found_tid_address();
	if (!t.tid_address)
		return fault_set(f, -ENOSYS, "find the thread's number");
	if (syscall(SYS_get_robust_list, 0, &t.robust_list, &t.robust_size) < 0)
		return fault_set(f, -errno, "get_robust_list");
	t.own_pidns_fd = sys.openat(AT_FDCWD, "/proc/self/ns/pid", O_RDONLY | O_CLOEXEC, 0);
	if (t.own_pidns_fd < 0)
		return fault_set(f, t.own_pidns_fd, "open the own pid namespace");
	*ret = t;
	return 0;
}

static pid_t clone_into(const struct twin *t, struct clone_args *args, int init_pidfd)
{
	pid_t pid;
	int r = sys.setns(init_pidfd, CLONE_NEWPID);

	if (r < 0)
		return r;
	pid = sys.clone3(args, sizeof(*args));
	if (pid == 0)
		return 0;
	r = sys.setns(t->own_pidns_fd, CLONE_NEWPID);
	if (r < 0) {
		if (pid > 0)
			(void)sys.pidfd_send_signal(
				*(int *)(uintptr_t)args->pidfd, SIGKILL, NULL, 0);
		abort();
	}
	return pid;
}

pid_t twin_fork(const struct twin *t, int init_pidfd, int cgroup_fd, pid_t number, int *ret_pidfd,
	struct fault *f)
{
	int pidfd = -1;
	struct clone_args args = {
		.flags = CLONE_PARENT | CLONE_PIDFD | CLONE_INTO_CGROUP | CLONE_CLEAR_SIGHAND |
			 CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
		.exit_signal = 0, /* CLONE_PARENT: the caller's own */
		.pidfd = (uintptr_t)&pidfd,
		.cgroup = (uint64_t)cgroup_fd,
		.child_tid = (uintptr_t)t->tid_address,
		.set_tid = number > 0 ? (uintptr_t)&number : 0,
		.set_tid_size = number > 0,
	};
	sigset_t all, before;
	pid_t pid;

	(void)sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, &before) < 0)
		return fault_set(f, -errno, "block signals");
	pid = clone_into(t, &args, init_pidfd);
	if (pid == 0) {
		(void)syscall(SYS_set_robust_list, t->robust_list, t->robust_size);
		return 0;
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		return fault_set(f, pid, "fork into the cell");
	*ret_pidfd = pidfd;
	return pid;
}

int twin_threads(void)
{
	struct stat st;
	int r = sys.fstatat(AT_FDCWD, "/proc/self/task", &st, 0);

	/* One link for each, beside "." and "..". */
	return r < 0 ? r : (int)st.st_nlink - 2;
}

int twin_children(void)
{
	siginfo_t info;

	return sys.waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL);
}
