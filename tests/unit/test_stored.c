/* The watch of a store of images: of one that is there, is made later, goes, or comes while it is
 * looked for (-Wl,--wrap). */
#include "tests/unit/unit.h"

#include "base/fault.h"
#include "base/log.h"
#include "base/own.h"
#include "priv/supervisor/engine.h"
#include "priv/supervisor/images.h"
#include "priv/supervisor/stored.h"
#include "wire/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

uint32_t __wrap_images_offer(const char *store, struct languages *to);
int __wrap_images_open_inventory(
	const char *store, const struct language *offered, const uint8_t *digest, struct fault *f);
int __wrap_channel_send(int fd, enum msg_type type, const void *payload, const int *fds);
int __wrap_inotify_init1(int flags);
int __real_inotify_init1(int flags);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);

static char top[] = "/tmp/glovebox-stored-XXXXXX";
static char dir[sizeof(top) + 16], above[sizeof(top) + 16];
static bool no_inotify, no_watch, nowhere; /* nowhere: there is not even a root */
static unsigned late; /* that many folders are made just after they were found to be missing */
static struct stored s;

static void make(const char *path)
{
	assert_int_equal(mkdir(path, 0755), 0);
}

int __wrap_inotify_init1(int flags)
{
	errno = EMFILE;
	return no_inotify ? -1 : __real_inotify_init1(flags);
}

int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	int r = __real_inotify_add_watch(fd, path, mask);

	if (r < 0 && late > 0) {
		late--;
		make(strcmp(path, dir) == 0 ? above : path);
		if (strcmp(path, dir) == 0)
			make(dir);
		errno = ENOENT;
	}
	if (no_watch || nowhere)
		errno = no_watch ? ENOSPC : ENOENT;
	return no_watch || nowhere ? -1 : r;
}

static int begin(void **state)
{
	(void)state;
	log_setup("test", LOG_LEVEL_ERR);
	no_inotify = no_watch = nowhere = false;
	late = 0;
	stored_clear(&s);
	return 0;
}

static const char *in(const char *folder, const char *name)
{
	static char path[2][128]; /* for rename() */
	static unsigned n;

	n = !n;
	(void)snprintf(path[n], sizeof(path[n]), "%s/%s", folder, name);
	return path[n];
}

static int end(void **state)
{
	(void)state;
	drop_fd(&s.watch_fd);
	(void)rmdir(in(top, "new"));
	(void)rmdir(in(dir, "a"));
	(void)rmdir(dir);
	(void)rmdir(in(top, "old"));
	(void)rmdir(above);
	return 0;
}

/* Is there news? It is taken. */
static bool hears(void)
{
	struct pollfd p = { .fd = s.watch_fd, .events = POLLIN };
	bool is = poll(&p, 1, 0) == 1;

	if (is)
		stored_look(&s);
	return is;
}

/* All of it: that a watch has gone is news, too. */
static void hear_all(void)
{
	while (hears())
		continue;
}

static void an_image_that_comes_or_goes_is_heard_of(void **state)
{
	(void)state;
	make(above);
	make(dir);
	stored_open(&s, dir);
	assert_false(hears());
	make(in(top, "new"));
	assert_false(hears()); /* that is elsewhere */
	assert_int_equal(rename(in(top, "new"), in(dir, "a")), 0);
	assert_true(hears());
	assert_false(hears());
	assert_int_equal(rename(in(dir, "a"), in(top, "new")), 0);
	assert_true(hears());
	assert_int_equal(rename(in(top, "new"), in(dir, "a")), 0);
	assert_true(hears());
	assert_int_equal(rmdir(in(dir, "a")), 0);
	assert_true(hears());
}

static void a_store_that_is_made_later_is_watched_from_then_on(void **state)
{
	(void)state;
	stored_open(&s, dir);
	assert_false(hears());
	make(above);
	assert_true(hears());
	make(dir);
	assert_true(hears());
	hear_all();
	make(in(top, "new"));
	assert_false(hears()); /* what is above is none of its business any more */
	assert_int_equal(rename(in(top, "new"), in(dir, "a")), 0);
	assert_true(hears());
}

static void a_store_that_goes_is_waited_for_again(void **state)
{
	(void)state;
	make(above);
	make(dir);
	stored_open(&s, dir);
	assert_int_equal(rename(dir, in(top, "old")), 0);
	assert_true(hears());
	hear_all();
	make(in(top, "old/x"));
	assert_int_equal(rmdir(in(top, "old/x")), 0);
	assert_false(hears());
	make(dir);
	assert_true(hears());
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(rmdir(above), 0);
	hear_all();
	make(above);
	assert_true(hears());
}

static void a_store_that_comes_while_it_is_looked_for_is_found(void **state)
{
	(void)state;
	late = 1;
	stored_open(&s, dir);
	hear_all();
	make(in(dir, "a"));
	assert_int_equal(rmdir(in(dir, "a")), 0);
	assert_true(hears());
}

static void without_a_watch_there_is_no_descriptor(void **state)
{
	(void)state;
	no_inotify = true;
	stored_open(&s, dir);
	assert_int_equal(s.watch_fd, -1);
	no_inotify = false;
	no_watch = true;
	stored_open(&s, dir);
	assert_int_equal(s.watch_fd, -1);
	no_watch = false;
	nowhere = true; /* up to the root, and no further */
	stored_open(&s, dir);
	assert_int_equal(s.watch_fd, -1);
	stored_open(&s, "relative");
	assert_int_equal(s.watch_fd, -1);
}

