/* A listener for denied calls, with a child that makes them behind the program's own filter. */
#include "unit.h"

#include "base/fault.h"
#include "kernel/seccomp.h"
#include "priv/launch/refusals.h"
#include "wire/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 20000

static struct refusals r;

/* Be the child: install the filter, hand over the listener, make the calls. */
static _Noreturn void be(int channel, int (*calls)(void))
{
	struct msg_listener m = { 0 };
	struct fault f = { 0 };
	int listener;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_install_told(&listener, &f) < 0)
		_exit(90);
	if (listener < 0 || !(fcntl(listener, F_GETFD) & FD_CLOEXEC))
		_exit(91);
	if (channel_send(channel, MSG_LISTENER, &m, &listener) < 0 || close(listener) < 0)
		_exit(92);
	_exit(calls());
}

static pid_t begin(int (*calls)(void))
{
	static struct msg m;
	int pair[2];
	pid_t pid;

	assert_int_equal(channel_pair(pair, 0), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		be(pair[1], calls);
	(void)close(pair[1]);
	assert_int_equal(channel_recv(pair[0], ROLE_BOX, ROLE_SUPERVISOR, &m, NULL), 1);
	assert_int_equal(m.type, MSG_LISTENER);
	refusals_clear(&r);
	refusals_take(&r, m.fds[0]);
	(void)close(pair[0]);
	return pid;
}

/* As the supervisor does, until the child has ended: before Linux 6.11 a listener tells of that
 * only when it is reaped. */
static void serve(pid_t pid)
{
	struct pollfd p[2] = { { .fd = r.fd, .events = POLLIN },
		{ .fd = pidfd_open(pid, 0), .events = POLLIN } };
	bool more = true;

	assert_true(p[1].fd >= 0);
	while (more) {
		assert_true(poll(p, 2, WAIT_MS) > 0);
		more = refusals_hear(&r) > 0 && !(p[1].revents & POLLIN);
	}
	(void)close(p[1].fd);
	refusals_close(&r);
	assert_int_equal(r.fd, -1);
}

static int status_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool fails(long result, int error)
{
	return result == -1 && errno == error;
}

/* Each would succeed, at least as root, if it were let through. */
static int harmless_calls(void)
{
	cpu_set_t all;

	CPU_ZERO(&all);
	CPU_SET(0, &all);
	if (!fails(sched_setaffinity(0, sizeof(all), &all), EPERM))
		return 1;
	if (!fails(socket(AF_VSOCK, SOCK_STREAM, 0), EAFNOSUPPORT))
		return 2;
	if (!fails(socket(AF_INET, SOCK_STREAM, 132 /* IPPROTO_SCTP */), EPROTONOSUPPORT))
		return 3;
	if (!fails(socket(AF_INET, SOCK_RAW, 1), EPERM))
		return 4;
	if (!fails(syscall(SYS_shmget, 0, 4096, 0600), ENOSYS))
		return 5;
	return 0;
}

static void a_denied_call_gets_its_errno_and_is_counted(void **state)
{
	pid_t pid = begin(harmless_calls);
	struct denied told = { .unrouted = 7 };

	(void)state;
	serve(pid);
	assert_int_equal(status_of(pid), 0);
	refusals_tell(&r, &told);
	assert_int_equal(told.unrouted, 7);
	assert_int_equal(told.clipped, 0);
	assert_int_equal(told.other_calls, 0);
	assert_int_equal(told.calls[0].number, SYS_sched_setaffinity);
	assert_int_equal(told.calls[0].times, 1);
	assert_int_equal(told.calls[1].number, SYS_socket);
	assert_int_equal(told.calls[1].times, 3);
	assert_int_equal(told.calls[2].number, SYS_shmget);
	assert_int_equal(told.calls[3].times, 0);
}

static int allowed_calls(void)
{
	for (int i = 0; i < 1000; i++) {
		if (getppid() == 0 || socket(AF_NETLINK, SOCK_RAW, 0) >= 0 || errno != EAFNOSUPPORT)
			return 1;
	}
	return syscall(SYS_clone3, NULL, 0) == -1 && errno == ENOSYS ? 0 : 2;
}

static void what_is_allowed_or_merely_looked_for_tells_nobody(void **state)
{
	pid_t pid = begin(allowed_calls);
	struct denied told = { 0 };

	(void)state;
	/* The only event is the end, although nobody has answered anything. */
	assert_int_equal(status_of(pid), 0);
	assert_int_equal(refusals_hear(&r), 0);
	refusals_tell(&r, &told);
	assert_int_equal(told.calls[0].times, 0);
	refusals_close(&r);
}

static int a_flood(void)
{
	int answered = 0, gone = 0;

	for (int i = 0; i < 100000; i++) {
		if (fails(unshare(CLONE_NEWUTS), EPERM))
			answered++;
		else if (errno == ENOSYS)
			gone++;
	}
	return answered == DENIED_ANSWERS_MAX && gone == 100000 - DENIED_ANSWERS_MAX ? 0 : 1;
}

static void a_flood_is_answered_so_often_and_never_let_through(void **state)
{
	pid_t pid = begin(a_flood);
	struct denied told = { 0 };

	(void)state;
	serve(pid);
	assert_int_equal(status_of(pid), 0);
	refusals_tell(&r, &told);
	assert_int_equal(told.clipped, 1);
	assert_int_equal(told.calls[0].times, DENIED_ANSWERS_MAX);
}

static int many_kinds(void)
{
	static const long numbers[] = { SYS_mount, SYS_umount2, SYS_ptrace, SYS_keyctl, SYS_bpf,
		SYS_setns, SYS_reboot, SYS_swapoff, SYS_acct, SYS_chroot };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (!fails(syscall(numbers[i], 0, 0, 0, 0, 0, 0), EPERM))
			return 1;
	}
	return 0;
}

