/* Root: a leaf that begins anew. Its processes are in the v1 groups only: what begins anew is
 * theirs. Where the controllers are v2's a leaf never does. */
#include "unit.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/cgroup.h"
#include "priv/supervisor/lease.h"
#include "tests/lib/leaf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static const struct cgroup_limits limits = {
	.memory_bytes = 64 * MIB, .cpu_milli = 1000, .pids = 8
};
static struct lease lease;
static struct cgroup_tree tree;
static struct cgroup cg;

static int set_up(void **state)
{
	struct fault f = { 0 };

	(void)state;
	if (lease_take(&lease, &f) == 0 && cgroup_tree_open(&tree, lease.number, "", &f) == 0)
		return 0;
	print_error("%s\n", f.text);
	return -1;
}

static int tear_down(void **state)
{
	(void)state;
	cgroup_tree_close(&tree);
	lease_release(&lease);
	return 0;
}

static int new_leaf(void **state)
{
	struct fault f = { 0 };

	(void)state;
	return cgroup_create(&tree, "c1", &limits, &cg, &f);
}

static int drop_leaf(void **state)
{
	(void)state;
	return cgroup_destroy(&tree, &cg);
}

static void use_24_mib(void)
{
	leaf_touch(24 * MIB);
}

static void use_3_tasks(void)
{
	for (int i = 0; i < 3; i++) {
		if (fork() == 0) {
			(void)pause();
			_exit(0);
		}
	}
	(void)signal(SIGTERM, SIG_IGN);
	(void)kill(0, SIGTERM);
	while (wait(NULL) > 0)
		;
}

static int kept_fd = -1;

/* Pages of a file that outlives whoever wrote them. */
static void write_4_mib(void)
{
	static char zeros[1 << 20];

	for (int i = 0; i < 4; i++)
		(void)!write(kept_fd, zeros, sizeof(zeros));
}

static void use_too_much(void)
{
	leaf_touch(200 * MIB);
}

/* Run it in the leaf, to its end. */
static void in_leaf(void (*run)(void))
{
	int go[2], status;
	pid_t pid;

	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char byte;

		(void)setpgid(0, 0);
		if (read(go[0], &byte, 1) == 1)
			run();
		_exit(0);
	}
	leaf_join_v1(&tree, &cg, pid);
	assert_int_equal(write(go[1], "g", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)close(go[0]);
	(void)close(go[1]);
}

static bool is_v1(void)
{
	return tree.of[CGROUP_MEMORY] > 0 && tree.of[CGROUP_PIDS] > 0;
}

/* What this host's groups cannot do they must refuse. */
static bool renewed(uint64_t memory_left)
{
	struct fault f = { 0 };
	int r = cgroup_renew(&tree, &cg, memory_left, &f);

	if (is_v1())
		return r == 0;
	assert_int_equal(r, -EOPNOTSUPP);
	return false;
}

static void its_peaks_begin_anew(void **state)
{
	struct cgroup_usage before, after;

	(void)state;
	in_leaf(use_24_mib);
	in_leaf(use_3_tasks);
	cgroup_read_usage(&tree, &cg, &before);
	if (!renewed(2 * MIB)) {
		assert_false(is_v1());
		return;
	}
	cgroup_reset_peak(&cg);
	cgroup_read_usage(&tree, &cg, &after);
	assert_true(before.memory_peak_bytes >= 24 * MIB);
	assert_true(after.memory_peak_bytes <= 2 * MIB);
	if (before.pids_peak > 0) {
		assert_int_equal(before.pids_peak, 4);
		assert_int_equal(after.pids_peak, 0);
	}
}

/* No peak to begin anew: the group stays the one that it was, and so do its limits. */
static void after_a_single_task_it_is_the_same(void **state)
{
	static const struct cgroup_limits two = {
		.memory_bytes = 64 * MIB, .cpu_milli = 1000, .pids = 2
	};
	struct fault f = { 0 };
	struct cgroup_usage u;
	struct stat was, is;

	(void)state;
	if (!is_v1() || cg.file[CGROUP_FILE_PIDS_PEAK] < 0)
		return (void)renewed(2 * MIB);
	assert_int_equal(cgroup_set_limits(&tree, &cg, &two, &f), 0);
	in_leaf(use_24_mib);
	assert_int_equal(fstat(cg.fd[tree.of[CGROUP_PIDS]], &was), 0);
	assert_true(renewed(2 * MIB));
	assert_int_equal(fstat(cg.fd[tree.of[CGROUP_PIDS]], &is), 0);
	assert_int_equal(is.st_ino, was.st_ino);
	assert_int_equal(cgroup_set_limits(&tree, &cg, &two, &f), 0);
	in_leaf(use_3_tasks);
	cgroup_read_usage(&tree, &cg, &u);
	assert_int_equal(u.pids_refused, 2);
	assert_int_equal(u.pids_peak, 2);
	assert_true(renewed(2 * MIB));
	assert_int_equal(fstat(cg.fd[tree.of[CGROUP_PIDS]], &is), 0);
	assert_int_not_equal(is.st_ino, was.st_ino);
}

static void its_limits_are_put_in_force_again(void **state)
{
	static const struct cgroup_limits one = {
		.memory_bytes = 64 * MIB, .cpu_milli = 1000, .pids = 1
	};
	struct fault f = { 0 };
	struct cgroup_usage u;

	(void)state;
	/* The same before and after: what is in force already would not be written. */
	in_leaf(use_3_tasks);
	assert_int_equal(cgroup_set_limits(&tree, &cg, &one, &f), 0);
	if (!renewed(2 * MIB)) {
		assert_false(is_v1());
		return;
	}
	assert_int_equal(cgroup_set_limits(&tree, &cg, &one, &f), 0);
	in_leaf(use_3_tasks);
	cgroup_read_usage(&tree, &cg, &u);
	assert_int_equal(u.pids_refused, 3);
}

static void one_that_holds_memory_does_not(void **state)
{
	(void)state;
	kept_fd = memfd_create("kept", MFD_CLOEXEC);
	assert_true(kept_fd >= 0);
	in_leaf(write_4_mib);
	assert_false(renewed(3 * MIB));
	drop_fd(&kept_fd);
}

static void one_that_was_out_of_memory_does_not(void **state)
{
	(void)state;
	if (!is_v1())
		return (void)renewed(2 * MIB);
	in_leaf(use_too_much);
	assert_true(cgroup_oom_happened(&tree, &cg));
	assert_false(renewed(1000 * MIB));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(its_peaks_begin_anew, new_leaf, drop_leaf),
		cmocka_unit_test_setup_teardown(
			after_a_single_task_it_is_the_same, new_leaf, drop_leaf),
		cmocka_unit_test_setup_teardown(
			its_limits_are_put_in_force_again, new_leaf, drop_leaf),
		cmocka_unit_test_setup_teardown(
			one_that_holds_memory_does_not, new_leaf, drop_leaf),
		cmocka_unit_test_setup_teardown(
			one_that_was_out_of_memory_does_not, new_leaf, drop_leaf),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
