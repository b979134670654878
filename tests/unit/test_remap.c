#include "unit.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/remap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_contents_stay_and_each_range_has_its_own),
		cmocka_unit_test(what_is_written_afterwards_stays_private),
		cmocka_unit_test(what_could_only_be_read_can_only_be_read),
		cmocka_unit_test(memory_stays_where_it_is_when_the_file_takes_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
