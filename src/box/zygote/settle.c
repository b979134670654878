#include <Python.h> /* first: it may define what the C library's headers look at */

#include "box/zygote/settle.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Of CPython's allocator for small objects (obmalloc.c), on a machine of 64 bits. */
#define POOL_BYTES      16384u
#define ALIGNMENT       16u
#define SMALL_MAX       512u
#define POOL_HEAD_BYTES 48u
#define TRIES_MAX       100000u

/* Take what is free of this size, up to the first piece of a pool that nothing is in yet. */
static void fill_pools(size_t size)
{
	for (unsigned i = 0; i < TRIES_MAX; i++) {
		uintptr_t at = (uintptr_t)PyObject_Malloc(size);

		if (at == 0 || at % POOL_BYTES == POOL_HEAD_BYTES)
			return;
	}
}

/* The same of malloc(): until it takes from the end of the heap. */
static void fill_heap(size_t size)
{
	for (unsigned i = 0; i < TRIES_MAX; i++) {
		struct mallinfo2 before = mallinfo2(), after;

		if (!malloc(size))
			return;
		after = mallinfo2();
		if (after.keepcost != before.keepcost)
			return;
	}
}

void settle_memory(void)
{
	for (size_t size = ALIGNMENT; size <= SMALL_MAX; size += ALIGNMENT)
		fill_pools(size);
	for (size_t size = 65536; size >= 1024; size /= 2)
		fill_heap(size);
	for (size_t size = 1024; size >= 16; size -= 16)
		fill_heap(size);
}
