#include "priv/supervisor/stored.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "priv/supervisor/engine.h"
#include "priv/supervisor/images.h"
#include "wire/settings.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

/* An image comes by rename(), goes by one, and is replaced by one that changes two of them. */
#define IN_STORE (IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE)
/* Of a folder above, until there is a store. */
#define IN_ABOVE (IN_CREATE | IN_MOVED_TO)
/* Whatever is watched may itself go. */
#define IN_BOTH  (IN_ONLYDIR | IN_DELETE_SELF | IN_MOVE_SELF)

#define RESEND_NS (5 * NS_PER_MS) /* as board.c does with answers */

void stored_clear(struct stored *s)
{
	*s = (struct stored){ .watch_fd = -1, .wd = -1 };
}

/* The folder above; false: there is none. */
static bool cut(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || path[1] == '\0')
		return false;
	slash[slash == path] = '\0';
	return true;
}

/* The store, or the nearest folder above. */
static int watch_nearest(const struct stored *s, bool *ret_is_store)
{
	char path[SETTING_TEXT_MAX];
	int wd;

	(void)snprintf(path, sizeof(path), "%s", s->dir);
	*ret_is_store = true;
	for (;;) {
		wd = inotify_add_watch(
			s->watch_fd, path, IN_BOTH | (*ret_is_store ? IN_STORE : IN_ABOVE));
		if (wd >= 0 || errno != ENOENT || !cut(path))
			return wd < 0 ? -errno : wd;
		*ret_is_store = false;
	}
}

/* What was made while we watched above it is found by another try: when nothing nearer is there the
 * same folder is watched. */
static int settle(struct stored *s)
{
	bool is_store;
	int wd, before;

	for (before = -1;; before = wd) {
		wd = watch_nearest(s, &is_store);
		if (before >= 0 && wd != before)
			(void)inotify_rm_watch(s->watch_fd, before);
		if (wd < 0 || is_store || wd == before)
			break;
	}
	if (s->wd >= 0 && s->wd != wd)
		(void)inotify_rm_watch(s->watch_fd, s->wd);
	s->wd = wd < 0 ? -1 : wd;
	return wd < 0 ? wd : 0;
}

static void give_up(const struct stored *s, int code)
{
	log_warn("images",
		"why=\"no watch for %s: %s\" note=\"what comes or goes is known after the next "
		"start\"",
		s->dir, strerrordesc_np(-code));
}

void stored_open(struct stored *s, const char *dir)
{
	int r;

	s->dir = dir;
	s->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	r = s->watch_fd < 0 ? -errno : settle(s);
	if (r < 0) {
		give_up(s, r);
		drop_fd(&s->watch_fd);
	}
}

void stored_look(struct stored *s)
{
	char events[4096];
	int r;

	while (read(s->watch_fd, events, sizeof(events)) > 0)
		continue;
	r = settle(s);
	if (r < 0)
		give_up(s, r);
}

static void tell(struct stored *s, const struct engine *e, int client_fd)
{
	int r = client_fd < 0 ? 0 : engine_offer_some(e, client_fd, &s->untold);

	if (r == 0 && client_fd >= 0)
		r = engine_list_some(e, client_fd, &s->unlisted);
	s->due_ns = r < 0 ? clock_ns() + RESEND_NS : 0;
}

void stored_renew(struct stored *s, struct engine *e, int client_fd)
{
	uint32_t changed = images_offer(e->settings.image_dir, &e->languages);

	s->untold |= changed;
	s->unlisted |= changed;
	tell(s, e, client_fd);
}

void stored_greeted(struct stored *s)
{
	s->untold = 0;
	if (!s->dir) /* a library's client, which does not ask */
		return;
	s->unlisted = UINT32_MAX;
	s->due_ns = clock_ns();
}

uint64_t stored_tick(struct stored *s, const struct engine *e, int client_fd, uint64_t now_ns)
{
	if (s->due_ns != 0 && now_ns >= s->due_ns)
		tell(s, e, client_fd);
	return s->due_ns == 0 ? UINT64_MAX : s->due_ns;
}
