#include <Python.h> /* first: it may define what the C library's headers look at */

#include "box/zygote/settle.h"

#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Of CPython's allocator for small objects (obmalloc.c), on a machine of 64 bits. */
#define POOL_BYTES      16384u
#define POOL_HEAD_BYTES 48u
#define ARENA_NUMBER_AT 32u /* in a pool's head */
#define ARENA_BYTES     ((uintptr_t)1 << 20)
#define ALIGNMENT       16u
#define SMALL_MAX       512u

#define LARGE_MAX ((size_t)64 << 10) /* beyond, malloc() has few free pieces */
#define FREE_MAX  ((size_t)1 << 20)  /* is taken of one size at most */

/* Of each arena, from the first to the last pool that was seen in it: all between them is
 * the arena's too. */
static struct remap_range arenas[SETTLE_ARENAS_MAX];

static void note_pool(uintptr_t pool)
{
	uint32_t arena = *(const uint32_t *)(pool + ARENA_NUMBER_AT);

	if (arena >= SETTLE_ARENAS_MAX)
		return;
	if (arenas[arena].end == 0)
		arenas[arena].start = pool;
	if (pool < arenas[arena].start)
		arenas[arena].start = pool;
	if (pool + POOL_BYTES > arenas[arena].end)
		arenas[arena].end = pool + POOL_BYTES;
}

const struct remap_range *settle_arenas(void)
{
	return arenas;
}

/* Up to the first piece of a pool. */
static void fill_pools(size_t size)
{
	for (size_t taken = 0; taken < FREE_MAX; taken += size) {
		uintptr_t at = (uintptr_t)PyObject_Malloc(size);

		if (at == 0)
			return;
		note_pool(at - at % POOL_BYTES);
		if (at % POOL_BYTES == POOL_HEAD_BYTES)
			return;
	}
}

/* Until malloc() takes from the end of the heap. */
static void fill_heap(size_t size)
{
	for (size_t taken = 0; taken < FREE_MAX; taken += size) {
		size_t end = mallinfo2().keepcost;
		void *volatile piece = malloc(size); /* or a compiler leaves it out */

		if (!piece || mallinfo2().keepcost != end)
			return;
	}
}

/* No arena is larger than this: a span that is shows that its number was none. */
static void drop_what_cannot_be(void)
{
	for (unsigned i = 0; i < SETTLE_ARENAS_MAX; i++) {
		if (arenas[i].end - arenas[i].start > ARENA_BYTES)
			arenas[i] = (struct remap_range){ 0 };
	}
}

void settle_memory(void)
{
	const char *allocator = _PyMem_GetCurrentAllocatorName();
	bool known = allocator && strcmp(allocator, "pymalloc") == 0;

	for (size_t size = ALIGNMENT; known && size <= SMALL_MAX; size += ALIGNMENT)
		fill_pools(size);
	drop_what_cannot_be();
	for (size_t size = LARGE_MAX; size > 1024; size /= 2)
		fill_heap(size);
	for (size_t size = 1024; size >= ALIGNMENT; size -= ALIGNMENT)
		fill_heap(size);
}
