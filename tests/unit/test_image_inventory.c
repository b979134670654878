/* What is installed in an image: read from files of package managers, in pieces of any size. */
#include "unit.h"

#include "base/fault.h"
#include "edge/image/inventory.h"
#include "edge/image/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DPKG   "var/lib/dpkg/status"
#define APK    "lib/apk/db/installed"
#define PYTHON "usr/lib/python3/dist-packages/"

static struct tree t;
static struct inventory_list v;
static size_t piece; /* bytes that come at once */

static int begin(void **state)
{
	struct fault f = { 0 };

	(void)state;
	piece = 1000;
	return tree_init(&t, &f);
}

static int end(void **state)
{
	(void)state;
	inventory_done(&v);
	tree_done(&t);
	return 0;
}

static struct tree_inode *put(const char *path)
{
	struct tree_inode *i;
	struct fault f = { 0 };

	assert_int_equal(tree_put(&t, path, TREE_FILE, 1, &i, &f), 0);
	return i;
}

static void read_as(const struct tree_inode *i, const char *text)
{
	size_t len = strlen(text);

	inventory_begin(&v, i);
	for (size_t at = 0; at < len; at += piece)
		inventory_feed(&v, text + at, len - at < piece ? len - at : piece);
	inventory_end(&v);
}

static void lists(const char *text)
{
	size_t len;
	char *its = inventory_text(&v, "7", &len);

	assert_non_null(its);
	assert_true(image_inventory_is_valid(its, len));
	assert_int_equal(len, strlen(text) + 2);
	assert_memory_equal(its, "7\n", 2);
	assert_memory_equal(its + 2, text, len - 2);
	free(its);
}

static void what_is_installed_is_listed_whatever_the_pieces(void **state)
{
	(void)state;
	(void)put(DPKG);
	(void)put(APK);
	for (piece = 1; piece < 40; piece++) {
		inventory_init(&v, &t);
		read_as(v.dpkg, "Package: b\nStatus: install ok installed\nVersion: 1:2-3\n"
				"Description: x\n Package: y\n\nPackage: gone\nVersion: 1\n"
				"Status: deinstall ok config-files\n\n\nPackage: a\n"
				"Version: 1\r\nStatus: hold ok installed"); /* no end of a line */
		read_as(v.apk, "C:x\nP:musl\nV:1.2-r3\nF:lib\n\nP:a\nV:2\n\n");
		read_as(put(PYTHON "x-1.dist-info/METADATA"),
			"Metadata-Version: 2.1\nVersion: 1\nName: x\n\nName: not\nVersion: 9\n\n");
		read_as(put(PYTHON "z.egg-info/PKG-INFO"), "Name: z\nVersion: 3");
		read_as(put("opt/site-packages/y.egg-info"), "Name: y\nVersion: 2\n");
		lists("a 1 dpkg\nb 1:2-3 dpkg\na 2 apk\nmusl 1.2-r3 apk\nx 1 python\ny 2 python\n"
		      "z 3 python\n");
		assert_int_equal(v.lost, 0);
		inventory_done(&v);
	}
}

static void other_files_say_nothing(void **state)
{
	static const char *const others[] = { "METADATA", "usr/METADATA", PYTHON "x/METADATA",
		PYTHON "pip/_vendor/x.dist-info/METADATA", PYTHON "x.dist-info/RECORD",
		"x.dist-info/METADATA", "root/" DPKG, "status", PYTHON "x.egg-info/METADATA" };

	(void)state;
	inventory_init(&v, &t);
	assert_null(v.dpkg);
	assert_null(v.apk);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		read_as(put(others[i]), "Package: a\nName: a\nVersion: 1\nP:a\nV:1\n\n");
	lists("");
}

static void what_is_no_name_is_counted_and_not_listed(void **state)
{
	char text[2000], line[600];

	(void)state;
	(void)put(DPKG);
	inventory_init(&v, &t);
#define STANZA(name, version) "Package: " name "\nStatus: x installed\nVersion: " version "\n\n"
	read_as(v.dpkg,
		STANZA("a b", "1") STANZA("\033[31m", "1") STANZA("a", "") STANZA("a", "1\t2")
			STANZA("\xc3\xa4", "1") "Status: x installed\n\n"); /* the last has none */
	assert_int_equal(v.lost, 5);
	memset(line, 'x', sizeof(line));
	for (int len = 98; len <= 600; len += len < 101 ? 1 : 249) {
		(void)snprintf(text, sizeof(text), STANZA("%.*s", "1"), len, line);
		read_as(v.dpkg, text);
	}
	assert_int_equal(v.count, 2);    /* of 98 and 99 bytes */
	assert_int_equal(v.lost, 5 + 3); /* of a line that is longer nothing is known */
}

