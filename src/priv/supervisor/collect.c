#include "priv/supervisor/collect.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>

/* The client asks at once or not at all. */
#define ASK_NS        (5 * NS_PER_S)
/* A collector stops reading in time (FILES_TIME_US), names what is left, and waits for a client
 * that reads; then its time is up. */
#define END_NS        (FILES_TIME_US * NS_PER_US + 10 * NS_PER_S)
/* One that was killed is looked at again. */
#define KILL_RETRY_NS (200 * NS_PER_MS)

static void clear(struct collection *c)
{
	memset(c, 0, sizeof(*c));
	c->code_fd = -1;
	collector_clear(&c->collector);
}

void collects_init(struct collects *cs)
{
	memset(cs, 0, sizeof(*cs));
	for (unsigned i = 0; i < LEASE_CELLS; i++)
		clear(&cs->slots[i]);
}

static unsigned slot_of(const struct collects *cs, const struct cell *cell)
{
	return (unsigned)(cell - cs->pool->cells);
}

void collects_keep(
	struct collects *cs, struct cell *cell, const struct msg_submit *submit, int code_fd)
{
	struct collection *c = &cs->slots[slot_of(cs, cell)];

	clear(c);
	c->cell = cell;
	c->submit = *submit;
	c->code_fd = code_fd;
	c->due_ns = clock_ns() + ASK_NS;
	cs->count++;
	/* Its ends are the pool's to see, once it has it back. */
	pool_unwatch(cs->pool, cell->main.pidfd);
	pool_unwatch(cs->pool, cell->leaf.events_fd);
	pool_unwatch(cs->pool, cell->leaf.oom_fd);
}

/* The cell goes back, whether or not anything was collected. */
static void finish(struct collects *cs, struct collection *c)
{
	struct cell *cell = take_ptr(c->cell);

	drop_fd(&c->code_fd);
	collector_close(&c->collector);
	clear(c);
	cs->count--;
	pool_give_back(cs->pool, cell);
}

/* One that is being ended may be of a client before this one, which had the same numbers. */
static struct collection *find(struct collects *cs, uint64_t run)
{
	for (unsigned i = 0; cs->count > 0 && i < cs->pool->high; i++) {
		struct collection *c = &cs->slots[i];

		if (c->cell && !c->ending && c->submit.run == run)
			return c;
	}
	return NULL;
}

/* Reap a collector that has ended: true when there is none any more. */
static bool is_over(struct collects *cs, struct collection *c)
{
	struct fault f;

	if (!collector_reap(&c->collector, &f))
		return false;
	if (f.code < 0 && !c->ending)
		log_err("collect", "run=%lu why=%s", (unsigned long)c->submit.run, LQ(f.text));
	pool_unwatch(cs->pool, c->collector.process.pidfd);
	return true;
}

static void end(struct collects *cs, struct collection *c)
{
	c->ending = true;
	c->due_ns = clock_ns() + KILL_RETRY_NS;
	collector_kill(&c->collector);
	if (is_over(cs, c))
		finish(cs, c);
}

static bool is_pipe_to_write(int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_PATH) && (flags & O_ACCMODE) == O_WRONLY &&
	       fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

static void begin(struct collects *cs, struct collection *c, int pipe_fd)
{
	const struct settings *s = cs->settings;
	const struct files_caps caps = {
		.count = s->artifact_files,
		.file_bytes = s->artifact_file_bytes,
		.total_bytes = s->artifact_bytes,
		.time_us = FILES_TIME_US,
	};
	const struct collector_order order = {
		.submit = &c->submit, .caps = &caps, .code_fd = c->code_fd, .pipe_fd = pipe_fd
	};
	struct fault f = { 0 };

	c->begun = true;
	c->due_ns = clock_ns() + END_NS;
	if (collector_start(&c->collector, pool_factory(cs->pool, c->cell), c->cell, &order, &f) <
		0) {
		log_err("collect", "run=%lu why=%s", (unsigned long)c->submit.run, LQ(f.text));
		end(cs, c);
		return;
	}
	pool_watch(cs->pool, c->cell, c->collector.process.pidfd, EPOLLIN);
}

int collects_begin(struct collects *cs, struct msg *m, const char **ret_rule)
{
	struct collection *c = find(cs, m->as.COLLECT.run);
	cleanup_fd int pipe_fd = take_fd(&m->fds[0]);

	if (!is_pipe_to_write(pipe_fd)) {
		*ret_rule = "what to collect into is not the write end of a pipe";
		return -EPROTO;
	}
	if (c && c->begun) {
		*ret_rule = "a run's files are collected once";
		return -EPROTO;
	}
	if (c)
		begin(cs, c, pipe_fd);
	return 0;
}

bool collects_have(struct collects *cs, uint64_t run)
{
	return find(cs, run) != NULL;
}

void collects_cancel(struct collects *cs, uint64_t run)
{
	struct collection *c = find(cs, run);

	if (c)
		end(cs, c);
}

void collects_cancel_all(struct collects *cs)
{
	for (unsigned i = 0; cs->count > 0 && i < cs->pool->high; i++) {
		if (cs->slots[i].cell)
			end(cs, &cs->slots[i]);
	}
}

bool collects_look(struct collects *cs, unsigned slot)
{
	struct collection *c;

	if (cs->count == 0 || slot >= LEASE_CELLS || !cs->slots[slot].cell)
		return false;
	c = &cs->slots[slot];
	if (c->begun && is_over(cs, c))
		finish(cs, c);
	return true;
}

uint64_t collects_tick(struct collects *cs, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; cs->count > 0 && i < cs->pool->high; i++) {
		struct collection *c = &cs->slots[i];

		if (c->cell && now_ns >= c->due_ns) {
			if (!c->ending)
				log_warn("collect", "run=%lu why=\"%s\"",
					(unsigned long)c->submit.run,
					c->begun ? "it took too long" : "nobody asked");
			end(cs, c);
		}
		if (c->cell)
			next = clock_earlier(next, c->due_ns);
	}
	return next;
}

bool collects_know(const struct collects *cs, pid_t pid)
{
	for (unsigned i = 0; cs->count > 0 && i < cs->pool->high; i++) {
		if (cs->slots[i].cell && cs->slots[i].collector.process.pid == pid)
			return true;
	}
	return false;
}
