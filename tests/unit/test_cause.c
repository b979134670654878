#include "priv/supervisor/verdict.h"
#include "tests/unit/unit.h"

#include <signal.h>

#define EXITED(code)  ((code) << 8) /* as wait(2) encodes them on Linux */
#define KILLED(signo) (signo)

static void the_first_thing_that_ended_a_run_names_its_cause(void **state)
{
	static const struct {
		struct evidence seen;
		enum run_cause cause;
	} table[] = {
		{ { EV_EXIT, false, true, EXITED(0) }, CAUSE_EXIT },
		{ { EV_EXIT, false, true, EXITED(3) }, CAUSE_EXIT },
		/* The numbers 124 and 137 are the program's own business. */
		{ { EV_EXIT, false, true, EXITED(124) }, CAUSE_EXIT },
		{ { EV_EXIT, false, true, EXITED(137) }, CAUSE_EXIT },
		{ { EV_EXIT, false, true, KILLED(SIGSEGV) }, CAUSE_SIGNAL },
		/* Only a counted OOM kill makes a SIGKILL one. */
		{ { EV_EXIT, false, true, KILLED(SIGKILL) }, CAUSE_SIGNAL },
		{ { EV_EXIT, true, true, KILLED(SIGKILL) }, CAUSE_OOM_KILL },
		/* A child was chosen and main went on to a good end. */
		{ { EV_EXIT, true, true, EXITED(0) }, CAUSE_OOM_KILL },
		{ { EV_OOM, true, true, KILLED(SIGKILL) }, CAUSE_OOM_KILL },
		/* The event can come while the counter is still 0: our kill was faster. */
		{ { EV_OOM, false, true, KILLED(SIGKILL) }, CAUSE_OOM_KILL },
		{ { EV_DEADLINE, false, true, KILLED(SIGKILL) }, CAUSE_WALL_TIMEOUT },
		{ { EV_DEADLINE, true, true, KILLED(SIGKILL) }, CAUSE_WALL_TIMEOUT },
		/* It ended well while the kill was on its way: the deadline had passed. */
		{ { EV_DEADLINE, false, true, EXITED(0) }, CAUSE_WALL_TIMEOUT },
		{ { EV_CPU, false, true, KILLED(SIGKILL) }, CAUSE_CPU_TIMEOUT },
		{ { EV_CANCEL, false, true, KILLED(SIGKILL) }, CAUSE_CANCELLED },
		/* The limit was below what the cell itself uses. */
		{ { EV_OOM, true, false, 0 }, CAUSE_OOM_KILL },
		{ { EV_CANCEL, false, false, 0 }, CAUSE_CANCELLED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		enum run_cause cause = CAUSE_MAX;

		if (!verdict_decide(&table[i].seen, &cause) || cause != table[i].cause)
			fail_msg("row %zu: %s", i, run_cause_word(cause));
	}
}

static void a_failure_of_glovebox_is_never_a_verdict(void **state)
{
	static const struct evidence table[] = {
		{ EV_BROKEN, false, true, EXITED(125) },
		{ EV_BROKEN, false, false, 0 },
		{ EV_DEADLINE, false, false, 0 }, /* the cell did not come to stand in time */
		{ EV_EXIT, false, false, EXITED(125) },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		enum run_cause cause = CAUSE_MAX;

		assert_false(verdict_decide(&table[i], &cause));
		assert_int_equal(cause, CAUSE_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_thing_that_ended_a_run_names_its_cause),
		cmocka_unit_test(a_failure_of_glovebox_is_never_a_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
