#include "edge/gate/stack_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/own.h"
#include "wire/interface.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct network_address cell4 = { { [10] = 0xff, [11] = 0xff, INTERFACE_CELL4 } };
static const struct network_address cell6 = { { INTERFACE_CELL6 } };
static const struct network_address resolver4 = {
	{ [10] = 0xff, [11] = 0xff, INTERFACE_RESOLVER4 }
};
static const struct network_address resolver6 = { { INTERFACE_RESOLVER6 } };

/* ---- Towards the cell ---- */

void stack_note_error(struct stack *s, int error)
{
	switch (error) {
	case EAGAIN: /* nothing to read; or a full queue, which loses a packet, as any router's does */
	case ENOBUFS: /* ... */
	case ENOMEM:  /* ... */
	case EINTR:
	case EIO: /* it is down: its namespace is being taken apart */
		break;
	case EBADFD: /* it is no more */
		s->gone = true;
		break;
	default:
		s->broken = error;
		break;
	}
}

/* What the cell learns stands in the record first: a program that has its answer may end at once, and
 * this process with it. */
static void give(struct stack *s, const uint8_t *packet, size_t len)
{
	flows_publish(&s->flows, s->shared);
	if (write(s->tun_fd, packet, len) < 0)
		stack_note_error(s, errno);
}

/* Nothing passes when max_bytes are used up, and before that nothing that would go beyond them. */
static bool is_too_much(const struct stack *s, size_t payload)
{
	const struct network_record *r = &s->flows.record;
	uint64_t used = r->bytes_in + r->bytes_out;

	return used >= s->max_bytes || payload > s->max_bytes - used;
}

/* A packet of our own, on a connection. */
static void give_reply(void *ctx, const uint8_t *packet, size_t len)
{
	give(ctx, packet, len);
}

/* A packet with an answer to a question of the cell's. */
static void give_answer(void *ctx, const uint8_t *packet, size_t len)
{
	struct stack *s = ctx;
	struct packet p;

	CHECK(!packet_read(packet, len, &p));
	if (is_too_much(s, p.payload_len))
		return;
	flows_count(&s->flows, p.payload_len, false);
	pace_charge(&s->pace, len);
	give(s, packet, len);
}

/* What a question tells the world stands in the record first, too. */
static void note(void *ctx)
{
	struct stack *s = ctx;

	flows_publish(&s->flows, s->shared);
}

/* The stack's own words for what its sockets say: what they are about is over. */
static void take_error(struct stack *s, const struct packet *error)
{
	struct packet about;
	struct flow *flow;

	if (!packet_quoted(error, &about))
		return;
	flow = flows_find(&s->flows, &about, true);
	if (!flow)
		return;
	if (about.kind == PACKET_ECHO)
		pings_end(&s->pings, &about.target, about.target_port, about.sequence);
	flows_end(&s->flows, flow);
	give(s, error->bytes, error->len);
}

static void take(void *ctx, const uint8_t *bytes, size_t len)
{
	struct stack *s = ctx;
	struct flow *flow;
	struct packet p;

	/* Advertisements, and what belongs to nothing that the cell has begun. */
	if (packet_read(bytes, len, &p) || p.kind == PACKET_NOISE)
		return;
	if (p.kind == PACKET_ERROR) {
		take_error(s, &p);
		return;
	}
	flow = flows_find(&s->flows, &p, false);
	if (!flow || (p.kind == PACKET_ECHO && !p.is_reply))
		return;
	if (p.kind == PACKET_ECHO) {
		pings_end(&s->pings, &p.source, p.source_port, p.sequence);
		flows_end(&s->flows, flow);
	}
	if (is_too_much(s, p.payload_len))
		return;
	hold_see(&s->holds, flow, &p);
	flows_pass(&s->flows, flow, &p, false, clock_ns());
	pace_charge(&s->pace, p.len);
	give(s, p.bytes, p.len);
}

/* ---- From the cell ---- */

static void refuse(
	struct stack *s, const struct packet *p, const char *name, enum network_verdict why)
{
	uint8_t packet[PACKET_MAX];

