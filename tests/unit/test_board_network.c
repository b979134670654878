/* Runs with a network: what brings it, what refuses it, and the cells that have one. Over a kernel
 * that makes nothing. */
#include "tests/unit/board_play.h"
#include "tests/unit/network_play.h"
#include "tests/unit/unit.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/own.h"
#include "priv/supervisor/pool_internal.h"
#include "wire/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- NETWORK and SUBMIT ---- */

static void violate(uint64_t run)
{
	const char *rule = NULL;

	play.next = (struct msg_submit){ .run = run, .allow_network = 1 };
	assert_int_equal(play_try_to_submit(&rule), -EPROTO);
	assert_string_equal(rule, "a network without its NETWORK");
	assert_int_equal(board_busy(&play.board), 0);
}

static void a_network_belongs_to_the_run_that_it_names(void **state)
{
	(void)state;
	violate(PLAY_RUN);
	network_send_good(PLAY_RUN + 1);
	violate(PLAY_RUN);
	network_submit(PLAY_RUN);
	assert_int_equal(the_job()->state, JOB_WAITING);
	assert_true(the_job()->network_fd >= 0);
	play.board.slots = 2;
	play.next = (struct msg_submit){ .run = PLAY_RUN + 1, .allow_network = 1 };
	assert_int_equal(play_try_to_submit(&(const char *){ NULL }), -EPROTO); /* it was used */
}

/* Its SUBMIT could not be sent. */
static void a_later_network_takes_the_place_of_an_earlier_one(void **state)
{
	unsigned fds;

	(void)state;
	network_send_good(PLAY_RUN);
	fds = network_count_fds();
	network_send_good(PLAY_RUN + 1);
	assert_int_equal(network_count_fds(), fds);
	violate(PLAY_RUN);
}

static void memory_that_is_not_as_agreed_is_a_violation(void **state)
{
	(void)state;
	assert_int_equal(
		network_send(PLAY_RUN, network_memory(NETWORK_SIZE - 1, NETWORK_SEALED)), -EPROTO);
	assert_int_equal(
		network_send(PLAY_RUN, network_memory(NETWORK_SIZE + 1, NETWORK_SEALED)), -EPROTO);
	assert_int_equal(
		network_send(PLAY_RUN, network_memory(NETWORK_SIZE, F_SEAL_SHRINK)), -EPROTO);
	assert_int_equal(network_send(PLAY_RUN, open("/dev/zero", O_RDWR | O_CLOEXEC)), -EPROTO);
	assert_int_equal(play.board.network_fd, -1);
	violate(PLAY_RUN);
}

static void a_run_that_does_not_ask_for_its_network_has_none(void **state)
{
	(void)state;
	play.settings.pool_size = 1;
	network_send_good(PLAY_RUN);
	(void)play_release();
	assert_int_equal(the_cell()->tun_fd, -1);
	assert_int_equal(network_gates(), 0);
	assert_int_equal(the_job()->network_fd, -1);
	network_lose_client();
	assert_int_equal(play.board.network_fd, -1);
}

/* What is left is counted at the end of each test. */
static void a_run_that_is_refused_leaves_no_network(void **state)
{
	static struct msg m;

	(void)state;
	play.settings.network = 0;
	network_submit(PLAY_RUN);
	network_refused(-EOPNOTSUPP);
	play.settings.network = 1;
	play.board.slots = 0;
	network_submit(PLAY_RUN);
	play.board.slots = 1;
	assert_int_equal(play_answered(&m), MSG_REFUSED);
	assert_int_equal(m.as.REFUSED.fault.code, -EAGAIN);
	/* A language whose interpreter is not there. */
	network_send_good(PLAY_RUN);
	play.next = (struct msg_submit){ .run = PLAY_RUN, .allow_network = 1, .language = 1 };
	memcpy(play.languages.of[1].runtime.argv[0], "/dev/none", sizeof("/dev/none"));
	play_submit();
	assert_int_equal(play_answered(&m), MSG_REFUSED);
	assert_int_equal(m.as.REFUSED.missing, 1);
	assert_int_equal(play.board.network_fd, -1);
	assert_int_equal(board_busy(&play.board), 0);
}

static void a_run_that_waits_and_is_cancelled_leaves_no_network(void **state)
{
	static struct msg m;

	(void)state;
	network_submit(PLAY_RUN);
	(void)board_tick(&play.board);
	assert_int_equal(the_cell()->state, CELL_BUILDING);
	board_cancel(&play.board, PLAY_RUN);
	assert_int_equal(the_job()->network_fd, -1);
	assert_int_equal(play_cause(&m), CAUSE_CANCELLED);
	network_settle();
	assert_int_equal(the_cell()->state, CELL_GONE);
	assert_int_equal(network_gates(), 0);
}

