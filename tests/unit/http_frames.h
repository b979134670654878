/* What a byte stream is to the codec, as text: one line a request with method, target, body
 * length and the body's FNV-1a hash, then how it ended. The unit tests, the fuzzer and the
 * comparison with another server's parser all read requests through this.
 *
 *   runs in    tests
 */
#pragma once

#include "edge/http/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAMES_BODY_MAX (1024u * 1024) /* the limit on bodies that this reader has */

struct frames {
	char text[4096]; /* cut at its end when there are more requests than fit */
	size_t text_len;
	size_t at;    /* where the current request starts, or its body goes on */
	size_t taken; /* bytes of the requests read to their ends */
	int status;   /* of the refusal, or 0 */
	bool closed;  /* the last request ended the connection */
	bool in_body;
	struct http_head head;
	struct http_chunked chunked;
	uint64_t left, body_len;
	uint32_t hash;
	char line[256]; /* method and target of the request whose body is being read */
};

void frames_init(struct frames *f);
/* `len` bytes of the stream are here now, more than the last time; `bytes` may have moved. */
void frames_feed(struct frames *f, const char *bytes, size_t len);
/* Adds the last line: the status of a refusal, "closed", "more" (inside a request) or "end". */
void frames_end(struct frames *f, size_t len);
