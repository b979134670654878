/* The steps by which init builds its side of the cage, in their order.
 *
 *   runs in    init
 */
#pragma once

#include "wire/msg.h"

struct fault;

struct init_state {
	struct msg_build build;
	int root_fd; /* the cell's root, attached but not yet "/" */
};

struct init_step {
	const char *name;
	int (*run)(struct init_state *s, struct fault *f);
};

extern const struct init_step init_steps[];
extern const unsigned init_steps_count;
