/* What cannot be watched for want of memory is tried again, and nothing is watched that was let go
 * meanwhile: over an epoll_ctl() of our own (-Wl,--wrap=epoll_ctl). */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/log.h"
#include "priv/supervisor/watch.h"

#include <errno.h>
#include <sys/epoll.h>

#define EPOLL 70
#define OTHER 71
#define FD    80

int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event);

/* What the kernel does: fails with that errno, for everybody or for one descriptor. */
static int fails, only_fd;
static unsigned added;
static struct epoll_event last;

int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event)
{
	(void)epoll_fd;
	if (op != EPOLL_CTL_ADD)
		return 0;
	if (fails && (only_fd == 0 || only_fd == fd)) {
		errno = fails;
		return -1;
	}
	last = *event;
	added++;
	return 0;
}

static const struct watch w = { EPOLL, 100 }, other = { OTHER, 200 };

/* With nothing that waits. */
static int begin(void **state)
{
	(void)state;
	log_setup("test", LOG_LEVEL_ERR);
	fails = only_fd = 0;
	added = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	fails = EEXIST; /* whatever still waits: somebody else has it */
	only_fd = 0;
	assert_true(watch_retry(UINT64_MAX) == UINT64_MAX);
	return 0;
}

static void what_the_kernel_has_no_memory_for_is_watched_a_little_later(void **state)
{
	uint64_t due;

	(void)state;
	fails = ENOMEM;
	watch_add(&w, 7, FD, EPOLLPRI);
	assert_int_equal(added, 0);
	due = watch_retry(0);
	assert_in_range(due, clock_ns(), clock_ns() + NS_PER_S);
	/* Not before it is due, and again as long as it fails. */
	fails = 0;
	assert_int_equal(watch_retry(due - 1), due);
	assert_int_equal(added, 0);
	fails = ENOMEM;
	assert_true(watch_retry(due) > due);
	fails = 0;
	assert_true(watch_retry(due + NS_PER_S) == UINT64_MAX);
	assert_int_equal(added, 1);
	assert_int_equal(last.events, EPOLLPRI);
	assert_int_equal(last.data.u64, 107);
}

static void what_is_watched_already_or_is_none_is_no_failure(void **state)
{
	(void)state;
	fails = EEXIST;
	watch_add(&w, 1, FD, EPOLLIN);
	watch_add(&w, 1, -1, EPOLLIN);
	assert_true(watch_retry(UINT64_MAX - 1) == UINT64_MAX);
	assert_int_equal(added, 0);
}

static void what_was_let_go_meanwhile_is_not_watched_later(void **state)
{
	(void)state;
	fails = ENOMEM;
	watch_add(&w, 1, FD, EPOLLIN);
	watch_add(&w, 2, FD + 1, EPOLLIN);
	watch_add(&other, 3, FD, EPOLLIN);
	watch_drop(&w, FD + 2);
	watch_drop(&w, FD);
	watch_drop(&w, FD + 1);
	fails = 0;
	assert_true(watch_retry(UINT64_MAX - NS_PER_S) == UINT64_MAX);
	assert_int_equal(added, 1); /* the other's */
	assert_int_equal(last.data.u64, 203);
}

static void one_that_goes_on_failing_keeps_no_other_from_being_watched(void **state)
{
	uint64_t now = UINT64_MAX / 2;

	(void)state;
	fails = ENOMEM;
	for (int i = 0; i < 3; i++)
		watch_add(&w, (unsigned)i, FD + i, EPOLLIN);
	only_fd = FD + 1;
	assert_true(watch_retry(now) > now);
	assert_int_equal(added, 2);
	/* Closed by its owner, or watched by now: nobody waits for it. */
	fails = EBADF;
	assert_true(watch_retry(now + NS_PER_S) == UINT64_MAX);
	fails = ENOMEM;
	watch_add(&w, 1, FD + 1, EPOLLIN);
	fails = EEXIST;
	assert_true(watch_retry(UINT64_MAX - NS_PER_S) == UINT64_MAX);
	assert_int_equal(added, 2);
}

static void what_is_above_the_bound_is_left_to_the_deadlines(void **state)
{
	(void)state;
	fails = ENOMEM;
	for (int i = 0; i < WATCH_MISSED_MAX + 5; i++)
		watch_add(&w, (unsigned)i, FD + i, EPOLLIN);
	fails = 0;
	assert_true(watch_retry(UINT64_MAX - NS_PER_S) == UINT64_MAX);
	assert_int_equal(added, WATCH_MISSED_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			what_the_kernel_has_no_memory_for_is_watched_a_little_later, begin, end),
		cmocka_unit_test_setup_teardown(
			what_is_watched_already_or_is_none_is_no_failure, begin, end),
		cmocka_unit_test_setup_teardown(
			what_was_let_go_meanwhile_is_not_watched_later, begin, end),
		cmocka_unit_test_setup_teardown(
			one_that_goes_on_failing_keeps_no_other_from_being_watched, begin, end),
		cmocka_unit_test_setup_teardown(
			what_is_above_the_bound_is_left_to_the_deadlines, begin, end),
	};

	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
