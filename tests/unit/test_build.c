/* The place for what a compiler makes: who may write to it and who may execute from it, and that
 * whichever call fails is said. As root, in a mount namespace of our own. */
#include "tests/unit/unit.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/mount.h"
#include "kernel/sys.h"
#include "priv/launch/build.h"
#include "tests/lib/flaky.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define NUMBER    7
#define PLACE     VIEW_DIR "/build.7"
#define CALLS_MAX 100

static const struct view_scratch how = { .bytes = 1 << 20, .inodes = 64, .uid = 2000017 };

static int begin(void **state)
{
	struct fault f = { 0 };

	(void)state;
	(void)mkdir("/run/glovebox", 0711);
	(void)mkdir(VIEW_DIR, 0700);
	if (mount_make_private(&f) < 0)
		fail_msg("%s", f.text);
	return mount("tmpfs", VIEW_DIR, "tmpfs", 0, "size=1m");
}

static int end(void **state)
{
	(void)state;
	build_drop(NUMBER);
	return umount2(VIEW_DIR, MNT_DETACH);
}

static void make(void)
{
	struct fault f = { 0 };

	if (build_make(NUMBER, &how, &f) < 0)
		fail_msg("%s", f.text);
}

static unsigned long flags_of(int fd)
{
	struct statvfs st;

	assert_int_equal(fstatvfs(fd, &st), 0);
	return st.f_flag & (ST_RDONLY | ST_NOEXEC | ST_NODEV | ST_NOSUID);
}

static void only_a_compiler_writes_and_only_a_program_executes(void **state)
{
	cleanup_fd int compiler = -1, program = -1;
	struct fault f = { 0 };
	struct stat st;

	(void)state;
	make();
	assert_int_equal(build_mount(NUMBER, true, &compiler, &f), 0);
	assert_int_equal(build_mount(NUMBER, false, &program, &f), 0);
	assert_int_equal(flags_of(compiler), ST_NOEXEC | ST_NODEV | ST_NOSUID);
	assert_int_equal(flags_of(program), ST_RDONLY | ST_NODEV | ST_NOSUID);
	assert_int_equal(fstat(compiler, &st), 0);
	assert_int_equal(st.st_uid, how.uid);
}

/* Its folder stays, and what was in it does not. */
static void a_place_that_was_let_go_is_made_anew(void **state)
{
	struct stat st;

	(void)state;
	make();
	assert_int_equal(mkdir(PLACE "/left", 0700), 0);
	build_drop(NUMBER);
	make();
	assert_int_equal(stat(PLACE "/left", &st), -1);
	assert_int_equal(errno, ENOENT);
}

/* Neither a place nor its folder is missed. */
static void what_is_not_there_is_let_go_of(void **state)
{
	(void)state;
	assert_int_equal(build_drop(NUMBER + 1), 0);
	make();
	assert_int_equal(build_drop(NUMBER), 0);
	assert_int_equal(build_drop(NUMBER), 0);
}

static void whichever_call_fails_is_said(void **state)
{
	unsigned n, made = 0, shown = 0;

	(void)state;
	for (n = 0; n < CALLS_MAX; n++) {
		struct fault f = { 0 };
		int r;

		flaky_arm(n, EIO);
		r = build_make(NUMBER, &how, &f);
		if (!flaky_disarm())
			break;
		made++;
		assert_true(r == -EIO && f.text[0]);
	}
	assert_in_range(made, 4, CALLS_MAX - 1); /* the folder; a tmpfs, its mount, in its place */
	for (n = 0; n < CALLS_MAX; n++) {
		cleanup_fd int fd = -1;
		struct fault f = { 0 };
		int r;

		flaky_arm(n, EIO);
		r = build_mount(NUMBER, true, &fd, &f);
		if (!flaky_disarm())
			break;
		shown++;
		assert_int_equal(r, -EIO);
		assert_int_equal(fd, -1);
		if (strncmp(f.text, "show a build: ", 14) != 0)
			fail_msg("%s", f.text);
	}
	assert_int_equal(shown, 2); /* cloned, and given its attributes */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(only_a_compiler_writes_and_only_a_program_executes),
		CASE(a_place_that_was_let_go_is_made_anew),
		CASE(what_is_not_there_is_let_go_of),
		CASE(whichever_call_fails_is_said),
	};

	return cmocka_run_group_tests_name("build", tests, NULL, NULL);
}
