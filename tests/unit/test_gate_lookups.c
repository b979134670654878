/* How the machine's resolvers are asked for names, and what they may say. */
#include "unit.h"

#include "base/check.h"
#include "base/clock.h"
#include "tests/unit/names_play.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* ---- Resolvers ---- */

static void resolvers_are_read_from_a_resolv_conf(void **state)
{
	static const struct {
		const char *text, *expected;
	} files[] = {
		{ "", "" },
		{ "nameserver 192.0.2.1", "192.0.2.1 " },
		{ "# nameserver 192.0.2.1\nnameserver\t2001:db8::1\n", "2001:db8::1 " },
		{ "search example.org\nnameserver  192.0.2.1 # this\nnameserver 192.0.2.2;\r\n",
			"192.0.2.1 192.0.2.2 " },
		{ "nameserver 192.0.2.1\r\nnameserver 192.0.2.1\n", "192.0.2.1 192.0.2.1 " },
		{ "nameserver fe80::1%eth0\nnameserver example.org\nnameserver 192.0.2.3\n",
			"192.0.2.3 " },
		{ "nameserver\nnameserver \nnameserver", "" },
		{ " nameserver 192.0.2.1\nnameservers 192.0.2.1\nnameserver192.0.2.1\n", "" },
		{ "nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\n"
		  "nameserver 192.0.2.4\n",
			"192.0.2.1 192.0.2.2 192.0.2.3 " },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(files); i++) {
		struct network_address servers[LOOKUPS_SERVERS_MAX];
		size_t len = strlen(files[i].text);
		char *block = malloc(len ? len : 1), got[256] = "", text[INET6_ADDRSTRLEN];
		unsigned n;

		assert_non_null(block);
		memcpy(block, files[i].text, len);
		n = lookups_read_servers(block, len, servers);
		free(block);
		for (unsigned k = 0; k < n; k++) {
			bool four = network_is_ipv4(&servers[k]);

			assert_non_null(inet_ntop(four ? AF_INET : AF_INET6,
				servers[k].bytes + (four ? 12 : 0), text, sizeof(text)));
			play_append(got, sizeof(got), text);
		}
		assert_string_equal(got, files[i].expected);
	}
}

static const void *address_at(unsigned socket)
{
	return &play.sockets[socket].address;
}

static void sockets_are_connected_to_port_53(void **state)
{
	const struct sockaddr_in *four = address_at(0);
	const struct sockaddr_in6 *six = address_at(1);
	char text[INET6_ADDRSTRLEN];

	(void)state;
	play_ask("www.example.org", PLAY_A);
	(void)names_tick(&play.names, PLAY_BEGAN_NS + 2 * NS_PER_S);
	assert_int_equal(play.connects, 2);
	assert_int_equal(four->sin_family, AF_INET);
	assert_int_equal(ntohs(four->sin_port), 53);
	assert_string_equal(inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text)), "192.0.2.53");
	assert_int_equal(six->sin6_family, AF_INET6);
	assert_int_equal(ntohs(six->sin6_port), 53);
	assert_string_equal(inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text)), "2001::53");
}

