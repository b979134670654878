#include "api/documents.h"
#include "api/fields.h"
#include "api/network.h"
#include "api/reply_fields.h"
#include "api/request_network.h"
#include "api/writer.h"
#include "base/check.h"
#include "base/own.h"
#include "wire/inputs.h"
#include "wire/language.h"
#include "wire/verdict.h"

#include <stdio.h>
#include <string.h>

/* One answer of an operation. `schema` names a component, NULL: any JSON object, "": bytes. */
struct answer {
	int status;
	const char *schema, *description;
};

struct operation {
	const char *path, *method, *id, *tag, *summary, *description;
	const struct answer *answers; /* ended by status 0 */
};

/* clang-format off */
#define REFUSALS                                                                                    \
	{ 403, "ErrorDetail", "A foreign Origin or Host: another site drives the caller's browser." },  \
	{ 405, "ErrorDetail", "Another method; the Allow header names the right one." }

static const struct answer execute_answers[] = {
	{ 200, "ExecutionResponse", "The code was run, whatever it did." },
	REFUSALS,
	{ 413, "ErrorDetail", "The body or the code is larger than this server takes; names the limit." },
	{ 415, "ErrorDetail", "A body of a type that HTML forms can send." },
	{ 422, "HTTPValidationError", "Something is wrong in the request: every wrong field is listed. Nothing was run." },
	{ 500, "ErrorDetail", "Glovebox failed; the code did not run." },
	{ 503, "ErrorDetail", "No room or not ready; the code did not run. Retry-After says when to try again." },
	{ 0 },
};
static const struct answer health_answers[] = {
	{ 200, "Health", "The server takes runs." },
	REFUSALS,
	{ 503, "Health", "It does not, and says why." },
	{ 0 },
};
static const struct answer limits_answers[] = {
	{ 200, "Limits", "The bounds of this server." },
	REFUSALS,
	{ 0 },
};
static const struct answer runtimes_answers[] = {
	{ 200, "Runtimes", "The languages of this server." },
	REFUSALS,
	{ 0 },
};
static const struct answer file_answers[] = {
	{ 200, "", "The file, as an attachment." },
	{ 400, "ErrorDetail", "The path is not escaped as a URL's path is." },
	REFUSALS,
	{ 404, "ErrorDetail", "No such execution, or no such file of it, is kept here." },
	{ 410, "ErrorDetail", "It was kept, and is no longer." },
	{ 0 },
};
static const struct answer archive_answers[] = {
	{ 200, "", "A tar of all files that are kept of the execution, as an attachment." },
	REFUSALS,
	{ 404, "ErrorDetail", "No files of such an execution are kept here." },
	{ 410, "ErrorDetail", "They were kept, and are no longer." },
	{ 0 },
};
static const struct answer openapi_answers[] = {
	{ 200, NULL, "This document." },
	REFUSALS,
	{ 0 },
};

static const struct operation operations[] = {
	{ "/execute", "post", "execute_code", "execution", "Run a program",
		"Runs the program in a cell of its own and answers with exactly what happened. "
		"Unknown fields do not fail a request; they are named in warnings.",
		execute_answers },
	{ "/executions/{id}/files/{path}", "get", "get_file", "execution", "One file of a run",
		"A file of the answer's `files`, for as long as this server keeps it (artifact-keep). "
		"`href` there is the whole path, escaped.",
		file_answers },
	{ "/executions/{id}/files.tar", "get", "get_files", "execution", "All files of a run",
		"The files that are kept of a run, as one tar.",
		archive_answers },
	{ "/health", "get", "get_health", "server", "Is the server ready",
		"Whether a run would start now, why not, and the layers of the cage in force.",
		health_answers },
	{ "/limits", "get", "get_limits", "server", "Bounds of requests",
		"What a request may ask for, what holds when it does not ask, and the fixed bounds.",
		limits_answers },
	{ "/runtimes", "get", "get_runtimes", "server", "Languages of this server",
		"Every language that `language` may be, with its version, its own limits and its "
		"packages. They are found out by programs in cells: the first answer takes as long as "
		"these, later ones are at hand.",
		runtimes_answers },
	{ "/openapi.json", "get", "get_openapi", "server", "This document",
		"The OpenAPI document of this server, with its own defaults and maxima.",
		openapi_answers },
};
/* clang-format on */

