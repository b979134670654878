/* May this SUBMIT run? Every number against the supervisor's own ceilings, every
 * descriptor for what it must be.
 *
 *   runs in    the supervisor
 *   trusts     nothing in the message
 */
#pragma once

#include <stdbool.h>

#include "wire/channel.h"

struct fault;

/* The broken rule as a constant text, or NULL. A sender that breaks one of these is not
 * the front that we wrote, and is dropped. */
const char *submit_violation(const struct msg *m) __attribute__((nonnull));

/* 0, or a fault that names the field and the range: the run is refused. */
int submit_check_limits(const struct msg_submit *s, const struct settings *settings,
	struct fault *f) __attribute__((nonnull));

/* Is it what a NETWORK has to bring: memory of struct network_memory's size, for as long as it lives? */
bool submit_is_network_memory(int fd);
