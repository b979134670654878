/* Languages as one process tells another of them: what is believed, and what is found in it. */
#include "unit.h"

#include "api_settings.h"
#include "base/check.h"
#include "wire/language.h"

#include <stdio.h>
#include <string.h>

static struct language good(void)
{
	struct language l = {
		.runtime = { .name = "lua",
			.main_file = "main.lua",
			.argv = { "/usr/bin/lua" },
			.roots = { "/usr" } },
		.offer = { .name = "lua", .main_file = "main.lua", .aliases = { "lua5.4" } },
	};

	return l;
}

static void refuse(const struct language *l, const char *part)
{
	const char *why = language_fault(l);

	assert_non_null(why);
	if (!strstr(why, part))
		fail_msg("\"%s\" is not about \"%s\"", why, part);
}

#define REFUSE(part, change)                \
	do {                                \
		struct language l = good(); \
		change;                     \
		refuse(&l, part);           \
	} while (0)

static void a_language_is_believed_only_when_every_field_can_be_used(void **state)
{
	const struct language as_read = good();

	(void)state;
	assert_null(language_fault(&as_read));
	REFUSE("roots", l.runtime.roots[0][0] = '\0');
	REFUSE("main-file", l.offer.main_file[0] = '\0');
	REFUSE("two names", l.offer.main_file[0] = 'n');
	REFUSE("two names", l.offer.name[0] = 'm');
	REFUSE("a suffix", l.offer.suffixes[0][0] = '\n');
	REFUSE("a suffix", l.offer.suffixes[0][0] = '\x7f');
	REFUSE("package", l.offer.package[0] = '\t');
	REFUSE("none of an image", {
		l.offer.is_image = 1;
		l.offer.name[0] = '/';
	});
	REFUSE("a flag", l.offer.is_image = 2);
	REFUSE("a flag", l.offer.compiled = 2);
	REFUSE("a flag", l.offer.reports = 2);
	REFUSE("a flag", l.offer.reserved = 1);
}

/* Whoever goes through a list stops at its end. */
static void a_list_without_an_end_is_refused(void **state)
{
	(void)state;
	REFUSE("no end", l.offer.aliases[LANGUAGE_ALIASES_MAX - 1][0] = 'x');
	REFUSE("no end", l.offer.suffixes[LANGUAGE_SUFFIXES_MAX - 1][0] = 'x');
}

static void names_are_of_small_letters_digits_and_signs(void **state)
{
	static const char *const right[] = { "c", "c++", "c#", "objective-c", "lua5.4", "zz9" };
	static const char *const wrong[] = { "", "9a", "+c", "~", "{", "aB", "a b", "a{", "a~",
		"a/b", "a:", "a_b", "\xc3\xa4" };
	static struct language l;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(right); i++) {
		l = good();
		(void)snprintf(l.runtime.name, RUNTIME_NAME_MAX, "%s", right[i]);
		(void)snprintf(l.offer.name, RUNTIME_NAME_MAX, "%s", right[i]);
		if (language_fault(&l))
			fail_msg("%s: %s", right[i], language_fault(&l));
	}
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		l = good();
		(void)snprintf(l.offer.name, RUNTIME_NAME_MAX, "%s", wrong[i]);
		refuse(&l, "a name");
		l = good();
		(void)snprintf(l.offer.aliases[0], RUNTIME_NAME_MAX, "%s", wrong[i]);
		if (wrong[i][0])
			refuse(&l, "an alias");
	}
}

/* Each of the two sets; 0 stands for the server's own. */
static void limits_are_what_settings_could_allow(void **state)
{
	static const struct {
		const char *part;
		struct run_limits limits;
	} rows[] = {
		{ "timeout", { .timeout_us = LIMIT_TIMEOUT_MIN_US - 1 } },
		{ "timeout", { .timeout_us = LIMIT_TIMEOUT_MAX_US + 1 } },
		{ "memory", { .memory_bytes = LIMIT_MEMORY_MIN_BYTES - 1 } },
		{ "memory", { .memory_bytes = LIMIT_MEMORY_MAX_BYTES + 1 } },
		{ "cpu", { .cpu_milli = LIMIT_CPU_MIN_MILLI - 1 } },
		{ "cpu", { .cpu_milli = LIMIT_CPU_MAX_MILLI + 1 } },
		{ "pids", { .pids = LIMIT_PIDS_MAX + 1 } },
		{ "CPU time", { .cpu_time_us = 1 } },
	};
	const struct run_limits least = { .timeout_us = LIMIT_TIMEOUT_MIN_US,
		.memory_bytes = LIMIT_MEMORY_MIN_BYTES,
		.cpu_milli = LIMIT_CPU_MIN_MILLI,
		.pids = LIMIT_PIDS_MIN };
	const struct run_limits most = { .timeout_us = LIMIT_TIMEOUT_MAX_US,
		.memory_bytes = LIMIT_MEMORY_MAX_BYTES,
		.cpu_milli = LIMIT_CPU_MAX_MILLI,
		.pids = LIMIT_PIDS_MAX };
	struct language bounds = good();

	(void)state;
	bounds.offer.limits = least;
	bounds.offer.compile_limits = most;
	assert_null(language_fault(&bounds));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		REFUSE(rows[i].part, l.offer.limits = rows[i].limits);
		REFUSE(rows[i].part, l.offer.compile_limits = rows[i].limits);
	}
}