static void a_watch_that_is_lost_is_tried_again_with_the_next_news(void **state)
{
	(void)state;
	stored_open(&s, dir);
	make(above);
	no_watch = true;
	stored_look(&s);
	assert_int_equal(s.wd, -1);
	no_watch = false;
	stored_look(&s);
	assert_true(s.wd >= 0);
}

/* ---- Told ---- */

static struct engine engine;
static uint32_t changed, told;
static int room; /* so many messages can be sent */

uint32_t __wrap_images_offer(const char *store, struct languages *to)
{
	(void)store;
	(void)to;
	return changed;
}

static uint32_t listed;
static int inventory_fd;

int __wrap_images_open_inventory(
	const char *store, const struct language *offered, const uint8_t *digest, struct fault *f)
{
	(void)store;
	assert_true(offered->offer.is_image);
	assert_ptr_equal(digest, engine.languages.digests[offered - engine.languages.of]);
	inventory_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (offered->offer.name[0] == 'x') {
		(void)close(inventory_fd);
		return fault_set(f, -ENOENT, "it");
	}
	return inventory_fd;
}

int __wrap_channel_send(int fd, enum msg_type type, const void *payload, const int *fds)
{
	const struct msg_offer *m = payload;
	const struct msg_inventory *in = payload;

	assert_int_equal(fd, 7);
	if (type == MSG_INVENTORY) {
		assert_int_equal(in->edition, 10 + in->number);
		assert_int_equal(fds[0], inventory_fd);
		if (room == 0)
			return -EAGAIN;
		room--;
		listed |= UINT32_C(1) << in->number;
		return 0;
	}
	assert_int_equal(type, MSG_OFFER);
	assert_null(fds);
	assert_int_equal(m->edition, 10 + m->number);
	if (room == 0)
		return -EAGAIN;
	room--;
	told |= UINT32_C(1) << m->number;
	return 0;
}

static void what_has_changed_is_told_as_soon_as_there_is_room(void **state)
{
	uint64_t due;

	(void)state;
	engine.languages.count = 4;
	for (uint32_t i = 0; i < 4; i++)
		engine.languages.editions[i] = 10 + i;
	changed = 1 << 1 | 1 << 3;
	room = 1;
	stored_renew(&s, &engine, 7);
	assert_int_equal(told, 1 << 1);
	due = stored_tick(&s, &engine, 7, 0); /* it is not time yet */
	assert_true(due != UINT64_MAX);
	room = 1;
	assert_true(stored_tick(&s, &engine, 7, due - 1) == due);
	assert_int_equal(told, 1 << 1);
	assert_true(stored_tick(&s, &engine, 7, due) == UINT64_MAX);
	assert_int_equal(told, 1 << 1 | 1 << 3);
	assert_int_equal(s.untold, 0);
	changed = 1 << 2;
	stored_renew(&s, &engine, -1); /* nobody is there, and nothing to wait for */
	assert_true(stored_tick(&s, &engine, -1, due) == UINT64_MAX);
	assert_int_equal(told, 1 << 1 | 1 << 3);
}

/* Images are numbers 1 to 3; of number 2 it cannot be had, which is no reason to wait for it. */
static void a_new_client_hears_what_is_installed_in_all_images(void **state)
{
	uint64_t due;

	(void)state;
	for (uint32_t i = 1; i < 4; i++) {
		struct offer *o = &engine.languages.of[i].offer;

		o->is_image = 1;
		(void)snprintf(o->name, sizeof(o->name), "%s", i == 2 ? "x" : "image");
	}
	engine.languages.count = 4;
	room = 1;
	told = 0;
	stored_greeted(&s);
	assert_true(stored_tick(&s, &engine, 7, 0) == UINT64_MAX); /* a library's client */
	stored_open(&s, dir);
	stored_greeted(&s);
	due = stored_tick(&s, &engine, 7, UINT64_MAX);
	assert_true(due != UINT64_MAX);
	assert_int_equal(listed, 1 << 1);
	room = 1;
	assert_true(stored_tick(&s, &engine, 7, due) == UINT64_MAX);
	assert_int_equal(listed, 1 << 1 | 1 << 3);
	assert_int_equal(told, 0);
	/* And of one that comes. */
	changed = 1 << 3;
	listed = 0;
	room = 2;
	stored_renew(&s, &engine, 7);
	assert_int_equal(listed, 1 << 3);
	assert_int_equal(told, 1 << 3);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_image_that_comes_or_goes_is_heard_of),
		CASE(a_store_that_is_made_later_is_watched_from_then_on),
		CASE(a_store_that_goes_is_waited_for_again),
		CASE(a_store_that_comes_while_it_is_looked_for_is_found),
		CASE(without_a_watch_there_is_no_descriptor),
		CASE(a_watch_that_is_lost_is_tried_again_with_the_next_news),
		CASE(what_has_changed_is_told_as_soon_as_there_is_room),
		CASE(a_new_client_hears_what_is_installed_in_all_images),
	};
	int r;

	if (!mkdtemp(top))
		return 1;
	(void)snprintf(above, sizeof(above), "%s/var", top);
	(void)snprintf(dir, sizeof(dir), "%s/images", above);
	r = cmocka_run_group_tests_name("stored", tests, NULL, NULL);
	(void)rmdir(top);
	return r;
}
