#include "unit.h"

#include "api/fields.h"
#include "api/request.h"
#include "api_settings.h"
#include "base/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a body is answered; NULL: it is taken. A body may hold NUL if `len` is given. */
struct bad {
	const char *body, *detail;
	size_t len;
};

#define NO_OBJECT "Input should be a valid dictionary or object to extract fields from"
#define ITEM(type, loc, msg, input) \
	"{\"type\":\"" type "\",\"loc\":[\"body\"" loc "],\"msg\":\"" msg "\",\"input\":" input
#define FIELD(type, field, msg, input) ITEM(type, ",\"" field "\"", msg, input)
#define BAD_JSON(pos, error)                                     \
	ITEM("json_invalid", "," pos, "JSON decode error", "{}") \
	",\"ctx\":{\"error\":\"" error "\"}}"
#define TIME_RANGE     ",\"ctx\":{\"ge\":0.001,\"le\":300}}"
#define PIDS_RANGE     ",\"ctx\":{\"ge\":1,\"le\":512}}"
#define NUMBER_TYPE    "Input should be a valid number"
#define NUMBER_PARSING "Input should be a valid number, unable to parse string as a number"
#define FINITE         "Input should be a finite number"
#define OVER(field, most, input)                                                              \
	FIELD("less_than_equal", field, "Input should be less than or equal to " most, input) \
	",\"ctx\":{\"le\":" most "}}"
#define UNDER(field, least, input)                                                            \
	FIELD("greater_than_equal", field, "Input should be greater than or equal to " least, \
		input)                                                                        \
	",\"ctx\":{\"ge\":" least "}}"
#define BOOL_PARSING "Input should be a valid boolean, unable to interpret input"
#define NO_UNICODE   "Input should be a valid string, unable to parse raw data as a unicode string"

static const struct offers offers = {
	.count = 4, /* the last one has gone */
	.editions = { [2] = 7 },
	.of = { { .name = "python", .main_file = "main.py", .aliases = { "py" }, .reports = 1 },
		{ .name = "lua",
			.main_file = "main.lua",
			.aliases = { "lua5.4" },
			.suffixes = { ".lua", ".luac" },
			.limits = { .memory_bytes = UINT64_C(128) << 20, .pids = 4096 } },
		{ .name = "data", .main_file = "main.sh", .is_image = 1 }, { .is_image = 1 } },
};
static const struct api_server server = { &api_settings, &offers };

static char *refused(const char *body, size_t len, int status)
{
	struct api_request r;
	struct api_refusal no;

	assert_int_equal(api_request_parse(body, len, &server, &r, &no), -EINVAL);
	assert_int_equal(no.status, status);
	assert_int_equal(strlen(no.json), no.len);
	return no.json;
}

static void expect(const struct bad *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct bad *b = &rows[i];
		char *json = refused(b->body, b->len ? b->len : strlen(b->body), 422);
		char want[2000];

		(void)snprintf(want, sizeof(want), "{\"detail\":[%s]}", b->detail);
		assert_string_equal(json, want);
		free(json);
	}
}

static struct api_request taken(const char *body, size_t len)
{
	struct api_request r;
	struct api_refusal no;
	int e = api_request_parse(body, len, &server, &r, &no);

	if (e == -EINVAL)
		print_message("%s\n", no.json);
	assert_int_equal(e, 0);
	return r;
}

