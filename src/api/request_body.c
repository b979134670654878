#include "api/request_body.h"

#include "api/detail.h"
#include "api/request.h"
#include "api/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_CLIP 64 /* bytes of a key that is wrong, repeated in what is said of it */

/* jansson stops at such a value without saying whose it is, and the other fields would
 * go unchecked: put an empty object in its place and remember what stood there. */
static void take_odd(const struct scan_odd *odd, void *ctx)
{
	struct request_body *b = ctx;
	const struct api_field *f = NULL;

	if (!b->patched && !b->patch_failed) {
		b->patched = malloc(b->len);
		b->patch_failed = !b->patched;
		if (b->patched)
			memcpy(b->patched, b->text, b->len);
	}
	if (b->patch_failed)
		return;
	memset(b->patched + odd->at, ' ', odd->len);
	b->patched[odd->at] = '{';
	b->patched[odd->at + 1] = '}';
	if (odd->depth == 1)
		f = api_field_by_name(b->text + odd->key_at, odd->key_len);
	if (f)
		b->odd[f->meaning] = *odd;
	else if (odd->depth == 0)
		b->top = *odd;
	else if (odd->what == SCAN_NOT_FINITE && b->elsewhere.len == 0)
		b->elsewhere = *odd;
	else if (odd->what == SCAN_BAD_UNICODE)
		b->bad_text = true;
}

void request_body_refuse(struct request_body *b, size_t at, const char *error)
{
	detail_json(b->why, utf8_count(b->text, at), error);
	b->faults++;
}

/* The key whose closing quote is the last byte before `end`: its opening quote. */
static size_t key_before(const struct request_body *b, size_t end)
{
	size_t at = end - 1, slashes;

	while (at > 0) {
		at--;
		if (b->text[at] != '"')
			continue;
		for (slashes = 0; slashes < at && b->text[at - 1 - slashes] == '\\'; slashes++)
			;
		if (slashes % 2 == 0)
			break;
	}
	return at;
}

/* What jansson refuses although the scan did not: two faults of keys. It stops just
 * behind the key's closing quote. */
static void refuse_parsed(struct request_body *b, const json_error_t *e)
{
	size_t end = e->position > 0 ? (size_t)e->position : 0, at, len;
	char text[NAME_CLIP + 32];

	if (end > b->len)
		end = b->len;
	at = end > 0 ? key_before(b, end) : 0;
	len = end - at;
	if (len > NAME_CLIP)
		len = utf8_cut_end(b->text + at, NAME_CLIP);
	(void)snprintf(text, sizeof(text), "%s %.*s",
		json_error_code(e) == json_error_duplicate_key      ? "Duplicate key"
		: json_error_code(e) == json_error_null_byte_in_key ? "NUL in the key"
								    : "Invalid JSON near",
		(int)len, b->text + at);
	request_body_refuse(b, at, text);
}

static void refuse_whole(
	struct request_body *b, const char *type, const char *msg, const struct detail_input *input)
{
	detail_body(b->why, type, msg, input);
	b->faults++;
}

int request_body_parse(struct request_body *b)
{
	static const char no_object[] =
		"Input should be a valid dictionary or object to extract fields from";
	struct detail_input input = { 0 };
	struct scan_fault fault;
	json_error_t e;
	size_t valid = utf8_valid(b->text, b->len);

	if (b->len == 0) {
		refuse_whole(b, "missing", "Field required", &input);
		return 0;
	}
	if (valid < b->len) {
		request_body_refuse(b, valid, "Invalid UTF-8");
		return 0;
	}
	json_scan(b->text, b->len, API_DEPTH_MAX, take_odd, b, &fault);
	if (b->patch_failed)
		return -ENOMEM;
	if (fault.error) {
		request_body_refuse(b, fault.at, fault.error);
		return 0;
	}
	if (b->top.len > 0) {
		input.raw = b->text + b->top.at;
		input.raw_len = b->top.len;
		refuse_whole(b, "model_attributes_type", no_object, &input);
		return 0;
	}
	b->root = json_loadb(b->patched ? b->patched : b->text, b->len,
		JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &e);
	if (!b->root) {
		if (json_error_code(&e) == json_error_out_of_memory)
			return -ENOMEM;
		refuse_parsed(b, &e);
	} else if (json_is_null(b->root)) {
		refuse_whole(b, "missing", "Field required", &input);
	} else if (!json_is_object(b->root)) {
		input.json = b->root;
		refuse_whole(b, "model_attributes_type", no_object, &input);
	}
	return 0;
}

void request_body_done(struct request_body *b)
{
	free(b->patched);
	json_decref(b->root);
}
