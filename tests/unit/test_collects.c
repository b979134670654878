/* What becomes of a workspace that is kept behind a RESULT, over a kernel that makes nothing. */
#include "tests/unit/board_play.h"
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/own.h"
#include "kernel/sys.h"
#include "wire/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int __wrap_channel_send(int fd, enum msg_type type, const void *payload, const int *fds);
int __real_channel_send(int fd, enum msg_type type, const void *payload, const int *fds);

int __wrap_fstat64(int fd, struct stat *ret);
int __real_fstat64(int fd, struct stat *ret);

static bool gather_fails;
static int unseen = -1; /* a descriptor that cannot be looked at */

int __wrap_fstat64(int fd, struct stat *ret)
{
	errno = EIO;
	return fd == unseen && fd >= 0 ? -1 : __real_fstat64(fd, ret);
}

int __wrap_channel_send(int fd, enum msg_type type, const void *payload, const int *fds)
{
	return type == MSG_GATHER && gather_fails ? -ENOBUFS
						  : __real_channel_send(fd, type, payload, fds);
}

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

static void begin_again(void **state)
{
	(void)play_end(state);
	(void)play_begin(state);
}

/* What it said before that is its reason, if it is one. */
static void a_collector_may_say_why_it_ends(void **state)
{
	struct msg_broken broken = { .fault = { .code = -EIO, .text = "getdents64" } };
	const struct msg_built built = { 0 };
	struct fault why;
	int fd;

	for (unsigned i = 0; i < 2; i++) {
		struct no_process *p;

		begin_again(state);
		keep();
		assert_int_equal(collect(PLAY_RUN, &fd), 0);
		p = play_process(false);
		play_read(p);
		assert_int_equal(i == 0 ? channel_send(p->channel_fd, MSG_BROKEN, &broken, NULL)
					: channel_send(p->channel_fd, MSG_BUILT, &built, NULL),
			0);
		play_look(); /* it is alive, and kept */
		assert_int_equal(play.board.collects.count, 1);
		no_process_die(p, 1 << 8);
		assert_true(collector_reap(&play.board.collects.slots[0].collector, &why));
		assert_string_equal(why.text, i == 0 ? "getdents64" : "it ended with 1");
		play_look();
		assert_int_equal(play.board.collects.count, 0);
		expect_end_of_files(fd);
	}
}

static int failing_fcntl(int fd, int op, int arg)
{
	(void)fd;
	(void)op;
	(void)arg;
	return -EMFILE;
}

static void a_collector_that_cannot_be_started_gives_the_cell_back(void **state)
{
	const struct sys_ops real = sys;
	int fd;

	/* The child, its score, its release, its groups; then its channel, and what it is told. */
	for (unsigned i = 1; i <= 6; i++) {
		begin_again(state);
		keep();
		no.fail_in = i < 5 ? i : 0;
		no.fail_code = -EAGAIN;
		if (i == 5)
			sys.fcntl = failing_fcntl;
		gather_fails = i == 6;
		assert_int_equal(collect(PLAY_RUN, &fd), 0);
		sys = real;
		gather_fails = false;
		assert_int_equal(no.fail_in, 0);
		assert_int_equal(play.board.collects.count, 0);
		expect_end_of_files(fd);
	}
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

static void what_cannot_be_written_to_is_no_pipe(void **state)
{
	static struct msg m;
	const char *rule = NULL;
	int ends[2];

	(void)state;
	keep();
	m = (struct msg){ .type = MSG_COLLECT, .nfds = 1, .as.COLLECT = { .run = PLAY_RUN } };
	for (unsigned i = 0; i < 4; i++) {
		char path[32];

		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[1]);
		m.fds[0] = i == 0   ? -1
			   : i == 1 ? dup(ends[0])
			   : i == 2 ? open(path, O_PATH | O_CLOEXEC)
				    : dup(ends[1]);
		unseen = i == 3 ? m.fds[0] : -1;
		assert_int_equal(board_collect(&play.board, &m, &rule), -EPROTO);
		unseen = -1;
		assert_int_equal(m.fds[0], -1);
		(void)close(ends[0]);
		(void)close(ends[1]);
	}
	assert_int_equal(play.board.collects.count, 1); /* nothing has become of it */
}

static bool claims(const void *ctx, pid_t pid)
{
	(void)ctx;
	return collects_know(&play.board.collects, pid);
}

