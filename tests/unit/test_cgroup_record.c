/* What a dead instance has left: the groups that its record names, and those of its number. On
 * folders of the same names; real groups are in test_cgroup_tree.c. */
#include "unit.h"

#include "folder.h"

#include "base/own.h"
#include "kernel/cgroup_internal.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

static char folder[32];
static int dir = -1;
static struct sys_ops real;

static int set_up(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/glovebox-record-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	real = sys;
	return dir < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	sys = real;
	drop_fd(&dir);
	return remove_folder(folder);
}

static int no_fstatfs(int fd, struct statfs *ret)
{
	(void)fd;
	(void)ret;
	return -EIO;
}

static void a_record_leads_to_nothing_but_groups_of_its_number(void **state)
{
	/* What stands before the folder, and behind it. */
	static const char *const wrong[][2] = {
		{ "", "/glovebox.7\n" },      /* no number */
		{ "0", "/glovebox.7\n" },     /* no blank */
		{ "0 .", "/glovebox.7\n" },   /* relative */
		{ "0 ", "/glovebox.7" },      /* not written to its end */
		{ "0 ", "/glovebox.8\n" },    /* another instance's */
		{ "0 ", "/glovebox.7/c1\n" }, /* below it */
		{ "0 ", "/none/glovebox.7\n" },
		{ "9 ", "/glovebox.7\n" }, /* no control group: nothing above it goes either */
	};
	char text[1024], longer[900];

	(void)state;
	assert_int_equal(mkdirat(dir, "glovebox.7", 0700), 0);
	assert_int_equal(mkdirat(dir, "glovebox.7/c1", 0700), 0);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		(void)snprintf(text, sizeof(text), "%s%s%s", wrong[i][0], folder, wrong[i][1]);
		assert_int_equal(cgroup_sweep_record(text, 7), 0);
		assert_int_equal(faccessat(dir, "glovebox.7/c1", F_OK, 0), 0);
	}
	assert_int_equal(cgroup_sweep_record("0 /glovebox.7\n0 /\n\n", 7), 0);
	(void)memset(longer, '/', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	(void)snprintf(text, sizeof(text), "0 %s%s/glovebox.7\n", longer, folder);
	assert_int_equal(cgroup_sweep_record(text, 7), 0);
	sys.fstatfs = no_fstatfs;
	(void)snprintf(text, sizeof(text), "1 %s/glovebox.7\n", folder);
	assert_int_equal(cgroup_sweep_record(text, 7), 0);
	assert_int_equal(faccessat(dir, "glovebox.7/c1", F_OK, 0), 0);
}

static void a_base_that_cannot_be_opened_keeps_the_record(void **state)
{
	cleanup_fd int fd = -1;
	char text[128];

	(void)state;
	fd = openat(dir, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)snprintf(text, sizeof(text), "0 %s/file/glovebox.7\n", folder);
	assert_int_equal(cgroup_sweep_record(text, 7), -ENOTDIR);
}

static void a_record_leaves_out_what_is_no_line(void **state)
{
	struct cgroup_tree t = { .count = 4,
		.h = { { .mount = "/m", .base = "/", .made = 2 }, { .mount = "anonymous" },
			{ .mount = "/a\nb", .base = "/" }, { .mount = "/m", .base = "/a\nb" } },
		.name = "glovebox.7" };
	char text[CGROUP_RECORD_MAX];

	(void)state;
	cgroup_record(&t, text);
	assert_string_equal(text, "2 /m/glovebox.7\n");
}

static bool nobody_is_asked(unsigned number, void *ctx)
{
	(void)number;
	(void)ctx;
	fail();
	return true;
}

static void a_hierarchy_that_cannot_be_opened_is_not_swept(void **state)
{
	const struct cgroup_tree t = { .count = 1, .h = { { .dir_fd = -1 } } };

	(void)state;
	assert_int_equal(cgroup_sweep(&t, nobody_is_asked, NULL), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_record_leads_to_nothing_but_groups_of_its_number),
		CASE(a_base_that_cannot_be_opened_keeps_the_record),
		CASE(a_record_leaves_out_what_is_no_line),
		CASE(a_hierarchy_that_cannot_be_opened_is_not_swept),
	};

	return cmocka_run_group_tests_name("cgroup_record", tests, NULL, NULL);
}
