#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/own.h"
#include "tests/unit/lineage_play.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define RETRY_FIRST_NS (200 * NS_PER_MS)
#define RETRY_MOST_NS  (30 * NS_PER_S)

static void the_first_tick_starts_one_and_the_next_ones_do_not(void **state)
{
	(void)state;
	assert_in_range(lineage_due_ns(&play.line), 0, clock_ns());
	play_tick();
	play_must_live(1);
	assert_false(lineage_is_warm(&play.line));
	assert_int_equal(lineage_due_ns(&play.line), play.line.next.deadline_ns);
	play_tick();
	assert_int_equal(play.pids[2], 0);
	play_warm_up(1);
	assert_true(lineage_is_warm(&play.line));
	assert_int_equal(lineage_due_ns(&play.line), UINT64_MAX);
	play_tick();
	assert_int_equal(play.pids[2], 0);
	play_must_have_told("");
}

static void where_none_is_wanted_none_is_started(void **state)
{
	(void)state;
	drop_fd(&play.line.watch.epoll_fd);
	play_open(false);
	assert_int_equal(lineage_due_ns(&play.line), UINT64_MAX);
	lineage_tick(&play.line, UINT64_MAX - 1);
	assert_int_equal(play.pids[1], 0);
}

static void before_it_is_warm_it_is_not_asked(void **state)
{
	struct cell c = { .id = 7 };

	(void)state;
	assert_true(lineage_fork(&play.line, &c, -1, false) < 0);
	play_tick();
	assert_true(lineage_fork(&play.line, &c, -1, false) < 0);
}

static void its_answers_go_to_the_owner(void **state)
{
	struct process child = play_child();

	(void)state;
	play_have_one();
	assert_int_equal(play_ask(7), 1);
	assert_int_equal(play_ask(8), 1);
	assert_int_equal(lineage_due_ns(&play.line), play.line.current.deadline_ns);
	play_answer(1, 7, &child, child.pid);
	play_must_have_told("forked 7");
	assert_int_equal(play.given.pid, child.pid);
	assert_true(process_is_child(child.pid, play.given.pidfd));
	play_refuse(1, 8);
	play_must_have_told("unforked 8");
	assert_int_equal(lineage_due_ns(&play.line), UINT64_MAX);
	play_must_live(1);
	process_close(&child);
}

static bool is_dead(const struct process *p)
{
	struct pollfd poll_fd = { .fd = p->pidfd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) == 1;
}

static void a_child_that_its_pidfd_does_not_prove_is_nobodys(void **state)
{
	struct process child = play_child();

	(void)state;
	play_have_one();
	(void)play_ask(7);
	play_answer(1, 7, &child, play.pids[1]);
	play_must_have_told("");
	/* Nor ours to end: the pidfd may be any process's. */
	assert_false(is_dead(&child));
	process_kill(&child);
	assert_true(play_is_ended(&child));
	process_close(&child);
	play_must_live(1);
}

static void one_that_ends_is_told_of_and_replaced_later(void **state)
{
	uint64_t before, after;

	(void)state;
	play_have_one();
	(void)play_ask(7);
	before = clock_ns();
	play_die(1);
	after = clock_ns();
	play_must_have_told("lost 1");
	play_must_be_ended(1);
	assert_false(lineage_is_warm(&play.line));
	assert_non_null(strstr(play.line.lost.text, "zygote: it ended"));
	assert_in_range(
		lineage_due_ns(&play.line), before + RETRY_FIRST_NS, after + RETRY_FIRST_NS);
	lineage_tick(&play.line, play.line.retry_ns - 1);
	assert_int_equal(play.pids[2], 0);
	lineage_tick(&play.line, play.line.retry_ns);
	play_must_live(2);
	assert_int_not_equal(play.line.lost.code, 0);
	play_warm_up(2);
	assert_int_equal(play.line.lost.code, 0);
}

