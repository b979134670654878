#include <Python.h> /* first: it may define what the C library's headers look at */

#include "box/zygote/settle.h"

#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Of CPython's allocator for small objects (obmalloc.c), on a machine of 64 bits. With another
 * one nothing is gained, and FREE_MAX lost for each size. */
#define POOL_BYTES      16384u
#define POOL_HEAD_BYTES 48u
#define ALIGNMENT       16u
#define SMALL_MAX       512u

#define LARGE_MAX ((size_t)64 << 10) /* beyond, malloc() has few free pieces */
#define FREE_MAX  ((size_t)1 << 20)  /* is taken of one size at most */

/* Up to the first piece of a pool. */
static void fill_pools(size_t size)
{
	for (size_t taken = 0; taken < FREE_MAX; taken += size) {
		uintptr_t at = (uintptr_t)PyObject_Malloc(size);

		if (at == 0 || at % POOL_BYTES == POOL_HEAD_BYTES)
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

void settle_memory(void)
{
	for (size_t size = ALIGNMENT; size <= SMALL_MAX; size += ALIGNMENT)
		fill_pools(size);
	for (size_t size = LARGE_MAX; size > 1024; size /= 2)
		fill_heap(size);
	for (size_t size = 1024; size >= ALIGNMENT; size -= ALIGNMENT)
		fill_heap(size);
}
