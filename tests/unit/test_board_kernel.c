/* What the board makes of a kernel, a client and cells that fail at the wrong moment:
 * over a kernel that makes nothing, with messages that cannot be sent (-Wl,--wrap=channel_send). */
#include "tests/unit/board_play.h"
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/own.h"
#include "wire/channel.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int __wrap_channel_send(int fd, enum msg_type type, const void *payload, const int *fds);
int __real_channel_send(int fd, enum msg_type type, const void *payload, const int *fds);

static enum msg_type unsendable; /* 0: all can be sent */
static int send_code;

int __wrap_channel_send(int fd, enum msg_type type, const void *payload, const int *fds)
{
	return type == unsendable ? send_code : __real_channel_send(fd, type, payload, fds);
}

static int begin(void **state)
{
	unsendable = (enum msg_type)0;
	return play_begin(state);
}

static int end(void **state)
{
	unsendable = (enum msg_type)0;
	return play_end(state);
}

/* ---- A start that fails ---- */

static void a_main_that_was_dead_before_start_costs_its_run_nothing(void **state)
{
	const int codes[] = { -EPIPE, -ECONNRESET };
	static struct msg m;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		unsendable = MSG_START;
		send_code = codes[i];
		(void)play_park(); /* the second time the run waits for it already */
		if (i == 0)
			play_submit();
		assert_int_equal(the_job()->state, JOB_WAITING);
		assert_int_equal(play_answered(&m), 0);
		unsendable = (enum msg_type)0;
		play_look();
		play_later(NS_PER_MS);
	}
	play_read(play_park());
	assert_int_equal(the_job()->state, JOB_RUNNING);
}

static void a_start_that_cannot_be_sent_is_told_with_its_cause(void **state)
{
	static struct msg m;

	(void)state;
	(void)play_park();
	unsendable = MSG_START;
	send_code = -ENOBUFS;
	play_submit();
	assert_int_equal(play_cause(&m), CAUSE_MAX);
	assert_int_equal(m.as.REFUSED.fault.code, -ENOBUFS);
	assert_int_equal(m.as.REFUSED.retry, 0);
}

static void a_limit_below_what_is_in_use_is_a_verdict(void **state)
{
	static struct msg m;

	(void)state;
	(void)play_park();
	play.asked.memory_bytes = LIMIT_MEMORY_MIN_BYTES;
	no.fail_in = 1;
	no.fail_code = -EDQUOT;
	play_submit();
	assert_int_equal(play_cause(&m), CAUSE_OOM_KILL);
	assert_int_equal(m.as.RESULT.wait_status, SIGKILL);
}

/* The first and the second call of a start that has another memory limit: the leaf, the mounts. */
static void a_shortage_is_worth_another_try_and_nothing_else_is(void **state)
{
	const int codes[] = { -EAGAIN, -ENOMEM, -EMFILE, -ENFILE, -ENOSPC, -EIO, -EPERM };
	static struct msg m;

	(void)state;
	for (unsigned i = 0; i < 14; i++) {
		(void)play_park();
		play.asked.memory_bytes = LIMIT_MEMORY_MIN_BYTES;
		no.fail_in = 1 + i % 2;
		no.fail_code = codes[i / 2];
		play_submit();
		assert_int_equal(play_cause(&m), CAUSE_MAX);
		assert_int_equal(m.as.REFUSED.fault.code, codes[i / 2]);
		assert_int_equal(m.as.REFUSED.retry, i / 2 < 5);
		play_look();
		play_later(NS_PER_MS);
	}
}

static void an_exec_that_met_the_memory_limit_is_a_verdict(void **state)
{
	struct msg_broken broken = { .fault = { .code = -ENOMEM, .text = "exec" } };
	static struct msg m;
	struct no_process *p = play_release();

	(void)state;
	play_read(p);
	assert_int_equal(eventfd_write(the_cell()->leaf.oom_fd, 1), 0);
	assert_int_equal(channel_send(p->channel_fd, MSG_BROKEN, &broken, NULL), 0);
	no_process_die(p, 125 << 8);
	play_look();
	assert_int_equal(play_cause(&m), CAUSE_OOM_KILL);
	assert_int_equal(m.as.RESULT.oom_kills, 1);
}

