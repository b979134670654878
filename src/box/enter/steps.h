/* The steps by which enter joins the cell and drops everything, in their order.
 *
 *   runs in    enter, and a zygote's child
 */
#pragma once

#include "wire/msg.h"

#include <stdbool.h>

struct fault;

#define ENTER_SCRATCH_MAX 4

struct enter_state {
	struct msg_enter enter;
	int init_pidfd;
	struct {
		char path[CELL_PATH_MAX];
		int fd;
	} scratch[ENTER_SCRATCH_MAX]; /* mounts to attach */
	unsigned scratches;
	bool used;       /* the cell served a program before */
	int last_pid_fd; /* how its numbers begin again; -1: they cannot */
};

/* Take every step. On failure the fault names the step, and the process must end. */
int enter_run(struct enter_state *s, struct fault *f) __attribute__((nonnull));

/* The limits that every program has, hard and soft. Only ever lowered. */
int enter_lower_limits(struct fault *f) __attribute__((nonnull));

/* The ids of the program inside a cell. */
#define PROGRAM_UID 1000
