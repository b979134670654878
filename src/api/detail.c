#include "api/detail.h"

#include "api/text.h"

#include <stdio.h>
#include <string.h>

#define CLIP_STRING 200 /* bytes of one string */
#define CLIP_WIDTH  16  /* members of one container */
#define CLIP_DEPTH  4
#define CLIP_TOTAL  2000 /* bytes of one input, about */

#define ELLIPSIS "\xe2\x80\xa6"

static void put_clipped(struct writer *w, const char *key, const char *text, size_t len)
{
	writer_text_begin(w, key);
	if (len <= CLIP_STRING) {
		writer_text(w, text, len);
	} else {
		writer_text(w, text, utf8_cut_end(text, CLIP_STRING));
		writer_text(w, ELLIPSIS, strlen(ELLIPSIS));
	}
	writer_text_end(w);
}

static void put_value(
	struct writer *w, const char *key, const json_t *v, unsigned depth, size_t start);

/* Recursion ends at CLIP_DEPTH, however deep the value is. */
static void put_container(
	struct writer *w, const char *key, const json_t *v, unsigned depth, size_t start)
{
	unsigned n = 0;

	if (json_is_array(v)) {
		writer_array(w, key);
		for (size_t i = 0; i < json_array_size(v) && n < CLIP_WIDTH; i++, n++)
			put_value(w, NULL, json_array_get(v, i), depth + 1, start);
	} else {
		/* The iterator's functions take a json_t that is not const, and change nothing. */
		json_t *object = (json_t *)(uintptr_t)v;
		void *it = json_object_iter(object);

		writer_object(w, key);
		for (; it && n < CLIP_WIDTH; it = json_object_iter_next(object, it), n++) {
			const char *name = json_object_iter_key(it);

			if (strlen(name) <= CLIP_STRING)
				put_value(w, name, json_object_iter_value(it), depth + 1, start);
		}
	}
	writer_close(w);
}

static void put_value(
	struct writer *w, const char *key, const json_t *v, unsigned depth, size_t start)
{
	if (w->len - start > CLIP_TOTAL) {
		writer_string(w, key, ELLIPSIS);
		return;
	}
	switch (json_typeof(v)) {
	case JSON_OBJECT:
	case JSON_ARRAY:
		if (depth == CLIP_DEPTH)
			writer_string(w, key, ELLIPSIS);
		else
			put_container(w, key, v, depth, start);
		break;
	case JSON_STRING:
		put_clipped(w, key, json_string_value(v), json_string_length(v));
		break;
	case JSON_REAL:
		writer_number(w, key, json_real_value(v));
		break;
	case JSON_INTEGER:
		writer_i64(w, key, json_integer_value(v));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		writer_bool(w, key, json_is_true(v));
		break;
	case JSON_NULL:
	default:
		writer_null(w, key);
	}
}

static void put_input(struct writer *w, const struct detail_input *input)
{
	if (input->raw)
		put_clipped(w, "input", input->raw, input->raw_len);
	else if (input->json)
		put_value(w, "input", input->json, 0, w->len);
	else
		writer_null(w, "input");
}

/* An item up to and including its input; the caller adds ctx and closes. */
static void begin_at(struct writer *w, const struct detail_place *place, const char *type,
	const char *msg, const struct detail_input *input)
{
	writer_object(w, NULL);
	writer_string(w, "type", type);
	writer_array(w, "loc");
	writer_string(w, NULL, "body");
	if (place->field)
		writer_string(w, NULL, place->field->name);
	if (place->index >= 0)
		writer_i64(w, NULL, place->index);
	if (place->key)
		put_clipped(w, NULL, place->key, strlen(place->key));
	if (place->item)
		writer_u64(w, NULL, place->item - 1);
	writer_close(w);
	writer_string(w, "msg", msg);
	put_input(w, input);
}

static void begin(struct writer *w, const struct api_field *f, const char *type, const char *msg,
	const struct detail_input *input)
{
	begin_at(w, &(struct detail_place){ f, -1, NULL, 0 }, type, msg, input);
}

void detail_at(struct writer *w, const struct detail_place *place, const char *type,
	const char *msg, const struct detail_input *input)
{
	begin_at(w, place, type, msg, input);
	writer_close(w);
}

void detail_body(
	struct writer *w, const char *type, const char *msg, const struct detail_input *input)
{
	begin(w, NULL, type, msg, input);
	writer_close(w);
}

void detail_field(struct writer *w, const struct api_field *f, const char *type, const char *msg,
	const struct detail_input *input)
{
	begin(w, f, type, msg, input);
	writer_close(w);
}

void detail_missing(struct writer *w, const struct api_field *f, const struct detail_input *input,
	const char *const *unknown, size_t count)
{
	begin(w, f, "missing", "Field required", input);
	if (count > 0) {
		writer_object(w, "ctx");
		writer_array(w, "unknown");
		for (size_t i = 0; i < count; i++)
			put_clipped(w, NULL, unknown[i], strlen(unknown[i]));
		writer_close(w);
		writer_close(w);
	}
	writer_close(w);
}

void detail_json(struct writer *w, size_t pos, const char *error)
{
	writer_object(w, NULL);
	writer_string(w, "type", "json_invalid");
	writer_array(w, "loc");
	writer_string(w, NULL, "body");
	writer_u64(w, NULL, pos);
	writer_close(w);
	writer_string(w, "msg", "JSON decode error");
	writer_raw(w, "input", "{}");
	writer_object(w, "ctx");
	writer_string(w, "error", error);
	writer_close(w);
	writer_close(w);
}

void detail_no_number(struct writer *w, const struct api_field *f, const char *type,
	const struct api_range *range, const struct detail_input *input)
{
	/* clang-format off */
	static const struct {
		const char *type, *msg;
	} texts[] = {
		{ "float_type",     "Input should be a valid number" },
		{ "float_parsing",  "Input should be a valid number, unable to parse string as a number" },
		{ "int_type",       "Input should be a valid integer" },
		{ "int_parsing",    "Input should be a valid integer, unable to parse string as an integer" },
		{ "int_from_float", "Input should be a valid integer, got a number with a fractional part" },
		{ "finite_number",  "Input should be a finite number" },
	};
	/* clang-format on */
	const char *msg = texts[0].msg;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (strcmp(texts[i].type, type) == 0)
			msg = texts[i].msg;
	}
	begin(w, f, type, msg, input);
	writer_object(w, "ctx");
	writer_number(w, "ge", range->least);
	writer_number(w, "le", range->most);
	writer_close(w);
	writer_close(w);
}

static void bound(struct writer *w, const struct api_field *f, bool above, double limit,
	const struct detail_input *input)
{
	char msg[120];

	(void)snprintf(msg, sizeof(msg), "Input should be %s than or equal to %.15g",
		above ? "less" : "greater", limit);
	begin(w, f, above ? "less_than_equal" : "greater_than_equal", msg, input);
	writer_object(w, "ctx");
	writer_number(w, above ? "le" : "ge", limit);
	writer_close(w);
	writer_close(w);
}

void detail_below(struct writer *w, const struct api_field *f, const struct api_range *range,
	const struct detail_input *input)
{
	bound(w, f, false, range->least, input);
}

void detail_above(struct writer *w, const struct api_field *f, const struct api_range *range,
	const struct detail_input *input)
{
	bound(w, f, true, range->most, input);
}
