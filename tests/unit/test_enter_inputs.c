#include "unit.h"

#include "base/fault.h"
#include "box/cold/library.h"
#include "box/enter/inputs.h"
#include "kernel/sys.h"
#include "tests/lib/flaky.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/glovebox-inputs-XXXXXX";
static char blob[4096];
static struct sys_ops real;

static struct {
	const char *path, *text;
	uint32_t mode;
} const files[] = {
	{ "a/b/c", "one", 0644 },
	{ "a/b/d", "two", 0600 },
	{ "a/e", "", 0777 },
	{ "f", "four", 0444 },
};

static void put(char **at, const void *bytes, size_t len)
{
	memcpy(*at, bytes, len);
	*at += len;
}

static struct inputs made(uint32_t entry)
{
	static const char words[] = "x\0\0A=1\0PATH_=2\0HOME_=3";
	const struct inputs_head head = { INPUTS_MAGIC, 2, 3, 4, entry, 0 };
	struct inputs in;
	char *at = blob;

	put(&at, &head, sizeof(head));
	put(&at, words, sizeof(words));
	for (size_t i = 0; i < 4; i++) {
		const struct inputs_file file = { strlen(files[i].text),
			(uint32_t)strlen(files[i].path), files[i].mode };

		put(&at, &file, sizeof(file));
		put(&at, files[i].path, file.path_bytes + 1);
		put(&at, files[i].text, file.bytes);
	}
	assert_null(inputs_open(blob, (size_t)(at - blob), &in));
	return in;
}

static void clean(void)
{
	static const char *const names[] = { "a/b/c", "a/b/d", "a/e", "f", "main.py" };

	for (size_t i = 0; i < 5; i++)
		(void)unlink(names[i]);
	(void)rmdir("a/b");
	(void)rmdir("a");
}

static int write_all(uint32_t entry, struct fault *f)
{
	const struct inputs in = made(entry);
	int fd;

	clean();
	fd = open("main.py", O_WRONLY | O_CREAT | O_EXCL, 0644);
	assert_true(fd >= 0);
	(void)close(fd);
	return inputs_write(&in, "main.py", f);
}

static void files_are_written_with_their_directories_and_modes(void **state)
{
	struct fault f = { 0 };
	struct stat st;

	(void)state;
	assert_int_equal(write_all(0, &f), 0);
	for (size_t i = 0; i < 4; i++) {
		char got[16] = { 0 };
		int fd = open(files[i].path, O_RDONLY | O_NOFOLLOW);

		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_mode, S_IFREG | files[i].mode);
		assert_true(read(fd, got, sizeof(got) - 1) >= 0);
		assert_string_equal(got, files[i].text);
		(void)close(fd);
	}
	assert_int_equal(stat("a/b", &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	assert_int_equal(access("main.py", F_OK), 0);
}

static void the_codes_own_file_goes_where_a_file_is_the_program(void **state)
{
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(write_all(4, &f), 0);
	assert_int_equal(access("main.py", F_OK), -1);
}

static unsigned left; /* calls until the one that fails */

static int full_mkdirat(int dir_fd, const char *path, mode_t mode)
{
	return left-- == 0 ? -ENOSPC : real.mkdirat(dir_fd, path, mode);
}

static int full_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	return left-- == 0 ? -ENOSPC : real.openat(dir_fd, path, flags, mode);
}

static ssize_t full_write(int fd, const void *bytes, size_t len)
{
	return left-- == 0 ? -ENOSPC : real.write(fd, bytes, len);
}

static void expect_refusal(unsigned good, const char *text)
{
	struct fault f = { 0 };

	left = good;
	/* Nothing that the supervisor would take for a shortage, and ask to try again. */
	assert_int_equal(write_all(0, &f), -EFBIG);
	assert_string_equal(f.text, text);
	sys = real;
}

static void a_full_workspace_is_told_with_the_file_that_did_not_fit(void **state)
{
	(void)state;
	sys.mkdirat = full_mkdirat;
	expect_refusal(1, "files[0], a/b/c: No space left on device");
	sys.openat = full_openat;
	expect_refusal(1, "files[1], a/b/d: No space left on device");
	sys.openat = full_openat;
	expect_refusal(3, "files[3], f: No space left on device");
	sys.write = full_write;
	expect_refusal(2, "files[3], f: No space left on device");
}

/* Half of it goes, then the rest. */
static ssize_t short_write(int fd, const void *bytes, size_t len)
{
	return real.write(fd, bytes, (len + 1) / 2);
}

static void what_is_written_in_pieces_is_written_whole(void **state)
{
	struct fault f = { 0 };
	struct stat st;

	(void)state;
	sys.write = short_write;
	assert_int_equal(write_all(0, &f), 0);
	sys = real;
	assert_int_equal(stat("f", &st), 0);
	assert_int_equal(st.st_size, 4);
}