static void a_collector_is_no_stranger(void **state)
{
	const struct lineage_owner *o = &play.pool.lineage.owner;
	struct process child;
	struct no_process *p;
	pid_t pid;
	int fd;

	(void)state;
	keep();
	assert_int_equal(collect(PLAY_RUN, &fd), 0);
	p = play_process(false);
	pid = p->pid;
	assert_true(collects_know(&play.board.collects, pid));
	assert_false(collects_know(&play.board.collects, pid + 1));
	/* Nor can a zygote give it out as the main of a cell. */
	play.pool.claims = claims;
	child = (struct process){ .pid = pid, .pidfd = dup(fd), .release_fd = -1 };
	assert_false(o->forked(o->ctx, 1, 1, &child));
	assert_false(reaper_knows(&play.pool.reaper, pid));
	no_process_die(p, 0);
	play_look();
	assert_int_equal(play.board.collects.count, 0);
	assert_false(collects_know(&play.board.collects, pid));
	(void)close(fd);
}

/* Killed again and again, and until then looked at like others. */
static void a_collector_that_does_not_die_is_waited_for(void **state)
{
	int fd;

	(void)state;
	keep();
	assert_false(collects_look(&play.board.collects, LEASE_CELLS));
	assert_int_equal(collect(PLAY_RUN, &fd), 0);
	no.stubborn = true;
	board_cancel(&play.board, PLAY_RUN);
	play_look();
	play_later(NS_PER_S);
	play_later(NS_PER_S);
	assert_int_equal(play.board.collects.count, 1);
	no.stubborn = false;
	play_later(NS_PER_S);
	assert_int_equal(play.board.collects.count, 0);
	(void)close(fd);
}

/* Of one that never began. */
static void a_workspace_that_is_given_up_may_still_be_looked_at(void **state)
{
	(void)state;
	keep();
	play_look(); /* nobody has asked yet */
	assert_int_equal(play.board.collects.count, 1);
	board_cancel(&play.board, PLAY_RUN);
	assert_int_equal(play.board.collects.count, 0);
}

static void a_client_that_is_lost_while_a_run_is_being_ended_keeps_no_cell(void **state)
{
	static struct msg m;

	(void)state;
	be_ended();
	board_lose_client(&play.board);
	no.stubborn = false;
	no_process_die(play_process(true), SIGKILL);
	play_look();
	assert_int_equal(board_busy(&play.board), 0);
	assert_int_equal(play_answered(&m), 0);
	assert_int_equal(play.board.collects.count, 0);
}

/* Also of another language, whose cell is there already. */
static void a_ready_cell_waits_for_a_place(void **state)
{
	(void)state;
	keep();
	play.settings.pool_size = 0;
	play.next = (struct msg_submit){ .run = PLAY_RUN + 1, .language = 1 };
	play_submit();
	(void)play_park();
	for (unsigned i = 0; i < 3; i++)
		play_later(NS_PER_MS);
	assert_int_equal(play.board.jobs[0].state, JOB_WAITING);
	assert_int_equal(no.groups, 2); /* the same one still */
	board_cancel(&play.board, PLAY_RUN);
	play_later(0);
	assert_int_equal(play.board.jobs[0].state, JOB_RUNNING);
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

#define CASE(name) cmocka_unit_test_setup_teardown(name, play_begin, play_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_cell_is_kept_until_its_client_wants_it_no_more),
		CASE(who_leaves_while_a_run_is_being_ended_keeps_no_cell),
		CASE(a_client_that_is_lost_while_a_run_is_being_ended_keeps_no_cell),
		CASE(nobody_keeps_a_cell_without_asking_for_its_files),
		CASE(a_collector_that_does_not_end_is_ended),
		CASE(a_collector_that_fails_gives_the_cell_back),
		CASE(a_collector_may_say_why_it_ends),
		CASE(a_collector_that_cannot_be_started_gives_the_cell_back),
		CASE(who_leaves_while_files_come_ends_the_collector),
		CASE(files_are_collected_once_and_into_a_pipe),
		CASE(what_cannot_be_written_to_is_no_pipe),
		CASE(a_collector_is_no_stranger),
		CASE(a_collector_that_does_not_die_is_waited_for),
		CASE(a_workspace_that_is_given_up_may_still_be_looked_at),
		CASE(the_number_of_a_run_whose_files_are_kept_is_in_use),
		CASE(a_number_that_is_being_ended_is_the_next_clients),
		CASE(no_more_cells_are_kept_and_run_than_there_are_places),
		CASE(a_ready_cell_waits_for_a_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
