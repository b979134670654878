#include "unit.h"

#include "api/documents.h"
#include "api/reply.h"
#include "api/reply_fields.h"
#include "api_settings.h"
#include "wire/layer.h"

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* A run that printed 42, as a reply; tests change what they are about. */
struct scene {
	struct msg_hello hello;
	struct msg_result result;
	struct run_limits limits;
	struct output_capture out, err;
	struct warnings warnings;
	struct api_reply reply;
};

static void scene_make(struct scene *s)
{
	*s = (struct scene){
		.hello = { .settings = api_settings, .layers = LAYER_ALL, .cgroup_version = 1 },
		.result = { .cause = CAUSE_EXIT,
			.wall_us = 17423,
			.memory_peak_bytes = 10080256,
			.memory_counter = MEMORY_COUNTER_V1_PEAK },
		.limits = api_settings.def,
	};
	output_init(&s->out, 64);
	output_init(&s->err, 64);
	assert_int_equal(output_feed(&s->out, "42\n", 3), 0);
	s->reply = (struct api_reply){ "r1", &s->hello, &s->result, &s->limits, 1048576, "python",
		NULL, &s->out, &s->err, 250, &s->warnings };
}

static void scene_end(struct scene *s)
{
	output_free(&s->out);
	output_free(&s->err);
	warnings_free(&s->warnings);
}

static char *text_of(struct scene *s)
{
	size_t len;
	char *json = api_reply_json(&s->reply, &len);

	assert_non_null(json);
	assert_int_equal(strlen(json), len);
	return json;
}

static json_t *parsed(char *json)
{
	json_error_t e;
	json_t *root = json_loads(json, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &e);

	assert_non_null(root);
	free(json);
	return root;
}

static void the_six_fields_of_the_contract_come_first(void **state)
{
	static const char want[] =
		"{\"status\":\"success\",\"stdout\":\"42\\n\",\"stderr\":\"\",\"exit_code\":0,"
		"\"execution_time_ms\":17.42,\"memory_used_mb\":9.613,\"id\":\"r1\",\"language\":"
		"\"python\",\"image\":null,"
		"\"cause\":\"exit\",\"signal\":null,";
	struct scene s;
	char *json;

	(void)state;
	scene_make(&s);
	json = text_of(&s);
	assert_memory_equal(json, want, sizeof(want) - 1);
	free(json);
	scene_end(&s);
}

static void statuses_and_exit_codes_follow_the_cause(void **state)
{
	static const struct {
		uint32_t cause;
		int wait_status;
		const char *want;
	} rows[] = {
		{ CAUSE_EXIT, W_EXITCODE(3, 0), "{\"status\":\"error\"," },
		{ CAUSE_EXIT, W_EXITCODE(3, 0), "\"exit_code\":3," },
		{ CAUSE_WALL_TIMEOUT, SIGKILL, "\"exit_code\":124," },
		{ CAUSE_WALL_TIMEOUT, SIGKILL, "{\"status\":\"timeout\"," },
		{ CAUSE_WALL_TIMEOUT, SIGKILL, "\"signal\":null," },
		{ CAUSE_OOM_KILL, SIGKILL, "{\"status\":\"memory_exceeded\"," },
		{ CAUSE_OOM_KILL, SIGKILL, "\"exit_code\":137," },
		{ CAUSE_SIGNAL, SIGSYS, "\"cause\":\"signal\",\"signal\":\"SIGSYS\"," },
		{ CAUSE_SIGNAL, SIGSYS, "\"exit_code\":159," },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct scene s;
		char *json;

		scene_make(&s);
		s.result.cause = rows[i].cause;
		s.result.wait_status = rows[i].wait_status;
		json = text_of(&s);
		assert_non_null(strstr(json, rows[i].want));
		free(json);
		scene_end(&s);
	}
}

static void signals_without_a_name_have_a_number(void **state)
{
	char text[24];

	(void)state;
	assert_string_equal(api_signal_name(SIGSEGV, text, sizeof(text)), "SIGSEGV");
	assert_string_equal(api_signal_name(SIGRTMIN + 3, text, sizeof(text)), "SIGRTMIN+3");
	assert_string_equal(api_signal_name(33, text, sizeof(text)), "SIG33");
	assert_string_equal(api_signal_name(0, text, sizeof(text)), "");
}

static void limits_are_in_the_units_of_the_request(void **state)
{
	struct scene s;
	char *json;

	(void)state;
	scene_make(&s);
	json = text_of(&s);
	assert_non_null(strstr(json,
		"\"limits\":{\"timeout_seconds\":3,\"memory_limit_mb\":64,\"cpu_limit\":0.5,"
		"\"pids_limit\":32,\"cpu_time_seconds\":null,\"allow_network\":false,"
		"\"network\":null,\"output_bytes\":1048576}"));
	free(json);
	scene_end(&s);
}

