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
#include "wire/denied.h"

#include <stdbool.h>
#include <stdint.h>

struct fault;

#define VIEW_PIECES_MAX RUNTIME_ROOTS_MAX

struct view {
	char pieces[VIEW_PIECES_MAX][CELL_PATH_MAX]; /* host directories, absolute */
	unsigned count;
	bool builds;
	unsigned number; /* 0: the first, with which the template is made */
	char image[48];  /* what its root is made of, view_open_image(); "": the pieces */
};

/* One mount of a cell: detached, to be attached at `path` below the cell's root. */
struct view_mount {
	int fd;
	char path[CELL_PATH_MAX];
};

/* Build the template for `rt`. A root of the runtime that does not exist is a fault,
 * unless its name begins with '?'. */
int view_open(struct view *ret, const struct runtime *rt, struct fault *f) __attribute__((nonnull));

/* Mount the squashfs in `file_fd` as a root of its own, number `number` of the template, which
 * view_open() has made. */
int view_open_image(struct view *ret, int file_fd, unsigned number, struct fault *f)
	__attribute__((nonnull));

/* Take it away again. Cells that show it keep what they have. A negative errno: it is still there. */
int view_close_image(const struct view *v) __attribute__((nonnull));

/* Add another runtime's root to the template, as number `number`, over 0, which none has had. `builds`: with a
 * place for BUILD_PATH. */
int view_open_other(struct view *ret, const struct runtime *rt, unsigned number, bool builds,
	struct fault *f) __attribute__((nonnull));

struct view_scratch {
	uint64_t bytes, inodes; /* of each writable tmpfs */
	uint32_t uid, root_uid; /* the host uids of the program, and of root inside */
};

/* Make every read-only mount of one cell, which has a `network` or has none; the first is the root,
 * and every other one's place is inside an earlier one. There is room for CELL_MOUNTS_MAX;
 * *ret_count says how many there are. On failure nothing is left behind. */
int view_mounts(const struct view *v, bool network, struct view_mount *ret, unsigned *ret_count,
	struct fault *f) __attribute__((nonnull));

/* The writable ones of one run, in the order in which they are attached: /dev/shm and /tmp,
 * which are root's and everybody's to write to, and /workspace, which is the program's. */
#define VIEW_SCRATCH   SCRATCH_MAX
#define VIEW_WORKSPACE SCRATCH_WORKSPACE                   /* the last of them */
extern const char *const view_scratch_paths[VIEW_SCRATCH]; /* absolute */

/* Make number `which` of them, detached. The directories that are root's have times in the
 * past: whoever does something there gives them others, however soon. */
int view_scratch(const struct view_scratch *s, unsigned which, int *ret_fd, struct fault *f)
	__attribute__((nonnull));

void view_mounts_close(struct view_mount *mounts, unsigned count) __attribute__((nonnull));

/* Where init attaches the new root before it makes it "/": an empty directory of the
 * template, so that nothing of the host is needed for it. */
#define VIEW_DIR    "/run/glovebox/view"
#define VIEW_ANCHOR VIEW_DIR "/anchor"
