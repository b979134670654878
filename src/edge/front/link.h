/* The front's end of the channel to the supervisor: never blocks, keeps what the
 * socket cannot take in a bounded queue, hands in what arrives one message at a time.
 *
 *   runs in    the front
 *   owns       the channel's descriptor, the messages not yet sent and their descriptors
 *   threads    none
 *   trusts     the supervisor; a broken rule or a closed channel ends the link all the same
 */
#pragma once

#include "wire/channel.h"

#include <stdint.h>

struct event_base;
struct link;

struct link_calls {
	/* A message; what is left in m->fds is closed afterwards. */
	void (*got)(struct msg *m, void *ctx);
	/* The supervisor is gone, for the reason that the constant text names. The link
	 * is dead but still to be destroyed. Called once, never from link_send(). */
	void (*lost)(const char *why, void *ctx);
	void *ctx;
};

/* `fd` is taken, on failure too. At most `room` messages wait to be sent. NULL: out of
 * memory, or the descriptor cannot be watched. */
struct link *link_create(struct event_base *base, int fd, unsigned room,
	const struct link_calls *calls) __attribute__((nonnull, warn_unused_result));
void link_destroy(struct link *l);

/* Send, now or as soon as the channel takes it, in order. The msg_fds(type) descriptors
 * in `fds` are taken in every case. 0; -ENOBUFS when `room` messages wait already;
 * -EPIPE when the link is dead; -ENOMEM and the like when the kernel is short of it. */
int link_send(struct link *l, enum msg_type type, const void *payload, int *fds)
	__attribute__((nonnull(1, 3), warn_unused_result));
