/* The gate of one run: who carries its packets to the world and back, beside the cell, in the
 * supervisor's own network namespace, with no rights (edge/gate/).
 *
 *   runs in    the supervisor
 *   owns       its process and its channel, until it has ended or its process is handed on
 *   blocks     never but in gate_check()
 *   trusts     nothing that it says; a word of it can only go into the log
 */
#pragma once

#include "kernel/process.h"
#include "priv/launch/cell.h"

#include <stdbool.h>
#include <stdint.h>

struct fault;

struct gate {
	struct process process;
	int channel;
};

/* One that owns nothing. */
void gate_clear(struct gate *g) __attribute__((nonnull));

/* Can gates be started here? One is, and ends, for it has nobody to work for: what it needs of the host's
 * libraries is there. Takes some milliseconds, 10 s at most. */
int gate_check(int image_fd, struct fault *f) __attribute__((nonnull));

/* Start it for `c`, which has an interface. `memory_fd` (borrowed) is its client's: struct
 * network_memory. After a failure it may stand as far as it came, and is ended as any other. */
int gate_start(struct gate *g, const struct cell_factory *factory, const struct cell *c,
	int memory_fd, struct fault *f) __attribute__((nonnull));

/* Did it end by itself? It is reaped then, and owns nothing. *ret says why; its code is 0 where that
 * is as it should be: its cell is gone. */
bool gate_has_ended(struct gate *g, struct fault *ret) __attribute__((nonnull));
