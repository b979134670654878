/* Where an instance lives on a host that has nothing but cgroup v2, what it changes there and how it
 * undoes it: on a folder that stands for such a host (tests/lib/v2_host.h). The kernel's own v2:
 * `make check-vm`. No root. */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/cgroup_internal.h"
#include "tests/lib/flaky.h"
#include "tests/lib/v2_host.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define NUMBER    7
#define CALLS_MAX 2000
#define ALL       "cpu memory pids\n"

static struct cgroup_tree t;
static struct fault f;

static int set_up(void **state)
{
	(void)state;
	memset(&v2, 0, sizeof(v2));
	memset(&f, 0, sizeof(f));
	v2.own = "/a/b";
	v2.controllers = ALL;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	v2_end();
	return 0;
}

static void open_tree(const char *path)
{
	if (cgroup_tree_open(&t, NUMBER, path, &f) < 0)
		fail_msg("%s", f.text);
}

static void is_refused(const char *path, int code, const char *words)
{
	assert_int_equal(cgroup_tree_open(&t, NUMBER, path, &f), code);
	if (!strstr(f.text, words))
		fail_msg("%s", f.text);
}

static void has_all_controllers(const char *group)
{
	for (unsigned c = 0; c < CGROUP_CONTROLLER_MAX; c++)
		assert_int_equal(t.of[c], 0);
	assert_true(v2_has(group, "cgroup.subtree_control", "memory"));
	assert_true(v2_has(group, "cgroup.subtree_control", "pids"));
	assert_true(v2_has(group, "cgroup.subtree_control", "cpu"));
}

/* ---- Where ---- */

static void at_the_real_top_groups_are_made_beside_processes(void **state)
{
	(void)state;
	v2.own = "/";
	v2_begin();
	open_tree("");
	has_all_controllers("/glovebox.7");
	assert_true(v2_holds_us("/"));
	cgroup_tree_close(&t);
	assert_false(v2_is_there("/glovebox.7"));
}

static void root_alone_below_a_group_without_controllers_goes_to_the_top(void **state)
{
	(void)state;
	v2_begin();
	open_tree("");
	has_all_controllers("/glovebox.7");
	assert_true(v2_holds_us("/a/b"));
	cgroup_tree_close(&t);
	assert_false(v2_is_there("/glovebox.7"));
}

/* What is mounted is our group, as in a container: with the controllers that it was handed. */
static void begin_in_container(void)
{
	v2.in_container = true;
	v2.own = "/";
	v2_begin();
}

static void in_a_container_it_moves_into_a_leaf_and_back(void **state)
{
	(void)state;
	begin_in_container();
	open_tree("");
	has_all_controllers("/glovebox.7");
	assert_true(t.moved);
	assert_true(v2_holds_us("/glovebox.7/supervisor"));
	cgroup_tree_close(&t);
	assert_false(t.moved);
	assert_true(v2_holds_us("/"));
	assert_false(v2_is_there("/glovebox.7"));
	assert_false(v2_has("/", "cgroup.subtree_control", "memory"));
}

static void beside_others_in_a_container_there_is_no_place(void **state)
{
	(void)state;
	v2.in_container = true;
	v2.own = "/c";
	v2_begin();
	v2_crowd("/c");
	is_refused("", -EACCES, "no control group to work in: be root");
}

static void under_systemd_only_what_is_delegated_will_do(void **state)
{
	(void)state;
	v2.systemd = true;
	begin_in_container();
	assert_int_equal(cgroup_needs_scope("", &f), 1);
	is_refused("", -EACCES, "systemd-run --scope -p Delegate=yes");
	v2.delegated = true;
	assert_int_equal(cgroup_needs_scope("", &f), 0);
	open_tree("");
	has_all_controllers("/glovebox.7");
	cgroup_tree_close(&t);
	assert_true(v2_holds_us("/"));
}

