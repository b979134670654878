/* Zygotes of images that requests pick: over a kernel that makes nothing, with the parts of the
 * zygotes spoken by the test. */
#include "tests/unit/board_play.h"
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/own.h"
#include "priv/supervisor/offered.h"
#include "priv/supervisor/pool_internal.h"
#include "wire/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define IMAGES       (LINES_MAX + 2)
#define FORK_LATE_NS (150 * NS_PER_MS) /* as in pool_stock.c */

static struct languages languages;
static struct factories factories;

static int begin(void **state)
{
	int r = play_begin(state);

	memset(&languages, 0, sizeof(languages));
	languages.count = 1 + IMAGES;
	for (unsigned i = 0; i < languages.count; i++) {
		languages.of[i].runtime = *play.factory.runtime;
		(void)snprintf(languages.of[i].runtime.name, RUNTIME_NAME_MAX, "image%u", i);
		languages.of[i].offer.is_image = i > 0;
		memcpy(languages.of[i].offer.name, languages.of[i].runtime.name, RUNTIME_NAME_MAX);
	}
	play.settings.pool_size = 0;
	play.settings.zygote_max_forks = 1000;
	pool_open(&play.pool, &play.settings, &play.factory, true);
	play.pool.lineage.wanted = false; /* this is about the others */
	factories_open(&factories, &play.factory, &languages, &play.settings);
	play.pool.factories = &factories;
	play.pool.watch = play.pool.lineage.watch = play.pool.lines.watch =
		(struct watch){ .epoll_fd = play.records.fd };
	return r;
}

/* ---- What the zygotes say ---- */

/* The one that was started last and lives. */
static struct no_process *zygote(void)
{
	struct no_process *last = NULL;

	for (unsigned i = 0; i < NO_PROCESSES; i++) {
		struct no_process *p = &no.processes[i];

		if (p->pid > 0 && p->life_fd >= 0 && p->zygote && (!last || p->pid > last->pid))
			last = p;
	}
	return last;
}

static unsigned zygotes(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < NO_PROCESSES; i++)
		n += no.processes[i].pid > 0 && no.processes[i].life_fd >= 0 &&
		     no.processes[i].zygote;
	return n;
}

static void listen_all(void)
{
	for (unsigned i = 0; i < LINES_MAX * LINEAGE_ZYGOTES; i++)
		lines_look(&play.pool.lines, i);
}

static void read_all(struct no_process *z)
{
	static struct msg m;

	(void)fcntl(z->channel_fd, F_SETFL, O_NONBLOCK);
	while (channel_recv(z->channel_fd, ROLE_SUPERVISOR, ROLE_BOX, &m, NULL) == 1)
		msg_done(&m);
}

static void say_warm(struct no_process *z)
{
	const struct msg_warm m = { .version = "3" };

	read_all(z);
	assert_int_equal(channel_send(z->channel_fd, MSG_WARM, &m, NULL), 0);
	listen_all();
}

/* What it is about to do for its preload; "": it is done with that. */
static void say_preloading(struct no_process *z, const char *what)
{
	struct msg_preloading m = { { 0 } };

	read_all(z);
	(void)snprintf(m.what, sizeof(m.what), "%s", what);
	assert_int_equal(channel_send(z->channel_fd, MSG_PRELOADING, &m, NULL), 0);
	listen_all();
}

static void say_failed(struct no_process *z, const char *why)
{
	struct msg_broken m = { .cell = 0 };

	read_all(z);
	(void)fault_say(&m.fault, -EINVAL, "%s", why);
	assert_int_equal(channel_send(z->channel_fd, MSG_UNFORKED, &m, NULL), 0);
	listen_all();
}

static void die(struct no_process *z)
{
	no_process_die(z, 9);
	listen_all();
}

/* It was asked for a main, and here it is: false, it was not asked. */
static bool fork_main(struct no_process *asked, struct no_process *answering)
{
	static struct msg m;
	struct msg_forked answer;
	struct no_process *child;
	cleanup_fd int pidfd = -1;

	(void)fcntl(asked->channel_fd, F_SETFL, O_NONBLOCK);
	if (channel_recv(asked->channel_fd, ROLE_SUPERVISOR, ROLE_ZYGOTE, &m, NULL) != 1)
		return false;
	assert_int_equal(m.type, MSG_FORK);
	child = no_process_make(m.fds[1], take_fd(&m.fds[2]), &pidfd);
	assert_non_null(child);
	child->home = no_identity(m.fds[0]);
	answer = (struct msg_forked){ .cell = m.as.FORK.cell, .pid = child->pid };
	msg_done(&m);
	assert_int_equal(channel_send(answering->channel_fd, MSG_FORKED, &answer, &pidfd), 0);
	listen_all();
	return true;
}

