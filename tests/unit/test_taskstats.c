/* Root: does the kernel say in its exit records what wait4() says, and are they all that is heard? */
#include "tests/unit/unit.h"

#include "base/fault.h"
#include "kernel/taskstats.h"
#include "tests/lib/flaky.h"
#include "tests/unit/count_fds.h"
#include "tests/unit/taskstats_ends.h"
#include "tests/unit/taskstats_message.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct taskstats_feed feed;

static int open_feed(void **state)
{
	struct fault f = { 0 };

	(void)state;
	if (taskstats_open(&feed, &f) < 0)
		fail_msg("%s", f.text);
	return 0;
}

static int close_feed(void **state)
{
	(void)state;
	taskstats_close(&feed);
	return 0;
}

static void remove_all(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *e;

	assert_non_null(dir);
	while ((e = readdir(dir)))
		(void)unlinkat(dirfd(dir), e->d_name, 0);
	(void)closedir(dir);
	assert_int_equal(rmdir(path), 0);
}

static void the_record_of_an_end_says_what_wait4_says(void **state)
{
	char dir[] = "/tmp/taskstats.XXXXXX", here[PATH_MAX];

	(void)state;
	assert_non_null(getcwd(here, sizeof(here)));
	assert_non_null(mkdtemp(dir)); /* for the core */
	assert_int_equal(chdir(dir), 0);
	for (unsigned i = 0; i < 20 * ends_count; i++) {
		unsigned k = i % ends_count;
		struct taskstats_exit e = { .pid = 0 };
		pid_t pid = end_run(ends[k].run);
		struct rusage usage;
		int status = end_reap(pid, &usage), r = taskstats_next(&feed, &e);

		if ((ends[k].told == ALWAYS && r != 1) || (ends[k].told == NEVER && r != 0))
			fail_msg("%s: %d", ends[k].name, r);
		if (r != 1)
			continue;
		if (e.pid != pid || e.status != status || e.had_threads != ends[k].threads)
			fail_msg("%s: %#x, wait4 says %#x", ends[k].name, e.status, status);
		assert_int_equal(taskstats_next(&feed, &e), 0);
	}
	assert_int_equal(chdir(here), 0);
	remove_all(dir);
}

static void the_faults_of_awaited_children_are_added_as_wait4_does(void **state)
{
	struct taskstats_exit e;
	struct rusage usage;
	siginfo_t info;
	pid_t pid = end_run(end_after_a_child);
	long alone;

	(void)state;
	/* Dead, but not reaped. */
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(taskstats_next(&feed, &e), 1);
	alone = (long)e.minor_faults;
	assert_int_equal(taskstats_add_children(&e), 0);
	(void)end_reap(pid, &usage);
	assert_true((long)e.minor_faults > alone);
	/* The end itself can meet a page or two after the record. */
	assert_in_range(usage.ru_minflt - (long)e.minor_faults, 0, 2);
	assert_int_equal(usage.ru_majflt, e.major_faults);
	assert_int_equal(taskstats_add_children(&e), -ESRCH);
}

static void a_process_that_has_its_memory_is_not_looked_into(void **state)
{
	struct taskstats_exit e = { .pid = getpid() };

	(void)state;
	assert_int_equal(taskstats_add_children(&e), -EBUSY);
}

