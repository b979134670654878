/* HTTP on a connection that a name has opened, what is neither HTTP nor TLS, and QUIC. */
#include "unit.h"

#include "base/check.h"
#include "speech_play.h"

#include <string.h>

/* It says nothing that is refused, and only so much of it goes on. */
static void assert_waits(const char *text, size_t passed)
{
	size_t n;

	play_clear();
	play_add_text(text);
	assert_int_equal(play_hear(false, &n), NETWORK_ALLOWED);
	assert_int_equal(n, passed);
}

static enum network_verdict say_at_the_end(const char *text)
{
	size_t n;
	enum network_verdict v;

	play_clear();
	play_add_text(text);
	v = play_hear(true, &n);
	assert_true(v != NETWORK_ALLOWED || n == play.len);
	return v;
}

/* ---- HTTP ---- */

#define GET(host) "GET / HTTP/1.1\r\nHost: " host "\r\n\r\n"

static void a_request_for_a_name_that_is_allowed_there_passes(void **state)
{
	(void)state;
	assert_int_equal(play_say(GET("example.org")), NETWORK_ALLOWED);
	assert_int_equal(play_say(GET("A.Example.Net:8080")), NETWORK_ALLOWED);
	assert_int_equal(play_say("GET / HTTP/1.0\r\nHost: example.org\r\n\r\n"), NETWORK_ALLOWED);
	assert_int_equal(play_say("PROPFIND /a HTTP/1.1\r\nx: y\r\nhOST:example.org\r\n\r\n"),
		NETWORK_ALLOWED);
	assert_int_equal(play_say("\r\n" GET("example.org")), NETWORK_ALLOWED);
}

static void a_request_for_another_name_is_refused_and_says_which(void **state)
{
	(void)state;
	assert_int_equal(play_say(GET("Other.org:80")), NETWORK_OTHER_NAME);
	assert_string_equal(play.name, "other.org");
	assert_int_equal(play_say(GET("example.com")), NETWORK_OTHER_NAME);
	assert_int_equal(play_say(GET("bad.example.net")), NETWORK_OTHER_NAME);
	assert_int_equal(play_say("\n\r\n" GET("other.org")), NETWORK_OTHER_NAME);
	assert_int_equal(
		play_say("ANYTHING /x HTTP/1.1\r\nHost: other.org\r\n\r\n"), NETWORK_OTHER_NAME);
}

static void nothing_of_a_request_but_its_first_word_goes_on_before_its_verdict(void **state)
{
	size_t n;

	(void)state;
	assert_waits("GET", 3);
	assert_waits("GET /secret HTTP/1.1\r\nHost: other.org\r\n", 3);
	play_clear();
	play_add_text(GET("other.org"));
	assert_int_equal(play_hear(false, &n), NETWORK_OTHER_NAME);
	for (size_t cut = 0; cut <= play.len; cut++)
		assert_true(play_passed_in_two(cut) <= 3);
}

static void a_request_without_a_name_is_refused(void **state)
{
	static const char *const requests[] = {
		"GET / HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n",
		GET(""),
		GET("93.184.216.34"),
		GET("[2606:2800:220:1::34]"),
		GET("example.org."),
		GET("example.org:80x"),
		GET("example.org other.org"),
		"GET /\r\n",
		"get /x\n",
		"GET http://other.org/\r\n",
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(requests); i++)
		if (play_say(requests[i]) != NETWORK_NO_NAME)
			fail_msg("%s", requests[i]);
}

