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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
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

#define CONNECTIONS 50

/* Their sockets are charged to nobody: this is the only count of them. */
static void connections_that_nobody_accepts_are_counted(void **state)
{
	struct sockaddr_in6 a = *at("::1");
	int listener = socket6(SOCK_STREAM);
	uint64_t before, standing;

	(void)state;
	assert_int_equal(bind(listener, (const struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(listener, CONNECTIONS), 0);
	before = netstate_socket_bytes(&made);
	assert_in_range(before, 1, 1 << 16);
	for (int i = 0; i < CONNECTIONS; i++) {
		int fd = socket6(SOCK_STREAM);

		assert_int_equal(connect(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
		(void)close(fd);
	}
	standing = netstate_socket_bytes(&made);
	assert_in_range(standing, before + CONNECTIONS * 4096, before + CONNECTIONS * 16384);
	(void)close(listener);
	assert_true(netstate_socket_bytes(&made) < standing);
	netstate_close(&made);
	assert_int_equal(netstate_socket_bytes(&made), 0);
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

static void try_in_vain(int family, const void *address, socklen_t len)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, address, len), -1);
	assert_int_equal(errno, ENETUNREACH);
	assert_int_equal(sendto(fd, "x", 1, 0, address, len), -1);
	(void)close(fd);
}

static void what_has_no_route_is_counted(void **state)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(9) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(netstate_unrouted(&made), 0);
	assert_int_equal(inet_pton(AF_INET, "192.0.2.1", &v4.sin_addr), 1);
	try_in_vain(AF_INET, &v4, sizeof(v4));
	assert_int_equal(netstate_unrouted(&made), 2);
	try_in_vain(AF_INET6, at("2001:db8::1"), sizeof(struct sockaddr_in6));
	assert_int_equal(netstate_unrouted(&made), 4);
	assert_int_equal(connect(fd, (struct sockaddr *)&v4, sizeof(v4)), -1);
	assert_int_equal(netstate_unrouted(&made), 5);
	(void)close(fd);
	/* What came before does not count for who looks from now on. */
	netstate_close(&made);
	assert_int_equal(netstate_unrouted(&made), 0);
	assert_int_equal(netstate_open(getpid(), &made, &f), 0);
	assert_int_equal(netstate_unrouted(&made), 0);
}

static void a_connection_to_oneself_is_no_try_to_leave(void **state)
{
	struct sockaddr_in lo = { .sin_family = AF_INET, .sin_port = htons(9) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	lo.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&lo, sizeof(lo)), -1);
	assert_int_equal(errno, ECONNREFUSED);
	assert_int_equal(netstate_unrouted(&made), 0);
	(void)close(fd);
}

static void counters_are_read_by_their_names(void **state)
{
	static const char v4[] = "Ip: Forwarding OutNoRoutes Last\nIp: 2 17 9\n"
				 "IpExt: OutNoRoutes\nIpExt: 3\n";
	static const char v6[] = "Ip6InReceives                   \t5\n"
				 "Ip6OutNoRoutes                  \t42\n";
	uint64_t n = 1;

	(void)state;
	assert_int_equal(netstate_parse_snmp(v4, "Ip:", "OutNoRoutes", &n), 0);
	assert_int_equal(n, 17);
	assert_int_equal(netstate_parse_snmp(v4, "IpExt:", "OutNoRoutes", &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(netstate_parse_snmp(v4, "Ip:", "Last", &n), 0);
	assert_int_equal(n, 9);
	assert_int_equal(netstate_parse_snmp6(v6, "Ip6OutNoRoutes", &n), 0);
	assert_int_equal(n, 42);
}

static void text_without_the_counter_is_no_number(void **state)
{
	static const char *const bad[] = { "", "\n", "Ip:", "Ip:\n", "Ip: OutNoRoutes\n",
		"Ip: OutNoRoutes\nTcp: 1\n", "Ip: Other\nIp: 1\n", "Tcp: OutNoRoutes\nTcp: 1\n",
		"Ip: A OutNoRoutes\nIp: 1\n", "Ip: OutNoRoutes\nIp: x\n",
		"Ip: OutNoRoutes\nIp: 123456789012345678901234567890\n" };
	uint64_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(netstate_parse_snmp(bad[i], "Ip:", "OutNoRoutes", &n) < 0);
	assert_true(netstate_parse_snmp6("", "Ip6OutNoRoutes", &n) < 0);
	assert_true(netstate_parse_snmp6("Ip6OutNoRoutes\n5\n", "Ip6OutNoRoutes", &n) < 0);
	assert_true(netstate_parse_snmp6("Ip6OutNoRoutes2 5\n", "Ip6OutNoRoutes", &n) < 0);
}

static void loopback_is_not_raised_without_the_right_or_a_socket(void **state)
{
	struct rlimit was, none;
	struct fault f = { 0 };
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(loopback_up(&f), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(setresuid(65534, 65534, 65534) == 0 && loopback_up(&f) == -EPERM ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
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
			what_has_no_route_is_counted, own_network, close_it),
		cmocka_unit_test_setup_teardown(
			a_connection_to_oneself_is_no_try_to_leave, own_network, close_it),
		cmocka_unit_test(counters_are_read_by_their_names),
		cmocka_unit_test(text_without_the_counter_is_no_number),
		cmocka_unit_test_setup_teardown(
			connections_that_nobody_accepts_are_counted, own_network, close_it),
		cmocka_unit_test_setup_teardown(
			a_process_that_is_gone_is_a_fault, own_network, close_it),
		cmocka_unit_test(loopback_is_not_raised_without_the_right_or_a_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
