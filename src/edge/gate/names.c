#include "edge/gate/names.h"

#include "api/network.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/own.h"

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define MESSAGE_MAX \
	1232u /* what is read of an answer: the size that DNS Flag Day 2020 settled on */
#define ADDRESSES_MAX 16u /* in an answer for the cell, when they have room there */
#define TTL_S         60u /* of an answer for the cell; its run is hardly longer */
#define WAIT_NS       (2 * NS_PER_S)
#define NEVER         UINT64_MAX

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

unsigned names_read_servers(const char *text, size_t len, struct network_address *ret)
{
	const char *end = text + len;
	unsigned n = 0;

	while (text < end && n < NAMES_SERVERS_MAX) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline : end;

		n += read_server(text, (size_t)(stop - text), &ret[n]);
		text = newline ? newline + 1 : end;
	}
	return n;
}

static int open_server(const struct network_address *a, struct fault *f)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(NAMES_PORT) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(NAMES_PORT) };
	bool ipv4 = network_is_ipv4(a);
	cleanup_fd int fd =
		socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return fault_set(f, -errno, "socket for a resolver");
	memcpy(&in.sin_addr, a->bytes + 12, 4);
	memcpy(&in6.sin6_addr, a->bytes, 16);
	r = ipv4 ? connect(fd, (const struct sockaddr *)&in, sizeof(in))
		 : connect(fd, (const struct sockaddr *)&in6, sizeof(in6));
	return r < 0 ? fault_set(f, -errno, "connect to a resolver") : take_fd(&fd);
}

void names_open(struct names *n, const struct network_address *servers, unsigned count)
{
	struct fault f = { 0 };

	CHECK(count <= NAMES_SERVERS_MAX);
	n->servers = 0;
	n->credit = NS_PER_S;
	n->credit_ns = clock_ns();
	memset(n->asked, 0, sizeof(n->asked));
	for (unsigned i = 0; i < count; i++) {
		int fd = open_server(&servers[i], &f);

		if (fd >= 0)
			n->fds[n->servers++] = fd;
		else /* as one of IPv6 without a route: the C library takes the next, too */
			log_warn("resolver", "why=%s", LQ(f.text));
	}
}

void names_close(struct names *n)
{
	while (n->servers > 0)
		drop_fd(&n->fds[--n->servers]);
}

/* ---- Answers for the cell ---- */

/* One of an answer's addresses: a name of 2 bytes, 10 more, and itself. */
#define ADDRESS4_BYTES (2u + NS_RRFIXEDSZ + NS_INADDRSZ)
#define ADDRESS6_BYTES (2u + NS_RRFIXEDSZ + NS_IN6ADDRSZ)

struct answer {
	int rcode;
	unsigned count;
	struct network_address addresses[ADDRESSES_MAX];
};

static size_t put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return 2;
}

/* What a message is but for its addresses. */
struct head {
	unsigned id, flags, type;
	const char *name;
};

/* Returns its length, 0 for a name that does not fit. */
static size_t put_head(uint8_t *ret, size_t size, const struct head *h)
{
	int len;

	memset(ret, 0, NS_HFIXEDSZ);
	put16(ret, h->id);
	put16(ret + 2, h->flags);
	put16(ret + 4, 1);
	len = ns_name_compress(h->name, ret + NS_HFIXEDSZ, size - NS_HFIXEDSZ - 4, NULL, NULL);
	if (len < 0)
		return 0;
	put16(ret + NS_HFIXEDSZ + len, h->type);
	put16(ret + NS_HFIXEDSZ + len + 2, ns_c_in);
	return NS_HFIXEDSZ + (size_t)len + 4;
}

static size_t put_address(uint8_t *at, unsigned type, const struct network_address *a)
{
	unsigned bytes = type == ns_t_a ? 4 : 16;
	size_t n = put16(at, 0xc000 | NS_HFIXEDSZ); /* the name of the question */

	n += put16(at + n, type);
	n += put16(at + n, ns_c_in);
	n += put16(at + n, 0);
	n += put16(at + n, TTL_S);
	n += put16(at + n, bytes);
	memcpy(at + n, a->bytes + 16 - bytes, bytes);
	return n + bytes;
}

