/* How many echo requests may be without an answer. */
#include "unit.h"

#include "base/clock.h"
#include "edge/gate/pings.h"

#include <string.h>

#define NOW_NS (1000 * NS_PER_S)

static struct pings pings;

static int begin(void **state)
{
	(void)state;
	memset(&pings, 0, sizeof(pings));
	return 0;
}

static bool ping(uint8_t host, uint16_t id, uint32_t sequence, uint64_t now_ns)
{
	struct packet p = { .kind = PACKET_ECHO,
		.ipv4 = true,
		.target = { { [10] = 0xff, [11] = 0xff, 8, 8, 8, host } },
		.source_port = id,
		.target_port = id,
		.sequence = sequence };

	return pings_begin(&pings, &p, now_ns);
}

static void end(uint8_t host, uint16_t id, uint32_t sequence)
{
	const struct network_address a = { { [10] = 0xff, [11] = 0xff, 8, 8, 8, host } };

	pings_end(&pings, &a, id, sequence);
}

static void so_many_may_be_without_an_answer_and_no_more(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PINGS_MAX; i++)
		assert_true(ping(1, (uint16_t)i, i % 3, NOW_NS));
	assert_false(ping(2, 1, 1, NOW_NS));
	end(1, 5, 5 % 3);
	assert_true(ping(2, 1, 1, NOW_NS));
	assert_false(ping(2, 1, 2, NOW_NS));
}

static void only_its_own_answer_ends_one_and_once(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PINGS_MAX; i++)
		assert_true(ping(1, 7, 9, NOW_NS)); /* the same again is another socket */
	end(2, 7, 9);
	end(1, 8, 9);
	end(1, 7, 8);
	assert_false(ping(1, 7, 10, NOW_NS));
	end(1, 7, 9);
	assert_true(ping(1, 7, 10, NOW_NS));
	assert_false(ping(1, 7, 11, NOW_NS));
}

static void what_nobody_answers_counts_as_long_as_the_stack_waits(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PINGS_MAX; i++)
		assert_true(ping(1, 7, i, NOW_NS));
	assert_false(ping(1, 7, 0, NOW_NS + 240 * NS_PER_S));
	assert_true(ping(1, 7, 0, NOW_NS + 245 * NS_PER_S));
}

/* The usual way to wait for somebody. */
static void one_a_second_is_never_too_many(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3000; i++)
		assert_true(ping(1, 7, i, NOW_NS + i * NS_PER_S));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(so_many_may_be_without_an_answer_and_no_more, begin),
		cmocka_unit_test_setup(only_its_own_answer_ends_one_and_once, begin),
		cmocka_unit_test_setup(
			what_nobody_answers_counts_as_long_as_the_stack_waits, begin),
		cmocka_unit_test_setup(one_a_second_is_never_too_many, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
