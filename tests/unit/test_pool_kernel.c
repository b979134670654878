/* What the pool makes of cages that are not clean, old or busy, and of zygotes' answers that come at
 * the wrong moment: over a kernel that makes nothing. */
#include "tests/unit/board_play.h"
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/own.h"
#include "priv/supervisor/pool_internal.h"
#include "wire/channel.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static struct job *the_job(void)
{
	return &play.board.jobs[0];
}

static struct cell *the_cell(void)
{
	return &play.pool.cells[0];
}

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
		CASE(a_cell_that_is_taken_is_not_ready_for_another),
		CASE(an_event_of_no_slot_is_passed_over),
		CASE(every_kind_of_memory_group_is_watched),
		CASE(builds_that_are_late_have_a_bound),
		CASE(with_always_rehearse_every_main_is_prepared_in_full),
		CASE(only_who_waits_for_a_lost_zygote_goes_on_cold),
		CASE(a_child_that_is_somebodys_already_is_nobodys_main),
	};

	return cmocka_run_group_tests_name("pool_kernel", tests, NULL, NULL);
}
