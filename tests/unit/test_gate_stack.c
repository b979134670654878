/* What the gate hands on between a cell and the stack, both of which are the test. */
#include "unit.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "edge/gate/stack_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CELL4    "198.18.0.2"
#define CELL6    "fd5c:1b0e:93a7::2"
#define RESOLVER "198.18.0.3"
#define WORLD4   "8.8.8.8"
#define WORLD6   "2600::1"

static struct stack *stack;
static int cell_fd, channel_fd;
static struct network_record shared;
static struct network_policy ceiling, asked;
static struct stack_plan plan;

/* ---- The stack behind ---- */

static struct {
	tcpip_take_fn *take;
	void *ctx;
	unsigned sent;
	uint8_t bytes[PACKET_MAX];
	size_t len;
} behind;

int tcpip_open(struct tcpip *t, tcpip_take_fn *take, void *ctx, struct fault *f)
{
	(void)t;
	(void)f;
	behind.take = take;
	behind.ctx = ctx;
	behind.sent = 0;
	return 0;
}

/* What it sees stands in the record already. */
void tcpip_send(struct tcpip *t, const struct packet *p)
{
	(void)t;
	assert_int_equal(shared.connections, stack->flows.record.connections);
	assert_int_equal(shared.bytes_out, stack->flows.record.bytes_out);
	memcpy(behind.bytes, p->bytes, p->len);
	behind.len = p->len;
	behind.sent++;
}

unsigned tcpip_fill(
	struct tcpip *t, struct pollfd *polls, unsigned count, unsigned max, uint32_t *wait_ms)
{
	(void)t;
	(void)polls;
	(void)max;
	(void)wait_ms;
	return count;
}

void tcpip_hear(struct tcpip *t, bool failed)
{
	(void)t;
	(void)failed;
}

uint64_t tcpip_due(const struct tcpip *t)
{
	(void)t;
	return UINT64_MAX;
}

void tcpip_tick(struct tcpip *t, uint64_t now_ns)
{
	(void)t;
	(void)now_ns;
}

/* ---- Sockets ---- */

static bool no_sockets, no_pings;

int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
	(void)domain;
	(void)type;
	if (no_sockets || (no_pings && protocol == IPPROTO_ICMP)) {
		errno = no_sockets ? EMFILE : EACCES;
		return -1;
	}
	return dup(cell_fd);
}

/* ---- Packets ---- */

static uint8_t bytes[PACKET_MAX];
static size_t bytes_len;

static void put16(size_t at, unsigned value)
{
	bytes[at] = (uint8_t)(value >> 8);
	bytes[at + 1] = (uint8_t)value;
}

static size_t put_ip(const char *from, const char *to, uint8_t protocol, size_t len)
{
	memset(bytes, 0, sizeof(bytes));
	if (inet_pton(AF_INET, from, bytes + 12) == 1) {
		assert_int_equal(inet_pton(AF_INET, to, bytes + 16), 1);
		bytes[0] = 0x45;
		put16(2, (unsigned)(20 + len));
		bytes[9] = protocol;
		bytes_len = 20 + len;
		return 20;
	}
	memset(bytes, 0, 40);
	assert_int_equal(inet_pton(AF_INET6, from, bytes + 8), 1);
	assert_int_equal(inet_pton(AF_INET6, to, bytes + 24), 1);
	bytes[0] = 0x60;
	put16(4, (unsigned)len);
	bytes[6] = protocol;
	bytes_len = 40 + len;
	return 40;
}

static void put_tcp(
	const char *from, unsigned port, const char *to, unsigned to_port, uint8_t flags)
{
	size_t at = put_ip(from, to, IPPROTO_TCP, 20);

	put16(at, port);
	put16(at + 2, to_port);
	bytes[at + 12] = 5 << 4;
	bytes[at + 13] = flags;
}

static void put_udp(const char *from, unsigned port, const char *to, unsigned to_port,
	const void *payload, size_t len)
{
	size_t at = put_ip(from, to, IPPROTO_UDP, 8 + len);

	put16(at, port);
	put16(at + 2, to_port);
	put16(at + 4, (unsigned)(8 + len));
	memcpy(bytes + at + 8, payload, len);
}

