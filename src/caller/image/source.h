/* The archive that an image is made from, as a file that can be sought: a file is opened, a pipe
 * is kept in a file without a name, and a folder (an OCI layout) is put into one as a tar.
 *
 *   runs in    the command line
 *   blocks     until a pipe ends
 */
#pragma once

#include "caller/image/store.h"

/* `path`: a file, a folder, or "-" for stdin. At most `bytes_max` are kept of a pipe or a folder. The
 * descriptor is the caller's. */
int source_open(const struct store *s, const char *path, uint64_t bytes_max, struct fault *f)
	__attribute__((nonnull));

/* A file without a name on the store's file system, which has room for images. */
int source_nameless(const struct store *s, struct fault *f) __attribute__((nonnull));
