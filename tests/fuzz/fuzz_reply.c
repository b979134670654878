/* Fuzz target: hostile output bytes and any numbers of a supervisor as a JSON reply. Checks,
 * beyond memory errors, that
 *  - every byte that was fed is in the head, in the tail, or counted as dropped, in order;
 *  - the reply is JSON, and has the text that was printed where that is UTF-8.
 */
#include "api/output.h"
#include "api/reply.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/api_settings.h"
#include "wire/layer.h"

#include <jansson.h>
#include <stdbool.h>

/* Numbers over 2^63 are JSON, though jansson has no integers for them. */
#define FUZZ_JSON (JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL)

#define STREAM_MAX 16384

static char fed[2][STREAM_MAX];
static size_t fed_len[2];

static void feed(struct fuzz *z, struct output_capture *captures, unsigned which)
{
	size_t n;
	const uint8_t *p = fuzz_take(z, fuzz_u8(z), &n);
	unsigned times = 1 + fuzz_u8(z) % 16;
	char *block = fuzz_block(p, n);

	for (unsigned i = 0; i < times && fed_len[which] + n <= STREAM_MAX; i++) {
		CHECK(output_feed(&captures[which], block, n) == 0);
		memcpy(fed[which] + fed_len[which], block, n);
		fed_len[which] += n;
	}
	free(block);
}

static void check_view(struct output_capture *o, unsigned which)
{
	struct output_view v = output_view(o);

	CHECK(v.total == fed_len[which]);
	CHECK(v.head_len + v.tail_len + v.dropped == v.total);
	CHECK(v.head_len + v.tail_len <= o->cap);
	CHECK(memcmp(v.head, fed[which], v.head_len) == 0);
	if (v.tail_len > 0)
		CHECK(memcmp(v.tail, fed[which] + fed_len[which] - v.tail_len, v.tail_len) == 0 ||
			v.tail + v.tail_len < o->bytes + o->len);
}

static void check_reply(const struct api_reply *r)
{
	size_t len = 0;
	char *json = api_reply_json(r, &len);
	json_error_t e;
	json_t *root;
	const json_t *out;
	struct output_view v = output_view(r->out);

	CHECK(json && strlen(json) == len);
	root = json_loadb(json, len, FUZZ_JSON, &e);
	CHECK(root);
	out = json_object_get(root, "stdout");
	CHECK(json_is_string(out));
	if (v.utf8 && v.dropped == 0)
		CHECK(json_string_length(out) == v.head_len &&
			memcmp(json_string_value(out), v.head, v.head_len) == 0);
	json_decref(root);
	free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz z = { bytes, len };
	struct msg_hello hello = { .settings = api_settings, .layers = fuzz_u64(&z) };
	struct msg_result result = { .cause = 0 };
	struct output_capture captures[2];
	struct api_reply reply = { .id = "r1",
		.hello = &hello,
		.result = &result,
		.limits = &api_settings.def,
		.language = "python",
		.out = &captures[0],
		.err = &captures[1],
		.queue_us = fuzz_u64(&z) };

	fed_len[0] = fed_len[1] = 0;
	if (fuzz_u8(&z) % 4 == 0)
		fuzz_fill(&z, &result, sizeof(result));
	result.cause %= CAUSE_MAX; /* the front answers no other: edge/front/runs.c */
	for (unsigned i = 0; i < 2; i++)
		output_init(&captures[i], 1 + fuzz_u8(&z));
	while (z.len > 0)
		feed(&z, captures, fuzz_u8(&z) % 2);
	for (unsigned i = 0; i < 2; i++)
		check_view(&captures[i], i);
	check_reply(&reply);
	for (unsigned i = 0; i < 2; i++)
		output_free(&captures[i]);
	return 0;
}
