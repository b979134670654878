/* How many cells there are, and why:
 *
 *   demand   a run that waits is owed a cell: builds are begun for all of them at once, up
 *            to max-builds
 *   refill   otherwise one build at a time, and only while less than pool-size cells are
 *            ready or on their way; while programs run it waits a little, so that it does
 *            not take their CPU
 *   age      a ready cell that is too old, or of a zygote that has been replaced, is ended
 *            and refilled
 */
#include "priv/supervisor/pool.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#define REMOVE_RETRY_NS    (5 * NS_PER_MS)
#define FAILURE_WAIT_NS    (200 * NS_PER_MS)
#define ZYGOTE_WAIT_MIN_NS (200 * NS_PER_MS)
#define ZYGOTE_WAIT_MAX_NS (30 * NS_PER_S)
#define BUILD_LATE_NS      (500 * NS_PER_MS) /* it no longer counts as on its way */
#define BUILD_TIMEOUT_NS   (5 * NS_PER_S)    /* ...and is given up */
#define FORK_LATE_NS       (150 * NS_PER_MS) /* somebody waits: start it cold instead */
#define ENDING_LATE_NS     (20 * NS_PER_MS)  /* its memory is not given back in this: do not wait */
#define STRANGERS_NS       (100 * NS_PER_MS)
#define QUIET_NS           (20 * NS_PER_MS) /* several times what making a cell takes */

static bool is_building(const struct cell *c)
{
	return c->state == CELL_BUILDING || c->state == CELL_ENTERING;
}

/* Still to be counted on. */
static bool is_coming(const struct cell *c)
{
	return is_building(c) && clock_ns() - c->created_ns < BUILD_LATE_NS;
}

static bool is_free(const struct cell *c)
{
	return c->state == CELL_NONE || c->state == CELL_GONE;
}

static unsigned slot_of(const struct pool *p, const struct cell *c)
{
	return (unsigned)(c - p->cells);
}

/* ---- Watching ---- */

static void watch(const struct pool *p, uint64_t token, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.u64 = token };

	/* EEXIST: watched already. A failure otherwise is seen by the deadlines. */
	if (fd >= 0 && epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 && errno != EEXIST)
		log_err("watch", "fd=%d why=\"%s\"", fd, strerrordesc_np(errno));
}

void pool_watch(const struct pool *p, const struct cell *c, int fd, uint32_t events)
{
	watch(p, p->cell_token + slot_of(p, c), fd, events);
}

void pool_unwatch(const struct pool *p, int fd)
{
	/* Before every close: a copy of the descriptor in a child that has not reached its
	 * exec yet would keep the event alive. */
	if (fd >= 0)
		(void)epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
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

/* ---- Cells ---- */

static void end_cell(struct pool *p, struct cell *c)
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

static void unwatch_all(const struct pool *p, const struct cell *c)
{
	pool_unwatch(p, c->init.pidfd);
	pool_unwatch(p, c->main.pidfd);
	pool_unwatch(p, c->leaf.events_fd);
	pool_unwatch(p, c->leaf.oom_fd);
}

/* Is another cell wanted beside those that are ready or on their way? */
static bool is_wanted(const struct pool *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->high; i++) {
		const struct cell *c = &p->cells[i];

		n += c->state == CELL_VACANT || is_building(c) ||
		     (c->state == CELL_READY && !p->taken[i]);
	}
	return !p->closing && n < p->settings->pool_size + p->waiting;
}

static bool is_old(const struct pool *p, const struct cell *c)
{
	return clock_ns() - c->cage_ns >= p->settings->cell_max_age_us * NS_PER_US;
}

static void look_dying(struct pool *p, struct cell *c)
{
	bool empty = cell_is_empty(c);

	if (c->main.pid == 0)
		pool_unwatch(p, c->main.pidfd);
	if (!empty)
		return;
	/* cell_remove() closes what is watched; until then init's end is what is waited for. */
	unwatch_all(p, c);
	if (is_wanted(p) && !is_old(p, c) && cell_vacate(c, p->factory)) {
		pool_watch(p, c, c->init.pidfd, EPOLLIN);
		return;
	}
	if (!cell_remove(c, p->factory) && c->init.pid > 0)
		pool_watch(p, c, c->init.pidfd, EPOLLIN);
}

