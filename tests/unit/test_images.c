/* Root: the store, and what of it is believed: files of root's alone, with a record of the image that
 * they are asked for as. */
#include "tests/unit/unit.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/own.h"
#include "kernel/sys.h"
#include "priv/supervisor/images.h"
#include "priv/supervisor/offered.h"
#include "wire/language.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char store[] = "/tmp/glovebox-images-XXXXXX";
static struct languages offered;
static struct sys_ops real;

/* ---- What is in the store ---- */

static const char *path_of(const char *name, const char *file)
{
	static char path[512];

	(void)snprintf(
		path, sizeof(path), "%s/%s%s%s", store, name, file ? "/" : "", file ? file : "");
	return path;
}

static void put(const char *name, const char *file, const void *bytes, size_t len)
{
	int fd = open(path_of(name, file), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0644), 0);
	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	(void)close(fd);
}

static struct image_record record_of(const char *name)
{
	struct image_record r = { .magic = IMAGE_MAGIC,
		.digest = { 1, 2, 3 },
		.bytes = 5,
		.inventory_bytes = 4,
		.start = { .main_file = "main.sh", .argv = { "/bin/sh" }, .warm = 1 } };

	(void)snprintf(r.name, sizeof(r.name), "%s", name);
	(void)snprintf(r.arch, sizeof(r.arch), "%s", image_host_arch());
	return r;
}

static void put_record(const char *name, const struct image_record *r)
{
	put(name, IMAGE_RECORD_FILE, r, sizeof(*r));
}

/* As an import leaves it. */
static void make(const char *name)
{
	const struct image_record r = record_of(name);

	assert_true(mkdir(path_of(name, NULL), 0755) == 0 || errno == EEXIST);
	put_record(name, &r);
	put(name, IMAGE_ROOT_FILE, "files", 5);
	put(name, IMAGE_INVENTORY_FILE, "1.2\n", 4);
}

static void clear(const char *name)
{
	(void)unlink(path_of(name, IMAGE_RECORD_FILE));
	(void)unlink(path_of(name, IMAGE_INVENTORY_FILE));
	(void)rmdir(path_of(name, IMAGE_ROOT_FILE));
	(void)unlink(path_of(name, IMAGE_ROOT_FILE));
	(void)rmdir(path_of(name, NULL));
	(void)unlink(path_of(name, NULL));
}

static int begin(void **state)
{
	(void)state;
	log_setup("test", LOG_LEVEL_ERR);
	memset(&offered, 0, sizeof(offered));
	real = sys;
	make("a");
	return 0;
}

static int end(void **state)
{
	char name[8];

	(void)state;
	sys = real;
	clear("a");
	clear("b");
	clear(".new");
	for (unsigned i = 0; i <= LANGUAGES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "i%02u", i);
		clear(name);
	}
	return 0;
}

/* ---- Opened ---- */

static struct image_record record;
static struct fault why;

static int try_open(const char *name)
{
	int fd = -1, r;

	why = (struct fault){ 0 };
	r = images_open(store, name, &record, &fd, &why);
	assert_int_equal(fd >= 0, r == 0);
	if (fd >= 0)
		(void)close(fd);
	return r;
}

static void refuse(int code, const char *words)
{
	assert_int_equal(try_open("a"), code);
	if (!strstr(why.text, words))
		fail_msg("\"%s\" is not about \"%s\"", why.text, words);
}

static void an_image_is_its_record_and_its_root(void **state)
{
	(void)state;
	assert_int_equal(try_open("a"), 0);
	assert_string_equal(record.name, "a");
	assert_int_equal(try_open("none"), -ENOENT);
	assert_non_null(strstr(why.text, "there is no image \"none\""));
}

static void what_others_than_root_can_write_is_no_image(void **state)
{
	static const char *const files[] = { IMAGE_RECORD_FILE, IMAGE_ROOT_FILE };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		assert_int_equal(chmod(path_of("a", files[i]), 0664), 0);
		refuse(-EPERM, "no file of root's alone");
		assert_int_equal(chmod(path_of("a", files[i]), 0646), 0);
		refuse(-EPERM, files[i]);
		assert_int_equal(chmod(path_of("a", files[i]), 0644), 0);
		assert_int_equal(chown(path_of("a", files[i]), 1, 0), 0);
		refuse(-EPERM, files[i]);
		assert_int_equal(chown(path_of("a", files[i]), 0, 0), 0);
		assert_int_equal(unlink(path_of("a", files[i])), 0);
		assert_int_equal(symlink("/dev/null", path_of("a", files[i])), 0);
		refuse(-ELOOP, files[i]);
		assert_int_equal(unlink(path_of("a", files[i])), 0);
		make("a");
	}
	assert_int_equal(unlink(path_of("a", IMAGE_ROOT_FILE)), 0);
	assert_int_equal(mkdir(path_of("a", IMAGE_ROOT_FILE), 0755), 0);
	refuse(-EPERM, IMAGE_ROOT_FILE);
}