static void put_echo(const char *from, const char *to, bool reply, unsigned id, unsigned sequence)
{
	bool ipv4 = !strchr(from, ':');
	size_t at = put_ip(from, to, ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6, 8);

	bytes[at] = (uint8_t)(ipv4 ? (reply ? 0 : 8) : (reply ? 129 : 128));
	put16(at + 4, id);
	put16(at + 6, sequence);
}

/* The stack's word that what is in `bytes` did not arrive. */
static void put_error(void)
{
	uint8_t quoted[64];
	size_t len = bytes_len < sizeof(quoted) ? bytes_len : sizeof(quoted), at;

	memcpy(quoted, bytes, len);
	at = put_ip("198.18.0.1", CELL4, IPPROTO_ICMP, 8 + len);
	bytes[at] = 3;
	memcpy(bytes + at + 8, quoted, len);
}

static void cell_sends(void)
{
	stack_judge(stack, bytes, bytes_len);
}

static void stack_says(void)
{
	behind.take(behind.ctx, bytes, bytes_len);
}

static void cell_connects(unsigned port)
{
	put_tcp(CELL4, port, WORLD4, 443, PACKET_TCP_SYN);
	cell_sends();
}

/* What the cell has got; ret->len is 0: nothing. */
static struct packet cell_gets(void)
{
	static uint8_t got[PACKET_MAX];
	ssize_t n = recv(cell_fd, got, sizeof(got), MSG_DONTWAIT);
	struct packet p = { 0 };

	if (n > 0)
		assert_null(packet_read(got, (size_t)n, &p));
	return p;
}

static const struct network_connection *last(void)
{
	assert_true(shared.count > 0);
	return &shared.lines[shared.count - 1];
}

/* Nothing went out; the cell was told at once and the record says why. */
static void assert_refused(enum network_verdict why)
{
	struct packet got = cell_gets(), about;

	assert_int_equal(behind.sent, 0);
	assert_int_equal(last()->verdict, why);
	assert_int_equal(got.kind, PACKET_ERROR);
	if (packet_quoted(&got, &about))
		assert_memory_equal(&about.target, &last()->address, sizeof(about.target));
	assert_int_equal(cell_gets().len, 0);
}

/* ---- ---- */

static int begin(void **state)
{
	static const struct network_address servers[1];
	static const struct rules_own own[1];
	struct fault f;
	int pair[2], channel[2];

	(void)state;
	no_sockets = no_pings = false;
	memset(&shared, 0, sizeof(shared));
	ceiling = (struct network_policy){
		.allow_count = 1, .max_connections = 10, .max_bytes = 1000000, .max_rate = 1000000
	};
	ceiling.allow[0].port_max = UINT16_MAX;
	asked = ceiling;
	asked.max_connections = 3;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel), 0);
	cell_fd = pair[1];
	channel_fd = channel[1];
	plan = (struct stack_plan){ .tun_fd = pair[0],
		.channel_fd = channel[0],
		.ceiling = &ceiling,
		.asked = &asked,
		.servers = servers,
		.own = own,
		.shared = &shared };
	if (stack)
		memset(stack, 0, sizeof(*stack));
	stack = stack_open(&plan, &f);
	assert_non_null(stack);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	(void)close(stack->tun_fd);
	(void)close(stack->channel_fd);
	(void)close(cell_fd);
	(void)close(channel_fd);
	return 0;
}

/* ---- Connections ---- */

static void what_is_allowed_goes_on_as_it_is_and_comes_back(void **state)
{
	struct packet got;

	(void)state;
	cell_connects(40000);
	assert_int_equal(behind.sent, 1);
	assert_int_equal(behind.len, bytes_len);
	assert_memory_equal(behind.bytes, bytes, bytes_len);
	assert_int_equal(cell_gets().len, 0);
	put_tcp(WORLD4, 443, CELL4, 40000, PACKET_TCP_SYN | PACKET_TCP_ACK);
	stack_says();
	got = cell_gets();
	assert_int_equal(got.kind, PACKET_TCP);
	put_tcp(WORLD4, 443, CELL4, 40001, PACKET_TCP_SYN | PACKET_TCP_ACK); /* of another */
	stack_says();
	assert_int_equal(cell_gets().len, 0);
	assert_int_equal(last()->verdict, NETWORK_ALLOWED);
	assert_int_equal(shared.count, 1);
}

