/* Exit records made by hand, as the kernel would send them.
 *
 *   runs in    unit tests
 */
#pragma once

#include <linux/taskstats.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_ROOM   4096
#define MESSAGE_PARENT 77
#define MESSAGE_CHILD  4711

struct message {
	_Alignas(8) unsigned char bytes[MESSAGE_ROOM];
	size_t len;
};

/* What the kernel says of a child MESSAGE_CHILD of MESSAGE_PARENT that ended with 7. */
struct taskstats message_usual(void);

/* The record of that, from netlink family `family`; `group`: with the part about a thread
 * group. */
void message_make(struct message *m, uint16_t family, const struct taskstats *s, bool group)
	__attribute__((nonnull));
