/* Start the program in one of its hidden roles as a child of this process.
 *
 *   runs in    the caller
 *   owns       the child is the caller's to wait for
 *   threads    any: posix_spawn(), never fork(), because the caller may have threads
 *   kernel     glibc 2.34 (closefrom in a spawned child)
 */
#pragma once

#include <sys/types.h>

struct fault;

struct spawn_plan {
	const char *program; /* NULL: found as include/glovebox.h says */
	const char *role;    /* "@supervisor" */
	const int *fds;      /* become 3, 4, …; borrowed */
	unsigned nfds;       /* at most SPAWN_FDS_MAX */
	int log_fd;          /* becomes 2 */
};

#define SPAWN_FDS_MAX 8

/* The child gets nothing else: no other descriptor, no environment, no signal that is
 * blocked or ignored; a session of its own, so that the terminal's Ctrl-C reaches only
 * us. */
int spawn_role(const struct spawn_plan *plan, pid_t *ret_pid, struct fault *f)
	__attribute__((nonnull));

/* Wait for the child's end. Its wait status; -1 when it is not ours to wait for. */
int spawn_wait(pid_t pid);
