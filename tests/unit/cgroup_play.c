#include "tests/unit/cgroup_play.h"
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/cgroup_internal.h"
#include "kernel/sys.h"
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
#include <sys/wait.h>
#include <unistd.h>

const struct cgroup_limits small = { .memory_bytes = 64 * MIB, .cpu_milli = 500, .pids = 8 };

struct cgroup_tree tree;
char base_path[64];
unsigned first_number;

/* ---- Processes in a leaf ---- */

void child_sleep(int report_fd)
{
	(void)!write(report_fd, "s", 1);
	for (;;)
		(void)pause();
}

struct child start_in(struct cgroup_tree *t, const struct cgroup *cg, child_fn *run)
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

char await_report(const struct child *c)
{
	struct pollfd p = { .fd = c->report_fd, .events = POLLIN };
	char byte = 0;

	assert_int_equal(poll(&p, 1, DEADLINE_S * 1000), 1);
	(void)!read(c->report_fd, &byte, 1);
	return byte;
}

int reap(struct child *c)
{
	int status = 0;

	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	drop_fd(&c->report_fd);
	return status;
}

void await_empty(const struct cgroup *cg)
{
	uint64_t deadline_ns = clock_ns() + DEADLINE_S * NS_PER_S;
	int r;

	while ((r = cgroup_populated(cg)) == 1) {
		struct pollfd p = { .fd = cg->events_fd, .events = POLLPRI };

		assert_int_equal(poll(&p, 1, clock_ms_until(deadline_ns)), 1);
	}
	assert_int_equal(r, 0);
}

void destroy(const struct cgroup_tree *t, struct cgroup *cg)
{
	uint64_t deadline_ns = clock_ns() + DEADLINE_S * NS_PER_S;
	int r;

	while ((r = cgroup_destroy(t, cg)) == -EBUSY && clock_ns() < deadline_ns)
		(void)sched_yield();
	assert_int_equal(r, 0);
}

struct cgroup create(const char *name, const struct cgroup_limits *lim)
{
	struct fault f = { 0 };
	struct cgroup cg;

	if (cgroup_create(&tree, name, lim, &cg, &f) < 0)
		fail_msg("%s", f.text);
	return cg;
}

static uint64_t number_in(const struct cgroup *cg, enum cgroup_controller c, const char *file)
{
	uint64_t v = 0;

	assert_int_equal(cgroup_read_u64(cg->fd[tree.of[c]], file, &v), 0);
	return v;
}

void assert_limits(const struct cgroup *cg, const struct cgroup_limits *lim)
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

/* ---- Census ---- */

unsigned count_entries(int dir_fd, bool only_dirs)
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

unsigned count_fds(void)
{
	cleanup_fd int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return count_entries(fd, false);
}

unsigned count_groups(const struct cgroup_tree *t, const char *from)
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

int cgroup_play_begin(void **state)
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

int cgroup_play_end(void **state)
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
