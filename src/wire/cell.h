/* The messages between the supervisor and what runs in a cell on its behalf: init
 * (pid 1, builds the cage from inside and reaps) and enter (becomes the program).
 * Included by wire/msg.h.
 *
 *   runs in    the supervisor and the box
 *   trusts     the box trusts the supervisor; the supervisor trusts nothing here
 */
#pragma once

#include "base/fault.h"
#include "wire/files.h"
#include "wire/settings.h"

#include <stdint.h>

/* The name that a main process takes at its end, when it has made the kernel add up the CPU
 * time that it has used. At most 15 bytes. */
#define CELL_TOLD_NAME "glovebox told"

#define CELL_PATH_MAX   RUNTIME_PATH_MAX
#define CELL_MOUNTS_MAX 48

/* The number of the program's process in its cell: init is 1. */
#define MAIN_PID 2

/* First message to init. It is followed by `mounts` MOUNT messages. */
struct msg_build {
	uint32_t mounts;
	uint32_t full_proc;
	uint32_t network; /* 1: a TUN follows the mounts */
	uint32_t reserved;
};

/* To init: /dev/net/tun, opened in its network namespace, which becomes its interface. */
struct msg_tun {
	uint32_t reserved;
};

/* A detached mount, made by the supervisor, that init attaches at `path` below the root,
 * which is the first one; to enter: a writable one that enter attaches at `path`, absolute. */
struct msg_mount {
	char path[CELL_PATH_MAX];
};

/* init stands: the cage is complete, privileges are gone, it only reaps. */
struct msg_built {
	uint32_t reserved;
};

/* To enter: join the cell whose init is the pidfd that rides along, drop everything
 * and wait for START. */
struct msg_enter {
	uint64_t degraded; /* LAYER_BIT()s that the operator allowed to be missing */
	struct runtime runtime;
	uint32_t builds;   /* 1: a compiler, which may write below /build */
	uint32_t reserved; /* 0 */
};

/* To enter, before ENTER, once for each v1 hierarchy: write yourself into the `tasks` file
 * that rides along. Whoever moves another process waits for a grace period of the kernel, some
 * 10 ms; whoever moves itself does not. */
struct msg_join {
	uint32_t reserved;
};

/* To enter, before ENTER: the cell's numbering of processes begins again after this one,
 * through the ns_last_pid file that rides along. */
struct msg_renew {
	uint32_t used; /* 1: writable mounts of the run before are there, and have to go */
};

/* Become the program. fds: code and inputs, stdin, stdout, stderr, memory for the report. */
#define START_REPORT 4
struct msg_start {
	uint64_t code_bytes;
	uint64_t inputs_bytes; /* behind the code: wire/inputs.h; 0: none */
	uint64_t file_bytes;   /* RLIMIT_FSIZE */
	uint64_t cpu_seconds;  /* RLIMIT_CPU, a net below the supervisor's own watch */
	uint32_t tasks;        /* RLIMIT_NPROC */
	uint32_t report;       /* REPORT_… of wire/report.h */
	uint32_t part;         /* enum run_part */
	uint32_t mark;         /* 1: give the program's file a time that no writing leaves */
};

/* enter has its filter. The listener that is told of what that denies rides along; none comes
 * where there can be none. */
struct msg_listener {
	uint32_t reserved;
};

/* enter has dropped everything; what follows is execve(). Sent before START is
 * awaited. */
struct msg_entered {
	uint64_t minor_faults, major_faults; /* so far: not the program's */
};

/* init or enter could not do its work. */
struct msg_broken {
	uint64_t cell; /* UNFORKED: whose FORK it answers; 0: none */
	struct fault fault;
};

/* ---- The collector: reads what a program has left ---- */

/* After JOINs: read the workspace and write a stream (wire/files.h). fds: the workspace's mount,
 * code and inputs, the write end of the client's pipe. */
struct msg_gather {
	struct files_caps caps;
	uint64_t code_bytes, inputs_bytes; /* as START had them */
	uint32_t uid;                      /* the program's, on the host */
	uint32_t reserved;
	char main_file[RUNTIME_PATH_MAX]; /* where the code was written to */
};

/* ---- The zygote: a warm interpreter that forks into cells ---- */

/* The zygote, while it starts: what it does now is for what its owner has it preload, and named
 * so that its end tells of it. "": it is done with that. */
#define PRELOADING_MAX 128
struct msg_preloading {
	char what[PRELOADING_MAX];
};

/* The zygote has imported what its manifest says and can fork. */
struct msg_warm {
	uint64_t generation; /* as the supervisor numbered it */
	uint32_t modules;    /* how many are loaded */
	uint32_t reserved;
	char version[RUNTIME_NAME_MAX]; /* "3.11.2" */
};

/* Fork one child for a cell: born into the pid namespace of the init whose pidfd rides
 * along and into the cgroup of the second descriptor, as a child of the supervisor
 * (CLONE_PARENT). The third descriptor becomes its channel, over which it gets ENTER and
 * START exactly as the box's `enter` does. */
struct msg_fork {
	uint64_t cell;
	uint32_t rehearse; /* 1: run the training program before ENTERED; 0: none */
	uint32_t reserved;
};

/* The child exists. Its pidfd rides along; `pid` is its number in the supervisor's pid
 * namespace. */
struct msg_forked {
	uint64_t cell;
	int32_t pid;
	uint32_t reserved;
};
