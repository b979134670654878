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

struct watch {
	int epoll_fd;
	uint64_t token; /* epoll data of the module's number 0 */
};

/* Watch `fd` for `events` (EPOLLIN …), as number `n`. -1, and one that is watched already, are
 * accepted. A failure is logged: what was to be heard is then seen by the deadlines. */
void watch_add(const struct watch *w, unsigned n, int fd, uint32_t events) __attribute__((nonnull));

/* Before every close: a copy of the descriptor in a child that has not reached its exec yet
 * would keep the event alive. -1, and one that is not watched, are accepted. */
void watch_drop(const struct watch *w, int fd) __attribute__((nonnull));
