/* In which order, and when, a run's two streams were written: as whoever reads them saw it. The
 * bytes stay where they are kept (output.h); here is only which of them came with which reading.
 *
 *   runs in    the front, the caller
 *   owns       its list of chunks, which is bounded
 *   threads    none
 */
#pragma once

#include "api/output.h"
#include "api/writer.h"

#include <stddef.h>
#include <stdint.h>

/* Chunks kept: the first half and the last half. What comes within so short a time from one stream
 * is one chunk. */
#define TIMELINE_CHUNKS_MAX 1024u
#define TIMELINE_JOIN_NS    UINT64_C(1000000)

enum timeline_stream {
	TIMELINE_OUT,
	TIMELINE_ERR,
	TIMELINE_STREAMS
};

struct timeline_chunk {
	uint64_t at_ns;    /* when its first byte was read */
	uint64_t from, to; /* bytes of the stream, counted from its beginning */
	uint32_t stream;   /* enum timeline_stream */
};

struct timeline {
	struct timeline_chunk *chunks; /* TIMELINE_CHUNKS_MAX of them; NULL until the first byte */
	uint64_t count;                /* of all that there were */
	uint64_t omitted_bytes;        /* in those that are not kept */
};

/* `len` bytes (over 0) of `stream` were read at `now_ns`; they are those from `from` on. */
void timeline_note(struct timeline *t, enum timeline_stream stream, uint64_t from, size_t len,
	uint64_t now_ns) __attribute__((nonnull));
void timeline_free(struct timeline *t) __attribute__((nonnull));

/* The member "interleaved"; times are milliseconds since `begin_ns`. The views are those of the
 * streams. NULL for `t`: null. */
void timeline_put(const struct timeline *t, uint64_t begin_ns,
	const struct output_view views[TIMELINE_STREAMS], struct writer *w)
	__attribute__((nonnull(3, 4)));
