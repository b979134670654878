#include "unit.h"

#include "api/text.h"
#include "api/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define R "\xef\xbf\xbd" /* U+FFFD */

static char *written(const char *bytes, size_t len)
{
	struct writer w = { 0 };
	char *json;

	writer_text_begin(&w, NULL);
	writer_text(&w, bytes, len);
	writer_text_end(&w);
	json = writer_take(&w, NULL);
	assert_non_null(json);
	return json;
}

/* Every pair of bytes, and so every kind of rest. */
static void what_a_text_will_take_is_known_before(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 65536; i++) {
		const char bytes[] = { (char)(i >> 8), (char)i, 'x' };
		char *json = written(bytes, sizeof(bytes));

		assert_int_equal(writer_text_len(bytes, sizeof(bytes)) + 2, strlen(json));
		free(json);
	}
	assert_int_equal(writer_text_len("\xf0\x9f\x90\x8d\xc3\xa9\xf0\x9f", 8), 4 + 2 + 3);
}

/* The right column was read off CPython's bytes.decode("utf-8", "replace"). */
static void invalid_bytes_become_what_python_makes_of_them(void **state)
{
	static const struct {
		const char *bytes, *text;
	} rows[] = {
		{ "plain", "plain" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "ok\xff\xfe"
		  "end",
			"ok" R R "end" },
		{ "\xc3", R },
		{ "\xc3(", R "(" },
		{ "\xe2\x82", R },
		{ "\xe2\x82(", R "(" },
		{ "\xe2(\xac", R "(" R },
		{ "\xf0\x9f\x98", R },
		{ "\xf0\x9f\x98x", R "x" },
		{ "\xf0\x9f\xf0\x9f\x98\x80", R "\xf0\x9f\x98\x80" },
		{ "\xc0\x80", R R },
		{ "\xe0\x80\x80", R R R },
		{ "\xed\xa0\x80", R R R },
		{ "\xed\x9f\xbf", "\xed\x9f\xbf" },
		{ "\xf4\x90\x80\x80", R R R R },
		{ "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf" },
		{ "\xf5\x80", R R },
		{ "\x80\xbf", R R },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *json = written(rows[i].bytes, strlen(rows[i].bytes));

		assert_int_equal(json[0], '"');
		assert_int_equal(strlen(json), strlen(rows[i].text) + 2);
		assert_memory_equal(json + 1, rows[i].text, strlen(rows[i].text));
		assert_int_equal(
			utf8_valid(rows[i].bytes, strlen(rows[i].bytes)) == strlen(rows[i].bytes),
			strstr(rows[i].text, R) == NULL);
		free(json);
	}
}

static void control_characters_are_escaped_and_kept(void **state)
{
	char *json = written("a\0\x01\x1f\x7f\"\\/\b\f\n\r\t", 13);

	(void)state;
	assert_string_equal(json, "\"a\\u0000\\u0001\\u001f\x7f\\\"\\\\/\\b\\f\\n\\r\\t\"");
	free(json);
}

static void a_text_is_cut_only_between_characters(void **state)
{
	static const char text[] = "x\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80y";
	static const size_t starts[] = { 0, 1, 3, 6, 10, 11 };
	size_t s = 0;

	(void)state;
	for (size_t len = 0; len < sizeof(text); len++) {
		if (s + 1 < sizeof(starts) / sizeof(starts[0]) && starts[s + 1] <= len)
			s++;
		assert_int_equal(utf8_cut_end(text, len), starts[s]);
		if (len > starts[s])
			assert_int_equal(len + utf8_cut_start(text + len, sizeof(text) - 1 - len),
				starts[s + 1]);
	}
}

static void a_cut_takes_no_bytes_that_belong_to_no_character(void **state)
{
	(void)state;
	assert_int_equal(utf8_cut_end("a\x80", 2), 2);
	assert_int_equal(utf8_cut_end("a\xff", 2), 2);
	assert_int_equal(utf8_cut_end("\xed\xa0", 2), 2);
	assert_int_equal(utf8_cut_end("\xe2\x82\xac\x80", 4), 4);
	assert_int_equal(utf8_cut_start("\x80\x80\x80\x80", 4), 3);
}

static void characters_are_counted_not_bytes(void **state)
{
	(void)state;
	assert_int_equal(utf8_count("x\xc3\xa9\xf0\x9f\x98\x80\xff", 8), 4);
}

