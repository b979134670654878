/* What the supervisor said and what was captured, as include/glovebox.h shows it.
 *
 *   runs in    the caller
 *   owns       nothing of its own; see gbx_result_clear()
 */
#pragma once

#include "caller/lib/pump.h"

#include <stddef.h>

struct run_limits;

/* The struct as the first header had it, which later ones have grown from. */
#define RESULT_FIRST_SIZE offsetof(struct gbx_result, denials)

/* Fill *ret, whose size is set. Straightens the captures. -ENOMEM. */
int result_make(struct pump *p, const struct run_limits *limits, struct gbx_result *ret)
	__attribute__((nonnull));
