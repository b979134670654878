/* A cell's leaf where the host lacks a controller or a file, or goes on refusing: on a folder that
 * stands for a host with nothing but cgroup v2 (tests/lib/v2_host.h). No root. */
#include "tests/unit/unit.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/cgroup_internal.h"
#include "tests/lib/v2_host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define NUMBER 7

static const struct cgroup_limits limits = { UINT64_C(64) << 20, 1000, 8 };
static struct cgroup_tree t;
static struct cgroup cg;
static struct fault f;

static int set_up(void **state)
{
	(void)state;
	memset(&v2, 0, sizeof(v2));
	memset(&f, 0, sizeof(f));
	memset(&t, 0, sizeof(t));
	cgroup_clear(&cg);
	v2.own = "/";
	v2.controllers = "cpu memory pids\n";
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	cgroup_close(&cg);
	v2_end();
	return 0;
}

static void open_tree(void)
{
	v2_begin();
	if (cgroup_tree_open(&t, NUMBER, "", &f) < 0)
		fail_msg("%s", f.text);
}

static void make_leaf(void)
{
	if (cgroup_create(&t, "c1", &limits, &cg, &f) < 0)
		fail_msg("%s", f.text);
}

/* What the kernel says in a file of the leaf. */
static void says(const char *file, const char *text)
{
	cleanup_fd int fd = openat(cg.fd[0], file, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void a_leaf_of_v2_is_limited_and_cannot_begin_anew(void **state)
{
	(void)state;
	open_tree();
	make_leaf();
	assert_true(v2_has("/glovebox.7/c1", "memory.max", "67108864"));
	assert_true(v2_has("/glovebox.7/c1", "pids.max", "8"));
	assert_int_equal(cgroup_renew(&t, &cg, 0, &f), -EOPNOTSUPP);
	assert_int_equal(cgroup_destroy(&t, &cg), 0);
	cgroup_tree_close(&t);
}

static void without_controllers_a_leaf_is_made_and_measures_what_is_there(void **state)
{
	struct cgroup_usage u = { 0 };

	(void)state;
	v2.controllers = "";
	open_tree();
	make_leaf();
	assert_int_equal(cg.oom_fd, -1);
	assert_false(cgroup_oom_announced(&t, &cg));
	assert_false(cgroup_oom_happened(&t, &cg));
	says("cpu.stat", "usage_usec 5\n");
	assert_int_equal(cgroup_cpu_us(&t, &cg), 5);
	cgroup_read_counters(&t, &cg, &u);
	cgroup_read_usage(&t, &cg, &u);
	cgroup_reset_peak(&cg);
	cgroup_sample(&cg);
	assert_int_equal(u.cpu_us, 5);
	assert_int_equal(u.memory_counter, MEMORY_COUNTER_NONE);
	assert_int_equal(cgroup_destroy(&t, &cg), 0);
	cgroup_tree_close(&t);
}

static void without_a_count_of_cpu_time_none_is_told(void **state)
{
	struct cgroup_usage u = { 0 };

	(void)state;
	v2.controllers = "";
	v2.no_file = "cpu.stat";
	v2.no_file_code = -ENOENT;
	open_tree();
	make_leaf();
	assert_int_equal(t.of[CGROUP_CPUACCT], -1);
	assert_int_equal(cgroup_cpu_us(&t, &cg), 0);
	cgroup_read_counters(&t, &cg, &u);
	assert_int_equal(u.cpu_us, 0);
	assert_int_equal(cgroup_destroy(&t, &cg), 0);
	cgroup_tree_close(&t);
}

static void a_leaf_that_cannot_be_opened_or_removed_is_said_in_time(void **state)
{
	const char *const files[] = { "c1", "cgroup.events" };

	(void)state;
	open_tree();
	for (unsigned i = 0; i < 2; i++) {
		v2.no_file = files[i];
		v2.no_file_code = -EIO;
		v2.busy = 1 << 30;
		assert_int_equal(cgroup_create(&t, "c1", &limits, &cg, &f), -EIO);
		v2.no_file = NULL;
		v2.busy = 0;
		assert_int_equal(
			sys.unlinkat(t.h[0].dir_fd, "c1", AT_REMOVEDIR), 0); /* the next start's */
	}
	cgroup_tree_close(&t);
}

static void a_name_that_is_too_long_is_refused(void **state)
{
	char name[sizeof(cg.name) + 1];

	(void)state;
	open_tree();
	memset(name, 'c', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(cgroup_create(&t, name, &limits, &cg, &f), -ENAMETOOLONG);
	cgroup_tree_close(&t);
}

static void what_is_no_answer_is_not_taken_for_one(void **state)
{
	(void)state;
	open_tree();
	make_leaf();
	says("cgroup.events", "populated 2\nfrozen 0\n");
	assert_int_equal(cgroup_populated(&cg), -EPROTO);
	says("cgroup.events", "frozen 0\n");
	assert_int_equal(cgroup_populated(&cg), -ENOENT);
	says("cgroup.events", "populated 1\nfrozen 0\n");
	assert_int_equal(cgroup_populated(&cg), 1);
	/* Removed by somebody else: that is no failure, and it is empty. */
	assert_int_equal(sys.unlinkat(t.h[0].dir_fd, "c1", AT_REMOVEDIR), 0);
	assert_int_equal(cgroup_destroy(&t, &cg), 0);
	assert_int_equal(cgroup_populated(&cg), 0);
	cgroup_tree_close(&t);
}

/* ---- Several hierarchies: each a group of that host ---- */

static void of_several_that_stay_the_first_is_told(void **state)
{
	(void)state;
	v2_begin();
	t.count = 4;
	for (unsigned i = 0; i < 4; i++) {
		char path[16];

		(void)snprintf(path, sizeof(path), "/h%u/c1", i);
		if (i == 1 || i == 3)
			v2_crowd(path);
		else
			v2_group(path);
		cg.fd[i] = v2_open(path);
		*strrchr(path, '/') = '\0';
		t.h[i].dir_fd = v2_open(path);
		assert_true(cg.fd[i] >= 0 && t.h[i].dir_fd >= 0);
	}
	(void)snprintf(cg.name, sizeof(cg.name), "c1");
	assert_int_equal(cgroup_destroy(&t, &cg), -EBUSY);
	assert_false(v2_is_there("/h0/c1"));
	assert_true(v2_is_there("/h1/c1"));
	assert_false(v2_is_there("/h2/c1"));
	assert_int_equal(cgroup_populated(&cg), 0); /* the unified one is gone */
	for (unsigned i = 0; i < 4; i++)
		drop_fd(&t.h[i].dir_fd);
}

/* Which of them has memory, CPU, CPU time and tasks: only in one order a leaf can begin anew. */
static void a_leaf_begins_anew_only_where_its_peaks_can(void **state)
{
	static const struct {
		int memory, cpu, cpuacct, pids;
		int r;
	} hosts[] = {
		{ 1, 3, 3, 2, 0 },
		{ 0, 3, 3, 2, -EOPNOTSUPP },
		{ -1, 3, 3, 2, -EOPNOTSUPP },
		{ 1, 3, 3, 0, -EOPNOTSUPP },
		{ 2, 3, 3, 2, -EOPNOTSUPP },
		{ 1, 2, 3, 2, -EOPNOTSUPP },
		{ 1, 3, 2, 2, -EOPNOTSUPP },
	};

	(void)state;
	v2_begin();
	t.count = 4;
	for (unsigned i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		t.of[CGROUP_MEMORY] = hosts[i].memory;
		t.of[CGROUP_CPU] = hosts[i].cpu;
		t.of[CGROUP_CPUACCT] = hosts[i].cpuacct;
		t.of[CGROUP_PIDS] = hosts[i].pids;
		for (unsigned h = 0; h < 4; h++)
			t.h[h].version = h == 0 ? 2 : 1;
		/* The kernel has no peak of tasks: there is nothing to begin anew. */
		assert_int_equal(cgroup_renew(&t, &cg, 0, &f), hosts[i].r);
	}
}

static void a_kill_that_is_counted_and_not_announced_is_one(void **state)
{
	(void)state;
	v2_begin();
	v2_group("/c1");
	t = (struct cgroup_tree){ .count = 2, .of = { 1, 1, 1, 1 } };
	t.h[1].version = 1;
	cg.oom_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	cg.file[CGROUP_FILE_MEMORY_EVENTS] = memfd_create("memory.oom_control", MFD_CLOEXEC);
	assert_int_equal(write(cg.file[CGROUP_FILE_MEMORY_EVENTS], "oom_kill 0\n", 11), 11);
	assert_false(cgroup_oom_happened(&t, &cg));
	assert_int_equal(pwrite(cg.file[CGROUP_FILE_MEMORY_EVENTS], "oom_kill 1\n", 11, 0), 11);
	assert_false(cgroup_oom_announced(&t, &cg));
	assert_true(cgroup_oom_happened(&t, &cg));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_leaf_of_v2_is_limited_and_cannot_begin_anew),
		CASE(without_controllers_a_leaf_is_made_and_measures_what_is_there),
		CASE(without_a_count_of_cpu_time_none_is_told),
		CASE(a_leaf_that_cannot_be_opened_or_removed_is_said_in_time),
		CASE(a_name_that_is_too_long_is_refused),
		CASE(what_is_no_answer_is_not_taken_for_one),
		CASE(of_several_that_stay_the_first_is_told),
		CASE(a_leaf_begins_anew_only_where_its_peaks_can),
		CASE(a_kill_that_is_counted_and_not_announced_is_one),
	};

	return cmocka_run_group_tests_name("cgroup_leaf", tests, NULL, NULL);
}
