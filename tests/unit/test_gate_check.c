/* Whether gates can be started, told before anybody needs one. Root. */
#include "unit.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/process.h"
#include "kernel/sys.h"
#include "priv/launch/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A program of the host's in the gate's place. */
static int check(const char *path, struct fault *f)
{
	static char bytes[16 << 20]; /* this program is larger than those of the host */
	cleanup_fd int from = open(path, O_RDONLY | O_CLOEXEC), image = -1;
	ssize_t n = read(from, bytes, sizeof(bytes));

	assert_true(n > 0 && (size_t)n < sizeof(bytes));
	assert_int_equal(process_image("glovebox-gate", bytes, (size_t)n, &image, f), 0);
	*f = (struct fault){ 0 };
	return gate_check(image, f);
}

/* As the gate's main() does without a channel. */
static void one_that_reaches_its_main_is_fine(void **state)
{
	struct fault f;

	(void)state;
	assert_int_equal(check("/bin/false", &f), 0);
	assert_int_equal(f.code, 0);
}

static void one_that_does_not_is_told_with_what_helps(void **state)
{
	struct fault f;

	(void)state;
	assert_int_equal(check("/bin/true", &f), -ENOPKG); /* nor as the linker's 127 would */
	assert_non_null(strstr(f.text, "ended with 0"));
	assert_non_null(strstr(f.text, "libslirp0"));
	assert_int_equal(check("/etc/passwd", &f), -ENOPKG); /* is no program */
	assert_non_null(strstr(f.text, "libslirp0"));
}

static struct sys_ops real;
static int polls, says; /* what the first poll() says, at once */

static int poll_once(struct pollfd *fds, nfds_t count, int wait_ms)
{
	return polls++ == 0 ? says : real.poll(fds, count, wait_ms);
}

static ssize_t writes_nothing(int fd, const void *bytes, size_t len)
{
	(void)fd, (void)bytes, (void)len;
	return -EIO;
}

static int begin(void **state)
{
	(void)state;
	real = sys;
	polls = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	sys = real;
	return 0;
}

static void one_that_does_not_end_is_ended(void **state)
{
	struct fault f;

	(void)state;
	sys.poll = poll_once;
	says = 0; /* its time is over */
	assert_int_equal(check("/proc/self/exe", &f), -ENOPKG);
	assert_non_null(strstr(f.text, "ended by signal 9"));
}

static void one_that_is_late_is_awaited(void **state)
{
	struct fault f;

	(void)state;
	sys.poll = poll_once;
	says = 1; /* before it has ended */
	assert_int_equal(check("/bin/false", &f), 0);
	assert_true(polls > 0);
}

static void one_that_cannot_be_let_go_is_ended(void **state)
{
	struct fault f;

	(void)state;
	sys.write = writes_nothing;
	assert_true(check("/bin/false", &f) < 0);
	assert_non_null(strstr(f.text, "start a gate"));
}

int main(int argc, char **argv)
{
	if (argc == 2 &&
		strcmp(argv[1], "@gate") == 0) /* in the place of a gate that does not end */
		for (;;)
			(void)pause();

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_reaches_its_main_is_fine),
		cmocka_unit_test(one_that_does_not_is_told_with_what_helps),
		cmocka_unit_test_setup_teardown(one_that_does_not_end_is_ended, begin, end),
		cmocka_unit_test_setup_teardown(one_that_is_late_is_awaited, begin, end),
		cmocka_unit_test_setup_teardown(one_that_cannot_be_let_go_is_ended, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
