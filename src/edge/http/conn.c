/* The life of a connection.
 *
 * A connection is in one phase at a time (server_internal.h has the list) and conn_enter() is
 * the only function that changes it. Each phase has one absolute deadline, so that a client
 * which sends or reads a byte now and then gains nothing by it; while a request runs there is
 * none, the run has its own. What an event means in a phase is the table `rules` below.
 *
 *     IDLE -> HEAD -> BODY -> RUNNING -> (answered) -> IDLE
 *                 \-------------^   \-> REPLYING -> IDLE or LINGER -> end
 *     (a framing error in HEAD or BODY, or their deadline) -> REPLYING -> LINGER -> end
 *
 * What must hold:
 *  - Reading stays on while a request runs: EOF or an error is how a client's leaving is
 *    noticed, and a reset would otherwise never be reported but spin the loop.
 *  - After an error and before any close the output is sent, the sending side shut, and what
 *    still arrives is thrown away for a while (LINGER): a close with unread input makes the
 *    kernel send a reset, which can overtake the answer.
 *  - The next pipelined request starts from the event loop, never from within the answer to
 *    the one before: a buffer full of tiny requests must not become a stack of frames.
 *  - Pending input and output are bounded: see the numbers below, and unsent.c for the
 *    output of all connections.
 *  - A connection is freed by event callbacks only, its own or unsent.c's, never below
 *    http_reply().
 */
#include "base/own.h"
#include "edge/http/server_internal.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Requests pipelined behind a running one: over it the client counts as gone. */
#define READ_AHEAD_MAX     (64u * 1024)
/* Where reading pauses while nothing runs; half of the above, because one read adds up to
 * 16 KiB and a request that then starts running must find room. */
#define READ_PAUSE         (32u * 1024)
/* Answers pending: over it the next pipelined request waits until they are sent. */
#define WRITE_PAUSE        (64u * 1024)
/* The slowest reader that is waited for: 16 bytes a millisecond, beside body_ms. */
#define REPLY_BYTES_PER_MS 16u

typedef void conn_event_fn(struct http_conn *c);

static void advance(struct http_conn *c);
static void check_read_ahead(struct http_conn *c);
static void discard_if_closing(struct http_conn *c);
static void discard(struct http_conn *c);
static void reply_sent(struct http_conn *c);
static void refuse_late(struct http_conn *c);
static void finish_output(struct http_conn *c);

/* clang-format off */
static const struct {
	conn_event_fn *input; /* bytes have arrived */
	conn_event_fn *sent; /* the output has drained; NULL: of no interest */
	conn_event_fn *ended; /* the client has shut its side (again conn_destroy() on errors) */
	conn_event_fn *late; /* the deadline; NULL: there is none */
} rules[CONN_PHASE_MAX] = {
	[CONN_IDLE]     = { advance,            NULL,       advance,       conn_destroy },
	[CONN_HEAD]     = { advance,            NULL,       finish_output, refuse_late },
	[CONN_BODY]     = { advance,            NULL,       finish_output, refuse_late },
	[CONN_RUNNING]  = { check_read_ahead,   NULL,       conn_destroy,  NULL },
	[CONN_REPLYING] = { discard_if_closing, reply_sent, NULL,          conn_destroy },
	[CONN_LINGER]   = { discard,            NULL,       conn_destroy,  conn_destroy },
};
/* clang-format on */

static struct evbuffer *input_of(struct http_conn *c)
{
	return bufferevent_get_input(c->bev);
}

static size_t pending_input(struct http_conn *c)
{
	return evbuffer_get_length(input_of(c));
}

static size_t pending_output(struct http_conn *c)
{
	return evbuffer_get_length(bufferevent_get_output(c->bev));
}

static void arm_deadline(struct http_conn *c)
{
	struct timeval tv = c->server->phase_time[c->phase];

	if (!rules[c->phase].late) {
		(void)event_del(&c->deadline);
		return;
	}
	if (c->phase == CONN_REPLYING) {
		uint64_t ms = c->server->limits.body_ms + pending_output(c) / REPLY_BYTES_PER_MS;

		tv.tv_sec = (time_t)(ms / 1000);
		tv.tv_usec = (suseconds_t)(ms % 1000 * 1000);
	}
	(void)event_add(&c->deadline, &tv);
}

/* Reading may only pause while something else than input drives the connection on. After
 * EOF it stays off, or the loop would report the same EOF for ever. */
static void pace_reading(struct http_conn *c)
{
	bool waits = c->phase == CONN_REPLYING || c->phase == CONN_IDLE;
	bool pause = c->eof || (waits && !c->closing && pending_input(c) > READ_PAUSE);

	if (pause == c->paused)
		return;
	c->paused = pause;
	if (pause)
		(void)bufferevent_disable(c->bev, EV_READ);
	else
		(void)bufferevent_enable(c->bev, EV_READ);
}

static void conn_enter(struct http_conn *c, enum conn_phase phase)
{
	c->phase = phase;
	arm_deadline(c);
	pace_reading(c);
}

