/* Cells of other languages than the one that the pool is stocked for, or with a network. Each is
 * made for one run that waits, and serves that run alone; nothing of it is kept. Its main is started
 * cold, or forked by the zygote of its image (lines.h) or, in the pool's own language, by that of its
 * stock, where there is one.
 *
 * The board says on every tick which runs wait (pool_order()); a cell whose run does not is ended.
 */
#include "priv/supervisor/pool_internal.h"

#include "base/fault.h"
#include "base/own.h"
#include "priv/launch/build.h"

#include <errno.h>
#include <sys/epoll.h>

bool pool_is_other(const struct pool *p, const struct cell *c)
{
	return p->orders[pool_slot(p, c)].factory != NULL;
}

const struct cell_factory *pool_factory(const struct pool *p, const struct cell *c)
{
	const struct cell_factory *own = p->orders[pool_slot(p, c)].factory;

	return own ? own : p->factory;
}

bool pool_has_other(const struct pool *p, uint32_t language)
{
	for (unsigned i = 0; i < p->high; i++) {
		if (p->orders[i].factory && p->orders[i].language == language &&
			!pool_is_free(p, &p->cells[i]))
			return true;
	}
	return false;
}

struct cell *pool_take_other(struct pool *p, uint64_t order)
{
	for (unsigned i = 0; i < p->high; i++) {
		if (p->orders[i].number == order && p->cells[i].state == CELL_READY &&
			!p->taken[i]) {
			p->taken[i] = true;
			return &p->cells[i];
		}
	}
	return NULL;
}

/* On its way to the run that has ordered it. */
static bool is_coming(const struct pool *p, unsigned slot)
{
	const struct cell *c = &p->cells[slot];

	return !p->taken[slot] && (pool_is_building(p, c) || c->state == CELL_READY);
}

static unsigned building(const struct pool *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->high; i++)
		n += p->orders[i].factory && pool_is_building(p, &p->cells[i]);
	return n;
}

static void fail(struct pool *p, uint64_t order, const struct fault *f)
{
	p->failed_order = order;
	p->failed_why = *f;
}

int pool_fork_other(struct pool *p, struct cell *c, int channel_fd)
{
	const struct order *o = &p->orders[pool_slot(p, c)];

	/* Somebody waits: to prepare in full would take him longer. */
	if (o->language > 0)
		return lines_fork(&p->lines, o->language, c, channel_fd,
			p->settings->always_rehearse, clock_ns());
	if (p->failures > 0 || o->number == p->cold_order)
		return -EAGAIN;
	return lineage_fork(&p->lineage, c, channel_fd, p->settings->always_rehearse);
}

void pool_order_failed(struct pool *p, const struct cell *c)
{
	const struct order *o = &p->orders[pool_slot(p, c)];

	/* Whatever is the matter with a zygote's child: the next main is started cold. */
	if (c->warm && o->language > 0)
		lines_shun(&p->lines, o->language, clock_ns());
	else if (c->warm)
		p->cold_order = o->number;
	/* Somebody has killed a process of it: another one is made. */
	else if (c->fault.code != -EPIPE && c->fault.code != -ESRCH)
		fail(p, o->number, &c->fault);
}

/* The mount of a build for the cell in `slot`: made anew for each compiler, which owns it. */
static int take_build(struct pool *p, const struct pool_wish *w, const struct cell_factory *factory,
	unsigned slot, int *ret_fd, struct fault *f)
{
	const struct view_scratch how = {
		.bytes = factory->usual.memory_bytes,
		.inodes = factory->workspace_inodes,
		.uid = cell_program_uid(factory->uid_base, slot),
	};
	unsigned number = builds_number(&p->builds, w->build);
	int r;

	if (w->compiler) {
		r = builds_drop(&p->builds, w->build);
		if (r < 0)
			return fault_set(f, r, "remove what was built there before");
		if (build_make(number, &how, f) < 0)
			return f->code;
		w->build->made = true;
	}
	return build_mount(number, w->compiler, ret_fd, f);
}

static int create(struct pool *p, struct cell *c, const struct pool_wish *w,
	const struct cell_factory *factory, struct fault *f)
{
	cleanup_fd int build = -1;
	int r = 0;

	if (w->build)
		r = take_build(p, w, factory, pool_slot(p, c), &build, f);
	if (r < 0) {
		fail(p, w->order, f);
		return r;
	}
	r = cell_create(c, factory, pool_slot(p, c), p->next_id++, f);
	c->build_fd = take_fd(&build);
	c->builds = w->compiler;
	if (r < 0)
		pool_build_failed(p, c);
	return r;
}

static void begin(struct pool *p, const struct pool_wish *w)
{
	struct fault f = { 0 };
	enum factory_kind kind = w->compiler  ? FACTORY_COMPILER
				 : w->network ? FACTORY_NETWORK
					      : FACTORY_PROGRAM;
	const struct cell_factory *factory = factories_get(p->factories, w->language, kind, &f);
	struct cell *c = factory ? pool_free_slot(p) : NULL;

	if (!factory)
		fail(p, w->order, &f);
	if (!c)
		return;
	p->orders[pool_slot(p, c)] = (struct order){ factory, w->language, w->order, true };
	if (factory->fork_main && w->language > 0)
		lines_want(&p->lines, w->language, factory,
			factories_preload(p->factories, w->language), clock_ns());
	if (create(p, c, w, factory, &f) == 0)
		pool_watch(p, c, c->init_channel, EPOLLIN);
}

void pool_order(struct pool *p, const struct pool_wish *w)
{
	for (unsigned i = 0; i < p->high; i++) {
		if (p->orders[i].number == w->order && is_coming(p, i)) {
			p->orders[i].wanted = true;
			return;
		}
	}
	if (!p->closing && building(p) < p->settings->max_builds)
		begin(p, w);
}

void pool_drop_orders(struct pool *p)
{
	for (unsigned i = 0; i < p->high; i++) {
		struct order *o = &p->orders[i];

		if (o->factory && !o->wanted && is_coming(p, i))
			pool_end(p, &p->cells[i]);
		o->wanted = false;
	}
}