/* ---- The run ---- */

static struct line *line_of(uint32_t language)
{
	for (unsigned i = 0; i < LINES_MAX; i++) {
		if (play.pool.lines.of[i].language == language)
			return &play.pool.lines.of[i];
	}
	return NULL;
}

/* A run in that image, as far as its cage. */
static void ask(uint32_t image)
{
	const struct msg_built built = { 0 };
	struct no_process *init;

	play.next.language = image;
	play_submit();
	(void)board_tick(&play.board);
	init = play_process(true);
	play_read(init);
	assert_int_equal(channel_send(init->channel_fd, MSG_BUILT, &built, NULL), 0);
	play_look();
}

/* Its main is there, gets ready, and its program ends. */
static void answer(void)
{
	static struct msg m;
	const struct msg_entered entered = { 0 };
	struct no_process *p = play_process(false);

	play_read(p);
	p->entered = true;
	assert_int_equal(channel_send(p->channel_fd, MSG_ENTERED, &entered, NULL), 0);
	play_look();
	assert_int_equal(play.board.jobs[0].state, JOB_RUNNING);
	play_read(p);
	no_process_die(p, 0);
	play_look();
	assert_int_equal(play_cause(&m), CAUSE_EXIT);
	play_later(NS_PER_MS);
}

/* The first run in it; then its zygote is warm. */
static struct no_process *have_one(uint32_t image)
{
	struct no_process *z;

	ask(image);
	answer();
	z = zygote();
	say_warm(z);
	assert_true(lines_warm(&play.pool.lines) >> image & 1);
	return z;
}

/* ---- Begun, asked ---- */

static void the_first_run_in_an_image_is_cold_and_the_next_one_is_forked(void **state)
{
	struct no_process *z;

	(void)state;
	assert_int_equal(zygotes(), 0);
	ask(1);
	assert_int_equal(zygotes(), 1);
	assert_false(the_cell()->warm); /* it does not wait for what is imported */
	answer();
	assert_int_equal(lines_warm(&play.pool.lines), 0);
	z = zygote();
	say_warm(z);
	assert_int_equal(lines_warm(&play.pool.lines), 1u << 1);
	ask(1);
	assert_true(cell_awaits_fork(the_cell()));
	assert_true(fork_main(z, z));
	assert_false(cell_awaits_fork(the_cell()));
	answer();
	assert_int_equal(zygotes(), 1);
}

static void each_image_has_its_own_and_no_generation_is_used_twice(void **state)
{
	struct no_process *one, *two;

	(void)state;
	one = have_one(1);
	two = have_one(2);
	assert_ptr_not_equal(one, two);
	assert_int_not_equal(
		line_of(1)->lineage.current.generation, line_of(2)->lineage.current.generation);
	ask(1);
	assert_false(fork_main(two, two)); /* it was not asked */
	assert_true(fork_main(one, one));
	answer();
}

/* The child that it tells of would be the main of a stranger's cell. */
static void only_the_zygote_that_was_asked_can_answer(void **state)
{
	struct no_process *one, *two;

	(void)state;
	one = have_one(1);
	two = have_one(2);
	ask(1);
	assert_true(fork_main(one, two));
	assert_true(cell_awaits_fork(the_cell()));
	play_later(FORK_LATE_NS);
	assert_false(cell_awaits_fork(the_cell()));
	answer();
}

static void an_image_that_may_have_none_has_none(void **state)
{
	(void)state;
	ask(1);
	answer();
	factories.of[1].factory.fork_main = NULL; /* as for one that does not fit */
	lines_close(&play.pool.lines);
	ask(1);
	assert_false(the_cell()->warm);
	answer();
	assert_int_equal(zygotes(), 0);
}

/* ---- What goes wrong ---- */

