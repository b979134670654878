/* What the pool makes of cages that are not clean, old or busy, and of zygotes' answers that come at
 * the wrong moment: over a kernel that makes nothing. */
#include "tests/unit/board_play.h"
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/own.h"
#include "priv/supervisor/pool_internal.h"
#include "wire/channel.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* ---- Cages ---- */

static void keep_cages(void)
{
	play.settings.cage_runs = play.factory.runs_max = 2;
}

static void a_cage_with_an_unreaped_process_is_not_kept(void **state)
{
	struct no_process *p, *child;
	cleanup_fd int pidfd = -1;

	(void)state;
	keep_cages();
	p = play_release();
	play_read(p);
	child = no_process_make(the_cell()->leaf.fd[0], -1, &pidfd);
	no_process_die(child, 0);
	no_process_die(p, 0);
	play_look();
	assert_true(the_cell()->doomed); /* its init is ended, and with it the child */
	child->group = 0;
}

static void a_leaf_that_cannot_begin_anew_is_removed_and_its_cage_kept(void **state)
{
	uint64_t id;

	(void)state;
	keep_cages();
	no.leaf_renews = false;
	play_end_program();
	id = play_process(true)->identity;
	play_later(NS_PER_MS);
	assert_int_equal(play_process(true)->identity, id);
	assert_int_equal(the_cell()->state, CELL_ENTERING);
}

static void a_leaf_that_holds_much_or_stays_ends_its_cage(void **state)
{
	(void)state;
	keep_cages();
	no.leaf_renews = false;
	no.leaf_is_full = true;
	play_end_program();
	assert_true(the_cell()->doomed);
	play_look();
	play_later(NS_PER_MS);
	no.leaf_is_full = false;
	no.leaf_stays = -EIO;
	play_end_program();
	assert_true(the_cell()->doomed);
	no.leaf_stays = 0;
}

static void a_cage_that_is_old_goes_though_its_main_is_young(void **state)
{
	uint64_t first, age = play.settings.cell_max_age_us * NS_PER_US;

	(void)state;
	keep_cages();
	play_end_program();
	first = play_process(true)->identity;
	play_later(age / 2);
	(void)play_park();
	assert_int_equal(play_process(true)->identity, first);
	play_later(age / 2 + NS_PER_S);
	/* Another one is made, and only then the old one goes. */
	assert_int_equal(play.pool.cells[1].state, CELL_BUILDING);
	assert_int_equal(the_cell()->state, CELL_READY);
}

/* Answered by the record of its end, dead a moment later: not to be waited for any more. */
static void a_cage_that_grew_old_with_its_program_is_not_waited_for(void **state)
{
	static struct msg m;
	struct no_process *p;

	(void)state;
	keep_cages();
	play.settings.cell_max_age_us = 1000000;
	p = play_release();
	play_read(p);
	play_later(2 * NS_PER_S);
	p->ending = true;
	drop_fd(&p->channel_fd);
	no.records[no.records_count++] = (struct taskstats_exit){ .pid = p->pid, .told = true };
	board_hear_records(&play.board);
	assert_int_equal(play_cause(&m), CAUSE_EXIT);
	assert_int_equal(the_cell()->state, CELL_DYING);
	(void)board_tick(&play.board);
	assert_int_equal(play.pool.cells[1].state, CELL_BUILDING);
	no_process_die(p, 0);
}

static void a_vacant_cage_whose_init_has_died_is_ended(void **state)
{
	(void)state;
	keep_cages();
	play_end_program();
	play_look(); /* nothing has happened */
	assert_int_equal(the_cell()->state, CELL_VACANT);
	no_process_die(play_process(true), SIGKILL);
	play_look();
	assert_int_not_equal(the_cell()->state, CELL_VACANT);
}

static void a_vacant_cage_that_cannot_be_occupied_is_ended(void **state)
{
	(void)state;
	keep_cages();
	play_end_program();
	no.fail_in = 1;
	no.fail_code = -EMFILE;
	play_submit();
	play_later(NS_PER_MS);
	assert_int_equal(no.fail_in, 0);
	assert_int_equal(play.pool.fault.code, -EMFILE);
	assert_int_equal(the_cell()->state, CELL_DYING);
	assert_true(the_cell()->doomed);
}