/* Nobody has the socket's other end any more. */
static bool is_closed(unsigned socket)
{
	return send(play.sockets[socket].peer, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0;
}

static void a_resolver_that_cannot_be_had_is_passed_over(void **state)
{
	(void)state;
	play.bad_connect = 1;
	play_ask("www.example.org", PLAY_A);
	assert_false(play_was_asked(0));
	assert_true(is_closed(0));
	assert_true(play_was_asked(1));
	play.bad_connect = 4; /* the last one: the failure is told at once */
	play_ask("two.example.org", PLAY_A);
	assert_true(play_was_asked(0));
	assert_int_equal(play.told.count, 0);
	(void)names_tick(&play.names, PLAY_BEGAN_NS + 2 * NS_PER_S);
	assert_int_equal(play.told.count, 2);
	assert_false(play_is_open());
	play_assert_line(2, "www.example.org", NETWORK_UNANSWERED);
	play_assert_line(3, "two.example.org", NETWORK_UNANSWERED);
}

/* Whoever wants to answer in a resolver's place has to guess the port, too. */
static void each_question_has_a_socket_of_its_own(void **state)
{
	(void)state;
	play_ask("one.example.org", PLAY_A);
	play_ask("two.example.org", PLAY_A);
	assert_int_equal(play.socket_count, 2);
	assert_false(is_closed(0) || is_closed(1));
	play_turn(); /* the bytes that have said so */
	(void)names_tick(&play.names, PLAY_BEGAN_NS + 2 * NS_PER_S);
	assert_int_equal(play.socket_count, 4);
	assert_true(is_closed(0) && is_closed(1));
	(void)names_tick(&play.names, PLAY_BEGAN_NS + 4 * NS_PER_S);
	assert_true(is_closed(2) && is_closed(3));
}

static void equal_questions_on_their_way_are_one(void **state)
{
	unsigned id;

	(void)state;
	play_ask("www.example.org", PLAY_A);
	id = play_asked_id(0);
	play_ask("WWW.example.org", PLAY_A);
	play_ask("www.example.org", PLAY_A);
	assert_false(play_was_asked(0));
	assert_int_equal(play.socket_count, 1);
	assert_int_equal(play.flows.record.lines[0].times, 3);
	play_ask("www.example.org", PLAY_AAAA); /* is another one */
	assert_int_equal(play.socket_count, 2);
	play.asked_at[0] = 0;
	play_put_head(id, 0x8180, 1, 1);
	play_put_question("www.example.org", PLAY_A);
	play_put_address("8.8.8.8");
	play_say_it(0);
	assert_int_equal(play.told.count, 3);
	assert_string_equal(play.told.text, "8.8.8.8 ");
	assert_true(play_is_open());
}

/* The resolver that was asked says `flags` and `answers` addresses of 8.8.8.8. */
static void say(unsigned server, unsigned id, unsigned flags, unsigned answers)
{
	play_put_head(id, flags, 1, answers);
	play_put_question("www.example.org", PLAY_A);
	for (unsigned i = 0; i < answers; i++)
		play_put_address("8.8.8.8");
	play_say_it(server);
}

static void who_cannot_say_is_not_the_last_that_is_asked(void **state)
{
	static const unsigned said[] = { 1, 2, 4, 5, 15 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(said); i++) {
		play_ask("www.example.org", PLAY_A);
		say(0, play_asked_id(0), 0x8180 | said[i], 1);
		assert_int_equal(play.told.count, 0);
		say(1, play_asked_id(1), i % 2 ? 0x8180 : 0x8183, i % 2);
		play_assert_told(i % 2 ? 0 : 3, i % 2 ? "8.8.8.8 " : "");
	}
	play_ask("www.example.org", PLAY_A);
	say(0, play_asked_id(0), 0x8182, 0);
	say(1, play_asked_id(1), 0x8185, 1); /* nor can the last one */
	play_assert_told(2, "");
	assert_false(play_is_open());
	assert_int_equal(play.flows.record.refused, 0); /* they have answered */
}

static void a_name_that_is_not_there_is_not_asked_for_elsewhere(void **state)
{
	(void)state;
	play_ask("www.example.org", PLAY_A);
	say(0, play_asked_id(0), 0x8183, 1);
	play_assert_told(3, "");
	assert_false(play_was_asked(1));
	assert_int_equal(play.rules.pin_count, 0);
}

/* ---- What was cut off ---- */

static void an_answer_that_was_cut_off_is_taken_for_its_addresses(void **state)
{
	(void)state;
	play_ask("www.example.org", PLAY_A);
	say(0, play_asked_id(0), 0x8380, 1);
	play_assert_told(0, "8.8.8.8 ");
	assert_int_equal(play.socket_count, 1);
}

/* Asked for again by TCP; returns its number. */
static unsigned cut_off(void)
{
	play_ask("www.example.org", PLAY_A);
	say(0, play_asked_id(0), 0x8380, 0);
	assert_int_equal(play.told.count, 0);
	play_turn();
	assert_true(play_was_asked_by(0, SOCK_STREAM));
	assert_int_equal(play.message[0] * 256u + play.message[1], play.message_len - 2);
	return play.message[2] * 256u + play.message[3];
}

static void one_without_addresses_is_asked_for_by_tcp(void **state)
{
	unsigned id, len;

	(void)state;
	id = cut_off();
	assert_int_equal(play.sockets[1].type, SOCK_STREAM);
	assert_memory_equal(play.message + 4, "\1\0\0\1\0\0\0\0\0\0\3www", 14);
	play_put_head(id, 0x8180, 1, 20);
	play_put_question("www.example.org", PLAY_A);
	for (unsigned i = 0; i < 20; i++)
		play_put_address("8.8.4.4");
	play_frame_it();
	len = (unsigned)play.message_len;
	for (unsigned i = 0; i < len; i++) { /* however it comes */
		assert_int_equal(play.told.count, 0);
		play.message[0] = play.message[i];
		play.message_len = 1;
		if (i == 0)
			play.message[0] = (uint8_t)((len - 2) >> 8);
		play_say_it(0);
	}
	assert_int_equal(play.told.count, 1);
	assert_int_equal(play.told.answers, 16);
	assert_false(play_is_open());
	assert_true(is_closed(1));
}

static void who_has_no_answer_by_tcp_is_not_the_last_that_is_asked(void **state)
{
	static const struct {
		const char *what;
		uint8_t bytes[8];
		size_t len;
	} no[] = {
		{ "more than there is room for", { 0xff, 0xff }, 2 },
		{ "nothing", { 0, 0 }, 2 },
		{ "no message", { 0, 3, 1, 2, 3 }, 5 },
		{ "an end", { 0 }, 0 },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(no); i++) {
		(void)cut_off();
		memcpy(play.message, no[i].bytes, no[i].len);
		play.message_len = no[i].len;
		if (no[i].len == 0)
			(void)shutdown(play.sockets[play.asked_at[0]].peer, SHUT_WR);
		play_say_it(0);
		if (!play_was_asked(1))
			fail_msg("%s is an answer", no[i].what);
		say(1, play.message[0] * 256u + play.message[1], 0x8180, 1);
		play_assert_told(0, "8.8.8.8 ");
	}
}

static void tcp_has_two_seconds_too(void **state)
{
	(void)state;
	(void)cut_off();
	play.now_ns = PLAY_BEGAN_NS + 2 * NS_PER_S;
	assert_int_equal(names_tick(&play.names, play.now_ns), PLAY_BEGAN_NS + 4 * NS_PER_S);
	assert_true(play_was_asked(1));
	assert_true(is_closed(1));
}

/* ---- Time ---- */

static void the_next_resolver_is_asked_after_two_seconds(void **state)
{
	unsigned first, second;

	(void)state;
	assert_int_equal(names_tick(&play.names, play.now_ns), UINT64_MAX);
	play_ask("www.example.org", PLAY_A);
	first = play_asked_id(0);
	play.now_ns = PLAY_BEGAN_NS + 2 * NS_PER_S - 1;
	assert_int_equal(names_tick(&play.names, play.now_ns), PLAY_BEGAN_NS + 2 * NS_PER_S);
	assert_false(play_was_asked(1));
	play.now_ns = PLAY_BEGAN_NS + 2 * NS_PER_S;
	assert_int_equal(names_tick(&play.names, play.now_ns), PLAY_BEGAN_NS + 4 * NS_PER_S);
	second = play_asked_id(1);
	assert_int_equal(play.told.count, 0);
	play_put_head(first, 0x8180, 1, 1); /* too late */
	play_put_question("www.example.org", PLAY_A);
	play_put_address("8.8.4.4");
	play_say_it(0);
	assert_int_equal(play.told.count, 0);
	play_put_head(second, 0x8180, 1, 1);
	play_put_question("www.example.org", PLAY_A);
	play_put_address("8.8.8.8");
	play_say_it(1);
	play_assert_told(0, "8.8.8.8 ");
	assert_int_equal(names_tick(&play.names, PLAY_BEGAN_NS + 9 * NS_PER_S), UINT64_MAX);
}

static void what_nobody_answers_is_a_failure(void **state)
{
	(void)state;
	play_ask("www.example.org", PLAY_A);
	(void)names_tick(&play.names, PLAY_BEGAN_NS + 2 * NS_PER_S);
	assert_int_equal(play.told.count, 0);
	assert_int_equal(names_tick(&play.names, PLAY_BEGAN_NS + 4 * NS_PER_S), UINT64_MAX);
	play_assert_told(2, "");
	assert_false(play_is_open());
	play_assert_line(0, "www.example.org", NETWORK_ALLOWED);
	play_assert_line(1, "www.example.org", NETWORK_UNANSWERED);
}

#define LOOKUPS_TEST(test) cmocka_unit_test_setup_teardown(test, play_begin, play_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resolvers_are_read_from_a_resolv_conf),
		LOOKUPS_TEST(sockets_are_connected_to_port_53),
		LOOKUPS_TEST(a_resolver_that_cannot_be_had_is_passed_over),
		LOOKUPS_TEST(each_question_has_a_socket_of_its_own),
		LOOKUPS_TEST(equal_questions_on_their_way_are_one),
		LOOKUPS_TEST(who_cannot_say_is_not_the_last_that_is_asked),
		LOOKUPS_TEST(a_name_that_is_not_there_is_not_asked_for_elsewhere),
		LOOKUPS_TEST(an_answer_that_was_cut_off_is_taken_for_its_addresses),
		LOOKUPS_TEST(one_without_addresses_is_asked_for_by_tcp),
		LOOKUPS_TEST(who_has_no_answer_by_tcp_is_not_the_last_that_is_asked),
		LOOKUPS_TEST(tcp_has_two_seconds_too),
		LOOKUPS_TEST(the_next_resolver_is_asked_after_two_seconds),
		LOOKUPS_TEST(what_nobody_answers_is_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
