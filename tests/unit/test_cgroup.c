/* Real control groups, on whatever host this is, below a group of their own. */
#include "tests/unit/unit.h"

#include "base/check.h"
#include "base/clock.h"
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
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define MIB        (UINT64_C(1) << 20)
#define DEADLINE_S 60 /* emulated guests are slow; nothing waits this long when all is well */

static const struct cgroup_limits small = { .memory_bytes = 64 * MIB, .cpu_milli = 500, .pids = 8 };

/* The tree that most tests share. */
static struct cgroup_tree tree;
static char base_path[64];
static unsigned first_number;

/* ---- Processes in a leaf ---- */

/* What a child does; it must not return before it is done. */
typedef void child_fn(int report_fd);

struct child {
	pid_t pid;
	int report_fd; /* reads what the child wrote */
};

static void child_sleep(int report_fd)
{
	(void)!write(report_fd, "s", 1);
	for (;;)
		(void)pause();
}

static void child_touch_24_mib(int report_fd)
{
	leaf_touch(24 * MIB);
	child_sleep(report_fd);
}

static void child_hog(int report_fd)
{
	(void)!write(report_fd, "h", 1);
	for (;;)
		leaf_touch(MIB);
}

/* Fork until the kernel refuses, then say so. */
static void child_fork_bomb(int report_fd)
{
	for (unsigned i = 0; i < 1000; i++) {
		pid_t pid = fork();

		if (pid == 0)
			for (;;)
				(void)pause();
		if (pid < 0) {
			(void)!write(report_fd, errno == EAGAIN ? "r" : "?", 1);
			child_sleep(report_fd);
		}
	}
	_exit(4);
}

static uint64_t own_cpu_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void child_burn_100_ms(int report_fd)
{
	uint64_t from = own_cpu_us();

	while (own_cpu_us() < from + 100000)
		continue;
	(void)!write(report_fd, "b", 1);
}

/* Start `run` in the leaf, in every hierarchy before its first step. */
static struct child start_in(struct cgroup_tree *t, const struct cgroup *cg, child_fn *run)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)cgroup_clone_fd(cg),
	};
	struct child c;
	int go[2], report[2];
	char byte;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(report, O_CLOEXEC), 0);
	c.pid = sys.clone3(&args, sizeof(args));
	assert_true(c.pid >= 0);
	if (c.pid == 0) {
		(void)close(go[1]);
		if (read(go[0], &byte, 1) == 1)
			run(report[1]);
		_exit(0);
	}
	(void)close(go[0]);
	(void)close(report[1]);
	leaf_join_v1(t, cg, c.pid);
	assert_int_equal(write(go[1], "g", 1), 1);
	(void)close(go[1]);
	c.report_fd = report[0];
	return c;
}

static char await_report(const struct child *c)
{
	struct pollfd p = { .fd = c->report_fd, .events = POLLIN };
	char byte = 0;

	assert_int_equal(poll(&p, 1, DEADLINE_S * 1000), 1);
	(void)!read(c->report_fd, &byte, 1);
	return byte;
}

/* The wait status, of which a killed process has WTERMSIG() == SIGKILL. */
static int reap(struct child *c)
{
	int status = 0;

	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	drop_fd(&c->report_fd);
	return status;
}

static void await_empty(const struct cgroup *cg)
{
	uint64_t deadline_ns = clock_ns() + DEADLINE_S * NS_PER_S;
	int r;

	while ((r = cgroup_populated(cg)) == 1) {
		struct pollfd p = { .fd = cg->events_fd, .events = POLLPRI };

		assert_int_equal(poll(&p, 1, clock_ms_until(deadline_ns)), 1);
	}
	assert_int_equal(r, 0);
}

/* Ends when the kernel lets go; a leaf is busy while its last process is reaped. */
static void destroy(const struct cgroup_tree *t, struct cgroup *cg)
{
	uint64_t deadline_ns = clock_ns() + DEADLINE_S * NS_PER_S;
	int r;

	while ((r = cgroup_destroy(t, cg)) == -EBUSY && clock_ns() < deadline_ns)
		(void)sched_yield();
	assert_int_equal(r, 0);
}

static struct cgroup create(const char *name, const struct cgroup_limits *lim)
{
	struct fault f = { 0 };
	struct cgroup cg;

