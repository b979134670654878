/* What a child that is made by posix_spawn() begins with: as little of its parent as there can
 * be. (Cells' processes are made by src/kernel/process.h.)
 *
 *   runs in    the caller and the supervisor
 *   threads    any
 *   kernel     glibc 2.26 (POSIX_SPAWN_SETSID)
 */
#pragma once

#include <spawn.h>

/* stdin and stdout are /dev/null; stderr is `err_fd` (borrowed until the spawn), or below 0
 * /dev/null, too. 0 or an errno, a positive one as all of posix_spawn's functions return. */
int child_streams(posix_spawn_file_actions_t *a, int err_fd) __attribute__((nonnull));

/* No signal is blocked or ignored, and the session is its own: the terminal's Ctrl-C, and what
 * the parent takes by signalfd, are no business of the child's. As child_streams(). */
int child_attributes(posix_spawnattr_t *a) __attribute__((nonnull));
