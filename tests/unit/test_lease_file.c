/* The file of a lease when the kernel refuses something of it: what is refused is said, and what was
 * not swept stays written down. As root. */
#include "tests/unit/unit.h"

#include "base/fault.h"
#include "kernel/sys.h"
#include "priv/supervisor/lease.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int __wrap_chmod(const char *path, mode_t mode);
int __real_chmod(const char *path, mode_t mode);
int __wrap_fstat64(int fd, struct stat *ret);
int __real_fstat64(int fd, struct stat *ret);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t len, off_t at);
ssize_t __real_pwrite64(int fd, const void *bytes, size_t len, off_t at);
int __wrap_flock(int fd, int op);
int __real_flock(int fd, int op);

static const char *fails = "";
static int code; /* negative errno; for a write also the length that is written */
static struct sys_ops real;
static struct lease own;

static bool fails_now(const char *name)
{
	if (strcmp(fails, name) != 0)
		return false;
	errno = -code;
	return true;
}

int __wrap_chmod(const char *path, mode_t mode)
{
	return fails_now("chmod") ? -1 : __real_chmod(path, mode);
}

int __wrap_fstat64(int fd, struct stat *ret)
{
	return fails_now("fstat") ? -1 : __real_fstat64(fd, ret);
}

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t len, off_t at)
{
	if (fails_now("pwrite"))
		return code < 0 ? -1 : __real_pwrite64(fd, bytes, (size_t)code, at);
	return __real_pwrite64(fd, bytes, len, at);
}

int __wrap_flock(int fd, int op)
{
	return fails_now("flock") ? -1 : __real_flock(fd, op);
}

static int fake_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	return fails_now("openat") ? code : real.openat(dir_fd, path, flags, mode);
}

static int fake_mkdirat(int dir_fd, const char *path, mode_t mode)
{
	return fails_now("mkdirat") ? code : real.mkdirat(dir_fd, path, mode);
}

static int fake_ftruncate(int fd, off_t size)
{
	return fails_now("ftruncate") ? code : real.ftruncate(fd, size);
}

/* For lease_sweep(): the lines of our number are clean but for one. */
static const char *busy;
static char heard[8192];

static int hear(const char *line, unsigned number)
{
	if (number != own.number)
		return -EBUSY;
	(void)snprintf(heard + strlen(heard), sizeof(heard) - strlen(heard), "%s", line);
	return busy && strcmp(line, busy) == 0 ? -EBUSY : 0;
}

static const char *sweep(void)
{
	heard[0] = '\0';
	(void)lease_sweep(&own, hear);
	return heard;
}

static int begin(void **state)
{
	struct fault f = { 0 };

	(void)state;
	real = sys;
	sys.openat = fake_openat;
	sys.mkdirat = fake_mkdirat;
	sys.ftruncate = fake_ftruncate;
	fails = "";
	busy = NULL;
	if (lease_take(&own, &f) < 0)
		fail_msg("%s", f.text);
	(void)sweep();
	return 0;
}

static int end(void **state)
{
	(void)state;
	fails = "";
	busy = NULL;
	(void)sweep();
	lease_release(&own);
	sys = real;
	return 0;
}

static void is_not_taken(const char *call, int with, int want, const char *words)
{
	struct lease another = { .fd = -1 };
	struct fault f = { 0 };

	fails = call;
	code = with;
	assert_int_equal(lease_take(&another, &f), want);
	assert_int_equal(another.fd, -1);
	if (!strstr(f.text, words))
		fail_msg("%s", f.text);
}

static void a_lease_that_cannot_be_had_is_said(void **state)
{
	(void)state;
	is_not_taken("mkdirat", -EROFS, -EROFS, "mkdir " LEASE_DIR);
	is_not_taken("chmod", -EROFS, -EROFS, "chmod " LEASE_DIR);
	is_not_taken("openat", -EMFILE, -EMFILE, "lock " LEASE_DIR "/lease.0");
	is_not_taken("flock", -ENOLCK, -ENOLCK, "lock " LEASE_DIR "/lease.0");
	is_not_taken("flock", -EWOULDBLOCK, -EBUSY, "64 instances of Glovebox run already");
}

static void the_first_of_the_host_makes_the_folder(void **state)
{
	struct lease first;
	struct fault f = { 0 };

	(void)state;
	fails = "mkdirat";
	code = 0; /* made */
	assert_int_equal(lease_take(&first, &f), 0);
	lease_release(&first);
}

static void who_is_not_known_to_be_dead_lives(void **state)
{
	(void)state;
	assert_false(lease_is_dead(own.number, &own));
	assert_false(lease_is_dead(LEASE_MAX, &own));
	assert_true(lease_is_dead(LEASE_MAX - 1, &own)); /* the last that anybody gets */
	fails = "openat";
	code = -EMFILE;
	assert_false(lease_is_dead(own.number == 0 ? 1 : 0, &own));
}

static void a_record_that_is_not_written_down_is_said(void **state)
{
	char *much = malloc(LEASE_RECORD_MAX);

	(void)state;
	fails = "fstat";
	code = -EIO;
	assert_int_equal(lease_record(&own, "0 /a\n"), -EIO);
	fails = "pwrite";
	code = -ENOSPC;
	assert_int_equal(lease_record(&own, "0 /a\n"), -ENOSPC);
	code = 3; /* a disk that becomes full */
	assert_int_equal(lease_record(&own, "0 /a\n"), -EIO);
	fails = "";
	assert_non_null(much);
	memset(much, '0', LEASE_RECORD_MAX - 1);
	much[LEASE_RECORD_MAX - 1] = '\0';
	assert_int_equal(lease_record(&own, much), -EFBIG);
	free(much);
}

static void a_line_that_no_group_has_is_passed_over(void **state)
{
	char line[2048];

	(void)state;
	memset(line, 'x', sizeof(line) - 2);
	line[sizeof(line) - 2] = '\n';
	line[sizeof(line) - 1] = '\0';
	assert_int_equal(lease_record(&own, line), 0);
	assert_int_equal(lease_record(&own, "0 /a\n"), 0);
	assert_string_equal(sweep(), "0 /a\n");
	assert_string_equal(sweep(), "");
}

static void what_cannot_be_struck_off_is_swept_again(void **state)
{
	(void)state;
	assert_int_equal(lease_record(&own, "0 /a\n0 /b\n"), 0);
	fails = "ftruncate";
	code = -EIO;
	assert_string_equal(sweep(), "0 /a\n0 /b\n");
	assert_string_equal(sweep(), "0 /a\n0 /b\n");
	busy = "0 /b\n";
	fails = "pwrite";
	assert_string_equal(sweep(), "0 /a\n0 /b\n");
	assert_string_equal(sweep(), "0 /a\n0 /b\n");
	fails = "";
	assert_string_equal(sweep(), "0 /a\n0 /b\n");
	assert_string_equal(sweep(), "0 /b\n");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_lease_that_cannot_be_had_is_said),
		CASE(the_first_of_the_host_makes_the_folder),
		CASE(who_is_not_known_to_be_dead_lives),
		CASE(a_record_that_is_not_written_down_is_said),
		CASE(a_line_that_no_group_has_is_passed_over),
		CASE(what_cannot_be_struck_off_is_swept_again),
	};

	return cmocka_run_group_tests_name("lease_file", tests, NULL, NULL);
}
