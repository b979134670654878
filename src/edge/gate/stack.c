#include "edge/gate/stack.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "edge/gate/flows.h"
#include "edge/gate/names.h"
#include "edge/gate/packet.h"
#include "edge/gate/rules.h"
#include "wire/interface.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <net/ethernet.h>
#include <netinet/icmp6.h>
#include <poll.h>
#include <slirp/libslirp.h>
#include <string.h>
#include <unistd.h>

#define ETHER_HEAD   14u
#define FRAME_MAX    (ETHER_HEAD + PACKET_MAX)
#define PACKETS_TURN 64u /* that are taken from the cell before anybody else is looked at */
#define SWEEP_NS     (5 * NS_PER_S)
#define POLLS_MAX    (FLOWS_MAX + NAMES_SERVERS_MAX + 2)

enum {
	POLL_TUN,
	POLL_CHANNEL,
	POLL_NAMES,
	POLL_STACK = POLL_NAMES + NAMES_SERVERS_MAX
};

struct timer {
	SlirpTimerId id;
	void *ctx;
	uint64_t due_ns; /* UINT64_MAX: not armed */
};

struct stack {
	Slirp *slirp;
	struct rules rules;
	struct flows flows;
	struct names names;
	struct network_record *shared;
	int tun_fd, channel_fd;
	uint64_t max_connections, max_bytes,
		max_rate; /* the lower of the operator's and the request's */
	bool gone;        /* the cell's interface is */
	uint64_t budget;  /* bytes that may pass now, in one second's max_rate at most */
	uint64_t budget_ns;
	uint64_t debt; /* bytes that have passed beyond it */
	uint64_t swept_ns;
	struct timer timer; /* the stack has one, for router advertisements */
	struct pollfd polls[POLLS_MAX];
	unsigned poll_count;
};

static const struct network_address cell4 = { { [10] = 0xff, [11] = 0xff, INTERFACE_CELL4 } };
static const struct network_address cell6 = { { INTERFACE_CELL6 } };
static const struct network_address resolver4 = {
	{ [10] = 0xff, [11] = 0xff, INTERFACE_RESOLVER4 }
};
static const struct network_address resolver6 = { { INTERFACE_RESOLVER6 } };

/* The stack wants Ethernet, which the cell does not have: both ends of it are made up here. Locally
 * administered addresses; the stack's own begins 52:55. */
static const uint8_t cell_ether[6] = { 0x52, 0x47, 0x42, 0x00, 0x00, 0x02 };
static const uint8_t stack_ether[6] = { 0x52, 0x55, 0x00, 0x00, 0x00, 0x01 };

/* ---- Towards the cell ---- */

/* What the cell learns stands in the record first: a program that has its answer may end at once, and
 * this process with it. */
static void give(void *ctx, const uint8_t *packet, size_t len)
{
	struct stack *s = ctx;
	ssize_t n;

	flows_publish(&s->flows, s->shared);
	n = write(s->tun_fd, packet, len);

	/* A full queue loses a packet, as any router's does. */
	if (n < 0 && errno != EAGAIN && errno != ENOBUFS && errno != EINTR)
		s->gone = true;
}

/* What a question tells the world stands in the record first, too. */
static void note(void *ctx)
{
	struct stack *s = ctx;

	flows_publish(&s->flows, s->shared);
}

/* Bytes have passed; what was allowed ahead is used up first. */
static void charge(struct stack *s, size_t bytes)
{
	uint64_t paid = bytes < s->budget ? bytes : s->budget;

	s->budget -= paid;
	s->debt += bytes - paid;
}

static bool is_spent(const struct stack *s)
{
	const struct network_record *r = &s->flows.record;

	return r->bytes_in + r->bytes_out >= s->max_bytes;
}

static ssize_t take_frame(const void *frame, size_t len, void *ctx)
{
	struct stack *s = ctx;
	const uint8_t *bytes = (const uint8_t *)frame + ETHER_HEAD;
	struct flow *flow;
	struct packet p;

	/* ARP, advertisements, and what belongs to nothing that the cell has begun. */
	if (len <= ETHER_HEAD || packet_read(bytes, len - ETHER_HEAD, &p) || p.kind == PACKET_NOISE)
		return (ssize_t)len;
	if (p.kind == PACKET_ERROR) { /* the stack's own words for what its sockets say */
		give(s, p.bytes, p.len);
		return (ssize_t)len;
	}
	flow = flows_find(&s->flows, &p, false);
	if (flow && !is_spent(s)) {
		flows_pass(&s->flows, flow, &p, false, clock_ns());
		charge(s, p.len);
		give(s, p.bytes, p.len);
	}
	return (ssize_t)len;
}

