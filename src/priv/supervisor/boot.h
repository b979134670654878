/* From what the command line handed over to checked settings: starts the config process
 * and awaits its messages.
 *
 *   runs in    the supervisor and the probe, at start
 *   blocks     until the config process has answered; at most BOOT_TIMEOUT_MS
 *   trusts     only what settings_fault() and language_fault() have passed, and no byte of the policy
 */
#pragma once

#include "wire/language.h"
#include "wire/settings.h"

struct fault;

#define BOOT_TIMEOUT_MS 10000

/* The descriptors that every role which reads settings inherits. */
enum boot_fd {
	BOOT_CHANNEL = 3,   /* to the library, or /dev/null for a server */
	BOOT_OVERRIDES = 4, /* memfd of "key=value\0" records: environment, then flags */
	BOOT_CONFIG = 5     /* the YAML file, or /dev/null */
};

/* What is set. */
struct boot {
	struct settings *settings;
	struct languages *languages;
	int policy_fd; /* sealed, of a struct network_policy's size; nobody here looks into it */
};

/* `self_fd` is the program's own image. Closes BOOT_OVERRIDES and BOOT_CONFIG. 0: *ret is filled, and
 * its descriptor the caller's. */
int boot_settings(int self_fd, struct boot *ret, struct fault *f) __attribute__((nonnull));
