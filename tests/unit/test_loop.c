/* The loop device of an image: others take free ones, too, between the question which one is free and
 * its use. Every device here is /dev/null. */
#include "unit.h"

#include "base/fault.h"
#include "kernel/image.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <string.h>
#include <unistd.h>

static struct sys_ops real;
static unsigned asked, taken_first; /* so many times somebody else was first */
static int code;

static int null_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	(void)dir_fd;
	(void)path;
	return real.openat(AT_FDCWD, "/dev/null", flags, mode);
}

static int loop_ioctl(int fd, unsigned long op, void *arg)
{
	(void)fd;
	(void)arg;
	if (op == LOOP_CTL_GET_FREE)
		return (int)asked;
	return asked++ < taken_first ? -EBUSY : code;
}

static int no_squashfs(const char *type, unsigned flags)
{
	(void)type;
	(void)flags;
	return -ENODEV;
}

static int begin(void **state)
{
	(void)state;
	real = sys;
	sys.openat = null_openat;
	sys.ioctl = loop_ioctl;
	sys.fsopen = no_squashfs;
	asked = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	sys = real;
	return 0;
}

static void expect(int want, const char *words)
{
	struct fault f = { 0 };
	int fd = -1;

	assert_int_equal(image_mount(0, &fd, &f), want);
	assert_int_equal(fd, -1);
	if (!strstr(f.text, words))
		fail_msg("%s", f.text);
}

static void a_device_that_somebody_else_took_is_not_the_only_one(void **state)
{
	(void)state;
	taken_first = 3;
	code = 0;
	expect(-ENODEV, "fsopen");
	assert_int_equal(asked, 4);
}

static void who_is_always_first_does_not_keep_us_for_ever(void **state)
{
	(void)state;
	taken_first = 1000;
	expect(-EBUSY, "behind /dev/loop");
	assert_in_range(asked, 2, 100);
}

static void what_is_refused_for_another_reason_is_not_tried_again(void **state)
{
	(void)state;
	taken_first = 0;
	code = -EPERM;
	expect(-EPERM, "/dev/loop0");
	assert_int_equal(asked, 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_device_that_somebody_else_took_is_not_the_only_one),
		CASE(who_is_always_first_does_not_keep_us_for_ever),
		CASE(what_is_refused_for_another_reason_is_not_tried_again),
	};

	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
