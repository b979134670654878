/* A program's stdin: the write end of a pipe whose other end is in the cell, filled as the
 * program reads. What fits at once is written at once, and most stdin does: then there is
 * nothing left to watch.
 *
 *   runs in    the front
 *   owns       the bytes, the descriptor and its event
 *   threads    none
 *   blocks     never; a program that reads nothing costs the bytes until its run ends
 */
#pragma once

#include <stddef.h>

struct event;
struct event_base;
struct fault;

struct feed {
	char *bytes; /* NULL: there is nothing to write any more */
	size_t len, at;
	int fd; /* -1: closed */
	struct event *ready;
};

/* Nothing to feed: as feed_close() leaves it. */
#define FEED_NONE ((struct feed){ .fd = -1 })

/* Take `bytes` (on failure too) and begin to write them into a new pipe; *ret_read_fd is the
 * program's end. feed_close() is due in both cases. */
int feed_open(struct feed *s, struct event_base *base, char *bytes, size_t len, int *ret_read_fd,
	struct fault *f) __attribute__((nonnull));

/* Stop. Any number of times. */
void feed_close(struct feed *s) __attribute__((nonnull));