static void what_is_refused_is_told_at_once(void **state)
{
	(void)state;
	put_tcp(CELL4, 40000, "10.0.0.1", 443, PACKET_TCP_SYN);
	cell_sends();
	assert_refused(NETWORK_PRIVATE);
	put_udp(CELL4, 40000, "10.0.0.1", 53, "x", 1);
	cell_sends();
	assert_refused(NETWORK_PRIVATE);
}

/* Words of the cell's in a segment that begins with that byte of its stream. */
static void cell_says(uint8_t byte, const char *words)
{
	size_t len = strlen(words), at;

	put_tcp(CELL4, 40000, WORLD4, 443, PACKET_TCP_ACK);
	at = bytes_len;
	put16(2, (unsigned)(bytes_len + len));
	bytes[20 + 7] = (uint8_t)(1 + byte); /* behind the SYN, which has 0 */
	memcpy(bytes + at, words, len);
	bytes_len += len;
	cell_sends();
}

static void cell_connects_by_name(void)
{
	struct network_address world = { { [10] = 0xff, [11] = 0xff, 8, 8, 8, 8 } };
	struct network_rule *rule = &stack->rules.asked.allow[0];

	rule->match = NETWORK_NAME;
	memcpy(rule->name, "example.org", sizeof("example.org"));
	rules_pin(&stack->rules, "example.org", &world);
	cell_connects(40000);
	put_tcp(WORLD4, 443, CELL4, 40000, PACKET_TCP_SYN | PACKET_TCP_ACK);
	bytes[20 + 11] = 1; /* it takes 0x4000 bytes behind the SYN */
	put16(20 + 14, 0x4000);
	stack_says();
	assert_int_equal(cell_gets().kind, PACKET_TCP);
	assert_int_equal(behind.sent, 1);
}

static void where_a_name_has_led_it_matters_what_is_said(void **state)
{
	uint8_t initial[1200] = { 0xc3, 0, 0, 0, 1 };
	struct packet got;

	(void)state;
	cell_connects_by_name();
	cell_says(0, "GET / HTTP/1.1\r\nHost: other.org\r\n\r\n");
	assert_int_equal(behind.sent, 2);
	assert_int_equal(behind.bytes[20 + 13], PACKET_TCP_RST | PACKET_TCP_ACK);
	assert_int_equal(behind.len, 40);
	got = cell_gets();
	assert_int_equal(got.flags, PACKET_TCP_RST | PACKET_TCP_ACK);
	assert_int_equal(last()->verdict, NETWORK_OTHER_NAME);
	assert_string_equal(last()->name, "other.org");
	assert_int_equal(stack->flows.open, 0);
	behind.sent = 0;
	put_udp(CELL4, 40000, WORLD4, 443, initial, sizeof(initial));
	cell_sends();
	assert_refused(NETWORK_QUIC);
}

static void what_comes_from_another_address_is_dropped(void **state)
{
	(void)state;
	put_tcp("198.18.0.7", 40000, WORLD4, 443, PACKET_TCP_SYN);
	cell_sends();
	assert_int_equal(behind.sent, 0);
	assert_int_equal(cell_gets().len, 0);
	assert_int_equal(stack->flows.record.lines[0].verdict, NETWORK_SOURCE);
}

static void a_connection_that_could_not_be_made_is_not_open(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		cell_connects(40000 + i);
		assert_int_equal(stack->flows.open, 1);
		if (i % 2)
			put_error();
		else
			put_tcp(WORLD4, 443, CELL4, 40000 + i, PACKET_TCP_RST | PACKET_TCP_ACK);
		stack_says();
		assert_int_equal(cell_gets().kind, i % 2 ? PACKET_ERROR : PACKET_TCP);
		assert_int_equal(stack->flows.open, 0);
	}
	assert_int_equal(behind.sent, 20);
	assert_int_equal(shared.refused, 0);
}

