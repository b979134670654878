#include "edge/gate/tcpip.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "wire/interface.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <netinet/icmp6.h>
#include <slirp/libslirp.h>
#include <string.h>

#define ETHER_HEAD 14u
#define FRAME_MAX  (ETHER_HEAD + PACKET_MAX)

/* Locally administered addresses; the stack's own begins 52:55. */
static const uint8_t cell_ether[6] = { 0x52, 0x47, 0x42, 0x00, 0x00, 0x02 };
static const uint8_t stack_ether[6] = { 0x52, 0x55, 0x00, 0x00, 0x00, 0x01 };

/* ---- Packets ---- */

static ssize_t take_frame(const void *frame, size_t len, void *ctx)
{
	const struct tcpip *t = ctx;

	if (len > ETHER_HEAD)
		t->take(t->ctx, (const uint8_t *)frame + ETHER_HEAD, len - ETHER_HEAD);
	return (ssize_t)len;
}

void tcpip_send(struct tcpip *t, const struct packet *p)
{
	uint16_t type = htons(p->ipv4 ? ETHERTYPE_IP : ETHERTYPE_IPV6);
	uint8_t frame[FRAME_MAX];

	memcpy(frame, stack_ether, 6);
	memcpy(frame + 6, cell_ether, 6);
	memcpy(frame + 12, &type, 2);
	memcpy(frame + ETHER_HEAD, p->bytes, p->len);
	slirp_input(t->slirp, frame, (int)(ETHER_HEAD + p->len));
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
	struct tcpip *t = ctx;

	t->timer.id = (int)id;
	t->timer.ctx = timer_ctx;
	t->timer.due_ns = UINT64_MAX;
	return t;
}

static void free_timer(void *timer, void *ctx)
{
	(void)ctx;
	((struct tcpip *)timer)->timer.due_ns = UINT64_MAX;
}

static void set_timer(void *timer, int64_t due_ms, void *ctx)
{
	(void)ctx;
	((struct tcpip *)timer)->timer.due_ns = (uint64_t)due_ms * NS_PER_MS;
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
static void introduce_cell(struct tcpip *t)
{
	static const uint8_t arp[] = { 0, 1, 8, 0, 6, 4, 0, 1 }; /* Ethernet, IPv4, a request */
	static const uint8_t cell4[] = { INTERFACE_CELL4 }, gate4[] = { INTERFACE_GATE4 };
	static const uint8_t cell6[] = { INTERFACE_CELL6 }, gate6[] = { INTERFACE_GATE6 };
	uint8_t frame[ETHER_HEAD + 40 + 32] = { 0 }, *at = frame + ETHER_HEAD;

	memset(frame, 0xff, 6);
	memcpy(frame + 6, cell_ether, 6);
	frame[12] = ETHERTYPE_ARP >> 8;
	frame[13] = ETHERTYPE_ARP & 0xff;
	memcpy(at, arp, sizeof(arp));
	memcpy(at + 8, cell_ether, 6);
	memcpy(at + 14, cell4, 4);
	memcpy(at + 24, gate4, 4);
	slirp_input(t->slirp, frame, ETHER_HEAD + 28);

	memset(at, 0, 40 + 32);
	memcpy(frame, stack_ether, 6);
	frame[12] = ETHERTYPE_IPV6 >> 8;
	frame[13] = ETHERTYPE_IPV6 & 0xff;
	at[0] = 0x60;
	at[5] = 32;
	at[6] = IPPROTO_ICMPV6;
	at[7] = 255;
	memcpy(at + 8, cell6, 16);
	memcpy(at + 24, gate6, 16);
	at[40] = ND_NEIGHBOR_ADVERT;
	at[44] = 0x20; /* override */
	memcpy(at + 48, cell6, 16);
	at[64] = ND_OPT_TARGET_LINKADDR;
	at[65] = 1;
	memcpy(at + 66, cell_ether, 6);
	packet_seal_icmp6(at);
	slirp_input(t->slirp, frame, ETHER_HEAD + 40 + 32);
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

int tcpip_open(struct tcpip *t, tcpip_take_fn *take, void *ctx, struct fault *f)
{
	SlirpConfig c = config();

	*t = (struct tcpip){ .take = take, .ctx = ctx, .timer.due_ns = UINT64_MAX };
	t->slirp = slirp_new(&c, &callbacks, t);
	if (!t->slirp)
		return fault_say(f, -ENOMEM, "the TCP/IP stack does not start");
	introduce_cell(t);
	return 0;
}

/* ---- Waiting ---- */

static int add_poll(int fd, int events, void *ctx)
{
	struct tcpip *t = ctx;
	short wanted = 0;

	if (t->poll_count == t->poll_max)
		return -1;
	wanted |= events & SLIRP_POLL_IN ? POLLIN : 0;
	wanted |= events & SLIRP_POLL_OUT ? POLLOUT : 0;
	wanted |= events & SLIRP_POLL_PRI ? POLLPRI : 0;
	t->polls[t->poll_count] = (struct pollfd){ .fd = fd, .events = wanted };
	return (int)t->poll_count++;
}

static int get_events(int index, void *ctx)
{
	const struct tcpip *t = ctx;
	short seen = index < 0 ? 0 : t->polls[index].revents;
	int events = 0;

	events |= seen & POLLIN ? SLIRP_POLL_IN : 0;
	events |= seen & POLLOUT ? SLIRP_POLL_OUT : 0;
	events |= seen & POLLPRI ? SLIRP_POLL_PRI : 0;
	events |= seen & POLLERR ? SLIRP_POLL_ERR : 0;
	events |= seen & POLLHUP ? SLIRP_POLL_HUP : 0;
	return events;
}

unsigned tcpip_fill(
	struct tcpip *t, struct pollfd *polls, unsigned count, unsigned max, uint32_t *wait_ms)
{
	t->polls = polls;
	t->poll_count = count;
	t->poll_max = max;
	slirp_pollfds_fill(t->slirp, wait_ms, add_poll, t);
	return t->poll_count;
}

void tcpip_hear(struct tcpip *t, bool failed)
{
	slirp_pollfds_poll(t->slirp, failed, get_events, t);
}

uint64_t tcpip_due(const struct tcpip *t)
{
	return t->timer.due_ns;
}

void tcpip_tick(struct tcpip *t, uint64_t now_ns)
{
	if (now_ns < t->timer.due_ns)
		return;
	t->timer.due_ns = UINT64_MAX;
	slirp_handle_timer(t->slirp, (SlirpTimerId)t->timer.id, t->timer.ctx);
}
