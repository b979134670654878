/* The collector's walk, over directories that the test makes: what changes under its hands, and
 * whichever of its calls fails. */
#include "unit.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/own.h"
#include "box/collect/walk.h"
#include "kernel/sys.h"
#include "tests/lib/flaky.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];
static struct out out;
static struct known known;
static struct files_reader reader;
static char told[8192];
static struct sys_ops real;

static int on_file(void *ctx, const char *path, size_t len, uint64_t size)
{
	(void)ctx;
	(void)len;
	(void)size;
	(void)snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s=", path);
	return 0;
}

static int on_bytes(void *ctx, const void *bytes, size_t len)
{
	(void)ctx;
	(void)snprintf(told + strlen(told), sizeof(told) - strlen(told), "%.*s",
		len < 16 ? (int)len : 16, (const char *)bytes);
	return 0;
}

static int on_close(void *ctx, enum files_reason why)
{
	(void)ctx;
	(void)snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s%s ", why ? "!" : "",
		why ? files_reason_word(why) : "");
	return 0;
}

static int on_skip(void *ctx, const char *path, size_t len, uint64_t size, enum files_reason why)
{
	(void)ctx;
	(void)len;
	(void)size;
	(void)snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s!%s ", path,
		files_reason_word(why));
	return 0;
}

static int on_end(void *ctx, uint64_t more)
{
	(void)ctx;
	(void)snprintf(
		told + strlen(told), sizeof(told) - strlen(told), "+%lu", (unsigned long)more);
	return 0;
}

static const struct files_calls calls = { on_file, on_bytes, on_close, on_skip, on_end };