static void a_group_that_is_not_ours_to_write_is_no_place(void **state)
{
	(void)state;
	v2.not_writable = v2.not_root = true;
	begin_in_container();
	is_refused("", -EACCES, "no control group to work in");
}

static void a_hierarchy_that_nobody_divides_is_used_as_it_is(void **state)
{
	(void)state;
	v2.controllers = ""; /* v1 has them all */
	v2_begin();
	open_tree("");
	assert_int_equal(t.of[CGROUP_MEMORY], -1);
	assert_true(v2_holds_us("/a/b"));
	assert_true(v2_is_there("/a/b/glovebox.7"));
	cgroup_tree_close(&t);
	assert_false(v2_is_there("/a/b/glovebox.7"));
}

/* ---- --cgroup ---- */

static void a_path_is_made_and_taken_away_again(void **state)
{
	(void)state;
	v2.handed = ALL;
	v2_begin();
	v2_group("/x");
	open_tree("/x/y/z");
	has_all_controllers("/x/y/z/glovebox.7");
	cgroup_tree_close(&t);
	assert_true(v2_is_there("/x"));
	assert_false(v2_is_there("/x/y"));
}

static void a_path_below_processes_is_refused_and_nothing_is_made(void **state)
{
	(void)state;
	v2.handed = ALL;
	v2_begin();
	v2_crowd("/x");
	is_refused("/x/y", -EBUSY, "processes are in the group");
	assert_false(v2_is_there("/x/y"));
	/* It is there, and others are in it. */
	is_refused("/x", -EBUSY, "other processes are in the group");
	assert_false(v2_is_there("/x/glovebox.7"));
}

static void a_path_that_is_our_own_group_is_left_for_a_leaf(void **state)
{
	(void)state;
	v2_begin();
	open_tree("/a/b");
	assert_true(v2_holds_us("/a/b/glovebox.7/supervisor"));
	cgroup_tree_close(&t);
	assert_true(v2_holds_us("/a/b"));
}

static void a_path_that_is_not_mounted_here_is_refused(void **state)
{
	(void)state;
	v2.root = "/docker/1";
	v2.own = "/docker/1/x";
	v2_begin();
	is_refused("/elsewhere", -ENOENT, "is not below /docker/1");
}

static void what_others_make_meanwhile_is_used_and_left(void **state)
{
	(void)state;
	v2.others_make = true;
	v2_begin();
	open_tree("/x/y");
	assert_int_equal(t.h[0].made, 0);
	cgroup_tree_close(&t);
	assert_true(v2_is_there("/x/y"));
	assert_false(v2_is_there("/x/y/glovebox.7"));
}

/* ---- The mount ---- */

static void without_a_mount_that_will_do_one_is_made_for_us_alone(void **state)
{
	(void)state;
	v2.read_only = v2.unlisted = true;
	v2_begin();
	open_tree("");
	assert_int_equal(v2.mounts, 1);
	assert_true(t.h[0].mount[0] == '(');
	cgroup_tree_close(&t);
}

static void a_mount_that_does_not_show_our_group_will_not_do(void **state)
{
	(void)state;
	v2.root = "/elsewhere";
	v2_begin();
	open_tree("");
	assert_int_equal(v2.mounts, 1);
	cgroup_tree_close(&t);
}

static void what_only_looks_like_a_mount_of_groups_is_none(void **state)
{
	(void)state;
	v2.not_cgroup = true;
	v2_begin();
	open_tree("");
	assert_int_equal(v2.mounts, 1);
	cgroup_tree_close(&t);
}

static void a_mount_that_cannot_be_made_is_said(void **state)
{
	const int codes[] = { -EPERM, -EBUSY, -EMFILE };

	(void)state;
	v2.read_only = true;
	v2_begin();
	for (v2.no_mounting = 1; v2.no_mounting <= 3; v2.no_mounting++)
		is_refused("", codes[v2.no_mounting - 1],
			"no cgroup2 mount that is writable and shows our group");
	v2.no_mounting = 1;
	assert_int_equal(cgroup_needs_scope("", &f), -EPERM);
}

