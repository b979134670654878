/* What a run has run into beside its verdict: counts of the kernel's, never a word of the
 * program's. Numbers only, fixed layout: crosses every trust boundary.
 *
 *   runs in    every process
 */
#pragma once

#include <stdint.h>

/* The directories that a program can write to, in the order in which they are attached. */
/* clang-format off */
#define SCRATCHES(X)                  \
	X(SHM,       "/dev/shm")      \
	X(TMP,       "/tmp")          \
	X(WORKSPACE, "/workspace")
/* clang-format on */

enum scratch_dir {
#define X(name, path) SCRATCH_##name,
	SCRATCHES(X)
#undef X
	SCRATCH_MAX
};

/* Bits of `full`, for each enum scratch_dir. */
#define SCRATCH_NO_ROOM(which)  (UINT32_C(1) << (2 * (which)))
#define SCRATCH_NO_FILES(which) (UINT32_C(2) << (2 * (which)))

#define DENIED_CALLS_MAX 8 /* told by name; whoever tries more is exploring */

struct denied_call {
	uint32_t number; /* of the system call, on this machine */
	uint32_t times;
};

struct denied {
	uint64_t unrouted;      /* packets and connections for which there was no route */
	uint64_t scratch_bytes; /* in the writable directories, at the end */
	uint32_t full;          /* SCRATCH_NO_ROOM() and SCRATCH_NO_FILES(), at the end */
	uint32_t clipped;       /* 1: calls were no longer counted from some point on */
	struct denied_call calls[DENIED_CALLS_MAX]; /* in the order of their first try */
	uint64_t other_calls;                       /* denied calls beyond these */
};