/* Nothing more will be read or answered: let the output leave, then go. */
static void finish_output(struct http_conn *c)
{
	request_destroy(take_ptr(c->req));
	c->closing = true;
	if (pending_output(c) == 0)
		conn_destroy(c);
	else
		conn_enter(c, CONN_REPLYING);
}

/* The server's own answer to what is no proper request. */
static void refuse(struct http_conn *c, int status)
{
	struct http_server *s = c->server;

	if (s->calls.bad)
		s->calls.bad(c->peer, status, s->calls.ctx);
	request_destroy(take_ptr(c->req));
	c->closing = true;
	if (!reply_encode_refusal(bufferevent_get_output(c->bev), status, &s->limits))
		c->broken = true;
	(void)evbuffer_drain(input_of(c), pending_input(c));
	conn_answered(c);
}

static void refuse_late(struct http_conn *c)
{
	refuse(c, 408);
}

/* The steps below return 1 to go on at once, 0 when there is nothing to do but wait, and
 * minus the status of a refusal. */

static int start_request(struct http_conn *c)
{
	if (pending_input(c) == 0)
		return 0;
	c->req = request_create(c);
	if (!c->req)
		return -503;
	conn_enter(c, CONN_HEAD);
	return 1;
}

static int run_request(struct http_conn *c)
{
	conn_enter(c, CONN_RUNNING);
	c->server->calls.handler(c->req, c->server->calls.ctx);
	return 0;
}

/* The head is complete: is the request wanted, and is its body? A refused request's body is
 * read past when that keeps the connection in step, and left unread when it is too long or
 * the client waits to be asked for it; then the connection cannot go on. */
static int begin_body(struct http_conn *c)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct http_server *s = c->server;
	struct http_request *req = c->req;
	const struct http_head *h = &req->head;
	bool too_long = h->framing == HTTP_LENGTH && h->content_length > s->limits.body_bytes;

	if (!h->keep_alive || s->draining)
		c->closing = true;
	if (s->calls.head)
		req->refused = s->calls.head(req, s->calls.ctx);
	if (h->framing == HTTP_NO_BODY)
		return run_request(c);

	if (req->refused && (too_long || h->expect_continue)) {
		c->closing = true;
		return run_request(c);
	}
	if (too_long)
		return -413;
	if (h->expect_continue && bufferevent_write(c->bev, go_on, sizeof(go_on) - 1) < 0)
		return -503;
	req->left = h->content_length;
	http_chunked_init(&req->chunked, s->limits.body_bytes);
	conn_enter(c, CONN_BODY);
	return 1;
}

/* First what lies in one piece; only a head that goes on beyond it is made contiguous. */
static int read_head(struct http_conn *c)
{
	struct evbuffer *in = input_of(c);
	size_t all = pending_input(c), part = evbuffer_get_contiguous_space(in);
	ssize_t r = 0;

	if (all > HTTP_HEAD_MAX)
		all = HTTP_HEAD_MAX;
	for (;;) {
		const unsigned char *bytes = evbuffer_pullup(in, (ssize_t)part);

		if (part > 0 && !bytes)
			return -503;
		if (part > 0)
			r = http_head_parse(&c->req->head, (const char *)bytes, part);
		if (r != 0 || part >= all)
			break;
		part = all;
	}
	if (r <= 0)
		return (int)r;
	return request_take_head(c->req, in, (size_t)r) ? begin_body(c) : -503;
}

static bool keep_body(struct http_request *req, const char *bytes, size_t len)
{
	char *room;

	if (req->refused || len == 0)
		return true;
	room = request_body_room(req, len);
	if (!room)
		return false;
	(void)memcpy(room, bytes, len);
	req->body_len += len;
	return true;
}

static int read_body(struct http_conn *c)
{
	struct http_request *req = c->req;
	struct evbuffer *in = input_of(c);
	struct http_piece piece;
	size_t n;

	while ((n = evbuffer_get_contiguous_space(in)) > 0) {
		const char *bytes = (const char *)evbuffer_pullup(in, (ssize_t)n);
		int r = 0;

		if (req->head.framing == HTTP_CHUNKED) {
			r = http_chunked_step(&req->chunked, bytes, n, &piece);
		} else {
			n = n < req->left ? n : (size_t)req->left;
			piece = (struct http_piece){ .used = n, .data = bytes, .len = n };
			req->left -= n;
			r = req->left == 0;
		}
		if (r < 0)
			return r;
		if (!keep_body(req, piece.data, piece.len))
			return -503;
		(void)evbuffer_drain(in, piece.used);
		if (r > 0)
			return run_request(c);
	}
	return 0;
}

static int step(struct http_conn *c)
{
	switch (c->phase) {
	case CONN_IDLE:
		return start_request(c);
	case CONN_HEAD:
		return read_head(c);
	case CONN_BODY:
		return read_body(c);
	case CONN_RUNNING:
	case CONN_REPLYING:
	case CONN_LINGER:
	case CONN_PHASE_MAX:
		break;
	}
	return 0;
}

