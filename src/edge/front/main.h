/* The front's role: what the program does when it is started as "@front".
 *
 *   runs in    the front, from its first to its last moment
 *   owns       descriptors 3 (channel to the supervisor) and 4 (listening socket)
 */
#pragma once

/* The process's exit status: 0 after DRAIN, 1 when it could not start or the supervisor
 * went away. Starts as root and gives that up. */
int role_front(void);
