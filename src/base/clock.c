#include "base/clock.h"

#include <limits.h>
#include <time.h>

uint64_t clock_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

int clock_ms_until(uint64_t deadline_ns)
{
	uint64_t now = clock_ns(), ms;

	if (deadline_ns <= now)
		return 0;
	ms = (deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}
