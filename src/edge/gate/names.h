/* The only resolver that a run has. It answers questions for the addresses of hosts whose names the
 * rules allow, and has the machine's own resolvers asked for them (lookups.h): no byte of a question
 * but the name goes out, no byte of an answer but addresses comes in. What it has answered it remembers
 * as the rules' pins.
 *
 *   runs in    the gate
 *   owns       its look-ups' sockets, until names_close()
 *   blocks     never
 *   trusts     no byte of a question; glibc's ns_parserr() reads it
 */
#pragma once

#include "edge/gate/flows.h"
#include "edge/gate/lookups.h"
#include "edge/gate/packet.h"
#include "edge/gate/rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAMES_ASKED_MAX LOOKUPS_MAX /* questions of the cell's that are open */
#define NAMES_PER_S     50u /* questions that go out; as many at once after a second of none */
#define NAMES_PORT      53u

/* Where an answer goes: a packet for the cell. */
typedef void names_send_fn(void *ctx, const uint8_t *packet, size_t len);

/* Several that are the same have one look-up. */
struct names_question {
	bool used;
	uint8_t lookup;     /* its number */
	uint16_t cell_id;   /* the cell's number of it */
	uint16_t type;      /* ns_t_a or ns_t_aaaa */
	struct packet from; /* its addresses and ports; its bytes are gone */
	char name[NETWORK_NAME_MAX + 3];
};

struct names {
	struct rules *rules;
	struct flows *flows;
	names_send_fn *send;
	void (*note)(
		void *ctx); /* a line has been written, and a question follows; NULL: nobody cares */
	void *ctx;
	uint64_t credit; /* questions that may go out now, in nanoseconds of NAMES_PER_S */
	uint64_t credit_ns;
	struct names_question asked[NAMES_ASKED_MAX];
	struct lookups lookups;
};

/* `n` has what stands before `credit` set, and stays where it is. */
void names_open(struct names *n, const struct network_address *servers, unsigned count,
	uint64_t now_ns) __attribute__((nonnull));
void names_close(struct names *n) __attribute__((nonnull));

/* A datagram from the cell to the resolver. */
void names_ask(struct names *n, const struct packet *p, uint64_t now_ns) __attribute__((nonnull));

/* What is to be polled for, NAMES_POLLS of them, and what was seen; and what is due: as of look-ups. */
#define NAMES_POLLS LOOKUPS_MAX
void names_fill(const struct names *n, struct pollfd *ret) __attribute__((nonnull));
void names_hear(struct names *n, const struct pollfd *polls, uint64_t now_ns)
	__attribute__((nonnull));
uint64_t names_tick(struct names *n, uint64_t now_ns) __attribute__((nonnull));
