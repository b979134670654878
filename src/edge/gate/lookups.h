/* Names on their way to the machine's own resolvers: each question in words of our own, from a socket
 * of its own, so that whoever wants to answer in the resolver's place has to guess its port and its
 * number. The resolvers are asked in their order: the next one when one does not answer, or says that it
 * cannot. An answer that was cut off is asked for again by TCP, unless it holds addresses.
 *
 *   runs in    the gate
 *   owns       a socket for each question that is open
 *   blocks     never
 *   trusts     no byte of an answer; glibc's ns_parserr() reads it
 */
#pragma once

#include "wire/network.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOOKUPS_MAX         64u   /* at once */
#define LOOKUPS_SERVERS_MAX 3u    /* as the C library: MAXNS of resolv.h */
#define LOOKUPS_BYTES_MAX   4096u /* of an answer; a longer one is none */
#define LOOKUPS_PORT        53u

/* What became of one. */
struct lookups_answer {
	int rcode;       /* ns_r_noerror, ns_r_nxdomain or ns_r_servfail */
	bool is_nobodys; /* none has said anything; SERVFAIL then */
	unsigned count;
	struct network_address addresses[64]; /* of the kind that was asked for */
};

typedef void lookups_done_fn(
	void *ctx, unsigned number, const struct lookups_answer *a, uint64_t now_ns);

struct lookup {
	bool used;
	bool is_tcp, is_sent; /* sent: of TCP, the question */
	bool was_answered;    /* by somebody who could not say */
	uint8_t server;       /* that is asked */
	uint16_t type;        /* ns_t_a or ns_t_aaaa */
	uint16_t id;
	int fd;
	uint64_t due_ns; /* when the next one is asked */
	size_t len;      /* TCP: of what is there in `bytes` */
	char name[NETWORK_NAME_MAX + 3];
	uint8_t bytes[2 + LOOKUPS_BYTES_MAX]; /* TCP's question, then its answer */
};

struct lookups {
	struct network_address servers[LOOKUPS_SERVERS_MAX];
	unsigned server_count;
	lookups_done_fn *done;
	void *ctx;
	struct lookup all[LOOKUPS_MAX];
};

/* The addresses behind "nameserver" in the text of a resolv.conf, at most LOOKUPS_SERVERS_MAX; what
 * cannot be read is passed over. Returns how many. */
unsigned lookups_read_servers(const char *text, size_t len, struct network_address *ret)
	__attribute__((nonnull));

/* Is it being asked for? Its number; otherwise a free one; -1: all are used. */
int lookups_find(const struct lookups *l, const char *name, uint16_t type, bool *ret_is_open)
	__attribute__((nonnull));

/* Ask with a free number. `done` may be called before this returns, here and from the two below. */
void lookups_begin(struct lookups *l, unsigned number, const char *name, uint16_t type,
	uint64_t now_ns) __attribute__((nonnull));

/* What is to be polled for: LOOKUPS_MAX of them, -1 where there is none. Then what was seen. */
void lookups_fill(const struct lookups *l, struct pollfd *ret) __attribute__((nonnull));
void lookups_hear(struct lookups *l, const struct pollfd *polls, uint64_t now_ns)
	__attribute__((nonnull));

/* Ask on. Returns when to be called again, UINT64_MAX: for nothing that is open. */
uint64_t lookups_tick(struct lookups *l, uint64_t now_ns) __attribute__((nonnull));

/* Close all sockets. */
void lookups_close(struct lookups *l) __attribute__((nonnull));
