/* Children and images, without any right: each call fails in its turn, in the parent and in the
 * child before its exec. What needs namespaces is in test_cell.c. */
#include "unit.h"

#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "kernel/mount.h"
#include "kernel/process.h"
#include "kernel/sys.h"
#include "tests/lib/flaky.h"
#include "tests/unit/count_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

ssize_t __wrap_io_read_text(int dir_fd, const char *path, char *text, size_t room);
ssize_t __real_io_read_text(int dir_fd, const char *path, char *text, size_t room);
int __wrap_io_write_all(int fd, const void *bytes, size_t len);
int __real_io_write_all(int fd, const void *bytes, size_t len);
int __wrap_io_seal(int fd);
int __real_io_seal(int fd);
ssize_t __wrap_sendfile64(int to, int from, off_t *at, size_t len);
ssize_t __real_sendfile64(int to, int from, off_t *at, size_t len);
pid_t __wrap_wait4(pid_t pid, int *status, int options, struct rusage *usage);
pid_t __real_wait4(pid_t pid, int *status, int options, struct rusage *usage);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
pid_t __real_waitpid(pid_t pid, int *status, int options);

static bool cannot_read, cannot_write, cannot_seal;
static unsigned interrupted; /* so many waits are */

ssize_t __wrap_io_read_text(int dir_fd, const char *path, char *text, size_t room)
{
	return cannot_read ? -EMFILE : __real_io_read_text(dir_fd, path, text, room);
}

int __wrap_io_write_all(int fd, const void *bytes, size_t len)
{
	return cannot_write ? -ENOSPC : __real_io_write_all(fd, bytes, len);
}

int __wrap_io_seal(int fd)
{
	return cannot_seal ? -EBUSY : __real_io_seal(fd);
}

ssize_t __wrap_sendfile64(int to, int from, off_t *at, size_t len)
{
	errno = ENOSPC;
	return cannot_write ? -1 : __real_sendfile64(to, from, at, len);
}

static bool is_interrupted(void)
{
	if (interrupted == 0)
		return false;
	interrupted--;
	errno = EINTR;
	return true;
}

pid_t __wrap_wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	return is_interrupted() ? -1 : __real_wait4(pid, status, options, usage);
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
	return is_interrupted() ? -1 : __real_waitpid(pid, status, options);
}

#define DEADLINE_MS   20000
#define EXEC_FAILED   125
#define CALLS_MAX     64 /* more than any of these makes */
#define ID_MAPS_MAX   32
#define PROGRAM_BYTES (1 << 20)

static void an_image_is_there_in_full_or_not_at_all(void **state)
{
	unsigned before = count_fds();

	(void)state;
	for (unsigned n = 0; n < CALLS_MAX; n++) {
		cleanup_fd int fd = -1;
		struct fault f = { 0 };
		int r;

		flaky_arm(n, EIO);
		r = process_image("x", "bytes", 5, &fd, &f);
		if (!flaky_disarm()) {
			assert_int_equal(r, 0);
			assert_true(n > 0);
			assert_true(fcntl(fd, F_GET_SEALS) & F_SEAL_WRITE);
			return;
		}
		assert_int_equal(r, -EIO);
		assert_int_equal(fd, -1);
		assert_int_equal(count_fds(), before);
	}
	fail();
}

static void the_own_image_is_there_in_full_or_not_at_all(void **state)
{
	unsigned before = count_fds();

	(void)state;
	for (unsigned n = 0; n < CALLS_MAX; n++) {
		cleanup_fd int fd = -1;
		struct fault f = { 0 };
		int r;

		flaky_arm(n, EIO);
		r = process_self_image(&fd, &f);
		if (!flaky_disarm()) {
			assert_int_equal(r, 0);
			return;
		}
		assert_int_equal(r, -EIO);
		assert_int_equal(count_fds(), before);
	}
	fail();
}

static void a_kernel_without_executable_memory_files_makes_one_of_the_old_kind(void **state)
{
	cleanup_fd int fd = -1;
	struct fault f = { 0 };

	(void)state;
	flaky_arm(0, EINVAL);
	assert_int_equal(process_image("x", "bytes", 5, &fd, &f), 0);
	assert_true(flaky_disarm());
	assert_string_equal(flaky_name(), "memfd_create");
}