static void binary_output_is_text_and_exact_base64(void **state)
{
	struct scene s;
	json_t *root, *out;
	const char *base64, *encoding, *text;

	(void)state;
	scene_make(&s);
	assert_int_equal(output_feed(&s.out, "\xff\0", 2), 0);
	root = parsed(text_of(&s));
	assert_int_equal(json_unpack(root, "{s:s%, s:{s:o}}", "stdout", &text, &(size_t){ 0 },
				 "output", "stdout", &out),
		0);
	assert_memory_equal(text, "42\n\xef\xbf\xbd\0", 8);
	assert_int_equal(
		json_unpack(out, "{s:s, s:s}", "encoding", &encoding, "base64", &base64), 0);
	assert_string_equal(encoding, "binary");
	assert_string_equal(base64, "NDIK/wA=");
	json_decref(root);
	scene_end(&s);
}

static void dropped_output_is_counted_and_warned_of(void **state)
{
	struct scene s;
	char *json;

	(void)state;
	scene_make(&s);
	output_free(&s.out);
	output_init(&s.out, 4);
	assert_int_equal(output_feed(&s.out, "abcdefgh", 8), 0);
	warnings_add(&s.warnings, "unknown field \"%s\" was ignored", "x");
	s.result.pids_refused = 7;
	json = text_of(&s);
	assert_non_null(strstr(json, "\"stdout\":\"abgh\""));
	assert_non_null(
		strstr(json, "\"stdout\":{\"bytes\":8,\"kept\":4,\"dropped\":4,\"head_bytes\":2,"));
	assert_non_null(strstr(json,
		"\"warnings\":[\"unknown field \\\"x\\\" was ignored\","
		"\"stdout: 4 bytes were dropped after the first 2; the last 2 follow them\","
		"\"pids_limit (32) refused 7 new processes or threads\"]"));
	free(json);
	scene_end(&s);
}

static void a_missing_layer_is_said_to_be_degraded(void **state)
{
	struct scene s;
	char *json;

	(void)state;
	scene_make(&s);
	s.hello.layers &= ~LAYER_BIT(LAYER_SWAP);
	json = text_of(&s);
	assert_non_null(strstr(json, "\"degraded\":[\"swap-off\"],\"cgroup\":\"v1\"}"));
	free(json);
	scene_end(&s);
}

/* `object` holds exactly what the table lists for `group`, in its order. */
static void expect_group(json_t *object, enum reply_group group)
{
	void *it;

	assert_true(json_is_object(object));
	it = json_object_iter(object);
	for (size_t i = 0; i < reply_fields_len; i++) {
		const struct reply_field *f = &reply_fields[i];

		if (f->group != group)
			continue;
		if (f->optional && !json_object_get(object, f->name))
			continue;
		assert_non_null(it);
		assert_string_equal(json_object_iter_key(it), f->name);
		it = json_object_iter_next(object, it);
	}
	assert_null(it);
}

static void a_run_that_met_nothing_says_so(void **state)
{
	struct scene s;
	char *json;

	(void)state;
	scene_make(&s);
	json = text_of(&s);
	assert_non_null(strstr(json,
		"\"denials\":[],\"hint\":null,\"network\":null,\"result\":null,\"error\":null,"
		"\"figures\":[],\"interleaved\":null,\"files\":[],\"skipped\":[]}"));
	free(json);
	s.result.denied.unrouted = 2;
	json = text_of(&s);
	assert_non_null(strstr(json, "\"denials\":[{\"layer\":\"network\",\"what\":\"attempts to "
				     "reach an address outside\","
				     "\"count\":2,\"exact\":true,\"evidence\":\"counted\"}],"
				     "\"hint\":\"this run has no network"));
	free(json);
	scene_end(&s);
}

/* A look-up, a connection by it, one to an address of IPv6, and one that was refused twice. */
static const struct network_record record = {
	.magic = NETWORK_RECORD_MAGIC,
	.count = 4,
	.left_out = 9,
	.connections = 2,
	.refused = 2,
	.bytes_in = 1256,
	.bytes_out = 77,
	.lines = {
		{ .begin_us = 1250, .protocol = NETWORK_DNS, .times = 1, .name = "example.org" },
		{ .begin_us = 2000, .bytes_in = 1256, .bytes_out = 77,
			.address = { { [10] = 0xff, [11] = 0xff, [12] = 93, 184, 216, 34 } },
			.port = 443, .protocol = NETWORK_TCP, .times = 1, .name = "example.org" },
		{ .address = { { 0x20, 1, 0xd, 0xb8, [15] = 1 } },
			.protocol = NETWORK_ICMP, .times = 1 },
		{ .address = { { [10] = 0xff, [11] = 0xff, [12] = 10, 0, 0, 1 } }, .port = 53,
			.protocol = NETWORK_UDP, .verdict = NETWORK_PRIVATE, .times = 2 },
	},
};

static const struct network_policy policy = { .allow_count = 1,
	.allow[0] = { .match = NETWORK_NAME, .port_min = 443, .port_max = 443, .name = "a.org" },
	.max_connections = 3,
	.max_bytes = 4,
	.max_rate = 5 };

