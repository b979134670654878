/* An HTTP/1.1 server on libevent: connections, deadlines, pipelining, limits. It
 * knows nothing of what is served.
 *
 *   runs in    the front
 *   owns       the listening socket given to it, connections, their buffers
 *   threads    none; everything happens in the event loop's callbacks
 *   trusts     no byte that it reads: framing is the codec's (edge/http/codec.h)
 *
 * A request lives from the handler's call to http_reply(), or to its `gone` callback,
 * whichever is first; afterwards the pointer is dead. Requests of one connection are
 * handled one at a time and answered in order.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct event_base;
struct http_server;
struct http_request;

struct http_limits {
	uint64_t body_bytes;   /* over it: 413, nothing of the body is kept */
	uint64_t bodies_bytes; /* held for the bodies of all requests; over it: 503; 0: no limit */
	/* Of answers that wait to be taken, all together; over it those who have been taking
	 * the longest are cut off, but never the last one left; 0: no limit. */
	uint64_t replies_bytes;
	uint32_t connections;                          /* over it: 503 and close */
	uint32_t idle_ms, head_ms, body_ms, linger_ms; /* absolute deadlines of the phases */
};

/* Called once for each complete request (head and body). Must answer with http_reply()
 * now or later. The answer to a refused request whose body was left unread (too long, or
 * the client waited for 100) ends the connection. */
typedef void http_handler_fn(struct http_request *req, void *ctx);

/* Called when the client has left (FIN, RST or half-close) after `handler` and before the
 * answer, when more than 64 KiB of further requests pile up behind this one, and when the
 * server is destroyed. The request may be looked at until this returns, and must not be
 * answered. */
typedef void http_gone_fn(struct http_request *req, void *ctx);

/* Asked when a head is complete, before the body is read and before 100-continue is
 * sent: 0 to go on, or an HTTP status (404, 405, 413, 415, 403) to answer at once; then
 * `handler` is called with http_request_refused() set to that status, and no body. */
typedef int http_head_fn(struct http_request *req, void *ctx);

/* Told of each request that the server itself answered, because its framing was wrong, it
 * was too long or too slow, or there was no room for it: 400, 408, 413, 414, 417, 431, 501,
 * 503, 505, each with a JSON body {"detail": "..."} and the end of the connection. For logs
 * and counters. */
typedef void http_bad_fn(const char *peer, int status, void *ctx);

struct http_calls {
	http_head_fn *head; /* may be NULL: every request is wanted */
	http_handler_fn *handler;
	http_gone_fn *gone; /* may be NULL */
	http_bad_fn *bad;   /* may be NULL */
	void *ctx;
};

/* Serve on `listen_fd` (taken; non-blocking, listening). NULL when there is no memory or the
 * event base fails; then listen_fd is still the caller's. SIGPIPE is ignored from here on.
 * `base` must outlive the server. */
struct http_server *http_server_create(struct event_base *base, int listen_fd,
	const struct http_limits *limits, const struct http_calls *calls)
	__attribute__((nonnull, warn_unused_result));

/* Stop accepting; idle connections close now, the others after their answer, which
 * carries Connection: close. `idle` is called once, when none is left, always from the
 * event loop and never within this call; it may destroy the server. */
void http_server_drain(struct http_server *s, void (*idle)(void *ctx), void *ctx)
	__attribute__((nonnull(1, 2)));

/* End every connection now. Not from within a handler, `head` or `gone`. */
void http_server_destroy(struct http_server *s);

unsigned http_server_connections(const struct http_server *s) __attribute__((nonnull));

/* The parts of a request; borrowed, valid as long as the request. */
const char *http_request_method(const struct http_request *req); /* terminated */
const char *http_request_path(const struct http_request *req);   /* raw, without the query */
const char *http_request_query(const struct http_request *req);  /* without '?', "" when none */
/* The value of the only header of that name (any case), trimmed; NULL when absent.
 * For a repeated header the first. */
const char *http_request_header(const struct http_request *req, const char *name);
const void *http_request_body(const struct http_request *req, size_t *ret_len);
int http_request_refused(const struct http_request *req);         /* what `head` returned */
const char *http_request_peer(const struct http_request *req);    /* "127.0.0.1:51022" or "unix" */
uint64_t http_request_started_ns(const struct http_request *req); /* first byte of the request */

/* Room for the caller: what it keeps with a request (NULL at first). */
void http_request_set_data(struct http_request *req, void *data);
void *http_request_data(const struct http_request *req);

struct http_header {
	const char *name, *value;
};

/* Where a long answer comes from, piece by piece as the client takes it. */
struct http_source {
	/* The next bytes, at most `room` of them: how many, 0 at the end. A negative errno: there
	 * are no more, and the connection ends without the rest. */
	ssize_t (*read)(void *ctx, void *bytes, size_t room);
	void (*done)(void *ctx); /* once, whatever becomes of the answer */
	void *ctx;
};

/* Answer 200 with what `source` gives, which is taken. `len`: so many bytes; HTTP_LEN_UNKNOWN: until
 * it ends, chunked (before HTTP/1.1: until the connection ends). HEAD reads nothing. */
#define HTTP_LEN_UNKNOWN UINT64_MAX
void http_reply_stream(struct http_request *req, const char *type, uint64_t len,
	const struct http_source *source, const struct http_header *extra)
	__attribute__((nonnull(1, 2, 4)));

/* Answer. Adds Date, Content-Length, Connection; a HEAD request gets no body but the
 * length of what GET would have got. `body` is copied. `type` NULL means application/json
 * when there is a body. `extra` ends with a NULL name and may be NULL; control bytes in its
 * values become '?'. What the socket takes at once has left when this returns. */
void http_reply(struct http_request *req, int status, const char *type, const void *body,
	size_t len, const struct http_header *extra) __attribute__((nonnull(1)));
