/* The system calls that `glovebox selftest` makes in a cell, and how the filter must answer each
 * (policy/program.seccomp). Arguments are chosen so that, as far as possible, the kernel itself
 * would say something else.
 *
 *   runs in    the command line; the calls are made by runtimes/python/selftest/calls.py
 */
#pragma once

#include <sys/syscall.h>

/* X(name, number, arguments, what it must be answered). Arguments: numbers, "&N" for a buffer
 * of N zero bytes, "$TEXT" for a text. Numbers from 424 on are the same on every
 * architecture, and not all are in every C library's header. */
/* clang-format off */
#define SELFTEST_CALLS(X)                                                                          \
	SELFTEST_CALLS_FILES(X)                                                                    \
	SELFTEST_CALLS_MEMORY(X)                                                                   \
	SELFTEST_CALLS_PROCESSES(X)                                                                \
	SELFTEST_CALLS_SOCKETS(X)                                                                  \
	SELFTEST_CALLS_HOST(X)                                                                     \
	SELFTEST_CALLS_QUEUES(X)                                                                   \
	SELFTEST_CALLS_X86(X)

#define SELFTEST_CALLS_FILES(X)                                                                    \
	X("openat(O_TMPFILE)", SYS_openat, "-100 $/tmp 0x410002 0o600", "EOPNOTSUPP")               \
	X("openat2", 437, "-100 $/tmp &24 24", "ENOSYS")                                           \
	X("name_to_handle_at", SYS_name_to_handle_at, "-100 $/ &136 &8 0", "EPERM")                \
	X("open_by_handle_at", SYS_open_by_handle_at, "0 &136 0", "EPERM")                         \
	X("fcntl(F_SETLEASE)", SYS_fcntl, "0 1024 0", "EPERM")                                     \
	X("fcntl(F_NOTIFY)", SYS_fcntl, "0 1026 0", "EPERM")                                       \
	X("fcntl(F_SETPIPE_SZ)", SYS_fcntl, "1 1031 4096", "EPERM")                                \
	X("ioctl(TIOCSTI)", SYS_ioctl, "0 0x5412 $x", "EPERM")                                     \
	X("ioctl(TIOCLINUX)", SYS_ioctl, "0 0x541c $x", "EPERM")                                   \
	X("ioctl(TIOCSTI), high half set", SYS_ioctl, "0 0xdead00005412 $x", "EPERM")              \
	X("ioctl(FIFREEZE)", SYS_ioctl, "0 0xc0045877 0", "ENOTTY")                                \
	X("splice", SYS_splice, "-1 0 -1 0 1 0", "ENOSYS")                                           \
	X("tee", SYS_tee, "-1 -1 1 0", "ENOSYS")                                                     \
	X("vmsplice", SYS_vmsplice, "-1 0 0 0", "ENOSYS")                                           \
	X("cachestat", 451, "0 &16 &40 0", "ENOSYS")                                               \
	X("fanotify_init", SYS_fanotify_init, "0 0", "ENOSYS")                                     \
	X("fanotify_mark", SYS_fanotify_mark, "0 1 1 -100 $/", "ENOSYS")                           \
	X("mount", SYS_mount, "0 0 0 0 0", "EPERM")                                                \
	X("mount(MS_REMOUNT)", SYS_mount, "$none $/ 0 32 0", "EPERM")                              \
	X("umount2", SYS_umount2, "0 0", "EPERM")                                                  \
	X("pivot_root", SYS_pivot_root, "0 0", "EPERM")                                            \
	X("chroot", SYS_chroot, "0", "EPERM")                                                      \
	X("open_tree", 428, "-100 0 0", "EPERM")                                                   \
	X("move_mount", 429, "-100 0 -100 0 0", "EPERM")                                           \
	X("fsopen", 430, "0 0", "EPERM")                                                           \
	X("fsconfig", 431, "-1 0 0 0 0", "EPERM")                                                  \
	X("fsmount", 432, "-1 0 0", "EPERM")                                                       \
	X("fspick", 433, "-100 0 0", "EPERM")                                                      \
	X("mount_setattr", 442, "-100 0 0 0 0", "EPERM")                                           \
	X("open_tree_attr", 467, "-100 0 0 0 0", "EPERM")                                          \
	X("statmount", 457, "&24 &64 64 0", "ENOSYS")                                              \
	X("listmount", 458, "&24 &64 8 0", "ENOSYS")                                               \
	X("io_setup", SYS_io_setup, "1 &8", "ENOSYS")                                              \
	X("io_submit", SYS_io_submit, "0 0 0", "ENOSYS")                                           \
	X("io_getevents", SYS_io_getevents, "0 0 0 0 0", "ENOSYS")                                 \
	X("io_cancel", SYS_io_cancel, "0 0 0", "ENOSYS")                                           \
	X("io_destroy", SYS_io_destroy, "0", "ENOSYS")                                             \
	X("io_uring_setup", 425, "8 &120", "ENOSYS")                                               \
	X("io_uring_enter", 426, "0 0 0 0 0 0", "ENOSYS")                                          \
	X("io_uring_register", 427, "0 0 0 0", "ENOSYS")

