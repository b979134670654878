#include "tests/unit/names_play.h"

#include "api/network.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct play play;

static const struct network_address servers[LOOKUPS_SERVERS_MAX] = {
	{ { [10] = 0xff, [11] = 0xff, 192, 0, 2, 53 } }, { { 0x20, 0x01, [15] = 0x53 } },
	{ { [10] = 0xff, [11] = 0xff, 127, 0, 0, 53 } }
};

/* ---- The machine's resolvers ---- */

int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
	struct play_socket *s = &play.sockets[play.socket_count++];
	int fds[2];

	assert_true(play.socket_count <= ARRAY_LEN(play.sockets));
	assert_true(domain == AF_INET || domain == AF_INET6);
	assert_int_equal(type & (SOCK_CLOEXEC | SOCK_NONBLOCK), SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_int_equal(protocol, 0);
	assert_int_equal(socketpair(AF_UNIX, type, 0, fds), 0);
	*s = (struct play_socket){
		.own = fds[0], .peer = fds[1], .type = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)
	};
	return fds[0];
}

static unsigned server_of(const struct sockaddr *address)
{
	const void *at = address;
	const uint8_t *bytes =
		address->sa_family == AF_INET
			? (const void *)&((const struct sockaddr_in *)at)->sin_addr
			: (const void *)&((const struct sockaddr_in6 *)at)->sin6_addr;
	unsigned len = address->sa_family == AF_INET ? 4 : 16;

	for (unsigned i = 0; i < LOOKUPS_SERVERS_MAX; i++)
		if (memcmp(servers[i].bytes + 16 - len, bytes, len) == 0)
			return i;
	fail_msg("a resolver that nobody has named");
	return 0;
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len)
{
	struct play_socket *s = &play.sockets[play.socket_count - 1];

	assert_int_equal(s->own, fd);
	s->server = server_of(address);
	memcpy(&s->address, address, len);
	play.connects++;
	errno = play.connects == play.bad_connect ? ENETUNREACH : EINPROGRESS;
	return play.connects == play.bad_connect || s->type == SOCK_STREAM ? -1 : 0;
}

void play_close(void)
{
	names_close(&play.names);
	while (play.socket_count > 0)
		(void)close(play.sockets[--play.socket_count].peer);
}

/* ---- Messages ---- */

void play_put(const void *bytes, size_t len)
{
	memcpy(play.message + play.message_len, bytes, len);
	play.message_len += len;
}

static void put16(unsigned value)
{
	play_put((const uint8_t[]){ (uint8_t)(value >> 8), (uint8_t)value }, 2);
}

static unsigned get16(const uint8_t *at)
{
	return at[0] * 256u + at[1];
}

void play_put_head(unsigned id, unsigned flags, unsigned questions, unsigned answers)
{
	play.message_len = 0;
	put16(id);
	put16(flags);
	put16(questions);
	put16(answers);
	put16(0);
	put16(0);
}

static void put_name(const char *name)
{
	while (*name) {
		size_t len = strcspn(name, ".");

		play_put(&(uint8_t){ (uint8_t)len }, 1);
		play_put(name, len);
		name += name[len] ? len + 1 : len;
	}
	play_put("", 1);
}

void play_put_question(const char *name, unsigned type)
{
	put_name(name);
	put16(type);
	put16(1);
}

void play_put_record(unsigned type, unsigned class, const void *bytes, size_t len)
{
	put16(0xc00c);
	put16(type);
	put16(class);
	put16(0);
	put16(300);
	put16((unsigned)len);
	play_put(bytes, len);
}

void play_put_address(const char *text)
{
	uint8_t a[16];

	if (inet_pton(AF_INET, text, a) == 1)
		play_put_record(PLAY_A, 1, a, 4);
	else if (inet_pton(AF_INET6, text, a) == 1)
		play_put_record(PLAY_AAAA, 1, a, 16);
	else
		fail_msg("%s is no address", text);
}

/* ---- The cell ---- */

void play_append(char *list, size_t size, const char *text)
{
	size_t n = strlen(list);

	(void)snprintf(list + n, size - n, "%s ", text);
}

/* What it says; all that it may say is a question and addresses of the same name. */
static void read_answer(void)
{
	const uint8_t *at = play.told.bytes + 12;

	play.told.id = get16(play.told.bytes);
	play.told.flags = get16(play.told.bytes + 2);
	play.told.answers = get16(play.told.bytes + 6);
	play.told.text[0] = '\0';
	assert_int_equal(get16(play.told.bytes + 4), 1);
	assert_int_equal(get16(play.told.bytes + 8), 0);
	assert_int_equal(get16(play.told.bytes + 10), 0);
	while (*at)
		at += *at + 1;
	at += 5;
	for (unsigned i = 0; i < play.told.answers; i++) {
		unsigned len = get16(at + 10);
		char text[INET6_ADDRSTRLEN];

		assert_int_equal(get16(at), 0xc00c);
		assert_int_equal(len, get16(at + 2) == PLAY_A ? 4 : 16);
		assert_non_null(
			inet_ntop(len == 4 ? AF_INET : AF_INET6, at + 12, text, sizeof(text)));
		play_append(play.told.text, sizeof(play.told.text), text);
		at += 12 + len;
	}
	assert_ptr_equal(at, play.told.bytes + play.told.len);
}

