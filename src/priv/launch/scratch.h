/* The writable mounts of a cell, from one program to the next: made if they are missing, sent
 * to main, fitted to a request; in a used cage those that nobody has touched are kept.
 *
 * Their descriptors stay open as long as the mounts are the cell's: to change their size, and
 * to look at them.
 *
 *   runs in    the supervisor and the probe
 *   owns       the mounts, from scratch_make() to scratch_drop_used() or scratch_close()
 *   threads    none
 *   blocks     never, but for the kernel's own work in making a mount
 */
#pragma once

#include "priv/launch/view.h"
#include "wire/denied.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct fault;

/* What a mount was like when it had been made: its directory and its room. */
struct scratch_mark {
	struct stat dir;
	uint64_t blocks, blocks_free, files, files_free;
};

struct scratch {
	struct scratch_mount {
		int fd;    /* -1: to be made */
		bool sent; /* main has attached it, or one before did */
		struct scratch_mark made;
	} mounts[VIEW_SCRATCH]; /* in the order of view_scratch_paths */
};

void scratch_clear(struct scratch *s) __attribute__((nonnull));

/* Make those that are missing. 0 or a negative errno; what was made before stays. */
int scratch_make(struct scratch *s, const struct view_scratch *how, struct fault *f)
	__attribute__((nonnull));

/* Send main those that nobody has attached yet; all must have been made. */
int scratch_send(struct scratch *s, int channel_fd, struct fault *f) __attribute__((nonnull));

/* Give each of them room for `bytes`. What they hold stays. */
int scratch_resize(struct scratch *s, uint64_t bytes, struct fault *f) __attribute__((nonnull));

/* Do they hold more than `bytes` together? True also if the kernel does not say. */
bool scratch_holds_more(const struct scratch *s, uint64_t bytes) __attribute__((nonnull));

/* How much they hold, and which are full, into *ret and nothing else of it. A mount of which the
 * kernel says nothing is neither. */
void scratch_look(const struct scratch *s, struct denied *ret) __attribute__((nonnull));

/* Does /workspace hold nothing but the program's file, with `bytes` in it and the time that enter has
 * marked it with (box/enter/start.c)? Two system calls. A program that writes as many other bytes
 * into its own file, makes nothing else, and puts back such a time hides it from its caller. */
bool scratch_is_plain(const struct scratch *s, const char *main_file, uint64_t bytes)
	__attribute__((nonnull));

/* A program has ended: let go of what it has touched, of /workspace in any case, and of what is
 * attached after the first of them, since the order of mounts can be seen. */
void scratch_drop_used(struct scratch *s) __attribute__((nonnull));

/* Let go of all. Accepts what was never made. */
void scratch_close(struct scratch *s) __attribute__((nonnull));
