#include "unit.h"

#include "base/clock.h"
#include "edge/front/queue.h"

static void as_many_run_as_there_are_slots(void **state)
{
	struct ticket t[3] = { 0 };
	struct queue q;

	(void)state;
	queue_init(&q, 2, 8, NS_PER_S);
	assert_int_equal(queue_enter(&q, &t[0], 1), TICKET_RUNNING);
	assert_int_equal(queue_enter(&q, &t[1], 1), TICKET_RUNNING);
	assert_int_equal(queue_enter(&q, &t[2], 1), TICKET_WAITING);
	assert_int_equal(q.running, 2);
	assert_int_equal(q.waiting, 1);
}

static void one_more_than_may_wait_is_sent_away(void **state)
{
	struct ticket t[3] = { 0 };
	struct queue q;

	(void)state;
	queue_init(&q, 1, 1, NS_PER_S);
	assert_int_equal(queue_enter(&q, &t[0], 1), TICKET_RUNNING);
	assert_int_equal(queue_enter(&q, &t[1], 1), TICKET_WAITING);
	assert_int_equal(queue_enter(&q, &t[2], 1), TICKET_OUT);
	queue_leave(&q, &t[2], 2); /* harmless: it never was in */
	assert_int_equal(q.running, 1);
	assert_int_equal(q.waiting, 1);
}

static void without_a_queue_nobody_waits(void **state)
{
	struct ticket t[2] = { 0 };
	struct queue q;

	(void)state;
	queue_init(&q, 1, 0, NS_PER_S);
	assert_int_equal(queue_enter(&q, &t[0], 1), TICKET_RUNNING);
	assert_int_equal(queue_enter(&q, &t[1], 1), TICKET_OUT);
}

static void first_come_is_first_served(void **state)
{
	struct ticket t[4] = { 0 };
	struct queue q;

	(void)state;
	queue_init(&q, 1, 8, NS_PER_S);
	for (int i = 0; i < 4; i++)
		(void)!queue_enter(&q, &t[i], 1);
	assert_null(queue_advance(&q, 2)); /* no slot */
	for (int i = 0; i < 3; i++) {
		queue_leave(&q, &t[i], 2);
		assert_ptr_equal(queue_advance(&q, 2), &t[i + 1]);
		assert_null(queue_advance(&q, 2));
	}
}

static void a_newcomer_does_not_overtake(void **state)
{
	struct ticket t[3] = { 0 };
	struct queue q;

	(void)state;
	queue_init(&q, 1, 8, NS_PER_S);
	(void)!queue_enter(&q, &t[0], 1);
	(void)!queue_enter(&q, &t[1], 1);
	queue_leave(&q, &t[0], 2); /* a slot is free, but t[1] was there before */
	assert_int_equal(queue_enter(&q, &t[2], 2), TICKET_WAITING);
	assert_ptr_equal(queue_advance(&q, 2), &t[1]);
}

static void whoever_leaves_the_line_is_skipped(void **state)
{
	struct ticket t[5] = { 0 };
	struct queue q;

	(void)state;
	queue_init(&q, 1, 8, NS_PER_S);
	for (int i = 0; i < 5; i++)
		(void)!queue_enter(&q, &t[i], 1);
	queue_leave(&q, &t[1], 2); /* the first, one of the middle, the last */
	queue_leave(&q, &t[3], 2);
	queue_leave(&q, &t[4], 2);
	assert_int_equal(q.waiting, 1);
	queue_leave(&q, &t[0], 2);
	assert_ptr_equal(queue_advance(&q, 3), &t[2]);
	queue_leave(&q, &t[2], 4);
	assert_null(queue_advance(&q, 5));
	assert_int_equal(q.running, 0);
	assert_null(q.first);
	assert_null(q.last);
}

static void leaving_twice_frees_one_slot(void **state)
{
	struct ticket t[2] = { 0 };
	struct queue q;

	(void)state;
	queue_init(&q, 2, 0, NS_PER_S);
	(void)!queue_enter(&q, &t[0], 1);
	(void)!queue_enter(&q, &t[1], 1);
	queue_leave(&q, &t[0], 2);
	queue_leave(&q, &t[0], 2);
	assert_int_equal(q.running, 1);
}

static void a_ticket_can_be_used_again(void **state)
{
	struct ticket t = { 0 };
	struct queue q;

	(void)state;
	queue_init(&q, 1, 0, NS_PER_S);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(queue_enter(&q, &t, 1), TICKET_RUNNING);
		queue_leave(&q, &t, 2);
	}
}

static void retry_after_grows_with_the_line(void **state)
{
	struct ticket t[5] = { 0 };
	struct queue q;
	uint32_t before;

	(void)state;
	queue_init(&q, 1, 4, 3 * NS_PER_S);
	(void)!queue_enter(&q, &t[0], 1);
	before = queue_retry_after_s(&q);
	assert_in_range(before, 3, 4);
	for (int i = 1; i < 5; i++)
		(void)!queue_enter(&q, &t[i], 1);
	assert_in_range(queue_retry_after_s(&q), 15, 16);
}

static void retry_after_follows_how_long_runs_take(void **state)
{
	struct ticket t = { 0 };
	struct queue q;

	(void)state;
	queue_init(&q, 1, 4, 100 * NS_PER_S);
	for (int i = 0; i < 100; i++) {
		(void)!queue_enter(&q, &t, 0);
		queue_leave(&q, &t, 10 * NS_PER_MS);
	}
	assert_int_equal(queue_retry_after_s(&q), 1);
}

static void retry_after_stays_within_its_bounds(void **state)
{
	struct ticket t = { 0 };
	struct queue q;

	(void)state;
	queue_init(&q, 1, 4096, UINT64_MAX);
	assert_int_equal(queue_retry_after_s(&q), RETRY_MAX_S);
	(void)!queue_enter(&q, &t, 0);
	queue_leave(&q, &t, UINT64_MAX);
	assert_int_equal(queue_retry_after_s(&q), RETRY_MAX_S);
	queue_init(&q, 120, 0, 0);
	assert_int_equal(queue_retry_after_s(&q), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_run_as_there_are_slots),
		cmocka_unit_test(one_more_than_may_wait_is_sent_away),
		cmocka_unit_test(without_a_queue_nobody_waits),
		cmocka_unit_test(first_come_is_first_served),
		cmocka_unit_test(a_newcomer_does_not_overtake),
		cmocka_unit_test(whoever_leaves_the_line_is_skipped),
		cmocka_unit_test(leaving_twice_frees_one_slot),
		cmocka_unit_test(a_ticket_can_be_used_again),
		cmocka_unit_test(retry_after_grows_with_the_line),
		cmocka_unit_test(retry_after_follows_how_long_runs_take),
		cmocka_unit_test(retry_after_stays_within_its_bounds),
	};

	return cmocka_run_group_tests_name("front_queue", tests, NULL, NULL);
}
