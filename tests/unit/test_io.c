#include "unit.h"

#include "base/check.h"
#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int __wrap_fcntl64(int fd, int op, int arg);
int __real_fcntl64(int fd, int op, int arg);

static unsigned refusals, asked; /* so many seals are refused yet; so many were asked for */

int __wrap_fcntl64(int fd, int op, int arg)
{
	if (op == F_ADD_SEALS)
		asked++;
	if (op != F_ADD_SEALS || refusals == 0)
		return __real_fcntl64(fd, op, arg);
	refusals--;
	errno = EBUSY;
	return -1;
}

/* A memfd that holds `text`, and the path by which it can be opened again. */
static int file_with(const char *text, char path[static 32])
{
	int fd = memfd_create("io", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	(void)snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

static void whole_reads_stop_at_eof_or_at_the_room(void **state)
{
	char path[32], got[16];
	cleanup_fd int fd = file_with("0123456789", path);

	(void)state;
	assert_int_equal(io_read_all(fd, got, 4), 4);
	assert_memory_equal(got, "0123", 4);
	assert_int_equal(io_read_all(fd, got, sizeof(got)), 6);
	assert_memory_equal(got, "456789", 6);
	assert_int_equal(io_read_all(fd, got, sizeof(got)), 0);
}

static void bad_descriptor_is_a_negative_errno(void **state)
{
	char b = 'x';

	(void)state;
	assert_int_equal(io_write_all(-1, &b, 1), -EBADF);
	assert_int_equal(io_read_all(-1, &b, 1), -EBADF);
}

static void text_is_read_whole_and_terminated(void **state)
{
	char path[32], got[8];
	cleanup_fd int fd = file_with("hello", path);

	(void)state;
	(void)fd;
	memset(got, 'z', sizeof(got));
	assert_int_equal(io_read_text(AT_FDCWD, path, got, sizeof(got)), 5);
	assert_string_equal(got, "hello");
}

static void text_longer_than_its_room_is_refused(void **state)
{
	char path[32], got[6];
	cleanup_fd int fd = file_with("hello", path);

	(void)state;
	(void)fd;
	assert_int_equal(io_read_text(AT_FDCWD, path, got, 6), 5);
	assert_int_equal(io_read_text(AT_FDCWD, path, got, 5), -EFBIG);
}

static void missing_file_is_enoent_both_ways(void **state)
{
	char got[6];

	(void)state;
	assert_int_equal(io_read_text(AT_FDCWD, "/nowhere/x", got, sizeof(got)), -ENOENT);
	assert_int_equal(io_write_text(AT_FDCWD, "/nowhere/x", "x"), -ENOENT);
}

static void text_is_written_to_an_existing_file(void **state)
{
	char path[32], got[8];
	cleanup_fd int fd = file_with("", path);

	(void)state;
	(void)fd;
	assert_int_equal(io_write_text(AT_FDCWD, path, "max"), 0);
	assert_int_equal(io_read_text(AT_FDCWD, path, got, sizeof(got)), 3);
	assert_string_equal(got, "max");
}

static void numbers_are_parsed_strictly(void **state)
{
	static const struct {
		const char *text;
		int r;
		uint64_t v;
	} rows[] = {
		{ "0", 0, 0 },
		{ "42\n", 0, 42 },
		{ "7 \t\r\n", 0, 7 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "99999999999999999999999", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "1 2", -EINVAL, 0 },
		{ "max", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t v = 77;

		assert_int_equal(io_parse_u64(rows[i].text, &v), rows[i].r);
		assert_true(v == (rows[i].r == 0 ? rows[i].v : 77));
	}
}

static void what_is_sealed_cannot_change_and_what_is_mapped_is_not_sealed(void **state)
{
	cleanup_fd int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *map;

	(void)state;
	assert_int_equal(ftruncate(fd, 4096), 0);
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	assert_int_equal(io_seal(fd), -EBUSY);
	assert_int_equal(munmap(map, 4096), 0);
	assert_int_equal(io_seal(fd), 0);
	assert_int_equal(io_write_all(fd, "x", 1), -EPERM);
}

static void seals_that_are_refused_for_a_moment_are_asked_for_again(void **state)
{
	cleanup_fd int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)state;
	refusals = UINT_MAX;
	asked = 0;
	assert_int_equal(io_seal(fd), -EBUSY);
	assert_in_range(asked, 2, 20); /* and not for ever */
	assert_int_equal(fcntl(fd, F_GET_SEALS) & IO_SEALS, 0);
	refusals = asked - 1;
	assert_int_equal(io_seal(fd), 0);
	assert_int_equal(fcntl(fd, F_GET_SEALS) & IO_SEALS, IO_SEALS);
}

static void what_can_never_be_sealed_is_asked_for_once(void **state)
{
	cleanup_fd int fd = memfd_create("x", MFD_CLOEXEC);

	(void)state;
	refusals = asked = 0;
	assert_int_equal(io_seal(fd), -EPERM);
	assert_int_equal(asked, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_reads_stop_at_eof_or_at_the_room),
		cmocka_unit_test(bad_descriptor_is_a_negative_errno),
		cmocka_unit_test(text_is_read_whole_and_terminated),
		cmocka_unit_test(text_longer_than_its_room_is_refused),
		cmocka_unit_test(missing_file_is_enoent_both_ways),
		cmocka_unit_test(text_is_written_to_an_existing_file),
		cmocka_unit_test(numbers_are_parsed_strictly),
		cmocka_unit_test(what_is_sealed_cannot_change_and_what_is_mapped_is_not_sealed),
		cmocka_unit_test(seals_that_are_refused_for_a_moment_are_asked_for_again),
		cmocka_unit_test(what_can_never_be_sealed_is_asked_for_once),
	};

	return cmocka_run_group_tests_name("io", tests, NULL, NULL);
}