#define SELFTEST_CALLS_MEMORY(X)                                                                   \
	X("mmap(MAP_HUGETLB), length 0", SYS_mmap, "0 0 3 0x40022 -1 0", "ENOMEM")                 \
	X("madvise(MADV_MERGEABLE)", SYS_madvise, "0 0 12", "EINVAL")                              \
	X("memfd_create(MFD_HUGETLB)", SYS_memfd_create, "$x 4", "EINVAL")                         \
	X("memfd_secret", 447, "0", "ENOSYS")                                                      \
	X("mbind", SYS_mbind, "0 0 0 0 0 0", "ENOSYS")                                             \
	X("set_mempolicy_home_node", 450, "0 0 0 0", "ENOSYS")                                     \
	X("migrate_pages", SYS_migrate_pages, "0 0 0 0", "EPERM")                                  \
	X("move_pages", SYS_move_pages, "0 0 0 0 0 0", "EPERM")                                    \
	X("mlockall", SYS_mlockall, "0", "EPERM")                                                  \
	X("remap_file_pages", SYS_remap_file_pages, "0 0 0 0 0", "ENOSYS")                         \
	X("userfaultfd", SYS_userfaultfd, "1", "EPERM")                                            \
	X("process_madvise", 440, "-1 0 0 0 0", "EPERM")                                           \
	X("process_mrelease", 448, "-1 0", "EPERM")

#define SELFTEST_CALLS_PROCESSES(X)                                                                \
	X("clone(CLONE_NEWUSER)", SYS_clone, "0x10000011 0 0 0 0", "EPERM")                        \
	X("clone(CLONE_NEWNS)", SYS_clone, "0x00020011 0 0 0 0", "EPERM")                          \
	X("clone(CLONE_NEWPID)", SYS_clone, "0x20000011 0 0 0 0", "EPERM")                         \
	X("clone(CLONE_NEWNET)", SYS_clone, "0x40000011 0 0 0 0", "EPERM")                         \
	X("clone(CLONE_PARENT)", SYS_clone, "0x00008011 0 0 0 0", "EPERM")                         \
	X("clone3", 435, "&88 88", "ENOSYS")                                                       \
	X("unshare(CLONE_NEWUSER)", SYS_unshare, "0x10000000", "EPERM")                            \
	X("unshare(CLONE_NEWNS)", SYS_unshare, "0x00020000", "EPERM")                              \
	X("unshare(CLONE_NEWPID)", SYS_unshare, "0x20000000", "EPERM")                             \
	X("unshare(CLONE_NEWNET)", SYS_unshare, "0x40000000", "EPERM")                             \
	X("unshare(CLONE_NEWIPC)", SYS_unshare, "0x08000000", "EPERM")                             \
	X("unshare(CLONE_NEWUTS)", SYS_unshare, "0x04000000", "EPERM")                             \
	X("unshare(CLONE_NEWCGROUP)", SYS_unshare, "0x02000000", "EPERM")                          \
	X("unshare(0)", SYS_unshare, "0", "EPERM")                                                 \
	X("setns", SYS_setns, "-1 0", "EPERM")                                                     \
	X("prlimit64 of another", SYS_prlimit64, "1 7 0 0", "EPERM")                               \
	X("prlimit64(RLIMIT_CORE)", SYS_prlimit64, "0 4 &16 0", "EPERM")                           \
	X("sched_setaffinity", SYS_sched_setaffinity, "0 0 0", "EPERM")                            \
	X("sched_setparam", SYS_sched_setparam, "0 0", "EPERM")                                    \
	X("sched_setscheduler", SYS_sched_setscheduler, "0 -1 0", "EPERM")                         \
	X("sched_setattr", SYS_sched_setattr, "0 0 0", "EPERM")                                    \
	X("ioprio_set", SYS_ioprio_set, "1 0 0", "EPERM")                                          \
	X("capset", SYS_capset, "0 0", "EPERM")                                                    \
	X("personality", SYS_personality, "0x40000", "EPERM")                                      \
	X("ptrace", SYS_ptrace, "0 0 0 0", "EPERM")                                                \
	X("process_vm_readv", SYS_process_vm_readv, "0 0 0 0 0 1", "EPERM")                        \
	X("process_vm_writev", SYS_process_vm_writev, "0 0 0 0 0 1", "EPERM")                      \
	X("kcmp", SYS_kcmp, "0 0 0 0 0", "EPERM")                                                  \
	X("pidfd_getfd", 438, "-1 0 0", "EPERM")                                                   \
	X("prctl(PR_SET_SECCOMP)", SYS_prctl, "22 9 0 0 0", "EPERM")                               \
	X("prctl(PR_SET_SECUREBITS)", SYS_prctl, "28 0 0 0 0", "EPERM")                            \
	X("prctl(PR_CAPBSET_DROP)", SYS_prctl, "24 99 0 0 0", "EPERM")                             \
	X("prctl(PR_CAP_AMBIENT)", SYS_prctl, "47 99 0 0 0", "EPERM")                              \
	X("prctl(PR_SET_SPECULATION_CTRL)", SYS_prctl, "53 99 0 0 0", "EPERM")                     \
	X("prctl(PR_SCHED_CORE)", SYS_prctl, "62 99 0 0 0", "EPERM")                               \
	X("prctl(PR_SET_MM)", SYS_prctl, "35 99 0 0 0", "EPERM")                                   \
	X("prctl(PR_SET_PTRACER)", SYS_prctl, "0x59616d61 -1 0 0 0", "EPERM")                      \
	X("prctl(PR_SET_SYSCALL_USER_DISPATCH)", SYS_prctl, "59 99 0 0 0", "EPERM")                \
	X("prctl(PR_SET_MEMORY_MERGE)", SYS_prctl, "67 1 0 0 0", "EPERM")                          \
	X("seccomp", SYS_seccomp, "99 0 0", "EPERM")                                               \
	X("landlock_create_ruleset", 444, "0 0 1", "ENOSYS")                                       \
	X("landlock_add_rule", 445, "-1 1 0 0", "ENOSYS")                                          \
	X("landlock_restrict_self", 446, "-1 0", "ENOSYS")                                         \
	X("lsm_get_self_attr", 459, "0 0 0 0", "ENOSYS")                                           \
	X("lsm_set_self_attr", 460, "0 0 0 0", "ENOSYS")                                           \
	X("lsm_list_modules", 461, "0 0 0", "ENOSYS")

