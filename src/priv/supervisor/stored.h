/* Whether something has come into the store of images, or has gone from it, and what the client has
 * been told of that.
 *
 *   runs in    the supervisor of a server
 *   owns       one inotify descriptor
 *   trusts     nothing: an event is a reason to look at the store (images.h), and is not read
 *   blocks     never
 */
#pragma once

#include <stdint.h>

struct engine;

struct stored {
	int watch_fd; /* readable when the store may be another one; -1: none is watched */
	int wd;       /* of the store's folder, or of the nearest one above that there is */
	const char *dir;
	uint32_t untold;   /* a bit for each number of which the client is to be told */
	uint32_t unlisted; /* and of what is installed in it */
	uint64_t due_ns;   /* it could not take it: again then; 0: it has heard all */
};

void stored_clear(struct stored *s) __attribute__((nonnull));

/* Watch the store at `dir` (absolute, borrowed), which need not be there yet. A failure costs the
 * news, not the server: it is told of in the log. */
void stored_open(struct stored *s, const char *dir) __attribute__((nonnull));

/* The descriptor is readable: empty it, and watch what has taken the store's place. To be done before
 * the store is looked at, so that nothing that comes after that is missed. */
void stored_look(struct stored *s) __attribute__((nonnull));

/* The client is a new one, which has been told of all images: of what is installed in them it will be. */
void stored_greeted(struct stored *s) __attribute__((nonnull));

/* Look at the store, now and whenever there is a number that another image can have, and tell the
 * client at `client_fd` what has changed. -1: there is none; the next one is told of all (engine.h). */
void stored_renew(struct stored *s, struct engine *e, int client_fd) __attribute__((nonnull));

/* Tell it what it could not take. Returns when it wants to be called again. */
uint64_t stored_tick(struct stored *s, const struct engine *e, int client_fd, uint64_t now_ns)
	__attribute__((nonnull));
