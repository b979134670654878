#include "unit.h"

#include "edge/http/server_internal.h"
#include "http_talk.h"

#include <event2/bufferevent.h>

#define GET_BIG "GET /big HTTP/1.1\r\nHost: x\r\n\r\n"
#define GET_NOW "GET /now HTTP/1.1\r\nHost: x\r\n\r\n"
#define BIG     (400u * 1024)
#define BUDGET  (1024u * 1024)
#define TAKEN   (32u * 1024) /* more than the smallest sockets hold of an answer */
#define CLIENTS 30

static void begin(struct talk *t)
{
	talk_begin(t);
	talk_end(t);
	t->limits.replies_bytes = BUDGET;
	t->limits.connections = 2 * CLIENTS;
	t->small_buffers = true;
	t->big_len = BIG;
	talk_serve(t);
}

/* A client that asks for much and takes nothing of it. */
static void open_deaf(struct client *cl, struct talk *t)
{
	unsigned handled = t->handled;

	client_open(cl, t);
	(void)bufferevent_disable(cl->bev, EV_READ);
	client_say(cl, GET_BIG);
	WAIT_FOR(t, t->handled > handled);
	(void)talk_wakeups(t, 10); /* what is then to happen at once happens */
}

static void answers_that_nobody_takes_do_not_add_up(void **state)
{
	struct client deaf[CLIENTS], other;
	struct talk t;

	(void)state;
	begin(&t);
	for (unsigned i = 0; i < CLIENTS; i++) {
		open_deaf(&deaf[i], &t);
		assert_in_range(t.server->unsent_bytes, BIG - TAKEN, BUDGET);
	}
	assert_int_equal(http_server_connections(t.server), BUDGET / BIG);

	/* The others do not notice. */
	client_open(&other, &t);
	client_say(&other, GET_NOW);
	WAIT_FOR(&t, client_has(&other, "GET /now 0\n"));
	client_say(&other, GET_BIG);
	WAIT_FOR(&t, other.len > BIG);
	client_close(&other);

	/* The longest waiting went first: the last one can still have its answer. */
	(void)bufferevent_enable(deaf[0].bev, EV_READ);
	(void)bufferevent_enable(deaf[CLIENTS - 1].bev, EV_READ);
	WAIT_FOR(&t, deaf[0].eof || deaf[0].reset);
	assert_true(deaf[0].len < BIG);
	WAIT_FOR(&t, deaf[CLIENTS - 1].len > BIG);
	for (unsigned i = 0; i < CLIENTS; i++)
		client_close(&deaf[i]);
	WAIT_FOR(&t, http_server_connections(t.server) == 0);
	assert_int_equal(t.server->unsent_bytes, 0);
	talk_end(&t);
}

static void one_answer_may_be_larger_than_the_budget(void **state)
{
	struct client cl;
	struct talk t;

	(void)state;
	begin(&t);
	t.big_len = 3 * BUDGET;
	open_deaf(&cl, &t);
	assert_in_range(t.server->unsent_bytes, 2 * BUDGET, 4 * BUDGET);
	(void)bufferevent_enable(cl.bev, EV_READ);
	WAIT_FOR(&t, cl.len > 3 * BUDGET);
	assert_int_equal(t.server->unsent_bytes, 0);
	client_close(&cl);
	talk_end(&t);
}

/* Several great answers in one turn of the loop, in which nobody can take anything. */
static void an_answer_that_had_no_turn_yet_is_not_slow(void **state)
{
	static char bytes[BIG];
	struct client clients[5];
	struct talk t;

	(void)state;
	begin(&t);
	for (unsigned i = 0; i < 5; i++) {
		client_open(&clients[i], &t);
		client_say(&clients[i], "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
		WAIT_FOR(&t, t.held_count == i + 1);
	}
	/* The first one is small, but not so small that it is sent at once. */
	for (unsigned i = 0; i < 5; i++)
		http_reply(t.held[i], 200, NULL, bytes, i == 0 ? TAKEN : BIG, NULL);
	assert_true(t.server->unsent_bytes > BUDGET);
	WAIT_FOR(&t, clients[0].len > TAKEN);
	WAIT_FOR(&t, clients[4].len > BIG);
	assert_false(clients[0].reset);
	assert_int_equal(http_server_connections(t.server), 3);
	for (unsigned i = 0; i < 5; i++)
		client_close(&clients[i]);
	WAIT_FOR(&t, http_server_connections(t.server) == 0);
	talk_end(&t);
}

/* With the next request already running. */
static void whoever_is_cut_off_is_gone_like_any_other(void **state)
{
	struct client first, deaf[CLIENTS];
	struct talk t;

	(void)state;
	begin(&t);
	t.big_len = 32u * 1024; /* little enough for the next request to begin */
	client_open(&first, &t);
	(void)bufferevent_disable(first.bev, EV_READ);
	client_say(&first, GET_BIG "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
	WAIT_FOR(&t, t.held_count == 1);
	t.big_len = BIG;
	(void)talk_wakeups(&t, 150); /* it is small: only time tells that it is not being taken */
	for (unsigned i = 0; i < BUDGET / BIG + 1; i++)
		open_deaf(&deaf[i], &t);
	WAIT_FOR(&t, t.gone == 1);
	for (unsigned i = 0; i < BUDGET / BIG + 1; i++)
		client_close(&deaf[i]);
	client_close(&first);
	WAIT_FOR(&t, http_server_connections(t.server) == 0);
	assert_int_equal(t.server->unsent_bytes, 0);
	talk_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_that_nobody_takes_do_not_add_up),
		cmocka_unit_test(one_answer_may_be_larger_than_the_budget),
		cmocka_unit_test(an_answer_that_had_no_turn_yet_is_not_slow),
		cmocka_unit_test(whoever_is_cut_off_is_gone_like_any_other),
	};

	return cmocka_run_group_tests_name("http_unsent", tests, NULL, NULL);
}
