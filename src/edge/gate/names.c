#include "edge/gate/names.h"

#include "base/check.h"
#include "base/clock.h"
#include "edge/gate/message.h"

#include <arpa/nameser.h>
#include <stdio.h>
#include <string.h>

#define ADDRESSES_MAX 16u /* in an answer for the cell, when they have room there */

/* ---- Answers for the cell ---- */

struct answer {
	int rcode;
	unsigned count;
	struct network_address addresses[ADDRESSES_MAX];
};

/* Addresses that have no room are left out; without a "truncated", which would only make the cell ask
 * again by TCP. */
static void answer(struct names *n, const struct names_question *q, const struct answer *a)
{
	uint8_t message[MESSAGE_MAX], packet[PACKET_MAX];
	const struct message_head h = {
		.id = q->cell_id,
		.flags = 0x8180u | (unsigned)a->rcode, /* a response; recursion desired, and had */
		.type = q->type,
		.name = q->name,
	};
	size_t len = message_begin(message, &h);

	if (len == 0)
		return;
	for (unsigned i = 0; i < a->count; i++)
		len = message_add(message, len, q->type, i, &a->addresses[i]);
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

/* What is asked for already is answered with it, and costs nothing. False: it may not go out. */
static bool look_up(struct names *n, struct names_question *q, uint64_t now_ns)
{
	struct names_question *own = find_free(n);
	bool is_open;
	int lookup = lookups_find(&n->lookups, q->name, q->type, &is_open);

	if (!own || lookup < 0 || (!is_open && !take_credit(n, now_ns)))
		return false;
	q->used = true;
	q->lookup = (uint8_t)lookup;
	*own = *q;
	flows_look_up(n->flows, q->name, NETWORK_ALLOWED, now_ns);
	if (n->note)
		n->note(n->ctx);
	if (!is_open)
		lookups_begin(&n->lookups, (unsigned)lookup, q->name, q->type, now_ns);
	return true;
}

void names_ask(struct names *n, const struct packet *p, uint64_t now_ns)
{
	struct names_question q = { .from = *p };
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
	if (n->lookups.server_count > 0 && look_up(n, &q, now_ns))
		return;
	flows_look_up(n->flows, q.name,
		n->lookups.server_count > 0 ? NETWORK_QUESTIONS : NETWORK_UNANSWERED, now_ns);
	refuse(n, &q, ns_r_servfail);
}

/* ---- Answers of the resolvers ---- */

/* The addresses that a run may know of, as those of the name that was asked for. */
static void admit(struct names *n, const struct names_question *q,
	const struct lookups_answer *from, struct answer *ret)
{
	for (unsigned i = 0; i < from->count && ret->count < ADDRESSES_MAX; i++) {
		const struct network_address *a = &from->addresses[i];

		if (rules_judge_answer(n->rules, a) != NETWORK_ALLOWED)
			continue;
		ret->addresses[ret->count++] = *a;
		rules_pin(n->rules, q->name, a);
	}
}

static void finish(void *ctx, unsigned number, const struct lookups_answer *found, uint64_t now_ns)
{
	struct names *n = ctx;

	for (unsigned i = 0; i < NAMES_ASKED_MAX; i++) {
		struct names_question *q = &n->asked[i];
		struct answer a = { .rcode = found->rcode };

		if (!q->used || q->lookup != number)
			continue;
		if (found->is_nobodys)
			flows_look_up(n->flows, q->name, NETWORK_UNANSWERED, now_ns);
		admit(n, q, found, &a);
		q->used = false;
		answer(n, q, &a);
	}
}

void names_open(
	struct names *n, const struct network_address *servers, unsigned count, uint64_t now_ns)
{
	CHECK(count <= LOOKUPS_SERVERS_MAX);
	n->credit = NS_PER_S;
	n->credit_ns = now_ns;
	memset(n->asked, 0, sizeof(n->asked));
	n->lookups = (struct lookups){ .server_count = count, .done = finish, .ctx = n };
	memcpy(n->lookups.servers, servers, count * sizeof(servers[0]));
}

void names_close(struct names *n)
{
	lookups_close(&n->lookups);
}

void names_fill(const struct names *n, struct pollfd *ret)
{
	lookups_fill(&n->lookups, ret);
}

void names_hear(struct names *n, const struct pollfd *polls, uint64_t now_ns)
{
	lookups_hear(&n->lookups, polls, now_ns);
}

uint64_t names_tick(struct names *n, uint64_t now_ns)
{
	return lookups_tick(&n->lookups, now_ns);
}