	flows_refuse(&s->flows, p, name, why, clock_ns());
	give(s, packet, packet_refusal(p, packet));
}

/* The stack says nothing when it has none, or something else. */
static bool is_socket_left(void)
{
	cleanup_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd >= 0;
}

/* What forbids it when the rules do not. */
static enum network_verdict judge_room(const struct stack *s, const struct packet *p)
{
	if (p->kind == PACKET_ECHO)
		return s->carries_echo && p->ipv4 ? NETWORK_ALLOWED : NETWORK_NO_ECHO;
	if (s->flows.open >= s->max_connections)
		return NETWORK_CONNECTIONS;
	return is_socket_left() ? NETWORK_ALLOWED : NETWORK_SOCKETS;
}

/* The connection that a packet begins. NULL: it may not, or begins none. */
static struct flow *begin(struct stack *s, const struct packet *p)
{
	uint16_t port = p->kind == PACKET_ECHO ? 0 : p->target_port;
	const char *name;
	enum network_verdict v = rules_judge(&s->rules, &p->target, port, &name);
	struct flow *flow = NULL;

	if (p->kind == PACKET_TCP &&
		(p->flags & (PACKET_TCP_SYN | PACKET_TCP_ACK | PACKET_TCP_RST)) != PACKET_TCP_SYN)
		return NULL; /* late, of one that is forgotten */
	if (v == NETWORK_ALLOWED)
		v = judge_room(s, p);
	if (v == NETWORK_ALLOWED)
		flow = flows_begin(&s->flows, p, name, clock_ns());
	if (flow)
		hold_begin(&s->holds, flow, p);
	else
		refuse(s, p, name, v == NETWORK_ALLOWED ? NETWORK_CONNECTIONS : v);
	return flow;
}

/* What was over has a packet again: the stack makes a socket of it as if it were new. */
static bool revive(struct stack *s, struct flow *flow, const struct packet *p)
{
	enum network_verdict v;

	if (!flow->over || p->kind == PACKET_TCP)
		return true;
	v = judge_room(s, p);
	if (v == NETWORK_ALLOWED)
		flows_revive(&s->flows, flow);
	else
		refuse(s, p, "", v);
	return v == NETWORK_ALLOWED;
}

/* Each request needs a socket of its own. */
static bool may_ping(struct stack *s, const struct packet *p)
{
	enum network_verdict v = NETWORK_ALLOWED;

	if (p->kind != PACKET_ECHO)
		return true;
	if (!is_socket_left())
		v = NETWORK_SOCKETS;
	else if (!pings_begin(&s->pings, p, clock_ns()))
		v = NETWORK_ECHOES;
	if (v != NETWORK_ALLOWED)
		refuse(s, p, "", v);
	return v == NETWORK_ALLOWED;
}

/* On to the stack. */
static void forward(void *ctx, struct flow *flow, const struct packet *p)
{
	struct stack *s = ctx;

	/* What was held has waited while others passed. */
	if (p->payload_len > 0 && is_too_much(s, p->payload_len)) {
		refuse(s, p, "", NETWORK_BYTES);
		return;
	}
	flows_pass(&s->flows, flow, p, true, clock_ns());
	pace_charge(&s->pace, p->len);
	flows_publish(&s->flows, s->shared); /* before it is on its way */
	tcpip_send(&s->tcpip, p);
}

static void pass(struct stack *s, const struct packet *p)
{
	struct flow *flow = flows_find(&s->flows, p, true);

	/* A port of the cell's that serves anew. */
	if (flow && flow->over && (p->flags & PACKET_TCP_SYN)) {
		flows_forget(&s->flows, flow);
		flow = NULL;
	}
	if (is_too_much(s, p->payload_len)) {
		refuse(s, p, "", NETWORK_BYTES);
		return;
	}
	if (speech_is_quic(&s->rules, p)) {
		refuse(s, p, "", NETWORK_QUIC);
		return;
	}
	if (!flow)
		flow = begin(s, p);
	if (!flow || !revive(s, flow, p) || !may_ping(s, p))
		return;
	if (!hold_take(&s->holds, flow, p))
		forward(s, flow, p);
}

