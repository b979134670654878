/* Between clone3() and execve() the child shares nothing with anybody but has the
 * caller's memory as a copy: it allocates nothing, logs nothing and only makes system
 * calls. What it must not inherit is closed by number range just before the exec. */
#include "kernel/process.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "kernel/schedule.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define EXEC_FAILED_STATUS 125
#define FIRST_FD           3

/* Descriptors are first moved above the last number that the child will have, so that none
 * is overwritten on its way to its own; to the lowest that are free there, because the
 * limit of open files may be near. */
static int park(int fd, int instead, unsigned last)
{
	return sys.fcntl(fd >= 0 ? fd : instead, F_DUPFD_CLOEXEC, (int)last + 1);
}

static int place_descriptors(const struct process_plan *plan)
{
	int null = sys.openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
	unsigned last = FIRST_FD + plan->nfds; /* the image's own */
	int parked[FIRST_FD + PROCESS_FDS_MAX + 1];

	if (null < 0)
		return null;
	parked[0] = park(null, -1, last);
	parked[1] = park(plan->out_fd, null, last);
	parked[2] = park(plan->err_fd, null, last);
	for (unsigned i = 0; i < plan->nfds; i++)
		parked[FIRST_FD + i] = park(plan->fds[i], null, last);
	parked[last] = park(plan->image_fd, -1, last);
	for (unsigned i = 0; i <= last; i++) {
		if (parked[i] < 0 || sys.dup3(parked[i], (int)i, i == last ? O_CLOEXEC : 0) < 0)
			return -EBADF;
	}
	return sys.close_range(last + 1, ~0u, 0);
}

static int become_root_inside(void)
{
	int r = sys.setresgid(0, 0, 0);

	/* Before this the process is the overflow uid, and an exec would take its
	 * capabilities away. */
	return r < 0 ? r : sys.setresuid(0, 0, 0);
}

static struct {
	bool set; /* false: they have what the caller has */
	cpu_set_t cpus;
	int nice;
} children;

void process_children_use(const cpu_set_t *cpus, int nice)
{
	children.set = true;
	children.cpus = *cpus;
	children.nice = nice;
}

static _Noreturn void child(const struct process_plan *plan, int wait_fd)
{
	char *const envp[] = { NULL };
	char go;
	int r;

	(void)sys.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	/* EOF instead of a byte: the parent is gone or has given up. */
	if (sys.read(wait_fd, &go, 1) != 1)
		_exit(EXEC_FAILED_STATUS);
	/* They may fail where the host's administrator has changed his mind meanwhile. */
	if (children.set) {
		(void)sys.sched_setaffinity(0, sizeof(children.cpus), &children.cpus);
		(void)schedule_normal(0, children.nice, 0);
	}
	if (plan->new_session)
		(void)setsid(); /* fails only for a leader, which this process is not */
	if (plan->own_root && become_root_inside() < 0)
		_exit(EXEC_FAILED_STATUS);
	r = place_descriptors(plan);
	if (r == 0)
		(void)sys.execveat(FIRST_FD + (int)plan->nfds, "",
			(char *const *)(uintptr_t)plan->argv, envp, AT_EMPTY_PATH);
	_exit(EXEC_FAILED_STATUS);
}

/* A child of the caller is born into the pid namespace that setns() chose; the caller
 * itself never moves, and goes back at once. */
static pid_t clone_in_pidns(const struct process_plan *plan, struct clone_args *args)
{
	cleanup_fd int own = -1;
	pid_t pid;
	int r;

	if (plan->pidns_of < 0)
		return sys.clone3(args, sizeof(*args));
	own = sys.openat(AT_FDCWD, "/proc/self/ns/pid", O_RDONLY | O_CLOEXEC, 0);
	if (own < 0)
		return own;
	r = sys.setns(plan->pidns_of, CLONE_NEWPID);
	if (r < 0)
		return r;
	pid = sys.clone3(args, sizeof(*args));
	if (pid == 0)
		return 0;
	r = sys.setns(own, CLONE_NEWPID);
	if (r < 0) {
		/* The next child would be born into a cell: this process must not go on. */
		if (pid > 0)
			(void)sys.pidfd_send_signal(
				*(int *)(uintptr_t)args->pidfd, SIGKILL, NULL, 0);
		cannot_go_on("return to the own pid namespace", r);
	}
	return pid;
}