static void an_error_about_nothing_is_not_told(void **state)
{
	(void)state;
	put_tcp(CELL4, 40000, WORLD4, 443, PACKET_TCP_SYN);
	put_error();
	stack_says();
	assert_int_equal(cell_gets().len, 0);
}

static void no_more_are_open_than_allowed(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		cell_connects(40000 + i);
	assert_int_equal(behind.sent, 3);
	behind.sent = 0;
	cell_connects(40003);
	assert_refused(NETWORK_CONNECTIONS);
}

/* Nobody listened there, and the program tries on: one line, and a socket of the stack again. */
static void a_datagram_after_an_error_goes_on_with_its_connection(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		put_udp(CELL4, 40000, WORLD4, 9, "hello", 5);
		cell_sends();
		assert_int_equal(stack->flows.open, 1);
		put_error();
		stack_says();
		assert_int_equal(cell_gets().kind, PACKET_ERROR);
		assert_int_equal(stack->flows.open, 0);
	}
	assert_int_equal(shared.count, 1);
	assert_int_equal(shared.lines[0].bytes_out, 25);
	for (unsigned i = 0; i < 3; i++)
		cell_connects(40000 + i);
	behind.sent = 0;
	put_udp(CELL4, 40000, WORLD4, 9, "hello", 5);
	cell_sends();
	assert_refused(NETWORK_CONNECTIONS);
}

static void without_a_socket_nothing_begins_and_it_is_said(void **state)
{
	(void)state;
	no_sockets = true;
	cell_connects(40000);
	assert_refused(NETWORK_SOCKETS);
	put_udp(CELL4, 40000, WORLD4, 53, "x", 1);
	cell_sends();
	assert_refused(NETWORK_SOCKETS);
	put_echo(CELL4, WORLD4, false, 7, 1);
	cell_sends();
	assert_refused(NETWORK_SOCKETS);
}

/* ---- Echoes ---- */

static void an_echo_goes_out_and_its_answer_in(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3 * PINGS_MAX; i++) {
		put_echo(CELL4, WORLD4, false, 7, i);
		cell_sends();
		assert_int_equal(behind.sent, i + 1);
		put_echo(WORLD4, CELL4, false, 7, i); /* nobody pings a cell */
		stack_says();
		assert_int_equal(cell_gets().len, 0);
		put_echo(WORLD4, CELL4, true, 7, i);
		stack_says();
		assert_int_equal(cell_gets().kind, PACKET_ECHO);
	}
	assert_int_equal(shared.count, 1);
	assert_int_equal(stack->flows.open, 0); /* they are counted apart */
}

static void echoes_without_an_answer_are_bounded(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PINGS_MAX; i++) {
		put_echo(CELL4, WORLD4, false, i / 2, i);
		cell_sends();
	}
	assert_int_equal(behind.sent, PINGS_MAX);
	behind.sent = 0;
	put_echo(CELL4, WORLD4, false, 1000, 1);
	cell_sends();
	assert_refused(NETWORK_ECHOES);
	put_echo(CELL4, WORLD4, false, 3, 7);
	put_error();
	stack_says();
	(void)cell_gets();
	put_echo(CELL4, WORLD4, false, 1000, 1);
	cell_sends();
	assert_int_equal(behind.sent, 1);
}

/* Without a socket for pings the stack would send datagrams to port 7. */
static void where_there_are_no_pings_an_echo_is_refused(void **state)
{
	(void)state;
	put_echo(CELL6, WORLD6, false, 7, 1); /* the stack carries none */
	cell_sends();
	assert_refused(NETWORK_NO_ECHO);
	stack->carries_echo = false;
	put_echo(CELL4, WORLD4, false, 7, 1);
	cell_sends();
	assert_refused(NETWORK_NO_ECHO);
}

static void whether_there_are_pings_is_tried(void **state)
{
	struct fault f;

	(void)state;
	assert_true(stack->carries_echo);
	no_pings = true;
	assert_ptr_equal(stack_open(&plan, &f), stack);
	assert_false(stack->carries_echo);
}

