#include "unit.h"

#include "caller/selftest/selftest.h"
#include "wire/selftest.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct selftest s; /* too large for a stack */

/* Everything, and that only one way is to be tried. */
static void forget(void)
{
	memset(&s, 0, sizeof(s));
	s.cold_only = true;
}

static unsigned index_of(enum selftest_source source, const char *name)
{
	for (unsigned i = 0; i < selftest_count(); i++)
		if (selftest_probe(i)->source == source &&
			strcmp(selftest_probe(i)->name, name) == 0)
			return i;
	fail_msg("no probe %s", name);
	return 0;
}

static int judged(enum selftest_source source, const char *name, const char *got)
{
	forget();
	if (got)
		selftest_say(&s, source, name, got);
	return (int)selftest_judge(&s, index_of(source, name));
}

/* Exactly one source may say it: find() takes the first. */
static void every_probe_has_a_name_of_its_own_a_layer_and_a_sentence(void **state)
{
	unsigned in_group[SELFTEST_GROUPS] = { 0 };

	(void)state;
	assert_true(selftest_count() >= 100);
	for (unsigned i = 0; i < selftest_count(); i++) {
		const struct selftest_probe *p = selftest_probe(i);

		assert_int_equal(index_of(p->source, p->name), i);
		assert_true(p->group < SELFTEST_GROUPS);
		assert_true(strlen(p->name) < SELFTEST_PROBE_NAME);
		assert_true(p->expected[0] != '\0');
		assert_true(p->is_call || p->sentence[0] != '\0');
		in_group[p->group]++;
	}
	for (unsigned group = 0; group < SELFTEST_GROUPS; group++)
		if (in_group[group] == 0)
			fail_msg("no probe of %s", selftest_group_word(group));
}

static void a_probe_of_which_nothing_is_heard_has_failed(void **state)
{
	(void)state;
	forget();
	for (unsigned i = 0; i < selftest_count(); i++)
		assert_int_equal(selftest_judge(&s, i), SELFTEST_FAILED);
}

static void what_is_said_twice_is_no_fact(void **state)
{
	unsigned i = index_of(SELFTEST_LOOK, "pid.number");

	(void)state;
	assert_int_equal(judged(SELFTEST_LOOK, "pid.number", "2"), SELFTEST_OK);
	selftest_say(&s, SELFTEST_LOOK, "pid.number", "2");
	assert_int_equal(selftest_judge(&s, i), SELFTEST_FAILED);
}

static void only_the_source_that_a_probe_names_can_speak_for_it(void **state)
{
	(void)state;
	forget();
	for (unsigned source = 0; source < SELFTEST_HOST; source++)
		selftest_say(&s, (enum selftest_source)source, "hang.verdict",
			"timeout wall_timeout 124");
	assert_int_equal(
		selftest_judge(&s, index_of(SELFTEST_HOST, "hang.verdict")), SELFTEST_FAILED);
	selftest_say(&s, SELFTEST_HOST, "hang.verdict", "timeout wall_timeout 124");
	assert_int_equal(selftest_judge(&s, index_of(SELFTEST_HOST, "hang.verdict")), SELFTEST_OK);
}

static void words_are_compared_whole(void **state)
{
	(void)state;
	assert_int_equal(judged(SELFTEST_LOOK, "rlimit.lock", "EPERM"), SELFTEST_OK);
	assert_int_equal(judged(SELFTEST_LOOK, "rlimit.lock", "EAGAIN"), SELFTEST_OK);
	assert_int_equal(judged(SELFTEST_LOOK, "rlimit.lock", "EPER"), SELFTEST_FAILED);
	assert_int_equal(judged(SELFTEST_LOOK, "rlimit.lock", "ENOMEM|EPERM"), SELFTEST_FAILED);
	assert_int_equal(judged(SELFTEST_LOOK, "rlimit.lock", ""), SELFTEST_FAILED);
	assert_int_equal(judged(SELFTEST_LOOK, "rlimit.lock", "done"), SELFTEST_FAILED);
}

static void numbers_are_at_most_what_they_may_be(void **state)
{
	(void)state;
	assert_int_equal(judged(SELFTEST_LOOK, "rlimit.NOFILE", "256"), SELFTEST_OK);
	assert_int_equal(judged(SELFTEST_LOOK, "rlimit.NOFILE", "0"), SELFTEST_OK);
	assert_int_equal(judged(SELFTEST_LOOK, "rlimit.NOFILE", "257"), SELFTEST_FAILED);
	assert_int_equal(judged(SELFTEST_LOOK, "rlimit.NOFILE", "unlimited"), SELFTEST_FAILED);
	assert_int_equal(judged(SELFTEST_LOOK, "rlimit.NOFILE", "-1"), SELFTEST_FAILED);
}