static void make_file(const char *path, const char *text)
{
	char whole[256];
	int fd;

	(void)snprintf(whole, sizeof(whole), "%s/%s", root, path);
	fd = open(whole, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

static void make_dir(const char *path)
{
	char whole[256];

	(void)snprintf(whole, sizeof(whole), "%s/%s", root, path);
	assert_int_equal(mkdir(whole, 0700), 0);
}

static int begin(void **state)
{
	(void)state;
	(void)snprintf(root, sizeof(root), "/tmp/glovebox-collect-XXXXXX");
	assert_non_null(mkdtemp(root));
	memset(&known, 0, sizeof(known));
	real = sys;
	return 0;
}

static int remove_it(const char *path, const struct stat *st, int what, struct FTW *where)
{
	(void)st;
	(void)what;
	(void)where;
	return remove(path);
}

static int end(void **state)
{
	(void)state;
	sys = real;
	return nftw(root, remove_it, 16, FTW_DEPTH | FTW_PHYS);
}

/* The run began with this program alone. */
static void known_is(const char *main_file, const char *code)
{
	known.main_file = main_file;
	known.code_bytes = strlen(code);
	known.inputs.map = (void *)(uintptr_t)code;
}

/* The walk's stream, read; its result. */
static int collect(const struct files_caps *caps)
{
	cleanup_fd int to = memfd_create("stream", MFD_CLOEXEC);
	struct walk_plan plan = { .caps = *caps, .known = &known, .out = &out };
	struct fault f = { 0 };
	char bytes[4096];
	const char *rule;
	ssize_t n;
	int r;

	told[0] = '\0';
	plan.root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(to >= 0 && plan.root_fd >= 0);
	out_init(&out, to);
	r = walk(&plan, &f);
	if (r == 0)
		r = out_end(&out);
	assert_int_equal(lseek(to, 0, SEEK_SET), 0);
	files_reader_init(&reader, &calls, NULL);
	while ((n = read(to, bytes, sizeof(bytes))) > 0)
		assert_int_equal(files_read(&reader, bytes, (size_t)n, &rule), 0);
	return r;
}

static const struct files_caps roomy = {
	.count = 100, .file_bytes = 1 << 20, .total_bytes = 1 << 20, .time_us = 60000000
};

static void a_tree_is_walked_in_the_order_of_its_paths(void **state)
{
	(void)state;
	make_dir("b");
	make_file("b!", "3");
	make_file("b/z", "2");
	make_file("a", "1");
	assert_int_equal(collect(&roomy), 0);
	assert_string_equal(told, "a=1 b/z=2 b!=3 +0");
}

static void when_the_time_is_up_the_rest_is_still_named(void **state)
{
	struct files_caps late = roomy;

	(void)state;
	late.time_us = 0;
	make_file("a", "1");
	make_dir("b");
	make_file("b/c", "2");
	assert_int_equal(collect(&late), 0);
	assert_string_equal(told, "a!time b/c!time +0");
}

/* Its size is a number that nothing is allocated or read for. */
static void a_hole_as_large_as_a_file_can_be_is_named_and_not_read(void **state)
{
	struct files_caps caps = roomy;
	struct stat st;
	char path[256];

	(void)state;
	assert_int_equal(rmdir(root), 0);
	(void)snprintf(
		root, sizeof(root), "/dev/shm/glovebox-collect-XXXXXX"); /* a tmpfs has them */
	assert_non_null(mkdtemp(root));
	make_file("a", "");
	make_file("b", "2");
	(void)snprintf(path, sizeof(path), "%s/a", root);
	assert_int_equal(truncate(path, INT64_MAX), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size == INT64_MAX);
	assert_int_equal(collect(&caps), 0);
	assert_string_equal(told, "a!too_large b=2 +0");
	caps.file_bytes = UINT64_MAX;
	assert_int_equal(collect(&caps), 0);
	assert_string_equal(told, "a!total_bytes b=2 +0");
}

/* ---- What changes under the walk's hands ---- */

static ssize_t read_and_append(int fd, void *bytes, size_t room)
{
	ssize_t n = real.read(fd, bytes, room);

	make_file("a", "longer than it was");
	return n;
}

static ssize_t read_and_shorten(int fd, void *bytes, size_t room)
{
	make_file("a", "");
	return real.read(fd, bytes, room);
}

static ssize_t read_and_rewrite(int fd, void *bytes, size_t room)
{
	ssize_t n = real.read(fd, bytes, room);

	if (n > 0)
		make_file("a", "other");
	return n;
}

static void a_file_that_changes_while_it_is_read_is_said_to_have_changed(void **state)
{
	static ssize_t (*const reads[])(
		int, void *, size_t) = { read_and_append, read_and_shorten, read_and_rewrite };

	(void)state;
	make_file("b", "2");
	for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
		make_file("a", "first");
		sys.read = reads[i];
		assert_int_equal(collect(&roomy), 0);
		sys.read = real.read;
		assert_non_null(strstr(told, "!changed "));
		assert_non_null(strstr(told, "+0"));
	}
}

static const char *swap_for;

static int open_something_else(int dir_fd, const char *path, int flags, mode_t mode)
{
	char from[256], to[256];

	if (strcmp(path, "a") == 0) {
		(void)snprintf(to, sizeof(to), "%s/a", root);
		(void)unlink(to);
		if (strcmp(swap_for, "link") == 0) {
			assert_int_equal(symlink("/etc/passwd", to), 0);
		} else if (strcmp(swap_for, "fifo") == 0) {
			assert_int_equal(mkfifo(to, 0600), 0);
		} else {
			(void)snprintf(from, sizeof(from), "%s/b", root);
			assert_int_equal(link(from, to), 0);
		}
	}
	return real.openat(dir_fd, path, flags, mode);
}

static void what_is_opened_is_what_was_looked_at(void **state)
{
	static const struct {
		const char *other, *told;
	} cases[] = {
		{ "link", "a!failed b=2 +0" },
		{ "fifo", "a!changed b=2 +0" },
		{ "file", "a!changed b=2 +0" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char path[256];

		(void)snprintf(path, sizeof(path), "%s/a", root);
		(void)unlink(path);
		make_file("a", "1");
		make_file("b", "2");
		swap_for = cases[i].other;
		sys.openat = open_something_else;
		assert_int_equal(collect(&roomy), 0);
		sys.openat = real.openat;
		assert_string_equal(told, cases[i].told);
	}
}

/* ---- More names than can be put in order ---- */

#define MANY 100000

static unsigned names_left;

/* MANY names of 200 bytes, at the top alone. */
static ssize_t many_names(int fd, void *bytes, size_t room)
{
	const size_t step = (offsetof(struct dirent64, d_name) + 201 + 7) / 8 * 8;
	size_t at = 0;

	(void)fd;
	for (; names_left > 0 && at + step <= room; at += step) {
		struct dirent64 *d = (void *)((char *)bytes + at);

		memset(d, 0, step);
		d->d_reclen = (unsigned short)step;
		(void)snprintf(d->d_name, 201, "%0200u", names_left--);
	}
	return (ssize_t)at;
}

static void a_top_with_more_names_than_can_be_put_in_order_has_them_counted(void **state)
{
	(void)state;
	names_left = MANY;
	sys.getdents64 = many_names;
	assert_int_equal(collect(&roomy), 0);
	assert_string_equal(told, "+100000");
}

static ino_t crowded;

/* So many below one directory only. */
static ssize_t many_names_below(int fd, void *bytes, size_t room)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino == crowded ? many_names(fd, bytes, room)
				    : real.getdents64(fd, bytes, room);
}

static void a_directory_with_more_names_than_can_be_put_in_order_is_named(void **state)
{
	struct stat st;
	char path[256];

	(void)state;
	make_file("a", "1");
	make_dir("b");
	make_file("c", "2");
	(void)snprintf(path, sizeof(path), "%s/b", root);
	assert_int_equal(stat(path, &st), 0);
	crowded = st.st_ino;
	names_left = MANY;
	sys.getdents64 = many_names_below;
	assert_int_equal(collect(&roomy), 0);
	assert_string_equal(told, "a=1 b!too_many_names c=2 +0");
}

/* ---- What no program can make ---- */

static mode_t looks_like;

static int look_like_a_device(int dir_fd, const char *path, struct stat *ret, int flags)
{
	int r = real.fstatat(dir_fd, path, ret, flags);

	if (r == 0 && strcmp(path, "a") == 0)
		ret->st_mode = looks_like | 0666;
	return r;
}

static int open_no_device(int dir_fd, const char *path, int flags, mode_t mode)
{
	assert_string_not_equal(path, "a");
	return real.openat(dir_fd, path, flags, mode);
}

static void a_device_is_named_and_not_opened(void **state)
{
	static const mode_t kinds[] = { S_IFCHR, S_IFBLK };

	(void)state;
	make_file("a", "1");
	make_file("b", "2");
	sys.fstatat = look_like_a_device;
	sys.openat = open_no_device;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		looks_like = kinds[i];
		assert_int_equal(collect(&roomy), 0);
		assert_string_equal(told, "a!device b=2 +0");
	}
}