static void build_failed(struct pool *p, struct cell *c)
{
	p->failures++;
	p->fault = c->fault;
	p->refill_ns = clock_ns() + FAILURE_WAIT_NS;
	log_err("cell", "id=%lu why=%s", (unsigned long)c->id, LQ(c->fault.text));
	end_cell(p, c);
}

static void look_building(struct pool *p, struct cell *c)
{
	if (cell_hear(c, p->factory) < 0) {
		build_failed(p, c);
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
	if (is_building(c))
		look_building(p, c);
	else if (c->state == CELL_READY && cell_hear(c, p->factory) < 0)
		end_cell(p, c); /* init or the parked process died */
	else if (c->state == CELL_VACANT && cell_is_ruin(c))
		end_cell(p, c);
	else if (c->state == CELL_DYING)
		look_dying(p, c);
}

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
			build_failed(p, c);
		else
			pool_watch(p, c, c->main_channel, EPOLLIN);
		return true;
	}
	return false;
}

static void begin(struct pool *p)
{
	struct fault f = { 0 };

	if (begin_in_vacant(p))
		return;
	for (unsigned i = 0; i < LEASE_CELLS; i++) {
		struct cell *c = &p->cells[i];

		if (!is_free(c))
			continue;
		if (i >= p->high)
			p->high = i + 1;
		c->state = CELL_NONE;
		if (cell_create(c, p->factory, i, p->next_id++, &f) < 0)
			build_failed(p, c);
		else
			pool_watch(p, c, c->init_channel, EPOLLIN);
		return;
	}
}

/* Of the newest zygote, then the oldest. */
static bool is_better(const struct cell *a, const struct cell *b)
{
	return a->generation != b->generation ? a->generation > b->generation : a->id < b->id;
}

struct cell *pool_take(struct pool *p)
{
	struct cell *best = NULL;

	for (unsigned i = 0; i < p->high; i++) {
		struct cell *c = &p->cells[i];

		if (c->state == CELL_READY && !p->taken[i] && (!best || is_better(c, best)))
			best = c;
	}
	if (best)
		p->taken[slot_of(p, best)] = true;
	return best;
}

void pool_give_back(struct pool *p, struct cell *c)
{
	p->taken[slot_of(p, c)] = false;
	end_cell(p, c);
	look_dying(p, c);
}

/* ---- Zygotes ---- */

/* Fork from the current zygote, if it can. */
static int fork_main(void *ctx, struct cell *c, int channel_fd)
{
	struct pool *p = ctx;

	c->generation = p->zygote.generation;
	c->rehearsed = p->rehearse;
	return zygote_fork(&p->zygote, c, channel_fd, p->rehearse);
}

void pool_open(
	struct pool *p, const struct settings *settings, struct cell_factory *factory, bool warm)
{
	memset(p, 0, sizeof(*p));
	p->settings = settings;
	p->factory = factory;
	p->warm = warm;
	p->next_id = 1;
	p->rehearse = true;
	p->zygote_wait_ns = ZYGOTE_WAIT_MIN_NS;
	zygote_clear(&p->zygote);
	zygote_clear(&p->next);
	zygote_clear(&p->retired);
	for (unsigned i = 0; i < POOL_STRAYS_MAX; i++)
		process_clear(&p->strays[i]);
	if (warm) {
		factory->fork_main = fork_main;
		factory->fork_ctx = p;
	}
}

static struct cell *by_id(struct pool *p, uint64_t id)
{
	for (unsigned i = 0; i < p->high; i++) {
		if (p->cells[i].id == id && !is_free(&p->cells[i]))
			return &p->cells[i];
	}
	return NULL;
}

/* Something that is dying and that only has to be reaped: a zygote, or a child whose cell is
 * gone (it meets a closed channel). */