/* Many ends of processes that are not the caller's children: not even a wake-up. */
static void the_ends_of_others_are_thrown_away_by_the_kernel(void **state)
{
	struct pollfd p = { .fd = feed.fd, .events = POLLIN };
	uint64_t heard = feed.heard, lost = feed.lost;
	struct taskstats_exit e;
	pid_t pid = fork();
	struct rusage usage;
	siginfo_t info;

	(void)state;
	if (pid == 0) {
		for (int i = 0; i < 2000; i++) {
			pid_t other = fork();

			if (other == 0)
				_exit(0);
			(void)waitpid(other, NULL, 0);
		}
		(void)raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	(void)kill(pid, SIGCONT);
	(void)end_reap(pid, &usage);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(taskstats_next(&feed, &e), 1);
	assert_int_equal(e.pid, pid);
	assert_int_equal(feed.heard, heard + 1);
	assert_int_equal(feed.lost, lost);
}

/* Root of the host can send to the socket what looks like a record; its port gives it away. */
static void what_another_process_sends_is_passed_over(void **state)
{
	struct sockaddr_nl to = { 0 };
	socklen_t len = sizeof(to);
	struct pollfd p = { .fd = feed.fd, .events = POLLIN };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	struct taskstats s = message_usual();
	struct taskstats_exit e;
	struct message m;

	(void)state;
	s.ac_ppid = (uint32_t)getpid();
	message_make(&m, feed.family, &s, false);
	assert_int_equal(taskstats_parse(m.bytes, m.len, feed.family, getpid(), &e), 1);
	assert_int_equal(getsockname(feed.fd, (struct sockaddr *)&to, &len), 0);
	assert_int_equal(sendto(fd, m.bytes, m.len, 0, (struct sockaddr *)&to, sizeof(to)), m.len);
	assert_int_equal(poll(&p, 1, 0), 1); /* it is there */
	assert_int_equal(taskstats_next(&feed, &e), 0);
	(void)close(fd);
}

static void a_full_buffer_loses_records_and_nothing_else(void **state)
{
	const int little = 1, much = 1 << 20;
	uint64_t lost = feed.lost;
	struct taskstats_exit e;
	struct rusage usage;
	unsigned heard = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(setsockopt(feed.fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
	for (int i = 0; i < 50; i++)
		(void)end_reap(end_run(end_7), &usage);
	while (taskstats_next(&feed, &e) == 1) {
		assert_int_equal(e.status, 7 << 8);
		heard++;
	}
	assert_in_range(heard, 1, 49);
	assert_true(feed.lost > lost);
	assert_int_equal(setsockopt(feed.fd, SOL_SOCKET, SO_RCVBUFFORCE, &much, sizeof(much)), 0);
	pid = end_run(end_7);
	(void)end_reap(pid, &usage);
	assert_int_equal(taskstats_next(&feed, &e), 1);
	assert_int_equal(e.pid, pid);
}

static void what_comes_after_it_was_seen_empty_is_younger_than_that(void **state)
{
	struct taskstats_exit e;
	struct rusage usage;
	uint64_t seen;

	(void)state;
	assert_int_equal(taskstats_next(&feed, &e), 0);
	seen = feed.empty_ns;
	(void)end_reap(end_run(end_0), &usage);
	assert_int_equal(taskstats_next(&feed, &e), 1);
	assert_int_equal(feed.empty_ns, seen); /* a record says nothing about what came before */
	assert_int_equal(taskstats_next(&feed, &e), 0);
	assert_true(feed.empty_ns > seen);
}

static void whichever_call_of_opening_fails_nothing_is_left(void **state)
{
	unsigned before = count_fds(), failed = 0, n = 0;

	(void)state;
	for (;; n++) {
		struct taskstats_feed t;
		struct fault f = { 0 };
		bool reached;
		int r;

		flaky_arm(n, EIO);
		r = taskstats_open(&t, &f);
		reached = flaky_disarm();
		if (r == 0)
			taskstats_close(&t);
		else
			assert_non_null(strstr(f.text, "taskstats: "));
		failed += r < 0;
		assert_int_equal(count_fds(), before);
		if (!reached)
			break;
	}
	/* Without the larger buffer it goes on. */
	assert_int_equal(failed, n - 1);
	assert_true(n > 6);
}

#define fed_test(name) cmocka_unit_test_setup_teardown(name, open_feed, close_feed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fed_test(the_record_of_an_end_says_what_wait4_says),
		fed_test(the_faults_of_awaited_children_are_added_as_wait4_does),
		cmocka_unit_test(a_process_that_has_its_memory_is_not_looked_into),
		fed_test(the_ends_of_others_are_thrown_away_by_the_kernel),
		fed_test(what_another_process_sends_is_passed_over),
		fed_test(a_full_buffer_loses_records_and_nothing_else),
		fed_test(what_comes_after_it_was_seen_empty_is_younger_than_that),
		cmocka_unit_test(whichever_call_of_opening_fails_nothing_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
