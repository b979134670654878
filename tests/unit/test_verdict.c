#include "unit.h"

#include "base/check.h"
#include "wire/layer.h"
#include "wire/verdict.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define EXITED(n)   W_EXITCODE(n, 0)
#define SIGNALED(n) W_EXITCODE(0, n)

static void verdicts_follow_the_table(void **state)
{
	static const struct {
		enum run_cause cause;
		int wait_status;
		const char *status;
		int exit_code, sig;
	} rows[] = {
		{ CAUSE_EXIT, EXITED(0), "success", 0, 0 },
		{ CAUSE_EXIT, EXITED(1), "error", 1, 0 },
		{ CAUSE_EXIT, EXITED(255), "error", 255, 0 },
		/* A program's own 124 or 137 is no timeout and no memory verdict. */
		{ CAUSE_EXIT, EXITED(124), "error", 124, 0 },
		{ CAUSE_EXIT, EXITED(137), "error", 137, 0 },
		{ CAUSE_SIGNAL, SIGNALED(SIGSEGV), "error", 139, SIGSEGV },
		{ CAUSE_SIGNAL, SIGNALED(SIGKILL), "error", 137, SIGKILL },
		{ CAUSE_SIGNAL, SIGNALED(SIGSYS), "error", 159, SIGSYS },
		{ CAUSE_SIGNAL, SIGNALED(SIGSEGV) | 0x80, "error", 139, SIGSEGV }, /* with core */
		{ CAUSE_WALL_TIMEOUT, SIGNALED(SIGKILL), "timeout", 124, 0 },
		{ CAUSE_WALL_TIMEOUT, EXITED(0), "timeout", 124, 0 },
		{ CAUSE_CPU_TIMEOUT, SIGNALED(SIGKILL), "timeout", 124, 0 },
		{ CAUSE_CPU_TIMEOUT, SIGNALED(SIGXCPU), "timeout", 124, 0 },
		{ CAUSE_OOM_KILL, SIGNALED(SIGKILL), "memory_exceeded", 137, 0 },
		{ CAUSE_OOM_KILL, EXITED(0), "memory_exceeded", 137, 0 },
		{ CAUSE_CANCELLED, SIGNALED(SIGKILL), "error", 137, 0 },
		{ CAUSE_COMPILE, EXITED(1), "error", 1, 0 },
		{ CAUSE_COMPILE, EXITED(124), "error", 124, 0 },
		/* No signal ended it, whatever the cause says. */
		{ CAUSE_SIGNAL, EXITED(1), "error", 1, 0 },
		/* No cause of the list: never a success. */
		{ CAUSE_MAX, EXITED(0), "error", 0, 0 },
		{ (enum run_cause)4711, EXITED(0), "error", 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		enum run_status s = run_status_of(rows[i].cause, rows[i].wait_status);

		assert_string_equal(run_status_word(s), rows[i].status);
		assert_int_equal(
			run_exit_code(rows[i].cause, rows[i].wait_status), rows[i].exit_code);
		assert_int_equal(run_signal(rows[i].cause, rows[i].wait_status), rows[i].sig);
	}
}

static void words_are_those_of_the_api(void **state)
{
	static const char *const causes[] = { "exit", "signal", "wall_timeout", "cpu_timeout",
		"oom_kill", "cancelled", "compile" };

	(void)state;
	assert_int_equal(ARRAY_LEN(causes), CAUSE_MAX);
	for (uint32_t i = 0; i < CAUSE_MAX; i++)
		assert_string_equal(run_cause_word(i), causes[i]);
	assert_int_equal(STATUS_MAX, 4);
}

static void numbers_outside_the_lists_are_unknown(void **state)
{
	(void)state;
	assert_string_equal(run_status_word(STATUS_MAX), "unknown");
	assert_string_equal(run_cause_word(UINT32_MAX), "unknown");
	assert_string_equal(memory_counter_word(MEMORY_COUNTER_MAX), "unknown");
	assert_string_equal(layer_word(LAYER_MAX), "unknown");
	assert_string_equal(layer_lost(UINT32_MAX), "unknown");
	assert_string_equal(layer_remedy(LAYER_MAX), "unknown");
}

static void every_layer_has_its_own_word_and_texts(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < LAYER_MAX; i++) {
		assert_int_equal(layer_by_word(layer_word(i)), i);
		assert_true(strlen(layer_lost(i)) > 0);
		assert_true(strlen(layer_remedy(i)) > 0);
	}
	assert_int_equal(layer_by_word("no-such-layer"), LAYER_MAX);
	assert_int_equal(layer_by_word(""), LAYER_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdicts_follow_the_table),
		cmocka_unit_test(words_are_those_of_the_api),
		cmocka_unit_test(numbers_outside_the_lists_are_unknown),
		cmocka_unit_test(every_layer_has_its_own_word_and_texts),
	};

	return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
