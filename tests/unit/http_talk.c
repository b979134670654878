#include "unit.h"

#include "http_talk.h"
#include "tests/unit/count_fds.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GUARD_S 10

static int on_head(struct http_request *req, void *ctx)
{
	(void)ctx;
	if (strcmp(http_request_path(req), "/nope") == 0)
		return 404;
	return strcmp(http_request_method(req), "PUT") == 0 ? 405 : 0;
}

static void answer_now(struct http_request *req)
{
	char text[256];
	size_t len;

	(void)http_request_body(req, &len);
	(void)snprintf(text, sizeof(text), "%s %s %zu\n", http_request_method(req),
		http_request_path(req), len);
	http_reply(req, 200, "text/plain", text, strlen(text), NULL);
}

static void answer_big(struct talk *t, struct http_request *req)
{
	char *big = calloc(1, t->big_len);

	assert_non_null(big);
	(void)memset(big, 'b', t->big_len);
	http_reply(req, 200, "text/plain", big, t->big_len, NULL);
	free(big);
}

static void on_request(struct http_request *req, void *ctx)
{
	static const struct http_header allow[] = { { "Allow", "GET\r\nX-Forged: 1" },
		{ NULL, NULL } };
	struct talk *t = ctx;
	const char *path = http_request_path(req), here = 0;
	const void *body;
	size_t len;

	t->handled++;
	(void)snprintf(t->peer, sizeof(t->peer), "%s", http_request_peer(req));
	if (!t->stack_low || &here < t->stack_low)
		t->stack_low = &here;
	if (!t->stack_high || &here > t->stack_high)
		t->stack_high = &here;

	body = http_request_body(req, &len);
	if (http_request_refused(req)) {
		assert_int_equal(len, 0);
		http_reply(req, http_request_refused(req), NULL, "{}", 2, allow);
	} else if (strcmp(path, "/later") == 0) {
		assert_true(t->held_count < TALK_HELD_MAX);
		t->held[t->held_count++] = req;
	} else if (strcmp(path, "/big") == 0) {
		answer_big(t, req);
	} else if (strcmp(path, "/echo") == 0) {
		http_reply(req, 200, "application/octet-stream", body, len, NULL);
	} else if (t->executions && strncmp(path, "/executions/", 12) == 0) {
		t->executions(req, t);
	} else {
		answer_now(req);
	}
}

static void on_gone(struct http_request *req, void *ctx)
{
	struct talk *t = ctx;

	/* Still readable here, as the contract says; ASan sees to it. */
	assert_string_equal(http_request_path(req), "/later");
	t->gone++;
}

static void on_bad(const char *peer, int status, void *ctx)
{
	struct talk *t = ctx;

	assert_int_equal(t->unix_socket, strcmp(peer, "unix") == 0);
	t->bad++;
	t->bad_status = status;
}

static void on_guard(evutil_socket_t fd, short what, void *ctx)
{
	struct talk *t = ctx;

	(void)fd;
	(void)what;
	t->guard_fired = true;
}

void talk_serve(struct talk *t)
{
	const struct http_calls calls = { on_head, on_request, on_gone, on_bad, t };
	struct sockaddr_in loopback = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	sa_family_t abstract = AF_UNIX; /* the kernel picks an abstract name */
	int fd, small = 1;              /* the kernel makes it the least it allows */

	t->fds_before = count_fds();
	t->base = event_base_new();
	assert_non_null(t->base);
	t->guard = evtimer_new(t->base, on_guard, t);
	fd = socket(
		t->unix_socket ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	if (t->unix_socket)
		assert_int_equal(bind(fd, (const void *)&abstract, sizeof(abstract)), 0);
	else
		assert_int_equal(bind(fd, (const void *)&loopback, sizeof(loopback)), 0);
	if (t->small_buffers) /* accepted sockets inherit it */
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	assert_int_equal(listen(fd, 64), 0);
	t->at_len = sizeof(t->at);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&t->at, &t->at_len), 0);
	t->server = http_server_create(t->base, fd, &t->limits, &calls);
	assert_non_null(t->server);
}

void talk_begin(struct talk *t)
{
	*t = (struct talk){ .limits = { .body_bytes = 1024 * 1024,
				    .connections = 8,
				    .idle_ms = 60000,
				    .head_ms = 60000,
				    .body_ms = 60000,
				    .linger_ms = 60000 } };
	talk_serve(t);
}

