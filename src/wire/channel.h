/* A SOCK_SEQPACKET socket that carries the messages of wire/msg.h, one a packet, with
 * their descriptors. Every packet passes msg_admit() before the caller sees it.
 *
 *   runs in    every process
 *   owns       nothing; the socket belongs to the caller
 *   blocks     as the socket does; also in close() of a descriptor that came with a packet,
 *              if the peer could make one whose close waits (a socket with SO_LINGER, a file
 *              on FUSE). The front cannot: policy/front.seccomp has no option for it. Who
 *              calls the library could, and would stop a supervisor that is its own.
 *   trusts     nothing that it reads
 */
#pragma once

#include "wire/msg.h"

#include <stdint.h>

struct msg {
	uint32_t type;
	uint32_t nfds;
	int fds[MSG_FDS_MAX]; /* close-on-exec; the caller owns them; -1 beyond nfds */
	union msg_any as;
};

/* Make a pair, both close-on-exec and non-blocking when `nonblock`. */
int channel_pair(int ret_fds[2], int nonblock) __attribute__((nonnull));

/* Send `type` with its payload and descriptors (msg_fds(type) of them; borrowed).
 * 0 or a negative errno; -EAGAIN when a non-blocking socket is full: nothing was sent. */
int channel_send(int fd, enum msg_type type, const void *payload, const int *fds)
	__attribute__((nonnull(3)));

/* Receive one message that `from` may send to `to`. 1: *ret is filled and owns its
 * descriptors. 0: the peer has closed. -EAGAIN: nothing there. -EPROTO: the peer broke
 * a rule; `ret_rule` (may be NULL) names it, every descriptor of the packet is closed,
 * and the caller should drop the peer. Another negative errno from recvmsg(). */
int channel_recv(int fd, enum role from, enum role to, struct msg *ret, const char **ret_rule)
	__attribute__((nonnull(4)));

/* Close the descriptors that `m` still owns. */
void msg_done(struct msg *m) __attribute__((nonnull));
