/* What the board makes of a run at its very deadline: over a kernel that makes nothing, so that
 * the clock stands where it has to. */
#include "tests/unit/board_play.h"
#include "tests/unit/unit.h"

#include "base/own.h"
#include "wire/channel.h"

#include <errno.h>
#include <signal.h>

static void who_goes_on_past_the_deadline_is_a_timeout(void **state)
{
	static struct msg m;

	(void)state;
	play_read(play_release());
	play_pass_the_deadline();
	(void)board_tick(&play.board);
	assert_int_equal(play_answered(&m), MSG_RESULT);
	assert_int_equal(m.as.RESULT.cause, CAUSE_WALL_TIMEOUT);
}

static void an_exec_that_failed_is_no_programs_end_at_the_deadline_either(void **state)
{
	struct msg_broken broken = { .fault = { .code = -ENOEXEC, .text = "exec" } };
	static struct msg m;
	struct no_process *p = play_release();

	(void)state;
	play_read(p);
	assert_int_equal(channel_send(p->channel_fd, MSG_BROKEN, &broken, NULL), 0);
	no_process_die(p, 125 << 8);
	play_pass_the_deadline();
	(void)board_tick(&play.board);
	assert_int_equal(play_answered(&m), MSG_REFUSED);
	assert_int_equal(m.as.REFUSED.fault.code, -ENOEXEC);
}

static void a_start_that_nobody_read_by_the_deadline_waits_for_another_cell(void **state)
{
	static struct msg m;
	struct no_process *p = play_release();

	(void)state;
	no_process_die(p, SIGKILL);
	play_pass_the_deadline();
	assert_int_equal(play_answered(&m), 0);
	assert_int_equal(play.board.jobs[0].state, JOB_WAITING);
	assert_true(play.board.jobs[0].deadline_ns > no.now_ns);
}

static void a_record_at_the_deadline_of_a_start_that_nobody_read_is_no_timeout(void **state)
{
	static struct msg m;
	struct no_process *p = play_release();

	(void)state;
	p->status = SIGKILL;
	p->ending = true;
	drop_fd(&p->channel_fd);
	no.records[no.records_count++] =
		(struct taskstats_exit){ .pid = p->pid, .status = SIGKILL, .told = true };
	play_pass_the_deadline();
	assert_int_equal(play_answered(&m), 0);
	assert_int_equal(play.board.jobs[0].state, JOB_WAITING);
	assert_true(play.board.jobs[0].deadline_ns > no.now_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			who_goes_on_past_the_deadline_is_a_timeout, play_begin, play_end),
		cmocka_unit_test_setup_teardown(
			an_exec_that_failed_is_no_programs_end_at_the_deadline_either, play_begin,
			play_end),
		cmocka_unit_test_setup_teardown(
			a_start_that_nobody_read_by_the_deadline_waits_for_another_cell, play_begin,
			play_end),
		cmocka_unit_test_setup_teardown(
			a_record_at_the_deadline_of_a_start_that_nobody_read_is_no_timeout,
			play_begin, play_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