#define SELFTEST_CALLS_SOCKETS(X)                                                                  \
	X("socket(AF_NETLINK)", SYS_socket, "16 3 0", "EAFNOSUPPORT")                              \
	X("socket(AF_NETLINK), netfilter", SYS_socket, "16 3 12", "EAFNOSUPPORT")                  \
	X("socket(AF_PACKET)", SYS_socket, "17 3 768", "EAFNOSUPPORT")                             \
	X("socket(AF_ALG)", SYS_socket, "38 5 0", "EAFNOSUPPORT")                                  \
	X("socket(AF_VSOCK)", SYS_socket, "40 1 0", "EAFNOSUPPORT")                                \
	X("socket(AF_BLUETOOTH)", SYS_socket, "31 3 1", "EAFNOSUPPORT")                            \
	X("socket(AF_INET, SOCK_RAW)", SYS_socket, "2 3 1", "EPERM")                               \
	X("socket(AF_INET6, SOCK_RAW)", SYS_socket, "10 3 58", "EPERM")                            \
	X("socket(AF_INET), SCTP", SYS_socket, "2 1 132", "EPROTONOSUPPORT")                       \
	X("socket(AF_INET), MPTCP", SYS_socket, "2 1 262", "EPROTONOSUPPORT")                      \
	X("socketpair(AF_INET)", SYS_socketpair, "2 1 0 &8", "EAFNOSUPPORT")                       \
	X("setsockopt(SO_ATTACH_FILTER)", SYS_setsockopt, "0 1 26 0 0", "EPERM")                   \
	X("setsockopt(SO_ATTACH_BPF)", SYS_setsockopt, "0 1 50 0 0", "EPERM")                      \
	X("setsockopt(TCP_ULP)", SYS_setsockopt, "0 6 31 $tls 4", "ENOENT")                        \
	X("setsockopt(IP_ADD_MEMBERSHIP)", SYS_setsockopt, "0 0 35 &8 8", "ENODEV")                \
	X("setsockopt(IPV6_JOIN_GROUP)", SYS_setsockopt, "0 41 20 &20 20", "ENODEV")

