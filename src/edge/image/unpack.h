/* The layers of an archive added up, and what they add up to written as one clean tar: files,
 * directories and symbolic links, all of them root's and readable by everybody, none of them
 * with a set-id bit, a capability or a device behind it.
 *
 * Twice through the layers: first the names (tree.h), then the contents of those files that are
 * still there. Nothing is kept but the names.
 *
 *   runs in    the process that reads archives
 *   blocks     as its descriptors do
 *   trusts     no byte of the archive
 */
#pragma once

#include "wire/image.h"

#include <stddef.h>

struct fault;

typedef void unpack_progress_fn(void *ctx, const struct msg_unpacking *now);

/* The inventory (wire/image.h), when all else is done. 0 or a negative errno. */
typedef int unpack_listed_fn(void *ctx, const char *text, size_t len);

struct unpack {
	int in_fd, out_fd; /* the archive, which can be sought; the tar */
	const struct msg_unpack *ask;
	unpack_progress_fn *progress;
	unpack_listed_fn *listed;
	void *ctx;
};

int unpack_run(const struct unpack *u, struct msg_unpacked *ret, struct fault *f)
	__attribute__((nonnull));
