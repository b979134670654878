#include "api/request.h"

#include "api/detail.h"
#include "api/fields.h"
#include "api/scan.h"
#include "api/text.h"
#include "api/writer.h"
#include "base/own.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_CLIP 64 /* bytes of an unknown field's name that a warning repeats */

/* A body on its way to becoming a request. */
struct parse {
	const char *body;
	size_t len;
	const struct settings *settings;
	char *patched;     /* the body with each oddity replaced by {}; NULL: there is none */
	bool patch_failed; /* out of memory */
	struct scan_odd odd[API_FIELDS]; /* of the fields themselves; len 0: none */
	struct scan_odd top;             /* the whole body is one */
	struct scan_odd elsewhere;       /* the first one that is no JSON and in no field */
	json_t *root;
	struct writer why; /* the items of the 422 */
	unsigned faults;
};

static void cleanup_parse(struct parse *p)
{
	free(p->patched);
	json_decref(p->root);
	writer_drop(&p->why);
}

/* jansson stops at such a value without saying whose it is, and the other fields would
 * go unchecked: put an empty object in its place and remember what stood there. */
static void take_odd(const struct scan_odd *odd, void *ctx)
{
	struct parse *p = ctx;
	const struct api_field *f = NULL;

	if (!p->patched && !p->patch_failed) {
		p->patched = malloc(p->len);
		p->patch_failed = !p->patched;
		if (p->patched)
			memcpy(p->patched, p->body, p->len);
	}
	if (p->patch_failed)
		return;
	memset(p->patched + odd->at, ' ', odd->len);
	p->patched[odd->at] = '{';
	p->patched[odd->at + 1] = '}';
	if (odd->depth == 1)
		f = api_field_by_name(p->body + odd->key_at, odd->key_len);
	if (f)
		p->odd[f->meaning] = *odd;
	else if (odd->depth == 0)
		p->top = *odd;
	else if (odd->what == SCAN_NOT_FINITE && p->elsewhere.len == 0)
		p->elsewhere = *odd;
}

static void refuse_json(struct parse *p, size_t at, const char *error)
{
	detail_json(&p->why, utf8_count(p->body, at), error);
	p->faults++;
}

/* The key whose closing quote is the last byte before `end`: its opening quote. */
static size_t key_before(const struct parse *p, size_t end)
{
	size_t at = end - 1, slashes;

	while (at > 0) {
		at--;
		if (p->body[at] != '"')
			continue;
		for (slashes = 0; slashes < at && p->body[at - 1 - slashes] == '\\'; slashes++)
			;
		if (slashes % 2 == 0)
			break;
	}
	return at;
}

/* What jansson refuses although the scan did not: two faults of keys. It stops just
 * behind the key's closing quote. */
static void refuse_parsed(struct parse *p, const json_error_t *e)
{
	size_t end = e->position > 0 ? (size_t)e->position : 0, at, len;
	char text[NAME_CLIP + 32];

	if (end > p->len)
		end = p->len;
	at = end > 0 ? key_before(p, end) : 0;
	len = end - at;
	if (len > NAME_CLIP)
		len = utf8_cut_end(p->body + at, NAME_CLIP);
	(void)snprintf(text, sizeof(text), "%s %.*s",
		json_error_code(e) == json_error_duplicate_key      ? "Duplicate key"
		: json_error_code(e) == json_error_null_byte_in_key ? "NUL in the key"
								    : "Invalid JSON near",
		(int)len, p->body + at);
	refuse_json(p, at, text);
}

static void refuse_body(
	struct parse *p, const char *type, const char *msg, const struct detail_input *input)
{
	detail_body(&p->why, type, msg, input);
	p->faults++;
}

