/* Leaves of real control groups, on whatever host this is, below a group of their own. */
#include "tests/unit/cgroup_play.h"
#include "tests/unit/unit.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "kernel/cgroup_internal.h"
#include "tests/lib/flaky.h"
#include "tests/lib/leaf.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- What runs in a leaf ---- */

static void child_touch_24_mib(int report_fd)
{
	leaf_touch(24 * MIB);
	child_sleep(report_fd);
}

static void child_hog(int report_fd)
{
	(void)!write(report_fd, "h", 1);
	for (;;)
		leaf_touch(MIB);
}

/* Fork until the kernel refuses, then say so. */
static void child_fork_bomb(int report_fd)
{
	for (unsigned i = 0; i < 1000; i++) {
		pid_t pid = fork();

		if (pid == 0)
			for (;;)
				(void)pause();
		if (pid < 0) {
			(void)!write(report_fd, errno == EAGAIN ? "r" : "?", 1);
			child_sleep(report_fd);
		}
	}
	_exit(4);
}

static uint64_t own_cpu_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void child_burn_100_ms(int report_fd)
{
	uint64_t from = own_cpu_us();

	while (own_cpu_us() < from + 100000)
		continue;
	(void)!write(report_fd, "b", 1);
}

/* ---- Tests ---- */

static void cells_live_in_the_unified_hierarchy_whoever_has_the_controllers(void **state)
{
	(void)state;
	assert_int_equal(tree.h[0].version, 2);
	assert_int_equal(tree.of[CGROUP_CPUACCT], 0);
	assert_true(tree.swap_accounting);
	for (unsigned i = 1; i < tree.count; i++)
		assert_int_equal(tree.h[i].version, 1);
}

static void limits_are_what_was_asked_from_the_beginning(void **state)
{
	struct cgroup cg = create("c1", &small);

	(void)state;
	assert_limits(&cg, &small);
	assert_int_equal(cgroup_populated(&cg), 0);
	assert_false(cgroup_oom_happened(&tree, &cg));
	destroy(&tree, &cg);
}

static void limits_can_be_raised_and_lowered(void **state)
{
	static const struct cgroup_limits steps[] = {
		{ .memory_bytes = 128 * MIB, .cpu_milli = 1500, .pids = 64 },
		{ .memory_bytes = 16 * MIB, .cpu_milli = 10, .pids = 1 },
		{ .memory_bytes = 32 * MIB, .cpu_milli = 1000, .pids = 2 },
	};
	struct cgroup cg = create("c1", &small);
	struct fault f = { 0 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(steps); i++) {
		if (cgroup_set_limits(&tree, &cg, &steps[i], &f) < 0)
			fail_msg("step %u: %s", i, f.text);
		assert_limits(&cg, &steps[i]);
	}
	destroy(&tree, &cg);
}

static void limits_that_were_written_in_part_are_not_taken_for_the_old_ones(void **state)
{
	static const struct cgroup_limits larger = { 128 * MIB, 1000, 16 };
	struct cgroup cg = create("c1", &small);
	unsigned n = 0, failed = 0;
	bool reached = true;

	(void)state;
	for (; reached; n++) {
		struct fault f = { 0 };
		int r;

		flaky_arm(n, EIO);
		r = cgroup_set_limits(&tree, &cg, &larger, &f);
		reached = flaky_disarm();
		failed += r < 0;
		if (r == 0)
			assert_limits(&cg, &larger);
		assert_int_equal(cgroup_set_limits(&tree, &cg, &small, &f), 0);
		assert_limits(&cg, &small);
	}
	assert_true(failed >= 6); /* two calls a file, three files at least */
	destroy(&tree, &cg);
}

static void a_limit_below_what_is_in_use_is_refused_and_kills_nobody(void **state)
{
	const struct cgroup_limits tight = { .memory_bytes = 8 * MIB, .cpu_milli = 500, .pids = 8 };
	struct cgroup cg = create("c1", &small);
	struct child c = start_in(&tree, &cg, child_touch_24_mib);
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(await_report(&c), 's');
	assert_int_equal(cgroup_set_limits(&tree, &cg, &tight, &f), -EDQUOT);
	assert_int_equal(f.code, -EDQUOT);
	assert_int_equal(cgroup_populated(&cg), 1);
	assert_false(cgroup_oom_happened(&tree, &cg));

	assert_int_equal(cgroup_kill(&cg), 0);
	assert_int_equal(WTERMSIG(reap(&c)), SIGKILL);
	destroy(&tree, &cg);
}

/* v2's memory.events is always "readable": only POLLPRI has a meaning there. */
static short oom_events(void)
{
	return tree.h[tree.of[CGROUP_MEMORY]].version == 2 ? POLLPRI : POLLIN;
}

