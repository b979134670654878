/* Fuzz target: what comes to the gate from both sides. The first byte says from which: packets of a
 * cell, or questions of a cell with answers of a resolver. Whatever comes, the gate's own packets are
 * ones that it reads itself, connections are counted rightly, nothing is remembered of a name that no
 * run may reach, and the record can be shown.
 */
#include "edge/gate/flows.h"
#include "edge/gate/names.h"
#include "edge/gate/packet.h"
#include "edge/gate/rules.h"
#include "tests/fuzz/fuzz.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BEGAN_NS UINT64_C(1000000000)
#define STEP_NS  UINT64_C(700000000)

static struct rules rules;
static struct flows flows;
static struct names names;
static uint64_t now_ns;

/* ---- Packets ---- */

static void check_read(const struct packet *p, const char *block, size_t len)
{
	const uint8_t *begin = (const uint8_t *)block;

	CHECK(p->bytes == begin || p->kind == PACKET_NOISE || p->kind == PACKET_ERROR);
	CHECK(p->len <= len && p->len <= PACKET_MAX);
	if (p->kind == PACKET_NOISE || p->kind == PACKET_ERROR)
		return;
	CHECK(p->payload > begin && p->payload + p->payload_len == begin + p->len);
}

/* What is built goes back to where the packet came from. */
static void check_built(
	const struct packet *p, const uint8_t *packet, size_t len, enum packet_kind kind)
{
	struct packet back;

	CHECK(len <= PACKET_MAX && !packet_read(packet, len, &back));
	CHECK(back.kind == kind && back.len == len && back.ipv4 == p->ipv4);
	CHECK(network_same_bits(&back.source, &p->target, 128));
	CHECK(network_same_bits(&back.target, &p->source, 128));
}

/* An answer with addresses of IPv4 in IPv6 would be refused itself. */
static void check_refused(const struct packet *p)
{
	uint8_t packet[PACKET_MAX];
	size_t len = packet_refusal(p, packet);

	CHECK(len <= PACKET_MAX);
	if (p->ipv4 || !(network_is_ipv4(&p->source) || network_is_ipv4(&p->target)))
		check_built(p, packet, len, PACKET_ERROR);
}

static void answer(const struct packet *p)
{
	uint8_t packet[PACKET_MAX];
	size_t len = p->payload_len < PACKET_DATAGRAM_MAX ? p->payload_len : PACKET_DATAGRAM_MAX;

	check_built(p, packet, packet_refusal(p, packet), PACKET_ERROR);
	if (p->kind == PACKET_UDP)
		check_built(p, packet, packet_datagram(p, p->payload, len, packet), PACKET_UDP);
}

static void pass(const struct packet *p, bool out)
{
	struct flow *flow = flows_find(&flows, p, out);

	if (!flow && out)
		flow = flows_begin(&flows, p, "", now_ns);
	if (!flow)
		return;
	CHECK(flow->used && flows_find(&flows, p, out) == flow);
	if (flow->over && p->kind != PACKET_TCP)
		flows_revive(&flows, flow);
	flows_pass(&flows, flow, p, out, now_ns);
	if (flow->over && (p->flags & PACKET_TCP_SYN))
		flows_forget(&flows, flow);
}

/* What it says is lost is over, and nothing is read beyond it. */
static void take_error(const struct packet *error)
{
	struct packet about;
	struct flow *flow;

	if (!packet_quoted(error, &about))
		return;
	CHECK(about.kind == PACKET_TCP || about.kind == PACKET_UDP || about.kind == PACKET_ECHO);
	flow = flows_find(&flows, &about, true);
	if (flow)
		flows_end(&flows, flow);
}

static void check_flows(void)
{
	unsigned open = 0;

	for (unsigned i = 0; i < FLOWS_MAX; i++)
		open += flows.flows[i].used && !flows.flows[i].over &&
			flows.flows[i].kind != PACKET_ECHO;
	CHECK(open == flows.open);
	for (unsigned i = 0; i < FLOWS_MAX; i++)
		if (flows.flows[i].used && flows.flows[i].kind == PACKET_TCP)
			flows_end(&flows, &flows.flows[i]);
	flows_sweep(&flows, now_ns + UINT64_C(1000000000000));
	CHECK(flows.open == 0);
	for (unsigned i = 0; i < FLOWS_MAX; i++)
		CHECK(!flows.flows[i].used);
	CHECK(!network_record_fault(&flows.record));
}

