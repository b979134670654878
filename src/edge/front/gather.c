#include "edge/front/gather.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/own.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char chunk[FILES_CHUNK];

static void stop(struct gather *g)
{
	if (g->ready)
		event_free(g->ready); /* before the descriptor: epoll must forget it first */
	g->ready = NULL;
	drop_fd(&g->fd);
}

static void finish(struct gather *g)
{
	stop(g);
	artifacts_end(&g->list);
	g->took_ns = clock_ns() - g->begun_ns;
	g->done(g, g->ctx);
}

/* One piece: then the others have their turn. */
static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct gather *g = arg;
	const char *rule;
	ssize_t n = read(fd, chunk, sizeof(chunk));
	int e;

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		finish(g);
		return;
	}
	e = artifacts_feed(&g->list, chunk, (size_t)n, &rule);
	if (e < 0) {
		log_err("collected", "why=\"%s\"", e == -EPROTO ? rule : strerrordesc_np(-e));
		finish(g);
	}
}

struct gather *gather_create(struct event_base *base, const struct artifacts_plan *plan,
	gather_done_fn *done, void *ctx, int *ret_write_fd, struct fault *f)
{
	struct gather *g = calloc(1, sizeof(*g));
	int ends[2];

	if (!g || pipe2(ends, O_CLOEXEC) < 0) {
		(void)fault_set(f, g ? -errno : -ENOMEM, "a pipe for files");
		free(g);
		return NULL;
	}
	artifacts_init(&g->list, plan);
	g->fd = ends[0];
	g->done = done;
	g->ctx = ctx;
	g->begun_ns = clock_ns();
	/* Ours alone: the collector waits until there is room. */
	if (fcntl(g->fd, F_SETFL, O_NONBLOCK) == 0)
		g->ready = event_new(base, g->fd, EV_READ | EV_PERSIST, on_ready, g);
	if (!g->ready || event_add(g->ready, NULL) < 0) {
		(void)fault_set(f, -ENOMEM, "watch a pipe for files");
		(void)close(ends[1]);
		gather_destroy(g);
		return NULL;
	}
	*ret_write_fd = ends[1];
	return g;
}

void gather_destroy(struct gather *g)
{
	if (!g)
		return;
	stop(g);
	artifacts_end(&g->list);
	artifacts_free(&g->list);
	free(g);
}
