/* A run's resolver: what it takes for a question, what it asks for, and what it says. */
#include "unit.h"

#include "base/check.h"
#include "base/clock.h"
#include "tests/unit/names_play.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static void assert_line(uint32_t i, const char *name, enum network_verdict v)
{
	assert_true(i < play.flows.record.count);
	assert_string_equal(play.flows.record.lines[i].name, name);
	assert_int_equal(play.flows.record.lines[i].verdict, v);
}

static void assert_told(unsigned rcode, const char *addresses)
{
	assert_int_equal(play.told.count, 1);
	assert_int_equal(play.told.id, PLAY_ID);
	assert_int_equal(play.told.flags, 0x8180 | rcode);
	assert_string_equal(play.told.text, addresses);
}

static enum network_verdict judge(const char *text)
{
	struct network_address a = { { [10] = 0xff, [11] = 0xff } };
	const char *name;

	if (inet_pton(AF_INET, text, a.bytes + 12) != 1)
		assert_int_equal(inet_pton(AF_INET6, text, a.bytes), 1);
	return rules_judge(&play.rules, &a, 443, &name);
}

static bool is_open(void)
{
	for (unsigned i = 0; i < NAMES_ASKED_MAX; i++)
		if (play.names.asked[i].used)
			return true;
	return false;
}

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
	assert_false(is_open());
	assert_line(2, "www.example.org", NETWORK_UNANSWERED);
	assert_line(3, "two.example.org", NETWORK_UNANSWERED);
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
	assert_true(is_open());
}

/* ---- Questions ---- */

static void a_question_goes_out_in_words_of_our_own(void **state)
{
	static const uint8_t words[] = "\1\0\0\1\0\0\0\0\0\0\3www\7example\3org\0\0\1\0\1";

	(void)state;
	play_put_head(PLAY_ID, 0x0130, 1, 0); /* AD and CD: stay here */
	play.message[11] = 1;
	play_put_question("wWw.eXample.ORG", PLAY_A);
	play_put("\0\0\51\20\0\0\0\0\0\0\6\0\3\0\2xy", 17); /* EDNS, with an option */
	play_ask_it();
	assert_int_equal(play.told.count, 0);
	assert_true(play_was_asked(0));
	assert_int_equal(play.message_len, 2 + sizeof(words) - 1);
	assert_memory_equal(play.message + 2, words, sizeof(words) - 1);
	assert_false(play_was_asked(0));
	assert_false(play_was_asked(1));
}

/* One that is equal to no other. */
static void ask_nth(unsigned i)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "n%u.example.org", i);
	play_ask(name, PLAY_A);
}

static void each_question_has_a_number_of_its_own(void **state)
{
	unsigned same = 0, before = PLAY_ID;

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		unsigned id;

		ask_nth(i);
		id = play_asked_id(0);
		same += id == before || id == before + 1;
		before = id;
	}
	assert_true(same < 5); /* by chance: once in many thousand */
}

static void assert_no_question(const char *what)
{
	uint64_t refused = play.flows.record.refused;

	play_ask_it();
	if (play.told.count > 0 || play_was_asked(0) || is_open() ||
		play.flows.record.refused != refused + 1)
		fail_msg("%s is taken for a question", what);
	assert_line(0, "", NETWORK_QUESTION);
	assert_int_equal(play.flows.record.count, 1);
}

static void what_is_no_plain_question_is_not_answered(void **state)
{
	static const char *const odd[] = { "", "www.exa mple.org", "www.ex\\ample.org",
		"www.\xc3\xa4.example.org", "-www.example.org", "www-.example.org", "10.0.0.1",
		"www.example.org\n", "www.(.example.org" };
#define QUESTION(id, flags, questions, answers)       \
	play_put_head(id, flags, questions, answers); \
	play_put_question("www.example.org", PLAY_A)

	(void)state;
	QUESTION(1, 0x8100, 1, 0);
	assert_no_question("an answer");
	QUESTION(1, 0x0900, 1, 0);
	assert_no_question("an inverse one");
	QUESTION(1, 0x2900, 1, 0);
	assert_no_question("an update");
	QUESTION(1, 0x0100, 2, 0);
	play_put_question("www.example.org", PLAY_AAAA);
	assert_no_question("two");
	play_put_head(1, 0x0100, 0, 0);
	assert_no_question("none");
	QUESTION(1, 0x0100, 1, 1);
	play_put_address("8.8.8.8");
	assert_no_question("one with an answer");
	QUESTION(1, 0x0100, 1, 0);
	play.message[play.message_len - 1] = 3;
	assert_no_question("one of CHAOS");
	QUESTION(1, 0x0100, 1, 0);
	play_put("x", 1);
	assert_no_question("one with more behind it");
	QUESTION(1, 0x0100, 1, 0);
	for (size_t len = play.message_len; len-- > 0;) {
		play.message_len = len;
		assert_no_question("a part of one");
	}
	play_put_head(1, 0x0100, 1, 0);
	play_put("\xc0\x0c\0\1\0\1", 6); /* a name that is where it is */
	assert_no_question("a loop");
	for (unsigned i = 0; i < ARRAY_LEN(odd); i++) {
		play_put_head(1, 0x0100, 1, 0);
		play_put_question(odd[i], PLAY_A);
		assert_no_question(odd[i]);
	}
	play_put_head(1, 0x0100, 1, 0);
	play_put("\21www.example.org.x\0\0\1\0\1", 23); /* one part, with dots in it */
	assert_no_question("a name with dots in a part");
#undef QUESTION
}

