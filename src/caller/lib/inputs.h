/* The arguments, variables and files of a struct gbx_request as the blob of wire/inputs.h.
 *
 *   runs in    the caller
 *   owns       nothing
 *   trusts     the caller's pointers, not what is in them
 */
#pragma once

#include "wire/limits.h"
#include "wire/settings.h"

#include <glovebox.h>
#include <stddef.h>

struct fault;

/* -EINVAL with the item that is wrong; nothing ran. *ret_blob is the caller's to free(), NULL
 * where there are no inputs. */
struct inputs_bounds {
	const struct settings *settings;
	const struct run_limits *limits; /* of the run */
	const char *main_file;           /* of its language */
};
int request_inputs_make(const struct gbx_request *q, const struct inputs_bounds *b, char **ret_blob,
	size_t *ret_len, struct fault *f) __attribute__((nonnull));
