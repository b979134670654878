/* The segments of connections on which it matters what is said (speech.h): taken in the order of the
 * stream and no other, judged, and handed on in words of our own, so that what the stack forwards is
 * what was judged, to the byte. What has no verdict yet is held and acknowledged to the cell: no byte
 * of it has left when it turns out to be for somebody else, and a program whose kernel waits for that
 * acknowledgement can go on. A connection that says something for another name is reset on both sides.
 *
 *   runs in    the gate
 *   owns       what is held, for as long as its connection is open
 *   trusts     no byte of a packet
 */
#pragma once

#include "edge/gate/flows.h"
#include "edge/gate/speech.h"

/* Connections that something is held of at once. When there are more, nothing of the next is taken:
 * the cell's kernel sends it again. */
#define HOLDS_MAX 128u

/* A packet goes on to the stack, or to the cell. */
typedef void hold_pass_fn(void *ctx, struct flow *flow, const struct packet *p);
typedef void hold_give_fn(void *ctx, const uint8_t *packet, size_t len);

struct hold {
	bool on;         /* it matters what is said */
	bool refused;    /* ...and it was wrong */
	bool ended;      /* FIN has gone on */
	uint32_t first;  /* number of the first byte that has not gone on */
	uint32_t edge;   /* ...and of the one that the stack does not take yet */
	uint32_t buffer; /* what is held, FLOWS_NONE: nothing */
	struct speech speech;
};

struct hold_buffer {
	uint32_t flow;
	size_t len;
	size_t gone; /* bytes that have gone on, and are needed to understand the rest */
	uint8_t bytes[SPEECH_WAIT_MAX + PACKET_MAX];
};

struct holds {
	const struct rules *rules;
	struct flows *flows;
	hold_pass_fn *pass;
	hold_give_fn *give;
	void *ctx;
	struct hold holds[FLOWS_MAX]; /* one for each flow */
	struct hold_buffer buffers[HOLDS_MAX];
};

/* A connection begins with `p`: look whether it matters what is said. */
void hold_begin(struct holds *h, const struct flow *flow, const struct packet *p)
	__attribute__((nonnull));

/* A packet from the cell. True: it was seen to; otherwise it passes as it is. */
bool hold_take(struct holds *h, struct flow *flow, const struct packet *p)
	__attribute__((nonnull, warn_unused_result));

/* A packet of the stack for the cell is about to pass: it says how much the stack takes. */
void hold_see(struct holds *h, const struct flow *flow, const struct packet *p)
	__attribute__((nonnull));
