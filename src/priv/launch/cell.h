/* One cell: a cage (namespaces, root view) and what one program gets in it: a process that
 * will become the program, a cgroup leaf, writable mounts. Made ahead of the work.
 *
 * A program's process and what it can write are its own. The cage may serve another program
 * after it, if it is as it was made (cell_vacate()); so may an emptied leaf, and writable
 * mounts that nobody touched.
 *
 * The supervisor drives a cell by three calls that start something and by feeding it what
 * its descriptors say; nothing here waits. What runs in the cell is not this module's
 * business beyond START: it is whatever the runtime's argv names.
 *
 *   runs in    the supervisor and the probe
 *   owns       the leaf, the two processes, their channels, until cell_remove() says gone
 *   threads    none
 *   blocks     never, but for the kernel's own work in clone3() and mount
 *   trusts     nothing that comes back over the channels
 */
#pragma once

#include "kernel/cgroup.h"
#include "kernel/netstate.h"
#include "kernel/process.h"
#include "kernel/taskstats.h"
#include "priv/launch/refusals.h"
#include "priv/launch/scratch.h"
#include "priv/launch/view.h"
#include "wire/msg.h"

#include <stdbool.h>
#include <stdint.h>

/* clang-format off */
#define CELL_STATES(X)                                                               \
	X(BUILDING, "init assembles the cage")                                       \
	X(VACANT,   "the cage stands, and nobody is in it but init")                 \
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
	struct cgroup *inits;         /* the leaf in which all inits live */
	struct cgroup *zygotes;       /* ...and all zygotes; NULL: none are started */
	struct cgroup *image_zygotes; /* ...in place of that for images that requests pick */
	struct cgroup *collectors;    /* ...and all collectors */
	struct cgroup *gates;         /* ...and all gates */
	const struct view *view;
	const struct runtime *runtime;
	int box_image_fd, gate_image_fd;
	uint32_t uid_base; /* slot i uses uid_base + 16 + 2i (root inside) and one more */
	uint32_t workspace_inodes;
	uint64_t degraded;       /* LAYER_BIT()s that may be missing */
	struct run_limits usual; /* put in force ahead; a request with others pays for it */
	cell_fork_fn *fork_main; /* NULL: every main is started cold */
	void *fork_ctx;
	uint32_t runs_max; /* programs in one cage, one after the other */
	int policy_fd;     /* borrowed: what gates let a run have, whatever it asks for */
	bool network;      /* cells have an interface beside their loopback; each serves once */
};

struct cell {
	enum cell_state state;
	uint32_t slot;
	uint64_t id;        /* of what is being made or is in it now; never used twice */
	uint64_t cage_ns;   /* when the cage was begun */
	uint32_t runs;      /* programs that were let go in it */
	bool renewed;       /* main is not the cage's first */
	struct cgroup leaf; /* main and its descendants; init is not in it */
	struct process init, main;
	int init_channel, main_channel;
	int tun_fd;             /* the other end of its interface; -1: it has none */
	struct scratch scratch; /* the writable mounts */
	int build_fd;           /* a mount for BUILD_PATH, taken, until main has it; -1: none */
	bool builds;            /* which main may write to */
	bool warm;              /* main was, or is being, forked from a zygote */
	uint64_t generation;    /* of that zygote */
	bool rehearsed;         /* and it prepares in full */
	uint64_t created_ns, killed_ns;
	struct cgroup_usage base; /* when it became READY: not the program's */
	uint64_t base_memory, base_minor_faults, base_major_faults;
	bool doomed;    /* the cage is not kept: init was killed, or a zygote is late for it */
	bool unread;    /* main died before it had read START: no program began */
	bool main_died; /* main was reaped: the next three are valid */
	/* The kernel has told of main's end: it executes nothing any more, and it is all that the
	 * leaf holds. The three are valid, too; main still has to be reaped. */
	bool main_ended;
	int main_status;
	struct rusage main_usage;
	uint64_t main_died_ns;
	struct fault fault;       /* why it broke, code 0 while it did not */
	struct netstate network;  /* as it was made */
	struct refusals refusals; /* main's; to be watched and heard from ENTERING on */
};

