#include "priv/supervisor/pool_internal.h"

#include "base/fault.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#define FAILURE_WAIT_NS (200 * NS_PER_MS)
#define BROKEN_FAILURES 8 /* in a row: no build will do, until one does */
#define VANISHED_MAX    6 /* in a row; in half an hour of random kills two were */

unsigned pool_slot(const struct pool *p, const struct cell *c)
{
	return (unsigned)(c - p->cells);
}

bool pool_is_free(const struct pool *p, const struct cell *c)
{
	(void)p;
	return c->state == CELL_NONE || c->state == CELL_GONE;
}

bool pool_is_building(const struct pool *p, const struct cell *c)
{
	(void)p;
	return c->state == CELL_BUILDING || c->state == CELL_ENTERING;
}

bool pool_is_spare(const struct pool *p, const struct cell *c)
{
	return c->state == CELL_READY && !p->taken[pool_slot(p, c)] && !pool_is_other(p, c);
}

bool pool_is_old(const struct pool *p, const struct cell *c)
{
	return clock_ns() - c->cage_ns >= p->settings->cell_max_age_us * NS_PER_US;
}

/* ---- Watching ---- */

void pool_watch(const struct pool *p, const struct cell *c, int fd, uint32_t events)
{
	watch_add(&p->watch, pool_slot(p, c), fd, events);
}

void pool_unwatch(const struct pool *p, int fd)
{
	watch_drop(&p->watch, fd);
}

/* v1 announces an OOM through an eventfd; v2's memory.events is always readable, and an
 * urgent event is what says that it changed. */
static uint32_t oom_events(const struct cgroup_tree *t)
{
	int memory = t->of[CGROUP_MEMORY];

	return memory >= 0 && t->h[memory].version == 1 ? EPOLLIN : EPOLLPRI;
}

void pool_watch_run(struct pool *p, const struct cell *c)
{
	pool_watch(p, c, c->main.pidfd, EPOLLIN);
	pool_watch(p, c, c->leaf.oom_fd, oom_events(p->factory->tree));
	/* cgroup.events is watched from the kill on: until then its news is of no use. */
}

/* Events of the listeners have numbers of their own, behind those of the slots. */
static void watch_refusals(const struct pool *p, const struct cell *c)
{
	watch_add(&p->watch, LEASE_CELLS + pool_slot(p, c), c->refusals.fd, EPOLLIN);
}

/* Once nobody asks for more: a listener also tells of the end of the last process. It is closed when
 * the cell is cleared: the kernel has a thread of its own free the filter then, and before that it
 * would be in the way of the answer (docs/performance.md). */
static void leave_refusals(const struct pool *p, const struct cell *c)
{
	pool_unwatch(p, c->refusals.fd);
}

void pool_answer(struct pool *p, unsigned slot)
{
	struct cell *c = &p->cells[slot];
	int r;

	if (slot >= LEASE_CELLS || c->refusals.fd < 0)
		return;
	r = refusals_hear(&c->refusals);
	if (r <= 0)
		leave_refusals(p, c);
	if (r < 0)
		refusals_close(&c->refusals);
}

static void unwatch_all(const struct pool *p, const struct cell *c)
{
	pool_unwatch(p, c->init.pidfd);
	pool_unwatch(p, c->main.pidfd);
	pool_unwatch(p, c->leaf.events_fd);
	pool_unwatch(p, c->leaf.oom_fd);
}

/* ---- Ended ---- */

void pool_end(struct pool *p, struct cell *c)
{
	pool_unwatch(p, c->main_channel);
	pool_unwatch(p, c->init_channel);
	pool_unwatch(p, c->leaf.oom_fd);
	leave_refusals(p, c);
	cell_kill(c);
	/* init's death is what cell_remove() waits for. */
	pool_watch(p, c, c->init.pidfd, EPOLLIN);
	pool_watch(p, c, c->main.pidfd, EPOLLIN);
	pool_watch(p, c, c->leaf.events_fd, EPOLLPRI);
}

void pool_evict(struct pool *p, struct cell *c)
{
	pool_unwatch(p, c->main_channel);
	leave_refusals(p, c);
	cell_evict(c);
	pool_watch(p, c, c->main.pidfd, EPOLLIN);
	pool_watch(p, c, c->leaf.events_fd, EPOLLPRI);
}

/* A process of the cell is gone and has said nothing: somebody has killed it, the host's OOM killer
 * perhaps. That is no trouble of making cells, unless it goes on. */
static bool has_vanished(struct pool *p, const struct cell *c)
{
	if (c->fault.code != -EPIPE && c->fault.code != -ESRCH)
		return false;
	return p->vanished++ < VANISHED_MAX;
}

