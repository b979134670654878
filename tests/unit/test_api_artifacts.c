/* The list of what has come back of a run: what a stream can make of it, and who owns what. */
#include "unit.h"

#include "api/artifacts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct artifacts_list list;
static unsigned places; /* that the keeper has given and not got back */

static int keep(void *ctx, uint64_t size, void **ret_place)
{
	(void)size;
	*ret_place = ctx;
	places++;
	return 0;
}

static int keep_bytes(void *ctx, void *place, uint64_t at, const void *bytes, size_t len)
{
	(void)ctx;
	(void)place;
	(void)at;
	(void)bytes;
	(void)len;
	return 0;
}

static void forget(void *ctx, void *place)
{
	assert_ptr_equal(place, ctx);
	places--;
}

static const struct artifacts_keeper keeper = { keep, keep_bytes, forget, &places };

static void start(enum artifacts mode, uint64_t inline_bytes)
{
	const struct artifacts_plan plan = { .mode = mode,
		.caps = { .count = 4, .file_bytes = 100, .total_bytes = 300 },
		.inline_bytes = inline_bytes,
		.keeper = &keeper };

	places = 0;
	artifacts_init(&list, &plan);
}

static int feed(struct files_record r, const char *tail)
{
	const char *rule;
	int e;

	r.path_bytes = r.type == FILES_FILE || r.type == FILES_SKIP ? (uint16_t)strlen(tail) : 0;
	r.bytes = r.type == FILES_BYTES ? (uint32_t)strlen(tail) : 0;
	e = artifacts_feed(&list, &r, sizeof(r), &rule);
	return e < 0 ? e : artifacts_feed(&list, tail, strlen(tail), &rule);
}

static void feed_file(const char *path, const char *content)
{
	assert_int_equal(
		feed((struct files_record){ .type = FILES_FILE, .size = strlen(content) }, path),
		0);
	assert_int_equal(feed((struct files_record){ .type = FILES_BYTES }, content), 0);
	assert_int_equal(feed((struct files_record){ .type = FILES_CLOSE }, ""), 0);
}

/* What the collector counts for each of them is counted here as well: a list of very short names is
 * not a very long one. */
static void a_stream_names_no_more_than_a_collector_would(void **state)
{
	const struct files_record skip = { .type = FILES_SKIP, .reason = FILES_SYMLINK };
	const size_t most = FILES_SKIPPED_MAX / (5 + FILES_SKIP_FRAME);
	char path[6];
	int r = 0;

	(void)state;
	start(ARTIFACTS_LIST, 0);
	for (unsigned i = 0; r == 0 && i < FILES_SKIPPED_MAX; i++) {
		(void)snprintf(path, sizeof(path), "%05x", i);
		r = feed(skip, path);
	}
	assert_int_equal(r, -EPROTO);
	assert_int_equal(list.skipped_count, most);
	artifacts_free(&list);
}

static void what_is_not_kept_after_all_is_left_out_unless_its_content_is_there(void **state)
{
	(void)state;
	start(ARTIFACTS_INLINE, 3);
	feed_file("a", "abc");
	feed_file("b", "defg");
	assert_int_equal(feed((struct files_record){ .type = FILES_END }, ""), 0);
	assert_int_equal(list.count, 2);
	assert_int_equal(places, 2);
	artifacts_unkeep(&list);
	assert_int_equal(places, 0);
	assert_int_equal(list.count, 1);
	assert_string_equal(list.files[0].path, "a");
	assert_int_equal(list.skipped_count, 1);
	assert_string_equal(list.skipped[0].path, "b");
	assert_int_equal(list.skipped[0].why, FILES_NO_ROOM);
	assert_true(list.complete);
	artifacts_free(&list);
}

static void a_stream_that_breaks_off_leaves_what_was_whole(void **state)
{
	(void)state;
	start(ARTIFACTS_LIST, 0);
	feed_file("a", "abc");
	assert_int_equal(feed((struct files_record){ .type = FILES_FILE, .size = 9 }, "b"), 0);
	assert_int_equal(feed((struct files_record){ .type = FILES_BYTES }, "de"), 0);
	artifacts_end(&list);
	assert_false(list.complete);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.skipped_count, 1);
	assert_int_equal(list.skipped[0].why, FILES_FAILED);
	assert_int_equal(places, 1);
	artifacts_free(&list);
	assert_int_equal(places, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_names_no_more_than_a_collector_would),
		cmocka_unit_test(
			what_is_not_kept_after_all_is_left_out_unless_its_content_is_there),
		cmocka_unit_test(a_stream_that_breaks_off_leaves_what_was_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