void talk_end(struct talk *t)
{
	http_server_destroy(t->server);
	/* Freed bufferevents close their descriptors from the loop. */
	(void)event_base_loop(t->base, EVLOOP_NONBLOCK);
	event_free(t->guard);
	event_base_free(t->base);
	assert_int_equal(count_fds(), t->fds_before);
}

void talk_guard(struct talk *t)
{
	struct timeval tv = { .tv_sec = GUARD_S };

	t->guard_fired = false;
	(void)evtimer_add(t->guard, &tv);
}

void talk_step(struct talk *t, const char *cond, const char *file, int line)
{
	(void)event_base_loop(t->base, EVLOOP_ONCE);
	if (t->guard_fired)
		fail_msg("%s:%d: waited in vain for: %s", file, line, cond);
}

unsigned talk_wakeups(struct talk *t, unsigned ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	unsigned n = 0;

	t->guard_fired = false;
	(void)evtimer_add(t->guard, &tv);
	for (; !t->guard_fired; n++)
		(void)event_base_loop(t->base, EVLOOP_ONCE);
	return n;
}

static void on_input(struct bufferevent *bev, void *ctx)
{
	struct client *cl = ctx;
	struct evbuffer *in = bufferevent_get_input(bev);
	size_t n = evbuffer_get_length(in);

	if (cl->len + n + 1 > cl->room) {
		cl->room = 2 * (cl->len + n + 1); /* or large answers are copied with every read */
		cl->text = realloc(cl->text, cl->room);
		assert_non_null(cl->text);
	}
	assert_int_equal(evbuffer_remove(in, cl->text + cl->len, n), n);
	cl->len += n;
	cl->text[cl->len] = '\0';
}

static void on_end(struct bufferevent *bev, short what, void *ctx)
{
	struct client *cl = ctx;

	(void)bev;
	if (what & BEV_EVENT_EOF)
		cl->eof = true;
	if (what & BEV_EVENT_ERROR)
		cl->reset = true;
}

void client_open(struct client *cl, struct talk *t)
{
	int fd = socket(t->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 1;

	*cl = (struct client){ .talk = t };
	assert_true(fd >= 0);
	if (t->small_buffers)
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	/* Blocking on purpose: loopback completes it from the backlog. */
	assert_int_equal(connect(fd, (struct sockaddr *)&t->at, t->at_len), 0);
	assert_int_equal(evutil_make_socket_nonblocking(fd), 0);
	cl->bev = bufferevent_socket_new(t->base, fd, BEV_OPT_CLOSE_ON_FREE);
	assert_non_null(cl->bev);
	bufferevent_setcb(cl->bev, on_input, NULL, on_end, cl);
	(void)bufferevent_enable(cl->bev, EV_READ | EV_WRITE);
	client_clear(cl);
}

void client_clear(struct client *cl)
{
	cl->len = 0;
	cl->room = 1;
	cl->text = realloc(cl->text, cl->room);
	assert_non_null(cl->text);
	cl->text[0] = '\0';
}

void client_close(struct client *cl)
{
	bufferevent_free(cl->bev);
	free(cl->text);
	cl->text = NULL;
}

void client_reset(struct client *cl)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	assert_int_equal(
		setsockopt(bufferevent_getfd(cl->bev), SOL_SOCKET, SO_LINGER, &now, sizeof(now)),
		0);
	client_close(cl);
}

void client_send(struct client *cl, const void *bytes, size_t len)
{
	assert_int_equal(bufferevent_write(cl->bev, bytes, len), 0);
}

void client_say(struct client *cl, const char *text)
{
	client_send(cl, text, strlen(text));
}

void client_half_close(struct client *cl)
{
	struct evbuffer *out = bufferevent_get_output(cl->bev);

	WAIT_FOR(cl->talk, evbuffer_get_length(out) == 0);
	assert_int_equal(shutdown(bufferevent_getfd(cl->bev), SHUT_WR), 0);
}

unsigned client_count(const struct client *cl, const char *needle)
{
	unsigned n = 0;

	for (const char *at = cl->text; (at = strstr(at, needle)); at++)
		n++;
	return n;
}

bool client_has(const struct client *cl, const char *needle)
{
	return client_count(cl, needle) > 0;
}
