/* How a run ended: the words and codes of the API. One list each, from which the
 * enum, the JSON words and the documents come.
 *
 *   runs in    every process
 */
#pragma once

#include <stdint.h>

/* clang-format off */
/*           name              word */
#define STATUSES(X)                               \
	X(SUCCESS,         "success")             \
	X(TIMEOUT,         "timeout")             \
	X(MEMORY_EXCEEDED, "memory_exceeded")     \
	X(ERROR,           "error")

/*           name          word            the sentence for documents */
#define CAUSES(X)                                                                          \
	X(EXIT,         "exit",         "the program ended by itself")                     \
	X(SIGNAL,       "signal",       "a signal that Glovebox did not send ended it")    \
	X(WALL_TIMEOUT, "wall_timeout", "timeout_seconds passed")                          \
	X(CPU_TIMEOUT,  "cpu_timeout",  "cpu_time_seconds of CPU time were used up")       \
	X(OOM_KILL,     "oom_kill",     "the kernel killed it at memory_limit_mb")         \
	X(CANCELLED,    "cancelled",    "the caller left or cancelled")                    \
	X(COMPILE,      "compile",      "the compiler failed, and no program was run")

/* Which kernel counter memory_used_mb was read from. */
#define MEMORY_COUNTERS(X)                                              \
	X(NONE,    "none")                                              \
	X(V2_PEAK, "memory.peak")                                       \
	X(V1_PEAK, "memory.max_usage_in_bytes")                         \
	X(SAMPLED, "memory.current (largest sample)")
/* clang-format on */

enum run_status {
#define X(name, word) STATUS_##name,
	STATUSES(X)
#undef X
	STATUS_MAX
};

enum run_cause {
#define X(name, word, text) CAUSE_##name,
	CAUSES(X)
#undef X
	CAUSE_MAX
};

enum memory_counter {
#define X(name, word) MEMORY_COUNTER_##name,
	MEMORY_COUNTERS(X)
#undef X
	MEMORY_COUNTER_MAX
};

#define EXIT_CODE_TIMEOUT 124 /* as timeout(1) */
#define EXIT_CODE_MEMORY  137 /* 128 + SIGKILL, what the kernel's OOM kill looks like */

/* The constant words; "unknown" for a number outside the enum. */
const char *run_status_word(uint32_t status);
const char *run_cause_word(uint32_t cause);
const char *memory_counter_word(uint32_t counter);

/* The API's status and exit code for a cause and a wait status (as waitpid() gives
 * it). Exit codes are what a shell would see: 0-255, 128+n for a signal. */
enum run_status run_status_of(enum run_cause cause, int wait_status);
int run_exit_code(enum run_cause cause, int wait_status);

/* The signal that ended the main process by itself, 0 when none did. */
int run_signal(enum run_cause cause, int wait_status);
