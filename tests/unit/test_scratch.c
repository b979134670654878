/* Root: a cell's writable mounts. What is kept of them for the next program, and what is not. */
#include "tests/unit/unit.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"
#include "priv/launch/scratch.h"
#include "tests/lib/flaky.h"
#include "wire/channel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define BYTES    (UINT64_C(4) << 20)
#define USER     2000017
#define SHM      0
#define TMP      1
#define LEFT_MAX (UINT64_C(256) << 10)

static const struct view_scratch how = { BYTES, 64, USER, USER - 1 };
static struct scratch scratch;

static void make(void)
{
	struct fault f = { 0 };

	if (scratch_make(&scratch, &how, &f) < 0)
		fail_msg("%s", f.text);
}

static int set_up(void **state)
{
	(void)state;
	scratch_clear(&scratch);
	make();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_close(&scratch);
	return 0;
}

static int open_dir(unsigned which)
{
	int fd = openat(scratch.mounts[which].fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* A kernel before 6.13 dates changes by the tick: the next change gets another date than the
 * mount's making when the clock has gone on. (Programs cannot make a change of those for which
 * that matters: tests/e2e/test_cages.py.) */
static void await_tick(unsigned which)
{
	const struct timespec *made = &scratch.mounts[which].made.dir.st_ctim;
	struct timespec now;

	do
		assert_int_equal(clock_gettime(CLOCK_REALTIME_COARSE, &now), 0);
	while (now.tv_sec == made->tv_sec && now.tv_nsec <= made->tv_nsec);
}

/* ---- What a program, or somebody with more power, does in the directory ---- */

static void make_file(int dir)
{
	int fd = openat(dir, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	(void)close(fd);
}

static void make_file_and_remove_it(int dir)
{
	make_file(dir);
	assert_int_equal(unlinkat(dir, "file", 0), 0);
}

static void make_directory_and_remove_it(int dir)
{
	assert_int_equal(mkdirat(dir, "dir", 0700), 0);
	assert_int_equal(unlinkat(dir, "dir", AT_REMOVEDIR), 0);
}

static void list(int dir)
{
	DIR *d = fdopendir(dup(dir));

	assert_non_null(d);
	while (readdir(d))
		;
	(void)closedir(d);
}

static void change_mode(int dir)
{
	assert_int_equal(fchmod(dir, 0777), 0);
}

static void change_owner(int dir)
{
	assert_int_equal(fchown(dir, USER, (gid_t)-1), 0);
}

static void change_group(int dir)
{
	assert_int_equal(fchown(dir, (uid_t)-1, USER), 0);
}

static void change_mtime(int dir)
{
	const struct timespec t[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1 } };

	assert_int_equal(futimens(dir, t), 0);
}

static void change_atime(int dir)
{
	const struct timespec t[2] = { { .tv_sec = 1 }, { .tv_nsec = UTIME_OMIT } };

	assert_int_equal(futimens(dir, t), 0);
}

/* What only the owner can do, and what then still shows. */
static void put_the_times_back(int dir)
{
	struct timespec t[2];
	struct stat st;

	assert_int_equal(fstat(dir, &st), 0);
	t[0] = st.st_atim;
	t[1] = st.st_mtim;
	make_file_and_remove_it(dir);
	list(dir);
	assert_int_equal(futimens(dir, t), 0);
}

static void add_attribute(int dir)
{
	assert_int_equal(fsetxattr(dir, "trusted.a", "1", 1, 0), 0);
}

static const struct {
	const char *name;
	void (*run)(int dir);
} touches[] = {
	{ "a file", make_file },
	{ "a file that is gone", make_file_and_remove_it },
	{ "a directory that is gone", make_directory_and_remove_it },
	{ "a look", list },
	{ "the mode", change_mode },
	{ "the owner", change_owner },
	{ "the group", change_group },
	{ "the time of change", change_mtime },
	{ "the time of reading", change_atime },
	{ "times that are put back", put_the_times_back },
	{ "an attribute", add_attribute },
};

/* ---- Tests ---- */

static void tmp_and_shm_are_kept_when_nobody_touched_them(void **state)
{
	int shm = scratch.mounts[SHM].fd, tmp = scratch.mounts[TMP].fd;

	(void)state;
	await_tick(TMP);
	scratch_drop_used(&scratch);
	assert_int_equal(scratch.mounts[SHM].fd, shm);
	assert_int_equal(scratch.mounts[TMP].fd, tmp);
	make();
	assert_int_equal(scratch.mounts[SHM].fd, shm);
	assert_int_equal(scratch.mounts[TMP].fd, tmp);
}

static void what_was_touched_goes_and_what_is_attached_after_it(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * ARRAY_LEN(touches); i++) {
		unsigned which = i % 2 ? TMP : SHM;
		cleanup_fd int dir = -1;

		scratch_close(&scratch);
		make();
		await_tick(which);
		dir = open_dir(which);
		touches[i / 2].run(dir);
		scratch_drop_used(&scratch);
		for (unsigned k = 0; k < VIEW_SCRATCH; k++) {
			if ((scratch.mounts[k].fd >= 0) != (k < which))
				fail_msg("%s in %s: %s is %s", touches[i / 2].name,
					view_scratch_paths[which], view_scratch_paths[k],
					k < which ? "dropped" : "kept");
		}
	}
}

