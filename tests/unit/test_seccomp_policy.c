/* The compiled policies: what each answers to a call, told by an interpreter of our own,
 * and for untrusted code's also by the kernel. */
#include "unit.h"

#include "base/check.h"
#include "base/fault.h"
#include "kernel/seccomp.h"
#include "kernel/seccomp_policies.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/if_tun.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

#define ALLOW    SECCOMP_RET_ALLOW
#define KILL     SECCOMP_RET_KILL_PROCESS
#define ERRNO(e) (SECCOMP_RET_ERRNO | (uint32_t)(e))
#define GARBAGE  (UINT64_C(0xdeadbeef) << 32) /* in the half of an int that is ignored */
#define CALLS    471                          /* the numbers that exist; the sweep ends here */

struct expectation {
	long nr;
	uint64_t args[6];
	uint32_t action;
};

/* ---- an interpreter of the instructions that the compiler emits ---- */

static uint32_t evaluate(const struct sock_filter *at, size_t len, const struct seccomp_data *d)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < len; pc++) {
		const struct sock_filter *f = &at[pc];

		switch (f->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(f->k % 4 == 0 && f->k <= sizeof(*d) - 4);
			(void)memcpy(&a, (const char *)d + f->k, sizeof(a));
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= f->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += f->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == f->k ? f->jt : f->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= f->k ? f->jt : f->jf;
			break;
		case BPF_RET | BPF_K:
			return f->k;
		default:
			fail_msg("instruction %zu has code %#x", pc, f->code);
		}
	}
	fail_msg("the program runs off its end");
	return 0;
}

static const struct {
	const struct sock_filter *at;
	size_t len;
} programs[SECCOMP_POLICY_MAX] = {
	[SECCOMP_FRONT] = { seccomp_front, ARRAY_LEN(seccomp_front) },
	[SECCOMP_CONFIG] = { seccomp_config, ARRAY_LEN(seccomp_config) },
	[SECCOMP_COLLECTOR] = { seccomp_collector, ARRAY_LEN(seccomp_collector) },
	[SECCOMP_GATE] = { seccomp_gate, ARRAY_LEN(seccomp_gate) },
	[SECCOMP_INIT] = { seccomp_init, ARRAY_LEN(seccomp_init) },
	[SECCOMP_PROGRAM] = { seccomp_program, ARRAY_LEN(seccomp_program) },
};

static uint32_t ask(enum seccomp_policy p, uint32_t arch, long nr, const uint64_t *args)
{
	struct seccomp_data d = { .nr = (int)nr, .arch = arch };

	if (args)
		(void)memcpy(d.args, args, sizeof(d.args));
	return evaluate(programs[p].at, programs[p].len, &d);
}

static void expect(enum seccomp_policy p, const struct expectation *e, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t got = ask(p, ARCH, e[i].nr, e[i].args);

		if (got != e[i].action)
			fail_msg("line %zu: call %ld is answered %#x, not %#x", i, e[i].nr, got,
				e[i].action);
	}
}

/* ---- what holds for all of them ---- */

static void other_architectures_are_killed(void **state)
{
	(void)state;
	for (int p = 0; p < SECCOMP_POLICY_MAX; p++) {
		assert_int_equal(ask(p, AUDIT_ARCH_I386, SYS_read, NULL), KILL);
		assert_int_equal(ask(p, AUDIT_ARCH_ARM, SYS_read, NULL), KILL);
		assert_int_equal(ask(p, 0, SYS_read, NULL), KILL);
	}
}

static void numbers_that_no_kernel_has_are_enosys(void **state)
{
	(void)state;
	for (int p = 0; p < SECCOMP_POLICY_MAX; p++) {
		for (long nr = CALLS; nr < 2000; nr++)
			assert_int_equal(ask(p, ARCH, nr, NULL), ERRNO(ENOSYS));
		assert_int_equal(ask(p, ARCH, -1, NULL), ERRNO(ENOSYS));
		assert_int_equal(ask(p, ARCH, 0x3fffffff, NULL), ERRNO(ENOSYS));
	}
}