static void mains_that_are_killed_one_after_the_other_end_the_run_at_last(void **state)
{
	static struct msg m;
	unsigned tries = 1;

	(void)state;
	for (no_process_die(play_release(), SIGKILL);; no_process_die(play_park(), SIGKILL)) {
		play_look();
		if (the_job()->state != JOB_WAITING)
			break;
		play_later(NS_PER_MS);
		assert_in_range(++tries, 1, 20);
	}
	assert_int_equal(tries, 9);
	assert_int_equal(play_cause(&m), CAUSE_MAX);
	assert_int_equal(m.as.REFUSED.fault.code, -ECONNRESET);
}

static void a_run_that_gets_no_cell_is_refused_in_time(void **state)
{
	static struct msg m;

	(void)state;
	play_submit();
	assert_int_equal(the_job()->state, JOB_WAITING);
	for (unsigned i = 0; i < 21; i++)
		play_later(500 * NS_PER_MS);
	assert_int_equal(play_cause(&m), CAUSE_MAX);
	assert_int_equal(m.as.REFUSED.fault.code, -ETIMEDOUT);
	assert_int_equal(m.as.REFUSED.retry, 1);
}

static void fail_a_build_and_look(unsigned times)
{
	const struct msg_broken broken = { .fault = { .code = -EMFILE, .text = "a build" } };
	struct no_process *p;

	play_later(250 * NS_PER_MS);
	p = play_process(true);
	play_read(p);
	assert_int_equal(channel_send(p->channel_fd, MSG_BROKEN, &broken, NULL), 0);
	play_look();
	no_process_die(p, 1 << 8);
	play_look();
	for (unsigned i = 0; i < times; i++)
		play_later(NS_PER_MS); /* the next one is begun after 200 ms */
}

static void fail_a_build(void)
{
	fail_a_build_and_look(5);
}

static unsigned refused(void)
{
	static struct msg m;
	unsigned n = 0;

	for (enum msg_type t; (t = play_answered(&m)) != 0; n++) {
		assert_int_equal(t, MSG_REFUSED);
		assert_int_equal(m.as.REFUSED.fault.code, -EMFILE);
	}
	return n;
}

static void a_build_that_fails_refuses_one_run_at_most(void **state)
{
	const unsigned waiting = 10, each[] = { 0, 1, 1, 1, 1, 1, 1 };

	(void)state;
	play.board.slots = waiting;
	for (unsigned i = 0; i < waiting; i++, play.next.run++)
		play_submit();
	for (unsigned i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		fail_a_build();
		assert_int_equal(refused(), each[i]);
	}
	/* So many are no bad luck: all at once. */
	fail_a_build_and_look(1);
	assert_int_equal(refused(), 4);
	/* Who comes then has a try of its own, and learns its result. */
	for (unsigned i = 0; i < 3; i++, play.next.run++)
		play_submit();
	assert_int_equal(refused(), 0);
	fail_a_build();
	assert_int_equal(refused(), 3);
}

static void builds_that_failed_for_nobody_are_not_told_to_who_comes_later(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++)
		fail_a_build();
	play.board.slots = 3;
	for (unsigned i = 0; i < 3; i++, play.next.run++)
		play_submit();
	assert_int_equal(refused(), 0);
	fail_a_build();
	assert_int_equal(refused(), 1);
}

/* ---- What the supervisor itself watches ---- */

