/* Time that only goes forward (CLOCK_MONOTONIC), in nanoseconds.
 *
 *   runs in    every process
 */
#pragma once

#include <stdint.h>

#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_US UINT64_C(1000)

uint64_t clock_ns(void);

/* Milliseconds from now until `deadline_ns`, rounded up, at least 0 and at most
 * INT_MAX: what poll() and epoll_wait() take. */
int clock_ms_until(uint64_t deadline_ns);

/* The one that comes first; UINT64_MAX stands for never. */
static inline uint64_t clock_earlier(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}
