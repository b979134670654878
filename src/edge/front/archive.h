/* A tar of a run's files, made as it is read.
 *
 *   runs in    the front
 *   owns       what libarchive needs, some 2 KiB; a piece of the tar until it is read
 *   threads    none
 *   blocks     as reading the shelf does
 */
#pragma once

#include <sys/types.h>

struct archive_stream;
struct shelf;
struct stored;

/* `run` stays the caller's, and must outlive it. NULL: out of memory. */
struct archive_stream *archive_stream_create(const struct shelf *shelf, const struct stored *run)
	__attribute__((nonnull, warn_unused_result));
void archive_stream_destroy(struct archive_stream *a);

/* The next bytes of the tar: how many, 0 at its end, a negative errno. */
ssize_t archive_stream_read(struct archive_stream *a, void *bytes, size_t room)
	__attribute__((nonnull));
