#include "base/check.h"
#include "base/fault.h"
#include "priv/supervisor/submit.h"
#include "tests/unit/unit.h"
#include "wire/inputs.h"
#include "wire/network.h"
#include "wire/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int __wrap_fstat64(int fd, struct stat *ret);
int __real_fstat64(int fd, struct stat *ret);

/* The descriptor that cannot be looked at, and the one that is of another device. */
static int unseen = -1, elsewhere = -1;

int __wrap_fstat64(int fd, struct stat *ret)
{
	int r = __real_fstat64(fd, ret);

	if (fd == elsewhere) /* with the number that another pipe has */
		ret->st_dev++;
	errno = EIO;
	return fd == unseen ? -1 : r;
}

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static const char code[] = "print(1)";

/* A SUBMIT as the front sends it, and the ends that the front keeps. */
struct fixture {
	struct msg m;
	int kept[3];
};

static int make_code(int seals)
{
	int fd = memfd_create("code", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, code, sizeof(code) - 1), sizeof(code) - 1);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static int make_report(off_t bytes, int seals)
{
	int fd = memfd_create("report", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void set_up(struct fixture *x)
{
	int p[2];

	memset(x, 0, sizeof(*x));
	x->m.type = MSG_SUBMIT;
	x->m.nfds = 5;
	x->m.as.SUBMIT.code_bytes = sizeof(code) - 1;
	x->m.fds[0] = make_code(SEALS);
	x->m.fds[4] = make_report((off_t)REPORT_BYTES, SEALS & ~F_SEAL_WRITE);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pipe2(p, O_CLOEXEC), 0);
		x->m.fds[1 + i] = i == 0 ? p[0] : p[1];
		x->kept[i] = i == 0 ? p[1] : p[0];
	}
}

static void tear_down(struct fixture *x)
{
	msg_done(&x->m);
	for (int i = 0; i < 3; i++)
		(void)close(x->kept[i]);
}

static void replace(struct fixture *x, int index, int fd)
{
	(void)close(x->m.fds[index]);
	x->m.fds[index] = fd;
}

static void inputs_count_as_what_is_sealed(void **state)
{
	struct msg_submit *s;
	struct fixture x;

	(void)state;
	set_up(&x);
	s = &x.m.as.SUBMIT;
	s->code_bytes -= 3;
	assert_non_null(submit_violation(&x.m));
	s->inputs_bytes = 3;
	assert_null(submit_violation(&x.m));
	s->inputs_bytes = UINT64_MAX; /* the sum would fit again */
	s->code_bytes += 4;
	assert_non_null(submit_violation(&x.m));
	tear_down(&x);
}

static void what_the_front_sends_is_admitted(void **state)
{
	struct fixture x;

	(void)state;
	set_up(&x);
	assert_null(submit_violation(&x.m));
	tear_down(&x);
}

static void code_that_could_still_change_is_a_violation(void **state)
{
	static const int partial[] = { 0, SEALS & ~F_SEAL_WRITE, SEALS & ~F_SEAL_GROW,
		SEALS & ~F_SEAL_SHRINK, SEALS & ~F_SEAL_SEAL };
	struct fixture x;

	(void)state;
	for (size_t i = 0; i < sizeof(partial) / sizeof(partial[0]); i++) {
		set_up(&x);
		replace(&x, 0, make_code(partial[i]));
		assert_non_null(submit_violation(&x.m));
		tear_down(&x);
	}
}

