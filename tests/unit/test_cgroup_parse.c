#include "tests/unit/unit.h"

#include "base/check.h"
#include "kernel/cgroup_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MEMORY  CGROUP_BIT(CGROUP_MEMORY)
#define CPU     CGROUP_BIT(CGROUP_CPU)
#define CPUACCT CGROUP_BIT(CGROUP_CPUACCT)
#define PIDS    CGROUP_BIT(CGROUP_PIDS)
#define ALL     (MEMORY | CPU | PIDS)

/* Several hierarchies, one of them named, cpu and cpuacct apart, and the unified one. */
static const char hybrid_mounts[] =
	"22 27 0:21 / /proc rw,relatime - proc proc rw\n"
	"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
	"32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
	"33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n"
	"34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
	"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	"39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
	"40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n"
	"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

static void finds_every_hierarchy_of_a_hybrid_host(void **state)
{
	struct cgroup_mounts m;

	(void)state;
	assert_int_equal(cgroup_parse_mountinfo(hybrid_mounts, &m), 0);
	assert_int_equal(m.count, 5); /* cpuset and the named one have nothing for us */
	assert_string_equal(m.m[cgroup_find_v1(&m, CGROUP_MEMORY)].point, "/sys/fs/cgroup/memory");
	assert_string_equal(m.m[cgroup_find_v1(&m, CGROUP_CPU)].point, "/sys/fs/cgroup/cpu");
	assert_string_equal(
		m.m[cgroup_find_v1(&m, CGROUP_CPUACCT)].point, "/sys/fs/cgroup/cpuacct");
	assert_string_equal(m.m[cgroup_find_v1(&m, CGROUP_PIDS)].point, "/sys/fs/cgroup/pids");
	assert_int_equal(m.m[4].version, 2);
	assert_false(m.m[4].read_only);
}

static void finds_controllers_that_share_a_hierarchy(void **state)
{
	static const char text[] =
		"30 23 0:26 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755\n"
		"31 30 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 "
		"rw,nsdelegate\n"
		"34 30 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:15 master:2 - cgroup cgroup "
		"rw,cpu,cpuacct\n";
	struct cgroup_mounts m;

	(void)state;
	assert_int_equal(cgroup_parse_mountinfo(text, &m), 0);
	assert_int_equal(m.count, 2);
	assert_int_equal(cgroup_find_v1(&m, CGROUP_CPU), 1);
	assert_int_equal(cgroup_find_v1(&m, CGROUP_CPUACCT), 1);
	assert_int_equal(cgroup_find_v1(&m, CGROUP_MEMORY), -1);
}

static void sees_a_read_only_mount_whichever_way_it_is(void **state)
{
	struct cgroup_mounts m;

	(void)state;
	assert_int_equal(cgroup_parse_mountinfo("1 2 0:1 / /a ro,nosuid - cgroup2 c rw\n"
						"1 2 0:1 / /b rw,nosuid - cgroup2 c ro\n"
						"1 2 0:1 / /c rw,nosuid - cgroup2 c rw\n",
				 &m),
		0);
	assert_int_equal(m.count, 3);
	assert_true(m.m[0].read_only);
	assert_true(m.m[1].read_only);
	assert_false(m.m[2].read_only);
}

static void undoes_the_escapes_of_mount_points(void **state)
{
	struct cgroup_mounts m;

	(void)state;
	assert_int_equal(
		cgroup_parse_mountinfo("1 2 0:1 /r\\134x /my\\040group rw - cgroup2 c rw\n", &m),
		0);
	assert_string_equal(m.m[0].root, "/r\\x");
	assert_string_equal(m.m[0].point, "/my group");
}

static void an_escape_that_the_kernel_does_not_write_is_refused(void **state)
{
	static const char *const bad[] = { "\\", "\\0", "\\04", "\\400", "\\/00", "\\080", "\\0/0",
		"\\008", "\\00/", "\\n" };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		struct cgroup_mounts m;
		char line[64];

		(void)snprintf(line, sizeof(line), "1 2 0:1 / /a%s rw - cgroup2 c rw\n", bad[i]);
		if (cgroup_parse_mountinfo(line, &m) != -EINVAL)
			fail_msg("%s is taken", bad[i]);
	}
}