/* Whatever two readers could take for different names. */
static void a_request_that_can_be_read_in_two_ways_is_refused(void **state)
{
	static const char *const requests[] = {
		"GET / HTTP/1.1\r\nHost: example.org\r\nHost: other.org\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: example.org\r\nHost: example.org\r\n\r\n",
		"GET http://other.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"CONNECT other.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"GET / HTTP/1.1\nHost: example.org\n\n",
		" GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"\fGET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"GET\v/\x1f"
		"HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"GET  / HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"GET / HTTP/1.1\r\nHost : other.org\r\nHost: example.org\r\n\r\n",
		"GET / HTTP/1.1\r\nX: y\r\n Host: other.org\r\nHost: example.org\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: example.org\r\nContent-Length: 1\r\nTransfer-Encoding: "
		"chunked\r\n\r\n",
		"GET / http/1.1\r\nHost: example.org\r\n\r\n",
		"GET / HTTP/1.1 HTTP/1.1\r\nHost: example.org\r\n\r\n",
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(requests); i++)
		if (play_say(requests[i]) != NETWORK_NO_NAME)
			fail_msg("%s", requests[i]);
}

static void each_request_of_a_connection_is_judged(void **state)
{
	size_t n;

	(void)state;
	assert_int_equal(play_say(GET("example.org") GET("a.example.net") GET("example.org")),
		NETWORK_ALLOWED);
	assert_int_equal(play_say(GET("example.org") GET("other.org")), NETWORK_OTHER_NAME);
	assert_int_equal(play_hear(false, &n), NETWORK_OTHER_NAME);
	assert_int_equal(n, strlen(GET("example.org"))); /* what came before it */
	assert_int_equal(play_say(GET("example.org") "x\r\n"), NETWORK_NO_NAME);
	assert_int_equal(play_say(GET("example.org") "\x16\x03\x01"), NETWORK_NO_NAME);
}

static void bodies_are_passed_over_and_hide_no_request(void **state)
{
	(void)state;
#define POST(more) "POST / HTTP/1.1\r\nHost: example.org\r\n" more "\r\n\r\n"
	assert_int_equal(
		play_say(POST("Content-Length: 5") "12345" GET("other.org")), NETWORK_OTHER_NAME);
	assert_int_equal(play_say(POST("Content-Length: 35") GET("other.org") GET("example.org")),
		NETWORK_ALLOWED);
	assert_int_equal(strlen(GET("other.org")), 35);
	assert_int_equal(play_say(POST("Content-Length: 0") GET("other.org")), NETWORK_OTHER_NAME);
	assert_int_equal(play_say(POST("Transfer-Encoding: chunked") "3\r\nabc\r\n0\r\n\r\n" GET(
				 "other.org")),
		NETWORK_OTHER_NAME);
	assert_int_equal(play_say(POST("Transfer-Encoding: chunked") "23\r\n" GET(
				 "other.org") "\r\n0\r\n\r\n" GET("example.org")),
		NETWORK_ALLOWED);
	assert_int_equal(
		play_say(POST("Transfer-Encoding: chunked") "3;x=y\r\nabc\r\n"), NETWORK_NO_NAME);
	assert_int_equal(play_say(POST("Transfer-Encoding: gzip, chunked")), NETWORK_NO_NAME);
}

static void a_large_body_passes(void **state)
{
	(void)state;
	play_clear();
	play_add_text(POST("Content-Length: 100000"));
	memset(play.bytes + play.len, 'x', 100000);
	play.len += 100000;
	play_add_text(GET("example.org"));
	assert_int_equal(play_verdict(), NETWORK_ALLOWED);
}

static void a_head_that_never_ends_is_refused(void **state)
{
	(void)state;
	play_clear();
	play_add_text("GET / HTTP/1.1\r\n");
	while (play.len < 12000)
		play_add_text(
			"X: 0123456789012345678901234567890123456789012345678901234567890123456789"
			"0123456789012345678901234567890123456789012345678901234567890123456789"
			"0123456789012345678901234567890123456789012345678901234567890123456789\r"
			"\n");
	play_add_text("Host: example.org\r\n\r\n");
	assert_int_equal(play_verdict(), NETWORK_ALLOWED);
	play_clear();
	play_add_text("GET / HTTP/1.1\r\nX: ");
	memset(play.bytes + play.len, 'x', 20000);
	play.len += 20000;
	assert_int_equal(play_verdict(), NETWORK_NO_NAME);
	play_clear();
	play_add_text("GET ");
	memset(play.bytes + play.len, 'x', 20000);
	play.len += 20000;
	assert_int_equal(play_verdict(), NETWORK_NO_NAME);
}