#ifdef __x86_64__
static void every_x32_number_is_killed(void **state)
{
	(void)state;
	for (int p = 0; p < SECCOMP_POLICY_MAX; p++) {
		for (long nr = 0; nr < 600; nr++)
			assert_int_equal(ask(p, ARCH, nr | 0x40000000, NULL), KILL);
		assert_int_equal(ask(p, ARCH, 0x7fffffff, NULL), KILL);
		assert_int_equal(ask(p, ARCH, (int)0x80000000, NULL), KILL);
		assert_int_equal(ask(p, ARCH, -2, NULL), KILL);
	}
}
#endif

/* No honest probe of a call may end in a death that nobody can explain. */
static void untrusted_code_is_never_killed_for_a_native_call(void **state)
{
	(void)state;
	for (long nr = 0; nr < CALLS; nr++)
		assert_int_not_equal(ask(SECCOMP_PROGRAM, ARCH, nr, NULL), KILL);
}

/* ---- untrusted code ---- */

static const struct expectation program_table[] = {
	{ SYS_read, { 0 }, ALLOW },
	{ SYS_openat, { 0 }, ALLOW },
	{ SYS_execve, { 0 }, ALLOW },
	{ SYS_inotify_add_watch, { 0 }, ALLOW },
	{ SYS_flock, { 0 }, ALLOW },
	{ SYS_pidfd_open, { 0 }, ALLOW },
	{ SYS_setresuid, { 0 }, ALLOW },
	{ SYS_setpriority, { 0 }, ALLOW },
	{ SYS_sched_getaffinity, { 0 }, ALLOW },
	{ 452 /* fchmodat2 */, { 0 }, ALLOW },
	{ 449 /* futex_waitv */, { 0 }, ALLOW },

	{ SYS_clone3, { 0 }, ERRNO(ENOSYS) },
	{ SYS_clone, { SIGCHLD }, ALLOW },
	{ SYS_clone, { CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD }, ALLOW },
	{ SYS_clone, { CLONE_NEWUSER | SIGCHLD }, ERRNO(EPERM) },
	{ SYS_clone, { CLONE_NEWUSER | GARBAGE }, ERRNO(EPERM) },
	{ SYS_clone, { CLONE_NEWNS }, ERRNO(EPERM) },
	{ SYS_clone, { CLONE_NEWPID }, ERRNO(EPERM) },
	{ SYS_clone, { CLONE_NEWNET }, ERRNO(EPERM) },
	{ SYS_clone, { CLONE_NEWIPC }, ERRNO(EPERM) },
	{ SYS_clone, { CLONE_NEWUTS }, ERRNO(EPERM) },
	{ SYS_clone, { CLONE_NEWCGROUP }, ERRNO(EPERM) },
	{ SYS_clone, { CLONE_PARENT | SIGCHLD }, ERRNO(EPERM) },
	{ SYS_clone, { CLONE_PARENT | CLONE_VM | CLONE_VFORK | GARBAGE }, ERRNO(EPERM) },
	{ SYS_unshare, { CLONE_NEWUSER }, ERRNO(EPERM) },
	{ SYS_setns, { 0 }, ERRNO(EPERM) },
	{ SYS_mount, { 0 }, ERRNO(EPERM) },
	{ SYS_pivot_root, { 0 }, ERRNO(EPERM) },
	{ SYS_fsopen, { 0 }, ERRNO(EPERM) },
	{ 467 /* open_tree_attr */, { 0 }, ERRNO(EPERM) },
	{ 457 /* statmount */, { 0 }, ERRNO(ENOSYS) },
	{ SYS_bpf, { 0 }, ERRNO(EPERM) },
	{ SYS_perf_event_open, { 0 }, ERRNO(EPERM) },
	{ SYS_userfaultfd, { 0 }, ERRNO(EPERM) },
	{ SYS_keyctl, { 0 }, ERRNO(EPERM) },
	{ SYS_ptrace, { 0 }, ERRNO(EPERM) },
	{ SYS_process_vm_readv, { 0 }, ERRNO(EPERM) },
	{ SYS_pidfd_getfd, { 0 }, ERRNO(EPERM) },
	{ SYS_open_by_handle_at, { 0 }, ERRNO(EPERM) },
	{ SYS_kexec_load, { 0 }, ERRNO(EPERM) },
	{ SYS_seccomp, { 0 }, ERRNO(EPERM) },
	{ SYS_capset, { 0 }, ERRNO(EPERM) },
	{ SYS_sched_setaffinity, { 0 }, ERRNO(EPERM) },
	{ SYS_io_uring_setup, { 0 }, ERRNO(ENOSYS) },
	{ SYS_landlock_create_ruleset, { 0 }, ERRNO(ENOSYS) },
	{ SYS_memfd_secret, { 0 }, ERRNO(ENOSYS) },
	{ SYS_splice, { 0 }, ERRNO(ENOSYS) },
	{ SYS_shmget, { 0 }, ERRNO(ENOSYS) },
	{ SYS_mq_open, { 0 }, ERRNO(ENOSYS) },
	{ SYS_sync, { 0 }, ERRNO(0) },
	{ SYS_syncfs, { 0 }, ERRNO(0) },

	{ SYS_mknod, { 0, S_IFIFO | 0666, 0 }, ALLOW },
	{ SYS_mknod, { 0, S_IFCHR | 0600 | GARBAGE, GARBAGE }, ERRNO(EPERM) },
	{ SYS_mknodat, { 0, 0, S_IFIFO | 0666, 0 }, ALLOW },
	{ SYS_mknodat, { 0, 0, S_IFCHR | 0666, 0x103 },
		ALLOW }, /* Landlock's, and a capability's */
	{ SYS_mknodat, { 0, 0, S_IFCHR | 0666, 0 }, ERRNO(EPERM) },
	{ SYS_mknodat, { 0, 0, S_IFCHR | GARBAGE, GARBAGE }, ERRNO(EPERM) },

	{ SYS_socket, { AF_UNIX, SOCK_STREAM, 0 }, ALLOW },
	{ SYS_socket, { AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0 }, ALLOW },
	{ SYS_socket, { AF_INET | GARBAGE, SOCK_STREAM | GARBAGE, GARBAGE }, ALLOW },
	{ SYS_socket, { AF_INET6, SOCK_DGRAM, IPPROTO_UDP }, ALLOW },
	{ SYS_socket, { AF_INET, SOCK_RAW, 1 }, ERRNO(EPERM) },
	{ SYS_socket, { AF_INET, SOCK_SEQPACKET, 0 }, ERRNO(EPROTONOSUPPORT) },
	{ SYS_socket, { AF_INET, SOCK_STREAM, 262 /* MPTCP */ }, ERRNO(EPROTONOSUPPORT) },
	{ SYS_socket, { AF_NETLINK, SOCK_RAW, 0 }, ERRNO(EAFNOSUPPORT) },
	{ SYS_socket, { AF_VSOCK, SOCK_STREAM, 0 }, ERRNO(EAFNOSUPPORT) },
	{ SYS_socket, { AF_VSOCK | GARBAGE, SOCK_STREAM, 0 }, ERRNO(EAFNOSUPPORT) },
	{ SYS_socket, { AF_ALG, SOCK_SEQPACKET, 0 }, ERRNO(EAFNOSUPPORT) },
	{ SYS_socket, { AF_PACKET, SOCK_RAW, 0 }, ERRNO(EAFNOSUPPORT) },
	{ SYS_socketpair, { AF_UNIX }, ALLOW },
	{ SYS_socketpair, { AF_INET }, ERRNO(EAFNOSUPPORT) },
	{ SYS_setsockopt, { 0, SOL_SOCKET, SO_REUSEADDR }, ALLOW },
	{ SYS_setsockopt, { 0, SOL_SOCKET, SO_ATTACH_FILTER }, ERRNO(EPERM) },
	{ SYS_setsockopt, { 0, IPPROTO_TCP, 31 /* TCP_ULP */ }, ERRNO(ENOENT) },

	{ SYS_ioctl, { 0, TCGETS }, ALLOW },
	{ SYS_ioctl, { 0, FIONBIO | GARBAGE }, ALLOW },
	{ SYS_ioctl, { 0, TIOCSTI }, ERRNO(EPERM) },
	{ SYS_ioctl, { 0, TIOCSTI | GARBAGE }, ERRNO(EPERM) },
	{ SYS_ioctl, { 0, TIOCLINUX | GARBAGE }, ERRNO(EPERM) },
	{ SYS_ioctl, { 0, 0xc0185879 /* FITRIM */ }, ERRNO(ENOTTY) },

	{ SYS_prctl, { PR_SET_NAME }, ALLOW },
	{ SYS_prctl, { PR_SET_VMA }, ALLOW },
	{ SYS_prctl, { PR_SET_SECCOMP | GARBAGE }, ERRNO(EPERM) },
	{ SYS_prctl, { PR_SET_MM }, ERRNO(EPERM) },
	{ SYS_prctl, { PR_SET_SECUREBITS }, ERRNO(EPERM) },
	{ SYS_prctl, { 12345 }, ERRNO(EINVAL) },
	{ SYS_personality, { 0xffffffff }, ALLOW },
	{ SYS_personality, { 0x0040000 /* ADDR_NO_RANDOMIZE */ }, ERRNO(EPERM) },

	{ SYS_prlimit64, { 0, RLIMIT_CORE, 0, 1 }, ALLOW },
	{ SYS_prlimit64, { 0, RLIMIT_CORE, 1, 0 }, ERRNO(EPERM) },
	{ SYS_prlimit64, { 0, RLIMIT_CORE | GARBAGE, GARBAGE, 0 }, ERRNO(EPERM) },
	{ SYS_prlimit64, { 0, RLIMIT_NOFILE, 1, 0 }, ALLOW },
	{ SYS_prlimit64, { 1, RLIMIT_NOFILE, 0, 1 }, ERRNO(EPERM) },
	{ SYS_setrlimit, { RLIMIT_CORE | GARBAGE }, ERRNO(EPERM) },
	{ SYS_setrlimit, { RLIMIT_NOFILE }, ALLOW },

	{ SYS_fcntl, { 0, F_GETFL }, ALLOW },
	{ SYS_fcntl, { 0, F_SETLEASE | GARBAGE }, ERRNO(EPERM) },
	{ SYS_fcntl, { 0, F_NOTIFY }, ERRNO(EPERM) },
	{ SYS_fcntl, { 0, F_SETPIPE_SZ }, ERRNO(EPERM) },
	{ SYS_fadvise64, { 0, 0, 0, POSIX_FADV_WILLNEED }, ALLOW },
	{ SYS_fadvise64, { 0, 0, 0, POSIX_FADV_DONTNEED | GARBAGE }, ERRNO(0) },
	{ SYS_mmap, { 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS }, ALLOW },
	{ SYS_mmap, { 0, 4096, PROT_READ, MAP_PRIVATE | MAP_HUGETLB }, ERRNO(ENOMEM) },
	{ SYS_memfd_create, { 0, MFD_CLOEXEC }, ALLOW },
	{ SYS_memfd_create, { 0, MFD_HUGETLB | GARBAGE }, ERRNO(EINVAL) },
	{ SYS_madvise, { 0, 0, MADV_DONTNEED }, ALLOW },
	{ SYS_madvise, { 0, 0, MADV_MERGEABLE | GARBAGE }, ERRNO(EINVAL) },
};

