/* Runs with a network, and their gates, on the board of board_play.h. With messages that cannot be sent
 * (-Wl,--wrap=channel_send).
 *
 *   runs in    unit tests
 */
#pragma once

#include "base/clock.h"
#include "wire/channel.h"
#include "wire/network.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/types.h>

struct no_process;

#define NETWORK_SIZE    ((off_t)sizeof(struct network_memory))
#define NETWORK_SEALED  (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)
#define NETWORK_LOOK_NS (50 * NS_PER_MS) /* so often a run that goes on is looked at */

extern struct network_play {
	enum msg_type unsendable; /* 0: all can be sent */
	int send_code;
	enum msg_type sent[64]; /* what was, by anybody */
	unsigned sent_count;
} network;

/* Before and after each test, around play_begin() and play_end(): what is left at its end, a process
 * or a descriptor, fails the test. No cell is made but those that runs ask for. */
int network_begin(void **state);
int network_end(void **state);

/* The pool asks the board which children are its gates: after each pool_open(). */
void network_claim(void);

unsigned network_count_fds(void);

/* Memory of that size with these seals. */
int network_memory(off_t size, int seals);

/* The client sends its NETWORK, with `fd` (taken): what board_network() returns. Or as it should be. */
int network_send(uint64_t run, int fd);
void network_send_good(uint64_t run);

/* Both: a run with a network. */
void network_submit(uint64_t run);

/* It was refused with that code. */
void network_refused(int code);

/* As the supervisor does it. */
void network_lose_client(void);

/* The gate that lives, or NULL; how many there are, alive, or dead and not reaped. */
struct no_process *network_gate(void);
unsigned network_gates(void);

/* It reads what it was sent, up to its GATE, which is `ret`. */
void network_read_gate(struct no_process *p, struct msg *ret) __attribute__((nonnull));

/* A run with a network, released: its main, which has read nothing. */
struct no_process *network_release(void);

/* Its program ends by itself, with 0: the RESULT. */
void network_end_well(struct no_process *p, struct msg *ret) __attribute__((nonnull));

/* Time passes: whatever was handed on is reaped. */
void network_settle(void);