static void what_is_no_object_is_named_as_fastapi_names_it(void **state)
{
	static const struct bad rows[] = {
		{ "", ITEM("missing", "", "Field required", "null}") },
		{ "null", ITEM("missing", "", "Field required", "null}") },
		{ "[]", ITEM("model_attributes_type", "", NO_OBJECT, "[]}") },
		{ "5", ITEM("model_attributes_type", "", NO_OBJECT, "5}") },
		{ "\"x\"", ITEM("model_attributes_type", "", NO_OBJECT, "\"x\"}") },
		{ "true", ITEM("model_attributes_type", "", NO_OBJECT, "true}") },
		{ "1e999", ITEM("model_attributes_type", "", NO_OBJECT, "\"1e999\"}") },
		{ "NaN", ITEM("model_attributes_type", "", NO_OBJECT, "\"NaN\"}") },
		{ "{}", FIELD("missing", "code", "Field required", "{}}") },
		{ "{\"timeout_seconds\":3}",
			FIELD("missing", "code", "Field required", "{\"timeout_seconds\":3}}") },
		{ "{\"codes\":\"1\",\"x\":2}", FIELD("missing", "code", "Field required",
						       "{\"codes\":\"1\",\"x\":2},\"ctx\":{"
						       "\"unknown\":[\"codes\",\"x\"]}}") },
	};

	(void)state;
	expect(rows, sizeof(rows) / sizeof(rows[0]));
}

/* Positions and words were read off CPython 3.11's json module. */
static void bad_json_is_placed_and_explained_in_pythons_words(void **state)
{
	static const struct bad rows[] = {
		{ " ", BAD_JSON("1", "Expecting value") },
		{ "{", BAD_JSON("1", "Expecting property name enclosed in double quotes") },
		{ "{oops", BAD_JSON("1", "Expecting property name enclosed in double quotes") },
		{ "{\"code\": \"print(1)\", ",
			BAD_JSON("21", "Expecting property name enclosed in double quotes") },
		{ "{\"code\":\"x\",}",
			BAD_JSON("12", "Expecting property name enclosed in double quotes") },
		{ "{\"code\":\"x\"} x", BAD_JSON("13", "Extra data") },
		{ "{\"code\":\"x\"}}", BAD_JSON("12", "Extra data") },
		{ "{\"code\":\"\xc3\xa9\xf0\x9f\x98\x80\"} x", BAD_JSON("14", "Extra data") },
		{ "{\"code\"}", BAD_JSON("7", "Expecting ':' delimiter") },
		{ "{\"code\":}", BAD_JSON("8", "Expecting value") },
		{ "{\"code\":\"x\" 1}", BAD_JSON("12", "Expecting ',' delimiter") },
		{ "{\"code\":\"x", BAD_JSON("8", "Unterminated string starting at") },
		{ "{\"code\":\"x\\", BAD_JSON("8", "Unterminated string starting at") },
		{ "{\"code\":\"a\nb\"}", BAD_JSON("10", "Invalid control character at") },
		{ "{\"code\":\"a\\x\"}", BAD_JSON("10", "Invalid \\\\escape") },
		{ "{\"code\":\"a\\u00g0\"}", BAD_JSON("11", "Invalid \\\\uXXXX escape") },
		{ "{'code':1}",
			BAD_JSON("1", "Expecting property name enclosed in double quotes") },
		{ "{\"code\":01}", BAD_JSON("9", "Expecting ',' delimiter") },
		{ "{\"code\":1.}", BAD_JSON("9", "Expecting ',' delimiter") },
		{ "{\"code\":-}", BAD_JSON("8", "Expecting value") },
		{ "{\"code\":tru}", BAD_JSON("8", "Expecting value") },
		{ "[1,]", BAD_JSON("3", "Expecting value") },
		{ "[1}", BAD_JSON("2", "Expecting ',' delimiter") },
		{ "[", BAD_JSON("1", "Expecting value") },
		{ "{\"code\":\"x\"}\0", BAD_JSON("12", "Extra data"), 13 },
		{ "{\"code\":\"a\0b\"}", BAD_JSON("10", "Invalid control character at"), 14 },
	};

	(void)state;
	expect(rows, sizeof(rows) / sizeof(rows[0]));
}

