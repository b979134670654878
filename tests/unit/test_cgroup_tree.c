/* Trees of real control groups, on whatever host this is: opened, swept, taken over, and where an
 * instance goes by itself. */
#include "tests/unit/cgroup_play.h"
#include "tests/unit/unit.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/cgroup_internal.h"
#include "kernel/sys.h"
#include "tests/lib/flaky.h"
#include "tests/lib/leaf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static void whichever_call_fails_tree_open_leaves_nothing_behind(void **state)
{
	unsigned groups = count_groups(&tree, "..");
	unsigned n = 0, failures = 0;

	(void)state;
	for (;; n++) {
		unsigned before = count_fds();
		struct cgroup_tree t;
		struct fault f = { 0 };
		bool reached;
		int r;

		flaky_arm(n, EIO);
		r = cgroup_tree_open(&t, first_number + 1, base_path, &f);
		reached = flaky_disarm();
		/* Some calls only find out what there is: they may fail. */
		if (r == 0)
			cgroup_tree_close(&t);
		else
			assert_int_equal(f.code, r);
		failures += r < 0;
		if (count_fds() != before || count_groups(&tree, "..") != groups)
			fail_msg("call %u (%s) failed and something stayed: %s", n, flaky_name(),
				f.text);
		if (!reached)
			break;
	}
	assert_true(failures > 5);
}

static unsigned descriptors_of(const struct cgroup *cg)
{
	unsigned n = tree.count + 2; /* directories; events and OOM */

	for (unsigned i = 0; i < CGROUP_FILE_MAX; i++)
		n += cg->file[i] >= 0;
	return n;
}

/* A tree whose owner died: one process in one cell, and nobody who would clean up. */
static struct child abandon(unsigned number)
{
	struct cgroup_tree t;
	struct fault f = { 0 };
	struct cgroup cg;
	struct child c;

	if (cgroup_tree_open(&t, number, base_path, &f) < 0 ||
		cgroup_create(&t, "c9", &small, &cg, &f) < 0)
		fail_msg("%s", f.text);
	c = start_in(&t, &cg, child_sleep);
	assert_int_equal(await_report(&c), 's');
	for (unsigned i = 0; i < t.count; i++) {
		(void)close(t.h[i].dir_fd);
	}
	cgroup_close(&cg);
	return c;
}

static bool is_number(unsigned number, void *ctx)
{
	return number == *(const unsigned *)ctx;
}

