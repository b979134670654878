/* Files below the directory of `glovebox run --out`: what was there goes when what comes is whole. */
#include "unit.h"

#include "caller/cli/run_out.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/run_out.XXXXXX";
static struct run_out out;
static int close_error; /* of files that are written; 0: none */

int __real_close(int fd);
int __wrap_close(int fd);

int __wrap_close(int fd)
{
	bool fails = close_error && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY;
	int r = __real_close(fd);

	errno = fails ? close_error : errno;
	return fails ? -1 : r;
}

static int begin(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/run_out.XXXXXX");
	assert_non_null(mkdtemp(dir));
	out = RUN_OUT_NONE;
	out.quiet = true;
	assert_int_equal(run_out_open(&out, dir), 0);
	assert_int_equal(symlinkat("nowhere", out.dir_fd, "a"), 0);
	close_error = 0;
	return 0;
}

/* Everything that is there goes. */
static int end(void **state)
{
	(void)state;
	(void)unlinkat(out.dir_fd, "a", 0);
	run_out_close(&out);
	/* No part of a file was left under any name. */
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

static void take(enum gbx_artifact_event event, const char *bytes, const char *reason)
{
	const struct gbx_artifact a = { .path = "a", .reason = reason };

	run_out_take(&out, (int)event, &a, bytes, strlen(bytes));
}

static bool is_as_it_was(void)
{
	char to[16] = "";

	return readlinkat(out.dir_fd, "a", to, sizeof(to) - 1) == 7 && strcmp(to, "nowhere") == 0;
}

static int outcome(void)
{
	const struct gbx_result result = { .artifacts_complete = 1 };

	return run_out_end(&out, &result);
}

static void what_is_whole_is_in_the_place_of_what_was_there(void **state)
{
	char text[16] = "";
	struct stat st;
	int fd;

	(void)state;
	take(GBX_ARTIFACT_BEGIN, "", NULL);
	take(GBX_ARTIFACT_BYTES, "new", NULL);
	assert_true(is_as_it_was());
	take(GBX_ARTIFACT_END, "", NULL);
	fd = openat(out.dir_fd, "a", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof(text)), 3);
	assert_string_equal(text, "new");
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_nlink, 1);
	(void)__real_close(fd);
	assert_int_equal(outcome(), 0);
}

static void a_full_disk_leaves_what_was_there(void **state)
{
	struct rlimit was, small;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	small = (struct rlimit){ .rlim_cur = 2, .rlim_max = was.rlim_max };
	assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	take(GBX_ARTIFACT_BEGIN, "", NULL);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	take(GBX_ARTIFACT_BYTES, "new", NULL);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	take(GBX_ARTIFACT_BYTES, "er", NULL);
	take(GBX_ARTIFACT_END, "", NULL);
	assert_true(is_as_it_was());
	assert_int_equal(outcome(), -1);
}

/* NFS, FUSE and quotas may say so only then. */
static void a_disk_that_is_full_when_it_closes_leaves_what_was_there(void **state)
{
	(void)state;
	take(GBX_ARTIFACT_BEGIN, "", NULL);
	take(GBX_ARTIFACT_BYTES, "new", NULL);
	close_error = EDQUOT;
	take(GBX_ARTIFACT_END, "", NULL);
	close_error = 0;
	assert_true(is_as_it_was());
	assert_int_equal(outcome(), -1);
}

static void a_file_that_is_left_out_in_the_end_leaves_what_was_there(void **state)
{
	(void)state;
	take(GBX_ARTIFACT_BEGIN, "", NULL);
	take(GBX_ARTIFACT_BYTES, "new", NULL);
	take(GBX_ARTIFACT_END, "", "changed");
	assert_true(is_as_it_was());
	assert_int_equal(outcome(), 0);
}

static void an_end_in_the_middle_leaves_no_part(void **state)
{
	(void)state;
	take(GBX_ARTIFACT_BEGIN, "", NULL);
	take(GBX_ARTIFACT_BYTES, "new", NULL);
	assert_true(is_as_it_was());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			what_is_whole_is_in_the_place_of_what_was_there, begin, end),
		cmocka_unit_test_setup_teardown(a_full_disk_leaves_what_was_there, begin, end),
		cmocka_unit_test_setup_teardown(
			a_disk_that_is_full_when_it_closes_leaves_what_was_there, begin, end),
		cmocka_unit_test_setup_teardown(
			a_file_that_is_left_out_in_the_end_leaves_what_was_there, begin, end),
		cmocka_unit_test_setup_teardown(an_end_in_the_middle_leaves_no_part, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
