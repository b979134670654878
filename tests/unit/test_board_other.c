/* Runs in other languages than the first one, and what their compilers have made: over a kernel that
 * makes nothing, with messages that cannot be sent (-Wl,--wrap=channel_send). */
#include "tests/unit/board_play.h"
#include "tests/unit/unit.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/own.h"
#include "kernel/sys.h"
#include "priv/supervisor/offered.h"
#include "priv/supervisor/pool_internal.h"
#include "wire/channel.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int __wrap_channel_send(int fd, enum msg_type type, const void *payload, const int *fds);
int __real_channel_send(int fd, enum msg_type type, const void *payload, const int *fds);

static enum msg_type unsendable; /* 0: all can be sent */
static int send_code;
static int passes; /* so many of them can */

int __wrap_channel_send(int fd, enum msg_type type, const void *payload, const int *fds)
{
	if (type == unsendable && passes-- <= 0)
		return send_code;
	return __real_channel_send(fd, type, payload, fds);
}

static int begin(void **state)
{
	unsendable = (enum msg_type)0;
	passes = 0;
	return play_begin(state);
}

static int end(void **state)
{
	unsendable = (enum msg_type)0;
	return play_end(state);
}

static void tell_built(void)
{
	const struct msg_built built = { 0 };
	struct no_process *init = play_process(true);

	play_read(init);
	assert_int_equal(channel_send(init->channel_fd, MSG_BUILT, &built, NULL), 0);
}

static void tell_broken(int code)
{
	struct msg_broken broken = { .fault = { .code = code, .text = "a build" } };
	struct no_process *init = play_process(true);

	play_read(init);
	assert_int_equal(channel_send(init->channel_fd, MSG_BROKEN, &broken, NULL), 0);
	play_look();
}

static void expect_refusal(int code)
{
	static struct msg m;

	assert_int_equal(play_cause(&m), CAUSE_MAX);
	assert_int_equal(m.as.REFUSED.fault.code, code);
}

/* ---- Cells of other languages ---- */

static void submit_other(uint64_t run)
{
	play.settings.pool_size = 0; /* only what runs ask for is made */
	play.next = (struct msg_submit){ .run = run, .language = 1 };
	play_submit();
}

/* A place that is free again lies before those that wait: whoever gets it does not. */
static void a_cell_of_another_language_is_made_for_whoever_waits_longest(void **state)
{
	static struct msg m;

	(void)state;
	play.board.slots = 3;
	play.settings.max_builds = 0; /* not yet */
	for (uint64_t run = 20; run < 23; run++)
		submit_other(run);
	board_cancel(&play.board, 20);
	assert_int_equal(play_cause(&m), CAUSE_CANCELLED);
	board_cancel(&play.board, 21);
	assert_int_equal(play_cause(&m), CAUSE_CANCELLED);
	submit_other(23);
	submit_other(24);
	assert_int_equal(the_job()->submit.run, 23);
	play.settings.max_builds = 1;
	(void)board_tick(&play.board);
	assert_int_equal(play.pool.orders[0].number, play.board.jobs[2].order);
	assert_true(play.pool.orders[0].factory == &play.factories.of[1].factory);
}

static void a_cell_that_somebody_has_killed_is_made_again(void **state)
{
	(void)state;
	submit_other(20);
	(void)board_tick(&play.board);
	no_process_die(play_process(true), SIGKILL);
	play_look();
	/* Dead before its user namespace was there. */
	no.fail_in = 2;
	no.fail_code = -ESRCH;
	play_later(NS_PER_MS);
	assert_int_equal(no.fail_in, 0);
	for (unsigned i = 0; i < 3; i++)
		play_later(NS_PER_MS);
	assert_int_equal(the_job()->state, JOB_WAITING);
	play_read(play_park());
	assert_int_equal(the_job()->state, JOB_RUNNING);
}

static void a_cell_that_cannot_be_made_refuses_its_run(void **state)
{
	(void)state;
	submit_other(20);
	(void)board_tick(&play.board);
	tell_broken(-EMFILE);
	assert_int_equal(the_job()->state, JOB_WAITING);
	(void)board_tick(&play.board); /* and no other one is begun for it */
	expect_refusal(-EMFILE);
	no.fail_in = 1;
	no.fail_code = -ENFILE;
	submit_other(21);
	(void)board_tick(&play.board);
	expect_refusal(-ENFILE);
}