static void a_client_that_is_lost_leaves_no_network(void **state)
{
	(void)state;
	(void)network_release();
	play.board.slots = 2;
	network_submit(PLAY_RUN + 1);
	network_send_good(PLAY_RUN + 2);
	network_lose_client();
	assert_int_equal(play.board.network_fd, -1);
	assert_null(network_gate());
	network_settle();
	assert_int_equal(board_busy(&play.board), 0);
	assert_int_equal(network_gates(), 0);
}

/* ---- Its cell ---- */

static void a_cell_with_a_network_serves_once(void **state)
{
	static struct msg m;
	struct no_process *p;

	(void)state;
	play.settings.cage_runs = play.factory.runs_max = 10;
	p = network_release();
	assert_true(the_cell()->tun_fd >= 0);
	play.settings.pool_size = 1; /* a cell is wanted, and this one would be as good as new */
	network_end_well(p, &m);
	play_look();
	play_later(NS_PER_MS);
	play_look();
	assert_true(the_cell()->state == CELL_GONE || the_cell()->tun_fd < 0);
	(void)play_park();
	for (unsigned i = 0; i < play.pool.high; i++)
		assert_int_equal(play.pool.cells[i].tun_fd, -1);
}

static void a_run_without_a_network_gets_no_cell_that_has_one(void **state)
{
	(void)state;
	network_submit(PLAY_RUN);
	(void)board_tick(&play.board);
	play.board.slots = 2;
	play.settings.max_builds = 2;
	play.next = (struct msg_submit){ .run = PLAY_RUN + 1 };
	play_submit();
	(void)play_park();
	assert_int_equal(play.board.jobs[0].state, JOB_RUNNING);
	assert_int_equal(play.board.jobs[1].state, JOB_WAITING);
}

static void a_cell_of_another_language_has_its_network_too(void **state)
{
	(void)state;
	network_send_good(PLAY_RUN);
	play.next = (struct msg_submit){ .run = PLAY_RUN, .allow_network = 1, .language = 1 };
	play_submit();
	(void)play_park();
	assert_int_equal(the_job()->state, JOB_RUNNING);
	assert_true(the_cell()->tun_fd >= 0);
	assert_non_null(network_gate());
}

/* ---- Zygotes of the pool's own language ---- */

static struct no_process *zygote(void)
{
	for (unsigned i = 0; i < NO_PROCESSES; i++) {
		if (no.processes[i].pid > 0 && no.processes[i].life_fd >= 0 &&
			no.processes[i].zygote)
			return &no.processes[i];
	}
	fail();
	return NULL;
}

static void listen_to_zygotes(void)
{
	for (unsigned i = 0; i < LINEAGE_ZYGOTES; i++)
		lineage_look(&play.pool.lineage, i);
}

/* One is warm, if there is to be one, and a run with a network waits for its main. */
static void wait_for_main(bool warm)
{
	const struct watch watch = play.pool.watch, lineage = play.pool.lineage.watch;
	const struct msg_warm m = { .version = "3" };
	struct no_process *init;

	pool_open(&play.pool, &play.settings, &play.factory, true);
	play.pool.factories = &play.factories;
	play.pool.watch = watch;
	play.pool.lineage.watch = lineage;
	network_claim();
	(void)board_tick(&play.board);
	play_read(zygote());
	if (warm) {
		assert_int_equal(channel_send(zygote()->channel_fd, MSG_WARM, &m, NULL), 0);
		listen_to_zygotes();
		assert_true(lineage_is_warm(&play.pool.lineage));
	}
	network_submit(PLAY_RUN);
	(void)board_tick(&play.board);
	init = play_process(true);
	play_read(init);
	assert_int_equal(
		channel_send(init->channel_fd, MSG_BUILT, &(struct msg_built){ 0 }, NULL), 0);
	play_look();
	assert_int_equal(cell_awaits_fork(the_cell()), warm);
}

/* Its main is there and waits; then it runs, with a network. */
static void go(void)
{
	struct no_process *p = play_process(false);

	play_read(p);
	p->entered = true;
	assert_int_equal(
		channel_send(p->channel_fd, MSG_ENTERED, &(struct msg_entered){ 0 }, NULL), 0);
	play_look();
	assert_int_equal(the_job()->state, JOB_RUNNING);
	assert_true(the_job()->cell->tun_fd >= 0);
	assert_non_null(network_gate());
}

