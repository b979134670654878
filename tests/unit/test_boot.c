/* What the supervisor makes of its config process, whose part a child of ours plays. */
#include "tests/unit/unit.h"

#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "kernel/process.h"
#include "kernel/sys.h"
#include "priv/supervisor/boot.h"
#include "tests/unit/api_settings.h"
#include "wire/channel.h"
#include "wire/network.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

int __wrap_process_spawn(const struct process_plan *plan, struct process *ret, struct fault *f);
int __wrap_process_release(struct process *p, struct fault *f);
int __wrap_process_image(
	const char *name, const void *bytes, size_t len, int *ret_fd, struct fault *f);
int __real_process_image(
	const char *name, const void *bytes, size_t len, int *ret_fd, struct fault *f);
int __wrap_channel_pair(int ret_fds[2], int nonblock);
int __real_channel_pair(int ret_fds[2], int nonblock);
const char *__wrap_settings_fault(const struct settings *s);
const char *__wrap_language_fault(const struct language *l);

enum part {
	SAYS_SETTINGS,
	SAYS_PIPE,     /* as that, with a pipe in the place of a policy */
	SAYS_UNSEALED, /* as that, with a policy that could still change */
	SAYS_SHORT,    /* ...that is not whole */
	SAYS_NO_LANGUAGE,
	SAYS_TOO_MANY,
	SAYS_BAD,
	SAYS_NONSENSE,
	SAYS_NOTHING,
	ENDS
};

static struct {
	enum part part;
	const char *fails;     /* a call's name */
	const char *fault;     /* of the settings */
	const char *mistake;   /* of a language */
	const char *absent;    /* no such file */
	bool null_is_there[8]; /* of what it was given: /dev/null */
	int poll_says;         /* -1: as it is */
} host;

static struct sys_ops real;
static struct languages languages; /* static: too large for a careful stack */
static struct settings settled;
static struct boot boot;

static bool fails(const char *name)
{
	return host.fails && strcmp(host.fails, name) == 0;
}

static int make_policy(void)
{
	int fd = memfd_create("policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t size = sizeof(struct network_policy) - (host.part == SAYS_SHORT);

	if (host.part == SAYS_PIPE) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC) < 0)
			_exit(1);
		return ends[0];
	}
	if (ftruncate(fd, (off_t)size) < 0 || (host.part != SAYS_UNSEALED && io_seal(fd) < 0))
		_exit(1);
	return fd;
}

/* In the child. */
static void play(int channel)
{
	static struct msg_config config;
	static struct msg_language language;
	struct msg_config_bad bad = { .fault = { .code = -EINVAL, .text = "pool-size: \x1b[0m" } };

	config.settings = api_settings;
	if (host.part <= SAYS_TOO_MANY) {
		unsigned count = host.part < SAYS_NO_LANGUAGE    ? 2
				 : host.part == SAYS_NO_LANGUAGE ? 0
								 : LANGUAGES_MAX + 1;
		int policy_fd = make_policy();

		for (unsigned i = 0; i < count; i++)
			(void)channel_send(channel, MSG_LANGUAGE, &language, NULL);
		(void)channel_send(channel, MSG_CONFIG, &config, &policy_fd);
	}
	if (host.part == SAYS_BAD)
		(void)channel_send(channel, MSG_CONFIG_BAD, &bad, NULL);
	else if (host.part == SAYS_NONSENSE)
		(void)!write(channel, "nonsense", 8);
	if (host.part != ENDS)
		(void)pause(); /* it is killed */
	_exit(0);
}

int __wrap_process_spawn(const struct process_plan *plan, struct process *ret, struct fault *f)
{
	pid_t pid;

	if (fails("spawn"))
		return fault_set(f, -EAGAIN, "clone3");
	assert_string_equal(plan->argv[1], "@config");
	for (unsigned i = 0; i < plan->nfds; i++) {
		struct stat st;

		assert_int_equal(fstat(plan->fds[i], &st), 0);
		host.null_is_there[i] = S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
	}
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		play(plan->fds[0]);
	*ret = (struct process){ .pid = pid, .pidfd = real.pidfd_open(pid, 0), .release_fd = -1 };
	return 0;
}

int __wrap_process_release(struct process *p, struct fault *f)
{
	assert_true(p->pid > 0);
	return fails("release") ? fault_set(f, -EIO, "release the child") : 0;
}

int __wrap_process_image(
	const char *name, const void *bytes, size_t len, int *ret_fd, struct fault *f)
{
	return fails("image") ? fault_set(f, -ENOMEM, "memfd %s", name)
			      : __real_process_image(name, bytes, len, ret_fd, f);
}

int __wrap_channel_pair(int ret_fds[2], int nonblock)
{
	return fails("pair") ? -EMFILE : __real_channel_pair(ret_fds, nonblock);
}

const char *__wrap_settings_fault(const struct settings *s)
{
	(void)s;
	return host.fault;
}

const char *__wrap_language_fault(const struct language *l)
{
	(void)l;
	return host.mistake;
}

static int fake_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	return host.absent && strcmp(path, host.absent) == 0
		       ? -ENOENT
		       : real.openat(dir_fd, path, flags, mode);
}

static int fake_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	int says = host.poll_says;

	host.poll_says = -1;
	if (says != -1) {
		assert_int_equal(timeout_ms, BOOT_TIMEOUT_MS);
		return says;
	}
	return real.poll(fds, count, timeout_ms);
}