static void what_python_would_take_but_nobody_should_is_refused(void **state)
{
	static const struct bad rows[] = {
		{ "{\"code\":\"x\",\"code\":\"y\"}", BAD_JSON("12", "Duplicate key \\\"code\\\"") },
		{ "{\"code\":\"x\",\"a\":{\"b\\\"\":1,\"b\\\"\":2}}",
			BAD_JSON("25", "Duplicate key \\\"b\\\\\\\"\\\"") },
		{ "{\"code\":\"x\",\"a\\u0000b\":1}",
			BAD_JSON("12", "NUL in the key \\\"a\\\\u0000b\\\"") },
		{ "{\"code\":\"x\",\"\\ud800\":1}", BAD_JSON("12", "Lone surrogate in a key") },
		{ "{\"code\":\"x\",\"other\":NaN}", BAD_JSON("20", "Expecting value") },
		{ "{\"code\":\"x\",\"other\":[1,-Infinity]}", BAD_JSON("23", "Expecting value") },
		{ "{\"code\":\"caf\xe9\"}", BAD_JSON("12", "Invalid UTF-8") },
		{ "{\"code\":\"\xed\xa0\x80\"}", BAD_JSON("9", "Invalid UTF-8") },
		{ "{\"code\":\"\xc0\x80\"}", BAD_JSON("9", "Invalid UTF-8") },
		{ "\xff\xfe{", BAD_JSON("0", "Invalid UTF-8") },
	};

	(void)state;
	expect(rows, sizeof(rows) / sizeof(rows[0]));
}

static void a_value_of_the_wrong_type_names_its_field(void **state)
{
	static const struct bad rows[] = {
		{ "{\"code\":5}",
			FIELD("string_type", "code", "Input should be a valid string", "5}") },
		{ "{\"code\":null}",
			FIELD("string_type", "code", "Input should be a valid string", "null}") },
		{ "{\"code\":[\"print(1)\"]}",
			FIELD("string_type", "code", "Input should be a valid string",
				"[\"print(1)\"]}") },
		{ "{\"code\":1e999}", FIELD("string_type", "code", "Input should be a valid string",
					      "\"1e999\"}") },
		{ "{\"code\":\"a\\ud800\"}",
			FIELD("string_unicode", "code", NO_UNICODE, "\"\\\"a\\\\ud800\\\"\"}") },
		{ "{\"code\":\"\\ud800\\u0041\"}", FIELD("string_unicode", "code", NO_UNICODE,
							   "\"\\\"\\\\ud800\\\\u0041\\\"\"}") },
		{ "{\"code\":\"\\udc00\\ud800\"}", FIELD("string_unicode", "code", NO_UNICODE,
							   "\"\\\"\\\\udc00\\\\ud800\\\"\"}") },
		{ "{\"code\":\"x\",\"timeout_seconds\":\"5\"}",
			FIELD("float_parsing", "timeout_seconds", NUMBER_PARSING, "\"5\"")
				TIME_RANGE },
		{ "{\"code\":\"x\",\"timeout_seconds\":true}",
			FIELD("float_type", "timeout_seconds", NUMBER_TYPE, "true") TIME_RANGE },
		{ "{\"code\":\"x\",\"timeout_seconds\":{}}",
			FIELD("float_type", "timeout_seconds", NUMBER_TYPE, "{}") TIME_RANGE },
		{ "{\"code\":\"x\",\"timeout_seconds\":NaN}",
			FIELD("finite_number", "timeout_seconds", FINITE, "\"NaN\"") TIME_RANGE },
		{ "{\"code\":\"x\",\"timeout_seconds\":-Infinity}",
			FIELD("finite_number", "timeout_seconds", FINITE, "\"-Infinity\"")
				TIME_RANGE },
		{ "{\"code\":\"x\",\"pids_limit\":1.5}",
			FIELD("int_from_float", "pids_limit",
				"Input should be a valid integer, got a number with a fractional "
				"part",
				"1.5") PIDS_RANGE },
		{ "{\"code\":\"x\",\"pids_limit\":\"7\"}",
			FIELD("int_parsing", "pids_limit",
				"Input should be a valid integer, unable to parse string as an "
				"integer",
				"\"7\"") PIDS_RANGE },
		{ "{\"code\":\"x\",\"pids_limit\":[]}",
			FIELD("int_type", "pids_limit", "Input should be a valid integer", "[]")
				PIDS_RANGE },
		{ "{\"code\":\"x\",\"allow_network\":\"maybe\"}",
			FIELD("bool_parsing", "allow_network", BOOL_PARSING, "\"maybe\"}") },
		{ "{\"code\":\"x\",\"allow_network\":0}",
			FIELD("bool_parsing", "allow_network", BOOL_PARSING, "0}") },
		{ "{\"code\":\"x\",\"allow_network\":[]}",
			FIELD("bool_type", "allow_network", "Input should be a valid boolean",
				"[]}") },
		{ "{\"code\":\"x\",\"allow_network\":true}",
			FIELD("value_error", "allow_network",
				"Value error, this server gives runs no network: network is off; "
				"leave allow_network out or set it to false, or have its operator "
				"set network: on",
				"true}") },
	};

	(void)state;
	expect(rows, sizeof(rows) / sizeof(rows[0]));
}