/* The owner of a user namespace is the effective uid of whoever makes it. Without
 * NO_SETUID_FIXUP the detour would cost the caller its capabilities. */
static pid_t clone_as_owner(const struct process_plan *plan, struct clone_args *args)
{
	const uid_t keep = (uid_t)-1;
	pid_t pid;
	int r;

	if (plan->owner_uid == 0)
		return clone_in_pidns(plan, args);
	r = sys.prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0);
	if (r < 0)
		return r;
	pid = sys.setresuid(keep, plan->owner_uid, keep);
	if (pid == 0)
		pid = clone_in_pidns(plan, args);
	if (pid == 0)
		return 0;
	r = sys.setresuid(keep, 0, keep);
	if (r == 0)
		r = sys.prctl(PR_SET_SECUREBITS, 0, 0, 0, 0);
	if (r < 0)
		cannot_go_on("be root again after a cell's first process was made", r);
	return pid;
}

int process_spawn(const struct process_plan *plan, struct process *ret, struct fault *f)
{
	int pipe_fds[2] = { -1, -1 }, pidfd = -1, r;
	struct clone_args args = {
		.flags = plan->namespaces | CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
		.exit_signal = SIGCHLD,
		.pidfd = (uintptr_t)&pidfd,
	};
	pid_t pid, number = plan->number;

	if (number > 0) {
		args.set_tid = (uintptr_t)&number;
		args.set_tid_size = 1;
	}
	r = sys.pipe2(pipe_fds, O_CLOEXEC);
	if (r < 0)
		return fault_set(f, r, "pipe");
	if (plan->cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)plan->cgroup_fd;
	}
	pid = clone_as_owner(plan, &args);
	if (pid == 0) {
		(void)sys.close(pipe_fds[1]);
		child(plan, pipe_fds[0]);
	}
	(void)sys.close(pipe_fds[0]);
	if (pid < 0) {
		(void)sys.close(pipe_fds[1]);
		return fault_set(f, pid, "clone3");
	}
	*ret = (struct process){ .pid = pid, .pidfd = pidfd, .release_fd = pipe_fds[1] };
	return 0;
}

int process_try_namespaces(uint64_t namespaces)
{
	struct clone_args args = { .flags = namespaces, .exit_signal = SIGCHLD };
	pid_t pid = sys.clone3(&args, sizeof(args));

	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return pid;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

int process_release(struct process *p, struct fault *f)
{
	ssize_t n = sys.write(p->release_fd, "g", 1);

	drop_fd(&p->release_fd);
	return n == 1 ? 0 : fault_set(f, n < 0 ? (int)n : -EIO, "release the child");
}

/* /proc/PID as a descriptor. The child is held and unreaped, so the number is its own. */
static int open_proc(const struct process *p, struct fault *f)
{
	char path[32];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)p->pid);
	fd = sys.openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return fd < 0 ? fault_set(f, fd, "open %s", path) : fd;
}

static int write_proc(int dir_fd, const char *name, const char *text, struct fault *f)
{
	cleanup_fd int fd = sys.openat(dir_fd, name, O_WRONLY | O_CLOEXEC, 0);
	ssize_t n;

	if (fd < 0)
		return fault_set(f, fd, "open %s", name);
	n = sys.write(fd, text, strlen(text));
	return n < 0 ? fault_set(f, (int)n, "write %s", name) : 0;
}

int process_map_ids(const struct process *p, const uint32_t *inside, const uint32_t *outside,
	unsigned count, struct fault *f)
{
	cleanup_fd int dir = open_proc(p, f);
	char map[256];
	size_t n = 0;
	int r;

	if (dir < 0)
		return dir;
	for (unsigned i = 0; i < count && n < sizeof(map); i++)
		n += (size_t)snprintf(map + n, sizeof(map) - n, "%u %u 1\n", inside[i], outside[i]);
	if (n >= sizeof(map))
		return fault_set(f, -E2BIG, "id map");
	/* setgroups first: from now on no group can be dropped to gain what it denies. */
	r = write_proc(dir, "setgroups", "deny", f);
	if (r == 0)
		r = write_proc(dir, "gid_map", map, f);
	if (r == 0)
		r = write_proc(dir, "uid_map", map, f);
	return r;
}

