#include "unit.h"

#include "api/documents.h"
#include "api/fields.h"
#include "api_settings.h"
#include "wire/layer.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static json_t *parsed(char *json)
{
	json_error_t e;
	json_t *root;

	assert_non_null(json);
	root = json_loads(json, JSON_REJECT_DUPLICATES, &e);
	assert_non_null(root);
	free(json);
	return root;
}

static json_t *at(json_t *v, const char *a, const char *b, const char *c)
{
	v = json_object_get(v, a);
	v = b ? json_object_get(v, b) : v;
	return c ? json_object_get(v, c) : v;
}

static void the_openapi_document_lists_every_field_with_this_servers_range(void **state)
{
	json_t *root = parsed(api_openapi_json(&api_settings, NULL));
	json_t *fields =
		at(at(root, "components", "schemas", "ExecutionRequest"), "properties", NULL, NULL);

	(void)state;
	assert_int_equal(json_object_size(fields), API_FIELDS);
	for (unsigned i = 0; i < API_FIELDS; i++) {
		const struct api_field *f = &api_fields[i];
		json_t *field = json_object_get(fields, f->name);
		struct api_range range;

		assert_string_equal(
			json_string_value(json_array_get(at(field, "type", NULL, NULL), 0)),
			api_type_word(f->type));
		assert_string_equal(
			json_string_value(json_array_get(at(field, "type", NULL, NULL), 1)),
			"null");
		assert_true(strlen(json_string_value(at(field, "description", NULL, NULL))) > 0);
		if (!api_field_numeric(f) && f->type != API_BYTES)
			continue;
		range = api_field_range(f, &api_settings);
		assert_true(json_number_value(at(field, "minimum", NULL, NULL)) == range.least);
		assert_true(json_number_value(at(field, "maximum", NULL, NULL)) == range.most);
		assert_true(!range.has_def ||
			    json_number_value(at(field, "default", NULL, NULL)) == range.def);
	}
	json_decref(root);
}

/* Every "$ref" in `v` leads to a component of `root`. */
static void expect_refs(json_t *root, json_t *v, unsigned *count)
{
	static const char prefix[] = "#/components/schemas/";
	const char *name;
	json_t *child;
	size_t i;

	json_array_foreach(v, i, child) expect_refs(root, child, count);
	json_object_foreach(v, name, child)
	{
		expect_refs(root, child, count);
		if (strcmp(name, "$ref") != 0)
			continue;
		assert_memory_equal(json_string_value(child), prefix, sizeof(prefix) - 1);
		assert_non_null(at(root, "components", "schemas",
			json_string_value(child) + sizeof(prefix) - 1));
		(*count)++;
	}
}

static void every_reference_of_the_openapi_document_leads_somewhere(void **state)
{
	json_t *root = parsed(api_openapi_json(&api_settings, NULL));
	unsigned count = 0;

	(void)state;
	expect_refs(root, root, &count);
	assert_true(count > 20);
	assert_non_null(at(root, "paths", "/execute", "post"));
	assert_string_equal(json_string_value(at(at(root, "paths", "/execute", "post"),
				    "operationId", NULL, NULL)),
		"execute_code");
	json_decref(root);
}

static void limits_name_defaults_least_and_most_of_every_number(void **state)
{
	static const char *const bounds[] = { "defaults", "minima", "maxima" };
	json_t *root = parsed(api_limits_json(&api_settings, NULL));

	(void)state;
	for (unsigned i = 0; i < API_FIELDS; i++) {
		for (unsigned b = 0; b < 3; b++)
			assert_int_equal(at(root, bounds[b], api_fields[i].name, NULL) != NULL,
				api_field_numeric(&api_fields[i]));
	}
	assert_true(json_number_value(at(root, "maxima", "memory_limit_mb", NULL)) == 2048);
	assert_true(json_is_null(at(root, "defaults", "cpu_time_seconds", NULL)));
	json_decref(root);
}

static void limits_say_whether_runs_may_have_a_network(void **state)
{
	struct settings s = api_settings;

	(void)state;
	for (uint32_t network = 0; network < 2; network++) {
		json_t *root;

		s.network = network;
		root = parsed(api_limits_json(&s, NULL));
		assert_int_equal(json_is_true(at(root, "fixed", "network", NULL)), network);
		assert_int_equal(json_is_false(at(root, "fixed", "network", NULL)), !network);
		json_decref(root);
	}
}

