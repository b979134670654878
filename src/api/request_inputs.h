/* stdin, args, env, files and entry_point of a request: every wrong one becomes an item of the
 * 422 with its index or name in `loc`, and the right ones become a plan (inputs.h).
 *
 *   runs in    the front, the caller
 *   owns       the plan's list of files; its texts belong to the request's JSON
 *   trusts     no byte of the request
 */
#pragma once

#include "api/detail.h"
#include "api/fields.h"
#include "api/inputs.h"
#include "api/warnings.h"
#include "api/writer.h"
#include "wire/language.h"

#include <jansson.h>
#include <stdbool.h>

#define REQUEST_INPUTS_SHOWN 16u /* wrong items of lists that a 422 shows; the others are counted */

struct request_inputs {
	const struct settings *settings;
	const struct offer *offer; /* of the language; NULL: that of the settings' runtime */
	const json_t *root;        /* the request's object */
	bool bad_text;             /* somewhere in it a {} stands for a text that is no Unicode */
	struct writer *why;
	unsigned faults, shown, hidden; /* shown, hidden: of the list that is looked at */
	struct inputs_plan plan;
	const json_t *input; /* stdin; NULL: none */
	uint64_t input_bytes;
	bool input_base64;
	bool files_wrong; /* one of them has a fault of its own */
};

/* Check one of these fields, which the request has: `value`, or what could not be parsed in its
 * place (`odd`). In the order of the table: what comes later presumes what came before. 0 or
 * -ENOMEM. */
int request_inputs_check(struct request_inputs *in, const struct api_field *f, const json_t *value,
	const struct detail_input *odd, uint64_t memory_bytes) __attribute__((nonnull(1, 2)));

/* The blob and stdin; each NULL where there is none, and the caller's to free(). 0 or -ENOMEM. */
int request_inputs_build(const struct request_inputs *in, char **ret_blob, size_t *ret_blob_len,
	char **ret_input, size_t *ret_input_len) __attribute__((nonnull));

/* The members of files that nobody knows. */
void request_inputs_warn(const struct request_inputs *in, struct warnings *w)
	__attribute__((nonnull));

void request_inputs_done(struct request_inputs *in) __attribute__((nonnull));
