/* What the supervisor believes of the file that `glovebox selftest` leaves: its folder is ours here
 * (-Wl,--wrap). */
#include "tests/unit/unit.h"

#include "base/build_id.h"
#include "base/log.h"
#include "base/own.h"
#include "priv/supervisor/tested.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

int __wrap_open64(const char *path, int flags, mode_t mode);
int __real_open64(const char *path, int flags, mode_t mode);
int __wrap_fstat64(int fd, struct stat *ret);
int __real_fstat64(int fd, struct stat *ret);
int __wrap_inotify_init1(int flags);
int __real_inotify_init1(int flags);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
ssize_t __wrap_io_read_all(int fd, void *bytes, size_t room);
ssize_t __real_io_read_all(int fd, void *bytes, size_t room);

static char dir[64];
static uid_t owner; /* as whose the file is shown */
static bool no_stat, no_inotify, no_watch, cut_short;
static struct tested t;

static const char *in_dir(const char *path, char ret[256])
{
	if (strncmp(path, SELFTEST_DIR, strlen(SELFTEST_DIR)) != 0)
		return path;
	(void)snprintf(ret, 256, "%s%s", dir, path + strlen(SELFTEST_DIR));
	return ret;
}

int __wrap_open64(const char *path, int flags, mode_t mode)
{
	char own[256];

	return __real_open64(in_dir(path, own), flags, mode);
}

int __wrap_fstat64(int fd, struct stat *ret)
{
	int r = __real_fstat64(fd, ret);

	ret->st_uid = owner;
	errno = EIO;
	return no_stat ? -1 : r;
}

int __wrap_inotify_init1(int flags)
{
	errno = EMFILE;
	return no_inotify ? -1 : __real_inotify_init1(flags);
}

int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	char own[256];

	errno = ENOSPC;
	return no_watch ? -1 : __real_inotify_add_watch(fd, in_dir(path, own), mask);
}

ssize_t __wrap_io_read_all(int fd, void *bytes, size_t room)
{
	return cut_short ? 1 : __real_io_read_all(fd, bytes, room);
}

static const char *file(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int begin(void **state)
{
	(void)state;
	log_setup("test", LOG_LEVEL_ERR);
	(void)snprintf(dir, sizeof(dir), "/tmp/gbx-tested-XXXXXX");
	assert_non_null(mkdtemp(dir));
	owner = 0;
	no_stat = no_inotify = no_watch = cut_short = false;
	tested_clear(&t);
	return 0;
}

static int end(void **state)
{
	(void)state;
	drop_fd(&t.watch_fd);
	(void)unlink(file(SELFTEST_FILE));
	(void)rmdir(file(SELFTEST_FILE));
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

/* A result as the command leaves it: written beside, then renamed. */
static void leave(uint32_t failed, size_t bytes)
{
	struct selftest_record r = {
		.magic = SELFTEST_MAGIC,
		.probes = 9,
		.failed = failed,
		.at = "2026-01-31T12:00:00Z",
	};
	char from[128];
	FILE *to;

	if (failed)
		(void)snprintf(r.first_failed, sizeof(r.first_failed), "a-probe");
	build_id(r.build);
	(void)snprintf(from, sizeof(from), "%s", file("new"));
	to = fopen(from, "w");
	assert_non_null(to);
	assert_int_equal(fwrite(&r, bytes, 1, to), 1);
	assert_int_equal(fclose(to), 0);
	assert_int_equal(chmod(from, 0644), 0);
	assert_int_equal(rename(from, file(SELFTEST_FILE)), 0);
}

static void without_a_result_none_is_known(void **state)
{
	(void)state;
	tested_open(&t);
	assert_true(t.watch_fd >= 0);
	assert_int_equal(t.last.known, 0);
	assert_false(tested_look(&t));
}

static void a_result_that_comes_is_seen_and_the_same_again_is_no_news(void **state)
{
	(void)state;
	tested_open(&t);
	leave(0, sizeof(struct selftest_record));
	assert_true(tested_look(&t));
	assert_int_equal(t.last.known, 1);
	assert_int_equal(t.last.this_build, 1);
	leave(0, sizeof(struct selftest_record));
	assert_false(tested_look(&t));
	leave(1, sizeof(struct selftest_record));
	assert_true(tested_look(&t));
	assert_int_equal(t.last.record.failed, 1);
}

static void is_not_believed(void)
{
	tested_open(&t);
	assert_int_equal(t.last.known, 0);
	drop_fd(&t.watch_fd);
}

static void what_root_alone_has_not_written_is_not_believed(void **state)
{
	(void)state;
	leave(0, sizeof(struct selftest_record));
	owner = 1000;
	is_not_believed();
	owner = 0;
	assert_int_equal(chmod(file(SELFTEST_FILE), 0664), 0);
	is_not_believed();
}

static void what_is_no_file_or_of_another_size_is_not_believed(void **state)
{
	(void)state;
	leave(0, sizeof(struct selftest_record) - 1);
	is_not_believed();
	assert_int_equal(unlink(file(SELFTEST_FILE)), 0);
	assert_int_equal(mkdir(file(SELFTEST_FILE), 0755), 0);
	is_not_believed();
}

static void what_cannot_be_read_is_not_believed(void **state)
{
	(void)state;
	leave(0, sizeof(struct selftest_record));
	no_stat = true;
	is_not_believed();
	no_stat = false;
	cut_short = true;
	is_not_believed();
}

static void without_a_watch_what_is_there_counts_all_the_same(void **state)
{
	(void)state;
	leave(0, sizeof(struct selftest_record));
	for (unsigned i = 0; i < 2; i++) {
		no_inotify = i == 0;
		no_watch = i == 1;
		tested_open(&t);
		assert_int_equal(t.watch_fd, -1);
		assert_int_equal(t.last.known, 1);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(without_a_result_none_is_known),
		CASE(a_result_that_comes_is_seen_and_the_same_again_is_no_news),
		CASE(what_root_alone_has_not_written_is_not_believed),
		CASE(what_is_no_file_or_of_another_size_is_not_believed),
		CASE(what_cannot_be_read_is_not_believed),
		CASE(without_a_watch_what_is_there_counts_all_the_same),
	};

	return cmocka_run_group_tests_name("tested", tests, NULL, NULL);
}