static void a_language_that_cannot_be_shown_refuses_its_run(void **state)
{
	(void)state;
	play.factories.of[1].made = false;
	no.views_fail = -EMFILE;
	submit_other(20);
	(void)board_tick(&play.board);
	expect_refusal(-EMFILE);
	no.views_fail = 0;
	submit_other(21);
	(void)board_tick(&play.board);
	assert_int_equal(the_cell()->state, CELL_BUILDING);
}

static void nothing_is_begun_any_more_once_the_pool_is_closed(void **state)
{
	(void)state;
	submit_other(20);
	pool_close(&play.pool);
	play_later(NS_PER_MS);
	assert_int_equal(play.pool.high, 0);
	assert_int_equal(the_job()->state, JOB_WAITING);
}

/* Without a board: as if its run had waited for something else, too. */
static void a_ready_cell_is_its_orders_as_long_as_it_is_wanted(void **state)
{
	const struct pool_wish wish = { .order = 1, .language = 1 };
	const struct msg_entered entered = { 0 };
	struct no_process *p;

	(void)state;
	pool_order(&play.pool, &wish);
	tell_built();
	pool_look(&play.pool, 0);
	p = play_process(false);
	play_read(p);
	assert_int_equal(channel_send(p->channel_fd, MSG_ENTERED, &entered, NULL), 0);
	pool_look(&play.pool, 0);
	assert_int_equal(the_cell()->state, CELL_READY);
	pool_drop_orders(&play.pool);
	pool_order(&play.pool, &wish); /* the same one */
	pool_drop_orders(&play.pool);
	assert_int_equal(play.pool.high, 1);
	assert_int_equal(the_cell()->state, CELL_READY);
	assert_int_equal(pool_ready(&play.pool), 0); /* for nobody else */
	assert_null(pool_take_other(&play.pool, 2));
	assert_ptr_equal(pool_take_other(&play.pool, 1), the_cell());
	assert_null(pool_take_other(&play.pool, 1));
	pool_drop_orders(&play.pool); /* one that was taken is not the pool's to end */
	assert_int_equal(the_cell()->state, CELL_READY);
	pool_give_back(&play.pool, the_cell());
}

static void an_other_cell_that_nobody_wants_any_more_is_ended(void **state)
{
	(void)state;
	pool_order(&play.pool, &(struct pool_wish){ .order = 1, .language = 1 });
	pool_drop_orders(&play.pool);
	assert_int_equal(the_cell()->state, CELL_BUILDING);
	pool_drop_orders(&play.pool);
	assert_int_equal(the_cell()->state, CELL_DYING);
}

/* ---- What no client asks for ---- */

static void violate(const char *words)
{
	const char *rule = NULL;

	assert_int_equal(play_try_to_submit(&rule), -EPROTO);
	assert_non_null(rule);
	if (!strstr(rule, words))
		fail_msg("\"%s\" is not about \"%s\"", rule, words);
	assert_int_equal(board_busy(&play.board), 0);
}

#define VIOLATE(words, ...)                                               \
	do {                                                              \
		play.next = (struct msg_submit){ .run = 9, __VA_ARGS__ }; \
		violate(words);                                           \
	} while (0)

static void a_run_of_what_there_is_not_is_a_violation(void **state)
{
	struct build *build = builds_reserve(&play.pool.builds, 90, 2);

	(void)state;
	VIOLATE("no such language", .language = play.languages.count);
	VIOLATE("no such language", .language = UINT32_MAX);
	VIOLATE("a part", .part = RUN_COMPILER);
	VIOLATE("a part", .language = 1, .part = RUN_BUILT, .build = 90);
	VIOLATE("a part", .language = 2);
	VIOLATE("a part", .language = 2, .part = RUN_BUILT);
	VIOLATE("a part", .language = 2, .part = RUN_COMPILER, .build = 90);
	VIOLATE("no such build", .language = 2, .part = RUN_BUILT, .build = 90); /* not yet */
	build->ready = true;
	VIOLATE("no such build", .language = 2, .part = RUN_BUILT, .build = 89);
	build->language = 1;
	VIOLATE("no such build", .language = 2, .part = RUN_BUILT, .build = 90);
	builds_release(&play.pool.builds, build);
}

/* ---- What a compiler has made ---- */

/* The run in the only place is one of a compiler. */
static struct build *compile(void)
{
	struct build *build = builds_reserve(&play.pool.builds, PLAY_RUN, 2);

