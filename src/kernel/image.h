/* A file with a squashfs in it as a detached, read-only mount.
 *
 *   runs in    the supervisor
 *   owns       nothing; the mount keeps the loop device that it needs, and both end together
 *   trusts     the file: the kernel parses it. It must be one of ours, of root's alone
 *   kernel     5.8 (LOOP_CONFIGURE), squashfs with zstd, loop devices
 */
#pragma once

struct fault;

/* nosuid, nodev, read-only. */
int image_mount(int file_fd, int *ret_fd, struct fault *f)
	__attribute__((nonnull, warn_unused_result));
