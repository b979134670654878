/* What stack.c, which judges packets, and stack_loop.c, which waits for them, share.
 *
 *   runs in    the gate
 */
#pragma once

#include "edge/gate/flows.h"
#include "edge/gate/hold.h"
#include "edge/gate/names.h"
#include "edge/gate/pace.h"
#include "edge/gate/pings.h"
#include "edge/gate/rules.h"
#include "edge/gate/stack.h"
#include "edge/gate/tcpip.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

struct stack {
	struct tcpip tcpip;
	struct rules rules;
	struct flows flows;
	struct names names;
	struct holds holds;
	struct pace pace;
	struct pings pings;
	struct network_record *shared;
	int tun_fd, channel_fd;
	uint64_t max_connections, max_bytes; /* the lower of the operator's and the request's */
	bool carries_echo;                   /* of IPv4 */
	bool gone;                           /* the cell's interface is */
	int broken;                          /* ...or gives this error */
	uint64_t swept_ns;
	struct pollfd polls[STACK_FILES_MAX];
};

/* A packet that the cell has sent. */
void stack_judge(struct stack *s, const uint8_t *bytes, size_t len) __attribute__((nonnull));

/* Reading or writing its interface has failed with `error`, an errno: that it is gone, that nothing was
 * to be had, or that something is wrong. */
void stack_note_error(struct stack *s, int error) __attribute__((nonnull));