static void untrusted_code_gets_the_answers_of_the_policy(void **state)
{
	(void)state;
	expect(SECCOMP_PROGRAM, program_table, ARRAY_LEN(program_table));
}

/* ---- the processes of our own ---- */

static const struct expectation front_table[] = {
	{ SYS_accept4, { 0 }, ALLOW },
	{ SYS_epoll_wait, { 0 }, ALLOW },
	{ SYS_recvmsg, { 0 }, ALLOW },
	{ SYS_memfd_create, { 0 }, ALLOW },
	{ SYS_mmap, { 0, 4096, PROT_READ | PROT_WRITE }, ALLOW },
	{ SYS_mmap, { 0, 4096, PROT_READ | PROT_EXEC }, KILL },
	{ SYS_mprotect, { 0, 4096, PROT_EXEC }, KILL },
	{ SYS_openat, { 0 }, ERRNO(ENOENT) },
	{ SYS_newfstatat, { 0, 0, 0, AT_EMPTY_PATH }, ALLOW },
	{ SYS_newfstatat, { 0 }, ERRNO(ENOENT) },
	{ SYS_fcntl, { 0, F_ADD_SEALS }, ALLOW },
	{ SYS_fcntl, { 0, F_SETLK }, ERRNO(EINVAL) },
	{ SYS_ioctl, { 0, FIONREAD }, ALLOW },
	{ SYS_ioctl, { 0, TIOCSTI }, ERRNO(ENOTTY) },
	{ SYS_setsockopt, { 0, IPPROTO_TCP, TCP_NODELAY }, ALLOW },
	{ SYS_setsockopt, { 0, IPPROTO_TCP, TCP_ULP }, ERRNO(EPERM) },
	{ SYS_setsockopt, { 0, SOL_SOCKET, TCP_NODELAY }, ERRNO(EPERM) },
	{ SYS_setsockopt, { 0, SOL_SOCKET, SO_LINGER }, ERRNO(EPERM) },
	{ SYS_setsockopt, { 0, SOL_SOCKET | GARBAGE, SO_LINGER | GARBAGE }, ERRNO(EPERM) },
	{ SYS_setsockopt, { 0, SOL_SOCKET, SO_SNDBUF }, ERRNO(EPERM) },
	{ SYS_setsockopt, { 0, SOL_SOCKET, SO_ATTACH_FILTER }, ERRNO(EPERM) },
	{ SYS_tgkill, { 1, 1, SIGABRT }, ALLOW },
	{ SYS_tgkill, { 1, 1, SIGKILL }, ERRNO(EPERM) },
	{ SYS_poll, { 0 }, ALLOW }, /* the log */
	{ SYS_socket, { 0 }, KILL },
	{ SYS_connect, { 0 }, KILL },
	{ SYS_execve, { 0 }, KILL },
	{ SYS_clone, { SIGCHLD }, KILL },
	{ SYS_clone3, { 0 }, KILL },
	{ SYS_ptrace, { 0 }, KILL },
	{ SYS_kill, { 0 }, KILL },
	{ SYS_setresuid, { 0 }, KILL },
};

