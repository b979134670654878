/* The TCP/IP stack (libslirp): it makes a socket of this process of each connection of the cell, and
 * packets for the cell of what comes in there. It wants Ethernet, which the cell does not have: both
 * ends of it are made up here.
 *
 *   runs in    the gate
 *   owns       libslirp's stack and its sockets, from tcpip_open() to the end of the process
 *   threads    none
 *   blocks     never
 *   trusts     that what it is given was judged before
 */
#pragma once

#include "edge/gate/packet.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fault;

/* A packet of the stack's for the cell, of at most PACKET_MAX bytes if it is one that fits. */
typedef void tcpip_take_fn(void *ctx, const uint8_t *packet, size_t len);

struct tcpip {
	struct Slirp *slirp;
	tcpip_take_fn *take;
	void *ctx;
	struct {
		int id; /* enum SlirpTimerId */
		void *ctx;
		uint64_t due_ns; /* UINT64_MAX: not armed */
	} timer;                 /* the stack has one, for router advertisements */
	struct pollfd *polls;    /* the caller's, while it fills them */
	unsigned poll_count, poll_max;
};

/* Once for a process, at a place that stays. */
int tcpip_open(struct tcpip *t, tcpip_take_fn *take, void *ctx, struct fault *f)
	__attribute__((nonnull(1, 2, 4), warn_unused_result));

/* A packet of the cell's. */
void tcpip_send(struct tcpip *t, const struct packet *p) __attribute__((nonnull));

/* What it waits for: behind the first `count` of `polls`, which has room for `max`. *wait_ms may become
 * less. Returns how many there are then. */
unsigned tcpip_fill(struct tcpip *t, struct pollfd *polls, unsigned count, unsigned max,
	uint32_t *wait_ms) __attribute__((nonnull));

/* After a poll() of them; `failed`: it has said nothing. */
void tcpip_hear(struct tcpip *t, bool failed) __attribute__((nonnull));

/* When tcpip_tick() has something to do, which looks itself whether it is time. */
uint64_t tcpip_due(const struct tcpip *t) __attribute__((nonnull));
void tcpip_tick(struct tcpip *t, uint64_t now_ns) __attribute__((nonnull));
