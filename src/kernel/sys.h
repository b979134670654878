/* The system calls of the code that launches and destroys cells, as one table of
 * function pointers, so that a test can make the Nth of them fail.
 *
 *     fd = sys.openat(dir_fd, name, O_RDONLY | O_CLOEXEC, 0);
 *     if (fd < 0)
 *             return fault_set(f, fd, "open %s", name);
 *
 * Every entry returns what the call returns, or a negative errno: errno itself is read
 * here and nowhere else. Nothing is retried and nothing is added; a descriptor is
 * close-on-exec only when the caller asked for it.
 *
 * In what is shipped the table is constant (read-only memory, and the compiler may call
 * through it directly). A test program is built with -DGLOVEBOX_TEST, together with its
 * own copy of the objects that use the table; tests/lib/flaky.h then replaces entries.
 * A new call is one line in SYS_CALLS and one in sys.c.
 *
 *   runs in    the supervisor, the probe, init, and children between clone3() and execve()
 *   threads    any number; async-signal-safe
 *   blocks     as the call does
 */
#pragma once

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>

struct __user_cap_data_struct;
struct __user_cap_header_struct;
struct clone_args;
struct mount_attr;
struct stat;
struct statfs;
struct timespec;

/* clang-format off */
/* X(type of the result, name, parameters, arguments to pass them on) */
#define SYS_CALLS(X)                                                                               \
	SYS_CALLS_FILES(X)                                                                         \
	SYS_CALLS_MOUNTS(X)                                                                        \
	SYS_CALLS_PROCESSES(X)                                                                     \
	SYS_CALLS_SOCKETS(X)                                                                       \
	SYS_CALLS_IDENTITY(X)

#define SYS_CALLS_FILES(X)                                                                         \
	X(int, openat, (int dir_fd, const char *path, int flags, mode_t mode),                     \
		(dir_fd, path, flags, mode))                                                       \
	X(int, mkdirat, (int dir_fd, const char *path, mode_t mode), (dir_fd, path, mode))         \
	X(int, mknodat, (int dir_fd, const char *path, mode_t mode, dev_t dev),                    \
		(dir_fd, path, mode, dev))                                                         \
	X(int, symlinkat, (const char *target, int dir_fd, const char *path),                      \
		(target, dir_fd, path))                                                            \
	X(int, unlinkat, (int dir_fd, const char *path, int flags), (dir_fd, path, flags))         \
	X(ssize_t, getdents64, (int fd, void *bytes, size_t room), (fd, bytes, room))              \
	X(ssize_t, read, (int fd, void *bytes, size_t room), (fd, bytes, room))                    \
	X(ssize_t, pread, (int fd, void *bytes, size_t room, off_t at), (fd, bytes, room, at))     \
	X(ssize_t, write, (int fd, const void *bytes, size_t len), (fd, bytes, len))               \
	X(int, close, (int fd), (fd))                                                              \
	X(int, fstat, (int fd, struct stat *ret), (fd, ret))                                       \
	X(int, fstatat, (int dir_fd, const char *path, struct stat *ret, int flags),               \
		(dir_fd, path, ret, flags))                                                        \
	X(int, fstatfs, (int fd, struct statfs *ret), (fd, ret))                                   \
	X(int, fchown, (int fd, uid_t uid, gid_t gid), (fd, uid, gid))                             \
	X(int, fchownat, (int dir_fd, const char *path, uid_t uid, gid_t gid, int flags),          \
		(dir_fd, path, uid, gid, flags))                                                   \
	X(int, utimensat,                                                                          \
		(int dir_fd, const char *path, const struct timespec *times, int flags),           \
		(dir_fd, path, times, flags))                                                      \
	X(int, fchmod, (int fd, mode_t mode), (fd, mode))                                          \
	X(int, fchdir, (int fd), (fd))                                                             \
	X(int, ftruncate, (int fd, off_t size), (fd, size))                                        \
	X(int, fcntl, (int fd, int op, int arg), (fd, op, arg))                                    \
	X(int, dup3, (int fd, int as_fd, int flags), (fd, as_fd, flags))                           \
	X(int, close_range, (unsigned first, unsigned last, unsigned flags), (first, last, flags)) \
	X(int, pipe2, (int *ret_fds, int flags), (ret_fds, flags))                                 \
	X(int, eventfd2, (unsigned count, int flags), (count, flags))                              \
	X(int, memfd_create, (const char *name, unsigned flags), (name, flags))                    \
	X(ssize_t, getrandom, (void *bytes, size_t room, unsigned flags), (bytes, room, flags))    \
	X(int, socketpair, (int domain, int type, int protocol, int *ret_fds),                     \
		(domain, type, protocol, ret_fds))                                                 \
	X(int, ioctl, (int fd, unsigned long op, void *arg), (fd, op, arg))                        \
	X(int, poll, (struct pollfd *fds, nfds_t count, int timeout_ms), (fds, count, timeout_ms))