static const struct expectation config_table[] = {
	{ SYS_read, { 0 }, ALLOW },
	{ SYS_sendmsg, { 0 }, ALLOW },
	{ SYS_poll, { 0 }, ALLOW }, /* the log */
	{ SYS_exit_group, { 0 }, ALLOW },
	{ SYS_openat, { 0 }, ERRNO(ENOENT) },
	{ SYS_accept4, { 0 }, KILL },
	{ SYS_memfd_create, { 0 }, KILL },
	{ SYS_execve, { 0 }, KILL },
	{ SYS_epoll_wait, { 0 }, ERRNO(ENOSYS) },
};

static const struct expectation collector_table[] = {
	{ SYS_read, { 0 }, ALLOW },
	{ SYS_getdents64, { 0 }, ALLOW },
	{ SYS_write, { 0 }, ALLOW },
	{ SYS_openat, { 3, 0, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_DIRECTORY | O_CLOEXEC },
		ALLOW },
	{ SYS_openat, { 3, 0, O_WRONLY }, ERRNO(EPERM) },
	{ SYS_openat, { 3, 0, O_RDWR | GARBAGE }, ERRNO(EPERM) },
	{ SYS_openat, { 3, 0, O_CREAT }, ERRNO(EPERM) },
	{ SYS_openat, { 3, 0, O_TRUNC }, ERRNO(EPERM) },
	{ SYS_openat, { 3, 0, O_TMPFILE }, ERRNO(EPERM) },
	{ SYS_mmap, { 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS }, ALLOW },
	{ SYS_mmap, { 0, 4096, PROT_READ, MAP_PRIVATE }, ALLOW },
	{ SYS_mmap, { 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED }, KILL },
	{ SYS_mmap, { 0, 4096, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS }, KILL },
	{ SYS_openat2, { 0 }, KILL },
	{ SYS_unlinkat, { 0 }, KILL },
	{ SYS_fchmod, { 0 }, KILL },
	{ SYS_socket, { 0 }, KILL },
	{ SYS_execve, { 0 }, KILL },
	{ SYS_clone3, { 0 }, KILL },
	{ SYS_ptrace, { 0 }, KILL },
	{ SYS_setns, { 0 }, KILL },
	{ SYS_epoll_wait, { 0 }, ERRNO(ENOSYS) },
};