static void our_own_group_may_lie_beside_what_is_mounted(void **state)
{
	(void)state;
	v2.read_only = true; /* one is made for us alone... */
	v2.own = "/../b";    /* ...and we are outside of its namespace */
	v2_begin();
	v2_group("/b");
	open_tree("");
	assert_true(v2_is_there("/glovebox.7"));
	cgroup_tree_close(&t);
}

static void a_list_that_cannot_be_read_again_is_said(void **state)
{
	(void)state;
	v2.read_only = v2.unlisted = true;
	v2_begin();
	v2.no_second_list = true;
	is_refused("", -EIO, "read /proc/self/cgroup");
}

/* ---- When something fails ---- */

static void whichever_call_fails_nothing_is_left_and_we_are_where_we_were(void **state)
{
	static const char *const paths[] = { "", "/x/y", "" };
	unsigned failed = 0;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned n = 0; n < CALLS_MAX; n++) {
			bool reached;
			int r;

			memset(&v2, 0, sizeof(v2));
			v2.controllers = ALL;
			v2.read_only = v2.unlisted = i == 2; /* one is made for us alone */
			begin_in_container();
			v2_group("/x");
			memset(&f, 0, sizeof(f));
			flaky_arm(n, EIO);
			r = cgroup_tree_open(&t, NUMBER, paths[i], &f);
			reached = flaky_disarm();
			failed += r < 0;
			if (r == 0)
				cgroup_tree_close(&t);
			if (v2_is_there("/glovebox.7") || v2_is_there("/x/y") || !v2_holds_us("/"))
				fail_msg("%s: call %u (%s): left %d, %d, back %d: %s", paths[i], n,
					flaky_name(), v2_is_there("/glovebox.7"),
					v2_is_there("/x/y"), v2_holds_us("/"), f.text);
			v2_end();
			if (!reached)
				break;
			if (n == CALLS_MAX - 1)
				fail();
		}
	}
	assert_in_range(failed, 20, CALLS_MAX);
	v2.own = "/";
	v2.controllers = ALL;
	v2_begin(); /* for tear_down() */
}

static void whichever_call_of_the_end_fails_the_next_start_goes_on(void **state)
{
	(void)state;
	begin_in_container();
	for (unsigned n = 0; n < CALLS_MAX; n++) {
		bool reached;

		open_tree("");
		flaky_arm(n, EIO);
		cgroup_tree_close(&t);
		reached = flaky_disarm();
		if (!reached)
			break;
	}
	assert_true(v2_holds_us("/"));
	assert_false(v2_is_there("/glovebox.7"));
}

/* ---- What others have left ---- */

static bool is_dead(unsigned number, void *ctx)
{
	(void)ctx;
	return number != 9;
}

static void what_the_dead_left_is_swept(void **state)
{
	(void)state;
	v2.own = "/";
	v2_begin();
	v2_crowd("/glovebox.3/c1");
	v2_group("/glovebox.9/c1");
	v2.busy = 2;
	open_tree("");
	assert_int_equal(cgroup_sweep(&t, is_dead, NULL), 1);
	assert_false(v2_is_there("/glovebox.3"));
	assert_true(v2_is_there("/glovebox.9/c1"));
	cgroup_tree_close(&t);
}

static void what_another_start_sweeps_as_well_is_swept(void **state)
{
	(void)state;
	v2.own = "/";
	v2_begin();
	v2_group("/glovebox.3/c1");
	open_tree("");
	v2.others_remove = true;
	assert_int_equal(cgroup_sweep(&t, is_dead, NULL), 1);
	v2.others_remove = false;
	cgroup_tree_close(&t);
}