/* ---- Whichever call fails ---- */

static bool is_named(const char *path)
{
	const char *at = strstr(told, path);

	return at && (at[strlen(path)] == '=' || at[strlen(path)] == '!');
}

static void whichever_call_fails_each_file_is_named_or_the_end_is_missing(void **state)
{
	unsigned n = 0;

	(void)state;
	known_is("main.py", "as it was");
	make_file("main.py", "as it was");
	make_file("aa", "1");
	make_dir("dd");
	make_file("dd/bb", "2");
	make_file("zz", "3");
	for (;; n++) {
		int r;

		flaky_arm(n, EIO);
		r = collect(&roomy);
		if (!flaky_disarm())
			break;
		if (strcmp(flaky_name(), "close") == 0)
			continue;
		assert_int_equal(r == 0, reader.done);
		if (r == 0 && !(is_named("aa") && (is_named("dd/bb") || is_named("dd")) &&
				      is_named("zz")))
			fail_msg("with a failing %s: %s", flaky_name(), told);
		if (strstr(told, "main.py=")) /* which nobody has changed */
			fail_msg("with a failing %s: %s", flaky_name(), told);
	}
	assert_true(n > 18);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_tree_is_walked_in_the_order_of_its_paths, begin, end),
		cmocka_unit_test_setup_teardown(
			when_the_time_is_up_the_rest_is_still_named, begin, end),
		cmocka_unit_test_setup_teardown(
			a_hole_as_large_as_a_file_can_be_is_named_and_not_read, begin, end),
		cmocka_unit_test_setup_teardown(
			a_file_that_changes_while_it_is_read_is_said_to_have_changed, begin, end),
		cmocka_unit_test_setup_teardown(what_is_opened_is_what_was_looked_at, begin, end),
		cmocka_unit_test_setup_teardown(
			a_directory_with_more_names_than_can_be_put_in_order_is_named, begin, end),
		cmocka_unit_test_setup_teardown(a_device_is_named_and_not_opened, begin, end),
		cmocka_unit_test_setup_teardown(
			a_top_with_more_names_than_can_be_put_in_order_has_them_counted, begin,
			end),
		cmocka_unit_test_setup_teardown(
			whichever_call_fails_each_file_is_named_or_the_end_is_missing, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