static const struct expectation gate_table[] = {
	{ SYS_read, { 0 }, ALLOW },
	{ SYS_writev, { 0 }, ALLOW },
	{ SYS_connect, { 0 }, ALLOW },
	{ SYS_recvfrom, { 0 }, ALLOW },
	{ SYS_ppoll, { 0 }, ALLOW },
	{ SYS_socket, { AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0 }, ALLOW },
	{ SYS_socket, { AF_INET6 | GARBAGE, SOCK_DGRAM, IPPROTO_ICMPV6 }, ALLOW },
	{ SYS_socket, { AF_INET, SOCK_STREAM, 262 /* MPTCP */ }, ERRNO(EPERM) },
	{ SYS_socket, { AF_INET, SOCK_DGRAM, 136 /* UDP-Lite */ }, ERRNO(EPERM) },
	{ SYS_socket, { AF_INET, SOCK_RAW, 1 }, ERRNO(EPERM) },
	{ SYS_socket, { AF_UNIX, SOCK_STREAM, 0 }, ERRNO(EPERM) },
	{ SYS_socket, { AF_NETLINK, SOCK_DGRAM, 0 }, ERRNO(EPERM) },
	{ SYS_socket, { AF_PACKET | GARBAGE, SOCK_DGRAM, 0 }, ERRNO(EPERM) },
	{ SYS_setsockopt, { 0, SOL_SOCKET, SO_REUSEADDR }, ALLOW },
	{ SYS_setsockopt, { 0, SOL_SOCKET, SO_MARK }, ERRNO(EPERM) },
	{ SYS_setsockopt, { 0, SOL_SOCKET, SO_BINDTODEVICE }, ERRNO(EPERM) },
	{ SYS_setsockopt, { 0, SOL_SOCKET, SO_ATTACH_FILTER | GARBAGE }, ERRNO(EPERM) },
	{ SYS_setsockopt, { 0, IPPROTO_TCP, TCP_NODELAY }, ALLOW },
	{ SYS_setsockopt, { 0, IPPROTO_TCP, 31 /* TCP_ULP */ }, ERRNO(EPERM) },
	{ SYS_ioctl, { 0, FIONREAD }, ALLOW },
	{ SYS_ioctl, { 0, TUNSETIFF }, ERRNO(ENOTTY) },
	{ SYS_ioctl, { 0, SIOCSIFADDR | GARBAGE }, ERRNO(ENOTTY) },
	{ SYS_fcntl, { 0, F_SETFL }, ALLOW },
	{ SYS_fcntl, { 0, F_SETOWN }, ERRNO(EINVAL) },
	{ SYS_openat, { 0 }, ERRNO(ENOENT) },
	{ SYS_mmap, { 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS }, ALLOW },
	{ SYS_mmap, { 0, 4096, PROT_EXEC | GARBAGE, MAP_PRIVATE | MAP_ANONYMOUS }, KILL },
	{ SYS_tgkill, { 1, 1, SIGABRT }, ERRNO(EPERM) },
	{ SYS_tgkill, { 1, 1, SIGKILL }, ERRNO(EPERM) },
	{ SYS_kill, { 0 }, KILL },
	{ SYS_listen, { 0 }, KILL },
	{ SYS_accept4, { 0 }, KILL },
	{ SYS_execve, { 0 }, KILL },
	{ SYS_clone3, { 0 }, KILL },
	{ SYS_ptrace, { 0 }, KILL },
	{ SYS_setns, { 0 }, KILL },
	{ SYS_setresuid, { 0 }, KILL },
	{ SYS_memfd_create, { 0 }, KILL },
	{ SYS_epoll_wait, { 0 }, ERRNO(ENOSYS) },
};

