#include "unit.h"

#include "base/check.h"
#include "base/fault.h"
#include "edge/image/tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static struct tree t;
static struct fault why;

static int set_up(void **state)
{
	(void)state;
	why = (struct fault){ 0 };
	return tree_init(&t, &why);
}

static int tear_down(void **state)
{
	(void)state;
	tree_done(&t);
	return 0;
}

static int put(const char *path, enum tree_kind kind, uint32_t layer)
{
	struct tree_inode *i;
	int r;

	why = (struct fault){ 0 };
	r = tree_put(&t, path, kind, layer, &i, &why);
	if (r == 0 && kind == TREE_LINK)
		i->target = strdup("/etc");
	return r;
}

/* All that there is, in the order of tree_next(), each with a space behind. */
static const char *names(void)
{
	static char all[4096];
	char one[TREE_PATH_MAX];
	size_t used = 0;

	all[0] = '\0';
	for (struct tree_node *n = tree_next(&t, NULL); (n = tree_next(&t, n));) {
		tree_name(n, one);
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s ", one);
		assert_true(used < sizeof(all));
	}
	return all;
}

static void a_name_is_a_path_below_the_root_or_refused(void **state)
{
	static const char *const good[][2] = { { "a", "a" }, { "./a/b", "a/b" }, { "/a", "a" },
		{ "a//b/", "a/b" }, { "./", "" }, { "", "" }, { "..a/b..", "..a/b.." } };
	static const char *const bad[] = { "..", "../a", "a/..", "a/../b", "/..", "./../a" };
	char path[TREE_PATH_MAX], longest[TREE_NAME_MAX + 2], many[2 * TREE_PATH_MAX] = "";

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(tree_path(good[i][0], path, &why), 0);
		assert_string_equal(path, good[i][1]);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(tree_path(bad[i], path, &why), -EINVAL);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[TREE_NAME_MAX + 1] = '\0';
	assert_int_equal(tree_path(longest, path, &why), -EINVAL);
	longest[TREE_NAME_MAX] = '\0';
	assert_int_equal(tree_path(longest, path, &why), 0);
	for (unsigned i = 0; i < TREE_DEPTH_MAX; i++)
		memcpy(many + 2 * i, "a/", 3);
	assert_int_equal(tree_path(many, path, &why), 0);
	memcpy(many + 2 * TREE_DEPTH_MAX, "a", 2);
	assert_int_equal(tree_path(many, path, &why), -EINVAL);
}

static void the_longest_path_has_a_name(void **state)
{
	char path[TREE_PATH_MAX + 1], name[TREE_PATH_MAX];
	struct tree_node *n;

	(void)state;
	memset(path, 'a', sizeof(path));
	for (size_t i = TREE_NAME_MAX; i < TREE_PATH_MAX; i += TREE_NAME_MAX + 1)
		path[i] = '/';
	path[TREE_PATH_MAX - 1] = '\0';
	assert_int_equal(tree_path(path, name, &why), 0);
	assert_int_equal(put(path, TREE_FILE, 1), 0);
	for (n = t.root; !TAILQ_EMPTY(&n->children);)
		n = TAILQ_FIRST(&n->children);
	tree_name(n, name);
	assert_string_equal(name, path);
	memcpy(path + TREE_PATH_MAX - 1, "a", 2);
	assert_int_equal(tree_path(path, name, &why), -EINVAL);
}

static void nothing_is_put_through_a_link_or_a_file(void **state)
{
	(void)state;
	assert_int_equal(put("link", TREE_LINK, 1), 0);
	assert_int_equal(put("file", TREE_FILE, 1), 0);
	assert_int_equal(put("link/passwd", TREE_FILE, 1), -ELOOP);
	assert_non_null(strstr(why.text, "symbolic link"));
	assert_int_equal(put("link/a/b", TREE_FILE, 2), -ELOOP);
	assert_int_equal(put("file/b", TREE_FILE, 2), -ELOOP);
	assert_int_equal(tree_link(&t, "link/b", "file", 2, &why), -ELOOP);
	assert_string_equal(names(), "link file ");
}

static void a_later_layer_takes_the_place_of_an_earlier_one(void **state)
{
	(void)state;
	assert_int_equal(put("d/a", TREE_FILE, 1), 0);
	assert_int_equal(put("d/b", TREE_FILE, 1), 0);
	assert_int_equal(put("d", TREE_DIRECTORY, 2), 0); /* keeps what it holds */
	assert_string_equal(names(), "d d/a d/b ");
	assert_int_equal(put("d", TREE_LINK, 2), 0); /* does not */
	assert_string_equal(names(), "d ");
	assert_int_equal(put("d/x", TREE_FILE, 2), -ELOOP);
	assert_int_equal(put("d", TREE_DIRECTORY, 3), 0);
	assert_int_equal(put("d/x", TREE_FILE, 3), 0);
	assert_string_equal(names(), "d d/x ");
	assert_int_equal(t.entries, 2);
	assert_int_equal(put("", TREE_FILE, 3), -EINVAL);
}

