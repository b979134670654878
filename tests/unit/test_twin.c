/* Root: the fork of a zygote, in a process that stands for one. Its children are the test's. */
#include "unit.h"

#include "base/fault.h"
#include "kernel/cgroup.h"
#include "kernel/sys.h"
#include "kernel/twin.h"
#include "priv/supervisor/lease.h"
#include "tests/lib/flaky.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the two end with. */
enum {
	ZYGOTE_FORKED = 10,
	ZYGOTE_REFUSED,
	CHILD_IS_RIGHT = 20,
	WRONG
};

static const struct cgroup_limits limits = {
	.memory_bytes = UINT64_C(64) << 20, .cpu_milli = 1000, .pids = 8
};
static struct lease lease;
static struct cgroup_tree tree;
static struct cgroup cg;

static int set_up(void **state)
{
	struct fault f = { 0 };

	(void)state;
	if (lease_take(&lease, &f) == 0 && cgroup_tree_open(&tree, lease.number, "", &f) == 0 &&
		cgroup_create(&tree, "c1", &limits, &cg, &f) == 0)
		return 0;
	print_error("%s\n", f.text);
	return -1;
}

static int tear_down(void **state)
{
	int r = cgroup_destroy(&tree, &cg);

	(void)state;
	cgroup_tree_close(&tree);
	lease_release(&lease);
	return r;
}

/* Born with every signal blocked, into the group, as a child of the zygote's parent, and known to
 * the C library by its own number. */
static void be_child(pid_t parent)
{
	sigset_t blocked;

	(void)sigprocmask(SIG_SETMASK, NULL, &blocked);
	_exit(sigismember(&blocked, SIGTERM) == 1 && getppid() == parent && gettid() == getpid() &&
				pthread_kill(pthread_self(), 0) == 0 && cgroup_populated(&cg) == 1
			? CHILD_IS_RIGHT
			: WRONG);
}

static void be_zygote(unsigned turn)
{
	const struct rlimit none = { 0, 0 };
	struct fault f = { 0 };
	struct twin t;
	int self, pidfd = -1;
	pid_t parent = getppid(), pid;

	(void)setrlimit(RLIMIT_CORE, &none); /* it may end by abort() */
	if (twin_init(&t, &f) < 0)
		_exit(WRONG);
	self = sys.pidfd_open(getpid(), 0);
	flaky_arm(turn, EIO);
	pid = twin_fork(&t, self, cgroup_clone_fd(&cg), 0, &pidfd, &f);
	(void)flaky_disarm(); /* in the child as well, whose next call would be the one that fails */
	if (pid == 0)
		be_child(parent);
	if (pid < 0)
		_exit(pid == -EIO && pidfd == -1 ? ZYGOTE_REFUSED : WRONG);
	_exit(pidfd >= 0 && twin_children() == -ECHILD ? ZYGOTE_FORKED : WRONG);
}

/* Run a zygote whose call number `turn` fails; both ends, -1 for a child that was not there. */
static void run_zygote(unsigned turn, int *ret_zygote, int *ret_child)
{
	pid_t zygote = fork(), pid;
	int status;

	assert_true(zygote >= 0);
	if (zygote == 0)
		be_zygote(turn);
	*ret_zygote = *ret_child = -1;
	while ((pid = waitpid(-1, &status, __WALL)) > 0)
		*(pid == zygote ? ret_zygote : ret_child) = status;
	assert_int_equal(errno, ECHILD);
	assert_int_equal(cgroup_populated(&cg), 0);
}

static void a_child_is_the_parents_and_in_the_group(void **state)
{
	int zygote, child;

	(void)state;
	run_zygote(UINT_MAX, &zygote, &child);
	assert_true(WIFEXITED(zygote) && WIFEXITED(child));
	assert_int_equal(WEXITSTATUS(zygote), ZYGOTE_FORKED);
	assert_int_equal(WEXITSTATUS(child), CHILD_IS_RIGHT);
}

static void a_fork_that_fails_leaves_no_child(void **state)
{
	int zygote, child;

	(void)state;
	/* setns(), then clone3(). */
	for (unsigned turn = 0; turn < 2; turn++) {
		run_zygote(turn, &zygote, &child);
		assert_true(WIFEXITED(zygote));
		assert_int_equal(WEXITSTATUS(zygote), ZYGOTE_REFUSED);
		assert_int_equal(child, -1);
	}
}

static void a_zygote_that_cannot_get_back_ends_and_its_child_with_it(void **state)
{
	int zygote, child;

	(void)state;
	run_zygote(2, &zygote, &child);
	assert_true(WIFSIGNALED(zygote));
	assert_int_equal(WTERMSIG(zygote), SIGABRT);
	/* It may have come to its end before the signal. */
	assert_true(child != -1);
	assert_true(WIFSIGNALED(child) ? WTERMSIG(child) == SIGKILL
				       : WEXITSTATUS(child) == CHILD_IS_RIGHT);
}

static void what_a_fork_needs_is_found_or_named(void **state)
{
	struct twin t;

	(void)state;
	/* prctl() is one way to the thread's number; then there is another. */
	for (unsigned turn = 0; turn < 2; turn++) {
		struct fault f = { 0 };
		int r;

		flaky_arm(turn, EIO);
		r = twin_init(&t, &f);
		assert_true(flaky_disarm());
		assert_int_equal(r, turn == 0 ? 0 : -EIO);
		if (r == 0) {
			assert_int_equal(*(const int *)t.tid_address, gettid());
			(void)close(t.own_pidns_fd);
		}
	}
}

static void *wait_for_end(void *arg)
{
	(void)pthread_mutex_lock(arg);
	(void)pthread_mutex_unlock(arg);
	return NULL;
}

static void threads_are_counted(void **state)
{
	pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
	pthread_t other;

	(void)state;
	assert_int_equal(twin_threads(), 1);
	assert_int_equal(pthread_mutex_lock(&held), 0);
	assert_int_equal(pthread_create(&other, NULL, wait_for_end, &held), 0);
	assert_int_equal(twin_threads(), 2);
	assert_int_equal(pthread_mutex_unlock(&held), 0);
	assert_int_equal(pthread_join(other, NULL), 0);
	flaky_arm(0, EIO);
	assert_int_equal(twin_threads(), -EIO);
	assert_true(flaky_disarm());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_is_the_parents_and_in_the_group),
		cmocka_unit_test(a_fork_that_fails_leaves_no_child),
		cmocka_unit_test(a_zygote_that_cannot_get_back_ends_and_its_child_with_it),
		cmocka_unit_test(what_a_fork_needs_is_found_or_named),
		cmocka_unit_test(threads_are_counted),
	};

	return cmocka_run_group_tests_name("twin", tests, set_up, tear_down);
}
