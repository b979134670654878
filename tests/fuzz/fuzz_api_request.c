/* Any bytes as the body of POST /execute: nothing crashes, every answer is one of three,
 * every refusal is JSON, and what is taken lies within the server's bounds.
 */
#include "api/fields.h"
#include "api/request.h"
#include "api/text.h"
#include "base/check.h"
#include "tests/unit/api_settings.h"
#include "wire/inputs.h"

#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const struct offers offers = {
	.count = 2,
	.of = { { .name = "python", .main_file = "main.py", .aliases = { "py" }, .reports = 1 },
		{ .name = "lua", .main_file = "main.lua", .suffixes = { ".lua" } } },
};
static struct settings giving; /* a network */
static const struct api_server server = { &giving, &offers };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void check_refusal(const struct api_refusal *no)
{
	json_error_t e;
	json_t *root = json_loadb(no->json, no->len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
	const json_t *detail = json_object_get(root, "detail");
	const char *error;

	CHECK(no->status == 422 || no->status == 413);
	CHECK(no->status == 413 ? json_is_string(detail) : json_array_size(detail) > 0);
	CHECK(no->len <
		131072); /* 16 items of each list are shown, with input of some 2,000 bytes */
	/* The scan explains all that jansson refuses but keys. */
	error = json_string_value(
		json_object_get(json_object_get(json_array_get(detail, 0), "ctx"), "error"));
	CHECK(!error || strncmp(error, "Invalid JSON near", 17) != 0);
	json_decref(root);
}

static void check_inputs(const struct api_request *r)
{
	struct inputs in = { .entry = NULL };

	CHECK((r->inputs_len > 0) == (r->inputs != NULL));
	CHECK(r->inputs_len <= api_settings.input_bytes + INPUTS_FRAME_MAX);
	CHECK(r->input_len <= api_settings.input_bytes);
	CHECK((r->input_len > 0) == (r->input != NULL));
	if (r->inputs)
		CHECK(!inputs_open(r->inputs, r->inputs_len, &in));
	CHECK((in.entry != NULL) == (r->code == NULL));
}

static void check_network(const struct api_request *r)
{
	CHECK(r->allow_network == (r->network != NULL));
	if (!r->network)
		return;
	CHECK(!network_policy_fault(r->network));
	CHECK(r->network->max_connections - 1 < giving.network_connections);
	CHECK(r->network->max_bytes - 1 < giving.network_bytes);
	CHECK(r->network->max_rate <= giving.network_rate);
}

static void check_taken(const struct api_request *r)
{
	CHECK(r->code_len <= api_settings.code_bytes);
	CHECK(utf8_valid(r->code, r->code_len) == r->code_len);
	check_inputs(r);
	check_network(r);
	CHECK(r->output_bytes >= 1 && r->output_bytes <= api_settings.output_bytes);
	for (unsigned i = 0; i < API_FIELDS; i++) {
		const struct api_field *f = &api_fields[i];
		struct api_range range;

		if (!api_field_numeric(f))
			continue;
		range = api_field_range(f, &api_settings);
		if (f->meaning == API_CPU_TIME && r->limits.cpu_time_us == 0)
			continue;
		CHECK(api_field_get(f, &r->limits) >= range.least);
		CHECK(api_field_get(f, &r->limits) <= range.most);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	/* A block of exactly that length, so that ASan notices one byte too far. */
	char *body = malloc(len ? len : 1);
	struct api_request r;
	struct api_refusal no;
	int e;

	CHECK(body);
	giving = api_settings;
	giving.network = 1;
	memcpy(body, bytes, len);
	e = api_request_parse(body, len, &server, &r, &no);
	CHECK(e == 0 || e == -EINVAL);
	if (e == -EINVAL) {
		check_refusal(&no);
		api_refusal_free(&no);
	} else if (e == 0) {
		check_taken(&r);
		api_request_free(&r);
	}
	free(body);
	return 0;
}
