/* What becomes of asking systemd for a group, with a busctl and a systemd of our own: the program
 * is replaced where it is spawned, what is seen of the own group where it is looked at
 * (-Wl,--wrap). The real ones: tests/vm/test_scope.py. */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "kernel/sys.h"
#include "priv/supervisor/scope.h"
#include "tests/lib/flaky.h"
#include "tests/unit/count_fds.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS_MAX 64

int __wrap_cgroup_needs_scope(const char *path, struct fault *f);
int __wrap_posix_spawn(pid_t *ret, const char *path, const posix_spawn_file_actions_t *actions,
	const posix_spawnattr_t *attr, char *const argv[], char *const envp[]);
int __real_posix_spawn(pid_t *ret, const char *path, const posix_spawn_file_actions_t *actions,
	const posix_spawnattr_t *attr, char *const argv[], char *const envp[]);
int __wrap_posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *a, int from);
int __real_posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *a, int from);
int __wrap_child_streams(posix_spawn_file_actions_t *a, int err_fd);
int __real_child_streams(posix_spawn_file_actions_t *a, int err_fd);
int __wrap_child_attributes(posix_spawnattr_t *a);
int __real_child_attributes(posix_spawnattr_t *a);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
pid_t __real_waitpid(pid_t pid, int *status, int options);
uint64_t __wrap_clock_ns(void);
uint64_t __real_clock_ns(void);

static struct {
	int needed[3]; /* what a look at the own group says, one after the other; the last stays */
	unsigned looks;
	const char *busctl;       /* as a shell's script; NULL: there is none */
	int errno_of_preparation; /* of the spawn, at the step with this number */
	unsigned step;
	const char *asked[2]; /* paths */
	char unit[64];
	uint64_t skipped_ns; /* so much later it is */
	uint64_t each_look_takes_ns;
	unsigned interrupted; /* so many waits are */
} host;

static struct sys_ops real;

int __wrap_cgroup_needs_scope(const char *path, struct fault *f)
{
	unsigned i = host.looks < 2 ? host.looks : 2;
	int r = host.needed[i];

	assert_string_equal(path, "");
	host.looks++;
	host.skipped_ns += host.each_look_takes_ns;
	return r < 0 ? fault_set(f, r, "look") : r;
}

static int prepared(unsigned step, int r)
{
	return host.step == step ? host.errno_of_preparation : r;
}

int __wrap_child_streams(posix_spawn_file_actions_t *a, int err_fd)
{
	return prepared(1, __real_child_streams(a, err_fd));
}

int __wrap_posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *a, int from)
{
	return prepared(2, __real_posix_spawn_file_actions_addclosefrom_np(a, from));
}

int __wrap_child_attributes(posix_spawnattr_t *a)
{
	return prepared(3, __real_child_attributes(a));
}

int __wrap_posix_spawn(pid_t *ret, const char *path, const posix_spawn_file_actions_t *actions,
	const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	const char *const shell[] = { "sh", "-c", host.busctl, NULL };

	assert_null(envp[0]); /* nothing of the caller's environment */
	for (unsigned i = 0; argv[i]; i++)
		if (strncmp(argv[i], "glovebox-", 9) == 0)
			(void)snprintf(host.unit, sizeof(host.unit), "%s", argv[i]);
	host.asked[host.asked[0] ? 1 : 0] = path;
	return host.busctl ? __real_posix_spawn(ret, "/bin/sh", actions, attr,
				     (char *const *)(uintptr_t)shell, envp)
			   : ENOENT;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
	if (host.interrupted == 0)
		return __real_waitpid(pid, status, options);
	host.interrupted--;
	errno = EINTR;
	return -1;
}

uint64_t __wrap_clock_ns(void)
{
	return __real_clock_ns() + host.skipped_ns;
}

static int begin(void **state)
{
	(void)state;
	log_setup("test", LOG_LEVEL_ERR);
	real = sys;
	memset(&host, 0, sizeof(host));
	host.needed[0] = 1;
	host.busctl = "exit 0";
	return 0;
}

static int end(void **state)
{
	(void)state;
	sys = real;
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
	return 0;
}

/* Refused with a text that has `words` and what to do instead. */
static void is_refused_with(const char *words)
{
	struct fault f = { 0 };

	assert_true(scope_enter("", &f) < 0);
	if (!strstr(f.text, words) || !strstr(f.text, "Delegate=yes"))
		fail_msg("%s", f.text);
}