static void one_that_dies_while_it_is_waited_for_costs_no_run(void **state)
{
	struct no_process *z;

	(void)state;
	z = have_one(1);
	ask(1);
	assert_true(cell_awaits_fork(the_cell()));
	no_process_die(z, 9);
	listen_all();
	assert_false(cell_awaits_fork(the_cell()));
	answer();
	assert_int_equal(lines_warm(&play.pool.lines), 0);
	play_later(NS_PER_S); /* and another one is started */
	say_warm(zygote());
	ask(1);
	assert_true(fork_main(zygote(), zygote()));
	answer();
}

static void one_that_is_late_costs_a_bounded_time(void **state)
{
	uint64_t due;

	(void)state;
	(void)have_one(1);
	ask(1);
	assert_true(cell_awaits_fork(the_cell()));
	due = board_tick(&play.board);
	assert_in_range(due, no.now_ns, no.now_ns + FORK_LATE_NS);
	play_later(FORK_LATE_NS);
	assert_false(cell_awaits_fork(the_cell()));
	answer();
}

static void one_whose_children_break_is_not_asked_for_a_while(void **state)
{
	struct msg_broken broken = { .cell = 0 };
	struct no_process *z, *main;

	(void)state;
	z = have_one(1);
	ask(1);
	assert_true(fork_main(z, z));
	main = play_process(false);
	play_read(main);
	(void)fault_say(&broken.fault, -EINVAL, "a child that is good for nothing");
	assert_int_equal(channel_send(main->channel_fd, MSG_BROKEN, &broken, NULL), 0);
	play_look();
	assert_int_equal(play.board.jobs[0].state, JOB_WAITING);
	/* The run goes on: in another cell, and cold. */
	for (unsigned i = 0; i < 3; i++)
		play_later(NS_PER_MS);
	main = play_process(true);
	play_read(main);
	assert_int_equal(
		channel_send(main->channel_fd, MSG_BUILT, &(struct msg_built){ 0 }, NULL), 0);
	play_look();
	assert_false(fork_main(z, z));
	answer();
	play_later(LINES_SHUNNED_NS);
	ask(1);
	assert_true(fork_main(z, z));
	answer();
}

/* Ended between its fork and the child's end. */
static void a_child_may_break_when_its_line_is_gone(void **state)
{
	struct msg_broken broken = { .fault = { .code = -EINVAL, .text = "a child" } };
	struct no_process *z, *main;

	(void)state;
	z = have_one(1);
	ask(1);
	assert_true(fork_main(z, z));
	lines_close(&play.pool.lines);
	main = play_process(false);
	play_read(main);
	assert_int_equal(channel_send(main->channel_fd, MSG_BROKEN, &broken, NULL), 0);
	play_look();
	assert_int_equal(the_cell()->state, CELL_DYING);
	assert_int_equal(play.board.jobs[0].state, JOB_WAITING);
}

/* What the zygote that is there was started with. */
static const char *preloaded(void)
{
	assert_int_equal(zygotes(), 1);
	return line_of(1)->lineage.owner.preload;
}

static void begin_one(void)
{
	ask(1);
	answer();
	assert_string_equal(preloaded(), "numpy");
}

/* It was lost: the next one is started, and warm, and useful. */
static void must_go_on_with(const char *preload)
{
	assert_int_equal(zygotes(), 0);
	play_later(2 * NS_PER_S); /* the back-off of three in a row and more */
	assert_string_equal(preloaded(), preload);
	say_warm(zygote());
	ask(1);
	assert_true(fork_main(zygote(), zygote()));
	answer();
}

static void one_whose_preload_throws_goes_on_without(void **state)
{
	(void)state;
	begin_one();
	say_preloading(zygote(), "module numpy");
	say_failed(zygote(), "module numpy: ModuleNotFoundError");
	assert_non_null(strstr(line_of(1)->lineage.lost.text, "numpy"));
	must_go_on_with("");
}

/* A signal, an exit: it has no way to say why. */
static void one_whose_preload_kills_it_goes_on_without(void **state)
{
	(void)state;
	begin_one();
	say_preloading(zygote(), "module numpy");
	die(zygote());
	assert_non_null(strstr(line_of(1)->lineage.lost.text, "zygote: module numpy: it ended"));
	must_go_on_with("");
}

static void one_whose_preload_hangs_goes_on_without(void **state)
{
	uint64_t deadline_ns;

	(void)state;
	begin_one();
	say_preloading(zygote(), "module numpy");
	deadline_ns = line_of(1)->lineage.next.deadline_ns;
	play_later(deadline_ns - no.now_ns);
	assert_non_null(
		strstr(line_of(1)->lineage.lost.text, "zygote: module numpy: no answer in time"));
	must_go_on_with("");
}

