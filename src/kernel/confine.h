/* How a process gives up what it has. The one header of kernel/ that every zone may
 * include: it only takes away.
 *
 *   runs in    front, config process, collector, gate (each right after its exec)
 *   kernel     5.12 (mount_setattr); Landlock where the kernel has it
 */
#pragma once

#include <stdint.h>

struct fault;

/* The seccomp programs, compiled at build time from policy/NAME.seccomp. */
enum confine_filter {
	CONFINE_FRONT,
	CONFINE_CONFIG,
	CONFINE_COLLECTOR,
	CONFINE_GATE
};

struct confine_plan {
	enum confine_filter filter;
	uint32_t uid;              /* becomes real, effective, saved uid and gid; must not be 0 */
	uint32_t open_files;       /* RLIMIT_NOFILE, soft and hard */
	uint32_t forbid_new_files; /* 1: RLIMIT_FSIZE 0 (memfds, too), SIGXFSZ ignored */
	uint64_t file_bytes;       /* RLIMIT_FSIZE otherwise, SIGXFSZ ignored; 0: as it was */
	uint32_t readable_fd;      /* a directory below which Landlock lets it read; 0: none */
	uint32_t keeps_network;    /* 1: the caller's network namespace, to connect from */
};

/* In this order: empty root (a private mount namespace with an empty read-only tmpfs as
 * "/"), own network (unless it keeps the caller's), IPC and UTS namespaces, rlimits (core 1, nproc 0), no supplementary
 * groups, the uid, all five capability sets empty, no_new_privs, not dumpable, the parent
 * death signal that the caller had (a change of uid clears it), Landlock (everything
 * handled, nothing allowed but reading below `readable_fd`; skipped where the kernel has none),
 * seccomp. After it returns 0 the process can do nothing but use the descriptors that it holds;
 * closing those that it must not have is the caller's part, before.
 * Must be called by a single-threaded root process; on failure the caller must exit. */
int confine(const struct confine_plan *plan, struct fault *f) __attribute__((nonnull));
