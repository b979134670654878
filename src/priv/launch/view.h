/* What a program sees as "/": made once at start as a template (a small tmpfs in the
 * supervisor's own mount namespace), shown to each cell through read-only overlays of
 * its own.
 *
 * Nothing of the host is bound. The interpreter's directories (the runtime's `roots`)
 * are overlays too: a cell has its own inodes, so inotify, flock and leases do not cross.
 * /etc is generated, with copies of the few public files that programs look for; no host
 * directory that could hold a socket or a secret is shown.
 *
 *   runs in    the supervisor and the probe, after mount_make_private()
 *   owns       the template, until the process ends
 *   kernel     overlayfs
 */
#pragma once

#include "wire/cell.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct fault;

#define VIEW_PIECES_MAX RUNTIME_ROOTS_MAX

struct view {
	char pieces[VIEW_PIECES_MAX][CELL_PATH_MAX]; /* host directories, absolute */
	unsigned count;
};

/* One mount of a cell: detached, to be attached at `path` below the cell's root. */
struct view_mount {
	int fd;
	char path[CELL_PATH_MAX];
};

/* Build the template for `rt`. A root of the runtime that does not exist is a fault,
 * unless its name begins with '?'. */
int view_open(struct view *ret, const struct runtime *rt, struct fault *f) __attribute__((nonnull));

struct view_scratch {
	uint64_t bytes, inodes; /* of each writable tmpfs */
	uint32_t uid, root_uid; /* the host uids of the program, and of root inside */
};

/* Make every read-only mount of one cell; the first is the root, and every other one's
 * place is inside an earlier one. At most `room`; *ret_count says how many. On failure
 * nothing is left behind. */
int view_mounts(const struct view *v, struct view_mount *ret, unsigned room, unsigned *ret_count,
	struct fault *f) __attribute__((nonnull));

/* The writable ones of one run, in the order in which they are attached: /dev/shm and /tmp,
 * which are root's and everybody's to write to, and /workspace, which is the program's. */
#define VIEW_SCRATCH 3
extern const char *const view_scratch_paths[VIEW_SCRATCH]; /* absolute */

/* Make number `which` of them, detached. */
int view_scratch(const struct view_scratch *s, unsigned which, int *ret_fd, struct fault *f)
	__attribute__((nonnull));

/* What a writable mount is like as long as nothing was done in it: its directory and its
 * room. */
struct view_mark {
	struct stat dir;
	uint64_t blocks, blocks_free, files, files_free;
};

/* 0 or a negative errno. */
int view_mark(int mount_fd, struct view_mark *ret) __attribute__((nonnull));

/* Is it still like that? Whoever makes or removes a name in /tmp or /dev/shm, or reads the
 * directory, changes its times, which are in the past, and cannot put them back. /workspace
 * has held the program. */
bool view_is_untouched(int mount_fd, const struct view_mark *made) __attribute__((nonnull));

void view_mounts_close(struct view_mount *mounts, unsigned count) __attribute__((nonnull));

/* Where init attaches the new root before it makes it "/": an empty directory of the
 * template, so that nothing of the host is needed for it. */
#define VIEW_DIR    "/run/glovebox/view"
#define VIEW_ANCHOR VIEW_DIR "/anchor"
