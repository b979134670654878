/* What the files of priv/supervisor/pool.h share:
 *
 *   pool.c        the pool as its users see it: taken, given back, ticked, closed; who is told
 *                 what by the lineage
 *   pool_cell.c   one cell of it: begun, listened to, ended, and what of it is watched
 *   pool_other.c  cells of other languages, each for one run
 *   pool_stock.c  how many cells there are, and which: made, refilled, replaced, aged
 *
 *   runs in    as priv/supervisor/pool.h
 */
#pragma once

#include "base/clock.h"
#include "priv/supervisor/pool.h"

#define POOL_REMOVE_RETRY_NS (5 * NS_PER_MS) /* what is dying is looked at again */

/* ---- pool_cell.c ---- */

unsigned pool_slot(const struct pool *p, const struct cell *c) __attribute__((nonnull));

/* Nothing is in its slot; it is being made; it is ready, and nobody has taken it. */
bool pool_is_free(const struct pool *p, const struct cell *c) __attribute__((nonnull));
bool pool_is_building(const struct pool *p, const struct cell *c) __attribute__((nonnull));
bool pool_is_spare(const struct pool *p, const struct cell *c) __attribute__((nonnull));

/* Is its cage too old for another program? */
bool pool_is_old(const struct pool *p, const struct cell *c) __attribute__((nonnull));

/* Begin to make a cell: in a cage that stands, or else in a free slot. */
void pool_begin(struct pool *p) __attribute__((nonnull));

/* The zygote does not fork for it: start its main cold. */
void pool_go_cold(struct pool *p, struct cell *c) __attribute__((nonnull));

/* It cannot be made, c->fault says why: end it, and let the next one wait. */
void pool_build_failed(struct pool *p, struct cell *c) __attribute__((nonnull));

/* End it and its cage; end its program's process only, and spare the cage. */
void pool_end(struct pool *p, struct cell *c) __attribute__((nonnull));
void pool_evict(struct pool *p, struct cell *c) __attribute__((nonnull));

/* What has become of a cell in DYING? An empty one is vacated or removed. */
void pool_look_dying(struct pool *p, struct cell *c) __attribute__((nonnull));

/* A slot that nothing is in, for a cell that is made now; NULL: all are in use. */
struct cell *pool_free_slot(struct pool *p) __attribute__((nonnull));

/* ---- pool_other.c ---- */

/* Is it of another language? Such cells are none of the pool's stock. */
bool pool_is_other(const struct pool *p, const struct cell *c) __attribute__((nonnull));

/* Have the zygote of its image fork its main, as cell_fork_fn. */
int pool_fork_other(struct pool *p, struct cell *c, int channel_fd) __attribute__((nonnull));

/* Such a cell cannot be made: c->fault says why. */
void pool_order_failed(struct pool *p, const struct cell *c) __attribute__((nonnull));

/* End those whose runs no longer wait. */
void pool_drop_orders(struct pool *p) __attribute__((nonnull));

/* ---- pool_stock.c ---- */

/* Of how many cells of the stock `is` it true? */
unsigned pool_count(const struct pool *p, bool (*is)(const struct pool *p, const struct cell *c))
	__attribute__((nonnull));

/* Is another cell wanted beside those that are ready or on their way? */
bool pool_is_wanted(const struct pool *p) __attribute__((nonnull));

/* The spare cell that serves best, or NULL. */
struct cell *pool_best(struct pool *p) __attribute__((nonnull));

/* End what is too old, too much or too late, and make what is missing. p->waiting and
 * p->busy_ns are this tick's. */
void pool_restock(struct pool *p, uint64_t now_ns) __attribute__((nonnull));

/* When it has to be called again. */
uint64_t pool_restock_due_ns(const struct pool *p, uint64_t now_ns) __attribute__((nonnull));