/* Of no more bytes than any client of a resolver takes: RFC 1035, 4.2.1. Addresses beyond that are left
 * out; without a "truncated", which would only make the cell ask again by TCP. */
static void answer(struct names *n, const struct names_question *q, const struct answer *a)
{
	uint8_t message[NS_PACKETSZ], packet[PACKET_MAX];
	const struct head h = {
		.id = q->cell_id,
		.flags = 0x8180u | (unsigned)a->rcode, /* a response; recursion desired, and had */
		.type = q->type,
		.name = q->name,
	};
	size_t len = put_head(message, sizeof(message), &h);
	size_t each = q->type == ns_t_a ? ADDRESS4_BYTES : ADDRESS6_BYTES;
	unsigned count = 0;

	if (len == 0)
		return;
	for (; count < a->count && len + each <= sizeof(message); count++)
		len += put_address(message + len, q->type, &a->addresses[count]);
	put16(message + 6, count);
	n->send(n->ctx, packet, packet_datagram(&q->from, message, len, packet));
}

static void refuse(struct names *n, const struct names_question *q, int rcode)
{
	const struct answer a = { .rcode = rcode };

	answer(n, q, &a);
}

/* ---- Questions of the cell ---- */

/* The name and type of a plain question. False: it is none, or so odd that its name cannot be said. */
static bool read_question(const uint8_t *bytes, size_t len, struct names_question *ret)
{
	char text[NS_MAXDNAME];
	size_t at, text_len;
	ns_msg m;
	ns_rr rr;

	if (len > NS_PACKETSZ || ns_initparse(bytes, (int)len, &m) < 0 ||
		ns_msg_getflag(m, ns_f_qr) || ns_msg_getflag(m, ns_f_opcode) != ns_o_query ||
		ns_msg_count(m, ns_s_qd) != 1 || ns_msg_count(m, ns_s_an) != 0 ||
		ns_msg_count(m, ns_s_ns) != 0 || ns_parserr(&m, ns_s_qd, 0, &rr) < 0)
		return false;
	(void)snprintf(text, sizeof(text), "%s", ns_rr_name(rr));
	text_len = strlen(text);
	if (network_name_fault(text, text_len, &at))
		return false;
	for (size_t i = 0; i < text_len; i++)
		ret->name[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20 : text[i]);
	ret->cell_id = (uint16_t)ns_msg_id(m);
	ret->type = (uint16_t)ns_rr_type(rr);
	return ns_rr_class(rr) == ns_c_in;
}

/* One more may go out: a bucket that a second fills. */
static bool take_credit(struct names *n, uint64_t now_ns)
{
	const uint64_t price = NS_PER_S / NAMES_PER_S;

	n->credit += now_ns - n->credit_ns;
	n->credit = n->credit < NS_PER_S ? n->credit : NS_PER_S;
	n->credit_ns = now_ns;
	if (n->credit < price)
		return false;
	n->credit -= price;
	return true;
}

static struct names_question *find_free(struct names *n)
{
	for (unsigned i = 0; i < NAMES_ASKED_MAX; i++)
		if (!n->asked[i].used)
			return &n->asked[i];
	return NULL;
}

/* In words of our own, with a number that cannot be guessed. */
static void send_question(struct names *n, struct names_question *q, uint64_t now_ns)
{
	struct head h = {
		.flags = 0x0100, .type = q->type, .name = q->name
	}; /* recursion desired */
	uint8_t message[NS_PACKETSZ];
	size_t len;

	q->due_ns = now_ns + WAIT_NS;
	if (getrandom(&q->id, sizeof(q->id), 0) != sizeof(q->id))
		return; /* then it goes unanswered */
	h.id = q->id;
	len = put_head(message, sizeof(message), &h);
	if (len > 0) /* what is lost is asked again */
		(void)send(n->fds[q->server], message, len, MSG_NOSIGNAL);
}

