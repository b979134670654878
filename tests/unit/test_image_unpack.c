/* The tar that comes of an archive, and who reads it: a program that stops where the tar ends. */
#include "unit.h"

#include "base/check.h"
#include "base/fault.h"
#include "edge/image/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCK 512
#define LARGE (256u << 10) /* more than a pipe holds */

static int archive_fd, pipe_fds[2];

static void put(struct archive *a, const char *name, size_t bytes)
{
	static const char zeros[BLOCK] = "#!";
	struct archive_entry *e = archive_entry_new();

	archive_entry_set_pathname(e, name);
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_perm(e, 0755);
	archive_entry_set_size(e, (la_int64_t)bytes);
	assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
	for (size_t n = 0; n < bytes; n += BLOCK)
		assert_true(archive_write_data(a, zeros, BLOCK) == BLOCK);
	archive_entry_free(e);
}

static int begin(void **state)
{
	struct archive *a = archive_write_new();

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN); /* as the imager does */
	archive_fd = memfd_create("archive", MFD_CLOEXEC);
	assert_int_equal(archive_write_set_format_gnutar(a), ARCHIVE_OK);
	assert_int_equal(archive_write_open_fd(a, archive_fd), ARCHIVE_OK);
	put(a, "bin/sh", LARGE);
	assert_int_equal(archive_write_free(a), ARCHIVE_OK);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	/* What fills the last block up never fits into it. */
	assert_true(fcntl(pipe_fds[1], F_SETPIPE_SZ, 4096) >= 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	(void)close(archive_fd);
	(void)close(pipe_fds[1]);
	return 0;
}

/* As mksquashfs: until the first block that is empty. `whole`: that far; else only a little. */
static void *read_some(void *whole)
{
	char block[BLOCK] = "x";
	const char empty[BLOCK] = "";

	for (size_t n = 0; memcmp(block, empty, BLOCK) != 0 && (whole || n < 4); n++)
		for (size_t at = 0; at < BLOCK;) {
			ssize_t got = read(pipe_fds[0], block + at, BLOCK - at);

			CHECK(got > 0);
			at += (size_t)got;
		}
	(void)close(pipe_fds[0]);
	return NULL;
}

static void on_progress(void *ctx, const struct msg_unpacking *now)
{
	(void)ctx;
	(void)now;
}

static int on_listed(void *ctx, const char *text, size_t len)
{
	(void)text;
	*(bool *)ctx = len > 0;
	return 0;
}

static int unpack(bool whole, bool *ret_listed, struct fault *f)
{
	const struct msg_unpack ask = {
		.source = IMAGE_SOURCE_ROOT, .bytes_max = 4 * LARGE, .entries_max = 10
	};
	const struct unpack u = { .in_fd = archive_fd,
		.out_fd = pipe_fds[1],
		.ask = &ask,
		.progress = on_progress,
		.listed = on_listed,
		.ctx = ret_listed };
	static struct msg_unpacked done;
	pthread_t reader;
	int r;

	*ret_listed = false;
	assert_int_equal(pthread_create(&reader, NULL, read_some, whole ? &reader : NULL), 0);
	r = unpack_run(&u, &done, f);
	assert_int_equal(pthread_join(reader, NULL), 0);
	return r;
}

static void who_reads_it_may_go_when_it_has_all_of_the_tar(void **state)
{
	struct fault f = { 0 };
	bool listed;

	(void)state;
	assert_int_equal(unpack(true, &listed, &f), 0);
	assert_true(listed);
}

static void who_goes_before_that_is_told_of(void **state)
{
	struct fault f = { 0 };
	bool listed;

	(void)state;
	assert_int_equal(unpack(false, &listed, &f), -EPIPE);
	assert_non_null(strstr(f.text, "write: "));
	assert_false(listed);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(who_reads_it_may_go_when_it_has_all_of_the_tar),
		CASE(who_goes_before_that_is_told_of),
	};

	return cmocka_run_group_tests_name("image_unpack", tests, NULL, NULL);
}