static void a_number_out_of_range_names_the_bound(void **state)
{
	static const struct bad rows[] = {
		{ "{\"code\":\"x\",\"timeout_seconds\":0}",
			UNDER("timeout_seconds", "0.001", "0") },
		{ "{\"code\":\"x\",\"timeout_seconds\":-1}",
			UNDER("timeout_seconds", "0.001", "-1") },
		{ "{\"code\":\"x\",\"timeout_seconds\":1e-400}",
			UNDER("timeout_seconds", "0.001", "0") },
		{ "{\"code\":\"x\",\"timeout_seconds\":1e9}",
			OVER("timeout_seconds", "300", "1000000000") },
		{ "{\"code\":\"x\",\"timeout_seconds\":1e999}",
			OVER("timeout_seconds", "300", "\"1e999\"") },
		{ "{\"code\":\"x\",\"timeout_seconds\":-1e999}",
			UNDER("timeout_seconds", "0.001", "\"-1e999\"") },
		{ "{\"code\":\"x\",\"timeout_seconds\":9223372036854775807}",
			OVER("timeout_seconds", "300", "9223372036854775807") },
		{ "{\"code\":\"x\",\"timeout_seconds\":9223372036854775808}",
			OVER("timeout_seconds", "300", "\"9223372036854775808\"") },
		{ "{\"code\":\"x\",\"timeout_seconds\":-9223372036854775809}",
			UNDER("timeout_seconds", "0.001", "\"-9223372036854775809\"") },
		{ "{\"code\":\"x\",\"memory_limit_mb\":17592186044417}",
			OVER("memory_limit_mb", "2048", "17592186044417") },
		{ "{\"code\":\"x\",\"memory_limit_mb\":1234567890123456789012345678901234567890}",
			OVER("memory_limit_mb", "2048",
				"\"1234567890123456789012345678901234567890\"") },
		{ "{\"code\":\"x\",\"memory_limit_mb\":0}", UNDER("memory_limit_mb", "4", "0") },
		{ "{\"code\":\"x\",\"cpu_limit\":0}", UNDER("cpu_limit", "0.01", "0") },
		{ "{\"code\":\"x\",\"cpu_limit\":1e300}", OVER("cpu_limit", "4", "1e+300") },
		{ "{\"code\":\"x\",\"pids_limit\":1e300}", OVER("pids_limit", "512", "1e+300") },
		{ "{\"code\":\"x\",\"pids_limit\":4294967297}",
			OVER("pids_limit", "512", "4294967297") },
		{ "{\"code\":\"x\",\"pids_limit\":18446744073709551617}",
			OVER("pids_limit", "512", "\"18446744073709551617\"") },
	};

	(void)state;
	expect(rows, sizeof(rows) / sizeof(rows[0]));
}

static void every_wrong_field_is_listed_in_the_tables_order(void **state)
{
	static const struct bad rows[] = {
		{ "{\"allow_network\":\"maybe\",\"memory_limit_mb\":-1,\"timeout_seconds\":1e999,"
		  "\"code\":1}",
			FIELD("string_type", "code", "Input should be a valid string",
				"1}") "," OVER("timeout_seconds", "300",
				"\"1e999\"") "," UNDER("memory_limit_mb", "4",
				"-1") "," FIELD("bool_parsing", "allow_network", BOOL_PARSING,
				"\"maybe\"}") },
	};

	(void)state;
	expect(rows, 1);
}