void names_ask(struct names *n, const struct packet *p, uint64_t now_ns)
{
	struct names_question q = { .used = true, .from = *p }, *free_one;
	enum network_verdict v;

	if (!read_question(p->payload, p->payload_len, &q)) {
		flows_refuse(n->flows, p, "", NETWORK_QUESTION, now_ns);
		return;
	}
	v = rules_judge_name(n->rules, q.name);
	if (v != NETWORK_ALLOWED) {
		flows_look_up(n->flows, q.name, v, now_ns);
		refuse(n, &q, ns_r_nxdomain);
		return;
	}
	if (q.type != ns_t_a && q.type != ns_t_aaaa) {
		flows_look_up(n->flows, q.name, NETWORK_QUESTION, now_ns);
		refuse(n, &q, ns_r_noerror); /* the name is there, and has nothing of that kind */
		return;
	}
	free_one = n->servers > 0 ? find_free(n) : NULL;
	if (!free_one || !take_credit(n, now_ns)) {
		flows_look_up(n->flows, q.name,
			n->servers > 0 ? NETWORK_QUESTIONS : NETWORK_UNANSWERED, now_ns);
		refuse(n, &q, ns_r_servfail);
		return;
	}
	*free_one = q;
	flows_look_up(n->flows, q.name, NETWORK_ALLOWED, now_ns);
	if (n->note)
		n->note(n->ctx);
	send_question(n, free_one, now_ns);
}

/* ---- Answers of the resolvers ---- */

static struct names_question *find_asked(struct names *n, unsigned server, const ns_msg *m)
{
	ns_rr rr;

	if (!ns_msg_getflag(*m, ns_f_qr) || ns_msg_count(*m, ns_s_qd) != 1)
		return NULL;
	for (unsigned i = 0; i < NAMES_ASKED_MAX; i++) {
		struct names_question *q = &n->asked[i];
		ns_msg copy = *m;

		if (q->used && q->server == server && q->id == ns_msg_id(*m) &&
			ns_parserr(&copy, ns_s_qd, 0, &rr) == 0 && ns_rr_type(rr) == q->type &&
			ns_rr_class(rr) == ns_c_in && strcasecmp(ns_rr_name(rr), q->name) == 0)
			return q;
	}
	return NULL;
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

/* The addresses of the answer that a run may know of, as those of the name that was asked for. */
static void collect(struct names *n, const struct names_question *q, ns_msg *m, struct answer *ret)
{
	struct network_address a;
	ns_rr rr;

	for (int i = 0; i < ns_msg_count(*m, ns_s_an) && ret->count < ADDRESSES_MAX; i++) {
		if (ns_parserr(m, ns_s_an, i, &rr) < 0)
			return;
		if (!address_of(&rr, q->type, &a) ||
			rules_judge_answer(n->rules, &a) != NETWORK_ALLOWED)
			continue;
		ret->addresses[ret->count++] = a;
		rules_pin(n->rules, q->name, &a);
	}
}

void names_hear(struct names *n, unsigned server)
{
	uint8_t bytes[MESSAGE_MAX];
	ssize_t len = recv(n->fds[server], bytes, sizeof(bytes), 0);
	struct answer a = { 0 };
	struct names_question *q;
	ns_msg m;

	if (len < 0 || ns_initparse(bytes, (int)len, &m) < 0)
		return; /* nobody listens there, or it is no message: asked again, or elsewhere */
	q = find_asked(n, server, &m);
	if (!q)
		return;
	a.rcode = (int)ns_msg_getflag(m, ns_f_rcode);
	if (a.rcode != ns_r_noerror && a.rcode != ns_r_nxdomain)
		a.rcode = ns_r_servfail;
	if (a.rcode == ns_r_noerror)
		collect(n, q, &m, &a);
	answer(n, q, &a);
	q->used = false;
}

uint64_t names_tick(struct names *n, uint64_t now_ns)
{
	uint64_t next = NEVER;

	for (unsigned i = 0; i < NAMES_ASKED_MAX; i++) {
		struct names_question *q = &n->asked[i];

		if (q->used && now_ns >= q->due_ns && ++q->server < n->servers)
			send_question(n, q, now_ns);
		if (q->used && now_ns >= q->due_ns) {
			flows_look_up(n->flows, q->name, NETWORK_UNANSWERED, now_ns);
			refuse(n, q, ns_r_servfail);
			q->used = false;
		}
		if (q->used)
			next = clock_earlier(next, q->due_ns);
	}
	return next;
}