static void a_name_that_leads_elsewhere_is_no_image(void **state)
{
	int fd = -1;

	(void)state;
	assert_int_equal(symlink("a", path_of("b", NULL)), 0);
	assert_int_equal(try_open("b"), -ENOTDIR);
	clear("b");
	assert_int_equal(images_open("/dev/null", "a", &record, &fd, &why), -ENOTDIR);
	assert_int_equal(fd, -1);
}

static void a_record_that_does_not_fit_its_folder_is_no_image(void **state)
{
	struct image_record r = record_of("b");

	(void)state;
	put_record("a", &r);
	refuse(-EBADMSG, "another image's");
	r = record_of("a");
	put("a", IMAGE_RECORD_FILE, &r, sizeof(r) - 1);
	refuse(-EBADMSG, "cut short");
	r.magic++;
	put_record("a", &r);
	refuse(-EBADMSG, "another version");
	r = record_of("a");
	r.bytes++;
	put_record("a", &r);
	refuse(-EBADMSG, "another size");
}

static int failing_fstat(int fd, struct stat *ret)
{
	(void)fd;
	(void)ret;
	return -EIO;
}

static void a_file_that_cannot_be_looked_at_is_no_image(void **state)
{
	(void)state;
	sys.fstat = failing_fstat;
	refuse(-EIO, IMAGE_RECORD_FILE);
}

/* ---- Offered ---- */

static void images_are_offered_behind_the_languages_by_their_names(void **state)
{
	struct image_record bad = record_of("i00");

	(void)state;
	offered.count = 1;
	make("b");
	make(".new"); /* which is just being imported */
	make("i00");
	bad.magic++;
	put_record("i00", &bad);
	images_offer(store, &offered);
	assert_int_equal(offered.count, 3);
	assert_string_equal(offered.of[1].offer.name, "a");
	assert_string_equal(offered.of[2].runtime.name, "b");
	assert_int_equal(offered.of[2].offer.is_image, 1);
	assert_int_equal(offered.of[2].offer.reports, 1);
	assert_string_equal(offered.of[2].offer.main_file, "main.sh");
	assert_memory_equal(offered.digests[2], record_of("b").digest, IMAGE_DIGEST_MAX);
}

static void no_more_are_offered_than_there_is_room_for(void **state)
{
	char name[8];

	(void)state;
	for (unsigned i = 0; i <= LANGUAGES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "i%02u", i);
		make(name);
	}
	images_offer(store, &offered);
	assert_int_equal(offered.count, LANGUAGES_MAX);
	assert_string_equal(offered.of[LANGUAGES_MAX - 1].offer.name, "i30");
}

static void without_a_store_nothing_is_offered(void **state)
{
	(void)state;
	images_offer("/nowhere/at/all", &offered);
	images_offer("/dev/null", &offered);
	assert_int_equal(offered.count, 0);
}

static void what_comes_and_goes_is_told_of_by_its_number(void **state)
{
	struct image_record r = record_of("b");

	(void)state;
	offered.count = 1;
	make("b");
	assert_int_equal(images_offer(store, &offered), 1 << 1 | 1 << 2);
	assert_int_equal(images_offer(store, &offered), 0);
	clear("a");
	assert_int_equal(images_offer(store, &offered), 1 << 1);
	assert_true(offered_is_withdrawn(&offered, 1));
	assert_int_equal(offered_successor(&offered, 1), 1);
	make("i00"); /* the number is in use for as long as nobody says otherwise */
	assert_int_equal(images_offer(store, &offered), 1 << 3);
	r.digest[0]++;
	put_record("b", &r);
	assert_int_equal(images_offer(store, &offered), 1 << 2 | 1 << 4);
	assert_int_equal(offered_successor(&offered, 2), 4);
	assert_int_equal(offered_successor(&offered, 3), 3);
	offered_forget(&offered, 2); /* whose name is still known */
	assert_false(offered_is_withdrawn(&offered, 2));
	assert_int_equal(offered_successor(&offered, 2), 4);
	offered_forget(&offered, 1);
	make("i01");
	assert_int_equal(images_offer(store, &offered), 1 << 1);
	assert_string_equal(offered.of[1].offer.name, "i01");
	assert_int_equal(offered.editions[1], 1);
	assert_int_equal(offered.editions[4], 0);
	assert_int_equal(images_offer("/nowhere/at/all", &offered), 1 << 1 | 1 << 3 | 1 << 4);
}

