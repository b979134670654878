/* One of a program's output streams: the read end of a pipe whose other end is in the
 * cell, read as it fills, into bounded memory.
 *
 *   runs in    the front
 *   owns       the descriptor, its event, what is kept of the output
 *   threads    none; one buffer is shared by all streams of the process
 *   blocks     never
 *   trusts     no byte; a program can write for ever and costs only the reading of it
 */
#pragma once

#include "api/output.h"
#include "api/timeline.h"

struct event;
struct event_base;

struct stream {
	int fd; /* -1: closed */
	struct event *ready;
	struct output_capture kept;
	struct timeline *timeline;  /* NULL: nobody asks when and in which order */
	enum timeline_stream which; /* for that */
};

/* Start reading `fd` (taken, on failure too; non-blocking), keeping at most `cap` bytes.
 * 0 or -ENOMEM; stream_close() is due in both cases. */
int stream_open(struct stream *s, struct event_base *base, int fd, size_t cap)
	__attribute__((nonnull));

/* Take what the pipe holds at this moment. The writers are dead by now, or will not be
 * waited for: a descriptor of theirs may live on elsewhere. */
void stream_drain(struct stream *s) __attribute__((nonnull));

/* Stop, and forget what was kept. Any number of times, on a zeroed one with fd -1 too. */
void stream_close(struct stream *s) __attribute__((nonnull));