static void refuses_mountinfo_that_is_none(void **state)
{
	static const char *const bad[] = {
		"garbage\n",
		"1 2 0:1 / /a rw\n",   /* no separator */
		"1 2 0:1 / /a rw -\n", /* nothing behind it */
		"1 2 0:1 / /a rw - cgroup2\n",
		"1 2 0:1 / /a\\04 rw - cgroup2 c rw\n", /* an escape cut short */
		"1 2 0:1 / /a\\999 rw - cgroup2 c rw\n",
		"1 2 0:1  /a rw - cgroup2 c rw\n", /* an empty field */
		"\n",
	};
	struct cgroup_mounts m;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(cgroup_parse_mountinfo(bad[i], &m), -EINVAL);
}

static void leaves_out_paths_that_are_too_long(void **state)
{
	char text[600];
	struct cgroup_mounts m;

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text, "1 2 0:1 / /", 11);
	(void)snprintf(text + 500, 100, " rw - cgroup2 c rw\n");
	assert_int_equal(cgroup_parse_mountinfo(text, &m), 0);
	assert_int_equal(m.count, 0);
}

static void keeps_no_more_mounts_than_fit(void **state)
{
	static const char line[] = "1 2 0:1 / /a rw - cgroup2 c rw\n";
	char text[40 * sizeof(line)] = "";
	struct cgroup_mounts m;

	(void)state;
	for (unsigned i = 0; i < 40; i++)
		memcpy(text + i * (sizeof(line) - 1), line, sizeof(line));
	assert_int_equal(cgroup_parse_mountinfo(text, &m), 0);
	assert_int_equal(m.count, CGROUP_MOUNTS_MAX);
}

static void reads_the_own_group_of_each_controller(void **state)
{
	struct cgroup_own own;

	(void)state;
	assert_int_equal(cgroup_parse_own("9:name=systemd:/\n8:pids:/p\n4:memory:/some/group\n"
					  "2:cpu,cpuacct:/with:colon\n0::/u\n",
				 &own),
		0);
	assert_string_equal(own.unified, "/u");
	assert_string_equal(own.v1[CGROUP_MEMORY], "/some/group");
	assert_string_equal(own.v1[CGROUP_CPU], "/with:colon");
	assert_string_equal(own.v1[CGROUP_CPUACCT], "/with:colon");
	assert_string_equal(own.v1[CGROUP_PIDS], "/p");
}

static void a_host_without_the_unified_hierarchy_has_no_own_group_there(void **state)
{
	struct cgroup_own own;

	(void)state;
	assert_int_equal(cgroup_parse_own("4:memory:/\n", &own), 0);
	assert_string_equal(own.unified, "");
}

static void refuses_an_own_group_that_is_none(void **state)
{
	static const char *const bad[] = { "0:\n", "0::\n", "0::relative\n", "garbage\n",
		"4:memory\n", "4:memory:\n" };
	char text[400] = "0::/";
	struct cgroup_own own;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(cgroup_parse_own(bad[i], &own), -EINVAL);
	memset(text + 4, 'x', 300);
	assert_int_equal(cgroup_parse_own(text, &own), -ENAMETOOLONG);
}

static void finds_a_key_by_its_whole_name(void **state)
{
	/* memory.events, and what v1's memory.oom_control says */
	static const char events[] = "low 0\nhigh 0\nmax 17\noom 2\noom_kill 3\noom_group_kill 1\n";
	static const char control[] = "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n";
	static const char stat[] = "usage_usec 1234567\nuser_usec 1000000\nsystem_usec 234567\n"
				   "nr_periods 0\nthrottled_usec 18446744073709551615\n";
	uint64_t v = 7;

	(void)state;
	assert_int_equal(cgroup_parse_key(events, "oom_kill", &v), 0);
	assert_int_equal(v, 3);
	assert_int_equal(cgroup_parse_key(events, "oom", &v), 0);
	assert_int_equal(v, 2);
	assert_int_equal(cgroup_parse_key(control, "oom_kill", &v), 0);
	assert_int_equal(v, 4);
	assert_int_equal(cgroup_parse_key(stat, "usage_usec", &v), 0);
	assert_int_equal(v, 1234567);
	assert_int_equal(cgroup_parse_key(stat, "throttled_usec", &v), 0);
	assert_true(v == UINT64_MAX);
}

