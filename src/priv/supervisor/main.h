/* The privileged process.
 *
 *   runs in    its own process: `glovebox @supervisor`
 */
#pragma once

/* The whole life of the supervisor; its exit status. */
int role_supervisor(void);
