/* Fail the 1st, 2nd, 3rd... kernel call of building, starting and destroying a cell, on
 * the supervisor's side, in init and in enter. Whichever breaks: it is said, nothing is
 * left behind, and the next cell stands.
 *
 * Each try runs in a child of its own that plays the supervisor, because one of the calls
 * (the way back from a cell's pid namespace) must end the process when it fails.
 */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/mount.h"
#include "kernel/process.h"
#include "kernel/sys.h"
#include "priv/launch/cell.h"
#include "priv/supervisor/lease.h"
#include "tests/lib/flaky.h"
#include "tests/lib/flaky_box.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMEOUT_NS (20 * NS_PER_S)
#define CALLS_MAX  2000 /* far more than a cell makes: a loop that never ends is a bug */

extern const unsigned char box_flaky_start[], box_flaky_end[];

static struct {
	struct lease lease;
	struct cgroup_tree tree;
	struct cgroup inits;
	struct view view;
	struct cell_factory factory;
} host;

static const struct runtime runtime = {
	.name = "true",
	.main_file = "main",
	.argv = { "/usr/bin/true" },
	.roots = { "/usr/bin", "/usr/lib/x86_64-linux-gnu", "?/usr/lib64" },
	.full_proc = 1,
};

/* What a try tells its parent, in shared memory: it may end by abort(). */
struct report {
	bool reached; /* the armed call was made */
	bool stood;   /* the cell ran its program to the end */
	bool leaked;
	bool asked, kept; /* was the cage to be kept for another program, and was it? */
	char call[32];
	char fault[512];
};
static struct report *report;

struct attempt {
	int nth;           /* the call on the supervisor's side that fails; -1: none */
	bool in_used_cage; /* it is counted from the end of a cage's first program */
	bool removed;      /* the cage is being removed when it is to be kept */
};
static const struct attempt good = { -1, false, false }, good_again = { -1, true, false },
			    too_late = { -1, true, true };

static unsigned count_entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

/* Leaves of this instance in all hierarchies; the group itself holds only leaves and files. */
static unsigned count_leaves(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < host.tree.count; i++) {
		char path[64];
		DIR *dir;
		const struct dirent *e;

		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", host.tree.h[i].dir_fd);
		dir = opendir(path);
		assert_non_null(dir);
		while ((e = readdir(dir)))
			n += e->d_type == DT_DIR && e->d_name[0] == 'c' && e->d_name[1] >= '0' &&
			     e->d_name[1] <= '9';
		(void)closedir(dir);
	}
	return n;
}

static bool wait_for_end(struct cell *c)
{
	uint64_t deadline = clock_ns() + TIMEOUT_NS;

	while (clock_ns() < deadline) {
		struct pollfd p = { .fd = c->leaf.events_fd, .events = POLLPRI };

		if (cell_is_empty(c) && cell_remove(c, &host.factory))
			return true;
		(void)poll(&p, 1, 5);
	}
	return false;
}

/* Until the cell is READY (0) or has broken. */
static int build(struct cell *c)
{
	while (c->state == CELL_BUILDING || c->state == CELL_ENTERING) {
		struct pollfd p = {
			.fd = c->state == CELL_BUILDING ? c->init_channel : c->main_channel,
			.events = POLLIN,
		};
		int r;

		if (poll(&p, 1, (int)(TIMEOUT_NS / NS_PER_MS)) != 1)
			return -ETIMEDOUT;
		r = cell_hear(c, &host.factory);
		if (r < 0)
			return r;
	}
	return 0;
}

static void make_streams(int fds[4], int kept[3])
{
	fds[0] = memfd_create("code", MFD_CLOEXEC);
	for (int i = 0; i < 3; i++) {
		int p[2];

		if (pipe2(p, O_CLOEXEC) < 0)
			_exit(99);
		fds[1 + i] = i == 0 ? p[0] : p[1];
		kept[i] = i == 0 ? p[1] : p[0];
	}
}