static void what_is_compiled_has_a_compiler_and_nothing_else_has_one(void **state)
{
	struct language c = good();

	(void)state;
	c.offer.compiled = 1;
	memcpy(c.compile_argv[0], "/usr/bin/cc", 12);
	assert_null(language_fault(&c));
	REFUSE("compiled", l.offer.compiled = 1);
	REFUSE("compiled", memcpy(l.compile_argv[0], "/usr/bin/cc", 12));
	REFUSE("absolute", l.offer.compiled = 1; memcpy(l.compile_argv[0], "cc", 3));
}

/* ---- What is found ---- */

static void a_name_is_looked_for_in_a_list_that_is_full(void **state)
{
	struct offers offers = { .count = 1, .of = { { .name = "a" } } };

	(void)state;
	for (unsigned i = 0; i < LANGUAGE_ALIASES_MAX; i++)
		(void)snprintf(offers.of[0].aliases[i], RUNTIME_NAME_MAX, "x%u", i);
	assert_int_equal(offers_find(&offers, "x7", 2), 0);
	assert_int_equal(offers_find(&offers, "x8", 2), -1);
}

static void names_are_told_as_far_as_there_is_room(void **state)
{
	const struct offers offers = { .count = 3,
		.of = { { .name = "python" }, { .name = "lua" }, { .name = "c" } } };
	char all[OFFERS_NAMES_MAX], few[5];

	(void)state;
	assert_int_equal(offers_names(&offers, false, all, sizeof(all)), 14);
	assert_string_equal(all, "python, lua, c");
	assert_int_equal(offers_names(&offers, true, all, sizeof(all)), 0);
	assert_string_equal(all, "");
	(void)offers_names(&offers, false, few, sizeof(few));
	assert_string_equal(few, "pyth");
}

static void a_compilers_limits_are_its_own_but_not_above_the_servers(void **state)
{
	const struct offers offers = { .count = 1,
		.of = { { .compile_limits = {
				  .memory_bytes = UINT64_C(128) << 20, .pids = 4096 } } } };
	struct settings s = api_settings;
	struct run_limits l;

	(void)state;
	s.def.cpu_time_us = s.max.cpu_time_us = 1000;
	offers_compile_limits(&offers, 0, &s, &l);
	assert_int_equal(l.memory_bytes, UINT64_C(128) << 20);
	assert_int_equal(l.pids, s.max.pids);
	assert_int_equal(l.timeout_us, s.def.timeout_us);
	assert_int_equal(l.cpu_time_us, 0);
	offers_compile_limits(&offers, 99, &s, &l);
	assert_int_equal(l.memory_bytes, s.def.memory_bytes);
	assert_int_equal(l.cpu_time_us, 0);
}

/* As the front hears of images that come and go. */
static void what_is_told_of_a_number_takes_the_place_of_what_was(void **state)
{
	static struct offers offers = { .count = 1, .of = { { .name = "python" } } };
	struct offer o = { .name = "A_1", .main_file = "main.sh", .is_image = 1 };
	const struct offer gone = { .is_image = 1 };
	char all[OFFERS_NAMES_MAX];

	(void)state;
	assert_null(offers_put(&offers, 1, 0, &o));
	assert_int_equal(offers.count, 2);
	assert_int_equal(offers_find_image(&offers, "A_1", 3), 1);
	assert_null(offers_put(&offers, 1, 0, &gone));
	assert_int_equal(offers_find_image(&offers, "A_1", 3), -1);
	assert_int_equal(offers_find_image(&offers, "", 0), -1);
	assert_null(offers_like(&offers, true, "A_1", 3));
	assert_int_equal(offers_names(&offers, true, all, sizeof(all)), 0);
	o.name[0] = 'b';
	assert_null(offers_put(&offers, 1, 1, &o));
	assert_int_equal(offers_find_image(&offers, "b_1", 3), 1);
	assert_int_equal(offers.editions[1], 1);
	assert_int_equal(offers.count, 2);
	assert_non_null(offers_put(&offers, 3, 0, &o)); /* the next one is 2 */
	assert_non_null(offers_put(&offers, 0, 0, &o)); /* which is a language */
	o.is_image = 0;
	assert_non_null(offers_put(&offers, 1, 0, &o));
	assert_non_null(offers_put(&offers, 2, 0, &(struct offer){ .reports = 1 }));
	o.is_image = 1;
	for (uint32_t i = 2; i < LANGUAGES_MAX; i++)
		assert_null(offers_put(&offers, i, 0, &gone));
	assert_non_null(offers_put(&offers, LANGUAGES_MAX, 0, &o));
	assert_int_equal(offers_names(&offers, true, all, sizeof(all)), 3);
	assert_string_equal(all, "b_1");
	o.name[0] = '/';
	assert_non_null(offers_put(&offers, 1, 2, &o));
	assert_int_equal(offers_find_image(&offers, "b_1", 3), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_told_of_a_number_takes_the_place_of_what_was),
		cmocka_unit_test(a_language_is_believed_only_when_every_field_can_be_used),
		cmocka_unit_test(a_list_without_an_end_is_refused),
		cmocka_unit_test(names_are_of_small_letters_digits_and_signs),
		cmocka_unit_test(limits_are_what_settings_could_allow),
		cmocka_unit_test(what_is_compiled_has_a_compiler_and_nothing_else_has_one),
		cmocka_unit_test(a_name_is_looked_for_in_a_list_that_is_full),
		cmocka_unit_test(names_are_told_as_far_as_there_is_room),
		cmocka_unit_test(a_compilers_limits_are_its_own_but_not_above_the_servers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