/* ---- From the cell ---- */

static void refuse(
	struct stack *s, const struct packet *p, const char *name, enum network_verdict why)
{
	uint8_t packet[PACKET_MAX];

	flows_refuse(&s->flows, p, name, why, clock_ns());
	give(s, packet, packet_refusal(p, packet));
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
	if (v == NETWORK_ALLOWED && s->flows.open >= s->max_connections)
		v = NETWORK_CONNECTIONS;
	if (v == NETWORK_ALLOWED)
		flow = flows_begin(&s->flows, p, name, clock_ns());
	if (!flow)
		refuse(s, p, name, v == NETWORK_ALLOWED ? NETWORK_CONNECTIONS : v);
	return flow;
}

static void put_ether(const struct packet *p, uint8_t *frame)
{
	uint16_t type = htons(p->ipv4 ? ETHERTYPE_IP : ETHERTYPE_IPV6);

	memcpy(frame, stack_ether, 6);
	memcpy(frame + 6, cell_ether, 6);
	memcpy(frame + 12, &type, 2);
}

static void pass(struct stack *s, const struct packet *p)
{
	uint8_t frame[FRAME_MAX];
	struct flow *flow = flows_find(&s->flows, p, true);

	/* A port of the cell's that serves anew. */
	if (flow && flow->over && (p->flags & PACKET_TCP_SYN)) {
		flows_forget(&s->flows, flow);
		flow = NULL;
	}
	if (is_spent(s)) {
		refuse(s, p, "", NETWORK_BYTES);
		return;
	}
	if (!flow)
		flow = begin(s, p);
	if (!flow)
		return;
	flows_pass(&s->flows, flow, p, true, clock_ns());
	charge(s, p->len);
	flows_publish(&s->flows, s->shared); /* before it is on its way */
	put_ether(p, frame);
	memcpy(frame + ETHER_HEAD, p->bytes, p->len);
	slirp_input(s->slirp, frame, (int)(ETHER_HEAD + p->len));
}

static bool is_one_of(const struct network_address *a, const struct network_address *four,
	const struct network_address *six)
{
	return network_same_bits(a, four, 128) || network_same_bits(a, six, 128);
}

static void judge(struct stack *s, const uint8_t *bytes, size_t len)
{
	struct packet p;

	if (packet_read(bytes, len, &p)) {
		flows_refuse(&s->flows, NULL, "", NETWORK_UNREADABLE, clock_ns());
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
		names_ask(&s->names, &p, clock_ns());
	else
		pass(s, &p);
}

static void hear_cell(struct stack *s)
{
	uint8_t bytes[PACKET_MAX + 1]; /* one that is too long shows as such */

	for (unsigned i = 0; i < PACKETS_TURN && s->debt == 0; i++) {
		ssize_t n = read(s->tun_fd, bytes, sizeof(bytes));

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			s->gone = true;
			return;
		}
		judge(s, bytes, (size_t)n);
	}
}

/* ---- What the stack asks for ---- */

static void say_guest_error(const char *text, void *ctx)
{
	(void)ctx;
	log_debug("stack", "why=%s", LQ(text));
}

static int64_t tell_time(void *ctx)
{
	(void)ctx;
	return (int64_t)clock_ns();
}

static void *make_timer(SlirpTimerId id, void *timer_ctx, void *ctx)
{
	struct stack *s = ctx;

	s->timer = (struct timer){ id, timer_ctx, UINT64_MAX };
	return &s->timer;
}

static void free_timer(void *timer, void *ctx)
{
	(void)ctx;
	((struct timer *)timer)->due_ns = UINT64_MAX;
}

static void set_timer(void *timer, int64_t due_ms, void *ctx)
{
	(void)ctx;
	((struct timer *)timer)->due_ns = (uint64_t)due_ms * NS_PER_MS;
}

static void do_nothing_with(int fd, void *ctx)
{
	(void)fd;
	(void)ctx;
}

static void do_nothing(void *ctx)
{
	(void)ctx;
}

static const SlirpCb callbacks = {
	.send_packet = take_frame,
	.guest_error = say_guest_error,
	.clock_get_ns = tell_time,
	.timer_new_opaque = make_timer,
	.timer_free = free_timer,
	.timer_mod = set_timer,
	.register_poll_fd = do_nothing_with,
	.unregister_poll_fd = do_nothing_with,
	.notify = do_nothing,
};

/* The stack looks for the cell by ARP and by its neighbour discovery before it sends anything there. It
 * believes what it is told unasked, once. */
