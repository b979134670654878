/* A place for what a compiler makes: a tmpfs that nothing of the host shows, attached below VIEW_DIR
 * in the supervisor's own mount namespace. Cells get mounts of it: the compiler's one to write to
 * and not to execute from, the program's one to execute from and not to write to (ADR 15).
 *
 *   runs in    the supervisor, after view_open()
 *   owns       the tmpfs, from build_make() to build_drop(); a cell that still shows it keeps it
 *   threads    none
 *   blocks     never, but for the kernel's own work in making a mount
 *   trusts     no byte and no name in it, and looks at none
 */
#pragma once

#include "priv/launch/view.h"

#include <stdbool.h>

struct fault;

#define BUILD_PATH "/build" /* where cells show it */

/* Make place `number`, over which nothing stands. */
int build_make(unsigned number, const struct view_scratch *how, struct fault *f)
	__attribute__((nonnull));

/* A detached mount of it, for the compiler or for the program. */
int build_mount(unsigned number, bool compiler, int *ret_fd, struct fault *f)
	__attribute__((nonnull));

/* Let go of it. 0, or a negative errno: it is there still. */
int build_drop(unsigned number);
