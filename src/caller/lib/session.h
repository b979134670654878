/* A session: the supervisor that was started for us, and its channel.
 *
 *   runs in    the caller
 *   owns       the child and the descriptors, until gbx_close()
 *   threads    see include/glovebox.h
 *   trusts     the supervisor, as far as msg_admit() lets it
 */
#pragma once

#include "wire/channel.h"

#include <glovebox.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gbx_session {
	pid_t pid;
	int channel_fd; /* non-blocking */
	int cancel_fd;  /* eventfd: readable while a cancel is wanted */
	uint64_t last_run;
	bool lost; /* the channel broke: nothing works any more */
	struct msg_hello hello;
	struct offers offers;
};

/* How long the supervisor may take to find its cgroups and make its root view, and how
 * long the probe may look around. Both take well under a second; this is for hosts
 * that hang. */
#define SESSION_START_MS 60000

/* Start the program in `role` ("@supervisor", "@probe") with the options' settings. */
int session_start(const struct gbx_options *options, const char *role, pid_t *ret_pid,
	int *ret_channel_fd, struct fault *f) __attribute__((nonnull(2, 3, 4, 5)));

/* The next message from the supervisor, waited for until `deadline_ns`. 0 or a negative
 * errno: -EPIPE when it has gone, -ETIMEDOUT, -EPROTO. */
int session_next(int channel_fd, uint64_t deadline_ns, struct msg *ret, struct fault *f)
	__attribute__((nonnull));

/* Tell the caller's error struct, if there is one; returns f->code. */
int session_tell(struct gbx_error *error, const struct fault *f) __attribute__((nonnull(2)));