static bool is_one_of(const struct network_address *a, const struct network_address *four,
	const struct network_address *six)
{
	return network_same_bits(a, four, 128) || network_same_bits(a, six, 128);
}

static void ask(struct stack *s, const struct packet *p)
{
	if (is_too_much(s, p->payload_len)) {
		refuse(s, p, "", NETWORK_BYTES);
		return;
	}
	flows_count(&s->flows, p->payload_len, true);
	pace_charge(&s->pace, p->len);
	names_ask(&s->names, p, clock_ns());
}

/* Of what cannot be read so much may be known that the record says where to, or that there is an
 * answer. */
static void refuse_unreadable(struct stack *s, const struct packet *p)
{
	bool is_cells = p->bytes && is_one_of(&p->source, &cell4, &cell6);
	bool is_mapped = !p->ipv4 && network_is_ipv4(&p->target);
	enum network_verdict v = is_cells && is_mapped ? NETWORK_TRANSLATED : NETWORK_UNREADABLE;

	if (is_cells && p->len > 0)
		refuse(s, p, "", v);
	else
		flows_refuse(&s->flows, is_cells ? p : NULL, "", v, clock_ns());
}

void stack_judge(struct stack *s, const uint8_t *bytes, size_t len)
{
	struct packet p;

	if (packet_read(bytes, len, &p) || (p.kind == PACKET_ECHO && p.is_reply)) {
		refuse_unreadable(s, &p);
		return;
	}
	if (p.kind == PACKET_NOISE || p.kind == PACKET_ERROR)
		return; /* nobody needs to know */
	if (!is_one_of(&p.source, &cell4, &cell6)) {
		flows_refuse(&s->flows, &p, "", NETWORK_SOURCE, clock_ns());
		return;
	}
	if (p.kind == PACKET_UDP && p.target_port == NAMES_PORT &&
		is_one_of(&p.target, &resolver4, &resolver6))
		ask(s, &p);
	else
		pass(s, &p);
}

/* ---- Setting up ---- */

static uint64_t lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The stack, when it gets no socket for pings, sends datagrams to the target's port 7 instead, which no
 * rule was asked about. Whether there are any is in net.ipv4.ping_group_range. */
static bool has_pings(void)
{
	cleanup_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMP);

	return fd >= 0;
}

struct stack *stack_open(const struct stack_plan *plan, struct fault *f)
{
	static struct stack s;
	const struct network_policy *ceiling = plan->ceiling, *asked = plan->asked;
	uint64_t now_ns = clock_ns();

	CHECK(plan->own_count <= RULES_OWN_MAX);
	s.tun_fd = plan->tun_fd;
	s.channel_fd = plan->channel_fd;
	s.shared = plan->shared;
	s.rules.ceiling = *ceiling;
	s.rules.asked = *asked;
	s.max_connections = lower(ceiling->max_connections, asked->max_connections);
	s.max_bytes = lower(ceiling->max_bytes, asked->max_bytes);
	s.rules.own_count = plan->own_count;
	memcpy(s.rules.own, plan->own, plan->own_count * sizeof(s.rules.own[0]));
	s.carries_echo = has_pings();
	s.swept_ns = now_ns;
	pace_init(&s.pace, lower(ceiling->max_rate, asked->max_rate), now_ns);
	flows_init(&s.flows, now_ns);
	s.names = (struct names){
		.rules = &s.rules, .flows = &s.flows, .send = give_answer, .note = note, .ctx = &s
	};
	s.holds.rules = &s.rules;
	s.holds.flows = &s.flows;
	s.holds.pass = forward;
	s.holds.give = give_reply;
	s.holds.ctx = &s;
	names_open(&s.names, plan->servers, plan->server_count, now_ns);
	if (tcpip_open(&s.tcpip, take, &s, f) < 0)
		return NULL;
	flows_publish(&s.flows, s.shared);
	return &s;
}
