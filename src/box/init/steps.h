/* The steps by which init builds its side of the cage, in their order.
 *
 *   runs in    init
 */
#pragma once

#include "box/root.h"

struct fault;

struct init_state {
	struct root root;
};

struct init_step {
	const char *name;
	int (*run)(struct init_state *s, struct fault *f);
};

extern const struct init_step init_steps[];
extern const unsigned init_steps_count;
