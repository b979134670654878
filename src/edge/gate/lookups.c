#include "edge/gate/lookups.h"

#include "api/network.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/own.h"
#include "edge/gate/message.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define WAIT_NS (2 * NS_PER_S)

/* ---- Resolvers ---- */

/* "nameserver ADDRESS" and nothing else but what may be behind it. */
static bool read_server(const char *line, size_t len, struct network_address *ret)
{
	static const char word[] = "nameserver";
	size_t at = sizeof(word) - 1, end, bad;

	if (len <= at || memcmp(line, word, at) != 0 || (line[at] != ' ' && line[at] != '\t'))
		return false;
	while (at < len && (line[at] == ' ' || line[at] == '\t'))
		at++;
	end = at;
	while (end < len && !memchr(" \t\r#;", line[end], 5))
		end++;
	return !network_address_parse(line + at, end - at, ret, &bad);
}

unsigned lookups_read_servers(const char *text, size_t len, struct network_address *ret)
{
	const char *end = text + len;
	unsigned n = 0;

	while (text < end && n < LOOKUPS_SERVERS_MAX) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline : end;

		n += read_server(text, (size_t)(stop - text), &ret[n]);
		text = newline ? newline + 1 : end;
	}
	return n;
}

/* Its number, or a negative one. The port is the kernel's choice, at random. */
static int open_socket(const struct network_address *a, int type)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(LOOKUPS_PORT) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(LOOKUPS_PORT) };
	bool ipv4 = network_is_ipv4(a);
	cleanup_fd int fd =
		socket(ipv4 ? AF_INET : AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -1;
	memcpy(&in.sin_addr, a->bytes + 12, 4);
	memcpy(&in6.sin6_addr, a->bytes, 16);
	r = ipv4 ? connect(fd, (const struct sockaddr *)&in, sizeof(in))
		 : connect(fd, (const struct sockaddr *)&in6, sizeof(in6));
	return r < 0 && errno != EINPROGRESS ? -1 : take_fd(&fd);
}

/* ---- Asking ---- */

/* With a number that cannot be guessed. Returns its length; 0: it cannot be made. */
static size_t put_question(struct lookup *one, uint8_t message[MESSAGE_MAX])
{
	struct message_head h = {
		.flags = 0x0100, .type = one->type, .name = one->name
	}; /* recursion desired */

	if (getrandom(&one->id, sizeof(one->id), 0) != sizeof(one->id))
		return 0;
	h.id = one->id;
	return message_begin(message, &h);
}

