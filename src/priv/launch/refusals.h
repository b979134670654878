/* The system calls that a program was denied: its filter's listener, and what it has told of.
 *
 * Only denied calls are told of; each waits for its answer, which is always the policy's errno.
 * A run is answered DENIED_ANSWERS_MAX times. After that the listener is closed, the kernel says
 * ENOSYS to further ones by itself, and nothing more is counted: what a program can make the
 * supervisor do is bounded.
 *
 *   runs in    the supervisor and the probe
 *   owns       the listener, until refusals_close()
 *   threads    none
 *   blocks     never
 *   trusts     nothing: what comes are numbers of the kernel's making about a hostile process
 */
#pragma once

#include "wire/denied.h"

#include <stdint.h>

/* Some 10 us of CPU each, and a turn of the loop: fewer than urgency.c takes for spinning. More
 * than there are calls that are denied. */
#define DENIED_ANSWERS_MAX 128

struct refusals {
	int fd;            /* -1: none, or no longer */
	unsigned answered; /* since it was taken */
	struct denied told;
};

void refusals_clear(struct refusals *r) __attribute__((nonnull));

/* Take over a listener that has just come, for what will now run. */
void refusals_take(struct refusals *r, int fd) __attribute__((nonnull));

/* The program begins: what was denied before is not its own. */
void refusals_forget(struct refusals *r) __attribute__((nonnull));

/* Answer and count what waits, at most some of it. 1: more may come. 0: nobody is left who could
 * ask, and the caller stops watching it. A negative errno: the caller closes it at once, or who
 * asks would wait: -EDQUOT when there were DENIED_ANSWERS_MAX, others when it is no listener. */
int refusals_hear(struct refusals *r) __attribute__((nonnull));

void refusals_close(struct refusals *r) __attribute__((nonnull));

/* Put the calls, and nothing else, into *ret. */
void refusals_tell(const struct refusals *r, struct denied *ret) __attribute__((nonnull));
