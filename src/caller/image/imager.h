/* The confined process that reads what others made (src/edge/image/main.c), started and asked.
 *
 *   runs in    the command line
 *   owns       a struct imager owns the process and the channel
 *   trusts     nothing that it says but by wire/msg.h
 */
#pragma once

#include "wire/channel.h"

#include <stdbool.h>
#include <sys/types.h>

struct fault;

struct imager {
	pid_t pid;
	int channel_fd;
};

/* Start it for one job ("unpack", "digest") on the descriptors `in_fd` and `out_fd` (-1: none). */
int imager_start(struct imager *i, const char *job, int in_fd, int out_fd, struct fault *f)
	__attribute__((nonnull));

/* The next message of it; IMAGE_BAD and a death without a word (-ECONNRESET) are faults. */
int imager_hear(const struct imager *i, struct msg *ret, struct fault *f) __attribute__((nonnull));

/* End it and wait for it. */
void imager_end(struct imager *i) __attribute__((nonnull));

/* The SHA-256 and the size of the file in `fd`. */
int imager_digest(int fd, struct msg_digest *ret, struct fault *f) __attribute__((nonnull));
