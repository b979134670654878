/* A program of the system that does a part of the work, started with its streams in our hands.
 *
 *   runs in    the command line
 *   owns       a struct command owns the process and what it has said
 */
#pragma once

#include <sys/types.h>

struct fault;

struct command {
	pid_t pid;
	int err_fd; /* a memory with what it has written to stderr */
	const char *name;
};

/* Start argv[0], found in the system's own folders, with `in_fd` and `out_fd` as its stdin and
 * stdout (-1: /dev/null), no other descriptor and an environment of PATH, LANG and TMPDIR (/var/tmp: a
 * root is large). */
int command_start(struct command *c, const char *const *argv, int in_fd, int out_fd,
	struct fault *f) __attribute__((nonnull));

/* Wait for its end. A status that is not 0 is a fault with the end of what it has said. */
int command_wait(struct command *c, struct fault *f) __attribute__((nonnull));

/* The same, and tick(ctx, seconds) is called with each second that it takes: for work of minutes that a
 * person waits for. */
int command_watch(struct command *c, void (*tick)(void *ctx, unsigned seconds), void *ctx,
	struct fault *f) __attribute__((nonnull(1, 2, 4)));

/* Kill it, if it is there, and forget it. */
void command_end(struct command *c) __attribute__((nonnull));
