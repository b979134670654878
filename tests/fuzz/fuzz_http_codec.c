/* Fuzz target: request heads and chunked bodies. Checks, beyond memory errors, that
 *  - no way of cutting the stream changes what is read;
 *  - a prefix is never refused otherwise than the whole;
 *  - what is accepted keeps the promises of edge/http/codec.h.
 */
#include "base/check.h"
#include "edge/http/codec.h"
#include "tests/unit/http_frames.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EVERY_CUT_UP_TO 600u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Each call of the codec sees its bytes in a block of exactly their length, so that ASan
 * notices one byte too far. */
static void feed_exactly(struct frames *f, const uint8_t *bytes, size_t len)
{
	char *copy = malloc(len ? len : 1);

	CHECK(copy);
	(void)memcpy(copy, bytes, len);
	frames_feed(f, copy, len);
	free(copy);
}

static void check_cut(
	const struct frames *whole, const uint8_t *bytes, size_t len, size_t cut, size_t step)
{
	struct frames f;

	frames_init(&f);
	for (size_t n = cut; n < len; n += step)
		feed_exactly(&f, bytes, n);
	feed_exactly(&f, bytes, len);
	frames_end(&f, len);
	CHECK(f.status == whole->status && f.closed == whole->closed);
	CHECK(strcmp(f.text, whole->text) == 0);
}

static void check_prefix(const struct frames *whole, const uint8_t *bytes, size_t len)
{
	struct frames f;

	frames_init(&f);
	feed_exactly(&f, bytes, len);
	CHECK(f.status == 0 || f.status == whole->status);
	CHECK(f.text_len <= whole->text_len && memcmp(f.text, whole->text, f.text_len) == 0);
}

static void check_span(struct http_span s, const char *bytes, size_t head_len)
{
	CHECK((size_t)s.at + s.len + 1 <= head_len); /* a byte to terminate it in */
	for (size_t i = 0; i < s.len; i++)
		CHECK(bytes[s.at + i] == '\t' || (unsigned char)bytes[s.at + i] >= 0x20);
}

static void check_promises(const char *bytes, size_t len)
{
	struct http_head h;
	ssize_t r;

	http_head_init(&h);
	r = http_head_parse(&h, bytes, len);
	if (r <= 0) {
		CHECK(r == 0 || r == -400 || r == -414 || r == -417 || r == -431 || r == -501 ||
			r == -505);
		CHECK(r != 0 || len < HTTP_HEAD_MAX); /* it never waits for more than it takes */
		return;
	}
	CHECK((size_t)r <= len && (size_t)r <= HTTP_HEAD_MAX);
	CHECK(memcmp(bytes + r - 4, "\r\n\r\n", 4) == 0);
	CHECK(h.method.at == 0 && h.method.len > 0 && h.minor <= 1);
	CHECK(bytes[h.target.at] == '/');
	CHECK(h.framing != HTTP_LENGTH || h.content_length > 0);
	CHECK(h.framing == HTTP_LENGTH || h.content_length == 0);
	CHECK(h.field_count <= HTTP_FIELDS_MAX);
	check_span(h.method, bytes, (size_t)r);
	check_span(h.target, bytes, (size_t)r);
	for (unsigned i = 0; i < h.field_count; i++) {
		CHECK(h.fields[i].name.len > 0);
		check_span(h.fields[i].name, bytes, (size_t)r);
		check_span(h.fields[i].value, bytes, (size_t)r);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct frames whole;
	size_t step = len > EVERY_CUT_UP_TO ? len / 64 : 1;

	check_promises((const char *)bytes, len);
	frames_init(&whole);
	feed_exactly(&whole, bytes, len);
	for (size_t n = 0; n < len; n += step)
		check_prefix(&whole, bytes, n);
	frames_end(&whole, len);
	for (size_t n = 0; n < len; n += step)
		check_cut(&whole, bytes, len, n, len);
	check_cut(&whole, bytes, len, 1, step);
	check_cut(&whole, bytes, len, 3, 7 * step);
	return 0;
}