/* Drawn from the table, so that a new field is tried too. */
static void each_range_ends_exactly_where_it_says(void **state)
{
	(void)state;
	for (unsigned i = 0; i < API_FIELDS; i++) {
		const struct api_field *f = &api_fields[i];
		double step = f->type == API_NUMBER ? 1 / f->unit : 1;
		struct api_range range;
		char body[200];

		if (!api_field_numeric(f) && f->type != API_BYTES)
			continue;
		range = api_field_range(f, &api_settings);
		for (unsigned end = 0; end < 2; end++) {
			double inside = end ? range.most : range.least;
			double outside = end ? inside + step : inside - step;
			struct api_request r;
			char *json;

			(void)snprintf(body, sizeof(body), "{\"code\":\"x\",\"%s\":%.17g}", f->name,
				inside);
			r = taken(body, strlen(body));
			assert_true((f->type == API_BYTES ? (double)r.output_bytes
							  : api_field_get(f, &r.limits)) == inside);
			api_request_free(&r);
			(void)snprintf(body, sizeof(body), "{\"code\":\"x\",\"%s\":%.17g}", f->name,
				outside);
			json = refused(body, strlen(body), 422);
			assert_non_null(strstr(json, f->name));
			assert_non_null(strstr(json, end ? "\"le\":" : "\"ge\":"));
			free(json);
		}
	}
}

static void absent_fields_take_the_operators_defaults(void **state)
{
	struct api_request r = taken("{\"code\":\"\"}", 11);

	(void)state;
	assert_memory_equal(&r.limits, &api_settings.def, sizeof(r.limits));
	assert_false(r.allow_network);
	assert_int_equal(r.output_bytes, api_settings.output_bytes);
	assert_int_equal(r.code_len, 0);
	assert_int_equal(r.warnings.count, 0);
	api_request_free(&r);
}

static void a_network_is_taken_where_the_operator_gives_it(void **state)
{
	static const char body[] = "{\"code\":\"x\",\"allow_network\":true}";
	struct settings giving = api_settings;
	const struct api_server gives = { &giving, &offers };
	struct api_request r;
	struct api_refusal no;

	(void)state;
	giving.network = 1;
	assert_int_equal(api_request_parse(body, strlen(body), &gives, &r, &no), 0);
	assert_true(r.allow_network);
	assert_int_equal(r.warnings.count, 0);
	api_request_free(&r);
}

static void given_fields_are_converted_to_the_nearest_unit(void **state)
{
	static const char body[] =
		"{\"code\":\"x\",\"timeout_seconds\":1.001,\"memory_limit_mb\":64.5,"
		"\"cpu_limit\":0.57,\"pids_limit\":7.0,\"cpu_time_seconds\":2,"
		"\"allow_network\":false}";
	struct api_request r = taken(body, strlen(body));

	(void)state;
	assert_int_equal(r.limits.timeout_us, 1001000);
	assert_int_equal(r.limits.memory_bytes, 64 * 1048576 + 524288);
	assert_int_equal(r.limits.cpu_milli, 570);
	assert_int_equal(r.limits.pids, 7);
	assert_int_equal(r.limits.cpu_time_us, 2000000);
	api_request_free(&r);
}

static void code_arrives_byte_for_byte(void **state)
{
	static const char body[] =
		"\xef\xbb\xbf{\"code\":\"a\\u0000b\\r\\n\\t\xc3\xa9\\ud83d\\ude00\\ufeff\"}";
	static const char want[] = "a\0b\r\n\t\xc3\xa9\xf0\x9f\x98\x80\xef\xbb\xbf";
	struct api_request r = taken(body, sizeof(body) - 1);

	(void)state;
	assert_int_equal(r.code_len, sizeof(want) - 1);
	assert_memory_equal(r.code, want, sizeof(want));
	api_request_free(&r);
}