#define SYS_CALLS_MOUNTS(X)                                                                        \
	X(int, fsopen, (const char *type, unsigned flags), (type, flags))                          \
	X(int, fsconfig, (int fd, unsigned cmd, const char *key, const void *value, int aux),      \
		(fd, cmd, key, value, aux))                                                        \
	X(int, fsmount, (int fd, unsigned flags, unsigned attributes), (fd, flags, attributes))    \
	X(int, fspick, (int dir_fd, const char *path, unsigned flags), (dir_fd, path, flags))      \
	X(int, open_tree, (int dir_fd, const char *path, unsigned flags), (dir_fd, path, flags))   \
	X(int, move_mount,                                                                         \
		(int from_fd, const char *from, int to_fd, const char *to, unsigned flags),        \
		(from_fd, from, to_fd, to, flags))                                                 \
	X(int, mount_setattr,                                                                      \
		(int dir_fd, const char *path, unsigned flags, struct mount_attr *attr,            \
			size_t size),                                                              \
		(dir_fd, path, flags, attr, size))                                                 \
	X(int, mount,                                                                              \
		(const char *source, const char *target, const char *type, unsigned long flags,    \
			const void *options),                                                      \
		(source, target, type, flags, options))                                            \
	X(int, umount2, (const char *target, int flags), (target, flags))                          \
	X(int, pivot_root, (const char *new_root, const char *put_old), (new_root, put_old))

#define SYS_CALLS_PROCESSES(X)                                                                     \
	X(pid_t, clone3, (struct clone_args *args, size_t size), (args, size))                     \
	X(int, setns, (int fd, int type), (fd, type))                                              \
	X(int, unshare, (int flags), (flags))                                                      \
	X(int, execveat,                                                                           \
		(int dir_fd, const char *path, char *const *argv, char *const *envp, int flags),   \
		(dir_fd, path, argv, envp, flags))                                                 \
	X(int, pidfd_open, (pid_t pid, unsigned flags), (pid, flags))                              \
	X(int, pidfd_send_signal, (int pid_fd, int sig, siginfo_t *info, unsigned flags),          \
		(pid_fd, sig, info, flags))                                                        \
	X(int, waitid, (idtype_t type, id_t id, siginfo_t *ret, int options),                      \
		(type, id, ret, options))

#define SYS_CALLS_SOCKETS(X)                                                                       \
	X(int, socket, (int domain, int type, int protocol), (domain, type, protocol))             \
	X(int, setsockopt, (int fd, int level, int option, const void *value, socklen_t len),      \
		(fd, level, option, value, len))                                                   \
	X(ssize_t, sendto,                                                                         \
		(int fd, const void *bytes, size_t len, int flags, const struct sockaddr *to,      \
			socklen_t to_len),                                                         \
		(fd, bytes, len, flags, to, to_len))                                               \
	X(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags))

#define SYS_CALLS_IDENTITY(X)                                                                      \
	X(int, prctl,                                                                              \
		(int op, unsigned long a, unsigned long b, unsigned long c, unsigned long d),      \
		(op, a, b, c, d))                                                                  \
	X(int, capset,                                                                             \
		(struct __user_cap_header_struct *header,                                          \
			const struct __user_cap_data_struct *sets),                                \
		(header, sets))                                                                    \
	X(int, setresuid, (uid_t r, uid_t e, uid_t s), (r, e, s))                                  \
	X(int, setresgid, (gid_t r, gid_t e, gid_t s), (r, e, s))                                  \
	X(int, setgroups, (size_t count, const gid_t *list), (count, list))                        \
	X(int, prlimit, (pid_t pid, int resource, const struct rlimit *set, struct rlimit *ret),   \
		(pid, resource, set, ret))                                                         \
	X(int, sched_setaffinity, (pid_t pid, size_t size, const cpu_set_t *cpus),                 \
		(pid, size, cpus))                                                                 \
	X(int, sched_setattr, (pid_t pid, const void *attr, unsigned flags),          \
		(pid, attr, flags))                                                                \
	X(int, sethostname, (const char *name, size_t len), (name, len))                           \
	X(int, seccomp, (unsigned op, unsigned flags, void *args), (op, flags, args))

/* clang-format on */
#define SYS_FIELD(type, name, params, args) type(*name) params;
struct sys_ops {
	SYS_CALLS(SYS_FIELD)
};
#undef SYS_FIELD

#ifdef GLOVEBOX_TEST
#define SYS_CONST
#else
#define SYS_CONST const
#endif

extern SYS_CONST struct sys_ops sys;
