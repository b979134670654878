/* A zygote whose start fails at each of its steps, and what it is heard to say: over a kernel that
 * makes nothing. */
#include "tests/unit/board_play.h"
#include "tests/unit/count_fds.h"
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/own.h"
#include "kernel/sys.h"
#include "priv/supervisor/zygote.h"
#include "wire/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define STEPS_MAX 100

int __wrap_channel_send(int fd, enum msg_type type, const void *payload, const int *fds);
int __real_channel_send(int fd, enum msg_type type, const void *payload, const int *fds);
int __wrap_channel_pair(int ret_fds[2], int nonblock);
int __real_channel_pair(int ret_fds[2], int nonblock);
int __wrap_io_write_all(int fd, const void *bytes, size_t len);

static unsigned fail_in; /* the step with this number, from 1 on; 0: none */

static bool fails(void)
{
	return fail_in > 0 && --fail_in == 0;
}

int __wrap_channel_send(int fd, enum msg_type type, const void *payload, const int *fds)
{
	return fails() ? -ENOBUFS : __real_channel_send(fd, type, payload, fds);
}

int __wrap_channel_pair(int ret_fds[2], int nonblock)
{
	return fails() ? -EMFILE : __real_channel_pair(ret_fds, nonblock);
}

int __wrap_io_write_all(int fd, const void *bytes, size_t len)
{
	(void)fd;
	(void)bytes;
	(void)len;
	return fails() ? -ENOSPC : 0;
}

static int (*real_fcntl)(int fd, int op, int arg);

static int flaky_fcntl(int fd, int op, int arg)
{
	return fails() ? -EBADF : real_fcntl(fd, op, arg);
}

static struct zygote z;

static int begin(void **state)
{
	int r = play_begin(state);

	fail_in = 0;
	zygote_clear(&z);
	real_fcntl = sys.fcntl;
	sys.fcntl = flaky_fcntl;
	return r;
}

static int end(void **state)
{
	sys.fcntl = real_fcntl;
	zygote_end(&z);
	process_close(&z.process);
	return play_end(state);
}

static int start(struct fault *f)
{
	return zygote_start(&z, &play.factory, "json\n", 1, f);
}

/* It is the reaper's then, in the supervisor. */
static void forget_it(void)
{
	struct rusage usage;
	int status;

	zygote_end(&z);
	(void)process_reap(&z.process, &status, &usage);
	process_close(&z.process);
	zygote_clear(&z);
}

static void it_fails(unsigned n)
{
	unsigned before = count_fds();
	struct fault f = { 0 };

	assert_true(start(&f) < 0);
	assert_int_equal(z.state, ZYGOTE_ABSENT);
	assert_int_equal(z.channel_fd, -1);
	if (strncmp(f.text, "zygote: ", 8) != 0)
		fail_msg("step %u: %s", n, f.text);
	assert_string_equal(z.fault.text, f.text);
	forget_it();
	assert_int_equal(count_fds(), before);
}

static void whichever_step_of_its_start_fails_it_is_told_and_nothing_is_left(void **state)
{
	unsigned n;
	struct fault f = { 0 };

	(void)state;
	for (n = 1; n < STEPS_MAX; n++) {
		fail_in = n;
		if (start(&f) == 0)
			break;
		zygote_clear(&z);
		fail_in = n;
		it_fails(n);
	}
	assert_int_equal(z.state, ZYGOTE_STARTING);
	forget_it();
	/* The channel, its mode, three files; BUILD, five mounts, ENTER. */
	assert_int_equal(n, 13);
	for (n = 1; n < STEPS_MAX; n++) {
		no.fail_in = n;
		no.fail_code = -EIO;
		if (start(&f) == 0)
			break;
		zygote_clear(&z);
		no.fail_in = n;
		it_fails(n);
	}
	/* The child, its release; the view, three mounts; the agent's, its folder and three files. */
	assert_int_equal(n, 12);
	no.fail_in = 0;
}

/* ---- What it says ---- */

static void be_warm(void)
{
	struct fault f = { 0 };

	assert_int_equal(start(&f), 0);
	z.state = ZYGOTE_WARM;
	z.deadline_ns = UINT64_MAX;
}

/* As that it could not fork. */
static int say(int code)
{
	struct msg_broken m = { .cell = 1, .fault = { .code = code, .text = "setns" } };
	static struct msg heard;

	for (unsigned i = 0; i < NO_PROCESSES; i++)
		if (no.processes[i].pid > 0 && no.processes[i].zygote)
			assert_int_equal(__real_channel_send(no.processes[i].channel_fd,
						 MSG_UNFORKED, &m, NULL),
				0);
	return zygote_hear(&z, &heard);
}

static void that_a_cell_is_gone_is_no_sign_of_wear(void **state)
{
	const int gone[] = { -ESRCH, -ENODEV, -EEXIST };

	(void)state;
	be_warm();
	for (unsigned i = 0; i < 12; i++)
		assert_int_equal(say(gone[i % 3]), 1);
	assert_int_equal(say(-ENOMEM), 1);
	assert_int_equal(say(-ENOMEM), 1);
	assert_true(say(-ENOMEM) < 0);
	assert_non_null(strstr(z.fault.text, "cannot fork"));
}

static void a_fork_that_cannot_be_asked_for_is_not_waited_for(void **state)
{
	struct cell c = { .id = 1, .init = { .pidfd = 0 } };

	(void)state;
	c.leaf.fd[0] = 0;
	be_warm();
	fail_in = 1;
	assert_int_equal(zygote_fork(&z, &c, 0, false), -ENOBUFS);
	assert_int_equal(z.forks, 0);
	assert_int_equal(z.unanswered, 0);
	assert_false(zygote_is_late(&z, no.now_ns + 600 * NS_PER_S));
	assert_int_equal(zygote_fork(&z, &c, 0, false), 0);
	assert_int_equal(z.unanswered, 1);
	assert_true(zygote_is_late(&z, no.now_ns + 600 * NS_PER_S));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(whichever_step_of_its_start_fails_it_is_told_and_nothing_is_left),
		CASE(that_a_cell_is_gone_is_no_sign_of_wear),
		CASE(a_fork_that_cannot_be_asked_for_is_not_waited_for),
	};

	return cmocka_run_group_tests_name("zygote", tests, NULL, NULL);
}
