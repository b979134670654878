/* The only resolver that a run has. It answers questions for the addresses of hosts whose names the
 * rules allow, and asks the machine's own resolvers for them in words of its own: no byte of a
 * question but the name goes out, no byte of an answer but addresses comes in. What it has answered
 * it remembers as the rules' pins.
 *
 *   runs in    the gate
 *   owns       its sockets, from names_open() to names_close()
 *   blocks     never
 *   trusts     no byte of a question or an answer; glibc's ns_parserr() reads both
 */
#pragma once

#include "edge/gate/flows.h"
#include "edge/gate/packet.h"
#include "edge/gate/rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fault;

#define NAMES_SERVERS_MAX 3u  /* as the C library: MAXNS of resolv.h */
#define NAMES_ASKED_MAX   64u /* questions on their way at once */
#define NAMES_PER_S       50u /* questions that go out; as many at once after a second of none */
#define NAMES_PORT        53u

/* Where an answer goes: a packet for the cell. */
typedef void names_send_fn(void *ctx, const uint8_t *packet, size_t len);

struct names_question {
	bool used;
	uint8_t server;     /* that was asked last */
	uint16_t cell_id;   /* the cell's number of it */
	uint16_t type;      /* ns_t_a or ns_t_aaaa */
	uint16_t id;        /* ours */
	uint64_t due_ns;    /* when the next one is asked */
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
	int fds[NAMES_SERVERS_MAX]; /* one for each resolver, connected */
	unsigned servers;
	uint64_t credit; /* questions that may go out now, in nanoseconds of NAMES_PER_S */
	uint64_t credit_ns;
	struct names_question asked[NAMES_ASKED_MAX];
};

/* The addresses behind "nameserver" in the text of a resolv.conf, at most NAMES_SERVERS_MAX; what
 * cannot be read is passed over. Returns how many. */
unsigned names_read_servers(const char *text, size_t len, struct network_address *ret)
	__attribute__((nonnull));

/* Open its sockets, to as many of `servers` as can be reached; `n` has what stands before them set. */
void names_open(struct names *n, const struct network_address *servers, unsigned count)
	__attribute__((nonnull));
void names_close(struct names *n) __attribute__((nonnull));

/* A datagram from the cell to the resolver. */
void names_ask(struct names *n, const struct packet *p, uint64_t now_ns) __attribute__((nonnull));

/* Socket number `server` has something to read. */
void names_hear(struct names *n, unsigned server) __attribute__((nonnull));

/* Ask on, and answer what nobody has answered. Returns when to be called again. */
uint64_t names_tick(struct names *n, uint64_t now_ns) __attribute__((nonnull));
