/* Every answer that the front gives, and the one log line that goes with it. A line
 * carries numbers, words of ours and the quoted path: never code, never output.
 *
 *   runs in    the front
 *   owns       nothing
 *   threads    none
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct http_header;
struct http_request;
struct http_source;

struct answer {
	int status;
	const char *json; /* the body; NULL: out of memory, and a 500 is given instead */
	size_t len;
	const char *id;              /* of the run; NULL when there is none */
	const char *verdict, *cause; /* the run's words for the log; NULL when it has none */
	const char *allow;           /* for 405; NULL otherwise */
	uint32_t retry_after_s;      /* 0: no Retry-After */
};

/* After it `req` is dead. */
void answer_send(struct http_request *req, const struct answer *a) __attribute__((nonnull));

/* As answer_send(), with the body {"detail": "TEXT"}. */
void answer_detail(struct http_request *req, const struct answer *a, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), nonnull));

/* A 200 whose body comes from `source` (taken), as http_reply_stream() sends it. */
void answer_stream(struct http_request *req, const char *type, uint64_t len,
	const struct http_source *source, const struct http_header *extra)
	__attribute__((nonnull(1, 2, 4)));

/* A request that the routes refused: 403, 404, 405 or 415. */
void answer_refusal(struct http_request *req, int status) __attribute__((nonnull));

/* What was no proper request has been answered by the HTTP server: the log line alone. */
void answer_bad(const char *peer, int status) __attribute__((nonnull));

/* The client left before the answer: the log line alone. */
void answer_gone(struct http_request *req, const char *id) __attribute__((nonnull(1)));