/* ---- What cannot be read ---- */

static void what_programs_do_not_send_is_refused_at_once(void **state)
{
	(void)state;
	put_ip(CELL4, WORLD4, IPPROTO_SCTP, 20);
	cell_sends();
	assert_refused(NETWORK_UNREADABLE);
	put_ip(CELL6, WORLD6, IPPROTO_SCTP, 20);
	cell_sends();
	assert_refused(NETWORK_UNREADABLE);
	put_udp(CELL4, 40000, "8.8.4.4", 53, "x", 1);
	bytes[6] = 0x20; /* the first of several fragments */
	cell_sends();
	assert_refused(NETWORK_UNREADABLE);
	bytes[6] = 0;
	bytes[7] = 9; /* the next one: nobody is told, and its line is the first one's */
	cell_sends();
	assert_int_equal(cell_gets().len, 0);
	assert_int_equal(stack->flows.record.lines[stack->flows.record.count - 1].times, 2);
	put_echo(CELL4, "1.1.1.1", true, 7, 1);
	cell_sends();
	assert_refused(NETWORK_UNREADABLE);
	put_tcp("198.18.0.7", 40000, WORLD4, 443, PACKET_TCP_SYN);
	bytes[9] = IPPROTO_SCTP;
	cell_sends();
	assert_int_equal(cell_gets().len, 0); /* to whom? */
}

static void an_address_of_ipv4_in_ipv6_goes_nowhere(void **state)
{
	(void)state;
	put_tcp(CELL6, 40000, "::ffff:8.8.8.8", 443, PACKET_TCP_SYN);
	cell_sends();
	assert_int_equal(behind.sent, 0);
	assert_int_equal(last()->verdict, NETWORK_TRANSLATED);
}

/* ---- Bytes ---- */

static void ask(const char *name_bytes, size_t len)
{
	uint8_t question[64] = { 1, 2, 1, 0, 0, 1 };

	memcpy(question + 12, name_bytes, len);
	memcpy(question + 12 + len, "\0\1\0\1", 4);
	put_udp(CELL4, 40000, RESOLVER, 53, question, 16 + len);
	cell_sends();
}

static void questions_and_their_answers_count(void **state)
{
	struct packet got;

	(void)state;
	ask("\7example\3org", 13); /* there is no resolver: it fails */
	got = cell_gets();
	assert_int_equal(got.kind, PACKET_UDP);
	assert_int_equal(shared.bytes_out, 29);
	assert_int_equal(shared.bytes_in, got.payload_len);
	assert_int_equal(stack->pace.debt, 28 + 29 + 28 + got.payload_len);
	stack->max_bytes = shared.bytes_in + shared.bytes_out;
	ask("\7example\3org", 13);
	assert_refused(NETWORK_BYTES);
}

static void when_all_bytes_are_used_nothing_passes(void **state)
{
	(void)state;
	cell_connects(40000);
	stack->max_bytes = 0;
	behind.sent = 0;
	put_tcp(CELL4, 40000, WORLD4, 443, PACKET_TCP_ACK);
	cell_sends();
	assert_refused(NETWORK_BYTES);
	put_tcp(WORLD4, 443, CELL4, 40000, PACKET_TCP_ACK);
	stack_says();
	assert_int_equal(cell_gets().len, 0);
}

/* However large the packet with which they would be used up. */
static void no_byte_passes_beyond_the_bound(void **state)
{
	(void)state;
	stack->max_bytes = 9;
	put_udp(CELL4, 40000, WORLD4, 7, "0123456789", 10);
	cell_sends();
	assert_refused(NETWORK_BYTES);
	assert_int_equal(shared.bytes_out, 0);
	put_udp(CELL4, 40000, WORLD4, 7, "01234", 5);
	cell_sends();
	put_udp(WORLD4, 7, CELL4, 40000, "01234", 5);
	stack_says();
	assert_int_equal(cell_gets().len, 0);
	put_udp(WORLD4, 7, CELL4, 40000, "0123", 4);
	stack_says();
	assert_int_equal(cell_gets().payload_len, 4);
	assert_int_equal(shared.bytes_in + shared.bytes_out, 9);
}

