/* The echo requests that nobody has answered yet. The stack keeps a socket of its own for each, for
 * four minutes: so many there may be and no more.
 *
 *   runs in    the gate
 *   owns       nothing outside of itself
 *   trusts     nothing
 */
#pragma once

#include "edge/gate/packet.h"

#include <stdbool.h>
#include <stdint.h>

/* One that is sent each second to somebody who does not answer needs 245. */
#define PINGS_MAX 256u

struct ping {
	uint64_t until_ns; /* 0: none */
	struct network_address address;
	uint16_t id;
	uint32_t sequence;
};

struct pings {
	struct ping asked[PINGS_MAX];
};

/* A request of the cell's goes out. False: it may not. */
bool pings_begin(struct pings *p, const struct packet *request, uint64_t now_ns)
	__attribute__((nonnull, warn_unused_result));

/* A request, as it was sent, has come to its end: answered, or told to be lost. */
void pings_end(struct pings *p, const struct network_address *to, uint16_t id, uint32_t sequence)
	__attribute__((nonnull));