static void nothing_is_announced_before_it_happens(void **state)
{
	struct cgroup cg = create("c1", &small);
	struct pollfd p[2] = {
		{ .fd = cg.events_fd, .events = POLLPRI },
		{ .fd = cg.oom_fd, .events = oom_events() },
	};

	(void)state;
	assert_int_equal(poll(p, 2, 0), 0);
	destroy(&tree, &cg);
}

static void kill_ends_every_process_and_poll_tells(void **state)
{
	struct cgroup cg = create("c1", &small);
	struct child a = start_in(&tree, &cg, child_sleep);
	struct child b = start_in(&tree, &cg, child_sleep);
	struct pollfd p = { .fd = cg.events_fd, .events = POLLPRI };

	(void)state;
	assert_int_equal(await_report(&a), 's');
	assert_int_equal(await_report(&b), 's');
	assert_int_equal(cgroup_populated(&cg), 1);
	assert_int_equal(poll(&p, 1, 0), 0); /* reading it armed it */

	assert_int_equal(cgroup_kill(&cg), 0);
	assert_int_equal(poll(&p, 1, DEADLINE_S * 1000), 1);
	await_empty(&cg);
	assert_int_equal(WTERMSIG(reap(&a)), SIGKILL);
	assert_int_equal(WTERMSIG(reap(&b)), SIGKILL);
	destroy(&tree, &cg);
}

static void running_out_of_memory_is_announced_and_ends_the_whole_cell(void **state)
{
	const struct cgroup_limits lim = { .memory_bytes = 16 * MIB, .cpu_milli = 1000, .pids = 8 };
	struct cgroup cg = create("c1", &lim);
	struct child sleeper = start_in(&tree, &cg, child_sleep);
	struct child hog = start_in(&tree, &cg, child_hog);
	uint64_t deadline_ns = clock_ns() + DEADLINE_S * NS_PER_S;
	struct cgroup_usage usage;

	(void)state;
	assert_int_equal(await_report(&sleeper), 's');
	/* v2's file also changes at "max", before anything is killed. */
	while (!cgroup_oom_happened(&tree, &cg)) {
		struct pollfd p = { .fd = cg.oom_fd, .events = oom_events() };

		assert_int_equal(poll(&p, 1, clock_ms_until(deadline_ns)), 1);
	}
	/* On v1 the kernel ends one process, and the rest is for us. */
	if (tree.h[tree.of[CGROUP_MEMORY]].version == 1)
		assert_int_equal(cgroup_kill(&cg), 0);
	await_empty(&cg);
	assert_int_equal(WTERMSIG(reap(&hog)), SIGKILL);
	assert_int_equal(WTERMSIG(reap(&sleeper)), SIGKILL);
	assert_true(cgroup_oom_happened(&tree, &cg)); /* it does not forget */

	cgroup_read_usage(&tree, &cg, &usage);
	assert_in_range(usage.memory_peak_bytes, 8 * MIB, 16 * MIB);
	destroy(&tree, &cg);
}

static void the_next_leaf_of_the_same_name_has_no_past(void **state)
{
	struct cgroup cg = create("c1", &small);
	struct cgroup_usage usage;

	(void)state;
	assert_false(cgroup_oom_happened(&tree, &cg));
	cgroup_read_usage(&tree, &cg, &usage);
	assert_int_equal(usage.oom_kills, 0);
	assert_int_equal(usage.pids_refused, 0);
	destroy(&tree, &cg);
}

static void a_fork_bomb_is_refused_and_counted(void **state)
{
	struct cgroup cg = create("c1", &small);
	struct child c = start_in(&tree, &cg, child_fork_bomb);
	struct cgroup_usage usage;

	(void)state;
	assert_int_equal(await_report(&c), 'r');
	cgroup_read_usage(&tree, &cg, &usage);
	assert_true(usage.pids_refused > 0);
	assert_true(usage.pids_peak == 0 || usage.pids_peak == small.pids);

	assert_int_equal(cgroup_kill(&cg), 0);
	await_empty(&cg);
	(void)reap(&c);
	destroy(&tree, &cg);
}

static void use_is_counted_and_cpu_held_back(void **state)
{
	const struct cgroup_limits lim = { .memory_bytes = 64 * MIB, .cpu_milli = 100, .pids = 8 };
	struct cgroup cg = create("c1", &lim);
	struct child c = start_in(&tree, &cg, child_burn_100_ms);
	struct cgroup_usage usage;

	(void)state;
	assert_int_equal(await_report(&c), 'b');
	assert_int_equal(reap(&c), 0);
	cgroup_sample(&cg);
	cgroup_read_usage(&tree, &cg, &usage);
	/* The last tick may not be counted yet. */
	assert_in_range(usage.cpu_us, 80000, UINT64_C(60) * 1000000);
	assert_true(cgroup_cpu_us(&tree, &cg) >= usage.cpu_us);
	assert_in_range(usage.user_us + usage.system_us, 80000, UINT64_C(60) * 1000000);
	assert_true(usage.throttled_us > 0); /* 10 ms in 100 ms: ten periods were needed */
	assert_true(usage.memory_peak_bytes > 0);
	assert_int_not_equal(usage.memory_counter, MEMORY_COUNTER_NONE);
	destroy(&tree, &cg);
}