static void put_ref(struct writer *w, const char *key, const char *component)
{
	writer_object(w, key);
	writer_format(w, "$ref", "#/components/schemas/%s", component);
	writer_close(w);
}

/* Of a file in `files`: what take_file() of request_inputs.c takes. */
static void put_file(struct writer *w)
{
	writer_raw(w, "items",
		"{\"type\":\"object\",\"title\":\"InputFile\",\"properties\":{"
		"\"path\":{\"type\":\"string\",\"maxLength\":1024,\"description\":\"Relative to "
		"/workspace; components of at most 255 bytes, none of them empty, . or ..; its "
		"directories are made.\"},"
		"\"content\":{\"type\":\"string\"},"
		"\"encoding\":{\"type\":[\"string\",\"null\"],\"enum\":[\"utf8\",\"base64\",null],"
		"\"default\":\"utf8\"},"
		"\"mode\":{\"type\":[\"string\",\"null\"],\"pattern\":\"^0?[0-7]{3}$\","
		"\"default\":\"644\",\"description\":\"Permissions as octal digits.\"}},"
		"\"required\":[\"path\",\"content\"]}");
	writer_u64(w, "maxItems", INPUTS_FILES_MAX);
}

/* Of `network`: what request_network.c takes. */
static void put_policy(struct writer *w, const struct settings *s)
{
	static const char *const lists[] = { "allow", "deny" };
	struct request_network_bound bounds[REQUEST_NETWORK_BOUNDS];

	request_network_bounds(s, bounds);
	writer_object(w, "properties");
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		writer_object(w, lists[i]);
		writer_raw(w, "type", "[\"array\",\"null\"]");
		writer_object(w, "items");
		writer_string(w, "type", "string");
		writer_u64(w, "minLength", 1);
		writer_u64(w, "maxLength", NETWORK_RULE_TEXT_MAX);
		writer_close(w);
		writer_u64(w, "maxItems", NETWORK_RULES_MAX);
		writer_close(w);
	}
	for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
		writer_object(w, bounds[i].member);
		writer_raw(w, "type", "[\"integer\",\"null\"]");
		writer_u64(w, "minimum", bounds[i].least);
		writer_u64(w, "maximum", bounds[i].most);
		writer_u64(w, "default", bounds[i].most);
		writer_close(w);
	}
	writer_close(w);
	writer_raw(w, "additionalProperties", "false");
}

/* The first is what it is when it is left out. */
static void put_one_of(struct writer *w, const char *const *words)
{
	writer_array(w, "enum");
	for (const char *const *word = words; *word; word++)
		writer_string(w, NULL, *word);
	writer_null(w, NULL);
	writer_close(w);
	writer_string(w, "default", words[0]);
}