static void more_than_there_is_room_for_are_counted(void **state)
{
	char text[200];
	char *its;
	size_t len;

	(void)state;
	(void)put(DPKG);
	inventory_init(&v, &t);
	for (unsigned i = 0; i < IMAGE_PACKAGES_MAX + 3; i++) {
		(void)snprintf(text, sizeof(text), STANZA("p%095u", "1"), i);
		read_as(v.dpkg, text);
	}
	assert_int_equal(v.count, IMAGE_PACKAGES_MAX);
	assert_int_equal(v.lost, 3);
	its = inventory_text(&v, "", &len);
	assert_true(image_inventory_is_valid(its, len) && len > IMAGE_INVENTORY_MAX - 110);
	assert_int_equal(v.lost, 3 + IMAGE_PACKAGES_MAX - (len - 1) / 104);
	free(its);
}

static void one_that_is_there_twice_is_listed_once(void **state)
{
	(void)state;
	inventory_init(&v, &t);
	for (int i = 0; i < 2; i++) {
		read_as(put(PYTHON "a.egg-info"), "Name: a\nVersion: 1\n");
		read_as(put(PYTHON "b.egg-info"),
			i ? "Name: a\nVersion: 2\n" : "Name: b\nVersion: 2\n");
	}
	lists("a 1 python\na 2 python\nb 2 python\n");
}

static void version_is(
	const char *file, const char *argv0, const char *variable, const char *version)
{
	struct image_start s = { .argv = { "" } };
	char its[INVENTORY_WORD_MAX];

	(void)snprintf(s.argv[0], sizeof(s.argv[0]), "%s", argv0);
	(void)snprintf(s.env[0], sizeof(s.env[0]), "PATH=/bin");
	(void)snprintf(s.env[1], sizeof(s.env[1]), "%s", variable);
	inventory_version(&v, &s, file[0] ? put(file) : NULL, its);
	assert_string_equal(its, version);
}

static void the_interpreters_version_is_that_of_its_package_or_what_the_image_says(void **state)
{
	(void)state;
	(void)put(DPKG);
	inventory_init(&v, &t);
	version_is("usr/bin/python3.11", "/usr/bin/python3", "", "3.11"); /* by its name alone */
	read_as(v.dpkg,
		STANZA("python3.11-minimal", "3.11.2-6+deb12u5") STANZA("python3", "3.11.2-1+b1")
			STANZA("busybox-static", "1:1.35.0-4+b3") STANZA("lua5.4", "5.4.4-3")
				STANZA("nodejs", "18.19.0+dfsg-6") STANZA("dash", "0.5.12-2"));
	read_as(put(PYTHON "x.egg-info"), "Name: sh\nVersion: 2.0\n");
	version_is("usr/bin/python3.11", "/usr/bin/python3", "", "3.11.2");
	version_is("bin/busybox", "/bin/sh", "", "1.35.0");
	version_is("bin/dash", "/bin/sh", "SH_VERSION=9", "0.5.12");
	version_is("usr/bin/lua5.4", "/usr/bin/lua", "", "5.4.4");
	version_is("usr/bin/node", "/usr/bin/node", "", "18.19.0+dfsg");
	/* An official image, on top of a Debian with a Python of its own. */
	version_is("usr/local/bin/python3.12", "/usr/local/bin/python3", "PYTHON_VERSION=3.12.4",
		"3.12.4");
	version_is("usr/local/bin/python3.12", "/usr/local/bin/python3", "PYTHON_VERSION=3.1.4",
		"3.12");
	version_is("usr/local/bin/python3.1", "/usr/local/bin/python3", "PYTHON_VERSION=3.12.4",
		"3.1");
	version_is("usr/local/bin/ruby", "/usr/local/bin/ruby", "RUBY_VERSION=3.3.1", "3.3.1");
	version_is("usr/local/bin/ruby", "/usr/local/bin/ruby", "RUBY_VERSION=\033[31m", "");
	version_is("opt/x86_64-reader", "/opt/x86_64-reader", "", "");
	version_is("", "/opt/python3.9", "", "");
	/* Nothing of Debian's is Python 3.12: the package of the name that was asked for is another one. */
	version_is("usr/local/bin/python3.12", "/usr/local/bin/python3", "", "3.12");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_is_installed_is_listed_whatever_the_pieces),
		CASE(other_files_say_nothing),
		CASE(what_is_no_name_is_counted_and_not_listed),
		CASE(more_than_there_is_room_for_are_counted),
		CASE(one_that_is_there_twice_is_listed_once),
		CASE(the_interpreters_version_is_that_of_its_package_or_what_the_image_says),
	};

	return cmocka_run_group_tests_name("image_inventory", tests, NULL, NULL);
}
