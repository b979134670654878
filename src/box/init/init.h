/* Pid 1 of a cell.
 *
 *   runs in    a new user, pid, mount, network, ipc and uts namespace, uid 0 there
 *   blocks     until the supervisor closes the channel; then the cell ends with it
 */
#pragma once

/* Returns only the exit status of an orderly end. */
int box_init(void);
