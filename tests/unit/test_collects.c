/* What becomes of a workspace that is kept behind a RESULT, over a kernel that makes nothing. */
#include "tests/unit/board_play.h"
#include "tests/unit/unit.h"

#include "base/own.h"
#include "wire/channel.h"

#include <signal.h>

/* A run that asks for its files is over, but its program is not dead yet. */
static struct no_process *be_ended(void)
{
	struct no_process *p;

	play.collect = COLLECT_ALWAYS;
	p = play_release();
	play_read(p);
	no.stubborn = true;
	play_pass_the_deadline();
	assert_int_equal(play.board.jobs[0].state, JOB_KILLING);
	return p;
}

static void expect_result(struct no_process *last, uint32_t kept)
{
	static struct msg m;

	no.stubborn = false;
	no_process_die(last, SIGKILL);
	play_look();
	assert_int_equal(play_cause(&m), CAUSE_WALL_TIMEOUT);
	assert_int_equal(m.as.RESULT.kept, kept);
	assert_int_equal(play.board.collects.count, kept);
}

static void a_cell_is_kept_until_its_client_wants_it_no_more(void **state)
{
	(void)state;
	expect_result(be_ended(), 1);
	board_cancel(&play.board, PLAY_RUN);
	assert_int_equal(play.board.collects.count, 0);
}

static void who_leaves_while_a_run_is_being_ended_keeps_no_cell(void **state)
{
	struct no_process *last = be_ended();

	(void)state;
	board_cancel(&play.board, PLAY_RUN);
	expect_result(last, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_cell_is_kept_until_its_client_wants_it_no_more, play_begin, play_end),
		cmocka_unit_test_setup_teardown(
			who_leaves_while_a_run_is_being_ended_keeps_no_cell, play_begin, play_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