static void what_cannot_be_looked_at_is_a_violation(void **state)
{
	struct fixture x;

	(void)state;
	for (int i = 0; i < 5; i++) {
		set_up(&x);
		unseen = x.m.fds[i];
		assert_non_null(submit_violation(&x.m));
		unseen = -1;
		tear_down(&x);
	}
	set_up(&x);
	(void)close(x.m.fds[1]); /* none at all */
	assert_non_null(submit_violation(&x.m));
	x.m.fds[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	tear_down(&x);
}

static void pipes_are_told_apart_by_device_and_number(void **state)
{
	struct fixture x;

	(void)state;
	set_up(&x);
	replace(&x, 3, dup(x.m.fds[2]));
	assert_non_null(submit_violation(&x.m));
	elsewhere = x.m.fds[3];
	assert_null(submit_violation(&x.m));
	elsewhere = -1;
	tear_down(&x);
}

static void code_of_another_length_than_announced_is_a_violation(void **state)
{
	struct fixture x;

	(void)state;
	set_up(&x);
	x.m.as.SUBMIT.code_bytes++;
	assert_non_null(submit_violation(&x.m));
	x.m.as.SUBMIT.code_bytes -= 2;
	assert_non_null(submit_violation(&x.m));
	tear_down(&x);
}

/* A file of the host, a socket, a device, an O_PATH descriptor, the wrong direction, both
 * directions, the same pipe twice. */
static void a_stream_that_is_not_its_own_one_way_pipe_is_a_violation(void **state)
{
	struct fixture x;
	int sockets[2];

	(void)state;
	for (int index = 1; index <= 3; index++) {
		const int mode = index == 1 ? O_RDONLY : O_WRONLY;
		char path[64];

		set_up(&x);
		replace(&x, index, open("/dev/null", mode | O_CLOEXEC));
		assert_non_null(submit_violation(&x.m));
		replace(&x, index, open("/etc/passwd", O_RDONLY | O_CLOEXEC));
		assert_non_null(submit_violation(&x.m));
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
		replace(&x, index, sockets[0]);
		assert_non_null(submit_violation(&x.m));
		(void)close(sockets[1]);
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", x.kept[0]);
		replace(&x, index, open(path, O_RDWR | O_CLOEXEC));
		assert_non_null(submit_violation(&x.m));
		replace(&x, index, open(path, O_PATH | O_CLOEXEC));
		assert_non_null(submit_violation(&x.m));
		replace(&x, index, fcntl(x.kept[index - 1], F_DUPFD_CLOEXEC, 0));
		assert_non_null(submit_violation(&x.m)); /* the wrong end */
		tear_down(&x);
	}
	set_up(&x);
	replace(&x, 3, fcntl(x.m.fds[2], F_DUPFD_CLOEXEC, 0));
	assert_non_null(submit_violation(&x.m));
	tear_down(&x);
	/* A program that could read back what it has written. */
	for (int index = 2; index <= 3; index++) {
		set_up(&x);
		replace(&x, index, fcntl(x.kept[0], F_DUPFD_CLOEXEC, 0));
		assert_string_equal(submit_violation(&x.m), "one pipe for two streams");
		tear_down(&x);
	}
}

static void what_is_no_memory_file_is_no_code(void **state)
{
	struct fixture x;

	(void)state;
	set_up(&x);
	replace(&x, 0, open("/etc/passwd", O_RDONLY | O_CLOEXEC));
	assert_string_equal(submit_violation(&x.m), "the code is not sealed memory");
	replace(&x, 0, fcntl(x.m.fds[1], F_DUPFD_CLOEXEC, 0));
	assert_string_equal(submit_violation(&x.m), "the code is not sealed memory");
	tear_down(&x);
}

/* What could be cut short under who reads it, could grow without bound, or is a file of the host's. */
static void a_report_that_is_not_memory_of_its_size_is_a_violation(void **state)
{
	static const int partial[] = { 0, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_SEAL | F_SEAL_GROW,
		F_SEAL_SEAL | F_SEAL_SHRINK };
	static const off_t sizes[] = { 0, (off_t)REPORT_BYTES - 1, (off_t)REPORT_BYTES + 1 };
	struct fixture x;

	(void)state;
	set_up(&x);
	for (size_t i = 0; i < sizeof(partial) / sizeof(partial[0]); i++) {
		replace(&x, 4, make_report((off_t)REPORT_BYTES, partial[i]));
		assert_string_equal(submit_violation(&x.m), "the report is not memory of its size");
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		replace(&x, 4, make_report(sizes[i], SEALS & ~F_SEAL_WRITE));
		assert_non_null(submit_violation(&x.m));
	}
	replace(&x, 4, open("/etc/passwd", O_RDONLY | O_CLOEXEC));
	assert_non_null(submit_violation(&x.m));
	replace(&x, 4, fcntl(x.m.fds[1], F_DUPFD_CLOEXEC, 0));
	assert_non_null(submit_violation(&x.m));
	tear_down(&x);
}

static void reserved_bits_are_a_violation(void **state)
{
	struct fixture x;

	(void)state;
	set_up(&x);
	x.m.as.SUBMIT.collect = COLLECT_WHEN_MAX;
	assert_non_null(submit_violation(&x.m));
	x.m.as.SUBMIT.collect = COLLECT_ALWAYS;
	x.m.as.SUBMIT.report = REPORT_ALL + 1;
	assert_non_null(submit_violation(&x.m));
	x.m.as.SUBMIT.report = REPORT_ALL;
	assert_null(submit_violation(&x.m));
	x.m.as.SUBMIT.part = RUN_PART_MAX;
	assert_non_null(submit_violation(&x.m));
	x.m.as.SUBMIT.part = RUN_WHOLE;
	assert_null(submit_violation(&x.m));
	x.m.as.SUBMIT.allow_network = 2;
	assert_non_null(submit_violation(&x.m));
	tear_down(&x);
}

static void nothing_is_collected_of_a_compiler(void **state)
{
	struct fixture x;

	(void)state;
	set_up(&x);
	x.m.as.SUBMIT.part = RUN_COMPILER;
	x.m.as.SUBMIT.collect = COLLECT_IF_TOUCHED;
	assert_non_null(submit_violation(&x.m));
	x.m.as.SUBMIT.collect = COLLECT_NEVER;
	assert_null(submit_violation(&x.m));
	x.m.as.SUBMIT.part = RUN_BUILT;
	x.m.as.SUBMIT.collect = COLLECT_ALWAYS;
	assert_null(submit_violation(&x.m));
	x.m.as.SUBMIT.collect = COLLECT_WHEN_MAX;
	assert_non_null(submit_violation(&x.m));
	tear_down(&x);
}

static void a_compiler_has_no_network(void **state)
{
	struct fixture x;

	(void)state;
	set_up(&x);
	x.m.as.SUBMIT.allow_network = 1;
	assert_null(submit_violation(&x.m));
	x.m.as.SUBMIT.part = RUN_COMPILER;
	assert_non_null(submit_violation(&x.m));
	x.m.as.SUBMIT.part = RUN_BUILT;
	assert_null(submit_violation(&x.m));
	tear_down(&x);
}

/* A memfd of so many bytes with these seals. */
static int memory(off_t bytes, int seals)
{
	int fd = memfd_create("memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void a_network_brings_memory_of_its_very_size_for_as_long_as_it_lives(void **state)
{
	const off_t size = (off_t)sizeof(struct network_memory);
	const int all = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW;
	static const int seals[] = { 0, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_SEAL | F_SEAL_GROW,
		F_SEAL_SEAL | F_SEAL_SHRINK };
	int fd = memory(size, all);

	(void)state;
	assert_true(submit_is_network_memory(fd));
	(void)close(fd);
	for (unsigned i = 0; i < ARRAY_LEN(seals); i++) {
		fd = memory(size, seals[i]);
		assert_false(submit_is_network_memory(fd));
		(void)close(fd);
	}
	for (off_t more = -1; more <= 1; more += 2) {
		fd = memory(size + more, all);
		assert_false(submit_is_network_memory(fd));
		(void)close(fd);
	}
	fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
	assert_false(submit_is_network_memory(fd));
	(void)close(fd);
}

static const struct settings settings = {
	.max = { .timeout_us = 1000000, .memory_bytes = 64 << 20, .cpu_milli = 1000, .pids = 32 },
	.code_bytes = 100,
	.input_bytes = 50,
};

static const struct msg_submit good = {
	.limits = { .timeout_us = 1000000,
		.memory_bytes = 64 << 20,
		.cpu_milli = 1000,
		.pids = 32 },
	.code_bytes = 100,
};

static void refuse(struct msg_submit s, const char *field)
{
	struct fault f = { 0 };

	assert_true(submit_check_limits(&s, &settings, &f) < 0);
	assert_non_null(strstr(f.text, field));
}

/* A compromised front can raise nothing: the supervisor's own ceilings hold. */
static void no_number_goes_past_the_supervisors_own_range(void **state)
{
	struct msg_submit s = good;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(submit_check_limits(&s, &settings, &f), 0);

	s = good, s.limits.timeout_us++, refuse(s, "timeout");
	s = good, s.limits.timeout_us = UINT64_MAX, refuse(s, "timeout");
	s = good, s.limits.timeout_us = 0, refuse(s, "timeout");
	s = good, s.limits.memory_bytes++, refuse(s, "memory");
	s = good, s.limits.memory_bytes = LIMIT_MEMORY_MIN_BYTES - 1, refuse(s, "memory");
	s = good, s.limits.cpu_milli++, refuse(s, "cpu");
	s = good, s.limits.cpu_milli = 0, refuse(s, "cpu");
	s = good, s.limits.pids++, refuse(s, "pids");
	s = good, s.limits.pids = 0, refuse(s, "pids");
	s = good, s.limits.cpu_time_us = UINT64_MAX, refuse(s, "cpu time");
	s = good, s.code_bytes++, refuse(s, "code");
	s = good, s.inputs_bytes = settings.input_bytes + INPUTS_FRAME_MAX;
	assert_int_equal(submit_check_limits(&s, &settings, &f), 0);
	s.inputs_bytes++, refuse(s, "inputs");
	s = good, s.allow_network = 1,
	refuse(s, "allow_network: this server gives runs no network");
}

static void a_network_is_given_where_the_operator_gives_it(void **state)
{
	struct settings giving = settings;
	struct msg_submit s = good;
	struct fault f = { 0 };

	(void)state;
	giving.network = 1;
	s.allow_network = 1;
	assert_int_equal(submit_check_limits(&s, &giving, &f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_front_sends_is_admitted),
		cmocka_unit_test(inputs_count_as_what_is_sealed),
		cmocka_unit_test(code_that_could_still_change_is_a_violation),
		cmocka_unit_test(what_cannot_be_looked_at_is_a_violation),
		cmocka_unit_test(pipes_are_told_apart_by_device_and_number),
		cmocka_unit_test(code_of_another_length_than_announced_is_a_violation),
		cmocka_unit_test(a_stream_that_is_not_its_own_one_way_pipe_is_a_violation),
		cmocka_unit_test(what_is_no_memory_file_is_no_code),
		cmocka_unit_test(a_report_that_is_not_memory_of_its_size_is_a_violation),
		cmocka_unit_test(reserved_bits_are_a_violation),
		cmocka_unit_test(nothing_is_collected_of_a_compiler),
		cmocka_unit_test(a_compiler_has_no_network),
		cmocka_unit_test(a_network_brings_memory_of_its_very_size_for_as_long_as_it_lives),
		cmocka_unit_test(no_number_goes_past_the_supervisors_own_range),
		cmocka_unit_test(a_network_is_given_where_the_operator_gives_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
