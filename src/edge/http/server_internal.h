/* What the files of the HTTP server share: the connection's phases, and the parts of a
 * request. Nobody else includes this.
 *
 *   runs in    the front
 *
 *   server.c    listening, the limit on connections, drain
 *   conn.c      the life of a connection: phases, deadlines, framing
 *   unsent.c    the budget for answers that clients are slow to take
 *   request.c   a request's memory and what a handler may ask of it
 *   reply.c     the encoding of answers
 */
#pragma once

#include "edge/http/codec.h"
#include "edge/http/server.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/util.h>
#include <sys/queue.h>

struct bufferevent;
struct evbuffer;
struct evconnlistener;
struct sockaddr;

/* clang-format off */
#define CONN_PHASES(X)                                                                     \
	X(IDLE,     "no request yet, or the next one is about to be looked at")            \
	X(HEAD,     "a request's first byte is here, its head is not complete")            \
	X(BODY,     "the head is complete, the body is not")                               \
	X(RUNNING,  "the handler has the request; reading goes on, to see the client leave") \
	X(REPLYING, "the answer must leave before anything else happens")                  \
	X(LINGER,   "all is said: what still comes is thrown away, then the end")
/* clang-format on */

enum conn_phase {
#define X(name, text) CONN_##name,
	CONN_PHASES(X)
#undef X
	CONN_PHASE_MAX
};

#define HTTP_PEER_MAX 64

struct http_conn {
	LIST_ENTRY(http_conn) link;
	struct http_server *server;
	struct bufferevent *bev;
	struct event deadline; /* of the phase */
	struct event advance;  /* go on with the next request, from the event loop */
	enum conn_phase phase;
	bool closing;              /* after the answer under way */
	bool eof;                  /* the client has sent its last byte */
	bool broken;               /* an answer could not be put together: end it */
	bool paused;               /* reading is off, enough is pending */
	bool is_refusal;           /* beyond the limit on connections, here to be told so */
	struct http_source source; /* of the answer that is leaving; read NULL: it has none */
	uint64_t source_left;      /* bytes that it owes; HTTP_LEN_UNKNOWN: until it ends */
	bool chunked;
	TAILQ_ENTRY(http_conn) unsent;
	size_t unsent_bytes;      /* in the output; 0: not in the list */
	uint64_t taken_ns;        /* when something was last put there or taken from it */
	struct http_request *req; /* from its first byte to its answer */
	char peer[HTTP_PEER_MAX];
};

struct http_request {
	struct http_conn *conn;
	struct http_head head;
	struct http_chunked chunked;
	uint64_t left; /* of a body with a length */
	char *text;    /* the head, with its parts terminated in place */
	char *body;
	size_t body_len, body_room;
	int refused;
	uint64_t started_ns;
	void *data; /* the handler's */
};

struct http_server {
	struct event_base *base;
	struct evconnlistener *listener;
	struct http_limits limits;
	struct http_calls calls;
	struct evbuffer *answer; /* the one that is being sent; empty between calls */
	struct timeval phase_time[CONN_PHASE_MAX];
	struct event resume; /* accept again after the descriptors ran out */
	struct event drained;
	LIST_HEAD(, http_conn) conns;
	unsigned count, refusals; /* all connections, and those of them that are refusals */
	uint64_t body_bytes;      /* held for bodies by all requests */
	TAILQ_HEAD(unsent_list, http_conn) unsent; /* output waits; the longest untouched first */
	struct http_conn *last_filled;             /* of them; NULL: it is empty by now */
	uint64_t unsent_bytes;                     /* of all of them */
	struct event shed;                         /* it is too much */
	bool draining;
	void (*idle)(void *ctx);
	void *idle_ctx;
};

/* conn.c */
/* A connection on `fd` (taken). False when there is no memory for one. */
bool conn_create(struct http_server *s, evutil_socket_t fd, const char *peer, bool is_refusal);
void conn_drain(struct http_conn *c);
/* Ends a running request with `gone` first. */
void conn_destroy(struct http_conn *c);
/* The answer to the current request is in the output, or as much of it as there is yet. */
void conn_answered(struct http_conn *c);

/* server.c */
void server_forget(struct http_server *s, struct http_conn *c);

/* unsent.c */
void unsent_init(struct http_server *s);
bool unsent_watch(struct http_conn *c);
/* Before the connection's output is freed. */
void unsent_forget(struct http_conn *c);

/* request.c */
struct http_request *request_create(struct http_conn *c) __attribute__((warn_unused_result));
void request_destroy(struct http_request *req);
/* Take the complete head of `len` bytes out of `in`. */
bool request_take_head(struct http_request *req, struct evbuffer *in, size_t len);
/* Room for `len` more body bytes, or NULL when there is no memory or the server's share for
 * bodies is used up. The caller then adds what it stored to body_len. */
char *request_body_room(struct http_request *req, size_t len);

/* reply.c */
struct reply {
	int status;
	const char *type;
	const void *body;
	size_t len;
	const struct http_header *extra;
	bool keep_alive, omit_body;
	bool chunked;   /* in the place of a length */
	bool no_length; /* neither */
};

bool reply_encode(struct evbuffer *out, const struct reply *r) __attribute__((nonnull));
/* Put more of a streamed answer into the output. 1: there may be more; 0: that was all; -1: it
 * cannot go on. */
int reply_go_on(struct http_conn *c) __attribute__((nonnull));
void reply_drop_source(struct http_conn *c) __attribute__((nonnull));
/* `{"detail": ...}` for a request that the server itself refuses. */
bool reply_encode_refusal(struct evbuffer *out, int status, const struct http_limits *limits)
	__attribute__((nonnull));
/* The value of a Date header, IMF-fixdate. */
#define REPLY_DATE_MAX 40
void reply_date(int64_t unix_s, char *text) __attribute__((nonnull));
