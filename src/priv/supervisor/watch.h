/* Descriptors of one module in the supervisor's epoll: its events are numbered from a token
 * on, so that the loop can tell whose they are.
 *
 *   runs in    the supervisor
 *   owns       nothing: neither the epoll nor what is watched
 *   threads    none
 *   blocks     never
 */
#pragma once

#include <stdint.h>

/* How many may wait to be watched; a cell has five descriptors that are. What comes on top is seen
 * by the deadlines. */
#define WATCH_MISSED_MAX 64

struct watch {
	int epoll_fd;
	uint64_t token; /* epoll data of the module's number 0 */
};

/* Watch `fd` for `events` (EPOLLIN …), as number `n`. -1, and one that is watched already, are
 * accepted. What the kernel has no memory for now is logged, and tried again by watch_retry(). */
void watch_add(const struct watch *w, unsigned n, int fd, uint32_t events) __attribute__((nonnull));

/* Before every close: a copy of the descriptor in a child that has not reached its exec yet
 * would keep the event alive. -1, and one that is not watched, are accepted. */
void watch_drop(const struct watch *w, int fd) __attribute__((nonnull));

/* Try again what failed: when the next try is due, UINT64_MAX for never. */
uint64_t watch_retry(uint64_t now_ns);