static void a_parked_main_that_dies_ends_its_cell(void **state)
{
	(void)state;
	no_process_die(play_park(), SIGKILL);
	play_look();
	assert_int_equal(the_cell()->state, CELL_DYING);
}

static void a_cell_that_cannot_be_settled_does_not_stand(void **state)
{
	const struct msg_entered entered = { 0 };
	const struct msg_built built = { 0 };
	struct no_process *p;

	(void)state;
	(void)board_tick(&play.board);
	p = play_process(true);
	play_read(p);
	assert_int_equal(channel_send(p->channel_fd, MSG_BUILT, &built, NULL), 0);
	play_look();
	p = play_process(false);
	play_read(p);
	assert_int_equal(channel_send(p->channel_fd, MSG_ENTERED, &entered, NULL), 0);
	no.fail_in = 1;
	no.fail_code = -EIO;
	play_look();
	assert_int_equal(the_cell()->state, CELL_DYING);
	assert_int_equal(play.pool.fault.code, -EIO);
}

/* Not even its number is anybody's. */
static void a_cell_that_is_gone_is_not_killed(void **state)
{
	struct cell gone = { .state = CELL_GONE, .main_channel = -1 };

	(void)state;
	cell_kill(&gone);
	assert_int_equal(gone.state, CELL_GONE);
}

static void a_vacant_cage_that_is_old_is_ended(void **state)
{
	(void)state;
	keep_cages();
	play_end_program();
	assert_int_equal(the_cell()->state, CELL_VACANT);
	play.pool.refill_ns = UINT64_MAX; /* as after builds that failed */
	play_later(NS_PER_S);
	assert_int_equal(the_cell()->state, CELL_VACANT);
	play_later(play.settings.cell_max_age_us * NS_PER_US);
	assert_int_not_equal(the_cell()->state, CELL_VACANT);
	play.pool.refill_ns = 0;
}

/* ---- The pool ---- */

static void a_cell_that_is_taken_is_not_ready_for_another(void **state)
{
	(void)state;
	(void)play_park();
	assert_int_equal(pool_ready(&play.pool), 1);
	assert_ptr_equal(pool_take(&play.pool), the_cell());
	assert_int_equal(pool_ready(&play.pool), 0);
	assert_null(pool_take(&play.pool));
	pool_look(&play.pool, 0); /* its driver's */
	assert_int_equal(the_cell()->state, CELL_READY);
	pool_give_back(&play.pool, the_cell());
}

static void an_event_of_no_slot_is_passed_over(void **state)
{
	(void)state;
	board_look(&play.board, LEASE_CELLS);
	pool_answer(&play.pool, LEASE_CELLS);
	/* And one that tells nothing changes nothing. */
	(void)play_park();
	play_look();
	assert_int_equal(the_cell()->state, CELL_READY);
}

/* Where a leaf tells of a kill for memory. */
static void every_kind_of_memory_group_is_watched(void **state)
{
	(void)state;
	play.tree.h[1].version = 2;
	play_read(play_release());
	board_cancel(&play.board, PLAY_RUN);
	play_look();
	play_later(NS_PER_MS);
	play.tree.of[CGROUP_MEMORY] = -1; /* allowed to be missing */
	(void)play_park();
	play_submit();
	assert_int_equal(the_job()->state, JOB_RUNNING);
}

static void builds_that_are_late_have_a_bound(void **state)
{
	unsigned building = 0;

	(void)state;
	play.board.slots = 3;
	for (unsigned i = 0; i < 3; i++) {
		play_submit();
		the_job()[i].submit.run += 1 + i;
	}
	for (unsigned i = 0; i < 5; i++)
		play_later(600 * NS_PER_MS);
	for (unsigned i = 0; i < play.pool.high; i++)
		building += pool_is_building(&play.pool, &play.pool.cells[i]);
	assert_int_equal(building, 2 * play.settings.max_builds);
}

static void with_always_rehearse_every_main_is_prepared_in_full(void **state)
{
	(void)state;
	play_submit();
	play_later(NS_PER_MS);
	assert_false(play.pool.rehearse); /* somebody waits */
	play.settings.always_rehearse = 1;
	play_later(NS_PER_MS);
	assert_true(play.pool.rehearse);
}

