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

#include <sys/socket.h>

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
	flows_pass(&flows, flow, p, out, now_ns);
	if (flow->over && (p->flags & PACKET_TCP_SYN))
		flows_forget(&flows, flow);
}

static void check_flows(void)
{
	unsigned open = 0;

	for (unsigned i = 0; i < FLOWS_MAX; i++)
		open += flows.flows[i].used && !flows.flows[i].over;
	CHECK(open == flows.open);
	flows_sweep(&flows, now_ns + UINT64_C(1000000000000));
	CHECK(flows.open == 0);
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
			flows_refuse(&flows, NULL, "", NETWORK_UNREADABLE, now_ns);
		} else {
			check_read(&p, block, len);
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

/* The number of a question that is open is put into it: nobody guesses that. */
static void hear(struct fuzz *z, int peer)
{
	size_t len, most = fuzz_u8(z) * 6u;
	const uint8_t *bytes = fuzz_take(z, most, &len);
	uint8_t message[2048];

	memcpy(message, bytes, len);
	for (unsigned i = 0; i < NAMES_ASKED_MAX && len >= 2; i++)
		if (names.asked[i].used) {
			message[0] = (uint8_t)(names.asked[i].id >> 8);
			message[1] = (uint8_t)names.asked[i].id;
		}
	CHECK(send(peer, message, len, MSG_DONTWAIT) == (ssize_t)len);
	names_hear(&names, 0);
}

static void drain(int peer)
{
	uint8_t message[512];

	while (recv(peer, message, sizeof(message), MSG_DONTWAIT) >= 0)
		;
}

static void take_names(struct fuzz *z)
{
	static int pair[2];

	if (pair[0] == 0)
		CHECK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
	names = (struct names){ .rules = &rules,
		.flows = &flows,
		.send = on_packet,
		.ctx = &names,
		.fds = { pair[0] },
		.servers = 1,
		.credit = BEGAN_NS,
		.credit_ns = BEGAN_NS };
	while (z->len > 0) {
		switch (fuzz_u8(z) % 3) {
		case 0:
			ask(z);
			break;
		case 1:
			hear(z, pair[1]);
			break;
		default:
			now_ns += STEP_NS;
			(void)names_tick(&names, now_ns);
			break;
		}
		drain(pair[1]);
	}
	(void)names_tick(&names, now_ns + UINT64_C(10000000000));
	for (unsigned i = 0; i < NAMES_ASKED_MAX; i++)
		CHECK(!names.asked[i].used);
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