static void code_over_the_limit_is_413_and_names_the_limit(void **state)
{
	size_t most = api_settings.code_bytes, len = most + 12;
	char *body = malloc(len), *json;
	struct api_request r;

	(void)state;
	assert_non_null(body);
	memset(body, 'x', len);
	memcpy(body, "{\"code\":\"", 9);
	memcpy(body + len - 2, "\"}", 2);
	json = refused(body, len, 413);
	assert_string_equal(json,
		"{\"detail\":\"code is 2097153 bytes long; this server takes at most 2097152\"}");
	free(json);
	memcpy(body + len - 3, "\"} ", 3);
	r = taken(body, len);
	assert_int_equal(r.code_len, most);
	api_request_free(&r);
	free(body);
}

static void unknown_fields_are_named_and_do_no_harm(void **state)
{
	static const char body[] =
		"{\"code\":\"x\",\"preload\":\"y\",\"id\":18446744073709551615,\"bad\":\"\\ud800\","
		"\"Code\":[{\"a\":1e999}],\"a\\tb\":0}";
	static const char *const want[] = { "preload", "id", "bad", "Code", "a\tb" };
	struct api_request r = taken(body, strlen(body));

	(void)state;
	assert_int_equal(r.warnings.count, 5);
	for (unsigned i = 0; i < 5; i++)
		assert_non_null(strstr(r.warnings.text[i], want[i]));
	api_request_free(&r);
}

static void many_unknown_fields_with_long_names_stay_bounded(void **state)
{
	char *body = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&body, &len);
	struct api_request r;

	(void)state;
	assert_non_null(f);
	(void)fprintf(f, "{\"code\":\"x\"");
	for (unsigned i = 0; i < 500; i++)
		(void)fprintf(f, ",\"%u%0500d\":0", i, 0);
	(void)fprintf(f, "}");
	(void)fclose(f);
	r = taken(body, len);
	assert_int_equal(r.warnings.count, API_UNKNOWN_MAX + 1);
	assert_true(strlen(r.warnings.text[0]) < 120);
	assert_string_equal(
		r.warnings.text[API_UNKNOWN_MAX], "484 more unknown fields were ignored");
	api_request_free(&r);
	free(body);
}

static char *repeat(const char *head, char c, size_t n, const char *tail, size_t *ret_len)
{
	char *text = malloc(strlen(head) + n + strlen(tail) + 1);

	assert_non_null(text);
	(void)stpcpy(text, head);
	memset(text + strlen(head), c, n);
	(void)stpcpy(text + strlen(head) + n, tail);
	*ret_len = strlen(head) + n + strlen(tail);
	return text;
}

static void nesting_is_refused_before_anything_recurses(void **state)
{
	size_t len;
	char *body = repeat("{\"code\":\"x\",\"x\":", '[', 100000, "", &len);
	char *json = refused(body, len, 422);
	struct api_request r;

	(void)state;
	assert_non_null(strstr(json, "[\"body\",79]"));
	assert_non_null(strstr(json, "Nested too deeply"));
	free(json);
	free(body);
	body = repeat("{\"code\":\"x\",\"x\":", '[', API_DEPTH_MAX - 1, "", &len);
	body = realloc(body, len + API_DEPTH_MAX + 1);
	assert_non_null(body);
	memset(body + len, ']', API_DEPTH_MAX - 1);
	body[len + API_DEPTH_MAX - 1] = '}';
	r = taken(body, len + API_DEPTH_MAX);
	api_request_free(&r);
	free(body);
}

static void an_echoed_input_is_clipped(void **state)
{
	size_t len;
	char *body = repeat("{\"code\":{\"a\":\"", 'x', 1000000, "\"}}", &len);
	char *json = refused(body, len, 422);

	(void)state;
	assert_true(strlen(json) < 1000);
	assert_non_null(strstr(json, "xxx\xe2\x80\xa6\""));
	free(json);
	free(body);
	body = repeat("{\"code\":[0", ' ', 100000, "]}", &len);
	for (size_t i = 10; i + 2 < len - 2; i += 2)
		memcpy(body + i, ",0", 2);
	json = refused(body, len, 422);
	assert_true(strlen(json) < 1000);
	free(json);
	free(body);
}

