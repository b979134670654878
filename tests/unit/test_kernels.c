/* Kernels that are older, or built otherwise, than the one that this runs on: what they answer is
 * ours (tests/lib/other_kernel.h, and the table of system calls). No root. */
#include "tests/unit/unit.h"

#include "base/fault.h"
#include "kernel/landlock.h"
#include "kernel/needs.h"
#include "kernel/signals.h"
#include "kernel/speculation.h"
#include "kernel/sys.h"
#include "kernel/twin.h"
#include "tests/lib/other_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ABI_NEWEST 7

static struct sys_ops real;

static int begin(void **state)
{
	(void)state;
	real = sys;
	return 0;
}

static int end(void **state)
{
	(void)state;
	other_kernel(NULL);
	sys = real;
	return 0;
}

/* Assertions do not work in a child: it exits with 0, or the number of what is wrong. */
static void in_child(int (*body)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
			_exit(200);
		_exit(body());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status)
		fail_msg("the child ended with status %#x: check %d", status, WEXITSTATUS(status));
}

/* ---- Landlock ---- */

static int abi;           /* what the kernel says that it has */
static long refused_call; /* 0: none */
static uint64_t expected_rights;

static bool old_landlock(long number, const long args[6], long *ret)
{
	if (number == SYS_landlock_create_ruleset && args[2] == 1) {
		*ret = abi > 0 ? abi : -EOPNOTSUPP;
		return true;
	}
	if (number != refused_call)
		return false;
	*ret = -EINVAL;
	return true;
}

static bool sees_rights_of_network(long number, const long args[6], long *ret)
{
	const uint64_t *attr = (const void *)args[0]; /* of files, of the network */

	if (number == SYS_landlock_create_ruleset && attr) {
		*ret = attr[1] == expected_rights ? -EINVAL : -EBADF;
		return true;
	}
	return old_landlock(number, args, ret);
}

static int denies_of_network(void)
{
	struct fault f = { 0 };

	expected_rights = 3; /* to bind and to connect */
	if (landlock_deny_all(0, false, &f) != -EINVAL)
		return 1;
	expected_rights = 1;
	return landlock_deny_all(0, true, &f) == -EINVAL ? 0 : 2;
}

static void who_may_connect_may_not_bind(void **state)
{
	(void)state;
	other_kernel(sees_rights_of_network);
	abi = 4;
	in_child(denies_of_network);
}

static int deny_all(void)
{
	struct fault f = { 0 };

	if (landlock_deny_all(0, false, &f) < 0)
		return 1;
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES ? 0 : 2;
}

static int read_below_etc(void)
{
	int etc = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fault f = { 0 };

	if (etc < 0 || landlock_deny_all(etc, false, &f) < 0)
		return 1;
	if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 || openat(etc, ".", O_RDONLY) < 0)
		return 2;
	if (open("/usr", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)
		return 3;
	return landlock_deny_all(99, false, &f) < 0 && strstr(f.text, "readable directory") ? 0 : 4;
}

static void only_below_the_readable_directory_files_can_be_read(void **state)
{
	(void)state;
	in_child(read_below_etc);
}

static void every_version_of_landlock_denies_files(void **state)
{
	(void)state;
	other_kernel(old_landlock);
	for (abi = 1; abi <= ABI_NEWEST; abi++)
		in_child(deny_all);
}

static void without_landlock_nothing_is_restricted_and_it_is_told(void **state)
{
	struct fault f = { 0 };

	(void)state;
	other_kernel(old_landlock);
	abi = 0;
	assert_int_equal(landlock_abi(), 0);
	assert_int_equal(landlock_deny_all(0, false, &f), -EOPNOTSUPP);
	assert_int_equal(landlock_cell(false, &f), -EOPNOTSUPP);
	abi = 1; /* every rename across directories would be denied */
	assert_int_equal(landlock_cell(false, &f), -EOPNOTSUPP);
}

static int told_by_all(void)
{
	struct fault f = { 0 };
	bool is_rule = refused_call == SYS_landlock_add_rule;

	if (!is_rule &&
		(landlock_deny_all(0, false, &f) != -EINVAL || !strstr(f.text, "landlock: ")))
		return 1;
	f = (struct fault){ 0 };
	if (refused_call != SYS_landlock_restrict_self &&
		(landlock_cell(false, &f) != -EINVAL || !strstr(f.text, "landlock: ")))
		return 2;
	return 0;
}

static void what_landlock_refuses_is_said(void **state)
{
	const long calls[] = { SYS_landlock_create_ruleset, SYS_landlock_add_rule,
		SYS_landlock_restrict_self };

	(void)state;
	other_kernel(old_landlock);
	abi = ABI_NEWEST;
	for (unsigned i = 0; i < 3; i++) {
		refused_call = calls[i];
		in_child(told_by_all);
	}
	refused_call = 0;
}

/* ---- Keyrings and speculation ---- */

static long keyctl_says;
static int speculation_says;

static bool keyrings(long number, const long args[6], long *ret)
{
	(void)args;
	*ret = keyctl_says;
	return number == SYS_keyctl;
}

static int speculation(int op, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	return op == PR_SET_SPECULATION_CTRL ? speculation_says : real.prctl(op, a, b, c, d);
}

