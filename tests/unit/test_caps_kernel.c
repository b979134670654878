/* Capabilities, as kernels tell of them that do not do what they were asked, or have more or fewer
 * than this one. No root: no call of it is really made. */
#include "tests/unit/unit.h"

#include "base/fault.h"
#include "kernel/caps.h"
#include "kernel/sys.h"
#include "tests/lib/other_kernel.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static struct {
	int capget_fails;
	struct __user_cap_data_struct sets[2];
	int in_bounding, last; /* what it says of each, up to the last one that it has */
	int ambient;
} host;

static struct sys_ops real;

static bool capget(long number, const long args[6], long *ret)
{
	if (number != SYS_capget)
		return false;
	memcpy((void *)(uintptr_t)args[1], host.sets, sizeof(host.sets));
	*ret = host.capget_fails;
	return true;
}

static int fake_prctl(int op, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	(void)b;
	(void)c;
	(void)d;
	if (op == PR_CAPBSET_READ)
		return (long)a <= host.last ? host.in_bounding : -EINVAL;
	if (op == PR_CAP_AMBIENT && a == PR_CAP_AMBIENT_IS_SET)
		return host.ambient;
	return 0;
}

static int fake_capset(
	struct __user_cap_header_struct *header, const struct __user_cap_data_struct *sets)
{
	(void)header;
	(void)sets;
	return 0;
}

static int begin(void **state)
{
	(void)state;
	real = sys;
	memset(&host, 0, sizeof(host));
	host.last = 40;
	sys.prctl = fake_prctl;
	sys.capset = fake_capset;
	other_kernel(capget);
	return 0;
}

static int end(void **state)
{
	(void)state;
	other_kernel(NULL);
	sys = real;
	return 0;
}

static void is_told(const char *words)
{
	struct fault f = { 0 };

	assert_true(caps_keep_only(0, &f) < 0);
	if (!strstr(f.text, words))
		fail_msg("%s", f.text);
}

static void sets_that_are_empty_are_believed(void **state)
{
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(caps_keep_only(0, &f), 0);
	host.last = 63; /* a kernel that has as many as there is room for */
	assert_int_equal(caps_keep_only(0, &f), 0);
}

static void sets_that_cannot_be_read_are_said_and_count_as_none(void **state)
{
	(void)state;
	host.sets[0].permitted = 1;
	assert_int_equal(caps_permitted(), 1);
	host.capget_fails = -EINVAL;
	assert_int_equal(caps_permitted(), 0);
	is_told("read the capabilities");
}

static void a_set_that_is_not_empty_is_no_success(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		memset(host.sets, 0, sizeof(host.sets));
		host.sets[1].effective = i == 0;
		host.sets[1].permitted = i == 1;
		host.sets[1].inheritable = i == 2;
		is_told("capabilities are permitted");
	}
}

static void what_is_still_in_the_bounding_set_is_said(void **state)
{
	(void)state;
	host.in_bounding = 1;
	is_told("capability 0 is still in the bounding set");
}

static void what_is_still_ambient_is_said(void **state)
{
	(void)state;
	host.ambient = 1;
	is_told("capability 0 is still ambient");
}

static void a_bounding_set_that_cannot_be_read_is_said(void **state)
{
	struct fault f = { 0 };

	(void)state;
	host.last = -1; /* no capability at all is no answer */
	is_told("read the bounding set");
	assert_int_equal(caps_clear(&f), -EINVAL); /* when it is read back, too */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(sets_that_are_empty_are_believed),
		CASE(sets_that_cannot_be_read_are_said_and_count_as_none),
		CASE(a_set_that_is_not_empty_is_no_success),
		CASE(what_is_still_in_the_bounding_set_is_said),
		CASE(what_is_still_ambient_is_said),
		CASE(a_bounding_set_that_cannot_be_read_is_said),
	};

	return cmocka_run_group_tests_name("caps_kernel", tests, NULL, NULL);
}