/* The name is as long as the message has room for, without an end. */
static void a_module_of_any_name_is_told_of(void **state)
{
	struct msg_preloading m;

	(void)state;
	begin_one();
	memset(m.what, 'm', sizeof(m.what));
	assert_int_equal(channel_send(zygote()->channel_fd, MSG_PRELOADING, &m, NULL), 0);
	listen_all();
	assert_int_equal(strlen(line_of(1)->lineage.next.preloading), PRELOADING_MAX - 1);
	die(zygote());
	must_go_on_with("");
}

/* Killed, out of memory: before its preload or after it that says nothing about that. */
static void one_that_is_lost_for_another_reason_keeps_its_preload(void **state)
{
	(void)state;
	begin_one();
	die(zygote());
	play_later(NS_PER_S);
	assert_string_equal(preloaded(), "numpy");
	say_failed(zygote(), "mounts: Cannot allocate memory");
	play_later(NS_PER_S);
	assert_string_equal(preloaded(), "numpy");
	say_preloading(zygote(), "module numpy");
	say_preloading(zygote(), "");
	say_failed(zygote(), "share its memory: Cannot allocate memory");
	play_later(NS_PER_S);
	assert_string_equal(preloaded(), "numpy");
	say_preloading(zygote(), "module numpy");
	say_warm(zygote());
	die(zygote());
	must_go_on_with("numpy");
}

static void a_preload_is_tried_again_after_a_while_by_the_next_one(void **state)
{
	(void)state;
	play.settings.zygote_max_age_us = UINT64_MAX / NS_PER_US;
	play.settings.cell_max_age_us = 10 * LINES_SPARED_NS / NS_PER_US;
	begin_one();
	say_preloading(zygote(), "module numpy");
	die(zygote());
	must_go_on_with("");
	play_later(LINES_SPARED_NS - 10 * NS_PER_S);
	die(zygote());
	must_go_on_with("");
	play_later(10 * NS_PER_S);
	assert_true(lines_warm(&play.pool.lines) >> 1 & 1); /* no reason to end it */
	die(zygote());
	must_go_on_with("numpy");
	die(zygote()); /* what it was spared for is past */
	must_go_on_with("numpy");
}