static void nor_does_what_was_held(void **state)
{
	(void)state;
	cell_connects_by_name();
	cell_says(0, "GET / HTTP/1.1\r\nHost: exam");
	assert_int_equal(cell_gets().flags, PACKET_TCP_ACK);
	behind.sent = 0;
	stack->max_bytes = shared.bytes_out + 20; /* more than comes now, less than all of it */
	cell_says(26, "ple.org\r\n\r\n");
	assert_int_equal(behind.sent, 0);
	assert_int_equal(last()->verdict, NETWORK_BYTES);
	assert_true(shared.bytes_out + shared.bytes_in <= stack->max_bytes);
}

/* ---- The end ---- */

static void it_ends_well_when_the_cell_or_the_supervisor_is_gone(void **state)
{
	struct fault f;

	(void)state;
	put_tcp(CELL4, 40000, WORLD4, 443, PACKET_TCP_SYN);
	assert_int_equal(send(cell_fd, bytes, bytes_len, 0), bytes_len);
	(void)shutdown(cell_fd, SHUT_WR);
	assert_int_equal(stack_run(stack, &f), 0);
	assert_int_equal(behind.sent, 1);
	(void)finish(NULL);
	(void)begin(NULL);
	(void)shutdown(channel_fd, SHUT_WR);
	assert_int_equal(stack_run(stack, &f), 0);
}

static void it_says_what_else_has_ended_it(void **state)
{
	struct fault f = { 0 };
	int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_true(folder >= 0);
	assert_int_equal(dup3(folder, stack->tun_fd, O_CLOEXEC), stack->tun_fd);
	(void)close(folder);
	assert_int_equal(stack_run(stack, &f), -EISDIR);
	assert_int_equal(f.code, -EISDIR);
}

static void packets_are_lost_for_some_errors_and_all_for_others(void **state)
{
	static const int small[] = { EAGAIN, EINTR, ENOBUFS, ENOMEM, EIO };
	static const int large[] = { EINVAL, EBADF, EPERM, EFAULT };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(small); i++) {
		stack_note_error(stack, small[i]);
		assert_true(!stack->gone && stack->broken == 0);
	}
	for (unsigned i = 0; i < ARRAY_LEN(large); i++) {
		stack_note_error(stack, large[i]);
		assert_true(!stack->gone && stack->broken == large[i]);
	}
	stack_note_error(stack, EBADFD);
	assert_true(stack->gone);
}

#define STACK_TEST(test) cmocka_unit_test_setup_teardown(test, begin, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STACK_TEST(what_is_allowed_goes_on_as_it_is_and_comes_back),
		STACK_TEST(what_is_refused_is_told_at_once),
		STACK_TEST(where_a_name_has_led_it_matters_what_is_said),
		STACK_TEST(what_comes_from_another_address_is_dropped),
		STACK_TEST(a_connection_that_could_not_be_made_is_not_open),
		STACK_TEST(an_error_about_nothing_is_not_told),
		STACK_TEST(no_more_are_open_than_allowed),
		STACK_TEST(a_datagram_after_an_error_goes_on_with_its_connection),
		STACK_TEST(without_a_socket_nothing_begins_and_it_is_said),
		STACK_TEST(an_echo_goes_out_and_its_answer_in),
		STACK_TEST(echoes_without_an_answer_are_bounded),
		STACK_TEST(where_there_are_no_pings_an_echo_is_refused),
		STACK_TEST(whether_there_are_pings_is_tried),
		STACK_TEST(what_programs_do_not_send_is_refused_at_once),
		STACK_TEST(an_address_of_ipv4_in_ipv6_goes_nowhere),
		STACK_TEST(questions_and_their_answers_count),
		STACK_TEST(when_all_bytes_are_used_nothing_passes),
		STACK_TEST(no_byte_passes_beyond_the_bound),
		STACK_TEST(nor_does_what_was_held),
		STACK_TEST(it_ends_well_when_the_cell_or_the_supervisor_is_gone),
		STACK_TEST(it_says_what_else_has_ended_it),
		STACK_TEST(packets_are_lost_for_some_errors_and_all_for_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