static void what_a_run_did_with_its_network_is_listed(void **state)
{
	struct scene s;
	char *json;

	(void)state;
	scene_make(&s);
	s.reply.networked = true;
	s.reply.policy = &policy;
	s.reply.network = &record;
	json = text_of(&s);
	assert_non_null(strstr(json, "\"allow_network\":true,\"network\":{\"allow\":[\"a.org:443\"]"
				     ",\"deny\":[],\"max_connections\":3,\"max_bytes\":4,"
				     "\"max_rate\":5},"));
	assert_non_null(strstr(json, "\"warnings\":[],"));
	assert_non_null(strstr(json,
		"\"network\":{\"connections\":["
		"{\"time_ms\":1.25,\"protocol\":\"dns\",\"name\":\"example.org\",\"address\":null,"
		"\"port\":null,\"bytes_in\":0,\"bytes_out\":0,\"verdict\":\"allowed\","
		"\"reason\":null,\"times\":1},"
		"{\"time_ms\":2,\"protocol\":\"tcp\",\"name\":\"example.org\","
		"\"address\":\"93.184.216.34\",\"port\":443,\"bytes_in\":1256,\"bytes_out\":77,"
		"\"verdict\":\"allowed\",\"reason\":null,\"times\":1},"
		"{\"time_ms\":0,\"protocol\":\"icmp\",\"name\":null,\"address\":\"2001:db8::1\","
		"\"port\":null,\"bytes_in\":0,\"bytes_out\":0,\"verdict\":\"allowed\","
		"\"reason\":null,\"times\":1},"
		"{\"time_ms\":0,\"protocol\":\"udp\",\"name\":null,\"address\":\"10.0.0.1\","
		"\"port\":53,\"bytes_in\":0,\"bytes_out\":0,\"verdict\":\"denied\","
		"\"reason\":\"a private address\",\"times\":2}],"
		"\"more\":9,\"allowed\":2,\"denied\":2,\"bytes_in\":1256,\"bytes_out\":77},"));
	assert_non_null(strstr(json, "\"denials\":[{\"layer\":\"network\",\"what\":\"packets and "
				     "look-ups that its rules do not allow\",\"count\":2,"));
	free(json);
	scene_end(&s);
}

/* Whether nothing can be shown, or it is told that the gate has ended. */
static void a_gate_that_was_lost_is_warned_of(void **state)
{
	static const char want[] = "\"warnings\":[\"network: the gate that carried its packets "
				   "ended before it did; ";
	struct scene s;
	char *json;

	(void)state;
	scene_make(&s);
	s.reply.networked = true;
	json = text_of(&s);
	assert_non_null(strstr(json, want));
	assert_non_null(strstr(json, "\"network\":null,"));
	free(json);
	s.reply.network = &record;
	s.result.gate_lost = 1;
	json = text_of(&s);
	assert_non_null(strstr(json, want));
	assert_non_null(strstr(json, "\"network\":{"));
	free(json);
	scene_end(&s);
}

static void every_answer_holds_exactly_what_the_table_says(void **state)
{
	struct api_health h = { .version = "0" };
	struct scene s;
	json_t *root, *output, *network;

	(void)state;
	scene_make(&s);
	assert_int_equal(output_feed(&s.err, "\xff", 1), 0);
	s.result.pids_refused = 1;
	s.reply.network = &record;
	root = parsed(text_of(&s));
	expect_group(root, REPLY_TOP);
	expect_group(json_object_get(root, "usage"), REPLY_USAGE);
	expect_group(json_object_get(root, "isolation"), REPLY_ISOLATION);
	expect_group(json_array_get(json_object_get(root, "denials"), 0), REPLY_DENIAL);
	network = json_object_get(root, "network");
	expect_group(network, REPLY_NETWORK);
	expect_group(json_array_get(json_object_get(network, "connections"), 0), REPLY_CONNECTION);
	output = json_object_get(root, "output");
	expect_group(json_object_get(output, "stdout"), REPLY_STREAM);
	expect_group(json_object_get(output, "stderr"), REPLY_STREAM);
	json_decref(root);
	h.hello = &s.hello;
	root = parsed(api_health_json(&h, NULL));
	expect_group(root, REPLY_HEALTH);
	expect_group(json_object_get(root, "network"), REPLY_GIVEN);
	expect_group(json_object_get(root, "selftest"), REPLY_SELFTEST);
	json_decref(root);
	root = parsed(api_limits_json(&api_settings, NULL));
	expect_group(json_object_get(root, "fixed"), REPLY_FIXED);
	json_decref(root);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_six_fields_of_the_contract_come_first),
		cmocka_unit_test(statuses_and_exit_codes_follow_the_cause),
		cmocka_unit_test(signals_without_a_name_have_a_number),
		cmocka_unit_test(limits_are_in_the_units_of_the_request),
		cmocka_unit_test(binary_output_is_text_and_exact_base64),
		cmocka_unit_test(dropped_output_is_counted_and_warned_of),
		cmocka_unit_test(a_missing_layer_is_said_to_be_degraded),
		cmocka_unit_test(a_run_that_met_nothing_says_so),
		cmocka_unit_test(what_a_run_did_with_its_network_is_listed),
		cmocka_unit_test(a_gate_that_was_lost_is_warned_of),
		cmocka_unit_test(every_answer_holds_exactly_what_the_table_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