static void count_failure(struct pool *p, const struct cell *c)
{
	if (has_vanished(p, c))
		return;
	/* Whatever is the matter with a zygote's children counts once: the next main is started cold. */
	if (!c->warm || p->failures == 0)
		p->untold += p->failures++ > 0; /* one can be bad luck */
	p->fault = c->fault;
	p->failed_ns = clock_ns();
	p->refill_ns = p->failed_ns + FAILURE_WAIT_NS;
}

bool pool_tell_failure(struct pool *p, bool is_heard)
{
	if (!is_heard)
		p->untold = 0;
	else if (p->untold > 0)
		p->untold--;
	else
		return p->failures >= BROKEN_FAILURES;
	return is_heard;
}

void pool_build_failed(struct pool *p, struct cell *c)
{
	if (pool_is_other(p, c))
		pool_order_failed(p, c);
	else
		count_failure(p, c);
	log_err("cell", "id=%lu why=%s", (unsigned long)c->id, LQ(c->fault.text));
	pool_end(p, c);
}

void pool_look_dying(struct pool *p, struct cell *c)
{
	bool empty = cell_is_empty(c);

	if (c->main.pid == 0)
		pool_unwatch(p, c->main.pidfd);
	if (!empty)
		return;
	/* cell_remove() closes what is watched; until then init's end is what is waited for. */
	unwatch_all(p, c);
	if (!pool_is_other(p, c) && pool_is_wanted(p) && !pool_is_old(p, c) &&
		cell_vacate(c, p->factory)) {
		pool_watch(p, c, c->init.pidfd, EPOLLIN);
		return;
	}
	if (!cell_remove(c, p->factory) && c->init.pid > 0)
		pool_watch(p, c, c->init.pidfd, EPOLLIN);
}

/* ---- Begun ---- */

/* A cage that stands is the shortest way to a cell. */
static bool begin_in_vacant(struct pool *p)
{
	struct fault f = { 0 };

	for (unsigned i = 0; i < p->high; i++) {
		struct cell *c = &p->cells[i];

		if (c->state != CELL_VACANT)
			continue;
		pool_unwatch(p, c->init.pidfd);
		if (cell_occupy(c, p->factory, p->next_id++, &f) < 0)
			pool_build_failed(p, c);
		else
			pool_watch(p, c, c->main_channel, EPOLLIN);
		return true;
	}
	return false;
}

struct cell *pool_free_slot(struct pool *p)
{
	for (unsigned i = 0; i < LEASE_CELLS; i++) {
		struct cell *c = &p->cells[i];

		if (!pool_is_free(p, c))
			continue;
		if (i >= p->high)
			p->high = i + 1;
		c->state = CELL_NONE;
		p->orders[i] = (struct order){ .factory = NULL };
		return c;
	}
	return NULL;
}

void pool_begin(struct pool *p)
{
	struct fault f = { 0 };
	struct cell *c;

	if (begin_in_vacant(p))
		return;
	c = pool_free_slot(p);
	if (!c)
		return;
	if (cell_create(c, p->factory, pool_slot(p, c), p->next_id++, &f) < 0)
		pool_build_failed(p, c);
	else
		pool_watch(p, c, c->init_channel, EPOLLIN);
}

void pool_go_cold(struct pool *p, struct cell *c)
{
	pool_unwatch(p, c->main_channel);
	if (cell_unforked(c, pool_factory(p, c)) < 0)
		pool_build_failed(p, c);
	else
		pool_watch(p, c, c->main_channel, EPOLLIN);
}

/* ---- Listened to ---- */

static void look_building(struct pool *p, struct cell *c)
{
	bool is_nobody_there = cell_awaits_fork(c);
	int r = cell_hear(c, pool_factory(p, c));

	/* Until a zygote has told of main it is the zygote who has its end of the channel. */
	if (r == 0 && is_nobody_there && c->state == CELL_READY)
		r = fault_say(&c->fault, -EPROTO, "cell %lu: main spoke before it was there",
			(unsigned long)c->id);
	if (r < 0) {
		pool_build_failed(p, c);
		return;
	}
	/* init has said what it had to say; that it ends is seen by main's end. */
	if (c->state != CELL_BUILDING)
		pool_unwatch(p, c->init_channel);
	pool_watch(p, c, c->main_channel, EPOLLIN);
	if (c->state == CELL_ENTERING)
		watch_refusals(p, c);
	if (c->state == CELL_READY && !pool_is_other(p, c))
		p->failures = p->untold = p->vanished = 0;
}

void pool_look(struct pool *p, unsigned slot)
{
	struct cell *c = &p->cells[slot];

	if (slot >= LEASE_CELLS || p->taken[slot])
		return;
	if (pool_is_building(p, c))
		look_building(p, c);
	else if (c->state == CELL_READY && cell_hear(c, pool_factory(p, c)) < 0)
		pool_end(p, c); /* init or the parked process died */
	else if (c->state == CELL_VACANT && cell_is_ruin(c))
		pool_end(p, c);
	else if (c->state == CELL_DYING)
		pool_look_dying(p, c);
}