static void each_loss_makes_the_next_start_wait_twice_as_long_up_to_a_bound(void **state)
{
	uint64_t wait = RETRY_FIRST_NS, now = clock_ns();

	(void)state;
	play.start_fails = true;
	for (uint64_t i = 1; i < 15; i++) {
		uint64_t before = clock_ns(), due;
		char lost[32];

		lineage_tick(&play.line, now);
		due = lineage_due_ns(&play.line);
		assert_in_range(due, before + wait, clock_ns() + wait);
		(void)snprintf(lost, sizeof(lost), "lost %lu", (unsigned long)i);
		play_must_have_told(lost);
		assert_non_null(strstr(play.line.lost.text, "zygote: no start"));
		now = due;
		wait = 2 * wait < RETRY_MOST_NS ? 2 * wait : RETRY_MOST_NS;
	}
	assert_int_equal(wait, RETRY_MOST_NS);
}

/* Lose it now: how long does the next one wait? */
static void must_wait_after(uint64_t generation, uint64_t wait_ns)
{
	uint64_t before = clock_ns(), due;

	play_die(generation);
	play_forget();
	due = lineage_due_ns(&play.line);
	assert_in_range(due, before + wait_ns, clock_ns() + wait_ns);
}

static void only_a_child_that_was_waited_for_makes_the_wait_short_again(void **state)
{
	(void)state;
	play_have_one();
	must_wait_after(1, RETRY_FIRST_NS);
	lineage_tick(&play.line, play.line.retry_ns);
	play_warm_up(2);
	play.is_awaited = false;
	play_fork(2);
	must_wait_after(2, 2 * RETRY_FIRST_NS);
	lineage_tick(&play.line, play.line.retry_ns);
	play_warm_up(3);
	play.is_awaited = true;
	play_fork(3);
	must_wait_after(3, RETRY_FIRST_NS);
}

static void one_that_cannot_begin_says_why(void **state)
{
	(void)state;
	play_tick();
	play_refuse(1, 0); /* what it was to preload throws */
	play_must_have_told("lost 1");
	assert_string_equal(play.line.lost.text, "zygote: fork: Resource temporarily unavailable");
	play_must_be_ended(1);
}

static void one_that_is_late_is_lost(void **state)
{
	(void)state;
	play_tick();
	lineage_tick(&play.line, play.line.next.deadline_ns - 1);
	play_must_live(1);
	lineage_tick(&play.line, play.line.next.deadline_ns);
	play_must_be_ended(1);
	play_must_have_told("lost 1");
	assert_int_equal(play.line.lost.code, -ETIMEDOUT);

	lineage_tick(&play.line, play.line.retry_ns);
	play_warm_up(2);
	lineage_tick(&play.line, clock_ns() + PLAY_START_NS); /* nothing is asked of it */
	play_must_live(2);
	(void)play_ask(7);
	lineage_tick(&play.line, lineage_due_ns(&play.line));
	play_must_be_ended(2);
	play_must_have_told("lost 2");
}

static void one_that_is_worn_forks_until_its_successor_is_warm(void **state)
{
	(void)state;
	play_have_one();
	play.settings.zygote_max_forks = 2;
	play_fork(1);
	play_tick();
	assert_int_equal(play.pids[2], 0);
	play_fork(1);
	play_tick();
	play_must_live(2);
	assert_true(lineage_is_warm(&play.line));
	play_fork(1);
	play_tick();
	assert_int_equal(play.pids[3], 0);
	play_warm_up(2);
	play_must_be_ended(1);
	play_must_have_told(""); /* it owed nothing */
	assert_true(lineage_is_warm(&play.line));
	play_fork(2);
}

static void one_that_is_old_is_succeeded(void **state)
{
	uint64_t end;

	(void)state;
	play_have_one();
	end = play.line.current.started_ns + play.settings.zygote_max_age_us * NS_PER_US;
	lineage_tick(&play.line, end - 1);
	assert_int_equal(play.pids[2], 0);
	lineage_tick(&play.line, end);
	play_must_live(2);
	play_must_live(1);
}

