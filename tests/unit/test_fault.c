#include "unit.h"

#include "base/check.h"
#include "base/fault.h"

#include <errno.h>
#include <string.h>

static void set_records_the_code_and_appends_its_meaning(void **state)
{
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(fault_set(&f, -ENOENT, "open %s", "x"), -ENOENT);
	assert_int_equal(f.code, -ENOENT);
	assert_string_equal(f.text, "open x: No such file or directory");
}

static void say_leaves_the_text_as_it_is(void **state)
{
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(fault_say(&f, -EINVAL, "pids must be at least %d", 1), -EINVAL);
	assert_int_equal(f.code, -EINVAL);
	assert_string_equal(f.text, "pids must be at least 1");
}

static void wrap_puts_context_in_front_and_keeps_the_code(void **state)
{
	struct fault f = { 0 };

	(void)state;
	(void)fault_say(&f, -EPERM, "inner");
	assert_int_equal(fault_wrap(&f, "middle %d", 2), -EPERM);
	assert_int_equal(fault_wrap(&f, "outer"), -EPERM);
	assert_string_equal(f.text, "outer: middle 2: inner");
}

static void text_that_does_not_fit_loses_its_end(void **state)
{
	struct fault f = { 0 };
	char big[2 * sizeof(f.text)];

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	(void)fault_say(&f, -EIO, "%s", big);
	assert_int_equal(strlen(f.text), sizeof(f.text) - 1);
	(void)fault_wrap(&f, "front");
	assert_memory_equal(f.text, "front: xxx", 10);
	assert_int_equal(strlen(f.text), sizeof(f.text) - 1);
	(void)fault_wrap(&f, "%s", big);
	assert_int_equal(strlen(f.text), sizeof(f.text) - 1);
	assert_int_equal(f.code, -EIO);
}

static void no_fault_to_fill_still_returns_the_code(void **state)
{
	(void)state;
	assert_int_equal(fault_set(NULL, -ENOMEM, "x"), -ENOMEM);
	assert_int_equal(fault_say(NULL, -ENOMEM, "x"), -ENOMEM);
}

static void unknown_errno_still_has_a_text(void **state)
{
	struct fault f = { 0 };

	(void)state;
	(void)fault_set(&f, -4000, "odd");
	assert_string_equal(f.text, "odd: unknown error");
}

static void laundering_ends_the_text_and_hides_control_bytes(void **state)
{
	struct fault f = { .code = -EBADF };

	(void)state;
	memset(f.text, 'a', sizeof(f.text));
	f.text[0] = '\n';
	f.text[1] = '\x1b';
	f.text[2] = '\x7f';
	f.text[3] = '\xff';
	assert_int_equal(fault_launder(&f), -EBADF);
	assert_memory_equal(f.text, "????a", 5);
	assert_int_equal(strlen(f.text), sizeof(f.text) - 1);
}

static void laundering_refuses_codes_that_are_no_negative_errno(void **state)
{
	static const int codes[] = { 0, 1, EINVAL, -4096, INT_MIN, INT_MAX };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		struct fault f = { .code = codes[i] };

		assert_int_equal(fault_launder(&f), -EPROTO);
		assert_int_equal(f.code, -EPROTO);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_records_the_code_and_appends_its_meaning),
		cmocka_unit_test(say_leaves_the_text_as_it_is),
		cmocka_unit_test(wrap_puts_context_in_front_and_keeps_the_code),
		cmocka_unit_test(text_that_does_not_fit_loses_its_end),
		cmocka_unit_test(no_fault_to_fill_still_returns_the_code),
		cmocka_unit_test(unknown_errno_still_has_a_text),
		cmocka_unit_test(laundering_ends_the_text_and_hides_control_bytes),
		cmocka_unit_test(laundering_refuses_codes_that_are_no_negative_errno),
	};

	return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
