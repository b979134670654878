/* The steps by which enter joins the cell and drops everything, in their order.
 *
 *   runs in    enter
 */
#pragma once

#include "wire/msg.h"

struct fault;

struct enter_state {
	struct msg_enter enter;
	int init_pidfd;
};

struct enter_step {
	const char *name;
	int (*run)(struct enter_state *s, struct fault *f);
};

extern const struct enter_step enter_steps[];
extern const unsigned enter_steps_count;

/* The ids of the program inside a cell. */
#define PROGRAM_UID 1000
