/* One collector: a process of its own that reads what a dead program has left in its workspace
 * and sends it to the client (src/box/collect/). It shares nothing with the cell but the mount.
 *
 *   runs in    the supervisor
 *   owns       the process and its channel, from collector_start() to collector_close()
 *   threads    none
 *   blocks     never
 *   trusts     nothing that it says
 */
#pragma once

#include "priv/launch/cell.h"

#include <stdbool.h>

struct fault;

struct collector {
	struct process process;
	int channel;
};

struct collector_order {
	const struct msg_submit *submit;
	const struct files_caps *caps;
	int code_fd; /* code and inputs of SUBMIT; borrowed, as the next */
	int pipe_fd; /* where the stream goes */
};

void collector_clear(struct collector *c) __attribute__((nonnull));

/* Start one on the workspace of `cell`, of whose program nothing executes any more. On failure
 * nothing is left but what collector_end() takes. */
int collector_start(struct collector *c, const struct cell_factory *factory,
	const struct cell *cell, const struct collector_order *order, struct fault *f)
	__attribute__((nonnull));

/* Reap it: true when it is gone, and then *ret tells what became of it: code 0, or a failure. */
bool collector_reap(struct collector *c, struct fault *ret) __attribute__((nonnull));

void collector_kill(const struct collector *c) __attribute__((nonnull));

/* Let go of its descriptors. Accepts what was never started. */
void collector_close(struct collector *c) __attribute__((nonnull));
