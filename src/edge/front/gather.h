/* One run's files on their way in: the read end of the pipe that a collector writes into.
 *
 *   runs in    the front
 *   owns       the descriptor, its event, the list of what has arrived
 *   threads    none; one buffer is shared by all of the process
 *   blocks     never
 *   trusts     no byte of the stream
 */
#pragma once

#include "api/artifacts.h"

struct event;
struct event_base;
struct fault;
struct gather;

/* All has arrived that ever will. The gather is still there, and is the callee's to free. */
typedef void gather_done_fn(struct gather *g, void *ctx);

struct gather {
	int fd; /* -1: closed */
	struct event *ready;
	gather_done_fn *done;
	void *ctx;
	uint64_t begun_ns, took_ns; /* the second is valid once it is done */
	struct artifacts_list list;
};

/* Begin; *ret_write_fd is what the collector gets. NULL with the reason in `f`. */
struct gather *gather_create(struct event_base *base, const struct artifacts_plan *plan,
	gather_done_fn *done, void *ctx, int *ret_write_fd, struct fault *f)
	__attribute__((nonnull(1, 2, 3, 5, 6)));

/* Also before it is done. */
void gather_destroy(struct gather *g);
