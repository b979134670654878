#include "priv/supervisor/urgency.h"
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "kernel/sys.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define FRONT 4711
#define CALM  (50 * NS_PER_MS)

/* What was asked of the kernel: the last of each kind, for the caller and for the front. */
static struct {
	uint32_t policy, front_policy;
	int nice, front_nice;
	int cpus, front_cpus; /* how many; 0: not asked */
	unsigned calls;
	int attr_fails, affinity_fails;
} seen;

static int fake_sched_setattr(pid_t pid, const void *attr, unsigned flags)
{
	uint32_t words[5]; /* size, policy, two of flags, nice */

	assert_int_equal(flags, 0);
	memcpy(words, attr, sizeof(words));
	seen.calls++;
	if (seen.attr_fails)
		return seen.attr_fails;
	*(pid ? &seen.front_policy : &seen.policy) = words[1];
	*(pid ? &seen.front_nice : &seen.nice) = (int)words[4];
	return 0;
}

static int fake_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *cpus)
{
	assert_int_equal(size, sizeof(*cpus));
	seen.calls++;
	if (seen.affinity_fails)
		return seen.affinity_fails;
	*(pid ? &seen.front_cpus : &seen.cpus) = CPU_COUNT(cpus);
	return 0;
}

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *ret);
int __real_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *ret);
static bool too_many_cpus;

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *ret)
{
	errno = EINVAL;
	return too_many_cpus ? -1 : __real_sched_getaffinity(pid, size, ret);
}

static struct urgency u;
static struct sys_ops real;

static int set_up(void **state)
{
	(void)state;
	real = sys;
	memset(&seen, 0, sizeof(seen));
	sys.sched_setattr = fake_sched_setattr;
	sys.sched_setaffinity = fake_sched_setaffinity;
	urgency_init(&u, true);
	urgency_front(&u, FRONT);
	u.busy_ns = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sys = real;
	return 0;
}

static void it_is_urgent_when_it_has_been_calm_for_a_while(void **state)
{
	(void)state;
	assert_int_equal(urgency_tick(&u, 0, CALM - 1), CALM);
	assert_int_equal(seen.policy, SCHED_OTHER);
	assert_int_equal(urgency_tick(&u, 1, CALM), UINT64_MAX);
	assert_int_equal(seen.policy, SCHED_RR);
	assert_int_equal(seen.cpus, 1);
	assert_int_equal(seen.front_cpus, 1);
}

static void the_front_never_gets_real_time_priority(void **state)
{
	(void)state;
	(void)urgency_tick(&u, 0, CALM);
	assert_int_equal(seen.front_policy, SCHED_OTHER);
	assert_int_equal(seen.front_nice, -10);
}

static void two_runs_end_it_at_once(void **state)
{
	(void)state;
	(void)urgency_tick(&u, 1, CALM);
	assert_int_equal(urgency_tick(&u, 2, CALM + 1), UINT64_MAX);
	assert_int_equal(seen.policy, SCHED_OTHER);
	assert_int_equal(seen.cpus, CPU_COUNT(&u.cpus));
	assert_int_equal(seen.front_cpus, CPU_COUNT(&u.cpus));
	assert_int_equal(urgency_tick(&u, 1, CALM + 2), 2 * CALM + 1);
	assert_int_equal(seen.policy, SCHED_OTHER);
	assert_int_equal(urgency_tick(&u, 0, 2 * CALM + 1), UINT64_MAX);
	assert_int_equal(seen.policy, SCHED_RR);
}

static void nothing_is_asked_for_while_nothing_changes(void **state)
{
	unsigned calls;

	(void)state;
	(void)urgency_tick(&u, 1, CALM);
	calls = seen.calls;
	for (unsigned i = 1; i < 100; i++)
		(void)urgency_tick(&u, i % 2, CALM + i);
	assert_int_equal(seen.calls, calls);
	(void)urgency_tick(&u, 3, 2 * CALM);
	calls = seen.calls;
	for (unsigned i = 1; i < 100; i++)
		(void)urgency_tick(&u, 2 + i % 2, 2 * CALM + i);
	assert_int_equal(seen.calls, calls);
}

static void a_loop_that_does_not_sleep_loses_it(void **state)
{
	uint64_t now = CALM;
	unsigned turns = 0;

	(void)state;
	(void)urgency_tick(&u, 1, now);
	for (; turns < 1000; turns++)
		(void)urgency_tick(&u, 1, now += 20 * NS_PER_US); /* much work */
	assert_int_equal(seen.policy, SCHED_RR);
	for (turns = 0; seen.policy == SCHED_RR && turns < 1000; turns++)
		(void)urgency_tick(&u, 1, now += 2 * NS_PER_US);
	assert_in_range(turns, 100, 600);
	assert_int_equal(seen.cpus, CPU_COUNT(&u.cpus));
	assert_int_equal(urgency_tick(&u, 1, now + 1), now + CALM);
	(void)urgency_tick(&u, 1, now + CALM);
	assert_int_equal(seen.policy, SCHED_RR);
}

