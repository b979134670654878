/* What an archive of an image says of itself: the layers, bottom first, and how a program is
 * started in it. `docker save` has manifest.json; an OCI layout has index.json and blobs.
 *
 *   runs in    the process that reads archives
 *   trusts     no byte
 */
#pragma once

#include "edge/image/layer.h"
#include "wire/image.h"

#include <stdbool.h>
#include <stdint.h>

struct fault;

#define BUNDLE_LAYERS_MAX 128 /* as overlay file systems stack at most, and so Docker */
#define BUNDLE_NAME_MAX   LAYER_NAME_MAX

struct bundle {
	unsigned count;
	char layers[BUNDLE_LAYERS_MAX][BUNDLE_NAME_MAX];      /* members of the archive */
	uint8_t digests[BUNDLE_LAYERS_MAX][IMAGE_DIGEST_MAX]; /* uncompressed */
	char arch[IMAGE_ARCH_MAX];
	char env[RUNTIME_ENV_MAX][RUNTIME_PATH_MAX];
	uint32_t lost_variables;
};

/* Read it from the archive. */
int bundle_read(const struct origin *from, struct bundle *ret, struct fault *f)
	__attribute__((nonnull));
