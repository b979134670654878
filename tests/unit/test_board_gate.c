/* The gate of a run with a network: begun before the program, ended with the run, and what is told of
 * one that ends by itself. Over a kernel that makes nothing. */
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

static int log_fd = -1, real_err_fd = -1;

/* What is logged until it is looked at, in which `words` have to be; NULL: nothing is. */
static void log_into_memory(void)
{
	log_fd = memfd_create("log", MFD_CLOEXEC);
	real_err_fd = dup(STDERR_FILENO);
	assert_int_equal(dup2(log_fd, STDERR_FILENO), STDERR_FILENO);
}

static void expect_logged(const char *words)
{
	char text[4096] = "";

	assert_int_equal(dup2(real_err_fd, STDERR_FILENO), STDERR_FILENO);
	assert_true(pread(log_fd, text, sizeof(text) - 1, 0) >= 0);
	drop_fd(&log_fd);
	drop_fd(&real_err_fd);
	if (words ? !strstr(text, words) : text[0] != '\0')
		fail_msg("logged is: %s", text);
}

/* ---- The gate's life ---- */

static void the_gate_is_there_before_the_program(void **state)
{
	static struct msg m;
	unsigned at_gate = 0, at_start = 0;
	ino_t shared;

	(void)state;
	(void)network_release();
	for (unsigned i = 0; i < network.sent_count; i++) {
		at_gate = network.sent[i] == MSG_GATE ? i : at_gate;
		at_start = network.sent[i] == MSG_START ? i : at_start;
	}
	assert_in_range(at_gate, 1, at_start - 1);
	network_read_gate(network_gate(), &m);
	assert_int_equal(m.as.GATE.uid, play.factory.uid_base + GATE_UID);
	shared = no_identity(m.fds[1]);
	assert_int_equal(no_identity(m.fds[0]), no_identity(the_cell()->tun_fd));
	assert_int_equal(shared, no_identity(the_job()->network_fd));
	assert_int_equal(no_identity(m.fds[2]), no_identity(play.factory.policy_fd));
	msg_done(&m);
}

/* However a run ends, its gate does, and is not missed. */
static void expect_ended(enum run_cause cause)
{
	static struct msg m;

	assert_null(network_gate());
	assert_int_equal(the_job()->network_fd, -1);
	assert_int_equal(play_cause(&m), cause);
	assert_int_equal(m.as.RESULT.gate_lost, 0);
	network_settle();
	assert_int_equal(network_gates(), 0);
	assert_int_equal(board_busy(&play.board), 0);
	assert_int_equal(the_cell()->state, CELL_GONE);
}

static void the_gate_ends_with_its_run(void **state)
{
	struct no_process *p = network_release();

	(void)state;
	play_read(p);
	no_process_die(p, 0);
	play_look();
	expect_ended(CAUSE_EXIT);

	play_read(network_release());
	board_cancel(&play.board, PLAY_RUN);
	expect_ended(CAUSE_CANCELLED);

	play_read(network_release());
	play_pass_the_deadline();
	expect_ended(CAUSE_WALL_TIMEOUT);

	play_read(network_release());
	no.counts_oom = true;
	assert_int_equal(eventfd_write(the_cell()->leaf.oom_fd, 1), 0);
	play_look();
	expect_ended(CAUSE_OOM_KILL);
	no.counts_oom = false;

	play.asked.cpu_time_us = 1;
	play_read(network_release());
	play_later(NETWORK_LOOK_NS);
	expect_ended(CAUSE_CPU_TIMEOUT);
}

/* While what it has left is read, nobody can send. */
static void the_gate_ends_although_the_workspace_is_kept(void **state)
{
	static struct msg m;
	struct no_process *p;

	(void)state;
	network_send_good(PLAY_RUN);
	play.next = (struct msg_submit){
		.run = PLAY_RUN, .allow_network = 1, .collect = COLLECT_ALWAYS
	};
	play_submit();
	p = play_park();
	network_end_well(p, &m);
	assert_int_equal(m.as.RESULT.kept, 1);
	play_later(NS_PER_MS);
	assert_int_equal(network_gates(), 0);
	assert_int_equal(the_cell()->state, CELL_DYING);
	board_cancel(&play.board, PLAY_RUN);
	network_settle();
	assert_int_equal(the_cell()->state, CELL_GONE);
}

/* The first has been handed the interface of a cell that is gone. */
static void a_run_that_begins_anew_gets_a_second_gate(void **state)
{
	static struct msg m;
	struct no_process *p = network_release();
	pid_t first = network_gate()->pid;
	ino_t shared = no_identity(the_job()->network_fd);

	(void)state;
	no_process_die(p, SIGKILL); /* with START unread */
	play_look();
	assert_int_equal(the_job()->state, JOB_WAITING);
	assert_null(network_gate());
	network_settle();
	p = play_park();
	assert_int_equal(the_job()->state, JOB_RUNNING);
	assert_int_equal(network_gates(), 1);
	assert_int_not_equal(network_gate()->pid, first);
	network_read_gate(network_gate(), &m);
	assert_int_equal(no_identity(m.fds[1]), shared);
	msg_done(&m);
	network_end_well(p, &m);
	assert_int_equal(m.as.RESULT.gate_lost, 0);
}

static void a_main_that_was_dead_before_start_costs_no_gate(void **state)
{
	(void)state;
	network_submit(PLAY_RUN);
	network.unsendable = MSG_START;
	network.send_code = -EPIPE;
	(void)play_park();
	assert_int_equal(the_job()->state, JOB_WAITING);
	assert_null(network_gate());
	network.unsendable = (enum msg_type)0;
	network_settle();
	(void)play_park();
	assert_int_equal(the_job()->state, JOB_RUNNING);
	assert_int_equal(network_gates(), 1);
}