static void a_name_that_no_rule_allows_is_not_there(void **state)
{
	(void)state;
	play_ask("www.example.com", PLAY_A);
	assert_told(3, "");
	assert_false(play_was_asked(0));
	assert_line(0, "www.example.com", NETWORK_NO_RULE);
	play_ask("www.example.com", 16); /* nor has it a text */
	assert_told(3, "");
	assert_int_equal(play.flows.record.lines[0].times, 2);
}

static void of_what_is_no_address_there_is_nothing(void **state)
{
	static const unsigned types[] = { 2, 5, 6, 12, 15, 16, 33, 64, 65, 251, 252, 255 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(types); i++) {
		play_ask("www.example.org", types[i]);
		assert_told(0, "");
		assert_false(play_was_asked(0));
	}
	assert_line(0, "www.example.org", NETWORK_QUESTION);
	assert_int_equal(play.flows.record.lines[0].times, ARRAY_LEN(types));
}

/* ---- Answers ---- */

static void an_answer_is_told_and_remembered(void **state)
{
	(void)state;
	assert_int_equal(judge("8.8.8.8"), NETWORK_NO_RULE);
	play_resolve(
		"www.example.org", PLAY_A, (const char *const[]){ "8.8.8.8", "8.8.4.4", NULL });
	assert_told(0, "8.8.8.8 8.8.4.4 ");
	assert_int_equal(judge("8.8.8.8"), NETWORK_ALLOWED);
	assert_int_equal(judge("8.8.4.4"), NETWORK_ALLOWED);
	assert_false(is_open());
	assert_line(0, "www.example.org", NETWORK_ALLOWED);
	play_resolve("six.example.org", PLAY_AAAA, (const char *const[]){ "2606:4700::1", NULL });
	assert_told(0, "2606:4700::1 ");
	assert_int_equal(judge("2606:4700::1"), NETWORK_ALLOWED);
}

