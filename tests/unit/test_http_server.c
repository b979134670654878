#include "unit.h"

#include "edge/http/server_internal.h"
#include "http_talk.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define GET(path)                "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define POST(path, fields, body) "POST " path " HTTP/1.1\r\nHost: x\r\n" fields "\r\n" body
#define OK                       "HTTP/1.1 200 OK\r\n"
#define MANY_WAKEUPS             50 /* in the windows below; a spinning loop has thousands */

static void connection_serves_one_request_after_another(void **state)
{
	struct client cl;
	struct talk t;
	char peer[64];

	(void)state;
	talk_begin(&t);
	client_open(&cl, &t);
	client_say(&cl, GET("/now?a=b"));
	WAIT_FOR(&t, client_has(&cl, "GET /now 0\n"));
	assert_true(client_has(&cl, "Connection: keep-alive\r\n"));
	assert_true(client_has(&cl, "Server: glovebox\r\n"));
	client_say(&cl, POST("/now", "Content-Length: 3\r\n", "abc"));
	WAIT_FOR(&t, client_has(&cl, "POST /now 3\n"));
	client_say(&cl,
		POST("/now", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"));
	WAIT_FOR(&t, client_has(&cl, "POST /now 4\n"));
	assert_int_equal(client_count(&cl, OK), 3);
	assert_int_equal(http_server_connections(t.server), 1);
	(void)snprintf(peer, sizeof(peer), "127.0.0.1:");
	assert_memory_equal(t.peer, peer, strlen(peer));

	client_say(&cl, "GET /now HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	WAIT_FOR(&t, cl.eof);
	assert_true(client_has(&cl, "Connection: close\r\n"));
	client_close(&cl);
	WAIT_FOR(&t, http_server_connections(t.server) == 0);
	talk_end(&t);
}

static void parts_of_a_request_can_be_asked_for(void **state)
{
	struct client cl;
	struct talk t;
	size_t len;

	(void)state;
	talk_begin(&t);
	client_open(&cl, &t);
	client_say(&cl,
		POST("/later?q=1?2",
			"X-Thing: \t a b \r\nEmpty:\r\nContent-Length: 2\r\nx-thing: c\r\n", "hi"));
	WAIT_FOR(&t, t.held_count == 1);
	assert_string_equal(http_request_method(t.held[0]), "POST");
	assert_string_equal(http_request_path(t.held[0]), "/later");
	assert_string_equal(http_request_query(t.held[0]), "q=1?2");
	assert_string_equal(http_request_header(t.held[0], "x-THING"), "a b");
	assert_string_equal(http_request_header(t.held[0], "empty"), "");
	assert_null(http_request_header(t.held[0], "x-thin"));
	assert_memory_equal(http_request_body(t.held[0], &len), "hi", 2);
	assert_int_equal(len, 2);
	assert_true(http_request_started_ns(t.held[0]) > 0);
	assert_null(http_request_data(t.held[0]));
	http_request_set_data(t.held[0], &t);
	assert_ptr_equal(http_request_data(t.held[0]), &t);
	http_reply(t.held[0], 204, NULL, NULL, 0, NULL);
	WAIT_FOR(&t, client_has(&cl, "HTTP/1.1 204 No Content\r\n"));
	assert_false(client_has(&cl, "Content-Length"));
	client_close(&cl);
	talk_end(&t);
}

static void unix_socket_serves_as_well(void **state)
{
	struct client cl;
	struct talk t;

	(void)state;
	talk_begin(&t);
	talk_end(&t);
	t.unix_socket = true;
	talk_serve(&t);
	client_open(&cl, &t);
	client_say(&cl, GET("/now"));
	WAIT_FOR(&t, client_has(&cl, "GET /now 0\n"));
	assert_string_equal(t.peer, "unix");
	client_say(&cl, "nonsense\r\n");
	WAIT_FOR(&t, cl.eof);
	assert_true(client_has(&cl, "{\"detail\":\"the request is not well-formed HTTP/1.1\"}"));
	assert_int_equal(t.bad_status, 400);
	client_close(&cl);
	talk_end(&t);
}

/* Without a turn of the loop between the call and the client. */
static void an_answer_leaves_before_the_call_returns(void **state)
{
	char got[256] = { 0 };
	struct client cl;
	struct talk t;

	(void)state;
	talk_begin(&t);
	client_open(&cl, &t);
	client_say(&cl, GET("/later"));
	WAIT_FOR(&t, t.held_count == 1);
	http_reply(t.held[0], 200, NULL, "[1]", 3, NULL);
	assert_true(recv(bufferevent_getfd(cl.bev), got, sizeof(got) - 1, 0) > 0);
	assert_non_null(strstr(got, "\r\n\r\n[1]"));
	client_say(&cl, GET("/now")); /* and the connection goes on */
	WAIT_FOR(&t, client_has(&cl, "GET /now 0\n"));
	client_close(&cl);
	talk_end(&t);
}

/* 2,000 in one buffer must not become 2,000 frames of the stack. */
static void pipelined_requests_are_answered_in_order_without_recursion(void **state)
{
	enum {
		N = 2000
	};
	struct client cl;
	struct talk t;
	char line[64];
	const char *at;

	(void)state;
	talk_begin(&t);
	client_open(&cl, &t);
	for (int i = 0; i < N; i++) {
		(void)snprintf(line, sizeof(line),
			"GET /%d HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", i);
		client_say(&cl, line);
	}
	WAIT_FOR(&t, client_has(&cl, "GET /1999 0\n"));
	assert_int_equal(client_count(&cl, OK), N);
	at = cl.text;
	for (int i = 0; i < N; i++) {
		(void)snprintf(line, sizeof(line), "\r\n\r\nGET /%d 0\n", i);
		at = strstr(at, line);
		assert_non_null(at);
	}
	assert_true(t.stack_high - t.stack_low < 1024);
	client_close(&cl);
	talk_end(&t);
}

static void request_behind_a_running_one_waits_its_turn(void **state)
{
	struct client cl;
	struct talk t;

	(void)state;
	talk_begin(&t);
	client_open(&cl, &t);
	client_say(&cl, POST("/later", "Content-Length: 1\r\n", "a") GET("/now"));
	WAIT_FOR(&t, t.held_count == 1);
	assert_true(talk_wakeups(&t, 30) < MANY_WAKEUPS);
	assert_int_equal(t.handled, 1);
	http_reply(t.held[0], 200, NULL, "[1]", 3, NULL);
	WAIT_FOR(&t, client_has(&cl, "GET /now 0\n"));
	assert_true(strstr(cl.text, "[1]") < strstr(cl.text, "GET /now"));
	assert_true(client_has(&cl, "Content-Type: application/json\r\n"));
	client_close(&cl);
	talk_end(&t);
}

static void client_that_waits_to_be_asked_gets_100_and_then_200(void **state)
{
	struct client cl;
	struct talk t;

	(void)state;
	talk_begin(&t);
	client_open(&cl, &t);
	client_say(&cl, POST("/now", "Expect: 100-continue\r\nContent-Length: 3\r\n", ""));
	WAIT_FOR(&t, client_has(&cl, "HTTP/1.1 100 Continue\r\n\r\n"));
	assert_int_equal(t.handled, 0);
	client_say(&cl, "abc");
	WAIT_FOR(&t, client_has(&cl, "POST /now 3\n"));
	assert_int_equal(client_count(&cl, "HTTP/1.1 100"), 1);
	client_say(&cl, POST("/now", "Expect: 100-continue\r\n", ""));
	WAIT_FOR(&t, client_has(&cl, "POST /now 0\n"));
	assert_int_equal(client_count(&cl, "HTTP/1.1 100"), 1); /* there is no body to ask for */
	client_close(&cl);
	talk_end(&t);
}

static void refused_client_is_not_asked_for_its_body(void **state)
{
	static const struct {
		const char *request, *status;
	} rows[] = {
		{ POST("/nope", "Expect: 100-continue\r\nContent-Length: 3\r\n", ""),
			"HTTP/1.1 404 " },
		{ POST("/now", "Expect: 100-continue\r\nContent-Length: 9999999\r\n", ""),
			"HTTP/1.1 413 " },
		{ POST("/now", "Expect: 200-ok\r\nContent-Length: 3\r\n", ""), "HTTP/1.1 417 " },
	};
	struct client cl;
	struct talk t;

	(void)state;
	talk_begin(&t);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		client_open(&cl, &t);
		client_say(&cl, rows[i].request);
		WAIT_FOR(&t, cl.eof);
		assert_int_equal(strncmp(cl.text, rows[i].status, strlen(rows[i].status)), 0);
		assert_int_equal(client_count(&cl, "HTTP/1.1"), 1);
		assert_true(client_has(&cl, "Connection: close\r\n"));
		client_close(&cl);
	}
	talk_end(&t);
}

/* The answer must survive a client that is still sending: closing at once would reset it. */
static void too_long_body_is_refused_unread_and_the_answer_arrives(void **state)
{
	static char filler[3 * 1024 * 1024];
	struct client cl;
	struct talk t;

	(void)state;
	talk_begin(&t);
	client_open(&cl, &t);
	client_say(&cl, POST("/now", "Content-Length: 10485760\r\n", ""));
	WAIT_FOR(&t, cl.eof);
	assert_true(client_has(&cl, "HTTP/1.1 413 Content Too Large\r\n"));
	assert_true(client_has(
		&cl, "{\"detail\":\"the body is larger than the limit of 1048576 bytes\"}"));
	assert_int_equal(t.bad_status, 413);
	client_send(&cl, filler, sizeof(filler));
	WAIT_FOR(&t, cl.reset || evbuffer_get_length(bufferevent_get_output(cl.bev)) == 0);
	assert_false(cl.reset);
	assert_int_equal(http_server_connections(t.server), 1); /* it lingers */
	client_close(&cl);
	WAIT_FOR(&t, http_server_connections(t.server) == 0);

	client_open(&cl, &t);
	client_say(&cl, POST("/now", "Transfer-Encoding: chunked\r\n", "100001\r\n"));
	WAIT_FOR(&t, cl.eof);
	assert_true(client_has(&cl, "HTTP/1.1 413 "));
	client_close(&cl);
	assert_int_equal(t.handled, 0);
	talk_end(&t);
}

static void refused_requests_leave_the_connection_in_step(void **state)
{
	struct client cl;
	struct talk t;

	(void)state;
	talk_begin(&t);
	client_open(&cl, &t);
	client_say(&cl, POST("/nope", "Content-Length: 20\r\n", "GET /no HTTP/1.1\r\n\r\n"));
	client_say(&cl, "PUT /now HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
			"chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
	client_say(&cl, GET("/now"));
	WAIT_FOR(&t, client_has(&cl, "GET /now 0\n"));
	assert_true(client_has(&cl, "HTTP/1.1 404 Not Found\r\n"));
	assert_true(client_has(&cl, "HTTP/1.1 405 Method Not Allowed\r\n"));
	assert_int_equal(client_count(&cl, "HTTP/1.1"), 3);
	/* A header value cannot start a line of its own. */
	assert_true(client_has(&cl, "Allow: GET??X-Forged: 1\r\n"));
	client_close(&cl);
	talk_end(&t);
}

static void head_is_answered_without_a_body(void **state)
{
	struct client cl;
	struct talk t;

	(void)state;
	talk_begin(&t);
	client_open(&cl, &t);
	client_say(&cl, "HEAD /now HTTP/1.1\r\nHost: x\r\n\r\n" GET("/now"));
	WAIT_FOR(&t, client_has(&cl, "GET /now 0\n"));
	assert_true(client_has(&cl, "Content-Length: 12\r\n")); /* of `HEAD /now 0` */
	assert_false(client_has(&cl, "HEAD /now"));
	assert_true(client_has(&cl, "\r\n\r\nHTTP/1.1 200"));
	client_close(&cl);
	talk_end(&t);
}

static void large_bodies_arrive_and_leave_whole(void **state)
{
	enum {
		N = 1024 * 1024
	};
	char *body = malloc(N);
	struct client cl;
	struct talk t;

	(void)state;
	assert_non_null(body);
	for (size_t i = 0; i < N; i++)
		body[i] = (char)('a' + i * 7 % 23 + i / 4096 % 3);
	talk_begin(&t);
	client_open(&cl, &t);
	for (int chunked = 0; chunked < 2; chunked++) {
		client_clear(&cl);
		if (chunked)
			client_say(
				&cl, POST("/echo", "Transfer-Encoding: chunked\r\n", "fffff\r\n"));
		else
			client_say(&cl, POST("/echo", "Content-Length: 1048576\r\n", ""));
		client_send(&cl, body, N - 1);
		if (chunked)
			client_say(&cl, "\r\n1\r\n");
		client_send(&cl, body + N - 1, 1);
		if (chunked)
			client_say(&cl, "\r\n0\r\n\r\n");
		WAIT_FOR(&t, cl.len > N && strstr(cl.text, "\r\n\r\n") + 4 + N == cl.text + cl.len);
		assert_memory_equal(cl.text + cl.len - N, body, N);
	}
	free(body);
	client_close(&cl);
	talk_end(&t);
}

static void bodies_share_one_limit(void **state)
{
	static char filler[65536];
	struct client one, two;
	struct talk t;

	(void)state;
	talk_begin(&t);
	talk_end(&t);
	t.limits.bodies_bytes = 100000;
	talk_serve(&t);
	client_open(&one, &t);
	client_say(&one, POST("/later", "Content-Length: 65536\r\n", ""));
	client_send(&one, filler, sizeof(filler));
	WAIT_FOR(&t, t.held_count == 1);
	client_open(&two, &t);
	client_say(&two, POST("/now", "Content-Length: 65536\r\n", ""));
	client_send(&two, filler, sizeof(filler));
	WAIT_FOR(&t, two.eof);
	assert_true(client_has(&two, "HTTP/1.1 503 "));
	assert_true(client_has(&two, "Retry-After: 1\r\n"));
	client_close(&two);
	http_reply(t.held[0], 200, NULL, NULL, 0, NULL);
	client_open(&two, &t);
	client_say(&two, POST("/now", "Content-Length: 65536\r\n", ""));
	client_send(&two, filler, sizeof(filler));
	WAIT_FOR(&t, client_has(&two, "POST /now 65536"));
	client_close(&one);
	client_close(&two);
	talk_end(&t);
}

enum leaving {
	BY_FIN,
	BY_RST,
	BY_HALF_CLOSE,
	BY_FLOOD,
	LEAVING_MAX
};

/* Whichever way the client leaves, and whether or not it had sent more requests. */
static void leaving_client_ends_its_run_once(void **state)
{
	static char flood[256 * 1024];

	(void)state;
	for (int i = 0; i < LEAVING_MAX * 2; i++) {
		struct client cl;
		struct talk t;

		talk_begin(&t);
		client_open(&cl, &t);
		client_say(&cl, POST("/later", "Content-Length: 1\r\n", "a"));
		if (i % 2)
			client_say(&cl, GET("/now") GET("/now"));
		WAIT_FOR(&t, t.held_count == 1);
		assert_true(talk_wakeups(&t, 20) < MANY_WAKEUPS);
		assert_int_equal(t.gone, 0);
		if (i / 2 == BY_FIN)
			client_close(&cl);
		else if (i / 2 == BY_RST)
			client_reset(&cl);
		else if (i / 2 == BY_HALF_CLOSE)
			client_half_close(&cl);
		else
			client_send(&cl, flood, sizeof(flood));
		WAIT_FOR(&t, t.gone == 1);
		assert_int_equal(http_server_connections(t.server), 0);
		assert_true(talk_wakeups(&t, 20) < MANY_WAKEUPS);
		assert_int_equal(t.handled, 1); /* nothing of what was behind it ran */
		assert_int_equal(t.gone, 1);
		if (i / 2 == BY_HALF_CLOSE || i / 2 == BY_FLOOD)
			client_close(&cl);
		talk_end(&t);
	}
}

/* What can be answered at once still is: `printf 'GET ...' | nc -N`. */
static void half_closed_client_gets_the_answers_that_need_no_wait(void **state)
{
	struct client cl;
	struct talk t;

	(void)state;
	talk_begin(&t);
	client_open(&cl, &t);
	client_say(&cl, GET("/now") GET("/now") "GET /incompl");
	client_half_close(&cl);
	WAIT_FOR(&t, cl.eof);
	assert_int_equal(client_count(&cl, "GET /now 0\n"), 2);
	assert_int_equal(client_count(&cl, "HTTP/1.1"), 2);
	client_close(&cl);
	WAIT_FOR(&t, http_server_connections(t.server) == 0);
	talk_end(&t);
}

static void drip(evutil_socket_t fd, short what, void *ctx)
{
	struct client *cl = ctx;

	(void)fd;
	(void)what;
	client_say(cl, "a");
}

/* A byte now and then buys no time: each phase has one deadline from its first byte. */
static void dripping_client_is_cut_off_at_the_deadline(void **state)
{
	static const char *const starts[] = { "GET /", GET("/now") "GET /now HTTP/1.1\r\nX",
		POST("/now", "Content-Length: 100000\r\n", "a") };
	struct timeval pace = { .tv_usec = 10000 };

	(void)state;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		struct client cl;
		struct talk t;
		struct event *timer;

		talk_begin(&t);
		talk_end(&t);
		t.limits.head_ms = t.limits.body_ms = 150;
		talk_serve(&t);
		client_open(&cl, &t);
		client_say(&cl, starts[i]);
		timer = event_new(t.base, -1, EV_PERSIST, drip, &cl);
		(void)event_add(timer, &pace);
		WAIT_FOR(&t, client_has(&cl, "HTTP/1.1 408 ") && cl.eof);
		assert_int_equal(t.bad, 1);
		assert_int_equal(t.bad_status, 408);
		event_free(timer);
		client_close(&cl);
		talk_end(&t);
	}
}

static void silent_connections_end_at_their_deadlines(void **state)
{
	struct client idle, lingering;
	struct talk t;

	(void)state;
	talk_begin(&t);
	talk_end(&t);
	t.limits.idle_ms = t.limits.linger_ms = 50;
	talk_serve(&t);
	client_open(&idle, &t);
	WAIT_FOR(&t, idle.eof);
	assert_int_equal(idle.len, 0);
	client_close(&idle);

	/* It has its answer, and neither closes nor sends. */
	client_open(&lingering, &t);
	client_say(&lingering, "nonsense\r\n");
	WAIT_FOR(&t, lingering.eof);
	assert_true(client_has(&lingering, "HTTP/1.1 400 Bad Request\r\n"));
	WAIT_FOR(&t, http_server_connections(t.server) == 0);
	client_close(&lingering);
	talk_end(&t);
}

/* Its deadline allows for the length of the answer, at 16 bytes a millisecond, and for no
 * more. */
static void client_that_never_reads_is_cut_off_at_the_deadline(void **state)
{
	struct client cl;
	struct talk t;
	struct timespec before, after;

	(void)state;
	talk_begin(&t);
	talk_end(&t);
	t.limits.body_ms = 1;
	t.small_buffers = true;
	t.big_len = 16u * 1024;
	talk_serve(&t);
	client_open(&cl, &t);
	(void)bufferevent_disable(cl.bev, EV_READ);
	(void)clock_gettime(CLOCK_MONOTONIC, &before);
	client_say(&cl, "GET /big HTTP/1.0\r\n\r\n");
	WAIT_FOR(&t, t.handled == 1);
	assert_int_equal(http_server_connections(t.server), 1);
	(void)talk_wakeups(&t, 50); /* what the sockets take is taken */
	assert_true(talk_wakeups(&t, 50) < MANY_WAKEUPS);
	WAIT_FOR(&t, http_server_connections(t.server) == 0);
	(void)clock_gettime(CLOCK_MONOTONIC, &after);
	assert_true((after.tv_sec - before.tv_sec) * 1000 +
			    (after.tv_nsec - before.tv_nsec) / 1000000 >=
		    (long)t.big_len / 16);
	client_close(&cl);
	talk_end(&t);
}

static void unread_answers_stop_the_pipeline(void **state)
{
	struct client cl;
	struct talk t;

	(void)state;
	talk_begin(&t);
	t.big_len = 8u * 1024 * 1024;
	client_open(&cl, &t);
	(void)bufferevent_disable(cl.bev, EV_READ);
	for (int i = 0; i < 2000; i++)
		client_say(&cl, GET("/big"));
	WAIT_FOR(&t, t.handled == 1);
	(void)talk_wakeups(&t, 100); /* what the sockets take is taken */
	assert_true(talk_wakeups(&t, 50) < MANY_WAKEUPS);
	assert_int_equal(t.handled, 1);
	client_close(&cl);
	WAIT_FOR(&t, http_server_connections(t.server) == 0);
	talk_end(&t);
}

static void connections_over_the_limit_are_told_so(void **state)
{
	struct client two[2], third;
	struct talk t;

	(void)state;
	talk_begin(&t);
	talk_end(&t);
	t.limits.connections = 2;
	talk_serve(&t);
	client_open(&two[0], &t);
	client_open(&two[1], &t);
	WAIT_FOR(&t, http_server_connections(t.server) == 2);
	client_open(&third, &t);
	client_say(&third, GET("/now"));
	WAIT_FOR(&t, third.eof);
	assert_true(client_has(&third, "HTTP/1.1 503 Service Unavailable\r\n"));
	assert_true(client_has(&third, "Retry-After: 1\r\n"));
	assert_int_equal(t.handled, 0);
	assert_int_equal(t.bad_status, 503);
	client_close(&third);
	WAIT_FOR(&t, http_server_connections(t.server) == 2);

	client_close(&two[0]);
	WAIT_FOR(&t, http_server_connections(t.server) == 1);
	client_open(&third, &t);
	client_say(&third, GET("/now"));
	WAIT_FOR(&t, client_has(&third, "GET /now 0\n"));
	client_close(&third);
	client_close(&two[1]);
	talk_end(&t);
}

/* With no descriptor left, the listening socket stays readable for ever. */
static void running_out_of_descriptors_neither_spins_nor_ends_the_service(void **state)
{
	struct rlimit old, low;
	struct client cl;
	struct talk t;
	int next;

	(void)state;
	talk_begin(&t);
	client_open(&cl, &t);
	client_say(&cl, GET("/now"));
	next = dup(0);
	assert_true(next >= 0);
	(void)close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = (struct rlimit){ .rlim_cur = (rlim_t)next, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_true(talk_wakeups(&t, 250) < MANY_WAKEUPS);
	assert_int_equal(http_server_connections(t.server), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	WAIT_FOR(&t, client_has(&cl, "GET /now 0\n"));
	client_close(&cl);
	talk_end(&t);
}

static void on_idle(void *ctx)
{
	struct talk *t = ctx;

	t->drained++;
}

static void drain_answers_what_has_begun_and_ends_the_rest(void **state)
{
	struct client idle, begun, running;
	struct talk t;

	(void)state;
	talk_begin(&t);
	client_open(&idle, &t);
	client_say(&idle, GET("/now"));
	WAIT_FOR(&t, client_has(&idle, "GET /now 0\n"));
	client_open(&running, &t);
	client_say(&running, GET("/later"));
	WAIT_FOR(&t, t.held_count == 1);
	client_open(&begun, &t);
	client_say(&begun, POST("/now", "Expect: 100-continue\r\nContent-Length: 1\r\n", ""));
	WAIT_FOR(&t, client_has(&begun, "HTTP/1.1 100"));

	http_server_drain(t.server, on_idle, &t);
	WAIT_FOR(&t, idle.eof);
	assert_int_equal(t.drained, 0);
	client_say(&begun, "a");
	WAIT_FOR(&t, begun.eof);
	assert_true(client_has(&begun, "POST /now 1\n"));
	assert_true(client_has(&begun, "Connection: close\r\n"));
	client_close(&begun);
	http_reply(t.held[0], 200, NULL, "[]", 2, NULL);
	WAIT_FOR(&t, running.eof);
	assert_true(client_has(&running, "Connection: close\r\n"));
	assert_int_equal(t.drained, 0);
	client_close(&running);
	WAIT_FOR(&t, t.drained == 1);
	assert_int_equal(http_server_connections(t.server), 0);
	client_close(&idle);
	talk_end(&t);
}

static void drain_of_an_idle_server_ends_at_once(void **state)
{
	struct talk t;

	(void)state;
	talk_begin(&t);
	http_server_drain(t.server, on_idle, &t);
	WAIT_FOR(&t, t.drained == 1);
	assert_true(talk_wakeups(&t, 10) < MANY_WAKEUPS);
	assert_int_equal(t.drained, 1);
	talk_end(&t);
}

static void destroyed_server_gives_its_requests_up(void **state)
{
	struct client cl;
	struct talk t;

	(void)state;
	talk_begin(&t);
	client_open(&cl, &t);
	client_say(&cl, GET("/later"));
	WAIT_FOR(&t, t.held_count == 1);
	http_server_destroy(t.server);
	t.server = NULL;
	assert_int_equal(t.gone, 1);
	client_close(&cl);
	talk_end(&t);
}

static void dates_are_what_the_c_library_says(void **state)
{
	char got[REPLY_DATE_MAX], want[REPLY_DATE_MAX];

	(void)state;
	for (int64_t s = 0; s < INT64_C(8000000000); s += 86400 * 3 + 3661) {
		time_t at = (time_t)s;
		struct tm tm;

		assert_non_null(gmtime_r(&at, &tm));
		assert_true(strftime(want, sizeof(want), "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0);
		reply_date(s, got);
		assert_string_equal(got, want);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(connection_serves_one_request_after_another),
		cmocka_unit_test(parts_of_a_request_can_be_asked_for),
		cmocka_unit_test(unix_socket_serves_as_well),
		cmocka_unit_test(an_answer_leaves_before_the_call_returns),
		cmocka_unit_test(pipelined_requests_are_answered_in_order_without_recursion),
		cmocka_unit_test(request_behind_a_running_one_waits_its_turn),
		cmocka_unit_test(client_that_waits_to_be_asked_gets_100_and_then_200),
		cmocka_unit_test(refused_client_is_not_asked_for_its_body),
		cmocka_unit_test(too_long_body_is_refused_unread_and_the_answer_arrives),
		cmocka_unit_test(refused_requests_leave_the_connection_in_step),
		cmocka_unit_test(head_is_answered_without_a_body),
		cmocka_unit_test(large_bodies_arrive_and_leave_whole),
		cmocka_unit_test(bodies_share_one_limit),
		cmocka_unit_test(leaving_client_ends_its_run_once),
		cmocka_unit_test(half_closed_client_gets_the_answers_that_need_no_wait),
		cmocka_unit_test(dripping_client_is_cut_off_at_the_deadline),
		cmocka_unit_test(silent_connections_end_at_their_deadlines),
		cmocka_unit_test(client_that_never_reads_is_cut_off_at_the_deadline),
		cmocka_unit_test(unread_answers_stop_the_pipeline),
		cmocka_unit_test(connections_over_the_limit_are_told_so),
		cmocka_unit_test(running_out_of_descriptors_neither_spins_nor_ends_the_service),
		cmocka_unit_test(drain_answers_what_has_begun_and_ends_the_rest),
		cmocka_unit_test(drain_of_an_idle_server_ends_at_once),
		cmocka_unit_test(destroyed_server_gives_its_requests_up),
		cmocka_unit_test(dates_are_what_the_c_library_says),
	};

	return cmocka_run_group_tests_name("http_server", tests, NULL, NULL);
}
