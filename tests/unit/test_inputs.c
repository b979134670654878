#include "unit.h"

#include "api/inputs.h"
#include "base/check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static struct inputs_plan_file file_of(const char *path, const char *bytes, bool base64)
{
	return (struct inputs_plan_file){
		.path = path,
		.path_len = strlen(path),
		.bytes = bytes,
		.len = strlen(bytes),
		.size = base64 ? 2 : strlen(bytes),
		.mode = 0640,
		.base64 = base64,
	};
}

static void what_is_built_is_read_back(void **state)
{
	struct inputs_plan_file files[] = { file_of("a/b", "text", false),
		file_of("c", "QUI=", true), file_of("d", "", false) };
	struct inputs_plan p = {
		.args = { "one", "", "three" },
		.env = { { "A", "1=2" }, { "B", "" }, { "C=whole", NULL } },
		.files = files,
		.arg_count = 3,
		.env_count = 3,
		.file_count = 3,
		.entry = 2,
	};
	struct inputs_item item;
	struct inputs in;
	const char *at;
	char *blob;
	size_t len;

	(void)state;
	assert_int_equal(inputs_plan_build(&p, &blob, &len), 0);
	assert_null(inputs_open(blob, len, &in));
	assert_string_equal(in.entry, "c");
	at = in.args;
	assert_string_equal(at, "one");
	assert_string_equal(at = inputs_next(at), "");
	assert_string_equal(at = inputs_next(at), "three");
	at = in.env;
	assert_string_equal(at, "A=1=2");
	assert_string_equal(at = inputs_next(at), "B=");
	assert_string_equal(inputs_next(at), "C=whole");
	at = in.files;
	for (unsigned i = 0; i < 3; i++) {
		inputs_take(&at, &item);
		assert_string_equal(item.path, files[i].path);
		assert_int_equal(item.mode, 0640);
		assert_int_equal(item.len, files[i].size);
		assert_memory_equal(item.bytes, i == 0 ? "text" : "AB", item.len);
	}
	free(blob);
}

static void without_inputs_there_is_no_blob(void **state)
{
	struct inputs_plan p = { .arg_count = 0 };
	size_t len = 1;
	char *blob;

	(void)state;
	assert_int_equal(inputs_plan_build(&p, &blob, &len), 0);
	assert_null(blob);
	assert_int_equal(len, 0);
}

/* Cut anywhere, or with anything behind it. */
static void only_a_blob_that_says_so_has_files(void **state)
{
	struct inputs_plan_file file = file_of("a", "text", false);
	struct inputs_plan p = {
		.files = &file, .file_count = 1, .args = { "one" }, .arg_count = 1
	};
	char *blob;
	size_t len;

	(void)state;
	assert_int_equal(inputs_plan_build(&p, &blob, &len), 0);
	assert_true(inputs_have_files(blob, len));
	assert_false(inputs_have_files(blob, sizeof(struct inputs_head) - 1));
	free(blob);
	p.file_count = 0;
	assert_int_equal(inputs_plan_build(&p, &blob, &len), 0);
	assert_false(inputs_have_files(blob, len));
	free(blob);
	assert_false(inputs_have_files(NULL, 0));
}

static void a_blob_of_another_length_is_refused(void **state)
{
	struct inputs_plan_file files[] = { file_of("a/b", "text", false) };
	struct inputs_plan p = {
		.args = { "one" },
		.env = { { "A", "1" } },
		.files = files,
		.arg_count = 1,
		.env_count = 1,
		.file_count = 1,
	};
	struct inputs in;
	char *blob, *longer;
	size_t len;

	(void)state;
	assert_int_equal(inputs_plan_build(&p, &blob, &len), 0);
	for (size_t cut = 0; cut < len; cut++) {
		char *piece = malloc(cut ? cut : 1); /* of that length for the sanitizer */

		assert_non_null(piece);
		memcpy(piece, blob, cut);
		assert_non_null(inputs_open(piece, cut, &in));
		free(piece);
	}
	longer = calloc(1, len + 1);
	assert_non_null(longer);
	memcpy(longer, blob, len);
	assert_non_null(inputs_open(longer, len + 1, &in));
	free(longer);
	free(blob);
}

static const char *open_with(size_t offset, uint32_t value)
{
	struct inputs_plan_file files[] = { file_of("a", "text", false) };
	struct inputs_plan p = { .files = files, .file_count = 1 };
	struct inputs in;
	const char *rule;
	char *blob;
	size_t len;

	assert_int_equal(inputs_plan_build(&p, &blob, &len), 0);
	memcpy(blob + offset, &value, sizeof(value));
	rule = inputs_open(blob, len, &in);
	free(blob);
	return rule;
}

static void numbers_that_cannot_be_are_refused(void **state)
{
	const size_t file = sizeof(struct inputs_head);

	(void)state;
	assert_null(open_with(offsetof(struct inputs_head, magic), INPUTS_MAGIC));
	assert_non_null(open_with(offsetof(struct inputs_head, magic), 0));
	assert_non_null(open_with(offsetof(struct inputs_head, args), INPUTS_ARGS_MAX + 1));
	assert_non_null(open_with(offsetof(struct inputs_head, env), INPUTS_ENV_MAX + 1));
	assert_non_null(open_with(offsetof(struct inputs_head, files), INPUTS_FILES_MAX + 1));
	assert_non_null(open_with(offsetof(struct inputs_head, entry), 2));
	assert_non_null(open_with(offsetof(struct inputs_head, reserved), 1));
	assert_non_null(open_with(file + offsetof(struct inputs_file, bytes), 5));
	assert_non_null(open_with(file + offsetof(struct inputs_file, bytes), ~0u));
	assert_non_null(open_with(file + offsetof(struct inputs_file, path_bytes), ~0u));
	assert_non_null(open_with(file + offsetof(struct inputs_file, path_bytes), 0));
	assert_non_null(open_with(file + offsetof(struct inputs_file, mode), 04755));
}