static void introduce_cell(struct stack *s)
{
	static const uint8_t arp[] = { 0, 1, 8, 0, 6, 4, 0, 1 }; /* Ethernet, IPv4, a request */
	static const uint8_t gate4[] = { INTERFACE_GATE4 };
	static const uint8_t gate6[] = { INTERFACE_GATE6 };
	uint8_t frame[ETHER_HEAD + 40 + 32] = { 0 }, *at = frame + ETHER_HEAD;

	memset(frame, 0xff, 6);
	memcpy(frame + 6, cell_ether, 6);
	frame[12] = ETHERTYPE_ARP >> 8;
	frame[13] = ETHERTYPE_ARP & 0xff;
	memcpy(at, arp, sizeof(arp));
	memcpy(at + 8, cell_ether, 6);
	memcpy(at + 14, cell4.bytes + 12, 4);
	memcpy(at + 24, gate4, 4);
	slirp_input(s->slirp, frame, ETHER_HEAD + 28);

	memset(at, 0, 40 + 32);
	memcpy(frame, stack_ether, 6);
	frame[12] = ETHERTYPE_IPV6 >> 8;
	frame[13] = ETHERTYPE_IPV6 & 0xff;
	at[0] = 0x60;
	at[5] = 32;
	at[6] = IPPROTO_ICMPV6;
	at[7] = 255;
	memcpy(at + 8, cell6.bytes, 16);
	memcpy(at + 24, gate6, 16);
	at[40] = ND_NEIGHBOR_ADVERT;
	at[44] = 0x20; /* override */
	memcpy(at + 48, cell6.bytes, 16);
	at[64] = ND_OPT_TARGET_LINKADDR;
	at[65] = 1;
	memcpy(at + 66, cell_ether, 6);
	packet_seal_icmp6(at);
	slirp_input(s->slirp, frame, ETHER_HEAD + 40 + 32);
}

static SlirpConfig config(void)
{
	static const uint8_t net4[] = { INTERFACE_NET4 }, gate4[] = { INTERFACE_GATE4 },
			     server4[] = { INTERFACE_RESOLVER4 };
	SlirpConfig c = {
		.version = 4,
		.in_enabled = true,
		.in6_enabled = true,
		.vnetmask.s_addr = htonl(~(uint32_t)0 << (32 - INTERFACE_BITS4)),
		.vprefix_addr6 = { { { INTERFACE_NET6 } } },
		.vprefix_len = INTERFACE_BITS6,
		.vhost6 = { { { INTERFACE_GATE6 } } },
		.vnameserver6 = { { { INTERFACE_RESOLVER6 } } },
		.if_mtu = INTERFACE_MTU,
		.if_mru = INTERFACE_MTU,
		.disable_host_loopback = true,
		.disable_dns = true,
		.disable_dhcp = true,
	};

	memcpy(&c.vnetwork, net4, 4);
	memcpy(&c.vhost, gate4, 4);
	memcpy(&c.vnameserver, server4, 4);
	return c;
}

static uint64_t lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

struct stack *stack_open(const struct stack_plan *plan, struct fault *f)
{
	static struct stack s;
	SlirpConfig c = config();

	CHECK(plan->own_count <= RULES_OWN_MAX);
	s.tun_fd = plan->tun_fd;
	s.channel_fd = plan->channel_fd;
	s.shared = plan->shared;
	s.timer.due_ns = UINT64_MAX;
	s.rules.ceiling = *plan->ceiling;
	s.rules.asked = *plan->asked;
	s.max_connections = lower(plan->ceiling->max_connections, plan->asked->max_connections);
	s.max_bytes = lower(plan->ceiling->max_bytes, plan->asked->max_bytes);
	s.max_rate = lower(plan->ceiling->max_rate, plan->asked->max_rate);
	s.rules.own_count = plan->own_count;
	memcpy(s.rules.own, plan->own, plan->own_count * sizeof(s.rules.own[0]));
	s.budget_ns = s.swept_ns = clock_ns();
	flows_init(&s.flows, s.budget_ns);
	s.names = (struct names){
		.rules = &s.rules, .flows = &s.flows, .send = give, .note = note, .ctx = &s
	};
	names_open(&s.names, plan->servers, plan->server_count);
	s.slirp = slirp_new(&c, &callbacks, &s);
	if (!s.slirp) {
		fault_say(f, -ENOMEM, "the TCP/IP stack does not start");
		return NULL;
	}
	introduce_cell(&s);
	flows_publish(&s.flows, s.shared);
	return &s;
}

/* ---- Waiting ---- */

