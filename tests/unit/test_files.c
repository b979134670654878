/* The stream of a run's files: what its reader takes, and that it takes nothing else. */
#include "unit.h"

#include "base/check.h"
#include "wire/files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static char stream[4 * FILES_CHUNK], told[1024];
static size_t stream_len;
static struct files_reader reader;

static int on_file(void *ctx, const char *path, size_t len, uint64_t size)
{
	(void)ctx;
	assert_int_equal(strlen(path), len);
	(void)snprintf(told + strlen(told), sizeof(told) - strlen(told), "F %s %lu;", path,
		(unsigned long)size);
	return 0;
}

static int on_bytes(void *ctx, const void *bytes, size_t len)
{
	(void)ctx;
	(void)snprintf(told + strlen(told), sizeof(told) - strlen(told), "%.*s", (int)len,
		(const char *)bytes);
	return 0;
}

static int on_close(void *ctx, enum files_reason why)
{
	(void)ctx;
	(void)snprintf(told + strlen(told), sizeof(told) - strlen(told), ";C %u;", why);
	return 0;
}

static int on_skip(void *ctx, const char *path, size_t len, uint64_t size, enum files_reason why)
{
	(void)ctx;
	(void)len;
	(void)snprintf(told + strlen(told), sizeof(told) - strlen(told), "S %s %lu %s;", path,
		(unsigned long)size, files_reason_word(why));
	return 0;
}

static int on_end(void *ctx, uint64_t more)
{
	(void)ctx;
	(void)snprintf(
		told + strlen(told), sizeof(told) - strlen(told), "E %lu;", (unsigned long)more);
	return 0;
}

static const struct files_calls calls = { on_file, on_bytes, on_close, on_skip, on_end };

static int begin(void **state)
{
	(void)state;
	stream_len = 0;
	told[0] = '\0';
	files_reader_init(&reader, &calls, NULL);
	return 0;
}

static void put(struct files_record r, const char *tail, size_t len)
{
	memcpy(stream + stream_len, &r, sizeof(r));
	memcpy(stream + stream_len + sizeof(r), tail, len);
	stream_len += sizeof(r) + len;
}

static void put_file(const char *path, uint64_t size)
{
	put(
		(struct files_record){
			.type = FILES_FILE, .path_bytes = (uint16_t)strlen(path), .size = size },
		path, strlen(path));
}

static void put_bytes(const char *bytes)
{
	put((struct files_record){ .type = FILES_BYTES, .bytes = (uint32_t)strlen(bytes) }, bytes,
		strlen(bytes));
}

static void put_close(enum files_reason why)
{
	put((struct files_record){ .type = FILES_CLOSE, .reason = (uint8_t)why }, "", 0);
}

static void put_skip(const char *path, enum files_reason why)
{
	put((struct files_record){ .type = FILES_SKIP,
		    .reason = (uint8_t)why,
		    .path_bytes = (uint16_t)strlen(path),
		    .size = 7 },
		path, strlen(path));
}

static void put_end(uint64_t more)
{
	put((struct files_record){ .type = FILES_END, .size = more }, "", 0);
}

static int read_stream(const char **ret_rule)
{
	return files_read(&reader, stream, stream_len, ret_rule);
}

static void refused(const char *why)
{
	const char *rule;

	assert_int_equal(read_stream(&rule), -EPROTO);
	assert_string_equal(rule, why);
	/* And whatever comes then. */
	assert_int_equal(files_read(&reader, "x", 1, &rule), -EPROTO);
}

static void fill(void)
{
	put_file("a", 5);
	put_bytes("he");
	put_bytes("llo");
	put_close(FILES_WHOLE);
	put_skip("a.link", FILES_SYMLINK);
	put_file("b/c", 0);
	put_close(FILES_WHOLE);
	put_file("b/d", 9);
	put_bytes("part");
	put_close(FILES_CHANGED);
	put_end(3);
}

static const char all_told[] =
	"F a 5;hello;C 0;S a.link 7 symlink;F b/c 0;;C 0;F b/d 9;part;C 13;E 3;";

static void a_stream_is_told_in_order(void **state)
{
	const char *rule;

	(void)state;
	fill();
	assert_int_equal(read_stream(&rule), 0);
	assert_true(reader.done);
	assert_string_equal(told, all_told);
}

static void it_may_come_in_any_pieces(void **state)
{
	const char *rule;

	(void)state;
	fill();
	for (size_t piece = 1; piece < 40; piece++) {
		told[0] = '\0';
		files_reader_init(&reader, &calls, NULL);
		for (size_t at = 0; at < stream_len; at += piece)
			assert_int_equal(
				files_read(&reader, stream + at,
					piece < stream_len - at ? piece : stream_len - at, &rule),
				0);
		assert_string_equal(told, all_told);
	}
}

