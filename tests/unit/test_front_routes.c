#include "unit.h"

#include "base/check.h"
#include "edge/front/routes.h"

#include <string.h>

static int judge(const char *method, const char *path)
{
	struct route_head h = { .method = method, .path = path, .host = "localhost:8000" };

	return route_judge(&h, REACH_LOOPBACK);
}

static void every_route_takes_its_methods(void **state)
{
	(void)state;
	assert_int_equal(judge("POST", "/execute"), 0);
	assert_int_equal(judge("GET", "/health"), 0);
	assert_int_equal(judge("HEAD", "/health"), 0);
	assert_int_equal(judge("GET", "/limits"), 0);
	assert_int_equal(judge("HEAD", "/openapi.json"), 0);
}

static void an_unknown_path_is_404(void **state)
{
	static const char *const paths[] = { "", "/", "/Execute", "/execute/", "/execut",
		"/executee", "/health/../execute", "//execute", "*" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		assert_int_equal(judge("POST", paths[i]), 404);
}

static void a_wrong_method_is_405(void **state)
{
	static const char *const methods[] = { "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "post",
		"POS", "POSTS", "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		assert_int_equal(judge(methods[i], "/execute"), 405);
	assert_int_equal(judge("POST", "/health"), 405);
	assert_int_equal(judge(",", "/health"), 405);
	assert_int_equal(judge("GET, HEAD", "/health"), 405);
	assert_int_equal(judge(" ", "/health"), 405);
}

static void allow_names_what_a_route_takes(void **state)
{
	(void)state;
	assert_string_equal(route_allow(ROUTE_EXECUTE), "POST");
	assert_string_equal(route_allow(ROUTE_LIMITS), "GET, HEAD");
	assert_string_equal(route_allow(ROUTE_MAX), "");
}

static void json_is_known_by_its_type(void **state)
{
	static const char *const json[] = { NULL, "", "application/json", "Application/JSON",
		"application/json;charset=utf-8", "application/json ; charset=utf-8",
		"application/problem+json", "application/vnd.x.y+JSON; v=1" };
	static const char *const other[] = { "application/x-www-form-urlencoded",
		"multipart/form-data; boundary=x", "text/plain", "text/plain;charset=UTF-8",
		"text/plain; x=application/json", "text/plain,application/problem+json",
		"text/plain, application/json", "text/plain;+json", "text/plain a/b+json", "+json",
		"/+json", "text/html", "application/jsonp", "application/json, text/plain", ";",
		"application/octet-stream" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(json); i++)
		assert_true(route_type_is_json(json[i]));
	for (size_t i = 0; i < ARRAY_LEN(other); i++)
		assert_false(route_type_is_json(other[i]));
}

static void a_form_is_415_on_execute_only(void **state)
{
	struct route_head h = { .method = "POST",
		.path = "/execute",
		.host = "127.0.0.1",
		.content_type = "application/x-www-form-urlencoded" };

	(void)state;
	assert_int_equal(route_judge(&h, REACH_LOOPBACK), 415);
	h.method = "GET";
	h.path = "/health";
	assert_int_equal(route_judge(&h, REACH_LOOPBACK), 0);
}

static void loopback_hosts_are_known(void **state)
{
	static const char *const ours[] = { "localhost", "LocalHost:8000", "127.0.0.1",
		"127.0.0.1:80", "127.8.9.10:8000", "[::1]", "[::1]:65535", "localhost:" };
	static const char *const foreign[] = { "", ":", ":80", "evil.example",
		"localhost.evil.example", "evil.localhost", "127.0.0.1.evil.example",
		"127.0.0.1:80.evil.example", "127.0.0.1:80:80", "127.1", "0127.0.0.1", "2130706433",
		"0x7f.0.0.1", "128.0.0.1", "10.0.0.1", "[::2]", "[::1].evil.example", "[::1", "::1",
		"localhost@evil.example", "localhost:80@evil.example", "localhost:123456",
		" localhost", "localhost ", "user@127.0.0.1", "[::ffff:127.0.0.1]x" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		assert_true(route_host_is_loopback(ours[i]));
	for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
		assert_false(route_host_is_loopback(foreign[i]));
}

static void a_foreign_host_on_loopback_is_403(void **state)
{
	struct route_head h = {
		.method = "GET", .path = "/limits", .host = "rebound.example:8000"
	};

	(void)state;
	assert_int_equal(route_judge(&h, REACH_LOOPBACK), 403);
	h.path = "/nothing"; /* not even which paths there are */
	assert_int_equal(route_judge(&h, REACH_LOOPBACK), 403);
	h.path = "/limits";
	assert_int_equal(route_judge(&h, REACH_UNIX), 0);
	assert_int_equal(route_judge(&h, REACH_NETWORK), 0);
	h.host = NULL; /* HTTP/1.0; browsers do not speak it */
	assert_int_equal(route_judge(&h, REACH_LOOPBACK), 0);
}

static void a_foreign_origin_is_403(void **state)
{
	static const char *const foreign[] = { "https://evil.example", "null", "", "http://",
		"http://localhost.evil.example", "file://", "http://127.0.0.1@evil.example",
		"chrome-extension://abc", "http://localhost/", "http://evil.example:8000",
		"http:// localhost" };
	struct route_head h = { .method = "POST", .path = "/execute", .host = "localhost:8000" };

	(void)state;
	for (enum reach r = REACH_LOOPBACK; r <= REACH_NETWORK; r++) {
		for (size_t i = 0; i < ARRAY_LEN(foreign); i++) {
			h.origin = foreign[i];
			assert_int_equal(route_judge(&h, r), 403);
		}
	}
}

static void the_own_origin_on_loopback_may_ask(void **state)
{
	static const struct {
		const char *origin, *host;
	} ours[] = {
		{ "http://localhost:8000", "localhost:8000" },
		{ "HTTP://LOCALHOST:8000", "LocalHost:8000" },
		{ "http://127.0.0.1:8000", "127.0.0.1:8000" },
		{ "http://[::1]:8000", "[::1]:8000" },
		{ "http://localhost", "localhost:80" },
		{ "http://localhost:80", "localhost" },
		{ "http://localhost", "localhost" },
	};
	struct route_head h = {
		.method = "POST", .path = "/execute", .content_type = "application/json"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
		h.origin = ours[i].origin;
		h.host = ours[i].host;
		for (enum reach r = REACH_LOOPBACK; r <= REACH_NETWORK; r++)
			assert_int_equal(route_judge(&h, r), 0);
	}
}

/* Another server of this machine, or another address of it: that may be another user's. */
static void another_local_origin_is_403(void **state)
{
	static const char *const foreign[] = { "http://127.0.0.1:3000", "http://127.0.0.1",
		"http://127.0.0.1:80", "http://127.0.0.1:80001", "http://127.0.0.1:800",
		"http://localhost:8000", "http://127.0.0.2:8000", "http://[::1]:8000",
		"https://127.0.0.1:8000", "https://127.0.0.1" };
	struct route_head h = { .method = "POST",
		.path = "/execute",
		.host = "127.0.0.1:8000",
		.content_type = "application/json" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(foreign); i++) {
		h.origin = foreign[i];
		assert_int_equal(route_judge(&h, REACH_LOOPBACK), 403);
	}
	h.origin = "http://localhost";
	h.host = NULL;
	assert_int_equal(route_judge(&h, REACH_LOOPBACK), 403);
	h.origin = "https://localhost"; /* not spoken here: another server's, at port 443 */
	h.host = "localhost";
	assert_int_equal(route_judge(&h, REACH_LOOPBACK), 403);
}

static void a_page_has_to_say_that_it_sends_json(void **state)
{
	struct route_head h = { .method = "POST", .path = "/execute", .host = "localhost:8000" };

	(void)state;
	assert_int_equal(route_judge(&h, REACH_LOOPBACK), 0);
	h.origin = "http://localhost:8000";
	assert_int_equal(route_judge(&h, REACH_LOOPBACK), 415);
	h.content_type = "";
	assert_int_equal(route_judge(&h, REACH_LOOPBACK), 415);
	h.content_type = "application/json";
	assert_int_equal(route_judge(&h, REACH_LOOPBACK), 0);
	h.content_type = NULL;
	h.method = "GET";
	h.path = "/health";
	assert_int_equal(route_judge(&h, REACH_LOOPBACK), 0);
}

static void the_name_by_which_a_page_was_got_is_no_foreign_origin(void **state)
{
	(void)state;
	assert_true(route_origin_is_ours("https://box.example", "box.example", REACH_NETWORK));
	assert_true(route_origin_is_ours("https://box.example", "Box.example:443", REACH_UNIX));
	assert_true(route_origin_is_ours("http://box.example:80", "box.example:80", REACH_UNIX));
	assert_true(route_origin_is_ours("http://10.0.0.1:8000", "10.0.0.1:8000", REACH_NETWORK));
	assert_false(route_origin_is_ours("http://box.example", "box.example:443", REACH_NETWORK));
	assert_false(route_origin_is_ours("http://box.example:1", "box.example:2", REACH_NETWORK));
	assert_false(route_origin_is_ours("http://box.exampl", "box.example", REACH_NETWORK));
	assert_false(route_origin_is_ours("http://box.example", NULL, REACH_NETWORK));
	assert_false(route_origin_is_ours("http://localhost:3000", "localhost", REACH_UNIX));
	/* On loopback it would be rebinding's own name. */
	assert_false(route_origin_is_ours("http://box.example", "box.example", REACH_LOOPBACK));
}

static void where_it_listens_decides_the_reach(void **state)
{
	struct listen_address a = { .kind = LISTEN_INET, .ip = { 127, 0, 0, 1 } };

	(void)state;
	assert_int_equal(route_reach(&a), REACH_LOOPBACK);
	a.ip[3] = 77;
	assert_int_equal(route_reach(&a), REACH_LOOPBACK);
	memset(a.ip, 0, sizeof(a.ip));
	assert_int_equal(route_reach(&a), REACH_NETWORK); /* 0.0.0.0 */
	a.kind = LISTEN_INET6;
	assert_int_equal(route_reach(&a), REACH_NETWORK); /* :: */
	a.ip[15] = 1;
	assert_int_equal(route_reach(&a), REACH_LOOPBACK);
	a.ip[10] = a.ip[11] = 0xff;
	a.ip[12] = 127;
	assert_int_equal(route_reach(&a), REACH_LOOPBACK);
	a.ip[12] = 10;
	assert_int_equal(route_reach(&a), REACH_NETWORK);
	a.kind = LISTEN_UNIX;
	assert_int_equal(route_reach(&a), REACH_UNIX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_route_takes_its_methods),
		cmocka_unit_test(an_unknown_path_is_404),
		cmocka_unit_test(a_wrong_method_is_405),
		cmocka_unit_test(allow_names_what_a_route_takes),
		cmocka_unit_test(json_is_known_by_its_type),
		cmocka_unit_test(a_form_is_415_on_execute_only),
		cmocka_unit_test(loopback_hosts_are_known),
		cmocka_unit_test(a_foreign_host_on_loopback_is_403),
		cmocka_unit_test(a_foreign_origin_is_403),
		cmocka_unit_test(the_own_origin_on_loopback_may_ask),
		cmocka_unit_test(another_local_origin_is_403),
		cmocka_unit_test(a_page_has_to_say_that_it_sends_json),
		cmocka_unit_test(the_name_by_which_a_page_was_got_is_no_foreign_origin),
		cmocka_unit_test(where_it_listens_decides_the_reach),
	};

	return cmocka_run_group_tests_name("front_routes", tests, NULL, NULL);
}