static void a_language_decides_limits_and_the_name_of_the_program(void **state)
{
	static const char lua[] =
		"{\"code\":\"x\",\"language\":\"lua5.4\",\"files\":[{\"path\":\"main.py\","
		"\"content\":\"\"}]}";
	static const char limited[] =
		"{\"memory_limit_mb\":32,\"language\":\"lua\",\"code\":\"x\"}";
	struct api_request r = taken(lua, strlen(lua));

	(void)state;
	assert_int_equal(r.language, 1);
	assert_int_equal(r.limits.memory_bytes, UINT64_C(128) << 20);
	assert_int_equal(r.limits.pids, 512); /* the server's maximum */
	assert_int_equal(r.limits.timeout_us, 3000000);
	api_request_free(&r);
	r = taken(limited, strlen(limited)); /* whatever their order */
	assert_int_equal(r.limits.memory_bytes, 32 << 20);
	api_request_free(&r);
}

static void null_is_as_good_as_absent(void **state)
{
	static const char file[] =
		"{\"code\":null,\"entry_point\":\"a\",\"files\":[{\"path\":\"a\","
		"\"content\":\"\",\"encoding\":null,\"mode\":null}]}";
	static const struct bad rows[] = {
		{ "{\"code\":null,\"entry_point\":null}",
			FIELD("string_type", "code", "Input should be a valid string", "null}") },
		{ "{\"entry_point\":null}", FIELD("missing", "code", "Field required", "{}}") },
		{ "{\"code\":\"x\",\"env\":{\"A\":null}}",
			"{\"type\":\"string_type\",\"loc\":[\"body\",\"env\",\"A\"],\"msg\":"
			"\"Input "
			"should be a valid string\",\"input\":null}" },
	};
	struct api_request r;
	char body[2000];
	size_t len = 0;

	(void)state;
	len += (size_t)snprintf(body, sizeof(body), "{\"code\":\"x\"");
	for (unsigned i = 0; i < API_FIELDS; i++) {
		if (i != API_CODE)
			len += (size_t)snprintf(
				body + len, sizeof(body) - len, ",\"%s\":null", api_fields[i].name);
	}
	len += (size_t)snprintf(body + len, sizeof(body) - len, "}");
	r = taken(body, len);
	assert_memory_equal(&r.limits, &api_settings.def, sizeof(r.limits));
	assert_true(r.report && !r.return_last && !r.interleaved && r.language == 0);
	assert_int_equal(r.warnings.count, 0);
	api_request_free(&r);
	r = taken(file, strlen(file));
	assert_null(r.code);
	api_request_free(&r);
	expect(rows, sizeof(rows) / sizeof(rows[0]));
}

static void an_image_takes_the_place_of_a_language(void **state)
{
	static const char picked[] = "{\"code\":\"x\",\"image\":\"data\"}",
			  own[] = "{\"code\":\"x\",\"image\":\"data\",\"files\":[{\"path\":"
				  "\"main.py\",\"content\":\"\"}]}";
	static const struct bad rows[] = {
		{ "{\"code\":\"x\",\"image\":\"lua\"}",
			FIELD("value_error", "image",
				"Value error, this server knows the images data", "\"lua\"") "}" },
		{ "{\"code\":\"x\",\"image\":\"\"}",
			FIELD("value_error", "image",
				"Value error, this server knows the images data", "\"\"") "}" },
		{ "{\"code\":\"x\",\"language\":\"data\"}",
			FIELD("value_error", "language",
				"Value error, this server knows the languages python, lua; what "
				"was added since its start is known after the next one",
				"\"data\"") "}" },
		{ "{\"code\":\"x\",\"image\":7}",
			FIELD("string_type", "image", "Input should be a valid string", "7") "}" },
		{ "{\"code\":\"x\",\"image\":\"data\",\"language\":\"lua\"}",
			FIELD("value_error", "image",
				"Value error, an image has its own interpreter: give language or "
				"image, not both",
				"\"data\"") "}" },
	};
	struct api_request r = taken(picked, strlen(picked));

	(void)state;
	assert_int_equal(r.language, 2);
	assert_int_equal(r.edition, 7);
	assert_true(r.is_image);
	assert_string_equal(r.name, "data");
	api_request_free(&r);
	r = taken(own, strlen(own)); /* its main file is another */
	api_request_free(&r);
	expect(rows, sizeof(rows) / sizeof(rows[0]));
}

