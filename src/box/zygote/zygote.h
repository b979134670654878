/* The process that becomes a zygote: an interpreter that forks into cells.
 *
 *   runs in    mount, ipc, uts and network namespaces of its own, as host root in the
 *              host's pid namespace (it puts children into the cells' own)
 *   blocks     until the supervisor has sent its plan; then it becomes the interpreter
 */
#pragma once

/* Returns only when it failed. */
int box_zygote(void);