/* Each has its length in front of it. */
static void take_packets(struct fuzz *z)
{
	while (z->len > 0) {
		size_t most = (size_t)fuzz_u8(z) << 3, len;
		const uint8_t *bytes;
		struct packet p;
		char *block;

		bytes = fuzz_take(z, most | 7, &len);
		block = fuzz_block(bytes, len);
		if (packet_read((const uint8_t *)block, len, &p)) {
			CHECK(p.len <= len);
			if (p.len > 0)
				check_refused(&p);
			flows_refuse(&flows, p.len > 0 ? &p : NULL, "", NETWORK_UNREADABLE, now_ns);
		} else {
			check_read(&p, block, len);
			if (p.kind == PACKET_ERROR)
				take_error(&p);
			if (p.kind != PACKET_NOISE && p.kind != PACKET_ERROR) {
				answer(&p);
				pass(&p, (most & 8) != 0);
			}
		}
		free(block);
		now_ns += STEP_NS;
	}
	check_flows();
}

/* ---- Names ---- */

static void on_packet(void *ctx, const uint8_t *packet, size_t len)
{
	struct packet p;

	CHECK(ctx == &names && !packet_read(packet, len, &p));
	CHECK(p.kind == PACKET_UDP && p.payload_len <= 512);
	CHECK(p.source_port == NAMES_PORT && p.target_port == 40000);
}

static void ask(struct fuzz *z)
{
	struct packet p = {
		.kind = PACKET_UDP, .ipv4 = true, .source_port = 40000, .target_port = NAMES_PORT
	};
	const uint8_t *bytes = fuzz_take(z, fuzz_u8(z), &p.payload_len);
	char *block = fuzz_block(bytes, p.payload_len);

	p.payload = (const uint8_t *)block;
	names_ask(&names, &p, now_ns);
	free(block);
}

/* The resolver's end of each socket that the gate has opened, by the gate's end. */
static int peers[1024];

int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
	int pair[2];

	CHECK(domain == AF_INET && protocol == 0);
	CHECK(socketpair(AF_UNIX, type, 0, pair) == 0);
	CHECK(pair[0] < (int)ARRAY_LEN(peers));
	if (peers[pair[0]] > 0)
		CHECK(close(peers[pair[0]]) == 0);
	peers[pair[0]] = pair[1];
	return pair[0];
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len)
{
	(void)address;
	(void)len;
	CHECK(peers[fd] > 0);
	return 0;
}

static void turn(void)
{
	struct pollfd polls[NAMES_POLLS];

	names_fill(&names, polls);
	if (poll(polls, NAMES_POLLS, 0) > 0)
		names_hear(&names, polls, now_ns);
}

/* The number of a question that is open is put into it: nobody guesses that. By TCP it has its length in
 * front of it. */
static void hear(struct fuzz *z)
{
	size_t len, most = fuzz_u8(z) * 6u;
	const uint8_t *bytes = fuzz_take(z, most, &len);
	const struct lookup *one = NULL;
	uint8_t message[2 + 2048] = { (uint8_t)(len >> 8), (uint8_t)len };

	for (unsigned i = 0; i < LOOKUPS_MAX && !one; i++)
		if (names.lookups.all[i].used)
			one = &names.lookups.all[i];
	if (!one)
		return;
	memcpy(message + 2, bytes, len);
	if (len >= 2) {
		message[2] = (uint8_t)(one->id >> 8);
		message[3] = (uint8_t)one->id;
	}
	if (one->is_tcp)
		(void)send(peers[one->fd], message, len + 2, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		(void)send(peers[one->fd], message + 2, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	turn();
	turn();
}

static void take_names(struct fuzz *z)
{
	static const struct network_address servers[2] = {
		{ { [10] = 0xff, [11] = 0xff, 8, 8, 8, 8 } }, { { [10] = 0xff, [11] = 0xff, 8 } }
	};

	names = (struct names){
		.rules = &rules, .flows = &flows, .send = on_packet, .ctx = &names
	};
	names_open(&names, servers, ARRAY_LEN(servers), now_ns);
	while (z->len > 0) {
		switch (fuzz_u8(z) % 3) {
		case 0:
			ask(z);
			break;
		case 1:
			hear(z);
			break;
		default:
			now_ns += STEP_NS;
			(void)names_tick(&names, now_ns);
			break;
		}
	}
	for (unsigned i = 0; i < 2; i++) /* each resolver has its time */
		(void)names_tick(&names, now_ns += UINT64_C(10000000000));
	for (unsigned i = 0; i < NAMES_ASKED_MAX; i++)
		CHECK(!names.asked[i].used && !names.lookups.all[i].used);
	for (unsigned i = 0; i < rules.pin_count; i++)
		CHECK(rules_judge_answer(&rules, &rules.pins[i].address) == NETWORK_ALLOWED);
	CHECK(!network_record_fault(&flows.record));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const struct network_rule all = { .port_max = UINT16_MAX };
	struct fuzz z = { bytes, len };

	now_ns = BEGAN_NS;
	flows_init(&flows, now_ns);
	rules.ceiling.allow_count = rules.asked.allow_count = 1;
	rules.ceiling.allow[0] = rules.asked.allow[0] = all;
	rules.pin_count = 0;
	if (fuzz_u8(&z) % 2 == 0)
		take_packets(&z);
	else
		take_names(&z);
	return 0;
}