/* Release the program and see it end by itself with 0. */
static int run(struct cell *c, struct fault *f)
{
	const struct run_limits limits = { 10000000, 64 << 20, 0, 1000, 4 };
	int fds[4], kept[3], r;

	make_streams(fds, kept);
	r = cell_start(c, &host.factory, &limits, 0, fds, f);
	for (int i = 0; i < 4; i++)
		(void)close(fds[i]);
	while (r == 0 && !c->main_died) {
		struct pollfd p[2] = { { .fd = c->main_channel, .events = POLLIN },
			{ .fd = c->main.pidfd, .events = POLLIN } };

		if (poll(p, 2, (int)(TIMEOUT_NS / NS_PER_MS)) <= 0)
			r = -ETIMEDOUT;
		else if (c->main_channel >= 0 && p[0].revents && cell_hear(c, &host.factory) < 0)
			r = c->fault.code;
		else
			(void)cell_reap_main(c);
	}
	for (int i = 0; i < 3; i++)
		(void)close(kept[i]);
	if (r == 0 && c->main_status != 0)
		r = -ECHILD;
	return r;
}

/* Another program in the cage of the first one. A cage that is not kept is no failure, as long
 * as nothing was armed to fail. */
static int run_again(struct cell *c, bool removed, struct fault *f)
{
	uint64_t deadline = clock_ns() + TIMEOUT_NS;
	int r;

	cell_kill(c);
	while (!cell_is_empty(c) && clock_ns() < deadline)
		(void)poll(NULL, 0, 1);
	/* Its init has got a signal by now, but takes a while to die. */
	if (removed && cell_remove(c, &host.factory))
		return -EAGAIN;
	report->asked = true;
	report->kept = cell_vacate(c, &host.factory);
	if (!report->kept)
		return 0;
	r = cell_occupy(c, &host.factory, 8, f);
	if (r == 0)
		r = build(c);
	return r == 0 ? run(c, f) : r;
}

/* One cell's whole life, in this process. */
static void try_cell(const struct attempt *a)
{
	unsigned before = count_entries("/proc/self/fd");
	struct fault f = { 0 };
	static struct cell c; /* static: too large for a careful stack */
	int r;

	c = (struct cell){ .state = CELL_NONE };
	if (a->nth >= 0 && !a->in_used_cage)
		flaky_arm((unsigned)a->nth, EIO);
	r = cell_create(&c, &host.factory, 0, 7, &f);
	if (r == 0)
		r = build(&c);
	if (r == 0)
		r = run(&c, &f);
	if (a->in_used_cage) {
		if (r < 0)
			return; /* not what is tried here: *report says that it did not stand */
		if (a->nth >= 0)
			flaky_arm((unsigned)a->nth, EIO);
		r = run_again(&c, a->removed, &f);
	}
	(void)snprintf(report->fault, sizeof(report->fault), "%s", f.code ? f.text : c.fault.text);
	cell_kill(&c);
	report->reached = flaky_disarm();
	(void)snprintf(report->call, sizeof(report->call), "%s", flaky_name());
	report->stood = r == 0;
	report->leaked = !wait_for_end(&c) || count_entries("/proc/self/fd") != before;
}

