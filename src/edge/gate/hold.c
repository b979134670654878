#include "edge/gate/hold.h"

#include "base/check.h"

#include <string.h>

static uint32_t number_of(const struct holds *h, const struct flow *flow)
{
	return (uint32_t)(flow - h->flows->flows);
}

static struct hold *hold_of(struct holds *h, const struct flow *flow)
{
	return &h->holds[number_of(h, flow)];
}

/* ---- What is held ---- */

static struct hold_buffer *buffer_of(struct holds *h, const struct hold *d)
{
	return d->buffer == FLOWS_NONE ? NULL : &h->buffers[d->buffer];
}

/* Its connection may have been reset or forgotten meanwhile. */
static bool is_free(const struct holds *h, uint32_t i)
{
	const struct hold_buffer *b = &h->buffers[i];
	const struct flow *flow = &h->flows->flows[b->flow];

	return !flow->used || flow->over || h->holds[b->flow].buffer != i;
}

static struct hold_buffer *find_buffer(struct holds *h, const struct flow *flow)
{
	struct hold *d = hold_of(h, flow);

	for (uint32_t i = 0; i < HOLDS_MAX && d->buffer == FLOWS_NONE; i++)
		if (is_free(h, i)) {
			d->buffer = i;
			h->buffers[i].flow = number_of(h, flow);
			h->buffers[i].len = h->buffers[i].gone = 0;
		}
	return buffer_of(h, d);
}

static size_t held(struct holds *h, const struct hold *d)
{
	const struct hold_buffer *b = buffer_of(h, d);

	return b ? b->len - b->gone : 0;
}

/* Number of the byte that is expected. */
static uint32_t next_of(struct holds *h, const struct hold *d)
{
	return d->first + (uint32_t)held(h, d);
}

static void drop(struct holds *h, struct hold *d, size_t used)
{
	struct hold_buffer *b = buffer_of(h, d);

	b->len -= used;
	b->gone -= used;
	memmove(b->bytes, b->bytes + used, b->len);
	if (b->len == 0)
		d->buffer = FLOWS_NONE;
}

/* ---- Packets of our own ---- */

/* To the stack: what the cell's says, with other bytes in it. */
static void send_on(struct holds *h, struct flow *flow, const struct packet *like, uint8_t flags,
	const uint8_t *bytes, size_t len)
{
	struct hold *d = hold_of(h, flow);
	struct packet p = *like;
	uint8_t packet[PACKET_MAX];
	size_t packet_len;

	p.flags = flags;
	p.sequence = d->first;
	p.payload = bytes;
	p.payload_len = len;
	packet_len = packet_write_tcp(&p, packet);
	CHECK(!packet_read(packet, packet_len, &p));
	d->first += (uint32_t)len + !!(flags & PACKET_TCP_FIN);
	h->pass(h->ctx, flow, &p);
}

/* To the cell: what is expected next, or that nothing is. */
static void answer(struct holds *h, const struct hold *d, const struct packet *p, uint8_t flags)
{
	uint32_t next = next_of(h, d), room = d->edge - next;
	struct packet back = {
		.kind = PACKET_TCP,
		.ipv4 = p->ipv4,
		.source = p->target,
		.target = p->source,
		.source_port = p->target_port,
		.target_port = p->source_port,
		.sequence = p->acknowledged,
		.acknowledged = next,
		.flags = flags,
		.window = (uint16_t)(room < UINT16_MAX ? room : UINT16_MAX),
	};
	uint8_t packet[PACKET_MAX];

	h->give(h->ctx, packet, packet_write_tcp(&back, packet));
}

/* ---- A segment ---- */

/* Only what is next, whole, and no more than the stack has said it takes. */
static bool take_bytes(struct holds *h, const struct flow *flow, const struct packet *p)
{
	struct hold *d = hold_of(h, flow);
	uint32_t next = next_of(h, d);
	struct hold_buffer *b;

	if (d->ended || p->sequence != next || p->payload_len > (uint32_t)(d->edge - next))
		return false;
	if (p->payload_len == 0)
		return true;
	b = find_buffer(h, flow);
	if (!b)
		return false;
	CHECK(b->len + p->payload_len <= sizeof(b->bytes));
	memcpy(b->bytes + b->len, p->payload, p->payload_len);
	b->len += p->payload_len;
	return true;
}

