/* How fast a run's bytes may pass. */
#include "unit.h"

#include "base/clock.h"
#include "edge/gate/pace.h"

#define BEGAN_NS (1000 * NS_PER_S)
#define RATE     UINT64_C(100000)

static struct pace pace;

static int begin(void **state)
{
	(void)state;
	pace_init(&pace, RATE, BEGAN_NS);
	return 0;
}

static void nothing_is_saved_up_at_the_beginning(void **state)
{
	(void)state;
	assert_int_equal(pace_earn(&pace, BEGAN_NS), UINT64_MAX);
	pace_charge(&pace, 1);
	assert_int_equal(pace.debt, 1);
}

static void a_debt_is_paid_as_the_rate_allows(void **state)
{
	(void)state;
	pace_charge(&pace, 5000);
	assert_int_equal(pace_earn(&pace, BEGAN_NS), BEGAN_NS + NS_PER_MS);
	assert_int_equal(pace_earn(&pace, BEGAN_NS + 49 * NS_PER_MS), BEGAN_NS + 50 * NS_PER_MS);
	assert_int_equal(pace.debt, 100);
	assert_int_equal(pace_earn(&pace, BEGAN_NS + 50 * NS_PER_MS), UINT64_MAX);
	assert_int_equal(pace.debt, 0);
	assert_int_equal(pace.budget, 0);
}

static void no_more_than_a_second_is_saved_up(void **state)
{
	(void)state;
	for (unsigned s = 1; s < 10; s++) {
		(void)pace_earn(&pace, BEGAN_NS + s * 3 * NS_PER_S);
		assert_int_equal(pace.budget, RATE);
	}
	pace_charge(&pace, RATE + 7);
	assert_int_equal(pace.budget, 0);
	assert_int_equal(pace.debt, 7);
}

/* A rate of a few bytes, asked often: what is less than a byte is not lost. */
static void a_slow_rate_is_kept_however_often_it_is_asked(void **state)
{
	(void)state;
	pace_init(&pace, 10, BEGAN_NS);
	pace_charge(&pace, 10);
	for (uint64_t ms = 1; ms < 1000; ms++)
		assert_int_not_equal(pace_earn(&pace, BEGAN_NS + ms * NS_PER_MS), UINT64_MAX);
	assert_int_equal(pace_earn(&pace, BEGAN_NS + NS_PER_S), UINT64_MAX);
}

static void the_highest_rate_does_not_run_over(void **state)
{
	(void)state;
	pace_init(&pace, UINT64_C(1000000000000), BEGAN_NS);
	(void)pace_earn(&pace, BEGAN_NS + NS_PER_S);
	assert_int_equal(pace.budget, UINT64_C(1000000000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_is_saved_up_at_the_beginning, begin),
		cmocka_unit_test_setup(a_debt_is_paid_as_the_rate_allows, begin),
		cmocka_unit_test_setup(no_more_than_a_second_is_saved_up, begin),
		cmocka_unit_test_setup(a_slow_rate_is_kept_however_often_it_is_asked, begin),
		cmocka_unit_test_setup(the_highest_rate_does_not_run_over, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
