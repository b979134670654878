/* The workspaces that are kept behind a RESULT: for a COLLECT, and until their collector has
 * ended. The run is over and answered; what is here is its cell.
 *
 *   runs in    the supervisor
 *   owns       code and inputs of such a run, its collector; drives its cell, which is the pool's
 *   threads    none
 *   blocks     never
 *   trusts     the client with the number of a run and the write end of a pipe
 */
#pragma once

#include "priv/launch/collector.h"
#include "priv/supervisor/pool.h"
#include "wire/channel.h"

#include <stdbool.h>
#include <stdint.h>

struct collection {
	struct cell *cell; /* NULL: none in this slot */
	struct msg_submit submit;
	int code_fd;
	uint64_t due_ns; /* when whoever is to come, or to end, is too late */
	bool begun, ending;
	struct collector collector;
};

struct collects {
	struct collection slots[LEASE_CELLS]; /* by the cell's slot */
	unsigned count;
	struct pool *pool;
	const struct settings *settings;
};

void collects_init(struct collects *cs) __attribute__((nonnull));

/* Keep the workspace of `cell`, whose program, begun by `submit` with `code_fd` (taken), is dead. */
void collects_keep(struct collects *cs, struct cell *cell, const struct msg_submit *submit,
	int code_fd) __attribute__((nonnull));

/* A COLLECT, whose descriptor is taken. 0 also when there is no such run (any more): the pipe ends
 * then. -EPROTO when the sender broke a rule (*ret_rule). */
int collects_begin(struct collects *cs, struct msg *m, const char **ret_rule)
	__attribute__((nonnull));

/* Is there a workspace of that run, for which a COLLECT may come or has come? */
bool collects_have(struct collects *cs, uint64_t run) __attribute__((nonnull));

/* Nobody wants it, or any, any more. */
void collects_cancel(struct collects *cs, uint64_t run) __attribute__((nonnull));
void collects_cancel_all(struct collects *cs) __attribute__((nonnull));

/* Something happened at the pool's slot `slot`: true if it is one of these. */
bool collects_look(struct collects *cs, unsigned slot) __attribute__((nonnull));

/* Deadlines. Returns when it wants to be called again. */
uint64_t collects_tick(struct collects *cs, uint64_t now_ns) __attribute__((nonnull));

/* Is it one of the collectors' processes? */
bool collects_know(const struct collects *cs, pid_t pid) __attribute__((nonnull));
