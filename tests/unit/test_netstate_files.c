/* What a network namespace remembers, where the kernel lacks one of its files, cannot read one or
 * writes something else into it. No root: of our own namespace. */
#include "tests/unit/unit.h"

#include "base/fault.h"
#include "kernel/netstate.h"
#include "kernel/sys.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static const char *lacks = ""; /* a file, for the reason that is given */
static int lacks_code;
static const char *says; /* every file, in a single read; NULL: what it says */
static bool goes_on;     /* ...without end */
static int read_fails;
static struct sys_ops real;
static struct netstate n;

static int fake_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	return strcmp(path, lacks) == 0 ? lacks_code : real.openat(dir_fd, path, flags, mode);
}

static ssize_t fake_pread(int fd, void *bytes, size_t room, off_t at)
{
	size_t len;

	if (read_fails)
		return read_fails;
	if (goes_on) {
		memset(bytes, 'x', room);
		return (ssize_t)room;
	}
	if (!says)
		return real.pread(fd, bytes, room, at);
	len = strlen(says);
	if (at > 0 || len > room)
		return 0;
	memcpy(bytes, says, len);
	return (ssize_t)len;
}

static int begin(void **state)
{
	(void)state;
	real = sys;
	lacks = "";
	says = NULL;
	goes_on = false;
	read_fails = 0;
	sys.openat = fake_openat;
	sys.pread = fake_pread;
	return 0;
}

static int end(void **state)
{
	(void)state;
	netstate_close(&n);
	sys = real;
	return 0;
}

static void open_own(void)
{
	struct fault f = { 0 };

	if (netstate_open(getpid(), &n, &f) < 0)
		fail_msg("%s", f.text);
}

static void a_kernel_without_ipv6_is_none_worse(void **state)
{
	(void)state;
	lacks = "snmp6";
	lacks_code = -ENOENT;
	open_own();
	assert_true(n.len > 0);
	assert_int_equal(netstate_unrouted(&n), 0);
	says = "sockets: used 0\nTCP: inuse 0 orphan 0 tw 0 alloc 0 mem 0\n";
	assert_false(netstate_is_as_made(&n)); /* the other files say that, too */
}

static void a_file_that_cannot_be_opened_is_said(void **state)
{
	struct fault f = { 0 };

	(void)state;
	lacks = "snmp";
	lacks_code = -EMFILE;
	assert_int_equal(netstate_open(getpid(), &n, &f), -EMFILE);
	assert_non_null(strstr(f.text, "/net/snmp"));
	for (unsigned i = 0; i < NETSTATE_FILES; i++)
		assert_true(n.fd[i] < 0);
}

static void a_file_that_is_too_long_or_cannot_be_read_is_said(void **state)
{
	struct fault f = { 0 };

	(void)state;
	goes_on = true;
	assert_int_equal(netstate_open(getpid(), &n, &f), -EFBIG);
	goes_on = false;
	read_fails = -EIO;
	assert_int_equal(netstate_open(getpid(), &n, &f), -EIO);
}

static void sockets_that_cannot_be_counted_may_be_there(void **state)
{
	(void)state;
	says = "x\n";
	open_own();
	assert_false(netstate_is_as_made(&n)); /* neither number is in it */
	assert_int_equal(netstate_socket_bytes(&n), 0);
	says = "sockets: used 3\n tw 2 ";
	assert_int_equal(netstate_socket_bytes(&n), 3 * 4096 + 2 * 256);
	read_fails = -EIO;
	assert_false(netstate_is_as_made(&n));
	assert_int_equal(netstate_socket_bytes(&n), 0);
	assert_int_equal(netstate_unrouted(&n), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_kernel_without_ipv6_is_none_worse),
		CASE(a_file_that_cannot_be_opened_is_said),
		CASE(a_file_that_is_too_long_or_cannot_be_read_is_said),
		CASE(sockets_that_cannot_be_counted_may_be_there),
	};

	return cmocka_run_group_tests_name("netstate_files", tests, NULL, NULL);
}
