/* How many cells there are, and why:
 *
 *   demand   a run that waits is owed a cell: builds are begun for all of them at once, up
 *            to max-builds
 *   refill   only while less than pool-size cells are ready or on their way: up to
 *            max-builds while less than half of it is there, then one at a time, and none
 *            while programs run, so that it does not take their CPU
 *   age      a ready cell that is too old, or of a zygote that has been replaced, is ended
 *            and refilled
 */
#include "priv/supervisor/pool_internal.h"

#include "base/fault.h"
#include "base/log.h"

#include <errno.h>

#define BUILD_LATE_NS    (500 * NS_PER_MS) /* it no longer counts as on its way */
#define BUILD_TIMEOUT_NS (5 * NS_PER_S)    /* ...and is given up */
#define FORK_LATE_NS     (150 * NS_PER_MS) /* somebody waits: start it cold instead */
#define ENDING_LATE_NS   (20 * NS_PER_MS)  /* its memory is not given back in this: do not wait */
#define QUIET_NS         (20 * NS_PER_MS)  /* several times what making a cell takes */

/* ---- Which is which ---- */

/* Still to be counted on. */
static bool is_coming(const struct pool *p, const struct cell *c)
{
	return pool_is_building(p, c) && clock_ns() - c->created_ns < BUILD_LATE_NS;
}

/* Nobody has wanted anything for a while. */
static bool is_quiet(const struct pool *p, uint64_t now)
{
	return now - p->busy_ns >= QUIET_NS;
}

static bool is_stale(const struct pool *p, const struct cell *c, uint64_t now)
{
	if (now - c->created_ns >= p->settings->cell_max_age_us * NS_PER_US || pool_is_old(p, c))
		return true;
	/* Made before the zygote was warm, or by one that was replaced. */
	return lineage_is_warm(&p->lineage) && c->generation != p->lineage.current.generation;
}

/* Made in a hurry: it would serve better if it had been prepared in full. */
static bool is_hurried(const struct pool *p, const struct cell *c)
{
	return pool_is_spare(p, c) && c->warm && !c->rehearsed;
}

/* Of the newest zygote, then the oldest. */
static bool is_better(const struct cell *a, const struct cell *b)
{
	return a->generation != b->generation ? a->generation > b->generation : a->id < b->id;
}

struct cell *pool_best(struct pool *p)
{
	struct cell *best = NULL;

	for (unsigned i = 0; i < p->high; i++) {
		struct cell *c = &p->cells[i];

		if (pool_is_spare(p, c) && (!best || is_better(c, best)))
			best = c;
	}
	return best;
}

/* ---- How many ---- */

unsigned pool_count(const struct pool *p, bool (*is)(const struct pool *p, const struct cell *c))
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->high; i++)
		n += !pool_is_other(p, &p->cells[i]) && is(p, &p->cells[i]);
	return n;
}

static bool is_vacant(const struct pool *p, const struct cell *c)
{
	(void)p;
	return c->state == CELL_VACANT;
}

static bool is_there_or_coming(const struct pool *p, const struct cell *c)
{
	return c->state == CELL_VACANT || pool_is_building(p, c) || pool_is_spare(p, c);
}

/* As many as the pool holds when it is full, and one for each run: while there are runs cells
 * are taken as fast as they come back. */
bool pool_is_wanted(const struct pool *p)
{
	return !p->closing &&
	       pool_count(p, is_there_or_coming) < p->settings->pool_size + p->waiting + p->running;
}

/* Spare cells that are not to be replaced. */
static unsigned fresh_cells(const struct pool *p, uint64_t now)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->high; i++) {
		const struct cell *c = &p->cells[i];

		n += pool_is_spare(p, c) && !is_stale(p, c, now);
	}
	return n;
}

/* Cages whose program has been answered for by the kernel's record of its end, and that will
 * be vacant when it is dead: cheaper to wait for than to make. */
static unsigned ending_cages(const struct pool *p, uint64_t now)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->high; i++) {
		const struct cell *c = &p->cells[i];

		n += c->state == CELL_DYING && c->main_ended && !c->main_died &&
		     !pool_is_other(p, c) && now - c->killed_ns < ENDING_LATE_NS &&
		     c->runs < p->factory->runs_max && !pool_is_old(p, c);
	}
	return n;
}

/* ---- What goes ---- */

/* The one to part with: a stale one, else the newest. */
static struct cell *least_wanted(struct pool *p, uint64_t now)
{
	struct cell *worst = NULL;

	for (unsigned i = 0; i < p->high; i++) {
		struct cell *c = &p->cells[i];

		if (!pool_is_spare(p, c))
			continue;
		if (is_stale(p, c, now))
			return c;
		if (!worst || c->id > worst->id)
			worst = c;
	}
	return worst;
}

/* A stale cell's replacement is made first: it goes only when the pool is full without it.
 * Others are too many when their builds came late, so that more were begun, or when the run
 * that they were made for was cancelled. */
static void drop_surplus(struct pool *p, uint64_t now)
{
	while (pool_ready(p) > p->settings->pool_size)
		pool_end(p, least_wanted(p, now));
}

/* One at a time, while nobody wants anything: its cage is kept for the one that comes. */
static void replace_hurried(struct pool *p, uint64_t now)
{
	if (!is_quiet(p, now) || !lineage_is_warm(&p->lineage) ||
		pool_ready(p) < p->settings->pool_size)
		return;
	for (unsigned i = 0; i < p->high; i++) {
		struct cell *c = &p->cells[i];

		if (!is_hurried(p, c))
			continue;
		log_debug("hurried", "cell=%lu", (unsigned long)c->id);
		pool_evict(p, c);
		return;
	}
}