int process_oom_score(const struct process *p, int score, struct fault *f)
{
	char path[40], text[16];

	/* The child is not reaped: the number is its own. */
	(void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)p->pid);
	(void)snprintf(text, sizeof(text), "%d", score);
	return write_proc(AT_FDCWD, path, text, f);
}

bool process_is_child(pid_t pid, int pidfd)
{
	char path[40], text[512], want[32];
	siginfo_t info = { .si_pid = 0 };
	const char *line;

	if (pidfd < 0 || pid <= 0)
		return false;
	/* ECHILD for somebody else's child, EBADF for what is no pidfd. */
	if (sys.waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	if (io_read_text(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	(void)snprintf(want, sizeof(want), "\nPid:\t%d\n", (int)pid);
	line = strstr(text, want);
	return line != NULL;
}

void process_kill(const struct process *p)
{
	if (p->pidfd >= 0)
		(void)sys.pidfd_send_signal(p->pidfd, SIGKILL, NULL, 0);
}

int process_reap(struct process *p, int *ret_status, struct rusage *ret_usage)
{
	pid_t pid;

	if (p->pid <= 0)
		return -ECHILD;
	do
		pid = wait4(p->pid, ret_status, WNOHANG | __WALL, ret_usage);
	while (pid < 0 && errno == EINTR);
	if (pid < 0)
		return -errno;
	if (pid == 0)
		return 0;
	p->pid = 0;
	return 1;
}

int process_reap_stranger(bool (*known)(pid_t pid, void *ctx), void *ctx)
{
	siginfo_t info = { .si_pid = 0 };
	int r = sys.waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL);

	if (r < 0 || info.si_pid <= 0 || known(info.si_pid, ctx))
		return 0;
	return waitpid(info.si_pid, NULL, WNOHANG | __WALL) > 0;
}

void process_close(struct process *p)
{
	drop_fd(&p->pidfd);
	drop_fd(&p->release_fd);
}

void process_clear(struct process *p)
{
	*p = (struct process){ .pid = 0, .pidfd = -1, .release_fd = -1 };
}

/* From 6.3 on a memfd can be executed for sure only when it was asked for
 * (vm.memfd_noexec); older kernels do not know the flag. */
#define EXECUTABLE_MEMFD 0x10u /* MFD_EXEC */

static int create_memfd(const char *name)
{
	int fd = sys.memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | EXECUTABLE_MEMFD);

	return fd == -EINVAL ? sys.memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

int process_image(const char *name, const void *bytes, size_t len, int *ret_fd, struct fault *f)
{
	cleanup_fd int fd = create_memfd(name);
	int r;

	if (fd < 0)
		return fault_set(f, fd, "memfd_create");
	r = io_write_all(fd, bytes, len);
	if (r < 0)
		return fault_set(f, r, "write image");
	r = io_seal(fd);
	if (r < 0)
		return fault_set(f, r, "seal");
	*ret_fd = take_fd(&fd);
	return 0;
}

int process_self_image(int *ret_fd, struct fault *f)
{
	cleanup_fd int from = sys.openat(AT_FDCWD, "/proc/self/exe", O_RDONLY | O_CLOEXEC, 0);
	cleanup_fd int fd = create_memfd("glovebox");
	ssize_t n;
	int r;

	if (from < 0)
		return fault_set(f, from, "open the own program");
	if (fd < 0)
		return fault_set(f, fd, "memfd_create");
	do
		n = sendfile(fd, from, NULL, 1 << 30);
	while (n > 0);
	if (n < 0)
		return fault_set(f, -errno, "copy the own program");
	r = io_seal(fd);
	if (r < 0)
		return fault_set(f, r, "seal");
	*ret_fd = take_fd(&fd);
	return 0;
}
