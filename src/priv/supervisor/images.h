/* Images of the store (wire/image.h), opened for cells.
 *
 *   runs in    the supervisor and the probe
 *   trusts     files of root's alone, and image_record_fault()
 */
#pragma once

#include "wire/image.h"

#include <stdint.h>

struct fault;
struct language;
struct languages;

/* The record of the image `name` in the store `dir`, and its root, open. -ENOENT: there is no
 * such image. */
int images_open(const char *dir, const char *name, struct image_record *ret, int *ret_fd,
	struct fault *f) __attribute__((nonnull));

/* Look at the store, now and whenever it may have changed. Every image of it that is not offered is
 * put behind the languages, as far as there is room, by its name; one that is offered and has gone,
 * or was replaced by another one, is withdrawn. An image that cannot be used is told of in the log.
 * No store is no fault. Returns a bit for each number of which something has to be told. */
uint32_t images_offer(const char *dir, struct languages *to) __attribute__((nonnull));

/* images_open() of one that was offered, with that digest: -ESTALE when it is another one by now, or
 * is not offered any more. *ret: its record, too. */
int images_open_offered(const char *dir, const struct language *offered, const uint8_t *digest,
	struct image_record *ret, int *ret_fd, struct fault *f) __attribute__((nonnull));

/* The inventory of the same image, open, or a negative errno. */
int images_open_inventory(const char *dir, const struct language *offered, const uint8_t *digest,
	struct fault *f) __attribute__((nonnull));