static void cpu_time_that_is_used_up_ends_the_run(void **state)
{
	static struct msg m;

	(void)state;
	play.asked.cpu_time_us = 100000;
	play_read(play_release());
	play_later(60 * NS_PER_MS); /* half of that is CPU time */
	assert_int_equal(the_job()->state, JOB_RUNNING);
	play_later(200 * NS_PER_MS);
	assert_int_equal(play_cause(&m), CAUSE_CPU_TIMEOUT);
}

static void sockets_beyond_the_memory_limit_end_the_run(void **state)
{
	static struct msg m;

	(void)state;
	play_read(play_release());
	play_later(60 * NS_PER_MS);
	assert_int_equal(the_job()->state, JOB_RUNNING);
	no.counts_oom = true;
	play_later(60 * NS_PER_MS);
	assert_int_equal(play_cause(&m), CAUSE_OOM_KILL);
}

static void records_that_cannot_be_had_any_more_are_done_without(void **state)
{
	static struct msg m;
	struct no_process *p = play_release();

	(void)state;
	play_read(p);
	no.records_fail = -EAGAIN; /* others have their turn */
	board_hear_records(&play.board);
	assert_true(play.records.fd >= 0);
	no.records_fail = -ENOMEM;
	board_hear_records(&play.board);
	assert_int_equal(play.records.fd, -1);
	no_process_die(p, 0);
	play_look();
	assert_int_equal(play_cause(&m), CAUSE_EXIT);
}

static void records_of_others_do_not_keep_slots_waiting(void **state)
{
	(void)state;
	for (no.records_count = 0; no.records_count < 70; no.records_count++)
		no.records[no.records_count] = (struct taskstats_exit){ .pid = 1, .told = true };
	board_hear_records(&play.board);
	assert_int_equal(no.records_count, 6);
	board_hear_records(&play.board);
	assert_int_equal(no.records_count, 0);
}

static void an_end_is_not_believed_when_it_is_not_known_who_else_is_there(void **state)
{
	static struct msg m;
	struct no_process *p = play_release();

	(void)state;
	play_read(p);
	no.tasks_fail = -EIO;
	no.records[no.records_count++] = (struct taskstats_exit){ .pid = p->pid, .told = true };
	drop_fd(&p->channel_fd); /* its exec */
	board_hear_records(&play.board);
	assert_int_equal(the_job()->state, JOB_RUNNING);
	no.tasks_fail = 0;
	no_process_die(p, 0);
	play_look();
	assert_int_equal(play_cause(&m), CAUSE_EXIT);
}

/* It has been answered by then: an error in the log, and the cage goes. */
static void a_record_that_the_end_itself_contradicts_is_not_taken_back(void **state)
{
	static struct msg m;
	struct no_process *p = play_release();

	(void)state;
	play_read(p);
	p->ending = true;
	p->status = 9 << 8;
	drop_fd(&p->channel_fd); /* its exec */
	no.records[no.records_count++] = (struct taskstats_exit){ .pid = p->pid, .told = true };
	board_hear_records(&play.board);
	assert_int_equal(play_cause(&m), CAUSE_EXIT);
	assert_int_equal(m.as.RESULT.wait_status, 0);
	no_process_die(p, 0);
	play_look();
	play_later(NS_PER_MS);
}

/* ---- Answers that cannot be sent ---- */

static void a_client_that_is_full_is_waited_for_without_end(void **state)
{
	static struct msg m;

	(void)state;
	unsendable = MSG_RESULT;
	send_code = -EAGAIN;
	play_end_program();
	for (unsigned i = 0; i < 60; i++)
		play_later(NS_PER_S);
	assert_int_equal(the_job()->state, JOB_DONE);
	assert_false(play.board.client_broken);
	unsendable = (enum msg_type)0;
	assert_int_equal(play_cause(&m), CAUSE_EXIT);
	assert_int_equal(board_busy(&play.board), 0);
}