/* Parked in the cell of that slot. */
static void park(unsigned slot)
{
	const struct msg_entered entered = { 0 };
	const struct msg_built built = { 0 };
	struct cell *c = &play.pool.cells[slot];

	play_later(NS_PER_MS);
	for (unsigned i = 0; i < NO_PROCESSES; i++) {
		struct no_process *p = &no.processes[i];

		if (p->pid != c->init.pid || p->pid == 0)
			continue;
		play_read(p);
		assert_int_equal(channel_send(p->channel_fd, MSG_BUILT, &built, NULL), 0);
		play_look();
	}
	for (unsigned i = 0; i < NO_PROCESSES; i++) {
		struct no_process *p = &no.processes[i];

		if (p->pid != c->main.pid || p->pid == 0)
			continue;
		play_read(p);
		assert_int_equal(channel_send(p->channel_fd, MSG_ENTERED, &entered, NULL), 0);
		play_look();
	}
	assert_int_equal(c->state, CELL_READY);
}

static void fill_the_pool(void)
{
	play.settings.pool_size = 3;
	for (unsigned i = 0; i < 3; i++)
		park(i);
	assert_int_equal(pool_ready(&play.pool), 3);
}

static void the_oldest_cell_of_the_newest_zygote_is_taken_first(void **state)
{
	(void)state;
	fill_the_pool();
	assert_ptr_equal(pool_best(&play.pool), &play.pool.cells[0]);
	play.pool.cells[1].generation = play.pool.cells[2].generation = 5;
	assert_ptr_equal(pool_best(&play.pool), &play.pool.cells[1]);
	play.pool.cells[1].generation = 4;
	assert_ptr_equal(pool_best(&play.pool), &play.pool.cells[2]);
}

static void of_more_cells_than_wanted_the_newest_goes(void **state)
{
	struct cell *c = play.pool.cells;

	(void)state;
	fill_the_pool();
	c[0].id = 100; /* as if its cage had been there before */
	play.settings.pool_size = 2;
	play_later(NS_PER_MS);
	assert_int_equal(c[0].state, CELL_DYING);
	assert_int_equal(c[1].state, CELL_READY);
	play.settings.pool_size = 1;
	play_later(NS_PER_MS);
	assert_int_equal(c[1].state, CELL_READY);
	assert_int_equal(c[2].state, CELL_DYING);
}

static void of_more_cells_than_wanted_a_stale_one_goes_first(void **state)
{
	struct cell *c = play.pool.cells;

	(void)state;
	fill_the_pool();
	c[1].created_ns -= play.settings.cell_max_age_us * NS_PER_US;
	play.settings.pool_size = 2;
	play_later(NS_PER_MS);
	assert_int_equal(c[1].state, CELL_DYING);
	assert_int_equal(pool_ready(&play.pool), 2);
}

/* Somebody has killed its process before its namespace was there: that is no trouble of making cells. */
static void who_was_killed_while_it_was_made_counts_as_no_failure(void **state)
{
	(void)state;
	no.fail_in = 2;
	no.fail_code = -ESRCH;
	play_later(NS_PER_MS);
	assert_int_equal(no.fail_in, 0);
	assert_int_equal(play.pool.vanished, 1);
	assert_int_equal(play.pool.failures, 0);
	play_look();
	no.fail_in = 2;
	no.fail_code = -EPERM;
	play_later(NS_PER_MS);
	assert_int_equal(play.pool.failures, 1);
}

/* ---- Zygotes' answers ---- */

static int zygotes_end = -1; /* of main's channel */

static int ask_in_vain(void *ctx, struct cell *c, int channel_fd)
{
	(void)ctx;
	(void)c;
	zygotes_end = dup(channel_fd);
	return 0;
}

static void only_who_waits_for_a_lost_zygote_goes_on_cold(void **state)
{
	const struct lineage_owner *o = &play.pool.lineage.owner;
	const struct msg_built built = { 0 };

	(void)state;
	play.factory.fork_main = ask_in_vain;
	(void)board_tick(&play.board);
	play_read(play_process(true));
	assert_int_equal(channel_send(play_process(true)->channel_fd, MSG_BUILT, &built, NULL), 0);
	play_look();
	play_look(); /* nothing new */
	assert_true(cell_awaits_fork(the_cell()));
	o->lost(o->ctx, the_cell()->generation + 1);
	assert_true(cell_awaits_fork(the_cell()));
	o->lost(o->ctx, the_cell()->generation);
	assert_false(cell_awaits_fork(the_cell()));
	drop_fd(&zygotes_end);
}