	assert_non_null(build);
	the_job()->submit.part = RUN_COMPILER;
	the_job()->build = build;
	return build;
}

static void what_a_compiler_has_made_stays_for_its_program(void **state)
{
	struct no_process *p = play_release();
	const struct build *build = compile();
	static struct msg m;

	(void)state;
	play_read(p);
	no_process_die(p, 0);
	play_look();
	assert_int_equal(play_cause(&m), CAUSE_EXIT);
	assert_true(build->ready);
	board_cancel(&play.board, PLAY_RUN);
	assert_int_equal(build->run, 0);
}

/* Its main process is over, with success, and another of its cell, `child`, is not yet. */
static const struct build *compiler_that_is_killed(int *child)
{
	struct no_process *p = play_release();
	const struct build *build = compile();

	play_read(p);
	assert_non_null(no_process_make(the_cell()->leaf.fd[0], -1, child));
	no.stubborn = true;
	no_process_die(p, 0);
	play_look();
	assert_int_equal(the_job()->state, JOB_KILLING);
	return build;
}

static void a_client_that_leaves_while_a_compiler_is_killed_leaves_no_build(void **state)
{
	cleanup_fd int child = -1;
	const struct build *build = compiler_that_is_killed(&child);
	static struct msg m;

	(void)state;
	board_cancel(&play.board, PLAY_RUN);
	no.stubborn = false;
	play_later(NS_PER_S);
	assert_int_equal(play_cause(&m), CAUSE_EXIT);
	assert_int_equal(build->run, 0);
}

static void a_client_that_leaves_before_a_compilers_answer_is_sent_leaves_no_build(void **state)
{
	struct no_process *p = play_release();
	const struct build *build = compile();
	static struct msg m;

	(void)state;
	play_read(p);
	unsendable = MSG_RESULT;
	send_code = -EAGAIN;
	no_process_die(p, 0);
	play_look();
	assert_int_equal(the_job()->state, JOB_DONE);
	assert_true(build->ready);
	board_cancel(&play.board, PLAY_RUN);
	unsendable = (enum msg_type)0;
	assert_int_equal(play_cause(&m), CAUSE_EXIT);
	assert_int_equal(build->run, 0);
}

/* For want of a place, of its interpreter, or by its limits. */
static void a_program_that_is_refused_leaves_no_build(void **state)
{
	static struct msg m;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct build *build = builds_reserve(&play.pool.builds, 90, 2);

		assert_non_null(build);
		build->ready = true;
		play.board.slots = i != 0;
		play.asked.pids = i == 1 ? 0 : play.settings.def.pids;
		play.next = (struct msg_submit){
			.run = 91 + i, .language = 2, .part = RUN_BUILT, .build = 90
		};
		play_submit();
		assert_int_equal(play_answered(&m), MSG_REFUSED);
		assert_int_equal(m.as.REFUSED.missing, i == 2);
		assert_int_equal(build->run, 0);
	}
	play.board.slots = 1;
}

static void fail_next(int code)
{
	no.fail_in = 1;
	no.fail_code = code;
}

static void a_place_that_cannot_be_removed_is_removed_later(void **state)
{
	struct build *build = builds_reserve(&play.pool.builds, 90, 2);

	(void)state;
	play.settings.pool_size = 0;
	no.builds[builds_number(&play.pool.builds, build)] = build->made = true;
	fail_next(-ENOMEM);
	builds_release(&play.pool.builds, build);
	assert_true(build->run == 0 && build->made);
	assert_ptr_equal(builds_reserve(&play.pool.builds, 91, 2), build);
	assert_true(build->made); /* whoever gets it knows */
	fail_next(-ENOMEM);
	builds_release(&play.pool.builds, build);
	fail_next(-ENOMEM);
	assert_in_range(board_tick(&play.board), 1, clock_ns() + NS_PER_S);
	assert_true(build->made);
	(void)board_tick(&play.board);
	assert_false(build->made || no.builds[builds_number(&play.pool.builds, build)]);
}

static int look_code;

static int no_look(int dir_fd, const char *path, struct stat *ret, int flags)
{
	(void)dir_fd;
	(void)path;
	(void)ret;
	(void)flags;
	return look_code;
}

