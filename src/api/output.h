/* What is kept of one output stream: the beginning and the end, in bounded memory, with
 * an exact count of what was dropped between them.
 *
 *   runs in    the front, the caller
 *   owns       its buffer, which grows with the output, never past the cap
 *   threads    none
 *   trusts     no byte
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output_capture {
	size_t cap, head_cap; /* bytes[0..head_cap) is the head, the rest of it the tail */
	char *bytes;          /* one buffer, so that what was not cut is one piece */
	size_t len, room;
	size_t oldest;  /* once full, the tail is a ring: its oldest byte, from head_cap on */
	uint64_t total; /* bytes fed so far */
};

/* Keep at most `cap` bytes (at least 1): the first half and the last half. Allocates
 * nothing yet. */
void output_init(struct output_capture *o, size_t cap) __attribute__((nonnull));
void output_free(struct output_capture *o) __attribute__((nonnull));

/* Take `len` more bytes. 0, or -ENOMEM: some of them count as dropped. */
int output_feed(struct output_capture *o, const void *bytes, size_t len)
	__attribute__((nonnull(1)));

/* The kept bytes, borrowed until the next call on `o`. Nothing dropped: all of it is the
 * head. Otherwise both sides are cut at a character boundary, and those few bytes count as
 * dropped: head_len + tail_len + dropped == total, always. */
struct output_view {
	const char *head, *tail;
	size_t head_len, tail_len;
	uint64_t total, dropped;
	bool utf8; /* head and tail are valid UTF-8; otherwise the output is "binary" */
};

/* Not const: straightens the ring in place. */
struct output_view output_view(struct output_capture *o) __attribute__((nonnull));
