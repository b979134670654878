/* The interface of a cell with a network, on a kernel whose answers are the tests' own: no root, and
 * nothing is made. That the kernel takes what is asked is for test_cell. */
#include "tests/unit/unit.h"

#include "base/fault.h"
#include "kernel/sys.h"
#include "kernel/tun.h"
#include "tests/unit/count_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sys_ops real;

/* The kernel's answers: call number `fails_at` of all those below fails with `code`. */
static unsigned calls, fails_at;
static int code;
static unsigned long setns_calls;

static bool fails(void)
{
	return ++calls == fails_at;
}

static int open_any(int dir_fd, const char *path, int flags, mode_t mode)
{
	(void)dir_fd, (void)path, (void)flags, (void)mode;
	if (fails())
		return code;
	return real.openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
}

static int enter_any(int fd, int type)
{
	assert_true(fd >= 0);
	assert_int_equal(type, CLONE_NEWNET);
	setns_calls++;
	return fails() ? code : 0;
}

static int make_socket(int domain, int type, int protocol)
{
	return fails() ? code : real.socket(domain, type, protocol);
}

static int take_any(int fd, unsigned long request, void *argument)
{
	(void)request;
	assert_true(fd >= 0);
	assert_non_null(argument);
	return fails() ? code : 0;
}

static int begin(void **state)
{
	(void)state;
	real = sys;
	sys.openat = open_any;
	sys.setns = enter_any;
	sys.socket = make_socket;
	sys.ioctl = take_any;
	calls = fails_at = 0;
	setns_calls = 0;
	code = -EIO;
	return 0;
}

static int end(void **state)
{
	(void)state;
	sys = real;
	return 0;
}

static void a_machine_without_the_device_is_told_what_brings_it(void **state)
{
	static const int absent[] = { -ENOENT, -ENODEV, -ENXIO };
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(tun_check(&f), 0);
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		calls = 0;
		fails_at = 1;
		code = absent[i];
		assert_int_equal(tun_check(&f), code);
		assert_non_null(strstr(f.text, "modprobe tun"));
	}
	calls = 0;
	code = -EPERM;
	assert_int_equal(tun_check(&f), -EPERM);
	assert_null(strstr(f.text, "modprobe"));
}

static void the_device_is_opened_in_the_cell_and_the_way_back_is_taken(void **state)
{
	unsigned before = count_fds();
	struct fault f = { 0 };
	int fd = -1;

	(void)state;
	assert_int_equal(tun_open(7, &fd, &f), 0);
	assert_int_equal(setns_calls, 2);
	(void)close(fd);
	assert_int_equal(count_fds(), before);
}

static void whichever_call_of_opening_fails_it_comes_back_with_nothing(void **state)
{
	static const char *const said[] = { "own network namespace", "the cell's network namespace",
		"/dev/net/tun" };
	unsigned before = count_fds();

	(void)state;
	for (unsigned n = 1; n <= 3; n++) {
		struct fault f = { 0 };
		int fd = -1;

		calls = 0;
		setns_calls = 0;
		fails_at = n;
		assert_int_equal(tun_open(7, &fd, &f), -EIO);
		assert_non_null(strstr(f.text, said[n - 1]));
		assert_int_equal(setns_calls, n - 1);
		assert_int_equal(fd, -1);
		assert_int_equal(count_fds(), before);
	}
}

/* It would open sockets in a cell's namespace, and sweep there, from then on. */
static void one_that_cannot_come_back_does_not_go_on(void **state)
{
	int status = 0;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		const struct rlimit none = { 0, 0 };
		struct fault f = { 0 };
		int fd = -1;

		(void)setrlimit(RLIMIT_CORE, &none);
		fails_at = 4;
		_exit(tun_open(7, &fd, &f) == 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void whichever_call_of_setting_up_fails_it_is_said(void **state)
{
	unsigned before = count_fds(), n, all;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(tun_set_up(0, &f), 0);
	all = calls;
	assert_true(all > 10);
	for (n = 1; n <= all; n++) {
		f = (struct fault){ 0 };
		calls = 0;
		fails_at = n;
		assert_int_equal(tun_set_up(0, &f), -EIO);
		assert_true(f.text[0]);
		assert_int_equal(calls, n); /* and nothing after it */
		assert_int_equal(count_fds(), before);
	}
}

/* The number of the call that makes the socket of IPv6 and of the one that gives its address. */
#define SOCKET6  8u
#define ADDRESS6 10u

static void a_machine_without_ipv6_gives_a_network_of_ipv4(void **state)
{
	static const int absent[] = { -EAFNOSUPPORT, -EACCES, -EPERM, -ENODEV, -EOPNOTSUPP };
	static const unsigned at[] = { SOCKET6, ADDRESS6 };

	(void)state;
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
			struct fault f = { 0 };

			calls = 0;
			fails_at = at[k];
			code = absent[i];
			assert_int_equal(tun_set_up(0, &f), 0);
			assert_int_equal(calls, at[k]);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_machine_without_the_device_is_told_what_brings_it, begin, end),
		cmocka_unit_test_setup_teardown(
			the_device_is_opened_in_the_cell_and_the_way_back_is_taken, begin, end),
		cmocka_unit_test_setup_teardown(
			whichever_call_of_opening_fails_it_comes_back_with_nothing, begin, end),
		cmocka_unit_test_setup_teardown(
			one_that_cannot_come_back_does_not_go_on, begin, end),
		cmocka_unit_test_setup_teardown(
			whichever_call_of_setting_up_fails_it_is_said, begin, end),
		cmocka_unit_test_setup_teardown(
			a_machine_without_ipv6_gives_a_network_of_ipv4, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
