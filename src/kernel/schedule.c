#include "kernel/schedule.h"

#include "kernel/sys.h"

#include <sched.h>

/* <linux/sched/types.h> cannot stand beside <sched.h>. This is its first version. */
struct attributes {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

#define FLAG_RESET_ON_FORK 1u

int schedule_normal(pid_t pid, int nice, uint64_t slice_ns)
{
	const struct attributes a = {
		.size = sizeof(a),
		.policy = SCHED_OTHER,
		.nice = nice,
		.runtime = slice_ns,
	};

	return sys.sched_setattr(pid, &a, 0);
}

int schedule_real_time(unsigned priority)
{
	const struct attributes a = {
		.size = sizeof(a),
		.policy = SCHED_RR,
		.flags = FLAG_RESET_ON_FORK,
		.priority = priority,
	};

	return sys.sched_setattr(0, &a, 0);
}
