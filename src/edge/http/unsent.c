/* Answers that clients are slow to take, or do not take at all.
 *
 * A deadline alone (conn.c) bounds how long an answer is kept, not how many of them. So what
 * waits in the outputs of all connections together has a budget. Over it, those go first of whose
 * output nothing has been taken for the longest; where all are being taken, as after several great
 * answers at a time, the largest goes. Who reads a small one is never among them. The last one that
 * was given stays in any case, so that one answer can be larger than the budget.
 */
#include "base/clock.h"
#include "base/log.h"
#include "edge/http/server_internal.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>

#define STUCK_NS  (100 * NS_PER_MS)
#define TASTE_MAX 16384 /* what a bufferevent writes at a time */

static void set_unsent(struct http_conn *c, size_t bytes)
{
	struct http_server *s = c->server;

	if (bytes == c->unsent_bytes)
		return;
	if (c->unsent_bytes > 0)
		TAILQ_REMOVE(&s->unsent, c, unsent);
	if (bytes > 0)
		TAILQ_INSERT_TAIL(&s->unsent, c, unsent);
	if (bytes > c->unsent_bytes)
		s->last_filled = c;
	else if (bytes == 0 && s->last_filled == c)
		s->last_filled = NULL;
	s->unsent_bytes += bytes;
	s->unsent_bytes -= c->unsent_bytes;
	c->unsent_bytes = bytes;
	c->taken_ns = clock_ns();
}

static bool is_over(const struct http_server *s)
{
	return s->limits.replies_bytes && s->unsent_bytes > s->limits.replies_bytes;
}

static void on_output(struct evbuffer *out, const struct evbuffer_cb_info *info, void *ctx)
{
	struct http_conn *c = ctx;

	(void)info;
	set_unsent(c, evbuffer_get_length(out));
	if (is_over(c->server))
		event_active(&c->server->shed, 0, 0); /* not from below http_reply() */
}

/* Does the client take any of it now? The loop may have had no turn for it since it was put there. */
static bool is_taken(struct http_conn *c)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);
	size_t before = c->unsent_bytes;

	/* Frozen, because what is in it is the bufferevent's to take. */
	(void)evbuffer_unfreeze(out, 1);
	(void)evbuffer_write_atmost(out, bufferevent_getfd(c->bev), TASTE_MAX);
	(void)evbuffer_freeze(out, 1);
	/* Less than that, and the socket is full: nobody is reading. */
	return c->unsent_bytes == 0 || before - c->unsent_bytes == TASTE_MAX;
}

/* The next one that has to go; NULL: there is but one. */
static struct http_conn *find_victim(struct http_server *s)
{
	struct http_conn *first = TAILQ_FIRST(&s->unsent), *c, *largest = NULL;

	if (first == s->last_filled)
		first = TAILQ_NEXT(first, unsent);
	if (first && clock_ns() - first->taken_ns >= STUCK_NS && !is_taken(first))
		return first;
	TAILQ_FOREACH(c, &s->unsent, unsent)
	{
		if (c != s->last_filled && (!largest || c->unsent_bytes > largest->unsent_bytes))
			largest = c;
	}
	return largest;
}

static void on_shed(evutil_socket_t fd, short what, void *ctx)
{
	struct http_server *s = ctx;
	struct http_conn *c;

	(void)fd;
	(void)what;
	while (is_over(s) && (c = find_victim(s))) {
		log_warn("slow_reader", "peer=\"%s\" unsent=%zu", c->peer, c->unsent_bytes);
		conn_destroy(c);
	}
}

void unsent_init(struct http_server *s)
{
	TAILQ_INIT(&s->unsent);
	(void)event_assign(&s->shed, s->base, -1, 0, on_shed, s);
}

bool unsent_watch(struct http_conn *c)
{
	return evbuffer_add_cb(bufferevent_get_output(c->bev), on_output, c) != NULL;
}

void unsent_forget(struct http_conn *c)
{
	(void)evbuffer_remove_cb(bufferevent_get_output(c->bev), on_output, c);
	set_unsent(c, 0);
}
