/* The connections of a run, as the gate sees them in packets, and the record that is made of them.
 * A connection is what has the same protocol, address and ports; of ICMP echo, the same identifier.
 *
 *   runs in    the gate
 *   owns       nothing outside of itself
 *   trusts     nothing: times and sizes are its own, the rest comes from packets. The client's memory is
 *              only written to, with copies of what is kept here
 */
#pragma once

#include "edge/gate/packet.h"
#include "wire/network.h"

#include <stdbool.h>
#include <stdint.h>

/* More than any policy allows at once (wire/settings.h) and than there can be pings (pings.h) together;
 * the rest are over, and give way when there is no other room. */
#define FLOWS_MAX 2048u

#define FLOWS_NONE UINT32_MAX

struct flow {
	bool used;
	bool over; /* TCP: reset, or ended on both sides; all: nothing of it is left in the stack */
	bool end_seen[2]; /* TCP: FIN, from the cell and to it */
	enum packet_kind kind;
	uint16_t cell_port, port;
	struct network_address address;
	uint64_t last_ns;
	uint32_t line; /* of the record, FLOWS_NONE: there was no room */
	uint32_t next; /* in its chain */
};

struct flows {
	struct network_record record;
	uint32_t dirty_from, dirty_to; /* lines that were not published */
	uint64_t began_ns;
	uint32_t open; /* used and not over; but for echoes, which pings.h bounds */
	uint32_t refused_lines, looked_up_lines;
	uint32_t free; /* first of the chain of those that are not used */
	uint32_t chains[1024];
	struct flow flows[FLOWS_MAX];
};

void flows_init(struct flows *f, uint64_t now_ns) __attribute__((nonnull));

/* The connection that a packet from the cell (`out`) or to it belongs to; NULL: none. */
struct flow *flows_find(struct flows *f, const struct packet *p, bool out)
	__attribute__((nonnull, warn_unused_result));

/* Begin one with a packet from the cell that has none. When the table is full the one that is over for
 * longest gives way; NULL: none is. `name`: what was looked up for it. */
struct flow *flows_begin(struct flows *f, const struct packet *p, const char *name, uint64_t now_ns)
	__attribute__((nonnull, warn_unused_result));

/* A packet of it passes. */
void flows_pass(struct flows *f, struct flow *flow, const struct packet *p, bool out,
	uint64_t now_ns) __attribute__((nonnull));

/* The stack has nothing of it any more. It is remembered for a while: what comes late belongs to it. */
void flows_end(struct flows *f, struct flow *flow) __attribute__((nonnull));

/* One that is over, and not TCP, goes on. */
void flows_revive(struct flows *f, struct flow *flow) __attribute__((nonnull));

/* Its ports may serve anew. */
void flows_forget(struct flows *f, struct flow *flow) __attribute__((nonnull));

/* Bytes of what is no connection: look-ups. */
void flows_count(struct flows *f, size_t bytes, bool out) __attribute__((nonnull));

/* Something was refused: a packet from the cell, or with NULL what could not be read, or the look-up
 * of a name. What is refused again has no new line. */
void flows_refuse(struct flows *f, const struct packet *p, const char *name,
	enum network_verdict why, uint64_t now_ns) __attribute__((nonnull(1, 3)));
void flows_look_up(struct flows *f, const char *name, enum network_verdict v, uint64_t now_ns)
	__attribute__((nonnull));

/* It was refused in its midst, for what was spoken: its line says so from now on. `name`: the one that
 * was spoken for; "": none could be read. */
void flows_deny(struct flows *f, const struct flow *flow, const char *name,
	enum network_verdict why) __attribute__((nonnull));

/* Copy what has changed into the client's memory. */
void flows_publish(struct flows *f, struct network_record *shared) __attribute__((nonnull));

/* Forget those of which nothing was heard for too long. TCP that is not over is none of them, as the stack
 * keeps its sockets, too. */
void flows_sweep(struct flows *f, uint64_t now_ns) __attribute__((nonnull));
