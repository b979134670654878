/* Forking a process that goes on, without an exec: a raw clone3() into another pid
 * namespace and cgroup, whose child the C library still believes in.
 *
 *   runs in    a zygote: one thread, which must be the main one
 *   owns       descriptors go to the caller
 *   kernel     5.7 (CLONE_INTO_CGROUP), 5.5 (CLONE_CLEAR_SIGHAND)
 */
#pragma once

#include <sys/types.h>

struct fault;

struct twin {
	int own_pidns_fd;  /* the way back */
	void *tid_address; /* where the C library keeps this thread's number */
	void *robust_list; /* and its list of robust mutexes, which a fork loses */
	unsigned long robust_size;
};

/* Find out, once, what every fork needs. /proc must be there. */
int twin_init(struct twin *ret, struct fault *f) __attribute__((nonnull));

/* Fork: 0 in the child, its number in the parent, or a negative errno. The child is born
 * into the pid namespace of `init_pidfd`, with `number` there (0: the next one), and the
 * v2 group `cgroup_fd`; it is a child of
 * the caller's parent; all its signals are blocked and none has a handler. When the caller
 * cannot get back to its own pid namespace it kills the child and ends: its next child
 * would be born into a cell. */
pid_t twin_fork(const struct twin *t, int init_pidfd, int cgroup_fd, pid_t number, int *ret_pidfd,
	struct fault *f) __attribute__((nonnull));

/* How many threads does the caller have, and has it a child? -ECHILD: none. */
int twin_threads(void);
int twin_children(void);