/* Vacant cages that are too old, or that nobody wants now that it is quiet. */
static void end_cages(struct pool *p, uint64_t now)
{
	for (unsigned i = 0; i < p->high; i++) {
		struct cell *c = &p->cells[i];

		if (c->state != CELL_VACANT)
			continue;
		if (pool_is_old(p, c) || (is_quiet(p, now) && pool_count(p, is_there_or_coming) >
								      p->settings->pool_size))
			pool_end(p, c);
	}
}

static void give_up_late(struct pool *p, uint64_t now)
{
	for (unsigned i = 0; i < p->high; i++) {
		struct cell *c = &p->cells[i];

		if (!pool_is_building(p, c))
			continue;
		if (now - c->created_ns >= BUILD_TIMEOUT_NS) {
			(void)fault_say(&c->fault, -ETIMEDOUT, "cell %lu: not built in 5 s",
				(unsigned long)c->id);
			pool_build_failed(p, c);
		} else if ((p->waiting > 0 || pool_is_other(p, c)) && cell_awaits_fork(c) &&
			   now - c->created_ns >= FORK_LATE_NS) {
			pool_go_cold(p, c);
		}
	}
}

/* ---- What comes ---- */

/* A queue, and a pool that is drained faster than it fills, are served better by cells that
 * are prepared less. */
static bool prepares_in_full(const struct pool *p, unsigned ready, uint64_t now)
{
	if (p->settings->always_rehearse)
		return true;
	return p->waiting == 0 && (2 * ready >= p->settings->pool_size || is_quiet(p, now));
}

/* A cage that a program has, or will get. */
static bool is_of_use(const struct pool *p, const struct cell *c, uint64_t now)
{
	if (pool_is_other(p, c))
		return false;
	if (pool_is_spare(p, c))
		return !is_stale(p, c, now);
	if (pool_is_building(p, c))
		return is_coming(p, c);
	if (c->state == CELL_DYING)
		return !c->doomed && c->runs < p->factory->runs_max && !pool_is_old(p, c);
	return !pool_is_free(p, c);
}

/* There are as many as the pool and the runs want: one will be vacant soon, and to make another
 * would only mean to end one. */
static bool has_cages(const struct pool *p, uint64_t now)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->high; i++)
		n += is_of_use(p, &p->cells[i], now);
	return pool_count(p, is_vacant) == 0 && n >= p->settings->pool_size + p->running;
}

/* Making a cell costs several times what running a small program does: while one runs, a
 * pool that is at least half full waits. */
static void refill(struct pool *p, unsigned ready, unsigned coming, unsigned building, uint64_t now)
{
	const unsigned most = 2 * p->settings->max_builds;
	const unsigned target = p->settings->pool_size;
	unsigned at_once = p->settings->max_builds;

	if (2 * ready >= target)
		at_once = p->running > 0 ? 0 : 1;
	for (; coming < at_once && ready + coming < target && building < most &&
		now >= p->refill_ns && !has_cages(p, now);
		coming++, building++)
		pool_begin(p);
}

static void make_cells(struct pool *p, uint64_t now)
{
	unsigned coming = pool_count(p, is_coming) + ending_cages(p, now);
	unsigned ready = fresh_cells(p, now);
	unsigned building = pool_count(p, pool_is_building), most = 2 * p->settings->max_builds;

	p->rehearse = prepares_in_full(p, ready, now);
	while (coming < p->waiting && coming < p->settings->max_builds && building < most &&
		(p->failures == 0 || now >= p->refill_ns)) {
		pool_begin(p);
		coming++;
		building++;
	}
	/* Nothing is kept ahead before the zygote is there, if there is to be one. */
	if (!p->lineage.wanted || lineage_is_warm(&p->lineage) || p->lineage.lost.code != 0)
		refill(p, ready, coming, building, now);
}

void pool_restock(struct pool *p, uint64_t now_ns)
{
	drop_surplus(p, now_ns);
	replace_hurried(p, now_ns);
	end_cages(p, now_ns);
	give_up_late(p, now_ns);
	if (!p->closing)
		make_cells(p, now_ns);
}

/* By a run that has a cell made for it. */
static bool is_fork_awaited(const struct pool *p)
{
	for (unsigned i = 0; i < p->high; i++)
		if (pool_is_other(p, &p->cells[i]) && cell_awaits_fork(&p->cells[i]))
			return true;
	return false;
}

uint64_t pool_restock_due_ns(const struct pool *p, uint64_t now_ns)
{
	/* Ages are looked at once a second: they are minutes. */
	uint64_t next = now_ns + NS_PER_S;

	if (((p->waiting > 0 || is_fork_awaited(p)) && p->lineage.current.unanswered > 0) ||
		lines_owe(&p->lines))
		next = clock_earlier(next, now_ns + FORK_LATE_NS);
	if ((pool_ready(p) < p->settings->pool_size || p->waiting > 0) && p->refill_ns > now_ns)
		next = clock_earlier(next, p->refill_ns);
	if (p->busy_ns + QUIET_NS > now_ns &&
		pool_count(p, is_hurried) + pool_count(p, is_vacant) > 0)
		next = clock_earlier(next, p->busy_ns + QUIET_NS);
	return next;
}