static void what_could_not_be_looked_for_is_a_failure_and_no_advice(void **state)
{
	static struct msg m;
	const struct sys_ops real = sys;

	(void)state;
	sys.fstatat = no_look;
	for (unsigned i = 0; i < 3; i++) {
		look_code = (const int[]){ -EIO, -ENOMEM, -ENOENT }[i];
		submit_other(30 + i);
		assert_int_equal(play_answered(&m), MSG_REFUSED);
		assert_int_equal(m.as.REFUSED.fault.code, look_code);
		assert_int_equal(m.as.REFUSED.missing, look_code == -ENOENT);
		assert_int_equal(m.as.REFUSED.retry, look_code == -ENOMEM);
	}
	sys = real;
}

/* A compiler that is installed. */
static void submit_compiler(uint64_t run)
{
	play.settings.pool_size = 0;
	memcpy(play.languages.of[2].compile_argv[0], "/dev/null", sizeof("/dev/null"));
	memcpy(play.languages.of[2].runtime.argv[0], "/dev/null", sizeof("/dev/null"));
	play.next = (struct msg_submit){ .run = run, .language = 2, .part = RUN_COMPILER };
	play_submit();
}

/* The first one may have written to it. */
static void a_compiler_that_is_begun_again_gets_a_new_place(void **state)
{
	struct build *build = &play.pool.builds.of[0];

	(void)state;
	submit_compiler(20);
	(void)board_tick(&play.board);
	assert_true(no.builds[0]);
	no_process_die(play_process(true), SIGKILL);
	play_look();
	for (unsigned i = 0; i < 3; i++)
		play_later(NS_PER_MS); /* the kernel would refuse to make it twice */
	assert_true(no.builds[0]);
	assert_int_equal(build->run, 20);
	tell_built();
	play_look();
	assert_non_null(play_process(false)); /* it goes on */
}

static void without_a_place_for_its_build_a_compiler_is_refused(void **state)
{
	(void)state;
	for (unsigned i = 1; i < 3; i++) { /* made, and shown */
		submit_compiler(20);
		no.fail_in = i;
		no.fail_code = -ENOSPC;
		(void)board_tick(&play.board);
		expect_refusal(-ENOSPC);
		assert_int_equal(play.pool.builds.of[0].run, 0);
		assert_false(no.builds[0]);
	}
}

static void more_builds_than_places_wait_at_the_client(void **state)
{
	static struct msg m;

	(void)state;
	play.board.slots = 2;
	submit_compiler(20);
	submit_compiler(21);
	assert_int_equal(play_answered(&m), MSG_REFUSED);
	assert_int_equal(m.as.REFUSED.run, 21);
	assert_int_equal(m.as.REFUSED.fault.code, -EAGAIN);
	assert_int_equal(m.as.REFUSED.retry, 1);
	assert_int_equal(play.board.jobs[1].state, JOB_NONE);
}

static void a_place_that_cannot_be_sent_breaks_its_cell(void **state)
{
	(void)state;
	submit_compiler(20);
	(void)board_tick(&play.board);
	tell_built();
	unsendable = MSG_MOUNT;
	send_code = -ENOBUFS;
	passes = 3; /* what is writable */
	play_look();
	(void)board_tick(&play.board);
	expect_refusal(-ENOBUFS);
	assert_false(no.builds[0]);
}

static void only_the_build_that_is_named_goes(void **state)
{
	struct build *one, *two;

	(void)state;
	play.pool.builds.count = 3;
	one = builds_reserve(&play.pool.builds, 90, 2);
	two = builds_reserve(&play.pool.builds, 91, 2);
	one->ready = two->ready = true;
	board_cancel(&play.board, 91);
	assert_int_equal(one->run, 90);
	assert_int_equal(two->run, 0);
	two = builds_reserve(&play.pool.builds, 92, 2); /* a compiler is at it */
	board_lose_client(&play.board);
	assert_int_equal(one->run, 0);
	assert_int_equal(two->run, 92);
	builds_release(&play.pool.builds, two);
}

static void a_client_that_is_lost_while_a_compiler_is_killed_leaves_no_build(void **state)
{
	cleanup_fd int child = -1;
	const struct build *build = compiler_that_is_killed(&child);
	static struct msg m;

	(void)state;
	board_lose_client(&play.board);
	no.stubborn = false;
	play_later(NS_PER_S);
	assert_int_equal(board_busy(&play.board), 0);
	assert_int_equal(play_answered(&m), 0);
	assert_int_equal(build->run, 0);
}

/* ---- Images that come and go ---- */

