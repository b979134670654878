/* All cells of this supervisor: ready ones kept ahead of the demand, those at work, those
 * that die. And the zygote that forks their mains.
 *
 *   runs in    the supervisor
 *   owns       every cell and zygote; a cell that was taken is still the pool's, its user
 *              only drives it until pool_give_back()
 *   threads    none
 *   blocks     never
 */
#pragma once

#include "priv/launch/cell.h"
#include "priv/supervisor/lease.h"
#include "priv/supervisor/zygote.h"
#include "wire/settings.h"

#include <stdbool.h>
#include <stdint.h>

#define POOL_STRAYS_MAX 64

struct pool {
	struct cell cells[LEASE_CELLS];
	bool taken[LEASE_CELLS]; /* somebody drives it */
	unsigned high;           /* slots from here on were never used */
	const struct settings *settings;
	struct cell_factory *factory;
	bool closing;          /* nothing is made any more */
	unsigned waiting;      /* runs without a cell, at the last tick */
	bool warm;             /* zygotes are wanted */
	bool rehearse;         /* forks asked for now prepare in full */
	struct zygote zygote;  /* the one that forks */
	struct zygote next;    /* its successor, while it starts */
	struct zygote retired; /* its predecessor, while it owes answers */
	uint64_t generations;
	struct fault lost; /* why there is no zygote, since when one was there or was tried */
	uint64_t zygote_retry_ns, zygote_wait_ns; /* when to try again, and the back-off */
	struct process strays[POOL_STRAYS_MAX];   /* forked for a cell that is gone */
	pid_t other_child; /* a child of this process that is not the pool\'s: the front; 0: none */
	uint64_t strangers_ns; /* when to look for children that nobody knows */
	int epoll_fd;
	uint64_t cell_token, zygote_token; /* epoll data: of slot 0; of the three zygotes */
	uint64_t next_id;
	uint64_t refill_ns; /* not before: builds failed, or runs have the CPU */
	unsigned failures;  /* builds that failed in a row */
	struct fault fault; /* of the last one */
};

/* Begin with no cell. `warm`: zygotes fork their mains, if one can be started. The caller
 * sets epoll_fd and the tokens before the first tick. */
void pool_open(struct pool *p, const struct settings *settings, struct cell_factory *factory,
	bool warm) __attribute__((nonnull));

/* A ready cell, the oldest, taken; or NULL. */
struct cell *pool_take(struct pool *p) __attribute__((nonnull));

/* The program of a taken cell is dead, or never began: end the cell. */
void pool_give_back(struct pool *p, struct cell *c) __attribute__((nonnull));

/* Something happened at slot `slot`, which nobody has taken. */
void pool_look(struct pool *p, unsigned slot) __attribute__((nonnull));

/* Something happened at zygote `which`: the one that forks, the next, the retired. */
void pool_look_zygote(struct pool *p, unsigned which) __attribute__((nonnull));

/* Make, refill, replace, retry. `waiting` runs have no cell, `running` have one. Returns when
 * it wants to be called again. */
uint64_t pool_tick(struct pool *p, unsigned waiting, unsigned running) __attribute__((nonnull));

/* Kill every cell that nobody has taken, and the zygotes; no more are made. */
void pool_close(struct pool *p) __attribute__((nonnull));

/* Cells that are not GONE, and whatever else has to be reaped; ready cells. */
unsigned pool_alive(const struct pool *p) __attribute__((nonnull));
unsigned pool_ready(const struct pool *p) __attribute__((nonnull));

/* Watch a descriptor of `c` for its slot. */
void pool_watch(const struct pool *p, const struct cell *c, int fd, uint32_t events)
	__attribute__((nonnull));
void pool_unwatch(const struct pool *p, int fd) __attribute__((nonnull));
/* Watch what tells of a program's end. */
void pool_watch_run(struct pool *p, const struct cell *c) __attribute__((nonnull));
