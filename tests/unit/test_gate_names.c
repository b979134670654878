/* A run's resolver: what it takes for a question, what it asks for, and what it says. */
#include "unit.h"

#include "base/check.h"
#include "base/clock.h"
#include "tests/unit/names_play.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static enum network_verdict judge(const char *text)
{
	struct network_address a = { { [10] = 0xff, [11] = 0xff } };
	const char *name;

	if (inet_pton(AF_INET, text, a.bytes + 12) != 1)
		assert_int_equal(inet_pton(AF_INET6, text, a.bytes), 1);
	return rules_judge(&play.rules, &a, 443, &name);
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
	if (play.told.count > 0 || play_was_asked(0) || play_is_open() ||
		play.flows.record.refused != refused + 1)
		fail_msg("%s is taken for a question", what);
	play_assert_line(0, "", NETWORK_QUESTION);
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
	play_assert_told(3, "");
	assert_false(play_was_asked(0));
	play_assert_line(0, "www.example.com", NETWORK_NO_RULE);
	play_ask("www.example.com", 16); /* nor has it a text */
	play_assert_told(3, "");
	assert_int_equal(play.flows.record.lines[0].times, 2);
}

static void of_what_is_no_address_there_is_nothing(void **state)
{
	static const unsigned types[] = { 2, 5, 6, 12, 15, 16, 33, 64, 65, 251, 252, 255 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(types); i++) {
		play_ask("www.example.org", types[i]);
		play_assert_told(0, "");
		assert_false(play_was_asked(0));
	}
	play_assert_line(0, "www.example.org", NETWORK_QUESTION);
	assert_int_equal(play.flows.record.lines[0].times, ARRAY_LEN(types));
}

/* ---- Answers ---- */

static void an_answer_is_told_and_remembered(void **state)
{
	(void)state;
	assert_int_equal(judge("8.8.8.8"), NETWORK_NO_RULE);
	play_resolve(
		"www.example.org", PLAY_A, (const char *const[]){ "8.8.8.8", "8.8.4.4", NULL });
	play_assert_told(0, "8.8.8.8 8.8.4.4 ");
	assert_int_equal(judge("8.8.8.8"), NETWORK_ALLOWED);
	assert_int_equal(judge("8.8.4.4"), NETWORK_ALLOWED);
	assert_false(play_is_open());
	play_assert_line(0, "www.example.org", NETWORK_ALLOWED);
	play_resolve("six.example.org", PLAY_AAAA, (const char *const[]){ "2606:4700::1", NULL });
	play_assert_told(0, "2606:4700::1 ");
	assert_int_equal(judge("2606:4700::1"), NETWORK_ALLOWED);
}

static void an_address_that_is_not_public_is_left_out_of_an_answer(void **state)
{
	(void)state;
	play_resolve("www.example.org", PLAY_A,
		(const char *const[]){
			"10.0.0.1", "8.8.8.8", "127.0.0.1", "169.254.169.254", NULL });
	play_assert_told(0, "8.8.8.8 ");
	play_resolve("www.example.org", PLAY_A, (const char *const[]){ "192.168.1.1", NULL });
	play_assert_told(0, "");
	play_resolve("www.example.org", PLAY_AAAA,
		(const char *const[]){
			"::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "fd00::1", NULL });
	play_assert_told(0, "");
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
	play_assert_told(0, "8.8.8.3 ");
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
		if (play.told.count > 0 || !play_is_open() || play.rules.pin_count > 0)
			fail_msg("%s is taken", no[i].what);
	}
	play.message_len = 5;
	play_say_it(0);
	assert_true(play_is_open());
	play_put_head(id, 0x8180, 1, 1);
	play_put_question("WWW.Example.org", PLAY_A); /* its case is of no matter */
	play_put_address("8.8.8.8");
	play_say_it(0);
	play_assert_told(0, "8.8.8.8 ");
	play_say_it(0); /* once is enough */
	assert_int_equal(play.told.count, 0);
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

/* ---- What goes out ---- */

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
	play_assert_line(0, "www.example.org", NETWORK_ALLOWED);
	assert_true(play_was_asked(0));
}

static void without_a_resolver_there_is_no_answer(void **state)
{
	(void)state;
	play_close();
	play_open(0);
	play_ask("www.example.org", PLAY_A);
	play_assert_told(2, "");
	play_assert_line(0, "www.example.org", NETWORK_UNANSWERED);
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
	play_assert_told(2, "");
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
	assert_false(play_is_open());
	assert_int_equal(ask_many(60), NAMES_PER_S);
}

static void so_many_are_on_their_way_and_no_more(void **state)
{
	(void)state;
	assert_int_equal(ask_many(NAMES_PER_S), NAMES_PER_S);
	play.now_ns += NS_PER_S;
	assert_int_equal(ask_many(20), NAMES_ASKED_MAX - NAMES_PER_S);
	play_assert_told(2, "");
	assert_int_equal(play.flows.record.refused, 20 - (NAMES_ASKED_MAX - NAMES_PER_S));
	assert_int_equal(play.flows.record.lines[NAMES_ASKED_MAX].verdict, NETWORK_QUESTIONS);
}

#define NAMES_TEST(test) cmocka_unit_test_setup_teardown(test, play_begin, play_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		NAMES_TEST(a_question_goes_out_in_words_of_our_own),
		NAMES_TEST(each_question_has_a_number_of_its_own),
		NAMES_TEST(what_is_no_plain_question_is_not_answered),
		NAMES_TEST(a_name_that_no_rule_allows_is_not_there),
		NAMES_TEST(of_what_is_no_address_there_is_nothing),
		NAMES_TEST(an_answer_is_told_and_remembered),
		NAMES_TEST(an_address_that_is_not_public_is_left_out_of_an_answer),
		NAMES_TEST(only_addresses_of_the_kind_asked_for_come_in),
		NAMES_TEST(what_answers_no_question_is_ignored),
		NAMES_TEST(an_answer_has_no_more_than_512_bytes),
		NAMES_TEST(a_question_is_told_of_before_it_goes_out),
		NAMES_TEST(without_a_resolver_there_is_no_answer),
		NAMES_TEST(questions_go_out_at_fifty_a_second),
		NAMES_TEST(so_many_are_on_their_way_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