/* Hand on what may go. */
static enum network_verdict judge(
	struct holds *h, struct flow *flow, const struct packet *p, struct speech_found *ret)
{
	struct hold *d = hold_of(h, flow);
	struct hold_buffer *b = buffer_of(h, d);
	const struct speech_place where = { h->rules, flow->address, flow->port };

	if (!b)
		return NETWORK_ALLOWED;
	speech_hear(&d->speech, &where, b->bytes, b->len, p->flags & PACKET_TCP_FIN, ret);
	while (b->gone < ret->pass) {
		size_t left = ret->pass - b->gone;
		size_t len = left < PACKET_SEGMENT_MAX ? left : PACKET_SEGMENT_MAX;
		const uint8_t *bytes = b->bytes + b->gone;

		b->gone += len;
		send_on(h, flow, p, PACKET_TCP_ACK | PACKET_TCP_PSH, bytes, len);
	}
	drop(h, d, ret->used);
	return ret->verdict;
}

static void refuse(struct holds *h, struct flow *flow, const struct packet *p,
	const struct speech_found *found)
{
	struct hold *d = hold_of(h, flow);

	flows_deny(h->flows, flow, found->name, found->verdict);
	answer(h, d, p, PACKET_TCP_RST | PACKET_TCP_ACK);
	d->buffer = FLOWS_NONE;
	d->refused = true;
	send_on(h, flow, p, PACKET_TCP_RST | PACKET_TCP_ACK, NULL, 0);
}

static void take_segment(struct holds *h, struct flow *flow, const struct packet *p)
{
	struct hold *d = hold_of(h, flow);
	bool end = p->flags & PACKET_TCP_FIN, says = end || p->payload_len > 0;
	bool probes = !says && (int32_t)(p->sequence - next_of(h, d)) < 0; /* is anybody there? */
	bool taken = says && take_bytes(h, flow, p);
	struct speech_found found = { .verdict = NETWORK_ALLOWED };
	uint32_t before = d->first;

	if (taken && judge(h, flow, p, &found) != NETWORK_ALLOWED) {
		refuse(h, flow, p, &found);
		return;
	}
	if (taken && end) {
		d->ended = true;
		send_on(h, flow, p, PACKET_TCP_ACK | PACKET_TCP_FIN, NULL, 0);
	} else if (d->first == before) {
		send_on(h, flow, p, PACKET_TCP_ACK, NULL, 0); /* what the cell has received */
	}
	if (probes || (says && (!taken || held(h, d) > 0)))
		answer(h, d, p, PACKET_TCP_ACK);
	if (d->speech.phase == SPEECH_FREE && held(h, d) == 0)
		d->on = false;
}

void hold_begin(struct holds *h, const struct flow *flow, const struct packet *p)
{
	*hold_of(h, flow) = (struct hold){
		.on = flow->kind == PACKET_TCP &&
		      rules_need_name(h->rules, &flow->address, flow->port),
		.first = p->sequence + 1,
		.edge = p->sequence + 1,
		.buffer = FLOWS_NONE,
	};
}

bool hold_take(struct holds *h, struct flow *flow, const struct packet *p)
{
	struct hold *d = hold_of(h, flow);

	if (!d->on)
		return false;
	if (d->refused) { /* until the cell has understood */
		if (!(p->flags & PACKET_TCP_RST))
			answer(h, d, p, PACKET_TCP_RST | PACKET_TCP_ACK);
		return true;
	}
	if (flow->over && !d->ended)
		return true; /* reset: what was held is gone, and what is late goes nowhere */
	/* The beginning, perhaps once more; data that come with it come again without it. */
	if ((p->flags & PACKET_TCP_SYN) && p->sequence + 1 == d->first && held(h, d) == 0)
		return p->payload_len > 0 || (p->flags & (PACKET_TCP_URG | PACKET_TCP_FIN));
	/* A reset ends it wherever it stands. So does a new beginning: it comes again, and then begins. */
	if (p->flags & (PACKET_TCP_RST | PACKET_TCP_SYN))
		send_on(h, flow, p, PACKET_TCP_RST | PACKET_TCP_ACK, NULL, 0);
	else
		take_segment(h, flow, p);
	return true;
}

void hold_see(struct holds *h, const struct flow *flow, const struct packet *p)
{
	struct hold *d = hold_of(h, flow);
	uint32_t edge = p->acknowledged + p->window;

	if ((p->flags & PACKET_TCP_ACK) && (int32_t)(edge - d->edge) > 0)
		d->edge = edge;
}
