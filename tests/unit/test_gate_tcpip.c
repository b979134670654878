/* The TCP/IP stack itself (libslirp), between packets of a cell and sockets of this process. */
#include "unit.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "edge/gate/tcpip.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct tcpip tcpip;
static uint64_t ahead_ns; /* of the clock is the stack's time */

uint64_t __real_clock_ns(void);
uint64_t __wrap_clock_ns(void);
uint64_t __wrap_clock_ns(void)
{
	return __real_clock_ns() + ahead_ns;
}

static struct {
	uint8_t bytes[PACKET_MAX];
	struct packet p; /* the last about `port`, or an error; its len is 0: none */
	uint16_t port;
} told;

static void take(void *ctx, const uint8_t *packet, size_t len)
{
	struct packet p;

	assert_ptr_equal(ctx, &told);
	if (packet_read(packet, len, &p) || p.kind == PACKET_NOISE ||
		(p.kind != PACKET_ERROR && p.source_port != told.port))
		return;
	memcpy(told.bytes, packet, len);
	assert_null(packet_read(told.bytes, len, &told.p));
}

static uint8_t bytes[PACKET_MAX];

static void put16(size_t at, unsigned value)
{
	bytes[at] = (uint8_t)(value >> 8);
	bytes[at + 1] = (uint8_t)value;
}

static unsigned sum_of(size_t from, size_t to, unsigned long sum)
{
	for (size_t i = from; i < to; i += 2)
		sum += bytes[i] * 256u + bytes[i + 1];
	while (sum > 0xffff)
		sum = sum % 0x10000 + sum / 0x10000;
	return 0xffff - (unsigned)sum;
}

/* From the cell's port 40000 to this machine's loopback, which no rule is asked about here. */
static void send_it(uint8_t protocol, uint16_t port, size_t len)
{
	size_t sum_at = 20 + (protocol == IPPROTO_TCP ? 16 : 6);
	struct packet p;

	bytes[0] = 0x45;
	put16(2, (unsigned)(20 + len));
	bytes[8] = 64;
	bytes[9] = protocol;
	memcpy(bytes + 12, "\xc6\x12\0\2\x7f\0\0\1", 8);
	put16(20, 40000);
	put16(22, port);
	put16(10, 0);
	put16(10, sum_of(0, 20, 0));
	put16(sum_at, 0);
	put16(sum_at, sum_of(12, 20 + len, protocol + len));
	assert_null(packet_read(bytes, 20 + len, &p));
	told.p.len = 0;
	told.port = port;
	tcpip_send(&tcpip, &p);
}

static void connect_to(uint16_t port)
{
	memset(bytes, 0, sizeof(bytes));
	bytes[32] = 5 << 4;
	bytes[33] = PACKET_TCP_SYN;
	put16(34, 8192);
	send_it(IPPROTO_TCP, port, 20);
}

static void turn(uint32_t wait_ms)
{
	struct pollfd polls[8];
	unsigned count = tcpip_fill(&tcpip, polls, 0, 8, &wait_ms);
	int n = poll(polls, count, (int)wait_ms);

	tcpip_hear(&tcpip, n < 0);
}

/* Until the stack has said something. */
static void wait_for_word(void)
{
	for (unsigned i = 0; i < 100 && told.p.len == 0; i++)
		turn(100);
	assert_true(told.p.len > 0);
}

static uint16_t open_port(int type, int *ret_fd)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);

	*ret_fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	assert_true(*ret_fd >= 0);
	assert_int_equal(bind(*ret_fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(*ret_fd, 1), 0);
	assert_int_equal(getsockname(*ret_fd, (struct sockaddr *)&a, &len), 0);
	return ntohs(a.sin_port);
}

static void a_connection_is_made_with_a_socket(void **state)
{
	uint16_t port;
	int fd;

	(void)state;
	port = open_port(SOCK_STREAM, &fd);
	connect_to(port);
	wait_for_word();
	assert_int_equal(told.p.kind, PACKET_TCP);
	assert_int_equal(told.p.flags, PACKET_TCP_SYN | PACKET_TCP_ACK);
	assert_int_equal(told.p.source_port, port);
	assert_int_equal(told.p.target_port, 40000);
	(void)close(fd);
}

