/* `network` of a request: what is taken, and what is said of what is not. */
#include "unit.h"

#include "api/request.h"
#include "api_settings.h"
#include "base/check.h"
#include "wire/network.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY(policy)   "{\"code\":\"x\",\"network\":" policy "}"
#define RULES_TOO_MANY 65

static struct settings giving;
static const struct api_server server = { &giving, NULL };

static int set_up(void **state)
{
	(void)state;
	giving = api_settings;
	giving.network = 1;
	return 0;
}

static struct api_request taken(const char *body)
{
	struct api_request r;
	struct api_refusal no;
	int e = api_request_parse(body, strlen(body), &server, &r, &no);

	if (e == -EINVAL)
		print_message("%s\n", no.json);
	assert_int_equal(e, 0);
	return r;
}

/* The detail of the 422 that the body gets. */
static json_t *refused(const char *body)
{
	struct api_request r;
	struct api_refusal no;
	json_t *root, *detail;

	assert_int_equal(api_request_parse(body, strlen(body), &server, &r, &no), -EINVAL);
	assert_int_equal(no.status, 422);
	root = json_loadb(no.json, no.len, 0, NULL);
	detail = json_incref(json_object_get(root, "detail"));
	json_decref(root);
	api_refusal_free(&no);
	assert_true(json_array_size(detail) > 0);
	return detail;
}

/* The nth item is at `loc` ("network.allow.2"), of that type, and says that. */
static void expect_item(
	const json_t *detail, size_t n, const char *loc, const char *type, const char *said)
{
	const json_t *item = json_array_get(detail, n), *part;
	const char *msg = json_string_value(json_object_get(item, "msg"));
	char at[128] = "";
	size_t i, len = 0;

	assert_non_null(msg);
	json_array_foreach(json_object_get(item, "loc"), i, part)
	{
		if (i == 0)
			continue;
		len += (size_t)snprintf(at + len, sizeof(at) - len, "%s", i > 1 ? "." : "");
		if (json_is_integer(part))
			len += (size_t)snprintf(at + len, sizeof(at) - len, "%lld",
				(long long)json_integer_value(part));
		else
			len += (size_t)snprintf(
				at + len, sizeof(at) - len, "%s", json_string_value(part));
	}
	assert_string_equal(at, loc);
	assert_string_equal(json_string_value(json_object_get(item, "type")), type);
	if (!strstr(msg, said))
		fail_msg("\"%s\" is not in: %s", said, msg);
}

static void expect_one(const char *body, const char *loc, const char *type, const char *said)
{
	json_t *detail = refused(body);

	assert_int_equal(json_array_size(detail), 1);
	expect_item(detail, 0, loc, type, said);
	json_decref(detail);
}

static void rules_and_bounds_become_a_policy(void **state)
{
	struct api_request r =
		taken(BODY("{\"allow\":[\"Example.org\",\"*.example.com:443\",\"203.0.113.0/"
			   "24:80-90\"],\"deny\":[\"[2001:db8::1]:25\"],\"max_connections\":5,"
			   "\"max_bytes\":1e6,\"max_rate\":1024}"));
	const struct network_policy *p = r.network;

	(void)state;
	assert_true(r.allow_network);
	assert_null(network_policy_fault(p));
	assert_int_equal(p->allow_count, 3);
	assert_int_equal(p->allow[0].match, NETWORK_NAME);
	assert_string_equal(p->allow[0].name, "example.org");
	assert_int_equal(p->allow[1].match, NETWORK_SUBNAME);
	assert_int_equal(p->allow[1].port_min, 443);
	assert_int_equal(p->allow[2].prefix, NETWORK_MAPPED_BITS + 24);
	assert_int_equal(p->allow[2].port_max, 90);
	assert_int_equal(p->deny_count, 1);
	assert_int_equal(p->deny[0].prefix, 128);
	assert_int_equal(p->max_connections, 5);
	assert_int_equal(p->max_bytes, 1000000);
	assert_int_equal(p->max_rate, 1024);
	assert_int_equal(r.warnings.count, 0);
	api_request_free(&r);
}

