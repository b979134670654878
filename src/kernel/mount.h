/* Mounts that exist only as a descriptor until somebody attaches them (fsopen,
 * fsmount, move_mount): no path of the host is ever covered, and closing the
 * descriptor is enough to undo everything.
 *
 *   runs in    the supervisor (makes them), a cell's init (attaches them), confine()
 *   owns       nothing; descriptors go to the caller
 *   kernel     5.2 (new mount API), 5.12 (mount_setattr)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct fault;

/* Attributes of the mount itself. */
enum mount_flags {
	MOUNT_RDONLY = 1u << 0,
	MOUNT_NODEV = 1u << 1,
	MOUNT_NOEXEC = 1u << 2
	/* nosuid is not a choice: every mount of Glovebox has it. */
};

struct mount_tmpfs {
	uint64_t bytes, inodes;
	mode_t mode;
	uid_t uid;        /* and gid, in the caller's user namespace */
	bool large_pages; /* what is written in large pieces lies in large pages, if it can */
};

/* A fresh tmpfs. */
int mount_tmpfs(const struct mount_tmpfs *t, unsigned flags, int *ret_fd, struct fault *f)
	__attribute__((nonnull, warn_unused_result));

/* Change the size of a tmpfs made by mount_tmpfs(), attached or not; what it holds stays.
 * -EINVAL when it holds more than that already. */
int mount_tmpfs_resize(int mount_fd, uint64_t bytes, struct fault *f)
	__attribute__((nonnull, warn_unused_result));

/* A read-only overlay of directories, the uppermost first, NULL after the last (absolute paths; an
 * overlay without a writable layer needs two, so that one of a single directory has an empty one
 * below). It has inodes of its own, so that inotify,
 * locks and leases on one instance are not seen on another. */
int mount_overlay(const char *const *layers, unsigned flags, int *ret_fd, struct fault *f)
	__attribute__((nonnull, warn_unused_result));

/* A proc for the calling process's pid namespace, read-only, hidepid=2; without `full`
 * it shows processes only (subset=pid). */
int mount_proc(int full, int *ret_fd, struct fault *f) __attribute__((nonnull, warn_unused_result));

/* Attach the detached mount at `path` below `dir_fd`. A symbolic link at the end of
 * `path` is not followed. */
int mount_attach(int mount_fd, int dir_fd, const char *path, struct fault *f)
	__attribute__((nonnull, warn_unused_result));

/* A second, detached mount of what is mounted at `path` in the caller's mount namespace, with
 * attributes of its own. */
int mount_clone(const char *path, unsigned flags, int *ret_fd, struct fault *f)
	__attribute__((nonnull, warn_unused_result));

/* Give the caller a mount namespace of its own whose mounts neither send events to the
 * host nor receive any. */
int mount_make_private(struct fault *f) __attribute__((nonnull, warn_unused_result));

/* Make the mount at the current directory the root, and let go of everything else. */
int mount_pivot_here(struct fault *f) __attribute__((nonnull, warn_unused_result));