static void a_whiteout_takes_what_earlier_layers_have_put_there(void **state)
{
	(void)state;
	assert_int_equal(put("d/a", TREE_FILE, 1), 0);
	assert_int_equal(put("d/s/a", TREE_FILE, 1), 0);
	assert_int_equal(put("d/s/new", TREE_FILE, 2), 0);
	assert_int_equal(put("gone/x/y", TREE_FILE, 1), 0);
	tree_whiteout(&t, "gone", 2, false);
	tree_whiteout(&t, "nowhere/at/all", 2, false);
	assert_string_equal(names(), "d d/a d/s d/s/a d/s/new ");
	tree_whiteout(&t, "d", 2, true); /* opaque */
	assert_string_equal(names(), "d d/s d/s/new ");
	tree_whiteout(&t, "d", 2, false);
	assert_string_equal(names(), "d d/s d/s/new ");
	tree_whiteout(&t, "", 3, true);
	assert_string_equal(names(), "");
	assert_int_equal(t.entries, 0);
	tree_whiteout(&t, "", 4, false); /* the root stays */
	assert_int_equal(put("a", TREE_FILE, 4), 0);
}

/* Seconds of CPU, and a quarter of an hour for the million of entries that an archive may have. */
static void whiteouts_do_not_walk_through_their_own_layer_each_time(void **state)
{
	const clock_t begun = clock();
	char path[32];

	(void)state;
	assert_int_equal(put("d/old", TREE_FILE, 1), 0);
	for (unsigned i = 0; i < 40000; i++) {
		(void)snprintf(path, sizeof(path), "d/%u", i);
		assert_int_equal(put(path, TREE_FILE, 2), 0);
	}
	for (unsigned i = 0; i < 40000; i++)
		tree_whiteout(&t, i % 2 ? "d" : "", 2, i % 3 != 0);
	assert_int_equal(t.entries, 40001);
	tree_whiteout(&t, "d", 3, true);
	assert_int_equal(t.entries, 1);
	assert_true(clock() - begun < 5 * CLOCKS_PER_SEC);
}

static void a_file_lives_as_long_as_one_of_its_names(void **state)
{
	(void)state;
	assert_int_equal(put("a", TREE_FILE, 1), 0);
	assert_int_equal(tree_link(&t, "d/b", "a", 1, &why), 0);
	assert_int_equal(tree_link(&t, "a", "a", 1, &why), 0);
	assert_ptr_equal(tree_resolve(&t, "/a"), tree_resolve(&t, "d/b"));
	assert_int_equal(put("a", TREE_FILE, 2), 0);
	assert_ptr_not_equal(tree_resolve(&t, "/a"), tree_resolve(&t, "d/b"));
	assert_int_equal(t.files_count, 2);
	assert_false(LIST_EMPTY(&t.files[0]->names));
	tree_whiteout(&t, "d/b", 2, false);
	assert_true(LIST_EMPTY(&t.files[0]->names));
	/* Neither to what is not there, nor to a directory, nor from one to what is in it. */
	assert_int_equal(tree_link(&t, "c", "d/b", 2, &why), -EINVAL);
	assert_int_equal(tree_link(&t, "c", "d", 2, &why), -EINVAL);
	assert_int_equal(put("d/f", TREE_FILE, 2), 0);
	assert_int_equal(tree_link(&t, "d", "d/f", 2, &why), -EINVAL);
}

static void links_are_followed_inside_of_the_tree_and_not_for_ever(void **state)
{
	struct tree_inode *i;

	(void)state;
	assert_int_equal(put("etc/passwd", TREE_FILE, 1), 0);
	assert_int_equal(put("link", TREE_LINK, 1), 0);
	assert_ptr_equal(tree_resolve(&t, "/link/passwd"), t.files[0]);
	assert_ptr_equal(tree_resolve(&t, "/../../etc/./passwd"), t.files[0]);
	assert_ptr_equal(tree_resolve(&t, "etc/../link/../etc/passwd"), t.files[0]);
	assert_null(tree_resolve(&t, "/link/none"));
	assert_null(tree_resolve(&t, "etc/passwd/x"));
	assert_int_equal(tree_put(&t, "loop", TREE_LINK, 1, &i, &why), 0);
	i->target = strdup("loop/x");
	assert_null(tree_resolve(&t, "loop"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_name_is_a_path_below_the_root_or_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_longest_path_has_a_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			nothing_is_put_through_a_link_or_a_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_later_layer_takes_the_place_of_an_earlier_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_whiteout_takes_what_earlier_layers_have_put_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			whiteouts_do_not_walk_through_their_own_layer_each_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_file_lives_as_long_as_one_of_its_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			links_are_followed_inside_of_the_tree_and_not_for_ever, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
