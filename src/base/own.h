/* Scope-bound ownership: a variable declared with one of these attributes is
 * released on every path out of its block.
 *
 *   - always initialise at the declaration (-1 for fds, NULL for pointers);
 *   - hand ownership on with take_fd()/take_ptr(), never by plain assignment;
 *   - never `goto` in a function that uses these (-Wjump-misses-init enforces it).
 *
 *   runs in    every process
 */
#pragma once

#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn)  __attribute__((__cleanup__(fn)))
#define cleanup_fd   CLEANUP(cleanup_fd_)
#define cleanup_free CLEANUP(cleanup_free_)

/* Linux frees the descriptor even when close() reports EINTR, so a retry could
 * close somebody else's file. Call once, ignore the result. */
static inline void cleanup_fd_(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline void cleanup_free_(void *p)
{
	free(*(void **)p);
}

/* The descriptor in *fd, which no longer owns it. */
static inline int take_fd(int *fd)
{
	int r = *fd;

	*fd = -1;
	return r;
}

/* Close *fd if it is open and mark it closed. */
static inline void drop_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(take_fd(fd));
}

/* The pointer in p, which no longer owns it. */
#define take_ptr(p)                       \
	({                                \
		__auto_type taken_ = (p); \
		(p) = NULL;               \
		taken_;                   \
	})