/* What a field that is no number may hold. */
static void put_bounds(struct writer *w, const struct api_field *f, const struct settings *s)
{
	switch (f->type) {
	case API_BOOLEAN:
		writer_bool(w, "default", api_field_default(f));
		break;
	case API_NAME:
		if (f->meaning == API_LANGUAGE)
			writer_string(w, "default", LANGUAGE_DEFAULT);
		break;
	case API_ENCODING:
		writer_raw(w, "enum", "[\"utf8\",\"base64\",null]");
		writer_string(w, "default", "utf8");
		break;
	case API_WORD:
		put_one_of(w, api_field_words(f));
		break;
	case API_STRINGS:
		writer_raw(w, "items", "{\"type\":\"string\"}");
		writer_u64(w, "maxItems", INPUTS_ARGS_MAX);
		break;
	case API_VARIABLES:
		writer_raw(w, "additionalProperties", "{\"type\":\"string\"}");
		writer_raw(w, "propertyNames",
			"{\"pattern\":\"^[A-Za-z_][A-Za-z0-9_]*$\",\"maxLength\":128}");
		writer_u64(w, "maxProperties", INPUTS_ENV_MAX);
		break;
	case API_FILES:
		put_file(w);
		break;
	case API_POLICY:
		put_policy(w, s);
		break;
	case API_STRING:
	case API_NUMBER:
	case API_INTEGER:
	case API_BYTES:
	default:
		if (f->meaning == API_CODE)
			writer_u64(w, "maxLength", s->code_bytes);
	}
}

static void put_request_field(struct writer *w, const struct api_field *f, const struct settings *s)
{
	writer_object(w, f->name);
	writer_array(w, "type"); /* null: as if it were not there */
	writer_string(w, NULL, api_type_word(f->type));
	writer_string(w, NULL, "null");
	writer_close(w);
	writer_string(w, "title", f->title);
	writer_string(w, "description", f->description);
	if (api_field_numeric(f) || f->type == API_BYTES) {
		struct api_range r = api_field_range(f, s);

		writer_number(w, "minimum", r.least);
		writer_number(w, "maximum", r.most);
		if (r.has_def)
			writer_number(w, "default", r.def);
	} else {
		put_bounds(w, f, s);
	}
	writer_array(w, "examples");
	writer_raw(w, NULL, f->example);
	writer_close(w);
	writer_close(w);
}

static void put_request(struct writer *w, const char *key, const struct settings *s)
{
	writer_object(w, key);
	writer_string(w, "type", "object");
	writer_string(w, "title", "ExecutionRequest");
	writer_string(w, "description", "A program and what it may use.");
	writer_object(w, "properties");
	for (unsigned i = 0; i < API_FIELDS; i++)
		put_request_field(w, &api_fields[i], s);
	writer_close(w);
	/* The one program. */
	writer_raw(w, "oneOf",
		"[{\"required\":[\"code\"],\"properties\":{\"code\":{\"type\":\"string\"}}},"
		"{\"required\":[\"entry_point\",\"files\"],\"properties\":{\"entry_point\":{"
		"\"type\":"
		"\"string\"},\"files\":{\"type\":\"array\"}}}]");
	writer_close(w);
}

char *api_request_schema(const struct settings *s, size_t *ret_len)
{
	struct writer w CLEANUP(writer_drop) = { 0 };

	put_request(&w, NULL, s);
	return writer_take(&w, ret_len);
}

static void put_words(struct writer *w, const char *(*word)(uint32_t), uint32_t count)
{
	writer_string(w, "type", "string");
	writer_array(w, "enum");
	for (uint32_t i = 0; i < count; i++)
		writer_string(w, NULL, word(i));
	writer_close(w);
}

