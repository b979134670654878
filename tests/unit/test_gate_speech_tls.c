/* TLS on a connection that a name has opened. */
#include "unit.h"

#include "base/check.h"
#include "speech_play.h"

#include <string.h>

static enum network_verdict say_hello(struct hello_play h)
{
	play_clear();
	play_add_hello(h);
	return play_verdict();
}

static void a_hello_for_a_name_that_is_allowed_there_passes(void **state)
{
	(void)state;
	assert_int_equal(say_hello((struct hello_play){ .name = "example.org" }), NETWORK_ALLOWED);
	assert_int_equal(
		say_hello((struct hello_play){ .name = "a.Example.NET" }), NETWORK_ALLOWED);
	assert_int_equal(say_hello((struct hello_play){ .name = "example.org", .record = 7 }),
		NETWORK_ALLOWED);
}

static void a_hello_for_another_name_is_refused_and_says_which(void **state)
{
	(void)state;
	assert_int_equal(say_hello((struct hello_play){ .name = "other.org" }), NETWORK_OTHER_NAME);
	assert_string_equal(play.name, "other.org");
	assert_int_equal(
		say_hello((struct hello_play){ .name = "www.example.org" }), NETWORK_OTHER_NAME);
	assert_int_equal(
		say_hello((struct hello_play){ .name = "example.net" }), NETWORK_OTHER_NAME);
	/* Allowed elsewhere, denied here. */
	assert_int_equal(
		say_hello((struct hello_play){ .name = "example.com" }), NETWORK_OTHER_NAME);
	assert_int_equal(
		say_hello((struct hello_play){ .name = "bad.example.net" }), NETWORK_OTHER_NAME);
	play.rules.ceiling.allow_count = 0;
	play_allow(&play.rules.ceiling, "example.com");
	assert_int_equal(
		say_hello((struct hello_play){ .name = "example.org" }), NETWORK_OTHER_NAME);
}

static void nothing_of_a_hello_goes_on_before_its_verdict(void **state)
{
	(void)state;
	play_clear();
	play_add_hello((struct hello_play){ .name = "other.org" });
	for (size_t cut = 0; cut <= play.len; cut++)
		assert_int_equal(play_passed_in_two(cut), 0);
}

static void a_hello_without_a_name_is_refused(void **state)
{
	(void)state;
	assert_int_equal(say_hello((struct hello_play){ 0 }), NETWORK_NO_NAME);
	assert_string_equal(play.name, "");
	assert_int_equal(say_hello((struct hello_play){ .no_extensions = true }), NETWORK_NO_NAME);
	assert_int_equal(
		say_hello((struct hello_play){ .name = "93.184.216.34" }), NETWORK_NO_NAME);
	assert_int_equal(say_hello((struct hello_play){ .name = "example.org", .two_names = true }),
		NETWORK_NO_NAME);
}

static void an_encrypted_name_is_refused_whatever_the_outer_one_is(void **state)
{
	(void)state;
	assert_int_equal(
		say_hello((struct hello_play){ .name = "example.org", .extension = 0xfe0d }),
		NETWORK_HIDDEN_NAME);
	assert_int_equal(say_hello((struct hello_play){ .name = "other.org", .extension = 0xfe0d }),
		NETWORK_HIDDEN_NAME);
	assert_int_equal(
		say_hello((struct hello_play){ .extension = 0xfe0d }), NETWORK_HIDDEN_NAME);
}

