/* The privileged process.
 *
 *   runs in    its own process: `glovebox @supervisor`, `glovebox @keeper`
 */
#pragma once

/* The whole life of the supervisor; its exit status. */
int role_supervisor(void);

/* The same for a library that has many runs: with ready cells, as a server has them. */
int role_keeper(void);