/* What statfs() tells: the same but for one number; 3: nothing. */
static unsigned other_number;
static struct sys_ops real;

static int other_fstatfs(int fd, struct statfs *ret)
{
	int r = real.fstatfs(fd, ret);

	ret->f_bfree -= other_number == 0;
	ret->f_files -= other_number == 1;
	ret->f_ffree -= other_number == 2;
	return other_number == 3 ? -EIO : r;
}

/* As if something could be there that does not show in the directory. */
static void what_holds_more_than_when_it_was_made_goes(void **state)
{
	(void)state;
	for (other_number = 0; other_number < 4; other_number++) {
		struct denied d = { 0 };

		scratch_close(&scratch);
		make();
		real = sys;
		sys.fstatfs = other_fstatfs;
		scratch_look(&scratch, &d);
		scratch_drop_used(&scratch);
		sys = real;
		assert_int_equal(scratch.mounts[SHM].fd, -1);
		assert_int_equal(d.scratch_bytes > 0, other_number == 0);
	}
}

static void whichever_call_of_another_size_fails_is_said(void **state)
{
	unsigned n;

	(void)state;
	for (n = 0; n < 100; n++) {
		struct fault f = { 0 };
		int r;

		flaky_arm(n, EIO);
		r = scratch_resize(&scratch, 2 * BYTES, &f);
		if (!flaky_disarm())
			break;
		assert_int_equal(r, -EIO);
		assert_int_equal(strncmp(f.text, "tmpfs: ", 7), 0);
	}
	assert_int_equal(n, 3 * VIEW_SCRATCH); /* picked, told its size, made to take it */
}

static void the_workspace_goes_whatever_it_looks_like(void **state)
{
	(void)state;
	scratch_drop_used(&scratch);
	assert_int_equal(scratch.mounts[VIEW_WORKSPACE].fd, -1);
}

static uint64_t room(unsigned which)
{
	struct statfs st;

	assert_int_equal(fstatfs(scratch.mounts[which].fd, &st), 0);
	return (uint64_t)st.f_blocks * (uint64_t)st.f_bsize;
}

static void one_of_another_size_goes(void **state)
{
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(scratch_resize(&scratch, 2 * BYTES, &f), 0);
	for (unsigned i = 0; i < VIEW_SCRATCH; i++)
		assert_int_equal(room(i), 2 * BYTES);
	scratch_drop_used(&scratch);
	make();
	for (unsigned i = 0; i < VIEW_SCRATCH; i++)
		assert_int_equal(room(i), BYTES);
}