/* The body as a JSON object in p->root, or p->faults. 0 or -ENOMEM. */
static int parse_object(struct parse *p)
{
	static const char no_object[] =
		"Input should be a valid dictionary or object to extract fields from";
	struct detail_input input = { 0 };
	struct scan_fault fault;
	json_error_t e;
	size_t valid = utf8_valid(p->body, p->len);

	if (p->len == 0) {
		refuse_body(p, "missing", "Field required", &input);
		return 0;
	}
	if (valid < p->len) {
		refuse_json(p, valid, "Invalid UTF-8");
		return 0;
	}
	json_scan(p->body, p->len, API_DEPTH_MAX, take_odd, p, &fault);
	if (p->patch_failed)
		return -ENOMEM;
	if (fault.error) {
		refuse_json(p, fault.at, fault.error);
		return 0;
	}
	if (p->top.len > 0) {
		input.raw = p->body + p->top.at;
		input.raw_len = p->top.len;
		refuse_body(p, "model_attributes_type", no_object, &input);
		return 0;
	}
	p->root = json_loadb(p->patched ? p->patched : p->body, p->len,
		JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &e);
	if (!p->root) {
		if (json_error_code(&e) == json_error_out_of_memory)
			return -ENOMEM;
		refuse_parsed(p, &e);
	} else if (json_is_null(p->root)) {
		refuse_body(p, "missing", "Field required", &input);
	} else if (!json_is_object(p->root)) {
		input.json = p->root;
		refuse_body(p, "model_attributes_type", no_object, &input);
	}
	return 0;
}

static bool has_fraction(double n)
{
	return n > -1e15 && n < 1e15 && (double)(int64_t)n != n; /* beyond, ranges decide */
}

/* Why the value is no number for this field; NULL when it is one. */
static const char *no_number_type(
	const struct api_field *f, const json_t *v, const struct scan_odd *odd)
{
	bool integer = f->type == API_INTEGER;

	if (odd->len > 0 && odd->what == SCAN_TOO_BIG)
		return NULL;
	if (odd->len > 0 && odd->what == SCAN_NOT_FINITE)
		return "finite_number";
	if (odd->len > 0 || json_is_string(v))
		return integer ? "int_parsing" : "float_parsing";
	if (!json_is_number(v))
		return integer ? "int_type" : "float_type";
	if (integer && has_fraction(json_number_value(v)))
		return "int_from_float";
	return NULL;
}

static void check_number(struct parse *p, const struct api_field *f, const json_t *v,
	const struct detail_input *input, struct run_limits *l)
{
	struct api_range range = api_field_range(f, p->settings);
	const char *type = no_number_type(f, v, &p->odd[f->meaning]);
	double n = json_number_value(v);

	if (input->raw) /* only its text is left, and it lies outside of every range */
		n = input->raw[0] == '-' ? -INFINITY : INFINITY;
	if (!type && n >= range.least && n <= range.most) {
		api_field_set(f, l, n);
		return;
	}
	p->faults++;
	if (type)
		detail_no_number(&p->why, f, type, &range, input);
	else if (n < range.least)
		detail_below(&p->why, f, &range, input);
	else
		detail_above(&p->why, f, &range, input);
}

static void refuse_field(struct parse *p, const struct api_field *f, const char *type,
	const char *msg, const struct detail_input *input)
{
	detail_field(&p->why, f, type, msg, input);
	p->faults++;
}

static void check_string(struct parse *p, const struct api_field *f, const json_t *v,
	const struct detail_input *input)
{
	if (input->raw && p->odd[f->meaning].what == SCAN_BAD_UNICODE)
		refuse_field(p, f, "string_unicode",
			"Input should be a valid string, unable to parse raw data as a unicode "
			"string",
			input);
	else if (!json_is_string(v))
		refuse_field(p, f, "string_type", "Input should be a valid string", input);
}

static void check_boolean(struct parse *p, const struct api_field *f, const json_t *v,
	const struct detail_input *input, bool *ret)
{
	if (json_is_boolean(v)) {
		*ret = json_is_true(v);
	} else if (input->raw || json_is_string(v) || json_is_number(v)) {
		refuse_field(p, f, "bool_parsing",
			"Input should be a valid boolean, unable to interpret input", input);
	} else {
		refuse_field(p, f, "bool_type", "Input should be a valid boolean", input);
	}
}

static void check_field(struct parse *p, const struct api_field *f, struct api_request *r)
{
	const json_t *v = json_object_get(p->root, f->name);
	struct detail_input input = { .json = v };

	if (!v) {
		input.json = p->root;
		if (f->required)
			refuse_field(p, f, "missing", "Field required", &input);
		return;
	}
	if (p->odd[f->meaning].len > 0) {
		input.raw = p->body + p->odd[f->meaning].at;
		input.raw_len = p->odd[f->meaning].len;
	}
	switch (f->type) {
	case API_STRING:
		check_string(p, f, v, &input);
		break;
	case API_NUMBER:
	case API_INTEGER:
		check_number(p, f, v, &input, &r->limits);
		break;
	case API_BOOLEAN:
	default:
		check_boolean(p, f, v, &input, &r->allow_network);
		if (r->allow_network)
			refuse_field(p, f, "value_error",
				"Value error, this server has no network gate: "
				"leave allow_network out or set it to false",
				&input);
	}
}

