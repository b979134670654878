/* What `glovebox image` was told, and its actions.
 *
 *   runs in    the command line
 */
#pragma once

#include "caller/image/store.h"
#include "wire/image.h"

#include <stdbool.h>

struct fault;

#define IMAGE_OPERANDS_MAX 64

struct image_command {
	const char *dir;
	bool json, replace, trusted;
	struct msg_unpack ask;
	const char *operands[IMAGE_OPERANDS_MAX]; /* borrowed from argv */
	unsigned count;
	struct store store;
};

/* Each returns 0, or a negative errno with the reason. */
int image_import(struct image_command *c, struct fault *f) __attribute__((nonnull));
int image_build(struct image_command *c, struct fault *f) __attribute__((nonnull));
int image_list(struct image_command *c, struct fault *f) __attribute__((nonnull));
int image_verify(struct image_command *c, struct fault *f) __attribute__((nonnull));
int image_remove(struct image_command *c, struct fault *f) __attribute__((nonnull));
