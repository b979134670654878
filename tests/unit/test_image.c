#include "unit.h"

#include "base/check.h"
#include "wire/image.h"

#include <stdio.h>
#include <string.h>

static struct image_record good(void)
{
	struct image_record r = { .magic = IMAGE_MAGIC, .name = "test", .inventory_bytes = 1 };

	(void)snprintf(r.arch, sizeof(r.arch), "%s", image_host_arch());
	(void)snprintf(r.start.argv[0], RUNTIME_PATH_MAX, "/bin/sh");
	(void)snprintf(r.start.main_file, RUNTIME_PATH_MAX, "main.sh");
	return r;
}

static void refuse(const struct image_record *r, const char *part)
{
	const char *why = image_record_fault(r);

	assert_non_null(why);
	if (!strstr(why, part))
		fail_msg("\"%s\" is not about \"%s\"", why, part);
}

#define REFUSE(part, change)                    \
	do {                                    \
		struct image_record r = good(); \
		change;                         \
		refuse(&r, part);               \
	} while (0)

static void a_record_is_believed_only_when_every_field_can_be_used(void **state)
{
	const struct image_record as_made = good();
	struct image_record words = good();

	(void)state;
	assert_null(image_record_fault(&as_made));
	memcpy(words.start.argv[1], "\xc3\xa4\xe2\x82\xac", 6); /* text beyond ASCII is none */
	assert_null(image_record_fault(&words));
	/* U+00A0 is the first behind the controls; half a character is none of them. */
	memcpy(words.start.argv[1], "\xc2\xa0 \xc2-\xc2", 7);
	assert_null(image_record_fault(&words));
	REFUSE("another version", r.magic++);
	REFUSE("flag", r.trusted = 2);
	REFUSE("name", memset(r.name, 'x', sizeof(r.name)));
	REFUSE("name", r.name[0] = '\0');
	REFUSE("name", memcpy(r.name, "a/b", 4));
	REFUSE("architecture", r.arch[0] = 'x');
	REFUSE("terminated", memset(r.arch, 'x', sizeof(r.arch)));
	REFUSE("terminated", memset(r.at, 'x', sizeof(r.at)));
	REFUSE("flag", r.start.warm = 2);
	REFUSE("flag", r.start.full_proc = 2);
	REFUSE("modules", memset(r.start.preload, 'x', sizeof(r.start.preload)));
	REFUSE("modules", memcpy(r.start.preload, "os;x", 5));
	REFUSE("inventory", r.inventory_bytes = 0);
	REFUSE("inventory", r.inventory_bytes = IMAGE_INVENTORY_MAX + 1);
	REFUSE("timeout", r.start.limits.timeout_us = 1);
	REFUSE("memory", r.start.limits.memory_bytes = LIMIT_MEMORY_MAX_BYTES + 1);
	REFUSE("cpu", r.start.limits.cpu_milli = 1);
	REFUSE("pids", r.start.limits.pids = LIMIT_PIDS_MAX + 1);
	REFUSE("CPU time", r.start.limits.cpu_time_us = 1);
	REFUSE("terminated", memset(r.start.argv, 'x', sizeof(r.start.argv)));
	REFUSE("terminated", memset(r.start.env[RUNTIME_ENV_MAX - 1], 'x', RUNTIME_PATH_MAX));
	REFUSE("absolute", memcpy(r.start.argv[0], "bin", 4));
	REFUSE("absolute", memcpy(r.start.argv[0], "/../x", 6));
	REFUSE("main-file", memcpy(r.start.main_file, "../x", 5));
	REFUSE("control", memcpy(r.start.argv[0], "/\x1b[31m", 7));
	REFUSE("control", memcpy(r.start.argv[1], "\x7f", 2));
	REFUSE("control", memcpy(r.start.argv[1], "\xc2\x9b", 3));
	REFUSE("control", memcpy(r.start.main_file, "a\n", 3));
	REFUSE("NAME=VALUE", memcpy(r.start.env[0], "PATH", 5));
}

static void an_interpreter_is_warm_only_when_it_fits_and_is_trusted(void **state)
{
	struct image_record r = good();

	(void)state;
	assert_false(image_is_warm(&r));
	r.start.warm = 1;
	assert_false(image_is_warm(&r));
	r.trusted = 1;
	assert_true(image_is_warm(&r));
	r.start.warm = 0;
	assert_false(image_is_warm(&r));
}