static void a_cold_start_gets_what_the_runtime_says_and_the_inputs(void **state)
{
	static struct inputs_words w;
	struct runtime rt = {
		.main_file = "main.py",
		.argv = { "/usr/bin/python3", "-u", "main.py" },
		.env = { "PATH=/bin", "A=0", "AB=0" },
	};
	struct inputs in = made(4);

	(void)state;
	inputs_words(&rt, &in, false, &w);
	assert_string_equal(w.argv[1], "-u");
	assert_string_equal(w.argv[2], "f");
	assert_string_equal(w.argv[3], "x");
	assert_string_equal(w.argv[4], "");
	assert_null(w.argv[5]);
	assert_string_equal(w.envp[0], "PATH=/bin");
	assert_string_equal(w.envp[1], "A=1"); /* in the place of the runtime's own */
	assert_string_equal(w.envp[2], "AB=0");
	assert_string_equal(w.envp[3], "PATH_=2");
	assert_string_equal(w.envp[4], "HOME_=3");
	assert_null(w.envp[5]);
	inputs_words(&rt, NULL, false, &w);
	assert_string_equal(w.argv[2], "main.py");
	assert_null(w.argv[3]);
	assert_string_equal(w.envp[1], "A=0");
	assert_null(w.envp[3]);
}

static int set_up(void **state)
{
	(void)state;
	real = sys;
	(void)umask(022);
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	clean();
	return chdir("/") == 0 ? rmdir(folder) : -1;
}

/* An ELF file with two parts, the second of which names a loader, if there is one. */
static bool is_loadable(const char *loader, const char *magic, uint64_t parts_at)
{
	int fd = memfd_create("program", MFD_CLOEXEC);
	const ElfW(Ehdr) head = { .e_phentsize = sizeof(ElfW(Phdr)),
		.e_phnum = 2,
		.e_phoff = parts_at ? parts_at : sizeof(head) };
	const ElfW(Phdr) parts[2] = { { .p_type = PT_LOAD },
		{ .p_type = loader ? PT_INTERP : PT_NOTE,
			.p_offset = sizeof(head) + sizeof(parts),
			.p_filesz = loader ? strlen(loader) + 1 : 0 } };
	char path[32];
	bool loadable;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, &head, sizeof(head)), sizeof(head));
	assert_int_equal(pwrite(fd, magic, strlen(magic), 0), strlen(magic));
	assert_int_equal(write(fd, parts, sizeof(parts)), sizeof(parts));
	if (loader)
		assert_int_equal(write(fd, loader, strlen(loader) + 1), strlen(loader) + 1);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	loadable = cold_is_loadable(path) == 1;
	(void)close(fd);
	return loadable;
}

static void the_library_goes_into_what_glibcs_loader_starts_alone(void **state)
{
	static const char glibc[] = "/lib64/ld-linux-x86-64.so.2";
	char longer[200];

	(void)state;
	memset(longer, 'x', sizeof(longer));
	memcpy(longer, glibc, sizeof(glibc) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_true(is_loadable(glibc, ELFMAG, 0));
	assert_true(is_loadable("/lib/ld-linux-aarch64.so.1", ELFMAG, 0));
	assert_false(is_loadable("/lib/ld-musl-x86_64.so.1", ELFMAG, 0));
	assert_false(is_loadable(NULL, ELFMAG, 0)); /* static */
	assert_false(is_loadable(glibc, "#!/bin/sh\n", 0));
	assert_false(is_loadable(longer, ELFMAG, 0));
	assert_false(is_loadable(glibc, ELFMAG, 100000));
	assert_false(is_loadable(glibc, ELFMAG, UINT64_MAX));
	assert_int_equal(cold_is_loadable("/none"), 0);
	assert_int_equal(cold_is_loadable("/dev/null"), 0);
	assert_int_equal(cold_is_loadable("/proc/self/exe"), 1);
}

static void what_could_not_be_looked_at_is_not_said_to_be_something_else(void **state)
{
	unsigned n = 0;

	(void)state;
	for (;; n++) {
		int r;

		flaky_arm(n, EIO);
		r = cold_is_loadable("/proc/self/exe");
		if (!flaky_disarm())
			break;
		assert_int_equal(r, strcmp(flaky_name(), "close") == 0 ? 1 : -EIO);
	}
	assert_true(n > 4);
	flaky_arm(0, EACCES); /* it may be executed all the same */
	assert_int_equal(cold_is_loadable("/proc/self/exe"), 0);
	assert_true(flaky_disarm());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_library_goes_into_what_glibcs_loader_starts_alone),
		cmocka_unit_test(what_could_not_be_looked_at_is_not_said_to_be_something_else),
		cmocka_unit_test(files_are_written_with_their_directories_and_modes),
		cmocka_unit_test(the_codes_own_file_goes_where_a_file_is_the_program),
		cmocka_unit_test(a_full_workspace_is_told_with_the_file_that_did_not_fit),
		cmocka_unit_test(what_is_written_in_pieces_is_written_whole),
		cmocka_unit_test(a_cold_start_gets_what_the_runtime_says_and_the_inputs),
	};

	return cmocka_run_group_tests_name("enter_inputs", tests, set_up, tear_down);
}
