/* How programs start in an image: what was asked for, or by what is in it.
 *
 *   runs in    the process that reads archives; pure
 */
#pragma once

#include "edge/image/bundle.h"
#include "edge/image/tree.h"
#include "wire/image.h"

/* Can `variable` be one more of `env`, with places left for PATH, HOME and LANG? Each of those has one. */
bool start_has_room(const char (*env)[RUNTIME_PATH_MAX], const char *variable)
	__attribute__((nonnull));

/* `wanted`: what is set in it wins; what is empty is chosen: python3 in the image's PATH, and
 * where there is none, a shell. The interpreter must be a file of the image. */
int start_choose(const struct tree *t, const struct bundle *b, const struct image_start *wanted,
	struct image_start *ret, struct fault *f) __attribute__((nonnull));
