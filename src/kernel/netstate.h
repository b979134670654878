/* What a network namespace remembers of what was done in it: its counters, its lists, its
 * sockets. While that is what it was at first, nothing has left a trace there that a program
 * could see.
 *
 *   runs in    the supervisor
 *   owns       the files through which it looks, from netstate_open() to netstate_close()
 *   blocks     never
 *   trusts     the kernel's own files
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct fault;

#define NETSTATE_FILES    8
#define NETSTATE_TEXT_MAX 32768 /* Linux 6.18 with IPv6: 9.1 KB */

struct netstate {
	int fd[NETSTATE_FILES]; /* -1: this kernel has no such file, or nothing is open */
	size_t len;             /* of what they said at first; 0: nothing is open */
	char text[NETSTATE_TEXT_MAX];
};

/* Look for the first time at the namespace that process `pid` is in; the caller knows that it
 * lives. Files that this kernel does not have are left out. -EFBIG: the kernel says more than
 * there is room for. On failure nothing is open. */
int netstate_open(pid_t pid, struct netstate *ret, struct fault *f)
	__attribute__((nonnull, warn_unused_result));

/* Is everything as it was at first, with no socket open and no connection that has not been
 * forgotten? False also for one that is not open, or cannot be read. */
bool netstate_is_as_made(const struct netstate *n) __attribute__((nonnull));

/* Harmless if it is not open; a struct of zeros must be cleared first. */
void netstate_close(struct netstate *n) __attribute__((nonnull));
void netstate_clear(struct netstate *n) __attribute__((nonnull));
