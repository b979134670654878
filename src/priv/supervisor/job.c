#include "priv/supervisor/job.h"

#include "base/check.h"

/* Every state but DONE is ended by the clock, by the caller and by a fault; and once
 * KILLING, only a cgroup in which nothing can execute leads on: an empty one, or one that holds
 * nothing but a main process of whose end the kernel has told. The one way back is for a run
 * whose program cannot have begun. */
/* clang-format off */
static const enum job_state edges[JOB_STATE_MAX][EV_MAX] = {
	[JOB_WAITING] = {
		[EV_READY]    = JOB_RUNNING,
		[EV_EXIT]     = JOB_KILLING,
		[EV_DEADLINE] = JOB_KILLING,
		[EV_OOM]      = JOB_KILLING,
		[EV_CANCEL]   = JOB_KILLING,
		[EV_BROKEN]   = JOB_KILLING,
	},
	[JOB_RUNNING] = {
		[EV_UNREAD]   = JOB_WAITING,
		[EV_EXIT]     = JOB_KILLING,
		[EV_DEADLINE] = JOB_KILLING,
		[EV_CPU]      = JOB_KILLING,
		[EV_OOM]      = JOB_KILLING,
		[EV_CANCEL]   = JOB_KILLING,
		[EV_BROKEN]   = JOB_KILLING,
	},
	[JOB_KILLING] = {
		[EV_EXIT]     = JOB_KILLING,
		[EV_DEADLINE] = JOB_KILLING,
		[EV_CPU]      = JOB_KILLING,
		[EV_OOM]      = JOB_KILLING,
		[EV_CANCEL]   = JOB_KILLING,
		[EV_BROKEN]   = JOB_KILLING,
		[EV_EMPTY]    = JOB_DONE,
	},
};
/* clang-format on */

enum job_state job_next(enum job_state s, enum job_event ev)
{
	CHECK(s < JOB_STATE_MAX && ev < EV_MAX);
	return edges[s][ev];
}

const char *job_state_name(enum job_state s)
{
	static const char *const names[JOB_STATE_MAX] = { "NONE",
#define X(name, text) #name,
		JOB_STATES(X)
#undef X
	};

	CHECK(s < JOB_STATE_MAX);
	return names[s];
}

const char *job_event_name(enum job_event ev)
{
	static const char *const names[EV_MAX] = {
#define X(name, text) #name,
		JOB_EVENTS(X)
#undef X
	};

	CHECK(ev < EV_MAX);
	return names[ev];
}