static void a_leaf_that_is_in_use_stays_until_it_is_empty(void **state)
{
	struct cgroup cg = create("c1", &small);
	struct child c = start_in(&tree, &cg, child_sleep);

	(void)state;
	assert_int_equal(await_report(&c), 's');
	assert_int_equal(cgroup_destroy(&tree, &cg), -EBUSY);
	assert_int_equal(cgroup_populated(&cg), 1);
	assert_limits(&cg, &small);
	assert_int_equal(cgroup_kill(&cg), 0);
	(void)reap(&c);
	destroy(&tree, &cg);
	assert_int_equal(count_groups(&tree, "."), 0);
}

static void a_leaf_that_was_never_made_can_be_destroyed(void **state)
{
	struct cgroup cg;

	(void)state;
	cgroup_clear(&cg);
	assert_int_equal(cgroup_destroy(&tree, &cg), 0);
}

static void a_second_leaf_of_a_name_is_refused_and_the_first_stays(void **state)
{
	struct cgroup cg = create("c1", &small), again;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(cgroup_create(&tree, "c1", &small, &again, &f), -EEXIST);
	assert_non_null(strstr(f.text, "c1"));
	assert_limits(&cg, &small);
	destroy(&tree, &cg);
}

/* Fail the 1st, 2nd, 3rd... kernel call in turn. */
static void whichever_call_fails_create_leaves_nothing_behind(void **state)
{
	unsigned n = 0;

	(void)state;
	for (;; n++) {
		unsigned before = count_fds();
		struct fault f = { 0 };
		struct cgroup cg;
		int r;

		flaky_arm(n, EIO);
		r = cgroup_create(&tree, "c1", &small, &cg, &f);
		if (!flaky_disarm()) {
			assert_int_equal(r, 0);
			destroy(&tree, &cg);
			break;
		}
		if (r != -EIO || f.code != -EIO)
			fail_msg("call %u (%s): %d, %s", n, flaky_name(), r, f.text);
		assert_non_null(strstr(f.text, "cgroup c1: "));
		assert_int_equal(count_fds(), before);
		assert_int_equal(count_groups(&tree, "."), 0);
	}
	assert_true(n > 10);
}

static void whichever_call_fails_destroy_can_be_called_again(void **state)
{
	unsigned n = 0;

	(void)state;
	for (;; n++) {
		unsigned before = count_fds();
		struct cgroup cg = create("c1", &small);
		int r;

		flaky_arm(n, EBUSY);
		r = cgroup_destroy(&tree, &cg);
		if (!flaky_disarm()) {
			assert_int_equal(r, 0);
			break;
		}
		assert_int_equal(r, -EBUSY);
		assert_int_equal(cgroup_destroy(&tree, &cg), 0);
		assert_int_equal(count_fds(), before);
		assert_int_equal(count_groups(&tree, "."), 0);
	}
	assert_int_equal(n, tree.count); /* one rmdir for each hierarchy */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells_live_in_the_unified_hierarchy_whoever_has_the_controllers),
		cmocka_unit_test(limits_are_what_was_asked_from_the_beginning),
		cmocka_unit_test(limits_can_be_raised_and_lowered),
		cmocka_unit_test(limits_that_were_written_in_part_are_not_taken_for_the_old_ones),
		cmocka_unit_test(a_limit_below_what_is_in_use_is_refused_and_kills_nobody),
		cmocka_unit_test(nothing_is_announced_before_it_happens),
		cmocka_unit_test(kill_ends_every_process_and_poll_tells),
		cmocka_unit_test(running_out_of_memory_is_announced_and_ends_the_whole_cell),
		cmocka_unit_test(the_next_leaf_of_the_same_name_has_no_past),
		cmocka_unit_test(a_fork_bomb_is_refused_and_counted),
		cmocka_unit_test(use_is_counted_and_cpu_held_back),
		cmocka_unit_test(a_leaf_that_is_in_use_stays_until_it_is_empty),
		cmocka_unit_test(a_leaf_that_was_never_made_can_be_destroyed),
		cmocka_unit_test(a_second_leaf_of_a_name_is_refused_and_the_first_stays),
		cmocka_unit_test(whichever_call_fails_create_leaves_nothing_behind),
		cmocka_unit_test(whichever_call_fails_destroy_can_be_called_again),
	};

	return cmocka_run_group_tests_name("cgroup", tests, cgroup_play_begin, cgroup_play_end);
}
