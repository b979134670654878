/* What is kept of runs: the ring, and who may still read what. */
#include "unit.h"

#include "edge/front/shelf.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CAPACITY 1000
#define KEEP_US  UINT64_C(60000000)

static struct event_base *base;
static struct shelf *shelf;
static int file_fd;

static int begin(void **state)
{
	(void)state;
	base = event_base_new();
	file_fd = memfd_create("shelf", MFD_CLOEXEC);
	assert_true(file_fd >= 0);
	shelf = shelf_create(base, dup(file_fd), CAPACITY, KEEP_US);
	assert_non_null(shelf);
	return 0;
}

static int end(void **state)
{
	(void)state;
	shelf_destroy(shelf);
	event_base_free(base);
	(void)close(file_fd);
	return 0;
}

/* One file of `size` bytes with `fill` in it, as a run of that id. -ENOSPC: no room. */
static int keep(const char *id, size_t size, char fill)
{
	const struct artifacts_keeper *k = shelf_keeper(shelf);
	struct artifacts_list l = { .plan = { .keeper = k } };
	char path[] = "a", *bytes = malloc(size + 1);
	struct artifact a = { .path = path, .path_len = 1, .size = size, .kept = true };
	int r = k->begin(k->ctx, size, &a.place);

	assert_non_null(bytes);
	memset(bytes, fill, size);
	l.files = &a;
	l.count = 1;
	if (r == 0 && size > 0)
		r = k->bytes(k->ctx, a.place, 0, bytes, size);
	if (r == 0)
		assert_int_equal(shelf_put(shelf, id, &l), 0);
	free(bytes);
	return r;
}

static const char *id_of(unsigned n)
{
	static char id[33];

	(void)snprintf(id, sizeof(id), "%032u", n);
	return id;
}

/* Everything is there, byte by byte. */
static void expect(const char *id, size_t size, char fill)
{
	bool gone;
	const struct stored *run = shelf_visit(shelf, id, &gone);
	const struct stored_file *f;
	char bytes[CAPACITY];

	assert_non_null(run);
	f = stored_find(run, "a", 1);
	assert_non_null(f);
	assert_null(stored_find(run, "b", 1));
	assert_int_equal(f->size, size);
	for (size_t at = 0; at < size;) {
		ssize_t n = shelf_read(shelf, f, at, bytes, 7);

		assert_true(n > 0);
		for (ssize_t i = 0; i < n; i++)
			assert_int_equal(bytes[i], fill);
		at += (size_t)n;
	}
	assert_int_equal(shelf_read(shelf, f, size, bytes, 7), 0);
	shelf_leave(shelf, run);
}

static uint64_t on_disk(void)
{
	struct stat st;

	assert_int_equal(fstat(file_fd, &st), 0);
	return (uint64_t)st.st_size;
}

static void what_is_kept_is_read_back(void **state)
{
	bool gone;

	(void)state;
	assert_int_equal(keep(id_of(1), 300, 'x'), 0);
	assert_int_equal(keep(id_of(2), 0, 'y'), 0);
	assert_int_equal(keep(id_of(3), 600, 'z'), 0);
	expect(id_of(1), 300, 'x');
	expect(id_of(2), 0, 'y');
	expect(id_of(3), 600, 'z');
	assert_null(shelf_visit(shelf, id_of(4), &gone));
	assert_false(gone);
}

static void it_never_grows_above_its_capacity(void **state)
{
	(void)state;
	assert_int_equal(keep(id_of(1), CAPACITY + 1, 'x'), -ENOSPC);
	assert_int_equal(keep(id_of(1), 400, 'x'), 0);
	assert_int_equal(keep(id_of(2), 400, 'y'), 0);
	assert_int_equal(keep(id_of(3), 201, 'z'), -ENOSPC);
	assert_int_equal(keep(id_of(3), 200, 'z'), 0);
	assert_int_equal(keep(id_of(4), 1, 'z'), -ENOSPC);
	expect(id_of(1), 400, 'x');
	expect(id_of(3), 200, 'z');
	assert_int_equal(on_disk(), CAPACITY);
}

/* Places are given back in another order than they were taken in. */
static void room_comes_round_and_nothing_is_overwritten(void **state)
{
	const struct artifacts_keeper *k = shelf_keeper(shelf);
	void *a, *b, *c, *d;

	(void)state;
	assert_int_equal(k->begin(k->ctx, 400, &a), 0);
	assert_int_equal(k->begin(k->ctx, 300, &b), 0);
	assert_int_equal(k->begin(k->ctx, 200, &c), 0);
	k->drop(k->ctx, b); /* in the middle: no room yet */
	assert_int_equal(k->begin(k->ctx, 300, &d), -ENOSPC);
	k->drop(k->ctx, a); /* now both are */
	assert_int_equal(keep(id_of(1), 700, 'x'), 0);
	assert_int_equal(k->begin(k->ctx, 1, &d), -ENOSPC);
	expect(id_of(1), 700, 'x');
	k->drop(k->ctx, c);
	/* Behind the ring's newest, up to its oldest, is all that there is. */
	assert_int_equal(k->begin(k->ctx, 301, &d), -ENOSPC);
	assert_int_equal(k->begin(k->ctx, 300, &d), 0);
	expect(id_of(1), 700, 'x');
	k->drop(k->ctx, d);
}

