/* The items of a 422's "detail", in the shape and order that FastAPI gives them:
 * type, loc, msg, input, ctx.
 *
 *   runs in    the front, the caller
 *   owns       nothing
 *   trusts     no byte of the input it echoes: clipped in length, width and depth
 */
#pragma once

#include "api/fields.h"
#include "api/writer.h"

#include <jansson.h>
#include <stddef.h>

/* What the caller sent where the fault is; one of the two, or neither for null. */
struct detail_input {
	const json_t *json;
	const char *raw; /* a piece of the body that JSON cannot hold, valid UTF-8 */
	size_t raw_len;
};

/* Where in the body: a field; in a list the item's index; in an object, or in an item that is
 * one, the member's name. */
struct detail_place {
	const struct api_field *field;
	long index;      /* -1: none */
	const char *key; /* NULL: none; may be the client's: clipped */
	unsigned item;   /* in a list that is such a member: 1 + the item's index; 0: none */
};

/* A fault of the body as a whole. */
void detail_body(struct writer *w, const char *type, const char *msg,
	const struct detail_input *input) __attribute__((nonnull));

/* Something is not there, and `unknown` are the names of what is there and means nothing: perhaps
 * one of them is it. */
void detail_missing(struct writer *w, const struct api_field *f, const struct detail_input *input,
	const char *const *unknown, size_t count) __attribute__((nonnull));

/* A body that is no JSON: `pos` counts characters. `error` may quote the body. */
void detail_json(struct writer *w, size_t pos, const char *error) __attribute__((nonnull));

/* A fault of one field without numbers in it. */
void detail_field(struct writer *w, const struct api_field *f, const char *type, const char *msg,
	const struct detail_input *input) __attribute__((nonnull));

/* A fault at a place within a field. */
void detail_at(struct writer *w, const struct detail_place *place, const char *type,
	const char *msg, const struct detail_input *input) __attribute__((nonnull));

/* A numeric field that holds no number: ctx gives the whole range. */
void detail_no_number(struct writer *w, const struct api_field *f, const char *type,
	const struct api_range *range, const struct detail_input *input) __attribute__((nonnull));

/* A number below or above its range: msg and ctx name the bound. */
void detail_below(struct writer *w, const struct api_field *f, const struct api_range *range,
	const struct detail_input *input) __attribute__((nonnull));
void detail_above(struct writer *w, const struct api_field *f, const struct api_range *range,
	const struct detail_input *input) __attribute__((nonnull));
