/* The pool as its users see it. One cell's way through it is in pool_cell.c; how many there
 * are, and why, in pool_stock.c; who forks their mains in lineage.c. */
#include "priv/supervisor/pool.h"

#include "base/log.h"
#include "priv/supervisor/pool_internal.h"

#include <errno.h>
#include <string.h>

/* ---- Taken, given back ---- */

struct cell *pool_take(struct pool *p)
{
	struct cell *best = pool_best(p);

	if (best)
		p->taken[pool_slot(p, best)] = true;
	return best;
}

void pool_give_back(struct pool *p, struct cell *c)
{
	p->taken[pool_slot(p, c)] = false;
	pool_end(p, c);
	pool_look_dying(p, c);
}

unsigned pool_ready(const struct pool *p)
{
	return pool_count(p, pool_is_spare);
}

unsigned pool_alive(const struct pool *p)
{
	unsigned n = reaper_is_busy(&p->reaper);

	for (unsigned i = 0; i < p->high; i++)
		n += !pool_is_free(p, &p->cells[i]);
	return n;
}

/* ---- The zygotes' answers ---- */

static int fork_main(void *ctx, struct cell *c, int channel_fd)
{
	struct pool *p = ctx;

	if (pool_is_other(p, c))
		return pool_fork_other(p, c, channel_fd);
	/* A zygote's child broke: what comes next must not hang on zygotes. It is replaced when it
	 * is not needed. */
	if (p->failures > 0) {
		c->generation = 0;
		c->rehearsed = false;
		return -EAGAIN;
	}
	return lineage_fork(&p->lineage, c, channel_fd, p->rehearse);
}

/* Does somebody reap it? */
static bool is_ours(pid_t pid, void *ctx)
{
	const struct pool *p = ctx;

	if (pid == p->other_child || lineage_knows(&p->lineage, pid) ||
		lines_know(&p->lines, pid) || reaper_knows(&p->reaper, pid) ||
		(p->claims && p->claims(p->claims_ctx, pid)))
		return true;
	for (unsigned i = 0; i < p->high; i++) {
		if (p->cells[i].init.pid == pid || p->cells[i].main.pid == pid)
			return true;
	}
	return false;
}

/* Only whoever was asked for its main may answer. */
static struct cell *awaiting(struct pool *p, uint64_t generation, uint64_t id)
{
	for (unsigned i = 0; i < p->high; i++) {
		struct cell *c = &p->cells[i];

		if (c->id == id && !pool_is_free(p, c))
			return cell_awaits_fork(c) && c->generation == generation ? c : NULL;
	}
	return NULL;
}

static bool on_forked(void *ctx, uint64_t generation, uint64_t id, struct process *child)
{
	struct pool *p = ctx;
	struct cell *c = awaiting(p, generation, id);

	if (is_ours(child->pid, p)) {
		/* A child all right, but somebody's: the front, an init, another cell's main. */
		log_err("forked", "why=\"the child is not a new one\"");
		process_close(child);
		return false;
	}
	if (!c) {
		/* Its cell is gone: it meets a closed channel. */
		reaper_keep(&p->reaper, child);
		return false;
	}
	if (cell_forked(c, pool_factory(p, c), child->pid, child->pidfd) < 0)
		pool_build_failed(p, c);
	return true;
}

static void on_unforked(void *ctx, uint64_t generation, uint64_t id)
{
	struct pool *p = ctx;
	struct cell *c = awaiting(p, generation, id);

	if (c)
		pool_go_cold(p, c);
}

static void on_lost(void *ctx, uint64_t generation)
{
	struct pool *p = ctx;

	for (unsigned i = 0; i < p->high; i++) {
		struct cell *c = &p->cells[i];

		if (cell_awaits_fork(c) && c->generation == generation)
			pool_go_cold(p, c);
	}
}

/* ---- The clock ---- */

/* Patience grows with the wait: init usually dies in a millisecond or two. */
static uint64_t remove_retry_ns(const struct cell *c, uint64_t now)
{
	uint64_t waited = now > c->killed_ns ? now - c->killed_ns : 0;

	if (waited < NS_PER_S)
		return POOL_REMOVE_RETRY_NS;
	return waited < 10 * NS_PER_S ? 20 * POOL_REMOVE_RETRY_NS : NS_PER_S;
}

static uint64_t tick_dying(struct pool *p, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < p->high; i++) {
		struct cell *c = &p->cells[i];

		if (c->state == CELL_DYING && !p->taken[i])
			pool_look_dying(p, c);
		if (c->state == CELL_DYING && !p->taken[i])
			next = clock_earlier(next, now + remove_retry_ns(c, now));
	}
	return next;
}

uint64_t pool_tick(struct pool *p, unsigned waiting, unsigned running)
{
	uint64_t now = clock_ns(), next;
	bool left; /* that somebody has built in */

	p->waiting = waiting;
	p->running = running;
	if (waiting + running > 0)
		p->busy_ns = now;
	reaper_tick(&p->reaper, now, is_ours, p);
	lineage_tick(&p->lineage, now);
	lines_tick(&p->lines, now);
	next = tick_dying(p, now);
	pool_drop_orders(p);
	pool_restock(p, now);

	left = builds_tick(&p->builds);
	if (left || reaper_is_busy(&p->reaper))
		next = clock_earlier(next, now + POOL_REMOVE_RETRY_NS);
	next = clock_earlier(next, lineage_due_ns(&p->lineage));
	next = clock_earlier(next, lines_due_ns(&p->lines));
	return clock_earlier(next, pool_restock_due_ns(p, now));
}

/* ---- From the beginning to the end ---- */

void pool_open(
	struct pool *p, const struct settings *settings, struct cell_factory *factory, bool warm)
{
	const struct lineage_owner owner = {
		.settings = settings,
		.factory = factory,
		.preload = settings->preload,
		.generations = &p->generations,
		.reaper = &p->reaper,
		.ctx = p,
		.forked = on_forked,
		.unforked = on_unforked,
		.lost = on_lost,
	};

	memset(p, 0, sizeof(*p));
	p->settings = settings;
	p->factory = factory;
	p->next_id = 1;
	p->rehearse = true;
	reaper_clear(&p->reaper);
	lineage_open(&p->lineage, &owner, warm);
	lines_open(&p->lines, &owner);
	if (warm) {
		factory->fork_main = fork_main;
		factory->fork_ctx = p;
	}
}

void pool_close(struct pool *p)
{
	p->closing = true;
	p->factory->fork_main = NULL;
	lineage_close(&p->lineage);
	lines_close(&p->lines);
	for (unsigned i = 0; i < p->high; i++) {
		struct cell *c = &p->cells[i];

		if (!p->taken[i] && !pool_is_free(p, c) && c->state != CELL_DYING)
			pool_end(p, c);
	}
}