/* Take the connection as far as the bytes at hand allow: one request, not more. */
static void advance(struct http_conn *c)
{
	int r;

	do
		r = step(c);
	while (r > 0);

	if (r < 0)
		refuse(c, -r);
	else if (c->eof && c->phase == CONN_RUNNING)
		conn_destroy(c); /* the client had left before the handler was asked */
	else if (c->eof && c->phase == CONN_IDLE && pending_input(c) == 0)
		finish_output(c);
	else if (c->eof && (c->phase == CONN_HEAD || c->phase == CONN_BODY))
		finish_output(c); /* the rest of this request will not come */
	else
		pace_reading(c);
}

void conn_answered(struct http_conn *c)
{
	if (c->broken) {
		(void)bufferevent_disable(c->bev, EV_READ | EV_WRITE);
		conn_enter(c, CONN_REPLYING);
		event_active(&c->advance, 0, 0);
		return;
	}
	if (c->closing || c->source.read || pending_output(c) > WRITE_PAUSE) {
		conn_enter(c, CONN_REPLYING);
		return;
	}
	conn_enter(c, CONN_IDLE);
	event_active(&c->advance, 0, 0);
}

static void reply_sent(struct http_conn *c)
{
	if (c->source.read) {
		if (reply_go_on(c) < 0) {
			conn_destroy(c);
			return;
		}
		if (pending_output(c) > 0) {
			arm_deadline(c); /* each piece has a time of its own */
			return;
		}
	}
	if (!c->closing) {
		conn_enter(c, CONN_IDLE);
		event_active(&c->advance, 0, 0);
		return;
	}
	if (c->eof) {
		conn_destroy(c);
		return;
	}
	(void)shutdown(bufferevent_getfd(c->bev), SHUT_WR);
	discard(c);
	conn_enter(c, CONN_LINGER);
}

static void check_read_ahead(struct http_conn *c)
{
	if (pending_input(c) > READ_AHEAD_MAX)
		conn_destroy(c);
}

static void discard(struct http_conn *c)
{
	(void)evbuffer_drain(input_of(c), pending_input(c));
}

static void discard_if_closing(struct http_conn *c)
{
	if (c->closing)
		discard(c);
	else
		pace_reading(c);
}

static void on_read(struct bufferevent *bev, void *ctx)
{
	struct http_conn *c = ctx;

	(void)bev;
	rules[c->phase].input(c);
}

static void on_written(struct bufferevent *bev, void *ctx)
{
	struct http_conn *c = ctx;

	(void)bev;
	if (rules[c->phase].sent)
		rules[c->phase].sent(c);
}

static void on_end(struct bufferevent *bev, short what, void *ctx)
{
	struct http_conn *c = ctx;

	(void)bev;
	if (!(what & BEV_EVENT_EOF)) {
		conn_destroy(c);
		return;
	}
	c->eof = true;
	if (rules[c->phase].ended)
		rules[c->phase].ended(c);
	else
		pace_reading(c);
}

static void on_deadline(evutil_socket_t fd, short what, void *ctx)
{
	struct http_conn *c = ctx;

	(void)fd;
	(void)what;
	if (rules[c->phase].late)
		rules[c->phase].late(c);
}

static void on_advance(evutil_socket_t fd, short what, void *ctx)
{
	struct http_conn *c = ctx;

	(void)fd;
	(void)what;
	if (c->broken)
		conn_destroy(c);
	else
		advance(c);
}

bool conn_create(struct http_server *s, evutil_socket_t fd, const char *peer, bool is_refusal)
{
	struct http_conn *c = calloc(1, sizeof(*c));

	if (!c) {
		(void)evutil_closesocket(fd);
		return false;
	}
	c->bev = bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!c->bev) {
		(void)evutil_closesocket(fd);
		free(c);
		return false;
	}
	c->server = s;
	if (!unsent_watch(c)) {
		bufferevent_free(c->bev);
		free(c);
		return false;
	}
	c->is_refusal = is_refusal;
	(void)snprintf(c->peer, sizeof(c->peer), "%s", peer);
	(void)event_assign(&c->deadline, s->base, -1, 0, on_deadline, c);
	(void)event_assign(&c->advance, s->base, -1, 0, on_advance, c);
	LIST_INSERT_HEAD(&s->conns, c, link);
	s->count++;
	s->refusals += is_refusal;

	bufferevent_setcb(c->bev, on_read, on_written, on_end, c);
	(void)bufferevent_enable(c->bev, EV_READ | EV_WRITE);
	conn_enter(c, CONN_IDLE);
	if (is_refusal)
		refuse(c, 503);
	return true;
}

/* A request that has begun, or lies in the buffer, is still answered. */
void conn_drain(struct http_conn *c)
{
	c->closing = true;
	if (c->phase == CONN_IDLE && pending_input(c) == 0)
		finish_output(c);
}

void conn_destroy(struct http_conn *c)
{
	struct http_server *s = c->server;
	struct http_request *req = take_ptr(c->req);

	if (req && c->phase == CONN_RUNNING && s->calls.gone)
		s->calls.gone(req, s->calls.ctx);
	request_destroy(req);
	reply_drop_source(c);
	(void)event_del(&c->deadline);
	(void)event_del(&c->advance);
	unsent_forget(c);
	bufferevent_free(c->bev);
	server_forget(s, c);
	free(c);
}
