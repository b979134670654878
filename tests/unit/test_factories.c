/* What a language or an image needs of the host, and the factory of its cells: with a host of a few
 * paths, and views that need no kernel. */
#include "tests/unit/unit.h"

#include "base/fault.h"
#include "kernel/sys.h"
#include "priv/launch/build.h"
#include "priv/launch/view.h"
#include "priv/supervisor/factories.h"
#include "priv/supervisor/images.h"
#include "priv/supervisor/offered.h"
#include "tests/unit/api_settings.h"
#include "wire/language.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static struct languages languages;
static struct factories factories;
static struct cell_factory usual;
static struct settings settings;
static struct sys_ops real;
static int fails_code;      /* of the next view or image that is opened; 0: it is there */
static unsigned closed;     /* views of images */
static uint32_t image_warm; /* of the record that is read */

/* ---- A host ---- */

static int look_code; /* of the look at `look_fails`; 0: none fails */
static const char *look_fails = "";

/* /d…: directories; /f…: files. */
static int host_fstatat(int dir_fd, const char *path, struct stat *ret, int flags)
{
	(void)dir_fd;
	(void)flags;
	if (look_code && strcmp(path, look_fails) == 0)
		return look_code;
	if (strncmp(path, "/d", 2) != 0 && strncmp(path, "/f", 2) != 0)
		return -ENOENT;
	*ret = (struct stat){ .st_mode = path[1] == 'f' ? S_IFREG : S_IFDIR };
	return 0;
}

int __wrap_view_open_other(
	struct view *ret, const struct runtime *rt, unsigned number, bool builds, struct fault *f);
int __wrap_view_open_image(struct view *ret, int file_fd, unsigned number, struct fault *f);
int __wrap_view_close_image(const struct view *v);
int __wrap_images_open_offered(const char *dir, const struct language *offered,
	const uint8_t *digest, struct image_record *ret, int *ret_fd, struct fault *f);

static int open_one(struct fault *f)
{
	return fails_code ? fault_set(f, fails_code, "it") : 0;
}

int __wrap_view_open_other(
	struct view *ret, const struct runtime *rt, unsigned number, bool builds, struct fault *f)
{
	(void)rt;
	*ret = (struct view){ .number = number, .builds = builds };
	return open_one(f);
}

int __wrap_view_open_image(struct view *ret, int file_fd, unsigned number, struct fault *f)
{
	(void)file_fd;
	*ret = (struct view){ .number = number };
	return open_one(f);
}

int __wrap_view_close_image(const struct view *v)
{
	assert_int_equal(v->number, 3);
	closed += fails_code == 0;
	return fails_code;
}

static int image_code;

int __wrap_images_open_offered(const char *dir, const struct language *offered,
	const uint8_t *digest, struct image_record *ret, int *ret_fd, struct fault *f)
{
	(void)dir;
	(void)offered;
	(void)digest;
	*ret = (struct image_record){ .trusted = 1,
		.start = { .warm = image_warm, .preload = "os" } };
	*ret_fd = -1;
	return image_code ? fault_set(f, image_code, "image") : 0;
}

static int fork_none(void *ctx, struct cell *c, int channel_fd)
{
	(void)ctx;
	(void)c;
	(void)channel_fd;
	return -ENOENT;
}

/* 1: interpreted, 2: compiled, 3: an image. */
static int begin(void **state)
{
	(void)state;
	real = sys;
	sys.fstatat = host_fstatat;
	fails_code = image_code = look_code = 0;
	closed = 0;
	image_warm = 1;
	settings = api_settings;
	memset(&languages, 0, sizeof(languages));
	languages.count = 4;
	for (unsigned i = 0; i < 4; i++) {
		struct language *l = &languages.of[i];

		(void)snprintf(l->runtime.name, RUNTIME_NAME_MAX, "l%u", i);
		(void)snprintf(l->runtime.argv[0], RUNTIME_PATH_MAX, "/f");
		(void)snprintf(l->runtime.roots[0], RUNTIME_PATH_MAX, "/d");
	}
	languages.of[2].offer.compiled = 1;
	(void)snprintf(languages.of[2].compile_argv[0], RUNTIME_PATH_MAX, "/f-cc");
	(void)snprintf(languages.of[2].runtime.argv[0], RUNTIME_PATH_MAX, BUILD_PATH "/program");
	languages.of[3].offer.is_image = 1;
	(void)snprintf(languages.of[3].offer.name, RUNTIME_NAME_MAX, "l3");
	usual = (struct cell_factory){ .fork_main = fork_none, .usual = settings.def };
	factories_open(&factories, &usual, &languages, &settings);
	return 0;
}

static int end(void **state)
{
	(void)state;
	sys = real;
	return 0;
}

/* ---- What is missing ---- */

static void expect(unsigned language, int code, const char *words)
{
	struct fault f = { 0 };

	assert_int_equal(factories_look(&factories, language, &f), code);
	if (words && !strstr(f.text, words))
		fail_msg("\"%s\" is not about \"%s\"", f.text, words);
}

static void put(char *path, const char *text)
{
	(void)snprintf(path, RUNTIME_PATH_MAX, "%s", text);
}

static void what_a_language_lacks_is_named_with_what_brings_it(void **state)
{
	struct language *l = &languages.of[1], *c = &languages.of[2];

	(void)state;
	expect(1, 0, NULL);
	expect(2, 0, NULL); /* what it runs is made by its compiler */
	put(l->runtime.argv[0], "/gone");
	expect(1, -ENOENT, "l1 is not installed on this server: there is no /gone");
	(void)snprintf(l->offer.package, LANGUAGE_PACKAGE_MAX, "lua5.4");
	expect(1, -ENOENT, "apt-get install lua5.4");
	put(c->compile_argv[0], "/gone-cc");
	expect(2, -ENOENT, "/gone-cc");
}