static void receive_fork(struct msg *ret)
{
	struct no_process *z = zygote();

	(void)fcntl(z->channel_fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(channel_recv(z->channel_fd, ROLE_SUPERVISOR, ROLE_ZYGOTE, ret, NULL), 1);
	assert_int_equal(ret->type, MSG_FORK);
}

static void fork_child(void)
{
	static struct msg m;
	struct msg_forked answer;
	struct no_process *child;
	cleanup_fd int pidfd = -1;

	receive_fork(&m);
	child = no_process_make(m.fds[1], take_fd(&m.fds[2]), &pidfd);
	assert_non_null(child);
	child->home = no_identity(m.fds[0]);
	answer = (struct msg_forked){ .cell = m.as.FORK.cell, .pid = child->pid };
	msg_done(&m);
	assert_int_equal(channel_send(zygote()->channel_fd, MSG_FORKED, &answer, &pidfd), 0);
	listen_to_zygotes();
}

static void the_zygote_forks_the_main_of_a_cell_with_a_network(void **state)
{
	(void)state;
	wait_for_main(true);
	fork_child();
	assert_true(the_cell()->warm);
	go();
}

static void without_a_zygote_the_main_is_started_cold(void **state)
{
	(void)state;
	wait_for_main(false);
	go();
}

static void a_zygote_that_does_not_fork_is_not_waited_for(void **state)
{
	static struct msg m;
	struct msg_broken no_fork = { .fault = { .code = -EAGAIN } };

	(void)state;
	wait_for_main(true);
	receive_fork(&m);
	no_fork.cell = m.as.FORK.cell;
	msg_done(&m);
	assert_int_equal(channel_send(zygote()->channel_fd, MSG_UNFORKED, &no_fork, NULL), 0);
	listen_to_zygotes();
	go();
}

static void a_zygote_that_dies_is_not_waited_for(void **state)
{
	(void)state;
	wait_for_main(true);
	no_process_die(zygote(), SIGKILL);
	listen_to_zygotes();
	go();
}

/* The board comes back in time to see that it is late. */
static void a_zygote_that_is_late_is_not_waited_for(void **state)
{
	uint64_t begun = no.now_ns;

	(void)state;
	wait_for_main(true);
	while (cell_awaits_fork(the_cell())) {
		assert_in_range(no.now_ns, begun, begun + 200 * NS_PER_MS);
		no.now_ns = board_tick(&play.board);
	}
	go();
}

static void a_zygotes_child_that_breaks_is_followed_by_a_cold_main(void **state)
{
	const struct msg_broken broken = { .fault = { .code = -EIO, .text = "a main" } };
	struct no_process *p;

	(void)state;
	wait_for_main(true);
	fork_child();
	p = play_process(false);
	play_read(p);
	assert_int_equal(channel_send(p->channel_fd, MSG_BROKEN, &broken, NULL), 0);
	play_look();
	for (unsigned i = 0; i < 3; i++)
		play_later(NS_PER_MS);
	assert_int_equal(the_job()->state, JOB_WAITING);
	p = play_process(true);
	play_read(p);
	assert_int_equal(channel_send(p->channel_fd, MSG_BUILT, &(struct msg_built){ 0 }, NULL), 0);
	play_look();
	go();
	assert_false(the_job()->cell->warm);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, network_begin, network_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_network_belongs_to_the_run_that_it_names),
		CASE(a_later_network_takes_the_place_of_an_earlier_one),
		CASE(memory_that_is_not_as_agreed_is_a_violation),
		CASE(a_run_that_does_not_ask_for_its_network_has_none),
		CASE(a_run_that_is_refused_leaves_no_network),
		CASE(a_run_that_waits_and_is_cancelled_leaves_no_network),
		CASE(a_client_that_is_lost_leaves_no_network),
		CASE(a_cell_with_a_network_serves_once),
		CASE(a_run_without_a_network_gets_no_cell_that_has_one),
		CASE(a_cell_of_another_language_has_its_network_too),
		CASE(the_zygote_forks_the_main_of_a_cell_with_a_network),
		CASE(without_a_zygote_the_main_is_started_cold),
		CASE(a_zygote_that_does_not_fork_is_not_waited_for),
		CASE(a_zygote_that_dies_is_not_waited_for),
		CASE(a_zygote_that_is_late_is_not_waited_for),
		CASE(a_zygotes_child_that_breaks_is_followed_by_a_cold_main),
	};

	return cmocka_run_group_tests_name("board_network", tests, NULL, NULL);
}
