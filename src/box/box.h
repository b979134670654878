/* What init and enter share: their channel, and how they report and fail.
 *
 *   runs in    a cell
 *   trusts     the supervisor
 */
#pragma once

#include "wire/channel.h"

struct fault;

#define BOX_CHANNEL_FD    3
#define BOX_FAILED_STATUS 125

/* Receive whatever the supervisor sends next; the caller owns its descriptors. `what` is
 * for the fault. */
int box_receive(const char *what, struct msg *ret, struct fault *f) __attribute__((nonnull));

/* Receive exactly `type`; the caller owns its descriptors. */
int box_expect(enum msg_type type, struct msg *ret, struct fault *f) __attribute__((nonnull));

/* Be killed when the supervisor dies. Again after every change of credentials, which
 * clears it; the look at the channel catches a supervisor that died in between. */
int box_die_with_supervisor(struct fault *f) __attribute__((nonnull));

/* Report `f` and end, once the report has been sent or the supervisor is gone. */
_Noreturn void box_fail(const struct fault *f, const char *who) __attribute__((nonnull));
