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

/* What every cell of this supervisor is made from. */
struct cell_factory {
	struct cgroup_tree *tree;
	const struct view *view;
	const struct runtime *runtime;
	int box_image_fd;
	uint32_t uid_base; /* slot i uses uid_base + 16 + 2i (root inside) and one more */
	uint32_t workspace_inodes;
	uint64_t degraded; /* LAYER_BIT()s that may be missing */
};

struct cell {
	enum cell_state state;
	uint32_t slot;
	struct cgroup leaf;
	struct process init, main;
	int init_channel, main_channel;
	bool main_died; /* main was reaped: the next three are valid */
	int main_status;
	struct rusage main_usage;
	uint64_t main_died_ns;
	struct fault fault; /* why it broke, code 0 while it did not */
};

/* Begin to make a cell in `slot`, whose writable places hold `scratch_bytes` each. On
 * failure everything is undone and the cell is GONE. */
int cell_create(struct cell *c, const struct cell_factory *factory, uint32_t slot, uint64_t id,
	uint64_t scratch_bytes, struct fault *f) __attribute__((nonnull));

/* A channel of the cell is readable. 0, or a negative errno when the cell broke (then
 * c->fault says why): the caller should kill it. */
int cell_hear(struct cell *c, const struct cell_factory *factory) __attribute__((nonnull));

/* Put the run's limits in force and release the program. `fds`: code, stdin, stdout,
 * stderr (borrowed); the pipes are given to the program's user. Only in READY.
 * -ENOMEM: the limit is below what the cell itself uses. */
int cell_start(struct cell *c, const struct cell_factory *factory, const struct run_limits *limits,
	uint64_t code_bytes, const int *fds, struct fault *f) __attribute__((nonnull));

/* Kill everything in it. Any state but GONE; a second time is harmless. */
void cell_kill(struct cell *c) __attribute__((nonnull));

/* Reap what has died: true when main is dead (also true again later). */
bool cell_reap_main(struct cell *c) __attribute__((nonnull));

/* In DYING: true when no process of it is left (both reaped, cgroup empty). */
bool cell_is_empty(struct cell *c) __attribute__((nonnull));

/* Remove what is left of an empty cell. True when it is GONE; false: the kernel still
 * holds the leaf, call again later. */
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