static void a_key_with_no_number_is_refused(void **state)
{
	uint64_t v = 7;

	(void)state;
	assert_int_equal(cgroup_parse_key("a 1\n", "b", &v), -ENOENT);
	assert_int_equal(cgroup_parse_key("", "b", &v), -ENOENT);
	assert_int_equal(cgroup_parse_key("b\n", "b", &v), -ENOENT);
	assert_int_equal(cgroup_parse_key("b \n", "b", &v), -EINVAL);
	assert_int_equal(cgroup_parse_key("b x\n", "b", &v), -EINVAL);
	assert_int_equal(cgroup_parse_key("b -1\n", "b", &v), -EINVAL);
	assert_int_equal(cgroup_parse_key("b 1 2\n", "b", &v), -EINVAL);
	assert_int_equal(cgroup_parse_key("b 18446744073709551616\n", "b", &v), -ERANGE);
	assert_int_equal(cgroup_parse_key("b 1111111111111111111111111111\n", "b", &v), -EINVAL);
	assert_int_equal(v, 7);
}

static void knows_only_the_controllers_that_it_uses(void **state)
{
	(void)state;
	assert_int_equal(cgroup_parse_controllers("cpuset cpu io memory hugetlb pids rdma\n"), ALL);
	assert_int_equal(cgroup_parse_controllers("cpuset\n"), 0);
	assert_int_equal(cgroup_parse_controllers(""), 0);
	assert_int_equal(cgroup_parse_controllers("rw,cpu,cpuacct"), CPU | CPUACCT);
}

static void a_path_that_could_lead_elsewhere_is_refused(void **state)
{
	static const char *const bad[] = { "", "a", "/a/", "//", "/a//b", "/..", "/a/../b",
		"/./a" };
	char long_path[CGROUP_PATH_MAX];

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(cgroup_check_path(bad[i]), -EINVAL);
	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[0] = '/';
	long_path[sizeof(long_path) - 1] = '\0';
	assert_int_equal(cgroup_check_path(long_path), -ENAMETOOLONG);
	assert_int_equal(cgroup_check_path("/"), 0);
	assert_int_equal(cgroup_check_path("/a/b..c/.d"), 0);
}

static char long_group[CGROUP_PATH_MAX + 2]; /* longer than there is room for */

static void a_group_is_named_from_the_root_of_its_mount(void **state)
{
	static const struct {
		const char *root, *group, *expect; /* NULL: not below */
	} cases[] = {
		{ "/", "/", "/" },
		{ "/", "/a/b", "/a/b" },
		{ "/a", "/a/b", "/b" },
		{ "/a", "/a", "/" },
		{ "/a", "/ab", NULL },
		{ "/a", "/", NULL },
		{ "/", "/../x", NULL },
		{ "/..", "/", NULL },
		{ "/", long_group, NULL },
	};

	(void)state;
	(void)memset(long_group, 'a', sizeof(long_group) - 1);
	long_group[0] = '/';
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		char got[CGROUP_PATH_MAX] = "untouched";
		bool below = cgroup_relative(cases[i].root, cases[i].group, got);

		assert_int_equal(below, cases[i].expect != NULL);
		assert_string_equal(got, cases[i].expect ? cases[i].expect : "untouched");
	}
}

static void only_one_spelling_names_an_instance(void **state)
{
	static const char *const bad[] = { "glovebox", "glovebox.", "glovebox.x", "glovebox.01",
		"glovebox.1x", "glovebox.-1", "glovebox.+1", "glovebox. 1", "glovebox.4294967296",
		"glovebox.1 ", "xglovebox.1", "system.slice", "glovebox.99999999999999999999" };
	unsigned n = 99;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(cgroup_instance_number(bad[i], &n));
	assert_int_equal(n, 99);
	assert_true(cgroup_instance_number("glovebox.0", &n));
	assert_int_equal(n, 0);
	assert_true(cgroup_instance_number("glovebox.4294967295", &n));
	assert_true(n == UINT32_MAX);
}