static void name_unknown(struct parse *p, struct warnings *w)
{
	unsigned unknown = 0;
	const char *name;
	json_t *v;

	json_object_foreach(p->root, name, v)
	{
		size_t len = strlen(name);

		if (api_field_by_name(name, len))
			continue;
		if (++unknown > API_UNKNOWN_MAX)
			continue;
		if (len > NAME_CLIP)
			warnings_add(w, "unknown field \"%.*s…\" was ignored",
				(int)utf8_cut_end(name, NAME_CLIP), name);
		else
			warnings_add(w, "unknown field \"%s\" was ignored", name);
	}
	if (unknown > API_UNKNOWN_MAX)
		warnings_add(w, "%u more unknown fields were ignored", unknown - API_UNKNOWN_MAX);
}

static int take_code(const json_t *code, struct api_request *r)
{
	r->code_len = json_string_length(code);
	r->code = malloc(r->code_len + 1);
	if (!r->code)
		return -ENOMEM;
	memcpy(r->code, json_string_value(code), r->code_len + 1);
	return 0;
}

/* Close the list of faults and hand it over as the answer. */
static int refuse(struct parse *p, struct api_refusal *ret)
{
	writer_close(&p->why);
	writer_close(&p->why);
	ret->status = 422;
	ret->json = writer_take(&p->why, &ret->len);
	return ret->json ? -EINVAL : -ENOMEM;
}

static int refuse_size(size_t len, uint64_t most, struct api_refusal *ret)
{
	ret->status = 413;
	ret->json = api_detail(&ret->len, "code is %zu bytes long; this server takes at most %llu",
		len, (unsigned long long)most);
	return ret->json ? -EINVAL : -ENOMEM;
}

int api_request_parse(const void *body, size_t len, const struct settings *s,
	struct api_request *ret, struct api_refusal *ret_why)
{
	struct parse p CLEANUP(cleanup_parse) = { .body = body, .len = len, .settings = s };
	const json_t *code;
	int r;

	*ret = (struct api_request){ .limits = s->def };
	*ret_why = (struct api_refusal){ 0 };
	if (len >= 3 && memcmp(p.body, "\xef\xbb\xbf", 3) == 0) {
		p.body += 3; /* a byte order mark, which Python's json also steps over */
		p.len -= 3;
	}
	writer_object(&p.why, NULL);
	writer_array(&p.why, "detail");
	r = parse_object(&p);
	if (r < 0)
		return r;
	if (p.faults == 0) {
		for (unsigned i = 0; i < API_FIELDS; i++)
			check_field(&p, &api_fields[i], ret);
		if (p.elsewhere.len > 0)
			refuse_json(&p, p.elsewhere.at, "Expecting value");
	}
	if (p.faults > 0)
		return refuse(&p, ret_why);
	code = json_object_get(p.root, api_fields[API_CODE].name);
	if (json_string_length(code) > s->code_bytes)
		return refuse_size(json_string_length(code), s->code_bytes, ret_why);
	r = take_code(code, ret);
	if (r == 0)
		name_unknown(&p, &ret->warnings);
	return r;
}

void api_request_free(struct api_request *r)
{
	free(r->code);
	warnings_free(&r->warnings);
	*r = (struct api_request){ 0 };
}

void api_refusal_free(struct api_refusal *r)
{
	free(r->json);
	*r = (struct api_refusal){ 0 };
}

char *api_detail(size_t *ret_len, const char *fmt, ...)
{
	struct writer w CLEANUP(writer_drop) = { 0 };
	cleanup_free char *text = NULL;
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (r < 0) {
		text = NULL; /* vasprintf() leaves it undefined */
		return NULL;
	}
	writer_object(&w, NULL);
	writer_string(&w, "detail", text);
	writer_close(&w);
	return writer_take(&w, ret_len);
}
