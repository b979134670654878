#include "unit.h"

#include "base/check.h"
#include "wire/image.h"

#include <stdio.h>
#include <string.h>

static struct image_record good(void)
{
	struct image_record r = { .magic = IMAGE_MAGIC, .name = "test" };

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

static void names_have_nothing_that_a_path_could_use(void **state)
{
	static const char *const right[] = { "a", "python-data", "A_1.2", "0" };
	static const char *const wrong[] = { "", ".", "..", ".new-1", "-x", "a/b", "a b", "a\n",
		"\xc3\xa4", "a:b" };
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_is_believed_only_when_every_field_can_be_used),
		cmocka_unit_test(an_interpreter_is_warm_only_when_it_fits_and_is_trusted),
		cmocka_unit_test(names_have_nothing_that_a_path_could_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