/* However many of them break: the next main is started cold. */
static void a_zygotes_children_that_break_count_as_one_failure(void **state)
{
	const struct msg_broken broken = { .fault = { .code = -EINVAL, .text = "a child" } };
	const struct msg_built built = { 0 };

	(void)state;
	play.factory.fork_main = ask_in_vain;
	for (unsigned i = 0; i < 3; i++) {
		struct no_process *init;

		play_later(NS_PER_S);
		init = play_process(true);
		play_read(init);
		assert_int_equal(channel_send(init->channel_fd, MSG_BUILT, &built, NULL), 0);
		play_look();
		assert_int_equal(channel_send(zygotes_end, MSG_BROKEN, &broken, NULL), 0);
		play_look();
		drop_fd(&zygotes_end);
		assert_int_equal(play.pool.failures, 1);
		play_later(NS_PER_MS);
	}
	play.factory.fork_main = NULL;
}

static void a_child_that_is_somebodys_already_is_nobodys_main(void **state)
{
	const struct lineage_owner *o = &play.pool.lineage.owner;
	struct process child = { .release_fd = -1, .pidfd = -1 };
	struct no_process *p;
	int pidfd;

	(void)state;
	/* The front. */
	p = no_process_make(-1, -1, &child.pidfd);
	play.pool.other_child = child.pid = p->pid;
	assert_false(o->forked(o->ctx, 1, 1, &child));
	assert_int_equal(child.pidfd, -1);
	play.pool.other_child = 0;
	no_process_die(p, 0);
	/* One of a cell that is gone, told of twice. */
	p = no_process_make(-1, -1, &pidfd);
	child = (struct process){ .pid = p->pid, .pidfd = pidfd, .release_fd = -1 };
	assert_false(o->forked(o->ctx, 1, 1, &child));
	child = (struct process){ .pid = p->pid, .pidfd = dup(pidfd), .release_fd = -1 };
	assert_false(o->forked(o->ctx, 1, 1, &child));
	assert_int_equal(child.pidfd, -1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, play_begin, play_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_cage_with_an_unreaped_process_is_not_kept),
		CASE(a_leaf_that_cannot_begin_anew_is_removed_and_its_cage_kept),
		CASE(a_leaf_that_holds_much_or_stays_ends_its_cage),
		CASE(a_cage_that_is_old_goes_though_its_main_is_young),
		CASE(a_cage_that_grew_old_with_its_program_is_not_waited_for),
		CASE(a_vacant_cage_that_is_old_is_ended),
		CASE(a_vacant_cage_whose_init_has_died_is_ended),
		CASE(a_vacant_cage_that_cannot_be_occupied_is_ended),
		CASE(a_parked_main_that_dies_ends_its_cell),
		CASE(a_cell_that_cannot_be_settled_does_not_stand),
		CASE(a_cell_that_is_gone_is_not_killed),
		CASE(a_cell_that_is_taken_is_not_ready_for_another),
		CASE(an_event_of_no_slot_is_passed_over),
		CASE(every_kind_of_memory_group_is_watched),
		CASE(builds_that_are_late_have_a_bound),
		CASE(with_always_rehearse_every_main_is_prepared_in_full),
		CASE(the_oldest_cell_of_the_newest_zygote_is_taken_first),
		CASE(of_more_cells_than_wanted_the_newest_goes),
		CASE(of_more_cells_than_wanted_a_stale_one_goes_first),
		CASE(who_was_killed_while_it_was_made_counts_as_no_failure),
		CASE(only_who_waits_for_a_lost_zygote_goes_on_cold),
		CASE(a_zygotes_children_that_break_count_as_one_failure),
		CASE(a_child_that_is_somebodys_already_is_nobodys_main),
	};

	return cmocka_run_group_tests_name("pool_kernel", tests, NULL, NULL);
}
