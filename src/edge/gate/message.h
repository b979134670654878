/* Messages of DNS that the gate makes itself: questions to resolvers and answers to the cell.
 *
 *   runs in    the gate
 */
#pragma once

#include "wire/network.h"

#include <stddef.h>
#include <stdint.h>

/* Of no more bytes than any client or server takes: RFC 1035, 4.2.1. */
#define MESSAGE_MAX 512u

struct message_head {
	unsigned id, flags, type; /* type: ns_t_... */
	const char *name;
};

/* A message with a question. Returns its length, 0 for a name that does not fit. */
size_t message_begin(uint8_t ret[MESSAGE_MAX], const struct message_head *h)
	__attribute__((nonnull));

/* An address of the question's name and type (A or AAAA) behind the `len` bytes that there are, and
 * the count of them, `nth` from 0. Returns the new length; the same when there is no room. */
size_t message_add(uint8_t ret[MESSAGE_MAX], size_t len, unsigned type, unsigned nth,
	const struct network_address *a) __attribute__((nonnull));