static void put_image(unsigned number, const char *name)
{
	struct language *l = &play.languages.of[number];

	*l = (struct language){ .runtime = *play.factory.runtime, .offer.is_image = 1 };
	(void)snprintf(l->runtime.name, sizeof(l->runtime.name), "%s", name);
	memcpy(l->offer.name, l->runtime.name, sizeof(l->offer.name));
	if (number >= play.languages.count)
		play.languages.count = number + 1;
}

static void a_number_is_what_it_was_when_the_client_heard_of_it(void **state)
{
	static struct msg m;

	(void)state;
	put_image(1, "another");
	play.languages.editions[1] = 2;
	submit_other(20);
	assert_int_equal(play_cause(&m), CAUSE_MAX);
	assert_int_equal(m.as.REFUSED.missing, 1);
	assert_int_equal(m.as.REFUSED.fault.code, -ESTALE);
	play.next = (struct msg_submit){ .run = 21, .language = 1, .edition = 2 };
	play_submit();
	assert_int_equal(the_job()->state, JOB_WAITING);
}

static void a_run_in_an_image_that_was_replaced_gets_the_one_in_its_place(void **state)
{
	(void)state;
	put_image(1, "image");
	offered_withdraw(&play.languages, 1);
	put_image(3, "image");
	play.languages.editions[3] = 5; /* which the client has not heard of */
	submit_other(20);
	assert_int_equal(the_job()->submit.language, 3);
	assert_true(play.factories.of[3].made); /* before anybody can remove it */
}

static void an_image_that_has_gone_stays_for_the_runs_that_were_taken(void **state)
{
	(void)state;
	play.settings.max_builds = 0; /* it waits, without a cell */
	put_image(1, "image");
	submit_other(20);
	offered_withdraw(&play.languages, 1);
	assert_false(board_drop_images(&play.board));
	assert_true(play.factories.of[1].made);
	play.settings.max_builds = 1;
	(void)board_tick(&play.board);
	board_cancel(&play.board, 20);
	assert_int_equal(play_cause(&(struct msg){ 0 }), CAUSE_CANCELLED);
	assert_int_equal(the_job()->state, JOB_NONE);
	assert_false(board_drop_images(&play.board)); /* its cell is not gone yet */
	(void)board_tick(&play.board);
	play_later(NS_PER_S);
	no.views_fail = -EBUSY;
	assert_false(board_drop_images(&play.board));
	no.views_fail = 0;
	assert_true(board_drop_images(&play.board));
	assert_false(play.factories.of[1].made);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_number_is_what_it_was_when_the_client_heard_of_it),
		CASE(a_run_in_an_image_that_was_replaced_gets_the_one_in_its_place),
		CASE(an_image_that_has_gone_stays_for_the_runs_that_were_taken),
		CASE(a_cell_of_another_language_is_made_for_whoever_waits_longest),
		CASE(a_cell_that_somebody_has_killed_is_made_again),
		CASE(a_cell_that_cannot_be_made_refuses_its_run),
		CASE(a_language_that_cannot_be_shown_refuses_its_run),
		CASE(nothing_is_begun_any_more_once_the_pool_is_closed),
		CASE(a_ready_cell_is_its_orders_as_long_as_it_is_wanted),
		CASE(an_other_cell_that_nobody_wants_any_more_is_ended),
		CASE(a_run_of_what_there_is_not_is_a_violation),
		CASE(what_a_compiler_has_made_stays_for_its_program),
		CASE(a_client_that_leaves_while_a_compiler_is_killed_leaves_no_build),
		CASE(a_client_that_leaves_before_a_compilers_answer_is_sent_leaves_no_build),
		CASE(a_program_that_is_refused_leaves_no_build),
		CASE(what_could_not_be_looked_for_is_a_failure_and_no_advice),
		CASE(a_place_that_cannot_be_removed_is_removed_later),
		CASE(a_compiler_that_is_begun_again_gets_a_new_place),
		CASE(without_a_place_for_its_build_a_compiler_is_refused),
		CASE(more_builds_than_places_wait_at_the_client),
		CASE(a_place_that_cannot_be_sent_breaks_its_cell),
		CASE(only_the_build_that_is_named_goes),
		CASE(a_client_that_is_lost_while_a_compiler_is_killed_leaves_no_build),
	};

	return cmocka_run_group_tests_name("board_other", tests, NULL, NULL);
}
