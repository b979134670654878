/* From what was seen to what is said: the cause of a run's end. Pure.
 *
 *   runs in    the supervisor
 */
#pragma once

#include "priv/supervisor/job.h"
#include "wire/verdict.h"

#include <stdbool.h>

struct evidence {
	enum job_event ended_by; /* the first event that led to KILLING */
	bool oom;                /* the kernel counted an OOM kill in this run, or signalled one */
	bool started;            /* the program was released */
	int wait_status;         /* of the main process */
};

/* True when there is a verdict, in *ret. False when there is none: the code did not run,
 * or Glovebox failed. */
bool verdict_decide(const struct evidence *e, enum run_cause *ret) __attribute__((nonnull));
