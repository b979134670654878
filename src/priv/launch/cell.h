/* One cell: a cage (cgroup leaf, namespaces, root view) and the process in it that will
 * become the program. Made ahead of the work, used once, destroyed.
 *
 * The supervisor drives a cell by three calls that start something and by feeding it what
 * its descriptors say; nothing here waits. What runs in the cell is not this module's
 * business beyond START: it is whatever the runtime's argv names.
 *
 *   runs in    the supervisor and the probe
 *   owns       the leaf, the two processes, their channels, until cell_reap() says gone
 *   threads    none
 *   blocks     never, but for the kernel's own work in clone3() and mount
 *   trusts     nothing that comes back over the channels
 */
#pragma once

#include "kernel/cgroup.h"
#include "kernel/process.h"
#include "priv/launch/view.h"
#include "wire/msg.h"

#include <stdbool.h>
#include <stdint.h>

/* clang-format off */
#define CELL_STATES(X)                                                               \
	X(BUILDING, "init assembles the cage")                                       \
	X(ENTERING, "the program's process joins it and drops everything")           \
	X(READY,    "complete, parked, waiting for its work")                        \
	X(BUSY,     "the program was released")                                      \
	X(DYING,    "killed; waiting for its processes and for an empty cgroup")     \
	X(GONE,     "nothing of it is left")
/* clang-format on */

enum cell_state {
	CELL_NONE, /* no such edge */
#define X(name, text) CELL_##name,
	CELL_STATES(X)
#undef X
	CELL_STATE_MAX
};

struct cell;

/* Ask a warm interpreter to fork main into `c`'s leaf and pid namespace, with `channel_fd`
 * (borrowed) as its channel. 0: the answer comes through cell_forked() or
 * cell_unforked(); otherwise main is started cold. */
typedef int cell_fork_fn(void *ctx, struct cell *c, int channel_fd);

/* What every cell of this supervisor is made from. */
struct cell_factory {
	struct cgroup_tree *tree;
	struct cgroup *inits; /* the leaf in which all inits live */
	const struct view *view;
	const struct runtime *runtime;
	int box_image_fd;
	uint32_t uid_base; /* slot i uses uid_base + 16 + 2i (root inside) and one more */
	uint32_t workspace_inodes;
	uint64_t degraded;       /* LAYER_BIT()s that may be missing */
	struct run_limits usual; /* put in force ahead; a request with others pays for it */
	cell_fork_fn *fork_main; /* NULL: every main is started cold */
	void *fork_ctx;
};

#define CELL_SCRATCH_MAX 3 /* /workspace, /tmp, /dev/shm */

struct cell {
	enum cell_state state;
	uint32_t slot;
	uint64_t id;        /* never used twice */
	struct cgroup leaf; /* main and its descendants; init is not in it */
	struct process init, main;
	int init_channel, main_channel;
	int scratch_fd[CELL_SCRATCH_MAX]; /* the writable mounts, to fit them to a request */
	bool warm;                        /* main was, or is being, forked from a zygote */
	uint64_t generation;              /* of that zygote */
	uint64_t created_ns, killed_ns;
	struct cgroup_usage base; /* when it became READY: not the program's */
	uint64_t base_memory, base_minor_faults, base_major_faults;
	bool unread;    /* main died before it had read START: no program began */
	bool main_died; /* main was reaped: the next three are valid */
	int main_status;
	struct rusage main_usage;
	uint64_t main_died_ns;
	struct fault fault; /* why it broke, code 0 while it did not */
};

/* Begin to make a cell in `slot`. On failure it is DYING, and has to be removed like any
 * other. */
int cell_create(struct cell *c, const struct cell_factory *factory, uint32_t slot, uint64_t id,
	struct fault *f) __attribute__((nonnull));

/* A channel of the cell is readable. 0, or a negative errno when the cell broke (then
 * c->fault says why): the caller should kill it. */
int cell_hear(struct cell *c, const struct cell_factory *factory) __attribute__((nonnull));

/* Is it still the zygote's turn to make main? */
bool cell_awaits_fork(const struct cell *c) __attribute__((nonnull));

/* The zygote's answer to fork_main(), only while cell_awaits_fork(): main exists (the pidfd is
 * taken), or main has to be started cold. As cell_hear(). */
int cell_forked(struct cell *c, const struct cell_factory *factory, pid_t pid, int pidfd)
	__attribute__((nonnull));
int cell_unforked(struct cell *c, const struct cell_factory *factory) __attribute__((nonnull));

/* Put the run's limits in force and release the program. `fds`: code, stdin, stdout,
 * stderr (borrowed); the pipes are given to the program's user. Only in READY.
 * -ENOMEM: the limit is below what the cell itself uses. */
int cell_start(struct cell *c, const struct cell_factory *factory, const struct run_limits *limits,
	uint64_t code_bytes, const int *fds, struct fault *f) __attribute__((nonnull));

/* Kill everything of the program. Any state but GONE; a second time is harmless. */
void cell_kill(struct cell *c) __attribute__((nonnull));

/* Reap what has died: true when main is dead (also true again later). */
bool cell_reap_main(struct cell *c) __attribute__((nonnull));

/* True when no process of the program is left: main reaped, its leaf empty. */
bool cell_is_empty(struct cell *c) __attribute__((nonnull));

/* What the program used: the leaf's counters less what was there before it began. */
void cell_usage(const struct cell *c, const struct cell_factory *factory, struct cgroup_usage *ret)
	__attribute__((nonnull));

/* End init and remove what is left of an empty cell in DYING. True when it is GONE; false:
 * init is not reaped yet or the kernel still holds the leaf, call again later. */
bool cell_remove(struct cell *c, const struct cell_factory *factory) __attribute__((nonnull));

const char *cell_state_name(enum cell_state s);

/* The host's ids of slot i: root inside, and the program. */
#define CELL_UID_FIRST 16u
static inline uint32_t cell_root_uid(uint32_t base, uint32_t slot)
{
	return base + CELL_UID_FIRST + 2 * slot;
}
static inline uint32_t cell_program_uid(uint32_t base, uint32_t slot)
{
	return cell_root_uid(base, slot) + 1;
}
