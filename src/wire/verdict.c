#include "wire/verdict.h"

#include <sys/wait.h>

const char *run_status_word(uint32_t status)
{
	static const char *const words[] = {
#define X(name, word) word,
		STATUSES(X)
#undef X
	};

	return status < STATUS_MAX ? words[status] : "unknown";
}

const char *run_cause_word(uint32_t cause)
{
	static const char *const words[] = {
#define X(name, word, text) word,
		CAUSES(X)
#undef X
	};

	return cause < CAUSE_MAX ? words[cause] : "unknown";
}

const char *memory_counter_word(uint32_t counter)
{
	static const char *const words[] = {
#define X(name, word) word,
		MEMORY_COUNTERS(X)
#undef X
	};

	return counter < MEMORY_COUNTER_MAX ? words[counter] : "unknown";
}

enum run_status run_status_of(enum run_cause cause, int wait_status)
{
	switch (cause) {
	case CAUSE_WALL_TIMEOUT:
	case CAUSE_CPU_TIMEOUT:
		return STATUS_TIMEOUT;
	case CAUSE_OOM_KILL:
		return STATUS_MEMORY_EXCEEDED;
	case CAUSE_EXIT:
		return wait_status == 0 ? STATUS_SUCCESS : STATUS_ERROR;
	case CAUSE_SIGNAL:
	case CAUSE_CANCELLED:
	case CAUSE_COMPILE:
	case CAUSE_MAX:
	default:
		return STATUS_ERROR;
	}
}

int run_exit_code(enum run_cause cause, int wait_status)
{
	switch (run_status_of(cause, wait_status)) {
	case STATUS_TIMEOUT:
		return EXIT_CODE_TIMEOUT;
	case STATUS_MEMORY_EXCEEDED:
		return EXIT_CODE_MEMORY;
	case STATUS_SUCCESS:
	case STATUS_ERROR:
	case STATUS_MAX:
	default:
		break;
	}
	if (WIFSIGNALED(wait_status))
		return 128 + WTERMSIG(wait_status);
	return WEXITSTATUS(wait_status);
}

int run_signal(enum run_cause cause, int wait_status)
{
	return cause == CAUSE_SIGNAL && WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
}
