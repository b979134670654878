/* Fuzz target: what a program says on a connection that a name has opened. The first byte says how the
 * stream behind it is cut, and whether it ends. However it is cut the verdict is the same, no more passes
 * than there is, and what waits is bounded; and through segments that come in order, twice, late or too
 * early, what goes on to the stack is the stream, without a gap, and not a byte of what was refused.
 */
#include "edge/gate/hold.h"
#include "edge/gate/speech.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>

#define FIRST    0xffffff00u
#define SEGMENT  700u
#define CELL     40000
#define PORT     443
#define END_FLAG 0x80u

static struct rules rules;

/* ---- The judge ---- */

struct outcome {
	enum network_verdict verdict;
	enum speech_phase phase;
	size_t passed, used; /* of the stream */
};

static struct speech_place place(void)
{
	return (struct speech_place){ &rules, { { [10] = 0xff, [11] = 0xff, 8, 8, 8, 8 } }, PORT };
}

/* What has come up to `have`, from where it is needed. */
static void hear(struct speech *s, const uint8_t *bytes, size_t have, bool end, struct outcome *o)
{
	const struct speech_place where = place();
	struct speech_found found;
	char *block = fuzz_block(bytes + o->used, have - o->used);

	speech_hear(s, &where, (const uint8_t *)block, have - o->used, end, &found);
	free(block);
	CHECK(found.used <= found.pass && found.pass <= have - o->used);
	o->passed = o->used + found.pass > o->passed ? o->used + found.pass : o->passed;
	o->used += found.used;
	o->verdict = found.verdict;
	o->phase = s->phase;
	CHECK(o->verdict != NETWORK_ALLOWED || have - o->used <= SPEECH_WAIT_MAX);
	if (found.verdict == NETWORK_OTHER_NAME)
		CHECK(!rules_allow_spoken(&rules, &where.address, PORT, found.name));
	CHECK(strlen(found.name) <= NETWORK_NAME_MAX);
}

static struct outcome judge(const uint8_t *bytes, size_t len, size_t piece, bool end)
{
	struct outcome o = { .verdict = NETWORK_ALLOWED };
	struct speech s = { .phase = SPEECH_BEGIN };

	for (size_t have = 0; have < len && o.verdict == NETWORK_ALLOWED;) {
		have = piece < len - have ? have + piece : len;
		hear(&s, bytes, have, end && have == len, &o);
	}
	return o;
}

/* ---- Segments ---- */

static struct flows flows;
static struct holds holds;

static struct stack {
	uint8_t bytes[65536];
	size_t len;
	bool reset;
} stack;

static void on_pass(void *ctx, struct flow *flow, const struct packet *p)
{
	struct packet window = { .flags = PACKET_TCP_ACK, .window = 60000 };

	CHECK(ctx == &stack && !stack.reset);
	CHECK(p->sequence == (uint32_t)(FIRST + 1 + stack.len));
	CHECK(stack.len + p->payload_len <= sizeof(stack.bytes));
	memcpy(stack.bytes + stack.len, p->payload, p->payload_len);
	stack.len += p->payload_len;
	stack.reset = p->flags & (PACKET_TCP_RST | PACKET_TCP_FIN);
	flows_pass(&flows, flow, p, true, 1);
	window.acknowledged = p->sequence + (uint32_t)p->payload_len;
	hold_see(&holds, flow, &window);
}

static void on_give(void *ctx, const uint8_t *packet, size_t len)
{
	struct packet p;

	CHECK(ctx == &stack && !packet_read(packet, len, &p));
	CHECK(p.kind == PACKET_TCP && p.target_port == CELL && p.payload_len == 0);
}

static struct packet packet_of(uint8_t flags, size_t at, const uint8_t *bytes, size_t len)
{
	struct speech_place where = place();

	return (struct packet){ .kind = PACKET_TCP,
		.ipv4 = true,
		.source = { { [10] = 0xff, [11] = 0xff, 198, 18, 0, 2 } },
		.target = where.address,
		.source_port = CELL,
		.target_port = PORT,
		.sequence = FIRST + (uint32_t)at,
		.flags = flags,
		.payload = bytes,
		.payload_len = len };
}