static int add_poll(int fd, int events, void *ctx)
{
	struct stack *s = ctx;
	short wanted = 0;

	if (s->poll_count == POLLS_MAX)
		return -1;
	wanted |= events & SLIRP_POLL_IN ? POLLIN : 0;
	wanted |= events & SLIRP_POLL_OUT ? POLLOUT : 0;
	wanted |= events & SLIRP_POLL_PRI ? POLLPRI : 0;
	s->polls[s->poll_count] = (struct pollfd){ .fd = fd, .events = wanted };
	return (int)s->poll_count++;
}

static int get_events(int index, void *ctx)
{
	const struct stack *s = ctx;
	short seen = index < 0 ? 0 : s->polls[index].revents;
	int events = 0;

	events |= seen & POLLIN ? SLIRP_POLL_IN : 0;
	events |= seen & POLLOUT ? SLIRP_POLL_OUT : 0;
	events |= seen & POLLPRI ? SLIRP_POLL_PRI : 0;
	events |= seen & POLLERR ? SLIRP_POLL_ERR : 0;
	events |= seen & POLLHUP ? SLIRP_POLL_HUP : 0;
	return events;
}

/* What max_rate has allowed since the last time. Returns when the debt is paid, or never. */
static uint64_t earn(struct stack *s, uint64_t now_ns)
{
	uint64_t rate = s->max_rate;
	uint64_t since_ns = now_ns - s->budget_ns > NS_PER_S ? NS_PER_S : now_ns - s->budget_ns;
	uint64_t earned =
		rate / NS_PER_US * since_ns / NS_PER_MS + rate % NS_PER_US * since_ns / NS_PER_S;
	uint64_t paid = earned < s->debt ? earned : s->debt;

	if (earned > 0) /* otherwise the time counts on */
		s->budget_ns = now_ns;
	s->debt -= paid;
	s->budget += earned - paid;
	s->budget = s->budget < rate ? s->budget : rate;
	return s->debt == 0 ? UINT64_MAX : now_ns + NS_PER_MS;
}

static void fill_polls(struct stack *s, uint32_t *wait_ms)
{
	short wanted = s->debt == 0 ? POLLIN : 0;

	s->polls[POLL_TUN] = (struct pollfd){ .fd = s->tun_fd, .events = wanted };
	s->polls[POLL_CHANNEL] = (struct pollfd){ .fd = s->channel_fd, .events = POLLIN };
	for (unsigned i = 0; i < NAMES_SERVERS_MAX; i++)
		s->polls[POLL_NAMES + i] =
			(struct pollfd){ .fd = i < s->names.servers ? s->names.fds[i] : -1,
				.events = POLLIN };
	s->poll_count = POLL_STACK;
	if (s->debt == 0)
		slirp_pollfds_fill(s->slirp, wait_ms, add_poll, s);
}

static void fire_timer(struct stack *s, uint64_t now_ns)
{
	if (now_ns < s->timer.due_ns)
		return;
	s->timer.due_ns = UINT64_MAX;
	slirp_handle_timer(s->slirp, s->timer.id, s->timer.ctx);
}

/* One turn; false when it was the last. */
static bool turn(struct stack *s)
{
	uint64_t now_ns = clock_ns(), due_ns = earn(s, now_ns);
	uint32_t wait_ms = INT_MAX;
	int n;

	due_ns = clock_earlier(due_ns, names_tick(&s->names, now_ns));
	due_ns = clock_earlier(due_ns, s->timer.due_ns);
	fill_polls(s, &wait_ms);
	if (due_ns != UINT64_MAX && (uint32_t)clock_ms_until(due_ns) < wait_ms)
		wait_ms = (uint32_t)clock_ms_until(due_ns);
	n = poll(s->polls, s->poll_count, (int)wait_ms);
	now_ns = clock_ns();
	if (s->polls[POLL_CHANNEL].revents)
		return false;
	for (unsigned i = 0; n > 0 && i < s->names.servers; i++)
		if (s->polls[POLL_NAMES + i].revents)
			names_hear(&s->names, i);
	if (n > 0 && s->polls[POLL_TUN].revents)
		hear_cell(s);
	if (s->debt == 0)
		slirp_pollfds_poll(s->slirp, n < 0, get_events, s);
	fire_timer(s, now_ns);
	if (now_ns - s->swept_ns > SWEEP_NS) {
		flows_sweep(&s->flows, now_ns);
		s->swept_ns = now_ns;
	}
	flows_publish(&s->flows, s->shared);
	return !s->gone;
}

void stack_run(struct stack *s)
{
	while (turn(s))
		;
}
