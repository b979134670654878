/* Private memory that becomes a private mapping of a file with the same contents.
 *
 * A fork copies a page table entry for each page of private memory that was ever written,
 * and a process that ends has to look at each of them. Pages of a file that nobody has
 * written to since cost less of both: they lie next to each other in large pages.
 *
 *   runs in    a zygote: one thread
 *   owns       nothing; the mappings keep the file alive
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fault;

struct remap_range {
	uintptr_t start, end; /* whole pages, private */
	bool read_only;       /* otherwise writable too; it stays as it is */
};

/* Copy the ranges into the empty file `fd`, and map it in their place. When this fails, a
 * range may be missing: the process has to end.
 *
 * Whoever discards pages of a range with madvise() finds the contents of now there
 * afterwards, not zeros: no range may belong to an allocator that relies on zeros. */
int remap_onto_file(int fd, const struct remap_range *ranges, unsigned count, struct fault *f)
	__attribute__((nonnull, warn_unused_result));