static bool take(struct flow *flow, uint8_t flags, size_t at, const uint8_t *bytes, size_t len)
{
	struct packet p = packet_of(flags, at, bytes, len);

	return hold_take(&holds, flow, &p);
}

static struct flow *begin(void)
{
	struct packet syn = packet_of(PACKET_TCP_SYN, 0, NULL, 0);
	struct packet window = {
		.flags = PACKET_TCP_ACK, .acknowledged = FIRST + 1, .window = 60000
	};
	struct flow *flow;

	flows_init(&flows, 0);
	memset(&stack, 0, sizeof(stack));
	holds.rules = &rules;
	holds.flows = &flows;
	holds.pass = on_pass;
	holds.give = on_give;
	holds.ctx = &stack;
	flow = flows_begin(&flows, &syn, "example.org", 0);
	CHECK(flow);
	hold_begin(&holds, flow, &syn);
	CHECK(!hold_take(&holds, flow, &syn));
	hold_see(&holds, flow, &window);
	return flow;
}

/* Each segment with others around it: the one before it, one that is ahead, one that overlaps. */
static void carry(const uint8_t *bytes, size_t len, size_t piece, const struct outcome *expected)
{
	static const uint8_t junk[] = "GET / HTTP/1.1\r\nHost: other.org\r\n\r\n";
	struct flow *flow = begin();

	for (size_t at = 0; at < len;) {
		size_t n = piece < len - at ? piece : len - at;

		if (at > 0)
			(void)take(flow, PACKET_TCP_ACK, at, junk, sizeof(junk));
		(void)take(flow, PACKET_TCP_ACK, at + n + 1, junk, sizeof(junk));
		if (!take(flow, PACKET_TCP_ACK, at + 1, bytes + at, n))
			break; /* free from here on */
		at += n;
	}
	CHECK(stack.len <= len && memcmp(stack.bytes, bytes, stack.len) == 0);
	CHECK(stack.reset == (expected->verdict != NETWORK_ALLOWED));
	CHECK(!stack.reset || flow->over);
	if (expected->verdict == NETWORK_ALLOWED && expected->phase != SPEECH_FREE)
		CHECK(stack.len == expected->passed);
	CHECK(!network_record_fault(&flows.record));
}

static struct network_rule rule(uint32_t match, const char *name)
{
	struct network_rule r = { .match = match, .port_max = UINT16_MAX };

	(void)snprintf(r.name, sizeof(r.name), "%s", name);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz z = { bytes, len };
	uint8_t cut = fuzz_u8(&z);
	bool end = cut & END_FLAG;
	size_t piece = 1 + cut % END_FLAG * 11u;
	struct outcome whole, bytewise, pieces, open;

	if (len > 32768)
		return 0;
	rules.ceiling.allow_count = 1;
	rules.ceiling.allow[0] = rule(NETWORK_ANY, "");
	rules.asked.allow_count = 2;
	rules.asked.allow[0] = rule(NETWORK_NAME, "example.org");
	rules.asked.allow[1] = rule(NETWORK_SUBNAME, "example.net");
	whole = judge(z.at, z.len, z.len ? z.len : 1, end);
	bytewise = judge(z.at, z.len, 1, end);
	pieces = judge(z.at, z.len, piece, end);
	CHECK(whole.verdict == bytewise.verdict && whole.verdict == pieces.verdict);
	if (whole.verdict == NETWORK_ALLOWED) {
		CHECK(whole.phase == bytewise.phase && whole.phase == pieces.phase);
		CHECK(whole.used == bytewise.used && whole.used == pieces.used);
		CHECK(whole.passed == bytewise.passed && whole.passed == pieces.passed);
	}
	open = judge(z.at, z.len, z.len ? z.len : 1, false);
	carry(z.at, z.len, piece < SEGMENT ? piece : SEGMENT, &open);
	return 0;
}