static void what_a_processor_or_kernel_does_not_have_need_not_be_turned_off(void **state)
{
	const int fine[] = { 0, -ENXIO, -ENODEV, -EINVAL, -EPERM };
	struct fault f = { 0 };

	(void)state;
	other_kernel(keyrings);
	sys.prctl = speculation;
	for (unsigned i = 0; i < 5; i++) {
		speculation_says = fine[i];
		keyctl_says = i % 2 ? -ENOSYS : 1;
		assert_int_equal(speculation_restrict(&f), 0);
	}
	speculation_says = -ERANGE;
	assert_int_equal(speculation_restrict(&f), -ERANGE);
	keyctl_says = -EDQUOT;
	assert_int_equal(speculation_restrict(&f), -EDQUOT);
	assert_non_null(strstr(f.text, "keyring"));
}

/* ---- Signals ---- */

static long no_such_call;

static bool lacks(long number, const long args[6], long *ret)
{
	(void)args;
	*ret = -ENOSYS;
	return number == no_such_call;
}

static void signals_that_cannot_be_put_back_are_said(void **state)
{
	const long calls[] = { SYS_rt_sigaction, SYS_rt_sigprocmask };

	(void)state;
	other_kernel(lacks);
	for (unsigned i = 0; i < 2; i++) {
		struct fault f = { 0 };

		no_such_call = calls[i];
		assert_int_equal(signals_reset(&f), -ENOSYS);
		assert_true(f.text[0]);
	}
}

/* ---- The place where a thread's number is ---- */

static int *told_address;

static int tid_address(int op, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	if (op != PR_GET_TID_ADDRESS)
		return real.prctl(op, a, b, c, d);
	*(int **)a = told_address;
	return 0;
}

static void a_place_that_the_kernel_does_not_tell_is_found(void **state)
{
	struct fault f = { 0 };
	struct twin asked, found;
	int other = 0;
	int *const wrong[] = { NULL, &other };

	(void)state;
	assert_int_equal(twin_init(&asked, &f), 0);
	(void)close(asked.own_pidns_fd);
	sys.prctl = tid_address;
	for (unsigned i = 0; i < 2; i++) {
		told_address = wrong[i];
		assert_int_equal(twin_init(&found, &f), 0);
		assert_ptr_equal(found.tid_address, asked.tid_address);
		(void)close(found.own_pidns_fd);
	}
}

static void a_library_that_is_laid_out_otherwise_has_no_twin(void **state)
{
	int *words = (int *)(uintptr_t)pthread_self();
	struct fault f = { 0 };
	struct twin t;
	unsigned number_at = 0, other_at;

	(void)state;
	sys.prctl = tid_address;
	told_address = NULL;
	while (words[number_at] != gettid())
		number_at++;
	/* The number is there twice... */
	other_at = number_at + 1;
	while (words[other_at] != 0)
		other_at++;
	words[other_at] = gettid();
	assert_int_equal(twin_init(&t, &f), -ENOSYS);
	words[other_at] = 0;
	/* ...or nowhere. */
	words[number_at] = 0;
	assert_int_equal(twin_init(&t, &f), -ENOSYS);
	words[number_at] = gettid();
	assert_non_null(strstr(f.text, "find the thread's number"));
}

static void a_list_of_robust_locks_that_is_not_told_is_said(void **state)
{
	struct fault f = { 0 };
	struct twin t;

	(void)state;
	other_kernel(lacks);
	no_such_call = SYS_get_robust_list;
	assert_int_equal(twin_init(&t, &f), -ENOSYS);
	assert_non_null(strstr(f.text, "get_robust_list"));
}

/* ---- What nothing replaces ---- */

static int needed_says;

static pid_t old_clone3(struct clone_args *args, size_t size)
{
	(void)args;
	(void)size;
	return needed_says;
}

static int old_setns(int fd, int type)
{
	(void)fd;
	(void)type;
	return needed_says;
}

static int no_pidfd(pid_t pid, unsigned flags)
{
	(void)pid;
	(void)flags;
	return -ENOSYS;
}

static void a_kernel_that_knows_a_call_and_not_what_is_asked_of_it_is_too_old(void **state)
{
	const int old[] = { -E2BIG, -EINVAL, -ENOSYS };
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(needs_check(&f), 0);
	for (unsigned i = 0; i < 3; i++) {
		needed_says = old[i];
		sys.clone3 = old_clone3;
		assert_int_equal(needs_check(&f), -ENOSYS);
		assert_non_null(strstr(f.text, "no clone3() with CLONE_INTO_CGROUP (Linux 5.7"));
	}
	sys = real;
	needed_says = -EINVAL;
	sys.setns = old_setns;
	assert_int_equal(needs_check(&f), -ENOSYS);
	assert_non_null(strstr(f.text, "no setns() of a pidfd (Linux 5.8"));
	/* The layer watchdog says that. */
	sys.pidfd_open = no_pidfd;
	assert_int_equal(needs_check(&f), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(every_version_of_landlock_denies_files),
		CASE(who_may_connect_may_not_bind),
		CASE(only_below_the_readable_directory_files_can_be_read),
		CASE(without_landlock_nothing_is_restricted_and_it_is_told),
		CASE(what_landlock_refuses_is_said),
		CASE(what_a_processor_or_kernel_does_not_have_need_not_be_turned_off),
		CASE(signals_that_cannot_be_put_back_are_said),
		CASE(a_place_that_the_kernel_does_not_tell_is_found),
		CASE(a_library_that_is_laid_out_otherwise_has_no_twin),
		CASE(a_list_of_robust_locks_that_is_not_told_is_said),
		CASE(a_kernel_that_knows_a_call_and_not_what_is_asked_of_it_is_too_old),
	};

	return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
