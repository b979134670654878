#include "edge/http/server.h"

#include "base/log.h"
#include "edge/http/server_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* How long nobody is accepted after the process ran out of descriptors or memory: the
 * listening socket stays readable, and trying again at once would spin. */
#define ACCEPT_PAUSE_MS 100
/* Connections beyond the limit that are told so in words; further ones are just closed. */
#define REFUSALS_MAX    16

static struct timeval timeval_of(uint32_t ms)
{
	return (struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
}

static void name_peer(const struct sockaddr *addr, char *text)
{
	const struct sockaddr_in *in4 = (const void *)addr;
	const struct sockaddr_in6 *in6 = (const void *)addr;
	char host[INET6_ADDRSTRLEN] = "?";

	if (addr->sa_family == AF_INET) {
		(void)inet_ntop(AF_INET, &in4->sin_addr, host, sizeof(host));
		(void)snprintf(text, HTTP_PEER_MAX, "%s:%u", host, ntohs(in4->sin_port));
	} else if (addr->sa_family == AF_INET6) {
		(void)inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		(void)snprintf(text, HTTP_PEER_MAX, "[%s]:%u", host, ntohs(in6->sin6_port));
	} else {
		(void)snprintf(text, HTTP_PEER_MAX, "unix");
	}
}

static void on_accept(
	struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *addr, int len, void *ctx)
{
	struct http_server *s = ctx;
	unsigned served = s->count - s->refusals;
	bool is_refusal = served >= s->limits.connections;
	char peer[HTTP_PEER_MAX];
	int on = 1;

	(void)l;
	(void)len;
	if (is_refusal && s->refusals >= REFUSALS_MAX) {
		(void)evutil_closesocket(fd);
		return;
	}
	/* An answer is written in one go; waiting for more (Nagle) would only delay the one
	 * that follows a 100 Continue. */
	if (addr->sa_family != AF_UNIX)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	name_peer(addr, peer);
	if (!conn_create(s, fd, peer, is_refusal))
		log_warn("accept", "peer=\"%s\" why=\"out of memory\"", peer);
}

static void on_accept_error(struct evconnlistener *l, void *ctx)
{
	struct http_server *s = ctx;
	struct timeval tv = timeval_of(ACCEPT_PAUSE_MS);

	log_warn("accept", "why=\"%s\" pause_ms=%d", strerror(errno), ACCEPT_PAUSE_MS);
	(void)evconnlistener_disable(l);
	(void)event_add(&s->resume, &tv);
}

static void on_resume(evutil_socket_t fd, short what, void *ctx)
{
	struct http_server *s = ctx;

	(void)fd;
	(void)what;
	if (s->listener)
		(void)evconnlistener_enable(s->listener);
}

static void on_drained(evutil_socket_t fd, short what, void *ctx)
{
	struct http_server *s = ctx;

	(void)fd;
	(void)what;
	s->idle(s->idle_ctx); /* last: it may destroy the server */
}

/* Equal deadlines share a queue in the event base, which makes arming one O(1). */
static void set_phase_time(struct http_server *s, enum conn_phase phase, uint32_t ms)
{
	struct timeval tv = timeval_of(ms);
	const struct timeval *common = event_base_init_common_timeout(s->base, &tv);

	s->phase_time[phase] = common ? *common : tv;
}

struct http_server *http_server_create(struct event_base *base, int listen_fd,
	const struct http_limits *limits, const struct http_calls *calls)
{
	struct http_server *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->base = base;
	s->limits = *limits;
	s->calls = *calls;
	LIST_INIT(&s->conns);
	unsent_init(s);
	(void)event_assign(&s->resume, base, -1, 0, on_resume, s);
	(void)event_assign(&s->drained, base, -1, 0, on_drained, s);
	set_phase_time(s, CONN_IDLE, limits->idle_ms);
	set_phase_time(s, CONN_HEAD, limits->head_ms);
	set_phase_time(s, CONN_BODY, limits->body_ms);
	set_phase_time(s, CONN_LINGER, limits->linger_ms);

	s->answer = evbuffer_new();
	if (s->answer)
		s->listener = evconnlistener_new(base, on_accept, s,
			LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, listen_fd);
	if (!s->listener) {
		if (s->answer)
			evbuffer_free(s->answer);
		free(s);
		return NULL;
	}
	evconnlistener_set_error_cb(s->listener, on_accept_error);
	/* libevent writes with writev(), which raises SIGPIPE when the client has gone. */
	(void)signal(SIGPIPE, SIG_IGN);
	return s;
}

static void stop_accepting(struct http_server *s)
{
	(void)event_del(&s->resume);
	if (s->listener)
		evconnlistener_free(s->listener);
	s->listener = NULL;
}

void http_server_drain(struct http_server *s, void (*idle)(void *ctx), void *ctx)
{
	struct http_conn *c, *next;

	s->idle = idle;
	s->idle_ctx = ctx;
	if (!s->draining) {
		s->draining = true;
		stop_accepting(s);
		for (c = LIST_FIRST(&s->conns); c; c = next) {
			next = LIST_NEXT(c, link);
			conn_drain(c);
		}
	}
	if (LIST_EMPTY(&s->conns))
		event_active(&s->drained, 0, 0);
}

void http_server_destroy(struct http_server *s)
{
	struct http_conn *c;

	if (!s)
		return;
	s->draining = false; /* nobody waits for `idle` any more */
	stop_accepting(s);
	while ((c = LIST_FIRST(&s->conns)))
		conn_destroy(c);
	(void)event_del(&s->drained);
	(void)event_del(&s->shed);
	evbuffer_free(s->answer);
	free(s);
}

void server_forget(struct http_server *s, struct http_conn *c)
{
	LIST_REMOVE(c, link);
	s->count--;
	s->refusals -= c->is_refusal;
	if (s->draining && LIST_EMPTY(&s->conns))
		event_active(&s->drained, 0, 0);
}

unsigned http_server_connections(const struct http_server *s)
{
	return s->count;
}
