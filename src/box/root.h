/* The root of a cell or of a zygote, assembled in a mount namespace of its own from the
 * detached mounts that the supervisor sends. In this order: plan, mount, pivot, check.
 *
 *   runs in    init, and a zygote before its interpreter
 *   blocks     until BUILD and the MOUNTs are there
 *   trusts     the supervisor
 */
#pragma once

#include "wire/msg.h"

struct fault;

struct root {
	struct msg_build build;
	int fd; /* the root, attached but not yet "/"; -1 before and after */
};

/* Receive BUILD. */
int root_plan(struct root *s, struct fault *f) __attribute__((nonnull));

/* Receive and attach the mounts, and a proc for the caller's pid namespace. */
int root_mount(struct root *s, struct fault *f) __attribute__((nonnull));

/* Make it "/" and let go of everything else. */
int root_pivot(struct root *s, struct fault *f) __attribute__((nonnull));

/* It must be the one that was attached, and nothing may be writable in it. */
int root_check(struct root *s, struct fault *f) __attribute__((nonnull));
