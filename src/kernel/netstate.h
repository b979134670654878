/* What a network namespace remembers of what was done in it: its counters, its lists, its
 * sockets. Two readings that are the same show that nothing in between has left a trace
 * which a program could see there.
 *
 *   runs in    the supervisor
 *   owns       nothing
 *   blocks     never
 *   trusts     the kernel's own files
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct fault;

#define NETSTATE_TEXT_MAX 32768 /* Linux 6.18 with IPv6: 9.1 KB */

struct netstate {
	size_t len;
	char text[NETSTATE_TEXT_MAX];
};

/* Read the state of the namespace that process `pid` is in; the caller knows that it lives.
 * -EBUSY: a socket is open, or a connection has not been forgotten yet. -EFBIG: the kernel
 * says more than there is room for. Files that this kernel does not have are left out. */
int netstate_read(pid_t pid, struct netstate *ret, struct fault *f)
	__attribute__((nonnull, warn_unused_result));

bool netstate_same(const struct netstate *a, const struct netstate *b) __attribute__((nonnull));