/* A file of so many bytes there. */
static void fill(unsigned which, size_t bytes)
{
	static const char page[4096];
	cleanup_fd int dir = open_dir(which);
	cleanup_fd int fd = openat(dir, "much", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	for (; bytes > 0; bytes -= sizeof(page))
		assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
}

static void what_they_hold_is_added_up(void **state)
{
	(void)state;
	fill(SHM, LEFT_MAX / 2);
	fill(TMP, LEFT_MAX / 2);
	assert_false(scratch_holds_more(&scratch, LEFT_MAX));
	fill(VIEW_WORKSPACE, 4096);
	assert_true(scratch_holds_more(&scratch, LEFT_MAX));
}

static void what_cannot_be_looked_at_may_hold_anything(void **state)
{
	(void)state;
	drop_fd(&scratch.mounts[TMP].fd);
	assert_true(scratch_holds_more(&scratch, UINT64_MAX));
}

/* The paths that are sent, as bits in the order of view_scratch_paths. */
static unsigned sent(void)
{
	struct fault f = { 0 };
	static struct msg m;
	const char *rule = "";
	unsigned paths = 0;
	int pair[2];

	assert_int_equal(channel_pair(pair, 0), 0);
	assert_int_equal(scratch_send(&scratch, pair[0], &f), 0);
	(void)close(pair[0]);
	while (channel_recv(pair[1], ROLE_SUPERVISOR, ROLE_BOX, &m, &rule) > 0) {
		assert_int_equal(m.type, MSG_MOUNT);
		for (unsigned i = 0; i < VIEW_SCRATCH; i++)
			paths |= (unsigned)!strcmp(m.as.MOUNT.path, view_scratch_paths[i]) << i;
		msg_done(&m);
	}
	(void)close(pair[1]);
	return paths;
}

/* ---- Is there anything to collect? ---- */

/* As enter leaves the program's file. */
static void make_program(const char *text, bool mark)
{
	cleanup_fd int dir = open_dir(VIEW_WORKSPACE);
	int fd = openat(dir, "main.py", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fstat(fd, &st), 0);
	times[1].tv_sec = st.st_mtim.tv_sec;
	if (mark)
		assert_int_equal(futimens(fd, times), 0);
	(void)close(fd);
}

static void write_into(int dir, const char *text)
{
	int fd = openat(dir, "main.py", O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

static void overwrite(int dir)
{
	write_into(dir, "12");
}

static void lengthen(int dir)
{
	write_into(dir, "longer");
}

static void swap(int dir)
{
	assert_int_equal(unlinkat(dir, "main.py", 0), 0);
	make_program("123", false);
}

static void move(int dir)
{
	assert_int_equal(renameat(dir, "main.py", dir, "other"), 0);
}

static void link_it(int dir)
{
	assert_int_equal(linkat(dir, "main.py", dir, "other", 0), 0);
}

static void make_link(int dir)
{
	assert_int_equal(symlinkat("nowhere", dir, "link"), 0);
}

static void make_directory(int dir)
{
	assert_int_equal(mkdirat(dir, "dir", 0700), 0);
}

static void mark_again(int dir, time_t earlier)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	struct stat st;

	assert_int_equal(fstatat(dir, "main.py", &st, 0), 0);
	times[1].tv_sec = st.st_ctim.tv_sec - earlier;
	assert_int_equal(utimensat(dir, "main.py", times, 0), 0);
}

static void mark_otherwise(int dir)
{
	mark_again(dir, 1);
}

/* More room behind its end, and all that its owner can put back is put back. */
static void take_more_room(int dir)
{
	cleanup_fd int fd = openat(dir, "main.py", O_WRONLY | O_CLOEXEC);

	assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 2 * 4096), 0);
	mark_again(dir, 0);
}

static void only_an_untouched_workspace_is_plain(void **state)
{
	static void (*const deeds[])(int dir) = { make_file, make_directory, make_link, overwrite,
		lengthen, swap, move, link_it, mark_otherwise, take_more_room };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(deeds); i++) {
		cleanup_fd int dir = -1;

		scratch_close(&scratch);
		make();
		make_program("123", true);
		assert_true(scratch_is_plain(&scratch, "main.py", 3));
		assert_false(scratch_is_plain(&scratch, "main.py", 2));
		assert_false(scratch_is_plain(&scratch, "other.py", 3));
		dir = open_dir(VIEW_WORKSPACE);
		deeds[i](dir);
		assert_false(scratch_is_plain(&scratch, "main.py", 3));
	}
	scratch_close(&scratch);
	make();
	make_program("", true);
	assert_true(scratch_is_plain(&scratch, "main.py", 0));
}