static void a_supervisor_that_starts_again_finds_its_old_base(void **state)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{ "/a/glovebox.3/supervisor", "/a" },
		{ "/glovebox.3/supervisor", "/" },
		{ "/a/supervisor", "/a/supervisor" },
		{ "/a/glovebox.x/supervisor", "/a/glovebox.x/supervisor" },
		{ "/a/glovebox.3", "/a/glovebox.3" },
		{ "/supervisor", "/supervisor" },
		{ "supervisor", "supervisor" },
		{ "", "" },
		{ "/", "/" },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		char group[CGROUP_PATH_MAX] = "";

		(void)snprintf(group, sizeof(group), "%s", cases[i].from);
		cgroup_strip_instance(group);
		assert_string_equal(group, cases[i].to);
	}
}

struct placement {
	const char *host;
	struct cgroup_sight sight;
	enum cgroup_place expect;
};

static const struct placement placements[] = {
	{ "v2 only, in the root group",
		{ .path = "",
			.is_root = true,
			.own_is_top = true,
			.top_is_real = true,
			.own_writable = true,
			.own_shared = true,
			.own_controllers = ALL,
			.wanted = ALL },
		CGROUP_PLACE_OWN },
	{ "a systemd service with Delegate=yes",
		{ .path = "",
			.is_root = true,
			.systemd = true,
			.top_is_real = true,
			.own_writable = true,
			.own_delegated = true,
			.own_controllers = ALL,
			.wanted = ALL },
		CGROUP_PLACE_LEAVE_OWN },
	{ "a delegated unit of a user, which lacks one controller",
		{ .path = "",
			.systemd = true,
			.top_is_real = true,
			.own_writable = true,
			.own_delegated = true,
			.own_controllers = MEMORY | PIDS,
			.wanted = ALL },
		CGROUP_PLACE_LEAVE_OWN },
	{ "an administrator's shell in a session scope",
		{ .path = "",
			.is_root = true,
			.systemd = true,
			.top_is_real = true,
			.own_writable = true,
			.own_shared = true,
			.own_controllers = MEMORY | PIDS,
			.wanted = ALL },
		CGROUP_PLACE_SCOPE },
	{ "alone in a systemd unit without Delegate",
		{ .path = "",
			.is_root = true,
			.systemd = true,
			.top_is_real = true,
			.own_writable = true,
			.own_controllers = ALL,
			.wanted = ALL },
		CGROUP_PLACE_SCOPE },
	{ "a delegated group that others are in",
		{ .path = "",
			.is_root = true,
			.systemd = true,
			.top_is_real = true,
			.own_writable = true,
			.own_delegated = true,
			.own_shared = true,
			.own_controllers = ALL,
			.wanted = ALL },
		CGROUP_PLACE_SCOPE },
	{ "a user's shell under systemd",
		{ .path = "",
			.systemd = true,
			.top_is_real = true,
			.own_shared = true,
			.own_controllers = ALL,
			.wanted = ALL },
		CGROUP_PLACE_SCOPE },
	{ "root without systemd, in a group with others",
		{ .path = "",
			.is_root = true,
			.top_is_real = true,
			.own_writable = true,
			.own_shared = true,
			.own_controllers = ALL,
			.wanted = ALL },
		CGROUP_PLACE_TOP },
	{ "root without systemd, alone in a group that lacks controllers",
		{ .path = "",
			.is_root = true,
			.top_is_real = true,
			.own_writable = true,
			.own_controllers = 0,
			.wanted = ALL },
		CGROUP_PLACE_TOP },
	{ "root without systemd, alone in a group that has them",
		{ .path = "",
			.is_root = true,
			.top_is_real = true,
			.own_writable = true,
			.own_controllers = ALL,
			.wanted = ALL },
		CGROUP_PLACE_LEAVE_OWN },
	{ "the only process of a container",
		{ .path = "",
			.is_root = true,
			.own_writable = true,
			.own_controllers = ALL,
			.wanted = ALL },
		CGROUP_PLACE_LEAVE_OWN },
	{ "one of a container's processes",
		{ .path = "",
			.is_root = true,
			.own_writable = true,
			.own_shared = true,
			.own_controllers = ALL,
			.wanted = ALL },
		CGROUP_PLACE_NONE },
	{ "a user without a group of his own",
		{ .path = "", .top_is_real = true, .own_shared = true, .wanted = ALL },
		CGROUP_PLACE_NONE },
	{ "hybrid: v1 has all controllers, others are in the own group",
		{ .path = "",
			.is_root = true,
			.top_is_real = true,
			.own_writable = true,
			.own_shared = true,
			.wanted = 0 },
		CGROUP_PLACE_OWN },
	{ "hybrid under systemd: no scope is needed for v1 controllers",
		{ .path = "",
			.is_root = true,
			.systemd = true,
			.top_is_real = true,
			.own_writable = true,
			.own_shared = true,
			.wanted = 0 },
		CGROUP_PLACE_OWN },
	{ "v1 only: the unified hierarchy is mounted for us alone, and we are in its root",
		{ .path = "",
			.is_root = true,
			.own_is_top = true,
			.top_is_real = true,
			.own_writable = true,
			.own_shared = true,
			.wanted = 0 },
		CGROUP_PLACE_OWN },
	{ "root without systemd, alone in a group that lacks one controller",
		{ .path = "",
			.is_root = true,
			.top_is_real = true,
			.own_writable = true,
			.own_controllers = MEMORY | PIDS,
			.wanted = ALL },
		CGROUP_PLACE_TOP },
	{ "the only process of a container that lacks one controller",
		{ .path = "",
			.is_root = true,
			.own_writable = true,
			.own_controllers = MEMORY | PIDS,
			.wanted = ALL },
		CGROUP_PLACE_LEAVE_OWN },
	{ "a user, alone in a group that lacks one controller, without systemd",
		{ .path = "",
			.top_is_real = true,
			.own_writable = true,
			.own_controllers = MEMORY | PIDS,
			.wanted = ALL },
		CGROUP_PLACE_LEAVE_OWN },
	{ "root under systemd, whose group is read-only, without a v2 controller",
		{ .path = "", .is_root = true, .systemd = true, .wanted = 0 }, CGROUP_PLACE_TOP },
	{ "--cgroup goes before all of it",
		{ .path = "/elsewhere",
			.is_root = true,
			.systemd = true,
			.top_is_real = true,
			.own_writable = true,
			.own_shared = true,
			.own_controllers = ALL,
			.wanted = ALL },
		CGROUP_PLACE_PATH },
};

