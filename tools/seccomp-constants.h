/* The names that a policy may use instead of numbers.
 *
 *   runs in    the build (tools/seccomp-compile)
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <linux/fs.h>
#include <linux/memfd.h>
#include <linux/sched.h>
#include <linux/sockios.h>

/* Newer than the headers of some distributions. */
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif
#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#endif

struct constant {
	const char *name;
	uint64_t value;
};

#define C(name)                         \
	{                               \
#name, (uint64_t)(name) \
	}

static const struct constant errno_names[] = { C(EACCES), C(EAFNOSUPPORT), C(EINVAL), C(ENODEV),
	C(ENOENT), C(ENOMEM), C(ENOSYS), C(ENOTTY), C(EOPNOTSUPP), C(EPERM), C(EPROTONOSUPPORT) };

static const struct constant value_names[] = {
	/* sockets */
	C(AF_UNIX), C(AF_INET), C(AF_INET6), C(AF_NETLINK), C(SOCK_STREAM), C(SOCK_DGRAM),
	C(SOCK_RAW), C(IPPROTO_IP), C(IPPROTO_TCP), C(IPPROTO_UDP), C(IPPROTO_ICMP),
	C(IPPROTO_ICMPV6), C(SOL_SOCKET), C(TCP_ULP), C(TCP_NODELAY), C(SO_REUSEADDR),
	C(SO_OOBINLINE), C(SO_BROADCAST), C(SO_ERROR), C(IP_TTL), C(IP_RECVERR),
	C(IPV6_UNICAST_HOPS), C(SO_ATTACH_FILTER), C(SO_ATTACH_BPF), C(SO_ATTACH_REUSEPORT_CBPF),
	C(SO_ATTACH_REUSEPORT_EBPF), C(IPPROTO_IPV6), C(IP_ADD_MEMBERSHIP),
	C(IP_ADD_SOURCE_MEMBERSHIP), C(MCAST_JOIN_GROUP), C(MCAST_JOIN_SOURCE_GROUP),
	C(IPV6_JOIN_GROUP), C(IPV6_JOIN_ANYCAST),
	/* ioctl */
	C(TCGETS), C(TIOCGWINSZ), C(TIOCGPGRP), C(TIOCOUTQ), C(TIOCSTI), C(TIOCLINUX), C(FIONREAD),
	C(FIONBIO), C(FIOASYNC), C(FIOCLEX), C(FIONCLEX), C(FICLONE), C(FICLONERANGE),
	C(SIOCATMARK), C(SIOCGIFNAME), C(SIOCGIFINDEX), C(SIOCGIFCONF), C(SIOCGIFFLAGS),
	C(SIOCGIFADDR), C(SIOCGIFNETMASK), C(SIOCGIFBRDADDR), C(SIOCGIFMTU), C(SIOCGIFHWADDR),
	/* fcntl */
	C(F_GETFD), C(F_SETFD), C(F_GETFL), C(F_SETFL), C(F_DUPFD_CLOEXEC), C(F_SETPIPE_SZ),
	C(F_GETPIPE_SZ), C(F_ADD_SEALS), C(F_GET_SEALS), C(F_SETLEASE), C(F_NOTIFY),
	C(AT_EMPTY_PATH),
	/* memory */
	C(PROT_EXEC), C(PROT_READ), C(MAP_ANONYMOUS), C(MAP_HUGETLB), C(MFD_HUGETLB),
	C(MADV_MERGEABLE), C(POSIX_FADV_DONTNEED),
	/* processes */
	C(RLIMIT_CORE), C(SIGABRT),
	/* prctl */
	C(PR_SET_NAME), C(PR_GET_NAME), C(PR_SET_PDEATHSIG), C(PR_GET_PDEATHSIG),
	C(PR_SET_DUMPABLE), C(PR_GET_DUMPABLE), C(PR_CAPBSET_READ), C(PR_SET_NO_NEW_PRIVS),
	C(PR_GET_NO_NEW_PRIVS), C(PR_SET_CHILD_SUBREAPER), C(PR_GET_CHILD_SUBREAPER),
	C(PR_SET_TIMERSLACK), C(PR_GET_TIMERSLACK), C(PR_SET_THP_DISABLE), C(PR_GET_THP_DISABLE),
	C(PR_SET_VMA), C(PR_GET_SECCOMP), C(PR_GET_SECUREBITS), C(PR_GET_KEEPCAPS), C(PR_GET_TSC),
	C(PR_GET_TIMING), C(PR_GET_SPECULATION_CTRL), C(PR_GET_TID_ADDRESS), C(PR_SET_SECCOMP),
	C(PR_SET_MM), C(PR_SET_SPECULATION_CTRL), C(PR_SCHED_CORE), C(PR_SET_SYSCALL_USER_DISPATCH),
	C(PR_SET_PTRACER), C(PR_SET_SECUREBITS), C(PR_CAPBSET_DROP), C(PR_CAP_AMBIENT),
	C(PR_SET_MEMORY_MERGE), C(PR_SET_TSC), C(PR_SET_IO_FLUSHER)
};

#undef C
