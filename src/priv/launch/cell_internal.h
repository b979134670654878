/* What the files of priv/launch/cell.h share:
 *
 *   cell.c       a cell comes to be: its cage, then one program's part in it, until it is READY
 *   cell_run.c   the program: released, ended, reaped, and what it used
 *   cell_cage.c  what becomes of the cage then: kept for another program, or removed
 *   collector.c  a process that reads what the program has left
 *   gate.c       a process that carries its packets
 *
 *   runs in    as priv/launch/cell.h
 */
#pragma once

#include "priv/launch/cell.h"

/* ---- cell.c ---- */

/* The one way from state to state. */
void cell_enter_state(struct cell *c, enum cell_state next) __attribute__((nonnull));

/* A channel for one of the box's roles. Ours does not block; what was made of it is the caller's,
 * also after a failure. */
int cell_open_channel(int *ret_ours, int *ret_theirs, struct fault *f) __attribute__((nonnull));

/* Have the process behind `channel_fd` move itself into `leaf`'s v1 groups, by messages of that
 * type, which are JOINs. */
int cell_send_joins(const struct cell_factory *factory, const struct cgroup *leaf, int channel_fd,
	enum msg_type type, struct fault *f) __attribute__((nonnull));

/* ---- cell_run.c ---- */

/* The leaf's limits for a program that may use `l`: what main used before is not the program's. */
struct cgroup_limits cell_leaf_limits(const struct cell *c, const struct run_limits *l)
	__attribute__((nonnull));
