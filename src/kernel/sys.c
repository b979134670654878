#include "kernel/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The C library's function where it adds nothing but errno, the bare call where the
 * library has none, or (as for clone3) none that may be used. */
static long checked(long r)
{
	return r < 0 ? -errno : r;
}

#define WRAP(type, name, params, call)      \
	static type real_##name params      \
	{                                   \
		return (type)checked(call); \
	}

WRAP(int, openat, (int dir_fd, const char *path, int flags, mode_t mode),
	openat(dir_fd, path, flags, mode))
WRAP(int, mkdirat, (int dir_fd, const char *path, mode_t mode), mkdirat(dir_fd, path, mode))
WRAP(int, mknodat, (int dir_fd, const char *path, mode_t mode, dev_t dev),
	mknodat(dir_fd, path, mode, dev))
WRAP(int, symlinkat, (const char *target, int dir_fd, const char *path),
	symlinkat(target, dir_fd, path))
WRAP(int, unlinkat, (int dir_fd, const char *path, int flags), unlinkat(dir_fd, path, flags))
WRAP(ssize_t, getdents64, (int fd, void *bytes, size_t room), getdents64(fd, bytes, room))
WRAP(ssize_t, read, (int fd, void *bytes, size_t room), read(fd, bytes, room))
WRAP(ssize_t, pread, (int fd, void *bytes, size_t room, off_t at), pread(fd, bytes, room, at))
WRAP(ssize_t, write, (int fd, const void *bytes, size_t len), write(fd, bytes, len))
WRAP(int, close, (int fd), close(fd))
WRAP(int, fstat, (int fd, struct stat *ret), fstat(fd, ret))
WRAP(int, fstatat, (int dir_fd, const char *path, struct stat *ret, int flags),
	fstatat(dir_fd, path, ret, flags))
WRAP(int, fstatfs, (int fd, struct statfs *ret), fstatfs(fd, ret))
WRAP(int, fchown, (int fd, uid_t uid, gid_t gid), fchown(fd, uid, gid))
WRAP(int, utimensat, (int dir_fd, const char *path, const struct timespec *times, int flags),
	(int)syscall(SYS_utimensat, dir_fd, path, times, flags))
WRAP(int, fchownat, (int dir_fd, const char *path, uid_t uid, gid_t gid, int flags),
	fchownat(dir_fd, path, uid, gid, flags))
WRAP(int, fchmod, (int fd, mode_t mode), fchmod(fd, mode))
WRAP(int, fchdir, (int fd), fchdir(fd))
WRAP(int, ftruncate, (int fd, off_t size), ftruncate(fd, size))
WRAP(int, fcntl, (int fd, int op, int arg), fcntl(fd, op, arg))
WRAP(int, dup3, (int fd, int as_fd, int flags), dup3(fd, as_fd, flags))
WRAP(int, close_range, (unsigned first, unsigned last, unsigned flags),
	syscall(SYS_close_range, first, last, flags))
WRAP(int, pipe2, (int *ret_fds, int flags), pipe2(ret_fds, flags))
WRAP(int, eventfd2, (unsigned count, int flags), syscall(SYS_eventfd2, count, flags))
WRAP(int, memfd_create, (const char *name, unsigned flags), memfd_create(name, flags))
WRAP(ssize_t, getrandom, (void *bytes, size_t room, unsigned flags), getrandom(bytes, room, flags))
WRAP(int, socketpair, (int domain, int type, int protocol, int *ret_fds),
	socketpair(domain, type, protocol, ret_fds))
WRAP(int, ioctl, (int fd, unsigned long op, void *arg), ioctl(fd, op, arg))
WRAP(int, poll, (struct pollfd * fds, nfds_t count, int timeout_ms), poll(fds, count, timeout_ms))

WRAP(int, fsopen, (const char *type, unsigned flags), syscall(SYS_fsopen, type, flags))
WRAP(int, fsconfig, (int fd, unsigned cmd, const char *key, const void *value, int aux),
	syscall(SYS_fsconfig, fd, cmd, key, value, aux))