static void a_language_that_is_none_is_refused_with_those_there_are(void **state)
{
#define LANGUAGE_FAULT(value, more)                                                       \
	FIELD("value_error", "language",                                                  \
		"Value error, this server knows the languages python, lua; " more, value) \
	"}"
#define LATER "what was added since its start is known after the next one"
	static const struct bad rows[] = {
		{ "{\"code\":\"x\",\"language\":\"c\"}", LANGUAGE_FAULT("\"c\"", LATER), 0 },
		{ "{\"code\":\"x\",\"language\":\"\"}", LANGUAGE_FAULT("\"\"", LATER), 0 },
		{ "{\"code\":\"x\",\"language\":\"lua\\u0000\"}",
			LANGUAGE_FAULT("\"lua\\u0000\"", "did you mean \\\"lua\\\"?"), 0 },
		{ "{\"code\":\"x\",\"language\":1}",
			FIELD("string_type", "language", "Input should be a valid string", "1") "}",
			0 },
		{ "{\"language\":\"lua\",\"entry_point\":\"a.py\","
		  "\"files\":[{\"path\":\"a.py\",\"content\":\"\"}]}",
			FIELD("value_error", "entry_point",
				"Value error, a program in lua must have a name that ends in "
				"\\\".lua\\\" or \\\".luac\\\"",
				"\"a.py\"") "}",
			0 },
		{ "{\"language\":\"lua\",\"code\":\"x\","
		  "\"files\":[{\"path\":\"main.lua\",\"content\":\"\"}]}",
			ITEM("value_error", ",\"files\",0,\"path\"",
				"Value error, this path is the file that holds the code",
				"\"main.lua\"") "}",
			0 },
	};

	(void)state;
	expect(rows, ARRAY_LEN(rows));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_object_is_named_as_fastapi_names_it),
		cmocka_unit_test(bad_json_is_placed_and_explained_in_pythons_words),
		cmocka_unit_test(what_python_would_take_but_nobody_should_is_refused),
		cmocka_unit_test(a_value_of_the_wrong_type_names_its_field),
		cmocka_unit_test(a_number_out_of_range_names_the_bound),
		cmocka_unit_test(every_wrong_field_is_listed_in_the_tables_order),
		cmocka_unit_test(each_range_ends_exactly_where_it_says),
		cmocka_unit_test(absent_fields_take_the_operators_defaults),
		cmocka_unit_test(a_network_is_taken_where_the_operator_gives_it),
		cmocka_unit_test(given_fields_are_converted_to_the_nearest_unit),
		cmocka_unit_test(code_arrives_byte_for_byte),
		cmocka_unit_test(code_over_the_limit_is_413_and_names_the_limit),
		cmocka_unit_test(unknown_fields_are_named_and_do_no_harm),
		cmocka_unit_test(many_unknown_fields_with_long_names_stay_bounded),
		cmocka_unit_test(nesting_is_refused_before_anything_recurses),
		cmocka_unit_test(an_echoed_input_is_clipped),
		cmocka_unit_test(a_language_decides_limits_and_the_name_of_the_program),
		cmocka_unit_test(null_is_as_good_as_absent),
		cmocka_unit_test(an_image_takes_the_place_of_a_language),
		cmocka_unit_test(a_language_that_is_none_is_refused_with_those_there_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