static void put_reply_type(struct writer *w, const struct reply_field *f)
{
	static const char *const simple[] = {
		[REPLY_STRING] = "\"string\"",
		[REPLY_STRING_OR_NULL] = "[\"string\",\"null\"]",
		[REPLY_NUMBER] = "\"number\"",
		[REPLY_INTEGER] = "\"integer\"",
		[REPLY_INTEGER_OR_NULL] = "[\"integer\",\"null\"]",
		[REPLY_BOOLEAN] = "\"boolean\"",
		[REPLY_BOOLEAN_OR_NULL] = "[\"boolean\",\"null\"]",
	};

	if ((size_t)f->type < ARRAY_LEN(simple)) {
		writer_raw(w, "type", simple[f->type]);
		return;
	}
	switch ((unsigned)f->type) { /* of those that are not simple */
	case REPLY_STRINGS:
		writer_string(w, "type", "array");
		writer_raw(w, "items", "{\"type\":\"string\"}");
		break;
	case REPLY_STATUS:
		put_words(w, run_status_word, STATUS_MAX);
		break;
	case REPLY_CAUSE:
		put_words(w, run_cause_word, CAUSE_MAX);
		break;
	case REPLY_BUNDLE:
		writer_string(w, "type", "object");
		writer_raw(w, "additionalProperties", "true");
		break;
	case REPLY_OBJECT_OR_NULL:
		writer_array(w, "anyOf");
		put_ref(w, NULL, f->example);
		writer_raw(w, NULL, "{\"type\":\"null\"}");
		writer_close(w);
		break;
	case REPLY_OBJECTS:
		writer_string(w, "type", "array");
		put_ref(w, "items", f->example);
		break;
	case REPLY_OBJECTS_OR_NULL:
		writer_raw(w, "type", "[\"array\",\"null\"]");
		put_ref(w, "items", f->example);
		break;
	case REPLY_OBJECT:
	default:
		writer_format(w, "$ref", "#/components/schemas/%s", f->example);
	}
}

static void put_group(struct writer *w, enum reply_group group)
{
	writer_object(w, reply_group_name(group));
	writer_string(w, "type", "object");
	writer_string(w, "title", reply_group_name(group));
	writer_object(w, "properties");
	for (size_t i = 0; i < reply_fields_len; i++) {
		const struct reply_field *f = &reply_fields[i];

		if (f->group != group)
			continue;
		writer_object(w, f->name);
		put_reply_type(w, f);
		writer_string(w, "description", f->description);
		if (f->type != REPLY_OBJECT && f->type != REPLY_OBJECTS &&
			f->type != REPLY_OBJECTS_OR_NULL && f->type != REPLY_OBJECT_OR_NULL) {
			writer_array(w, "examples");
			writer_raw(w, NULL, f->example);
			writer_close(w);
		}
		writer_close(w);
	}
	writer_close(w);
	writer_array(w, "required");
	for (size_t i = 0; i < reply_fields_len; i++) {
		if (reply_fields[i].group == group && !reply_fields[i].optional)
			writer_string(w, NULL, reply_fields[i].name);
	}
	writer_close(w);
	writer_close(w);
}

/* An object with one number a numeric request field; null where nothing applies. */
static void put_numbers(struct writer *w, const char *key, bool nullable)
{
	writer_object(w, key);
	writer_string(w, "type", "object");
	writer_object(w, "properties");
	for (unsigned i = 0; i < API_FIELDS; i++) {
		const struct api_field *f = &api_fields[i];

		if (!api_field_numeric(f))
			continue;
		writer_object(w, f->name);
		if (nullable && f->meaning == API_CPU_TIME)
			writer_raw(w, "type", "[\"number\",\"null\"]");
		else
			writer_string(w, "type", api_type_word(f->type));
		writer_string(w, "description", f->description);
		writer_close(w);
	}
}

/* The bounds of a run's network. */
static void put_network_limits(struct writer *w)
{
	writer_raw(w, "network",
		"{\"type\":[\"object\",\"null\"],\"description\":\"What it asked for of the "
		"network, "
		"and the bounds that held; null: it had none.\",\"properties\":{"
		"\"allow\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
		"\"deny\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
		"\"max_connections\":{\"type\":\"integer\"},\"max_bytes\":{\"type\":\"integer\"},"
		"\"max_rate\":{\"type\":\"integer\"}},\"required\":[\"allow\",\"deny\","
		"\"max_connections\",\"max_bytes\",\"max_rate\"]}");
}

