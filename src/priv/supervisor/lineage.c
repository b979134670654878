#include "priv/supervisor/lineage.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/own.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#define RETRY_WAIT_MIN_NS (200 * NS_PER_MS)
#define RETRY_WAIT_MAX_NS (30 * NS_PER_S)
#define HEARD_MAX         64 /* messages in one go: a zygote owes fewer answers */

/* Numbers of the three, for lineage_look() and to be watched by. */
enum {
	CURRENT,
	NEXT,
	RETIRED
};
_Static_assert(RETIRED + 1 == LINEAGE_ZYGOTES, "each has a number");

void lineage_open(struct lineage *l, const struct lineage_owner *owner, bool wanted)
{
	*l = (struct lineage){
		.owner = *owner, .wanted = wanted, .retry_wait_ns = RETRY_WAIT_MIN_NS
	};
	zygote_clear(&l->current);
	zygote_clear(&l->next);
	zygote_clear(&l->retired);
}

int lineage_fork(struct lineage *l, struct cell *c, int channel_fd, bool rehearse)
{
	c->generation = l->current.generation;
	c->rehearsed = rehearse;
	return zygote_fork(&l->current, c, channel_fd, rehearse);
}

bool lineage_is_warm(const struct lineage *l)
{
	return l->current.state == ZYGOTE_WARM;
}

bool lineage_knows(const struct lineage *l, pid_t pid)
{
	return pid == l->current.process.pid || pid == l->next.process.pid ||
	       pid == l->retired.process.pid;
}

/* ---- One goes, another comes ---- */

static void end(struct lineage *l, struct zygote *z)
{
	watch_drop(&l->watch, z->channel_fd);
	zygote_end(z);
	reaper_keep(l->owner.reaper, &z->process);
}

static void lose(struct lineage *l, struct zygote *z)
{
	uint64_t generation = z->generation;

	log_err("zygote_lost", "generation=%lu runtime=%s why=%s retry_ms=%lu",
		(unsigned long)generation, LQ(l->owner.factory->runtime->name), LQ(z->fault.text),
		(unsigned long)(l->retry_wait_ns / NS_PER_MS));
	l->lost = z->fault;
	l->spoiled |= z->preloading[0] != '\0';
	end(l, z);
	l->retry_ns = clock_ns() + l->retry_wait_ns;
	l->retry_wait_ns *= 2;
	if (l->retry_wait_ns > RETRY_WAIT_MAX_NS)
		l->retry_wait_ns = RETRY_WAIT_MAX_NS;
	l->owner.lost(l->owner.ctx, generation);
}

/* The predecessor lives as long as it owes answers: the children that they tell of are ours. */
static void retire(struct lineage *l)
{
	uint64_t generation = l->retired.generation;

	if (l->retired.state != ZYGOTE_ABSENT) {
		end(l, &l->retired);
		l->owner.lost(l->owner.ctx, generation);
	}
	watch_drop(&l->watch, l->current.channel_fd);
	l->retired = l->current;
	zygote_clear(&l->current);
	if (l->retired.unanswered == 0)
		end(l, &l->retired);
	else
		watch_add(&l->watch, RETIRED, l->retired.channel_fd, EPOLLIN);
}

/* The successor is warm: from now on it forks. */
static void promote(struct lineage *l)
{
	if (l->current.state != ZYGOTE_ABSENT)
		retire(l);
	watch_drop(&l->watch, l->next.channel_fd);
	l->current = l->next;
	zygote_clear(&l->next);
	l->lost = (struct fault){ 0 };
	watch_add(&l->watch, CURRENT, l->current.channel_fd, EPOLLIN);
}

/* ---- What a zygote says ---- */

static void on_forked(struct lineage *l, uint64_t generation, struct msg *m)
{
	struct process child = {
		.pid = m->as.FORKED.pid, .pidfd = take_fd(&m->fds[0]), .release_fd = -1
	};

	/* Whose it is instead is not known: it is none of ours to kill. */
	if (!process_is_child(child.pid, child.pidfd)) {
		log_err("forked", "why=\"the pidfd is not that of a child with this number\"");
		process_close(&child);
		return;
	}
	/* Only now it has shown that it is good for something. */
	if (l->owner.forked(l->owner.ctx, generation, m->as.FORKED.cell, &child))
		l->retry_wait_ns = RETRY_WAIT_MIN_NS;
}

static void on_unforked(struct lineage *l, uint64_t generation, const struct msg *m)
{
	log_warn("unforked", "why=%s", LQ(m->as.UNFORKED.fault.text));
	l->owner.unforked(l->owner.ctx, generation, m->as.UNFORKED.cell);
}

void lineage_look(struct lineage *l, unsigned which)
{
	struct zygote *const all[] = {
		[CURRENT] = &l->current, [NEXT] = &l->next, [RETIRED] = &l->retired
	};
	struct zygote *z = all[which];
	static struct msg m;

	/* What is left is told of again; others want their turn. */
	for (unsigned i = 0; i < HEARD_MAX && z->state != ZYGOTE_ABSENT; i++) {
		int r = zygote_hear(z, &m);

		if (r == 0)
			return;
		if (r < 0) {
			lose(l, z);
			return;
		}
		if (m.type == MSG_WARM) {
			promote(l);
			return;
		}
		if (m.type == MSG_FORKED)
			on_forked(l, z->generation, &m);
		else if (m.type == MSG_UNFORKED)
			on_unforked(l, z->generation, &m);
		msg_done(&m);
		if (z == &l->retired && z->unanswered == 0)
			end(l, z);
	}
}

/* ---- The clock ---- */

/* The current one, if there is one: it is warm since promote(). */
static bool is_worn(const struct lineage *l, uint64_t now)
{
	const struct settings *s = l->owner.settings;
	const struct zygote *z = &l->current;

	return z->forks >= s->zygote_max_forks ||
	       now - z->started_ns >= s->zygote_max_age_us * NS_PER_US;
}

static void lose_if_late(struct lineage *l, struct zygote *z, uint64_t now)
{
	if (zygote_is_late(z, now))
		lose(l, z);
}

void lineage_tick(struct lineage *l, uint64_t now_ns)
{
	const struct lineage_owner *o = &l->owner;
	struct fault f = { 0 };

	lose_if_late(l, &l->current, now_ns);
	lose_if_late(l, &l->next, now_ns);
	lose_if_late(l, &l->retired, now_ns);
	if (!l->wanted || l->next.state != ZYGOTE_ABSENT || now_ns < l->retry_ns)
		return;
	if (l->current.state != ZYGOTE_ABSENT && !is_worn(l, now_ns))
		return;
	if (zygote_start(&l->next, o->factory, o->preload, ++*o->generations, &f) < 0)
		lose(l, &l->next);
	else
		watch_add(&l->watch, NEXT, l->next.channel_fd, EPOLLIN);
}

uint64_t lineage_due_ns(const struct lineage *l)
{
	const struct zygote *const all[] = { &l->current, &l->next, &l->retired };
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
		if (all[i]->state != ZYGOTE_ABSENT)
			next = clock_earlier(next, all[i]->deadline_ns);
	}
	if (l->wanted && l->current.state == ZYGOTE_ABSENT && l->next.state == ZYGOTE_ABSENT)
		next = clock_earlier(next, l->retry_ns);
	return next;
}

void lineage_close(struct lineage *l)
{
	l->wanted = false;
	end(l, &l->current);
	end(l, &l->next);
	end(l, &l->retired);
}