static void where_nobody_listens_it_is_reset(void **state)
{
	uint16_t port;
	int fd;

	(void)state;
	port = open_port(SOCK_STREAM, &fd);
	(void)close(fd);
	connect_to(port);
	wait_for_word();
	assert_int_equal(told.p.kind, PACKET_TCP);
	assert_true(told.p.flags & PACKET_TCP_RST);
}

/* TCP is remembered until it is over: a connection that nobody answers must come to an end, too. */
static void where_nobody_answers_it_is_reset_after_75_seconds(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	unsigned half_seconds = 0;
	int fd, waiting[8];
	uint16_t port;

	(void)state;
	port = open_port(SOCK_STREAM, &fd);
	assert_int_equal(listen(fd, 0), 0);
	a.sin_port = htons(port);
	for (unsigned i = 0; i < ARRAY_LEN(waiting); i++) { /* more than it has room for */
		waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)connect(waiting[i], (const struct sockaddr *)&a, sizeof(a));
	}
	connect_to(port);
	for (; told.p.len == 0 && half_seconds < 200; half_seconds++) {
		ahead_ns += NS_PER_S / 2;
		turn(0);
	}
	assert_int_equal(told.p.kind, PACKET_TCP);
	assert_true(told.p.flags & PACKET_TCP_RST);
	assert_in_range(half_seconds, 140, 160);
	for (unsigned i = 0; i < ARRAY_LEN(waiting); i++)
		(void)close(waiting[i]);
	(void)close(fd);
}

static void a_datagram_goes_out_and_one_comes_back(void **state)
{
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	char got[8];
	uint16_t port;
	int fd;

	(void)state;
	port = open_port(SOCK_DGRAM, &fd);
	memset(bytes, 0, sizeof(bytes));
	put16(24, 8 + 6);
	memcpy(bytes + 28, "hello!", 6);
	send_it(IPPROTO_UDP, port, 8 + 6);
	assert_int_equal(recvfrom(fd, got, sizeof(got), 0, (struct sockaddr *)&from, &from_len), 6);
	assert_memory_equal(got, "hello!", 6);
	assert_int_equal(sendto(fd, "yes", 3, 0, (const struct sockaddr *)&from, from_len), 3);
	wait_for_word();
	assert_int_equal(told.p.kind, PACKET_UDP);
	assert_int_equal(told.p.payload_len, 3);
	assert_memory_equal(told.p.payload, "yes", 3);
	(void)close(fd);
}

/* What the gate ends connections by. */
static void a_datagram_to_nobody_is_told_with_what_it_was(void **state)
{
	struct packet about;
	uint16_t port;
	int fd;

	(void)state;
	port = open_port(SOCK_DGRAM, &fd);
	(void)close(fd);
	memset(bytes, 0, sizeof(bytes));
	put16(24, 8 + 2);
	send_it(IPPROTO_UDP, port, 8 + 2);
	wait_for_word();
	assert_int_equal(told.p.kind, PACKET_ERROR);
	assert_true(packet_quoted(&told.p, &about));
	assert_int_equal(about.kind, PACKET_UDP);
	assert_int_equal(about.source_port, 40000);
	assert_int_equal(about.target_port, port);
}

static void there_is_a_timer_and_it_is_armed_again(void **state)
{
	uint64_t due_ns = tcpip_due(&tcpip);

	(void)state;
	assert_int_not_equal(due_ns, UINT64_MAX);
	tcpip_tick(&tcpip, due_ns - 1);
	assert_int_equal(tcpip_due(&tcpip), due_ns);
	tcpip_tick(&tcpip, due_ns);
	assert_int_not_equal(tcpip_due(&tcpip), UINT64_MAX);
}

static int open_it(void **state)
{
	struct fault f;

	(void)state;
	return tcpip_open(&tcpip, take, &told, &f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_is_made_with_a_socket),
		cmocka_unit_test(where_nobody_listens_it_is_reset),
		cmocka_unit_test(where_nobody_answers_it_is_reset_after_75_seconds),
		cmocka_unit_test(a_datagram_goes_out_and_one_comes_back),
		cmocka_unit_test(a_datagram_to_nobody_is_told_with_what_it_was),
		cmocka_unit_test(there_is_a_timer_and_it_is_armed_again),
	};

	return cmocka_run_group_tests(tests, open_it, NULL);
}