static void sweep_ends_the_dead_and_only_the_dead(void **state)
{
	unsigned dead = first_number + 2, groups = count_groups(&tree, "..");
	struct child a = abandon(dead), b = abandon(dead + 1);
	cleanup_fd int foreign_fd =
		openat(tree.h[0].dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct pollfd p = { .fd = -1, .events = POLLIN };

	(void)state;
	assert_int_equal(mkdirat(foreign_fd, "glovebox.x", 0755), 0);
	assert_int_equal(cgroup_sweep(&tree, is_number, &dead), 1);
	assert_int_equal(WTERMSIG(reap(&a)), SIGKILL);
	p.fd = sys.pidfd_open(b.pid, 0);
	assert_true(p.fd >= 0);
	assert_int_equal(poll(&p, 1, 0), 0); /* alive */
	(void)close(p.fd);

	dead++;
	assert_int_equal(cgroup_sweep(&tree, is_number, &dead), 1);
	assert_int_equal(WTERMSIG(reap(&b)), SIGKILL);
	assert_int_equal(cgroup_sweep(&tree, is_number, &dead), 0);
	assert_int_equal(unlinkat(foreign_fd, "glovebox.x", AT_REMOVEDIR), 0);
	assert_int_equal(count_groups(&tree, ".."), groups);
}

static void sweep_does_not_end_its_own_instance(void **state)
{
	struct cgroup cg = create("c1", &small);
	unsigned own = first_number;

	(void)state;
	assert_int_equal(cgroup_sweep(&tree, is_number, &own), 0);
	assert_limits(&cg, &small);
	destroy(&tree, &cg);
}

static void an_instance_takes_over_what_its_predecessor_left(void **state)
{
	unsigned number = first_number + 4, groups = count_groups(&tree, "..");
	struct child a = abandon(number);
	struct fault f = { 0 };
	struct cgroup_tree t;

	(void)state;
	if (cgroup_tree_open(&t, number, base_path, &f) < 0)
		fail_msg("%s", f.text);
	assert_int_equal(WTERMSIG(reap(&a)), SIGKILL);
	assert_int_equal(count_groups(&t, "."), 0);
	cgroup_tree_close(&t);
	assert_int_equal(count_groups(&tree, ".."), groups);
}

static void closing_ends_what_still_runs(void **state)
{
	unsigned number = first_number + 5, groups = count_groups(&tree, "..");
	unsigned fds = count_fds();
	struct fault f = { 0 };
	struct cgroup_tree t;
	struct cgroup cg;
	struct child c;

	(void)state;
	if (cgroup_tree_open(&t, number, base_path, &f) < 0 ||
		cgroup_create(&t, "c1", &small, &cg, &f) < 0)
		fail_msg("%s", f.text);
	c = start_in(&t, &cg, child_sleep);
	assert_int_equal(await_report(&c), 's');
	cgroup_tree_close(&t);
	assert_int_equal(WTERMSIG(reap(&c)), SIGKILL);
	assert_int_equal(count_groups(&tree, ".."), groups);
	assert_int_equal(count_fds(), fds + descriptors_of(&cg));
	for (unsigned i = 0; i < tree.count; i++)
		drop_fd(&cg.fd[i]);
	drop_fd(&cg.events_fd);
	drop_fd(&cg.oom_fd);
}

static void a_path_that_leads_elsewhere_is_refused(void **state)
{
	struct cgroup_tree t;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(cgroup_tree_open(&t, first_number + 6, "/a/../b", &f), -EINVAL);
	assert_non_null(strstr(f.text, "/a/../b"));
}

/* Without --cgroup: where an instance goes by itself. In a systemd session that is a
 * refusal that says what to do, and cgroup_needs_scope() agrees with it. */
static void without_a_path_it_finds_its_place_or_says_what_to_do(void **state)
{
	struct cgroup_tree t;
	struct fault f = { 0 };
	int scope = cgroup_needs_scope("", &f);
	int r = cgroup_tree_open(&t, first_number + 7, "", &f);

	(void)state;
	if (r < 0) {
		assert_int_equal(r, -EACCES);
		assert_non_null(strstr(f.text, scope == 1 ? "Delegate=yes" : "--cgroup PATH"));
		return;
	}
	assert_int_equal(scope, 0);
	for (unsigned c = 0; c < CGROUP_CONTROLLER_MAX; c++)
		assert_true(t.of[c] >= 0);
	cgroup_tree_close(&t);
}

static void own_group(char ret[CGROUP_PATH_MAX])
{
	struct cgroup_own own;
	int r = 0;
	cleanup_free char *text = cgroup_slurp("/proc/self/cgroup", &r);

	if (!text || cgroup_parse_own(text, &own) < 0)
		_exit(10);
	(void)snprintf(ret, CGROUP_PATH_MAX, "%s", own.unified);
}

/* In a child that is alone in its group: returns what went wrong, 0 for nothing. */
static int live_in_own_group(void)
{
	char before[CGROUP_PATH_MAX], during[CGROUP_PATH_MAX], after[CGROUP_PATH_MAX];
	struct cgroup_tree t;
	struct fault f = { 0 };
	struct cgroup cg;

	own_group(before);
	if (cgroup_tree_open(&t, first_number + 8, "", &f) < 0) {
		(void)fprintf(stderr, "%s\n", f.text);
		return 11;
	}
	own_group(during);
	if (!strstr(during, before) || !strstr(during, "/" CGROUP_SUPERVISOR))
		return 12;
	if (t.of[CGROUP_MEMORY] != 0 || t.of[CGROUP_CPU] != 0 || t.of[CGROUP_PIDS] != 0)
		return 13;
	if (cgroup_create(&t, "c1", &small, &cg, &f) < 0 || cgroup_destroy(&t, &cg) < 0)
		return 14;
	cgroup_tree_close(&t);
	own_group(after);
	return strcmp(before, after) == 0 ? 0 : 15;
}

/* Run `body` in a child that is alone in a new group, with an optional mark of systemd's
 * on it, and expect 0; the group has to be empty again afterwards. */
static void run_alone(int (*body)(void), bool delegated)
{
	cleanup_fd int base_fd = openat(tree.h[0].dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
	cleanup_fd int own_fd = -1;
	int status;
	pid_t pid;

	assert_int_equal(mkdirat(base_fd, "alone", 0755), 0);
	own_fd = openat(base_fd, "alone", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(own_fd >= 0);
	if (delegated)
		assert_int_equal(fsetxattr(own_fd, "user.delegate", "1", 1, 0), 0);
	args.cgroup = (uint64_t)own_fd;
	pid = sys.clone3(&args, sizeof(args));
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(unlinkat(base_fd, "alone", AT_REMOVEDIR), 0);
}

/* A mount namespace whose changes stay in it. */
static int leave_mounts(void)
{
	if (unshare(CLONE_NEWNS) < 0)
		return -errno;
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno : 0;
}

/* As if systemd were not the init, on whatever host: 0 when all went well. */
static int pretend_no_systemd(void)
{
	return leave_mounts() < 0 || mount("run", "/run", "tmpfs", 0, NULL) < 0 ? 20 : 0;
}

static int live_alone(void)
{
	int r = pretend_no_systemd();

	return r ? r : live_in_own_group();
}

static void alone_in_its_group_it_moves_into_a_leaf_and_back(void **state)
{
	(void)state;
	run_alone(live_alone, false);
}

/* As if it were. */
static int pretend_systemd(void)
{
	if (pretend_no_systemd() != 0)
		return 20;
	if (mkdir("/run/systemd", 0755) < 0 || mkdir("/run/systemd/system", 0755) < 0)
		return 21;
	return 0;
}

static int be_refused_by_systemd(void)
{
	struct cgroup_tree t;
	struct fault f = { 0 };
	int r = pretend_systemd();

	if (r)
		return r;
	if (cgroup_needs_scope("", &f) != 1)
		return 22;
	if (cgroup_tree_open(&t, first_number + 9, "", &f) != -EACCES)
		return 23;
	return strstr(f.text, "systemd-run --scope -p Delegate=yes") ? 0 : 24;
}

static int live_in_delegated_group(void)
{
	struct fault f = { 0 };
	int r = pretend_systemd();

	if (r)
		return r;
	return cgroup_needs_scope("", &f) == 0 ? live_in_own_group() : 22;
}

static void under_systemd_only_a_delegated_group_will_do(void **state)
{
	(void)state;
	run_alone(be_refused_by_systemd, false);
	run_alone(live_in_delegated_group, true);
}

/* In a group that a process is in: asked for a group to be made there. */
static int be_refused_below_a_crowd(void)
{
	char own[CGROUP_PATH_MAX], path[CGROUP_PATH_MAX + 8];
	struct cgroup_tree t;
	struct fault f = { 0 };

	own_group(own);
	(void)snprintf(path, sizeof(path), "%s/below", own);
	if (cgroup_tree_open(&t, first_number + 11, path, &f) != -EBUSY)
		return 40;
	return strstr(f.text, own) ? 0 : 41;
}

static void a_path_below_a_group_with_processes_is_refused(void **state)
{
	(void)state;
	run_alone(be_refused_below_a_crowd, false);
}

/* Without any cgroup2 mount in sight. */
static int live_without_unified_mount(void)
{
	int r = 0;
	cleanup_free char *text = cgroup_slurp("/proc/self/mountinfo", &r);
	struct cgroup_mounts mounts;
	struct cgroup_tree t;
	struct fault f = { 0 };
	struct cgroup cg;
	struct child c;

	if (!text || cgroup_parse_mountinfo(text, &mounts) < 0 || leave_mounts() < 0)
		return 30;
	for (unsigned i = 0; i < mounts.count; i++) {
		if (mounts.m[i].version == 2 && umount2(mounts.m[i].point, MNT_DETACH) < 0)
			return 31;
	}
	if (cgroup_tree_open(&t, first_number + 10, base_path, &f) < 0 ||
		cgroup_create(&t, "c1", &small, &cg, &f) < 0) {
		(void)fprintf(stderr, "%s\n", f.text);
		return 32;
	}
	if (t.h[0].version != 2 || strncmp(t.h[0].mount, "/", 1) == 0)
		return 33;
	c = start_in(&t, &cg, child_sleep);
	if (await_report(&c) != 's' || cgroup_kill(&cg) < 0)
		return 34;
	await_empty(&cg);
	if (WTERMSIG(reap(&c)) != SIGKILL)
		return 35;
	destroy(&t, &cg);
	cgroup_tree_close(&t);
	return 0;
}

static void a_host_without_a_unified_mount_gets_one_for_us_alone(void **state)
{
	unsigned groups = count_groups(&tree, "..");
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(live_without_unified_mount());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(count_groups(&tree, ".."), groups);
}

/* Where a v1 hierarchy has a controller, processes and cells may share a group, and the
 * tests of what v2 demands have nothing to test: there they are not registered. `make
 * check-vm` runs all of them, in a guest with v2 alone; all others run on any host. */
#define V2_ONLY 3

static bool v1_has_a_controller(void)
{
	CLEANUP(cgroup_host_done) struct cgroup_host h = { .unified_fd = -1 };
	struct fault f = { 0 };

	/* When it cannot be told, all of them run, and fail. */
	return cgroup_look("", &h, &f) == 0 && (cgroup_find_v1(&h.mounts, CGROUP_MEMORY) >= 0 ||
						       cgroup_find_v1(&h.mounts, CGROUP_CPU) >= 0 ||
						       cgroup_find_v1(&h.mounts, CGROUP_PIDS) >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whichever_call_fails_tree_open_leaves_nothing_behind),
		cmocka_unit_test(sweep_ends_the_dead_and_only_the_dead),
		cmocka_unit_test(sweep_does_not_end_its_own_instance),
		cmocka_unit_test(an_instance_takes_over_what_its_predecessor_left),
		cmocka_unit_test(closing_ends_what_still_runs),
		cmocka_unit_test(a_path_that_leads_elsewhere_is_refused),
		cmocka_unit_test(without_a_path_it_finds_its_place_or_says_what_to_do),
		cmocka_unit_test(a_host_without_a_unified_mount_gets_one_for_us_alone),
		/* From here on: the last V2_ONLY of them. */
		cmocka_unit_test(alone_in_its_group_it_moves_into_a_leaf_and_back),
		cmocka_unit_test(under_systemd_only_a_delegated_group_will_do),
		cmocka_unit_test(a_path_below_a_group_with_processes_is_refused),
	};
	size_t count = ARRAY_LEN(tests) - (v1_has_a_controller() ? V2_ONLY : 0);

	return _cmocka_run_group_tests(
		"cgroup_tree", tests, count, cgroup_play_begin, cgroup_play_end);
}