static void http_2_without_tls_is_refused(void **state)
{
	(void)state;
	assert_int_equal(play_say("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), NETWORK_NO_NAME);
	assert_int_equal(play_say("GET / HTTP/1.1\r\nHost: example.org\r\nConnection: Upgrade, "
				  "HTTP2-Settings\r\n"
				  "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\nPRI * "
				  "HTTP/2.0\r\n\r\nSM\r\n\r\n"),
		NETWORK_NO_NAME);
}

static void what_is_not_whole_at_the_end_is_refused(void **state)
{
	(void)state;
	assert_int_equal(say_at_the_end("GET / HTTP/1.1\r\nHost: other.org"), NETWORK_NO_NAME);
	assert_int_equal(
		say_at_the_end("GET / HTTP/1.1\r\nHost: example.org\r\n"), NETWORK_NO_NAME);
	assert_int_equal(say_at_the_end("GET /"), NETWORK_NO_NAME);
	assert_int_equal(say_at_the_end("GET http://other.org/ HTTP/1.1"), NETWORK_NO_NAME);
	assert_int_equal(say_at_the_end("\x16\x03\x01"), NETWORK_NO_NAME);
	assert_int_equal(say_at_the_end(GET("example.org")), NETWORK_ALLOWED);
	assert_int_equal(say_at_the_end(POST("Content-Length: 5") "12"), NETWORK_ALLOWED);
	assert_int_equal(say_at_the_end("hello world"), NETWORK_ALLOWED);
	assert_int_equal(say_at_the_end("\x16"), NETWORK_ALLOWED);
	assert_int_equal(say_at_the_end("\x80\x01\x01"), NETWORK_ALLOWED);
}

/* ---- Anything else ---- */

static void what_has_no_names_passes(void **state)
{
	static const char *const streams[] = {
		"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n\x16\x03\x01",
		"EHLO example.org\r\nMAIL FROM:<a@b>\r\nSTARTTLS\r\n",
		"a001 LOGIN me secret\r\n",
		"*1\r\n$4\r\nPING\r\n",
		"PING\r\n",
		"get key\r\n",
		"CONNECT\naccept-version:1.2\n\n",
		"<?xml version='1.0'?><stream:stream to='other.org'>",
		"{\"hello\": 1}",
		"@RSYNCD: 31.0\n",
		"\x10\x10\x01\x04MQTT",
		"\xff\xfd\x01",
		"\x16\x41\x03",
		" \x01\x02",
		"\x12\x01\x01\x2f",
		"\x01",
	};
	/* What lenient servers read all the same. */
	static const char *const odd[] = {
		"GET /\x01 HTTP/1.1\r\nHost: other.example\r\n\r\n",
		"\xa0GET / HTTP/1.1\r\nHost: other.example\r\n\r\n",
		"\x85GET / HTTP/1.1\r\nHost: other.example\r\n\r\n",
		"GET\xa0/\r\n",
		"\x16\x02\x01\x01\x01\x01",
		"\x16\x0f\x01\x01\x01\x01",
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(streams); i++)
		if (play_say(streams[i]) != NETWORK_ALLOWED)
			fail_msg("%s", streams[i]);
	for (unsigned i = 0; i < ARRAY_LEN(odd); i++)
		if (play_say(odd[i]) == NETWORK_ALLOWED)
			fail_msg("passes: %s", odd[i]);
	play_clear(); /* git's own has a NUL: behind a word and a path, which some would serve */
	play_add("0032git-upload-pack /project.git\0host=example.org\0", 51);
	assert_int_equal(play_verdict(), NETWORK_NO_NAME);
	play_clear();
	play_add("AMQP\0\0\11\1", 8);
	assert_int_equal(play_verdict(), NETWORK_ALLOWED);
}

static void a_word_goes_at_once_and_a_text_at_the_end_of_its_line(void **state)
{
	(void)state;
	assert_waits("hello", 5);
	assert_waits("hello world", 5);
	assert_int_equal(play_say("hello world\n"), NETWORK_ALLOWED);
	assert_int_equal(play_say("hello world\n" GET("other.org")), NETWORK_ALLOWED);
	play_clear();
	memset(play.bytes, 'x', 20000);
	play.bytes[3] = ' ';
	play.bytes[19999] = '\n';
	play.len = 20000;
	assert_int_equal(play_verdict(), NETWORK_NO_NAME);
	play.bytes[9999] = '\n';
	assert_int_equal(play_verdict(), NETWORK_ALLOWED);
}

/* ---- Datagrams ---- */

static bool is_quic(enum packet_kind kind, const char *head, size_t len)
{
	static uint8_t bytes[1500];
	struct packet p = { .kind = kind,
		.target = { { [10] = 0xff, [11] = 0xff, 8, 8, 8, 8 } },
		.target_port = 443,
		.payload = bytes,
		.payload_len = len };

	memcpy(bytes, head, 5);
	return speech_is_quic(&play.rules, &p);
}

static void quic_begins_only_where_no_name_is_needed(void **state)
{
	const struct network_address a = { { [10] = 0xff, [11] = 0xff, 8, 8, 8, 8 } };

	(void)state;
	assert_false(is_quic(PACKET_UDP, "\xc3\0\0\0\1", 1200)); /* not allowed at all */
	rules_pin(&play.rules, "example.org", &a);
	assert_true(is_quic(PACKET_UDP, "\xc3\0\0\0\1", 1200));
	assert_true(is_quic(PACKET_UDP, "\x83\0\0\0\1", 1200));
	assert_true(is_quic(PACKET_UDP, "\xd3\x6b\x33\x43\xcf", 1350));
	assert_false(is_quic(PACKET_UDP, "\xc3\0\0\0\1", 1199));
	assert_false(is_quic(PACKET_UDP, "\x43\0\0\0\1", 1200));
	assert_false(is_quic(PACKET_UDP, "\xc3\0\0\0\0", 1200));
	assert_false(is_quic(PACKET_ECHO, "\xc3\0\0\0\1", 1200));
	play_allow(&play.rules.asked, "8.8.8.0/24");
	assert_false(is_quic(PACKET_UDP, "\xc3\0\0\0\1", 1200));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			a_request_for_a_name_that_is_allowed_there_passes, play_begin),
		cmocka_unit_test_setup(
			a_request_for_another_name_is_refused_and_says_which, play_begin),
		cmocka_unit_test_setup(
			nothing_of_a_request_but_its_first_word_goes_on_before_its_verdict,
			play_begin),
		cmocka_unit_test_setup(a_request_without_a_name_is_refused, play_begin),
		cmocka_unit_test_setup(
			a_request_that_can_be_read_in_two_ways_is_refused, play_begin),
		cmocka_unit_test_setup(each_request_of_a_connection_is_judged, play_begin),
		cmocka_unit_test_setup(bodies_are_passed_over_and_hide_no_request, play_begin),
		cmocka_unit_test_setup(a_large_body_passes, play_begin),
		cmocka_unit_test_setup(a_head_that_never_ends_is_refused, play_begin),
		cmocka_unit_test_setup(http_2_without_tls_is_refused, play_begin),
		cmocka_unit_test_setup(what_is_not_whole_at_the_end_is_refused, play_begin),
		cmocka_unit_test_setup(what_has_no_names_passes, play_begin),
		cmocka_unit_test_setup(
			a_word_goes_at_once_and_a_text_at_the_end_of_its_line, play_begin),
		cmocka_unit_test_setup(quic_begins_only_where_no_name_is_needed, play_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