WRAP(int, fsmount, (int fd, unsigned flags, unsigned attributes),
	syscall(SYS_fsmount, fd, flags, attributes))
WRAP(int, fspick, (int dir_fd, const char *path, unsigned flags),
	syscall(SYS_fspick, dir_fd, path, flags))
WRAP(int, open_tree, (int dir_fd, const char *path, unsigned flags),
	syscall(SYS_open_tree, dir_fd, path, flags))
WRAP(int, move_mount, (int from_fd, const char *from, int to_fd, const char *to, unsigned flags),
	syscall(SYS_move_mount, from_fd, from, to_fd, to, flags))
WRAP(int, mount_setattr,
	(int dir_fd, const char *path, unsigned flags, struct mount_attr *attr, size_t size),
	syscall(SYS_mount_setattr, dir_fd, path, flags, attr, size))
WRAP(int, mount,
	(const char *source, const char *target, const char *type, unsigned long flags,
		const void *options),
	mount(source, target, type, flags, options))
WRAP(int, umount2, (const char *target, int flags), umount2(target, flags))
WRAP(int, pivot_root, (const char *new_root, const char *put_old),
	syscall(SYS_pivot_root, new_root, put_old))

WRAP(pid_t, clone3, (struct clone_args * args, size_t size), syscall(SYS_clone3, args, size))
WRAP(int, setns, (int fd, int type), setns(fd, type))
WRAP(int, unshare, (int flags), unshare(flags))
WRAP(int, execveat, (int dir_fd, const char *path, char *const *argv, char *const *envp, int flags),
	syscall(SYS_execveat, dir_fd, path, argv, envp, flags))
WRAP(int, pidfd_open, (pid_t pid, unsigned flags), syscall(SYS_pidfd_open, pid, flags))
WRAP(int, pidfd_send_signal, (int pid_fd, int sig, siginfo_t *info, unsigned flags),
	syscall(SYS_pidfd_send_signal, pid_fd, sig, info, flags))
WRAP(int, waitid, (idtype_t type, id_t id, siginfo_t *ret, int options),
	waitid(type, id, ret, options))

WRAP(int, socket, (int domain, int type, int protocol), socket(domain, type, protocol))
WRAP(int, setsockopt, (int fd, int level, int option, const void *value, socklen_t len),
	setsockopt(fd, level, option, value, len))
WRAP(ssize_t, sendto,
	(int fd, const void *bytes, size_t len, int flags, const struct sockaddr *to,
		socklen_t to_len),
	sendto(fd, bytes, len, flags, to, to_len))
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), recvmsg(fd, m, flags))

WRAP(int, prctl, (int op, unsigned long a, unsigned long b, unsigned long c, unsigned long d),
	prctl(op, a, b, c, d))
WRAP(int, capset,
	(struct __user_cap_header_struct * header, const struct __user_cap_data_struct *sets),
	syscall(SYS_capset, header, sets))
WRAP(int, setresuid, (uid_t real, uid_t effective, uid_t saved), setresuid(real, effective, saved))
WRAP(int, setresgid, (gid_t real, gid_t effective, gid_t saved), setresgid(real, effective, saved))
WRAP(int, setgroups, (size_t count, const gid_t *list), setgroups(count, list))
WRAP(int, prlimit, (pid_t pid, int resource, const struct rlimit *set, struct rlimit *ret),
	prlimit(pid, (enum __rlimit_resource)resource, set, ret))
WRAP(int, sched_setaffinity, (pid_t pid, size_t size, const cpu_set_t *cpus),
	sched_setaffinity(pid, size, cpus))
WRAP(int, sched_setattr, (pid_t pid, const void *attr, unsigned flags),
	syscall(SYS_sched_setattr, pid, attr, flags))
WRAP(int, sethostname, (const char *name, size_t len), sethostname(name, len))
WRAP(int, seccomp, (unsigned op, unsigned flags, void *args), syscall(SYS_seccomp, op, flags, args))

#define ENTRY(type, name, params, args) .name = real_##name,
SYS_CONST struct sys_ops sys = { SYS_CALLS(ENTRY) };
