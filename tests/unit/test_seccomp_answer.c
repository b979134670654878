/* What a listener is answered: with the policy's own errno whatever the call, and how the ends of
 * who asked are met. The kernel's side is ours. No root. */
#include "tests/unit/unit.h"

#include "kernel/seccomp.h"
#include "kernel/sys.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define CALLS_MAX 600

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

static struct {
	struct seccomp_data asked;
	int receive_says, send_says;
	short events;
	int answer; /* 0: none was sent */
} host;

static struct sys_ops real;

static int fake_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	assert_int_equal(count, 1);
	assert_int_equal(timeout_ms, 0);
	fds->revents = host.events;
	return 1;
}

static int fake_ioctl(int fd, unsigned long op, void *arg)
{
	(void)fd;
	if (op == SECCOMP_IOCTL_NOTIF_RECV) {
		struct seccomp_notif *n = arg;

		n->id = 7;
		n->data = host.asked;
		return host.receive_says;
	}
	assert_int_equal(op, SECCOMP_IOCTL_NOTIF_SEND);
	assert_int_equal(((struct seccomp_notif_resp *)arg)->id, 7);
	assert_int_equal(((struct seccomp_notif_resp *)arg)->flags, 0); /* never "let it through" */
	host.answer = ((struct seccomp_notif_resp *)arg)->error;
	return host.send_says;
}

static int begin(void **state)
{
	(void)state;
	real = sys;
	sys.poll = fake_poll;
	sys.ioctl = fake_ioctl;
	memset(&host, 0, sizeof(host));
	host.events = POLLIN;
	host.asked.arch = ARCH;
	host.asked.nr = SYS_bpf;
	return 0;
}

static int end(void **state)
{
	(void)state;
	sys = real;
	return 0;
}

static void every_call_that_is_asked_about_gets_an_errno(void **state)
{
	uint32_t number;

	(void)state;
	for (int nr = 0; nr < CALLS_MAX; nr++) {
		for (unsigned i = 0; i < 6; i++) {
			memset(host.asked.args, 0, sizeof(host.asked.args));
			host.asked.args[i] = UINT64_MAX;
			host.asked.nr = nr;
			host.answer = 0;
			assert_int_equal(seccomp_answer(3, &number), 1);
			assert_int_equal(number, nr);
			assert_in_range(-host.answer, 1, 4095);
		}
	}
}

/* As when its filter were another one. */
static void what_the_policy_allows_or_kills_is_refused_all_the_same(void **state)
{
	uint32_t number;

	(void)state;
	host.asked.nr = SYS_read;
	assert_int_equal(seccomp_answer(3, &number), 1);
	assert_int_equal(host.answer, -EPERM);
	host.asked.arch = 0;
	assert_int_equal(seccomp_answer(3, &number), 1);
	assert_int_equal(host.answer, -EPERM);
}

static void who_was_killed_before_it_was_heard_is_nobody(void **state)
{
	const int gone[] = { -ENOENT, -EINTR };
	uint32_t number;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		host.receive_says = gone[i];
		assert_int_equal(seccomp_answer(3, &number), 0);
	}
	host.receive_says = -EFAULT;
	assert_int_equal(seccomp_answer(3, &number), -EFAULT);
	assert_int_equal(host.answer, 0);
}

static void who_was_killed_before_it_was_answered_counts(void **state)
{
	uint32_t number = 0;

	(void)state;
	host.send_says = -ENOENT;
	assert_int_equal(seccomp_answer(3, &number), 1);
	assert_int_equal(number, SYS_bpf);
	host.send_says = -EINPROGRESS;
	assert_int_equal(seccomp_answer(3, &number), -EINPROGRESS);
}

/* The kernel says POLLERR when it could not look, and that is no end. */
static void the_end_is_told_by_nothing_else(void **state)
{
	uint32_t number;

	(void)state;
	host.events = POLLHUP;
	assert_int_equal(seccomp_answer(3, &number), -EPIPE);
	host.events = POLLERR;
	assert_int_equal(seccomp_answer(3, &number), 0);
	host.events = POLLNVAL;
	assert_int_equal(seccomp_answer(3, &number), -EPIPE);
	assert_int_equal(host.answer, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(every_call_that_is_asked_about_gets_an_errno),
		CASE(what_the_policy_allows_or_kills_is_refused_all_the_same),
		CASE(who_was_killed_before_it_was_heard_is_nobody),
		CASE(who_was_killed_before_it_was_answered_counts),
		CASE(the_end_is_told_by_nothing_else),
	};

	return cmocka_run_group_tests_name("seccomp_answer", tests, NULL, NULL);
}