static void a_namespace_is_another_one_than_this_process_has(void **state)
{
	char own[64];
	ssize_t n = readlink("/proc/self/ns/net", own, sizeof(own) - 1);

	(void)state;
	assert_true(n > 0);
	own[n] = '\0';
	assert_int_equal(judged(SELFTEST_LOOK, "ns.net", own), SELFTEST_FAILED);
	assert_int_equal(judged(SELFTEST_LOOK, "ns.net", "net:[1]"), SELFTEST_OK);
	assert_int_equal(judged(SELFTEST_LOOK, "ns.net", "pid:[1]"), SELFTEST_FAILED);
	assert_int_equal(judged(SELFTEST_LOOK, "ns.net", "something"), SELFTEST_FAILED);
}

static void only_the_outside_can_say_that_something_is_not_possible(void **state)
{
	unsigned i = index_of(SELFTEST_HOST, "spin.throttled");

	(void)state;
	forget();
	selftest_impossible(&s, "spin.throttled", "too busy");
	assert_int_equal(selftest_judge(&s, i), SELFTEST_IMPOSSIBLE);
	assert_int_equal(judged(SELFTEST_LOOK, "pid.number", "\1too busy"), SELFTEST_FAILED);
	forget();
	selftest_impossible(&s, "pid.number", "too busy"); /* a cell's probe */
	assert_int_equal(
		selftest_judge(&s, index_of(SELFTEST_LOOK, "pid.number")), SELFTEST_FAILED);
}

static void a_terminal_sees_no_byte_that_it_would_obey(void **state)
{
	unsigned i = index_of(SELFTEST_LOOK, "uts.name");

	(void)state;
	assert_int_equal(judged(SELFTEST_LOOK, "uts.name", "\x1b[31mred\n\x9b"), SELFTEST_FAILED);
	assert_string_equal(s.facts[SELFTEST_COLD][i].got, "?[31mred??");
}

static void what_fails_in_one_way_of_starting_has_failed(void **state)
{
	unsigned i = index_of(SELFTEST_LOOK, "pid.number");

	(void)state;
	forget();
	s.cold_only = false;
	selftest_say(&s, SELFTEST_LOOK, "pid.number", "2");
	assert_int_equal(selftest_judge(&s, i), SELFTEST_FAILED); /* nothing of the other */
	s.way = SELFTEST_WARM;
	selftest_say(&s, SELFTEST_LOOK, "pid.number", "2");
	assert_int_equal(selftest_judge(&s, i), SELFTEST_OK);
	s.facts[SELFTEST_COLD][i].got[0] = '3';
	assert_int_equal(selftest_judge(&s, i), SELFTEST_FAILED);
	assert_int_equal(selftest_way_of(&s, i), SELFTEST_COLD);
}

static struct selftest_record good(void)
{
	return (struct selftest_record){
		.magic = SELFTEST_MAGIC,
		.probes = 10,
		.failed = 2,
		.impossible = 8,
		.at = "2026-01-31T12:00:00Z",
		.first_failed = "ns.net",
	};
}

#define REFUSED(change)                                     \
	do {                                                \
		struct selftest_record r = good();          \
		change;                                     \
		assert_non_null(selftest_record_fault(&r)); \
	} while (0)

static void a_result_that_does_not_add_up_is_not_believed(void **state)
{
	const struct selftest_record whole = good();

	(void)state;
	assert_null(selftest_record_fault(&whole));
	REFUSED(r.magic = 0);
	REFUSED(r.failed = 11);
	REFUSED(r.failed = UINT32_MAX);
	REFUSED(r.impossible = 9);
	REFUSED(r.failed = 0);
	REFUSED(r.first_failed[0] = '\0');
	REFUSED(memset(r.at, 'x', sizeof(r.at)));
	REFUSED(r.at[3] = '\n');
	REFUSED(memset(r.first_failed, 'x', sizeof(r.first_failed)));
	REFUSED(r.first_failed[0] = '\x80');
	REFUSED(r.first_failed[0] = '\x7f');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_probe_has_a_name_of_its_own_a_layer_and_a_sentence),
		cmocka_unit_test(a_probe_of_which_nothing_is_heard_has_failed),
		cmocka_unit_test(what_is_said_twice_is_no_fact),
		cmocka_unit_test(only_the_source_that_a_probe_names_can_speak_for_it),
		cmocka_unit_test(words_are_compared_whole),
		cmocka_unit_test(numbers_are_at_most_what_they_may_be),
		cmocka_unit_test(a_namespace_is_another_one_than_this_process_has),
		cmocka_unit_test(only_the_outside_can_say_that_something_is_not_possible),
		cmocka_unit_test(what_fails_in_one_way_of_starting_has_failed),
		cmocka_unit_test(a_terminal_sees_no_byte_that_it_would_obey),
		cmocka_unit_test(a_result_that_does_not_add_up_is_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