static bool send_datagram(struct lookups *l, struct lookup *one)
{
	uint8_t message[MESSAGE_MAX];
	size_t len = put_question(one, message);

	one->fd = open_socket(&l->servers[one->server], SOCK_DGRAM);
	return len > 0 && one->fd >= 0 && send(one->fd, message, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* It is sent when there is a connection. */
static bool connect_for(struct lookups *l, struct lookup *one)
{
	size_t len = put_question(one, one->bytes + 2);

	drop_fd(&one->fd);
	one->bytes[0] = (uint8_t)(len >> 8);
	one->bytes[1] = (uint8_t)len;
	one->len = len + 2;
	one->is_tcp = true;
	one->is_sent = false;
	one->fd = open_socket(&l->servers[one->server], SOCK_STREAM);
	return len > 0 && one->fd >= 0;
}

static void end(
	struct lookups *l, struct lookup *one, const struct lookups_answer *a, uint64_t now_ns)
{
	drop_fd(&one->fd);
	one->used = false;
	l->done(l->ctx, (unsigned)(one - l->all), a, now_ns);
}

/* The resolver that is due, or the first behind it that can be asked. */
static void ask(struct lookups *l, struct lookup *one, uint64_t now_ns)
{
	struct lookups_answer none = { .rcode = ns_r_servfail };

	one->is_tcp = false;
	one->due_ns = now_ns + WAIT_NS;
	for (; one->server < l->server_count; one->server++) {
		drop_fd(&one->fd);
		if (send_datagram(l, one))
			return;
	}
	none.is_nobodys = !one->was_answered;
	end(l, one, &none, now_ns);
}

static void ask_next(struct lookups *l, struct lookup *one, uint64_t now_ns)
{
	one->server++;
	ask(l, one, now_ns);
}

int lookups_find(const struct lookups *l, const char *name, uint16_t type, bool *ret_is_open)
{
	int free_one = -1;

	*ret_is_open = false;
	for (unsigned i = LOOKUPS_MAX; i-- > 0;) {
		const struct lookup *one = &l->all[i];

		*ret_is_open = one->used && one->type == type && strcmp(one->name, name) == 0;
		if (*ret_is_open)
			return (int)i;
		if (!one->used)
			free_one = (int)i;
	}
	return free_one;
}

void lookups_begin(
	struct lookups *l, unsigned number, const char *name, uint16_t type, uint64_t now_ns)
{
	struct lookup *one = &l->all[number];

	CHECK(number < LOOKUPS_MAX && !one->used);
	one->used = true;
	one->was_answered = false;
	one->server = 0;
	one->type = type;
	one->fd = -1;
	(void)snprintf(one->name, sizeof(one->name), "%s", name);
	ask(l, one, now_ns);
}

/* ---- Answers ---- */

/* Does it answer what was asked? */
static bool is_answer(const struct lookup *one, ns_msg *m)
{
	ns_rr rr;

	return ns_msg_getflag(*m, ns_f_qr) && ns_msg_count(*m, ns_s_qd) == 1 &&
	       ns_msg_id(*m) == one->id && ns_parserr(m, ns_s_qd, 0, &rr) == 0 &&
	       ns_rr_type(rr) == one->type && ns_rr_class(rr) == ns_c_in &&
	       strcasecmp(ns_rr_name(rr), one->name) == 0;
}

static bool address_of(const ns_rr *rr, unsigned type, struct network_address *ret)
{
	size_t bytes = type == ns_t_a ? 4 : 16;

	if (ns_rr_type(*rr) != type || ns_rr_class(*rr) != ns_c_in || ns_rr_rdlen(*rr) != bytes)
		return false;
	*ret = (struct network_address){ { [10] = 0xff, [11] = 0xff } };
	memcpy(ret->bytes + 16 - bytes, ns_rr_rdata(*rr), bytes);
	return true;
}

static void collect(const struct lookup *one, ns_msg *m, struct lookups_answer *ret)
{
	ns_rr rr;

	for (int i = 0; i < ns_msg_count(*m, ns_s_an) && ret->count < ARRAY_LEN(ret->addresses);
		i++) {
		if (ns_parserr(m, ns_s_an, i, &rr) < 0)
			return;
		ret->count += address_of(&rr, one->type, &ret->addresses[ret->count]);
	}
}

/* What is no answer is not there: the true one may still come. */
static void read_message(
	struct lookups *l, struct lookup *one, const uint8_t *bytes, size_t len, uint64_t now_ns)
{
	struct lookups_answer a = { 0 };
	ns_msg m;

	if (ns_initparse(bytes, (int)len, &m) < 0 || !is_answer(one, &m))
		return;
	a.rcode = (int)ns_msg_getflag(m, ns_f_rcode);
	one->was_answered = true;
	if (a.rcode == ns_r_noerror)
		collect(one, &m, &a);
	else if (a.rcode != ns_r_nxdomain) {
		ask_next(l, one, now_ns);
		return;
	}
	if (a.rcode == ns_r_noerror && a.count == 0 && ns_msg_getflag(m, ns_f_tc) && !one->is_tcp) {
		one->due_ns = now_ns + WAIT_NS;
		if (!connect_for(l, one))
			ask_next(l, one, now_ns);
		return;
	}
	end(l, one, &a, now_ns);
}

static void hear_datagram(struct lookups *l, struct lookup *one, uint64_t now_ns)
{
	uint8_t bytes[LOOKUPS_BYTES_MAX];
	ssize_t len = recv(one->fd, bytes, sizeof(bytes), 0);

	if (len >= 0)
		read_message(l, one, bytes, (size_t)len, now_ns);
	else if (errno != EAGAIN && errno != EINTR)
		ask_next(l, one, now_ns); /* nobody listens there */
}

/* As far as it goes. False: it is of no use any more. */
static bool hear_connection(struct lookups *l, struct lookup *one, uint64_t now_ns)
{
	ssize_t n;
	size_t whole;

	if (!one->is_sent) {
		n = send(one->fd, one->bytes, one->len, MSG_NOSIGNAL);
		one->is_sent = n == (ssize_t)one->len; /* so little goes at once, or not at all */
		one->len = 0;
		return one->is_sent;
	}
	n = recv(one->fd, one->bytes + one->len, sizeof(one->bytes) - one->len, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	one->len += (size_t)n;
	whole = one->len < 2 ? 0 : 2u + (size_t)(one->bytes[0] << 8 | one->bytes[1]);
	if (n == 0 || whole > sizeof(one->bytes))
		return false;
	if (whole == 0 || one->len < whole)
		return true;
	read_message(l, one, one->bytes + 2, whole - 2, now_ns);
	return false; /* if it is open still, that was no answer, and no other comes */
}

static void hear(struct lookups *l, struct lookup *one, uint64_t now_ns)
{
	uint8_t server = one->server;

	if (!one->is_tcp)
		hear_datagram(l, one, now_ns);
	else if (!hear_connection(l, one, now_ns) && one->used && one->server == server)
		ask_next(l, one, now_ns);
}

void lookups_hear(struct lookups *l, const struct pollfd *polls, uint64_t now_ns)
{
	for (unsigned i = 0; i < LOOKUPS_MAX; i++)
		if (l->all[i].used && polls[i].fd == l->all[i].fd && polls[i].revents)
			hear(l, &l->all[i], now_ns);
}

void lookups_fill(const struct lookups *l, struct pollfd *ret)
{
	for (unsigned i = 0; i < LOOKUPS_MAX; i++) {
		const struct lookup *one = &l->all[i];

		ret[i] = (struct pollfd){ .fd = one->used ? one->fd : -1,
			.events = one->is_tcp && !one->is_sent ? POLLOUT : POLLIN };
	}
}

uint64_t lookups_tick(struct lookups *l, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < LOOKUPS_MAX; i++) {
		struct lookup *one = &l->all[i];

		if (one->used && now_ns >= one->due_ns)
			ask_next(l, one, now_ns);
		if (one->used)
			next = clock_earlier(next, one->due_ns);
	}
	return next;
}

void lookups_close(struct lookups *l)
{
	for (unsigned i = 0; i < LOOKUPS_MAX; i++) {
		if (l->all[i].used)
			drop_fd(&l->all[i].fd);
		l->all[i].used = false;
	}
}