/* Whatever it sends, others get their turn. */
static void one_that_floods_is_heard_for_a_while_at_a_time(void **state)
{
	struct msg_preloading m = { { 0 } };
	const int room = 1 << 20;
	const struct zygote *z;

	(void)state;
	ask(1);
	answer();
	z = &line_of(1)->lineage.next;
	(void)setsockopt(zygote()->channel_fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	for (int i = 0; i < 100; i++) {
		(void)snprintf(m.what, sizeof(m.what), "%d", i);
		assert_int_equal(channel_send(zygote()->channel_fd, MSG_PRELOADING, &m, NULL), 0);
	}
	listen_all();
	assert_string_equal(z->preloading, "63");
	listen_all();
	assert_string_equal(z->preloading, "99");
}

static void one_that_preloads_when_it_is_warm_is_lost(void **state)
{
	(void)state;
	(void)have_one(1);
	say_preloading(zygote(), "module numpy");
	must_go_on_with("numpy");
}

static void one_that_is_dead_is_no_stranger(void **state)
{
	struct no_process *z;
	pid_t pid;

	(void)state;
	z = have_one(1);
	pid = z->pid;
	no_process_die(z, 9);
	play_later(NS_PER_S);
	play_later(NS_PER_S);
	assert_int_equal(z->pid, pid); /* reaped by whoever owns it, after it was heard of */
	listen_all();
	play_later(NS_PER_S);
	assert_int_not_equal(z->pid, pid);
}

/* ---- How many, how long ---- */

static void the_longest_unused_one_gives_way_but_none_that_is_in_use(void **state)
{
	struct no_process *of[LINES_MAX + 1];

	(void)state;
	for (uint32_t i = 1; i <= LINES_MAX; i++) {
		of[i] = have_one(i);
		play_later(NS_PER_S);
	}
	ask(1); /* now it is 2 that nobody has wanted for longest */
	assert_true(fork_main(of[1], of[1]));
	answer();
	ask(LINES_MAX + 1);
	assert_false(the_cell()->warm);
	answer();
	assert_int_equal(zygotes(), LINES_MAX);
	assert_null(line_of(LINES_MAX + 1));
	play_later(LINES_KEPT_NS);
	ask(LINES_MAX + 1);
	answer();
	assert_int_equal(zygotes(), LINES_MAX);
	assert_non_null(line_of(LINES_MAX + 1));
	assert_null(line_of(2));
	say_warm(zygote());
	ask(1);
	assert_true(fork_main(of[1], of[1]));
	answer();
}

static void one_that_is_ended_leaves_nobody_waiting(void **state)
{
	(void)state;
	(void)have_one(1);
	ask(1);
	assert_true(cell_awaits_fork(the_cell()));
	lines_close(&play.pool.lines);
	assert_false(cell_awaits_fork(the_cell()));
	answer();
}

static void one_that_nobody_asks_for_is_ended(void **state)
{
	uint64_t age = play.settings.cell_max_age_us * NS_PER_US;

	(void)state;
	play.settings.zygote_max_age_us = 10 * play.settings.cell_max_age_us;
	(void)have_one(1);
	play_later(age / 2);
	ask(1);
	assert_true(fork_main(zygote(), zygote()));
	answer();
	play_later(age / 2 + NS_PER_S); /* since it was begun, but not since it was asked */
	assert_int_equal(zygotes(), 1);
	assert_true(lines_due_ns(&play.pool.lines) <= no.now_ns + age / 2);
	play_later(age / 2);
	assert_int_equal(zygotes(), 0);
	assert_null(line_of(1));
	assert_int_equal(lines_due_ns(&play.pool.lines), UINT64_MAX);
	ask(1); /* and begins anew */
	answer();
	assert_int_equal(zygotes(), 1);
}

static void one_whose_image_has_gone_ends_with_the_last_run_in_it(void **state)
{
	(void)state;
	(void)have_one(1);
	ask(1);
	offered_withdraw(&languages, 1);
	assert_false(board_drop_images(&play.board));
	assert_true(fork_main(zygote(), zygote()));
	assert_false(board_drop_images(&play.board));
	answer();
	assert_int_equal(zygotes(), 1);
	assert_true(board_drop_images(&play.board));
	assert_int_equal(zygotes(), 0);
	assert_null(line_of(1));
	assert_false(board_drop_images(&play.board));
	assert_int_equal(offered_free(&languages), 1);
}

static void closing_ends_all(void **state)
{
	(void)state;
	(void)have_one(1);
	ask(2); /* which is just being started */
	answer();
	assert_int_equal(zygotes(), 2);
	pool_close(&play.pool);
	assert_int_equal(zygotes(), 0);
	play_later(NS_PER_S);
	play_later(NS_PER_S);
	assert_int_equal(zygotes(), 0);
	assert_int_equal(pool_alive(&play.pool), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, play_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_first_run_in_an_image_is_cold_and_the_next_one_is_forked),
		CASE(each_image_has_its_own_and_no_generation_is_used_twice),
		CASE(only_the_zygote_that_was_asked_can_answer),
		CASE(an_image_that_may_have_none_has_none),
		CASE(one_that_dies_while_it_is_waited_for_costs_no_run),
		CASE(one_that_is_late_costs_a_bounded_time),
		CASE(one_whose_children_break_is_not_asked_for_a_while),
		CASE(a_child_may_break_when_its_line_is_gone),
		CASE(one_whose_preload_throws_goes_on_without),
		CASE(one_whose_preload_kills_it_goes_on_without),
		CASE(one_whose_preload_hangs_goes_on_without),
		CASE(a_module_of_any_name_is_told_of),
		CASE(one_that_is_lost_for_another_reason_keeps_its_preload),
		CASE(a_preload_is_tried_again_after_a_while_by_the_next_one),
		CASE(one_that_floods_is_heard_for_a_while_at_a_time),
		CASE(one_that_preloads_when_it_is_warm_is_lost),
		CASE(one_that_is_dead_is_no_stranger),
		CASE(the_longest_unused_one_gives_way_but_none_that_is_in_use),
		CASE(one_that_is_ended_leaves_nobody_waiting),
		CASE(one_that_nobody_asks_for_is_ended),
		CASE(one_whose_image_has_gone_ends_with_the_last_run_in_it),
		CASE(closing_ends_all),
	};

	return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