static void a_predecessor_lives_as_long_as_it_owes_answers(void **state)
{
	struct process child = play_child();

	(void)state;
	play_have_one();
	(void)play_ask(7);
	(void)play_ask(8);
	play_succeed(2);
	play_must_live(1);
	assert_int_equal(play_ask(9), 2);
	play_answer(1, 7, &child, child.pid);
	play_must_have_told("forked 7");
	play_must_live(1);
	play_refuse(1, 8);
	play_must_have_told("unforked 8");
	play_must_be_ended(1);
	play_must_live(2);
	process_close(&child);
}

static void a_predecessor_that_ends_or_is_late_is_told_of(void **state)
{
	(void)state;
	play_have_one();
	(void)play_ask(7);
	play_succeed(2);
	play_die(1);
	play_must_have_told("lost 1");
	play_must_be_ended(1);
	(void)play_ask(8);
	play_succeed(3);
	assert_int_equal(lineage_due_ns(&play.line), play.line.retired.deadline_ns);
	lineage_tick(&play.line, play.line.retired.deadline_ns);
	play_must_have_told("lost 2");
	play_must_be_ended(2);
	play_must_live(3);
}

static void there_is_one_predecessor_at_most(void **state)
{
	(void)state;
	play_have_one();
	(void)play_ask(7);
	play_succeed(2);
	(void)play_ask(8);
	play_succeed(3);
	play_must_have_told("lost 1");
	play_must_be_ended(1);
	play_must_live(2);
	play_must_live(3);
}

static void a_successor_that_is_lost_leaves_the_current_one(void **state)
{
	(void)state;
	play_have_one();
	play_fork(1);
	play.settings.zygote_max_forks = 1;
	play_tick();
	play_die(2);
	play_must_have_told("lost 2");
	play_must_live(1);
	play_fork(1);
	lineage_tick(&play.line, play.line.retry_ns - 1);
	assert_int_equal(play.pids[3], 0);
	lineage_tick(&play.line, play.line.retry_ns);
	play_must_live(3);
}

static void closing_ends_all_three_and_tells_nobody(void **state)
{
	(void)state;
	play_have_one();
	(void)play_ask(7);
	play_succeed(2);
	(void)play_ask(8);
	play.settings.zygote_max_forks = 1;
	play_tick();
	for (uint64_t i = 1; i <= 3; i++)
		play_must_live(i);
	lineage_close(&play.line);
	for (uint64_t i = 1; i <= 3; i++)
		play_must_be_ended(i);
	play_must_have_told("");
	assert_false(lineage_is_warm(&play.line));
	assert_int_equal(lineage_due_ns(&play.line), UINT64_MAX);
	lineage_tick(&play.line, UINT64_MAX - 1);
	assert_int_equal(play.pids[4], 0);
}

#define line_test(f) cmocka_unit_test_setup_teardown(f, play_begin, play_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		line_test(the_first_tick_starts_one_and_the_next_ones_do_not),
		line_test(where_none_is_wanted_none_is_started),
		line_test(before_it_is_warm_it_is_not_asked),
		line_test(its_answers_go_to_the_owner),
		line_test(a_child_that_its_pidfd_does_not_prove_is_nobodys),
		line_test(one_that_ends_is_told_of_and_replaced_later),
		line_test(each_loss_makes_the_next_start_wait_twice_as_long_up_to_a_bound),
		line_test(only_a_child_that_was_waited_for_makes_the_wait_short_again),
		line_test(one_that_cannot_begin_says_why),
		line_test(one_that_is_late_is_lost),
		line_test(one_that_is_worn_forks_until_its_successor_is_warm),
		line_test(one_that_is_old_is_succeeded),
		line_test(a_predecessor_lives_as_long_as_it_owes_answers),
		line_test(a_predecessor_that_ends_or_is_late_is_told_of),
		line_test(there_is_one_predecessor_at_most),
		line_test(a_successor_that_is_lost_leaves_the_current_one),
		line_test(closing_ends_all_three_and_tells_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
