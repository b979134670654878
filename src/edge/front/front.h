/* The front: requests in, SUBMIT out; RESULT in, answers out. See front.c for how the
 * parts play together.
 *
 *   runs in    the front
 *   owns       the channel, the listening socket, all requests and runs
 *   threads    none; everything happens inside front_run()
 *   trusts     the supervisor; nothing that clients or programs send
 */
#pragma once

#include "wire/msg.h"

#include <stdint.h>

struct event_base;
struct fault;
struct front;

struct front_plan {
	struct event_base *base;       /* borrowed */
	int channel_fd, listen_fd;     /* taken, on failure too */
	int store_fd;                  /* the same; for runs' files if it is a regular file */
	const struct msg_hello *hello; /* copied */
	struct offers *offers;         /* borrowed, kept up to date; NULL: none */
};

struct front *front_create(const struct front_plan *plan, struct fault *f)
	__attribute__((nonnull, warn_unused_result));
void front_destroy(struct front *fr);

/* Serve until drained (0) or until the supervisor is gone or the loop broken (1). */
int front_run(struct front *fr) __attribute__((nonnull));

/* The largest file that a front of these settings makes. */
uint64_t front_file_bytes(const struct settings *s) __attribute__((nonnull));

/* Descriptors that a front of these settings can need at once. */
uint32_t front_open_files(const struct settings *s) __attribute__((nonnull));