static void every_kind_of_host_has_its_place(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(placements); i++) {
		if (cgroup_decide(&placements[i].sight) != placements[i].expect)
			fail_msg("%s: place %d instead of %d", placements[i].host,
				(int)cgroup_decide(&placements[i].sight),
				(int)placements[i].expect);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_every_hierarchy_of_a_hybrid_host),
		cmocka_unit_test(finds_controllers_that_share_a_hierarchy),
		cmocka_unit_test(sees_a_read_only_mount_whichever_way_it_is),
		cmocka_unit_test(undoes_the_escapes_of_mount_points),
		cmocka_unit_test(an_escape_that_the_kernel_does_not_write_is_refused),
		cmocka_unit_test(refuses_mountinfo_that_is_none),
		cmocka_unit_test(leaves_out_paths_that_are_too_long),
		cmocka_unit_test(keeps_no_more_mounts_than_fit),
		cmocka_unit_test(reads_the_own_group_of_each_controller),
		cmocka_unit_test(a_host_without_the_unified_hierarchy_has_no_own_group_there),
		cmocka_unit_test(refuses_an_own_group_that_is_none),
		cmocka_unit_test(finds_a_key_by_its_whole_name),
		cmocka_unit_test(a_key_with_no_number_is_refused),
		cmocka_unit_test(knows_only_the_controllers_that_it_uses),
		cmocka_unit_test(a_path_that_could_lead_elsewhere_is_refused),
		cmocka_unit_test(a_group_is_named_from_the_root_of_its_mount),
		cmocka_unit_test(only_one_spelling_names_an_instance),
		cmocka_unit_test(a_supervisor_that_starts_again_finds_its_old_base),
		cmocka_unit_test(every_kind_of_host_has_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