/* What has become of the first gate is nothing of the second one's. */
static void a_lost_gate_is_forgotten_when_the_run_begins_anew(void **state)
{
	static struct msg m;
	struct no_process *p = network_release();

	(void)state;
	no_process_die(network_gate(), SIGKILL);
	no_process_die(p, SIGKILL);
	play_look();
	assert_int_equal(the_job()->state, JOB_WAITING);
	network_settle();
	network_end_well(play_park(), &m);
	assert_int_equal(m.as.RESULT.gate_lost, 0);
}

static void a_gate_that_dies_is_told_and_the_run_goes_on(void **state)
{
	static struct msg m;
	struct no_process *p = network_release();

	(void)state;
	play_read(p);
	log_into_memory();
	no_process_die(network_gate(), SIGKILL);
	play.pool.reaper.strangers_ns = 0; /* they are looked for now */
	play_later(NS_PER_MS);
	assert_int_equal(network_gates(), 1); /* it is none */
	play_later(NETWORK_LOOK_NS);
	expect_logged("ev=gate run=7 why=\"ended by signal 9\"");
	assert_int_equal(network_gates(), 0);
	assert_int_equal(the_job()->state, JOB_RUNNING);
	network_end_well(p, &m);
	assert_int_equal(m.as.RESULT.gate_lost, 1);
}

static void say_bad(struct no_process *p, const char *text)
{
	struct msg_broken bad = { .fault = { .code = -EPROTO } };

	(void)snprintf(bad.fault.text, sizeof(bad.fault.text), "%s", text);
	assert_int_equal(channel_send(p->channel_fd, MSG_GATE_BAD, &bad, NULL), 0);
	no_process_die(p, 1 << 8);
}

/* Whether it has read its orders by then or not. */
static void a_gate_that_says_why_it_ends_is_quoted(void **state)
{
	static struct msg m;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct no_process *p = network_release();

		if (i == 0) {
			network_read_gate(network_gate(), &m);
			msg_done(&m);
		}
		log_into_memory();
		say_bad(network_gate(), "no \n resolvers");
		network_end_well(p, &m);
		expect_logged("ev=gate run=7 why=\"no ? resolvers\"");
		assert_int_equal(m.as.RESULT.gate_lost, 1);
		network_settle();
	}
}

/* Somebody has killed the cell's init: its interface is gone, and with it the gate's work. */
static void a_gate_that_outlives_its_cell_was_not_lost(void **state)
{
	static struct msg m;
	struct no_process *p = network_release();

	(void)state;
	play_read(p);
	log_into_memory();
	no_process_die(network_gate(), 0);
	no_process_die(play_process(true), SIGKILL);
	play_look();
	assert_int_equal(play_cause(&m), CAUSE_SIGNAL);
	expect_logged(NULL);
	assert_int_equal(m.as.RESULT.gate_lost, 0);
}

/* Whatever does not work of its start: no verdict is given on the program. */
static void a_gate_that_cannot_be_started_is_no_verdict(void **state)
{
	static const enum msg_type types[] = { MSG_GATE_JOIN, MSG_GATE };
	unsigned n;

	(void)state;
	for (n = 1;; n++) {
		struct no_process *p;

		network_submit(PLAY_RUN);
		(void)board_tick(&play.board);
		p = play_process(true);
		play_read(p);
		assert_int_equal(
			channel_send(p->channel_fd, MSG_BUILT, &(struct msg_built){ 0 }, NULL), 0);
		play_look();
		p = play_process(false);
		play_read(p);
		p->entered = true;
		assert_int_equal(
			channel_send(p->channel_fd, MSG_ENTERED, &(struct msg_entered){ 0 }, NULL),
			0);
		no.fail_in = n + 1; /* the first is the cell's: its leaf's limits */
		no.fail_code = -EMFILE;
		play_look();
		if (the_job()->state == JOB_RUNNING)
			break;
		network_refused(-EMFILE);
		network_settle();
		assert_int_equal(network_gates(), 0);
	}
	no.fail_in = 0;
	assert_in_range(n, 5, 20); /* made, scored, released, its group; the pipes of START */
	board_cancel(&play.board, PLAY_RUN);
	network_settle();
	assert_int_equal(play_answered(&(struct msg){ 0 }), MSG_RESULT);
	for (unsigned i = 0; i < ARRAY_LEN(types); i++) {
		network.unsendable = types[i];
		network.send_code = -EPIPE; /* not to be taken for the program's process */
		network_submit(PLAY_RUN);
		(void)play_park();
		network_refused(-EPIPE);
		network.unsendable = (enum msg_type)0;
		network_settle();
		assert_int_equal(network_gates(), 0);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, network_begin, network_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_gate_is_there_before_the_program),
		CASE(the_gate_ends_with_its_run),
		CASE(the_gate_ends_although_the_workspace_is_kept),
		CASE(a_run_that_begins_anew_gets_a_second_gate),
		CASE(a_main_that_was_dead_before_start_costs_no_gate),
		CASE(a_lost_gate_is_forgotten_when_the_run_begins_anew),
		CASE(a_gate_that_dies_is_told_and_the_run_goes_on),
		CASE(a_gate_that_says_why_it_ends_is_quoted),
		CASE(a_gate_that_outlives_its_cell_was_not_lost),
		CASE(a_gate_that_cannot_be_started_is_no_verdict),
	};

	return cmocka_run_group_tests_name("board_gate", tests, NULL, NULL);
}
