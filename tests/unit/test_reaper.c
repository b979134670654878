#include "priv/supervisor/reaper.h"
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_MS 20000

static struct reaper reaper;
static pid_t known; /* whom is_ours() claims beside the strays */

static bool is_ours(pid_t pid, void *ctx)
{
	return pid == known || reaper_knows(ctx, pid);
}

static int set_up(void **state)
{
	(void)state;
	reaper_clear(&reaper);
	known = 0;
	return 0;
}

static struct process start_child(void)
{
	struct process p = { .pid = fork(), .pidfd = -1, .release_fd = -1 };

	if (p.pid == 0) {
		(void)alarm(2 * DEADLINE_MS / 1000); /* not before the test has failed */
		for (;;)
			(void)pause();
	}
	assert_true(p.pid > 0);
	p.pidfd = sys.pidfd_open(p.pid, 0);
	assert_true(p.pidfd >= 0);
	return p;
}

/* Until it is dead, which is not yet reaped. */
static void await_end(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, DEADLINE_MS), 1);
}

static bool is_reaped(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

static void a_stray_is_killed_and_then_reaped(void **state)
{
	struct process p = start_child();
	cleanup_fd int pidfd = dup(p.pidfd);
	pid_t pid = p.pid;

	(void)state;
	reaper_keep(&reaper, &p);
	assert_int_equal(p.pid, 0);
	assert_int_equal(p.pidfd, -1);
	assert_true(reaper_knows(&reaper, pid));
	assert_true(reaper_is_busy(&reaper));
	await_end(pidfd);
	assert_false(is_reaped(pid));
	reaper_tick(&reaper, 0, is_ours, &reaper);
	assert_true(is_reaped(pid));
	assert_false(reaper_knows(&reaper, pid));
	assert_false(reaper_is_busy(&reaper));
}

static void a_stranger_is_reaped(void **state)
{
	struct process p = start_child();

	(void)state;
	process_kill(&p);
	await_end(p.pidfd);
	reaper_tick(&reaper, NS_PER_S, is_ours, &reaper);
	assert_true(is_reaped(p.pid));
	process_close(&p);
}

static void a_child_that_somebody_knows_is_left_to_him(void **state)
{
	struct process p = start_child();

	(void)state;
	known = p.pid;
	process_kill(&p);
	await_end(p.pidfd);
	reaper_tick(&reaper, NS_PER_S, is_ours, &reaper);
	assert_false(is_reaped(p.pid));
	assert_int_equal(waitpid(p.pid, NULL, 0), p.pid);
	process_close(&p);
}

static void strays_beyond_the_number_that_is_kept_are_reaped_all_the_same(void **state)
{
	pid_t pids[REAPER_STRAYS_MAX + 2];
	int pidfds[REAPER_STRAYS_MAX + 2];

	(void)state;
	for (unsigned i = 0; i < REAPER_STRAYS_MAX + 2; i++) {
		struct process p = start_child();

		pids[i] = p.pid;
		pidfds[i] = dup(p.pidfd);
		reaper_keep(&reaper, &p);
	}
	for (unsigned i = 0; i < REAPER_STRAYS_MAX + 2; i++) {
		await_end(pidfds[i]);
		(void)close(pidfds[i]);
	}
	reaper_tick(&reaper, NS_PER_S, is_ours, &reaper);
	for (unsigned i = 0; i < REAPER_STRAYS_MAX + 2; i++)
		assert_true(is_reaped(pids[i]));
	assert_false(reaper_is_busy(&reaper));
}

static void a_child_is_believed_by_its_number_and_its_pidfd_together(void **state)
{
	struct process a = start_child(), b = start_child();
	cleanup_fd int own = sys.pidfd_open(getpid(), 0), parent = sys.pidfd_open(getppid(), 0);
	cleanup_fd int no_pidfd = dup(STDERR_FILENO);
	struct rusage usage;
	pid_t pid, pids_b = b.pid;
	int status;

	(void)state;
	assert_true(process_is_child(a.pid, a.pidfd));
	assert_false(process_is_child(a.pid, b.pidfd));
	assert_false(process_is_child(a.pid, -1));
	assert_false(process_is_child(0, a.pidfd));
	assert_false(process_is_child(a.pid, no_pidfd));
	/* Pidfds that anybody can open, with numbers that are right. */
	assert_false(process_is_child(getpid(), own));
	assert_false(process_is_child(getppid(), parent));
	process_kill(&a);
	process_kill(&b);
	await_end(a.pidfd);
	await_end(b.pidfd);
	assert_true(process_is_child(a.pid, a.pidfd)); /* dead, and still ours to reap */
	pid = a.pid;
	assert_int_equal(process_reap(&a, &status, &usage), 1);
	assert_false(process_is_child(pid, a.pidfd));
	assert_int_equal(process_reap(&a, &status, &usage), -ECHILD);
	b.pid = pid; /* was reaped, and is nobody's */
	assert_int_equal(process_reap(&b, &status, &usage), -ECHILD);
	b.pid = pids_b;
	assert_int_equal(process_reap(&b, &status, &usage), 1);
	process_close(&a);
	process_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_stray_is_killed_and_then_reaped, set_up),
		cmocka_unit_test_setup(a_stranger_is_reaped, set_up),
		cmocka_unit_test_setup(a_child_that_somebody_knows_is_left_to_him, set_up),
		cmocka_unit_test_setup(
			strays_beyond_the_number_that_is_kept_are_reaped_all_the_same, set_up),
		cmocka_unit_test(a_child_is_believed_by_its_number_and_its_pidfd_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
