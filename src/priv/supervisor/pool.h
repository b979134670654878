/* All cells of this supervisor: ready ones kept ahead of the demand, those at work, those
 * that die. And with them the zygotes that fork their mains, and what nobody else reaps.
 *
 *   runs in    the supervisor
 *   owns       every cell; one that was taken is still the pool's, its user only drives it
 *              until pool_give_back()
 *   threads    none
 *   blocks     never
 */
#pragma once

#include "priv/launch/cell.h"
#include "priv/supervisor/builds.h"
#include "priv/supervisor/factories.h"
#include "priv/supervisor/lease.h"
#include "priv/supervisor/lineage.h"
#include "priv/supervisor/lines.h"
#include "priv/supervisor/reaper.h"
#include "priv/supervisor/watch.h"
#include "wire/settings.h"

#include <stdbool.h>
#include <stdint.h>

_Static_assert(RUNS_MAX + POOL_MAX <= LEASE_CELLS, "each has a slot");

/* What the cell in a slot was made for. */
struct order {
	const struct cell_factory *factory; /* of another language; NULL: the pool's own */
	uint32_t language;                  /* this and what follows: of another language only */
	uint64_t number;                    /* the order that it answers */
	bool wanted;                        /* its run was waiting when it was last asked */
};

struct pool {
	struct cell cells[LEASE_CELLS];
	bool taken[LEASE_CELLS]; /* somebody drives it */
	struct order orders[LEASE_CELLS];
	unsigned high; /* slots from here on were never used */
	uint64_t next_id;
	const struct settings *settings;
	struct cell_factory *factory;
	struct watch watch;     /* the cells, by slot; the opener's to set */
	struct lineage lineage; /* whose zygotes fork mains of the stock */
	struct lines lines;     /* and of images that requests pick */
	uint64_t generations;   /* of zygotes, of all lines */
	struct reaper reaper;
	/* Children that are not the pool's: collectors, gates. NULL: there are none. */
	bool (*claims)(const void *ctx, pid_t pid);
	const void *claims_ctx;
	pid_t other_child;  /* a child of this process that is not the pool's: the front; 0: none */
	bool closing;       /* nothing is made any more */
	bool rehearse;      /* forks asked for now prepare in full */
	unsigned waiting;   /* runs without a cell, at the last tick */
	unsigned running;   /* and with one */
	uint64_t busy_ns;   /* when a run last wanted or had a cell */
	uint64_t refill_ns; /* not before: builds failed, or runs have the CPU */
	uint64_t failed_ns; /* when the last build failed */
	unsigned failures;  /* builds that failed in a row */
	unsigned untold;    /* of them, without the first: for which nobody has been refused */
	unsigned vanished;  /* builds in a row that somebody's kill has ended */
	struct fault fault; /* of the last failure */
	struct builds builds;
	struct factories *factories; /* of other languages; set before the first run comes */
	uint64_t failed_order;       /* a cell for it could not be made; 0: none */
	struct fault failed_why;
	uint64_t cold_order; /* a zygote's child broke: its next main is started cold; 0: none */
};

/* Begin with no cell. `warm`: zygotes fork their mains, if one can be started. The caller
 * sets the watches, its own, the lineage's and the lines', before the first tick. */
void pool_open(struct pool *p, const struct settings *settings, struct cell_factory *factory,
	bool warm) __attribute__((nonnull));

/* A ready cell, taken: of the newest zygote, and then the oldest. NULL: there is none. */
struct cell *pool_take(struct pool *p) __attribute__((nonnull));

/* A run waits for a cell of another language, or one with a network: see that one is on its way. To
 * be said before every pool_tick(). */
struct pool_wish {
	uint64_t order; /* a number of the caller's, over 0, which stands for that run */
	uint32_t language;
	bool compiler;       /* it is the compiler's run */
	struct build *build; /* to be made, for the compiler, or shown, for the program; or NULL */
	bool network;
};
void pool_order(struct pool *p, const struct pool_wish *w) __attribute__((nonnull));
/* Its cell, taken, when it is ready; or NULL. */
struct cell *pool_take_other(struct pool *p, uint64_t order) __attribute__((nonnull));

/* Is a run to be refused because a cell could not be made? Once for each build that failed in a row
 * after the first one; when so many did that none will do, always. `is_heard`: somebody waits who
 * was there when the last one failed; otherwise the answer is no, now and later. */
bool pool_tell_failure(struct pool *p, bool is_heard) __attribute__((nonnull));

/* Is there a cell of that other language, in whatever state? */
bool pool_has_other(const struct pool *p, uint32_t language) __attribute__((nonnull));

/* What a cell was made from. */
const struct cell_factory *pool_factory(const struct pool *p, const struct cell *c)
	__attribute__((nonnull));

/* The program of a taken cell is dead, or never began: end the cell. */
void pool_give_back(struct pool *p, struct cell *c) __attribute__((nonnull));

/* Something happened at slot `slot`, which nobody has taken. */
void pool_look(struct pool *p, unsigned slot) __attribute__((nonnull));

/* The listener of the cell in that slot has something: calls that were denied. */
void pool_answer(struct pool *p, unsigned slot) __attribute__((nonnull));

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
