/* What the supervisor said and what was captured, as include/glovebox.h shows it.
 *
 *   runs in    the caller
 *   owns       nothing of its own; see gbx_result_clear()
 */
#pragma once

#include "caller/lib/pump.h"

struct run_limits;

/* Fill *ret, whose size is set. Straightens the captures. -ENOMEM. */
int result_make(struct pump *p, const struct run_limits *limits, struct gbx_result *ret)
	__attribute__((nonnull));