/* Begin to make a cell in `slot`: first its cage. On failure it is DYING, and has to be
 * removed like any other. */
int cell_create(struct cell *c, const struct cell_factory *factory, uint32_t slot, uint64_t id,
	struct fault *f) __attribute__((nonnull));

/* Begin to make what a program needs in a VACANT cage, under the new `id`. As cell_create(). */
int cell_occupy(struct cell *c, const struct cell_factory *factory, uint64_t id, struct fault *f)
	__attribute__((nonnull));

/* Can an empty cell in DYING, whose program has ended by itself, serve another one? True: it
 * is VACANT, and what its program had is gone, but for its writable mounts, which the next
 * main replaces; they hold little. False: remove it. */
bool cell_vacate(struct cell *c, const struct cell_factory *factory) __attribute__((nonnull));

/* Is init dead? */
bool cell_is_ruin(const struct cell *c) __attribute__((nonnull));

/* A channel of the cell is readable. 0, or a negative errno when the cell broke (then
 * c->fault says why): the caller should kill it. 1: the program has begun, and nothing more
 * will come of main's channel, which the caller closes, when nobody waits for it any more. */
int cell_hear(struct cell *c, const struct cell_factory *factory) __attribute__((nonnull));
void cell_hush(struct cell *c) __attribute__((nonnull));

/* Is it still the zygote's turn to make main? */
bool cell_awaits_fork(const struct cell *c) __attribute__((nonnull));

/* The zygote's answer to fork_main(), only while cell_awaits_fork(): main exists (the pidfd is
 * taken), or main has to be started cold. As cell_hear(). */
int cell_forked(struct cell *c, const struct cell_factory *factory, pid_t pid, int pidfd)
	__attribute__((nonnull));
int cell_unforked(struct cell *c, const struct cell_factory *factory) __attribute__((nonnull));

/* Put the run's limits in force and release the program that `order` is about. `fds`: code and
 * inputs, stdin, stdout, stderr (borrowed); the pipes are given to the program's user. Only in
 * READY. -EDQUOT: the limit is below what the cell itself uses. */
int cell_start(struct cell *c, const struct cell_factory *factory, const struct msg_submit *order,
	const int *fds, struct fault *f) __attribute__((nonnull));

/* End the process that is parked in a READY cell, and spare the cage. */
void cell_evict(struct cell *c) __attribute__((nonnull));

/* Kill everything of the program. Any state but GONE; a second time is harmless. */
void cell_kill(struct cell *c) __attribute__((nonnull));

/* Reap what has died: true when main is dead (also true again later). */
bool cell_reap_main(struct cell *c) __attribute__((nonnull));

/* The kernel says that main has come to its end; the record must have been sent while main
 * existed. True when that is the end of the whole program: then it counts as such from now
 * on, before main can be reaped. Only in BUSY. */
bool cell_end_main(struct cell *c, const struct taskstats_exit *end) __attribute__((nonnull));

/* True when no process of the program is left: main reaped, its leaf empty. */
bool cell_is_empty(struct cell *c) __attribute__((nonnull));

/* CPU time of the program so far, in microseconds. */
uint64_t cell_cpu_us(const struct cell *c, const struct cell_factory *factory)
	__attribute__((nonnull));

/* What the program used: the leaf's counters less what was there before it began. */
void cell_usage(const struct cell *c, const struct cell_factory *factory, struct cgroup_usage *ret)
	__attribute__((nonnull));

/* What it has run into, as far as that has to be looked for: routes that were not there,
 * directories that are full. Some 25 us of CPU. */
void cell_denied(const struct cell *c, struct denied *ret) __attribute__((nonnull));

/* Is there anything in its workspace that the run, begun by `order`, may want to be collected? */
bool cell_has_files(const struct cell *c, const struct cell_factory *factory,
	const struct msg_submit *order) __attribute__((nonnull));

/* End init and remove what is left of an empty cell in DYING. True when it is GONE; false:
 * init is not reaped yet or the kernel still holds the leaf, call again later. */
bool cell_remove(struct cell *c, const struct cell_factory *factory) __attribute__((nonnull));

const char *cell_state_name(enum cell_state s);

/* Of the ids of an instance below its cells': the front is the first. */
#define GATE_UID 1u

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
