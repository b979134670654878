/* Landlock rule sets, tried in a root of our own. Root; what the kernel's ABI does not have is
 * not among the tests. */
#include "unit.h"

#include "base/fault.h"
#include "kernel/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRATCH "/tmp"

/* Assertions do not work in a child: it exits with the number of the check that failed. */
#define WANT(n, cond)             \
	do {                      \
		if (!(cond))      \
			return n; \
	} while (0)

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

/* A mount namespace whose root looks like a cell's, with `missing` left out. */
static int enter_root(const char *missing)
{
	static const char *const dirs[] = { "workspace", "tmp", "dev", "dev/shm", "etc",
		"workspace/a", "workspace/b" };

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -1;
	if (mount("tmpfs", SCRATCH, "tmpfs", 0, "size=1m") < 0 || chdir(SCRATCH) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		if (strcmp(dirs[i], missing) != 0 && mkdir(dirs[i], 0755) < 0)
			return -1;
	}
	if (mknod("dev/null", S_IFCHR | 0666, makedev(1, 3)) < 0 ||
		mknod("etc/file", S_IFREG | 0644, 0) < 0)
		return -1;
	return chroot(".") < 0 || chdir("/") < 0 ? -1 : 0;
}

static bool can_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0644);

	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

static int denied(int r)
{
	return r < 0 && errno == EACCES;
}

static int use_cell(void)
{
	struct fault f = { 0 };

	WANT(100, enter_root("") == 0);
	WANT(101, landlock_cell(false, &f) == 0);

	WANT(1, can_open("/etc/file", O_RDONLY) && can_open("/", O_RDONLY | O_DIRECTORY));
	WANT(2, can_open("/workspace/a/x", O_RDWR | O_CREAT | O_TRUNC));
	WANT(3, can_open("/tmp/x", O_RDWR | O_CREAT) && can_open("/dev/shm/x", O_RDWR | O_CREAT));
	WANT(4, truncate("/workspace/a/x", 0) == 0);
	WANT(5, rename("/workspace/a/x", "/workspace/b/y") == 0); /* across directories */
	WANT(6, link("/workspace/b/y", "/workspace/a/z") == 0);
	WANT(7, mkfifo("/workspace/f", 0600) == 0 && symlink("a", "/workspace/s") == 0);
	WANT(8, unlink("/workspace/f") == 0 && mkdir("/workspace/d", 0700) == 0);
	WANT(9, rmdir("/workspace/d") == 0);
	WANT(10, can_open("/dev/null", O_WRONLY | O_TRUNC));
	return 0;
}

static void a_cell_can_use_what_it_is_given(void **state)
{
	(void)state;
	in_child(use_cell);
}

static int leave_cell(void)
{
	struct fault f = { 0 };

	WANT(100, enter_root("") == 0);
	WANT(101, landlock_cell(false, &f) == 0);

	WANT(1, denied(open("/etc/file", O_WRONLY)));
	WANT(2, denied(open("/etc/new", O_WRONLY | O_CREAT, 0644)));
	WANT(3, denied(mkdir("/new", 0755)) && denied(unlink("/etc/file")));
	WANT(4, denied(mknod("/workspace/null", S_IFCHR | 0666, makedev(1, 3))));
	WANT(5, denied(mknod("/workspace/disk", S_IFBLK | 0666, makedev(7, 0))));
	WANT(6, denied(open("/dev/new", O_WRONLY | O_CREAT, 0644)));
	WANT(7, mount("tmpfs", "/tmp", "tmpfs", 0, NULL) < 0 && errno == EPERM);
	return 0;
}

static void a_cell_cannot_write_elsewhere_make_devices_or_mount(void **state)
{
	(void)state;
	in_child(leave_cell);
}

static int reach_out(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM, 0), c = socket(AF_UNIX, SOCK_STREAM, 0);
	socklen_t len = sizeof(a);
	struct fault f = { 0 };

	WANT(100, s >= 0 && c >= 0);
	WANT(101, bind(s, (struct sockaddr *)&a, sizeof(sa_family_t)) == 0); /* autobind */
	WANT(102, listen(s, 1) == 0 && getsockname(s, (struct sockaddr *)&a, &len) == 0);
	WANT(103, enter_root("") == 0);
	WANT(104, landlock_cell(false, &f) == 0);

	WANT(1, connect(c, (struct sockaddr *)&a, len) < 0 && errno == EPERM);
	WANT(2, kill(getppid(), 0) < 0 && errno == EPERM);
	return 0;
}

static void a_cell_reaches_no_abstract_socket_and_no_process_outside(void **state)
{
	(void)state;
	in_child(reach_out);
}

static int miss_a_place(void)
{
	struct fault f = { 0 };

	WANT(100, enter_root("dev/shm") == 0);
	WANT(1, landlock_cell(false, &f) == -ENOENT);
	WANT(2, strstr(f.text, "/dev/shm"));
	return 0;
}

static void a_place_that_is_missing_is_named(void **state)
{
	(void)state;
	in_child(miss_a_place);
}

static int deny_all(void)
{
	struct fault f = { 0 };

	WANT(101, landlock_deny_all(0, false, &f) == 0);
	WANT(1, denied(open("/", O_RDONLY | O_DIRECTORY)));
	WANT(2, denied(open("/etc/passwd", O_RDONLY)));
	WANT(3, denied(mkdir("/tmp/landlock-test", 0700)));
	return 0;
}

static void denying_all_leaves_no_file(void **state)
{
	(void)state;
	in_child(deny_all);
}

static void a_kernel_without_landlock_is_told_apart(void **state)
{
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(landlock_cell(false, &f), -EOPNOTSUPP);
}

int main(void)
{
	static const struct CMUnitTest without[] = {
		cmocka_unit_test(a_kernel_without_landlock_is_told_apart),
	};
	/* By the ABI that each needs. */
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(denying_all_leaves_no_file),      /* 1 */
		cmocka_unit_test(a_cell_can_use_what_it_is_given), /* 2 */
		cmocka_unit_test(a_cell_cannot_write_elsewhere_make_devices_or_mount),
		cmocka_unit_test(a_place_that_is_missing_is_named),
		cmocka_unit_test(a_cell_reaches_no_abstract_socket_and_no_process_outside), /* 6 */
	};
	int abi = landlock_abi();

	if (abi < 1)
		return cmocka_run_group_tests(without, NULL, NULL);
	return _cmocka_run_group_tests("tests", tests, abi >= 6 ? 5 : abi >= 2 ? 4 : 1, NULL, NULL);
}