/* Run a try in a child of its own. */
static int try_in_child(const struct attempt *a)
{
	int status;
	pid_t pid;

	memset(report, 0, sizeof(*report));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)signal(SIGABRT, SIG_DFL);
		/* Where it dies on purpose only the name of the call tells. */
		try_cell(a);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* What the next start does for a supervisor that died: its processes are dead already
 * (init by its parent's death), the leaf is removed as soon as the kernel lets go. */
static void sweep_leaf(void)
{
	uint64_t deadline = clock_ns() + TIMEOUT_NS;

	while (count_leaves() > 0) {
		assert_true(clock_ns() < deadline);
		for (unsigned i = 0; i < host.tree.count; i++)
			for (int id = 7; id <= 8; id++)
				(void)unlinkat(
					host.tree.h[i].dir_fd, id == 7 ? "c7" : "c8", AT_REMOVEDIR);
		(void)poll(NULL, 0, 1);
	}
}

static void use_box(uint32_t role, uint32_t nth, int code)
{
	const size_t len = (size_t)(box_flaky_end - box_flaky_start);
	struct fault f = { 0 };
	unsigned char *copy = malloc(len);
	struct flaky_box *block;

	assert_non_null(copy);
	memcpy(copy, box_flaky_start, len);
	block = memmem(copy, len, FLAKY_BOX_MAGIC, sizeof(FLAKY_BOX_MAGIC));
	assert_non_null(block);
	block->role = role;
	block->nth = nth;
	block->code = code;
	drop_fd(&host.factory.box_image_fd);
	assert_int_equal(process_image("box", copy, len, &host.factory.box_image_fd, &f), 0);
	free(copy);
}

static void expect_a_good_cell(const char *after, unsigned n)
{
	int status = try_in_child(&good);

	if (status != 0 || !report->stood || report->leaked)
		fail_msg("the cell after %s %u: %s", after, n, report->fault);
}

static const struct cgroup_limits inits_limits = { 64 << 20, 1000, 64 };

static int set_up(void **state)
{
	struct fault f = { 0 };

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN); /* as the supervisor does */
	report = mmap(
		NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (report == MAP_FAILED)
		return -1;
	host.factory.box_image_fd = -1;
	if (lease_take(&host.lease, &f) < 0 ||
		cgroup_tree_open(&host.tree, host.lease.number, "", &f) < 0 ||
		cgroup_create(&host.tree, "inits", &inits_limits, &host.inits, &f) < 0 ||
		mount_make_private(&f) < 0 || view_open(&host.view, &runtime, &f) < 0) {
		print_error("%s\n", f.text);
		return -1;
	}
	host.factory = (struct cell_factory){
		.tree = &host.tree,
		.inits = &host.inits,
		.usual = { 10000000, 64 << 20, 0, 1000, 8 },
		.view = &host.view,
		.runtime = &runtime,
		.box_image_fd = -1,
		.uid_base = 2000000 + host.lease.number * LEASE_UIDS,
		.workspace_inodes = 64,
		.runs_max = 2,
	};
	use_box(0, 0, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)cgroup_destroy(&host.tree, &host.inits);
	cgroup_tree_close(&host.tree);
	lease_release(&host.lease);
	return 0;
}

static void a_cell_stands_runs_and_leaves_nothing(void **state)
{
	(void)state;
	expect_a_good_cell("none", 0);
	assert_int_equal(count_leaves(), 0);
}

static void a_used_cage_serves_another_program_and_leaves_nothing(void **state)
{
	(void)state;
	assert_int_equal(try_in_child(&good_again), 0);
	if (!report->kept || !report->stood || report->leaked)
		fail_msg("kept %d: %s", report->kept, report->fault);
	assert_int_equal(count_leaves(), 0);
}

static int (*real_openat)(int dir_fd, const char *path, int flags, mode_t mode);

static int openat_without_checkpoints(int dir_fd, const char *path, int flags, mode_t mode)
{
	return strstr(path, "ns_last_pid") ? -ENOENT : real_openat(dir_fd, path, flags, mode);
}

static void without_ns_last_pid_a_cage_serves_once(void **state)
{
	(void)state;
	real_openat = sys.openat;
	sys.openat = openat_without_checkpoints;
	assert_int_equal(try_in_child(&good_again), 0);
	sys.openat = real_openat;
	if (!report->stood || !report->asked || report->kept || report->leaked)
		fail_msg("stood %d, kept %d: %s", report->stood, report->kept, report->fault);
}

static void a_cage_that_is_being_removed_is_not_kept(void **state)
{
	unsigned asked = 0;

	(void)state;
	for (int i = 0; i < 10; i++) {
		assert_int_equal(try_in_child(&too_late), 0);
		asked += report->asked;
		if (report->kept || report->leaked)
			fail_msg("kept %d, leaked %d", report->kept, report->leaked);
		assert_int_equal(count_leaves(), 0);
	}
	assert_true(asked > 0); /* the others were gone already */
}

/* Returns how many calls there are; at least `least` of them must be missed. */
static unsigned fail_in_supervisor(bool in_used_cage, unsigned least)
{
	unsigned n, failed = 0;

	for (n = 0; n < CALLS_MAX; n++) {
		const struct attempt a = { (int)n, in_used_cage, false };
		int status = try_in_child(&a);

		if (WIFSIGNALED(status)) {
			/* The one call after which the process may not go on. Its children die
			 * with it; the leaf is the next start's to sweep. */
			assert_int_equal(WTERMSIG(status), SIGABRT);
			sweep_leaf();
			failed++;
			continue;
		}
		assert_int_equal(status, 0);
		if (!report->reached)
			break;
		if (report->leaked)
			fail_msg("call %u (%s) failed and something is left", n, report->call);
		if (!report->stood && report->fault[0] == '\0')
			fail_msg("call %u (%s) failed and nothing was said", n, report->call);
		/* A cage that is not kept is missed, too. */
		failed += !report->stood || (in_used_cage && !report->kept);
		assert_int_equal(count_leaves(), 0);
	}
	assert_in_range(failed, least, n);
	return n;
}

static void whichever_call_of_the_supervisor_fails_nothing_is_left(void **state)
{
	unsigned n = fail_in_supervisor(false, 70);

	(void)state;
	assert_in_range(n, 90, CALLS_MAX - 1); /* v1 groups take more of them */
	expect_a_good_cell("call", n);
}

static void whichever_call_fails_in_a_used_cage_nothing_is_left(void **state)
{
	unsigned n = fail_in_supervisor(true, 35);

	(void)state;
	assert_in_range(n, 50, CALLS_MAX - 1);
	expect_a_good_cell("call", n);
}

static void fail_in_box(uint32_t role, const struct attempt *a, const char *name, unsigned at_least)
{
	unsigned n, failed = 0;

	for (n = 0; n < CALLS_MAX; n++) {
		use_box(role, n, EIO);
		assert_int_equal(try_in_child(a), 0);
		if (report->leaked)
			fail_msg("%s call %u failed and something is left", name, n);
		if (report->stood && n > at_least)
			break; /* it makes no more calls than that */
		if (!report->stood && report->fault[0] == '\0')
			fail_msg("%s call %u failed and nothing was said", name, n);
		failed += !report->stood;
		assert_int_equal(count_leaves(), 0);
	}
	assert_true(n < CALLS_MAX);
	assert_true(failed >= at_least);
	use_box(0, 0, 0);
	expect_a_good_cell(name, n);
}

static void whichever_call_of_init_fails_the_cell_does_not_stand(void **state)
{
	(void)state;
	fail_in_box(1, &good, "init", 30);
}

static void whichever_call_of_enter_fails_the_program_does_not_run(void **state)
{
	(void)state;
	fail_in_box(2, &good, "enter", 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cell_stands_runs_and_leaves_nothing),
		cmocka_unit_test(whichever_call_of_the_supervisor_fails_nothing_is_left),
		cmocka_unit_test(a_used_cage_serves_another_program_and_leaves_nothing),
		cmocka_unit_test(without_ns_last_pid_a_cage_serves_once),
		cmocka_unit_test(a_cage_that_is_being_removed_is_not_kept),
		cmocka_unit_test(whichever_call_fails_in_a_used_cage_nothing_is_left),
		cmocka_unit_test(whichever_call_of_init_fails_the_cell_does_not_stand),
		cmocka_unit_test(whichever_call_of_enter_fails_the_program_does_not_run),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