static void an_empty_store_takes_no_disk(void **state)
{
	const struct artifacts_keeper *k = shelf_keeper(shelf);
	void *a;

	(void)state;
	assert_int_equal(k->begin(k->ctx, 500, &a), 0);
	assert_int_equal(k->bytes(k->ctx, a, 400, "x", 1), 0);
	assert_int_equal(on_disk(), 401);
	k->drop(k->ctx, a);
	assert_int_equal(on_disk(), 0);
}

/* A run of `size` bytes, read by somebody, whose time is over. */
static const struct stored *outstay(size_t size)
{
	const struct stored *run, *other;
	bool gone;

	shelf_destroy(shelf);
	shelf = shelf_create(base, dup(file_fd), CAPACITY, 50000);
	assert_int_equal(keep(id_of(1), size, 'x'), 0);
	run = shelf_visit(shelf, id_of(1), &gone);
	assert_non_null(run);
	while ((other = shelf_visit(shelf, id_of(1), &gone)))
		shelf_leave(shelf, other);
	assert_true(gone);
	return run;
}

static void whoever_reads_keeps_it_while_nobody_wants_its_room(void **state)
{
	const struct stored *run = outstay(700);
	char byte = 0;

	(void)state;
	assert_int_equal(keep(id_of(2), 300, 'y'), 0);
	assert_int_equal(keep(id_of(3), CAPACITY + 1, 'z'), -ENOSPC); /* it would have none */
	assert_int_equal(shelf_read(shelf, run->files, 699, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	shelf_leave(shelf, run);
	assert_int_equal(keep(id_of(3), 700, 'z'), 0);
	expect(id_of(2), 300, 'y');
}

static void a_slow_reader_keeps_no_room_from_others_beyond_its_time(void **state)
{
	const struct stored *run = outstay(900);
	char byte = 0;

	(void)state;
	assert_int_equal(keep(id_of(2), 600, 'y'), 0);
	assert_int_equal(shelf_read(shelf, run->files, 0, &byte, 1), -ESTALE);
	expect(id_of(2), 600, 'y');
	shelf_leave(shelf, run);
	expect(id_of(2), 600, 'y');
	assert_int_equal(keep(id_of(3), 400, 'z'), 0);
}

/* ...nor within it: that is what was promised. */
static void what_has_time_left_is_not_taken_back(void **state)
{
	const struct stored *run;
	char byte = 0;
	bool gone;

	(void)state;
	assert_int_equal(keep(id_of(1), 900, 'x'), 0);
	run = shelf_visit(shelf, id_of(1), &gone);
	assert_int_equal(keep(id_of(2), 600, 'y'), -ENOSPC);
	assert_int_equal(shelf_read(shelf, run->files, 0, &byte, 1), 1);
	shelf_leave(shelf, run);
}

/* ...or the index would grow with runs that its limit is not asked about. */
static void a_run_of_which_nothing_is_kept_is_none(void **state)
{
	char path[] = "a";
	struct artifact a = { .path = path, .path_len = 1, .size = 1 };
	struct artifacts_list l = { .files = &a, .count = 1 };
	bool gone;

	(void)state;
	assert_int_equal(shelf_put(shelf, id_of(1), &l), 0);
	assert_null(shelf_visit(shelf, id_of(1), &gone));
	assert_false(gone);
}

static void what_an_index_that_is_full_does_not_take_is_still_its_lists(void **state)
{
	const struct artifacts_keeper *k;
	static char path[4096];
	struct artifact a = { .path = path, .path_len = sizeof(path) - 1, .kept = true };
	struct artifacts_list l = { .files = &a, .count = 1 };
	unsigned n = 0;
	bool gone;
	int r;

	(void)state;
	shelf_destroy(shelf);
	shelf = shelf_create(base, dup(file_fd), 1 << 15, KEEP_US);
	k = shelf_keeper(shelf);
	memset(path, 'a', sizeof(path) - 1);
	do {
		assert_int_equal(k->begin(k->ctx, 0, &a.place), 0);
		r = shelf_put(shelf, id_of(n++), &l);
	} while (r == 0);
	assert_int_equal(r, -ENOMEM);
	assert_in_range(n, SHELF_INDEX_MAX / 2 / sizeof(path), SHELF_INDEX_MAX / sizeof(path) + 1);
	assert_null(shelf_visit(shelf, id_of(n - 1), &gone));
	assert_non_null(a.place);
	k->drop(k->ctx, a.place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_kept_is_read_back, begin, end),
		cmocka_unit_test_setup_teardown(it_never_grows_above_its_capacity, begin, end),
		cmocka_unit_test_setup_teardown(
			room_comes_round_and_nothing_is_overwritten, begin, end),
		cmocka_unit_test_setup_teardown(an_empty_store_takes_no_disk, begin, end),
		cmocka_unit_test_setup_teardown(
			whoever_reads_keeps_it_while_nobody_wants_its_room, begin, end),
		cmocka_unit_test_setup_teardown(
			a_slow_reader_keeps_no_room_from_others_beyond_its_time, begin, end),
		cmocka_unit_test_setup_teardown(what_has_time_left_is_not_taken_back, begin, end),
		cmocka_unit_test_setup_teardown(a_run_of_which_nothing_is_kept_is_none, begin, end),
		cmocka_unit_test_setup_teardown(
			what_an_index_that_is_full_does_not_take_is_still_its_lists, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