	if (cgroup_create(&tree, name, lim, &cg, &f) < 0)
		fail_msg("%s", f.text);
	return cg;
}

/* ---- Census ---- */

static unsigned count_entries(int dir_fd, bool only_dirs)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	unsigned n = 0;

	assert_non_null(dir);
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.' && (!only_dirs || e->d_type == DT_DIR);
	(void)closedir(dir);
	return n;
}

static unsigned count_fds(void)
{
	cleanup_fd int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return count_entries(fd, false);
}

/* Groups directly below every directory of the instance, or of its base. */
static unsigned count_groups(const struct cgroup_tree *t, const char *from)
{
	unsigned n = 0;

	for (unsigned i = 0; i < t->count; i++) {
		cleanup_fd int fd =
			openat(t->h[i].dir_fd, from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		assert_true(fd >= 0);
		n += count_entries(fd, true);
	}
	return n;
}

/* ---- Fixtures ---- */

static int setup(void **state)
{
	struct fault f = { 0 };

	(void)state;
	first_number = 3000000000u + 100 * ((unsigned)getpid() % 1000000);
	(void)snprintf(base_path, sizeof(base_path), "/test-%d", (int)getpid());
	if (cgroup_tree_open(&tree, first_number, base_path, &f) < 0) {
		print_error("%s\n", f.text);
		return -1;
	}
	for (unsigned c = 0; c < CGROUP_CONTROLLER_MAX; c++) {
		if (tree.of[c] < 0) {
			print_error("no %s controller\n", cgroup_controller_name(c));
			return -1;
		}
	}
	return 0;
}

static int teardown(void **state)
{
	int r = 0;
	cleanup_free char *text = cgroup_slurp("/proc/self/mountinfo", &r);
	struct cgroup_mounts mounts;

	(void)state;
	cgroup_tree_close(&tree);
	if (!text || cgroup_parse_mountinfo(text, &mounts) < 0)
		return -1;
	/* A base is the administrator's: it stays. This one is ours. */
	for (unsigned i = 0; i < mounts.count; i++) {
		char path[600];

		(void)snprintf(path, sizeof(path), "%s%s", mounts.m[i].point, base_path);
		if (rmdir(path) < 0 && errno != ENOENT) {
			print_error("rmdir %s: %d\n", path, errno);
			r = -1;
		}
	}
	return r;
}

/* ---- Tests ---- */

static void cells_live_in_the_unified_hierarchy_whoever_has_the_controllers(void **state)
{
	(void)state;
	assert_int_equal(tree.h[0].version, 2);
	assert_int_equal(tree.of[CGROUP_CPUACCT], 0);
	assert_true(tree.swap_accounting);
	for (unsigned i = 1; i < tree.count; i++)
		assert_int_equal(tree.h[i].version, 1);
}

static uint64_t number_in(const struct cgroup *cg, enum cgroup_controller c, const char *file)
{
	uint64_t v = 0;

	assert_int_equal(cgroup_read_u64(cg->fd[tree.of[c]], file, &v), 0);
	return v;
}

static void assert_limits(const struct cgroup *cg, const struct cgroup_limits *lim)
{
	const struct cgroup_ops *ops = cgroup_ops_of(&tree, CGROUP_MEMORY);
	bool v2 = tree.h[tree.of[CGROUP_MEMORY]].version == 2;
	char text[64], expect[64];

	assert_int_equal(number_in(cg, CGROUP_MEMORY, ops->memory_file), lim->memory_bytes);
	assert_int_equal(number_in(cg, CGROUP_MEMORY, ops->swap_file), v2 ? 0 : lim->memory_bytes);
	if (v2)
		assert_int_equal(number_in(cg, CGROUP_MEMORY, "memory.oom.group"), 1);
	assert_int_equal(number_in(cg, CGROUP_PIDS, "pids.max"), lim->pids);

	ops = cgroup_ops_of(&tree, CGROUP_CPU);
	assert_true(
		cgroup_read(cg->fd[tree.of[CGROUP_CPU]], ops->cpu_file, text, sizeof(text)) > 0);
	(void)snprintf(expect, sizeof(expect),
		tree.h[tree.of[CGROUP_CPU]].version == 2 ? "%u 100000\n" : "%u\n",
		lim->cpu_milli * 100);
	assert_string_equal(text, expect);
}

static void limits_are_what_was_asked_from_the_beginning(void **state)
{
	struct cgroup cg = create("c1", &small);

	(void)state;
	assert_limits(&cg, &small);
	assert_int_equal(cgroup_populated(&cg), 0);
	assert_false(cgroup_oom_happened(&tree, &cg));
	destroy(&tree, &cg);
}

static void limits_can_be_raised_and_lowered(void **state)
{
	static const struct cgroup_limits steps[] = {
		{ .memory_bytes = 128 * MIB, .cpu_milli = 1500, .pids = 64 },
		{ .memory_bytes = 16 * MIB, .cpu_milli = 10, .pids = 1 },
		{ .memory_bytes = 32 * MIB, .cpu_milli = 1000, .pids = 2 },
	};
	struct cgroup cg = create("c1", &small);
	struct fault f = { 0 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(steps); i++) {
		if (cgroup_set_limits(&tree, &cg, &steps[i], &f) < 0)
			fail_msg("step %u: %s", i, f.text);
		assert_limits(&cg, &steps[i]);
	}
	destroy(&tree, &cg);
}

static void limits_that_were_written_in_part_are_not_taken_for_the_old_ones(void **state)
{
	static const struct cgroup_limits larger = { 128 * MIB, 1000, 16 };
	struct cgroup cg = create("c1", &small);
	unsigned n = 0, failed = 0;
	bool reached = true;

	(void)state;
	for (; reached; n++) {
		struct fault f = { 0 };
		int r;

		flaky_arm(n, EIO);
		r = cgroup_set_limits(&tree, &cg, &larger, &f);
		reached = flaky_disarm();
		failed += r < 0;
		if (r == 0)
			assert_limits(&cg, &larger);
		assert_int_equal(cgroup_set_limits(&tree, &cg, &small, &f), 0);
		assert_limits(&cg, &small);
	}
	assert_true(failed >= 6); /* two calls a file, three files at least */
	destroy(&tree, &cg);
}

static void a_limit_below_what_is_in_use_is_refused_and_kills_nobody(void **state)
{
	const struct cgroup_limits tight = { .memory_bytes = 8 * MIB, .cpu_milli = 500, .pids = 8 };
	struct cgroup cg = create("c1", &small);
	struct child c = start_in(&tree, &cg, child_touch_24_mib);
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(await_report(&c), 's');
	assert_int_equal(cgroup_set_limits(&tree, &cg, &tight, &f), -EDQUOT);
	assert_int_equal(f.code, -EDQUOT);
	assert_int_equal(cgroup_populated(&cg), 1);
	assert_false(cgroup_oom_happened(&tree, &cg));

	assert_int_equal(cgroup_kill(&cg), 0);
	assert_int_equal(WTERMSIG(reap(&c)), SIGKILL);
	destroy(&tree, &cg);
}

/* v2's memory.events is always "readable": only POLLPRI has a meaning there. */
static short oom_events(void)
{
	return tree.h[tree.of[CGROUP_MEMORY]].version == 2 ? POLLPRI : POLLIN;
}

static void nothing_is_announced_before_it_happens(void **state)
{
	struct cgroup cg = create("c1", &small);
	struct pollfd p[2] = {
		{ .fd = cg.events_fd, .events = POLLPRI },
		{ .fd = cg.oom_fd, .events = oom_events() },
	};

	(void)state;
	assert_int_equal(poll(p, 2, 0), 0);
	destroy(&tree, &cg);
}

static void kill_ends_every_process_and_poll_tells(void **state)
{
	struct cgroup cg = create("c1", &small);
	struct child a = start_in(&tree, &cg, child_sleep);
	struct child b = start_in(&tree, &cg, child_sleep);
	struct pollfd p = { .fd = cg.events_fd, .events = POLLPRI };

	(void)state;
	assert_int_equal(await_report(&a), 's');
	assert_int_equal(await_report(&b), 's');
	assert_int_equal(cgroup_populated(&cg), 1);
	assert_int_equal(poll(&p, 1, 0), 0); /* reading it armed it */

	assert_int_equal(cgroup_kill(&cg), 0);
	assert_int_equal(poll(&p, 1, DEADLINE_S * 1000), 1);
	await_empty(&cg);
	assert_int_equal(WTERMSIG(reap(&a)), SIGKILL);
	assert_int_equal(WTERMSIG(reap(&b)), SIGKILL);
	destroy(&tree, &cg);
}

static void running_out_of_memory_is_announced_and_ends_the_whole_cell(void **state)
{
	const struct cgroup_limits lim = { .memory_bytes = 16 * MIB, .cpu_milli = 1000, .pids = 8 };
	struct cgroup cg = create("c1", &lim);
	struct child sleeper = start_in(&tree, &cg, child_sleep);
	struct child hog = start_in(&tree, &cg, child_hog);
	uint64_t deadline_ns = clock_ns() + DEADLINE_S * NS_PER_S;
	struct cgroup_usage usage;

	(void)state;
	assert_int_equal(await_report(&sleeper), 's');
	/* v2's file also changes at "max", before anything is killed. */
	while (!cgroup_oom_happened(&tree, &cg)) {
		struct pollfd p = { .fd = cg.oom_fd, .events = oom_events() };

		assert_int_equal(poll(&p, 1, clock_ms_until(deadline_ns)), 1);
	}
	/* On v1 the kernel ends one process, and the rest is for us. */
	if (tree.h[tree.of[CGROUP_MEMORY]].version == 1)
		assert_int_equal(cgroup_kill(&cg), 0);
	await_empty(&cg);
	assert_int_equal(WTERMSIG(reap(&hog)), SIGKILL);
	assert_int_equal(WTERMSIG(reap(&sleeper)), SIGKILL);
	assert_true(cgroup_oom_happened(&tree, &cg)); /* it does not forget */

	cgroup_read_usage(&tree, &cg, &usage);
	assert_in_range(usage.memory_peak_bytes, 8 * MIB, 16 * MIB);
	destroy(&tree, &cg);
}

static void the_next_leaf_of_the_same_name_has_no_past(void **state)
{
	struct cgroup cg = create("c1", &small);
	struct cgroup_usage usage;

	(void)state;
	assert_false(cgroup_oom_happened(&tree, &cg));
	cgroup_read_usage(&tree, &cg, &usage);
	assert_int_equal(usage.oom_kills, 0);
	assert_int_equal(usage.pids_refused, 0);
	destroy(&tree, &cg);
}

static void a_fork_bomb_is_refused_and_counted(void **state)
{
	struct cgroup cg = create("c1", &small);
	struct child c = start_in(&tree, &cg, child_fork_bomb);
	struct cgroup_usage usage;

	(void)state;
	assert_int_equal(await_report(&c), 'r');
	cgroup_read_usage(&tree, &cg, &usage);
	assert_true(usage.pids_refused > 0);
	assert_true(usage.pids_peak == 0 || usage.pids_peak == small.pids);

	assert_int_equal(cgroup_kill(&cg), 0);
	await_empty(&cg);
	(void)reap(&c);
	destroy(&tree, &cg);
}

static void use_is_counted_and_cpu_held_back(void **state)
{
	const struct cgroup_limits lim = { .memory_bytes = 64 * MIB, .cpu_milli = 100, .pids = 8 };
	struct cgroup cg = create("c1", &lim);
	struct child c = start_in(&tree, &cg, child_burn_100_ms);
	struct cgroup_usage usage;

	(void)state;
	assert_int_equal(await_report(&c), 'b');
	assert_int_equal(reap(&c), 0);
	cgroup_sample(&cg);
	cgroup_read_usage(&tree, &cg, &usage);
	/* The last tick may not be counted yet. */
	assert_in_range(usage.cpu_us, 80000, UINT64_C(60) * 1000000);
	assert_true(cgroup_cpu_us(&tree, &cg) >= usage.cpu_us);
	assert_in_range(usage.user_us + usage.system_us, 80000, UINT64_C(60) * 1000000);
	assert_true(usage.throttled_us > 0); /* 10 ms in 100 ms: ten periods were needed */
	assert_true(usage.memory_peak_bytes > 0);
	assert_int_not_equal(usage.memory_counter, MEMORY_COUNTER_NONE);
	destroy(&tree, &cg);
}

static void a_leaf_that_is_in_use_stays_until_it_is_empty(void **state)
{
	struct cgroup cg = create("c1", &small);
	struct child c = start_in(&tree, &cg, child_sleep);

	(void)state;
	assert_int_equal(await_report(&c), 's');
	assert_int_equal(cgroup_destroy(&tree, &cg), -EBUSY);
	assert_int_equal(cgroup_populated(&cg), 1);
	assert_limits(&cg, &small);
	assert_int_equal(cgroup_kill(&cg), 0);
	(void)reap(&c);
	destroy(&tree, &cg);
	assert_int_equal(count_groups(&tree, "."), 0);
}

static void a_leaf_that_was_never_made_can_be_destroyed(void **state)
{
	struct cgroup cg;

	(void)state;
	cgroup_clear(&cg);
	assert_int_equal(cgroup_destroy(&tree, &cg), 0);
}

static void a_second_leaf_of_a_name_is_refused_and_the_first_stays(void **state)
{
	struct cgroup cg = create("c1", &small), again;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(cgroup_create(&tree, "c1", &small, &again, &f), -EEXIST);
	assert_non_null(strstr(f.text, "c1"));
	assert_limits(&cg, &small);
	destroy(&tree, &cg);
}

/* Fail the 1st, 2nd, 3rd... kernel call in turn. */
static void whichever_call_fails_create_leaves_nothing_behind(void **state)
{
	unsigned n = 0;

	(void)state;
	for (;; n++) {
		unsigned before = count_fds();
		struct fault f = { 0 };
		struct cgroup cg;
		int r;

		flaky_arm(n, EIO);
		r = cgroup_create(&tree, "c1", &small, &cg, &f);
		if (!flaky_disarm()) {
			assert_int_equal(r, 0);
			destroy(&tree, &cg);
			break;
		}
		if (r != -EIO || f.code != -EIO)
			fail_msg("call %u (%s): %d, %s", n, flaky_name(), r, f.text);
		assert_non_null(strstr(f.text, "cgroup c1: "));
		assert_int_equal(count_fds(), before);
		assert_int_equal(count_groups(&tree, "."), 0);
	}
	assert_true(n > 10);
}

static void whichever_call_fails_destroy_can_be_called_again(void **state)
{
	unsigned n = 0;

	(void)state;
	for (;; n++) {
		unsigned before = count_fds();
		struct cgroup cg = create("c1", &small);
		int r;

		flaky_arm(n, EBUSY);
		r = cgroup_destroy(&tree, &cg);
		if (!flaky_disarm()) {
			assert_int_equal(r, 0);
			break;
		}
		assert_int_equal(r, -EBUSY);
		assert_int_equal(cgroup_destroy(&tree, &cg), 0);
		assert_int_equal(count_fds(), before);
		assert_int_equal(count_groups(&tree, "."), 0);
	}
	assert_int_equal(n, tree.count); /* one rmdir for each hierarchy */
}

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
		cmocka_unit_test(cells_live_in_the_unified_hierarchy_whoever_has_the_controllers),
		cmocka_unit_test(limits_are_what_was_asked_from_the_beginning),
		cmocka_unit_test(limits_can_be_raised_and_lowered),
		cmocka_unit_test(limits_that_were_written_in_part_are_not_taken_for_the_old_ones),
		cmocka_unit_test(a_limit_below_what_is_in_use_is_refused_and_kills_nobody),
		cmocka_unit_test(nothing_is_announced_before_it_happens),
		cmocka_unit_test(kill_ends_every_process_and_poll_tells),
		cmocka_unit_test(running_out_of_memory_is_announced_and_ends_the_whole_cell),
		cmocka_unit_test(the_next_leaf_of_the_same_name_has_no_past),
		cmocka_unit_test(a_fork_bomb_is_refused_and_counted),
		cmocka_unit_test(use_is_counted_and_cpu_held_back),
		cmocka_unit_test(a_leaf_that_is_in_use_stays_until_it_is_empty),
		cmocka_unit_test(a_leaf_that_was_never_made_can_be_destroyed),
		cmocka_unit_test(a_second_leaf_of_a_name_is_refused_and_the_first_stays),
		cmocka_unit_test(whichever_call_fails_create_leaves_nothing_behind),
		cmocka_unit_test(whichever_call_fails_destroy_can_be_called_again),
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

	return _cmocka_run_group_tests("cgroup", tests, count, setup, teardown);
}