static void what_cannot_be_sealed_is_no_image(void **state)
{
	struct fault f = { 0 };
	unsigned before = count_fds();
	int fd = -1;

	(void)state;
	cannot_seal = true;
	assert_int_equal(process_image("x", "bytes", 5, &fd, &f), -EBUSY);
	assert_non_null(strstr(f.text, "seal"));
	assert_int_equal(process_self_image(&fd, &f), -EBUSY);
	cannot_seal = false;
	assert_int_equal(fd, -1);
	assert_int_equal(count_fds(), before);
}

static int small_program(void)
{
	static char bytes[PROGRAM_BYTES];
	cleanup_fd int from = open("/bin/true", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(from, bytes, sizeof(bytes));
	struct fault f = { 0 };
	int fd = -1;

	assert_true(n > 0 && n < PROGRAM_BYTES);
	assert_int_equal(process_image("true", bytes, (size_t)n, &fd, &f), 0);
	return fd;
}

static int end_of(struct process *p)
{
	struct pollfd ready = { .fd = p->pidfd, .events = POLLIN };
	struct rusage usage;
	int status = 0;

	assert_int_equal(poll(&ready, 1, DEADLINE_MS), 1);
	assert_int_equal(process_reap(p, &status, &usage), 1);
	process_close(p);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The child is a copy, with what is left to count: a call that is not reached here may fail
 * there. */
static void a_child_executes_its_image_or_ends_and_nothing_is_left(void **state)
{
	cleanup_fd int image = small_program(), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct process_plan plan = { .image_fd = image,
		.argv = { "true", NULL },
		.fds = { null },
		.nfds = 1,
		.out_fd = -1,
		.err_fd = -1,
		.pidns_of = -1,
		.cgroup_fd = -1,
		.new_session = 1 };
	unsigned refused = 0, failed = 0, good = 0;
	unsigned before = count_fds();

	(void)state;
	for (unsigned n = 0; n < CALLS_MAX && good < 4; n++) {
		struct fault f = { 0 };
		struct process p;
		int r, status;

		process_clear(&p);
		flaky_arm(n, EIO);
		r = process_spawn(&plan, &p, &f);
		if (r == 0)
			(void)process_release(&p, &f);
		(void)flaky_disarm();
		if (r < 0) {
			refused++;
			assert_int_equal(count_fds(), before);
			continue;
		}
		status = end_of(&p);
		assert_true(status == 0 || status == EXEC_FAILED);
		failed += status != 0;
		good += status == 0;
		assert_int_equal(count_fds(), before);
	}
	/* pipe2 and clone3; then at least /dev/null, the copies, their places, the rest closed,
	 * the exec. */
	assert_int_equal(refused, 2);
	assert_true(failed >= 8);
	assert_true(good > 0);
}

static int refuses_ids(uid_t r, uid_t e, uid_t s)
{
	(void)r;
	(void)e;
	(void)s;
	return -EPERM;
}

/* What it would execute would have no capability. */
static void a_child_that_cannot_become_root_inside_executes_nothing(void **state)
{
	cleanup_fd int image = small_program();
	const struct process_plan plan = { .image_fd = image,
		.argv = { "true", NULL },
		.out_fd = -1,
		.err_fd = -1,
		.pidns_of = -1,
		.cgroup_fd = -1,
		.own_root = true };
	const struct sys_ops real = sys;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct fault f = { 0 };
		struct process p;

		process_clear(&p);
		*(i == 0 ? &sys.setresgid : &sys.setresuid) = refuses_ids;
		assert_int_equal(process_spawn(&plan, &p, &f), 0);
		sys = real;
		assert_int_equal(process_release(&p, &f), 0);
		assert_int_equal(end_of(&p), EXEC_FAILED);
	}
}

static ssize_t writes_nothing(int fd, const void *bytes, size_t len)
{
	(void)fd;
	(void)bytes;
	(void)len;
	return 0;
}

static void a_child_that_is_gone_is_not_released(void **state)
{
	struct process p = { .pidfd = -1 };
	struct fault f = { 0 };
	int pair[2];

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	(void)close(pair[0]);
	p.release_fd = pair[1];
	assert_int_equal(process_release(&p, &f), -EPIPE);
	assert_int_equal(p.release_fd, -1);
}

static void more_ids_than_a_map_holds_are_refused_before_anything_is_written(void **state)
{
	const struct process p = { .pid = getpid(), .pidfd = -1, .release_fd = -1 };
	uint32_t ids[ID_MAPS_MAX];
	struct fault f = { 0 };

	(void)state;
	for (unsigned i = 0; i < ID_MAPS_MAX; i++)
		ids[i] = UINT32_MAX;
	assert_int_equal(process_map_ids(&p, ids, ids, ID_MAPS_MAX, &f), -E2BIG);
}

static void a_process_that_is_not_there_has_no_maps_and_no_score(void **state)
{
	const struct process p = { .pid = 0x7ffffff, .pidfd = -1, .release_fd = -1 };
	const uint32_t id = 0;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(process_map_ids(&p, &id, &id, 1, &f), -ENOENT);
	assert_int_equal(process_oom_score(&p, 1, &f), -ENOENT);
}

static void a_release_that_writes_nothing_is_none(void **state)
{
	struct process p = { .pidfd = -1 };
	struct fault f = { 0 };
	int pair[2];
	const struct sys_ops real = sys;

	(void)state;
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	p.release_fd = pair[1];
	sys.write = writes_nothing;
	assert_int_equal(process_release(&p, &f), -EIO);
	sys = real;
	(void)close(pair[0]);
}

static void an_image_that_does_not_fit_is_said_and_nothing_is_left(void **state)
{
	unsigned before = count_fds();
	struct fault f = { 0 };
	int fd = -1;

	(void)state;
	cannot_write = true;
	assert_int_equal(process_image("x", "bytes", 5, &fd, &f), -ENOSPC);
	assert_int_equal(process_self_image(&fd, &f), -ENOSPC);
	cannot_write = false;
	assert_int_equal(fd, -1);
	assert_int_equal(count_fds(), before);
}

static void a_child_whose_number_cannot_be_read_is_not_believed(void **state)
{
	cleanup_fd int pidfd = -1;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(pause());
	pidfd = sys.pidfd_open(pid, 0);
	assert_true(process_is_child(pid, pidfd));
	cannot_read = true;
	assert_false(process_is_child(pid, pidfd));
	cannot_read = false;
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_signal_interrupts_no_reaping(void **state)
{
	struct process p = { .pidfd = -1, .release_fd = -1, .pid = fork() };
	struct rusage usage;
	siginfo_t info;
	int status;

	(void)state;
	if (p.pid == 0)
		_exit(7);
	assert_int_equal(waitid(P_PID, (id_t)p.pid, &info, WEXITED | WNOWAIT), 0);
	interrupted = 2;
	assert_int_equal(process_reap(&p, &status, &usage), 1);
	assert_int_equal(WEXITSTATUS(status), 7);
	interrupted = 2;
	assert_int_equal(process_try_namespaces(0), 0);
	assert_int_equal(interrupted, 0);
}

/* ---- Back from a cell's pid namespace ---- */

static unsigned went;
static pid_t clone_says;

static int setns_there_only(int fd, int type)
{
	(void)fd;
	(void)type;
	return went++ == 0 ? 0 : -EPERM;
}

static pid_t clone_that_fails(struct clone_args *args, size_t size)
{
	(void)args;
	(void)size;
	return clone_says;
}

static void who_cannot_come_back_ends_whether_there_is_a_child_or_not(void **state)
{
	const struct process_plan plan = { .pidns_of = 0, .cgroup_fd = -1 };
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		const struct rlimit none = { 0, 0 };
		struct fault f = { 0 };
		struct process p;

		(void)setrlimit(RLIMIT_CORE, &none);
		(void)signal(SIGABRT, SIG_DFL);
		clone_says = -EAGAIN;
		sys.setns = setns_there_only;
		sys.clone3 = clone_that_fails;
		_exit(process_spawn(&plan, &p, &f) < 0 ? 1 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void namespaces_are_tried_by_a_child_that_ends(void **state)
{
	(void)state;
	assert_int_equal(process_try_namespaces(0), 0);
	assert_true(process_try_namespaces(UINT64_C(1) << 63) < 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* Makes nothing, and needs no right. */
static int no_fsopen(const char *type, unsigned flags)
{
	(void)type;
	(void)flags;
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

static char options[64];

static int notes_option(int fd, unsigned cmd, const char *key, const void *value, int aux)
{
	(void)fd;
	(void)cmd;
	(void)aux;
	if (key)
		(void)snprintf(options + strlen(options), sizeof(options) - strlen(options),
			"%s=%s ", key, (const char *)value);
	return 0;
}

static int no_fsmount(int fd, unsigned flags, unsigned attributes)
{
	(void)fd;
	(void)flags;
	(void)attributes;
	return no_fsopen("", 0);
}

static void a_proc_that_is_not_full_has_nothing_but_processes(void **state)
{
	const struct sys_ops real = sys;
	struct fault f = { 0 };

	(void)state;
	sys.fsopen = no_fsopen;
	sys.fsconfig = notes_option;
	sys.fsmount = no_fsmount;
	for (int full = 0; full < 2; full++) {
		cleanup_fd int fd = -1;

		options[0] = '\0';
		assert_int_equal(mount_proc(full, &fd, &f), 0);
		assert_string_equal(options, full ? "hidepid=2 " : "hidepid=2 subset=pid ");
	}
	sys = real;
}

static void a_directory_that_an_overlay_cannot_name_is_refused(void **state)
{
	static char longer[4096];
	const char *const bad[] = { "/a:b", "/a\\b", longer };
	const struct sys_ops real = sys;

	(void)state;
	(void)memset(longer, 'a', sizeof(longer) - 1);
	longer[0] = '/';
	sys.fsopen = no_fsopen;
	for (unsigned i = 0; i < 3; i++) {
		const char *const layers[][3] = {
			{ bad[i], "/empty" }, { "/top", bad[i] }, /* wherever it lies */
		};

		for (unsigned k = 0; k < 2; k++) {
			struct fault f = { 0 };
			int fd = -1;

			assert_int_equal(mount_overlay(layers[k], 0, &fd, &f), -EINVAL);
			assert_non_null(strstr(f.text, "directory name"));
			assert_int_equal(fd, -1);
		}
	}
	sys = real;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_image_is_there_in_full_or_not_at_all),
		cmocka_unit_test(the_own_image_is_there_in_full_or_not_at_all),
		cmocka_unit_test(what_cannot_be_sealed_is_no_image),
		cmocka_unit_test(
			a_kernel_without_executable_memory_files_makes_one_of_the_old_kind),
		cmocka_unit_test(a_child_executes_its_image_or_ends_and_nothing_is_left),
		cmocka_unit_test(a_child_that_cannot_become_root_inside_executes_nothing),
		cmocka_unit_test(a_child_that_is_gone_is_not_released),
		cmocka_unit_test(a_release_that_writes_nothing_is_none),
		cmocka_unit_test(an_image_that_does_not_fit_is_said_and_nothing_is_left),
		cmocka_unit_test(a_child_whose_number_cannot_be_read_is_not_believed),
		cmocka_unit_test(a_signal_interrupts_no_reaping),
		cmocka_unit_test(who_cannot_come_back_ends_whether_there_is_a_child_or_not),
		cmocka_unit_test(a_proc_that_is_not_full_has_nothing_but_processes),
		cmocka_unit_test(more_ids_than_a_map_holds_are_refused_before_anything_is_written),
		cmocka_unit_test(a_process_that_is_not_there_has_no_maps_and_no_score),
		cmocka_unit_test(namespaces_are_tried_by_a_child_that_ends),
		cmocka_unit_test(a_directory_that_an_overlay_cannot_name_is_refused),
	};

	return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