static void keep_stray(struct pool *p, struct process *dying)
{
	struct process s = *dying;

	process_clear(dying);
	if (s.pid <= 0)
		return;
	process_kill(&s);
	for (unsigned i = 0; i < POOL_STRAYS_MAX; i++) {
		if (p->strays[i].pid == 0) {
			p->strays[i] = s;
			return;
		}
	}
	/* Nobody claims it now: it will be reaped as a stranger. */
	process_close(&s);
}

static void reap_strays(struct pool *p)
{
	struct rusage usage;
	int status;

	for (unsigned i = 0; i < POOL_STRAYS_MAX; i++) {
		if (p->strays[i].pid > 0 && process_reap(&p->strays[i], &status, &usage) != 0)
			process_close(&p->strays[i]);
	}
}

static bool has_strays(const struct pool *p)
{
	for (unsigned i = 0; i < POOL_STRAYS_MAX; i++) {
		if (p->strays[i].pid > 0)
			return true;
	}
	return false;
}

static void on_forked(struct pool *p, struct msg *m)
{
	struct cell *c = by_id(p, m->as.FORKED.cell);
	struct process child = {
		.pid = m->as.FORKED.pid, .pidfd = take_fd(&m->fds[0]), .release_fd = -1
	};

	if (!process_is(child.pid, child.pidfd)) {
		log_err("forked", "why=\"the pidfd is not the child's\"");
		process_kill(&child);
		process_close(&child);
		return;
	}
	if (!c || !cell_awaits_fork(c)) {
		keep_stray(p, &child);
		return;
	}
	/* Only now it has shown that it is good for something. */
	p->zygote_wait_ns = ZYGOTE_WAIT_MIN_NS;
	if (cell_forked(c, p->factory, child.pid, child.pidfd) < 0)
		build_failed(p, c);
}

/* Cells that wait for a zygote which is gone, or which could not fork: start them cold. */
static void go_cold(struct pool *p, struct cell *c)
{
	if (cell_unforked(c, p->factory) < 0)
		build_failed(p, c);
	else
		pool_watch(p, c, c->main_channel, EPOLLIN);
}

static void all_go_cold(struct pool *p, uint64_t generation)
{
	for (unsigned i = 0; i < p->high; i++) {
		struct cell *c = &p->cells[i];

		if (cell_awaits_fork(c) && c->generation == generation)
			go_cold(p, c);
	}
}

static void end_zygote(struct pool *p, struct zygote *z)
{
	pool_unwatch(p, z->channel_fd);
	zygote_end(z);
	keep_stray(p, &z->process);
}

static void zygote_lost(struct pool *p, struct zygote *z)
{
	uint64_t generation = z->generation;

	log_err("zygote_lost", "generation=%lu why=%s retry_ms=%lu", (unsigned long)generation,
		LQ(z->fault.text), (unsigned long)(p->zygote_wait_ns / NS_PER_MS));
	p->lost = z->fault;
	end_zygote(p, z);
	p->zygote_retry_ns = clock_ns() + p->zygote_wait_ns;
	p->zygote_wait_ns *= 2;
	if (p->zygote_wait_ns > ZYGOTE_WAIT_MAX_NS)
		p->zygote_wait_ns = ZYGOTE_WAIT_MAX_NS;
	all_go_cold(p, generation);
}

/* The predecessor lives as long as it owes answers: the children that they tell of are ours. */
static void retire(struct pool *p)
{
	uint64_t generation = p->retired.generation;

	if (p->retired.state != ZYGOTE_ABSENT) {
		end_zygote(p, &p->retired);
		all_go_cold(p, generation);
	}
	pool_unwatch(p, p->zygote.channel_fd);
	p->retired = p->zygote;
	zygote_clear(&p->zygote);
	if (p->retired.unanswered == 0)
		end_zygote(p, &p->retired);
	else
		watch(p, p->zygote_token + 2, p->retired.channel_fd, EPOLLIN);
}

/* The successor is warm: from now on it forks. */
static void promote(struct pool *p)
{
	if (p->zygote.state != ZYGOTE_ABSENT)
		retire(p);
	pool_unwatch(p, p->next.channel_fd);
	p->zygote = p->next;
	zygote_clear(&p->next);
	p->lost = (struct fault){ 0 };
	watch(p, p->zygote_token, p->zygote.channel_fd, EPOLLIN);
}

