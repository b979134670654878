/* HTTP/1.1 request framing: a parser of request heads and a decoder of chunked bodies.
 *
 * Deliberately strict (RFC 9112 read as for an origin server behind a proxy): whatever two
 * readers could understand differently is refused, because a front and its proxy that
 * disagree about where a request ends let one client put words into another's mouth.
 * What the codec does not decide: which methods and paths exist, and how big a body may be
 * with Content-Length (the caller compares content_length before it reads).
 *
 *   runs in    the front, and the gate, for what programs ask others for
 *   owns       nothing: no allocation, no I/O; results are offsets into the caller's bytes
 *   trusts     nothing it reads
 *   threads    none
 *
 * Both parsers can be fed in pieces of any size, and decide the same however the bytes are
 * cut: a verdict depends only on the bytes up to the first offending one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HTTP_HEAD_MAX         16384u /* request line and headers together, else 431 */
#define HTTP_REQUEST_LINE_MAX 8192u  /* else 414 */
#define HTTP_FIELDS_MAX       64u    /* else 431 */

/* A piece of the head, from its first byte; offsets and not pointers, so that the caller may
 * move the bytes between two calls. */
struct http_span {
	uint16_t at, len;
};

struct http_field {
	struct http_span name, value; /* the value without white space around it */
};

enum http_framing {
	HTTP_NO_BODY,
	HTTP_LENGTH, /* content_length bytes, at least one */
	HTTP_CHUNKED
};

struct http_head {
	struct http_span method, target; /* origin-form: begins with '/', visible ASCII */
	struct http_field fields[HTTP_FIELDS_MAX];
	unsigned field_count;
	unsigned minor; /* HTTP/1.minor: 0 or 1 */
	enum http_framing framing;
	uint64_t content_length;
	bool keep_alive;      /* the connection may serve another request */
	bool expect_continue; /* the client waits for 100 (never so in HTTP/1.0) */

	/* The parser's own. */
	size_t line, scan; /* where the current line starts, and what of it has been looked at */
	bool has_line, has_host, has_length, has_encoding, says_close, says_keep_alive;
};

void http_head_init(struct http_head *h) __attribute__((nonnull));

/* Go on parsing. `bytes` is the head from its first byte, `len` what has arrived of it, with
 * anything behind it; the part seen by earlier calls must be unchanged. Returns
 *   > 0  the head is complete and that long; what follows is the body
 *   0    more bytes are needed
 *   < 0  minus the status to refuse it with: 400, 414, 417, 431, 501, 505. Stop parsing. */
ssize_t http_head_parse(struct http_head *h, const char *bytes, size_t len)
	__attribute__((nonnull, warn_unused_result));

enum http_chunked_state {
	HTTP_CHUNKED_SIZE,
	HTTP_CHUNKED_SIZE_LF,
	HTTP_CHUNKED_DATA,
	HTTP_CHUNKED_DATA_CR,
	HTTP_CHUNKED_DATA_LF,
	HTTP_CHUNKED_END_CR,
	HTTP_CHUNKED_END_LF,
	HTTP_CHUNKED_DONE
};

struct http_chunked {
	enum http_chunked_state state;
	uint32_t left;   /* of the current chunk */
	unsigned digits; /* of the size line so far */
	uint64_t room;   /* what the body may still grow by */
};

void http_chunked_init(struct http_chunked *c, uint64_t room) __attribute__((nonnull));

/* What one step found in the bytes given to it. */
struct http_piece {
	size_t used;      /* bytes consumed, the data included */
	const char *data; /* body bytes among them, or NULL */
	size_t len;
};

/* Decode up to the next run of body bytes. Returns
 *   1    the body is complete; bytes from `used` on belong to the next request
 *   0    `used` bytes are dealt with: call again with the rest, or with more when nothing is
 *        left
 *   < 0  minus the status: 400, or 413 when a chunk would exceed the room (decided at its
 *        size line, before any of its bytes) */
int http_chunked_step(struct http_chunked *c, const char *bytes, size_t len,
	struct http_piece *ret_piece) __attribute__((nonnull, warn_unused_result));
