/* The life of a run as the supervisor sees it. The table in job.c is the only place that
 * says which event may follow which.
 *
 *   runs in    the supervisor
 */
#pragma once

#include <stdbool.h>

/* clang-format off */
#define JOB_STATES(X)                                                                          \
	X(WAITING, "its cell is being made; the code has not started")                        \
	X(RUNNING, "the caller's code is executing")                                          \
	X(KILLING, "it has ended or was killed; waiting until nothing of it can execute")      \
	X(DONE,    "answered; its cell is being removed")

#define JOB_EVENTS(X)                                                                          \
	X(READY,    "the cell is complete and the program was released")                      \
	X(UNREAD,   "the main process died before it had read what releases the program")     \
	X(EXIT,     "the main process died")                                                  \
	X(DEADLINE, "the wall clock ran out")                                                 \
	X(CPU,      "the CPU time ran out")                                                   \
	X(OOM,      "the kernel ran out of the run's memory")                                 \
	X(CANCEL,   "the caller left or cancelled")                                           \
	X(BROKEN,   "Glovebox itself failed")                                                 \
	X(EMPTY,    "no process of the cell can execute any more")
/* clang-format on */

enum job_state {
	JOB_NONE, /* no such edge; also: a free slot */
#define X(name, text) JOB_##name,
	JOB_STATES(X)
#undef X
	JOB_STATE_MAX
};

enum job_event {
#define X(name, text) EV_##name,
	JOB_EVENTS(X)
#undef X
	EV_MAX
};

/* Where `ev` leads from `s`; JOB_NONE when it may not come there. */
enum job_state job_next(enum job_state s, enum job_event ev);

const char *job_state_name(enum job_state s);
const char *job_event_name(enum job_event ev);
