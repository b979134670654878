/* The process that becomes the program.
 *
 *   runs in    born into the cell's pid namespace and cgroup, as host root; joins the
 *              other namespaces and drops everything by itself
 *   blocks     parked on its channel until START, fully locked down
 */
#pragma once

/* Returns only when it failed or was told to end. */
int box_enter(void);
