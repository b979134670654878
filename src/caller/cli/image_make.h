/* What `import` and `build` have in common.
 *
 *   runs in    the command line
 */
#pragma once

#include "caller/cli/image.h"

struct fault;

/* store_lock(); who has to wait for another command, which may read from a pipe, is told. */
int image_lock(struct image_command *c, struct fault *f) __attribute__((nonnull));

/* Open and lock the store. -EEXIST: there is an image of that name, and it is not to be replaced. */
int image_prepare(struct image_command *c, const char *name, struct fault *f)
	__attribute__((nonnull));

/* Make the image `name` as c->ask says from the archive in `source_fd`, with a line of progress on
 * a terminal, and say what has been made. */
int image_make(struct image_command *c, const char *name, int source_fd, struct fault *f)
	__attribute__((nonnull));

/* A line of a terminal that is written over and over; NULL takes it away. */
void image_say_step(const char *name, const char *step) __attribute__((nonnull(1)));
