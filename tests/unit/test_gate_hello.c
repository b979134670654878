/* Names in the ClientHello of TLS. */
#include "unit.h"

#include "base/check.h"
#include "edge/gate/hello.h"
#include "hello_play.h"

#include <stdlib.h>
#include <string.h>

static uint8_t bytes[HELLO_PLAY_MAX];

/* From a block of that length, so that a sanitizer sees one byte too far. */
static ssize_t read_first(size_t len, struct hello *ret)
{
	uint8_t *block = malloc(len ? len : 1);
	ssize_t n;

	assert_non_null(block);
	memcpy(block, bytes, len);
	n = hello_read(block, len, ret);
	free(block);
	return n;
}

static struct hello read_good(struct hello_play h)
{
	size_t len = hello_play_make(&h, bytes);
	struct hello ret;

	assert_int_equal(read_first(len, &ret), len);
	return ret;
}

static void assert_bad(struct hello_play h)
{
	struct hello ret;

	assert_int_equal(read_first(hello_play_make(&h, bytes), &ret), -1);
}

static void a_hello_says_its_name_in_small_letters(void **state)
{
	struct hello h =
		read_good((struct hello_play){ .name = "www.Example.ORG", .session_id = 32 });

	(void)state;
	assert_string_equal(h.name, "www.example.org");
	assert_false(h.hidden);
	assert_false(h.early);
}

static void a_hello_may_have_no_name(void **state)
{
	(void)state;
	assert_string_equal(read_good((struct hello_play){ 0 }).name, "");
	assert_string_equal(read_good((struct hello_play){ .no_extensions = true }).name, "");
}

static void an_encrypted_name_is_noticed(void **state)
{
	static const unsigned types[] = { 0xfe0d, 0xfe08, 0xfe0a, 0xffce };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(types); i++)
		assert_true(read_good(
			(struct hello_play){ .name = "example.org", .extension = types[i] })
				    .hidden);
	assert_false(read_good((struct hello_play){ .name = "a.org", .extension = 0xfe07 }).hidden);
	assert_false(read_good((struct hello_play){ .name = "a.org", .extension = 0xfe0e }).hidden);
}

static void data_that_may_come_early_are_noticed(void **state)
{
	(void)state;
	assert_true(read_good((struct hello_play){ .name = "example.org", .extension = 42 }).early);
}

static void a_hello_is_the_same_in_however_many_records(void **state)
{
	(void)state;
	for (unsigned record = 1; record < 100; record++)
		assert_string_equal(
			read_good((struct hello_play){ .name = "example.org", .record = record })
				.name,
			"example.org");
}

static void a_hello_that_is_not_whole_needs_more(void **state)
{
	struct hello_play h = { .name = "example.org", .record = 50 };
	size_t len = hello_play_make(&h, bytes);
	struct hello ret;

	(void)state;
	for (size_t n = 0; n < len; n++)
		assert_int_equal(read_first(n, &ret), 0);
	assert_int_equal(read_first(len + 100, &ret), len); /* what is behind it is none of its */
}

static void names_that_are_none_are_refused(void **state)
{
	static const char *const names[] = { "", "example.org.", ".example.org", "93.184.216.34",
		"a b", "ex\xc3\xa4mple.org", "a,b", "-a.org" };
	static char long_one[300];

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		assert_bad((struct hello_play){ .name = names[i] });
	for (unsigned i = 0; i < 256; i++)
		long_one[i] = i % 2 ? '.' : 'a';
	long_one[255] = 'a';
	assert_bad((struct hello_play){ .name = long_one });
}

static void a_hello_has_one_name(void **state)
{
	(void)state;
	assert_bad((struct hello_play){ .name = "example.org", .two_names = true });
	assert_bad((struct hello_play){ .name = "example.org", .twice = true });
	assert_bad((struct hello_play){ .name = "example.org", .name_type = 1 });
	assert_bad((struct hello_play){ .name = "example.org", .behind_name = true });
	assert_bad(
		(struct hello_play){ .name = "example.org", .extension = 43 }); /* any kind twice */
}

static void what_is_not_a_hello_throughout_is_refused(void **state)
{
	(void)state;
	assert_bad((struct hello_play){ .name = "example.org", .behind_extensions = true });
	assert_bad((struct hello_play){ .name = "example.org", .behind_hello = true });
	assert_bad(
		(struct hello_play){ .name = "example.org", .behind_hello = true, .record = 40 });
	assert_bad((struct hello_play){ .name = "example.org", .session_id = 33 });
	assert_bad((struct hello_play){ .name = "example.org", .suites = 3 });
	assert_bad((struct hello_play){ .name = "example.org", .suites = 255 });
	assert_bad((struct hello_play){ .name = "example.org", .no_compression = true });
	assert_bad((struct hello_play){ .name = "example.org", .version = 0x0200 });
	assert_bad((struct hello_play){ .name = "example.org", .message = 2 });
}

static void a_length_that_lies_is_refused_or_needs_more(void **state)
{
	struct hello_play h = { .name = "example.org", .session_id = 4 };
	size_t len = hello_play_make(&h, bytes);
	struct hello ret;

	(void)state;
	for (size_t i = 0; i < len; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			bytes[i] ^= (uint8_t)(1u << bit);
			assert_true(read_first(len, &ret) <= (ssize_t)len);
			bytes[i] ^= (uint8_t)(1u << bit);
		}
	bytes[8]++; /* the message's: it does not end with its record */
	assert_int_equal(read_first(len, &ret), 0);
	bytes[8] -= 2;
	assert_int_equal(read_first(len, &ret), -1);
}

static void records_of_another_kind_between_are_refused(void **state)
{
	struct hello_play h = { .name = "example.org", .record = 20 };
	size_t len = hello_play_make(&h, bytes);
	struct hello ret;

	(void)state;
	bytes[25] = 21;
	assert_int_equal(read_first(len, &ret), -1);
	bytes[25] = 22;
	bytes[26] = 2;
	assert_int_equal(read_first(len, &ret), -1);
	bytes[26] = 3;
	assert_int_equal(read_first(len, &ret), len);
	bytes[28] = bytes[29] = 0;
	assert_int_equal(read_first(len, &ret), -1);
}

static void there_are_bounds(void **state)
{
	struct hello_play h = { .name = "example.org", .padding = HELLO_MAX - 100 };
	size_t len = hello_play_make(&h, bytes);
	struct hello ret;

	(void)state;
	h.padding += HELLO_MAX - len;
	assert_int_equal(read_good(h).name[0], 'e');
	h.padding++;
	assert_bad(h);
	/* That is known as soon as its length is. */
	assert_int_equal(read_first(9, &ret), -1);
	assert_string_equal(
		read_good((struct hello_play){ .name = "a.org", .more = 62 }).name, "a.org");
	assert_bad((struct hello_play){ .name = "a.org", .more = 63 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hello_says_its_name_in_small_letters),
		cmocka_unit_test(a_hello_may_have_no_name),
		cmocka_unit_test(an_encrypted_name_is_noticed),
		cmocka_unit_test(data_that_may_come_early_are_noticed),
		cmocka_unit_test(a_hello_is_the_same_in_however_many_records),
		cmocka_unit_test(a_hello_that_is_not_whole_needs_more),
		cmocka_unit_test(names_that_are_none_are_refused),
		cmocka_unit_test(a_hello_has_one_name),
		cmocka_unit_test(what_is_not_a_hello_throughout_is_refused),
		cmocka_unit_test(a_length_that_lies_is_refused_or_needs_more),
		cmocka_unit_test(records_of_another_kind_between_are_refused),
		cmocka_unit_test(there_are_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