/* A program may be the reason: one line in a minute. */
static void that_it_does_not_sleep_is_said_once_in_a_minute(void **state)
{
	const uint64_t waits[] = { 0, NS_PER_S, 61 * NS_PER_S };
	const bool says[] = { true, false, true };
	uint64_t now = CALM, said = 0;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		now += waits[i] + CALM;
		(void)urgency_tick(&u, 1, now);
		assert_int_equal(seen.policy, SCHED_RR);
		while (seen.policy == SCHED_RR)
			(void)urgency_tick(&u, 1, now += 2 * NS_PER_US);
		assert_int_equal(u.said_ns != said, says[i]);
		said = u.said_ns;
	}
}

static void with_more_processors_than_there_is_room_for_it_asks_for_nothing(void **state)
{
	unsigned calls = seen.calls;

	(void)state;
	too_many_cpus = true;
	urgency_init(&u, true);
	too_many_cpus = false;
	assert_int_equal(urgency_tick(&u, 0, 9 * CALM), UINT64_MAX);
	assert_int_equal(seen.calls, calls);
}

static void a_new_front_is_placed_too(void **state)
{
	(void)state;
	(void)urgency_tick(&u, 0, CALM);
	seen.front_cpus = 0;
	urgency_front(&u, 0);
	(void)urgency_tick(&u, 2, CALM + 1);
	assert_int_equal(seen.front_cpus, 0); /* nobody is asked for in its place */
	urgency_front(&u, FRONT + 1);
	(void)urgency_tick(&u, 0, clock_ns() + 2 * CALM);
	assert_int_equal(seen.policy, SCHED_RR);
	assert_int_equal(seen.front_cpus, 1);
}

/* Started in the place of one that died, while the supervisor is urgent. */
static void a_new_front_is_placed_when_it_is_calm_again(void **state)
{
	(void)state;
	(void)urgency_tick(&u, 0, CALM);
	urgency_front(&u, FRONT + 1);
	assert_int_equal(seen.policy, SCHED_OTHER);
	assert_int_equal(seen.front_cpus, CPU_COUNT(&u.cpus));
	assert_true(u.busy_ns > 0);
	(void)urgency_tick(&u, 0, u.busy_ns + CALM);
	assert_int_equal(seen.policy, SCHED_RR);
	assert_int_equal(seen.front_cpus, 1);
}

static void without_a_front_it_is_urgent_alone(void **state)
{
	(void)state;
	urgency_front(&u, 0);
	(void)urgency_tick(&u, 0, clock_ns() + 2 * CALM);
	assert_int_equal(seen.policy, SCHED_RR);
	assert_int_equal(seen.front_nice, 0);
	assert_int_equal(seen.front_cpus, 0);
}

static void what_the_kernel_refuses_is_not_asked_for_again(void **state)
{
	unsigned calls;

	(void)state;
	seen.attr_fails = -EPERM;
	assert_int_equal(urgency_tick(&u, 0, CALM), UINT64_MAX);
	calls = seen.calls;
	assert_int_equal(urgency_tick(&u, 3, 2 * CALM), UINT64_MAX);
	assert_int_equal(urgency_tick(&u, 0, 9 * CALM), UINT64_MAX);
	assert_int_equal(seen.calls, calls);
	assert_int_not_equal(seen.policy, SCHED_RR);
}

static void one_that_may_not_be_placed_has_no_real_time_priority_either(void **state)
{
	(void)state;
	seen.affinity_fails = -EINVAL;
	assert_int_equal(urgency_tick(&u, 0, CALM), UINT64_MAX);
	assert_int_equal(seen.policy, SCHED_OTHER);
	assert_int_equal(urgency_tick(&u, 0, 9 * CALM), UINT64_MAX);
	assert_int_equal(seen.policy, SCHED_OTHER);
}

static void switched_off_it_asks_for_nothing(void **state)
{
	unsigned calls = seen.calls;

	(void)state;
	urgency_init(&u, false);
	urgency_front(&u, FRONT);
	assert_int_equal(urgency_tick(&u, 0, 9 * CALM), UINT64_MAX);
	assert_int_equal(urgency_tick(&u, 2, 10 * CALM), UINT64_MAX);
	assert_int_equal(seen.calls, calls);
}

#define world_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(it_is_urgent_when_it_has_been_calm_for_a_while),
		world_test(the_front_never_gets_real_time_priority),
		world_test(two_runs_end_it_at_once),
		world_test(nothing_is_asked_for_while_nothing_changes),
		world_test(a_loop_that_does_not_sleep_loses_it),
		world_test(that_it_does_not_sleep_is_said_once_in_a_minute),
		world_test(with_more_processors_than_there_is_room_for_it_asks_for_nothing),
		world_test(a_new_front_is_placed_too),
		world_test(a_new_front_is_placed_when_it_is_calm_again),
		world_test(without_a_front_it_is_urgent_alone),
		world_test(what_the_kernel_refuses_is_not_asked_for_again),
		world_test(one_that_may_not_be_placed_has_no_real_time_priority_either),
		world_test(switched_off_it_asks_for_nothing),
	};

	return cmocka_run_group_tests_name("urgency", tests, NULL, NULL);
}