#define SELFTEST_CALLS_HOST(X)                                                                     \
	X("bpf", SYS_bpf, "99 0 0", "EPERM")                                                       \
	X("perf_event_open", SYS_perf_event_open, "0 0 -1 -1 0", "EPERM")                          \
	X("add_key", SYS_add_key, "$user $k $v 1 -2", "EPERM")                                     \
	X("request_key", SYS_request_key, "$user $k 0 0", "EPERM")                                 \
	X("keyctl", SYS_keyctl, "0 -3 0", "EPERM")                                                 \
	X("init_module", SYS_init_module, "0 0 0", "EPERM")                                        \
	X("finit_module", SYS_finit_module, "-1 0 0", "EPERM")                                     \
	X("delete_module", SYS_delete_module, "0 0", "EPERM")                                      \
	X("kexec_load", SYS_kexec_load, "0 0 0 0", "EPERM")                                        \
	X("kexec_file_load", SYS_kexec_file_load, "-1 -1 0 0 0", "EPERM")                          \
	X("reboot", SYS_reboot, "0 0 0 0", "EPERM")                                                \
	X("swapon", SYS_swapon, "0 0", "EPERM")                                                    \
	X("swapoff", SYS_swapoff, "0", "EPERM")                                                    \
	X("acct", SYS_acct, "0", "EPERM")                                                          \
	X("quotactl", SYS_quotactl, "-1 0 0 0", "EPERM")                                           \
	X("quotactl_fd", 443, "-1 0 0 0", "EPERM")                                                 \
	X("syslog", SYS_syslog, "3 0 0", "EPERM")                                                  \
	X("vhangup", SYS_vhangup, "", "EPERM")                                                     \
	X("sethostname", SYS_sethostname, "0 -1", "EPERM")                                         \
	X("setdomainname", SYS_setdomainname, "0 -1", "EPERM")                                     \
	X("settimeofday", SYS_settimeofday, "0 0", "EPERM")                                        \
	X("clock_settime", SYS_clock_settime, "99 0", "EPERM")                                     \
	X("clock_adjtime", SYS_clock_adjtime, "0 &208", "EPERM")                                   \
	X("adjtimex", SYS_adjtimex, "&208", "EPERM")                                               \
	X("listns", 470, "&32 &64 8 0", "ENOSYS")                                                  \
	X("nfsservctl", SYS_nfsservctl, "0 0 0", "EPERM")

#define SELFTEST_CALLS_QUEUES(X)                                                                   \
	X("shmget", SYS_shmget, "0 4096 0o1600", "ENOSYS")                                          \
	X("shmat", SYS_shmat, "0 0 0", "ENOSYS")                                                   \
	X("shmdt", SYS_shmdt, "1", "ENOSYS")                                                       \
	X("shmctl", SYS_shmctl, "0 0 0", "ENOSYS")                                                 \
	X("semget", SYS_semget, "0 1 0o1600", "ENOSYS")                                             \
	X("semop", SYS_semop, "0 0 0", "ENOSYS")                                                   \
	X("semctl", SYS_semctl, "0 0 0 0", "ENOSYS")                                               \
	X("msgget", SYS_msgget, "0 0o1600", "ENOSYS")                                               \
	X("msgsnd", SYS_msgsnd, "0 0 0 0", "ENOSYS")                                               \
	X("msgrcv", SYS_msgrcv, "0 0 0 0 0", "ENOSYS")                                             \
	X("msgctl", SYS_msgctl, "0 0 0", "ENOSYS")                                                 \
	X("mq_open", SYS_mq_open, "$q 0x42 0o600 0", "ENOSYS")                                      \
	X("mq_unlink", SYS_mq_unlink, "$q", "ENOSYS")                                              \
	X("mq_notify", SYS_mq_notify, "-1 0", "ENOSYS")                                            \
	X("mq_getsetattr", SYS_mq_getsetattr, "-1 0 0", "ENOSYS")

#ifdef __x86_64__
#define SELFTEST_CALLS_X86(X)                                                                      \
	X("open(O_TMPFILE)", SYS_open, "$/tmp 0x410002 0o600", "EOPNOTSUPP")                        \
	X("setrlimit(RLIMIT_CORE)", SYS_setrlimit, "4 &16", "EPERM")                               \
	X("modify_ldt", SYS_modify_ldt, "0 &16 16", "ENOSYS")                                      \
	X("iopl", SYS_iopl, "0", "EPERM")                                                          \
	X("ioperm", SYS_ioperm, "0 0 0", "EPERM")                                                  \
	X("ustat", SYS_ustat, "0 0", "EPERM")                                                      \
	X("sysfs", SYS_sysfs, "3", "EPERM")                                                        \
	X("uselib", SYS_uselib, "0", "EPERM")                                                      \
	X("_sysctl", SYS__sysctl, "0", "EPERM")
#else
#define SELFTEST_CALLS_X86(X)
#endif
/* clang-format on */
