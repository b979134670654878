#include "priv/supervisor/job.h"
#include "tests/unit/unit.h"

static bool is_live(enum job_state s)
{
	return s != JOB_NONE && s != JOB_DONE;
}

/* The property that matters most: nothing that a client or a program does can park a run
 * in a state that the clock, the caller or a fault does not end. */
static void every_live_state_answers_deadline_cancel_and_fault(void **state)
{
	(void)state;
	for (enum job_state s = JOB_WAITING; s < JOB_STATE_MAX; s++) {
		if (!is_live(s))
			continue;
		assert_int_equal(job_next(s, EV_DEADLINE), JOB_KILLING);
		assert_int_equal(job_next(s, EV_CANCEL), JOB_KILLING);
		assert_int_equal(job_next(s, EV_BROKEN), JOB_KILLING);
		assert_int_equal(job_next(s, EV_OOM), JOB_KILLING);
		assert_int_equal(job_next(s, EV_EXIT), JOB_KILLING);
	}
}

static void an_answer_is_reached_only_through_an_empty_cgroup(void **state)
{
	(void)state;
	for (enum job_state s = JOB_NONE; s < JOB_STATE_MAX; s++) {
		for (enum job_event ev = 0; ev < EV_MAX; ev++) {
			if (job_next(s, ev) != JOB_DONE)
				continue;
			assert_int_equal(s, JOB_KILLING);
			assert_int_equal(ev, EV_EMPTY);
		}
	}
	assert_int_equal(job_next(JOB_KILLING, EV_EMPTY), JOB_DONE);
}

static void code_is_released_only_from_a_waiting_run(void **state)
{
	(void)state;
	for (enum job_state s = JOB_NONE; s < JOB_STATE_MAX; s++)
		assert_int_equal(job_next(s, EV_READY), s == JOB_WAITING ? JOB_RUNNING : JOB_NONE);
}

/* UNREAD_MAX in board.c bounds how often. */
static void a_run_goes_back_only_when_its_release_was_not_read(void **state)
{
	(void)state;
	for (enum job_state s = JOB_NONE; s < JOB_STATE_MAX; s++) {
		for (enum job_event ev = 0; ev < EV_MAX; ev++) {
			if (job_next(s, ev) != JOB_WAITING)
				continue;
			assert_int_equal(s, JOB_RUNNING);
			assert_int_equal(ev, EV_UNREAD);
		}
	}
	assert_int_equal(job_next(JOB_RUNNING, EV_UNREAD), JOB_WAITING);
}

static void a_killed_run_never_runs_again(void **state)
{
	(void)state;
	for (enum job_event ev = 0; ev < EV_MAX; ev++) {
		enum job_state next = job_next(JOB_KILLING, ev);

		assert_true(next == JOB_NONE || next == JOB_KILLING || next == JOB_DONE);
	}
}

static void done_and_free_are_final(void **state)
{
	(void)state;
	for (enum job_event ev = 0; ev < EV_MAX; ev++) {
		assert_int_equal(job_next(JOB_DONE, ev), JOB_NONE);
		assert_int_equal(job_next(JOB_NONE, ev), JOB_NONE);
	}
}

static void every_state_and_event_has_a_name(void **state)
{
	(void)state;
	for (enum job_state s = JOB_NONE; s < JOB_STATE_MAX; s++)
		assert_true(job_state_name(s)[0] != '\0');
	for (enum job_event ev = 0; ev < EV_MAX; ev++)
		assert_true(job_event_name(ev)[0] != '\0');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_live_state_answers_deadline_cancel_and_fault),
		cmocka_unit_test(an_answer_is_reached_only_through_an_empty_cgroup),
		cmocka_unit_test(code_is_released_only_from_a_waiting_run),
		cmocka_unit_test(a_run_goes_back_only_when_its_release_was_not_read),
		cmocka_unit_test(a_killed_run_never_runs_again),
		cmocka_unit_test(done_and_free_are_final),
		cmocka_unit_test(every_state_and_event_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