static void behind_a_hello_the_rest_passes(void **state)
{
	(void)state;
	play_clear(); /* TLS 1.3 */
	play_add_hello((struct hello_play){ .name = "example.org" });
	play_add_record(20, 1, 1);
	play_add_record(23, 70, 0x11);
	play_add_record(23, 300, 0x16);
	assert_int_equal(play_verdict(), NETWORK_ALLOWED);
	play_clear(); /* 1.2: a key, and what is encrypted */
	play_add_hello((struct hello_play){ .name = "example.org" });
	play_add_record(22, 70, 16);
	play_add_record(20, 1, 1);
	play_add_record(22, 40, 1);
	assert_int_equal(play_verdict(), NETWORK_ALLOWED);
	play_clear(); /* ...a session that goes on: encrypted at once */
	play_add_hello((struct hello_play){ .name = "example.org" });
	play_add_record(20, 1, 1);
	play_add_record(22, 40, 1);
	play_add_hello((struct hello_play){ .name = "other.org" });
	assert_int_equal(play_verdict(), NETWORK_ALLOWED);
}

/* After a HelloRetryRequest. */
static void a_second_hello_is_judged_like_the_first(void **state)
{
	(void)state;
	for (unsigned record = 0; record < 9; record++) {
		play_clear();
		play_add_hello((struct hello_play){ .name = "example.org" });
		play_add_record(20, 1, 1);
		play_add_hello((struct hello_play){ .name = "example.org", .record = record });
		play_add_record(23, 70, 1);
		assert_int_equal(play_verdict(), NETWORK_ALLOWED);
		play_clear();
		play_add_hello((struct hello_play){ .name = "example.org" });
		play_add_record(20, 1, 1);
		play_add_hello((struct hello_play){ .name = "other.org", .record = record });
		assert_int_equal(play_verdict(), NETWORK_OTHER_NAME);
	}
}

static void data_that_come_early_hide_no_second_hello(void **state)
{
	(void)state;
	play_clear();
	play_add_hello((struct hello_play){ .name = "example.org", .extension = 42 });
	play_add_record(20, 1, 1);
	play_add_record(23, 500, 9);
	play_add_record(23, 500, 9);
	play_add_hello((struct hello_play){ .name = "other.org" });
	assert_int_equal(play_verdict(), NETWORK_OTHER_NAME);
}

static void what_may_stand_in_front_hides_no_hello(void **state)
{
	(void)state;
	for (uint8_t type = 20; type <= 21; type++) {
		play_clear();
		play_add_record(type, 2, 1);
		play_add_record(type, 0, 0);
		play_add_hello((struct hello_play){ .name = "other.org" });
		assert_int_equal(play_verdict(), NETWORK_OTHER_NAME);
	}
	play_clear();
	play_add_record(23, 20, 1);
	assert_int_equal(play_verdict(), NETWORK_NO_NAME);
	play_clear();
	play_add_record(24, 20, 1);
	assert_int_equal(play_verdict(), NETWORK_NO_NAME);
	play_clear();
	play_add_text("\r\n\n");
	play_add_hello((struct hello_play){ .name = "other.org" });
	assert_int_equal(play_verdict(), NETWORK_OTHER_NAME);
}

static void tls_that_is_broken_is_refused(void **state)
{
	static const uint8_t empty[] = { 22, 3, 1, 0, 0 }, other[] = { 22, 3, 1, 0, 4, 2, 0, 0, 0 };

	(void)state;
	play_clear();
	play_add(empty, sizeof(empty));
	assert_int_equal(play_verdict(), NETWORK_NO_NAME);
	play_clear();
	play_add(other, sizeof(other));
	assert_int_equal(play_verdict(), NETWORK_NO_NAME);
	play_clear();
	play_add_hello((struct hello_play){ .name = "example.org" });
	play_add_text("\x16\x02\x01\x01\x01");
	assert_int_equal(play_verdict(), NETWORK_NO_NAME);
	play_clear();
	play_add_hello((struct hello_play){ .name = "example.org" });
	play_add_record(22, 0, 0);
	assert_int_equal(play_verdict(), NETWORK_NO_NAME);
}