static void end_numbers(struct writer *w, bool run)
{
	if (run) {
		writer_raw(w, "allow_network", "{\"type\":\"boolean\"}");
		put_network_limits(w);
		writer_raw(w, "output_bytes", "{\"type\":\"integer\"}");
	}
	writer_close(w);
	writer_array(w, "required");
	for (unsigned i = 0; i < API_FIELDS; i++) {
		if (api_field_numeric(&api_fields[i]))
			writer_string(w, NULL, api_fields[i].name);
	}
	if (run) {
		writer_string(w, NULL, "allow_network");
		writer_string(w, NULL, "network");
		writer_string(w, NULL, "output_bytes");
	}
	writer_close(w);
	writer_close(w);
}

/* A request can say nothing of a compiler's limits, and nothing of its CPU time is bounded. */
static void end_compile(struct writer *w)
{
	writer_close(w);
	writer_close(w);
}

static void put_limits(struct writer *w)
{
	writer_object(w, "Limits");
	writer_string(w, "type", "object");
	writer_object(w, "properties");
	put_numbers(w, "defaults", true);
	end_numbers(w, false);
	put_numbers(w, "minima", false);
	end_numbers(w, false);
	put_numbers(w, "maxima", false);
	end_numbers(w, false);
	put_ref(w, "fixed", reply_group_name(REPLY_FIXED));
	writer_close(w);
	writer_raw(w, "required", "[\"defaults\",\"minima\",\"maxima\",\"fixed\"]");
	writer_close(w);
}

static void put_output(struct writer *w)
{
	writer_object(w, "Output");
	writer_string(w, "type", "object");
	writer_object(w, "properties");
	put_ref(w, "stdout", reply_group_name(REPLY_STREAM));
	put_ref(w, "stderr", reply_group_name(REPLY_STREAM));
	writer_close(w);
	writer_raw(w, "required", "[\"stdout\",\"stderr\"]");
	writer_close(w);
}

/* The names and shapes that FastAPI's users know. */
static void put_errors(struct writer *w)
{
	writer_raw(w, "ErrorDetail",
		"{\"type\":\"object\",\"title\":\"ErrorDetail\","
		"\"properties\":{\"detail\":{\"type\":\"string\",\"title\":\"Detail\"}},"
		"\"required\":[\"detail\"]}");
	writer_raw(w, "HTTPValidationError",
		"{\"type\":\"object\",\"title\":\"HTTPValidationError\",\"properties\":{\"detail\":"
		"{\"type\":\"array\",\"title\":\"Detail\","
		"\"items\":{\"$ref\":\"#/components/schemas/ValidationError\"}}}}");
	writer_raw(w, "ValidationError",
		"{\"type\":\"object\",\"title\":\"ValidationError\",\"properties\":{"
		"\"loc\":{\"type\":\"array\",\"title\":\"Location\","
		"\"items\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}},"
		"\"msg\":{\"type\":\"string\",\"title\":\"Message\"},"
		"\"type\":{\"type\":\"string\",\"title\":\"Error Type\"},"
		"\"input\":{\"title\":\"Input\"},"
		"\"ctx\":{\"type\":\"object\",\"title\":\"Context\"}},"
		"\"required\":[\"loc\",\"msg\",\"type\"]}");
}

static void put_components(struct writer *w, const struct settings *s)
{
	writer_object(w, "components");
	writer_object(w, "schemas");
	put_request(w, "ExecutionRequest", s);
	for (unsigned g = 0; g < REPLY_GROUPS; g++)
		put_group(w, (enum reply_group)g);
	put_numbers(w, "RunLimits", true);
	end_numbers(w, true);
	put_numbers(w, "RuntimeLimits", true);
	end_numbers(w, false);
	put_numbers(w, "CompileLimits", false);
	end_compile(w);
	put_limits(w);
	put_output(w);
	put_errors(w);
	writer_close(w);
	writer_close(w);
}

