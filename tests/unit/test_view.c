/* The template of a cell's root: whichever call fails while it is made is said, as is what does not
 * fit into it; what a host lacks is left out. As root, in a mount namespace of our own. */
#include "tests/unit/unit.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/mount.h"
#include "kernel/sys.h"
#include "priv/launch/view.h"
#include "priv/launch/view_etc.h"
#include "tests/lib/flaky.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS_MAX 2000
#define PAGES_MAX 4096

static struct runtime runtime;
static struct sys_ops real;
static struct view view;

/* How large the template may be, in pages; 0: as it is. */
static unsigned long pages;

static int small_fsconfig(int fd, unsigned cmd, const char *key, const void *value, int aux)
{
	char size[24];

	if (pages > 0 && key && strcmp(key, "size") == 0) {
		(void)snprintf(size, sizeof(size), "%lu", pages * 4096);
		value = size;
	}
	return real.fsconfig(fd, cmd, key, value, aux);
}

static int begin(void **state)
{
	struct fault f = { 0 };

	(void)state;
	real = sys;
	runtime = (struct runtime){ .name = "test",
		.roots = { "/usr/bin", "?/usr/lib64", "?/no/such", "?/etc/passwd", "/usr/share" } };
	pages = 0;
	/* Each test has its own; the folder is of whoever was here first. */
	(void)mkdir("/run/glovebox", 0711);
	if (mount_make_private(&f) < 0)
		fail_msg("%s", f.text);
	return 0;
}

static int end(void **state)
{
	(void)state;
	sys = real;
	(void)umount2(VIEW_DIR, MNT_DETACH);
	return 0;
}

static bool is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static void the_template_has_what_a_root_needs(void **state)
{
	const char *const names[] = { "root/etc/passwd", "root/etc/localtime", "root/usr/bin",
		"root/var/tmp", "root/workspace", "dev/null", "dev/shm", "dev/stdin", "empty",
		"anchor" };
	struct fault f = { 0 };

	(void)state;
	/* On a host where nobody has made one. */
	assert_int_equal(mount("tmpfs", "/run/glovebox", "tmpfs", 0, "size=1m"), 0);
	if (view_open(&view, &runtime, &f) < 0)
		fail_msg("%s", f.text);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[128];

		(void)snprintf(path, sizeof(path), VIEW_DIR "/%s", names[i]);
		if (!is_there(path))
			fail_msg("%s is not there", path);
	}
	assert_int_equal(view.count, 2 + is_there("/usr/lib64"));
	assert_int_equal(umount2("/run/glovebox", MNT_DETACH), 0);
}

static void whichever_call_fails_while_it_is_made_is_said(void **state)
{
	unsigned n, failed = 0;

	(void)state;
	for (n = 0; n < CALLS_MAX; n++) {
		struct fault f = { 0 };
		bool reached;
		int r;

		flaky_arm(n, EIO);
		r = view_open(&view, &runtime, &f);
		reached = flaky_disarm();
		(void)umount2(VIEW_DIR, MNT_DETACH);
		if (r < 0 && strncmp(f.text, "root view: ", 11) != 0)
			fail_msg("call %u (%s): %s", n, flaky_name(), f.text);
		failed += r < 0;
		if (!reached)
			break;
		/* Also when it is not known whether a root with `?` is there. */
		if (r == 0 && strcmp(flaky_name(), "close") != 0)
			fail_msg("call %u (%s) failed, and nothing was said", n, flaky_name());
	}
	assert_in_range(failed, 60, n);
}

#define NUMBER 5

static int open_other(int fd, struct fault *f)
{
	(void)fd;
	return view_open_other(&view, &runtime, NUMBER, true, f);
}

static int open_image(int fd, struct fault *f)
{
	return view_open_image(&view, fd, NUMBER, f);
}

/* Else a client who asks again and again would fill the template, which all of them share. */
static void leaves_nothing(int (*open_one)(int, struct fault *), int fd, const char *path)
{
	struct fault f = { 0 };
	bool reached = true;
	unsigned n, failed = 0;

	assert_int_equal(view_open(&view, &runtime, &f), 0);
	for (n = 0; reached && n < CALLS_MAX; n++) {
		int r;

		f = (struct fault){ 0 };
		flaky_arm(n, EIO);
		r = open_one(fd, &f);
		reached = flaky_disarm();
		if (r == 0 && reached && strcmp(flaky_name(), "close") != 0)
			fail_msg("call %u (%s) failed, and nothing was said", n, flaky_name());
		if (r < 0 && is_there(path))
			fail_msg("call %u (%s): %s is there", n, flaky_name(), path);
		failed += r < 0;
		if (r == 0) {
			(void)umount2(VIEW_DIR "/image.5/root", MNT_DETACH);
			view_remove(path);
		}
	}
	assert_false(reached);
	assert_in_range(failed, 20, n);
}