static void on_unforked(struct pool *p, const struct msg *m)
{
	struct cell *c = by_id(p, m->as.UNFORKED.cell);

	log_warn("unforked", "why=%s", LQ(m->as.UNFORKED.fault.text));
	if (c && cell_awaits_fork(c))
		go_cold(p, c);
}

void pool_look_zygote(struct pool *p, unsigned which)
{
	struct zygote *const all[] = { &p->zygote, &p->next, &p->retired };
	struct zygote *z = all[which];
	static struct msg m;

	while (z->state != ZYGOTE_ABSENT) {
		int r = zygote_hear(z, &m);

		if (r == 0)
			return;
		if (r < 0) {
			zygote_lost(p, z);
			return;
		}
		if (m.type == MSG_WARM) {
			promote(p);
			return;
		}
		if (m.type == MSG_FORKED)
			on_forked(p, &m);
		else
			on_unforked(p, &m);
		msg_done(&m);
		if (z == &p->retired && z->unanswered == 0)
			end_zygote(p, z);
	}
}

static bool zygote_is_worn(const struct pool *p, uint64_t now)
{
	const struct zygote *z = &p->zygote;

	return z->state == ZYGOTE_WARM &&
	       (z->forks >= p->settings->zygote_max_forks ||
		       now - z->started_ns >= p->settings->zygote_max_age_us * NS_PER_US);
}

static void tick_zygotes(struct pool *p, uint64_t now)
{
	struct fault f = { 0 };
	bool wanted;

	struct zygote *const all[] = { &p->zygote, &p->next, &p->retired };

	for (unsigned i = 0; i < 3; i++) {
		struct zygote *z = all[i];

		if (zygote_is_late(z, now)) {
			(void)fault_say(&z->fault, -ETIMEDOUT, "zygote: no answer in time");
			zygote_lost(p, z);
		}
	}
	wanted = p->warm && p->next.state == ZYGOTE_ABSENT && now >= p->zygote_retry_ns &&
		 (p->zygote.state == ZYGOTE_ABSENT || zygote_is_worn(p, now));
	if (!wanted)
		return;
	if (zygote_start(&p->next, p->factory, p->settings->preload, ++p->generations, &f) < 0)
		zygote_lost(p, &p->next);
	else
		watch(p, p->zygote_token + 1, p->next.channel_fd, EPOLLIN);
}

/* ---- The clock ---- */

/* Nobody has wanted anything for a while. */
static bool is_quiet(const struct pool *p, uint64_t now)
{
	return now - p->busy_ns >= QUIET_NS;
}

static bool is_stale(const struct pool *p, const struct cell *c, uint64_t now)
{
	if (now - c->created_ns >= p->settings->cell_max_age_us * NS_PER_US)
		return true;
	/* Made before the zygote was warm, or by one that was replaced. */
	return p->zygote.state == ZYGOTE_WARM && c->generation != p->zygote.generation;
}

static unsigned count(const struct pool *p, bool (*is)(const struct cell *c))
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->high; i++)
		n += is(&p->cells[i]);
	return n;
}

/* Ready cells that nobody has taken: all, or only those that are not to be replaced. */
static unsigned ready_cells(const struct pool *p, bool fresh, uint64_t now)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->high; i++) {
		const struct cell *c = &p->cells[i];

		n += c->state == CELL_READY && !p->taken[i] && !(fresh && is_stale(p, c, now));
	}
	return n;
}

/* Made in a hurry: it would serve better if it had been prepared in full. */
static bool is_hurried(const struct pool *p, const struct cell *c)
{
	return c->state == CELL_READY && !p->taken[slot_of(p, c)] && c->warm && !c->rehearsed;
}

static bool has_hurried(const struct pool *p)
{
	for (unsigned i = 0; i < p->high; i++) {
		if (is_hurried(p, &p->cells[i]))
			return true;
	}
	return false;
}