static void a_path_leads_nowhere_but_below_the_workspace(void **state)
{
	static const char *const good[] = { "a", "a/b/c", "...", "..a", ".a", "a..", "-rf", "a b",
		"\xc3\xbc", "\xff\xfe", "~", "a/.../b", "C:\\x" };
	static const char *const bad[] = { "", "/", "/a", "a/", "a//b", ".", "..", "./a", "../a",
		"a/.", "a/..", "a/./b", "a/../b", "a\nb", "a\x7f", "\t" };
	char name[INPUTS_PATH_MAX + 2];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_null(inputs_path_fault(good[i], strlen(good[i])));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_non_null(inputs_path_fault(bad[i], strlen(bad[i])));
	assert_non_null(inputs_path_fault("a\0b", 3));
	memset(name, 'n', sizeof(name));
	assert_null(inputs_path_fault(name, 255));
	assert_non_null(inputs_path_fault(name, 256));
	for (size_t i = 200; i < sizeof(name); i += 200)
		name[i] = '/';
	assert_null(inputs_path_fault(name, 1024));
	assert_non_null(inputs_path_fault(name, 1025));
}

static void a_variable_that_is_read_before_the_program_cannot_be_set(void **state)
{
	static const char *const good[] = { "A", "_", "a1", "PATHS", "HOMEDIR", "TZ", "TMPDIR",
		"OPENBLAS_NUM_THREADS", "LDAP", "LCD", "ENVIRONMENT", "MALLOC" };
	static const char *const bad[] = { "", "1", "A-B", "A{", "A B", "A=", "\xc3\xbc", "PATH",
		"HOME", "LD_PRELOAD", "LD_", "PYTHONPATH", "PYTHON", "GLOVEBOX_X", "LANG", "LC_ALL",
		"GLIBC_TUNABLES", "MALLOC_PERTURB_", "BASH_ENV", "ENV", "NODE_OPTIONS" };
	char name[INPUTS_VARIABLE_MAX + 1];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_null(inputs_variable_fault(good[i], strlen(good[i])));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_non_null(inputs_variable_fault(bad[i], strlen(bad[i])));
	memset(name, 'N', sizeof(name));
	assert_null(inputs_variable_fault(name, INPUTS_VARIABLE_MAX));
	assert_non_null(inputs_variable_fault(name, INPUTS_VARIABLE_MAX + 1));
}

struct seen {
	unsigned bits;
};

static void on_clash(void *ctx, unsigned file, const char *what)
{
	struct seen *s = ctx;

	(void)what;
	s->bits |= 1u << file;
}

static struct inputs_need look(const char *const *paths, const char *main_file, unsigned *ret_bits)
{
	struct inputs_plan_file files[8];
	struct inputs_plan p = { .files = files };
	struct inputs_need need;
	struct seen seen = { 0 };

	for (; paths[p.file_count]; p.file_count++)
		files[p.file_count] = file_of(paths[p.file_count], "x", false);
	assert_int_equal(inputs_plan_look(&p, main_file, on_clash, &seen, &need), 0);
	*ret_bits = seen.bits;
	return need;
}

static void files_that_cannot_be_beside_each_other_are_told(void **state)
{
	static const struct {
		const char *paths[8];
		unsigned bits;
		uint64_t inodes;
	} rows[] = {
		{ { NULL }, 0, 0 },
		{ { "a", "b" }, 0, 2 },
		{ { "a/b", "a/c", "a.b", "ab" }, 0, 5 },
		{ { "x/y/z", "x/z/y", "x/y/a" }, 0, 6 },
		{ { "a", "a" }, 2, 2 },
		{ { "a", "a", "a" }, 6, 3 },
		{ { "a/b", "a" }, 1, 3 },
		{ { "a/b/c", "a.b", "a", "a/d", "a!/x" }, 9, 8 },
		{ { "main.py" }, 1, 1 },
		{ { "main.py/a" }, 1, 2 },
		{ { "main.pyc", "x/main.py" }, 0, 3 },
	};
	unsigned bits;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct inputs_need need = look(rows[i].paths, "main.py", &bits);

		assert_int_equal(bits, rows[i].bits);
		assert_int_equal(need.inodes, rows[i].inodes);
	}
	(void)look((const char *const[]){ "main.py", NULL }, NULL, &bits);
	assert_int_equal(bits, 0);
	assert_int_equal(
		look((const char *const[]){ "a", "b", NULL }, NULL, &bits).memory_bytes, 8192);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_built_is_read_back),
		cmocka_unit_test(without_inputs_there_is_no_blob),
		cmocka_unit_test(only_a_blob_that_says_so_has_files),
		cmocka_unit_test(a_blob_of_another_length_is_refused),
		cmocka_unit_test(numbers_that_cannot_be_are_refused),
		cmocka_unit_test(a_path_leads_nowhere_but_below_the_workspace),
		cmocka_unit_test(a_variable_that_is_read_before_the_program_cannot_be_set),
		cmocka_unit_test(files_that_cannot_be_beside_each_other_are_told),
	};

	return cmocka_run_group_tests_name("inputs", tests, NULL, NULL);
}