static void who_needs_none_asks_nobody(void **state)
{
	struct fault f = { 0 };

	(void)state;
	host.needed[0] = 0;
	assert_int_equal(scope_enter("", &f), 0);
	assert_null(host.asked[0]);
}

static void a_group_that_cannot_be_looked_at_is_said(void **state)
{
	struct fault f = { 0 };

	(void)state;
	host.needed[0] = -EACCES;
	assert_int_equal(scope_enter("", &f), -EACCES);
	assert_non_null(strstr(f.text, "control groups: look"));
	assert_null(host.asked[0]);
}

static void after_systemds_answer_the_move_is_waited_for(void **state)
{
	struct fault f = { 0 };
	char unit[64];

	(void)state;
	host.needed[1] = 1;
	host.interrupted = 2;
	assert_int_equal(scope_enter("", &f), 0);
	assert_int_equal(host.looks, 3);
	(void)snprintf(unit, sizeof(unit), "glovebox-%d.scope", (int)getpid());
	assert_string_equal(host.unit, unit);
	assert_string_equal(host.asked[0], "/usr/bin/busctl");
}

static void a_move_that_does_not_come_is_given_up(void **state)
{
	(void)state;
	host.needed[1] = host.needed[2] = 1;
	host.each_look_takes_ns = 2 * NS_PER_S;
	is_refused_with("no delegated group came of it");
}

static void a_host_without_busctl_is_told_what_to_do(void **state)
{
	(void)state;
	host.busctl = NULL;
	is_refused_with("run /usr/bin/busctl: No such file");
	assert_string_equal(host.asked[1], "/bin/busctl");
}

static void what_busctl_says_is_repeated_in_one_line(void **state)
{
	(void)state;
	host.busctl = "echo 'Call failed: Access denied' >&2; echo more >&2; exit 1";
	is_refused_with(".scope: Call failed: Access denied");
}

static void a_busctl_that_fails_without_a_word_is_said_to_have_failed(void **state)
{
	(void)state;
	host.busctl = "kill -9 $$";
	is_refused_with("busctl failed");
}

static void what_spawning_it_needs_and_is_not_there_is_said(void **state)
{
	(void)state;
	for (host.step = 1; host.step <= 3; host.step++) {
		host.errno_of_preparation = ENOMEM;
		host.looks = 0;
		is_refused_with("Cannot allocate memory");
		assert_null(host.asked[0]);
	}
}

/* The first poll of the answer is interrupted, the second one waits in vain. */
static int times_out(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	static unsigned calls;

	(void)fds;
	assert_int_equal(count, 1);
	assert_in_range(timeout_ms, 1, 5000);
	return calls++ == 0 ? -EINTR : 0;
}

static void a_busctl_that_hangs_is_killed(void **state)
{
	(void)state;
	sys.poll = times_out;
	host.busctl = "exec sleep 1000";
	is_refused_with("does not answer: Connection timed out");
}

static void whichever_call_fails_it_is_said_and_nothing_is_left(void **state)
{
	unsigned n, failed = 0, before = count_fds();

	(void)state;
	for (n = 0; n < CALLS_MAX; n++) {
		struct fault f = { 0 };
		int r;

		host.looks = 0;
		host.busctl = "echo no >&2; exit 1";
		flaky_arm(n, EIO);
		r = scope_enter("", &f);
		if (!flaky_disarm())
			break;
		assert_int_equal(count_fds(), before);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
		/* Whose words cannot be read has failed all the same. */
		assert_true(r < 0 && f.text[0]);
		failed++;
	}
	assert_in_range(failed, 4, CALLS_MAX - 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(who_needs_none_asks_nobody),
		CASE(a_group_that_cannot_be_looked_at_is_said),
		CASE(after_systemds_answer_the_move_is_waited_for),
		CASE(a_move_that_does_not_come_is_given_up),
		CASE(a_host_without_busctl_is_told_what_to_do),
		CASE(what_busctl_says_is_repeated_in_one_line),
		CASE(a_busctl_that_fails_without_a_word_is_said_to_have_failed),
		CASE(what_spawning_it_needs_and_is_not_there_is_said),
		CASE(a_busctl_that_hangs_is_killed),
		CASE(whichever_call_fails_it_is_said_and_nothing_is_left),
	};

	return cmocka_run_group_tests_name("scope", tests, NULL, NULL);
}