static void what_is_no_file_is_no_program(void **state)
{
	cleanup_fd int dir = open_dir(VIEW_WORKSPACE);

	(void)state;
	assert_int_equal(mknodat(dir, "main.py", S_IFIFO | 0600, 0), 0);
	assert_false(scratch_is_plain(&scratch, "main.py", 0)); /* as empty as that file was */
}

static void a_workspace_that_cannot_be_looked_at_is_not_plain(void **state)
{
	(void)state;
	make_program("", true);
	assert_true(scratch_is_plain(&scratch, "main.py", 0));
	scratch.mounts[VIEW_WORKSPACE].made.files = 0;
	assert_false(scratch_is_plain(&scratch, "main.py", 0));
	scratch_close(&scratch);
	assert_false(scratch_is_plain(&scratch, "main.py", 0));
	make();
	make_program("", true);
	other_number = 3;
	real = sys;
	sys.fstatfs = other_fstatfs;
	assert_false(scratch_is_plain(&scratch, "main.py", 0));
	sys = real;
	assert_true(scratch_is_plain(&scratch, "main.py", 0));
}

static void main_is_sent_those_that_are_not_attached_yet(void **state)
{
	cleanup_fd int dir = -1;

	(void)state;
	assert_int_equal(sent(), 7);
	assert_int_equal(sent(), 0);
	dir = open_dir(TMP);
	make_file(dir);
	scratch_drop_used(&scratch);
	make();
	assert_int_equal(sent(), 6);
}

#define mounts_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* ---- What a run is told of them ---- */

static void what_is_full_is_seen_and_how_much_there_is(void **state)
{
	cleanup_fd int tmp = open_dir(TMP), workspace = open_dir(VIEW_WORKSPACE);
	struct denied seen = { .unrouted = 7 };
	char name[16];
	int fd;

	(void)state;
	scratch_look(&scratch, &seen);
	assert_int_equal(seen.unrouted, 7);
	assert_int_equal(seen.full, 0);
	assert_int_equal(seen.scratch_bytes, 0);

	fd = openat(tmp, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(posix_fallocate(fd, 0, BYTES), 0);
	(void)close(fd);
	for (unsigned i = 0;; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		fd = openat(workspace, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			break;
		(void)close(fd);
	}
	assert_int_equal(errno, ENOSPC);
	seen = (struct denied){ 0 };
	scratch_look(&scratch, &seen);
	assert_int_equal(
		seen.full, SCRATCH_NO_ROOM(SCRATCH_TMP) | SCRATCH_NO_FILES(SCRATCH_WORKSPACE));
	assert_int_equal(seen.scratch_bytes, BYTES);

	/* Seen when it is looked at, and not what was before. */
	assert_int_equal(unlinkat(tmp, "file", 0), 0);
	assert_int_equal(unlinkat(workspace, "0", 0), 0);
	seen = (struct denied){ 0 };
	scratch_look(&scratch, &seen);
	assert_int_equal(seen.full, 0);
	assert_int_equal(seen.scratch_bytes, 0);
}

static void what_was_never_made_is_not_full(void **state)
{
	struct denied seen = { 0 };

	(void)state;
	scratch_close(&scratch);
	scratch_look(&scratch, &seen);
	assert_int_equal(seen.full, 0);
	assert_int_equal(seen.scratch_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		mounts_test(tmp_and_shm_are_kept_when_nobody_touched_them),
		mounts_test(what_was_touched_goes_and_what_is_attached_after_it),
		mounts_test(what_holds_more_than_when_it_was_made_goes),
		mounts_test(whichever_call_of_another_size_fails_is_said),
		mounts_test(the_workspace_goes_whatever_it_looks_like),
		mounts_test(one_of_another_size_goes),
		mounts_test(what_they_hold_is_added_up),
		mounts_test(what_cannot_be_looked_at_may_hold_anything),
		mounts_test(only_an_untouched_workspace_is_plain),
		mounts_test(what_is_no_file_is_no_program),
		mounts_test(a_workspace_that_cannot_be_looked_at_is_not_plain),
		mounts_test(main_is_sent_those_that_are_not_attached_yet),
		cmocka_unit_test_setup_teardown(
			what_is_full_is_seen_and_how_much_there_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_was_never_made_is_not_full, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
