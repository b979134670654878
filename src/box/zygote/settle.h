/* The zygote's free memory, arranged so that a child's first allocations share few pages.
 *
 * What is free lies scattered between what is used. A child would take a piece here and one
 * there, and each is a page of its own to copy, and one more for what the allocator notes
 * beside it. So the zygote takes all of them itself, and leaves untouched memory at the end
 * of the heap, and for each size of small objects a pool in which there is nothing yet.
 *
 *   runs in    a zygote
 *   owns       what it takes, for good
 */
#pragma once

#include "kernel/remap.h"

/* After the last import, before the memory is shared (share.h). */
void settle_memory(void);

#define SETTLE_ARENAS_MAX 64

/* Parts of the interpreter's arenas that were seen by this; those that were not are empty. */
const struct remap_range *settle_arenas(void);