static void an_inventory_is_lines_of_printable_text(void **state)
{
	static char large[IMAGE_INVENTORY_MAX + 1];

	(void)state;
	assert_true(image_inventory_is_valid("\n", 1));
	assert_true(image_inventory_is_valid("3.11.2\na 1 dpkg\n", 16));
	assert_false(image_inventory_is_valid("", 0));
	assert_false(image_inventory_is_valid("3", 1));
	assert_false(image_inventory_is_valid("\x1b[31m\n", 6));
	assert_false(image_inventory_is_valid("a\tb\n", 4));
	assert_false(image_inventory_is_valid("\x7f\n", 2));
	assert_false(image_inventory_is_valid("\xc3\xa4\n", 3));
	assert_false(image_inventory_is_valid("a\0b\n", 4));
	memset(large, '\n', sizeof(large));
	assert_true(image_inventory_is_valid(large, sizeof(large) - 1));
	assert_false(image_inventory_is_valid(large, sizeof(large)));
}

static void names_have_nothing_that_a_path_could_use(void **state)
{
	static const char *const right[] = { "a", "python-data", "A_1.2", "0" };
	static const char *const wrong[] = { "", ".", "..", ".new-1", "-x", "a/b", "a b", "a\n",
		"\xc3\xa4", "a:b", "a{", "a@", "a[" };
	char longest[IMAGE_NAME_MAX + 1];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(right); i++)
		assert_true(image_name_is_valid(right[i]));
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_false(image_name_is_valid(wrong[i]));
	memset(longest, 'x', sizeof(longest));
	longest[IMAGE_NAME_MAX] = '\0';
	assert_false(image_name_is_valid(longest));
	longest[IMAGE_NAME_MAX - 1] = '\0';
	assert_true(image_name_is_valid(longest));
}

/* ---- What an image is built of ---- */

static struct msg_plan plan(void)
{
	struct msg_plan p = { .name = "test",
		.suite = "bookworm",
		.variant = "apt",
		.packages = { "gcc-12", "libstdc++6" },
		.start = good().start };

	return p;
}

static void refuse_plan(const struct msg_plan *p, const char *part)
{
	const char *why = plan_fault(p);

	assert_non_null(why);
	if (!strstr(why, part))
		fail_msg("\"%s\" is not about \"%s\"", why, part);
}

#define REFUSE_PLAN(part, change)           \
	do {                                \
		struct msg_plan p = plan(); \
		change;                     \
		refuse_plan(&p, part);      \
	} while (0)

static void fill_packages(struct msg_plan *p)
{
	for (unsigned i = 0; i < PLAN_PACKAGES_MAX; i++)
		memcpy(p->packages[i], "gcc", 4);
}

/* Its words become the arguments of a program that root starts. */
static void a_plan_is_followed_only_when_every_word_can_be_used(void **state)
{
	struct msg_plan read = plan();

	(void)state;
	assert_null(plan_fault(&read));
	read.suite[0] = '\0'; /* the host's own */
	assert_null(plan_fault(&read));
	fill_packages(&read);
	read.packages[PLAN_PACKAGES_MAX - 1][0] = '\0';
	assert_null(plan_fault(&read));
	REFUSE_PLAN("name", memset(p.name, 'x', sizeof(p.name)));
	REFUSE_PLAN("name", memcpy(p.name, "-x", 3));
	REFUSE_PLAN("release", memset(p.suite, 'x', sizeof(p.suite)));
	REFUSE_PLAN("release", memcpy(p.suite, "--x", 4));
	REFUSE_PLAN("variant", memset(p.variant, 'x', sizeof(p.variant)));
	REFUSE_PLAN("variant", p.variant[0] = '\0');
	REFUSE_PLAN("package", memset(p.packages[1], 'x', PLAN_PACKAGE_MAX));
	REFUSE_PLAN("package", memcpy(p.packages[1], "--hook", 7));
	REFUSE_PLAN("no packages", p.packages[0][0] = '\0');
	REFUSE_PLAN("no end", fill_packages(&p));
	REFUSE_PLAN("absolute", memcpy(p.start.argv[0], "bin", 4));
}

static void a_package_is_named_as_debian_has_it(void **state)
{
	static const char *const right[] = { "gcc", "g++", "0ad", "libc6.1-dev", "zz", "99" };
	static const char *const wrong[] = { "", "a", "-a", "+a", ".a", "A1", "a/b", "a b", "a_b",
		"a=1", "a\n", "a{", "a:b", "\xc3\xa4" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(right); i++)
		assert_true(plan_package_is_valid(right[i]));
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		if (plan_package_is_valid(wrong[i]))
			fail_msg("%s", wrong[i]);
	}
	assert_true(plan_word_is_valid("a"));
	assert_false(plan_word_is_valid("a+b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_is_believed_only_when_every_field_can_be_used),
		cmocka_unit_test(an_interpreter_is_warm_only_when_it_fits_and_is_trusted),
		cmocka_unit_test(an_inventory_is_lines_of_printable_text),
		cmocka_unit_test(names_have_nothing_that_a_path_could_use),
		cmocka_unit_test(a_plan_is_followed_only_when_every_word_can_be_used),
		cmocka_unit_test(a_package_is_named_as_debian_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
