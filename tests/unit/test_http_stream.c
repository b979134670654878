/* Answers that come piece by piece: whole, or cut off so that the client can see it. */
#include "unit.h"

#include "http_talk.h"

#include <errno.h>
#include <string.h>

#define LEN ((size_t)1000000) /* much more than sockets and one piece hold */

/* Gives LEN bytes, or so many that it then fails. */
static struct source {
	size_t given, fail_at;
	unsigned reads, done;
} source;

static ssize_t read_some(void *ctx, void *bytes, size_t room)
{
	struct source *s = ctx;
	size_t n = LEN - s->given < room ? LEN - s->given : room;

	s->reads++;
	if (s->fail_at > 0 && s->given >= s->fail_at)
		return -ESTALE;
	memset(bytes, '#', n);
	s->given += n;
	return (ssize_t)n;
}

static void on_done(void *ctx)
{
	((struct source *)ctx)->done++;
}

static void begin(struct talk *t)
{
	talk_begin(t);
	talk_end(t);
	t->small_buffers = true;
	talk_serve(t);
	source = (struct source){ 0 };
}

/* The client has asked, and its answer begins. */
static void answer(struct talk *t, struct client *cl, const char *ask, uint64_t len)
{
	const struct http_source from = { read_some, on_done, &source };

	client_open(cl, t);
	client_say(cl, ask);
	WAIT_FOR(t, t->held_count == 1);
	t->held_count = 0;
	http_reply_stream(t->held[0], "text/plain", len, &from, NULL);
}

static void end(struct talk *t, struct client *cl)
{
	client_close(cl);
	WAIT_FOR(t, http_server_connections(t->server) == 0);
	assert_int_equal(source.done, 1);
	talk_end(t);
}

static size_t count_bytes(const struct client *cl)
{
	size_t n = 0;

	for (size_t i = 0; i < cl->len; i++)
		n += cl->text[i] == '#';
	return n;
}

#define GET  "GET /later HTTP/1.1\r\nHost: h\r\n\r\n"
#define NEXT "GET /now HTTP/1.1\r\nHost: h\r\n\r\n"

static void a_stream_comes_whole_and_the_next_answer_behind_it(void **state)
{
	static const uint64_t lens[] = { LEN, HTTP_LEN_UNKNOWN };
	struct client cl;
	struct talk t;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		begin(&t);
		answer(&t, &cl, GET, lens[i]);
		client_say(&cl, NEXT);
		WAIT_FOR(&t, client_has(&cl, "GET /now 0\n"));
		assert_int_equal(count_bytes(&cl), LEN);
		assert_int_equal(client_has(&cl, "Content-Length: 1000000\r\n"), i == 0);
		assert_int_equal(client_has(&cl, "\r\n0\r\n\r\nHTTP/1.1 200"), i == 1);
		end(&t, &cl);
	}
}

static void before_http_1_1_a_stream_of_unknown_length_ends_with_its_connection(void **state)
{
	struct client cl;
	struct talk t;

	(void)state;
	begin(&t);
	answer(&t, &cl, "GET /later HTTP/1.0\r\nHost: h\r\n\r\n", HTTP_LEN_UNKNOWN);
	WAIT_FOR(&t, cl.eof);
	assert_int_equal(count_bytes(&cl), LEN);
	assert_false(client_has(&cl, "chunked"));
	end(&t, &cl);
}

static void a_source_that_fails_ends_the_connection_before_the_answers_end(void **state)
{
	static const uint64_t lens[] = { LEN, HTTP_LEN_UNKNOWN };
	struct client cl;
	struct talk t;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		begin(&t);
		source.fail_at = LEN / 2;
		answer(&t, &cl, GET, lens[i]);
		client_say(&cl, NEXT);
		WAIT_FOR(&t, cl.eof || cl.reset);
		assert_true(count_bytes(&cl) < LEN);
		assert_false(client_has(&cl, "\r\n0\r\n\r\n"));
		assert_false(client_has(&cl, "GET /now"));
		end(&t, &cl);
	}
}

static void a_client_that_does_not_read_is_not_read_for(void **state)
{
	struct client cl;
	struct talk t;

	(void)state;
	begin(&t);
	client_open(&cl, &t);
	(void)bufferevent_disable(cl.bev, EV_READ);
	client_say(&cl, GET);
	WAIT_FOR(&t, t.held_count == 1);
	t.held_count = 0;
	http_reply_stream(t.held[0], "text/plain", LEN,
		&(struct http_source){ read_some, on_done, &source }, NULL);
	(void)talk_wakeups(&t, 50);
	assert_in_range(source.given, 1, LEN / 2);
	assert_int_equal(source.done, 0);
	client_reset(&cl);
	WAIT_FOR(&t, source.done == 1);
	assert_true(source.given < LEN);
	WAIT_FOR(&t, http_server_connections(t.server) == 0);
	talk_end(&t);
	assert_int_equal(source.done, 1);
}

static void a_server_that_ends_leaves_no_source_behind(void **state)
{
	struct client cl;
	struct talk t;

	(void)state;
	begin(&t);
	client_open(&cl, &t);
	(void)bufferevent_disable(cl.bev, EV_READ);
	client_say(&cl, GET);
	WAIT_FOR(&t, t.held_count == 1);
	t.held_count = 0;
	http_reply_stream(t.held[0], "text/plain", LEN,
		&(struct http_source){ read_some, on_done, &source }, NULL);
	client_close(&cl);
	talk_end(&t);
	assert_int_equal(source.done, 1);
}

static void of_head_nothing_is_read(void **state)
{
	struct client cl;
	struct talk t;

	(void)state;
	begin(&t);
	answer(&t, &cl, "HEAD /later HTTP/1.1\r\nHost: h\r\n\r\n", LEN);
	WAIT_FOR(&t, client_has(&cl, "\r\n\r\n"));
	assert_true(client_has(&cl, "Content-Length: 1000000\r\n"));
	assert_int_equal(source.reads, 0);
	end(&t, &cl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_comes_whole_and_the_next_answer_behind_it),
		cmocka_unit_test(
			before_http_1_1_a_stream_of_unknown_length_ends_with_its_connection),
		cmocka_unit_test(a_source_that_fails_ends_the_connection_before_the_answers_end),
		cmocka_unit_test(a_client_that_does_not_read_is_not_read_for),
		cmocka_unit_test(a_server_that_ends_leaves_no_source_behind),
		cmocka_unit_test(of_head_nothing_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
