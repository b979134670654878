#include "unit.h"

#include "base/check.h"
#include "base/quantity.h"

#include <errno.h>

typedef int quantity_fn(const char *text, uint64_t *ret);

struct row {
	const char *text;
	uint64_t value; /* when r is 0 */
	int r;
};

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* What no quantity may look like, whatever its unit. */
static const char *const never[] = { "", " ", "-1", "+1", " 1", "1 ", "1\n", "010", "00", "0x10",
	"1e3", "1.", ".5", "1..5", "1.5.5", "1,5", "1_000", "nan", "inf", "many", "1 M", "M", "--1",
	"0.0000000001", "\xd9\xa1", "1\xc2\xa0" };

static void expect(quantity_fn *parse, const struct row *rows, size_t n)
{
	const uint64_t untouched = 4711;

	for (size_t i = 0; i < n; i++) {
		uint64_t got = untouched;
		int r = parse(rows[i].text, &got);

		if (r != rows[i].r || got != (r == 0 ? rows[i].value : untouched))
			fail_msg("\"%s\" gives %d and %lu", rows[i].text, r, (unsigned long)got);
	}
	for (size_t i = 0; i < ARRAY_LEN(never); i++) {
		uint64_t got = untouched;

		if (parse(never[i], &got) != -EINVAL || got != untouched)
			fail_msg("\"%s\" is taken as %lu", never[i], (unsigned long)got);
	}
}

static void sizes_are_bytes_unless_a_letter_says_otherwise(void **state)
{
	static const struct row rows[] = {
		{ "0", 0, 0 },
		{ "1", 1, 0 },
		{ "4096", 4096, 0 },
		{ "5B", 5, 0 },
		{ "4k", 4 * KIB, 0 },
		{ "4K", 4 * KIB, 0 },
		{ "64M", 64 * MIB, 0 },
		{ "64MB", 64 * MIB, 0 },
		{ "64MiB", 64 * MIB, 0 },
		{ "1.5G", 3 * GIB / 2, 0 },
		{ "0.5K", 512, 0 },
		{ "2T", 2048 * GIB, 0 },
		{ "18446744073709551615", UINT64_MAX, 0 },
		{ "18446744073709551616", 0, -ERANGE },
		{ "99999999999999999999999999", 0, -ERANGE },
		{ "16777216T", 0, -ERANGE },
		{ "1.5", 0, -EINVAL },
		{ "0.3K", 0, -EINVAL },
		{ "64m b", 0, -EINVAL },
		{ "64Mi", 0, -EINVAL },
		{ "1s", 0, -EINVAL },
	};

	(void)state;
	expect(quantity_size, rows, ARRAY_LEN(rows));
}

static void mib_are_meant_where_no_letter_says_otherwise(void **state)
{
	static const struct row rows[] = {
		{ "64", 64 * MIB, 0 },
		{ "0.5", MIB / 2, 0 },
		{ "64M", 64 * MIB, 0 },
		{ "1G", GIB, 0 },
		{ "512B", 512, 0 },
		{ "17592186044416", 0, -ERANGE },
	};

	(void)state;
	expect(quantity_mib, rows, ARRAY_LEN(rows));
}

static void durations_are_seconds_unless_a_unit_says_otherwise(void **state)
{
	static const struct row rows[] = {
		{ "3", 3000000, 0 },
		{ "1.5", 1500000, 0 },
		{ "1.5s", 1500000, 0 },
		{ "200ms", 200000, 0 },
		{ "0.5ms", 500, 0 },
		{ "50us", 50, 0 },
		{ "5m", 300000000, 0 },
		{ "1h", UINT64_C(3600000000), 0 },
		{ "0.000001", 1, 0 },
		{ "0.0000001", 0, -EINVAL },
		{ "0.5us", 0, -EINVAL },
		{ "3 s", 0, -EINVAL },
		{ "3sec", 0, -EINVAL },
		{ "18446744073710s", 0, -ERANGE },
	};

	(void)state;
	expect(quantity_duration, rows, ARRAY_LEN(rows));
}

static void cpus_have_three_decimals(void **state)
{
	static const struct row rows[] = {
		{ "2", 2000, 0 },
		{ "0.5", 500, 0 },
		{ "0.125", 125, 0 },
		{ "0.1250", 125, 0 },
		{ "0.1255", 0, -EINVAL },
		{ "1c", 0, -EINVAL },
		{ "50%", 0, -EINVAL },
		{ "18446744073709552", 0, -ERANGE },
	};

	(void)state;
	expect(quantity_cpus, rows, ARRAY_LEN(rows));
}

static void counts_are_whole_numbers(void **state)
{
	static const struct row rows[] = {
		{ "0", 0, 0 },
		{ "32", 32, 0 },
		{ "1.0", 0, -EINVAL },
		{ "32k", 0, -EINVAL },
		{ "18446744073709551616", 0, -ERANGE },
	};

	(void)state;
	expect(quantity_count, rows, ARRAY_LEN(rows));
}

static void booleans_are_two_words(void **state)
{
	static const char *const others[] = { "", "True", "TRUE", "yes", "on", "1", "0", "true ",
		"falsee" };
	bool got = false;

	(void)state;
	assert_int_equal(quantity_bool("true", &got), 0);
	assert_true(got);
	assert_int_equal(quantity_bool("false", &got), 0);
	assert_false(got);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (quantity_bool(others[i], &got) != -EINVAL)
			fail_msg("\"%s\" is taken as a boolean", others[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_bytes_unless_a_letter_says_otherwise),
		cmocka_unit_test(mib_are_meant_where_no_letter_says_otherwise),
		cmocka_unit_test(durations_are_seconds_unless_a_unit_says_otherwise),
		cmocka_unit_test(cpus_have_three_decimals),
		cmocka_unit_test(counts_are_whole_numbers),
		cmocka_unit_test(booleans_are_two_words),
	};

	return cmocka_run_group_tests_name("quantity", tests, NULL, NULL);
}
