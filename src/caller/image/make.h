/* An image made of an archive: what the confined process writes goes straight into mksquashfs, the
 * result is hashed and put into the store.
 *
 *   runs in    the command line, as root
 *   blocks     as long as it takes
 */
#pragma once

#include "caller/image/store.h"
#include "wire/image.h"

struct fault;

/* `now` is NULL when the last word of progress is to be taken away. */
typedef void make_progress_fn(void *ctx, const struct msg_unpacking *now);

struct make {
	struct store *store; /* locked */
	const char *name;
	int source_fd; /* the archive, which can be sought */
	struct msg_unpack ask;
	bool trusted; /* as of struct image_record */
	make_progress_fn *progress;
	void *ctx;
};

/* Make it. On failure the store is as it was. */
int make_image(const struct make *m, struct image_record *ret, struct image_losses *ret_losses,
	struct fault *f) __attribute__((nonnull));
