/* What becomes of a workspace that is kept behind a RESULT, over a kernel that makes nothing. */
#include "tests/unit/board_play.h"
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "wire/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

/* A run that asks for its files is over, but its program is not dead yet. */
static void be_ended(void)
{
	play.next.collect = COLLECT_ALWAYS;
	play_read(play_release());
	no.stubborn = true;
	play_pass_the_deadline();
	assert_int_equal(play.board.jobs[0].state, JOB_KILLING);
}

/* Now it is, with its whole cage. */
static void expect_result(uint32_t kept)
{
	static struct msg m;

	no.stubborn = false;
	no_process_die(play_process(true), SIGKILL);
	play_look();
	assert_int_equal(play_cause(&m), CAUSE_WALL_TIMEOUT);
	assert_int_equal(m.as.RESULT.kept, kept);
	assert_int_equal(play.board.collects.count, kept);
}

static void a_cell_is_kept_until_its_client_wants_it_no_more(void **state)
{
	(void)state;
	be_ended();
	expect_result(1);
	board_cancel(&play.board, PLAY_RUN);
	assert_int_equal(play.board.collects.count, 0);
}

static void who_leaves_while_a_run_is_being_ended_keeps_no_cell(void **state)
{
	(void)state;
	be_ended();
	board_cancel(&play.board, PLAY_RUN);
	expect_result(0);
}

/* What it has behind the RESULT of a run is kept. */
static void keep(void)
{
	be_ended();
	expect_result(1);
}

/* A COLLECT of that run. *ret_fd: where the files come out. */
static int collect(uint64_t run, int *ret_fd)
{
	static struct msg m;
	const char *rule = NULL;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	m = (struct msg){ .type = MSG_COLLECT, .nfds = 1, .as.COLLECT = { .run = run } };
	m.fds[0] = ends[1];
	*ret_fd = ends[0];
	return board_collect(&play.board, &m, &rule);
}

/* ...of which the last one that can write is gone. */
static void expect_end_of_files(int fd)
{
	char byte;

	assert_int_equal(read(fd, &byte, 1), 0);
	(void)close(fd);
}

static void nobody_keeps_a_cell_without_asking_for_its_files(void **state)
{
	(void)state;
	keep();
	play_later(5 * NS_PER_S - 1);
	assert_int_equal(play.board.collects.count, 1);
	play_later(1);
	assert_int_equal(play.board.collects.count, 0);
}

static void a_collector_that_does_not_end_is_ended(void **state)
{
	int fd;

	(void)state;
	keep();
	assert_int_equal(collect(PLAY_RUN, &fd), 0);
	play_later(20 * NS_PER_S - 1);
	assert_int_equal(play.board.collects.count, 1);
	play_later(1);
	assert_int_equal(play.board.collects.count, 0);
	expect_end_of_files(fd);
}

static void a_collector_that_fails_gives_the_cell_back(void **state)
{
	int fd;

	(void)state;
	keep();
	assert_int_equal(collect(PLAY_RUN, &fd), 0);
	no_process_die(play_process(false), 1 << 8);
	play_look();
	assert_int_equal(play.board.collects.count, 0);
	expect_end_of_files(fd);
}

static void a_collector_that_cannot_be_started_gives_the_cell_back(void **state)
{
	int fd;

	(void)state;
	keep();
	no.fail_in = 1;
	no.fail_code = -EAGAIN;
	assert_int_equal(collect(PLAY_RUN, &fd), 0);
	no.fail_in = 0;
	assert_int_equal(play.board.collects.count, 0);
	expect_end_of_files(fd);
}

static void who_leaves_while_files_come_ends_the_collector(void **state)
{
	int fd;

	(void)state;
	keep();
	assert_int_equal(collect(PLAY_RUN, &fd), 0);
	board_cancel(&play.board, PLAY_RUN);
	assert_int_equal(play.board.collects.count, 0);
	expect_end_of_files(fd);
}

static void files_are_collected_once_and_into_a_pipe(void **state)
{
	static struct msg m;
	const char *rule = NULL;
	int first, second, none;

	(void)state;
	keep();
	m = (struct msg){ .type = MSG_COLLECT, .nfds = 1, .as.COLLECT = { .run = PLAY_RUN } };
	m.fds[0] = memfd_create("no pipe", MFD_CLOEXEC);
	assert_int_equal(board_collect(&play.board, &m, &rule), -EPROTO);
	assert_int_equal(collect(PLAY_RUN, &first), 0);
	assert_int_equal(collect(PLAY_RUN, &second), -EPROTO);
	expect_end_of_files(second);
	assert_int_equal(collect(PLAY_RUN + 1, &none), 0); /* gone, it may be, on the way */
	expect_end_of_files(none);
	(void)close(first);
}

static void the_number_of_a_run_whose_files_are_kept_is_in_use(void **state)
{
	const char *rule = NULL;

	(void)state;
	keep();
	assert_int_equal(play_try_to_submit(&rule), -EPROTO);
	board_cancel(&play.board, PLAY_RUN);
	assert_int_equal(play_try_to_submit(&rule), 0);
}

/* The collector of a client that is gone may take its time to die: the next client counts its runs
 * from one, too. */
static void a_number_that_is_being_ended_is_the_next_clients(void **state)
{
	const char *rule = NULL;
	int fd;

	(void)state;
	keep();
	assert_int_equal(collect(PLAY_RUN, &fd), 0);
	no.stubborn = true;
	board_lose_client(&play.board);
	assert_int_equal(play.board.collects.count, 1);
	assert_int_equal(play_try_to_submit(&rule), 0);
	no.stubborn = false;
	(void)close(fd);
}

/* Or a client that keeps workspaces would have more than max-runs times the memory of a run. */
static void no_more_cells_are_kept_and_run_than_there_are_places(void **state)
{
	(void)state;
	keep();
	(void)play_park();
	play.next.run++;
	play_submit();
	assert_int_equal(play.board.jobs[0].state, JOB_WAITING);
	play_later(NS_PER_S);
	assert_int_equal(play.board.jobs[0].state, JOB_WAITING);
	board_cancel(&play.board, PLAY_RUN);
	play_later(0);
	assert_int_equal(play.board.jobs[0].state, JOB_RUNNING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_cell_is_kept_until_its_client_wants_it_no_more, play_begin, play_end),
		cmocka_unit_test_setup_teardown(
			who_leaves_while_a_run_is_being_ended_keeps_no_cell, play_begin, play_end),
		cmocka_unit_test_setup_teardown(
			nobody_keeps_a_cell_without_asking_for_its_files, play_begin, play_end),
		cmocka_unit_test_setup_teardown(
			a_collector_that_does_not_end_is_ended, play_begin, play_end),
		cmocka_unit_test_setup_teardown(
			a_collector_that_fails_gives_the_cell_back, play_begin, play_end),
		cmocka_unit_test_setup_teardown(
			a_collector_that_cannot_be_started_gives_the_cell_back, play_begin,
			play_end),
		cmocka_unit_test_setup_teardown(
			who_leaves_while_files_come_ends_the_collector, play_begin, play_end),
		cmocka_unit_test_setup_teardown(
			files_are_collected_once_and_into_a_pipe, play_begin, play_end),
		cmocka_unit_test_setup_teardown(
			the_number_of_a_run_whose_files_are_kept_is_in_use, play_begin, play_end),
		cmocka_unit_test_setup_teardown(
			a_number_that_is_being_ended_is_the_next_clients, play_begin, play_end),
		cmocka_unit_test_setup_teardown(
			no_more_cells_are_kept_and_run_than_there_are_places, play_begin, play_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