static void a_path_leads_nowhere_but_below_the_workspace(void **state)
{
	static const char *const bad[] = { "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b",
		"a/../b" };
	char path[FILES_PATH_MAX + 2];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_non_null(files_path_fault(bad[i], strlen(bad[i])));
	assert_non_null(files_path_fault("", 0));
	assert_non_null(files_path_fault("a\0b", 3));
	memset(path, 'x', sizeof(path));
	assert_null(files_path_fault(path, 255));
	assert_non_null(files_path_fault(path, 256));
	for (size_t i = 100; i < sizeof(path); i += 100)
		path[i] = '/';
	assert_null(files_path_fault(path, FILES_PATH_MAX));
	assert_non_null(files_path_fault(path, FILES_PATH_MAX + 1));
	assert_null(files_path_fault("...", 3));
	assert_null(files_path_fault(".a/.b", 5));
	assert_null(files_path_fault("a/..b/\n\x1b\xff", 9));
	put_skip("a/../b", FILES_FIFO);
	refused("a path with a component \".\" or \"..\"");
}

static void paths_come_once_and_in_order(void **state)
{
	static const struct {
		const char *first, *second, *why;
	} cases[] = {
		{ "a", "a", "a path out of order" },
		{ "b", "a", "a path out of order" },
		{ "a!", "a/b", "a path out of order" },
		{ "a/b", "a", "a path out of order" },
		{ "a", "a/b", "a path below a file" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		(void)begin(NULL);
		put_skip(cases[i].first, FILES_FIFO);
		put_skip(cases[i].second, FILES_FIFO);
		refused(cases[i].why);
	}
	assert_true(files_path_compare("a/b", 3, "a!", 2) < 0);
	assert_true(files_path_compare("a", 1, "\xff", 1) < 0);
}

static void a_file_is_as_long_as_announced(void **state)
{
	(void)state;
	put_file("a", 3);
	put_bytes("four");
	refused("more bytes than announced");
	(void)begin(NULL);
	put_file("a", 3);
	put_bytes("to");
	put_close(FILES_WHOLE);
	refused("fewer bytes than announced");
}

static void records_come_where_they_belong(void **state)
{
	static const struct files_record bad[] = {
		{ .type = 0 },
		{ .type = FILES_END + 1 },
		{ .type = FILES_BYTES, .bytes = 1 },
		{ .type = FILES_CLOSE },
		{ .type = FILES_FILE },
		{ .type = FILES_SKIP, .path_bytes = 1 },
		{ .type = FILES_SKIP, .reason = FILES_REASON_MAX, .path_bytes = 1 },
		{ .type = FILES_SKIP, .reason = FILES_FIFO },
		{ .type = FILES_FILE, .reason = FILES_FIFO, .path_bytes = 1 },
		{ .type = FILES_FILE, .path_bytes = FILES_PATH_MAX + 1 },
		{ .type = FILES_FILE, .path_bytes = 1, .bytes = 1 },
		{ .type = FILES_END, .path_bytes = 1 },
		{ .type = FILES_END, .bytes = 1 },
		{ .type = FILES_END, .reason = FILES_FIFO },
	};
	static const struct files_record bad_in_file[] = {
		{ .type = FILES_FILE, .path_bytes = 1 },
		{ .type = FILES_SKIP, .reason = FILES_FIFO, .path_bytes = 1 },
		{ .type = FILES_END },
		{ .type = FILES_BYTES },
		{ .type = FILES_BYTES, .bytes = FILES_CHUNK + 1 },
		{ .type = FILES_BYTES, .bytes = 1, .size = 1 },
		{ .type = FILES_BYTES, .bytes = 1, .reason = FILES_FIFO },
		{ .type = FILES_CLOSE, .reason = FILES_FIFO, .size = 1 },
		{ .type = FILES_CLOSE, .reason = FILES_REASON_MAX },
	};
	const char *rule;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		(void)begin(NULL);
		put(bad[i], "x", 1);
		assert_int_equal(read_stream(&rule), -EPROTO);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad_in_file); i++) {
		(void)begin(NULL);
		put_file("a", UINT64_MAX);
		put(bad_in_file[i], "x", 1);
		assert_int_equal(read_stream(&rule), -EPROTO);
	}
	(void)begin(NULL);
	put_end(0);
	put_end(0);
	refused("bytes behind the end");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_stream_is_told_in_order, begin),
		cmocka_unit_test_setup(it_may_come_in_any_pieces, begin),
		cmocka_unit_test_setup(a_path_leads_nowhere_but_below_the_workspace, begin),
		cmocka_unit_test_setup(paths_come_once_and_in_order, begin),
		cmocka_unit_test_setup(a_file_is_as_long_as_announced, begin),
		cmocka_unit_test_setup(records_come_where_they_belong, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
