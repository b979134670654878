/* Admission: who is handed to the supervisor now, who waits, who is sent away.
 * First come, first served; both numbers are bounded.
 *
 * Pure bookkeeping: it never looks at the clock and never calls back.
 *
 *   runs in    the front
 *   owns       nothing; a ticket lies inside what it admits
 *   threads    none
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum ticket_state {
	TICKET_OUT, /* neither waits nor runs */
	TICKET_WAITING,
	TICKET_RUNNING
};

/* Zero-initialised by the caller; must stay where it is until it is out again. */
struct ticket {
	struct ticket *prev, *next; /* while waiting */
	enum ticket_state state;
	uint64_t since_ns; /* when it entered its state */
};

struct queue {
	uint32_t max_running, max_waiting;
	uint32_t running, waiting;
	struct ticket *first, *last;
	uint64_t typical_ns; /* how long a run holds its slot, smoothed */
};

/* `typical_ns` is the guess until runs have shown better. `max_running` must not be 0. */
void queue_init(struct queue *q, uint32_t max_running, uint32_t max_waiting, uint64_t typical_ns)
	__attribute__((nonnull));

/* Admit `t`: its new state, TICKET_OUT when there is no room. Nobody overtakes those
 * who wait. */
enum ticket_state queue_enter(struct queue *q, struct ticket *t, uint64_t now_ns)
	__attribute__((nonnull, warn_unused_result));

/* `t` is done with or has given up, wherever it stood; nothing when it is out already. */
void queue_leave(struct queue *q, struct ticket *t, uint64_t now_ns) __attribute__((nonnull));

/* The one who has waited longest, now running; NULL when nobody waits or no slot is
 * free. Call it again until it says NULL. */
struct ticket *queue_advance(struct queue *q, uint64_t now_ns) __attribute__((nonnull));

/* Seconds after which one more would probably find room: between 1 and RETRY_MAX_S. */
#define RETRY_MAX_S 300u
uint32_t queue_retry_after_s(const struct queue *q) __attribute__((nonnull));
