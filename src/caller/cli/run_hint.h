/* What `glovebox run` says of a run beside the program's own output: one line that a person can act
 * on.
 *
 *   runs in    the caller's process
 *   owns       nothing
 */
#pragma once

#include <glovebox.h>

/* The line, with its end, of the program `file` that was run as `q` asked: the result's hint in the
 * words of this command, or that the program may be in another language. To be freed; NULL: there is
 * nothing to say. */
char *run_hint_make(const char *file, const struct gbx_request *q, const struct gbx_result *result)
	__attribute__((nonnull));
