#include "api/request.h"

#include "api/detail.h"
#include "api/fields.h"
#include "api/request_body.h"
#include "api/request_inputs.h"
#include "api/request_network.h"
#include "api/scan.h"
#include "api/text.h"
#include "api/writer.h"
#include "base/fault.h"
#include "base/own.h"
#include "wire/report.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_CLIP 64 /* bytes of an unknown field's name that a warning repeats */

/* A body on its way to becoming a request. */
struct parse {
	struct request_body body;
	const struct settings *settings;
	const struct offers *offers;
	const struct offer *offer; /* of the language; NULL: nothing is known of it */
	struct writer why;         /* the items of the 422 */
	unsigned faults;
	struct request_inputs inputs;
	struct request_network network;
};

static void cleanup_parse(struct parse *p)
{
	request_inputs_done(&p->inputs);
	request_network_done(&p->network);
	request_body_done(&p->body);
	writer_drop(&p->why);
}

static bool has_fraction(double n)
{
	return n > -1e15 && n < 1e15 && (double)(int64_t)n != n; /* beyond, ranges decide */
}

/* Why the value is no number for this field; NULL when it is one. */
static const char *no_number_type(
	const struct api_field *f, const json_t *v, const struct scan_odd *odd)
{
	bool integer = f->type != API_NUMBER;

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
	const struct detail_input *input, struct api_request *r)
{
	struct api_range range = api_field_range(f, p->settings);
	const char *type = no_number_type(f, v, &p->body.odd[f->meaning]);
	double n = json_number_value(v);

	if (input->raw) /* only its text is left, and it lies outside of every range */
		n = input->raw[0] == '-' ? -INFINITY : INFINITY;
	if (!type && n >= range.least && n <= range.most) {
		if (f->type == API_BYTES)
			r->output_bytes = (uint64_t)n;
		else
			api_field_set(f, &r->limits, n);
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
	if (input->raw && p->body.odd[f->meaning].what == SCAN_BAD_UNICODE)
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

static void check_artifacts(struct parse *p, const struct api_field *f, const json_t *v,
	const struct detail_input *input, enum artifacts *ret)
{
	const char *word = json_string_value(v);
	enum artifacts a = word && !input->raw ? artifacts_by_word(word) : ARTIFACTS_MAX;

	if (a < ARTIFACTS_MAX && strlen(word) == json_string_length(v))
		*ret = a;
	else
		refuse_field(
			p, f, "literal_error", "Input should be 'none', 'list' or 'inline'", input);
}

/* Is the program there as a file? */
static bool has_entry_point(const struct parse *p)
{
	return json_object_get(p->body.root, api_fields[API_ENTRY_POINT].name) != NULL;
}

static int check_input(struct parse *p, const struct api_field *f, const json_t *v,
	const struct detail_input *input, const struct api_request *r)
{
	int e;

	p->inputs.root = p->body.root;
	p->inputs.why = &p->why;
	p->inputs.settings = p->settings;
	p->inputs.faults = 0;
	e = request_inputs_check(
		&p->inputs, f, v, input->raw ? input : NULL, r->limits.memory_bytes);
	p->faults += p->inputs.faults;
	return e;
}

/* From here on the limits are that language's own. */
static void choose_language(struct parse *p, uint32_t number, struct api_request *r)
{
	r->language = number;
	p->offer = number < p->offers->count ? &p->offers->of[number] : NULL;
	p->inputs.offer = p->offer;
	(void)snprintf(
		r->name, sizeof(r->name), "%s", p->offer ? p->offer->name : LANGUAGE_DEFAULT);
	r->is_image = p->offer && p->offer->is_image;
	r->edition = p->offer ? p->offers->editions[number] : 0;
	offers_limits(p->offers, number, p->settings, &r->limits);
}

static void refuse_word(
	struct parse *p, const struct api_field *f, bool image, const struct detail_input *input)
{
	static const char later[] = "; what was added since its start is known after the next one";
	static const char again[] = ", then start the server again";
	char names[OFFERS_NAMES_MAX], msg[OFFERS_NAMES_MAX + 160];
	const char *what = image ? "image" : "language", *word = json_string_value(input->json),
		   *like = offers_like(p->offers, image, word, json_string_length(input->json));

	if (offers_names(p->offers, image, names, sizeof(names)) == 0)
		(void)snprintf(msg, sizeof(msg),
			"Value error, this server knows no %ss: make or import one with `glovebox "
			"%s`%s",
			what, what, image ? "" : again);
	else if (like)
		(void)snprintf(msg, sizeof(msg),
			"Value error, this server knows the %ss %s; did you mean \"%s\"?", what,
			names, like);
	else
		(void)snprintf(msg, sizeof(msg), "Value error, this server knows the %ss %s%s",
			what, names, image ? "" : later);
	refuse_field(p, f, "value_error", msg, input);
}

static void check_word(struct parse *p, const struct api_field *f, const json_t *v,
	const struct detail_input *input, struct api_request *r)
{
	bool image = f->meaning == API_IMAGE;
	const char *word = json_string_value(v);
	size_t len = json_string_length(v);
	int number;

	if (!word) {
		check_string(p, f, v, input);
		return;
	}
	number =
		image ? offers_find_image(p->offers, word, len) : offers_find(p->offers, word, len);
	if (number < 0)
		refuse_word(p, f, image, input);
	else if (image && json_object_get(p->body.root, api_fields[API_LANGUAGE].name))
		refuse_field(p, f, "value_error",
			"Value error, an image has its own interpreter: give language or image, "
			"not both",
			input);
	else
		choose_language(p, (uint32_t)number, r);
}

static void check_figures(struct parse *p, const struct api_field *f, const json_t *v,
	const struct detail_input *input, uint32_t *ret)
{
	static const uint32_t flags[] = { REPORT_PNG, REPORT_SVG, REPORT_PNG | REPORT_SVG, 0 };
	const char *const *words = api_field_words(f);

	for (size_t i = 0; json_is_string(v) && words[i]; i++) {
		if (strcmp(words[i], json_string_value(v)) == 0) {
			*ret = flags[i];
			return;
		}
	}
	refuse_field(
		p, f, "literal_error", "Input should be 'png', 'svg', 'both' or 'none'", input);
}

/* Who asks for a network gets one, or is told. */
static void check_given(
	struct parse *p, const struct api_field *f, const struct detail_input *input)
{
	char msg[384];

	if (p->settings->network)
		return;
	(void)snprintf(msg, sizeof(msg),
		"Value error, this server gives runs no network: %s; leave %s out%s, or have its "
		"operator set network: on",
		network_why_text(p->settings->network_why), f->name,
		f->meaning == API_NETWORK ? " or set it to false" : "");
	refuse_field(p, f, "value_error", msg, input);
}

static void check_network(struct parse *p, const struct api_field *f, const json_t *v,
	const struct detail_input *input, struct api_request *r)
{
	check_boolean(p, f, v, input, &r->allow_network);
	if (r->allow_network)
		check_given(p, f, input);
}

static int check_policy(struct parse *p, const struct api_field *f, const json_t *v,
	const struct detail_input *input, struct api_request *r)
{
	int e;

	check_given(p, f, input);
	if (json_is_false(json_object_get(p->body.root, api_fields[API_NETWORK].name)))
		refuse_field(p, f, "value_error",
			"Value error, allow_network is false, and network asks for one: leave one "
			"of them out",
			input);
	r->allow_network = true;
	e = request_network_check(&p->network, f, v, input->raw ? input : NULL);
	p->faults += p->network.faults;
	return e;
}

/* Of a field that is true or false: where that stands. */
static bool *flag_of(const struct api_field *f, struct api_request *r)
{
	return f->meaning == API_REPORT        ? &r->report
	       : f->meaning == API_INTERLEAVED ? &r->interleaved
					       : &r->return_last;
}

/* Not every language has a last value that could be told. */
static void check_reports(
	struct parse *p, const struct api_field *f, const struct detail_input *input)
{
	char msg[128 + RUNTIME_NAME_MAX];

	if (!p->offer || p->offer->reports)
		return;
	(void)snprintf(msg, sizeof(msg),
		"Value error, a program in %s tells no last value: leave return_last out or set it "
		"to false",
		p->offer->name);
	refuse_field(p, f, "value_error", msg, input);
}

static void check_flag(struct parse *p, const struct api_field *f, const json_t *v,
	const struct detail_input *input, struct api_request *r)
{
	if (f->meaning == API_NETWORK)
		check_network(p, f, v, input, r);
	else
		check_boolean(p, f, v, input, flag_of(f, r));
	if (f->meaning == API_RETURN_LAST && r->return_last)
		check_reports(p, f, input);
}

/* A value of a field that request_inputs.c has nothing to do with. */
static void check_value(struct parse *p, const struct api_field *f, const json_t *v,
	const struct detail_input *input, struct api_request *r)
{
	switch (f->type) {
	case API_STRING:
		check_string(p, f, v, input);
		break;
	case API_NAME:
		check_word(p, f, v, input, r);
		break;
	case API_NUMBER:
	case API_INTEGER:
	case API_BYTES:
		check_number(p, f, v, input, r);
		break;
	case API_WORD:
		if (f->meaning == API_ARTIFACTS)
			check_artifacts(p, f, v, input, &r->artifacts);
		else
			check_figures(p, f, v, input, &r->figures);
		break;
	case API_BOOLEAN:
	case API_ENCODING:
	case API_STRINGS:
	case API_VARIABLES:
	case API_FILES:
	case API_POLICY:
	default:
		check_flag(p, f, v, input, r);
	}
}

static void refuse_missing(
	struct parse *p, const struct api_field *f, const struct detail_input *input)
{
	const char *unknown[API_UNKNOWN_MAX], *name;
	size_t count = 0;
	json_t *v;

	json_object_foreach(p->body.root, name, v)
	{
		if (count < API_UNKNOWN_MAX && !api_field_by_name(name, strlen(name)))
			unknown[count++] = name;
	}
	detail_missing(&p->why, f, input, unknown, count);
	p->faults++;
}

/* null is what many clients send for a field that they leave out. Where one of `code` and
 * `entry_point` is null the other one is the program; with neither, `code` is still what is wrong. */
static void drop_nulls(struct parse *p)
{
	for (unsigned i = 0; i < API_FIELDS; i++) {
		const char *name = api_fields[i].name;

		if (i != API_CODE && json_is_null(json_object_get(p->body.root, name)))
			(void)json_object_del(p->body.root, name);
	}
	if (has_entry_point(p) &&
		json_is_null(json_object_get(p->body.root, api_fields[API_CODE].name)))
		(void)json_object_del(p->body.root, api_fields[API_CODE].name);
}

static int check_field(struct parse *p, const struct api_field *f, struct api_request *r)
{
	const json_t *v = json_object_get(p->body.root, f->name);
	struct detail_input input = { .json = v };

	if (!v) {
		input.json = p->body.root;
		if (f->required && !has_entry_point(p))
			refuse_missing(p, f, &input);
		return 0;
	}
	if (p->body.odd[f->meaning].len > 0) {
		input.raw = p->body.text + p->body.odd[f->meaning].at;
		input.raw_len = p->body.odd[f->meaning].len;
	}
	if (api_field_is_input(f))
		return check_input(p, f, v, &input, r);
	if (f->type == API_POLICY)
		return check_policy(p, f, v, &input, r);
	check_value(p, f, v, &input, r);
	return 0;
}

static void name_unknown(struct parse *p, struct warnings *w)
{
	unsigned unknown = 0;
	const char *name;
	json_t *v;

	json_object_foreach(p->body.root, name, v)
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
	if (!code)
		return 0; /* a file is the program */
	r->code_len = json_string_length(code);
	r->code = malloc(r->code_len + 1);
	if (!r->code)
		return -ENOMEM;
	memcpy(r->code, json_string_value(code), r->code_len + 1);
	return 0;
}

static int take_network(struct parse *p, struct api_request *r)
{
	if (!r->allow_network)
		return 0;
	r->network = request_network_take(&p->network);
	return r->network ? 0 : -ENOMEM;
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

int api_request_parse(const void *body, size_t len, const struct api_server *server,
	struct api_request *ret, struct api_refusal *ret_why)
{
	static const struct offers nothing = { .count = 0 };
	const struct settings *s = server->settings;
	struct parse p CLEANUP(
		cleanup_parse) = { .body = { .text = body, .len = len }, .settings = s };
	const json_t *code;
	int r;

	*ret = (struct api_request){
		.output_bytes = s->output_bytes, .report = true, .figures = REPORT_PNG
	};
	p.network.settings = s;
	p.network.why = p.body.why = &p.why;
	p.offers = server->offers ? server->offers : &nothing;
	choose_language(&p, 0, ret);
	*ret_why = (struct api_refusal){ 0 };
	if (len >= 3 && memcmp(p.body.text, "\xef\xbb\xbf", 3) == 0) {
		p.body.text += 3; /* a byte order mark, which Python's json also steps over */
		p.body.len -= 3;
	}
	writer_object(&p.why, NULL);
	writer_array(&p.why, "detail");
	r = request_body_parse(&p.body);
	if (r < 0)
		return r;
	p.inputs.bad_text = p.network.bad_text = p.body.bad_text;
	if (p.body.faults == 0) {
		drop_nulls(&p);
		for (unsigned i = 0; r == 0 && i < API_FIELDS; i++)
			r = check_field(&p, &api_fields[i], ret);
		if (r < 0)
			return r;
		if (p.body.elsewhere.len > 0)
			request_body_refuse(&p.body, p.body.elsewhere.at, "Expecting value");
	}
	if (p.faults + p.body.faults > 0)
		return refuse(&p, ret_why);
	code = json_object_get(p.body.root, api_fields[API_CODE].name);
	if (json_string_length(code) > s->code_bytes)
		return refuse_size(json_string_length(code), s->code_bytes, ret_why);
	r = take_code(code, ret);
	if (r == 0)
		r = take_network(&p, ret);
	if (r == 0)
		r = request_inputs_build(
			&p.inputs, &ret->inputs, &ret->inputs_len, &ret->input, &ret->input_len);
	if (r < 0) {
		api_request_free(ret);
		return r;
	}
	name_unknown(&p, &ret->warnings);
	request_inputs_warn(&p.inputs, &ret->warnings);
	return 0;
}

char *api_missing_json(const char *name, bool image, const char *why, size_t *ret_len)
{
	struct writer w CLEANUP(writer_drop) = { 0 };
	json_t *value = json_string(name);
	const struct detail_input input = { .json = value };
	char msg[sizeof(((struct fault *)0)->text) + 32];

	if (!value)
		return NULL;
	(void)snprintf(msg, sizeof(msg), "Value error, %s", why);
	writer_object(&w, NULL);
	writer_array(&w, "detail");
	detail_field(&w, &api_fields[image ? API_IMAGE : API_LANGUAGE], "value_error", msg, &input);
	writer_close(&w);
	writer_close(&w);
	json_decref(value);
	return writer_take(&w, ret_len);
}

uint32_t api_request_report(const struct api_request *r)
{
	if (!r->report)
		return 0;
	return REPORT_ERROR | (r->return_last ? REPORT_LAST : 0) | r->figures;
}

void api_request_free(struct api_request *r)
{
	free(r->code);
	free(r->inputs);
	free(r->input);
	free(r->network);
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
