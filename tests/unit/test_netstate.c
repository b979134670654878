/* Root: each test has a network namespace of its own, with no device but lo. */
#include "unit.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/loopback.h"
#include "kernel/netstate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct netstate made;

static int own_network(void **state)
{
	struct fault f = { 0 };

	(void)state;
	if (unshare(CLONE_NEWNET) < 0 || loopback_up(&f) < 0)
		return -1;
	return netstate_open(getpid(), &made, &f);
}

static int close_it(void **state)
{
	(void)state;
	netstate_close(&made);
	return 0;
}

static int socket6(int type)
{
	int fd = socket(AF_INET6, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	return fd;
}

static const struct sockaddr_in6 *at(const char *host)
{
	static struct sockaddr_in6 a;

	a = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(7) };
	assert_int_equal(inet_pton(AF_INET6, host, &a.sin6_addr), 1);
	return &a;
}

static void it_is_not_empty_and_stays_the_same(void **state)
{
	(void)state;
	assert_in_range(made.len, 1000, NETSTATE_TEXT_MAX / 2); /* room for later kernels */
	assert_true(netstate_is_as_made(&made));
}

static void a_socket_that_did_nothing_leaves_nothing(void **state)
{
	const struct sockaddr_in6 *a = at("::1");
	int fd = socket6(SOCK_STREAM);

	(void)state;
	assert_int_equal(bind(fd, (const struct sockaddr *)a, sizeof(*a)), 0);
	assert_int_equal(listen(fd, 1), 0);
	(void)close(fd);
	assert_true(netstate_is_as_made(&made));
}

static void an_open_socket_shows_until_it_is_closed(void **state)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_true(fd >= 0);
	assert_false(netstate_is_as_made(&made));
	(void)close(fd);
	assert_true(netstate_is_as_made(&made));
}

static void a_connected_socket_leaves_a_route(void **state)
{
	const struct sockaddr_in6 *a = at("::1");
	int fd = socket6(SOCK_DGRAM);

	(void)state;
	assert_int_equal(connect(fd, (const struct sockaddr *)a, sizeof(*a)), 0);
	(void)close(fd);
	assert_false(netstate_is_as_made(&made));
}

static void an_address_that_is_not_reached_leaves_a_count(void **state)
{
	const struct sockaddr_in6 *a = at("2001:db8::1");
	int fd = socket6(SOCK_DGRAM);

	(void)state;
	assert_int_equal(connect(fd, (const struct sockaddr *)a, sizeof(*a)), -1);
	(void)close(fd);
	assert_false(netstate_is_as_made(&made));
}

static void a_packet_leaves_counts(void **state)
{
	const struct sockaddr_in6 *a = at("::1");
	int fd = socket6(SOCK_DGRAM);

	(void)state;
	assert_int_equal(sendto(fd, "x", 1, 0, (const struct sockaddr *)a, sizeof(*a)), 1);
	(void)close(fd);
	assert_false(netstate_is_as_made(&made));
}

static void a_process_that_is_gone_is_a_fault(void **state)
{
	struct fault f = { 0 };

	(void)state;
	netstate_close(&made);
	assert_true(netstate_open(0x7ffffff0, &made, &f) < 0);
	assert_true(f.text[0] != '\0');
	assert_false(netstate_is_as_made(&made));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			it_is_not_empty_and_stays_the_same, own_network, close_it),
		cmocka_unit_test_setup_teardown(
			a_socket_that_did_nothing_leaves_nothing, own_network, close_it),
		cmocka_unit_test_setup_teardown(
			an_open_socket_shows_until_it_is_closed, own_network, close_it),
		cmocka_unit_test_setup_teardown(
			a_connected_socket_leaves_a_route, own_network, close_it),
		cmocka_unit_test_setup_teardown(
			an_address_that_is_not_reached_leaves_a_count, own_network, close_it),
		cmocka_unit_test_setup_teardown(a_packet_leaves_counts, own_network, close_it),
		cmocka_unit_test_setup_teardown(
			a_process_that_is_gone_is_a_fault, own_network, close_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
