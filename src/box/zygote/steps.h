/* The steps by which a zygote gets the view that its children will have, and gives up
 * what they do not need, in their order.
 *
 *   runs in    the zygote, before its interpreter
 */
#pragma once

#include "box/root.h"
#include "wire/msg.h"

struct fault;

struct zygote_state {
	struct root root;
	struct runtime runtime;
};

/* Take every step; the last one is execve(). Returns only on failure, and the fault names
 * the step. */
int zygote_run(struct zygote_state *s, struct fault *f) __attribute__((nonnull));

/* Where the supervisor's last MOUNT is, and what it holds. */
#define ZYGOTE_OWN   "/run"
#define ZYGOTE_AGENT ZYGOTE_OWN "/agent.py"
