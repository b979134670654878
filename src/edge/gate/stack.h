/* Between a cell and the TCP/IP stack (tcpip.h): each packet of the cell is read, judged and counted
 * before the stack sees it, and each packet for the cell belongs to a connection that was judged. To
 * the world it is this process that speaks.
 *
 *   runs in    the gate
 *   owns       the stack, from stack_open() to the end of the process
 *   threads    none
 *   blocks     in stack_run(), which returns when the cell is gone
 *   trusts     no byte from either side
 */
#pragma once

#include "wire/network.h"

#include <stdint.h>

struct fault;
struct stack;

/* Descriptors that it may need: as many as there may be connections (wire/settings.h), those that the
 * stack still keeps when they are over, pings and questions of names. When there is none left the next
 * connection is refused (NETWORK_SOCKETS). */
#define STACK_FILES_MAX 4096u

struct stack_plan {
	int tun_fd;     /* the other end of the cell's interface, non-blocking */
	int channel_fd; /* its end is the gate's */
	const struct network_policy *ceiling, *asked; /* looked through already */
	const struct network_address *servers;        /* resolvers */
	unsigned server_count;
	const struct rules_own *own; /* the machine's addresses */
	unsigned own_count;
	struct network_record *shared; /* the client's memory */
};

/* Once for a process. NULL: *f says why. */
struct stack *stack_open(const struct stack_plan *plan, struct fault *f)
	__attribute__((nonnull, warn_unused_result));

/* Until the cell or the supervisor is gone: 0. Otherwise what has ended it. */
int stack_run(struct stack *s, struct fault *f) __attribute__((nonnull, warn_unused_result));