static void a_hello_that_never_ends_is_refused(void **state)
{
	size_t n;

	(void)state;
	play_clear();
	play_add_hello(
		(struct hello_play){ .name = "example.org", .padding = 15000, .record = 100 });
	assert_int_equal(play_verdict(), NETWORK_ALLOWED);
	play_add_hello(
		(struct hello_play){ .name = "example.org", .padding = 17000, .record = 100 });
	assert_int_equal(play_verdict(), NETWORK_NO_NAME);
	play_clear();
	play_add_hello((struct hello_play){ .name = "example.org" });
	play.len--;
	assert_int_equal(play_hear(true, &n), NETWORK_NO_NAME);
}

/* SSL 2's form, which says 3.1. */
static void the_oldest_hello_has_no_name(void **state)
{
	static const uint8_t hello[] = { 0x80, 0x2e, 1, 3, 1, 0, 0x15, 0, 0, 0, 0x10 };
	static const uint8_t two[] = { 0x80, 0x2e, 1, 0, 2 };
	static const uint8_t none[][5] = { { 0x80, 0x2e, 2, 3, 1 }, { 0x80, 0x2e, 1, 4, 1 },
		{ 0x80, 0x2e, 1, 0, 1 }, { 0xff, 0xfd, 1, 3, 1 } };

	(void)state;
	play_clear();
	play_add(hello, sizeof(hello));
	assert_int_equal(play_verdict(), NETWORK_NO_NAME);
	play_clear();
	play_add(two, sizeof(two));
	assert_int_equal(play_verdict(), NETWORK_NO_NAME);
	for (unsigned i = 0; i < ARRAY_LEN(none); i++) {
		play_clear();
		play_add(none[i], 5);
		assert_int_equal(play_verdict(), NETWORK_ALLOWED);
	}
}

static void tls_that_postgresql_asks_for_is_tls(void **state)
{
	static const uint8_t ask[] = { 0, 0, 0, 8, 4, 210, 22, 47 },
			     gss[] = { 0, 0, 0, 8, 4, 210, 22, 48 };
	static const uint8_t startup[] = { 0, 0, 0, 9, 0, 3, 0, 0, 0 };

	(void)state;
	play_clear();
	play_add(gss, 8);
	play_add(ask, 8);
	assert_int_equal(play_verdict(), NETWORK_ALLOWED);
	play_add_hello((struct hello_play){ .name = "other.org" });
	assert_int_equal(play_verdict(), NETWORK_OTHER_NAME);
	play_clear();
	play_add(ask, 8);
	play_add_hello((struct hello_play){ .name = "example.org" });
	assert_int_equal(play_verdict(), NETWORK_ALLOWED);
	play_clear(); /* it was told that there is none */
	play_add(ask, 8);
	play_add(startup, 9);
	assert_int_equal(play_verdict(), NETWORK_ALLOWED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_hello_for_a_name_that_is_allowed_there_passes, play_begin),
		cmocka_unit_test_setup(
			a_hello_for_another_name_is_refused_and_says_which, play_begin),
		cmocka_unit_test_setup(nothing_of_a_hello_goes_on_before_its_verdict, play_begin),
		cmocka_unit_test_setup(a_hello_without_a_name_is_refused, play_begin),
		cmocka_unit_test_setup(
			an_encrypted_name_is_refused_whatever_the_outer_one_is, play_begin),
		cmocka_unit_test_setup(behind_a_hello_the_rest_passes, play_begin),
		cmocka_unit_test_setup(a_second_hello_is_judged_like_the_first, play_begin),
		cmocka_unit_test_setup(data_that_come_early_hide_no_second_hello, play_begin),
		cmocka_unit_test_setup(what_may_stand_in_front_hides_no_hello, play_begin),
		cmocka_unit_test_setup(tls_that_is_broken_is_refused, play_begin),
		cmocka_unit_test_setup(a_hello_that_never_ends_is_refused, play_begin),
		cmocka_unit_test_setup(the_oldest_hello_has_no_name, play_begin),
		cmocka_unit_test_setup(tls_that_postgresql_asks_for_is_tls, play_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
