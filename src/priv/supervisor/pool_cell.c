#include "priv/supervisor/pool_internal.h"

#include "base/log.h"

#include <string.h>
#include <sys/epoll.h>

#define FAILURE_WAIT_NS (200 * NS_PER_MS)

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
	return c->state == CELL_READY && !p->taken[pool_slot(p, c)];
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
	cell_kill(c);
	/* init's death is what cell_remove() waits for. */
	pool_watch(p, c, c->init.pidfd, EPOLLIN);
	pool_watch(p, c, c->main.pidfd, EPOLLIN);
	pool_watch(p, c, c->leaf.events_fd, EPOLLPRI);
}

void pool_evict(struct pool *p, struct cell *c)
{
	pool_unwatch(p, c->main_channel);
	cell_evict(c);
	pool_watch(p, c, c->main.pidfd, EPOLLIN);
	pool_watch(p, c, c->leaf.events_fd, EPOLLPRI);
}

void pool_build_failed(struct pool *p, struct cell *c)
{
	p->failures++;
	p->fault = c->fault;
	p->refill_ns = clock_ns() + FAILURE_WAIT_NS;
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
	if (pool_is_wanted(p) && !pool_is_old(p, c) && cell_vacate(c, p->factory)) {
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

void pool_begin(struct pool *p)
{
	struct fault f = { 0 };

	if (begin_in_vacant(p))
		return;
	for (unsigned i = 0; i < LEASE_CELLS; i++) {
		struct cell *c = &p->cells[i];

		if (!pool_is_free(p, c))
			continue;
		if (i >= p->high)
			p->high = i + 1;
		c->state = CELL_NONE;
		if (cell_create(c, p->factory, i, p->next_id++, &f) < 0)
			pool_build_failed(p, c);
		else
			pool_watch(p, c, c->init_channel, EPOLLIN);
		return;
	}
}

void pool_go_cold(struct pool *p, struct cell *c)
{
	if (cell_unforked(c, p->factory) < 0)
		pool_build_failed(p, c);
	else
		pool_watch(p, c, c->main_channel, EPOLLIN);
}

/* ---- Listened to ---- */

static void look_building(struct pool *p, struct cell *c)
{
	if (cell_hear(c, p->factory) < 0) {
		pool_build_failed(p, c);
		return;
	}
	/* init has said what it had to say; that it ends is seen by main's end. */
	if (c->state != CELL_BUILDING)
		pool_unwatch(p, c->init_channel);
	pool_watch(p, c, c->main_channel, EPOLLIN);
	if (c->state == CELL_READY)
		p->failures = 0;
}

void pool_look(struct pool *p, unsigned slot)
{
	struct cell *c = &p->cells[slot];

	if (slot >= LEASE_CELLS || p->taken[slot])
		return;
	if (pool_is_building(p, c))
		look_building(p, c);
	else if (c->state == CELL_READY && cell_hear(c, p->factory) < 0)
		pool_end(p, c); /* init or the parked process died */
	else if (c->state == CELL_VACANT && cell_is_ruin(c))
		pool_end(p, c);
	else if (c->state == CELL_DYING)
		pool_look_dying(p, c);
}
