/* One entry of a layer, put into the tree: what is allowed, what is left out, what is refused.
 *
 *   runs in    the process that reads archives; pure
 *   trusts     no entry
 */
#pragma once

#include "edge/image/tree.h"
#include "wire/image.h"

#include <archive_entry.h>

struct fault;

/* Counts what it leaves out in *losses. */
int entries_add(struct tree *t, struct archive_entry *e, uint32_t layer,
	struct image_losses *losses, struct fault *f) __attribute__((nonnull));

/* Has the entry contents that entries_add() has made a file for? */
bool entries_is_file(struct archive_entry *e) __attribute__((nonnull));
