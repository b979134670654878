/* Answers that clients are slow to take, or do not take at all.
 *
 * A deadline alone (conn.c) bounds how long an answer is kept, not how many of them. So what
 * waits in the outputs of all connections together has a budget; over it, those go whose
 * output has not been empty for the longest. Who reads is not among them: an output that
 * empties leaves the list. The newest stays in any case, so that one answer can be larger
 * than the budget.
 */
#include "base/log.h"
#include "edge/http/server_internal.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>

static void set_unsent(struct http_conn *c, size_t bytes)
{
	struct http_server *s = c->server;

	if (c->unsent_bytes == 0 && bytes > 0)
		TAILQ_INSERT_TAIL(&s->unsent, c, unsent);
	else if (c->unsent_bytes > 0 && bytes == 0)
		TAILQ_REMOVE(&s->unsent, c, unsent);
	s->unsent_bytes += bytes;
	s->unsent_bytes -= c->unsent_bytes;
	c->unsent_bytes = bytes;
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

static void on_shed(evutil_socket_t fd, short what, void *ctx)
{
	struct http_server *s = ctx;
	struct http_conn *c;

	(void)fd;
	(void)what;
	while (is_over(s) && (c = TAILQ_FIRST(&s->unsent)) != TAILQ_LAST(&s->unsent, unsent_list)) {
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
