/* The operator's manifests, RUNTIMES/NAME/runtime.yaml, on their way to the config process: records
 * among the overrides (src/edge/config/languages.h). They are only carried here, and not understood.
 *
 *   runs in    the caller
 *   owns       nothing
 *   blocks     while reading files
 */
#pragma once

struct fault;

#define RUNTIMES_DEFAULT "/etc/glovebox/runtimes"

/* Write those of the folder `path` behind what `fd` holds. NULL: of RUNTIMES_DEFAULT, if it is
 * there; "": of none. A file that others than its owner may write is refused. */
int manifests_write(int fd, const char *path, struct fault *f) __attribute__((nonnull(3)));