/* One at a time, while nobody wants anything: its cage is kept for the one that comes. */
static void replace_hurried(struct pool *p, uint64_t now)
{
	if (!is_quiet(p, now) || pool_ready(p) < p->settings->pool_size)
		return;
	for (unsigned i = 0; i < p->high; i++) {
		struct cell *c = &p->cells[i];

		if (!is_hurried(p, c))
			continue;
		log_debug("hurried", "cell=%lu", (unsigned long)c->id);
		pool_unwatch(p, c->main_channel);
		cell_evict(c);
		pool_watch(p, c, c->main.pidfd, EPOLLIN);
		pool_watch(p, c, c->leaf.events_fd, EPOLLPRI);
		return;
	}
}

static void end_old_cages(struct pool *p)
{
	for (unsigned i = 0; i < p->high; i++) {
		struct cell *c = &p->cells[i];

		if (c->state == CELL_VACANT && is_old(p, c))
			end_cell(p, c);
	}
}

/* The one to part with: a stale one, else the newest. */
static struct cell *least_wanted(struct pool *p, uint64_t now)
{
	struct cell *worst = NULL;

	for (unsigned i = 0; i < p->high; i++) {
		struct cell *c = &p->cells[i];

		if (c->state != CELL_READY || p->taken[i])
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
	while (ready_cells(p, false, now) > p->settings->pool_size)
		end_cell(p, least_wanted(p, now));
}

static void give_up_late(struct pool *p, unsigned waiting, uint64_t now)
{
	for (unsigned i = 0; i < p->high; i++) {
		struct cell *c = &p->cells[i];

		if (!is_building(c))
			continue;
		if (now - c->created_ns >= BUILD_TIMEOUT_NS) {
			(void)fault_say(
				&c->fault, -ETIMEDOUT, "cell %s: not built in 5 s", c->leaf.name);
			build_failed(p, c);
		} else if (waiting > 0 && cell_awaits_fork(c) &&
			   now - c->created_ns >= FORK_LATE_NS) {
			go_cold(p, c);
		}
	}
}

/* Cages whose program has been answered for by the kernel's record of its end, and that will
 * be vacant when it is dead: cheaper to wait for than to make. */
static unsigned ending_cages(const struct pool *p, uint64_t now)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->high; i++) {
		const struct cell *c = &p->cells[i];

		n += c->state == CELL_DYING && c->main_ended && !c->main_died &&
		     now - c->killed_ns < ENDING_LATE_NS && c->runs < p->factory->runs_max &&
		     !is_old(p, c);
	}
	return n;
}

/* A queue, and a pool that is drained faster than it fills, are served better by cells that
 * are prepared less. */
static bool prepares_in_full(const struct pool *p, unsigned waiting, unsigned ready, uint64_t now)
{
	if (p->settings->always_rehearse)
		return true;
	return waiting == 0 && (2 * ready >= p->settings->pool_size || is_quiet(p, now));
}

static void make_cells(struct pool *p, unsigned waiting, unsigned running, uint64_t now)
{
	unsigned coming = count(p, is_coming) + ending_cages(p, now);
	unsigned ready = ready_cells(p, true, now);
	unsigned building = count(p, is_building), most = 2 * p->settings->max_builds;
	unsigned target = p->settings->pool_size;

	p->rehearse = prepares_in_full(p, waiting, ready, now);
	while (coming < waiting && coming < p->settings->max_builds && building < most &&
		(p->failures == 0 || now >= p->refill_ns)) {
		begin(p);
		coming++;
		building++;
	}
	/* Nothing is kept ahead before the zygote is there, if there is to be one. */
	if (p->warm && p->zygote.state != ZYGOTE_WARM && p->lost.code == 0)
		return;
	/* Making a cell costs several times what running a small program does: while one
	 * runs, a pool that is at least half full waits. */
	if (running > 0 && 2 * ready >= target)
		return;
	if (coming == 0 && building < most && ready < target && now >= p->refill_ns)
		begin(p);
}

/* ---- Children that nobody knows ---- */

