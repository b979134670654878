/* The collector's end of the stream of wire/files.h: records, gathered into large writes.
 *
 *   runs in    the collector
 *   owns       its buffer; the pipe is the caller's
 *   threads    none
 *   blocks     until the client has read; the supervisor ends a collector that takes too long
 */
#pragma once

#include "wire/files.h"

struct out {
	int fd;
	int error;        /* the first negative errno of a write; nothing is written after it */
	uint64_t skipped; /* spent of FILES_SKIPPED_MAX */
	uint64_t more;    /* left out without a name */
	size_t len;
	char bytes[FILES_CHUNK];
};

void out_init(struct out *o, int fd) __attribute__((nonnull));

/* Begin a file of `size` bytes; some of them; its end. */
void out_file(struct out *o, const char *path, size_t len, uint64_t size) __attribute__((nonnull));
void out_bytes(struct out *o, const void *bytes, uint32_t len) __attribute__((nonnull));
void out_close(struct out *o, enum files_reason why) __attribute__((nonnull));

/* Name what is left out, or count it when too much has been named already. */
void out_skip(struct out *o, const char *path, size_t len, uint64_t size, enum files_reason why)
	__attribute__((nonnull));

/* All is said. 0, or the negative errno of a write that failed. */
int out_end(struct out *o) __attribute__((nonnull));