static void on_packet(void *ctx, const uint8_t *packet, size_t len)
{
	struct packet p;

	assert_ptr_equal(ctx, &play.told);
	assert_null(packet_read(packet, len, &p));
	assert_int_equal(p.kind, PACKET_UDP);
	assert_int_equal(p.source_port, NAMES_PORT);
	assert_int_equal(p.target_port, 40000);
	play.told.count++;
	play.told.len = p.payload_len;
	memcpy(play.told.bytes, p.payload, p.payload_len);
	read_answer();
}

/* From a block that ends where it does. */
void play_ask_it(void)
{
	struct packet p = { .kind = PACKET_UDP,
		.ipv4 = true,
		.source = { { [10] = 0xff, [11] = 0xff, [15] = 2 } },
		.target = { { [10] = 0xff, [11] = 0xff, [15] = 3 } },
		.source_port = 40000,
		.target_port = NAMES_PORT,
		.payload_len = play.message_len };
	uint8_t *block = malloc(play.message_len ? play.message_len : 1);

	assert_non_null(block);
	memcpy(block, play.message, play.message_len);
	p.payload = block;
	play.told.count = 0;
	names_ask(&play.names, &p, play.now_ns);
	free(block);
}

void play_ask(const char *name, unsigned type)
{
	play_put_head(PLAY_ID, 0x0100, 1, 0);
	play_put_question(name, type);
	play_ask_it();
}

static void allow(struct network_policy *p, const char *text)
{
	size_t at;

	assert_null(network_rule_parse(text, strlen(text), &p->allow[p->allow_count++], &at));
}

void play_open(unsigned count)
{
	for (unsigned i = 0; i < LOOKUPS_SERVERS_MAX; i++)
		play.asked_at[i] = -1;
	names_open(&play.names, servers, count, play.now_ns);
}

int play_begin(void **state)
{
	(void)state;
	memset(&play.rules, 0, sizeof(play.rules));
	memset(&play.told, 0, sizeof(play.told));
	allow(&play.rules.ceiling, "*");
	allow(&play.rules.asked, "*.example.org");
	play.now_ns = PLAY_BEGAN_NS;
	flows_init(&play.flows, PLAY_BEGAN_NS);
	play.names = (struct names){
		.rules = &play.rules, .flows = &play.flows, .send = on_packet, .ctx = &play.told
	};
	play.socket_count = play.connects = play.bad_connect = 0;
	play_open(2);
	return 0;
}

int play_end(void **state)
{
	(void)state;
	play_close();
	return 0;
}

bool play_was_asked_by(unsigned server, int type)
{
	for (unsigned i = 0; i < play.socket_count; i++) {
		const struct play_socket *s = &play.sockets[i];
		ssize_t n;

		if (s->server != server || s->type != type)
			continue;
		n = recv(s->peer, play.message, sizeof(play.message), MSG_DONTWAIT);
		if (n <= 0)
			continue;
		play.message_len = (size_t)n;
		play.asked_at[server] = (int)i;
		return true;
	}
	return false;
}

bool play_was_asked(unsigned server)
{
	return play_was_asked_by(server, SOCK_DGRAM);
}

unsigned play_asked_id(unsigned server)
{
	assert_true(play_was_asked(server));
	return get16(play.message);
}

void play_turn(void)
{
	struct pollfd polls[NAMES_POLLS];

	names_fill(&play.names, polls);
	if (poll(polls, NAMES_POLLS, 0) > 0)
		names_hear(&play.names, polls, play.now_ns);
}

void play_say_it(unsigned server)
{
	play.told.count = 0;
	/* Where nobody listens any more it is lost. */
	if (play.asked_at[server] >= 0)
		(void)send(play.sockets[play.asked_at[server]].peer, play.message, play.message_len,
			MSG_NOSIGNAL);
	play_turn();
}

void play_frame_it(void)
{
	memmove(play.message + 2, play.message, play.message_len);
	play.message[0] = (uint8_t)(play.message_len >> 8);
	play.message[1] = (uint8_t)play.message_len;
	play.message_len += 2;
}

void play_resolve(const char *name, unsigned type, const char *const *addresses)
{
	unsigned id, n = 0;

	play_ask(name, type);
	id = play_asked_id(0);
	while (addresses[n])
		n++;
	play_put_head(id, 0x8180, 1, n);
	play_put_question(name, type);
	for (unsigned i = 0; i < n; i++)
		play_put_address(addresses[i]);
	play_say_it(0);
}

void play_assert_line(uint32_t i, const char *name, enum network_verdict v)
{
	assert_true(i < play.flows.record.count);
	assert_string_equal(play.flows.record.lines[i].name, name);
	assert_int_equal(play.flows.record.lines[i].verdict, v);
}

void play_assert_told(unsigned rcode, const char *addresses)
{
	assert_int_equal(play.told.count, 1);
	assert_int_equal(play.told.id, PLAY_ID);
	assert_int_equal(play.told.flags, 0x8180 | rcode);
	assert_string_equal(play.told.text, addresses);
}

bool play_is_open(void)
{
	for (unsigned i = 0; i < NAMES_ASKED_MAX; i++)
		if (play.names.asked[i].used)
			return true;
	return false;
}
