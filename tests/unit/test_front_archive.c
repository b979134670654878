/* An archive of a run's files that is made as it is read, and what it costs whoever makes it. */
#include "unit.h"

#include "edge/front/archive.h"
#include "edge/front/shelf.h"

#include <archive.h>
#include <archive_entry.h>
#include <event2/event.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE    ((size_t)64 << 20)
#define CAPACITY (2 * LARGE)
#define ID       "00000000000000000000000000000001"

static struct event_base *base;
static struct shelf *shelf;
static size_t most_bytes; /* asked for at a time */

void *__real_realloc(void *old, size_t len);
void *__wrap_realloc(void *old, size_t len);

void *__wrap_realloc(void *old, size_t len)
{
	most_bytes = len > most_bytes ? len : most_bytes;
	return __real_realloc(old, len);
}

static int begin(void **state)
{
	(void)state;
	base = event_base_new();
	shelf = shelf_create(base, memfd_create("shelf", MFD_CLOEXEC), CAPACITY, 60000000);
	assert_non_null(shelf);
	most_bytes = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	shelf_destroy(shelf);
	event_base_free(base);
	return 0;
}

/* A run of one file: `len` bytes, of which the last is an x. */
static const struct stored *keep(size_t len)
{
	const struct artifacts_keeper *k = shelf_keeper(shelf);
	struct artifacts_list l = { .plan = { .keeper = k }, .count = 1 };
	char path[] = "a/b";
	struct artifact a = { .path = path, .path_len = 3, .size = len, .kept = true };
	bool gone;

	assert_int_equal(k->begin(k->ctx, len, &a.place), 0);
	assert_int_equal(k->bytes(k->ctx, a.place, len - 1, "x", 1), 0);
	l.files = &a;
	assert_int_equal(shelf_put(shelf, ID, &l), 0);
	return shelf_visit(shelf, ID, &gone);
}

static void what_is_kept_comes_out_again(void **state)
{
	const struct stored *run = keep(100000);
	struct archive_stream *a = archive_stream_create(shelf, run);
	static char tar[200000], bytes[100001];
	struct archive *r = archive_read_new();
	struct archive_entry *e;
	size_t len = 0;
	ssize_t n;

	(void)state;
	assert_non_null(a);
	while ((n = archive_stream_read(a, tar + len, 7777)) > 0)
		len += (size_t)n;
	assert_int_equal(n, 0);
	archive_stream_destroy(a);
	assert_int_equal(archive_read_support_format_tar(r), ARCHIVE_OK);
	assert_int_equal(archive_read_open_memory(r, tar, len), ARCHIVE_OK);
	assert_int_equal(archive_read_next_header(r, &e), ARCHIVE_OK);
	assert_string_equal(archive_entry_pathname(e), "a/b");
	assert_int_equal(archive_read_data(r, bytes, sizeof(bytes)), 100000);
	assert_int_equal(bytes[99999], 'x');
	assert_int_equal(archive_read_next_header(r, &e), ARCHIVE_EOF);
	assert_int_equal(archive_read_free(r), ARCHIVE_OK);
	shelf_leave(shelf, run);
}

/* libarchive finishes what it has begun: that is made for nobody. */
static void who_leaves_in_the_middle_of_a_file_costs_no_more_than_who_reads(void **state)
{
	const struct stored *run = keep(LARGE);
	struct archive_stream *a = archive_stream_create(shelf, run);
	char bytes[4096];

	(void)state;
	assert_non_null(a);
	for (unsigned i = 0; i < 100; i++)
		assert_true(archive_stream_read(a, bytes, sizeof(bytes)) > 0);
	archive_stream_destroy(a);
	assert_true(most_bytes > 0);
	assert_true(most_bytes < (size_t)1 << 20);
	shelf_leave(shelf, run);
}

/* Thousands of them may be slow at once. */
static void a_reader_who_waits_costs_a_few_kilobytes(void **state)
{
	const struct stored *run = keep(LARGE);
	size_t before = mallinfo2().uordblks;
	struct archive_stream *a = archive_stream_create(shelf, run);
	static char bytes[65536];

	(void)state;
	assert_non_null(a);
	for (unsigned i = 0; i < 10; i++)
		assert_true(archive_stream_read(a, bytes, sizeof(bytes)) > 0);
	assert_true(mallinfo2().uordblks - before < 16384);
	archive_stream_destroy(a);
	shelf_leave(shelf, run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_kept_comes_out_again, begin, end),
		cmocka_unit_test_setup_teardown(
			who_leaves_in_the_middle_of_a_file_costs_no_more_than_who_reads, begin,
			end),
		cmocka_unit_test_setup_teardown(
			a_reader_who_waits_costs_a_few_kilobytes, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