static const struct expectation init_table[] = {
	{ SYS_read, { 0 }, ALLOW },
	{ SYS_wait4, { 0 }, ALLOW },
	{ SYS_waitid, { 0 }, ALLOW },
	{ SYS_exit_group, { 0 }, ALLOW },
	{ SYS_kill, { 0 }, ERRNO(ENOSYS) },
	{ SYS_openat, { 0 }, KILL },
	{ SYS_mmap, { 0 }, KILL },
	{ SYS_execve, { 0 }, KILL },
	{ SYS_setns, { 0 }, KILL },
};

static void our_own_processes_get_the_answers_of_their_policies(void **state)
{
	(void)state;
	expect(SECCOMP_FRONT, front_table, ARRAY_LEN(front_table));
	expect(SECCOMP_CONFIG, config_table, ARRAY_LEN(config_table));
	expect(SECCOMP_COLLECTOR, collector_table, ARRAY_LEN(collector_table));
	expect(SECCOMP_GATE, gate_table, ARRAY_LEN(gate_table));
	expect(SECCOMP_INIT, init_table, ARRAY_LEN(init_table));
}

/* ---- the kernel's word ---- */

/* Run `body` under `policy` in a child; what waitpid() says. */
static int confined(enum seccomp_policy policy, int (*body)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct fault f = { 0 };

		/* Nobody: should a filter have a hole, these calls must not do any harm. */
		if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(99);
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_install(policy, &f) < 0)
			_exit(99);
		_exit(body());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static long call(const struct expectation *e)
{
	long r = syscall(
		e->nr, e->args[0], e->args[1], e->args[2], e->args[3], e->args[4], e->args[5]);

	return r < 0 ? -errno : r;
}

