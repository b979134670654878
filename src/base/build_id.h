/* Which build of the program this is: the linker's hash of its content.
 *
 *   runs in    the command line, the supervisor
 */
#pragma once

#include <stdint.h>

#define BUILD_ID_BYTES 20

/* All zero when the program carries none: then no two builds are told apart. */
void build_id(uint8_t ret[static BUILD_ID_BYTES]);