static void a_client_that_cannot_be_told_is_given_up_after_10_s(void **state)
{
	(void)state;
	unsendable = MSG_RESULT;
	send_code = -ENOBUFS;
	play_end_program();
	play_later(9 * NS_PER_S);
	assert_int_equal(the_job()->state, JOB_DONE);
	assert_false(play.board.client_broken);
	play_later(2 * NS_PER_S);
	assert_true(play.board.client_broken);
	assert_int_equal(board_busy(&play.board), 0);
}

static void a_client_that_is_gone_is_given_up_at_once(void **state)
{
	const int codes[] = { -EPIPE, -ECONNRESET };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		play.board.client_broken = false;
		unsendable = MSG_RESULT;
		send_code = codes[i];
		play_end_program();
		assert_true(play.board.client_broken);
		assert_int_equal(board_busy(&play.board), 0);
		play_look();
		play_later(NS_PER_MS);
	}
}

/* ---- Ends that take long ---- */

static void who_does_not_die_is_killed_again_until_it_does(void **state)
{
	static struct msg m;

	(void)state;
	play_read(play_release());
	no.stubborn = true;
	board_cancel(&play.board, PLAY_RUN);
	for (unsigned i = 0; i < 120; i++)
		play_later(100 * NS_PER_MS);
	assert_int_equal(the_job()->state, JOB_KILLING);
	assert_int_equal(play_answered(&m), 0);
	no.stubborn = false;
	play_later(11 * NS_PER_S);
	assert_int_equal(play_cause(&m), CAUSE_CANCELLED);
}

static void a_run_that_is_cancelled_while_it_waits_has_nothing_to_kill(void **state)
{
	static struct msg m;

	(void)state;
	play_submit();
	board_cancel(&play.board, PLAY_RUN);
	play_later(NS_PER_S);
	assert_int_equal(play_cause(&m), CAUSE_CANCELLED);
}

static void a_leaf_that_cannot_be_removed_is_left_after_2_s(void **state)
{
	(void)state;
	no.leaf_stays = -EIO;
	play_end_program();
	play_look();
	play_later(NS_PER_S);
	play_look();
	assert_int_equal(the_cell()->state, CELL_DYING);
	play_later(3 * NS_PER_S);
	play_look();
	assert_int_not_equal(the_cell()->state, CELL_DYING);
	no.leaf_stays = 0;
	no.groups--; /* the next start's to sweep */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_main_that_was_dead_before_start_costs_its_run_nothing),
		CASE(a_start_that_cannot_be_sent_is_told_with_its_cause),
		CASE(a_limit_below_what_is_in_use_is_a_verdict),
		CASE(a_shortage_is_worth_another_try_and_nothing_else_is),
		CASE(an_exec_that_met_the_memory_limit_is_a_verdict),
		CASE(mains_that_are_killed_one_after_the_other_end_the_run_at_last),
		CASE(a_run_that_gets_no_cell_is_refused_in_time),
		CASE(a_build_that_fails_refuses_one_run_at_most),
		CASE(builds_that_failed_for_nobody_are_not_told_to_who_comes_later),
		CASE(cpu_time_that_is_used_up_ends_the_run),
		CASE(sockets_beyond_the_memory_limit_end_the_run),
		CASE(records_that_cannot_be_had_any_more_are_done_without),
		CASE(records_of_others_do_not_keep_slots_waiting),
		CASE(an_end_is_not_believed_when_it_is_not_known_who_else_is_there),
		CASE(a_record_that_the_end_itself_contradicts_is_not_taken_back),
		CASE(a_client_that_is_full_is_waited_for_without_end),
		CASE(a_client_that_cannot_be_told_is_given_up_after_10_s),
		CASE(a_client_that_is_gone_is_given_up_at_once),
		CASE(who_does_not_die_is_killed_again_until_it_does),
		CASE(a_run_that_is_cancelled_while_it_waits_has_nothing_to_kill),
		CASE(a_leaf_that_cannot_be_removed_is_left_after_2_s),
	};

	return cmocka_run_group_tests_name("board_kernel", tests, NULL, NULL);
}