static int shortage;

static int failing_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	(void)dir_fd;
	(void)path;
	(void)flags;
	(void)mode;
	return shortage;
}

static void nothing_is_withdrawn_for_want_of_memory_or_descriptors(void **state)
{
	static const int codes[] = { -ENOMEM, -EMFILE, -ENFILE };

	(void)state;
	assert_int_equal(images_offer(store, &offered), 1 << 0);
	sys.openat = failing_openat;
	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		shortage = codes[i];
		assert_int_equal(images_offer(store, &offered), 0);
	}
	shortage = -EIO;
	assert_int_equal(images_offer(store, &offered), 1 << 0);
}

static void one_that_was_replaced_since_is_another_one(void **state)
{
	struct image_record r = record_of("a");
	struct fault f = { 0 };
	int fd = -1;

	(void)state;
	images_offer(store, &offered);
#define OPEN() images_open_offered(store, &offered.of[0], offered.digests[0], &record, &fd, &f)
	assert_int_equal(OPEN(), 0);
	drop_fd(&fd);
	r.digest[IMAGE_DIGEST_MAX - 1]++;
	put_record("a", &r);
	assert_int_equal(OPEN(), -ESTALE);
	assert_non_null(strstr(f.text, "was replaced"));
	r = record_of("a");
	memcpy(r.start.argv[1], "-x", 3);
	put_record("a", &r);
	assert_int_equal(OPEN(), -ESTALE);
	r = record_of("a");
	r.start.limits.pids = 7;
	put_record("a", &r);
	assert_int_equal(OPEN(), -ESTALE);
	clear("a");
	assert_int_equal(OPEN(), -ENOENT);
	assert_int_equal(fd, -1);
#undef OPEN
}

static void its_inventory_is_handed_on_and_nobody_elses(void **state)
{
	struct image_record r = record_of("a");
	char text[8] = "";
	int fd;

	(void)state;
	images_offer(store, &offered);
#define OPEN()                      \
	(why = (struct fault){ 0 }, \
		images_open_inventory(store, &offered.of[0], offered.digests[0], &why))
	fd = OPEN();
	assert_int_equal(read(fd, text, sizeof(text)), 4);
	assert_string_equal(text, "1.2\n");
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(close(fd), 0);
	put("a", IMAGE_INVENTORY_FILE, "1.2.3\n", 6);
	assert_int_equal(OPEN(), -EBADMSG);
	assert_non_null(strstr(why.text, "inventory has another size"));
	make("a");
	assert_int_equal(chmod(path_of("a", IMAGE_INVENTORY_FILE), 0666), 0);
	assert_int_equal(OPEN(), -EPERM);
	make("a");
	r.digest[0]++;
	put_record("a", &r);
	assert_int_equal(OPEN(), -ESTALE);
	make("a");
	assert_int_equal(unlink(path_of("a", IMAGE_INVENTORY_FILE)), 0);
	assert_int_equal(OPEN(), -ENOENT);
	why = (struct fault){ 0 };
	assert_int_equal(
		images_open_inventory("/nowhere", &offered.of[0], offered.digests[0], &why),
		-ENOENT);
	assert_non_null(strstr(why.text, "/nowhere"));
	assert_int_equal(try_open("a"), 0); /* which does not keep anybody from using it */
	clear("a");
	assert_int_equal(OPEN(), -ENOENT);
#undef OPEN
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_image_is_its_record_and_its_root),
		CASE(what_others_than_root_can_write_is_no_image),
		CASE(a_name_that_leads_elsewhere_is_no_image),
		CASE(a_record_that_does_not_fit_its_folder_is_no_image),
		CASE(a_file_that_cannot_be_looked_at_is_no_image),
		CASE(images_are_offered_behind_the_languages_by_their_names),
		CASE(no_more_are_offered_than_there_is_room_for),
		CASE(without_a_store_nothing_is_offered),
		CASE(what_comes_and_goes_is_told_of_by_its_number),
		CASE(nothing_is_withdrawn_for_want_of_memory_or_descriptors),
		CASE(one_that_was_replaced_since_is_another_one),
		CASE(its_inventory_is_handed_on_and_nobody_elses),
	};
	int r;

	if (!mkdtemp(store))
		return 1;
	r = cmocka_run_group_tests_name("images", tests, NULL, NULL);
	(void)rmdir(store);
	return r;
}