static void what_is_busy_for_ever_is_left_in_time(void **state)
{
	uint64_t began = clock_ns();

	(void)state;
	v2.own = "/";
	v2_begin();
	v2_group("/glovebox.3");
	open_tree("");
	v2.busy = 1 << 30;
	assert_int_equal(cgroup_sweep(&t, is_dead, NULL), 0);
	assert_in_range(clock_ns() - began, CGROUP_SWEEP_NS, 5 * CGROUP_SWEEP_NS);
	v2.busy = 0;
	cgroup_tree_close(&t);
}

static unsigned polls;

static int fails_to_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	(void)fds;
	(void)count;
	(void)timeout_ms;
	if (++polls > 100)
		fail_msg("it goes on asking");
	return -ENOMEM;
}

/* A leaf that says that somebody is in it, whom the kill has not ended yet. */
static void a_wait_that_fails_is_no_wait_without_end(void **state)
{
	cleanup_fd int fd = -1, events = -1;

	(void)state;
	v2.own = "/";
	v2_begin();
	v2_group("/glovebox.3/c1");
	open_tree("");
	fd = v2_open("/glovebox.3/c1");
	events = openat(fd, "cgroup.events", O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(events, "populated 1", 11, 0), 11);
	sys.poll = fails_to_poll;
	polls = 0;
	assert_int_equal(cgroup_sweep(&t, is_dead, NULL), 1);
	assert_in_range(polls, 1, 2);
	cgroup_tree_close(&t);
}

static void the_leaf_that_we_are_in_is_not_ended(void **state)
{
	cleanup_fd int fd = -1;

	(void)state;
	v2.own = "/glovebox.3/supervisor";
	v2.in_container = true;
	v2_begin();
	v2_crowd("/glovebox.3/c1");
	fd = sys.openat(AT_FDCWD, "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC, 0);
	open_tree("");
	/* Its base is where its instances belong, not the leaf. */
	assert_string_equal(t.h[0].base, "/");
	assert_true(v2_holds_us("/glovebox.7/supervisor") || v2_holds_us("/glovebox.3/supervisor"));
	cgroup_tree_close(&t);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(at_the_real_top_groups_are_made_beside_processes),
		CASE(root_alone_below_a_group_without_controllers_goes_to_the_top),
		CASE(in_a_container_it_moves_into_a_leaf_and_back),
		CASE(beside_others_in_a_container_there_is_no_place),
		CASE(under_systemd_only_what_is_delegated_will_do),
		CASE(a_group_that_is_not_ours_to_write_is_no_place),
		CASE(a_hierarchy_that_nobody_divides_is_used_as_it_is),
		CASE(a_path_is_made_and_taken_away_again),
		CASE(a_path_below_processes_is_refused_and_nothing_is_made),
		CASE(a_path_that_is_our_own_group_is_left_for_a_leaf),
		CASE(a_path_that_is_not_mounted_here_is_refused),
		CASE(what_others_make_meanwhile_is_used_and_left),
		CASE(without_a_mount_that_will_do_one_is_made_for_us_alone),
		CASE(a_mount_that_does_not_show_our_group_will_not_do),
		CASE(what_only_looks_like_a_mount_of_groups_is_none),
		CASE(a_mount_that_cannot_be_made_is_said),
		CASE(our_own_group_may_lie_beside_what_is_mounted),
		CASE(a_list_that_cannot_be_read_again_is_said),
		CASE(whichever_call_fails_nothing_is_left_and_we_are_where_we_were),
		CASE(whichever_call_of_the_end_fails_the_next_start_goes_on),
		CASE(what_the_dead_left_is_swept),
		CASE(what_another_start_sweeps_as_well_is_swept),
		CASE(what_is_busy_for_ever_is_left_in_time),
		CASE(a_wait_that_fails_is_no_wait_without_end),
		CASE(the_leaf_that_we_are_in_is_not_ended),
	};

	return cmocka_run_group_tests_name("cgroup_v2", tests, NULL, NULL);
}
