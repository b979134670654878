#include "unit.h"

#include "api/output.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What must be left of `len` bytes that no character boundary concerns. */
static void check(const char *all, size_t len, size_t cap, size_t chunk)
{
	struct output_capture o;
	struct output_view v;
	size_t head = cap - cap / 2, tail = cap / 2;

	output_init(&o, cap);
	for (size_t at = 0; at < len; at += chunk)
		assert_int_equal(output_feed(&o, all + at, len - at < chunk ? len - at : chunk), 0);
	v = output_view(&o);
	assert_int_equal(v.total, len);
	assert_int_equal(v.head_len + v.tail_len + v.dropped, len);
	if (len <= cap) {
		head = len;
		tail = 0;
	}
	assert_int_equal(v.head_len, head);
	assert_int_equal(v.tail_len, tail);
	assert_memory_equal(v.head, all, head);
	assert_memory_equal(v.tail, all + len - tail, tail);
	assert_true(o.room <= cap);
	output_free(&o);
}

static void head_and_tail_are_kept_however_the_output_arrives(void **state)
{
	char all[200];

	(void)state;
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)('!' + i % 90);
	for (size_t cap = 1; cap <= 17; cap++) {
		for (size_t len = 0; len <= 60; len++) {
			for (size_t chunk = 1; chunk <= 40; chunk++)
				check(all, len, cap, chunk);
		}
	}
}

static void a_view_does_not_end_the_feeding(void **state)
{
	struct output_capture o;
	struct output_view v;

	(void)state;
	output_init(&o, 8);
	assert_int_equal(output_feed(&o, "abcdefghij", 10), 0);
	v = output_view(&o);
	assert_memory_equal(v.tail, "ghij", 4);
	assert_int_equal(output_feed(&o, "kl", 2), 0);
	v = output_view(&o);
	assert_memory_equal(v.head, "abcd", 4);
	assert_memory_equal(v.tail, "ijkl", 4);
	assert_int_equal(v.dropped, 4);
	output_free(&o);
}

static void both_sides_are_cut_between_characters_and_the_count_stays_exact(void **state)
{
	static const char unit[] = "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"; /* 2 + 3 + 4 bytes */

	(void)state;
	for (size_t cap = 8; cap < 60; cap++) {
		struct output_capture o;
		struct output_view v;

		output_init(&o, cap);
		for (unsigned i = 0; i < 20; i++)
			assert_int_equal(output_feed(&o, unit, 9), 0);
		v = output_view(&o);
		assert_true(v.utf8);
		assert_int_equal(v.head_len + v.tail_len + v.dropped, 180);
		assert_true(v.dropped <= 180 - cap + 6);
		output_free(&o);
	}
}

static void output_that_is_not_utf8_is_called_binary_and_kept_exactly(void **state)
{
	static const char *const rows[] = { "ok\xff", "\xc3", "\xed\xa0\x80" };
	struct output_capture o;
	struct output_view v;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		output_init(&o, 64);
		assert_int_equal(output_feed(&o, rows[i], strlen(rows[i])), 0);
		v = output_view(&o);
		assert_false(v.utf8);
		assert_int_equal(v.head_len, strlen(rows[i]));
		assert_memory_equal(v.head, rows[i], v.head_len);
		output_free(&o);
	}
}

static void memory_stays_within_the_cap_and_small_output_takes_little(void **state)
{
	struct output_capture o;
	char chunk[65536];

	(void)state;
	memset(chunk, 'x', sizeof(chunk));
	output_init(&o, 1 << 20);
	assert_int_equal(o.room, 0);
	assert_int_equal(output_feed(&o, chunk, 100), 0);
	assert_true(o.room <= 4096);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(output_feed(&o, chunk, sizeof(chunk)), 0);
	assert_int_equal(o.room, 1 << 20);
	assert_int_equal(output_view(&o).dropped, 100 + 65536000 - (1 << 20));
	output_free(&o);
}

static void no_output_is_an_empty_text(void **state)
{
	struct output_capture o;
	struct output_view v;

	(void)state;
	output_init(&o, 8);
	v = output_view(&o);
	assert_int_equal(v.total + v.head_len + v.tail_len + v.dropped, 0);
	assert_true(v.utf8);
	output_free(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(head_and_tail_are_kept_however_the_output_arrives),
		cmocka_unit_test(a_view_does_not_end_the_feeding),
		cmocka_unit_test(both_sides_are_cut_between_characters_and_the_count_stays_exact),
		cmocka_unit_test(output_that_is_not_utf8_is_called_binary_and_kept_exactly),
		cmocka_unit_test(memory_stays_within_the_cap_and_small_output_takes_little),
		cmocka_unit_test(no_output_is_an_empty_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