static void put_answer(struct writer *w, const struct answer *a)
{
	char status[16];

	(void)snprintf(status, sizeof(status), "%d", a->status);
	writer_object(w, status);
	writer_string(w, "description", a->description);
	if (a->status == 503 && strcmp(a->schema, "ErrorDetail") == 0)
		writer_raw(w, "headers",
			"{\"Retry-After\":{\"description\":\"Seconds to wait.\","
			"\"schema\":{\"type\":\"integer\"}}}");
	writer_object(w, "content");
	if (a->schema && !*a->schema) {
		writer_raw(w, "*/*", "{}");
		writer_close(w);
		writer_close(w);
		return;
	}
	writer_object(w, "application/json");
	if (a->schema)
		put_ref(w, "schema", a->schema);
	else
		writer_raw(w, "schema", "{\"type\":\"object\"}");
	writer_close(w);
	writer_close(w);
	writer_close(w);
}

/* The parts of the path in braces. */
static void put_parameters(struct writer *w, const char *path)
{
	if (!strchr(path, '{'))
		return;
	writer_array(w, "parameters");
	writer_raw(w, NULL,
		"{\"name\":\"id\",\"in\":\"path\",\"required\":true,\"description\":\"The "
		"answer's "
		"`id`.\",\"schema\":{\"type\":\"string\",\"pattern\":\"^[0-9a-f]{32}$\"}}");
	if (strstr(path, "{path}"))
		writer_raw(w, NULL,
			"{\"name\":\"path\",\"in\":\"path\",\"required\":true,\"description\":"
			"\"The "
			"file's path, escaped; its slashes may stand as they are.\","
			"\"schema\":{\"type\":\"string\"}}");
	writer_close(w);
}

static void put_operation(struct writer *w, const struct operation *o)
{
	writer_object(w, o->path);
	writer_object(w, o->method);
	writer_array(w, "tags");
	writer_string(w, NULL, o->tag);
	writer_close(w);
	writer_string(w, "operationId", o->id);
	writer_string(w, "summary", o->summary);
	writer_string(w, "description", o->description);
	if (strcmp(o->method, "post") == 0) {
		writer_object(w, "requestBody");
		writer_bool(w, "required", true);
		writer_object(w, "content");
		writer_object(w, "application/json");
		put_ref(w, "schema", "ExecutionRequest");
		writer_close(w);
		writer_close(w);
		writer_close(w);
	}
	put_parameters(w, o->path);
	writer_object(w, "responses");
	for (const struct answer *a = o->answers; a->status; a++)
		put_answer(w, a);
	writer_close(w);
	writer_close(w);
	writer_close(w);
}

static void put_info(struct writer *w)
{
	writer_object(w, "info");
	writer_string(w, "title", "Glovebox");
	writer_string(w, "summary", "A sandboxed tool executor.");
	writer_string(w, "description",
		"Takes untrusted code over HTTP, runs it inside a cage of kernel mechanisms, and "
		"answers with exactly what happened.");
	writer_string(w, "version", API_VERSION);
	writer_raw(w, "contact", "{\"name\":\"The operator of this server\"}");
	writer_raw(w, "license",
		"{\"name\":\"All rights "
		"reserved\",\"identifier\":\"LicenseRef-AllRightsReserved\"}");
	writer_close(w);
}

char *api_openapi_json(const struct settings *s, size_t *ret_len)
{
	struct writer w CLEANUP(writer_drop) = { 0 };

	writer_object(&w, NULL);
	writer_string(&w, "openapi", "3.1.0");
	put_info(&w);
	writer_raw(&w, "servers", "[{\"url\":\"/\"}]");
	writer_raw(&w, "security", "[]");
	writer_raw(&w, "tags",
		"[{\"name\":\"execution\",\"description\":\"Running programs.\"},"
		"{\"name\":\"server\",\"description\":\"The server itself.\"}]");
	writer_object(&w, "paths");
	for (size_t i = 0; i < ARRAY_LEN(operations); i++)
		put_operation(&w, &operations[i]);
	writer_close(&w);
	put_components(&w, s);
	writer_close(&w);
	return writer_take(&w, ret_len);
}