static bool is_ours(pid_t pid, void *ctx)
{
	const struct pool *p = ctx;

	if (pid == p->zygote.process.pid || pid == p->next.process.pid ||
		pid == p->retired.process.pid || pid == p->other_child)
		return true;
	for (unsigned i = 0; i < POOL_STRAYS_MAX; i++) {
		if (p->strays[i].pid == pid)
			return true;
	}
	for (unsigned i = 0; i < p->high; i++) {
		if (p->cells[i].init.pid == pid || p->cells[i].main.pid == pid)
			return true;
	}
	return false;
}

/* While a cell takes long to die, it may be for such a child. */
static void reap_strangers(struct pool *p, uint64_t now)
{
	if (now < p->strangers_ns)
		return;
	p->strangers_ns = now + STRANGERS_NS;
	while (process_reap_stranger(is_ours, p) == 1)
		log_warn("stranger", "why=\"reaped a child that no cell knows\"");
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Patience grows with the wait: init usually dies in a millisecond or two. */
static uint64_t remove_retry_ns(const struct cell *c, uint64_t now)
{
	uint64_t waited = now - c->killed_ns;

	if (waited < NS_PER_S)
		return REMOVE_RETRY_NS;
	return waited < 10 * NS_PER_S ? 20 * REMOVE_RETRY_NS : NS_PER_S;
}

static uint64_t tick_dying(struct pool *p, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < p->high; i++) {
		struct cell *c = &p->cells[i];

		if (c->state == CELL_DYING && !p->taken[i])
			look_dying(p, c);
		if (c->state == CELL_DYING && !p->taken[i])
			next = earlier(next, now + remove_retry_ns(c, now));
	}
	return next;
}

/* When a zygote has to be looked at again. */
static uint64_t zygotes_due(const struct pool *p, unsigned waiting, uint64_t now)
{
	const struct zygote *const all[] = { &p->zygote, &p->next, &p->retired };
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < 3; i++) {
		if (all[i]->state != ZYGOTE_ABSENT)
			next = earlier(next, all[i]->deadline_ns);
	}
	if (waiting > 0 && p->zygote.unanswered > 0)
		next = earlier(next, now + FORK_LATE_NS);
	if (p->warm && p->zygote.state == ZYGOTE_ABSENT && p->next.state == ZYGOTE_ABSENT)
		next = earlier(next, p->zygote_retry_ns);
	return next;
}

uint64_t pool_tick(struct pool *p, unsigned waiting, unsigned running)
{
	uint64_t now = clock_ns(), next;

	p->waiting = waiting;
	if (waiting + running > 0)
		p->busy_ns = now;
	reap_strays(p);
	reap_strangers(p, now);
	tick_zygotes(p, now);
	next = tick_dying(p, now);
	drop_surplus(p, now);
	replace_hurried(p, now);
	end_old_cages(p);
	give_up_late(p, waiting, now);
	if (!p->closing)
		make_cells(p, waiting, running, now);

	next = earlier(next, zygotes_due(p, waiting, now));
	if (has_strays(p))
		next = earlier(next, now + REMOVE_RETRY_NS);
	if (pool_ready(p) < p->settings->pool_size || waiting > 0)
		next = earlier(next, p->refill_ns > now ? p->refill_ns : now + NS_PER_S);
	if (has_hurried(p))
		next = earlier(next, p->busy_ns + QUIET_NS > now ? p->busy_ns + QUIET_NS : next);
	/* Ages are looked at once a second: they are minutes. */
	return earlier(next, now + NS_PER_S);
}

void pool_close(struct pool *p)
{
	p->closing = true;
	p->warm = false;
	p->factory->fork_main = NULL;
	end_zygote(p, &p->zygote);
	end_zygote(p, &p->next);
	end_zygote(p, &p->retired);
	for (unsigned i = 0; i < p->high; i++) {
		struct cell *c = &p->cells[i];

		if (!p->taken[i] && !is_free(c) && c->state != CELL_DYING)
			end_cell(p, c);
	}
}

static bool is_alive(const struct cell *c)
{
	return !is_free(c);
}

unsigned pool_alive(const struct pool *p)
{
	return count(p, is_alive) + has_strays(p);
}

unsigned pool_ready(const struct pool *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->high; i++)
		n += p->cells[i].state == CELL_READY && !p->taken[i];
	return n;
}