/* Every call that is refused with zero arguments, and every refusal of the table. */
static int compare_refusals(void)
{
	int wrong = 0;

	for (long nr = 0; nr < CALLS; nr++) {
		struct expectation e = { .nr = nr, .action = ask(SECCOMP_PROGRAM, ARCH, nr, NULL) };

		if (nr == 335 || nr == 336)
			continue; /* uretprobe, uprobe: not the filter's, SIGILL by the kernel */
		if (e.action != ALLOW && call(&e) != -(long)(e.action & SECCOMP_RET_DATA))
			wrong++;
	}
	for (size_t i = 0; i < ARRAY_LEN(program_table); i++) {
		const struct expectation *e = &program_table[i];

		if (e->action != ALLOW && call(e) != -(long)(e->action & SECCOMP_RET_DATA))
			wrong++;
	}
	return wrong;
}

static void the_kernel_refuses_what_the_interpreter_refuses(void **state)
{
	(void)state;
	assert_int_equal(confined(SECCOMP_PROGRAM, compare_refusals), 0);
}

#ifdef __x86_64__
static int call_x32(void)
{
	return (int)syscall(SYS_getpid | 0x40000000);
}

static int call_32_bit(void)
{
	long r = 20; /* getpid of i386 */

	__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
	return 0;
}