static void the_first_kinds_have_names_and_the_rest_a_number(void **state)
{
	pid_t pid = begin(many_kinds);
	struct denied told = { 0 };

	(void)state;
	serve(pid);
	assert_int_equal(status_of(pid), 0);
	refusals_tell(&r, &told);
	assert_int_equal(told.calls[DENIED_CALLS_MAX - 1].number, SYS_swapoff);
	assert_int_equal(told.other_calls, 10 - DENIED_CALLS_MAX);
}

static void what_came_before_the_program_is_forgotten(void **state)
{
	pid_t pid = begin(many_kinds);
	struct denied told = { 0 };

	(void)state;
	serve(pid);
	assert_int_equal(status_of(pid), 0);
	refusals_forget(&r);
	refusals_tell(&r, &told);
	assert_int_equal(told.calls[0].times, 0);
	assert_int_equal(told.other_calls, 0);
}

static int one_call(void)
{
	return fails(unshare(CLONE_NEWUTS), ENOSYS) ? 0 : 1;
}

static void without_a_listener_it_is_a_call_that_does_not_exist(void **state)
{
	pid_t pid = begin(one_call);

	(void)state;
	refusals_close(&r);
	assert_int_equal(status_of(pid), 0);
	assert_int_equal(refusals_hear(&r), -EBADF);
}

static int a_call_that_is_not_answered(void)
{
	(void)unshare(CLONE_NEWUTS);
	return 1;
}

static void who_is_killed_while_it_waits_blocks_nobody(void **state)
{
	pid_t pid = begin(a_call_that_is_not_answered);
	struct pollfd p = { .fd = r.fd, .events = POLLIN };
	int status;

	(void)state;
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_true(p.revents & POLLIN);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(refusals_hear(&r), 0);
	assert_int_equal(r.answered, 0);
	refusals_close(&r);
}

static void what_is_no_listener_is_left_at_once(void **state)
{
	int pair[2];

	(void)state;
	refusals_clear(&r);
	assert_int_equal(refusals_hear(&r), -EBADF);
	refusals_take(&r, eventfd(1, EFD_CLOEXEC));
	assert_int_equal(refusals_hear(&r), -ENOTTY);
	refusals_close(&r);
	assert_int_equal(channel_pair(pair, 1), 0);
	refusals_take(&r, pair[0]);
	assert_int_equal(refusals_hear(&r), 1); /* nothing is there: no call of its is waited for */
	assert_int_equal(write(pair[1], "x", 1), 1);
	assert_int_equal(refusals_hear(&r), -ENOTTY);
	assert_int_equal(r.answered, 0);
	refusals_close(&r);
	(void)close(pair[1]);
}

static int a_second_listener(void)
{
	struct fault f = { 0 };
	int second = 77;

	/* The policy denies the call itself; nobody answers, so that it does not exist. */
	return seccomp_install_told(&second, &f) < 0 && second == -1 ? 0 : 1;
}

static void a_program_cannot_have_a_listener_of_its_own(void **state)
{
	pid_t pid = begin(a_second_listener);

	(void)state;
	serve(pid);
	assert_int_equal(status_of(pid), 0);
}

/* What a container's manager may have put above us. */
static int install_foreign_listener(void)
{
	static struct sock_filter allow = { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW };
	struct sock_fprog program = { 1, &allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(
		SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static void below_another_listener_the_kernel_answers_alone(void **state)
{
	pid_t pid = fork();
	int listener = 77;
	struct fault f = { 0 };

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		if (install_foreign_listener() < 0 || seccomp_install_told(&listener, &f) < 0 ||
			listener != -1)
			_exit(1);
		_exit(harmless_calls());
	}
	assert_int_equal(status_of(pid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_denied_call_gets_its_errno_and_is_counted),
		cmocka_unit_test(what_is_allowed_or_merely_looked_for_tells_nobody),
		cmocka_unit_test(a_flood_is_answered_so_often_and_never_let_through),
		cmocka_unit_test(the_first_kinds_have_names_and_the_rest_a_number),
		cmocka_unit_test(what_came_before_the_program_is_forgotten),
		cmocka_unit_test(without_a_listener_it_is_a_call_that_does_not_exist),
		cmocka_unit_test(who_is_killed_while_it_waits_blocks_nobody),
		cmocka_unit_test(what_is_no_listener_is_left_at_once),
		cmocka_unit_test(a_program_cannot_have_a_listener_of_its_own),
		cmocka_unit_test(below_another_listener_the_kernel_answers_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