static void what_is_left_out_is_the_operators(void **state)
{
	static const char *const bodies[] = { BODY("{}"), "{\"code\":\"x\",\"allow_network\":true}",
		BODY("{\"allow\":null,\"deny\":null,\"max_bytes\":null}") };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		struct api_request r = taken(bodies[i]);

		assert_true(r.allow_network);
		assert_null(network_policy_fault(r.network));
		assert_int_equal(r.network->allow_count, 1);
		assert_int_equal(r.network->allow[0].match, NETWORK_ANY);
		assert_int_equal(r.network->allow[0].port_min, 0);
		assert_int_equal(r.network->allow[0].port_max, UINT16_MAX);
		assert_int_equal(r.network->deny_count, 0);
		assert_int_equal(r.network->max_connections, giving.network_connections);
		assert_int_equal(r.network->max_bytes, giving.network_bytes);
		assert_int_equal(r.network->max_rate, giving.network_rate);
		api_request_free(&r);
	}
}

static void an_empty_list_allows_nothing_and_none_asks_for_nothing(void **state)
{
	struct api_request r = taken(BODY("{\"allow\":[]}"));

	(void)state;
	assert_int_equal(r.network->allow_count, 0);
	api_request_free(&r);
	r = taken("{\"code\":\"x\",\"network\":null}");
	assert_false(r.allow_network);
	assert_null(r.network);
	api_request_free(&r);
}

static void a_bad_rule_is_named_with_its_place_its_text_and_the_remedy(void **state)
{
	json_t *detail = refused(BODY("{\"allow\":[\"a.org\",\"b.org\",\"exa mple.org\"],"
				      "\"deny\":[\"203.0.113.1/24\",\"https://a.org/\",7,"
				      "\"a.org:0\",\"\"]}"));

	(void)state;
	assert_int_equal(json_array_size(detail), 6);
	expect_item(detail, 0, "network.allow.2", "value_error",
		"Value error, network.allow[2]: \"exa mple.org\" may have letters");
	expect_item(detail, 0, "network.allow.2", "value_error", "(byte 4)");
	expect_item(detail, 0, "network.allow.2", "value_error", "; a rule is NAME, *.NAME");
	expect_item(detail, 1, "network.deny.0", "value_error", "write the first address");
	expect_item(detail, 2, "network.deny.1", "value_error", "is a URL: write its host");
	expect_item(detail, 3, "network.deny.2", "string_type", "valid string");
	expect_item(detail, 4, "network.deny.3", "value_error", "1 to 65535 (byte 7)");
	expect_item(detail, 5, "network.deny.4", "value_error", "\"\" is empty");
	json_decref(detail);
}

static void what_is_no_policy_is_named(void **state)
{
	(void)state;
	expect_one(BODY("[]"), "network", "dict_type", "valid dictionary");
	expect_one(BODY("true"), "network", "dict_type", "valid dictionary");
	expect_one(BODY("1e999"), "network", "dict_type", "valid dictionary");
	expect_one(BODY("{\"alow\":[]}"), "network.alow", "extra_forbidden",
		"did you mean \"allow\"?");
	expect_one(BODY("{\"x\":1}"), "network.x", "extra_forbidden", "network has allow, deny,");
	expect_one(BODY("{\"allow\":\"a.org\"}"), "network.allow", "list_type", "valid list");
	expect_one(BODY("{\"deny\":{}}"), "network.deny", "list_type", "valid list");
	expect_one(
		BODY("{\"allow\":[\"\\ud800\"]}"), "network.allow.0", "string_unicode", "unicode");
}