static void health_says_why_it_is_not_ready(void **state)
{
	static struct msg_hello hello = { .layers = LAYER_ALL, .core_pattern_piped = 1 };
	struct msg_health health = { .ready = 0,
		.why = { .code = -1, .text = "no cells \"yet\"" } };
	struct api_health h = { .version = "1", .hello = &hello };
	json_t *root;

	(void)state;
	assert_false(api_health_ready(&h));
	h.health = &health;
	assert_false(api_health_ready(&h));
	root = parsed(api_health_json(&h, NULL));
	assert_string_equal(json_string_value(at(root, "status", NULL, NULL)), "unavailable");
	assert_string_equal(json_string_value(at(root, "why", NULL, NULL)), "no cells \"yet\"");
	assert_int_equal(json_array_size(at(root, "warnings", NULL, NULL)), 1);
	json_decref(root);
	health.ready = 1;
	assert_true(api_health_ready(&h));
	root = parsed(api_health_json(&h, NULL));
	assert_string_equal(json_string_value(at(root, "status", NULL, NULL)), "ok");
	assert_true(json_is_null(at(root, "why", NULL, NULL)));
	json_decref(root);
	h.draining = true;
	assert_false(api_health_ready(&h));
}

static void health_shows_the_last_self_test(void **state)
{
	static struct msg_hello hello = { .layers = LAYER_ALL };
	struct msg_selftest told = { .known = 1,
		.this_build = 1,
		.record = { .magic = SELFTEST_MAGIC,
			.probes = 9,
			.failed = 1,
			.at = "2026-01-31T12:00:00Z",
			.first_failed = "ns.net" } };
	struct api_health h = { .version = "1", .hello = &hello, .selftest = &told };
	json_t *root = parsed(api_health_json(&h, NULL));

	(void)state;
	assert_string_equal(json_string_value(at(root, "selftest", "result", NULL)), "failed");
	assert_string_equal(
		json_string_value(at(root, "selftest", "first_failed", NULL)), "ns.net");
	assert_true(json_is_true(at(root, "selftest", "this_build", NULL)));
	json_decref(root);
	/* A supervisor that sends nonsense is not shown. */
	told.record.first_failed[0] = '\n';
	root = parsed(api_health_json(&h, NULL));
	assert_string_equal(json_string_value(at(root, "selftest", "result", NULL)), "unknown");
	assert_true(json_is_null(at(root, "selftest", "at", NULL)));
	json_decref(root);
}

/* Every example of the table is JSON of the type that the table names. */
static void examples_have_the_type_of_their_field(void **state)
{
	(void)state;
	for (unsigned i = 0; i < API_FIELDS; i++) {
		const struct api_field *f = &api_fields[i];
		json_t *v = json_loads(f->example, JSON_DECODE_ANY, NULL);

		assert_non_null(v);
		assert_int_equal(f->meaning, i);
		assert_int_equal(
			json_is_string(v), f->type == API_STRING || f->type == API_ENCODING ||
						   f->type == API_WORD || f->type == API_NAME);
		assert_int_equal(json_is_boolean(v), f->type == API_BOOLEAN);
		assert_int_equal(json_is_number(v), api_field_numeric(f) || f->type == API_BYTES);
		assert_true(api_field_by_name(f->name, strlen(f->name)) == f);
		json_decref(v);
	}
	assert_null(api_field_by_name("Code", 4));
	assert_null(api_field_by_name("code\0", 5));
	assert_null(api_field_by_name("", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_openapi_document_lists_every_field_with_this_servers_range),
		cmocka_unit_test(every_reference_of_the_openapi_document_leads_somewhere),
		cmocka_unit_test(limits_say_whether_runs_may_have_a_network),
		cmocka_unit_test(limits_name_defaults_least_and_most_of_every_number),
		cmocka_unit_test(health_says_why_it_is_not_ready),
		cmocka_unit_test(health_shows_the_last_self_test),
		cmocka_unit_test(examples_have_the_type_of_their_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