static void the_roots_of_a_language_are_directories_that_are_there(void **state)
{
	struct runtime *rt = &languages.of[1].runtime;

	(void)state;
	put(rt->roots[1], "?/gone");
	expect(1, 0, NULL); /* needed only where it is */
	put(rt->roots[2], "/gone");
	expect(1, -ENOENT, "/gone, one of the roots of its manifest");
	put(rt->roots[2], "/f");
	expect(1, -ENOTDIR, "/f, one of the roots of its manifest, is no directory");
	for (unsigned i = 0; i < RUNTIME_ROOTS_MAX; i++)
		put(rt->roots[i], "/d");
	expect(1, 0, NULL);
}

static void what_could_not_be_looked_for_is_not_said_to_be_missing(void **state)
{
	static const char *const paths[] = { "/f-cc", "/f", "/d" };
	const int codes[] = { -EIO, -ENOMEM, -EACCES };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		look_fails = paths[i];
		look_code = codes[i];
		expect(i == 0 ? 2 : 1, codes[i], paths[i]);
		assert_false(factories_lack(codes[i]));
	}
	look_code = -ENOTDIR; /* a part of its path is a file */
	expect(1, -ENOENT, "there is no /d");
	for (unsigned i = 0; i < 6; i++)
		assert_true(factories_lack(
			(const int[]){ -ENOENT, -ENOTDIR, -ELOOP, -EPERM, -EBADMSG, -ESTALE }[i]));
}

static void an_image_has_to_be_the_one_that_was_offered(void **state)
{
	struct fault f = { 0 };

	(void)state;
	expect(3, 0, NULL);
	image_code = -ESTALE;
	expect(3, -ESTALE, NULL);
	image_code = 0;
	assert_non_null(factories_get(&factories, 3, false, &f));
	image_code = -ESTALE;
	expect(3, 0, NULL); /* one that is mounted stays */
	offered_withdraw(&languages, 3);
	expect(3, -ENOENT, "no image \"l3\" any more"); /* but for nobody who comes later */
}

static void a_view_of_an_image_goes_when_nothing_uses_it(void **state)
{
	struct fault f = { 0 };

	(void)state;
	assert_non_null(factories_get(&factories, 3, false, &f));
	offered_withdraw(&languages, 3);
	fails_code = -EBUSY;
	assert_int_equal(factories_drop(&factories, 3), -EBUSY);
	assert_true(offered_is_withdrawn(&languages, 3)); /* and is tried again */
	fails_code = 0;
	assert_int_equal(factories_drop(&factories, 3), 0);
	assert_int_equal(closed, 1);
	assert_int_equal(offered_free(&languages), 3);
	expect(3, -ENOENT, "l3");
	languages.unused = 0;
	assert_int_equal(factories_drop(&factories, 3), 0); /* it was not mounted again */
	assert_int_equal(closed, 1);
}

/* ---- Made ---- */

static void each_has_a_factory_with_its_view_and_limits(void **state)
{
	struct fault f = { 0 };
	const struct cell_factory *program, *compiler;

	(void)state;
	languages.of[2].offer.limits.pids = 7;
	languages.of[2].offer.compile_limits.pids = 9;
	factories_open(&factories, &usual, &languages, &settings);
	program = factories_get(&factories, 2, false, &f);
	compiler = factories_get(&factories, 2, true, &f);
	assert_string_equal(program->runtime->argv[0], BUILD_PATH "/program");
	assert_string_equal(compiler->runtime->argv[0], "/f-cc");
	assert_int_equal(program->usual.pids, 7);
	assert_int_equal(compiler->usual.pids, 9);
	assert_true(program->view->builds);
	assert_false(factories_get(&factories, 1, false, &f)->view->builds);
}

static void only_an_image_whose_interpreter_fits_has_a_zygote(void **state)
{
	struct fault f = { 0 };

	(void)state;
	assert_null(factories_get(&factories, 1, false, &f)->fork_main);
	assert_true(factories_get(&factories, 3, false, &f)->fork_main == fork_none);
	assert_string_equal(factories_preload(&factories, 3), "os");
	factories_open(&factories, &usual, &languages, &settings);
	image_warm = 0;
	assert_null(factories_get(&factories, 3, false, &f)->fork_main);
}

static void one_that_cannot_be_shown_is_tried_again_the_next_time(void **state)
{
	(void)state;
	for (unsigned language = 1; language < 4; language++) {
		struct fault f = { 0 };

		fails_code = -EMFILE;
		assert_null(factories_get(&factories, language, false, &f));
		assert_int_equal(f.code, -EMFILE);
		fails_code = 0;
		assert_non_null(factories_get(&factories, language, false, &f));
	}
}

static void an_image_that_is_gone_has_no_factory(void **state)
{
	struct fault f = { 0 };

	(void)state;
	image_code = -ENOENT;
	assert_null(factories_get(&factories, 3, false, &f));
	assert_int_equal(f.code, -ENOENT);
	assert_non_null(strstr(f.text, "image l3"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_a_language_lacks_is_named_with_what_brings_it),
		CASE(the_roots_of_a_language_are_directories_that_are_there),
		CASE(what_could_not_be_looked_for_is_not_said_to_be_missing),
		CASE(an_image_has_to_be_the_one_that_was_offered),
		CASE(a_view_of_an_image_goes_when_nothing_uses_it),
		CASE(each_has_a_factory_with_its_view_and_limits),
		CASE(only_an_image_whose_interpreter_fits_has_a_zygote),
		CASE(one_that_cannot_be_shown_is_tried_again_the_next_time),
		CASE(an_image_that_is_gone_has_no_factory),
	};

	return cmocka_run_group_tests_name("factories", tests, NULL, NULL);
}