static void a_number_out_of_range_names_the_bound(void **state)
{
	(void)state;
	expect_one(BODY("{\"max_connections\":0}"), "network.max_connections", "greater_than_equal",
		"equal to 1");
	expect_one(BODY("{\"max_connections\":65}"), "network.max_connections", "less_than_equal",
		"equal to 64, which is this server's network-connections");
	expect_one(BODY("{\"max_bytes\":268435457}"), "network.max_bytes", "less_than_equal",
		"equal to 268435456, which is this server's network-bytes");
	expect_one(BODY("{\"max_rate\":1023}"), "network.max_rate", "greater_than_equal",
		"equal to 1024");
	expect_one(BODY("{\"max_rate\":1e18}"), "network.max_rate", "less_than_equal",
		"this server's network-rate");
	expect_one(BODY("{\"max_rate\":2000.5}"), "network.max_rate", "int_from_float",
		"from 1024 to 67108864");
	expect_one(BODY("{\"max_rate\":\"2000\"}"), "network.max_rate", "int_type",
		"from 1024 to 67108864");
	expect_one(BODY("{\"max_bytes\":true}"), "network.max_bytes", "int_type", "integer");
	expect_one(BODY("{\"max_bytes\":1e999}"), "network.max_bytes", "int_type", "integer");
}

static void too_many_rules_are_refused_and_many_bad_ones_counted(void **state)
{
	char body[2048] = "{\"code\":\"x\",\"network\":{\"allow\":[\"a.org\"";
	json_t *detail;

	(void)state;
	for (unsigned i = 1; i < RULES_TOO_MANY - 1; i++)
		strncat(body, ",\"a.org\"", sizeof(body) - strlen(body) - 1);
	(void)snprintf(body + strlen(body), sizeof(body) - strlen(body), "]}}");
	struct api_request r = taken(body);

	assert_int_equal(r.network->allow_count, RULES_TOO_MANY - 1);
	api_request_free(&r);
	(void)snprintf(body + strlen(body) - 3, 16, ",\"a.org\"]}}");
	expect_one(body, "network.allow", "too_long", "at most 64 items after validation, not 65");

	(void)snprintf(body, sizeof(body), "{\"code\":\"x\",\"network\":{\"allow\":[\"-\"");
	for (unsigned i = 1; i < 20; i++)
		strncat(body, ",\"-\"", sizeof(body) - strlen(body) - 1);
	strncat(body, "]}}", sizeof(body) - strlen(body) - 1);
	detail = refused(body);
	assert_int_equal(json_array_size(detail), 17);
	expect_item(detail, 15, "network.allow.15", "value_error", "network.allow[15]");
	expect_item(detail, 16, "network", "value_error", "4 more are wrong");
	json_decref(detail);
}

static void it_is_not_asked_for_and_refused_at_once(void **state)
{
	(void)state;
	expect_one("{\"code\":\"x\",\"network\":{},\"allow_network\":false}", "network",
		"value_error", "allow_network is false, and network asks for one: leave one");
	giving.network = 0;
	expect_one(BODY("{}"), "network", "value_error",
		"this server gives runs no network: network is off; leave network out, or have its "
		"operator set network: on");
}

static void a_request_that_is_refused_elsewhere_leaves_nothing(void **state)
{
	(void)state;
	expect_one("{\"code\":7,\"network\":{\"allow\":[\"a.org\"]}}", "code", "string_type",
		"valid string");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(rules_and_bounds_become_a_policy, set_up),
		cmocka_unit_test_setup(what_is_left_out_is_the_operators, set_up),
		cmocka_unit_test_setup(
			an_empty_list_allows_nothing_and_none_asks_for_nothing, set_up),
		cmocka_unit_test_setup(
			a_bad_rule_is_named_with_its_place_its_text_and_the_remedy, set_up),
		cmocka_unit_test_setup(what_is_no_policy_is_named, set_up),
		cmocka_unit_test_setup(a_number_out_of_range_names_the_bound, set_up),
		cmocka_unit_test_setup(
			too_many_rules_are_refused_and_many_bad_ones_counted, set_up),
		cmocka_unit_test_setup(it_is_not_asked_for_and_refused_at_once, set_up),
		cmocka_unit_test_setup(a_request_that_is_refused_elsewhere_leaves_nothing, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