static void an_address_that_is_not_public_is_left_out_of_an_answer(void **state)
{
	(void)state;
	play_resolve("www.example.org", PLAY_A,
		(const char *const[]){
			"10.0.0.1", "8.8.8.8", "127.0.0.1", "169.254.169.254", NULL });
	assert_told(0, "8.8.8.8 ");
	play_resolve("www.example.org", PLAY_A, (const char *const[]){ "192.168.1.1", NULL });
	assert_told(0, "");
	play_resolve("www.example.org", PLAY_AAAA,
		(const char *const[]){
			"::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "fd00::1", NULL });
	assert_told(0, "");
	assert_int_equal(play.rules.pin_count, 1);
}

static void only_addresses_of_the_kind_asked_for_come_in(void **state)
{
	static const uint8_t alias[] = "\3cdn\7example\3com";
	unsigned id;

	(void)state;
	play_ask("www.example.org", PLAY_A);
	id = play_asked_id(0);
	play_put_head(id, 0x8180, 1, 6);
	play_put_question("www.example.org", PLAY_A);
	play_put_record(5, 1, alias, sizeof(alias));
	play_put_record(PLAY_A, 3, "\x08\x08\x08\x01", 4);
	play_put_record(PLAY_A, 1, "\x08\x08\x08\x02\x08", 5);
	play_put_address("2606:4700::1");
	play_put_record(16, 1, "\3abc", 4);
	play_put_address("8.8.8.3");
	play_say_it(0);
	assert_told(0, "8.8.8.3 ");
	assert_int_equal(play.rules.pin_count, 1);
}

static void what_answers_no_question_is_ignored(void **state)
{
	static const struct {
		const char *what, *name;
		unsigned wrong_id, flags, questions, type;
	} no[] = {
		{ "another number", "www.example.org", 1, 0x8180, 1, PLAY_A },
		{ "another name", "www.example.com", 0, 0x8180, 1, PLAY_A },
		{ "a longer name", "a.www.example.org", 0, 0x8180, 1, PLAY_A },
		{ "another kind", "www.example.org", 0, 0x8180, 1, PLAY_AAAA },
		{ "a question", "www.example.org", 0, 0x0180, 1, PLAY_A },
		{ "two questions", "www.example.org", 0, 0x8180, 2, PLAY_A },
	};
	unsigned id;

	(void)state;
	play_ask("www.example.org", PLAY_A);
	id = play_asked_id(0);
	for (unsigned i = 0; i < ARRAY_LEN(no); i++) {
		play_put_head(id ^ no[i].wrong_id, no[i].flags, no[i].questions, 1);
		for (unsigned k = 0; k < no[i].questions; k++)
			play_put_question(no[i].name, no[i].type);
		play_put_address(no[i].type == PLAY_A ? "8.8.8.8" : "2606:4700::1");
		play_say_it(0);
		if (play.told.count > 0 || !is_open() || play.rules.pin_count > 0)
			fail_msg("%s is taken", no[i].what);
	}
	play.message_len = 5;
	play_say_it(0);
	assert_true(is_open());
	play_put_head(id, 0x8180, 1, 1);
	play_put_question("WWW.Example.org", PLAY_A); /* its case is of no matter */
	play_put_address("8.8.8.8");
	play_say_it(0);
	assert_told(0, "8.8.8.8 ");
	play_say_it(0); /* once is enough */
	assert_int_equal(play.told.count, 0);
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
		assert_told(i % 2 ? 0 : 3, i % 2 ? "8.8.8.8 " : "");
	}
	play_ask("www.example.org", PLAY_A);
	say(0, play_asked_id(0), 0x8182, 0);
	say(1, play_asked_id(1), 0x8185, 1); /* nor can the last one */
	assert_told(2, "");
	assert_false(is_open());
	assert_int_equal(play.flows.record.refused, 0); /* they have answered */
}

static void a_name_that_is_not_there_is_not_asked_for_elsewhere(void **state)
{
	(void)state;
	play_ask("www.example.org", PLAY_A);
	say(0, play_asked_id(0), 0x8183, 1);
	assert_told(3, "");
	assert_false(play_was_asked(1));
	assert_int_equal(play.rules.pin_count, 0);
}

/* ---- What was cut off ---- */

static void an_answer_that_was_cut_off_is_taken_for_its_addresses(void **state)
{
	(void)state;
	play_ask("www.example.org", PLAY_A);
	say(0, play_asked_id(0), 0x8380, 1);
	assert_told(0, "8.8.8.8 ");
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
	assert_false(is_open());
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
		assert_told(0, "8.8.8.8 ");
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

/* RFC 1035, 4.2.1: more than 512 bytes were not asked for. */
static void an_answer_has_no_more_than_512_bytes(void **state)
{
	char name[NETWORK_NAME_MAX + 1];

	(void)state;
	memset(name, 'a', sizeof(name));
	for (unsigned i = 60; i < NETWORK_NAME_MAX - 12; i += 61)
		name[i] = '.';
	(void)snprintf(name + NETWORK_NAME_MAX - 12, 13, ".example.org");
	for (unsigned i = 0; i < 2; i++) {
		static const char *const sixes[] = { "2606:4700::1", "2606:4700::2", "2606:4700::3",
			"2606:4700::4", "2606:4700::5", "2606:4700::6", "2606:4700::7",
			"2606:4700::8", "2606:4700::9", "2606:4700::a", "2606:4700::b",
			"2606:4700::c", "2606:4700::d", "2606:4700::e", "2606:4700::f",
			"2606:4700::10", "2606:4700::11", NULL };

		play_resolve(i ? name : "a.example.org", PLAY_AAAA, sixes);
		assert_int_equal(play.told.answers, i ? 8 : 16);
		assert_true(play.told.len <= 512);
	}
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
	assert_told(0, "8.8.8.8 ");
	assert_int_equal(names_tick(&play.names, PLAY_BEGAN_NS + 9 * NS_PER_S), UINT64_MAX);
}

static void what_nobody_answers_is_a_failure(void **state)
{
	(void)state;
	play_ask("www.example.org", PLAY_A);
	(void)names_tick(&play.names, PLAY_BEGAN_NS + 2 * NS_PER_S);
	assert_int_equal(play.told.count, 0);
	assert_int_equal(names_tick(&play.names, PLAY_BEGAN_NS + 4 * NS_PER_S), UINT64_MAX);
	assert_told(2, "");
	assert_false(is_open());
	assert_line(0, "www.example.org", NETWORK_ALLOWED);
	assert_line(1, "www.example.org", NETWORK_UNANSWERED);
}

static uint32_t noted_lines;
static bool noted_ahead;

static void note(void *ctx)
{
	(void)ctx;
	noted_lines = play.flows.record.count;
	noted_ahead = !play_was_asked(0);
}

/* Who asks and ends at once is on record all the same. */
static void a_question_is_told_of_before_it_goes_out(void **state)
{
	(void)state;
	noted_lines = 0;
	play.names.note = note;
	play_ask("www.example.org", PLAY_A);
	assert_int_equal(noted_lines, 1);
	assert_true(noted_ahead);
	assert_line(0, "www.example.org", NETWORK_ALLOWED);
	assert_true(play_was_asked(0));
}

static void without_a_resolver_there_is_no_answer(void **state)
{
	(void)state;
	play_close();
	play_open(0);
	play_ask("www.example.org", PLAY_A);
	assert_told(2, "");
	assert_line(0, "www.example.org", NETWORK_UNANSWERED);
}

/* How many of `n` go out. */
static unsigned ask_many(unsigned n)
{
	static unsigned nth;
	unsigned out = 0;

	for (unsigned i = 0; i < n; i++) {
		ask_nth(nth++);
		out += play_was_asked(0);
	}
	return out;
}

static void questions_go_out_at_fifty_a_second(void **state)
{
	(void)state;
	assert_int_equal(ask_many(52), NAMES_PER_S);
	assert_told(2, "");
	assert_int_equal(play.flows.record.refused, 2);
	assert_int_equal(play.flows.record.lines[NAMES_PER_S].verdict, NETWORK_QUESTIONS);
	play.now_ns += NS_PER_S / NAMES_PER_S - 1;
	assert_int_equal(ask_many(1), 0);
	play.now_ns += 1;
	assert_int_equal(ask_many(2), 1);
	play.now_ns += 100 * NS_PER_S; /* no more are saved up than a second's */
	(void)names_tick(&play.names, play.now_ns);
	play.now_ns += 2 * NS_PER_S;
	(void)names_tick(&play.names, play.now_ns);
	assert_false(is_open());
	assert_int_equal(ask_many(60), NAMES_PER_S);
}

static void so_many_are_on_their_way_and_no_more(void **state)
{
	(void)state;
	assert_int_equal(ask_many(NAMES_PER_S), NAMES_PER_S);
	play.now_ns += NS_PER_S;
	assert_int_equal(ask_many(20), NAMES_ASKED_MAX - NAMES_PER_S);
	assert_told(2, "");
	assert_int_equal(play.flows.record.refused, 20 - (NAMES_ASKED_MAX - NAMES_PER_S));
	assert_int_equal(play.flows.record.lines[NAMES_ASKED_MAX].verdict, NETWORK_QUESTIONS);
}

#define NAMES_TEST(test) cmocka_unit_test_setup_teardown(test, play_begin, play_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resolvers_are_read_from_a_resolv_conf),
		NAMES_TEST(sockets_are_connected_to_port_53),
		NAMES_TEST(a_resolver_that_cannot_be_had_is_passed_over),
		NAMES_TEST(each_question_has_a_socket_of_its_own),
		NAMES_TEST(equal_questions_on_their_way_are_one),
		NAMES_TEST(a_question_goes_out_in_words_of_our_own),
		NAMES_TEST(each_question_has_a_number_of_its_own),
		NAMES_TEST(what_is_no_plain_question_is_not_answered),
		NAMES_TEST(a_name_that_no_rule_allows_is_not_there),
		NAMES_TEST(of_what_is_no_address_there_is_nothing),
		NAMES_TEST(an_answer_is_told_and_remembered),
		NAMES_TEST(an_address_that_is_not_public_is_left_out_of_an_answer),
		NAMES_TEST(only_addresses_of_the_kind_asked_for_come_in),
		NAMES_TEST(what_answers_no_question_is_ignored),
		NAMES_TEST(who_cannot_say_is_not_the_last_that_is_asked),
		NAMES_TEST(a_name_that_is_not_there_is_not_asked_for_elsewhere),
		NAMES_TEST(an_answer_has_no_more_than_512_bytes),
		NAMES_TEST(an_answer_that_was_cut_off_is_taken_for_its_addresses),
		NAMES_TEST(one_without_addresses_is_asked_for_by_tcp),
		NAMES_TEST(who_has_no_answer_by_tcp_is_not_the_last_that_is_asked),
		NAMES_TEST(tcp_has_two_seconds_too),
		NAMES_TEST(the_next_resolver_is_asked_after_two_seconds),
		NAMES_TEST(what_nobody_answers_is_a_failure),
		NAMES_TEST(a_question_is_told_of_before_it_goes_out),
		NAMES_TEST(without_a_resolver_there_is_no_answer),
		NAMES_TEST(questions_go_out_at_fifty_a_second),
		NAMES_TEST(so_many_are_on_their_way_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