static void a_root_that_cannot_be_finished_leaves_nothing_behind(void **state)
{
	static const char file[] = "/run/glovebox/test-view.squashfs";
	int fd;

	(void)state;
	leaves_nothing(open_other, -1, VIEW_DIR "/root.5");
	(void)umount2(VIEW_DIR, MNT_DETACH);
	(void)unlink(file);
	assert_int_equal(system("mksquashfs /usr/share/doc/base-files "
				"/run/glovebox/test-view.squashfs -quiet -no-progress >/dev/null"),
		0);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	(void)unlink(file);
	leaves_nothing(open_image, fd, VIEW_DIR "/image.5");
	(void)close(fd);
}

static void what_does_not_fit_into_it_is_said(void **state)
{
	bool written = false, copied = false, fits = false;

	(void)state;
	sys.fsconfig = small_fsconfig;
	for (pages = 1; pages < PAGES_MAX && !fits; pages++) {
		struct fault f = { 0 };
		int r = view_open(&view, &runtime, &f);

		(void)umount2(VIEW_DIR, MNT_DETACH);
		fits = r == 0;
		if (!fits)
			assert_int_equal(r, -ENOSPC);
		written |= strstr(f.text, ": write ") != NULL;
		copied |= strstr(f.text, ": copy ") != NULL;
	}
	assert_true(written && copied && fits);
}

static void a_root_of_a_runtime_has_to_be_there_and_a_directory(void **state)
{
	struct fault f = { 0 };

	(void)state;
	(void)snprintf(runtime.roots[0], sizeof(runtime.roots[0]), "/no/such");
	assert_int_equal(view_open(&view, &runtime, &f), -ENOENT);
	assert_non_null(strstr(f.text, "runtime test: /no/such"));
	(void)snprintf(runtime.roots[0], sizeof(runtime.roots[0]), "/etc/passwd");
	assert_int_equal(view_open(&view, &runtime, &f), -ENOTDIR);
}

static void a_runtime_may_have_as_many_roots_as_there_are(void **state)
{
	struct fault f = { 0 };

	(void)state;
	for (unsigned i = 0; i < RUNTIME_ROOTS_MAX; i++)
		(void)snprintf(runtime.roots[i], sizeof(runtime.roots[i]), "/usr/bin");
	assert_int_equal(view_open(&view, &runtime, &f), 0);
	assert_int_equal(view.count, RUNTIME_ROOTS_MAX);
}

static void a_name_that_is_too_long_is_refused(void **state)
{
	char path[CELL_PATH_MAX + 8];
	struct fault f = { 0 };

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(view_make_dirs(AT_FDCWD, path, &f), -ENAMETOOLONG);
}

/* A host's /etc that has nothing but these, each something that is not to be copied. */
static void a_host_that_has_none_of_the_files_has_a_template_without_them(void **state)
{
	struct fault f = { 0 };
	int fd;

	(void)state;
	assert_int_equal(mount("tmpfs", "/etc", "tmpfs", 0, "size=1m"), 0);
	assert_int_equal(mkdir("/etc/os-release", 0755), 0);
	fd = open("/etc/services", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	fd = view_open(&view, &runtime, &f);
	assert_int_equal(umount2("/etc", MNT_DETACH), 0);
	if (fd < 0)
		fail_msg("%s", f.text);
	assert_true(is_there(VIEW_DIR "/root/etc/alternatives"));
	assert_false(is_there(VIEW_DIR "/root/etc/os-release")); /* no file */
	assert_false(is_there(VIEW_DIR "/root/etc/services"));   /* others may not read it */
	assert_false(is_there(VIEW_DIR "/root/etc/protocols"));
}

static int is_busy(const char *path, int flags)
{
	(void)path, (void)flags;
	return -EBUSY;
}

static void an_image_that_cannot_be_unmounted_stays(void **state)
{
	struct view image = { .image = "/tmp/glovebox-image.XXXXXX" };
	int r;

	(void)state;
	assert_non_null(mkdtemp(image.image));
	sys.umount2 = is_busy;
	r = view_close_image(&image);
	sys.umount2 = real.umount2;
	assert_int_equal(r, -EBUSY);
	assert_int_equal(rmdir(image.image), 0); /* it is there */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_template_has_what_a_root_needs),
		CASE(whichever_call_fails_while_it_is_made_is_said),
		CASE(a_root_that_cannot_be_finished_leaves_nothing_behind),
		CASE(what_does_not_fit_into_it_is_said),
		CASE(a_root_of_a_runtime_has_to_be_there_and_a_directory),
		CASE(a_runtime_may_have_as_many_roots_as_there_are),
		CASE(a_name_that_is_too_long_is_refused),
		CASE(a_host_that_has_none_of_the_files_has_a_template_without_them),
		CASE(an_image_that_cannot_be_unmounted_stays),
	};

	return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