static void calls_of_other_modes_end_the_process(void **state)
{
	int status;

	(void)state;
	status = confined(SECCOMP_PROGRAM, call_x32);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);

	/* A kernel that was built without the 32-bit entry answers with SIGSEGV itself. */
	status = confined(SECCOMP_PROGRAM, call_32_bit);
	assert_true(WIFSIGNALED(status));
	assert_true(WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGSEGV);
}
#endif

static int open_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0) >= 0 ? 0 : errno;
}

/* The one with the listener answers nothing otherwise: "told, with errno E" is "errno E". */
static void expect_told_as_plain(long nr, const uint64_t *args)
{
	struct seccomp_data d = { .nr = (int)nr, .arch = ARCH };
	uint32_t told, plain;

	if (args)
		(void)memcpy(d.args, args, sizeof(d.args));
	told = evaluate(seccomp_program_told, ARRAY_LEN(seccomp_program_told), &d);
	plain = evaluate(seccomp_program, ARRAY_LEN(seccomp_program), &d);
	if ((told & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF) {
		assert_int_not_equal(told & SECCOMP_RET_DATA, 0);
		told = ERRNO(told & SECCOMP_RET_DATA);
	}
	if (told != plain)
		fail_msg("call %ld is answered %#x with a listener and %#x without", nr, told,
			plain);
}

static void a_listener_changes_no_answer(void **state)
{
	static const uint64_t values[] = { 0, 1, 2, 3, 10, 17, 40, 0x20000, 0x8000, 0x400000,
		0xFFFFFFFF, UINT64_MAX, GARBAGE };

	(void)state;
	for (long nr = 0; nr < CALLS; nr++) {
		for (size_t i = 0; i < ARRAY_LEN(values); i++) {
			for (size_t k = 0; k < ARRAY_LEN(values); k++)
				expect_told_as_plain(nr, (const uint64_t[6]){ values[i], values[k],
								 values[k], values[i], 0, 0 });
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(program_table); i++)
		expect_told_as_plain(program_table[i].nr, program_table[i].args);
	expect_told_as_plain(-1, NULL);
}

static void every_policy_is_taken_by_the_kernel(void **state)
{
	(void)state;
	for (int p = 0; p < SECCOMP_POLICY_MAX; p++) {
		int status = confined(p, open_socket);

		if (p == SECCOMP_PROGRAM)
			assert_int_equal(status, 0);
		else if (p == SECCOMP_GATE) /* whose own are of other families */
			assert_int_equal(status, W_EXITCODE(EPERM, 0));
		else
			assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	}
}

static void a_failed_installation_names_the_filter(void **state)
{
	struct fault f = { 0 };
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		/* The program's own filter refuses to load another one. */
		(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		_exit(seccomp_install(SECCOMP_PROGRAM, &f) == 0 &&
					seccomp_install(SECCOMP_FRONT, &f) == -EPERM &&
					strstr(f.text, "front")
				? 0
				: 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_architectures_are_killed),
		cmocka_unit_test(numbers_that_no_kernel_has_are_enosys),
#ifdef __x86_64__
		cmocka_unit_test(every_x32_number_is_killed),
		cmocka_unit_test(calls_of_other_modes_end_the_process),
#endif
		cmocka_unit_test(untrusted_code_is_never_killed_for_a_native_call),
		cmocka_unit_test(untrusted_code_gets_the_answers_of_the_policy),
		cmocka_unit_test(our_own_processes_get_the_answers_of_their_policies),
		cmocka_unit_test(the_kernel_refuses_what_the_interpreter_refuses),
		cmocka_unit_test(a_listener_changes_no_answer),
		cmocka_unit_test(every_policy_is_taken_by_the_kernel),
		cmocka_unit_test(a_failed_installation_names_the_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
