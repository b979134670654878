/* `glovebox doctor` from the privileged side.
 *
 *   runs in    its own process: `glovebox @probe`
 */
#pragma once

/* Try every layer as a server would at its start, send one LAYER message each and
 * LAYERS_END to the client at descriptor 3, leave nothing behind. The exit status is 0
 * when a server would start. */
int role_probe(void);
