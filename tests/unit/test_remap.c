#include "unit.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/remap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t len, off_t at);
ssize_t __real_pwrite64(int fd, const void *bytes, size_t len, off_t at);

static size_t write_most = SIZE_MAX; /* of one call */

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t len, off_t at)
{
	return __real_pwrite64(fd, bytes, len < write_most ? len : write_most, at);
}

#define BYTES ((size_t)64 << 10)

static char *memory(char fill)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	memset(at, fill, BYTES);
	return at;
}

static struct remap_range range(const char *at)
{
	return (struct remap_range){ (uintptr_t)at, (uintptr_t)at + BYTES };
}

static void is_all(const char *at, char fill)
{
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(at[i], fill);
}

static void the_contents_stay_and_each_range_has_its_own(void **state)
{
	cleanup_fd int fd = memfd_create("remap", MFD_CLOEXEC);
	char *a = memory('a'), *b = memory('b');
	const struct remap_range ranges[] = { range(a), range(b) };
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(remap_onto_file(fd, ranges, 2, &f), 0);
	is_all(a, 'a');
	is_all(b, 'b');
	(void)munmap(a, BYTES);
	(void)munmap(b, BYTES);
}

static void a_file_that_takes_a_little_at_a_time_gets_all_and_one_that_takes_nothing_is_said(
	void **state)
{
	cleanup_fd int fd = memfd_create("remap", MFD_CLOEXEC);
	char *a = memory('a');
	const struct remap_range ranges[] = { range(a) };
	struct fault f = { 0 };

	(void)state;
	write_most = 4096;
	assert_int_equal(remap_onto_file(fd, ranges, 1, &f), 0);
	is_all(a, 'a');
	write_most = 0;
	assert_int_equal(remap_onto_file(fd, ranges, 1, &f), -EIO);
	write_most = SIZE_MAX;
	is_all(a, 'a');
	(void)munmap(a, BYTES);
}

static void what_is_written_afterwards_stays_private(void **state)
{
	cleanup_fd int fd = memfd_create("remap", MFD_CLOEXEC);
	char *a = memory('a'), in_file;
	const struct remap_range ranges[] = { range(a) };
	struct fault f = { 0 };
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(remap_onto_file(fd, ranges, 1, &f), 0);
	pid = fork();
	if (pid == 0) {
		memset(a, 'c', BYTES);
		_exit(a[0] == 'c' ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	is_all(a, 'a');
	memset(a, 'p', BYTES);
	assert_int_equal(pread(fd, &in_file, 1, 0), 1);
	assert_int_equal(in_file, 'a');
	(void)munmap(a, BYTES);
}

static void what_could_only_be_read_can_only_be_read(void **state)
{
	cleanup_fd int fd = memfd_create("remap", MFD_CLOEXEC);
	char *a = memory('a');
	struct remap_range ranges[] = { range(a) };
	struct fault f = { 0 };
	int status;
	pid_t pid;

	(void)state;
	ranges[0].read_only = true;
	assert_int_equal(mprotect(a, BYTES, PROT_READ), 0);
	assert_int_equal(remap_onto_file(fd, ranges, 1, &f), 0);
	is_all(a, 'a');
	pid = fork();
	if (pid == 0) {
		(void)signal(SIGSEGV, SIG_DFL);
		*(volatile char *)a = 'c';
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	(void)munmap(a, BYTES);
}

static void memory_stays_where_it_is_when_the_file_takes_none(void **state)
{
	char *a = memory('a');
	const struct remap_range ranges[] = { range(a) };
	struct fault f = { 0 };
	cleanup_fd int fd = memfd_create("remap", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)state;
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	assert_true(remap_onto_file(fd, ranges, 1, &f) < 0);
	is_all(a, 'a');
	(void)munmap(a, BYTES);
}

/* Until everything is in the file nothing is mapped: the memory stays what it is. */
static void what_cannot_be_copied_or_mapped_stays_what_it_is(void **state)
{
	char *a = memory('a'), path[64];
	const struct remap_range ranges[] = { range(a) };
	cleanup_fd int full = memfd_create("remap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	cleanup_fd int fd = memfd_create("remap", MFD_CLOEXEC), readable = -1, writable = -1;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(fcntl(full, F_ADD_SEALS, F_SEAL_GROW), 0);
	assert_int_equal(remap_onto_file(full, ranges, 1, &f), -EPERM);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	readable = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(remap_onto_file(readable, ranges, 1, &f) < 0);
	writable = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(remap_onto_file(writable, ranges, 1, &f), -EACCES);
	is_all(a, 'a');
	a[0] = 'b'; /* and can still be written */
	(void)munmap(a, BYTES);
}

static void memory_that_is_not_there_is_no_crash(void **state)
{
	cleanup_fd int fd = memfd_create("remap", MFD_CLOEXEC);
	char *a = memory('a');
	const struct remap_range ranges[] = { range(a) };
	struct fault f = { 0 };

	(void)state;
	(void)munmap(a, BYTES);
	assert_int_equal(remap_onto_file(fd, ranges, 1, &f), -EFAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_contents_stay_and_each_range_has_its_own),
		cmocka_unit_test(
			a_file_that_takes_a_little_at_a_time_gets_all_and_one_that_takes_nothing_is_said),
		cmocka_unit_test(what_is_written_afterwards_stays_private),
		cmocka_unit_test(what_could_only_be_read_can_only_be_read),
		cmocka_unit_test(what_cannot_be_copied_or_mapped_stays_what_it_is),
		cmocka_unit_test(memory_that_is_not_there_is_no_crash),
		cmocka_unit_test(memory_stays_where_it_is_when_the_file_takes_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