static int begin(void **state)
{
	cleanup_fd int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	cleanup_fd int high = fcntl(null, F_DUPFD_CLOEXEC, BOOT_CONFIG + 1);

	(void)state;
	memset(&host, 0, sizeof(host));
	memset(&settled, 0, sizeof(settled));
	boot = (struct boot){ &settled, &languages, -1 };
	host.poll_says = -1;
	real = sys;
	sys.openat = fake_openat;
	sys.poll = fake_poll;
	for (int fd = BOOT_OVERRIDES; fd <= BOOT_CONFIG; fd++)
		assert_int_equal(dup3(high, fd, O_CLOEXEC), fd);
	if (null <= BOOT_CONFIG)
		null = -1; /* it is one of them */
	return 0;
}

static int end(void **state)
{
	(void)state;
	sys = real;
	drop_fd(&boot.policy_fd);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* it is reaped, whatever it did */
	return 0;
}

static void settings_arrive(void **state)
{
	struct fault f = { 0 };
	struct stat st;

	(void)state;
	assert_int_equal(boot_settings(-1, &boot, &f), 0);
	assert_memory_equal(&settled, &api_settings, sizeof(settled));
	assert_int_equal(fstat(boot.policy_fd, &st), 0);
	assert_int_equal(st.st_size, sizeof(struct network_policy));
	assert_int_equal(fcntl(boot.policy_fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(languages.count, 2);
	assert_int_equal(fcntl(BOOT_OVERRIDES, F_GETFD), -1);
	assert_int_equal(fcntl(BOOT_CONFIG, F_GETFD), -1);
}

static void is_refused(int code, const char *words)
{
	struct fault f = { 0 };

	assert_int_equal(boot_settings(-1, &boot, &f), code);
	assert_int_equal(boot.policy_fd, -1);
	if (!strstr(f.text, words))
		fail_msg("%s", f.text);
}

static void what_it_refuses_is_repeated_without_control_bytes(void **state)
{
	(void)state;
	host.part = SAYS_BAD;
	is_refused(-EINVAL, "pool-size: ?[0m");
}

static void settings_that_break_a_rule_are_refused_whoever_sends_them(void **state)
{
	(void)state;
	host.fault = "max-runs is above 120";
	is_refused(-EPROTO, "settings: max-runs is above 120");
}

static void a_policy_that_could_still_change_or_is_not_whole_is_refused(void **state)
{
	(void)state;
	host.part = SAYS_UNSEALED;
	is_refused(-EPROTO, "the network's policy is not sealed memory");
	(void)end(NULL);
	(void)begin(NULL);
	host.part = SAYS_PIPE;
	is_refused(-EPROTO, "the network's policy is not sealed memory");
	(void)end(NULL);
	(void)begin(NULL);
	host.part = SAYS_SHORT;
	is_refused(-EPROTO, "the network's policy is not of its size");
}

static void languages_that_break_a_rule_are_refused_whoever_sends_them(void **state)
{
	(void)state;
	host.mistake = "language: it has no name";
	is_refused(-EPROTO, "language: it has no name");
	host.mistake = NULL;
	host.part = SAYS_NO_LANGUAGE;
	is_refused(-EPROTO, "settings: there is no language");
	host.part = SAYS_TOO_MANY;
	is_refused(-EPROTO, "too many languages");
}

static void what_is_no_message_is_refused(void **state)
{
	(void)state;
	host.part = SAYS_NONSENSE;
	is_refused(-EPROTO, "config process: ");
}

static void one_that_says_nothing_is_no_start(void **state)
{
	(void)state;
	host.part = SAYS_NOTHING;
	host.poll_says = 0;
	is_refused(-ETIMEDOUT, "does not answer: Connection timed out");
}

static void one_that_cannot_be_waited_for_is_no_start(void **state)
{
	(void)state;
	host.part = SAYS_NOTHING;
	host.poll_says = -ENOMEM;
	is_refused(-ENOMEM, "does not answer: Cannot allocate memory");
}

static void one_that_ends_without_a_word_is_no_start(void **state)
{
	(void)state;
	host.part = ENDS;
	is_refused(-EPIPE, "ended without an answer");
}

static void what_its_start_needs_and_is_not_there_is_said(void **state)
{
	const char *const calls[] = { "pair", "image", "spawn", "release" };

	(void)state;
	host.part = SAYS_NOTHING;
	for (unsigned i = 0; i < 4; i++) {
		struct fault f = { 0 };

		host.fails = calls[i];
		assert_true(boot_settings(-1, &boot, &f) < 0);
		assert_true(f.text[0]);
	}
}

static void a_host_without_a_list_of_users_has_an_empty_one(void **state)
{
	struct fault f = { 0 };

	(void)state;
	host.absent = "/etc/subuid";
	assert_int_equal(boot_settings(-1, &boot, &f), 0);
	assert_false(host.null_is_there[4]); /* /etc/passwd */
	assert_true(host.null_is_there[6]);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(settings_arrive),
		CASE(what_it_refuses_is_repeated_without_control_bytes),
		CASE(settings_that_break_a_rule_are_refused_whoever_sends_them),
		CASE(a_policy_that_could_still_change_or_is_not_whole_is_refused),
		CASE(languages_that_break_a_rule_are_refused_whoever_sends_them),
		CASE(what_is_no_message_is_refused),
		CASE(one_that_says_nothing_is_no_start),
		CASE(one_that_cannot_be_waited_for_is_no_start),
		CASE(one_that_ends_without_a_word_is_no_start),
		CASE(what_its_start_needs_and_is_not_there_is_said),
		CASE(a_host_without_a_list_of_users_has_an_empty_one),
	};

	return cmocka_run_group_tests_name("boot", tests, NULL, NULL);
}