static void base64_runs_across_two_pieces_as_if_they_were_one(void **state)
{
	static const char *const want[] = { "\"\"", "\"+w==\"", "\"+/8=\"", "\"+/8A\"",
		"\"+/8ABA==\"", "\"+/8ABPc=\"", "\"+/8ABPcH\"" };
	static const char bytes[] = "\xfb\xff\x00\x04\xf7\x07";

	(void)state;
	for (size_t len = 0; len <= 6; len++) {
		for (size_t cut = 0; cut <= len; cut++) {
			struct writer w = { 0 };
			char *json;

			writer_base64(&w, NULL, bytes, cut, bytes + cut, len - cut);
			json = writer_take(&w, NULL);
			assert_string_equal(json, want[len]);
			assert_int_equal(strlen(json), base64_len(len) + 2);
			free(json);
		}
	}
}

static void numbers_are_written_short_and_exact(void **state)
{
	struct writer w = { 0 };
	char *json;

	(void)state;
	writer_array(&w, NULL);
	writer_number(&w, NULL, 300);
	writer_number(&w, NULL, 0.1);
	writer_number(&w, NULL, 0.1 + 0.2);
	writer_fixed(&w, NULL, 12.345, 2);
	writer_fixed(&w, NULL, 17.0, 2);
	writer_fixed(&w, NULL, 0, 3);
	writer_fixed(&w, NULL, 100, 0);
	writer_u64(&w, NULL, UINT64_MAX);
	writer_i64(&w, NULL, INT64_MIN);
	writer_object(&w, NULL);
	writer_close(&w);
	writer_object(&w, NULL);
	writer_bool(&w, "a", true);
	writer_null(&w, "b\"");
	writer_close(&w);
	writer_close(&w);
	json = writer_take(&w, NULL);
	assert_string_equal(json,
		"[300,0.1,0.30000000000000004,12.35,17,0,100,18446744073709551615,"
		"-9223372036854775808,{},{\"a\":true,\"b\\\"\":null}]");
	free(json);
}

/* The same by printf(). */
static void check_number(uint64_t n)
{
	struct writer w = { 0 };
	char want[256], *json;
	size_t len;

	(void)snprintf(want, sizeof(want), "%llu.%03llu", (unsigned long long)(n / 1000),
		(unsigned long long)(n % 1000));
	for (len = strlen(want); want[len - 1] == '0'; len--)
		want[len - 1] = '\0';
	if (want[len - 1] == '.')
		want[len - 1] = '\0';
	len = strlen(want);
	(void)snprintf(want + len, sizeof(want) - len, ",%llu,%lld,%lld", (unsigned long long)n,
		(long long)n, -(long long)(n / 2));
	len = strlen(want);
	if (n < UINT64_C(1000000000000000))
		(void)snprintf(want + len, sizeof(want) - len, ",%.15g", (double)n);
	writer_array(&w, NULL);
	writer_thousandths(&w, NULL, n);
	writer_u64(&w, NULL, n);
	writer_i64(&w, NULL, (int64_t)n);
	writer_i64(&w, NULL, -(int64_t)(n / 2));
	if (n < UINT64_C(1000000000000000))
		writer_number(&w, NULL, (double)n);
	writer_close(&w);
	json = writer_take(&w, NULL);
	json[strlen(json) - 1] = '\0';
	assert_string_equal(json + 1, want);
	free(json);
}

static void whole_numbers_and_thousandths_are_written_as_printf_does(void **state)
{
	(void)state;
	for (uint64_t n = 0; n < 12000; n++)
		check_number(n);
	for (uint64_t n = 1; n <= UINT64_MAX / 10; n *= 10) {
		check_number(n - 1);
		check_number(n * 9);
		check_number(n * 7 + n / 3);
	}
	check_number(UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_text_will_take_is_known_before),
		cmocka_unit_test(invalid_bytes_become_what_python_makes_of_them),
		cmocka_unit_test(control_characters_are_escaped_and_kept),
		cmocka_unit_test(a_text_is_cut_only_between_characters),
		cmocka_unit_test(a_cut_takes_no_bytes_that_belong_to_no_character),
		cmocka_unit_test(characters_are_counted_not_bytes),
		cmocka_unit_test(base64_runs_across_two_pieces_as_if_they_were_one),
		cmocka_unit_test(numbers_are_written_short_and_exact),
		cmocka_unit_test(whole_numbers_and_thousandths_are_written_as_printf_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
